"""Validity of the mean field: logit variance, self-weight, effective number of tokens.

A query x of a head (B, β) scores a key y by ⟨Bx + β, y⟩.  Over keys y ~ N(m, S) the scores are
normal, with variance a²(x) = |S^{1/2}(Bx + β)|²; the weights are then log-normal, and

- N exp(-a²) is the effective sample size (Σ w)²/Σ w² of N of them, as long as a² is well below
  log N; from a² = 2 log N on the largest key takes a finite share of the weight (the freezing
  transition of Derrida's random energy model);
- the token's own score exceeds the mean by (Bx + β)·(x - m), while the log of the sum of the
  others is log N + a²/2 (and a √(2 log N) beyond freezing), which gives its weight on itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri
from scipy.stats import qmc

from .._check import Array
from ..gaussian import Gaussian
from ..parameters import Head, Parameters
from ..results.stamps import Stamp

__all__ = ["Attention", "logit_variance", "measure_attention", "self_weight", "stamp", "tilt"]

#: Points of the quasi-random rule for the self-weight.
POINTS = 1024

#: Ranks up to which SciPy has a Sobol sequence; beyond them the points are random.
MOST_DIRECTIONS = 21_201


@dataclass(frozen=True)
class Attention:
    """What attention of actual tokens is like, in its worst head, averaged over queries.

    Attributes
    ----------
    logit_variance : float
        Variance of the scores of a query over the keys, mean over the queries.
    self_weight : float
        Mean softmax weight of a token on itself.
    effective : float
        (Σ w)²/Σ w² of a query, geometric mean over the queries.
    """

    logit_variance: float
    self_weight: float
    effective: float


def stamp(
    p: Parameters,
    law: Gaussian,
    count: int,
    *,
    mask_self: bool = False,
    antithetic: bool = False,
) -> Stamp:
    """Stamp of attention over `count` tokens of a law, in the head where each is worst.

    Parameters
    ----------
    p : Parameters
        Of dimension d.
    law : Gaussian
        Of dimension d.
    count : int
    mask_self : bool
        Whether tokens do not attend to themselves.
    antithetic : bool
        Whether each token has a mirror image among the tokens, which is no independent key
        either; the weight is then the larger one of the two.
    """
    heads = _acting(p)
    variance = max((logit_variance(head, law) for head in heads), default=0.0)
    signs = ([] if mask_self else [1.0]) + ([-1.0] if antithetic else [])
    weights = [self_weight(head, law, count, sign) for head in heads for sign in signs]
    uniform = 0.0 if mask_self else 1 / count
    return Stamp(count, variance, max(weights, default=0.0 if heads else uniform))


def logit_variance(head: Head, law: Gaussian) -> float:
    """Mean over queries of the variance of the logits over keys: E a².

    With q = B m + β the mean query, E a² = q·S q + tr(B S Bᵀ S), as |S^{1/2}(q + B L z)|² has
    mean |L^T q|² + |L^T B L|² for S = L Lᵀ.
    """
    _, B, beta = head
    L = law.factor
    query = B @ law.mean if beta is None else B @ law.mean + beta
    with np.errstate(over="ignore"):  # near a blow-up it is beyond every log N anyway
        value = float(np.sum((L.T @ query) ** 2) + np.sum((L.T @ B @ L) ** 2))
    return value if np.isfinite(value) else float(np.finfo(float).max)


def tilt(p: Parameters, law: Gaussian) -> float:
    """Largest singular value of K = Lᵀ B L in the worst head: below 1 errors fall like N^(-1/2).

    To first order in 1/√N a key y moves the attention of all queries x ~ N(m, S) together by its
    influence E_x exp(⟨Bx + β, y - m⟩ - a²(x)/2) times a polynomial.  With m = 0 and β = 0 the
    exponent integrates to ½ z·K (I + KᵀK)⁻¹ Kᵀ z for y = L z, so that its square has a finite mean
    over z ~ N(0, I) if and only if 2σ²/(1 + σ²) < 1 for all singular values σ of K, that is σ < 1;
    linear terms do not change that.  Otherwise the largest tokens rule, and the errors of the
    moments fall more slowly.
    """
    L = law.factor
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = [L.T @ B @ L for _, B, _ in _acting(p)]
        if not all(np.all(np.isfinite(K)) for K in sizes):
            return float(np.finfo(float).max)
        return max((float(np.linalg.norm(K, 2)) for K in sizes), default=0.0)


def self_weight(head: Head, law: Gaussian, count: int, sign: float = 1.0) -> float:
    """Expected softmax weight of a token on itself among `count` tokens.

    E σ((Bx + β)·(x - m) - log Z(x)), with the logistic function σ and log Z = log N + a²/2 for
    a < √(2 log N), else a √(2 log N), where a² is that of the query x.  The expectation over x
    is taken by a shifted Sobol rule, the same one every time.  With `sign` -1 it is the weight on
    the mirror image 2m - x.
    """
    _, B, beta = head
    z = _normal_points(law.rank)
    with np.errstate(over="ignore", invalid="ignore"):
        deviations = z @ law.factor.T
        queries = (law.mean + deviations) @ B.T
        if beta is not None:
            queries = queries + beta
        own = sign * np.sum(queries * deviations, axis=1)
        a = np.linalg.norm(queries @ law.factor, axis=1)
    edge = np.sqrt(2 * np.log(count))
    with np.errstate(over="ignore", invalid="ignore"):
        logs = np.where(a < edge, np.log(count) + 0.5 * a * a, a * edge)
        exponent = own - logs
    exponent = exponent[np.isfinite(exponent)]
    return float(np.mean(expit(exponent))) if exponent.size else 1.0


def measure_attention(
    p: Parameters, tokens: Array, *, queries: int = 64, mask_self: bool = False
) -> Attention:
    """Measure attention of actual tokens, for equally spaced ones as queries.

    Parameters
    ----------
    p : Parameters
        Of dimension d.
    tokens : (N, d) array
    queries : int
        How many of the tokens are taken as queries.
    mask_self : bool
        Whether tokens do not attend to themselves.
    """
    n = tokens.shape[0]
    some = np.unique(np.linspace(0, n - 1, min(queries, n)).round().astype(np.intp))
    centred = tokens - tokens.mean(axis=0)
    seen = [_measure(head, tokens[some], centred, some, mask_self=mask_self) for head in _acting(p)]
    if not seen:
        return Attention(0.0, 0.0 if mask_self else 1 / n, float(n - mask_self))
    variances, weights, effective = zip(*seen, strict=True)
    return Attention(max(variances), max(weights), min(effective))


def _measure(
    head: Head, asking: Array, keys: Array, own: np.ndarray, *, mask_self: bool
) -> tuple[float, float, float]:
    _, B, beta = head
    queries = asking @ B.T if beta is None else asking @ B.T + beta
    scores = queries @ keys.T
    with np.errstate(over="ignore"):  # beyond every log N anyway
        variance = min(float(np.mean(np.var(scores, axis=1))), float(np.finfo(float).max))
    rows = np.arange(own.size)
    if mask_self:
        scores[rows, own] = -np.inf
    scores -= scores.max(axis=1, keepdims=True)
    weights = np.exp(scores, out=scores)
    sums = weights.sum(axis=1)
    effective = sums**2 / np.einsum("ij,ij->i", weights, weights)
    own_weights = weights[rows, own] / sums
    return variance, float(np.mean(own_weights)), float(np.exp(np.mean(np.log(effective))))


def _acting(p: Parameters) -> list[Head]:
    """The heads that move anything."""
    return [head for head in p.heads if np.any(head[0])]


def _normal_points(rank: int) -> Array:
    """Standard normal points of a shifted Sobol sequence, shape (POINTS, rank)."""
    rng = np.random.default_rng(0)
    if rank > MOST_DIRECTIONS:
        return rng.standard_normal((POINTS, rank))
    if rank == 0:
        return np.zeros((1, 0))
    uniform = (qmc.Sobol(rank, scramble=False).random(POINTS) + rng.random(rank)) % 1.0
    return np.asarray(ndtri(np.clip(uniform, 1e-16, 1 - 1e-16)))

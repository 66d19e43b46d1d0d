r"""Moments of multi-head attention with biases over Gaussian tokens, for finitely many keys.

The keys are m + L z with z ~ N(0, I).  A head of width k scores by q = μ + G z in these
coordinates, with

    G = scale Lᵀ W_Kᵀ W_Q L,      μ = scale Lᵀ W_Kᵀ (W_Q m + b_Q),

so that only the 2k directions of z in the rows of W_K L and W_Q L matter to its weights, and the
averages over softmax weights (``finite_attention``) are taken there.  In all other directions a
token attends to itself with its own weight, and to the others not at all.  The key bias adds the
same to every score of a query and drops out.  In the mean field of infinitely many tokens attention
is c + K x with K = Σ_h V_h S B_h.

Noise is what the slope K leaves of the covariance of attention.  Different heads, and different
tokens of a sequence, average over the same keys, so their noise is correlated.  To first order in
the fluctuation of the weights w, w' of two queries,

    E Σ_j w_j w'_j = e^⟨q, q'⟩/N = √(E Σ w_j² E Σ w'_j²) e^(-|q - q'|²/2),

and the last form, a positive definite kernel of the queries that never exceeds what Cauchy and
Schwarz allow, is averaged over the queries in closed form.  Where scores are so spread that few
keys have all the weight, E Σ w_j² is less than e^(a²)/N; there queries count with the length
√log(N E Σ w_j²) that explains it, and those with nothing in common still share a key with
probability 1/N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._check import Array
from ...finite_attention.closure import attend, residual
from ...finite_tokens import FiniteTokens
from ..weights import AttentionWeights
from .law import root, symmetric

__all__ = ["AttentionMoments", "attention_moments"]

#: Singular values of the rows that score below this fraction of the largest one are rounding.
ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class AttentionMoments:
    """Moments of what attention adds to a token x of mean m: mean + K (x - m) + noise.

    Attributes
    ----------
    mean : (d,) array
    slope : (d, d) array
        K, on the range of the covariance of the keys.
    values : (d, d) array
        Σ_h V_h.
    carried : (d, d) array
        Slope on what all tokens share: keys and values move with the token, which leaves Σ_h V_h
        and the slope by way of the query.
    noise : (d, d) array
        Covariance of the noise over tokens and sequences.
    shared : (d, d) array
        The part of it that is the same for all tokens of a sequence.
    rows : (H, k, d) array
        K_h = W_O,h rows_h for each head.
    self_weight : (H,) array
        Mean weight of the token itself.
    tilt : (H,) array
        κ: the share of the mean field slope that the other keys attain.
    concentration : (H,) array
        Mean sum of the squared weights.
    logit_variance : (H,) array
        Mean variance a² of the scores.
    explained : (H,) array
        R² of the affine map for what each head attends to, before W_O: the share of its variance
        that is no noise.  Where the scores are narrow it is
        1/(1 + tr(W_V S W_Vᵀ) e^(a²)/(N tr(G S Gᵀ))) with G = W_V S B.
    """

    mean: Array
    slope: Array
    values: Array
    carried: Array
    noise: Array
    shared: Array
    rows: Array
    self_weight: Array
    tilt: Array
    concentration: Array
    logit_variance: Array
    explained: Array


class _Head(NamedTuple):
    """One head: numbers, its mean value (k,), slope (k, d) and residual covariance (k, k)."""

    mean: Array
    rows: Array
    residual: Array
    own: float
    tilt: float
    concentration: float
    logit_variance: float

    @property
    def squares(self) -> float:
        """E Σ w_j² over the other keys: by Stein's lemma they tilt by 1 - w_0 less that."""
        return max((1.0 - self.own) * (1.0 - self.tilt), 0.0)

    def length(self, count: int) -> float:
        """Factor by which queries are shortened so that E Σ w_j² = e^(a²)/N."""
        wanted = np.log(max(count * self.squares, 1.0))
        return float(np.sqrt(min(wanted / self.logit_variance, 1.0))) if wanted > 0 else 0.0


def attention_moments(
    weights: AttentionWeights, mean: Array, covariance: Array, tokens: FiniteTokens | None
) -> AttentionMoments:
    """Moments of attention over tokens from N(mean, covariance), output bias included.

    Parameters
    ----------
    weights : AttentionWeights
        Of H heads of width k.
    mean : (d,) array
    covariance : (d, d) array
        Of any rank.
    tokens : FiniteTokens or None
        None for the mean field of infinitely many.
    """
    L = root(covariance)
    heads = [_head(weights, h, mean, L, tokens) for h in range(weights.heads)]
    output = weights.output.astype(np.float64)
    value = weights.value.astype(np.float64).reshape(-1, weights.width)
    noise, shared = _noise(weights, mean, L, heads, tokens.count) if tokens else (None, None)
    nothing = np.zeros((weights.width, weights.width))
    rows = np.array([head.rows for head in heads])
    others = np.repeat([1.0 - head.own for head in heads], weights.head_width)
    return AttentionMoments(
        mean=weights.output_bias + output @ np.concatenate([head.mean for head in heads]),
        slope=output @ rows.reshape(value.shape),
        values=output @ value,
        carried=output @ (others[:, None] * value + rows.reshape(value.shape)),
        noise=nothing if noise is None else symmetric(output @ noise @ output.T),
        shared=nothing if shared is None else symmetric(output @ shared @ output.T),
        rows=rows,
        self_weight=np.array([head.own for head in heads]),
        tilt=np.array([head.tilt for head in heads]),
        concentration=np.array([head.concentration for head in heads]),
        logit_variance=np.array([head.logit_variance for head in heads]),
        explained=np.array([_explained(head, L) for head in heads]),
    )


def _head(
    weights: AttentionWeights, h: int, mean: Array, L: Array, tokens: FiniteTokens | None
) -> _Head:
    """Moments of what head h attends to, after W_V and before W_O."""
    key, query, value = (
        getattr(weights, name)[h].astype(np.float64) for name in ("key", "query", "value")
    )
    asked = query @ mean + weights.query_bias[h]
    given = value @ mean + weights.value_bias[h]
    basis, back = _scoring_directions(key, query, L)
    P, R, F = (x @ L @ basis for x in (key, query, value))
    G, mu = weights.scale * P.T @ R, weights.scale * P.T @ asked
    if tokens is None:
        nothing = np.zeros((len(value), len(value)))
        logit = float(mu @ mu + np.sum(G**2))
        return _Head(given + F @ mu, F @ G @ back, nothing, 0.0, 1.0, 0.0, logit)
    k = len(mu)
    of = attend(np.zeros(k), np.eye(k), (G, G, mu), tokens, noise=True)
    aside = of.concentration - of.own**2
    whole = value @ L
    return _Head(
        mean=given + F @ of.mean,
        rows=of.own * value + F @ (of.slope - of.own * np.eye(k)) @ back,
        residual=aside * whole @ whole.T + F @ (residual(of) - aside * np.eye(k)) @ F.T,
        own=of.own,
        tilt=of.tilt,
        concentration=of.concentration,
        logit_variance=of.logit_variance,
    )


def _explained(head: _Head, L: Array) -> float:
    signal, noise = float(np.sum((head.rows @ L) ** 2)), float(np.trace(head.residual))
    return signal / (signal + noise) if signal + noise > 0 else 1.0


def _scoring_directions(key: Array, query: Array, L: Array) -> tuple[Array, Array]:
    """Orthonormal basis U (r, n) of the rows of W_K L and W_Q L, and Uᵀ L⁻¹ (n, d).

    As Uᵀ = T (W_K L; W_Q L), it is T (W_K; W_Q) on the range of L: L is not inverted.
    """
    parts = [x / max(float(np.linalg.norm(x @ L)), np.finfo(float).tiny) for x in (key, query)]
    stacked = np.concatenate(parts)
    left, sizes, right = np.linalg.svd(stacked @ L, full_matrices=False)
    kept = sizes > ROUNDING * sizes.max(initial=0.0)
    return right[kept].T, (left[:, kept] / sizes[kept]).T @ stacked


def _noise(
    weights: AttentionWeights, mean: Array, L: Array, heads: list[_Head], count: int
) -> tuple[Array, Array]:
    """Covariance (H k, H k) of the noise of all heads, and of the part that tokens share."""
    k = weights.head_width
    squares = np.array([head.squares for head in heads])
    largest = np.sqrt(np.outer(squares, squares))
    queries = _Queries(weights, mean, L, [head.length(count) for head in heads])
    whole = weights.value.astype(np.float64).reshape(-1, weights.width) @ L
    products = whole @ whole.T
    overlaps = [largest * queries.overlap(same=same) for same in (True, False)]
    noise, shared = (np.kron(x, np.ones((k, k))) * products for x in overlaps)
    for h, head in enumerate(heads):
        part = slice(h * k, (h + 1) * k)
        aside = head.concentration - head.own**2
        noise[part, part] = head.residual
        share = min(overlaps[1][h, h] / aside, 1.0) if aside > 0 else 0.0
        shared[part, part] = share * head.residual
    return noise, shared


class _Queries:
    """Pairs of queries q = Pᵀ (a + R z) of all heads, each with a factor for its length."""

    def __init__(
        self, weights: AttentionWeights, mean: Array, L: Array, lengths: list[float]
    ) -> None:
        H, k, d = weights.query.shape
        key, query = (
            getattr(weights, name).astype(np.float64).reshape(H * k, d) for name in ("key", "query")
        )
        size = weights.scale * np.repeat(lengths, k)
        self.asked = size * (query @ mean + weights.query_bias.ravel())
        P, R = key @ L, size[:, None] * (query @ L)
        self.keys, self.spread = P @ P.T, R @ R.T
        self.parts = [slice(h * k, (h + 1) * k) for h in range(H)]

    def overlap(self, *, same: bool) -> Array:
        """E e^(-|q - q'|²/2) for each two heads, (H, H): of the same token or of different ones.

        The difference is Aᵀ (a + R z) with stacked A = (P; -P') and a, R; with W = Cov(R z) and
        N = A Aᵀ the average is det(I + N W)^(-1/2) exp(-aᵀ (I + N W)⁻¹ N a/2).
        """
        made = np.eye(len(self.parts))
        for h, one in enumerate(self.parts):
            for g, other in enumerate(self.parts[: h if same else h + 1]):
                index, k = np.r_[one, other], one.stop - one.start
                sign = np.repeat([1.0, -1.0], k)
                N = np.outer(sign, sign) * self.keys[np.ix_(index, index)]
                W = self.spread[np.ix_(index, index)]
                if not same:
                    W[:k, k:] = W[k:, :k] = 0.0
                made[h, g] = made[g, h] = _kernel(N, W, self.asked[index])
        return made


def _kernel(N: Array, W: Array, a: Array) -> float:
    inner = np.eye(len(a)) + N @ W
    _, log = np.linalg.slogdet(inner)
    return float(np.exp(-0.5 * (log + a @ np.linalg.solve(inner, N @ a))))

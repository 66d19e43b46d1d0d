"""Mean attention over N Gaussian tokens: its average, its slope and its noise.

In whitened coordinates, x = m + L z with z ~ N(0, I), a token has the scores ⟨q, g_j⟩ against
the others, q = L'(B m + β) + G z with G = L'B L, and τ = ⟨q, z⟩ against itself.  Averaged over
the other tokens, which are independent of it, it attends to m + L h(z),

    h(z) = E[w_0] z + c q,      c = E[W]/a,   a = |q|

(``weights``), which in the mean field is q alone.  The slope of attention on the token is

    K = Cov(attention, x) S⁻¹ = L E[h(z) z'] L⁻¹,

so that L E[h z'] takes the place of S B L in the equation of the factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._check import Array
from ..errors import InvalidShape
from ..finite_tokens import FiniteTokens
from ..gaussian import Gaussian
from ..parameters import Head, Parameters
from .nodes import Nodes, nodes
from .weights import weights

__all__ = ["Attention", "AttentionSlope", "attend", "attention_slope"]


@dataclass(frozen=True, eq=False)
class Attention:
    """Attention of one head over N tokens, in whitened coordinates of r dimensions.

    Attributes
    ----------
    mean : (r,) array
        E h(z).
    slope : (r, r) array
        E h(z) z'.
    second : (r, r) array or None
        Second moment of what a token attends to, over tokens and keys, if it was asked for.
    own : float
        Mean weight of the token itself.
    tilt : float
        Mean κ: the share of the mean field tilt q that the other keys attain.
    concentration : float
        Mean sum of the squared weights, 1/N if they are equal and 1 if one key has all; nan
        if second moments were not asked for.
    logit_variance : float
        Mean variance a² of the scores.
    """

    mean: Array
    slope: Array
    second: Array | None
    own: float
    tilt: float
    concentration: float
    logit_variance: float


def attend(
    mean: Array, factor: Array, head: Head, tokens: FiniteTokens, *, noise: bool = False
) -> Attention:
    """Attention of one head over finitely many tokens from N(m, L L').

    Parameters
    ----------
    mean : (d,) array
    factor : (d, r) array
    head : (V (d, d), B (d, d), β (d,) or None)
        V is not used.
    tokens : FiniteTokens
    noise : bool
        Whether second moments are wanted, too.
    """
    _, B, beta = head
    r = factor.shape[1]
    tilt = B @ mean if beta is None else B @ mean + beta
    mu, G = factor.T @ tilt, factor.T @ (B @ factor)
    if r == 0:  # all tokens are equal: so is what they attend to
        own = 1.0 / tokens.count if tokens.self_key else 0.0
        none = np.zeros((0, 0))
        share = 1.0 / (tokens.count if tokens.self_key else tokens.others)
        return Attention(mu, none, none if noise else None, own, 1.0 - share, share, 0.0)
    return _Average(nodes(r), mu, G, tokens).attention(noise=noise)


class _Average:
    """Averages over z = ±ρ u; arrays are indexed by sign, radius and direction."""

    def __init__(self, rule: Nodes, mu: Array, G: Array, tokens: FiniteTokens) -> None:
        self.mu, self.G, self.rule = mu, G, rule
        signed = np.stack([rule.radii, -rule.radii])[:, :, None]
        self.weight = 0.5 * rule.weights[:, None] * rule.shares
        self.turned = rule.directions @ G.T
        along = rule.directions @ mu
        quadratic = np.sum(rule.directions * self.turned, axis=1)
        linear = self.turned @ mu
        lengths = np.sum(self.turned**2, axis=1)
        squared = float(mu @ mu) + signed * (2 * linear + signed * lengths)
        self.variance = np.maximum(squared, 0.0)
        self.own_scores = signed * (along + signed * quadratic) if tokens.self_key else None
        self.table = weights(tokens.others)

    def attention(self, *, noise: bool) -> Attention:
        shape = self.variance.shape
        spread = np.sqrt(self.variance).ravel()
        own = None if self.own_scores is None else self.own_scores.ravel()
        second = None
        concentration = math.nan
        if noise:
            found = self.table.moments(own, spread)
            weight, tilt = found.own.reshape(shape), found.tilt.reshape(shape)
            squares, square = found.squares.reshape(shape), found.own_square.reshape(shape)
            second = self._second(square, found.cross.reshape(shape), found.excess.reshape(shape))
            second += self._mean(squares) * np.eye(len(self.G))
            concentration = self._mean(square + squares)
        else:
            weight, tilt = (x.reshape(shape) for x in self.table.slope(own, spread))
        mean = self.mu + self._against_one(weight, tilt - 1.0)
        slope = self.G + self._against_z(weight, tilt - 1.0)
        share = self._mean(weight)
        return Attention(
            mean,
            slope,
            second,
            share,
            self._mean(tilt) / max(1.0 - share, 1e-300),
            concentration,
            self._mean(self.variance),
        )

    def _mean(self, values: Array) -> float:
        return float(np.sum(self.weight * values))

    def _odd(self, values: Array) -> Array:
        """Sums of values times ±ρ along each direction; exactly zero if the signs agree."""
        difference = values[0] - values[1]
        return np.asarray(np.sum(self.weight * self.rule.radii[:, None] * difference, axis=0))

    def _even(self, values: Array) -> Array:
        """Sums of values times ρ² along each direction."""
        total = values[0] + values[1]
        return np.asarray(np.sum(self.weight * self.rule.radii[:, None] ** 2 * total, axis=0))

    def _against_one(self, of_z: Array, of_q: Array) -> Array:
        """E[f z + g q]."""
        f, g = self._odd(of_z), self._odd(of_q)
        return np.asarray(f @ self.rule.directions + g @ self.turned + self._mean(of_q) * self.mu)

    def _against_z(self, of_z: Array, of_q: Array) -> Array:
        """E[(f z + g q) z']."""
        f, g = self._even(of_z), self._even(of_q)
        u = self.rule.directions
        rows = f[:, None] * u + g[:, None] * self.turned + self._odd(of_q)[:, None] * self.mu
        return np.asarray(rows.T @ u)

    def _second(self, of_zz: Array, of_zq: Array, of_qq: Array) -> Array:
        """E[f z z' + g (z q' + q z') + ω q q']; ω is 1 in the mean field."""
        mixed = self._against_z(0.5 * of_zz, of_zq)
        mu, over = self.mu, of_qq - 1.0
        once = self._odd(over) @ self.turned
        squares = self.turned.T @ (self._even(over)[:, None] * self.turned) + self.G @ self.G.T
        crossed = np.outer(once, mu)
        whole = mixed + mixed.T + squares + crossed + crossed.T
        return np.asarray(whole + (1.0 + self._mean(over)) * np.outer(mu, mu))


@dataclass(frozen=True, eq=False)
class AttentionSlope:
    """What attention over N Gaussian tokens does to a token, on average and as noise.

    A token x moves by ``A x + b + mean + matrix (x - m) + noise``, where m is the mean of the
    law; the noise has mean zero and is uncorrelated with x.

    Attributes
    ----------
    mean : (d,) array
        Mean attention, summed over the heads after their V.
    matrix : (d, d) array
        Regression slope of attention on the token, on the range of the covariance; the mean
        field has Σ_h V_h S B_h.
    noise : (d, d) array
        Covariance of what the slope does not explain, over tokens and over draws of the keys;
        heads are taken to be independent.
    self_weight : (H,) array
        Mean weight of the token itself, for each head.
    tilt : (H,) array
        κ: the share of the mean field tilt that the other keys attain.
    concentration : (H,) array
        Mean sum of the squared weights; its inverse is an effective number of keys.
    logit_variance : (H,) array
        Mean variance a² of the scores; the mean field needs it to be well below log N.
    """

    mean: Array
    matrix: Array
    noise: Array
    self_weight: Array
    tilt: Array
    concentration: Array
    logit_variance: Array


def attention_slope(
    parameters: Parameters, law: Gaussian, tokens: FiniteTokens | int
) -> AttentionSlope:
    """Predict attention over N tokens from a Gaussian law: mean, slope and noise.

    The tokens are independent draws from the law; softmax over them is averaged exactly, for
    every N, and no tokens are drawn.

    Parameters
    ----------
    parameters : Parameters
        Of dimension d, with H heads.
    law : Gaussian
        Of dimension d and rank r.
    tokens : FiniteTokens or int
        Number of tokens, with the own key if it is given as a number.

    Returns
    -------
    AttentionSlope

    Raises
    ------
    InvalidShape, InvalidNumber
        If the arguments are of another type, or do not fit each other.

    Examples
    --------
    In high dimension a token looks like itself more than like any other:

    >>> import numpy as np
    >>> import gtcontrol as gt
    >>> law = gt.Gaussian(np.zeros(32), np.eye(32))
    >>> seen = gt.attention_slope(gt.Parameters(V=np.eye(32), B=0.25 * np.eye(32)), law, 200)
    >>> round(float(seen.matrix[0, 0]), 2), round(float(seen.self_weight[0]), 2)
    (0.85, 0.76)
    """
    if not isinstance(parameters, Parameters):
        raise InvalidShape(f"`parameters` must be Parameters, not {type(parameters).__name__}.")
    if not isinstance(law, Gaussian):
        raise InvalidShape(f"`law` must be a Gaussian, not {type(law).__name__}.")
    if law.dim != parameters.dim:
        raise InvalidShape(
            f"the parameters have dimension {parameters.dim}, but the law has {law.dim}."
        )
    given = tokens if isinstance(tokens, FiniteTokens) else FiniteTokens(tokens)
    d, L = law.dim, law.factor
    inverse = np.linalg.pinv(L) if law.rank else np.zeros((0, d))
    mean, matrix, noise = np.zeros(d), np.zeros((d, d)), np.zeros((d, d))
    seen = [attend(law.mean, L, head, given, noise=True) for head in parameters.heads]
    for (V, _, _), of in zip(parameters.heads, seen, strict=True):
        moved = V @ L
        mean = mean + V @ law.mean + moved @ of.mean
        matrix = matrix + moved @ of.slope @ inverse
        noise = noise + moved @ residual(of) @ moved.T
    return AttentionSlope(
        mean,
        matrix,
        noise,
        *(
            np.array([getattr(of, name) for of in seen])
            for name in ("own", "tilt", "concentration", "logit_variance")
        ),
    )


def residual(of: Attention) -> Array:
    """Covariance (r, r) of attention that its slope on the token does not explain, whitened."""
    if of.second is None:
        return np.zeros_like(of.slope)
    rest = of.second - np.outer(of.mean, of.mean) - of.slope @ of.slope.T
    return np.asarray(0.5 * (rest + rest.T))

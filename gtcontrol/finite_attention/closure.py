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
from .averages import Averages
from .nodes import nodes
from .weights import Moments, weights

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
    return _Average(mu, G, tokens).attention(noise=noise)


class _Average:
    """Averages over z ~ N(0, I) for one head; arrays are indexed by sign, radius, direction."""

    def __init__(self, mu: Array, G: Array, tokens: FiniteTokens) -> None:
        rule = nodes(len(mu))
        turned = rule.directions @ G.T
        linear, lengths = turned @ mu, np.sum(turned**2, axis=1)
        signed = np.stack([rule.radii, -rule.radii])[:, :, None]
        squared = float(mu @ mu) + signed * (2 * linear + signed * lengths)
        variance = np.maximum(squared, 0.0)
        along, own = rule.directions @ mu, np.sum(rule.directions * turned, axis=1)
        scores = signed * (along + signed * own)
        self.mu, self.G = mu, G
        self.tokens, self.table = tokens, weights(tokens.others)
        self.scores, self.variance = scores, variance
        self.averages = Averages(rule, scores, variance, mu, G)

    def attention(self, *, noise: bool) -> Attention:
        """Moments of what a token attends to."""
        shape, mu, G = self.variance.shape, self.mu, self.G
        spread = np.sqrt(self.variance).ravel()
        own = self.scores.ravel() if self.tokens.self_key else None
        second, concentration = None, math.nan
        if noise:
            found = self.table.moments(own, spread)
            weight, tilt = found.own.reshape(shape), found.tilt.reshape(shape)
            second = self._second(found, shape)
            concentration = self.averages.mean((found.own_square + found.squares).reshape(shape))
        else:
            weight, tilt = (x.reshape(shape) for x in self.table.slope(own, spread))
        w, w_z, w_zz = self.averages.of(weight)
        # So that a constant share, 1 in the mean field, is exact, and nothing is cancelled.
        share = self.averages.mean(tilt)
        c, c_z, c_zz = self.averages.of(tilt - share)
        return Attention(
            mean=(share + c) * mu + w_z + G @ c_z,
            slope=share * G + w_zz + np.outer(mu, c_z) + G @ c_zz,
            second=second,
            own=w,
            tilt=(share + c) / max(1.0 - w, np.finfo(float).tiny),
            concentration=concentration,
            logit_variance=float(mu @ mu + np.sum(G**2)),
        )

    def _second(self, found: Moments, shape: tuple[int, ...]) -> Array:
        """E[w_0² z z' + χ (z q' + q z') + Σ w_j² I + ω q q'], ω = 1 in the mean field."""
        mu, G = self.mu, self.G
        _, _, made = self.averages.of(found.own_square.reshape(shape))
        _, x_z, x_zz = self.averages.of(found.cross.reshape(shape))
        mixed = np.outer(x_z, mu) + x_zz @ G.T
        excess = found.excess.reshape(shape)
        share = self.averages.mean(excess)
        o, o_z, o_zz = self.averages.of(excess - share)
        turned = np.outer(mu, G @ o_z)
        made = made + mixed + mixed.T + turned + turned.T + (share + o) * np.outer(mu, mu)
        made = made + G @ (share * np.eye(len(mu)) + o_zz) @ G.T
        squares = self.averages.mean(found.squares.reshape(shape))
        return np.asarray(made + squares * np.eye(len(mu)))


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
        heads are taken to be independent, which with several heads may be off by tens of percent.
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

    The tokens are independent draws from the law.  Softmax over the keys is averaged for every N
    to some 1e-5, and no tokens are drawn; the average over the token itself is a cubature.  Up
    to three dimensions the slope is good to 1e-3 while the variance a² of the scores is at most
    10, and to some 0.03 at a² = 900.  From four on the directions are drawn (always the same):
    it is off by some thousandths at a² = 2, by up to 0.03 at a² = 10, and by 0.1 to 0.3 in
    single entries for a² of 100 and more, most in the weak directions of a narrow law.

    The heads are taken to have independent noise, although they share the keys; two equal heads
    have twice the noise that is given.

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
    >>> round(float(seen.matrix[0, 0]), 2), round(float(seen.self_weight[0]), 1)
    (0.85, 0.8)
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

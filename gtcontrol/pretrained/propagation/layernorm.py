r"""LayerNorm of a Gaussian token: mean, covariance and mean Jacobian, by one-dimensional integrals.

LayerNorm maps x to w ∘ z/√R + b with z = P x, P the projection that takes the average entry
away, and R = |z|²/d + ε.  In the eigenbasis of P S P the entries of z are independent normal
variables, z_i ~ N(a_i, λ_i), and from

    R^(-k) = ∫ s^(k-1) e^(-sR) ds / Γ(k)

every moment is an integral over s of what a Gaussian that is tilted by e^(-s|z|²/d) gives in
closed form: with t = s/d and q_i = 1 + 2 t λ_i,

    E e^(-sR) = e^(-sε) Π_i q_i^(-1/2) e^(-t a_i²/q_i),   tilted mean a_i/q_i, variance λ_i/q_i.

In log s the integrands are analytic in a strip, on which the trapezoidal rule converges
geometrically.  (Ratios of quadratic forms by this integral: Sawa 1978.)  By Stein's lemma the mean
Jacobian J gives the covariance with the token: Cov(LN(x), x) = J S.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gamma

from ..._check import Array
from ...errors import NotFinite

__all__ = ["Normalised", "normalise"]

#: Step of the trapezoidal rule in log s; its error is about exp(-π²/STEP).
STEP = 0.25

#: Negative logarithm of what is left out at either end of an integral.
CUT = 40.0

#: Where the integrals end without an epsilon, in log s beyond that of 1/E R.
FARTHEST = 160.0


class Normalised(NamedTuple):
    """Moments of a normalised token.

    Attributes
    ----------
    mean : (d,) array
    covariance : (d, d) array
    jacobian : (d, d) array
        Mean Jacobian J; Cov(LN(x), x) = J Cov(x).
    """

    mean: Array
    covariance: Array
    jacobian: Array


def normalise(
    mean: Array, covariance: Array, weight: Array, bias: Array, epsilon: float
) -> Normalised:
    """Moments of LayerNorm of x ~ N(mean, covariance), of any rank.

    Parameters
    ----------
    mean : (d,) array
    covariance : (d, d) array
    weight, bias : (d,) arrays
    epsilon : float
        What is added to the variance of the entries.

    Raises
    ------
    NotFinite
        If the mean Jacobian is infinite: without epsilon, for a token that varies in too few
        directions around zero.
    """
    d = mean.size
    values, basis = np.linalg.eigh(_centred(0.5 * (covariance + covariance.T)))
    values = np.maximum(values, 0.0)
    along = basis.T @ (mean - mean.mean())
    s, share = _nodes(values, along, epsilon)
    shrink = 1.0 / (1.0 + 2.0 / d * np.outer(s, values))
    tilted, spread = shrink * along, shrink * values
    roots, ones, threes = (share * s**k / gamma(k) for k in (0.5, 1.0, 1.5))
    if threes[-1] > 1e-10 * threes.sum():
        raise NotFinite(
            f"LayerNorm with epsilon {epsilon:g} has no mean Jacobian under a law of rank "
            f"{int(np.count_nonzero(values))} around {np.linalg.norm(along):.3g}; give an epsilon."
        )
    centre = roots @ tilted
    second = _second(tilted, spread, ones) - np.outer(centre, centre)
    slope = roots.sum() * np.eye(d) - _second(tilted, spread, threes) / d
    turned = weight[:, None] * basis
    made = turned @ second @ turned.T
    return Normalised(
        mean=bias + turned @ centre,
        covariance=0.5 * (made + made.T),
        jacobian=_without_average(turned @ slope @ basis.T),
    )


def _nodes(values: Array, along: Array, epsilon: float) -> tuple[Array, Array]:
    """Nodes s, increasing, and weights with ∫ s^(k-1) E[e^(-sR)] ds = Σ weights s^k."""
    d = values.size
    typical = float(values.sum() + along @ along) / d + epsilon
    if typical == 0:
        raise NotFinite("LayerNorm of a constant token without epsilon is undefined.")
    start = -math.log(typical)
    end = start + FARTHEST if epsilon == 0 else min(math.log(CUT / epsilon), start + FARTHEST)
    s = np.exp(np.arange(start - 2 * CUT, max(end, start + math.log(CUT)) + STEP, STEP))
    t = s[:, None] / d
    widened = 1.0 + 2.0 * t * values
    exponent = -epsilon * s - np.sum(0.5 * np.log(widened) + t * along**2 / widened, axis=1)
    return s, STEP * np.exp(exponent)


def _second(tilted: Array, spread: Array, weights: Array) -> Array:
    """E[z z' R^(-k)] in the eigenbasis."""
    return np.asarray((tilted.T * weights) @ tilted + np.diag(weights @ spread))


def _without_average(matrix: Array) -> Array:
    """M P."""
    return np.asarray(matrix - matrix.mean(axis=1, keepdims=True))


def _centred(matrix: Array) -> Array:
    """P M P."""
    return _without_average(_without_average(matrix).T)

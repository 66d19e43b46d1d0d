r"""Second moments of a layer of activations under a Gaussian, by Hermite series.

For u_i ~ N(μ_i, s_i²), with standard z_i = (u_i - μ_i)/s_i, an activation is a series in the
normalised Hermite polynomials h_k (E h_j(z) h_k(z) = δ_jk):

    act(μ_i + s_i z) = Σ_k c_ik h_k(z),         c_ik = E[act(u_i) h_k(z_i)],

and as E h_j(z_i) h_k(z_l) = δ_jk ρ_il^k (Mehler 1866), covariances are power series in the
correlations ρ:

    Cov(act(u_i), act(u_l)) = Σ_{k >= 1} c_ik c_lk ρ_il^k.

Variances are not summed but integrated, and what the series leaves out of them, r_i, stands in the
next even power as √(r_i r_l) ρ_il^K: exact on the diagonal and for equal units, and positive
semidefinite like every term of the series (Schur's product theorem).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._check import Array
from ..feedforward import ACTIVATIONS, Activation
from . import quadrature

__all__ = ["ORDER", "Series", "correlation", "covariance", "expand"]

#: Highest order of the series; odd, so that the power which stands for the rest is even.
ORDER = 23

#: The series ends where the terms left out are below this share of the largest variance.
NEGLIGIBLE = 1e-6


class Series(NamedTuple):
    """Hermite series of k activations.

    Attributes
    ----------
    coefficients : (ORDER + 1, k) array
        The first row is the mean E act(u); the second is s E act'(u).
    square : (k,) array
        E act(u)².
    variance : (k,) array
        Var act(u), without cancellation.
    """

    coefficients: Array
    square: Array
    variance: Array


def expand(activation: str | Activation, mean: Array, deviation: Array) -> Series:
    """Hermite series of act(u_i), u_i ~ N(mean_i, deviation_i²).

    Parameters
    ----------
    activation : str or callable
        A name as in :class:`gtcontrol.FeedForward`, or a function of arrays that is smooth but
        for a kink at zero.
    mean, deviation : (k,) arrays
        With deviation >= 0.
    """
    function = ACTIVATIONS[activation] if isinstance(activation, str) else activation
    coefficients = np.zeros((ORDER + 1, mean.size))
    coefficients[0] = function(mean)
    variance = np.zeros_like(mean)
    spread = deviation > 0
    if np.any(spread):
        nodes, weights = quadrature.panels(mean[spread], deviation[spread])
        z = (nodes - mean[spread]) / deviation[spread]
        values = weights * quadrature.evaluate(function, nodes)
        before, now = np.zeros_like(z), np.ones_like(z)
        for k in range(ORDER + 1):
            coefficients[k, spread] = np.einsum("nk,nk->k", values, now)
            before, now = now, (z * now - np.sqrt(k) * before) / np.sqrt(k + 1)
        rest = quadrature.evaluate(function, nodes) - coefficients[0, spread]
        variance[spread] = np.einsum("nk,nk,nk->k", weights, rest, rest)
    return Series(coefficients, variance + coefficients[0] ** 2, variance)


def correlation(covariance_of_inputs: Array) -> tuple[Array, Array]:
    """Standard deviations (k,) and correlations (k, k); zero where nothing varies."""
    deviation = np.sqrt(np.maximum(np.diag(covariance_of_inputs), 0.0))
    inverse = np.where(deviation > 0, 1.0 / np.where(deviation > 0, deviation, 1.0), 0.0)
    made = inverse[:, None] * covariance_of_inputs * inverse
    return deviation, np.clip(made, -1.0, 1.0)


def covariance(series: Series, rho: Array) -> Array:
    """Cov(act(u_i), act(u_l)) from the series and the correlations of the u.

    Parameters
    ----------
    series : Series
        Of k activations.
    rho : (k, k) array

    Returns
    -------
    (k, k) array
    """
    c = series.coefficients
    rest = np.array(series.variance)
    largest, closest = float(rest.max(initial=0.0)), _closest(rho)
    made, power = np.zeros_like(rho), np.ones_like(rho)
    for k in range(1, ORDER + 1):
        power *= rho
        made += c[k][:, None] * power * c[k]
        rest = rest - c[k] ** 2
        if k % 2 and float(rest.max(initial=0.0)) * closest ** (k + 1) <= NEGLIGIBLE * largest:
            break
    power *= rho
    root = np.sqrt(np.maximum(rest, 0.0))
    made += root[:, None] * power * root
    made[np.diag_indices_from(made)] = series.variance
    return made


def _closest(rho: Array) -> float:
    """Largest correlation of two different units."""
    size = np.abs(rho)
    np.fill_diagonal(size, 0.0)
    return float(size.max(initial=0.0))

r"""Second moments of gated activations act(a) b, with a and b jointly Gaussian.

With standard z_i = (a_i - E a_i)/s_i, ν = E b, C = Cov(b) and R_ip = Cov(b_i, z_p), Stein's lemma,
used once for the mean and twice for products, leaves derivatives D of the activation by z alone:

    E y_i        = ν_i E f_i + R_ii E Df_i,
    E y_i y_l    = (ν_i ν_l + C_il) E f_i f_l
                   + ν_i (R_ll E f_i Df_l + R_li E Df_i f_l)
                   + ν_l (R_ii E Df_i f_l + R_il E f_i Df_l)
                   + R_ii R_li E D²f_i f_l + (R_ii R_ll + R_il R_li) E Df_i Df_l
                   + R_il R_ll E f_i D²f_l,

and the expectations of products are Hermite series (``hermite``), in which D takes h_k to
√k h_{k-1}.  E y_i² is one integral over z_i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._check import Array
from ..feedforward import ACTIVATIONS, Activation
from . import quadrature
from .hermite import ORDER, correlation, expand

__all__ = ["Gated", "gate"]

#: Powers of correlations below this are left out of the series.
NEGLIGIBLE = 1e-9


class Gated(NamedTuple):
    """Moments of y = act(a) b for k pairs.

    Attributes
    ----------
    mean : (k,) array
    covariance : (k, k) array
    slope_act, slope_gate : (k,) arrays
        Cov(x, y_i) = Cov(x, a_i) slope_act_i + Cov(x, b_i) slope_gate_i for x that is jointly
        Gaussian with a and b.
    """

    mean: Array
    covariance: Array
    slope_act: Array
    slope_gate: Array


def gate(activation: str | Activation, mean: Array, covariance: Array) -> Gated:
    """Moments of act(a) b, where (a, b) ~ N(mean, covariance).

    Parameters
    ----------
    activation : str or callable
        As in :func:`gtcontrol.moments.hermite.expand`.
    mean : (2 k,) array
        Of a, then of b.
    covariance : (2 k, 2 k) array
    """
    k = mean.size // 2
    deviation, rho = correlation(covariance[:k, :k])
    safe = np.where(deviation > 0, deviation, 1.0)
    R = covariance[k:, :k] * np.where(deviation > 0, 1.0 / safe, 0.0)
    C, nu, own = covariance[k:, k:], mean[k:], np.diag(R)
    series = expand(activation, mean[:k], deviation)
    f, Df, D2f = _derivatives(series.coefficients)
    centre = nu * f[0] + own * Df[0]
    products = _products(f, Df, D2f, rho)
    made = _assemble(products, C, nu, R) - np.outer(centre, centre)
    made = 0.5 * (made + made.T)
    made[np.diag_indices(k)] = _variance(
        activation, mean[:k], deviation, nu, own, np.diag(C), centre
    )
    return Gated(
        mean=centre,
        covariance=made,
        slope_act=(nu * Df[0] + own * D2f[0]) / safe,
        slope_gate=f[0],
    )


def _derivatives(c: Array) -> tuple[Array, Array, Array]:
    """Series of f, Df and D²f, all of the same length."""
    k = np.arange(ORDER + 1)[:, None]
    first = np.vstack([(np.sqrt(k) * c)[1:], np.zeros_like(c[:1])])
    second = np.vstack([(np.sqrt(k) * first)[1:], np.zeros_like(c[:1])])
    return c, first, second


def _products(f: Array, Df: Array, D2f: Array, rho: Array) -> tuple[Array, Array, Array, Array]:
    """E f_i f_l, E Df_i f_l, E Df_i Df_l and E D²f_i f_l, for all pairs."""
    off = np.abs(rho)
    np.fill_diagonal(off, 0.0)
    closest = float(off.max(initial=0.0))
    made = [np.zeros_like(rho) for _ in range(4)]
    power = np.ones_like(rho)
    for k in range(ORDER - 1):  # beyond, the series of D²f is cut off
        for i, (left, right) in enumerate(((f, f), (Df, f), (Df, Df), (D2f, f))):
            made[i] += left[k][:, None] * power * right[k]
        power *= rho
        if closest ** (k + 1) < NEGLIGIBLE:
            break
    return made[0], made[1], made[2], made[3]


def _assemble(products: tuple[Array, Array, Array, Array], C: Array, nu: Array, R: Array) -> Array:
    """E y_i y_l."""
    both, one, ones, two = products
    own = np.diag(R)
    linear = nu[:, None] * (own * one.T + R.T * one)
    curved = own[:, None] * R.T * two
    made = (np.outer(nu, nu) + C) * both + linear + linear.T + curved + curved.T
    return np.asarray(made + (np.outer(own, own) + R * R.T) * ones)


def _variance(
    activation: str | Activation,
    mean: Array,
    deviation: Array,
    nu: Array,
    own: Array,
    variance: Array,
    centre: Array,
) -> Array:
    """Var y_i: given z, b_i is normal with mean ν + R z and variance C - R²."""
    function = ACTIVATIONS[activation] if isinstance(activation, str) else activation
    left = np.maximum(variance - own**2, 0.0)
    made = np.asarray(function(mean)) ** 2 * variance  # where a does not vary
    spread = deviation > 0
    if np.any(spread):
        nodes, weights = quadrature.panels(mean[spread], deviation[spread])
        values = quadrature.evaluate(function, nodes)
        z = (nodes - mean[spread]) / deviation[spread]
        shifted = values * (nu[spread] + own[spread] * z) - centre[spread]
        made[spread] = np.sum(weights * (shifted**2 + left[spread] * values**2), axis=0)
    return made

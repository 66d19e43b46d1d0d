"""Gaussian moments of activations: E act(u), E act'(u) and Var act(u) for u ~ N(μ, s²).

ReLU, leaky ReLU, GELU and the identity in closed form, the other names by quadrature that is
exact to rounding, functions that are given on pieces of the line that resolve them.  By Stein,
Cov(x, act(⟨w, x⟩)) = Cov(x) w E act'(⟨w, x⟩) for Gaussian x, kinks included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import expit, ndtr

from .._check import Array
from ..feedforward import ACTIVATIONS, LEAK, Activation
from . import quadrature

__all__ = ["derivative", "mean_and_slope", "variance"]

#: Deviations below this are too small for differences of a function that is given; relative to
#: the size of its argument, which is at least one.
SMALLEST = 1e-3

Moments = tuple[Array, Array]


def mean_and_slope(activation: str | Activation, mean: Array, deviation: Array) -> Moments:
    """E act(u) and E act'(u) for u ~ N(mean, deviation²), entry by entry.

    Parameters
    ----------
    activation : str or callable
        As in :class:`gtcontrol.FeedForward`.
    mean, deviation : (k,) arrays
        With deviation >= 0; where it is zero the values are act(mean) and act'(mean), and at a
        kink the average of the derivatives on either side.

    Returns
    -------
    mean, slope : (k,) arrays
    """
    if not isinstance(activation, str):
        return _of_function(activation, mean, deviation)
    if activation in _CLOSED:
        return _CLOSED[activation](mean, deviation)
    value, slope = ACTIVATIONS[activation](mean), _DERIVATIVES[activation](mean)
    spread = deviation > 0
    if np.any(spread):
        nodes, weights = quadrature.panels(mean[spread], deviation[spread])
        value, slope = np.array(value), np.array(slope)
        value[spread] = np.sum(weights * ACTIVATIONS[activation](nodes), axis=0)
        slope[spread] = np.sum(weights * _DERIVATIVES[activation](nodes), axis=0)
    return value, slope


def derivative(activation: str | Activation, u: Array) -> Array:
    """act'(u), entry by entry; at a kink the average of both sides.

    That of a function which is given comes from differences, good to some 1e-10.
    """
    return mean_and_slope(activation, u, np.zeros_like(u))[1]


def variance(activation: str | Activation, mean: Array, deviation: Array) -> Array:
    """Var act(u) for u ~ N(mean, deviation²), entry by entry, without cancellation.

    Parameters
    ----------
    activation : str or callable
    mean, deviation : (k,) arrays

    Returns
    -------
    (k,) array
    """
    if activation == "identity":
        return deviation**2
    if activation in ("relu", "leaky_relu"):
        leak = LEAK if activation == "leaky_relu" else 0.0
        rectified, slope = _relu_variance(mean, deviation), _relu(mean, deviation)[1]
        mixed = 2 * leak * (1 - leak) * deviation**2 * slope
        return np.asarray((leak * deviation) ** 2 + (1 - leak) ** 2 * rectified + mixed)
    made = np.zeros_like(mean)
    spread = deviation > 0
    if np.any(spread):
        mu, s = mean[spread], deviation[spread]
        centre = mean_and_slope(activation, mu, s)[0]
        if isinstance(activation, str):
            nodes, weights = quadrature.panels(mu, s)
            made[spread] = np.sum(weights * (ACTIVATIONS[activation](nodes) - centre) ** 2, axis=0)
        else:
            made[spread] = quadrature.variance(activation, mu, s, centre)
    return made


def _standard(mean: Array, deviation: Array) -> Array:
    """μ/s; where s = 0 infinite with the sign of μ, and zero if μ is zero as well."""
    limit = np.where(mean > 0, np.inf, np.where(mean < 0, -np.inf, 0.0))
    with np.errstate(over="ignore"):
        return np.where(deviation > 0, mean / np.where(deviation > 0, deviation, 1.0), limit)


def _density(z: Array) -> Array:
    return np.asarray(np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi))


def _relu(mean: Array, deviation: Array) -> Moments:
    """E relu = μ Φ(μ/s) + s φ(μ/s), E relu' = Φ(μ/s)."""
    z = _standard(mean, deviation)
    return mean * ndtr(z) + deviation * _density(z), np.asarray(ndtr(z))


def _relu_variance(mean: Array, deviation: Array) -> Array:
    """Var relu; for μ > 0 by relu(u) = u + relu(-u), so that nothing cancels."""
    low = -np.abs(mean)
    z = _standard(low, deviation)
    value = low * ndtr(z) + deviation * _density(z)
    square = (low**2 + deviation**2) * ndtr(z) + low * deviation * _density(z)
    small = np.maximum(square - value**2, 0.0)
    return np.where(mean > 0, deviation**2 * (1 - 2 * ndtr(z)) + small, small)


def _leaky_relu(mean: Array, deviation: Array) -> Moments:
    value, slope = _relu(mean, deviation)
    return LEAK * mean + (1 - LEAK) * value, LEAK + (1 - LEAK) * slope


def _identity(mean: Array, deviation: Array) -> Moments:
    return np.array(mean), np.ones_like(mean)


def _gelu(mean: Array, deviation: Array) -> Moments:
    """Moments of u Φ(u), with r = √(1 + s²) and t = μ/r.

        E = μ Φ(t) + s² φ(t)/r,      E' = Φ(t) + μ φ(t)/r³,

    as E Φ(u) = Φ(t) and E φ(u) = φ(t)/r, the density of u under φ having mean μ/r².
    """
    root = np.hypot(1.0, deviation)
    t = mean / root
    value = mean * ndtr(t) + deviation**2 * _density(t) / root
    return value, ndtr(t) + mean * _density(t) / root**3


def _of_function(function: Activation, mean: Array, deviation: Array) -> Moments:
    """E act by quadrature, E act' = E[z act(μ + s z)]/s by Stein's lemma.

    E act' is a smooth function of s²; where s is too small for differences it is extrapolated
    from two larger deviations.
    """
    floor = SMALLEST * np.maximum(1.0, np.abs(mean))
    value, slope = np.array(quadrature.evaluate(function, mean)), np.empty_like(mean)
    wide = deviation >= floor
    if np.any(wide):
        value[wide], tilted = quadrature.moments(function, mean[wide], deviation[wide])
        slope[wide] = tilted / deviation[wide]
    if not np.all(wide):
        mu, s, h = mean[~wide], deviation[~wide], floor[~wide]
        near = quadrature.moments(function, mu, h)[1] / h
        far = quadrature.moments(function, mu, np.sqrt(2) * h)[1] / (np.sqrt(2) * h)
        slope[~wide] = near + ((s / h) ** 2 - 1) * (far - near)
        some = ~wide & (deviation > 0)
        if np.any(some):
            value[some] = quadrature.moments(function, mean[some], deviation[some])[0]
    return value, slope


def _tanh_derivative(u: Array) -> Array:
    return np.asarray(4 * expit(2 * u) * expit(-2 * u))


def _sigmoid_derivative(u: Array) -> Array:
    return np.asarray(expit(u) * expit(-u))


def _silu_derivative(u: Array) -> Array:
    return np.asarray(expit(u) * (1 + u * expit(-u)))


_CLOSED: Mapping[str, Callable[[Array, Array], Moments]] = {
    "relu": _relu,
    "leaky_relu": _leaky_relu,
    "gelu": _gelu,
    "identity": _identity,
}

_DERIVATIVES: Mapping[str, Callable[[Array], Array]] = {
    "silu": _silu_derivative,
    "tanh": _tanh_derivative,
    "sigmoid": _sigmoid_derivative,
}

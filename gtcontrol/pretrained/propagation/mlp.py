"""Moments of a feed-forward net with any activation, gated or not, on a Gaussian token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ..._check import Array
from ...feedforward import ACTIVATIONS
from ...moments import gated, hermite
from ..weights import Mlp
from .law import symmetric

__all__ = ["FUNCTIONS", "MlpMoments", "mlp_moments"]


def _gelu_tanh(u: Array) -> Array:
    """GELU as its authors approximate it (Hendrycks and Gimpel 2016)."""
    return np.asarray(0.5 * u * (1 + np.tanh(np.sqrt(2 / np.pi) * (u + 0.044715 * u**3))))


def _gelu_quick(u: Array) -> Array:
    return np.asarray(u * expit(1.702 * u))


#: Activations of pretrained models by name.
FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    **ACTIVATIONS,
    "gelu_tanh": _gelu_tanh,
    "gelu_quick": _gelu_quick,
}


class MlpMoments(NamedTuple):
    """Moments of what the net makes of a token v.

    Attributes
    ----------
    mean : (d,) array
    covariance : (d, d) array
    slope : (d, d) array
        D with Cov(net(v), v) = D Cov(v).
    """

    mean: Array
    covariance: Array
    slope: Array


def mlp_moments(net: Mlp, mean: Array, covariance: Array) -> MlpMoments:
    """Moments of a net, biases included, on v ~ N(mean, covariance) of any rank.

    Parameters
    ----------
    net : Mlp
        Of width d.
    mean : (d,) array
    covariance : (d, d) array
    """
    inner, outer = net.inner.astype(np.float64), net.outer.astype(np.float64)
    function = FUNCTIONS[net.activation]
    centre = inner @ mean + net.inner_bias
    hidden = inner @ covariance @ inner.T
    if net.gated:
        k = net.hidden
        of = gated.gate(function, centre, hidden)
        value, made = of.mean, of.covariance
        turned = of.slope_act[:, None] * inner[:k] + of.slope_gate[:, None] * inner[k:]
    else:
        deviation, rho = hermite.correlation(hidden)
        series = hermite.expand(function, centre, deviation)
        value, made = series.coefficients[0], hermite.covariance(series, rho)
        safe = np.where(deviation > 0, deviation, 1.0)
        turned = (series.coefficients[1] / safe)[:, None] * inner
    return MlpMoments(
        mean=outer @ value + net.outer_bias,
        covariance=symmetric(outer @ made @ outer.T),
        slope=outer @ turned,
    )

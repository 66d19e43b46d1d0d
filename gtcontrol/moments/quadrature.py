"""Expectations of functions of one normal variable, by Gauss-Legendre panels.

Gauss-Hermite nodes see neither a kink nor a transition that is much narrower than the standard
deviation.  Here the line is cut where the normal density changes and, around u = 0, where
activations change; a kink at zero is then an end of panels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.integrate import IntegrationWarning, quad_vec

from .._check import Array
from ..errors import NotFinite

__all__ = ["REACH", "TOLERANCE", "adaptive", "evaluate", "panels"]

#: Standard deviations on either side that are integrated over; beyond lies less than 1e-22.
REACH = 10.0

#: Relative accuracy that is asked of an adaptive expectation.
TOLERANCE = 1e-12

#: Bisections of an adaptive integral before it is given up.
BISECTIONS = 2000

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_NORMAL_CUTS = np.linspace(-REACH, REACH, 21)
#: Cuts of the preactivation, in geometric progression around zero.
_CUTS = np.concatenate([-(2.0 ** np.arange(8, -4, -1)), [0.0], 2.0 ** np.arange(-3, 9)])


def panels(mean: Array, deviation: Array) -> tuple[Array, Array]:
    """Nodes u and weights for expectations under N(mean, deviation²), for each entry.

    Parameters
    ----------
    mean, deviation : (k,) arrays
        With deviation > 0.

    Returns
    -------
    nodes, weights : (n, k) arrays
        E f(u) = Σ_i weights[i] f(nodes[i]), to rounding for functions that are analytic on
        either side of zero and vary there on scales of order one.
    """
    inner = (_CUTS[:, None] - mean) / deviation
    cuts = np.concatenate(
        [np.broadcast_to(_NORMAL_CUTS[:, None], (_NORMAL_CUTS.size, mean.size)), inner]
    )
    cuts = np.sort(np.clip(cuts, -REACH, REACH), axis=0)
    half = 0.5 * np.diff(cuts, axis=0)
    middle = 0.5 * (cuts[1:] + cuts[:-1])
    z = middle[:, None] + half[:, None] * _NODES[:, None]
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    weights = half[:, None] * _WEIGHTS[:, None] * density
    n = z.shape[0] * z.shape[1]
    return (mean + deviation * z).reshape(n, -1), weights.reshape(n, -1)


def adaptive(function: Callable[[Array], Array], mean: Array, deviation: Array) -> Array:
    """Moments of a function with kinks anywhere: E f(u), E[z f(u)], with u = mean + deviation z.

    The line is bisected where the function needs it, until the estimated error is below
    :data:`TOLERANCE` of the largest moment.

    Parameters
    ----------
    function : callable
        Of arrays, entry by entry.
    mean, deviation : (k,) arrays

    Returns
    -------
    (2, k) array

    Raises
    ------
    NotFinite
        If the function is not finite under the normal law, or the integral does not converge.
    """

    def integrand(z: float) -> Array:
        values = evaluate(function, mean + deviation * z)
        density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
        return np.asarray(density * np.array([values, z * values]))

    cuts = np.unique(np.clip(-mean / deviation, -REACH, REACH))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IntegrationWarning)  # its flag is looked at below
        made, error, info = quad_vec(
            integrand,
            -REACH,
            REACH,
            epsabs=1e-300,
            epsrel=TOLERANCE,
            norm="max",
            limit=BISECTIONS,
            points=cuts if cuts.size <= 64 else None,
            quadrature="gk21",
            full_output=True,
        )
    scale = float(np.max(np.abs(made), initial=0.0))
    if not info.success and error > 1e3 * TOLERANCE * scale:
        raise NotFinite(
            f"the Gaussian moments of `activation` do not converge: after {BISECTIONS} "
            f"bisections the error is still {error:.2g} (moments up to {scale:.2g}); give a "
            "function that is piecewise smooth."
        )
    return np.asarray(made)


def evaluate(function: Callable[[Array], Array], u: Array) -> Array:
    """Values of a function that was given, checked to be finite.

    Raises
    ------
    NotFinite
        With the place, if they are not.
    """
    with np.errstate(all="ignore"):  # what is not finite is refused here
        values = np.asarray(function(u), dtype=float)
    finite = np.isfinite(values)
    if not finite.all():
        j = int(np.argmin(finite))
        raise NotFinite(
            f"`activation` is {values[j]} at {u[j]:g}; it must be finite on the real line."
        )
    return values

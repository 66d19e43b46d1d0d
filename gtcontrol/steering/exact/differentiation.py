"""Spectral differentiation of a smooth function of time, with a checked error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev

from ..._check import Array
from ...errors import InvalidPath

__all__ = ["differentiate"]

Curve = Callable[[float], Array]

#: Largest accepted error of a derivative, relative to the size of function/horizon + derivative.
RATE_TOLERANCE = 1e-9

#: Numbers of Chebyshev points tried.
_SIZES = (16, 32, 64, 128, 256)


def differentiate(function: Curve, horizon: float, name: str) -> Curve:
    """Derivative of `function` on [0, horizon] from its Chebyshev interpolant.

    The number of points is doubled until two derivatives agree to :data:`RATE_TOLERANCE`
    everywhere on a fine grid.

    Raises
    ------
    InvalidPath
        If 256 points do not suffice; the message names the error reached.
    """
    grid = np.linspace(-1.0, 1.0, 201)
    before: Array | None = None
    error = np.inf
    for size in _SIZES:
        coefficients, largest = _interpolate(function, horizon, size)
        slope = chebyshev.chebder(coefficients, axis=0) * (2.0 / horizon)
        values = np.moveaxis(chebyshev.chebval(grid, slope), -1, 0)
        if before is not None:
            scale = largest / horizon + float(np.max(np.abs(values), initial=0.0))
            error = float(np.max(np.abs(values - before), initial=0.0)) / (scale or 1.0)
            if error <= RATE_TOLERANCE:
                return lambda t: np.asarray(chebyshev.chebval(2.0 * t / horizon - 1.0, slope))
        before = values
    raise InvalidPath(
        f"`{name}` of the path cannot be differentiated to {RATE_TOLERANCE:g} (relative error "
        f"{error:.2g} with {_SIZES[-1]} points): it is not smooth enough; pass `{name}_rate`."
    )


def _interpolate(function: Curve, horizon: float, size: int) -> tuple[Array, float]:
    """Chebyshev coefficients (size, ...) from the roots of T_size, and the largest value."""
    roots = np.cos(np.pi * (np.arange(size) + 0.5) / size)
    samples = np.stack([function(0.5 * horizon * (1.0 + x)) for x in roots])
    coefficients = np.tensordot(chebyshev.chebvander(roots, size - 1).T, samples, axes=1)
    coefficients = coefficients * (2.0 / size)
    coefficients[0] *= 0.5
    return np.asarray(coefficients), float(np.max(np.abs(samples), initial=0.0))

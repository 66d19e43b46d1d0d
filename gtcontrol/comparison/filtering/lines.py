"""Softmax averages at queries on a line, which one measurement gives, in O(N) instead of O(N²).

On a line q₀ + σ c the average is a smooth function of σ.  It is computed by softmax over all keys
at Chebyshev points and interpolated; the points are doubled until the interpolant agrees with
softmax itself at the new points, to TOLERANCE.  Where that fails, every query gets its softmax.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.fft import dct

from ..._check import Array
from ...attention import softmax_average

__all__ = ["line_average"]

#: Largest error at the new points, relative to the largest deviation of a key.
TOLERANCE = 1e-10

#: Distance of a query from the line, relative to the largest query, that counts as rounding.
ON_THE_LINE = 1e-12

#: First and last number of intervals between Chebyshev points.
FIRST, LAST = 16, 512


def line_average(queries: Array, keys: Array) -> Array:
    """Return :func:`gtcontrol.attention.softmax_average`, fast where queries lie on a line.

    Parameters
    ----------
    queries : (n, k) array
    keys : (N, k) array

    Returns
    -------
    (n, k) array
    """
    offset = queries.mean(axis=0)
    apart = queries - offset
    sizes = np.einsum("ij,ij->i", apart, apart)
    farthest = int(np.argmax(sizes))
    if not np.isfinite(sizes[farthest]) or sizes[farthest] == 0:
        return softmax_average(queries, keys)
    direction = apart[farthest] / np.sqrt(sizes[farthest])
    sigma = apart @ direction
    off = float(np.max(np.abs(apart - sigma[:, None] * direction)))
    if off > ON_THE_LINE * float(np.max(np.abs(queries))):
        return softmax_average(queries, keys)
    low, high = float(sigma.min()), float(sigma.max())
    middle, half = 0.5 * (low + high), 0.5 * (high - low)

    def at(theta: Array) -> Array:
        return softmax_average(offset + (middle + half * theta)[:, None] * direction, keys)

    coefficients = _resolved(at, float(np.max(np.abs(keys - keys.mean(axis=0)))), len(queries))
    if coefficients is None:
        return softmax_average(queries, keys)
    theta = np.clip((sigma - middle) / half, -1.0, 1.0)
    return np.asarray(np.polynomial.chebyshev.chebval(theta, coefficients)).T


def _resolved(at: Callable[[Array], Array], size: float, queries: int) -> Array | None:
    """Chebyshev coefficients (n + 1, k) of a function on [-1, 1]; None if it takes too many."""
    n = FIRST
    values = at(_points(n))
    while n <= LAST and 2 * n < queries:
        coefficients = _coefficients(values)
        between = _points(2 * n)[1::2]
        new = at(between)
        guess = np.polynomial.chebyshev.chebval(between, coefficients).T
        if np.max(np.abs(guess - new)) <= TOLERANCE * size:
            return coefficients
        finer = np.empty((2 * n + 1, values.shape[1]))
        finer[0::2], finer[1::2] = values, new
        values, n = finer, 2 * n
    return None


def _points(n: int) -> Array:
    return np.asarray(np.cos(np.pi * np.arange(n + 1) / n))


def _coefficients(values: Array) -> Array:
    """Coefficients of the interpolant at Chebyshev points of the second kind."""
    n = len(values) - 1
    made = np.asarray(dct(values, type=1, axis=0)) / n
    made[0] *= 0.5
    made[-1] *= 0.5
    return made

"""Expectations of functions of one normal variable, by Gauss-Legendre panels.

Gauss-Hermite nodes see neither a kink nor a transition that is much narrower than the standard
deviation.  Here the line is cut where the normal density changes and, around u = 0, where
activations change; a kink at zero is then an end of panels.  A function that is given is cut where
it needs it (``pieces``).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._check import Array
from ..errors import NotFinite
from .pieces import Function, Pieces, pieces

__all__ = ["LOOSE", "REACH", "evaluate", "moments", "panels", "variance"]

#: Standard deviations on either side that are integrated over; beyond lies less than 1e-22.
REACH = 10.0

#: Relative error of the moments of a function beyond which they are refused.
LOOSE = 1e-6

#: Points at which a function is evaluated at once.
AT_ONCE = 1 << 21

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_NORMAL_CUTS = np.linspace(-REACH, REACH, 21)
#: Cuts of the preactivation, in geometric progression around zero.
_CUTS = np.concatenate([-(2.0 ** np.arange(8, -4, -1)), [0.0], 2.0 ** np.arange(-3, 9)])


def panels(mean: Array, deviation: Array, cuts: Array = _CUTS) -> tuple[Array, Array]:
    """Nodes u and weights for expectations under N(mean, deviation²), for each entry.

    Parameters
    ----------
    mean, deviation : (k,) arrays
        With deviation > 0.
    cuts : (n,) array
        Where panels end, increasing; by default around zero.

    Returns
    -------
    nodes, weights : (n, k) arrays
        E f(u) = Σ_i weights[i] f(nodes[i]), to rounding for functions that are analytic between
        the cuts and vary there on scales of order one or of the panel.
    """
    low, high = np.min(mean - REACH * deviation), np.max(mean + REACH * deviation)
    inner = (cuts[(cuts > low) & (cuts < high)][:, None] - mean) / deviation
    ends = np.concatenate(
        [np.broadcast_to(_NORMAL_CUTS[:, None], (_NORMAL_CUTS.size, mean.size)), inner]
    )
    ends = np.sort(np.clip(ends, -REACH, REACH), axis=0)
    half = 0.5 * np.diff(ends, axis=0)
    middle = 0.5 * (ends[1:] + ends[:-1])
    z = middle[:, None] + half[:, None] * _NODES[:, None]
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    weights = half[:, None] * _WEIGHTS[:, None] * density
    n = z.shape[0] * z.shape[1]
    return (mean + deviation * z).reshape(n, -1), weights.reshape(n, -1)


def moments(function: Function, mean: Array, deviation: Array) -> tuple[Array, Array]:
    """E f(u) and E[z f(u)], u = mean + deviation z, of a function with kinks and jumps anywhere.

    The panels end where :func:`gtcontrol.moments.pieces.pieces` cuts the function, once for all
    laws.  Where the function is resolved the error is that of rounding, some 1e-13 of its size.

    Parameters
    ----------
    function : callable
        Of arrays, entry by entry.
    mean, deviation : (k,) arrays
        With deviation > 0.

    Returns
    -------
    value, tilted : (k,) arrays

    Raises
    ------
    NotFinite
        If the function is not finite under the normal law, or varies so fast that the error may
        be above :data:`LOOSE` of the moments.
    """
    value, tilted = np.empty_like(mean), np.empty_like(mean)
    for part, nodes, weights in _portions(function, mean, deviation):
        weighted = weights * _values(function, nodes)
        value[part] = np.sum(weighted, axis=0)
        # Σ weights z is zero to rounding; without the value at its mean less is cancelled.
        z = (nodes - mean[part]) / deviation[part]
        tilted[part] = np.sum((weighted - weights * value[part]) * z, axis=0)
    return value, tilted


def variance(function: Function, mean: Array, deviation: Array, centre: Array) -> Array:
    """E (f(u) - centre)²; as :func:`moments`."""
    made = np.empty_like(mean)
    for part, nodes, weights in _portions(function, mean, deviation):
        made[part] = np.sum(weights * (_values(function, nodes) - centre[part]) ** 2, axis=0)
    return made


def _portions(
    function: Function, mean: Array, deviation: Array
) -> Iterator[tuple[slice, Array, Array]]:
    """Nodes and weights for the entries, some at a time, so that memory stays small."""
    reach = float(np.max(np.abs(mean) + REACH * deviation))
    found = pieces(function, reach)
    if found.missing.size:
        _refuse_unresolved(function, found, mean, deviation)
    stride = max(1, AT_ONCE // (_NODES.size * (found.cuts.size + _NORMAL_CUTS.size)))
    for i in range(0, mean.size, stride):
        part = slice(i, i + stride)
        yield part, *panels(mean[part], deviation[part], found.cuts)


def _refuse_unresolved(function: Function, found: Pieces, mean: Array, deviation: Array) -> None:
    nodes, weights = panels(mean, deviation)
    scale = float(np.max(np.sum(weights * np.abs(_values(function, nodes)), axis=0)))
    error = found.error(mean, deviation)
    if error > LOOSE * scale:
        raise NotFinite(
            "the Gaussian moments of `activation` do not converge: it varies so fast that with "
            f"{found.cuts.size} pieces of the line the error may be {error:.2g} (its size is "
            f"{scale:.2g}); give a function that is piecewise smooth, or smaller preactivations."
        )


def _values(function: Function, nodes: Array) -> Array:
    return evaluate(function, nodes.ravel()).reshape(nodes.shape)


def evaluate(function: Function, u: Array) -> Array:
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

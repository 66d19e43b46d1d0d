"""Where a function that was given must be cut, so that polynomials resolve it piece by piece.

The line is bisected, all pieces at once, where the Legendre coefficients of the values at sixteen
points do not decay.  Pieces that bisection has narrowed to rounding hold a kink or a jump; the
line is cut there and resolved anew.  This is done once for each function and range, with bounded
work: what is left unresolved is kept with the size of what is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from .._check import Array

__all__ = ["Function", "Pieces", "pieces"]

#: A piece is resolved if its last Legendre coefficients are below this fraction of its values.
RESOLVED = 1e-10

#: Coefficients below this fraction that do not fall under bisection are rounding errors.
NOISE = 1e-6

#: Pieces at most, and bisections at most.
MOST, DEEPEST = 4096, 60

#: Width of a piece that holds a kink or a jump, relative to u (at least one), and further
#: bisections, which find the place of a jump.
NARROW, POLISHED = 2.0**-40, 14

#: Rounding error of u, relative.
EPSILON = 2.0**-51

#: Functions and ranges that are remembered.
KEPT = 64

#: Last Legendre coefficients, which tell whether a piece is resolved.
LAST = 3

#: Share of a miss at an end of the piece that counts like a coefficient.
SHARE = 0.1

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(16)
#: From values at the points to coefficients, c_n = (n + 1/2) Σ w f P_n, and to both ends.
_COEFFICIENTS = (
    (np.arange(16) + 0.5)[:, None] * np.polynomial.legendre.legvander(_POINTS, 15).T * _WEIGHTS
)
_ENDS = np.polynomial.legendre.legvander(np.array([-1.0, 1.0]), 15) @ _COEFFICIENTS
#: First pieces: finer around zero, four wide up to 64, then doubling.
_FIRST = np.concatenate([[0.0], 2.0 ** np.arange(-3, 2), np.arange(4.0, 64.0, 4.0)])

Function = Callable[[Array], Array]
Mask = NDArray[np.bool_]


class Pieces(NamedTuple):
    """Cuts of the line, and what the pieces that are not resolved miss.

    Attributes
    ----------
    cuts : (n,) array
        Increasing, within the range.
    left, right, missing : (m,) arrays
        Ends of unresolved pieces, and the size of what no polynomial shows there.
    """

    cuts: Array
    left: Array
    right: Array
    missing: Array

    def error(self, mean: Array, deviation: Array) -> float:
        """Largest error of an expectation under N(mean, deviation²) that they may cause."""
        if not self.missing.size:
            return 0.0
        ends = [(end[:, None] - mean) / deviation for end in (self.left, self.right)]
        return float(np.max(self.missing @ (ndtr(ends[1]) - ndtr(ends[0])), initial=0.0))


def pieces(function: Function, reach: float) -> Pieces:
    """Pieces of the line from -reach to reach, at least, on which a function is resolved.

    Parameters
    ----------
    function : callable
        Of arrays, entry by entry.
    reach : float
        Positive; rounded up to a power of two.

    Returns
    -------
    Pieces
    """
    level = max(6, int(np.ceil(np.log2(max(reach, 1.0)))))
    try:
        return _remembered(function, level)
    except TypeError:  # it has no hash
        return _found(function, level)


@lru_cache(maxsize=KEPT)
def _remembered(function: Function, level: int) -> Pieces:
    return _found(function, level)


def _found(function: Function, level: int) -> Pieces:
    half = np.concatenate([_FIRST, 2.0 ** np.arange(6, level + 1)])
    base = np.concatenate([-half[:0:-1], half])
    kinks, _ = _bisected(function, base, kinks=True)
    cuts, missing = _bisected(function, np.unique(np.concatenate([base, kinks])), kinks=False)
    return Pieces(cuts, *missing)


class _Level(NamedTuple):
    """Pieces of one depth, with their last coefficients, sizes, and whether these suffice."""

    left: Array
    right: Array
    tail: Array
    size: Array
    good: Mask

    def only(self, kept: Mask) -> _Level:
        """The pieces that are kept."""
        left, right, tail, size = (x[kept] for x in (self.left, self.right, self.tail, self.size))
        return _Level(left, right, tail, size, self.good[kept])

    def beside(self, other: _Level) -> _Level:
        """The pieces of both."""
        pairs = zip(self[:4], other[:4], strict=True)
        left, right, tail, size = (np.concatenate(pair) for pair in pairs)
        return _Level(left, right, tail, size, np.concatenate([self.good, other.good]))

    @property
    def missing(self) -> Array:
        """Ends and last coefficients, shape (3, m)."""
        return np.array([self.left, self.right, self.tail])


def _looked_at(function: Function, left: Array, right: Array) -> _Level:
    middle, half = 0.5 * (left + right), 0.5 * (right - left)
    u = middle[:, None] + half[:, None] * _POINTS
    values = _tried(function, u)
    inside = np.maximum(2 * NARROW * half, 4 * EPSILON * np.maximum(np.abs(left), np.abs(right)))
    ends = _tried(function, np.stack([left + inside, right - inside], axis=1))
    with np.errstate(all="ignore"):
        tail = np.max(np.abs(values @ _COEFFICIENTS[-LAST:].T), axis=1)
        # Between the last point and the end a kink shows in the value at the end only.
        tail = np.maximum(tail, SHARE * np.max(np.abs(values @ _ENDS.T - ends), axis=1))
        size = np.max(np.abs(values), axis=1)
        # What rounding of u makes of the slope of the function.
        rounding = EPSILON * np.abs(middle) / half * np.ptp(values, axis=1)
    # What is not finite is refused where it is needed, and not looked at more closely here.
    good = ~np.isfinite(tail) | (tail <= RESOLVED * size + rounding + np.finfo(float).tiny)
    return _Level(left, right, tail, size, good)


def _bisected(function: Function, base: Array, *, kinks: bool) -> tuple[Array, Array]:
    """Cuts, or places of kinks if those are asked for; and what is missing, shape (3, m)."""
    found, rest = [np.empty(0) if kinks else base], []
    at = _looked_at(function, base[:-1], base[1:])
    count = 0 if kinks else base.size
    for _ in range(DEEPEST):
        at = at.only(~at.good)
        narrow = at.right - at.left <= NARROW * np.maximum(1.0, np.abs(at.left))
        rest.append(at.only(narrow).missing)
        if kinks and np.any(narrow):
            found.append(_located(function, at.left[narrow], at.right[narrow]))
        at = at.only(~narrow)
        if not at.left.size or count + at.left.size > MOST:
            break
        middle = 0.5 * (at.left + at.right)
        halves = _looked_at(function, at.left, middle), _looked_at(function, middle, at.right)
        # Rounding errors stay in both halves; a kink is in one of them.
        both = ~halves[0].good & ~halves[1].good
        noisy = both & (np.minimum(halves[0].tail, halves[1].tail) > 0.7 * at.tail)
        noisy &= at.tail < NOISE * at.size
        rest.append(at.only(noisy).missing)
        if not kinks:
            found.append(middle[~noisy])
            count += int(np.sum(~noisy))
        at = _Level(*(np.concatenate([a[~noisy], b[~noisy]]) for a, b in zip(*halves, strict=True)))
    rest.append(at.only(~at.good).missing)
    return np.unique(np.concatenate(found)), np.concatenate(rest, axis=1)


def _located(function: Function, left: Array, right: Array) -> Array:
    """Places of jumps in narrow pieces, by bisection of the values; kinks stay in the piece."""
    low, high = _tried(function, left), _tried(function, right)
    for _ in range(POLISHED):
        middle = 0.5 * (left + right)
        values = _tried(function, middle)
        with np.errstate(all="ignore"):
            up = np.abs(values - low) <= np.abs(values - high)
        left, right = np.where(up, middle, left), np.where(up, right, middle)
        low, high = np.where(up, values, low), np.where(up, high, values)
    return np.asarray(0.5 * (left + right))


def _tried(function: Function, u: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(function(u.ravel()), dtype=float).reshape(u.shape)

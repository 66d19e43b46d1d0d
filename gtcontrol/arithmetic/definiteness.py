"""Definiteness of symmetric matrices, decided in balls or exactly.

Balls of any order are decided by a congruence: if Xᵀ M X is strictly diagonally dominant with a
positive diagonal, it is positive definite, hence X is invertible and M positive definite.  With X
made of the approximate eigenvectors, the diagonal of Xᵀ M X is known to the precision of the
balls, so that even an eigenvalue far below the rounding of floats is decided.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .._check import Array
from . import balls, floats
from .balls import Balls
from .fractions import Fractions

__all__ = [
    "definite",
    "eliminated",
    "enclosure",
    "positive_definite",
    "semidefinite",
]

#: Up to this order a matrix that the congruence does not decide is factorised in balls.
SMALL = 16

#: Above this order a matrix of fractions that balls cannot decide is not tried exactly.
LARGEST_EXACT = 40

#: Relative slack that covers the rounding of a conversion from balls to floats.
SLACK = 2.0**-50


def enclosure(matrix: Balls) -> floats.Enclosure:
    """Floats with error bounds that enclose a ball matrix; infinite where it is unbounded."""
    shape = matrix.nrows(), matrix.ncols()
    entries = matrix.entries()
    middle = np.array([float(x) for x in entries], dtype=np.float64).reshape(shape)
    spread = np.array([float(x.rad()) for x in entries], dtype=np.float64).reshape(shape)
    finite = np.isfinite(middle) & np.isfinite(spread)
    radius = np.where(finite, (spread + np.abs(middle) * SLACK) * (1 + SLACK) + 5e-324, math.inf)
    return floats.Enclosure(np.where(finite, middle, 0.0), radius)


def definite(matrix: Balls) -> bool:
    """Whether every symmetric matrix in the balls is proved to be positive definite."""
    close = enclosure(matrix)
    if not np.all(np.isfinite(close.radius)) or np.any(np.diag(close.middle) <= 0):
        return bool(matrix.nrows() == 0)
    with np.errstate(over="ignore"):
        if floats.positive_definite(close):
            return True
    if _congruent(matrix, close.middle):
        return True
    return bool(matrix.nrows() <= SMALL) and balls.positive_definite(matrix)


def _congruent(matrix: Balls, middle: Array) -> bool:
    """Try the congruence with the eigenvectors of the matrix scaled to a unit diagonal."""
    scale = _roots(np.diag(middle))
    scaled = (0.5 * middle + 0.5 * middle.T) * scale[:, None] * scale
    if not np.all(np.isfinite(scaled)):
        return False
    basis = balls.balls(scale[:, None] * np.linalg.eigh(scaled)[1])
    turned = basis.transpose() * matrix * basis
    diagonal = np.array([float(turned[i, i]) for i in range(turned.nrows())])
    if not np.all(diagonal > 0) or not np.all(np.isfinite(diagonal)):
        return False
    stretch = balls.diagonal(_roots(diagonal))
    made = enclosure(stretch * turned * stretch)
    rows = np.abs(made.middle) + made.radius
    own = np.diag(made.middle) - np.diag(made.radius)
    rest = rows.sum(axis=1) - np.diag(rows)
    return bool(
        np.all(np.isfinite(rest)) and np.all(own > 0) and np.all(own * 0.999 > rest * 1.001)
    )


def _roots(diagonal: Array) -> Array:
    """Powers of two near the inverse roots of positive numbers; exact in floats."""
    return np.asarray(np.ldexp(1.0, -np.round(0.5 * np.log2(diagonal)).astype(int)))


def positive_definite(matrix: Fractions) -> bool:
    """Whether a symmetric matrix of fractions is proved to be positive definite.

    Balls are tried first; a matrix that they cannot decide is eliminated exactly.
    """
    if matrix != matrix.transpose():
        return False
    for bits in (64, 192):
        with balls.precision(bits):
            if definite(balls.from_fractions(matrix)):
                return True
    return matrix.nrows() <= LARGEST_EXACT and eliminated(_numerators(matrix), singular=False)


def semidefinite(matrix: Fractions) -> bool:
    """Whether a symmetric matrix of fractions is positive semidefinite; exact, always decided."""
    return bool(matrix == matrix.transpose()) and eliminated(_numerators(matrix), singular=True)


def _numerators(matrix: Fractions) -> NDArray[np.object_]:
    whole, _ = matrix.numer_denom()
    shape = matrix.nrows(), matrix.ncols()
    return np.array([int(x) for x in whole.entries()], dtype=object).reshape(shape)


def eliminated(rows: NDArray[np.object_], *, singular: bool) -> bool:
    """Whether elimination without fractions (Bareiss) of a symmetric matrix finds no wrong pivot.

    A pivot may be zero only if the matrix may be `singular`, and its row must then vanish:
    otherwise a minor of order two is negative.

    Parameters
    ----------
    rows : (n, n) array of int
        Python integers.
    singular : bool
        Whether semidefinite matrices are accepted, too.
    """
    previous = 1
    while rows.shape[0]:
        pivot = int(rows[0, 0])
        if pivot < 0 or (pivot == 0 and not singular):
            return False
        rest = rows[1:, 1:]
        if pivot == 0:
            if any(x != 0 for x in rows[0]):
                return False
            rows = rest
            continue
        rows = (pivot * rest - np.multiply.outer(rows[1:, 0], rows[0, 1:])) // previous
        previous = pivot
    return True

"""Definiteness and norms of symmetric matrices, decided in balls or in exact fractions.

Balls of any order are decided by a congruence: if Xᵀ M X is strictly diagonally dominant with a
positive diagonal, it is positive definite, hence X is invertible and M positive definite.  With X
made of the approximate eigenvectors, the diagonal of Xᵀ M X is known to the precision of the
balls, so that even an eigenvalue far below the rounding of floats is decided.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._check import Array
from . import balls, floats
from .balls import Balls
from .fractions import Fractions

__all__ = [
    "definite",
    "eigenvalue_bound",
    "enclosure",
    "norm_bound",
    "semidefinite",
]

#: Up to this order a matrix that the congruence does not decide is factorised in balls.
SMALL = 16

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


def eigenvalue_bound(matrix: Balls) -> float:
    """Return a float that no eigenvalue of a symmetric matrix in the balls exceeds."""
    close = enclosure(matrix)
    n = matrix.nrows()
    if n == 0:
        return -math.inf
    if not np.all(np.isfinite(close.radius)):
        return math.inf
    middle = 0.5 * close.middle + 0.5 * close.middle.T
    size = float(np.max(np.abs(middle) + close.radius))
    if size == 0:
        return 0.0
    guess: float = float(np.linalg.eigvalsh(middle / size)[-1]) * size
    margin = 4e-15 * n * size + 2 * n * float(np.max(close.radius))
    while margin < 8 * n * size:
        bound: float = guess + margin
        if definite(balls.ball(bound) * balls.identity(n) - matrix):
            return bound
        margin *= 4
    return norm_bound(matrix)


def norm_bound(matrix: Balls) -> float:
    """Upper bound on the spectral norm of the matrices in the balls."""
    close = enclosure(matrix)
    if not np.all(np.isfinite(close.radius)):
        return math.inf
    return floats.spectral_norm_bound(close)


def semidefinite(matrix: Fractions) -> bool:
    """Whether a symmetric matrix of fractions is positive semidefinite; exact, always decided."""
    rows: list[list[Any]] = matrix.tolist()
    n = len(rows)
    if any(rows[i][j] != rows[j][i] for i in range(n) for j in range(i)):
        return False
    left = list(range(n))
    while left:
        if any(rows[i][i] < 0 for i in left):
            return False
        # A zero on the diagonal of a semidefinite matrix has a zero row.
        if any(rows[i][i] == 0 and any(rows[i][j] != 0 for j in left) for i in left):
            return False
        left = [i for i in left if rows[i][i] != 0]
        if not left:
            return True
        pivot = max(left, key=lambda i: rows[i][i])
        left.remove(pivot)
        for i in left:
            factor = rows[i][pivot] / rows[pivot][pivot]
            if factor != 0:
                for j in left:
                    rows[i][j] -= factor * rows[pivot][j]
    return True

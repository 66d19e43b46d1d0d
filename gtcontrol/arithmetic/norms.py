"""Upper bounds on norms and eigenvalues of ball matrices."""

from __future__ import annotations

import math

import numpy as np
from flint import arb

from . import balls, floats
from .balls import Balls
from .definiteness import definite, enclosure

__all__ = ["eigenvalue_bound", "frobenius_bound", "norm_bound", "size_bound"]


def frobenius_bound(matrix: Balls) -> float:
    """Return a float that is not below the Frobenius norm of any matrix in the balls."""
    total = arb(0)
    for x in matrix.entries():
        total += x * x
    return max(balls.above(abs(total).sqrt()), 0.0)


def norm_bound(matrix: Balls) -> float:
    """Return a float that is not below the spectral norm of any matrix in the balls."""
    if matrix.nrows() == 0 or matrix.ncols() == 0:
        return 0.0
    wide = matrix.nrows() <= matrix.ncols()
    turned = matrix.transpose()
    squared = eigenvalue_bound(matrix * turned if wide else turned * matrix)
    loose = frobenius_bound(matrix)
    if not math.isfinite(squared) or squared < 0:
        return loose
    return min(loose, balls.above(arb(squared).sqrt()))


def size_bound(matrix: Balls) -> float:
    """Return a float that is not below the spectral norm, cheaply: √(1-norm · ∞-norm)."""
    close = enclosure(matrix)
    if not np.all(np.isfinite(close.radius)):
        return math.inf
    return floats.spectral_norm_bound(close)


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
    return size_bound(matrix)

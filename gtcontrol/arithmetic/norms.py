"""Upper bounds on norms of ball matrices."""

from __future__ import annotations

import math

from flint import arb

from . import balls

__all__ = ["frobenius_bound", "norm_bound"]


def frobenius_bound(matrix: balls.Balls) -> float:
    """Return a float that is not below the Frobenius norm of any matrix in the balls."""
    total = arb(0)
    for x in matrix.entries():
        total += x * x
    return max(balls.above(abs(total).sqrt()), 0.0)


def norm_bound(matrix: balls.Balls) -> float:
    """Return a float that is not below the spectral norm of any matrix in the balls."""
    if matrix.nrows() == 0 or matrix.ncols() == 0:
        return 0.0
    wide = matrix.nrows() <= matrix.ncols()
    turned = matrix.transpose()
    squared = balls.largest_eigenvalue_bound(matrix * turned if wide else turned * matrix)
    loose = frobenius_bound(matrix)
    if not math.isfinite(squared) or squared < 0:
        return loose
    return min(loose, balls.above(arb(squared).sqrt()))

"""Matrices with proved errors behind one interface: small ones of balls, large ones of floats.

A theorem that needs products, spectral norms and eigenvalue bounds is written once, and holds for
an order of 2 as for one of 768.
"""

from __future__ import annotations

import numpy as np

from .._check import Array
from . import balls, floats
from .abstract import Matrix
from .ball_matrices import BallMatrix
from .float_matrices import FloatMatrix

__all__ = ["LARGEST_OF_BALLS", "BallMatrix", "FloatMatrix", "Matrix", "matrix"]

#: Matrices up to this order are made of balls.
LARGEST_OF_BALLS = 24


def matrix(array: Array, order: int) -> Matrix:
    """Exact matrix of the kind that suits computations of an order; a vector becomes a column."""
    made = np.asarray(array, dtype=np.float64)
    if order <= LARGEST_OF_BALLS:
        return BallMatrix(balls.balls(made))
    return FloatMatrix(floats.exact(made.reshape(-1, 1) if made.ndim == 1 else made))

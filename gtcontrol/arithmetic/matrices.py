"""Matrices with proved errors behind one interface: small ones of balls, large ones of floats.

A theorem that needs products, solutions, definiteness, spectral norms and eigenvalue bounds is
written once, and holds for an order of 2 as for one of 768.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._check import Array
from . import balls, floats
from .abstract import Matrix
from .ball_matrices import BallMatrix
from .float_matrices import FloatMatrix, as_columns

__all__ = [
    "SMALL",
    "BallMatrix",
    "FloatMatrix",
    "Matrix",
    "around",
    "block",
    "enclose",
    "symmetric_part",
    "total",
]

#: Largest order for which entries are balls, and the same where speed matters more than digits.
SMALL = 32
SMALL_IF_QUICK = 24


def enclose(array: Array, order: int | None = None, *, quick: bool = False) -> Matrix:
    """Exact matrix of floats, of the kind that suits computations of an order.

    Parameters
    ----------
    array : (m, n) or (m,) array
        A vector becomes a column.
    order : int, optional
        Order of the matrices with which it is combined, if that is not the number of rows.
    quick : bool
        Whether bounds may be coarser for the sake of speed (see :class:`FloatMatrix`).
    """
    table = as_columns(array)
    largest = SMALL_IF_QUICK if quick else SMALL
    if (table.shape[0] if order is None else order) <= largest:
        return BallMatrix(balls.balls(table))
    return FloatMatrix(floats.exact(table), quick)


def around(middle: Array, spread: float) -> Matrix:
    """Column of floats, each with the same bound on its error.

    Parameters
    ----------
    middle : (d,) array
        Its length decides the kind of the matrix.
    spread : float
        Bound on the errors, not below zero.
    """
    if len(middle) <= SMALL:
        return BallMatrix(balls.column([balls.ball(x, spread) for x in middle.tolist()]))
    return FloatMatrix(floats.Enclosure(middle[:, None], np.full((len(middle), 1), spread)))


def total(arrays: Sequence[Array]) -> Matrix:
    """Sum of matrices of floats.

    Parameters
    ----------
    arrays : sequence of (n, n) arrays
    """
    made = enclose(arrays[0])
    for other in arrays[1:]:
        made = made + enclose(other)
    return made


def block(rows: Sequence[Sequence[Matrix]]) -> Matrix:
    """Matrix made of blocks."""
    return rows[0][0].stacked(rows)


def symmetric_part(matrix: Matrix) -> Matrix:
    """Return (M + Mᵀ)/2."""
    return (matrix + matrix.T).times(balls.ball(0.5))

"""Matrices of real balls (FLINT's ``arb_mat``): midpoint and radius, every operation enclosing.

Comparisons of balls are certain: ``x < 1`` is True only if it holds for every number in the ball.
The precision is a setting of the current thread; set it with :func:`precision`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq

from .._check import Array

__all__ = [
    "above",
    "ball",
    "balls",
    "below",
    "column",
    "columns",
    "diagonal",
    "exponential",
    "from_fraction",
    "from_fractions",
    "identity",
    "inverse",
    "middle",
    "neighbourhood",
    "positive_definite",
    "precision",
    "radius",
    "root",
    "rows",
    "stacked",
    "table",
    "turn",
    "working_bits",
    "zeros",
]

# FLINT has no stubs.
Ball = Any
Balls = Any


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with this number of bits within the context."""
    with ctx.workprec(bits):
        yield


def working_bits() -> int:
    """Return the number of bits of the context."""
    return int(ctx.prec)


def ball(value: float, radius: float = 0.0) -> Ball:
    """Ball around a float, by default of radius zero."""
    return arb(float(value), radius) if radius else arb(float(value))


def balls(matrix: Array) -> Balls:
    """Exact ball matrix of a 2-d array of floats; a vector becomes a column."""
    given = np.reshape(matrix, (-1, 1)) if np.ndim(matrix) == 1 else np.atleast_2d(matrix)
    if given.size == 0:
        return arb_mat(*given.shape)
    return arb_mat([[arb(x) for x in row] for row in given.tolist()])


def from_fraction(value: Fraction) -> Ball:
    """Ball, at the precision of the current thread, around a fraction."""
    return arb(fmpq(value.numerator, value.denominator))


def from_fractions(matrix: Any) -> Balls:
    """Ball matrix that encloses a matrix of fractions."""
    return arb_mat(matrix)


def identity(order: int) -> Balls:
    """Identity matrix of order `order`."""
    return arb_mat([[int(i == j) for j in range(order)] for i in range(order)])


def zeros(rows: int, columns: int) -> Balls:
    """Zero matrix."""
    return arb_mat(rows, columns)


def diagonal(values: Array) -> Balls:
    """Diagonal matrix of floats, exact."""
    made = arb_mat(len(values), len(values))
    for i, value in enumerate(values.tolist()):
        made[i, i] = arb(value)
    return made


def neighbourhood(rows: int, columns: int, size: float) -> Balls:
    """Ball matrix of all matrices whose entries have modulus at most `size`."""
    value = arb(0, size)
    return (
        arb_mat([[value] * columns for _ in range(rows)])
        if rows and columns
        else zeros(rows, columns)
    )


def stacked(blocks: list[list[Balls]]) -> Balls:
    """Block matrix of ball matrices."""
    made: list[list[Ball]] = []
    for line in blocks:
        parts = [part.tolist() for part in line]
        made += [[x for row in together for x in row] for together in zip(*parts, strict=True)]
    return arb_mat(made) if made else arb_mat(0, sum(part.ncols() for part in blocks[0]))


def rows(matrix: Balls, first: int, last: int) -> Balls:
    """Rows `first` to `last` (excluded) of a ball matrix."""
    chosen = matrix.tolist()[first:last]
    return arb_mat(chosen) if chosen else arb_mat(0, matrix.ncols())


def columns(matrix: Balls, first: int, last: int) -> Balls:
    """Columns `first` to `last` (excluded) of a ball matrix."""
    return rows(matrix.transpose(), first, last).transpose()


def exponential(value: Ball) -> Ball:
    """Exponential of a ball."""
    return arb(value).exp()


def root(value: Ball) -> Ball:
    """Square root of a ball; not finite if it holds negative numbers."""
    return arb(value).sqrt()


def turn() -> Ball:
    """Ball around π."""
    return arb.pi()


def middle(matrix: Balls) -> Array:
    """Midpoints of a ball matrix as floats, shape (rows, columns)."""
    shape = matrix.nrows(), matrix.ncols()
    return np.array([float(x.mid()) for x in matrix.entries()], dtype=np.float64).reshape(shape)


def radius(matrix: Balls) -> float:
    """Largest radius of the entries, rounded up."""
    return max((above(x.rad()) for x in matrix.entries()), default=0.0)


def above(value: Ball) -> float:
    """Return a float that is not below any number in the ball (inf if it is unbounded)."""
    if not value.is_finite():
        return math.inf
    return _step(value.upper(), math.inf)


def below(value: Ball) -> float:
    """Return a float that is not above any number in the ball (-inf if it is unbounded)."""
    if not value.is_finite():
        return -math.inf
    return _step(value.lower(), -math.inf)


def _step(end: Ball, towards: float) -> float:
    """Nearest float on the safe side of a point."""
    made = float(end)
    if math.isinf(made) or math.isnan(made):
        return towards
    point = arb(made)
    safe = point >= end if towards > 0 else point <= end
    return made if safe else math.nextafter(made, towards)


def positive_definite(matrix: Balls) -> bool:
    """Whether every symmetric matrix in the balls is proved to be positive definite (Cholesky).

    Only the lower triangle is read.
    """
    left = matrix.tolist()
    n = len(left)
    for j in range(n):
        pivot = left[j][j]
        if not pivot > 0:
            return False
        for i in range(j + 1, n):
            factor = left[i][j] / pivot
            row = left[i]
            for k in range(j + 1, i + 1):
                row[k] = row[k] - factor * left[k][j]
    return True


def table(entries: Sequence[Sequence[Ball]]) -> Balls:
    """Matrix of given balls, row by row."""
    return arb_mat([list(row) for row in entries]) if entries else arb_mat(0, 0)


def column(entries: Sequence[Ball]) -> Balls:
    """Column of given balls."""
    return arb_mat([[x] for x in entries]) if entries else arb_mat(0, 1)


def inverse(matrix: Balls) -> Balls | None:
    """Inverse of every matrix in the balls; None if one of them may be singular."""
    try:
        return matrix.inv()
    except ZeroDivisionError:
        return None

"""One kind of matrix for small and large orders: whatever it answers is proved.

Up to order :data:`SMALL` the entries are balls, which carry as many digits as are asked for;
above, they are floats with bounds on their errors, at the cost of a few products in BLAS.  A
theorem that is checked with :class:`Certain` matrices is written once for both.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from flint import arb, arb_mat

from .._check import Array
from . import balls, floats
from .balls import Ball, Balls
from .floats import TINY, UNIT, UP, Enclosure

__all__ = [
    "SMALL",
    "Certain",
    "around",
    "block",
    "enclose",
    "large",
    "small",
    "symmetric_part",
    "total",
]

#: Largest order for which entries are balls.
SMALL = 32


class Certain(ABC):
    """A real matrix that is known up to proved bounds on the error of each entry."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    @property
    @abstractmethod
    def T(self) -> Any:  # noqa: N802 - the name of NumPy
        """Transpose."""

    @property
    @abstractmethod
    def middle(self) -> Array:
        """Midpoints of the entries as floats, shape (rows, columns)."""

    @abstractmethod
    def __add__(self, other: Any) -> Any:
        """Sum."""

    @abstractmethod
    def __matmul__(self, other: Any) -> Any:
        """Matrix product."""

    @abstractmethod
    def times(self, factor: Ball) -> Any:
        """Multiply by a ball."""

    @abstractmethod
    def entry(self, row: int, column: int) -> Ball:
        """One entry as a ball."""

    @abstractmethod
    def solve(self, right: Any) -> Any:
        """Product of the inverse with `right`, or None if the matrix may be singular."""

    @abstractmethod
    def positive_definite(self) -> bool:
        """Whether the matrix, which must be symmetric, is proved to be positive definite."""

    @abstractmethod
    def stacked(self, rows: list[list[Any]]) -> Any:
        """Matrix of the same kind from blocks."""

    @property
    @abstractmethod
    def vanishes(self) -> bool:
        """Whether every entry is exactly zero."""

    def __sub__(self, other: Any) -> Any:
        return self + other.times(arb(-1))

    def trace(self) -> Ball:
        """Sum of the diagonal."""
        return sum((self.entry(i, i) for i in range(self.shape[0])), arb(0))


@dataclass(frozen=True, eq=False)
class _Small(Certain):
    """Entries are balls."""

    value: Balls

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.value.nrows(), self.value.ncols()

    @property
    def T(self) -> _Small:  # noqa: N802
        """Transpose."""
        return _Small(self.value.transpose())

    @property
    def middle(self) -> Array:
        """Midpoints of the entries as floats, shape (rows, columns)."""
        return balls.middle(self.value)

    @property
    def vanishes(self) -> bool:
        """Whether every entry is exactly zero."""
        return all(bool(x == 0) for x in self.value.entries())

    def __add__(self, other: _Small) -> _Small:
        return _Small(self.value + other.value)

    def __matmul__(self, other: _Small) -> _Small:
        return _Small(self.value * other.value)

    def times(self, factor: Ball) -> _Small:
        """Multiply by a ball."""
        return _Small(self.value * factor)

    def entry(self, row: int, column: int) -> Ball:
        """One entry as a ball."""
        return self.value[row, column]

    def solve(self, right: _Small) -> _Small | None:
        """Product of the inverse with `right`, or None if the matrix may be singular."""
        try:
            return _Small(self.value.solve(right.value))
        except ZeroDivisionError:
            return None

    def positive_definite(self) -> bool:
        """Whether the matrix, which must be symmetric, is proved to be positive definite."""
        return balls.positive_definite(self.value)

    def stacked(self, rows: list[list[_Small]]) -> _Small:
        """Matrix of the same kind from blocks."""
        made: list[list[Ball]] = []
        for blocks in rows:
            tables = [b.value.tolist() for b in blocks]
            made += [list(chain.from_iterable(parts)) for parts in zip(*tables, strict=True)]
        return _Small(arb_mat(made))


@dataclass(frozen=True, eq=False)
class _Large(Certain):
    """Entries are floats with a bound on each error."""

    value: Enclosure

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        rows, columns = self.value.middle.shape
        return rows, columns

    @property
    def T(self) -> _Large:  # noqa: N802
        """Transpose."""
        return _Large(self.value.T)

    @property
    def middle(self) -> Array:
        """Midpoints of the entries as floats, shape (rows, columns)."""
        return self.value.middle

    @property
    def vanishes(self) -> bool:
        """Whether every entry is exactly zero."""
        return not (np.any(self.value.middle) or np.any(self.value.radius > 8 * TINY))

    def __add__(self, other: _Large) -> _Large:
        return _Large(self.value + other.value)

    def __matmul__(self, other: _Large) -> _Large:
        return _Large(self.value @ other.value)

    def times(self, factor: Ball) -> _Large:
        """Multiply by a ball."""
        middle = float(factor.mid())
        spread = balls.above(abs(factor - middle))
        made = self.value.scaled(middle)
        if spread == 0:
            return _Large(made)
        size = np.abs(self.value.middle) + self.value.radius
        return _Large(Enclosure(made.middle, UP * (made.radius + UP * spread * size)))

    def entry(self, row: int, column: int) -> Ball:
        """One entry as a ball."""
        return arb(float(self.value.middle[row, column]), float(self.value.radius[row, column]))

    def solve(self, right: _Large) -> _Large | None:
        """Product of the inverse with `right`, or None if the matrix may be singular."""
        try:
            inverse = np.asarray(np.linalg.inv(self.value.middle), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None
        if not np.all(np.isfinite(inverse)):
            return None
        unit = floats.exact(np.eye(len(inverse)))
        defect = _rows(unit - floats.exact(inverse) @ self.value)
        if not defect < 0.5:
            return None
        answer: Array = inverse @ right.value.middle
        residual = right.value - self.value @ floats.exact(answer)
        # |M^-1 ρ| <= ‖M^-1‖ max|ρ| in each column, and ‖M^-1‖ <= ‖R‖/(1 - ‖I - RM‖).
        size = UP * _rows(floats.exact(inverse)) / (1.0 - defect)
        worst = UP * np.max(np.abs(residual.middle) + residual.radius, axis=0)
        return _Large(Enclosure(answer, np.broadcast_to(UP * size * worst, answer.shape)))

    def positive_definite(self) -> bool:
        """Whether the matrix, which must be symmetric, is proved to be positive definite."""
        # Powers of two bring the diagonal near one without rounding, so that badly scaled
        # coordinates do not spoil the margin of the test.
        diagonal = np.diag(self.value.middle)
        if not np.all(np.isfinite(diagonal)) or not np.all(diagonal > 0):
            return False
        scale = np.ldexp(1.0, -(np.frexp(diagonal)[1] // 2))
        if np.max(scale) <= 4.0 * np.min(scale):
            return floats.positive_definite(self.value)
        both = np.outer(scale, scale)
        scaled = Enclosure(both * self.value.middle, UP * both * self.value.radius + TINY)
        return floats.positive_definite(scaled)

    def stacked(self, rows: list[list[_Large]]) -> _Large:
        """Matrix of the same kind from blocks."""
        middle = np.block([[b.value.middle for b in row] for row in rows])
        return _Large(Enclosure(middle, np.block([[b.value.radius for b in row] for row in rows])))


def enclose(matrix: Array, order: int | None = None) -> Certain:
    """Matrix of floats, each of them exact.

    Parameters
    ----------
    matrix : (m, n) or (m,) array
        A vector becomes a column.
    order : int, optional
        Order of the matrices with which it is combined, if that is not the number of rows.
    """
    table = np.reshape(matrix, (-1, 1)) if np.ndim(matrix) == 1 else np.asarray(matrix)
    if (table.shape[0] if order is None else order) <= SMALL:
        return _Small(balls.balls(table))
    return _Large(floats.exact(table))


def around(middle: Array, spread: float) -> Certain:
    """Column of floats, each with the same bound on its error.

    Parameters
    ----------
    middle : (d,) array
        Its length decides the kind of the matrix.
    spread : float
        Bound on the errors, not below zero.
    """
    if len(middle) <= SMALL:
        return _Small(arb_mat([[arb(x, spread)] for x in middle.tolist()]))
    return _Large(Enclosure(middle[:, None], np.full((len(middle), 1), spread)))


def small(value: Balls) -> Certain:
    """Wrap a matrix of balls."""
    return _Small(value)


def large(value: Enclosure) -> Certain:
    """Wrap a matrix of floats with bounds on their errors."""
    return _Large(value)


def total(matrices: Sequence[Array]) -> Certain:
    """Sum of matrices of floats.

    Parameters
    ----------
    matrices : sequence of (n, n) arrays
    """
    made = enclose(matrices[0])
    for other in matrices[1:]:
        made = made + enclose(other)
    return made


def block(rows: list[list[Certain]]) -> Certain:
    """Matrix made of blocks."""
    made: Certain = rows[0][0].stacked(rows)
    return made


def symmetric_part(matrix: Certain) -> Certain:
    """Return (M + Mᵀ)/2."""
    made: Certain = (matrix + matrix.T).times(arb(0.5))
    return made


def _rows(matrix: Enclosure) -> float:
    """Upper bound on the largest row sum of sizes."""
    size = np.abs(matrix.middle) + matrix.radius
    grown = (1.0 + 4.0 * size.shape[1] * UNIT) * UP
    return float(np.max(size.sum(axis=1)) * grown) if size.size else math.inf

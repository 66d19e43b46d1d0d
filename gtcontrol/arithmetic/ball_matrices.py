"""Small matrices of balls behind the interface of :class:`Matrix`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from .._check import Array
from . import balls
from .abstract import Matrix
from .balls import Ball, Balls
from .norms import eigenvalue_bound, norm_bound

__all__ = ["BallMatrix"]


@dataclass(frozen=True, eq=False)
class BallMatrix(Matrix):
    """Matrix of real balls, at the precision of the context in which it is used."""

    value: Balls

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.value.nrows(), self.value.ncols()

    @property
    def T(self) -> BallMatrix:  # noqa: N802
        """Transpose."""
        return BallMatrix(self.value.transpose())

    @property
    def middle(self) -> Array:
        """Midpoints."""
        return balls.middle(self.value)

    @property
    def vanishes(self) -> bool:
        """Whether every entry is exactly zero."""
        return all(bool(x == 0) for x in self.value.entries())

    def __matmul__(self, other: BallMatrix) -> BallMatrix:
        return BallMatrix(self.value * other.value)

    def __add__(self, other: BallMatrix) -> BallMatrix:
        return BallMatrix(self.value + other.value)

    def __neg__(self) -> BallMatrix:
        return BallMatrix(-self.value)

    def times(self, factor: Ball) -> BallMatrix:
        """Multiply by a ball."""
        return BallMatrix(self.value * factor)

    def like(self, array: Array) -> BallMatrix:
        """Exact matrix of the same kind."""
        return BallMatrix(balls.balls(array))

    def part(self, rows: slice, columns: slice) -> BallMatrix:
        """Some rows and columns."""
        chosen = [row[columns] for row in self.value.tolist()[rows]]
        width = len(range(self.shape[1])[columns])
        return BallMatrix(
            balls.table(chosen) if chosen and width else balls.zeros(len(chosen), width)
        )

    def stacked(self, rows: Sequence[Sequence[BallMatrix]]) -> BallMatrix:
        """Matrix of blocks."""
        return BallMatrix(balls.stacked([[x.value for x in line] for line in rows]))

    def entry(self, row: int, column: int) -> Ball:
        """One entry."""
        return self.value[row, column]

    def norm(self) -> float:
        """Bound on the spectral norm."""
        return norm_bound(self.value)

    def size(self) -> float:
        """Bound of the spectral norm, here the same as :meth:`norm`."""
        return self.norm()

    def top(self) -> float:
        """Bound on the largest eigenvalue of the symmetric part."""
        return eigenvalue_bound((self.value + self.value.transpose()) / 2)

    def positive_definite(self) -> bool:
        """Whether Cholesky's factorisation of the balls exists."""
        return balls.positive_definite(self.value)

    def inverse(self) -> BallMatrix | None:
        """Enclosure of the inverse."""
        try:
            return BallMatrix(self.value.inv())
        except ZeroDivisionError:
            return None

    def solve(self, right: BallMatrix) -> BallMatrix | None:
        """Product of the inverse with `right`."""
        try:
            return BallMatrix(self.value.solve(right.value))
        except ZeroDivisionError:
            return None

    def combination(self, numbers: Sequence[Ball], arrays: Sequence[Array]) -> BallMatrix:
        """Sum of exact arrays with coefficients."""
        terms = (self.like(M).times(c) for c, M in zip(numbers, arrays, strict=True))
        return functools.reduce(operator.add, terms)

    def product_norm(self, inner: Array, right: BallMatrix, outer: float) -> float:
        """Norm of the product, which is small enough to be formed."""
        return (self @ self.like(inner) @ right).norm()

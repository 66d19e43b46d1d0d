"""Small matrices of balls behind the interface of :class:`Matrix`."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._check import Array
from . import balls
from .abstract import Matrix

__all__ = ["BallMatrix"]


@dataclass(frozen=True, eq=False)
class BallMatrix(Matrix):
    """Matrix of real balls, at the precision of the context in which it is used."""

    value: Any

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

    def __matmul__(self, other: BallMatrix) -> BallMatrix:
        return BallMatrix(self.value * other.value)

    def __add__(self, other: BallMatrix) -> BallMatrix:
        return BallMatrix(self.value + other.value)

    def __neg__(self) -> BallMatrix:
        return BallMatrix(-self.value)

    def block(self, rows: slice, columns: slice) -> BallMatrix:
        """Part of the matrix."""
        chosen = range(self.shape[0])[rows], range(self.shape[1])[columns]
        entries = [self.value[i, j] for i in chosen[0] for j in chosen[1]]
        size = len(chosen[0]), len(chosen[1])
        zeros = balls.balls(np.zeros(size))
        for place, entry in enumerate(entries):
            zeros[divmod(place, size[1])] = entry
        return BallMatrix(zeros)

    def times(self, number: BallMatrix) -> BallMatrix:
        """Multiply by a number."""
        return BallMatrix(self.value * number.value[0, 0])

    def like(self, array: Array) -> BallMatrix:
        """Exact matrix of the same kind."""
        return BallMatrix(balls.balls(array))

    def low(self) -> float:
        """Lower bound of a number."""
        return balls.below(self.value[0, 0])

    def high(self) -> float:
        """Upper bound of a number."""
        return balls.above(self.value[0, 0])

    def norm(self) -> float:
        """Root of a bound on the largest eigenvalue of the smaller Gram matrix."""
        rows, columns = self.shape
        if not rows or not columns:
            return 0.0
        smaller = self.value.transpose() if columns < rows else self.value
        gram = smaller * smaller.transpose()
        if gram.nrows() == 1:
            return balls.above(_root(gram[0, 0]))
        bound = balls.largest_eigenvalue_bound(gram)
        return bound if math.isinf(bound) else balls.above(_root(balls.ball(bound)))

    def size(self) -> float:
        """Bound of the spectral norm, here the same as :meth:`norm`."""
        return self.norm()

    def top(self) -> float:
        """Bound on the largest eigenvalue of the symmetric part."""
        return balls.largest_eigenvalue_bound((self.value + self.value.transpose()) / 2)

    def inverse(self) -> BallMatrix | None:
        """Enclosure of the inverse."""
        try:
            return BallMatrix(self.value.inv())
        except ZeroDivisionError:
            return None

    def beside(self, columns: Sequence[BallMatrix]) -> BallMatrix:
        """Matrix of columns."""
        m = columns[0].shape[0]
        made = balls.balls(np.zeros((m, len(columns))))
        for j, column in enumerate(columns):
            for i in range(m):
                made[i, j] = column.value[i, 0]
        return BallMatrix(made)

    def combination(self, numbers: Sequence[BallMatrix], arrays: Sequence[Array]) -> BallMatrix:
        """Sum of exact arrays with coefficients."""
        terms = (self.like(M).times(c) for c, M in zip(numbers, arrays, strict=True))
        return functools.reduce(operator.add, terms)

    def product_norm(self, inner: Array, right: BallMatrix, outer: float) -> float:
        """Norm of the product, which is small enough to be formed."""
        return (self @ self.like(inner) @ right).norm()


def _root(value: Any) -> Any:
    """Square root of a ball that stands for a number that is not negative."""
    return value.max(balls.ball(0.0)).sqrt()

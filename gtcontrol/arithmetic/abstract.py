"""What a theorem needs of matrices with proved errors, whatever they are made of.

Vectors are matrices of one column, and numbers balls.  Every bound that is returned as a float is
on the safe side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from .._check import Array
from . import balls
from .balls import Ball

__all__ = ["Matrix"]


class Matrix(ABC):
    """All real matrices near a computed one, within an error that is part of the value."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    @property
    @abstractmethod
    def T(self) -> Self:  # noqa: N802 - the name of NumPy
        """Transpose."""

    @property
    @abstractmethod
    def middle(self) -> Array:
        """Midpoints of the entries as floats, shape (rows, columns)."""

    @property
    @abstractmethod
    def vanishes(self) -> bool:
        """Whether every entry is proved to be zero, up to underflow."""

    @abstractmethod
    def __matmul__(self, other: Any) -> Self: ...

    @abstractmethod
    def __add__(self, other: Any) -> Self: ...

    @abstractmethod
    def __neg__(self) -> Self: ...

    def __sub__(self, other: Self) -> Self:
        return self + (-other)

    @abstractmethod
    def times(self, factor: Ball) -> Self:
        """Multiply by a ball."""

    @abstractmethod
    def like(self, array: Array) -> Self:
        """Exact matrix of the same kind from floats; a vector becomes a column."""

    @abstractmethod
    def part(self, rows: slice, columns: slice) -> Self:
        """Some rows and columns."""

    @abstractmethod
    def stacked(self, rows: Sequence[Sequence[Any]]) -> Self:
        """Matrix of the same kind from blocks; see :func:`.matrices.block`."""

    @abstractmethod
    def entry(self, row: int, column: int) -> Ball:
        """One entry as a ball."""

    def low(self) -> float:
        """Lower bound of a matrix of order one."""
        return balls.below(self.entry(0, 0))

    def high(self) -> float:
        """Upper bound of a matrix of order one."""
        return balls.above(self.entry(0, 0))

    def trace(self) -> Ball:
        """Sum of the diagonal."""
        return sum((self.entry(i, i) for i in range(self.shape[0])), balls.ball(0.0))

    @abstractmethod
    def norm(self) -> float:
        """Upper bound on the spectral norm; of a vector, on its length."""

    @abstractmethod
    def size(self) -> float:
        """Upper bound on the spectral norm that is cheap, and larger than :meth:`norm`."""

    @abstractmethod
    def top(self) -> float:
        """Upper bound on the largest eigenvalue of the symmetric part (-inf if it is empty)."""

    @abstractmethod
    def positive_definite(self) -> bool:
        """Whether the matrix, which must be symmetric, is proved to be positive definite."""

    @abstractmethod
    def inverse(self) -> Self | None:
        """Enclosure of the inverse, or None if the matrix is not proved to be regular."""

    @abstractmethod
    def solve(self, right: Any) -> Self | None:
        """Product of the inverse with `right`, or None if the matrix may be singular."""

    @abstractmethod
    def combination(self, numbers: Sequence[Ball], arrays: Sequence[Array]) -> Self:
        """Sum of exact arrays with coefficients, of the kind of this matrix."""

    @abstractmethod
    def product_norm(self, inner: Array, right: Any, outer: float) -> float:
        """Upper bound on the spectral norm of ``self @ inner @ right``.

        Parameters
        ----------
        inner : (d, d) array
            Meant exactly.
        right : (d, q) matrix
        outer : float
            Upper bound on the product of the norms of the outer matrices.
        """

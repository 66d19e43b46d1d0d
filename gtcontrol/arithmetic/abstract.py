"""What a theorem needs of matrices with proved errors, whatever they are made of.

Vectors are matrices of one column, and numbers matrices of order one.  Every bound that is returned
as a float is on the safe side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from .._check import Array

__all__ = ["Matrix"]


class Matrix(ABC):
    """All real matrices near a computed one, within an error that is part of the value."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    @property
    @abstractmethod
    def T(self) -> Matrix:  # noqa: N802 - the name of NumPy
        """Transpose."""

    @property
    @abstractmethod
    def middle(self) -> Array:
        """A float matrix within the enclosure, or next to it."""

    @abstractmethod
    def __matmul__(self, other: Any) -> Matrix: ...

    @abstractmethod
    def __add__(self, other: Any) -> Matrix: ...

    @abstractmethod
    def __neg__(self) -> Matrix: ...

    def __sub__(self, other: Matrix) -> Matrix:
        return self + (-other)

    @abstractmethod
    def block(self, rows: slice, columns: slice) -> Matrix:
        """Part of the matrix."""

    @abstractmethod
    def times(self, number: Any) -> Matrix:
        """Multiply by a number, which is a matrix of order one of the same kind."""

    @abstractmethod
    def like(self, array: Array) -> Matrix:
        """Exact matrix of the same kind from floats."""

    @abstractmethod
    def low(self) -> float:
        """Lower bound of a matrix of order one."""

    @abstractmethod
    def high(self) -> float:
        """Upper bound of a matrix of order one."""

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
    def inverse(self) -> Matrix | None:
        """Enclosure of the inverse, or None if the matrix is not proved to be regular."""

    @abstractmethod
    def beside(self, columns: Sequence[Any]) -> Matrix:
        """Matrix of columns of the kind of this one."""

    @abstractmethod
    def combination(self, numbers: Sequence[Any], arrays: Sequence[Array]) -> Matrix:
        """Sum of exact arrays with coefficients that are matrices of order one of this kind."""

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

"""Matrices as unevaluated sums of two arrays of floats: twice the precision, at the speed of BLAS.

A product of two matrices of floats is computed almost exactly by cutting each factor into slices
of so few bits that the products of slices are exact, whatever the order of summation (Ozaki,
Ogita, Oishi, Rump, "Error-free transformations of matrix multiplication", Numer. Algorithms 2012).
Errors are about 2^-98 of the largest entries of a row of the first and a column of the second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._check import Array

__all__ = ["Pair", "Sliced", "columns_of", "product", "rows_of", "two_sum"]


@dataclass(frozen=True, eq=False)
class Pair:
    """The matrix ``high`` + ``low``, where ``low`` is of the size of the rounding of ``high``.

    Parameters
    ----------
    high, low : (m, n) arrays
    """

    high: Array
    low: Array

    @classmethod
    def of(cls, matrix: Array) -> Pair:
        """A matrix of floats, exactly."""
        return cls(matrix, np.zeros_like(matrix))

    @property
    def T(self) -> Pair:  # noqa: N802 - the name of NumPy
        """Transpose."""
        return Pair(self.high.T, self.low.T)

    @property
    def rounded(self) -> Array:
        """Nearest floats."""
        return self.high + self.low

    def plus(self, other: Pair) -> Pair:
        """Sum, with an error of about 2^-104 of the terms."""
        high, rest = two_sum(self.high, other.high)
        return Pair(*_settled(high, rest + (self.low + other.low)))

    def minus(self, other: Pair) -> Pair:
        """Difference."""
        return self.plus(Pair(-other.high, -other.low))

    def moved(self, change: Array) -> Pair:
        """Sum with a matrix of floats."""
        high, rest = two_sum(self.high, change)
        return Pair(*_settled(high, rest + self.low))

    def symmetric(self) -> Pair:
        """(M + M')/2."""
        half = Pair(0.5 * self.high, 0.5 * self.low)
        return half.plus(half.T)


@dataclass(frozen=True, eq=False)
class Sliced:
    """A matrix of floats as the sum of three: two of few bits, and what is left.

    Attributes
    ----------
    whole : (m, n) array
    parts : (3, m, n) array
    """

    whole: Array
    parts: Array

    @property
    def T(self) -> Sliced:  # noqa: N802 - the name of NumPy
        """Transpose; slices of rows become slices of columns."""
        return Sliced(self.whole.T, self.parts.transpose(0, 2, 1))


def rows_of(matrix: Array) -> Sliced:
    """Slice the first factor of a product, row by row."""
    return _sliced(matrix, 1)


def columns_of(matrix: Array) -> Sliced:
    """Slice the second factor of a product, column by column."""
    return _sliced(matrix, 0)


def product(first: Sliced, second: Sliced) -> Pair:
    """Product of a matrix sliced by rows with one sliced by columns."""
    terms = np.matmul(first.parts[:, None], second.parts[None])
    # Both sums of the second line are exact: the slices are short enough.
    high, rest = two_sum(terms[0, 0], terms[0, 1] + terms[1, 0])
    small = (terms[0, 2] + terms[2, 0]) + terms[1, 1]
    tiny = (terms[1, 2] + terms[2, 1]) + terms[2, 2]
    return Pair(*_settled(high, rest + (small + tiny)))


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Rounded sum, and exactly what rounding took off (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _settled(high: Array, low: Array) -> tuple[Array, Array]:
    """Make ``low`` the rounding of ``high`` (Dekker; |low| is below |high|, or high is small)."""
    return two_sum(high, low)


def _sliced(matrix: Array, axis: int) -> Sliced:
    inner = matrix.shape[axis]
    bits = (53 - math.ceil(math.log2(3 * max(inner, 1)))) // 2
    _, exponents = np.frexp(np.max(np.abs(matrix), axis=axis, keepdims=True, initial=0.0))
    parts = np.empty((3, *matrix.shape))
    rest = matrix
    for k in range(2):
        # Adding and subtracting 1.5 · 2^e cuts off what is below the last bit of 2^e.
        shift = np.ldexp(1.5, exponents + (52 - bits * (k + 1)))
        parts[k] = (rest + shift) - shift
        rest = rest - parts[k]
    parts[2] = rest
    return Sliced(matrix, parts)

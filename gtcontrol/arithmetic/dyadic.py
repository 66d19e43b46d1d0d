"""Matrices of dyadic fractions: whole numbers times one power of two.

Floats are dyadic fractions, so sums and products of matrices of floats stay within this class and
are exact.  Python's integers have no size limit, so that no entry is too large or too small.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._check import Array
from . import floats
from .definiteness import eliminated

__all__ = ["Dyadic", "dyadic", "identity", "positive_definite", "positive_semidefinite"]

#: Above this order a matrix that floats cannot decide is not eliminated exactly.
LARGEST_EXACT = 80


@dataclass(frozen=True, eq=False)
class Dyadic:
    """The array ``numerators`` · 2^exponent.

    Parameters
    ----------
    numerators : array of int
        Python integers (dtype object), of any shape.
    exponent : int
    """

    numerators: NDArray[np.object_]
    exponent: int

    @classmethod
    def of(cls, value: Fraction) -> Dyadic:
        """A dyadic fraction as an array with one entry and no axes."""
        exponent = 1 - value.denominator.bit_length()
        return cls(np.asarray(value.numerator, dtype=object), exponent)

    @property
    def T(self) -> Dyadic:  # noqa: N802 - the name of NumPy
        """Transpose."""
        return Dyadic(self.numerators.T, self.exponent)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.numerators.shape

    def __getitem__(self, index: Any) -> Dyadic:
        return Dyadic(np.asarray(self.numerators[index], dtype=object), self.exponent)

    def __add__(self, other: Dyadic) -> Dyadic:
        low = min(self.exponent, other.exponent)
        made = self._shifted(low) + other._shifted(low)
        return Dyadic(np.asarray(made, dtype=object), low)

    def __sub__(self, other: Dyadic) -> Dyadic:
        return self + (-other)

    def __neg__(self) -> Dyadic:
        return Dyadic(np.asarray(-self.numerators, dtype=object), self.exponent)

    def __mul__(self, other: Dyadic | int) -> Dyadic:
        if isinstance(other, int):
            return Dyadic(np.asarray(self.numerators * other, dtype=object), self.exponent)
        made = self.numerators * other.numerators
        return Dyadic(np.asarray(made, dtype=object), self.exponent + other.exponent)

    def __matmul__(self, other: Dyadic) -> Dyadic:
        made = np.dot(self.numerators, other.numerators)
        return Dyadic(np.asarray(made, dtype=object), self.exponent + other.exponent)

    def outer(self, other: Dyadic) -> Dyadic:
        """All products of an entry of this array with one of the other."""
        made = np.multiply.outer(self.numerators, other.numerators)
        return Dyadic(np.asarray(made, dtype=object), self.exponent + other.exponent)

    def transposed(self, *axes: int) -> Dyadic:
        """Permute the axes, as NumPy's ``transpose``."""
        return Dyadic(self.numerators.transpose(*axes), self.exponent)

    def reshaped(self, *shape: int) -> Dyadic:
        """Give the array another shape, row by row."""
        return Dyadic(self.numerators.reshape(*shape), self.exponent)

    def fraction(self) -> Fraction:
        """Value of an array with one entry."""
        return Fraction(int(self.numerators.item())) * Fraction(2) ** self.exponent

    def _shifted(self, exponent: int) -> Any:
        """Numerators for a smaller exponent."""
        return self.numerators * (1 << (self.exponent - exponent))


def dyadic(values: Array | float) -> Dyadic:
    """Exact array of an array of finite floats."""
    mantissa, exponents = np.frexp(np.asarray(values, dtype=np.float64))
    numerators = np.ldexp(mantissa, 53).astype(np.int64).astype(object)
    used = exponents[mantissa != 0]
    low = int(used.min()) if used.size else 0
    shifts = np.where(mantissa != 0, exponents - low, 0).astype(object)
    powers = np.asarray(np.power(np.asarray(2, dtype=object), shifts), dtype=object)
    return Dyadic(np.asarray(numerators * powers, dtype=object), low - 53)


def identity(order: int) -> Dyadic:
    """Exact identity matrix."""
    return dyadic(np.eye(order))


def positive_definite(matrix: Dyadic) -> bool:
    """Whether a symmetric matrix is proved to be positive definite.

    Its entries, scaled to a diagonal near 1, are rounded to floats, whose Cholesky factorisation
    with rigorous error bounds decides nearly always; if not, it is eliminated exactly.
    """
    if not _symmetric(matrix) or any(x <= 0 for x in matrix.numerators.diagonal()):
        return False
    return _decided_by_floats(matrix) or _eliminated(matrix, singular=False)


def positive_semidefinite(matrix: Dyadic) -> bool:
    """Whether a symmetric matrix is proved to be positive semidefinite."""
    if not _symmetric(matrix) or any(x < 0 for x in matrix.numerators.diagonal()):
        return False
    return _decided_by_floats(matrix) or _eliminated(matrix, singular=True)


def _decided_by_floats(matrix: Dyadic) -> bool:
    """Whether floats prove a symmetric matrix to be positive definite."""
    rows = matrix.numerators
    n = rows.shape[0]
    halves = np.array([int(x).bit_length() // 2 for x in rows.diagonal()], dtype=object)
    powers = np.array([1 << h for h in halves], dtype=object)
    try:
        # Division of integers is rounded correctly, whatever their size.
        middle = (rows / np.multiply.outer(powers, powers)).astype(np.float64)
    except OverflowError:  # an entry far beyond the geometric mean of its diagonal entries
        return False
    rounding = floats.UNIT * np.abs(middle) + floats.TINY
    return n == 0 or floats.positive_definite(floats.Enclosure(middle, floats.UP * rounding))


def _symmetric(matrix: Dyadic) -> bool:
    rows = matrix.numerators
    return bool(np.all(rows == rows.T))


def _eliminated(matrix: Dyadic, *, singular: bool) -> bool:
    return matrix.shape[0] <= LARGEST_EXACT and eliminated(matrix.numerators, singular=singular)

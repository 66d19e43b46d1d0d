"""The range of numbers in which a law can be followed in double precision."""

from __future__ import annotations

from .._check import Array

__all__ = ["LARGEST", "SMALLEST", "vanishes"]

#: Cubes of entries beyond this size leave the range of double precision.
LARGEST = 1e100

#: Squares of entries below this size, the eigenvalues of the covariance, approach the smallest
#: numbers of double precision.
SMALLEST = 1e-150


def vanishes(sizes: Array) -> bool:
    """Whether a column of a factor, given by its size, is too small for its eigenvalue."""
    return bool(sizes.size) and bool(sizes.min() < SMALLEST)

"""How many eigenvalues lie left of, on, and right of the imaginary axis: exactly, with proof.

The characteristic polynomial p of a matrix of floats is a polynomial over the rationals.  Its
roots on the axis are common roots of p(x) and p(-x), so the factor g = gcd(p(x), p(-x)) holds all
of them, with their multiplicity, and balls decide the sign of the real part of every other root.
The roots of g come in pairs ±λ; those off the axis are told apart by balls as well, and those on
it are counted by the real roots of a polynomial in x², whose roots FLINT isolates exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flint import fmpq_mat, fmpz_poly

from .fractions import Fractions

__all__ = ["LARGEST_ORDER", "Inertia", "inertia", "rank", "sides", "stacked"]

# FLINT has no stubs.
Polynomial = Any

#: Characteristic polynomials of a larger order are not formed.
LARGEST_ORDER = 40


@dataclass(frozen=True)
class Inertia:
    """Numbers of eigenvalues with negative, zero and positive real part, with multiplicity."""

    left: int
    axis: int
    right: int


def inertia(matrix: Fractions) -> Inertia | None:
    """Count eigenvalues by the sign of their real part; None above :data:`LARGEST_ORDER`."""
    n = matrix.nrows()
    if n > LARGEST_ORDER:
        return None
    if n == 0:
        return Inertia(0, 0, 0)
    return sides(matrix.charpoly())


def sides(polynomial: Polynomial) -> Inertia | None:
    """Count roots of a polynomial of fractions by the sign of their real part.

    None if the precision of the isolated roots does not tell.
    """
    polynomial = polynomial.numer()
    common = polynomial.gcd(_mirrored(polynomial))
    left = right = 0
    for value, count in (polynomial // common).complex_roots():
        if value.real < 0:
            left += count
        elif value.real > 0:
            right += count
        else:
            return None
    axis = _on_axis(common)
    pairs = common.degree() - axis
    return Inertia(left + pairs // 2, axis, right + pairs // 2)


def _mirrored(polynomial: Any) -> Any:
    """Polynomial p(-x)."""
    return fmpz_poly([(-1) ** i * c for i, c in enumerate(polynomial.coeffs())])


def _on_axis(common: Any) -> int:
    """Count the roots on the imaginary axis of a polynomial with p(-x) = ±p(x)."""
    coefficients = common.coeffs()
    zeros = next(i for i, c in enumerate(coefficients) if c != 0)
    # What is left is even: a polynomial in y = -x², whose roots y > 0 are pairs on the axis.
    squares = coefficients[zeros::2]
    even: Any = fmpz_poly([(-1) ** i * c for i, c in enumerate(squares)])
    if even.degree() < 1:
        return zeros
    roots: list[tuple[Any, int]] = list(even.complex_roots())
    return zeros + sum(2 * count for value, count in roots if value.imag == 0 and value.real > 0)


def rank(matrix: Fractions) -> int:
    """Exact rank of a matrix of fractions."""
    return int(matrix.rank())


def stacked(blocks: list[Fractions]) -> Fractions:
    """Matrices of fractions below each other."""
    return fmpq_mat([row for block in blocks for row in block.tolist()])

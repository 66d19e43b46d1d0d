"""Matrices in the coordinates of a basis of floats, with rigorous bounds.

In coordinates z with x = T z the matrices of the flow become

    A → T⁻¹ A T,    V → T⁻¹ V T,    B → Tᵀ B T,    S → T⁻¹ S T⁻ᵀ.

With T = L, the factor of a target, the target itself is the identity, whatever its size and shape.
T⁻¹ is not known exactly: with a float T̃ near it and F = T̃ T - I of norm f < 1,

    T⁻¹ A T = (I + F)⁻¹ T̃ A T,    |T⁻¹ A T - T̃ A T|₂ <= f/(1 - f) |T̃ A T|₂.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...arithmetic.floats import UNIT, UP, Enclosure, exact, positive_definite, spectral_norm_bound
from .base import Refuted

__all__ = [
    "Basis",
    "block",
    "exceeds",
    "frobenius_bound",
    "identity",
]

#: A basis whose computed inverse is worse than this is refused.
WORST_INVERSE = 1e-2


@dataclass(frozen=True, eq=False)
class Basis:
    """Columns of T (n, n), an approximate inverse, and the bound f on how good it is."""

    columns: Enclosure
    inverse: Enclosure
    fault: float

    @classmethod
    def of(cls, columns: Array) -> Basis:
        """Basis of given columns.

        Raises
        ------
        Refuted
            If they are not proved to be independent.
        """
        try:
            inverse = np.linalg.inv(columns)
        except np.linalg.LinAlgError:
            raise Refuted("the columns of factor and complement are dependent") from None
        if not np.isfinite(inverse).all():
            raise Refuted("the columns of factor and complement are dependent")
        T, guess = exact(columns), exact(np.asarray(inverse))
        fault = spectral_norm_bound(guess @ T - identity(len(columns)))
        if not fault <= WORST_INVERSE:
            raise Refuted("the columns of factor and complement are too close to dependent")
        return cls(T, guess, fault)

    def similar(self, matrix: Array) -> tuple[Enclosure, float]:
        """T̃ M T, and a bound on its distance from T⁻¹ M T in the spectral norm."""
        scalar = matrix[0, 0]
        if np.array_equal(matrix, scalar * np.eye(len(matrix))):
            return exact(matrix), 0.0
        made = self.inverse @ (exact(matrix) @ self.columns)
        return made, UP * self.fault / (1.0 - self.fault) * UP * spectral_norm_bound(made)

    def congruent(self, matrix: Array) -> Enclosure:
        """Tᵀ M T."""
        return self.columns.T @ (exact(matrix) @ self.columns)

    def length(self, vector: Enclosure) -> float:
        """Upper bound on |T⁻¹ v| for a vector v, given as a column."""
        return UP * frobenius_bound(self.inverse @ vector) / (1.0 - self.fault)


def identity(order: int) -> Enclosure:
    """Identity matrix, exact."""
    return exact(np.eye(order))


def block(matrix: Enclosure, rows: slice, columns: slice) -> Enclosure:
    """Block of an enclosure."""
    return Enclosure(matrix.middle[rows, columns], matrix.radius[rows, columns])


def frobenius_bound(matrix: Enclosure) -> float:
    """Upper bound on the Frobenius norm."""
    size = np.abs(matrix.middle) + matrix.radius
    largest = float(np.max(size, initial=0.0))
    if largest == 0 or not math.isfinite(largest):
        return largest
    # Scaled, so that squares stay in range.
    grown = UP * (1.0 + 2.0 * (size.size + 4) * UNIT)
    return float(grown * largest * np.linalg.norm(size / largest))


def exceeds(matrix: Enclosure, level: float) -> bool:
    """Whether M + Mᵀ >= 2 `level` I is proved for all M in an enclosure (of square matrices)."""
    n = matrix.middle.shape[0]
    if n == 0:
        return True
    scalar = matrix.middle[0, 0]
    if not matrix.radius.any() and np.array_equal(matrix.middle, scalar * np.eye(n)):
        return bool(scalar >= level)
    doubled = matrix + matrix.T
    return positive_definite(doubled - exact(2.0 * level * np.eye(n)))

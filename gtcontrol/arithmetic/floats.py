"""Floats with rigorous error bounds, for matrices that are too large for balls.

An :class:`Enclosure` is a midpoint and a bound on the error of each entry, both ordinary arrays:
products cost four matrix products in BLAS, whatever their order of summation.  (Rump, "Verification
methods: rigorous results using floating-point arithmetic", Acta Numerica 2010, sections 9 and 10.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._check import Array

__all__ = ["Enclosure", "approximate_inverse", "exact", "positive_definite", "spectral_norm_bound"]

#: Half the distance from 1 to the next float, and the smallest positive float.
UNIT = 2.0**-53
TINY = 5e-324

#: Factor by which computed bounds are enlarged, so that their own rounding does no harm.
UP = 1.0 + 2.0**-40


@dataclass(frozen=True, eq=False)
class Enclosure:
    """All matrices M with |M - middle| <= radius, entry by entry.

    Parameters
    ----------
    middle, radius : (m, n) arrays
    """

    middle: Array
    radius: Array

    @property
    def T(self) -> Enclosure:  # noqa: N802 - the name of NumPy
        """Transpose."""
        return Enclosure(self.middle.T, self.radius.T)

    def __add__(self, other: Enclosure) -> Enclosure:
        made = self.middle + other.middle
        return Enclosure(made, UP * (self.radius + other.radius + UNIT * np.abs(made) + TINY))

    def __sub__(self, other: Enclosure) -> Enclosure:
        return self + (-other)

    def __neg__(self) -> Enclosure:
        return Enclosure(-self.middle, self.radius)

    def __matmul__(self, other: Enclosure) -> Enclosure:
        made = self.middle @ other.middle
        size, terms = np.abs(self.middle), self.middle.shape[-1]
        # gamma_n |A||B| bounds the rounding of any order of summation, fused or not.
        rounding = 2.0 * (terms + 2) * UNIT
        error = size @ (other.radius + rounding * np.abs(other.middle))
        if self.radius.any():
            error += self.radius @ (np.abs(other.middle) + other.radius)
        # The bound is itself computed with rounding, which the factor covers.
        return Enclosure(made, (1.0 + 4.0 * (terms + 4) * UNIT) * UP * error + (terms + 1) * TINY)

    def scaled(self, factor: float) -> Enclosure:
        """Multiply by a float."""
        made = factor * self.middle
        return Enclosure(made, UP * (abs(factor) * self.radius + UNIT * np.abs(made) + TINY))


def exact(matrix: Array) -> Enclosure:
    """Enclosure of a matrix of floats, with no error."""
    made = np.asarray(matrix, dtype=np.float64)
    return Enclosure(made, np.zeros_like(made))


def approximate_inverse(matrix: Array) -> Array | None:
    """Inverse as computed, or None if there is none in floats; nothing is proved."""
    if not np.all(np.isfinite(matrix)):
        return None
    try:
        made = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    return made if np.all(np.isfinite(made)) else None


def spectral_norm_bound(matrix: Enclosure) -> float:
    """Upper bound on the spectral norm: the root of the 1-norm times the infinity-norm."""
    size = np.abs(matrix.middle) + matrix.radius
    if size.size == 0:
        return 0.0
    rows, columns = float(np.max(size.sum(axis=1))), float(np.max(size.sum(axis=0)))
    grown = (1.0 + 4.0 * max(size.shape) * UNIT) * UP
    return float(math.sqrt(rows) * math.sqrt(columns) * grown)


def positive_definite(matrix: Enclosure) -> bool:
    """Whether all symmetric matrices in an enclosure are proved to be positive definite.

    Cholesky of M - c I, where c exceeds the backward error of the factorisation and the
    radius of the enclosure (Rump 2006, "Verification of positive definiteness").
    """
    middle = 0.5 * (matrix.middle + matrix.middle.T)
    n = middle.shape[0]
    if n == 0:
        return True
    diagonal = np.diag(middle)
    if not np.all(np.isfinite(middle)) or not np.all(diagonal > 0):
        return False
    gamma = 2.0 * (n + 3) * UNIT
    if gamma >= 0.1:
        return False
    spread = matrix.radius + UNIT * np.abs(middle)
    shift = (
        UP
        * (
            2.0 * gamma / (1.0 - 2.0 * gamma) * float(diagonal.sum())
            + float(np.max(spread.sum(axis=1)))
            + float(np.max(spread.sum(axis=0)))
        )
        + n * n * 1e-300
    )
    shifted = middle.copy()
    shifted[np.diag_indices(n)] = np.nextafter(diagonal - shift, -math.inf)
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return False
    return True

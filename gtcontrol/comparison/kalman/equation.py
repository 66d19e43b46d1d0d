"""The equation S' = A S + S Aᵀ + S K S + Q in all coordinates or on a subspace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...problem.definitions import ComparisonProblem
from ...riccati_equations.equation import RiccatiEquation

__all__ = ["Equation"]


@dataclass(frozen=True, eq=False)
class Equation:
    """Data of S' = A S + S Aᵀ + S K S + Q, K = -Cᵀ R⁻¹ C.

    Attributes
    ----------
    A, K, Q : (d, d) arrays
    C : (p, d) array
    R : (p, p) array
    """

    A: Array
    C: Array
    R: Array
    K: Array
    Q: Array

    @classmethod
    def of(cls, p: ComparisonProblem) -> Equation:
        """The equation of a problem; what is not noisy has Q = 0."""
        noise = np.zeros_like(p.A) if p.noise is None else p.noise
        return cls(p.A, p.C, p.R, p.K, noise)

    @property
    def dim(self) -> int:
        """Dimension d."""
        return len(self.A)

    def on(self, basis: Array) -> Equation:
        """On an invariant subspace with the orthonormal basis (d, k), in its coordinates."""
        U = basis
        K, Q = U.T @ self.K @ U, U.T @ self.Q @ U
        return Equation(U.T @ self.A @ U, self.C @ U, self.R, 0.5 * (K + K.T), 0.5 * (Q + Q.T))

    @property
    def algebraic(self) -> RiccatiEquation:
        """The algebraic equation of steady states, in the form of control theory."""
        if not len(self.C):  # nothing is measured: one measurement of nothing
            return RiccatiEquation(self.A.T, np.zeros((self.dim, 1)), self.Q)
        return RiccatiEquation(self.A.T, self.C.T, self.Q, self.R)

    def closed_loop(self, X: Array) -> Array:
        """A + X K, shape (d, d)."""
        return self.A + X @ self.K

"""The closed form of S' = A S + S Aᵀ + S K S, in floats.

With Φ(t) = e^{At}, G(t) = ∫₀ᵗ Φᵀ K Φ and S₀ = L Lᵀ (L of full column rank),

    S(t) = Φ L (I - C(t))⁻¹ Lᵀ Φᵀ,    C(t) = Lᵀ G(t) L,    T* = inf {t : λ_max C(t) = 1}.

(Differentiate the formula.  At T* take x in ker(I - C): xᵀ(I - C(t))x → 0 while |Φ L x| stays
positive, so λ_max S → ∞.)  Past T* the formula may return a positive definite matrix again,
which is no solution: :func:`.solution.factor_at` therefore refuses such times.

Φ and G come from their Taylor series on a short step and from the doubling

    Φ(2h) = Φ(h)²,    G(2h) = G(h) + Φ(h)ᵀ G(h) Φ(h),

never from one exponential of the Hamiltonian matrix, whose block -Aᵀ grows as fast as A decays
and drowns G.
"""

from __future__ import annotations

import math

import numpy as np

from .._check import Array
from ..errors import OutOfScale

__all__ = ["Flow", "transition"]

#: Terms of the Taylor series; with ‖A‖h <= 1/4 the rest is below the rounding.
TERMS = 18

#: Number of transitions that a flow remembers.
REMEMBERED = 256


class Flow:
    """Transitions (Φ(h), G(h)) of one pair (A, K), remembered by the step h.

    Parameters
    ----------
    A, K : (d, d) arrays
        K symmetric.
    """

    def __init__(self, A: Array, K: Array) -> None:
        d = A.shape[0]
        self.A, self.K = A, K
        self.size = float(np.linalg.norm(A, 2)) if d else 0.0
        self._powers: tuple[Array, Array] | None = None
        self._scale = 1.0
        self._made: dict[float, tuple[Array, Array]] = {}

    def _series(self) -> tuple[Array, Array]:
        if self._powers is None:
            d = self.A.shape[0]
            # A is scaled by a power of two, so that powers of large entries stay in range.
            self._scale = math.ldexp(1.0, math.frexp(self.size)[1]) if self.size > 0 else 1.0
            A = self.A / self._scale
            first, second = np.empty((TERMS, d, d)), np.empty((TERMS, d, d))
            first[0], second[0] = np.eye(d), self.K
            for k in range(1, TERMS):
                first[k] = first[k - 1] @ A / k
                half = second[k - 1] @ A
                second[k] = (half + half.T) / (k + 1)
            self._powers = first, second
        return self._powers

    def transition(self, h: float) -> tuple[Array, Array]:
        """Return Φ(h) and G(h), each (d, d)."""
        found = self._made.get(h)
        if found is None:
            if self.size * h > 0.25:
                Phi, G = self.transition(0.5 * h)
                moved = G + Phi.T @ G @ Phi
                found = Phi @ Phi, 0.5 * (moved + moved.T)
            else:
                first, second = self._series()
                weights = (h * self._scale) ** np.arange(TERMS)
                found = np.tensordot(weights, first, 1), h * np.tensordot(weights, second, 1)
            if len(self._made) >= REMEMBERED:
                self._made.clear()
            self._made[h] = found
        return found

    def advance(self, Y: Array, C: Array, h: float) -> tuple[Array, Array]:
        """Carry Y = Φ L and C = Lᵀ G L over a step h."""
        Phi, G = self.transition(h)
        return Phi @ Y, C + Y.T @ G @ Y


def transition(A: Array, K: Array, time: float) -> tuple[Array, Array]:
    """Return Φ(t) = e^{At} and G(t) = ∫₀ᵗ Φᵀ K Φ by Taylor series and doubling.

    Parameters
    ----------
    A, K : (d, d) arrays
    time : float
        Not negative.

    Raises
    ------
    OutOfScale
        If they overflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        Phi, G = Flow(A, K).transition(time)
    if not (np.all(np.isfinite(Phi)) and np.all(np.isfinite(G))):
        raise OutOfScale(
            f"e^(At) leaves the range of double precision before t = {time:.6g}; shorten the time."
        )
    return Phi, G

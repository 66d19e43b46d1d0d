"""The data of S' = A S + S Aᵀ + S K S, exactly: what proofs about it start from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import matrix_balance

from .._check import Array
from ..arithmetic import balls, floats, fractions
from ..arithmetic.balls import Balls
from ..arithmetic.definiteness import definite, semidefinite
from ..arithmetic.fractions import Fractions
from ..arithmetic.spectra import Inertia, inertia
from . import terms

__all__ = ["LARGEST_BALLS", "System"]

#: Largest order whose definiteness is decided by exact elimination.
LARGEST_EXACT = 60

#: Largest order for which balls are made.
LARGEST_BALLS = 260

#: Bits in which definiteness is tried before exact elimination.
BITS = 160


@dataclass(frozen=True, eq=False)
class System:
    """A and the heads (V_h = v_h I, B_h) that make K; every float is meant exactly.

    Parameters
    ----------
    A : (d, d) array
    heads : sequence of (V (d, d), B (d, d), β)
        As in ``Parameters.heads``.
    """

    A: Array
    heads: Sequence[tuple[Array, Array, Any]]

    @classmethod
    def of_term(cls, A: Array, K: Array) -> System:
        """Return the system of a symmetric K, given as floats: one head with V = I, B = K/2."""
        return cls(A, ((np.eye(len(A)), 0.5 * K, None),))

    @cached_property
    def K(self) -> Array:  # noqa: N802 - the name of the field
        """K in floats."""
        return terms.quadratic_term(self.heads)

    def ball_pair(self) -> tuple[Balls, Balls]:
        """A and K in balls of the current precision."""
        return balls.balls(self.A), terms.quadratic_balls(self.heads)

    @cached_property
    def exact_K(self) -> Fractions:  # noqa: N802
        """K as fractions."""
        return terms.exact_term(self.heads)

    @cached_property
    def exact_A(self) -> Fractions:  # noqa: N802
        """A as fractions."""
        return fractions.fractions(self.A)

    @cached_property
    def inertia(self) -> Inertia | None:
        """Exact numbers of eigenvalues of A left of, on and right of the imaginary axis."""
        return inertia(self.exact_A) if len(self.A) <= LARGEST_EXACT else None

    def definite(self, sign: int) -> bool:
        """Whether sign · K is proved to be positive definite."""
        if len(self.A) > LARGEST_BALLS:
            return floats.positive_definite(terms.enclosed_term(self.heads).scaled(float(sign)))
        with balls.precision(BITS):
            return definite(terms.quadratic_balls(self.heads) * balls.ball(sign))

    @cached_property
    def _signs(self) -> dict[int, bool]:
        return {}

    def semidefinite(self, sign: int) -> bool:
        """Whether sign · K is proved to be positive semidefinite."""
        if sign not in self._signs:
            self._signs[sign] = self._decide(sign)
        return self._signs[sign]

    def _decide(self, sign: int) -> bool:
        if not np.any(self.K) and len(self.A) > LARGEST_EXACT:
            return not any(np.any(v[0, 0] * (B + B.T)) for v, B, _ in self.heads)
        size = float(np.max(np.abs(self.K), initial=0.0))
        if size > 0 and np.linalg.eigvalsh(sign * self.K / size)[0] < -1e-9 * len(self.A):
            return False
        if self.definite(sign):
            return True
        return len(self.A) <= LARGEST_EXACT and semidefinite(self.exact_K * sign)

    @cached_property
    def exponents(self) -> Array:
        """Exponents of the powers of two that balance A, shape (d,)."""
        if not np.any(self.A):
            return np.zeros(len(self.A))
        _, (scale, _) = matrix_balance(self.A, permute=False, separate=True)
        return np.asarray(np.round(np.log2(scale)), dtype=np.float64)

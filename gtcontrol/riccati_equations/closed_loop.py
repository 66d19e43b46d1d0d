"""The closed loop at a solution: its spectrum, and the Lyapunov equation that corrects X.

The derivative of the equation at X is D ↦ F' D + D F, or D ↦ F' D F - D, with F = A - B G.  If F is
stable, the spectral norm of its inverse is that of Y with F' Y + Y F = -I (or F' Y F - Y = -I),
because the inverse is a positive map.  The discrete equation is turned into the continuous one by
N = (F - I)(F + I)⁻¹: F' D F - D = -C if and only if N' D + D N = -2 (F + I)⁻ᵀ C (F + I)⁻¹.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, schur
from scipy.linalg.lapack import dtrsyl

from .._check import Array

__all__ = ["ClosedLoop", "Complex", "ordered"]

Complex = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """A closed loop F in Schur form.

    Attributes
    ----------
    matrix : (n, n) array
        F.
    spectrum : (n,) complex array
        Its eigenvalues, the least stable one first.
    discrete : bool
    """

    matrix: Array
    spectrum: Complex
    discrete: bool
    _form: tuple[Array, Array, Array | None]

    @classmethod
    def of(cls, matrix: Array, *, discrete: bool) -> ClosedLoop | None:
        """Schur form of a closed loop; None if it overflows, or has the eigenvalue -1."""
        if not np.all(np.isfinite(matrix)):
            return None
        try:
            if not discrete:
                T, Z = schur(matrix, output="real")
                return cls(matrix, ordered(_values(T), discrete=False), False, (T, Z, None))
            inverse = np.asarray(np.linalg.inv(matrix + np.eye(len(matrix))), dtype=np.float64)
            T, Z = schur((matrix - np.eye(len(matrix))) @ inverse, output="real")
            values = np.linalg.eigvals(matrix).astype(np.complex128)
        except (LinAlgError, ValueError):  # no convergence; overflow
            return None
        return cls(matrix, ordered(values, discrete=True), True, (T, Z, inverse))

    @property
    def margin(self) -> float:
        """Distance of the spectrum from the boundary of stability; negative if it is crossed."""
        first = self.spectrum[0]
        return 1.0 - abs(first) if self.discrete else -float(first.real)

    def solve(self, C: Array) -> Array | None:
        """Symmetric D with F' D + D F = -C, or F' D F - D = -C; None if it is singular."""
        T, Z, inverse = self._form
        if inverse is not None:
            C = 2.0 * (inverse.T @ C @ inverse)
        inner, scale, info = dtrsyl(T, T, -(Z.T @ C @ Z), trana="T")
        if info < 0 or scale == 0 or not np.all(np.isfinite(inner)):
            return None
        D = Z @ (inner / scale) @ Z.T
        return np.asarray(0.5 * (D + D.T))

    @cached_property
    def inverse_norm(self) -> float:
        """Norm of the inverse of the derivative; inf unless the loop is seen to be stable.

        Y must be positive definite, which proves stability up to the rounding of Y.
        """
        if not self.margin > 0:
            return np.inf
        Y = self.solve(np.eye(len(self.matrix)))
        if Y is None:
            return np.inf
        values = np.linalg.eigvalsh(Y)
        return float(values[-1]) if values[0] > 0 else np.inf


def ordered(values: Complex, *, discrete: bool) -> Complex:
    """Eigenvalues, the least stable one first, and of a pair the one in the upper half plane."""
    key = np.abs(values) if discrete else values.real
    # Equal but for rounding is equal.
    level = np.round(key / max(float(np.max(np.abs(key))), 1e-300), 12)
    return values[np.lexsort((-values.imag, np.abs(values.imag), -level))]


def _values(T: Array) -> Complex:
    """Eigenvalues of a real Schur form, whose 2x2 blocks have equal diagonal entries."""
    values = np.diag(T).astype(np.complex128)
    below = np.diag(T, -1)
    for i in np.nonzero(below)[0]:
        turning = np.sqrt(complex(T[i, i + 1] * below[i]))
        values[i] = T[i, i] + turning
        values[i + 1] = T[i, i] - turning
    return values

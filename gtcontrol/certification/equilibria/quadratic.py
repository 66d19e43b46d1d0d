"""The covariance field as a quadratic map of the coordinates of a symmetric matrix.

S' = F(S) = M S + S Mᵀ + Q with M = A + Σ V_h S B_h, in coordinates s = svec(S) with respect to an
orthonormal basis of the symmetric matrices: F(s) = q + J s + T(s, s).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._check import Array
from ...parameters import Parameters

__all__ = ["Quadratic", "coordinates", "symmetric", "symmetric_basis"]


def symmetric_basis(d: int) -> Array:
    """Orthonormal basis of the symmetric matrices of order d, shape (d (d + 1)/2, d, d)."""
    rows, columns = np.triu_indices(d)
    made = np.zeros((rows.size, d, d))
    k = np.arange(rows.size)
    value = np.where(rows == columns, 1.0, np.sqrt(0.5))
    made[k, rows, columns] = value
    made[k, columns, rows] = value
    return made


def coordinates(S: Array) -> Array:
    """Coordinates of symmetric matrices (..., d, d) in :func:`symmetric_basis`."""
    rows, columns = np.triu_indices(S.shape[-1])
    return np.asarray(S[..., rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0)))


def symmetric(s: Array, d: int) -> Array:
    """Symmetric matrices (..., d, d) of given coordinates."""
    rows, columns = np.triu_indices(d)
    made = np.zeros((*s.shape[:-1], d, d))
    made[..., rows, columns] = s * np.where(rows == columns, 1.0, np.sqrt(0.5))
    made[..., columns, rows] = made[..., rows, columns]
    return made


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The covariance field of constant parameters.

    Parameters
    ----------
    A : (d, d) array
    V, B : (H, d, d) arrays
    Q : (d, d) array
    """

    A: Array
    V: Array
    B: Array
    Q: Array

    @classmethod
    def of(cls, p: Parameters) -> Quadratic:
        """Field of parameters."""
        d = p.dim
        Q = np.zeros((d, d)) if p.noise is None else np.asarray(p.noise)
        return cls(p.A, p.V.reshape(-1, d, d), p.B.reshape(-1, d, d), Q)

    @property
    def dim(self) -> int:
        """Dimension d of the tokens."""
        return int(self.A.shape[0])

    @property
    def noisy(self) -> bool:
        """Whether there is process noise, which does not conserve the rank."""
        return bool(np.any(self.Q))

    @cached_property
    def gain(self) -> float:
        """Size of attention: Σ ‖V_h‖ ‖B_h‖."""
        heads = zip(self.V, self.B, strict=True)
        return float(sum(np.linalg.norm(V) * np.linalg.norm(B) for V, B in heads))

    def changed(self, R: Array) -> Quadratic:
        """Field in the coordinates z of tokens x = R z, R invertible: S = R S̃ Rᵀ."""
        inverse = np.linalg.inv(R)
        return Quadratic(
            inverse @ self.A @ R,
            inverse @ self.V @ R,
            R.T @ self.B @ R,
            inverse @ self.Q @ inverse.T,
        )

    def generator(self, S: Array) -> Array:
        """M = A + Σ V_h S B_h for covariances (..., d, d)."""
        M = np.broadcast_to(self.A, S.shape).copy()
        for V, B in zip(self.V, self.B, strict=True):
            M += V @ S @ B
        return M

    def rate(self, S: Array) -> Array:
        """S' for covariances (..., d, d)."""
        half = self.generator(S) @ S
        return half + np.swapaxes(half, -1, -2) + self.Q

    def size(self, S: Array) -> float:
        """Size of the terms of S', whether or not they cancel: the unit of residuals."""
        terms = float(np.linalg.norm(self.A @ S)) + float(np.linalg.norm(self.Q))
        for V, B in zip(self.V, self.B, strict=True):
            terms += float(np.linalg.norm(V @ S) * np.linalg.norm(B @ S))
        return 2.0 * terms

    def pace(self, S: Array) -> float:
        """Size of the terms of M, the unit of the linearisation, whether or not they cancel."""
        return float(np.linalg.norm(self.A)) + self.gain * float(np.linalg.norm(S))

    def residual(self, S: Array) -> float:
        """Size of S' relative to its terms, 0 at an equilibrium."""
        size = self.size(S)
        return float(np.linalg.norm(self.rate(S))) / size if size > 0 else 0.0

    def linearisation(self, S: Array) -> Array:
        """Matrix (m, m) of D ↦ DF(S)[D] in orthonormal coordinates, m = d (d + 1)/2."""
        E = symmetric_basis(self.dim)
        half = self.generator(S) @ E
        for V, B in zip(self.V, self.B, strict=True):
            half = half + V @ E @ (B @ S)
        return coordinates(half + np.swapaxes(half, -1, -2)).T

    @cached_property
    def tensor(self) -> Array:
        """T (m, m, m), symmetric in the last two: F(s) = q + J s + T(s, s), DF = J + 2 T(s, ·)."""
        E = symmetric_basis(self.dim)
        m = E.shape[0]
        made = np.zeros((m, m, m))
        for V, B in zip(self.V, self.B, strict=True):
            half = np.einsum("iab,jbc->ijac", V @ E @ B, E, optimize=True)
            made += coordinates(half + np.swapaxes(half, -1, -2))
        made = 0.5 * (made + np.swapaxes(made, 0, 1))
        return np.ascontiguousarray(np.moveaxis(made, -1, 0))

    @cached_property
    def linear(self) -> Array:
        """J (m, m): the linearisation at S = 0."""
        return self.linearisation(np.zeros((self.dim, self.dim)))

"""The spectrum of A in groups, and bases of its invariant subspaces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import schur, solve_continuous_lyapunov, solve_sylvester

from .._check import Array

__all__ = ["Spectrum", "invariant_basis", "spectrum_of", "split", "spread"]

#: Real parts below this fraction of ‖A‖ count as zero.
AXIS = 1e-10

#: Real parts that differ by less than this fraction of ‖A‖ count as equal.
GAP = 1e-8

#: Condition up to which eigenvectors are taken as coordinates.
CONDITION = 1e6


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues ordered by falling real part, and how many count as what.

    Attributes
    ----------
    values : (d,) complex array
    size : float
        ‖A‖, to which the tolerances are relative.
    unstable, axis, stable : int
        Numbers of eigenvalues with positive, zero and negative real part.
    """

    values: NDArray[np.complex128]
    size: float
    unstable: int
    axis: int
    stable: int

    def gap(self, r: int) -> float:
        """Re λ_r - Re λ_{r+1}; inf if r is 0 or d."""
        if not 0 < r < len(self.values):
            return np.inf
        return float(self.values[r - 1].real - self.values[r].real)


def spectrum_of(A: Array, tolerance: float = AXIS) -> Spectrum:
    """Order the eigenvalues and classify them, relative to ‖A‖.

    A cluster of m equal eigenvalues is perturbed by the m-th root of the rounding, so the axis
    group is closed under neighbours that a defective cluster explains.
    """
    values = np.linalg.eigvals(A).astype(np.complex128)
    values = values[np.lexsort((-values.imag, -values.real))]
    size = float(np.linalg.norm(A, 2)) if A.size else 0.0
    near = np.abs(values.real) <= max(tolerance * size, 1e-300)
    near |= _defective(A, values, size)
    unstable = int(np.sum(~near & (values.real > 0)))
    axis = int(np.sum(near))
    return Spectrum(values, size, unstable, axis, len(values) - unstable - axis)


def _defective(A: Array, values: NDArray[np.complex128], size: float) -> NDArray[np.bool_]:
    """Eigenvalues that a cluster on the axis explains: its mean is there, its spread small."""
    found = np.zeros(len(values), dtype=bool)
    for i, value in enumerate(values):
        if abs(value.real) > 1e-3 * size or found[i]:
            continue
        centre = complex(0.0, value.imag)
        cluster = np.abs(values - centre) <= 2 * abs(value - centre) + 1e-300
        m = int(np.sum(cluster))
        if m < 2 or abs(value.real) > size * (1e3 * 2.3e-16) ** (1 / m):
            continue
        if abs(float(np.mean(values[cluster].real))) <= 1e-13 * size * len(A):
            found |= cluster
    return found


def invariant_basis(A: Array, spectrum: Spectrum, r: int) -> tuple[Array, Array]:
    """Orthonormal basis U (d, r) of the dominant invariant subspace, and Λ with A U = U Λ.

    Raises
    ------
    numpy.linalg.LinAlgError
        If there is no gap to order by.
    """
    T, Z = _ordered(A, spectrum, r)
    return Z[:, :r], T[:r, :r]


def split(A: Array, spectrum: Spectrum, r: int) -> tuple[Array, Array]:
    """Bases of the dominant invariant subspace (d, r) and of its invariant complement (d, d - r).

    Raises
    ------
    numpy.linalg.LinAlgError
        If there is no gap to order by.
    """
    T, Z = _ordered(A, spectrum, r)
    if r in (0, len(A)):
        return Z[:, :r], Z[:, r:]
    X = solve_sylvester(T[:r, :r], -T[r:, r:], -T[:r, r:])
    W = Z[:, r:] + Z[:, :r] @ X
    return Z[:, :r], np.asarray(np.linalg.qr(W)[0])


def spread(A: Array, U: Array, sign: int) -> Array:
    """Basis of the invariant subspace range(U) in which the symmetric part of A is sharp.

    With well-conditioned eigenvectors it is the real part of the spectrum; otherwise a Lyapunov
    function gives up a few percent of the distance to zero.
    """
    if not U.shape[1]:
        return U
    inner = U.T @ A @ U
    values, vectors = np.linalg.eig(inner)
    kept = values.imag >= 0
    parts = [vectors[:, kept].real, vectors[:, kept & (values.imag > 0)].imag]
    real = np.concatenate(parts, axis=1)
    if real.shape[1] == len(inner) and np.linalg.cond(real) < CONDITION:
        return np.asarray(U @ real)
    least = float(np.min(sign * values.real))
    size = float(np.linalg.norm(inner, 2))
    shift = least - (0.02 * least if least > 1e-6 * size else 0.02 * size)
    shifted = sign * inner - shift * np.eye(len(inner))
    H = solve_continuous_lyapunov(shifted.T, np.eye(len(inner)))
    root, vectors = np.linalg.eigh(0.5 * (H + H.T))
    return np.asarray(U @ (vectors / np.sqrt(np.maximum(root, 1e-300))))


def _ordered(A: Array, spectrum: Spectrum, r: int) -> tuple[Array, Array]:
    """Real Schur form with the r eigenvalues of largest real part first."""
    d = len(A)
    if r in (0, d):
        return A, np.eye(d)
    reals = spectrum.values.real
    middle = 0.5 * float(reals[r - 1] + reals[r])
    T, Z, count = schur(A, output="real", sort=lambda x, _: x > middle)
    if int(count) != r:
        raise np.linalg.LinAlgError("the eigenvalues are too close together to be ordered")
    return T, Z

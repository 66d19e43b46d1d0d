"""All equilibria of S' = A S + S Aᵀ + S K S, for symmetric K of any sign, up to a cap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _check
from .._check import Array
from .bernoulli import on_subspace, residual
from .lyapunov import LyapunovStatus, solve
from .spectrum import Spectrum, spectrum_of

__all__ = ["Equilibria", "Equilibrium", "equilibria"]

#: Eigenvalues closer than this fraction of ‖A‖ are one cluster.
CLUSTER = 1e-6


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """An equilibrium S = L Lᵀ.

    Attributes
    ----------
    factor : (d, p) array
        Factor L; the rank of S is p.
    modes : complex array (p,)
        Eigenvalues of A on the range of S.
    spectrum : complex array (d,)
        Eigenvalues of A + S K: S is stable among all covariances if they have negative real parts.
    attracts_rank : bool
        Whether data of its own rank are drawn to it: its modes grow faster than all others, and
        K makes them converge.
    isolated : bool
        False for one member of a continuum.
    residual : float
        |A S + S Aᵀ + S K S| relative to its terms.
    """

    factor: Array
    modes: NDArray[np.complex128]
    spectrum: NDArray[np.complex128]
    attracts_rank: bool
    isolated: bool
    residual: float

    @property
    def covariance(self) -> Array:
        """S, shape (d, d)."""
        return np.asarray(self.factor @ self.factor.T)

    @property
    def rank(self) -> int:
        """Rank of S."""
        return int(self.factor.shape[1])


@dataclass(frozen=True, eq=False)
class Equilibria:
    """The equilibria that were found, and how many there are.

    Attributes
    ----------
    found : tuple of Equilibrium
        By rank.
    count : int or None
        How many isolated equilibria there are (0 counts); None if that is not known, because K is
        indefinite and not all subspaces were looked at.
    continua : bool
        Whether there are also continua, of which at most one member each is listed.
    complete : bool
        Whether every invariant subspace was looked at.
    """

    found: tuple[Equilibrium, ...]
    count: int | None
    continua: bool
    complete: bool


@dataclass(frozen=True, eq=False)
class _Group:
    """A cluster of eigenvalues and the bases of its invariant subspaces, {0} first."""

    value: complex
    bases: tuple[Array, ...]
    continuum: bool


def equilibria(A: ArrayLike, K: ArrayLike, most: int = 256) -> Equilibria:
    """List equilibria: one for each A-invariant subspace on which X > 0 exists.

    Parameters
    ----------
    A, K : (d, d) arrays
        K symmetric.
    most : int
        Number of subspaces that are looked at.
    """
    A = _check.square("A", A)
    K = _check.symmetric("K", K, len(A))
    most = _check.integer("most", most, low=1)
    groups, whole = _groups(A), spectrum_of(A)
    eigen = np.linalg.eigvalsh(K)
    sign = 1 if eigen[0] > 0 else -1 if eigen[-1] < 0 else 0
    if sign:
        # X > 0 needs Λ antistable if K < 0, and stable if K > 0.
        groups = [g for g in groups if sign * g.value.real < -1e-12 * _size(A)]
    total = 1
    for group in groups:
        total *= len(group.bases)
    found, continua, looked = [], False, 0
    for choice in _choices(groups):
        if looked == most:
            break
        looked += 1
        made, many = _on(A, K, whole, [g.bases[i] for g, i in zip(groups, choice, strict=True)])
        continua |= many
        if made is not None:
            found.append(made)
    continua |= any(g.continuum for g in groups)
    complete = looked == total
    count = total if sign else sum(e.isolated for e in found) if complete else None
    found.sort(key=lambda e: e.rank)
    return Equilibria(tuple(found), count, continua, complete)


def _choices(groups: list[_Group]) -> Iterator[tuple[int, ...]]:
    """Ways to take one subspace of each group, those of few groups first."""
    for size in range(len(groups) + 1):
        for chosen in combinations(range(len(groups)), size):
            for picks in product(*(range(1, len(groups[i].bases)) for i in chosen)):
                choice = [0] * len(groups)
                for i, pick in zip(chosen, picks, strict=True):
                    choice[i] = pick
                yield tuple(choice)


def _size(A: Array) -> float:
    return max(float(np.linalg.norm(A, 2)), 1e-300)


def _groups(A: Array) -> list[_Group]:
    """Clusters of eigenvalues with nonnegative imaginary part."""
    size = _size(A)
    values, vectors = np.linalg.eig(A)
    left = sorted(range(len(values)), key=lambda i: (-values[i].real, -values[i].imag))
    groups = []
    while left:
        head = values[left[0]]
        cluster = [i for i in left if abs(values[i] - head) <= CLUSTER * size]
        left = [i for i in left if i not in cluster]
        if head.imag < -CLUSTER * size:
            continue
        real = abs(head.imag) <= CLUSTER * size
        if len(cluster) == 1:
            v = vectors[:, cluster[0]]
            basis = v.real[:, None] if real else np.stack([v.real, v.imag], axis=1)
            groups.append(_Group(complex(head), (basis[:, :0], np.linalg.qr(basis)[0]), False))
        else:
            groups.append(_clustered(A, complex(np.mean(values[cluster])), len(cluster), real))
    return groups


def _clustered(A: Array, value: complex, m: int, real: bool) -> _Group:
    """Invariant subspaces of an m-fold eigenvalue: a chain if it has one eigenvector."""
    size = _size(A)
    shift = A - value.real * np.eye(len(A))
    if not real:
        shift = (shift @ shift + value.imag**2 * np.eye(len(A))) / size
    power, bases = np.eye(len(A)), []
    for _ in range(m):
        power = power @ shift / size
        right, sigma = np.linalg.svd(power)[2], np.linalg.svd(power, compute_uv=False)
        bases.append(right[sigma <= CLUSTER].T)
        if bases[-1].shape[1] >= m * (1 if real else 2):
            break
    width = 1 if real else 2
    several = bases[0].shape[1] > width
    kept = bases[-1:] if several else bases
    return _Group(value, (np.zeros((len(A), 0)), *kept), several)


def _on(A: Array, K: Array, whole: Spectrum, bases: list[Array]) -> tuple[Equilibrium | None, bool]:
    """Equilibrium on a sum of subspaces, and whether it belongs to a continuum."""
    d = len(A)
    U = np.linalg.qr(np.concatenate([np.zeros((d, 0)), *bases], axis=1))[0]
    Lam = U.T @ A @ U
    many = False
    if not U.shape[1]:
        factor = U
    else:
        solution = solve(Lam.T, U.T @ K @ U)
        if solution.status is LyapunovStatus.NO_SOLUTION or solution.X is None:
            return None, False
        if solution.status is LyapunovStatus.UNIQUE:
            made = on_subspace(U, Lam, K)
            if made is None:
                return None, False
            factor = made[0]
        else:
            many = True
            X = _definite(solution.X, solution.kernel)
            if X is None:
                return None, False
            values, vectors = np.linalg.eigh(X)
            factor = U @ (vectors / np.sqrt(values))
    S = factor @ factor.T
    spectrum = np.linalg.eigvals(A + S @ K).astype(np.complex128)
    modes = np.linalg.eigvals(Lam).astype(np.complex128)
    attracts = _attracts(whole, modes, many)
    return Equilibrium(factor, modes, spectrum, attracts, not many, residual(A, K, S)), many


def _attracts(spectrum: Spectrum, modes: NDArray[np.complex128], many: bool) -> bool:
    p = len(modes)
    if many or p == 0:
        return p == 0 and spectrum.unstable == spectrum.axis == 0
    dominant = np.sum(modes.real) >= np.sum(spectrum.values[:p].real) - 1e-9 * spectrum.size * p
    gap = spectrum.gap(p) > CLUSTER * spectrum.size
    return bool(dominant and gap and np.min(modes.real) > 1e-12 * spectrum.size)


def _definite(X: Array, kernel: Array) -> Array | None:
    """Positive definite member of X + span(kernel), if the projection of I on it gives one."""
    direction = np.einsum("m,mij->ij", np.einsum("mii->m", kernel), kernel)
    size = max(float(np.linalg.norm(X, 2)), 1.0)
    for step in (0.0, 1.0, 10.0, 1e3):
        made = X + step * size * direction
        if np.linalg.eigvalsh(made)[0] > 1e-10 * size:
            return np.asarray(made)
    return None

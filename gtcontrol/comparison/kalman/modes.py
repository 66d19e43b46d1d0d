"""Modes of A in groups, and the modes that measurements do not see or noise does not drive.

The test is that of Popov, Belevitch and Hautus: (C, A) has an unseen mode at λ if and only if
[A - λ; C] has a kernel, whose vectors are the directions that stay unseen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eig, matrix_balance
from scipy.sparse.csgraph import connected_components

from ..._check import Array
from ...results.comparison import HiddenMode
from ...riccati_flow.spectrum import Spectrum, spectrum_of

__all__ = ["Hidden", "first_within", "groups", "hidden", "hull"]

Complex = NDArray[np.complex128]

EPS = 2.220446049250313e-16

#: Eigenvalues within this many roundings (times their condition) of the axis lie on it.
ROUNDINGS = 64

#: No eigenvalue farther from the axis than this fraction of ‖A‖ is ever taken to lie on it.
FARTHEST = 1e-8

#: [A - λ; C], scaled, is singular if its smallest singular value is below this.
SINGULAR = 1e-12

#: Eigenvalues closer than this fraction of ‖A‖ may be one defective eigenvalue.
CLUSTER = 1e-5

#: A direction lies in a subspace if it leaves it by less than this.
INSIDE = 1e-7

#: Directions smaller than this are not new ones of an invariant subspace.
NEW = 1e-10


@dataclass(frozen=True, eq=False)
class Hidden:
    """An eigenvalue λ with hidden directions.

    Attributes
    ----------
    value : complex
    space : complex array (d, m)
        Orthonormal basis of the directions: the kernel of [A - λ; C].
    defect : float
        Smallest singular value of [A - λ; C], scaled.
    """

    value: complex
    space: Complex
    defect: float

    @property
    def direction(self) -> Complex:
        """The first direction (d,), of unit length, its largest entry real and positive."""
        v = self.space[:, 0]
        largest = v[int(np.argmax(np.abs(v)))]
        return np.asarray(v * (abs(largest) / largest))

    def within(self, basis: Array) -> Hidden | None:
        """Hidden directions in the range of an orthonormal basis (d, k); None if there are none."""
        outside = self.space - basis @ (basis.T @ self.space)
        _, sigma, right = np.linalg.svd(outside, full_matrices=False)
        kept = right.conj().T[:, sigma <= INSIDE]
        return Hidden(self.value, self.space @ kept, self.defect) if kept.shape[1] else None

    def named(self, prop: str) -> HiddenMode:
        """As part of a result."""
        v = self.direction
        parts = np.stack([v.real, v.imag], axis=1)
        return HiddenMode(float(self.value.real), float(self.value.imag), self.defect, parts, prop)


def first_within(found: tuple[Hidden, ...], basis: Array) -> Hidden | None:
    """The first of hidden modes that has directions in the range of a basis (d, k)."""
    return next((made for h in found if (made := h.within(basis)) is not None), None)


def groups(A: Array, *, whole: bool = False) -> Spectrum:
    """Order the eigenvalues, and say which lie right of, on and left of the imaginary axis.

    On the axis are those that rounding may have moved off it: rounding moves an eigenvalue by
    its condition times ε‖A‖, where A stands for the irreducible block that the eigenvalue belongs
    to, balanced.  So neither units of states nor fast modes elsewhere matter.

    Parameters
    ----------
    A : (d, d) array
    whole : bool
        Whether to take A as one block, which is coarser.
    """
    size = float(np.linalg.norm(A, 2)) if A.size else 0.0
    labels = (
        np.zeros(len(A), dtype=int) if whole else connected_components(A != 0, True, "strong")[1]
    )
    values: list[complex] = []
    counts = np.zeros(3, dtype=int)
    for label in np.unique(labels):
        rows = labels == label
        made = _classified(A[np.ix_(rows, rows)])
        counts += (made.unstable, made.axis, made.stable)
        onto = np.arange(len(made.values)) - made.unstable
        exact = np.where((onto >= 0) & (onto < made.axis), 1j * made.values.imag, made.values)
        values += exact.tolist()
    found = np.array(values, dtype=np.complex128)
    # Rounding must not put an unstable eigenvalue behind one on the axis.
    found = found[np.lexsort((-found.imag, -found.real))]
    return Spectrum(found, size, int(counts[0]), int(counts[1]), int(counts[2]))


def _classified(A: Array) -> Spectrum:
    if not A.any():
        return spectrum_of(A)
    made = np.asarray(matrix_balance(A, permute=False)[0], dtype=np.float64)
    size = float(np.linalg.norm(made, 2))
    values, left, right = _eigen(made)
    overlaps = np.abs(np.sum(left.conj() * right, axis=0))
    near = np.abs(values.real) <= FARTHEST * size
    condition = float(np.max(1 / np.maximum(overlaps[near], EPS), initial=1.0))
    return spectrum_of(made, min(ROUNDINGS * EPS * condition * len(A), FARTHEST))


def _eigen(A: Array) -> tuple[Complex, Complex, Complex]:
    """Eigenvalues, left and right eigenvectors of unit length."""
    made: Any = eig(A, left=True, right=True)
    return made[0], made[1], made[2]


def hidden(A: Array, C: Array, above: float = -np.inf) -> tuple[Hidden, ...]:
    """Modes of A with Re λ >= `above` that C does not see, one of each complex pair.

    Parameters
    ----------
    A : (d, d) array
    C : (p, d) array
    above : float
        Least real part.
    """
    units = _units(A, C)
    A, C = A / units[:, None] * units, C * units
    size = max(float(np.linalg.norm(A, 2)), 1e-300)
    weight = float(np.linalg.norm(C, 2)) if C.size else 0.0
    seen = C / weight if weight > 0 else C
    found: list[Hidden] = []
    for value in _candidates(A, size):
        if value.real < above or value.imag < -SINGULAR * size:
            continue
        if any(abs(value - other.value) <= CLUSTER * size for other in found):
            continue
        test = np.concatenate([(A - value * np.eye(len(A))) / size, seen])
        _, sigma, right = np.linalg.svd(test)
        if sigma[-1] <= SINGULAR:
            kernel = units[:, None] * right[sigma <= SINGULAR].conj().T
            found.append(Hidden(complex(value), np.linalg.qr(kernel)[0], float(sigma[-1])))
    return tuple(found)


def _units(A: Array, C: Array) -> Array:
    """Units of the states in which all are measured alike, if A allows them: powers of two."""
    sizes = np.max(np.abs(C), axis=0) if C.size else np.zeros(len(A))
    largest = float(np.max(sizes, initial=0.0))
    if largest == 0:
        return np.ones(len(A))
    made = np.exp2(-np.round(np.log2(np.where(sizes > 0, sizes, largest))))
    grown = float(np.linalg.norm(A / made[:, None] * made, 2))
    return made if grown <= 10 * float(np.linalg.norm(A, 2)) else np.ones(len(A))


def _candidates(A: Array, size: float) -> list[complex]:
    """Eigenvalues, and means of those that may be one defective eigenvalue."""
    values = np.linalg.eigvals(A).astype(np.complex128)
    values = values[np.lexsort((-values.imag, -values.real))]
    made: list[complex] = []
    for value in values:
        cluster = np.abs(values - value) <= CLUSTER * size
        mean = complex(np.mean(values[cluster]))
        if abs(mean.imag) <= CLUSTER * size and abs(value.imag) <= CLUSTER * size:
            mean = complex(mean.real, 0.0)
        made += [complex(value), mean]
    return made


def hull(A: Array, X: Array) -> Array:
    """Orthonormal basis (d, k) of the smallest A-invariant subspace that holds the columns of X.

    Parameters
    ----------
    A : (d, d) array
    X : (d, m) array
        The sizes of its columns do not matter.
    """
    d = len(A)
    sizes = np.max(np.abs(X), axis=0) if X.size else np.zeros(0)
    fresh = X[:, sizes > 0] / sizes[sizes > 0]
    size = max(float(np.linalg.norm(A, 2)), 1e-300)
    basis = np.zeros((d, 0))
    while fresh.shape[1] and basis.shape[1] < d:
        for _ in range(2):  # twice is enough
            fresh = fresh - basis @ (basis.T @ fresh)
        left, sigma, _ = np.linalg.svd(fresh, full_matrices=False)
        fresh = left[:, sigma > NEW]
        basis = np.concatenate([basis, fresh], axis=1)
        fresh = A @ fresh / size
    return basis

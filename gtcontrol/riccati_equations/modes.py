"""Modes that the inputs do not reach, or the weights do not see (Popov, Belevitch, Hautus).

A mode λ of A is unreached if w* [A - λ, B] = 0 for some w.  In floats: if a perturbation of the
size of the rounding of the data makes it so, which is a singular value of [A - λ, B], minimised
over λ near an eigenvalue by turns with w (for w fixed the best λ is w* A w).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eig

from .._check import Array
from .closed_loop import Complex

__all__ = ["Mode", "near_boundary", "peeled", "unreached", "worded"]

#: A mode is unreached if its distance is below this multiple of n ε, relatively.
UNREACHED = 20.0

#: An eigenvalue is on the boundary if perturbations of this multiple of n ε ‖A‖ put it there.
AXIS = 10.0

EPS = 2.220446049250313e-16

#: Eigenvalues this near to each other, relatively, may be one defective eigenvalue; the distance
#: is widened for one of large condition, up to the second number.
CLUSTER, WIDEST = 1e-8, 1e-2

MOST_STEPS = 20


@dataclass(frozen=True, eq=False)
class Mode:
    """An eigenvalue with its direction.

    Attributes
    ----------
    value : complex
    direction : (n,) complex array
        Unit vector w.
    side : int
        1 if it is unstable, 0 on the boundary of stability (to rounding), -1 if it is stable.
    distance : float
        Size of the part that is reached, relative to A and B.
    rounding : float
        Size of the rounding of A: smaller real parts are shown as zero.
    """

    value: complex
    direction: Complex
    side: int
    distance: float
    rounding: float

    @property
    def columns(self) -> Array:
        """Real vectors that span the direction and its conjugate, (n, 1) or (n, 2)."""
        w = self.direction
        if self.value.imag == 0:
            return np.asarray(w.real[:, None])
        return np.stack([w.real, w.imag], axis=1)


def unreached(A: Array, B: Array, *, discrete: bool) -> list[Mode]:
    """Modes of A that B does not reach; of a conjugate pair, the one with positive imaginary part.

    Parameters
    ----------
    A : (n, n) array
    B : (n, m) array
    discrete : bool
        Whether the boundary of stability is the unit circle.
    """
    n = len(A)
    size, weight = float(np.linalg.norm(A, 2)), float(np.linalg.norm(B, 2))
    size = size if size > 0 else 1.0
    shown = B / weight if weight > 0 else B
    scaled = A / size
    values, spreads = _eigenvalues(scaled)
    found: list[Mode] = []
    done: list[tuple[complex, float]] = []
    for k in np.argsort(-values.real):
        spread = float(spreads[k])
        start = _cluster_mean(values, int(k), min(max(spread, CLUSTER), WIDEST))
        if start.imag < 0:
            continue
        value, directions, distance = _nearest(scaled, shown, start)
        if not directions.shape[1] or any(abs(value - v) <= 10 * (spread + s) for v, s in done):
            continue
        done.append((value, spread))
        side = _side(scaled, shown, value, size, spread, discrete=discrete)
        found += [
            Mode(complex(value * size), w, side, distance, EPS * n * size) for w in directions.T
        ]
    return found


def peeled(
    A: Array, B: Array, sides: tuple[int, ...], *, discrete: bool
) -> tuple[Array, list[Mode]]:
    """Orthonormal basis of the left invariant subspace of all unreached modes of given sides.

    Modes of the quotient by what was found are looked for until there are none, so that chains
    of defective eigenvalues are found as well.

    Returns
    -------
    basis : (n, k) array
        W with A' W = W Λ and B' W = 0, to rounding.
    modes : list of Mode
        Those of the first round, whose directions are eigenvectors.
    """
    n = len(A)
    basis, rest = np.zeros((n, 0)), np.eye(n)
    first: list[Mode] = []
    while rest.shape[1]:
        # Modulo what was found, in coordinates orthogonal to it: also invariant from the left.
        inner, inputs = rest.T @ A @ rest, rest.T @ B
        modes = [m for m in unreached(inner, inputs, discrete=discrete) if m.side in sides]
        if not modes:
            break
        first = first or modes
        columns = np.concatenate([m.columns for m in modes], axis=1)
        full, _ = np.linalg.qr(columns, mode="complete")
        k = columns.shape[1]
        basis = np.concatenate([basis, rest @ full[:, :k]], axis=1)
        rest = rest @ full[:, k:]
    return basis, first


def near_boundary(matrix: Array, *, discrete: bool) -> Complex:
    """Eigenvalues that the rounding of a matrix may put on the boundary of stability."""
    if not np.all(np.isfinite(matrix)):
        return np.zeros(0, dtype=np.complex128)
    size, n = float(np.linalg.norm(matrix, 2)), len(matrix)
    values, spread = _eigenvalues(matrix / size if size > 0 else matrix)
    values, spread = values * size, spread * size
    away = np.abs(np.abs(values) - 1.0) if discrete else np.abs(values.real)
    kept = [
        value
        for value in values[away <= spread]
        if _distance(matrix, _edge(complex(value), discrete=discrete)) <= AXIS * EPS * n * size
    ]
    return np.array(kept, dtype=np.complex128)


def worded(mode: Mode, lift: Array) -> str:
    """Mode and direction in words.

    Parameters
    ----------
    mode : Mode
    lift : (d, n) array
        Takes the direction to the coordinates of the user.
    """
    w = lift @ mode.direction
    w = w / w[np.argmax(np.abs(w))]
    real = mode.value.real if abs(mode.value.real) > mode.rounding else 0.0
    value = complex(real, mode.value.imag)
    number = f"{value.real:.6g}" if value.imag == 0 else f"{value.real:.6g} ± {value.imag:.6g}i"
    number = f"±{value.imag:.6g}i" if value.real == 0 != value.imag else number
    shown = ", ".join(_entry(x) for x in w[:8])
    near = (
        f", to within the rounding of the data (distance {mode.distance:.1g})"
        if mode.distance > 2 * EPS * len(w)
        else ""
    )
    return f"λ = {number} in the direction ({shown}{', ...' if len(w) > 8 else ''}){near}"


def _eigenvalues(matrix: Array) -> tuple[Complex, Array]:
    """Eigenvalues of a matrix of norm 1, and how far rounding may have moved each of them.

    To first order ε over the overlap of left and right eigenvector; for a cluster of m, which may
    be one defective eigenvalue, no more than a few times the m-th root of ε.
    """
    values, left, right = eig(matrix, left=True, right=True)  # type: ignore[misc]
    n = len(values)
    overlap = np.abs(np.sum(left.conj() * right, axis=0))
    first = AXIS * EPS * n / np.maximum(overlap, EPS)
    count = np.sum(np.abs(values[:, None] - values) <= WIDEST, axis=0)
    return values, np.minimum(first, 3.0 * (EPS * n) ** (1.0 / count))


def _entry(x: complex) -> str:
    if abs(x) < 1e-12:
        return "0"
    if abs(x.imag) < 1e-12:
        return f"{x.real:.4g}"
    if abs(x.real) < 1e-12:
        return f"{x.imag:.4g}i"
    return f"{x.real:.4g}{x.imag:+.4g}i"


def _cluster_mean(values: Complex, k: int, width: float) -> complex:
    """Mean of the eigenvalues that a defective one may have been torn into."""
    mean = complex(np.mean(values[np.abs(values - values[k]) <= width]))
    return complex(mean.real) if abs(mean.imag) <= 1e-3 * width else mean


def _nearest(A: Array, B: Array, value: complex) -> tuple[complex, Complex, float]:
    """Local minimum over λ of the least singular value of [A - λ, B].

    Returns λ, the singular vectors whose values count as zero, as columns, and the least value.
    """
    n = len(A)
    real = value.imag == 0
    last = np.inf
    for _ in range(MOST_STEPS):
        shifted = A - (value.real if real else value) * np.eye(n)
        left, sigma, _ = np.linalg.svd(np.concatenate([shifted, B], axis=1))
        if not sigma[-1] < 0.9 * last:
            break
        last = float(sigma[-1])
        w = left[:, -1]
        moved = complex(np.vdot(w, A @ w))
        value = complex(moved.real) if real else moved
    zero = sigma <= UNREACHED * EPS * n
    columns = [_turned(w.astype(np.complex128)) for w in left[:, :n][:, zero].T]
    shape = np.zeros((n, 0), dtype=np.complex128)
    return value, np.stack(columns, axis=1) if columns else shape, float(sigma[-1])


def _turned(w: Complex) -> Complex:
    """Make the largest entry real and positive."""
    big = w[np.argmax(np.abs(w))]
    return np.asarray(w * (abs(big) / big))


def _side(A: Array, B: Array, value: complex, size: float, spread: float, *, discrete: bool) -> int:
    """Side of a mode of size · A: 0 if rounding of the data may put it on the boundary, unreached.

    How far rounding may move it must reach the boundary, and, as that says little for a defective
    eigenvalue, the perturbation that is needed must be small: it is the least singular value at
    the nearest point of the boundary.
    """
    n = len(A)
    key = (abs(value) * size - 1.0) / size if discrete else value.real
    if abs(key) <= spread:
        edge = _edge(value * size, discrete=discrete) / size
        shifted = A - (edge.real if edge.imag == 0 else edge) * np.eye(n)
        sigma = np.linalg.svd(np.concatenate([shifted, B], axis=1), compute_uv=False)
        if sigma[-1] <= AXIS * EPS * n:
            return 0
    return 1 if key > 0 else -1


def _distance(matrix: Array, value: complex) -> float:
    """Size of the least perturbation that makes `value` an eigenvalue."""
    return float(np.linalg.svd(matrix - value * np.eye(len(matrix)), compute_uv=False)[-1])


def _edge(value: complex, *, discrete: bool) -> complex:
    """Nearest point of the boundary of stability."""
    if not discrete:
        return complex(0.0, value.imag)
    return value / abs(value) if value else 1.0 + 0j

"""Real rays along which the heads let covariances grow: N(u) = Σ_h (uᵀB_hu) V_h u = λ u, λ > 0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..._check import Array
from ...gaussian import norm
from ...parameters import Parameters

__all__ = ["Cubic", "Ray", "polish", "rays"]

#: Above this order heads are used through a sketch of their range, and few starts are tried.
LARGE = 64

#: Columns of the sketch, and what it may miss, relative.
SKETCH, MISSED = 80, 1e-10

#: Starts on the sphere, and steps of its flow, for small and for large orders.
STARTS, STEPS = (40, 3), (200, 300)

#: Length of a step on the sphere, and the motion, relative to the growth, at which it has ended.
#: For large orders the step is that of the power method.
STEP, ENDED = (0.3, 1.0), 1e-3

#: Steps after which a flow of large order that moves faster than this does not look like ending.
PATIENCE, RESTLESS = 100, 0.3

#: Imaginary parts of eigenvalues, and gaps between them, below this fraction count as zero.
EQUAL = 1e-8

#: Entries of a unit vector below this are set to zero: structured parameters have exact rays.
CLEAN = 1e-13

#: Residual of a ray, relative to the size of the cubic map.
RESIDUAL = 1e-11


class Ray(NamedTuple):
    """Unit vector u (d,) and λ > 0 in the units of the scaled heads."""

    u: Array
    rate: float


class Cubic:
    """The cubic map N and its derivative, of heads scaled to largest entries of one."""

    def __init__(self, parameters: Parameters) -> None:
        self.dim = parameters.dim
        heads = [(V, B) for V, B, _ in parameters.heads]
        self.units = tuple(max(float(np.max(np.abs(h[i]))) for h in heads) for i in (0, 1))
        self.empty = min(self.units) == 0
        v, b = (unit or 1.0 for unit in self.units)
        self.values = [V / v for V, _ in heads]
        self.scores = [B / b for _, B in heads]
        self.thin = [_factored(M) for M in (*self.values, *self.scores)]

    def _apply(self, which: int, u: Array) -> Array:
        left, right = self.thin[which]
        return left @ u if right is None else left @ (right @ u)

    def __call__(self, u: Array) -> Array:
        """N of a vector (d,), or of the columns of a matrix (d, k)."""
        H = len(self.values)
        weights = (np.sum(u * self._apply(H + h, u), axis=0) for h in range(H))
        return np.asarray(sum(w * self._apply(h, u) for h, w in enumerate(weights)))

    def derivative(self, u: Array) -> Array:
        """Derivative of N at u, shape (d, d)."""
        pushed = np.column_stack([V @ u for V in self.values])
        scores = [B @ u for B in self.scores]
        tilts = [s + u @ B for s, B in zip(scores, self.scores, strict=True)]
        made = pushed @ np.array(tilts)
        for V, s in zip(self.values, scores, strict=True):
            made += (u @ s) * V
        return np.asarray(made)

    def spread(self, u: Array) -> Array:
        """Σ_h V_h u uᵀB_h, the part of the derivative that acts on further columns of a factor."""
        pushed = np.column_stack([V @ u for V in self.values])
        return np.asarray(pushed @ np.array([u @ B for B in self.scores]))


def rays(cubic: Cubic, guesses: tuple[Array, ...] = ()) -> Iterator[Ray]:
    """Find growing rays, those that attract nearby covariances of rank one first.

    Parameters
    ----------
    cubic : Cubic
    guesses : tuple of (d,) arrays
        Directions from which to look first.
    """
    if cubic.empty:
        return
    found: list[Array] = []
    for start in _starts(cubic, guesses):
        ray = polish(cubic, start)
        if ray is not None and all(abs(ray.u @ u) < 1 - EQUAL for u in found):
            found.append(ray.u)
            yield ray


def _starts(cubic: Cubic, guesses: tuple[Array, ...]) -> Iterator[Array]:
    yield from guesses
    yield from _eigenvectors(cubic) if len(cubic.values) == 1 else _limits(cubic)


def polish(cubic: Cubic, guess: Array) -> Ray | None:
    """Newton's method for N(u) = λ u; None if it does not converge to a ray with λ > 0."""
    u = guess / max(norm(guess), 1e-300)
    best: Ray | None = None
    least = np.inf
    for _ in range(12):
        image = cubic(u)
        rate = float(u @ image)
        defect = image - rate * u
        size = norm(defect)
        stalled = size > 0.5 * least and least <= RESIDUAL * abs(rate)
        if size < least:
            best, least = Ray(u, rate), size
        if stalled or size <= 1e-15 * abs(rate) or size > 100 * least:
            break
        # Bordered system: the step is orthogonal to u, and λ moves with it.
        system = np.block(
            [[cubic.derivative(u) - rate * np.eye(cubic.dim), -u[:, None]], [u, np.zeros(1)]]
        )
        try:
            step = np.linalg.solve(system, np.append(-defect, 0.0))[:-1]
        except np.linalg.LinAlgError:
            break
        if not np.all(np.isfinite(step)) or norm(step) > 0.5:
            break
        u = u + step
        u = u / norm(u)
    if best is None or not best.rate > 0 or least > RESIDUAL * max(best.rate, norm(cubic(best.u))):
        return None
    clean = np.where(np.abs(best.u) < CLEAN, 0.0, best.u)
    clean = clean / norm(clean)
    return Ray(clean, best.rate)


def _factored(M: Array) -> tuple[Array, Array | None]:
    """M itself, or thin factors of it if it is large and of low rank."""
    d = len(M)
    if d <= max(LARGE, 2 * SKETCH):
        return M, None
    basis = np.linalg.qr(M @ np.random.default_rng(0).standard_normal((d, SKETCH)))[0]
    right = basis.T @ M
    if float(np.max(np.abs(M - basis @ right))) > MISSED * float(np.max(np.abs(M))):
        return M, None
    return basis, right


def _eigenvectors(cubic: Cubic) -> list[Array]:
    """Real eigenvectors of one value matrix with ν uᵀBu > 0; those that attract first.

    The ray of (ν, u) attracts if (Re ν_j - ν) uᵀBu < 0 for the other eigenvalues ν_j.
    """
    left, right = cubic.thin[0]
    try:
        values, vectors = np.linalg.eig(left if right is None else right @ left)
    except np.linalg.LinAlgError:
        return []
    size = float(np.max(np.abs(values), initial=0.0))
    real = (np.abs(values.imag) <= EQUAL * size) & (np.abs(values) > EQUAL * size)
    order = [i for i in np.argsort(-np.abs(values)).tolist() if real[i]]
    B = 0.5 * (cubic.scores[0] + cubic.scores[0].T)
    made: list[tuple[float, Array]] = []
    done: set[int] = set()
    for i in order:
        if i in done:
            continue
        same = [j for j in order if abs(values[j] - values[i]) <= EQUAL * size]
        done |= set(same)
        basis = np.linalg.qr(vectors[:, same].real)[0]
        basis = basis if right is None else np.linalg.qr(left @ basis)[0]
        # In an eigenspace the direction that grows fastest is an eigenvector of B there.
        weights, inner = np.linalg.eigh(values[i].real * (basis.T @ B @ basis))
        if weights[-1] > 0:
            others = np.append(np.delete(values.real, same), [] if right is None else 0.0)
            gaps = np.sign(values[i].real) * (values[i].real - others)
            made.append((float(np.min(gaps, initial=size)), basis @ inner[:, -1]))
    return [u for _, u in sorted(made, key=lambda ray: -ray[0])]


def _limits(cubic: Cubic) -> list[Array]:
    """Where the flow of N on the sphere leads from several starts, fastest growth first."""
    large = cubic.dim > LARGE
    count, steps = STARTS[large], STEPS[large]
    U = np.random.default_rng(0).standard_normal((cubic.dim, count))
    U /= np.linalg.norm(U, axis=0)
    starts = [] if large else [U[:, j] for j in range(count)]
    for step in range(steps):
        image = cubic(U)
        rates = np.sum(U * image, axis=0)
        sizes = np.linalg.norm(image, axis=0)
        move = image - rates * U
        pace = np.linalg.norm(move, axis=0)
        ended = pace <= ENDED * np.abs(rates)
        hopeless = large and step == PATIENCE and np.all(pace > RESTLESS * sizes)
        if ended.all() or hopeless:
            break
        U = U + STEP[large] * move / np.where(sizes > 0, sizes, 1.0)
        U /= np.linalg.norm(U, axis=0)
    order = np.argsort(-rates)
    return [U[:, j] for j in order if rates[j] > 0 and (ended[j] or not large)] + starts

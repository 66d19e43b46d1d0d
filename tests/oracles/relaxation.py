"""Least-energy paths of factors by direct minimisation: the discrete counterpart of a geodesic.

On a prescribed path X(t) the least ∫ |[A b]|² dt with X' = [A b] X is ∫ |X' X⁺|² dt, where
X = [[L, m], [0, 1]] (or X = L without a mean).  The nodes of a polygon and the rotation of its
last factor are found by Levenberg–Marquardt.  The result is a local minimum, never a saddle,
and approximates an extremal to second order in the length of the intervals.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, expm

Array = NDArray[np.float64]

#: Size of the random linear map that moves the middle of a path (its logarithm, per entry).
DETOUR = 1.0

#: Bound on the iterations of a relaxation, and the relative drop that counts as none.
ITERATIONS = 300
ENOUGH = 1e-9


def paths(
    start: Array, target: Array, count: int, intervals: int, rng: np.random.Generator
) -> Iterator[Array]:
    """Polygons of factors (intervals + 1, d, r) from `start` to a factor of the target.

    The first is the transport geodesic; the others pass through its midpoint moved by a random
    linear map.  Each leg is aligned by Procrustes rotations, so that no path loses rank.
    """
    d = start.shape[0]
    t = np.linspace(0.0, 1.0, intervals + 1)[:, None, None]
    end = align(start, target)
    yield (1 - t) * start + t * end
    for _ in range(count - 1):
        middle = align(start, expm(DETOUR * rng.standard_normal((d, d))) @ (start + end) / 2)
        last = align(middle, target)
        yield np.where(
            t < 0.5, (1 - 2 * t) * start + 2 * t * middle, (2 - 2 * t) * middle + (2 * t - 1) * last
        )


def align(reference: Array, factor: Array) -> Array:
    """`factor` times the rotation that brings it nearest to `reference`."""
    W, _, Zt = np.linalg.svd(factor.T @ reference)
    return np.asarray(factor @ (W @ Zt))


def expm_and_derivatives(M: Array, directions: Array) -> tuple[Array, Array]:
    """e^M and its Fréchet derivatives: e^[[M, E], [0, M]] holds both.

    Parameters
    ----------
    M : (d, d) array
    directions : (n, d, d) array, n > 0
    """
    n, d, _ = directions.shape
    blocks = np.zeros((n, 2 * d, 2 * d))
    blocks[:, :d, :d] = blocks[:, d:, d:] = M
    blocks[:, :d, d:] = directions
    made = expm(blocks)
    return made[0, :d, :d], made[:, :d, d:]


class Polygon:
    """A path of factors, and of means unless they are None, that can be relaxed.

    Parameters
    ----------
    factors : (N + 1, d, r) array
    means : (N + 1, d) array or None
    """

    def __init__(self, factors: Array, means: Array | None) -> None:
        self.intervals = len(factors) - 1
        _, self.dim, self.rank = factors.shape
        self.nodes = factors if means is None else _homogeneous(factors, means)
        i, j = np.triu_indices(self.rank, 1)
        self.skew = np.zeros((i.size, self.rank, self.rank))
        self.skew[np.arange(i.size), i, j] = 1.0
        self.skew -= np.swapaxes(self.skew, 1, 2)

    def relax(self) -> tuple[float, Array]:
        """Minimise; return the energy and [A b] on the intervals, (N, d, d + 1) or (N, d, d)."""
        free = np.concatenate([self.nodes[1:-1, : self.dim].ravel(), np.zeros(len(self.skew))])
        if free.size:
            free = _levenberg_marquardt(self, free)
        scaled = self.residual(free)
        rates = scaled.reshape(self.intervals, self.dim, -1) * np.sqrt(self.intervals)
        return float(scaled @ scaled), rates

    def residual(self, free: Array) -> Array:
        """Entries of √h [A b] on all intervals; their squares sum to the energy."""
        X, _ = self._place(free)
        change, _, _, inverse = self._midpoints(X)
        return np.asarray(np.sqrt(self.intervals) * (change @ inverse)).ravel()

    def jacobian(self, free: Array) -> Array:
        """Derivative of :meth:`residual`, by the rule for the derivative of a pseudo-inverse."""
        N, d = self.intervals, self.dim
        X, dQ = self._place(free)
        change, middle, gram, inverse = self._midpoints(X)
        D, c = X.shape[1:]
        rate, weight = change @ inverse, change @ gram
        outside = np.eye(D) - middle @ inverse
        bend = np.einsum("kaj,kib->kabij", weight, outside[:, :d]) / 2
        bend -= np.einsum("kai,kjb->kabij", rate[:, :, :d], inverse) / 2
        shift = np.einsum("ai,kjb->kabij", np.eye(d), inverse)
        size = d * c
        right, left = ((bend + s * shift).reshape(N, d * D, size) for s in (1, -1))
        made = np.zeros((N, d * D, (N - 1) * size + len(self.skew)))
        for k in range(N - 1):
            made[k, :, k * size : (k + 1) * size] = right[k]
            made[k + 1, :, k * size : (k + 1) * size] = left[k + 1]
        if len(self.skew):
            turned = np.zeros((len(self.skew), d, c))
            turned[:, :, : self.rank] = self.nodes[-1, :d, : self.rank] @ dQ
            made[-1, :, (N - 1) * size :] = right[-1] @ turned.reshape(len(self.skew), -1).T
        return np.asarray(np.sqrt(N) * made.reshape(N * d * D, -1))

    def _place(self, free: Array) -> tuple[Array, Array]:
        """Nodes for the free values, and the derivatives of the last rotation."""
        X = self.nodes.copy()
        inner = free[: free.size - len(self.skew)]
        X[1:-1, : self.dim] = inner.reshape(self.intervals - 1, self.dim, -1)
        if not len(self.skew):
            return X, self.skew
        angle = np.tensordot(free[inner.size :], self.skew, axes=1)
        Q, dQ = expm_and_derivatives(angle, self.skew)
        X[-1, :, : self.rank] = self.nodes[-1, :, : self.rank] @ Q
        return X, dQ

    def _midpoints(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """Differences (moving rows only), midpoints, (XᵀX)⁻¹ and X⁺ there."""
        change = np.diff(X, axis=0)[:, : self.dim]
        middle = (X[1:] + X[:-1]) / 2
        gram = np.asarray(np.linalg.inv(np.swapaxes(middle, 1, 2) @ middle), dtype=np.float64)
        return change, middle, gram, gram @ np.swapaxes(middle, 1, 2)


def _homogeneous(factors: Array, means: Array) -> Array:
    count, d, r = factors.shape
    made = np.zeros((count, d + 1, r + 1))
    made[:, :d, :r], made[:, :d, r], made[:, d, r] = factors, means, 1.0
    return made


def _levenberg_marquardt(path: Polygon, x: Array) -> Array:
    """Minimise |residual|²: enough digits to start Newton's iteration from, no more."""
    r, damping, quiet = path.residual(x), 1e-2, 0
    for _ in range(ITERATIONS):
        J = path.jacobian(x)
        H, g = J.T @ J, J.T @ r
        scale = np.diag(H).copy()
        while damping < 1e10:
            factor = cho_factor(H + np.diag(damping * scale))
            trial = x - cho_solve(factor, g)
            moved = path.residual(trial)
            drop = 1.0 - (moved @ moved) / (r @ r)
            if drop >= 0:
                break
            damping *= 5.0
        else:
            return x
        x, r, damping = trial, moved, max(damping / 5.0, 1e-10)
        quiet = quiet + 1 if drop < ENOUGH else 0
        if quiet == 2:
            return x
    return x

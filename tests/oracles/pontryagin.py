"""Least energy ∫ |A|² + |b|² dt between two Gaussians, by shooting on Pontryagin's equations.

Tokens move by x' = A x + b, so that L' = A L and m' = A m + b.  With costates P of L and
p of m the optimal controls are

    A = P Lᵀ + p mᵀ,    b = p,    P' = -Aᵀ P,    p' = -Aᵀ p,

hence A' = A Aᵀ + b bᵀ - Aᵀ A and b' = -Aᵀ b, along which |A|² + |b|² is constant: geodesics
of a right-invariant metric on the affine group.  The target fixes L(T) only up to rotations
L Q, so Lᵀ P is symmetric (it is constant).  That leaves d r - r(r-1)/2 + d unknowns, as many
as there are terminal conditions.

Without a mean b = 0, A' = [A, Aᵀ], and the flow is closed form: with W = A₀ - A₀ᵀ,

    A(t) = e^{tW} A₀ e^{-tW},    Φ(t) = e^{tW} e^{t A₀ᵀ}.

With a mean the equations are quadratic and their Taylor series is summed.

Following the solution from S₁ = S₀ to the target fails where a branch folds back (seen at
d = 4, r = 3, cond 100), so each Newton iteration starts from a relaxed discrete path instead
(:mod:`.relaxation`).  There are several local minima; several paths are tried and the least
cost counts.  NumPy and SciPy only; nothing of ``gtcontrol``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from .relaxation import Polygon, expm_and_derivatives, paths as polygons

Array = NDArray[np.float64]

#: State at time 1 and its derivatives: L (d, r), m (d,), ∂L (n, d, r), ∂m (n, d).
Endpoint = tuple[Array, Array, Array, Array]

#: Largest terminal condition (relative, whitened) of a shooting that counts as solved.
SOLVED = 1e-11

#: Controls this large move no law that double precision holds.
LARGEST_CONTROL = 60.0

#: Intervals of the discrete paths that Newton's iteration starts from.
INTERVALS = 12

#: Relaxed paths whose energies agree to this are one local minimum.
SAME = 1e-6

TAYLOR_ORDER = 24
TAYLOR_TOLERANCE = 1e-16


class ShootingError(RuntimeError):
    """Newton's iteration did not converge from any of the discrete paths."""


@dataclass(frozen=True)
class Extremal:
    """The best solution of Pontryagin's equations that was found.

    Attributes
    ----------
    cost : float
        ∫ |A|² + |b|² dt.
    A0 : (d, d) array
    b0 : (d,) array
        Initial controls; they fix the whole solution.
    miss : float
        Larger of |S(T) - S₁|/|S₁| and |m(T) - m₁|/(1 + |m₁|).
    costs : tuple of float
        Cost of each distinct extremal, in the order in which they were found.
    """

    cost: float
    A0: Array
    b0: Array
    miss: float
    costs: tuple[float, ...]


def energy(
    start: Array, target: Array, horizon: float = 1.0, *, paths: int = 16, seed: int = 0
) -> Extremal:
    """Least ∫ |A|² dt that carries N(0, L₀L₀ᵀ) to N(0, L₁L₁ᵀ), by the closed form of the flow.

    Parameters
    ----------
    start, target : (d, r) arrays
        Factors L₀ and L₁ of full column rank.
    horizon : float
    paths : int
        Number of discrete paths to start from.
    seed : int
        Seed of the paths after the first.
    """
    zero = np.zeros(start.shape[0])
    return _best(Shooting(start, None), target, zero, horizon, paths, seed)


def energy_with_mean(
    start_mean: Array,
    start: Array,
    target_mean: Array,
    target: Array,
    horizon: float = 1.0,
    *,
    paths: int = 16,
    seed: int = 0,
) -> Extremal:
    """Least ∫ |A|² + |b|² dt that carries N(m₀, L₀L₀ᵀ) to N(m₁, L₁L₁ᵀ).

    Parameters
    ----------
    start_mean, target_mean : (d,) arrays
    start, target : (d, r) arrays
    horizon, paths, seed
        As in :func:`energy`.
    """
    return _best(Shooting(start, start_mean), target, target_mean, horizon, paths, seed)


def closed_form(A0: Array, t: float) -> tuple[Array, Array]:
    """Control A(t) and transition matrix Φ(t) of the extremal of :func:`energy` with A(0) = A₀."""
    turn = expm(t * (A0 - A0.T))
    return turn @ A0 @ turn.T, turn @ expm(t * A0.T)


def _best(
    shooting: Shooting, target: Array, mean: Array, horizon: float, paths: int, seed: int
) -> Extremal:
    """Solve on the horizon 1: another one divides controls and cost by its length."""
    goal = Target(target, mean)
    relaxed: list[float] = []
    found: list[tuple[float, Array]] = []
    for factors in polygons(shooting.factor, target, paths, INTERVALS, np.random.default_rng(seed)):
        level, rates = Polygon(factors, shooting.line(mean, INTERVALS)).relax()
        if any(abs(level - known) <= SAME * known for known in relaxed):
            continue
        relaxed.append(level)
        unknowns = _newton(shooting, shooting.guess(rates), goal)
        if unknowns is not None:
            found.append((shooting.cost(unknowns), unknowns))
    if not found:
        raise ShootingError(
            f"Newton's iteration failed from {len(relaxed)} distinct discrete paths."
        )
    cost, unknowns = min(found, key=lambda pair: pair[0])
    L, m, _, _ = shooting(unknowns)
    wanted = target @ target.T
    miss = max(
        float(np.linalg.norm(L @ L.T - wanted) / np.linalg.norm(wanted)),
        float(np.linalg.norm(m - mean) / (1 + np.linalg.norm(mean))),
    )
    A0, b0 = shooting.controls(unknowns)
    costs = tuple(c / horizon for c, _ in found)
    return Extremal(cost / horizon, A0 / horizon, b0 / horizon, miss, costs)


def _newton(shooting: Shooting, u: Array, target: Target) -> Array | None:
    """Newton's iteration with halved steps; None if it stalls."""
    miss, jacobian = target.residual(*shooting(u))
    for _ in range(30):
        if np.max(np.abs(miss)) < SOLVED:
            return u
        step = -np.linalg.lstsq(jacobian, miss, rcond=1e-13)[0]
        size, length = np.linalg.norm(miss), 1.0
        while True:
            trial = u + length * step
            if shooting.cost(trial) < LARGEST_CONTROL**2:
                miss, jacobian = target.residual(*shooting(trial))
                if np.linalg.norm(miss) < (1 - 0.1 * length) * size:
                    break
            length /= 2
            if length < 1e-3:
                return None
        u = trial
    return None


class Shooting:
    """Map from the unknown initial costates to the law at time 1.

    Parameters
    ----------
    factor : (d, r) array
        Factor of the start.
    mean : (d,) array or None
        Mean of the start; None leaves b and the mean out.
    """

    def __init__(self, factor: Array, mean: Array | None) -> None:
        U, sigma, _ = np.linalg.svd(factor)
        self.factor = U[:, : factor.shape[1]] * sigma
        self.mean = mean
        self.basis = self._covariance_basis(U, sigma)
        if mean is not None:  # A₀ = p m₀ᵀ, b₀ = p
            shifts = np.einsum("ij,k->ijk", np.eye(mean.size), np.append(mean, 1.0))
            self.basis = np.concatenate([self.basis, shifts])

    def _covariance_basis(self, U: Array, sigma: Array) -> Array:
        """Directions of [A₀ b₀] from P: Lᵀ P symmetric, so A₀ = U₀ s⁻¹ K s U₀ᵀ + U⊥ C U₀ᵀ."""
        d, r = self.factor.shape
        made = []
        for i in range(r):
            for j in range(i, r):
                K = np.zeros((r, r))
                K[i, j] = K[j, i] = 1.0
                made.append(U[:, :r] @ (K * sigma / sigma[:, None]) @ U[:, :r].T)
        made += [np.outer(U[:, i], U[:, j]) for i in range(r, d) for j in range(r)]
        return np.concatenate([np.array(made), np.zeros((len(made), d, 1))], axis=2)

    def line(self, mean: Array, intervals: int) -> Array | None:
        """Straight line of means (intervals + 1, d), if there are means."""
        if self.mean is None:
            return None
        t = np.linspace(0.0, 1.0, intervals + 1)[:, None]
        return (1 - t) * self.mean + t * mean

    def guess(self, rates: Array) -> Array:
        """Unknowns nearest to [A b] on the intervals of a discrete path, extrapolated to t = 0."""
        both = np.zeros(self.basis.shape[1:])
        both[:, : rates.shape[2]] = (15 * rates[0] - 10 * rates[1] + 3 * rates[2]) / 8
        matrix = self.basis.reshape(len(self.basis), -1).T
        return np.asarray(np.linalg.lstsq(matrix, both.ravel(), rcond=None)[0])

    def controls(self, unknowns: Array) -> tuple[Array, Array]:
        """A₀ and b₀."""
        both = np.tensordot(unknowns, self.basis, axes=1)
        return both[:, :-1], both[:, -1]

    def cost(self, unknowns: Array) -> float:
        """|A|² + |b|², constant in time."""
        return float(np.sum(np.tensordot(unknowns, self.basis, axes=1) ** 2))

    def __call__(self, unknowns: Array) -> Endpoint:
        """Law at time 1 with its derivatives."""
        return self._closed(unknowns) if self.mean is None else self._series(unknowns, self.mean)

    def _closed(self, unknowns: Array) -> Endpoint:
        A, b = self.controls(unknowns)
        dA = self.basis[:, :, :-1]
        turn, turns = expm_and_derivatives(A - A.T, dA - np.swapaxes(dA, 1, 2))
        grow, grows = expm_and_derivatives(A.T, np.swapaxes(dA, 1, 2))
        dL = (turns @ grow + turn @ grows) @ self.factor
        return turn @ grow @ self.factor, np.zeros_like(b), dL, np.zeros((len(dA), b.size))

    def _series(self, unknowns: Array, mean: Array) -> Endpoint:
        """Sum the Taylor series of [A b] and [L m]; entry 0 is the value, the rest derivatives."""
        d, r = self.factor.shape
        Z = np.concatenate([np.tensordot(unknowns, self.basis, axes=1)[None], self.basis])
        X = np.zeros((len(Z), d + 1, r + 1))
        X[0, :d, :r], X[0, :d, r], X[0, d, r] = self.factor, mean, 1.0
        t = 0.0
        while t < 1.0:
            Zs, Xs = _coefficients(Z, X)
            h = min(_step(Zs, Xs), 1.0 - t)
            powers = h ** np.arange(TAYLOR_ORDER + 1)
            Z, X = np.tensordot(powers, Zs, axes=1), np.tensordot(powers, Xs, axes=1)
            t = 1.0 if h == 1.0 - t else t + h
        return X[0, :d, :r], X[0, :d, r], X[1:, :d, :r], X[1:, :d, r]


def _coefficients(Z: Array, X: Array) -> tuple[Array, Array]:
    """Taylor coefficients of Z = [A b], Z' = [ZZᵀ 0] - AᵀZ, and X = [L m; 0 1], X' = [Z; 0] X."""
    d = Z.shape[1]
    Zs = np.zeros((TAYLOR_ORDER + 1, *Z.shape))
    Xs = np.zeros((TAYLOR_ORDER + 1, *X.shape))
    Zs[0], Xs[0] = Z, X
    for k in range(TAYLOR_ORDER):
        Zk, back = Zs[: k + 1], Zs[k::-1]
        Zs[k + 1] = -_product(np.swapaxes(Zk[..., :d], 2, 3), back)
        Zs[k + 1, :, :, :d] += _product(Zk, np.swapaxes(back, 2, 3))
        Zs[k + 1] /= k + 1
        Xs[k + 1, :, :d] = _product(Zk, Xs[k::-1]) / (k + 1)
    return Zs, Xs


def _product(P: Array, Q: Array) -> Array:
    """Σ_j P_j Q_j for matrices that carry their derivatives along axis 1 (product rule)."""
    made = np.tensordot(P[:, 0], Q, axes=((0, 2), (0, 2))).swapaxes(0, 1)
    made = made + np.tensordot(P, Q[:, 0], axes=((0, 3), (0, 1)))
    made[0] *= 0.5
    return np.asarray(made)


def _step(Zs: Array, Xs: Array) -> float:
    """Step at which the last terms of both series fall to rounding level."""
    steps = [1.0]
    for series in (Zs, Xs):
        sizes = np.max(np.abs(series), axis=(2, 3))
        scale = np.max(sizes[0])
        for k in (TAYLOR_ORDER - 1, TAYLOR_ORDER):
            largest = np.max(sizes[k])
            if largest > 0:
                steps.append(float((TAYLOR_TOLERANCE * scale / largest) ** (1.0 / k)))
    return min(steps)


class Target:
    """Independent terminal conditions: ½ log(X Xᵀ) = 0 with X = L₁⁺L, U⊥ᵀ L = 0, m = m₁."""

    def __init__(self, factor: Array, mean: Array) -> None:
        r = factor.shape[1]
        U, sigma, Vt = np.linalg.svd(factor)
        self.inverse = (Vt.T / sigma) @ U[:, :r].T
        self.outside = U[:, r:].T / np.sqrt(np.mean(sigma**2))
        self.mean = mean
        self.upper = np.triu_indices(r)

    def residual(self, L: Array, m: Array, dL: Array, dm: Array) -> tuple[Array, Array]:
        """Conditions (k,) and their Jacobian (k, n)."""
        X, dX = self.inverse @ L, self.inverse @ dL
        values, V = np.linalg.eigh(X @ X.T)
        values = np.maximum(values, np.finfo(float).tiny)
        half = 0.5 * np.log(values)
        gap = values[:, None] - values
        near = np.abs(gap) <= 1e-7 * values
        mean_slope = 1.0 / (values[:, None] + values)
        slope = np.where(near, mean_slope, np.subtract.outer(half, half) / (gap + near))
        dG = V.T @ (dX @ X.T + X @ np.swapaxes(dX, 1, 2)) @ V
        logs, dlogs = (V * half) @ V.T, V @ (slope * dG) @ V.T
        miss = [logs[self.upper], (self.outside @ L).ravel(), m - self.mean]
        parts = [dlogs[:, *self.upper], (self.outside @ dL).reshape(len(dL), -1), dm]
        return np.concatenate(miss), np.concatenate(parts, axis=1).T

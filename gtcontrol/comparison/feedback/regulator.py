"""The linear-quadratic regulator along a plan: Riccati equation, authority, mesh.

State x = (δm, δL) in all d(1 + r) entries.  Turning the factor, δL = L Ω with Ω skew, changes
no law: these directions are carried into each other by the linearised flow, and both state
weights are orthogonal to them.  P(t) therefore vanishes there, and nothing is divided out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from scipy.integrate import solve_ivp

from ..._check import Array
from ...errors import OutOfScale
from ...parameters import Parameters
from ...progress import Progress
from ...results.feedback import corrections
from ...schedule import Law
from .derivatives import Variation, factor_derivative
from .nominal import Nominal

__all__ = ["Regulator", "Weights", "default_weights", "regulate"]

#: Relative accuracy of the Riccati equation, and the absolute one relative to its largest entry.
ACCURACY, ROUNDING = 1e-9, 1e-12

#: It is solved on so many parts of the horizon, at least.
SEGMENTS = 8

#: Steps of the mesh of the closed loop for each step of the Riccati solver, and at least in all.
PARTS, LEAST = 2, 60

#: The miss, relative to the unit of length, that costs as much as a correction of the size of
#: the plan itself throughout.
TERMINAL = 0.1

#: Directions with less authority than this fraction of the largest are beyond correction.
NO_AUTHORITY = 1e-6


@dataclass(frozen=True)
class Weights:
    """Cost ∫ Σ_u control[u] |δu|² + state |x|² dt + terminal |x(T)|²."""

    control: Mapping[str, float]
    state: float
    terminal: float


@dataclass(frozen=True, eq=False)
class Regulator:
    """The solution of the Riccati equation, and what the controls can do.

    Attributes
    ----------
    solutions : tuple of scipy.integrate.OdeSolution
        P on each piece of the plan, backwards in time; the optimal cost from x at time t is
        xᵀ P(t) x.
    longest : float
        Longest step of a mesh.
    authority : (q,) array
        Largest first: how far, in units of length, corrections of total cost 1 can move the
        law at the end, in q orthogonal directions.
    directions : (q, n) array
        These directions, orthonormal.
    """

    solutions: tuple[Any, ...]
    longest: float
    authority: Array
    directions: Array

    @property
    def steps(self) -> Array:
        """Nodes of the coarsest mesh."""
        return self.mesh(0)[0][::2]

    def mesh(self, refinement: int) -> tuple[Array, Array]:
        """Nodes and the middles between them, (2 N + 1,), and P there, (2 N + 1, n, n).

        The steps of the Riccati solver are divided into ever more parts, as its own accuracy
        tells where the closed loop is fast.
        """
        n = self.directions.shape[1]
        times: list[Array] = []
        values: list[Array] = []
        for solution in self.solutions:
            mesh = _divided(solution.ts[::-1], self.longest, 2**refinement)
            found = solution(mesh).T.reshape(mesh.size, n, n)
            times.append(mesh[bool(times) :])
            values.append(0.5 * (found + np.swapaxes(found, 1, 2))[bool(values) :])
        return np.concatenate(times), np.concatenate(values)


def default_weights(nominal: Nominal, controls: str) -> Weights:
    """Weights from the sizes of the plan, so that changing units changes nothing.

    A correction of a parameter as large as the plan's own root mean square (or its natural unit,
    1/T for A and V, 1/ℓ² for B and ℓ/T for b, if that is larger) costs 1, as does a distance of
    one unit of length ℓ throughout, and a tenth of it at the end.
    """
    T, length = nominal.horizon, nominal.length
    unit = {"A": 1 / T, "V": 1 / T, "B": 1 / length**2, "b": length / T}
    squares = dict.fromkeys(controls, 0.0)
    for piece in nominal.pieces:
        middle = piece.law(0.5 * (piece.start + piece.end))
        for letter in controls:
            size = float(np.sum(getattr(middle, letter) ** 2))
            squares[letter] += (piece.end - piece.start) / T * size
    sizes = {c: max(np.sqrt(squares[c]), unit[c]) for c in controls}
    return Weights(
        control={c: float(1 / (T * sizes[c] ** 2)) for c in controls},
        state=1 / (T * length**2),
        terminal=1 / (TERMINAL * length) ** 2,
    )


def regulate(nominal: Nominal, weights: Weights, progress: Progress) -> Regulator:
    """Solve the Riccati equation backwards, and add up the controllability Gramian.

    Raises
    ------
    OutOfScale
        If the linearised flow leaves the range of double precision.
    """
    linear = _Linearisation(nominal, weights)
    n, T = linear.size, nominal.horizon
    P = weights.terminal * linear.horizontal(nominal.at(T)[1])
    solutions = []
    for start, end, law in reversed(list(_segments(nominal))):
        progress(0.15 * (1 - end / T), "Riccati equation")

        def backward(t: float, y: Array, law: Law = law) -> Array:
            m, L = nominal.at(t)
            F, G = linear.matrices(law(t), m, L)
            X = y.reshape(n, n)
            half = X @ F
            rate = X @ G @ X - half - half.T
            if weights.state:
                rate = rate - weights.state * linear.horizontal(L)
            return rate.ravel()

        solved = _solve(backward, (end, start), P)
        P = solved.y[:, -1].reshape(n, n)
        P = 0.5 * (P + P.T)
        solutions.append(solved.sol)
    made = Regulator(tuple(solutions[::-1]), T / LEAST, np.zeros(0), np.zeros((0, n)))
    authority, directions = _authority(nominal, linear, made.steps, progress)
    return replace(made, authority=authority, directions=directions)


def _segments(nominal: Nominal) -> Iterator[tuple[float, float, Law]]:
    """Parts of the pieces, so short that a solution does not grow much within one of them."""
    for piece in nominal.pieces:
        count = int(np.ceil((piece.end - piece.start) / nominal.horizon * SEGMENTS))
        for start, end in pairwise(np.linspace(piece.start, piece.end, count + 1)):
            yield float(start), float(end), piece.law


def _solve(rate: Callable[[float, Array], Array], span: tuple[float, float], start: Array) -> Any:
    """Solve a matrix equation with dense output; refuse when that does not succeed.

    Entries that are zero but for rounding, relative to the whole, must not dictate the step.
    """
    atol = ROUNDING * float(np.max(np.abs(start)))
    with np.errstate(over="ignore", invalid="ignore"):
        solved = solve_ivp(
            rate, span, start.ravel(), method="DOP853", rtol=ACCURACY, atol=atol, dense_output=True
        )
    if solved.status != 0 or not np.all(np.isfinite(solved.y[:, -1])):
        _refuse(float(solved.t[-1]))
    return solved


def _refuse(t: float) -> NoReturn:
    raise OutOfScale(
        f"the linearisation along the plan leaves double precision at t = {t:.6g}; shorten the "
        "plan, rescale the tokens, or lower `terminal_weight`."
    )


def _divided(steps: Array, longest: float, times: int) -> Array:
    """Each step cut into equal parts, none longer than allowed, and so many times finer."""
    cut = [
        np.linspace(a, b, 2 * times * max(PARTS, int(np.ceil((b - a) / longest))) + 1)[:-1]
        for a, b in pairwise(steps)
    ]
    return np.concatenate([*cut, steps[-1:]])


class _Linearisation:
    """Matrices of the linearised flow along the plan."""

    def __init__(self, nominal: Nominal, weights: Weights) -> None:
        self.weights = weights
        self.dim, self.rank = nominal.dim, nominal.rank
        self.size = self.dim * (1 + self.rank)
        unit = np.eye(self.size)
        self._basis = Variation(
            self.size,
            mean=unit[:, : self.dim],
            matrix=unit[:, self.dim :].reshape(self.size, self.dim, self.rank),
        )
        self._unit = unit

    def matrices(self, p: Parameters, m: Array, L: Array) -> tuple[Array, Array]:
        """F and G = B R⁻¹ Bᵀ of x' = F x + B u, shape (n, n) each."""
        F = self._columns(factor_derivative(p, m, L, self._basis))
        # B applied to R⁻¹ Bᵀ, which is what the regulator adds for each unit costate.
        added = corrections(p, m, L, self.weights.control, self._unit)
        G = -self._columns(factor_derivative(p, m, L, Variation(self.size, **added)))
        return F, 0.5 * (G + G.T)

    def horizontal(self, L: Array) -> Array:
        """Orthogonal projector onto the changes that do not merely turn the factor."""
        projector = np.eye(self.size)
        if self.rank < 2:
            return projector
        turns = []
        for i in range(self.rank):
            for j in range(i):
                turn = np.zeros((self.dim, self.rank))
                turn[:, i], turn[:, j] = L[:, j], -L[:, i]
                turns.append(turn.ravel())
        Q, _ = np.linalg.qr(np.array(turns).T)
        projector[self.dim :, self.dim :] -= Q @ Q.T
        return projector

    def _columns(self, parts: tuple[Array, Array]) -> Array:
        mean, factor = parts
        return np.concatenate([mean, factor.reshape(self.size, self.dim * self.rank)], axis=1).T


def _authority(
    nominal: Nominal, linear: _Linearisation, steps: Array, progress: Progress
) -> tuple[Array, Array]:
    """Roots of the eigenvalues of the controllability Gramian over the horizon.

    W' = F W + W Fᵀ + G, by classical Runge-Kutta on the steps of the Riccati solver.
    """
    n, T = linear.size, nominal.horizon
    W = np.zeros((n, n))
    pieces = list(nominal.pieces)
    ends = np.array([piece.end for piece in pieces])
    for i, (start, end) in enumerate(pairwise(steps)):
        if i % 16 == 0:
            progress(0.15 + 0.05 * start / T, "authority of the controls")
        h, middle = end - start, 0.5 * (start + end)
        piece = pieces[min(int(np.searchsorted(ends, middle)), len(pieces) - 1)]
        first, half, last = (
            linear.matrices(piece.law(t), *nominal.at(t)) for t in map(float, (start, middle, end))
        )
        k1 = _gramian_rate(first, W)
        k2 = _gramian_rate(half, W + h / 2 * k1)
        k3 = _gramian_rate(half, W + h / 2 * k2)
        W = W + h / 6 * (k1 + 2 * k2 + 2 * k3 + _gramian_rate(last, W + h * k3))
        if not np.all(np.isfinite(W)):
            _refuse(float(end))
    shares, basis = np.linalg.eigh(linear.horizontal(nominal.at(T)[1]))
    basis = basis[:, shares > 0.5]  # a projector: its eigenvalues are 0 and 1
    values, vectors = np.linalg.eigh(basis.T @ W @ basis)
    authority = np.sqrt(np.maximum(values[::-1], 0)) / nominal.length
    return authority, (basis @ vectors[:, ::-1]).T


def _gramian_rate(matrices: tuple[Array, Array], W: Array) -> Array:
    F, G = matrices
    half = F @ W
    return np.asarray(half + half.T + G)

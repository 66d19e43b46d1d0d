"""The linear-quadratic regulator along a plan: Riccati equation, authority, mesh.

State x = (δm, δL) in all d(1 + r) entries.  Turning the factor, δL = L Ω with Ω skew, changes
no law: these directions are carried into each other by the linearised flow, and both state
weights are orthogonal to them.  P(t) therefore vanishes there, and nothing is divided out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from .._check import Array
from ..errors import OutOfScale
from ..parameters import Parameters
from ..progress import Progress
from ..results.feedback import corrections
from .derivatives import Variation, factor_derivative
from .nominal import Nominal

__all__ = ["Regulator", "Weights", "default_weights", "regulate"]

#: Relative accuracy of the Riccati and of the Lyapunov equation.
ACCURACY = 1e-9

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

    def mesh(self, refinement: int) -> tuple[Array, Array]:
        """Nodes and the middles between them, (2 N + 1,), and P there, (2 N + 1, n, n).

        The steps of the Riccati solver are divided into ever more parts, as its own accuracy
        tells where the closed loop is fast.
        """
        n = self.directions.shape[1]
        times: list[Array] = []
        values: list[Array] = []
        for solution in self.solutions:
            mesh = _divided(solution.ts[::-1], self.longest, PARTS * 2**refinement)
            found = solution(mesh).T.reshape(-1, n, n)
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
    """Solve the Riccati equation backwards and the Lyapunov equation forwards."""
    linear = _Linearisation(nominal, weights)
    n = linear.size
    edges = [(piece.start, piece.end) for piece in nominal.pieces]
    laws = [piece.law for piece in nominal.pieces]

    P = weights.terminal * linear.horizontal(nominal.horizon)
    solutions = []
    for (start, end), law in zip(reversed(edges), reversed(laws), strict=True):
        progress(0.1 * (1 - end / nominal.horizon), "Riccati equation")

        def backward(t: float, y: Array, law: Callable[[float], Parameters] = law) -> Array:
            F, G = linear.matrices(law, t)
            X = y.reshape(n, n)
            half = X @ F
            rate = X @ G @ X - half - half.T - weights.state * linear.horizontal(t)
            return rate.ravel()

        solved = _solve(backward, (end, start), P, 1e-13 * weights.terminal)
        P = solved.y[:, -1].reshape(n, n)
        P = 0.5 * (P + P.T)
        solutions.append(solved.sol)
    authority, directions = _authority(nominal, linear, edges, laws, progress)
    return Regulator(tuple(solutions[::-1]), nominal.horizon / LEAST, authority, directions)


def _solve(
    rate: Callable[[float, Array], Array], span: tuple[float, float], start: Array, atol: float
) -> Any:
    """Solve a matrix equation with dense output; refuse when that does not succeed."""
    solved = solve_ivp(
        rate, span, start.ravel(), method="DOP853", rtol=ACCURACY, atol=atol, dense_output=True
    )
    if solved.status != 0 or not np.all(np.isfinite(solved.y[:, -1])):
        raise OutOfScale(
            f"the linearisation along the plan could not be integrated beyond t = "
            f"{solved.t[-1]:.6g}; rescale the tokens, or lower `terminal_weight`."
        )
    return solved


def _divided(steps: Array, longest: float, parts: int) -> Array:
    """Each step cut into equal parts, none longer than allowed; with middles."""
    cut = [
        np.linspace(a, b, 2 * max(parts, int(np.ceil((b - a) / longest))) + 1)[:-1]
        for a, b in pairwise(steps)
    ]
    return np.concatenate([*cut, steps[-1:]])


class _Linearisation:
    """Matrices of the linearised flow along the plan."""

    def __init__(self, nominal: Nominal, weights: Weights) -> None:
        self.nominal, self.weights = nominal, weights
        self.dim, self.rank = nominal.dim, nominal.rank
        self.size = self.dim * (1 + self.rank)
        unit = np.eye(self.size)
        self._basis = Variation(
            mean=unit[:, : self.dim], matrix=unit[:, self.dim :].reshape(-1, self.dim, self.rank)
        )
        self._unit = unit

    def matrices(self, law: Callable[[float], Parameters], t: float) -> tuple[Array, Array]:
        """F and G = B R⁻¹ Bᵀ of x' = F x + B u, shape (n, n) each."""
        p = law(t)
        m, L = self.nominal.at(t)
        F = self._columns(factor_derivative(p, m, L, self._basis))
        # B applied to R⁻¹ Bᵀ, which is what the regulator adds for each unit costate.
        added = corrections(p, m, L, self.weights.control, self._unit)
        G = -self._columns(factor_derivative(p, m, L, Variation(**added)))
        return F, 0.5 * (G + G.T)

    def horizontal(self, t: float) -> Array:
        """Orthogonal projector onto the changes that do not merely turn the factor."""
        projector = np.eye(self.size)
        if self.rank < 2:
            return projector
        _, L = self.nominal.at(t)
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
        return np.concatenate([mean, factor.reshape(self.size, -1)], axis=1).T


def _authority(
    nominal: Nominal,
    linear: _Linearisation,
    edges: list[tuple[float, float]],
    laws: list[Callable[[float], Parameters]],
    progress: Progress,
) -> tuple[Array, Array]:
    """Roots of the eigenvalues of the controllability Gramian over the horizon."""
    n, T = linear.size, nominal.horizon
    W = np.zeros((n, n))
    for (start, end), law in zip(edges, laws, strict=True):
        progress(0.1 + 0.1 * start / T, "authority of the controls")

        def forward(t: float, y: Array, law: Callable[[float], Parameters] = law) -> Array:
            F, G = linear.matrices(law, t)
            half = F @ y.reshape(n, n)
            return np.asarray((half + half.T + G).ravel())

        solved = _solve(forward, (start, end), W, 1e-13 * nominal.length**2)
        W = solved.y[:, -1].reshape(n, n)
    across = linear.horizontal(T)
    count = round(float(np.trace(across)))
    values, vectors = np.linalg.eigh(across @ W @ across + _push(across, W))
    keep = slice(None, n - count - 1 if n > count else None, -1)
    return np.sqrt(np.maximum(values[keep], 0)) / nominal.length, vectors[:, keep].T


def _push(across: Array, W: Array) -> Array:
    """Makes turns of the factor eigenvectors below all others, so that they can be left out."""
    return -(1.0 + float(np.trace(W))) * (np.eye(len(W)) - across)

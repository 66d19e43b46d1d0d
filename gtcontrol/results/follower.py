"""A plan and its Riccati matrix as functions of time: what is applied to a given law."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

from .. import _check
from .._check import Array
from ..errors import InvalidShape, OutOfScale, RankMismatch
from ..field import rates
from ..gaussian import Gaussian
from ..parameters import Parameters
from ..problem.bounds import Bounds
from ..schedule import Law, Piece, Schedule
from .feedback import corrections, deviation, joined, saturate, split_state
from .trajectory import Trajectory

__all__ = ["Follower"]

#: Relative accuracy of the closed loop that :meth:`Follower.schedule` follows.
ACCURACY = 1e-10

#: A law that is so many times larger than the start and the plan has escaped.
ESCAPED = 1e3


@dataclass(frozen=True, eq=False)
class Follower:
    """Feedback along a trajectory.

    Parameters
    ----------
    nominal : Trajectory
    times, values : (k,) and (k, n, n) arrays
        Riccati matrix; between these times it is a cubic spline on each piece of the plan.
    weights : mapping from control letter to float
    bounds : Bounds
    """

    nominal: Trajectory
    times: Array
    values: Array
    weights: Mapping[str, float]
    bounds: Bounds

    @property
    def basis(self) -> Array | None:
        """Basis of the subspace in which the plan acts, if any."""
        return self.nominal.problem.schedule.basis

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """Smooth pieces of the plan up to its horizon."""
        horizon = self.nominal.problem.horizon
        found = self.nominal.problem.schedule.pieces(inner=True)
        return tuple(
            Piece(p.start, min(p.end, horizon), p.law, p.constant)
            for p in found
            if p.start < horizon * (1 - 1e-12)
        )

    def gain(self, t: float) -> dict[str, Array]:
        """Gains K of each control, (*shape, n): it changes by -K x."""
        t = _check.number("t", t)
        now = self.at(t)
        made = corrections(self._law(t), *now, self.weights, self._riccati(t))
        return {letter: -np.moveaxis(value, 0, -1) for letter, value in made.items()}

    def parameters(self, t: float, law: Gaussian) -> Parameters:
        """What is applied to a law at time t."""
        t = _check.number("t", t)
        mean, factor = self.inner(law)
        made = self._controlled(self._law(t), t, mean, factor)
        return made if self.basis is None else made.lift(self.basis)

    def cost_to_go(self, t: float, law: Gaussian) -> float:
        """Remaining cost xᵀ P(t) x."""
        t = _check.number("t", t)
        x = deviation(*self.inner(law), *self.at(t))
        return float(x @ self._riccati(t) @ x)

    def schedule(self, start: Gaussian) -> Schedule:
        """Parameters in time that the feedback applies to a start."""
        state = joined(*self.inner(start))
        size = max(float(np.linalg.norm(state)), float(np.sqrt(np.max(self.nominal.traces))))
        laws: list[Law] = []
        for piece in self.pieces:
            solution = self._integrate(piece, state, size)
            state = solution(piece.end)
            laws.append(self._followed(piece.law, solution))
        edges = np.array([0.0, *(piece.end for piece in self.pieces)])
        dim = self.nominal.problem.start.dim if self.basis is None else self.basis.shape[1]
        return Schedule.from_pieces(edges, laws, dim, basis=self.basis)

    def inner(self, law: Gaussian) -> tuple[Array, Array]:
        """Mean and factor of a law in the coordinates of the plan, after checking that it fits."""
        if not isinstance(law, Gaussian):
            raise InvalidShape(f"the law must be a Gaussian, not {type(law).__name__}.")
        plan = self.nominal.problem.start
        if law.dim != plan.dim:
            raise InvalidShape(f"the law has dimension {law.dim}, the plan {plan.dim}.")
        if law.rank != plan.rank:
            raise RankMismatch(
                f"the law has rank {law.rank}, the plan {plan.rank}: no control changes the rank."
            )
        return self._project(law)

    def at(self, t: float) -> tuple[Array, Array]:
        """Mean and factor of the plan at time t, in its coordinates."""
        return self._project(self.nominal.at(min(t, float(self.nominal.times[-1]))))

    def _project(self, law: Gaussian) -> tuple[Array, Array]:
        U = self.basis
        return (law.mean, law.factor) if U is None else (U.T @ law.mean, U.T @ law.factor)

    def _integrate(self, piece: Piece, state: Array, size: float) -> Callable[[float], Array]:
        """Closed loop on one piece, as a function of time."""
        k = self.at(piece.start)[0].size

        def rate(t: float, x: Array) -> Array:
            m, L = split_state(x, k)
            p = self._controlled(piece.law(t), t, m, L)
            return joined(*rates(m, L, p.A, p.heads, p.b))

        def escape(t: float, x: Array) -> float:
            return ESCAPED * size - float(np.linalg.norm(x))

        escape.terminal = True  # type: ignore[attr-defined]  # read by SciPy
        with np.errstate(over="ignore", invalid="ignore"):
            solved = solve_ivp(
                rate, (piece.start, piece.end), state, method="DOP853", rtol=ACCURACY,
                atol=1e-3 * ACCURACY * size, dense_output=True, events=escape,
            )  # fmt: skip
        if solved.status != 0:
            raise OutOfScale(
                f"the closed loop from this start leaves every bound at t = {solved.t[-1]:.6g}; "
                "the perturbation is too large for this feedback."
            )
        found: Any = solved.sol
        return cast("Callable[[float], Array]", found)

    def _followed(self, piece: Law, solution: Callable[[float], Array]) -> Law:
        def law(t: float) -> Parameters:
            state = solution(t)
            k = self.values.shape[1] // (1 + self.nominal.problem.start.rank)
            return self._controlled(piece(t), t, *split_state(state, k))

        return law

    def _controlled(self, p: Parameters, t: float, mean: Array, factor: Array) -> Parameters:
        """Parameters of the plan with the correction for a law, cut to the bounds."""
        now = self.at(t)
        costate = self._riccati(t) @ deviation(mean, factor, *now)
        changes = corrections(p, *now, self.weights, costate)
        made, _ = saturate(p, changes, self.bounds, ())
        values = {letter: made.get(letter, getattr(p, letter)) for letter in "AVBb"}
        return Parameters.trusted(**values, beta=p.beta)

    def _law(self, t: float) -> Parameters:
        return self.nominal.problem.schedule.inner(t)

    @cached_property
    def _splines(self) -> tuple[Any, ...]:
        made = []
        for piece in self.pieces:
            slack = 1e-12 * piece.end
            inside = (self.times >= piece.start - slack) & (self.times <= piece.end + slack)
            made.append(CubicSpline(self.times[inside], self.values[inside]))
        return tuple(made)

    def _riccati(self, t: float) -> Array:
        ends = [piece.end for piece in self.pieces]
        i = min(int(np.searchsorted(ends, t, side="right")), len(ends) - 1)
        return np.asarray(self._splines[i](t))

"""The flow on (mean, factor), or on (mean, covariance) with process noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import DOP853
from scipy.interpolate import PPoly

from .._check import Array
from ..errors import NotFinite
from ..field import generator, rates
from ..parameters import Parameters
from ..problem.definitions import SimulationProblem
from ..progress import Progress
from ..results.trajectory import Interpolant, factor_of, split
from ..schedule import Piece
from ..status import Status
from .outcome import Outcome

__all__ = ["run"]

#: Cubes of entries beyond this size leave the range of double precision.
LARGEST = 1e100

#: A blow-up is declared when the time left, relative to the time elapsed, is below this ...
TIME_LEFT = 1e-14

#: ... and the trace has grown by this factor since rescaled time began.
GROWTH = 1e8

#: Accepted absolute error, as a fraction of the relative tolerance times the size at the start.
ABSOLUTE = 1e-3

# The continuous extension of DOP853 has degree 7: eight points determine it.
_THETA = 0.5 - 0.5 * np.cos(np.pi * np.arange(8) / 7)
_TO_POWERS = np.linalg.inv(np.vander(_THETA))

Rate = Callable[[Parameters, Array, Array], tuple[Array, Array]]


def run(problem: SimulationProblem, progress: Progress) -> Outcome:
    """Integrate piece by piece until the horizon, a blow-up, or the end of the means."""
    march = _March(problem, progress)
    status = Status.SUCCESS
    try:
        for piece in problem.schedule.pieces(inner=True):
            end = min(piece.end, problem.horizon)
            if piece.start >= end:
                break
            status = march.through(piece, end)
            if status is not Status.SUCCESS:
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return march.outcome(status)


def _factor_rate(p: Parameters, mean: Array, factor: Array) -> tuple[Array, Array]:
    made: tuple[Array, Array] = rates(mean, factor, p.A, p.heads, p.b)
    return made


def _covariance_rate(p: Parameters, mean: Array, covariance: Array) -> tuple[Array, Array]:
    symmetric = 0.5 * (covariance + covariance.T)
    M = generator(symmetric, p.A, p.heads)
    mean_rate = M @ mean + p.b
    for V, _, beta in p.heads:
        mean_rate = mean_rate + V @ (mean if beta is None else mean + symmetric @ beta)
    rate = M @ symmetric
    rate = rate + rate.T
    return mean_rate, rate if p.noise is None else rate + p.noise


@dataclass
class _March:
    """State of the integration, and the continuous extension collected so far."""

    problem: SimulationProblem
    progress: Progress
    evaluations: int = 0
    blow_up_time: float = math.inf
    nodes: list[float] = field(default_factory=lambda: [0.0])
    clocks: list[float] = field(default_factory=lambda: [0.0])
    states: list[Array] = field(default_factory=list)
    coefficients: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        start, schedule = self.problem.start, self.problem.schedule
        noisy = [p.law(p.start).noise is not None for p in schedule.pieces(inner=True)]
        self.covariance_form = any(noisy)
        matrix = start.covariance if self.covariance_form else start.factor
        mean, self.basis, self.rest = start.mean, schedule.basis, None
        if self.basis is not None:
            U = self.basis
            whole = np.concatenate([mean[:, None], matrix], axis=1)
            self.rest = whole - U @ (U.T @ whole)
            mean, matrix = U.T @ mean, U.T @ matrix
        self.columns = matrix.shape[1]
        self.rate: Rate = _covariance_rate if self.covariance_form else _factor_rate
        self.states.append(np.concatenate([mean, matrix.ravel()]))
        self.scale = _scales(mean, matrix)

    # -- one piece ---------------------------------------------------------------------

    def through(self, piece: Piece, end: float) -> Status:
        """Integrate over one smooth piece, up to time `end`."""
        status = Status.SUCCESS
        while self.clocks[-1] < end and status is Status.SUCCESS:
            before = self.clocks[-1]
            status = self._ordinary(piece, end)
            if status is Status.SUCCESS and self.clocks[-1] < end:
                status = self._rescaled(piece, end)
                if status is Status.SUCCESS and self.clocks[-1] == before:
                    # The blow-up is not near after all, and no progress was made: finish the
                    # piece in ordinary time.
                    status = self._ordinary(piece, end, to_the_end=True)
        return status

    def _ordinary(self, piece: Piece, end: float, *, to_the_end: bool = False) -> Status:
        """Integrate in time t, until `end` or until a blow-up seems near."""

        def right_side(t: float, y: Array) -> Array:
            self.evaluations += 1
            return self._derivative(piece, t, y)

        began = self.clocks[-1]
        solver = self._solver(right_side, began, self.states[-1], end, self._tolerances())
        growth = self._size(self.states[-1])
        while solver.status == "running":
            if not to_the_end and self._near_blow_up(piece, solver.t, solver.y, end, growth):
                return Status.SUCCESS
            if len(self.clocks) > self.problem.max_steps:
                return Status.STEP_LIMIT
            solver.step()
            if solver.status == "failed":
                return self._why_stuck(solver.y)
            if not np.all(np.abs(solver.y) < LARGEST):
                return Status.OVERFLOW
            within = self._within(solver)
            dense = np.column_stack([solver.dense_output()(within).T, within])
            self._accept(dense, solver.t - float(solver.t_old or 0.0), solver.y, solver.t)
        return Status.SUCCESS

    def _rescaled(self, piece: Piece, end: float) -> Status:
        """Integrate in s, dt = ds/(a + c |L|²), where a blow-up lies at infinity.

        Stops before `end` (which ordinary time then reaches exactly), or when the time left
        no longer changes the clock.
        """
        began = self.clocks[-1]
        p = piece.law(began)
        slow = float(np.linalg.norm(p.A)) + 1.0 / (end - began)
        fast = 2.0 * sum(float(np.linalg.norm(V) * np.linalg.norm(B)) for V, B, _ in p.heads)

        def right_side(s: float, y: Array) -> Array:
            self.evaluations += 1
            t = min(began + float(y[-1]), end)
            speed = 1.0 / (slow + fast * self._size(y[:-1]))
            return np.append(speed * self._derivative(piece, t, y[:-1]), speed)

        state = np.append(self.states[-1], 0.0)
        tolerances = np.append(self._tolerances(), 1e-3 * self.problem.rtol * (end - began))
        solver = self._solver(right_side, 0.0, state, math.inf, tolerances)
        initial = self._size(self.states[-1])
        while True:
            if len(self.clocks) > self.problem.max_steps:
                return Status.STEP_LIMIT
            solver.step()
            if solver.status == "failed":
                return self._why_stuck(solver.y)
            if not np.all(np.abs(solver.y) < LARGEST):
                return Status.OVERFLOW
            t = began + float(solver.y[-1])
            if t >= end:
                return Status.SUCCESS
            within = self._within(solver)
            dense = solver.dense_output()(within).T
            dense[:, -1] += began
            self._accept(dense, solver.t - float(solver.t_old or 0.0), solver.y[:-1], t)
            left = self._time_left(piece, t, solver.y[:-1])
            size = self._size(solver.y[:-1])
            if left <= TIME_LEFT * t and size >= GROWTH * initial:
                self.blow_up_time = t + left
                return Status.BLOW_UP
            if size < 0.01 * initial or not left < 10 * (end - t):
                return Status.SUCCESS  # it turned back

    # -- pieces of the above -----------------------------------------------------------

    def _solver(
        self,
        right_side: Callable[[float, Array], Array],
        t: float,
        y: Array,
        end: float,
        atol: Array,
    ) -> Any:
        return DOP853(right_side, t, y, end, rtol=self.problem.rtol, atol=atol)

    def _within(self, solver: Any) -> Array:
        return np.asarray(solver.t_old + _THETA * (solver.t - solver.t_old))

    def _derivative(self, piece: Piece, t: float, y: Array) -> Array:
        p = piece.law(t)
        mean, matrix = split(np.append(y, 0.0), self.columns)
        mean_rate, matrix_rate = self.rate(p, mean, matrix)
        made = np.concatenate([mean_rate, matrix_rate.ravel()])
        if not np.all(np.isfinite(made)) and not _finite(p):
            raise NotFinite(
                f"the parameters are not finite at t = {t:.6g}; check the function of the schedule."
            )
        return made

    def _tolerances(self) -> Array:
        # Relative to the larger of the start and the present: entries near zero must not
        # dictate the step, and a law that shrinks must keep its relative accuracy.
        mean, matrix = split(np.append(self.states[-1], 0.0), self.columns)
        now = _scales(mean, matrix)
        return np.asarray(ABSOLUTE * self.problem.rtol * np.minimum(now, self.scale))

    def _size(self, y: Array) -> float:
        """Trace of the covariance in a state."""
        _, matrix = split(np.append(y, 0.0), self.columns)
        return float(np.trace(matrix)) if self.covariance_form else float(np.sum(matrix**2))

    def _time_left(self, piece: Piece, t: float, y: Array) -> float:
        """Time to blow-up if the attention term alone acted along the present direction."""
        p = piece.law(min(t, piece.end))
        _, matrix = split(np.append(y, 0.0), self.columns)
        zero = np.zeros(matrix.shape[0])
        bare = Parameters(B=p.B, V=p.V, dim=zero.size)
        _, rate = self.rate(bare, zero, matrix)
        if self.covariance_form:
            growth, norm = float(np.sum(matrix * rate)), float(np.sum(matrix**2))
        else:
            S_L = matrix @ (matrix.T @ matrix)
            growth, norm = 2.0 * float(np.sum(S_L * rate)), float(np.sum(S_L * matrix))
        return norm / growth if growth > 0 else math.inf

    def _near_blow_up(self, piece: Piece, t: float, y: Array, end: float, initial: float) -> bool:
        return self._size(y) > 10 * initial and self._time_left(piece, t, y) < 0.5 * (end - t)

    def _why_stuck(self, y: Array) -> Status:
        return Status.STEP_SIZE if np.all(np.abs(y) < LARGEST) else Status.OVERFLOW

    def _accept(self, dense: Array, width: float, state: Array, clock: float) -> None:
        powers = _TO_POWERS @ dense
        scales = width ** np.arange(7, -1, -1)
        self.coefficients.append(powers / scales[:, None])
        self.nodes.append(self.nodes[-1] + width)
        self.states.append(state.copy())
        self.clocks.append(clock)
        self.progress(
            min(clock / self.problem.horizon, 1.0),
            f"t = {clock:.6g}, trace = {self._size(state):.3g}",
        )

    def outcome(self, status: Status) -> Outcome:
        """Collect the nodes in full coordinates."""
        pairs = [split(np.append(y, 0.0), self.columns) for y in self.states]
        dense = None
        if self.coefficients:
            polynomial = PPoly(np.stack(self.coefficients, axis=1), np.array(self.nodes))
            dense = Interpolant(
                polynomial, self.columns, self.covariance_form, self.basis, self.rest
            )
            pairs = [dense.lift(*pair) for pair in pairs]
        factors = [factor_of(m) if self.covariance_form else m for _, m in pairs]
        return Outcome(
            status,
            np.array(self.clocks),
            np.array([m for m, _ in pairs]),
            np.array(factors),
            self.evaluations,
            self.blow_up_time,
            dense,
        )


def _finite(p: Parameters) -> bool:
    return all(bool(np.all(np.isfinite(x))) for x in (p.A, p.B, p.V, p.b))


def _scales(mean: Array, matrix: Array) -> Array:
    """Size of each entry of the state for absolute tolerances."""
    spread = float(np.max(np.abs(matrix), initial=0.0))
    offset = max(float(np.max(np.abs(mean), initial=0.0)), math.sqrt(spread) if spread else 0.0)
    tiny = np.finfo(float).tiny ** 0.5
    return np.concatenate(
        [np.full(mean.size, max(offset, spread, tiny)), np.full(matrix.size, max(spread, tiny))]
    )

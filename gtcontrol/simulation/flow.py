"""The flow on (mean, factor), or on (mean, covariance) with process noise."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import DOP853, Radau
from scipy.interpolate import PPoly

from .._check import Array
from ..problem import memory
from ..problem.definitions import SimulationProblem
from ..progress import Progress
from ..results.trajectory import Interpolant, factor_of, lift
from ..schedule import Piece
from ..status import Status
from .limits import LARGEST
from .motion import Motion
from .outcome import Outcome
from .stiffness import STIFFEST, Watch

__all__ = ["run"]

#: A blow-up is declared when the time left, relative to the time elapsed, is below this ...
TIME_LEFT = 1e-14

#: ... and the trace has grown by this factor since rescaled time began.
GROWTH = 1e8

#: Steps in rescaled time, one after the other, in which no blow-up seems near before it has turned
#: back: where the direction of the covariance turns, growth pauses on the way to a blow-up.
PAUSE = 50

#: Steps whose continuous extension must fit into memory before a run begins.
LEAST_STEPS = 100

# The continuous extension of DOP853 has degree 7: eight points determine it.
_THETA = 0.5 - 0.5 * np.cos(np.pi * np.arange(8) / 7)
_TO_POWERS = np.linalg.inv(np.vander(_THETA))


def run(problem: SimulationProblem, progress: Progress) -> Outcome:
    """Integrate piece by piece until the horizon, a blow-up, or the end of the means."""
    march = _March(problem, progress)
    status = Status.UNDERFLOW if march.motion.vanishes(march.now.state) else Status.SUCCESS
    try:
        for piece in problem.schedule.pieces(inner=march.motion.basis is not None):
            end = min(piece.end, problem.horizon)
            if piece.start >= end or status is not Status.SUCCESS:
                break
            status = march.through(piece, end)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return march.outcome(status)


class _Node(NamedTuple):
    """An accepted state, and the polynomial (in powers of θ in [0, 1]) that led to it."""

    clock: float
    state: Array
    curve: Array | None


@dataclass
class _March:
    """The integration, and the nodes collected so far."""

    problem: SimulationProblem
    progress: Progress
    evaluations: int = 0
    blow_up_time: float = math.inf
    nodes: list[_Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        start = self.problem.start
        numbers = start.dim * (1 + (start.dim if self.problem.schedule.noisy else start.rank))
        memory.require("the first steps of the trajectory", 2.0 * LEAST_STEPS * numbers)
        self.motion = Motion(self.problem)
        per_step = 10 * self.motion.start.size + numbers  # continuous extension, state and node
        memory.require("the first steps of the trajectory", float(LEAST_STEPS * per_step))
        fitting = memory.SHARE * memory.available() / (memory.FLOAT * per_step)
        self.most_steps = min(self.problem.max_steps, int(fitting))
        self.nodes.append(_Node(0.0, self.motion.start, None))

    @property
    def now(self) -> _Node:
        """The last accepted node."""
        return self.nodes[-1]

    def through(self, piece: Piece, end: float) -> Status:
        """Integrate over one smooth piece, up to time `end`."""
        status = Status.SUCCESS
        while self.now.clock < end and status is Status.SUCCESS:
            before = self.now.clock
            status = self._ordinary(piece, end)
            if status is Status.SUCCESS and self.now.clock < end:
                status = self._rescaled(piece, end)
                if status is Status.SUCCESS and self.now.clock == before:
                    # The blow-up is not near after all, and no progress was made: finish the
                    # piece in ordinary time.
                    status = self._ordinary(piece, end, to_the_end=True)
        return status

    def _ordinary(self, piece: Piece, end: float, *, to_the_end: bool = False) -> Status:
        """Integrate in time t, until `end` or until a blow-up seems near."""
        motion = self.motion

        began, state, _ = self.now
        slope = motion.derivative(piece, began, state)
        if not np.all(np.isfinite(slope)):
            return Status.OVERFLOW
        unit = motion.unit(state, slope)

        def right_side(t: float, y: Array) -> Array:
            self.evaluations += 1
            return unit * motion.derivative(piece, unit * t, y)

        first = motion.first_step(began, state, slope, end - began)
        atol = motion.tolerances(state, slope)
        span = began / unit, min(end / unit, sys.float_info.max)
        solver = self._solver(right_side, span[0], state, span[1], atol, first / unit)
        watch = Watch() if state.size <= STIFFEST else None
        size = motion.size(state)
        status = Status.SUCCESS
        while solver.status == "running" and status is Status.SUCCESS:
            if not to_the_end and self._near_blow_up(piece, end, size):
                break
            if len(self.nodes) > self.most_steps:
                return Status.STEP_LIMIT
            solver.atol = motion.tolerances(solver.y, solver.f / unit)
            solver.step()
            status = self._trouble(solver, solver.y)
            if status is Status.SUCCESS:
                within = _within(solver)
                dense = np.column_stack([solver.dense_output()(within).T, unit * within])
                self._accept(unit * solver.t, solver.y, dense)
                if watch is not None and watch.sees(solver):
                    solver, watch = self._implicit(solver), None
        if status is Status.STEP_SIZE and not to_the_end:
            left = motion.time_left(piece, self.now.clock, solver.y)
            if left < end - self.now.clock:  # perhaps a blow-up faster than the clock can tell
                return Status.SUCCESS
        return status

    def _rescaled(self, piece: Piece, end: float) -> Status:
        """Integrate in s, dt = ds/(a + c |L|²), where a blow-up lies at infinity.

        Stops before `end` (which ordinary time then reaches exactly), or when the time left
        no longer changes the clock.
        """
        motion, began, steps = self.motion, self.now.clock, len(self.nodes)
        p = piece.law(began)
        slow = float(np.linalg.norm(p.A)) + 1.0 / (end - began)
        fast = 2.0 * sum(float(np.linalg.norm(V) * np.linalg.norm(B)) for V, B, _ in p.heads)

        def right_side(s: float, y: Array) -> Array:
            self.evaluations += 1
            t = min(began + float(y[-1]), end)
            speed = 1.0 / (slow + fast * motion.size(y[:-1]))
            return np.append(speed * motion.derivative(piece, t, y[:-1]), speed)

        state = np.append(self.now.state, 0.0)
        slope = right_side(0.0, state)
        left = motion.time_left(piece, began, state[:-1])
        clock_tolerance = 1e-3 * self.problem.rtol * min(end - began, left)
        tolerances = np.append(motion.tolerances(state[:-1], slope[:-1]), clock_tolerance)
        first = motion.first_step(0.0, state[:-1], slope[:-1], 1.0)
        solver = self._solver(right_side, 0.0, state, math.inf, tolerances, first)
        initial = motion.size(state[:-1])
        pause = 0
        while steps <= self.most_steps:
            solver.atol[:-1] = motion.tolerances(solver.y[:-1], solver.f[:-1])
            solver.step()
            steps += 1
            status = self._trouble(solver, solver.y[:-1])
            t = began + float(solver.y[-1])
            if status is not Status.SUCCESS or t >= end:
                return status
            if t > self.now.clock:  # close to a blow-up the clock may stand still
                dense = solver.dense_output()(_within(solver)).T
                dense[:, -1] += began
                self._accept(t, solver.y[:-1], dense)
            left = motion.time_left(piece, t, solver.y[:-1])
            size = motion.size(solver.y[:-1])
            if left <= TIME_LEFT * t and size >= GROWTH * initial:
                self.blow_up_time = t + left
                return Status.BLOW_UP
            pause = 0 if left < 10 * (end - t) else pause + 1
            if size < 0.01 * initial or pause > PAUSE:
                return Status.SUCCESS  # it turned back
        return Status.STEP_LIMIT

    def _solver(
        self,
        right_side: Callable[[float, Array], Array],
        t: float,
        y: Array,
        end: float,
        atol: Array,
        first: float,
    ) -> Any:
        made: Any = DOP853  # its stubs do not know of tolerances by entry
        return made(right_side, t, y, end, rtol=self.problem.rtol, atol=atol, first_step=first)

    def _implicit(self, explicit: Any) -> Any:
        """Go on from where an explicit integrator is, with the same tolerances."""
        if explicit.status != "running":
            return explicit
        made: Any = Radau  # as above
        return made(
            explicit.fun,
            explicit.t,
            explicit.y,
            explicit.t_bound,
            rtol=explicit.rtol,
            atol=explicit.atol,
            first_step=min(explicit.h_abs, explicit.t_bound - explicit.t),
        )

    def _trouble(self, solver: Any, state: Array) -> Status:
        """What stops the integration after a step, SUCCESS if nothing does."""
        if not np.all(np.abs(state) < LARGEST):
            return Status.OVERFLOW
        if solver.status == "failed":
            return Status.STEP_SIZE
        return Status.UNDERFLOW if self.motion.vanishes(state) else Status.SUCCESS

    def _near_blow_up(self, piece: Piece, end: float, initial: float) -> bool:
        clock, state, _ = self.now
        if self.motion.size(state) <= 10 * initial:
            return False
        return self.motion.time_left(piece, clock, state) < 0.5 * (end - clock)

    def _accept(self, clock: float, state: Array, dense: Array) -> None:
        self.nodes.append(_Node(float(clock), state.copy(), _TO_POWERS @ dense))
        self.progress(
            min(clock / self.problem.horizon, 1.0),
            f"t = {clock:.6g}, trace = {self.motion.size(state):.3g}",
        )

    def outcome(self, status: Status) -> Outcome:
        """Collect the nodes in full coordinates."""
        motion = self.motion
        form = motion.columns, motion.covariance_form, motion.basis, motion.rest
        pairs = [lift(*motion.parts(n.state), motion.basis, motion.rest) for n in self.nodes]
        curves = [node.curve for node in self.nodes if node.curve is not None]
        dense = None
        if curves:
            steps = np.arange(len(self.nodes), dtype=float)
            dense = Interpolant(PPoly(np.stack(curves, axis=1), steps), *form)
        return Outcome(
            status,
            np.array([node.clock for node in self.nodes]),
            np.array([m for m, _ in pairs]),
            np.array([factor_of(x) if motion.covariance_form else x for _, x in pairs]),
            steps=len(self.nodes) - 1,
            evaluations=self.evaluations,
            blow_up_time=self.blow_up_time,
            interpolant=dense,
        )


def _within(solver: Any) -> Array:
    return np.asarray(solver.t_old + _THETA * (solver.t - solver.t_old))

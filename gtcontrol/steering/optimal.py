"""Optimal steering: several starts, solve, replay, refine, keep the best."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._check import Array
from .._interrupt import Interruption
from ..problem.costs import MinimumTime
from ..problem.definitions import SteeringProblem
from ..progress import Progress
from ..results.steering import Attempt, Steering, Violation
from ..results.trajectory import Trajectory
from ..schedule import Schedule
from ..simulation.run import simulate
from ..status import Status
from .course import Course, State, from_plan, straight
from .instance import Instance, Solution, instance_of
from .law import schedule_of
from .measure import cost_along, miss
from .reduction import Reduction
from .scaling import Units
from .violations import worst_violations

__all__ = ["Outcome", "Settings", "solve"]

#: Tolerance of the integrator that replays a plan.
REPLAY_RTOL = 1e-10

#: A plan whose measured cost differs from the solver's by more than this is refined.
COST_TOLERANCE = 1e-4

#: Costs that agree to this fraction belong to the same minimum.
SAME = 1e-7

#: Largest ratio of the generator's size to its mean for which the first mesh is uniform.
STEEP = 3.0

#: Between the points of the mesh a bound on the covariance may be exceeded by this fraction.
OVERSHOOT = 1e-3

#: Programs with more unknowns than this are large: fewer starts by default.
LARGE = 4000


@dataclass(frozen=True)
class Settings:
    """Numerical choices of a solve; see :func:`gtcontrol.steer`."""

    starts: int | None
    intervals: int
    solver: str
    tolerance: float
    replay_tolerance: float
    refinements: int
    max_iterations: int
    seed: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """The best plan, replayed and measured."""

    status: Status
    schedule: Schedule
    trajectory: Trajectory
    cost: float
    replay_error: float
    terminal_error: float
    solver: str
    iterations: int
    intervals: int
    refinements: int
    attempts: tuple[Attempt, ...]
    violations: tuple[Violation, ...]


@dataclass(frozen=True, eq=False)
class _Candidate:
    instance: Instance
    solution: Solution
    attempt: Attempt
    parameters: Array
    multipliers: Array | None = None


@dataclass
class _Search:
    """What a search has found so far; it survives an interruption."""

    attempts: list[Attempt] = field(default_factory=list)
    candidates: list[_Candidate] = field(default_factory=list)
    failures: list[_Candidate] = field(default_factory=list)
    interruption: Interruption = field(default_factory=Interruption)


def solve(
    problem: SteeringProblem,
    reduction: Reduction,
    settings: Settings,
    initial: Steering | None,
    progress: Progress,
) -> Outcome | None:
    """Solve an optimal steering problem; None if it was interrupted before any solve ended."""
    units = Units.of(problem.start, problem.target, problem.horizon)
    if isinstance(problem.cost, MinimumTime):
        units = dataclasses.replace(units, time=_first_horizon(problem, reduction, units))
    instance = instance_of(problem, reduction, units, settings.intervals)
    search = _Search()
    courses = list(_courses(instance, settings, initial))
    widths = _first_mesh(courses[0], settings.intervals)
    with Interruption() as interruption:
        search.interruption = interruption
        try:
            for i, course in enumerate(courses):
                progress(i / (len(courses) + 1), f"start {i + 1} of {len(courses)}: {course.name}")
                _attempt(instance, course, widths, settings, search)
            if not search.candidates:
                _second_opinion(instance, courses[0], widths, settings, search)
        except KeyboardInterrupt:
            interruption.requested = True
        if interruption.requested and not search.candidates:
            return None
        return _choose(search, settings, progress)


# -- starts ------------------------------------------------------------------------------


def _courses(instance: Instance, settings: Settings, initial: Steering | None) -> Iterator[Course]:
    enabled, ends = instance.form.controls, instance.ends
    if initial is not None:
        yield from_plan(initial, instance.units, instance.reduction.basis, enabled, ends)
        return
    rng = np.random.default_rng(settings.seed)
    attention = {"V", "B"} <= set(enabled)
    mixed = attention and "A" in enabled
    count = settings.starts
    if count is None:
        count = 4 if instance.form.variables <= LARGE else 2
    for i in range(count):
        turned = i >= (2 if attention else 1)
        share = 0.5 if mixed and i % 2 == 0 else 0.0
        noise = 0.0 if not attention or (i == 0 and not mixed) else (0.05 if share else 0.1)
        name = "rotated geodesic" if turned else "geodesic"
        if share:
            name += ", split"
        if noise:
            name += ", perturbed"
        yield straight(name, ends, enabled, rng, turn=0.6 * turned, share=share, noise=noise)


def _first_mesh(course: Course, intervals: int) -> Array:
    """Uniform, or finer where the generator of the first course is many times its mean."""
    grid = np.linspace(0.0, 1.0, 20 * intervals + 1)
    states = [course.at(float(tau)) for tau in grid]
    speeds = np.array([_speed(s.factor, s.factor_rate, s.mean_rate) for s in states])
    if not speeds.max() > STEEP * speeds.mean():
        return np.full(intervals, 1.0 / intervals)
    return _equidistributed(grid, 0.5 * (speeds[1:] + speeds[:-1]), intervals)


def _equidistributed(edges: Array, speeds: Array, intervals: int) -> Array:
    """Widths of a mesh with as much of 1 + speed/mean in each interval; speeds per old one."""
    widths = np.diff(edges)
    density = 1.0 + speeds / max(float(speeds @ widths), 1e-300)
    mass = np.concatenate([[0.0], np.cumsum(density * widths)])
    return np.diff(np.interp(np.linspace(0.0, mass[-1], intervals + 1), mass, edges))


def _speed(factor: Array, factor_rate: Array, mean_rate: Array) -> float:
    """Size of the generator: relative rate of the factor."""
    if not factor.shape[1]:
        return float(np.linalg.norm(mean_rate))
    return float(np.linalg.norm(factor_rate @ np.linalg.pinv(factor)))


def _first_horizon(problem: SteeringProblem, reduction: Reduction, units: Units) -> float:
    """A horizon at which the transport geodesic respects the bounds, or nearly so."""
    if not isinstance(problem.cost, MinimumTime):
        raise TypeError("only for minimum time")
    unit = dataclasses.replace(units, time=1.0)
    instance = instance_of(problem, reduction, unit, 1)
    course = straight("", instance.ends, instance.form.controls, np.random.default_rng(0))
    needed = 0.0
    for tau in np.linspace(0, 1, 41):
        state = course.at(float(tau))
        needed = max(needed, _horizon_at(state, instance))
    return 1.02 * needed or 1.0


def _horizon_at(state: State, instance: Instance) -> float:
    def ratio(letter: str) -> float:
        u = state.controls[letter]
        size = float(np.max(np.abs(u)))
        if letter in instance.norms:
            return float(np.linalg.norm(u)) / instance.norms[letter]
        return size / instance.entries.get(letter, np.inf)

    speeds = [ratio(c) for c in state.controls if c in "Ab"]
    if "V" in state.controls:
        # V and B may share the load: only their product counts for the covariance
        both = ratio("V") * max(ratio("B"), 1.0) if "B" in state.controls else ratio("V")
        speeds.append(both)
    return max(speeds, default=0.0)


# -- one solve ---------------------------------------------------------------------------


def _attempt(
    instance: Instance,
    course: Course,
    widths: Array,
    settings: Settings,
    search: _Search,
) -> _Candidate | None:
    """Solve from one course; a solved candidate is returned and kept."""
    name = _solver_name(instance, settings)
    solver = instance.program.solver(name, _options(name, settings))
    p = instance.parameters(widths)
    low, high = instance.variable_bounds()
    row_low, row_high = instance.program.row_bounds()
    w0 = instance.unknowns(course, widths)
    began = time.perf_counter()
    out = solver(x0=w0, p=p, lbx=low, ubx=high, lbg=row_low, ubg=row_high)
    seconds = time.perf_counter() - began
    stats = solver.stats()
    w, cost = np.asarray(out["x"]).ravel(), float(out["f"])
    converged = bool(stats["success"]) and bool(np.all(np.isfinite(w)))
    solution = instance.solution(w, widths, cost)
    if instance.form.free_time:
        cost = instance.units.time * solution.time
    attempt = Attempt(
        start=course.name,
        solver=name,
        intervals=int(widths.size),
        outcome=_outcome_name(stats),
        converged=converged,
        iterations=int(stats.get("iter_count", 0)),
        cost=cost,
        seconds=seconds,
    )
    search.attempts.append(attempt)
    candidate = _Candidate(instance, solution, attempt, p)
    (search.candidates if converged else search.failures).append(candidate)
    if search.interruption.requested:
        raise KeyboardInterrupt  # the solver has swallowed it
    return candidate if converged else None


def _second_opinion(
    instance: Instance, course: Course, widths: Array, settings: Settings, search: _Search
) -> None:
    """When every start has failed, let ipopt try: it restores feasibility, or proves it gone."""
    if _solver_name(instance, settings) == "fatrop" and settings.solver == "auto":
        _attempt(instance, course, widths, dataclasses.replace(settings, solver="ipopt"), search)


def _solver_name(instance: Instance, settings: Settings) -> str:
    if settings.solver != "auto":
        return settings.solver
    # measured: fatrop is faster while the blocks of one interval are small
    return "fatrop" if instance.form.dim <= 3 and not instance.form.eigenvalue else "ipopt"


def _options(name: str, settings: Settings) -> tuple[tuple[str, Any], ...]:
    options: tuple[tuple[str, Any], ...] = (
        ("max_iter", settings.max_iterations),
        ("tol", settings.tolerance),
    )
    if name == "ipopt":
        options += (("mumps_mem_percent", 1000),)
    return options


def _outcome_name(stats: dict[str, Any]) -> str:
    status = stats.get("return_status", "")
    unified = str(stats.get("unified_return_status", "")).removeprefix("SOLVER_RET_").lower()
    return str(status) if isinstance(status, str) and status else f"{unified} ({status})"


# -- choice, replay, refinement ----------------------------------------------------------


def _choose(search: _Search, settings: Settings, progress: Progress) -> Outcome:
    ranked = sorted(search.candidates, key=lambda c: c.attempt.cost)
    best: Outcome | None = None
    tried = -np.inf
    for candidate in ranked:
        # Costs only grow from here: a later one can win only by the solver's own error.
        limit = best.cost if best is not None and best.status is Status.SUCCESS else np.inf
        if candidate.attempt.cost > limit * (1 - COST_TOLERANCE):
            break
        if candidate.attempt.cost <= tried * (1 + SAME):
            continue  # the same minimum, found again
        tried = candidate.attempt.cost
        outcome = _refined(candidate, search, settings, progress)
        if best is None or _better(outcome, best):
            best = outcome
        if search.interruption.requested:
            break
    if best is None:
        best = _failed(search)
    if search.interruption.requested:
        best = dataclasses.replace(best, status=Status.INTERRUPTED)
    return dataclasses.replace(best, attempts=tuple(search.attempts))


def _better(new: Outcome, old: Outcome) -> bool:
    if (new.status is Status.SUCCESS) != (old.status is Status.SUCCESS):
        return new.status is Status.SUCCESS
    return (
        new.cost < old.cost if new.status is Status.SUCCESS else new.replay_error < old.replay_error
    )


def _refined(
    candidate: _Candidate, search: _Search, settings: Settings, progress: Progress
) -> Outcome:
    """Replay a candidate; refine its mesh until the replay arrives."""
    outcome = _replayed(candidate, settings, 0)
    for i in range(settings.refinements):
        mismatch = abs(outcome.cost - candidate.attempt.cost)
        accurate = mismatch <= COST_TOLERANCE * max(abs(outcome.cost), 1e-300)
        if outcome.status is Status.SUCCESS and accurate:
            break
        progress(0.9, f"refining the mesh, replay error {outcome.replay_error:.2g} ({i + 1})")
        try:
            finer = _finer(candidate, search, settings)
        except KeyboardInterrupt:
            search.interruption.requested = True
            break
        if finer is None:
            break
        candidate = finer
        new = _replayed(candidate, settings, i + 1)
        if new.status is Status.SUCCESS or outcome.status is not Status.SUCCESS:
            outcome = new
    return outcome


def _finer(candidate: _Candidate, search: _Search, settings: Settings) -> _Candidate | None:
    """Solve again on twice as many intervals, placed where the generator is large."""
    old, s = candidate.instance, candidate.solution
    n = 2 * old.form.intervals
    instance = dataclasses.replace(old, form=dataclasses.replace(old.form, intervals=n))
    speeds = [
        _speed(s.factors[k], s.factor_rates[k, 0], s.mean_rates[k, 0])
        for k in range(old.form.intervals)
    ]
    edges = np.concatenate([[0.0], np.cumsum(s.widths)])
    widths = _equidistributed(edges / edges[-1], np.array(speeds), n)
    return _attempt(instance, _along(s, candidate.attempt.start), widths, settings, search)


def _along(s: Solution, name: str) -> Course:
    """The course of a solution, for a start on another mesh."""
    edges = np.concatenate([[0.0], np.cumsum(s.widths)])

    def at(tau: float) -> State:
        k = int(np.clip(np.searchsorted(edges, tau, side="right") - 1, 0, s.widths.size - 1))
        theta = (tau - edges[k]) / s.widths[k]
        controls = {c: u[k].mean(axis=0) for c, u in s.controls.items()}
        return State(
            (1 - theta) * s.factors[k] + theta * s.factors[k + 1],
            (1 - theta) * s.means[k] + theta * s.means[k + 1],
            s.factor_rates[k].mean(axis=0) * s.time,
            s.mean_rates[k].mean(axis=0) * s.time,
            controls,
        )

    return Course(name, at, s.time)


def _replayed(candidate: _Candidate, settings: Settings, refinements: int) -> Outcome:
    problem = candidate.instance.problem
    schedule = schedule_of(candidate.instance, candidate.solution)
    trajectory = simulate(problem.start, schedule, rtol=REPLAY_RTOL)
    error = np.inf
    if trajectory.status is Status.SUCCESS:
        error = miss(trajectory.final, problem.start, problem.target)
    arrived = error <= settings.replay_tolerance and _within_bounds(problem, trajectory)
    rows = candidate.instance.program.residuals(candidate.solution.unknowns, candidate.parameters)
    terminal = [
        abs(value)
        for value, (name, _) in zip(rows, candidate.instance.program.row_names, strict=True)
        if name.startswith("terminal")
    ]
    return Outcome(
        status=Status.SUCCESS if arrived else Status.REPLAY_FAILED,
        schedule=schedule,
        trajectory=trajectory,
        cost=cost_along(problem.cost, schedule, trajectory),
        replay_error=float(error),
        terminal_error=float(max(terminal, default=0.0)),
        solver=candidate.attempt.solver,
        iterations=candidate.attempt.iterations,
        intervals=candidate.attempt.intervals,
        refinements=refinements,
        attempts=(),
        violations=(),
    )


def _within_bounds(problem: SteeringProblem, trajectory: Trajectory) -> bool:
    """Whether the replay respects the bounds on the covariance between the mesh points too."""
    b = problem.bounds
    ok = True
    if b.trace is not None:
        ok = float(trajectory.traces.max()) <= b.trace * (1 + OVERSHOOT)
    if b.largest_eigenvalue is not None and problem.start.rank:
        ok = ok and float(trajectory.eigenvalues.max()) <= b.largest_eigenvalue * (1 + OVERSHOOT)
    return ok


def _failed(search: _Search) -> Outcome:
    """The least bad iterate, with its worst violated constraints."""
    worst = {
        id(c): worst_violations(c.instance, c.solution.unknowns, c.parameters)
        for c in search.failures
    }
    candidate = min(
        search.failures, key=lambda c: max((v.size for v in worst[id(c)]), default=np.inf)
    )
    settings = Settings(0, 0, "", 0.0, 0.0, 0, 0, 0)
    infeasible = any("infeasible" in a.outcome.lower() for a in search.attempts)
    return dataclasses.replace(
        _replayed(candidate, settings, 0),
        status=Status.INFEASIBLE if infeasible else Status.NOT_CONVERGED,
        violations=worst[id(candidate)],
    )

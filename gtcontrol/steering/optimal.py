"""Optimal steering: several starts, solve, replay, refine, keep the best."""

from __future__ import annotations

import dataclasses
import time
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
from .course import Course
from .instance import Instance, Solution, instance_of
from .law import schedule_of
from .measure import cost_along, miss
from .mesh import along, coarsened, first_mesh, refined_mesh, with_intervals
from .reduction import Reduction
from .scaling import Units
from .starts import courses, first_horizon
from .violations import worst_violations

__all__ = ["Outcome", "Settings", "solve"]

#: Tolerance of the integrator that replays a plan.
REPLAY_RTOL = 1e-10

#: A plan whose measured cost differs from the solver's by more than this is refined ...
COST_TOLERANCE = 1e-4

#: ... and by more than this, if its controls are smooth.
SMOOTH_COST_TOLERANCE = 5e-7

#: Costs that agree to this fraction belong to the same minimum.
SAME = 1e-5

#: Between the points of the mesh a bound on the covariance may be exceeded by this fraction.
OVERSHOOT = 1e-3

#: Tolerance of the starts, whose best are polished, and bound on their iterations.
QUICK_TOLERANCE = 1e-6
QUICK_ITERATIONS = 80

#: Minima on the first mesh within this fraction of the best one are worth a finer look ...
CLOSE = 0.02

#: ... but not more of them than this.
MOST_POLISHED = 4


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
    iterations: int


@dataclass
class _Search:
    """What a search has found so far; it survives an interruption."""

    interruption: Interruption
    attempts: list[Attempt] = field(default_factory=list)
    candidates: list[_Candidate] = field(default_factory=list)
    failures: list[_Candidate] = field(default_factory=list)


def solve(
    problem: SteeringProblem,
    reduction: Reduction,
    settings: Settings,
    initial: Steering | None,
    progress: Progress,
    interruption: Interruption,
) -> Outcome | None:
    """Solve an optimal steering problem; None if it was interrupted before any solve ended."""
    units = Units.of(problem.start, problem.target, problem.horizon)
    if isinstance(problem.cost, MinimumTime):
        units = dataclasses.replace(units, time=first_horizon(problem, reduction, units))
    instance = instance_of(problem, reduction, units, settings.intervals)
    search = _Search(interruption)
    tracks = list(courses(instance, settings.starts, settings.seed, initial))
    coarse, quick = instance, settings
    if initial is None:
        coarse, quick = coarsened(instance), _quick(settings)
    try:
        for i, course in enumerate(tracks):
            progress(i / (len(tracks) + 1), f"start {i + 1} of {len(tracks)}: {course.name}")
            _attempt(coarse, course, first_mesh(course, coarse), quick, search)
        if not search.candidates:
            _second_opinion(instance, tracks[0], settings, search)
    except KeyboardInterrupt:
        interruption.requested = True
    if interruption.requested and not search.candidates:
        return None
    return _choose(search, settings, progress)


def _quick(settings: Settings) -> Settings:
    """Settings of the starts: what does not converge soon is left to the other starts."""
    return dataclasses.replace(
        settings,
        tolerance=max(settings.tolerance, QUICK_TOLERANCE),
        max_iterations=min(settings.max_iterations, QUICK_ITERATIONS),
    )


# -- one solve ---------------------------------------------------------------------------


def _attempt(
    instance: Instance,
    course: Course,
    widths: Array,
    settings: Settings,
    search: _Search,
    spent: int = 0,
) -> _Candidate | None:
    """Solve from one course; a solved candidate is returned and kept.

    `spent` are the iterations on coarser meshes that led to this course.
    """
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
    candidate = _Candidate(instance, solution, attempt, p, spent + attempt.iterations)
    (search.candidates if converged else search.failures).append(candidate)
    if search.interruption.requested:
        raise KeyboardInterrupt  # the solver has swallowed it
    return candidate if converged else None


def _second_opinion(
    instance: Instance, course: Course, settings: Settings, search: _Search
) -> None:
    """When every start has failed, let ipopt try: it restores feasibility, or proves it gone."""
    chosen = "ipopt" if settings.solver == "auto" else settings.solver
    widths = first_mesh(course, instance)
    _attempt(instance, course, widths, dataclasses.replace(settings, solver=chosen), search)


def _solver_name(instance: Instance, settings: Settings) -> str:
    if settings.solver != "auto":
        return settings.solver
    # Measured: fatrop is up to twice as fast while the blocks of one interval are small.  It
    # knows no time limit, and with attention or bounds it was seen not to return.
    form = instance.form
    affine = "B" not in form.controls and not instance.problem.bounds
    return "fatrop" if form.dim <= 3 and affine else "ipopt"


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
    """Polish the best minima of the first mesh, replay them, and keep the best that arrives."""
    ranked = sorted(search.candidates, key=lambda c: c.attempt.cost)
    best: Outcome | None = None
    tried: list[float] = []
    for candidate in ranked:
        cost = candidate.attempt.cost
        arrived = best is not None and best.status is Status.SUCCESS
        if arrived and (len(tried) >= MOST_POLISHED or cost > tried[0] + CLOSE * abs(tried[0])):
            break
        if any(abs(cost - other) <= SAME * abs(cost) for other in tried):
            continue  # the same minimum, found again
        tried.append(cost)
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
    """Bring a candidate to the mesh asked for, and refine until its replay arrives."""
    done = 0
    try:
        interrupted = search.interruption.requested
        if candidate.attempt.intervals < settings.intervals and not interrupted:
            progress(0.9, f"polishing cost {candidate.attempt.cost:.6g}")
            finer = _finer(candidate, settings.intervals, search, settings)
            candidate = finer or candidate
        outcome = _replayed(candidate, settings, done)
        while done < settings.refinements and not (interrupted or _accurate(outcome, candidate)):
            done += 1
            progress(0.9, f"refining the mesh, replay error {outcome.replay_error:.2g} ({done})")
            finer = _finer(candidate, 2 * candidate.attempt.intervals, search, settings)
            if finer is None:
                break
            candidate = finer
            new = _replayed(candidate, settings, done)
            if new.status is Status.SUCCESS or outcome.status is not Status.SUCCESS:
                outcome = new
    except KeyboardInterrupt:
        search.interruption.requested = True
        outcome = _replayed(candidate, settings, done)
    return outcome


def _accurate(outcome: Outcome, candidate: _Candidate) -> bool:
    """Whether the plan arrives, and costs what the solver believes.

    Smooth controls converge fast with the mesh, so that more is asked of them.
    """
    smooth = candidate.instance.form.points == 2
    tolerance = SMOOTH_COST_TOLERANCE if smooth else COST_TOLERANCE
    mismatch = abs(outcome.cost - candidate.attempt.cost)
    accurate = mismatch <= tolerance * max(abs(outcome.cost), 1e-300)
    return outcome.status is Status.SUCCESS and accurate


def _finer(candidate: _Candidate, n: int, search: _Search, settings: Settings) -> _Candidate | None:
    """Solve again on n intervals, from the solution."""
    course = along(candidate.solution, candidate.attempt.start)
    instance = with_intervals(candidate.instance, n)
    widths = refined_mesh(candidate.solution, n)
    return _attempt(instance, course, widths, settings, search, candidate.iterations)


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
        iterations=candidate.iterations,
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

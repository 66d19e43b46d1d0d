"""Optimal steering: several starts, solve, replay, refine, keep the best."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

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
from .instance import Instance, instance_of
from .law import schedule_of
from .measure import cost_along, miss
from .mesh import along, first_mesh, first_program, refined_mesh, with_intervals
from .race import Candidate, Search, Settings, race, solve_once, solver_name
from .reduction import Reduction
from .scaling import Units
from .starts import courses, first_horizon
from .switching import settle_switches
from .violations import worst_violations

__all__ = ["Outcome", "Settings", "solve"]

#: Tolerance of the integrator that replays a plan.
REPLAY_RTOL = 1e-10

#: A plan whose measured cost differs from the solver's by more than this is refined ...
COST_TOLERANCE = 1e-4

#: ... and by more than this, if its controls are smooth.
SMOOTH_COST_TOLERANCE = 5e-7

#: A cost that the last doubling of the mesh has changed by less than this has settled; larger
#: programs than this many unknowns are not solved for that alone.
SETTLED, LARGEST_SETTLED = 5e-4, 8000

#: The same for smooth controls, whose cost converges with the fourth power of the width.
SMOOTH_SETTLED = 1e-5

#: Costs that agree to this fraction belong to the same minimum.
SAME = 1e-5

#: Between the points of the mesh a bound on the covariance may be exceeded by this fraction.
OVERSHOOT = 1e-3

#: Minima on the first mesh within this fraction of the best one are worth a finer look ...
CLOSE = 0.02

#: ... but not more of them than this, or than FEW if the first program has many unknowns.
MOST_POLISHED, FEW_POLISHED, MANY_UNKNOWNS = 8, 4, 750

#: Minima that are tried one after the other while no plan arrives.
MOST_TRIED = 12


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


def solve(
    problem: SteeringProblem,
    reduction: Reduction,
    settings: Settings,
    initial: Steering | None,
    progress: Progress,
    interruption: Interruption,
    ceiling: float = math.inf,
) -> Outcome | None:
    """Solve an optimal steering problem; None if it was interrupted before any solve ended.

    Minima that cost more than `ceiling`, the cost of a plan at hand, are not looked into.
    """
    units = Units.of(problem.start, problem.target, problem.horizon)
    if isinstance(problem.cost, MinimumTime):
        units = dataclasses.replace(units, time=first_horizon(problem, reduction, units))
    instance = instance_of(problem, reduction, units, settings.intervals)
    search = Search(interruption)
    tracks = list(courses(instance, settings.starts, settings.seed, initial))
    try:
        with interruption.unmasked():
            if initial is None:
                rough = first_program(instance, solver_name(instance, settings))
                race(rough, tracks, settings, search, progress)
            else:
                progress(0.0, f"start: {tracks[0].name}")
                _from_course(instance, tracks[0], settings, search)
            if not search.candidates:
                _second_opinion(instance, tracks[0], settings, search)
    except KeyboardInterrupt:
        interruption.requested = True
    if interruption.requested and not search.candidates:
        # what was begun may serve: the correction of A or V makes it arrive
        search.candidates += search.failures
        if not search.candidates:
            return None
    return _choose(search, settings, progress, ceiling)


def _second_opinion(instance: Instance, course: Course, settings: Settings, search: Search) -> None:
    """When every start has failed, let ipopt try: it restores feasibility, or proves it gone."""
    chosen = "ipopt" if settings.solver == "auto" else settings.solver
    _from_course(instance, course, dataclasses.replace(settings, solver=chosen), search)


def _from_course(instance: Instance, course: Course, settings: Settings, search: Search) -> None:
    """Solve on the mesh asked for, from one course."""
    widths = first_mesh(course, instance)
    start = instance.unknowns(course, widths)
    search.record(solve_once(instance, course.name, widths, start, settings, search))


# -- choice, replay, refinement ----------------------------------------------------------


def _choose(search: Search, settings: Settings, progress: Progress, ceiling: float) -> Outcome:
    """Polish the best minima of the first mesh, and keep the cheapest that arrives."""
    distinct = _distinct(sorted(search.candidates, key=_rank))
    limit = ceiling * (1 + CLOSE)
    distinct = [c for k, c in enumerate(distinct) if k == 0 or _rank(c) <= limit][:MOST_TRIED]
    best: Outcome | None = None
    try:
        with search.interruption.unmasked():
            for candidate in _polished(distinct, search, settings, progress):
                outcome = _refined(candidate, search, settings, progress, limit)
                if best is None or _better(outcome, best):
                    best = outcome
                if best.status is Status.SUCCESS or search.interruption.requested:
                    break
    except KeyboardInterrupt:
        search.interruption.requested = True
    if best is None and distinct:  # interrupted while polishing
        fine = [c for c in search.candidates if c.attempt.intervals >= settings.intervals]
        best = _replayed(min(fine or distinct, key=_rank), settings, 0)
    if best is None:
        best = _failed(search)
    if search.interruption.requested:
        best = dataclasses.replace(best, status=Status.INTERRUPTED)
    return dataclasses.replace(best, attempts=tuple(search.attempts))


def _distinct(ranked: list[Candidate]) -> list[Candidate]:
    """One candidate for each minimum."""
    found: list[Candidate] = []
    for candidate in ranked:
        cost = candidate.attempt.cost
        if not any(abs(cost - c.attempt.cost) <= SAME * abs(cost) for c in found):
            found.append(candidate)
    return found


def _polished(
    distinct: list[Candidate], search: Search, settings: Settings, progress: Progress
) -> Iterator[Candidate]:
    """The candidates on the mesh asked for: the best ones by cost, then the others in turn."""
    if not distinct:
        return
    limit = _rank(distinct[0]) + CLOSE * abs(_rank(distinct[0]))
    large = distinct[0].instance.form.variables > MANY_UNKNOWNS
    most = FEW_POLISHED if large else MOST_POLISHED
    front = [c for c in distinct[:most] if _rank(c) <= limit]
    yield from sorted((_polish(c, search, settings, progress) for c in front), key=_rank)
    for candidate in distinct[len(front) :]:
        yield _polish(candidate, search, settings, progress)


def _polish(
    candidate: Candidate, search: Search, settings: Settings, progress: Progress
) -> Candidate:
    """Solve on the mesh asked for; the candidate itself if that fails."""
    rough = candidate.attempt.intervals < settings.intervals or candidate.instance.form.stages == 1
    if not rough or search.interruption.requested:
        return candidate
    progress(0.9, f"polishing cost {candidate.attempt.cost:.6g}")
    return _finer(candidate, settings.intervals, search, settings) or candidate


def _rank(candidate: Candidate) -> float:
    return candidate.attempt.cost if candidate.attempt.converged else candidate.merit


def _better(new: Outcome, old: Outcome) -> bool:
    if (new.status is Status.SUCCESS) != (old.status is Status.SUCCESS):
        return new.status is Status.SUCCESS
    return (
        new.cost < old.cost if new.status is Status.SUCCESS else new.replay_error < old.replay_error
    )


def _refined(
    candidate: Candidate, search: Search, settings: Settings, progress: Progress, limit: float
) -> Outcome:
    """Double the mesh until the cost has settled and the replay arrives, or exceeds a limit."""
    outcome: Outcome | None = None
    for done in range(settings.refinements + 1):
        candidate = _switched(candidate, search, settings)
        last = done == settings.refinements or search.interruption.requested
        last = last or candidate.attempt.cost > limit
        replay = last or _settled(candidate)
        if replay:
            new = _replayed(candidate, settings, done)
            if outcome is None or Status.SUCCESS not in (new.status, outcome.status):
                outcome = new
            if new.status is Status.SUCCESS:
                outcome = new
            if last or _accurate(outcome, candidate):
                break
        finer = None
        n = 2 * candidate.attempt.intervals
        progress(0.95, f"refining the mesh to {n} intervals, cost {candidate.attempt.cost:.6g}")
        try:
            with search.interruption.unmasked():
                finer = _finer(candidate, n, search, settings)
        except KeyboardInterrupt:
            search.interruption.requested = True
        if finer is None:
            if not replay:
                outcome = _replayed(candidate, settings, done)
            break
        candidate = finer
    return outcome or _replayed(candidate, settings, 0)


def _switched(candidate: Candidate, search: Search, settings: Settings) -> Candidate:
    """The candidate with its switches where they cost least."""
    form = candidate.instance.form
    if search.interruption.requested or form.free_time or form.variables > LARGEST_SETTLED:
        return candidate
    try:
        with search.interruption.unmasked():
            return settle_switches(candidate, search, settings)
    except KeyboardInterrupt:
        search.interruption.requested = True
        return candidate


def _settled(candidate: Candidate) -> bool:
    """Whether a finer mesh would not lower the cost noticeably.

    Controls that are held constant on each interval leave something to gain, so that the mesh
    is doubled at least once if that is cheap.  Smooth controls converge fast with the mesh.
    """
    form, cost, before = candidate.instance.form, candidate.attempt.cost, candidate.before
    if form.free_time or 2 * form.variables > LARGEST_SETTLED:
        return True
    if form.points == 2:
        return before is None or abs(before - cost) <= SMOOTH_SETTLED * abs(cost)
    return before is not None and abs(before - cost) <= SETTLED * abs(cost)


def _accurate(outcome: Outcome, candidate: Candidate) -> bool:
    """Whether the plan arrives, and costs what the solver believes.

    Smooth controls converge fast with the mesh, so that more is asked of them.
    """
    smooth = candidate.instance.form.points == 2
    tolerance = SMOOTH_COST_TOLERANCE if smooth else COST_TOLERANCE
    mismatch = abs(outcome.cost - candidate.attempt.cost)
    accurate = mismatch <= tolerance * max(abs(outcome.cost), 1e-300)
    return outcome.status is Status.SUCCESS and accurate


def _finer(candidate: Candidate, n: int, search: Search, settings: Settings) -> Candidate | None:
    """Solve again on n intervals, from the solution."""
    course = along(candidate.solution, candidate.attempt.start)
    instance = with_intervals(candidate.instance, n)
    widths = refined_mesh(candidate.solution, n)
    start = instance.unknowns(course, widths)
    spent = candidate.iterations
    finer = solve_once(instance, course.name, widths, start, settings, search, spent)
    if candidate.instance.form.stages == 2:
        finer = dataclasses.replace(finer, before=candidate.attempt.cost)
    return search.record(finer)


def _replayed(candidate: Candidate, settings: Settings, refinements: int) -> Outcome:
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


def _failed(search: Search) -> Outcome:
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

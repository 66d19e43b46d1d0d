"""Many starts on a coarse mesh: all run a few iterations, the promising ones to the end.

After a few iterations the cost of a start tells its minimum well enough to rank the starts, so
most of the time of a solve is not spent on starts that lose.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._check import Array
from .._interrupt import Interruption
from ..progress import Progress
from ..results.steering import SET_ASIDE, Attempt
from .course import Course
from .instance import Instance, Solution
from .mesh import first_mesh

__all__ = ["Candidate", "Search", "Settings", "race", "solve_once", "solver_name"]

#: Tolerance of the starts, whose best are polished, and bound on their iterations.
QUICK_TOLERANCE = 1e-6
QUICK_ITERATIONS = 80

#: Iterations after which the starts are ranked ...
FIRST_ITERATIONS = 6

#: ... and the part of them that goes on, but not fewer than FEWEST.
GOING_ON = 0.4
FEWEST = 4


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
class Candidate:
    """An iterate of the solver.

    Attributes
    ----------
    parameters : array
        Numbers of the program that was solved.
    before : float or None
        Cost on the next coarser mesh of the same kind, if there is one.
    merit : float
        Cost and violation of the constraints in one number: the exact penalty function with
        the solver's multipliers.
    iterations : int
        Iterations on this mesh and on the coarser ones that led to it.
    """

    instance: Instance
    solution: Solution
    attempt: Attempt
    parameters: Array
    merit: float
    iterations: int
    before: float | None = None


@dataclass
class Search:
    """What a search has found so far; it survives an interruption."""

    interruption: Interruption
    attempts: list[Attempt] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    failures: list[Candidate] = field(default_factory=list)

    def record(self, candidate: Candidate) -> Candidate | None:
        """Keep a finished attempt; the candidate is returned if it is solved."""
        self.attempts.append(candidate.attempt)
        converged = candidate.attempt.converged
        (self.candidates if converged else self.failures).append(candidate)
        return candidate if converged else None


def race(
    instance: Instance,
    tracks: Sequence[Course],
    settings: Settings,
    search: Search,
    progress: Progress,
) -> None:
    """Run all starts for a few iterations, and the best to the end, until some converge."""
    quick = dataclasses.replace(
        settings,
        tolerance=max(settings.tolerance, QUICK_TOLERANCE),
        max_iterations=min(settings.max_iterations, QUICK_ITERATIONS),
    )
    first = quick
    if len(tracks) > FEWEST:
        limit = min(FIRST_ITERATIONS, quick.max_iterations)
        first = dataclasses.replace(quick, max_iterations=limit)
    waiting: list[Candidate] = []
    try:
        for i, course in enumerate(tracks):
            progress(0.5 * i / len(tracks), f"start {i + 1} of {len(tracks)}: {course.name}")
            candidate = _first_leg(instance, course, first, search)
            if candidate.attempt.converged or candidate.attempt.iterations >= quick.max_iterations:
                search.record(candidate)
            else:
                waiting.append(candidate)
        waiting.sort(key=lambda c: c.merit)
        most = max(FEWEST, round(GOING_ON * len(tracks)))
        done = 0
        while waiting and (done < most or not search.candidates):
            candidate = waiting[0]
            name = candidate.attempt.start
            progress(0.5 + 0.4 * min(1.0, done / most), f"going on from the {name}")
            _second_leg(candidate, quick, search)
            waiting.pop(0)
            done += 1
    finally:
        for candidate in waiting:
            aside = dataclasses.replace(candidate.attempt, outcome=SET_ASIDE)
            search.record(dataclasses.replace(candidate, attempt=aside))


def _first_leg(instance: Instance, course: Course, settings: Settings, search: Search) -> Candidate:
    widths = first_mesh(course, instance)
    start = instance.unknowns(course, widths)
    return solve_once(instance, course.name, widths, start, settings, search)


def _second_leg(before: Candidate, settings: Settings, search: Search) -> None:
    """Go on from the last iterate of a start."""
    left = settings.max_iterations - before.attempt.iterations
    after = solve_once(
        before.instance,
        before.attempt.start,
        before.solution.widths,
        before.solution.unknowns,
        dataclasses.replace(settings, max_iterations=left),
        search,
    )
    attempt = dataclasses.replace(
        after.attempt,
        iterations=before.attempt.iterations + after.attempt.iterations,
        seconds=before.attempt.seconds + after.attempt.seconds,
    )
    search.record(dataclasses.replace(after, attempt=attempt, iterations=attempt.iterations))


def solve_once(
    instance: Instance,
    name: str,
    widths: Array,
    start: Array,
    settings: Settings,
    search: Search,
    spent: int = 0,
) -> Candidate:
    """Let the solver run from a vector of unknowns.

    `spent` are the iterations on coarser meshes that led to it.
    """
    chosen = solver_name(instance, settings)
    solver = instance.program.solver(chosen, _options(chosen, settings))
    p = instance.parameters(widths)
    low, high = instance.variable_bounds()
    row_low, row_high = instance.program.row_bounds()
    began = time.perf_counter()
    try:
        out = solver(x0=start, p=p, lbx=low, ubx=high, lbg=row_low, ubg=row_high)
    except RuntimeError:
        if not search.interruption.requested:
            raise
    seconds = time.perf_counter() - began
    if search.interruption.requested:
        raise KeyboardInterrupt  # the solver has swallowed it, or CasADi has renamed it
    stats = solver.stats()
    w, cost = np.asarray(out["x"]).ravel(), float(out["f"])
    converged = bool(stats["success"]) and bool(np.all(np.isfinite(w)))
    solution = instance.solution(w, widths, cost)
    rows, multipliers = np.asarray(out["g"]).ravel(), np.asarray(out["lam_g"]).ravel()
    missed = np.abs(rows - np.clip(rows, row_low, row_high)).sum()
    merit = cost + float(np.max(np.abs(multipliers), initial=0.0) * missed)
    if instance.form.free_time:
        cost = instance.units.time * solution.time
    attempt = Attempt(
        start=name,
        solver=chosen,
        intervals=int(widths.size),
        outcome=_outcome_name(stats),
        converged=converged,
        iterations=int(stats.get("iter_count", 0)),
        cost=cost,
        seconds=seconds,
    )
    merit = merit if np.isfinite(merit) else np.inf
    return Candidate(instance, solution, attempt, p, merit, spent + attempt.iterations)


def solver_name(instance: Instance, settings: Settings) -> str:
    """The solver asked for, or the one that suits the problem."""
    if settings.solver != "auto":
        return settings.solver
    # Measured: fatrop is up to twice as fast while the blocks of one interval are small.  It
    # knows no time limit, and with attention or bounds it was seen not to return: started far
    # from feasible, its restoration phase regularises without end.
    form = instance.form
    affine = "B" not in form.controls and not instance.problem.bounds
    return "fatrop" if form.dim <= 3 and affine else "ipopt"


def _options(name: str, settings: Settings) -> tuple[tuple[str, Any], ...]:
    options: tuple[tuple[str, Any], ...] = (
        ("max_iter", settings.max_iterations),
        ("tol", settings.tolerance),
    )
    if name == "ipopt":
        # The program is scaled already, and its matrices are small: scaling them again and
        # refining each solve costs a sixth of the time.
        options += (
            ("mumps_mem_percent", 1000),
            ("nlp_scaling_method", "none"),
            ("min_refinement_steps", 0),
            ("mumps_scaling", 0),
            ("mumps_permuting_scaling", 0),
        )
    return options


def _outcome_name(stats: dict[str, Any]) -> str:
    status = stats.get("return_status", "")
    unified = str(stats.get("unified_return_status", "")).removeprefix("SOLVER_RET_").lower()
    return str(status) if isinstance(status, str) and status else f"{unified} ({status})"

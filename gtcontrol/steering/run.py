"""The one way in: `steer`."""

from __future__ import annotations

import dataclasses
import math
import time

import numpy as np

from .. import _check
from .._interrupt import Interruption
from .._threads import single_threaded
from ..errors import IllPosedProblem, InvalidMethod, InvalidShape, OutOfScale
from ..gaussian import Gaussian, norm
from ..problem.bounds import CONTROLS, Bounds
from ..problem.costs import ControlEnergy, Cost, KineticEnergy, MinimumTime
from ..problem.definitions import SteeringProblem
from ..progress import Progress, silent
from ..results.steering import Steering
from ..status import Status
from .closed_forms import exact_plan, geodesic_plan, kinetic_plan
from .exact.construct import METHODS, construct
from .exact.path import GaussianPath
from .exact.reachability import require_reachable
from .lower_bounds import lower_bound, refuse_impossible_bounds
from .memory import refuse_too_large
from .optimal import Outcome, Settings, solve
from .reduction import Reduction, reduce as reduce_problem

__all__ = ["steer"]

#: Largest ratio of variances, within and between the end points, that a solver is given.
LARGEST_SPREAD = 1e10

#: Largest standard deviation, and reciprocal of the smallest, that is steered.
LARGEST_SIZE = 1e76

#: A plan whose cost is within this fraction of its lower bound is optimal to rounding.
PROVED_GAP = 1e-9

SOLVERS = ("auto", "ipopt", "fatrop")


@single_threaded
def steer(
    start: Gaussian,
    target: Gaussian,
    horizon: float = 1.0,
    *,
    controls: str = CONTROLS,
    cost: Cost | None = None,
    bounds: Bounds | None = None,
    method: str = "optimal",
    path: GaussianPath | None = None,
    initial: Steering | None = None,
    starts: int | None = None,
    intervals: int = 20,
    solver: str = "auto",
    tolerance: float = 1e-8,
    replay_tolerance: float = 1e-5,
    refinements: int = 3,
    max_iterations: int = 500,
    reduce: bool = True,
    seed: int = 0,
    progress: Progress = silent,
    name: str = "",
) -> Steering:
    """Find Transformer parameters that carry one Gaussian to another.

    Parameters
    ----------
    start, target : Gaussian
        Laws of equal dimension d and equal rank r.
    horizon : float
        Duration T of the plan (for minimum time: ignored, it is found).
    controls : str
        Which of A, V, B, b may be used, e.g. ``"Ab"``; the others are zero.
    cost : KineticEnergy, ControlEnergy or MinimumTime
        What to minimise; by default ``ControlEnergy()``.
    bounds : Bounds, optional
        Bounds on the controls, and on the covariance along the path.
    method : str
        ``"optimal"``, or a constructive controller, exact without a solver:
        ``"constant-affine"``, ``"two-piece-affine"``, ``"transport-geodesic"``,
        ``"constant-attention"``, ``"attention-only"``, ``"prescribed-path"``, ``"zero-bias"``.
    path : GaussianPath, optional
        The path to follow, for ``method="prescribed-path"``.
    initial : Steering, optional
        An earlier plan from which the solver starts (instead of several starts).
    starts : int, optional
        Number of starts of the solver; the best result is kept.  By default 30 when the program
        is small, and down to 3 when it is large; with attention 72, and down to 8.
    intervals : int
        Collocation intervals of the first mesh.
    solver : {"auto", "ipopt", "fatrop"}
        fatrop is the faster one on small affine problems, where "auto" takes it.  It knows no
        limit of time, and with attention or bounds it may not return from a bad start.
    tolerance : float
        Tolerance of the solver.
    replay_tolerance : float
        Largest relative miss of the replay by an independent integrator that counts as
        arrival.
    refinements : int
        How often the mesh may be doubled while the replay misses or, with piecewise constant
        controls, the cost still changes.
    max_iterations : int
        Bound on the solver's iterations per start.
    reduce : bool
        Solve in the span of the end points, of dimension at most 2 r + 2, when costs and
        bounds do not depend on the coordinates.
    seed : int
        Seed of the random starts.
    progress : callable, optional
        Called as ``progress(fraction, text)``.
    name : str, optional
        Name of the problem, kept in the result.

    Returns
    -------
    Steering
        The plan.  Its status is SUCCESS only if the replay arrives.

    Raises
    ------
    RankMismatch, Unreachable
        If no plan exists; the message names the nearest reachable target.
    IllPosedProblem
        If the cost has no minimiser with these controls and bounds.
    BoundsExcludeEveryPlan
        If the bounds provably exclude every plan.
    InvalidControls, InvalidMethod, InvalidNumber, InvalidShape, OutOfScale, TooLarge
        If an argument does not fit.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> start = gt.Gaussian.from_covariance([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> target = gt.Gaussian.from_covariance([1.0, 0.0], [[4.0, 0.0], [0.0, 0.25]])
    >>> plan = gt.steer(start, target, cost=gt.KineticEnergy())
    >>> plan.status.name, round(plan.cost, 12)
    ('SUCCESS', 2.25)
    """
    began = time.perf_counter()
    require_reachable(start, target, controls)
    problem = _problem(start, target, horizon, controls, cost, bounds, method, name)
    settings = _settings(
        starts, intervals, solver, tolerance, replay_tolerance, refinements, max_iterations, seed
    )
    if initial is not None and not isinstance(initial, Steering):
        raise InvalidShape(f"`initial` must be a Steering plan, not {type(initial).__name__}.")
    if initial is not None and initial.problem.start.dim != start.dim:
        raise InvalidShape(
            f"`initial` has dimension {initial.problem.start.dim}, the problem {start.dim}."
        )
    if method != "optimal":
        if path is not None and method != "prescribed-path":
            raise InvalidMethod("`path` is for method 'prescribed-path' only.")
        return exact_plan(problem, construct(problem, path), replay_tolerance, began, method)
    if path is not None:
        raise InvalidMethod("`path` is for method 'prescribed-path' only.")
    refuse_impossible_bounds(problem)
    if isinstance(problem.cost, KineticEnergy):
        return kinetic_plan(problem, replay_tolerance, began)
    _refuse_ill_posed(problem)
    reduction = _reduction(problem, reduce=reduce)
    _refuse_bad_scale(reduction)
    refuse_too_large(reduction.start, problem, intervals)
    return _optimal(problem, reduction, settings, initial, progress, began)


def _problem(
    start: Gaussian,
    target: Gaussian,
    horizon: float,
    controls: str,
    cost: Cost | None,
    bounds: Bounds | None,
    method: str,
    name: str,
) -> SteeringProblem:
    T = _check.number("horizon", horizon, low=0.0, strict=True)
    enabled = "".join(c for c in CONTROLS if c in controls)  # checked by require_reachable
    chosen = ControlEnergy() if cost is None else cost
    if not isinstance(chosen, KineticEnergy | ControlEnergy | MinimumTime):
        raise InvalidMethod(
            "`cost` must be KineticEnergy(), ControlEnergy() or MinimumTime(), not "
            f"{type(chosen).__name__}."
        )
    limits = Bounds() if bounds is None else bounds
    if not isinstance(limits, Bounds):
        raise InvalidMethod(f"`bounds` must be Bounds(...), not {type(limits).__name__}.")
    if method != "optimal" and method not in METHODS:
        raise InvalidMethod(
            f"`method` is {method!r}; it must be 'optimal' or one of {', '.join(METHODS)}."
        )
    if isinstance(chosen, MinimumTime) and method == "optimal":
        limits = _with_time_bounds(limits, chosen, enabled)
    return SteeringProblem(start, target, T, enabled, chosen, limits, method, name)


def _with_time_bounds(bounds: Bounds, cost: MinimumTime, controls: str) -> Bounds:
    """Add the bound of a minimum-time cost on each enabled control, unless a tighter one is set."""
    entrywise = cost.norm == "entries"
    given = dict(bounds.entries if entrywise else bounds.norms)
    for c in controls:
        given[c] = min(given.get(c, cost.bound), cost.bound)
    if entrywise:
        return dataclasses.replace(bounds, entries=given)
    return dataclasses.replace(bounds, norms=given)


def _settings(
    starts: int | None,
    intervals: int,
    solver: str,
    tolerance: float,
    replay_tolerance: float,
    refinements: int,
    max_iterations: int,
    seed: int,
) -> Settings:
    if solver not in SOLVERS:
        raise InvalidMethod(f"`solver` is {solver!r}; it must be one of {', '.join(SOLVERS)}.")
    return Settings(
        starts=None if starts is None else _check.integer("starts", starts, low=1),
        intervals=_check.integer("intervals", intervals, low=1),
        solver=solver,
        tolerance=_check.number("tolerance", tolerance, low=0.0, strict=True),
        replay_tolerance=_check.number("replay_tolerance", replay_tolerance, low=0.0, strict=True),
        refinements=_check.integer("refinements", refinements, low=0),
        max_iterations=_check.integer("max_iterations", max_iterations, low=1),
        seed=_check.integer("seed", seed, low=0),
    )


def _refuse_ill_posed(problem: SteeringProblem) -> None:
    attention = {"V", "B"} <= set(problem.controls) and problem.start.rank > 0
    bounded = problem.bounds.trace is not None or problem.bounds.largest_eigenvalue is not None
    if not attention:
        return
    if isinstance(problem.cost, ControlEnergy) and problem.cost.kinetic == 0:
        raise IllPosedProblem(
            "ControlEnergy(kinetic=0) has no minimiser when V and B are both enabled: attention "
            "that chatters, or a covariance that runs to infinity, costs ever less. Use "
            "ControlEnergy(kinetic=1.0), or controls without V or B."
        )
    if isinstance(problem.cost, MinimumTime) and not bounded:
        raise IllPosedProblem(
            "MinimumTime has no minimiser when V and B are both enabled and the covariance is "
            "unbounded, since attention grows with it. Give bounds.trace or "
            "bounds.largest_eigenvalue, or use controls without V or B."
        )


def _reduction(problem: SteeringProblem, *, reduce: bool) -> Reduction:
    if reduce and problem.bounds.rotation_invariant:
        return reduce_problem(problem.start, problem.target)
    return Reduction(None, problem.start, problem.target)


def _refuse_bad_scale(reduction: Reduction) -> None:
    ends = (reduction.start, reduction.target)
    if not ends[0].rank:
        return
    values = np.concatenate([g.eigenvalues for g in ends])
    spread = float(values.max() / values.min()) if values.min() > 0 else np.inf
    if spread > LARGEST_SPREAD:
        raise OutOfScale(
            f"the variances of start and target spread over a factor {spread:.3g}; a solver in "
            f"double precision is given at most {LARGEST_SPREAD:g}. Truncate the smallest "
            "directions with `.truncate(rank)`, or use an exact method such as "
            "'transport-geodesic'."
        )
    shift = max(norm(g.mean) for g in ends)
    size = max(float(np.linalg.norm(g.factor, 2)) for g in ends)
    if shift > math.sqrt(LARGEST_SPREAD) * size:
        raise OutOfScale(
            f"the means have norm {shift:.3g}, the standard deviations at most {size:.3g}; "
            "a solver in double precision is given a ratio of at most "
            f"{math.sqrt(LARGEST_SPREAD):g}. Centre the tokens first."
        )
    if not 1.0 / LARGEST_SIZE <= size <= LARGEST_SIZE:
        raise OutOfScale(
            f"the standard deviations are up to {size:.3g}, whose powers leave the range of double "
            f"precision; between {1.0 / LARGEST_SIZE:g} and {LARGEST_SIZE:g} they do not. "
            "Measure the tokens in another unit."
        )


def _beats(outcome: Outcome, closed: Steering, settings: Settings) -> bool:
    """Whether a solver's plan arrives, and costs no more than the plan at hand."""
    if outcome.status not in (Status.SUCCESS, Status.INTERRUPTED):
        return False
    arrived = outcome.replay_error <= settings.replay_tolerance
    return arrived and outcome.cost <= closed.cost * (1 + PROVED_GAP)


def _since(began: float) -> float:
    return time.perf_counter() - began


def _optimal(
    problem: SteeringProblem,
    reduction: Reduction,
    settings: Settings,
    initial: Steering | None,
    progress: Progress,
    began: float,
) -> Steering:
    closed = geodesic_plan(problem, settings.replay_tolerance, began)
    if closed is not None and closed.gap <= PROVED_GAP:
        return closed  # meets the lower bound: no solver can do better
    with Interruption() as interruption:
        ceiling = math.inf if closed is None else closed.cost
        outcome = solve(problem, reduction, settings, initial, progress, interruption, ceiling)
    if outcome is None:
        # Interrupted before any solve ended: the exact plan is the best that there is.
        if closed is None:
            raise KeyboardInterrupt
        return dataclasses.replace(closed, status=Status.INTERRUPTED, seconds=_since(began))
    if closed is not None and not _beats(outcome, closed, settings):
        # An exact plan that arrives serves better than an iterate that does not, or costs more;
        # the status says that it is not the optimum which was asked for.
        interrupted = outcome.status is Status.INTERRUPTED
        return dataclasses.replace(
            closed,
            status=Status.INTERRUPTED if interrupted else Status.NOT_CONVERGED,
            attempts=outcome.attempts,
            violations=outcome.violations,
            seconds=_since(began),
        )
    bound, reason = lower_bound(problem)
    return Steering(
        problem=problem,
        status=outcome.status,
        schedule=outcome.schedule,
        trajectory=outcome.trajectory,
        cost=outcome.cost,
        lower_bound=bound,
        lower_bound_reason=reason,
        replay_error=outcome.replay_error,
        terminal_error=outcome.terminal_error,
        solver=outcome.solver,
        iterations=outcome.iterations,
        intervals=outcome.intervals,
        refinements=outcome.refinements,
        attempts=outcome.attempts,
        violations=outcome.violations,
        seconds=_since(began),
    )

"""Plans in closed form: any constructive method, the kinetic optimum, the geodesic."""

from __future__ import annotations

import time

import numpy as np

from ..errors import InvalidMethod
from ..problem.costs import MinimumTime
from ..problem.definitions import SteeringProblem
from ..results.steering import Steering
from ..schedule import Schedule
from ..simulation.run import simulate
from ..status import Status
from .exact.construct import METHODS
from .exact.methods import applicable
from .exact.task import Refusal, Task
from .lower_bounds import lower_bound
from .measure import bounds_kept, cost_along, miss

__all__ = ["exact_plan", "geodesic_plan", "kinetic_plan", "kinetic_schedule"]


def exact_plan(
    problem: SteeringProblem,
    schedule: Schedule,
    replay_tolerance: float,
    began: float,
    solver: str,
    status: Status = Status.SUCCESS,
) -> Steering:
    """Replay and measure a plan that was constructed in closed form."""
    trajectory = simulate(problem.start, schedule)
    error = np.inf
    if trajectory.status is Status.SUCCESS:
        error = miss(trajectory.final, problem.start, problem.target)
    if status is Status.SUCCESS and not error <= replay_tolerance:
        status = Status.REPLAY_FAILED
    bound, reason = lower_bound(problem)
    return Steering(
        problem=problem,
        status=status,
        schedule=schedule,
        trajectory=trajectory,
        cost=cost_along(problem.cost, schedule, trajectory),
        lower_bound=bound,
        lower_bound_reason=reason,
        replay_error=float(error),
        terminal_error=0.0,
        solver=f"closed form ({solver})",
        seconds=time.perf_counter() - began,
    )


def kinetic_plan(problem: SteeringProblem, replay_tolerance: float, began: float) -> Steering:
    """The kinetic optimum is the transport geodesic: closed form, proved optimal."""
    schedule = kinetic_schedule(problem)
    plan = exact_plan(problem, schedule, replay_tolerance, began, _geodesic_method(problem))
    broken = bounds_kept(plan.schedule, plan.trajectory, problem.bounds)
    if broken:
        raise InvalidMethod(
            f"the transport geodesic breaks {broken}, and kinetic energy alone does not make the "
            "bounded problem well posed; use ControlEnergy(kinetic=...), which weighs both."
        )
    return plan


def kinetic_schedule(problem: SteeringProblem) -> Schedule:
    """The transport geodesic, which minimises kinetic energy.

    Raises
    ------
    InvalidMethod
        If the controls cannot move the mean along it.
    """
    made = METHODS[_geodesic_method(problem)](Task.of(problem))
    if not isinstance(made, Refusal):
        return made
    advice = "Enable b" if "V" in problem.controls else "Enable b or V"
    if "zero-bias" in applicable(problem.start, problem.target, problem.controls):
        advice += ", or choose method 'zero-bias' for a plan that is exact but not optimal"
    raise InvalidMethod(
        "the plan of least kinetic energy moves the mean straight to the target while the "
        f"covariance follows its geodesic, which controls {problem.controls!r} cannot do. {advice}."
    )


def geodesic_plan(
    problem: SteeringProblem, replay_tolerance: float, began: float
) -> Steering | None:
    """The transport geodesic as a plan of this problem, if it is one."""
    method = _geodesic_method(problem)
    if problem.bounds or isinstance(problem.cost, MinimumTime):
        return None
    schedule = METHODS[method](Task.of(problem))
    if isinstance(schedule, Refusal):
        return None
    return exact_plan(problem, schedule, replay_tolerance, began, method)


def _geodesic_method(problem: SteeringProblem) -> str:
    """The method that follows the transport geodesic with the enabled controls."""
    attention = "A" not in problem.controls and problem.start.rank > 0
    return "attention-only" if attention else "transport-geodesic"

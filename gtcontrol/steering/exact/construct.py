"""The one way in to the constructive controllers: `construct`."""

from __future__ import annotations

from ... import _check
from ...errors import InvalidMethod
from ...problem.definitions import SteeringProblem
from ...schedule import Schedule
from .methods import METHODS, applicable
from .path import GaussianPath
from .reachability import require_reachable
from .task import Refusal, Task

__all__ = ["METHODS", "construct"]


def construct(problem: SteeringProblem, path: GaussianPath | None = None) -> Schedule:
    """Build the exact schedule of a constructive method.

    Parameters
    ----------
    problem : SteeringProblem
        Its `method` is one of :data:`METHODS`; cost and bounds are not looked at.
    path : GaussianPath, optional
        The path to follow, for method "prescribed-path" only.

    Returns
    -------
    Schedule
        Carries `problem.start` to `problem.target` on [0, horizon].

    Raises
    ------
    RankMismatch, Unreachable
        If no plan exists.
    InvalidMethod
        If the method is unknown or does not apply; the message names the broken condition and
        a method that does.
    InvalidPath
        If the path changes rank or does not join start and target.
    """
    name = problem.method
    if name not in METHODS:
        raise InvalidMethod(
            f"`method` = {name!r} is no constructive method; choose from {', '.join(METHODS)}."
        )
    if path is not None and name != "prescribed-path":
        raise InvalidMethod(f"`path` is followed by method 'prescribed-path', not by {name!r}.")
    _check.number("horizon", problem.horizon, low=0.0, strict=True)
    require_reachable(problem.start, problem.target, problem.controls)
    made = METHODS[name](Task.of(problem, path))
    if isinstance(made, Refusal):
        raise InvalidMethod(f"method {name!r} does not apply: {made.reason} {_advice(problem)}")
    return made


def _advice(problem: SteeringProblem) -> str:
    others = applicable(problem.start, problem.target, problem.controls)
    others = tuple(name for name in others if name != "prescribed-path")
    return f"Use {' or '.join(repr(name) for name in others)}."

"""Results in words: one module for each kind of result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...results.base import Result
from ...results.certificate import Certificate
from ...results.comparison import Comparison
from ...results.design import Design
from ...results.filtering import FilterRun
from ...results.reachability import Reachability
from ...results.riccati import RiccatiSolution
from ...results.steering import Steering
from ...results.tokens import TokenRun
from ...results.tracking import Tracking
from ...results.trajectory import Trajectory
from . import certificate, comparison, design, reachability, riccati, steering, tokens, trajectory
from . import certificate, design, filtering, reachability, steering, tokens, trajectory
from . import certificate, design, reachability, steering, tokens, tracking, trajectory
from .base import Fact, Table, View

__all__ = ["Fact", "Table", "View", "view"]


#: Kind of result -> what puts it into words.
#: Kind of result -> the function that puts it into words.
_VIEWS: dict[type[Result], Callable[[Any], View]] = {
    Steering: steering.view,
    Trajectory: trajectory.view,
    Reachability: reachability.view,
    Certificate: certificate.view,
    Design: design.view,
    Comparison: comparison.view,
    RiccatiSolution: riccati.view,
    TokenRun: tokens.view,
    TokenRun: tokens.view,
    Tracking: tracking.view,
}


def view(result: Result) -> View:
    """Put a result into words."""
    made = next((_VIEWS[kind] for kind in type(result).__mro__ if kind in _VIEWS), None)
    if made is None:
        raise TypeError(f"there is no report for {type(result).__name__}.")
    return made(result)
def view(result: Result) -> View:  # noqa: PLR0911 - one return for each kind
    """Put a result into words."""
    if isinstance(result, Steering):
        return steering.view(result)
    if isinstance(result, Trajectory):
        return trajectory.view(result)
    if isinstance(result, Reachability):
        return reachability.view(result)
    if isinstance(result, Certificate):
        return certificate.view(result)
    if isinstance(result, Design):
        return design.view(result)
    if isinstance(result, FilterRun):
        return filtering.view(result)
    if isinstance(result, TokenRun):
        return tokens.view(result)
    for kind, words in _VIEWS.items():
        if isinstance(result, kind):
            return words(result)
    raise TypeError(f"there is no report for {type(result).__name__}.")

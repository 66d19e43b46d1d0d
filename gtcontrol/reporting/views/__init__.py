"""Results in words: one module for each kind of result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...results.base import Result
from ...results.certificate import Certificate
from ...results.closeness import Closeness
from ...results.comparison import Comparison
from ...results.design import Design
from ...results.export import ExportCheck
from ...results.filtering import FilterRun
from ...results.forecast import Forecast
from ...results.inspection import Inspection
from ...results.mixture import MixtureRun
from ...results.reachability import Reachability
from ...results.riccati import RiccatiSolution
from ...results.steering import Steering
from ...results.tokens import TokenRun
from ...results.tracking import Tracking
from ...results.trajectory import Trajectory
from ...results.validation import Validation
from . import (
    certificate,
    closeness,
    comparison,
    design,
    export,
    filtering,
    forecast,
    inspection,
    mixture,
    reachability,
    riccati,
    steering,
    tokens,
    tracking,
    trajectory,
    validation,
)
from .base import Fact, Table, View

__all__ = ["Fact", "Table", "View", "view"]


#: Kind of result -> the function that puts it into words.
_VIEWS: dict[type[Result], Callable[[Any], View]] = {
    Steering: steering.view,
    Trajectory: trajectory.view,
    Reachability: reachability.view,
    Certificate: certificate.view,
    Design: design.view,
    Comparison: comparison.view,
    RiccatiSolution: riccati.view,
    FilterRun: filtering.view,
    Forecast: forecast.view,
    Inspection: inspection.view,
    Closeness: closeness.view,
    MixtureRun: mixture.view,
    TokenRun: tokens.view,
    Tracking: tracking.view,
    Validation: validation.view,
    ExportCheck: export.view,
}


def view(result: Result) -> View:
    """Put a result into words."""
    made = next((_VIEWS[kind] for kind in type(result).__mro__ if kind in _VIEWS), None)
    if made is None:
        raise TypeError(f"there is no report for {type(result).__name__}.")
    return made(result)

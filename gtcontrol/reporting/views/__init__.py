"""Results in words: one module for each kind of result."""

from __future__ import annotations

from ...results.base import Result
from ...results.certificate import Certificate
from ...results.design import Design
from ...results.reachability import Reachability
from ...results.steering import Steering
from ...results.tokens import TokenRun
from ...results.trajectory import Trajectory
from . import certificate, design, reachability, steering, tokens, trajectory
from .base import Fact, Table, View

__all__ = ["Fact", "Table", "View", "view"]


def view(result: Result) -> View:
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
    if isinstance(result, TokenRun):
        return tokens.view(result)
    raise TypeError(f"there is no report for {type(result).__name__}.")

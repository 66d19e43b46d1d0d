"""Figures of a result; Matplotlib is imported when the first one is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...results.base import Result
from ...results.certificate import Certificate
from ...results.design import Design
from ...results.reachability import Reachability
from ...results.steering import Steering
from ...results.tokens import TokenRun
from ...results.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "images"]


def draw(result: Result) -> dict[str, Figure]:
    """Draw the pictures of a result.

    Parameters
    ----------
    result : Result
        A plan gives "path", "controls", "covariance" (if the rank is positive), "cost" and
        "tokens" (if tokens were moved); a simulation "path", "covariance" and "mean"; a
        run of tokens "path"; a reachability answer "laws"; a certificate "envelope" and, in
        dimension 2, "cone" (if anything was integrated); a design "path" and "distance" (if it
        was simulated).

    Returns
    -------
    dict from str to matplotlib.figure.Figure
        In the order in which they are best read.
    """
    from . import certificate, clouds, controls, cost, covariance, design, laws, mean, path, tokens

    if isinstance(result, Steering):
        made = {"path": path.steering(result), "controls": controls.steering(result)}
        if result.problem.start.rank:
            made["covariance"] = covariance.steering(result)
        made["cost"] = cost.steering(result)
        if result.tokens is not None:
            made["tokens"] = tokens.check(result.tokens)
        return made
    if isinstance(result, Trajectory):
        made = {"path": path.trajectory(result)}
        if result.factors.shape[2]:
            made["covariance"] = covariance.trajectory(result)
        made["mean"] = mean.trajectory(result)
        return made
    if isinstance(result, Certificate):
        return certificate.pictures(result)
    if isinstance(result, Design):
        return design.pictures(result)
    if isinstance(result, TokenRun):
        return {"path": clouds.tokens(result)}
    if isinstance(result, Reachability):
        return {"laws": laws.reachability(result)}
    raise TypeError(f"there are no pictures of {type(result).__name__}.")


def images(result: Result) -> dict[str, bytes]:
    """Return the pictures of a result as PNG files; the same result gives the same bytes."""
    from .canvas import encode

    return {name: encode(figure) for name, figure in draw(result).items()}

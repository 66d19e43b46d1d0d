"""Figures of a result; Matplotlib is imported when the first one is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "images"]


def draw(result: Result) -> dict[str, Figure]:
    """Draw the pictures of a result.

    Parameters
    ----------
    result : Result
        A plan gives "path", "controls", "covariance" (if the rank is positive), "cost" and
        "tokens" (if tokens were moved); a simulation "path", "covariance" and "mean", with
        finitely many tokens also "tokens"; a
        run of tokens "path"; a reachability answer "laws"; a certificate "envelope" and, in
        dimension 2, "cone" (if anything was integrated); a design "path" and "distance" (if it
        was simulated); a comparison "flow" and "spectrum"; a Riccati solution "spectrum"; a
        filter "states", "errors" (with tokens of several numbers) and "innovations"; feedback
        "distances", "sample", "deviation", "gains" and "tolerated"; studies of closeness and of
        mixtures "distances" and, beyond the line, "law"; a validation "variance", "errors" (with
        several numbers of tokens), "shape" (if it was tested) and "stamps"; an exported network
        "convergence" and, beyond the line, "tokens"; an inspection of a pretrained model "shape",
        "heads", "drift", "variance", "spectrum" and "errors"; a forecast "variance".

    Returns
    -------
    dict from str to matplotlib.figure.Figure
        In the order in which they are best read.
    """
    from . import (
        certificate,
        closeness,
        clouds,
        comparison,
        design,
        export,
        filtering,
        forecast,
        inspection,
        laws,
        spectra,
        tracking,
        validation,
    )

    pictures: dict[type[Result], Callable[[Any], dict[str, Figure]]] = {
        Steering: _steering,
        Trajectory: _trajectory,
        Certificate: certificate.pictures,
        Design: design.pictures,
        Comparison: comparison.pictures,
        RiccatiSolution: spectra.pictures,
        FilterRun: filtering.pictures,
        Forecast: forecast.pictures,
        Inspection: inspection.pictures,
        Closeness: closeness.closeness,
        MixtureRun: closeness.mixture,
        TokenRun: lambda run: {"path": clouds.tokens(run)},
        Tracking: tracking.pictures,
        Validation: validation.pictures,
        ExportCheck: export.pictures,
        Reachability: lambda answer: {"laws": laws.reachability(answer)},
    }
    made = next((pictures[kind] for kind in type(result).__mro__ if kind in pictures), None)
    if made is None:
        raise TypeError(f"there are no pictures of {type(result).__name__}.")
    return made(result)


def _steering(result: Steering) -> dict[str, Figure]:
    from . import controls, cost, covariance, path, tokens

    made = {"path": path.steering(result), "controls": controls.steering(result)}
    if result.problem.start.rank:
        made["covariance"] = covariance.steering(result)
    made["cost"] = cost.steering(result)
    if result.tokens is not None:
        made["tokens"] = tokens.check(result.tokens)
    return made


def _trajectory(result: Trajectory) -> dict[str, Figure]:
    from . import covariance, finite, mean, path

    made = {"path": path.trajectory(result)}
    if result.factors.shape[2]:
        made["covariance"] = covariance.trajectory(result)
    made["mean"] = mean.trajectory(result)
    if result.problem.tokens is not None:
        made["tokens"] = finite.tokens(result)
    return made


def images(result: Result) -> dict[str, bytes]:
    """Return the pictures of a result as PNG files; the same result gives the same bytes."""
    from .canvas import encode

    return {name: encode(figure) for name, figure in draw(result).items()}

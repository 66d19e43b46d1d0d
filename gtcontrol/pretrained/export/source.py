"""What is exported: a schedule with its horizon, and the laws that it joins, if known."""

from __future__ import annotations

from dataclasses import dataclass

from ... import _check
from ...errors import IncompatibleSchedule, InvalidMethod, InvalidNumber, InvalidShape
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...results.design import Design
from ...results.steering import Steering
from ...schedule import Schedule, resolve

__all__ = ["Exportable", "Source", "source_of"]

Exportable = Parameters | Schedule | Steering | Design


@dataclass(frozen=True, eq=False)
class Source:
    """A schedule on [0, horizon], the law that starts, and the one that is to be reached."""

    schedule: Schedule
    horizon: float
    start: Gaussian | None
    target: Gaussian | None
    name: str


def source_of(given: Exportable, horizon: float | None, start: Gaussian | None) -> Source:
    """Schedule, horizon and laws of what is to be exported, checked.

    Raises
    ------
    InvalidShape, InvalidNumber, IncompatibleSchedule
        If it cannot be exported, the horizon is missing, or dimensions differ.
    InvalidMethod
        If there is process noise.
    """
    target, name = None, ""
    if isinstance(given, Steering):
        p = given.problem
        if start is None and (horizon is None or horizon == given.horizon):
            target = p.target
        start, name = p.start if start is None else start, p.name
        parameters: Parameters | Schedule = given.schedule
    elif isinstance(given, Design):
        parameters, name = given.parameters, given.problem.name
        if horizon is None:
            raise InvalidNumber(
                "`horizon` is needed to export a design: its parameters are constant, and hold "
                "for all times."
            )
    elif isinstance(given, Parameters | Schedule):
        parameters = given
    else:
        raise InvalidShape(
            "a plan, a design, a Schedule or Parameters can be exported, not "
            f"{type(given).__name__}."
        )
    if start is not None and not isinstance(start, Gaussian):
        raise InvalidShape(f"`start` must be a Gaussian, not {type(start).__name__}.")
    dim = parameters.dim if start is None else start.dim
    schedule, end = resolve(parameters, horizon, dim)
    if schedule.noisy:
        raise InvalidMethod(
            "layers with fixed weights add no process noise; export what `gt.realise_noise` makes "
            "of it, a schedule without noise that has the same moments, or leave `noise` out."
        )
    return Source(schedule, end, start, target, name)


def depth_of(layers: object) -> int:
    """Number of layers, at least 1."""
    return _check.integer("layers", layers, low=1)


def start_of(source: Source, why: str) -> Gaussian:
    """The law that starts, which is needed."""
    if source.start is None:
        raise IncompatibleSchedule(f"`start`, the law of the tokens at time 0, is needed {why}.")
    return source.start

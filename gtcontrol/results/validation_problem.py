"""The problem of a validation as plain values and arrays, and back."""

from __future__ import annotations

from typing import Any

from .. import _check
from ..errors import ResultFileInvalid
from ..problem.definitions import ValidationProblem
from .feedforward import pack_feedforward, unpack_feedforward
from .packing import pack_gaussian, unpack_gaussian
from .plain import Arrays, agree, pack_plain, plain
from .schedules import pack_schedule, unpack_schedule

__all__ = ["pack_problem", "unpack_problem"]


def pack_problem(p: ValidationProblem) -> tuple[dict[str, Any], Arrays]:
    """Plain values and arrays of the problem."""
    layer, arrays = pack_feedforward("feedforward", p.feedforward)
    arrays |= pack_gaussian("start", p.start) | pack_schedule("schedule", p.schedule)
    return {**pack_plain(p), **layer, "counts": list(p.counts)}, arrays


def unpack_problem(values: dict[str, Any], arrays: Arrays) -> ValidationProblem:
    """Restore the problem."""
    start = unpack_gaussian("start", arrays)
    schedule = unpack_schedule("schedule", arrays)
    layer = unpack_feedforward("feedforward", values, arrays)
    agree("the dimension of the start", start.dim, schedule.dim)
    if layer is not None:
        agree("the dimension of the feed-forward layer", layer.dim, start.dim)
    counts = values["counts"]
    if not isinstance(counts, list) or not all(type(n) is int and n >= 2 for n in counts):
        raise ResultFileInvalid("`counts` is not a list of whole numbers from 2 on.")
    problem = ValidationProblem(
        start=start,
        schedule=schedule,
        counts=tuple(counts),
        feedforward=layer,
        **plain(ValidationProblem, values),
    )
    _check.number("horizon", problem.horizon, low=0.0, strict=True)
    return problem

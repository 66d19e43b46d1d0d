"""The Gaussian law at given times, as far as it goes."""

from __future__ import annotations

import math

import numpy as np

from .._check import Array
from ..finite_tokens import FiniteTokens
from ..gaussian import Gaussian
from ..problem.definitions import ValidationProblem
from ..results.courses import LawCourse
from ..simulation.run import simulate
from ..status import Status

__all__ = ["LARGEST", "follow"]

#: Relative tolerance of the law: far below any sampling error.
RTOL = 1e-9

#: That of the correction for finitely many tokens, which is only piecewise smooth in scores that
#: are far beyond freezing.
CLOSURE_RTOL = 1e-6

#: Traces above this square beyond double precision somewhere on the way.
LARGEST = 1e140


def follow(
    start: Gaussian,
    problem: ValidationProblem,
    times: Array,
    layers: int | None,
    tokens: FiniteTokens | None = None,
) -> LawCourse:
    """Move a law under the parameters of a problem, and look at it at given times.

    Parameters
    ----------
    start : Gaussian
    problem : ValidationProblem
        Schedule and horizon.
    times : (T,) array
    layers : int or None
        Residual layers, or the flow.
    tokens : FiniteTokens, optional
        Correct the law for finitely many tokens.

    Returns
    -------
    LawCourse
        Up to the last time before the law ends.
    """
    path = simulate(
        start,
        problem.schedule,
        problem.horizon,
        layers=layers,
        tokens=tokens,
        feedforward=problem.feedforward,
        rtol=RTOL if tokens is None else CLOSURE_RTOL,
    )
    if path.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    last = float(path.times[-1])
    status, end = path.status, math.inf
    if status is Status.BLOW_UP:
        end = path.blow_up_time
    elif status is not Status.SUCCESS:
        end = last
    seen = [t for t in times if t <= last * (1 + 1e-12)]
    laws = [path.at(min(t, last)) for t in seen]
    fine = [g.trace < LARGEST for g in laws]
    if not all(fine):  # it has grown beyond every cloud: the rest says nothing about tokens
        first = fine.index(False)
        laws, end = laws[:first], min(end, float(seen[first]))
        status = Status.OVERFLOW if status is Status.SUCCESS else status
    return LawCourse(
        status,
        end,
        np.array([g.mean for g in laws]),
        np.array([g.covariance for g in laws]),
    )

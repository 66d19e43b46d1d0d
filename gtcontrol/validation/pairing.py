"""Whether a run of tokens and a flow of moments belong together."""

from __future__ import annotations

import numpy as np

from .._check import Array
from ..errors import IncompatibleSchedule, InvalidNumber, InvalidShape
from ..feedforward import FeedForward
from ..gaussian import Gaussian
from ..parameters import Parameters
from ..results.tokens import TokenRun
from ..results.trajectory import Trajectory
from ..schedule import Schedule

__all__ = ["require_pair"]

#: Relative difference of two numbers that are meant to be the same.
SAME = 1e-6

#: Times at which two schedules are compared, besides their breakpoints.
TIMES = 17


def require_pair(run: TokenRun, flow: Trajectory) -> None:
    """Refuse a run of tokens and a flow that answer different questions.

    Parameters
    ----------
    run : TokenRun
    flow : Trajectory

    Raises
    ------
    InvalidShape, InvalidNumber, IncompatibleSchedule
        With what differs.
    """
    for name, value, kind in (("run", run, TokenRun), ("flow", flow, Trajectory)):
        if not isinstance(value, kind):
            raise InvalidShape(
                f"`{name}` must be a {kind.__name__}, not {type(value).__name__}; pass the tokens "
                "first, then the flow."
            )
    p, q = run.problem, flow.problem
    if p.schedule.dim != q.schedule.dim:
        raise InvalidShape(
            f"the tokens have dimension {p.schedule.dim}, the flow has {q.schedule.dim}."
        )
    if abs(p.horizon - q.horizon) > SAME * q.horizon:
        raise InvalidNumber(
            f"the tokens move up to t = {p.horizon:g}, the flow up to {q.horizon:g}; take the same "
            "horizon."
        )
    if p.layers != q.layers:
        raise InvalidNumber(
            f"`layers` is {p.layers} for the tokens and {q.layers} for the flow; take the same."
        )
    if not _same_layer(p.feedforward, q.feedforward):
        raise InvalidNumber("the tokens and the flow have different feed-forward layers.")
    differs = _difference(p.schedule, q.schedule, q.horizon)
    if differs:
        raise IncompatibleSchedule(f"the parameters of the tokens and of the flow differ{differs}.")
    if isinstance(p.start, Gaussian):
        own = Gaussian.from_covariance(run.means[0], run.covariances[0])
        if not any(_same_law(law, q.start) for law in (p.start, own)):
            raise InvalidNumber(
                f"the flow starts from a law of total variance {q.start.trace:.6g} that is neither "
                f"the one from which the tokens were drawn ({p.start.trace:.6g}) nor that of their "
                f"own moments ({own.trace:.6g})."
            )


def _same(one: Array | None, other: Array | None) -> bool:
    """Whether two arrays agree up to rounding; what is left out is zero."""
    if one is None or other is None:
        return not any(x is not None and np.any(x) for x in (one, other))
    one, other = (x.reshape(-1, x.shape[-1]) for x in (one, other))  # one head, or a stack of one
    if one.shape != other.shape:
        return False
    size = max(float(np.max(np.abs(x), initial=0.0)) for x in (one, other))
    return bool(np.max(np.abs(one - other), initial=0.0) <= SAME * size)


def _same_law(one: Gaussian, other: Gaussian) -> bool:
    unit = np.sqrt(other.trace)
    apart = np.max(np.abs(one.mean - other.mean), initial=0.0)
    near = apart <= SAME * (unit + np.max(np.abs(other.mean), initial=0.0))
    return bool(near) and _same(one.covariance, other.covariance)


def _same_layer(one: FeedForward | None, other: FeedForward | None) -> bool:
    if one is None or other is None:
        return one is other
    arrays = all(_same(getattr(one, x), getattr(other, x)) for x in ("inner", "bias", "outer"))
    return arrays and one.activation == other.activation


def _difference(one: Schedule, other: Schedule, horizon: float) -> str:
    """Where two schedules differ, in words that follow "differ"; empty if nowhere."""
    breaks = np.concatenate([one.times, other.times, [0.0, horizon]])
    nodes = np.unique(np.clip(breaks, 0.0, horizon))
    middles = 0.5 * (nodes[1:] + nodes[:-1])
    middles = middles[np.diff(nodes) > SAME * horizon]
    few = np.linspace(0.0, horizon, TIMES + 2)[1:-1]
    whole = one.piecewise_constant and other.piecewise_constant
    for t in middles if whole else np.concatenate([middles, few]):
        names = _different(one(one.snap(float(t))), other(other.snap(float(t))))
        if names:
            return f" at t = {t:.4g}: {', '.join(names)}"
    return ""


def _different(p: Parameters, q: Parameters) -> list[str]:
    names = ("A", "B", "V", "b", "noise", "beta")
    return [name for name in names if not _same(getattr(p, name), getattr(q, name))]

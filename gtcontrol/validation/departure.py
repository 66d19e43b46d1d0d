"""When finitely many tokens leave the mean field that blows up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from .. import _check
from .._check import Array
from ..errors import InvalidNumber
from ..parameters import Parameters
from ..results.tokens import TokenRun
from ..results.trajectory import Trajectory
from ..schedule import Schedule
from .bounds import layer_growth, norm_bounds, value_norms
from .pairing import require_pair

__all__ = ["Departure", "detect_departure"]

#: Points at which the growth of the mean field is looked at, between two stored times.
BETWEEN = 4

#: Shortest time, relative to the last one, over which growth is measured.
SHORTEST = 1e-6


@dataclass(frozen=True)
class Departure:
    """Times at which N tokens leave the flow of their mean field; inf if they do not.

    Attributes
    ----------
    observed : float
        First time at which the total variance of the tokens is below `share` of that of the
        flow, by interpolation between the times of observation.
    warned : float
        First time at which the total variance of the flow grows at a relative rate of more than
        2 (‖A‖ + Σ_h ‖V_h‖).  The norm of the farthest token cannot grow that fast, so from there
        on tokens can follow for a while only, by spreading within their hull: an early warning.
    certain : float
        A time, on the grid of both, at which the flow has E|x|² above the square of the bound on
        all norms of the tokens, so that they have certainly left it.
    share : float
        Share of the total variance that counts as departure.
    """

    observed: float
    warned: float
    certain: float
    share: float


def detect_departure(run: TokenRun, flow: Trajectory, share: float = 0.9) -> Departure:
    """Compare a run of tokens with the flow of the moments, up to where that blows up.

    Parameters
    ----------
    run : TokenRun
        Tokens moved under the same parameters; observed often enough to be interpolated.  Draw
        them ``moment_matched``, or let the flow start from their own moments: the variance of
        independent draws is off by √(2/(N r)) from the start, which counts as departure.
    flow : Trajectory
        The flow of the moments, from the law of the tokens or from their own moments.
    share : float
        Share of the flow's total variance in (0, 1) below which the tokens have left.

    Returns
    -------
    Departure

    Raises
    ------
    InvalidShape, InvalidNumber, IncompatibleSchedule
        If the two do not belong together (dimension, horizon, layers, parameters, or a start
        that is neither the law of the draw nor its own moments), or the share is not in (0, 1).
    """
    require_pair(run, flow)
    part = _check.number("share", share, low=0.0, strict=True)
    if part >= 1:
        raise InvalidNumber(f"`share` must be below 1; it is {part:g}.")
    last = min(float(flow.times[-1]), float(run.times[-1]))
    nodes = np.unique(np.concatenate([flow.times, run.times]))
    nodes = nodes[nodes <= last]
    return Departure(
        _observed(run, flow, part, nodes),
        _warned(run, flow, nodes),
        _certain(run, flow, nodes),
        part,
    )


def _observed(run: TokenRun, flow: Trajectory, share: float, nodes: Array) -> float:
    traces = np.trace(run.covariances, axis1=1, axis2=2)
    logs = np.log(np.maximum(traces, np.finfo(np.float64).tiny))

    def excess(t: float) -> float:
        return float(np.exp(np.interp(t, run.times, logs))) - share * flow.at(t).trace

    below = np.flatnonzero([excess(float(t)) < 0 for t in nodes])
    if not below.size:
        return np.inf
    i = int(below[0])
    if i == 0 or flow.interpolant is None:  # between layers nothing moves
        return float(nodes[i])
    return float(brentq(excess, float(nodes[i - 1]), float(nodes[i])))


def _warned(run: TokenRun, flow: Trajectory, nodes: Array) -> float:
    layer = run.problem.feedforward
    own = (0.0, 0.0) if layer is None else layer_growth(layer)
    if own is None or flow.times.size < 2:
        return np.inf
    schedule = run.problem.schedule
    grid = flow.times[flow.times <= nodes[-1]]
    if flow.interpolant is not None:
        parts = np.linspace(0.0, 1.0, BETWEEN, endpoint=False)
        fine = nodes[:-1, None] + np.diff(nodes)[:, None] * parts
        grid = np.append(fine.ravel(), nodes[-1])
    # Steps shrink towards a blow-up; differences over too short ones are rounding errors.
    grid = grid[np.diff(grid, prepend=-np.inf) > SHORTEST * nodes[-1]]
    traces = np.array([flow.at(float(t)).trace for t in grid])
    if grid.size < 2 or not np.all(traces > 0):
        return np.inf
    rates = np.diff(np.log(traces)) / np.diff(grid)
    # The rate of a step is that of its middle, except from layer to layer.
    when = 0.5 * (grid[1:] + grid[:-1]) if flow.interpolant is not None else grid[:-1]
    limits = [_limit(schedule(schedule.snap(float(t))), own[0]) for t in when]
    slack = np.array(limits) - rates
    below = np.flatnonzero(slack < 0)
    if not below.size:
        return np.inf
    i = int(below[0])
    if i == 0 or flow.interpolant is None:
        return float(when[i])
    part = slack[i - 1] / (slack[i - 1] - slack[i])
    return float(when[i - 1] + part * (when[i] - when[i - 1]))


def _limit(p: Parameters, gained: float) -> float:
    """Largest relative rate at which the square of a norm can grow under feed-forward A."""
    return 2.0 * (float(np.linalg.norm(p.A, 2)) + value_norms(p) + gained)


def _certain(run: TokenRun, flow: Trajectory, nodes: Array) -> float:
    p = run.problem
    farthest = np.zeros((1, p.schedule.dim))
    farthest[0, 0] = run.largest_norm[0]
    pieces = [law.law(law.start) for law in p.schedule.pieces()]
    whole = Schedule(p.schedule.times, pieces) if p.schedule.piecewise_constant else p.schedule
    times = nodes if p.layers is None else flow.times[flow.times <= nodes[-1]]
    bounds = norm_bounds(
        farthest, whole, p.horizon, list(times), layers=p.layers, feedforward=p.feedforward
    )
    if bounds is None:
        return np.inf
    second = [flow.at(float(t)) for t in times]
    above = [
        law.trace + float(law.mean @ law.mean) > bound**2
        for law, bound in zip(second, bounds, strict=True)
    ]
    return float(times[int(np.argmax(above))]) if any(above) else np.inf

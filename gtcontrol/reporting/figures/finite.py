"""Finitely many tokens beside their mean field, and what attention does on the way."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...results.trajectory import Trajectory
from ...simulation.run import simulate
from ...status import Status
from ..views.finite import Course, course
from ..wording import number
from .canvas import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    decorate,
    figure,
    scale_variance,
    title,
)
from .sampling import sample

__all__ = ["tokens"]

#: Mean field variances beyond this multiple of the largest one of the tokens are cut off.
BEYOND = 3.0


def tokens(result: Trajectory) -> Figure:
    """Total variance of the closure and of the mean field; scores and weights beside it."""
    fig = figure(9.5, 4.2)
    left, right = fig.subplots(1, 2)
    finding = _variances(left, result)
    _attention(right, result, course(result))
    title(fig, finding)
    return fig


def _variances(ax: Axes, result: Trajectory) -> str:
    p = result.problem
    field = simulate(p.start, p.schedule, p.horizon, layers=p.layers, rtol=1e-9)
    there, seen = sample(result), sample(field)
    top = BEYOND * float(there.traces.max())
    shown = seen.traces <= top
    marker = "o" if p.layers is not None and there.times.size <= 60 else None
    name = f"{p.tokens.count if p.tokens else 0} tokens"
    ax.plot(there.times, there.traces, color=BLACK, lw=2.6, marker=marker, ms=4, label=name)
    ax.plot(
        seen.times[shown],
        seen.traces[shown],
        color=BLUE,
        lw=1.8,
        ls="--",
        label="mean field (infinitely many)",
    )
    if field.status is Status.BLOW_UP:
        ax.axvline(field.blow_up_time, color=RED, lw=1.2, ls=":", label="its blow-up")
    scale = scale_variance(ax, np.append(there.traces, seen.traces[shown]))
    decorate(ax, "time t" if p.layers is None else "time t (one marker per layer)", scale)
    ax.legend(loc="best", fontsize=9, frameon=True, framealpha=0.9)
    own = f"Total variance at the end: {number(float(there.traces[-1]), 3)}, where the mean field"
    if field.status is Status.BLOW_UP:
        return f"{own} has blown up"
    if field.status is not Status.SUCCESS:
        return f"{own} left double precision"
    return f"{own} has {number(float(field.traces[-1]), 3)}"


def _attention(ax: Axes, result: Trajectory, seen: Course) -> None:
    """Worst head: a²/log N, weight of the own key, share κ of the mean field tilt."""
    log_count = result.problem.tokens.log_count if result.problem.tokens else 1.0
    ax.plot(seen.times, seen.variance / log_count, color=ORANGE, lw=1.8, label="a²/log N")
    if result.problem.tokens and result.problem.tokens.self_key:
        ax.plot(seen.times, seen.own, color=PURPLE, lw=1.8, label="weight of the own key")
    ax.plot(seen.times, seen.tilt, color=GREEN, lw=1.8, label="κ of the other keys")
    ax.axhline(1.0, color=BLACK, lw=0.6)
    ax.set_ylim(0.0, max(1.1, min(3.0, 1.05 * float(np.max(seen.variance)) / log_count)))
    decorate(ax, "time t", "share")
    ax.legend(loc="best", fontsize=9, frameon=True, framealpha=0.9)

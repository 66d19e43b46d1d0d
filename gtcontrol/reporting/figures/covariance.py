"""Trace and eigenvalues of the covariance in time, and their growth towards a blow-up."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..._check import Array
from ...gaussian import Gaussian
from ...problem.bounds import Bounds
from ...results.steering import Steering
from ...results.trajectory import Trajectory
from ...status import Status
from ..views.attempts import arrives, stands_in
from ..wording import number
from .canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LARGEST,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    SMALLEST,
    decorate,
    figure,
    legend_right,
    scale_variance,
    title,
)
from .sampling import Samples, sample

__all__ = ["steering", "trajectory"]

#: Eigenvalues that are drawn one by one with a name; of more, only the outer two are named.
NAMED = 6

#: Their colours; red is kept for targets and blow-ups.
COLOURS = (BLUE, GREEN, ORANGE, SKY, PURPLE, "#999933")

#: At most so many unnamed eigenvalues between the outer two.
UNNAMED = 30

#: A bound above the axis by more than this factor is named but not drawn.
FAR_BOUND = 10.0

#: Relative times left, (T* - t)/T*, between which the growth is measured: nearer to T* the
#: difference is rounding, farther away the pole does not dominate yet.
NEAR, FAR = 1e-10, 1e-3


def steering(result: Steering) -> Figure:
    """Trace and eigenvalues along a plan, with the target's values as rings."""
    path = result.trajectory
    samples = sample(path)
    fig = figure(8.0, 4.4)
    rank = result.problem.start.rank
    smallest = number(float(np.nanmin(samples.eigenvalues())), 3)
    finding = f"Rank {rank} is kept: the smallest eigenvalue on the way is {smallest}"
    if not arrives(result):
        finding = "The covariance along the best plan found does not meet the target"
    elif stands_in(result):
        finding = (
            f"{result.status.name}: an exact plan stands in for the optimum; it keeps rank {rank}"
        )
    title(fig, finding)
    ax = fig.add_subplot()
    _curves(ax, path, samples, result.problem.target)
    _bounds(ax, result.problem.bounds)
    legend_right(ax)
    return fig


def _bounds(ax: Axes, bounds: Bounds) -> None:
    """Bounds on the covariance, where they are near enough to be seen."""
    for name, level in (("trace", bounds.trace), ("λ₁", bounds.largest_eigenvalue)):
        if level is None:
            continue
        colour = BLACK if name == "trace" else COLOURS[0]
        far = level > FAR_BOUND * ax.get_ylim()[1]
        if far:
            ax.plot([], [], color=colour, ls="--", label=f"bound {number(level)} on {name}, off")
        else:
            low, high = ax.get_ylim()
            ax.set_ylim(low, max(high, 1.08 * level))
            ax.axhline(level, color=colour, ls="--", lw=1.2, label=f"bound on {name}")


def trajectory(result: Trajectory) -> Figure:
    """Trace and eigenvalues of a simulated law; its growth beside them if it blows up."""
    samples = sample(result)
    if result.status is not Status.BLOW_UP:
        fig = figure(8.0, 4.4)
        before, after = (number(float(samples.traces[i]), 3) for i in (0, -1))
        title(fig, f"Total variance {before} → {after}")
        ax = fig.add_subplot()
        _curves(ax, result, samples, None)
        legend_right(ax)
        return fig
    fig = figure(9.5, 4.4)
    left, right = fig.subplots(1, 2)
    _curves(left, result, samples, None)
    end = result.blow_up_time
    left.axvline(end, color=RED, ls="--", lw=1.6, label=f"T* = {number(end)}")
    left.legend(loc="upper left", fontsize=9, frameon=True, framealpha=0.9)
    power = _growth(right, result)
    grows = ""
    if power is not None:
        grows = f": near it the trace grows like 1/(T* − t) to the power {power:.3f}"
    title(fig, f"Blow-up at T* = {number(end, 9)}{grows}")
    return fig


def _curves(ax: Axes, path: Trajectory, samples: Samples, target: Gaussian | None) -> None:
    marker = "o" if path.problem.layers is not None and samples.times.size <= 60 else None
    values = samples.eigenvalues()
    traces = np.minimum(samples.traces, LARGEST)
    shown = np.concatenate([values.ravel(), traces])
    r = values.shape[1]
    name = "trace" if r > 1 else "trace = λ₁"
    ax.plot(samples.times, traces, color=BLACK, lw=2.8, marker=marker, ms=4.5, label=name)
    colours = iter(COLOURS)
    for i, label in _chosen(r) if r > 1 else []:
        colour = next(colours) if label else GREY
        ax.plot(
            samples.times,
            np.where(values[:, i] > SMALLEST, np.minimum(values[:, i], LARGEST), np.nan),
            color=colour,
            lw=1.6 if label else 0.6,
            marker=marker,
            ms=3,
            label=label,
        )
    if target is not None:
        goal = np.append(target.eigenvalues, target.trace)
        picked = [i for i, label in _chosen(target.rank) if label] + [target.rank]
        shown = np.append(shown, goal)
        # Rings are not clipped: they sit on the right edge of the axes.
        ax.plot(
            np.full(len(picked), path.problem.horizon),
            goal[picked],
            ls="",
            marker="o",
            ms=9,
            mfc="none",
            mec=RED,
            mew=1.6,
            clip_on=False,
            zorder=5,
            label="target",
        )
    scale = scale_variance(ax, shown)
    clock = "time t" if path.problem.layers is None else "time t (one marker per layer)"
    decorate(ax, clock, scale)
    end = float(path.times[-1])
    if path.status is Status.BLOW_UP:
        end = 1.04 * path.blow_up_time
    if target is not None:
        end = path.problem.horizon
    ax.set_xlim(0.0, end if end > 0 else 1.0)


def _chosen(rank: int) -> list[tuple[int, str]]:
    """Indices of the eigenvalues to draw, and the names of those that get one."""
    if rank <= NAMED:
        return [(i, f"λ{_subscript(i + 1)}") for i in range(rank)]
    between = np.unique(np.linspace(1, rank - 2, UNNAMED).round().astype(int))
    outer = [(0, "λ₁ (largest)"), (rank - 1, f"λ{_subscript(rank)} (smallest)")]
    return [*((int(i), "") for i in between), *outer]


def _subscript(index: int) -> str:
    return str(index).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def _growth(ax: Axes, result: Trajectory) -> float | None:
    """Draw the trace against 1/(T* - t); return the measured power of its growth."""
    end = result.blow_up_time
    left = end - result.times
    seen = left > NEAR * end
    inverse, traces = 1.0 / left[seen], result.traces[seen]
    ax.loglog(inverse, traces, color=BLACK, lw=2.2, label="trace")
    power = _power(left / end, result.traces)
    last = inverse[-1]
    # A pole of order one, through the last point: what the curve must run along.
    ax.loglog(inverse, traces[-1] * inverse / last, color=RED, ls="--", lw=1.4, label="slope 1")
    decorate(ax, "1/(T* − t), inverse of the time left", "trace (log scale)")
    ax.legend(loc="upper left", fontsize=9, frameon=True, framealpha=0.9)
    return power


def _power(left: Array, traces: Array) -> float | None:
    near = (left > NEAR) & (left < FAR)
    if np.count_nonzero(near) < 4:
        return None
    return float(-np.polyfit(np.log(left[near]), np.log(traces[near]), 1)[0])

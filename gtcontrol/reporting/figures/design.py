"""Simulations that confirm a design: laws on their way into the target, and their distances."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..._check import Array
from ...gaussian import Gaussian
from ...results.design import Confirmation, Design
from ..wording import count, error, number
from .canvas import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, decorate, figure, title
from .plane import Plane, plane_of

__all__ = ["pictures"]

#: Colours of the simulations; red is the target.
COLOURS = (BLUE, GREEN, ORANGE, PURPLE, SKY)

#: Relative distances below this are not drawn.
FLOOR = 1e-14

#: One of so many of the laws that are kept is drawn as an ellipse, all as points of the mean.
EVERY = 3


def pictures(result: Design) -> dict[str, Figure]:
    """Figures "path" (if laws were kept) and "distance"; none without simulations."""
    seen = result.confirmation
    if seen is None or not seen.count:
        return {}
    made = {}
    if seen.means.shape[0]:
        made["path"] = _path(result, seen)
    made["distance"] = _distance(result, seen)
    return made


def _path(result: Design, seen: Confirmation) -> Figure:
    target = result.problem.target
    runs = [
        [
            Gaussian.trusted(m, L[:, L.any(axis=0)])
            for m, L in zip(seen.means[i], seen.factors[i], strict=True)
        ]
        for i in range(seen.means.shape[0])
    ]
    plane = plane_of([law for run in runs for law in (run[0], run[1])], target)
    fig = figure(8.0, 4.4 if plane.flat else 5.8)
    many = count(len(runs), "random start")
    title(fig, f"{many}: all end in the target" if result.answered else f"{many} and the target")
    ax = fig.add_subplot()
    for run, colour in zip(runs, COLOURS, strict=False):
        if plane.flat:
            _bands(ax, plane, run, seen.snapshots, colour)
        else:
            _ellipses(ax, plane, run, colour)
    if plane.flat:
        _target_bands(ax, plane, target)
        ax.set_xlim(0.0, float(seen.snapshots[-1]))
        decorate(ax, "time t", plane.labels[0])
    else:
        for radius, width in ((1.0, 2.4), (2.0, 1.4)):
            x, y = plane.outline(target, radius).T
            ax.plot(x, y, color=RED, ls="--", lw=width, zorder=6)
        x, y = plane.coordinates(target.mean)
        ax.plot([x], [y], marker="X", color=RED, ms=8, mec="white", mew=0.5, zorder=7)
        decorate(ax, *plane.labels)
        ax.set_aspect("equal", adjustable="datalim")
        ax.margins(0.05)
    handles = [
        Line2D([], [], color=colour, lw=2.2, marker="o", label=f"start {i + 1} (rank {rank:g})")
        for i, (colour, rank) in enumerate(zip(COLOURS, seen.ranks[: len(runs)], strict=False))
    ]
    handles.append(Line2D([], [], color=RED, lw=2.2, ls="--", marker="X", label="target"))
    fig.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return fig


def _ellipses(ax: Axes, plane: Plane, run: list[Gaussian], colour: str) -> None:
    """Ellipses of one standard deviation, and the path of the mean."""
    for i, law in list(enumerate(run))[::EVERY]:
        x, y = plane.outline(law, 1.0).T
        ax.plot(x, y, color=colour, lw=2.2 if i == 0 else 0.9, alpha=1.0 if i == 0 else 0.6)
    means = np.array([plane.coordinates(law.mean) for law in run])
    ax.plot(*means.T, color=colour, lw=1.0, marker="o", ms=2.5, zorder=4)
    ax.plot(*means[0], color=colour, marker="o", ms=6, mec="white", mew=0.5, zorder=5)


def _bands(ax: Axes, plane: Plane, run: list[Gaussian], times: Array, colour: str) -> None:
    """One direction only: mean and one standard deviation against time."""
    center = np.array([plane.coordinates(law.mean)[0] for law in run])
    spread = np.array([float(plane.spread(law.factor)) for law in run])
    ax.fill_between(times, center - spread, center + spread, color=colour, alpha=0.18, lw=0)
    ax.plot(times, center, color=colour, lw=1.6, marker="o", ms=3)


def _target_bands(ax: Axes, plane: Plane, target: Gaussian) -> None:
    center = float(plane.coordinates(target.mean)[0])
    spread = float(plane.spread(target.factor))
    ax.axhline(center, color=RED, lw=1.8, ls="--", zorder=5)
    for side in (-spread, spread):
        ax.axhline(center + side, color=RED, lw=1.0, ls="--", zorder=5)


def _distance(result: Design, seen: Confirmation) -> Figure:
    pace = min(result.rate, result.mean_rate)
    fig = figure(8.0, 4.4)
    many = count(seen.count, "simulation")
    title(
        fig,
        f"{many} end within {error(seen.worst)} of the target; measured rates from "
        f"{number(seen.slowest, 3)}, guaranteed in the limit {number(pace, 3)}",
    )
    ax = fig.add_subplot()
    for i, row in enumerate(seen.distances):
        shown = np.where(row > FLOOR, row, np.nan)
        colour = COLOURS[i % len(COLOURS)]
        ax.semilogy(seen.times, shown, color=colour, lw=1.5, alpha=0.8)
    top = float(np.max(seen.distances[:, 0]))
    guide = top * np.exp(-pace * seen.times)
    ax.semilogy(seen.times, guide, color=BLACK, ls="--", lw=1.6)
    ax.set_xlim(0.0, seen.horizon)
    decorate(ax, "time t", "W₂ distance / size of the target (log scale)")
    handles = [
        Line2D([], [], color=BLUE, lw=1.5, label="simulations (one colour each)"),
        Line2D([], [], color=BLACK, ls="--", lw=1.6, label=f"slope of rate {number(pace, 4)}"),
    ]
    ax.legend(handles=handles, loc="upper right", fontsize=9, frameon=True, framealpha=0.9)
    return fig

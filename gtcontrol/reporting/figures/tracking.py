"""Feedback around a plan: what it achieves, how strong it is, and where it ends."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..._check import Array
from ...gaussian import Gaussian
from ...results.tracking import ENOUGH, Tracking
from ..wording import number, percent
from .canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    decorate,
    figure,
    legend_right,
    title,
)
from .plane import Plane, plane_of

__all__ = ["pictures"]

#: Colours of the parameters, as in the picture of a plan.
LETTERS = {"A": BLUE, "V": GREEN, "B": ORANGE, "b": PURPLE}

#: Times at which gains are drawn; the last is just before the end.
TIMES = 121

#: Distances below this fraction of the largest are drawn at it.
FLOOR = 1e-12


def pictures(result: Tracking) -> dict[str, Figure]:
    """Figures "distances", "deviation", "sample", "gains" and "tolerated"."""
    made = {
        "distances": _distances(result),
        "sample": _sample(result),
        "deviation": _deviation(result),
        "gains": _gains(result),
    }
    if len(result.levels) > 1:
        made["tolerated"] = _tolerated(result)
    return made


def _distances(result: Tracking) -> Figure:
    fig = figure(8.0, 4.6)
    size = percent(result.problem.perturbation)
    title(
        fig,
        f"Perturbed by {size}, the median start ends {number(result.ratio, 3)} times closer to "
        "the target with feedback",
    )
    ax = fig.add_subplot()
    finite = np.concatenate([x[np.isfinite(x)] for x in (result.alone, result.closed)])
    top = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
    escape = 3.0 * top
    pairs = [
        np.where(np.isfinite(x), np.maximum(x, FLOOR * top), escape)
        for x in (result.alone, result.closed)
    ]
    ax.plot([0, 1], np.array(pairs), color=GREY, lw=0.7, alpha=0.6, zorder=2)
    for at, (values, colour) in enumerate(zip(pairs, (ORANGE, BLUE), strict=True)):
        ax.plot(np.full(values.size, at), values, ls="", marker="o", ms=4, color=colour, zorder=3)
        middle = float(np.quantile(values, 0.5, method="closest_observation"))
        ax.plot([at - 0.12, at + 0.12], [middle, middle], color=BLACK, lw=2.4, zorder=4)
        told = f"median {number(middle, 2)}" if middle < escape else "median: escaped"
        ax.annotate(
            told, (at + (0.14 if at else -0.14), middle), fontsize=10, va="center",
            ha="left" if at else "right",
        )  # fmt: skip
    if any(np.isinf(x).any() for x in (result.alone, result.closed)):
        ax.axhline(escape, color=RED, ls=":", lw=1.2)
        ax.annotate("left every bound", (0.5, escape), fontsize=9, color=RED, ha="center",
                    va="bottom")  # fmt: skip
    ax.set_yscale("log")
    ax.set_xlim(-0.6, 1.6)
    decorate(ax, "", "W₂ distance to the target at the end (log scale)")
    ax.set_xticks([0, 1], ["plan alone", "with feedback"], fontsize=11)
    return fig


def _deviation(result: Tracking) -> Figure:
    fig = figure(8.0, 4.2)
    title(fig, "Distance to the plan on the way, without and with feedback")
    ax = fig.add_subplot()
    for rows, colour, label in (
        (result.alone_history, ORANGE, "plan alone"),
        (result.closed_history, BLUE, "with feedback"),
    ):
        low, middle, high = np.where(np.isfinite(rows) & (rows > 0), rows, np.nan)
        ax.fill_between(result.history_times, low, high, color=colour, alpha=0.2, lw=0)
        ax.plot(result.history_times, middle, color=colour, lw=2, label=label)
    ax.set_yscale("log")
    ax.set_xlim(0.0, result.problem.horizon)
    decorate(ax, "time t", "W₂ distance to the plan (log scale)")
    legend_right(ax)
    return fig


def _laws(means: Array, factors: Array) -> list[Gaussian]:
    return [Gaussian.trusted(m, L) for m, L in zip(means, factors, strict=True)]


def _sample(result: Tracking) -> Figure:
    path, target = result.path, result.problem.target
    nominal = [result.nominal.at(float(t)) for t in path.times]
    alone = _laws(path.alone_means, path.alone_factors)
    closed = _laws(path.closed_means, path.closed_factors)
    plane = plane_of(nominal, target)
    fig = figure(8.0, 4.4 if plane.flat else 5.4)
    title(fig, "One perturbed start: the plan alone misses, feedback arrives"
          if result.answered else "One perturbed start, with and without feedback")  # fmt: skip
    ax = fig.add_subplot()
    kinds = ((nominal, GREY, 1.0, "plan"), (alone, ORANGE, 1.8, "plan alone, perturbed start"),
             (closed, BLUE, 1.8, "with feedback, perturbed start"))  # fmt: skip
    for laws, colour, width, _ in kinds:
        if plane.flat:
            _curve(ax, plane, laws, path.times, colour, width)
        else:
            _ellipses(ax, plane, laws, colour, width)
    if plane.flat:
        ax.set_xlim(0.0, float(path.times[-1]))
        decorate(ax, "time t", plane.labels[0])
        center, spread = (
            float(plane.coordinates(target.mean)[0]),
            float(plane.spread(target.factor)),
        )
        for side in (-spread, 0.0, spread):
            ax.axhline(center + side, color=RED, ls="--", lw=1.2)
    else:
        x, y = plane.outline(target, 1.0).T
        ax.plot(x, y, color=RED, ls="--", lw=2.4, zorder=6)
        ax.plot(*plane.coordinates(target.mean), color=RED, marker="X", ms=8, mec="white", zorder=7)
        decorate(ax, *plane.labels)
        ax.set_aspect("equal", adjustable="datalim")
    handles = [Line2D([], [], color=c, lw=2, label=label) for _, c, _, label in kinds]
    handles.append(Line2D([], [], color=RED, lw=2.2, ls="--", marker="X", label="target"))
    fig.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    return fig


def _ellipses(ax: Axes, plane: Plane, laws: list[Gaussian], colour: str, width: float) -> None:
    """One standard deviation at the start, in the middle and at the end; the mean throughout."""
    for i in (0, len(laws) // 2, len(laws) - 1):
        x, y = plane.outline(laws[i], 1.0).T
        ax.plot(x, y, color=colour, lw=width, alpha=0.9)
    means = np.array([plane.coordinates(law.mean) for law in laws])
    ax.plot(*means.T, color=colour, lw=width, marker="o", ms=3, zorder=4)


def _curve(
    ax: Axes, plane: Plane, laws: list[Gaussian], times: Array, colour: str, width: float
) -> None:
    center = np.array([plane.coordinates(law.mean)[0] for law in laws])
    spread = np.array([float(plane.spread(law.factor)) for law in laws])
    ax.plot(times, center, color=colour, lw=width, marker="o", ms=3)
    for side in (-1, 1):
        ax.plot(times, center + side * spread, color=colour, lw=0.7 * width, alpha=0.7)


def _gains(result: Tracking) -> Figure:
    fig = figure(8.0, 4.2)
    title(fig, "How strongly the parameters answer to a deviation from the plan")
    ax = fig.add_subplot()
    times = np.linspace(0.0, result.problem.horizon, TIMES)
    for letter, norms in result.gain_norms(times).items():
        shown = np.where(norms > 0, norms, np.nan)
        ax.plot(times, shown, color=LETTERS[letter], lw=1.8, label=letter)
    ax.set_yscale("log")
    ax.set_xlim(0.0, result.problem.horizon)
    decorate(ax, "time t", "correction per unit of W₂ (log scale)")
    legend_right(ax)
    return fig


def _tolerated(result: Tracking) -> Figure:
    fig = figure(8.0, 4.2)
    failing = result.failing
    told = (
        f"All sizes up to {percent(result.tolerated)} are tolerated"
        if failing is None
        else f"Perturbations of up to {percent(result.tolerated)} are tolerated"
    )
    title(fig, told)
    ax = fig.add_subplot()
    sizes = np.array([100 * x.size for x in result.levels])
    for values, colour, marker, label in (
        ([x.closer for x in result.levels], BLUE, "o", "end closer"),
        ([x.tenfold for x in result.levels], GREEN, "s", "end ten times closer"),
        ([x.escaped for x in result.levels], RED, "x", "escape with feedback"),
        ([x.escaped_alone for x in result.levels], ORANGE, "+", "escape under the plan alone"),
    ):
        ax.plot(sizes, 100 * np.array(values), color=colour, marker=marker, lw=1.6, label=label)
    ax.axhline(100 * ENOUGH, color=BLACK, ls=":", lw=1.2)
    ax.set_xscale("log")
    ax.set_xticks(*_ticks(sizes))
    ax.minorticks_off()
    ax.set_ylim(-4, 104)
    decorate(ax, "size of the perturbation [%] (log scale)", "share of the starts [%]")
    legend_right(ax)
    return fig


def _ticks(sizes: Array) -> tuple[Array, list[str]]:
    """Round sizes a factor of two apart, as they are tried."""
    first = float(sizes[0])
    made = first * 2.0 ** np.arange(int(np.round(np.log2(sizes[-1] / first))) + 1)
    return np.asarray(made), [number(float(x), 3) for x in made]

"""Errors of exported layers against their number, and tokens before and after them."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from ..._check import Array
from ...gaussian import Gaussian
from ...results.export import ExportCheck
from ..views.export import order_words
from ..wording import percent
from .canvas import BLACK, BLUE, GREEN, GREY, RED, SKY, decorate, figure, title
from .plane import Plane, plane_of

__all__ = ["pictures"]

#: Errors below this are rounding, and drawn there.
SMALLEST = 1e-16

#: Radius of the ellipses, in standard deviations.
RADIUS = 2.0


def pictures(result: ExportCheck) -> dict[str, Figure]:
    """Figures "convergence" and, in dimension two or more, "tokens"."""
    made = {"convergence": _convergence(result)}
    if result.problem.start.dim > 1:
        made["tokens"] = _tokens(result)
    return made


def _convergence(result: ExportCheck) -> Figure:
    fig = figure(8.6, 5.0)
    title(fig, _finding(result))
    ax = fig.add_subplot()
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    layers = np.array(result.layers, dtype=float)
    low, high = float(result.baseline.min()), float(result.baseline.max())
    ax.axhspan(low, high, color=GREY, alpha=0.25, lw=0)
    ax.axhline(
        result.floor,
        color=GREY,
        lw=1.5,
        label=f"samples of the target: {percent(result.floor)} (band: all {result.baseline.size})",
    )
    _line(ax, layers, result.token_errors, BLUE, "o", "-", "tokens, plain layers")
    name = f"Gaussian law of plain layers: {order_words(result.order)}"
    _line(ax, layers, result.law_errors, RED, "s", "--", name)
    if result.problem.exact:
        _line(ax, layers, result.exact_errors, GREEN, "D", "-", "tokens, corrected layers")
    if len(layers) > 1 and result.law_errors[0] > 0:
        guide = 0.6 * float(result.law_errors[0]) * layers[0] / layers
        ax.plot(layers, guide, color=BLACK, ls=":", lw=1, label="slope -1")
    ax.xaxis.set_major_locator(FixedLocator(layers.tolist()))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels([str(n) for n in result.layers])
    decorate(ax, "layers (log scale)", "error / size of the target (log scale)")
    fig.legend(loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    return fig


def _finding(result: ExportCheck) -> str:
    return (
        f"{result.layers[-1]} {_kind(result)} are off by {percent(result.error)}, samples of the "
        f"target by {percent(result.floor)}; plain layers are off like {order_words(result.order)}"
    )


def _kind(result: ExportCheck) -> str:
    return "corrected layers" if result.problem.exact else "layers"


def _line(ax: Axes, x: Array, y: Array, colour: str, marker: str, style: str, label: str) -> None:
    shown = np.maximum(y, SMALLEST)
    ax.plot(x, shown, color=colour, marker=marker, ls=style, lw=2, ms=6, label=label)


def _tokens(result: ExportCheck) -> Figure:
    p = result.problem
    reached = Gaussian.from_covariance(result.mean, result.covariance)
    plane = plane_of([p.start, p.target, reached], p.target)
    fig = figure(8.0, 5.4)
    title(
        fig,
        f"After {result.layers[-1]} {_kind(result)} of softmax attention the moments of {p.count} "
        f"tokens are {percent(result.error)} off the target",
    )
    ax = fig.add_subplot()
    _cloud(ax, plane, result.before, GREY, "tokens that go in")
    _cloud(ax, plane, result.after, SKY, "tokens that come out")
    _ellipse(ax, plane, p.start, BLACK, ":", "start")
    _ellipse(ax, plane, p.target, RED, "-", "target")
    _ellipse(ax, plane, reached, BLUE, "--", "moments that come out")
    ax.set_aspect("equal", adjustable="datalim")
    decorate(ax, plane.labels[0], "" if plane.flat else plane.labels[1])
    fig.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return fig


def _cloud(ax: Axes, plane: Plane, tokens: Array, colour: str, label: str) -> None:
    xy = plane.coordinates(tokens)
    y = np.zeros(len(xy)) if plane.flat else xy[:, 1]
    ax.plot(xy[:, 0], y, ls="", marker=".", ms=4, alpha=0.6, color=colour, label=label)


def _ellipse(ax: Axes, plane: Plane, law: Gaussian, colour: str, style: str, label: str) -> None:
    if plane.flat:
        centre = float(plane.coordinates(law.mean)[0])
        reach = RADIUS * float(plane.spread(law.factor))
        ax.plot([centre - reach, centre + reach], [0, 0], color=colour, ls=style, lw=2, label=label)
        return
    line = plane.outline(law, RADIUS)
    ax.plot(line[:, 0], line[:, 1], color=colour, ls=style, lw=1.8, label=label)

"""Distances against time with their orders, and the laws at the last time in a plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from ..._check import Array
from ...gaussian import Gaussian
from ...results.closeness import NEGLIGIBLE, Closeness
from ...results.mixture import MixtureRun
from ..views.closeness import order_words
from ..wording import number, percent
from .canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    decorate,
    figure,
    title,
)
from .plane import Plane, plane_of

__all__ = ["closeness", "mixture"]

#: Radius of the ellipses, in standard deviations.
RADIUS = 2.0


@dataclass(frozen=True)
class _Line:
    """How one distance is drawn."""

    label: str
    colour: str
    style: str
    marker: str


_CLOSENESS = {
    "naive": _Line("moments, linearised at the mean", RED, "--", "s"),
    "shape": _Line("shape of the law", BLUE, "-", "o"),
    "law": _Line("law, statistically linearised", PURPLE, "-.", "^"),
    "moments": _Line("moments, statistically linearised", GREEN, "-", "D"),
}

_MIXTURE = {
    "apart": _Line("law, each component by itself", RED, "--", "s"),
    "coupled": _Line("law, best affine maps", BLUE, "-", "o"),
    "coupled_moments": _Line("moments, best affine maps", GREEN, "-", "D"),
}

_CLOUDS = (SKY, ORANGE, PURPLE, GREY)


def closeness(result: Closeness) -> dict[str, Figure]:
    """Figures "distances" and, in dimension two or more, "law"."""
    fig = figure(8.6, 4.8)
    orders = result.orders
    title(
        fig,
        f"Shape leaves Gaussians like {order_words(orders['shape'])}, moments leave the "
        f"statistically linearised flow like {order_words(orders['moments'])}",
    )
    ax = fig.add_subplot()
    curves = {name: getattr(result, name) for name in _CLOSENESS}
    _distances(ax, result.times, curves, orders, _CLOSENESS)
    fig.legend(loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    made = {"distances": fig}
    if result.problem.start.dim > 1:
        made["law"] = _law(result)
    return made


def mixture(result: MixtureRun) -> dict[str, Figure]:
    """Figures "law" (in dimension two or more) and "distances"."""
    made = {}
    if result.problem.start.dim > 1:
        made["law"] = _components(result)
    fig = figure(8.6, 4.8)
    errors = result.errors
    title(
        fig,
        f"Off by {percent(errors['apart'])} if components move by themselves, by "
        f"{percent(errors['coupled'])} if moved by the best affine maps",
    )
    ax = fig.add_subplot()
    curves = {name: getattr(result, name) for name in _MIXTURE}
    _distances(ax, result.times, curves, result.orders, _MIXTURE)
    ax.plot(
        result.times, result.floor, color=GREY, ls="-.", lw=2, label="two sets of nodes of one law"
    )
    fig.legend(loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    return {**made, "distances": fig}


def _distances(
    ax: Axes,
    times: Array,
    curves: dict[str, Array],
    orders: dict[str, float],
    lines: dict[str, _Line],
) -> None:
    """Distances on logarithmic axes, with a band over the sets of nodes, and guides."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    for name, values in curves.items():
        line, mean = lines[name], np.maximum(values.mean(axis=0), 1e-16)
        low, high = np.maximum(values.min(axis=0), 1e-16), np.maximum(values.max(axis=0), 1e-16)
        ax.fill_between(times, low, high, color=line.colour, alpha=0.25, lw=0)
        label = f"{line.label}: {order_words(orders[name])}"
        ax.plot(
            times,
            mean,
            color=line.colour,
            ls=line.style,
            marker=line.marker,
            ms=6,
            lw=2,
            label=label,
        )
    known = np.array([values.mean(axis=0)[-1] for values in curves.values()])
    if float(known.max()) > NEGLIGIBLE:
        _guide(ax, times, 1.6 * float(known.max()), 1)
        _guide(ax, times, 0.6 * float(known.min()), 2)
    ax.xaxis.set_major_locator(FixedLocator(times.tolist()))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xticklabels([number(float(t), 3) for t in times])
    decorate(ax, "time t (log scale)", "distance / size of the law (log scale)")


def _guide(ax: Axes, times: Array, end: float, order: int) -> None:
    values = end * (times / times[-1]) ** order
    ax.plot(times, values, color=BLACK, ls=":", lw=1)
    name = "t" if order == 1 else f"t$^{order}$"
    ax.annotate(
        f"slope of {name}",
        (float(times[times.size // 2]), float(values[times.size // 2])),
        textcoords="offset points",
        xytext=(0, 10) if order == 1 else (8, -14),
        fontsize=9,
    )


def _law(result: Closeness) -> Figure:
    laws = [
        Gaussian.from_covariance(m, S)
        for m, S in zip(result.means, result.covariances, strict=True)
    ]
    plane = plane_of([result.problem.start, *laws], laws[0])
    fig = figure(7.6, 5.4)
    last = number(float(result.times[-1]), 4)
    off = [percent(float(x[:, -1].mean())) for x in (result.moments, result.naive)]
    title(
        fig,
        f"At t = {last} the statistically linearised flow has the moments of the true law to "
        f"{off[0]}, the flow linearised at the mean to {off[1]}",
    )
    ax = fig.add_subplot()
    _cloud(ax, plane, result.tokens, SKY, "true law")
    _ellipse(ax, plane, result.problem.start, GREY, ":", "start")
    _ellipse(ax, plane, laws[0], BLACK, "-", "moments of the true law")
    _ellipse(ax, plane, laws[1], GREEN, "--", "statistically linearised")
    _ellipse(ax, plane, laws[2], RED, "-.", "linearised at the mean")
    _finish(fig, ax, plane)
    return fig


def _components(result: MixtureRun) -> Figure:
    kinds = [
        [Gaussian.from_covariance(m, S) for m, S in zip(means, covariances, strict=True)]
        for means, covariances in zip(result.means, result.covariances, strict=True)
    ]
    laws = list(result.problem.start.laws)
    plane = plane_of([*laws, *(law for kind in kinds for law in kind)], kinds[0][-1])
    fig = figure(8.0, 5.6)
    last = number(float(result.times[-1]), 4)
    errors = result.errors
    title(
        fig,
        f"At t = {last} the law is {percent(errors['apart'])} away from components that move by "
        f"themselves, and its components {percent(errors['component_shape'])} from Gaussians",
    )
    ax = fig.add_subplot()
    for k in range(len(laws)):
        cloud = result.tokens[result.labels == k]
        _cloud(ax, plane, cloud, _CLOUDS[k % len(_CLOUDS)], f"component {k + 1}")
    names = ("moments of the components", "best affine maps", "each by itself")
    styles = ((BLACK, "-"), (BLUE, "--"), (RED, "-."))
    for k, law in enumerate(laws):
        _ellipse(ax, plane, law, GREY, ":", "" if k else "start")
    for kind, name, (colour, style) in zip(kinds, names, styles, strict=True):
        for k, law in enumerate(kind):
            _ellipse(ax, plane, law, colour, style, "" if k else name)
    _finish(fig, ax, plane)
    return fig


def _cloud(ax: Axes, plane: Plane, tokens: Array, colour: str, label: str) -> None:
    xy = plane.coordinates(tokens)
    y = xy[:, 1] if not plane.flat else np.zeros(len(xy))
    ax.plot(xy[:, 0], y, ls="", marker=".", ms=4, alpha=0.6, color=colour, label=label)


def _ellipse(ax: Axes, plane: Plane, law: Gaussian, colour: str, style: str, label: str) -> None:
    if plane.flat:
        centre = float(plane.coordinates(law.mean)[0])
        reach = RADIUS * float(plane.spread(law.factor))
        ax.plot([centre - reach, centre + reach], [0, 0], color=colour, ls=style, lw=2, label=label)
        return
    line = plane.outline(law, RADIUS)
    ax.plot(line[:, 0], line[:, 1], color=colour, ls=style, lw=1.8, label=label)


def _finish(fig: Figure, ax: Axes, plane: Plane) -> None:
    ax.set_aspect("equal", adjustable="datalim")
    decorate(ax, plane.labels[0], "" if plane.flat else plane.labels[1])
    fig.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)

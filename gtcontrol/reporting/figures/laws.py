"""Start, target and nearest reachable law of a reachability question."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...gaussian import Gaussian
from ...results.reachability import Reachability
from ..wording import number
from .canvas import BLUE, GREEN, RED, decorate, figure, title
from .plane import Plane, plane_of

__all__ = ["reachability"]


def reachability(result: Reachability) -> Figure:
    """Ellipses of one and two standard deviations; bars if they all lie on a line."""
    p = result.problem
    drawn = [("start", p.start, BLUE, "-", "o"), ("target", p.target, RED, "--", "X")]
    if result.reachable:
        finding = f"Reachable with {', '.join(p.controls)}"
    elif result.nearest is None:
        finding = "Not reachable, and no target near it is"
    else:
        drawn.append(("in reach", result.nearest, GREEN, "-", "D"))
        away = f"W₂ = {number(result.distance, 4)} away"
        finding = f"Not reachable; the nearest law in reach is {away}"
        if not result.attained:
            finding = f"Not reachable; a law {away} is, and none is nearest"
    plane = plane_of([law for _, law, *_ in drawn], p.target)
    fig = figure(8.0, 3.8 if plane.flat else 5.0)
    title(fig, finding)
    ax = fig.add_subplot()
    for place, (_, law, colour, style, marker) in enumerate(drawn):  # the target on top
        if plane.flat:
            _bar(ax, plane, law, place, colour, style, marker)
        else:
            _ellipse(ax, plane, law, colour, style, marker)
    if plane.flat:
        ax.set_yticks(range(len(drawn)), [name for name, *_ in drawn])
        ax.set_ylim(len(drawn) - 0.5, -0.5)
        decorate(ax, plane.labels[0], "")
    else:
        decorate(ax, *plane.labels)
        ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.06)
    handles = [
        Line2D([], [], color=c, ls=s, marker=m, lw=2, label=f"{name} (rank {law.rank}; 1σ, 2σ)")
        for name, law, c, s, m in drawn
    ]
    fig.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return fig


def _ellipse(ax: Axes, plane: Plane, law: Gaussian, colour: str, style: str, marker: str) -> None:
    for radius, width in ((1.0, 2.2), (2.0, 1.3)):
        x, y = plane.outline(law, radius).T
        ax.plot(x, y, color=colour, ls=style, lw=width)
    x, y = plane.coordinates(law.mean)
    ax.plot([x], [y], marker=marker, color=colour, ms=7, mec="white", mew=0.5, zorder=5)


def _bar(
    ax: Axes, plane: Plane, law: Gaussian, place: int, colour: str, style: str, marker: str
) -> None:
    center = float(plane.coordinates(law.mean)[0])
    spread = float(plane.spread(law.factor))
    for radius, width in ((2.0, 1.3), (1.0, 2.8)):
        ends = [center - radius * spread, center + radius * spread]
        ax.plot(ends, [place, place], color=colour, ls=style, lw=width, marker="|", ms=11)
    ax.plot([center], [place], marker=marker, color=colour, ms=8, mec="white", mew=0.5, zorder=5)

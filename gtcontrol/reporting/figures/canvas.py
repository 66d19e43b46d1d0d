"""Blank figures in one style, and figures as PNG files; no global state of Matplotlib."""

from __future__ import annotations

import io
import math
import textwrap

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from ..._check import Array
from ..wording import number

__all__ = [
    "BLACK",
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PALETTE",
    "PURPLE",
    "RED",
    "SKY",
    "TIME",
    "decorate",
    "encode",
    "figure",
    "legend_right",
    "plain_ticks",
    "scale_variance",
    "time_bar",
    "title",
]

# Okabe and Ito's palette: its colours stay apart for colour-blind readers.
BLACK, GREY = "#000000", "#7f7f7f"
BLUE, RED, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE = "#56B4E9", "#CC79A7"
PALETTE = (BLUE, RED, GREEN, ORANGE, SKY, PURPLE, BLACK, GREY)

#: Time as colour: viridis without its yellow end, which vanishes on white paper.
TIME = ListedColormap(mpl.colormaps["viridis"](np.linspace(0.0, 0.88, 256)))

DPI = 150

#: Positive numbers that may stand on a logarithmic axis, whose margins must not overflow.
SMALLEST, LARGEST = 1e-290, 1e290

#: Ticks are plain numbers on axes that span less than this factor, and at most so many.
DECADES, MOST_TICKS = 100.0, 7

#: Variances that spread by more than this factor are drawn on a logarithmic axis.
SPREAD = 3.0


def figure(width: float = 8.0, height: float = 4.5) -> Figure:
    """Return a blank figure (inches), drawn by Agg."""
    made = Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(made)
    return made


def title(fig: Figure, text: str) -> None:
    """Set the finding that the figure shows; each line beyond the first makes it taller."""
    lines = textwrap.wrap(text, int(fig.get_figwidth() * 9.5))
    fig.set_figheight(fig.get_figheight() + 0.22 * (len(lines) - 1))
    fig.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=12, fontweight="bold")


def decorate(ax: Axes, xlabel: str, ylabel: str) -> None:
    """Label the axes and draw a light grid."""
    ax.set_facecolor("white")
    ax.set_xlabel(xlabel, fontsize=10)
    ax.set_ylabel(ylabel, fontsize=10)
    ax.tick_params(labelsize=9)
    for axis in (ax.xaxis, ax.yaxis):
        axis.get_offset_text().set_fontsize(9)
    ax.grid(visible=True, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def legend_right(ax: Axes, columns: int = 1) -> None:
    """Put the legend beside the axes, where it covers nothing."""
    ax.legend(
        loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=9, frameon=False, ncols=columns
    )


def time_bar(fig: Figure, ax: Axes, last: float, label: str) -> None:
    """Add the scale of the colours that stand for time."""
    scale = ScalarMappable(Normalize(0.0, last), TIME)
    bar = fig.colorbar(scale, ax=ax, pad=0.02, shrink=0.9)
    bar.set_label(label, fontsize=10)
    bar.ax.tick_params(labelsize=9)


def scale_variance(ax: Axes, values: Array) -> str:
    """Choose a logarithmic axis if positive `values` spread, and name the scale."""
    shown = values[np.isfinite(values) & (values > SMALLEST)]
    if not shown.size:
        return "variance"
    low, high = float(shown.min()), min(float(shown.max()), LARGEST)
    if high <= SPREAD * low:
        ax.set_ylim(0.0, 1.15 * high)
        return "variance"
    ax.set_yscale("log")
    margin = 0.06 * math.log10(high / low) + 0.05
    ax.set_ylim(low * 10.0**-margin, high * 10.0**margin)
    return "variance (log scale)"


def plain_ticks(ax: Axes) -> None:
    """Write plain numbers on a logarithmic axis of y that spans less than two decades."""
    low, high = ax.get_ylim()
    if ax.get_yscale() != "log" or not 0 < low < high < DECADES * low:
        return
    first = math.floor(math.log10(low))
    steps = [m * 10.0**k for k in range(first, first + 4) for m in range(1, 10)]
    ticks = [x for x in steps if low <= x <= high]
    if len(ticks) > MOST_TICKS:
        ticks = [x for x in ticks if f"{x:.0e}"[0] in "125"]
    if len(ticks) < 2:  # less than from one leading digit to the next
        ticks = [float(x) for x in np.linspace(low, high, 5)[1:-1]]
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_yticklabels([number(x, 5) for x in ticks])


def encode(fig: Figure) -> bytes:
    """Return the figure as a PNG file; the same figure gives the same bytes."""
    stream = io.BytesIO()
    fig.savefig(stream, format="png", dpi=DPI, metadata={"Software": None}, facecolor="white")
    return stream.getvalue()

"""Variance against depth: predicted, measured, and what bounds it."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...results.forecast import Forecast
from ..wording import count
from .canvas import BLACK, BLUE, GREY, SKY, decorate, figure, title

__all__ = ["pictures"]


def pictures(result: Forecast) -> dict[str, Figure]:
    """Figure "variance"."""
    fig = figure(8.6, 4.6)
    title(fig, f"Over {count(result.layers, 'layer')} the variance {result.course}")
    ax = fig.add_subplot()
    depth = np.arange(result.layers + 1)
    if result.measured is not None:
        seen = result.measured[: result.layers + 1]
        ax.plot(np.arange(len(seen)), seen, color=BLACK, lw=2.2, marker="o", ms=5,
                label="measured tr S")  # fmt: skip
    ax.plot(depth, result.traces, color=BLUE, lw=1.8, ls="--", marker="s", ms=4,
            label="predicted tr S")  # fmt: skip
    ax.plot(depth, result.largest, color=SKY, lw=1.4, marker="^", ms=4,
            label="predicted largest eigenvalue")  # fmt: skip
    if math.isfinite(result.bound):
        ax.axhline(result.bound, color=GREY, lw=1.2, ls=":", label="bound by LayerNorm")
    if result.layers > result.trained:
        ax.axvline(result.trained, color=GREY, lw=1.0, label="last layer of the model")
    ax.set_yscale("log")
    ax.set_xlim(-0.3, result.layers + 0.3)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=13, integer=True))
    decorate(ax, "layer", "variance (log scale)")
    fig.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return {"variance": fig}

"""The mean of a simulated law in time."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ...results.trajectory import Trajectory
from ...status import Status
from ..wording import number
from .canvas import BLACK, PALETTE, RED, decorate, figure, legend_right, title
from .sampling import sample

__all__ = ["trajectory"]

#: Means with more entries than this are drawn by their norms.
ENTRIES = 8

#: A mean that grows by more than this factor over its median size gets a symmetric log axis.
SPREAD = 1e3


def trajectory(result: Trajectory) -> Figure:
    """Entries of the mean, or its norm and its distance from the start."""
    samples = sample(result, drawable=True)
    times, means = samples.times, samples.means
    whole = times[-1] == result.times[-1]
    until = "" if whole else f" up to t = {number(float(times[-1]), 4)}"
    fig = figure(8.0, 3.8)
    moved = float(np.linalg.norm(means[-1] - means[0]))
    way = f"moves by {number(moved, 3)}" if moved else "stays where it is"
    title(fig, f"The mean {way}{until}")
    ax = fig.add_subplot()
    marker = "o" if result.problem.layers is not None and times.size <= 60 else None
    if means.shape[1] <= ENTRIES:
        names = [f"m{'₁₂₃₄₅₆₇₈'[i]}" for i in range(means.shape[1])]
        curves = means if means.shape[1] > 1 else means[:, :1]
        names = names if means.shape[1] > 1 else ["m"]
    else:
        size, shift = np.linalg.norm(means, axis=1), np.linalg.norm(means - means[0], axis=1)
        curves, names = np.stack([size, shift], axis=1), ["|m|", "|m − m₀|"]
    for i, name in enumerate(names):
        ax.plot(times, curves[:, i], color=PALETTE[i], lw=1.8, marker=marker, ms=3.5, label=name)
    sizes = np.max(np.abs(curves), axis=1)
    label = "mean of the tokens"
    if sizes.max() > SPREAD * max(float(np.median(sizes)), 1e-300):
        ax.set_yscale("symlog", linthresh=max(float(np.median(sizes)), 1e-290))
        label += " (symmetric log)"
    if result.status is Status.BLOW_UP:
        ax.axvline(result.blow_up_time, color=RED, ls="--", lw=1.6, label="blow-up T*")
    if not moved:
        ax.axhline(0.0, color=BLACK, lw=0.6)
    clock = "time t" if result.problem.layers is None else "time t (one marker per layer)"
    decorate(ax, clock, label)
    legend_right(ax)
    return fig

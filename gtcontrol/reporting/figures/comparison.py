"""The covariance flow towards what Riccati solvers return, and their closed loops."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..._check import Array
from ...results.comparison import Comparison, Row
from ...status import KalmanVerdict
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
    decorate,
    figure,
    legend_right,
    title,
)

__all__ = ["pictures"]

#: Colours and marks of the answers, by their names.
STYLES = {
    "gtcontrol (algebra)": (BLACK, "o"),
    "control.care": (ORANGE, "s"),
    "control.lqe": (SKY, "D"),
    "SciPy": (GREEN, "^"),
    "slycot": (PURPLE, "v"),
}

#: Eigenvalues that are drawn at most, and the decades that a logarithmic axis spans at most.
CURVES, DECADES = 8, 14

#: Where the marks stand, in shares of the width of the picture.
FIRST, STEP = 1.03, 0.022


def pictures(result: Comparison) -> dict[str, Figure]:
    """Draw "flow" and "spectrum"."""
    return {"flow": _flow(result), "spectrum": _spectrum(result)}


def _flow(result: Comparison) -> Figure:
    fig = figure(9.0, 4.6)
    title(fig, _finding(result))
    ax = fig.add_subplot()
    rows = [row for row in result.table if row.X is not None and row.name in STYLES]
    floor, top = _range(result, rows)
    log = result.verdict is KalmanVerdict.MARGINAL
    times = result.times
    drawn = min(result.eigenvalues.shape[1], CURVES)
    for i in range(drawn):
        values = result.eigenvalues[:, i]
        values = np.where(values > floor, np.minimum(values, top), np.nan)
        label = "flow of S" if i == 0 else None
        ax.plot(times, values, color=BLUE, lw=2.0, label=label, zorder=3)
    if log:
        ax.set_xscale("log")
        ax.set_xlim(times[1], times[-1])
    else:
        ax.set_xlim(0.0, times[-1] if times[-1] > 0 else 1.0)
    ax.set_yscale("log")
    ax.set_ylim(0.7 * floor, 1.6 * top)
    _marks(ax, rows, floor, top)
    if math.isfinite(result.upper) and result.verdict is KalmanVerdict.BLOWS_UP:
        ax.axvline(result.upper, color=RED, ls="--", lw=1.6, label=f"T* = {number(result.upper)}")
        ax.set_xlim(0.0, 1.04 * result.upper)
    clock = "time t (log scale)" if log else "time t"
    decorate(ax, clock, "eigenvalues of the covariance (log scale)")
    if _has_zeros(result, rows):
        ax.axhline(floor, color=GREY, lw=1.0, ls=":", label="0 (no variance)")
    legend_right(ax)
    legend = ax.get_legend()
    if legend is not None:
        legend.set_bbox_to_anchor((FIRST + STEP * max(len(rows), 1) + 0.02, 0.5))
    return fig


def _marks(ax: Axes, rows: list[Row], floor: float, top: float) -> None:
    """Eigenvalues of the answers, right of the picture."""
    for place, row in enumerate(rows):
        values = np.linalg.eigvalsh(row.X if row.X is not None else np.zeros((1, 1)))
        colour, mark = STYLES[row.name]
        ax.plot(
            np.full(len(values), FIRST + STEP * place),
            np.clip(values, floor, top),
            ls="",
            marker=mark,
            ms=6,
            mfc=colour if row.finding == "right" else "none",
            mec=colour,
            mew=1.4,
            clip_on=False,
            transform=ax.get_yaxis_transform(),
            label=f"{row.name}: {row.finding}",
        )


def _finding(result: Comparison) -> str:
    others = [row for row in result.table if not row.name.startswith("gtcontrol")]
    silent = [row.name for row in others if not row.answered and row.message != "not installed"]
    name = result.verdict.name.replace("_", " ").lower()
    what = {
        KalmanVerdict.CONVERGES: f"The covariance converges at the rate {number(result.rate, 4)}",
        KalmanVerdict.MARGINAL: "The covariance converges like a power of t",
        KalmanVerdict.CONTINUUM: "The start decides among a continuum of steady states",
        KalmanVerdict.PERIODIC: "The covariance turns for ever",
        KalmanVerdict.UNBOUNDED: "The covariance grows without bound",
        KalmanVerdict.BLOWS_UP: f"The covariance blows up at T* = {number(result.upper, 9)}",
    }.get(result.verdict, name)
    if silent:
        return f"{what}; no answer from {', '.join(silent)}"
    return what


def _range(result: Comparison, rows: list[Row]) -> tuple[float, float]:
    """Lowest and highest variance that are drawn."""
    seen: list[Array] = [result.eigenvalues.ravel()]
    seen += [np.asarray(np.linalg.eigvalsh(row.X)) for row in rows if row.X is not None]
    values = np.concatenate(seen)
    values = values[np.isfinite(values) & (values > 0)]
    if not values.size:
        return 1e-3, 1.0
    top = min(float(values.max()), LARGEST)
    if result.verdict is KalmanVerdict.BLOWS_UP:
        early = result.eigenvalues[: -max(1, len(result.times) // 40)]
        top = min(top, max(1e4 * float(np.median(early[:, 0])), 1e-290))
    sizeable = values[values > 1e-13 * top]
    low = float(sizeable.min()) if sizeable.size else top
    return max(0.1 * low, top * 10.0**-DECADES), top


def _has_zeros(result: Comparison, rows: list[Row]) -> bool:
    low, _ = _range(result, rows)
    lowest = [float(result.eigenvalues.min())]
    lowest += [float(np.linalg.eigvalsh(row.X)[0]) for row in rows if row.X is not None]
    return min(lowest) < low


def _spectrum(result: Comparison) -> Figure:
    p = result.problem
    fig = figure(8.0, 4.6)
    rows = [row for row in result.table if row.X is not None and row.name in STYLES]
    answers = [np.zeros_like(p.A) if row.X is None else row.X for row in rows]
    unstable = [row.name for row in rows if not row.abscissa < 0]
    finding = "All closed loops are stable" if rows else "No root was returned; A alone"
    if len(unstable) == len(rows) and rows:
        finding = "No closed loop is stable: none of the answers is a stabilising root"
    elif unstable:
        finding = f"The closed loop is not stable at the answer of {', '.join(unstable)}"
    title(fig, finding)
    ax = fig.add_subplot()
    own = np.linalg.eigvals(p.A)
    ax.plot(own.real, own.imag, ls="", marker="x", color=GREY, ms=9, mew=1.8, label="A (open loop)")
    for place, (row, X) in enumerate(zip(rows, answers, strict=True)):
        values = np.linalg.eigvals(p.A + X @ p.K)
        colour, mark = STYLES[row.name]
        ax.plot(
            values.real,
            values.imag,
            ls="",
            marker=mark,
            ms=12 - 2 * place,
            mfc="none",
            mec=colour,
            mew=1.6,
            label=row.name,
        )
    ax.axvline(0.0, color=RED, lw=1.4, ls="--", label="imaginary axis")
    ax.margins(0.15)
    low, high = ax.get_ylim()
    if high - low < 1e-6:
        ax.set_ylim(-1.0, 1.0)
    decorate(ax, "real part", "imaginary part")
    legend_right(ax)
    return fig

"""Integrations of the covariance against what is certified, and in the cone of covariances."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..._check import Array
from ...results.certificate import Certificate, Integration
from ..wording import number
from .canvas import GREEN, GREY, PALETTE, RED, decorate, figure, legend_right, title

__all__ = ["pictures"]

#: Traces beyond this multiple of the largest start are cut off where a start blows up.
CUT = 1e4

#: Decades that a logarithmic axis spans at most.
DECADES = 12


def pictures(result: Certificate) -> dict[str, Figure]:
    """Draw "envelope" and, in dimension 2, "cone"; nothing if nothing was integrated."""
    if not result.integrations:
        return {}
    made = {"envelope": envelope(result)}
    if result.problem.dim == 2 and all(s.covariances.shape[0] > 1 for s in result.integrations):
        made["cone"] = cone(result)
    return made


def envelope(result: Certificate) -> Figure:
    """Trace of the covariance along the integrations, with the certified bounds."""
    fig = figure(8.0, 4.4)
    title(fig, _finding(result))
    ax = fig.add_subplot()
    shown = [_visible(one) for one in result.integrations]
    for i, (one, (times, traces)) in enumerate(zip(result.integrations, shown, strict=True)):
        colour = PALETTE[i % 2 * 3] if one.from_start else PALETTE[(0, 2, 3, 4, 5)[i % 5]]
        ax.plot(times, traces, color=colour, label=_label(one, i))
    _bounds(ax, result)
    decorate(ax, "time t", _scale(ax, shown))
    legend_right(ax)
    return fig


def _finding(result: Certificate) -> str:
    words = result.verdict.name.replace("_", " ").lower()
    if math.isfinite(result.upper) and result.lower > 0:
        width = number((result.upper - result.lower) / result.lower, 2)
        return f"Blow-up proved: T* = {number(result.blow_up_time, 9)}, relative width {width}"
    return f"{words.capitalize()} ({result.label})"


def _label(one: Integration, index: int) -> str:
    who = "tr S from the start" if one.from_start else f"tr S, random start {index + 1}"
    return who


def _visible(one: Integration) -> tuple[Array, Array]:
    """The part of an integration that can be seen: positive, and before the pole."""
    times, traces = one.times, one.traces
    if one.outcome in ("blow-up", "growth"):
        kept = traces <= CUT * max(float(traces[0]), 1e-300)
        kept[0] = True
        times, traces = times[kept], traces[kept]
    elif one.outcome == "limit" and times.size > 2:
        last = float(traces[-1])
        moving = np.flatnonzero(np.abs(traces - last) > 1e-3 * max(abs(last), float(traces[0])))
        end = times[min(int(moving[-1]) + 2, times.size - 1)] if moving.size else times[-1]
        kept = times <= 1.6 * end
        times, traces = times[kept], traces[kept]
    return times, traces


def _scale(ax: Axes, shown: list[tuple[Array, Array]]) -> str:
    values = np.concatenate([traces for _, traces in shown])
    positive = values[values > 0]
    if positive.size and float(positive.max()) > 10.0 * float(positive.min()):
        ax.set_yscale("log")
        low = max(float(positive.min()), float(positive.max()) * 10.0**-DECADES)
        ax.set_ylim(bottom=0.5 * low)
        return "tr S (log scale)"
    return "tr S"


def _bounds(ax: Axes, result: Certificate) -> None:
    """The certified bound on the limit, and the enclosure of the blow-up time."""
    if math.isfinite(result.bound) and result.bound > 0:
        ax.axhline(
            result.bound,
            color=GREEN,
            linestyle="--",
            label=f"proved: lim sup tr S ≤ {number(result.bound, 4)}",
        )
    if 0 < result.lower < math.inf:
        ax.axvline(
            result.lower,
            color=GREY,
            linestyle=":",
            label=f"proved: no blow-up before {number(result.lower, 5)}",
        )
    if math.isfinite(result.upper):
        ax.axvline(
            result.upper,
            color=RED,
            linestyle="--",
            label=f"proved: blow-up by {number(result.upper, 5)}",
        )


def cone(result: Certificate) -> Figure:
    """Trajectories in the cone of 2 by 2 covariances."""
    fig = figure(7.0, 5.8)
    title(fig, "In the cone of covariances; its surface is made of those of rank 1")
    ax = fig.add_subplot(projection="3d")
    top = _height(result)
    _surface(ax, top)
    for i, one in enumerate(result.integrations):
        curve = _curve(one)
        curve = curve[curve[:, 2] <= 1.001 * top]
        colour = PALETTE[(0, 2, 3, 4, 5)[i % 5]]
        ax.plot(curve[:, 0], curve[:, 1], curve[:, 2], color=colour, linewidth=1.8)
        if one.traces[0] <= 2.0 * top:
            ax.scatter(*curve[0], color=colour, s=24)
        if one.outcome == "limit":
            ax.scatter(*curve[-1], color=RED, marker="*", s=80, zorder=5)
    ax.set_xlabel("(S₁₁ − S₂₂)/2", fontsize=9)
    ax.set_ylabel("S₁₂", fontsize=9)
    ax.set_zlabel("(S₁₁ + S₂₂)/2", fontsize=9)
    ax.tick_params(labelsize=8)
    ax.view_init(elev=24, azim=-60)
    ax.set_box_aspect((1.0, 1.0, 0.85), zoom=1.0)
    return fig


def _height(result: Certificate) -> float:
    """Height of the part of the cone that is drawn: what comes late is seen, far starts are not."""
    late, starts = [], []
    for one in result.integrations:
        heights = 0.5 * one.traces
        starts.append(float(heights[0]))
        if one.outcome in ("blow-up", "growth"):
            late.append(min(6.0 * float(heights[0]), float(heights.max())))
        else:
            late.append(float(heights[heights.size // 2 :].max()))
    return 1.15 * max(1.4 * max(late), min(starts), 1e-300)


def _curve(one: Integration) -> Array:
    """Points ((S11 - S22)/2, S12, tr S/2), shape (n, 3)."""
    S = one.covariances
    return np.stack(
        [0.5 * (S[:, 0, 0] - S[:, 1, 1]), S[:, 0, 1], 0.5 * (S[:, 0, 0] + S[:, 1, 1])], axis=1
    )


def _surface(ax: Axes, top: float) -> None:
    angle = np.linspace(0.0, 2.0 * math.pi, 60)
    height = np.array([0.0, top])
    x = np.outer(height, np.cos(angle))
    y = np.outer(height, np.sin(angle))
    z = np.outer(height, np.ones_like(angle))
    ax.plot_surface(x, y, z, color=GREY, alpha=0.14, linewidth=0)  # type: ignore[attr-defined]
    for share in (0.5, 1.0):
        ax.plot(
            share * top * np.cos(angle),
            share * top * np.sin(angle),
            share * top * np.ones_like(angle),
            color=GREY,
            linewidth=0.6,
            alpha=0.7,
        )

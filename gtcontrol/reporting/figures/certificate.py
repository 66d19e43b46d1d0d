"""Integrations of the covariance against what is certified, and in the cone of covariances."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..._check import Array
from ...certification.rules import reading
from ...certification.theory.envelope import envelope as compared, levels
from ...results.certificate import Certificate, Integration
from ...results.claims import Claim
from ..wording import number
from .canvas import BLACK, GREEN, GREY, PALETTE, RED, decorate, figure, title

__all__ = ["pictures"]

Indices = NDArray[np.intp]

#: Traces beyond this multiple of the largest start are cut off where a start blows up.
CUT = 1e4

#: Rules whose claims bound y = tr(W S) in time.
COMPARED = ("ultimate-bound", "decay", "blow-up-upper", "blow-up-lower")

#: An enclosure of the blow-up time of this relative width is one line.
NARROW = 1e-3

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
    """Trace of the covariance along the integrations; beside it, y = tr(W S) in its envelope."""
    claim = _bounded_level(result)
    fig = figure(8.0, 4.4) if claim is None else figure(11.0, 4.6)
    title(fig, _finding(result))
    axes = fig.subplots(1, 1 if claim is None else 2, squeeze=False)[0]
    shown = [_visible(one) for one in result.integrations]
    for i, (one, kept) in enumerate(zip(result.integrations, shown, strict=True)):
        axes[0].plot(
            one.times[kept], one.traces[kept], color=_colour(i), label=_label(result, one, i)
        )
    _bounds(axes[0], result)
    decorate(axes[0], "time t", _scale(axes[0], [s.traces[k] for s, k in _pairs(result, shown)]))
    axes[0].legend(fontsize=8, frameon=True, framealpha=0.9)
    if claim is not None:
        _level(axes[1], result, claim, shown)
    return fig


def _pairs(result: Certificate, shown: list[Indices]) -> list[tuple[Integration, Indices]]:
    return list(zip(result.integrations, shown, strict=True))


def _bounded_level(result: Certificate) -> Claim | None:
    """The strongest proved claim that bounds y = tr(W S) in time, if its picture can be drawn."""
    if not all(one.covariances.shape[0] == one.times.size for one in result.integrations):
        return None
    return next((c for c in result.claims if c.proved and c.rule in COMPARED), None)


def _level(ax: Axes, result: Certificate, claim: Claim, shown: list[Indices]) -> None:
    """Level y = tr(W S) along the integrations, and what bounds it."""
    start = result.problem.start
    values = []
    for i, (one, kept) in enumerate(_pairs(result, shown)):
        with reading(claim):
            y = levels(claim, one.covariances[kept])
        values.append(y)
        label = "y along the integration" if i == 0 else None
        ax.plot(one.times[kept], y, color=_colour(i), label=label)
    last = max(float(one.times[kept][-1]) for one, kept in _pairs(result, shown))
    times = np.linspace(0.0, last, 400)[1:]
    top = 4.0 * max(float(y.max()) for y in values)
    below = claim.rule == "blow-up-upper"
    with reading(claim):
        bound = compared(claim, start, times)
    bound = np.where(np.isfinite(bound) & (bound <= top), bound, np.nan)
    name = "bound from the start" if start is not None else "bound from every start"
    side = "below" if below else "above"
    ax.plot(times, bound, color=BLACK, linestyle="--", label=f"proved {name}, from {side}")
    decorate(ax, "time t", _scale(ax, values, "y = tr(W S)"))
    ax.legend(fontsize=8, frameon=True, framealpha=0.9)


def _colour(index: int) -> str:
    return PALETTE[(0, 2, 3, 4, 5)[index % 5]]


def _finding(result: Certificate) -> str:
    words = result.verdict.name.replace("_", " ").lower()
    if math.isfinite(result.upper) and result.lower > 0:
        width = number((result.upper - result.lower) / result.lower, 2)
        return f"Blow-up proved: T* = {number(result.blow_up_time, 9)}, relative width {width}"
    return f"{words.capitalize()} ({result.label})"


def _label(result: Certificate, one: Integration, index: int) -> str:
    if len(result.problem.vertices) > 1:
        return f"tr S, integration {index + 1}"
    return "tr S from the start" if one.from_start else f"tr S, random start {index + 1}"


def _visible(one: Integration) -> Indices:
    """Indices of the part of an integration that can be seen: before the pole, until it rests."""
    times, traces = one.times, one.traces
    kept = np.ones(times.size, dtype=bool)
    if one.outcome in ("blow-up", "growth"):
        kept = traces <= CUT * _beginning(one)
        kept[0] = True
    elif one.outcome == "limit" and times.size > 2:
        last = float(traces[-1])
        moving = np.flatnonzero(np.abs(traces - last) > 1e-3 * max(abs(last), float(traces[0])))
        end = times[min(int(moving[-1]) + 2, times.size - 1)] if moving.size else times[-1]
        kept = times <= 1.6 * end
    return np.flatnonzero(kept)


def _beginning(one: Integration) -> float:
    """Trace at the start; from S = 0, which noise leaves at once, that of an early time."""
    first = float(one.traces[0])
    if first <= 0 and one.times.size > 1:
        early = (0.5 if one.outcome == "blow-up" else 0.05) * float(one.times[-1])
        first = float(np.interp(early, one.times, one.traces))
    return max(first, 1e-300)


def _scale(ax: Axes, values: list[Array], name: str = "tr S") -> str:
    joined = np.concatenate(values)
    positive = joined[joined > 0]
    if positive.size and float(positive.max()) > 10.0 * float(positive.min()):
        ax.set_yscale("log")
        low = max(float(positive.min()), float(positive.max()) * 10.0**-DECADES)
        ax.set_ylim(bottom=0.5 * low)
        return f"{name} (log scale)"
    return name


def _bounds(ax: Axes, result: Certificate) -> None:
    """The certified bound on the limit, and the enclosure of the blow-up time."""
    if math.isfinite(result.bound) and result.bound > 0:
        ax.axhline(
            result.bound,
            color=GREEN,
            linestyle="--",
            label=f"proved: lim sup tr S ≤ {number(result.bound, 4)}",
        )
    low, high = result.lower, result.upper
    if math.isfinite(high) and high - low <= NARROW * high:
        width = number((high - low) / low, 2)
        words = f"proved: T* = {number(result.blow_up_time, 9)}, relative width {width}"
        ax.axvline(high, color=RED, linestyle="--", label=words)
        return
    if 0 < low < math.inf:
        words = f"proved: no blow-up before {number(low, 5)}"
        ax.axvline(low, color=GREY, linestyle=":", label=words)
    if math.isfinite(high):
        words = f"proved: blow-up by {number(high, 5)}"
        ax.axvline(high, color=RED, linestyle="--", label=words)


def cone(result: Certificate) -> Figure:
    """Trajectories in the cone of 2 by 2 covariances."""
    fig = figure(7.0, 5.8)
    title(fig, "In the cone of covariances; its surface is made of those of rank 1")
    ax = fig.add_subplot(projection="3d")
    top = _height(result)
    _surface(ax, top)
    for i, one in enumerate(result.integrations):
        curve = _place(one.covariances)
        curve = curve[curve[:, 2] <= 1.001 * top]
        colour = _colour(i)
        ax.plot(curve[:, 0], curve[:, 1], curve[:, 2], color=colour, linewidth=1.8)
        if one.traces[0] <= 2.0 * top:
            ax.scatter(*curve[0], color=colour, s=24)
        if one.outcome == "limit":
            ax.scatter(*curve[-1], color=colour, marker="s", s=24)
    for place in _attractors(result):
        ax.scatter(*place, color=RED, marker="*", s=90, label="proved attractor")
    if ax.get_legend_handles_labels()[0]:
        handles, labels = ax.get_legend_handles_labels()
        ax.legend(handles[:1], labels[:1], fontsize=9, loc="upper left")
    ax.set_xlabel("(S₁₁ − S₂₂)/2", fontsize=9)
    ax.set_ylabel("S₁₂", fontsize=9)
    ax.set_zlabel("(S₁₁ + S₂₂)/2", fontsize=9)
    ax.tick_params(labelsize=8)
    ax.view_init(elev=24, azim=-60)
    ax.set_box_aspect((1.0, 1.0, 0.85), zoom=1.0)
    return fig


def _attractors(result: Certificate) -> list[Array]:
    """Places in the cone of equilibria that are proved to attract."""
    found = {}
    for claim in result.claims:
        if claim.proved and "frame" in claim.arrays and "reach" in claim.numbers:
            with reading(claim):
                L = claim.arrays["frame"][:, : int(claim.numbers["rank"])]
                found[claim.arrays["frame"].tobytes()] = _place(L @ L.T)
    return list(found.values())


def _place(S: Array) -> Array:
    """Coordinates ((S11 - S22)/2, S12, (S11 + S22)/2) of covariances, (..., 3)."""
    first, second = S[..., 0, 0], S[..., 1, 1]
    return np.stack([0.5 * (first - second), S[..., 0, 1], 0.5 * (first + second)], axis=-1)


def _height(result: Certificate) -> float:
    """Height of the part of the cone that is drawn: what comes late is seen, far starts are not."""
    late, starts = [], []
    for one in result.integrations:
        heights = 0.5 * one.traces
        starts.append(float(heights[0]))
        if one.outcome in ("blow-up", "growth"):
            late.append(min(3.0 * _beginning(one), float(heights.max())))
        else:
            late.append(float(heights[heights.size // 2 :].max()))
    return 1.15 * max(1.4 * max(late), min(starts), 1e-300)


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

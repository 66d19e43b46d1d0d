"""The parameters of a plan in time, one panel for each enabled control."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..._check import Array
from ...problem.costs import MinimumTime
from ...problem.definitions import SteeringProblem
from ...results.steering import Steering
from ...schedule import Schedule
from ..wording import number
from .canvas import BLACK, GREY, PALETTE, decorate, figure, legend_right, title

__all__ = ["steering"]

#: Controls with more entries than this are drawn by their norm.
ENTRIES = 9

#: Points in time of all curves together, in low and in high dimension.
POINTS, POINTS_HIGH, HIGH = 300, 60, 64

#: A bound farther away than this factor is named in the legend but not drawn.
FAR = 4.0

_NAMES = {
    "A": "A: linear layer",
    "V": "V: attention values",
    "B": "B: attention scores",
    "b": "b: bias",
}


_DASHES = ("-", "--", "-.")


@dataclass(frozen=True, eq=False)
class Curve:
    """One line of a panel."""

    label: str
    values: Array
    colour: str
    style: str = "-"


def steering(result: Steering) -> Figure:
    """Entries (or norms) of A, V, B, b against time, with the bounds on them."""
    letters = result.problem.controls
    fig = figure(8.0, 0.7 + 2.1 * len(letters))
    times, values = _sampled(result.schedule, letters)
    active = [c for c in letters if values[c].any()]
    largest = max(letters, key=lambda c: float(np.max(np.abs(values[c]))))
    if active:
        size = number(float(np.max(np.abs(values[largest]))), 3)
        what = "entry" if _in_entries(result.schedule, largest) else "norm"
        finding = f"Controls of the plan: largest {what} {size}, in {largest}"
        idle = [c for c in letters if c not in active]
        finding += f"; {', '.join(idle)} not used" if idle else ""
    else:
        finding = "Controls of the plan: all zero"
    title(fig, finding)
    axes = np.atleast_1d(fig.subplots(len(letters), 1, sharex=True))
    for ax, letter in zip(axes, letters, strict=True):
        _panel(ax, times, values[letter], letter, result.problem)
        ax.label_outer()
    return fig


def _in_entries(schedule: Schedule, letter: str) -> bool:
    return bool(schedule.dim ** (1 if letter == "b" else 2) <= ENTRIES)


def _sampled(schedule: Schedule, letters: str) -> tuple[Array, dict[str, Array]]:
    """Times (n,) and, for each control, entries (n, k) or norms (n, 1).

    Each piece is sampled on its closed interval, so that jumps stay vertical.
    """
    pieces = list(schedule.pieces(inner=True))
    total = POINTS if schedule.dim <= HIGH else POINTS_HIGH
    each = 2 if schedule.piecewise_constant else max(2, total // len(pieces))
    times, samples = [], []
    for piece in pieces:
        for t in np.linspace(piece.start, piece.end, each):
            times.append(t)
            samples.append(piece.law(float(t)))
    values = {}
    for letter in letters:
        stack = np.stack([getattr(p, letter) for p in samples])
        if _in_entries(schedule, letter):
            if schedule.basis is not None:
                U = schedule.basis
                stack = stack @ U.T if letter == "b" else U @ stack @ U.T
            values[letter] = stack.reshape(len(times), -1)
        else:  # norms are the same in the coordinates of an orthonormal basis
            values[letter] = np.linalg.norm(stack.reshape(len(times), -1), axis=1)[:, None]
    return np.array(times), values


def _panel(ax: Axes, times: Array, values: Array, letter: str, problem: SteeringProblem) -> None:
    entry, norm = _bounds(problem, letter)
    ax.set_xlim(0.0, float(times[-1]))
    if not values.any():
        decorate(ax, "time t", _NAMES[letter])
        ax.axhline(0.0, color=PALETTE[0], lw=1.7)
        ax.set_ylim(-1.0, 1.0)
        ax.set_yticks([0.0])
        ax.text(0.5, 0.58, "zero all along", transform=ax.transAxes, ha="center", fontsize=9)
        return
    curves = _curves(letter, values, problem.start.dim)
    shown_norm = values.shape[1] == 1 and problem.start.dim > 1
    if norm is not None and not shown_norm:
        size = np.linalg.norm(values, axis=1)
        curves.append(Curve(f"norm |{letter}|", size, BLACK, ":"))
    for curve in curves:
        ax.plot(times, curve.values, color=curve.colour, ls=curve.style, lw=1.7, label=curve.label)
    peak = max(float(np.max(np.abs(c.values))) for c in curves)
    if entry is not None and not shown_norm:
        _bound_lines(ax, (-entry, entry), peak, f"bound ±{number(entry)} on entries")
    if norm is not None:
        _bound_lines(ax, (norm,), peak, f"bound {number(norm)} on the norm")
    if entry is not None and shown_norm:
        ax.plot([], [], ls="", label=f"(bound {number(entry)} on entries)")
    if shown_norm:
        # A norm that hardly moves should look so.
        ax.set_ylim(0.0, max(ax.get_ylim()[1], 1.1 * peak))
    decorate(ax, "time t", _NAMES[letter])
    legend_right(ax, 2 if len(curves) > 5 else 1)


def _bound_lines(ax: Axes, levels: tuple[float, ...], peak: float, label: str) -> None:
    if max(levels) > FAR * peak > 0:
        ax.plot([], [], color=GREY, ls="--", lw=1.2, label=f"{label} (off the axis)")
        return
    for i, level in enumerate(levels):
        ax.axhline(level, color=GREY, ls="--", lw=1.2, label=label if i == 0 else None)


def _curves(letter: str, values: Array, dim: int) -> list[Curve]:
    many = values.shape[1]
    if many == 1:
        label = letter if dim == 1 else f"norm |{letter}|"
        return [Curve(label, values[:, 0], PALETTE[0])]
    digits = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
    names = [f"{letter}{i + 1}" for i in range(many)]
    if letter != "b":
        names = [f"{letter}{k // dim % dim + 1}{k % dim + 1}" for k in range(many)]
    return [
        # Changing dashes let curves that coincide (symmetric matrices) show through each other.
        Curve(name.translate(digits), values[:, k], PALETTE[k % 8], _DASHES[k % 3])
        for k, name in enumerate(names)
    ]


def _bounds(problem: SteeringProblem, letter: str) -> tuple[float | None, float | None]:
    """Bounds on the entries and on the norm of a control, from bounds and cost alike."""
    entry, norm = problem.bounds.entries.get(letter), problem.bounds.norms.get(letter)
    if isinstance(problem.cost, MinimumTime):
        bound = problem.cost.bound
        if problem.cost.norm == "entries":
            entry = bound if entry is None else min(entry, bound)
        else:
            norm = bound if norm is None else min(norm, bound)
    return entry, norm

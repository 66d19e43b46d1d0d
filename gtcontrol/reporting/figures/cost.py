"""The cost of every attempt against the lower bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.figure import Figure

from ...results.steering import Steering
from ..views.attempts import arrives, best_attempt, group_name, groups, stands_in
from ..views.statements import cost_name
from ..wording import compared, number
from .canvas import BLUE, GREY, RED, decorate, figure, title

__all__ = ["steering"]

#: At most so many rows are drawn: the cheapest ones.
ROWS = 10

#: At most so many of them did not converge, unless none did.
UNFINISHED = 3

#: Costs that spread by more than this factor are drawn on a logarithmic axis.
SPREAD = 50.0


@dataclass(frozen=True)
class Row:
    """Attempts of equal cost: their name, and whether they converged and are the plan."""

    label: str
    cost: float
    good: bool
    returned: bool


def steering(result: Steering) -> Figure:
    """Dot chart: one row for the attempts of equal cost, the returned plan marked."""
    rows = _rows(result)
    fig = figure(8.0, 2.4 + 0.4 * len(rows))
    title(fig, _title(result, len(rows) - (best_attempt(result) is None)))
    ax = fig.add_subplot()
    bound = result.lower_bound
    finite = [row.cost for row in rows if math.isfinite(row.cost)]
    reach = [x for x in [*finite, bound] if math.isfinite(x) and x > 0]
    log = bool(reach) and max(reach) > SPREAD * min(reach) and min([*finite, 1.0]) > 0
    if log:
        ax.set_xscale("log")
    for y, row in enumerate(rows):
        cost, best = row.cost, row.returned
        if not math.isfinite(cost):
            where = ax.get_yaxis_transform()  # across the axes, at the height of the row
            ax.text(0.98, y, "no cost", transform=where, ha="right", va="center", fontsize=9)
            continue
        colour = BLUE if row.good else GREY
        marker = "*" if best else ("o" if row.good else "x")
        ax.plot([cost], [y], marker=marker, ms=13 if best else 7, color=colour, ls="", zorder=3)
        ax.annotate(
            number(cost, 5), (cost, y), (9, 0), "data", textcoords="offset points",
            va="center", fontsize=9, color=colour,
        )  # fmt: skip
    if math.isfinite(bound) and bound > 0:  # that no cost is below 0 is no news
        ax.axvline(bound, color=RED, ls="--", lw=1.8, label=f"lower bound {number(bound)}")
    for marker, colour, label in _markers(rows, stands_in(result)):
        ax.plot([], [], marker=marker, color=colour, ls="", ms=8, label=label)
    ax.set_yticks(range(len(rows)), [row.label for row in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    decorate(ax, f"{cost_name(result.problem.cost)}{' (log scale)' if log else ''}", "")
    # Room on the right for the numbers beside the dots.
    ax.margins(x=0.24)
    if not finite:
        ax.set_xticks([])
    columns = 2 if stands_in(result) else 4
    fig.legend(loc="outside lower center", ncols=columns, fontsize=9, frameon=False)
    return fig


def _title(result: Steering, shown: int) -> str:
    name = cost_name(result.problem.cost)
    words = compared(name, result.cost, result.lower_bound, result.gap)
    finding = words[:1].upper() + words[1:]
    if stands_in(result):
        finding = f"{result.status.name}: an exact plan stands in for the optimum; its {words}"
    if not math.isfinite(result.cost):
        finding = f"No attempt has a finite {name}"
    told = sum(len(g.members) for g in groups(result))
    notes = []
    if shown < len(groups(result)):
        notes.append(f"the {shown} best of {len(groups(result))} different costs shown")
    if told < len(result.attempts):
        notes.append(f"{len(result.attempts) - told} attempts set aside early not shown")
    return f"{finding} ({'; '.join(notes)})" if notes else finding


def _rows(result: Steering) -> list[Row]:
    """The returned plan and, as far as there is room, the best attempts; by cost."""
    attempts = result.attempts
    rows = [
        Row(group_name(result, g), first.cost, first.converged, g.returned)
        for g in groups(result)
        for first in (attempts[g.members[0]],)
    ]
    if not any(row.returned for row in rows):
        rows.append(Row(result.solver, result.cost, arrives(result), arrives(result)))
    ranked = sorted(rows, key=lambda row: (not row.returned, not row.good, _height(row)))
    good = sum(row.good for row in rows)
    chosen = ranked[: min(ROWS, good + UNFINISHED if good else ROWS)]
    return sorted(chosen, key=lambda row: (_height(row), not row.returned))


def _height(row: Row) -> float:
    return row.cost if math.isfinite(row.cost) else math.inf


def _markers(rows: list[Row], stand_in: bool) -> list[tuple[str, str, str]]:
    found = []
    best = next((row for row in rows if row.returned), None)
    if best is not None:
        label = "the returned plan, exact" if stand_in else "the returned plan"
        found.append(("*", BLUE if best.good else GREY, label))
    if any(row.good and not row.returned for row in rows):
        label = "converged, but its plan does not arrive" if stand_in else "converged"
        found.append(("o", BLUE, label))
    if any(not row.good and not row.returned for row in rows):
        found.append(("x", GREY, "not converged"))
    return found

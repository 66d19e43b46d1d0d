"""The cost of every attempt against the lower bound."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from ...results.steering import Steering
from ..views.statements import cost_name
from ..views.steering import attempt_name, best_attempt
from ..wording import compared, number
from .canvas import BLUE, GREY, RED, decorate, figure, title

__all__ = ["steering"]

#: At most so many attempts are drawn: the cheapest ones.
ATTEMPTS = 20

#: Costs that spread by more than this factor are drawn on a logarithmic axis.
SPREAD = 50.0


def steering(result: Steering) -> Figure:
    """Dot chart: one row for each attempt, the returned plan marked."""
    rows = _rows(result)
    fig = figure(8.0, 2.3 + 0.34 * len(rows))
    name = cost_name(result.problem.cost)
    finding = compared(name.capitalize(), result.cost, result.lower_bound, result.gap)
    if not math.isfinite(result.cost):
        finding = f"No attempt has a finite {name}"
    if len(result.attempts) > ATTEMPTS:
        finding += f" ({ATTEMPTS} of {len(result.attempts)} attempts shown)"
    title(fig, finding)
    ax = fig.add_subplot()
    bound = result.lower_bound
    finite = [cost for _, cost, _, _ in rows if math.isfinite(cost)]
    reach = [x for x in [*finite, bound] if math.isfinite(x) and x > 0]
    log = bool(reach) and max(reach) > SPREAD * min(reach) and min([*finite, 1.0]) > 0
    if log:
        ax.set_xscale("log")
    for y, (_, cost, good, best) in enumerate(rows):
        if not math.isfinite(cost):
            where = ax.get_yaxis_transform()  # across the axes, at the height of the row
            ax.text(0.98, y, "no cost", transform=where, ha="right", va="center", fontsize=9)
            continue
        colour = BLUE if good else GREY
        marker = "*" if best else ("o" if good else "x")
        ax.plot([cost], [y], marker=marker, ms=13 if best else 7, color=colour, ls="", zorder=3)
        ax.annotate(
            number(cost, 5), (cost, y), (9, 0), "data", textcoords="offset points",
            va="center", fontsize=9, color=colour,
        )  # fmt: skip
    if math.isfinite(bound) and not (log and bound <= 0):
        ax.axvline(bound, color=RED, ls="--", lw=1.8, label=f"lower bound {number(bound)}")
    for marker, colour, label in _markers(rows):
        ax.plot([], [], marker=marker, color=colour, ls="", ms=8, label=label)
    ax.set_yticks(range(len(rows)), [label for label, *_ in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    decorate(ax, f"{name}{' (log scale)' if log else ''}", "")
    # Room on the right for the numbers beside the dots.
    ax.margins(x=0.18)
    if not finite:
        ax.set_xticks([])
    fig.legend(loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    return fig


def _rows(result: Steering) -> list[tuple[str, float, bool, bool]]:
    """Label, cost, whether it converged, whether it is the returned plan."""
    if not result.attempts:
        return [(result.solver, result.cost, result.answered, result.answered)]
    best = best_attempt(result)
    costs = [a.cost if math.isfinite(a.cost) else math.inf for a in result.attempts]
    chosen = sorted(range(len(costs)), key=lambda i: (costs[i], i != best))[:ATTEMPTS]
    if best is not None and best not in chosen:
        chosen[-1] = best
    return [
        (attempt_name(a), a.cost, a.converged, i == best)
        for i, a in ((i, result.attempts[i]) for i in chosen)
    ]


def _markers(rows: list[tuple[str, float, bool, bool]]) -> list[tuple[str, str, str]]:
    found = []
    if any(best for *_, best in rows):
        colour = BLUE if any(good for *_, good, best in rows if best) else GREY
        found.append(("*", colour, "the returned plan"))
    if any(good and not best for *_, good, best in rows):
        found.append(("o", BLUE, "converged"))
    if any(not good and not best for *_, good, best in rows):
        found.append(("x", GREY, "not converged"))
    return found

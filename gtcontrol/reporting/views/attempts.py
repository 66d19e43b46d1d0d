"""The attempts of the solver in words: which one is the plan, groups of equal cost, names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...results.steering import SET_ASIDE, Attempt, Steering
from ...status import Status
from ..wording import EQUAL, count, duration, number
from .base import Table

__all__ = [
    "ARRIVES",
    "Group",
    "arrives",
    "best_attempt",
    "group_name",
    "groups",
    "rejection",
    "stands_in",
    "table",
    "tally",
]

#: A plan whose replay misses by no more than this (relative) is said to arrive.
ARRIVES = 1e-5

#: Costs that agree to this fraction are told as one.
SAME = 1e-5

#: What the names and the outcomes mean, under the table of attempts.
_NAMES = (
    "A name says where the solver starts: on the optimal transport geodesic, or on one that is "
    "bent, rotated, or reversed in some directions."
)
_SIGNS = (
    "After the comma stands the attention there: opposed to the spread of the tokens, aligned "
    "with it, of mixed signs, with signs switched on the way, or at rest (none to begin with)."
)
_ASIDE = (
    f"“{SET_ASIDE}” means: given up after a few iterations, because other starts promised to "
    "cost less."
)
_COSTS = (
    "The outcome is the solver's own word; its cost is that on its own mesh, which is coarse for "
    "a start and finer for an attempt that goes on from one. Attempts of equal cost and outcome "
    "share a row, in which the time is their sum; each of them is in `result.json`."
)


@dataclass(frozen=True)
class Group:
    """Attempts of the same solver, mesh, outcome and cost, by index; the first one names them."""

    members: tuple[int, ...]
    returned: bool


def arrives(result: Steering) -> bool:
    """Whether the replay of the plan ends on the target."""
    if result.status is Status.SUCCESS:  # the check had a tolerance of its own
        return True
    return result.trajectory.status is Status.SUCCESS and result.replay_error <= ARRIVES


def stands_in(result: Steering) -> bool:
    """Whether an exact plan that arrives was returned in place of the optimum asked for."""
    return (
        result.status in (Status.NOT_CONVERGED, Status.INTERRUPTED)
        and result.solver.startswith("closed form")
        and result.problem.method == "optimal"
        and arrives(result)
        and not result.gap <= EQUAL
    )


def best_attempt(result: Steering) -> int | None:
    """Index of the attempt whose plan is returned; None if no attempt's is."""
    if result.solver.startswith("closed form"):
        return None
    attempts = result.attempts
    distance = np.abs(np.array([a.cost for a in attempts], dtype=float) - result.cost)
    allowed = np.isfinite(distance)
    for wanted in (
        [a.converged for a in attempts],
        [a.intervals == result.intervals for a in attempts],
    ):
        narrower = allowed & np.array(wanted, dtype=bool)
        allowed = narrower if narrower.any() else allowed
    return int(np.argmin(np.where(allowed, distance, np.inf))) if allowed.any() else None


def group_name(result: Steering, group: Group) -> str:
    """Name of a group of attempts on two lines, for axes."""
    first = result.attempts[group.members[0]]
    more = f" and {len(group.members) - 1} more" if len(group.members) > 1 else ""
    return f"{first.start}{more}\n{count(first.intervals, 'interval')}, {first.solver}"


def tally(result: Steering) -> str:
    """How many attempts converged, and how many were set aside."""
    good = sum(a.converged for a in result.attempts)
    aside = sum(a.outcome == SET_ASIDE for a in result.attempts)
    early = f", {aside} set aside early" if aside else ""
    return f"{good} of {len(result.attempts)} converged{early}"


def rejection(result: Steering) -> str:
    """Why no attempt of the solver is the plan, although some may have cost less."""
    converged = [a for a in result.attempts if a.converged]
    if not converged:
        return "No attempt of the solver converged."
    cheaper = sum(a.cost < result.cost for a in converged)
    first = f"{count(len(converged), 'attempt')} of the solver converged"
    if cheaper:
        some = f"{cheaper} of them" if cheaper < len(converged) else "all"
        first += f", {some} at a lower cost"
    if result.status is Status.INTERRUPTED:
        return f"{first}; none of them was shown to arrive at a lower cost before the interruption."
    mesh = max(a.intervals for a in converged)
    finer = sum(
        not a.converged and a.outcome != SET_ASIDE and a.intervals > mesh for a in result.attempts
    )
    also = f", and {count(finer, 'attempt')} on a finer mesh did not converge" if finer else ""
    return f"{first}, but when simulated none of their plans arrives at the target{also}."


def groups(result: Steering) -> list[Group]:
    """Attempts that were not set aside, those of equal cost together; by cost, converged first.

    The returned plan has a group of its own.
    """
    best = best_attempt(result)
    attempts = result.attempts
    listed = [i for i, a in enumerate(attempts) if a.outcome != SET_ASIDE or i == best]
    found: list[list[int]] = []
    for i in sorted(listed, key=lambda i: (i != best, *_order(attempts[i]))):
        last = found[-1] if found else []
        if last and best not in last and _alike(attempts[last[0]], attempts[i]):
            last.append(i)
        else:
            found.append([i])
    made = [Group(tuple(members), best in members) for members in found]
    return sorted(made, key=lambda g: _order(attempts[g.members[0]]))


def _order(attempt: Attempt) -> tuple[bool, str, int, str, float]:
    cost = attempt.cost if math.isfinite(attempt.cost) else math.inf
    return (not attempt.converged, attempt.outcome, attempt.intervals, attempt.solver, cost)


def _alike(one: Attempt, two: Attempt) -> bool:
    if (one.solver, one.intervals, one.outcome) != (two.solver, two.intervals, two.outcome):
        return False
    if not (math.isfinite(one.cost) and math.isfinite(two.cost)):
        return math.isfinite(one.cost) == math.isfinite(two.cost)
    return abs(one.cost - two.cost) <= SAME * max(abs(one.cost), abs(two.cost))


def table(result: Steering) -> Table:
    """The attempts, cheapest first; those that were set aside share the last row."""
    attempts = result.attempts
    shown = sorted(groups(result), key=lambda g: _by_cost(attempts[g.members[0]]))
    rows = [_row([attempts[i] for i in g.members], g.returned) for g in shown]
    told = {i for g in shown for i in g.members}
    aside = [a for i, a in enumerate(attempts) if i not in told]
    if aside:
        rows.append(_row(aside, returned=False))
    parts = [_NAMES, _SIGNS if any("," in a.start for a in attempts) else "", _COSTS]
    parts.append(_ASIDE if aside else "")
    if stands_in(result):
        parts.insert(0, f"None of them is the returned plan. {rejection(result)}")
    header = ("start", "solver", "intervals", "iterations", "cost", "time", "outcome")
    note = " ".join(part for part in parts if part)
    return Table("Attempts of the solver", header, tuple(rows), note)


def _by_cost(attempt: Attempt) -> tuple[bool, float]:
    return (not attempt.converged, attempt.cost if math.isfinite(attempt.cost) else math.inf)


def _row(attempts: Sequence[Attempt], returned: bool) -> tuple[str, ...]:
    first = attempts[0]
    more = f" and {len(attempts) - 1} more" if len(attempts) > 1 else ""
    costs = [a.cost for a in attempts if math.isfinite(a.cost)] or [first.cost]
    return (
        f"{first.start}{more}{' (best)' if returned else ''}",
        first.solver,
        _range([a.intervals for a in attempts]),
        _range([a.iterations for a in attempts]),
        " to ".join(dict.fromkeys(number(c) for c in (min(costs), max(costs)))),
        duration(sum(a.seconds for a in attempts)),
        first.outcome,
    )


def _range(values: Sequence[int]) -> str:
    return " to ".join(dict.fromkeys(str(v) for v in (min(values), max(values))))

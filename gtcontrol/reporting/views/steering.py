"""A plan in words."""

from __future__ import annotations

import numpy as np

from ...results.steering import Steering
from ...status import Status
from ..wording import compared, count, duration, error, matrix, number, relation
from . import attempts, check, snippets
from .base import Fact, Table, View
from .line import laws_of, on_a_line, spread_words
from .statements import bounds_fact, controls_fact, cost_name, cost_words, law_fact

__all__ = ["view"]

#: So many violated constraints are named in a summary.
VIOLATIONS = 3

#: Controls with more entries than this are given by their norm.
LARGEST = 9


def view(result: Steering) -> View:
    """Put a plan into words."""
    p = result.problem
    return View(
        title=p.name or f"Steering, dimension {p.start.dim}, rank {p.start.rank}",
        verdict=result.status.name,
        good=result.answered,
        headline=_headline(result),
        facts=tuple(_facts(result)),
        statement=tuple(_statement(result)),
        captions=_captions(result),
        tables=tuple(_tables(result)),
        command=snippets.command(p.name),
        code=snippets.steering(p),
    )


def _headline(result: Steering) -> str:
    if result.status is Status.SUCCESS:
        name = cost_name(result.problem.cost)
        words = compared(name, result.cost, result.lower_bound, result.gap)
        told = (
            "The plan carries the start to the target: simulated again by an independent "
            f"integrator it misses by {error(result.replay_error)} (relative). "
            f"Its {words}."
        )
        return told if result.tokens is None else f"{told} {check.missed(result.tokens)}".strip()
    advice = _stand_in(result) if attempts.stands_in(result) else _miss(result)
    if result.violations:
        worst = result.violations[0]
        advice += f" Worst: {worst.constraint} ({worst.where}), missed by {error(worst.size)}."
    return f"{result.status.value} {advice}"


def _stand_in(result: Steering) -> str:
    return (
        "An exact plan stands in for the optimum: it arrives, with a replay error of "
        f"{error(result.replay_error)}, but may cost more than need be. "
        f"{attempts.rejection(result)}"
    )


def _miss(result: Steering) -> str:
    if not np.isfinite(result.replay_error):
        return "The replay of the best plan does not get to the end."
    verb = "arrives to within" if attempts.arrives(result) else "misses the target by"
    return f"The best plan found {verb} {error(result.replay_error)} (relative)."


def _facts(result: Steering) -> list[Fact]:
    p = result.problem
    facts = [
        Fact("status", f"{result.status.name}: {result.status.value}"),
        Fact("cost", f"{number(result.cost)} ({cost_name(p.cost)})"),
        Fact("lower bound", _bound(result)),
        Fact("gap", relation(result.cost, result.lower_bound, result.gap)),
        Fact("replay error", f"{error(result.replay_error)} (relative, independent integrator)"),
        Fact("terminal error", f"{error(result.terminal_error)} (the solver's own trajectory)"),
    ]
    if result.trajectory.status is not Status.SUCCESS:
        path = result.trajectory
        facts.append(
            Fact("replay ended", f"{path.status.name} at t = {number(float(path.times[-1]))}")
        )
    work = [duration(result.seconds)]
    if result.intervals:
        refined = count(result.refinements, "refinement")
        work = [count(result.iterations, "iteration"), count(result.intervals, "interval"), refined]
        work.append(duration(result.seconds))
    facts.append(Fact("solver", f"{result.solver}: {', '.join(work)}"))
    if result.attempts:
        facts.append(Fact("attempts", attempts.tally(result)))
    facts.append(Fact("rank", _rank(result)))
    if result.tokens is not None:
        facts += check.facts(result.tokens)
    violated = "solver's best misses" if attempts.stands_in(result) else "violated"
    facts += [
        Fact(violated, f"{v.constraint} ({v.where}) by {error(v.size)}. {v.advice}")
        for v in result.violations[:VIOLATIONS]
    ]
    return facts


def _bound(result: Steering) -> str:
    if result.lower_bound == 0:
        return "0: only this trivial bound is known"
    return f"{number(result.lower_bound)}: {result.lower_bound_reason}"


def _rank(result: Steering) -> str:
    rank = result.problem.start.rank
    if not rank:
        return "0 (the law is a single point)"
    smallest = number(result.smallest_eigenvalue, 4)
    return f"{rank} along the whole path; smallest positive eigenvalue {smallest}"


def _statement(result: Steering) -> list[Fact]:
    p = result.problem
    same = p.horizon == result.horizon
    horizon = number(p.horizon) if same else f"free; the plan takes {number(result.horizon)}"
    return [
        Fact("question", "carry the start to the target at least cost"),
        Fact("dimension", f"{p.start.dim} (tokens), rank {p.start.rank} (covariance)"),
        Fact("horizon", horizon),
        controls_fact(p.controls),
        Fact("cost", cost_words(p.cost, p.controls)),
        bounds_fact(p.bounds),
        Fact("method", p.method),
        law_fact("start", p.start),
        law_fact("target", p.target),
    ]


def _captions(result: Steering) -> dict[str, str]:
    name = cost_name(result.problem.cost)
    arrives = attempts.arrives(result)
    line = on_a_line([result.problem.start, *laws_of(result.trajectory)], result.problem.target)
    dots = "; dots are softmax tokens moved by the plan" if result.tokens else ""
    captions = {
        "path": (
            f"The Gaussian moves from the start (blue) and {'ends' if arrives else 'should end'} "
            f"on the target (red, dashed): {spread_words(line)}{dots}."
        ),
        "controls": _controls_caption(result),
        "covariance": (
            "No eigenvalue of the covariance touches zero, so the rank is kept; the rings at the "
            "end are the target's values, which the curves "
            + ("meet." if arrives else "should meet.")
        ),
        "cost": _cost_caption(result, name),
    }
    if result.tokens is not None:
        captions["tokens"] = (
            f"Where {result.tokens.count} actual tokens arrive: errors in the shaded band are no "
            "larger than chance explains"
            + ("." if result.tokens.within_sampling_error else "; see “tokens miss” above.")
        )
    return captions


def _cost_caption(result: Steering, name: str) -> str:
    dots = f"Each dot is the {name} that attempts of the solver ended with, on their own mesh"
    if attempts.stands_in(result):
        dots += "; the star is the exact plan, as none of their plans arrives"
    if result.lower_bound > 0:
        return f"{dots}; no plan whatsoever can lie to the left of the dashed lower bound."
    return f"{dots}; no positive lower bound is known."


def _controls_caption(result: Steering) -> str:
    words = "The plan itself: the parameters of the Transformer as functions of time."
    attention = {"V", "B"} <= set(result.problem.controls) and result.attempts
    if not (attention and result.problem.method == "optimal"):
        return words
    return (
        f"{words} A plan found by a solver holds them constant on each interval of its mesh; where "
        "V and B jump together, attention changes its signs, which a plan of least cost may do "
        "in an instant."
    )


def _tables(result: Steering) -> list[Table]:
    tables = []
    if result.attempts:
        tables.append(attempts.table(result))
    if result.violations:
        missed = tuple((v.constraint, v.where, error(v.size), v.advice) for v in result.violations)
        columns = ("constraint", "where", "missed by", "what to try")
        tables.append(Table("Violated constraints, worst first", columns, missed))
    tables.append(_parameters(result))
    return tables


def _parameters(result: Steering) -> Table:
    """The parameters at the start, in the middle and at the end."""
    schedule, end = result.schedule, result.horizon
    small = schedule.dim**2 <= LARGEST
    rows = []
    for label, t in (("0", 0.0), ("T/2", end / 2), ("T", end)):
        now = schedule(t) if small else schedule.inner(t)
        values = [getattr(now, letter) for letter in result.problem.controls]
        cells = [matrix(v) if small else number(float(np.linalg.norm(v)), 4) for v in values]
        rows.append((f"t = {label}", *cells))
    header = tuple(c if small else f"|{c}|" for c in result.problem.controls)
    title = "Parameters of the plan" + ("" if small else " (Frobenius norms)")
    return Table(title, ("time", *header), tuple(rows))

"""A plan in words."""

from __future__ import annotations

import numpy as np

from ...results.steering import SET_ASIDE, Attempt, Steering
from ...results.tokens import SAMPLING_BAND, TokenCheck
from ...status import Status
from ..wording import compared, count, duration, error, matrix, number, relation
from . import snippets
from .base import Fact, Table, View
from .statements import bounds_fact, controls_fact, cost_name, cost_words, law_fact

__all__ = ["attempt_name", "best_attempt", "tokens_words", "view"]

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


def best_attempt(result: Steering) -> int | None:
    """Index of the attempt whose plan is returned, if any attempt ended with a cost."""
    costs = np.array([a.cost for a in result.attempts], dtype=float)
    distance = np.abs(costs - result.cost)
    good = np.isfinite(distance)
    converged = good & np.array([a.converged for a in result.attempts], dtype=bool)
    allowed = converged if converged.any() else good
    return int(np.argmin(np.where(allowed, distance, np.inf))) if allowed.any() else None


def attempt_name(attempt: Attempt) -> str:
    """Name of an attempt, for tables and axes."""
    return f"{attempt.start}, {count(attempt.intervals, 'interval')}, {attempt.solver}"


def tokens_words(check: TokenCheck) -> str:
    """Errors of a token check beside their sampling errors."""
    verdict = "within" if check.within_sampling_error else "NOT within"
    return (
        f"{check.count} softmax tokens arrive with mean error {error(check.mean_error)} "
        f"(sampling error {error(check.mean_sampling_error)}) and covariance error "
        f"{error(check.covariance_error)} (sampling error "
        f"{error(check.covariance_sampling_error)}): {verdict} {number(SAMPLING_BAND)} "
        "sampling errors"
    )


def _headline(result: Steering) -> str:
    if result.status is Status.SUCCESS:
        name = cost_name(result.problem.cost)
        words = compared(name, result.cost, result.lower_bound, result.gap)
        return (
            "The plan carries the start to the target: simulated again by an independent "
            f"integrator it misses by {error(result.replay_error)} (relative). "
            f"Its {words}."
        )
    advice = f"{result.status.value} {_miss(result)}"
    if result.violations:
        worst = result.violations[0]
        advice += f" Worst: {worst.constraint} ({worst.where}), missed by {error(worst.size)}."
    return advice


def _miss(result: Steering) -> str:
    if not np.isfinite(result.replay_error):
        return "The replay of the best plan does not get to the end."
    return f"The best plan found misses the target by {error(result.replay_error)} (relative)."


def _facts(result: Steering) -> list[Fact]:
    p = result.problem
    facts = [
        Fact("status", f"{result.status.name}: {result.status.value}"),
        Fact("cost", f"{number(result.cost)} ({cost_name(p.cost)})"),
        Fact("lower bound", f"{number(result.lower_bound)}: {result.lower_bound_reason}"),
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
        good = sum(a.converged for a in result.attempts)
        aside = sum(a.outcome == SET_ASIDE for a in result.attempts)
        early = f", {aside} set aside early" if aside else ""
        facts.append(Fact("attempts", f"{good} of {len(result.attempts)} converged{early}"))
    facts.append(Fact("rank", _rank(result)))
    if result.tokens is not None:
        facts.append(Fact("token check", tokens_words(result.tokens)))
    facts += [
        Fact("violated", f"{v.constraint} ({v.where}) by {error(v.size)}. {v.advice}")
        for v in result.violations[:VIOLATIONS]
    ]
    return facts


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
    arrives = result.status is Status.SUCCESS
    captions = {
        "path": (
            "The Gaussian moves from the start (blue) and "
            + ("ends on" if arrives else "should end on")
            + " the dashed target; ellipses hold one and two standard deviations"
            + (", dots are softmax tokens moved by the plan." if result.tokens else ".")
        ),
        "controls": "The plan itself: the parameters of the Transformer as functions of time.",
        "covariance": (
            "No eigenvalue of the covariance touches zero, so the rank is kept; the rings at the "
            "end are the target's values, which the curves "
            + ("meet." if arrives else "should meet.")
        ),
        "cost": (
            f"Each dot is the {name} of one attempt; no plan whatsoever can lie to the left of "
            "the dashed lower bound."
            if result.lower_bound > 0
            else f"Each dot is the {name} of one attempt; no positive lower bound is known."
        ),
    }
    if result.tokens is not None:
        captions["tokens"] = (
            f"Where {result.tokens.count} actual tokens arrive: errors in the shaded band are no "
            "larger than chance explains."
        )
    return captions


def _tables(result: Steering) -> list[Table]:
    tables = []
    if result.attempts:
        best = best_attempt(result)
        rows = tuple(
            (
                f"{a.start}{' (best)' if i == best else ''}",
                a.solver,
                str(a.intervals),
                str(a.iterations),
                number(a.cost),
                duration(a.seconds),
                a.outcome,
            )
            for i, a in enumerate(result.attempts)
        )
        header = ("start", "solver", "intervals", "iterations", "cost", "time", "outcome")
        tables.append(Table("Attempts of the solver", header, rows))
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

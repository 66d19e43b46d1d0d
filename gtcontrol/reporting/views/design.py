"""A design in words."""

from __future__ import annotations

import numpy as np

from ..._check import Array
from ...certification.design.near import unusable
from ...certification.rules import rule
from ...results.design import Confirmation, Design
from ...status import Status
from ..wording import count, duration, error, matrix, number
from . import snippets
from .base import Fact, Table, View
from .statements import bounds_fact, law_fact

__all__ = ["view"]

#: Parameters with more entries than this are given by their norm.
LARGEST = 9

_NOTE = (
    "The guarantee is about the flow under the very numbers that are given here, with rounding; "
    "it can be checked again without any solver by `gtcontrol verify FOLDER`, in Python by "
    "`gt.verify(design)`."
)

_METHODS = {
    "closed-form": "closed form, V = -ν I",
    "lmi": "semidefinite program, checked without the solver",
}


def view(result: Design) -> View:
    """Put a design into words."""
    p = result.problem
    tables = [_parameters(result)]
    if result.confirmation is not None:
        tables.append(_simulations(result.confirmation))
    return View(
        title=p.name or f"Design, dimension {p.target.dim}, rank {p.target.rank}",
        verdict=_verdict(result),
        good=result.answered,
        headline=_headline(result),
        facts=tuple(_facts(result)),
        statement=tuple(_statement(result)),
        captions=_captions(result),
        notes=(_NOTE,),
        tables=tuple(tables),
        command=snippets.command(p.name),
        code=snippets.designing(p),
    )


def _verdict(result: Design) -> str:
    if result.status is Status.SUCCESS:
        return f"ATTRACTING ({result.label})"
    return result.status.name


def _headline(result: Design) -> str:
    if result.status is Status.UNCONFIRMED:
        return str(result.status.value)
    certainty = "Proved" if result.proved else "Numerical evidence, not proved"
    ending = "" if result.status is Status.SUCCESS else f" {result.status.value}"
    return f"{certainty}: {result.statement}{ending}"


def _facts(result: Design) -> list[Fact]:
    claim, seen = result.claims[0], result.confirmation
    numbers = claim.numbers
    facts = [
        Fact("status", f"{result.status.name}: {_status(result)}"),
        Fact("certainty", _certainty(result)),
        Fact("by", rule(claim.rule).theorem),
        Fact("rate of the covariance", f"{number(result.rate)} (W₂ distance)"),
        Fact("rate of the mean", number(result.mean_rate)),
    ]
    if "radius" in numbers:
        radius = f"|L⁻¹(S − S*)L⁻ᵀ| < {number(numbers['radius'])}, with L Lᵀ = S* the target's"
        facts.append(Fact("region of attraction", radius))
    miss = float(np.hypot(numbers["covariance_distance"], numbers["mean_distance"]))
    facts.append(Fact("rounding", f"the limit is at most {error(miss)} (W₂) from the target"))
    if seen is not None:
        facts.append(
            Fact(
                "simulations",
                f"{_starts(result, seen)}: all within {error(seen.worst)} of the "
                f"target (relative W₂) at t = {number(seen.horizon, 4)}; measured rates from "
                f"{number(seen.slowest, 4)}",
            )
        )
    if _value_matrix(result).startswith("free;"):
        facts.append(Fact("value matrix", _value_matrix(result)))
    facts += [
        Fact("method", _METHODS.get(result.method, result.method)),
        Fact("work", duration(result.seconds)),
    ]
    return facts


def _status(result: Design) -> str:
    """What an answer rests on; every other ending says what to do."""
    if result.status is not Status.SUCCESS:
        return str(result.status.value)
    confirmed = result.confirmation is not None and result.confirmation.count > 0
    if result.proved:
        return f"proved; {'simulations confirm it' if confirmed else 'not simulated'}."
    return (
        f"{'simulations confirm it, but' if confirmed else 'not simulated, and'} it is not proved."
    )


def _starts(result: Design, seen: Confirmation) -> str:
    """How many starts were simulated; fewer than planned if they take many steps."""
    planned = result.problem.checks
    if seen.count < planned and result.status is not Status.INTERRUPTED:
        return f"{seen.count} of {planned} random starts, as they take many steps"
    return count(seen.count, "random start")


def _certainty(result: Design) -> str:
    if result.proved:
        return "proved: the parameters were checked in rigorous arithmetic"
    note = f" ({result.claims[0].note})" if result.claims[0].note else ""
    return f"numerical: evidence in floating point, not a proof{note}"


def _statement(result: Design) -> list[Fact]:
    p = result.problem
    rates = [
        f"{name} at least {number(value)}"
        for name, value in (("covariance", p.rate), ("mean", p.mean_rate))
        if value is not None
    ]
    facts = [
        Fact("question", "which constant parameters make the target attracting?"),
        Fact("dimension", f"{p.target.dim} (tokens), rank {p.target.rank} (covariance)"),
        law_fact("target", p.target),
        Fact("rates", ", ".join(rates) or "free"),
        Fact("value matrix", _value_matrix(result)),
        bounds_fact(p.bounds),
    ]
    if p.near is not None:
        facts.append(Fact("near", f"A = {_written(p.near.A)}, B = {_written(p.near.heads[0][1])}"))
    if p.complement is not None:
        facts.append(Fact("complement", _written(p.complement)))
    return facts


def _value_matrix(result: Design) -> str:
    """What was asked of V, and why that of `near` is not taken if none was."""
    p = result.problem
    if p.V is not None:
        return _written(p.V)
    given = p.near is not None and bool(p.near.V.any())
    reason = unusable(p.target, p.near, p.mean_rate, p.bounds) if given and p.near else ""
    return f"free; that of `near` is not used: {reason}" if reason else "free"


def _written(values: Array) -> str:
    if values.size <= LARGEST:
        return matrix(values)
    return f"norm {number(float(np.linalg.norm(values)), 4)}"


def _parameters(result: Design) -> Table:
    p = result.parameters
    rows = tuple(
        (letter, _written(values), number(float(np.linalg.norm(values)), 4))
        for letter, values in (("A", p.A), ("V", p.V), ("B", p.B), ("b", p.b))
    )
    return Table("The parameters", ("", "value", "norm"), rows)


def _simulations(seen: Confirmation) -> Table:
    rows = tuple(
        (
            str(i + 1),
            str(int(seen.ranks[i])),
            number(float(seen.distances[i, 0]), 3),
            error(float(seen.distances[i, -1])),
            number(float(seen.rates[i]), 4),
        )
        for i in range(seen.count)
    )
    return Table(
        "Simulations from random starts",
        ("start", "rank", "distance at the start", "distance at the end", "measured rate"),
        rows,
        "Distances are W₂ over the size of the target. Transients may be slower than the rate.",
    )


def _captions(result: Design) -> dict[str, str]:
    if result.confirmation is None:
        return {}
    return {
        "path": (
            "Laws on their way from random starts (bold ellipses of one standard deviation, one "
            "colour each) into the target (dashed; one and two standard deviations)."
        ),
        "distance": (
            "The W₂ distance of each simulation to the target, over the size of the target; the "
            "dashed line falls at the guaranteed rate."
        ),
    }

"""A certificate in words."""

from __future__ import annotations

import math

import numpy as np

from ...certification.rules import rule, statement
from ...parameters import Parameters
from ...results.certificate import Certificate, Integration
from ...results.claims import Claim
from ...status import Status, Verdict
from ..wording import duration, error, matrix, number
from . import snippets
from .base import Fact, Table, View
from .statements import law_fact

__all__ = ["view"]

#: An enclosure of this relative width is written as one number.
NARROW = 1e-9

#: Constant parameters with more entries than this are given by their norm.
LARGEST = 9


def view(result: Certificate) -> View:
    """Put a certificate into words."""
    p = result.problem
    return View(
        title=p.name or f"Certificate, dimension {p.dim}",
        verdict=f"{result.verdict.name.replace('_', ' ')} ({result.label})",
        good=result.answered,
        headline=_headline(result),
        facts=tuple(_facts(result)),
        statement=tuple(_statement(result)),
        captions=_captions(result),
        notes=tuple(_notes(result)),
        noise=any(vertex.noise is not None for vertex in p.vertices),
        tables=(_claims(result),),
        command=snippets.command(p.name),
        code=snippets.certifying(p),
    )


def _headline(result: Certificate) -> str:
    if result.verdict is Verdict.UNDECIDED:
        return f"Undecided. {result.statement}"
    certainty = "Proved" if result.proved else "Numerical evidence, not proved"
    return f"{certainty}: {result.statement}"


def _facts(result: Certificate) -> list[Fact]:
    facts = [
        Fact("verdict", f"{result.verdict.name}: {result.verdict.value}"),
        Fact("certainty", _certainty(result)),
    ]
    if result.status is Status.INTERRUPTED:
        facts.append(Fact("status", f"{result.status.name}: {result.status.value}"))
    if result.claims:
        facts.append(Fact("by", rule(result.claims[0].rule).theorem))
    if math.isfinite(result.upper) or 0 < result.lower < math.inf:
        facts.append(Fact("blow-up time", _enclosure(result)))
    if math.isfinite(result.bound):
        facts.append(Fact("bound on lim sup tr S", f"{number(result.bound)} (proved)"))
    if result.integrations:
        facts.append(Fact("integrations", _integrations(result.integrations)))
    proved = sum(claim.proved for claim in result.claims)
    facts += [
        Fact("claims", f"{proved} proved, {len(result.claims) - proved} numerical"),
        Fact("work", duration(result.seconds)),
    ]
    return facts


def _certainty(result: Certificate) -> str:
    if result.proved:
        return "proved: the data were checked in exact or ball arithmetic"
    return "numerical: evidence in floating point, not a proof"


def _enclosure(result: Certificate) -> str:
    low, high = result.lower, result.upper
    if math.isinf(high):
        return f"at least {number(low, 12)} (proved)"
    if low <= 0:
        return f"at most {number(high, 12)} (proved)"
    width = (high - low) / low
    if width <= NARROW:
        return f"{number(0.5 * low + 0.5 * high, 15)} (proved; relative width {error(width)})"
    return (
        f"between {number(low, 15)} and {number(high, 15)} (proved; relative width {error(width)})"
    )


def _integrations(seen: tuple[Integration, ...]) -> str:
    words = {
        "blow-up": "blow up",
        "limit": "settle",
        "cycle": "go round a periodic orbit",
        "growth": "grow without bound",
        "unsettled": "stay bounded, not settled",
        "open": "ended on the way",
    }
    many = {name: sum(s.outcome == name for s in seen) for name in words}
    parts = [f"{n} of {len(seen)} {words[name]}" for name, n in many.items() if n]
    return ", ".join(parts) if len(seen) > 1 else _one(seen[0])


def _one(seen: Integration) -> str:
    words = {
        "blow-up": f"blows up at {number(seen.time, 10)}",
        "limit": f"settles by t = {number(seen.time, 4)}",
        "cycle": f"goes round a periodic orbit of period {number(seen.time)}",
        "growth": f"grows without bound up to t = {number(seen.time, 4)}",
        "unsettled": f"stays bounded up to t = {number(seen.time, 4)}, not settled",
        "open": f"followed up to t = {number(seen.time, 4)}",
    }
    return words[seen.outcome]


def _statement(result: Certificate) -> list[Fact]:
    p = result.problem
    several = len(p.vertices) > 1
    facts = [
        Fact("question", "what does the covariance do in the long run?"),
        Fact("dimension", f"{p.dim} (tokens)"),
        Fact("parameters", f"a family with {len(p.vertices)} vertices" if several else "constant"),
    ]
    for i, vertex in enumerate(p.vertices[:4]):
        facts.append(Fact(f"vertex {i + 1}" if several else "values", _parameters(vertex)))
    start = "all starts" if p.start is None else None
    facts.append(Fact("start", start) if start else law_fact("start", p.start))  # type: ignore[arg-type]
    return facts


def _parameters(p: Parameters) -> str:
    given = {"A": p.A, "V": p.V, "B": p.B, "noise": p.noise}
    parts = []
    for letter, values in given.items():
        if values is None or not values.any():
            continue
        if values.size <= LARGEST:
            parts.append(f"{letter} = {matrix(values)}")
        else:
            parts.append(f"|{letter}| = {number(float(np.linalg.norm(values)), 4)}")
    return ", ".join(parts) or "all zero"


def _notes(result: Certificate) -> list[str]:
    p = result.problem
    first = (
        "The mean plays no part in the covariance. Claims that are proved can be checked again "
        "without any solver: `gtcontrol verify FOLDER`, in Python `gt.verify(certificate)`."
    )
    notes = [first]
    heads = max(len(vertex.heads) for vertex in p.vertices)
    if heads > 1:
        notes.append(f"There are {heads} heads: their terms V S B add up.")
    if any(vertex.noise is not None for vertex in p.vertices):
        notes.append("Process noise adds its intensity Q to S′, so the rank may grow.")
    return notes


def _claims(result: Certificate) -> Table:
    rows = tuple(_row(result, claim) for claim in result.claims)
    return Table(
        "What was found",
        ("theorem", "verdict", "certainty", "statement"),
        rows or (("none", "", "", ""),),
        "The strongest first. Where a proof failed, the statement ends with the reason.",
    )


def _row(result: Certificate, claim: Claim) -> tuple[str, ...]:
    theorem = rule(claim.rule)
    said = statement(result.problem, claim)
    text = said.text
    if not claim.proved and claim.note:
        text += f" (Not proved: {claim.note}.)"
    certainty = "proved" if claim.proved else "numerical"
    return theorem.theorem, said.verdict.name, certainty, text


def _captions(result: Certificate) -> dict[str, str]:
    several = len(result.integrations) > 1
    who = "Integrations from several starts" if several else "An accurate integration"
    return {
        "envelope": (
            f"{who} against what is certified. Where a second panel stands, it shows the level "
            "y = tr(W S) of the certificate's own matrix W, and the bound that is proved for it."
        ),
        "cone": (
            "The covariances of two-dimensional tokens form a cone: above the plane of "
            "(S₁₁ − S₂₂)/2 and S₁₂ stands (S₁₁ + S₂₂)/2, and singular covariances are its "
            "surface. The curves are the integrations, each from its dot to its square, if it "
            "settles; stars are equilibria that are proved to attract."
        ),
    }

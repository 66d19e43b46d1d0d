"""A certificate in words."""

from __future__ import annotations

import math

import numpy as np

from ...certification.rules import reading, rule
from ...certification.rules.base import matrix as array
from ...parameters import Parameters
from ...results.certificate import Certificate, Integration
from ...status import Status, Verdict
from ..wording import duration, error, matrix, number
from . import snippets
from .base import Fact, Table, View
from .claims import rows
from .statements import law_fact

__all__ = ["view"]

#: An enclosure of this relative width is written as one number.
NARROW = 1e-9

#: A motion approaches an equilibrium if its second half of time shortens the distance to this part.
NEARER = 0.75

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
        facts.append(Fact("by", rule(result.claims[0].rule).theorem_for(result.problem)))
    if math.isfinite(result.upper) or 0 < result.lower < math.inf:
        facts.append(Fact("blow-up time", _enclosure(result)))
    if math.isfinite(result.bound):
        facts.append(Fact("bound on lim sup tr S", f"{number(result.bound)} (proved)"))
    if result.integrations:
        seen = _integrations(result.integrations)
        facts.append(Fact("integrations", "; ".join([seen, *_approaches(result)])))
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


def _approaches(result: Certificate) -> list[str]:
    """Which of the equilibria that are proved to attract integrations without a limit approach."""
    places = []
    for claim in result.claims:
        if claim.proved and claim.rule == "local-stability":
            with reading(claim):
                frame = array(claim, "frame", result.problem.dim, result.problem.dim)
                L = frame[:, : int(claim.numbers["rank"])]
                places.append((L.shape[1], L @ L.T))
    many = [0] * len(places)
    for one in result.integrations:
        if one.outcome != "unsettled" or not (places and one.covariances.size):
            continue
        middle = int(np.searchsorted(one.times, 0.5 * one.times[-1]))
        ways = np.array(
            [[np.linalg.norm(one.covariances[i] - S) for i in (middle, -1)] for _, S in places]
        )
        nearest = int(np.argmin(ways[:, 1]))
        if ways[nearest, 1] < NEARER * ways[nearest, 0]:
            many[nearest] += 1
    return [
        f"{n} approach{'es' if n == 1 else ''} the attractor of rank {rank}, "
        f"trace {number(float(np.trace(S)))}"
        for n, (rank, S) in zip(many, places, strict=True)
        if n
    ]


def _one(seen: Integration) -> str:
    words = {
        "blow-up": f"blows up at about {number(seen.time)}",
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
    return Table(
        "What was found",
        ("theorem", "verdict", "certainty", "statement"),
        rows(result.problem, result.claims) or (("none", "", "", ""),),
        "The strongest first. Where a proof failed, the statement ends with the reason.",
    )


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

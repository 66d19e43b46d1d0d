"""The answer to a reachability question in words."""

from __future__ import annotations

from ...results.reachability import Reachability
from ..wording import number
from . import snippets
from .base import Fact, View
from .statements import controls_fact, law_fact

__all__ = ["view"]


def view(result: Reachability) -> View:
    """Put the answer into words."""
    p = result.problem
    return View(
        title=p.name or f"Reachability, dimension {p.start.dim}",
        verdict="REACHABLE" if result.reachable else "NOT REACHABLE",
        good=result.reachable,
        headline=_headline(result),
        facts=tuple(_facts(result)),
        statement=(
            Fact("question", "can the target be reached from the start at all?"),
            Fact("dimension", f"{p.start.dim} (tokens)"),
            Fact("rank", f"{p.start.rank} (start), {p.target.rank} (target)"),
            controls_fact(p.controls),
            law_fact("start", p.start),
            law_fact("target", p.target),
        ),
        captions={"laws": _caption(result)},
        command=snippets.command(p.name),
        code=snippets.reaching(p),
    )


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _headline(result: Reachability) -> str:
    if result.reachable:
        return f"The target can be reached: {_sentence(result.reason)}"
    words = f"The target cannot be reached: {_sentence(result.reason)}"
    if result.nearest is not None:
        distance = f"W₂ distance {number(result.distance, 4)}"
        if result.attained:
            words += f" The nearest law in reach lies at {distance}."
        else:
            words += f" A law at {distance} is in reach; nearer ones are too, but none is nearest."
    return words


def _facts(result: Reachability) -> list[Fact]:
    facts = [
        Fact("reachable", "yes" if result.reachable else "no"),
        Fact("reason", _sentence(result.reason)),
    ]
    if result.nearest is None:
        facts.append(Fact("nearest", "no target in reach"))
    elif not result.reachable:
        kind = "the nearest in reach" if result.attained else "in reach; none is nearest"
        facts += [
            Fact("nearest", f"rank {result.nearest.rank}; {kind}"),
            Fact("distance", f"{number(result.distance)} (W₂, from the wanted target)"),
            law_fact("nearest law", result.nearest),
        ]
    if result.methods:
        facts.append(Fact("exact methods", ", ".join(result.methods)))
    return facts


def _caption(result: Reachability) -> str:
    if result.reachable or result.nearest is None:
        return "Start (blue) and wanted target (dashed): one and two standard deviations."
    return (
        "Start (blue), wanted target (dashed) and the nearest law that can be reached (green): "
        "one and two standard deviations."
    )

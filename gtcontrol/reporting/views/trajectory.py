"""A simulation in words."""

from __future__ import annotations

import numpy as np

from ...results.trajectory import Trajectory
from ...status import Status
from ..wording import count, duration, matrix, number
from . import finite, snippets
from .base import Fact, Table, View
from .line import laws_of, on_a_line, spread_words
from .models import LAYER
from .statements import law_fact

__all__ = ["view"]

#: Constant parameters with more entries than this are given by their norm.
LARGEST = 9


def view(result: Trajectory) -> View:
    """Put a simulation into words."""
    p = result.problem
    return View(
        title=p.name or f"Simulation, dimension {p.start.dim}, rank {p.start.rank}",
        verdict=result.status.name,
        good=result.answered,
        headline=_headline(result),
        facts=tuple(_facts(result)),
        statement=tuple(_statement(result)),
        captions=_captions(result),
        notes=tuple(_notes(result)),
        noise=p.schedule.noisy,
        model=LAYER if p.feedforward is not None else None,
        tables=(_laws(result),) if p.tokens is None else (_laws(result), finite.table(result)),
        command=snippets.command(p.name),
        code=snippets.simulating(p),
    )


def _headline(result: Trajectory) -> str:
    p, final = result.problem, result.final
    if result.status is Status.BLOW_UP:
        return (
            f"The covariance blows up at T* = {number(result.blow_up_time, 12)}, before the "
            f"horizon {number(p.horizon)}: no Gaussian solves the equations beyond it."
        )
    if result.status is Status.SUCCESS:
        way = "flow" if p.layers is None else f"network of {count(p.layers, 'layer')}"
        if p.tokens is not None:
            way += f" of {count(p.tokens.count, 'token')}"
        change = f"{number(p.start.trace)} at the start, {number(final.trace)} at the end"
        return (
            f"The {way} reaches the horizon {number(p.horizon)}: total variance {change}; "
            f"{_rank(result)}."
        )
    return f"{result.status.value} It got to t = {number(float(result.times[-1]))}."


def _rank(result: Trajectory) -> str:
    start, end = result.problem.start.rank, result.final.rank
    if start == end:
        return f"rank {start} kept"
    noise = "process noise" if result.problem.schedule.noisy else "the noise of attention"
    why = f"{noise} fills the covariance" if end > start else "a layer was singular"
    return f"rank {start} at the start, {end} at the end ({why})"


def _facts(result: Trajectory) -> list[Fact]:
    p, final = result.problem, result.final
    facts = [Fact("status", f"{result.status.name}: {result.status.value}")]
    if np.isfinite(result.blow_up_time):
        facts.append(Fact("blow-up time", number(result.blow_up_time, 12)))
    facts += [
        Fact("reached", f"t = {number(float(result.times[-1]))} of {number(p.horizon)}"),
        Fact("total variance", f"{number(p.start.trace)} → {number(final.trace)}"),
        Fact("rank", _rank(result).removeprefix("rank ")),
    ]
    if final.rank:
        ends = dict.fromkeys(number(float(final.eigenvalues[i])) for i in (-1, 0))
        facts.append(Fact("final eigenvalues", " to ".join(ends)))
    moved = float(np.linalg.norm(final.mean - p.start.mean))
    facts.append(Fact("mean moved by", number(moved)))
    facts += finite.facts(result)
    if p.layers is None:
        work = f"{count(result.steps, 'step')}, {count(result.evaluations, 'evaluation')}"
    else:
        work = count(result.steps, "layer")
    facts.append(Fact("work", f"{work}, {duration(result.seconds)}"))
    return facts


def _statement(result: Trajectory) -> list[Fact]:
    p = result.problem
    if p.layers is None:
        question, form = "follow the flow up to the horizon", "flow (continuous depth)"
    else:
        question = "apply the layers one after the other"
        form = f"{count(p.layers, 'residual layer')} of step {number(p.horizon / p.layers)}"
    if p.tokens is not None:
        form += f", closure for {count(p.tokens.count, 'token')}"
    return [
        Fact("question", question),
        Fact("dimension", f"{p.start.dim} (tokens), rank {p.start.rank} (covariance)"),
        Fact("horizon", number(p.horizon)),
        Fact("model", form),
        Fact("parameters", _parameters(result)),
        law_fact("start", p.start),
    ]


def _notes(result: Trajectory) -> list[str]:
    schedule = result.problem.schedule
    pieces = [piece.law(piece.start) for piece in schedule.pieces(inner=True)]
    notes = finite.notes(result)
    if result.problem.layers is not None:
        noise = ", and noise adds h Q to S" if schedule.noisy else ""
        notes.append(
            "Here depth is discrete: a residual layer of step h maps m to m + h m′ and the factor "
            f"L of the covariance S = L Lᵀ to (I + h M) L{noise}."
        )
    heads = max(len(p.heads) for p in pieces)
    if heads > 1:
        notes.append(f"There are {heads} heads: their terms V S B and V m add up.")
    if any(p.beta is not None for p in pieces):
        notes.append("The score biases β add V S β to m′.")
    if schedule.noisy:
        notes.append(
            "Process noise adds its intensity Q to S′"
            + ("" if all(p.noise is not None for p in pieces) else ", in the pieces that have it")
            + ", so the rank may grow."
        )
    return notes


def _parameters(result: Trajectory) -> str:
    schedule = result.problem.schedule
    pieces = schedule.times.size - 1
    if pieces > 1 or not schedule.piecewise_constant:
        return f"vary in time, in {count(pieces, 'piece')}"
    p = schedule.inner(0.0)
    given = {"A": p.A, "V": p.V, "B": p.B, "b": p.b, "noise": p.noise, "β": p.beta}
    parts = []
    for letter, values in given.items():
        if values is None or not values.any():
            continue
        if schedule.basis is None and values.size <= LARGEST:
            parts.append(f"{letter} = {matrix(values)}")
        else:
            parts.append(f"|{letter}| = {number(float(np.linalg.norm(values)), 4)}")
    return f"constant: {', '.join(parts)}" if parts else "all zero"


def _captions(result: Trajectory) -> dict[str, str]:
    per = "layer by layer" if result.problem.layers is not None else "in time"
    laws = laws_of(result)
    line = on_a_line([result.problem.start, *laws], laws[-1])
    captions = {
        "path": f"The Gaussian from its start (blue) to its last state: {spread_words(line)}.",
        "covariance": f"Total variance and eigenvalues of the covariance, {per}.",
        "mean": f"The mean of the tokens, {per}.",
    }
    if result.problem.tokens is not None:
        captions["tokens"] = finite.CAPTION.format(many=result.problem.tokens.count)
    if result.status is Status.BLOW_UP:
        captions["path"] = (
            "The Gaussian from its start (blue) on; the picture stops before the blow-up, where "
            f"the {'bands' if line else 'ellipses'} would leave every frame."
        )
        captions["covariance"] = (
            "Left: the variance leaves every bound at the vertical line. Right: against the "
            "inverse of the time left it grows along a straight line, a pole."
        )
    return captions


def _laws(result: Trajectory) -> Table:
    """The law at the start, in the middle and at the end of what was computed."""
    last = float(result.times[-1])
    small = result.problem.start.dim**2 <= LARGEST
    rows = []
    for t in dict.fromkeys((0.0, last / 2, last)):
        law = result.at(t)
        if small:
            cells = (matrix(law.mean), matrix(law.covariance))
        else:
            cells = (number(float(np.linalg.norm(law.mean)), 4), number(law.trace, 4))
        rows.append((number(t), *cells))
    header = ("mean", "covariance") if small else ("|mean|", "total variance")
    return Table("The law in time", ("t", *header), tuple(rows))

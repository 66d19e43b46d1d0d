"""A run of actual tokens in words."""

from __future__ import annotations

import numpy as np

from ...gaussian import Gaussian
from ...mixture import Mixture
from ...problem.definitions import TokenProblem
from ...results.tokens import TokenRun
from ...status import Status
from ..wording import count, duration, matrix, number
from .base import Fact, Table, View
from .line import on_a_line, spread_words
from .models import LAYER, MIXTURE, Model
from .statements import law_facts

__all__ = ["view"]

#: Covariances with more entries than this are given by their trace.
LARGEST = 9


def view(result: TokenRun) -> View:
    """Put a run of tokens into words."""
    p = result.problem
    return View(
        title=p.name or f"{p.count} tokens, dimension {p.schedule.dim}",
        verdict=result.status.name,
        good=result.answered,
        headline=_headline(result),
        facts=tuple(_facts(result)),
        statement=tuple(_statement(result)),
        captions={
            "path": (
                "Some of the tokens at the start, half-way and at the end; "
                f"{spread_words(_on_a_line(result))} of all tokens."
            )
        },
        noise=p.schedule.noisy,
        model=_model(p),
        tables=(_moments(result),),
    )


def _model(p: TokenProblem) -> Model | None:
    if p.feedforward is not None:
        return LAYER
    return MIXTURE if isinstance(p.start, Mixture) else None


def _on_a_line(result: TokenRun) -> bool:
    ends = [
        Gaussian.from_covariance(result.means[i], result.covariances[i])
        for i in dict.fromkeys((0, result.times.size // 2, result.times.size - 1))
    ]
    return on_a_line(ends, ends[-1])


def _headline(result: TokenRun) -> str:
    p = result.problem
    if result.status is not Status.SUCCESS:
        return f"{result.status.value} It got to t = {number(float(result.times[-1]))}."
    way = "flow" if p.layers is None else f"network of {count(p.layers, 'layer')}"
    return (
        f"{p.count} softmax tokens follow the {way} up to the horizon {number(p.horizon)}: total "
        f"variance {_variance(result, 0)} at the start, {_variance(result, -1)} at the end."
    )


def _variance(result: TokenRun, i: int) -> str:
    return number(float(np.trace(result.covariances[i])))


def _facts(result: TokenRun) -> list[Fact]:
    p = result.problem
    moved = float(np.linalg.norm(result.means[-1] - result.means[0]))
    steps = count(result.steps, "step" if p.layers is None else "layer")
    return [
        Fact("status", f"{result.status.name}: {result.status.value}"),
        *([Fact("why", result.reason)] if result.reason else []),
        Fact("reached", f"t = {number(float(result.times[-1]))} of {number(p.horizon)}"),
        Fact("total variance", f"{_variance(result, 0)} → {_variance(result, -1)}"),
        Fact("mean moved by", number(moved)),
        _farthest(result),
        *_spread(result),
        *(Fact("note", note) for note in result.notes),
        Fact(
            "work",
            f"{steps}, {count(result.evaluations, 'evaluation')}, {duration(result.seconds)}",
        ),
    ]


def _statement(result: TokenRun) -> list[Fact]:
    p = result.problem
    form = "flow (continuous depth)"
    if p.layers is not None:
        form = f"{count(p.layers, 'residual layer')} of step {number(p.horizon / p.layers)}"
    facts = [
        Fact("question", f"move every token by softmax attention over {_others(p)}"),
        Fact("tokens", f"{p.count}, of dimension {p.schedule.dim}"),
        Fact("horizon", number(p.horizon)),
        Fact("model", form),
    ]
    if p.feedforward is not None:
        units = count(p.feedforward.hidden, "hidden unit")
        facts.append(Fact("feed-forward layer", f"{p.feedforward.name}, {units}"))
    if p.start is None:
        return [*facts, Fact("start", "tokens that were given")]
    ways = [
        word
        for word, used in (("antithetic", p.antithetic), ("moment-matched", p.moment_matched))
        if used
    ]
    drawn = f"drawn {' and '.join(ways) or 'independently'}"
    seed = "" if p.seed is None else f", seed {p.seed}"
    return [*facts, Fact("draw", drawn + seed), *law_facts("start", p.start)]


def _others(p: TokenProblem) -> str:
    """Which tokens a token attends to."""
    if p.mask_self:
        return "all other tokens"
    return "itself and all tokens before it" if p.causal else "all tokens"


def _farthest(result: TokenRun) -> Fact:
    """Norm of the farthest token at the end, beside what it cannot exceed."""
    text = f"|x| = {number(float(result.largest_norm[-1]))}"
    if result.norm_bound is not None:
        text += f", which cannot exceed {number(float(result.norm_bound[-1]))}"
    return Fact("farthest token", text)


def _spread(result: TokenRun) -> list[Fact]:
    """How the weights of attention are spread at the end, for the head that does so least."""
    own, sizes = result.own_weight, result.effective_size
    if own is None or sizes is None:
        return []
    return [
        Fact("weight of a token's own key", f"{number(float(own[-1]))} in the mean"),
        Fact("tokens attended to", f"{number(float(sizes[-1]))} of {result.problem.count}"),
    ]


def _moments(result: TokenRun) -> Table:
    small = result.problem.schedule.dim**2 <= LARGEST
    rows = []
    for t, mean, S in zip(result.times, result.means, result.covariances, strict=True):
        if small:
            cells = (matrix(mean), matrix(S))
        else:
            cells = (number(float(np.linalg.norm(mean)), 4), number(float(np.trace(S)), 4))
        rows.append((number(float(t)), *cells))
    header = ("mean", "covariance") if small else ("|mean|", "total variance")
    return Table("Moments of the tokens in time", ("t", *header), tuple(rows))

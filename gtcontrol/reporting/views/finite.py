"""Attention over finitely many tokens along a trajectory, in numbers and words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...finite_attention.closure import attend
from ...finite_tokens import FiniteTokens
from ...results.trajectory import Trajectory
from ..wording import count, number
from .base import Fact, Table

__all__ = ["CAPTION", "Course", "course", "facts", "notes", "table"]

#: Times at which attention is looked at.
POINTS = 41

CAPTION = (
    "Left: total variance of {many} tokens, by the closure, and of the mean field. Right: of the "
    "head with the largest score variance a², how a² compares with log N (the mean field needs it "
    "well below 1), the share κ of its tilt that attention to the other tokens attains, and the "
    "weight that a token gives to itself."
)


@dataclass(frozen=True, eq=False)
class Course:
    """The head with the largest score variance at n times; every array has shape (n,)."""

    times: Array
    variance: Array
    own: Array
    tilt: Array


def course(result: Trajectory, points: int = POINTS) -> Course:
    """Look at attention along a trajectory of finitely many tokens."""
    p = result.problem
    tokens = p.tokens or FiniteTokens(2)
    last = float(result.times[-1])
    times = np.linspace(0.0, last, points) if last > 0 else np.zeros(1)
    rows = []
    for t in times:
        law = result.at(float(t))
        heads = p.schedule(min(float(t), p.schedule.horizon)).heads
        seen = [attend(law.mean, law.factor, head, tokens) for head in heads]
        rows.append(max((of.logit_variance, of.own, of.tilt) for of in seen))
    variance, own, tilt = np.array(rows).T
    return Course(times, variance, own, tilt)


def facts(result: Trajectory) -> list[Fact]:
    """How many tokens, and how far the mean field would hold for them."""
    tokens = result.problem.tokens
    if tokens is None:
        return []
    seen = course(result)
    keys = "the own one among their keys" if tokens.self_key else "the own one not among their keys"
    largest = int(np.argmax(seen.variance))
    passed = np.flatnonzero(seen.variance > tokens.log_count)
    when = f", passed at t = {number(float(seen.times[passed[0]]), 3)}" if passed.size else ""
    made = [
        Fact("tokens", f"{tokens.count}, {keys} (closure)"),
        Fact(
            "largest score variance",
            f"a² = {number(float(seen.variance[largest]), 3)}, where log N = "
            f"{number(tokens.log_count, 3)}{when}",
        ),
    ]
    if tokens.self_key:
        made.append(Fact("largest weight of itself", number(float(seen.own.max()), 3)))
    return made


def notes(result: Trajectory) -> list[str]:
    """What the closure replaces, and what it assumes."""
    tokens = result.problem.tokens
    if tokens is None:
        return []
    slope = "w + (1 − w) κ V S B, w being its weight for itself" if tokens.self_key else "κ V S B"
    closed = (
        f"This is the law of one among {count(tokens.count, 'token')}, not the mean field: V S B "
        "is replaced by the slope of softmax attention over tokens that are independent draws "
        f"from N(m, S) at every time, roughly {slope}. So it is at the start; later the tokens "
        "are not quite independent, and no longer Gaussian once a² passes log N. Finitely many "
        "tokens never blow up in finite time."
    )
    made = [closed]
    if result.problem.layers is not None:
        made.append(
            "Each layer also adds h² times the covariance of what is random in attention, so the "
            "rank may grow; heads are taken to be independent in this."
        )
    return made


def table(result: Trajectory) -> Table:
    """Attention at a few times."""
    seen = course(result, 5)
    rows = zip(seen.times, seen.variance, seen.own, seen.tilt, strict=True)
    return Table(
        "Attention over finitely many tokens",
        ("t", "score variance a²", "weight of itself", "κ"),
        tuple(tuple(number(float(x), 3) for x in row) for row in rows),
        "Of the head with the largest a², on average over the tokens.",
    )

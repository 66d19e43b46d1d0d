"""A study of closeness at short times in words."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ...results.closeness import Closeness
from ...status import Status
from ..wording import count, duration, number, percent
from . import snippets
from .base import Fact, Table, View
from .models import LAYER
from .statements import law_fact

__all__ = ["CURVES", "growth", "order_words", "sets", "sets_words", "view"]

#: Name of a distance -> what it is, and the order in t that theory gives.
CURVES = {
    "shape": ("sliced W₂ from the law to the Gaussian with its own moments", 1),
    "law": ("sliced W₂ from the law to the statistically linearised flow", 1),
    "moments": ("W₂ of the moments from those of the statistically linearised flow", 2),
    "naive": ("W₂ of the moments from those of the flow linearised at the mean", 1),
}


def view(result: Closeness) -> View:
    """Put a study into words."""
    p = result.problem
    return View(
        title=p.name or f"closeness to Gaussian flows, dimension {p.start.dim}",
        verdict=result.status.name,
        good=result.answered,
        headline=_headline(result),
        facts=tuple(_facts(result)),
        statement=tuple(_statement(result)),
        captions={
            "distances": (
                "Distances of the true law to Gaussian flows against time, on logarithmic axes: "
                "the slope of a line is its order in t. The dotted guides have slopes 1 and 2."
            ),
            "law": (
                "The true law at the last time (dots) with the 2-standard-deviation ellipses of "
                "its own moments and of both Gaussian flows."
            ),
        },
        notes=(
            (
                "True law: the mean field of infinitely many tokens, carried by weighted nodes "
                "whose moments, and whose averages of the layer, are exact at time 0."
            ),
        ),
        model=LAYER,
        tables=(_distances(result),),
        command=snippets.command(p.name),
        code=snippets.measuring(p, result.times),
    )


def order_words(order: float) -> str:
    """An order in t, or that the distance is rounding error."""
    return "rounding error" if math.isnan(order) else f"t^{number(order, 3)}"


def growth(order: float) -> str:
    """How a distance grows with time."""
    return "which is rounding error" if math.isnan(order) else f"like {order_words(order)}"


def sets_words(spreads: Mapping[str, float]) -> str:
    """How far distances depend on the nodes."""
    largest = max(spreads.values())
    if math.isnan(largest):
        return "one only, so that it is not known how far the distances depend on the nodes"
    if not largest:
        return "they differ by rounding errors"
    return f"each distance differs between them by at most {percent(largest)} of its value"


def _headline(result: Closeness) -> str:
    orders, last = result.orders, float(result.times[-1])
    ending = ""
    if result.status is not Status.SUCCESS:
        ending = f" {result.status.value} It was measured up to t = {number(last)}."
    if math.isnan(orders["moments"]):
        return f"The law stays Gaussian, to rounding: the layer is affine.{ending}"
    at_end = result.errors
    return (
        f"Up to t = {number(last)} the moments of the true law leave the statistically linearised "
        f"Gaussian flow like {order_words(orders['moments'])} (to {percent(at_end['moments'])} of "
        f"the law's size), its shape leaves Gaussians like {order_words(orders['shape'])} (to "
        f"{percent(at_end['shape'])}, in sliced W₂); linearised at the mean, the moments are "
        f"off like {order_words(orders['naive'])} (by {percent(at_end['naive'])}).{ending}"
    )


def _facts(result: Closeness) -> list[Fact]:
    p = result.problem
    facts = [Fact("status", f"{result.status.name}: {result.status.value}")]
    last = number(float(result.times[-1]))
    for name, (what, theory) in CURVES.items():
        order = result.orders[name]
        words = f"{percent(result.errors[name])} at t = {last}, {growth(order)}"
        # From a singular start: a variance of order t² across its range is a width of order t.
        expected = theory if p.start.rank == p.start.dim else 1
        if not math.isnan(order):
            words += f" (theory: t^{expected})"
        facts.append(Fact(name, f"{words}: {what}"))
    return [
        *facts,
        Fact("sets of nodes", sets_words(result.spreads)),
        Fact("work", duration(result.seconds)),
    ]


def _statement(result: Closeness) -> list[Fact]:
    p = result.problem
    layer = p.feedforward
    return [
        Fact("question", "how close the law of tokens stays to Gaussian flows"),
        law_fact("start", p.start),
        Fact("feed-forward layer", f"{count(layer.hidden, 'hidden unit')}, {layer.name}"),
        Fact("times", f"{number(float(result.times[0]))} to {number(float(result.times[-1]))}"),
        Fact("nodes", f"{p.count}, {sets(len(result.shape), p.seeds)} of them"),
    ]


def sets(made: int, asked: int) -> str:
    """Number of sets of nodes, and how many were asked for if that differs."""
    return count(made, "set") if made == asked else f"{made} of {count(asked, 'set')}"


def _distances(result: Closeness) -> Table:
    rows = []
    for i, t in enumerate(result.times):
        values = [float(np.mean(getattr(result, name)[:, i])) for name in CURVES]
        rows.append((number(float(t), 4), *(number(value, 3) for value in values)))
    orders = ("order", *(order_words(result.orders[name]) for name in CURVES))
    return Table(
        "Distances against time",
        ("t", "shape", "law", "moments", "moments, linearised at the mean"),
        (*rows, orders),
        note=(
            "Relative to the size of the law; averages over the sets of nodes. Shape and law: "
            "sliced W₂ (root mean square of W₂ over projections on lines); moments: W₂."
        ),
    )

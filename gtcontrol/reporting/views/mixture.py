"""A mixture beside the mixtures of its moved components, in words."""

from __future__ import annotations

import numpy as np

from ...results.mixture import MixtureRun
from ...status import Status
from ..wording import count, duration, number, percent
from . import snippets
from .base import Fact, Table, View
from .closeness import order_words
from .statements import law_facts

__all__ = ["CURVES", "view"]

#: Name of a distance -> what it is called, and what it is.
CURVES = {
    "apart": ("law, apart", "from the law to components that move each by itself"),
    "coupled": ("law, affine", "from the law to components moved by the best affine maps"),
    "apart_moments": ("moments, apart", "of the moments, components moved each by itself"),
    "coupled_moments": ("moments, affine", "of the moments, components moved by affine maps"),
    "component_shape": ("components", "from each component to the Gaussian with its moments"),
}


def view(result: MixtureRun) -> View:
    """Put a run into words."""
    p = result.problem
    return View(
        title=p.name or f"a mixture of {len(p.start.laws)} Gaussians, dimension {p.start.dim}",
        verdict=result.status.name,
        good=result.answered,
        headline=_headline(result),
        facts=tuple(_facts(result)),
        statement=tuple(_statement(result)),
        captions={
            "law": (
                "The true law at the last time (dots, one colour for each component) with the "
                "2-standard-deviation ellipses of what the components have become, of components "
                "moved by the best affine maps, and of components that move by themselves."
            ),
            "distances": (
                "Distances of the true law to the mixtures of moved components against time, on "
                "logarithmic axes, with bands over the sets of nodes. Both laws are carried by the "
                "same nodes; the dotted grey line is how far two independent sets of nodes of one "
                "law are apart."
            ),
        },
        notes=(
            "True law: the mean field of infinitely many tokens, carried by weighted nodes.",
            (
                "For a mixture the average under attention is a sum over the components with "
                "weights that depend on the query: it is not affine, and couples the components."
            ),
        ),
        tables=(_distances(result),),
        command=snippets.command(p.name),
        code=snippets.following(p, result.times),
    )


def _headline(result: MixtureRun) -> str:
    errors, last = result.errors, float(result.times[-1])
    ending = ""
    if result.status is not Status.SUCCESS:
        ending = f" {result.status.value} It was followed up to t = {number(last)}."
    floor = float(result.floor[-1])
    if max(errors["apart"], errors["coupled"]) <= floor:
        return (
            f"At t = {number(last)} the law is the mixture of its moved components, as far as the "
            f"nodes can tell ({percent(floor)} of its size).{ending}"
        )
    return (
        f"The mixture does not stay the mixture of its moved components: at t = {number(last)} "
        f"the law is {percent(errors['apart'])} of its size away if each component moves by "
        f"itself, {percent(errors['coupled'])} if they are moved by the best affine maps in the "
        f"field of all; two sets of nodes of one law differ by {percent(floor)}.{ending}"
    )


def _facts(result: MixtureRun) -> list[Fact]:
    facts = [Fact("status", f"{result.status.name}: {result.status.value}")]
    for name, (label, what) in CURVES.items():
        words = (
            f"{percent(result.errors[name])} at the end, like {order_words(result.orders[name])}"
        )
        facts.append(Fact(label, f"{words}: distance {what}"))
    floor = percent(float(result.floor[-1]))
    facts.append(Fact("nodes", f"two sets of nodes of one and the same law differ by {floor}"))
    return [*facts, Fact("work", duration(result.seconds))]


def _statement(result: MixtureRun) -> list[Fact]:
    p = result.problem
    return [
        Fact("question", "whether a mixture of Gaussians stays one under attention"),
        *law_facts("start", p.start),
        Fact("times", f"{number(float(result.times[0]))} to {number(float(result.times[-1]))}"),
        Fact("nodes", f"{p.count} for each component, {count(p.seeds, 'set')} of them"),
    ]


def _distances(result: MixtureRun) -> Table:
    rows = []
    for i, t in enumerate(result.times):
        values = [float(np.mean(getattr(result, name)[:, i])) for name in CURVES]
        values.append(float(result.floor[i]))
        rows.append((number(float(t), 4), *(number(value, 3) for value in values)))
    header = ("t", "apart", "affine", "moments, apart", "moments, affine", "component shape")
    return Table(
        "Distances against time",
        (*header, "two sets of nodes"),
        tuple(rows),
        note="Relative to the size of the law; averages over the sets of nodes.",
    )

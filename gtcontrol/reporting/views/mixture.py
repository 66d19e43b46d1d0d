"""A mixture beside the mixtures of its moved components, in words."""

from __future__ import annotations

import numpy as np

from ...results.closeness import NEGLIGIBLE
from ...results.mixture import MixtureRun
from ...status import Status
from ..wording import count, duration, number, percent
from . import snippets
from .base import Fact, Table, View
from .closeness import growth, sets, sets_words
from .models import MIXTURE
from .statements import law_facts

__all__ = ["CURVES", "view"]

#: Name of a distance -> what it is called, and what it is.
CURVES = {
    "apart": ("law, apart", "sliced W₂ from the law to components that move each by itself"),
    "coupled": (
        "law, affine",
        "sliced W₂ from the law to components moved by the best affine maps",
    ),
    "apart_moments": ("moments, apart", "W₂ of the moments, components moved each by itself"),
    "coupled_moments": ("moments, affine", "W₂ of the moments, components moved by affine maps"),
    "component_shape": ("components", "sliced W₂ from each to the Gaussian with its moments"),
}


def view(result: MixtureRun) -> View:
    """Put a run into words."""
    p = result.problem
    parts = count(len(p.start.laws), "Gaussian")
    return View(
        title=p.name or f"a mixture of {parts}, dimension {p.start.dim}",
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
                "logarithmic axes, with bands over the sets of nodes. The dash-dotted grey line is "
                "how far two independent sets of nodes of one law are apart. Distances below it "
                "are resolved, because both laws are carried by the same nodes, whose errors "
                "cancel; the bands show what is left of them. The dotted guides have slopes 1 and "
                "2."
            ),
        },
        notes=(
            "True law: the mean field of infinitely many tokens, carried by weighted nodes.",
            (
                "For a mixture the average under attention is a sum over the components with "
                "weights that depend on the query: it is not affine, and couples the components."
            ),
        ),
        model=MIXTURE,
        tables=(_distances(result),),
        command=snippets.command(p.name),
        code=snippets.following(p, result.times),
    )


def _headline(result: MixtureRun) -> str:
    errors, last = result.errors, float(result.times[-1])
    ending = ""
    if result.status is not Status.SUCCESS:
        ending = f" {result.status.value} It was followed up to t = {number(last)}."
    off = max(errors["apart"], errors["coupled"])
    if off <= NEGLIGIBLE:
        return (
            f"At t = {number(last)} the law is the mixture of its moved components, to "
            f"{percent(off)} of its size (rounding).{ending}"
        )
    return (
        f"The mixture does not stay the mixture of its moved components: at t = {number(last)} "
        f"the law is {percent(errors['apart'])} of its size away if each component moves by "
        f"itself, {percent(errors['coupled'])} if they are moved by the best affine maps in the "
        f"field of all (sliced W₂).{ending}"
    )


def _facts(result: MixtureRun) -> list[Fact]:
    facts = [Fact("status", f"{result.status.name}: {result.status.value}")]
    last = number(float(result.times[-1]))
    for name, (label, what) in CURVES.items():
        words = f"{percent(result.errors[name])} at t = {last}, {growth(result.orders[name])}"
        facts.append(Fact(label, f"{words}: {what}"))
    floor = percent(float(result.floor[-1]))
    facts.append(
        Fact(
            "sets of nodes",
            f"{sets_words(result.spreads)}; two of one and the same law are {floor} apart, an "
            "error that cancels where both laws are carried by the same nodes",
        )
    )
    return [*facts, Fact("work", duration(result.seconds))]


def _statement(result: MixtureRun) -> list[Fact]:
    p = result.problem
    return [
        Fact("question", "whether a mixture of Gaussians stays one under attention"),
        *law_facts("start", p.start),
        Fact("times", f"{number(float(result.times[0]))} to {number(float(result.times[-1]))}"),
        Fact("nodes", f"{p.count} for each component, {sets(len(result.apart), p.seeds)} of them"),
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
        note=(
            "Relative to the size of the law; averages over the sets of nodes. Laws: sliced W₂ "
            "(root mean square of W₂ over projections on lines); moments: W₂."
        ),
    )

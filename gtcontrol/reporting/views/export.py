"""An exported network in words."""

from __future__ import annotations

import math

from ...results.export import ExportCheck
from ...results.network import LAYERS_FILE, WEIGHTS_FILE, LayerWeights
from ...results.tokens import SAMPLING_BAND
from ..wording import count, duration, number, percent
from . import snippets
from .base import Fact, Table, View
from .models import CORRECTED, RESIDUAL
from .statements import law_fact

__all__ = ["order_words", "view"]


def view(result: ExportCheck) -> View:
    """Put a check into words."""
    p = result.problem
    return View(
        title=p.name or f"exported layers, dimension {p.start.dim}",
        verdict=_verdict(result),
        good=result.answered and result.arrives,
        headline=_headline(result),
        facts=tuple(_facts(result)),
        statement=tuple(_statement(result)),
        captions=_captions(result),
        notes=_notes(result),
        model=CORRECTED if p.exact else RESIDUAL,
        tables=(_errors(result),),
        command=snippets.command(p.name),
        code=snippets.exporting(p),
    )


def order_words(order: float) -> str:
    """An order in 1/layers, or that there is none."""
    return "rounding error" if math.isnan(order) else f"1/layers^{number(order, 2)}"


def _verdict(result: ExportCheck) -> str:
    if not result.answered:
        return result.status.name
    if result.arrives:
        return "ARRIVES"
    return "AS PREDICTED" if _too_few(result) else "MISSES"


def _too_few(result: ExportCheck) -> bool:
    """Whether plain layers miss only because there are so few of them."""
    return not result.problem.exact and not result.arrives and result.as_predicted


def _headline(result: ExportCheck) -> str:
    p, tried = result.problem, result.layers[-1]
    kind = "corrected " if p.exact else ""
    ending = "" if result.answered else f" {result.status.value}"
    words = (
        f"After {count(tried, f'{kind}layer')} of softmax attention the moments of {p.count} "
        f"tokens are {percent(result.error)} of the target's size away from the target "
        f"(samples of the target itself: {percent(result.floor)} on average)"
    )
    law, plain = percent(float(result.law_errors[-1])), percent(float(result.token_errors[-1]))
    if p.exact:
        why = "" if result.arrives else ", more than sampling explains"
        says = "as predicted" if result.as_predicted else f"where their Gaussian law is {law} away"
        words += f"{why}; after {count(tried, 'plain layer')} {plain}, {says}"
    elif _too_few(result):
        words += (
            f", as so few layers must be: their Gaussian law is {law} away. More layers come "
            "closer, and corrected ones (`exact`) have the moments of the plan"
        )
    elif not result.arrives:
        words += f", which sampling and so few layers, whose law is {law} away, do not explain"
    return f"{words}.{ending}"


def _facts(result: ExportCheck) -> list[Fact]:
    p, w = result.problem, result.weights
    facts = [Fact("status", f"{result.status.name}: {result.status.value}")]
    facts.append(
        Fact(
            "tokens",
            f"off by {percent(result.error)}; sampling explains up to {percent(result.chance)}",
        )
    )
    facts.append(
        Fact(
            "law of plain layers",
            f"off by {percent(float(result.law_errors[-1]))} with "
            f"{count(result.layers[-1], 'layer')}; tokens through them "
            f"{percent(float(result.token_errors[-1]))}, "
            + ("as predicted" if result.as_predicted else "not as predicted"),
        )
    )
    if not result.arrives and not _too_few(result):
        facts.append(
            Fact(
                "tokens miss",
                f"attention over {p.count} tokens departs from its mean field here, most for "
                "outlying tokens. Take more tokens, or leave less to attention: enable A, or steer "
                "with A and b alone, which every token follows exactly",
            )
        )
    if p.exact:
        facts.append(
            Fact(
                "corrected layers",
                f"off by {percent(float(result.exact_errors[0]))} with "
                f"{count(result.layers[0], 'layer')} already: A and b of each layer are such that "
                "its Gaussian law is that of the plan",
            )
        )
    if len(result.layers) > 1:
        law = order_words(result.order)
        measured = (
            f"; measured on the tokens {order_words(result.token_order)}"
            if result.own_errors.size and not math.isnan(result.token_order)
            else ""
        )
        facts.append(Fact("order", f"the law of plain layers is off like {law}{measured}"))
    tried = "" if result.layers[-1] == w.layers else "; not tried"
    facts.append(Fact("network", _network(w) + tried))
    facts.append(Fact("files", f"`{WEIGHTS_FILE}` and `{LAYERS_FILE}`, readable without gtcontrol"))
    return [*facts, Fact("work", duration(result.seconds))]


def _network(w: LayerWeights) -> str:
    form = (
        f"{count(w.heads, 'head')} of width {w.head_dim}, score scale {number(w.scale, 4)}"
        if w.heads
        else "without attention"
    )
    mask = ", no token attends to itself" if w.mask_self else ""
    return (
        f"{count(w.layers, 'layer')} of step {number(w.step, 4)}, dimension {w.dim}, {form}{mask}; "
        f"{w.numbers} weights in {w.dtype}"
    )


def _statement(result: ExportCheck) -> list[Fact]:
    p = result.problem
    return [
        Fact("question", "where exported layers of softmax attention carry actual tokens"),
        law_fact("start", p.start),
        law_fact("target", p.target),
        Fact("horizon", number(p.horizon)),
        Fact("layers", ", ".join(map(str, p.layers))),
        Fact("tokens", f"{p.count}, drawn from the start"),
    ]


def _captions(result: ExportCheck) -> dict[str, str]:
    corrected = (
        " Corrected layers have the moments of the plan whatever their number."
        if result.problem.exact
        else ""
    )
    captions = {
        "convergence": (
            "Error of the moments against the number of layers, on logarithmic axes. The grey band "
            "holds the errors of samples of as many tokens from the target itself; the dotted "
            f"guide has slope -1.{corrected}"
        )
    }
    if result.problem.start.dim > 1:
        captions["tokens"] = (
            f"Some tokens before and after {result.layers[-1]} layers, with the "
            "2-standard-deviation ellipses of start and target."
        )
    return captions


def _notes(result: ExportCheck) -> tuple[str, ...]:
    if not result.problem.mask_self:
        return ()
    return ("No token attends to itself; for many tokens the mean field is the same.",)


def _errors(result: ExportCheck) -> Table:
    p = result.problem
    header = ["layers", "law of the layers", "tokens", "tokens, own moments"]
    columns = [result.law_errors, result.token_errors, result.own_errors]
    if not result.own_errors.size:
        del header[3], columns[2]
    if p.exact:
        header.append("tokens, corrected layers")
        columns.append(result.exact_errors)
    rows = [
        (str(n), *(number(float(column[i]), 3) for column in columns))
        for i, n in enumerate(result.layers)
    ]
    low, high = float(result.baseline.min()), float(result.baseline.max())
    return Table(
        "Errors against the number of layers",
        tuple(header),
        tuple(rows),
        note=(
            "W₂ of moments to those of the target, over the size of the target; of own moments: "
            "to where the plan carries the moments of the tokens that were drawn. "
            f"{count(result.baseline.size, 'sample')} of {p.count} tokens from the target: "
            f"{number(result.floor, 3)} on average, {number(low, 2)} to {number(high, 2)}; "
            f"{number(SAMPLING_BAND)} times the average is counted as chance."
        ),
    )

"""An inspection of a pretrained model in words: first where the theory holds, and where not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from ...results.inspection import Inspection
from ...results.layers import PREDICTED, near_gaussian
from ...status import LayerVerdict, Status
from ..wording import count, duration, error, number, percent
from . import snippets
from .base import Fact, View
from .inspection_captions import captions
from .inspection_tables import head_name, tables
from .models import AFTER, BEFORE

__all__ = ["inputs", "ranges", "span", "together", "view"]

#: More sequences than so many times those that were taken are not advised: the error may be 0.2.
MANY = 16


def view(result: Inspection) -> View:
    """Put an inspection into words."""
    p = result.problem
    holds = len(result.layers_with(LayerVerdict.HOLDS))
    return View(
        title=p.name or f"{result.model}, {inputs(p.input)}",
        verdict=_badge(result) if result.answered else result.status.name,
        good=result.answered and holds > 0,
        headline=_headline(result),
        facts=tuple(_facts(result)),
        statement=tuple(_statement(result)),
        captions=captions(result),
        model=BEFORE if result.placement == "pre" else AFTER,
        tables=tables(result),
        layered=True,
        command=snippets.command(p.name),
        code=snippets.inspecting(p),
    )


def inputs(name: str) -> str:
    """Kind of input, in words."""
    return {
        "matched": "Gaussian input with the moments of real embeddings",
        "isotropic": "isotropic Gaussian input",
        "real": "real input",
    }[name]


def ranges(layers: Iterable[int]) -> str:
    """Layers with runs put together: "layer 2", "layers 1 to 4 and 6"; "no layer"."""
    runs: list[list[int]] = []
    for layer in sorted(layers):
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    if not runs:
        return "no layer"
    words: list[str] = []
    for run in runs:
        words += map(str, run) if len(run) < 3 else [f"{run[0]} to {run[-1]}"]
    noun = "layer" if len(runs) == 1 and len(runs[0]) == 1 else "layers"
    joined = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return f"{noun} {joined}"


def together(result: Inspection) -> str:
    """All layers that were looked at: "all layers", "the first 3 layers", "the first layer"."""
    done = len(result.layers)
    if result.partial:
        return "the first layer" if done == 1 else f"the first {done} layers"
    return "the only layer" if done == 1 else "all layers"


def span(values: Sequence[float], write: Callable[[float], str] = error) -> str:
    """Smallest and largest of some values, "0.1 to 0.2", or one number if they read the same."""
    low, high = write(min(values)), write(max(values))
    return low if low == high else f"{low} to {high}"


# -- what holds, and what does not -------------------------------------------------------


def _badge(result: Inspection) -> str:
    """Verdict in a few words, with how many layers were not looked at."""
    done = len(result.layers)
    holds, open_ = (
        len(result.layers_with(v)) for v in (LayerVerdict.HOLDS, LayerVerdict.UNDECIDED)
    )
    of = f" (of {result.whole})" if result.partial else ""
    if done == 1:
        words = "is undecided" if open_ else "holds" if holds else "does not hold"
        return f"theory {words} in {together(result)}{of}"
    first = "the first " if result.partial else ""
    undecided = f", {open_} undecided" if open_ else ""
    return f"theory holds in {holds} of {first}{done} layers{of}{undecided}"


def _headline(result: Inspection) -> str:
    parts = []
    if result.status is not Status.SUCCESS:
        parts.append(f"{result.status.value} {len(result.layers)} of {result.depth} layers.")
    parts += _verdicts(result)
    last = result.layers[-1]
    if result.lost is not None and len(result.layers) > 1:
        parts.append(
            f"Followed from the input alone, the law is off by more than {percent(PREDICTED)} from "
            f"layer {result.lost} on ({percent(_two(last.chain_covariance))} after layer "
            f"{last.layer})."
        )
    agreed, decided = _agreement(result)
    if decided:
        gives, where = "give", f"{agreed} of {count(decided, 'layer')}"
        if len(result.layers) == 1:
            gives, where = "give" if agreed else "do NOT give", together(result)
        parts.append(
            f"The head rates {gives} the sign of what attention does to the variance in {where}."
        )
    return " ".join(parts)


def _verdicts(result: Inspection) -> list[str]:
    """One sentence for each verdict that some layer has."""
    limit = percent(PREDICTED)
    told = {
        LayerVerdict.HOLDS: (
            f"the Gaussian theory holds: tokens stay near Gaussian, and each layer's mean and "
            f"covariance are predicted within {limit} of their size"
        ),
        LayerVerdict.MOMENTS: (
            "the theory predicts moments only, as the tokens are not near Gaussian"
        ),
        LayerVerdict.SHAPE: (
            "tokens stay near Gaussian, but the theory does not predict their moments"
        ),
        LayerVerdict.FAILS: "the theory predicts neither the moments nor the shape",
        LayerVerdict.UNDECIDED: (
            f"it is undecided whether the theory predicts the moments within {limit}: too few "
            f"sequences to tell, {_advice(result)}"
        ),
    }
    found = {v: result.layers_with(v) for v in told if result.layers_with(v)}
    parts = []
    rest = f" (of {result.whole}; the others were not looked at)" if result.partial else ""
    if len(found) > 1 and rest:
        parts.append(f"Looked at: {together(result)}{rest}.")
    if not {LayerVerdict.HOLDS, LayerVerdict.UNDECIDED} & set(found):
        none = "does not hold in" if len(result.layers) == 1 else "holds in none of"
        where = f"{none} {together(result)}" if rest else "holds in no layer"
        parts.append(f"The Gaussian theory as a whole (moments and shape) {where}.")
    for verdict, layers in found.items():
        where = f"{together(result)}{rest}" if len(found) == 1 else ranges(layers)
        parts.append(f"In {where} {told[verdict]}.")
    return parts


def _advice(result: Inspection) -> str:
    """How many sequences to take where some layer is undecided."""
    now, needed = result.problem.sequences, result.needed
    if needed > MANY * now:
        return f"take many more (now {now}), as the error is close to the limit"
    # Rounded up to a multiple of four: the floor is an estimate itself.
    return f"take at least {4 * math.ceil(max(needed, now + 1) / 4)} (now {now})"


def _facts(result: Inspection) -> list[Fact]:
    return [
        Fact("NOT predicted: tokens", _pointwise(result)),
        Fact("NOT predicted: layers", _missed(result)),
        Fact("NOT predicted: heads", _frozen(result)),
        Fact("shape", _shape(result)),
        Fact("covariance, layer by layer", _steps(result)),
        Fact("covariance, from the input", _chain(result)),
        Fact("attention and variance", _signs(result)),
        Fact("wall time", _work(result)),
    ]


def _pointwise(result: Inspection) -> str:
    theory = [facts.pointwise for facts in result.layers]
    best = [facts.affine for facts in result.layers]
    by = ", by layer" if len(theory) > 1 else ""
    return (
        f"where attention sends a single token: the affine map of theory explains "
        f"{span(theory)} of the variance of what attention adds (R²{by}), the best affine "
        f"map {span(best)}; the rest differs from token to token. The theory is about moments"
    )


def _missed(result: Inspection) -> str:
    missed = result.layers_with(LayerVerdict.SHAPE, LayerVerdict.FAILS)
    open_ = result.layers_with(LayerVerdict.UNDECIDED)
    odd = [k for k, shape in enumerate(result.shapes) if k and not near_gaussian(shape)]
    worst = max(result.layers, key=lambda facts: facts.step_covariance)
    parts = []
    if missed:
        before = "it" if len(missed) == 1 else "them"
        parts.append(f"mean or covariance of {ranges(missed)} from the moments before {before}")
    if open_:
        parts.append(f"undecided: the covariance of {ranges(open_)}, {_advice(result)}")
    if odd:
        parts.append(f"a Gaussian shape after {ranges(odd)}")
    lost = result.lost
    if lost is not None and len(result.layers) > 1:
        parts.append(f"moments from the input alone, from layer {lost} on")
    words = "; ".join(parts) or f"nothing: moments and shape are as predicted in {together(result)}"
    size, by_chance = (percent(_two(x)) for x in (worst.step_covariance, worst.floor))
    if len(result.layers) == 1:
        return f"{words}. The error of its covariance is {size} (sampling {by_chance})"
    return (
        f"{words}. The largest error of one layer's covariance is {size}, in layer {worst.layer} "
        f"(sampling {by_chance})"
    )


def _frozen(result: Inspection) -> str:
    table = result.heads
    frozen = [row for row in table.rows if table.frozen(row)]
    valid = sum(table.valid(row) for row in table.rows)
    words = (
        f"softmax over {table.count} tokens is close to its mean field in {valid} of "
        f"{len(table.rows)} heads"
    )
    if not frozen:
        return f"{words}; none is frozen (E a² > log N)"
    names = ", ".join(head_name(row) for row in frozen[:6])
    more = f" and {len(frozen) - 6} more" if len(frozen) > 6 else ""
    return f"{words}; {len(frozen)} are frozen on their best key (E a² > log N): {names}{more}"


def _shape(result: Inspection) -> str:
    told = [(i, shape["sliced"], shape["spread"]) for i, shape in enumerate(result.shapes)]
    first, last = told[0], told[-1]
    lowest = min(told[1:], key=lambda entry: entry[2].value)
    least = f"least {number(lowest[2].value, 3)} after layer {lowest[0]}, "
    if lowest is last:
        least = ""
    return (
        f"sliced distance {number(first[1].value, 2)} in the input and "
        f"{number(last[1].value, 2)} after layer {last[0]} (chance "
        f"{number(last[1].baseline, 2)}); Mahalanobis spread {number(first[2].value, 3)} in the "
        f"input, {least}{number(last[2].value, 3)} after layer {last[0]} (Gaussian "
        f"{number(last[2].baseline, 2)})"
    )


def _steps(result: Inspection) -> str:
    errors = [facts.step_covariance for facts in result.layers]
    floor = max(facts.floor for facts in result.layers)
    return (
        f"Bures distance of predicted and measured, relative to √tr S, from the measured moments "
        f"before each layer: {span(errors)} (sampling {error(floor)})"
    )


def _chain(result: Inspection) -> str:
    last = result.layers[-1]
    ratio = result.chain.traces[-1] / result.measured.traces[-1]
    return (
        f"from the moments of the input alone, after layer {last.layer}: off by "
        f"{error(last.chain_covariance)} (mean field {error(last.field_covariance)}), trace "
        f"{number(float(ratio), 3)} times the measured one"
    )


def _signs(result: Inspection) -> str:
    verdicts = {k: result.heads.verdict(k) for k in result.heads.layers}
    parts = []
    for word, past in (("contracting", "contracts"), ("expanding", "expands")):
        layers = [k for k, verdict in verdicts.items() if verdict == word]
        if layers:
            parts.append(f"{past} it in {ranges(layers)}")
    agreed, decided = _agreement(result)
    if not parts:
        return "by the sum of the head rates attention leaves the variance alone in every layer"
    if len(result.layers) == 1:
        same = "the same" if agreed else "the OPPOSITE"
        return (
            f"by the sum of the head rates attention {parts[0]}; the measured drift has {same} sign"
        )
    return (
        f"by the sum of the head rates attention {' and '.join(parts)}; the sign is that of the "
        f"measured drift in {agreed} of {count(decided, 'layer')}"
    )


def _agreement(result: Inspection) -> tuple[int, int]:
    """Layers in which the summed rate has the sign of the measured drift, of those not neutral."""
    decided = [x for x in result.layers if result.heads.verdict(x.layer) != "neutral"]
    return sum(x.drift * x.effective_rate > 0 for x in decided), len(decided)


def _work(result: Inspection) -> str:
    checked = "not compared with a reference library"
    if math.isfinite(result.numerics):
        checked = f"blocks equal the reference library to {error(result.numerics)}"
    return f"{duration(result.seconds)}; {checked}"


def _two(value: float) -> float:
    return float(f"{value:.2g}")


def _statement(result: Inspection) -> list[Fact]:
    p = result.problem
    shared = ", all with the same weights" if result.shared else ""
    norm = "before" if result.placement == "pre" else "after"
    layers = count(result.depth, "layer")
    if result.depth < result.whole:
        many = "" if result.depth == 1 else f"{result.depth} "
        layers = f"the first {many}of its {result.whole} layers"
    facts = [
        Fact("question", "where does the Gaussian theory hold in this model?"),
        Fact(
            "model",
            f"{result.model} ({result.family}): {layers}{shared}, "
            f"width {result.dim}, LayerNorm {norm} attention and feed-forward net, "
            f"{result.parameters / 1e6:.3g} million weights",
        ),
        Fact("source", f"`{p.model}`"),
        Fact("input", inputs(p.input) + (f", from `{p.data}`" if p.data else "")),
        Fact("tokens", f"{p.sequences} sequences of {p.tokens} tokens, seed {p.seed}"),
    ]
    if result.positional:
        facts.append(
            Fact("positions", "rotary positions or windows acted, which the theory leaves out")
        )
    if result.ignored:
        names = result.ignored.split(", ")
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        listed = ", ".join(names[:4])
        facts.append(Fact("left out", f"weights that are no part of the blocks: {listed}{more}"))
    return facts

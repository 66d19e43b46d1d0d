"""An inspection of a pretrained model in words: first where the theory holds, and where not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ...results.inspection import Inspection
from ...results.layers import PREDICTED
from ...status import LayerVerdict, Status
from ..wording import count, duration, error, number, percent
from . import snippets
from .base import Fact, View
from .inspection_tables import head_name, tables

__all__ = ["inputs", "ranges", "view"]

_LAYER = (
    "Attention adds a(x) = c + K u to a token that attends as u (the token itself, or LayerNorm of "
    "it where norms come first), with keys u ~ N(m, S), K = Σ_h V_h S B_h and c = b_O + "
    "Σ_h [V_h (m + S β_h) + W_O,h b_V,h], B_h = W_Kᵀ W_Q/√k, β_h = W_Kᵀ b_Q/√k, V_h = W_O W_V. One "
    "layer is a step, not a flow: Cov(x + a) = S_x + K C + (K C)ᵀ + K S Kᵀ with C = Cov(u, x)."
)

_FINITE = (
    "For N tokens softmax is averaged over finitely many keys: each head's K shrinks, tokens see "
    "themselves with weight w, and noise is added, which heads and all tokens of a sequence have "
    "in common in part; the mean of a sequence is followed through the layers as well. `chain` and "
    "`step` have all this, the mean field (N infinite) has not. LayerNorm is integrated exactly "
    "for Gaussian tokens, activations by Hermite series."
)


def view(result: Inspection) -> View:
    """Put an inspection into words."""
    p = result.problem
    done, holds = len(result.layers), len(result.layers_with(LayerVerdict.HOLDS))
    verdict = f"theory holds in {holds} of {done} layers" if result.answered else ""
    return View(
        title=p.name or f"{result.model}, {inputs(p.input)}",
        verdict=verdict or result.status.name,
        good=result.answered and holds > 0,
        headline=_headline(result),
        facts=tuple(_facts(result)),
        statement=tuple(_statement(result)),
        captions=_captions(result),
        notes=(_LAYER, _FINITE),
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


# -- what holds, and what does not -------------------------------------------------------


def _headline(result: Inspection) -> str:
    parts = []
    if result.status is not Status.SUCCESS:
        parts.append(f"{result.status.value} {len(result.layers)} of {result.depth} layers.")
    told = {
        LayerVerdict.HOLDS: (
            f"the Gaussian theory holds: tokens stay near Gaussian, and each layer's mean and "
            f"covariance are predicted within {percent(PREDICTED)} of their size"
        ),
        LayerVerdict.MOMENTS: "it predicts moments only, as the tokens are not near Gaussian",
        LayerVerdict.SHAPE: "tokens stay near Gaussian, but it does not predict their moments",
        LayerVerdict.FAILS: "it predicts neither the moments nor the shape",
    }
    holds = result.layers_with(LayerVerdict.HOLDS)
    if not holds:
        parts.append("The Gaussian theory as a whole (moments and shape) holds in no layer.")
    for verdict, words in told.items():
        layers = result.layers_with(verdict)
        if layers:
            whole = "all layers" if len(layers) == result.depth else ranges(layers)
            parts.append(f"In {whole} {words}.")
    last = result.layers[-1]
    if result.lost is not None:
        parts.append(
            f"Followed from the input alone, the law is off by more than {percent(PREDICTED)} from "
            f"layer {result.lost} on ({percent(_two(last.chain_covariance))} after layer "
            f"{last.layer})."
        )
    agreed, decided = _agreement(result)
    if decided:
        parts.append(
            "The head rates give the sign of what attention does to the variance in "
            f"{agreed} of {count(decided, 'layer')}."
        )
    return " ".join(parts)


def _facts(result: Inspection) -> list[Fact]:
    return [
        Fact("NOT predicted: tokens", _pointwise(result)),
        Fact("NOT predicted: layers", _missed(result)),
        Fact("NOT predicted: heads", _frozen(result)),
        Fact("shape", _shape(result)),
        Fact("covariance, layer by layer", _steps(result)),
        Fact("covariance, whole stack", _chain(result)),
        Fact("attention and variance", _signs(result)),
        Fact("work", _work(result)),
    ]


def _pointwise(result: Inspection) -> str:
    theory = [facts.pointwise for facts in result.layers]
    best = [facts.affine for facts in result.layers]
    return (
        f"where attention sends a single token: the affine map of theory explains "
        f"{_span(theory)} of the variance of what attention adds (R², by layer), the best affine "
        f"map {_span(best)}; the rest differs from token to token. The theory is about moments"
    )


def _span(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{number(low, 2)} to {number(high, 2)}"


def _missed(result: Inspection) -> str:
    missed = result.layers_with(LayerVerdict.SHAPE, LayerVerdict.FAILS)
    odd = result.layers_with(LayerVerdict.MOMENTS, LayerVerdict.FAILS)
    worst = max(result.layers, key=lambda facts: facts.step_covariance)
    parts = []
    if missed:
        parts.append(f"mean or covariance of {ranges(missed)} from the moments before them")
    if odd:
        parts.append(f"a Gaussian shape after {ranges(odd)}")
    lost = result.lost
    if lost is not None:
        parts.append(f"moments from the input alone, from layer {lost} on")
    words = f"{'; '.join(parts)}. " if parts else "none is missed. "
    return (
        f"{words}The largest error of one layer's covariance is "
        f"{percent(_two(worst.step_covariance))}, in layer {worst.layer}"
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
    return (
        f"sliced distance {number(first[1].value, 2)} in the input and "
        f"{number(last[1].value, 2)} after layer {last[0]} (chance "
        f"{number(last[1].baseline, 2)}); Mahalanobis spread {number(first[2].value, 3)}, least "
        f"{number(lowest[2].value, 3)} after layer {lowest[0]}, {number(last[2].value, 3)} at the "
        f"end (Gaussian {number(last[2].baseline, 2)})"
    )


def _steps(result: Inspection) -> str:
    errors = [facts.step_covariance for facts in result.layers]
    floor = max(facts.floor for facts in result.layers)
    return (
        f"Bures distance of predicted and measured, relative to √tr S, from the measured moments "
        f"before each layer: {error(min(errors))} to {error(max(errors))} (sampling "
        f"{error(floor)})"
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
    first = "" if p.layers is None else "the first "
    facts = [
        Fact("question", "where does the Gaussian theory hold in this model?"),
        Fact(
            "model",
            f"{result.model} ({result.family}): {first}{count(result.depth, 'layer')}{shared}, "
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


def _captions(result: Inspection) -> dict[str, str]:
    where = (
        "sums before the last LayerNorm" if result.placement == "post" else "what attention sees"
    )
    return {
        "shape": (
            "Statistics of the shape of the tokens after each layer (0 is the input). The band is "
            f"what Gaussian clouds of the same size have by chance; open markers: {where}."
        ),
        "spectrum": (
            "Leading eigenvalues of the covariance after some layers: measured, and predicted from "
            "the moments of the input alone."
        ),
        "heads": (
            "Rate of each head, corrected for finitely many tokens: blue stabilises, red expands "
            "the variance. Hatched: the theory is not valid there (crossed: frozen on the best "
            "key)."
        ),
        "drift": (
            "What attention does to the variance to first order: sum of the head rates, and what "
            "was measured."
        ),
        "variance": (
            "Total variance after each layer: measured, and predicted from the moments of the "
            "input alone, for finitely many tokens and in the mean field."
        ),
        "errors": (
            "Error of the predicted covariance after each layer, relative to its size. The grey "
            "line is what drawing so many tokens errs by itself; a prediction that starts from "
            "measured moments has part of that error in common, and may lie below it."
        ),
    }

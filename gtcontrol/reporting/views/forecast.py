"""A forecast of the variance against depth in words."""

from __future__ import annotations

import math

from ...results.forecast import Forecast
from ..wording import count, number
from .base import Fact, View

__all__ = ["view"]

_NORMED = (
    "Attention, LayerNorm and activations act on Gaussian tokens: the law of the input is followed "
    "through all layers without fitting anything on the way. A normalised token has "
    "|LN(x) - b| ≤ √d max|w|, whatever x is."
)

_RAW = (
    "Residual layers without norms take N(m, S) to covariance (I + h M) S (I + h M)ᵀ with "
    "M = A + Σ_h V_h S B_h. What finitely many tokens attend to lies in their convex hull, so that "
    "they grow at most exponentially with depth."
)


def view(result: Forecast) -> View:
    """Put a forecast into words."""
    cloud = "infinitely many (mean field)" if result.tokens is None else str(result.tokens)
    return View(
        title=f"{result.model}: variance against depth",
        verdict=f"the variance {result.course}",
        good=True,
        headline=_headline(result),
        facts=tuple(_facts(result)),
        statement=(
            Fact("model", result.model),
            Fact("tokens", cloud),
            Fact("norms", _NORMS[result.placement]),
            Fact("layers", f"{result.layers} ({result.trained} in the model)"),
        ),
        captions={"variance": "Predicted total variance after each layer (log scale)."},
        notes=(_RAW if result.placement == "none" else _NORMED,),
        layered=True,
    )


_NORMS = {
    "pre": "before attention and feed-forward net",
    "post": "after attention and feed-forward net",
    "none": "none",
}


def _headline(result: Forecast) -> str:
    start, end = (number(float(result.traces[i]), 4) for i in (0, -1))
    words = f"Over {count(result.layers, 'layer')} tr S goes from {start} to {end}"
    return f"{words}; it {result.course}. {_reason(result)}"


def _reason(result: Forecast) -> str:
    if result.placement == "post":
        bound = number(result.bound, 4)
        return f"LayerNorm at the end of each block bounds it by {bound}, at any depth."
    if result.placement == "pre":
        return "LayerNorm bounds what a block adds: √tr S grows at most linearly with depth."
    if result.course == "blows up" and result.tokens is None:
        return "Without norms nothing bounds the mean field; finite clouds grow exponentially."
    return "There is no norm: nothing is said about more layers than these."


def _facts(result: Forecast) -> list[Fact]:
    facts = [
        Fact("growth of log tr S per layer, at the end", number(result.rate, 3)),
        Fact("largest eigenvalue at the end", number(float(result.largest[-1]), 4)),
        Fact("score variance of the worst head", number(float(result.logit_variance.max()), 3)),
    ]
    if result.strained_from is not None and result.tokens is not None:
        logs = number(math.log(result.tokens), 3)
        words = f"from layer {result.strained_from} on above log N = {logs}"
        facts.append(Fact("few keys have the weight", words))
    if result.ratios is not None:
        k = len(result.ratios) - 1
        facts.append(Fact(f"predicted over measured tr S after {count(k, 'layer')}",
                          number(float(result.ratios[-1]), 3)))  # fmt: skip
    return facts

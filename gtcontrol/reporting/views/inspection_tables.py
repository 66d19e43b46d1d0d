"""Tables of an inspection: layers, shapes, errors of the moments, heads."""

from __future__ import annotations

from ...results.gaussianity import Gaussianity
from ...results.heads import HeadFacts
from ...results.inspection import Inspection
from ...results.layers import (
    NEAR_LEADING,
    NEAR_SLICED,
    PREDICTED,
    beyond_chance,
    near_gaussian,
)
from ..wording import error, number
from .base import Table

__all__ = ["SHAPE_WORDS", "head_name", "tables"]

#: Name of a statistic -> what it is called in tables and figures.
SHAPE_WORDS = {
    "sliced": "sliced W₂ / deviation",
    "leading": "sliced W₂, leading directions",
    "spread": "Mahalanobis spread",
    "skewness": "Mardia skewness / expected",
}

#: Rows of the table of heads.
HEADS = 12


def tables(result: Inspection) -> tuple[Table, ...]:
    """Layers, shapes, predicted moments, and the heads that matter most."""
    return (_layer_table(result), _shape_table(result), _error_table(result), _heads(result))


def head_name(row: HeadFacts) -> str:
    """Layer and head: "3.2"."""
    return f"{row.layer}.{row.head}"


def _layer_table(result: Inspection) -> Table:
    rows = []
    for facts, verdict in zip(result.layers, result.verdicts, strict=True):
        heads = result.heads.of_layer(facts.layer)
        frozen = sum(result.heads.frozen(row) for row in heads)
        rows.append(
            (
                str(facts.layer),
                verdict.name.lower(),
                _near(result.shapes[facts.layer]),
                f"{error(facts.step_covariance)} ({error(facts.floor)})",
                error(facts.step_mean),
                f"{facts.effective_rate:+.3f}",
                f"{facts.drift:+.3f}",
                result.heads.verdict(facts.layer),
                f"{frozen} of {len(heads)}",
                f"{number(facts.pointwise, 2)} / {number(facts.affine, 2)}",
            )
        )
    return Table(
        "Layers",
        (
            "layer",
            "theory",
            "near Gaussian (excess: sliced, leading)",
            "covariance (sampling)",
            "mean",
            "rate",
            "drift",
            "attention",
            "frozen heads",
            "R² of a token",
        ),
        tuple(rows),
        "Theory: holds, moments only, shape only, fails, or undecided. Near Gaussian: the excess "
        "√(value² − chance²) of the sliced distance over what Gaussian clouds of this size have (0 "
        f"if less) is at most {NEAR_SLICED:g}, over the leading directions {NEAR_LEADING:g}. "
        "Covariance and mean: error of one layer's prediction from the measured moments before "
        f"it, relative to √tr S; up to {PREDICTED:g} they count as predicted, and as missed if the "
        f"mean or √(covariance² − sampling²) is beyond {PREDICTED:g}; in between: undecided, take "
        "more sequences. "
        "Rate: what the heads together should do to the variance, to first order; drift: what "
        "was measured. R²: theory / best affine map, of what attention adds to single tokens.",
    )


def _near(shape: Gaussianity) -> str:
    excess = ", ".join(error(value) for value in beyond_chance(shape))
    return f"{'yes' if near_gaussian(shape) else 'no'} ({excess})"


def _shape_table(result: Inspection) -> Table:
    rows = []
    for i, shape in enumerate(result.shapes):
        cells = [
            f"{number(s.value, 3)} ({number(s.baseline, 2)}; {_score(s.score(shape.draws))})"
            for s in (shape[name] for name in SHAPE_WORDS)
        ]
        where = "input" if i == 0 else f"layer {i}"
        inside = "none" if i == 0 else _inside(result, i)
        rows.append((where, *cells, inside))
    beside = "before the last LayerNorm" if result.placement == "post" else "what attention sees"
    return Table(
        f"Are the tokens Gaussian? ({result.shapes[0].count} of them)",
        ("after", *SHAPE_WORDS.values(), f"{beside}: sliced, spread"),
        tuple(rows),
        "Value (mean of Gaussian clouds of this size; distance from it in their standard "
        f"deviations, either sign; beyond ±{number(result.shapes[0].threshold, 2)} it is no "
        "chance). In many dimensions sliced distances are small whatever the law is; the spread is "
        "what sees heavy tails.",
    )


def _inside(result: Inspection, layer: int) -> str:
    shape = result.inner[layer - 1]
    return f"{number(shape['sliced'].value, 3)}, {number(shape['spread'].value, 3)}"


def _score(value: float) -> str:
    return f"{value:+.1f}" if abs(value) < 1000 else f"{value:+.2g}".replace("e+0", "e")


def _error_table(result: Inspection) -> Table:
    rows = []
    logs = result.log_errors
    for facts in result.layers:
        k = facts.layer
        measured, chain = result.measured, result.chain
        rows.append(
            (
                str(k),
                error(facts.chain_covariance),
                error(facts.step_covariance),
                error(facts.field_covariance),
                error(facts.floor),
                f"{error(facts.chain_mean)} / {error(facts.field_mean)}",
                f"{number(float(chain.traces[k] / measured.traces[k]), 3)}",
                f"{number(float(measured.ranks[k]), 3)} / {number(float(chain.ranks[k]), 3)}",
                error(float(logs[k])),
            )
        )
    leading = result.measured.spectra.shape[1]
    return Table(
        "Predicted against measured moments",
        (
            "layer",
            "chain",
            "step",
            "mean field",
            "sampling",
            "mean, chain / mean field",
            "trace, chain / measured",
            "effective rank, measured / chain",
            "log error of eigenvalues",
        ),
        tuple(rows),
        "Bures distance of the covariances over √tr S. Chain: from the input through all layers. "
        "Step: from the measured moments before the layer. Sampling: the distance that drawing so "
        "many tokens makes, of Gaussian ones or, if larger, as told by how much the sequences "
        f"differ. Log error: mean of |log λ' − log λ| over the {leading} "
        "largest eigenvalues, chain.",
    )


def _heads(result: Inspection) -> Table:
    table = result.heads
    some = sorted(table.rows, key=lambda row: -abs(row.effective_rate))[:HEADS]
    rows = []
    for row in some:
        stamp = "frozen" if table.frozen(row) else ("valid" if table.valid(row) else "strained")
        rows.append(
            (
                head_name(row),
                f"{row.effective_rate:+.3f}",
                f"{row.rate:+.3f}",
                number(row.gain, 2),
                f"{row.balance_V:+.2f}",
                f"{row.balance_B:+.2f}",
                number(row.logit_variance, 3),
                number(row.self_weight, 2),
                stamp,
            )
        )
    return Table(
        f"Heads that change the variance most ({len(some)} of {len(table.rows)})",
        (
            "layer.head",
            f"rate, N = {table.count}",
            "rate, mean field",
            "gain",
            "sign of V",
            "sign of B",
            "E a²",
            "weight on itself",
            "theory",
        ),
        tuple(rows),
        "Layers and heads count from 1: head 1 is `attention.V(0)` of its block. "
        "Rate: relative growth of the variance per layer, to first order; negative is stabilising. "
        "Signs: from -1 (negative) to 1 (positive) on the data; opposite signs contract, equal "
        f"signs expand. Valid: E a² below log N - 2 = {number(table.log_count - 2, 3)}, and "
        f"negligible weight on itself; frozen: E a² above log N = {number(table.log_count, 3)}.",
    )

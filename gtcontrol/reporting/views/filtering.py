"""A run of the filter in words."""

from __future__ import annotations

import math

from ...results.filter_errors import ErrorBand
from ...results.filtering import Consistency, FilterRun
from ...status import Status
from ..wording import count, duration, error, matrix, number, percent
from . import snippets
from .base import Fact, Table, View
from .statements import law_fact

__all__ = ["view"]

#: Vectors and matrices with more entries than this are described, not written out.
LARGEST = 16

_NOTES = (
    (
        "The Transformer has two heads: V₁ = v I with B₁ = −CᵀR⁻¹C/(2v), and uniform attention "
        "(B₂ = 0) with V₂ = −v I − ½ S CᵀR⁻¹C, whose average is the mean of the tokens; "
        "b = S CᵀR⁻¹y is its only input. `gt.filter_schedule` returns it."
    ),
    (
        "Tokens take S from their own covariance. Errors are root mean squares in time: of the "
        "mean |m_N − m|/√(tr S), of the covariance |S_N − S|/|S|."
    ),
)

_NOISE = (
    "Process noise acts without any noise: A gains ½ Q S⁻¹ and V₂ loses it, so that tokens move by "
    "½ Q S⁻¹(x − m)."
)


def view(result: FilterRun) -> View:
    """Put a run of the filter into words."""
    p = result.problem
    tables = [_ends(result), _consistency(result.consistency)]
    if result.token_errors:
        tables = [_token_table(result, name) for name in ("mean", "covariance")] + tables
    return View(
        title=p.name or f"Filter, {count(p.model.dim, 'state')}",
        verdict=result.status.name,
        good=result.answered,
        headline=_headline(result),
        facts=tuple(_facts(result)),
        statement=tuple(_statement(result)),
        captions=_captions(result),
        notes=_NOTES if p.model.noise is None else (*_NOTES, _NOISE),
        noise=p.model.noise is not None,
        tables=tuple(tables),
        command=snippets.command(p.name),
        code=snippets.filtering(p),
    )


def _headline(result: FilterRun) -> str:
    agreed = (
        "The law of the tokens is the Kalman-Bucy filter of python-control, with a relative "
        f"difference of {error(result.agreement)}."
    )
    if result.status is Status.DISAGREEMENT:
        return f"{result.status.value} The relative difference is {error(result.agreement)}."
    ending = "" if result.status is Status.SUCCESS else f" {result.status.value}"
    if not result.token_errors:
        return agreed + ending
    last = result.token_errors[-1]
    return (
        f"{agreed} {last.count} tokens under softmax are off by {error(last.mean.median)} standard "
        f"deviations in the mean and {percent(_two(last.covariance.median))} in the "
        f"covariance.{ending}"
    )


def _two(value: float) -> float:
    return float(f"{value:.2g}")


def _facts(result: FilterRun) -> list[Fact]:
    facts = [
        Fact("status", f"{result.status.name}: {result.status.value}"),
        Fact(
            "flow and python-control",
            f"means differ by {error(result.mean_agreement)}, covariances by "
            f"{error(result.covariance_agreement)} (largest, relative)",
        ),
    ]
    for name, slope in (("mean", result.mean_slope), ("covariance", result.covariance_slope)):
        if slope is not None:
            facts.append(
                Fact(f"error of the {name}", f"falls like N^({_slope(slope)}); sampling N^(-0.5)")
            )
    facts += [Fact("why", _why(result)), Fact("softmax", _softmax(result))]
    facts += [
        Fact("innovations", _innovations(result.consistency)),
        Fact(
            "work",
            f"{duration(result.seconds)}; integration of the tokens is exact to "
            f"{error(result.token_resolution)}",
        ),
    ]
    return facts


def _slope(slope: ErrorBand) -> str:
    return f"{number(slope.median, 2)}, draws {number(slope.low, 2)} to {number(slope.high, 2)}"


def _why(result: FilterRun) -> str:
    share = result.mean_share, result.covariance_share
    if share[0] is None or share[1] is None or not result.token_errors:
        return result.prediction_note
    last = result.token_errors[-1]
    predicted = last.mean_predicted or 0.0
    return (
        f"the predicted squared error of the mean is {_split(share[0])}, of the covariance "
        f"{_split(share[1])}; measured over predicted with {last.count} tokens: "
        f"{number(last.mean.rms / predicted, 2) if predicted else 'none'} in the mean "
        f"({result.prediction_note.rstrip('.')})"
    )


def _split(share: float) -> str:
    """Which part of an error is of what."""
    if share >= 0.9995:
        return "all of the softmax over finitely many keys"
    return f"{percent(_two(share))} of the softmax and {percent(_two(1 - share))} of the draw"


def _softmax(result: FilterRun) -> str:
    logs = math.log(max(result.problem.counts))
    return (
        f"logit variance up to {number(result.logit_variance, 3)} (log N = {number(logs, 3)}); "
        f"λ_max(S CᵀR⁻¹C)/(2v) up to {number(result.tilt, 3)}, and the theory of small errors "
        "holds below 1"
    )


def _innovations(c: Consistency) -> str:
    words = "consistent" if c.white else "NOT consistent"
    return (
        f"{words}: mean square {number(c.innovation, 3)} in [{number(c.innovation_low, 3)}, "
        f"{number(c.innovation_high, 3)}], correlation {number(c.correlation, 2)} within "
        f"±{number(c.correlation_bound, 2)}"
    )


def _statement(result: FilterRun) -> list[Fact]:
    p = result.problem
    y = p.measurements
    ways = [
        word
        for word, used in (
            ("antithetic", p.antithetic),
            ("moment-matched", p.moment_matched),
        )
        if used
    ]
    queries = "from the mean of the tokens" if p.centred else "plain"
    facts = [
        Fact("question", "is attention a Kalman-Bucy filter, and how many tokens does it take?"),
        Fact("model", "dx = A x dt + dw, dy = C x dt + dv"),
    ]
    facts += [
        Fact(name, matrix(value) if value.size <= LARGEST else f"shape {value.shape}")
        for name, value in (
            ("A", p.model.A),
            ("C", p.model.C),
            ("R", p.model.R),
            ("Q", p.model.noise),
        )
        if value is not None
    ]
    truth = "drawn from a known state" if y.states is not None else "given"
    forced = ", with known forcing" if y.forcing is not None else ""
    facts += [
        law_fact("start", p.start),
        Fact(
            "measurements",
            f"{y.values.shape[1]} in each of {count(len(y), 'interval')} up to "
            f"t = {number(y.horizon)}, {truth}{forced}",
        ),
        Fact("attention", f"V = {number(p.value)} I, queries {queries}"),
        Fact(
            "tokens",
            f"{', '.join(map(str, p.counts))}; {count(p.seeds, 'draw')} of each, "
            f"{' and '.join(ways) or 'independent'}"
            + ("" if p.seed is None else f", seed {p.seed}"),
        ),
    ]
    return facts


def _token_table(result: FilterRun, name: str) -> Table:
    """Errors of the mean, or of the covariance, for each N."""
    rows = []
    for e in result.token_errors:
        seen: ErrorBand = getattr(e, name)
        predicted: float | None = getattr(e, f"{name}_predicted")
        rows.append(
            (
                str(e.count),
                f"{error(seen.median)} ({error(seen.low)} to {error(seen.high)})",
                error(seen.rms),
                "none" if predicted is None else error(predicted),
                error(getattr(e, f"{name}_sampling")),
            )
        )
    note = result.prediction_note
    return Table(
        f"Tokens against the filter: error of the {name}",
        ("N", "median (10 % to 90 %)", "root mean square", "predicted", "sampling error"),
        tuple(rows),
        "Over the draws. The sampling error is that of N independent draws from the law itself "
        f"at each time. Prediction: {note}",
    )


def _ends(result: FilterRun) -> Table:
    """State by state at the horizon."""
    states = result.problem.measurements.states
    clouds = [c for c in result.clouds if len(c.means)]
    header = ["state"]
    header += ["truth"] if states is not None else []
    header += ["python-control", "± standard deviation", "flow − python-control"]
    header += [f"{clouds[-1].count} tokens (first draw)"] if clouds else []
    rows = []
    for i in range(min(result.problem.model.dim, LARGEST)):
        deviation = math.sqrt(max(float(result.kalman_covariances[-1, i, i]), 0.0))
        row = [str(i + 1)]
        row += [number(float(states[-1, i]), 5)] if states is not None else []
        row += [
            number(float(result.kalman_means[-1, i]), 5),
            number(deviation, 3),
            error(float(result.flow_means[-1, i] - result.kalman_means[-1, i])),
        ]
        row += [number(float(clouds[-1].means[0, -1, i]), 5)] if clouds else []
        rows.append(tuple(row))
    return Table(f"Estimates at t = {number(float(result.times[-1]))}", tuple(header), tuple(rows))


def _consistency(c: Consistency) -> Table:
    rows = [
        (
            "mean square of the innovations",
            number(c.innovation, 4),
            f"{number(c.innovation_low, 4)} to {number(c.innovation_high, 4)}",
        ),
        (
            "correlation of consecutive innovations",
            number(c.correlation, 2),
            f"within ±{number(c.correlation_bound, 2)}",
        ),
    ]
    if c.state is not None and c.state_low is not None and c.state_high is not None:
        rows.append(
            (
                "(x − m)ᵀ S⁻¹ (x − m) of the true state at the horizon",
                number(c.state, 4),
                f"{number(c.state_low, 4)} to {number(c.state_high, 4)}",
            )
        )
    return Table(
        "Is the filter as wrong as it says?",
        ("statistic", "value", "expected (95 %)"),
        tuple(rows),
        "Of python-control's filter, which is that of the flow.",
    )


def _captions(result: FilterRun) -> dict[str, str]:
    tokens = f" and the mean of {result.clouds[-1].count} tokens" if result.token_errors else ""
    truth = "The true state, the" if result.problem.measurements.states is not None else "The"
    captions = {
        "states": (
            f"{truth} estimate of python-control with two standard deviations{tokens} "
            "(first draw), state by state."
        )
    }
    if len(result.token_errors) > 1:
        captions["errors"] = (
            "Errors of the tokens against their number: medians and the band between the 10 % and "
            "90 % quantiles of the draws, and, dashed, the error of as many independent draws from "
            "the law itself."
        )
    captions["innovations"] = (
        "Above: measurement minus prediction in standard deviations; 95 % of white innovations "
        "stay between the dashed lines. Below: total variance of the estimate."
    )
    return captions

"""Clouds of tokens against the Gaussian law, in words."""

from __future__ import annotations

import math

import numpy as np

from ...feedforward import FeedForward
from ...results.deviations import Leaving, Slope
from ...results.stamps import freezing
from ...results.validation import BIAS, Validation
from ...status import Status, TokenVerdict
from ..wording import count, duration, error, number, percent
from . import snippets
from .base import Fact, View
from .models import LAYER
from .statements import law_fact
from .validation_tables import departure_table, error_table, shape_table, stamp_table

__all__ = ["view"]

_NOTES = (
    (
        "Errors are root mean squares in time over the window that is named: of the mean "
        "|m_N − m|/√(tr S), of the covariance |S_N − S|/|S| (Frobenius), of the law W₂/√(tr S). "
        "They are against the Gaussian law from the start, and against the one that starts from "
        "the cloud's own mean and covariance, which leaves the luck of the draw out."
    ),
    (
        "Logits of a query x over keys have the variance a² = |S^{1/2}(Bx + β)|². Softmax over N "
        "tokens is close to its mean field while the mean of a² stays below log N − 2; beyond "
        "log N a few tokens carry all the weight. A token scores itself by (Bx + β)·(x − m) more "
        "than an average key: where B > 0, in many dimensions, tokens attend to themselves."
    ),
)

#: A tilt this near to 1 is 1, up to the error of the law.
AT_ONE = 1e-6

_PAIRS = (
    "Tokens were drawn in opposite pairs. The mirror image of a token is no independent key: where "
    "B < 0 it draws attention as the token itself does where B > 0, and biases the covariance."
)

_MATCHED = (
    "The draws have the mean and the covariance of the start exactly. That takes out most of the "
    "error of independent draws, whose sampling error is given for comparison only; left are "
    "higher moments, of order N^(-1/2), and the bias of softmax, of order 1/N, so that a slope "
    "between -0.5 and -1 is no surprise."
)

_LINEARISED = (
    "The feed-forward layer is not affine, so that no law stays Gaussian: the law is that of "
    "statistical linearisation, exact for the rates of mean and covariance while tokens are "
    "Gaussian. What remains as N grows is the loss of shape."
)


def view(result: Validation) -> View:
    """Put a validation into words."""
    p = result.problem
    tables = [error_table(result)] if result.errors else []
    tables += [stamp_table(result)]
    if result.shapes:
        tables.append(shape_table(result))
    if result.departures:
        tables.append(departure_table(result))
    return View(
        title=p.name or f"Clouds of tokens, dimension {p.start.dim}",
        verdict=result.verdict.name if result.answered else result.status.name,
        good=result.answered and result.verdict is not TokenVerdict.BIASED,
        headline=_headline(result),
        facts=tuple(_facts(result)),
        statement=tuple(_statement(result)),
        captions=_captions(result),
        notes=(*_NOTES, *(note for note, on in _asides(result) if on)),
        noise=p.schedule.noisy,
        model=LAYER if p.feedforward is not None else None,
        tables=tuple(tables),
        command=snippets.command(p.name),
        code=snippets.validating(p),
    )


def _asides(result: Validation) -> tuple[tuple[str, bool], ...]:
    p = result.problem
    return (
        (_PAIRS, p.antithetic),
        (_MATCHED, p.moment_matched),
        (_LINEARISED, p.feedforward is not None),
    )


def _headline(result: Validation) -> str:
    if not result.answered:
        return f"{result.status.value} {result.verdict.value}"
    if not result.errors:
        return result.verdict.value
    last = result.errors[-1]
    words = (
        f"{last.count} tokens miss the covariance by {percent(_two(last.covariance[1]))} and the "
        f"mean by {error(last.mean[1])} deviations up to t = {number(result.compared_until, 4)}."
    )
    return f"{result.verdict.value} {words}"


def _two(value: float) -> float:
    return float(f"{value:.2g}")


def _facts(result: Validation) -> list[Fact]:
    facts = [
        Fact("verdict", f"{result.verdict.name}: {result.verdict.value}"),
        Fact("clouds", _arrival(result)),
        *_frozen(result),
        Fact("the Gaussian law", _law(result)),
    ]
    chance = "independent draws" if result.problem.moment_matched else "sampling"
    slopes = {
        "error of the covariance": result.covariance_slope,
        "error of the mean": result.mean_slope,
    }
    if not result.problem.moment_matched:  # else the two laws are one
        slopes["covariance, own moments"] = result.matched_slope
    for name, slope in slopes.items():
        if slope is not None:
            facts.append(Fact(name, f"falls like N^({_slope(slope)}); {chance} N^(-0.5)"))
    most = len(result.problem.counts) - 1
    if result.logit_variances.size:
        facts.append(Fact("attention at the start", result.stamps(most)[0].words))
        facts.append(Fact("attention stays clean", _clean(result, most)))
        facts.append(Fact("tilt", _tilt(result)))
    if result.errors and result.errors[-1].count == result.counts[-1]:
        facts += _excess(result)
    leaving = result.departures[-1] if result.departures else None
    if leaving is not None and leaving.departed:
        facts.append(Fact("clouds leave", _leaving(leaving)))
    if result.closures:
        facts.append(Fact("corrected law", _corrected(result)))
    if result.fullest is not None:
        facts.append(Fact("longest token", _longest(result, *result.fullest)))
    if result.shapes:
        facts.append(Fact("shape", _shape(result)))
    if result.untested:
        facts.append(Fact("shape not tested", _untested(result)))
    resolution = (
        "" if result.problem.layers is not None
        else f"; integration of the tokens is exact to {error(result.resolution)}"
    )  # fmt: skip
    facts.append(Fact("work", f"{duration(result.seconds)}{resolution}"))
    return facts


def _slope(slope: Slope) -> str:
    if not math.isfinite(slope.low):
        return number(slope.value, 2)
    return f"{number(slope.value, 2)}, 95 % {number(slope.low, 2)} to {number(slope.high, 2)}"


def _arrival(result: Validation) -> str:
    whole = sum(c.status is Status.SUCCESS for c in result.clouds)
    asked = result.problem.seeds * len(result.problem.counts)
    words = f"{whole} of {asked} reached the horizon"
    if len(result.clouds) < asked:
        words += f"; {asked - len(result.clouds)} were not moved to the end, and are left out"
    return words


def _frozen(result: Validation) -> list[Fact]:
    """Why clouds ran out of steps, if their scores are frozen."""
    short = (Status.STEP_LIMIT, Status.STEP_SIZE)
    ended = [c for c in result.clouds if c.status in short and len(c)]
    words = (freezing(c.count, float(c.logit_variances[-1])) for c in ended)
    return [Fact("why not all", w) for w in words if w][:1]


def _law(result: Validation) -> str:
    law = result.law
    window = f"errors are compared up to t = {number(result.compared_until, 4)}"
    if law.status is Status.BLOW_UP:
        return f"blows up at t = {number(law.end, 8)}; {window}, half of that, and the tokens go on"
    if math.isfinite(law.end):
        return f"ends at t = {number(law.end, 4)} ({law.status.name}); {window}"
    if math.isfinite(result.life):
        return (
            f"outgrows every possible cloud by t = {number(result.life, 4)}; {window}, half of "
            "that, and the tokens go on"
        )
    return f"reaches the horizon; {window}"


def _clean(result: Validation, i: int) -> str:
    n = result.problem.counts[i]
    until = result.clean_until(i)
    if math.isinf(until):
        return f"all the time, with {n} tokens"
    if until == 0.0:
        return f"not even at the start, with {n} tokens"
    return f"up to about t = {number(until, 4)}, with {n} tokens"


def _tilt(result: Validation) -> str:
    largest = float(np.max(result.tilts[: result.window]))
    words = "below 1, so that errors of many tokens fall like N^(-0.5)"
    if result.problem.moment_matched:
        words += " in the end, of moment-matched draws faster before"
    if abs(largest - 1) <= AT_ONE:
        words = "at 1, so that errors fall like N^(-0.5) times a power of log N"
    elif largest > 1:
        words = "from 1 on errors fall more slowly than N^(-0.5)"
    return f"σ_max(LᵀBL) up to {number(largest, 3)} where errors are compared: {words}"


def _excess(result: Validation) -> list[Fact]:
    told, n = result.excess, result.counts[-1]
    value = (
        f"{percent(_two(told.value))} beyond the Gaussian law at "
        f"t = {number(float(result.times[result.window - 1]), 4)}, with a standard error of "
        f"{percent(_two(told.error))} (median of {count(len(result.of_count(n)), 'cloud')} of "
        f"{n} tokens)"
    )
    own = f"{percent(_two(told.matched))} beyond the law of a cloud's own moments"
    if not told.tells(BIAS):
        own += (
            f", which is no measure of bias here: {n} tokens are few for "
            f"{count(round(told.spread * n) - 1, 'direction')}, the eigenvalues of their "
            "covariance are spread, and the law that starts from it overshoots"
        )
    facts = [Fact("systematic excess of variance", value)]
    if not result.problem.moment_matched:
        facts.append(Fact("excess over own moments", own))
    return facts


def _leaving(d: Leaving) -> str:
    side = "less" if 2 * d.below > d.departed else "more"
    when = "" if math.isinf(d.time) else f", half of them by t = {number(d.time, 3)}"
    return (
        f"{d.departed} of {d.clouds} clouds of {d.count} tokens leave the law of their own moments "
        f"(total variance off by 10 %, most with {side} of it){when}"
    )


def _longest(result: Validation, ratio: float, when: float) -> str:
    ends = [c.largest[-1] / c.bound[-1] for c in result.clouds if c.bound is not None and len(c)]
    return (
        f"up to {percent(_two(ratio))} of its bound after the start, at t = {number(when, 3)}; up "
        f"to {percent(_two(float(max(ends))))} at the end"
    )


def _corrected(result: Validation) -> str:
    pairs = zip(result.problem.counts, result.closure_errors, strict=True)
    apart = [f"{percent(_two(e))} with {n}" for n, e in pairs if math.isfinite(e)]
    return f"total variance differs from the median cloud by at most {', '.join(apart)} tokens"


def _shape(result: Validation) -> str:
    odd = [s for s in result.shapes if not s.gaussianity.gaussian]
    n = result.shapes[0].count
    if not odd:
        return f"{n} tokens are not told from Gaussian ones at {count(len(result.shapes), 'time')}"
    end = result.shapes[-1].gaussianity
    return (
        f"{n} tokens are told from Gaussian ones from t = {number(odd[0].time, 3)} on; at the end "
        f"the sliced distance is {percent(_two(end['sliced'].value))} of a deviation (chance "
        f"{percent(_two(end['sliced'].baseline))}), the Mahalanobis spread "
        f"{number(end['spread'].value, 3)} (Gaussian {number(end['spread'].baseline, 3)})"
    )


def _untested(result: Validation) -> str:
    return f"of the first cloud of {result.counts[-1]} tokens: {result.untested}"


def _statement(result: Validation) -> list[Fact]:
    p = result.problem
    ways = [
        word
        for word, used in (
            ("antithetic", p.antithetic),
            ("moment-matched", p.moment_matched),
        )
        if used
    ]
    form = "flow (continuous depth)"
    if p.layers is not None:
        form = f"{count(p.layers, 'residual layer')} of step {number(p.horizon / p.layers)}"
    own = (
        "attend to all others, not to themselves"
        if p.mask_self
        else "attend to all, themselves too"
    )
    return [
        Fact("question", "does the Gaussian law hold for finitely many tokens under softmax?"),
        law_fact("start", p.start),
        Fact("horizon", number(p.horizon)),
        Fact("model", form),
        Fact(
            "tokens",
            f"{', '.join(map(str, p.counts))}; {count(p.seeds, 'cloud')} of each, drawn "
            f"{' and '.join(ways) or 'independently'}"
            + ("" if p.seed is None else f", seed {p.seed}"),
        ),
        Fact("attention", f"tokens {own}"),
        *_layer(p.feedforward),
    ]


def _layer(layer: FeedForward | None) -> list[Fact]:
    if layer is None:
        return []
    return [Fact("feed-forward layer", f"{layer.name}, {count(layer.hidden, 'hidden unit')}")]


def _captions(result: Validation) -> dict[str, str]:
    flow = "" if result.continuous is None else ", and the flow that the layers approximate"
    diamonds, matched = "", result.problem.moment_matched
    if any(math.isfinite(d.time) for d in result.departures):
        diamonds = " Diamonds: when half of the clouds have left the law of their own moments."
    captions = {
        "variance": (
            "Total variance of the clouds (median, and the band between the 10 % and 90 % "
            f"quantiles) beside that of the Gaussian law{flow}.{diamonds}"
        )
    }
    if len(result.errors) > 1:
        captions["errors"] = (
            "Errors against the number of tokens up to "
            f"t = {number(result.compared_until, 4)}, beside the error of as many independent "
            "draws from the law itself"
            + (", whose moments do not match as those of these do." if matched else ".")
        )
    if result.shapes:
        captions["shape"] = (
            "Statistics of the shape of one cloud over time; the band is what Gaussian clouds of "
            "the same size and moments have by chance."
        )
    captions["stamps"] = (
        "What decides whether softmax over N tokens is like its mean field: predicted from the law "
        "(dashed) and measured in one cloud (solid)."
    )
    return captions

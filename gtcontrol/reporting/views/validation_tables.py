"""Tables of clouds of tokens against the Gaussian law."""

from __future__ import annotations

import math

from ...results.deviations import CountErrors
from ...results.validation import Validation
from ..wording import count, error, number
from .base import Table

__all__ = ["departure_table", "error_table", "shape_table", "stamp_table"]

_WORDS = {
    "sliced": "sliced W₂ / deviation",
    "leading": "the same, leading directions",
    "spread": "Mahalanobis spread",
    "skewness": "Mardia skewness / expected",
    "kurtosis": "Mardia kurtosis, relative excess",
}


def error_table(result: Validation) -> Table:
    """Errors for each number of tokens."""
    rows = [_error_row(e) for e in result.errors]
    failed = sum(e.failed for e in result.errors)
    left_out = f" {count(failed, 'cloud')} did not get that far." if failed else ""
    return Table(
        "Errors of the clouds",
        (
            "N",
            "covariance (10 % to 90 %)",
            "own moments",
            "sampling",
            "mean (10 % to 90 %)",
            "own moments",
            "sampling",
            "W₂/√(tr S)",
        ),
        tuple(rows),
        f"Medians over the clouds, up to t = {number(result.compared_until, 4)}. Sampling: the "
        f"error of N independent draws from the law itself at each time.{left_out}",
    )


def _error_row(e: CountErrors) -> tuple[str, ...]:
    return (
        str(e.count),
        _banded(e.covariance),
        error(e.matched_covariance[1]),
        error(e.covariance_floor),
        _banded(e.mean),
        error(e.matched_mean[1]),
        error(e.mean_floor),
        error(e.distance[1]),
    )


def _banded(band: tuple[float, float, float]) -> str:
    return f"{error(band[1])} ({error(band[0])} to {error(band[2])})"


def stamp_table(result: Validation) -> Table:
    """Attention at the start, half-way and at the end: predicted, and measured in one cloud."""
    rows = []
    for i, n in enumerate(result.problem.counts):
        stamps = result.stamps(i)
        first = next((c for c in result.clouds if c.count == n), None)
        for k in dict.fromkeys((0, (len(stamps) - 1) // 2, len(stamps) - 1)):
            measured = ("none", "none", "none")
            if first is not None and k < len(first):
                measured = (
                    number(float(first.logit_variances[k]), 3),
                    number(float(first.self_weights[k]), 2),
                    number(float(first.effective[k]), 3),
                )
            s = stamps[k]
            rows.append(
                (
                    str(n),
                    number(float(result.times[k]), 4),
                    f"{number(s.logit_variance, 3)} / {measured[0]}",
                    number(s.log_count, 3),
                    f"{number(s.self_weight, 2)} / {measured[1]}",
                    f"{number(s.effective, 3)} / {measured[2]}",
                    s.words,
                )
            )
    return Table(
        "Is softmax over N tokens like its mean field?",
        ("N", "t", "logit variance", "log N", "weight on itself", "effective tokens", "in words"),
        tuple(rows),
        "Predicted from the law / measured in one cloud, in the worst head. Clean below log N − 2.",
    )


def shape_table(result: Validation) -> Table:
    """Statistics of the shape of one cloud over time."""
    rows = []
    for s in result.shapes:
        g = s.gaussianity
        cells = [
            f"{number(x.value, 3)} ({number(x.baseline, 3)}; {x.score(g.draws):+.1f})"
            for x in g.statistics
        ]
        rows.append((number(s.time, 4), *cells, "yes" if g.gaussian else "NO"))
    g = result.shapes[0].gaussianity
    return Table(
        f"Are {result.shapes[0].count} tokens Gaussian?",
        ("t", *(_WORDS[x.name] for x in g.statistics), "Gaussian"),
        tuple(rows),
        "Value (mean of Gaussian clouds of this size; distance from it in standard deviations). "
        f"Distances beyond ±{number(g.threshold, 2)} are not chance.",
    )


def departure_table(result: Validation) -> Table:
    """When clouds leave the law of their own moments."""
    rows = []
    for d in result.departures:
        when = ["none" if math.isinf(t) else number(t, 3) for t in (d.low, d.time, d.high)]
        rows.append((str(d.count), f"{d.departed} of {d.clouds}", *when, f"{d.below}"))
    return Table(
        "When clouds leave the law of their own moments",
        ("N", "clouds", "10 %", "median", "90 %", "with less variance"),
        tuple(rows),
        "The first time at which total variances differ by 10 %.",
    )

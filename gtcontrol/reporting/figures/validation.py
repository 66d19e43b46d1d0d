"""Clouds of tokens against the Gaussian law: variance, errors, shape, stamps of validity."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator
from scipy.interpolate import PchipInterpolator

from ..._check import Array
from ...results.courses import CloudCourse, LawCourse
from ...results.stamps import CLEAN_MARGIN
from ...results.validation import Validation
from ...status import Status, TokenVerdict
from ..wording import number, percent
from .canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    decorate,
    figure,
    plain_ticks,
    scale_variance,
    title,
)

__all__ = ["pictures"]

#: Colours of numbers of tokens, from the smallest to the largest.
COLOURS = (SKY, ORANGE, RED, PURPLE, GREEN)

#: Points between two times of observation at which a law that blows up is drawn, and how near to
#: its end, relatively.
FINER, NEAR = 8, 1e-4

#: Variances of logits that spread by more than this factor are drawn on a logarithmic axis.
WIDE = 30.0

#: Variance beyond this multiple of the largest cloud's is off the picture.
ABOVE = 3.0


def pictures(result: Validation) -> dict[str, Figure]:
    """Figures "variance", "errors" (several numbers of tokens), "shape" and "stamps"."""
    made = {"variance": _variance(result)}
    if len(result.errors) > 1:
        made["errors"] = _errors(result)
    if result.shapes:
        made["shape"] = _shape(result)
    made["stamps"] = _stamps(result)
    return made


def _colour(i: int) -> str:
    return COLOURS[i % len(COLOURS)]


def _marks(result: Validation, ax: Axes) -> None:
    """Mark the blow-up of the law."""
    if math.isfinite(result.blow_up_time):
        ax.axvline(result.blow_up_time, color=BLACK, ls=":", lw=1.4, label="law blows up")
    ax.set_xlim(0.0, result.problem.horizon)


# -- total variance ----------------------------------------------------------------------


def _variance(result: Validation) -> Figure:
    fig = figure(9.0, 5.0)
    title(fig, _variance_title(result))
    ax = fig.add_subplot()
    times = result.times
    seen = [result.law.traces]
    for i, n in enumerate(result.counts):
        clouds = result.of_count(n)
        k = min(len(c) for c in clouds)
        traces = np.array([c.traces[:k] for c in clouds])
        low, middle, high = np.quantile(traces, [0.1, 0.5, 0.9], axis=0)
        ax.fill_between(times[:k], low, high, color=_colour(i), alpha=0.2, lw=0)
        ax.plot(times[:k], middle, color=_colour(i), lw=2.0, label=f"{n} tokens")
        seen.append(middle)
    kind = "Gaussian layers" if result.problem.layers is not None else "Gaussian flow"
    law = result.law.traces
    ax.plot(
        *_finer(result.law, times), color=BLACK, lw=2.0, ls="--",
        marker="" if result.problem.layers is None else "o", ms=3.5, label=kind,
    )  # fmt: skip
    if result.continuous is not None:
        ax.plot(*_finer(result.continuous, times), color=GREY, lw=1.6, label="Gaussian flow")
        if math.isfinite(result.continuous.end):
            ax.axvline(result.continuous.end, color=GREY, ls=":", lw=1.4, label="flow blows up")
    for i, closure in enumerate(result.closures):
        ax.plot(
            times[: len(closure)], closure.traces, color=_colour(i), lw=1.3, ls="-.",
            label=f"law corrected for {result.problem.counts[i]} tokens",
        )  # fmt: skip
    for i, leaving in enumerate(result.departures):
        if math.isfinite(leaving.time):
            y = float(np.interp(leaving.time, times[: seen[i + 1].size], seen[i + 1]))
            label = "leaves its law (10 %)" if i == len(result.departures) - 1 else None
            ax.plot(
                [leaving.time], [y], color=_colour(i), marker="D", ms=7, mec=BLACK, ls="",
                label=label,
            )  # fmt: skip
    _marks(result, ax)
    top = max((float(np.max(x)) for x in seen[1:]), default=float(law[0]))
    inside = law[law <= ABOVE * top]
    label = scale_variance(ax, np.concatenate([inside, *seen[1:]]))
    plain_ticks(ax)
    decorate(ax, "time t", f"total {label}")
    fig.legend(loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    return fig


def _finer(law: LawCourse, times: Array) -> tuple[Array, Array]:
    """Times and total variances of a law; finer, and up to its pole at T, if it blows up.

    Near a blow-up tr S grows like 1/(T - t): (T - t) tr S is what is interpolated.
    """
    seen, traces = times[: len(law)], law.traces
    if law.status is not Status.BLOW_UP:
        return seen, traces
    nearest = NEAR * law.end
    seen = seen[law.end - seen > nearest]
    if not seen.size:
        return times[: len(law)], traces
    left = law.end - seen
    parts = [np.linspace(a, b, FINER, endpoint=False) for a, b in pairwise(left)]
    fine = np.concatenate([*parts, np.geomspace(left[-1], nearest, 4 * FINER)])
    scaled = left * traces[: seen.size]
    when = np.minimum(law.end - fine, seen[-1])
    smooth, rest = np.full(fine.size, scaled[-1]), np.zeros(fine.size)
    if seen.size > 1:
        spline = PchipInterpolator(seen, scaled)
        smooth = spline(when)
        # Beyond the last time a parabola, level at the pole, goes on with the slope there.
        bend = max(0.5 * left[-1] * float(spline(seen[-1], 1)), -0.75 * scaled[-1])
        rest = bend * (1 - np.minimum(fine / left[-1], 1.0) ** 2)
    return law.end - fine, np.asarray((smooth + rest) / fine)


def _variance_title(result: Validation) -> str:
    if result.verdict is TokenVerdict.DEPARTS:
        leaving = result.departures[-1]
        blown = result.blow_up_time
        when = f"blows up at t = {number(blown, 4)}"
        if not math.isfinite(blown):
            when = f"outgrows every cloud by t = {number(result.life, 4)}"
        if not math.isfinite(leaving.time):
            return f"The Gaussian law {when}"
        return (
            f"The Gaussian law {when}; {leaving.count} tokens leave it at about "
            f"t = {number(leaving.time, 3)} and go on"
        )
    if not result.errors:
        return "No cloud arrived"
    last = result.errors[-1]
    words = {
        TokenVerdict.FOLLOWS: "follow the Gaussian law",
        TokenVerdict.APPROACHES: "come close to the Gaussian law",
        TokenVerdict.BIASED: "do NOT follow the Gaussian law",
    }.get(result.verdict, "beside the Gaussian law")
    off = percent(_two(last.covariance[1]))
    return f"{last.count} softmax tokens {words}: covariance off by {off}"


def _two(value: float) -> float:
    return float(f"{value:.2g}")


# -- errors against N --------------------------------------------------------------------


def _errors(result: Validation) -> Figure:
    fig = figure(9.0, 4.6)
    slope = result.covariance_slope
    falls = "" if slope is None else f": the covariance like N^({number(slope.value, 2)})"
    title(
        fig,
        f"How the error falls with the number of tokens{falls}; "
        "one over the root of N would be N^(-0.5)",
    )
    left, right = fig.subplots(1, 2)
    for ax, name, label, slope in (
        (left, "mean", "|m_N − m| / √(tr S)", result.mean_slope),
        (right, "covariance", "|S_N − S| / |S|", result.covariance_slope),
    ):
        _against_number(ax, result, name)
        decorate(ax, "number of tokens N", f"error of the {name}: {label}")
        if slope is not None:
            ax.text(
                0.97, 0.95,
                f"slope {number(slope.value, 2)}\n95 %: {number(slope.low, 2)} to "
                f"{number(slope.high, 2)}",
                transform=ax.transAxes, ha="right", va="top", fontsize=10, color=BLUE,
            )  # fmt: skip
    handles, labels = left.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return fig


def _against_number(ax: Axes, result: Validation, name: str) -> None:
    errors = result.errors
    n = np.array([e.count for e in errors], dtype=float)
    seen = np.array([getattr(e, name) for e in errors])
    matched = np.array([getattr(e, f"matched_{name}") for e in errors])
    floor = np.array([getattr(e, f"{name}_floor") for e in errors])
    ax.fill_between(
        n, seen[:, 0], seen[:, 2], color=BLUE, alpha=0.18, lw=0, label="10 % to 90 % of the clouds"
    )
    ax.plot(n, seen[:, 1], color=BLUE, lw=2.2, marker="o", label="against the law (median)")
    ax.plot(
        n, matched[:, 1], color=ORANGE, lw=1.8, marker="s", ms=5, ls="-.",
        label="against the law of the cloud's own moments",
    )  # fmt: skip
    ways = "independent draws (these match moments)"
    draws = ways if result.problem.moment_matched else "draws"
    ax.plot(n, floor, color=GREEN, lw=1.6, ls="--", label=f"sampling error of N {draws}")
    guide = seen[0, 1] * np.sqrt(n[0] / n)
    ax.plot(n, guide, color=GREY, lw=1.2, ls=":", label="slope −1/2")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.xaxis.set_major_locator(FixedLocator(list(n)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xticklabels([f"{int(x)}" for x in n])
    low, high = ax.get_ylim()
    steps = [m * 10.0**k for k in range(-16, 6) for m in (1, 2, 5)]
    ticks = [x for x in steps if low <= x <= high]
    if len(ticks) > 9:
        ticks = [10.0**k for k in range(-16, 6) if low <= 10.0**k <= high]
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_yticklabels([number(x, 1) for x in ticks])


# -- shape -------------------------------------------------------------------------------

_LABELS = (
    ("sliced", "sliced W₂ / deviation", False),
    ("leading", "the same, leading directions", False),
    ("spread", "Mahalanobis spread", True),
    ("skewness", "Mardia skewness / expected", True),
)


def _shape(result: Validation) -> Figure:
    fig = figure(9.0, 5.4)
    title(fig, _shape_title(result))
    times = np.array([s.time for s in result.shapes])
    threshold = result.shapes[0].gaussianity.threshold
    for ax, (name, label, _) in zip(fig.subplots(2, 2, sharex=True).ravel(), _LABELS, strict=True):
        told = [s.gaussianity[name] for s in result.shapes]
        middle = np.array([t.baseline for t in told])
        half = threshold * np.array([t.deviation for t in told])
        ax.fill_between(
            times, np.maximum(middle - half, 0.0), middle + half, color=GREEN, alpha=0.18, lw=0,
            label="Gaussian clouds of this size (chance)",
        )  # fmt: skip
        ax.plot(times, middle, color=GREEN, ls="--", lw=1.4, label="their mean")
        ax.plot(
            times, [t.value for t in told], color=BLUE, lw=2.0, marker="o", ms=4,
            label=f"{result.shapes[0].count} tokens",
        )  # fmt: skip
        _spread_axis(ax, np.array([t.value for t in told]), middle)
        if math.isfinite(result.blow_up_time):
            ax.axvline(result.blow_up_time, color=BLACK, ls=":", lw=1.4)
        ax.set_xlim(0.0, max(float(times[-1]), 1e-12))
        decorate(ax, "time t" if name in ("spread", "skewness") else "", label)
    handles, labels = fig.axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return fig


def _spread_axis(ax: Axes, values: Array, baseline: Array) -> None:
    """Choose a logarithmic axis if the values go far above their baseline."""
    if np.all(values > 0) and np.max(values) > 20 * np.max(baseline):
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0.0)


def _shape_title(result: Validation) -> str:
    odd = [s.time for s in result.shapes if not s.gaussianity.gaussian]
    count = result.shapes[0].count
    if not odd:
        return f"{count} tokens cannot be told from Gaussian ones at any time that was looked at"
    return (
        f"{count} tokens can be told from Gaussian ones from t = {number(odd[0], 3)} on; "
        f"sliced distance beyond chance at the end: "
        f"{percent(_two(result.shapes[-1].gaussianity.distance))} of a deviation"
    )


# -- stamps ------------------------------------------------------------------------------


def _stamps(result: Validation) -> Figure:
    fig = figure(9.0, 6.4)
    title(fig, _stamps_title(result))
    variance, weight, effective = fig.subplots(3, 1, sharex=True)
    times = result.times[: result.logit_variances.size]
    low, top = _logit_range(result)
    variance.plot(
        times, np.minimum(result.logit_variances, 10 * top), color=BLACK, lw=2.0, ls="--",
        label="predicted from the law",
    )  # fmt: skip
    for i, n in enumerate(result.problem.counts):
        first = next((c for c in result.clouds if c.count == n), None)
        stamps = result.stamps(i)
        _three(result, (variance, weight, effective), first, _colour(i))
        variance.axhline(math.log(n) - CLEAN_MARGIN, color=_colour(i), lw=1.0, ls=":")
        weight.plot(times, [s.self_weight for s in stamps], color=_colour(i), lw=1.4, ls="--")
        # Beyond log N the largest weight rules, and N exp(-a²) is no number of tokens any more.
        told = [s.effective if s.logit_variance <= s.log_count else math.nan for s in stamps]
        effective.plot(times, told, color=_colour(i), lw=1.4, ls="--")
    variance.plot([], [], color=GREY, lw=1.0, ls=":", label="log N − 2: clean below it")
    if top > WIDE * low > 0:
        variance.set_yscale("log")
        variance.set_ylim(low / 1.3, top * 1.3)
    else:
        variance.set_ylim(0.0, 1.08 * top)
    for ax, label in (
        (variance, "logit variance a²"),
        (weight, "weight on itself"),
        (effective, "effective tokens"),
    ):
        _marks(result, ax)
        decorate(ax, "time t" if ax is effective else "", label)
    weight.set_ylim(bottom=0.0)
    effective.set_yscale("log")
    plain_ticks(effective)
    plain_ticks(variance)
    handles, labels = variance.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    return fig


def _logit_range(result: Validation) -> tuple[float, float]:
    """Smallest and largest logit variance to be seen: what was measured, and the limits."""
    limits = [math.log(n) - CLEAN_MARGIN for n in result.problem.counts]
    lines = [x for x in limits if x > 0]
    firsts = [c for n in result.counts for c in result.of_count(n)[:1]]
    measured = np.concatenate([c.logit_variances for c in firsts]) if firsts else np.zeros(0)
    law = result.logit_variances[np.isfinite(result.logit_variances)]
    highest = ABOVE * float(np.max(measured)) if measured.size else math.inf
    law = np.minimum(law, max(highest, max(lines, default=1.0)))
    seen = np.concatenate([measured, law, lines])
    seen = seen[np.isfinite(seen) & (seen > 0)]
    return (float(seen.min()), float(seen.max())) if seen.size else (0.0, 1.0)


def _three(
    result: Validation, axes: tuple[Axes, Axes, Axes], cloud: CloudCourse | None, colour: str
) -> None:
    """What was measured of one cloud."""
    if cloud is None:
        return
    times = result.times[: len(cloud)]
    rows = (cloud.logit_variances, cloud.self_weights, cloud.effective)
    for ax, row in zip(axes, rows, strict=True):
        ax.plot(times, row, color=colour, lw=1.8, label=f"{cloud.count} tokens, measured")


def _stamps_title(result: Validation) -> str:
    most = len(result.problem.counts) - 1
    dirty = result.clean_until(most)
    n = result.problem.counts[most]
    if dirty == 0.0:
        return f"{n} tokens are not where softmax is like its mean field: {_why(result, most)}"
    if math.isinf(dirty):
        return f"With {n} tokens softmax stays close to its mean field"
    return f"With {n} tokens softmax is close to its mean field until about t = {number(dirty, 3)}"


def _why(result: Validation, i: int) -> str:
    stamp = result.stamps(i)[0]
    if stamp.regime != "clean":
        return f"logit variance {number(stamp.logit_variance, 3)}"
    return f"a token has {percent(_two(stamp.self_weight))} of its own attention"

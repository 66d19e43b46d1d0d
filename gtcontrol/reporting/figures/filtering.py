"""A filter: estimates state by state, errors of tokens against their number, innovations."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from ..._check import Array
from ...results.filter_errors import ErrorBand, TokenErrors
from ...results.filtering import FilterRun
from ..wording import error, number
from .canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALETTE,
    RED,
    decorate,
    figure,
    title,
)

__all__ = ["pictures"]

#: States that are drawn, in two columns.
MOST_STATES = 8

#: Errors from this number on need no scientific notation on their axis.
SMALL = 1e-3


def pictures(result: FilterRun) -> dict[str, Figure]:
    """Figures "states", "errors" (with at least two numbers of tokens) and "innovations"."""
    made = {"states": _states(result)}
    if len(result.token_errors) > 1:
        made["errors"] = _errors(result)
    made["innovations"] = _innovations(result)
    return made


def _states(result: FilterRun) -> Figure:
    d = min(result.problem.model.dim, MOST_STATES)
    columns = 1 if d == 1 else 2
    rows = -(-d // columns)
    fig = figure(9.0, 1.2 + 2.2 * rows)
    clouds = [c for c in result.clouds if len(c.means)]
    title(fig, _states_title(result))
    truth = result.problem.measurements.states
    for i, ax in enumerate(np.atleast_1d(fig.subplots(rows, columns, sharex=True)).ravel()[:d]):
        mean = result.kalman_means[:, i]
        spread = 2 * np.sqrt(np.maximum(result.kalman_covariances[:, i, i], 0.0))
        band = ax.fill_between(
            result.times, mean - spread, mean + spread, color=BLUE, alpha=0.18, lw=0
        )
        lines = [band, *ax.plot(result.times, mean, color=BLUE, lw=2.2)]
        labels = ["± 2 standard deviations", "python-control's filter"]
        if truth is not None:
            lines += ax.plot(result.times, truth[:, i], color=BLACK, lw=1.4, ls=":")
            labels.append("true state")
        if clouds:
            lines += ax.plot(result.times, clouds[-1].means[0, :, i], color=RED, lw=1.6, ls="--")
            labels.append(f"{clouds[-1].count} tokens")
        ax.set_xlim(0.0, float(result.times[-1]))
        decorate(ax, "time t" if i >= d - columns else "", f"state {i + 1}")
    for ax in fig.axes[d:]:
        ax.set_visible(False)
    fig.legend(
        lines, labels, loc="outside lower center", ncols=len(labels), fontsize=9, frameon=False
    )
    return fig


def _states_title(result: FilterRun) -> str:
    agreement = f"The law of the tokens is python-control's filter to {error(result.agreement)}"
    if not result.token_errors:
        return agreement
    last = result.token_errors[-1]
    return (
        f"{agreement}; {last.count} tokens are off by {error(last.mean.median)} standard deviations"
    )


def _errors(result: FilterRun) -> Figure:
    errors = result.token_errors
    fig = figure(9.0, 4.6)
    title(fig, _errors_title(result))
    left, right = fig.subplots(1, 2)
    seen = [
        (left, "mean", "|m_N − m| / √(tr S)", result.mean_slope),
        (right, "covariance", "|S_N − S| / |S|", result.covariance_slope),
    ]
    for ax, name, label, slope in seen:
        _against_number(ax, errors, name, slope)
        decorate(ax, "number of tokens N", f"error of the {name}: {label}")
    handles, labels = left.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return fig


def _errors_title(result: FilterRun) -> str:
    first, last = result.token_errors[0], result.token_errors[-1]
    ratio = last.mean.rms / last.mean_sampling
    words = f"{number(ratio, 2)} times" if ratio >= 1 else f"{number(ratio, 2)} of"
    ending = ""
    if last.mean_predicted is not None:
        ending = f"; theory predicts {number(last.mean_predicted / last.mean_sampling, 2)}"
    slope = result.mean_slope
    falls = "" if slope is None else f", falling like N^({number(slope.median, 2)})"
    return (
        f"From {first.count} to {last.count} tokens: the mean is off by {words} the sampling "
        f"error{falls}{ending}"
    )


def _against_number(
    ax: Axes, errors: tuple[TokenErrors, ...], name: str, slope: ErrorBand | None
) -> None:
    count = np.array([e.count for e in errors], dtype=float)
    order = np.argsort(count)
    count = count[order]

    def column(what: str, part: str = "") -> Array:
        values = [getattr(e, what) for e in errors]
        return np.array([getattr(v, part) if part else v for v in values], dtype=float)[order]

    ax.fill_between(
        count, column(name, "low"), column(name, "high"), color=BLUE, alpha=0.18, lw=0,
        label="10 % to 90 % of the draws",
    )  # fmt: skip
    ax.plot(count, column(name, "median"), color=BLUE, lw=2.2, marker="o", label="median")
    ax.plot(count, column(name, "rms"), color=BLUE, ls="", marker="x", label="root mean square")
    if getattr(errors[0], f"{name}_predicted") is not None:
        ax.plot(
            count, column(f"{name}_predicted"), color=ORANGE, lw=1.8, ls="-.",
            label="predicted root mean square",
        )  # fmt: skip
    ax.plot(
        count, column(f"{name}_sampling"), color=GREEN, lw=1.6, ls="--",
        label="sampling error of N draws",
    )  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.xaxis.set_major_locator(FixedLocator(list(count)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xticklabels([f"{int(n)}" for n in count])
    low, high = ax.get_ylim()
    steps = [m * 10.0**k for k in range(-16, 6) for m in (1, 2, 5)]
    ticks = [x for x in steps if low <= x <= high]
    if len(ticks) > 7:
        ticks = [10.0**k for k in range(-16, 6) if low <= 10.0**k <= high]
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_yticklabels([number(x, 1) for x in ticks])
    if slope is not None:
        ax.text(
            0.97, 0.95, f"slope {number(slope.median, 2)}", transform=ax.transAxes, ha="right",
            va="top", fontsize=10, color=BLUE,
        )  # fmt: skip


def _innovations(result: FilterRun) -> Figure:
    c = result.consistency
    fig = figure(9.0, 5.0)
    words = "white and as large as predicted" if c.white else "NOT as the filter predicts"
    title(fig, f"The innovations are {words}: mean square {number(c.innovation, 3)}, expected "
          f"{number(c.innovation_low, 3)} to {number(c.innovation_high, 3)}")  # fmt: skip
    above, below = fig.subplots(2, 1, sharex=True)
    middle = 0.5 * (result.times[1:] + result.times[:-1])
    for i, colour in zip(range(result.innovations.shape[1]), PALETTE, strict=False):
        above.plot(
            middle, result.innovations[:, i], color=colour, ls="", marker="o", ms=3.5,
            label=f"measurement {i + 1}",
        )  # fmt: skip
    for level in (-1.96, 1.96):
        above.axhline(level, color=GREY, ls="--", lw=1.2)
    above.axhline(0.0, color=GREY, lw=0.8)
    decorate(above, "", "innovation / deviation")
    below.plot(
        result.times, np.trace(result.kalman_covariances, axis1=1, axis2=2), color=BLUE, lw=2.4,
        label="python-control's filter",
    )  # fmt: skip
    for cloud, colour in zip(result.clouds, (ORANGE, GREEN, RED, BLACK), strict=False):
        if len(cloud.means):
            traces = np.trace(cloud.covariances[0], axis1=1, axis2=2)
            below.plot(result.times, traces, color=colour, ls="--", lw=1.4,
                       label=f"{cloud.count} tokens (first draw)")  # fmt: skip
    below.set_xlim(0.0, float(result.times[-1]))
    below.set_ylim(bottom=0.0)
    decorate(below, "time t", "total variance tr S")
    fig.legend(
        *below.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9,
        frameon=False,
    )  # fmt: skip
    return fig

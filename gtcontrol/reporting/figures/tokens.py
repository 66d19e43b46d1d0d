"""Errors of the token check beside the sampling errors."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from ...results.tokens import SAMPLING_BAND, TokenCheck
from ..wording import error, number
from .canvas import BLUE, GREEN, GREY, RED, decorate, figure, title

__all__ = ["check"]


def check(tokens: TokenCheck) -> Figure:
    """Errors of mean and covariance in units of their sampling errors."""
    fig = figure(8.0, 2.7)
    within = "within" if tokens.within_sampling_error else "NOT within"
    title(
        fig,
        f"{tokens.count} softmax tokens arrive {within} {number(SAMPLING_BAND)} sampling errors",
    )
    ax = fig.add_subplot()
    rows = [
        ("covariance", tokens.covariance_error, tokens.covariance_sampling_error),
        ("mean", tokens.mean_error, tokens.mean_sampling_error),
    ]
    ratios = [_ratio(miss, sampling) for _, miss, sampling in rows]
    edge = 1.25 * max([SAMPLING_BAND, *(r for r in ratios if math.isfinite(r))])
    ax.axvspan(0.0, SAMPLING_BAND, color=GREEN, alpha=0.15, lw=0, label="explained by chance")
    ax.axvline(1.0, color=GREY, ls="--", lw=1.2, label="one sampling error")
    for y, ratio in enumerate(ratios):
        good = ratio <= SAMPLING_BAND
        x = ratio if math.isfinite(ratio) else 0.97 * edge
        ax.plot([0.0, x], [y, y], color=BLUE if good else RED, lw=5, solid_capstyle="butt")
        ax.plot([x], [y], marker="o" if good else "X", color=BLUE if good else RED, ms=9)
    labels = [f"{name}: {error(miss)}\n(sampling {error(usual)})" for name, miss, usual in rows]
    ax.set_yticks(range(len(rows)), labels)
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_xlim(0.0, edge)
    decorate(ax, "error on arrival, in sampling errors", "")
    fig.legend(loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    return fig


def _ratio(miss: float, sampling: float) -> float:
    if sampling > 0:
        return miss / sampling
    return 0.0 if miss == 0 else math.inf

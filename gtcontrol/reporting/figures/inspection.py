"""A pretrained model over depth: shape, heads, drift, variance, spectra, errors."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from ..._check import Array
from ...results.inspection import Inspection
from ...results.layers import NEAR_LEADING, NEAR_SLICED, PREDICTED, near_gaussian
from ..views.inspection import ranges, span, together
from ..views.inspection_tables import SHAPE_WORDS
from ..wording import count, error, number
from .canvas import BLACK, BLUE, GREEN, GREY, ORANGE, RED, decorate, figure, plain_ticks, title

__all__ = ["pictures"]

#: Layers whose spectra are shown.
SPECTRA = 4

#: Largest excess over chance of what is near Gaussian.
_LIMITS = {"sliced": NEAR_SLICED, "leading": NEAR_LEADING}

#: Rates between these are coloured linearly, beyond them by their logarithm.
LINEAR = 0.01


def pictures(result: Inspection) -> dict[str, Figure]:
    """Figures "shape", "heads", "drift", "variance", "spectrum" and "errors"."""
    return {
        "shape": _shape(result),
        "heads": _heads(result),
        "drift": _drift(result),
        "variance": _variance(result),
        "spectrum": _spectrum(result),
        "errors": _errors(result),
    }


def _depth(ax: Axes, last: int, first: int = 0) -> None:
    """An axis of layers, of which only whole numbers are marked."""
    ax.set_xlim(first - 0.3, last + 0.3)
    ax.xaxis.set_major_locator(FixedLocator(range(first, last + 1, (last - first) // 13 + 1)))
    ax.xaxis.set_minor_locator(NullLocator())


def _logarithmic(ax: Axes) -> None:
    """A logarithmic axis of y for what is drawn, with plain numbers."""
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda x, _: number(x, 3)))
    ax.yaxis.set_minor_formatter(NullFormatter())
    plain_ticks(ax)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# -- shape -------------------------------------------------------------------------------


def _shape(result: Inspection) -> Figure:
    fig = figure(9.0, 5.6)
    near = [k for k, shape in enumerate(result.shapes) if k and near_gaussian(shape)]
    of = f" (of the {len(result.layers)} looked at)" if result.partial else ""
    if len(result.layers) == 1:
        words = f"Tokens {'' if near else 'NOT '}near Gaussian after {together(result)}"
    else:
        words = f"{_capital(ranges(near))}{of}: tokens near Gaussian after the layer"
    title(fig, words)
    layers = np.arange(len(result.shapes))
    threshold = result.shapes[0].threshold
    beside = "before the last LayerNorm" if result.placement == "post" else "after LayerNorm"
    for ax, (name, label) in zip(
        fig.subplots(2, 2, sharex=True).ravel(), SHAPE_WORDS.items(), strict=True
    ):
        told = [shape[name] for shape in result.shapes]
        middle = np.array([s.baseline for s in told])
        half = threshold * np.array([s.deviation for s in told])
        low = np.maximum(middle - half, 1e-3 * middle)
        ax.fill_between(
            layers, low, middle + half, color=GREEN, alpha=0.3, lw=0,
            label="Gaussian clouds of this size (chance)",
        )  # fmt: skip
        ax.plot(layers, middle, color=GREEN, ls="--", lw=1.4, label="their mean")
        values = np.array([s.value for s in told])
        ax.plot(layers, values, color=BLUE, lw=2.0, marker="o", ms=5, label="tokens")
        inner = np.array([shape[name].value for shape in result.inner])
        ax.plot(
            layers[1:], inner, color=ORANGE, lw=1.0, ls=":", marker="o", ms=5, mfc="white",
            label=beside,
        )  # fmt: skip
        seen = np.concatenate([values, inner])
        if name in _LIMITS:
            limit = np.hypot(middle, _LIMITS[name])
            ax.plot(layers, limit, color=BLACK, lw=0.9, ls="-.", label="near Gaussian up to here")
        if np.all(seen > 0) and seen.max() > 10 * min(seen.min(), middle.min()):
            _logarithmic(ax)
        else:
            ax.set_ylim(bottom=0.0)
        scale = " (log scale)" if ax.get_yscale() == "log" else ""
        _depth(ax, int(layers[-1]))
        decorate(ax, "layer" if name in ("spread", "skewness") else "", "")
        ax.set_title(f"{_capital(label)}{scale}", fontsize=10, loc="left")
    handles, labels = fig.axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    return fig


# -- heads -------------------------------------------------------------------------------


def _heads(result: Inspection) -> Figure:
    table = result.heads
    layers = table.layers
    wide = max(row.head for row in table.rows)
    fig = figure(max(6.5, 2.6 + 0.5 * wide), 2.6 + 0.36 * len(layers))
    valid = sum(table.valid(row) for row in table.rows)
    title(fig, f"Which heads stabilise (blue) and which expand (red); theory valid in {valid} of "
               f"{len(table.rows)}")  # fmt: skip
    ax = fig.add_subplot()
    largest = max(*(abs(row.effective_rate) for row in table.rows), 2 * LINEAR)
    scale = ScalarMappable(SymLogNorm(LINEAR, vmin=-largest, vmax=largest, base=10), "RdBu_r")
    colours = scale.to_rgba(np.array([row.effective_rate for row in table.rows]))
    for row, colour in zip(table.rows, colours, strict=True):
        corner = (row.head - 0.5, row.layer - 0.5)
        ax.add_patch(Rectangle(corner, 1, 1, facecolor=colour, edgecolor="white"))
        if not table.valid(row):
            ax.add_patch(
                Rectangle(
                    corner,
                    1,
                    1,
                    fill=False,
                    lw=0,
                    edgecolor="#444444",
                    hatch="xxx" if table.frozen(row) else "///",
                )
            )
    ax.set_xlim(0.5, wide + 0.5)
    ax.set_ylim(layers[-1] + 0.5, 0.5)
    decorate(ax, "head", "layer")
    ax.grid(visible=False)
    for axis, last in ((ax.xaxis, wide), (ax.yaxis, layers[-1])):
        axis.set_major_locator(FixedLocator(range(1, last + 1)))
        axis.set_minor_locator(NullLocator())
    bar = fig.colorbar(scale, ax=ax, pad=0.02)
    bar.set_label("rate of the variance per layer", fontsize=10)
    ticks = [x for x in (-1, -0.1, -0.01, 0, 0.01, 0.1, 1) if abs(x) <= largest]
    bar.set_ticks(ticks, labels=[f"{x:g}" for x in ticks])
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.tick_params(labelsize=9)
    marks = [
        Patch(facecolor="white", edgecolor="#444444", hatch="///", label="theory strained"),
        Patch(facecolor="white", edgecolor="#444444", hatch="xxx", label="frozen: E a² > log N"),
    ]
    fig.legend(handles=marks, loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    return fig


def _drift(result: Inspection) -> Figure:
    fig = figure(8.6, 4.4)
    decided = [facts for facts in result.layers if result.heads.verdict(facts.layer) != "neutral"]
    agreed = sum(facts.drift * facts.effective_rate > 0 for facts in decided)
    if not decided:
        words = "By the head rates attention leaves the variance alone in every layer"
    elif len(result.layers) == 1:
        gives = "give" if agreed else "do NOT give"
        words = f"The head rates {gives} the sign of the measured drift in {together(result)}"
    else:
        many = count(len(decided), "layer")
        words = f"The head rates give the sign of the measured drift in {agreed} of {many}"
    title(fig, words)
    ax = fig.add_subplot()
    layers = np.array([facts.layer for facts in result.layers])
    measured = np.array([facts.drift for facts in result.layers])
    finite = np.array([facts.effective_rate for facts in result.layers])
    field = np.array([facts.rate for facts in result.layers])
    ax.bar(layers, measured, width=0.6, color=GREY, alpha=0.55, label="measured drift")
    ax.plot(layers, finite, color=BLUE, marker="o", ms=7, ls="", label="head rates, finite N")
    ax.plot(
        layers,
        field,
        color=RED,
        marker="D",
        ms=6,
        mfc="none",
        ls="",
        label="head rates, mean field",
    )
    ax.axhline(0.0, color=BLACK, lw=0.8)
    sizes = np.abs(np.concatenate([measured, finite, field]))
    scaled = sizes.max() > 20 * max(float(np.median(sizes)), 1e-12)
    if scaled:
        ax.set_yscale("symlog", linthresh=LINEAR)
    _depth(ax, int(layers[-1]), 1)
    ax.set_xlim(0.4, layers[-1] + 0.6)
    ending = " (log scale beyond ±0.01)" if scaled else ""
    decorate(ax, "layer", f"2 tr Cov(a, x) / tr S{ending}")
    fig.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return fig


# -- moments -----------------------------------------------------------------------------


def _variance(result: Inspection) -> Figure:
    fig = figure(8.6, 4.6)
    last = len(result.layers)
    ratio = float(result.chain.traces[-1] / result.measured.traces[-1])
    title(
        fig,
        f"Total variance after layer {last}: predicted {number(ratio, 3)} times the measured one",
    )
    ax = fig.add_subplot()
    layers = np.arange(last + 1)
    traces = [p.traces for p in (result.measured, result.chain, result.field)]
    ax.plot(layers, traces[0], color=BLACK, lw=2.2, marker="o", ms=5, label="measured")
    ax.plot(layers, traces[1], color=BLUE, lw=1.8, ls="--", marker="s", ms=5,
            label="predicted, finite N")  # fmt: skip
    ax.plot(layers, traces[2], color=RED, lw=1.4, ls=":", marker="D", ms=4,
            label="predicted, mean field")  # fmt: skip
    every = np.concatenate(traces)
    label = "total variance tr S"
    if every.max() > 8 * every.min() > 0:
        _logarithmic(ax)
        label += " (log scale)"
    else:
        ax.set_ylim(0.0, 1.12 * float(every.max()))
    _depth(ax, last)
    decorate(ax, "layer", label)
    fig.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return fig


def _spectrum(result: Inspection) -> Figure:
    last = len(result.layers)
    chosen = np.unique(np.linspace(1, last, min(SPECTRA, last)).round().astype(int))
    fig = figure(9.0, 2.0 + 2.4 * ((chosen.size + 1) // 2))
    factors = np.exp(result.log_errors)
    later = f", {number(float(factors[last]), 3)} after layer {last}" if last > 1 else ""
    title(
        fig,
        f"The {result.measured.spectra.shape[1]} largest eigenvalues of the covariance are "
        f"predicted to a factor of {number(float(factors[1]), 3)} on average (geometric mean) "
        f"after layer 1{later}",
    )
    columns = 2 if chosen.size > 1 else 1
    grid = fig.subplots((chosen.size + 1) // 2, columns, squeeze=False, sharex=True).ravel()
    for ax in grid[chosen.size :]:
        ax.set_visible(False)
    for ax, layer in zip(grid, chosen, strict=False):
        _eigenvalues(ax, result, int(layer))
        below = layer in chosen[-columns:]
        decorate(ax, "rank of the eigenvalue" if below else "", "eigenvalue (log scale)")
    handles, labels = grid[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return fig


def _eigenvalues(ax: Axes, result: Inspection, layer: int) -> None:
    measured = result.measured.spectra[layer]
    floor = 1e-9 * float(measured[0])
    index = np.arange(1, measured.size + 1)

    def shown(values: Array) -> Array:
        return np.where(values > floor, values, np.nan)

    ax.plot(index, shown(measured), color=BLACK, lw=0, marker="o", ms=3.5, label="measured")
    ax.plot(
        index, shown(result.chain.spectra[layer]), color=BLUE, lw=1.8, label="predicted, finite N"
    )
    ax.plot(
        index, shown(result.field.spectra[layer]), color=RED, lw=1.4, ls=":",
        label="predicted, mean field",
    )  # fmt: skip
    _logarithmic(ax)
    ax.text(0.97, 0.93, f"layer {layer}", transform=ax.transAxes, ha="right", va="top", fontsize=11)


def _errors(result: Inspection) -> Figure:
    fig = figure(8.6, 4.6)
    steps = np.array([facts.step_covariance for facts in result.layers])
    chains = np.array([facts.chain_covariance for facts in result.layers])
    words = f"Predicted covariance of {together(result)} off by {error(steps[0])} of its size"
    if len(steps) > 1:
        words = (
            f"Predicted covariance of one layer off by {span(steps.tolist())} of its size, of "
            f"{together(result)} in a row by {error(chains[-1])}"
        )
    title(fig, words)
    ax = fig.add_subplot()
    layers = [facts.layer for facts in result.layers]
    field = [facts.field_covariance for facts in result.layers]
    floor = [facts.floor for facts in result.layers]
    ax.plot(layers, steps, color=GREEN, lw=2.0, marker="o", ms=8, label="one layer, finite N")
    ax.plot(layers, field, color=RED, lw=1.4, ls=":", marker="D", ms=4, label="chain, mean field")
    ax.plot(layers, chains, color=BLUE, lw=1.8, ls="--", marker="s", ms=5, label="chain, finite N")
    ax.plot(layers, floor, color=GREY, lw=1.4, marker=".", label="sampling")
    ax.axhline(
        PREDICTED, color=BLACK, lw=0.8, ls="-.", label=f"counts as predicted ({PREDICTED:g})"
    )
    ax.set_ylim(0.0, 1.1 * max(*field, *floor, *chains.tolist(), *steps.tolist(), PREDICTED))
    _depth(ax, layers[-1], 1)
    decorate(ax, "layer", "Bures distance / √tr S")
    fig.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return fig

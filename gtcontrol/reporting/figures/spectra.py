"""Closed-loop spectrum of a Riccati solution beside that of the open loop."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ...results.riccati import RiccatiSolution
from ...status import RiccatiStatus
from ..wording import number
from .canvas import BLACK, BLUE, GREY, RED, decorate, figure, legend_right, title

__all__ = ["pictures", "spectrum"]

#: Coordinates that spread by more than this factor get a symmetric log axis.
SPREAD = 1e3


def pictures(result: RiccatiSolution) -> dict[str, Figure]:
    """Return the picture of a solution."""
    return {"spectrum": spectrum(result)}


def spectrum(result: RiccatiSolution) -> Figure:
    """Eigenvalues in the complex plane, with the boundary of stability."""
    discrete = result.equation.discrete
    fig = figure(8.0, 4.8)
    title(fig, _finding(result))
    ax = fig.add_subplot()
    groups = [("open loop: A", result.open_loop, RED, "x")]
    if result.X is not None:
        groups.append(("closed loop: A − B · gain", result.spectrum, BLUE, "o"))
    for name, values, colour, marker in groups:
        face = "none" if marker == "o" else colour
        ax.scatter(
            values.real, values.imag, c=face if marker == "o" else colour, marker=marker,
            edgecolors=colour if marker == "o" else None, s=70, linewidths=1.8, label=name,
            zorder=3,
        )  # fmt: skip
    if discrete:
        angle = np.linspace(0.0, 2 * np.pi, 400)
        ax.plot(np.cos(angle), np.sin(angle), color=BLACK, lw=1.0, label="unit circle")
        ax.set_aspect("equal", adjustable="datalim")
    else:
        ax.axvline(0.0, color=BLACK, lw=1.0, label="imaginary axis")
    ax.axhline(0.0, color=GREY, lw=0.6)
    every = np.concatenate([values for _, values, *_ in groups])
    labels = ["real part", "imaginary part"]
    if not discrete:
        scales = (ax.set_xscale, ax.set_yscale)
        for k, part in enumerate((every.real, every.imag)):
            threshold = _threshold(part)
            if threshold:
                scales[k]("symlog", linthresh=threshold)
                labels[k] += " (symmetric log)"
    ax.margins(0.12)
    decorate(ax, *labels)
    legend_right(ax)
    return fig


def _threshold(part: NDArray[np.float64]) -> float:
    """Where a symmetric log axis becomes linear; 0 if a linear axis shows all."""
    sizes = np.abs(part[part != 0])
    if not sizes.size or sizes.max() <= SPREAD * sizes.min():
        return 0.0
    return float(max(sizes.min(), 1e-12 * sizes.max()))


def _finding(result: RiccatiSolution) -> str:
    if result.X is None:
        return f"{result.status.value.removesuffix('.')}"
    slowest = result.spectrum[0]
    if result.status is RiccatiStatus.MARGINAL:
        return "The closed loop keeps modes on the boundary of stability"
    if result.equation.discrete:
        finding, size = "its largest eigenvalue has modulus", abs(slowest)
    else:
        finding, size = "its slowest mode decays at the rate", -slowest.real
    return f"The closed loop is stable: {finding} {number(float(size), 4)}"

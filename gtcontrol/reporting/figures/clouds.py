"""Clouds of tokens that were moved freely, with the ellipses of their own moments."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ...gaussian import Gaussian
from ...results.tokens import TokenRun
from ...results.trajectory import factor_of
from ...status import Status
from ..wording import number
from .path import CLOUDS, DOTS, SNAPSHOTS, Scene, draw
from .sampling import Samples

__all__ = ["tokens"]


def tokens(result: TokenRun) -> Figure:
    """Tokens at the start, half-way and at the end."""
    p = result.problem
    samples = Samples(
        result.times, result.means, np.array([factor_of(S) for S in result.covariances])
    )
    laws = [
        Gaussian.from_covariance(m, L @ L.T)
        for m, L in zip(samples.means, samples.factors, strict=True)
    ]
    shown = np.unique(np.linspace(0, len(laws) - 1, SNAPSHOTS).round().astype(int))
    chosen = np.unique(np.linspace(0, len(laws) - 1, CLOUDS).round().astype(int))
    if result.status is Status.SUCCESS:
        ends = [number(float(np.trace(result.covariances[i])), 3) for i in (0, -1)]
        finding = f"{p.count} softmax tokens: total variance {ends[0]} → {ends[1]}"
    else:
        finding = f"{result.status.name} at t = {number(float(result.times[-1]))}"
    return draw(
        Scene(
            finding,
            laws[0],
            None,
            samples,
            tuple(float(result.times[i]) for i in shown),
            tuple(laws[i] for i in shown),
            tuple((float(result.times[i]), result.clouds[i][:DOTS]) for i in chosen),
        )
    )

"""Whether a motion is drawn on a line, against time, or in a plane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...gaussian import Gaussian
from ...results.trajectory import Trajectory
from ..figures.plane import plane_of
from ..figures.sampling import drawable_times

__all__ = ["laws_of", "on_a_line", "spread_words"]

#: Laws of more dimensions and of a rank above one fill no line.
FEW = 16

#: Laws along a path that are looked at.
LAWS = 6


def laws_of(path: Trajectory) -> list[Gaussian]:
    """Some of the laws along a path that are drawn, both ends included."""
    times = drawable_times(path)
    if path.interpolant is None:
        picked = np.linspace(0, times.size - 1, LAWS).round().astype(int)
        times = times[np.unique(picked)]
    else:
        times = np.linspace(0.0, times[-1], LAWS)
    return [path.at(float(t)) for t in times]


def on_a_line(laws: Sequence[Gaussian], end: Gaussian) -> bool:
    """Whether the picture of laws that lead to `end` has one direction only."""
    if end.dim > FEW and max(law.rank for law in (*laws, end)) > 1:
        return False
    return plane_of([*laws, end], end).flat


def spread_words(line: bool) -> str:
    """What shows the standard deviations in such a picture."""
    shape = "position against time, with bands of" if line else "ellipses hold"
    return f"{shape} one and two standard deviations"

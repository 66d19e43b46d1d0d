"""What a run of either kind hands back."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .._check import Array
from ..results.trajectory import Interpolant
from ..status import Status

__all__ = ["Outcome"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Nodes of a run, in full coordinates, and how it ended."""

    status: Status
    times: Array
    means: Array
    factors: Array
    steps: int
    evaluations: int
    blow_up_time: float = math.inf
    interpolant: Interpolant | None = None

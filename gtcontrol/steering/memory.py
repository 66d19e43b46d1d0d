"""Refuse a solve that would not fit into memory, before allocating anything."""

from __future__ import annotations

import os

from ..errors import TooLarge
from ..gaussian import Gaussian
from ..problem.definitions import SteeringProblem

__all__ = ["physical_memory", "refuse_too_large"]

#: Part of the physical memory that a solve may take.
SHARE = 0.5


def physical_memory() -> float:
    """Bytes of physical memory, or 8 GiB where the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        return 8.0 * 2**30


def refuse_too_large(start: Gaussian, problem: SteeringProblem, intervals: int) -> None:
    """Raise TooLarge if the factorisation of the solver's matrices would not fit.

    The blocks of one interval fill in while they are factorised, so their squares are counted.
    """
    d, r = start.dim, start.rank
    controls = sum(d if c == "b" else d * d for c in problem.controls)
    block = 2 * controls + 6 * d * (r + 1)
    needed = 8.0 * intervals * float(block) ** 2
    allowed = SHARE * physical_memory()
    if needed > allowed:
        raise TooLarge(
            f"steering in dimension {d} with rank {r}, controls {problem.controls} and "
            f"{intervals} intervals needs about {needed / 2**30:.3g} GiB, of which "
            f"{allowed / 2**30:.3g} GiB may be used. Use fewer controls, truncate the laws, drop "
            "bounds on entries (then the problem is solved in the span of its end points), or "
            "use an exact method such as 'transport-geodesic'."
        )

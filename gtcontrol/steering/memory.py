"""Refuse a solve that would not fit into memory, before allocating anything."""

from __future__ import annotations

from ..gaussian import Gaussian
from ..problem import memory
from ..problem.definitions import SteeringProblem

__all__ = ["refuse_too_large"]


def refuse_too_large(start: Gaussian, problem: SteeringProblem, intervals: int) -> None:
    """Raise TooLarge if the factorisation of the solver's matrices would not fit.

    The blocks of one interval fill in while they are factorised, so their squares are counted.
    """
    d, r = start.dim, start.rank
    controls = sum(d if c == "b" else d * d for c in problem.controls)
    block = 2 * controls + 6 * d * (r + 1)
    memory.require(
        f"steering by a solver in dimension {d} with rank {r}, controls {problem.controls} and "
        f"{intervals} intervals (an exact method such as 'transport-geodesic' needs none)",
        intervals * float(block) ** 2,
    )

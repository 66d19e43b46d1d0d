"""Brackets of the blow-up time of a start, found by integration in floats and then in balls."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..bracket.estimate import estimate_blow_up
from ..bracket.plan import LARGEST_DIM
from ..bracket.pursuit import draft, pursue
from ..bracket.reduction import reduced
from ..rules.blow_up_bracket import claim_of

__all__ = ["find"]


def find(problem: CertificationProblem) -> Iterator[Claim]:
    """Yield the bracket of the start, if floats see a blow-up that a theorem can confirm."""
    start = problem.start
    if start is None or len(problem.vertices) != 1:
        return
    parameters, factor = reduced(problem.parameters, start.factor)
    if parameters.dim > LARGEST_DIM:
        return
    seen = estimate_blow_up(parameters, factor)
    if seen.time == math.inf:
        return
    found = pursue(parameters, factor, draft(parameters, factor, seen), seen.time)
    if found is not None and found[1].proved:
        yield claim_of(*found)

"""What the solver hands back, before it becomes a result."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .._check import Array
from ..status import Definiteness, RiccatiStatus
from .closed_loop import Complex
from .signs import Signs

__all__ = ["Outcome", "without_solution"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Solution of an equation, or why there is none.

    Attributes
    ----------
    status : RiccatiStatus
    reason : str
    X : (n, n) array or None
    signs : Signs or None
        Of X.
    residual, error : float
        Relative residual, and estimated relative error, of X; nan without X.
    spectrum : (n,) complex array
        Closed loop at X; without X what is known of it: the eigenvalues of A.
    gain : (m, n) array or None
    precision : int
        Bits of the arithmetic: 53 for floats (with residuals of twice that).
    condition : float
        How much relative changes of the data are magnified in X, at most.
    kernel : (n, k) array
        Directions W such that X + W C W' solves as well for the C that commute with the motion
        on the boundary; empty unless there is a continuum.
    """

    status: RiccatiStatus
    reason: str
    X: Array | None
    signs: Signs | None
    residual: float
    error: float
    spectrum: Complex
    gain: Array | None
    precision: int
    condition: float
    kernel: Array

    def doubted(self, reason: str) -> Outcome:
        """The same solution, not confirmed."""
        return replace(self, status=RiccatiStatus.ILL_CONDITIONED, reason=reason)

    @property
    def definite(self) -> Definiteness | None:
        """Signs of the eigenvalues of X."""
        return None if self.signs is None else self.signs.definite


def without_solution(
    status: RiccatiStatus, reason: str, spectrum: Complex, precision: int = 53
) -> Outcome:
    """Outcome without X."""
    empty = np.zeros((len(spectrum), 0))
    return Outcome(
        status, reason, None, None, math.nan, math.nan, spectrum, None, precision, math.inf, empty
    )

"""The blow-up time of a start: what is proved of it, and what was seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

__all__ = ["BlowUp", "BlowUpStatus"]


class BlowUpStatus(Enum):
    """Whether the covariance blows up; the value of each member is the sentence a user reads."""

    BLOWS_UP = "The covariance blows up in finite time."
    NEVER = "The covariance never blows up."
    MARGINAL = "The covariance comes so close to blowing up that it cannot be told."
    UNDECIDED = "No blow-up is known."


@dataclass(frozen=True, repr=False)
class BlowUp:
    """Blow-up time T* of a covariance.

    Attributes
    ----------
    status : BlowUpStatus
    lower, upper : float
        Proved bounds on T*, whether or not the blow-up itself is proved: 0 and inf when nothing
        is proved, inf and inf when there provably is no blow-up.
    estimate : float
        Middle of the bounds if they are proved and narrow, else what integration in double
        precision gave; inf if there is no blow-up, or none was seen.  If the status is MARGINAL,
        the time at which the covariance comes closest to blowing up.
    proved : bool
        Whether the status is proved.
    reason : str
        How it is proved, or why not.
    """

    status: BlowUpStatus
    lower: float
    upper: float
    estimate: float
    proved: bool
    reason: str

    @property
    def width(self) -> float:
        """Width of the bracket relative to its upper end; inf without an upper end."""
        return (self.upper - self.lower) / self.upper if math.isfinite(self.upper) else math.inf

    def __repr__(self) -> str:
        label = "proved" if self.proved else "numerical"
        bounds = f"T* in [{self.lower!r}, {self.upper!r}]"
        if self.status is BlowUpStatus.BLOWS_UP and not self.proved:
            bounds = f"T* = {self.estimate:.10g}, proved T* > {self.lower:.10g}"
        if self.status is BlowUpStatus.NEVER:
            bounds = "T* = inf"
        return f"BlowUp({self.status.name}, {label}, {bounds})"

"""What is known of a blow-up time: a closed list, and the answer that carries it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .evidence import Evidence

__all__ = ["Crossing", "CrossingStatus"]


class CrossingStatus(Enum):
    """What is known of the blow-up time."""

    BLOWS_UP = "The covariance leaves every bound at a time between `lower` and `upper`."
    NEVER = "The covariance does not blow up at any time."
    TANGENT = (
        "Between `lower` and `upper` the covariance becomes so large that whether it blows up "
        "changes with arbitrarily small changes of the data; it does not blow up before."
    )
    NOT_BEFORE = "There is no blow-up before `lower`; what comes after is not known."


@dataclass(frozen=True, eq=False)
class Crossing:
    """When the covariance blows up.

    Attributes
    ----------
    status : CrossingStatus
    lower, upper, estimate : float
        Enclosure and estimate of the blow-up time; all are inf if there is none.
    proved : bool
        Whether the enclosure, or that there is no blow-up, is proved; with TANGENT and
        NOT_BEFORE, whether it is proved that there is none before `lower`.
    evidence : Evidence or None
        From which the proof can be repeated.
    """

    status: CrossingStatus
    lower: float
    upper: float
    estimate: float
    proved: bool
    evidence: Evidence | None = None

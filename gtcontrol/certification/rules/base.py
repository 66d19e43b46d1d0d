"""What a rule is: a theorem, its words, and its check in exact or ball arithmetic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from ..._check import Array
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict

__all__ = ["Refuted", "Rule", "Scope", "Statement", "matrix", "number"]


class Refuted(Exception):
    """The data of a claim do not prove it; the message says which condition fails, in words."""


class Scope(Enum):
    """Which starts a statement is about."""

    THIS_START = "this start"
    EVERY_START = "every start"
    FULL_RANK = "every start of full rank"
    SOME_STARTS = "some starts"


@dataclass(frozen=True)
class Statement:
    """What a claim says.

    Attributes
    ----------
    verdict : Verdict
    scope : Scope
    text : str
        One or two sentences with their numbers, without the words "proved" or "numerical",
        which are added by who shows them.
    lower, upper : float
        Enclosure of the blow-up time, if the statement is about one: 0 and inf when nothing is
        known, inf and inf when there is no blow-up.
    bound : float
        Bound on lim sup tr S from every start, inf if the statement gives none.
    """

    verdict: Verdict
    scope: Scope
    text: str
    lower: float = 0.0
    upper: float = float("inf")
    bound: float = float("inf")


class Rule(ABC):
    """A theorem that turns data into a statement."""

    #: Name of the rule in claims and files.
    name: ClassVar[str]

    #: The theorem in a few words, for tables.
    theorem: ClassVar[str]

    def theorem_for(self, problem: CertificationProblem) -> str:
        """Name the theorem in the form in which it is used for a problem."""
        return self.theorem

    @abstractmethod
    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check the data of a claim in exact or ball arithmetic.

        Raises
        ------
        Refuted
            If they do not prove what :meth:`state` says.
        """

    @abstractmethod
    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say what the claim says, from its data alone."""


def number(claim: Claim, name: str) -> float:
    """Return a scalar of a claim.

    Raises
    ------
    Refuted
        If it is missing or nan.
    """
    value = claim.numbers.get(name)
    if not isinstance(value, int | float) or value != value:  # noqa: PLR0124 - nan
        raise Refuted(f"the number `{name}` of the claim is {value!r}")
    return float(value)


def matrix(claim: Claim, name: str, *shape: int) -> Array:
    """Return an array of a claim.

    Raises
    ------
    Refuted
        If it is missing, of another shape, or not finite.
    """
    value = claim.arrays.get(name)
    if value is None:
        raise Refuted(f"the array `{name}` of the claim is missing")
    if value.shape != shape or value.dtype != float or not bool((abs(value) < float("inf")).all()):
        raise Refuted(f"the array `{name}` of the claim is not a finite array of shape {shape}")
    return value

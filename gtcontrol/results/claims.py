"""Claims: what a certificate is made of, each with the numbers that prove it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .._check import Array

__all__ = ["Claim"]


@dataclass(frozen=True, eq=False)
class Claim:
    """One statement about the covariance, and the data from which it can be checked again.

    Attributes
    ----------
    rule : str
        Name of the rule (theorem) that says what the data prove.
    proved : bool
        Whether the rule has checked the data in exact or ball arithmetic; if not, the claim is
        numerical evidence.
    numbers : mapping from str to float
        Scalars of the claim; each float is meant exactly.
    arrays : mapping from str to array (n,) or (m, n)
        Matrices and vectors of the claim, real float64; each entry is meant exactly.
    note : str
        Why it could not be proved, or another remark; empty if there is none.
    """

    rule: str
    proved: bool = False
    numbers: Mapping[str, float] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    note: str = ""

    def settled(self, *, proved: bool, note: str = "") -> Claim:
        """Return the claim after its rule was asked."""
        return replace(self, proved=proved, note=note)

"""Claims in words: the theorem, how certain it is, and what it says here."""

from __future__ import annotations

from collections.abc import Sequence

from ...certification.rules import reading, rule, statement
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim

__all__ = ["rows"]


def rows(problem: CertificationProblem, claims: Sequence[Claim]) -> tuple[tuple[str, ...], ...]:
    """Theorem, verdict, certainty and statement of each claim about a problem."""
    return tuple(_row(problem, claim) for claim in claims)


def _row(problem: CertificationProblem, claim: Claim) -> tuple[str, ...]:
    theorem = rule(claim.rule)
    said = statement(problem, claim)
    text = said.text
    if not claim.proved and claim.note:
        text += f" (Not proved: {claim.note}.)"
    certainty = "proved" if claim.proved else "numerical"
    with reading(claim):
        name = theorem.theorem_for(problem)
    return name, said.verdict.name, certainty, text

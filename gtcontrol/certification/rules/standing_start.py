"""A start that the flow does not move: H + Hᵀ + Q = 0 exactly, H = A S + Σ V S B S."""

from __future__ import annotations

import math
from typing import ClassVar

from ...arithmetic import fractions
from ...arithmetic.spectra import LARGEST_ORDER
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement
from .scalar_value import noise_of, start_of

__all__ = ["StandingStart"]


class StandingStart(Rule):
    """The start is an equilibrium."""

    name: ClassVar[str] = "standing-start"
    theorem: ClassVar[str] = "the vector field vanishes at the start"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Evaluate the vector field in fractions."""
        if len(problem.vertices) != 1:  # V S B S is bilinear: vertices say nothing about mixtures
            raise Refuted("a start stands still under constant parameters, not under a family")
        start = start_of(problem)
        if problem.dim > LARGEST_ORDER:
            raise Refuted(f"the dimension {problem.dim} is above {LARGEST_ORDER}")
        L = fractions.fractions(start.factor)
        S = L * L.transpose()
        p = problem.parameters
        half = fractions.fractions(p.A) * S
        for V, B, _ in p.heads:
            half = half + fractions.fractions(V) * S * fractions.fractions(B) * S
        change = half + half.transpose()
        if p.noise is not None:
            change = change + fractions.fractions(p.noise)
        if any(x != 0 for x in change.entries()):
            raise Refuted("the covariance of the start moves")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say that it stays."""
        text = "The covariance of this start is an equilibrium: it does not move."
        if noise_of(problem) is not None:
            text = "The covariance of this start is an equilibrium of the flow with its noise."
        return Statement(Verdict.CONVERGES, Scope.THIS_START, text, math.inf, math.inf)

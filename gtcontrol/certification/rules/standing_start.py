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
        """Evaluate the vector field in fractions, under every vertex."""
        start = start_of(problem)
        if problem.dim > LARGEST_ORDER:
            raise Refuted(f"the dimension {problem.dim} is above {LARGEST_ORDER}")
        L = fractions.fractions(start.factor)
        S = L * L.transpose()
        for vertex, parameters in enumerate(problem.vertices):
            half = fractions.fractions(parameters.A) * S
            for V, B, _ in parameters.heads:
                half = half + fractions.fractions(V) * S * fractions.fractions(B) * S
            change = half + half.transpose()
            noise = parameters.noise
            if noise is not None:
                change = change + fractions.fractions(noise)
            if any(x != 0 for x in change.entries()):
                raise Refuted(f"the covariance of the start moves under vertex {vertex}")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say that it stays."""
        text = "The covariance of this start is an equilibrium: it does not move."
        if noise_of(problem) is not None:
            text = "The covariance of this start is an equilibrium of the flow with its noise."
        return Statement(Verdict.CONVERGES, Scope.THIS_START, text, math.inf, math.inf)

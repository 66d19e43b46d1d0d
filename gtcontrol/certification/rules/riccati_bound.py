"""V = v I, K <= 0: an ultimate bound on the covariance, from every start.

Let P > 0 with Aᵀ P + P A + K < 0.  For N = S⁻¹ (S > 0; singular starts are limits of such) let θ be
the largest number with N >= θP, and x a vector with xᵀ N x = θ xᵀ P x.  From N' = -AᵀN - NA - K,

    xᵀ N' x = -θ xᵀ(AᵀP + PA)x - xᵀKx > (θ - 1) xᵀKx >= 0    for θ <= 1, as K <= 0,

by at least θη xᵀPx where η P <= -(AᵀP + PA + K).  So θ grows until it reaches 1, at which it stays:
S <= P⁻¹ from some time on, and lim sup tr S <= tr P⁻¹.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...arithmetic import balls
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...riccati_flow.evidence import strict_bound
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .scalar_value import system_of, without_noise

__all__ = ["UltimateBound"]

#: Precision of the balls.
BITS = 160


class UltimateBound(Rule):
    """lim sup tr S <= tr P⁻¹ from every start."""

    name: ClassVar[str] = "riccati-bounded"
    theorem: ClassVar[str] = "V = v I with K negative semidefinite: {S <= P⁻¹} absorbs every start"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Prove the matrix inequalities and the trace."""
        without_noise(problem)
        system, d = system_of(problem), problem.dim
        P, most = matrix(claim, "bound", d, d), number(claim, "trace")
        if not 0 < most < np.inf:
            raise Refuted(f"the bound {most:g} on the trace is not a positive number")
        if not system.semidefinite(-1):
            raise Refuted("K is not proved to be negative semidefinite")
        if not np.array_equal(P, P.T) or not strict_bound(system, P):
            raise Refuted("the matrix `bound` does not satisfy its inequalities")
        with balls.precision(BITS):
            inverse = balls.balls(P).inv()
            if not bool(inverse.trace() <= balls.ball(most)):
                raise Refuted(f"the trace of P⁻¹ is not proved to be at most {most:g}")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say how large the covariance remains."""
        bound = claim.numbers["trace"]
        text = (
            "From every start the covariance stays bounded and is in the end at most P⁻¹, whose "
            f"trace is {bound:.6g}."
        )
        return Statement(Verdict.BOUNDED, Scope.EVERY_START, text, np.inf, np.inf, bound)

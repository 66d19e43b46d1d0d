"""V = v I, K <= 0, modes that K does not see but that do not grow: S stays bounded.

Let U be the largest A-invariant subspace in the kernel of K, and let no eigenvalue of A on U be
one of A on ℝᵈ/U.  Then U has an A-invariant complement, A = diag(A₁, A₂), and |K| = CᵀC with C =
[0 C₂], where (C₂, A₂) is observable.  With any F, by completing the square,

    S' = AS + SAᵀ - S CᵀC S <= (A - FC) S + S (A - FC)ᵀ + FFᵀ,

so S is at most the solution of this linear equation.  Take F = [0; F₂] with A₂ - F₂C₂ Hurwitz:
then e^{(A - FC)t} = diag(e^{A₁t}, decaying), and FFᵀ feeds the decaying part only.  If e^{A₁t} is
bounded, so is S.
"""

from __future__ import annotations

import math
from typing import ClassVar

from ...arithmetic import balls, invariance
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement
from .motions import BITS, Exact, motion_in
from .scalar_value import without_noise

__all__ = ["UnseenModes"]


class UnseenModes(Rule):
    """S is bounded from every start."""

    name: ClassVar[str] = "riccati-unseen"
    theorem: ClassVar[str] = "V = v I with K negative semidefinite, and bounded modes unseen by K"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Find the unseen modes and their characteristic polynomial exactly."""
        without_noise(problem)
        exact = Exact.of(problem)
        if not exact.system.semidefinite(-1):
            raise Refuted("K is not proved to be negative semidefinite")
        with balls.precision(BITS):
            if not motion_in(exact.A, exact.hidden).bounded:
                raise Refuted("a mode that K does not see grows")
        if exact.hidden.ncols():
            own = invariance.restricted(exact.A, exact.hidden).charpoly()
            if own.gcd(exact.A.charpoly() // own).degree() > 0:
                raise Refuted("a mode that K does not see has the eigenvalue of one that it sees")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say that it is bounded."""
        text = (
            "From every start the covariance stays bounded: K = Σ v_h (B_h + B_hᵀ) is negative "
            "semidefinite, and the modes of A that it does not see do not grow."
        )
        return Statement(Verdict.BOUNDED, Scope.EVERY_START, text, math.inf, math.inf)

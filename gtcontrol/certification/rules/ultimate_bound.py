"""An ultimate bound from every start: y = tr(W S) comes down from infinity.

Let W ≻ 0 and y' <= f(y) = κ y² + a y + e for every covariance, with κ <= 0, e >= 0, not both κ = 0
and a >= 0.  f is concave with f(0) >= 0, so f(γ) <= 0 for a γ > 0 makes f < 0 beyond γ: hence
lim sup y <= γ from every start, y(t) <= max(y(0), γ), and tr S <= β y/γ if β W ⪰ γ I.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ...arithmetic.dyadic import Dyadic, dyadic, identity, positive_semidefinite
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, number
from .inequality import check_inequality, comparison_of, level_of, weight_of

__all__ = ["UltimateBound", "dominates"]


class UltimateBound(Rule):
    """lim sup tr S <= bound from every start.

    Claims have the numbers ``quadratic``, ``linear``, ``constant`` of f, ``gamma``, ``bound``,
    optionally ``peak`` (a bound on tr S(t) for all t >= 0 from the problem's start) and ``rank``
    (1: only starts of rank one), and the arrays ``W``, ``Lam``, ``Z``.
    """

    name = "ultimate-bound"
    theorem = "quadratic certificate of boundedness from every start"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check the inequality for y' exactly, and what follows from it."""
        W, f = weight_of(problem, claim), comparison_of(claim)
        gamma, bound = number(claim, "gamma"), number(claim, "bound")
        if not (0 < gamma < math.inf and 0 < bound < math.inf):
            raise Refuted("the numbers `gamma` and `bound` must be positive and finite")
        if f.quadratic > 0 or f.constant < 0 or (f.quadratic == 0 and f.linear >= 0):
            raise Refuted("the right-hand side of the comparison equation is not dissipative")
        if f(Fraction(gamma)) > 0:
            raise Refuted("the level `gamma` lies below the equilibrium of the comparison equation")
        if not dominates(W, bound, Fraction(gamma)):
            raise Refuted("the bound on the trace does not follow from W and `gamma`")
        if "peak" in claim.numbers:
            peak = number(claim, "peak")
            if not bound <= peak < math.inf:
                raise Refuted("the number `peak` is less than the bound")
            if not dominates(W, peak, level_of(problem, claim)):
                raise Refuted("the number `peak` does not follow from W and the start")
        check_inequality(problem, claim, sign=-1)

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say the bound."""
        single = "rank" in claim.numbers
        bound = number(claim, "bound")
        starts = "every start of rank one" if single else "every start"
        text = f"From {starts}, lim sup tr S <= {bound:.6g}"
        if "peak" in claim.numbers:
            text += f"; from this start tr S(t) <= {number(claim, 'peak'):.6g} at all times"
        return Statement(
            Verdict.BOUNDED,
            Scope.THIS_START if single else Scope.EVERY_START,
            f"{text}{_family(problem)}.",
            lower=math.inf,
            upper=math.inf,
            bound=bound,
        )


def dominates(W: Dyadic, factor: float, level: Fraction) -> bool:
    """Whether factor · W ⪰ level · I, so that tr(W S) <= level implies tr S <= factor."""
    scaled = W * dyadic(factor)
    order = W.shape[0]
    return positive_semidefinite(scaled - identity(order) * Dyadic.of(level))


def _family(problem: CertificationProblem) -> str:
    if len(problem.vertices) == 1:
        return ""
    return ", however the parameters vary within the convex hull of the vertices"

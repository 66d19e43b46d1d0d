"""The blow-up time from above: y = tr(W S) grows at least like the solution of a scalar equation.

Let y' >= f(y) = κ y² + a y + e with κ > 0, and f > 0 on [y₀, ∞), y₀ = tr(W S₀).  Then y, and with
it S, leaves every bound at the latest at T = ∫_{y₀}^∞ dy/f(y).  W may be any symmetric matrix: only
the growth of y matters, not that it bounds S.
"""

from __future__ import annotations

from typing import ClassVar

from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from ..theory.comparison import passage_time
from .base import Refuted, Rule, Scope, Statement, number
from .inequality import check_inequality, comparison_of, level_of

__all__ = ["BlowUpUpper"]


class BlowUpUpper(Rule):
    """T* <= upper from this start.

    Claims have the numbers ``quadratic``, ``linear``, ``constant`` of f, ``upper`` and, for a
    start of rank one, optionally ``rank`` (1); the arrays ``W``, ``Lam``, ``Z``.
    """

    name: ClassVar[str] = "blow-up-upper"
    theorem: ClassVar[str] = "quadratic certificate: blow-up, T* from above"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check the inequality for y' exactly, and the time in balls."""
        upper = number(claim, "upper")
        _, latest = passage_time(comparison_of(claim), level_of(problem, claim))
        if not latest <= upper < float("inf"):
            raise Refuted(
                f"the comparison equation blows up by {latest:.6g} at best, not by {upper:.6g}"
            )
        check_inequality(problem, claim, sign=1)

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say the bound on the blow-up time."""
        upper = number(claim, "upper")
        family = ""
        if len(problem.vertices) > 1:
            family = ", however the parameters vary within the convex hull of the vertices"
        text = f"From this start the covariance blows up at the latest at t = {upper:.9g}{family}."
        return Statement(Verdict.BLOWS_UP, Scope.THIS_START, text, upper=upper)

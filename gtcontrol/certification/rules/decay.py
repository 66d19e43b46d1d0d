"""Decay to zero from every start: y = tr(W S) obeys y' <= κ y² + a y with κ, a <= 0.

With W ≻ 0, y(t) <= y(0) exp(a t) if a < 0, and y(t) <= 1/(1/y(0) - κ t) <= -1/(κ t) if κ < 0.
"""

from __future__ import annotations

import math
from typing import ClassVar

from ...arithmetic.dyadic import positive_definite
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement
from .inequality import check_inequality, comparison_of, weight_of

__all__ = ["Decay"]


class Decay(Rule):
    """S -> 0 from every start.

    Claims have the numbers ``quadratic``, ``linear``, ``constant`` (0) of f and optionally
    ``rank`` (1: only starts of rank one), and the arrays ``W``, ``Z`` and optionally ``Lam``.
    """

    name: ClassVar[str] = "decay"
    theorem: ClassVar[str] = "quadratic certificate: decay from every start"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check the inequality for y' exactly, and that its solutions decay."""
        f = comparison_of(claim)
        if f.constant != 0 or f.quadratic > 0 or f.linear > 0:
            raise Refuted("the comparison equation does not have decaying solutions")
        if f.quadratic == 0 and f.linear == 0:
            raise Refuted("the comparison equation has constant solutions")
        if not positive_definite(weight_of(problem, claim)):
            raise Refuted("the matrix W is not positive definite")
        check_inequality(problem, claim, sign=-1)

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say how fast the covariance decays."""
        single = "rank" in claim.numbers
        f = comparison_of(claim)
        starts = "every start of rank one" if single else "every start"
        text = f"From {starts}, S -> 0"
        if f.linear < 0:
            text += f": tr(W S) falls at least like exp({float(f.linear):.6g} t)"
        else:
            text += f": tr(W S) <= {-1 / float(f.quadratic):.6g}/t"
        if len(problem.vertices) > 1:
            text += ", however the parameters vary within the convex hull of the vertices"
        return Statement(
            Verdict.CONVERGES,
            Scope.THIS_START if single else Scope.EVERY_START,
            f"{text}.",
            lower=math.inf,
            upper=math.inf,
            bound=math.inf if single else 0.0,
        )

"""The blow-up time from below, or none: y = tr(W S) grows at most like a scalar equation.

Let W ≻ 0 and y' <= f(y) = κ y² + a y + e for every covariance, y₀ = tr(W S₀).  Then

- S exists at least until T = ∫_{y₀}^∞ dy/f(y) if κ > 0 and f > 0 on [y₀, ∞), or for ever if κ <= 0;
- y <= c for ever if f(c) <= 0 at some c >= y₀;
- S -> 0 if moreover e = 0, a < 0 and f(y₀) < 0, as f(y)/y = κ y + a is then negative on (0, y₀].
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

from ...arithmetic.dyadic import positive_definite
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from ..theory.comparison import passage_time
from .base import Refuted, Rule, Scope, Statement, number
from .inequality import check_inequality, comparison_of, level_of, weight_of
from .ultimate_bound import dominates

__all__ = ["BlowUpLower"]


class BlowUpLower(Rule):
    """T* >= lower from this start, or no blow-up.

    Claims have the numbers ``quadratic``, ``linear``, ``constant`` of f, ``lower`` (inf if there
    is no blow-up), and, for a start of rank one, optionally ``rank`` (1); if y stays below a level,
    ``ceiling`` and ``peak``, a bound on tr S(t); if S -> 0, ``decays`` (1).  The arrays are
    ``W``, ``Lam``, ``Z``.
    """

    name: ClassVar[str] = "blow-up-lower"
    theorem: ClassVar[str] = "quadratic certificate: T* from below, or no blow-up"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check the inequality for y' exactly, and the time in balls."""
        W, f, level = weight_of(problem, claim), comparison_of(claim), level_of(problem, claim)
        lower = number(claim, "lower")
        if not positive_definite(W):
            raise Refuted("the matrix W is not positive definite")
        if "ceiling" in claim.numbers:
            ceiling, peak = number(claim, "ceiling"), number(claim, "peak")
            if not math.isfinite(ceiling) or ceiling < level or f(Fraction(ceiling)) > 0:
                raise Refuted("the comparison equation crosses the level `ceiling`")
            if not 0 <= peak < math.inf or not dominates(W, peak, Fraction(ceiling)):
                raise Refuted("the bound `peak` on the trace does not follow from the ceiling")
        elif lower == math.inf:
            if f.quadratic > 0:
                raise Refuted("the comparison equation may blow up")
        else:
            earliest, _ = passage_time(f, level)
            if not lower <= earliest:
                raise Refuted(f"the comparison equation lasts until {earliest:.6g} at best")
        if "decays" in claim.numbers:
            shrinks = f.linear < 0 and f(level) < 0
            if "ceiling" not in claim.numbers or f.constant != 0 or not (shrinks or level == 0):
                raise Refuted("the comparison equation does not decay from this start")
        check_inequality(problem, claim, sign=-1)

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say the bound on the blow-up time, or that there is no blow-up."""
        family = ""
        if len(problem.vertices) > 1:
            family = ", however the parameters vary within the convex hull of the vertices"
        lower, upper, verdict = number(claim, "lower"), math.inf, Verdict.UNDECIDED
        if "ceiling" in claim.numbers:
            lower, verdict = math.inf, Verdict.BOUNDED
            text = f"From this start tr S(t) <= {number(claim, 'peak'):.6g} at all times"
            if "decays" in claim.numbers:
                verdict, text = Verdict.CONVERGES, f"{text}, and S -> 0"
        elif lower == math.inf:
            text = "From this start the covariance does not blow up in finite time"
        else:
            text = f"From this start the covariance does not blow up before t = {lower:.9g}"
        return Statement(
            verdict, Scope.THIS_START, f"{text}{family}.", lower=max(lower, 0.0), upper=upper
        )

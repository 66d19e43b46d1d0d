"""V = v I, K <= 0, a start of rank one whose dominant modes are a complex pair: S turns for ever.

Let z = e^{At} L, with one column L.  S = z zᵀ/(1 + ∫₀ᵗ zᵀ|K|z).  If the roots a ± iω, a > 0, ω > 0,
of the minimal polynomial of L are simple and have a larger real part than all others, then z =
e^{at}(p(t) + o(1)), p a motion round an ellipse of period 2π/ω; if K sees that pair, the
denominator is e^{2at}(q(t) + o(1)) with a positive q of period π/ω, as p pᵀ is.  So S - p pᵀ/q → 0:
the motion becomes periodic, with a direction that turns by half a turn in π/ω, and has no limit.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ...arithmetic import balls, invariance
from ...arithmetic.balls import Ball
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, number
from .motions import BITS, Exact
from .scalar_value import without_noise

__all__ = ["TurningLimit", "period"]


def period(exact: Exact) -> Ball:
    """Enclose π/ω.

    Raises
    ------
    Refuted
        If the start is not of rank one, or no complex pair is proved to dominate and to be seen.
    """
    without_noise(exact.problem)
    L = exact.start()
    if L.ncols() != 1 or not exact.system.semidefinite(-1):
        raise Refuted("the start is not of rank one, or K is not negative semidefinite")
    whole = invariance.relative_polynomial(exact.A, L, invariance.nothing(L.nrows()))
    seen = invariance.relative_polynomial(exact.A, L, exact.hidden)
    roots = whole.numer().complex_roots()
    first, count = max(roots, key=lambda root: (balls.above(root[0].real), root[0].imag))
    pair = [value for value, _ in roots if value.real.overlaps(first.real)]
    lower = [value for value, _ in roots if not value.real.overlaps(first.real)]
    apart = all(bool(value.real < first.real) for value in lower)
    if count != 1 or len(pair) != 2 or not apart or not bool(first.imag > 0):
        raise Refuted("no complex pair of modes dominates")
    if not bool(first.real > 0) or not _divides(seen, first):
        raise Refuted("the dominant pair of modes does not grow, or K does not see it")
    return balls.turn() / first.imag


def _divides(polynomial: Any, root: Any) -> bool:
    """Whether a root of a multiple of the polynomial is one of its own roots."""
    if polynomial.degree() < 1:
        return False
    return any(root.overlaps(value) for value, _ in polynomial.numer().complex_roots())


class TurningLimit(Rule):
    """S becomes periodic, and has no limit."""

    name: ClassVar[str] = "riccati-turning"
    theorem: ClassVar[str] = "V = v I with K negative semidefinite: a start that splits a pair"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Enclose the pair."""
        shortest, longest = number(claim, "shortest"), number(claim, "longest")
        with balls.precision(BITS):
            found = period(Exact.of(problem))
            if not (bool(balls.ball(shortest) < found) and bool(found < balls.ball(longest))):
                raise Refuted("the period is not proved to lie between its bounds")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say what the period is."""
        text = (
            "From this start the covariance stays bounded and has no limit: it approaches a "
            f"periodic motion of period {claim.numbers['shortest']:.12g}, because its rank splits "
            "a complex pair of modes of A."
        )
        return Statement(Verdict.BOUNDED, Scope.THIS_START, text, math.inf, math.inf)

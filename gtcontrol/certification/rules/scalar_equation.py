"""d = 1 with noise and K > 0: s' = 2 a s + k s² + q, decided by the roots of the right side.

k > 0, q > 0.  The roots are (-a ± √D)/k, D = a² - kq; both are positive iff D >= 0 and a < 0.  If
there are no positive roots, s' >= c > 0 on s >= 0, and every start blows up.  Otherwise starts
below the upper root tend to the lower one, at the rate 2√D (like 1/t if D = 0); the upper root
itself stays; and starts above it blow up.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ...arithmetic import balls, fractions
from ...arithmetic.balls import Ball
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, number
from .motions import BITS, Exact, choice
from .scalar_value import start_of

__all__ = ["SCALAR_OUTCOMES", "ScalarEquation", "scalar_outcome", "scalar_roots"]

#: Outcomes by the number that claims carry.
SCALAR_OUTCOMES = ("every start", "threshold", "limit", "still", "blow-up")


def _data(exact: Exact) -> tuple[Any, Any, Any]:
    if exact.problem.dim != 1 or exact.noise is None:
        raise Refuted("the rule is about dimension 1, with process noise")
    a, k, q = exact.A[0, 0], exact.K[0, 0], exact.noise[0, 0]
    if not (k > 0 and q > 0):
        raise Refuted("K is not positive")
    return a, k, q


def scalar_outcome(exact: Exact) -> str:
    """Decide exactly what happens.

    Raises
    ------
    Refuted
        If the dimension is not 1, or K or the noise is not positive.
    """
    a, k, q = _data(exact)
    gap = a * a - k * q
    if gap < 0 or a >= 0:
        return "every start"
    if exact.problem.start is None:
        return "threshold"
    factor = start_of(exact.problem).factor
    s = fractions.fraction(float(factor[0, 0])) ** 2 if factor.size else a * 0
    above = k * s + a
    if above <= 0 or above * above < gap:
        # At a double root the start may be on it.
        return "still" if gap == 0 and above == 0 else "limit"
    return "still" if above * above == gap else "blow-up"


def scalar_roots(exact: Exact) -> tuple[Ball, Ball, Ball]:
    """Enclose the lower root, the upper root, and √D."""
    a, k, q = (balls.from_fractions(fractions.column([x]))[0, 0] for x in _data(exact))
    gap = _data(exact)[0] ** 2 - _data(exact)[1] * _data(exact)[2]
    root = balls.root(balls.from_fractions(fractions.column([gap]))[0, 0])
    # The product of the roots is q/k: no cancellation.
    upper = (root - a) / k
    return q / (k * upper), upper, root


class ScalarEquation(Rule):
    """Everything about s' = 2 a s + k s² + q with k > 0."""

    name: ClassVar[str] = "scalar-equation"
    theorem: ClassVar[str] = "d = 1 with noise: roots of 2 a s + k s² + q"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Decide by exact fractions; enclose the roots."""
        exact = Exact.of(problem)
        claimed = SCALAR_OUTCOMES[choice(claim, "outcome", len(SCALAR_OUTCOMES))]
        found = scalar_outcome(exact)
        if found != claimed:
            raise Refuted(f"the outcome is {found!r}, not {claimed!r}")
        if found in ("every start", "blow-up"):
            return
        error, rate = number(claim, "error"), number(claim, "rate")
        with balls.precision(BITS):
            lower, upper, root = scalar_roots(exact)
            for name, exact_root in (("lower_root", lower), ("upper_root", upper)):
                miss = abs(balls.ball(number(claim, name)) - exact_root)
                if not bool(miss <= balls.ball(error)) or not math.isfinite(error):
                    raise Refuted(f"the number `{name}` is not proved to its error")
            if rate != 0.0 and not (rate > 0 and bool(balls.ball(rate) <= root * balls.ball(2))):
                raise Refuted(f"the rate {rate:g} is not proved")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say which of the outcomes it is."""
        numbers = claim.numbers
        outcome = SCALAR_OUTCOMES[int(numbers["outcome"])]
        this, inf = Scope.THIS_START, math.inf
        if outcome == "every start":
            text = "Every start blows up in finite time, 0 too: s' = 2as + ks² + q is positive."
            return Statement(Verdict.BLOWS_UP, Scope.EVERY_START, text)
        if outcome == "blow-up":
            text = "From this start, which is above the unstable equilibrium, s blows up."
            return Statement(Verdict.BLOWS_UP, this, text)
        lower, upper = f"{numbers['lower_root']:.10g}", f"{numbers['upper_root']:.10g}"
        if outcome == "threshold":
            text = (
                f"Starts below {upper} converge to {lower}, starts above it blow up in finite "
                f"time (both numbers to {numbers['error']:.2g})."
            )
            return Statement(Verdict.BLOW_UP_DATA_EXIST, Scope.SOME_STARTS, text)
        if outcome == "still":
            text = f"The start is at {upper} exactly, and does not move; above it s blows up."
            return Statement(Verdict.CONVERGES, this, text, inf, inf)
        rate = numbers["rate"]
        speed = f"at any exponential rate below {rate:.10g}" if rate else "only like 1/t (marginal)"
        text = f"From this start the variance converges, {speed}, to {lower}."
        return Statement(Verdict.CONVERGES, this, text, inf, inf)

"""A start of rank one under attention alone: the flow is solved by one quadrature.

With A = 0, one head and S0 = x0 x0ᵀ, the factor obeys ``L' = (LᵀBL) V L``.  So ``L(t) = x(σ(t))``
with ``x(s) = e^{Vs} x0`` and ``σ' = q(σ)``, ``q(s) = x(s)ᵀ B x(s)``, ``σ(0) = 0``; take q(0) > 0,
else run s backwards.

* If q has a zero, σ creeps up to the first one, s*, which it does not reach, and S converges to
  ``x(s*) x(s*)ᵀ``.  It is proved by q > 0 on [0, low] and q(high) < 0.
* If q > 0 for all s, then ``T* = ∫_0^∞ ds/q(s)``.  Let ν be the largest real part of an exponent
  of x, real and simple, and ``q(s) e^{-2νs}`` in [l, u], l > 0, for all s >= c: the tail of the
  integral is in ``e^{-2νc}/(2ν) [1/u, 1/l]`` if ν > 0.  If ν < 0 it diverges, σ tends to
  infinity, and S to zero; if ν = 0, S tends to the part of x0 in the kernel of V.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..._check import Array
from ...arithmetic.balls import above, ball, below, precision
from ...arithmetic.exponentials import ExponentialForm, quadratic_form, vanishes_on
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from ..theory.heads import Head, merge_heads
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .wording import rounded_up

__all__ = ["BITS", "LARGEST", "RankOneBlowUp", "RankOneLimit", "form_of", "solvable_head"]

#: Precision of the balls, in bits.
BITS = 256

#: Largest dimension for which exact fractions are used.
LARGEST = 16


class RankOneBlowUp(Rule):
    """Blow-up of a start of rank one, with the time enclosed by quadrature."""

    name: ClassVar[str] = "rank-one-blow-up"
    theorem: ClassVar[str] = "rank one, A = 0: T* is an integral"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Enclose the integral up to a cut, and its tail."""
        cut = number(claim, "cut")
        with precision(BITS):
            form = form_of(problem)
            lower, upper = enclose_time(form, cut)
        if not number(claim, "lower") <= lower or not upper <= number(claim, "upper"):
            raise Refuted(
                f"the quadrature gives a blow-up time in [{lower:.17g}, {upper:.17g}], not in "
                f"[{number(claim, 'lower'):.17g}, {number(claim, 'upper'):.17g}]"
            )

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say when the covariance blows up."""
        lower, upper = number(claim, "lower"), number(claim, "upper")
        text = (
            f"The covariance blows up at a time between {lower:.17g} and {upper:.17g}, found by "
            "quadrature: of rank one and without A, it moves along a fixed curve."
        )
        return Statement(Verdict.BLOWS_UP, Scope.THIS_START, text, lower, upper)


class RankOneLimit(Rule):
    """Convergence of a start of rank one to a point of its curve, to zero, or not at all."""

    name: ClassVar[str] = "rank-one-limit"
    theorem: ClassVar[str] = "rank one, A = 0: the limit is at the first zero of a function"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check the bracket of the zero and the limit factor; or that there is no zero at all."""
        d = problem.dim
        limit, error = matrix(claim, "factor", d), number(claim, "error")
        if not 0 <= error < float("inf"):
            raise Refuted("the error of the limit is not a finite number")
        with precision(BITS):
            exact = _stands_still(problem)
            if exact is not None:
                if not np.array_equal(exact, limit):
                    raise Refuted("the start is an equilibrium, so that it is the limit itself")
                return
            form = form_of(problem)
            low, high = number(claim, "low"), number(claim, "high")
            if high == float("inf"):
                entries = _end_of_curve(form, low)
            else:
                entries = _first_zero(form, low, high)
            distance = max(
                above(abs(x - ball(y))) for x, y in zip(entries, limit.tolist(), strict=True)
            )
        if not distance <= error:
            raise Refuted(f"the limit factor is wrong by {distance:.3g} in an entry")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say what the limit is."""
        factor = matrix(claim, "factor", problem.dim)
        # The digits that are not written count as error, too.
        error = number(claim, "error") + 1e-10 * float(np.max(np.abs(factor)))
        listed = ", ".join(f"{x:.10g}" for x in factor[:8]) + (", ..." if factor.size > 8 else "")
        what = "zero" if not np.any(factor) else f"l lᵀ with l = ({listed})"
        text = (
            f"The covariance converges to {what} (up to {rounded_up(error, 2)} in each entry): "
            "of rank "
            "one and without A, it moves along a fixed curve and does not pass the first point at "
            "which attention vanishes."
        )
        return Statement(Verdict.CONVERGES, Scope.THIS_START, text, float("inf"), float("inf"))


def solvable_head(problem: CertificationProblem) -> Head | None:
    """Return the one head of a problem that the quadrature solves, else None."""
    p = problem.parameters
    start = problem.start
    if len(problem.vertices) != 1 or start is None or start.rank != 1 or np.any(p.A):
        return None
    heads = merge_heads(p)
    if len(heads) != 1 or (p.noise is not None and np.any(p.noise)):
        return None
    return heads[0] if np.any(start.factor) else None


def form_of(problem: CertificationProblem) -> ExponentialForm:
    """Return q along the curve, in the direction in which it is run through.

    Raises
    ------
    Refuted
        If the problem is not solved by the quadrature, or cannot be in this arithmetic.
    """
    head = solvable_head(problem)
    if head is None or problem.start is None:
        raise Refuted("the quadrature needs rank one, A = 0, one head and no noise")
    if problem.dim > LARGEST:
        raise Refuted(f"exact fractions are used up to dimension {LARGEST}")
    form = quadratic_form(head.values, head.scores, problem.start.factor[:, 0])
    if form is None:
        raise Refuted("V has a multiple eigenvalue on the subspace that the start reaches")
    first = form.value(0).real
    if first > 0:
        return form
    if first < 0:
        return form.reversed()
    raise Refuted("the sign of xᵀBx at the start is not proved")


def _stands_still(
    problem: CertificationProblem,
) -> Array | None:
    """Return the factor of a start at which xᵀBx = 0 exactly, else None."""
    head = solvable_head(problem)
    if head is None or problem.start is None:
        raise Refuted("the quadrature needs rank one, A = 0, one head and no noise")
    x = problem.start.factor[:, 0]
    return x if problem.dim <= LARGEST and vanishes_on(head.scores, x) else None


def enclose_time(form: ExponentialForm, cut: float) -> tuple[float, float]:
    """Enclose the blow-up time.

    Raises
    ------
    Refuted
        If q is not proved to stay positive, or the integral to be finite.
    """
    _, nu, tail = _leading(form, cut)
    if not nu > 0:
        raise Refuted("q is not proved to grow, so that the integral may be infinite")
    head = form.reciprocal_integral(cut)
    if head is None:
        raise Refuted("q is not proved to be positive up to the cut")
    scale = (-2 * nu * cut).exp() / (2 * nu)
    return below(head + scale / tail), above(head + scale / tail)


def _leading(form: ExponentialForm, cut: float) -> tuple[int, Any, Any]:
    if not 0 <= cut < float("inf"):
        raise Refuted("the cut of the integral is not a finite number")
    lead = form.leading()
    if lead is None:
        raise Refuted("no real eigenvalue of V leads on the subspace that the start reaches")
    tail = form.tail(lead, cut)
    if not tail > 0:
        raise Refuted("q is not proved to stay positive beyond the cut")
    return lead, form.exponents[lead].real, tail


def _end_of_curve(form: ExponentialForm, cut: float) -> list[Any]:
    """Limit of the curve if q has no zero and the time is infinite."""
    lead, nu, _ = _leading(form, cut)
    if not form.positive_on(cut):
        raise Refuted("q is not proved to be positive up to the cut")
    if nu < 0:
        return [ball(0.0)] * form.modes[0].nrows()
    if nu == 0:
        return [x.real for x in form.modes[lead].entries()]
    raise Refuted("the curve is not proved to have an end")


def _first_zero(form: ExponentialForm, low: float, high: float) -> list[Any]:
    """Entries of the factor on the bracket of the first zero of q."""
    if not 0 < low < high:
        raise Refuted("the bracket of the zero is empty")
    if not form.value(ball(high)).real < 0:
        raise Refuted("q is not proved to be negative at the upper end of the bracket")
    if not form.positive_on(low):
        raise Refuted("q is not proved to be positive up to the lower end of the bracket")
    return form.factor(ball(low).union(ball(high)))

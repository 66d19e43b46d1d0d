"""Joint stability of mean and covariance at an equilibrium that attracts.

With δ = y - y* (:mod:`.local_stability`) and e = H R⁻¹ (m - m*), H invertible, the mean obeys

    e' = (J_m + Σ V_h D B_h) e + Σ V_h D (B_h m* + β_h),   J_m = A + Σ V_h + Σ V_h S̃* B_h,

with D = S̃ - S̃*, in the coordinates of R and H.  If sym J_m <= -α_m, |Σ V_h D B_h| <= g |δ| and
|Σ V_h D (B_h m* + β_h)| <= h |δ|, then with |δ(t)| <= D₀ e^{-α' t}, by Gronwall's inequality,

    |e(t)| <= e^{g D₀/α'} (e^{-α_m t} |e(0)| + h D₀ ∫₀ᵗ e^{-α_m (t-s) - α' s} ds),

whatever the mean is at first.  (No such certificate exists at a positive definite equilibrium if
tr Σ V_h >= 0: see :mod:`.mean_refusal`.)
"""

from __future__ import annotations

import math
from typing import ClassVar

from ...arithmetic import balls
from ...arithmetic.norms import frobenius_bound, norm_bound
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .local_stability import check_stability, describe
from .neighbourhood import BITS, Neighbourhood

__all__ = ["MeanStability", "check_mean"]


class MeanStability(Rule):
    """An equilibrium law that attracts all means, and all covariances near it.

    Numbers and arrays: those of the rule "local-stability", ``mean rate`` (α_m), ``gain`` (g),
    ``drive`` (h), ``mean error``; ``mean metric`` (H), ``mean`` (m* up to ``mean error``).
    """

    name: ClassVar[str] = "mean-stability"
    theorem: ClassVar[str] = "Lyapunov function, Gronwall: equilibrium that attracts, with the mean"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check the covariance, then the rate, the gain and the drive of the mean in balls."""
        with balls.precision(BITS):
            near = check_stability(problem, claim)
            check_mean(problem, claim, near)

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say what attracts, and how the mean follows."""
        rate = number(claim, "mean rate")
        mean = ", ".join(f"{x:.6g}" for x in matrix(claim, "mean", problem.dim)[:6])
        more = ", ..." if problem.dim > 6 else ""
        text = (
            f"{describe(problem, claim)} Then every mean tends to ({mean}{more}), in the end at "
            f"any rate below the slower of this one and {rate:.4g}."
        )
        if "distance" in claim.numbers:
            return Statement(Verdict.CONVERGES, Scope.THIS_START, text)
        if math.isinf(number(claim, "radius")):
            return Statement(Verdict.CONVERGES, Scope.EVERY_START, text)
        return Statement(Verdict.LOCALLY_STABLE, Scope.SOME_STARTS, text)


def check_mean(problem: CertificationProblem, claim: Claim, near: Neighbourhood) -> None:
    """Check the rate, the gain and the drive of the mean; the precision is set by the caller.

    Raises
    ------
    Refuted
        If a condition is not proved.
    """
    d, p = problem.dim, problem.parameters
    H = balls.balls(matrix(claim, "mean metric", d, d))
    try:
        inverse = H.inv()
    except ZeroDivisionError:
        raise Refuted("the array `mean metric` is not proved to be invertible") from None
    error, rate = balls.ball(number(claim, "error")), number(claim, "mean rate")
    turned = near.frame.transpose()
    jacobian, residual = near.A, near.inverse * balls.balls(p.b)
    # Everything at the approximate equilibrium first; S* differs by at most `error` in y.
    place = near.inverse * balls.balls(matrix(claim, "mean", d))
    gain, force = balls.ball(0.0), balls.ball(0.0)
    for (V, B), (_, _, beta) in zip(near.heads, p.heads, strict=True):
        jacobian = jacobian + V + V * near.base * B
        tilt = B * place
        if beta is not None:
            tilt = tilt + turned * balls.balls(beta)
            residual = residual + V * near.base * (turned * balls.balls(beta))
        left = balls.ball(norm_bound(H * V)) * near.shrink
        gain += left * norm_bound(B * inverse)
        force += left * frobenius_bound(tilt)
    residual = residual + jacobian * place
    damping = -(H * jacobian * inverse)
    damping = (damping + damping.transpose()) / 2 - gain * error * balls.identity(d)
    if not rate > 0 or not balls.positive_definite(damping - balls.ball(rate) * balls.identity(d)):
        raise Refuted(f"the rate {rate!r} of the mean is not proved")
    # H J* H⁻¹ has an inverse of norm at most 1/rate, which bounds what is missing from the mean.
    missing = (frobenius_bound(H * residual) + force * error) / balls.ball(rate)
    if not missing * norm_bound(near.frame * inverse) <= number(claim, "mean error"):
        raise Refuted("the mean of the equilibrium is not proved to be as near as claimed")
    if not gain <= number(claim, "gain") < math.inf:
        raise Refuted("the gain of the covariance on the mean is larger than claimed")
    # |B m* + β| differs from its value at the claimed mean by |B H⁻¹| times what is missing.
    if not force + gain * missing <= number(claim, "drive") < math.inf:
        raise Refuted("the drive of the covariance on the mean is larger than claimed")

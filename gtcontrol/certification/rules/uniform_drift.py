"""V = v I, A = a I, one start of covariance L Lᵀ: everything in closed form (and all of d = 1).

With Γ = Lᵀ K L and g(t) = ∫₀ᵗ e^{2as} ds,

    S(t) = e^{2at} L (I - g(t) Γ)⁻¹ Lᵀ,    on the kernel of Γ as on its other eigenvectors.

a > 0: no blow-up iff Γ <= 0; then S → 2a L (-Γ)⁻¹ Lᵀ if Γ < 0, with the rate 2a, and otherwise S
grows like e^{2at}.  a = 0: no blow-up iff Γ <= 0; then S → L P Lᵀ like 1/t, with the orthogonal
projector P on the kernel of Γ.  a < 0: no blow-up iff Γ <= -2a; then S → L P Lᵀ with the projector
P on the kernel of Γ + 2a, at the rate -2a: 0 below the threshold.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from ...arithmetic import fractions, invariance
from ...arithmetic.definiteness import semidefinite
from ...arithmetic.fractions import Fractions
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .motions import Exact, flag, within
from .scalar_value import without_noise

__all__ = ["UniformDrift", "uniform_limit"]


def uniform_limit(exact: Exact) -> tuple[float, Fractions | None, bool]:
    """Return a, the limit (None if S grows), and whether the start is at the threshold.

    Raises
    ------
    Refuted
        If A is not a I, or S blows up.
    """
    without_noise(exact.problem)
    d = exact.problem.dim
    a = float(exact.system.A[0, 0])
    if not np.array_equal(exact.system.A, a * np.eye(d)):
        raise Refuted("A is not a multiple of the identity")
    L = exact.start()
    if not L.ncols():
        return a, L * L.transpose(), False
    gram = L.transpose() * exact.K * L
    drift = fractions.fraction(a)
    level = fractions.identity(L.ncols()) * (drift * -2 if a < 0 else fractions.fraction(0.0))
    if not semidefinite(level - gram):
        raise Refuted("the covariance blows up from this start")
    kept = invariance.kernel(level - gram)
    if a > 0:
        if kept.ncols():
            return a, None, False
        return a, L * gram.inv() * L.transpose() * (drift * -2), False
    part = L * kept
    if not kept.ncols():
        return a, exact.A * 0, False
    made = part * (kept.transpose() * kept).inv() * part.transpose()
    return a, made, a < 0


class UniformDrift(Rule):
    """The limit, or the growth, of S from the start of the problem, exactly."""

    name: ClassVar[str] = "riccati-uniform-drift"
    theorem: ClassVar[str] = "V = v I and A = a I: closed form in the range of the start"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Compute the limit in fractions."""
        a, made, level = uniform_limit(Exact.of(problem))
        if flag(claim, "unbounded") != (made is None) or flag(claim, "threshold") != level:
            raise Refuted("the claim is wrong about whether the covariance has a limit")
        if number(claim, "rate") != 2 * abs(a):
            raise Refuted(f"the rate is {2 * abs(a):g}, not {claim.numbers['rate']:g}")
        if made is not None:
            d = problem.dim
            within(made, matrix(claim, "limit", d, d), number(claim, "error"))

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say where it goes."""
        rate = claim.numbers["rate"]
        scope, inf = Scope.THIS_START, math.inf
        if claim.numbers["unbounded"]:
            text = (
                f"From this start the covariance grows without bound, like e^({rate:.8g} t), but "
                "not in finite time: K = Σ v_h (B_h + B_hᵀ) vanishes on a part of it."
            )
            return Statement(Verdict.UNBOUNDED, scope, text, inf, inf)
        speed = f"at the exponential rate {rate:.10g}" if rate else "only like 1/t (marginal)"
        trace = float(np.trace(claim.arrays["limit"]))
        to = f"a covariance of trace {trace:.10g} that depends on the start" if trace else "0"
        text = f"From this start the covariance converges, {speed}, to {to}."
        if claim.numbers["threshold"]:
            text += " The start is exactly at the threshold: any larger multiple of it blows up."
        return Statement(Verdict.CONVERGES, scope, text, inf, inf)

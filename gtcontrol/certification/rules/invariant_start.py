"""V = v I, K <= 0, a start whose range is invariant under A (as is that of full rank): its limit.

A L = L Λ makes S = L P Lᵀ with P' = ΛP + PΛᵀ + PΓP, Γ = Lᵀ K L, P(0) = I.  Let ℝʳ be the sum of
the kernel of Λ, spanned by Z, and its range, spanned by R, let Γ Z = 0, and let the eigenvalues of
Λ on R have real parts of at least α > 0.  N = P⁻¹ obeys N' = -ΛᵀN - NΛ - Γ.  In the coordinates [Z
R] its blocks are n₀₀ = ZᵀZ, which stands still, n₀ₕ e^{-Λₕt}, and Nₕ, whose Schur complement obeys
the same Lyapunov equation as Nₕ itself and tends to X with ΛₕᵀX + XΛₕ = -Γₕ.  Inverting by blocks,
with X > 0,

    P → Z (ZᵀZ)⁻¹ Zᵀ + R X⁻¹ Rᵀ,    at the rate α, or 2α if the kernel is {0}.

What remains in the modes of eigenvalue 0 is decided by the start: there is a continuum of limits.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from ...arithmetic import balls, fractions, invariance
from ...arithmetic.balls import Ball
from ...arithmetic.definiteness import positive_definite
from ...arithmetic.fractions import Fractions
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .motions import BITS, Exact, below, flag, motion_in, within
from .scalar_value import without_noise

__all__ = ["InvariantStart", "invariant_limit"]

#: Largest dimension of the growing part for which its Lyapunov equation is solved exactly.
LARGEST_GROWING = 8


def invariant_limit(exact: Exact) -> tuple[Fractions, Ball | None, bool]:
    """Return the limit, its rate (None if S stands still), and whether there is a continuum.

    Raises
    ------
    Refuted
        If a condition of the theorem fails.
    """
    without_noise(exact.problem)
    L = exact.start()
    if not L.ncols() or not exact.system.semidefinite(-1):
        raise Refuted("the start is 0, or K is not negative semidefinite")
    inner = invariance.restricted(exact.A, L)
    if any(x != 0 for x in (exact.A * L - L * inner).entries()):
        raise Refuted("the range of the start is not invariant under A")
    gram = L.transpose() * exact.K * L
    Z = invariance.kernel(inner)
    R = invariance.reachable(inner * 0, inner)
    if invariance.intersection(Z, R).ncols():
        raise Refuted("the eigenvalue 0 of A has a Jordan block")
    if any(x != 0 for x in (gram * Z).entries()):
        raise Refuted("K sees a mode of eigenvalue 0")
    made, rate = L * Z * 0 * (L * Z).transpose(), None
    if Z.ncols():
        part = L * Z
        made = part * (Z.transpose() * Z).inv() * part.transpose()
    if R.ncols():
        grown, rate = _growing(inner, gram, R)
        part = L * R
        made = made + part * grown * part.transpose()
        rate = rate * balls.ball(1 if Z.ncols() else 2)
    return made, rate, bool(Z.ncols())


def _growing(inner: Fractions, gram: Fractions, R: Fractions) -> tuple[Fractions, Ball]:
    """Return X⁻¹ and the least real part on R."""
    if R.ncols() > LARGEST_GROWING:
        raise Refuted(f"the growing part has dimension {R.ncols()}, above {LARGEST_GROWING}")
    Lam = invariance.restricted(inner, R)
    backwards = motion_in(Lam * -1, fractions.identity(R.ncols()))
    top = backwards.abscissa
    if not backwards.decays or top is None:
        raise Refuted("a mode of A in the range of the start, other than 0, does not grow")
    X = invariance.lyapunov(Lam.transpose(), R.transpose() * gram * R)
    if not positive_definite(X):
        raise Refuted("K does not see a growing mode")
    return X.inv(), -top


class InvariantStart(Rule):
    """The limit of S from the start of the problem, exactly."""

    name: ClassVar[str] = "riccati-invariant-start"
    theorem: ClassVar[str] = "V = v I with K negative semidefinite and a start of invariant range"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Compute the limit in fractions."""
        d = problem.dim
        with balls.precision(BITS):
            made, rate, many = invariant_limit(Exact.of(problem))
            if flag(claim, "continuum") != many:
                raise Refuted("the claim is wrong about whether there is a continuum of limits")
            below(number(claim, "rate"), rate)
            within(made, matrix(claim, "limit", d, d), number(claim, "error"))

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say what the limit is."""
        rate, trace = claim.numbers["rate"], float(np.trace(claim.arrays["limit"]))
        speed = f", at any exponential rate below {rate:.10g}," if rate else ""
        text = (
            f"From this start the covariance converges{speed} to a covariance of trace "
            f"{trace:.10g}."
        )
        if claim.numbers["continuum"]:
            text += (
                " It is one of a continuum of equilibria, and the start decides which: K = "
                "Σ v_h (B_h + B_hᵀ) does not see modes of A of eigenvalue 0 (marginal)."
            )
        return Statement(Verdict.CONVERGES, Scope.THIS_START, text, math.inf, math.inf)

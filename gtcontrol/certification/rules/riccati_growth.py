"""V = v I, K <= 0, a mode that K does not see: S grows without bound, but not in finite time.

Let L₀ be a factor of the covariance at some time (time 0, here), y a vector, u = L₀ y and z =
e^{At} u.  Since K <= 0, S exists for ever, and from the closed form

    S(t) = Φ L₀ (I - C)⁻¹ L₀ᵀ Φᵀ >= z zᵀ/(yᵀ(I - C)y) = z zᵀ/(|y|² + ∫₀ᵗ zᵀ|K|z),

as M⁻¹ >= y yᵀ/(yᵀMy) for M > 0.  Noise only adds to S.

Hidden modes.  If u lies in U, the largest A-invariant subspace in the kernel of K, then K z = 0 and
S >= z zᵀ/|y|², which is unbounded if z is.  A start of full rank has every u in its range; with
noise Q every covariance after time 0 has the A-invariant subspace N in its range that Q drives
(compare with the linear equation of A - c I on a short time).  If u lies in U and in the range of Q
>= c u uᵀ, then S >= c ∫₀ᵗ Φ u uᵀ Φᵀ, which is unbounded unless z decays.

Growth against sight.  If the largest real part α of the exponents of z exceeds that of the part of
z that K sees, β, and 0, the quotient grows at least like e^{2(α - max(β, 0))t}, up to powers of t.
"""

from __future__ import annotations

import math
from typing import ClassVar

from ...arithmetic import balls, fractions, invariance
from ...arithmetic.balls import Ball
from ...arithmetic.fractions import Fractions
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, number
from .motions import BITS, Exact, below, choice, motion_in

__all__ = ["GROUNDS", "Growth", "column_rate"]

#: What makes S grow, by the number that claims carry.
GROUNDS = ("every full-rank start", "this start", "a column of this start", "noise", "fresh noise")


def column_rate(exact: Exact, u: Fractions) -> Ball | None:
    """Enclose 2 (α - max(β, 0)) for the motion e^{At} u; None if it is not proved positive."""
    whole = motion_in(exact.A, invariance.reachable(exact.A, u)).abscissa
    if whole is None:
        return None
    seen = invariance.motion(invariance.relative_polynomial(exact.A, u, exact.hidden))
    other = None if seen is None else seen.abscissa
    if seen is None:
        return None
    least = balls.ball(0.0) if other is None else other.max(balls.ball(0.0))
    rate = (whole - least) * balls.ball(2)
    return rate if bool(rate > 0) else None


class Growth(Rule):
    """S is unbounded, and exists for all times."""

    name: ClassVar[str] = "riccati-growth"
    theorem: ClassVar[str] = "V = v I with K negative semidefinite and a growing mode unseen by K"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Find the unseen modes exactly, and compare exponents in balls."""
        exact = Exact.of(problem)
        if not exact.system.semidefinite(-1):
            raise Refuted("K is not proved to be negative semidefinite")
        ground = GROUNDS[choice(claim, "ground", len(GROUNDS))]
        rate = number(claim, "rate")
        with balls.precision(BITS):
            if ground == "a column of this start":
                factor = exact.start()
                j = choice(claim, "column", factor.ncols())
                found = column_rate(exact, factor * _unit(factor.ncols(), j))
                if found is None or not rate > 0:
                    raise Refuted("what K sees of the start is not proved to grow more slowly")
                below(rate, found)
                return
            reached = self._reached(exact, ground)
            inner = invariance.intersection(reached, exact.hidden)
            motion = motion_in(exact.A, invariance.reachable(exact.A, inner))
            if motion.decays if ground == "fresh noise" else motion.bounded:
                raise Refuted("no growing mode is hidden from K and reached")
            top = motion.abscissa
            below(rate, None if top is None else top * balls.ball(2))

    @staticmethod
    def _reached(exact: Exact, ground: str) -> Fractions:
        if ground == "every full-rank start":
            return fractions.identity(exact.problem.dim)
        if ground == "this start":
            return exact.start()
        if exact.noise is None:
            raise Refuted("the claim is about noise, and there is none")
        return exact.fed if ground == "noise" else invariance.reachable(exact.A * 0, exact.noise)

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say from where it grows, and how fast."""
        ground, rate = GROUNDS[int(claim.numbers["ground"])], claim.numbers["rate"]
        scope, where = Scope.THIS_START, "From this start"
        if ground == "every full-rank start":
            scope, where = Scope.FULL_RANK, "From every start of full rank"
        elif "noise" in ground:
            scope, where = Scope.EVERY_START, "From every start"
        how = f"at least like e^({rate:.8g} t) up to powers of t" if rate else "algebraically"
        mode = "a mode of A that does not decay" if not rate else "a growing mode of A"
        text = (
            f"{where} the covariance grows without bound, {how}, but not in finite time: "
            f"K = Σ v_h (B_h + B_hᵀ) is negative semidefinite and does not hold back {mode}."
        )
        return Statement(Verdict.UNBOUNDED, scope, text, math.inf, math.inf)


def _unit(n: int, j: int) -> Fractions:
    one = fractions.identity(n).tolist()
    return fractions.column([row[j] for row in one])

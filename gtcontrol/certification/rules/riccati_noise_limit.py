"""V = v I, K <= 0, process noise Q: one limit for all starts, and how fast it is approached.

Let S* >= 0 solve A S + S Aᵀ + S K S + Q = 0 with M = A + S*K Hurwitz, and (A, Q) be stabilisable:
every mode of A that does not decay is driven by Q.  Then S → S* from every start.

From above.  D = S - S* obeys D' = M D + D Mᵀ + D K D; if D(0) >= 0, then 0 <= D <= e^{Mt} D(0)
e^{Mᵀt}. From below.  The solution from 0 increases (S' = Q >= 0 at first, and the flow keeps the
order), stays below S*, and so tends to an equilibrium S₀.  If wᵀ(A + S₀K) = λwᵀ with Re λ >= 0,
then 2 Re λ w*S₀w + w*(Q - S₀KS₀)w = 0 makes w*Qw = 0 and K S₀ conj(w) = 0, so wᵀA = λwᵀ: a mode
that Q does not drive.  Hence A + S₀K is Hurwitz, too, and from (A + S₀K)(S₀ - S*) + (S₀ - S*) Mᵀ =
0 (subtract the equations) S₀ = S*.  Every start lies between 0 and S₀ + S*, and the flow keeps the
order.  Near S* the rate is that of the linearisation, D ↦ M D + D Mᵀ.

Existence.  Let S₁ be floats with residual R, M₁ = A + S₁K, and T such that T⁻¹M₁T has a symmetric
part at most -α.  In coordinates T, D ↦ M₁D + DM₁ᵀ has an inverse of norm at most 1/(2α), so by
Brouwer's theorem S₁ + D is a solution for some |D| <= ρ if |R| + |K|ρ² <= 2αρ; there the symmetric
part of M is at most -α + |K|ρ.  It is Hurwitz then, so S* = ∫ e^{Mt}(Q - S*KS*)e^{Mᵀt} >= 0.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..._check import Array
from ...arithmetic import balls, invariance
from ...arithmetic.balls import Ball, Balls
from ...arithmetic.definiteness import definite, enclosure
from ...arithmetic.norms import size_bound
from ...arithmetic.spectra import sides
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...riccati_flow.system import System
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .motions import Exact
from .scalar_value import noise_of, system_of

__all__ = ["NoiseLimit", "proved_distance"]

#: Precision of the balls.
BITS = 200


def proved_distance(
    system: System, noise: Array, limit: Array, basis: Array, alpha: float
) -> tuple[float, float]:
    """Bound the entries of S* - limit, and the rate at which M decays from below.

    Parameters
    ----------
    system : System
    noise, limit, basis : (d, d) arrays
        Q, S₁ and T.
    alpha : float

    Raises
    ------
    Refuted
        If no solution is proved to exist.
    """
    with balls.precision(BITS):
        A, K = system.ball_pair()
        S, T, Q = balls.balls(limit), balls.balls(basis), balls.balls(noise)
        inverse = balls.inverse(T)
        if inverse is None or not np.array_equal(limit, limit.T):
            raise Refuted("the basis of the claim is not proved to be invertible")
        own = A * S
        rest = inverse * (own + own.transpose() + S * K * S + Q) * inverse.transpose()
        score = T.transpose() * K * T
        moved = inverse * (A + S * K) * T
        decay = -(moved + moved.transpose()) / balls.ball(2)
        if not definite(decay - balls.identity(len(limit)) * balls.ball(alpha)):
            raise Refuted(f"A + S*K is not proved to decay at {alpha:g}")
        radius = balls.ball(size_bound(rest)) / balls.ball(alpha) + balls.ball(1e-300)
        weight = balls.ball(size_bound(score))
        half = balls.ball(size_bound(rest)) + weight * radius * radius
        radius = balls.ball(size_bound(rest)) / balls.ball(alpha) + balls.ball(1e-300)
        weight = balls.ball(size_bound(score))
        half = balls.ball(size_bound(rest)) + weight * radius * radius
        if not bool(half <= balls.ball(2 * alpha) * radius):
            raise Refuted("the limit is not proved to be near a solution of the Riccati equation")
        left = balls.below(balls.ball(alpha) - weight * radius)
        return _entries(T, radius), left


def _entries(T: Balls, radius: Ball) -> float:
    """Bound the entries of T D Tᵀ for |D| <= radius: by the lengths of the rows of T."""
    size = T * T.transpose()
    rows = np.diag(enclosure(size).middle + enclosure(size).radius)
    return float(np.max(rows)) * balls.above(radius) * (1 + 1e-12)


def _driven(problem: CertificationProblem, noise: Array) -> None:
    """Refuse unless Q drives every mode of A that does not decay.

    Raises
    ------
    Refuted
        If it is not proved.
    """
    with balls.precision(BITS):
        if definite(balls.balls(noise)):
            return
        exact = Exact.of(problem)
        whole = sides(exact.A.charpoly())
        inner = invariance.restricted(exact.A, exact.fed)
        part = sides(inner.charpoly())
        if whole is None or part is None or (whole.axis, whole.right) != (part.axis, part.right):
            raise Refuted("a mode of A that does not decay is not driven by the noise")


class NoiseLimit(Rule):
    """S converges to the stabilising solution of the Riccati equation from every start."""

    name: ClassVar[str] = "riccati-noise-limit"
    theorem: ClassVar[str] = "V = v I with K <= 0 and noise: the stabilising solution attracts all"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Prove existence by Newton and Brouwer, and that the noise drives what does not decay."""
        system, d, noise = system_of(problem), problem.dim, noise_of(problem)
        if noise is None:
            raise Refuted("the rule is about parameters with process noise")
        if not system.semidefinite(-1):
            raise Refuted("K is not proved to be negative semidefinite")
        limit, basis = matrix(claim, "limit", d, d), matrix(claim, "basis", d, d)
        alpha, error, rate = (number(claim, x) for x in ("alpha", "error", "rate"))
        if not 0 < alpha < np.inf or not 0 < rate < np.inf:
            raise Refuted("the rate of the claim is not a positive number")
        most, left = proved_distance(system, noise, limit, basis, alpha)
        if not most <= error < np.inf:
            raise Refuted(f"the limit is only proved to an error of {most:.3g}")
        if not rate <= 2 * left * (1 - 1e-15):
            raise Refuted(f"the rate {rate:g} is not proved; {2 * left:.6g} is")
        _driven(problem, noise)

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say what the limit is."""
        limit, error = claim.arrays["limit"], claim.numbers["error"]
        trace = float(np.trace(limit))
        text = (
            "From every start the covariance converges, at any exponential rate below "
            f"{claim.numbers['rate']:.10g}, to the one covariance that noise and attention keep "
            f"in balance, whose trace is {trace:.10g} (entries to {error:.2g})."
        )
        bound = float(np.nextafter(trace * (1 + 1e-14) + len(limit) * error, np.inf))
        return Statement(Verdict.CONVERGES, Scope.EVERY_START, text, np.inf, np.inf, bound)

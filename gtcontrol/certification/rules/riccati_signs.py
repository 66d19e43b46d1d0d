"""V = v I, all starts at once: what the sign of K = Σ_h v_h (B_h + B_hᵀ) and A decide.

K <= 0: I - C(t) >= I, so no start blows up.

K >= 0, (A, K) observable, Re λ(A) >= 0: every start but 0 blows up.  For w ≠ 0 the output
K^{1/2} e^{At} w is a nonzero sum of terms t^j e^{λt} with Re λ >= 0, which is not square
integrable, so wᵀ G(t) w → ∞, and λ_max C passes 1 whatever L ≠ 0.

K > 0, A Hurwitz: X = G(∞) solves Aᵀ X + X A = -K, and C increases to Lᵀ X L, strictly below it.  So
S → 0 if λ_max(S₀ X) < 1 and S blows up if λ_max(S₀ X) > 1.  An approximation X₀ whose residual R
lies between -εK and εK satisfies X₀/(1 + ε) <= X <= X₀/(1 - ε), because X₀ - X is the negative of
the integral of Φᵀ R Φ.

K <= 0, (A, K) observable, Re λ(A) <= 0: S → 0 from every start.  S(t) <= W(t), where
W⁻¹ = ∫₀ᵗ e^{-Aᵀs}|K|e^{-As} ds is the limit of infinite starts, and that integral diverges on every
vector, by the argument above for -A.  Eigenvalues on the axis make the decay algebraic.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...arithmetic import balls, spectra
from ...arithmetic.definiteness import definite
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...riccati_flow.system import System
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .scalar_value import system_of, without_noise

__all__ = ["EveryStartBlowsUp", "EveryStartFades", "NoStartBlowsUp", "Threshold"]

#: Precision of the balls.
BITS = 160

#: Largest order for which observability is decided exactly.
LARGEST_EXACT = 24


def _seen(system: System, sign: int) -> None:
    """Refuse unless sign · K > 0, or sign · K >= 0 with (A, K) observable.

    Raises
    ------
    Refuted
        If neither is proved.
    """
    if system.definite(sign):
        return
    word = "positive" if sign > 0 else "negative"
    if not system.semidefinite(sign):
        raise Refuted(f"K is not proved to be {word} semidefinite")
    d = len(system.A)
    if d > LARGEST_EXACT:
        raise Refuted(f"K is not proved to be {word} definite")
    rows = [system.exact_K]
    for _ in range(d - 1):
        rows.append(rows[-1] * system.exact_A)
    made = spectra.stacked(rows)
    if spectra.rank(made) < d:
        raise Refuted("a mode of A is not observed by K")


def _moves(system: System, claim: Claim, sign: int) -> None:
    """Refuse unless sign · Re λ >= 0 for all eigenvalues of A.

    Raises
    ------
    Refuted
        If it is not proved, exactly or by P > 0 with sign · (Aᵀ P + P A) > 0.
    """
    inertia = system.inertia
    if inertia is not None:
        wrong = inertia.left if sign > 0 else inertia.right
        if wrong:
            side = "left" if sign > 0 else "right"
            raise Refuted(f"A has {wrong} eigenvalues {side} of the imaginary axis")
        return
    d = len(system.A)
    P = matrix(claim, "bound", d, d)
    with balls.precision(BITS):
        exact = balls.balls(P)
        left = balls.balls(system.A).transpose() * exact
        rate = (left + left.transpose()) * balls.ball(sign)
        if not (np.array_equal(P, P.T) and definite(exact) and definite(rate)):
            raise Refuted("the matrix `bound` does not show on which side the eigenvalues of A are")


class NoStartBlowsUp(Rule):
    """K <= 0 (noise allowed)."""

    name: ClassVar[str] = "riccati-no-start-blows-up"
    theorem: ClassVar[str] = "V = v I with K negative semidefinite"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Decide the sign of K exactly."""
        if not system_of(problem).semidefinite(-1):
            raise Refuted("K is not proved to be negative semidefinite")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say that none does."""
        text = "No start blows up in finite time: K = Σ v_h (B_h + B_hᵀ) is negative semidefinite."
        return Statement(Verdict.UNDECIDED, Scope.EVERY_START, text, np.inf, np.inf)


class EveryStartBlowsUp(Rule):
    """K >= 0 sees all modes of A, and none of them decays."""

    name: ClassVar[str] = "riccati-every-start-blows-up"
    theorem: ClassVar[str] = "V = v I with K positive and no eigenvalue of A with Re λ < 0"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Decide the sign of K and the eigenvalues of A."""
        without_noise(problem)
        system = system_of(problem)
        _seen(system, 1)
        _moves(system, claim, 1)

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say that all do."""
        text = (
            "Every start with a covariance other than 0 blows up in finite time: K = Σ v_h (B_h + "
            "B_hᵀ) is positive and sees every mode of A, and no mode of A decays."
        )
        return Statement(Verdict.BLOWS_UP, Scope.EVERY_START, text)


class EveryStartFades(Rule):
    """K <= 0 sees all modes of A, and none of them grows exponentially."""

    name: ClassVar[str] = "riccati-fades"
    theorem: ClassVar[str] = "V = v I with K negative and no eigenvalue of A with Re λ > 0"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Decide the sign of K and the eigenvalues of A."""
        without_noise(problem)
        system = system_of(problem)
        _seen(system, -1)
        _moves(system, claim, -1)

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say that all tend to 0."""
        text = (
            "The covariance tends to 0 from every start: K = Σ v_h (B_h + B_hᵀ) is negative and "
            "sees every mode of A, and no mode of A grows (modes on the imaginary axis decay like "
            "a power of t)."
        )
        return Statement(Verdict.CONVERGES, Scope.EVERY_START, text, np.inf, np.inf, 0.0)


class Threshold(Rule):
    """K > 0, A Hurwitz: the basin of 0, exactly."""

    name: ClassVar[str] = "riccati-threshold"
    theorem: ClassVar[str] = "V = v I with K > 0, A Hurwitz: S → 0 iff λ_max(S₀ X) < 1"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Enclose X by the residual of its Lyapunov equation."""
        without_noise(problem)
        system, d = system_of(problem), problem.dim
        X, error = matrix(claim, "gramian", d, d), number(claim, "error")
        if not 0 < error < 1 or not np.array_equal(X, X.T):
            raise Refuted("the Gramian is not symmetric, or its error is not between 0 and 1")
        with balls.precision(BITS):
            A, K = system.ball_pair()
            exact = balls.balls(X)
            left = A.transpose() * exact
            rest = left + left.transpose() + K
            # The claim is |X₀ - X| <= error · X₀, and ε/(1 - ε) is at most that error.
            small = K * (balls.ball(error) / (balls.ball(1.0) + balls.ball(error)))
            if not (definite(K) and definite(exact)):
                raise Refuted("K or the Gramian is not proved to be positive definite")
            if not (definite(small - rest) and definite(small + rest)):
                raise Refuted("the Gramian misses the Lyapunov equation by more than its error")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say where the threshold is."""
        size = float(np.linalg.eigvalsh(claim.arrays["gramian"])[-1])
        text = (
            "All modes of A decay and K = Σ v_h (B_h + B_hᵀ) is positive definite: starts with "
            "λ_max(S₀ X) < 1 tend to 0, those with λ_max(S₀ X) > 1 blow up, where AᵀX + XA = -K "
            f"(λ_max(X) = {size:.10g}; X is known to a relative error of "
            f"{claim.numbers['error']:.2g})."
        )
        return Statement(Verdict.BLOW_UP_DATA_EXIST, Scope.SOME_STARTS, text)

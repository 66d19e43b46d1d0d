"""V = v I, one start: when the covariance blows up, or that it never does.

S(t) = Φ L (I - C(t))⁻¹ Lᵀ Φᵀ up to the first time at which λ_max C = 1 (see
``gtcontrol.riccati_flow``, which holds the proofs).  Evaluating the formula behind that time may
give a positive definite matrix again; here the whole interval is covered, by bounds on the
curvature of C.

What stays bounded.  P > 0 with Aᵀ P + P A + K <= 0 makes {S <= P⁻¹} invariant, and I - C >= Yᵀ P Y
puts S into it.  If I - C >= δ I for ever and A is Hurwitz, S <= Y Yᵀ/δ tends to 0; a Hurwitz A
follows from Aᵀ P + P A < -K <= 0, too.  If A² = -w I, Y is bounded.
"""

from __future__ import annotations

import math
from typing import ClassVar

from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...riccati_flow.evidence import Evidence, Reason, holds_for_ever, holds_until, strictly_bounded
from ...riccati_flow.noise import noisy_for_ever, noisy_until
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .scalar_value import exponents_of, noise_of, start_of, steps_of, system_of, without_noise

__all__ = ["REASONS", "BlowUpTime", "NoBlowUp", "Tangency"]

#: The reasons by the number that claims carry.
REASONS = tuple(Reason)


class BlowUpTime(Rule):
    """The blow-up time from the start of the problem lies between two floats."""

    name: ClassVar[str] = "riccati-blow-up"
    theorem: ClassVar[str] = "Closed form for V = v I: first time at which λ_max(LᵀGL) = 1"

    def theorem_for(self, problem: CertificationProblem) -> str:
        """Name the event at the blow-up: with noise there is a conjugate point."""
        if noise_of(problem) is None:
            return self.theorem
        return "Closed form for V = v I: first conjugate point of the Riccati equation with noise"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Prove both ends in balls."""
        system, start = system_of(problem), start_of(problem)
        lower, upper = number(claim, "lower"), number(claim, "upper")
        if not 0 <= lower < upper < math.inf:
            raise Refuted(f"the ends {lower:g} and {upper:g} of the blow-up time are no interval")
        noise = noise_of(problem)
        size = start.rank if noise is None else start.dim
        direction = matrix(claim, "direction", size)
        evidence = Evidence(steps_of(claim), exponents_of(claim, start.dim), direction)
        if noise is None:
            held = holds_until(system, start.factor, evidence, lower, upper)
        else:
            held = noisy_until(system, noise, start.factor, evidence, lower, upper)
        if not held:
            raise Refuted(
                "the steps do not exclude a blow-up before the lower end, or the direction does "
                "not show one at the upper end"
            )

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say when."""
        lower, upper = claim.numbers["lower"], claim.numbers["upper"]
        text = (
            "From this start the covariance blows up, at a time between "
            f"{lower:.17g} and {upper:.17g}, and not before."
        )
        return Statement(Verdict.BLOWS_UP, Scope.THIS_START, text, lower, upper)


class Tangency(Rule):
    """No blow-up before a time, soon after which a slightly larger start has blown up."""

    name: ClassVar[str] = "riccati-tangency"
    theorem: ClassVar[str] = "Closed form for V = v I: λ_max(LᵀGL) comes near to 1"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Prove the lower end, and that xᵀ(I - (1 + excess) C)x < 0 at the upper end."""
        without_noise(problem)
        system, start = system_of(problem), start_of(problem)
        lower, upper = number(claim, "lower"), number(claim, "upper")
        excess = number(claim, "excess")
        if not 0 <= lower < upper < math.inf or not 0 < excess < 1:
            raise Refuted("the ends of the tangency, or the excess of the start, are out of range")
        direction = matrix(claim, "direction", start.rank)
        evidence = Evidence(steps_of(claim), exponents_of(claim, start.dim), direction)
        if not holds_until(system, start.factor, evidence, lower, upper, excess):
            raise Refuted(
                "the steps do not exclude a blow-up before the lower end, or the direction does "
                "not show one of the larger start at the upper end"
            )

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say how near it is."""
        lower, upper = claim.numbers["lower"], claim.numbers["upper"]
        text = (
            f"From this start the covariance does not blow up before {lower:.10g}, but a start "
            f"S₀ that is larger by the factor 1 + {claim.numbers['excess']:.2g} blows up at "
            f"{upper:.10g} or before: whether this one does is a matter of rounding."
        )
        return Statement(Verdict.MARGINAL, Scope.THIS_START, text, lower)


class NoBlowUp(Rule):
    """The covariance from the start of the problem exists for all times."""

    name: ClassVar[str] = "riccati-no-blow-up"
    theorem: ClassVar[str] = "Closed form for V = v I: λ_max(LᵀGL) < 1 for ever"

    def theorem_for(self, problem: CertificationProblem) -> str:
        """Name what there is none of: with noise a conjugate point."""
        if noise_of(problem) is None:
            return self.theorem
        return "Closed form for V = v I: the Riccati equation with noise has no conjugate point"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Prove that I - C stays positive definite, and that S tends to 0 if that is claimed."""
        system, start = system_of(problem), start_of(problem)
        index = number(claim, "reason")
        if index not in range(len(REASONS)):
            raise Refuted(f"the claim gives the unknown reason {index:g}")
        reason, d = REASONS[int(index)], start.dim
        bound = matrix(claim, "bound", d, d) if reason is Reason.BOUNDED else None
        evidence = Evidence(steps_of(claim), exponents_of(claim, d), None, bound, reason)
        noise = noise_of(problem)
        if noise is None:
            held = holds_for_ever(system, start.factor, evidence)
        else:
            held = noisy_for_ever(system, noise, start.factor, evidence)
        if not held:
            raise Refuted(f"it is not confirmed that there is no blow-up because {reason.value}")
        if number(claim, "fades") not in (0.0, 1.0):
            raise Refuted("the number `fades` of the claim is neither 0 nor 1")
        if claim.numbers["fades"] == 1.0:
            if noise is not None or reason is not Reason.BOUNDED:
                raise Refuted("that the covariance tends to 0 is claimed without its conditions")
            inertia = system.inertia
            hurwitz = system.semidefinite(1) or (inertia is not None and inertia.left == d)
            # At the very threshold nothing is left over for the limit.
            if not (hurwitz and strictly_bounded(system, start.factor, evidence)):
                raise Refuted("it is not confirmed that all modes of A decay")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say why there is none."""
        reason = REASONS[int(claim.numbers["reason"])]
        verdict, ending = Verdict.UNDECIDED, "does not blow up in finite time"
        if reason is Reason.EMPTY:
            verdict, ending = Verdict.BOUNDED, "does not move"
        if claim.numbers["fades"] == 1.0:
            verdict, ending = Verdict.CONVERGES, "never blows up and tends to 0"
        elif reason in (Reason.BOUNDED, Reason.PERIODIC):
            verdict, ending = Verdict.BOUNDED, "never blows up and stays bounded"
        because = reason.value
        if noise_of(problem) is not None and reason is Reason.BOUNDED:
            because = "S stays below a matrix P that the flow with noise does not leave."
        text = f"From this start the covariance {ending}: {because}"
        return Statement(verdict, Scope.THIS_START, text, math.inf, math.inf)

"""What the exact rules for V = v I share: fractions of the problem, and bounds on rates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..._check import Array
from ...arithmetic import balls, fractions, invariance
from ...arithmetic.balls import Ball
from ...arithmetic.fractions import Fractions
from ...arithmetic.invariance import Motion
from ...arithmetic.spectra import LARGEST_ORDER
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...riccati_flow.system import System
from .base import Refuted, number
from .scalar_value import noise_of, start_of, system_of

__all__ = ["BITS", "Exact", "below", "choice", "flag", "motion_in", "within"]

#: Precision in which roots are isolated.
BITS = 160


@dataclass(frozen=True, eq=False)
class Exact:
    """A, K, the noise and the start as fractions, and subspaces that are invariant under A."""

    problem: CertificationProblem
    system: System

    @classmethod
    def of(cls, problem: CertificationProblem) -> Exact:
        """Take the data of a problem.

        Raises
        ------
        Refuted
            If a V is not a multiple of the identity, or the dimension is too large.
        """
        if problem.dim > LARGEST_ORDER:
            raise Refuted(f"the dimension {problem.dim} is above {LARGEST_ORDER}")
        return cls(problem, system_of(problem))

    @property
    def A(self) -> Fractions:  # noqa: N802 - the name of the field
        """A, shape (d, d)."""
        return self.system.exact_A

    @property
    def K(self) -> Fractions:  # noqa: N802
        """K, shape (d, d)."""
        return self.system.exact_K

    @cached_property
    def noise(self) -> Fractions | None:
        """Intensity of the noise (d, d), None if there is none."""
        noise = noise_of(self.problem)
        return None if noise is None else fractions.fractions(noise)

    def start(self) -> Fractions:
        """Return the factor of the start, shape (d, r)."""
        return fractions.fractions(start_of(self.problem).factor)

    @cached_property
    def fed(self) -> Fractions:
        """Basis of the smallest invariant subspace that the noise drives."""
        if self.noise is None:
            return invariance.nothing(self.problem.dim)
        return invariance.reachable(self.A, self.noise)

    @cached_property
    def hidden(self) -> Fractions:
        """Basis of the modes of A that K does not see."""
        return invariance.unobserved(self.A, self.K)


def motion_in(A: Fractions, basis: Fractions) -> Motion:
    """Classify the motions e^{At} u with u in an invariant subspace.

    Raises
    ------
    Refuted
        If an eigenvalue is too near to the imaginary axis to be told.
    """
    part = invariance.restricted(A, basis)
    found = invariance.motion(invariance.minimal_polynomial(part))
    if found is None:
        raise Refuted("an eigenvalue of A is too near to the imaginary axis to be told from it")
    return found


def flag(claim: Claim, name: str) -> bool:
    """Return a number of a claim that is 0 or 1.

    Raises
    ------
    Refuted
        If it is another number.
    """
    if number(claim, name) not in (0.0, 1.0):
        raise Refuted(f"the number `{name}` of the claim is neither 0 nor 1")
    return claim.numbers[name] == 1.0


def choice(claim: Claim, name: str, count: int) -> int:
    """Return a number of a claim that is one of 0, ..., count - 1.

    Raises
    ------
    Refuted
        If it is another number.
    """
    if number(claim, name) not in range(count):
        raise Refuted(f"the number `{name}` of the claim is not one of 0 to {count - 1}")
    return int(claim.numbers[name])


def below(rate: float, limit: Ball | None) -> None:
    """Refuse a rate that is negative, or not proved to be at most a limit (0 without one).

    Raises
    ------
    Refuted
        If it is refused.
    """
    if rate != 0.0 and not (rate > 0 and limit is not None and bool(balls.ball(rate) <= limit)):
        raise Refuted(f"the rate {rate:g} is not proved")


def within(exact: Fractions, limit: Array, error: float) -> None:
    """Refuse a matrix that misses an exact one by more than an error in some entry.

    Raises
    ------
    Refuted
        If it does.
    """
    miss = (exact - fractions.fractions(limit)).entries()
    if not 0 <= error < float("inf") or any(abs(x) > fractions.fraction(error) for x in miss):
        raise Refuted(f"the limit misses the exact one by more than {error:.3g}")

"""No attention in the covariance, K = Σ v_h (B_h + B_hᵀ) = 0: S' = A S + S Aᵀ + Q.

S(t) = Φ S₀ Φᵀ + ∫₀ᵗ Φ Q Φᵀ with Φ = e^{At}.  Let R be the smallest A-invariant subspace that holds
the range of S₀ (all of R^d, for all starts), N that which holds the range of Q.

The first term is bounded, or tends to 0, or has a limit, exactly if e^{At} u does so for all u in
R: if the roots of the minimal polynomial of A on R lie left of the imaginary axis but for simple
ones, or all of them do, or but for a simple root 0.  The limit is then P S₀ Pᵀ with the spectral
projector P on the kernel.  The second term increases; it has a limit exactly if A is Hurwitz on N,
and otherwise grows at least like t, since ∫ |Φu|² = ∞ for some u in the range of Q.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from ..._check import Array
from ...arithmetic import balls, fractions, invariance
from ...arithmetic.balls import Ball
from ...arithmetic.fractions import Fractions
from ...arithmetic.invariance import Motion
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .motions import BITS, Exact, below, choice, flag, motion_in, within

__all__ = ["LINEAR_OUTCOMES", "LinearFlow", "exact_limit", "linear_rate", "motions_of"]

#: Outcomes by the number that claims carry.
LINEAR_OUTCOMES = ("limit", "bounded", "unbounded")

#: Largest dimension of N for which the limit with noise is solved for exactly.
LARGEST_FED = 8


def motions_of(exact: Exact, *, from_start: bool) -> tuple[Fractions, Motion, Motion]:
    """Return a basis of R, and the motions in R and in N.

    Raises
    ------
    Refuted
        If K is not 0, or they are not told.
    """
    if any(x != 0 for x in exact.K.entries()):
        raise Refuted("K is not 0")
    first = exact.start() if from_start else fractions.identity(exact.problem.dim)
    basis = invariance.reachable(exact.A, first)
    return basis, motion_in(exact.A, basis), motion_in(exact.A, exact.fed)


def exact_limit(exact: Exact, basis: Fractions, moved: Motion, *, from_start: bool) -> Fractions:
    """Return the limit: P S₀ Pᵀ plus what the noise keeps up.

    Raises
    ------
    Refuted
        If it is not computed in this dimension.
    """
    d = exact.problem.dim
    P = invariance.projector_on_kernel(exact.A, basis, moved.polynomial)
    made: Fractions = P * 0
    if from_start and exact.start().ncols():
        part = P * exact.start()
        made = part * part.transpose()
    if exact.noise is not None:
        own = exact.fed
        if own.ncols() > LARGEST_FED:
            raise Refuted(f"the noise drives {own.ncols()} of {d} dimensions, too many to solve")
        left = (own.transpose() * own).inv() * own.transpose()
        inner = invariance.lyapunov(
            invariance.restricted(exact.A, own), left * exact.noise * left.transpose()
        )
        made = made + own * inner * own.transpose()
    return made


def linear_rate(moved: Motion, fed: Motion) -> Ball | None:
    """Enclose the rate at which S approaches its limit; None if nothing moves.

    Where P ≠ 0, the slowest term is P S₀ (Φ - P)ᵀ, with the exponent of one mode, not of a pair.
    """
    factor = -1 if moved.polynomial[0] == 0 else -2
    rates = [
        x * balls.ball(times)
        for x, times in ((moved.decay, factor), (fed.decay, -2))
        if x is not None
    ]
    return min(rates, key=balls.below) if rates else None


class LinearFlow(Rule):
    """S obeys a linear equation: its limit, its boundedness, or its growth, exactly."""

    name: ClassVar[str] = "linear-flow"
    theorem: ClassVar[str] = "K = 0: the minimal polynomial of A on what the start and noise reach"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Classify the motions exactly."""
        exact = Exact.of(problem)
        from_start = flag(claim, "start")
        outcome = LINEAR_OUTCOMES[choice(claim, "outcome", len(LINEAR_OUTCOMES))]
        unique = flag(claim, "unique")
        with balls.precision(BITS):
            basis, moved, fed = motions_of(exact, from_start=from_start)
            if unique != (moved.decays and outcome == "limit") or flag(claim, "noisy") != bool(
                exact.fed.ncols()
            ):
                raise Refuted("the claim is wrong about the noise or about what the start matters")
            if outcome == "unbounded":
                self._check_growth(moved, fed, number(claim, "rate"), flag(claim, "every"))
            elif not (moved.bounded and fed.decays):
                raise Refuted("the covariance is not bounded")
            elif outcome == "limit":
                self._check_limit(exact, claim, basis, moved, fed)
            elif number(claim, "rate") != 0:
                raise Refuted("a rate is claimed, but no limit")

    @staticmethod
    def _check_growth(moved: Motion, fed: Motion, rate: float, every: bool) -> None:
        if moved.bounded and fed.decays:
            raise Refuted("the covariance is bounded")
        if every and fed.decays:
            raise Refuted("the noise does not make every start grow")
        below(rate, _twice(fed.abscissa if every else _higher(moved.abscissa, fed.abscissa)))

    @staticmethod
    def _check_limit(
        exact: Exact, claim: Claim, basis: Fractions, moved: Motion, fed: Motion
    ) -> None:
        from_start, d = flag(claim, "start"), exact.problem.dim
        if not moved.settles or not (from_start or moved.decays):
            raise Refuted("the covariance has no limit, or its limit depends on the start")
        below(number(claim, "rate"), linear_rate(moved, fed))
        made = exact_limit(exact, basis, moved, from_start=from_start)
        within(made, matrix(claim, "limit", d, d), number(claim, "error"))

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say where it goes."""
        numbers = claim.numbers
        outcome = LINEAR_OUTCOMES[int(numbers["outcome"])]
        every = numbers["start"] == 0.0
        scope = Scope.EVERY_START if every else Scope.THIS_START
        where = "From every start" if every else "From this start"
        because = "no attention acts on it (K = Σ v_h (B_h + B_hᵀ) is 0)"
        if outcome == "limit":
            limit = claim.arrays["limit"]
            text = f"{where} the covariance {_towards(limit, numbers, problem)}; {because}."
            bound = _bound(limit, numbers["error"]) if every else math.inf
            return Statement(Verdict.CONVERGES, scope, text, math.inf, math.inf, bound)
        if outcome == "bounded":
            text = (
                f"{where} the covariance stays bounded, since {because} and no mode of A grows; "
                "what remains in undamped modes depends on the start."
            )
            return Statement(Verdict.BOUNDED, scope, text, math.inf, math.inf)
        if numbers["every"] == 0.0 and every:
            scope, where = Scope.FULL_RANK, "From every start of full rank"
        how = f"at least like e^({numbers['rate']:.8g} t)" if numbers["rate"] else "algebraically"
        source = " with noise in an undamped mode" if numbers["every"] else ""
        text = (
            f"{where} the covariance grows without bound, {how}, but not in finite time"
            f"{source}: {because}."
        )
        return Statement(Verdict.UNBOUNDED, scope, text, math.inf, math.inf)


def _towards(limit: Array, numbers: object, problem: CertificationProblem) -> str:
    values = dict(numbers)  # type: ignore[call-overload]
    size = float(np.trace(limit))
    what = "tends to 0" if size == 0 else f"tends to a covariance of trace {size:.10g}"
    start = problem.start
    same = start is not None and np.array_equal(limit, start.covariance)
    if values["start"] and same and not values["noisy"] and not values["rate"]:
        return "does not move" if size else "remains 0"
    if values["rate"] > 0:
        what += f", at any exponential rate below {values['rate']:.10g}"
    if not values["unique"]:
        what += " that depends on the start"
    return what


def _bound(limit: Array, error: float) -> float:
    return math.nextafter(float(np.trace(limit)) * (1 + 1e-15) + len(limit) * error, math.inf)


def _twice(value: Ball | None) -> Ball | None:
    return None if value is None else value * balls.ball(2)


def _higher(first: Ball | None, second: Ball | None) -> Ball | None:
    """Ball of the larger of two numbers, as far as it is told."""
    if first is None or second is None:
        return second if first is None else first
    return first.max(second)

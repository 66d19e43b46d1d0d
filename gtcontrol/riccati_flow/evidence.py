"""What a statement about the blow-up time rests on, and its check in balls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .._check import Array
from ..arithmetic import balls, fractions
from ..arithmetic.balls import Ball, Balls
from ..arithmetic.definiteness import definite, positive_definite, semidefinite
from .enclosures import Curvature, EnclosedFlow, State, balanced, negative, walk
from .system import System

__all__ = [
    "Evidence",
    "Reason",
    "after",
    "after_time",
    "holds_before",
    "holds_for_ever",
    "holds_until",
    "strict_bound",
    "strictly_bounded",
]

#: Precisions that are tried in turn, in bits.
LADDER = (160, 320, 640, 1280)

#: Up to this order inequalities that are not strict are decided by exact fractions.
LARGEST_EXACT = 40


class Reason(Enum):
    """Why I - C(t) stays positive definite for all t >= 0."""

    NEGATIVE = "K is negative semidefinite."
    STILL = "A is a multiple of the identity and K is negative semidefinite on the start."
    BOUNDED = "G stays below a matrix P that the start respects."
    EMPTY = "The covariance is 0 and remains so."
    PERIODIC = "A turns at one frequency, and C does not grow from half turn to half turn."


@dataclass(frozen=True, eq=False)
class Evidence:
    """Steps along which the closed form is followed, and what is looked at where they end.

    Attributes
    ----------
    steps : (m,) array
        Steps h > 0; their sum is where the absence of blow-up is claimed to end.
    exponents : (d,) array
        Exponents of the powers of two that scale the coordinates.
    direction : (r,) array or None
        Vector x with xᵀ(I - C)x < 0 at the upper end of the blow-up time.
    bound : (d, d) array or None
        Matrix P >= 0 with Aᵀ P + P A + K <= 0, in the coordinates of A.
    reason : Reason or None
        Why there is no blow-up at all, if there is none.
    """

    steps: Array
    exponents: Array
    direction: Array | None = None
    bound: Array | None = None
    reason: Reason | None = None


def _walks(
    system: System, factor: Array, evidence: Evidence
) -> Iterator[tuple[EnclosedFlow, State, bool]]:
    """Follow the steps in balls of growing precision, until more bits cannot help."""
    rises = system.semidefinite(1)
    curvature = None
    for bits in LADDER:
        with balls.precision(bits):
            A, K = system.ball_pair()
            pair = balanced(A, K, balls.balls(factor), evidence.exponents)
            flow = EnclosedFlow(pair[0], pair[1], bits)
            if not rises and curvature is None:
                curvature = Curvature.of(pair[0], pair[1])
            state, clear = walk(flow, curvature, pair[2], evidence.steps.tolist())
            yield flow, state, clear
            if not clear and balls.radius(state.C) < 1e-25:
                return


def holds_before(system: System, factor: Array, evidence: Evidence, time: float) -> bool:
    """Whether it is proved that there is no blow-up on [0, time].

    Parameters
    ----------
    system : System
    factor : (d, r) array
        Factor of the start.
    evidence : Evidence
        Its steps must reach `time`.
    time : float
    """
    for _, state, clear in _walks(system, factor, evidence):
        if clear and bool(state.time >= balls.ball(time)):
            return True
    return False


def holds_until(
    system: System,
    factor: Array,
    evidence: Evidence,
    lower: float,
    upper: float,
    excess: float = 0.0,
) -> bool:
    """Whether it is proved that the first blow-up is after `lower` and not after `upper`.

    With an `excess`, the second half is about the start (1 + excess) S₀.
    """
    if evidence.direction is None:
        return False
    for flow, state, clear in _walks(system, factor, evidence):
        last = after(state, upper)
        if clear and last > 0 and bool(state.time >= balls.ball(lower)):
            with balls.precision(flow.bits):
                end = state.moved(flow, last)
                grown = end.C * (balls.ball(1.0) + balls.ball(excess))
                gap = balls.identity(grown.nrows()) - grown
                return bool(end.time <= balls.ball(upper)) and negative(gap, evidence.direction)
    return False


def after(state: State, upper: float) -> float:
    """Largest float step from a state that does not pass `upper`; not positive if there is none."""
    return after_time(state.time, upper)


def after_time(time: Ball, upper: float) -> float:
    """Largest float step from a time that does not pass `upper`; not positive if there is none."""
    step = balls.below(balls.ball(upper) - time)
    while step > 0 and not bool(time + balls.ball(step) <= balls.ball(upper)):
        step = float(np.nextafter(step, 0.0))
    return step


def holds_for_ever(system: System, factor: Array, evidence: Evidence) -> bool:
    """Whether it is proved that there is no blow-up at any time."""
    reason = evidence.reason
    if reason is Reason.NEGATIVE:
        return system.semidefinite(-1)
    if reason is Reason.EMPTY:
        return not factor.size
    if reason is Reason.STILL:
        return _still(system, factor)
    if reason is Reason.PERIODIC:
        return _periodic(system, factor, evidence)
    return reason is Reason.BOUNDED and _bounded(system, factor, evidence)


def _still(system: System, factor: Array) -> bool:
    """A = a I: C(t) = (∫₀ᵗ e^{2as} ds) Lᵀ K L."""
    d = len(system.A)
    if d > LARGEST_EXACT or not np.array_equal(system.A, system.A[0, 0] * np.eye(d)):
        return False
    L = fractions.fractions(factor)
    return semidefinite(L.transpose() * system.exact_K * L * -1)


def _periodic(system: System, factor: Array, evidence: Evidence) -> bool:
    """A² = -w I with w > 0, and K + Aᵀ K A/w <= 0.

    Then Φ(π/√w) = -I, so that C(t + π/√w) = C(t) + C(π/√w), and C(π/√w) is a positive multiple
    of Lᵀ (K + Aᵀ K A/w) L <= 0: what holds up to π/√w holds for ever.
    """
    d = len(system.A)
    if d > LARGEST_EXACT:
        return False
    A, K = system.exact_A, system.exact_K
    square = A * A
    w = -square[0, 0]
    if not w > 0 or square != fractions.identity(d) * -w:
        return False
    if not semidefinite((K + A.transpose() * K * A / w) * -1):
        return False
    for _, state, clear in _walks(system, factor, evidence):
        period = balls.turn() / balls.root(balls.from_fractions(fractions.identity(1) * w)[0, 0])
        if clear and bool(state.time >= period):
            return True
    return False


def _bounded(system: System, factor: Array, evidence: Evidence) -> bool:
    """Whether P bounds G, strictly or, at time 0, exactly at the threshold.

    If P > 0, Aᵀ P + P A + K <= 0 and I - Lᵀ P L >= 0, then I - C(t) >= I - Lᵀ P L + Yᵀ P Y > 0.
    """
    P = evidence.bound
    if strictly_bounded(system, factor, evidence):
        return True
    if P is None or len(P) > LARGEST_EXACT or len(evidence.steps) or not np.array_equal(P, P.T):
        return False
    exact, L = fractions.fractions(P), fractions.fractions(factor)
    left = system.exact_A.transpose() * exact
    return (
        positive_definite(exact)
        and semidefinite((left + left.transpose() + system.exact_K) * -1)
        and semidefinite(fractions.identity(L.ncols()) - L.transpose() * exact * L)
    )


def strictly_bounded(system: System, factor: Array, evidence: Evidence) -> bool:
    """Whether P > 0, Aᵀ P + P A + K < 0, and I - C - Yᵀ P Y > 0 after the steps, are proved."""
    P = evidence.bound
    if P is None or not np.array_equal(P, P.T) or not strict_bound(system, P):
        return False
    if not len(evidence.steps):
        with balls.precision(LADDER[0]):
            return _under(State.initial(balls.balls(factor)), balls.balls(P))
    up = balls.diagonal(np.ldexp(1.0, evidence.exponents.astype(int)))
    return any(
        clear and _under(state, up * balls.balls(P) * up)
        for _, state, clear in _walks(system, factor, evidence)
    )


def strict_bound(system: System, P: Array) -> bool:
    """Whether P > 0 and Aᵀ P + P A + K < 0 are proved."""
    with balls.precision(LADDER[0]):
        A, K = system.ball_pair()
        exact = balls.balls(P)
        left = A.transpose() * exact
        return definite(exact) and definite(-(left + left.transpose() + K))


def _under(state: State, P: Balls) -> bool:
    """Whether I - C - Yᵀ P Y > 0 is proved."""
    return definite(state.gap() - state.Y.transpose() * P * state.Y)

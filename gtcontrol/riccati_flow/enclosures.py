"""The closed form in balls: what is proved about the blow-up time when V = v I.

With C(t) = Lᵀ G(t) L and Y = Φ L, every x has d²/dt² xᵀC x = xᵀ Yᵀ N Y x, N = Aᵀ K + K A.  Let
ν >= 0 bound the eigenvalues of -N, and μ >= 0 those of (A + Aᵀ)/2.  On a step [t, t + h] that
second derivative is at least -ν e^{2μh} |Y(t) x|², so a chord lies at most h²/8 of that below
the function:

    C(s) <= chord of C(t), C(t + h) + E,    E = (h²/8) ν e^{2μh} Y(t)ᵀ Y(t)    (as matrices).

If I - C - E is positive definite at both ends, I - C is so on the whole step: no blow-up there.
Rounding is that of balls only.  If K >= 0, C never decreases and its last value is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._check import Array
from ..arithmetic import balls, floats
from ..arithmetic.balls import Ball, Balls
from ..arithmetic.definiteness import definite, enclosure
from ..arithmetic.norms import eigenvalue_bound, size_bound

__all__ = ["Curvature", "EnclosedFlow", "State", "balanced", "clear", "negative", "walk"]


def balanced(A: Balls, K: Balls, factor: Balls, exponents: Array) -> tuple[Balls, Balls, Balls]:
    """Change coordinates by the powers of two D: D⁻¹AD, DKD, D⁻¹L; exact, and C is the same."""
    up = balls.diagonal(np.ldexp(1.0, exponents.astype(int)))
    down = balls.diagonal(np.ldexp(1.0, -exponents.astype(int)))
    return down * A * up, up * K * up, down * factor


@dataclass
class EnclosedFlow:
    """Transitions of S' = A S + S Aᵀ + S K S in balls of the current precision.

    The Taylor series are cut where their rest, which is added to the balls, is below the
    precision: with a = ‖A‖ the rest of e^{Ah} after m terms is at most (ah)^m/m! · 1/(1 - ah),
    and that of G(h) = Σ h^{k+1} K_k/(k+1)!, K_{k+1} = Aᵀ K_k + K_k A, ‖K_k‖ <= (2a)^k ‖K‖, is at
    most h ‖K‖ (2ah)^m/(m+1)! · 1/(1 - 2ah).
    """

    A: Balls
    K: Balls
    bits: int
    _size: float = field(init=False)
    _weight: float = field(init=False)
    _first: list[Balls] = field(default_factory=list)
    _second: list[Balls] = field(default_factory=list)
    _made: dict[float, tuple[Balls, Balls]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._size, self._weight = size_bound(self.A), size_bound(self.K)

    def transition(self, h: float) -> tuple[Balls, Balls]:
        """Return Φ(h) and G(h)."""
        found = self._made.get(h)
        if found is None:
            if 8 * self._size * h > 1:
                Phi, G = self.transition(0.5 * h)
                found = Phi * Phi, G + Phi.transpose() * G * Phi
            else:
                found = self._summed(h)
            self._made[h] = found
        return found

    def _summed(self, h: float) -> tuple[Balls, Balls]:
        step, d = balls.ball(h), self.A.nrows()
        size, weight = balls.ball(self._size), balls.ball(self._weight)
        # h <= 1/(8a), so each term is at most 2ah/k <= 1/(4k) of the one before it.
        rest, terms = 1.0, 0
        reach = max(2 * self._size * h, 1e-300)
        while rest > 2.0 ** -(self.bits + 8) and terms < 200:
            terms += 1
            rest *= min(reach, 0.25) / terms
        self._extend(terms)
        Phi, G = self._first[terms - 1], self._second[terms - 1]
        for k in range(terms - 2, -1, -1):
            Phi, G = Phi * step + self._first[k], G * step + self._second[k]
        G = G * step
        cut = (size * step) ** terms / _factorial(terms) * 2
        cut_square = step * weight * (size * step * 2) ** terms / _factorial(terms + 1) * 2
        Phi = Phi + balls.neighbourhood(d, d, balls.above(cut))
        return Phi, G + balls.neighbourhood(d, d, balls.above(cut_square))

    def _extend(self, terms: int) -> None:
        if not self._first:
            self._first, self._second = [balls.identity(self.A.nrows())], [self.K]
        while len(self._first) < terms:
            k = len(self._first)
            self._first.append(self._first[-1] * self.A / balls.ball(k))
            half = self._second[-1] * self.A
            self._second.append((half + half.transpose()) / balls.ball(k + 1))


@dataclass(frozen=True)
class State:
    """Where the closed form is: the time as a ball, Y = Φ L (d, r) and C = Lᵀ G L (r, r)."""

    time: Ball
    Y: Balls
    C: Balls

    @classmethod
    def initial(cls, factor: Balls) -> State:
        """Return the state at time 0."""
        return cls(balls.ball(0.0), factor, balls.zeros(factor.ncols(), factor.ncols()))

    def moved(self, flow: EnclosedFlow, h: float) -> State:
        """Return the state a step h later."""
        Phi, G = flow.transition(h)
        return State(
            self.time + balls.ball(h), Phi * self.Y, self.C + self.Y.transpose() * G * self.Y
        )

    def gap(self) -> Balls:
        """I - C."""
        return balls.identity(self.C.nrows()) - self.C


@dataclass(frozen=True)
class Curvature:
    """Bounds ν >= 0 on the eigenvalues of -(Aᵀ K + K A) and μ >= 0 on those of (A + Aᵀ)/2."""

    nu: float
    mu: float

    @classmethod
    def of(cls, A: Balls, K: Balls) -> Curvature:
        """Bound them with proof."""
        N = A.transpose() * K
        nu = eigenvalue_bound(-(N + N.transpose()))
        mu = eigenvalue_bound((A + A.transpose()) / balls.ball(2))
        return cls(max(nu, 0.0), max(mu, 0.0))

    def excess(self, h: float) -> Ball:
        """(h²/8) ν e^{2μh}."""
        step = balls.ball(h)
        growth = balls.exponential(step * balls.ball(2 * self.mu))
        return step * step * balls.ball(self.nu) * growth / balls.ball(8)


def clear(before: State, after: State, curvature: Curvature, h: float) -> bool:
    """Whether I - C is proved to be positive definite between two states, h apart."""
    excess = curvature.excess(h)
    if not excess.is_finite():
        return False
    if balls.above(excess) == 0:
        return definite(before.gap()) and definite(after.gap())
    own = enclosure(before.Y)
    ends = before.gap(), after.gap()
    close = [enclosure(end) for end in ends]
    if not all(np.all(np.isfinite(x.radius)) for x in (own, *close)):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        grown = (own.T @ own).scaled(balls.above(excess))
        if all(floats.positive_definite(x - grown) for x in close):
            return True
    exact = before.Y.transpose() * before.Y * excess
    return all(definite(end - exact) for end in ends)


def walk(
    flow: EnclosedFlow, curvature: Curvature | None, factor: Balls, steps: Sequence[float]
) -> tuple[State, bool]:
    """Follow the closed form over `steps`; say whether no blow-up is proved on the way.

    Without `curvature`, K is known to be positive semidefinite, and only the end is looked at.
    """
    state = State.initial(factor)
    for h in steps:
        after = state.moved(flow, h)
        if curvature is not None and not clear(state, after, curvature, h):
            return after, False
        state = after
    return state, curvature is not None or definite(state.gap())


def negative(matrix: Balls, vector: Array) -> bool:
    """Whether xᵀ M x < 0 is proved."""
    x = balls.balls(vector)
    return bool((x.transpose() * matrix * x)[0, 0] < 0)


def _factorial(n: int) -> Any:
    made = balls.ball(1.0)
    for k in range(2, n + 1):
        made = made * balls.ball(k)
    return made

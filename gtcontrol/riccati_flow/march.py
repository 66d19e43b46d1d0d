"""Search for the first blow-up time in floats; what it finds is then proved, or not, in balls.

The steps follow the chord bound of :mod:`.enclosures`: a step is taken if I - C - E is positive
definite at both of its ends.  Before a crossing at distance τ the steps that this allows leave
a fraction of τ that is proportional to τ, so that a few of them reach the crossing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .._check import Array
from .flow import Flow

__all__ = ["Course", "Ending", "follow", "share", "step_before"]

#: Gaps of I - C below this are not told from zero by floats.
RESOLUTION = 2e-13

#: The search in floats hands over when this fraction of the time is left before a crossing.
HANDOVER = 1e-5


class Ending(Enum):
    """How the search ended."""

    CROSSING = "λ_max C = 1 is crossed at the distance `left` after the steps."
    TOUCHING = "λ_max C comes so near to 1 that floats do not tell a crossing."
    CLEAR = "The wanted time was reached, or the lasting bound holds."
    EXHAUSTED = "The steps or the range of floats were used up."


@dataclass(frozen=True, eq=False)
class Course:
    """Steps without blow-up, and what comes after them.

    Attributes
    ----------
    ending : Ending
    steps : list of float
    left : float
        Distance to the crossing, or to the maximum of λ_max C.
    beyond : float
        With :attr:`Ending.TOUCHING`, distance to a time behind the maximum.
    """

    ending: Ending
    steps: list[float]
    left: float = math.nan
    beyond: float = math.inf


def share(nu: float, mu: float, h: float) -> float:
    """(h²/8) ν e^{2μh}."""
    return 0.125 * h * h * nu * math.exp(min(2 * mu * h, 700.0))


def _top(C: Array) -> float:
    return float(np.linalg.eigvalsh(C)[-1]) if np.all(np.isfinite(C)) else math.inf


@dataclass
class _March:
    flow: Flow
    nu: float
    mu: float
    Y: Array
    C: Array
    time: float = 0.0

    def allowed(self, h: float, C: Array) -> bool:
        """Whether a step h to C is clear in floats."""
        slack = RESOLUTION + 1e-15 * float(np.linalg.norm(C))
        if not np.all(np.isfinite(C)) or _top(C) >= 1 - slack:
            return False
        if self.nu == 0:
            return True
        E = share(self.nu, self.mu, h) * (self.Y.T @ self.Y)
        return _top(C + E) < 1 - slack and _top(self.C + E) < 1 - slack

    def root(self, h: float) -> float:
        """Point of (0, h] where λ_max C = 1, by bisection and secants (Illinois)."""
        a, b = 0.0, h
        fa, fb = _top(self.C) - 1, _top(self.ahead(h)[1]) - 1
        for _ in range(60):
            if not math.isfinite(fb) or fb > 1e3:
                c = 0.5 * (a + b)
            else:
                c = b - fb * (b - a) / (fb - fa)
            if not a < c < b:
                break
            fc = _top(self.ahead(c)[1]) - 1
            if abs(fc) < RESOLUTION or b - a < 1e-9 * b:
                return c
            if (fc < 0) == (fa < 0):
                a, fa, fb = c, fc, 0.5 * fb
            else:
                b, fb, fa = c, fc, 0.5 * fa
        return b

    def ahead(self, h: float) -> tuple[Array, Array]:
        """Y and C a step later."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.flow.advance(self.Y, self.C, h)

    def take(self, h: float, Y: Array, C: Array) -> None:
        """Go there."""
        self.time += h
        self.Y, self.C = Y, C


def step_before(left: float, nu: float, mu: float, weight: float, slope: float) -> float:
    """Fraction of the distance to a crossing that a clear step has to leave.

    With slope g of λ_max C and |Y x|² = `weight` in its eigenvector, h = τ(1 - θ) is clear if
    g τ θ exceeds the excess of the chord; a safety factor of 2 is included.
    """
    if not slope > 0:
        return math.inf
    return 2 * share(nu, mu, left) * weight / (slope * left)


def follow(
    flow: Flow,
    L: Array,
    curvature: tuple[float, float],
    limit: int,
    bound: Array | None = None,
    horizon: float = math.inf,
) -> Course:
    """Follow C(t) until it crosses, is bounded for ever, reaches `horizon`, or `limit` steps."""
    march = _March(flow, *curvature, L, np.zeros((L.shape[1],) * 2))
    scale = max(flow.size, float(np.linalg.norm(L.T @ flow.K @ L, 2)), 1e-300)
    h = math.ldexp(1.0, math.frexp(1 / scale)[1] - 1)
    steps: list[float] = []
    streak, due = 0, 0
    while len(steps) < limit:
        if bound is not None and len(steps) >= due:
            due = len(steps) + 1 + len(steps) // 8
            if _top(march.C + march.Y.T @ bound @ march.Y) < 1 - RESOLUTION:
                return Course(Ending.CLEAR, steps)
        if march.time >= horizon:
            return Course(Ending.CLEAR, steps)
        Y, C = march.ahead(h)
        if march.allowed(h, C):
            steps.append(h)
            march.take(h, Y, C)
            streak += 1
            if streak >= 2:
                h, streak = 2 * h, 0
            continue
        streak = 0
        crossed = _top(C) >= 1 and (march.nu == 0 or bool(np.all(np.isfinite(C))))
        if crossed and (made := _approach(march, h, steps)) is not None:
            return made
        h *= 0.5
        if h < 1e-8 * max(march.time, 1 / scale) or march.time + h == march.time:
            if _top(march.C) < 0.5:
                return Course(Ending.EXHAUSTED, steps)
            return _touching(march, h, steps)
    return Course(Ending.EXHAUSTED, steps)


def _approach(march: _March, h: float, steps: list[float]) -> Course | None:
    """Come near the crossing within the next h, if the chord allows it."""
    while True:
        left = march.root(h)
        Y, C = march.ahead(left)
        if not np.all(np.isfinite(C)):
            return None
        x = np.linalg.eigh(C)[1][:, -1]
        moved = Y @ x
        slope = float(moved @ march.flow.K @ moved)
        theta = step_before(left, march.nu, march.mu, float(np.sum((march.Y @ x) ** 2)), slope)
        if left < HANDOVER * (march.time + left) and theta < 0.25:
            return Course(Ending.CROSSING, steps, left)
        if not theta < 0.25:
            return None
        step = left * (1 - max(theta, 0.5 * HANDOVER))
        Y, C = march.ahead(step)
        if not march.allowed(step, C):
            return None
        steps.append(step)
        march.take(step, Y, C)
        h = 2 * (left - step)


def _touching(march: _March, h: float, steps: list[float]) -> Course:
    """Enclose the maximum of λ_max C that is too near to 1."""
    width, now = 4 * h, _top(march.C)
    for _ in range(60):
        if _top(march.ahead(width)[1]) < now:
            break
        width *= 2
    else:
        return Course(Ending.TOUCHING, steps, 0.0)
    points = np.linspace(0.0, width, 33)
    values = [_top(march.ahead(p)[1]) if p > 0 else now for p in points.tolist()]
    return Course(Ending.TOUCHING, steps, float(points[int(np.argmax(values))]), width)

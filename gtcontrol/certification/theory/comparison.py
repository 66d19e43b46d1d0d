"""Scalar comparison equations y' = κ y² + a y + e, on which quadratic certificates rest.

Matrices W ⪰ 0 turn the flow of covariances into an inequality for y = tr(W S); this module solves
the equation that bounds it.  With f(y) = κ y² + a y + e, D = a² - 4 κ e and f > 0 on [y₀, ∞),

    ∫_{y₀}^∞ dy/f(y) = 2 artanh(√D/f'(y₀))/√D         if D > 0,
                     = 2/f'(y₀)                        if D = 0,
                     = 2 arccot(f'(y₀)/√-D)/√-D         if D < 0,

by partial fractions.  The solution is a quotient of solutions of the linear system
u' = a u/2 + e v, v' = -κ u - a v/2, whose matrix has the square (D/4) I.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..._check import Array
from ...arithmetic import balls

__all__ = ["Comparison", "passage_time", "solution"]

# Balls of FLINT, which has no stubs.
Ball = Any

#: Bits with which times are enclosed.
BITS = 128


@dataclass(frozen=True)
class Comparison:
    """Right-hand side f(y) = quadratic · y² + linear · y + constant, exactly."""

    quadratic: Fraction
    linear: Fraction
    constant: Fraction

    def __call__(self, level: Fraction) -> Fraction:
        """Value f(level)."""
        return (self.quadratic * level + self.linear) * level + self.constant

    def positive_from(self, level: Fraction) -> bool:
        """Whether f > 0 on [level, ∞), decided exactly."""
        slope = 2 * self.quadratic * level + self.linear
        if self.quadratic < 0 or self(level) <= 0:
            return False
        if self.quadratic == 0:
            return self.linear >= 0
        return slope >= 0 or self.discriminant < 0

    @property
    def discriminant(self) -> Fraction:
        """D = a² - 4 κ e."""
        return self.linear**2 - 4 * self.quadratic * self.constant


def passage_time(f: Comparison, level: Fraction) -> tuple[float, float]:
    """Enclose the time in which y' = f(y) carries y from `level` to infinity.

    Parameters
    ----------
    f : Comparison
        Positive from `level` on, with a positive quadratic coefficient.
    level : Fraction

    Returns
    -------
    low, high : float
        (0, inf) where f does not carry y to infinity.
    """
    if f.quadratic <= 0 or not f.positive_from(level):
        return 0.0, math.inf
    with balls.precision(BITS):
        D, slope = f.discriminant, balls.from_fraction(2 * f.quadratic * level + f.linear)
        if D > 0:
            root = balls.from_fraction(D).sqrt()
            time = 2 * (root / slope).atanh() / root
        elif D < 0:
            root = balls.from_fraction(-D).sqrt()
            time = 2 * (balls.ball(0.0).acos() - (slope / root).atan()) / root
        else:
            time = 2 / slope
        return max(balls.below(time), 0.0), balls.above(time)


def solution(f: Comparison, start: float, times: Array) -> Array:
    """Solution y(t) of y' = f(y) in floats, for pictures; inf from its blow-up on.

    Parameters
    ----------
    f : Comparison
    start : float
        y(0); inf stands for the solution that comes down from infinity (f with κ < 0).
    times : (k,) array
        Times t >= 0.

    Returns
    -------
    (k,) array
    """
    k, a, e = float(f.quadratic), float(f.linear), float(f.constant)
    t = np.asarray(times, dtype=np.float64)
    rate = float(f.discriminant) / 4
    root = math.sqrt(abs(rate))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if rate > 0:
            swing, stay = np.tanh(root * t) / root, np.ones_like(t)
        elif rate < 0:
            swing, stay = np.sin(root * t) / root, np.cos(root * t)
        else:
            swing, stay = t, np.ones_like(t)
        if math.isinf(start):
            top, bottom = stay + a / 2 * swing, -k * swing
        else:
            top = start * (stay + a / 2 * swing) + e * swing
            bottom = stay - (k * start + a / 2) * swing
        made = np.where(bottom > 0, top / bottom, np.inf)
    lost = np.logical_or.accumulate(~np.isfinite(made) & (t > 0)) if k > 0 else False
    return np.asarray(np.where(lost, np.inf, made))

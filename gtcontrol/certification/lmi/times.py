"""Times in which the comparison equation of a point leads to infinity, in scaled units."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..._check import Array
from ...results.claims import Claim
from ..rules.inequality import level_of
from ..theory.comparison import Comparison, passage_time
from .candidates import Setting
from .model import Point

__all__ = [
    "Coefficients",
    "coefficients",
    "comparison",
    "height",
    "level",
    "moments",
    "thoroughness",
    "time_to_infinity",
]

#: Coefficients (κ, a, e) of f.
Coefficients = tuple[float, float, float]


def coefficients(point: Point) -> Coefficients:
    """Coefficients (κ, a, e) of a point."""
    return point.quadratic, point.linear, point.constant


def height(setting: Setting, W: Array) -> float:
    """Y at the start, in floats."""
    return 0.0 if setting.start is None else float(np.sum(W * setting.start))


def time_to_infinity(setting: Setting, point: Point) -> float:
    """Time in which y' = f(y) carries y from the start to infinity, in scaled units."""
    f = Comparison(*(Fraction(c) for c in coefficients(point)))
    return passage_time(f, Fraction(height(setting, point.W)))[1]


def moments(f: Coefficients, start: float) -> Coefficients:
    """Minus the derivatives of T by κ, a, e: ∫ y^j/f(y)² dy from the start on, j = 2, 1, 0.

    Where f is not positive it is replaced by its modulus: the weights then only guide the search.
    """
    nodes, weights = np.polynomial.legendre.leggauss(40)
    v = 0.5 * (nodes + 1)
    # y = start + v/(1 - v); all is multiplied by powers of 1 - v, which cancel.
    y, u = start * (1 - v) + v, 1 - v
    g = f[0] * y**2 + f[1] * y * u + f[2] * u**2
    g = np.maximum(np.abs(g), 1e-3 * float(np.max(np.abs(g))) + 1e-12)
    density = 0.5 * weights / g**2
    moments = (density * y**2, density * y * u, density * u**2)
    return float(moments[0].sum()), float(moments[1].sum()), float(moments[2].sum())


def comparison(numbers: dict[str, float]) -> Comparison:
    """Right-hand side of the comparison equation of a claim's numbers."""
    names = ("quadratic", "linear", "constant")
    return Comparison(*(Fraction(numbers[name]) for name in names))


def level(setting: Setting, claim: Claim) -> Fraction:
    """Y at the start, exactly."""
    return level_of(setting.problem, claim)


def thoroughness(order: int) -> int:
    """How thoroughly to search: 0, 1 or 2."""
    return (order > 4) + (order > 6)

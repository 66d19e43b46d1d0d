"""Curves of equilibria from V_h = v_h I, where all are known, to the given V_h.

Along V_h(t) = (1 - t) v_h I + t V_h the zeros of F(s, t) form curves.  They are followed in
arclength, so that a fold (the linearisation in s becomes singular and t turns back) is passed and
counted, not mistaken for an end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._check import Array
from .quadratic import Quadratic, coordinates, symmetric
from .scalar_value import bernoulli

__all__ = ["Curve", "continue_from_scalar", "follow", "scalar_values"]

#: Steps along one curve, and its largest step in arclength (units of order one).
MOST_STEPS = 200
LONGEST = 0.5
SHORTEST = 1e-5

#: A curve that gets this far from zero is given up.
FAR = 1e4

#: Curves that are followed at most.
MOST_CURVES = 24


@dataclass(frozen=True, eq=False)
class Curve:
    """Where a curve of equilibria led.

    Attributes
    ----------
    end : (d, d) array or None
        Zero at t = 1, semidefinite or not; None if the curve turned back or left for infinity.
    folds : int
        How often it turned back in t.
    """

    end: Array | None
    folds: int


def scalar_values(field: Quadratic) -> Array:
    """The v_h of V_h = v_h I that are nearest to the V_h (never 0, where equilibria vanish)."""
    d = field.dim
    v = np.trace(field.V, axis1=1, axis2=2) / d
    sizes = np.linalg.norm(field.V, axis=(1, 2)) / np.sqrt(d)
    return np.asarray(np.where(np.abs(v) > 0.05 * sizes, v, sizes))


def continue_from_scalar(field: Quadratic) -> list[Curve]:
    """Follow the Bernoulli equilibria from V_h = v_h I; see the module."""
    v = scalar_values(field)
    K = sum(x * (B + B.T) for x, B in zip(v, field.B, strict=True))
    begin = replace(field, V=v[:, None, None] * np.eye(field.dim))
    starts, _ = bernoulli(field.A, K, most=4 * MOST_CURVES)
    return [follow(begin, field, S) for S in starts[:MOST_CURVES]]


def follow(begin: Quadratic, goal: Quadratic, S: Array) -> Curve:
    """Follow the zero S of `begin` to `goal`; the fields differ in V only."""
    path = _Path(begin, goal)
    x = np.append(coordinates(S), 0.0)
    direction = np.append(np.zeros(x.size - 1), 1.0)
    step, folds = 0.1, 0
    direction = path.tangent(x, direction)
    for _ in range(MOST_STEPS):
        reached = path.correct(x + step * direction, direction)
        if reached is None or np.linalg.norm(reached - x) > 3 * step:
            step /= 3
            if step < SHORTEST:
                return Curve(None, folds)
            continue
        turned = path.tangent(reached, direction)
        if turned @ direction < 0.8 and step > 1e-3:
            step /= 3
            continue
        folds += bool(turned[-1] * direction[-1] < 0)
        if reached[-1] >= 1.0:
            # Land on t = 1 from the last two points.
            share = (1.0 - x[-1]) / (reached[-1] - x[-1])
            end = path.land((1 - share) * x[:-1] + share * reached[:-1])
            return Curve(end, folds)
        if reached[-1] < 0.0 or np.linalg.norm(reached) > FAR:
            return Curve(None, folds)
        x, direction = reached, turned
        step = min(1.5 * step, LONGEST * (1 + 0.1 * float(np.linalg.norm(x))))
    return Curve(None, folds)


class _Path:
    """F(s, t) = (1 - t) F₀(s) + t F₁(s), its derivatives, and correctors."""

    def __init__(self, begin: Quadratic, goal: Quadratic) -> None:
        self.linear, self.dim = begin.linear, begin.dim
        self.first, self.change = begin.tensor, goal.tensor - begin.tensor
        self.constant = coordinates(begin.Q)

    def value(self, x: Array) -> tuple[Array, Array]:
        """F (m,) and its derivative in (s, t) (m, m + 1)."""
        s, t = x[:-1], x[-1]
        quadratic = (self.first + t * self.change) @ s
        slope = self.change @ s @ s
        F = self.constant + (self.linear + quadratic) @ s
        return F, np.column_stack([self.linear + 2 * quadratic, slope])

    def tangent(self, x: Array, like: Array) -> Array:
        """Unit tangent of the curve with a positive product with `like`."""
        _, jacobian = self.value(x)
        null = np.linalg.svd(jacobian)[2][-1]
        return np.asarray(null if null @ like >= 0 else -null)

    def correct(self, x: Array, direction: Array) -> Array | None:
        """Newton's method in the hyperplane through x across the curve."""
        start = x
        for _ in range(6):
            F, jacobian = self.value(x)
            matrix = np.vstack([jacobian, direction])
            right = np.append(F, direction @ (x - start))
            step = np.linalg.lstsq(matrix, right, rcond=None)[0]
            x = x - step
            size = float(np.linalg.norm(step))
            if not np.isfinite(size) or size > FAR:
                return None
            if size <= 1e-9 * (1 + float(np.linalg.norm(x))):
                return np.asarray(x)
        return None

    def land(self, s: Array) -> Array | None:
        """Newton's method at t = 1."""
        for _ in range(12):
            F, jacobian = self.value(np.append(s, 1.0))
            step = np.linalg.lstsq(jacobian[:, :-1], F, rcond=None)[0]
            s = s - step
            if np.linalg.norm(step) <= 1e-10 * (1 + np.linalg.norm(s)):
                return symmetric(s, self.dim)
            if not np.linalg.norm(s) < FAR:
                return None
        return None

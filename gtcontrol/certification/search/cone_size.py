"""The best size of a cone around a ray, in given coordinates: a search over one number."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..._check import Array
from ...results.claims import Claim
from ..theory.infinity import Expansion

__all__ = ["Cone", "best_cone"]

#: What is left of a limit, so that rounding does not decide; and of a coefficient.
SLACK, ROUNDING = 1e-9, 1e-13

#: How much later than the earliest cone a wider one may begin.
NEARLY = 1.25

#: Smallest y of a cone that needs none.
TINY_LEAST = 1e-300


class Cone(NamedTuple):
    """An invariant cone in numbers: the data of a claim."""

    H: Array
    ratio: float
    least: float
    growth: float
    drag: float
    time: float = math.inf

    def claim(self) -> Claim:
        """Return the claim, about the start if the time is finite."""
        numbers = {
            "ratio": self.ratio,
            "least": self.least,
            "growth": self.growth,
            "drag": self.drag,
        }
        if math.isfinite(self.time):
            numbers["time"] = self.time
        return Claim("ray-cone", numbers=numbers, arrays={"coordinates": self.H})


def best_cone(expansion: Expansion, H: Array, L: Array | None) -> Cone | None:
    """Best size of the cone: least time for the start if it fits, else the least y."""
    e = expansion
    if not (e.contraction > 0 and e.rate > 0) and len(H) > 1:
        return None
    largest = min(
        (e.contraction / k) ** (1 / p) if k > 0 else math.inf
        for k, p in ((e.third, 1), (e.fourth, 2), (e.fifth, 3))
    )
    s = np.geomspace(1e-14, 1.0, 600) * (largest if math.isfinite(largest) else 1.0)
    if len(H) == 1:
        s = np.ones(1)
    ratio = s * s
    s = np.sqrt(ratio)
    growth = np.asarray(e.growth(s)) - ROUNDING * e.rate
    drag = np.asarray(e.drag(s)) + ROUNDING * 2 * (s * e.pull + abs(e.drift))
    alpha = _limit(e, s, growth, drag) if len(H) > 1 else _slowest(growth, drag)
    alpha = np.where(growth > 0, alpha, 0.0) * (1 - SLACK)
    if not np.any(alpha > 0):
        return None
    least = np.maximum(1 / alpha, TINY_LEAST)
    if L is not None:
        on, off = _squared(H[:1] @ L), _squared(H[1:] @ L)
        times = _times(growth, drag, on * (1 - ROUNDING))
        fits = (least <= on * (1 - ROUNDING)) & (off <= ratio * on * (1 - ROUNDING)) & (times > 0)
        if np.any(fits):
            i = int(np.argmin(np.where(fits, times, np.inf)))
            time = float(times[i]) * (1 + 10 * ROUNDING)
            return _chosen(H, i, ratio, least, growth, drag, time)
    # The widest of the cones that begin nearly as low as the lowest.
    i = int(np.max(np.flatnonzero(least <= NEARLY * np.min(least))))
    return _chosen(H, i, ratio, least, growth, drag, math.inf)


def _chosen(
    H: Array, i: int, ratio: Array, least: Array, growth: Array, drag: Array, time: float
) -> Cone:
    return Cone(H, float(ratio[i]), float(least[i]), float(growth[i]), float(drag[i]), time)


def _limit(e: Expansion, s: Array, growth: Array, drag: Array) -> Array:
    """Largest α up to which the cone of each size is invariant; 0 if there is none."""
    far = np.asarray(e.spreading(s, 0.0))
    near = s * (e.push + s * (e.shear + s * e.pull))
    root = near + np.sqrt(np.maximum(near * near - 2 * e.noise * far, 0.0))
    alpha = np.where(root > 0, -2 * far / np.where(root > 0, root, 1.0), np.inf)
    alpha = np.minimum(alpha, _slowest(growth, drag))
    return np.where(far < -1e-3 * e.contraction * s * s, alpha, 0.0)


def _slowest(growth: Array, drag: Array) -> Array:
    """Largest α up to which y grows."""
    return np.where(drag > 0, growth / np.where(drag > 0, drag, 1.0), np.inf)


def _times(growth: Array, drag: Array, y: float) -> Array:
    """Upper bounds on the blow-up time from y; inf where y does not grow."""
    x = drag / (growth * y)
    small = np.abs(x) < 1e-8
    safe = np.where(small | (x >= 1), 0.5, x)
    ratio = np.where(small, 1 + 0.5 * x + x * x, -np.log1p(-safe) / safe)
    return np.where((x < 1) & (growth > 0), ratio / (growth * y), np.inf)


def _squared(M: Array) -> float:
    return float(np.sum(M * M))

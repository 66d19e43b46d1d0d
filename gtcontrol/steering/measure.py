"""What a plan costs and how far it misses, measured along its replay."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from .._check import Array
from ..field import rates
from ..gaussian import Gaussian
from ..problem.bounds import Bounds
from ..problem.costs import ControlEnergy, Cost, MinimumTime
from ..results.trajectory import Trajectory
from ..schedule import Schedule

__all__ = ["bounds_kept", "cost_along", "miss"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)

#: Bounds along a plan are checked to this relative tolerance.
BOUND_TOLERANCE = 1e-6

#: Smallest number of panels for a quadrature over the horizon.
_PANELS = 20


def miss(final: Gaussian, start: Gaussian, target: Gaussian) -> float:
    """Relative distance of `final` from `target`.

    The larger of |S - S₁|/|S₁| (Frobenius) and |m - m₁| over √tr S₁ + |m₁ - m₀|.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        # Scaled first: squares of very large or small factors leave the range of doubles.
        size = float(np.linalg.norm(target.factor)) if target.rank else 0.0
        covariance = 0.0
        if size > 0:
            # The triangle of [L, L₁] has the same Gram matrix, without any d by d array.
            both = np.concatenate([final.factor, target.factor], axis=1) / size
            X, Y = np.split(np.linalg.qr(both, mode="r"), [final.rank], axis=1)
            covariance = float(np.linalg.norm(X @ X.T - Y @ Y.T) / np.linalg.norm(Y @ Y.T))
        shift = float(np.linalg.norm(final.mean - target.mean))
        scale = size + float(np.linalg.norm(target.mean - start.mean))
        scale = scale or float(np.linalg.norm(target.mean)) or 1.0
        result = max(covariance, shift / scale)
    return result if math.isfinite(result) else math.inf


def cost_along(cost: Cost, schedule: Schedule, trajectory: Trajectory) -> float:
    """Cost of a schedule along a trajectory, by Gauss–Legendre quadrature on each piece."""
    if isinstance(cost, MinimumTime):
        return schedule.horizon
    control = 1.0 if isinstance(cost, ControlEnergy) else 0.0
    kinetic = cost.kinetic if isinstance(cost, ControlEnergy) else 1.0
    basis = schedule.basis
    last = float(trajectory.times[-1])
    if last < schedule.horizon * (1 - 1e-9):
        return math.inf  # the replay ends early: the plan has no finite cost
    total = 0.0
    pieces = list(schedule.pieces(inner=True))
    panels = max(1, math.ceil(_PANELS / len(pieces)))
    for piece in pieces:
        edges = np.linspace(piece.start, piece.end, panels + 1)
        for low, high in pairwise(edges):
            half = 0.5 * (high - low)
            for x, weight in zip(_NODES, _WEIGHTS, strict=True):
                t = low + half * (1 + x)
                p = piece.law(t)
                value = 0.0
                if control:
                    value = sum(float(np.sum(u**2)) for u in (p.A, p.V, p.B, p.b))
                if kinetic:
                    law = trajectory.at(min(t, last))
                    mean, factor = _inner(law.mean, basis), _inner(law.factor, basis)
                    mean_rate, factor_rate = rates(mean, factor, p.A, p.heads, p.b)
                    value += kinetic * float(np.sum(mean_rate**2) + np.sum(factor_rate**2))
                total += weight * half * value
    return float(total)


def _inner(x: Array, basis: Array | None) -> Array:
    return x if basis is None else basis.T @ x


def bounds_kept(schedule: Schedule, trajectory: Trajectory, bounds: Bounds) -> str:
    """Name the first bound that a plan breaks by more than rounding, or return ''."""
    if not bounds:
        return ""
    slack = 1 + BOUND_TOLERANCE
    for name, limit, sizes in (
        ("bounds.trace", bounds.trace, trajectory.traces),
        ("bounds.largest_eigenvalue", bounds.largest_eigenvalue, trajectory.eigenvalues),
    ):
        if limit is not None and sizes.size and float(sizes.max()) > limit * slack:
            return f"{name} = {limit:g} ({float(sizes.max()):.6g} is reached)"
    for piece in schedule.pieces():
        for x in np.linspace(0.0, 1.0, 9):
            p = piece.law(piece.start + x * (piece.end - piece.start))
            for kind, limits in (("entries", bounds.entries), ("norms", bounds.norms)):
                for letter, limit in limits.items():
                    u = getattr(p, letter)
                    size = float(np.max(np.abs(u)) if kind == "entries" else np.linalg.norm(u))
                    if size > limit * slack:
                        return f"bounds.{kind}.{letter} = {limit:g} ({size:.6g} is reached)"
    return ""

"""Proved lower bounds on the cost of every plan, and bounds that no plan can meet."""

from __future__ import annotations

import math

import numpy as np

from .._check import Array
from ..errors import BoundsExcludeEveryPlan
from ..gaussian import Gaussian, squared_wasserstein
from ..problem.bounds import Bounds
from ..problem.costs import ControlEnergy, KineticEnergy, MinimumTime
from ..problem.definitions import SteeringProblem

__all__ = ["lower_bound", "refuse_impossible_bounds", "stretch"]

#: End points may exceed a bound on the covariance by this fraction: rounding.
SLACK = 1e-9

#: A squared distance below this fraction of the squared sizes is rounding.
ROUNDING = 1e-29

#: Beyond this exponent the bound on the mean says nothing.
LARGEST_EXPONENT = 100.0


def stretch(start: Gaussian, target: Gaussian) -> Array:
    """Change of the logarithmic singular values of the factor, sorted, shape (r,).

    Along any plan (log σ_i)' = u_iᵀ M u_i with orthonormal u_i, so that the Euclidean norm
    of this vector is at most ∫ |M|_F dt, whatever the rotation of the columns.
    """
    return np.asarray(0.5 * np.log(target.eigenvalues / start.eigenvalues))


def lower_bound(problem: SteeringProblem) -> tuple[float, str]:
    """Lower bound on the cost of every admissible plan, and where it comes from."""
    p, T = problem, problem.horizon
    transport = _squared_distance(p.start, p.target) / T
    if isinstance(p.cost, KineticEnergy):
        return transport, "W₂²/T (Benamou–Brenier)"
    if isinstance(p.cost, ControlEnergy):
        parts, reasons = 0.0, []
        if p.cost.kinetic > 0:
            parts += p.cost.kinetic * transport
            reasons.append(f"{p.cost.kinetic:g} × W₂²/T (Benamou–Brenier)")
        if not {"V", "B"} <= set(p.controls) and p.start.rank:
            parts += float(np.sum(stretch(p.start, p.target) ** 2)) / T
            reasons.append("|Δ log σ(L)|²/T (only A moves the covariance)")
        if not set(p.controls) & {"A", "V"}:
            parts += float(np.sum((p.target.mean - p.start.mean) ** 2)) / T
            reasons.append("|Δm|²/T (only b moves the mean)")
        return parts, " + ".join(reasons) or "0 (a cost is not negative)"
    speed = _largest_speed(p)
    change = stretch(p.start, p.target)
    if not math.isfinite(speed) or not change.size:
        return 0.0, "0 (a time is not negative)"
    times = [float(np.linalg.norm(change)) / speed]
    limit = p.bounds.entries.get("A")
    if limit is not None and p.start.rank == p.start.dim and not {"V", "B"} <= set(p.controls):
        # the trace of A alone changes the volume
        times.append(abs(float(np.sum(change))) / (p.start.dim * limit))
    return max(times), "|Δ log σ(L)| over the largest |A + V S B|"


def _squared_distance(start: Gaussian, target: Gaussian) -> float:
    """W₂², with what is left by rounding for equal laws taken as zero."""
    squared = squared_wasserstein(start, target)
    size = sum(g.trace + float(np.sum(g.mean**2)) for g in (start, target))
    return squared if squared > ROUNDING * size else 0.0


def refuse_impossible_bounds(problem: SteeringProblem) -> None:
    """Raise BoundsExcludeEveryPlan if the bounds provably leave no plan."""
    p = problem
    for name, limit, size in (
        ("trace", p.bounds.trace, lambda g: g.trace),
        (
            "largest_eigenvalue",
            p.bounds.largest_eigenvalue,
            lambda g: float(g.eigenvalues[0]) if g.rank else 0.0,
        ),
    ):
        for end, law in (("start", p.start), ("target", p.target)):
            if limit is not None and size(law) > limit * (1 + SLACK):
                raise BoundsExcludeEveryPlan(
                    f"bounds.{name} is {limit:g}, but the {end} already has {size(law):.6g}; "
                    "raise the bound."
                )
    if isinstance(p.cost, MinimumTime):
        return  # the horizon is not given
    speed = _largest_speed(p)
    needed = float(np.linalg.norm(stretch(p.start, p.target))) if p.start.rank else 0.0
    if speed * p.horizon < needed * (1 - SLACK):
        raise BoundsExcludeEveryPlan(
            f"the bounds allow |A + V S B| of at most {speed:.4g}, so within the horizon "
            f"{p.horizon:g} the covariance changes by at most {speed * p.horizon:.4g} in "
            f"|log σ(L)|; {needed:.4g} is needed. Loosen the bounds or take a horizon of at "
            f"least {needed / speed:.4g}."
        )
    _refuse_distant_mean(p, speed)


def _refuse_distant_mean(p: SteeringProblem, speed: float) -> None:
    """Grönwall: |m|' <= (|A + V S B| + |V|) |m| + |b|."""
    d = p.start.dim
    growth = speed + (_largest_norm(p.bounds, "V", d) if "V" in p.controls else 0.0)
    push = _largest_norm(p.bounds, "b", d) if "b" in p.controls else 0.0
    if not math.isfinite(growth * p.horizon) or growth * p.horizon > LARGEST_EXPONENT:
        return
    first, last = (float(np.linalg.norm(g.mean)) for g in (p.start, p.target))
    drift = push * (math.expm1(growth * p.horizon) / growth if growth else p.horizon)
    furthest = math.exp(growth * p.horizon) * first + drift
    if last > furthest * (1 + SLACK):
        raise BoundsExcludeEveryPlan(
            f"within the horizon {p.horizon:g} the bounds allow a mean of norm at most "
            f"{furthest:.4g}, but that of the target is {last:.4g}. Loosen the bounds or lengthen "
            "the horizon."
        )


def _largest_speed(p: SteeringProblem) -> float:
    """Upper bound on |A + V S B|_F that the bounds allow."""
    d = p.start.dim
    total = _largest_norm(p.bounds, "A", d) if "A" in p.controls else 0.0
    if {"V", "B"} <= set(p.controls):
        limits = [x for x in (p.bounds.trace, p.bounds.largest_eigenvalue) if x is not None]
        size = min(limits, default=math.inf)
        total += _largest_norm(p.bounds, "V", d) * _largest_norm(p.bounds, "B", d) * size
    return total


def _largest_norm(bounds: Bounds, letter: str, d: int) -> float:
    entry = bounds.entries.get(letter, math.inf)
    return min(bounds.norms.get(letter, math.inf), entry * (d if letter != "b" else math.sqrt(d)))

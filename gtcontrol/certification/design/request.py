"""What is asked of a design, checked and refused where a theorem says that it cannot be had."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ... import _check
from ..._check import Array
from ...errors import (
    DesignInfeasible,
    InvalidMethod,
    InvalidShape,
    OutOfScale,
    RankDeficientFactor,
)
from ...gaussian import Gaussian, norm
from ...parameters import Parameters
from ...problem.bounds import Bounds
from ...problem.definitions import DesignProblem
from .near import unusable

__all__ = ["METHODS", "Wishes", "pose", "require_scale", "scalar_of", "sizes", "within"]

METHODS = ("auto", "closed-form", "lmi")

#: Largest size of tokens, rates and parameters, and the inverse of the smallest.
LARGEST = 1e30

#: Simulations by default: this number divided by the dimension, but at most ...
WORK, CHECKS = 256, 8


@dataclass(frozen=True, eq=False)
class Wishes:
    """Arguments of :func:`gtcontrol.design` besides the target, as they come."""

    method: str = "auto"
    V: ArrayLike | float | None = None
    rate: float | None = None
    mean_rate: float | None = None
    bounds: Bounds | None = None
    near: Parameters | None = None
    complement: ArrayLike | None = None
    checks: int | None = None
    seed: int = 0
    name: str = ""


def pose(target: Gaussian, wishes: Wishes) -> DesignProblem:
    """Check the arguments of :func:`gtcontrol.design` and put them together.

    Raises
    ------
    InvalidShape, InvalidNumber, InvalidMethod, RankDeficientFactor
        If an argument is none.
    DesignInfeasible
        If no parameters of this kind can make the target attracting.
    """
    w = wishes
    if not isinstance(target, Gaussian):
        raise InvalidShape(f"`target` must be a Gaussian, not {type(target).__name__}.")
    if w.method not in METHODS:
        raise InvalidMethod(f"`method` is {w.method!r:.40}; expected one of {', '.join(METHODS)}.")
    d, rank = target.dim, target.rank
    checks = max(min(CHECKS, WORK // d), 1) if w.checks is None else w.checks
    limits = Bounds() if w.bounds is None else w.bounds
    if not isinstance(limits, Bounds):
        raise InvalidShape(f"`bounds` must be Bounds, not {type(limits).__name__}.")
    if limits.trace is not None or limits.largest_eigenvalue is not None:
        raise InvalidMethod(
            "`bounds` limit the covariance along a path, which a design does not have; "
            "give `entries` and `norms` of A, B, V and b only."
        )
    rate, mean_rate = (
        None if value is None else _check.number(key, value, low=0.0, strict=True)
        for key, value in (("rate", w.rate), ("mean_rate", w.mean_rate))
    )
    if w.near is not None:
        _check_near(w.near, d)
    V = None if w.V is None else _values(w.V, d)
    if V is None and w.near is not None and rank == d:
        reason = unusable(target, w.near, mean_rate, limits)
        V = None if reason else w.near.heads[0][0]
    problem = DesignProblem(
        target,
        w.method,
        V,
        rate,
        mean_rate,
        limits,
        w.near,
        None if w.complement is None else _complement(target, w.complement),
        _check.integer("checks", checks, low=0),
        _check.integer("seed", w.seed, low=0),
        w.name,
    )
    _check_scale(problem)
    if problem.V is not None:
        _refuse_unstable_mean(problem.V, rank, mean_rate)
    _check_method(problem)
    return problem


def _check_scale(problem: DesignProblem) -> None:
    """Refuse sizes whose products leave double precision."""
    target, near = problem.target, problem.near
    widths = np.linalg.svd(target.factor, compute_uv=False) if target.rank else np.ones(1)
    sizes_of = {
        "the smallest standard deviation of the target": float(widths[-1]),
        "the largest standard deviation of the target": float(widths[0]),
        "the length of the target's mean": norm(target.mean) or 1.0,
        "`rate`": problem.rate or 1.0,
        "`mean_rate`": problem.mean_rate or 1.0,
        "the norm of `V`": 1.0 if problem.V is None else norm(problem.V) or 1.0,
        "the norm of `near`": 1.0 if near is None else norm(near.A) + norm(near.B) or 1.0,
    }
    for what, size in sizes_of.items():
        require_scale(what, size)


def require_scale(what: str, size: float) -> None:
    """Refuse a size that is not well within double precision.

    Raises
    ------
    OutOfScale
    """
    if not 1 / LARGEST <= size <= LARGEST:
        raise OutOfScale(
            f"{what} is {size:.3g}; a design needs sizes between {1 / LARGEST:g} and {LARGEST:g}. "
            "Rescale tokens or time."
        )


def scalar_of(V: Array) -> float | None:
    """V if V is exactly v I, else None."""
    v = float(V[0, 0])
    return v if np.array_equal(V, v * np.eye(len(V))) else None


def _values(V: ArrayLike | float, d: int) -> Array:
    if isinstance(V, int | float | np.integer | np.floating) and not isinstance(V, bool):
        made = np.diag(np.full(d, _check.number("V", V)))
        made.setflags(write=False)
        return made
    return _check.square("V", V, d)


def _check_near(near: Parameters, d: int) -> None:
    if not isinstance(near, Parameters):
        raise InvalidShape(f"`near` must be Parameters, not {type(near).__name__}.")
    if near.dim != d or len(near.heads) != 1:
        raise InvalidShape(
            f"`near` has dimension {near.dim} and {len(near.heads)} head(s); expected dimension "
            f"{d}, as `target` has, and one head."
        )


def _complement(target: Gaussian, complement: ArrayLike) -> Array:
    d, rank = target.dim, target.rank
    made = _check.array("complement", complement, 2)
    if made.shape != (d, d - rank):
        raise InvalidShape(
            f"`complement` must have shape ({d}, {d - rank}), as the target has rank {rank}; "
            f"it has {made.shape}."
        )
    columns = np.hstack([target.range_basis, made / max(norm(made), 1e-300)])
    sigma = np.linalg.svd(columns, compute_uv=False)
    if sigma[-1] <= 1e-12 * sigma[0]:
        raise RankDeficientFactor(
            "`complement` and the range of the target must span the whole space; their relative "
            f"smallest singular value is {sigma[-1] / sigma[0]:.3g}."
        )
    return made


def _refuse_unstable_mean(V: Array, rank: int, mean_rate: float | None) -> None:
    """Refuse value matrices with which no equilibrium of this rank has a stable mean.

    At an equilibrium M S + S Mᵀ = 0 with M = A + V S B, so that on the range of S the matrix M is
    skew in the metric of the pseudoinverse, and has trace 0.
    """
    d, v, trace = len(V), scalar_of(V), float(np.trace(V))
    if rank == d and trace >= 0:
        raise DesignInfeasible(
            f"`V` has trace {trace:.6g}, but the mean of a full-rank equilibrium is stable only if "
            "tr V < 0: its linear part A + V + V S B has trace tr V there. Use V with negative "
            "trace and B with the opposite sign, which moves the covariance in the same way."
        )
    if v is not None and v >= 0:
        raise DesignInfeasible(
            f"`V` is {v:.6g} I: on the range of the target the linear part of the mean then has "
            f"eigenvalues with real part {v:.6g}, which are not stable. Use a negative multiple."
        )
    least = -trace / d
    if mean_rate is not None and rank == d and mean_rate > least * (1 + 1e-12):
        raise DesignInfeasible(
            f"`mean_rate` is {mean_rate:.6g}, but with this V the mean converges at most at rate "
            f"-tr V/d = {least:.6g}: the linear part of the mean has trace tr V. Scale V up."
        )


def _check_method(problem: DesignProblem) -> None:
    d, rank = problem.target.dim, problem.target.rank
    scalar = problem.V is None or scalar_of(problem.V) is not None
    if problem.complement is not None and rank == d:
        raise InvalidMethod("`complement` is for singular targets; this one has full rank.")
    if not scalar and rank < d:
        raise InvalidMethod(
            f"the target has rank {rank} in dimension {d}: a design for a singular target uses V "
            "that is a negative multiple of the identity; give that multiple, or leave V out."
        )
    if problem.method == "closed-form" and not scalar:
        raise InvalidMethod(
            "the closed form has V = -ν I; give `V` as a negative number, or use method='lmi'."
        )
    if problem.method == "closed-form" and problem.near is not None:
        raise InvalidMethod("`near` needs method='lmi': the closed form has no freedom left.")
    if rank < d and (problem.method == "lmi" or problem.near is not None):
        raise InvalidMethod(
            f"the target has rank {rank} in dimension {d}; singular targets have the closed form "
            "only: leave out `near` and method='lmi'."
        )


def sizes(p: Mapping[str, Array]) -> dict[str, dict[str, float]]:
    """Largest entry and Frobenius norm of each letter."""
    return {
        "entries": {key: float(np.max(np.abs(x), initial=0.0)) for key, x in p.items()},
        "norms": {key: norm(x) for key, x in p.items()},
    }


def within(bounds: Bounds, p: Parameters) -> str:
    """Name a bound that parameters break, empty if there is none; rounding is forgiven."""
    letters = {"A": p.A, "B": p.B, "V": p.V, "b": p.b}
    for kind, found in sizes(letters).items():
        for letter, cap in getattr(bounds, kind).items():
            if found[letter] > cap * (1 + 1e-9) or math.isnan(found[letter]):
                what = "largest entry" if kind == "entries" else "norm"
                return f"the {what} of {letter} would be {found[letter]:.6g}, above {cap:.6g}"
    return ""

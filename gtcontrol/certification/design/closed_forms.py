"""Parameters in closed form: V = -ν I, and a feed-forward layer that is a multiple of projections.

Full rank: A = (α/2) I, V = -ν I, B = (α/2ν) S⁻¹ and b = ν m give

    S' = α (S - S S*⁻¹ S),    (S⁻¹ - S*⁻¹)' = -α (S⁻¹ - S*⁻¹),

from every S > 0.  No parameters with V = -ν I do with less.  The real parts of the eigenvalues of A
are at least α/2, so tr A >= dα/2: then |A| >= (α/2)|I| in the Frobenius norm, and an entry on the
diagonal is at least α/2.  And ν(B + Bᵀ) >= α S*⁻¹ makes the norm and the largest entry of B at
least those of (α/2ν) S*⁻¹, which has its largest entry on the diagonal.  So bounds on A and B can
be met if and only if the closed form meets them.

Rank r < d: S* = U P Uᵀ, with Π the projection on U along a complement N, κ = α,

    A = β Π - κ (I - Π),    B = (β/ν)(S*⁺ + τ (I - U Uᵀ)).

The small τ > 0 makes V and B + Bᵀ opposite in every direction, rounding included, so that no start
whatever blows up; B has rank r up to τ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...errors import DesignInfeasible, OutOfScale
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...problem.bounds import Bounds
from ...problem.definitions import DesignProblem
from .request import require_scale, scalar_of, sizes, within

__all__ = ["Draft", "balance", "bias", "closed_form", "default_complement"]

#: Rate of the mean that is chosen when none is asked for, and that of the covariance over it.
MEAN_RATE, RATIO = 1.0, 2.0

#: Relative excess of the rates of singular targets over what is claimed, for a proof with rounding.
EXCESS = 2.0**-24

#: Share of the largest precision that B has outside a singular target.
TRACE_OF_B = 2.0**-40


@dataclass(frozen=True, eq=False)
class Draft:
    """Parameters, and what is to be claimed of them.

    Attributes
    ----------
    parameters : Parameters
    method : str
    rate, loss : float
        Rates α within the target's range and κ outside it.
    mean_rate : float
    complement : (d, d - r) array
    scalar : bool
        Whether V is a multiple of the identity, so that attraction is global.
    """

    parameters: Parameters
    method: str
    rate: float
    loss: float
    mean_rate: float
    complement: Array
    scalar: bool = True


@dataclass(frozen=True, eq=False)
class _Unit:
    """A at α = 1, and B at α = ν = 1."""

    A: Array
    B: Array
    complement: Array


def closed_form(problem: DesignProblem) -> Draft:
    """Parameters in closed form, at the rates and within the bounds of the problem.

    Raises
    ------
    DesignInfeasible
        If the bounds exclude it.
    OutOfScale
        If the parameters leave double precision.
    """
    target = problem.target
    d = target.dim
    with np.errstate(all="ignore"):
        unit = _full(target) if target.rank == d else _singular(target, problem.complement)
        alpha, nu = balance(problem, unit.A, unit.B)
        A, B = alpha * unit.A, alpha / nu * unit.B
        V = np.diag(np.full(d, -nu))
        b = nu * target.mean if target.rank == d else bias(A, V, B, target)
    made = (A, B, V, b)
    if not all(np.isfinite(x).all() for x in made):
        raise OutOfScale(
            "the parameters of this target leave double precision: the eigenvalues of its "
            "covariance are too small, too large or too spread; rescale the tokens."
        )
    parameters = Parameters(*made)
    broken = within(problem.bounds, parameters)
    if broken:
        raise DesignInfeasible(f"with the closed form {broken}; widen the bound or lower `rate`.")
    return Draft(parameters, "closed-form", alpha, alpha, min(nu, alpha), unit.complement)


def bias(A: Array, V: Array, B: Array, target: Gaussian) -> Array:
    """Bias b with which the mean of the target rests, b = -(A + V + V S B) m, shape (d,)."""
    m, L = target.mean, target.factor
    return np.asarray(-(A @ m + V @ (m + L @ (L.T @ (B @ m)))))


def default_complement(target: Gaussian) -> Array:
    """Orthogonal complement of the range of a target, scaled like its factor, (d, d - r)."""
    d, r = target.dim, target.rank
    if r == d:
        return np.zeros((d, 0))
    if r == 0:
        return np.eye(d)
    left, sigma, _ = np.linalg.svd(target.factor)
    return np.asarray(float(sigma[0]) * left[:, r:])


def _full(target: Gaussian) -> _Unit:
    d = target.dim
    inverse = np.linalg.inv(target.factor)
    precision = inverse.T @ inverse
    return _Unit(0.5 * np.eye(d), 0.25 * (precision + precision.T), np.zeros((d, 0)))


def _singular(target: Gaussian, complement: Array | None) -> _Unit:
    d, r = target.dim, target.rank
    L = target.factor
    N = default_complement(target)
    if complement is not None:
        N = complement * (float(np.linalg.norm(L, 2)) / float(np.linalg.norm(complement, 2)))
    up = 1.0 + EXCESS
    if r == 0:
        return _Unit(-up * np.eye(d), np.zeros((d, d)), N)
    projection = L @ np.linalg.inv(np.hstack([L, N]))[:r]
    inverse = np.linalg.pinv(L)
    precision = inverse.T @ inverse
    off = default_complement(target)
    off = off / float(np.linalg.norm(off, 2))
    tau = TRACE_OF_B * d * float(np.linalg.norm(inverse, 2)) ** 2
    B = 0.5 * up * (precision + tau * (off @ off.T))
    return _Unit(up * (1.5 * projection - np.eye(d)), 0.5 * (B + B.T), N)


def balance(problem: DesignProblem, A: Array, B: Array) -> tuple[float, float]:
    """Choose α and ν so that α A and (α/ν) B are within bounds, and rates as asked for.

    Raises
    ------
    DesignInfeasible
        If there are none; the message names the largest rate.
    """
    d, rank = problem.target.dim, problem.target.rank
    unit = sizes({"A": A, "B": B, "V": np.eye(d), "b": problem.target.mean})
    most = {key: _most(problem.bounds, unit, key) for key in "ABVb"}
    fixed = None if problem.V is None else scalar_of(problem.V)
    highest = min(most["V"], most["b"] if rank == d else math.inf)
    if fixed is not None:
        if -fixed > highest * (1 + 1e-12):
            raise DesignInfeasible(
                f"`V` is {fixed:.6g} I, but the bounds on V and b allow at most {highest:.6g}."
            )
        highest = -fixed
    if problem.mean_rate is not None and problem.mean_rate > highest * (1 + 1e-12):
        why = "`V`" if fixed is not None else "the bounds on V and b"
        raise DesignInfeasible(
            f"`mean_rate` is {problem.mean_rate:.6g}, but with V = -ν I the mean converges at rate "
            f"ν, and {why} allow{'s' if fixed is not None else ''} at most ν = {highest:.6g}."
        )
    fastest = min(most["A"], highest * most["B"])
    least = problem.mean_rate or 0.0
    aim = least or (-fixed if fixed is not None else min(MEAN_RATE, highest))
    alpha = max(problem.rate if problem.rate is not None else min(RATIO * aim, fastest), least)
    require_scale("the rate of the covariance", alpha)
    if alpha > fastest * (1 + 1e-12):
        best = "no A and B do better" if rank == d else "the closed form does not do better"
        raise DesignInfeasible(
            f"rate {alpha:.6g} is beyond the bounds: with V = -ν I, ν <= {highest:.6g}, they allow "
            f"rates up to {fastest:.6g}, and {best}. Lower the rate or widen the bounds."
        )
    if fixed is not None:
        return alpha, -fixed
    nu = min(max(least or min(alpha / RATIO, highest), alpha / most["B"]), highest)
    require_scale("the rate of the mean", nu)
    return alpha, nu


def _most(bounds: Bounds, unit: dict[str, dict[str, float]], letter: str) -> float:
    """Largest multiple of a unit that is within bounds."""
    found = math.inf
    for kind in ("entries", "norms"):
        cap, size = getattr(bounds, kind).get(letter, math.inf), unit[kind][letter]
        if size > 0:
            found = min(found, cap / size)
    return found

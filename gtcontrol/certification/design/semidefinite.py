"""Parameters by semidefinite programming: any V, within bounds, near given parameters."""

from __future__ import annotations

import numpy as np

from ..._check import Array
from ...errors import DesignInfeasible, TooLarge
from ...parameters import Parameters
from ...problem.definitions import DesignProblem
from ..lmi.synthesis import MARGIN, Program, Synthesis, solve
from .closed_forms import RATIO, Draft, balance, bias
from .near import LARGEST_GENERAL, contraction
from .request import scalar_of, within

__all__ = ["semidefinite"]

#: Largest dimension that is solved with V = -ν I: the matrix inequality has order d.
LARGEST_SCALAR = 40


def semidefinite(problem: DesignProblem) -> Draft:
    """Parameters by a semidefinite program, for a target of full rank.

    Raises
    ------
    DesignInfeasible
        If there are none, by theorem or as the solver says.
    TooLarge
        If the program would be too large.
    """
    target = problem.target
    d = target.dim
    v = -1.0 if problem.V is None else scalar_of(problem.V)
    most = LARGEST_GENERAL if v is None else LARGEST_SCALAR
    if d > most:
        kind = "this V" if v is None else "V = -ν I"
        raise TooLarge(
            f"the semidefinite program for {kind} is solved up to dimension {most}; the target has "
            f"{d}. Leave out `near`, `method` and `V`, and the closed form is used."
        )
    if v is None and problem.V is not None:
        V, mean_rate = problem.V, _mean_rate(problem, problem.V)
        rate = _rate(problem, mean_rate)
    else:
        rate, mean_rate = _rates(problem)
        V = np.diag(np.full(d, -mean_rate))
    if problem.mean_rate is not None and problem.mean_rate > mean_rate * (1 + 1e-9):
        raise DesignInfeasible(
            f"`mean_rate` is {problem.mean_rate:.6g}, but with this V the mean is only sure to "
            f"converge at rate {mean_rate:.6g}, whatever A and B are; scale V up."
        )
    found = solve(_program(problem, V, rate))
    if found.A is None or found.B is None:
        raise DesignInfeasible(_refusal(rate, found, certain=v is None))
    if problem.mean_rate is not None and problem.mean_rate > found.rate:
        raise DesignInfeasible(
            f"`mean_rate` is {problem.mean_rate:.6g}, but the bounds allow the covariance, which "
            f"the mean follows, only rate {found.rate:.6g} with this V; widen them."
        )
    parameters = Parameters(found.A, found.B, V, bias(found.A, V, found.B, target))
    broken = within(problem.bounds, parameters)
    if broken:
        raise DesignInfeasible(f"with the parameters that were found {broken}; widen the bound.")
    return Draft(
        parameters,
        "lmi",
        found.rate,
        found.rate,
        min(mean_rate, found.rate),
        np.zeros((d, 0)),
        v is not None,
    )


def _rates(problem: DesignProblem) -> tuple[float, float]:
    """Rates α and ν with V = -ν I: bounds can be met if and only if the closed form meets them."""
    inverse = np.linalg.inv(problem.target.factor)
    half = 0.5 * np.eye(problem.target.dim)
    alpha, nu = balance(problem, half, 0.5 * inverse.T @ inverse)
    if problem.rate is None and problem.bounds:
        alpha *= 1.0 - 4.0 * MARGIN  # the program stays inside the bounds
    return alpha, nu


def _rate(problem: DesignProblem, mean_rate: float) -> float | None:
    """Rate α for another V; None is the largest that the bounds allow."""
    bounds = problem.bounds
    bounded = {*bounds.entries, *bounds.norms} & {"A", "B"}
    if problem.rate is None and bounded and problem.near is None:
        return None
    return max(problem.rate or RATIO * mean_rate, problem.mean_rate or 0.0)


def _program(problem: DesignProblem, V: Array, rate: float | None) -> Program:
    zero = np.zeros_like(V)
    near = problem.near
    return Program(
        problem.target.factor,
        V,
        rate,
        (zero, zero) if near is None else (near.A, near.heads[0][1]),
        dict(problem.bounds.entries),
        dict(problem.bounds.norms),
    )


def _mean_rate(problem: DesignProblem, V: Array) -> float:
    """Rate of the mean in the metric of the target, which A and B do not change."""
    rate, least = contraction(problem.target, V)
    if not rate > least:
        raise DesignInfeasible(
            "`V` does not contract in the metric of the target: S⁻¹V + VᵀS⁻¹ must be negative "
            f"definite, and its largest relative eigenvalue is {-2 * rate:.6g}. Then no A and B "
            "have the quadratic certificate; use V = -ν I, or a V that is nearer to it."
        )
    return rate * (1 - 1e-9)


def _refusal(wanted: float | None, found: Synthesis, *, certain: bool) -> str:
    """What the solvers say; with V = -ν I there is an answer, so they are not believed."""
    rate = "" if wanted is None else f" at rate {wanted:.6g}"
    if certain and "infeasible" in found.words:
        return (
            f"no A and B within the bounds make the target attracting{rate} with this V, as the "
            f"solver says ({found.words}); lower `rate`, widen the bounds, or leave out `V`."
        )
    return (
        f"the solvers find no A and B{rate} ({found.words}); widen the bounds, rescale the tokens, "
        "or leave out `near` and `method`."
    )

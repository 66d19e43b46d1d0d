"""Local stability: an equilibrium that attracts, with a rate and a region of attraction.

In coordinates y (:mod:`.neighbourhood`) the covariance moves by y' = f + J y + T(y, y).  Suppose
that the symmetric part of J is at most -a < 0.  Then ‖J⁻¹‖ <= 1/a, and y ↦ -J⁻¹(f + T(y, y)) maps
the ball |y| <= ε into itself and contracts if |f| + κ ε² <= a ε and 2 κ ε < a: there is exactly one
zero y* in the ball.  For δ = y - y*, δ' = (J + 2 T(y*, ·)) δ + T(δ, δ).  Let K be a matrix with
KᵀK + (2 κ ε + sym J) <= 0 and KᵀK >= α, and let |⟨δ, T(δ, δ)⟩| <= κ₃ |δ| |K δ|².  Then

    d|δ|²/dt <= -2 (1 - κ₃ |δ|) |K δ|²,

and |δ(0)| < ρ <= 1/κ₃ implies |δ(t)| <= exp(-α (1 - κ₃ |δ(0)|) t) |δ(0)|.  (Weighing the cubic
term by K keeps fast modes from spoiling the region of slow ones.)  The approximate equilibrium
R E_r Rᵀ itself is a covariance of rank r in this region; covariances remain covariances, of the
same rank without noise, so S* is positive semidefinite of rank at most r; as it differs from E_r by
less than 1 in R's coordinates, its rank is r.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from ..._check import Array
from ...arithmetic import balls, symmetric
from ...arithmetic.norms import eigenvalue_bound, frobenius_bound, norm_bound
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .mean_refusal import refusal
from .neighbourhood import BITS, Neighbourhood, neighbourhood

__all__ = ["LocalStability", "check_stability", "describe", "describe_equilibrium"]

#: Part of the damping that the Cholesky factor leaves as room for its rounding.
SLACK = 1e-9


class LocalStability(Rule):
    """An equilibrium of any rank that attracts all covariances near it.

    Numbers: ``rank`` (r), ``error`` (ε), ``rate`` (α), ``cubic`` (κ₃), ``radius`` (ρ), ``reach``
    (radius in the Frobenius norm of S - S*), and ``distance`` if the start lies in the region.
    Arrays: ``frame`` (R), ``metric`` (G).
    """

    name: ClassVar[str] = "local-stability"
    theorem: ClassVar[str] = "Lyapunov function of the linearisation: equilibrium that attracts"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check existence, rank, rate and region in balls."""
        with balls.precision(BITS):
            check_stability(problem, claim)

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say what attracts, and from where."""
        text = describe(problem, claim)
        refused = refusal(problem.parameters)
        if refused and int(number(claim, "rank")) == problem.dim:
            text += f" {refused}"
        if "distance" in claim.numbers:
            left = 1.0 - number(claim, "cubic") * number(claim, "distance")
            left *= number(claim, "rate")
            text += f" This start lies there, and approaches at the rate {left:.4g} or more."
            return Statement(Verdict.CONVERGES, Scope.THIS_START, text)
        if math.isinf(number(claim, "radius")):
            return Statement(Verdict.CONVERGES, Scope.EVERY_START, text)
        return Statement(Verdict.LOCALLY_STABLE, Scope.SOME_STARTS, text)


def describe(problem: CertificationProblem, claim: Claim) -> str:
    """Equilibrium, region and rate of a claim in words."""
    d, rank = problem.dim, int(number(claim, "rank"))
    kind = describe_equilibrium(matrix(claim, "frame", d, d)[:, :rank])
    rate, reach = number(claim, "rate"), number(claim, "reach")
    where = (
        "every covariance"
        if math.isinf(reach)
        else f"every covariance within {reach:.3g} of it (Frobenius norm)"
    )
    return f"The equilibrium {kind} attracts {where}, in the end at the rate {rate:.4g} or more."


def describe_equilibrium(factor: Array) -> str:
    """Rank, trace and, in small dimension, entries of a covariance with a factor (d, r)."""
    d, rank = factor.shape
    if rank == 0:
        return "0"
    S = factor @ factor.T
    kind = f"of rank {rank}, trace {float(np.trace(S)):.8g}"
    if d <= 3:
        # What is zero by rounding is shown as zero.
        shown = np.where(np.abs(S) > 1e-12 * np.max(np.abs(S)), S, 0.0)
        kind += ", [" + "; ".join(", ".join(f"{x:.6g}" for x in row) for row in shown) + "],"
    return kind


def check_stability(problem: CertificationProblem, claim: Claim) -> Neighbourhood:
    """Check what the module proves; the precision is set by the caller.

    Raises
    ------
    Refuted
        If a condition is not proved.
    """
    error, rate = _positive(claim, "error"), _positive(claim, "rate")
    near = neighbourhood(problem, claim, metric=True)
    a, kappa, eps = -_abscissa(near), balls.ball(near.bilinear), balls.ball(error)
    if not a > 0:
        raise Refuted(f"the linearisation does not contract in the metric: {a:.3g} is not positive")
    f = frobenius_bound(near.value)
    if not (f + kappa * eps**2 <= a * eps and 2 * kappa * eps < a):
        raise Refuted(f"no equilibrium is proved within the error {error:.3g}")
    weight = _weight(near, error, rate)
    _check_region(near, claim, _cubic(near, weight))
    if "distance" in claim.numbers:
        _check_start(problem, claim, near)
    return near


def _weight(near: Neighbourhood, error: float, rate: float) -> balls.Balls:
    """Inverse of K with α <= KᵀK <= -sym J - 2 κ ε, from an approximate Cholesky factor."""
    m = near.jacobian.nrows()
    margin = 2 * balls.ball(near.bilinear) * balls.ball(error)
    damping = -(near.jacobian + near.jacobian.transpose()) / 2 - margin * balls.identity(m)
    centre = (1.0 - SLACK) * balls.middle(damping)
    try:
        K = balls.balls(np.asarray(np.linalg.cholesky((centre + centre.T) / 2).T, dtype=np.float64))
    except np.linalg.LinAlgError:
        raise Refuted("the linearisation does not contract beyond the error") from None
    square = K.transpose() * K
    if not balls.positive_definite(damping - square):
        raise Refuted("the linearisation is not proved to contract beyond the error")
    if not balls.positive_definite(square - balls.ball(rate) * balls.identity(m)):
        raise Refuted(f"the rate {rate!r} exceeds what is proved")
    return K.inv()


def _cubic(near: Neighbourhood, weight: balls.Balls) -> float:
    """Bound κ₃ of the module: from the coefficients, or from the norms of V and B.

    The second is |T(D, D)|_F <= 2 Σ ‖V_h‖ ‖B_h‖ |D|_F² with |D|_F <= ‖G⁻¹ K⁻¹‖ |K y|, times ‖G‖.
    """
    gain = balls.ball(0.0)
    for V, B in near.heads:
        gain += 2 * balls.ball(norm_bound(V)) * norm_bound(B)
    inner = balls.ball(norm_bound(near.unmetric * weight))
    plain = balls.above(gain * norm_bound(near.metric) * inner * inner)
    return min(plain, symmetric.weighted_cubic(near.even, weight))


def _check_region(near: Neighbourhood, claim: Claim, least: float) -> None:
    error, radius, reach = (_positive(claim, name) for name in ("error", "radius", "reach"))
    cubic = number(claim, "cubic")
    if not least <= cubic < math.inf:
        raise Refuted(f"the bound {cubic!r} on the cubic term is below {least!r}")
    if math.isinf(radius) or math.isinf(reach):
        if cubic != 0 or not math.isinf(radius):
            raise Refuted("only a field without cubic term attracts without bound")
    else:
        if not balls.ball(cubic) * radius <= 1:
            raise Refuted(f"the region of radius {radius!r} exceeds 1 / cubic = {1 / cubic!r}")
        if not balls.ball(reach) * near.stretch < radius:
            raise Refuted(f"the reach {reach!r} leaves the region of radius {radius!r}")
    if not error < radius:
        raise Refuted("the approximate equilibrium is not within the region")
    if near.rank > 0 and not balls.ball(error) * near.shrink < 1:
        raise Refuted("the error is too large to tell the rank of the equilibrium")


def _check_start(problem: CertificationProblem, claim: Claim, near: Neighbourhood) -> None:
    distance = _positive(claim, "distance")
    if problem.start is None:
        raise Refuted("the claim is about a start, but the problem has none")
    L = balls.balls(problem.start.factor)
    found = near.distance(L * L.transpose())
    if not balls.ball(found) + number(claim, "error") <= distance:
        raise Refuted(f"the start is farther from the equilibrium than {distance!r}")
    if not distance < number(claim, "radius"):
        raise Refuted("the start lies outside the region of attraction")


def _abscissa(near: Neighbourhood) -> float:
    return eigenvalue_bound((near.jacobian + near.jacobian.transpose()) / 2)


def _positive(claim: Claim, name: str) -> float:
    value = number(claim, name)
    if not value > 0:
        raise Refuted(f"the number `{name}` of the claim is {value!r}; expected a positive one")
    return value

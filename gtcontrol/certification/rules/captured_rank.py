"""A start of deficient rank, captured by an equilibrium that attracts covariances of its rank.

The flow keeps the rank r.  In coordinates in which the approximate equilibrium is E = diag(I, 0)
(:mod:`.neighbourhood`), a covariance of rank r with blocks P > 0, W (below P) and N has
N = W P⁻¹ Wᵀ.  So z = svec(P - I), √2 W are coordinates of the covariances of rank r near E;
D = S - E consists of z and N.  With y = G z and the projection Π on the coordinates of z,

    y' = g(y) = G Π (f + J D + T(D, D)),    |2 T(D, H)| <= 4 Σ ‖V‖‖B‖ |D| |H|.

For |y| <= ρ, ζ = ‖G⁻¹‖ ρ < 1: |z| <= ζ, |W| <= ζ/√2, ‖P⁻¹‖ <= 1/(1 - ζ), so |N| <= ζ²/(2 (1 - ζ)),
and N changes with z at most by the factor ν = ζ/(1 - ζ) + ζ²/(2 (1 - ζ)²).  So the logarithmic
norm of Dg in the ball |y| <= ρ is at most

    μ(G J_zz G⁻¹) + ‖G J_zN‖ ‖G⁻¹‖ ν + 4 ‖G‖ ‖G⁻¹‖ Σ ‖V‖‖B‖ (ζ + ζ²/(2 (1 - ζ))) (1 + ν).

If it is at most -α < 0, and |g(0)| <= α ε with ε <= ρ, then the flow maps the ball into itself and
contracts it at the rate α: there is one equilibrium in it, within ε of E, which attracts the ball.
Covariances of higher rank play no part, and may be repelled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...arithmetic import balls, symmetric
from ...arithmetic.norms import eigenvalue_bound, frobenius_bound, norm_bound
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from ..bracket.reduction import reduced
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .captured_start import describe_limit, enclose_end
from .course import read_course
from .neighbourhood import BITS, Neighbourhood, neighbourhood
from .wording import rounded_down

__all__ = ["CapturedRank", "RankRegion", "read_region", "tangent"]

# FLINT has no stubs.
Balls = Any

#: The equilibrium is known to this in the coordinates in which it is the identity on its range.
LARGEST_ERROR = 1e-6


def tangent(dim: int, rank: int) -> list[int]:
    """Indices of the coordinates of svec that belong to P and W, not to N."""
    pairs = [(i, j) for i in range(dim) for j in range(i, dim)]
    return [k for k, (i, _) in enumerate(pairs) if i < rank]


@dataclass(frozen=True, eq=False)
class RankRegion:
    """A ball of covariances of one rank, and the equations near it."""

    near: Neighbourhood
    metric: Balls
    picked: list[int]

    def distance(self, covariance: Balls) -> float:
        """Bound on |y| of a covariance of this rank."""
        near = self.near
        there = near.inverse * covariance * near.inverse.transpose() - near.base
        column = symmetric.in_coordinates(there).tolist()
        return frobenius_bound(self.metric * balls.table([column[k] for k in self.picked]))


class CapturedRank(Rule):
    """A start of deficient rank that converges to an equilibrium of the same rank.

    Numbers: ``rank``, ``radius`` (ρ), ``rate`` (α), ``error`` (ε), ``bits``, ``order``, ``arrival``
    (bound on |y| at the end).  Arrays: ``frame`` (R), ``metric`` (G), ``coordinates``, ``steps``.
    """

    name = "captured-rank"
    theorem = "integration in balls into a region that attracts covariances of this rank"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check the region, integrate again in balls, and compare the distance at the end."""
        if problem.start is None or len(problem.vertices) != 1:
            raise Refuted("a start is captured, or not, under constant parameters")
        parameters, factor = reduced(problem.parameters, problem.start.factor)
        course = read_course(claim, parameters.dim)
        inner = CertificationProblem((parameters,))
        with balls.precision(BITS):
            region = read_region(inner, claim)
            _check_contraction(region, claim)
        if factor.shape[1] != region.near.rank:
            raise Refuted(f"the start has rank {factor.shape[1]}, not {region.near.rank}")
        covariance = enclose_end(parameters, factor, course)
        arrival = number(claim, "arrival")
        with balls.precision(BITS):
            if not region.distance(covariance) <= arrival:
                raise Refuted(f"at the end the equilibrium is not within {arrival!r}")
        if not arrival <= number(claim, "radius"):
            raise Refuted("at the end the start is outside the region of attraction")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say where the start goes, and how fast from when on."""
        time = math.nextafter(math.fsum(claim.arrays["steps"].tolist()), math.inf)
        text = (
            "The covariance of this start converges to the equilibrium "
            f"{describe_limit(problem, claim).rstrip(',')}, which attracts covariances of this "
            "rank near it. "
            f"From t = {time:.4g} on it approaches at the rate "
            f"{rounded_down(number(claim, 'rate'))} or more."
        )
        top = math.inf
        return Statement(Verdict.CONVERGES, Scope.THIS_START, text, lower=top, upper=top)


def read_region(problem: CertificationProblem, claim: Claim) -> RankRegion:
    """Region of a claim; the precision is set by the caller.

    Raises
    ------
    Refuted
        If the data are missing or do not fit.
    """
    near = neighbourhood(problem, claim, metric=False)
    if not 0 < near.rank < problem.dim:
        raise Refuted(f"the rank is {near.rank}; expected one between 0 and {problem.dim}")
    picked = tangent(problem.dim, near.rank)
    metric = balls.balls(matrix(claim, "metric", len(picked), len(picked)))
    return RankRegion(near, metric, picked)


def _check_contraction(region: RankRegion, claim: Claim) -> None:
    near, G, picked = region.near, region.metric, region.picked
    inverse = balls.inverse(G)
    if inverse is None:
        raise Refuted("the array `metric` of the claim is not proved to be invertible")
    radius, rate, error = (number(claim, name) for name in ("radius", "rate", "error"))
    if not (0 < error <= radius < math.inf and 0 < rate < math.inf):
        raise Refuted(f"radius {radius!r}, rate {rate!r} or error {error!r} is out of range")
    shrink, stretch = balls.ball(norm_bound(inverse)), balls.ball(norm_bound(G))
    if not shrink * error < LARGEST_ERROR:
        raise Refuted(f"the equilibrium is not known well enough: within {error!r}")
    zeta = shrink * radius
    if not zeta < 1:
        raise Refuted(f"the radius {radius!r} is too large to tell the rank")
    normal = zeta * zeta / (2 * (1 - zeta))
    change = zeta / (1 - zeta) + normal / (1 - zeta)
    rows = near.jacobian.tolist()
    others = [k for k in range(len(rows)) if k not in set(picked)]
    inside = G * balls.table([[rows[i][j] for j in picked] for i in picked]) * inverse
    across = G * balls.table([[rows[i][j] for j in others] for i in picked])
    gain = sum((balls.ball(norm_bound(V)) * norm_bound(B) for V, B in near.heads), balls.ball(0.0))
    growth = balls.ball(eigenvalue_bound((inside + inside.transpose()) / 2))
    growth += norm_bound(across) * shrink * change
    growth += 4 * stretch * shrink * gain * (zeta + normal) * (1 + change)
    if not growth <= -rate:
        raise Refuted(f"the rate {rate!r} is not proved in the radius {radius!r}")
    value = near.value.tolist()
    residual = frobenius_bound(G * balls.table([value[k] for k in picked]))
    if not residual <= balls.ball(rate) * error:
        raise Refuted(f"no equilibrium is proved within the error {error!r}")

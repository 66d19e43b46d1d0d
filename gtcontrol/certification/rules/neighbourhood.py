"""The covariance field near an approximate equilibrium, in balls: data that several rules share.

Tokens are measured by the columns of an invertible R: S = R S̃ Rᵀ, and the approximate equilibrium
is S̃ = E_r = diag(1, …, 1, 0, …, 0).  Deviations are measured by y = G svec(S̃ - E_r) with an
invertible G (the identity: Frobenius norm).  In y the field is exactly f + J y + T(y, y).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...arithmetic import balls, symmetric
from ...arithmetic.norms import frobenius_bound, norm_bound
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from .base import Refuted, matrix, number

__all__ = ["BITS", "MOST_DIMENSIONS", "Neighbourhood", "neighbourhood"]

#: Bits of the balls.
BITS = 192

#: Above this dimension the linearisation, of order d (d + 1)/2, takes too long in balls.
MOST_DIMENSIONS = 10

# FLINT has no stubs.
Balls = Any


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Parameters in the coordinates of the module, and the field in y.

    Attributes
    ----------
    rank : int
    frame, inverse : (d, d) ball matrices
        R and R⁻¹.
    A : (d, d) ball matrix
    heads : tuple of (V, B)
    base : (d, d) ball matrix
        E_r.
    metric, unmetric : (m, m) ball matrices
        G and G⁻¹.
    value : (m, 1) ball matrix
        f.
    jacobian : (m, m) ball matrix
        J.
    bilinear : float
        κ with |T(y, z)| <= κ |y||z|.
    even : tuple of (m, m) ball matrices
        N_a with ⟨y, T(y, y)⟩ = Σ y_a ⟨y, N_a y⟩, symmetric in all indices.
    shrink : float
        Bound on ‖G⁻¹‖, so that |S̃ - E_r|_F <= shrink |y|.
    """

    rank: int
    frame: Balls
    inverse: Balls
    A: Balls
    heads: tuple[tuple[Balls, Balls], ...]
    base: Balls
    metric: Balls
    unmetric: Balls
    value: Balls
    jacobian: Balls
    bilinear: float
    even: tuple[Balls, ...]
    shrink: float

    @property
    def stretch(self) -> float:
        """Bound on |y| / |S - S'|_F: ‖G‖ ‖R⁻¹‖²."""
        inner = balls.ball(norm_bound(self.inverse))
        return balls.above(balls.ball(norm_bound(self.metric)) * inner * inner)

    def distance(self, covariance: Balls) -> float:
        """Bound on |y| of a covariance."""
        there = self.inverse * covariance * self.inverse.transpose() - self.base
        return frobenius_bound(self.metric * symmetric.in_coordinates(there))


def neighbourhood(problem: CertificationProblem, claim: Claim, *, metric: bool) -> Neighbourhood:
    """Enclose the field near the approximate equilibrium of a claim.

    Parameters
    ----------
    problem : CertificationProblem
    claim : Claim
        With the array ``frame`` (R), the number ``rank`` (r), and the array ``metric`` (G) if
        `metric` is set; else G is the identity.

    Raises
    ------
    Refuted
        If the data are missing or do not fit.
    """
    if len(problem.vertices) != 1:
        raise Refuted("an equilibrium is that of constant parameters, not of a family")
    p, d = problem.parameters, problem.dim
    if d > MOST_DIMENSIONS:
        raise Refuted(f"the dimension is {d}; equilibria are proved up to {MOST_DIMENSIONS}")
    R = balls.balls(matrix(claim, "frame", d, d))
    rank = number(claim, "rank")
    if rank not in range(d + 1):
        raise Refuted(f"the rank is {rank}; expected a whole number from 0 to {d}")
    r = int(rank)
    if p.noise is not None and p.noise.any() and r < d:
        raise Refuted("with process noise an equilibrium of deficient rank is not treated")
    inverse = _inverse(R, "frame")
    A = inverse * balls.balls(p.A) * R
    heads = tuple(
        (inverse * balls.balls(V) * R, R.transpose() * balls.balls(B) * R) for V, B, _ in p.heads
    )
    base = balls.identity(d)
    for i in range(r, d):
        base[i, i] = 0
    m = d * (d + 1) // 2
    G = balls.balls(matrix(claim, "metric", m, m)) if metric else balls.identity(m)
    unmetric = _inverse(G, "metric")
    half = A * base
    for V, B in heads:
        half = half + V * base * B * base
    rate = half + half.transpose()
    if p.noise is not None:
        rate = rate + inverse * balls.balls(p.noise) * inverse.transpose()
    bilinear, even = symmetric.curvature(heads, d, G, unmetric)
    return Neighbourhood(
        rank=r,
        frame=R,
        inverse=inverse,
        A=A,
        heads=heads,
        base=base,
        metric=G,
        unmetric=unmetric,
        value=G * symmetric.in_coordinates(rate),
        jacobian=G * symmetric.linearisation(A, heads, base) * unmetric,
        bilinear=bilinear,
        even=even,
        shrink=norm_bound(unmetric),
    )


def _inverse(M: Balls, name: str) -> Balls:
    try:
        return M.inv()
    except ZeroDivisionError:
        raise Refuted(f"the array `{name}` of the claim is not proved to be invertible") from None

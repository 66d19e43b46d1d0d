"""A designed Gaussian of full rank attracts all covariances near it, for any V: a region of it.

In coordinates x = L z, where S = L Lᵀ is the target, let D be the deviation of the covariance
from I, and M = A + V B (all in these coordinates), R = M + Mᵀ.  Then

    D' = R + M D + D Mᵀ + V D B + Bᵀ D Vᵀ + N(D, D),    |N(D, E)|_F <= c |D|_F |E|_F,

with N(D, E) = V D B E + E Bᵀ D Vᵀ and c = 2 |V|₂ |B|₂.  Suppose -2 tr(D V D B) >= (α + |R|) |D|²
for all symmetric D.  As 2 tr(D M D) = tr(D R D) <= |R| |D|², the linear part 𝓛 satisfies
<D, 𝓛D> <= -α |D|²; so it has an inverse of norm at most 1/α.

*Equilibrium.*  If 4 c |R|_F < α², contraction gives D_eq with |D_eq|_F <= δ = 2 |R|_F/α, and its
covariance has a factor L (I + D_eq)^(1/2) at distance at most |L|₂ δ, as |√(1 + x) - 1| <= |x|.

*Attraction.*  E = D - D_eq has <E, E'> <= -(α - 2cδ - c |E|_F) |E|_F²: from |D|_F < ϱ with
ϱ + δ <= (α - 2cδ)/c it falls to 0, at every rate below α - 2cδ.  The ball holds no singular
covariance, because α <= c.

*Mean.*  J = A + V + V S B at the equilibrium is M + V + V D_eq B.  If its symmetric part at D = 0
lies below -(μ + |V||B| δ), then |e^{Jt}| <= e^{-μt}, so that m tends to m_eq at every rate below
min(μ, α - 2cδ), and |m_eq - m*| <= |L| (|L⁻¹ρ| + |V| δ |B m*|)/μ with ρ the residual of m*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._check import Array
from ...arithmetic.floats import (
    TINY,
    UNIT,
    UP,
    Enclosure,
    exact,
    positive_definite,
    spectral_norm_bound,
)
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .coordinates import (
    Basis,
    exceeds,
    frobenius_bound,
)
from .designed_attractor import Distances, single_head
from .wording import rounded_down, rounded_up

__all__ = ["DesignedLocally", "Region", "region"]


@dataclass(frozen=True)
class Region:
    """What is proved: rate of the covariance, radius of its region, distances from the target."""

    rate: float
    radius: float
    distances: Distances


class DesignedLocally(Rule):
    """A quadratic Lyapunov function in the metric of the target."""

    name: ClassVar[str] = "designed-locally"
    theorem: ClassVar[str] = "contraction in the metric of the target: it attracts within a radius"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Bound all that the statement says with rigorous floats."""
        p = single_head(problem)
        mean, factor = matrix(claim, "mean", p.dim), matrix(claim, "factor", p.dim, p.dim)
        found = region(p, mean, factor, number(claim, "contraction"), number(claim, "mean_rate"))
        upper = {
            "covariance_distance": found.distances.covariance,
            "mean_distance": found.distances.mean,
        }
        for name, least in upper.items():
            if not least <= number(claim, name):
                raise Refuted(f"`{name}` is only proved to be at most {least:.6g}")
        for name, most in (("rate", found.rate), ("radius", found.radius)):
            if not number(claim, name) <= most:
                raise Refuted(f"`{name}` is only proved to be at least {most:.6g}")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say what attracts, whom, and how fast."""
        away = np.hypot(number(claim, "covariance_distance"), number(claim, "mean_distance"))
        rate, mean_rate = number(claim, "rate"), number(claim, "mean_rate")
        text = (
            "From every covariance S with |L⁻¹(S - L Lᵀ)L⁻ᵀ|_F < "
            f"{rounded_down(number(claim, 'radius'), 4)}, where L Lᵀ is the target's, the law "
            f"converges to an equilibrium within W₂ distance {rounded_up(UP * away, 3)} of the "
            f"target: its covariance at every rate below {rounded_down(rate, 10)}, its mean at "
            f"every rate below {rounded_down(min(rate, mean_rate), 10)}."
        )
        return Statement(Verdict.LOCALLY_STABLE, Scope.SOME_STARTS, text)


def region(
    p: Parameters, mean: Array, factor: Array, contraction: float, mean_rate: float
) -> Region:
    """Bound the region of attraction and the distance of the equilibrium from the target.

    Parameters
    ----------
    p : Parameters
        Of one head.
    mean : (d,) array
    factor : (d, d) array
    contraction : float
        α, which is proved.
    mean_rate : float
        μ, which is proved.

    Raises
    ------
    Refuted
        If the equilibrium, its attraction or the bounds are not proved.
    """
    alpha, mu = contraction, mean_rate
    if not (alpha > 0 and mu > 0):
        raise Refuted("a rate is not positive")
    with np.errstate(all="ignore"):  # what overflows is not proved
        basis = Basis.of(factor)
        (A, fault), (V, fault_v) = basis.similar(p.A), basis.similar(p.V)
        B = basis.congruent(p.B)
        values = UP * (spectral_norm_bound(V) + fault_v)
        scores = spectral_norm_bound(B)
        M = A + V @ B
        slip = UP * (fault + fault_v * scores)  # bound on what M itself may be off
        residual = frobenius_bound(M + M.T) + UP * 2.0 * slip * float(np.sqrt(p.dim)) * UP
        c = 2.0 * UP * values * scores
        margin = UP * (alpha + residual + 2.0 * fault_v * scores)
        if not _contracts(V, B, margin):
            raise Refuted(f"the deviation is not proved to shrink at rate {alpha:.10g}")
        if not UP * 4.0 * c * residual < alpha * alpha / UP:
            raise Refuted("no equilibrium is proved near the target")
        delta = UP * 2.0 * residual / alpha
        rate = (alpha - UP * 2.0 * c * delta) / UP
        radius = (rate / (UP * c) - delta) / UP
        if not (rate > 0 and radius > 0):
            raise Refuted("the equilibrium near the target has no region that is proved")
        off = UP * (slip + fault_v + UP * values * scores * delta)
        if not exceeds(-(M + V), UP * (mu + off)):
            raise Refuted(f"the mean is not proved to converge at rate {mu:.10g}")
        wide = spectral_norm_bound(basis.columns)
        m, L = exact(mean[:, None]), basis.columns
        score = exact(p.B) @ m
        rest = exact(p.A) @ m + exact(p.V) @ (m + L @ (L.T @ score)) + exact(p.b[:, None])
        pull = UP * values * delta * spectral_norm_bound(L.T @ score)
        miss = UP * UP * wide * (basis.length(rest) + pull) / mu
        return Region(rate, radius, Distances(UP * wide * delta, miss))


def _contracts(V: Enclosure, B: Enclosure, margin: float) -> bool:
    """Whether -2 tr(D V D B) >= margin |D|² is proved for all symmetric D.

    The quadratic form is vec(D)ᵀ (Bᵀ ⊗ V) vec(D), on the coordinates of D in the basis
    E_ii, E_ij + E_ji, in which |D|² has the weights 1 and 2.
    """
    d = V.middle.shape[0]
    form = _kronecker(B.T, V)
    form = form + form.T
    pairs = [(i, j) for j in range(d) for i in range(j, d)]
    first = [i + d * j for i, j in pairs]
    second = [j + d * i for i, j in pairs]
    twice = np.array([float(i != j) for i, j in pairs])
    # vec stacks columns: entry (i, j) of D stands at i + d j.
    parts = [
        Enclosure(
            form.middle[np.ix_(rows, columns)] * np.outer(left, right),
            form.radius[np.ix_(rows, columns)] * np.outer(left, right),
        )
        for rows, left in ((first, 1.0 + 0 * twice), (second, twice))
        for columns, right in ((first, 1.0 + 0 * twice), (second, twice))
    ]
    total = parts[0] + parts[1] + parts[2] + parts[3]
    weights = UP * margin * (1.0 + twice)
    return positive_definite(-total - exact(np.diag(weights)))


def _kronecker(one: Enclosure, other: Enclosure) -> Enclosure:
    """Kronecker product: all products of two entries."""
    middle = np.asarray(np.kron(one.middle, other.middle))
    size, rest = np.abs(one.middle), np.abs(other.middle)
    radius = np.kron(size, other.radius) + np.kron(one.radius, rest + other.radius)
    return Enclosure(middle, np.asarray(UP * (radius + UNIT * np.abs(middle) + TINY)))

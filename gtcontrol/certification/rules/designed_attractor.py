"""A designed Gaussian attracts all covariances, when V = v I with v < 0: proved despite rounding.

Let K = v (B + Bᵀ), so that S' = A S + S Aᵀ + S K S, and let the target be N(m*, L Lᵀ) with L of
full column rank r <= d.  In coordinates x = T z, T = [L N], write A and K in blocks A_ij, K_ij.

*Subspace.*  Suppose A_11 + A_11ᵀ >= (α + 2|A_12| η) I and A_22 + A_22ᵀ <= -(2κ + 2|A_12| η) I,
with η = 2|A_21|/δ, δ = α/2 + κ > 0 and 4|A_12||A_21| < δ².  The range of [I; Y] is A-invariant if
Y A_11 - A_22 Y = A_21 - Y A_12 Y.  The operator on the left has an inverse of norm at most 1/δ
(Y = ∫ e^{A_22 s} C e^{-A_11 s} ds), so the quadratic equation has a solution |Y| <= η by
contraction.  With Λ = A_11 + A_12 Y and A_s = A_22 - Y A_12 then Λ + Λᵀ >= α I, and
A_s + A_sᵀ <= -2κ I: A has r eigenvalues with real part at least α/2, on the range U of
Û = L + N Y, and d - r with real part at most -κ.

*Equilibrium.*  S = Û X⁻¹ Ûᵀ is an equilibrium iff X Λ + Λᵀ X = -Ûᵀ K Û.  If K < 0 there is exactly
one solution, X > 0, and |X - I| <= ε = |R|/α with R = Λ + Λᵀ + Ûᵀ K Û, because the inverse of
X → X Λ + Λᵀ X has norm at most 1/α.  The factor Û X^(-1/2) then gives, for ε <= 1/2,

    W₂(N(0, S_eq), N(0, L Lᵀ)) <= |Û X^(-1/2) - L|_F <= ε |L|_F + 3/2 η √r |N|.

*Attraction, r = d.*  E = S⁻¹ - S_eq⁻¹ obeys E' = -(E A + Aᵀ E), so that |Lᵀ E L| falls like
e^(-αt), for every S(0) > 0; and S⁻¹ stays positive definite as K < 0.

*Attraction, r < d.*  In coordinates in which A = diag(Λ, A_s), let S(0) = F Fᵀ with the upper rows
F_1 of F of rank r.  From S(t) = Φ F (I + Fᵀ H F)⁻¹ Fᵀ Φᵀ, H = -∫ Φᵀ K Φ >= 0, and F_1 Q = [M 0]
with Q orthogonal, the substitution diag(M⁻¹ e^(-Λt), I) turns ΦFQ into [I 0; 0 0] and the inner
matrix into diag(X, *) up to terms that vanish.  A factor of S(t) tends to one of S_eq at every rate
below min(α, κ).

*Mean.*  At the equilibrium M = A + v S_eq B maps U into itself, where it is skew in the metric X,
and acts as A_s on the quotient.  The eigenvalues of M + v I thus have real part at most v, and m
tends to m_eq at every rate below min(-v, α, 2κ).  With ρ the residual of m* the distance is
|m_eq - m*| <= |T| |J⁻¹ T⁻¹ ρ|, which is bounded with an approximate inverse of J.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._check import Array
from ...arithmetic.floats import UP, Enclosure, exact, positive_definite, spectral_norm_bound
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .coordinates import (
    Basis,
    block,
    exceeds,
    frobenius_bound,
    identity,
)
from .wording import rounded_down, rounded_up

__all__ = ["DesignedAttractor", "Distances", "distances", "single_head"]

#: Largest relative deviation ε of the equilibrium that the bounds are made for.
LARGEST_DEVIATION = 0.5


@dataclass(frozen=True)
class Distances:
    """Bounds on how far the equilibrium lies from the target."""

    covariance: float
    mean: float


@dataclass(frozen=True)
class _Deviation:
    """Bounds η on |Y|, ε on |X - I|, and π on the difference of equilibrium and target."""

    tilt: float
    shape: float

    @property
    def state(self) -> float:
        """Bound on |[I; Y] X⁻¹ [I Yᵀ] - diag(I, 0)|."""
        return UP * UP * (self.shape + 2 * self.tilt + self.tilt**2) / (1.0 - self.shape)


class DesignedAttractor(Rule):
    """V = v I, v < 0, K < 0: one equilibrium, near the target, attracts."""

    name: ClassVar[str] = "designed-attractor"
    theorem: ClassVar[str] = "V = v I, v < 0: the target attracts every start of full rank"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Bound all that the statement says with rigorous floats."""
        parameters = single_head(problem)
        mean, factor, complement = _target(parameters.dim, claim)
        rank = factor.shape[1]
        rate = number(claim, "rate") if rank else 0.0
        loss = number(claim, "loss") if rank < parameters.dim else 0.0
        found = distances(parameters, mean, factor, complement, rate, loss)
        for name, least in (("covariance", found.covariance), ("mean", found.mean)):
            said = number(claim, f"{name}_distance")
            if not least <= said:
                raise Refuted(
                    f"the equilibrium is only proved to lie within {least:.6g} of the target's "
                    f"{name}, not within {said:.6g}"
                )

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say what attracts, whom, and how fast."""
        v = float(np.ravel(problem.parameters.V)[0])
        rank, d = _target(problem.dim, claim)[1].shape[1], problem.dim
        away = np.hypot(number(claim, "covariance_distance"), number(claim, "mean_distance"))
        where = f"an equilibrium within W₂ distance {rounded_up(UP * away, 3)} of the target"
        if rank == d:
            rate = number(claim, "rate")
            text = (
                f"From every covariance of full rank the law converges to {where}: the difference "
                f"of the inverse covariances shrinks in the target's own metric like "
                f"exp(-{rounded_down(rate, 10)} t) from the first instant, and the mean approaches "
                f"its limit at every rate below {rounded_down(min(-v, rate), 10)}."
            )
            return Statement(Verdict.CONVERGES, Scope.SOME_STARTS, text)
        inside, loss = number(claim, "rate") if rank else np.inf, number(claim, "loss")
        who = f"of full rank, and of each rank from {rank} on from all but a set of measure zero,"
        text = (
            f"From every covariance{f' {who}' if rank else ''} the law converges to {where}, of "
            f"rank {rank}: its covariance in W₂ at every rate below "
            f"{rounded_down(min(inside, loss), 10)}, its mean at every rate below "
            f"{rounded_down(min(-v, inside, 2 * loss), 10)}."
        )
        return Statement(Verdict.CONVERGES, Scope.SOME_STARTS, text)


def single_head(problem: CertificationProblem) -> Parameters:
    """Parameters of a problem with one head, no noise, no score bias and no start.

    Raises
    ------
    Refuted
        If it is another problem.
    """
    p = problem.parameters
    if len(problem.vertices) != 1 or p.V.ndim != 2 or p.noise is not None or p.beta is not None:
        raise Refuted("the rule is about constant parameters of one head without noise and bias β")
    return p


def _target(d: int, claim: Claim) -> tuple[Array, Array, Array]:
    given = claim.arrays.get("factor")
    rank = given.shape[1] if given is not None and given.ndim == 2 else 0
    if rank > d:
        raise Refuted(f"the factor has {rank} columns in dimension {d}")
    return (
        matrix(claim, "mean", d),
        matrix(claim, "factor", d, rank),
        matrix(claim, "complement", d, d - rank),
    )


def distances(
    p: Parameters, mean: Array, factor: Array, complement: Array, rate: float, loss: float
) -> Distances:
    """Bound the distance of the attracting equilibrium from the target.

    Parameters
    ----------
    p : Parameters
        Of one head, with V = v I.
    mean : (d,) array
    factor : (d, r) array
    complement : (d, d - r) array
    rate, loss : float
        α and κ; what is not needed (r = 0, r = d) is ignored.

    Raises
    ------
    Refuted
        If the equilibrium, its attraction or the bounds are not proved.
    """
    d, r = factor.shape
    v = float(p.V[0, 0])
    if not np.array_equal(p.V, v * np.eye(d)) or not v < 0:
        raise Refuted("V is no negative multiple of the identity")
    if (r and not rate > 0) or (r < d and not loss > 0):
        raise Refuted("a rate is not positive")
    with np.errstate(all="ignore"):  # what overflows is not proved
        basis = Basis.of(np.hstack([factor, complement]))
        A, fault = basis.similar(p.A)
        B = basis.congruent(p.B)
        deviation = _deviation(A, fault, (B + B.T).scaled(v), (rate, loss), r)
        _check_attention(p.B, B, v, r)
        tall = spectral_norm_bound(exact(complement)) if r < d else 0.0
        covariance = UP * (
            frobenius_bound(exact(factor)) * deviation.shape
            + 1.5 * UP * tall * deviation.tilt * float(np.sqrt(r))
        )
        miss = _mean_distance(p, mean, factor, basis, (A, fault, B), deviation)
    return Distances(covariance, miss)


def _check_attention(B: Array, inside: Enclosure, v: float, rank: int) -> None:
    """Refuse unless K = v (B + Bᵀ) is proved to be negative definite, or is zero with rank 0."""
    if rank == 0 and not B.any():
        return
    # Definiteness does not depend on coordinates: those of the target serve where its precision is
    # spread widely, those of the tokens where the complement is oblique.
    given = exact(B)
    if not any(positive_definite((x + x.T).scaled(-v)) for x in (inside, given)):
        raise Refuted("V and B + Bᵀ are not proved to have opposite effect in every direction")


def _deviation(
    A: Enclosure, fault: float, K: Enclosure, rates: tuple[float, float], r: int
) -> _Deviation:
    """Bounds on the invariant subspace and on the equilibrium within it."""
    rate, loss = rates
    d = A.middle.shape[0]
    inner, outer = slice(0, r), slice(r, d)
    tilt = across = 0.0
    if 0 < r < d:
        across = UP * (spectral_norm_bound(block(A, inner, outer)) + fault)
        leak = UP * (spectral_norm_bound(block(A, outer, inner)) + fault)
        gap = (0.5 * rate + loss) / UP
        if not UP * 4.0 * across * leak < gap * gap / UP:
            raise Refuted("no invariant subspace is proved near the range of the target")
        tilt = UP * 2.0 * leak / gap
    margin = UP * (fault + UP * across * tilt)
    if not exceeds(block(A, inner, inner), UP * (0.5 * rate + margin) if margin else 0.5 * rate):
        raise Refuted(f"the precision is not proved to relax at rate {rate:.10g}")
    if not exceeds(-block(A, outer, outer), UP * (loss + margin) if margin else loss):
        raise Refuted(f"variance outside the target is not proved to vanish at rate {loss:.10g}")
    if r == 0:
        return _Deviation(0.0, 0.0)
    first = block(A, inner, inner)
    residual = frobenius_bound(first + first.T + block(K, inner, inner)) + 2.0 * margin
    if 0 < r < d:
        sides = spectral_norm_bound(block(K, inner, outer))
        beyond = spectral_norm_bound(block(K, outer, outer))
        residual += UP * (2.0 * sides * tilt + beyond * tilt * tilt)
    shape = UP * UP * residual / rate
    if not shape <= LARGEST_DEVIATION:
        raise Refuted(f"the target is no equilibrium: relative residual {shape:.3g}")
    return _Deviation(tilt, shape)


def _mean_distance(
    p: Parameters,
    mean: Array,
    factor: Array,
    basis: Basis,
    seen: tuple[Enclosure, float, Enclosure],
    deviation: _Deviation,
) -> float:
    """Bound on |m_eq - m*|, by an approximate inverse of the linear part of m'."""
    A, fault, B = seen
    d, r = factor.shape
    v = float(p.V[0, 0])
    m, L = exact(mean[:, None]), exact(factor)
    score = exact(p.B) @ m
    attended = L @ (L.T @ score) if r else exact(np.zeros((d, 1)))
    residual = exact(p.A) @ m + (m + attended).scaled(v) + exact(p.b[:, None])
    rows = Enclosure(B.middle.copy(), B.radius.copy())
    rows.middle[r:], rows.radius[r:] = 0.0, 0.0
    J = A + (rows + identity(d)).scaled(v)
    try:
        inverse = exact(np.asarray(np.linalg.inv(J.middle)))
    except np.linalg.LinAlgError:
        raise Refuted("the linear part of the mean is not proved to be invertible") from None
    size = spectral_norm_bound(inverse)
    off = UP * abs(v) * deviation.state
    shift = UP * (basis.length(residual) + off * spectral_norm_bound(basis.columns.T @ score))
    gap = spectral_norm_bound(identity(d) - inverse @ J)
    gap += UP * size * (fault + off * spectral_norm_bound(B))
    if not gap <= LARGEST_DEVIATION:
        raise Refuted("the linear part of the mean is not proved to be invertible")
    return float(UP * UP * spectral_norm_bound(basis.columns) * size * shift / (1.0 - gap))

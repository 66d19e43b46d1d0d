"""V = v I, K <= 0: what the covariance converges to, of which rank, how fast, and from where.

Let R^d = U ⊕ W be invariant under A, dim U = p, Re λ >= α > 0 on U, Re λ <= β < α on W; Λ = A on U,
and X > 0 with Λᵀ X + X Λ = -K_U.  Write L = U L₁ + W L₂, Φ L = U Y₁ + W Y₂.

Rank r = p, L₁ invertible.  Z = Y₂ Y₁⁻¹ = O(e^{-(α-β)t}), and N = Y₁⁻ᵀ(I - C)Y₁⁻¹ obeys
N' = -Λᵀ N - N Λ - [I; Z]ᵀ K [I; Z], so N → X with the smaller of the rates 2α and α - β, and
S = [I; Z] N⁻¹ [I; Z]ᵀ → U X⁻¹ Uᵀ = S*.

Rank r > p, L₁ of rank p, β < 0.  With columns turned so that L₁ = [M 0], the blocks of the new
I - C are: the first, which behaves as above; the last, which is at least I and converges; and
between them Y₁⁻ᵀ(I - C)₁₂ = O(e^{-min(α, -β)t}).  Inverting, S → S* with the rate 2 min(α, -β).
(p = 0: S <= Y Yᵀ.)

Rank r > p, L₁ of rank p, K < 0, no eigenvalue on W right of the axis.  S <= W(t), where
W⁻¹ = ∫₀ᵗ e^{-Aᵀs}|K|e^{-As} ds grows to X on U and diverges off it, so W(t) → S*; and S is at least
the solution from a part of rank p of the start, which converges to S*.  No rate.

The rates hold up to a factor that is polynomial in t, hence for every smaller rate.

Enclosures.  In the basis T = [U₀ W₀] of floats, T⁻¹AT = [[A₁, E₁], [E₂, A₂]] with A₁ + A₁ᵀ >= 2α₀,
A₂ + A₂ᵀ <= 2β₀: the Sylvester operators have inverses of norm at most 1/(α₀ - β₀), so that
Brouwer's theorem gives U = U₀ + W₀Ξ and W = W₀ + U₀Θ with |Ξ| <= 2|E₂|/(α₀ - β₀) and
|Θ| <= 2|E₁|/(α₀ - β₀); and X differs from X₀ by at most the residual of X₀ over 2α.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..._check import Array
from ...arithmetic import balls
from ...arithmetic.balls import Balls
from ...arithmetic.definiteness import definite, enclosure
from ...arithmetic.norms import size_bound
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...riccati_flow.system import System
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .scalar_value import start_of, system_of, without_noise

__all__ = ["Limit", "proved_error"]

#: Precision of the balls.
BITS = 160


@dataclass(frozen=True)
class _Splitting:
    """Enclosure of the invariant splitting: T⁻¹, U, Λ, Θ, and bounds α and β."""

    inverse: Balls
    U: Balls
    Lam: Balls
    Theta: Balls
    alpha: float
    beta: float


def _splitting(A: Balls, basis: Balls, p: int, alpha: float, beta: float) -> _Splitting:
    """Enclose the invariant subspaces near the columns of `basis`.

    Raises
    ------
    Refuted
        If they are not proved to exist.
    """
    d = A.nrows()
    try:
        inverse = basis.inv()
    except ZeroDivisionError:
        raise Refuted("the basis of the claim is not proved to be invertible") from None
    turned = inverse * A * basis
    first, second = balls.rows(turned, 0, p), balls.rows(turned, p, d)
    A1, E1 = balls.columns(first, 0, p), balls.columns(first, p, d)
    E2, A2 = balls.columns(second, 0, p), balls.columns(second, p, d)
    two = balls.ball(2)
    if p and not definite((A1 + A1.transpose()) / two - balls.identity(p) * balls.ball(alpha)):
        raise Refuted(f"the modes of the limit are not proved to grow at {alpha:g}")
    q = d - p
    if q and not definite(balls.identity(q) * balls.ball(beta) - (A2 + A2.transpose()) / two):
        raise Refuted(f"the other modes are not proved to grow at most at {beta:g}")
    if not p or not q:
        U = basis if p else balls.zeros(d, 0)
        return _Splitting(inverse, U, A1, balls.zeros(p, q), alpha, beta)
    e1, e2, sep = balls.ball(size_bound(E1)), balls.ball(size_bound(E2)), balls.ball(alpha) - beta
    tiny = balls.ball(1e-300)
    xi, theta = two * e2 / sep + tiny, two * e1 / sep + tiny
    conditions = (
        sep > 0,
        (e2 + e1 * xi * xi) / sep < xi,
        (e1 + e2 * theta * theta) / sep < theta,
        xi * theta < 1,
    )
    if not all(bool(c) for c in conditions):
        raise Refuted("the invariant subspaces near the basis of the claim are not proved to exist")
    Xi = balls.neighbourhood(q, p, balls.above(xi))
    Theta = balls.neighbourhood(p, q, balls.above(theta))
    U = balls.columns(basis, 0, p) + balls.columns(basis, p, d) * Xi
    lower = balls.below(balls.ball(alpha) - e1 * xi)
    upper = balls.above(balls.ball(beta) + e2 * theta)
    if not lower > upper:
        raise Refuted("the two groups of modes are not proved to be apart")
    return _Splitting(inverse, U, A1 + E1 * Xi, Theta, lower, upper)


def _limit_error(parts: _Splitting, K: Balls, X: Array, limit: Array) -> float:
    """Largest |S* - limit| over the entries that is not excluded.

    Raises
    ------
    Refuted
        If X is not proved to be near a positive definite solution.
    """
    d, p = K.nrows(), len(X)
    made = balls.zeros(d, d)
    if p:
        guess = balls.balls(X)
        left = parts.Lam.transpose() * guess
        rest = left + left.transpose() + parts.U.transpose() * K * parts.U
        error = balls.ball(size_bound(rest)) / (balls.ball(2) * balls.ball(parts.alpha))
        exact = guess + balls.neighbourhood(p, p, balls.above(error))
        if not np.array_equal(X, X.T) or not definite(exact):
            raise Refuted("the inverse of the limit is not proved to be positive definite")
        made = parts.U * exact.inv() * parts.U.transpose()
    miss = enclosure(made - balls.balls(limit))
    return float(np.max(np.abs(miss.middle) + miss.radius))


def proved_error(
    system: System, basis: Array, X: Array, limit: Array, ends: tuple[float, float]
) -> float:
    """Error of a limit that :class:`Limit` will prove, for those who make claims.

    Parameters
    ----------
    system : System
    basis : (d, d) array
    X : (p, p) array
    limit : (d, d) array
    ends : tuple of float
        α₀ and β₀.

    Raises
    ------
    Refuted
        If nothing is proved.
    """
    with balls.precision(BITS):
        A, K = system.ball_pair()
        parts = _splitting(A, balls.balls(basis), len(X), *ends)
        if len(X) and not parts.alpha > 0:
            raise Refuted("the modes of the limit are not proved to grow")
        return _limit_error(parts, K, X, limit)


class Limit(Rule):
    """S converges to the Bernoulli equilibrium of the dominant modes."""

    name: ClassVar[str] = "riccati-limit"
    theorem: ClassVar[str] = "V = v I with K <= 0: Bernoulli equilibrium of the dominant modes"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Enclose the splitting, the limit and the rate; prove that the start is generic."""
        without_noise(problem)
        system, d = system_of(problem), problem.dim
        p, r = _whole(claim, "limit_rank", d), _whole(claim, "rank", d)
        if r < p:
            raise Refuted(f"data of rank {r} cannot converge to a limit of rank {p}")
        if not system.semidefinite(-1):
            raise Refuted("K is not proved to be negative semidefinite")
        basis, X = matrix(claim, "basis", d, d), matrix(claim, "inverse", p, p)
        alpha, beta = number(claim, "alpha"), number(claim, "beta")
        if not all(np.isfinite(x) for x in (alpha, beta, number(claim, "error"))):
            raise Refuted("a bound of the claim is infinite")
        with balls.precision(BITS):
            A, K = system.ball_pair()
            parts = _splitting(A, balls.balls(basis), p, alpha, beta)
            if p and not parts.alpha > 0:
                raise Refuted("the modes of the limit are not proved to grow")
            most = _limit_error(parts, K, X, matrix(claim, "limit", d, d))
            if not most * (1 + 1e-12) <= number(claim, "error"):
                raise Refuted(f"the limit is only proved to an error of {most:.3g}")
            self._check_rate(system, parts, p, r, number(claim, "rate"))
            self._check_start(problem, parts, p, r, number(claim, "start"))

    @staticmethod
    def _check_rate(system: System, parts: _Splitting, p: int, r: int, rate: float) -> None:
        d, down = len(system.A), 1 - 1e-15
        if r == p and p:
            found = 2 * parts.alpha if p == d else min(2 * parts.alpha, parts.alpha - parts.beta)
        elif parts.beta < 0:
            found = 2 * min(parts.alpha, -parts.beta) if p else -2 * parts.beta
        else:
            inertia = system.inertia
            if not system.definite(-1) or inertia is None or inertia.right != p:
                raise Refuted("modes beside the limit are not proved to decay")
            found = 0.0
        if not 0 <= rate <= found * down:
            raise Refuted(f"the rate {rate:g} is not proved; {found:.6g} is")

    @staticmethod
    def _check_start(
        problem: CertificationProblem, parts: _Splitting, p: int, r: int, flag: float
    ) -> None:
        if flag not in (0.0, 1.0):
            raise Refuted("the number `start` of the claim is neither 0 nor 1")
        if flag == 0.0:
            return
        start = start_of(problem)
        if start.rank != r:
            raise Refuted(f"the claim is about data of rank {r}, the start has rank {start.rank}")
        if p:
            turned = parts.inverse * balls.balls(start.factor)
            first, second = balls.rows(turned, 0, p), balls.rows(turned, p, start.dim)
            seen = first - parts.Theta * second if start.dim > p else first
            if not definite(seen * seen.transpose()):
                raise Refuted("the start is not proved to have a part in every mode of the limit")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say what the limit is, how it is approached, and from where."""
        numbers = claim.numbers
        p, r, rate = int(numbers["limit_rank"]), int(numbers["rank"]), numbers["rate"]
        d, trace = problem.dim, float(np.trace(claim.arrays["limit"]))
        if numbers["start"] == 1.0:
            scope, where = Scope.THIS_START, "From this start"
        elif p == 0:
            scope, where = Scope.EVERY_START, "From every start"
        elif r == d:
            scope, where = Scope.FULL_RANK, "From every start of full rank"
        else:
            part = f"with a part in each of the {p} dominant modes of A"
            scope, where = Scope.SOME_STARTS, f"From every start of rank {r} {part}"
        speed = f"at any exponential rate below {rate:.10g}" if rate > 0 else "without a rate"
        lost = " (rank is lost)" if p < r else ""
        kept = "0"
        if p:
            error = max(numbers["error"], 1e-16 * trace)
            kept = f"a limit of rank {p} and trace {trace:.10g} (entries to {error:.2g}){lost}"
        text = f"{where} the covariance converges, {speed}, to {kept}."
        most = trace + d * numbers["error"] * (1 + 1e-12)
        bound = most if scope is not Scope.SOME_STARTS else np.inf
        return Statement(Verdict.CONVERGES, scope, text, np.inf, np.inf, bound)


def _whole(claim: Claim, name: str, most: int) -> int:
    value = number(claim, name)
    if value not in range(most + 1):
        raise Refuted(f"the number `{name}` of the claim is not a whole number up to {most}")
    return int(value)

"""Norms alone bound how fast a covariance grows: valid for all heads, and cheap in any dimension.

In coordinates X = R S Rᵀ (A -> RAR⁻¹, V -> RVR⁻¹, B -> R⁻ᵀBR⁻¹, Q -> RQRᵀ) the trace y = tr X obeys

    y' = 2 tr(A X) + 2 Σ_h tr(V_h X B_h X) + tr Q <= κ y² + a y + e,

with a twice the largest eigenvalue of the symmetric part of A, as 0 <= X, and e = tr Q.  For κ,
``tr(V X B X) <= ‖V‖ ‖B‖ |X|²`` and |X| <= tr X: κ = 2 Σ_h ‖V_h‖ ‖B_h‖.  Heads whose symmetric
parts nearly have opposite signs count much less.  If sV_s >= -ε and sB_s <= δ for a sign s, write
sV_s = P - ε and sB_s = δ - G with P, G >= 0; then, dropping ``-tr(P X G X) <= 0``,

    tr(V_s X B_s X) <= (δ‖P‖ + ε‖G‖ - εδ) |X|² <= (δ‖V‖ + ε‖B‖ + εδ) |X|²,

and as products of a symmetric and a skew part drop out of the trace, ‖V_a‖ ‖B_a‖ |X|² remains.

By comparison with η' = f(η) = κη² + aη + e: S exists until ∫ dη/f(η) from y₀ at least; y stays
below every c >= y₀ with f(c) <= 0; and if e = 0, a < 0 and κ c + a <= 0, then S -> 0 from every
start with y₀ < c, since f < 0 on (0, c).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np

from ..._check import Array
from ...arithmetic import balls
from ...arithmetic.matrices import Matrix, enclose, symmetric_part
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from ..theory.comparison import Comparison, passage_time
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .wording import rounded_down, rounded_up

__all__ = ["Growth", "NormGrowth", "growth_of"]

#: Precision of the balls, in bits.
BITS = 128

#: Rounding up of products and sums of a few floats.
_UP = 1.0 + 2.0**-40


class Growth(NamedTuple):
    """Coefficients κ, a and e, bounds on y₀ (inf without a start), and with tr S <= stretch y."""

    quadratic: float
    linear: float
    constant: float
    level: float
    stretch: float

    def numbers(self) -> dict[str, float]:
        """Return the coefficients by name."""
        return {"quadratic": self.quadratic, "linear": self.linear, "constant": self.constant}


class NormGrowth(Rule):
    """A bound on the blow-up time from below, or decay of small covariances.

    Claims have the numbers ``quadratic``, ``linear``, ``constant`` and one of: ``lower``, a bound
    on the blow-up time; ``ceiling``, a bound on y from this start, with ``peak``, one on tr S
    (``decays`` = 1 if S -> 0); ``radius``, a bound on y below which every start decays.  The array
    ``signs`` (H, 3) holds s, ε and δ of heads of nearly opposite signs, and zeros for others;
    ``coordinates`` is R, the identity if it is missing.
    """

    name: ClassVar[str] = "norm-growth"
    theorem: ClassVar[str] = "growth bounded by norms: small covariances, short times"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check the coefficients, and what follows from the comparison equation."""
        made = growth_of(problem, claim)
        f = Comparison(*(Fraction(_finite(claim, name)) for name in made.numbers()))
        for name, least in made.numbers().items():
            if not number(claim, name) >= least:
                raise Refuted(f"the coefficient `{name}` is proved from {least:.9g} on only")
        if "radius" in claim.numbers:
            _check_decay(f, Fraction(_finite(claim, "radius")))
            return
        if not made.level < math.inf:
            raise Refuted("the claim is about a start, but the problem has none")
        level = Fraction(made.level)
        if "ceiling" not in claim.numbers:
            earliest, _ = passage_time(f, level)
            if not 0 < _finite(claim, "lower") <= earliest:
                raise Refuted(f"the comparison equation lasts until {earliest:.6g} at best")
            return
        ceiling = Fraction(_finite(claim, "ceiling"))
        if ceiling < level or f(ceiling) > 0:
            raise Refuted("the comparison equation crosses the level `ceiling`")
        with balls.precision(BITS):
            peak = balls.above(balls.ball(made.stretch) * balls.ball(float(ceiling)))
        if not number(claim, "peak") >= peak:
            raise Refuted("the bound `peak` on the trace does not follow from the ceiling")
        if "decays" in claim.numbers:
            _check_decay(f, ceiling)
            if not level < ceiling:
                raise Refuted("the start does not lie below the level `ceiling`")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say what the norms of the parameters exclude."""
        linear, quadratic = number(claim, "linear"), number(claim, "quadratic")
        y = "tr S" if "coordinates" not in claim.arrays else "tr RSRᵀ, R the array `coordinates`,"
        law = (
            f"y = {y} obeys y' <= {rounded_up(quadratic)} y² {'-' if linear < 0 else '+'} "
            f"{rounded_down(-linear) if linear < 0 else rounded_up(linear)} y"
            + (" plus the noise" if number(claim, "constant") > 0 else "")
        )
        if "radius" in claim.numbers:
            text = (
                f"Every covariance with y < {rounded_down(number(claim, 'radius'))} tends to zero: "
                f"{law}."
            )
            return Statement(Verdict.LOCALLY_STABLE, Scope.SOME_STARTS, text)
        if "ceiling" in claim.numbers:
            peak = rounded_up(number(claim, "peak"))
            decays = "decays" in claim.numbers
            verdict = Verdict.CONVERGES if decays else Verdict.BOUNDED
            ending = f"tends to zero, with tr S <= {peak}" if decays else f"keeps tr S <= {peak}"
            text = f"From this start the covariance {ending}: {law}."
            return Statement(verdict, Scope.THIS_START, text, math.inf, math.inf)
        lower = number(claim, "lower")
        text = (
            f"The covariance of this start does not blow up before t = {rounded_down(lower)}: "
            f"{law}."
        )
        return Statement(Verdict.UNDECIDED, Scope.THIS_START, text, lower=lower)


def growth_of(problem: CertificationProblem, claim: Claim) -> Growth:
    """Prove coefficients for a claim's coordinates and signs; its numbers are not looked at.

    Raises
    ------
    Refuted
        If the coordinates are not proved to be regular, or data are missing.
    """
    p, d = problem.parameters, problem.dim
    if len(problem.vertices) != 1:
        raise Refuted("the rule is about constant parameters, not about a family")
    signs = matrix(claim, "signs", len(p.heads), 3)
    with balls.precision(BITS), np.errstate(all="ignore"):
        turned = "coordinates" in claim.arrays
        R = enclose(matrix(claim, "coordinates", d, d) if turned else np.eye(d), quick=True)
        G = R.inverse() if turned else R
        if G is None:
            raise Refuted("the matrix `coordinates` is not proved to be regular")
        outer = R.norm() * G.norm() * _UP if turned else 1.0
        A = R.like(p.A)
        linear = 2.0 * (R @ A @ G if turned else A).top() if np.any(p.A) else 0.0
        parts = [
            _head(R, G, head, outer, tuple(row))
            if row[0]
            else _plain(R, G, head, outer, alone=len(p.heads) == 1)
            for head, row in zip(_pairs(p), signs.tolist(), strict=True)
        ]
        level = constant = 0.0
        if p.noise is not None and np.any(p.noise):
            constant = max(balls.above((R @ R.like(p.noise) @ R.T).trace()), 0.0)
        if problem.start is None:
            level = math.inf
        elif problem.start.rank:
            L = R @ R.like(problem.start.factor)
            columns = [L.part(slice(None), slice(j, j + 1)) for j in range(L.shape[1])]
            level = balls.above(sum(((x.T @ x).entry(0, 0) for x in columns), balls.ball(0.0)))
        stretch = (G.norm() * _UP) ** 2 * _UP if turned else 1.0
    made = Growth(2.0 * _UP * math.fsum(parts), linear, constant, level, stretch)
    if not all(math.isfinite(x) for x in (made.quadratic, made.linear, made.constant)):
        raise Refuted("the norms of the parameters have no finite bounds")
    return made


def _pairs(p: Parameters) -> list[tuple[Array, Array]]:
    return [(V, B) for V, B, _ in p.heads]


def _plain(R: Matrix, G: Matrix, head: tuple[Array, Array], outer: float, *, alone: bool) -> float:
    """‖V‖ ‖B‖ of a head in the coordinates."""
    V, B = head
    if not (np.any(V) and np.any(B)):
        return 0.0
    if outer == 1.0 and alone:  # one head is rarely of low rank
        return _UP * R.like(V).norm() * R.like(B).norm()
    size = G.norm() * _UP if outer != 1.0 else 1.0
    return _UP * R.product_norm(V, G, outer) * G.T.product_norm(B, G, size * size * _UP)


def _head(
    R: Matrix,
    G: Matrix,
    head: tuple[Array, Array],
    outer: float,
    data: tuple[float, float, float],
) -> float:
    """The sharper bound for symmetric parts of nearly opposite signs; data s, ε and δ."""
    sign, below, above = data
    if abs(sign) != 1 or not below >= 0 or not above >= 0:
        raise Refuted("a sign of the claim is neither 1, -1 nor 0, or a margin is negative")
    skew, sizes = 1.0, []
    for table, left, right, s, margin in (
        (head[0], R, G, sign, below),
        (head[1], G.T, G, -sign, above),
    ):
        M = R.like(table)
        if outer != 1.0:
            M = left @ M @ right
        lifted = symmetric_part(M).times(balls.ball(s)) + _multiple(R, margin)
        if not lifted.positive_definite():
            raise Refuted("a head is not proved to have the sign that the claim gives")
        even = outer == 1.0 and np.array_equal(table, table.T)
        skew *= 0.0 if even else (M - M.T).times(balls.ball(0.5)).norm() * _UP
        sizes.append(R.product_norm(table, G, outer) if even else M.norm())
    return _UP * (above * sizes[0] + below * sizes[1] + above * below + skew)


def _multiple(R: Matrix, factor: float) -> Matrix:
    return R.like(factor * np.eye(R.shape[0]))


def _check_decay(f: Comparison, level: Fraction) -> None:
    if f.constant != 0 or not f.linear < 0 or not level > 0:
        raise Refuted("the comparison equation does not decay, for lack of damping or by noise")
    if f.quadratic * level + f.linear > 0:
        raise Refuted("the comparison equation does not decay from every level below the one given")


def _finite(claim: Claim, name: str) -> float:
    value = number(claim, name)
    if math.isinf(value):
        raise Refuted(f"the number `{name}` of the claim is infinite")
    return value

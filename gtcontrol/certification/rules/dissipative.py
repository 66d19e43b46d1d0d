"""Attention that pulls every large covariance back: bounded from every start, for every A.

For W > 0, y = tr(WS) obeys ``y' = 2 tr(WAS) + 2 Σ_h tr(W V_h S B_h S) + tr(W noise)``.  Choose a
nominal head, ``N = W Σ_h s_h V_h`` and ``B = Σ_h c_h B_h``, split each matrix into its symmetric
part and its skew part, ``N = N_s + N_a`` and ``B = -G + B_a``, and suppose N_s > 0 and G > 0.
Products of a symmetric and a skew part drop out of the trace:

    tr(N S B S) = -|X|² + tr(N_a S B_a S),   X = N_s^½ S G^½,   |X|² = tr(N_s S G S).

For c >= 0 the part ``c tr(B_a S B_a S) = -c |S^½ B_a S^½|²`` of the last term helps.  What is
left is at most ``ν β |X|²`` if, as quadratic forms,

    ν N_s + i (N_a - c B_a) > 0   and   β G + i B_a > 0,

and the remaining heads, ``W V_h ⊗ (B_h - s_h B)``, add at most ``Σ_h ν_h β_h |X|²`` if ν_h bounds
``N_s^-½ W V_h N_s^-½`` and β_h bounds ``G^-½ (B_h - s_h B) G^-½`` in the spectral norm.  With
``κ = 1 - νβ - Σ ν_h β_h > 0`` the quadratic part of y' is at most ``-2κ |X|² <= -y²/θ``, where
``θ = tr(N_s^-1 W G^-1 W)/(2κ)`` (Cauchy-Schwarz for ``y = <N_s^-½ W G^-½, X>``).  Hence
``y' <= a y - y²/θ + tr(W noise)`` if ``WA + AᵀW <= a W``.

One head needs νβ < 1 only.  It holds if B is symmetric and V antistable (β = 0), if V has a real
positive spectrum and is diagonalisable (``W = T^-T T^-1``, ν = 0), and in general if the spectrum
of V lies in the sector ``|Im λ| < Re λ/β``.  All conditions but that on θ are linear in the
vertices of a family, so they hold in its hull; that on θ is checked for all pairs.

Heads that act on coordinates of their own are treated apart: see :mod:`.dissipative_blocks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...arithmetic.balls import Ball, ball, precision
from ...arithmetic.matrices import Matrix, block, enclose, symmetric_part
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from ..theory.heads import Head, merge_families
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .wording import rounded_up

__all__ = ["BITS", "Dissipative", "check_attention", "check_bound", "say"]

#: Precision of the balls, in bits.
BITS = 256


class Dissipative(Rule):
    """Bounded from every start by one quadratic inequality on tr(WS)."""

    name: ClassVar[str] = "dissipative"
    theorem: ClassVar[str] = "attention opposite to V, skew parts small: bounded from every start"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check the metric and all constants."""
        with precision(BITS), np.errstate(all="ignore"):
            _check(problem, claim)

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Bounded for every A, with the bound for this one."""
        return say(problem, claim)


def say(problem: CertificationProblem, claim: Claim, where: str = "") -> Statement:
    """Put the inequality and its bound into words.

    Parameters
    ----------
    problem : CertificationProblem
    claim : Claim
    where : str
        What is to be said of W.
    """
    bound, growth = number(claim, "bound"), number(claim, "growth")
    inequality = (
        f"y = tr(WS) obeys y' <= {growth:.6g} y - y²/{number(claim, 'theta'):.6g}"
        + (" plus the noise" if _noisy(problem) else "")
        + f" for every covariance{where}"
    )
    if bound == 0:
        rate = f" like exp({rounded_up(growth)} t)" if growth < 0 else " like 1/t"
        text = f"The covariance tends to zero from every start, at least{rate}: {inequality}."
        return Statement(Verdict.CONVERGES, Scope.EVERY_START, text, np.inf, np.inf, bound=0.0)
    text = (
        f"The covariance stays bounded from every start: {inequality}, so that lim sup tr "
        "S is at "
        f"most {rounded_up(bound)}. With another A it stays bounded, too."
    )
    return Statement(Verdict.BOUNDED, Scope.EVERY_START, text, np.inf, np.inf, bound=bound)


def _noisy(problem: CertificationProblem) -> bool:
    return any(p.noise is not None and bool(np.any(p.noise)) for p in problem.vertices)


def _check(problem: CertificationProblem, claim: Claim) -> None:
    d = problem.dim
    table = matrix(claim, "metric", d, d)
    if not np.array_equal(table, table.T):
        raise Refuted("the metric W is not symmetric")
    W = enclose(table)
    _require(W.positive_definite(), "the metric W is positive definite")
    check_attention(W, merge_families(problem.vertices), claim)
    check_bound(W, problem, claim)


def check_attention(W: Matrix, families: Sequence[tuple[Head, ...]], claim: Claim) -> None:
    """Check that the quadratic part of y' is at most -y²/θ.

    Parameters
    ----------
    W : (d, d) matrix
        Symmetric.
    families : sequence of tuples of Head
        Merged heads of each vertex, of order d.
    claim : Claim
        With the constants of the module and `theta`.
    """
    count = len(families[0])
    if count == 0 or any(len(heads) != count for heads in families):
        raise Refuted("a vertex of the family has no attention, or other heads than the first")
    kappa = _margin(claim, count)
    parts = [_nominal(W, heads, claim) for heads in families]
    theta = _finite(claim, "theta")
    for normal, _ in parts:
        for _, good in parts:
            _check_theta(W, normal, good, kappa, theta)


def _finite(claim: Claim, name: str) -> float:
    """Return a scalar of the claim that is finite."""
    value = number(claim, name)
    if abs(value) == float("inf"):
        raise Refuted(f"the number `{name}` of the claim is infinite")
    return value


def _require(holds: bool, condition: str) -> None:
    if not holds:
        raise Refuted(f"it could not be proved that {condition}")


def _margin(claim: Claim, count: int) -> Ball:
    """Return κ = 1 - νβ - Σ ν_h β_h."""
    nu, beta = _finite(claim, "sector"), _finite(claim, "skewness")
    values, scores = matrix(claim, "value_sizes", count), matrix(claim, "score_sizes", count)
    if min(nu, beta, _finite(claim, "alignment"), *values, *scores) < 0:
        raise Refuted("a constant of the claim is negative")
    kappa = ball(1.0) - ball(nu) * ball(beta)
    for size, other in zip(values, scores, strict=True):
        kappa -= ball(size) * ball(other)
    _require(bool(kappa > 0), "the definite parts outweigh the skew parts and the other heads")
    return kappa


def _nominal(W: Matrix, heads: tuple[Head, ...], claim: Claim) -> tuple[Matrix, Matrix]:
    """Check one vertex; return N_s and G."""
    count = len(heads)
    shares, weights = matrix(claim, "shares", count), matrix(claim, "weights", count)
    values, scores = [h.value() for h in heads], [h.score() for h in heads]
    N = W @ _combine(values, shares)
    B = _combine(scores, weights)
    normal, good = symmetric_part(N), symmetric_part(B).times(ball(-1.0))
    _require(normal.positive_definite(), "WV has a positive definite symmetric part")
    _require(good.positive_definite(), "B has a negative definite symmetric part")
    half, c = ball(0.5), ball(_finite(claim, "alignment"))
    skew = (B - B.T).times(half)
    rest = (N - N.T).times(half) - skew.times(c)
    _require(_dominates(normal, _finite(claim, "sector"), rest), "ν bounds the skew part of WV")
    _require(_dominates(good, _finite(claim, "skewness"), skew), "β bounds the skew part of B")
    for h in range(count):
        other = scores[h] - B.times(ball(shares[h]))
        if other.vanishes or (count == 1 and shares[0] * weights[0] == 1 and abs(shares[0]) == 1):
            continue
        nu, beta = matrix(claim, "value_sizes", count)[h], matrix(claim, "score_sizes", count)[h]
        _require(
            _dominates(normal, nu, W @ values[h]), f"ν bounds the value matrix of head {h + 1}"
        )
        _require(_dominates(good, beta, other), f"β bounds the score matrix of head {h + 1}")
    return normal, good


def _combine(matrices: list[Matrix], weights: NDArray[np.float64]) -> Matrix:
    made: Matrix = matrices[0].times(ball(weights[0]))
    for factor, other in zip(weights[1:], matrices[1:], strict=True):
        made = made + other.times(ball(factor))
    return made


def _dominates(form: Matrix, factor: float, other: Matrix) -> bool:
    """Whether |xᵀ M y| < factor (xᵀ F x + yᵀ F y)/2 for all x, y, where F is the form."""
    if other.vanishes:
        return True
    scaled = form.times(ball(factor))
    return block([[scaled, other], [other.T, scaled]]).positive_definite()


def _check_theta(W: Matrix, normal: Matrix, good: Matrix, kappa: Ball, theta: float) -> None:
    first, second = normal.solve(W), good.solve(W)
    if first is None or second is None:
        raise Refuted("a definite matrix could not be inverted with a bound on the error")
    trace = (first @ second).trace()
    _require(bool(2 * kappa * ball(theta) >= trace), "θ is large enough")


def _check_growth(W: Matrix, p: Parameters, growth: float) -> None:
    product = W @ enclose(p.A)
    slack = W.times(ball(growth)) - (product + product.T)
    _require(slack.vanishes or slack.positive_definite(), "WA + AᵀW <= a W")


def check_bound(W: Matrix, problem: CertificationProblem, claim: Claim) -> None:
    """Check the growth a, and the root of a y - y²/θ + tr(W noise) by λ_min(W) as a bound on tr S.

    Parameters
    ----------
    W : (d, d) matrix
        Symmetric.
    problem : CertificationProblem
    claim : Claim
        With `growth`, `theta`, `floor` and `bound`.
    """
    for p in problem.vertices:
        _check_growth(W, p, _finite(claim, "growth"))
    growth, theta = ball(_finite(claim, "growth")), ball(_finite(claim, "theta"))
    floor, bound = _finite(claim, "floor"), _finite(claim, "bound")
    identity = enclose(np.eye(problem.dim))
    _require(floor > 0 and (W - identity.times(ball(floor))).positive_definite(), "W >= floor I")
    forces = [(W @ enclose(p.noise)).trace() for p in problem.vertices if p.noise is not None]
    if not _noisy(problem):
        root = growth * theta if growth > 0 else ball(0.0)
        _require(bool(ball(bound) * floor >= root), "the bound on tr S")
    for trace in forces if _noisy(problem) else ():
        force = trace.max(ball(0.0))  # rounding may take a trace below zero
        root = (growth + (growth * growth + 4 * force / theta).sqrt()) * theta / 2
        _require(bool(ball(bound) * floor >= root), "the bound on tr S")

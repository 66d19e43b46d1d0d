"""The exact check of a quadratic certificate: an inequality σ (y' - f(y)) >= 0 for y = tr(W S).

With f(y) = κ y² + a y + e, s the entries of S on and above the diagonal, and multipliers
Λ ⪰ 0, Z ⪰ 0,

    σ (y' - f(y)) = [s; 1]ᵀ [ σ (Q(W) - κ w wᵀ) - P(Z)   l ; lᵀ   σ (tr(W Q) - e) ] [s; 1]
                    + ⟨Λ, S⟩ + ⟨Z, ∧²S⟩,       2 lᵀs = ⟨σ (W A + AᵀW - a W) - Λ, S⟩,

so that a positive semidefinite block proves the inequality for every covariance.  Without Λ in a
claim, Λ is what makes l vanish.  For covariances with tr(W_i S) <= g_i, products
(g_i - tr(W_i S)) (⟨M_i, S⟩ + m_i) with M_i ⪰ 0, m_i >= 0 may be split off, too.  All data are
floats, hence dyadic fractions: the block is formed and decided without any rounding, in the basis
E_ii, E_ij + E_ji, in which no root of two occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...arithmetic.dyadic import Dyadic, dyadic, positive_semidefinite
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..theory.comparison import Comparison
from ..theory.pieces import comparable, index_pairs
from .base import Refuted, matrix, number
from .forms import Rate, entries, level_form, scaled, slack_form, total

__all__ = [
    "HalfSpace",
    "check_inequality",
    "comparison_of",
    "finite",
    "level_of",
    "rank_one",
    "weight_of",
]

#: Above this dimension the exact check, which takes minutes, is refused.
LARGEST = 16


def comparison_of(claim: Claim) -> Comparison:
    """Right-hand side of the comparison equation of a claim."""
    names = ("quadratic", "linear", "constant")
    return Comparison(*(finite(claim, name) for name in names))


def weight_of(problem: CertificationProblem, claim: Claim) -> Dyadic:
    """Matrix W of a claim, checked to be symmetric."""
    W = matrix(claim, "W", problem.dim, problem.dim)
    if not np.array_equal(W, W.T):
        raise Refuted("the matrix W of the claim is not symmetric")
    return dyadic(W)


def level_of(problem: CertificationProblem, claim: Claim) -> Fraction:
    """Y at the start, tr(W L Lᵀ), exactly."""
    if problem.start is None:
        raise Refuted("the claim is about a start, but the problem has none")
    L = dyadic(problem.start.factor)
    W = weight_of(problem, claim)
    return Fraction(0) if problem.start.rank == 0 else total((W @ L) * L).fraction()


def rank_one(problem: CertificationProblem, claim: Claim) -> bool:
    """Whether a claim is about covariances of rank one only, which the problem must allow.

    Raises
    ------
    Refuted
        If it is, but the start has another rank, or noise does not conserve the rank.
    """
    if "rank" not in claim.numbers:
        return False
    if number(claim, "rank") != 1:
        raise Refuted("the number `rank` of the claim can only be 1")
    if problem.start is None or problem.start.rank != 1:
        raise Refuted("the claim is about a start of rank one, which the problem has not")
    if any(_noisy(p) for p in problem.vertices):
        raise Refuted("the claim is about covariances of rank one, but noise raises the rank")
    return True


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """Covariances with tr(W S) <= level."""

    W: Dyadic
    level: Fraction


def check_inequality(
    problem: CertificationProblem, claim: Claim, sign: int, within: Sequence[HalfSpace] = ()
) -> None:
    """Prove σ (y' - f(y)) >= 0 along every trajectory of the problem's parameters.

    Parameters
    ----------
    problem : CertificationProblem
    claim : Claim
        Numbers ``quadratic``, ``linear``, ``constant`` and, if about rank one only, ``rank``;
        arrays ``W`` (d, d), ``Z`` (P, q, q) and, unless it is to vanish, ``Lam`` (P, d, d), with
        one entry for each inequality (see `certification.theory.pieces`), q = d(d-1)/2.
    sign : int
        +1 or -1.
    within : sequence of HalfSpace, optional
        As long as the trajectory stays in these K half-spaces; the claim then has the arrays
        ``products`` (P, K, d, d) and ``pushes`` (P, K).

    Raises
    ------
    Refuted
        If the data do not prove it.
    """
    d = problem.dim
    if d > LARGEST:
        raise Refuted(f"the dimension {d} exceeds {LARGEST}, the largest that is checked exactly")
    if not comparable(problem.vertices):
        raise Refuted("the vertices of the family have different numbers of heads")
    wanted = index_pairs(problem.vertices)
    free = rank_one(problem, claim)
    W, f = weight_of(problem, claim), comparison_of(claim)
    q = d * (d - 1) // 2
    slack = matrix(claim, "Z", len(wanted), q, q)
    given = "Lam" in claim.arrays
    multipliers = matrix(claim, "Lam", len(wanted), d, d) if given else None
    confined = [_Confinement.of(claim, within, n, len(wanted), d) for n in range(len(wanted))]
    for n, (k, m) in enumerate(wanted):
        where = "" if len(wanted) == 1 else f" of the vertices {k} and {m}"
        Z = dyadic(slack[n])
        if not free and not positive_semidefinite(Z):
            raise Refuted(f"the slack Z{where} is not positive semidefinite")
        rate = Rate.between(W, problem.vertices[k], problem.vertices[m])
        lean = _lean(rate.drift, W, f, sign) - confined[n].lean
        Lam = lean if multipliers is None else dyadic(multipliers[n])
        if not positive_semidefinite(Lam):
            raise Refuted(f"the multiplier Λ{where} is not positive semidefinite")
        corner = sign * (rate.noise - f.constant) - confined[n].corner
        form = scaled(rate.form, sign) - slack_form(Z, d) - level_form(W, sign * f.quadratic)
        form = form - confined[n].form
        if multipliers is None:
            holds = corner >= 0 and positive_semidefinite(form)
        else:
            holds = _bordered_semidefinite(form, entries(lean - Lam), corner)
        if not holds:
            raise Refuted(f"the block matrix{where} is not positive semidefinite")


@dataclass(frozen=True, eq=False)
class _Confinement:
    """Σ (g_i - tr(W_i S)) (⟨M_i, S⟩ + m_i) = sᵀ form s + ⟨lean, S⟩ + corner."""

    form: Dyadic
    lean: Dyadic
    corner: Fraction

    @classmethod
    def of(
        cls, claim: Claim, within: Sequence[HalfSpace], n: int, count: int, d: int
    ) -> _Confinement:
        """Split-off products of inequality n, whose factors are checked."""
        p, corner = d * (d + 1) // 2, Fraction(0)
        form, lean = dyadic(np.zeros((p, p))), dyadic(np.zeros((d, d)))
        if not within:
            return cls(form, lean, corner)
        products = matrix(claim, "products", count, len(within), d, d)
        pushes = matrix(claim, "pushes", count, len(within))
        for i, half in enumerate(within):
            M, m = dyadic(products[n, i]), Fraction(float(pushes[n, i]))
            if m < 0 or not positive_semidefinite(M):
                raise Refuted("a multiplier of what confines the covariances is negative")
            cross = entries(half.W).outer(entries(M)) * 2
            form = form - cross - cross.T
            lean = lean + scaled(M, half.level) - scaled(half.W, m)
            corner += m * half.level
        return cls(form, lean, corner)


def _lean(drift: Dyadic, W: Dyadic, f: Comparison, sign: int) -> Dyadic:
    """σ (W A + AᵀW - a W)."""
    return scaled(drift - scaled(W, f.linear), sign)


def _bordered_semidefinite(form: Dyadic, side: Dyadic, corner: Fraction) -> bool:
    """Whether [[form, side], [sideᵀ, corner]] is positive semidefinite."""
    p = form.shape[0]
    edge = Dyadic.of(corner)
    low = min(form.exponent, side.exponent, edge.exponent)
    made = np.empty((p + 1, p + 1), dtype=object)
    made[:p, :p] = form.numerators * (1 << (form.exponent - low))
    made[:p, p] = made[p, :p] = side.numerators * (1 << (side.exponent - low))
    made[p, p] = int(edge.numerators.item()) << (edge.exponent - low)
    block = Dyadic(made, low)
    return positive_semidefinite(block)


def _noisy(parameters: Parameters) -> bool:
    return parameters.noise is not None and bool(np.any(parameters.noise != 0))


def finite(claim: Claim, name: str) -> Fraction:
    """A finite number of a claim, exactly."""
    value = number(claim, name)
    if value in (float("inf"), float("-inf")):
        raise Refuted(f"the number `{name}` of the claim is {value}")
    return Fraction(value)

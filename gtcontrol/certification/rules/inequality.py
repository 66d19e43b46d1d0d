"""The exact check of a quadratic certificate: an inequality σ (y' - f(y)) >= 0 for y = tr(W S).

With f(y) = κ y² + a y + e, s the entries of S on and above the diagonal, and multipliers
Λ ⪰ 0, Z ⪰ 0,

    σ (y' - f(y)) = [s; 1]ᵀ [ σ (Q(W) - κ w wᵀ) - P(Z)   l ; lᵀ   σ (tr(W Q) - e) ] [s; 1]
                    + ⟨Λ, S⟩ + ⟨Z, ∧²S⟩,       2 lᵀs = ⟨σ (W A + AᵀW - a W) - Λ, S⟩,

so that a positive semidefinite block proves the inequality for every covariance.  Without Λ in a
claim, Λ is what makes l vanish.  All data are floats, hence dyadic fractions: the block is formed
and decided without any rounding, in the basis E_ii, E_ij + E_ji, in which no root of two occurs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from ...arithmetic.dyadic import Dyadic, dyadic, positive_semidefinite
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..comparison import Comparison
from ..pieces import comparable, index_pairs
from ..quadratic import Indices, heads_of, pairs
from .base import Refuted, matrix, number

__all__ = ["check_inequality", "comparison_of", "level_of", "rank_one", "weight_of"]

#: Above this dimension the exact check, which takes minutes, is refused.
LARGEST = 16


def comparison_of(claim: Claim) -> Comparison:
    """Right-hand side of the comparison equation of a claim."""
    names = ("quadratic", "linear", "constant")
    return Comparison(*(_fraction(claim, name) for name in names))


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
    return Fraction(0) if problem.start.rank == 0 else _sum((W @ L) * L).fraction()


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


def check_inequality(problem: CertificationProblem, claim: Claim, sign: int) -> None:
    """Prove σ (y' - f(y)) >= 0 along every trajectory of the problem's parameters.

    Parameters
    ----------
    problem : CertificationProblem
    claim : Claim
        Numbers ``quadratic``, ``linear``, ``constant`` and, if about rank one only, ``rank``;
        arrays ``W`` (d, d), ``Z`` (P, q, q) and, unless it is to vanish, ``Lam`` (P, d, d), with
        one entry for each inequality (see `certification.pieces`), q = d(d-1)/2.
    sign : int
        +1 or -1.

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
    for n, (k, m) in enumerate(wanted):
        where = "" if len(wanted) == 1 else f" of the vertices {k} and {m}"
        Z = dyadic(slack[n])
        if not free and not positive_semidefinite(Z):
            raise Refuted(f"the slack Z{where} is not positive semidefinite")
        rate = _Rate.between(W, problem.vertices[k], problem.vertices[m])
        lean = _lean(rate.drift, W, f, sign)
        Lam = lean if multipliers is None else dyadic(multipliers[n])
        if not positive_semidefinite(Lam):
            raise Refuted(f"the multiplier Λ{where} is not positive semidefinite")
        corner = sign * (rate.noise - f.constant)
        form = _scaled(rate.form, sign) - _slack_form(Z, d) - _level_form(W, sign * f.quadratic)
        if multipliers is None:
            holds = corner >= 0 and positive_semidefinite(form)
        else:
            holds = _bordered_semidefinite(form, _entries(lean - Lam), corner)
        if not holds:
            raise Refuted(f"the block matrix{where} is not positive semidefinite")


@dataclass(frozen=True, eq=False)
class _Rate:
    """Parts of y' for one vertex, or the mean of a mixed pair: y' = sᵀ form s + ⟨drift, S⟩ + noise.

    `form` is (p, p) in the entries s of S, `drift` (d, d).
    """

    form: Dyadic
    drift: Dyadic
    noise: Fraction

    @classmethod
    def between(cls, W: Dyadic, first: Parameters, second: Parameters) -> _Rate:
        """Rate at a vertex (given twice), or the mean of a mixed pair."""
        half = dyadic(0.5)
        A = (dyadic(first.A) + dyadic(second.A)) * half
        drift = W @ A
        form = _form(W, first, second)
        if first is not second:
            form = (form + _form(W, second, first)) * half
        noise = (_noise(W, first) + _noise(W, second)) / 2
        return cls(form, drift + drift.T, noise)


def _form(W: Dyadic, values: Parameters, scores: Parameters) -> Dyadic:
    """Matrix of 2 Σ_h tr(W V_h S B_h S) in the entries s."""
    V, B = heads_of(values)[0], heads_of(scores)[1]
    d = V.shape[-1]
    kernel = dyadic(np.zeros((d * d, d * d)))
    for v, b in zip(V, B, strict=True):
        N = W @ dyadic(v)
        # tr(N S B S) = Σ N_ab B_cd S_bc S_da, rows (b, c), columns (d, a).
        kernel = kernel + N.outer(dyadic(b)).transposed(1, 2, 3, 0).reshaped(d * d, d * d)
    folded = _fold(kernel, d)
    return folded + folded.T


def _fold(kernel: Dyadic, d: int) -> Dyadic:
    """Dᵀ K D with the duplication matrix D: rows and columns of equal entries are added."""
    first, second = _duplicates(d)
    same = first == second
    rows = kernel.numerators[first] + np.where(same, 0, 1)[:, None] * kernel.numerators[second]
    made = rows[:, first] + np.where(same, 0, 1)[None, :] * rows[:, second]
    return Dyadic(np.asarray(made, dtype=object), kernel.exponent)


@cache
def _duplicates(d: int) -> tuple[Indices, Indices]:
    """Places in S.ravel() of the entries (i, j), i <= j, and of (j, i)."""
    i, j = np.triu_indices(d)
    return np.asarray(i * d + j, dtype=np.intp), np.asarray(j * d + i, dtype=np.intp)


def _slack_form(Z: Dyadic, d: int) -> Dyadic:
    """Matrix of ⟨Z, ∧²S⟩ in the entries s: Σ Z_(ij)(kl) (S_ik S_jl - S_il S_jk)."""
    i, j = pairs(d)
    p = d * (d + 1) // 2
    made = np.zeros((p, p), dtype=object)
    if i.size == 0:
        return Dyadic(made, 0)
    number = np.zeros((d, d), dtype=np.intp)
    rows, columns = np.triu_indices(d)
    number[rows, columns] = number[columns, rows] = np.arange(p)
    I, K = np.meshgrid(i, i, indexing="ij")
    J, M = np.meshgrid(j, j, indexing="ij")
    for sign, u, v in ((1, number[I, K], number[J, M]), (-1, number[I, M], number[J, K])):
        np.add.at(made, (u, v), sign * Z.numerators)
        np.add.at(made, (v, u), sign * Z.numerators)
    return Dyadic(made, Z.exponent) * dyadic(0.5)


def _level_form(W: Dyadic, factor: Fraction) -> Dyadic:
    """Matrix of factor · tr(W S)² in the entries s."""
    w = _entries(W)
    return _scaled(w.outer(w) * 4, factor)


def _entries(matrix: Dyadic) -> Dyadic:
    """Half the coefficients of ⟨M, S⟩ in the entries s: M_ii/2, and M_ij off the diagonal."""
    d = matrix.shape[0]
    i, j = np.triu_indices(d)
    twice = np.where(i == j, 1, 2).astype(object)
    made = Dyadic(np.asarray(matrix.numerators[i, j] * twice, dtype=object), matrix.exponent)
    return made * dyadic(0.5)


def _lean(drift: Dyadic, W: Dyadic, f: Comparison, sign: int) -> Dyadic:
    """σ (W A + AᵀW - a W)."""
    return _scaled(drift - _scaled(W, f.linear), sign)


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


def _scaled(matrix: Dyadic, factor: Fraction | int) -> Dyadic:
    return matrix * Dyadic.of(Fraction(factor))


def _sum(matrix: Dyadic) -> Dyadic:
    return Dyadic(np.asarray(matrix.numerators.sum(), dtype=object), matrix.exponent)


def _noise(W: Dyadic, parameters: Parameters) -> Fraction:
    """tr(W Q)."""
    if parameters.noise is None:
        return Fraction(0)
    return _sum(W * dyadic(parameters.noise)).fraction()


def _noisy(parameters: Parameters) -> bool:
    return parameters.noise is not None and bool(np.any(parameters.noise != 0))


def _fraction(claim: Claim, name: str) -> Fraction:
    value = number(claim, name)
    if value in (float("inf"), float("-inf")):
        raise Refuted(f"the number `{name}` of the claim is {value}")
    return Fraction(value)

"""Blow-up by one eigenvalue of V: a scalar Riccati inequality along a left eigenvector.

Let ``wᵀ V_h = λ_h wᵀ`` for all heads, w complex or real, and suppose that the Hermitian matrix
``H = Σ_h (λ_h B_h + conj(λ_h) B_hᵀ)/2`` is positive definite.  Then ``y = wᵀ S conj(w) >= 0``
obeys, with ``z = S conj(w)``, ``v = conj(w)`` and ``g = conj(Aᵀw)``,

    y' = 2 z*H z + 2 Re g*z + wᵀ noise conj(w),   v*z = y.

The minimum over all z with v*z = y is, with ``ω = v*H^-1 v``, ``γ = v*H^-1 g``, ``k0 = g*H^-1 g``,
``u = y + Re γ/2`` (complete the square),

    u' >= (2/ω)(u² - k²),   k² = (k0 ω - (Im γ)²)/4 - (ω/2) wᵀ noise conj(w).

So a start with u > k blows up no later than ``ω/(4k) ln((u + k)/(u - k))`` (``ω/(2u)`` for k =
0), whatever A is, and if noise makes k² negative every start does, no later than ``ω/(2|k|) (π/2
- arctan(u/|k|))``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...arithmetic.balls import Ball, above, ball, precision, turn
from ...arithmetic.eigenpairs import Eigenpair, exact_left_eigenpair, left_eigenpair
from ...arithmetic.matrices import Matrix, block, enclose
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from ..theory.heads import Head, merge_heads
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .wording import rounded_up

__all__ = ["BITS", "Inequality", "SpectralBlowUp", "SpectralBlowUpData", "inequality"]

#: Precision of the balls, in bits.
BITS = 256


@dataclass(frozen=True)
class Inequality:
    """``u' >= (2/ω)(u² - k²)`` for u = y + shift, all enclosed.

    Attributes
    ----------
    omega, shift, square : balls
        ω, Re γ/2 and k².
    pair : Eigenpair
        The left eigenvector, whose variance is y.
    """

    omega: Ball
    shift: Ball
    square: Ball
    pair: Eigenpair

    def time(self, y: Ball) -> float:
        """Upper bound on the blow-up time of a start with this y, inf if there is none."""
        u = y + self.shift
        if self.square < 0:
            k = (-self.square).sqrt()
            return above(self.omega / (2 * k) * (turn() / 2 - (u / k).atan()))
        k = ball(max(above(self.square), 0.0)).sqrt()
        if not u > k:
            return float("inf")
        if k == 0:
            return above(self.omega / (2 * u))
        return above(self.omega / (4 * k) * ((u + k) / (u - k)).log())

    def threshold(self) -> float:
        """Return a float such that every start with a larger y blows up."""
        k = ball(max(above(self.square), 0.0)).sqrt()
        return max(above(k - self.shift), 0.0)

    def variance(self, factor: NDArray[np.float64]) -> Ball:
        """Enclose y of the covariance L Lᵀ, L of shape (d, r)."""
        L = enclose(factor)
        parts = [L.T @ x for x in (self.pair.p, self.pair.q)]
        return sum(((part.T @ part).entry(0, 0) for part in parts), ball(0.0))


class SpectralBlowUp(Rule):
    """A start, or every start, blows up by the inequality along a left eigenvector of V."""

    name: ClassVar[str] = "spectral-blow-up"
    theorem: ClassVar[str] = "eigenvalue of V with the sign of B: blow-up, T* from above"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check the eigenvector, the definiteness, and the bound on the blow-up time."""
        with precision(BITS), np.errstate(all="ignore"):
            made = inequality(problem, claim)
            every = number(claim, "every_start")
            if every == 1:
                y = ball(0.0)
            elif every == 0 and problem.start is not None and problem.start.rank:
                y = made.variance(problem.start.factor)
            else:
                raise Refuted("the claim is about a start of positive rank, and there is none")
            bound = made.time(y)
        if not number(claim, "bound") >= bound:
            raise Refuted(
                f"the bound {number(claim, 'bound'):.17g} on the blow-up time is not proved; the "
                f"data prove {bound:.17g}"
            )

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say when the covariance is infinite at the latest."""
        bound = number(claim, "bound")
        every = number(claim, "every_start") == 1
        text = (
            f"The covariance{' of every start' if every else ''} is infinite no later than "
            f"t = {rounded_up(bound, 10)}: its variance along {_direction(claim)} obeys a "
            "Riccati inequality "
            "that blows up."
        )
        scope = Scope.EVERY_START if every else Scope.THIS_START
        return Statement(Verdict.BLOWS_UP, scope, text, 0.0, bound)


class SpectralBlowUpData(Rule):
    """For every A there are starts that blow up; those of this A are named."""

    name: ClassVar[str] = "spectral-blow-up-data"
    theorem: ClassVar[str] = "eigenvalue of V with the sign of B: some starts blow up, for every A"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check the eigenvector, the definiteness, the threshold and the example."""
        with precision(BITS), np.errstate(all="ignore"):
            made = inequality(problem, claim)
            scale = number(claim, "example")
            if not made.threshold() <= number(claim, "threshold") < float("inf"):
                raise Refuted("the threshold on the variance along the eigenvector is too low")
            if not 0 < scale < float("inf"):
                raise Refuted("the scale of the example is not positive")
            bound = made.time(scale * made.variance(np.eye(problem.dim)))
        if not number(claim, "bound") >= bound:
            raise Refuted("the bound on the blow-up time of the example is not proved")
        if number(claim, "bound") == float("inf"):
            raise Refuted("the example is not claimed to blow up in a finite time")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Name the starts that blow up, and an example."""
        threshold, scale = number(claim, "threshold"), number(claim, "example")
        bound = number(claim, "bound")
        text = (
            f"Every start with variance y = w*S w above {rounded_up(threshold)} blows up in "
            "finite time, where "
            f"w is {_direction(claim)}, scaled so that its largest entry is 1; for instance the "
            f"covariance {scale:.6g} I does, no later than t = {rounded_up(bound)}. "
            "With every other A there is such a threshold, too."
        )
        if _dichotomy(problem):
            text += (
                " As B is symmetric and definite, V decides: with all eigenvalues on the "
                "other side of "
                "the imaginary axis the covariance would stay bounded from every start, for "
                "every A."
            )
        return Statement(Verdict.BLOW_UP_DATA_EXIST, Scope.SOME_STARTS, text)


def _direction(claim: Claim) -> str:
    """Name the left eigenvector by its eigenvalues."""
    values = claim.arrays.get("values")
    if values is None or values.ndim != 2 or values.shape[1] != 2:
        raise Refuted("the eigenvalues of the claim are missing")
    words = ", ".join(
        f"{a:.6g}" if w == 0 else f"{a:.6g} {'-' if w < 0 else '+'} {abs(w):.6g}i"
        for a, w in values
    )
    if len(values) == 1:
        return f"the left eigenvector of V with eigenvalue {words}"
    return f"the common left eigenvector of the value matrices, with eigenvalues {words}"


def _dichotomy(problem: CertificationProblem) -> bool:
    """Whether there is one head, and its B is symmetric; definite it is then, being in H."""
    heads = merge_heads(problem.parameters)
    return len(heads) == 1 and all(bool(np.array_equal(B, B.T)) for B in heads[0].scores)


def inequality(problem: CertificationProblem, claim: Claim) -> Inequality:
    """Enclose the inequality of a claim, at the precision of the context.

    Raises
    ------
    Refuted
        If there is no such left eigenvector, or H is not proved to be positive definite.
    """
    if len(problem.vertices) != 1:
        raise Refuted("the rule is about constant parameters, not about a family")
    p = problem.parameters
    heads = merge_heads(p)
    if not heads:
        raise Refuted("there is no attention, so the flow is linear and nothing blows up")
    values = matrix(claim, "values", len(heads), 2)
    vector = matrix(claim, "p", p.dim) + 1j * matrix(claim, "q", p.dim)
    pairs = _common_pairs(heads, values, vector)
    form, columns = _problem_of_least_growth(p, heads, pairs)
    if not form.positive_definite():
        raise Refuted("the Hermitian part of λB is not proved to be positive definite")
    solved = form.solve(columns)
    if solved is None:
        raise Refuted("the Hermitian part of λB could not be inverted with a bound on the error")
    gram = columns.T @ solved
    last = gram.shape[0] - 1
    omega, shift, size = gram.entry(0, 0), gram.entry(0, last) / 2, gram.entry(last, last)
    turn = gram.entry(1, last) if last == 2 else ball(0.0)
    square = (size * omega - turn * turn) / 4
    if p.noise is not None:
        Q = enclose(p.noise)
        force = sum((((x.T @ Q) @ x).entry(0, 0) for x in (pairs[0].p, pairs[0].q)), ball(0.0))
        square = square - omega * force / 2
    if not omega > 0:
        raise Refuted("the precision does not suffice for the inequality")
    return Inequality(omega, shift, square, pairs[0])


def _common_pairs(
    heads: tuple[Head, ...], values: NDArray[np.float64], vector: NDArray[Any]
) -> list[Eigenpair]:
    """Eigenpairs of all heads with one vector.

    Either the floats are such pairs exactly, or one head isolates its pair: then a head that
    commutes with it exactly has the same left eigenvector, as wᵀV' is another one of V.
    """
    lams = [complex(a, w) for a, w in values]
    if not np.any(vector == 1.0) or np.max(np.abs(vector)) > 1.0 + 1e-9:
        raise Refuted("the largest entry of the left eigenvector is not 1")
    exact = [
        exact_left_eigenpair(h.values, lam, vector) for h, lam in zip(heads, lams, strict=True)
    ]
    if all(pair is not None for pair in exact):
        return [pair for pair in exact if pair is not None]
    tables = [h.value() for h in heads]
    for i, V in enumerate(tables):
        pair = left_eigenpair(V, lams[i], vector)
        if pair is not None:
            return [_shared(pair, V, U, lam, vector) for U, lam in zip(tables, lams, strict=True)]
    raise Refuted("no left eigenvector of V is isolated near the one given")


def _shared(
    pair: Eigenpair, V: Matrix, other: Matrix, lam: complex, vector: NDArray[Any]
) -> Eigenpair:
    """Pair of another head, or of the same, that has the left eigenvector of V."""
    if other is V:
        return pair
    if not ((V @ other) - (other @ V)).vanishes:
        raise Refuted("the value matrices of the heads have no common left eigenvector")
    k = int(np.flatnonzero(vector == 1.0)[0])
    real, imaginary = ((other.T @ x).entry(k, 0) for x in (pair.p, pair.q))
    if pair.is_real:
        imaginary = ball(0.0)
    size = 1e-9 * (abs(lam) + float(np.max(np.abs(other.middle))))
    if not (abs(real - lam.real) <= size and abs(imaginary - lam.imag) <= size):
        raise Refuted("an eigenvalue of a head is not the one given")
    return Eigenpair(real, imaginary, pair.p, pair.q)


def _problem_of_least_growth(
    p: Parameters, heads: tuple[Head, ...], pairs: list[Eigenpair]
) -> tuple[Matrix, Matrix]:
    """Return H and the columns v, iv, g (v, g for a real pair), complex numbers as two real."""
    A, half = enclose(p.A).T, ball(0.5)
    even, odd = None, None
    for head, pair in zip(heads, pairs, strict=True):
        B = head.score()
        first = (B + B.T).times(half * pair.real)
        second = (B - B.T).times(half * pair.imaginary)
        even = first if even is None else even + first
        odd = second if odd is None else odd + second
    if even is None or odd is None:
        raise Refuted("there is no attention")
    x, y = pairs[0].p, pairs[0].q
    if all(pair.is_real for pair in pairs):
        return even, block([[x, A @ x]])
    minus = ball(-1.0)
    form = block([[even, odd.times(minus)], [odd, even]])
    columns = block([[x, y, A @ x], [y.times(minus), x, (A @ y).times(minus)]])
    return form, columns

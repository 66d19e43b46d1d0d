"""An ultimate bound from every start: y = tr(W S) comes down from infinity.

Let W ≻ 0 and y' <= f(y) = κ y² + a y + e for every covariance, with κ <= 0, e >= 0, not both κ = 0
and a >= 0.  f is concave with f(0) >= 0, so f(γ) <= 0 for a γ > 0 makes f < 0 beyond γ: hence
lim sup y <= γ from every start, y(t) <= max(y(0), γ), and tr S <= β y/γ if β W ⪰ γ I.

The bound may be sharpened by a chain.  If f(γ) < 0, every trajectory enters tr(W S) <= γ in finite
time and stays.  Within this set let y_1 = tr(W_1 S), W_1 any symmetric matrix, obey
y_1' <= a_1 y_1 + e_1 with a_1 < 0: then lim sup y_1 <= -e_1/a_1, and for a level g_1 above that the
trajectory enters y_1 <= g_1 and stays, too; and so on.  In the end Σ c_i y_i <= Σ c_i g_i = G with
c_i >= 0 eventually, and lim sup tr S <= β if β Σ c_i W_i ⪰ G I, G > 0.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ...arithmetic.dyadic import (
    Dyadic,
    dyadic,
    identity,
    positive_definite,
    positive_semidefinite,
)
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .inequality import HalfSpace, check_inequality, comparison_of, finite, level_of, weight_of

__all__ = ["UltimateBound", "dominates", "link_of"]

#: Links of a chain at most.
LONGEST = 8


class UltimateBound(Rule):
    """lim sup tr S <= bound from every start.

    Claims have the numbers ``quadratic``, ``linear``, ``constant`` of f, ``gamma``, ``bound``,
    optionally ``peak`` (a bound on tr S(t) for all t >= 0 from the problem's start) and ``rank``
    (1: only starts of rank one), and the arrays ``W``, ``Lam``, ``Z``.  If there is a chain, also
    the number ``links``; for link k from 1 on, the numbers ``linear<k>``, ``constant<k>``,
    ``level<k>`` and arrays ``W<k>``, ``Lam<k>``, ``Z<k>``, ``products<k>`` and ``pushes<k>`` (see
    `inequality`); and the array ``shares`` (links + 1,) of the c_i.
    """

    name: ClassVar[str] = "ultimate-bound"
    theorem: ClassVar[str] = "quadratic certificate: bounded from every start"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check the inequality for y' exactly, and what follows from it."""
        W, f = weight_of(problem, claim), comparison_of(claim)
        gamma, bound = number(claim, "gamma"), number(claim, "bound")
        if not (0 < gamma < math.inf and 0 < bound < math.inf):
            raise Refuted("the numbers `gamma` and `bound` must be positive and finite")
        if f.quadratic > 0 or f.constant < 0 or (f.quadratic == 0 and f.linear >= 0):
            raise Refuted("the right-hand side of the comparison equation is not dissipative")
        if f(Fraction(gamma)) > 0:
            raise Refuted("the level `gamma` lies below the equilibrium of the comparison equation")
        if not positive_definite(W):
            raise Refuted("the matrix W is not positive definite")
        if "peak" in claim.numbers:
            peak = number(claim, "peak")
            if not bound <= peak < math.inf:
                raise Refuted("the number `peak` is less than the bound")
            if not dominates(W, peak, max(Fraction(gamma), level_of(problem, claim))):
                raise Refuted("the number `peak` does not follow from W and the start")
        check_inequality(problem, claim, sign=-1)
        _check_bound(problem, claim)

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say the bound."""
        single = "rank" in claim.numbers
        bound = number(claim, "bound")
        starts = "every start of rank one" if single else "every start"
        text = f"From {starts}, lim sup tr S <= {bound:.6g}"
        if "peak" in claim.numbers:
            text += f"; from this start tr S(t) <= {number(claim, 'peak'):.6g} at all times"
        return Statement(
            Verdict.BOUNDED,
            Scope.THIS_START if single else Scope.EVERY_START,
            f"{text}{_family(problem)}.",
            lower=math.inf,
            upper=math.inf,
            bound=bound,
        )


def link_of(claim: Claim, k: int) -> Claim:
    """Link k of a chain, as a claim of an inequality of its own."""
    names = ("W", "Lam", "Z", "products", "pushes")
    arrays = {n: claim.arrays[f"{n}{k}"] for n in names if f"{n}{k}" in claim.arrays}
    numbers = {n: number(claim, f"{n}{k}") for n in ("linear", "constant", "level")}
    rank = {"rank": claim.numbers["rank"]} if "rank" in claim.numbers else {}
    return Claim(claim.rule, numbers={**numbers, "quadratic": 0.0, **rank}, arrays=arrays)


def _check_bound(problem: CertificationProblem, claim: Claim) -> None:
    """Check the links of the chain, one after the other, and the bound in the end."""
    gamma = Fraction(number(claim, "gamma"))
    known = [HalfSpace(weight_of(problem, claim), gamma)]
    links = number(claim, "links") if "links" in claim.numbers else 0.0
    if links not in range(LONGEST + 1):
        raise Refuted(f"the number `links` of the claim is {links}, not one of 0 to {LONGEST}")
    if links and not comparison_of(claim)(gamma) < 0:
        raise Refuted("the level `gamma` is not reached in finite time")
    for k in range(1, int(links) + 1):
        link = link_of(claim, k)
        f, level = comparison_of(link), finite(link, "level")
        if not (f.linear < 0 and f(level) < 0):
            raise Refuted(f"the level of link {k} is not reached in finite time")
        check_inequality(problem, link, -1, known)
        known.append(HalfSpace(weight_of(problem, link), level))
    shares = matrix(claim, "shares", len(known)) if links else np.ones(1)
    if np.any(shares < 0):
        raise Refuted("a share of the chain is negative")
    parts = [(half, Fraction(float(c))) for half, c in zip(known, shares, strict=True)]
    total, level = dyadic(np.zeros((problem.dim, problem.dim))), Fraction(0)
    for half, share in parts:
        total, level = total + half.W * Dyadic.of(share), level + share * half.level
    if not (level > 0 and dominates(total, number(claim, "bound"), level)):
        raise Refuted("the bound on the trace does not follow from W and `gamma`")


def dominates(W: Dyadic, factor: float, level: Fraction) -> bool:
    """Whether factor · W ⪰ level · I, so that tr(W S) <= level implies tr S <= factor."""
    scaled = W * dyadic(factor)
    order = W.shape[0]
    return positive_semidefinite(scaled - identity(order) * Dyadic.of(level))


def _family(problem: CertificationProblem) -> str:
    if len(problem.vertices) == 1:
        return ""
    return ", however the parameters vary within the convex hull of the vertices"

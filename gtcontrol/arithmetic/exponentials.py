"""Quadratic forms along a linear flow, ``q(s) = x(s)ᵀ B x(s)`` with ``x' = V x``.

They are sums of exponentials.  The start x0 spans with V a cyclic subspace, on which V is the
companion matrix of the minimal polynomial p of x0, found in exact fractions.  If its roots λ_j
are simple,

    e^{Vs} x0 = Σ_j e^{λ_j s} r_j,   r_j = (p(z)/(z - λ_j))(V) x0 / p'(λ_j),

so that no part of x0 outside the cyclic subspace, which may grow faster, comes in by rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flint import acb, acb_mat, arb, fmpq_mat, fmpq_poly

from .._check import Array
from .balls import Ball
from .fractions import fractions, total

__all__ = ["ExponentialForm", "quadratic_form", "vanishes_on"]

#: Evaluations of the integrand that an integral may take.
EVALUATIONS = 20_000


@dataclass(frozen=True)
class ExponentialForm:
    """``x(s) = Σ_j e^{λ_j s} r_j`` and ``q(s) = Σ_jk Q_jk e^{(λ_j + λ_k) s}``, enclosed.

    Attributes
    ----------
    exponents : list of complex balls
        λ_j, all different.
    modes : list of (d, 1) complex ball matrices
        r_j, none of them zero.
    weights : list of lists of complex balls
        Q_jk = r_jᵀ B r_k.
    """

    exponents: list[Any]
    modes: list[Any]
    weights: list[list[Any]]

    def reversed(self) -> ExponentialForm:
        """Return -q(-s): the form seen by a flow that runs backwards."""
        return ExponentialForm(
            [-x for x in self.exponents], self.modes, [[-x for x in row] for row in self.weights]
        )

    def value(self, s: Any) -> Any:
        """Enclose q at a complex ball."""
        powers = [(x * s).exp() for x in self.exponents]
        made = acb(0)
        for j, row in enumerate(self.weights):
            made += powers[j] * sum((w * e for w, e in zip(row, powers, strict=True)), acb(0))
        return made

    def factor(self, s: Ball) -> list[Ball]:
        """Enclose the entries of x at a real ball."""
        made = acb_mat(self.modes[0].nrows(), 1)
        for exponent, mode in zip(self.exponents, self.modes, strict=True):
            made += mode * (exponent * s).exp()
        return [x.real for x in made.entries()]

    def reciprocal_integral(self, end: float) -> Ball | None:
        """Enclose the integral of 1/q over [0, end]; it is finite only if q has no zero there."""
        made = acb.integral(
            lambda s, _: 1 / self.value(s), 0, acb(end), eval_limit=EVALUATIONS, rel_tol=2.0**-70
        )
        return made.real if made.is_finite() else None

    def positive_on(self, end: float) -> bool:
        """Whether q > 0 is proved on [0, end], by bisection."""
        pending, steps = [(0.0, end)], 0
        while pending:
            a, b = pending.pop()
            steps += 1
            middle = 0.5 * (a + b)
            if self.value(acb(arb(middle, math.nextafter(b - middle, math.inf)))).real > 0:
                continue
            if steps > EVALUATIONS or not a < middle < b:
                return False
            pending += [(a, middle), (middle, b)]
        return True

    def leading(self) -> int | None:
        """Index of a real exponent that is proved to exceed the real parts of all others."""
        for j, x in enumerate(self.exponents):
            others = (y for k, y in enumerate(self.exponents) if k != j)
            if x.imag == 0 and all(x.real > y.real for y in others):
                return j
        return None

    def tail(self, lead: int, cut: float) -> Ball:
        """Enclose ``q(s) e^{-2νs}`` for all s >= cut, where ν is the leading exponent."""
        nu, size = self.exponents[lead].real, arb(0)
        for j, row in enumerate(self.weights):
            for k, weight in enumerate(row):
                if (j, k) != (lead, lead):
                    slower = self.exponents[j].real + self.exponents[k].real - 2 * nu
                    size += abs(weight) * (slower * cut).exp()
        return self.weights[lead][lead].real + arb(0, size.upper())


def quadratic_form(
    values: Sequence[Array], scores: Sequence[Array], start: Array
) -> ExponentialForm | None:
    """Form q of V = Σ values and B = Σ scores along the flow of V from a start.

    Parameters
    ----------
    values, scores : sequences of (d, d) arrays
    start : (d,) array, not zero

    Returns
    -------
    ExponentialForm or None
        None if the minimal polynomial of the start has a multiple root.
    """
    V, B, x = total(values), total(scores), fractions(start)
    chain, relation = _cyclic(V, x)
    p = fmpq_poly([-c for c in relation] + [1])
    if p.gcd(p.derivative()).degree() > 0:
        return None
    found: Any = p.complex_roots()
    exponents = [root for root, _ in found]
    slope = p.derivative()
    columns = acb_mat(_joined(chain))
    modes = [columns * acb_mat(_quotient(p, z)) / _evaluate(slope, z) for z in exponents]
    table = acb_mat(B)
    weights = [[(r.transpose() * table * u)[0, 0] for u in modes] for r in modes]
    return ExponentialForm(exponents, modes, weights)


def _cyclic(V: Any, x: Any) -> tuple[list[Any], list[Any]]:
    """Vectors x, Vx, ... up to the first that depends on those before, and how it does."""
    chain, moved = [x], V * x
    while fmpq_mat(_joined([*chain, moved])).rank() > len(chain):
        chain.append(moved)
        moved = V * moved
    basis = _joined(chain)
    relation = (basis.transpose() * basis).solve(basis.transpose() * moved)
    return chain, list(relation.entries())


def _joined(columns: list[Any]) -> Any:
    return fmpq_mat([[c[i, 0] for c in columns] for i in range(columns[0].nrows())])


def _quotient(p: Any, z: Any) -> list[list[Any]]:
    """Coefficients of p(t)/(t - z), lowest first, as a column (Horner)."""
    degree = p.degree()
    made = [acb(0)] * degree
    carry = acb(0)
    for i in range(degree, 0, -1):
        carry = carry * z + _number(p[i])
        made[i - 1] = carry
    return [[c] for c in made]


def _evaluate(p: Any, z: Any) -> Any:
    made = acb(0)
    for i in range(p.degree(), -1, -1):
        made = made * z + _number(p[i])
    return made


def _number(value: Any) -> Any:
    return acb(arb(value))


def vanishes_on(scores: Sequence[Array], start: Array) -> bool:
    """Whether xᵀBx is exactly zero, B = Σ scores."""
    x = fractions(start)
    return bool((x.transpose() * total(scores) * x)[0, 0] == 0)

"""Rigorous Taylor steps for quadratic differential equations on matrices.

x' = f(x) with f(x) = constant + linear(x) + form(x, x), form bilinear and symmetric.  The exact
Taylor polynomial P of order N at a centre x_0 misses the equation only by the terms t^k, k >= N,
of f(P), whose integral over [0, h] is bounded by the sizes of the coefficients.  The distance e
between P and any solution that starts within e_0 of the centre obeys

    e' <= mu(t) e + c e² + defect(t),

where c bounds the form and mu is a logarithmic norm of Df(P(t)).  Logarithmic norms are
subadditive, and Df(P(t)) is a polynomial in t >= 0, so mu(t) <= Σ t^k mu_k with mu_k that of its
k-th coefficient: the growth of the error over the step needs neither a subdivision nor a box that
encloses the step.  The bound also proves that the solution exists on [0, h].

The centre is a point, and the error one number: nothing wraps, as no ball is ever mapped by
the expansion.  (Gronwall's inequality with logarithmic norms: Hairer, Norsett, Wanner, "Solving
Ordinary Differential Equations I", I.10; the a-posteriori defect replaces the enclosure of Picard.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from flint import arb, arb_mat

from .norms import norm_bound

__all__ = [
    "Expansion",
    "QuadraticFlow",
    "Tube",
    "advance",
    "expand",
    "norm",
    "spectral_norm",
    "step_size",
]

# FLINT has no stubs.
Ball = Any
Balls = Any

#: Coefficients beyond this index are bounded by their size: their part in the growth is tiny.
SHARP_COEFFICIENTS = 6

#: Bits of a step size, so that steps can be stored and added exactly.
STEP_BITS = 24


class QuadraticFlow(Protocol):
    """A quadratic differential equation on matrices, with the bounds that a step needs.

    The norm is that of Frobenius throughout.
    """

    @property
    def linear(self) -> Ball:
        """Bound on the norm of the linear part."""

    @property
    def quadratic(self) -> Ball:
        """Number c with |form(x, y)| <= c |x| |y|."""

    def coefficients(self, centre: Balls, order: int) -> list[Balls]:
        """Taylor coefficients x_0, …, x_order of the solution through a centre."""

    def logarithmic_norm(self, coefficient: Balls, first: bool) -> Ball:
        """Bound on the logarithmic norm of y -> 2 form(x, y), plus the linear part if `first`."""


@dataclass(frozen=True, eq=False)
class Tube:
    """All matrices within `error` of `centre` in the Frobenius norm.

    Parameters
    ----------
    centre : ball matrix of radius zero
    error : ball
    """

    centre: Balls
    error: Ball

    @classmethod
    def around(cls, matrix: Balls) -> Tube:
        """Return the tube that contains all matrices of a ball matrix."""
        return cls(matrix.mid(), norm(matrix - matrix.mid()))

    @property
    def matrix(self) -> Balls:
        """Ball matrix that contains the tube."""
        spread = arb(0, self.error.upper())
        rows, columns = self.centre.nrows(), self.centre.ncols()
        return self.centre + arb_mat([[spread] * columns for _ in range(rows)])


@dataclass(frozen=True, eq=False)
class Expansion:
    """Taylor coefficients at the centre of a tube; `sizes` are their Frobenius norms."""

    tube: Tube
    coefficients: Sequence[Balls]
    sizes: Sequence[Ball]

    @property
    def order(self) -> int:
        """Order of the polynomial."""
        return len(self.coefficients) - 1


def norm(matrix: Balls) -> Ball:
    """Frobenius norm of a ball matrix, a ball."""
    total = sum((x * x for x in matrix.entries()), arb(0))
    return total.nonnegative_part().sqrt()


def expand(flow: QuadraticFlow, tube: Tube, order: int) -> Expansion:
    """Expand the solution through the centre of a tube."""
    coefficients = flow.coefficients(tube.centre, order)
    return Expansion(tube, coefficients, [arb(norm(x).upper()) for x in coefficients])


def step_size(expansion: Expansion, bits: int) -> float:
    """Step whose last two terms are below 2^-bits of the first term that is not zero.

    It is 0 if there is none in the range of floats, and inf if any will do.
    A float of few bits.  (Jorba and Zou, "A software package for the numerical integration of
    ODEs by means of high-order Taylor methods", Experimental Mathematics 14, 2005.)
    """
    sizes, order = expansion.sizes, expansion.order
    j = next((i for i in range(order - 1) if sizes[i] > 0), 0)
    exponent = math.inf
    for k in (order - 1, order):
        if sizes[k] > 0 and sizes[j] > 0:
            ratio = float((sizes[j] / sizes[k]).log()) - bits * math.log(2)
            exponent = min(exponent, ratio / (k - j))
    if exponent > 700.0:
        return math.inf
    fraction, power = math.frexp(math.exp(exponent)) if exponent > -700.0 else (0.0, 0)
    return math.ldexp(math.floor(math.ldexp(fraction, STEP_BITS)), power - STEP_BITS)


def advance(flow: QuadraticFlow, expansion: Expansion, step: float) -> Tube | None:
    """Tube at the end of a step that contains all solutions that start in the tube.

    None if the bounds do not close, so that neither existence nor enclosure is proved.

    Parameters
    ----------
    flow : QuadraticFlow
    expansion : Expansion
    step : float
        Length of the step, meant exactly.
    """
    h, order = arb(step), expansion.order
    powers = [arb(1)]
    for _ in range(order):
        powers.append(powers[-1] * h)
    sizes = [x * p for x, p in zip(expansion.sizes, powers, strict=True)]
    defect = h / (order + 1) * (flow.linear * sizes[-1] + flow.quadratic * _tail(sizes))
    signed, positive = _growth(flow, expansion, powers, sizes, h)
    start = expansion.tube.error
    reach = 2 * (start + defect) * positive.exp()
    feedback = flow.quadratic * reach * h
    if not (feedback.is_finite() and feedback.exp() < 2):
        return None
    error = (start * signed.exp() + defect * positive.exp()) * feedback.exp()
    end = expansion.coefficients[-1]
    for x in reversed(expansion.coefficients[:-1]):
        end = end * h + x
    made = Tube.around(end)
    return Tube(made.centre, arb((made.error + error).upper()))


def _tail(sizes: Sequence[Ball]) -> Ball:
    """Sum of sizes[i] * sizes[j] over i + j >= order: the terms of f(P) beyond its order."""
    total, suffix = arb(0), arb(0)
    for i, size in enumerate(sizes):
        suffix = suffix + sizes[len(sizes) - 1 - i]
        total = total + size * suffix
    return total


def _growth(
    flow: QuadraticFlow,
    expansion: Expansion,
    powers: Sequence[Ball],
    sizes: Sequence[Ball],
    h: Ball,
) -> tuple[Ball, Ball]:
    """Bounds on the integral of the logarithmic norm, and on that of its positive terms."""
    signed, positive = arb(0), arb(0)
    for k, size in enumerate(sizes):
        if k < SHARP_COEFFICIENTS:
            rate = flow.logarithmic_norm(expansion.coefficients[k] * powers[k], k == 0)
        else:
            rate = 2 * flow.quadratic * size
        part = h / (k + 1) * rate
        signed = signed + part
        positive = positive + part.max(arb(0))
    return arb(signed.upper()), arb(positive.upper())


def spectral_norm(matrix: Balls) -> Ball:
    """Upper bound on the spectral norm, as a point."""
    return arb(norm_bound(matrix))

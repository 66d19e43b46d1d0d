"""Rank one without A: the first zero of q along the curve e^{Vs} x0, or the blow-up time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._check import Array
from ...arithmetic.balls import above, ball, below, precision
from ...arithmetic.exponentials import ExponentialForm, vanishes_on
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..rules.base import Refuted
from ..rules.rank_one_quadrature import BITS, LARGEST, enclose_time, form_of, solvable_head

__all__ = ["find"]

#: Cuts are tried in doubling steps of the slowest relaxation, this many times.
DOUBLINGS = 14

#: Samples of q between two cuts.
SAMPLES = 64


def find(problem: CertificationProblem) -> Iterator[Claim]:
    """Propose the fate of a start of rank one, if the quadrature solves the problem."""
    head = solvable_head(problem)
    if head is None or problem.start is None or problem.dim > LARGEST:
        return
    x = problem.start.factor[:, 0]
    with precision(BITS):
        if vanishes_on(head.scores, x):
            yield _limit(0.0, 0.0, np.array(x), 0.0)
            return
        try:
            form = form_of(problem)
        except Refuted:
            return
        claim = _fate(form)
    if claim is not None:
        yield claim


def _fate(form: ExponentialForm) -> Claim | None:
    """Walk along the curve to the first zero of q, or to where its leading term governs."""
    rates = [abs(float(x.real.mid())) + abs(float(x.imag.mid())) for x in form.exponents]
    step = 1.0 / max(*rates, 1e-300)
    low, high = 0.0, step
    for _ in range(DOUBLINGS):
        zero = _bracket(form, low, high)
        if zero is not None:
            return _zero(form, *zero)
        claim = _end(form, high)
        if claim is not None:
            return claim
        low, high = high, 2.0 * high
    return None


def _bracket(form: ExponentialForm, low: float, high: float) -> tuple[float, float] | None:
    """First sign change of q among samples, refined to neighbouring floats."""
    points = np.linspace(low, high, SAMPLES + 1)
    for a, b in zip(points[:-1].tolist(), points[1:].tolist(), strict=True):
        if form.value(ball(b)).real < 0:
            return _bisected(form, a, b)
    return None


def _bisected(form: ExponentialForm, low: float, high: float) -> tuple[float, float]:
    """Neighbouring floats between which q changes sign."""
    while True:
        centre = 0.5 * (low + high)
        if not low < centre < high:
            return low, high
        if form.value(ball(centre)).real < 0:
            high = centre
        else:
            low = centre


def _zero(form: ExponentialForm, low: float, high: float) -> Claim | None:
    """Claim of a limit; the lower end steps back until q is proved to be positive before it."""
    for power in range(-50, -20, 4):
        back = low * (1.0 - 2.0**power)
        if form.positive_on(back):
            return _limit(back, high, *_entries(form.factor(ball(back).union(ball(high)))))
    return None


def _end(form: ExponentialForm, cut: float) -> Claim | None:
    """Claim that q stays positive: a blow-up time, or the limit at the end of the curve."""
    lead = form.leading()
    tail = None if lead is None else form.tail(lead, cut)
    if lead is None or tail is None or not tail > 0:
        return None
    nu = form.exponents[lead].real
    if nu < 0:
        return _limit(cut, math.inf, np.zeros(form.modes[0].nrows()), 0.0)
    if nu == 0:
        return _limit(cut, math.inf, *_entries([x.real for x in form.modes[lead].entries()]))
    # The tail is narrow enough once its relative width is below rounding.
    return _blow_up(form, cut) if tail.rad() < tail.mid() * 2.0**-53 else None


def _blow_up(form: ExponentialForm, cut: float) -> Claim | None:
    try:
        lower, upper = enclose_time(form, cut)
    except Refuted:
        return None
    return Claim("rank-one-blow-up", numbers={"cut": cut, "lower": lower, "upper": upper})


def _entries(entries: list[Any]) -> tuple[Array, float]:
    """Midpoints of balls as floats, and a bound on the error."""
    centre = np.array([0.5 * (below(x) + above(x)) for x in entries])
    errors = [above(abs(x - ball(y))) for x, y in zip(entries, centre.tolist(), strict=True)]
    return centre, max(errors)


def _limit(low: float, high: float, factor: Array, error: float) -> Claim:
    numbers = {"low": low, "high": high, "error": error}
    return Claim("rank-one-limit", numbers=numbers, arrays={"factor": factor})

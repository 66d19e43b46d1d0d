"""Quotients of elementary functions in balls, also where numerator and denominator vanish."""

from __future__ import annotations

from typing import Any

from flint import arb, ctx

__all__ = ["artanh_quotient", "log1p_quotient", "riccati_time"]

# FLINT has no stubs.
Ball = Any

#: Below this size a power series is summed; its remainder is bounded by the geometric series.
SMALL = 0.25


def log1p_quotient(x: Ball) -> Ball:
    """Return log(1 + x)/x, continued by 1 at x = 0; x > -1."""
    if abs(x) < SMALL:
        return _series(-x, 1)
    return x.log1p() / x


def artanh_quotient(x: Ball) -> Ball:
    """Return artanh(√x)/√x for 0 < x < 1, continued to x <= 0 (arctan(√-x)/√-x)."""
    if abs(x) < SMALL:
        return _series(x, 2)
    if x > 0:
        root = x.sqrt()
        return ((1 + root) / (1 - root)).log() / (2 * root)
    root = (-x).sqrt()
    return root.atan() / root


def _series(x: Ball, stride: int) -> Ball:
    """Sum of x^k/(stride k + 1) for |x| < 1/4."""
    total, power = arb(0), arb(1)
    for k in range(ctx.prec // 2 + 10):
        total = total + power / (stride * k + 1)
        power = power * x
    return total + arb(0, (abs(power) * 2).upper())


def riccati_time(quadratic: Ball, linear: Ball, start: Ball) -> Ball | None:
    """Blow-up time of y' = c y² + a y from y(0) > 0: log(1 + a/(c y))/a.

    None unless it is proved that y grows (c > 0, c y + a > 0), so that there is a blow-up.
    """
    if not (quadratic > 0 and start > 0):
        return None
    rate = quadratic * start
    x = linear / rate
    if not x > -1:
        return None
    return log1p_quotient(x) / rate

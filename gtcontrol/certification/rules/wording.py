"""Numbers in statements, rounded to the side on which the statement stays true."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from ..._check import Array

__all__ = ["rounded_down", "rounded_up", "vector"]

#: Significant digits of numbers in sentences.
DIGITS = 6

#: Entries of a vector that are written out.
ENTRIES = 6


def rounded_up(value: float, digits: int = DIGITS) -> str:
    """Write with so many significant digits, not below the value."""
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = DIGITS) -> str:
    """Write with so many significant digits, not above the value."""
    return _rounded(value, digits, ROUND_FLOOR)


def vector(value: Array) -> str:
    """Write a vector, its first entries only if it is long."""
    shown = ", ".join(f"{x:.4g}" for x in value[:ENTRIES].tolist())
    return f"({shown}{', …' if value.size > ENTRIES else ''})"


def _rounded(value: float, digits: int, direction: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    # Decimal(value) is the exact value of the float.
    made = Context(prec=digits, rounding=direction).create_decimal(Decimal(value)).normalize()
    if not made:
        return "0"
    # Without its zeros, 100 is 1e+2 to Decimal.
    return f"{made:f}" if 0 <= made.adjusted() < digits else f"{made:g}"

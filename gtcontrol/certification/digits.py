"""Numbers in statements, rounded to the side on which the statement stays true."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

__all__ = ["rounded_down", "rounded_up"]


def rounded_up(value: float, digits: int = 6) -> str:
    """Write with so many significant digits, not below the value."""
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = 6) -> str:
    """Write with so many significant digits, not above the value."""
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, direction: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    made = Context(prec=digits, rounding=direction).create_decimal(Decimal(value))
    return f"{made.normalize():g}" if made else "0"

"""Numbers in statements, rounded to the side on which the statement stays true."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from ..._check import Array

__all__ = ["at_least", "at_most", "vector"]

#: Digits of numbers in sentences.
DIGITS = 7

#: Entries of a vector that are written out.
ENTRIES = 6


def at_least(value: float) -> str:
    """Write a number rounded up, as a lower limit or an upper bound."""
    return _written(value, ROUND_CEILING)


def at_most(value: float) -> str:
    """Write a number rounded down, as an upper limit or a lower bound."""
    return _written(value, ROUND_FLOOR)


def vector(value: Array) -> str:
    """Write a vector, its first entries only if it is long."""
    shown = ", ".join(f"{x:.4g}" for x in value[:ENTRIES].tolist())
    return f"({shown}{', …' if value.size > ENTRIES else ''})"


def _written(value: float, rounding: str) -> str:
    made = Context(prec=DIGITS, rounding=rounding).create_decimal(Decimal(value))
    return f"{made:.{DIGITS}g}" if made.is_finite() else f"{value}"

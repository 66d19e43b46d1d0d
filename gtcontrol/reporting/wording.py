"""How numbers and lists read in summaries, pictures and pages."""

from __future__ import annotations

import math
import re

import numpy as np

from .._check import Array

__all__ = ["compared", "count", "duration", "error", "matrix", "number", "percent", "relation"]

#: A cost this close to its lower bound, relatively, is called equal to it.
EQUAL = 1e-9

#: A gap above this is told as a multiple.
MANY = 9.0


def number(value: float, digits: int = 6) -> str:
    """Write a number with up to `digits` significant digits, in words if it is not finite."""
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinite"
    return re.sub(r"e([+-])0*(\d)", r"e\1\2", f"{value + 0.0:.{digits}g}").replace("e+", "e")


def error(value: float) -> str:
    """Write an error: two digits say all that an error can say."""
    return number(value, 2)


def percent(share: float) -> str:
    """Write a share as a percentage, without pretending that 99.96 % is all."""
    if not math.isfinite(share):
        return number(share)
    value = 100.0 * share
    if value == 0 or 0.1 <= abs(value) <= 99.95 or abs(value) >= 100:
        return f"{number(value, 3 if abs(value) < 1000 else 4)} %"
    return f"{number(value, 2 if abs(value) < 1 else 4)} %"


def count(many: int, noun: str) -> str:
    """Write a number of things: "1 layer", "20 layers"."""
    return f"{many} {noun}" if many == 1 else f"{many} {noun}s"


def duration(seconds: float) -> str:
    """Write a wall time."""
    if seconds < 0.1:
        return f"{number(1000 * seconds, 2)} ms"
    if seconds < 600:
        return f"{number(seconds, 3)} s"
    return f"{number(seconds / 60, 3)} min"


def matrix(values: Array, digits: int = 4) -> str:
    """Write a small vector or matrix on one line, rows parted by semicolons."""
    if values.ndim > 2:
        return " and ".join(matrix(part, digits) for part in values)
    rows = [", ".join(number(float(x), digits) for x in row) for row in np.atleast_2d(values)]
    return f"[{'; '.join(rows)}]"


def compared(name: str, cost: float, lower_bound: float, gap: float) -> str:
    """Say in one clause what a cost is, and how it stands to a lower bound on it."""
    words = relation(cost, lower_bound, gap)
    link = ": " if words.startswith("no ") else " is "
    return f"{name} {number(cost)}{link}{words}"


def relation(cost: float, lower_bound: float, gap: float) -> str:
    """Say in words how a cost stands to a lower bound on it."""
    if not math.isfinite(cost):
        return "no finite cost is known"
    if not lower_bound > 0 and cost != lower_bound:
        return "no positive lower bound is known"
    if gap == 0:
        return "equal to the lower bound, so it is optimal"
    if abs(gap) <= EQUAL:
        return f"equal to the lower bound to {error(abs(gap))}, so it is optimal"
    if gap > MANY:
        return f"{number(gap + 1, 3)} times the lower bound"
    side = "above" if gap > 0 else "BELOW"
    return f"{percent(abs(gap))} {side} the lower bound"

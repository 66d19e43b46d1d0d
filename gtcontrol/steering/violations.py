"""Which constraints a failed iterate misses most, and what to try."""

from __future__ import annotations

import numpy as np

from .._check import Array
from ..results.steering import Violation
from .instance import Instance

__all__ = ["worst_violations"]

_ADVICE = {
    "initial": "From this start the target is out of reach: lengthen the horizon, loosen bounds.",
    "continuity": "The dynamics are not resolved: raise `intervals`.",
    "dynamics": "The dynamics are not resolved there: raise `intervals`, or loosen the bounds.",
    "terminal range": "The range of the target is out of reach: lengthen the horizon.",
    "terminal covariance": "The covariance falls short: lengthen the horizon or loosen the bounds.",
    "terminal mean": "The mean falls short: lengthen the horizon, or enable b.",
    "norm": "Loosen this bound, or lengthen the horizon.",
    "trace": "Loosen `bounds.trace`.",
    "largest": "Loosen `bounds.largest_eigenvalue`.",
    "entries": "Loosen this bound, or lengthen the horizon.",
}

#: Violations below this size are not worth naming.
SMALLEST = 1e-8


def worst_violations(
    instance: Instance, unknowns: Array, parameters: Array, most: int = 5
) -> tuple[Violation, ...]:
    """The worst violated groups of constraints, in scaled units, largest first."""
    prog = instance.program
    rows = prog.residuals(unknowns, parameters)
    rows = np.where(np.isfinite(rows), rows, np.inf)
    size = np.where(prog.equality, np.abs(rows), np.maximum(rows, 0.0))
    worst: dict[str, tuple[float, int]] = {}
    for value, (name, interval) in zip(size, prog.row_names, strict=True):
        if value > worst.get(name, (SMALLEST, 0))[0]:
            worst[name] = (float(value), interval)
    low, high = instance.variable_bounds()
    excess = np.maximum(np.maximum(unknowns - high, low - unknowns), 0.0)
    if excess.size and excess.max() > SMALLEST:
        k = int(np.argmax(excess)) // instance.form.stage_size
        worst["entries of the controls"] = (float(excess.max()), k)
    found = [
        Violation(name, value, _place(name, k, instance.form.intervals), _advice(name))
        for name, (value, k) in worst.items()
    ]
    return tuple(sorted(found, key=lambda v: -v.size)[:most])


def _place(name: str, interval: int, intervals: int) -> str:
    if name.startswith("initial"):
        return "at the start"
    if name.startswith("terminal"):
        return "at the horizon"
    return f"interval {interval + 1} of {intervals}"


def _advice(name: str) -> str:
    return next(text for key, text in _ADVICE.items() if name.startswith(key))

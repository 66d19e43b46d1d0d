"""What a problem file expects of its result, and whether it came true."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .schema import Near, NearArray, Table

__all__ = ["Expect", "Finding", "compare"]


class Expect(Table):
    """Base of the ``[expect]`` tables.

    The name of a key says how it is compared: ``x_at_most`` and ``x_at_least`` bound the
    observed number x, ``x_contains`` asks for a part of the observed text x, and ``x`` alone
    for equality, of numbers and arrays within their tolerance.
    """


@dataclass(frozen=True)
class Finding:
    """One expectation, and what came."""

    key: str
    expected: str
    came: str
    met: bool

    def __str__(self) -> str:
        return f"{self.key}: expected {self.expected}, came {self.came}"


def compare(expect: Expect, observed: Mapping[str, Any]) -> list[Finding]:
    """Compare what a file expects with what was observed.

    Parameters
    ----------
    expect : Expect
        The keys that are None expect nothing.
    observed : mapping
        Value for each key without its suffix; None where the result has no such value.
    """
    wanted = {key: getattr(expect, key) for key in type(expect).model_fields}
    return [_compare(key, value, observed) for key, value in wanted.items() if value is not None]


def _compare(key: str, wanted: Any, observed: Mapping[str, Any]) -> Finding:
    if key.endswith("_at_most"):
        return _at_most(key, wanted, observed[key.removesuffix("_at_most")])
    if key.endswith("_at_least"):
        return _at_least(key, wanted, observed[key.removesuffix("_at_least")])
    if key.endswith("_contains"):
        return _contains(key, wanted, observed[key.removesuffix("_contains")])
    return _equal(key, wanted, observed[key])


def _at_most(key: str, wanted: float, came: float | None) -> Finding:
    met = came is not None and came <= wanted
    return Finding(key, f"at most {wanted:g}", _show(came), met)


def _at_least(key: str, wanted: float, came: float | None) -> Finding:
    met = came is not None and came >= wanted
    return Finding(key, f"at least {wanted:g}", _show(came), met)


def _contains(key: str, wanted: str, came: str | None) -> Finding:
    return Finding(key, f'a text with "{wanted}"', f'"{came}"', came is not None and wanted in came)


def _equal(key: str, wanted: Any, came: Any) -> Finding:
    if isinstance(wanted, Near):
        allowed = wanted.absolute + wanted.relative * abs(wanted.value)
        text = f"{wanted.value:.10g} within {allowed:.2g}"
        met = came is not None and math.isfinite(came) and abs(came - wanted.value) <= allowed
        return Finding(key, text, _show(came), met)
    if isinstance(wanted, NearArray):
        return _equal_arrays(key, wanted, came)
    return Finding(key, _show(wanted), _show(came), wanted == came)


def _equal_arrays(key: str, wanted: NearArray, came: Any) -> Finding:
    size = float(np.max(np.abs(wanted.value)))
    allowed = wanted.absolute + wanted.relative * size
    expected = f"an array of shape {wanted.value.shape} within {allowed:.2g} in each entry"
    if came is None or came.shape != wanted.value.shape:
        shown = "none" if came is None else f"shape {came.shape}"
        return Finding(key, expected, shown, met=False)
    miss = float(np.max(np.abs(came - wanted.value)))
    return Finding(key, expected, f"a difference of {miss:.3g}", miss <= allowed)


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.10g}"
    return "none" if value is None else str(value)

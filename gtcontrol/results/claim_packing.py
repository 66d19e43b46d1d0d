"""Claims and constant parameters as plain values and arrays, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ResultFileInvalid
from ..parameters import Parameters
from .claims import Claim
from .plain import Arrays, read_array

__all__ = ["pack_claims", "pack_parameters", "unpack_claims", "unpack_parameters"]

_LETTERS = ("A", "B", "V", "b", "noise", "beta")


def pack_claims(name: str, claims: Sequence[Claim]) -> tuple[list[dict[str, Any]], Arrays]:
    """Plain values of claims, and their arrays under the prefix `name`."""
    values = [
        {
            "rule": claim.rule,
            "proved": claim.proved,
            "note": claim.note,
            "numbers": {key: float(value) for key, value in claim.numbers.items()},
            "arrays": sorted(claim.arrays),
        }
        for claim in claims
    ]
    arrays = {
        f"{name}.{i}.{key}": np.asarray(value, dtype=np.float64)
        for i, claim in enumerate(claims)
        for key, value in claim.arrays.items()
    }
    return values, arrays


def unpack_claims(name: str, values: Any, arrays: Arrays) -> tuple[Claim, ...]:
    """Restore claims."""
    if not isinstance(values, list):
        raise ResultFileInvalid(f"`{name}` is no list of claims.")
    return tuple(_claim(f"{name}.{i}", value, arrays) for i, value in enumerate(values))


def _claim(where: str, value: Any, arrays: Arrays) -> Claim:
    if not isinstance(value, dict):
        raise ResultFileInvalid(f"`{where}` is no claim.")
    rule, proved, note = value["rule"], value["proved"], value["note"]
    if not (isinstance(rule, str) and isinstance(proved, bool) and isinstance(note, str)):
        raise ResultFileInvalid(f"`{where}` has a rule, a mark or a note of the wrong type.")
    numbers, names = value["numbers"], value["arrays"]
    if not isinstance(numbers, dict) or not isinstance(names, list):
        raise ResultFileInvalid(f"`{where}` has no numbers or no list of arrays.")
    return Claim(
        rule,
        proved,
        {str(key): _number(f"{where}.{key}", x) for key, x in numbers.items()},
        {str(key): _array(f"{where}.{key}", arrays) for key in names},
        note,
    )


def _number(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ResultFileInvalid(f"`{where}` is {value!r:.40}; expected a number.")
    try:
        return float(value)
    except ValueError:
        raise ResultFileInvalid(f"`{where}` is {value!r:.40}; expected a number.") from None


def _array(name: str, arrays: Arrays) -> Any:
    if name not in arrays:
        raise ResultFileInvalid(f"the array `{name}` is missing.")
    return read_array(arrays, name, *(None for _ in arrays[name].shape))


def pack_parameters(name: str, p: Parameters) -> Arrays:
    """Arrays of constant parameters under the prefix `name`."""
    given = {letter: getattr(p, letter) for letter in _LETTERS}
    return {f"{name}.{letter}": value for letter, value in given.items() if value is not None}


def unpack_parameters(name: str, arrays: Arrays) -> Parameters:
    """Restore constant parameters."""
    for letter in ("A", "B", "V", "b"):
        if f"{name}.{letter}" not in arrays:
            raise ResultFileInvalid(f"the array `{name}.{letter}` is missing.")
    given = {letter: arrays.get(f"{name}.{letter}") for letter in _LETTERS}
    beta = given.pop("beta")
    return Parameters(**given, beta=beta)  # type: ignore[arg-type]

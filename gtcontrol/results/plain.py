"""Plain values of saved results: numbers, words and truth values, with their types checked."""

from __future__ import annotations

import types
import typing
from dataclasses import fields
from typing import Any

import numpy as np

from .._check import Array
from ..errors import ResultFileInvalid
from ..status import Status

__all__ = [
    "Arrays",
    "agree",
    "pack_plain",
    "plain",
    "read_array",
    "read_status",
    "read_times",
    "restore",
]

#: Named arrays of a saved result.
Arrays = dict[str, Array]

_PLAIN = (bool, int, float, str)

#: How JSON, which has no infinity, writes the numbers that are not finite.
_NOT_FINITE = ("inf", "-inf", "nan")


def plain(made: type, values: Any) -> dict[str, Any]:
    """Read the fields of a dataclass that hold plain values.

    Parameters
    ----------
    made : type
        A dataclass; only its fields of type bool, int, float, str (or one of these or None)
        are read.
    values : mapping
        What was saved, by name of the field.

    Raises
    ------
    ResultFileInvalid
        If a value is missing or has another type.
    """
    if not isinstance(values, dict):
        raise ResultFileInvalid(f"the values of {made.__name__} are missing.")
    hints = typing.get_type_hints(made)
    found = {}
    for field in fields(made):
        options = _options(hints[field.name])
        if options:
            if field.name not in values:
                raise ResultFileInvalid(f"`{field.name}` of {made.__name__} is missing.")
            found[field.name] = _typed(field.name, values[field.name], options)
    return found


def pack_plain(value: Any) -> dict[str, Any]:
    """Fields of a dataclass that hold plain values, by name."""
    hints = typing.get_type_hints(type(value))
    names = [field.name for field in fields(value) if _options(hints[field.name])]
    return {name: getattr(value, name) for name in names}


def restore(made: type, values: Any) -> Any:
    """Restore a dataclass of plain values only."""
    return made(**plain(made, values))


def read_array(arrays: Arrays, name: str, *shape: int | None) -> Array:
    """Return a saved array, checked to be finite, of float64 and of the shape given.

    Parameters
    ----------
    arrays : mapping
        What was saved, by name.
    name : str
        Name of the array.
    *shape : int or None
        Its shape; None stands for any size.

    Raises
    ------
    ResultFileInvalid
        If it is missing, of another shape or type, or holds nan or infinity.
    """
    if name not in arrays:
        raise ResultFileInvalid(f"the array `{name}` is missing.")
    value = arrays[name]
    fits = value.ndim == len(shape) and all(
        wanted is None or size == wanted for size, wanted in zip(value.shape, shape, strict=True)
    )
    if value.dtype != float or not fits:
        raise ResultFileInvalid(
            f"the array `{name}` has shape {value.shape} and type {value.dtype}; expected "
            f"{tuple('any' if n is None else n for n in shape)} and float64."
        )
    finite = np.isfinite(value)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ResultFileInvalid(
            f"the array `{name}` holds {value[where]} at index {where}; expected finite numbers."
        )
    return value


def read_times(arrays: Arrays, name: str, horizon: float) -> Array:
    """Return saved times, checked to increase within [0, horizon], at least one of them."""
    times = read_array(arrays, name, None)
    if not times.size:
        raise ResultFileInvalid(f"the array `{name}` is empty; expected at least one time.")
    if not np.all(np.diff(times) > 0):
        raise ResultFileInvalid(f"the times in `{name}` do not increase.")
    if times[0] < 0 or times[-1] > horizon * (1 + 1e-12):
        raise ResultFileInvalid(
            f"the times in `{name}` go from {times[0]:g} to {times[-1]:g}, beyond the horizon "
            f"{horizon:g}."
        )
    return times


def read_status(values: dict[str, Any]) -> Status:
    """Return the saved ending of a computation."""
    name = values["status"]
    if not isinstance(name, str) or name not in Status.__members__:
        raise ResultFileInvalid(
            f"`status` is {name!r:.40}; expected one of {', '.join(Status.__members__)}."
        )
    return Status[name]


def agree(name: str, size: object, wanted: int) -> None:
    """Refuse parts of a result that have different dimensions or ranks."""
    if type(size) is not int or size != wanted:
        raise ResultFileInvalid(f"{name} is {size}; expected {wanted}, as in the rest.")


def _options(hint: Any) -> tuple[type, ...]:
    """Plain types that a field may have, or () if it holds something else."""
    if typing.get_origin(hint) is typing.Literal:
        return (str,)
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return options if all(o in _PLAIN or o is types.NoneType for o in options) else ()


def _typed(name: str, value: Any, options: tuple[type, ...]) -> Any:
    if float in options:
        if value in _NOT_FINITE or (isinstance(value, int) and not isinstance(value, bool)):
            return float(value)
    elif isinstance(value, bool) and bool not in options:
        raise ResultFileInvalid(f"`{name}` is a truth value; a number or text was expected.")
    if not isinstance(value, options):
        wanted = " or ".join(o.__name__ for o in options)
        raise ResultFileInvalid(f"`{name}` is {value!r:.40}; expected {wanted}.")
    return value

"""The strict schema of problem files: the values and tables that all kinds share.

Unknown keys, wrong types, nan and infinity are refused.  The ``description`` of each field
says what is expected there, and is what an error message prints; see
:mod:`gtcontrol.problem.explain`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator
from pydantic_core import PydanticCustomError

from .._check import Array
from .messages import describe

__all__ = [
    "Approximate",
    "ApproximateArray",
    "Arrays",
    "AtLeastOne",
    "Count",
    "Document",
    "Flag",
    "Matrix",
    "NonNegative",
    "Number",
    "Positive",
    "Table",
    "Text",
    "Vector",
    "Vectors",
    "Whole",
]

#: Largest whole number that a file may hold: beyond it float64 no longer counts by ones.
LARGEST_INTEGER = 2**53

#: Relative tolerance of an expected value that does not state its own.
TOLERANCE = 1e-6

_SHAPES = {
    1: "an array of numbers",
    2: "an array of rows of numbers",
    3: "one such matrix for each head",
}


class Table(BaseModel):
    """One table of a problem file."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
    )


# -- numbers, flags and strings ---------------------------------------------------------

Number = Annotated[float, Field(description="a finite number")]
Positive = Annotated[float, Field(gt=0, description="a number greater than 0")]
NonNegative = Annotated[float, Field(ge=0, description="a number that is at least 0")]
AtLeastOne = Annotated[float, Field(ge=1, description="a number that is at least 1")]
Whole = Annotated[
    int, Field(ge=0, le=LARGEST_INTEGER, description="a whole number that is at least 0")
]
Count = Annotated[
    int, Field(ge=1, le=LARGEST_INTEGER, description="a whole number that is at least 1")
]
Flag = Annotated[bool, Field(description="true or false")]
Text = Annotated[str, Field(description="a string")]


# -- arrays ----------------------------------------------------------------------------


def _misfit(at: str, came: str, expected: str = "") -> PydanticCustomError:
    # The message is made from these by `explain`.
    return PydanticCustomError("misfit", "", {"at": at, "came": came, "expected": expected})


def _nested(value: Any, dimensions: tuple[int, ...]) -> Array:
    """Turn nested lists of numbers into an array; the first entry that is none is named."""
    shape: list[int] = []
    level = value
    while isinstance(level, list) and len(shape) <= max(dimensions):
        if not level:
            raise _misfit("[0]" * len(shape), "an empty array")
        shape.append(len(level))
        level = level[0]
    if len(shape) not in dimensions:
        raise _misfit("", f"nested {len(shape)} deep" if shape else describe(value))
    _check_entries(value, shape, "")
    return np.array(value, dtype=np.float64)


def _check_entries(part: Any, shape: list[int], at: str) -> None:
    if shape:
        if not isinstance(part, list):
            raise _misfit(at, describe(part), f"an array of {shape[0]} entries")
        if len(part) != shape[0]:
            raise _misfit(at, describe(part), f"{shape[0]} entries, as in the first row")
        for i, item in enumerate(part):
            _check_entries(item, shape[1:], f"{at}[{i}]")
    elif not _is_number(part):
        raise _misfit(at, describe(part), "a finite number")


def _is_number(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return -LARGEST_INTEGER <= value <= LARGEST_INTEGER
    return isinstance(value, float) and math.isfinite(value)


def _array(*dimensions: int) -> tuple[PlainValidator, Any]:
    expected = ", or ".join(_SHAPES[n] for n in dimensions)
    validator = PlainValidator(lambda value: _nested(value, dimensions))
    return validator, Field(description=expected)


_vector, _vector_field = _array(1)
_matrix, _matrix_field = _array(2)
_vectors, _vectors_field = _array(1, 2)
_arrays, _arrays_field = _array(2, 3)

Vector = Annotated[Array, _vector, _vector_field]
Matrix = Annotated[Array, _matrix, _matrix_field]
#: One vector, or one for each head.
Vectors = Annotated[Array, _vectors, _vectors_field]
#: One matrix, or one for each head.
Arrays = Annotated[Array, _arrays, _arrays_field]


# -- expected values -------------------------------------------------------------------


def _with_value(given: Any) -> Any:
    return given if isinstance(given, dict) else {"value": given}


class Near(Table):
    """An expected number: ``3.5``, or ``{value = 3.5, relative = 1e-3, absolute = 0.1}``.

    What comes may differ by at most ``absolute + relative * |value|``.
    """

    value: Number
    relative: NonNegative = TOLERANCE
    absolute: NonNegative = 0.0


class NearArray(Table):
    """An expected array; the largest entry of the difference is held against the tolerance.

    What comes may differ by at most ``absolute + relative * max|value|`` in any entry.
    """

    value: Annotated[Array, _array(1, 2)[0], _vectors_field]
    relative: NonNegative = TOLERANCE
    absolute: NonNegative = 0.0


_NEAR = "a number, or a table {value = ..., relative = ..., absolute = ...}"
Approximate = Annotated[Near, BeforeValidator(_with_value), Field(description=_NEAR)]
ApproximateArray = Annotated[
    NearArray, BeforeValidator(_with_value), Field(description=_NEAR.replace("number", "array"))
]


class Document(Table):
    """What every problem file holds; each kind adds its own tables."""

    kind: Annotated[str, Field(description="the kind of the problem, a string")]
    title: Text = ""
    description: Text = ""

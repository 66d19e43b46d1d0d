"""Coerce and check arguments once, at the boundary, naming the argument."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidNumber, InvalidShape, NotFinite, NotSymmetric

Array = NDArray[np.float64]

#: Largest |M - Mᵀ| accepted in a symmetric matrix, relative to its largest entry.
SYMMETRY_TOLERANCE = 1e-8


def array(name: str, value: ArrayLike, ndim: int | tuple[int, ...]) -> Array:
    """Return `value` as a new read-only float64 array, checked to be real and finite."""
    try:
        raw = np.asarray(value)
    except (TypeError, ValueError):
        raise InvalidShape(f"`{name}` must be a rectangular array: its rows differ.") from None
    if raw.dtype.kind not in "biuf":
        raise InvalidShape(
            f"`{name}` must be a rectangular array of real numbers, not {_entries(value, raw)}."
        )
    result = np.array(raw, dtype=np.float64)
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    if result.ndim not in allowed:
        wanted = " or ".join(str(n) for n in allowed)
        raise InvalidShape(
            f"`{name}` must have {wanted} dimension(s); it has {result.ndim} "
            f"(shape {result.shape})."
        )
    finite = np.isfinite(result)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise NotFinite(
            f"`{name}` holds {result[where]} at index {where}; every entry must be finite."
        )
    result.setflags(write=False)
    return result


def vector(name: str, value: ArrayLike, dim: int | None = None) -> Array:
    """Return `value` as a finite vector, of length `dim` when given."""
    result = array(name, value, 1)
    if dim is not None and result.shape != (dim,):
        raise InvalidShape(f"`{name}` must have shape ({dim},); it has {result.shape}.")
    return result


def square(name: str, value: ArrayLike, dim: int | None = None) -> Array:
    """Return `value` as a finite square matrix, of order `dim` when given."""
    result = array(name, value, 2)
    n = result.shape[0] if dim is None else dim
    if result.shape != (n, n):
        raise InvalidShape(f"`{name}` must have shape ({n}, {n}); it has {result.shape}.")
    return result


def symmetric(name: str, value: ArrayLike, dim: int | None = None) -> Array:
    """Return `value` as a symmetric matrix, its rounding-level asymmetry removed."""
    result = square(name, value, dim)
    scale = float(np.max(np.abs(result), initial=0.0))
    scaled = result / scale if scale > 0 else result
    defect = float(np.max(np.abs(scaled - scaled.T), initial=0.0))
    if defect > SYMMETRY_TOLERANCE:
        raise NotSymmetric(
            f"`{name}` must be symmetric; |M - Mᵀ| is {defect:.3g} of its largest entry "
            f"(allowed: {SYMMETRY_TOLERANCE:g}). Pass (M + Mᵀ)/2 if that is what you mean."
        )
    result = 0.5 * result + 0.5 * result.T
    result.setflags(write=False)
    return result


def number(name: str, value: object, *, low: float = -math.inf, strict: bool = False) -> float:
    """Return `value` as a finite float, at least `low` (greater than `low` if `strict`)."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InvalidNumber(f"`{name}` must be a number, not {_kind(value)}.")
    result = float(value)
    if not math.isfinite(result):
        raise InvalidNumber(f"`{name}` must be finite; it is {result}.")
    if result < low or (strict and result == low):
        relation = "greater than" if strict else "at least"
        raise InvalidNumber(f"`{name}` must be {relation} {low:g}; it is {result:g}.")
    return result


def integer(name: str, value: object, *, low: int) -> int:
    """Return `value` as an int, at least `low`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidNumber(f"`{name}` must be a whole number, not {_kind(value)}.")
    if value < low:
        raise InvalidNumber(f"`{name}` must be at least {low}; it is {int(value)}.")
    return int(value)


def boolean(name: str, value: object) -> bool:
    """Return `value` as a bool, which it must be."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidNumber(f"`{name}` must be True or False, not {_kind(value)}.")
    return bool(value)


def _entries(value: Any, raw: NDArray[Any]) -> str:
    """What an array that is refused holds, in words."""
    if raw.ndim == 0:
        return _kind(value)
    if raw.dtype.kind == "c":
        return "of complex ones"
    entries = np.asarray(value, dtype=object).ravel().tolist()
    odd = [x for x in entries if not isinstance(x, int | float)]
    return f"with the entry {_kind(odd[0])}" if odd else f"of type {raw.dtype}"


def _kind(value: Any) -> str:
    text = type(value).__name__
    return f"{text} {value!r}" if isinstance(value, str | bool) and len(str(value)) < 40 else text

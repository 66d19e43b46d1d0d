"""Measurements that a problem file points to: a CSV, NPY or NPZ file."""

from __future__ import annotations

import csv
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .._check import Array
from ..errors import GtcontrolError
from . import memory
from .measurements import Measurements
from .messages import describe, fail, listed, located, one_line

__all__ = ["read_measurements"]

#: Arrays that an NPZ file may hold.
_MEMBERS = ("times", "values", "states", "forcing")

#: Numbers in memory per byte of a file, at most: two characters make a number.
_PER_BYTE = 1.0


def read_measurements(where: str, path: Path, horizon: float | None) -> Measurements:
    """Read measurements.

    A CSV file (with or without a header) or an NPY file holds one row for each interval: its
    start, and the values measured on it; the last interval ends at `horizon`.  An NPZ file
    holds `times` (T + 1,) and `values` (T, p), perhaps `states` (T + 1, d) and `forcing` (T, d),
    and no horizon is needed.

    Parameters
    ----------
    where : str
        Key of the problem file, for messages.
    path : Path
    horizon : float or None
    """
    shown = one_line(str(path))
    try:
        if not path.is_file():
            fail(where, f"is {shown}, which is no file.")
        memory.require(f"`{where}`: {shown}", 3 * _PER_BYTE * path.stat().st_size)
        if path.suffix.lower() == ".npz":
            return _archive(where, path, horizon)
        if path.suffix.lower() == ".npy":
            rows = np.asarray(np.load(path, allow_pickle=False))
        elif path.suffix.lower() == ".csv":
            rows = _table(where, path)
        else:
            fail(where, f"is {shown}; expected a file that ends in .csv, .npy or .npz.")
    except OSError as error:
        fail(where, f"cannot be read: {error.strerror or error} ({shown}).")
    except GtcontrolError:
        raise
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, csv.Error) as error:
        _damaged(where, shown, error)
    return _joined(where, rows, horizon)


def _damaged(where: str, shown: str, error: Exception) -> NoReturn:
    fail(where, f"is {shown}, which is damaged: {one_line(str(error))}.")


def _archive(where: str, path: Path, horizon: float | None) -> Measurements:
    if horizon is not None:
        fail("measurements.horizon", "does not go with an NPZ file, whose `times` end there.")
    with np.load(path, allow_pickle=False) as stored:
        for name in stored.files:
            if name not in _MEMBERS:
                fail(
                    where,
                    f"holds an unknown array `{one_line(name)}`; valid: {listed(_MEMBERS)}.",
                )
        for name in _MEMBERS[:2]:
            if name not in stored.files:
                fail(where, f"must hold the array `{name}`.")
        arrays: dict[str, Any] = {name: stored[name] for name in stored.files}
    with located(f"`{where}`"):
        return Measurements(**arrays)


def _table(where: str, path: Path) -> Array:
    """Rows of a CSV file as numbers; a first row that is no numbers is a header."""
    rows: list[list[float]] = []
    with path.open(encoding="utf-8", newline="") as stream:
        for line, cells in enumerate(csv.reader(stream), 1):
            if not any(cell.strip() for cell in cells):
                continue
            numbers = [_number(cell) for cell in cells]
            if None in numbers:
                _require_commas(where, line, cells)
                if line == 1:
                    continue
                bad = numbers.index(None)
                fail(
                    where,
                    f"line {line}, column {bad + 1}: expected a number, came "
                    f"{describe(cells[bad].strip())}.",
                )
            if rows and len(cells) != len(rows[0]):
                fail(where, f"line {line} has {len(cells)} columns; the first has {len(rows[0])}.")
            rows.append([x for x in numbers if x is not None])
    if not rows:
        fail(where, "holds no measurements.")
    return np.array(rows)


def _require_commas(where: str, line: int, cells: list[str]) -> None:
    """Refuse a line of numbers with another separator than the comma."""
    for sign, name in ((";", "semicolons"), ("\t", "tabs"), (" ", "blanks")):
        parts = ",".join(cells).split(None if sign == " " else sign)
        if len(parts) > 1 and all(_number(part.replace(",", ".")) is not None for part in parts):
            fail(where, f"line {line} separates its numbers by {name}; expected commas.")


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _joined(where: str, rows: Array, horizon: float | None) -> Measurements:
    """Make measurements of rows (start of the interval, values)."""
    if rows.ndim != 2 or rows.shape[1] < 2 or rows.dtype.kind not in "biuf":
        fail(
            where,
            f"holds an array of shape {rows.shape} and type {rows.dtype}; expected rows of "
            "numbers: the start of an interval, and the values measured on it.",
        )
    if horizon is None:
        fail("measurements.horizon", "is missing; it ends the last interval of the file.")
    times = np.append(rows[:, 0], horizon)
    if math.isfinite(times[-2]) and times[-1] <= times[-2]:
        fail(
            "measurements.horizon",
            f"is {horizon:g}, but the last interval of the file begins at {times[-2]:g}.",
        )
    with located(f"`{where}`"):
        return Measurements(times, rows[:, 1:])

"""Schedules as arrays, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BarycentricInterpolator

from .._check import Array
from ..errors import ResultFileInvalid
from ..parameters import Parameters
from ..schedule import Law, Piece, Schedule
from .plain import Arrays, read_array

__all__ = ["pack_schedule", "unpack_schedule"]

#: Chebyshev points per part of a smooth law.
POINTS = 17

#: A part is halved while its interpolant misses the law by more than this, relatively ...
RESOLUTION = 1e-12

#: ... but at most this many times.
HALVINGS = 6

_LETTERS = ("A", "B", "V", "b")
_OPTIONAL = ("noise", "beta")


def _chebyshev(points: int) -> Array:
    """Chebyshev points of the second kind on [0, 1], ends included."""
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * np.arange(points) / (points - 1)))


_THETA = _chebyshev(POINTS)
_BETWEEN = 0.5 * (_THETA[1:] + _THETA[:-1])
_TO_BETWEEN = np.asarray(BarycentricInterpolator(_THETA, np.eye(POINTS), axis=0)(_BETWEEN))


def pack_schedule(name: str, schedule: Schedule) -> Arrays:
    """Arrays of a schedule: exact if piecewise constant, else sampled at Chebyshev points.

    A piece is halved until its interpolant is exact to rounding, so smooth laws are kept to
    about 1e-12; where a law jumps without a breakpoint, up to 1/64 of its piece is smoothed.
    """
    parts = [part for piece in schedule.pieces(inner=True) for part in _parts(piece)]
    samples = [p for part in parts for p in part.samples]
    points = len(parts[0].samples)
    arrays = {f"{name}.times": np.array([part.start for part in parts] + [schedule.horizon])}
    for letter, stacked in _stack(samples).items():
        arrays[f"{name}.{letter}"] = stacked.reshape(-1, points, *stacked.shape[1:])
    if schedule.basis is not None:
        arrays[f"{name}.basis"] = schedule.basis
    return arrays


def unpack_schedule(name: str, arrays: Arrays) -> Schedule:
    """Restore a schedule from arrays."""
    times = read_array(arrays, f"{name}.times", None)
    count = times.size - 1
    b = read_array(arrays, f"{name}.b", count, None, None)
    points, d = b.shape[1:]
    if not points:
        raise ResultFileInvalid(f"the array `{name}.b` holds no samples.")
    lead = _lead(arrays, f"{name}.V", count, points, d)
    fields = {"b": b, "A": read_array(arrays, f"{name}.A", count, points, d, d)}
    for letter in ("B", "V"):
        fields[letter] = read_array(arrays, f"{name}.{letter}", count, points, *lead, d, d)
    if f"{name}.noise" in arrays:
        fields["noise"] = read_array(arrays, f"{name}.noise", count, points, d, d)
    if f"{name}.beta" in arrays:
        fields["beta"] = read_array(arrays, f"{name}.beta", count, points, *lead, d)
    basis = read_array(arrays, f"{name}.basis", None, d) if f"{name}.basis" in arrays else None
    pieces = [{key: value[i] for key, value in fields.items()} for i in range(count)]
    if points == 1:
        constant = [Parameters(**{key: value[0] for key, value in p.items()}) for p in pieces]
        return Schedule(times, constant, basis=basis)
    laws = [_interpolated(times[i], times[i + 1], piece) for i, piece in enumerate(pieces)]
    return Schedule.from_pieces(times, laws, d, basis=basis)


@dataclass(frozen=True)
class _Part:
    """Samples of a law on [start, end], at the start only if it is constant."""

    start: float
    samples: list[Parameters]


def _parts(piece: Piece) -> Iterator[_Part]:
    if piece.constant:
        yield _Part(piece.start, [piece.law(piece.start)])
        return
    waiting = [(piece.start, piece.end, HALVINGS)]
    while waiting:
        start, end, halvings = waiting.pop()
        samples = [piece.law(t) for t in _nodes(start, end, _THETA)]
        middle = 0.5 * (start + end)
        if halvings and start < middle < end and not _resolved(piece.law, start, end, samples):
            waiting += [(middle, end, halvings - 1), (start, middle, halvings - 1)]
        else:
            yield _Part(start, samples)


def _nodes(start: float, end: float, theta: Array) -> list[float]:
    # Rounding must not leave the closed interval on which the law is valid.
    return [min(start + float(x) * (end - start), end) for x in theta]


def _resolved(law: Law, start: float, end: float, samples: list[Parameters]) -> bool:
    between = [law(t) for t in _nodes(start, end, _BETWEEN)]
    for values in _stack(samples + between).values():
        known, checked = values[:POINTS], values[POINTS:]
        guess = np.tensordot(_TO_BETWEEN, known, axes=1)
        if np.max(np.abs(guess - checked)) > RESOLUTION * np.max(np.abs(values)):
            return False
    return True


def _stack(samples: Sequence[Parameters]) -> Arrays:
    """Stack parameters by letter; missing heads, noise and biases are zero."""
    heads = max(len(p.heads) for p in samples)
    single = all(p.V.ndim == 2 for p in samples)
    stacked = {letter: [getattr(p, letter) for p in samples] for letter in _LETTERS}
    if not single:
        for letter in ("B", "V"):
            stacked[letter] = [_pad_heads(x, 3, heads) for x in stacked[letter]]
    for letter in _OPTIONAL:
        values = [getattr(p, letter) for p in samples]
        known = [x for x in values if x is not None]
        if known:
            values = [
                np.zeros(_missing(p, letter)) if x is None else x
                for p, x in zip(samples, values, strict=True)
            ]
            if letter == "beta" and not single:
                values = [_pad_heads(x, 2, heads) for x in values]
            stacked[letter] = values
    return {letter: np.stack(values) for letter, values in stacked.items()}


def _missing(p: Parameters, letter: str) -> tuple[int, ...]:
    return (p.dim, p.dim) if letter == "noise" else p.V.shape[:-1]


def _pad_heads(value: Array, ndim: int, heads: int) -> Array:
    value = value[None] if value.ndim < ndim else value
    return np.concatenate([value, np.zeros((heads - value.shape[0], *value.shape[1:]))])


def _lead(arrays: Arrays, name: str, count: int, points: int, d: int) -> tuple[int, ...]:
    """Leading shape () or (H,) of the heads of a saved array."""
    if name in arrays and arrays[name].ndim == 5:
        return (read_array(arrays, name, count, points, None, d, d).shape[2],)
    return ()


def _interpolated(start: float, end: float, samples: Arrays) -> Law:
    nodes = np.array(_nodes(start, end, _chebyshev(samples["b"].shape[0])))
    curves: dict[str, BarycentricInterpolator] = {}

    def law(t: float) -> Parameters:
        if not curves:  # made when first used: a saved plan has many pieces
            for key, values in samples.items():
                curves[key] = BarycentricInterpolator(nodes, values, axis=0)
        return Parameters.trusted(
            **{key: np.asarray(curve(t), dtype=float) for key, curve in curves.items()}
        )

    return law

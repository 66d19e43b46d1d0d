"""Gaussians, schedules and problems as plain values and arrays, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from scipy.interpolate import BarycentricInterpolator

from .._check import Array
from ..errors import ResultFileInvalid
from ..gaussian import Gaussian
from ..parameters import Parameters
from ..problem.bounds import Bounds
from ..problem.costs import ControlEnergy, Cost, KineticEnergy, MinimumTime
from ..schedule import Law, Schedule
from .base import Arrays

__all__ = [
    "pack_bounds",
    "pack_cost",
    "pack_gaussian",
    "pack_schedule",
    "unpack_bounds",
    "unpack_cost",
    "unpack_gaussian",
    "unpack_schedule",
]

#: Chebyshev points per smooth piece of a schedule: enough for 1e-12 on the pieces of a plan.
_POINTS = 17

_COSTS: dict[str, type[Cost]] = {
    "kinetic-energy": KineticEnergy,
    "control-energy": ControlEnergy,
    "minimum-time": MinimumTime,
}


def pack_gaussian(name: str, law: Gaussian) -> Arrays:
    """Arrays of a Gaussian under the prefix `name`."""
    return {f"{name}.mean": law.mean, f"{name}.factor": law.factor}


def unpack_gaussian(name: str, arrays: Arrays) -> Gaussian:
    """Restore a Gaussian from arrays."""
    return Gaussian.trusted(arrays[f"{name}.mean"], arrays[f"{name}.factor"])


def pack_cost(cost: Cost) -> dict[str, Any]:
    """Plain values of a cost."""
    kind = next(key for key, made in _COSTS.items() if isinstance(cost, made))
    return {"kind": kind, **asdict(cost)}


def unpack_cost(values: dict[str, Any]) -> Cost:
    """Restore a cost."""
    rest = dict(values)
    kind = rest.pop("kind", None)
    if kind not in _COSTS:
        raise ResultFileInvalid(f"unknown cost {kind!r} in the saved result.")
    return _COSTS[kind](**rest)


def pack_bounds(bounds: Bounds) -> dict[str, Any]:
    """Plain values of bounds."""
    return {
        "entries": dict(bounds.entries),
        "norms": dict(bounds.norms),
        "trace": bounds.trace,
        "largest_eigenvalue": bounds.largest_eigenvalue,
    }


def unpack_bounds(values: dict[str, Any]) -> Bounds:
    """Restore bounds."""
    return Bounds(**values)


def pack_schedule(name: str, schedule: Schedule) -> Arrays:
    """Arrays of a schedule: exact if piecewise constant, else sampled at Chebyshev points.

    The pieces of a plan are analytic, so their Chebyshev interpolant is exact to rounding;
    for a function given by the user it is as good as the function is smooth.
    """
    points = 1 if schedule.piecewise_constant else _POINTS
    theta = 0.5 - 0.5 * np.cos(np.pi * np.arange(points) / max(points - 1, 1))
    samples = [
        piece.law(piece.start + x * (piece.end - piece.start))
        for piece in schedule.pieces(inner=True)
        for x in theta
    ]
    arrays = {f"{name}.times": schedule.times}
    for letter in ("A", "B", "V", "b"):
        stacked = np.stack([getattr(p, letter) for p in samples])
        arrays[f"{name}.{letter}"] = stacked.reshape(-1, points, *stacked.shape[1:])
    for letter in ("noise", "beta"):
        if getattr(samples[0], letter) is not None:
            stacked = np.stack([getattr(p, letter) for p in samples])
            arrays[f"{name}.{letter}"] = stacked.reshape(-1, points, *stacked.shape[1:])
    if schedule.basis is not None:
        arrays[f"{name}.basis"] = schedule.basis
    return arrays


def unpack_schedule(name: str, arrays: Arrays) -> Schedule:
    """Restore a schedule from arrays."""
    times = arrays[f"{name}.times"]
    fields = {
        letter: arrays[f"{name}.{letter}"]
        for letter in ("A", "B", "V", "b", "noise", "beta")
        if f"{name}.{letter}" in arrays
    }
    points = fields["A"].shape[1]
    pieces = range(times.size - 1)
    if points == 1:
        return Schedule(
            times,
            [Parameters(**{k: v[i, 0] for k, v in fields.items()}) for i in pieces],
            basis=arrays.get(f"{name}.basis"),
        )
    laws = [
        _interpolated(times[i], times[i + 1], {k: v[i] for k, v in fields.items()}) for i in pieces
    ]
    dim = fields["A"].shape[-1]
    return Schedule.from_pieces(times, laws, dim, basis=arrays.get(f"{name}.basis"))


def _interpolated(start: float, end: float, samples: dict[str, Array]) -> Law:
    points = samples["A"].shape[0]
    nodes = start + (end - start) * (0.5 - 0.5 * np.cos(np.pi * np.arange(points) / (points - 1)))
    plain = samples.keys() <= {"A", "B", "V", "b"} and samples["V"].ndim == 3
    curves: dict[str, BarycentricInterpolator] = {}

    def law(t: float) -> Parameters:
        if not curves:  # made when first used: a saved plan has many pieces
            for key, values in samples.items():
                curves[key] = BarycentricInterpolator(nodes, values, axis=0)
        now = {key: np.asarray(curve(t)) for key, curve in curves.items()}
        return Parameters.trusted(**now) if plain else Parameters(**now)

    return law

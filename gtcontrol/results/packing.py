"""Gaussians, costs and bounds as plain values and arrays, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from ..errors import ResultFileInvalid
from ..gaussian import Gaussian
from ..mixture import Mixture
from ..problem.bounds import Bounds
from ..problem.costs import ControlEnergy, Cost, KineticEnergy, MinimumTime
from .plain import Arrays, plain, read_array, restore

__all__ = [
    "pack_bounds",
    "pack_cost",
    "pack_gaussian",
    "pack_law",
    "unpack_bounds",
    "unpack_cost",
    "unpack_gaussian",
    "unpack_law",
]

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
    mean = read_array(arrays, f"{name}.mean", None)
    factor = read_array(arrays, f"{name}.factor", mean.size, None)
    if not mean.size or factor.shape[1] > mean.size:
        raise ResultFileInvalid(
            f"`{name}` has dimension {mean.size} and rank {factor.shape[1]}; expected at least 1, "
            "and a rank of at most the dimension."
        )
    return Gaussian.trusted(mean, factor)


def pack_law(name: str, law: Gaussian | Mixture) -> Arrays:
    """Arrays of a Gaussian, or of a mixture of them, under the prefix `name`."""
    if isinstance(law, Gaussian):
        return pack_gaussian(name, law)
    arrays = {f"{name}.weights": law.weights}
    for k, component in enumerate(law.laws):
        arrays |= pack_gaussian(f"{name}.{k}", component)
    return arrays


def unpack_law(name: str, arrays: Arrays) -> Gaussian | Mixture:
    """Restore a Gaussian, or a mixture of them."""
    if f"{name}.weights" not in arrays:
        return unpack_gaussian(name, arrays)
    weights = read_array(arrays, f"{name}.weights", None)
    if not weights.size or not np.all(weights > 0):
        raise ResultFileInvalid(f"`{name}.weights` must hold positive numbers, one or more.")
    return Mixture(weights, [unpack_gaussian(f"{name}.{k}", arrays) for k in range(weights.size)])


def pack_cost(cost: Cost) -> dict[str, Any]:
    """Plain values of a cost."""
    kind = next(key for key, made in _COSTS.items() if isinstance(cost, made))
    return {"kind": kind, **asdict(cost)}


def unpack_cost(values: dict[str, Any]) -> Cost:
    """Restore a cost."""
    kind = values["kind"]
    if kind not in _COSTS:
        raise ResultFileInvalid(f"unknown cost {kind!r}.")
    made: Cost = restore(_COSTS[kind], values)
    return made


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
    return Bounds(entries=values["entries"], norms=values["norms"], **plain(Bounds, values))

"""Result of following a mixture of Gaussians beside the mixtures of its moved components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .. import _check
from .._check import Array
from ..errors import ResultFileInvalid
from ..mixture import Mixture
from ..problem.definitions import MixtureProblem
from ..status import Status
from .base import Arrays, Result
from .closeness import order_of, read_sets, spread_of
from .packing import pack_law, unpack_law
from .plain import agree, pack_plain, plain, read_array, read_status, read_times
from .schedules import pack_schedule, unpack_schedule

__all__ = ["MixtureRun"]

_CURVES = ("apart", "coupled", "apart_moments", "coupled_moments", "component_shape")


@dataclass(frozen=True, eq=False)
class MixtureRun(Result):
    """The law of tokens that start as a mixture, against mixtures of moved Gaussians.

    Components move "apart" if each attends to itself only, and "coupled" if each is moved, at
    every time, by the affine map that is nearest to the true field of the whole mixture.
    Distances are relative to the size of the law: sliced W₂ over the root of its average
    variance, W₂ of moments over the root of its total variance.

    Attributes
    ----------
    problem : MixtureProblem
    status : Status
        SUCCESS, or why the study ends before the last time that was asked for.
    times : (k,) array
        Increasing, positive.
    apart, coupled : (s, k) arrays
        Sliced W₂ from the true law to the mixtures of moved components, for each set of nodes.
    apart_moments, coupled_moments : (s, k) arrays
        W₂ between the Gaussians with the moments of the whole laws.
    component_shape : (s, k) array
        Sliced W₂ from what the components have become to Gaussians with their own moments, in
        root mean square over the components.
    floor : (k,) array
        Sliced W₂ between two sets of nodes of one and the same law: the error of the nodes
        themselves.  Distances below it can be resolved, as both laws are carried by the same
        nodes; how well is seen from one set to the next (`spreads`).
    means : (3, K, d) array
        Of the components at the last time: truly, coupled, and apart.
    covariances : (3, K, d, d) array
    tokens : (n, d) array
        Some nodes of the true law at the last time, for pictures, component by component.
    labels : (n,) array
        Their components, as floating-point numbers.
    seconds : float
        Wall time spent.
    """

    kind: ClassVar[str] = "mixture"

    problem: MixtureProblem
    status: Status
    times: Array
    apart: Array
    coupled: Array
    apart_moments: Array
    coupled_moments: Array
    component_shape: Array
    floor: Array
    means: Array
    covariances: Array
    tokens: Array
    labels: Array
    seconds: float

    @property
    def answered(self) -> bool:
        """Whether the distances were measured."""
        return self.status.answered

    @property
    def orders(self) -> dict[str, float]:
        """Order in t of each distance by name, averaged over the nodes; nan if negligible."""
        return {n: order_of(self.times, getattr(self, n).mean(axis=0)) for n in _CURVES}

    @property
    def errors(self) -> dict[str, float]:
        """Each distance at the last time, by name, averaged over the sets of nodes."""
        return {n: float(getattr(self, n)[:, -1].mean()) for n in _CURVES}

    @property
    def spreads(self) -> dict[str, float]:
        """Largest relative standard deviation of each distance over the sets of nodes."""
        return {n: spread_of(getattr(self, n)) for n in _CURVES}

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays."""
        p = self.problem
        values = {**pack_plain(p), **pack_plain(self), "status": self.status.name}
        values |= {"orders": self.orders, "errors": self.errors}
        names = ("times", "floor", "means", "covariances", "tokens", "labels", *_CURVES)
        arrays = {name: getattr(self, name) for name in names}
        return values, arrays | pack_schedule("schedule", p.schedule) | pack_law("start", p.start)

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> MixtureRun:
        """Restore the result."""
        start = unpack_law("start", arrays)
        if not isinstance(start, Mixture):
            raise ResultFileInvalid("`start` must be a mixture; its weights are missing.")
        problem = MixtureProblem(
            start=start,
            schedule=unpack_schedule("schedule", arrays),
            **plain(MixtureProblem, values),
        )
        _check.number("horizon", problem.horizon, low=0.0, strict=True)
        agree("the dimension of the schedule", problem.schedule.dim, start.dim)
        times = read_times(arrays, "times", problem.horizon)
        d, parts, k = start.dim, len(start.laws), times.size
        tokens = read_array(arrays, "tokens", None, d)
        status = read_status(values)
        sets = read_sets(arrays, "apart", problem.seeds, status)
        apart, coupled, apart_moments, coupled_moments, component_shape = (
            read_array(arrays, name, sets, k) for name in _CURVES
        )
        return cls(
            problem=problem,
            status=status,
            times=times,
            apart=apart,
            coupled=coupled,
            apart_moments=apart_moments,
            coupled_moments=coupled_moments,
            component_shape=component_shape,
            floor=read_array(arrays, "floor", k),
            means=read_array(arrays, "means", 3, parts, d),
            covariances=read_array(arrays, "covariances", 3, parts, d, d),
            tokens=tokens,
            labels=read_array(arrays, "labels", len(tokens)),
            **plain(cls, values),
        )

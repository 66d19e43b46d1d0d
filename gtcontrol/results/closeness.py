"""Result of a study at short times: how far the true law is from the Gaussian flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import _check
from .._check import Array
from ..errors import ResultFileInvalid
from ..problem.definitions import ClosenessProblem
from ..status import Status
from .base import Arrays, Result
from .feedforward import pack_feedforward, unpack_feedforward
from .packing import pack_gaussian, unpack_gaussian
from .plain import agree, pack_plain, plain, read_array, read_status, read_times
from .schedules import pack_schedule, unpack_schedule

__all__ = ["NEGLIGIBLE", "Closeness", "order_of", "read_sets", "spread_of"]

#: Relative distances up to this size are rounding errors, and have no order.
NEGLIGIBLE = 1e-7


@dataclass(frozen=True, eq=False)
class Closeness(Result):
    """Distances of the mean-field law of tokens to Gaussian flows against time.

    All distances are relative to the size of the law: those of moments are W₂ between the
    Gaussians with these moments, over the root of the total variance; those of laws are sliced
    W₂, over the root of the average variance.  Each is measured with several sets of nodes.

    Attributes
    ----------
    problem : ClosenessProblem
    status : Status
        SUCCESS, or why the Gaussian flow ends before the last time that was asked for.
    times : (k,) array
        Increasing, positive.
    shape : (s, k) array
        From the true law to the Gaussian with its own moments.
    law : (s, k) array
        From the true law to the statistically linearised Gaussian flow.
    moments : (s, k) array
        From the moments of the true law to those of the statistically linearised flow.
    naive : (s, k) array
        The same with the flow that is linearised at the mean.
    means : (3, d) array
        At the last time: of the true law, of the statistically linearised flow, and of the one
        linearised at the mean.
    covariances : (3, d, d) array
    tokens : (n, d) array
        Some nodes of the true law at the last time, for pictures.
    seconds : float
        Wall time spent.
    """

    kind: ClassVar[str] = "closeness"

    problem: ClosenessProblem
    status: Status
    times: Array
    shape: Array
    law: Array
    moments: Array
    naive: Array
    means: Array
    covariances: Array
    tokens: Array
    seconds: float

    @property
    def answered(self) -> bool:
        """Whether the distances were measured."""
        return self.status.answered

    @property
    def orders(self) -> dict[str, float]:
        """Order in t of each distance by name: slope of the regression in logarithms.

        The distance is that averaged over the sets of nodes; nan where it is rounding error.
        """
        return {name: order_of(self.times, values.mean(axis=0)) for name, values in self._curves()}

    @property
    def spreads(self) -> dict[str, float]:
        """Largest relative standard deviation of each distance over the sets of nodes.

        Not a number if there is one set only: what the nodes leave is then not known.
        """
        made = {}
        for name, values in self._curves():
            made[name] = spread_of(values)
        return made

    @property
    def errors(self) -> dict[str, float]:
        """Each distance at the last time, by name, averaged over the sets of nodes."""
        return {name: float(values[:, -1].mean()) for name, values in self._curves()}

    def _curves(self) -> list[tuple[str, Array]]:
        names = ("shape", "law", "moments", "naive")
        return [(name, getattr(self, name)) for name in names]

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays."""
        p = self.problem
        layer, arrays = pack_feedforward("feedforward", p.feedforward)
        values = {**pack_plain(p), **pack_plain(self), **layer, "status": self.status.name}
        values["orders"] = self.orders
        arrays |= pack_schedule("schedule", p.schedule) | pack_gaussian("start", p.start)
        names = ("times", "means", "covariances", "tokens")
        arrays |= {name: getattr(self, name) for name in names} | dict(self._curves())
        return values, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> Closeness:
        """Restore the result."""
        layer = unpack_feedforward("feedforward", values, arrays)
        if layer is None:
            raise ResultFileInvalid("the feed-forward layer is missing.")
        problem = ClosenessProblem(
            start=unpack_gaussian("start", arrays),
            schedule=unpack_schedule("schedule", arrays),
            feedforward=layer,
            **plain(ClosenessProblem, values),
        )
        _check.number("horizon", problem.horizon, low=0.0, strict=True)
        times = read_times(arrays, "times", problem.horizon)
        d, k = problem.start.dim, times.size
        agree("the dimension of the schedule", problem.schedule.dim, d)
        agree("the dimension of the feed-forward layer", layer.dim, d)
        status = read_status(values)
        sets = read_sets(arrays, "shape", problem.seeds, status)
        curves = {
            name: read_array(arrays, name, sets, k) for name in ("shape", "law", "moments", "naive")
        }
        return cls(
            problem=problem,
            status=status,
            times=times,
            means=read_array(arrays, "means", 3, d),
            covariances=read_array(arrays, "covariances", 3, d, d),
            tokens=read_array(arrays, "tokens", None, d),
            shape=curves["shape"],
            law=curves["law"],
            moments=curves["moments"],
            naive=curves["naive"],
            **plain(cls, values),
        )


def read_sets(arrays: Arrays, name: str, seeds: int, status: Status) -> int:
    """Number of sets of nodes of a curve (s, k): all, unless the study was interrupted."""
    sets = len(read_array(arrays, name, None, None))
    if status is not Status.INTERRUPTED or not 0 < sets <= seeds:
        agree("the number of sets of nodes", sets, seeds)
    return sets


def spread_of(values: Array) -> float:
    """Largest relative standard deviation of distances (s, k) over the sets; nan if s = 1."""
    if len(values) < 2:
        return float("nan")
    mean, deviation = values.mean(axis=0), values.std(axis=0, ddof=1)
    known = mean > NEGLIGIBLE
    return float(np.max(deviation[known] / mean[known], initial=0.0))


def order_of(times: Array, distances: Array) -> float:
    """Slope of the logarithm of distances (k,) against that of times (k,); nan if negligible."""
    if times.size < 2 or float(distances.max()) <= NEGLIGIBLE or float(distances.min()) <= 0:
        return float("nan")
    return float(np.polyfit(np.log(times), np.log(distances), 1)[0])

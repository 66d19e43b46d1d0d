"""The kind "closeness": how far a nonlinear feed-forward layer drives laws from Gaussian flows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...feedforward import FeedForward
from ...gaussian import Gaussian
from ...problem.expectations import Expect
from ...problem.messages import fail, located
from ...problem.schema import Count, Number, Positive, Table, Vector
from ...problem.sources import GaussianTable
from ...problem.tables import FeedForwardTable, ParametersTable, PieceTable, build_schedule
from ...progress import Progress
from ...results.closeness import Closeness
from ...schedule import Schedule
from .base import KindDocument, Source, Task

__all__ = ["ABOUT", "DOCUMENT", "TEMPLATE"]

ABOUT = "how close does the true law under ReLU stay to Gaussian flows"

TEMPLATE = """\
# How far does a feed-forward layer that is not affine drive the law of the tokens away from
# Gaussian flows, and with which order in time?  Check this file with `gtcontrol check FILE`, run
# it with `gtcontrol run FILE`.  What is commented out shows the default or another way.

kind = "closeness"
title = "ReLU at short times"
description = "What is measured, in a few words."

[start]
mean = [0.5, 0.0]
covariance = [[1.0, 0.2], [0.2, 0.5]]

# Affine part and attention; what is left out is zero.
[parameters]
V = [[0.5, 0.0], [0.0, 0.5]]
B = [[-0.5, 0.2], [0.0, -0.3]]

# Instead of [parameters]: pieces, each constant until its time.
# [[piece]]
# until = 0.1
# V = [[0.5, 0.0], [0.0, 0.5]]

# The layer: tokens gain outer act(inner x + bias).
[feedforward]
inner = [[1.0, 0.0], [0.5, 1.0]]
bias = [0.1, -0.2]
outer = [[-0.5, 0.2], [0.1, 0.4]]
activation = "relu"   # or "gelu", "silu", "tanh", "sigmoid", "leaky_relu", "identity"

[closeness]
horizon = 0.2
# times = [0.05, 0.1, 0.2]   # by default horizon/16, ..., horizon/2, horizon
count = 512                  # nodes that carry the law (default 2048)
seeds = 2                    # sets of nodes (default 3)

# What you expect of the result, if anything; the exit code is 1 if it does not come true.
[expect]
status = "SUCCESS"
moments_order_at_least = 1.7     # orders in t: of the moments of the linearised flow,
moments_order_at_most = 2.3
shape_order_at_least = 0.7       # of the distance to the Gaussian with the law's own moments,
shape_order_at_most = 1.5
# naive_order_at_least = 0.9     # and of the moments if the layer is linearised at the mean
# naive_order_at_most = 1.5
# moments_at_most = 0.01         # distances at the horizon; also naive_at_least, shape_at_most
"""


class ClosenessTable(Table):
    """When it is measured, and with how many nodes."""

    horizon: Positive | None = None
    times: Vector | None = None
    count: Count = 2048
    seeds: Count = 3


class ClosenessExpect(Expect):
    """What is expected of the distances and their orders."""

    status: Literal["SUCCESS", "BLOW_UP"] | None = None
    moments_order_at_least: Number | None = None
    moments_order_at_most: Number | None = None
    shape_order_at_least: Number | None = None
    shape_order_at_most: Number | None = None
    naive_order_at_least: Number | None = None
    naive_order_at_most: Number | None = None
    moments_at_most: Positive | None = None
    shape_at_most: Positive | None = None
    naive_at_least: Positive | None = None


class ClosenessDocument(KindDocument):
    """A file of kind "closeness"."""

    kind: Literal["closeness"]
    start: GaussianTable
    feedforward: FeedForwardTable
    parameters: ParametersTable | None = None
    piece: list[PieceTable] | None = None
    closeness: ClosenessTable = ClosenessTable()
    expect: ClosenessExpect = ClosenessExpect()

    def prepare(self, source: Source) -> Task:
        """Build and check all values."""
        start = self.start.build("start", source.folder)
        if self.parameters is not None and self.closeness.horizon is None:
            fail("closeness.horizon", "is missing; expected a number greater than 0.")
        schedule, horizon = build_schedule(
            self.parameters, self.piece or (), self.closeness.horizon, start.dim
        )
        layer = self.feedforward.build("`feedforward`", start.dim)
        from ...validation.nodes import number_of_nodes  # only when such a file is prepared

        with located("`closeness.count`"):
            number_of_nodes(self.closeness.count, start.dim, layer)
        return ClosenessTask(
            self.expect, source.name, start, schedule, horizon, layer, self.closeness
        )


DOCUMENT = ClosenessDocument


@dataclass(frozen=True)
class ClosenessTask(Task):
    """The study with its values."""

    expect: ClosenessExpect
    name: str
    start: Gaussian
    schedule: Schedule
    horizon: float
    feedforward: FeedForward
    table: ClosenessTable

    @property
    def about(self) -> str:
        """Kind, dimension, layer and horizon."""
        return (
            f"closeness, dimension {self.start.dim}, {self.feedforward.hidden} hidden units "
            f"({self.feedforward.name}), up to t = {self.horizon:g}"
        )

    def run(self, progress: Progress) -> Closeness:
        """Measure."""
        from ...validation.short_times import closeness  # loaded only to run

        return closeness(
            self.start,
            self.schedule,
            self.feedforward,
            self.horizon,
            times=self.table.times,
            count=self.table.count,
            seeds=self.table.seeds,
            progress=progress,
            name=self.name,
        )

    def observe(self, result: Closeness) -> Mapping[str, Any]:
        """Values by the names that ``[expect]`` uses."""
        seen: dict[str, Any] = {"status": result.status.name}
        for name, order in result.orders.items():
            seen[f"{name}_order"] = order
            seen[name] = float(getattr(result, name)[:, -1].mean())
        return seen

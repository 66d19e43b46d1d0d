"""The kind "mixture": how far a mixture of Gaussians moves away from its moved components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...mixture import Mixture
from ...problem.expectations import Expect
from ...problem.messages import fail, located
from ...problem.schema import Count, Number, Positive, Table, Vector
from ...problem.sources import GaussianTable
from ...problem.tables import ParametersTable, PieceTable, build_schedule
from ...progress import Progress
from ...results.mixture import MixtureRun
from ...schedule import Schedule
from .base import KindDocument, Source, Task

__all__ = ["ABOUT", "DOCUMENT", "TEMPLATE"]

ABOUT = "how far does attention drive a mixture from its moved components"

TEMPLATE = """\
# How far does attention drive a mixture of Gaussians away from the mixture of its moved
# components?  Check this file with `gtcontrol check FILE`, run it with `gtcontrol run FILE`.
# What is commented out shows the default or another way.

kind = "mixture"
title = "Two clusters of tokens"
description = "What is followed, in a few words."

# Each component: its weight (they sum to 1), and a Gaussian as `start` is in other kinds.
[[component]]
weight = 0.5
mean = [-1.0, 0.0]
covariance = [[0.3, 0.0], [0.0, 0.2]]

[[component]]
weight = 0.5
mean = [1.0, 0.5]
covariance = [[0.2, 0.0], [0.0, 0.4]]

# Affine part and attention; what is left out is zero.
[parameters]
V = [[0.8, 0.0], [0.0, 0.8]]
B = [[0.5, 0.2], [0.0, 0.5]]

# Instead of [parameters]: pieces, each constant until its time.
# [[piece]]
# until = 0.1
# V = [[0.8, 0.0], [0.0, 0.8]]

[mixture]
horizon = 0.2
# times = [0.05, 0.1, 0.2]   # by default horizon/16, ..., horizon/2, horizon
count = 256                  # nodes that carry each component (default 1024)
# seeds = 2                  # sets of nodes

# What you expect of the result, if anything; the exit code is 1 if it does not come true.
[expect]
status = "SUCCESS"
# distances at the horizon, relative to the size of the law: of components that move by
# themselves, of components moved by the best affine maps, and what the nodes cannot resolve
apart_at_least = 0.01
coupled_at_least = 0.001
# floor_at_most = 0.01
# apart_order_at_least = 0.8     # orders in t; also apart_order_at_most,
# coupled_order_at_least = 0.8   # coupled_order_at_most,
# coupled_moments_order_at_least = 1.7   # coupled_moments_order_at_most
"""


class ComponentTable(GaussianTable):
    """A component: its weight, and its Gaussian."""

    weight: Positive


class MixtureTable(Table):
    """When it is measured, and with how many nodes."""

    horizon: Positive | None = None
    times: Vector | None = None
    count: Count = 1024
    seeds: Count = 2


class MixtureExpect(Expect):
    """What is expected of the distances and their orders."""

    status: Literal["SUCCESS", "BLOW_UP", "OVERFLOW"] | None = None
    apart_at_least: Positive | None = None
    coupled_at_least: Positive | None = None
    floor_at_most: Positive | None = None
    apart_order_at_least: Number | None = None
    apart_order_at_most: Number | None = None
    coupled_order_at_least: Number | None = None
    coupled_order_at_most: Number | None = None
    coupled_moments_order_at_least: Number | None = None
    coupled_moments_order_at_most: Number | None = None


class MixtureDocument(KindDocument):
    """A file of kind "mixture"."""

    kind: Literal["mixture"]
    component: list[ComponentTable]
    parameters: ParametersTable | None = None
    piece: list[PieceTable] | None = None
    mixture: MixtureTable = MixtureTable()
    expect: MixtureExpect = MixtureExpect()

    def prepare(self, source: Source) -> Task:
        """Build and check all values."""
        start = self._start(source.folder)
        if self.parameters is not None and self.mixture.horizon is None:
            fail("mixture.horizon", "is missing; expected a number greater than 0.")
        schedule, horizon = build_schedule(
            self.parameters, self.piece or (), self.mixture.horizon, start.dim
        )
        from ...validation.nodes import number_of_nodes  # only when such a file is prepared

        with located("`mixture.count`"):
            number_of_nodes(self.mixture.count, start.dim)
        return MixtureTask(self.expect, source.name, start, schedule, horizon, self.mixture)

    def _start(self, folder: Path) -> Mixture:
        laws = [part.build(f"component[{i}]", folder) for i, part in enumerate(self.component)]
        with located("`component`"):
            return Mixture([part.weight for part in self.component], laws)


DOCUMENT = MixtureDocument


@dataclass(frozen=True)
class MixtureTask(Task):
    """The study with its values."""

    expect: MixtureExpect
    name: str
    start: Mixture
    schedule: Schedule
    horizon: float
    table: MixtureTable

    @property
    def about(self) -> str:
        """Kind, dimension, components and horizon."""
        return (
            f"mixture, dimension {self.start.dim}, {len(self.start.laws)} components, up to "
            f"t = {self.horizon:g}"
        )

    def run(self, progress: Progress) -> MixtureRun:
        """Follow the mixture."""
        from ...validation.mixtures import follow_mixture  # loaded only to run

        return follow_mixture(
            self.start,
            self.schedule,
            self.horizon,
            times=self.table.times,
            count=self.table.count,
            seeds=self.table.seeds,
            progress=progress,
            name=self.name,
        )

    def observe(self, result: MixtureRun) -> Mapping[str, Any]:
        """Values by the names that ``[expect]`` uses."""
        orders = {f"{name}_order": order for name, order in result.orders.items()}
        floor = float(result.floor[-1])
        return {"status": result.status.name, "floor": floor, **result.errors, **orders}

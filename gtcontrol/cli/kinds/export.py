"""The kind "export": a plan as layers of torch, tried on actual tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from ...problem.expectations import Expect
from ...problem.schema import Count, Flag, Number, Positive, Table, Whole
from ...problem.sources import GaussianTable
from ...progress import Progress
from ...results.export import ExportCheck
from ...results.steering import Steering
from ...status import Status
from .base import KindDocument, Source, Task, lacking
from .steer import SteerDocument, SteerTable

__all__ = ["ABOUT", "DOCUMENT", "TEMPLATE"]

ABOUT = "a plan as layers of torch: do they carry actual tokens to the target?"

TEMPLATE = """\
# A plan as residual softmax attention layers of torch: is the target reached by actual tokens, and
# how many layers does it take?  Needs torch (`pip install 'gtcontrol[torch]'`).  The plan is made
# as in a file of kind = "steer".  Check this file with `gtcontrol check FILE`, run it with
# `gtcontrol run FILE`: beside the report it writes the weights (weights.safetensors) and what they
# are (layers.json).  What is commented out shows the default or another way.

kind = "export"
title = "Stretch and shift, as layers"
description = "What is exported, in a few words."

# The law of the tokens at time 0: a mean, and a covariance or a factor L (covariance L Lᵀ).
[start]
mean = [0.0, 0.0]
covariance = [[1.0, 0.0], [0.0, 1.0]]

# The law at the horizon; its covariance must have the same rank.
[target]
mean = [1.0, -1.0]
covariance = [[2.0, 0.5], [0.5, 0.5]]

# The plan: all that a file of kind = "steer" may say in [steer].
[steer]
horizon = 1.0
controls = "AVBb"

[export]
layers = [2, 4, 8]           # numbers of layers that are tried; the last network is written
count = 2000                 # tokens (default 10000)
exact = true                 # correct A and b of each layer, so that its law is that of the plan
# seed = 0                   # of the tokens
# mask_self = false          # tokens do not attend to themselves
# dtype = "float64"          # or "float32"
# baselines = 20             # samples from the target, to compare with

# What you expect of the result, if anything; the exit code is 1 if it does not come true.
[expect]
status = "SUCCESS"
arrives = true               # what comes out is as close to the target as sampling allows
# as_predicted = true        # plain layers miss as their law does, up to sampling
# error_at_most = 0.05       # over the size of the target
# order_at_least = 0.7       # in 1/layers, of the law of plain layers; also token_order
# order_at_most = 1.3
"""


class ExportTable(Table):
    """The arguments of :func:`gtcontrol.check_export`."""

    layers: Annotated[
        list[Count],
        Field(min_length=1, description="an array of whole numbers that are at least 1"),
    ] = [4, 8, 16, 32]  # noqa: RUF012 - pydantic copies it
    count: Annotated[int, Field(ge=2, description="a whole number that is at least 2")] = 10_000
    seed: Whole = 0
    exact: Flag = False
    mask_self: Flag = False
    dtype: Literal["float64", "float32"] = "float64"
    baselines: Annotated[int, Field(ge=2, description="a whole number that is at least 2")] = 20


class ExportExpect(Expect):
    """What is expected of the plan and of the layers."""

    status: Literal["SUCCESS"] | None = None
    arrives: Flag | None = None
    as_predicted: Flag | None = None
    error_at_most: Positive | None = None
    order_at_least: Number | None = None
    order_at_most: Number | None = None
    token_order_at_least: Number | None = None
    token_order_at_most: Number | None = None


class ExportDocument(KindDocument):
    """A file of kind "export"."""

    kind: Literal["export"]
    start: GaussianTable
    target: GaussianTable
    steer: SteerTable = SteerTable()
    export: ExportTable = ExportTable()
    expect: ExportExpect = ExportExpect()

    def prepare(self, source: Source) -> Task:
        """Build and check all values."""
        steering = SteerDocument(
            kind="steer", start=self.start, target=self.target, steer=self.steer
        ).prepare(source)
        return ExportTask(self.expect, source.name, steering, self.export)


DOCUMENT = ExportDocument


@dataclass(frozen=True)
class ExportTask(Task):
    """The plan to be made, and how it is exported."""

    expect: ExportExpect
    name: str
    steering: Task
    table: ExportTable

    @property
    def about(self) -> str:
        """Kind, dimension, rank, controls and layers."""
        listed = ", ".join(map(str, self.table.layers))
        return f"{self.steering.about.replace('steer', 'export', 1)}, {listed} layers"

    @property
    def lacks(self) -> str:
        """Torch, if it is not installed."""
        return lacking("torch", "torch")

    def run(self, progress: Progress) -> ExportCheck | Steering:
        """Make the plan, then its layers; a plan that does not arrive is returned itself."""
        from ...pretrained.export.check import check_export
        from ...pretrained.export.run import require_torch

        require_torch()  # before a plan is made for nothing
        plan = self.steering.run(lambda fraction, text: progress(0.4 * fraction, text))
        if not isinstance(plan, Steering):
            raise TypeError(f"a plan was expected, not {type(plan).__name__}.")
        if not plan.answered:
            return plan
        t = self.table
        try:
            return check_export(
                plan,
                layers=t.layers,
                count=t.count,
                rng=t.seed,
                exact=t.exact,
                mask_self=t.mask_self,
                dtype=t.dtype,
                baselines=t.baselines,
                progress=lambda fraction, text: progress(0.4 + 0.6 * fraction, text),
                name=self.name,
            )
        except KeyboardInterrupt:
            # The plan is whole, but the question of the file is not answered.
            return replace(plan, status=Status.INTERRUPTED)

    def observe(self, result: ExportCheck | Steering) -> Mapping[str, Any]:
        """Values by the names that ``[expect]`` uses."""
        if isinstance(result, Steering):
            names = ("arrives", "as_predicted", "error", "order", "token_order")
            return {"status": result.status.name, **dict.fromkeys(names)}
        return {
            "status": result.status.name,
            "arrives": result.arrives,
            "as_predicted": result.as_predicted,
            "error": result.error,
            "order": result.order,
            "token_order": result.token_order,
        }

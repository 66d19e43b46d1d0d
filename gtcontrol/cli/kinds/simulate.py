"""The kind "simulate": where given parameters carry a Gaussian."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...feedforward import FeedForward
from ...finite_tokens import FiniteTokens
from ...gaussian import Gaussian
from ...problem.expectations import Expect
from ...problem.messages import located
from ...problem.schema import (
    Approximate,
    ApproximateArray,
    Count,
    Flag,
    Positive,
    Table,
    Whole,
)
from ...problem.sources import GaussianTable
from ...problem.tables import FeedForwardTable, ParametersTable, PieceTable, build_schedule
from ...progress import Progress
from ...results.trajectory import Trajectory
from ...schedule import Schedule
from .base import KindDocument, Source, Task

__all__ = ["ABOUT", "DOCUMENT", "TEMPLATE"]

ABOUT = "where do given parameters carry a Gaussian: the flow, layers, blow-up"

TEMPLATE = """\
# Where do these parameters carry a Gaussian?  Check this file with `gtcontrol check FILE`,
# run it with `gtcontrol run FILE`.  What is commented out shows the default or another way.

kind = "simulate"
title = "Attention that contracts"
description = "What is simulated, in a few words."

# The law of the tokens at time 0: a mean, and a covariance or a factor L (covariance L Lᵀ).
[start]
mean = [1.0, 0.0]
covariance = [[2.0, 0.5], [0.5, 1.0]]
# factor = [[1.4, 0.0], [0.35, 0.9]]
# file = "laws/start.npz"    # instead: an NPZ file with `mean` and `covariance` or `factor`
# generate = {dim = 768, rank = 4, seed = 1, spread = 10.0, mean_scale = 1.0, scale = 1.0}

# Tokens move by x' = A x + b + V·(softmax average), with scores exp⟨B x, y⟩.
# What is left out is zero.  V and B may be a list of matrices, one for each head.
[parameters]
A = [[-0.5, 1.0], [-1.0, -0.5]]
V = [[1.0, 0.0], [0.0, 1.0]]
B = [[-0.5, 0.0], [0.2, -0.5]]
b = [0.1, 0.0]
# noise = [[0.01, 0.0], [0.0, 0.01]]   # process noise: the rank is then not conserved
# beta = [0.0, 0.0]                    # score bias of the attention (query biases)

# Instead of [parameters]: pieces, each constant until its time.
# [[piece]]
# until = 0.5
# A = [[0.0, 1.0], [-1.0, 0.0]]

# A feed-forward layer beside A x + b: tokens gain outer act(inner x + bias).
# [feedforward]
# inner = [[1.0, 0.0], [0.0, 1.0]]
# bias = [0.0, 0.0]
# outer = [[1.0, 0.0], [0.0, 1.0]]
# activation = "relu"   # or "gelu", "silu", "tanh", "sigmoid", "leaky_relu", "identity"

[simulate]
horizon = 1.0
# layers = 12                # residual layers of step horizon/layers instead of the flow
# tokens = {count = 200, self_key = true}   # so many tokens instead of infinitely many
# rtol = 1e-12
# max_steps = 20000
# linearisation = "statistical"   # of the feed-forward layer; or "jacobian", at the mean

# What you expect of the result, if anything; the exit code is 1 if it does not come true.
[expect]
status = "SUCCESS"           # or "BLOW_UP", with blow_up_time = {value = 0.5, relative = 1e-9}
rank = 2
# final_trace = 1.5
# final_mean = {value = [0.0, 0.0], absolute = 1e-6}
# final_covariance = {value = [[1.0, 0.0], [0.0, 1.0]], relative = 1e-6}
"""

Endings = Literal["SUCCESS", "BLOW_UP", "OVERFLOW", "UNDERFLOW", "STEP_LIMIT", "STEP_SIZE"]


class TokensTable(Table):
    """How many tokens there are; see :class:`gtcontrol.FiniteTokens`."""

    count: Count
    self_key: Flag = True

    def build(self) -> FiniteTokens:
        """Make the value."""
        with located("`simulate.tokens`"):
            return FiniteTokens(self.count, self.self_key)


class SimulateTable(Table):
    """How far, and by which integrator."""

    horizon: Positive | None = None
    layers: Count | None = None
    tokens: TokensTable | None = None
    rtol: Positive = 1e-12
    max_steps: Count = 20_000
    linearisation: Literal["statistical", "jacobian"] = "statistical"


class SimulateExpect(Expect):
    """What is expected of the trajectory."""

    status: Endings | None = None
    blow_up_time: Approximate | None = None
    rank: Whole | None = None
    final_trace: Approximate | None = None
    final_mean: ApproximateArray | None = None
    final_covariance: ApproximateArray | None = None


class SimulateDocument(KindDocument):
    """A file of kind "simulate"."""

    kind: Literal["simulate"]
    start: GaussianTable
    parameters: ParametersTable | None = None
    piece: list[PieceTable] | None = None
    feedforward: FeedForwardTable | None = None
    simulate: SimulateTable = SimulateTable()
    expect: SimulateExpect = SimulateExpect()

    def prepare(self, source: Source) -> Task:
        """Build and check all values."""
        start = self.start.build("start", source.folder)
        schedule, horizon = build_schedule(
            self.parameters, self.piece or (), self.simulate.horizon, start.dim
        )
        layer = None
        if self.feedforward is not None:
            layer = self.feedforward.build("`feedforward`", start.dim)
        tokens = None if self.simulate.tokens is None else self.simulate.tokens.build()
        return SimulateTask(
            self.expect, source.name, start, schedule, horizon, self.simulate, layer, tokens
        )


DOCUMENT = SimulateDocument


@dataclass(frozen=True)
class SimulateTask(Task):
    """The simulation with its values."""

    expect: SimulateExpect
    name: str
    start: Gaussian
    schedule: Schedule
    horizon: float
    table: SimulateTable
    feedforward: FeedForward | None
    tokens: FiniteTokens | None = None

    @property
    def about(self) -> str:
        """Kind, dimension and rank."""
        form = "flow" if self.table.layers is None else f"{self.table.layers} layers"
        if self.tokens is not None:
            form += f" of {self.tokens.count} tokens"
        return (
            f"simulate, dimension {self.start.dim}, rank {self.start.rank}, {form} on "
            f"[0, {self.horizon:g}]"
        )

    def run(self, progress: Progress) -> Trajectory:
        """Integrate."""
        from ...simulation.run import simulate  # the integrator is loaded only to run

        return simulate(
            self.start,
            self.schedule,
            self.horizon,
            layers=self.table.layers,
            tokens=self.tokens,
            rtol=self.table.rtol,
            max_steps=self.table.max_steps,
            feedforward=self.feedforward,
            linearisation=self.table.linearisation,
            progress=progress,
            name=self.name,
        )

    def observe(self, result: Trajectory) -> Mapping[str, Any]:
        """Values by the names that ``[expect]`` uses."""
        final = result.final
        return {
            "status": result.status.name,
            "blow_up_time": result.blow_up_time,
            "rank": final.rank,
            "final_trace": final.trace,
            "final_mean": final.mean,
            "final_covariance": final.covariance,
        }

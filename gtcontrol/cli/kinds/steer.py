"""The kind "steer": the parameters that carry one Gaussian to another at least cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ...gaussian import Gaussian
from ...problem import memory
from ...problem.bounds import Bounds, parse_controls
from ...problem.costs import ControlEnergy, Cost, KineticEnergy
from ...problem.definitions import SteeringProblem
from ...problem.expectations import Expect
from ...problem.messages import located
from ...problem.schema import (
    Approximate,
    Count,
    Flag,
    NonNegative,
    Number,
    Positive,
    Table,
    Text,
    Whole,
)
from ...problem.sources import GaussianTable, end_points
from ...problem.tables import BoundsTable, CostTable
from ...progress import Progress
from ...results.steering import Steering
from ...status import Status
from ...steering.closed_forms import kinetic_schedule
from .base import KindDocument, Source, Task
from .steerable import check_method, check_reachable

__all__ = ["ABOUT", "DOCUMENT", "TEMPLATE"]

ABOUT = "which parameters A, V, B, b carry one Gaussian to another at least cost?"

TEMPLATE = """\
# Which Transformer parameters carry one Gaussian to another?  Check this file with
# `gtcontrol check FILE`, solve it with `gtcontrol run FILE`.  What is commented out shows the
# default or another way.

kind = "steer"
title = "Stretch and shift"
description = "What is steered, in a few words."

# The law of the tokens at time 0: a mean, and a covariance or a factor L (covariance L Lᵀ).
[start]
mean = [0.0, 0.0]
covariance = [[1.0, 0.0], [0.0, 1.0]]
# factor = [[1.0, 0.0], [0.0, 1.0]]
# file = "laws/start.npz"    # instead: an NPZ file with `mean` and `covariance` or `factor`
# generate = {dim = 768, rank = 4, seed = 1, spread = 10.0, mean_scale = 1.0, scale = 1.0}

# The law at the horizon; its covariance must have the same rank.
[target]
mean = [1.0, -1.0]
covariance = [[2.0, 0.5], [0.5, 0.5]]

[steer]
horizon = 1.0
controls = "AVBb"            # the enabled parameters, any subset of A, V, B and b
# method = "optimal"         # or an exact plan, such as "transport-geodesic"
# solver = "auto"            # or "ipopt", "fatrop"
# starts = 20                # starts of the solver; without it 3 to 72, by size and controls
# intervals = 20             # mesh of the solver; refined until the replay arrives
# refinements = 3
# max_iterations = 500
# tolerance = 1e-8           # of the solver
# replay_tolerance = 1e-5    # largest relative miss of the replay
# reduce = true              # solve in the span of the end points when the problem allows
# seed = 0

[steer.cost]
kind = "control-energy"      # or "kinetic-energy", "minimum-time"
kinetic = 1.0                # weight of the kinetic energy; minimum-time has bound and norm

# [steer.bounds]
# trace = 10.0               # of the covariance along the path
# largest_eigenvalue = 5.0   # of the covariance along the path
# entries = {A = 2.0, b = 5.0}
# norms = {V = 3.0}

# Moves actual softmax tokens along the plan and compares where they arrive.
# [tokens]
# count = 2000
# seed = 0
# antithetic = true
# moment_matched = true

# What you expect of the result, if anything; the exit code is 1 if it does not come true.
[expect]
status = "SUCCESS"
replay_error_at_most = 1e-5
# cost = {value = 4.2, relative = 1e-4}
# tokens_within_sampling_error = true
"""


#: Nodes of a replay that must fit into memory.
NODES = 200


class SteerTable(Table):
    """The arguments of :func:`gtcontrol.steer`."""

    horizon: Positive = 1.0
    controls: Text = "AVBb"
    method: Text = "optimal"
    cost: CostTable | None = None
    bounds: BoundsTable = BoundsTable()
    solver: Literal["auto", "ipopt", "fatrop"] = "auto"
    starts: Count | None = None
    intervals: Count = 20
    tolerance: Positive = 1e-8
    replay_tolerance: Positive = 1e-5
    refinements: Whole = 3
    max_iterations: Count = 500
    reduce: Flag = True
    seed: Whole = 0


class TokensTable(Table):
    """The arguments of :func:`gtcontrol.check_tokens`."""

    count: Count = 2000
    seed: Whole = 0
    antithetic: Flag = True
    moment_matched: Flag = True

    def check(self, start: Gaussian) -> None:
        """Refuse what the draw would refuse, before the plan is made for it."""
        with located("`tokens`"):
            memory.require(f"drawing {self.count} tokens", float(self.count * (start.dim + 2)))
            start.sample(
                self.count,
                np.random.default_rng(self.seed),
                antithetic=self.antithetic,
                moment_matched=self.moment_matched,
            )


class SteerExpect(Expect):
    """What is expected of the plan."""

    status: Literal["SUCCESS", "NOT_CONVERGED", "INFEASIBLE", "REPLAY_FAILED"] | None = None
    cost: Approximate | None = None
    cost_at_most: Number | None = None
    lower_bound: Approximate | None = None
    gap_at_most: Number | None = None
    replay_error_at_most: NonNegative | None = None
    terminal_error_at_most: NonNegative | None = None
    horizon: Approximate | None = None
    smallest_eigenvalue_at_least: NonNegative | None = None
    tokens_within_sampling_error: Flag | None = None
    tokens_mean_error_at_most: NonNegative | None = None
    tokens_covariance_error_at_most: NonNegative | None = None


class SteerDocument(KindDocument):
    """A file of kind "steer"."""

    kind: Literal["steer"]
    start: GaussianTable
    target: GaussianTable
    steer: SteerTable = SteerTable()
    tokens: TokensTable | None = None
    expect: SteerExpect = SteerExpect()

    def prepare(self, source: Source) -> Task:
        """Build and check all values."""
        start, target = end_points(self.start, self.target, source.folder)
        with located("`steer.controls`"):
            controls = parse_controls(self.steer.controls)
        memory.require(
            f"a plan in dimension {start.dim} with rank {start.rank}",
            NODES * float(start.dim) * (start.rank + 1),
        )
        check_reachable(start, target, controls)
        check_method(self.steer.method)
        if self.tokens is not None:
            self.tokens.check(start)
        cost = ControlEnergy() if self.steer.cost is None else self.steer.cost.build("steer.cost")
        if self.steer.method == "optimal" and isinstance(cost, KineticEnergy):
            kinetic_schedule(SteeringProblem(start, target, self.steer.horizon, controls, cost))
        return SteerTask(
            expect=self.expect,
            name=source.name,
            start=start,
            target=target,
            controls=controls,
            cost=cost,
            bounds=self.steer.bounds.build(),
            table=self.steer,
            tokens=self.tokens,
        )


DOCUMENT = SteerDocument


@dataclass(frozen=True)
class SteerTask(Task):
    """The steering problem with its values."""

    expect: SteerExpect
    name: str
    start: Gaussian
    target: Gaussian
    controls: str
    cost: Cost
    bounds: Bounds
    table: SteerTable
    tokens: TokensTable | None

    @property
    def about(self) -> str:
        """Kind, dimension, rank and controls."""
        return (
            f"steer, dimension {self.start.dim}, rank {self.start.rank}, controls {self.controls}"
        )

    def run(self, progress: Progress) -> Steering:
        """Solve, and move tokens along the plan when asked to."""
        from ...steering.run import steer  # the solver is loaded only to run

        share = 1.0 if self.tokens is None else 0.7
        t = self.table
        plan = steer(
            self.start,
            self.target,
            t.horizon,
            controls=self.controls,
            cost=self.cost,
            bounds=self.bounds,
            method=t.method,
            starts=t.starts,
            intervals=t.intervals,
            solver=t.solver,
            tolerance=t.tolerance,
            replay_tolerance=t.replay_tolerance,
            refinements=t.refinements,
            max_iterations=t.max_iterations,
            reduce=t.reduce,
            seed=t.seed,
            progress=lambda fraction, text: progress(share * fraction, text),
            name=self.name,
        )
        if self.tokens is None or not plan.answered:
            return plan
        return self._with_tokens(plan, self.tokens, progress, share)

    def _with_tokens(
        self, plan: Steering, tokens: TokensTable, progress: Progress, share: float
    ) -> Steering:
        from ...validation.tokens import check_tokens

        try:
            check = check_tokens(
                plan,
                tokens.count,
                rng=tokens.seed,
                antithetic=tokens.antithetic,
                moment_matched=tokens.moment_matched,
                progress=lambda fraction, text: progress(share + (1 - share) * fraction, text),
            )
        except KeyboardInterrupt:
            # The plan is whole, but the question of the file is not answered.
            return replace(plan, status=Status.INTERRUPTED)
        return replace(plan, tokens=check)

    def observe(self, result: Steering) -> Mapping[str, Any]:
        """Values by the names that ``[expect]`` uses."""
        tokens = result.tokens
        return {
            "status": result.status.name,
            "cost": result.cost,
            "lower_bound": result.lower_bound,
            "gap": result.gap,
            "replay_error": result.replay_error,
            "terminal_error": result.terminal_error,
            "horizon": result.horizon,
            "smallest_eigenvalue": result.smallest_eigenvalue,
            "tokens_within_sampling_error": tokens and tokens.within_sampling_error,
            "tokens_mean_error": tokens and tokens.mean_error,
            "tokens_covariance_error": tokens and tokens.covariance_error,
        }

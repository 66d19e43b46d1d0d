"""The kind "tokens": whether the theory holds for finitely many tokens under softmax."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from ...feedforward import FeedForward
from ...gaussian import Gaussian
from ...problem.expectations import Expect
from ...problem.messages import fail, located
from ...problem.schema import Approximate, Count, Flag, Number, Positive, Table, Text, Whole
from ...problem.sources import GaussianTable
from ...problem.tables import FeedForwardTable, ParametersTable, PieceTable, build_schedule
from ...progress import Progress
from ...results.validation import Validation
from ...schedule import Schedule
from .base import KindDocument, Source, Task

__all__ = ["ABOUT", "DOCUMENT", "TEMPLATE"]

ABOUT = "does the theory hold for finitely many tokens under actual softmax"

TEMPLATE = """\
# Does the Gaussian theory hold for finitely many tokens under actual softmax?  Check this file
# with `gtcontrol check FILE`, run it with `gtcontrol run FILE`.  What is commented out shows the
# default or another way.

kind = "tokens"
title = "Clouds under attention that contracts"
description = "What is tried, in a few words."

# The law from which the tokens are drawn: a mean, and a covariance or a factor L (covariance L Lᵀ).
[start]
mean = [1.0, 0.0]
covariance = [[1.0, 0.3], [0.3, 0.5]]

# Tokens move by x' = A x + b + V·(softmax average), with scores exp⟨B x, y⟩.
# What is left out is zero.  V and B may be a list of matrices, one for each head.
[parameters]
A = [[-0.5, 1.0], [-1.0, -0.5]]
V = [[1.0, 0.0], [0.0, 1.0]]
B = [[-0.5, 0.0], [0.2, -0.5]]
b = [0.1, 0.0]

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

[tokens]
horizon = 1.0
counts = [100, 400]          # numbers of tokens
seeds = 4                    # clouds of each
# seed = 0
# layers = 12                # residual layers of step horizon/layers instead of the flow
# observe = 21               # times of observation
# mask_self = false          # tokens do not attend to themselves
# antithetic = false         # draw tokens in opposite pairs
# moment_matched = false     # draw tokens whose mean and covariance are those of the start
# closure = false            # also the law corrected for each finite number of tokens
# shapes = 6                 # times at which it is tested whether the tokens are still Gaussian
# rtol = 1e-4                # of the integrator of the tokens; what it causes is measured

# What you expect of the result, if anything; the exit code is 1 if it does not come true.
[expect]
status = "SUCCESS"
verdict = "FOLLOWS"            # or "APPROACHES", "BIASED", "DEPARTS", "UNDECIDED"
# covariance_slope_at_most = -0.35   # of log error against log N; mean_slope, matched_slope
# covariance_slope_at_least = -0.8
# covariance_error_at_most = 0.05    # median, with most tokens; mean_error_at_most
# blow_up_time = {value = 1.0, relative = 1e-6}
# departure_at_least = 0.5           # median time, with most tokens; departure_at_most
# bound_kept = true                  # no token is longer than it can be
# clean = true                       # logits are clean all the time, with most tokens
# final_trace = {value = 1.0, relative = 0.1}   # total variance, median with most tokens
# closure_error_at_most = 0.05       # of its total variance, with most tokens
# stamp_contains = "clean"           # the words about attention at the start, with most tokens
"""

Verdicts = Literal["FOLLOWS", "APPROACHES", "BIASED", "DEPARTS", "UNDECIDED"]
Endings = Literal["SUCCESS", "OVERFLOW", "STEP_LIMIT", "STEP_SIZE"]

#: The bound on the tokens is kept up to rounding and the error of the integrator.
ROUNDING = 1e-3


class TokensTable(Table):
    """How many tokens, how they are drawn, and how they are watched."""

    horizon: Positive | None = None
    counts: Annotated[
        list[Annotated[int, Field(ge=2, description="a whole number that is at least 2")]],
        Field(min_length=1, description="an array of whole numbers that are at least 2"),
    ] = [200, 800, 3200]  # noqa: RUF012 - pydantic copies it
    seeds: Count = 8
    seed: Whole = 0
    layers: Count | None = None
    observe: Annotated[int, Field(ge=2, description="a whole number that is at least 2")] = 21
    mask_self: Flag = False
    antithetic: Flag = False
    moment_matched: Flag = False
    closure: Flag = False
    shapes: Whole = 6
    rtol: Annotated[
        float, Field(ge=1e-11, description="a number that is at least 1e-11", allow_inf_nan=False)
    ] = 1e-4
    max_steps: Count = 10_000


class TokensExpect(Expect):
    """What is expected of the clouds."""

    status: Endings | None = None
    verdict: Verdicts | None = None
    covariance_slope_at_most: Number | None = None
    covariance_slope_at_least: Number | None = None
    mean_slope_at_most: Number | None = None
    mean_slope_at_least: Number | None = None
    matched_slope_at_most: Number | None = None
    matched_slope_at_least: Number | None = None
    covariance_error_at_most: Positive | None = None
    mean_error_at_most: Positive | None = None
    blow_up_time: Approximate | None = None
    departure_at_least: Positive | None = None
    departure_at_most: Positive | None = None
    bound_kept: Flag | None = None
    clean: Flag | None = None
    final_trace: Approximate | None = None
    closure_error_at_most: Positive | None = None
    stamp_contains: Text | None = None


class TokensDocument(KindDocument):
    """A file of kind "tokens"."""

    kind: Literal["tokens"]
    start: GaussianTable
    parameters: ParametersTable | None = None
    piece: list[PieceTable] | None = None
    feedforward: FeedForwardTable | None = None
    tokens: TokensTable = TokensTable()
    expect: TokensExpect = TokensExpect()

    def prepare(self, source: Source) -> Task:
        """Build and check all values."""
        start = self.start.build("start", source.folder)
        schedule, horizon = build_schedule(
            self.parameters, self.piece or (), self.tokens.horizon, start.dim, "tokens"
        )
        t, layer = self.tokens, None
        if len(set(t.counts)) < len(t.counts):
            fail("tokens.counts", "holds the same number twice; give each once.")
        with located("`tokens.counts`"):
            for n in t.counts:
                start.require_draws(n, antithetic=t.antithetic, moment_matched=t.moment_matched)
        if self.feedforward is not None:
            layer = self.feedforward.build("`feedforward`", start.dim)
        return TokensTask(self.expect, source.name, start, schedule, horizon, self.tokens, layer)


DOCUMENT = TokensDocument


@dataclass(frozen=True)
class TokensTask(Task):
    """The clouds with their values."""

    expect: TokensExpect
    name: str
    start: Gaussian
    schedule: Schedule
    horizon: float
    table: TokensTable
    feedforward: FeedForward | None = None

    @property
    def about(self) -> str:
        """Kind, dimension, and numbers of tokens."""
        t = self.table
        form = "flow" if t.layers is None else f"{t.layers} layers"
        return (
            f"tokens, dimension {self.start.dim}, {form} on [0, {self.horizon:g}], "
            f"{t.seeds} clouds each of {', '.join(map(str, t.counts))} tokens"
        )

    def run(self, progress: Progress) -> Validation:
        """Move the clouds and the law."""
        from ...validation.run import validate  # the integrator is loaded only to run

        t = self.table
        return validate(
            self.start,
            self.schedule,
            self.horizon,
            counts=t.counts,
            seeds=t.seeds,
            rng=t.seed,
            layers=t.layers,
            observe=t.observe,
            mask_self=t.mask_self,
            feedforward=self.feedforward,
            antithetic=t.antithetic,
            moment_matched=t.moment_matched,
            closure=t.closure,
            shapes=t.shapes,
            rtol=t.rtol,
            max_steps=t.max_steps,
            progress=progress,
            name=self.name,
        )

    def observe(self, result: Validation) -> Mapping[str, Any]:
        """Values by the names that ``[expect]`` uses."""
        slopes = {
            "covariance_slope": result.covariance_slope,
            "mean_slope": result.mean_slope,
            "matched_slope": result.matched_slope,
        }
        last = result.errors[-1] if result.errors else None
        leaving = result.departures[-1] if result.departures else None
        most = len(result.problem.counts) - 1
        fullness = result.fullness
        return {
            "status": result.status.name,
            "verdict": result.verdict.name,
            **{key: None if s is None else s.value for key, s in slopes.items()},
            "covariance_error": None if last is None else last.covariance[1],
            "mean_error": None if last is None else last.mean[1],
            "blow_up_time": result.blow_up_time,
            "departure": None if leaving is None else leaving.time,
            "bound_kept": None if fullness is None else fullness <= 1 + ROUNDING,
            "clean": result.clean_until(most) > self.horizon,
            "final_trace": result.final_trace,
            "closure_error": result.closure_errors[-1] if result.closures else None,
            "stamp": result.stamps(most)[0].words,
        }

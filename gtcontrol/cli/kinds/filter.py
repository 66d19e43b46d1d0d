"""The kind "filter": attention as a Kalman-Bucy filter, beside python-control's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from ...gaussian import Gaussian
from ...problem.expectations import Expect
from ...problem.measurements import Measurements
from ...problem.messages import fail, located
from ...problem.recordings import read_measurements
from ...problem.schema import (
    Approximate,
    Count,
    Flag,
    Matrix,
    Number,
    Positive,
    Table,
    Text,
    Vector,
    Whole,
)
from ...problem.sources import GaussianTable
from ...progress import Progress
from ...results.filtering import FilterRun
from ...riccati_flow.kalman import KalmanModel
from .base import KindDocument, Source, Task

__all__ = ["ABOUT", "DOCUMENT", "TEMPLATE"]

ABOUT = "attention as a Kalman-Bucy filter: python-control, the flow, and actual tokens"

TEMPLATE = """\
# Filter measurements by attention, beside python-control's Kalman-Bucy filter.  Check this file
# with `gtcontrol check FILE`, run it with `gtcontrol run FILE`.  What is commented out shows the
# default or another way.

kind = "filter"
title = "A double integrator whose position is measured"
description = "What is filtered, in a few words."

# The system: dx = A x dt + dw, measured as dy = C x dt + dv, with intensities of the noises.
[model]
A = [[0.0, 1.0], [0.0, 0.0]]
C = [[1.0, 0.0]]
R = [[0.5]]                    # of the measurement noise v
# noise = [[0.0, 0.0], [0.0, 0.1]]   # of the process noise w, by default none

# What is known of the state at time 0.
[start]
mean = [0.0, 0.0]
covariance = [[0.5, 0.0], [0.0, 0.5]]

# Measurements drawn from a true state, in `steps` intervals of equal length.
[measurements]
horizon = 2.0
steps = 40
seed = 1
# state = [1.0, -1.0]          # the true state at time 0; by default drawn from the start
# forcing = [0.0, -1.0]        # known forcing f, x' = A x + f
# file = "y.csv"               # instead of steps and seed: rows of time and values (or .npy; .npz)

[filter]
tokens = [50, 200]             # numbers of tokens that are tried
seeds = 4                      # draws of each
# seed = 0
# value = 1.0                  # v of V = v I; a larger one makes finitely many tokens more exact
# centred = false              # take queries from the mean of the tokens
# antithetic = false           # draw tokens in opposite pairs
# moment_matched = false       # draw tokens whose mean and covariance are those of the start

# What you expect of the result, if anything; the exit code is 1 if it does not come true.
[expect]
status = "SUCCESS"
agreement_at_most = 1e-9       # of flow and python-control, relative
# mean_slope_at_most = -0.3    # of log error against log N; covariance_slope_at_most
# mean_slope_at_least = -0.7   # covariance_slope_at_least
# mean_error_at_most = 0.1     # of most tokens, in standard deviations; covariance_error_at_most
# white = true                 # innovations as small and as independent as they should be
# tilt = 0.5
"""

Endings = Literal["SUCCESS", "OVERFLOW", "UNDERFLOW", "DISAGREEMENT"]


class ModelTable(Table):
    """The system that is filtered; see :class:`gtcontrol.KalmanModel`."""

    A: Matrix
    C: Matrix
    R: Matrix | None = None
    noise: Matrix | None = None

    def build(self) -> KalmanModel:
        """Make the model."""
        with located("`model`"):
            return KalmanModel(self.A, self.C, self.R, self.noise)


class MeasurementsTable(Table):
    """Measurements, drawn from a seed or read from a file."""

    horizon: Positive | None = None
    steps: Count | None = None
    seed: Whole | None = None
    state: Vector | None = None
    forcing: Vector | None = None
    file: Text | None = None

    def build(self, model: KalmanModel, start: Gaussian, source: Source) -> Measurements:
        """Draw or read the measurements."""
        if self.file is not None:
            for name in ("steps", "seed", "state", "forcing"):
                if getattr(self, name) is not None:
                    fail(f"measurements.{name}", "does not go with `file`; leave it out.")
            return read_measurements("measurements.file", source.folder / self.file, self.horizon)
        for name in ("horizon", "steps", "seed"):
            if getattr(self, name) is None:
                fail(f"measurements.{name}", "is missing; give it, or a `file`.")
        from ...comparison.filtering.measurements import simulate_measurements

        rng = np.random.default_rng(self.seed)
        state = start.sample(1, rng)[0] if self.state is None else self.state
        with located("`measurements`"):
            return simulate_measurements(
                model, state, self.horizon or 0.0, self.steps or 0, rng, forcing=self.forcing
            )


class FilterTable(Table):
    """How many tokens, and how they are drawn and attend."""

    tokens: Annotated[
        list[Annotated[int, Field(ge=2, description="a whole number that is at least 2")]],
        Field(min_length=1, description="an array of whole numbers that are at least 2"),
    ] = [200, 1000, 4000]  # noqa: RUF012 - pydantic copies it
    seeds: Count = 8
    seed: Whole = 0
    value: Number = 1.0
    centred: Flag = False
    antithetic: Flag = False
    moment_matched: Flag = False


class FilterExpect(Expect):
    """What is expected of the filter."""

    status: Endings | None = None
    agreement_at_most: Positive | None = None
    mean_slope_at_most: Number | None = None
    mean_slope_at_least: Number | None = None
    covariance_slope_at_most: Number | None = None
    covariance_slope_at_least: Number | None = None
    mean_error_at_most: Positive | None = None
    covariance_error_at_most: Positive | None = None
    white: Flag | None = None
    tilt: Approximate | None = None


class FilterDocument(KindDocument):
    """A file of kind "filter"."""

    kind: Literal["filter"]
    model: ModelTable
    start: GaussianTable
    measurements: MeasurementsTable
    filter: FilterTable = FilterTable()
    expect: FilterExpect = FilterExpect()

    def prepare(self, source: Source) -> Task:
        """Build and check all values."""
        from ...comparison.filtering.flow import check_problem

        model = self.model.build()
        start = self.start.build("start", source.folder)
        if start.dim != model.dim:
            fail("start", f"has dimension {start.dim}, but `model` has {model.dim} states.")
        measurements = self.measurements.build(model, start, source)
        check_problem(model, start, measurements)
        return FilterTask(self.expect, source.name, model, start, measurements, self.filter)


DOCUMENT = FilterDocument


@dataclass(frozen=True)
class FilterTask(Task):
    """The filtering problem with its values."""

    expect: FilterExpect
    name: str
    model: KalmanModel
    start: Gaussian
    measurements: Measurements
    table: FilterTable

    @property
    def about(self) -> str:
        """Kind, dimensions, and numbers of tokens."""
        y = self.measurements
        return (
            f"filter, dimension {self.model.dim}, {y.values.shape[1]} measured in {len(y)} "
            f"intervals on [0, {y.horizon:g}], {', '.join(map(str, self.table.tokens))} tokens"
        )

    def run(self, progress: Progress) -> FilterRun:
        """Filter by python-control, by the flow, and by tokens."""
        from ...comparison.filtering.run import filter_by_attention  # loaded only to run

        table = self.table
        return filter_by_attention(
            self.model,
            self.start,
            self.measurements,
            tokens=table.tokens,
            seeds=table.seeds,
            rng=table.seed,
            value=table.value,
            centred=table.centred,
            antithetic=table.antithetic,
            moment_matched=table.moment_matched,
            progress=progress,
            name=self.name,
        )

    def observe(self, result: FilterRun) -> Mapping[str, Any]:
        """Values by the names that ``[expect]`` uses."""
        errors = result.token_errors
        slopes = result.mean_slope, result.covariance_slope
        return {
            "status": result.status.name,
            "agreement": result.agreement,
            "mean_slope": None if slopes[0] is None else slopes[0].median,
            "covariance_slope": None if slopes[1] is None else slopes[1].median,
            "mean_error": errors[-1].mean.median if errors else None,
            "covariance_error": errors[-1].covariance.median if errors else None,
            "white": result.consistency.white,
            "tilt": result.tilt,
        }

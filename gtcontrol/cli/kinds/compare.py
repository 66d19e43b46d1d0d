"""The kind "compare": the covariance flow beside the Riccati solvers of control theory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...gaussian import Gaussian
from ...parameters import Parameters
from ...problem.expectations import Expect
from ...problem.messages import fail
from ...problem.schema import Approximate, ApproximateArray, Number, Positive, Table, Text, Whole
from ...problem.sources import GaussianTable
from ...problem.tables import ModelTable, ParametersTable
from ...progress import Progress
from ...results.comparison import Comparison
from ...riccati_flow.kalman import KalmanModel
from .base import KindDocument, Source, Task

__all__ = ["ABOUT", "DOCUMENT", "TEMPLATE"]

ABOUT = "what do Riccati solvers say of the covariance, and who is right?"

TEMPLATE = """\
# Where does the error covariance of a Kalman filter tend, and what do the Riccati solvers of
# python-control, SciPy and slycot say?  Check this file with `gtcontrol check FILE`, answer it
# with `gtcontrol run FILE`.  What is commented out shows the default or another way.

kind = "compare"
title = "The filter of an unstable oscillator"
description = "What is asked, in a few words."

# The system dx = A x dt + dw, dy = C x dt + dv, with intensities `noise` of w and R of v.  Its
# covariance obeys S' = A S + S Aᵀ - S Cᵀ R⁻¹ C S + noise, as under attention with V = v I and
# v (B + Bᵀ) = -Cᵀ R⁻¹ C.
[model]
A = [[0.2, 1.0], [-1.0, 0.2]]
C = [[1.0, 0.0]]
# R = [[1.0]]                           # by default the identity
# noise = [[0.01, 0.0], [0.0, 0.01]]    # process noise, by default none

# Instead of [model], parameters whose V is a multiple of the identity; where v (B + Bᵀ) has a
# positive eigenvalue this is no filter, and the covariance may blow up.
# [parameters]
# A = [[0.2, 1.0], [-1.0, 0.2]]
# V = [[1.0, 0.0], [0.0, 1.0]]
# B = [[-0.5, 0.0], [0.0, 0.0]]

# The law at time 0, of any rank; without this table the question is about full-rank starts.
# [start]
# mean = [0.0, 0.0]
# covariance = [[1.0, 0.0], [0.0, 1.0]]

[compare]
# horizon = 10.0        # time to which the flow is followed; by default long enough

# What you expect of the answer, if anything; the exit code is 1 if it does not come true.
[expect]
verdict = "CONVERGES"   # MARGINAL, CONTINUUM, PERIODIC, UNBOUNDED, BLOWS_UP or UNDECIDED
# limit = [[0.8, 0.16], [0.16, 0.8]]
# rank = 2
# scipy = "right"       # "right for full rank", "wrong", "no answer", "rightly refused"
"""

Verdicts = Literal[
    "CONVERGES", "MARGINAL", "CONTINUUM", "PERIODIC", "UNBOUNDED", "BLOWS_UP", "UNDECIDED"
]

Findings = Literal["right", "right for full rank", "wrong", "no answer", "rightly refused"]


class CompareExpect(Expect):
    """What is expected of the comparison."""

    verdict: Verdicts | None = None
    limit: ApproximateArray | None = None
    full_rank: ApproximateArray | None = None
    final: ApproximateArray | None = None
    rank: Whole | None = None
    rate: Approximate | None = None
    period: Approximate | None = None
    blow_up_time: Approximate | None = None
    agreement_at_least: Number | None = None
    scipy: Findings | None = None
    care: Findings | None = None
    lqe: Findings | None = None
    reason_contains: Text | None = None


class CompareTable(Table):
    """How the comparison is made."""

    horizon: Positive | None = None


class CompareDocument(KindDocument):
    """A file of kind "compare"."""

    kind: Literal["compare"]
    model: ModelTable | None = None
    parameters: ParametersTable | None = None
    start: GaussianTable | None = None
    compare: CompareTable = CompareTable()
    expect: CompareExpect = CompareExpect()

    def prepare(self, source: Source) -> Task:
        """Build and check all values."""
        if (self.model is None) == (self.parameters is None):
            came = "are both missing" if self.model is None else "are both given"
            fail("model", f"and `[parameters]` {came}; give one of them.")
        made: KalmanModel | Parameters
        if self.model is not None:
            made = self.model.build("`model`")
        else:
            made = (self.parameters or ParametersTable()).build("`parameters`")
        start = None if self.start is None else self.start.build("start", source.folder)
        if start is not None and start.dim != made.dim:
            fail("start", f"has dimension {start.dim}, but the model has {made.dim}.")
        return CompareTask(self.expect, source.name, made, start, self.compare.horizon)


DOCUMENT = CompareDocument


@dataclass(frozen=True)
class CompareTask(Task):
    """The question with its values."""

    expect: CompareExpect
    name: str
    model: KalmanModel | Parameters
    start: Gaussian | None
    horizon: float | None

    @property
    def about(self) -> str:
        """Kind, dimension, and which starts."""
        start = "full-rank starts" if self.start is None else f"a start of rank {self.start.rank}"
        noise = ", process noise" if self.model.noise is not None else ""
        return f"compare, dimension {self.model.dim}{noise}, {start}"

    def run(self, progress: Progress) -> Comparison:
        """Decide where the covariance tends, and ask the other solvers."""
        from ...comparison.kalman.run import compare  # solvers are loaded only to run

        return compare(
            self.model, start=self.start, horizon=self.horizon, progress=progress, name=self.name
        )

    def observe(self, result: Comparison) -> Mapping[str, Any]:
        """Values by the names that ``[expect]`` uses."""
        limit = result.limit
        return {
            "verdict": result.verdict.name,
            "limit": None if limit is None else limit.covariance,
            "full_rank": result.full_rank,
            "final": result.final,
            "rank": None if limit is None else limit.rank,
            "rate": result.rate,
            "period": result.period,
            "blow_up_time": 0.5 * result.lower + 0.5 * result.upper,
            "agreement": result.agreement,
            "scipy": result.row("SciPy").finding,
            "care": result.row("control.care").finding,
            "lqe": result.row("control.lqe").finding,
            "reason": result.reason,
        }

"""The kind "design": the constant parameters that make a given Gaussian attracting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...certification.design.request import Wishes, pose
from ...parameters import Parameters
from ...problem import memory
from ...problem.bounds import Bounds
from ...problem.definitions import DesignProblem
from ...problem.expectations import Expect
from ...problem.messages import fail, located
from ...problem.schema import (
    ApproximateArray,
    Flag,
    Matrix,
    NonNegative,
    Number,
    Positive,
    Table,
    Whole,
)
from ...problem.sources import GaussianTable
from ...problem.tables import LetterTable
from ...progress import Progress
from ...results.design import Design
from .base import KindDocument, Source, Task

__all__ = ["ABOUT", "DOCUMENT", "TEMPLATE"]

ABOUT = "which constant parameters make a given Gaussian attracting?"

TEMPLATE = """\
# Which constant Transformer parameters make this Gaussian attracting?  Check this file with
# `gtcontrol check FILE`, answer it with `gtcontrol run FILE`, and check the guarantee again,
# without any solver, with `gtcontrol verify runs/NAME`.  What is commented out shows the
# default or another way.

kind = "design"
title = "An attracting Gaussian"
description = "What is designed, in a few words."

# The law that is to attract: a mean, and a covariance or a factor L (covariance L Lᵀ), also of
# a rank below the dimension.
[target]
mean = [1.0, -1.0]
covariance = [[2.0, 0.5], [0.5, 1.0]]

[design]
# method = "auto"            # or "closed-form", "lmi"
rate = 2.0                   # of the covariance, at least
# mean_rate = 1.0            # of the mean, at least
# multiple = -1.0            # V is this multiple of the identity ...
# V = [[-1.0, 0.2], [0.0, -1.5]]   # ... or this: attraction is then local
# complement = [[0.0], [1.0]]      # of a singular target: directions in which variance vanishes
# checks = 8                 # simulations from random starts
# seed = 0

# [design.bounds]
# entries = {A = 2.0, b = 5.0}
# norms = {B = 3.0}

# A and B are then the nearest to these that make the target attracting.
# [near]
# A = [[1.0, 0.0], [0.0, 1.0]]
# B = [[0.5, 0.0], [0.0, 1.0]]

# What you expect of the result, if anything; the exit code is 1 if it does not come true.
[expect]
status = "SUCCESS"
proved = true
rate_at_least = 2.0
# distance_at_most = 1e-6    # of the simulations at their end, relative to the target
"""


#: Matrices of the order of the dimension that a design holds.
MATRICES = 60


class LimitsTable(Table):
    """Bounds on the parameters."""

    entries: LetterTable = LetterTable()
    norms: LetterTable = LetterTable()


class NearTable(Table):
    """Parameters from which the design should differ little."""

    A: Matrix | None = None
    B: Matrix | None = None


class DesignTable(Table):
    """The arguments of :func:`gtcontrol.design`."""

    method: Literal["auto", "closed-form", "lmi"] = "auto"
    V: Matrix | None = None
    multiple: Number | None = None
    rate: Positive | None = None
    mean_rate: Positive | None = None
    bounds: LimitsTable = LimitsTable()
    complement: Matrix | None = None
    checks: Whole | None = None
    seed: Whole = 0


class DesignExpect(Expect):
    """What is expected of the design."""

    status: Literal["SUCCESS", "UNCONFIRMED"] | None = None
    proved: Flag | None = None
    rate_at_least: Positive | None = None
    mean_rate_at_least: Positive | None = None
    distance_at_most: NonNegative | None = None
    radius_at_least: Positive | None = None
    A: ApproximateArray | None = None
    B: ApproximateArray | None = None
    V: ApproximateArray | None = None
    b: ApproximateArray | None = None


class DesignDocument(KindDocument):
    """A file of kind "design"."""

    kind: Literal["design"]
    target: GaussianTable
    design: DesignTable = DesignTable()
    near: NearTable | None = None
    expect: DesignExpect = DesignExpect()

    def prepare(self, source: Source) -> Task:
        """Build and check all values."""
        target = self.target.build("target", source.folder)
        t = self.design
        if t.V is not None and t.multiple is not None:
            fail("design.multiple", "and `design.V` are both given; give one of them.")
        memory.require(f"a design in dimension {target.dim}", MATRICES * float(target.dim) ** 2)
        near = None
        if self.near is not None:
            with located("`near`"):
                near = Parameters(A=self.near.A, B=self.near.B, dim=target.dim)
        with located("`design`"):
            problem = pose(
                target,
                Wishes(
                    method=t.method,
                    V=t.V if t.multiple is None else t.multiple,
                    rate=t.rate,
                    mean_rate=t.mean_rate,
                    bounds=Bounds(t.bounds.entries.build(), t.bounds.norms.build()),
                    near=near,
                    complement=t.complement,
                    checks=t.checks,
                    seed=t.seed,
                    name=source.name,
                ),
            )
        return DesignTask(self.expect, problem)


DOCUMENT = DesignDocument


@dataclass(frozen=True)
class DesignTask(Task):
    """The question with its values."""

    expect: DesignExpect
    problem: DesignProblem

    @property
    def about(self) -> str:
        """Kind, dimension and rank."""
        target = self.problem.target
        return f"design, dimension {target.dim}, rank {target.rank}"

    def run(self, progress: Progress) -> Design:
        """Find the parameters, check the guarantee, and simulate."""
        from ...certification.design.run import solve  # the integrator is loaded only to run

        return solve(self.problem, progress)

    def observe(self, result: Design) -> Mapping[str, Any]:
        """Values by the names that ``[expect]`` uses."""
        p, seen = result.parameters, result.confirmation
        return {
            "status": result.status.name,
            "proved": result.proved,
            "rate": result.rate,
            "mean_rate": result.mean_rate,
            "distance": None if seen is None else seen.worst,
            "radius": result.claims[0].numbers.get("radius"),
            "A": p.A,
            "B": p.B,
            "V": p.V,
            "b": p.b,
        }

"""The kind "reach": whether the target can be reached from the start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...gaussian import Gaussian
from ...problem.bounds import parse_controls
from ...problem.expectations import Expect
from ...problem.messages import located
from ...problem.schema import Approximate, Flag, Table, Text
from ...problem.sources import GaussianTable, end_points
from ...progress import Progress
from ...results.reachability import Reachability
from ...steering.exact.reachability import reachable
from .base import KindDocument, Source, Task

__all__ = ["ABOUT", "DOCUMENT", "TEMPLATE"]

ABOUT = "can one Gaussian be carried to another, and if not, what is the nearest that can?"

TEMPLATE = """\
# Can the target be reached from the start?  Check this file with `gtcontrol check FILE`,
# answer it with `gtcontrol run FILE`.  What is commented out shows the default.

kind = "reach"
title = "Can this Gaussian be reached?"
description = "What is asked, in a few words."

# The law of the tokens at time 0: a mean, and a covariance ...
[start]
mean = [0.0, 0.0]
covariance = [[2.0, 0.5], [0.5, 1.0]]

# ... or a factor L with independent columns, so that the covariance is L Lᵀ.  Its columns
# are the rank, which no control can change: here it is 1, so the answer is no.
[target]
mean = [1.0, 1.0]
factor = [[1.0], [0.5]]
# file = "laws/target.npz"   # instead: an NPZ file with `mean` and `covariance` or `factor`
# generate = {dim = 768, rank = 4, seed = 1, spread = 10.0, mean_scale = 1.0, scale = 1.0}

[reach]
# controls = "AVBb"          # the enabled parameters, any subset of A, V, B and b

# What you expect of the answer, if anything; the exit code is 1 if it does not come true.
[expect]
reachable = false
reason_contains = "rank"
# distance = {value = 0.7, relative = 1e-2}
"""


class ReachTable(Table):
    """How the target may be reached."""

    controls: Text = "AVBb"


class ReachExpect(Expect):
    """What is expected of the answer."""

    reachable: Flag | None = None
    distance: Approximate | None = None
    attained: Flag | None = None
    reason_contains: Text | None = None


class ReachDocument(KindDocument):
    """A file of kind "reach"."""

    kind: Literal["reach"]
    start: GaussianTable
    target: GaussianTable
    reach: ReachTable = ReachTable()
    expect: ReachExpect = ReachExpect()

    def prepare(self, source: Source) -> Task:
        """Build and check all values."""
        start, target = end_points(self.start, self.target, source.folder)
        with located("`reach.controls`"):
            controls = parse_controls(self.reach.controls)
        return ReachTask(self.expect, source.name, start, target, controls)


DOCUMENT = ReachDocument


@dataclass(frozen=True)
class ReachTask(Task):
    """The question with its values."""

    expect: ReachExpect
    name: str
    start: Gaussian
    target: Gaussian
    controls: str

    @property
    def about(self) -> str:
        """Kind, dimension and ranks."""
        return (
            f"reach, dimension {self.start.dim}, rank {self.start.rank} to {self.target.rank}, "
            f"controls {self.controls}"
        )

    def run(self, progress: Progress) -> Reachability:
        """Decide it in closed form."""
        progress(0.0, "deciding")
        answer = reachable(self.start, self.target, self.controls)
        return replace(answer, problem=replace(answer.problem, name=self.name))

    def observe(self, result: Reachability) -> Mapping[str, Any]:
        """Values by the names that ``[expect]`` uses."""
        return {
            "reachable": result.reachable,
            "distance": result.distance,
            "attained": result.attained,
            "reason": result.reason,
        }

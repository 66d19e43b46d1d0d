"""The kind "certify": what the covariance does under constant parameters, with proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...gaussian import Gaussian
from ...parameters import Parameters
from ...problem import memory
from ...problem.expectations import Expect
from ...problem.messages import fail
from ...problem.schema import Approximate, Flag, Positive, Text
from ...problem.sources import GaussianTable
from ...problem.tables import ParametersTable
from ...progress import Progress
from ...results.certificate import Certificate
from .base import KindDocument, Source, Task

__all__ = ["ABOUT", "DOCUMENT", "TEMPLATE"]

ABOUT = "does the covariance converge, stay bounded or blow up under constant parameters?"

TEMPLATE = """\
# What does the covariance do in the long run?  Check this file with `gtcontrol check FILE`,
# answer it with `gtcontrol run FILE`, and check the certificate again, without any solver,
# with `gtcontrol verify runs/NAME`.  What is commented out shows the default or another way.

kind = "certify"
title = "Does the covariance stay bounded?"
description = "What is asked, in a few words."

# Constant parameters: S' = M S + S Mᵀ with M = A + V S B (plus noise).
# What is left out is zero.  V and B may be a list of matrices, one for each head.
[parameters]
A = [[0.5, 1.0], [-1.0, 0.5]]
V = [[1.0, 0.5], [0.0, 1.0]]
B = [[-1.0, 0.0], [0.5, -1.0]]
# b = [0.1, 0.0]
# noise = [[0.01, 0.0], [0.0, 0.01]]   # process noise: the rank is then not conserved

# Instead of [parameters], a family: parameters that vary in time, arbitrarily, within the
# convex hull of these.
# [[vertex]]
# A = [[0.5, 1.0], [-1.0, 0.5]]
# V = [[1.0, 0.5], [0.0, 1.0]]
# B = [[-1.0, 0.0], [0.5, -1.0]]

# The law at time 0; without this table the question is about all starts.
# [start]
# mean = [0.0, 0.0]
# covariance = [[1.0, 0.0], [0.0, 1.0]]

# What you expect of the answer, if anything; the exit code is 1 if it does not come true.
[expect]
verdict = "BOUNDED"     # CONVERGES, BOUNDED, BLOWS_UP, BLOW_UP_DATA_EXIST, LOCALLY_STABLE, ...
proved = true
# blow_up_time = {value = 0.5, relative = 1e-9}
# bound_at_most = 10.0
# statement_contains = "rank 2"
"""

Verdicts = Literal[
    "CONVERGES",
    "BOUNDED",
    "BLOWS_UP",
    "UNBOUNDED",
    "BLOW_UP_DATA_EXIST",
    "LOCALLY_STABLE",
    "MARGINAL",
    "UNDECIDED",
]


class CertifyExpect(Expect):
    """What is expected of the certificate."""

    verdict: Verdicts | None = None
    proved: Flag | None = None
    blow_up_time: Approximate | None = None
    bound_at_most: Positive | None = None
    statement_contains: Text | None = None


class CertifyDocument(KindDocument):
    """A file of kind "certify"."""

    kind: Literal["certify"]
    parameters: ParametersTable | None = None
    vertex: list[ParametersTable] | None = None
    start: GaussianTable | None = None
    expect: CertifyExpect = CertifyExpect()

    def prepare(self, source: Source) -> Task:
        """Build and check all values."""
        vertices = self._vertices()
        start = None if self.start is None else self.start.build("start", source.folder)
        if start is not None and start.dim != vertices[0].dim:
            fail(
                "start",
                f"has dimension {start.dim}, but the parameters have {vertices[0].dim}.",
            )
        return CertifyTask(self.expect, source.name, vertices, start)

    def _vertices(self) -> tuple[Parameters, ...]:
        if (self.parameters is None) == (not self.vertex):
            came = "are both given" if self.vertex else "are both missing"
            fail("parameters", f"and `[[vertex]]` {came}; give one of them.")
        if self.parameters is not None:
            return (self.parameters.build("`parameters`"),)
        tables = self.vertex or []
        made = [table.build(f"`vertex[{i}]`") for i, table in enumerate(tables)]
        for i, vertex in enumerate(made):
            if vertex.dim != made[0].dim:
                fail(f"vertex[{i}]", f"has dimension {vertex.dim}; the first has {made[0].dim}.")
        memory.require("the vertices", sum(3.0 * len(p.heads) * p.dim**2 for p in made))
        return tuple(made)


DOCUMENT = CertifyDocument


@dataclass(frozen=True)
class CertifyTask(Task):
    """The question with its values."""

    expect: CertifyExpect
    name: str
    vertices: tuple[Parameters, ...]
    start: Gaussian | None

    @property
    def about(self) -> str:
        """Kind, dimension, and which starts."""
        p = self.vertices[0]
        start = "all starts" if self.start is None else f"a start of rank {self.start.rank}"
        family = f", {len(self.vertices)} vertices" if len(self.vertices) > 1 else ""
        heads = f", {len(p.heads)} heads" if len(p.heads) > 1 else ""
        return f"certify, dimension {p.dim}{heads}{family}, {start}"

    def run(self, progress: Progress) -> Certificate:
        """Climb from closed forms to matrix inequalities."""
        from ...certification.run import certify  # solvers are loaded only to run

        return certify(self.vertices, self.start, progress=progress, name=self.name)

    def observe(self, result: Certificate) -> Mapping[str, Any]:
        """Values by the names that ``[expect]`` uses."""
        return {
            "verdict": result.verdict.name,
            "proved": result.proved,
            "blow_up_time": result.blow_up_time,
            "bound": result.bound,
            "statement": result.statement,
        }

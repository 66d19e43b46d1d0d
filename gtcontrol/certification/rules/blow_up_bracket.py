"""The blow-up time of a start, between two bounds from an integration in balls.

The covariance is integrated in balls by Taylor steps, each of which proves that the solution
exists and where it is (`arithmetic.taylor`).  From the covariance at the last time on, either
an invariant cone around an attracting ray bounds the rest of the time from both sides
(`certification.bracket.rays`), or a left eigenvector of the value matrix bounds it from above
(`certification.bracket.spectral`).
"""

from __future__ import annotations

import math
from typing import ClassVar

from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from ..bracket.covariance import SingularCoordinates
from ..bracket.plan import Bracket, Plan, replay
from ..bracket.reduction import reduced
from ..bracket.restart import Eigenvector, Ray
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .course import read_course, whole

__all__ = ["BlowUpBracket", "claim_of"]


def claim_of(plan: Plan, bracket: Bracket) -> Claim:
    """Claim that a bracket is proved by the replay of a plan."""
    arrays = {"coordinates": plan.coordinates, "steps": plan.steps}
    if plan.ray is not None:
        ray = plan.ray
        arrays |= {"ray": ray.ray, "functional": ray.functional, "frame": ray.frame}
    for i, one in enumerate(plan.eigenvectors):
        arrays |= {f"eigenvector {i}": one.vector, f"eigenvalues {i}": one.values}
    numbers = {
        "lower": bracket.lower,
        "upper": bracket.upper,
        "bits": float(plan.bits),
        "order": float(plan.order),
        "eigenvectors": float(len(plan.eigenvectors)),
    }
    return Claim("blow-up-bracket", numbers=numbers, arrays=arrays)


class BlowUpBracket(Rule):
    """Integration in balls up to a time near the blow-up, and bounds on the rest."""

    name: ClassVar[str] = "blow-up-bracket"
    theorem: ClassVar[str] = "Taylor steps in balls, then bounds on the rest: T* from both sides"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Integrate again in balls, and compare the ends of the bracket."""
        if problem.start is None or len(problem.vertices) != 1:
            raise Refuted("a bracket is about one start under constant parameters")
        lower, upper = number(claim, "lower"), number(claim, "upper")
        if not 0 <= lower <= upper < math.inf:
            raise Refuted(f"the bracket [{lower!r}, {upper!r}] is not an interval of times")
        parameters, factor = reduced(problem.parameters, problem.start.factor)
        try:
            found = replay(parameters, factor, _read(parameters, claim))
        except SingularCoordinates as error:
            raise Refuted(str(error)) from None
        if found is None:
            raise Refuted("the balls of the integration grow until nothing is enclosed")
        if not found.proved:
            raise Refuted("at the end of the steps no theorem proves that the covariance blows up")
        if lower > found.lower:
            raise Refuted(f"only {found.lower!r} is proved from below, not {lower!r}")
        if upper < found.upper:
            raise Refuted(f"only {found.upper!r} is proved from above, not {upper!r}")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say when the start blows up."""
        lower, upper = number(claim, "lower"), number(claim, "upper")
        text = (
            "The covariance of this start blows up in finite time, at a time T* in "
            f"[{lower!r}, {upper!r}]."
        )
        return Statement(Verdict.BLOWS_UP, Scope.THIS_START, text, lower=lower, upper=upper)


def _read(parameters: Parameters, claim: Claim) -> Plan:
    """Read the plan of a claim, with every shape and size checked."""
    d, heads = parameters.dim, len(parameters.heads)
    course = read_course(claim, d)
    count = whole(claim, "eigenvectors", 0, d)
    size = d * (d + 1) // 2
    ray = None
    if "ray" in claim.arrays:
        ray = Ray(
            matrix(claim, "ray", size),
            matrix(claim, "functional", size),
            matrix(claim, "frame", size, size - 1),
        )
    eigenvectors = tuple(
        Eigenvector(
            matrix(claim, f"eigenvector {i}", d, 2), matrix(claim, f"eigenvalues {i}", heads, 2)
        )
        for i in range(count)
    )
    return Plan(course.bits, course.order, course.coordinates, course.steps, ray, eigenvectors)

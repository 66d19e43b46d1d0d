"""A start that is captured: it enters the region of attraction of an equilibrium.

The covariance is integrated in balls by Taylor steps, each of which proves that the solution
exists and where it is (`arithmetic.taylor`).  At the end of the steps it lies in a region that
:mod:`.local_stability` proves to be attracted.  So it exists for all times and converges, at the
local rate from then on; it never blows up.  What the rule of stability proves of the mean
(:mod:`.mean_stability`) holds from that time on, too, up to which the mean obeys a linear equation.

Coordinates that the covariance never reaches are left out (`bracket.reduction`): an equilibrium
that repels other covariances may attract those that have no variance there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._check import Array
from ...arithmetic import balls
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from ..bracket.covariance import CovarianceFlow, SingularCoordinates
from ..bracket.plan import follow, start_tube
from ..bracket.reduction import reached, reduced
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .course import Course, read_course
from .local_stability import check_stability, describe_equilibrium
from .mean_refusal import refusal
from .mean_stability import check_mean
from .neighbourhood import BITS
from .wording import rounded_down, rounded_up

__all__ = ["CapturedStart", "claim_of", "describe_limit", "enclose_end"]

# FLINT has no stubs.
Balls = Any


def claim_of(name: str, stable: Claim, course: Course, arrival: float) -> Claim:
    """Claim that a start is captured.

    Parameters
    ----------
    name : str
        Of the rule, such as ``CapturedStart.name``.
    stable : Claim
        Data of the region: of the rule "local-stability" or "mean-stability", in the coordinates
        that are reached, for "captured-start".
    course : Course
        From the start into the region.
    arrival : float
        Bound on the distance from the equilibrium at the end, in the metric of the region.
    """
    numbers = {key: x for key, x in stable.numbers.items() if key != "distance"}
    numbers |= {"bits": float(course.bits), "order": float(course.order), "arrival": arrival}
    arrays = {**stable.arrays, "coordinates": course.coordinates, "steps": course.steps}
    return Claim(name, numbers=numbers, arrays=arrays)


class CapturedStart(Rule):
    """A start that converges, as it enters a region of attraction.

    Numbers and arrays: those of the rule "local-stability", and of "mean-stability" if the mean is
    attracted; ``bits``, ``order``, ``coordinates`` and ``steps`` of the integration; ``arrival``
    (bound on |y - y*| at its end).
    """

    name = "captured-start"
    theorem = "integration in balls into the region of attraction of an equilibrium"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check the region, integrate again in balls, and compare the distance at the end."""
        if problem.start is None or len(problem.vertices) != 1:
            raise Refuted("a start is captured, or not, under constant parameters")
        parameters, factor = reduced(problem.parameters, problem.start.factor)
        course = read_course(claim, parameters.dim)
        inner = CertificationProblem((parameters,))
        with balls.precision(BITS):
            near = check_stability(inner, claim)
            if "mean metric" in claim.arrays:
                if parameters.dim < problem.dim:
                    raise Refuted("the mean is not that of the coordinates that are reached")
                check_mean(problem, claim, near)
        covariance = enclose_end(parameters, factor, course)
        arrival = number(claim, "arrival")
        with balls.precision(BITS):
            found = balls.ball(near.distance(covariance)) + number(claim, "error")
            if not found <= arrival:
                raise Refuted(f"at the end the equilibrium is not within {arrival!r}")
        if not arrival < number(claim, "radius"):
            raise Refuted("at the end the start is outside the region of attraction")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say where the start goes, and how fast from when on."""
        rate, arrival = number(claim, "rate"), number(claim, "arrival")
        steps = claim.arrays["steps"]
        time = math.nextafter(math.fsum(steps.tolist()), math.inf)
        since = f"From t = {rounded_up(time, 4)} on" if steps.size else "From the beginning"
        speed = rate * (1.0 - number(claim, "cubic") * arrival)
        text = (
            f"The covariance of this start converges to the equilibrium "
            f"{describe_limit(problem, claim).rstrip(',')}. "
            f"{since} it is in the region of attraction and approaches at the rate "
            f"{rounded_down(max(speed, 0.0))} or more, in the end at {rounded_down(rate)} or more."
        )
        if "mean metric" in claim.arrays:
            mean = ", ".join(f"{x:.6g}" for x in claim.arrays["mean"][:6])
            more = ", ..." if problem.dim > 6 else ""
            text += (
                f" Every mean then tends to ({mean}{more}), in the end at any rate below the "
                f"slower of this one and {rounded_down(number(claim, 'mean rate'))}."
            )
        elif int(number(claim, "rank")) == problem.dim:
            text = f"{text} {refusal(problem.parameters)}".strip()
        top = math.inf
        return Statement(Verdict.CONVERGES, Scope.THIS_START, text, lower=top, upper=top)


def describe_limit(problem: CertificationProblem, claim: Claim) -> str:
    """Equilibrium of a claim in words, in all coordinates."""
    rank = int(number(claim, "rank"))
    factor = np.zeros((problem.dim, rank))
    start = problem.start
    if start is None:
        raise Refuted("the claim is about a start, but the problem has none")
    kept = reached(problem.parameters, start.factor)
    size = int(kept.sum())
    factor[kept] = matrix(claim, "frame", size, size)[:, :rank]
    return describe_equilibrium(factor)


def enclose_end(parameters: Parameters, factor: Array, course: Course) -> Balls:
    """Enclose the covariance at the end of a course.

    Parameters
    ----------
    parameters : Parameters
        Constant parameters of dimension d, as `bracket.reduction.reduced` returns them.
    factor : (d, r) array
        Factor of the covariance at time 0.
    course : Course

    Raises
    ------
    Refuted
        If the coordinates are not proved to be independent, or a step is not proved.
    """
    with balls.precision(course.bits):
        try:
            flow = CovarianceFlow(parameters, course.coordinates)
        except SingularCoordinates as error:
            raise Refuted(str(error)) from None
        end = follow(flow, start_tube(flow, factor), course.order, course.steps)
        if end is None:
            raise Refuted("the balls of the integration grow until nothing is enclosed")
        return flow.original(end[0].matrix)

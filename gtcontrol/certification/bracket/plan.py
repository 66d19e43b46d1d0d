"""A plan of the integration in balls, and its replay, which proves a bracket of the blow-up time.

A plan holds floats only (steps, order, precision, data of the bounds at the end).  The replay
starts from the exact floats of the problem and trusts none of the plan's numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._check import Array
from ...arithmetic import balls, taylor
from ...arithmetic.taylor import Tube
from ...parameters import Parameters
from .covariance import CovarianceFlow
from .restart import Eigenvector, Ray, Restart, build_restart

__all__ = [
    "LARGEST_DIM",
    "MOST_BITS",
    "MOST_ORDER",
    "MOST_STEPS",
    "MOST_WORK",
    "Bracket",
    "Plan",
    "follow",
    "order_for",
    "replay",
    "start_tube",
    "to_floats",
    "work",
]

# FLINT has no stubs.
Ball = Any

#: Limits that keep a replay in seconds.
LARGEST_DIM = 8
MOST_STEPS = 1500
MOST_ORDER = 400
MOST_BITS = 1024

#: Most work, in multiplications of balls as :func:`work` counts them: some 10 seconds.
MOST_WORK = 2e8


@dataclass(frozen=True)
class Bracket:
    """Proved bounds on the blow-up time; `upper` is inf if only the lower one is proved."""

    lower: float
    upper: float

    @property
    def proved(self) -> bool:
        """Whether the blow-up itself is proved."""
        return self.upper < math.inf

    @property
    def width(self) -> float:
        """Width relative to the upper end."""
        return (self.upper - self.lower) / self.upper if self.proved else math.inf


@dataclass(frozen=True, eq=False)
class Plan:
    """How to prove a bracket.

    Parameters
    ----------
    bits, order : int
        Precision, and order of the Taylor polynomials.
    coordinates : (d, d) array
        Matrix of the coordinates in which norms are taken.
    steps : (n,) array
        Lengths of the steps, meant exactly.
    ray : Ray, optional
    eigenvectors : tuple of Eigenvector
    """

    bits: int
    order: int
    coordinates: Array
    steps: Array = field(default_factory=lambda: np.zeros(0))
    ray: Ray | None = None
    eigenvectors: tuple[Eigenvector, ...] = ()

    def restart(self, parameters: Parameters, flow: CovarianceFlow) -> Restart:
        """Build the bounds at the end, at the precision that is set."""
        return build_restart(parameters, flow, self.ray, self.eigenvectors)


def order_for(bits: int) -> int:
    """Order for which a Taylor step of this precision costs least per unit of log(T - t).

    The cost is order²/q with q^order = 2^-bits, q the step relative to the radius of convergence.
    """
    return int(0.36 * bits) + 6


def work(dim: int, order: int, steps: int) -> float:
    """Multiplications of balls in so many steps."""
    return float(steps) * order**2 * (dim + 1) ** 3


def start_tube(flow: CovarianceFlow, factor: Array) -> Tube:
    """Tube of the covariance at time 0."""
    return Tube.around(flow.covariance(factor))


def to_floats(time: Ball, early: Ball | None, late: Ball | None) -> Bracket:
    """Bracket in floats, one float wider than the balls on either side.

    The slack absorbs that another machine's eigenvalue routine proposes other (equally proved)
    bounds, which differ in the last digits.
    """
    lower = math.inf if early is None else balls.below(time + early)
    upper = math.inf if late is None else balls.above(time + late)
    return Bracket(max(0.0, math.nextafter(lower, 0.0)), math.nextafter(upper, math.inf))


def replay(parameters: Parameters, factor: Array, plan: Plan) -> Bracket | None:
    """Integrate in balls along a plan, and bound the rest; None if a step is not proved.

    Parameters
    ----------
    parameters : Parameters
        Constant parameters of dimension d, as :func:`reduction.reduced` returns them.
    factor : (d, r) array
        Factor of the covariance at time 0.
    plan : Plan
    """
    with balls.precision(plan.bits):
        flow = CovarianceFlow(parameters, plan.coordinates)
        end = follow(flow, start_tube(flow, factor), plan.order, plan.steps)
        if end is None:
            return None
        tube, time = end
        return to_floats(time, *plan.restart(parameters, flow).bracket(tube.matrix))


def follow(flow: CovarianceFlow, tube: Tube, order: int, steps: Array) -> tuple[Tube, Ball] | None:
    """Tube and time after Taylor steps of given lengths (n,); None if one is not proved."""
    time = balls.ball(0.0)
    for step in steps.tolist():
        moved = taylor.advance(flow, taylor.expand(flow, tube, order), step)
        if moved is None:
            return None
        tube, time = moved, time + balls.ball(step)
    return tube, time

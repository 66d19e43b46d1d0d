"""Starts that enter the region of attraction of an equilibrium, found by integration.

The covariance is integrated in floats; Newton's method from where it comes to tells what it may
tend to.  When it is within a region, it is integrated again in balls up to there.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field as default
from typing import Any

import numpy as np

from ..._check import Array
from ...arithmetic import balls, taylor
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...results.equilibria import Equilibrium
from ...simulation.run import simulate
from ...status import Status
from ..bracket.coordinates import error_growth, find_coordinates
from ..bracket.covariance import CovarianceFlow, SingularCoordinates
from ..bracket.estimate import Estimate
from ..bracket.plan import LARGEST_DIM, MOST_BITS, order_for, start_tube, work
from ..bracket.reduction import reduced
from ..equilibria.classification import classify, semidefinite_factor
from ..equilibria.newton import matrix_newton
from ..equilibria.quadratic import Quadratic, coordinates
from ..equilibria.scaling import scaled
from ..rules.base import Refuted
from ..rules.captured_rank import CapturedRank, read_region, tangent
from ..rules.captured_start import CapturedStart, claim_of
from ..rules.course import Course
from ..rules.neighbourhood import BITS, neighbourhood
from .local import mean_claim, stability_claim
from .rank_region import rank_region

__all__ = ["find"]

#: Pieces of integration in floats, each twice as long as the one before, and their steps.
PIECES = 30
LONGEST = 1_500
TOLERANCE = 1e-9

#: Residual, relative to the terms of the equation, at which nothing changes any more.
AT_REST = 1e-9

#: Equilibria whose regions are looked at.
MOST_TARGETS = 4

#: Two equilibria nearer than this, relative to their size, are the same.
SAME = 1e-6

#: In units of order one, a covariance below this may be on its way to 0.
SMALL = 3.0

#: Part of the radius of a region within which floats, and balls, count as in it.
ARRIVED, INSIDE = 0.9, 0.95

#: Times of the path at which coordinates are compared.
SAMPLES = 48

#: Bits beyond those that the growth of errors takes, and bits that truncation loses.
SPARE, LOST = 48, 6

#: Work of the integration in balls, and its steps: some seconds, and as much again for the check.
BUDGET = 3e7
MOST_STEPS = 450

#: What is claimed of a computed distance, so that its proof has room.
ROOM = 1e-6

# FLINT has no stubs.
Ball = Any


def find(problem: CertificationProblem) -> Iterator[Claim]:
    """Yield the claim that the start is captured, if it is seen to be and balls can show it."""
    start = problem.start
    if start is None or len(problem.vertices) != 1:
        return
    parameters, factor = reduced(problem.parameters, start.factor)
    if parameters.dim > LARGEST_DIM:
        return
    if parameters.dim == problem.dim:
        parameters = problem.parameters  # with the part of the mean
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            claim = _captured(parameters, factor)
        except (ValueError, ArithmeticError):  # an eigenvalue routine on numbers out of range
            claim = None
    if claim is not None:
        yield claim


def _captured(parameters: Parameters, factor: Array) -> Claim | None:
    path = _Path(parameters)
    for _ in path.pieces(factor):
        for target in path.targets:
            index = target.entry(path)
            if index is not None:
                return _in_balls(parameters, factor, path, target, index)
    return None


@dataclass(frozen=True, eq=False)
class _Target:
    """An equilibrium that attracts, with its claim."""

    covariance: Array
    claim: Claim

    def entry(self, path: _Path) -> int | None:
        """Index of the first time of a path in the region."""
        inside = np.flatnonzero(self.distances(path.covariances) <= ARRIVED * self.radius)
        return int(inside[0]) if inside.size else None

    @property
    def radius(self) -> float:
        """Radius of the region in its metric; inf if it is everything."""
        return self.claim.numbers["radius"]

    def distances(self, covariances: Array) -> Array:
        """Distances |y| of covariances (n, d, d) in the metric."""
        inverse = np.linalg.inv(self.claim.arrays["frame"])
        d, rank = len(inverse), int(self.claim.numbers["rank"])
        there = inverse @ covariances @ inverse.T - np.diag(np.where(np.arange(d) < rank, 1.0, 0.0))
        z = coordinates(there)
        if self.claim.rule == CapturedRank.name:
            z = z[..., tangent(d, rank)]
        return np.asarray(np.linalg.norm(z @ self.claim.arrays["metric"].T, axis=-1))


@dataclass(eq=False)
class _Path:
    """An integration in floats, and the equilibria that it may tend to."""

    parameters: Parameters
    targets: list[_Target] = default(default_factory=list)
    times: Array = default(default_factory=lambda: np.zeros(0))
    factors: list[Array] = default(default_factory=list)
    covariances: Array = default(default_factory=lambda: np.zeros(0))
    known: list[Array] = default(default_factory=list)

    def __post_init__(self) -> None:
        plain = Quadratic.of(self.parameters)
        self.field, self.units = scaled(plain)
        self._natural = plain.changed(np.diag(self.units))

    def pieces(self, factor: Array) -> Iterator[None]:
        """Integrate further and further, until nothing changes or the steps are used up."""
        p, d = self.parameters, self.parameters.dim
        still = Parameters.trusted(p.A, p.B, p.V, np.zeros(d), p.noise)
        law, clock, left = Gaussian.trusted(np.zeros(d), factor), 0.0, LONGEST
        span = 1.0 / self._speed(law.covariance)
        self.covariances = np.zeros((0, d, d))
        for _ in range(PIECES):
            if not 0 < span < math.inf or left <= 0:
                return
            path = simulate(law, still, span, rtol=TOLERANCE, max_steps=left)
            if path.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            if path.status not in (Status.SUCCESS, Status.STEP_LIMIT):
                return
            law, left = path.final, left - max(path.steps, 1)
            self.times = np.append(self.times, clock + path.times)
            self.factors += list(path.factors)
            self.covariances = np.concatenate([self.covariances, path.covariances])
            clock += float(path.times[-1])
            self._aim(law.covariance)
            yield
            if 0 < self.field.residual(law.covariance / np.outer(self.units, self.units)) < AT_REST:
                return
            span = max(2.0 * span, 1.0 / self._speed(law.covariance))

    def _aim(self, S: Array) -> None:
        """Add the equilibria that Newton's method finds from here, if they attract."""
        field, units = self.field, self.units
        scale = np.outer(units, units)
        guesses = list(matrix_newton(field, (S / scale)[None]))
        if not field.noisy and np.linalg.norm(S / scale) < SMALL:
            guesses.append(np.zeros_like(S))
        for guess in guesses:
            if len(self.targets) >= MOST_TARGETS or any(_same(guess, x) for x in self.known):
                continue
            self.known.append(guess)
            L = semidefinite_factor(field, guess, 1e-7)
            if L is None:
                continue
            e = classify(self.parameters, units[:, None] * L)
            if any(_same(e.covariance, x.covariance) for x in self.targets):
                continue
            claim = self._region(e)
            if claim is not None:
                self.targets.append(_Target(e.covariance, claim))

    def _region(self, e: Equilibrium) -> Claim | None:
        """Region of attraction of an equilibrium, or of attraction within its rank."""
        if not e.stable:
            rank = self.factors[0].shape[1]
            return rank_region(self.parameters, e) if e.rank == rank < e.dim else None
        bare = CertificationProblem((self.parameters,))
        claim = stability_claim(bare, e)
        if claim is None or not e.mean_stable or e.gaussian is None:
            return claim
        return mean_claim(bare, e, claim) or claim

    def _speed(self, S: Array) -> float:
        """Size of the generator in balanced units of the tokens, per time."""
        there = self._natural
        size = float(np.linalg.norm(S / np.outer(self.units, self.units)))
        quadratic = sum(
            float(np.linalg.norm(V) * np.linalg.norm(B))
            for V, B in zip(there.V, there.B, strict=True)
        )
        speed = float(np.linalg.norm(there.A)) + quadratic * size
        return speed or float(np.linalg.norm(there.Q)) or 1.0

    def until(self, index: int) -> Estimate:
        """Some of the path up to a time."""
        some = np.unique(np.linspace(0, index, SAMPLES).round().astype(int))
        end = float(self.times[index])
        return Estimate(math.inf, end, self.times[some], tuple(self.factors[i] for i in some))


def _same(S: Array, other: Array) -> bool:
    size = max(float(np.linalg.norm(S)), float(np.linalg.norm(other)))
    return bool(np.linalg.norm(S - other) <= SAME * size)


def _in_balls(
    parameters: Parameters, factor: Array, path: _Path, target: _Target, index: int
) -> Claim | None:
    """Integrate in balls until the start is in the region of a target, with growing precision."""
    seen = path.until(index)
    inverse = np.asarray(np.linalg.inv(target.claim.arrays["frame"]), dtype=np.float64)
    T = find_coordinates(parameters, seen, inverse)
    growth = error_growth(parameters, T, seen)
    if not growth < MOST_BITS:
        return None
    bits = max(64, SPARE + int(max(growth, 0.0) / math.log(2.0)))
    left = BUDGET
    while bits <= MOST_BITS:
        course = Course(bits, order_for(bits), T, np.zeros(0))
        most = min(MOST_STEPS, int(left / work(parameters.dim, course.order, 1)))
        found, used = _attempt(parameters, factor, course, most, target, seen.reached)
        if found is not None:
            return found
        left -= work(parameters.dim, course.order, used)
        bits = 2 * bits
    return None


def _attempt(
    parameters: Parameters, factor: Array, course: Course, most: int, target: _Target, time: float
) -> tuple[Claim | None, int]:
    """Claim at one precision, if it is enough, and the steps that it took."""
    steps: list[float] = []
    clock = 0.0
    with balls.precision(course.bits):
        try:
            flow = CovarianceFlow(parameters, course.coordinates)
        except SingularCoordinates:
            return None, 0
        tube = start_tube(flow, factor)
        while True:
            if clock >= time:
                S = balls.middle(flow.original(tube.centre))
                if target.distances(S[None])[0] <= INSIDE * target.radius:
                    made = Course(course.bits, course.order, course.coordinates, np.array(steps))
                    claim = _closed(parameters, flow.original(tube.matrix), made, target)
                    if claim is not None:
                        return claim, len(steps)
            if len(steps) >= most:
                return None, most
            expansion = taylor.expand(flow, tube, course.order)
            step = taylor.step_size(expansion, course.bits - LOST)
            # Past the time at which floats arrive, steps of any length do.
            step = step if 0 < step < math.inf else max(time - clock, 0.0)
            moved = taylor.advance(flow, expansion, step) if step > 0 else None
            if moved is None:
                return None, len(steps)
            tube, clock = moved, clock + step
            steps.append(step)


def _closed(
    parameters: Parameters, covariance: Any, course: Course, target: _Target
) -> Claim | None:
    """Claim for an enclosure of the covariance, if all of it is in the region."""
    problem, region = CertificationProblem((parameters,)), target.claim
    within = region.rule == CapturedRank.name
    with balls.precision(BITS):
        try:
            near = (
                read_region(problem, region)
                if within
                else neighbourhood(problem, region, metric=True)
            )
        except Refuted:
            return None
        distance = near.distance(covariance)
    arrival = (1 + ROOM) * distance + 2 * region.numbers["error"]
    if not arrival < target.radius:
        return None
    return claim_of((CapturedRank if within else CapturedStart).name, region, course, arrival)

"""Accurate integrations of the covariance: evidence where nothing is proved, and a check else.

The mean plays no part in the covariance, and may overflow where the covariance stays bounded,
so it is held at zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from .._check import Array
from ..gaussian import Gaussian
from ..parameters import Parameters
from ..problem.definitions import CertificationProblem
from ..results.certificate import Integration
from ..results.trajectory import Trajectory
from ..simulation.run import simulate
from ..status import Status
from .bracket.estimate import resumable
from .settling import SMALL, VANISHED, Settling, graded

__all__ = ["integrate", "integrations"]

#: Work of one evaluation of the field (multiplications) above which nothing is integrated.
LARGEST_WORK = 1e7

#: Seconds that one entry of a matrix takes, for being read and for each column of the factor;
#: evaluations in a step; seconds for all integrations; and steps that are too few to tell anything.
READ, MULTIPLY = 1e-9, 1e-10
EVALUATIONS = 15
SECONDS = 3.0
LEAST_STEPS = 200

#: Covariances are kept for pictures up to this dimension, at so many times.
KEPT_DIM = 8
KEPT = 500

#: Times in each piece at which the state is kept, besides the steps of the integrator.
BETWEEN = 120

#: A larger covariance has not settled, whatever the rounding of its change says.
LARGEST_TRACE = 1e150

#: A covariance that has settled has not grown by this factor in half of a piece.
GROWN = 1.5

#: A state that returns this closely, relatively, is on a cycle.
RETURNED = 1e-5

#: Pieces of integration, each twice as long as the one before.
PIECES = 24

#: Bounds on the steps from the start of the problem, and from a random one.
MOST_STEPS, FEWER_STEPS = 2_800, 1_500

#: Random starts when none is given: sizes relative to the natural size of the covariance.
SIZES = (1.0, 0.1, 10.0)


def integrations(problem: CertificationProblem) -> Iterator[Integration]:
    """Integrate from the start, or from random ones if there is none, under each vertex.

    Of a family each vertex is held constant; switching between them is not integrated.
    """
    count = len(problem.vertices) * (1 if problem.start is not None else len(SIZES))
    for parameters in problem.vertices:
        starts = [problem.start] if problem.start is not None else _random_starts(parameters)
        for start in starts:
            most = min(
                MOST_STEPS if problem.start is not None else FEWER_STEPS,
                _steps(parameters, start.rank, count),
            )
            if affordable(parameters, start.rank) and most >= LEAST_STEPS:
                yield integrate(parameters, start, most, from_start=problem.start is not None)


def _steps(parameters: Parameters, rank: int, count: int) -> int:
    """Steps that fit into the time for all integrations, `count` of them."""
    entries = (2.0 * len(parameters.heads) + 1.0) * parameters.dim**2
    step = EVALUATIONS * entries * (READ + MULTIPLY * rank)
    return int(min(SECONDS / (count * step), 1e9))


def affordable(parameters: Parameters, rank: int) -> bool:
    """Whether an integration in this dimension and rank ends within seconds."""
    d = parameters.dim
    return 3.0 * len(parameters.heads) * d * d * max(rank, 1) <= LARGEST_WORK


def natural_size(parameters: Parameters) -> float:
    """Size of a covariance at which attention is as strong as the linear part."""
    linear = float(np.linalg.norm(parameters.A))
    quadratic = sum(float(np.linalg.norm(V) * np.linalg.norm(B)) for V, B, _ in parameters.heads)
    if not 0 < quadratic < math.inf:
        return 1.0
    size = (linear or quadratic) / quadratic
    return size if 0 < size < math.inf else 1.0


def integrate(
    parameters: Parameters,
    start: Gaussian,
    most: int = MOST_STEPS,
    *,
    from_start: bool,
    rtol: float = 1e-11,
) -> Integration:
    """Integrate until the covariance blows up, settles, returns, or `most` steps are used up."""
    d = parameters.dim
    still = Parameters.trusted(
        parameters.A, parameters.B, parameters.V, np.zeros(d), parameters.noise
    )
    law = Gaussian.trusted(np.zeros(d), start.factor)
    record = _Record(d, from_start)
    if not law.trace < LARGEST_TRACE:
        return record.close("open", 0.0)
    settling = Settling(still, start.factor)
    span, clock, steps = 4.0 / _speed(still, law), 0.0, 0
    for _ in range(PIECES):
        if not 0 < span < math.inf:
            break
        path = simulate(law, still, span, rtol=rtol, max_steps=most - steps)
        record.add(path, clock)
        steps += path.steps
        if path.status is Status.BLOW_UP:
            return record.close("blow-up", clock + path.blow_up_time)
        clock += float(path.times[-1])
        if path.status is Status.OVERFLOW:
            return record.close("growth", clock)
        law = resumable(path)
        bounded = law.trace < LARGEST_TRACE and not _grows(path)
        if bounded and settling.seen(law, clock, record.largest):
            return record.close("limit", clock)
        period = None if _spreads(path) else _period(path)
        if period is not None:
            return record.close("cycle", period)
        if path.status is not Status.SUCCESS and path.status is not Status.UNDERFLOW:
            break
        if steps >= most:
            break
        span = max(2.0 * span, 16.0 / _speed(still, law))
    gone = law.trace <= VANISHED * record.largest
    levelled = record.levelled() and not (gone or settling.passing or _spreads(path))
    return record.close("unsettled" if levelled else "open", clock)


def _speed(p: Parameters, law: Gaussian) -> float:
    """Size of the generator, in units of 1/time."""
    linear = float(np.linalg.norm(p.A))
    quadratic = sum(float(np.linalg.norm(V) * np.linalg.norm(B)) for V, B, _ in p.heads)
    noise = 0.0 if p.noise is None else float(np.trace(p.noise)) / max(law.trace, 1e-300)
    speed = linear + quadratic * law.trace
    return speed or min(noise, 1.0) or 1.0


def _grows(path: Trajectory) -> bool:
    """Whether the covariance still grew in the second half of a piece.

    Where attention is far stronger than the linear part, its rounding hides such growth in S'.
    """
    middle = path.at(0.5 * float(path.times[-1])).trace
    return not float(path.traces[-1]) <= GROWN * middle


def _spreads(path: Trajectory) -> bool:
    """Whether a part of the covariance that is small grew in the second half of a piece."""
    if path.problem.schedule.noisy:
        return False
    before, after = (graded(path.at(x * float(path.times[-1])).factor)[1] for x in (0.5, 1.0))
    small = after <= SMALL * after.max(initial=0.0)
    return bool(np.any(after[small] > GROWN * before[small]))


def _period(path: Trajectory) -> float | None:
    """Period of the motion if the covariance returns to where it was, else None."""
    if path.status is not Status.SUCCESS or path.times.size < 8:
        return None
    end = float(path.times[-1])
    times = np.linspace(0.5 * end, end, 240)
    states = np.array([path.at(float(t)).covariance for t in times])
    last = states[-1]
    size = float(np.linalg.norm(last))
    away = np.linalg.norm(states - last, axis=(1, 2)) / size
    if not away.max() >= 1e-3:  # nan, too: beyond the range of floats
        return None
    # The last return: the local minimum nearest to the end, after having been away.
    gone = np.flatnonzero(away > 0.5 * away.max())
    for i in range(int(gone[-1]) - 1, 0, -1):
        if away[i] <= away[i - 1] and away[i] <= away[i + 1] and away[i] < 0.2 * away.max():
            low, high = float(times[i - 1]), float(times[i + 1])
            found = minimize_scalar(
                lambda t: float(np.linalg.norm(path.at(float(t)).covariance - last)),
                bounds=(low, high),
                method="bounded",
                options={"xatol": 1e-10 * end},
            )
            if float(found.fun) <= RETURNED * size:
                return end - float(found.x)
    return None


def _random_starts(parameters: Parameters) -> Iterator[Gaussian]:
    """Random covariances of full rank and of several sizes; always the same ones."""
    rng = np.random.default_rng(0)
    d = parameters.dim
    rank = d if affordable(parameters, d) else 1
    unit = math.sqrt(natural_size(parameters))
    for size in SIZES:
        factor = rng.standard_normal((d, rank)) / math.sqrt(d)
        yield Gaussian.trusted(np.zeros(d), unit * math.sqrt(size) * factor)


@dataclass
class _Record:
    """The part of a motion that is kept."""

    dim: int
    from_start: bool

    def __post_init__(self) -> None:
        self.times: list[Array] = []
        self.factors: list[Array] = []
        self.largest = 0.0

    def add(self, path: Trajectory, clock: float) -> None:
        """Keep the states of one piece."""
        times = path.times
        if self.dim <= KEPT_DIM and times[-1] > 0:
            times = np.union1d(times, np.linspace(0.0, float(times[-1]), BETWEEN))
        self.times.append(times + clock)
        self.factors.extend(path.at(float(t)).factor for t in times)
        self.largest = max(self.largest, float(np.max(path.traces)))

    def levelled(self) -> bool:
        """Whether the trace shows no trend: its later half stays below the former maximum."""
        if not self.times:
            return False
        times = np.concatenate(self.times)
        traces = np.array([float(np.sum(L**2)) for L in self.factors])
        late = times > 0.5 * times[-1]
        return bool(
            late.any() and not late.all() and traces[late].max() <= 1.01 * traces[~late].max()
        )

    def close(self, outcome: str, time: float) -> Integration:
        """Thin out what was kept."""
        if not self.times:  # the scales leave nothing to integrate over
            nothing = np.zeros((0, self.dim, self.dim))
            return Integration(outcome, time, self.from_start, np.zeros(0), np.zeros(0), nothing)
        times = np.concatenate(self.times)
        traces = np.array([float(np.sum(L**2)) for L in self.factors])
        _, first = np.unique(times, return_index=True)
        picked = first[np.unique(np.linspace(0, first.size - 1, KEPT).round().astype(int))]
        d = self.dim
        stored = np.zeros((0, d, d))
        if d <= KEPT_DIM:
            stored = np.array([self.factors[i] @ self.factors[i].T for i in picked])
        return Integration(outcome, time, self.from_start, times[picked], traces[picked], stored)

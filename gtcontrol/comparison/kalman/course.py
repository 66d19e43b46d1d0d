"""The covariance flow from the start: by integration, and by the closed form at its end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from ..._check import Array
from ...errors import InvalidNumber, OutOfScale
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...problem.definitions import ComparisonProblem
from ...results.trajectory import Trajectory, factor_of
from ...riccati_flow.flow import transition
from ...riccati_flow.solution import covariance_at, factor_at, transport
from ...simulation.run import simulate
from ...status import KalmanVerdict, Status
from .equation import Equation
from .steady import Limit

__all__ = ["Course", "distance", "follow"]

#: Times at which the eigenvalues of the covariance are kept.
KEPT = 161

#: Times of the flow, in units of the slowest rate, of growth, and of periods.
RATES, GROWTHS, TURNS = 20.0, 4.0, 6.0

#: Times of the flow in units of the fastest mode: where powers of t are to be seen, and at most,
#: as integrators go over to implicit steps in small dimension only.
LONG, MOST, SMALL = 400.0, 1e6, 8

#: A step of the closed form, in units of the fastest growth, and their largest number.
STEP, MOST_STEPS = 2.0, 2000

#: Digits at which the closed form has arrived, times by which a horizon may be drawn out for
#: that, and the parts of the horizon in which it is looked for.
ARRIVED, LONGER, PARTS = 8.0, 40, 4


@dataclass(frozen=True, eq=False)
class Course:
    """The flow: times (n,), eigenvalues (n, d), the covariance (d, d) at the last time.

    `first` is the covariance at the first time, `agreement` the number of decimal digits to which
    the closed form agrees at the last.  By the closed form the limit is reached at the time
    `arrival`: inf if it is not seen to be.  `ending` says why the flow stops before its horizon.
    """

    times: Array
    eigenvalues: Array
    first: Array
    final: Array
    agreement: float
    arrival: float = math.inf
    ending: Status = Status.SUCCESS


def follow(
    problem: ComparisonProblem, equation: Equation, limit: Limit, blow_up: float = math.inf
) -> Course:
    """Integrate the flow for long enough to see what it does, or up to the horizon asked for."""
    start = problem.start
    if start is None:
        # Half of the natural size: at the limit itself there would be nothing to see.
        size = math.sqrt(0.5 * _unit(equation, limit))
        start = Gaussian(np.zeros(problem.dim), size * np.eye(problem.dim))
    end, arrival = problem.horizon, _arrival(equation, limit, start.factor)
    if end is None:
        end = _horizon(equation, limit, arrival) if math.isinf(blow_up) else blow_up
    loses = limit.covariance is not None and _rank(limit) < start.rank
    noise = problem.noise
    if noise is None and loses:  # the factor of what is lost leaves the range of floats
        noise = np.zeros_like(equation.A)
    p = Parameters(A=equation.A, V=np.eye(problem.dim), B=0.5 * equation.K, noise=noise)
    most, rtol = (20_000, 1e-12) if problem.dim <= SMALL else (3_000, 1e-10)
    path = simulate(start, p, end, max_steps=most, rtol=rtol)
    last = float(path.times[-1])
    times = _times(last, limit.verdict)
    values = np.array([_eigenvalues(path, t, problem.dim) for t in times])
    final = path.at(last).covariance
    agreement = _agreement(problem, equation, start, final, last)
    ending = Status.SUCCESS if last >= end * (1 - 1e-12) else path.status
    return Course(times, values, start.covariance, final, agreement, arrival, ending)


def _unit(equation: Equation, limit: Limit) -> float:
    """A variance of natural size."""
    sizes = [float(np.linalg.norm(x, 2)) for x in (equation.A, equation.K)]
    if limit.covariance is not None and limit.covariance.any():
        return float(np.trace(limit.covariance)) / equation.dim
    return sizes[0] / sizes[1] if min(sizes) > 0 else 1.0


def _rank(limit: Limit) -> int:
    if limit.rank is not None or limit.covariance is None:
        return limit.rank or 0
    values = np.linalg.eigvalsh(limit.covariance)
    return int(np.sum(values > 1e-13 * max(float(values[-1]), 0.0)))


def _fastest(equation: Equation, limit: Limit) -> float:
    """Size of the fastest mode, with and without measurements."""
    closed = equation.A if limit.base is None else equation.closed_loop(limit.base)
    size = max(float(np.max(np.abs(np.linalg.eigvals(x)))) for x in (equation.A, closed))
    return size or float(np.linalg.norm(equation.K, 2)) or 1.0


def _horizon(equation: Equation, limit: Limit, arrival: float) -> float:
    """A time after which the long run is seen."""
    size = _fastest(equation, limit)
    if math.isfinite(limit.period):
        return TURNS * limit.period
    if limit.verdict is KalmanVerdict.UNBOUNDED and limit.rate > 0:
        return GROWTHS / limit.rate
    if limit.verdict is KalmanVerdict.CONVERGES and 0 < limit.rate < math.inf:
        settled = RATES / limit.rate + limit.delay
        if math.isfinite(arrival):
            settled = max(settled, arrival)
        return min(settled, _most(equation) / size)
    return (LONG if limit.verdict is KalmanVerdict.MARGINAL else 20.0) / size


def _most(equation: Equation) -> float:
    return MOST if equation.dim <= SMALL else LONG


def _arrival(equation: Equation, limit: Limit, factor: Array) -> float:
    """Time at which the closed form has reached the limit; inf if it is not seen to.

    The rate tells how the limit is approached; before that, a start (or noise) much smaller than
    the limit takes the time log(limit / start) / (2 Re λ) to grow, and less if it is not small in
    the modes that matter.
    """
    target = limit.covariance
    if target is None or limit.partial or limit.verdict is not KalmanVerdict.CONVERGES:
        return math.inf
    if not target.any() or not 0 < limit.rate < math.inf:
        return math.inf
    part = (RATES / limit.rate + limit.delay) / PARTS
    if part > _most(equation) / _fastest(equation, limit):
        return math.inf
    wanted = min(ARRIVED, -math.log10(max(limit.error, 1e-16)) - 1)
    try:
        path = _stepped(equation.A, equation.K, factor, equation.Q, part)
        for k, S in enumerate(islice(path, LONGER * PARTS), start=1):
            if distance(S, target) >= wanted:
                return k * part
    except (OutOfScale, InvalidNumber, np.linalg.LinAlgError):
        return math.inf  # beyond the range of the closed form
    return math.inf


def _times(last: float, verdict: KalmanVerdict) -> Array:
    if verdict is KalmanVerdict.MARGINAL:  # powers of t are lines in log-log scale
        return np.concatenate([[0.0], last * np.logspace(-3.5, 0.0, KEPT - 1)])
    return np.linspace(0.0, last, KEPT)


def _eigenvalues(path: Trajectory, t: float, d: int) -> Array:
    values = path.at(t).eigenvalues
    return np.concatenate([values, np.zeros(d - values.size)])


def _agreement(
    problem: ComparisonProblem, equation: Equation, start: Gaussian, final: Array, time: float
) -> float:
    """Digits to which the closed form agrees with the integration; nan if it cannot be told."""
    A, K, Q, L = equation.A, equation.K, equation.Q, start.factor
    try:
        if problem.filters:
            closed = next(_stepped(A, K, L, Q, time))
        elif problem.noise is None:
            factor = factor_at(A, K, L, time)
            closed = factor @ factor.T
        else:
            closed = covariance_at(A, K, L, Q, time)
    except (OutOfScale, InvalidNumber):
        return math.nan
    return distance(final, closed)


def _stepped(A: Array, K: Array, factor: Array, noise: Array, time: float) -> Iterator[Array]:
    """S(t), S(2t), ... by the closed form, in steps in which no mode grows much.

    In one step digits are lost.

    Raises
    ------
    OutOfScale
        If there would be too many steps.
    """
    growth = float(np.max(np.linalg.eigvals(A).real))
    steps = max(1, math.ceil(growth * time / STEP))
    L, h, made = factor, time / steps, 0
    quiet = not noise.any()
    Phi, G = transition(A, K, h) if quiet else (A, K)
    while True:
        made += steps
        if made > MOST_STEPS:
            raise OutOfScale(f"{made} steps are too many; shorten the time.")
        for _ in range(steps):
            if quiet:
                root = np.linalg.cholesky(np.eye(L.shape[1]) - L.T @ G @ L)
                L = np.linalg.solve(root, (Phi @ L).T).T
            else:
                L = factor_of(transport(A, K, L, noise, h))
        yield np.asarray(L @ L.T)


def distance(X: Array, Y: Array, unit: float = 0.0) -> float:
    """Decimal digits to which X agrees with Y: -log₁₀ of the relative difference, at most 16."""
    if not np.all(np.isfinite(X)) or not np.all(np.isfinite(Y)):
        return math.nan
    # Squares of what is compared may leave the range of floats.
    largest = max(float(np.max(np.abs(X))), float(np.max(np.abs(Y))), unit, 1e-300)
    X, Y, unit = X / largest, Y / largest, unit / largest
    size = max(float(np.linalg.norm(Y)), unit)
    off = float(np.linalg.norm(X - Y))
    if off == 0:
        return 16.0
    if size == 0:
        return 0.0
    return float(np.clip(-math.log10(off / size), 0.0, 16.0))

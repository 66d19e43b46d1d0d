"""The one way in: `filter_by_attention`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ... import _check
from ..._check import Array
from ..._threads import single_threaded
from ...errors import InvalidNumber, InvalidShape, RankDeficientFactor, TooLarge
from ...gaussian import Gaussian
from ...problem import memory
from ...problem.definitions import FilterProblem
from ...problem.measurements import Measurements
from ...progress import Progress, silent
from ...results.filtering import AGREEMENT, FilterRun
from ...riccati_flow.kalman import KalmanModel
from ...status import Status
from .cloud import steps_of
from .consistency import consistency, normalised_innovations
from .crowd import AFTER_FLOW, AFTER_PEER, Crowd
from .flow import CovariancePath, check_problem, checked_value, filter_flow, filter_schedule
from .fluctuations import fluctuations, tilt
from .parameters import Bridge
from .peer import kalman_bucy

__all__ = ["filter_by_attention"]

#: Arrays of the size of the cloud that the integrator holds at the same time.
STAGES = 40

#: Steps of each cloud of tokens, beyond which nothing is started.
MOST_STEPS = 50_000

Random = np.random.Generator | int | np.integer


@single_threaded
def filter_by_attention(
    model: KalmanModel,
    start: Gaussian,
    measurements: Measurements,
    *,
    tokens: Sequence[int] = (200, 1000, 4000),
    seeds: int = 8,
    rng: Random = 0,
    value: float = 1.0,
    centred: bool = False,
    antithetic: bool = False,
    moment_matched: bool = False,
    progress: Progress = silent,
    name: str = "",
) -> FilterRun:
    """Filter measurements by attention, and hold it against python-control's Kalman-Bucy filter.

    The same measurements go to the Kalman-Bucy filter of python-control, to the mean-field flow of
    the Transformer of :func:`gtcontrol.filter_schedule`, and to clouds of N tokens under softmax
    attention, which use their own covariance in place of S.  (Deterministic ensemble Kalman-Bucy
    filter: Bergemann and Reich 2012.)

    Parameters
    ----------
    model : KalmanModel
        d states, p measurements.
    start : Gaussian
        Law of the state at time 0; of full rank if the model has process noise.
    measurements : Measurements
        T intervals of p measurements; see :func:`gtcontrol.simulate_measurements`.
    tokens : sequence of int
        Numbers of tokens N >= 2 to be tried.
    seeds : int
        Realisations of each N.
    rng : numpy.random.Generator or int
        Source of randomness, or its seed.
    value : float
        v of V = v I.  The law does not depend on it, but finitely many tokens do: queries shrink
        like 1/v, and with them the error of softmax over finitely many keys.
    centred : bool
        Take queries from the mean of the tokens, by a score bias -B m.
    antithetic, moment_matched : bool
        How the tokens are drawn; see :meth:`gtcontrol.Gaussian.sample`.
    progress : callable, optional
        Called as ``progress(fraction, text)``.
    name : str, optional
        Name of the problem, kept in the result.

    Returns
    -------
    FilterRun
        When interrupted, it keeps the realisations that were complete.

    Raises
    ------
    InvalidShape, InvalidNumber, InvalidMethod, RankDeficientFactor
        If an argument does not fit the others.
    TooLarge
        If it would not fit into memory, or the gain is so large that too many steps are needed.
    KeyboardInterrupt
        When interrupted before the first tokens.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> model = gt.KalmanModel([[0.0]], [[1.0]])
    >>> y = gt.simulate_measurements(model, [1.0], horizon=1.0, steps=20, rng=0)
    >>> start = gt.Gaussian([0.0], [[1.0]])
    >>> run = gt.filter_by_attention(model, start, y, tokens=[100], seeds=2)
    >>> run.status.name, run.agreement < 1e-10
    ('SUCCESS', True)
    """
    began = time.perf_counter()
    check_problem(model, start, measurements)
    if not start.rank:
        raise RankDeficientFactor(
            "`start` has no variance, so there is nothing to filter: its state is known."
        )
    problem = FilterProblem(
        model,
        start,
        measurements,
        _counts(tokens, start, antithetic, moment_matched),
        _check.integer("seeds", seeds, low=1),
        int(rng) if isinstance(rng, int | np.integer) else None,
        checked_value(value),
        bool(centred),
        bool(antithetic),
        bool(moment_matched),
        name,
    )
    _require_memory(problem)
    _require_steps(problem)
    made = _answer(problem, _generator(rng), progress)
    return replace(made, seconds=time.perf_counter() - began)


def _answer(
    problem: FilterProblem, generator: np.random.Generator, progress: Progress
) -> FilterRun:
    """Filter in three ways, and put the results together."""
    model, start, measurements = problem.model, problem.start, problem.measurements
    schedule = filter_schedule(model, start, measurements, value=problem.value)
    means, covariances = kalman_bucy(
        model, start, measurements, lambda x, text: progress(AFTER_PEER * x, text)
    )
    flow, nodes = filter_flow(
        start,
        schedule,
        lambda x, text: progress(AFTER_PEER + (AFTER_FLOW - AFTER_PEER) * x, text),
    )
    if flow.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if flow.status is not Status.SUCCESS:
        raise InvalidNumber(f"the flow of the filter ends early: {flow.status.value}")
    bridge = Bridge(model, problem.value, centred=problem.centred)
    own = flow.means[nodes], _covariances(flow.factors[nodes])
    expected = fluctuations(
        bridge,
        flow,
        measurements,
        antithetic=problem.antithetic,
        moment_matched=problem.moment_matched,
    )
    crowd = Crowd(problem, bridge, steps_of(bridge, own[1], measurements.steps), progress)
    status = crowd.run(generator)
    innovations = normalised_innovations(model, measurements, means, covariances)
    made = FilterRun(
        problem=problem,
        status=status,
        kalman_means=means,
        kalman_covariances=covariances,
        flow_means=own[0],
        flow_covariances=own[1],
        clouds=tuple(crowd.clouds),
        innovations=innovations,
        consistency=consistency(measurements, innovations, means, covariances),
        predicted_mean=expected.mean,
        predicted_covariance=expected.covariance,
        prediction_note=expected.note,
        mean_share=expected.mean_share,
        covariance_share=expected.covariance_share,
        tilt=tilt(bridge, own[1]),
        logit_variance=_logit_variance(bridge, *own),
        token_resolution=crowd.resolution,
        seconds=0.0,
    )
    if made.status is Status.SUCCESS and not made.agreement <= AGREEMENT:
        made = replace(made, status=Status.DISAGREEMENT)
    return made


def _covariances(factors: Array) -> Array:
    return factors @ np.swapaxes(factors, 1, 2)


def _logit_variance(bridge: Bridge, means: Array, covariances: Array) -> float:
    """Largest mean variance of the logits: qᵀ S q + tr(B S Bᵀ S), q = B m unless centred."""
    B = -0.5 * bridge.information / bridge.value
    largest = 0.0
    for m, S in zip(means, covariances, strict=True):
        query = np.zeros_like(m) if bridge.centred else B @ m
        largest = max(largest, float(query @ S @ query + np.trace(B @ S @ B.T @ S)))
    return largest


def _counts(
    tokens: Sequence[int] | int, start: Gaussian, antithetic: bool, moment_matched: bool
) -> tuple[int, ...]:
    """Numbers of tokens, checked against the way in which they are drawn."""
    if isinstance(tokens, int | np.integer):
        tokens = [int(tokens)]
    if np.ndim(tokens) != 1:
        raise InvalidShape("`tokens` must be a sequence of numbers, such as [200, 1000].")
    counts = tuple(_check.integer("tokens", n, low=2) for n in tokens)
    if not counts:
        raise InvalidShape("`tokens` is empty; give at least one number of tokens.")
    if len(set(counts)) < len(counts):
        raise InvalidNumber(f"`tokens` holds a number twice: {', '.join(map(str, counts))}.")
    least = start.rank * (2 if antithetic else 1) + 1
    for n in counts:
        if antithetic and n % 2:
            raise InvalidNumber(f"`tokens` must be even for antithetic draws; one is {n}.")
        if n < least:
            raise InvalidNumber(
                f"`tokens` must be at least {least} for a start of rank {start.rank}; one is {n}."
            )
    return counts


def _generator(rng: Random) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(_check.integer("rng", rng, low=0))


def _require_memory(problem: FilterProblem) -> None:
    d, times = problem.model.dim, len(problem.measurements) + 1
    kept = (4 + len(problem.counts) * problem.seeds) * times * (d + d * d)
    cloud = STAGES * max(problem.counts) * (d + 1)
    memory.require(
        f"filtering with {max(problem.counts)} tokens, {problem.seeds} draws and {times} times",
        float(kept + cloud),
        "take fewer tokens, draws or times",
    )


def _require_steps(problem: FilterProblem) -> None:
    """Refuse gains so large that moving the tokens would not end.

    Raises
    ------
    TooLarge
        If a cloud needs more than :data:`MOST_STEPS` steps.
    """
    measurements = problem.measurements
    covariances = CovariancePath(problem.model, problem.start, measurements.times).nodes
    bridge = Bridge(problem.model, problem.value, centred=problem.centred)
    steps = steps_of(bridge, covariances, measurements.steps)
    if sum(steps) > MOST_STEPS:
        k = int(np.argmax(steps))
        raise TooLarge(
            f"the tokens need {sum(steps)} steps, {steps[k]} of them in interval {k}; at most "
            f"{MOST_STEPS} are allowed. The gain is large: λ_max(S CᵀR⁻¹C)/(2v) reaches "
            f"{tilt(bridge, covariances):.3g}. Raise R, lower the covariance of the start, or "
            "split that interval, with the same measurement: shortest where the gain is largest."
        )

"""Tokens moved by actual softmax attention, freely or along a plan."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike

from .. import _check
from .._check import Array
from .._threads import single_threaded
from ..errors import InvalidNumber, InvalidShape
from ..gaussian import Gaussian
from ..parameters import Parameters
from ..problem import memory
from ..problem.definitions import TokenProblem
from ..progress import Progress, silent
from ..results.steering import Steering
from ..results.tokens import TokenCheck, TokenRun
from ..schedule import Schedule, resolve
from ..status import Status
from .cloud import Cloud, flow, layers as residual

__all__ = ["TokenRun", "check_tokens", "largest_logit_variance", "simulate_tokens"]

#: Vectors of N tokens that the integrator holds at the same time.
STAGES = 16

Random = np.random.Generator | int | np.integer


@single_threaded
def simulate_tokens(
    tokens: ArrayLike | Gaussian,
    parameters: Parameters | Schedule,
    horizon: float | None = None,
    *,
    count: int | None = None,
    rng: Random | None = None,
    antithetic: bool = False,
    moment_matched: bool = False,
    layers: int | None = None,
    rtol: float = 1e-5,
    max_steps: int = 10_000,
    observe: int | ArrayLike = 11,
    keep: int = 400,
    progress: Progress = silent,
    name: str = "",
) -> TokenRun:
    """Move N tokens by feed-forward and by softmax attention over all N of them.

    This is the Transformer itself, not its mean field: every token attends to every token
    (itself included), in blocks, so that memory is O(N d) while time is O(N² d) per step.

    Parameters
    ----------
    tokens : (N, d) array or Gaussian
        The tokens at time 0, or the law to draw them from.
    parameters : Parameters or Schedule
        Constant or time-varying parameters of dimension d.
    horizon : float, optional
        End time; by default the horizon of the schedule.
    count : int, optional
        Number of tokens N >= 2, when they are drawn.
    rng : numpy.random.Generator or int, optional
        Source of randomness or its seed, needed to draw tokens and process noise.
    antithetic, moment_matched : bool
        How the tokens are drawn; see :meth:`gtcontrol.Gaussian.sample`.
    layers : int, optional
        Instead of the flow, apply this number of residual layers of step horizon/layers.
    rtol : float
        Relative tolerance of the integrator, per token.
    max_steps : int
        Bound on the accepted steps.
    observe : int or (k,) array
        Number of equidistant times, or the times, at which the moments and some tokens are
        kept.  With layers, the nearest layers.
    keep : int
        Number of tokens kept at these times, for pictures.
    progress : callable, optional
        Called as ``progress(fraction, text)``.
    name : str, optional
        Name of the problem, kept in the result.

    Returns
    -------
    TokenRun
        An interrupted run keeps what it has.

    Raises
    ------
    InvalidShape, InvalidNumber, NotFinite, IncompatibleSchedule
        If an argument does not fit the others.
    TooLarge
        If the tokens would not fit into memory.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> unit = gt.Gaussian([0.0], [[1.0]])
    >>> run = gt.simulate_tokens(
    ...     unit, gt.Parameters(V=[[1.0]], B=[[-1.0]]), 1.0, count=1000, rng=0
    ... )
    >>> run.final.shape
    (1000, 1)
    """
    began = time.perf_counter()
    shape = _shape(tokens, count)
    schedule, end = resolve(parameters, horizon, shape[1])
    depth = None if layers is None else _check.integer("layers", layers, low=1)
    wanted = _wanted(observe, end, depth)
    kept = min(_check.integer("keep", keep, low=0), shape[0])
    _require_memory(shape, schedule, len(wanted), kept)
    generator = _generator(rng)
    problem = TokenProblem(
        shape[0],
        schedule,
        end,
        depth,
        max(_check.number("rtol", rtol, low=0.0, strict=True), 3e-14),
        _check.integer("max_steps", max_steps, low=1),
        tokens if isinstance(tokens, Gaussian) else None,
        int(rng) if isinstance(rng, int | np.integer) else None,
        antithetic,
        moment_matched,
        name,
    )
    start = _start(tokens, problem, generator)
    some = np.linspace(0, shape[0] - 1, kept).round().astype(np.intp)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # Overflow is looked for after each step and ends the run with a status of its own.
        cloud = Cloud(schedule, start, end, wanted, some, progress)
        try:
            if depth is None:
                status = flow(cloud, problem.rtol, problem.max_steps)
            else:
                status = residual(cloud, depth, generator)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        cloud.finish()
    return TokenRun(
        problem=problem,
        status=status,
        times=np.array([s.time for s in cloud.seen]),
        means=np.array([s.mean for s in cloud.seen]),
        covariances=np.array([s.covariance for s in cloud.seen]),
        clouds=np.array([s.tokens for s in cloud.seen]),
        final=cloud.lift(cloud.tokens),
        steps=cloud.steps,
        evaluations=cloud.evaluations,
        seconds=time.perf_counter() - began,
    )


def check_tokens(
    plan: Steering,
    count: int = 2000,
    *,
    rng: Random,
    antithetic: bool = True,
    moment_matched: bool = True,
    rtol: float = 1e-5,
    observe: int | ArrayLike = 6,
    keep: int = 400,
    progress: Progress = silent,
) -> TokenCheck:
    """Move actual tokens along a plan and compare where they arrive with the target.

    Parameters
    ----------
    plan : Steering
        A plan in dimension d.
    count : int
        Number of tokens N, drawn from the plan's start.
    rng : numpy.random.Generator or int
        Source of randomness, or its seed.
    antithetic, moment_matched : bool
        Draw pairs of opposite tokens; make the moments of the draw exact.
    rtol : float
        Relative tolerance of the integrator, per token.
    observe : int or (k,) array
        Number of times, or the times, at which clouds are kept.
    keep : int
        Number of tokens kept at these times, for pictures.
    progress : callable, optional
        Called as ``progress(fraction, text)``.

    Returns
    -------
    TokenCheck
        With the errors of mean and covariance beside their sampling errors.

    Raises
    ------
    KeyboardInterrupt
        When interrupted: tokens on the way cannot be compared with the target.
    """
    if not isinstance(plan, Steering):
        raise InvalidShape(f"`plan` must be a Steering, not {type(plan).__name__}.")
    run = simulate_tokens(
        plan.problem.start,
        plan.schedule,
        count=count,
        rng=rng,
        antithetic=antithetic,
        moment_matched=moment_matched,
        rtol=rtol,
        observe=observe,
        keep=keep,
        progress=progress,
    )
    if run.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    target = plan.problem.target
    S, trace = target.covariance, target.trace
    scale = float(
        np.max(np.trace(run.covariances, axis1=1, axis2=2) + np.sum(run.means**2, axis=1))
    )
    resolution = rtol * run.steps * float(np.sqrt(scale))
    return TokenCheck(
        count=count,
        seed=run.problem.seed,
        antithetic=antithetic,
        moment_matched=moment_matched,
        mean_error=float(np.linalg.norm(run.means[-1] - target.mean)),
        covariance_error=float(np.linalg.norm(run.covariances[-1] - S)),
        mean_sampling_error=float(np.sqrt(trace / count)),
        covariance_sampling_error=float(np.sqrt((np.sum(S**2) + trace**2) / count)),
        largest_logit_variance=largest_logit_variance(plan),
        seconds=run.seconds,
        times=run.times,
        clouds=run.clouds,
        mean_resolution=resolution,
        covariance_resolution=2 * resolution * float(np.sqrt(trace)) + resolution**2,
        status=run.status,
    )


def largest_logit_variance(plan: Steering) -> float:
    """Largest mean variance of the attention logits ⟨B x + β, y⟩ along a plan.

    For query x and key y drawn from N(m, S) the variance over y, averaged over x, is
    E a² = (Bm + β)ᵀ S (Bm + β) + tr(B S Bᵀ S); the largest head counts.  Softmax over N
    tokens follows its mean field while a² stays well below log N.
    """
    largest, last = 0.0, float(plan.trajectory.times[-1])
    U = plan.schedule.basis
    for piece in plan.schedule.pieces(inner=True):
        for t in (piece.start, 0.5 * (piece.start + piece.end), piece.end):
            if t > last:
                break
            law = plan.trajectory.at(t)
            mean, L = law.mean, law.factor
            if U is not None:
                mean, L = U.T @ mean, U.T @ L
            for _, B, beta in piece.law(t).heads:
                query = B @ mean if beta is None else B @ mean + beta
                value = float(np.sum((L.T @ query) ** 2) + np.sum((L.T @ B @ L) ** 2))
                largest = max(largest, value)
    return largest


def _shape(tokens: ArrayLike | Gaussian, count: int | None) -> tuple[int, int]:
    """Number N and dimension d of the tokens."""
    if isinstance(tokens, Gaussian):
        if count is None:
            raise InvalidNumber("`count` is needed to draw tokens from a Gaussian.")
        return _check.integer("count", count, low=2), tokens.dim
    shape = np.shape(tokens)
    if len(shape) != 2:
        raise InvalidShape(f"`tokens` must have shape (N, d); it has {shape}.")
    if count is not None and count != shape[0]:
        raise InvalidNumber(f"`count` is {count}, but {shape[0]} tokens were given.")
    if shape[0] < 2 or shape[1] < 1:
        raise InvalidNumber(
            f"`tokens` must hold at least 2 tokens of at least 1 dimension; its shape is {shape}."
        )
    return shape[0], shape[1]


def _generator(rng: Random | None) -> np.random.Generator | None:
    if rng is None or isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(_check.integer("rng", rng, low=0))


def _start(
    tokens: ArrayLike | Gaussian, problem: TokenProblem, rng: np.random.Generator | None
) -> Array:
    if not isinstance(tokens, Gaussian):
        return _check.array("tokens", tokens, 2)
    if rng is None:
        raise InvalidNumber("`rng` is needed to draw tokens: pass a numpy Generator or a seed.")
    return tokens.sample(
        problem.count,
        rng,
        antithetic=problem.antithetic,
        moment_matched=problem.moment_matched,
    )


def _wanted(observe: int | ArrayLike, end: float, layers: int | None) -> list[float]:
    """Times of observation, increasing."""
    if isinstance(observe, int | np.integer):
        times = np.linspace(0.0, end, _check.integer("observe", observe, low=2))
    else:
        times = np.unique(_check.vector("observe", observe))
        if times.size and not (times[0] >= 0 and times[-1] <= end * (1 + 1e-12)):
            raise InvalidNumber(
                f"`observe` must lie in [0, {end:g}]; it reaches from {times[0]:g} to "
                f"{times[-1]:g}."
            )
        times = np.minimum(times, end)
    if layers is not None:
        nearest = np.unique(np.round(times * (layers / end)))
        times = np.where(nearest == layers, end, nearest * (end / layers))
    return [float(t) for t in times]


def _require_memory(shape: tuple[int, int], schedule: Schedule, times: int, kept: int) -> None:
    n, d = shape
    inner = d if schedule.basis is None else schedule.basis.shape[1]
    numbers = n * (STAGES * inner + 4 * d) + times * d * (d + kept + 1)
    memory.require(
        f"moving {n} tokens of dimension {d}", float(numbers), "take fewer tokens or dimensions"
    )

"""Tokens moved by actual softmax attention, freely or along a plan."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike

from .. import _check
from .._threads import single_threaded
from ..attention import Mask
from ..errors import InvalidMethod, InvalidNumber, InvalidShape
from ..feedforward import FeedForward
from ..gaussian import Gaussian
from ..mixture import Mixture
from ..parameters import Parameters
from ..problem.definitions import TokenProblem
from ..progress import Progress, silent
from ..results.stamps import freezing
from ..results.steering import Steering
from ..results.tokens import TokenCheck, TokenRun
from ..schedule import Schedule, resolve
from ..status import Status
from . import arguments, kernels
from .arguments import Random
from .bounds import norm_bounds
from .cloud import Cloud, Motion, flow, layers as residual
from .stamps import measure_attention

__all__ = [
    "FINEST",
    "SINGLE_RTOL",
    "TokenRun",
    "check_tokens",
    "largest_logit_variance",
    "simulate_tokens",
]

#: Smallest relative tolerance of the integrator.
FINEST = 3e-14

#: Smallest relative tolerance of an integrator whose velocities are in single precision.
SINGLE_RTOL = 1e-6


@single_threaded
def simulate_tokens(
    tokens: ArrayLike | Gaussian | Mixture,
    parameters: Parameters | Schedule,
    horizon: float | None = None,
    *,
    count: int | None = None,
    rng: Random | None = None,
    antithetic: bool = False,
    moment_matched: bool = False,
    layers: int | None = None,
    feedforward: FeedForward | None = None,
    mask_self: bool = False,
    causal: bool = False,
    backend: str = "auto",
    dtype: str = "float64",
    rtol: float = 1e-5,
    max_steps: int = 10_000,
    observe: int | ArrayLike = 11,
    keep: int = 400,
    spread: bool = False,
    progress: Progress = silent,
    name: str = "",
) -> TokenRun:
    """Move N tokens by feed-forward and by softmax attention over all N of them.

    This is the Transformer itself, not its mean field: every token attends to every token
    (itself included, unless it is masked), in blocks, so that memory is O(N d) while time is
    O(N² d) per step.

    Parameters
    ----------
    tokens : (N, d) array, Gaussian or Mixture
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
        How the tokens are drawn from a law; see :meth:`gtcontrol.Gaussian.sample`.
    layers : int, optional
        Instead of the flow, apply this number of residual layers of step horizon/layers.
    feedforward : FeedForward, optional
        A layer with an activation, whose velocity is added to that of the parameters.
    mask_self : bool
        Let no token attend to itself.
    causal : bool
        Let token i attend to tokens j <= i only, in the order in which they are given.  The
        theory of Gaussian tokens does not cover this; the result says so.
    backend : {"auto", "numpy", "torch"}
        What computes the softmax averages.  torch's fused attention is used when asked for, and
        by itself if it is installed and there are tokens and cores enough to gain from it.
    dtype : {"float64", "float32"}
        Precision of scores and weights; single precision is about twice as fast, and good for
        six digits of the velocity while scores stay moderate.
    rtol : float
        Relative tolerance of the integrator, per token; at least 3e-14, in single precision 1e-6.
    max_steps : int
        Bound on the accepted steps.
    observe : int or (k,) array
        Number of equidistant times, or the times, at which the moments and some tokens are
        kept.  With layers, the nearest layers.  Times that are given are kept as they are,
        without start and end (but see where a run ends early).
    keep : int
        Number of tokens kept at these times, for pictures.
    spread : bool
        Also keep how the weights of attention are spread at these times: the weight that tokens
        give to themselves, and the effective number of tokens that they attend to.
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
    InvalidShape, InvalidNumber, InvalidMethod, NotFinite, IncompatibleSchedule
        If an argument does not fit the others, torch is not installed, or an activation is not
        finite where tokens arrive.
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
    shape = arguments.shape_of(tokens, count)
    schedule, end = resolve(parameters, horizon, shape[1])
    depth = None if layers is None else _check.integer("layers", layers, low=1)
    wanted = arguments.observation_times(observe, end, depth)
    kept = min(_check.integer("keep", keep, low=0), shape[0])
    layer = arguments.layer_of(feedforward, shape[1])
    arguments.require_memory(shape, schedule, len(wanted), kept, layer)
    generator = arguments.generator_of(rng)
    problem = TokenProblem(
        shape[0],
        schedule,
        end,
        depth,
        _check.number("rtol", rtol, low=FINEST),
        _check.integer("max_steps", max_steps, low=1),
        tokens if isinstance(tokens, Gaussian | Mixture) else None,
        int(rng) if isinstance(rng, int | np.integer) else None,
        antithetic,
        moment_matched,
        layer,
        bool(mask_self),
        bool(causal),
        kernels.choose(backend, dtype, shape[0]),
        dtype,
        name,
    )
    motion = _motion(problem)
    start = arguments.drawn(tokens, problem, generator)
    some = np.linspace(0, shape[0] - 1, kept).round().astype(np.intp)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # Overflow is looked for after each step and ends the run with a status of its own.
        cloud = Cloud(schedule, motion, start, end, wanted, some, bool(spread), progress)
        try:
            if depth is None:
                status = flow(cloud, problem.rtol, problem.max_steps)
            else:
                status = residual(cloud, depth, generator)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        cloud.finish()
    return _result(problem, cloud, status, time.perf_counter() - began)


def _motion(problem: TokenProblem) -> Motion:
    """How the tokens of a problem move."""
    if problem.mask_self and problem.causal:
        raise InvalidMethod(
            "with `causal` and `mask_self` the first token has nothing to attend to; use one of "
            "the masks."
        )
    if problem.dtype == "float32" and problem.layers is None and problem.rtol < SINGLE_RTOL:
        raise InvalidNumber(
            f"`rtol` is {problem.rtol:g}, but single precision cannot resolve less than "
            f'{SINGLE_RTOL:g}; use `dtype="float64"`.'
        )
    mask = Mask.SELF if problem.mask_self else Mask.CAUSAL if problem.causal else Mask.NONE
    average = kernels.average_by(problem.backend, problem.dtype, mask)
    return Motion(average, mask, problem.feedforward)


def _result(problem: TokenProblem, cloud: Cloud, status: Status, seconds: float) -> TokenRun:
    seen = cloud.seen
    times = [s.time for s in seen]
    own = [s.own_weight for s in seen if s.own_weight is not None]
    sizes = [s.effective_size for s in seen if s.effective_size is not None]
    return TokenRun(
        problem=problem,
        status=status,
        times=np.array(times),
        means=np.array([s.mean for s in seen]),
        covariances=np.array([s.covariance for s in seen]),
        clouds=np.array([s.tokens for s in seen]),
        final=cloud.lift(cloud.tokens),
        largest_norm=np.array([s.largest_norm for s in seen]),
        norm_bound=norm_bounds(
            cloud.start,
            problem.schedule,
            problem.horizon,
            times,
            layers=problem.layers,
            feedforward=problem.feedforward,
        ),
        own_weight=np.array(own) if own else None,
        effective_size=np.array(sizes) if sizes else None,
        steps=cloud.steps,
        evaluations=cloud.evaluations,
        seconds=seconds,
        reason=_reason(problem, cloud, status),
    )


def _reason(problem: TokenProblem, cloud: Cloud, status: Status) -> str:
    """Why the steps did not suffice: scores that are frozen where the run ended."""
    if status not in (Status.STEP_LIMIT, Status.STEP_SIZE):
        return ""
    p = problem.schedule(problem.schedule.snap(cloud.time))
    seen = measure_attention(p, cloud.lift(cloud.tokens), mask_self=problem.mask_self)
    return freezing(problem.count, seen.logit_variance)


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
        Draw pairs of opposite tokens; make the moments of the draw exact.  Opposite pairs bias
        the covariance where B is negative and the dimension high, as a token and its mirror image
        then attract each other's attention.
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

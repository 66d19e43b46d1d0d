"""The one way in: `validate`."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from .. import _check
from .._check import Array
from .._threads import single_threaded
from ..errors import InvalidNumber, InvalidShape
from ..feedforward import FeedForward
from ..finite_tokens import FiniteTokens
from ..gaussian import Gaussian
from ..parameters import Parameters
from ..problem import memory
from ..problem.definitions import ValidationProblem
from ..progress import Progress, silent
from ..results.courses import LawCourse
from ..results.validation import Validation
from ..schedule import Schedule, resolve
from . import kernels
from .arguments import layer_of, observation_times
from .crowd import FINEST_CROWD, Crowd
from .laws import LARGEST, follow
from .stamps import stamp, tilt

__all__ = ["validate"]

#: Total variances below this lose digits in double precision.
SMALLEST = 1e-290

Random = np.random.Generator | int | np.integer


@single_threaded
def validate(
    start: Gaussian,
    parameters: Parameters | Schedule,
    horizon: float | None = None,
    *,
    counts: Sequence[int] = (200, 800, 3200),
    seeds: int = 8,
    rng: Random = 0,
    layers: int | None = None,
    observe: int | ArrayLike = 21,
    mask_self: bool = False,
    feedforward: FeedForward | None = None,
    antithetic: bool = False,
    moment_matched: bool = False,
    closure: bool = False,
    shapes: int = 6,
    rtol: float = 1e-4,
    max_steps: int = 10_000,
    backend: str = "auto",
    dtype: str = "float64",
    progress: Progress = silent,
    name: str = "",
) -> Validation:
    """Hold clouds of finitely many tokens under actual softmax against the Gaussian law.

    Clouds of N tokens are drawn from the start and moved by actual softmax attention, and their
    mean and covariance are held against the Gaussian law: the one from the start, and the one
    from each cloud's own mean and covariance (which leaves the luck of the draw out).  The result
    tells how the errors fall with N beside the plain sampling error, how Gaussian the tokens
    stay, when softmax over N tokens may be replaced by its mean field at all, and when a cloud
    leaves a law that blows up.

    Parameters
    ----------
    start : Gaussian
        Law of the tokens at time 0, of positive rank.
    parameters : Parameters or Schedule
        Constant or time-varying parameters of dimension d.
    horizon : float, optional
        End time; by default the horizon of the schedule.  It may lie beyond a blow-up of the law:
        errors are then compared on the first half of the law's life, and the tokens go on.
    counts : sequence of int
        Numbers of tokens N, each at least 2.
    seeds : int
        Clouds that are drawn for each N.
    rng : numpy.random.Generator or int
        Source of randomness or its seed.
    layers : int, optional
        Instead of the flow, residual layers of step horizon/layers, for tokens and law; the flow
        is then given beside them.
    observe : int or (k,) array
        Number of equidistant times, or the times, of observation; start and end are added.  With
        layers, the nearest layers.
    mask_self : bool
        Whether tokens do not attend to themselves, as the mean field has it.
    feedforward : FeedForward, optional
        Layer with an activation, beside the affine part.  The law is then that of statistical
        linearisation, from which the tokens differ by their loss of Gaussian shape as well; see
        :func:`gtcontrol.closeness`.
    antithetic, moment_matched : bool
        How the tokens are drawn; see :meth:`gtcontrol.Gaussian.sample`.
    closure : bool
        Whether the law is also corrected for each finite number of tokens, as by
        ``gt.simulate(..., tokens=gt.FiniteTokens(N))``: a third curve beside clouds and law.
    shapes : int
        Times of observation at which the shape of the first cloud with most tokens is tested,
        see :func:`gtcontrol.gaussianity`; 0 leaves it out.  So does a cloud of too few tokens
        for the directions in which they vary; the result says so.
    rtol : float
        Relative tolerance of the integrator of the tokens, at least 1e-11 (in single precision
        1e-6); what it causes is measured.
    max_steps : int
        Bound on its accepted steps.
    backend, dtype : str
        What computes the softmax averages, and in which precision; see
        :func:`gtcontrol.simulate_tokens`.
    progress : callable, optional
        Called as ``progress(fraction, text)``.
    name : str, optional
        Name of the problem, kept in the result.

    Returns
    -------
    Validation
        An interrupted run keeps the clouds that are complete.

    Raises
    ------
    InvalidShape, InvalidNumber, InvalidMethod, IncompatibleSchedule
        If an argument does not fit the others.
    TooLarge
        If the clouds would not fit into memory.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> unit = gt.Gaussian([0.0], [[1.0]])
    >>> opposite = gt.Parameters(V=[[1.0]], B=[[-0.5]])
    >>> gt.validate(unit, opposite, 1.0, counts=[100, 400], seeds=4).verdict.name
    'FOLLOWS'
    """
    began = time.perf_counter()
    schedule, end = resolve(parameters, horizon, _check_start(start))
    problem = ValidationProblem(
        start,
        schedule,
        end,
        _check_counts(counts),
        _check.integer("seeds", seeds, low=1),
        None if isinstance(rng, np.random.Generator) else _check.integer("rng", rng, low=0),
        None if layers is None else _check.integer("layers", layers, low=1),
        antithetic,
        moment_matched,
        mask_self,
        layer_of(feedforward, start.dim),
        bool(closure),
        _check.number("rtol", rtol, low=FINEST_CROWD),
        _check.integer("max_steps", max_steps, low=1),
        name,
        backend,
        dtype,
    )
    for n in problem.counts:  # before any cloud has moved
        kernels.choose(backend, dtype, n)
        start.require_draws(n, antithetic=antithetic, moment_matched=moment_matched)
    times = _times(observe, problem.horizon, problem.layers)
    wanted = min(_check.integer("shapes", shapes, low=0), times.size)
    _require_memory(problem, times.size)
    generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(int(rng))
    law = follow(start, problem, times, problem.layers)
    continuous = None
    if problem.layers is not None and not problem.schedule.noisy:
        continuous = follow(start, problem, times, None)
    closures = _closures(problem, times) if closure else ()
    crowd = Crowd(problem, times, generator, wanted, progress)
    status = crowd.run()
    stamps = _stamps(problem, times, law)
    return Validation(
        problem=problem,
        status=status,
        times=times,
        law=law,
        continuous=continuous,
        closures=closures,
        clouds=tuple(crowd.clouds),
        shapes=tuple(crowd.tested),
        untested=crowd.untested,
        logit_variances=stamps[0],
        tilts=stamps[1],
        self_weights=stamps[2:],
        resolution=crowd.resolution,
        seconds=time.perf_counter() - began,
    )


def _closures(problem: ValidationProblem, times: Array) -> tuple[LawCourse, ...]:
    """The law corrected for each number of tokens."""
    made = (FiniteTokens(n, self_key=not problem.mask_self) for n in problem.counts)
    return tuple(follow(problem.start, problem, times, problem.layers, n) for n in made)


def _check_start(start: Gaussian) -> int:
    """Dimension of a start that has variance."""
    if not isinstance(start, Gaussian):
        raise InvalidShape(f"`start` must be a Gaussian, not {type(start).__name__}.")
    if not start.rank:
        raise InvalidNumber(
            "`start` has no variance: all tokens are equal and stay so, which `simulate` follows "
            "exactly."
        )
    with np.errstate(over="ignore", under="ignore"):
        size = start.trace
    if not SMALLEST < size < LARGEST:
        raise InvalidNumber(
            f"`start` has a total variance of {size:.3g}, which must lie between {SMALLEST:g} and "
            f"{LARGEST:g} for double precision; rescale the tokens (and B by the inverse square)."
        )
    return start.dim


def _check_counts(counts: Sequence[int]) -> tuple[int, ...]:
    """Numbers of tokens, increasing, each once."""
    if isinstance(counts, int | np.integer | str) or not len(counts):
        raise InvalidShape("`counts` must be a sequence of numbers of tokens, like (200, 800).")
    made = [_check.integer(f"counts[{i}]", n, low=2) for i, n in enumerate(counts)]
    if len(set(made)) < len(made):
        raise InvalidNumber(f"`counts` holds the same number twice: {', '.join(map(str, made))}.")
    return tuple(sorted(made))


def _times(observe: int | ArrayLike, horizon: float, layers: int | None) -> Array:
    """Times of observation from 0 to the horizon; with layers, those of layers."""
    times = observation_times(observe, horizon, layers)
    return np.array(sorted({0.0, *times, horizon}))


def _require_memory(problem: ValidationProblem, times: int) -> None:
    """Refuse what cannot be held: every cloud at every time, one cloud at a time."""
    d, clouds = problem.start.dim, problem.seeds * len(problem.counts)
    most = problem.counts[-1]
    memory.require(
        f"observing {clouds} clouds of up to {most} tokens of dimension {d} at {times} times",
        float(times) * d * (2.0 * most + 2.0 * clouds * (d + 1)),
        "take fewer tokens, times or dimensions",
    )


def _stamps(problem: ValidationProblem, times: Array, law: LawCourse) -> Array:
    """E a² and tilt, then the self-weight for each number of tokens; shape (2 + C, k)."""
    rows = []
    for t, mean, covariance in zip(times, law.means, law.covariances, strict=False):
        p = problem.schedule(float(t))
        seen = Gaussian.from_covariance(mean, covariance)
        made = [
            stamp(p, seen, n, mask_self=problem.mask_self, antithetic=problem.antithetic)
            for n in problem.counts
        ]
        weights = (s.self_weight for s in made)
        rows.append([made[0].logit_variance, tilt(p, seen), *weights])
    return np.array(rows).T

"""The one way in: `simulate`."""

from __future__ import annotations

import time
from decimal import Decimal

import numpy as np

from .. import _check
from .._threads import single_threaded
from ..errors import InvalidNumber, InvalidShape
from ..feedforward import FeedForward, check_feedforward
from ..finite_tokens import FiniteTokens
from ..gaussian import Gaussian
from ..moments.linearisation import Linearisation, check_linearisation
from ..parameters import Parameters
from ..problem.definitions import SimulationProblem
from ..progress import Progress, silent
from ..results.trajectory import Trajectory
from ..schedule import Schedule, resolve
from . import flow, layers as residual

__all__ = ["simulate"]

#: Multiples of the step of a layer up to this number are told apart by double precision.
MOST_LAYERS = 10**15

#: Smallest relative tolerance that the integrator can keep; with finitely many tokens the rates
#: are interpolated by splines, whose third derivative jumps.
FINEST, FINEST_TOKENS = 3e-14, 1e-8


@single_threaded
def simulate(
    start: Gaussian,
    parameters: Parameters | Schedule,
    horizon: float | None = None,
    *,
    layers: int | None = None,
    tokens: FiniteTokens | None = None,
    rtol: float = 1e-12,
    max_steps: int = 20_000,
    feedforward: FeedForward | None = None,
    linearisation: Linearisation = "statistical",
    progress: Progress = silent,
    name: str = "",
) -> Trajectory:
    """Move a Gaussian through the mean-field Transformer.

    The flow is integrated on (mean, factor), so the covariance stays positive semidefinite
    and of the same rank by construction.  Near a finite-time blow-up the integrator changes
    to a rescaled time, in which the blow-up lies at infinity, and finds its time.  With
    process noise the covariance itself is integrated, and the rank may grow.

    Parameters
    ----------
    start : Gaussian
        Law at time 0, dimension d, rank r.
    parameters : Parameters or Schedule
        Constant or time-varying parameters of dimension d.
    horizon : float, optional
        End time; by default the horizon of the schedule.
    layers : int, optional
        Instead of the flow, apply this number of residual layers of step horizon/layers,
        ``x⁺ = x + h v(x)``: exact for Gaussians too.  Of a deep network the laws after every
        n-th layer are kept, some thousands, and the last one.
    tokens : FiniteTokens, optional
        Instead of the mean field, follow one token among finitely many, by a closure: at
        every time the tokens are taken to be independent draws from the Gaussian, and
        softmax over them is averaged exactly.  The covariance then never blows up.
    rtol : float
        Relative tolerance of the integrator; with ``tokens`` at least 1e-8.
    max_steps : int
        Bound on the accepted steps; a trajectory that needs more is returned as far as it got.
    feedforward : FeedForward, optional
        A nonlinear feed-forward layer beside A x + b.  It does not keep laws Gaussian; what is
        followed is the Gaussian flow nearest to it, see ``linearisation``.
    linearisation : str
        "statistical": at each time the affine map that is nearest to the layer in mean square,
        so that the rates of mean and covariance are exact for a Gaussian.  "jacobian": the
        layer is linearised at the mean.
    progress : callable, optional
        Called as ``progress(fraction, text)``.
    name : str, optional
        Name of the problem, kept in the result.

    Returns
    -------
    Trajectory
        Its status says whether the horizon was reached, or a blow-up, or neither.

    Raises
    ------
    InvalidShape, IncompatibleSchedule, InvalidNumber, InvalidMethod
        If the dimensions or times do not fit, or there is no such linearisation.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> unit = gt.Gaussian([0.0], [[1.0]])
    >>> path = gt.simulate(unit, gt.Parameters(V=[[1.0]], B=[[1.0]]), horizon=1.0)
    >>> path.status.name, round(path.blow_up_time, 9)
    ('BLOW_UP', 0.5)
    """
    if not isinstance(start, Gaussian):
        raise InvalidShape(f"`start` must be a Gaussian, not {type(start).__name__}.")
    if tokens is not None and not isinstance(tokens, FiniteTokens):
        raise InvalidShape(
            f"`tokens` must be FiniteTokens(count), not {type(tokens).__name__}; actual tokens "
            "are moved by `simulate_tokens`."
        )
    schedule, end = resolve(parameters, horizon, start.dim)
    finest = FINEST if tokens is None else FINEST_TOKENS
    problem = SimulationProblem(
        start,
        schedule,
        end,
        None if layers is None else _depth(layers, end),
        max(_check.number("rtol", rtol, low=0.0, strict=True), finest),
        _check.integer("max_steps", max_steps, low=1),
        check_feedforward(feedforward, start.dim),
        check_linearisation(linearisation),
        name,
        tokens,
    )
    began = time.perf_counter()
    with np.errstate(over="ignore", invalid="ignore"):
        # Overflow is looked for after each step and ends the run with a status of its own.
        outcome = (flow if layers is None else residual).run(problem, progress)
    return Trajectory(
        problem=problem,
        status=outcome.status,
        times=outcome.times,
        means=outcome.means,
        factors=outcome.factors,
        blow_up_time=outcome.blow_up_time,
        steps=outcome.steps,
        evaluations=outcome.evaluations,
        seconds=time.perf_counter() - began,
        interpolant=outcome.interpolant,
    )


def _depth(layers: int, horizon: float) -> int:
    """Number of layers, checked to be such that their times differ."""
    depth = _check.integer("layers", layers, low=1)
    if depth > MOST_LAYERS or horizon / depth < np.finfo(float).tiny:
        raise InvalidNumber(
            f"`layers` is {Decimal(depth):.3g}, too many for times in [0, {horizon:g}] that "
            "differ in double precision; use fewer, or the flow."
        )
    return depth

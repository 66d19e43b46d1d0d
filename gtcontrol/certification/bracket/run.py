"""The blow-up time of a start: `blow_up`."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ... import _check
from ..._check import Array
from ..._threads import single_threaded
from ...arithmetic import balls
from ...errors import InvalidShape
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...progress import Progress, silent
from ...results.blow_up import BlowUp, BlowUpStatus
from ...results.claims import Claim
from ...riccati_flow.crossing import locate
from ...riccati_flow.noise import locate_with_noise
from ...riccati_flow.status import CrossingStatus
from ...riccati_flow.system import System
from ...riccati_flow.terms import scalar_values
from ...status import Verdict
from ..conclusion import conclude, settle
from ..ladder import ENCLOSURE, RUNGS, climb
from ..rules import rule
from ..rules.base import Scope
from ..search import regimes
from ..theory.infinity import remembered
from .covariance import CovarianceFlow
from .estimate import Estimate, estimate_blow_up
from .plan import LARGEST_DIM, Bracket
from .pursuit import draft, pursue
from .reduction import reduced
from .spectral import time_from_below

__all__ = ["blow_up"]

#: Bits of the bound that needs no integration.
BITS = 128

#: Relative width below which the middle of a bracket is better than the integration in floats.
NARROW = 1e-10

#: Added where coordinates were left out.
_WITHIN = " in the coordinates that the covariance ever reaches"

_STATUS = {
    CrossingStatus.BLOWS_UP: BlowUpStatus.BLOWS_UP,
    CrossingStatus.NEVER: BlowUpStatus.NEVER,
    CrossingStatus.TANGENT: BlowUpStatus.MARGINAL,
    CrossingStatus.NOT_BEFORE: BlowUpStatus.UNDECIDED,
}


@single_threaded
@np.errstate(all="ignore")
def blow_up(
    parameters: Parameters,
    start: Gaussian,
    *,
    horizon: float | None = None,
    precise: bool = True,
    progress: Progress = silent,
) -> BlowUp:
    """Say when the covariance of a start blows up under constant parameters, with proof.

    Integration in double precision looks for a blow-up.  Up to dimension 8 the covariance is then
    integrated again in ball arithmetic, which encloses it, to a time near the blow-up, from
    where theorems bound the time that is left from both sides.  The bounds are usually a few
    floats apart.  Where this fails, the theorems of :func:`gtcontrol.certify` are asked.

    Parameters
    ----------
    parameters : Parameters
        Constant parameters of dimension d.
    start : Gaussian
        Start of dimension d and any rank.
    horizon : float, optional
        Look for a blow-up up to this time only; by default as far as some thousand steps reach.
    precise : bool
        Whether to integrate in ball arithmetic and to ask all theorems; if not, and no closed form
        applies, the estimate is all there is.
    progress : callable, optional
        Called as ``progress(fraction, text)``.

    Returns
    -------
    BlowUp
        Its status, the proved bounds ``lower`` and ``upper``, the ``estimate``, and ``proved``.

    Raises
    ------
    InvalidShape, InvalidNumber
        If the arguments are of the wrong type, or do not fit.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> p = gt.Parameters(V=[[2.0, 0.0], [0.0, -1.0]], B=[[1.0, 0.0], [0.0, 1.0]])
    >>> found = gt.blow_up(p, gt.Gaussian.from_covariance([0, 0], [[1, 0], [0, 1]]))
    >>> found.status.name, found.proved, round(found.estimate, 12)
    ('BLOWS_UP', True, 0.25)
    """
    if not isinstance(parameters, Parameters):
        raise InvalidShape(
            f"`parameters` must be constant Parameters, not {type(parameters).__name__}."
        )
    if not isinstance(start, Gaussian):
        raise InvalidShape(f"`start` must be a Gaussian, not {type(start).__name__}.")
    if start.dim != parameters.dim:
        raise InvalidShape(
            f"`start` has dimension {start.dim}, but `parameters` {parameters.dim}; "
            "they must agree."
        )
    if horizon is not None:
        horizon = _check.number("horizon", horizon, low=0.0, strict=True)
    inner, factor = reduced(parameters, start.factor)
    crossing = _closed_form(inner, factor)
    if crossing is not None and (crossing.proved or crossing.status is BlowUpStatus.MARGINAL):
        whole = scalar_values(parameters.heads) is not None
        return crossing if whole else replace(crossing, reason=f"{crossing.reason}{_WITHIN}")
    exact = inner.dim <= LARGEST_DIM
    lower = _bound_from_below(inner, factor) if exact else _no_attention(inner)
    if lower == math.inf:
        reason = "attention is too weak for the start, or absent, at all times"
        return BlowUp(BlowUpStatus.NEVER, lower, lower, lower, proved=True, reason=reason)
    progress(0.1, "integrating")
    seen = estimate_blow_up(inner, factor, horizon)
    if seen.time == math.inf:
        known = _theorem(inner, factor, math.inf)
        reason = f"integration in double precision saw no blow-up up to t = {seen.reached:.6g}"
        found = BlowUp(BlowUpStatus.UNDECIDED, lower, math.inf, math.inf, False, reason)
        return known or (_certified(inner, factor, found, progress) if precise else found)
    if not precise or not exact:
        reason = f"integration in balls is limited to dimension {LARGEST_DIM}"
        if exact:
            reason = "a proof was not asked for"
        return BlowUp(BlowUpStatus.BLOWS_UP, lower, math.inf, seen.time, False, reason)
    found = _bracket(inner, factor, seen, lower, progress)
    if found.proved:
        return found
    return _theorem(inner, factor, seen.time) or _certified(inner, factor, found, progress)


def _bracket(
    parameters: Parameters, factor: Array, seen: Estimate, lower: float, progress: Progress
) -> BlowUp:
    """Integrate in balls towards a blow-up that was seen."""

    def tell(part: float) -> None:
        progress(0.2 + 0.8 * part, "integrating in balls")

    plan = draft(parameters, factor, seen)
    found = pursue(parameters, factor, plan, seen.time, tell)
    bracket = Bracket(lower, math.inf) if found is None else found[1]
    if bracket.proved:
        estimate = min(max(seen.time, bracket.lower), bracket.upper)
        if bracket.width < NARROW:
            estimate = 0.5 * bracket.lower + 0.5 * bracket.upper
        reason = "integration in balls, and bounds on the time that is left"
        return BlowUp(BlowUpStatus.BLOWS_UP, bracket.lower, bracket.upper, estimate, True, reason)
    reason = "no theorem that is tried here proves the blow-up that integration sees"
    if found is None:
        reason = "balls could not enclose the covariance up to the blow-up"
    lower = max(lower, bracket.lower)
    return BlowUp(BlowUpStatus.BLOWS_UP, lower, math.inf, seen.time, False, reason)


def _closed_form(parameters: Parameters, factor: Array) -> BlowUp | None:
    """Answer of the closed form if all value matrices are multiples of the identity."""
    heads = parameters.heads
    if scalar_values(heads) is None:
        return None
    system, noise = System(parameters.A, heads), parameters.noise
    if noise is None or not np.any(noise):
        crossing = locate(system, factor)
    else:
        crossing = locate_with_noise(system, factor, noise)
    # A tangency proves that there is no blow-up before it, and nothing about a blow-up.
    touches = crossing.status is CrossingStatus.TANGENT
    return BlowUp(
        _STATUS[crossing.status],
        crossing.lower,
        math.inf if touches else crossing.upper,
        crossing.estimate,
        crossing.proved and crossing.status is not CrossingStatus.NOT_BEFORE,
        "closed form of the covariance, as every V is a multiple of the identity",
    )


def _theorem(parameters: Parameters, factor: Array, seen: float) -> BlowUp | None:
    """What the tests of order d prove of a blow-up seen at a time, or that there is none (inf)."""
    never = seen == math.inf
    law = Gaussian.trusted(np.zeros(parameters.dim), factor)
    problem = CertificationProblem((parameters,), law)
    for claim in regimes.find(problem):
        said = rule(claim.rule).state(problem, claim)
        wanted = (Verdict.BOUNDED, Verdict.CONVERGES) if never else (Verdict.BLOWS_UP,)
        if said.scope is Scope.SOME_STARTS or said.verdict not in wanted:
            continue
        if never and settle(problem, claim).proved:
            top = math.inf
            return BlowUp(BlowUpStatus.NEVER, top, top, top, proved=True, reason=said.text)
        if said.upper < math.inf and settle(problem, claim).proved:
            time = min(max(seen, said.lower), said.upper)
            return BlowUp(BlowUpStatus.BLOWS_UP, said.lower, said.upper, time, True, said.text)
    return None


def _certified(parameters: Parameters, factor: Array, seen: BlowUp, progress: Progress) -> BlowUp:
    """What all theorems together prove of the start, or else what was seen."""

    def tell(part: float, text: str) -> None:
        progress(0.5 + 0.5 * part, text)

    problem = CertificationProblem(
        (parameters,), Gaussian.trusted(np.zeros(parameters.dim), factor)
    )
    claims: list[Claim] = []
    with remembered():
        climb(problem, claims, tell, [rung for rung in RUNGS if rung is not ENCLOSURE])
    found = conclude(problem, claims)
    lower = max(seen.lower, found.lower)
    if found.lower == math.inf:
        return BlowUp(BlowUpStatus.NEVER, lower, lower, lower, True, found.statement)
    if not (found.proved and found.verdict is Verdict.BLOWS_UP):
        return replace(seen, lower=lower)
    estimate = min(max(seen.estimate, lower), found.upper)
    if math.isinf(seen.estimate) and math.isfinite(found.upper):
        estimate = 0.5 * lower + 0.5 * found.upper
    return BlowUp(BlowUpStatus.BLOWS_UP, lower, found.upper, estimate, True, found.statement)


def _bound_from_below(parameters: Parameters, factor: Array) -> float:
    """Bound on the blow-up time from the sizes of the matrices; inf if there is no blow-up."""
    if not factor.shape[1] and not (parameters.noise is not None and np.any(parameters.noise)):
        return math.inf
    with balls.precision(BITS):
        flow = CovarianceFlow(parameters, np.eye(parameters.dim))
        time = time_from_below(flow, flow.covariance(factor))
        return math.inf if time is None else max(0.0, balls.below(time))


def _no_attention(parameters: Parameters) -> float:
    """Lower bound in large dimension: inf without attention, else 0."""
    idle = all(not (np.any(V) and np.any(B)) for V, B, _ in parameters.heads)
    return math.inf if idle else 0.0

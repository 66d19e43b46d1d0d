"""One entry to certification: from tests that cost nothing to semidefinite programs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np

from .._interrupt import Interruption
from .._threads import single_threaded
from ..errors import Contradiction, InvalidNumber, InvalidShape, OutOfScale
from ..gaussian import Gaussian
from ..parameters import Parameters
from ..problem.definitions import CertificationProblem
from ..progress import Progress, silent
from ..results.certificate import Certificate, Integration
from ..results.claims import Claim
from ..status import Status, Verdict
from .conclusion import Conclusion, conclude, settle
from .evidence import integrate, integrations
from .ladder import RUNGS, climb
from .rules.integration import claim_of
from .theory.infinity import remembered

__all__ = ["certify"]

#: Largest entries must lie between these, so that their products stay in the range of floats.
SMALLEST, LARGEST = 1e-153, 1e153

#: Relative change of a start by which the sensitivity of its blow-up time is told ...
NEARBY = 1e-9

#: ... and multiple of the spread within which a time is no contradiction.
WORTH = 10.0

#: How closely, relatively, an integration and a proved enclosure of the blow-up time must agree.
AGREEMENT = 1e-6


@single_threaded
@np.errstate(all="ignore")
def certify(
    parameters: Parameters | Sequence[Parameters],
    start: Gaussian | None = None,
    *,
    progress: Progress = silent,
    name: str = "",
) -> Certificate:
    """Say with proof what the covariance does: converge, stay bounded, or blow up, and when.

    The rungs are climbed from closed forms and n-by-n tests through matrix inequalities (up to
    dimension 8) to accurate integration.  What exact or ball arithmetic has checked is proved;
    everything else is called numerical.

    Parameters
    ----------
    parameters : Parameters, or sequence of Parameters
        Constant parameters.  Several are the vertices of a family: parameters that vary in
        time, arbitrarily, within their convex hull.
    start : Gaussian, optional
        Start; without it the question is about all starts.
    progress : callable, optional
        Called as ``progress(fraction, text)``.
    name : str, optional
        Name of the problem, kept in the result.

    Returns
    -------
    Certificate
        Its verdict, statement and ``proved``; :func:`gtcontrol.verify` checks it again.

    Raises
    ------
    InvalidShape
        If the dimensions do not fit, or the arguments are of the wrong type.
    OutOfScale
        If numbers, or products of V and B, leave the range of floats.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> p = gt.Parameters(A=[[0.5]], V=[[1.0]], B=[[1.0]])
    >>> answer = gt.certify(p, gt.Gaussian([0.0], [[1.0]]))
    >>> answer.verdict.name, answer.proved, round(answer.lower, 9)
    ('BLOWS_UP', True, 0.405465108)
    """
    problem = _problem(parameters, start, name)
    _check_scale(problem)
    began = time.perf_counter()
    claims: list[Claim] = []
    seen: list[Integration] = []
    status = Status.SUCCESS
    with Interruption() as interruption:
        try:
            with interruption.unmasked(), remembered():
                climb(problem, claims, progress, RUNGS)
                progress(0.85, "integrating")
                seen.extend(integrations(problem))
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
    evidence = claim_of(problem, tuple(seen))
    if evidence is not None:
        claims.append(settle(problem, evidence))
    found = conclude(problem, claims)
    _hold_against(found, problem, seen)
    return Certificate(
        problem=problem,
        verdict=found.verdict,
        statement=found.statement,
        proved=found.proved,
        claims=found.claims,
        lower=found.lower,
        upper=found.upper,
        bound=found.bound,
        integrations=tuple(seen),
        status=status,
        seconds=time.perf_counter() - began,
    )


def _problem(
    parameters: Parameters | Sequence[Parameters], start: Gaussian | None, name: str
) -> CertificationProblem:
    if not isinstance(parameters, Parameters | Sequence):
        raise InvalidShape(
            f"`parameters` must be Parameters, or several of them, not {type(parameters).__name__}."
        )
    vertices = (parameters,) if isinstance(parameters, Parameters) else tuple(parameters)
    if not vertices:
        raise InvalidNumber("`parameters` is empty; give at least one vertex of the family.")
    for vertex in vertices:
        if not isinstance(vertex, Parameters):
            raise InvalidShape(
                f"`parameters` must be Parameters, or several of them, not {type(vertex).__name__}."
            )
        if vertex.dim != vertices[0].dim:
            raise InvalidShape(
                f"the vertices have dimensions {vertices[0].dim} and {vertex.dim}; they must agree."
            )
    if start is not None:
        if not isinstance(start, Gaussian):
            raise InvalidShape(f"`start` must be a Gaussian, not {type(start).__name__}.")
        if start.dim != vertices[0].dim:
            raise InvalidShape(
                f"`start` has dimension {start.dim}, but `parameters` {vertices[0].dim}."
            )
    return CertificationProblem(vertices, start, name)


def _hold_against(
    found: Conclusion, problem: CertificationProblem, seen: Sequence[Integration]
) -> None:
    """Refuse a proof that an accurate integration contradicts.

    Near a threshold rounding decides what an integration does: it contradicts the proof only if
    integrations from slightly smaller and larger starts do so on the same side.
    """
    for one in seen:
        if one.outcome != "blow-up" or _agrees(found, problem, one.time):
            continue
        if problem.start is not None and _sensitive(found, problem, one.time):
            continue
        raise Contradiction(
            f"the integration blows up at t = {one.time!r}, which contradicts what is proved, a "
            f"defect of gtcontrol: {found.statement!r}"
        )


def _agrees(found: Conclusion, problem: CertificationProblem, time: float) -> bool:
    """Whether a blow-up at this time is compatible with what is proved."""
    if problem.start is not None:
        low, high = found.lower * (1 - AGREEMENT), found.upper * (1 + AGREEMENT)
        return low <= time <= high
    # Without a start the proof may be about some starts only.
    every = found.proved and found.verdict in (Verdict.CONVERGES, Verdict.BOUNDED)
    return not every and found.bound == math.inf


def _sensitive(found: Conclusion, problem: CertificationProblem, time: float) -> bool:
    """Whether rounding decides when the start blows up, and could decide as the proof does.

    The spread over starts nearby and over a looser tolerance tells how much such a time is worth.
    """
    start = problem.start or Gaussian([0.0], [[1.0]])
    size = float(np.max(np.abs(start.factor), initial=0.0))
    noise = np.random.default_rng(0).standard_normal(start.factor.shape)
    tries = [
        (start.factor * (1.0 - NEARBY), 1e-11),
        (start.factor * (1.0 + NEARBY), 1e-11),
        (start.factor + NEARBY * size * noise, 1e-11),
        (start.factor, 1e-8),
    ]
    times = [time]
    for factor, rtol in tries:
        near = Gaussian.trusted(start.mean, factor)
        one = integrate(problem.parameters, near, from_start=True, rtol=rtol)
        times.append(one.time if one.outcome == "blow-up" else math.inf)
    room = WORTH * (max(times) - min(times))
    return min(times) - room <= found.upper and max(times) + room >= found.lower


def _check_scale(problem: CertificationProblem) -> None:
    """Refuse numbers whose products leave the range of floats.

    Raises
    ------
    OutOfScale
        With the number.
    """
    sizes: dict[str, float] = {}
    for i, p in enumerate(problem.vertices):
        where = f" of vertex {i}" if len(problem.vertices) > 1 else ""
        for letter in ("A", "V", "B", "noise"):
            values = getattr(p, letter)
            if values is not None and values.any():
                sizes[f"`{letter}`{where}"] = float(np.max(np.abs(values)))
        for V, B, _ in p.heads:
            if V.any() and B.any():
                product = float(np.max(np.abs(V))) * float(np.max(np.abs(B)))
                sizes[f"the product of `V` and `B`{where}"] = product
    if problem.start is not None and problem.start.rank:
        sizes["the factor of `start`"] = float(np.max(np.abs(problem.start.factor)))
    for name, size in sizes.items():
        if not SMALLEST <= size <= LARGEST:
            raise OutOfScale(
                f"the largest entry of {name} is {size:.3g}, beyond the range {SMALLEST:g} to "
                f"{LARGEST:g} in which certificates are computed; rescale tokens or time."
            )

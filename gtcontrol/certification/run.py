"""One entry to certification: from tests that cost nothing to semidefinite programs."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from .._interrupt import Interruption
from .._threads import single_threaded
from ..errors import InvalidNumber, InvalidShape, NotFinite, OutOfScale
from ..gaussian import Gaussian
from ..parameters import Parameters
from ..problem.definitions import CertificationProblem
from ..progress import Progress, silent
from ..results.certificate import Certificate, Integration
from ..results.claims import Claim
from ..status import Status
from .conclusion import Conclusion, Contradiction, conclude, settle
from .evidence import integrations
from .ladder import RUNGS, Rung
from .rules.integration import claim_of

__all__ = ["certify"]

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

    Examples
    --------
    >>> import gtcontrol as gt
    >>> p = gt.Parameters(A=[[0.5]], V=[[1.0]], B=[[1.0]])
    >>> answer = gt.certify(p, gt.Gaussian([0.0], [[1.0]]))
    >>> answer.verdict.name, answer.proved, round(answer.lower, 9)
    ('BLOWS_UP', True, 0.405465108)
    """
    problem = _problem(parameters, start, name)
    began = time.perf_counter()
    claims: list[Claim] = []
    seen: list[Integration] = []
    status = Status.SUCCESS
    with Interruption() as interruption:
        try:
            with interruption.unmasked():
                _climb(problem, claims, progress)
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


def _climb(problem: CertificationProblem, claims: list[Claim], progress: Progress) -> None:
    """Add claims rung by rung, each asked for its proof as it comes; useless rungs are left out.

    What was added before an interruption stays.
    """
    for i, rung in enumerate(RUNGS):
        if rung.serves(problem, conclude(problem, claims)):
            progress(0.8 * i / len(RUNGS), rung.title)
            claims.extend(settle(problem, claim) for claim in _found(rung, problem))


def _found(rung: Rung, problem: CertificationProblem) -> Iterator[Claim]:
    """Claims of a rung, until its numbers leave the range of floats.

    What was found is proved before it counts, so no warning about rounding matters.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield from rung.find(problem)
        except (ArithmeticError, np.linalg.LinAlgError, NotFinite, OutOfScale):
            return


def _hold_against(
    found: Conclusion, problem: CertificationProblem, seen: Sequence[Integration]
) -> None:
    """Refuse a proof that an accurate integration contradicts."""
    for one in seen:
        if one.outcome != "blow-up":
            continue
        finite = not math.isinf(found.lower)
        if problem.start is not None and finite:
            low, high = found.lower * (1 - AGREEMENT), found.upper * (1 + AGREEMENT)
            if low <= one.time <= high:
                continue
        elif found.bound == math.inf and finite:
            continue
        raise Contradiction(
            f"the integration blows up at t = {one.time!r}, which contradicts what is proved, a "
            f"defect of gtcontrol: {found.statement!r}"
        )

"""The one way in: `compare`."""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import ArrayLike

from ... import _check
from ..._check import Array
from ..._threads import single_threaded
from ...errors import InvalidMethod, InvalidShape
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...problem.definitions import ComparisonProblem
from ...progress import Progress, silent
from ...results.comparison import Comparison, HiddenMode, Row
from ...riccati_flow.kalman import KalmanModel
from ...riccati_flow.status import CrossingStatus
from ...riccati_flow.terms import quadratic_term, scalar_values
from ...status import KalmanVerdict
from .backends import answers, versions
from .conjugate import crossing_of, settle
from .course import Course, follow
from .equation import Equation
from .modes import groups, hidden
from .reasons import of_crossing, of_ending, of_limit
from .rows import contradicted, table
from .steady import Limit, long_run

__all__ = ["compare"]


@single_threaded
def compare(
    A: ArrayLike | KalmanModel | Parameters,
    C: ArrayLike | None = None,
    R: ArrayLike | None = None,
    noise: ArrayLike | None = None,
    start: Gaussian | None = None,
    *,
    horizon: float | None = None,
    progress: Progress = silent,
    name: str = "",
) -> Comparison:
    """Compare the covariance flow with what Riccati solvers of control theory say of it.

    The error covariance of the Kalman-Bucy filter of dx = A x dt + dw, dy = C x dt + dv obeys
    S' = A S + S Aᵀ - S Cᵀ R⁻¹ C S + Q, which is the covariance flow of attention with V = v I and
    v (B + Bᵀ) = -Cᵀ R⁻¹ C.  Where it tends is decided by ordered Schur forms, on the imaginary
    axis too; the flow is integrated; and python-control, SciPy and slycot (where it is installed)
    are asked for the steady state.  Every answer is judged by its residual, its distance to a
    root, the signs of its eigenvalues, its closed loop, and by whether the flow goes there.

    Parameters
    ----------
    A : (d, d) array, KalmanModel or Parameters
        Dynamics; or a model, or parameters with V = v I, which hold all but the start.  Parameters
        whose K = v (B + Bᵀ) has a positive eigenvalue are no filter: the blow-up is then found.
    C : (p, d) array, optional
        What is measured; a vector (d,) is one measurement.
    R : (p, p) array, optional
        Intensity of the measurement noise; by default the identity.
    noise : (d, d) array, optional
        Intensity Q of the process noise; by default none.
    start : Gaussian, optional
        Law at time 0, of any rank, which matters: `Gaussian.from_covariance` counts variances
        below 1e-10 of the largest as none, so give small ones by a factor.  By default the
        question is about all full-rank covariances.
    horizon : float, optional
        Time to which the flow is followed; by default long enough to see what it does.
    progress : callable, optional
        Called as ``progress(fraction, text)``.
    name : str, optional
        Name of the problem, kept in the result.

    Returns
    -------
    Comparison
        Its ``table`` has a row for each answer.

    Raises
    ------
    InvalidShape, NotFinite, IndefiniteCovariance, InvalidMethod, InvalidNumber
        If the data do not fit, or a value matrix is no multiple of the identity.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> seen = gt.compare([[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> seen.verdict.name, seen.limit.covariance.round(12).tolist()
    ('MARGINAL', [[2.0, 0.0], [0.0, 0.0]])
    """
    began = time.perf_counter()
    problem = _problem(A, C, R, noise, start, horizon, name)
    equation = Equation.of(problem)
    progress(0.0, "where the covariance tends")
    lower = upper = math.inf
    if problem.filters:
        limit = long_run(equation, None if start is None else start.factor)
        full = limit if start is None else long_run(equation, None)
        progress(0.3, "the flow")
        course = follow(problem, equation, limit)
        reason = of_limit(problem, equation, limit, full) + of_ending(course)
    else:
        crossing = crossing_of(problem)
        limit, course = settle(problem, equation, crossing)
        full = limit
        if crossing.status is not CrossingStatus.NEVER:
            lower, upper = crossing.lower, crossing.upper
        reason = of_crossing(problem, crossing, limit)
    verdict = limit.verdict
    if contradicted(equation, limit, course):
        verdict = KalmanVerdict.UNDECIDED
        reason = "The integrated flow does not go where the algebra says: nothing is claimed."
    progress(0.7, "other solvers")
    rows = table(equation, limit, full, course, answers(equation))
    progress(1.0, verdict.name)
    return _result(
        problem, equation, limit, full, course, rows, verdict, reason, (lower, upper), began
    )


def _result(
    problem: ComparisonProblem,
    equation: Equation,
    limit: Limit,
    full: Limit,
    course: Course,
    rows: tuple[Row, ...],
    verdict: KalmanVerdict,
    reason: str,
    crossing: tuple[float, float],
    began: float,
) -> Comparison:
    S = limit.covariance
    closed = equation.A if S is None else equation.closed_loop(S)
    values = np.linalg.eigvals(closed).astype(np.complex128)
    return Comparison(
        problem=problem,
        verdict=verdict,
        reason=reason,
        limit=None if S is None else _law(S, limit.rank),
        error_estimate=limit.error,
        spectrum=values[np.lexsort((-values.imag, -values.real))],
        rate=limit.rate,
        period=limit.period,
        full_rank=full.covariance,
        hidden=_hidden(equation),
        lower=crossing[0],
        upper=crossing[1],
        table=rows,
        times=course.times,
        eigenvalues=course.eigenvalues,
        final=course.final,
        agreement=course.agreement,
        versions=versions(),
        seconds=time.perf_counter() - began,
    )


def _law(S: Array, rank: int | None) -> Gaussian:
    """The limit as a law of mean zero; what is below rounding is no variance."""
    d = len(S)
    if rank == d:
        try:  # keeps the digits of small entries
            factor = np.asarray(np.linalg.cholesky(S), dtype=float)
            return Gaussian.trusted(np.zeros(d), factor)
        except np.linalg.LinAlgError:
            rank = None
    values, vectors = np.linalg.eigh(S)
    if rank is None:
        rank = int(np.sum(values > 1e-15 * d * max(float(values[-1]), 0.0)))
    kept = np.maximum(values[d - rank :], 0.0)
    factor = vectors[:, d - rank :] * np.sqrt(kept)
    return Gaussian.trusted(np.zeros(d), np.asarray(factor[:, ::-1]))


def _hidden(equation: Equation) -> tuple[HiddenMode, ...]:
    """Modes that measurements do not see, or noise does not drive, unless they decay."""
    spectrum = groups(equation.A)
    count = spectrum.unstable + spectrum.axis
    if not count:
        return ()
    above = float(spectrum.values[count - 1].real) - 1e-10 * spectrum.size
    unseen = [h.named("detectability") for h in hidden(equation.A, equation.C, above)]
    # Without noise nothing is driven: that is the premise, not a finding.
    undriven = hidden(equation.A.T, equation.Q, above) if equation.Q.any() else ()
    return (*unseen, *(h.named("stabilisability") for h in undriven))


def _problem(
    A: ArrayLike | KalmanModel | Parameters,
    C: ArrayLike | None,
    R: ArrayLike | None,
    noise: ArrayLike | None,
    start: Gaussian | None,
    horizon: float | None,
    name: str,
) -> ComparisonProblem:
    if start is not None and not isinstance(start, Gaussian):
        raise InvalidShape(f"`start` must be a Gaussian, not {type(start).__name__}.")
    end = None if horizon is None else _check.number("horizon", horizon, low=0.0, strict=True)
    if isinstance(A, KalmanModel | Parameters):
        if C is not None or R is not None or noise is not None:
            raise InvalidShape(
                f"`C`, `R` and `noise` are part of the {type(A).__name__}: leave them out."
            )
        made = _of_parameters(A) if isinstance(A, Parameters) else _of_model(A)
    else:
        if C is None:
            raise InvalidShape("`C` is missing: say what is measured, or give a KalmanModel.")
        made = _of_model(KalmanModel(A, C, R, noise))
    dynamics, measured, weight, K, Q = made
    if start is not None and start.dim != len(dynamics):
        raise InvalidShape(f"`start` has dimension {start.dim}, but `A` has order {len(dynamics)}.")
    problem = ComparisonProblem(dynamics, measured, weight, K, Q, start, end, name)
    if start is None and not problem.filters:
        top = float(np.linalg.eigvalsh(K)[-1])
        raise InvalidMethod(
            f"K has the positive eigenvalue {top:.6g}, so whether the covariance blows up depends "
            "on the start: give `start`."
        )
    return problem


def _of_model(model: KalmanModel) -> tuple[Array, Array, Array, Array, Array | None]:
    return model.A, model.C, model.R, -model.information, model.noise


def _of_parameters(p: Parameters) -> tuple[Array, Array, Array, Array, Array | None]:
    """C with orthogonal rows and R = diag(±1) with K = -Cᵀ R⁻¹ C."""
    if scalar_values(p.heads) is None:
        KalmanModel.from_parameters(p)  # which says by how much
    K = quadratic_term(p.heads)
    values, vectors = np.linalg.eigh(-K)
    size = float(np.max(np.abs(values), initial=0.0))
    kept = np.abs(values) > 1e-13 * size
    C = (vectors[:, kept] * np.sqrt(np.abs(values[kept]))).T
    return p.A, C, np.diag(np.sign(values[kept])), K, p.noise

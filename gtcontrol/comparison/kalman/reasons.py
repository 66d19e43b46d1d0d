"""The verdict in full sentences."""

from __future__ import annotations

import math

import numpy as np

from ..._check import Array
from ...problem.definitions import ComparisonProblem
from ...riccati_flow.status import Crossing, CrossingStatus
from ...status import KalmanVerdict, Status
from .course import Course
from .equation import Equation
from .modes import Hidden, groups
from .steady import Limit

__all__ = ["of_crossing", "of_ending", "of_limit", "written"]


_NO_ROOT = " No root of the algebraic equation is stabilising."


#: Why a flow is not followed to its horizon.
_ENDINGS = {
    Status.OVERFLOW: "the covariance leaves the range of floats there",
    Status.UNDERFLOW: "an eigenvalue of the covariance falls below the range of floats there",
    Status.STEP_LIMIT: "its fast modes need more steps than are spent on it",
    Status.INTERRUPTED: "it was interrupted",
}


def written(value: complex) -> str:
    """An eigenvalue in words."""
    if value.imag == 0:
        return f"{value.real:.6g}"
    real = f"{value.real:.6g} " if value.real else ""
    return f"{real}± {abs(value.imag):.6g}i" if real else f"±{abs(value.imag):.6g}i"


def _vector(mode: Hidden) -> str:
    v = mode.direction
    shown = ", ".join(_entry(complex(x)) for x in v[:6])
    return f"({shown}{', ...' if len(v) > 6 else ''})"


def _entry(x: complex) -> str:
    x = complex(round(x.real, 4) + 0.0, round(x.imag, 4) + 0.0)
    if x.imag == 0:
        return f"{x.real:.4g}"
    return f"{x.real:.4g}{x.imag:+.4g}i" if x.real else f"{x.imag:.4g}i"


def of_limit(problem: ComparisonProblem, equation: Equation, limit: Limit, full: Limit) -> str:
    """Say what a filter's covariance does, and why."""
    who = _who(problem)
    if limit.verdict is KalmanVerdict.UNBOUNDED and limit.mode is not None:
        return f"{who} grows without bound, {_growth(limit, limit.mode)}"
    if limit.verdict is KalmanVerdict.PERIODIC:
        return f"{who} has no limit: {_turning(problem, limit)}{_besides(limit, full)}"
    if limit.verdict is KalmanVerdict.CONTINUUM and limit.mode is not None:
        return _continuum(problem, limit, limit.mode, who)
    if limit.verdict is KalmanVerdict.UNDECIDED:
        return f"No limit is claimed: {limit.cause}"
    S = limit.covariance
    rank = limit.rank
    if rank is None:
        rank = 0 if S is None else int(np.sum(np.linalg.eigvalsh(S) > _tiny(S)))
    towards = "to 0" if not rank else f"to a covariance of rank {rank}"
    if limit.verdict is KalmanVerdict.MARGINAL:
        how = f"{who} converges {towards}, like a power of t: {_margin(equation, limit)}"
        none = "" if full.verdict is KalmanVerdict.CONVERGES else _NO_ROOT
        return f"{how}{none}{_besides(limit, full)}"
    pace = f"at the rate {limit.rate:.6g}" if math.isfinite(limit.rate) else "at once"
    lost = ""
    if problem.start is not None and problem.noise is None and rank < problem.start.rank:
        lost = f" It loses rank: {problem.start.rank} at the start, {rank} in the limit."
    away = ""
    if limit.partial:
        away = (
            " It has no part in faster unstable modes: arbitrarily small changes of the start, and "
            "rounding, lead elsewhere."
        )
    return f"{who} converges {towards} {pace}.{lost}{away}{_besides(limit, full)}"


def _tiny(S: Array) -> float:
    return 1e-12 * float(np.linalg.norm(S, 2))


def _who(problem: ComparisonProblem) -> str:
    if problem.start is None:
        return "The covariance of full-rank starts"
    return f"The covariance of this start (rank {_rank(problem)})"


def _rank(problem: ComparisonProblem) -> str:
    """Rank of the start, and that it is not full."""
    rank = problem.dim if problem.start is None else problem.start.rank
    return f"{rank}" if rank == problem.dim else f"{rank} of {problem.dim}"


def of_ending(course: Course) -> str:
    """Say why the flow was not followed to its horizon, if so."""
    if course.ending is Status.SUCCESS:
        return ""
    why = _ENDINGS.get(course.ending, f"its integration ended with {course.ending.name}")
    return f" The flow is followed to t = {float(course.times[-1]):.4g} only, as {why}."


def _growth(limit: Limit, mode: Hidden) -> str:
    where = f"the mode λ = {written(mode.value)} in the direction {_vector(mode)}"
    if limit.cause == "driven":
        power = "" if limit.rate else ", like a power of t"
        return f"as noise drives {where}, which no measurement sees{power}: not detectable."
    if limit.cause == "chained":
        return (
            f"like a power of t: {where} lies on the imaginary axis, no measurement sees it, and "
            "the error of the other modes at this eigenvalue drives it."
        )
    return (
        f"like exp({limit.rate:.6g} t): no measurement sees {where}, so (C, A) is not detectable."
    )


def _turning(problem: ComparisonProblem, limit: Limit) -> str:
    rank = 0 if problem.start is None else problem.start.rank
    if math.isfinite(limit.period):
        return (
            f"rank {rank} splits a pair of complex modes, and the covariance turns with the "
            f"period {limit.period:.6g}."
        )
    return f"rank {rank} splits modes of equal growth, among which it turns for ever."


def _besides(limit: Limit, full: Limit) -> str:
    """What full-rank starts do, where that differs."""
    if full is limit or full.covariance is None:
        return ""
    S = limit.covariance
    if S is not None and np.linalg.norm(S - full.covariance) <= 1e-8 * np.linalg.norm(S):
        return ""
    rank = full.rank
    if rank is None:
        rank = int(np.sum(np.linalg.eigvalsh(full.covariance) > _tiny(full.covariance)))
    kind = "stabilising" if full.verdict is KalmanVerdict.CONVERGES else "strong"
    return (
        f" Full-rank starts tend to the {kind} root of the algebraic equation, of rank {rank}, "
        "which is another one."
    )


def _margin(equation: Equation, limit: Limit) -> str:
    closed = equation.A if limit.base is None else equation.closed_loop(limit.base)
    spectrum = groups(closed)
    on_axis = spectrum.values[spectrum.unstable : spectrum.unstable + spectrum.axis]
    if not len(on_axis):
        return "the rank of the start splits one Jordan block."
    seen = dict.fromkeys(written(complex(0.0, abs(round(x.imag, 12)))) for x in on_axis)
    shown = list(seen)[:4]
    many = "eigenvalues" if len(on_axis) > 1 else "eigenvalue"
    lie = "lie" if len(on_axis) > 1 else "lies"
    return f"the {many} {', '.join(shown)} of A {lie} on the imaginary axis, undriven by noise."


def _continuum(problem: ComparisonProblem, limit: Limit, mode: Hidden, who: str) -> str:
    where = f"the mode λ = {written(mode.value)} in the direction {_vector(mode)}"
    first = (
        f"No measurement sees {where}, on the imaginary axis, and no noise drives it, so there is "
        "a continuum of steady states"
    )
    decides = (
        "what the start knows of it, given all that is measured (the Schur complement of its "
        "covariance), is what remains"
    )
    if limit.covariance is not None:
        return f"{first}: {decides}. {who} converges to one of them."
    if limit.cause == "turning":
        return (
            f"{first} and of motions: {decides}, and it turns with the period {limit.period:.6g}."
            f"{_low_rank(problem)}"
        )
    if problem.start is None:
        return f"{first}: {decides}. Give a start to see to which one."
    return f"{first}: {decides}.{_low_rank(problem)}"


def _low_rank(problem: ComparisonProblem) -> str:
    """The rank of a start that is not of full rank."""
    low = problem.start is not None and problem.start.rank < problem.dim
    return f" The start has rank {_rank(problem)}." if low else ""


def of_crossing(problem: ComparisonProblem, crossing: Crossing, limit: Limit) -> str:
    """Say what happens where K has a positive eigenvalue."""
    values, vectors = np.linalg.eigh(problem.K)
    direction = ", ".join(f"{x + 0.0:.4g}" for x in vectors[:6, -1])
    dots = ", ..." if len(values) > 6 else ""
    first = (
        f"K has the positive eigenvalue {values[-1]:.6g} in the direction ({direction}{dots}): "
        "this is no Kalman filter"
    )
    if crossing.status is CrossingStatus.BLOWS_UP:
        return (
            f"{first}, and the covariance of this start blows up at the conjugate point "
            f"t = {crossing.estimate:.12g} of the Riccati equation."
        )
    if crossing.status is CrossingStatus.NEVER:
        if limit.verdict is KalmanVerdict.CONVERGES:
            return (
                f"{first}. From this start there is no conjugate point (proved), and the "
                "integrated flow converges to the stabilising root."
            )
        never = "From this start there is no conjugate point (proved)"
        return f"{first}. {never}; ask `certify` for more."
    return (
        f"{first}. There is no conjugate point before t = {crossing.lower:.6g} (proved); what "
        f"comes after is not decided.{_low_rank(problem)}"
    )

"""The table: each answer judged by residual, forward error, signs, closed loop, and the flow."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..._check import Array
from ...results.comparison import Row
from ...riccati_equations.judgement import Judgement, judge
from ...status import Definiteness, KalmanVerdict
from .backends import Answer
from .course import Course, distance
from .equation import Equation
from .steady import Limit

__all__ = ["OURS", "contradicted", "table"]

#: Names of our own rows.
OURS = ("gtcontrol (algebra)", "gtcontrol (flow)")

#: Digits from which two answers are the same one, more or less accurately computed.
SAME = 3.0

#: Digits to which the flow must agree with the limit where it has had time to.
CONFIRMED = 5.0

#: Digits below which the flow contradicts the closed form of it at the same time.
CONTRADICTS = 3.0

#: The flow has settled if it changes by less than this part of what its rate lets expect.
SETTLED = 1e-3

#: Relative size of eigenvalues that are of rounding, per dimension, and that the integrator makes.
ROUNDING, INTEGRATED = 2.220446049250313e-16, 1e-10

#: What a filter can be asked for where there is no limit.
_NOWHERE = {
    KalmanVerdict.UNBOUNDED: "the covariance grows without bound, so there is no steady state",
    KalmanVerdict.PERIODIC: "the covariance of this start turns for ever",
    KalmanVerdict.CONTINUUM: "no root is the limit of all starts: the start decides",
    KalmanVerdict.BLOWS_UP: "the covariance of this start blows up before",
    KalmanVerdict.UNDECIDED: "where the covariance tends is not decided",
}


def table(
    equation: Equation, limit: Limit, full: Limit, course: Course, answers: tuple[Answer, ...]
) -> tuple[Row, ...]:
    """Judge our own answers and those of the back ends."""
    ours = Answer(OURS[0], limit.covariance, "" if limit.covariance is not None else "no limit")
    rows = [_own(equation, ours, limit, course)]
    rows.append(_flow(equation, limit, course))
    rows += [_other(equation, answer, limit, full) for answer in answers]
    return tuple(rows)


def contradicted(equation: Equation, limit: Limit, course: Course) -> bool:
    """Whether the flow had time to reach the limit, and goes elsewhere.

    That is so if it disagrees with its closed form at the same time, or has settled where the
    closed form does not leave again.  A flow that is still on its way is no contradiction.
    """
    if limit.verdict is not KalmanVerdict.CONVERGES or limit.covariance is None or limit.partial:
        return False
    settled = limit.rate * (float(course.times[-1]) - limit.delay)
    first = float(np.max(course.eigenvalues[0]))
    size = max(float(np.linalg.norm(limit.covariance)), 1e-300)
    expected = min(CONFIRMED, 0.4 * settled / math.log(10) - math.log10(max(first / size, 1.0)) - 1)
    if expected <= 0 or distance(course.final, limit.covariance, 1e-3 * first) >= expected:
        return False
    if course.agreement < CONTRADICTS:
        return True
    return math.isinf(course.arrival) and _settled(equation, limit, course.final)


def _settled(equation: Equation, limit: Limit, S: Array) -> bool:
    """Whether S changes more slowly than what is still on its way does."""
    size = float(np.max(np.abs(S), initial=0.0))
    X = S / size if size > 0 else S
    half = equation.A @ X
    change = half + half.T + size * X @ equation.K @ X
    if equation.Q.any():
        change = change + equation.Q / max(size, 1e-300)
    return float(np.linalg.norm(change)) <= SETTLED * limit.rate * float(np.linalg.norm(X))


def _blank(answer: Answer) -> Row:
    return Row(
        name=answer.name,
        answered=False,
        message=answer.message,
        X=None,
        residual=math.nan,
        error=math.nan,
        definite="",
        lowest=math.nan,
        rank=0,
        abscissa=math.nan,
        root="",
        digits=math.nan,
        finding="no answer",
        why="",
    )


def _judged(equation: Equation, answer: Answer, limit: Limit, rounding: float = 0.0) -> Row:
    """A row with all that can be said of X by itself; `rounding` is what made X is worth."""
    row = _blank(answer)
    if answer.X is None:
        return row
    X = 0.5 * answer.X + 0.5 * answer.X.T
    seen = judge(equation.algebraic, X)
    finite = seen.spectrum.real[np.isfinite(seen.spectrum)]
    target = limit.covariance
    return replace(
        row,
        answered=True,
        X=X,
        residual=seen.residual,
        error=seen.error_estimate,
        definite=_signs(seen, max(rounding, ROUNDING * equation.dim)).name,
        lowest=seen.lowest,
        rank=seen.rank,
        abscissa=float(finite.max()) if finite.size else math.nan,
        root=seen.root,
        digits=math.nan if target is None else distance(X, target, _unit(equation, target)),
    )


def _signs(seen: Judgement, rounding: float) -> Definiteness:
    """Signs of the eigenvalues; those of rounding, which can have any, count as 0."""
    least = rounding * max(abs(seen.lowest), abs(seen.highest))
    if seen.definite is Definiteness.INDEFINITE:
        if seen.lowest >= -least:
            return Definiteness.POSITIVE_SEMIDEFINITE
        if seen.highest <= least:
            return Definiteness.NEGATIVE_SEMIDEFINITE
    return seen.definite


def _unit(equation: Equation, target: Array) -> float:
    """Size of a covariance below which differences from 0 do not matter."""
    if target.any():
        return 0.0
    sizes = [float(np.linalg.norm(x, 2)) for x in (equation.A, equation.K)]
    return sizes[0] / sizes[1] if min(sizes) > 0 else 1.0


def _own(equation: Equation, answer: Answer, limit: Limit, course: Course) -> Row:
    row = _judged(equation, answer, limit)
    if limit.covariance is None:
        right = limit.verdict is not KalmanVerdict.UNDECIDED
        return replace(
            row, finding="rightly refused" if right else "no answer", why=_NOWHERE[limit.verdict]
        )
    if contradicted(equation, limit, course):
        return replace(row, finding="contradicts", why="the integrated flow does not go there")
    unit = _unit(equation, limit.covariance)
    came = distance(course.final, limit.covariance, unit)
    moved = distance(course.first, limit.covariance, unit) < CONFIRMED
    return replace(row, finding="right", why=_confirmation(row, limit, course, came, moved=moved))


def _confirmation(row: Row, limit: Limit, course: Course, came: float, *, moved: bool) -> str:
    time = f"t = {float(course.times[-1]):.3g}"
    if limit.verdict is KalmanVerdict.CONVERGES:
        if moved and came >= CONFIRMED:
            return f"the integrated flow agrees to {came:.1f} digits at {time}"
        rests = (
            f"rests on the residual {row.residual:.2g}, the error estimate {limit.error:.2g} and "
            "the spectrum"
        )
        if came >= CONFIRMED:
            return f"{rests}; the flow starts there, and confirms only that it stays"
        return f"{rests}; the flow is not there yet at {time}"
    if limit.verdict is KalmanVerdict.MARGINAL:
        return f"approached like a power of t: the flow agrees to {came:.1f} digits at {time}"
    return f"for this start: the integrated flow agrees to {came:.1f} digits at {time}"


def _flow(equation: Equation, limit: Limit, course: Course) -> Row:
    time = float(course.times[-1])
    row = _judged(equation, Answer(OURS[1], course.final), limit, INTEGRATED)
    if limit.covariance is None:
        word = _NOWHERE[limit.verdict]
        row = replace(row, root="", residual=math.nan, error=math.nan)
        return replace(row, finding="right", why=f"integrated to t = {time:.3g}: {word}")
    if contradicted(equation, limit, course):
        return replace(
            row, finding="contradicts", why=f"far from the algebraic limit at {time:.3g}"
        )
    if row.digits >= CONFIRMED:
        begun = distance(course.first, limit.covariance, _unit(equation, limit.covariance))
        if begun >= CONFIRMED:
            stays = f"did not move: the start is the limit, to {begun:.1f} digits; t = {time:.3g}"
            return replace(row, finding="right", why=stays)
        return replace(row, finding="right", why=f"integrated to t = {time:.3g}")
    row = replace(row, root="")
    if limit.partial:
        why = f"at t = {time:.3g}; rounding leads away, as small changes of the start do"
        return replace(row, finding="on its way", why=why)
    pace = "like a power of t" if limit.rate == 0 else f"like exp(-{limit.rate:.3g} t)"
    return replace(row, finding="on its way", why=f"at t = {time:.3g}, approaching {pace}")


def _other(equation: Equation, answer: Answer, limit: Limit, full: Limit) -> Row:
    row = _judged(equation, answer, limit)
    if answer.X is None:
        finding, why = _silence(answer, limit)
    elif limit.covariance is not None and row.digits >= SAME:
        finding, why = "right", _praise(row, limit)
    elif _is_full(equation, row, full):
        finding, why = "right for full rank", _elsewhere(limit)
        row = replace(row, digits=_full_digits(equation, row, full))
    else:
        finding, why = "wrong", _misled(row, limit)
    return replace(row, finding=finding, why=why)


def _is_full(equation: Equation, row: Row, full: Limit) -> bool:
    """Whether an answer is the limit of full-rank starts."""
    return _full_digits(equation, row, full) >= SAME


def _full_digits(equation: Equation, row: Row, full: Limit) -> float:
    """Digits to which an answer agrees with the limit of full-rank starts; nan if there is none."""
    if full.covariance is None or row.X is None:
        return math.nan
    return distance(row.X, full.covariance, _unit(equation, full.covariance))


def _silence(answer: Answer, limit: Limit) -> tuple[str, str]:
    """Finding and reason where a back end gave no answer."""
    if answer.message == "not installed":
        return "no answer", "not installed"
    nowhere = _NOWHERE.get(limit.verdict)
    if nowhere is not None and limit.verdict is not KalmanVerdict.UNDECIDED:
        return "rightly refused", nowhere
    if limit.verdict is KalmanVerdict.MARGINAL:
        return (
            "no answer",
            "there is no stabilising root, but the covariance converges all the same",
        )
    return "no answer", "there is a limit" if nowhere is None else nowhere


def _elsewhere(limit: Limit) -> str:
    if limit.covariance is None:
        return f"the limit of full-rank starts; {_NOWHERE[limit.verdict]}"
    return "the limit of full-rank starts, to which this start does not tend"


def _misled(row: Row, limit: Limit) -> str:
    nowhere = _NOWHERE.get(limit.verdict)
    if row.root.startswith("no solution"):
        return "does not solve the equation" + ("" if nowhere is None else f"; {nowhere}")
    if limit.verdict is KalmanVerdict.CONTINUUM:
        return "one of a continuum of roots, given without a warning; the start decides"
    if nowhere is not None:
        return f"a root that is not reached: {nowhere}"
    return "another root than the limit"


def _praise(row: Row, limit: Limit) -> str:
    digits = f"to {row.digits:.1f} digits"
    if limit.verdict is KalmanVerdict.MARGINAL:
        return f"{digits}, but without a word that it is marginal: reached like a power of t"
    if limit.verdict is KalmanVerdict.CONTINUUM:
        return f"{digits}, for this start only; other starts tend to other roots"
    return digits

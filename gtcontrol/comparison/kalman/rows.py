"""The table: each answer judged by residual, forward error, signs, closed loop, and the flow."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..._check import Array
from ...results.comparison import Row
from ...riccati_equations.judgement import judge
from ...status import KalmanVerdict
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


def contradicted(limit: Limit, course: Course) -> bool:
    """Whether the flow had time to reach the limit, and did not."""
    if limit.verdict is not KalmanVerdict.CONVERGES or limit.covariance is None or limit.partial:
        return False
    settled = limit.rate * (float(course.times[-1]) - limit.delay)
    first = float(np.max(course.eigenvalues[0]))
    size = max(float(np.linalg.norm(limit.covariance)), 1e-300)
    expected = min(CONFIRMED, 0.4 * settled / math.log(10) - math.log10(max(first / size, 1.0)) - 1)
    return expected > 0 and distance(course.final, limit.covariance, 1e-3 * first) < expected


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


def _judged(equation: Equation, answer: Answer, limit: Limit) -> Row:
    """A row with all that can be said of X by itself."""
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
        definite=seen.definite.name,
        lowest=seen.lowest,
        rank=seen.rank,
        abscissa=float(finite.max()) if finite.size else math.nan,
        root=seen.root,
        digits=math.nan if target is None else distance(X, target, _unit(equation, target)),
    )


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
    if contradicted(limit, course):
        return replace(row, finding="contradicts", why="the integrated flow does not go there")
    came = distance(course.final, limit.covariance, _unit(equation, limit.covariance))
    return replace(row, finding="right", why=_confirmation(limit, course, came))


def _confirmation(limit: Limit, course: Course, came: float) -> str:
    time = f"t = {float(course.times[-1]):.3g}"
    if limit.verdict is KalmanVerdict.CONVERGES:
        return f"the integrated flow agrees to {came:.1f} digits at {time}"
    if limit.verdict is KalmanVerdict.MARGINAL:
        return f"approached like a power of t: the flow agrees to {came:.1f} digits at {time}"
    return f"for this start: the integrated flow agrees to {came:.1f} digits at {time}"


def _flow(equation: Equation, limit: Limit, course: Course) -> Row:
    time = float(course.times[-1])
    row = _judged(equation, Answer(OURS[1], course.final), limit)
    if limit.covariance is None:
        word = _NOWHERE[limit.verdict]
        row = replace(row, root="", residual=math.nan, error=math.nan)
        return replace(row, finding="right", why=f"integrated to t = {time:.3g}: {word}")
    if contradicted(limit, course):
        return replace(
            row, finding="contradicts", why=f"far from the algebraic limit at {time:.3g}"
        )
    if row.digits >= CONFIRMED:
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
    else:
        finding, why = "wrong", _misled(row, limit)
    return replace(row, finding=finding, why=why)


def _is_full(equation: Equation, row: Row, full: Limit) -> bool:
    """Whether an answer is the limit of full-rank starts."""
    if full.covariance is None or row.X is None:
        return False
    return distance(row.X, full.covariance, _unit(equation, full.covariance)) >= SAME


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

"""K that is not negative semidefinite: no filter, and the covariance may blow up.

The flow S' = A S + S Aᵀ + S K S + Q is then that of a Riccati equation of linear-quadratic games
or of the bounded real lemma, and its blow-up time is the first conjugate point of the linear flow
[X; Y]' = [[-Aᵀ, -K], [Q, A]] [X; Y].
"""

from __future__ import annotations

import math

import numpy as np

from ...problem.definitions import ComparisonProblem
from ...riccati_equations.judgement import judge
from ...riccati_flow.crossing import blow_up
from ...riccati_flow.status import Crossing, CrossingStatus
from ...status import KalmanVerdict
from .course import Course, distance, follow
from .equation import Equation
from .roots import candidate_root
from .steady import Limit

__all__ = ["crossing_of", "settle"]

#: Digits to which the flow must agree with a stabilising root that it is said to tend to.
DIGITS = 5.0


def crossing_of(problem: ComparisonProblem) -> Crossing:
    """Enclose the blow-up time from the start."""
    L = np.zeros((problem.dim, 0)) if problem.start is None else problem.start.factor
    return blow_up(problem.A, problem.K, L, problem.noise)


def settle(
    problem: ComparisonProblem, equation: Equation, crossing: Crossing
) -> tuple[Limit, Course]:
    """Say what is known: the blow-up, or the stabilising root if the flow is seen to reach it."""
    if crossing.status is CrossingStatus.BLOWS_UP:
        limit = Limit(KalmanVerdict.BLOWS_UP)
        return limit, follow(problem, equation, limit, crossing.estimate)
    open_end = Limit(KalmanVerdict.UNDECIDED)
    if crossing.status is not CrossingStatus.NEVER:
        end = crossing.lower if 0 < crossing.lower < math.inf else math.inf
        return open_end, follow(problem, equation, open_end, end)
    root = candidate_root(equation)
    if root is None:
        return open_end, follow(problem, equation, open_end)
    X, error = root
    closed = np.linalg.eigvals(equation.closed_loop(X)).real
    rate = -2 * float(closed.max())
    limit = Limit(KalmanVerdict.CONVERGES, X, error, max(rate, 0.0), base=X)
    course = follow(problem, equation, limit)
    unit = 1e-3 * float(np.max(course.eigenvalues[0]))
    seen = distance(course.final, X, unit) >= DIGITS
    if seen and rate > 0 and judge(equation.algebraic, X).stabilising:
        return limit, course
    return open_end, course

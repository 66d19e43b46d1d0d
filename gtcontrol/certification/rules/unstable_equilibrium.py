"""An equilibrium that repels: its linearisation has eigenvalues with positive real parts.

Near R Rᵀ there is exactly one equilibrium S* (Newton and Kantorovich), positive definite as it
differs from the identity by less than 1 in R's coordinates.  If PJ + JᵀP > 0 for the linearisation
J at S* and a symmetric P, then J has no eigenvalues on the imaginary axis and as many with positive
real part as P has positive eigenvalues (Ostrowski and Schneider).  The covariances that tend to S*
then form its stable manifold, of lower dimension, so a set of measure zero.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...arithmetic import balls
from ...arithmetic.matrices import BallMatrix
from ...arithmetic.newton import zero_radius
from ...arithmetic.norms import norm_bound
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, matrix, number
from .neighbourhood import BITS, neighbourhood

__all__ = ["UnstableEquilibrium"]


class UnstableEquilibrium(Rule):
    """A positive definite equilibrium that almost no covariance tends to.

    Numbers: ``rank`` (d), ``error``, ``count`` of eigenvalues with positive real part (at least).
    Arrays: ``frame`` (R), ``form`` (P), ``directions`` (m, count) on which P is positive.
    """

    name: ClassVar[str] = "unstable-equilibrium"
    theorem: ClassVar[str] = "inertia of a Lyapunov form, stable manifold: unstable equilibrium"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check existence and inertia in balls."""
        with balls.precision(BITS):
            _check(problem, claim)

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say what repels."""
        d = problem.dim
        R = matrix(claim, "frame", d, d)
        S = R @ R.T
        rows = "; ".join(", ".join(f"{x:.6g}" for x in row) for row in S) if d <= 3 else ""
        count = int(number(claim, "count"))
        text = (
            f"The positive definite equilibrium of trace {float(np.trace(S)):.8g}"
            f"{f', [{rows}],' if rows else ''} repels: at least {count} "
            f"{'eigenvalue' if count == 1 else 'eigenvalues'} of its linearisation "
            f"{'has' if count == 1 else 'have'} positive real part, so the covariances that tend "
            "to it form a set of measure zero."
        )
        return Statement(Verdict.UNDECIDED, Scope.SOME_STARTS, text)


def _check(problem: CertificationProblem, claim: Claim) -> None:
    d = problem.dim
    m = d * (d + 1) // 2
    near = neighbourhood(problem, claim, metric=False)
    error, count = number(claim, "error"), number(claim, "count")
    if near.rank != d:
        raise Refuted(f"the rank is {near.rank}; the rule is about positive definite equilibria")
    if count not in range(1, m + 1):
        raise Refuted(f"the number of unstable eigenvalues is {count}")
    value, jacobian = BallMatrix(near.value), BallMatrix(near.jacobian)
    if not zero_radius(value, jacobian, [near.bilinear]) <= error < 1:
        raise Refuted(f"no equilibrium is proved within the error {error!r}")
    P = balls.balls(matrix(claim, "form", m, m))
    P = (P + P.transpose()) / 2
    X = balls.balls(matrix(claim, "directions", m, int(count)))
    product = P * near.jacobian
    # J at S* differs from J at the approximate equilibrium by at most 2 κ error.
    margin = 4 * balls.ball(norm_bound(P)) * near.bilinear * error
    if not balls.positive_definite(product + product.transpose() - margin * balls.identity(m)):
        raise Refuted("the Lyapunov form does not grow")
    if not balls.positive_definite(X.transpose() * P * X):
        raise Refuted(f"the Lyapunov form is not positive on {int(count)} directions")

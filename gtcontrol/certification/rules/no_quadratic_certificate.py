"""Why no quadratic certificate can exist, neither of boundedness nor of blow-up.

Call quadratic a certificate that bounds y = tr(WS), W >= 0 and not zero, by ``y' <= α + a y -
y²/θ`` for all covariances (boundedness), or by ``y' >= -α + a y + y²/θ`` (blow-up).  Divide by
the square of S to see that the quadratic part ``q(S) = 2 Σ_h tr(W V_h S B_h S)`` of y' must
satisfy ``q(S) <= -y²/θ``, or ``q(S) >= y²/θ``, for all S >= 0.  At rank one, S = x xᵀ,

    q = 2 Σ_h (xᵀ W V_h x)(xᵀ B_h x),   y = xᵀ W x.

* If ``xᵀ B_h x = 0`` for all heads then q = 0, hence y = 0 and W x = 0.  For one head with B_s
  indefinite such x span the space, so W = 0: there is none of either type.
* Several heads: near a common isotropic x at which the vectors ``B_h,s x`` are independent, the
  isotropic vectors form a manifold whose tangent space is orthogonal to them.  W vanishes on the
  manifold, hence on its tangent space.  If the spans of ``B_h,s x`` at the points given have no
  common vector but zero, the tangent spaces together span the space, and W = 0 again.
* One head with -B_s > 0, and WV's symmetric part must be positive definite for boundedness from
  every start (W > 0): by Lyapunov all eigenvalues of V have positive real part.  One that has not
  excludes quadratic certificates of boundedness.
* One head with -B_s > 0 and V antistable.  For blow-up, ``xᵀWVx <= -(xᵀWx)²/(2θ|xᵀBx|)``.  With x
  = k + εy, Wk = 0, this says that Wk = 0 implies WVk = 0.  So V acts on the space modulo the
  kernel of W, where W is positive definite and WV has a negative definite symmetric part: V has
  an eigenvalue with negative real part there, and it is one of V, a contradiction.  There are
  none of blow-up.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..._check import Array
from ...arithmetic.balls import ball, precision
from ...arithmetic.eigenpairs import antistable, left_eigenpair
from ...arithmetic.isotropy import isotropic_near
from ...arithmetic.matrices import Matrix, block, enclose, symmetric_part
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from ..theory.heads import Head, merge_heads
from .base import Refuted, Rule, Scope, Statement, matrix, number

__all__ = ["BITS", "AntistableValue", "CommonIsotropy", "IndefiniteScore", "ValueSpectrum"]

#: Precision of the balls, in bits.
BITS = 256


class IndefiniteScore(Rule):
    """One head whose score matrix has an indefinite symmetric part."""

    name: ClassVar[str] = "no-quadratic-certificate-indefinite-score"
    theorem: ClassVar[str] = "B indefinite: no quadratic certificate, neither way"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check one vector with xᵀBx > 0 and one with xᵀBx < 0."""
        d = problem.dim
        with precision(BITS), np.errstate(all="ignore"):
            heads = _vertex(problem, claim)
            if len(heads) != 1:
                raise Refuted("the rule is about one head")
            form = symmetric_part(heads[0].score())
            for name, sign in (("positive", 1.0), ("negative", -1.0)):
                x = enclose(matrix(claim, name, d))
                if not ((x.T @ form) @ x).entry(0, 0) * sign > 0:
                    raise Refuted(f"the vector `{name}` does not make xᵀBx {name}")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say why none can exist."""
        return _undecided(
            "No quadratic certificate can exist, neither of boundedness nor of blow-up: the "
            "symmetric "
            "part of B is indefinite, so that along the vectors with xᵀBx = 0, which span the "
            "space, "
            "attention exerts no force on a covariance of rank one."
        )


class CommonIsotropy(Rule):
    """Several heads whose score matrices vanish on common vectors."""

    name: ClassVar[str] = "no-quadratic-certificate-common-isotropy"
    theorem: ClassVar[str] = "heads with common isotropic vectors: no quadratic certificate"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Prove isotropic vectors near those given, and that their gradients share no vector."""
        points = claim.arrays.get("points")
        count = 0 if points is None or points.ndim != 2 else len(points)
        points = matrix(claim, "points", count, problem.dim)
        with precision(BITS), np.errstate(all="ignore"):
            heads = _vertex(problem, claim)
            if count < 1 or not heads:
                raise Refuted("there is no attention, or no vector is given")
            forms = [symmetric_part(h.score()) for h in heads]
            gradients = [_gradients(forms, point) for point in points]
            if not _share_nothing(gradients):
                raise Refuted("the gradients at the isotropic vectors may share a vector")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say why none can exist."""
        count = len(merge_heads(problem.vertices[_index(problem, claim)]))
        return _undecided(
            "No quadratic certificate can exist, neither of boundedness nor of blow-up: along "
            "vectors "
            f"with xᵀBx = 0 for all {count} heads, whose tangents span the space, attention "
            "exerts no "
            "force on a covariance of rank one."
        )


class ValueSpectrum(Rule):
    """One head with B definite, and an eigenvalue of V that excludes boundedness by quadratics."""

    name: ClassVar[str] = "no-quadratic-certificate-value-spectrum"
    theorem: ClassVar[str] = "V with an eigenvalue of the sign of B: no quadratic bound"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check that B_s is definite and that the eigenvalue of V lies on its side."""
        d = problem.dim
        values = matrix(claim, "values", 1, 2)[0]
        vector = matrix(claim, "p", d) + 1j * matrix(claim, "q", d)
        with precision(BITS), np.errstate(all="ignore"):
            heads = _vertex(problem, claim)
            if len(heads) != 1:
                raise Refuted("the rule is about one head")
            sign = number(claim, "sign")
            form = symmetric_part(heads[0].score()).times(ball(sign))
            if abs(sign) != 1 or not form.positive_definite():
                raise Refuted("the symmetric part of B is not proved to be definite of this sign")
            pair = left_eigenpair(heads[0].value(), complex(*values), vector)
            if pair is None or not pair.real * sign > 0:
                raise Refuted("no eigenvalue of V is proved to lie on the side of B")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say why none can exist."""
        real, imaginary = matrix(claim, "values", 1, 2)[0]
        side = "positive" if number(claim, "sign") > 0 else "negative"
        return _undecided(
            f"No quadratic certificate of boundedness from every start can exist: B is {side} "
            "definite "
            f"and V has an eigenvalue {real:.6g} {'-' if imaginary < 0 else '+'} "
            f"{abs(imaginary):.6g}i "
            f"with {side} real part, so that WV has a definite symmetric part of the opposite "
            "sign for no W."
        )


class AntistableValue(Rule):
    """One head with B definite, and all eigenvalues of V on the other side."""

    name: ClassVar[str] = "no-quadratic-certificate-antistable-value"
    theorem: ClassVar[str] = "V with all eigenvalues opposite to B: no quadratic blow-up"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check that B_s is definite, and the spectrum of V by a Lyapunov matrix."""
        d, sign = problem.dim, number(claim, "sign")
        table = matrix(claim, "metric", d, d)
        with precision(BITS), np.errstate(all="ignore"):
            heads = _vertex(problem, claim)
            if len(heads) != 1:
                raise Refuted("the rule is about one head")
            form = symmetric_part(heads[0].score()).times(ball(sign))
            if abs(sign) != 1 or not form.positive_definite():
                raise Refuted("the symmetric part of B is not proved to be definite of this sign")
            V = heads[0].value().times(ball(-sign))
            if not np.array_equal(table, table.T) or not antistable(V, enclose(table)):
                raise Refuted("the spectrum of V is not proved to lie on the side opposite to B")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say why none can exist."""
        side = "positive" if number(claim, "sign") > 0 else "negative"
        other = "negative" if number(claim, "sign") > 0 else "positive"
        return _undecided(
            f"No quadratic certificate of blow-up can exist: B is {side} definite and all "
            "eigenvalues of V "
            f"have {other} real part. A certificate of boundedness may, unless skew parts "
            "prevent it."
        )


def _undecided(text: str) -> Statement:
    return Statement(Verdict.UNDECIDED, Scope.EVERY_START, text)


def _index(problem: CertificationProblem, claim: Claim) -> int:
    index = number(claim, "vertex")
    if index not in range(len(problem.vertices)):
        raise Refuted("the claim names no vertex of the family")
    return int(index)


def _vertex(problem: CertificationProblem, claim: Claim) -> tuple[Head, ...]:
    """Heads of the vertex that the claim names; what fails for it fails for the family."""
    return merge_heads(problem.vertices[_index(problem, claim)])


def _gradients(forms: list[Matrix], point: Array) -> Matrix:
    """Columns B_h,s x at an isotropic vector x that is proved to lie near a point."""
    x = isotropic_near(forms, point)
    if x is None:
        raise Refuted("no common isotropic vector is proved to exist near one that is given")
    return block([[form @ x for form in forms]])


def _share_nothing(gradients: list[Matrix]) -> bool:
    """Whether the intersection of the column spaces is proved to be zero.

    It is so if for the first space G and the projections P_i on the others the matrix
    ``Σ_i Gᵀ(I - P_i)G`` is positive definite.
    """
    first, rest = gradients[0], gradients[1:]
    if not rest:
        return False
    gram, made = first.T @ first, None
    for other in rest:
        inner = (other.T @ other).solve(other.T @ first)
        if inner is None:
            return False
        part = gram - (first.T @ other) @ inner
        made = part if made is None else made + part
    return made is not None and symmetric_part(made).positive_definite()

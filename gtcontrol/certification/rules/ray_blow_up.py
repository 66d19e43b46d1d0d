"""An invariant cone around a ray at infinity, in which every covariance blows up.

In coordinates Σ = H S Hᵀ, let y = Σ₁₁ and z = Σ₂₂ + … + Σ_dd. The cone consists of the covariances
with z <= δ y and y >= R. If the expansion of the flow (see :mod:`..theory.infinity`) gives ρ' < 0
at ρ = z/y = δ for every y >= R, and y' >= c y² - a y with c R > a in the cone, then the flow enters
the cone through both parts of its boundary and never leaves it. By comparison with η' = c η² - a η,
y has left every bound at the latest after

    (1/a) ln(c y₀/(c y₀ - a))        (1/(c y₀) if a = 0),

so that the covariance blows up until then, whatever its rank.

ρ' < 0 is checked for all y at once: the bound on ½ρ_τ is a quadratic polynomial in α = 1/y whose
leading coefficient is not negative, so that it is convex and negative on [0, 1/R] if it is at 0 and
at 1/R.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ..._check import Array
from ...arithmetic import balls
from ...arithmetic.matrices import Matrix, enclose
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from ..theory.infinity import Expansion, expand
from . import base
from .base import Refuted, Rule, Scope, Statement
from .wording import rounded_down, rounded_up, vector

__all__ = ["BITS", "RayBlowUp", "ray_of", "time_left"]

#: Precision of balls.
BITS = 128

#: A least y down here is the range of floats, not the cone's own.
NO_LEAST = 1e-290


class RayBlowUp(Rule):
    """Every covariance in a cone around a ray blows up, with a bound on the time.

    Data: ``coordinates`` H (d, d); the numbers ``ratio`` δ, ``least`` R, ``growth`` c, ``drag`` a;
    and ``time``, the bound on the blow-up time, if the claim is about the start of the problem.
    """

    name: ClassVar[str] = "ray-cone"
    theorem: ClassVar[str] = "attracting ray at infinity: blow-up in an invariant cone"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check that the cone is invariant, and that the start lies in it."""
        if len(problem.vertices) != 1:
            raise Refuted("the cone around a ray is for constant parameters, not for a family")
        with balls.precision(BITS):
            H = _coordinates(problem.parameters, claim)
            _check_cone(problem.parameters, H, claim)
            if "time" not in claim.numbers:
                return
            if problem.start is None:
                raise Refuted("the claim gives a blow-up time, but the problem has no start")
            time = _from_start(claim, *_place(H, problem.start))
            claimed = _positive(claim, "time")
            if not time <= claimed:
                raise Refuted(
                    f"the blow-up time is at most {time:.9g} by this cone, not {claimed:.9g}"
                )

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say where the cone is and how soon its covariances blow up."""
        where = _where(problem, claim)
        if "time" in claim.numbers:
            time = base.number(claim, "time")
            return Statement(
                Verdict.BLOWS_UP,
                Scope.THIS_START,
                f"The covariance of this start blows up before t = {rounded_up(time)}. {where}",
                upper=time,
            )
        return Statement(
            Verdict.BLOW_UP_DATA_EXIST,
            Scope.SOME_STARTS,
            where,
        )


def time_left(parameters: Parameters, claim: Claim, covariance: Matrix) -> float:
    """Bound the time that a covariance, known within an enclosure, has left until it blows up.

    Parameters
    ----------
    parameters : Parameters
    claim : Claim
        Of this rule; ``time`` is not needed.  Its cone is checked, too.
    covariance : (d, d) matrix
        Balls or floats with errors, of the kind that `arithmetic.matrices.enclose` makes for d.

    Raises
    ------
    Refuted
        If the cone is not proved, or the covariance not proved to lie in it.
    """
    with balls.precision(BITS):
        H = _coordinates(parameters, claim)
        _check_cone(parameters, H, claim)
        frame = covariance.like(H)
        moved = frame @ covariance @ frame.T
        on = balls.ball(moved.low())
        rest = (balls.above(moved.entry(i, i)) for i in range(1, len(H)))
        off = sum((balls.ball(max(x, 0.0)) for x in rest), balls.ball(0.0))
        return _from_start(claim, on, off)


def ray_of(H: Array) -> Array:
    """Unit vector along the first column of the inverse of H, approximately, for sentences."""
    try:
        u = np.linalg.solve(H, np.eye(len(H))[0])
    except np.linalg.LinAlgError:
        u = np.linalg.lstsq(H, np.eye(len(H))[0], rcond=None)[0]
    return np.asarray(u / max(float(np.linalg.norm(u)), 1e-300))


def _coordinates(parameters: Parameters, claim: Claim) -> Array:
    return base.matrix(claim, "coordinates", parameters.dim, parameters.dim)


def _check_cone(parameters: Parameters, H: Array, claim: Claim) -> None:
    """Check that the claimed δ, R, c and a make the cone invariant."""
    ratio, least = _positive(claim, "ratio"), _positive(claim, "least")
    growth, drag = _positive(claim, "growth"), base.number(claim, "drag")
    if math.isinf(drag):
        raise Refuted(f"the number `drag` of the claim is {drag}")
    expansion = expand(parameters, H)
    if expansion is None:
        raise Refuted("the matrix `coordinates` is not proved to be regular")
    _check_finite(expansion)
    s = balls.ball(ratio).sqrt()
    alpha = 1 / balls.ball(least)
    if not balls.ball(growth) <= expansion.growth(s):
        raise Refuted(
            f"in the cone y' >= c y² - a y is proved for c up to "
            f"{balls.below(expansion.growth(s)):.9g}, not for {growth:.9g}"
        )
    if not balls.ball(drag) >= expansion.drag(s):
        raise Refuted(
            f"in the cone y' >= c y² - a y is proved for a from "
            f"{balls.above(expansion.drag(s)):.9g}, not for {drag:.9g}"
        )
    if not balls.ball(growth) * balls.ball(least) > balls.ball(drag):
        raise Refuted(f"y is not proved to grow at the boundary y = {least:.9g} of the cone")
    for where in (balls.ball(0.0), alpha):
        if parameters.dim > 1 and not expansion.spreading(s, where) < 0:
            raise Refuted(
                f"the flow is not proved to point into the cone at its boundary z = {ratio:.9g} y "
                + ("far out" if where == 0 else f"at y = {least:.9g}")
            )


def _check_finite(expansion: Expansion) -> None:
    values = (getattr(expansion, n) for n in expansion.__dataclass_fields__ if n != "linear")
    if not all(math.isfinite(x) for x in values):
        raise Refuted("the coefficients of the flow near the ray have no finite bounds")


def _positive(claim: Claim, name: str) -> float:
    value = base.number(claim, name)
    if not 0 < value < math.inf:
        raise Refuted(f"the number `{name}` of the claim is {value}; it must be positive")
    return value


def _place(H: Array, start: Gaussian) -> tuple[Any, Any]:
    """Lower bound on y, and upper bound on z, of a law, from its factor."""
    frame, L = enclose(H, quick=True), enclose(start.factor, quick=True)
    first = frame.part(slice(0, 1), slice(None)) @ L
    rest = frame.part(slice(1, None), slice(None)) @ L
    on = balls.ball((first @ first.T).low())
    off = balls.ball(0.0)
    for j in range(rest.shape[1] if rest.shape[0] else 0):
        column = rest.part(slice(None), slice(j, j + 1))
        off += balls.ball((column.T @ column).high())
    return on, off


def _from_start(claim: Claim, on: Any, off: Any) -> float:
    """Upper bound on the blow-up time of a start with y >= `on` and z <= `off`."""
    ratio, least = base.number(claim, "ratio"), base.number(claim, "least")
    if not on >= least:
        raise Refuted(f"the start has y = {balls.below(on):.9g}, below the least {least:.9g}")
    if not off <= balls.ball(ratio) * on:
        raise Refuted(
            f"the start has z/y = {balls.above(off / on):.9g}, above the ratio {ratio:.9g}"
        )
    growth, drag = balls.ball(base.number(claim, "growth")), balls.ball(base.number(claim, "drag"))
    speed = growth * on
    if drag == 0:
        return balls.above(1 / speed)
    return balls.above(-((-drag / speed).log1p()) / drag)


def _where(problem: CertificationProblem, claim: Claim) -> str:
    """The cone and the bound in words."""
    H = _coordinates(problem.parameters, claim)
    ratio, least = base.number(claim, "ratio"), base.number(claim, "least")
    growth, drag = base.number(claim, "growth"), base.number(claim, "drag")
    low = f"y = wᵀSw >= {rounded_up(least)}"
    if least <= NO_LEAST:
        low = f"y = wᵀSw > 0 (to be exact, at least {rounded_up(least, 2)})"
    bound = "1/(c y)" if drag == 0 else "ln(c y/(c y - a))/a"
    return (
        f"Covariances near the ray uuᵀ, u ≈ {vector(ray_of(H))}, blow up: every S with "
        f"{low} and Σ hᵢᵀShᵢ <= {rounded_down(ratio)} y does, within "
        f"{bound}, c = {rounded_down(growth)}, a = {rounded_up(drag)} (w, h₂, … are the rows of "
        "the claim's matrix `coordinates`)."
    )

"""A real ray at infinity along which covariances of rank one can grow: blow-up data exist.

If N(u) = Σ_h (uᵀB_hu) V_h u = λ u with λ > 0 (one head: an eigenvector V u = ν u with ν uᵀBu > 0),
then for every A some covariances of rank one blow up.  Write L = l (u + f) with f in a complement
of u; with α = 1/l² and dτ = l² dt the flow L' = A L + Σ_h (LᵀB_hL) V_h L is polynomial in (f, α),
and (0, 0) is an equilibrium, where the hyperplane α = 0 is invariant and α_τ = -2λ α to first
order.  The linearisation is block triangular, with -2λ < 0 off the hyperplane, so its stable
subspace does not lie in α = 0, and neither does the stable manifold (which needs no hyperbolicity:
it belongs to the spectrum with negative real part).  On it α > 0 tends to 0 exponentially in τ, so
t = ∫ α dτ stays finite while |L| -> ∞.  Nothing is said about how large these data are, or about
rank two.

That such u exists is proved near an approximate one (see :mod:`...arithmetic.real_eigenpair`), or
by exact fractions if N(u) is parallel to u as it stands.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..._check import Array
from ...arithmetic import balls
from ...arithmetic.fractions import fractions
from ...arithmetic.newton import has_zero
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...status import Verdict
from ..theory.infinity import expand
from . import base
from .base import Refuted, Rule, Scope, Statement
from .ray_blow_up import BITS, ray_of
from .wording import rounded_up, vector

__all__ = ["RayExistence", "is_exact"]


class RayExistence(Rule):
    """Some covariances of rank one blow up, for every A.

    Data: ``ray`` u (d,), if N(u) is exactly parallel to it; or ``coordinates`` H (d, d), whose
    inverse has u as its first column, and ``radius`` ε, within which of it a ray is proved to be.
    """

    name: ClassVar[str] = "ray"
    theorem: ClassVar[str] = "growing ray at infinity: blow-up in rank one, for every A"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check that a ray exists and that covariances grow along it."""
        parameters = problem.parameters
        if len(problem.vertices) != 1:
            raise Refuted("the statement is about constant parameters, not about a family")
        if parameters.noise is not None and parameters.noise.any():
            raise Refuted("process noise does not conserve rank one")
        if "ray" in claim.arrays:
            why = _ending(parameters, base.matrix(claim, "ray", problem.dim))
            if why is not None:
                raise Refuted(why)
        else:
            H = base.matrix(claim, "coordinates", problem.dim, problem.dim)
            with balls.precision(BITS):
                _check_nearby(parameters, H, base.number(claim, "radius"))

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say along which ray covariances of rank one blow up."""
        if "ray" in claim.arrays:
            where = f"the ray of u = {vector(base.matrix(claim, 'ray', problem.dim))}"
        else:
            H = base.matrix(claim, "coordinates", problem.dim, problem.dim)
            where = (
                f"the ray of some u + f, where u ≈ {vector(ray_of(H))} is the first column of the "
                f"inverse of the matrix `coordinates` and |f| <= "
                f"{rounded_up(base.number(claim, 'radius'))} in its other coordinates"
            )
        return Statement(
            Verdict.BLOW_UP_DATA_EXIST,
            Scope.SOME_STARTS,
            "For every A some covariances of rank one blow up in finite time, along a ray that the "
            f"heads carry outward: {where}.",
        )


def is_exact(parameters: Parameters, ray: Array) -> bool:
    """Whether N(u) = λ u with λ > 0 holds exactly for a vector of floats, in fractions."""
    return _ending(parameters, ray) is None


def _ending(parameters: Parameters, ray: Array) -> str | None:
    """Why a vector is not exactly a growing ray, or None if it is."""
    used = np.flatnonzero(ray)
    if not used.size:
        return "the vector `ray` is zero"
    u = fractions(ray[used])
    image = 0 * fractions(ray)
    for V, B, _ in parameters.heads:
        weight = (u.transpose() * fractions(B[np.ix_(used, used)]) * u)[0, 0]
        if weight != 0:
            image += weight * (fractions(V[:, used]) * u)
    x, y = (column.entries() for column in (fractions(ray), image))
    pivot = next((i for i, entry in enumerate(x) if entry != 0), None)
    if pivot is None:
        return "the vector `ray` is zero"
    if any(x[pivot] * b != y[pivot] * a for a, b in zip(x, y, strict=True)):
        return "the heads do not map the vector `ray` exactly to a multiple of itself"
    if not y[pivot] / x[pivot] > 0:
        return "the heads do not map the vector `ray` to a positive multiple of itself"
    return None


def _check_nearby(parameters: Parameters, H: Array, radius: float) -> None:
    expansion = expand(parameters, H)
    if expansion is None:
        raise Refuted("the matrix `coordinates` is not proved to be regular")
    flow = expansion.linear
    if not has_zero(flow.residual, flow.jacobian, flow.remainder, radius):
        raise Refuted(f"no ray is proved to exist within {radius:.6g} of the given one")
    eps = balls.ball(radius)
    # On rank one D = f fᵀ; the bounds on the growth hold for ρ = |f|² <= ε².
    if not expansion.growth(eps) > 0:
        raise Refuted("covariances are not proved to grow along the ray")

"""Search for cones around rays at infinity, and for the rays themselves.

The coordinates H of the cone are found in two steps.  Its first row w, with wᵀu = 1, is the left
eigenvector of the derivative of N (terms of first order then drop out of the growth of y), or u.
The other rows are orthonormal with respect to a metric P that makes the linearised flow contract:
the solution of a Lyapunov equation, at several rates.  The size of the cone is a search over one
number (:mod:`.cone_size`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import numpy as np
from scipy.linalg import LinAlgError, schur, solve_continuous_lyapunov

from ..._check import Array
from ...arithmetic import balls
from ...arithmetic.newton import has_zero
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..rules.ray_blow_up import BITS
from ..rules.ray_existence import is_exact
from ..theory.infinity import expand
from .cone_size import Cone, best_cone
from .directions import LARGE, Cubic, Ray, rays
from .lyapunov import lyapunov_metric

__all__ = ["LARGE", "find", "upper_bound"]

#: Shifts of the Lyapunov equation, as fractions of the rate of contraction, in the order tried.
SHIFTS = (0.3, 0.7, 0.95)

#: Rays whose cones are tried at most, for small and for large orders.
MOST_RAYS = (8, 1)

#: Distances within which an exact ray is looked for, and the one for large orders.
RADII = (1e-14, 1e-12, 1e-10, 1e-8, 1e-6)
RADIUS = 1e-6


def find(problem: CertificationProblem) -> Iterator[Claim]:
    """Yield the best cone that holds the start, else the cone that begins nearest to 0, else a ray.

    Parameters
    ----------
    problem : CertificationProblem
        Families have no claims here.
    """
    if len(problem.vertices) != 1:
        return
    # No setting may leak to the caller between two claims.
    with _settings():
        claim = _strongest(problem)
    if claim is not None:
        yield claim


@contextmanager
def _settings() -> Iterator[None]:
    """Precision of balls, and silence of floats that leave their range."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), balls.precision(BITS):
        warnings.simplefilter("ignore")
        yield


def _strongest(problem: CertificationProblem) -> Claim | None:
    L = None if problem.start is None else problem.start.factor
    cubic = Cubic(problem.parameters)
    growing = []
    best: Cone | None = None
    for ray in islice(rays(cubic), MOST_RAYS[problem.dim > LARGE]):
        growing.append(ray)
        for cone in _cones(problem.parameters, cubic, ray, L):
            best = cone if best is None or _better(cone, best) else best
    if best is not None:
        return best.claim()
    return _existence(problem.parameters, cubic, growing)


def upper_bound(parameters: Parameters, covariance: Array) -> Claim | None:
    """Bound the time that a covariance has left until it blows up, if a cone holds it.

    Parameters
    ----------
    parameters : Parameters
    covariance : (d, d) array
        Symmetric positive semidefinite.

    Returns
    -------
    Claim or None
        Of the rule ``ray-cone``, unsettled, with the number ``time``.  To prove it for a covariance
        that is known within an enclosure, use ``rules.ray_blow_up.time_left``.
    """
    if not np.all(np.isfinite(covariance)):
        return None
    values, vectors = np.linalg.eigh(covariance)
    if not values[-1] > 0:
        return None
    L = vectors * np.sqrt(np.maximum(values, 0.0))
    with _settings():
        cubic = Cubic(parameters)
        for ray in rays(cubic, (vectors[:, -1],)):
            cones = [c for c in _cones(parameters, cubic, ray, L) if math.isfinite(c.time)]
            if cones:
                return min(cones, key=lambda cone: cone.time).claim()
            if parameters.dim > LARGE:
                break
    return None


def _better(cone: Cone, other: Cone) -> bool:
    return (cone.time, cone.least) < (other.time, other.least)


def _cones(parameters: Parameters, cubic: Cubic, ray: Ray, L: Array | None) -> Iterator[Cone]:
    """Cones around a ray, in several coordinates; for each the best one."""
    for H in _coordinates(cubic, ray):
        expansion = expand(parameters, H)
        if expansion is not None:
            cone = best_cone(expansion, H, L)
            if cone is not None:
                yield cone


def _coordinates(cubic: Cubic, ray: Ray) -> Iterator[Array]:
    """Coordinates in which the linearised flow contracts towards the ray."""
    n, u = cubic.dim, ray.u
    if n == 1:
        yield np.ones((1, 1))
        return
    DN, spread = cubic.derivative(u), cubic.spread(u)
    for w in _functionals(DN, ray):
        # Orthonormal basis of the complement wᵀf = 0, and the projection onto it along u.
        T = np.linalg.qr(np.column_stack([w, np.eye(n)[:, :-1]]))[0][:, 1:]
        left = T.T - np.outer(T.T @ u, w)
        J, C = left @ DN @ T, left @ spread @ T
        for K in _metrics(J - ray.rate * np.eye(n - 1), C - ray.rate * np.eye(n - 1)):
            H = np.vstack([w, K @ left])
            if np.all(np.isfinite(H)):
                yield H
                if n > LARGE:
                    return
        if n > LARGE:  # whether there is a metric does not depend on w
            return


def _functionals(DN: Array, ray: Ray) -> Iterator[Array]:
    """Rows w with wᵀu = 1: the left eigenvector of DN for its eigenvalue 3λ, and u itself."""
    n, u = len(DN), ray.u
    system = np.block([[DN.T - 3 * ray.rate * np.eye(n), u[:, None]], [u, np.zeros(1)]])
    try:
        w = np.linalg.solve(system, np.append(np.zeros(n), 1.0))[:-1]
    except np.linalg.LinAlgError:
        w = u
    if np.all(np.isfinite(w)) and abs(w @ u - 1) < 0.5:
        yield w / (w @ u)
    yield u


def _metrics(J: Array, C: Array) -> Iterator[Array]:
    """Factors K of metrics P = KᵀK in which J and C contract."""
    m = len(J)
    if _abscissa(J) < 0 and _abscissa(C) < 0:
        yield np.eye(m)
    if m >= LARGE:
        yield from _large_metric(J, C)
        return
    try:
        rate = -float(np.max(np.linalg.eigvals(J).real))
    except np.linalg.LinAlgError:
        return
    if not rate > 0:
        return
    for shift in SHIFTS:
        try:
            P = solve_continuous_lyapunov((J + shift * rate * np.eye(m)).T, -np.eye(m))
            K = np.linalg.cholesky(0.5 * (P + P.T)).T * math.sqrt(rate)
            inverse = np.linalg.inv(K)
        except (LinAlgError, ValueError):
            continue
        if _abscissa(K @ J @ inverse) < 0 and _abscissa(K @ C @ inverse) < 0:
            yield K


def _large_metric(J: Array, C: Array) -> Iterator[Array]:
    """Factor of one metric, by a single Schur form."""
    try:
        upper, basis = schur(J, output="real")
        # The diagonal of a real Schur form holds the real parts of the eigenvalues.
        rate, one = -float(np.max(np.diag(upper))), np.eye(len(J))
        if not rate > 0:
            return
        P = lyapunov_metric(-(upper + SHIFTS[0] * rate * one), basis, one)
        if P is None:
            return
        K = np.asarray(np.linalg.cholesky(P).T, dtype=np.float64)
        inverse = np.linalg.inv(K)
    except (LinAlgError, ValueError):
        return
    if _abscissa(K @ J @ inverse) < 0 and _abscissa(K @ C @ inverse) < 0:
        yield K


def _abscissa(M: Array) -> float:
    """Largest eigenvalue of the symmetric part."""
    symmetric = 0.5 * (M + M.T)
    if not np.all(np.isfinite(symmetric)):
        return math.inf
    return float(np.linalg.eigvalsh(symmetric)[-1])


def _existence(parameters: Parameters, cubic: Cubic, growing: list[Ray]) -> Claim | None:
    """Claim the first ray that is proved to exist."""
    if parameters.noise is not None and parameters.noise.any():
        return None
    for ray in growing:
        # Vectors of many floats are not exactly rays, and fractions of them are slow.
        if np.count_nonzero(ray.u) <= LARGE and is_exact(parameters, ray.u):
            return Claim("ray", arrays={"ray": ray.u})
        T = np.linalg.qr(np.column_stack([ray.u, np.eye(cubic.dim)[:, :-1]]))[0][:, 1:]
        H = np.vstack([ray.u, T.T])
        if cubic.dim > LARGE:  # the proof costs as much as a search for the radius
            return Claim("ray", numbers={"radius": RADIUS}, arrays={"coordinates": H})
        expansion = expand(parameters, H)
        if expansion is None:
            continue
        flow = expansion.linear
        for radius in RADII:
            if has_zero(flow.residual, flow.jacobian, flow.remainder, radius):
                return Claim("ray", numbers={"radius": radius}, arrays={"coordinates": H})
    return None

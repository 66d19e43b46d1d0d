"""Search for cones around rays at infinity, and for the rays themselves.

The coordinates H of the cone are found in two steps.  Its first row w, with wᵀu = 1, is the left
eigenvector of the derivative of N (terms of first order then drop out of the growth of y), or u.
The other rows are orthonormal with respect to a metric P that makes the linearised flow contract:
the solution of a Lyapunov equation, at several rates.  The size of the cone is a search over one
number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, solve_continuous_lyapunov

from ..._check import Array
from ...arithmetic import balls
from ...arithmetic.real_eigenpair import has_root
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..infinity import Expansion, expand
from ..rules.ray_blow_up import BITS
from ..rules.ray_existence import is_exact
from .directions import LARGE, Cubic, Ray, rays

__all__ = ["find", "upper_bound"]

#: Shifts of the Lyapunov equation, as fractions of the rate of contraction, in the order tried.
SHIFTS = (0.3, 0.7, 0.95)

#: Rays whose cones are tried at most, for small and for large orders.
MOST_RAYS = (8, 1)

#: What is left of a limit, so that rounding does not decide; and of a coefficient.
SLACK, ROUNDING = 1e-9, 1e-13

#: How much later than the earliest cone a wider one may begin.
NEARLY = 1.25

#: Smallest y of a cone that needs none.
TINY_LEAST = 1e-300

#: Distances within which an exact ray is looked for, for small and for large orders.
RADII = ((1e-14, 1e-12, 1e-10, 1e-8, 1e-6), (1e-8, 1e-6))


class Cone(NamedTuple):
    """An invariant cone in numbers: the data of a claim."""

    H: Array
    ratio: float
    least: float
    growth: float
    drag: float
    time: float = math.inf

    def claim(self) -> Claim:
        """Return the claim, about the start if the time is finite."""
        numbers = {
            "ratio": self.ratio,
            "least": self.least,
            "growth": self.growth,
            "drag": self.drag,
        }
        if math.isfinite(self.time):
            numbers["time"] = self.time
        return Claim("ray-cone", numbers=numbers, arrays={"coordinates": self.H})


def find(problem: CertificationProblem) -> Iterator[Claim]:
    """Yield the best cone that holds the start, else the cone that begins nearest to 0, else a ray.

    Parameters
    ----------
    problem : CertificationProblem
        Families have no claims here.
    """
    if len(problem.vertices) != 1:
        return
    with np.errstate(all="ignore"), balls.precision(BITS):
        L = None if problem.start is None else problem.start.factor
        cubic = Cubic(problem.parameters)
        growing = []
        best: Cone | None = None
        for ray in rays(cubic):
            growing.append(ray)
            if len(growing) > MOST_RAYS[problem.dim > LARGE]:
                break
            for cone in _cones(problem.parameters, cubic, ray, L):
                best = cone if best is None or _better(cone, best) else best
        if best is not None:
            yield best.claim()
            return
        yield from _existence(problem.parameters, cubic, growing)


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
    values, vectors = np.linalg.eigh(covariance)
    if not values[-1] > 0:
        return None
    L = vectors * np.sqrt(np.maximum(values, 0.0))
    with np.errstate(all="ignore"), balls.precision(BITS):
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
            cone = _best_cone(expansion, H, L)
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


def _abscissa(M: Array) -> float:
    """Largest eigenvalue of the symmetric part."""
    symmetric = 0.5 * (M + M.T)
    if not np.all(np.isfinite(symmetric)):
        return math.inf
    return float(np.linalg.eigvalsh(symmetric)[-1])


def _best_cone(expansion: Expansion, H: Array, L: Array | None) -> Cone | None:
    """Best size of the cone: least time for the start if it fits, else the least y."""
    e = expansion
    if not (e.contraction > 0 and e.rate > 0) and len(H) > 1:
        return None
    largest = min(
        (e.contraction / k) ** (1 / p) if k > 0 else math.inf
        for k, p in ((e.third, 1), (e.fourth, 2), (e.fifth, 3))
    )
    s = np.geomspace(1e-14, 1.0, 600) * (largest if math.isfinite(largest) else 1.0)
    if len(H) == 1:
        s = np.ones(1)
    ratio = s * s
    s = np.sqrt(ratio)
    growth = np.asarray(e.growth(s)) - ROUNDING * e.rate
    drag = np.asarray(e.drag(s)) + ROUNDING * 2 * (s * e.pull + abs(e.drift))
    alpha = _limit(e, s, growth, drag) if len(H) > 1 else _slowest(growth, drag)
    alpha = np.where(growth > 0, alpha, 0.0) * (1 - SLACK)
    if not np.any(alpha > 0):
        return None
    least = np.maximum(1 / alpha, TINY_LEAST)
    if L is not None:
        on, off = norm_squared(H[:1] @ L), norm_squared(H[1:] @ L)
        times = _times(growth, drag, on * (1 - ROUNDING))
        fits = (least <= on * (1 - ROUNDING)) & (off <= ratio * on * (1 - ROUNDING)) & (times > 0)
        if np.any(fits):
            i = int(np.argmin(np.where(fits, times, np.inf)))
            time = float(times[i]) * (1 + 10 * ROUNDING)
            return _chosen(H, i, ratio, least, growth, drag, time)
    # The widest of the cones that begin nearly as low as the lowest.
    i = int(np.max(np.flatnonzero(least <= NEARLY * np.min(least))))
    return _chosen(H, i, ratio, least, growth, drag, math.inf)


def _chosen(
    H: Array, i: int, ratio: Array, least: Array, growth: Array, drag: Array, time: float
) -> Cone:
    return Cone(H, float(ratio[i]), float(least[i]), float(growth[i]), float(drag[i]), time)


def _limit(e: Expansion, s: Array, growth: Array, drag: Array) -> Array:
    """Largest α up to which the cone of each size is invariant; 0 if there is none."""
    far = np.asarray(e.spreading(s, 0.0))
    near = s * (e.push + s * (e.shear + s * e.pull))
    root = near + np.sqrt(np.maximum(near * near - 2 * e.noise * far, 0.0))
    alpha = np.where(root > 0, -2 * far / np.where(root > 0, root, 1.0), np.inf)
    alpha = np.minimum(alpha, _slowest(growth, drag))
    return np.where(far < -1e-3 * e.contraction * s * s, alpha, 0.0)


def _slowest(growth: Array, drag: Array) -> Array:
    """Largest α up to which y grows."""
    return np.where(drag > 0, growth / np.where(drag > 0, drag, 1.0), np.inf)


def _times(growth: Array, drag: Array, y: float) -> Array:
    """Upper bounds on the blow-up time from y; inf where y does not grow."""
    x = drag / (growth * y)
    small = np.abs(x) < 1e-8
    safe = np.where(small | (x >= 1), 0.5, x)
    ratio = np.where(small, 1 + 0.5 * x + x * x, -np.log1p(-safe) / safe)
    return np.where((x < 1) & (growth > 0), ratio / (growth * y), np.inf)


def norm_squared(M: Array) -> float:
    """Sum of squares of the entries."""
    return float(np.sum(M * M))


def _existence(parameters: Parameters, cubic: Cubic, growing: list[Ray]) -> Iterator[Claim]:
    """Claim the first ray that is proved to exist."""
    if parameters.noise is not None and parameters.noise.any():
        return
    for ray in growing:
        if is_exact(parameters, ray.u):
            yield Claim("ray", arrays={"ray": ray.u})
            return
        T = np.linalg.qr(np.column_stack([ray.u, np.eye(cubic.dim)[:, :-1]]))[0][:, 1:]
        H = np.vstack([ray.u, T.T])
        expansion = expand(parameters, H)
        if expansion is None:
            continue
        flow = expansion.linear
        for radius in RADII[cubic.dim > LARGE]:
            if has_root(flow.residual, flow.jacobian, flow.remainder, radius):
                yield Claim("ray", numbers={"radius": radius}, arrays={"coordinates": H})
                return

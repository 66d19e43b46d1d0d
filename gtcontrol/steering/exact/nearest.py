"""Nearest reachable laws in W₂, for targets that cannot be reached."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, minimize

from ..._check import Array

__all__ = ["coupled_factor", "frame", "inflate", "off_range", "project_on_ellipsoid", "split_range"]

#: Where an infimum is not attained, the law offered stays off it by this fraction of the scale.
INFLATION = 1e-3

#: Iterations allowed to each descent towards a nearest factor of smaller rank.
DESCENT_STEPS = 2000

#: Largest number of descents, each from another choice of principal components.
DESCENTS = 8


def split_range(factor: Array, vector: Array) -> tuple[Array, Array]:
    """Coordinates a = L⁺v (r,), and the part v - L a (d,) that sticks out of the range of L."""
    orthonormal, triangle = np.linalg.qr(factor)
    inside = orthonormal.T @ vector
    outside = vector - orthonormal @ inside
    # A second pass removes what rounding left of the range.
    outside = outside - orthonormal @ (orthonormal.T @ outside)
    return np.linalg.solve(triangle, inside), outside


def inflate(factor: Array, rank: int, size: float, avoid: Array | None = None) -> Array:
    """Append columns of length `size`, orthogonal to the factor and to `avoid`, up to `rank`."""
    missing = rank - factor.shape[1]
    occupied = factor if avoid is None else np.concatenate([factor, avoid[:, None]], axis=1)
    complete = np.linalg.qr(occupied, mode="complete")[0]
    fresh = complete[:, occupied.shape[1] : occupied.shape[1] + missing]
    return np.concatenate([factor, size * fresh], axis=1)


def off_range(factor: Array) -> Array:
    """Return a unit vector orthogonal to the range of a factor with fewer columns than rows."""
    orthonormal = np.linalg.qr(factor)[0]
    axis = np.zeros(factor.shape[0])
    axis[int(np.argmin(np.sum(orthonormal**2, axis=1)))] = 1.0
    _, outside = split_range(factor, axis)
    return np.asarray(outside / np.linalg.norm(outside))


def project_on_ellipsoid(X: Array, p: Array, *, solid: bool = False) -> Array:
    """Minimise |p - X u| over the unit sphere |u| = 1 (or the unit ball, if `solid`).

    With X = W Σ Zᵀ, y = Zᵀu and w = Wᵀp the minimisers are (σ_i² + μ) y_i = σ_i w_i with
    μ >= -σ_min², where μ solves the secular equation |y(μ)| = 1.  In the hard case (w has no
    part along σ_min, and |y| < 1 at μ = -σ_min²) the rest of the length lies along σ_min.

    Parameters
    ----------
    X : (d, k) array
        k >= 1.
    p : (d,) array

    Returns
    -------
    (k,) array
    """
    W, sigma, Zt = np.linalg.svd(X)
    k = Zt.shape[0]
    squares, load = np.zeros(k), np.zeros(k)
    squares[: sigma.size] = sigma**2
    load[: sigma.size] = sigma * (W.T @ p)[: sigma.size]
    if solid and squares[-1] > 0 and np.linalg.norm(load / squares) <= 1:
        return np.asarray(Zt.T @ (load / squares))
    return np.asarray(Zt.T @ _least_on_sphere(squares - squares[-1], load))


def _least_on_sphere(gaps: Array, load: Array) -> Array:
    """Minimise Σ gaps_i y_i²/2 - load·y over |y| = 1, with min(gaps) = 0."""
    flat = gaps <= 1e-15 * np.max(gaps)
    gaps = np.where(flat, 0.0, gaps)
    low, high = float(np.linalg.norm(load[flat])), float(np.linalg.norm(load))
    y = np.zeros(load.size)
    y[~flat] = load[~flat] / gaps[~flat]
    if low <= 1e-15 * high and np.linalg.norm(y) <= 1:  # hard case
        y[np.argmax(flat)] = np.sqrt(max(0.0, 1.0 - float(np.sum(y**2))))
        return y

    def excess(nu: float) -> float:
        return 1.0 - 1.0 / float(np.linalg.norm(load / (gaps + nu)))

    # |y(ν)| lies between low/ν and high/ν.
    nu = high
    if excess(high) < 0:
        nu = float(brentq(excess, max(low, 1e-18 * high) * 0.5, high, xtol=1e-300, rtol=1e-15))
    y = load / (gaps + nu)
    return np.asarray(y / np.linalg.norm(y))


def coupled_factor(L1: Array, m1: Array, a0: Array) -> tuple[Array, bool]:
    """Factor L (d, r) nearest to the target among the laws N(L a₀, L Lᵀ).

    Minimises |m₁ - L a₀|² + W₂²(L Lᵀ, L₁L₁ᵀ).  For a fixed alignment G = L₁Q (first r columns,
    Q orthogonal) least squares give L = (G + m₁a₀ᵀ)(I + a₀a₀ᵀ)⁻¹ at the cost
    |m₁ - G a₀|²/(1 + |a₀|²) + |L₁|² - |G|².  For equal ranks |G| is fixed and G a₀ runs over the
    ellipsoid {|a₀| L₁u : |u| = 1}; for a target of smaller rank over the solid one.  For a target
    of larger rank and r = 1 the cost is a quadratic form of u on the sphere.

    Returns
    -------
    factor : (d, r) array
        Possibly of smaller rank if the target is.
    proved : bool
        Whether the minimiser is global.  For a target of larger rank and r > 1 the cost also
        depends on |G|, there is no secular equation, and descent from several starts is used.
    """
    r, r1 = a0.size, L1.shape[1]
    length = float(np.linalg.norm(a0))
    if length == 0 or r == 0:
        return _leading(L1, r), True
    if r1 > r:
        return _coupled_truncation(L1, m1, a0, length), r == 1
    u = np.zeros(r)
    if r1:
        u[:r1] = project_on_ellipsoid(length * L1, m1, solid=r1 < r)
    if r1 < r:  # a rest of length that the target's factor does not see
        u[r1] = np.sqrt(max(0.0, 1.0 - float(np.sum(u**2))))
    return _regress(L1 @ (frame(u) @ frame(a0).T)[:r1], m1, a0), True


def _leading(L1: Array, rank: int) -> Array:
    """Leading principal components of a factor, with zero columns up to the rank."""
    U, sigma, _ = np.linalg.svd(L1, full_matrices=False)
    kept = min(rank, L1.shape[1])
    return np.pad(U[:, :kept] * sigma[:kept], ((0, 0), (0, rank - kept)))


def _regress(G: Array, m1: Array, a0: Array) -> Array:
    """L = (G + m₁a₀ᵀ)(I + a₀a₀ᵀ)⁻¹."""
    left = G + np.outer(m1, a0)
    return np.asarray(left - np.outer(left @ a0, a0) / (1.0 + float(a0 @ a0)))


def _coupled_truncation(L1: Array, m1: Array, a0: Array, length: float) -> Array:
    """Factor of :func:`coupled_factor` for a target of rank larger than r."""
    r = a0.size
    _, sigma, Zt = np.linalg.svd(L1, full_matrices=False)
    if r == 1:
        # |m₁ - αL₁u|²/(1 + α²) - |L₁u|² is -(uᵀK u + 2αuᵀL₁ᵀm₁)/(1 + α²) up to a constant.
        y = _least_on_sphere(sigma[0] ** 2 - sigma**2, length * (Zt @ (L1.T @ m1)))
        return _regress(np.outer(L1 @ (Zt.T @ y), np.sign(a0)), m1, a0)
    # All happens in the span of L₁ and m₁.
    basis = np.linalg.qr(np.concatenate([L1, m1[:, None]], axis=1))[0]
    X, p = basis.T @ L1, basis.T @ m1

    def cost(flat: Array) -> tuple[float, Array]:
        L = flat.reshape(-1, r)
        W, overlap, Yt = np.linalg.svd(X.T @ L, full_matrices=False)
        miss = p - L @ a0
        value = miss @ miss + np.sum(L**2) - 2.0 * np.sum(overlap)
        return float(value), 2.0 * (L - X @ (W @ Yt) - np.outer(miss, a0)).ravel()

    best, least = np.zeros((0, 0)), np.inf
    for left_out in range(max(0, r + 1 - DESCENTS), r + 1):
        G = X @ np.delete(Zt[: r + 1], left_out, axis=0).T
        u = project_on_ellipsoid(length * G, p)
        start = _regress(G @ frame(u) @ frame(a0).T, p, a0)
        found = minimize(
            cost,
            start.ravel(),
            method="L-BFGS-B",
            jac=True,
            options={"maxiter": DESCENT_STEPS, "gtol": 1e-12 * float(sigma[0]), "ftol": 0.0},
        )
        if found.fun < least:
            best, least = found.x.reshape(-1, r), float(found.fun)
    return np.asarray(basis @ best)


def frame(first: Array) -> Array:
    """Orthogonal matrix (n, n) whose first column has the direction of a vector (n,)."""
    first = first / np.linalg.norm(first)
    w = first.copy()
    w[0] += 1.0 if w[0] >= 0 else -1.0
    reflection = np.eye(first.size) - 2.0 * np.outer(w, w) / (w @ w)
    # The reflection maps e₁ to -sign(first[0]) times the direction.
    return np.asarray(-reflection if first[0] >= 0 else reflection)

"""Linear maps between factors, and their real logarithms: the generators of constant A."""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag, cholesky, expm, schur, solve_triangular

from ..._check import Array
from ...gaussian import align

__all__ = [
    "carry",
    "log_rotation",
    "log_spd_map",
    "principal_cosine",
    "rotation_between_ranges",
    "spiral",
    "stretch_between_ranges",
]

#: Ranges (and matrices) closer than this, relatively, need no motion of their own.
NEGLIGIBLE = 1e-13


def principal_cosine(L0: Array, L1: Array) -> float:
    """Cosine of the largest principal angle between two ranges; 1 for rank 0."""
    if L0.shape[1] == 0:
        return 1.0
    U0, U1 = np.linalg.qr(L0)[0], np.linalg.qr(L1)[0]
    return float(np.linalg.svd(U0.T @ U1, compute_uv=False)[-1])


def log_spd_map(L0: Array, Y: Array) -> Array:
    """Symmetric logarithm of the positive definite T = Y(YᵀL₀)⁻¹Yᵀ + I - Π₀, with T L₀ = Y.

    Π₀ is the projector on the range of L₀.  YᵀL₀ must be symmetric positive definite, as it is
    for aligned factors whose ranges have no principal angle of 90°.

    Parameters
    ----------
    L0, Y : (d, r) arrays

    Returns
    -------
    (d, d) array
    """
    d, r = L0.shape
    gram = Y.T @ L0
    C = cholesky(0.5 * (gram + gram.T), lower=True, check_finite=False)
    root = solve_triangular(C, Y.T, lower=True, check_finite=False)
    if r < d:
        complement = np.linalg.qr(L0, mode="complete")[0][:, r:]
        root = np.concatenate([root, complement.T])
    # T = rootᵀ root: the singular values of its root keep small eigenvalues accurate.
    _, sigma, Zt = np.linalg.svd(root)
    return np.asarray((Zt.T * (2.0 * np.log(sigma))) @ Zt)


def rotation_between_ranges(L0: Array, L1: Array) -> Array:
    """Skew K (d, d) whose exponential turns range L₀ into range L₁ by the principal angles."""
    U0, U1 = np.linalg.qr(L0)[0], np.linalg.qr(L1)[0]
    X, cosines, Yt = np.linalg.svd(U0.T @ U1)
    P, Q = U0 @ X, U1 @ Yt.T
    W = Q - P * np.minimum(cosines, 1.0)
    W = W - P @ (P.T @ W)
    sines = np.linalg.norm(W, axis=0)
    angles = np.arctan2(sines, cosines)
    turn = (W / np.sinc(angles / np.pi)) @ P.T
    return np.asarray(turn - turn.T)


def spiral(first: Array, last: Array) -> Array:
    """Generator G (d, d) of a logarithmic spiral: e^G first = last, for vectors not zero.

    It acts in the plane of the two; opposite vectors need d >= 2 and turn in any plane.  Zero
    vectors at both ends give G = 0.
    """
    if not (np.any(first) and np.any(last)):
        return np.zeros((first.size, first.size))
    e1, direction = first / np.linalg.norm(first), last / np.linalg.norm(last)
    cosine, rest = float(e1 @ direction), direction - (e1 @ direction) * e1
    sine = float(np.linalg.norm(rest))
    growth = float(np.log(np.linalg.norm(last) / np.linalg.norm(first)))
    if sine <= NEGLIGIBLE and cosine > 0:
        return growth * np.outer(e1, e1)
    if sine <= NEGLIGIBLE:
        sine, rest = 0.0, np.eye(e1.size)[np.argmin(np.abs(e1))]
    rest = rest - (rest @ e1) * e1
    e2 = rest / np.linalg.norm(rest)
    turn = np.arctan2(sine, cosine) * (np.outer(e2, e1) - np.outer(e1, e2))
    return np.asarray(growth * (np.outer(e1, e1) + np.outer(e2, e2)) + turn)


def log_rotation(R: Array) -> Array:
    """Real skew logarithm of R (n, n), orthogonal with determinant 1."""
    T, Z = schur(R, output="real")
    n = R.shape[0]
    G = np.zeros((n, n))
    reflected = []
    i = 0
    while i < n:
        if i + 1 < n and T[i + 1, i] != 0:
            angle = np.arctan2(0.5 * (T[i + 1, i] - T[i, i + 1]), T[i, i])
            G[i + 1, i], G[i, i + 1] = angle, -angle
            i += 2
        else:
            if T[i, i] < 0:
                reflected.append(i)
            i += 1
    # The determinant is 1, so reflected axes come in pairs: each pair turns by 180°.
    for j, k in zip(reflected[::2], reflected[1::2], strict=True):
        G[k, j], G[j, k] = np.pi, -np.pi
    return np.asarray(Z @ G @ Z.T)


def stretch_between_ranges(L0: Array, L1: Array) -> list[Array]:
    """Generators G₁, G₂, ... with e^{G_n} ... e^{G₁} S₀ (...)ᵀ = S₁ for any two ranges.

    A rotation of the range through the principal angles, left out if the ranges are equal,
    then a positive definite map within the new range.
    """
    generators, turned = _turn(L0, L1)
    U = np.linalg.qr(L1)[0]
    first, last = U.T @ turned, U.T @ L1
    stretch = log_spd_map(first, align(first, last))
    return [*generators, U @ stretch @ U.T]


def carry(F0: Array, F1: Array) -> list[Array]:
    """Generators G₁, G₂, ... with e^{G_n} ... e^{G₁} F₀ = F₁, column by column.

    A rotation of the range through the principal angles, then inside the new range the polar
    factors of the map: a positive definite one and a rotation.

    Parameters
    ----------
    F0, F1 : (d, s) arrays
        Of full column rank.  If s = d their determinants must have the same sign.
    """
    s = F0.shape[1]
    generators, turned = _turn(F0, F1)
    U = np.linalg.qr(F1)[0]
    inner = np.linalg.solve((U.T @ turned).T, (U.T @ F1).T).T
    X, sigma, Zt = np.linalg.svd(inner)
    stretch, R = (Zt.T * np.log(sigma)) @ Zt, X @ Zt
    if np.linalg.norm(stretch) > NEGLIGIBLE:
        generators.append(U @ stretch @ U.T)
    if np.linalg.norm(R - np.eye(s)) > NEGLIGIBLE:
        if np.linalg.det(R) < 0:
            # Turn one direction outside the range over as well: the determinant is then 1.
            outside = np.linalg.qr(U, mode="complete")[0][:, [s]]
            U = np.concatenate([U, outside], axis=1)
            R = np.asarray(block_diag(R, -np.eye(1)))
        generators.append(U @ log_rotation(R) @ U.T)
    return generators


def _turn(F0: Array, F1: Array) -> tuple[list[Array], Array]:
    """Generator that turns the range of F₀ into that of F₁, if one is needed, and F₀ turned."""
    turn = rotation_between_ranges(F0, F1)
    if np.linalg.norm(turn) <= NEGLIGIBLE:
        return [], F0
    return [turn], np.asarray(expm(turn)) @ F0

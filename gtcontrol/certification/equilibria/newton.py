"""Newton's method from many starts at once, on covariances and on factors of a given rank."""

from __future__ import annotations

import numpy as np

from ..._check import Array
from .quadratic import Quadratic, coordinates, symmetric

__all__ = ["factor_newton", "matrix_newton", "refine"]

#: Iterations from a random start, of which the last few converge quadratically.
ITERATIONS = 40

#: A step below this fraction of the unknown counts as converged.
SMALL = 1e-9

#: Relative shift of matrices that are to be inverted, so that no start of a batch is singular.
SHIFT = 1e-14

#: Directions in which the linearisation is smaller than this, relative to the terms of the field
#: before they cancel, are left alone.
SINGULAR = 1e-13

#: The rest of an equation that is its rounding, relative to its terms: no step is taken.
EXACT = float(np.finfo(float).eps)

#: Numbers beyond this have left for infinity, in units of order one.
FAR = 1e8


def matrix_newton(field: Quadratic, starts: Array, iterations: int = ITERATIONS) -> Array:
    """Zeros of F on symmetric matrices, semidefinite or not, by Newton's method from `starts`.

    Parameters
    ----------
    field : Quadratic
        In units of order one.
    starts : (N, d, d) array

    Returns
    -------
    (K, d, d) array
        Those that converged, with repetitions.
    """
    s = coordinates(starts)
    m = s.shape[1]
    q, flat = coordinates(field.Q), field.tensor.reshape(m * m, m)
    done = np.zeros(len(s), dtype=bool)
    for _ in range(iterations):
        quadratic = (s @ flat.T).reshape(-1, m, m)
        linear = field.linear + quadratic
        value = q + np.einsum("nij,nj->ni", linear, s)
        step = _solve(linear + quadratic, value)
        s = s - step
        size = np.linalg.norm(s, axis=1)
        done = np.linalg.norm(step, axis=1) <= SMALL * (size + SMALL)
        alive = size < FAR
        s, done = s[alive], done[alive]
        if done.all():
            break
    return symmetric(s[done], field.dim)


def factor_newton(field: Quadratic, starts: Array, iterations: int = ITERATIONS) -> Array:
    """Factors L of equilibria L Lᵀ of rank r: A L + Σ V_h L (Lᵀ B_h L) = L Ω, Ω skew.

    The unknowns L and Ω are determined up to a rotation of L, so each step is the shortest
    solution of the linearised equation.

    Parameters
    ----------
    field : Quadratic
        In units of order one, without noise.
    starts : (N, d, r) array

    Returns
    -------
    (K, d, r) array
        Those that converged, with repetitions.
    """
    N, d, r = starts.shape
    L, upper = starts, np.triu_indices(r, 1)
    omega = np.zeros((N, len(upper[0])))
    basis = np.zeros((len(upper[0]), r, r))
    basis[np.arange(len(upper[0])), upper[0], upper[1]] = 1.0
    basis -= np.swapaxes(basis, 1, 2)
    done = np.zeros(N, dtype=bool)
    for _ in range(iterations):
        skew = np.einsum("nk,kij->nij", omega, basis)
        value, jacobian = _factor_equation(field, L, skew)
        gauge = -np.einsum("nij,kjl->nilk", L, basis).reshape(len(L), d * r, -1)
        jacobian = np.concatenate([jacobian, gauge], axis=2)
        turned = np.swapaxes(jacobian, 1, 2)
        step = np.einsum("nij,nj->ni", turned, _solve(jacobian @ turned, value))
        sizes = np.linalg.norm(L, axis=(1, 2))
        terms = sizes * (field.pace(np.zeros((d, d))) + field.gain * sizes**2)
        step[np.linalg.norm(value, axis=1) <= EXACT * terms] = 0.0
        L = L - step[:, : d * r].reshape(-1, d, r)
        omega = omega - step[:, d * r :]
        size = np.linalg.norm(L, axis=(1, 2))
        done = np.linalg.norm(step[:, : d * r], axis=1) <= SMALL * (size + SMALL)
        alive = size < FAR
        L, omega, done = L[alive], omega[alive], done[alive]
        if done.all():
            break
    return L[done]


def _factor_equation(field: Quadratic, L: Array, skew: Array) -> tuple[Array, Array]:
    """G(L) - L Ω and its derivative in L, shapes (N, d r) and (N, d r, d r)."""
    N, d, r = L.shape
    turned = np.swapaxes(L, 1, 2)
    value = field.A @ L - L @ skew
    # D ↦ A D + Σ V D (LᵀBL) + V L (DᵀBL + LᵀBD) - D Ω, as a matrix on row-major vectors.
    eye_d, eye_r = np.eye(d), np.eye(r)
    made = np.einsum("ij,ab->iajb", field.A, eye_r)[None] - np.einsum("ij,nba->niajb", eye_d, skew)
    for V, B in zip(field.V, field.B, strict=True):
        inner, BL = turned @ B @ L, B @ L
        value = value + V @ L @ inner
        made = made + np.einsum("ij,nba->niajb", V, inner)
        made = made + np.einsum("nib,nja->niajb", V @ L, BL)
        made = made + np.einsum("nij,ab->niajb", V @ L @ turned @ B, eye_r)
    return value.reshape(N, d * r), made.reshape(N, d * r, d * r)


def refine(field: Quadratic, S: Array) -> Array:
    """Newton's method from nearby, with the shortest step where the linearisation is singular."""
    best, residual = S, field.residual(S)
    for _ in range(12):
        right = coordinates(field.rate(S))
        J = field.linearisation(S)
        largest = float(np.linalg.norm(J, 2))
        cut = SINGULAR * max(largest, field.pace(S))
        if not largest > cut:  # what is left of the terms is their rounding
            break
        step = np.linalg.lstsq(J, right, rcond=cut / largest)[0]
        S = S - symmetric(np.asarray(step, dtype=np.float64), field.dim)
        found = field.residual(S)
        if not found < residual:
            break
        best, residual = S, found
    return best


def _solve(matrices: Array, values: Array) -> Array:
    """Solve a batch of square systems, none of which may stop the others by being singular."""
    n = matrices.shape[-1]
    sizes = np.max(np.abs(matrices), axis=(1, 2), initial=0.0) + SHIFT
    shifted = matrices + SHIFT * sizes[:, None, None] * np.eye(n)
    try:
        return np.asarray(np.linalg.solve(shifted, values[..., None])[..., 0])
    except np.linalg.LinAlgError:
        # Exactly singular ones, such as a zero field: the shortest solution.
        return np.asarray(np.einsum("nij,nj->ni", np.linalg.pinv(shifted), values))

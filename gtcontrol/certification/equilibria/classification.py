"""Rank, spectra and attraction of an equilibrium.

Let S have range U.  M maps U into itself (S' = 0), and perturbations D of S fall into three parts:
within U, between U and its complement, and within the complement.  The last part moves by itself,
D₂₂' = M₂₂ D₂₂ + D₂₂ M₂₂ᵀ, with the pair sums of the transversal exponents; the others together are
tangent to the covariances of rank r.  If a transversal exponent has a positive real part, some
covariances of higher rank leave; if a tangent one has, some of rank r do.  So in the cone of
covariances, too, the equilibrium attracts exactly if all real parts are negative.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._check import Array
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...results.equilibria import Complex, Equilibrium
from .newton import factor_newton, refine
from .quadratic import Quadratic

__all__ = ["classify", "exponents", "frame", "semidefinite_factor"]

#: Real parts below this fraction of the largest eigenvalue count as zero.
MARGINAL = 1e-9

#: ... and so do those below this multiple of the rounding of the terms, which may cancel.
ROUNDING = 100 * float(np.finfo(float).eps)

#: Columns of a factor are independent if its smallest singular value, relative, exceeds this.
INDEPENDENT = 1e-7

#: Eigenvalues of a covariance are told from zero down to this fraction at best, or worst.
FINEST, COARSEST = 1e-12, 1e-6


def semidefinite_factor(field: Quadratic, S: Array, smallest: float) -> Array | None:
    """Factor (d, r) of an equilibrium given approximately; None if it is indefinite.

    What is left of an eigenvalue that ought to be zero is judged by how well the equilibrium is
    conditioned.

    Parameters
    ----------
    field : Quadratic
        In units of order one.
    S : (d, d) array
    smallest : float
        Without noise, a covariance of a smaller trace is 0.
    """
    S = refine(field, (S + S.T) / 2)
    if np.trace(S) <= smallest and not field.noisy:
        return np.zeros((field.dim, 0)) if np.linalg.norm(S) <= smallest else None
    values, vectors = np.linalg.eigh(S)
    spread = np.linalg.svd(field.linearisation(S), compute_uv=False)
    condition = max(float(spread[0]), field.pace(S)) / max(float(spread[-1]), 1e-300)
    zero = float(np.clip(2e-15 * condition, FINEST, COARSEST)) * values[-1]
    if values[0] < -zero or field.residual(S) > 1e-9:
        return None
    if not values[-1] > 0:
        return None
    kept = values > zero
    L = vectors[:, kept] * np.sqrt(values[kept])
    return L if field.noisy else _exact_rank(field, S, L)


def _exact_rank(field: Quadratic, S: Array, L: Array) -> Array | None:
    """Factor near L of an equilibrium near S that has the rank of L, None if there is none."""
    if L.shape[1] in {0, field.dim}:
        return L
    # Of deficient rank: the factor is exact where the matrix has the noise of its zero part.
    made = factor_newton(field, L[None], 8)
    near = 10 * COARSEST * float(np.linalg.norm(S, 2))
    if len(made) and np.linalg.norm(made[0] @ made[0].T - S) <= near:
        singular = np.linalg.svd(made[0], compute_uv=False)
        if singular[-1] > INDEPENDENT * singular[0]:
            return np.asarray(made[0])
    # In a continuum the method may go far, while S was there already.
    return L if field.residual(L @ L.T) <= ROUNDING else None


def frame(L: Array) -> Array:
    """Invertible R = [L, N] with N an orthogonal complement of the size of L, (d, d)."""
    d, r = L.shape
    if r == d:
        return np.asarray(L)
    basis = np.linalg.qr(np.column_stack([L, np.eye(d)]))[0] if r else np.eye(d)
    size = np.linalg.norm(L) / np.sqrt(r) if r else 1.0
    return np.column_stack([L, size * basis[:, r:]])


def exponents(field: Quadratic, R: Array, rank: int) -> tuple[Complex, Complex]:
    """Tangent and transversal exponents at an equilibrium L Lᵀ of a rank, from a frame R = [L, N].

    With noise all eigenvalues are tangent.
    """
    there, d = field.changed(R), len(R)
    base = np.diag(np.where(np.arange(d) < rank, 1.0, 0.0))
    rows, columns = np.triu_indices(d)
    along = np.minimum(rows, columns) < rank
    if field.noisy:
        along = np.full(rows.size, True)
    matrix = there.linearisation(base)
    tangent = _sorted(np.linalg.eigvals(matrix[np.ix_(along, along)]))
    return tangent, _sorted(np.linalg.eigvals(there.generator(base)[rank:, rank:]))


def classify(p: Parameters, L: Array) -> Equilibrium:
    """Describe the equilibrium L Lᵀ of parameters, L (d, r) of full column rank."""
    field, d, r = Quadratic.of(p), *L.shape
    R = frame(L)
    S = L @ L.T
    there = field.changed(R)
    base = np.diag(np.where(np.arange(d) < r, 1.0, 0.0))
    M = there.generator(base)
    tangent, transversal = exponents(field, R, r)
    sums = np.array([], dtype=np.complex128) if field.noisy else _pair_sums(transversal)
    spectrum = _sorted(np.concatenate([tangent, sums]))
    zero = max(MARGINAL * float(np.max(np.abs(spectrum), initial=0.0)), _rounding(field, R, r))
    isolated = not tangent.size or float(np.min(np.abs(tangent))) > zero
    jacobian = M + there.V.sum(axis=0)
    mean_spectrum = _sorted(np.linalg.eigvals(jacobian))
    mean_size = float(np.linalg.norm(jacobian, 2)) + float(np.linalg.norm(there.V.sum(axis=0), 2))
    stable = float(spectrum[0].real) < -zero
    return Equilibrium(
        gaussian=_law(p, L, R, jacobian),
        covariance=S,
        rank=r,
        spectrum=spectrum,
        tangent=tangent,
        transversal=transversal,
        mean_spectrum=mean_spectrum,
        stable=stable,
        mean_stable=stable and float(mean_spectrum[0].real) < -MARGINAL * mean_size,
        attracts=_words(tangent, spectrum, zero, r),
        isolated=isolated,
        residual=field.residual(S),
    )


def _rounding(field: Quadratic, R: Array, rank: int) -> float:
    """Rounding of the linearisation, in the coordinates of the frame R.

    What it is made of is measured before it cancels, in absolute values entry by entry, and by a
    spectral radius, so that the units of the tokens do not matter.
    """
    d = len(R)
    left, right = np.abs(np.linalg.inv(R)), np.abs(R)
    terms = Quadratic(
        left @ np.abs(field.A) @ right,
        left @ np.abs(field.V) @ right,
        right.T @ np.abs(field.B) @ right,
        np.zeros((d, d)),
    ).linearisation(np.diag(np.where(np.arange(d) < rank, 1.0, 0.0)))
    return ROUNDING * float(np.max(np.abs(np.linalg.eigvals(terms))))


def _words(tangent: Complex, spectrum: Complex, zero: float, rank: int) -> str:
    whole = float(spectrum[0].real)
    along = float(tangent[0].real) if tangent.size else np.inf
    if whole < -zero:
        return "all covariances near it"
    if along < -zero and whole > zero:
        return f"rank-{rank} covariances near it"
    if whole > zero:
        return "nothing"
    return "undecided by linearisation"


def _law(p: Parameters, L: Array, R: Array, jacobian: Array) -> Gaussian | None:
    """Law with the mean that stands still, if there is exactly one."""
    singular = np.linalg.svd(jacobian, compute_uv=False)
    if singular[-1] <= 1e-13 * max(singular[0], 1e-300):
        return None
    drive = p.b.copy()
    for V, _, beta in p.heads:
        if beta is not None:
            drive = drive + V @ (L @ (L.T @ beta))
    mean = -R @ np.linalg.solve(jacobian, np.linalg.solve(R, drive))
    return Gaussian(mean, L)


def _pair_sums(values: Complex) -> Complex:
    i, j = np.triu_indices(len(values))
    return np.asarray(values[i] + values[j])


def _sorted(values: NDArray[Any]) -> Complex:
    made = np.asarray(values, dtype=np.complex128)
    return made[np.lexsort((-made.imag, -made.real))]

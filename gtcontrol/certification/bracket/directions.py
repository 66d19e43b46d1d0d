"""Where the covariance goes at the blow-up, in floats: rays with their cones, and eigenvectors.

Nothing here is trusted; the bounds are built from these floats in balls.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.integrate
import scipy.linalg

from ..._check import Array
from ...parameters import Parameters
from .rays import symmetric
from .restart import Eigenvector, Ray

__all__ = ["find_eigenvectors", "find_ray"]

#: Other directions must decay at this part of the rate of the ray at least.
LEAST_RATE = 1e-4

#: Part of the slowest rate of attraction that the norm of the cone keeps.
KEPT_RATE = 0.5

#: Steps of Newton's method for the ray.
NEWTON_STEPS = 30

#: Rescaled time for which a slow approach to a ray is followed, in units of its blow-up rate.
FOLLOWED = 200.0

#: A ray is that of the guess if it is this near, relative to its size.
SAME_RAY = 0.2

#: Eigenvalues closer than this, relative to the size of the matrix, are treated as one.
COINCIDENCE = 1e-7

#: Entries of an eigenvector are rounded to multiples of this, so that exact ones are found.
GRID = 2.0**-36


@dataclass(frozen=True, eq=False)
class _Form:
    """The quadratic part F of the equation in scaled coordinates, on lower triangles."""

    heads: tuple[tuple[Array, Array], ...]
    order: int

    def image(self, x: Array, y: Array) -> Array:
        """Symmetric bilinear form of F, shape (N,)."""
        S, T = symmetric(x), symmetric(y)
        half = np.zeros((self.order, self.order))
        for V, B in self.heads:
            half += V @ S @ B @ T + V @ T @ B @ S
        return np.asarray(0.5 * (half + half.T)[np.tril_indices(self.order)])

    def derivative(self, x: Array) -> Array:
        """Derivative of F, shape (N, N)."""
        return np.stack([2.0 * self.image(x, e) for e in np.eye(x.size)], axis=1)


def find_ray(parameters: Parameters, coordinates: Array, guess: Array) -> Ray | None:
    """Refine a direction to a ray F(X) = g X that attracts, with its functional and frame.

    Parameters
    ----------
    parameters : Parameters
    coordinates : (d, d) array
        Matrix T of the coordinates in which everything is returned.
    guess : (d, d) array
        Direction of the covariance near the blow-up, in the original coordinates.
    """
    T = coordinates
    inverse = np.linalg.inv(T)
    heads = tuple((T @ V @ inverse, inverse.T @ B @ inverse) for V, B, _ in parameters.heads)
    x = (T @ guess @ T.T)[np.tril_indices(len(T))]
    with np.errstate(all="ignore"):
        x = x / np.linalg.norm(x)
        size = float(np.linalg.norm(_Form(heads, len(T)).image(x, x)))
        if not (np.all(np.isfinite(x)) and 0 < size < np.inf):
            return None
        form = _Form(tuple((V / size, B) for V, B in heads), len(T))
        try:
            return _attracting(form, x) or _attracting(form, _followed(form, x))
        except (np.linalg.LinAlgError, ValueError):  # of numbers beyond double precision
            return None


def _attracting(form: _Form, x: Array) -> Ray | None:
    found = _refine(form, x)
    return None if found is None else _frame(found, form.derivative(found))


def _followed(form: _Form, x: Array) -> Array:
    """Direction after a long rescaled time without the linear part: a slow approach goes on."""

    def rate(_: float, x: Array) -> Array:
        image = form.image(x, x)
        return np.asarray(image - x * (x @ image) / (x @ x))

    path = scipy.integrate.solve_ivp(rate, (0.0, FOLLOWED), x, method="DOP853", rtol=1e-9)
    return np.asarray(path.y[:, -1] / np.linalg.norm(path.y[:, -1]))


def _refine(form: _Form, x: Array) -> Array | None:
    """Newton's method for F(X) = g X on the plane through the guess."""
    first, g = x, float(x @ form.image(x, x))
    for _ in range(NEWTON_STEPS):
        image = form.image(x, x)
        top = np.column_stack([form.derivative(x) - g * np.eye(x.size), -x])
        system = np.vstack([top, np.append(first, 0.0)])
        residual = np.append(image - g * x, first @ x - 1.0)
        step = np.linalg.lstsq(system, -residual, rcond=None)[0]
        x, g = x + step[:-1], g + float(step[-1])
        if np.linalg.norm(step) < 4e-16:
            break
    return x if np.linalg.norm(x - first) < SAME_RAY and g > 0 else None


def _frame(x: Array, derivative: Array) -> Ray | None:
    """Functional and frame: Lyapunov's norm in which the other directions decay."""
    values, left = np.linalg.eig(derivative.T)
    g = 0.5 * float(x @ derivative @ x) / float(x @ x)
    w = np.real(left[:, np.argmin(abs(values - 2 * g))])
    if abs(w @ x) < 1e-12 * np.linalg.norm(w) * np.linalg.norm(x):
        return None
    w = w / (w @ x)
    if x.size == 1:
        return Ray(x, w, np.zeros((1, 0)))
    Z = scipy.linalg.null_space(w[None, :])
    J = Z.T @ derivative @ Z - g * np.eye(Z.shape[1])
    slowest = float(np.max(np.linalg.eigvals(J).real))
    if not slowest < -LEAST_RATE * g:
        return None
    shifted = J - KEPT_RATE * slowest * np.eye(len(J))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cone is proved, or not, whatever SciPy thinks
        P = scipy.linalg.solve_continuous_lyapunov(shifted.T, -np.eye(len(J)))
    C = np.linalg.cholesky(0.5 * (P + P.T) / np.linalg.norm(P)).T
    return Ray(x, w, scipy.linalg.solve_triangular(C, Z.T, trans="T").T)


def find_eigenvectors(parameters: Parameters, guess: Array) -> tuple[Eigenvector, ...]:
    """Common left eigenvectors of the value matrices for which the spectral bound may hold.

    Parameters
    ----------
    parameters : Parameters
    guess : (d, d) array
        Direction of the covariance near the blow-up: of an eigenspace its main part is taken.
    """
    values = [V for V, _, _ in parameters.heads]
    mixed = sum(((1.0 + 0.37 * h) * V for h, V in enumerate(values)), np.zeros_like(parameters.A))
    size = float(np.linalg.norm(mixed))
    if not 0 < size < np.inf:
        return ()
    found: list[Eigenvector] = []
    seen: list[complex] = []
    for value in np.linalg.eigvals(mixed / size):
        near = [abs(value - other) < COINCIDENCE for other in seen]
        if value.imag < 0 or any(near):
            continue
        seen.append(complex(value))
        made = _eigenvector(values, mixed / size, complex(value), guess)
        if _is_positive(parameters, made):
            found.append(made)
    return tuple(found)


def _eigenvector(heads: list[Array], mixed: Array, value: complex, guess: Array) -> Eigenvector:
    _, sigma, right = np.linalg.svd(mixed.T - value * np.eye(len(mixed)))
    count = max(1, int(np.count_nonzero(sigma < COINCIDENCE)))
    space = right[-count:].conj().T
    # w = space c with the largest w' S conj(w).
    w = space @ np.linalg.eigh(space.T @ guess @ space.conj())[1][:, -1].conj()
    w = w / w[np.argmax(abs(w))]
    rounded = GRID * np.round(w / GRID)
    values = []
    for V in heads:
        size = float(np.max(abs(V))) or 1.0
        rate = complex(w.conj() @ V.T @ w / (w.conj() @ w))
        grid = GRID * 2.0 ** np.floor(np.log2(size))
        values.append(grid * np.round(rate / grid))
    parts = np.array([[x.real, x.imag] for x in values])
    return Eigenvector(np.stack([rounded.real, rounded.imag], axis=1), parts)


def _is_positive(parameters: Parameters, made: Eigenvector) -> bool:
    """Whether Σ_h (λ_h B_h + its adjoint) is positive definite, in floats."""
    H = np.zeros((parameters.dim, parameters.dim), dtype=complex)
    for (_, B, _), (a, b) in zip(parameters.heads, made.values, strict=True):
        H += complex(a, b) * B
    return bool(np.linalg.eigvalsh(H + H.conj().T)[0] > 0)

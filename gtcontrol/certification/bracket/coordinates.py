"""Coordinates in which errors grow little along a path: what balls gain, precision need not give.

The error bound of a Taylor step grows with the logarithmic norm of the linearised equation, and
with the size of the covariance relative to that of the form.  Both depend on the coordinates; what
is bounded does not.
"""

from __future__ import annotations

import numpy as np

from ..._check import Array
from ...gaussian import norm
from ...parameters import Parameters
from .estimate import Estimate

__all__ = ["error_growth", "find_coordinates"]

#: Directions in which the covariance is ever smaller than this part of its trace are not enlarged
#: further.
FLOORS = (1e-1, 1e-2, 1e-3)


def find_coordinates(parameters: Parameters, seen: Estimate, *others: Array) -> Array:
    """Matrix T, shape (d, d), of the candidate in which errors grow least along a path.

    Parameters
    ----------
    parameters : Parameters
    seen : Estimate
    *others : (d, d) arrays
        Candidates besides those that fit the covariances of the path.
    """
    scales = np.array([norm(L) for L in seen.factors])
    average = sum(
        ((L / s) @ (L / s).T for L, s in zip(seen.factors, scales, strict=True) if s > 0),
        np.zeros((parameters.dim, parameters.dim)),
    )
    average = average / max(float(np.trace(average)), 1e-300)
    unit = scales[scales > 0][0] if np.any(scales > 0) else 1.0
    sizes = np.sqrt(np.diag(average))
    candidates = list(others)
    for stretched in (np.ones_like(sizes), np.where(sizes > 0, sizes, 1.0)):
        scale = np.diag(1.0 / stretched)
        candidates.append(scale / unit)
        values, vectors = np.linalg.eigh(scale @ average @ scale)
        for floor in FLOORS:
            stretch = np.sqrt(np.maximum(values, 0.0) + floor)
            candidates.append((vectors / stretch).T @ scale / unit)
    growth = [error_growth(parameters, T, seen) for T in candidates]
    return candidates[int(np.argmin(growth))]


def error_growth(parameters: Parameters, T: Array, seen: Estimate) -> float:
    """Integral of the logarithmic norm over the path, inf if it is beyond floats."""
    inverse = np.linalg.inv(T)
    heads = [(T @ V @ inverse, inverse.T @ B @ inverse) for V, B, _ in parameters.heads]
    A = T @ parameters.A @ inverse
    rates = []
    for L in seen.factors:
        S = (T @ L) @ (T @ L).T
        M = A + sum((V @ S @ B for V, B in heads), np.zeros_like(A))
        rates.append(_logarithmic_norm(M, [(V, B @ S) for V, B in heads]))
    with np.errstate(all="ignore"):
        total = float(np.trapezoid(rates, seen.times))
    return total if np.isfinite(total) else np.inf


def _logarithmic_norm(M: Array, terms: list[tuple[Array, Array]]) -> float:
    """That of D -> M D + Σ P D Q + transpose on symmetric D; see `CovarianceFlow`."""
    order = len(M)
    rows, columns = np.tril_indices(order)
    basis = np.zeros((rows.size, order, order))
    weight = np.where(rows == columns, 1.0, np.sqrt(0.5))
    basis[np.arange(rows.size), rows, columns] = weight
    basis[np.arange(rows.size), columns, rows] = weight
    image = M @ basis
    for P, Q in terms:
        image = image + P @ basis @ Q
    image = image + np.swapaxes(image, 1, 2)
    H = np.einsum("aij,bij->ab", basis, image)
    return float(np.linalg.eigvalsh(0.5 * (H + H.T))[-1]) if np.all(np.isfinite(H)) else np.inf

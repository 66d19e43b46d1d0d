"""Metrics in which a linearisation contracts, and in which its region of attraction reaches far."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_continuous_lyapunov
from scipy.optimize import minimize

from ..._check import Array

__all__ = ["metrics"]

#: Parts of the decay rate that the metrics are made for, from fast and narrow to slow and wide.
SHARES = (0.95, 0.8, 0.6, 0.4, 0.2)

#: Condition of the matrix of normal modes up to which they serve as a metric.
WORST_MODES = 1e7

#: Units of the modes are optimised up to this many of them.
MOST_SCALED = 6

#: Logarithms of these units stay between minus and plus this.
FARTHEST = 12.0


def metrics(J: Array, T: Array, rate: float, reach_of: Callable[[Array], float]) -> Iterator[Array]:
    """Metrics G in which the linearisation contracts, or nearly.

    The identity if it serves, square roots of Lyapunov matrices, and normal modes in several units.

    Parameters
    ----------
    J : (m, m) array
        Linearisation, Hurwitz.
    T : (m, m, m) array
        Quadratic part.
    rate : float
        Minus the spectral abscissa of J.
    reach_of : callable
        How far the region reaches with a metric, 0 if it does not contract.

    Yields
    ------
    (m, m) array
    """
    eye = np.eye(len(J))
    if np.linalg.eigvalsh(J + J.T)[-1] < 0:
        yield eye
    for share in SHARES:
        P = solve_continuous_lyapunov((J + share * rate * eye).T, -eye)
        values, vectors = np.linalg.eigh((P + P.T) / 2)
        if values[0] > 0 and np.isfinite(values[-1]):
            yield (vectors * np.sqrt(values / values[-1])) @ vectors.T
    modes, owners = _modes(J)
    if np.linalg.cond(modes) > WORST_MODES:
        return
    G: Array = np.asarray(np.linalg.inv(modes), dtype=np.float64)
    yield G / np.linalg.norm(G, 2)
    units = _units(G, J, T, owners)
    yield units[:, None] * G / np.linalg.norm(units[:, None] * G, 2)
    if len(J) <= MOST_SCALED:

        def cost(x: Array) -> float:
            reach = reach_of((np.exp(x[owners]) * units)[:, None] * G)
            return -math.log(float(np.clip(reach, 1e-300, 1e300)))

        count = int(owners.max()) + 1
        found = minimize(
            cost, np.zeros(count), method="Nelder-Mead", options={"maxfev": 60 * count}
        )
        G = (np.exp(found.x[owners]) * units)[:, None] * G
        yield G / np.linalg.norm(G, 2)


def _units(G: Array, J: Array, T: Array, owners: NDArray[np.intp]) -> Array:
    """Units of normal modes in which the region of attraction reaches far.

    In units of their own the modes contract as before.  Minimal is the Frobenius norm of the cubic
    term, weighed by the rates, times that of G: its logarithm is convex in those of the units.
    """
    inverse = np.linalg.inv(G)
    moved = np.einsum("ki,iab,ac,bd->kcd", G, T, inverse, inverse, optimize=True)
    slow = 1.0 / np.maximum(-np.diag(G @ J @ inverse), 1e-300)
    weight = slow[:, None, None] * slow[None, :, None]
    weight = weight + np.swapaxes(weight, 1, 2) + np.moveaxis(weight, 2, 0)
    squares, sizes = moved**2 * weight, np.sum(G**2, axis=1)
    if not squares.any():
        return np.ones(len(G))
    squares, sizes = squares / squares.max(), sizes / sizes.max()
    count = int(owners.max()) + 1

    def cost(z: Array) -> tuple[float, Array]:
        x = z[owners]
        terms = squares * np.exp(2 * (x[:, None, None] - x[None, :, None] - x[None, None, :]))
        rows = sizes * np.exp(2 * x)
        total, sum_rows = float(terms.sum()), float(rows.sum())
        slope = (terms.sum(axis=(1, 2)) - terms.sum(axis=(0, 2)) - terms.sum(axis=(0, 1))) / total
        slope = slope + rows / sum_rows
        gathered = np.zeros(count)
        np.add.at(gathered, owners, slope)
        return 0.5 * (math.log(total) + math.log(sum_rows)), gathered

    box = [(-FARTHEST, FARTHEST)] * count
    found = minimize(cost, np.zeros(count), jac=True, method="L-BFGS-B", bounds=box)
    return np.exp(np.asarray(found.x)[owners])


def _modes(J: Array) -> tuple[Array, NDArray[np.intp]]:
    """Real and imaginary parts of eigenvectors as columns, and which mode each belongs to."""
    values, vectors = np.linalg.eig(J)
    columns: list[Array] = []
    owners: list[int] = []
    for i in np.flatnonzero(values.imag >= 0):
        parts = [vectors[:, i].real] if values[i].imag == 0 else []
        parts = parts or [vectors[:, i].real, vectors[:, i].imag]
        columns += parts
        owners += [len(set(owners))] * len(parts)
    return np.column_stack(columns), np.array(owners)

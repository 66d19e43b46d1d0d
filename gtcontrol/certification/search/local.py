"""Claims about equilibria: what attracts near it, with the mean, and what repels."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from ..._check import Array
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...results.equilibria import Equilibrium
from ..equilibria.classification import frame
from ..equilibria.quadratic import Quadratic, coordinates
from ..equilibria.run import equilibria
from ..rules.neighbourhood import MOST_DIMENSIONS

__all__ = ["find", "stability_claim"]

#: Parts of the decay rate that the metrics are made for, from fast and narrow to slow and wide.
SHARES = (0.95, 0.8, 0.6, 0.4, 0.2)

#: What is claimed of a computed bound, so that its proof has room.
ROOM = 1e-6


def find(problem: CertificationProblem) -> Iterator[Claim]:
    """Claims about the equilibria of constant parameters of dimension at most 10."""
    if len(problem.vertices) != 1 or problem.dim > MOST_DIMENSIONS:
        return
    for e in equilibria(problem.parameters):
        if e.stable:
            claim = stability_claim(problem, e)
            if claim is not None:
                yield claim


def stability_claim(problem: CertificationProblem, e: Equilibrium) -> Claim | None:
    """Claim of local stability with the widest region among some metrics.

    Parameters
    ----------
    problem : CertificationProblem
    e : Equilibrium
        One that attracts all covariances near it.

    Returns
    -------
    Claim or None
        None if no metric is found in which the linearisation contracts.
    """
    R, field = _frame(e), Quadratic.of(problem.parameters)
    there = field.changed(R)
    base = np.diag(np.where(np.arange(e.dim) < e.rank, 1.0, 0.0))
    J, T = there.linearisation(base), there.tensor
    value = coordinates(there.rate(base))
    best: dict[str, float] | None = None
    chosen = np.eye(len(J))
    for G in _metrics(J, -e.abscissa):
        numbers = _numbers(G, J, T, value, np.linalg.norm(np.linalg.inv(R), 2))
        if numbers is not None and (best is None or numbers["reach"] > best["reach"]):
            best, chosen = numbers, G
    if best is None:
        return None
    best["rank"] = float(e.rank)
    if problem.start is not None:
        inverse = np.linalg.inv(R)
        L = inverse @ problem.start.factor
        distance = float(np.linalg.norm(chosen @ coordinates(L @ L.T - base)))
        distance = (1 + ROOM) * distance + 2 * best["error"]
        if distance < best["radius"]:
            best["distance"] = distance
    return Claim("local stability", numbers=best, arrays={"frame": R, "metric": chosen})


def _frame(e: Equilibrium) -> Array:
    """R of the equilibrium, from its covariance: triangular for full rank."""
    values, vectors = np.linalg.eigh(e.covariance)
    order = np.argsort(-values)[: e.rank]
    return frame(vectors[:, order] * np.sqrt(values[order]))


def _metrics(J: Array, rate: float) -> Iterator[Array]:
    """G = I if it contracts, and square roots of Lyapunov matrices for slower and slower rates."""
    eye = np.eye(len(J))
    if np.linalg.eigvalsh(J + J.T)[-1] < 0:
        yield eye
    for share in SHARES:
        P = solve_continuous_lyapunov((J + share * rate * eye).T, -eye)
        values, vectors = np.linalg.eigh((P + P.T) / 2)
        if values[0] > 0 and np.isfinite(values[-1]):
            root = (vectors * np.sqrt(values / values[-1])) @ vectors.T
            yield root


def _numbers(
    G: Array, J: Array, T: Array, value: Array, inverse_norm: float
) -> dict[str, float] | None:
    """Scalars of a claim with the metric G, in floating point."""
    inverse = np.linalg.inv(G)
    turned = G @ J @ inverse
    a = -float(np.linalg.eigvalsh((turned + turned.T) / 2)[-1])
    if not a > 0:
        return None
    moved = np.einsum("ki,iab,ac,bd->kcd", G, T, inverse, inverse, optimize=True)
    m = len(J)
    even = (moved + np.moveaxis(moved, 1, 0) + np.moveaxis(moved, 2, 0)) / 3
    bilinear = min(
        np.linalg.norm(moved.reshape(m, -1), 2),
        np.linalg.norm(np.moveaxis(moved, 1, 0).reshape(m, -1), 2),
    )
    cubic = min(float(np.linalg.norm(even.reshape(m, -1), 2)), float(bilinear)) * (1 + ROOM)
    # The residual is computed with rounding of the size of the terms of the field.
    rounding = 1e-14 * (1 + float(np.linalg.norm(G, 2) * np.linalg.norm(J)))
    error = 4 * (float(np.linalg.norm(G @ value)) + rounding) / a
    rate = (1 - ROOM) * (a - 2 * float(bilinear) * error)
    if not rate > 0:
        return None
    if cubic == 0:
        return dict(error=error, rate=rate, cubic=0.0, radius=math.inf, reach=math.inf)
    radius = (1 - ROOM) * rate / cubic
    reach = (1 - ROOM) * radius / (float(np.linalg.norm(G, 2)) * inverse_norm**2)
    return dict(error=error, rate=rate, cubic=cubic, radius=radius, reach=reach)

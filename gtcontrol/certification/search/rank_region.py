"""Regions in which an equilibrium attracts covariances of its own rank."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from ..._check import Array
from ...parameters import Parameters
from ...results.claims import Claim
from ...results.equilibria import Equilibrium
from ..equilibria.classification import frame
from ..equilibria.quadratic import Quadratic, coordinates
from ..rules.captured_rank import CapturedRank, tangent

__all__ = ["rank_region"]

#: Parts of the decay rate that the metrics are made for.
SHARES = (0.95, 0.8, 0.6, 0.4, 0.2)

#: Part of the decay at the equilibrium that is left in all of the region.
KEPT = 0.4

#: What is claimed of a computed bound, so that its proof has room.
ROOM = 1e-6


def rank_region(p: Parameters, e: Equilibrium) -> Claim | None:
    """Data of a region that attracts covariances of the rank of an equilibrium, not settled.

    Parameters
    ----------
    p : Parameters
        Of dimension d, without noise.
    e : Equilibrium
        Of rank between 0 and d.

    Returns
    -------
    Claim or None
        None if the linearisation along the covariances of this rank does not contract.
    """
    rate = -float(np.max(e.tangent.real, initial=-math.inf))
    if not 0 < rate < math.inf:
        return None
    values, vectors = np.linalg.eigh(e.covariance)
    order = np.argsort(-values)[: e.rank]
    R = frame(vectors[:, order] * np.sqrt(values[order]))
    there = Quadratic.of(p).changed(R)
    base = np.diag(np.where(np.arange(e.dim) < e.rank, 1.0, 0.0))
    J = there.linearisation(base)
    picked = np.array(tangent(e.dim, e.rank), dtype=np.intp)
    others = np.setdiff1d(np.arange(len(J)), picked)
    inside, across = J[np.ix_(picked, picked)], J[np.ix_(picked, others)]
    gain = sum(
        float(np.linalg.norm(V, 2) * np.linalg.norm(B, 2))
        for V, B in zip(there.V, there.B, strict=True)
    )
    rest = coordinates(there.rate(base))[picked]
    best: Claim | None = None
    for share in SHARES:
        eye = np.eye(len(inside))
        P = solve_continuous_lyapunov((inside + share * rate * eye).T, -eye)
        weights, axes = np.linalg.eigh((P + P.T) / 2)
        if not (weights[0] > 0 and np.isfinite(weights[-1])):
            continue
        # The smallest singular value is 1, so that the radius is that of z.
        G = np.asarray((axes * np.sqrt(weights / weights[0])) @ axes.T)
        numbers = _numbers(G, inside, across, gain, rest)
        if numbers is None or (best is not None and numbers["radius"] <= best.numbers["radius"]):
            continue
        numbers["rank"] = float(e.rank)
        best = Claim(CapturedRank.name, numbers=numbers, arrays={"frame": R, "metric": G})
    return best


def _numbers(
    G: Array, inside: Array, across: Array, gain: float, rest: Array
) -> dict[str, float] | None:
    """Scalars of the claim in a metric, with the largest radius that keeps enough of the decay."""
    inverse = np.linalg.inv(G)
    turned = G @ inside @ inverse
    decay = -float(np.linalg.eigvalsh((turned + turned.T) / 2)[-1])
    if not decay > 0:
        return None
    shrink, stretch = float(np.linalg.norm(inverse, 2)), float(np.linalg.norm(G, 2))
    leak = float(np.linalg.norm(G @ across, 2))

    def loss(zeta: float) -> float:
        normal = zeta * zeta / (2 * (1 - zeta))
        change = zeta / (1 - zeta) + normal / (1 - zeta)
        return shrink * (leak * change + 4 * stretch * gain * (zeta + normal) * (1 + change))

    low, high = 0.0, 1.0 - 1e-3
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if loss(middle) <= (1 - KEPT) * decay else (low, middle)
    radius, rate = low / shrink, (1 - ROOM) * KEPT * decay
    rounding = 1e-14 * (1 + stretch * float(np.linalg.norm(inside)))
    error = 2 * (float(np.linalg.norm(G @ rest)) + rounding) / rate
    if not 0 < error < radius:
        return None
    return {"radius": (1 - ROOM) * radius, "rate": (1 - ROOM) * rate, "error": error}

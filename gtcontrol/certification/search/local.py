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
from .local_metrics import metrics

__all__ = ["find", "instability_claim", "mean_claim", "stability_claim"]

#: What is claimed of a computed bound, so that its proof has room.
ROOM = 1e-6


def find(problem: CertificationProblem) -> Iterator[Claim]:
    """Claims about the equilibria of constant parameters of dimension at most 10."""
    if len(problem.vertices) != 1 or problem.dim > MOST_DIMENSIONS:
        return
    p = problem.parameters
    full = problem.dim
    for e in equilibria(p):
        claim = None
        if e.stable:
            claim = stability_claim(problem, e)
            # With the mean first: it says all that the other one says.
            if claim is not None and e.mean_stable and e.gaussian is not None:
                joint = mean_claim(problem, e, claim)
                if joint is not None:
                    yield joint
        elif e.rank == full and e.attracts == "nothing":
            claim = instability_claim(problem, e)
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
    inverse_norm = float(np.linalg.norm(np.linalg.inv(R), 2))
    gain = 2.0 * sum(
        float(np.linalg.norm(V, 2) * np.linalg.norm(B, 2))
        for V, B in zip(there.V, there.B, strict=True)
    )

    def reach_of(G: Array) -> float:
        numbers = _numbers(G, J, T, value, (gain, inverse_norm))
        return 0.0 if numbers is None else numbers["reach"]

    best: dict[str, float] | None = None
    chosen = np.eye(len(J))
    for G in metrics(J, T, -e.abscissa, reach_of):
        numbers = _numbers(G, J, T, value, (gain, inverse_norm))
        if numbers is not None and (best is None or numbers["reach"] > best["reach"]):
            best, chosen = numbers, G
            if math.isinf(best["reach"]):  # a linear field: no metric reaches farther
                break
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
    return Claim("local-stability", numbers=best, arrays={"frame": R, "metric": chosen})


def mean_claim(problem: CertificationProblem, e: Equilibrium, covariance: Claim) -> Claim | None:
    """Claim of joint stability of the mean and the covariance, built on that of the covariance.

    Returns
    -------
    Claim or None
        None if no metric is found in which the linearisation of the mean contracts.
    """
    p, R = problem.parameters, covariance.arrays["frame"]
    field = Quadratic.of(p).changed(R)
    base = np.diag(np.where(np.arange(e.dim) < e.rank, 1.0, 0.0))
    J = field.generator(base) + field.V.sum(axis=0)
    P = solve_continuous_lyapunov(
        (J - 0.9 * e.mean_spectrum[0].real * np.eye(e.dim)).T, -np.eye(e.dim)
    )
    values, vectors = np.linalg.eigh((P + P.T) / 2)
    if not values[0] > 0:
        return None
    H = (vectors * np.sqrt(values / values[-1])) @ vectors.T
    inverse = np.linalg.inv(H)
    betas = np.zeros((len(field.V), e.dim))
    if p.beta is not None:
        betas = p.beta.reshape(-1, e.dim) @ R
    drive = np.linalg.solve(R, p.b) + sum(
        V @ base @ beta for V, beta in zip(field.V, betas, strict=True)
    )
    mean = -np.linalg.solve(J, drive)
    shrink = 1.0 / float(np.linalg.svd(covariance.arrays["metric"], compute_uv=False)[-1])
    gain = force = 0.0
    for V, B, beta in zip(field.V, field.B, betas, strict=True):
        left = shrink * float(np.linalg.norm(H @ V, 2))
        gain += left * float(np.linalg.norm(B @ inverse, 2))
        force += left * float(np.linalg.norm(B @ mean + beta))
    turned = H @ J @ inverse
    rate = -float(np.linalg.eigvalsh((turned + turned.T) / 2)[-1])
    error = covariance.numbers["error"]
    rate -= 2 * error * gain
    rate = (1 - ROOM) * rate
    if not rate > 0:
        return None
    # What the error of the covariance and rounding leave of the equation of the mean.
    rounding = 1e-14 * float(
        np.linalg.norm(H @ J) * np.linalg.norm(mean) + np.linalg.norm(H @ drive)
    )
    missing = 2 * (force * error + rounding) / rate
    place = R @ mean
    numbers = {
        "mean rate": rate,
        "gain": (1 + ROOM) * gain,
        "drive": (1 + ROOM) * (force + gain * missing),
        "mean error": (1 + ROOM) * missing * float(np.linalg.norm(R @ inverse, 2)),
    }
    return Claim(
        "mean-stability",
        numbers={**covariance.numbers, **numbers},
        arrays={**covariance.arrays, "mean metric": H, "mean": place},
    )


def instability_claim(problem: CertificationProblem, e: Equilibrium) -> Claim | None:
    """Claim that a positive definite equilibrium repels.

    Returns
    -------
    Claim or None
        None if the Lyapunov equation for the form is singular.
    """
    R = _frame(e)
    there = Quadratic.of(problem.parameters).changed(R)
    J = there.linearisation(np.eye(e.dim))
    sums = e.spectrum[:, None] + e.spectrum[None, :]
    if float(np.min(np.abs(sums))) <= 1e-12 * float(np.max(np.abs(sums))):
        return None
    P = solve_continuous_lyapunov(J.T, np.eye(len(J)))
    values, vectors = np.linalg.eigh((P + P.T) / 2)
    P = (vectors * (values / np.max(np.abs(values)))) @ vectors.T
    up = values > 1e-12 * np.max(np.abs(values))
    if not up.any():
        return None
    residual = float(np.linalg.norm(there.rate(np.eye(e.dim))))
    inverse = float(np.linalg.norm(np.linalg.inv(J), 2))
    error = 4 * inverse * (residual + 1e-14 * (1 + float(np.linalg.norm(J))))
    return Claim(
        "unstable-equilibrium",
        numbers={"rank": float(e.rank), "error": error, "count": float(np.count_nonzero(up))},
        arrays={"frame": R, "form": (P + P.T) / 2, "directions": vectors[:, up].copy()},
    )


def _frame(e: Equilibrium) -> Array:
    """R of the equilibrium, from its covariance: triangular for full rank."""
    values, vectors = np.linalg.eigh(e.covariance)
    order = np.argsort(-values)[: e.rank]
    return frame(vectors[:, order] * np.sqrt(values[order]))


def _numbers(
    G: Array, J: Array, T: Array, value: Array, norms: tuple[float, float]
) -> dict[str, float] | None:
    """Scalars of a claim with the metric G, in floating point; norms of V and B, and of R⁻¹."""
    gain, inverse_norm = norms
    inverse = np.linalg.inv(G)
    turned = G @ J @ inverse
    a = -float(np.linalg.eigvalsh((turned + turned.T) / 2)[-1])
    if not a > 0:
        return None
    moved = np.einsum("ki,iab,ac,bd->kcd", G, T, inverse, inverse, optimize=True)
    m = len(J)
    bilinear = min(_spread(moved), _spread(np.moveaxis(moved, 1, 0)))
    # The residual is computed with rounding of the size of the terms of the field.
    rounding = 1e-14 * (1 + float(np.linalg.norm(G, 2) * np.linalg.norm(J)))
    error = 4 * (float(np.linalg.norm(G @ value)) + rounding) / a
    damping = -(turned + turned.T) / 2 - 2 * bilinear * error * np.eye(m)
    slow = float(np.linalg.eigvalsh(damping)[0])
    if not slow > 0:
        return None
    even = (moved + np.moveaxis(moved, 1, 0) + np.moveaxis(moved, 2, 0)) / 3
    K = np.linalg.inv(np.linalg.cholesky(damping).T)
    weighted = np.einsum("akb,kc,bd->acd", even, K, K, optimize=True)
    inner = float(np.linalg.norm(inverse @ K, 2))
    plain = gain * float(np.linalg.norm(G, 2)) * inner**2
    cubic = min(_spread(weighted), _spread(np.moveaxis(weighted, 1, 0)), plain) * (1 + ROOM)
    numbers = {"error": error, "rate": (1 - ROOM) * slow, "cubic": cubic}
    if cubic == 0:
        return numbers | {"radius": math.inf, "reach": math.inf}
    radius = (1 - ROOM) / cubic
    reach = (1 - ROOM) * radius / (float(np.linalg.norm(G, 2)) * inverse_norm**2)
    return numbers | {"radius": radius, "reach": reach}


def _spread(tensor: Array) -> float:
    """Spectral norm of a tensor (m, m, m) as a matrix with its first index for the rows."""
    return float(np.linalg.norm(tensor.reshape(len(tensor), -1), 2))

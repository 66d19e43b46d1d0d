"""Claims about equilibria: what attracts near it, with the mean, and what repels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_continuous_lyapunov
from scipy.optimize import minimize

from ..._check import Array
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...results.equilibria import Equilibrium
from ..equilibria.classification import frame
from ..equilibria.quadratic import Quadratic, coordinates
from ..equilibria.run import equilibria
from ..rules.neighbourhood import MOST_DIMENSIONS

__all__ = ["find", "instability_claim", "mean_claim", "stability_claim"]

#: Parts of the decay rate that the metrics are made for, from fast and narrow to slow and wide.
SHARES = (0.95, 0.8, 0.6, 0.4, 0.2)

#: Condition of the matrix of normal modes up to which they serve as a metric.
WORST_MODES = 1e7

#: Units of the modes are optimised up to this many of them.
MOST_SCALED = 6

#: Logarithms of these units stay between minus and plus this.
FARTHEST = 12.0

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
        elif e.rank == full and e.abscissa > 0:
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

    def reach_of(G: Array) -> float:
        numbers = _numbers(G, J, T, value, inverse_norm)
        return 0.0 if numbers is None else numbers["reach"]

    best: dict[str, float] | None = None
    chosen = np.eye(len(J))
    for G in _metrics(J, T, -e.abscissa, reach_of):
        numbers = _numbers(G, J, T, value, inverse_norm)
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
    return Claim("local stability", numbers=best, arrays={"frame": R, "metric": chosen})


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
    P = solve_continuous_lyapunov((J - 0.9 * e.mean_spectrum[0].real * np.eye(e.dim)).T, -np.eye(e.dim))
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
    rounding = 1e-14 * float(np.linalg.norm(H @ J) * np.linalg.norm(mean) + np.linalg.norm(H @ drive))
    missing = 2 * (force * error + rounding) / rate
    place = R @ mean
    numbers = {
        "mean rate": rate,
        "gain": (1 + ROOM) * gain,
        "drive": (1 + ROOM) * (force + gain * missing),
        "mean error": (1 + ROOM) * missing * float(np.linalg.norm(R @ inverse, 2)),
    }
    return Claim(
        "mean stability",
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
        "unstable equilibrium",
        numbers={"rank": float(e.rank), "error": error, "count": float(np.count_nonzero(up))},
        arrays={"frame": R, "form": (P + P.T) / 2, "directions": vectors[:, up].copy()},
    )


def _frame(e: Equilibrium) -> Array:
    """R of the equilibrium, from its covariance: triangular for full rank."""
    values, vectors = np.linalg.eigh(e.covariance)
    order = np.argsort(-values)[: e.rank]
    return frame(vectors[:, order] * np.sqrt(values[order]))


def _metrics(
    J: Array, T: Array, rate: float, reach_of: Callable[[Array], float]
) -> Iterator[Array]:
    """G = I if it contracts, square roots of Lyapunov matrices, and scaled normal modes."""
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
    G = np.linalg.inv(modes)
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
        return 0.5 * (math.log(total) + math.log(sum_rows)), np.bincount(owners, slope, count)

    box = [(-FARTHEST, FARTHEST)] * count
    found = minimize(cost, np.zeros(count), jac=True, method="L-BFGS-B", bounds=box)
    return np.exp(np.asarray(found.x)[owners])


def _modes(J: Array) -> tuple[Array, NDArray[np.intp]]:
    """Real and imaginary parts of eigenvectors as columns, and which mode each belongs to."""
    values, vectors = np.linalg.eig(J)
    columns, owners = [], []
    for i in np.flatnonzero(values.imag >= 0):
        parts = [vectors[:, i].real] if values[i].imag == 0 else []
        parts = parts or [vectors[:, i].real, vectors[:, i].imag]
        columns += parts
        owners += [len(set(owners))] * len(parts)
    return np.column_stack(columns), np.array(owners)


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
    cubic = min(_spread(weighted), _spread(np.moveaxis(weighted, 1, 0))) * (1 + ROOM)
    numbers = {"error": error, "rate": (1 - ROOM) * slow, "cubic": cubic}
    if cubic == 0:
        return numbers | {"radius": math.inf, "reach": math.inf}
    radius = (1 - ROOM) / cubic
    reach = (1 - ROOM) * radius / (float(np.linalg.norm(G, 2)) * inverse_norm**2)
    return numbers | {"radius": radius, "reach": reach}


def _spread(tensor: Array) -> float:
    """Spectral norm of a tensor (m, m, m) as a matrix with its first index for the rows."""
    return float(np.linalg.norm(tensor.reshape(len(tensor), -1), 2))

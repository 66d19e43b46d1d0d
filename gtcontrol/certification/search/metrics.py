"""Metrics W in which attention is dissipative, by Lyapunov equations and eigenvectors alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, schur, solve_triangular
from scipy.optimize import minimize

from ..._check import Array
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..theory.heads import Head
from .lyapunov import lyapunov_metric, sector_metrics

__all__ = ["MARGIN", "bounds", "find"]

#: Relative margin by which proved constants exceed their estimates.
MARGIN = 1e-8

#: Largest dimension in which the metric is improved by optimisation.
LARGEST_REFINED = 3

#: Steps of the power method for norms in large dimension, and the factor on what it finds.
POWER_STEPS, POWER_MARGIN = 40, 1.1

#: Largest dimension in which all metrics are tried, for the best bound; above, the first will do.
LARGEST_COMPARED = 64


@dataclass(frozen=True, eq=False)
class _Nominal:
    """Nominal head ``N = W Σ s_h V_h``, ``B = Σ c_h B_h``, its sign chosen so that B_s < 0."""

    shares: Array
    weights: Array


def find(problem: CertificationProblem, families: Sequence[Sequence[Head]]) -> Claim | None:
    """Propose the dissipative inequality with the smallest bound that was found, or None.

    Parameters
    ----------
    problem : CertificationProblem
    families : sequence of sequences of Head
        Merged heads of each vertex, equally many.
    """
    best: Claim | None = None
    for nominal in _nominals(families):
        for W in _metrics(families, nominal):
            claim = _claim(problem, families, nominal, W)
            if claim is not None and (
                best is None or claim.numbers["bound"] < best.numbers["bound"]
            ):
                best = claim
            if best is not None and problem.dim > LARGEST_COMPARED:
                break
        if best is None and 1 < problem.dim <= LARGEST_REFINED:
            best = _claim(problem, families, nominal, _refined(*_nominal_pair(families, nominal)))
        if best is not None:
            return best
    return None


def _nominals(families: Sequence[Sequence[Head]]) -> Iterator[_Nominal]:
    """Nominal heads with a definite score: the mean, and in small dimension each head by itself."""
    count = len(families[0])
    choices = (
        [np.eye(count)[h] for h in range(count)]
        if len(families[0][0].V) <= LARGEST_COMPARED
        else []
    )
    if count > 1 or not choices:
        choices.insert(0, np.full(count, 1.0 / count))
    for weights in choices:
        ends = [
            np.linalg.eigvalsh(_sum(weights, [h.B for h in heads], even=True)) for heads in families
        ]
        if all(e[-1] < 0 for e in ends):
            sign = 1.0
        elif all(e[0] > 0 for e in ends):
            sign = -1.0
        else:
            continue
        shares = np.ones(count) if np.count_nonzero(weights) > 1 else weights.copy()
        # (V, B) and (-V, -B) are the same head.
        yield _Nominal(sign * shares, sign * weights)


def _sum(weights: Array, matrices: Sequence[Array], *, even: bool = False) -> Array:
    made = np.asarray(sum(w * m for w, m in zip(weights, matrices, strict=True)))
    return 0.5 * (made + made.T) if even else made


def _metrics(families: Sequence[Sequence[Head]], nominal: _Nominal) -> Iterator[Array | None]:
    """Candidates for W, scaled so that the smallest eigenvalue is about one."""
    V, B = _nominal_pair(families, nominal)
    if not (np.all(np.isfinite(V)) and np.all(np.isfinite(B))):
        return
    d = len(V)
    if np.linalg.eigvalsh(0.5 * (V + V.T))[0] > 0:
        yield np.eye(d)
        # A symmetric V is normal in this metric already; others serve to sharpen the bound.
        if d > LARGEST_COMPARED and np.array_equal(V, V.T):
            return
    if not np.trace(V) > 0:
        return
    upper, basis = schur(V, output="real")
    # The diagonal of a real Schur form holds the real parts of the eigenvalues.
    if not np.min(np.diag(upper)) > 0:
        return
    yield lyapunov_metric(upper, basis, np.eye(d))
    yield from sector_metrics(V, upper, basis)


def _nominal_pair(families: Sequence[Sequence[Head]], nominal: _Nominal) -> tuple[Array, Array]:
    """Nominal V and B in the middle of the family."""
    V = _mean([_sum(nominal.shares, [h.V for h in heads]) for heads in families])
    return V, _mean([_sum(nominal.weights, [h.B for h in heads]) for heads in families])


def _mean(matrices: Sequence[Array]) -> Array:
    return np.asarray(sum(matrices) / len(matrices))


def _refined(V: Array, B: Array) -> Array | None:
    """Minimise ν(W)β over metrics whose N_s is any positive definite matrix (Nelder-Mead)."""
    d = len(V)
    upper, basis = schur(V, output="real")
    if not np.min(np.diag(upper)) > 0:
        return None
    index = np.tril_indices(d)

    def metric(x: Array) -> Array | None:
        lower = np.zeros((d, d))
        lower[index] = x
        return lyapunov_metric(upper, basis, lower @ lower.T + 1e-12 * np.eye(d))

    def objective(x: Array) -> float:
        W = metric(x)
        constants = None if W is None else _skewness(W @ V, B, align=True)
        return 1e6 if constants is None else constants[0] * constants[1]

    found = minimize(
        objective, np.eye(d)[index], method="Nelder-Mead", options={"maxiter": 150 * d}
    )
    return metric(found.x)


def _skewness(N: Array, B: Array, *, align: bool) -> tuple[float, float, float] | None:
    """Return ν, β and the alignment c that makes ν small, or None if a form is not definite."""
    even, good = 0.5 * (N + N.T), -0.5 * (B + B.T)
    odd, skew = 0.5 * (N - N.T), 0.5 * (B - B.T)
    roots: list[Array] = []
    for form in (even, good):
        try:
            roots.append(np.asarray(np.linalg.cholesky(form)))
        except np.linalg.LinAlgError:
            return None
    beta = _size(roots[1], skew) if np.any(skew) else 0.0
    if beta == 0.0 or not align:
        return _size(roots[0], odd), beta, 0.0
    # Of several alignments the best: none, and the one nearest to N_a in the metric of N_s.
    first, second = _relative(roots[0], odd), _relative(roots[0], skew)
    square = float(np.sum(second * second))
    nearest = max(float(np.sum(first * second)) / square, 0.0) if square > 0 else 0.0
    sizes = [(_norm(first - c * second), c) for c in {0.0, nearest}]
    nu, alignment = min(sizes)
    return nu, beta, alignment


def _relative(root: Array, other: Array) -> Array:
    half = solve_triangular(root, other, lower=True)
    return np.asarray(solve_triangular(root, half.T, lower=True)).T


def _size(root: Array, other: Array) -> float:
    """Spectral norm of a matrix in the metric of a form."""
    return _norm(_relative(root, other))


def _norm(made: Array) -> float:
    """Spectral norm, in large dimension an estimate with a margin."""
    if len(made) <= LARGEST_COMPARED or not np.any(made):
        return float(np.linalg.norm(made, 2))
    x = np.random.default_rng(0).standard_normal(len(made))
    for _ in range(POWER_STEPS):
        x = made.T @ (made @ (x / np.linalg.norm(x)))
    return POWER_MARGIN * math.sqrt(float(np.linalg.norm(x)))


def _claim(
    problem: CertificationProblem,
    families: Sequence[Sequence[Head]],
    nominal: _Nominal,
    W: Array | None,
) -> Claim | None:
    """Fill in the constants for a metric, with margins; None if attention is not dissipative."""
    if W is None:
        return None
    count = len(families[0])
    nu, beta, alignment = 0.0, 0.0, 0.0
    values, scores = np.zeros(count), np.zeros(count)
    forms = []
    for heads in families:
        N = W @ _sum(nominal.shares, [h.V for h in heads])
        B = _sum(nominal.weights, [h.B for h in heads])
        # One alignment serves a family only if it is none.
        constants = _skewness(N, B, align=len(families) == 1)
        if constants is None:
            return None
        nu, beta = max(nu, constants[0]), max(beta, constants[1])
        alignment = constants[2]
        forms.append((0.5 * (N + N.T), -0.5 * (B + B.T)))
        roots: list[Array] = [np.asarray(np.linalg.cholesky(form)) for form in forms[-1]]
        for h, head in enumerate(heads if count > 1 else ()):
            values[h] = max(values[h], _size(roots[0], W @ head.V))
            scores[h] = max(scores[h], _size(roots[1], head.B - nominal.shares[h] * B))
            if values @ scores >= 1.0:
                return None
    nu = nu * (1 + MARGIN) + MARGIN
    beta = beta * (1 + MARGIN) + MARGIN / (1.0 + nu) if beta > 0 else 1e-12 / (1.0 + nu)
    values, scores = values * (1 + MARGIN) + MARGIN, scores * (1 + MARGIN) + MARGIN
    kappa = 1.0 - nu * beta - (float(values @ scores) if count > 1 else 0.0)
    if not kappa > MARGIN:
        return None
    numbers = {"sector": nu, "skewness": beta, "alignment": alignment}
    inverses = [(np.linalg.solve(even, W), np.linalg.solve(good, W)) for even, good in forms]
    theta = max(float(np.sum(x * y.T)) for x, _ in inverses for _, y in inverses)
    found = bounds(problem, W, theta * (1 + MARGIN) / (2.0 * kappa))
    if found is None:
        return None
    arrays = {
        "metric": W,
        "shares": nominal.shares,
        "weights": nominal.weights,
        "value_sizes": values if count > 1 else np.zeros(1),
        "score_sizes": scores if count > 1 else np.zeros(1),
    }
    return Claim("dissipative", numbers={**numbers, **found}, arrays=arrays)


def bounds(problem: CertificationProblem, W: Array, theta: float) -> dict[str, float] | None:
    """Growth a, λ_min(W) and the bound on lim sup tr S, each on the safe side.

    Parameters
    ----------
    problem : CertificationProblem
    W : (d, d) array
    theta : float
        The quadratic part of y' is at most -y²/theta.

    Returns
    -------
    dict or None
        Numbers of a claim; None if one of them is not finite.
    """
    products = [W @ p.A + (W @ p.A).T for p in problem.vertices]
    if not np.any(products):
        growth = 0.0
    else:
        growth = max(float(eigh(x, W, eigvals_only=True)[-1]) for x in products)
        growth += MARGIN * max(float(np.max(np.abs(p.A))) for p in problem.vertices)
        # The relative error of these eigenvalues grows with the condition of W.
        growth += 1e-13 * float(np.linalg.cond(W)) * abs(growth)
    floor = float(np.linalg.eigvalsh(W)[0]) * (1 - MARGIN)
    force = max(
        (float(np.sum(W * p.noise)) for p in problem.vertices if p.noise is not None), default=0.0
    )
    root = max(growth, 0.0) * theta
    if force > 0:
        root = theta * (growth + math.sqrt(growth**2 + 4.0 * force / theta)) / 2.0
    made = {"theta": theta, "growth": growth, "floor": floor, "bound": root / floor * (1 + MARGIN)}
    return made if all(math.isfinite(x) for x in made.values()) and floor > 0 else None

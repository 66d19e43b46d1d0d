"""Claims for value matrices V_h = v_h I, from the closed form and the Bernoulli equilibria."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from ..._check import Array
from ...arithmetic import balls
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...riccati_flow.bernoulli import undetected
from ...riccati_flow.crossing import locate
from ...riccati_flow.evidence import Reason
from ...riccati_flow.lyapunov import lasting_bound
from ...riccati_flow.noise import locate_with_noise
from ...riccati_flow.spectrum import GAP, Spectrum, spectrum_of, split, spread
from ...riccati_flow.status import Crossing, CrossingStatus
from ...riccati_flow.system import LARGEST_BALLS, System
from ...riccati_flow.terms import scalar_values
from ..rules.base import Refuted
from ..rules.riccati_limit import proved_error
from ..rules.riccati_time import REASONS

__all__ = ["find"]

#: Excess of a start over a tangential one, for which blow-up is shown.
EXCESS = 1e-9


def find(problem: CertificationProblem) -> Iterator[Claim]:
    """Claim what the closed form says, if every V_h is a multiple of the identity."""
    parameters = problem.parameters
    if len(problem.vertices) != 1 or scalar_values(parameters.heads) is None:
        return
    system = System(parameters.A, parameters.heads)
    noise = parameters.noise
    if noise is not None and not np.any(noise):
        noise = None
    K = system.K
    size = max(float(np.max(np.abs(K))), 1e-300)
    values = np.linalg.eigvalsh(K / size)
    falls, rises = values[-1] <= 1e-12 * len(K), values[0] >= -1e-12 * len(K)
    if falls:
        yield Claim("riccati-no-start-blows-up")
    if len(K) > LARGEST_BALLS:  # what follows is proved in balls
        return
    if noise is None:
        yield from _signs(system, falls=bool(falls), rises=bool(rises), definite=values[0] > 0)
    if problem.start is not None:
        factor = problem.start.factor
        crossing = (
            locate(system, factor) if noise is None else locate_with_noise(system, factor, noise)
        )
        yield from _timed(system, crossing)
    if falls and noise is None:
        yield from _limits(problem, system)


def _signs(system: System, *, falls: bool, rises: bool, definite: bool) -> Iterator[Claim]:
    """Claims about all starts from the signs of K and of the real parts of A."""
    spectrum = spectrum_of(system.A)
    d = len(system.A)
    if rises and not spectrum.stable and not falls:
        yield Claim("riccati-every-start-blows-up", arrays=_side(system.A, 1))
    if falls and not spectrum.unstable and not rises:
        yield Claim("riccati-fades", arrays=_side(system.A, -1))
    if rises and definite and spectrum.stable == d:
        X = _symmetric(solve_continuous_lyapunov(system.A.T, -system.K))
        left = system.A.T @ X
        rest = np.linalg.norm(left + left.T + system.K, 2)
        lowest = float(np.linalg.eigvalsh(system.K)[0])
        error = 1e-14 * d + 4 * float(rest) / lowest
        if error < 1:
            yield Claim("riccati-threshold", numbers={"error": error}, arrays={"gramian": X})


def _side(A: Array, sign: int) -> dict[str, Array]:
    """P with sign · (Aᵀ P + P A) > 0, for matrices too large for exact eigenvalues."""
    if len(A) <= 40:
        return {}
    try:
        P = solve_continuous_lyapunov(A.T, sign * np.eye(len(A)))
    except np.linalg.LinAlgError:  # eigenvalues on the axis: there is no such P
        return {}
    return {"bound": _symmetric(P)}


def _timed(system: System, crossing: Crossing) -> Iterator[Claim]:
    """Claims about the blow-up time from the start."""
    evidence = crossing.evidence
    if evidence is None:
        return
    arrays = {"steps": evidence.steps, "exponents": evidence.exponents}
    if evidence.direction is not None:
        arrays["direction"] = evidence.direction
    ends = {"lower": crossing.lower, "upper": crossing.upper}
    if crossing.status is CrossingStatus.BLOWS_UP and "direction" in arrays:
        yield Claim("riccati-blow-up", numbers=ends, arrays=arrays)
    elif crossing.status is CrossingStatus.TANGENT and "direction" in arrays:
        upper = max(crossing.estimate, float(np.nextafter(crossing.lower, np.inf)))
        numbers = {"lower": crossing.lower, "upper": upper, "excess": EXCESS}
        yield Claim("riccati-tangency", numbers=numbers, arrays=arrays)
    elif crossing.status is CrossingStatus.NEVER and evidence.reason is not None:
        reason = REASONS.index(evidence.reason)
        if evidence.bound is not None:
            arrays["bound"] = evidence.bound
        hurwitz = spectrum_of(system.A).stable == len(system.A)
        for fades in (1.0, 0.0) if evidence.reason is Reason.BOUNDED and hurwitz else (0.0,):
            numbers = {"reason": float(reason), "fades": fades}
            yield Claim("riccati-no-blow-up", numbers=numbers, arrays=arrays)


def _limits(problem: CertificationProblem, system: System) -> Iterator[Claim]:
    """Claims about what the covariance converges to, and about how large it remains."""
    spectrum, d = spectrum_of(system.A), problem.dim
    p = spectrum.unstable
    if undetected(system.A, system.K, spectrum, 0, p):
        return
    bound = _absorbing(system, spectrum)
    if bound is not None:
        with balls.precision(160):
            trace = balls.above(balls.balls(bound).inv().trace()) * (1 + 1e-12)
        yield Claim("riccati-bounded", numbers={"trace": trace}, arrays={"bound": bound})
    if undetected(system.A, system.K, spectrum, p, p + spectrum.axis):
        return
    ranks = [(d, 0.0)] if problem.start is None else [(problem.start.rank, 1.0), (d, 0.0)]
    for r, flag in ranks:
        claim = _limit(system, spectrum, r, flag)
        if claim is not None:
            yield claim


def _absorbing(system: System, spectrum: Spectrum) -> Array | None:
    """P > 0 with Aᵀ P + P A + K < 0 and a small trace of P⁻¹."""
    shift = 1e-3 * spectrum.size if spectrum.axis else 0.0
    return lasting_bound(system.A + shift * np.eye(len(system.A)), system.K, 1e4, drop=1e-3)


def _limit(system: System, spectrum: Spectrum, r: int, flag: float) -> Claim | None:
    """Claim the limit of data of rank r; None if floats see none."""
    A, d = system.A, len(system.A)
    p = min(r, spectrum.unstable)
    if r < spectrum.unstable and spectrum.gap(r) <= GAP * spectrum.size:
        return None
    if not p and spectrum.axis:  # decay without a rate has a rule of its own
        return None
    U, W = split(A, spectrum, p)
    basis = np.concatenate([spread(A, U, 1), spread(A, W, -1)], axis=1)
    turned = np.linalg.solve(basis, A @ basis)
    inner, outer = turned[:p, :p], turned[p:, p:]
    margin = 1e-12 * spectrum.size
    alpha, beta = 0.0, 0.0
    if p:
        alpha = float(np.linalg.eigvalsh(0.5 * (inner + inner.T))[0]) - margin
    if p < d:
        beta = float(np.linalg.eigvalsh(0.5 * (outer + outer.T))[-1]) + margin
    X = np.zeros((0, 0))
    limit = np.zeros((d, d))
    if p:
        if not alpha > 0:
            return None
        own = basis[:, :p]
        X = _refined(inner, own.T @ system.K @ own)
        if np.linalg.eigvalsh(X)[0] <= 0:
            return None
        limit = own @ np.linalg.solve(X, own.T)
        limit = 0.5 * (limit + limit.T)
    try:
        error = proved_error(system, basis, X, limit, (alpha, beta)) * (1 + 1e-9)
    except Refuted:
        error = 1e-9 * max(float(np.max(np.abs(limit))), 1e-300)
    numbers = {
        "limit_rank": float(p),
        "rank": float(r),
        "rate": _rate(p, r, d, alpha, beta, spectrum) * (1 - 1e-11),
        "alpha": alpha,
        "beta": beta,
        "error": error,
        "start": flag,
    }
    return Claim(
        "riccati-limit", numbers=numbers, arrays={"basis": basis, "inverse": X, "limit": limit}
    )


def _rate(p: int, r: int, d: int, alpha: float, beta: float, spectrum: Spectrum) -> float:
    """Return the rate that the rule will find, but for the error of the invariant subspaces."""
    if r == p and p:
        return 2 * alpha if p == d else min(2 * alpha, alpha - beta)
    if spectrum.axis or beta >= 0:
        return 0.0
    return 2 * min(alpha, -beta) if p else -2 * beta


def _refined(inner: Array, K: Array) -> Array:
    X = solve_continuous_lyapunov(inner.T, -K)
    left = inner.T @ X
    X = X + solve_continuous_lyapunov(inner.T, -(left + left.T + K))
    return np.asarray(0.5 * (X + X.T))


def _symmetric(X: Any) -> Array:
    return np.asarray(0.5 * (X + X.T), dtype=np.float64)

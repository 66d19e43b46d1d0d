"""Coordinates and signs of heads for bounds on growth by norms, in large dimension."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.linalg import schur

from ..._check import Array
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..rules.norm_growth import Growth
from ..theory.comparison import Comparison, passage_time
from .lyapunov import lyapunov_metric
from .quadratic_lmi import LARGEST_INTERACTIVE

__all__ = ["find"]

#: What is left of a radius and of a ceiling, so that rounding does not decide.
ROOM = 1.0 - 1e-9

#: Room for the proof of estimated coefficients, relative; columns of a sketch.
SPARE, SKETCH = 1e-6, 80

#: Mean of the eigenvalues of A, relative to their size, below which A is taken as not Hurwitz.
BALANCED = 0.01

#: Entries of the wrong sign on a diagonal, relative, that count as rounding.
ROUNDING = 1e-12

#: Margin of a semidefinite matrix of order d, relative to its trace and d: twice what is needed.
MARGIN = 2e-15


def find(problem: CertificationProblem) -> Iterator[Claim]:
    """Propose decay of small covariances, a bound on tr S, or on the blow-up time from below.

    Parameters
    ----------
    problem : CertificationProblem
        Families, and dimensions in which matrix inequalities are tried, have no claims here.
    """
    if len(problem.vertices) != 1 or problem.dim <= LARGEST_INTERACTIVE:
        return
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        claim = _claim(problem)
    if claim is not None:
        yield claim


def _claim(problem: CertificationProblem) -> Claim | None:
    p = problem.parameters
    R = _coordinates(p)
    if problem.start is None and (
        (p.noise is not None and np.any(p.noise))
        or (R is None and not np.linalg.eigvalsh(p.A + p.A.T)[-1] < 0)
    ):
        return None
    arrays = {"signs": np.array([_sign(V, B) for V, B, _ in p.heads]).reshape(-1, 3)}
    if R is not None:
        arrays["coordinates"] = R
    made = _estimate(problem, R, arrays["signs"])
    numbers = _numbers(made, with_start=problem.start is not None)
    return None if numbers is None else Claim("norm-growth", numbers=numbers, arrays=arrays)


def _estimate(problem: CertificationProblem, R: Array | None, signs: Array) -> Growth:
    """Coefficients in floats, with room for their proof."""
    p = problem.parameters
    G = None if R is None else np.asarray(np.linalg.inv(R), dtype=np.float64)
    A = _turned(R, p.A, G)
    linear = float(np.linalg.eigvalsh(A + A.T)[-1]) if np.any(A) else 0.0
    linear += SPARE * max(abs(linear), 1e-3 * float(np.max(np.abs(A))))
    parts = []
    for (V, B, _), (s, below, above) in zip(p.heads, signs.tolist(), strict=True):
        v = _norm(_turned(R, V, G))
        b = _norm(_turned(None if G is None else G.T, B, G))
        if s:
            skew = [_norm(0.5 * (M - M.T)) if np.any(M != M.T) else 0.0 for M in (V, B)]
            parts.append(above * v + below * b + above * below + skew[0] * skew[1])
        else:
            parts.append(v * b)
    L = None if problem.start is None else problem.start.factor
    if L is not None and R is not None:
        L = R @ L
    level = np.inf if L is None else (1 + SPARE) * float(np.sum(L * L))
    noise = 0.0
    if p.noise is not None and np.any(p.noise):
        noise = (1 + SPARE) * float(np.trace(p.noise if R is None else R @ p.noise @ R.T))
    stretch = 1.0 if G is None else (1 + SPARE) * _norm(G) ** 2
    return Growth(2.0 * (1 + SPARE) * sum(parts), linear, noise, level, stretch)


def _turned(left: Array | None, M: Array, right: Array | None) -> Array:
    return M if left is None or right is None else left @ M @ right


def _norm(M: Array) -> float:
    """Spectral norm, by a sketch of the range if that is small."""
    if len(M) > 2 * SKETCH:
        basis = np.linalg.qr(M @ np.random.default_rng(0).standard_normal((len(M), SKETCH)))[0]
        thin = basis.T @ M
        if np.max(np.abs(M - basis @ thin)) <= 1e-12 * np.max(np.abs(M)):
            M = thin
    return float(np.sqrt(max(np.linalg.eigvalsh(M @ M.T)[-1], 0.0)))


def _numbers(made: Growth, *, with_start: bool) -> dict[str, float] | None:
    """Strongest conclusion from the comparison equation."""
    numbers = made.numbers()
    if not made.quadratic > 0:
        return None
    f = Comparison(*(Fraction(x) for x in numbers.values()))
    # Between the roots of κη² + aη + e the solution falls.
    square = made.linear**2 - 4.0 * made.quadratic * made.constant
    largest = 0.0
    if made.linear < 0 and square > 0:
        largest = ROOM * (np.sqrt(square) - made.linear) / (2.0 * made.quadratic)
    if not with_start:
        if made.constant > 0 or not largest > 0:
            return None
        return {**numbers, "radius": float(largest)}
    if made.level < largest:
        ceiling = float(largest)
        if made.constant > 0:
            least = (-made.linear - np.sqrt(square)) / (2.0 * made.quadratic)
            ceiling = max(made.level, float(min(least * 1.001, 0.5 * (least + largest))))
        numbers |= {"ceiling": ceiling, "peak": made.stretch * ceiling}
        return numbers if made.constant > 0 else {**numbers, "decays": 1.0}
    lower, _ = passage_time(f, Fraction(made.level))
    return {**numbers, "lower": lower * ROOM} if lower > 0 else None


def _sign(V: Array, B: Array) -> tuple[float, float, float]:
    """Sign s for which sV and -sB may be nearly positive semidefinite, with margins; else zeros."""
    first, second = np.diag(V), np.diag(B)
    for s in (1.0, -1.0):
        if np.all(s * first >= -ROUNDING * np.max(np.abs(first))) and np.all(
            s * second <= ROUNDING * np.max(np.abs(second))
        ):
            margins = [MARGIN * len(V) * float(np.sum(np.abs(x))) for x in (first, second)]
            if _nearly(s * V, margins[0]) and _nearly(-s * B, margins[1]):
                return s, margins[0], margins[1]
    return 0.0, 0.0, 0.0


def _nearly(M: Array, margin: float) -> bool:
    """Whether the symmetric part is positive semidefinite but for a part of the margin."""
    try:
        np.linalg.cholesky(0.5 * (M + M.T) + 0.3 * margin * np.eye(len(M)))
    except np.linalg.LinAlgError:
        return False
    return True


def _coordinates(p: Parameters) -> Array | None:
    """R such that RAR⁻¹ has a negative definite symmetric part, if A needs it and has one."""
    # A trace that is small against the eigenvalues tells that some of them are positive.
    typical = float(np.linalg.norm(p.A)) / np.sqrt(p.dim)
    if not -np.trace(p.A) / p.dim > BALANCED * typical or np.linalg.eigvalsh(p.A + p.A.T)[-1] < 0:
        return None
    try:
        upper, basis = schur(-p.A, output="real")
        # The diagonal of a real Schur form holds the real parts of the eigenvalues.
        if not np.min(np.diag(upper)) > 0:
            return None
        W = lyapunov_metric(upper, basis, np.eye(p.dim))
        return None if W is None else np.asarray(np.linalg.cholesky(W).T, dtype=np.float64)
    except (np.linalg.LinAlgError, ValueError):
        return None

"""Left eigenvectors of V along which a scalar Riccati inequality blows up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eig

from ..._check import Array
from ...arithmetic.balls import ball, precision
from ...arithmetic.matrices import SMALL
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..rules.base import Refuted
from ..rules.spectral_blow_up import BITS, inequality
from ..theory.heads import Head
from .lyapunov import solve_metric

__all__ = ["exclude", "find"]

#: Eigenvectors that are handed to the rule before the search gives up.
TRIES = 3

#: Largest relative residual of a common left eigenvector.
RESIDUAL = 1e-8

#: Dimension up to which the inequality of every eigenvector is estimated.
LARGEST_LIST = 64


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A left eigenvector with the eigenvalue of each head, and how good its inequality looks."""

    vector: NDArray[Any]
    values: NDArray[Any]
    score: float


def find(problem: CertificationProblem, heads: Sequence[Head]) -> Iterator[Claim]:
    """Propose blow-up of the start, or of every start under noise, else blow-up data.

    Parameters
    ----------
    problem : CertificationProblem
        With one vertex.
    heads : sequence of Head
        Its heads, merged.
    """
    start = None if problem.start is None else problem.start.factor
    for candidate in _candidates(problem.parameters, heads, start)[:TRIES]:
        claim = _claim(problem, candidate)
        if claim is not None:
            yield claim
            if claim.rule == "spectral-blow-up":
                return
            break


def exclude(head: Head) -> Iterator[Claim]:
    """Propose that the spectrum of V excludes quadratic certificates, of one kind or the other."""
    form = 0.5 * (head.B + head.B.T)
    ends = np.linalg.eigvalsh(form)
    if not ends[0] * ends[-1] > 0:
        return
    sign = math.copysign(1.0, ends[0])
    values, vectors = _spectrum(head.V)
    best = int(np.argmax(values.real * sign))
    numbers = {"sign": sign, "vertex": 0.0}
    if values[best].real * sign > 0:
        arrays = _arrays(_scaled(vectors[:, best]), values[best : best + 1])
        yield Claim("no-quadratic-certificate-value-spectrum", numbers=numbers, arrays=arrays)
        return
    metric = solve_metric(-sign * head.V)
    if metric is not None:
        name = "no-quadratic-certificate-antistable-value"
        yield Claim(name, numbers=numbers, arrays={"metric": metric})


def _claim(problem: CertificationProblem, candidate: _Candidate) -> Claim | None:
    """Fill in the numbers that the rule's own arithmetic gives."""
    arrays = _arrays(candidate.vector, candidate.values)
    with precision(BITS):
        try:
            made = inequality(problem, Claim("spectral-blow-up", arrays=arrays))
        except Refuted:
            return None
        everywhere = made.time(ball(0.0))
        if everywhere < math.inf:
            numbers = {"every_start": 1.0, "bound": everywhere}
            return Claim("spectral-blow-up", numbers=numbers, arrays=arrays)
        if problem.start is not None and problem.start.rank:
            bound = made.time(made.variance(problem.start.factor))
            if bound < math.inf:
                numbers = {"every_start": 0.0, "bound": bound}
                return Claim("spectral-blow-up", numbers=numbers, arrays=arrays)
        threshold = made.threshold()
        length = float(np.sum(np.abs(candidate.vector) ** 2))
        # Twice the threshold is well inside, and without one any multiple of I will do.
        scale = float(f"{2.0 * threshold / length:.3g}") if threshold > 0 else 1.0
        bound = made.time(scale * made.variance(np.eye(problem.dim)))
    numbers = {"threshold": threshold, "example": scale, "bound": bound}
    return Claim("spectral-blow-up-data", numbers=numbers, arrays=arrays)


def _arrays(vector: NDArray[Any], values: NDArray[Any]) -> dict[str, Array]:
    return {
        "p": np.array(vector.real, dtype=np.float64),
        "q": np.array(vector.imag, dtype=np.float64),
        "values": np.stack([values.real, values.imag], axis=1).astype(np.float64),
    }


def _candidates(p: Parameters, heads: Sequence[Head], factor: Array | None) -> list[_Candidate]:
    """Eigenvectors common to all heads for which H is positive definite, best first."""
    tables, scores = [h.V for h in heads], [h.B for h in heads]
    if not all(bool(np.all(np.isfinite(x))) for x in (*tables, *scores)):
        return []
    if len(heads) == 1 and not _one_sign(scores[0]):
        return []
    if len(heads) == 1:
        # Eigenvalues come with their vectors; only those on the side of B are of use.
        sign = math.copysign(1.0, float(np.trace(scores[0])))
        spectrum, vectors = _spectrum(tables[0])
        good = spectrum.real * sign > 0
        made = [
            (vector, np.array([x if np.any(vector.imag) else complex(x.real)]))
            for x, vector in _directions(spectrum[good], vectors[:, good])
        ]
        if len(tables[0]) > LARGEST_LIST:
            return _ranked_by_sector(p, scores[0], made, factor)
    elif len(tables[0]) > SMALL:
        return []  # that floats have a common eigenvector could not be proved
    else:
        made = []
    made += _common_pairs(tables)
    rated = [_rated(p, scores, vector, values, factor) for vector, values in made]
    return sorted((c for c in rated if c is not None), key=lambda c: c.score)


def _spectrum(V: Array) -> tuple[NDArray[Any], NDArray[Any]]:
    """Eigenvalues and left eigenvectors wᵀV = λwᵀ as columns w."""
    values, vectors = eig(V.T, check_finite=False)
    return values, vectors


def _directions(
    values: NDArray[Any], vectors: NDArray[Any]
) -> Iterator[tuple[complex, NDArray[Any]]]:
    """One of each conjugate pair, scaled."""
    for j, value in enumerate(values.tolist()):
        if value.imag >= 0:
            vector = _scaled(vectors[:, j])
            if np.all(np.isfinite(vector)):
                yield value, vector


def _common_pairs(tables: list[Array]) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Eigenvectors that all value matrices share, among those of each and the coordinate axes."""
    d = len(tables[0])
    choices = [vector for V in tables for _, vector in _directions(*_spectrum(V))]
    made = []
    for vector in (*np.eye(d).astype(complex), *choices):
        values = _common_values(tables, vector)
        if values is not None:
            made.append((vector, values))
    return made


def _scaled(vector: NDArray[Any]) -> NDArray[Any]:
    """Scale so that the largest entry is exactly 1; rounding dust is set to zero."""
    k = int(np.argmax(np.abs(vector)))
    made = np.asarray(vector / vector[k], dtype=complex)
    if np.max(np.abs(made.imag)) <= 1e-12:
        made = made.real.astype(complex)
    made[k] = 1.0
    near = np.round(made * 64.0) / 64.0
    return np.where(np.abs(made - near) <= 1e-14, near, made)


def _common_values(tables: list[Array], vector: NDArray[Any]) -> NDArray[Any] | None:
    """Eigenvalue of each head for a left eigenvector, or None if it is not one of them."""
    k = int(np.flatnonzero(vector == 1.0)[0])
    values = []
    for V in tables:
        image = vector @ V
        size = float(np.max(np.abs(V))) * len(vector)
        if not float(np.max(np.abs(image - image[k] * vector))) <= RESIDUAL * size:
            return None
        near = np.round(image[k] * 64.0) / 64.0
        values.append(near if abs(image[k] - near) <= 1e-14 * size else image[k])
    made = np.array(values, dtype=complex)
    return made.real.astype(complex) if not np.any(vector.imag) else made


def _one_sign(B: Array) -> bool:
    """Whether the symmetric part is definite; H is positive definite for no λ otherwise."""
    form = 0.5 * (B + B.T)
    return _definite(math.copysign(1.0, float(np.trace(form))) * form)


def _definite(H: NDArray[Any]) -> bool:
    """Whether a Hermitian matrix is positive definite, after its diagonal is scaled to one."""
    diagonal = np.diag(H).real
    if not np.all(diagonal > 0):
        return False
    scale = 1.0 / np.sqrt(diagonal)
    return bool(np.linalg.eigvalsh(scale[:, None] * H * scale)[0] > 0)


def _ranked_by_sector(
    p: Parameters, B: Array, pairs: list[tuple[NDArray[Any], NDArray[Any]]], factor: Array | None
) -> list[_Candidate]:
    """Order many eigenvectors of one head; real ones by their bound, since they share H = λ B_s.

    Herm(λB) is positive definite if and only if Re λ has the sign of B and exceeds β|Im λ|, where
    β is the size of the skew part of B relative to its definite part.
    """
    even, odd = 0.5 * (B + B.T), 0.5 * (B - B.T)
    sign = math.copysign(1.0, float(np.trace(even)))
    root = np.linalg.inv(np.linalg.cholesky(sign * even))
    beta = float(np.linalg.norm(root @ odd @ root.T, 2)) if np.any(odd) else 0.0
    good = [(v, x) for v, x in pairs if sign * x[0].real > beta * abs(x[0].imag)]
    real = [(v, x) for v, x in good if not np.any(v.imag)]
    made = []
    if real:
        w = np.stack([v.real for v, _ in real], axis=1)
        halves, moved = root @ w, root @ (p.A.T @ w)
        for j, (vector, values) in enumerate(real):
            both = np.stack([halves[:, j], moved[:, j]])
            gram = both @ both.T / abs(float(values[0].real))
            score = _score(p, vector, gram[0, 0], complex(gram[0, 1]), gram[1, 1], factor)
            made.append(_Candidate(vector, values, score))
    # Complex pairs cost eight times as much: they come last, the widest margin first.
    rest = [
        _Candidate(v, x, beta * abs(x[0].imag) - sign * x[0].real)
        for v, x in good
        if np.any(v.imag)
    ]
    return sorted(made, key=lambda c: c.score) + sorted(rest, key=lambda c: c.score)


def _rated(
    p: Parameters,
    scores: list[Array],
    vector: NDArray[Any],
    values: NDArray[Any],
    factor: Array | None,
) -> _Candidate | None:
    """Estimate the bound on T* of the start, or else the threshold, in floats."""
    H = sum(0.5 * (lam * B + np.conj(lam) * B.T) for lam, B in zip(values, scores, strict=True))
    if not _definite(np.asarray(H)):
        return None
    v, g = np.conj(vector), np.conj(p.A.T @ vector)
    solved = np.linalg.solve(H, np.stack([v, g], axis=1))
    omega = float(np.vdot(v, solved[:, 0]).real)
    gamma, size = complex(np.vdot(v, solved[:, 1])), float(np.vdot(g, solved[:, 1]).real)
    return _Candidate(vector, values, _score(p, vector, omega, gamma, size, factor))


def _score(
    p: Parameters,
    vector: NDArray[Any],
    omega: float,
    gamma: complex,
    size: float,
    factor: Array | None,
) -> float:
    """Bound on T* of the start if it has one, else a large number that grows with the threshold."""
    square = (size * omega - gamma.imag**2) / 4.0
    if p.noise is not None:
        square -= omega * float((vector @ p.noise @ np.conj(vector)).real) / 2.0
    k = math.sqrt(max(square, 0.0))
    # Without a start, lengths of w are compared: the threshold in units of the covariance.
    worth = (k - gamma.real / 2.0) / float(np.sum(np.abs(vector) ** 2))
    bound = math.inf
    if factor is not None:
        u = float(np.sum(np.abs(vector @ factor) ** 2)) + gamma.real / 2.0
        if u > k:
            bound = omega / (4 * k) * math.log((u + k) / (u - k)) if k > 0 else omega / (2 * u)
    return bound if bound < math.inf else 1e300 * (1.0 + math.tanh(worth))

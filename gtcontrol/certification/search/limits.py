"""Claims for V_h = v_h I where the covariance is linear, marginal, noisy, or grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import schur, solve_continuous_lyapunov

from ..._check import Array
from ...arithmetic import balls, fractions, invariance
from ...arithmetic.balls import Ball
from ...arithmetic.fractions import Fractions
from ...arithmetic.spectra import LARGEST_ORDER
from ...field import generator
from ...gaussian import Gaussian
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...riccati_flow.spectrum import spread
from ...riccati_flow.system import LARGEST_BALLS, System
from ...riccati_flow.terms import scalar_values
from ..rules.base import Refuted
from ..rules.invariant_start import invariant_limit
from ..rules.linear_flow import LINEAR_OUTCOMES, exact_limit, linear_rate, motions_of
from ..rules.motions import BITS, Exact, motion_in
from ..rules.riccati_growth import GROUNDS, column_rate
from ..rules.riccati_noise_limit import proved_distance
from ..rules.scalar_equation import SCALAR_OUTCOMES, scalar_outcome, scalar_roots
from ..rules.scalar_value import noise_of
from ..rules.turning_limit import period
from ..rules.uniform_drift import uniform_limit

__all__ = ["find"]

#: Newton steps towards the solution of the Riccati equation with noise.
NEWTON = 4

#: Above this dimension the columns of a start are not looked at one by one: fractions grow long.
LARGEST_COLUMNS = 12


def find(problem: CertificationProblem) -> Iterator[Claim]:
    """Claim limits and growth that exact fractions decide, and the limit with noise."""
    if problem.start is not None and _stands(problem, problem.start):
        yield Claim("standing-start")
    if len(problem.vertices) != 1 or scalar_values(problem.parameters.heads) is None:
        return
    searches: list[Callable[[CertificationProblem], Iterator[Claim]]] = [_noisy]
    if problem.dim <= LARGEST_ORDER:
        searches += [_linear, _growing, _scalar]
        if problem.start is not None:
            searches += [_uniform, _invariant, _turning]
    for search in searches:
        try:
            with balls.precision(BITS):
                yield from search(problem)
        except Refuted:  # the search asks the theorem itself, which does not apply
            continue


def _stands(problem: CertificationProblem, start: Gaussian) -> bool:
    """Whether floats see no motion of the start, which fractions can then decide."""
    if problem.dim > LARGEST_ORDER:
        return False
    S = start.covariance
    for p in problem.vertices:
        M = generator(S, p.A, p.heads)
        half = M @ S
        change = half + half.T if p.noise is None else half + half.T + p.noise
        size = float(np.max(np.abs(M), initial=0.0) * np.max(np.abs(S), initial=0.0))
        if not float(np.max(np.abs(change))) <= 1e-12 * size:
            return False
    return True


def _linear(problem: CertificationProblem) -> Iterator[Claim]:
    exact = Exact.of(problem)
    for from_start in (False, True) if problem.start is not None else (False,):
        basis, moved, fed = motions_of(exact, from_start=from_start)
        numbers = {"start": float(from_start), "noisy": float(exact.noise is not None)}
        numbers |= {"every": 0.0, "unique": 0.0, "rate": 0.0}
        arrays = {}
        if not (moved.bounded and fed.decays):
            outcome = "unbounded"
            every = not fed.decays
            tops = [fed.abscissa] if every else [moved.abscissa, fed.abscissa]
            numbers["every"] = float(every)
            numbers["rate"] = _positive([None if x is None else x * balls.ball(2) for x in tops])
        elif moved.settles and (from_start or moved.decays):
            outcome = "limit"
            try:
                made = exact_limit(exact, basis, moved, from_start=from_start)
            except Refuted:  # the rule on noise does without fractions
                continue
            numbers["rate"] = _positive([linear_rate(moved, fed)])
            numbers["unique"] = float(moved.decays)
            arrays["limit"], numbers["error"] = _nearest(made)
        else:
            outcome = "bounded"
        numbers["outcome"] = float(LINEAR_OUTCOMES.index(outcome))
        yield Claim("linear-flow", numbers=numbers, arrays=arrays)


def _positive(rates: list[Ball | None]) -> float:
    """Largest of the rates, rounded down; 0 if none is positive."""
    return max((max(balls.below(x), 0.0) for x in rates if x is not None), default=0.0)


def _nearest(exact: Fractions) -> tuple[Array, float]:
    """Floats near a matrix of fractions, and a bound on their error."""
    limit = balls.middle(balls.from_fractions(exact))
    limit = 0.5 * limit + 0.5 * limit.T
    miss = (exact - fractions.fractions(limit)).entries()
    error = max(balls.above(balls.from_fractions(fractions.column([abs(x)]))[0, 0]) for x in miss)
    return limit, float(error)


def _growing(problem: CertificationProblem) -> Iterator[Claim]:
    exact = Exact.of(problem)
    if not exact.system.semidefinite(-1) or not np.any(exact.system.K):
        return
    if exact.noise is None and exact.hidden.ncols() and motion_in(exact.A, exact.hidden).bounded:
        yield Claim("riccati-unseen")
    reached = [(0, fractions.identity(problem.dim))]
    if exact.noise is not None:
        reached += [(3, exact.fed), (4, invariance.reachable(exact.A * 0, exact.noise))]
    if problem.start is not None:
        reached.append((1, exact.start()))
    for ground, subspace in reached:
        inner = invariance.intersection(subspace, exact.hidden)
        motion = motion_in(exact.A, invariance.reachable(exact.A, inner))
        if not (motion.decays if GROUNDS[ground] == "fresh noise" else motion.bounded):
            rate = _positive([None if (x := motion.abscissa) is None else x * balls.ball(2)])
            yield Claim("riccati-growth", numbers={"ground": float(ground), "rate": rate})
            if ground:
                return
    if problem.start is not None and problem.dim <= LARGEST_COLUMNS:
        factor = exact.start()
        for j, row in enumerate(factor.transpose().tolist()):
            found = column_rate(exact, fractions.column(row))
            if found is not None:
                numbers = {"ground": 2.0, "column": float(j), "rate": _positive([found])}
                yield Claim("riccati-growth", numbers=numbers)
                return


def _uniform(problem: CertificationProblem) -> Iterator[Claim]:
    a, made, level = uniform_limit(Exact.of(problem))
    numbers = {"unbounded": float(made is None), "threshold": float(level), "rate": 2 * abs(a)}
    arrays = {}
    if made is not None:
        arrays["limit"], numbers["error"] = _nearest(made)
    yield Claim("riccati-uniform-drift", numbers=numbers, arrays=arrays)


def _invariant(problem: CertificationProblem) -> Iterator[Claim]:
    made, rate, many = invariant_limit(Exact.of(problem))
    limit, error = _nearest(made)
    numbers = {"continuum": float(many), "rate": _positive([rate]), "error": error}
    yield Claim("riccati-invariant-start", numbers=numbers, arrays={"limit": limit})


def _turning(problem: CertificationProblem) -> Iterator[Claim]:
    found = period(Exact.of(problem))
    ends = {"shortest": np.nextafter(balls.below(found), 0.0)}
    ends["longest"] = np.nextafter(balls.above(found), np.inf)
    yield Claim("riccati-turning", numbers={k: float(x) for k, x in ends.items()})


def _scalar(problem: CertificationProblem) -> Iterator[Claim]:
    exact = Exact.of(problem)
    outcome = scalar_outcome(exact)
    numbers = {"outcome": float(SCALAR_OUTCOMES.index(outcome))}
    if outcome not in ("every start", "blow-up"):
        lower, upper, root = scalar_roots(exact)
        ends = {"lower_root": lower, "upper_root": upper}
        middles = {k: float(balls.middle(balls.table([[x]]))[0, 0]) for k, x in ends.items()}
        misses = [balls.above(abs(balls.ball(middles[k]) - x)) for k, x in ends.items()]
        numbers |= {**middles, "error": max(misses), "rate": _positive([root * balls.ball(2)])}
    yield Claim("scalar-equation", numbers=numbers)


def _noisy(problem: CertificationProblem) -> Iterator[Claim]:
    """Claim the stabilising solution, from the stable subspace of the Hamiltonian matrix."""
    noise, d = noise_of(problem), problem.dim
    if noise is None or d > LARGEST_BALLS:
        return
    system = System(problem.parameters.A, problem.parameters.heads)
    if not system.semidefinite(-1):
        return
    S = _stabilising(system.A, system.K, noise)
    if S is None:
        return
    M = system.A + S @ system.K
    if not np.max(np.linalg.eigvals(M).real) < 0:
        return
    T = spread(M, np.eye(d), -1)
    moved = np.linalg.solve(T, M @ T)
    size = float(np.linalg.norm(moved, 2))
    alpha = -float(np.linalg.eigvalsh(0.5 * (moved + moved.T))[-1]) - 1e-13 * size
    if not alpha > 0:
        return
    error, left = proved_distance(system, noise, S, T, alpha)
    numbers = {"alpha": alpha, "error": error, "rate": 2 * left * (1 - 1e-14)}
    if left > 0:
        yield Claim("riccati-noise-limit", numbers=numbers, arrays={"limit": S, "basis": T})


def _stabilising(A: Array, K: Array, noise: Array) -> Array | None:
    """Solution S of A S + S Aᵀ + S K S + Q = 0 with A + S K Hurwitz, or None.

    S is measured in a unit in which K and Q are alike, so that their sizes do not matter.
    """
    d = len(A)
    weight, fed = (float(np.max(np.abs(x))) for x in (K, noise))
    unit = float(np.exp2(np.round(0.5 * (np.log2(fed) - np.log2(weight))))) if weight > 0 else fed
    score, source = K * unit, noise / unit
    size = max(float(np.max(np.abs(x))) for x in (A, score, source))
    score, source, drift = score / size, source / size, A / size
    H = np.block([[-drift.T, -score], [source, drift]])
    Z, count = schur(H, output="real", sort="rhp")[1:]
    if int(count) != d or np.linalg.cond(Z[:d, :d]) > 1e12:
        return None
    S = np.linalg.solve(Z[:d, :d].T, Z[d:, :d].T)
    S = 0.5 * (S + S.T)
    for _ in range(NEWTON):
        M = drift + S @ score
        own = drift @ S
        S = S + solve_continuous_lyapunov(M, -(own + own.T + S @ score @ S + source))
        S = 0.5 * (S + S.T)
    return np.asarray(S * unit)

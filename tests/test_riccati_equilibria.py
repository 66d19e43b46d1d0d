"""Bernoulli equilibria and Lyapunov verdicts, against exact values and long integration."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.integrate import solve_ivp

from gtcontrol.errors import GtcontrolError, InvalidMethod
from gtcontrol.riccati_flow import AttractorKind, attractor, equilibria
from gtcontrol.riccati_flow.lyapunov import LyapunovStatus, lasting_bound, solve

from .strategies import factor as make_factor, generators, invertible

I2 = np.eye(2)
E1 = np.array([[1.0, 2.0], [0.0, 3.0]])
E5 = np.array([[1.0, 3.0], [-3.0, 1.0]])
E7 = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, -1.0], [1.0, 0.0, 0.5]])
K7 = -np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
E8 = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 3.0]])
K8 = -np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
SKEW = np.array([[0.0, 1.0], [-1.0, 0.0]])
NILPOTENT = np.array([[0.0, 1.0], [0.0, 0.0]])
ONES = np.ones((2, 2))

S7 = np.array(
    [
        [1.03939775334225877, 0.631126798045279267, 0.577911496003737302],
        [0.631126798045279267, 2.40627289509275198, -0.847126870207467082],
        [0.577911496003737302, -0.847126870207467082, 1.03079227844708131],
    ]
)
U8 = np.array([0.5, 1.0, 1.0])
ROTATION = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])

LIMIT, MARGINAL = AttractorKind.LIMIT, AttractorKind.MARGINAL

#: A, K, rank of the data, kind, limit, rate (None: not looked at).
ATTRACTORS = [
    (E1, -I2, 1, LIMIT, [[3, 3], [3, 3]], 2.0),
    (E1, -I2, 2, LIMIT, [[3.2, 2.4], [2.4, 4.8]], 2.0),
    (np.diag([1.0, -2.0]), -ONES, 2, LIMIT, np.diag([2.0, 0.0]), 2.0),
    (np.diag([3.0, 1.0]), -I2, 1, LIMIT, np.diag([6.0, 0.0]), 2.0),
    (np.diag([3.0, 1.0]), -I2, 2, LIMIT, np.diag([6.0, 2.0]), 2.0),
    (2 * I2, -I2, 2, LIMIT, 4 * I2, 4.0),
    (2 * I2, -I2, 1, AttractorKind.DEPENDS_ON_START, None, None),
    (E5, -np.diag([1.0, 2.0]), 2, LIMIT, np.array([[124, -12], [-12, 116]]) / 89, 2.0),
    (E5, -np.diag([1.0, 2.0]), 1, AttractorKind.PERIODIC, None, None),
    (np.diag([1.0, 0.0]), -2 * I2, 2, MARGINAL, np.diag([1.0, 0.0]), 0.0),
    (E7, K7, 3, LIMIT, S7, 2 * 0.0921935857038307),
    (
        E8,
        K8,
        3,
        LIMIT,
        np.array([[94, 62, -40], [62, 166, -80], [-40, -80, 160]]) / 35,
        2.0,
    ),
    (E8, K8, 1, LIMIT, 8 / 7 * np.outer(U8, U8), 1.0),
    (np.diag([1.0, 2.0]), -np.diag([1.0, 0.0]), 2, AttractorKind.UNBOUNDED, None, None),
    (np.diag([1.0, 0.0]), -np.diag([1.0, 0.0]), 2, AttractorKind.CONTINUUM, None, None),
    # Solvers of Riccati equations fail on these, or return a solution that says nothing.
    (np.diag([1.0, 0.0]), -I2, 2, MARGINAL, np.diag([2.0, 0.0]), 0.0),
    (np.zeros((2, 2)), -I2, 2, MARGINAL, np.zeros((2, 2)), 0.0),
    (SKEW, -I2, 2, MARGINAL, np.zeros((2, 2)), 0.0),
    (NILPOTENT, -I2, 2, MARGINAL, np.zeros((2, 2)), 0.0),
    (np.eye(3, k=1), -np.eye(3), 3, MARGINAL, np.zeros((3, 3)), 0.0),
    (ROTATION, -np.eye(3), 3, MARGINAL, np.diag([0.0, 0.0, 2.0]), 0.0),
    (np.diag([1.0, 1e-8]), -I2, 2, LIMIT, np.diag([2.0, 2e-8]), 2e-8),
    (np.diag([1.0, -1e-8]), -I2, 2, LIMIT, np.diag([2.0, 0.0]), 2e-8),
    (np.diag([1.0, 1e-14]), -I2, 2, MARGINAL, np.diag([2.0, 0.0]), 0.0),
    # One Jordan block, split by the rank; and not split.
    (np.array([[1.0, 1.0], [0.0, 1.0]]), -I2, 1, MARGINAL, np.diag([2.0, 0.0]), 0.0),
    (np.array([[1.0, 1.0], [0.0, 1.0]]), -I2, 2, LIMIT, [[2.4, 0.8], [0.8, 1.6]], 2.0),
    (np.diag([1.0, -1.0]), np.zeros((2, 2)), 2, AttractorKind.UNBOUNDED, None, None),
    (np.zeros((2, 2)), np.zeros((2, 2)), 2, AttractorKind.CONTINUUM, None, None),
    (np.array([[2.0]]), np.array([[-4.0]]), 1, LIMIT, [[1.0]], 4.0),
    (np.array([[-2.0]]), np.array([[-4.0]]), 1, LIMIT, [[0.0]], 4.0),
]


@pytest.mark.parametrize("case", range(len(ATTRACTORS)))
def test_attractors(case):
    A, K, rank, kind, limit, rate = ATTRACTORS[case]
    found = attractor(A, K, rank)
    assert found.kind is kind
    if limit is not None:
        size = np.max(np.abs(limit))
        np.testing.assert_allclose(found.covariance, limit, rtol=0, atol=1e-13 * max(size, 1e-300))
        assert found.residual < 1e-14
        assert found.loses_rank is (found.rank < rank)
    if rate is not None:
        assert found.rate == pytest.approx(rate, rel=1e-12)


def test_the_indefinite_solution_on_all_modes_is_not_taken():
    whole = solve(E7.T, K7)
    assert whole.status is LyapunovStatus.UNIQUE
    assert np.linalg.eigvalsh(whole.X)[0] == pytest.approx(-6.02056, abs=1e-5)
    found = attractor(E7, K7)
    assert (found.rank, found.loses_rank) == (2, True)


def test_period_of_a_split_pair():
    assert attractor(E5, -np.diag([1.0, 2.0]), 1).period == pytest.approx(math.pi / 3, rel=1e-14)


def test_a_positive_eigenvalue_is_refused():
    with pytest.raises(InvalidMethod, match="positive eigenvalue 1"):
        attractor(E1, np.diag([1.0, -1.0]))
    with pytest.raises(GtcontrolError, match="`rank`"):
        attractor(E1, -I2, 3)


def integrated(A, K, L, time):
    def flow(_, flat):
        M = flat.reshape(L.shape)
        return (A @ M + 0.5 * M @ (M.T @ K @ M)).ravel()

    run = solve_ivp(flow, (0, time), L.ravel(), rtol=1e-11, atol=1e-14, method="DOP853")
    assert run.success
    end = run.y[:, -1].reshape(L.shape)
    return end @ end.T


@given(generators(), st.integers(1, 4))
def test_generic_data_approach_the_attractor_at_its_rate(rng, d):
    A = rng.standard_normal((d, d)) + 0.5 * np.eye(d)
    B = rng.standard_normal((d, d))
    K = -B @ B.T - 0.3 * np.eye(d)
    r = int(rng.integers(1, d + 1))
    found = attractor(A, K, r)
    assert found.kind in (LIMIT, AttractorKind.PERIODIC)
    if found.kind is AttractorKind.PERIODIC or found.rate < 0.4 or found.rate > 20:
        return
    L = make_factor(rng, d, r, 0.5)
    first, last = 4 / found.rate, 10 / found.rate
    far, near = (np.linalg.norm(integrated(A, K, L, t) - found.covariance) for t in (first, last))
    size = np.linalg.norm(found.covariance) + np.linalg.norm(L) ** 2
    # e^{-6} is what the rate promises; modes beat, and equal rates add a factor t.
    assert near < max(0.2 * far, 1e-7 * size)


@given(generators(), st.integers(1, 4))
def test_attractors_under_a_change_of_coordinates(rng, d):
    A = rng.standard_normal((d, d))
    B = rng.standard_normal((d, d))
    K, T = -B @ B.T, invertible(rng, d, 0.5)
    back = np.linalg.inv(T)
    turned = back.T @ K @ back
    first = attractor(A, K)
    second = attractor(T @ A @ back, 0.5 * (turned + turned.T))
    assert first.kind is second.kind
    assert second.rate == pytest.approx(first.rate, rel=1e-8)
    size = max(np.linalg.norm(first.covariance), 1e-3) * np.linalg.norm(T) ** 2
    error = np.linalg.norm(second.covariance - T @ first.covariance @ T.T)
    assert error <= (1e-9 + 10 * first.error + 10 * second.error) * size


@pytest.mark.parametrize("n", [2, 4, 6, 8])
def test_an_ill_conditioned_equation_comes_with_its_error(n):
    """A = diag(1..n), K = -1 1ᵀ: S⁻¹ is the Cauchy matrix 1/(i + j), S is integer."""
    exact = cauchy_inverse(n)
    found = attractor(np.diag(np.arange(1.0, n + 1)), -np.ones((n, n)))
    error = np.linalg.norm(found.covariance - exact, 2) / np.linalg.norm(exact, 2)
    assert error <= found.error
    assert found.error < 1e-2
    if n == 8:
        assert found.error > 1e-8  # it does not claim more than double precision gives
        assert np.trace(exact) == 46665405720


def cauchy_inverse(n):
    """Inverse of 1/(i + j), i, j = 1..n, by exact elimination."""
    rows = [
        [Fraction(1, i + j) for j in range(1, n + 1)]
        + [Fraction(int(i == k)) for k in range(1, n + 1)]
        for i in range(1, n + 1)
    ]
    for k in range(n):
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return np.array([[float(x) for x in row[n:]] for row in rows])


def test_the_attractor_of_a_large_system():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 200)) / 14
    B = rng.standard_normal((200, 200)) / 14
    K = -B @ B.T
    found = attractor(A, K, 50)
    assert found.kind is LIMIT
    assert found.rank == 50
    assert found.residual < 1e-12
    growth = np.sort(np.linalg.eigvals(A).real)[::-1]
    assert found.rate == pytest.approx(min(2 * growth[49], growth[49] - growth[50]), rel=1e-9)
    # The spectrum of A + S K: the modes of the limit turn round, the others stay.
    expected = np.sort(np.concatenate([-growth[:50], growth[50:]]))
    np.testing.assert_allclose(np.sort(found.spectrum.real), expected, atol=1e-8)


def covariances(found):
    return sorted((np.round(e.covariance, 9) + 0.0).tolist() for e in found.found)


def test_all_equilibria_of_a_definite_term():
    found = equilibria(E1, -I2)
    expected = [[[0, 0], [0, 0]], [[2, 0], [0, 0]], [[3, 3], [3, 3]], [[3.2, 2.4], [2.4, 4.8]]]
    assert covariances(found) == sorted(expected)
    assert (found.count, found.continua, found.complete) == (4, False, True)
    attracting = [e.covariance.round(9).tolist() for e in found.found if e.attracts_rank]
    assert sorted(attracting) == sorted(expected[2:])
    assert [e.rank for e in found.found] == [0, 1, 1, 2]


def test_equilibria_of_a_positive_term_are_on_decaying_modes():
    """S' = -2S + 2S² and S' = 2S + 2S²: only the first has an equilibrium beside 0."""
    found = equilibria(np.diag([-1.0, 1.0]), 2 * I2)
    assert covariances(found) == [[[0, 0], [0, 0]], [[1, 0], [0, 0]]]
    assert not any(e.attracts_rank for e in found.found)


def test_equilibria_of_an_indefinite_term():
    # Modes 1 and -1 cancel in the Lyapunov equation: X = [[1, c], [c, 1]] with any |c| < 1.
    assert equilibria(np.diag([1.0, -1.0]), np.diag([-2.0, 2.0])).continua
    found = equilibria(np.diag([1.0, -2.0]), np.diag([-2.0, 4.0]))
    assert (found.count, found.continua) == (4, False)
    assert covariances(found)[-1] == [[1, 0], [0, 1]]
    found = equilibria(np.diag([1.0, -1.0]), np.diag([2.0, -2.0]))
    assert found.count == 1
    found = equilibria(E7, K7)
    assert [e.rank for e in found.found] == [0, 2]
    np.testing.assert_allclose(found.found[1].covariance, S7, rtol=1e-12)


def test_continua_are_flagged():
    found = equilibria(np.diag([1.0, 0.0]), -np.diag([1.0, 0.0]))
    assert found.continua
    assert found.count == 2
    kept = [e.covariance for e in found.found if not e.isolated]
    assert len(kept) == 2
    assert all(S[1, 1] > 0 and S[0, 0] in (0, pytest.approx(2)) for S in kept)
    assert equilibria(2 * I2, -I2).continua  # every direction carries one


def test_a_jordan_block_has_a_chain_of_equilibria():
    found = equilibria(np.array([[1.0, 1.0], [0.0, 1.0]]), -I2)
    expected = [[[0, 0], [0, 0]], [[2, 0], [0, 0]], [[2.4, 0.8], [0.8, 1.6]]]
    assert covariances(found) == expected
    assert not found.continua


def test_the_list_is_capped_and_says_how_many_there_are():
    A = np.diag(np.arange(1.0, 41.0))
    found = equilibria(A, -np.eye(40), most=10)
    assert len(found.found) == 10
    assert found.count == 2**40
    assert not found.complete


@given(generators(), st.integers(1, 4))
def test_every_listed_equilibrium_is_one(rng, d):
    A = rng.standard_normal((d, d))
    B = rng.standard_normal((d, d))
    for e in equilibria(A, B + B.T).found:
        S, K = e.covariance, B + B.T
        size = 1 + np.linalg.norm(S @ K @ S) + np.linalg.norm(A @ S)
        assert np.linalg.norm(A @ S + S @ A.T + S @ K @ S) < 1e-7 * size
        assert np.linalg.matrix_rank(S) == e.rank


SINGULAR = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.0]])


def test_singular_lyapunov_equations_say_which():
    free = solve(SINGULAR, np.zeros((3, 3)))
    assert free.status is LyapunovStatus.NOT_UNIQUE
    assert len(free.kernel) == 1
    np.testing.assert_allclose(abs(free.kernel[0]), np.diag([0.0, 0.0, 1.0]), atol=1e-12)
    none = solve(SINGULAR, np.diag([0.0, 0.0, 1.0]))
    assert none.status is LyapunovStatus.NO_SOLUTION
    assert none.X is None
    assert none.defect == pytest.approx(1)
    some = solve(SINGULAR, np.diag([1.0, 1.0, 0.0]))
    assert some.status is LyapunovStatus.NOT_UNIQUE
    X = some.X
    np.testing.assert_allclose(SINGULAR @ X + X @ SINGULAR.T, -np.diag([1.0, 1, 0]), atol=1e-12)


@given(generators(), st.integers(1, 4))
def test_lasting_bounds_satisfy_their_inequalities(rng, d):
    A, B = rng.standard_normal((d, d)), rng.standard_normal((d, d))
    K = B + B.T
    P = lasting_bound(A, K)
    if np.linalg.eigvals(A).real.max() < 0:
        assert P is not None
    if P is not None:
        assert np.linalg.eigvalsh(P)[0] > 0
        assert np.linalg.eigvalsh(A.T @ P + P @ A + K)[-1] < 1e-9 * np.linalg.norm(P)

"""The covariance flow beside Riccati solvers: who is right, and why, also on the boundary."""

from __future__ import annotations

import math
import warnings

import control
import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy.linalg import solve_continuous_are

import gtcontrol as gt
from gtcontrol.comparison.kalman import backends, rows
from gtcontrol.comparison.kalman.equation import Equation
from gtcontrol.comparison.kalman.modes import groups, hidden, hull
from gtcontrol.comparison.kalman.steady import Limit, long_run
from gtcontrol.errors import (
    GtcontrolError,
    InvalidMethod,
    InvalidShape,
    NotFinite,
    RankMismatch,
    ResultFileInvalid,
)
from gtcontrol.riccati_equations.judgement import judge
from gtcontrol.status import Definiteness, KalmanVerdict as Verdict
from tests.test_storage import same

I2, I3 = np.eye(2), np.eye(3)
SKEW = np.array([[0.0, 1.0], [-1.0, 0.0]])
JORDAN = np.array([[0.0, 1.0], [0.0, 0.0]])
TURNING = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])

seeds = st.integers(0, 2**32 - 1)


def law(covariance):
    S = np.array(covariance, dtype=float)
    return gt.Gaussian.from_covariance(np.zeros(len(S)), S)


def of(factor):
    L = np.array(factor, dtype=float)
    return gt.Gaussian(np.zeros(len(L)), L)


def root_of(K):
    """C with CᵀC = -K."""
    return np.linalg.cholesky(-np.array(K, dtype=float)).T


def equation(A, C, Q=None, R=None):
    A, C = np.array(A, dtype=float), np.atleast_2d(np.array(C, dtype=float))
    R = np.eye(len(C)) if R is None else np.array(R, dtype=float)
    K = -C.T @ np.linalg.inv(R) @ C
    return Equation(A, C, R, 0.5 * (K + K.T), np.zeros_like(A) if Q is None else np.array(Q))


def exact_flow(e, factor, time):
    """S(t) = Y X⁻¹ with [X; Y]' = [[-Aᵀ, -K], [Q, A]] [X; Y], in the precision of mpmath.

    S₀ = L Lᵀ is formed in these digits: rounding would give it full rank.
    """
    d = e.dim
    H = mpmath.matrix(np.block([[-e.A.T, -e.K], [e.Q, e.A]]).tolist())
    begin = mpmath.zeros(2 * d, d)
    begin[:d, :] = mpmath.eye(d)
    if factor.shape[1]:
        L = mpmath.matrix(factor.tolist())
        begin[d:, :] = L * L.T
    end = mpmath.expm(H * time) * begin
    return end[d:, :] * end[:d, :] ** -1


def digits_for(e, time):
    """Digits that X and Y lose, as they grow, and some more."""
    fastest = np.max(np.abs(np.linalg.eigvals(e.A).real))
    return int(2 * fastest * time / math.log(10)) + 40


def flow_at(e, factor, time):
    with mpmath.workdps(digits_for(e, time)):
        return np.array(exact_flow(e, factor, time).tolist(), dtype=float)


# -- on the boundary: what other solvers do there is asked, and told as it is ------------------

BOUNDARY = {
    "one-zero": (np.diag([1.0, 0.0]), I2, Verdict.MARGINAL, np.diag([2.0, 0.0])),
    "zero": (np.zeros((2, 2)), I2, Verdict.MARGINAL, np.zeros((2, 2))),
    "skew": (SKEW, I2, Verdict.MARGINAL, np.zeros((2, 2))),
    "jordan": (JORDAN, I2, Verdict.MARGINAL, np.zeros((2, 2))),
    "turning": (TURNING, I3, Verdict.MARGINAL, np.diag([0.0, 0.0, 2.0])),
    "undetectable": (np.diag([1.0, 2.0]), [[1.0, 0.0]], Verdict.UNBOUNDED, None),
    "continuum": (np.diag([1.0, 0.0]), [[1.0, 0.0]], Verdict.CONTINUUM, None),
    "slow": (np.diag([1.0, 1e-8]), I2, Verdict.CONVERGES, np.diag([2.0, 2e-8])),
    "slower": (np.diag([1.0, 1e-14]), I2, Verdict.CONVERGES, np.diag([2.0, 2e-14])),
    "slow-decay": (np.diag([1.0, -1e-10]), I2, Verdict.CONVERGES, np.diag([2.0, 0.0])),
}


def asked(call):
    """What a library returns, or the name of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return np.asarray(call())
        except (ArithmeticError, ValueError, RuntimeError) as error:
            return type(error).__name__


@pytest.mark.parametrize("name", BOUNDARY)
def test_on_the_boundary(name):
    A, C, verdict, limit = BOUNDARY[name]
    seen = gt.compare(A, C)
    assert seen.verdict is verdict
    assert seen.answered
    if limit is None:
        assert seen.limit is None
    else:
        np.testing.assert_allclose(seen.limit.covariance, limit, rtol=1e-12, atol=1e-15)
        np.testing.assert_array_equal(seen.full_rank, seen.row("gtcontrol (algebra)").X)
    C, Q = np.atleast_2d(C), np.zeros_like(A)
    direct = {
        "SciPy": asked(lambda: solve_continuous_are(A.T, C.T, Q, np.eye(len(C)))),
        "control.care": asked(lambda: control.care(A.T, C.T, Q, np.eye(len(C)))[0]),
        "control.lqe": asked(lambda: control.lqe(A, np.eye(len(A)), C, Q, np.eye(len(C)))[1]),
        "slycot": asked(lambda: control.care(A.T, C.T, Q, np.eye(len(C)), method="slycot")[0]),
    }
    for who, came in direct.items():
        row = seen.row(who)
        if isinstance(came, str):
            assert not row.answered
            assert row.message.startswith(came) or "not installed" in row.message
            assert row.finding == ("no answer" if limit is not None else "rightly refused")
        else:
            np.testing.assert_allclose(row.X, came, rtol=0, atol=1e-15)
            assert row.finding == ("right" if limit is not None else "wrong")
            if verdict is Verdict.MARGINAL:
                assert "without a word that it is marginal" in row.why
            if verdict is Verdict.CONTINUUM:
                assert "the start decides" in row.why


def test_what_is_on_the_axis_is_named():
    assert "eigenvalues ±1i of A lie on" in gt.compare(TURNING, I3).reason
    assert "the eigenvalue 0 of A lies on" in gt.compare(np.diag([1.0, 0.0]), I2).reason
    seen = gt.compare(np.diag([1.0, 2.0]), [[1.0, 0.0]])
    assert "λ = 2 in the direction (0, 1)" in seen.reason
    (mode,) = seen.hidden
    assert (mode.real, mode.imaginary, mode.property) == (2.0, 0.0, "detectability")
    np.testing.assert_allclose(mode.direction, [[0.0, 0.0], [1.0, 0.0]], atol=1e-15)


def test_the_hidden_direction_is_in_the_coordinates_of_the_user():
    T = np.array([[1.0, 0.4, -0.3], [0.2, 1.5, 0.6], [-0.5, 0.1, 0.8]])
    A = T @ np.diag([1.0, -1.0, 0.5]) @ np.linalg.inv(T)
    C = np.array([[1.0, 2.0, 0.0]]) @ np.linalg.inv(T)
    seen = gt.compare(A, C)
    assert seen.verdict is Verdict.UNBOUNDED
    (mode,) = seen.hidden
    assert mode.real == pytest.approx(0.5, rel=1e-10)
    v = mode.direction[:, 0]
    np.testing.assert_allclose(np.cross(v, T[:, 2] / np.linalg.norm(T[:, 2])), 0, atol=1e-9)
    # A stable mode that is not seen does no harm.
    calm = gt.compare(A, np.array([[1.0, 0.0, 3.0]]) @ np.linalg.inv(T))
    assert calm.verdict is Verdict.CONVERGES
    assert not calm.hidden


class TestContinuum:
    """A = diag(1, 0), C = [1 0]: P = S⁻¹ has P₂₂ constant, so the limit is diag(2, 1/P₂₂(0))."""

    A, C = np.diag([1.0, 0.0]), [[1.0, 0.0]]

    @given(st.floats(0.1, 10), st.floats(-0.95, 0.95), st.floats(0.1, 10))
    def test_the_schur_complement_is_what_remains(self, a, correlation, c):
        b = correlation * math.sqrt(a * c)
        limit = long_run(equation(self.A, self.C), np.linalg.cholesky([[a, b], [b, c]]))
        assert limit.verdict is Verdict.CONTINUUM
        np.testing.assert_allclose(
            limit.covariance, np.diag([2.0, c - b * b / a]), rtol=1e-9, atol=1e-9
        )

    def test_for_a_start(self):
        seen = gt.compare(self.A, self.C, start=law([[2.0, 0.5], [0.5, 1.0]]))
        np.testing.assert_allclose(seen.limit.covariance, np.diag([2.0, 0.875]), atol=1e-12)
        assert seen.row("gtcontrol (flow)").digits > 8
        assert seen.row("SciPy").finding == "wrong"
        # In the one case for which SciPy's answer is right it says so.
        seen = gt.compare(self.A, self.C, start=of([[1.0], [0.0]]))
        assert seen.row("SciPy").finding == "right"

    def test_unseen_turning_modes_turn(self):
        turns = gt.compare(SKEW, np.zeros((1, 2)), start=of([[1.0], [0.0]]))
        assert turns.verdict is Verdict.CONTINUUM
        assert turns.limit is None
        assert turns.period == pytest.approx(math.pi)
        np.testing.assert_allclose(turns.eigenvalues[:, 0], 1.0, rtol=1e-9)
        still = gt.compare(SKEW, np.zeros((1, 2)), start=law(3 * I2))
        np.testing.assert_allclose(still.limit.covariance, 3 * I2, rtol=1e-12)

    def test_unseen_modes_that_seen_ones_drive_grow(self):
        """s22' = -s22², s12' = s22 (1 - s12), s11' = s12 (2 - s12): s11 grows like t."""
        seen = gt.compare(JORDAN, [[0.0, 1.0]], start=law(I2), horizon=1000.0)
        assert seen.verdict is Verdict.UNBOUNDED
        assert "like a power of t" in seen.reason
        t = 1000.0
        # S⁻¹ = [[1, -t], [-t, t² + 1 + t]] for this A, C and S₀ = I.
        np.testing.assert_allclose(
            seen.final, np.linalg.inv([[1.0, -t], [-t, t * t + 1 + t]]), rtol=1e-7
        )
        free = gt.compare(JORDAN, [[0.0, 0.0]], start=law(I2))
        assert free.verdict is Verdict.UNBOUNDED


# -- limits of starts of any rank --------------------------------------------------------------

E5 = np.array([[1.0, 3.0], [-3.0, 1.0]])
E7 = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, -1.0], [1.0, 0.0, 0.5]])
E8 = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 3.0]])
K7 = -np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
K8 = -np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
R2 = np.sqrt(2.0)

#: A, C, factor of the start or None, limit, rate or None.
LIMITS = {
    "full rank": (np.array([[1.0, 2.0], [0.0, 3.0]]), I2, None, [[3.2, 2.4], [2.4, 4.8]], 2.0),
    "rank one": (np.array([[1.0, 2.0], [0.0, 3.0]]), I2, [[1.0], [0.3]], [[3, 3], [3, 3]], 2.0),
    "rank lost": (np.diag([1.0, -2.0]), [[1.0, 1.0]], I2, [[2, 0], [0, 0]], 2.0),
    "fastest mode": (np.diag([3.0, 1.0]), I2, [[1.0], [1.0]], [[6, 0], [0, 0]], 2.0),
    "both modes": (np.diag([3.0, 1.0]), I2, I2, [[6, 0], [0, 2]], 2.0),
    "not in the fastest mode": (np.diag([3.0, 1.0]), I2, [[0.0], [1.0]], [[0, 0], [0, 2]], 2.0),
    "no gap": (2 * I2, I2, [[1.0], [1.0]], [[2, 2], [2, 2]], 4.0),
    "no gap, other start": (2 * I2, I2, [[1.0], [0.0]], [[4, 0], [0, 0]], 4.0),
    "complex pair": (E5, np.diag([1.0, R2]), None, np.array([[124, -12], [-12, 116]]) / 89, 2.0),
    "a stable mode": (
        E7,
        root_of(K7),
        I3,
        [
            [1.03939775334225877, 0.631126798045279267, 0.577911496003737302],
            [0.631126798045279267, 2.40627289509275198, -0.847126870207467082],
            [0.577911496003737302, -0.847126870207467082, 1.03079227844708131],
        ],
        2 * 0.0921935857038307,
    ),
    "three modes": (
        E8,
        root_of(K8),
        None,
        np.array([[94, 62, -40], [62, 166, -80], [-40, -80, 160]]) / 35,
        2.0,
    ),
    "three modes, rank one": (
        E8,
        root_of(K8),
        [[1.0], [1.0], [1.0]],
        8 / 7 * np.outer([0.5, 1, 1], [0.5, 1, 1]),
        None,
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_to_the_digits(name):
    A, C, factor, expected, rate = LIMITS[name]
    start = None if factor is None else of(factor)
    seen = gt.compare(A, C, start=start)
    assert seen.verdict is Verdict.CONVERGES
    S = seen.limit.covariance
    size = np.abs(expected).max()
    np.testing.assert_allclose(S, expected, rtol=0, atol=2e-14 * size)
    assert np.linalg.norm(S - expected) <= 10 * (seen.error_estimate + 1e-15) * np.linalg.norm(S)
    if rate is not None:
        assert seen.rate == pytest.approx(rate, rel=1e-9)
    assert seen.limit.rank == np.linalg.matrix_rank(expected, tol=1e-9)
    assert seen.row("gtcontrol (flow)").digits > 5
    assert seen.agreement > 9
    assert seen.row("gtcontrol (algebra)").finding == "right"


def test_what_full_rank_starts_do_is_said_beside():
    seen = gt.compare(np.array([[1.0, 2.0], [0.0, 3.0]]), I2, start=of([[1.0], [0.3]]))
    np.testing.assert_allclose(seen.full_rank, [[3.2, 2.4], [2.4, 4.8]], rtol=1e-14)
    assert "Full-rank starts tend to the stabilising root" in seen.reason
    row = seen.row("SciPy")
    assert (row.finding, row.root) == ("right for full rank", "the stabilising solution")
    ours = seen.row("gtcontrol (algebra)")
    assert ours.abscissa == pytest.approx(1.0)
    assert ours.root.startswith("another solution")


def test_a_start_without_a_part_in_the_fastest_mode():
    """In coordinates in which rounding gives it one, the flow leaves: the limit is told still."""
    A, start = np.diag([3.0, 1.0]), np.array([[0.0], [1.0]])
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    for T in (np.eye(2), turn):
        seen = gt.compare(T @ A @ T.T, I2, start=of(T @ start))
        assert seen.verdict is Verdict.CONVERGES
        np.testing.assert_allclose(seen.limit.covariance, T @ np.diag([0.0, 2.0]) @ T.T, atol=1e-13)
        assert "arbitrarily small changes of the start" in seen.reason
    small = gt.compare(A, I2, start=of([[1e-7], [1.0]]))
    np.testing.assert_allclose(small.limit.covariance, np.diag([6.0, 0.0]), atol=1e-13)
    assert small.row("gtcontrol (flow)").digits > 5
    assert "arbitrarily small" not in small.reason


def test_a_pair_that_the_rank_splits_turns():
    seen = gt.compare(E5, np.diag([1.0, R2]), start=of([[1.0], [0.0]]))
    assert seen.verdict is Verdict.PERIODIC
    assert seen.limit is None
    assert seen.period == pytest.approx(math.pi / 3, rel=1e-12)
    e = equation(E5, np.diag([1.0, R2]))
    first, second = (flow_at(e, np.array([[1.0], [0.0]]), 8 + k * seen.period) for k in (0, 1))
    np.testing.assert_allclose(first, second, rtol=1e-5)
    assert seen.row("SciPy").finding == "right for full rank"


def test_marginal_in_time():
    """S = diag(1, 1/(1 + 2t)) for A = diag(1, 0), K = -2 I, S₀ = I."""
    seen = gt.compare(np.diag([1.0, 0.0]), R2 * I2, start=law(I2), horizon=50.0)
    np.testing.assert_allclose(seen.limit.covariance, np.diag([1.0, 0.0]), rtol=1e-14)
    np.testing.assert_allclose(seen.final, np.diag([1.0, 1 / 101]), rtol=1e-10)
    assert seen.rate == 0
    assert seen.row("gtcontrol (flow)").finding == "on its way"


def test_unbounded_in_time():
    """s22 = exp(4t) s22(0) for diagonal data."""
    seen = gt.compare(
        np.diag([1.0, 2.0]), [[1.0, 0.0]], start=law(np.diag([1.0, 3.0])), horizon=2.0
    )
    assert seen.verdict is Verdict.UNBOUNDED
    assert seen.rate == pytest.approx(4.0)
    assert seen.final[1, 1] == pytest.approx(3 * math.exp(8.0), rel=1e-10)
    # A start without variance in the mode that is not seen is not harmed by it.
    calm = gt.compare(np.diag([1.0, 2.0]), [[1.0, 0.0]], start=of([[1.0], [0.0]]))
    assert calm.verdict is Verdict.CONVERGES
    np.testing.assert_allclose(calm.limit.covariance, np.diag([2.0, 0.0]), atol=1e-14)


@settings(max_examples=40)
@given(seeds, st.integers(1, 3), st.integers(0, 3), st.integers(0, 3), st.integers(1, 3))
def test_random_starts_go_where_is_said(seed, d, rank, driven, p):
    """Any rank of start, noise and measurement, against the flow in 60 digits."""
    rng = np.random.default_rng(seed)
    assume(rank <= d and driven <= d)
    G = rng.standard_normal((d, driven))
    e = equation(rng.standard_normal((d, d)), rng.standard_normal((p, d)), G @ G.T)
    L = rng.standard_normal((d, rank))
    limit = long_run(e, L)
    if limit.verdict is Verdict.PERIODIC:
        assert 0 < rank < d
        return
    assert limit.verdict is Verdict.CONVERGES
    assume(limit.rate > 0.05 and limit.error < 1e-10)
    time = min(40 / limit.rate, 300.0)
    if math.isinf(limit.rate):
        time = 1.0
    S = flow_at(e, L, time)
    size = max(np.linalg.norm(S), np.linalg.norm(L) ** 2 * 1e-6, 1e-12)
    np.testing.assert_allclose(limit.covariance, S, rtol=0, atol=1e-9 * size)


@settings(max_examples=12)
@given(seeds, st.integers(2, 3))
def test_the_rate_is_that_of_the_flow(seed, d):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, d + 1))
    values = np.sort(rng.uniform(-2, 2, d))[::-1]
    assume(np.min(np.abs(np.diff(values)), initial=9) > 0.3 and np.min(np.abs(values)) > 0.3)
    T = rng.standard_normal((d, d))
    assume(np.linalg.cond(T) < 30)
    e = equation(T @ np.diag(values) @ np.linalg.inv(T), rng.standard_normal((d, d)))
    L = rng.standard_normal((d, rank))
    limit = long_run(e, L)
    assume(0 < limit.rate < 8)
    # Eigenvalues are real, so errors fall without turning; late enough, other rates are gone.
    with mpmath.workdps(digits_for(e, 45 / limit.rate)):
        ends = [exact_flow(e, L, (40 + k) / limit.rate) for k in (0, 1, 2)]
        first, second = (mpmath.mnorm(ends[k + 1] - ends[k], "f") for k in (0, 1))
        assert float(mpmath.log(first / second)) == pytest.approx(1.0, abs=0.1)


@given(seeds, st.integers(1, 4))
def test_coordinates_and_units_of_time_do_not_matter(seed, d):
    rng = np.random.default_rng(seed)
    A, C = rng.standard_normal((d, d)), rng.standard_normal((2, d))
    L = rng.standard_normal((d, int(rng.integers(1, d + 1))))
    T = rng.standard_normal((d, d))
    assume(np.linalg.cond(T) < 20)
    limit = long_run(equation(A, C), L)
    assume(limit.error < 1e-11 and limit.rate > 1e-2)
    inverse = np.linalg.inv(T)
    moved = long_run(equation(T @ A @ inverse, C @ inverse), T @ L)
    faster = long_run(equation(8 * A, C, R=np.eye(2) / 8), L)
    assert moved.verdict is faster.verdict is limit.verdict
    if limit.covariance is None:
        return
    expected = T @ limit.covariance @ T.T
    np.testing.assert_allclose(
        moved.covariance, expected, rtol=0, atol=1e-8 * np.linalg.norm(expected) + 1e-300
    )
    np.testing.assert_allclose(
        faster.covariance, limit.covariance, rtol=0, atol=1e-9 * np.linalg.norm(limit.covariance)
    )
    assert faster.rate == pytest.approx(8 * limit.rate, rel=1e-6)


# -- process noise -------------------------------------------------------------------------------

POINT2, POINT1 = of(np.zeros((2, 0))), of(np.zeros((1, 0)))


def test_the_double_integrator():
    seen = gt.compare(JORDAN, [[1.0, 0.0]], noise=np.diag([0.0, 1.0]), start=POINT2, horizon=2.0)
    expected = [
        [1.2042799298675721817, 0.98980102938985887469],
        [0.98980102938985887469, 1.295640240565472075],
    ]
    np.testing.assert_allclose(seen.final, expected, rtol=1e-11)
    np.testing.assert_allclose(seen.limit.covariance, [[R2, 1.0], [1.0, R2]], rtol=1e-15)
    assert seen.verdict is Verdict.CONVERGES
    assert seen.rate == pytest.approx(R2, rel=1e-12)
    for who in ("control.care", "control.lqe", "SciPy"):
        assert seen.row(who).finding == "right"
        assert seen.row(who).digits > 13


def test_the_hyperbolic_tangent():
    p = gt.Parameters(V=[[1.0]], B=[[-0.5]], noise=[[1.0]])
    for t in (0.3, 1.0, 2.5):
        seen = gt.compare(p, start=POINT1, horizon=t)
        assert seen.final[0, 0] == pytest.approx(math.tanh(t), rel=1e-10)
    assert seen.limit.covariance[0, 0] == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize(
    ("A", "K", "Q", "time"),
    [
        ([[0.0]], [[1.0]], [[1.0]], math.pi / 2),
        ([[0.5]], [[1.0]], [[0.25]], 2.0),
        (JORDAN, I2, I2, 1.2166954297563273433),
    ],
)
def test_conjugate_points(A, K, Q, time):
    d = len(A)
    p = gt.Parameters(A=A, V=np.eye(d), B=0.5 * np.array(K), noise=Q)
    seen = gt.compare(p, start=of(np.zeros((d, 0))))
    assert seen.verdict is Verdict.BLOWS_UP
    assert seen.lower <= time * (1 + 1e-15)
    assert seen.upper >= time * (1 - 1e-15)
    assert (seen.upper - seen.lower) / time < 1e-11
    assert "K has the positive eigenvalue 1 in the direction" in seen.reason
    assert "no Kalman filter" in seen.reason
    before = gt.compare(p, start=of(np.zeros((d, 0))), horizon=0.5 * time)
    assert before.agreement > 10


def test_below_the_threshold_there_is_no_conjugate_point():
    """s' = -2s + 2s²: from 1/2 to 0, from 1 nowhere, from 2 to infinity at ln(2)/2."""
    p = gt.Parameters(A=[[-1.0]], V=[[1.0]], B=[[1.0]])
    small = gt.compare(p, start=law([[0.5]]))
    assert small.verdict is Verdict.CONVERGES
    assert not small.limit.covariance.any()
    at = gt.compare(p, start=law([[1.0]]))
    assert at.verdict is Verdict.UNDECIDED
    assert not at.answered
    beyond = gt.compare(p, start=law([[2.0]]))
    assert beyond.verdict is Verdict.BLOWS_UP
    assert beyond.upper == pytest.approx(math.log(2) / 2, rel=1e-11)


def test_a_game_that_settles():
    """s' = -4s + s² + 1 from 0: to the smaller root 2 - √3, by back ends as well."""
    p = gt.Parameters(A=[[-2.0]], V=[[1.0]], B=[[0.5]], noise=[[1.0]])
    seen = gt.compare(p, start=POINT1)
    assert seen.verdict is Verdict.CONVERGES
    assert seen.limit.covariance[0, 0] == pytest.approx(2 - math.sqrt(3), rel=1e-13)
    assert seen.row("SciPy").finding == "right"


def test_noise_that_does_not_reach_an_unstable_mode():
    """From 0 the mode that is not driven stays out; full-rank starts take it in."""
    A, C, Q = np.diag([1.0, -1.0]), [[1.0, 1.0]], np.diag([0.0, 1.0])
    least = gt.compare(A, C, noise=Q, start=POINT2)
    full = gt.compare(A, C, noise=Q)
    np.testing.assert_allclose(
        least.limit.covariance, np.diag([0.0, R2 - 1]), rtol=1e-12, atol=1e-15
    )
    X = solve_continuous_are(A.T, np.array(C).T, Q, np.eye(1))
    np.testing.assert_allclose(full.limit.covariance, X, rtol=1e-12)
    assert least.row("SciPy").finding == "right for full rank"
    assert {mode.property for mode in least.hidden} == {"stabilisability"}


def test_noise_that_drives_an_unseen_mode():
    seen = gt.compare(np.diag([1.0, 0.0]), [[1.0, 0.0]], noise=np.diag([0.0, 1.0]), start=POINT2)
    assert seen.verdict is Verdict.UNBOUNDED
    assert "as noise drives the mode λ = 0 in the direction (0, 1)" in seen.reason


# -- back ends that err --------------------------------------------------------------------------


class TestBackEnds:
    A, C = np.array([[1.0, 2.0], [0.0, 3.0]]), I2

    def forged(self, monkeypatch, X):
        monkeypatch.setattr(backends, "solve_continuous_are", lambda *arguments: X)
        return gt.compare(self.A, self.C).row("SciPy")

    @pytest.mark.parametrize(
        "X",
        [np.zeros((2, 2)), np.diag([2.0, 0.0]), np.array([[3.0, 3.0], [3.0, 3.0]])],
    )
    def test_another_root_is_caught_though_its_residual_vanishes(self, monkeypatch, X):
        row = self.forged(monkeypatch, X)
        assert row.residual < 1e-15
        assert row.finding == "wrong"
        assert "another root" in row.why
        assert row.abscissa > 0

    def test_what_solves_nothing_is_caught(self, monkeypatch):
        row = self.forged(monkeypatch, I2)
        assert row.finding == "wrong"
        assert row.why == "does not solve the equation"

    def test_what_is_not_finite_is_no_answer(self, monkeypatch):
        row = self.forged(monkeypatch, np.full((2, 2), np.nan))
        assert not row.answered
        assert row.message == "returned numbers that are not finite"

    def test_few_digits_are_told(self, monkeypatch):
        right = np.array([[3.2, 2.4], [2.4, 4.8]])
        row = self.forged(monkeypatch, right * (1 + 1e-6))
        assert row.finding == "right"
        assert row.digits == pytest.approx(6.0, abs=0.1)
        assert 1e-7 < row.error < 1e-5

    def test_prints_and_warnings_do_not_reach_the_user(self, monkeypatch, capsys, recwarn):
        def loud(*arguments):
            print("noise")
            warnings.warn("more noise", stacklevel=1)
            raise np.linalg.LinAlgError("two\nlines")

        monkeypatch.setattr(backends, "solve_continuous_are", loud)
        row = gt.compare(self.A, self.C).row("SciPy")
        assert row.message == "LinAlgError: two lines"
        assert capsys.readouterr() == ("", "")
        assert not recwarn.list

    def test_a_missing_slycot_is_said(self, monkeypatch):
        monkeypatch.setattr("control.exception.slycot_check", lambda: False)
        monkeypatch.setattr("control.mateqn.slycot_check", lambda: False)
        seen = gt.compare(self.A, self.C)
        assert seen.row("slycot").message == "not installed"
        assert seen.row("control.care").finding == "right"
        lines = [line.split() for line in seen.summary().splitlines()]
        assert ["slycot", "not", "installed"] in lines

    def test_ill_conditioned_answers_are_worth_their_digits(self):
        """A = diag(1..8), one measurement of all: S = Y⁻¹ with Y_ij = 1/(i + j), of integers."""
        seen = gt.compare(np.diag(np.arange(1.0, 9.0)), np.ones((1, 8)))
        for S in (seen.limit.covariance, seen.row("gtcontrol (algebra)").X):
            assert S[0, 0] == pytest.approx(2592, rel=1e-14)
            assert S[7, 7] == pytest.approx(662547600, rel=1e-14)
            assert np.trace(S) == pytest.approx(46665405720, rel=1e-14)
        assert seen.error_estimate < 1e-14
        for who in ("SciPy", "control.care"):
            row = seen.row(who)
            assert row.finding == "right"
            assert row.digits < 9


def test_a_limit_that_the_flow_contradicts_is_not_claimed(monkeypatch):
    import gtcontrol.comparison.kalman.run as engine

    wrong = Limit(Verdict.CONVERGES, np.diag([1.0, 1.0]), 1e-16, 2.0, base=np.diag([1.0, 1.0]))
    monkeypatch.setattr(engine, "long_run", lambda *arguments: wrong)
    seen = gt.compare(np.array([[1.0, 2.0], [0.0, 3.0]]), I2, start=law(I2))
    assert seen.verdict is Verdict.UNDECIDED
    assert not seen.answered
    assert seen.row("gtcontrol (algebra)").finding == "contradicts"
    assert rows.OURS[0] == "gtcontrol (algebra)"


# -- starts far from the limit, and flows that have not arrived ---------------------------------

SPIRAL = np.array([[0.2, 1.0], [-1.0, 0.2]])
SMALL = {
    "spiral": (SPIRAL, [[1.0, 0.0]], of(1e-2 * I2), None),
    "scalar": ([[1.0]], [[1.0]], of([[1e-7**0.5]]), None),
    "two paces": (np.diag([1.0, 0.1]), I2, of(1e-4 * I2), None),
    "small in the slow mode only": (np.diag([1.0, 0.1]), I2, of(np.diag([1.0, 1e-9])), None),
    "fast": (1e8 * SPIRAL, [[1.0, 0.0]], of(I2), None),
    "little noise": (SPIRAL, [[1.0, 0.0]], POINT2, 1e-10 * I2),
}


@pytest.mark.parametrize("name", SMALL)
def test_the_horizon_waits_for_small_starts(name):
    A, C, start, noise = SMALL[name]
    seen = gt.compare(A, C, noise=noise, start=start)
    assert seen.verdict is Verdict.CONVERGES
    for row in seen.table[:2]:
        assert row.finding == "right"
    assert seen.row("gtcontrol (flow)").digits > 7


def test_a_flow_on_its_way_is_no_contradiction():
    """s' = 2s - s² from s₀ = 1e-14: at t = 5 it is still s₀ exp(10) in the main."""
    seen = gt.compare([[1.0]], [[1.0]], start=of([[1e-7]]), horizon=5.0)
    assert seen.verdict is Verdict.CONVERGES
    grown = 1e-14 * math.exp(10.0)
    assert seen.final[0, 0] == pytest.approx(grown / (1 + grown / 2), rel=1e-10)
    assert seen.row("gtcontrol (flow)").finding == "on its way"
    # At the saddle diag(2, 0) it changes hardly, but leaves it in the end.
    held = gt.compare(np.diag([1.0, 0.1]), I2, start=of(np.diag([1.0, 1e-9])), horizon=100.0)
    assert held.verdict is Verdict.CONVERGES
    assert held.row("gtcontrol (flow)").finding == "on its way"


def test_a_flow_that_disagrees_with_its_closed_form_is_a_contradiction(monkeypatch):
    from dataclasses import replace

    import gtcontrol.comparison.kalman.run as engine

    def forged(*arguments):
        course = follow(*arguments)
        return replace(course, final=0.5 * course.final, agreement=0.3)

    follow = engine.follow
    monkeypatch.setattr(engine, "follow", forged)
    assert gt.compare([[1.0]], [[1.0]], start=of([[1.0]])).verdict is Verdict.UNDECIDED


def test_a_split_block_does_not_deny_the_stabilising_root():
    A = np.array([[1.0, 1.0], [0.0, 1.0]])
    seen = gt.compare(A, I2, start=of([[0.0], [1.0]]))
    assert seen.verdict is Verdict.MARGINAL
    assert "No root of the algebraic equation is stabilising" not in seen.reason
    assert "Full-rank starts tend to the stabilising root" in seen.reason
    root = seen.row("SciPy").X
    assert np.linalg.eigvals(A - root).real.max() < 0
    on_axis = gt.compare(np.diag([1.0, 0.0]), I2)
    assert "No root of the algebraic equation is stabilising." in on_axis.reason


def test_what_leaves_the_range_of_floats_is_said():
    seen = gt.compare(np.diag([1.0, 2.0]), [[1.0, 0.0]], horizon=200.0)
    assert seen.verdict is Verdict.UNBOUNDED
    assert seen.horizon < 200
    assert "only, as the covariance leaves the range of floats there." in seen.reason
    assert f"followed to t = {seen.horizon:.4g}" in seen.reason


def test_a_verdict_does_not_rest_on_a_flow_that_has_not_arrived():
    rng = np.random.default_rng(3)
    seen = gt.compare(rng.normal(size=(20, 20)), rng.normal(size=(3, 20)), horizon=0.2)
    assert seen.verdict is Verdict.CONVERGES
    ours = seen.row("gtcontrol (algebra)")
    assert ours.finding == "right"
    assert ours.why.startswith("rests on the residual")
    assert "the flow is not there yet at t = 0.2" in ours.why
    # Of a singular limit the eigenvalues that vanish are of rounding, and of any sign.
    assert ours.rank < 20
    for name in ("gtcontrol (algebra)", "SciPy", "control.care", "control.lqe"):
        assert seen.row(name).definite == "POSITIVE_SEMIDEFINITE"
    low = rows._signs
    judged = judge(equation(-I3, I3).algebraic, np.diag([1.0, 0.0, -1e-3]))
    assert low(judged, 1e-15) is Definiteness.INDEFINITE


def test_a_flow_that_does_not_move_confirms_nothing():
    free = gt.compare(I2, I2, horizon=1e-12)
    assert free.row("gtcontrol (flow)").finding == "on its way"
    assert "agrees" not in free.row("gtcontrol (algebra)").why
    still = gt.compare(I2, I2, start=of(R2 * I2))
    assert "did not move: the start is the limit" in still.row("gtcontrol (flow)").why
    assert "confirms only that it stays" in still.row("gtcontrol (algebra)").why
    assert gt.compare(I2, I2).row("gtcontrol (flow)").digits > 8


def test_results_are_named_in_one_line():
    seen = gt.compare(I2, I2)
    assert repr(seen) == f"Comparison(CONVERGES, states=2, rank 2, error {seen.error_estimate:.1e})"
    assert repr(gt.compare([[1.0]], [[0.0]])) == "Comparison(UNBOUNDED, states=1)"
    layers = gt.compare_layers(gt.KalmanModel(I2, I2), law(I2), 0.1)
    assert repr(layers).startswith("LayerComparison(states=2, step=0.1, difference ")
    assert len(repr(layers)) < 120


def test_what_is_right_for_full_rank_is_compared_with_that():
    from gtcontrol.reporting.views import view

    seen = gt.compare(np.diag([1.0, -2.0]), [[1.0, 1.0]], start=of([[0.0], [1.0]]))
    row = seen.row("SciPy")
    assert row.finding == "right for full rank"
    assert row.digits > 14
    facts = {fact.label: fact.value for fact in view(seen).facts}
    assert "digits of the limit of full-rank starts" in facts["SciPy"]
    assert facts["gtcontrol (algebra)"].startswith("right: 16.0 digits")


def test_the_rank_of_a_start_is_told_beside_the_dimension():
    """A variance of 1e-10 of the largest counts as none where the start is a covariance."""
    A = np.diag([1.0, 2.0])
    thin = gt.compare(A, I2, start=law(np.diag([1.0, 1e-10])))
    assert "this start (rank 1 of 2)" in thin.reason
    full = gt.compare(A, I2, start=of(np.diag([1.0, 1e-5])))
    assert "this start (rank 2) converges to a covariance of rank 2" in full.reason


# -- inputs ----------------------------------------------------------------------------------------


def test_one_equation_in_three_forms():
    A, C, R = np.array([[0.3, 1.0], [-1.0, 0.2]]), np.array([[1.0, 0.5]]), np.array([[0.25]])
    model = gt.KalmanModel(A, C, R)
    given = gt.compare(A, C, R)
    for other in (gt.compare(model), gt.compare(model.parameters(-2.0))):
        np.testing.assert_allclose(other.limit.covariance, given.limit.covariance, rtol=1e-12)
        assert other.verdict is given.verdict
    as_number = gt.compare(A, [1.0, 0.5], 0.25)
    np.testing.assert_array_equal(as_number.limit.covariance, given.limit.covariance)


def test_one_dimension():
    assert gt.compare([[2.0]], [[1.0]]).limit.covariance[0, 0] == pytest.approx(4.0)
    assert gt.compare([[-2.0]], [[1.0]]).limit.rank == 0
    assert gt.compare([[0.0]], [[1.0]]).verdict is Verdict.MARGINAL
    assert gt.compare([[0.0]], [[0.0]]).verdict is Verdict.CONTINUUM
    assert gt.compare([[1.0]], [[0.0]]).verdict is Verdict.UNBOUNDED


def test_nothing_is_measured():
    calm = gt.compare(-I2, np.zeros((1, 2)))
    assert calm.verdict is Verdict.CONVERGES
    assert not calm.limit.covariance.any()
    noisy = gt.compare(-I2, np.zeros((1, 2)), noise=np.diag([1.0, 4.0]))
    np.testing.assert_allclose(noisy.limit.covariance, np.diag([0.5, 2.0]), rtol=1e-14)
    none = gt.compare(gt.Parameters(A=-I2, noise=np.diag([1.0, 4.0])))
    np.testing.assert_allclose(none.limit.covariance, np.diag([0.5, 2.0]), rtol=1e-14)


@pytest.mark.parametrize("size", [1e-8, 1e8])
def test_large_and_small_numbers(size):
    """In other units of time and of the state the answer is the same."""
    A, C = np.array([[1.0, 2.0], [0.0, 3.0]]), I2
    for a, c, unit in ((size, 1.0, size), (1.0, size, size**-2), (size, size, 1 / size)):
        seen = gt.compare(a * A, c * C)
        assert seen.verdict is Verdict.CONVERGES
        expected = unit * np.array([[3.2, 2.4], [2.4, 4.8]])
        np.testing.assert_allclose(seen.limit.covariance, expected, rtol=1e-12)
        assert seen.row("SciPy").finding == "right"
    mixed = gt.compare(np.diag([1e8, 1e-8]), np.diag([1e8, 1e-8]))
    expected = np.diag([2e-8, 2e8])
    np.testing.assert_allclose(np.diag(mixed.limit.covariance), np.diag(expected), rtol=1e-10)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        ((I2,), {}, InvalidShape, "`C` is missing"),
        ((I2, [1.0]), {}, InvalidShape, "2 columns"),
        ((1j * I2, I2), {}, InvalidShape, "real numbers"),
        ((I2, I2, [[np.nan, 0.0], [0.0, 1.0]]), {}, NotFinite, "`R`"),
        ((I2, I2), {"start": "zero"}, InvalidShape, "`start` must be a Gaussian"),
        ((I2, I2), {"start": law(I3)}, InvalidShape, "dimension 3, but `A` has order 2"),
        ((I2, I2), {"horizon": 0.0}, GtcontrolError, "`horizon`"),
        ((gt.KalmanModel(I2, I2), I2), {}, InvalidShape, "part of the KalmanModel"),
        ((gt.Parameters(V=I2, B=I2),), {}, InvalidMethod, "give `start`"),
        (
            (gt.Parameters(V=[[1.0, 1.0], [0.0, 1.0]], B=-I2),),
            {},
            InvalidMethod,
            "multiple of the identity",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, options, error, words):
    with pytest.raises(error, match=words) as caught:
        gt.compare(*arguments, **options)
    assert "\n" not in str(caught.value)


# -- modes -----------------------------------------------------------------------------------------


class TestModes:
    def test_groups_know_rounding_from_slowness(self):
        def counts(A):
            s = groups(np.array(A, dtype=float))
            return s.unstable, s.axis, s.stable

        assert counts(np.diag([1.0, 1e-14])) == (2, 0, 0)
        assert counts(np.diag([1.0, 0.0])) == (1, 1, 0)
        assert counts(JORDAN) == (0, 2, 0)
        assert counts(np.diag(np.ones(2), 1)) == (0, 3, 0)
        rng = np.random.default_rng(2)
        T = rng.standard_normal((3, 3))
        assert counts(T @ np.diag([1.0, 0.0, -1.0]) @ np.linalg.inv(T)) == (1, 1, 1)
        assert counts(T @ np.diag([1.0, 1e-9, -1.0]) @ np.linalg.inv(T)) == (2, 0, 1)

    @given(seeds, st.integers(2, 5))
    def test_hidden_modes_are_found_in_any_coordinates(self, seed, d):
        rng = np.random.default_rng(seed)
        T = rng.standard_normal((d, d))
        assume(np.linalg.cond(T) < 50)
        values = np.arange(1.0, d + 1)
        seen = rng.standard_normal((2, d))
        seen[:, 0] = 0.0
        inverse = np.linalg.inv(T)
        found = hidden(T @ np.diag(values) @ inverse, seen @ inverse)
        assert len(found) == 1
        assert found[0].value == pytest.approx(1.0, rel=1e-9)
        v = np.abs(found[0].direction @ T[:, 0]) / np.linalg.norm(T[:, 0])
        assert v == pytest.approx(1.0, rel=1e-9)

    def test_hull(self):
        A = np.diag([1.0, 2.0, 3.0])
        assert hull(A, np.array([[1.0], [1.0], [0.0]])).shape == (3, 2)
        assert hull(A, np.array([[1.0], [0.0], [0.0]])).shape == (3, 1)
        assert hull(A, np.zeros((3, 1))).shape == (3, 0)
        assert hull(A, np.ones((3, 1))).shape == (3, 3)


# -- process noise without noise -----------------------------------------------------------------


class TestRealiseNoise:
    @pytest.mark.parametrize("V", [-I2, 0.7 * I2, np.array([[-1.0, 0.2], [0.1, -0.5]])])
    def test_the_laws_agree_to_integration_error(self, V):
        p = gt.Parameters(
            A=[[0.0, 1.0], [-1.0, 0.1]],
            V=V,
            B=-np.sign(V[0, 0]) * np.array([[0.5, 0.2], [0.0, 0.5]]),
            b=[1.0, -0.5],
            noise=[[0.2, 0.1], [0.1, 0.3]],
        )
        start = gt.Gaussian([1.0, 2.0], [[1.0, 0.0], [0.5, 0.3]])
        quiet = gt.realise_noise(p, start, 1.5)
        assert not quiet.noisy
        made, wanted = gt.simulate(start, quiet), gt.simulate(start, p, 1.5)
        for t in (0.4, 1.5):
            one, other = made.at(t), wanted.at(t)
            np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-9)
            np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9)
        assert made.final.rank == 2

    @settings(max_examples=10)
    @given(seeds, st.integers(1, 3))
    def test_random_filters(self, seed, d):
        rng = np.random.default_rng(seed)
        G = rng.standard_normal((d, d))
        model = gt.KalmanModel(
            rng.standard_normal((d, d)), rng.standard_normal((1, d)), None, G @ G.T
        )
        start = gt.Gaussian(rng.standard_normal(d), rng.standard_normal((d, d)) + 2 * np.eye(d))
        assume(np.linalg.cond(start.factor) < 100)
        p = model.parameters()
        made = gt.simulate(start, gt.realise_noise(p, start, 0.7)).final
        e = equation(model.A, model.C, model.noise)
        expected = flow_at(e, start.factor, 0.7)
        np.testing.assert_allclose(
            made.covariance, expected, rtol=0, atol=1e-8 * np.linalg.norm(expected)
        )

    def test_in_the_range_of_a_singular_start(self):
        p = gt.Parameters(A=np.diag([-1.0, 1.0]), noise=np.diag([2.0, 0.0]))
        start = of([[0.5], [0.0]])
        made = gt.simulate(start, gt.realise_noise(p, start, 1.0)).final
        assert made.rank == 1
        assert made.covariance[0, 0] == pytest.approx(1 - 0.75 * math.exp(-2.0), rel=1e-9)

    @pytest.mark.parametrize(
        ("A", "V"), [(np.zeros((2, 2)), -I2), (JORDAN.T, -I2), (JORDAN.T, [[-1.0, 0.3], [0.0, -1]])]
    )
    def test_noise_that_raises_the_rank_is_refused(self, A, V):
        """At once, or because A carries it out of the range of the start."""
        Q = np.diag([0.0, 1.0]) if not np.any(A) else np.diag([1.0, 0.0])
        p = gt.Parameters(A=A, V=V, B=0.5 * I2, noise=Q)
        with pytest.raises(RankMismatch, match=r"[Nn]o Transformer without noise does"):
            gt.realise_noise(p, of([[1.0], [0.0]]), 1.0)

    def test_other_refusals(self):
        start = of([[1.0]])
        with pytest.raises(InvalidMethod, match="no process noise"):
            gt.realise_noise(gt.Parameters(A=[[1.0]]), start, 1.0)
        blow = gt.Parameters(V=[[1.0]], B=[[0.5]], noise=[[1.0]])
        with pytest.raises(InvalidMethod, match="cannot be followed to t = 5"):
            gt.realise_noise(blow, start, 5.0)
        with pytest.raises(GtcontrolError, match="dimension 1"):
            gt.realise_noise(gt.Parameters(A=I2, noise=I2), start, 1.0)
        with pytest.raises(InvalidShape, match="must be Parameters"):
            gt.realise_noise("noise", start, 1.0)


# -- saving and telling --------------------------------------------------------------------------

SAVED = {
    "filter": lambda: gt.compare(np.diag([1.0, -1.0]), I2, name="a filter"),
    "start": lambda: gt.compare(E5, I2, start=of([[1.0], [0.0]]), horizon=3.0),
    "noise": lambda: gt.compare(JORDAN, [[1.0, 0.0]], noise=np.diag([0.0, 1.0]), start=POINT2),
    "hidden": lambda: gt.compare(np.diag([1.0, 2.0]), [[1.0, 0.0]]),
    "blow-up": lambda: gt.compare(gt.Parameters(V=I2, B=I2), start=law(I2)),
    "nothing": lambda: gt.compare(gt.Parameters(A=-I2)),
}


@pytest.mark.parametrize("name", SAVED)
def test_saving_loses_nothing(name, tmp_path):
    seen = SAVED[name]()
    seen.save(tmp_path / "saved")
    again = gt.load(tmp_path / "saved")
    same(seen, again)
    assert again.summary() == seen.summary()
    figures = again.plot()
    assert set(figures) == {"flow", "spectrum"}
    page = seen.report(tmp_path / "page.html").read_text(encoding="utf-8")
    for words in ("Who says what", "control.care", "SciPy", "slycot", "gtcontrol (flow)"):
        assert words in page


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("verdict", "MAYBE", "expected one of CONVERGES"),
        ("table", 3, "`table` is no list"),
        ("table", [{}], "missing"),
        ("hidden", None, "`hidden` is no list"),
        ("rate", "fast", "`rate`"),
    ],
)
def test_damaged_files_are_refused(key, value, words, tmp_path):
    import json

    SAVED["filter"]().save(tmp_path)
    path = tmp_path / "result.json"
    values = json.loads(path.read_text())
    values[key] = value
    path.write_text(json.dumps(values))
    with pytest.raises(ResultFileInvalid, match=words):
        gt.load(tmp_path)


def test_a_row_that_is_not_there():
    with pytest.raises(ResultFileInvalid, match="no row 'MATLAB'"):
        SAVED["filter"]().row("MATLAB")


def test_the_code_of_a_report_computes_it_again():
    for name in ("filter", "start", "noise"):
        from gtcontrol.reporting.views import view

        seen, names = SAVED[name](), {}
        exec(view(seen).code.replace("print", "str"), names)
        assert names["seen"].verdict is seen.verdict
        np.testing.assert_allclose(names["seen"].final, seen.final, rtol=1e-12)

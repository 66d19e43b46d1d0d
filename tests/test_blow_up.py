"""Finite-time blow-up against closed forms; reference values carry 40-digit computations."""

import numpy as np
import pytest
import scipy.integrate
from hypothesis import assume, given, settings
from scipy.linalg import expm

import gtcontrol as gt
from gtcontrol.status import Status
from tests.oracles import scalar_attention
from tests.strategies import factor, generators

I2 = np.eye(2)
SHIFT = np.array([[0.0, 1.0], [0.0, 0.0]])
ROTATION = np.array([[0.0, 3.0], [-3.0, 0.0]])
SADDLE = np.diag([1.0, -1.0])
STABLE = np.array([[-1.0, 1.0], [0.0, -2.0]])
SPIRAL = np.array([[-0.1, 2.0], [-2.0, -0.1]])
MIXED = np.diag([1.0, -0.5])
GENERAL = np.array([[0.5, 1.0, 0.0], [0.0, -0.3, 2.0], [-1.0, 0.0, 0.2]])
GENERAL_B = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 2.0]])
GENERAL_L = np.array([[0.5, 0.0], [0.25, 0.5], [0.0, -0.25]])
THRESHOLD = 1.6583592135001261822


def isotropic(s):
    return np.sqrt(s) * I2


def run(start_factor, horizon, **parameters):
    L = np.atleast_2d(np.asarray(start_factor, dtype=float))
    return gt.simulate(gt.Gaussian(np.zeros(L.shape[0]), L), gt.Parameters(**parameters), horizon)


def scalar_value(A, K, L0, horizon, v=1.0):
    """Run with V = v I and the symmetric B that gives v (B + Bᵀ) = K."""
    A, K = np.atleast_2d(A).astype(float), np.atleast_2d(K).astype(float)
    return run(L0, horizon, A=A, B=K / (2 * v), V=v * np.eye(A.shape[0]))


def assert_blows_up(path, expected, rel=1e-11):
    assert path.status is Status.BLOW_UP
    assert path.answered
    assert path.blow_up_time == pytest.approx(expected, rel=rel)
    assert np.all(np.diff(path.times) > 0)
    assert path.times[-1] <= path.blow_up_time
    assert path.traces[-1] > 1e8 * path.traces[0]


def assert_stays(path):
    assert path.status is Status.SUCCESS
    assert path.blow_up_time == np.inf
    assert path.times[-1] == path.problem.horizon


class TestScalarValueMatrix:
    """V = v I, where the blow-up time is a root of λ_max C(t) = 1."""

    @pytest.mark.parametrize(
        ("A", "K", "L0", "expected"),
        [
            pytest.param(0.5, 2.0, 1.0, np.log(1.5), id="B1"),
            pytest.param(-1.0, 2.0, np.sqrt(2), np.log(2) / 2, id="B2"),
            pytest.param(SHIFT, I2, I2, 0.6955780649209035827, id="B5"),
            pytest.param(SHIFT, I2, [[1.0], [0.0]], 1.0, id="B6-e1"),
            pytest.param(SHIFT, I2, [[0.0], [1.0]], 0.81773167388682350609, id="B6-e2"),
            pytest.param(ROTATION, SADDLE, isotropic(6), np.pi / 18, id="B8-6"),
            pytest.param(ROTATION, SADDLE, isotropic(3.2), 0.40512504170155770883, id="B9"),
            pytest.param(
                STABLE, I2, isotropic(1.1 * THRESHOLD), 1.3581932734379035311, id="B10-threshold"
            ),
            pytest.param(STABLE, I2, isotropic(2), 1.0165938069897230253, id="B10-2"),
            pytest.param(SPIRAL, MIXED, isotropic(3), 0.37058985189255838054, id="B11-3"),
            pytest.param(SPIRAL, MIXED, isotropic(2), 0.67423731460608688398, id="B11-2"),
            pytest.param(SPIRAL, MIXED, isotropic(1), 5.1087489766391170053, id="B11-late"),
        ],
    )
    def test_blow_up_times(self, A, K, L0, expected):
        assert_blows_up(scalar_value(A, K, L0, 2 * expected), expected)

    def test_nonsymmetric_score_matrix(self):
        # B7: only B + Bᵀ counts for the covariance.
        path = run(GENERAL_L, 2.0, A=GENERAL, B=GENERAL_B, V=0.5 * np.eye(3))
        assert_blows_up(path, 0.90089450682588200162)
        assert_stays(run(GENERAL_L, 5.0, A=GENERAL, B=GENERAL_B, V=-0.5 * np.eye(3)))

    def test_the_scaling_symmetry_changes_no_time(self):
        for c in (3.0, -0.25):
            path = run(GENERAL_L, 2.0, A=GENERAL, B=GENERAL_B / c, V=0.5 * c * np.eye(3))
            assert_blows_up(path, 0.90089450682588200162)

    @pytest.mark.parametrize(
        ("A", "K", "L0", "horizon"),
        [
            pytest.param(-1.0, 2.0, np.sqrt(0.5), 10.0, id="B4"),
            pytest.param(ROTATION, SADDLE, isotropic(2.9), 5.0, id="B8-below"),
            pytest.param(STABLE, I2, isotropic(1.5), 20.0, id="B10-below"),
        ],
    )
    def test_just_below_the_threshold_there_is_none(self, A, K, L0, horizon):
        assert_stays(scalar_value(A, K, L0, horizon))

    def test_threshold_is_an_equilibrium(self):
        # B3: s = 1 for all times.
        path = scalar_value(-1.0, 2.0, 1.0, 3.0)
        assert_stays(path)
        np.testing.assert_allclose(path.traces, 1.0, rtol=1e-13)

    def test_a_tangency_is_found_loosely(self):
        # B8 with S₀ = 3 I: λ_max C touches 1 without crossing it.
        path = scalar_value(ROTATION, SADDLE, isotropic(3), 2.0)
        assert path.status in (Status.BLOW_UP, Status.SUCCESS)
        if path.status is Status.BLOW_UP:
            assert path.blow_up_time == pytest.approx(np.pi / 6, rel=1e-6)

    def test_the_formula_is_not_followed_through_the_pole(self):
        # B9: at t = 1 the closed form gives a positive definite matrix again.
        again = scalar_attention.covariance(ROTATION, SADDLE, 3.2 * I2, 1.0)
        assert np.linalg.eigvalsh(again)[0] > 2.7
        path = scalar_value(ROTATION, SADDLE, isotropic(3.2), 1.0)
        assert_blows_up(path, 0.40512504170155770883)

    @given(generators())
    def test_the_whole_path_equals_the_matrix_exponential(self, rng):
        d = int(rng.integers(1, 5))
        r = int(rng.integers(1, d + 1))
        A, B = rng.standard_normal((2, d, d))
        L0 = factor(rng, d, r, 0.5)
        v = float(rng.choice([-1.0, 0.7]))
        K = v * (B + B.T)
        end = scalar_attention.first_crossing_free(A, K, L0, 1.0)
        assume(end > 0)
        path = run(L0, end, A=A, B=B, V=v * np.eye(d))
        assert_stays(path)
        for t in np.linspace(0, end, 7):
            expected = scalar_attention.covariance(A, K, L0 @ L0.T, t)
            scale = np.abs(expected).max()
            assert np.abs(path.at(t).covariance - expected).max() < 1e-9 * scale

    @settings(max_examples=15)
    @given(generators())
    def test_blow_up_times_equal_the_first_crossing(self, rng):
        d = int(rng.integers(1, 5))
        A = 0.5 * rng.standard_normal((d, d))
        root = factor(rng, d, d, 0.5)
        K, L0 = root @ root.T, factor(rng, d, int(rng.integers(1, d + 1)), 0.5)

        def crossing(t):  # monotone, as K is definite
            return np.linalg.eigvalsh(scalar_attention.gramian(A, K, L0, t))[-1] - 1

        assume(crossing(4.0) > 0)
        expected = scipy.optimize.brentq(crossing, 0, 4.0, xtol=1e-15, rtol=1e-15)
        assert_blows_up(scalar_value(A, K, L0, 2 * expected), expected, rel=1e-10)

    def test_isotropic_closed_form(self):
        # U2: V = I, B = β I, A = a I, S₀ = s I: T = ln(1 + a/(β s))/(2a).
        for a, beta, s, n in ((0.5, 1.0, 1.0, 4), (2.0, 0.3, 0.1, 3), (0.01, 5.0, 2.0, 1)):
            unit = np.eye(n)
            expected = np.log1p(a / (beta * s)) / (2 * a)
            path = run(np.sqrt(s) * unit, 2 * expected, A=a * unit, B=beta * unit, V=unit)
            assert_blows_up(path, expected)

    @pytest.mark.parametrize("scale", [1e-150, 1e-75, 1e75, 1e150])
    @pytest.mark.parametrize("relative_drift", [0.0, 0.3, -0.5, None])
    def test_units_do_not_matter(self, scale, relative_drift):
        # s' = 2 a s + 2 s²; without a relative drift a = 1, far from the rate of attention.
        a = 1.0 if relative_drift is None else relative_drift * scale
        expected = np.log1p(a / scale) / (2 * a) if a else 1 / (2 * scale)
        for horizon in (2 * expected, 1e10 * expected):
            path = run(np.sqrt(scale) * I2, horizon, A=a * I2, V=I2, B=I2)
            assert_blows_up(path, expected, rel=1e-11)
            t = expected * (1 - 1e-6)
            growth = np.expm1(2 * a * (expected - t))
            variance = a / growth if a else 1 / (2 * (expected - t))
            assert path.at(t).covariance[0, 0] == pytest.approx(variance, rel=1e-5)


class TestGeneralValueMatrix:
    def test_rank_one_closed_forms(self):
        # With A = 0, L(t) = e^{Vσ} L₀ and dσ/dt = q(σ), so T = ∫ dσ/q(σ).
        V = np.array([[1.0, 1.0], [0.0, 2.0]])
        path = run([[1.0], [0.0]], 2.0, V=V, B=[[1.0, -3.0], [0.0, -1.0]])  # R2
        assert_blows_up(path, 0.5)
        path = run([[1.0], [0.5]], 1.0, V=V, B=[[1.0, 2.0], [0.0, 0.5]])  # R3
        assert_blows_up(path, 0.13806038326269424)

    def test_rank_one_limit(self):
        # R1: L -> (z² - z, z²) with z = (1 + √13)/6.
        V = np.array([[1.0, 1.0], [0.0, 2.0]])
        path = run([[0.0], [1.0]], 400.0, V=V, B=[[1.0, -3.0], [0.0, -1.0]])
        assert_stays(path)
        z = (1 + np.sqrt(13)) / 6
        limit = np.array([z**2 - z, z**2])
        np.testing.assert_allclose(path.final.covariance, np.outer(limit, limit), rtol=1e-7)

    @given(generators())
    def test_rank_one_paths(self, rng):
        d = int(rng.integers(1, 5))
        V, B = rng.standard_normal((2, d, d))
        L0 = factor(rng, d, 1, 0.5)

        def speed(sigma):
            L = expm(V * sigma) @ L0
            return float((L.T @ B @ L)[0, 0])

        sign = np.sign(speed(0.0))
        sigmas = sign * np.linspace(0, 0.3, 31)
        assume(min(sign * speed(s) for s in sigmas) > 0.05)
        time, _ = scipy.integrate.quad(lambda s: 1 / speed(s), 0, sigmas[-1], epsabs=1e-13)
        path = run(L0, time, V=V, B=B)
        expected = expm(V * sigmas[-1]) @ L0
        np.testing.assert_allclose(
            path.final.covariance, expected @ expected.T, rtol=1e-9, atol=1e-9
        )

    def test_definite_symmetric_parts_of_opposite_sign_can_blow_up(self):
        # D2: V = I + 2J, B = -(I + 2J) give s' = 6 s², although V_s = I and B_s = -I.
        J = np.array([[0.0, -1.0], [1.0, 0.0]])
        assert_blows_up(run(I2, 1.0, V=I2 + 2 * J, B=-(I2 + 2 * J)), 1 / 6)
        still = run(I2, 1.0, V=I2 + 2 * J, B=-(I2 + 0.5 * J))
        assert_stays(still)
        np.testing.assert_allclose(still.final.covariance, I2, atol=1e-12)

    @pytest.mark.parametrize(
        ("A", "V", "B", "S0", "low", "high"),
        [
            pytest.param(
                [[0.1, 0.2], [0.0, -0.1]],
                [[1.0, 0.5], [0.2, 0.8]],
                [[1.0, 0.3], [0.0, 0.7]],
                [1.0, 1.0],
                0.36716719866746,
                0.36716719866782,
                id="G1",
            ),
            pytest.param(
                [[0.2, 0.0, -0.1], [0.1, -0.2, 0.0], [0.0, 0.1, 0.1]],
                [[1.0, 0.5, 0.0], [0.0, 0.5, 0.25], [0.0, 0.0, 1.5]],
                [[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.25, 0.0, 1.0]],
                [1.0, 0.5, 1.0],
                0.30178997492226,
                0.30178997492527,
                id="G2",
            ),
        ],
    )
    def test_times_proved_by_ball_arithmetic(self, A, V, B, S0, low, high):
        path = run(np.diag(np.sqrt(S0)), 1.0, A=A, V=V, B=B)
        assert path.status is Status.BLOW_UP
        slack = 1e-11 * high
        assert low - slack <= path.blow_up_time <= high + slack

    def test_one_eigenvalue_of_the_right_sign_suffices(self):
        # G3.
        V = np.diag([2.0, -1.0])
        assert_blows_up(run(I2, 1.0, V=V, B=I2), 0.25)
        path = run([[0.0], [1.0]], 3.0, V=V, B=I2)
        assert_stays(path)
        np.testing.assert_allclose(path.traces, 1 / (1 + 2 * path.times), rtol=1e-11)

    def test_heads(self):
        # G4: each head drives one coordinate.
        V = [np.diag([1.0, 0.0]), np.diag([0.0, 1.0])]
        assert_blows_up(run(I2, 1.0, V=V, B=[I2, 2 * I2]), 0.25)
        assert_blows_up(run(I2, 1.0, V=V, B=[I2, -2 * I2]), 0.5)


class TestNoise:
    @pytest.mark.parametrize(
        ("A", "K", "Q", "expected"),
        [
            pytest.param(0.0, 1.0, 1.0, np.pi / 2, id="N1"),
            pytest.param(0.5, 1.0, 0.25, 2.0, id="N2"),
            pytest.param(SHIFT, I2, I2, 1.2166954297563273433, id="N3"),
            pytest.param(0.0, 1.0, 256.0, np.pi / 32, id="O12b"),
        ],
    )
    def test_noise_alone_can_blow_up(self, A, K, Q, expected):
        A, K, Q = (np.atleast_2d(x).astype(float) for x in (A, K, Q))
        dirac = gt.Gaussian(np.zeros(len(A)), np.zeros((len(A), 0)))
        p = gt.Parameters(A=A, B=K / 2, V=np.eye(len(A)), noise=Q)
        assert_blows_up_from_zero(gt.simulate(dirac, p, 2 * expected), expected)


def assert_blows_up_from_zero(path, expected):
    assert path.status is Status.BLOW_UP
    assert path.blow_up_time == pytest.approx(expected, rel=1e-11)
    assert np.all(np.diff(path.times) > 0)


class TestTimeVarying:
    def test_score_that_oscillates(self):
        # s' = 2 cos(t) s²: 1/s = 1/s₀ - 2 sin t, a pole iff s₀ > 1/2.
        def law(t):
            return gt.Parameters(V=[[1.0]], B=[[np.cos(t)]])

        schedule = gt.Schedule.from_function(law, 7.0)
        path = gt.simulate(gt.Gaussian([0.0], [[1.0]]), schedule)
        assert_blows_up(path, np.pi / 6)
        path = gt.simulate(gt.Gaussian([0.0], [[np.sqrt(0.4)]]), schedule)
        assert_stays(path)
        for t in np.linspace(0, 7, 29):
            assert path.at(t).trace == pytest.approx(1 / (2.5 - 2 * np.sin(t)), rel=1e-10)

    @pytest.mark.parametrize("strength", [1.0, 1e3, 1e9, 1e17])
    def test_blow_up_after_a_jump(self, strength):
        # Nothing happens until t = 1; then s' = 2 strength s².
        pieces = [gt.Parameters(dim=1), gt.Parameters(V=[[1.0]], B=[[strength]])]
        path = gt.simulate(gt.Gaussian([0.0], [[1.0]]), gt.Schedule([0, 1, 2], pieces))
        assert path.status is Status.BLOW_UP
        assert path.blow_up_time == pytest.approx(1 + 0.5 / strength, rel=1e-12)
        assert np.all(np.diff(path.times) > 0)

    def test_a_blow_up_beyond_the_horizon_is_none(self):
        for left in (0.5, 1e-3, 1e-6):
            path = scalar_value(0.0, 1.0, 1.0, 1 - left)  # s = 1/(1 - t)
            assert_stays(path)
            assert path.final.trace == pytest.approx(1 / left, rel=1e-12 / left)


class TestNeverAHang:
    def test_the_quadratic_pole(self):
        # O12c: y' = y², y(0) = 1, asked to t = 2.
        path = scalar_value(0.0, 1.0, 1.0, 2.0)
        assert_blows_up(path, 1.0)
        assert path.evaluations < 3000
        assert path.final.trace > 1e8

    def test_the_mean_joins_the_blow_up(self):
        # m' = (1 + s/2) m with s = 1/(1 - t): m = e^t (1 - t)^{-1/2}.
        start = gt.Gaussian([1.0], [[1.0]])
        path = gt.simulate(start, gt.Parameters(V=[[1.0]], B=[[0.5]]), 2.0)
        assert_blows_up(path, 1.0)
        for t in (0.3, 0.9, 0.999, 0.999999):
            expected = np.exp(t) / np.sqrt(1 - t)
            assert path.at(t).mean[0] == pytest.approx(expected, rel=1e-11 / (1 - t))

    def test_fast_decay_is_no_blow_up(self):
        # At t = 1 attention alone would blow up in 5e-18, but feed-forward contracts faster.
        pieces = [gt.Parameters(dim=1), gt.Parameters(A=[[-2e17]], V=[[1.0]], B=[[1e17]])]
        path = gt.simulate(gt.Gaussian([0.0], [[1.0]]), gt.Schedule([0, 1, 2], pieces))
        assert path.status is Status.STEP_SIZE
        assert path.blow_up_time == np.inf
        assert path.times[-1] == 1.0

    def test_exponential_growth_is_no_blow_up(self):
        path = run(I2, 1.0, A=300 * I2)
        assert path.status is Status.OVERFLOW
        assert path.blow_up_time == np.inf
        assert path.times[-1] == pytest.approx(100 * np.log(10) / 300, rel=0.05)

    @pytest.mark.parametrize("size", [1e99, 1e101, 1e160])
    def test_starts_beyond_double_precision_end_at_once(self, size):
        path = run(size * I2, 1.0, V=I2, B=size * I2)
        assert path.status is Status.OVERFLOW
        assert path.times.size <= 2
        assert not path.answered


def test_a_near_tangency_proves_nothing_about_a_blow_up():
    """Here λ_max(G(t)) = (1 - 1e-13) |sin t| < 1, so that there is no blow-up."""
    p = gt.Parameters(
        A=[[0.0, 1.0], [-1.0, 0.0]], V=np.eye(2), B=np.diag([0.5, -0.5]) * (1 - 1e-13)
    )
    found = gt.blow_up(p, gt.Gaussian([0.0, 0.0], np.eye(2)))
    assert found.status.name in ("MARGINAL", "NEVER")
    assert found.upper == np.inf
    assert found.lower > 1.57


def test_the_estimate_of_a_wide_bracket_is_what_integration_saw():
    """The second coordinate alone: x' = 2 x + 4 x², x(0) = 1e-14, T* = log(1 + 1/(2 x(0)))/2."""
    p = gt.Parameters(A=np.diag([-1.0, 1.0]), V=np.diag([1.0, 2.0]), B=np.eye(2))
    start = gt.Gaussian([0.0, 0.0], [[0.5, 0.0], [0.0, 1e-7]])
    time = np.log1p(0.5e14) / 2
    assert gt.blow_up(p, start).estimate == pytest.approx(time, rel=1e-8)
    assert gt.certify(p, start).blow_up_time == pytest.approx(time, rel=1e-8)

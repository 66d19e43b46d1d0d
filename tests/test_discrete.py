"""Residual layers beside the discrete Kalman filter, and layers that are the discrete filter."""

from __future__ import annotations

from fractions import Fraction

import control
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy.linalg import cholesky

import gtcontrol as gt
from gtcontrol.errors import InvalidNumber, InvalidShape, RankMismatch

seeds = st.integers(0, 2**32 - 1)


def positive(rng, n, floor=0.1):
    X = rng.standard_normal((n, n))
    return X @ X.T + floor * np.eye(n)


def update(F, C, R, S, Q=None):
    """The textbook recursion of the filter, through inverses."""
    gain = S @ C.T @ np.linalg.inv(C @ S @ C.T + R)
    after = F @ (S - gain @ C @ S) @ F.T
    return after if Q is None else after + Q


class TestKalmanLayers:
    @given(seeds, st.integers(1, 4), st.integers(1, 3), st.integers(1, 4))
    def test_one_layer_is_one_update(self, seed, d, p, r):
        assume(r <= d)
        rng = np.random.default_rng(seed)
        C, R = rng.standard_normal((p, d)), positive(rng, p)
        F = rng.standard_normal((d, d))
        start = gt.Gaussian(rng.standard_normal(d), rng.standard_normal((d, r)))
        made = gt.kalman_layers(F, C, R, start, 1)
        path = gt.simulate(start, made, layers=1)
        expected = update(F, C, R, start.covariance)
        size = np.linalg.norm(F @ start.covariance @ F.T)
        np.testing.assert_allclose(path.final.covariance, expected, rtol=0, atol=1e-12 * size)
        np.testing.assert_allclose(path.final.mean, F @ start.mean, rtol=0, atol=1e-11 * (1 + size))
        assert path.final.factor.shape[1] == r

    def test_the_update_alone_needs_neither_a_linear_layer_nor_other_values(self):
        rng = np.random.default_rng(1)
        C, R = rng.standard_normal((2, 3)), positive(rng, 2)
        start = gt.Gaussian(np.zeros(3), rng.standard_normal((3, 3)))
        made = gt.kalman_layers(np.eye(3), C, R, start, 1)(0.0)
        assert not made.A.any()
        assert np.array_equal(made.V, np.eye(3))
        S = start.covariance
        W, N = cholesky(C @ S @ C.T + R, lower=True), cholesky(R, lower=True)
        expected = -C.T @ np.linalg.inv(W).T @ np.linalg.inv(W + N) @ C
        np.testing.assert_allclose(made.B, expected, rtol=1e-11)

    @settings(max_examples=15)
    @given(seeds, st.integers(1, 4))
    def test_layers_settle_where_python_control_says(self, seed, d):
        rng = np.random.default_rng(seed)
        F = rng.standard_normal((d, d))
        F *= 1.1 / max(np.max(np.abs(np.linalg.eigvals(F))), 1e-3)
        C, R, Q = rng.standard_normal((d, d)), positive(rng, d, 0.5), positive(rng, d, 0.5)
        P = np.asarray(control.dlqe(F, np.eye(d), C, Q, R)[1])
        closed = np.linalg.eigvals(F - F @ P @ C.T @ np.linalg.inv(C @ P @ C.T + R) @ C)
        assume(np.max(np.abs(closed)) < 0.85)
        assume(np.linalg.norm(F, 2) < 2.5)  # layers do not correct what rounding does
        start = gt.Gaussian(np.zeros(d), np.eye(d))
        made = gt.kalman_layers(F, C, R, start, 80, Q)
        assert made.noisy
        final = gt.simulate(start, made, layers=80).final.covariance
        np.testing.assert_allclose(final, P, rtol=0, atol=1e-9 * np.linalg.norm(P))

    @given(seeds, st.integers(1, 4))
    def test_noise_can_be_spread_without_pushes(self, seed, d):
        rng = np.random.default_rng(seed)
        F, C = rng.standard_normal((d, d)), rng.standard_normal((2, d))
        R, Q = positive(rng, 2), positive(rng, d)
        assume(np.linalg.cond(F) < 1e3)
        start = gt.Gaussian(rng.standard_normal(d), positive(rng, d, 0.5))
        made = gt.kalman_layers(F, C, R, start, 3, Q, deterministic=True)
        assert not made.noisy
        path = gt.simulate(start, made, layers=3)
        S, m = start.covariance, start.mean
        for _ in range(3):
            S, m = update(F, C, R, S, Q), F @ m
        size = np.linalg.norm(S) + np.linalg.norm(start.covariance)
        np.testing.assert_allclose(path.final.covariance, S, rtol=0, atol=1e-7 * size)
        np.testing.assert_allclose(path.final.mean, m, rtol=0, atol=1e-7 * size)

    @given(st.floats(0.5, 1.7), st.floats(0.2, 3.0), st.floats(0.05, 2.0), st.floats(0.01, 1.0))
    def test_a_deviation_is_multiplied_as_the_docstring_says(self, f, c, r, q):
        start = gt.Gaussian([0.0], [[1.0]])
        p = gt.kalman_layers([[f]], [c], [[r]], start, 1, [[q]])
        off = 1e-6
        ends = [
            gt.simulate(gt.Gaussian([0.0], [[(1 + s * off) ** 0.5]]), p, layers=1).final.covariance
            for s in (-1, 1)
        ]
        T = 1 / np.sqrt(1 + c * c / r)
        slope = (ends[1] - ends[0])[0, 0] / (2 * off)
        assert slope == pytest.approx(f * f * T * (3 * T - 2), abs=1e-6)

    def test_without_noise_they_settle_at_the_discrete_bernoulli_equation(self):
        F, C, R = np.array([[1.5, 1.0], [0.0, 0.5]]), np.array([[1.0, 0.5]]), np.array([[0.3]])
        start = gt.Gaussian([0.0, 0.0], np.eye(2))
        made = gt.kalman_layers(F, C, R, start, 80)
        final = gt.simulate(start, made, layers=80).final.covariance
        X = np.asarray(control.dare(F.T, C.T, np.zeros((2, 2)), R)[0])
        np.testing.assert_allclose(final, X, rtol=0, atol=1e-10 * np.linalg.norm(X))
        # F is block triangular: the unstable mode alone solves f² r/(r + c² s) = 1.
        c = 1.0
        assert final[0, 0] == pytest.approx((1.5**2 - 1) * 0.3 / c**2, rel=1e-10)

    def test_one_dimension_in_fractions(self):
        f, c, r, q, s = (Fraction(x) for x in ("5/4", "2", "1/3", "1/7", "3/2"))
        start = gt.Gaussian([0.0], [[float(s) ** 0.5]])
        made = gt.kalman_layers([[1.25]], [2.0], 1 / 3, start, 4, [[1 / 7]])
        for _ in range(4):
            s = f * f * (s - s * s * c * c / (c * c * s + r)) + q
        final = gt.simulate(start, made, layers=4).final.covariance
        assert final[0, 0] == pytest.approx(float(s), rel=1e-14)

    @given(seeds, st.integers(1, 3))
    def test_the_mean_is_that_of_the_filter(self, seed, d):
        rng = np.random.default_rng(seed)
        F, C, R = rng.standard_normal((d, d)), rng.standard_normal((2, d)), positive(rng, 2)
        y = rng.standard_normal((5, 2))
        start = gt.Gaussian(rng.standard_normal(d), rng.standard_normal((d, d)))
        made = gt.kalman_layers(F, C, R, start, 5, measurements=y)
        m, S, size = start.mean, start.covariance, 1.0
        for k in range(5):
            gain = S @ C.T @ np.linalg.inv(C @ S @ C.T + R)
            m, S = F @ (m + gain @ (y[k] - C @ m)), update(F, C, R, S)
            size = max(size, np.linalg.norm(m), np.linalg.norm(S))
        final = gt.simulate(start, made, layers=5).final
        np.testing.assert_allclose(final.mean, m, rtol=0, atol=1e-10 * size**2)
        np.testing.assert_allclose(final.covariance, S, rtol=0, atol=1e-10 * size)

    def test_actual_tokens_are_moved_by_the_same_affine_map(self):
        """x⁺ = G x + g with G = F (I + S B): a layer acts on samples of the law as on the law."""
        rng = np.random.default_rng(5)
        F, C, R = rng.standard_normal((2, 2)), np.array([[1.0, 0.3]]), np.array([[0.4]])
        start = gt.Gaussian([0.5, -1.0], rng.standard_normal((2, 2)))
        p = gt.kalman_layers(F, C, R, start, 1)(0.0)
        x = start.sample(200, rng, moment_matched=True)
        S, m = start.covariance, start.mean
        moved = x + x @ p.A.T + p.b + (m + x @ p.B.T @ S) @ p.V.T
        np.testing.assert_allclose(moved.mean(axis=0), F @ m, atol=1e-10)
        np.testing.assert_allclose(
            np.cov(moved.T, bias=True), update(F, C, R, S), rtol=1e-9, atol=1e-11
        )

    def test_noise_that_raises_the_rank_is_refused_or_pushed(self):
        F, C, Q = np.eye(2), np.array([[1.0, 0.0]]), np.diag([0.0, 1.0])
        start = gt.Gaussian([0.0, 0.0], [[1.0], [0.0]])
        with pytest.raises(RankMismatch, match="1 of it lies outside the range"):
            gt.kalman_layers(F, C, None, start, 3, Q, deterministic=True)
        made = gt.kalman_layers(F, C, None, start, 3, Q)
        final = gt.simulate(start, made, layers=3).final.covariance
        np.testing.assert_allclose(final, np.diag([0.25, 3.0]), atol=1e-14)

    def test_bad_input(self):
        start = gt.Gaussian([0.0], [[1.0]])
        with pytest.raises(InvalidShape, match="`F` has order 2"):
            gt.kalman_layers(np.eye(2), [1.0, 1.0], None, start, 3)
        with pytest.raises(InvalidNumber, match="`steps`"):
            gt.kalman_layers([[1.0]], [1.0], None, start, 0)
        with pytest.raises(InvalidShape, match=r"`measurements` must have shape \(3, 1\)"):
            gt.kalman_layers([[1.0]], [1.0], None, start, 3, measurements=[[1.0]])
        with pytest.raises(InvalidShape, match="`start` must be a Gaussian"):
            gt.kalman_layers([[1.0]], [1.0], None, [1.0], 3)


class TestCompareLayers:
    A = np.array([[1.0, 2.0], [0.0, 3.0]])
    START = gt.Gaussian([0.0, 0.0], [[1.0, 0.0], [0.3, 0.8]])

    def model(self, noise=None):
        return gt.KalmanModel(self.A, np.eye(2), [[1.0, 0.2], [0.2, 0.5]], noise)

    @pytest.mark.parametrize("noise", [None, np.diag([0.5, 0.1])])
    def test_one_layer_is_one_update_up_to_second_order(self, noise):
        steps = 2.0 ** -np.arange(6, 12)
        off = [gt.compare_layers(self.model(noise), self.START, h).difference for h in steps]
        orders = np.log2(np.array(off[:-1]) / off[1:])
        assert orders[-1] == pytest.approx(2.0, abs=0.02)

    def test_the_first_order_term_is_that_of_the_flow(self):
        h = 1e-6
        seen = gt.compare_layers(self.model(), self.START, h)
        S, K = self.START.covariance, -self.model().information
        rate = self.A @ S + S @ self.A.T + S @ K @ S
        for after in (seen.layer, seen.kalman):
            np.testing.assert_allclose(
                (after - S) / h, rate, atol=1e-3 * np.linalg.norm(rate) * 0.1
            )

    def test_the_filter_is_that_of_python_control(self):
        h = 0.05
        seen = gt.compare_layers(self.model(np.eye(2)), self.START, h)
        F, R = np.eye(2) + h * self.A, self.model().R / h
        P = np.asarray(control.dlqe(F, np.eye(2), np.eye(2), h * np.eye(2), R)[1])
        np.testing.assert_allclose(seen.kalman_limit, P, rtol=1e-11)
        np.testing.assert_allclose(
            seen.kalman, update(F, np.eye(2), R, self.START.covariance, h * np.eye(2)), rtol=1e-12
        )

    def test_limits_differ_by_first_order(self):
        steps = 2.0 ** -np.arange(4, 8)
        off = []
        for h in steps:
            seen = gt.compare_layers(self.model(), self.START, h)
            off.append(np.linalg.norm(seen.layer_limit - seen.kalman_limit))
            assert seen.multiplier < 1
            assert "first order" in seen.reason
        orders = np.log2(np.array(off[:-1]) / off[1:])
        assert orders[-1] == pytest.approx(1.0, abs=0.1)

    @given(st.floats(0.1, 3.0), st.floats(0.3, 3.0), st.floats(0.01, 0.3))
    def test_one_dimension(self, a, c, h):
        """Layers settle at 2a/c² with the multiplier 1 - 2ha, the filter at (2a + ha²)/c²."""
        assume(0.02 < h * a < 0.9)
        model = gt.KalmanModel([[a]], [[c]])
        start = gt.Gaussian([0.0], [[np.sqrt(a) / c]])
        seen = gt.compare_layers(model, start, h)
        assert seen.layer_limit[0, 0] == pytest.approx(2 * a / c**2, rel=1e-9)
        assert seen.kalman_limit[0, 0] == pytest.approx((2 * a + h * a**2) / c**2, rel=1e-11)
        assert seen.multiplier == pytest.approx(abs(1 - 2 * h * a), abs=1e-6)

    def test_layers_are_those_of_the_simulation(self):
        h, count = 0.02, 25
        model = self.model()
        p = gt.simulate(self.START, model.parameters(), count * h, layers=count)
        S = self.START
        for _ in range(count):
            S = gt.Gaussian.from_covariance([0.0, 0.0], gt.compare_layers(model, S, h).layer)
        np.testing.assert_allclose(p.final.covariance, S.covariance, rtol=1e-10)

    def test_large_steps_run_away_where_the_filter_settles(self):
        """In one dimension from S > (2a + 4/h)/c², and wherever the step oversteps a mode."""
        a, h = 1.0, 0.5
        edge = 2 * a + 4 / h
        model = gt.KalmanModel([[a]], [[1.0]])
        below = gt.compare_layers(model, gt.Gaussian([0.0], [[np.sqrt(0.99 * edge)]]), h)
        beyond = gt.compare_layers(model, gt.Gaussian([0.0], [[np.sqrt(1.01 * edge)]]), h)
        assert below.layer_limit is not None
        assert beyond.layer_limit is None
        assert "run away" in beyond.reason
        assert beyond.kalman_limit[0, 0] == pytest.approx(2 * a + h * a**2)
        stable = gt.KalmanModel([[-1.0]], [[1.0]])
        over = gt.compare_layers(stable, gt.Gaussian([0.0], [[1.0]]), 2.5)
        assert over.layer_limit is None
        assert over.kalman_limit[0, 0] == pytest.approx(-2 + 2.5, rel=1e-12)
        within = gt.compare_layers(stable, gt.Gaussian([0.0], [[0.1]]), 1.5)
        assert within.kalman_limit[0, 0] == 0.0

    def test_bad_input(self):
        with pytest.raises(InvalidShape, match="KalmanModel"):
            gt.compare_layers(np.eye(2), self.START, 0.1)
        with pytest.raises(InvalidShape, match="the model has 1"):
            gt.compare_layers(gt.KalmanModel([[1.0]], [1.0]), self.START, 0.1)
        with pytest.raises(InvalidShape, match="`start`"):
            gt.compare_layers(self.model(), None, 0.1)
        with pytest.raises(InvalidNumber, match="`step`"):
            gt.compare_layers(self.model(), self.START, 0.0)

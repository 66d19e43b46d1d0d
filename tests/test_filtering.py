"""Attention as a Kalman-Bucy filter: against python-control, mpmath, plain tokens and theory."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.integrate import solve_ivp

import gtcontrol as gt
from gtcontrol.attention import softmax_average
from gtcontrol.comparison.filtering import run as engine
from gtcontrol.comparison.filtering.cloud import move, steps_of
from gtcontrol.comparison.filtering.flow import CovariancePath, filter_flow
from gtcontrol.comparison.filtering.fluctuations import fluctuations, tilt
from gtcontrol.comparison.filtering.hermite import Terms, exponents
from gtcontrol.comparison.filtering.lines import line_average
from gtcontrol.comparison.filtering.measurements import exact_step
from gtcontrol.comparison.filtering.parameters import Bridge
from gtcontrol.comparison.filtering.peer import kalman_bucy
from gtcontrol.errors import (
    IncompatibleSchedule,
    IndefiniteCovariance,
    InvalidMethod,
    InvalidNumber,
    InvalidShape,
    NotFinite,
    RankDeficientFactor,
    TooLarge,
)
from gtcontrol.problem import memory
from gtcontrol.results.filter_errors import band, slopes
from gtcontrol.status import Status
from tests.oracles import tilting
from tests.strategies import factor, generators
from tests.test_simulation import interrupt_after

#: Two unstable coupled oscillators; the position of one is measured.
COUPLED = np.array(
    [[0.0, 1.0, 0.0, 0.0], [-1.0, 0.2, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0], [0.5, 0.0, -1.5, 0.3]]
)

DOUBLE = np.array([[0.0, 1.0], [0.0, 0.0]])


def double_integrator(noise=None, R=0.5):
    return gt.KalmanModel(DOUBLE, [1.0, 0.0], R, noise)


def measured(model, seed=3, steps=40, horizon=2.0, state=None, forcing=None):
    state = np.linspace(1.0, -1.0, model.dim) if state is None else state
    return gt.simulate_measurements(model, state, horizon, steps, seed, forcing=forcing)


def law(d, size=0.5, mean=0.0):
    return gt.Gaussian(np.full(d, mean), math.sqrt(size) * np.eye(d))


def flow_of(model, start, y, value=1.0):
    """Flow, and mean and covariance at the times of the measurements."""
    made, nodes = filter_flow(start, gt.filter_schedule(model, start, y, value=value))
    assert made.status is Status.SUCCESS
    L = made.factors[nodes]
    return made, made.means[nodes], L @ np.swapaxes(L, 1, 2)


def random_model(rng, d, p, *, noise=False):
    R = factor(rng, p, p, 0.5)
    Q = factor(rng, d, d, 0.5)
    return gt.KalmanModel(
        rng.standard_normal((d, d)),
        rng.standard_normal((p, d)),
        R @ R.T,
        Q @ Q.T if noise else None,
    )


# -- the field -------------------------------------------------------------------------------


def bergemann_reich(model, x, m, S, y, f):
    """Velocity of a member of the deterministic ensemble filter, written plainly."""
    gain = S @ model.C.T @ np.linalg.inv(model.R)
    moved = model.A @ x + f + gain @ (y - 0.5 * (model.C @ x + model.C @ m))
    if model.noise is not None:
        moved = moved + 0.5 * model.noise @ np.linalg.inv(S) @ (x - m)
    return moved


@st.composite
def situations(draw):
    """A model, a law, a measurement, a forcing, and the rest of the settings."""
    rng = draw(generators())
    d, p = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    model = random_model(rng, d, p, noise=draw(st.booleans()))
    L = 0.7 * factor(rng, d, d, 0.4)
    value = draw(st.sampled_from([1.0, -2.0, 3.0]))
    return model, rng.standard_normal(d), L, rng.standard_normal(p), rng, value


def token_velocity(p, x, m, S):
    """Velocity of a token at x among Gaussian tokens: attention averages m + S (B x + β)."""
    moved = p.A @ x + p.b
    for V, B, beta in p.heads:
        moved = moved + V @ (m + S @ (B @ x + (0.0 if beta is None else beta)))
    return moved


class TestField:
    @given(situations(), st.booleans())
    def test_tokens_move_like_members_of_the_ensemble_filter(self, situation, centred):
        model, m, L, y, rng, value = situation
        S, f, x = L @ L.T, rng.standard_normal(len(m)), rng.standard_normal(len(m))
        p = Bridge(model, value, centred=centred).parameters(S, y, f, m)
        expected = bergemann_reich(model, x, m, S, y, f)
        scale = 1 + np.abs(expected).max() + 10 * np.linalg.norm(p.A) + 10 * np.linalg.norm(p.V)
        np.testing.assert_allclose(token_velocity(p, x, m, S), expected, atol=1e-12 * scale)

    @pytest.mark.parametrize("centred", [False, True])
    def test_and_so_by_quadrature_of_the_tilted_law(self, centred):
        rng = np.random.default_rng(5)
        model = random_model(rng, 2, 1)
        m, L = rng.standard_normal(2), 0.5 * factor(rng, 2, 2, 0.2)
        S, y = L @ L.T, rng.standard_normal(1)
        p = Bridge(model, 1.5, centred=centred).parameters(S, y, None, m)
        keys, weights = tilting.nodes(m, L)
        zero = np.zeros(2)
        heads = [(V, B, zero if beta is None else beta) for V, B, beta in p.heads]
        for x in m + rng.standard_normal((4, 2)) @ L.T:
            moved = tilting.velocity(x, keys, weights, p.A, heads, p.b)
            np.testing.assert_allclose(
                moved, bergemann_reich(model, x, m, S, y, zero), rtol=1e-9, atol=1e-9
            )

    def test_for_unit_value_it_is_the_bias_of_the_textbook(self):
        """V = I, B = -W/2 and b = -m + K y - K C m/2 give the same velocity."""
        rng = np.random.default_rng(1)
        model = random_model(rng, 3, 2)
        m, x, y = rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal(2)
        L = factor(rng, 3, 3)
        S = L @ L.T
        K = S @ model.C.T @ np.linalg.inv(model.R)
        b = -m + K @ y - 0.5 * K @ model.C @ m
        one = model.parameters(b=b)
        two = Bridge(model).parameters(S, y)
        np.testing.assert_allclose(
            token_velocity(one, x, m, S), token_velocity(two, x, m, S), rtol=1e-11, atol=1e-11
        )

    @pytest.mark.parametrize("wrong", ["sign", "transposed", "gain", "half", "no second head"])
    def test_mistakes_are_seen(self, wrong):
        """What the tests above would not forgive."""
        rng = np.random.default_rng(2)
        model = random_model(rng, 3, 2)
        m, x, y = rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal(2)
        L = factor(rng, 3, 3)
        S = L @ L.T
        p = Bridge(model).parameters(S, y)
        B, V, b = p.B.copy(), p.V.copy(), p.b
        if wrong == "sign":
            B = -B
        elif wrong == "transposed":  # of a score matrix with an antisymmetric part
            turn = rng.standard_normal((3, 3))
            one = token_velocity(model.parameters(skew=turn - turn.T), x, m, S)
            two = token_velocity(model.parameters(skew=turn.T - turn), x, m, S)
            assert np.abs(one - two).max() > 0.1
            return
        elif wrong == "gain":
            b = S @ model.C.T @ model.R @ y
        elif wrong == "half":
            V[1] = V[1] - 0.5 * S @ model.information
        else:
            V[1] = 0.0
        moved = token_velocity(gt.Parameters(A=p.A, B=B, V=V, b=b), x, m, S)
        assert np.abs(moved - bergemann_reich(model, x, m, S, y, 0.0)).max() > 0.1


# -- the law ---------------------------------------------------------------------------------


def information_filter(model, start, y, digits=40):
    """Means and covariances in `digits` digits: P = S⁻¹ and z = P m obey linear equations.

    P' = -P A - Aᵀ P + W and z' = -Aᵀ z + Cᵀ R⁻¹ y + P f, solved by one matrix exponential for
    each interval: a computation without any Riccati equation.
    """
    d = model.dim
    with mpmath.workdps(digits):
        A, C, R = (mpmath.matrix(x.tolist()) for x in (model.A, model.C, model.R))
        seen = C.T * R**-1
        P = mpmath.matrix(start.covariance.tolist()) ** -1
        z = P * mpmath.matrix(start.mean.tolist())
        W = seen * C
        means, covariances = [start.mean], [start.covariance]
        f = y.forcing if y.forcing is not None else np.zeros((len(y), d))
        for k in range(len(y)):
            h = mpmath.mpf(float(y.times[k + 1])) - mpmath.mpf(float(y.times[k]))
            # P = Y X⁻¹ with X' = A X, Y' = W X - Aᵀ Y; z rides along with the columns.
            block = mpmath.zeros(2 * d)
            block[:d, :d], block[d:, :d], block[d:, d:] = A, W, -A.T
            E = mpmath.expm(h * block)
            P_next = (E[d:, :d] + E[d:, d:] * P) * E[:d, :d] ** -1
            # The state with zero innovation: m' = A m + f + S Cᵀ R⁻¹ (y - C m), as z and P f.
            push = seen * mpmath.matrix(y.values[k].tolist())
            force = mpmath.matrix(f[k].tolist())
            z = _driven(A, W, P, z, push, force, h, d)
            P = P_next
            S = P**-1
            means.append(np.array([float(v) for v in S * z]))
            covariances.append(np.array(S.tolist(), dtype=float))
    return np.array(means), np.array(covariances)


def _driven(A, W, P, z, push, force, h, d):
    """z(h) of z' = -Aᵀ z + push + P(t) force, with P(t) = (Y X⁻¹)(t), as a linear system.

    u = P force obeys no linear equation of its own, but vec P does: P' = -P A - Aᵀ P + W.
    """
    n = d * d
    big = mpmath.zeros(n + d + 1)
    for i in range(d):
        for j in range(d):
            row = i * d + j
            for k in range(d):
                big[row, i * d + k] -= A[k, j]  # (P A)_ij
                big[row, k * d + j] -= A[k, i]  # (Aᵀ P)_ij
            big[row, n + d] = W[i, j]
            big[n + i, row] += force[j]
            big[n + i, n + j] -= A[j, i]
        big[n + i, n + d] = push[i]
    state = mpmath.matrix([P[i, j] for i in range(d) for j in range(d)] + list(z) + [1])
    made = mpmath.expm(h * big) * state
    return mpmath.matrix([made[n + i] for i in range(d)])


class TestLaw:
    @pytest.mark.parametrize("forcing", [None, [0.3, -1.0]])
    def test_equals_the_information_filter_in_forty_digits(self, forcing):
        model, start = double_integrator(), law(2, mean=0.5)
        y = measured(model, steps=12, forcing=forcing)
        means, covariances = information_filter(model, start, y)
        _, m, S = flow_of(model, start, y)
        np.testing.assert_allclose(m, means, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(S, covariances, rtol=1e-12, atol=1e-13)

    def test_and_so_does_the_filter_of_python_control(self):
        model, start = double_integrator(), law(2, mean=0.5)
        y = measured(model, steps=12, forcing=[0.3, -1.0])
        means, covariances = information_filter(model, start, y)
        m, S = kalman_bucy(model, start, y)
        np.testing.assert_allclose(m, means, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(S, covariances, rtol=1e-11, atol=1e-12)

    @pytest.mark.parametrize("value", [1.0, -2.0, 5.0])
    @pytest.mark.parametrize("noise", [None, np.diag([0.0, 0.3])])
    def test_equals_python_control(self, value, noise):
        model, start = double_integrator(noise), law(2)
        y = measured(model, steps=20, forcing=[0.0, -1.0])
        m, S = kalman_bucy(model, start, y)
        _, means, covariances = flow_of(model, start, y, value)
        np.testing.assert_allclose(means, m, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(covariances, S, rtol=1e-11, atol=1e-11)

    def test_equals_python_control_on_an_unstable_plant_with_two_measurements(self):
        model = gt.KalmanModel(
            COUPLED, [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]], [[0.5, 0.1], [0.1, 0.3]]
        )
        start = law(4, 0.8)
        y = measured(model, steps=30, horizon=6.0)
        m, S = kalman_bucy(model, start, y)
        _, means, covariances = flow_of(model, start, y)
        np.testing.assert_allclose(means, m, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(covariances, S, rtol=1e-10, atol=1e-10)

    def test_of_a_start_below_full_rank(self):
        model = double_integrator()
        start = gt.Gaussian([0.0, 0.0], [[1.0], [-0.5]])
        y = measured(model, steps=10)
        made, means, covariances = flow_of(model, start, y)
        m, S = kalman_bucy(model, start, y)
        assert made.factors.shape[2] == 1
        np.testing.assert_allclose(means, m, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(covariances, S, rtol=1e-11, atol=1e-11)

    def test_scalar_closed_form(self):
        """A = 0, C = R = S₀ = 1: S = 1/(1 + t), m = ∫y/(1 + t)."""
        y = gt.Measurements([0.0, 0.5, 2.0], [1.0, -2.0])
        model, start = gt.KalmanModel([[0.0]], [[1.0]]), gt.Gaussian([0.0], [[1.0]])
        _, m, S = flow_of(model, start, y)
        np.testing.assert_allclose(S.ravel(), [1, 1 / 1.5, 1 / 3], rtol=1e-13)
        np.testing.assert_allclose(m.ravel(), [0, 0.5 / 1.5, -2.5 / 3], atol=1e-12)

    def test_steady_state_is_that_of_lqe(self):
        import control

        model = gt.KalmanModel(COUPLED, [[1.0, 0.0, 0.0, 0.0]], 0.5, 0.2 * np.eye(4))
        y = gt.Measurements(np.linspace(0.0, 120.0, 61), np.zeros(60))
        path = CovariancePath(model, law(4), y.times)
        _, P, _ = control.lqe(COUPLED, np.eye(4), model.C, model.noise, model.R)
        np.testing.assert_allclose(path.nodes[-1], P, rtol=1e-9, atol=1e-9)

    @given(generators(), st.booleans())
    def test_closed_form_of_the_covariance_obeys_the_riccati_equation(self, rng, noisy):
        model = random_model(rng, 3, 2, noise=noisy)
        L = factor(rng, 3, 3)
        start = gt.Gaussian(np.zeros(3), L)
        path = CovariancePath(model, start, np.array([0.0, 0.2, 0.5]))
        W, Q = model.information, np.zeros((3, 3)) if model.noise is None else model.noise

        def rate(_, s):
            S = s.reshape(3, 3)
            left = model.A @ S
            return (left + left.T + Q - S @ W @ S).ravel()

        made = solve_ivp(rate, (0, 0.5), start.covariance.ravel(), rtol=1e-11, atol=1e-13)
        scale = np.abs(start.covariance).max()
        np.testing.assert_allclose(
            path.within(1, 0.5), made.y[:, -1].reshape(3, 3), rtol=1e-7, atol=1e-8 * scale
        )
        np.testing.assert_allclose(path.within(0, 0.2), path.nodes[1], rtol=1e-9, atol=1e-10)


# -- measurements ----------------------------------------------------------------------------


class TestMeasurements:
    def test_exact_steps_compose(self):
        """Two steps of h are one of 2h, of state, integral and covariance."""
        model = double_integrator(np.diag([0.1, 0.4]))
        d = 2
        Phi, push, root = exact_step(model, 0.3)
        twice, pushed, both = exact_step(model, 0.6)
        np.testing.assert_allclose(twice[:d], Phi[:d] @ Phi[:d], atol=1e-14)
        np.testing.assert_allclose(twice[d:], Phi[d:] + Phi[d:] @ Phi[:d], atol=1e-14)
        np.testing.assert_allclose(pushed[:d], push[:d] + Phi[:d] @ push[:d], atol=1e-14)
        full = np.zeros((3, 3))
        full[:, :d], full[d:, d:] = Phi, np.eye(1)
        one = root @ root.T
        np.testing.assert_allclose(both @ both.T, one + full @ one @ full.T, atol=1e-14)

    def test_noise_of_an_interval_is_the_intensity_over_its_length(self):
        model = gt.KalmanModel(np.zeros((1, 1)), [[1.0]], 0.5)
        y = gt.simulate_measurements(model, [2.0], 100.0, 20_000, 1)
        off = y.values[:, 0] - 2.0
        assert np.var(off) == pytest.approx(0.5 / 0.005, rel=0.03)
        assert abs(np.mean(off[1:] * off[:-1])) < 0.03 * np.var(off)
        np.testing.assert_array_equal(y.states, np.full((20_001, 1), 2.0))

    def test_process_noise_has_the_covariance_of_the_integral(self):
        """x = ∫w, and the measurement ∫x of it: covariance [[h, h²/2], [h²/2, h³/3]] + R h."""
        root = exact_step(gt.KalmanModel([[0.0]], [[1.0]], 0.5, [[1.0]]), 0.4)[2]
        h = 0.4
        expected = [[h, h * h / 2], [h * h / 2, h**3 / 3 + 0.5 * h]]
        np.testing.assert_allclose(root @ root.T, expected, atol=1e-15)

    def test_states_follow_the_dynamics_and_the_forcing(self):
        model = gt.KalmanModel(DOUBLE, [1.0, 0.0], 1e-20)
        y = gt.simulate_measurements(model, [1.0, 2.0], 3.0, 6, 0, forcing=[0.0, -2.0])
        t = y.times
        np.testing.assert_allclose(y.states[:, 0], 1 + 2 * t - t**2, atol=1e-12)
        np.testing.assert_allclose(y.states[:, 1], 2 - 2 * t, atol=1e-12)
        integral = t + t**2 - t**3 / 3
        np.testing.assert_allclose(y.values[:, 0], np.diff(integral) / 0.5, atol=1e-8)

    def test_the_same_seed_gives_the_same(self):
        model = double_integrator(np.eye(2))
        one, two = measured(model, seed=7), measured(model, seed=7)
        np.testing.assert_array_equal(one.values, two.values)
        assert not np.array_equal(one.values, measured(model, seed=8).values)
        drawn = gt.simulate_measurements(model, [1.0, -1.0], 2.0, 40, np.random.default_rng(7))
        np.testing.assert_array_equal(one.values, drawn.values)

    @pytest.mark.parametrize(
        ("times", "values", "more", "error", "message"),
        [
            (
                [0, 1, 1, 2],
                [0, 0, 0],
                {},
                IncompatibleSchedule,
                r"times\[2\] = 1 follows times\[1\]",
            ),
            ([0.5, 1], [0], {}, IncompatibleSchedule, "starts at 0.5"),
            ([0.0], [], {}, IncompatibleSchedule, "at least two"),
            ([0, 1, 2], [1.0, np.nan], {}, NotFinite, "nan.* at index 1"),
            ([0, 1, 2], [[1.0, 2.0], [np.inf, 0.0]], {}, NotFinite, "at index 1"),
            ([0, np.inf], [1.0], {}, NotFinite, "times"),
            ([0, 1, 2], [1.0, 2.0, 3.0], {}, InvalidShape, "2 rows, one for each of the intervals"),
            ([0, 1], np.zeros((1, 0)), {}, InvalidShape, "no columns"),
            ([0, 1], ["a"], {}, InvalidShape, "real numbers"),
            ([0, 1], [1.0], {"states": [[0.0]]}, InvalidShape, "2 rows, one for each of the times"),
            (
                [0, 1],
                [1.0],
                {"states": np.zeros((2, 3)), "forcing": np.zeros((1, 2))},
                InvalidShape,
                "as many columns",
            ),
        ],
    )
    def test_refusals(self, times, values, more, error, message):
        with pytest.raises(error, match=message):
            gt.Measurements(times, values, **more)

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"state": [1.0]}, InvalidShape, "state"),
            ({"horizon": 0.0}, InvalidNumber, "horizon"),
            ({"steps": 0}, InvalidNumber, "steps"),
            ({"rng": -1}, InvalidNumber, "rng"),
            ({"forcing": [1.0]}, InvalidShape, r"\(40, 2\) or \(2,\)"),
            ({"model": "model"}, InvalidShape, "KalmanModel, not str"),
        ],
    )
    def test_refusals_of_simulation(self, change, error, message):
        given_ = {
            "model": double_integrator(),
            "state": [1.0, 0.0],
            "horizon": 2.0,
            "steps": 40,
            "rng": 0,
        } | change
        with pytest.raises(error, match=message):
            gt.simulate_measurements(**given_)

    def test_a_state_that_overflows_is_refused(self):
        with pytest.raises(gt.GtcontrolError, match="range of double precision"):
            gt.simulate_measurements(gt.KalmanModel([[1.0]], [[1.0]]), [1.0], 1000.0, 100, 0)


# -- softmax on a line -----------------------------------------------------------------------


class TestLine:
    @given(generators(), st.integers(1, 4), st.floats(0.1, 4.0))
    def test_equals_softmax(self, rng, d, size):
        keys = rng.standard_normal((400, d)) + rng.standard_normal(d)
        sigma, direction = size * rng.standard_normal(400), rng.standard_normal(d)
        queries = np.outer(sigma, direction / np.linalg.norm(direction)) + rng.standard_normal(d)
        np.testing.assert_allclose(
            line_average(queries, keys), softmax_average(queries, keys), atol=2e-9
        )

    def test_is_used_where_it_saves_work(self, monkeypatch):
        calls = []

        def counted(queries, keys):
            calls.append(len(queries))
            return softmax_average(queries, keys)

        monkeypatch.setattr("gtcontrol.comparison.filtering.lines.softmax_average", counted)
        rng = np.random.default_rng(0)
        keys = rng.standard_normal((2000, 3))
        queries = np.outer(rng.standard_normal(2000), [0.5, -0.2, 0.1])
        line_average(queries, keys)
        assert sum(calls) < 200
        calls.clear()
        line_average(rng.standard_normal((2000, 3)), keys)  # on no line
        assert calls == [2000]

    @pytest.mark.parametrize("queries", [np.zeros((50, 2)), np.full((50, 2), 3.0)])
    def test_equal_queries(self, queries):
        keys = np.random.default_rng(0).standard_normal((50, 2))
        np.testing.assert_allclose(line_average(queries, keys), softmax_average(queries, keys))

    def test_sharp_softmax_is_still_exact(self):
        """Steps between single keys cannot be interpolated: each query then gets its softmax."""
        keys = np.random.default_rng(0).standard_normal((300, 1))
        queries = np.linspace(-1e4, 1e4, 300)[:, None]
        np.testing.assert_array_equal(line_average(queries, keys), softmax_average(queries, keys))


# -- tokens ----------------------------------------------------------------------------------


def plain_ensemble(model, tokens, y):
    """Tokens under the full softmax matrix and the bias of the textbook, by SciPy."""
    d = tokens.shape[1]
    seen = np.linalg.inv(model.R)
    W = model.C.T @ seen @ model.C
    x = tokens
    for k in range(len(y)):

        def rate(_, state, value=y.values[k]):
            X = state.reshape(-1, d)
            m, S = X.mean(axis=0), np.cov(X.T, bias=True).reshape(d, d)
            scores = -0.5 * X @ W @ X.T
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            K = S @ model.C.T @ seen
            b = -m + K @ value - 0.5 * K @ model.C @ m
            return (X @ model.A.T + weights @ X + b).ravel()

        made = solve_ivp(rate, y.times[k : k + 2], x.ravel(), rtol=1e-9, atol=1e-10)
        x = made.y[:, -1].reshape(-1, d)
    return x.mean(axis=0), np.cov(x.T, bias=True)


def moved(model, start, y, tokens, value=1.0, centred=False):
    bridge = Bridge(model, value, centred=centred)
    _, _, S = flow_of(model, start, y)
    return move(bridge, tokens, y, steps_of(bridge, S, y.steps), lambda done: None)


class TestTokens:
    @pytest.mark.parametrize("rows", [1, 2])
    def test_equal_the_textbook_under_the_full_softmax(self, rows):
        model = gt.KalmanModel(DOUBLE, np.eye(2)[:rows], 0.5)
        start, y = law(2, mean=0.3), measured(model, steps=20)
        tokens = start.sample(80, np.random.default_rng(1))
        mean, covariance = plain_ensemble(model, tokens, y)
        cloud = moved(model, start, y, tokens)
        np.testing.assert_allclose(cloud.means[-1], mean, atol=3e-6)
        np.testing.assert_allclose(cloud.covariances[-1], covariance, atol=3e-6)

    def test_a_large_value_leaves_the_moments_of_the_start_alone_in_error(self):
        """As v grows, softmax becomes linear and moment-matched tokens the filter itself."""
        model, start = double_integrator(), law(2, mean=0.3)
        y = measured(model, steps=20)
        _, means, covariances = flow_of(model, start, y)
        tokens = start.sample(200, np.random.default_rng(1), moment_matched=True)
        off = []
        for value in (32.0, 128.0, 512.0):
            cloud = moved(model, start, y, tokens, value)
            off.append(np.abs(cloud.means - means).max())
            off[-1] += np.abs(cloud.covariances - covariances).max()
        assert 3.5 < off[0] / off[1] < 4.5  # like 1/v
        assert 3.5 < off[1] / off[2] < 4.5

    def test_centred_queries_err_less(self):
        model, start = double_integrator(), law(2, mean=2.0)
        y = measured(model, steps=20, state=[2.0, 1.0])
        _, means, _ = flow_of(model, start, y)
        tokens = start.sample(200, np.random.default_rng(1), moment_matched=True)
        plain, centred = (
            np.abs(moved(model, start, y, tokens, centred=c).means - means).max()
            for c in (False, True)
        )
        assert centred < 0.3 * plain

    def test_process_noise_without_noise(self):
        model, start = double_integrator(np.diag([0.1, 0.5])), law(2)
        y = measured(model, steps=20)
        _, means, covariances = flow_of(model, start, y)
        tokens = start.sample(400, np.random.default_rng(1), moment_matched=True)
        cloud = moved(model, start, y, tokens, 16.0)
        np.testing.assert_allclose(cloud.means, means, atol=0.02)
        np.testing.assert_allclose(cloud.covariances, covariances, atol=0.02)
        calm = moved(double_integrator(), start, y, tokens, 16.0)
        assert np.trace(calm.covariances[-1]) < 0.8 * np.trace(cloud.covariances[-1])

    def test_shifting_time_units_of_the_integration_changes_little(self):
        model, start = double_integrator(), law(2)
        y = measured(model, steps=10)
        tokens = start.sample(60, np.random.default_rng(0))
        bridge = Bridge(model)
        _, _, S = flow_of(model, start, y)
        steps = steps_of(bridge, S, y.steps)
        results = [
            move(bridge, tokens, y, [n * k for n in steps], lambda done: None).means[-1]
            for k in (1, 2, 4)
        ]
        first = np.abs(results[0] - results[1]).max()
        second = np.abs(results[1] - results[2]).max()
        assert 10 < first / second < 25  # a method of order four: sixteen

    def test_tokens_that_overflow_end_with_a_status(self):
        model = gt.KalmanModel([[400.0]], [[1e-9]])
        y = gt.Measurements([0.0, 1.0], [0.0])
        with np.errstate(all="ignore"):  # as the engine does
            tokens = np.array([[1.0], [-1.0], [2.0]])
            cloud = move(Bridge(model), tokens, y, [4000], lambda done: None)
        assert cloud.status is Status.OVERFLOW
        assert len(cloud.means) == 1


# -- what theory says about finitely many tokens ---------------------------------------------


class TestFluctuations:
    @given(st.integers(1, 4), st.integers(1, 6))
    def test_all_exponents_are_there_once(self, r, degree):
        made = exponents(r, degree)
        assert len(made) == math.comb(r + degree, degree) - 1
        assert len({tuple(a) for a in made.tolist()}) == len(made)
        assert made.sum(axis=1).max() == degree
        even = exponents(r, degree, 3, even=True)
        assert np.all(even.sum(axis=1) % 2 == 0)
        assert np.all(even.sum(axis=1) >= 3)

    @given(generators(), st.integers(1, 3), st.integers(1, 2))
    def test_expected_derivatives_equal_quadrature(self, rng, r, p):
        p = min(p, r)
        root = rng.standard_normal((r, p))
        H = -root @ root.T
        offset = rng.standard_normal(r)
        alpha = exponents(r, 5)
        terms = Terms(alpha, p)
        gradient, hessian = terms.expected(terms.on_plane(offset, H)[1])
        z, weights = tilting.nodes(np.zeros(r), np.eye(r), points=6)
        u = offset + z @ H

        def term(a, minus=()):
            a = list(a)
            factor_ = 1.0
            for i in minus:
                factor_ *= a[i]
                a[i] = max(a[i] - 1, 0)
            return factor_ * (weights @ np.prod(u ** np.array(a), axis=1))

        for n, a in enumerate(alpha.tolist()):
            scale = 1 / math.sqrt(math.prod(math.factorial(k) for k in a))
            expected = [scale * term(a, (i,)) for i in range(r)]
            size = 1e-9 * (1 + np.abs(u).max() ** 5)
            np.testing.assert_allclose(gradient[n], expected, atol=size)
            second = [[scale * term(a, (i, j)) for j in range(r)] for i in range(r)]
            np.testing.assert_allclose(hessian[n], second, atol=size)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "draw", [{}, {"moment_matched": True}, {"antithetic": True, "moment_matched": True}]
    )
    def test_predicts_the_errors_of_many_draws(self, draw):
        """Root mean squares of 100 draws, whose own uncertainty is 5 to 10 %."""
        model = gt.KalmanModel([[0.0, 1.0], [0.5, 0.0]], [1.0, 0.0], 0.5)
        start = gt.Gaussian.from_covariance([1.0, 0.0], [[1.0, 0.2], [0.2, 1.0]])
        y = measured(model, steps=8, horizon=2.0)
        made, means, covariances = flow_of(model, start, y)
        bridge = Bridge(model, 4.0)
        expected = fluctuations(bridge, made, y, **draw)
        steps = steps_of(bridge, covariances, y.steps)
        N, off = 1500, []
        for rng in np.random.default_rng(11).spawn(100):
            cloud = move(bridge, start.sample(N, rng, **draw), y, steps, lambda done: None)
            off.append((cloud.means[-1] - means[-1], cloud.covariances[-1] - covariances[-1]))
        mean = math.sqrt(N * np.mean([np.sum(a**2) for a, _ in off]))
        covariance = math.sqrt(N * np.mean([np.sum(b**2) for _, b in off]))
        assert mean == pytest.approx(expected.mean[-1], rel=0.2)
        assert covariance == pytest.approx(expected.covariance[-1], rel=0.2)

    @pytest.mark.parametrize(("r", "p"), [(1, 1), (2, 1), (2, 2), (3, 2)])
    def test_how_the_draw_moves_equals_quadrature_over_all_coordinates(self, r, p):
        """E ∇(He_α/√α!)(z)·∇(u^β/√β!), with Hermite polynomials from NumPy."""
        rng = np.random.default_rng(r + 10 * p)
        root = rng.standard_normal((r, p))
        H, offset = -root @ root.T, rng.standard_normal(r)
        alpha = exponents(r, 5, 3)
        terms = Terms(alpha, p)
        P, G = terms.mixing(*terms.on_plane(offset, H))
        z, weights = tilting.nodes(np.zeros(r), np.eye(r), points=6)

        def hermite(n, x):
            return np.polynomial.hermite_e.hermeval(x, np.eye(n + 1)[n])

        def gradients(kind, points):
            made = np.zeros((len(points), r, len(alpha)))
            for n, a in enumerate(alpha.tolist()):
                scale = 1 / math.sqrt(math.prod(math.factorial(k) for k in a))
                for i in np.flatnonzero(a):
                    parts = [kind(k - (j == i), points[:, j]) for j, k in enumerate(a)]
                    made[:, i, n] = a[i] * scale * np.prod(parts, axis=0)
            return made

        first = gradients(hermite, z)
        second = gradients(lambda n, x: x**n, offset + z @ H)
        expected = np.einsum("q,qia,qib->ab", weights, first, second)
        np.testing.assert_allclose(P.T @ G, expected, atol=1e-9 * np.abs(expected).max())

    def test_at_the_start_it_is_the_sampling_error(self):
        model = double_integrator()
        start = gt.Gaussian.from_covariance([0.0, 1.0], [[0.5, 0.2], [0.2, 0.8]])
        y = measured(model, steps=4, horizon=0.1)
        made, _, _ = flow_of(model, start, y)
        expected = fluctuations(Bridge(model, 4.0), made, y)
        S = start.covariance
        assert expected.mean[0] == pytest.approx(math.sqrt(np.trace(S)), rel=1e-12)
        size = math.sqrt(np.sum(S**2) + np.trace(S) ** 2)
        assert expected.covariance[0] == pytest.approx(size, rel=1e-12)

    def test_linearised_draws_without_softmax_errors(self):
        """With v → ∞ only the start errs: the response of the filter to another start."""
        model, start = double_integrator(), law(2, mean=0.5)
        y = measured(model, steps=8, horizon=1.0)
        made, means, _ = flow_of(model, start, y)
        expected = fluctuations(Bridge(model, 1e6), made, y)
        assert expected.mean_share < 1e-6
        total, eps = 0.0, 1e-5
        L = start.factor
        changes = [(L[:, i], np.zeros((2, 2))) for i in range(2)]
        pairs = [np.diag([1.0, 0.0]), np.diag([0.0, 1.0]), np.array([[0.0, 1.0], [1.0, 0.0]])]
        weights = [math.sqrt(2.0), math.sqrt(2.0), 1.0]
        changes += [(np.zeros(2), w * L @ E @ L.T) for w, E in zip(weights, pairs, strict=True)]
        for dm, dS in changes:
            other = gt.Gaussian.from_covariance(start.mean + eps * dm, start.covariance + eps * dS)
            total += np.sum((flow_of(model, other, y)[1][-1] - means[-1]) ** 2) / eps**2
        assert expected.mean[-1] == pytest.approx(math.sqrt(total), rel=1e-3)

    def test_beyond_the_edge_there_is_no_prediction_but_a_reason(self):
        model, start = double_integrator(), law(2, 1.0)
        y = measured(model, steps=8, horizon=1.0)
        made, _, S = flow_of(model, start, y)
        assert tilt(Bridge(model), S) == pytest.approx(1.0)
        expected = fluctuations(Bridge(model), made, y)
        assert expected.mean is None
        assert "reaches 1: from 1 on" in expected.note
        assert "above 1 avoids it" in expected.note
        assert fluctuations(Bridge(model, 3.0), made, y).mean is not None


# -- all together ----------------------------------------------------------------------------


@cache
def small_run():
    model = double_integrator()
    return gt.filter_by_attention(
        model, law(2, mean=0.2), measured(model, steps=20), tokens=(50, 200, 800), seeds=8, rng=1
    )


class TestRun:
    def test_agrees_and_counts(self):
        run = small_run()
        assert run.status is Status.SUCCESS
        assert run.agreement < 1e-12
        assert [c.count for c in run.clouds] == [50, 200, 800]
        assert run.clouds[0].means.shape == (8, 21, 2)
        assert run.token_resolution < 1e-4
        assert run.tilt == pytest.approx(np.max(run.flow_covariances[:, 0, 0]))  # R = ½

    def test_more_tokens_err_less_and_about_as_predicted(self):
        run = small_run()
        for name in ("mean", "covariance"):
            seen = [getattr(e, name).median for e in run.token_errors]
            assert seen[0] > seen[1] > seen[2]
            last = run.token_errors[-1]
            ratio = getattr(last, name).rms / getattr(last, f"{name}_predicted")
            assert 0.6 < ratio < 1.6
        assert -0.8 < run.mean_slope.median < -0.3
        assert -0.8 < run.covariance_slope.median < -0.3

    def test_sampling_error_is_that_of_independent_draws(self):
        run = small_run()
        e = run.token_errors[0]
        rng, squares = np.random.default_rng(0), []
        S = run.flow_covariances
        for _ in range(300):
            ratio = []
            for covariance in S[::5]:
                x = gt.Gaussian.from_covariance([0.0, 0.0], covariance).sample(50, rng)
                off = x.T @ x / 50 - covariance
                ratio.append(np.sum(off**2) / np.sum(covariance**2))
            squares.append(np.mean(ratio))
        assert math.sqrt(np.mean(squares)) == pytest.approx(e.covariance_sampling, rel=0.1)
        assert e.mean_sampling == pytest.approx(1 / math.sqrt(50))

    def test_the_published_case(self):
        """A = [[0, 1], [.5, 0]], R = .5, S₀ = [[1, .2], [.2, 1]]: flow exact, tokens far off."""
        model = gt.KalmanModel([[0.0, 1.0], [0.5, 0.0]], [1.0, 0.0], 0.5)
        start = gt.Gaussian.from_covariance([0.0, 0.0], [[1.0, 0.2], [0.2, 1.0]])
        y = gt.simulate_measurements(model, [1.0, 0.5], 2.0, 40, 3)
        run = gt.filter_by_attention(model, start, y, tokens=[200], seeds=3)
        assert run.agreement < 1e-13
        assert run.predicted_mean is None
        assert run.token_errors[0].mean.median > 2 * run.token_errors[0].mean_sampling
        soft = gt.filter_by_attention(
            model, start, y, tokens=[200], seeds=3, value=32.0, moment_matched=True
        )
        assert soft.token_errors[0].mean.median < 0.5 * soft.token_errors[0].mean_sampling

    def test_a_seed_repeats_and_a_generator_works(self):
        model, start = double_integrator(), law(2)
        y = measured(model, steps=5)
        one, two, three = (
            gt.filter_by_attention(model, start, y, tokens=[20], seeds=2, rng=r)
            for r in (4, 4, np.random.default_rng(4))
        )
        np.testing.assert_array_equal(one.clouds[0].means, two.clouds[0].means)
        np.testing.assert_array_equal(one.clouds[0].means, three.clouds[0].means)
        assert (one.problem.seed, three.problem.seed) == (4, None)

    def test_innovations_of_the_right_model_are_white_and_of_a_wrong_one_not(self):
        model, start = double_integrator(), law(2)
        state = start.sample(1, np.random.default_rng(2))[0]
        y = gt.simulate_measurements(model, state, 3.0, 50, 6)
        run = gt.filter_by_attention(model, start, y, tokens=[20], seeds=1)
        c = run.consistency
        assert c.white
        assert c.state_low < c.state < c.state_high
        assert c.innovation == pytest.approx(1.0, abs=0.35)
        wrong = gt.filter_by_attention(double_integrator(R=0.1), start, y, tokens=[20], seeds=1)
        assert not wrong.consistency.white
        assert wrong.consistency.innovation > 3

    @pytest.mark.slow
    def test_statistics_of_consistency_over_many_truths(self):
        """The normalised error of the true state has mean d, that of the innovations p."""
        model, start = double_integrator(np.diag([0.0, 0.2])), law(2)
        rng, states, sizes = np.random.default_rng(9), [], []
        for _ in range(30):
            y = gt.simulate_measurements(model, start.sample(1, rng)[0], 1.0, 25, rng)
            m, S = flow_of(model, start, y)[1:]
            white = engine.normalised_innovations(model, y, m, S)
            found = engine.consistency(y, white, m, S)
            states.append(found.state)
            sizes.append(found.innovation)
        assert np.mean(states) == pytest.approx(2.0, abs=3 * 2 / math.sqrt(30))
        assert np.mean(sizes) == pytest.approx(1.0, abs=4 * math.sqrt(2 / 750))

    def test_disagreement_is_said(self, monkeypatch):
        def off(*arguments):
            means, covariances = kalman_bucy(*arguments)
            return means + 1e-6, covariances

        monkeypatch.setattr(engine, "kalman_bucy", off)
        model, start = double_integrator(), law(2)
        run = gt.filter_by_attention(model, start, measured(model, steps=5), tokens=[20], seeds=1)
        assert run.status is Status.DISAGREEMENT
        assert not run.answered
        assert "differ" in run.summary()

    def test_progress_grows_to_one(self):
        seen = []
        model, start = double_integrator(), law(2)
        gt.filter_by_attention(
            model,
            start,
            measured(model, steps=5),
            tokens=[20, 40],
            seeds=2,
            progress=lambda x, text: seen.append(x),
        )
        assert seen == sorted(seen)
        assert seen[-1] == pytest.approx(1.0)

    def test_interruption_keeps_complete_realisations(self):
        model, start = double_integrator(), law(2)
        y = measured(model, steps=5)
        calls = 0

        def progress(fraction, text):
            nonlocal calls
            calls += text.startswith("40 tokens, draw 2")
            if calls == 3:
                raise KeyboardInterrupt

        run = gt.filter_by_attention(
            model, start, y, tokens=[20, 40, 60], seeds=3, progress=progress
        )
        assert run.status is Status.INTERRUPTED
        assert [len(c.means) for c in run.clouds] == [3, 1]
        assert len(run.token_errors) == 2
        assert run.summary()

    def test_interruption_before_the_tokens_is_passed_on(self):
        model, start = double_integrator(), law(2)
        with pytest.raises(KeyboardInterrupt):
            gt.filter_by_attention(
                model, start, measured(model, steps=5), progress=interrupt_after(2)
            )

    def test_saving_loses_nothing(self, tmp_path):
        model = double_integrator(np.diag([0.0, 0.2]))
        y = measured(model, steps=5, forcing=[0.0, 1.0])
        for i, given_ in enumerate(
            (small_run(), gt.filter_by_attention(model, law(2), y, tokens=[30], seeds=2))
        ):
            given_.save(tmp_path / str(i))
            again = gt.load(tmp_path / str(i))
            assert again.token_errors == given_.token_errors
            assert again.consistency == given_.consistency
            assert again.summary() == given_.summary()
            np.testing.assert_array_equal(
                again.problem.measurements.values, given_.problem.measurements.values
            )

    def test_pictures_and_report(self, tmp_path):
        assert list(small_run().plot()) == ["states", "errors", "innovations"]
        page = small_run().report(tmp_path / "report.html").read_text(encoding="utf-8")
        assert "python-control" in page
        assert "Is the filter as wrong as it says?" in page
        model = double_integrator()
        one = gt.filter_by_attention(
            model, law(2), gt.Measurements([0.0, 1.0], [0.3]), tokens=[20], seeds=1
        )
        assert list(one.plot()) == ["states", "innovations"]
        assert one.mean_slope is None

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"tokens": [1]}, InvalidNumber, "`tokens` must be at least 2"),
            ({"tokens": [2]}, InvalidNumber, "at least 3 for a start of rank 2"),
            ({"tokens": []}, InvalidShape, "empty"),
            ({"tokens": [20, 20]}, InvalidNumber, "twice"),
            ({"tokens": [[20]]}, InvalidShape, "sequence of numbers"),
            ({"tokens": [21], "antithetic": True}, InvalidNumber, "even"),
            ({"seeds": 0}, InvalidNumber, "seeds"),
            ({"rng": -3}, InvalidNumber, "rng"),
            ({"value": 0.0}, InvalidNumber, "must not be 0"),
            ({"start": law(3)}, InvalidShape, "dimension 3, but the model has 2 states"),
            ({"start": "N(0, 1)"}, InvalidShape, "a Gaussian, not str"),
            ({"start": gt.Gaussian([0.0, 0.0], np.zeros((2, 0)))}, RankDeficientFactor, "nothing"),
            ({"measurements": [1.0]}, InvalidShape, r"gt.Measurements\(times, values\)"),
            (
                {"measurements": gt.Measurements([0, 1], [[1.0, 2.0]])},
                InvalidShape,
                r"2 value\(s\) at a time, but the model measures 1",
            ),
            (
                {"measurements": gt.Measurements([0, 1], [1.0], forcing=[[1.0]])},
                InvalidShape,
                "`forcing` of the measurements has 1 columns",
            ),
            (
                {
                    "model": double_integrator(np.eye(2)),
                    "start": gt.Gaussian([0.0, 0.0], [[1.0], [0.0]]),
                },
                InvalidMethod,
                "full rank 2",
            ),
        ],
    )
    def test_refusals(self, change, error, message):
        model = double_integrator()
        given_ = {"model": model, "start": law(2), "measurements": measured(model)} | change
        with pytest.raises(error, match=message) as raised:
            gt.filter_by_attention(**given_)
        assert "\n" not in str(raised.value)

    def test_a_singular_intensity_is_refused(self):
        with pytest.raises(IndefiniteCovariance, match="positive definite"):
            gt.KalmanModel(DOUBLE, np.eye(2), np.diag([1.0, 0.0]))

    def test_too_many_tokens_are_refused_before_allocating(self, monkeypatch):
        monkeypatch.setattr(memory, "available", lambda: 10**6)
        model = double_integrator()
        with pytest.raises(TooLarge, match="take fewer tokens"):
            gt.filter_by_attention(model, law(2), measured(model), tokens=[100_000])


class TestBands:
    def test_slope_of_exact_powers(self):
        errors = [(n, np.array([3.0, 1.0, 2.0]) / n**0.5) for n in (10, 100, 1000)]
        made = slopes(errors)
        assert (made.median, made.low, made.high) == pytest.approx((-0.5, -0.5, -0.5))
        assert slopes(errors[:1]) is None
        assert slopes([*errors[:1], (5, np.zeros(3))]) is None

    def test_band(self):
        made = band(np.arange(11.0))
        assert (made.median, made.low, made.high) == pytest.approx((5.0, 1.0, 9.0))
        assert made.rms == pytest.approx(math.sqrt(35.0))


def test_fields_of_a_result_cannot_be_changed():
    run = small_run()
    with pytest.raises(AttributeError):
        run.status = Status.OVERFLOW
    assert replace(run, status=Status.OVERFLOW).answered is False


def test_gains_that_need_too_many_steps_are_refused():
    y = gt.Measurements(np.linspace(0, 1, 11), np.ones((10, 1)))
    start = gt.Gaussian([0.0], [[1.0]])
    with pytest.raises(gt.errors.TooLarge, match=r"500000 of them in interval 0.*5e\+05"):
        gt.filter_by_attention(
            gt.KalmanModel([[0.0]], [[1.0]], 1e-6), start, y, tokens=[20], seeds=1
        )

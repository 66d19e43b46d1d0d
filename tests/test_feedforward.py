"""Feed-forward layers: moments against mpmath, the linearised flow against plain integrations."""

from __future__ import annotations

import math
import re
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import solve_ivp
from scipy.stats import norm

import gtcontrol as gt
from gtcontrol.cli import kinds
from gtcontrol.errors import InvalidMethod, InvalidShape, NotFinite
from gtcontrol.feedforward import ACTIVATIONS
from gtcontrol.moments.activations import derivative, mean_and_slope, variance
from gtcontrol.moments.linearisation import affine
from gtcontrol.problem import files

EXACT = {
    "relu": lambda u: max(u, mpmath.mpf(0)),
    "leaky_relu": lambda u: u if u > 0 else mpmath.mpf(0.01) * u,
    "gelu": lambda u: u * mpmath.ncdf(u),
    "silu": lambda u: u / (1 + mpmath.exp(-u)),
    "tanh": mpmath.tanh,
    "sigmoid": lambda u: 1 / (1 + mpmath.exp(-u)),
    "identity": lambda u: u,
}

MEANS = np.array([-3.0, 0.0, 0.7, 40.0, -0.2])
DEVIATIONS = np.array([0.5, 2.0, 1e-3, 30.0, 300.0])


def by_mpmath(function, mean: float, deviation: float) -> tuple[float, float, float]:
    """E f, E f' (as E[z f]/s) and Var f in twenty digits."""
    with mpmath.workdps(20):
        mu, s = mpmath.mpf(mean), mpmath.mpf(deviation)
        inner = [(x - mu) / s for x in (-8, -4, -1, 0, 1, 4, 8)]
        cuts = sorted(
            {mpmath.mpf(x) for x in (-11, -4, 0, 4, 11)} | {c for c in inner if -11 < c < 11}
        )
        value = mpmath.quad(lambda z: function(mu + s * z) * mpmath.npdf(z), cuts)
        slope = mpmath.quad(lambda z: z * function(mu + s * z) * mpmath.npdf(z), cuts) / s
        spread = mpmath.quad(lambda z: (function(mu + s * z) - value) ** 2 * mpmath.npdf(z), cuts)
        return float(value), float(slope), float(spread)


class TestMoments:
    @pytest.mark.parametrize("name", EXACT)
    def test_mean_slope_and_variance_are_those_of_mpmath(self, name):
        exact = np.array(
            [by_mpmath(EXACT[name], m, s) for m, s in zip(MEANS, DEVIATIONS, strict=True)]
        ).T
        value, slope = mean_and_slope(name, MEANS, DEVIATIONS)
        np.testing.assert_allclose(value, exact[0], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(slope, exact[1], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(variance(name, MEANS, DEVIATIONS), exact[2], rtol=1e-10)

    @pytest.mark.parametrize("name", ["relu", "tanh", "gelu"])
    def test_a_function_that_is_given_has_the_moments_of_its_name(self, name):
        function = ACTIVATIONS[name]
        for mine, theirs in zip(
            mean_and_slope(function, MEANS, DEVIATIONS),
            mean_and_slope(name, MEANS, DEVIATIONS),
            strict=True,
        ):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(
            variance(function, MEANS, DEVIATIONS), variance(name, MEANS, DEVIATIONS), rtol=1e-9
        )

    def test_a_kink_anywhere_is_found(self):
        # |u - 1| under N(0, 1): E = 2 φ(1) + 2 Φ(1) - 1, E' = 1 - 2 Φ(1).
        value, slope = mean_and_slope(lambda u: np.abs(u - 1), np.zeros(1), np.ones(1))
        assert value[0] == pytest.approx(2 * norm.pdf(1) + 2 * norm.cdf(1) - 1, rel=1e-11)
        assert slope[0] == pytest.approx(1 - 2 * norm.cdf(1), rel=1e-11)

    @pytest.mark.parametrize("name", EXACT)
    def test_without_spread_the_moments_are_values(self, name):
        u = np.array([-1.3, 0.4, 2.0])
        value, slope = mean_and_slope(name, u, np.zeros(3))
        np.testing.assert_allclose(value, ACTIVATIONS[name](u), rtol=1e-15)
        exact = [float(mpmath.diff(EXACT[name], x)) for x in u]
        np.testing.assert_allclose(slope, exact, rtol=1e-12)
        np.testing.assert_allclose(variance(name, u, np.zeros(3)), 0.0, atol=1e-300)
        near, _ = mean_and_slope(name, u, np.full(3, 1e-9))
        np.testing.assert_allclose(near, value, atol=1e-12)

    def test_at_the_kink_the_slope_is_the_average_of_both_sides(self):
        assert derivative("relu", np.zeros(1))[0] == 0.5
        assert derivative("leaky_relu", np.zeros(1))[0] == pytest.approx(0.505)
        # ... which is the limit of E relu' at the kink when the spread shrinks.
        assert mean_and_slope("relu", np.zeros(1), np.array([1e-300]))[1][0] == 0.5

    def test_the_derivative_of_a_function_that_is_given(self):
        u = np.array([-2.0, 0.3, 30.0])
        np.testing.assert_allclose(derivative(np.tanh, u), np.cosh(u) ** -2.0, atol=1e-9)

    @given(st.floats(-50, 50), st.floats(1e-6, 50))
    def test_laws_of_relu(self, mean, deviation):
        m, s = np.array([mean]), np.array([deviation])
        value, slope = mean_and_slope("relu", m, s)
        other, falling = mean_and_slope("relu", -m, s)
        assert value[0] - other[0] == pytest.approx(mean, abs=1e-12 * (abs(mean) + deviation))
        assert slope[0] + falling[0] == pytest.approx(1.0, abs=1e-14)
        doubled, same = mean_and_slope("relu", 2 * m, 2 * s)
        assert doubled[0] == pytest.approx(2 * value[0], rel=1e-13)
        assert same[0] == slope[0]
        # Between the linear part of the variance (Bessel) and the Lipschitz bound (Poincaré).
        spread = variance("relu", m, s)[0]
        assert (slope[0] * deviation) ** 2 <= spread * (1 + 1e-9) + 1e-300
        assert spread <= slope[0] * deviation**2 * (1 + 1e-12) + 1e-300

    @given(
        st.sampled_from(["gelu", "silu", "tanh", "sigmoid"]), st.floats(-8, 8), st.floats(0.01, 8)
    )
    @settings(max_examples=40)
    def test_the_mean_grows_with_the_mean_of_u_like_the_slope(self, name, mean, deviation):
        # d/dμ E act(μ + s z) = E act'.
        h = 1e-4
        s = np.array([deviation])
        up, down = (mean_and_slope(name, np.array([mean + x]), s)[0][0] for x in (h, -h))
        slope = mean_and_slope(name, np.array([mean]), s)[1][0]
        assert (up - down) / (2 * h) == pytest.approx(slope, abs=2e-8)

    def test_a_function_that_is_not_finite_far_out_is_refused_where_it_is_met(self):
        with pytest.raises(NotFinite, match=r"`activation` is inf at [\d.e+]+; it must be finite"):
            mean_and_slope(np.exp, np.array([700.0]), np.array([30.0]))

    @pytest.mark.parametrize("place", [0.0, 0.7364, -1e-5, 4.01, 37.0])
    def test_a_jump_anywhere_is_found(self, place):
        # E sign(u - c) = 2 Φ((μ - c)/s) - 1, and its slope is twice the density at c.
        m, s = np.array([0.3, 36.0, -2.0]), np.array([0.5, 7.0, 100.0])
        value, slope = mean_and_slope(lambda u: np.sign(u - place), m, s)
        np.testing.assert_allclose(value, 1 - 2 * norm.cdf(place, m, s), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(slope, 2 * norm.pdf(place, m, s), rtol=1e-10, atol=1e-12)

    def test_waves_and_corners_of_any_number(self):
        # E sin(u) = e^{-s²/2} sin μ; rounding up is u plus a sawtooth whose waves have died out.
        m, s = np.array([0.4, -1.0]), np.array([0.8, 60.0])
        value, slope = mean_and_slope(np.sin, m, s)
        np.testing.assert_allclose(value, np.exp(-(s**2) / 2) * np.sin(m), atol=1e-12)
        np.testing.assert_allclose(slope, np.exp(-(s**2) / 2) * np.cos(m), atol=1e-12)
        steps, rise = mean_and_slope(np.ceil, m[1:], np.array([6.0]))
        assert steps[0] == pytest.approx(m[1] + 0.5, abs=1e-11)
        assert rise[0] == pytest.approx(1.0, abs=1e-11)

    def test_a_singular_derivative_and_single_precision(self):
        # E |u|^{1/2} = 2^{1/4} Γ(3/4)/√π for a standard normal variable.
        value, _ = mean_and_slope(lambda u: np.sqrt(np.abs(u)), np.zeros(1), np.ones(1))
        exact = 2**0.25 * math.gamma(0.75) / math.sqrt(math.pi)
        assert value[0] == pytest.approx(exact, rel=1e-9)
        rough = mean_and_slope(lambda u: np.tanh(u.astype(np.float32)), MEANS, DEVIATIONS)
        np.testing.assert_allclose(
            rough[0], mean_and_slope("tanh", MEANS, DEVIATIONS)[0], atol=1e-6
        )

    def test_a_function_is_evaluated_few_times_and_cut_once(self):
        seen = []

        def function(u):
            seen.append(u.size)
            return np.maximum(u - 0.7364, 0.0)

        mean_and_slope(function, np.zeros(2), np.ones(2))
        once = len(seen)
        mean_and_slope(function, np.ones(2), np.full(2, 0.9))
        assert once < 500
        assert len(seen) - once <= 3
        assert sum(seen[once:]) < 5000

    def test_a_function_without_a_hash_works(self):
        class Ramp:
            __hash__ = None

            def __call__(self, u):
                return np.maximum(u, 0.0)

        value, _ = mean_and_slope(Ramp(), np.zeros(1), np.ones(1))
        assert value[0] == pytest.approx(norm.pdf(0), rel=1e-12)

    def test_a_function_that_never_settles_is_refused(self):
        with pytest.raises(NotFinite, match="do not converge: it varies so fast that with"):
            mean_and_slope(lambda u: np.sign(np.sin(1e6 * u)), np.zeros(1), np.ones(1))


LAYER = gt.FeedForward(
    [[1.0, 0.3], [-0.4, 0.9], [0.7, -0.8]],
    [0.2, -0.3, 0.1],
    [[-0.6, 0.4, 0.3], [0.2, -0.5, 0.5]],
)


def with_activation(activation) -> gt.FeedForward:
    return gt.FeedForward(LAYER.inner, LAYER.bias, LAYER.outer, activation)


class TestLayer:
    def test_velocity_is_the_formula(self):
        tokens = np.random.default_rng(0).standard_normal((5, 2))
        for x, v in zip(tokens, LAYER.velocity(tokens), strict=True):
            hidden = [
                max(LAYER.bias[j] + sum(LAYER.inner[j, i] * x[i] for i in range(2)), 0.0)
                for j in range(3)
            ]
            expected = [sum(LAYER.outer[i, j] * hidden[j] for j in range(3)) for i in range(2)]
            np.testing.assert_allclose(v, expected, rtol=1e-14)
        stacked = LAYER.velocity(np.stack([tokens, tokens + 1]))
        np.testing.assert_array_equal(stacked[0], LAYER.velocity(tokens))

    def test_it_is_a_value(self):
        inner = np.eye(2)
        layer = gt.FeedForward(inner)
        inner[0, 0] = 7.0
        assert layer.inner[0, 0] == 1.0
        with pytest.raises(ValueError, match="read-only"):
            layer.outer[0, 0] = 2.0
        assert repr(with_activation(np.tanh)) == "FeedForward(dim=2, hidden=3, activation=tanh)"

    @pytest.mark.parametrize(
        ("arguments", "error", "words"),
        [
            (([[1.0, 2.0]],), InvalidShape, "`outer` is needed: `inner` has 1 rows"),
            (([[1.0]], [1.0, 2.0]), InvalidShape, r"`bias` must have shape \(1,\)"),
            (([[1.0]], None, [[1.0, 2.0]]), InvalidShape, r"`outer` must have shape \(1, 1\)"),
            (([[]],), InvalidShape, "`inner` is empty"),
            (([[np.nan]],), NotFinite, "`inner` holds nan at index"),
            (([[1.0]], None, None, "rlu"), InvalidMethod, "is 'rlu'; expected one of relu"),
            (([[1.0]], None, None, 3), InvalidMethod, "must be a name or a function, not int"),
            (([[1.0]], None, None, np.reciprocal), NotFinite, "`activation` is inf at 0"),
            (([[1.0]], None, None, np.sum), InvalidShape, r"it makes an array of shape \(\)"),
            (
                ([[1.0]], None, None, lambda u: u - u.mean()),
                InvalidShape,
                "must act entry by entry",
            ),
            (([[1.0]], None, None, lambda u: max(u, 0)), InvalidShape, "np.maximum for max"),
            (([[1.0]], None, None, math.tanh), InvalidShape, r"fails on one of shape \(161,\)"),
        ],
    )
    def test_what_is_refused(self, arguments, error, words):
        with pytest.raises(error, match=words):
            gt.FeedForward(*arguments)

    def test_tokens_of_another_dimension_are_refused(self):
        words = r"`tokens` must have shape \(..., 2\) to fit `inner` \(2, 2\); they have \(1, 3\)"
        with pytest.raises(InvalidShape, match=words):
            gt.FeedForward(np.eye(2)).velocity([[1.0, 2.0, 3.0]])
        assert gt.FeedForward(np.eye(2)).velocity([1.0, -2.0]).tolist() == [1.0, 0.0]

    def test_a_function_of_single_numbers_can_be_wrapped(self):
        layer = gt.FeedForward(np.eye(2), activation=np.vectorize(lambda u: max(u, 0.0)))
        np.testing.assert_array_equal(layer.velocity([[1.0, -2.0]]), [[1.0, 0.0]])


class TestLinearisation:
    def test_it_is_the_regression_of_the_layer_on_the_token(self):
        # By a Gauss-Hermite rule in the plane, exact for tanh to rounding at these spreads.
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)
        weights = weights / weights.sum()
        z = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
        w = np.outer(weights, weights).ravel()
        law = gt.Gaussian.from_covariance([0.3, -0.1], [[0.5, 0.1], [0.1, 0.3]])
        layer = with_activation("tanh")
        f = layer.velocity(law.mean + z @ law.factor.T)
        velocity, J = affine(layer, law.mean, law.factor)
        np.testing.assert_allclose(velocity, w @ f, atol=1e-10)
        np.testing.assert_allclose(J @ law.factor, (f.T * w) @ z, atol=1e-10)

    def test_relu_against_random_tokens(self):
        law = gt.Gaussian.from_covariance([0.3, -0.1], [[0.5, 0.1], [0.1, 0.3]])
        z = np.random.default_rng(3).standard_normal((200_000, 2))
        f = LAYER.velocity(law.mean + z @ law.factor.T)
        velocity, J = affine(LAYER, law.mean, law.factor)
        for seen, exact in ((f, velocity), (f[:, :, None] * z[:, None], J @ law.factor)):
            error = seen.std(axis=0) / np.sqrt(len(z))
            assert np.all(np.abs(seen.mean(axis=0) - exact) < 4.5 * error)

    def test_at_the_mean(self):
        mean = np.array([0.3, -0.1])
        velocity, J = affine(LAYER, mean, np.eye(2), "jacobian")
        np.testing.assert_allclose(velocity, LAYER.velocity(mean), rtol=1e-15)
        h = 1e-6
        steps = [LAYER.velocity(mean + h * e) - LAYER.velocity(mean - h * e) for e in np.eye(2)]
        np.testing.assert_allclose(J, np.array(steps).T / (2 * h), atol=1e-9)


PARAMETERS = gt.Parameters(
    A=[[-0.2, 0.1], [0.0, -0.3]], V=[[0.6, 0.1], [0.1, 0.5]], B=[[-0.4, 0.2], [-0.1, -0.3]]
)
START = gt.Gaussian.from_covariance([0.3, -0.2], [[1.0, 0.2], [0.2, 0.6]])


class TestFlow:
    def test_on_the_line_it_is_the_differential_equation_written_out(self):
        w, c, o, v, b, a = 1.3, -0.2, -0.8, 0.5, -0.6, 0.1

        def rates(t, y):
            m, S = y
            mu, s = w * m + c, abs(w) * np.sqrt(S)
            mean = a * m + v * (m + S * b * m)
            mean += o * (mu * norm.cdf(mu / s) + s * norm.pdf(mu / s))
            return [mean, 2 * (a + v * S * b + o * w * norm.cdf(mu / s)) * S]

        exact = solve_ivp(rates, (0, 1.5), [0.4, 1.2], method="DOP853", rtol=1e-12, atol=1e-14)
        path = gt.simulate(
            gt.Gaussian.from_covariance([0.4], [[1.2]]),
            gt.Parameters(A=[[a]], V=[[v]], B=[[b]]),
            1.5,
            feedforward=gt.FeedForward([[w]], [c], [[o]]),
        )
        assert path.final.mean[0] == pytest.approx(exact.y[0, -1], rel=1e-10)
        assert path.final.covariance[0, 0] == pytest.approx(exact.y[1, -1], rel=1e-10)

    @pytest.mark.parametrize("linearisation", ["statistical", "jacobian"])
    @pytest.mark.parametrize("layers", [None, 7])
    def test_the_identity_is_an_affine_layer(self, linearisation, layers):
        path = gt.simulate(
            START,
            PARAMETERS,
            1.0,
            layers=layers,
            feedforward=with_activation("identity"),
            linearisation=linearisation,
        )
        same = gt.Parameters(
            A=PARAMETERS.A + LAYER.outer @ LAYER.inner,
            V=PARAMETERS.V,
            B=PARAMETERS.B,
            b=LAYER.outer @ LAYER.bias,
        )
        assert (
            gt.wasserstein(path.final, gt.simulate(START, same, 1.0, layers=layers).final) < 1e-11
        )

    def test_many_layers_approach_the_flow(self):
        flow = gt.simulate(START, PARAMETERS, 1.0, feedforward=LAYER).final
        misses = [
            gt.wasserstein(
                flow, gt.simulate(START, PARAMETERS, 1.0, layers=n, feedforward=LAYER).final
            )
            for n in (50, 100)
        ]
        assert misses[1] < 0.01
        assert misses[0] / misses[1] == pytest.approx(2.0, rel=0.05)

    def test_the_covariance_form_agrees(self):
        noisy = gt.Parameters(
            A=PARAMETERS.A, V=PARAMETERS.V, B=PARAMETERS.B, noise=np.zeros((2, 2))
        )
        ends = [gt.simulate(START, p, 1.0, feedforward=LAYER).final for p in (PARAMETERS, noisy)]
        assert gt.wasserstein(*ends) < 1e-10
        ends = [
            gt.simulate(START, p, 1.0, layers=5, feedforward=LAYER).final
            for p in (PARAMETERS, noisy)
        ]
        assert gt.wasserstein(*ends) < 1e-10

    def test_the_rank_is_kept(self):
        line = gt.Gaussian(START.mean, START.factor[:, :1])
        path = gt.simulate(line, PARAMETERS, 1.0, feedforward=LAYER)
        assert path.final.rank == 1
        point = gt.simulate(
            gt.Gaussian([1.0, 0.5], np.zeros((2, 0))), PARAMETERS, 1.0, feedforward=LAYER
        )
        p = PARAMETERS  # a single token attends to itself only
        exact = solve_ivp(
            lambda t, x: p.A @ x + p.V @ x + LAYER.velocity(x),
            (0, 1),
            [1.0, 0.5],
            rtol=1e-11,
            atol=1e-13,
        )
        np.testing.assert_allclose(point.final.mean, exact.y[:, -1], atol=1e-8)

    def test_in_time_steps_compose(self):
        half = gt.simulate(START, PARAMETERS, 0.5, feedforward=LAYER).final
        again = gt.simulate(half, PARAMETERS, 0.5, feedforward=LAYER).final
        whole = gt.simulate(START, PARAMETERS, 1.0, feedforward=LAYER).final
        assert gt.wasserstein(again, whole) < 1e-10

    def test_a_schedule_in_a_subspace_does_not_confine_the_layer(self):
        basis = np.array([[1.0], [0.0]])
        narrow = gt.Schedule([0.0, 1.0], [gt.Parameters(A=[[0.3]])], basis=basis)
        wide = gt.Parameters(A=[[0.3, 0.0], [0.0, 0.0]])
        ends = [gt.simulate(START, p, 1.0, feedforward=LAYER).final for p in (narrow, wide)]
        assert gt.wasserstein(*ends) < 1e-11

    def test_blow_up_is_still_found(self):
        path = gt.simulate(
            gt.Gaussian([0.0], [[1.0]]),
            gt.Parameters(V=[[1.0]], B=[[1.0]]),
            1.0,
            feedforward=gt.FeedForward([[1.0]], None, [[0.5]]),
        )
        assert path.status is gt.Status.BLOW_UP
        assert path.blow_up_time < 0.5  # that of attention alone

    def test_it_is_saved_and_restored(self, tmp_path):
        path = gt.simulate(START, PARAMETERS, 0.5, feedforward=LAYER, linearisation="jacobian")
        path.save(tmp_path)
        problem = gt.load(tmp_path).problem
        assert problem.linearisation == "jacobian"
        np.testing.assert_array_equal(problem.feedforward.outer, LAYER.outer)
        own = gt.simulate(START, PARAMETERS, 0.5, feedforward=with_activation(np.sin))
        with pytest.raises(InvalidMethod, match="`sin` is a function of your own"):
            own.save(tmp_path / "own")

    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({"feedforward": 3}, InvalidShape, "`feedforward` must be a FeedForward, not int"),
            (
                {"feedforward": gt.FeedForward([[1.0]])},
                InvalidShape,
                "acts on tokens of dimension 1, but they have 2",
            ),
            (
                {"feedforward": LAYER, "linearisation": "best"},
                InvalidMethod,
                "`linearisation` is 'best'; expected one of statistical, jacobian",
            ),
        ],
    )
    def test_what_is_refused(self, options, error, words):
        with pytest.raises(error, match=words):
            gt.simulate(START, PARAMETERS, 1.0, **options)


FILE = """
kind = "simulate"
start = {mean = [0.3, -0.2], covariance = [[1.0, 0.2], [0.2, 0.6]]}
parameters = {A = [[-0.2, 0.1], [0.0, -0.3]]}
[simulate]
horizon = 1.0
linearisation = "jacobian"
[feedforward]
inner = [[1.0, 0.3], [-0.4, 0.9]]
activation = "gelu"
"""


def prepared(text: str) -> kinds.Task:
    document = files.parse(text, lambda kind: kinds.load(kind).DOCUMENT)
    return kinds.prepare(document, Path("x.toml"))


class TestFile:
    def test_a_file_may_hold_a_layer(self):
        path = prepared(FILE).run(lambda fraction, text: None)
        again = gt.simulate(
            START,
            gt.Parameters(A=[[-0.2, 0.1], [0.0, -0.3]]),
            1.0,
            feedforward=gt.FeedForward([[1.0, 0.3], [-0.4, 0.9]], activation="gelu"),
            linearisation="jacobian",
        )
        assert gt.wasserstein(path.final, again.final) < 1e-14

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ('"gelu"', '"gilu"', "feedforward.activation"),
            ("inner = [[1.0, 0.3], [-0.4, 0.9]]", "inner = [[1.0, 0.3]]", "`outer` is needed"),
            (
                "inner = [[1.0, 0.3], [-0.4, 0.9]]",
                "inner = [[1.0]]",
                "dimension 1, but they have 2",
            ),
        ],
    )
    def test_what_is_refused(self, old, new, words):
        with pytest.raises(gt.GtcontrolError, match=re.escape(words)):
            prepared(FILE.replace(old, new))

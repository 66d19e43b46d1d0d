"""Attention over finitely many tokens: exact integrals, plain softmax, limits, symmetries."""

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.stats import norm, ortho_group

import gtcontrol as gt
from gtcontrol.cli import kinds
from gtcontrol.errors import (
    InvalidMethod,
    InvalidNumber,
    InvalidShape,
    ProblemFileInvalid,
    ResultFileInvalid,
)
from gtcontrol.finite_attention.closure import attend
from gtcontrol.finite_attention.nodes import nodes
from gtcontrol.finite_attention.weights import LARGEST, _Scale, weights

#: Bound on the largest of some tens of standardised errors.
SIGMAS = 4.5


def normal(function, scale=1.0):
    """E f(ξ) for ξ ~ N(0, scale²), by adaptive quadrature."""
    made = quad(lambda x: function(scale * x) * norm.pdf(x), -12, 12, epsabs=1e-12, limit=400)
    return made[0]


def attended(tokens, law, parameters, *, self_key=True):
    """Plain softmax attention of every token over all of them, with the full matrix."""
    made = np.zeros_like(tokens)
    for V, B, beta in parameters.heads:
        scores = (tokens @ B.T + (0.0 if beta is None else beta)) @ tokens.T
        if not self_key:
            np.fill_diagonal(scores, -np.inf)
        w = np.exp(scores - scores.max(axis=1, keepdims=True))
        made += (w / w.sum(axis=1, keepdims=True)) @ tokens @ V.T
    return made


def sampled(parameters, law, count, clouds, *, self_key=True, seed=0):
    """Mean, Cov(attention, x) and second moment of attention over clouds, and their errors."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(clouds):
        x = law.mean + rng.standard_normal((count, law.rank)) @ law.factor.T
        seen = attended(x, law, parameters, self_key=self_key)
        cross, second = seen.T @ (x - law.mean) / count, seen.T @ seen / count
        rows.append(np.concatenate([seen.mean(axis=0), cross.ravel(), second.ravel()]))
    return np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(clouds)


def predicted(parameters, law, tokens):
    found = gt.attention_slope(parameters, law, tokens)
    cross = found.matrix @ law.covariance
    second = found.noise + cross @ found.matrix.T + np.outer(found.mean, found.mean)
    return np.concatenate([found.mean, cross.ravel(), second.ravel()])


def isotropic(d, c, scale=1.0):
    return gt.Parameters(V=np.eye(d), B=c * np.eye(d)), gt.Gaussian(np.zeros(d), scale * np.eye(d))


def general(d, size=0.4, seed=0, heads=None):
    rng = np.random.default_rng(seed)
    shape = (d, d) if heads is None else (heads, d, d)
    return gt.Parameters(
        V=rng.standard_normal(shape),
        B=size * rng.standard_normal(shape),
        b=rng.standard_normal(d),
        beta=0.3 * rng.standard_normal(shape[:-1]),
    ), gt.Gaussian(0.4 * rng.standard_normal(d), rng.standard_normal((d, d)))


class TestWeights:
    """The moments of softmax weights."""

    @pytest.mark.parametrize(
        ("count", "kappa"),
        [
            (512, {0.5: 0.999, 1: 0.997, 1.5: 0.986, 2: 0.955, 3: 0.829, 4: 0.689}),
            (128, {0.5: 0.988, 1: 0.978, 1.5: 0.947, 2: 0.887, 3: 0.731, 4: 0.594}),
            (4096, {0.5: 0.999, 1: 0.998, 1.5: 0.996, 2: 0.987, 3: 0.918, 4: 0.793}),
        ],
    )
    def test_the_measured_table(self, count, kappa):
        _, tilt = weights(count).slope(None, np.array(list(kappa), dtype=float))
        np.testing.assert_allclose(tilt, list(kappa.values()), atol=0.01)

    @pytest.mark.parametrize("a", [0.05, 0.7, 1.0, 2.3, 6.0, 15.0])
    def test_two_keys_by_quadrature(self, a):
        """Σ w ξ = (ξ₁ + ξ₂)/2 + u/2 tanh(a u/2) with u = ξ₁ - ξ₂ ~ N(0, 2)."""
        found = weights(2).moments(None, np.array([a]))
        root = np.sqrt(2.0)
        tilt = normal(lambda u: 0.5 * u * np.tanh(0.5 * a * u), root) / a
        squares = normal(lambda u: 0.5 * (1 + np.tanh(0.5 * a * u) ** 2), root)
        second = 0.5 + normal(lambda u: 0.25 * (u * np.tanh(0.5 * a * u)) ** 2, root)
        assert found.tilt[0] == pytest.approx(tilt, abs=3e-6)
        assert found.squares[0] == pytest.approx(squares, abs=3e-6)
        assert found.squares[0] + a**2 * found.excess[0] == pytest.approx(second, rel=1e-4)

    @pytest.mark.parametrize(("a", "own"), [(0.3, 0.0), (1.0, -2.0), (2.5, 3.0), (8.0, -5.0)])
    def test_one_key_beside_the_own_by_quadrature(self, a, own):
        """w_0 is a logistic function of one normal variable."""
        found = weights(1).moments(np.array([own]), np.array([a]))

        def share(x):
            return 0.5 * (1 + np.tanh(0.5 * (own - a * x)))

        assert found.own[0] == pytest.approx(normal(share), abs=3e-6)
        assert found.own_square[0] == pytest.approx(normal(lambda x: share(x) ** 2), abs=1e-5)
        assert found.squares[0] == pytest.approx(normal(lambda x: (1 - share(x)) ** 2), abs=1e-5)
        tilt = normal(lambda x: x * (1 - share(x))) / a
        assert found.tilt[0] == pytest.approx(tilt, abs=1e-5)
        cross = normal(lambda x: x * share(x) * (1 - share(x))) / a
        assert found.cross[0] == pytest.approx(cross, abs=1e-5)

    @pytest.mark.parametrize(
        ("a", "own"), [(0.5, 2.0), (1.4, 5.0), (3.0, 8.0), (6.0, 14.0), (1.5, -3.0)]
    )
    def test_plain_softmax(self, a, own):
        n, draws = 60, 20_000
        g = np.random.default_rng(1).standard_normal((draws, n))
        z = np.exp(a * g)
        total = z.sum(axis=1) + np.exp(own)
        w, w0 = z / total[:, None], np.exp(own) / total
        W, squares = (w * g).sum(axis=1), (w**2).sum(axis=1)
        seen = [w0, W / a, squares, w0**2, w0 * W / a, (W**2 - squares) / a**2]
        found = weights(n).moments(np.array([own]), np.array([a]))
        for value, values in zip(vars(found).values(), seen, strict=True):
            error = values.std() / np.sqrt(draws)
            assert abs(value[0] - values.mean()) < SIGMAS * error + 3e-6

    @pytest.mark.parametrize("n", [1, 7, 200])
    def test_tables_resolve_the_integrals(self, n):
        for a in (0.03, 0.77, 1.234, 4.1, 11.0):
            scale = _Scale(a, n)
            own = scale.centre + np.linspace(-15, 15, 61)
            exact = scale.moments(own)
            found = weights(n).moments(own, np.full(own.size, a))
            np.testing.assert_allclose(exact[0] + exact[1], 1.0, atol=1e-11)  # weights add up
            np.testing.assert_allclose(found.own, exact[0], rtol=1e-4)
            np.testing.assert_allclose(found.squares, exact[2], rtol=1e-4)
            for name, row in (("own_square", 3), ("cross", 4), ("excess", 5)):
                np.testing.assert_allclose(getattr(found, name), exact[row], atol=1e-4)

    def test_narrow_scores_give_equal_weights(self):
        found = weights(199).moments(np.array([0.0]), np.array([0.0]))
        assert found.own[0] == pytest.approx(1 / 200, rel=1e-5)
        assert found.squares[0] == pytest.approx(199 / 200**2, rel=1e-5)
        assert weights(200).slope(None, np.zeros(1))[1][0] == pytest.approx(1 - 1 / 200, abs=1e-9)

    def test_wide_scores_choose_the_largest_key(self):
        """a κ tends to the mean of the largest of n normals, and stays there."""
        n = 200
        top = quad(lambda x: x * n * norm.pdf(x) * norm.cdf(x) ** (n - 1), -8, 10)[0]
        a = np.array([LARGEST, 40.0, 4e3, 1e8])
        _, tilt = weights(n).slope(None, a)
        np.testing.assert_allclose(a * tilt, top, rtol=5e-3)
        assert np.ptp(a * tilt) < 1e-12 * top

    def test_a_far_own_key_has_all_or_nothing(self):
        weight, tilt = weights(199).slope(np.array([-80.0, 90.0]), np.array([1.0, 1.0]))
        # E exp(τ)/Z: to first order in 1/n, as for the harmonic mean of a log-normal sum.
        assert weight[0] == pytest.approx(np.exp(-80.5) / 199, rel=0.02)
        assert weight[1] == pytest.approx(1.0, abs=1e-9)
        assert tilt[1] == pytest.approx(0.0, abs=1e-9)


class TestNodes:
    """The points over which a Gaussian is averaged."""

    @pytest.mark.parametrize("r", [1, 2, 3, 4, 9, 64])
    def test_moments(self, r):
        rule = nodes(r)
        z = np.einsum("n,kr->nkr", rule.radii, rule.directions)
        w = rule.weights[:, None] * rule.shares
        assert w.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(np.einsum("nk,nki,nkj->ij", w, z, z), np.eye(r), atol=1e-11)
        squared = np.sum(z**2, axis=2)
        assert np.sum(w * squared**2) == pytest.approx(r * (r + 2), rel=1e-10)
        if r <= 3:
            fourth = np.einsum("nk,nki,nki,nkj,nkj->ij", w, z, z, z, z)
            np.testing.assert_allclose(fourth, 1 + 2 * np.eye(r), atol=1e-10)


class TestSlope:
    """Mean attention, its slope on the token, and its noise."""

    @pytest.mark.parametrize(
        ("d", "c", "count", "with_self", "without"),
        [
            (8, 0.5, 200, 0.619, 0.483),
            (8, 0.5, 3200, 0.521, 0.496),
            (32, 0.25, 200, 0.852, 0.245),
            (32, 0.25, 3200, 0.538, 0.249),
            (32, 0.5, 3200, 0.958, 0.462),
            (32, -0.25, 200, -0.240, -0.240),
        ],
    )
    def test_the_measured_table(self, d, c, count, with_self, without):
        parameters, law = isotropic(d, c)
        own = gt.attention_slope(parameters, law, count)
        masked = gt.attention_slope(parameters, law, gt.FiniteTokens(count, self_key=False))
        np.testing.assert_allclose(own.matrix, own.matrix[0, 0] * np.eye(d), atol=1e-10)
        assert own.matrix[0, 0] == pytest.approx(with_self, abs=0.006)
        assert masked.matrix[0, 0] == pytest.approx(without, abs=0.006)
        assert masked.self_weight[0] == 0

    def test_opposite_signs_do_not_attend_to_themselves(self):
        parameters, law = isotropic(32, 0.25)
        opposite, _ = isotropic(32, -0.25)
        same, other = (gt.attention_slope(p, law, 200) for p in (parameters, opposite))
        assert same.matrix[0, 0] == pytest.approx(0.85, abs=0.01)
        assert other.matrix[0, 0] == pytest.approx(-0.240, abs=0.005)
        assert same.self_weight[0] > 0.7 > 1e-4 > other.self_weight[0]
        assert same.logit_variance[0] == pytest.approx(2.0)

    @pytest.mark.parametrize(
        ("d", "count", "size", "self_key"),
        [(1, 30, 4.0, True), (2, 40, 1.5, True), (3, 40, 0.3, False), (4, 50, 0.2, True)],
    )
    def test_plain_softmax(self, d, count, size, self_key):
        parameters, law = general(d, size, seed=d)
        seen, error = sampled(parameters, law, count, 3000, self_key=self_key)
        found = predicted(parameters, law, gt.FiniteTokens(count, self_key))
        cubature = 2e-3 * np.max(np.abs(found))
        assert np.max(np.abs(found - seen) / (error + cubature / SIGMAS)) < SIGMAS
        # The oracle tells the mean field and a transposed B from the truth.
        V, B, beta = parameters.heads[0]
        S, m = law.covariance, law.mean
        field = np.concatenate([V @ (m + S @ (B @ m + beta)), (V @ S @ B @ S).ravel()])
        assert np.max(np.abs(field - seen[: d + d * d]) / error[: d + d * d]) > 1.5 * SIGMAS
        if d > 1:
            turned = gt.Parameters(V=V, B=B.T, beta=beta)
            wrong = predicted(turned, law, gt.FiniteTokens(count, self_key))
            assert np.max(np.abs(wrong - seen) / error) > 5 * SIGMAS

    def test_high_dimension_against_plain_softmax(self):
        """Not isotropic: what the projection must get right."""
        d, count = 24, 100
        rng = np.random.default_rng(3)
        B = np.diag(0.9 ** np.arange(d)) * 0.35 + 0.03 * rng.standard_normal((d, d))
        law, parameters = gt.Gaussian(np.zeros(d), np.eye(d)), gt.Parameters(V=np.eye(d), B=B)
        found = gt.attention_slope(parameters, law, count)
        seen, error = sampled(parameters, law, count, 400)
        cross = slice(d, d + d * d)
        slope, noise = seen[cross].reshape(d, d), error[cross].reshape(d, d)
        assert found.self_weight[0] > 0.1
        assert np.linalg.norm(found.matrix - slope) < 0.02 * np.linalg.norm(slope) + np.linalg.norm(
            noise
        )
        assert np.linalg.norm(B - slope) > 0.3 * np.linalg.norm(slope)

    def test_heads_add(self):
        parameters, law = general(3, heads=2)
        both = gt.attention_slope(parameters, law, 50)
        each = [
            gt.attention_slope(gt.Parameters(V=V, B=B, beta=beta), law, 50)
            for V, B, beta in parameters.heads
        ]
        for name in ("mean", "matrix", "noise"):
            summed = sum(getattr(one, name) for one in each)
            np.testing.assert_allclose(getattr(both, name), summed, rtol=1e-12)
        assert both.self_weight.shape == both.tilt.shape == both.concentration.shape == (2,)

    def test_infinitely_many_tokens(self):
        parameters, law = general(3, 0.2)
        V, B, beta = parameters.heads[0]
        S, m = law.covariance, law.mean
        found = gt.attention_slope(parameters, law, 10**15)
        np.testing.assert_allclose(found.matrix, V @ S @ B, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(found.mean, V @ (m + S @ (B @ m + beta)), rtol=1e-10)
        assert np.max(np.abs(found.noise)) < 1e-3 * np.max(np.abs(V @ S @ V.T))

    def test_equal_weights_without_scores(self):
        """B = 0: every token attends to the mean of the cloud, whose variance is S/N."""
        law = general(3)[1]
        found = gt.attention_slope(gt.Parameters(V=np.eye(3), B=np.zeros((3, 3))), law, 20)
        S = law.covariance
        np.testing.assert_allclose(found.matrix, np.eye(3) / 20, atol=1e-7)
        np.testing.assert_allclose(found.noise, (1 / 20 - 1 / 400) * S, rtol=1e-4, atol=1e-7)
        assert found.concentration[0] == pytest.approx(1 / 20, rel=1e-5)

    @settings(max_examples=15)
    @given(seed=st.integers(0, 10**6), r=st.integers(1, 4), scale=st.floats(0.1, 10.0))
    def test_coordinates(self, seed, r, scale):
        """Turning and scaling the tokens turns and scales everything."""
        rng = np.random.default_rng(seed)
        parameters, law = general(4, 0.3, seed)
        law = gt.Gaussian(law.mean, law.factor[:, :r])
        T = scale * ortho_group.rvs(4, random_state=rng)
        back = np.linalg.inv(T)
        V, B, beta = parameters.heads[0]
        moved = gt.Parameters(V=T @ V @ back, B=back.T @ B @ back, beta=back.T @ beta)
        here = gt.attention_slope(parameters, law, 30)
        there = gt.attention_slope(moved, gt.Gaussian(T @ law.mean, T @ law.factor), 30)
        near = {"rtol": 1e-6, "atol": 1e-7 * np.max(np.abs(here.matrix)) * max(1.0, scale**2)}
        np.testing.assert_allclose(there.matrix, T @ here.matrix @ back, **near)
        np.testing.assert_allclose(there.mean, T @ here.mean, **near)
        np.testing.assert_allclose(there.self_weight, here.self_weight, rtol=1e-6)

    @pytest.mark.parametrize("r", [2, 3, 5, 16])
    def test_the_choice_of_the_factor_hardly_matters(self, r):
        rng = np.random.default_rng(r)
        G = rng.standard_normal((r, r)) * np.sqrt(2) / r
        head = (np.eye(r), G, 0.3 * rng.standard_normal(r))
        Q = ortho_group.rvs(r, random_state=rng)
        tokens = gt.FiniteTokens(200)
        one, two = (attend(np.zeros(r), L, head, tokens) for L in (np.eye(r), Q))
        np.testing.assert_allclose(Q @ two.slope @ Q.T, one.slope, atol=4e-3)
        np.testing.assert_allclose(Q @ two.mean, one.mean, atol=4e-3)

    def test_a_point_attends_to_itself(self):
        law = gt.Gaussian([1.0, 2.0], np.zeros((2, 0)))
        found = gt.attention_slope(gt.Parameters(V=2 * np.eye(2), B=np.eye(2)), law, 5)
        np.testing.assert_array_equal(found.mean, [2.0, 4.0])
        assert not found.matrix.any()
        assert not found.noise.any()


class TestFlow:
    """The closure of the moment flow."""

    @pytest.mark.parametrize(("t", "variance"), [(0.25, 1.33), (0.5, 2.01), (0.75, 3.73)])
    def test_the_measured_curve(self, t, variance):
        assert same_signs(1600).at(t).trace / 2 == pytest.approx(variance, rel=0.025)

    def test_up_to_the_blow_up_of_the_mean_field(self):
        assert same_signs(1600).at(1.0).trace / 2 == pytest.approx(8.34, rel=0.08)

    def test_plain_tokens(self):
        parameters, law = isotropic(2, 0.5)
        runs = [
            gt.simulate_tokens(
                law, parameters, 0.75, count=400, rng=seed, observe=4, moment_matched=True
            )
            for seed in range(8)
        ]
        traces = np.trace([run.covariances for run in runs], axis1=2, axis2=3)
        closure = gt.simulate(law, parameters, 0.75, tokens=gt.FiniteTokens(400))
        for i, t in enumerate(runs[0].times):
            error = traces[:, i].std() / np.sqrt(len(runs))
            assert abs(traces[:, i].mean() - closure.at(t).trace) < 3 * error + 0.01 * 2 * (1 + t)

    @pytest.mark.slow
    @pytest.mark.parametrize("c", [0.5, -0.5])
    def test_the_own_key_in_twelve_dimensions(self, c):
        """Independent draws: the covariance of a cloud grows by the factor of the closure."""
        parameters, law = isotropic(12, c)
        runs = [
            gt.simulate_tokens(law, parameters, 0.5, count=100, rng=seed, observe=3)
            for seed in range(40)
        ]
        traces = np.trace([run.covariances for run in runs], axis1=2, axis2=3)
        closure = gt.simulate(law, parameters, 0.5, tokens=gt.FiniteTokens(100))
        grown = traces.mean(axis=0) / traces[:, 0].mean()
        for i, t in enumerate(runs[0].times):
            assert grown[i] == pytest.approx(closure.at(t).trace / 12, rel=0.035)
        if c > 0:  # where the mean field doubles
            assert grown[-1] == pytest.approx(2.53, abs=0.04)

    def test_no_blow_up_in_finite_time(self):
        path = same_signs(100)
        assert path.status is gt.Status.SUCCESS
        assert np.isinf(path.blow_up_time)
        assert path.times[-1] == 3.0  # the mean field blows up at 1
        late = path.times > 2
        rate = np.diff(np.log(path.traces[late])) / np.diff(path.times[late])
        assert rate.max() < 2 * np.sqrt(2 * np.log(100))  # the largest of 100 keys pulls
        assert np.ptp(rate) < 1e-4 * rate.max()

    def test_infinitely_many_tokens(self):
        parameters, law = general(3, 0.15)
        one = gt.simulate(law, parameters, 0.3, tokens=gt.FiniteTokens(10**15))
        two = gt.simulate(law, parameters, 0.3)
        np.testing.assert_allclose(one.final.mean, two.final.mean, rtol=1e-7)
        np.testing.assert_allclose(one.final.covariance, two.final.covariance, rtol=1e-6)

    def test_process_noise(self):
        parameters, law = general(2, 0.2)
        noisy = gt.Parameters(V=parameters.V, B=parameters.B, noise=np.diag([0.3, 0.0]))
        line = gt.Gaussian(law.mean, law.factor[:, :1])
        one = gt.simulate(line, noisy, 0.3, tokens=gt.FiniteTokens(10**15))
        two = gt.simulate(line, noisy, 0.3)
        np.testing.assert_allclose(one.final.covariance, two.final.covariance, rtol=1e-6)
        finite = gt.simulate(line, noisy, 0.3, tokens=gt.FiniteTokens(20))
        assert finite.final.rank == 2
        assert np.linalg.norm(finite.final.covariance - two.final.covariance) > 1e-3

    def test_the_rank_is_kept_in_the_span_of_the_parameters(self):
        parameters, law = general(2, 0.3)
        basis = ortho_group.rvs(4, random_state=1)[:, :2]
        inside = gt.Schedule([0.0, 0.4], [parameters], basis=basis)
        start = gt.Gaussian(basis @ law.mean, basis @ law.factor)
        tokens = gt.FiniteTokens(40)
        small = gt.simulate(law, parameters, 0.4, tokens=tokens).final
        large = gt.simulate(start, inside, tokens=tokens).final
        assert large.rank == 2
        np.testing.assert_allclose(
            large.covariance, basis @ small.covariance @ basis.T, atol=1e-6 * small.trace
        )

    def test_sixty_four_dimensions(self):
        parameters, law = isotropic(64, 0.1)
        path = gt.simulate(law, parameters, 0.5, tokens=gt.FiniteTokens(200))
        values = path.final.eigenvalues
        assert values[0] / values[-1] == pytest.approx(1.0, abs=1e-7)
        assert path.final.trace > 1.02 * gt.simulate(law, parameters, 0.5).final.trace

    def test_numbers_beyond_double_precision_end_the_run(self):
        parameters, law = isotropic(2, 1.0, 1e90)
        path = gt.simulate(law, parameters, 100.0, tokens=gt.FiniteTokens(10))
        assert path.status is gt.Status.OVERFLOW


@cache
def same_signs(count):
    parameters, law = isotropic(2, 0.5)
    return gt.simulate(law, parameters, 3.0, tokens=gt.FiniteTokens(count))


class TestLayers:
    """Residual layers of finitely many tokens."""

    def test_one_layer_of_equal_weights(self):
        """x + h x̄ has covariance (1 + (2h + h²)/N) S over all draws of the cloud."""
        law = gt.Gaussian([0.0, 1.0], [[1.0, 0.0], [0.5, 2.0]])
        parameters = gt.Parameters(V=np.eye(2), B=np.zeros((2, 2)))
        made = gt.simulate(law, parameters, 0.5, layers=1, tokens=gt.FiniteTokens(20)).final
        np.testing.assert_allclose(made.covariance, (1 + 1.25 / 20) * law.covariance, rtol=1e-5)
        np.testing.assert_allclose(made.mean, 1.5 * law.mean, rtol=1e-12)

    def test_one_layer_of_plain_softmax(self):
        parameters, law = general(2, 0.5, seed=4)
        count, clouds, h = 30, 4000, 0.7
        rng = np.random.default_rng(0)
        rows = []
        for _ in range(clouds):
            x = law.mean + rng.standard_normal((count, 2)) @ law.factor.T
            x = x + h * (attended(x, law, parameters) + parameters.b)
            rows.append(np.append(x.mean(axis=0), (x.T @ x / count).ravel()))
        seen, error = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(clouds)
        made = gt.simulate(law, parameters, h, layers=1, tokens=gt.FiniteTokens(count)).final
        second = made.covariance + np.outer(made.mean, made.mean)
        found = np.append(made.mean, second.ravel())
        assert np.max(np.abs(found - seen) / error) < SIGMAS
        # Without the noise of attention it would be wrong.
        slope = gt.attention_slope(parameters, law, count)
        less = found - np.append([0.0, 0.0], (h**2 * slope.noise).ravel())
        assert np.max(np.abs(less - seen) / error) > 2 * SIGMAS

    def test_the_noise_of_attention_raises_the_rank(self):
        parameters, law = general(3)
        line = gt.Gaussian(law.mean, law.factor[:, :1])
        made = gt.simulate(line, parameters, 1.0, layers=2, tokens=gt.FiniteTokens(20))
        assert made.final.rank > 1
        assert made.factors.shape == (3, 3, 3)

    def test_infinitely_many_tokens(self):
        parameters, law = general(3, 0.15)
        one = gt.simulate(law, parameters, 0.6, layers=3, tokens=gt.FiniteTokens(10**15))
        two = gt.simulate(law, parameters, 0.6, layers=3)
        np.testing.assert_allclose(one.final.mean, two.final.mean, rtol=1e-6)
        np.testing.assert_allclose(one.final.covariance, two.final.covariance, rtol=2e-3)


class TestBadInput:
    """What is refused."""

    @pytest.mark.parametrize("count", [1, 0, -5, 10**16, 2.5, True, "many"])
    def test_number_of_tokens(self, count):
        with pytest.raises(InvalidNumber, match="`count`"):
            gt.FiniteTokens(count)

    def test_own_key(self):
        with pytest.raises(InvalidShape, match="`self_key` must be True or False, not int"):
            gt.FiniteTokens(5, self_key=1)

    def test_tokens_of_a_simulation(self):
        parameters, law = isotropic(2, 0.5)
        with pytest.raises(InvalidShape, match=r"must be FiniteTokens\(count\), not int"):
            gt.simulate(law, parameters, 1.0, tokens=200)

    def test_slope(self):
        parameters, law = isotropic(2, 0.5)
        with pytest.raises(InvalidShape, match="dimension 2, but the law has 3"):
            gt.attention_slope(parameters, gt.Gaussian(np.zeros(3), np.eye(3)), 10)
        with pytest.raises(InvalidShape, match="`parameters`"):
            gt.attention_slope(law, law, 10)
        with pytest.raises(InvalidShape, match="`law`"):
            gt.attention_slope(parameters, parameters, 10)

    def test_feedback_around_a_closure(self):
        parameters, law = isotropic(2, -0.5)
        path = gt.simulate(law, parameters, 1.0, tokens=gt.FiniteTokens(50))
        with pytest.raises(InvalidMethod, match="without `tokens`"):
            gt.track(path)


class TestResults:
    """Files, reports, storage."""

    @pytest.mark.parametrize("layers", [None, 2])
    def test_saving_and_words(self, tmp_path, layers):
        parameters, law = general(2, 0.3)
        tokens = gt.FiniteTokens(30, self_key=False)
        path = gt.simulate(law, parameters, 0.4, layers=layers, tokens=tokens)
        again = gt.load(path.save(tmp_path / "saved"))
        assert again.problem.tokens == tokens
        np.testing.assert_array_equal(again.factors, path.factors)
        np.testing.assert_array_equal(again.at(0.3).mean, path.at(0.3).mean)
        text = again.summary()
        assert "30, the own one not among their keys" in text
        assert "log N = 3.4" in text
        assert set(again.plot()) == {"path", "covariance", "mean", "tokens"}
        page = again.report(tmp_path / "report.html").read_text(encoding="utf-8")
        assert "tokens=gt.FiniteTokens(count=30, self_key=False)" in page
        assert "the law of one among 30 tokens" in page

    @pytest.mark.parametrize(
        "damage", [{"count": 1, "self_key": True}, {"count": 30}, "many", {"count": 3.5}]
    )
    def test_damaged_numbers_of_tokens(self, tmp_path, damage):
        parameters, law = isotropic(1, 0.3)
        path = gt.simulate(law, parameters, 0.1, layers=1, tokens=gt.FiniteTokens(30))
        file = path.save(tmp_path / "saved") / "result.json"
        values = json.loads(file.read_text(encoding="utf-8"))
        assert values["tokens"] == {"count": 30, "self_key": True}
        file.write_text(json.dumps({**values, "tokens": damage}), encoding="utf-8")
        with pytest.raises(ResultFileInvalid):
            gt.load(file.parent)

    def test_problem_file(self, tmp_path):
        file = tmp_path / "x.toml"
        text = (
            'kind = "simulate"\n[start]\nmean = [0.0]\ncovariance = [[1.0]]\n'
            "[parameters]\nV = [[1.0]]\nB = [[0.5]]\n[simulate]\nhorizon = 0.5\n"
            "tokens = {count = COUNT, self_key = false}\n"
        )
        file.write_text(text.replace("COUNT", "200"), encoding="utf-8")
        task = kinds.prepare(kinds.read(file), file)
        assert "flow of 200 tokens" in task.about
        assert task.run(lambda f, t: None).problem.tokens == gt.FiniteTokens(200, self_key=False)
        file.write_text(text.replace("COUNT", "1"), encoding="utf-8")
        with pytest.raises(InvalidNumber, match=r"simulate\.tokens.*`count` must be at least 2"):
            kinds.prepare(kinds.read(file), file)
        file.write_text(text.replace("count = COUNT", "number = 3"), encoding="utf-8")
        with pytest.raises(ProblemFileInvalid, match="number"):
            kinds.read(file)


class TestLargeScores:
    def test_wide_laws_all_grow_alike(self):
        # Once the largest score has won, only the direction of the scores matters.
        p = gt.Parameters(V=np.eye(2), B=0.3 * np.eye(2))
        ends = []
        for size in (1e4, 1e8, 1e30):
            path = gt.simulate(
                gt.Gaussian([0.0, 0.0], size * np.eye(2)), p, 0.5, tokens=gt.FiniteTokens(100)
            )
            assert path.status.name == "SUCCESS"
            assert path.steps < 100
            ends.append(path.final.factor / size)
        for end in ends[1:]:
            np.testing.assert_allclose(end @ end.T, ends[0] @ ends[0].T, rtol=1e-6, atol=1e-6)

    def test_the_slope_is_that_of_drawn_keys(self):
        # The noise as well, relative to the square of the scale.
        G, size, rng = np.array([[0.6, 0.2], [-0.3, 0.4]]), 1e6, np.random.default_rng(5)
        law = gt.Gaussian(np.zeros(2), size * np.eye(2))
        seen = gt.attention_slope(gt.Parameters(V=np.eye(2), B=G), law, 30)
        x = rng.standard_normal((20000, 30, 2))
        winner = np.argmax(np.einsum("mjd,md->mj", x, x[:, 0] @ G.T), axis=1)
        found = x[np.arange(len(x)), winner]
        slope = found.T @ x[:, 0] / len(x)
        np.testing.assert_allclose(seen.matrix, slope, atol=0.05)
        noise = np.cov(found.T) - slope @ slope.T
        np.testing.assert_allclose(seen.noise / size**2, noise, atol=0.1)

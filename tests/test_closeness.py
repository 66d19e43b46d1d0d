"""Closeness of the true law to Gaussian flows: closed forms, plain quadrature, plain tokens."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.stats import norm

import gtcontrol as gt
from gtcontrol.cli import kinds
from gtcontrol.errors import InvalidMethod, InvalidNumber, InvalidShape, NotFinite
from gtcontrol.moments.activations import mean_and_slope, variance
from gtcontrol.problem import zoo
from gtcontrol.reporting.html import render
from gtcontrol.results.closeness import order_of
from gtcontrol.validation import mean_field
from gtcontrol.validation.nodes import normal_nodes, number_of_nodes
from gtcontrol.validation.slices import directions, sliced

LAYER = gt.FeedForward(
    [[1.0, 0.3], [-0.4, 0.9], [0.7, -0.8]],
    [0.2, -0.3, 0.1],
    [[-0.6, 0.4, 0.3], [0.2, -0.5, 0.5]],
)
PARAMETERS = gt.Parameters(
    V=[[0.6, 0.3], [-0.1, 0.5]], B=[[-0.4, 0.6], [-0.5, -0.3]], beta=[0.1, -0.2]
)
START = gt.Gaussian.from_covariance([0.3, -0.2], [[1.0, 0.2], [0.2, 0.6]])

#: On the line: x' = v att(x) + o relu(w x + c), from N(m, S).
V, B, O, W, C, M, S = 0.5, -0.6, -0.8, 1.3, -0.2, 0.4, 1.2


def on_the_line(times, **options) -> gt.Closeness:
    return gt.closeness(
        gt.Gaussian.from_covariance([M], [[S]]),
        gt.Parameters(V=[[V]], B=[[B]]),
        gt.FeedForward([[W]], [C], [[O]]),
        times[-1],
        times=times,
        count=512,
        **options,
    )


def small_study(**options) -> gt.Closeness:
    given = {"count": 256, "seeds": 2} | options
    return gt.closeness(START, PARAMETERS, LAYER, 0.1, **given)


class TestOrders:
    def test_in_the_plane(self):
        seen = gt.closeness(START, PARAMETERS, LAYER, 0.4, count=512, seeds=2)
        assert 1.7 <= seen.orders["moments"] <= 2.3
        assert 0.7 <= seen.orders["shape"] <= 1.5
        assert 0.9 <= seen.orders["naive"] <= 1.5
        assert max(seen.spreads.values()) < 0.1
        assert np.all(seen.moments < 0.2 * seen.shape)

    @pytest.mark.slow
    def test_in_eight_dimensions(self):
        rng = np.random.default_rng(1)
        d, k = 8, 16
        layer = gt.FeedForward(
            rng.standard_normal((k, d)) / np.sqrt(d),
            0.3 * rng.standard_normal(k),
            rng.standard_normal((d, k)) / np.sqrt(k),
        )
        p = gt.Parameters(
            V=0.5 * np.eye(d), B=-0.3 * np.eye(d) + 0.1 * rng.standard_normal((d, d)) / np.sqrt(d)
        )
        law = gt.Gaussian(0.3 * rng.standard_normal(d), np.diag(np.sqrt(0.5 + rng.random(d) / 2)))
        seen = gt.closeness(law, p, layer, 0.1, times=[0.0125, 0.025, 0.05, 0.1], seeds=1)
        assert 1.7 <= seen.orders["moments"] <= 2.3
        assert 0.7 <= seen.orders["shape"] <= 1.5
        assert 0.9 <= seen.orders["naive"] <= 1.5

    @pytest.mark.parametrize("activation", ["tanh", "gelu", np.abs])
    def test_of_other_activations(self, activation):
        layer = gt.FeedForward(LAYER.inner, LAYER.bias, LAYER.outer, activation)
        seen = gt.closeness(
            START, PARAMETERS, layer, 0.1, times=[0.025, 0.05, 0.1], count=256, seeds=1
        )
        assert seen.orders["moments"] == pytest.approx(2.0, abs=0.15)
        assert seen.orders["shape"] == pytest.approx(1.0, abs=0.15)
        assert seen.orders["naive"] == pytest.approx(1.0, abs=0.15)

    def test_an_affine_layer_leaves_laws_gaussian(self):
        layer = gt.FeedForward(LAYER.inner, LAYER.bias, LAYER.outer, "identity")
        seen = gt.closeness(START, PARAMETERS, layer, 0.2, count=256, seeds=1)
        for name in ("shape", "law", "moments", "naive"):
            assert getattr(seen, name).max() < 1e-8
            assert np.isnan(seen.orders[name])
        assert "stays Gaussian, to rounding" in seen.summary()

    def test_order_is_a_slope(self):
        t = np.array([0.1, 0.2, 0.4])
        assert order_of(t, 3 * t**2) == pytest.approx(2.0)
        assert np.isnan(order_of(t, 1e-12 * t))
        assert np.isnan(order_of(t[:1], t[:1]))


class TestLimits:
    def test_leading_terms_on_the_line(self):
        """What is left of relu by its regression on u, and what linearising at the mean misses."""
        seen = on_the_line([0.0025, 0.005], seeds=1)
        mu, s = np.array([W * M + C]), np.array([W * np.sqrt(S)])
        value, slope = mean_and_slope("relu", mu, s)
        left = variance("relu", mu, s)[0] - (slope[0] * s[0]) ** 2
        assert seen.shape[0, 0] / 0.0025 == pytest.approx(
            abs(O) * np.sqrt(left) / np.sqrt(S), rel=0.02
        )
        shift = O * (value[0] - max(mu[0], 0.0))
        stretch = O * W * (slope[0] - float(mu[0] > 0)) * np.sqrt(S)
        assert seen.naive[0, 0] / 0.0025 == pytest.approx(
            np.hypot(shift, stretch) / np.sqrt(S), rel=0.02
        )

    def test_moments_against_a_plain_quadrature_on_the_line(self):
        """A fine rule, every score written out, no control variate, four digits of the distance."""
        nodes, weights = np.polynomial.legendre.leggauss(15)
        cuts = np.linspace(-8.5, 8.5, 41)
        cuts = np.sort(np.append(cuts, (-C / W - M) / np.sqrt(S)))  # the kink ends a panel
        half, middle = np.diff(cuts) / 2, (cuts[1:] + cuts[:-1]) / 2
        z = (middle[:, None] + half[:, None] * nodes).ravel()
        w = (half[:, None] * weights).ravel() * norm.pdf(z)
        w /= w.sum()

        def rate(x):
            scores = np.exp(B * np.outer(x, x)) * w
            return V * (scores @ x) / scores.sum(axis=1) + O * np.maximum(W * x + C, 0)

        x, h = M + np.sqrt(S) * z, 0.2 / 32
        for _ in range(32):
            k1 = rate(x)
            k2 = rate(x + h / 2 * k1)
            k3 = rate(x + h / 2 * k2)
            k4 = rate(x + h * k3)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        mean = w @ x
        deviation = np.sqrt(w @ (x - mean) ** 2)
        seen = on_the_line([0.1, 0.2], seeds=1)
        flow, naive = seen.means[1:, 0], np.sqrt(seen.covariances[1:, 0, 0])
        off = np.hypot(flow - mean, naive - deviation) / deviation
        assert seen.moments[0, -1] == pytest.approx(off[0], rel=0.02)
        assert seen.naive[0, -1] == pytest.approx(off[1], rel=1e-3)

    def test_shorter_steps_change_nothing(self, monkeypatch):
        coarse = small_study(seeds=1)
        monkeypatch.setattr(mean_field, "STEP", 0.03)
        fine = small_study(seeds=1)
        np.testing.assert_allclose(coarse.moments, fine.moments, rtol=0.02)
        np.testing.assert_allclose(coarse.shape, fine.shape, rtol=0.02)


class TestTokens:
    """Many tokens with every score written out, sharing no code with the package."""

    @staticmethod
    def moved(p: gt.Parameters, horizon: float, seed: int) -> np.ndarray:
        z = np.random.default_rng(seed).standard_normal((600, 2))
        z = np.concatenate([z, -z])
        z = z @ np.linalg.inv(np.linalg.cholesky(z.T @ z / len(z))).T  # exact moments
        x = START.mean + z @ START.factor.T

        def rate(x):
            weights = np.exp((x @ p.B.T + p.beta) @ x.T)
            average = weights @ x / weights.sum(axis=1, keepdims=True)
            hidden = np.maximum(x @ LAYER.inner.T + LAYER.bias, 0)
            return average @ p.V.T + hidden @ LAYER.outer.T

        h = horizon / 8
        for _ in range(8):
            middle = x + h / 2 * rate(x)
            x = x + h * rate(middle)
        return x

    def test_the_true_law_is_that_of_tokens_and_a_transposed_b_is_not(self):
        seen = gt.closeness(START, PARAMETERS, LAYER, 0.8, times=[0.4, 0.8], count=512, seeds=1)
        clouds = [self.moved(PARAMETERS, 0.8, seed) for seed in range(4)]
        law = gt.Gaussian.from_covariance(seen.means[0], seen.covariances[0])

        def distances(tokens):
            laws = [gt.Gaussian.from_covariance(x.mean(0), np.cov(x.T, bias=True)) for x in tokens]
            return np.array([gt.wasserstein(law, other) for other in laws])

        assert distances(clouds).mean() < 0.02
        turned = gt.Parameters(V=PARAMETERS.V, B=PARAMETERS.B.T, beta=PARAMETERS.beta)
        assert distances([self.moved(turned, 0.8, 0)])[0] > 0.05


class TestNodes:
    def test_what_is_asked_for_is_exact(self):
        nodes = normal_nodes(512, 3, START, LAYER)
        z, w = nodes.points, nodes.weights
        assert w.min() > 0
        assert w.sum() == pytest.approx(1, abs=1e-12)
        mean, covariance = nodes.moments(nodes.moved(START))
        np.testing.assert_allclose(mean, START.mean, atol=1e-11)
        np.testing.assert_allclose(covariance, START.covariance, atol=1e-11)
        u = nodes.moved(START) @ LAYER.inner.T + LAYER.bias
        root = LAYER.inner @ START.factor
        s = np.linalg.norm(root, axis=1)
        mu = LAYER.inner @ START.mean + LAYER.bias
        expected = mu * norm.cdf(mu / s) + s * norm.pdf(mu / s)
        np.testing.assert_allclose(w @ np.maximum(u, 0), expected, atol=1e-11)
        tilted = (np.maximum(u, 0).T * w) @ z
        np.testing.assert_allclose(tilted, norm.cdf(mu / s)[:, None] * root, atol=1e-11)

    def test_a_singular_start_keeps_nodes_for_every_direction(self):
        line = gt.Gaussian(START.mean, START.factor[:, :1])
        nodes = normal_nodes(256, 0, line, LAYER)
        _, covariance = nodes.moments(nodes.moved(line))
        np.testing.assert_allclose(covariance, line.covariance, atol=1e-11)

    def test_a_singular_start_leaves_its_line_with_a_variance_of_order_two(self):
        """The layer bends the line: a variance of order t² across it, a distance of order t."""
        line = gt.Gaussian(START.mean, START.factor[:, :1])
        studies = [
            gt.closeness(line, PARAMETERS, LAYER, t, times=[t / 2, t], count=256, seeds=1)
            for t in (0.05, 0.1)
        ]
        assert studies[1].orders["moments"] == pytest.approx(1.0, abs=0.1)
        assert "(theory: t^2)" not in studies[0].summary()
        off = [np.linalg.norm(s.covariances[0] - s.covariances[1]) for s in studies]
        assert np.log2(off[1] / off[0]) == pytest.approx(2.0, abs=0.15)

    @pytest.mark.parametrize("name", ["tokens-relu", "tokens-mixture"])
    def test_too_few_are_refused_with_the_number_given_by_check_and_by_run(self, name, tmp_path):
        text = zoo.path(name).read_text(encoding="utf-8")
        path = tmp_path / "few.toml"
        path.write_text(re.sub(r"count = \d+", "count = 3", text), encoding="utf-8")
        with pytest.raises(InvalidNumber, match=r"count`: `count` is 3, too few nodes"):
            kinds.prepare(kinds.read(path), path)

    def test_too_few_name_the_number_given(self):
        # 1 + 2 + 3 moments, and a value and two slopes for each hidden unit
        least = 6 * (6 + 3 * LAYER.hidden)
        with pytest.raises(InvalidNumber, match=f"is 3, too few nodes .* at least {least}"):
            gt.closeness(START, PARAMETERS, LAYER, 0.1, count=3)
        assert number_of_nodes(least, 2, LAYER) >= least

    @pytest.mark.parametrize("dim", [1, 2, 5])
    def test_sliced_distance_of_shifted_and_stretched_laws(self, dim):
        law = gt.Gaussian(np.zeros(dim), np.eye(dim))
        nodes = normal_nodes(1024, 0, law)
        along = directions(dim)
        np.testing.assert_allclose(np.linalg.norm(along, axis=1), 1.0)
        shift = np.arange(1.0, dim + 1)
        expected = np.sqrt(np.mean((along @ shift) ** 2))
        moved = sliced(nodes.points, nodes.points + shift, nodes.weights, along)
        assert moved == pytest.approx(expected, rel=1e-9)
        # N(0, I) and N(0, 4 I) are 1 apart in every direction; bins of 1/64 lose a little.
        assert sliced(nodes.points, 2 * nodes.points, nodes.weights, along) == pytest.approx(
            1.0, abs=0.01
        )
        assert sliced(nodes.points, -nodes.points, nodes.weights, along) < 0.02


class TestAnswers:
    def test_it_stops_before_a_blow_up_and_says_so(self):
        seen = gt.closeness(
            gt.Gaussian([0.0], [[1.0]]),
            gt.Parameters(V=[[1.0]], B=[[1.0]]),
            gt.FeedForward([[1.0]], None, [[0.2]]),
            1.0,
            times=[0.1, 0.2, 0.9],
            count=256,
            seeds=1,
        )
        assert seen.status is gt.Status.BLOW_UP
        assert seen.times.tolist() == [0.1, 0.2]
        assert "It was measured up to t = 0.2" in " ".join(seen.summary().split())

    def test_progress_and_the_words(self):
        told = []
        seen = small_study(progress=lambda fraction, text: told.append(fraction))
        assert told == sorted(told)
        assert told[-1] == pytest.approx(1.0)
        assert seen.times.tolist() == [0.00625, 0.0125, 0.025, 0.05, 0.1]
        assert "theory: t^2" in " ".join(seen.summary().split())
        assert set(seen.plot()) == {"distances", "law"}

    def test_key_numbers_say_how_far_and_how_well_it_is_known(self):
        seen = small_study()
        words = " ".join(seen.summary().split())
        for name in ("shape", "law", "moments", "naive"):
            last = getattr(seen, name)[:, -1].mean()
            assert seen.errors[name] == pytest.approx(last)
            told = re.search(rf"{name} ([\d.]+) % at t = 0.1, like t\^", words)
            assert float(told[1]) == pytest.approx(100 * last, rel=0.03)
        assert "shape leaves Gaussians" in words
        assert "in sliced W₂" in words
        largest = max(np.max(np.ptp(seen.law, axis=0)), 0)
        assert largest > 0
        assert "each distance differs between them by at most" in words

    def test_one_set_of_nodes_says_nothing_about_the_nodes(self):
        seen = small_study(seeds=1)
        assert all(np.isnan(value) for value in seen.spreads.values())
        assert "not known how far the distances depend on the nodes" in " ".join(
            seen.summary().split()
        )

    def test_from_a_flat_start_no_second_order_is_promised(self):
        line = gt.Gaussian([0.3, -0.2], [[1.0], [0.4]])
        seen = gt.closeness(line, PARAMETERS, LAYER, 0.1, count=256, seeds=1)
        assert seen.orders["moments"] < 1.6
        assert "theory: t^2" not in " ".join(seen.summary().split())

    def test_the_model_of_a_report_is_that_of_the_layer(self):
        page = render(small_study(seeds=1), {})
        assert "f(x) = outer · act(inner x + bias)" in page
        assert "stays Gaussian under" not in page
        plain = gt.simulate(START, PARAMETERS, 0.1)
        assert "stays Gaussian under" in render(plain, {})
        layered = [
            gt.simulate(START, PARAMETERS, 0.1, feedforward=LAYER),
            gt.simulate_tokens(START, PARAMETERS, 0.1, count=9, rng=0, feedforward=LAYER),
        ]
        for result in layered:
            assert "S′ = M S + S Mᵀ with M = A + J + V S B" in render(result, {})

    def test_what_is_finished_survives_an_interruption(self, tmp_path):
        def stop(fraction, text):
            if "nodes 2 of 3" in text:
                raise KeyboardInterrupt

        seen = small_study(seeds=3, progress=stop)
        assert seen.status is gt.Status.INTERRUPTED
        assert not seen.answered
        np.testing.assert_array_equal(seen.law, small_study(seeds=1).law)
        assert "1 of 3 sets" in render(seen, {})
        seen.save(tmp_path)
        np.testing.assert_array_equal(gt.load(tmp_path).law, seen.law)

        def at_once(fraction, text):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            small_study(progress=at_once)

    def test_a_jump_in_the_layer(self):
        # The law is torn apart at once; moments follow the linearised flow, whose rates are exact.
        layer = gt.FeedForward([[1.0]], [0.3], [[-0.3]], activation=np.sign)
        seen = gt.closeness(
            gt.Gaussian([0.0], [[1.0]]), gt.Parameters(V=[[0.0]]), layer, 0.2, count=256, seeds=1
        )
        assert seen.orders["moments"] > 1.4
        assert 0.4 < seen.orders["shape"] < 1.2

    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({"times": [0.1]}, InvalidNumber, "at least two positive, increasing times"),
            ({"times": [0.0, 0.1]}, InvalidNumber, "at least two positive, increasing times"),
            ({"times": [0.1, 0.3]}, InvalidNumber, "`times` reach 0.3, beyond the horizon 0.1"),
            ({"times": [0.1, np.nan]}, NotFinite, "`times` holds nan"),
            ({"count": 16}, InvalidNumber, "`count` is 16, too few nodes for 15 expectations"),
            ({"seeds": 0}, InvalidNumber, "`seeds` must be at least 1"),
        ],
    )
    def test_what_is_refused(self, options, error, words):
        with pytest.raises(error, match=words):
            small_study(**options)

    def test_what_else_is_refused(self):
        with pytest.raises(InvalidShape, match="`feedforward` is needed"):
            gt.closeness(START, PARAMETERS, None, 0.1)
        with pytest.raises(InvalidShape, match="`start` must be a Gaussian, not int"):
            gt.closeness(3, PARAMETERS, LAYER, 0.1)
        with pytest.raises(InvalidMethod, match="with process noise"):
            gt.closeness(START, gt.Parameters(noise=np.eye(2)), LAYER, 0.1)
        with pytest.raises(InvalidNumber, match="`start` has rank 0"):
            gt.closeness(gt.Gaussian([0.0, 1.0], np.zeros((2, 0))), PARAMETERS, LAYER, 0.1)

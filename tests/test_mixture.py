"""Mixtures under attention: closed forms against quadrature, the true law against tokens."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.stats import norm

import gtcontrol as gt
from gtcontrol.cli import kinds
from gtcontrol.errors import InvalidMethod, InvalidNumber, InvalidShape
from gtcontrol.problem import files
from gtcontrol.reporting.html import render
from gtcontrol.validation.mean_field import gaussian_average

LEFT = gt.Gaussian.from_covariance([-1.5, 0.0], [[0.3, 0.1], [0.1, 0.2]])
RIGHT = gt.Gaussian.from_covariance([1.0, 0.5], [[0.2, -0.05], [-0.05, 0.4]])
BOTH = gt.Mixture([0.4, 0.6], [LEFT, RIGHT])
PARAMETERS = gt.Parameters(
    A=[[-0.3, 0.0], [0.0, -0.3]], V=[[1.0, 0.2], [-0.1, 0.8]], B=[[0.6, 0.3], [-0.2, 0.5]]
)

CURVES = ("apart", "coupled", "apart_moments", "coupled_moments", "component_shape")


def study(start=BOTH, parameters=PARAMETERS, horizon=0.1, **options) -> gt.MixtureRun:
    return gt.follow_mixture(start, parameters, horizon, **({"count": 256} | options))


class TestMixture:
    def test_moments_are_those_of_a_large_sample(self):
        x = BOTH.sample(200_000, np.random.default_rng(0))
        error = x.std(axis=0) / np.sqrt(len(x))
        assert np.all(np.abs(x.mean(axis=0) - BOTH.mean) < 4 * error)
        np.testing.assert_allclose(np.cov(x.T), BOTH.covariance, atol=0.02)
        np.testing.assert_allclose(BOTH.gaussian.covariance, BOTH.covariance, atol=1e-14)
        share = np.mean(x[:, 0] < -0.25)  # the components hardly overlap
        assert share == pytest.approx(0.4, abs=0.02)

    def test_antithetic_pairs_are_opposite_within_their_component(self):
        x = BOTH.sample(1000, np.random.default_rng(0), antithetic=True)
        centres = 0.5 * (x[:500] + x[500:])
        distances = [np.linalg.norm(centres - law.mean, axis=1) for law in BOTH.laws]
        assert np.minimum(*distances).max() < 1e-12

    def test_ranks_may_differ(self):
        token = gt.Gaussian([3.0, 3.0], np.zeros((2, 0)))
        x = gt.Mixture([0.5, 0.5], [LEFT, token]).sample(100, np.random.default_rng(0))
        assert np.sum(np.all(x == 3.0, axis=1)) > 30

    @pytest.mark.parametrize(
        ("weights", "laws", "error", "words"),
        [
            ([0.5, 0.6], [LEFT, RIGHT], InvalidNumber, "must sum to 1; their sum is 1.1"),
            ([1.5, -0.5], [LEFT, RIGHT], InvalidNumber, "must be positive; the smallest is -0.5"),
            ([1.0], [LEFT, RIGHT], InvalidShape, r"`weights` must have shape \(2,\)"),
            ([1.0], [], InvalidShape, "must be a sequence of Gaussians, one or more"),
            ([0.5, 0.5], [LEFT, 3], InvalidShape, "must be a sequence of Gaussians"),
            ([0.5, 0.5], [LEFT, gt.Gaussian([0.0], [[1.0]])], InvalidShape, r"\[1, 2\]"),
        ],
    )
    def test_what_is_refused(self, weights, laws, error, words):
        with pytest.raises(error, match=words):
            gt.Mixture(weights, laws)

    def test_ways_to_draw_that_are_refused(self):
        with pytest.raises(InvalidMethod, match="`moment_matched` draws are for Gaussians"):
            BOTH.sample(10, np.random.default_rng(0), moment_matched=True)
        with pytest.raises(InvalidNumber, match="must be even"):
            BOTH.sample(11, np.random.default_rng(0), antithetic=True)


class TestAverage:
    @given(st.floats(-2, 2), st.floats(0.05, 0.95), st.floats(-2, 2), st.floats(0.1, 2))
    @settings(max_examples=25)
    def test_on_the_line_it_is_the_quadrature(self, query, share, mean, deviation):
        p, m, s = np.array([share, 1 - share]), np.array([mean, 1.0]), np.array([deviation, 0.7])

        def density(y):
            return float(np.sum(p * norm.pdf(y, m, s)) * np.exp(query * y))

        tilted = m + s**2 * query
        span = min(tilted - 12 * s), max(tilted + 12 * s)
        cuts = sorted({*tilted, *m})
        mass = quad(density, *span, points=cuts, limit=400, epsabs=0, epsrel=1e-11)[0]
        first = quad(lambda y: y * density(y), *span, points=cuts, limit=400, epsabs=1e-11 * mass)[
            0
        ]
        average, shares = gaussian_average(
            np.array([[query]]), p, m[:, None], (s**2)[:, None, None]
        )
        assert average[0, 0] == pytest.approx(first / mass, rel=1e-8, abs=1e-8)
        assert shares.sum() == pytest.approx(1)

    def test_in_the_plane_it_is_that_of_many_keys(self):
        query = np.array([0.6, -0.4])
        y = BOTH.sample(400_000, np.random.default_rng(1))
        w = np.exp(y @ query)
        w /= w.sum()
        seen = w @ y
        error = np.sqrt(w**2 @ (y - seen) ** 2)
        laws = BOTH.laws
        average, _ = gaussian_average(
            query[None],
            BOTH.weights,
            np.array([law.mean for law in laws]),
            np.array([law.covariance for law in laws]),
        )
        assert np.all(np.abs(average[0] - seen) < 4 * error)

    def test_it_is_not_affine_with_two_components(self):
        q = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
        for start, bends in ((BOTH, True), (gt.Mixture([1.0], [LEFT]), False)):
            means = np.array([law.mean for law in start.laws])
            covariances = np.array([law.covariance for law in start.laws])
            average, _ = gaussian_average(q, start.weights, means, covariances)
            bend = np.linalg.norm(average[0] - 2 * average[1] + average[2])
            assert bool(bend > 0.1) is bends


class TestStudy:
    def test_orders_at_short_times(self):
        seen = study(horizon=0.04, times=[0.01, 0.02, 0.04])
        assert seen.orders["apart"] == pytest.approx(1.0, abs=0.1)
        assert seen.orders["apart_moments"] == pytest.approx(1.0, abs=0.1)
        assert seen.orders["coupled"] == pytest.approx(1.0, abs=0.15)
        assert seen.orders["component_shape"] == pytest.approx(1.0, abs=0.15)
        assert seen.orders["coupled_moments"] == pytest.approx(2.0, abs=0.25)

    def test_first_rates_on_the_line(self):
        """Mean of a component against that of a component by itself, by quadrature."""
        m, s, p, v, b = np.array([-1.0, 1.2]), np.array([0.5, 0.8]), np.array([0.3, 0.7]), 0.9, 0.7

        def field(x):
            q = b * x
            shares = p * np.exp(q * m + 0.5 * (q * s) ** 2)
            return v * float(shares @ (m + s**2 * q) / shares.sum())

        rates = [
            quad(
                lambda x, k=k: field(x) * norm.pdf(x, m[k], s[k]), m[k] - 9 * s[k], m[k] + 9 * s[k]
            )[0]
            for k in range(2)
        ]
        laws = [gt.Gaussian([m[k]], [[s[k]]]) for k in range(2)]
        t = 1e-3
        seen = study(
            gt.Mixture(p, laws), gt.Parameters(V=[[v]], B=[[b]]), t, times=[t / 2, t], count=512
        )
        np.testing.assert_allclose((seen.means[0, :, 0] - m) / t, rates, rtol=5e-3)
        alone = v * (m + s**2 * b * m)
        np.testing.assert_allclose((seen.means[2, :, 0] - m) / t, alone, rtol=5e-3)

    def test_without_attention_components_move_by_themselves(self):
        seen = study(parameters=gt.Parameters(A=[[0.0, 1.0], [-1.0, -0.2]], b=[1.0, 2.0]))
        assert max(seen.errors.values()) < 1e-6
        assert "is the mixture of its moved components" in " ".join(seen.summary().split())

    def test_one_component_stays_gaussian(self):
        seen = study(gt.Mixture([1.0], [LEFT]), horizon=0.4)
        for name in CURVES:
            assert getattr(seen, name).max() < 1e-4

    def test_equal_components_are_one(self):
        seen = study(gt.Mixture([0.3, 0.7], [LEFT, LEFT]), horizon=0.4)
        assert max(seen.errors[name] for name in CURVES) < 1e-4

    def test_the_order_of_the_components_does_not_matter(self):
        turned = gt.Mixture(BOTH.weights[::-1], BOTH.laws[::-1])
        one, other = study(), study(turned)
        np.testing.assert_allclose(one.means, other.means[:, ::-1], atol=2e-4)
        assert one.errors["apart"] == pytest.approx(other.errors["apart"], rel=0.02)

    def test_a_common_shift_of_tokens_is_a_change_of_parameters(self):
        """x → x + a under V, B: the scores gain a bias, which b and β take up."""
        a = np.array([0.3, -0.4])
        moved = gt.Mixture(
            BOTH.weights, [gt.Gaussian(law.mean + a, law.factor) for law in BOTH.laws]
        )
        p = PARAMETERS
        shifted = gt.Parameters(A=p.A, V=p.V, B=p.B, b=-p.A @ a - p.V @ a, beta=-p.B @ a)
        one, other = study(), study(moved, shifted)
        np.testing.assert_allclose(one.means + a, other.means, atol=1e-8)
        np.testing.assert_allclose(one.coupled, other.coupled, rtol=1e-5)

    def test_the_true_law_is_that_of_tokens_and_not_that_of_moved_components(self):
        horizon = 0.6
        seen = study(horizon=horizon, times=[0.3, horizon], count=512)
        count = 1500
        gaps = []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            sizes = [int(0.4 * count), int(0.6 * count)]
            x = np.concatenate(
                [
                    law.sample(n, rng, antithetic=True, moment_matched=True)
                    for n, law in zip(sizes, BOTH.laws, strict=True)
                ]
            )
            h = horizon / 8
            for _ in range(8):
                x = x + h * plain_rate(x + h / 2 * plain_rate(x))
            parts = np.split(x, [sizes[0]])
            gaps.append([part.mean(axis=0) for part in parts])
        centre, error = np.mean(gaps, axis=0), np.std(gaps, axis=0, ddof=1) / 2
        allowed = 4 * error + 0.01  # one more for the middle-point rule and finitely many tokens
        assert np.all(np.abs(centre - seen.means[0]) < allowed)
        assert np.any(np.abs(centre - seen.means[2]) > 10 * allowed)

    def test_blow_up_of_a_component(self):
        wide = gt.Mixture([0.5, 0.5], [gt.Gaussian([0.0], [[1.0]]), gt.Gaussian([3.0], [[0.1]])])
        p = gt.Parameters(V=[[1.0]], B=[[0.4]])
        seen = study(wide, p, 2.0, times=[0.1, 0.2, 1.9])
        assert seen.status is gt.Status.BLOW_UP
        assert seen.times.tolist() == [0.1, 0.2]
        with pytest.raises(InvalidNumber, match=r"blows up at t = 1\.25, before two of the times"):
            study(wide, p, 2.0, times=[1.0, 1.9])

    def test_what_is_refused(self):
        with pytest.raises(InvalidShape, match="`start` must be a Mixture, not Gaussian"):
            study(LEFT)
        with pytest.raises(InvalidNumber, match="`seeds` must be at least 2"):
            study(seeds=1)
        with pytest.raises(InvalidMethod, match="with process noise"):
            study(parameters=gt.Parameters(noise=np.eye(2)))
        with pytest.raises(InvalidNumber, match="too few nodes"):
            study(count=8)


class TestWords:
    def test_one_component_is_itself_to_rounding(self):
        words = " ".join(study(gt.Mixture([1.0], [LEFT]), count=64).summary().split())
        assert "of its size (rounding)" in words
        assert "which is rounding error" in words

    def test_distances_below_the_error_of_the_nodes_agree_from_set_to_set(self):
        run = study(count=128)
        assert run.coupled[:, 0].max() < run.floor[0]
        spread = run.coupled[:, 0].std(ddof=1) / run.coupled[:, 0].mean()
        assert spread < 0.2
        assert run.spreads["coupled"] >= spread
        words = " ".join(run.summary().split())
        assert "an error that cancels where both laws are carried by the same nodes" in words
        assert "(sliced W₂)" in words

    def test_the_model_of_a_report_is_that_of_a_mixture(self):
        page = render(study(count=64), {})
        assert "x′ = A x + b + V Σₖ πₖ(x) (mₖ + Sₖ B x)" in page
        assert "stays Gaussian under" not in page
        drawn = gt.simulate_tokens(BOTH, PARAMETERS, 0.1, count=9, rng=0)
        assert "begins as a mixture of Gaussians" in render(drawn, {})

    def test_what_is_finished_survives_an_interruption(self, tmp_path):
        def stop(at):
            def tell(fraction, text):
                if f"nodes {at} of 3" in text:
                    raise KeyboardInterrupt

            return tell

        run = study(count=64, seeds=3, progress=stop(3))
        assert run.status is gt.Status.INTERRUPTED
        np.testing.assert_array_equal(run.apart, study(count=64, seeds=2).apart)
        run.save(tmp_path)
        np.testing.assert_array_equal(gt.load(tmp_path).apart, run.apart)
        with pytest.raises(KeyboardInterrupt):
            study(count=64, seeds=3, progress=stop(2))

    def test_far_components_are_refused_with_a_way_out(self):
        far = gt.Mixture([0.5, 0.5], [gt.Gaussian([x], [[1.0]]) for x in (-1e3, 1e3)])
        p = gt.Parameters(V=[[1.0]], B=[[0.3]])
        with pytest.raises(InvalidNumber, match="more `times` in between"):
            study(far, p, count=64)


def plain_rate(x: np.ndarray) -> np.ndarray:
    p = PARAMETERS
    weights = np.exp((x @ p.B.T) @ x.T)
    return x @ p.A.T + (weights @ x / weights.sum(axis=1, keepdims=True)) @ p.V.T


class TestTokens:
    def test_tokens_are_drawn_from_a_mixture(self, tmp_path):
        run = gt.simulate_tokens(BOTH, PARAMETERS, 0.2, count=400, rng=2, antithetic=True)
        np.testing.assert_allclose(run.means[0], BOTH.mean, atol=0.25)
        run.save(tmp_path)
        again = gt.load(tmp_path)
        assert again.problem.start.weights.tolist() == [0.4, 0.6]
        np.testing.assert_array_equal(again.problem.start.laws[1].factor, RIGHT.factor)

    def test_a_mixture_needs_a_count(self):
        with pytest.raises(InvalidNumber, match="`count` is needed"):
            gt.simulate_tokens(BOTH, PARAMETERS, 0.2)


FILE = """
kind = "mixture"
[[component]]
weight = 0.4
mean = [-1.0]
covariance = [[0.5]]
[[component]]
weight = 0.6
mean = [1.0]
factor = [[0.5]]
[parameters]
V = [[1.0]]
B = [[0.5]]
[mixture]
horizon = 0.1
count = 64
"""


class TestFile:
    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ("weight = 0.4", "weight = 0.5", "`weights` must sum to 1; their sum is 1.1"),
            ("weight = 0.4\n", "", "component[0].weight"),
            ("horizon = 0.1\n", "", "mixture.horizon"),
            ("mean = [1.0]", "mean = [1.0, 2.0]", "`component[1]`"),
            ("[parameters]", "[parameter]", "`parameter`"),
        ],
    )
    def test_what_is_refused(self, old, new, words):
        with pytest.raises(gt.GtcontrolError, match=re.escape(words)):
            prepared(FILE.replace(old, new))

    def test_it_is_run(self):
        task = prepared(FILE)
        result = task.run(lambda fraction, text: None)
        assert task.observe(result)["apart"] > task.observe(result)["coupled"]
        assert set(result.plot()) == {"distances"}


def prepared(text: str) -> kinds.Task:
    document = files.parse(text, lambda kind: kinds.load(kind).DOCUMENT)
    return kinds.prepare(document, Path("x.toml"))

"""Clouds of softmax tokens against the Gaussian law: oracles, reference numbers, bad input."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy import integrate, special, stats

import gtcontrol as gt
from gtcontrol.cli import kinds
from gtcontrol.errors import (
    InvalidMethod,
    InvalidNumber,
    InvalidShape,
    ProblemFileInvalid,
    TooLarge,
)
from gtcontrol.reporting.views import view
from gtcontrol.results.courses import CloudCourse, LawCourse
from gtcontrol.results.deviations import departure, errors, excess, fit_slope, sampling
from gtcontrol.results.stamps import Stamp
from gtcontrol.status import Status, TokenVerdict
from gtcontrol.validation.stamps import logit_variance, measure_attention, self_weight, stamp, tilt
from tests.test_zoo import raw, result_of, task_of

I2 = np.eye(2)
UNIT = gt.Gaussian([0.0, 0.0], I2)
LAW = gt.Gaussian.from_covariance([0.5, -0.3], [[1.0, 0.2], [0.2, 0.5]])
#: V is not symmetric and B not normal: a transposed B gives another law.
GENERAL = gt.Parameters(
    A=-0.2 * I2, V=[[1.0, 0.5], [-0.3, 0.8]], B=[[-0.6, 1.2], [0.0, -0.4]], b=[0.1, 0.2]
)
SAME = gt.Parameters(V=I2, B=0.5 * I2)


def isotropic(d, v, c):
    return gt.Parameters(V=v * np.eye(d), B=c * np.eye(d)), gt.Gaussian(np.zeros(d), np.eye(d))


@pytest.fixture(scope="module")
def general():
    # In the plane the slopes of 16 clouds of each size scatter by 0.07 from seed to seed.
    return gt.validate(
        LAW, GENERAL, 1.0, counts=(50, 200, 800), seeds=16, rng=12, observe=6, shapes=3
    )


@pytest.fixture(scope="module")
def beyond():
    """Clouds at and beyond a blow-up at t = 1."""
    return gt.validate(
        UNIT, SAME, 1.5, counts=(100, 400), seeds=4, observe=31, shapes=2, closure=True
    )


class TestStamps:
    def test_logit_variance_is_that_of_the_scores(self):
        """E over queries of the variance over keys, by a million pairs of tokens."""
        V, B, beta = GENERAL.V, GENERAL.B, np.array([0.2, -0.4])
        rng = np.random.default_rng(0)
        x = LAW.sample(200_000, rng)
        a2 = np.sum(((x @ B.T + beta) @ LAW.factor) ** 2, axis=1)
        expected = a2.mean()
        error = a2.std() / np.sqrt(a2.size)
        assert abs(logit_variance((V, B, beta), LAW) - expected) < 4 * error

    def test_logit_variance_in_one_dimension(self):
        law = gt.Gaussian([0.7], [[1.3]])
        head = (np.eye(1), np.array([[0.6]]), np.array([0.1]))
        s = 1.3**2
        expected = s * ((0.6 * 0.7 + 0.1) ** 2 + 0.6**2 * s)
        assert logit_variance(head, law) == pytest.approx(expected, rel=1e-14)

    @pytest.mark.parametrize("c", [0.5, 1.5, -0.8])
    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_self_weight_by_quadrature(self, c, sign):
        """σ(± (Bx + β)(x - m) - log Z(x)) over x ~ N(m, s²), in one dimension."""
        count, m, s, beta = 50, 0.4, 1.2, 0.3
        edge = np.sqrt(2 * np.log(count))

        def weight(x):
            a = abs(s * (c * x + beta))
            logs = np.log(count) + a * a / 2 if a < edge else a * edge
            return special.expit(sign * (c * x + beta) * (x - m) - logs) * stats.norm.pdf(x, m, s)

        kinks = [(k * edge / s - beta) / c for k in (1, -1)]
        expected = integrate.quad(weight, -12, 12, points=kinks, limit=200)[0]
        head = (np.eye(1), np.array([[c]]), np.array([beta]))
        made = self_weight(head, gt.Gaussian([m], [[s]]), count, sign)
        assert made == pytest.approx(expected, rel=0.02, abs=1e-4)

    @pytest.mark.parametrize(
        ("d", "c", "n"), [(8, 0.5, 200), (32, 0.25, 200), (32, 0.25, 3200), (32, -0.25, 200)]
    )
    def test_self_weight_is_that_of_actual_tokens(self, d, c, n):
        """75 % of the weight at d = 32 with 200 tokens, though the logit variance is 2."""
        p, law = isotropic(d, 1.0, c)
        predicted = stamp(p, law, n)
        measured = measure_attention(p, law.sample(n, np.random.default_rng(1)))
        assert predicted.self_weight == pytest.approx(measured.self_weight, abs=0.03)
        assert predicted.logit_variance == pytest.approx(2.0, rel=1e-12)
        if (d, c, n) == (32, 0.25, 200):
            assert predicted.self_weight == pytest.approx(0.75, abs=0.01)
            assert predicted.self_attention == "dominant"
        if c < 0:
            assert predicted.self_weight < 1e-4
            assert predicted.clean

    def test_a_mask_removes_the_weight_and_pairs_bring_it_to_negative_scores(self):
        p, law = isotropic(16, -1.0, -0.3)
        assert stamp(p, law, 200).self_weight < 1e-3
        # The mirror image of a token scores as the token itself would with -B.
        other, _ = isotropic(16, -1.0, 0.3)
        expected = stamp(other, law, 200).self_weight
        assert stamp(p, law, 200, antithetic=True).self_weight == pytest.approx(expected)
        assert stamp(other, law, 200, mask_self=True).self_weight == 0.0

    def test_the_effective_number_is_n_exp_minus_a2(self):
        p, law = isotropic(4, 1.0, -0.2)
        seen = measure_attention(p, law.sample(20_000, np.random.default_rng(0)), queries=400)
        assert stamp(p, law, 20_000).effective == pytest.approx(20_000 * np.exp(-0.16), rel=1e-12)
        assert seen.effective == pytest.approx(20_000 * np.exp(-0.16), rel=0.02)

    @pytest.mark.parametrize("mask", [False, True])
    def test_measured_attention_is_that_of_the_full_softmax(self, mask):
        tokens = LAW.sample(60, np.random.default_rng(0))
        beta = np.array([0.3, -0.2])
        p = gt.Parameters(V=GENERAL.V, B=GENERAL.B, beta=beta)
        scores = (tokens @ p.B.T + beta) @ tokens.T
        variance = np.var(scores, axis=1).mean()
        if mask:
            np.fill_diagonal(scores, -np.inf)
        w = special.softmax(scores, axis=1)
        seen = measure_attention(p, tokens, mask_self=mask)
        assert seen.logit_variance == pytest.approx(variance)
        assert seen.self_weight == pytest.approx(np.diag(w).mean(), abs=1e-15)
        effective = np.exp(np.mean(-np.log(np.sum(w**2, axis=1))))
        assert seen.effective == pytest.approx(effective)

    def test_without_attention_all_is_uniform(self):
        p = gt.Parameters(A=I2)
        made, seen = (
            stamp(p, LAW, 40),
            measure_attention(p, LAW.sample(40, np.random.default_rng(0))),
        )
        assert (made.logit_variance, made.self_weight, made.effective) == (0.0, 1 / 40, 40.0)
        assert (seen.logit_variance, seen.self_weight, seen.effective) == (0.0, 1 / 40, 40.0)

    def test_the_tilt_is_where_the_influence_of_a_key_has_no_variance(self):
        """E_y exp(y·K(I + KᵀK)⁻¹Kᵀ y) over N(0, I) is finite if and only if σ_max(K) < 1."""
        L = LAW.factor
        K = L.T @ GENERAL.B @ L
        made = tilt(GENERAL, LAW)
        assert made == pytest.approx(np.linalg.svd(K, compute_uv=False)[0], rel=1e-12)
        for scale in (0.99 / made, 1.01 / made):
            Q = scale * K
            form = Q @ np.linalg.solve(np.eye(2) + Q.T @ Q, Q.T)
            finite = np.linalg.eigvalsh(np.eye(2) - 2 * form)[0] > 0
            assert finite == (scale * made < 1)
        assert tilt(gt.Parameters(A=I2), LAW) == 0.0

    @pytest.mark.parametrize(
        ("a2", "regime"), [(0.1, "clean"), (5.0, "strained"), (8.0, "few"), (14.0, "frozen")]
    )
    def test_words(self, a2, regime):
        made = Stamp(1000, a2, 0.001)
        assert made.regime == regime
        assert made.clean == (regime == "clean")
        assert "hardly attend to themselves" in made.words
        assert Stamp(1000, a2, 0.6).self_attention == "dominant"
        assert not Stamp(1000, 0.1, 0.1).clean


def law_course(S, means=None, end=np.inf):
    S = np.asarray(S, dtype=float)
    return LawCourse(
        Status.SUCCESS if np.isinf(end) else Status.BLOW_UP,
        end,
        np.zeros(S.shape[:2]) if means is None else np.asarray(means, dtype=float),
        S,
    )


def cloud_course(S, matched, means=None):
    S = np.asarray(S, dtype=float)
    row = np.ones(len(S))
    m = np.zeros(S.shape[:2]) if means is None else np.asarray(means, dtype=float)
    return CloudCourse(10, Status.SUCCESS, m, S, row, row, row, row, matched)


class TestDeviations:
    def test_errors_are_relative(self):
        law = law_course([4 * I2], [[1.0, 0.0]])
        cloud = cloud_course([np.diag([5.0, 4.0])], law, [[1.0, 0.5]])
        mean, covariance, distance = errors(cloud, law)
        assert mean[0] == pytest.approx(0.5 / np.sqrt(8.0))
        assert covariance[0] == pytest.approx(1 / np.sqrt(32.0))
        expected = np.sqrt(0.25 + (np.sqrt(5.0) - 2.0) ** 2)
        assert distance[0] == pytest.approx(expected / np.sqrt(8.0))

    def test_errors_of_huge_covariances_do_not_overflow(self):
        law = law_course([1e200 * I2])
        assert errors(cloud_course([I2], law), law)[1][0] == pytest.approx(1.0)

    def test_the_sampling_error_is_that_of_draws(self):
        """Forty thousand draws of ten tokens."""
        n, S = 10, LAW.covariance
        x = LAW.sample(40_000 * n, np.random.default_rng(0)).reshape(-1, n, 2)
        y = x - x.mean(axis=1, keepdims=True)
        C = np.einsum("kni,knj->kij", y, y) / n
        measured = np.sqrt(np.mean(np.sum((C - S) ** 2, axis=(1, 2))) / np.sum(S**2))
        mean, covariance = sampling(law_course([S]), n)
        assert covariance[0] == pytest.approx(measured, rel=0.01)
        off = np.sqrt(np.mean(np.sum((x.mean(axis=1) - LAW.mean) ** 2, axis=1)) / np.trace(S))
        assert mean[0] == pytest.approx(off, rel=0.01)

    def test_the_slope_is_that_of_scipy(self):
        rng = np.random.default_rng(0)
        counts = [100, 100, 400, 400, 1600]
        values = [n**-0.5 * np.exp(0.2 * rng.standard_normal()) for n in counts]
        made = fit_slope(counts, values)
        seen = stats.linregress(np.log(counts), np.log(values))
        half = stats.t.ppf(0.975, 3) * seen.stderr
        assert_allclose(
            [made.value, made.low, made.high],
            [seen.slope, seen.slope - half, seen.slope + half],
            rtol=1e-12,
        )
        assert fit_slope([100, 100], [0.1, 0.2]) is None
        assert fit_slope([100, 200], [1e-16, 1e-16]) is None
        two = fit_slope([100, 400], [0.2, 0.1])
        assert two.value == pytest.approx(-0.5)
        assert np.isinf([two.low, two.high]).all()

    @settings(max_examples=20, deadline=None)
    @given(st.floats(0.2, 5.0), st.floats(-1.5, 0.5))
    def test_an_exact_power_is_found(self, scale, power):
        counts = [50, 200, 800]
        made = fit_slope(counts, [scale * n**power for n in counts])
        assert made.value == pytest.approx(power, abs=1e-10)

    def test_departure_between_two_times(self):
        times = np.array([0.0, 1.0, 2.0])
        S = np.array([1.0, 2.0, 4.0])[:, None, None] * I2
        factors = np.array([1.0, 1.0, 0.81])[:, None, None]
        law = law_course(S)
        when, below = departure(cloud_course(S * factors, law), times)
        assert below
        assert when == pytest.approx(1.5)  # 0.9 is half-way from 1 to 0.81 on the log scale
        when, below = departure(cloud_course(S * [[[1.0]], [[1.0]], [[1.21]]], law), times)
        assert not below
        assert when == pytest.approx(1.5)
        assert departure(cloud_course(S, law), times) == (np.inf, False)
        ended = law_course(S[:2], end=1.7)
        assert departure(cloud_course(S, ended), times) == (1.7, True)


class TestValidate:
    def test_the_law_is_the_flow_of_the_moments(self, general):
        for t, m, S in zip(general.times, general.law.means, general.law.covariances, strict=True):
            law = gt.simulate(LAW, GENERAL, 1.0).at(t)
            assert_allclose(m, law.mean, atol=1e-8)
            assert_allclose(S, law.covariance, atol=1e-8)

    def test_clouds_are_runs_of_tokens(self, general):
        rngs = np.random.default_rng(12).spawn(1 + 48)
        tokens = LAW.sample(50, rngs[1])
        run = gt.simulate_tokens(tokens, GENERAL, 1.0, rtol=1e-4, observe=6)
        assert_allclose(general.clouds[0].covariances, run.covariances, rtol=1e-12)
        assert_allclose(general.clouds[0].means, run.means, rtol=1e-12, atol=1e-14)
        own = gt.Gaussian.from_covariance(run.means[0], run.covariances[0])
        matched = gt.simulate(own, GENERAL, 1.0).final
        assert_allclose(general.clouds[0].matched.covariances[-1], matched.covariance, rtol=1e-7)

    def test_the_error_falls_like_one_over_the_root(self, general):
        assert general.verdict is TokenVerdict.FOLLOWS
        for slope in (general.covariance_slope, general.mean_slope):
            assert -0.8 <= slope.value <= -0.35
            assert slope.high - slope.low < 0.4
            assert slope.clouds == 48
        assert [e.clouds for e in general.errors] == [16, 16, 16]

    def test_own_moments_leave_the_luck_of_the_draw_out(self, general):
        for e in general.errors:
            assert e.matched_covariance[1] < 0.5 * e.covariance[1]
            assert e.covariance[1] < 2 * e.covariance_floor

    def test_tokens_stay_gaussian_here(self, general):
        assert [s.time for s in general.shapes] == [0.0, 0.4, 1.0]
        assert general.shapes[0].gaussianity.gaussian
        assert abs(general.shapes[-1].gaussianity["spread"].value - 1) < 0.2

    def test_the_integration_is_finer_than_the_errors(self, general):
        assert 0 < general.resolution < 1e-3

    def test_a_transposed_score_matrix_is_caught(self, general):
        """The law with Bᵀ misses the clouds by many times what chance explains."""
        wrong = gt.Parameters(A=GENERAL.A, V=GENERAL.V, B=GENERAL.B.T, b=GENERAL.b)
        path = gt.simulate(LAW, wrong, 1.0)
        laws = [path.at(t) for t in general.times]
        other = law_course([g.covariance for g in laws], [g.mean for g in laws])
        last = general.errors[-1]
        for cloud in general.of_count(800):
            mean, covariance, _ = errors(cloud, other)
            assert mean[-1] > 8 * last.mean_floor
            assert covariance[-1] > 2.5 * last.covariance_floor
        mutated = replace(general, law=other)
        assert mutated.verdict is TokenVerdict.BIASED

    def test_the_same_seed_gives_the_same_clouds(self):
        made = [
            gt.validate(UNIT, GENERAL, 0.3, counts=(40,), seeds=2, rng=rng, observe=3, shapes=0)
            for rng in (5, np.random.default_rng(5), 6)
        ]
        final = [v.clouds[-1].covariances[-1] for v in made]
        assert_allclose(final[0], final[1], rtol=0)
        assert not np.allclose(final[0], final[2])
        assert (made[0].problem.seed, made[1].problem.seed) == (5, None)

    def test_times_of_observation_include_both_ends(self):
        v = gt.validate(
            UNIT, GENERAL, 0.3, counts=(20,), seeds=1, observe=[0.1], shapes=0, layers=6
        )
        assert_allclose(v.times, [0.0, 0.1, 0.3])
        assert v.covariance_slope is None

    def test_schedules_and_process_noise_in_layers(self):
        pieces = gt.Schedule([0.0, 0.2, 0.4], [GENERAL, gt.Parameters(A=-I2, noise=I2)])
        v = gt.validate(UNIT, pieces, counts=(3000,), seeds=2, layers=8, observe=3, shapes=0)
        assert v.continuous is None
        assert v.fullness is None
        assert v.verdict is TokenVerdict.FOLLOWS

    def test_an_interruption_keeps_what_is_complete(self):
        def stop(fraction, text):
            assert 0 <= fraction <= 1
            if text.startswith("30 tokens"):
                raise KeyboardInterrupt

        v = gt.validate(UNIT, GENERAL, 0.3, counts=(20, 30), seeds=2, progress=stop, shapes=0)
        assert v.status is Status.INTERRUPTED
        assert [c.count for c in v.clouds] == [20, 20]
        assert not v.answered
        assert v.verdict is TokenVerdict.UNDECIDED
        assert "Stopped by the user" in v.summary()
        assert "2 of 4 reached the horizon; 2 were not moved" in " ".join(v.summary().split())
        nothing = gt.validate(UNIT, GENERAL, 0.3, counts=(30,), progress=stop)
        assert not nothing.clouds
        assert nothing.verdict is TokenVerdict.UNDECIDED
        assert nothing.summary()
        assert set(nothing.plot()) == {"variance", "stamps"}

    def test_single_precision_is_passed_on(self):
        options = {"counts": (20,), "seeds": 1, "observe": 3, "shapes": 0}
        whole = gt.validate(UNIT, GENERAL, 0.3, **options)
        single = gt.validate(UNIT, GENERAL, 0.3, dtype="float32", backend="numpy", **options)
        assert single.problem.dtype == "float32"
        apart = np.abs(single.clouds[0].covariances - whole.clouds[0].covariances).max()
        assert 0 < apart < 1e-5

    def test_frozen_scores_are_told_where_steps_run_out(self):
        p = gt.Parameters(V=I2, B=-1e8 * I2)
        v = gt.validate(UNIT, p, 1.0, counts=(20,), seeds=1, max_steps=10, shapes=0)
        assert "the scores are frozen" in " ".join(v.summary().split())

    def test_a_cloud_that_runs_out_of_steps_is_told(self):
        v = gt.validate(UNIT, GENERAL, 1.0, counts=(30,), seeds=2, max_steps=2, rtol=1e-6)
        assert v.status is Status.STEP_LIMIT
        assert not v.answered
        assert len(v.clouds[0]) < v.times.size
        assert "0 of 2 reached the horizon" in v.summary()
        assert v.plot()


class TestBlowUp:
    def test_the_law_is_followed_up_to_its_blow_up_and_tokens_go_on(self, beyond):
        assert beyond.law.status is Status.BLOW_UP
        assert beyond.blow_up_time == pytest.approx(1.0, abs=1e-8)
        assert beyond.compared_until == pytest.approx(0.5, rel=1e-6)
        assert beyond.verdict is TokenVerdict.DEPARTS
        assert beyond.answered
        expected = 2 / (1 - beyond.times[:20])
        assert_allclose(beyond.law.traces[:20], expected, rtol=1e-7)
        assert all(len(c) == 31 for c in beyond.clouds)

    def test_clouds_leave_before_the_blow_up(self, beyond):
        for d in beyond.departures:
            assert d.departed == d.clouds == 4
            assert 0.4 < d.time < 1.0
        assert 0.5 < beyond.saturation < 1.0

    def test_no_token_is_longer_than_it_can_be(self, beyond):
        """A = 0, b = 0, ‖V‖ = 1: |x(t)| <= exp(t) max |x₀|."""
        for c in beyond.clouds:
            assert_allclose(c.bound, np.exp(beyond.times) * c.largest[0], rtol=1e-12)
            assert np.all(c.largest <= c.bound * (1 + 1e-4))
        assert 0.5 < beyond.fullness <= 1 + 1e-4

    def test_the_corrected_law_follows_the_clouds_to_the_blow_up(self, beyond):
        assert len(beyond.closures) == 2
        i = int(np.searchsorted(beyond.times, 0.75))
        for n, law in zip(beyond.counts, beyond.closures, strict=True):
            seen = np.median([c.traces[i] / c.traces[0] for c in beyond.of_count(n)])
            assert law.traces[i] / law.traces[0] == pytest.approx(seen, rel=0.3)
            assert law.traces[i] < beyond.law.traces[i]

    @pytest.mark.slow
    def test_the_variance_at_and_before_the_blow_up(self):
        """1600 tokens in dimension 2: 1.33, 2.0, about 3.6 and 8 at t = 0.25, 0.5, 0.75, 1."""
        v = gt.validate(UNIT, SAME, 1.0, counts=(1600,), observe=5, moment_matched=True, shapes=0)
        seen = np.mean([c.traces / 2 for c in v.clouds], axis=0)
        assert seen[1] == pytest.approx(1.333, abs=0.01)
        assert seen[2] == pytest.approx(2.0, abs=0.03)
        assert seen[3] == pytest.approx(3.65, abs=0.25)
        assert seen[4] == pytest.approx(8.0, abs=1.0)


class TestBias:
    """Dimension 16: the mean field holds with a mask or negative scores, not otherwise."""

    @pytest.fixture(scope="class")
    @classmethod
    def seen(cls):
        def run(v, c, **options):
            p, law = isotropic(16, v, c)
            return gt.validate(
                law, p, 0.5, counts=(100, 400), seeds=3, moment_matched=True, observe=6,
                shapes=0, **options,
            )  # fmt: skip

        return {
            "positive": run(1.0, 0.3),
            "masked": run(1.0, 0.3, mask_self=True),
            "negative": run(-1.0, -0.3),
            "pairs": run(-1.0, -0.3, antithetic=True),
        }

    def test_attention_to_itself_biases_the_covariance(self, seen):
        v = seen["positive"]
        assert v.verdict is TokenVerdict.BIASED
        assert v.bias > 0.1
        assert v.covariance_slope.value > -0.4
        assert v.self_weights[0, 0] > 0.3
        assert v.clean_until(1) == 0.0

    @pytest.mark.parametrize("name", ["masked", "negative"])
    def test_without_it_the_mean_field_holds(self, seen, name):
        v = seen[name]
        assert v.verdict is TokenVerdict.FOLLOWS
        assert abs(v.bias) < 0.02
        assert v.errors[-1].covariance[1] < 0.2 * seen["positive"].errors[-1].covariance[1]

    def test_the_mirror_image_of_a_token_is_a_key_like_itself(self, seen):
        """Antithetic tokens bring the bias to scores of the other sign, of the same size."""
        one, other = seen["positive"], seen["pairs"]
        assert other.verdict is TokenVerdict.BIASED
        assert other.bias == pytest.approx(one.bias, rel=0.1)
        assert_allclose(other.self_weights[:, 0], one.self_weights[:, 0], rtol=1e-6)


class TestExcess:
    """How much more total variance than the law clouds have, with the chance of that."""

    @staticmethod
    def median(S, count, clouds, rng, **options):
        """Of draws from N(0, S), whose own laws are themselves."""
        root = np.linalg.cholesky(S)
        made = []
        for _ in range(clouds):
            x = rng.standard_normal((count, len(S))) @ root.T
            own = LawCourse(Status.SUCCESS, np.inf, x.mean(0)[None], np.cov(x.T, bias=True)[None])
            one = np.ones(1)
            made.append(
                CloudCourse(
                    count, Status.SUCCESS, own.means, own.covariances, one, one, one, one, own
                )
            )
        law = LawCourse(Status.SUCCESS, np.inf, np.zeros((1, len(S))), S[None])
        return excess(made, law, 0, moment_matched=False, **options)

    @pytest.mark.parametrize("clouds", [1, 7])
    def test_the_error_is_that_of_the_median_over_clouds(self, clouds):
        rng = np.random.default_rng(5)
        S = np.diag([3.0, 1.0, 0.5])
        told = [self.median(S, 60, clouds, rng) for _ in range(300)]
        scatter = np.std([x.value for x in told])
        errors = [x.error for x in told]
        assert scatter < np.mean(errors) < 1.5 * scatter
        assert not any(x.systematic(0.05) for x in told if abs(x.value) < 0.05)
        assert np.mean([x.systematic(0.05) for x in told]) < 0.02
        assert told[0].matched == 0.0
        assert told[0].spread == pytest.approx(4 / 60)

    def test_few_tokens_in_many_directions_overshoot_from_their_own_moments(self):
        """V = I, B = I/2: S = I/(1 - t), but (1 + s)/(1 - (1 + s) t) for eigenvalues 1 + s."""
        p, law = isotropic(12, 1.0, 0.5)
        told = gt.validate(law, p, 0.5, counts=(100,), seeds=8, observe=3, shapes=0)
        assert told.verdict is TokenVerdict.BIASED
        assert 0.15 < told.bias < 0.4
        assert told.bias > 4 * told.excess.error
        assert told.excess.matched < 0
        text = " ".join(told.summary().split())
        assert "beyond the Gaussian law at t = 0.5, with a standard error of" in text
        assert "no measure of bias here: 100 tokens are few for 12 directions" in text

    def test_a_law_that_follows_moments_may_tell_what_draws_hide(self, general):
        """The luck of 16 draws of 800 tokens is 1 %; against their own laws they are closer."""
        assert abs(general.excess.matched) < general.excess.error < 0.03
        assert general.excess.tells(0.05)


class TestLayers:
    def test_the_prescribed_stack_is_the_exact_map(self):
        """S⁺ = (I + hM) S (I + hM)ᵀ in thirty digits; 2.55 per direction after 20 layers."""
        data = raw("tokens-both-negative")
        with mpmath.workdps(30):
            A, V, B = (mpmath.matrix(data["parameters"][k]) for k in "AVB")
            S, h = mpmath.eye(16), mpmath.mpf(1) / 10
            expected = [16.0]
            for _ in range(20):
                step = mpmath.eye(16) + h * (A + V * S * B)
                S = step * S * step.T
                expected.append(float(sum(S[i, i] for i in range(16))))
        task = task_of("tokens-both-negative")
        v = gt.validate(
            task.start, task.schedule, 2.0, counts=(2048,), seeds=1, layers=20, observe=21,
            moment_matched=True, shapes=0,
        )  # fmt: skip
        assert_allclose(v.law.traces, expected, rtol=1e-10)
        assert v.clouds[0].traces[-1] / 16 == pytest.approx(expected[-1] / 16, abs=0.1)
        assert v.clouds[0].traces[10] / 16 == pytest.approx(expected[10] / 16, abs=0.01)
        assert v.continuous.traces[-1] > v.law.traces[-1]  # Euler steps lag behind growth

    @pytest.mark.slow
    def test_opposite_signs_stay_bounded(self):
        v = result_of("tokens-opposite-signs")
        assert v.errors[-1].covariance[1] < 0.05
        assert v.clouds[-1].traces[-1] == pytest.approx(v.law.traces[-1], rel=0.02)

    @pytest.mark.slow
    def test_the_map_outgrows_every_cloud(self):
        v = result_of("tokens-both-negative")
        assert v.law.status is Status.SUCCESS  # layers have no blow-up in finite time
        assert v.life <= 3.0
        assert v.law.traces[-1] > 1e6
        assert max(c.traces[-1] for c in v.clouds) < 200


class TestScales:
    """V S B S does not change under x -> c x, B -> B/c², so errors do not either."""

    @pytest.mark.parametrize("scale", [1e-140, 1e-90, 1e60])
    def test_the_unit_of_tokens_does_not_matter(self, scale):
        options = {"counts": (50, 100), "seeds": 2, "observe": 3, "shapes": 2, "rtol": 1e-6}
        told = []
        for c in (1.0, scale):
            p = gt.Parameters(V=I2, B=0.3 * I2 / c / c)
            told.append(gt.validate(gt.Gaussian([0.0, 0.0], c * I2), p, 0.5, **options))
        one, other = told
        assert other.verdict is one.verdict is TokenVerdict.FOLLOWS
        assert other.errors[-1].covariance == pytest.approx(one.errors[-1].covariance, rel=1e-3)
        assert other.excess.value == pytest.approx(one.excess.value, abs=1e-4)
        assert 0 < other.resolution < 1e-4

    @pytest.mark.parametrize("scale", [1e-160, 1e80])
    def test_beyond_double_precision(self, scale):
        with pytest.raises(InvalidNumber, match=r"total variance .* rescale"):
            gt.validate(gt.Gaussian([0.0, 0.0], scale * I2), GENERAL, 1.0, counts=(10,), seeds=1)


class TestReport:
    def test_pictures_and_words(self, general, beyond, tmp_path):
        assert set(general.plot()) == {"variance", "errors", "shape", "stamps"}
        assert set(beyond.plot()) == {"variance", "errors", "shape", "stamps"}
        page = beyond.report(tmp_path / "r.html").read_text(encoding="utf-8")
        assert "law blows up" not in page  # it is in the picture
        for words in (
            "blows up at t = 1",
            "errors are compared up to t = 0.5",
            "tokens go on",
            "corrected law",
            "leave the law of their own moments",
            "at 1, so that errors fall",
        ):
            assert words in page
        text = general.summary()
        assert "FOLLOWS" in text
        assert "of its bound" in text
        assert "clean logits" in text

    @pytest.mark.parametrize(("dim", "most"), [(2, 3), (6, 7)])
    def test_too_few_tokens_for_a_shape_lose_nothing_else(self, dim, most):
        p, law = isotropic(dim, 1.0, 0.1)
        options = {"counts": (2, most), "seeds": 2, "observe": 3}
        seen = gt.validate(law, p, 0.2, **options)
        alone = gt.validate(law, p, 0.2, **options, shapes=0)
        assert seen.shapes == ()
        assert seen.answered
        assert seen.untested.startswith(f"at t = 0 it has {most} tokens that vary in {dim}")
        assert f"first cloud of {most} tokens: at t = 0" in " ".join(seen.summary().split())
        assert_allclose(seen.clouds[-1].covariances, alone.clouds[-1].covariances, rtol=0)
        assert alone.untested == ""

    def test_a_law_is_drawn_up_to_its_pole(self, beyond):
        """tr S = 2/(1 - t), from 31 times up to the edge of the picture and beyond."""
        ax = beyond.plot()["variance"].axes[0]
        curve = next(line for line in ax.lines if line.get_label() == "Gaussian flow")
        t, trace = curve.get_data()
        assert_allclose(trace, 2 / (1 - t), rtol=1e-4)
        assert np.all(np.diff(t) > 0)
        assert trace[-1] > 50 * ax.get_ylim()[1]
        assert t[-1] == pytest.approx(1 - 1e-4)
        inside = t[trace < ax.get_ylim()[1]]
        assert np.diff(inside).max() < 0.03

    def test_curves_stay_in_the_picture_and_end_where_theory_does(self, general, beyond):
        for seen in (general, beyond):
            variance, _, effective = seen.plot()["stamps"].axes
            measured = seen.clouds[0].logit_variances.max()
            low, high = variance.get_ylim()
            assert low < measured < high
            logs = [np.log(n) for n in seen.problem.counts]
            dashed = [line for line in effective.lines if line.get_linestyle() == "--"]
            for line, log in zip(dashed, logs, strict=True):
                kept = np.isfinite(line.get_ydata())
                assert_allclose(kept, seen.logit_variances <= log)
        assert high < 12 or variance.get_yscale() == "log"
        assert general.plot()["stamps"].axes[0].get_ylim()[1] < 1.1 * np.log(800)

    def test_numbers_on_axes_are_plain_below_two_decades(self, beyond):
        fig = beyond.plot()["variance"]
        fig.canvas.draw()
        low, high = fig.axes[0].get_ylim()
        assert 10 < high / low < 100
        labels = [label.get_text() for label in fig.axes[0].get_yticklabels()]
        assert len(labels) > 2
        assert_allclose([float(text) for text in labels], fig.axes[0].get_yticks())
        assert not [text for text in labels if "e" in text or "10^" in text]

    def test_captions_tell_of_what_is_there(self, general, beyond):
        assert "Diamonds" in view(beyond).captions["variance"]
        assert "Diamonds" not in view(general).captions["variance"]
        when = beyond.fullest[1]
        assert when > 0
        assert f"of its bound after the start, at t = {when:.3g}" in " ".join(
            beyond.summary().split()
        )

    def test_what_moment_matching_takes_out_is_told(self):
        p = gt.Parameters(V=I2, B=-0.5 * I2)
        options = {"counts": (20, 40), "seeds": 1, "observe": 2, "shapes": 0}
        seen = gt.validate(UNIT, p, 0.2, **options, moment_matched=True)
        assert "independent draws N^(-0.5)" in " ".join(seen.summary().split())
        assert "own moments  " not in seen.summary()
        assert any("moments, of order" in note for note in view(seen).notes)
        seen = gt.validate(UNIT, p, 0.2, **options)
        assert "sampling N^(-0.5)" in " ".join(seen.summary().split())

    def test_pairs_are_warned_of(self):
        v = gt.validate(UNIT, SAME, 0.2, counts=(20,), seeds=1, antithetic=True, shapes=0)
        assert any("mirror image" in note for note in view(v).notes)


SMALL = """
kind = "tokens"

[start]
mean = [0.0, 0.0]
covariance = [[1.0, 0.0], [0.0, 1.0]]

[parameters]
V = [[1.0, 0.0], [0.0, 1.0]]
B = [[-0.5, 0.0], [0.0, -0.5]]

[tokens]
horizon = 0.5
counts = [40, 160]
seeds = 2
observe = 5
shapes = 2
"""


def task(folder, text):
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return kinds.prepare(kinds.read(path), path)


class TestFiles:
    def test_a_file_gives_what_python_gives(self, tmp_path):
        made = task(tmp_path, SMALL).run(lambda fraction, text: None)
        p = gt.Parameters(V=I2, B=-0.5 * I2)
        start = gt.Gaussian.from_covariance([0.0, 0.0], I2)
        seen = gt.validate(start, p, 0.5, counts=[40, 160], seeds=2, observe=5, shapes=2)
        assert_allclose(made.clouds[-1].covariances, seen.clouds[-1].covariances, rtol=0)
        assert made.problem.name == "mine"

    def test_every_expectation_can_fail(self, tmp_path):
        wrong = """
[expect]
status = "OVERFLOW"
verdict = "DEPARTS"
covariance_slope_at_most = -5.0
covariance_slope_at_least = 5.0
mean_slope_at_most = -5.0
mean_slope_at_least = 5.0
matched_slope_at_most = -5.0
matched_slope_at_least = 5.0
covariance_error_at_most = 1e-9
mean_error_at_most = 1e-9
blow_up_time = 1.0
departure_at_most = 0.1
bound_kept = false
clean = false
final_trace = 100.0
stamp_contains = "frozen"
"""
        made = task(tmp_path, SMALL + wrong)
        findings = made.findings(made.run(lambda fraction, text: None))
        assert len(findings) == 16
        assert not [str(f) for f in findings if f.met]

    @pytest.mark.parametrize(
        ("old", "new", "text"),
        [
            ("counts = [40, 160]", "counts = [1]", "at least 2"),
            ("counts = [40, 160]", "counts = [40, 40]", "same number twice"),
            ("counts = [40, 160]", "counts = [40, 41]\nantithetic = true", "counts.*even.* 41"),
            ("counts = [40, 160]", "counts = [2]\nmoment_matched = true", "counts.*exceed 2"),
            ("counts = [40, 160]", "counts = []", "array of whole numbers"),
            ("horizon = 0.5\n", "", "`tokens.horizon` is missing"),
            ("seeds = 2", "seed = 2.5", "whole number"),
            ("observe = 5", "observe = 1", "at least 2"),
            ("observe = 5", "rtol = 1e-30", "at least 1e-11"),
            ("shapes = 2", "shape = 2", "did you mean `tokens.shapes`|did you mean `shapes`"),
        ],
    )
    def test_mistakes_are_named(self, tmp_path, old, new, text):
        with pytest.raises((ProblemFileInvalid, InvalidNumber), match=text):
            task(tmp_path, SMALL.replace(old, new))


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "error", "text"),
        [
            ({"counts": (1,)}, InvalidNumber, r"counts\[0\]. must be at least 2"),
            ({"counts": ()}, InvalidShape, "sequence of numbers"),
            ({"counts": 100}, InvalidShape, "sequence of numbers"),
            ({"counts": (20, 20)}, InvalidNumber, "same number twice"),
            ({"counts": (2.5,)}, InvalidNumber, "whole number"),
            ({"seeds": 0}, InvalidNumber, "seeds"),
            ({"rng": -1}, InvalidNumber, "rng"),
            ({"layers": 0}, InvalidNumber, "layers"),
            ({"observe": 1}, InvalidNumber, "observe"),
            ({"observe": [2.0]}, InvalidNumber, "observe"),
            ({"shapes": -1}, InvalidNumber, "shapes"),
            ({"rtol": 0.0}, InvalidNumber, "rtol"),
            ({"rtol": 1e-12}, InvalidNumber, "rtol. must be at least 1e-11"),
            ({"backend": "jax"}, InvalidMethod, "backend"),
            ({"dtype": "float32", "rtol": 1e-7}, InvalidNumber, "single precision"),
            ({"counts": (21,), "antithetic": True}, InvalidNumber, "even"),
            ({"counts": (2,), "moment_matched": True}, InvalidNumber, "exceed"),
            ({"counts": (10**9,)}, TooLarge, "take fewer tokens"),
        ],
    )
    def test_arguments(self, options, error, text):
        with pytest.raises(error, match=text):
            gt.validate(UNIT, GENERAL, 1.0, **{"counts": (20,), "seeds": 1, **options})

    def test_impossible_draws_are_refused_before_any_cloud_moves(self):
        told = []
        with pytest.raises(InvalidNumber, match="even"):
            gt.validate(
                UNIT, GENERAL, 1.0, counts=(20, 21), seeds=1, antithetic=True,
                progress=lambda share, text: told.append(text),
            )  # fmt: skip
        assert not told

    def test_a_start_without_variance(self):
        with pytest.raises(InvalidNumber, match="no variance"):
            gt.validate(gt.Gaussian([0.0, 0.0], np.zeros((2, 0))), GENERAL, 1.0)
        with pytest.raises(InvalidShape, match="must be a Gaussian"):
            gt.validate(np.zeros((5, 2)), GENERAL, 1.0)


class TestFeedForward:
    layer = gt.FeedForward([[1.0, -0.5]], [0.3], [[-0.8], [0.6]], "relu")
    start = gt.Gaussian([0.4, -0.2], [[0.9, 0.0], [0.3, 0.6]])
    alone = gt.Parameters(A=-0.2 * np.eye(2))

    @pytest.mark.parametrize("layers", [None, 4])
    def test_the_law_is_statistically_linearised(self, layers):
        seen = gt.validate(
            self.start, self.alone, 0.4, counts=(40,), seeds=1, layers=layers, shapes=0,
            feedforward=self.layer,
        )  # fmt: skip
        path = gt.simulate(self.start, self.alone, 0.4, layers=layers, feedforward=self.layer)
        np.testing.assert_allclose(seen.law.covariances[-1], path.final.covariance, rtol=1e-7)
        plain = gt.simulate(self.start, self.alone, 0.4, layers=layers)
        assert abs(path.final.trace / plain.final.trace - 1) > 0.02

    def test_tokens_pass_the_layer(self):
        tokens = self.start.sample(60, np.random.default_rng(0).spawn(2)[1])
        seen = gt.validate(
            self.start, self.alone, 0.4, counts=(60,), seeds=1, layers=4, shapes=0,
            feedforward=self.layer,
        )  # fmt: skip
        for _ in range(4):
            hidden = np.maximum(tokens @ self.layer.inner.T + self.layer.bias, 0)
            tokens = tokens + 0.1 * (hidden @ self.layer.outer.T - 0.2 * tokens)
        np.testing.assert_allclose(seen.clouds[0].means[-1], tokens.mean(axis=0), rtol=1e-12)

    def test_what_is_no_layer_is_refused(self):
        with pytest.raises(InvalidShape, match="`feedforward` must be a FeedForward, not list"):
            gt.validate(self.start, self.alone, 0.4, feedforward=[1.0])
        with pytest.raises(InvalidShape, match="dimension"):
            gt.validate(self.start, self.alone, 0.4, feedforward=gt.FeedForward(np.eye(3)))

"""Tokens moved by actual softmax attention, and the token check of a plan."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.special
from hypothesis import given, strategies as st

import gtcontrol as gt
from gtcontrol.attention import softmax_average, velocity
from gtcontrol.errors import (
    IncompatibleSchedule,
    InvalidMethod,
    InvalidNumber,
    InvalidShape,
    NotFinite,
    TooLarge,
)
from gtcontrol.problem import memory
from gtcontrol.problem.definitions import SteeringProblem
from gtcontrol.results.steering import Steering
from gtcontrol.results.tokens import SAMPLING_BAND
from gtcontrol.status import Status
from gtcontrol.validation.tokens import largest_logit_variance
from tests.oracles import particles
from tests.strategies import generators, orthogonal
from tests.test_simulation import BETA, BIAS, LAW, A, B, V, general, interrupt_after

LAYERED = pytest.mark.parametrize("layers", [None, 8])


def draw(count, seed=0):
    return np.random.default_rng(seed).standard_normal((count, 2))


class TestAttention:
    @pytest.mark.parametrize(("n", "N", "k"), [(1, 2, 1), (33, 1500, 2), (100, 1024, 5), (5, 7, 3)])
    def test_blocks_equal_the_full_softmax(self, n, N, k):
        rng = np.random.default_rng(n)
        queries, keys = rng.standard_normal((n, k)), 3 + rng.standard_normal((N, k))
        expected = scipy.special.softmax(queries @ keys.T, axis=1) @ keys
        np.testing.assert_allclose(softmax_average(queries, keys), expected, rtol=1e-12)

    def test_huge_scores_pick_the_best_key(self):
        # The first key that matters lies in the last block.
        keys = draw(3000)
        keys[2999] = [50.0, 0.0]
        average = softmax_average(np.array([[1e6, 0.0], [-1e300, 0.0]]), keys)
        np.testing.assert_allclose(average[0], keys[2999])
        np.testing.assert_allclose(average[1], keys[np.argmin(keys[:, 0])])

    def test_memory_is_linear(self):
        keys = draw(6000)
        tracemalloc.start()
        softmax_average(keys, keys)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 3e6  # the full matrix of weights has 288 MB

    @pytest.mark.parametrize("heads", [1, 3])
    @given(generators())
    def test_velocity_equals_the_plain_oracle(self, heads, rng):
        d = int(rng.integers(1, 4))
        tokens = rng.standard_normal((50, d))
        W, b = rng.standard_normal((d, d)), rng.standard_normal(d)
        values, scores = rng.standard_normal((2, heads, d, d))
        beta = rng.standard_normal((heads, d))
        p = gt.Parameters(A=W, V=values, B=scores, b=b, beta=beta)
        expected = particles.velocity(tokens, W, list(zip(values, scores, beta, strict=True)), b)
        np.testing.assert_allclose(velocity(p, tokens), expected, rtol=1e-11, atol=1e-11)

    def test_without_scores_tokens_attend_to_the_mean(self):
        tokens = draw(10)
        p = gt.Parameters(V=V)
        np.testing.assert_allclose(velocity(p, tokens), np.tile(V @ tokens.mean(axis=0), (10, 1)))

    @pytest.mark.parametrize(
        ("d", "c", "N", "slope", "tolerance"),
        [(8, 0.5, 200, 0.619, 0.02), (32, -0.25, 200, -0.240, 0.01), (8, 0.5, 3200, 0.521, 0.01)],
    )
    def test_tokens_attend_to_themselves(self, d, c, N, slope, tolerance):
        # Regression slope of the attention output on the token, V = I, B = c I: the mean field
        # has c, and the token's own weight adds to it when c > 0 (0.483 without it at N = 200).
        rng = np.random.default_rng(0)
        slopes = []
        for _ in range(20 if N < 1000 else 4):
            tokens = rng.standard_normal((N, d))
            p = gt.Parameters(V=np.eye(d), B=c * np.eye(d))
            moved = velocity(p, tokens)
            slopes.append(np.sum(moved * tokens) / np.sum(tokens**2))
        assert np.mean(slopes) == pytest.approx(slope, abs=tolerance)


class TestSimulateTokens:
    def test_flow_equals_the_plain_oracle(self):
        start = draw(200)
        run = gt.simulate_tokens(start, general(), 1.0, rtol=1e-8)
        expected = particles.flow(start, A, [(V, B, BETA)], BIAS, 1.0, 50)
        assert run.status is Status.SUCCESS
        np.testing.assert_allclose(run.final, expected, atol=1e-6)

    def test_layers_equal_the_plain_oracle(self):
        start = draw(200)
        run = gt.simulate_tokens(start, general(), 1.0, layers=7)
        expected = particles.layers(start, A, [(V, B, BETA)], BIAS, 1.0, 7)
        np.testing.assert_allclose(run.final, expected, rtol=1e-12, atol=1e-12)
        assert run.steps == run.evaluations == 7

    @LAYERED
    def test_follows_the_mean_field_and_not_that_of_the_transposed_score_matrix(self, layers):
        options = {"count": 1000, "antithetic": True, "moment_matched": True, "layers": layers}
        run = gt.simulate_tokens(LAW, general(), 1.0, rng=3, **options)
        law = gt.simulate(LAW, general(), 1.0, layers=layers).final
        wrong = gt.simulate(LAW, general(B=B.T), 1.0, layers=layers).final
        miss = np.linalg.norm(run.covariances[-1] - law.covariance)
        assert miss < 0.05
        assert np.linalg.norm(run.means[-1] - law.mean) < 0.05
        assert np.linalg.norm(run.covariances[-1] - wrong.covariance) > 10 * miss

    def test_the_error_falls_like_one_over_root_n(self):
        # Bounded mean field, independent draws; eight seeds each.
        p = gt.Parameters(
            A=0.2 * np.eye(2), V=[[1.0, 0.3], [-0.2, 0.8]], B=[[-0.6, 0.2], [0, -0.4]]
        )
        law = gt.Gaussian(np.zeros(2), 0.8 * np.eye(2))
        S = gt.simulate(law, p, 1.0, layers=5).final.covariance
        counts, errors = np.array([200, 800, 3200]), []
        for count in counts:
            misses = [
                gt.simulate_tokens(law, p, 1.0, count=int(count), rng=seed, layers=5)
                for seed in range(8)
            ]
            errors.append(np.sqrt(np.mean([np.sum((m.covariances[-1] - S) ** 2) for m in misses])))
        slope = np.polyfit(np.log(counts), np.log(errors), 1)[0]
        assert -0.8 < slope < -0.35

    def test_finitely_many_tokens_never_blow_up(self):
        # The mean field with V = I, B = I/2 blows up at t = 1; tokens obey |x| <= e^t |x₀|.
        start = draw(400)
        p = gt.Parameters(V=np.eye(2), B=0.5 * np.eye(2))
        assert gt.simulate(gt.Gaussian([0, 0], np.eye(2)), p, 1.5).status is Status.BLOW_UP
        run = gt.simulate_tokens(start, p, 1.5)
        assert run.status is Status.SUCCESS
        assert np.trace(run.covariances[-1]) > 10
        largest = [np.linalg.norm(x, axis=1).max() for x in (start, run.final)]
        assert largest[1] <= np.exp(1.5) * largest[0]

    @LAYERED
    def test_a_schedule_in_a_subspace_equals_its_lift(self, layers):
        rng = np.random.default_rng(0)
        U = orthogonal(rng, 4)[:, :2]
        start = rng.standard_normal((60, 4))
        schedule = gt.Schedule([0.0, 1.0], [general()], basis=U)
        reduced = gt.simulate_tokens(start, schedule, layers=layers, rtol=1e-9)
        full = gt.simulate_tokens(start, general().lift(U), 1.0, layers=layers, rtol=1e-9)
        np.testing.assert_allclose(reduced.final, full.final, atol=1e-7)
        np.testing.assert_allclose(reduced.covariances, full.covariances, atol=1e-7)
        outside = np.eye(4) - U @ U.T
        np.testing.assert_allclose(reduced.final @ outside, start @ outside, atol=1e-12)

    def test_pieces_and_functions_of_time(self):
        # Feed-forward only: every token is multiplied by the same number.
        start = draw(30)
        pieces = gt.Schedule([0, 0.3, 1.0], [gt.Parameters(A=a * np.eye(2)) for a in (2.0, -1.0)])
        run = gt.simulate_tokens(start, pieces, rtol=1e-9)
        np.testing.assert_allclose(run.final, np.exp(0.6 - 0.7) * start, rtol=1e-7)
        wave = gt.Schedule.from_function(lambda t: gt.Parameters(A=np.cos(t) * np.eye(2)), 3.0)
        run = gt.simulate_tokens(start, wave, 2.0, rtol=1e-9, observe=[0.5, 1.5])
        np.testing.assert_allclose(run.times, [0.5, 1.5, 2.0])
        for t, cloud in zip(run.times, run.clouds, strict=True):
            np.testing.assert_allclose(cloud, np.exp(np.sin(t)) * start, rtol=1e-6)

    @LAYERED
    def test_observations(self, layers):
        run = gt.simulate_tokens(
            LAW, general(), 2.0, count=50, rng=0, layers=layers, observe=5, keep=20
        )
        np.testing.assert_allclose(run.times, [0, 0.5, 1.0, 1.5, 2.0])
        assert run.clouds.shape == (5, 20, 2)
        np.testing.assert_allclose(run.means[-1], run.final.mean(axis=0), rtol=1e-12)
        spread = run.final - run.final.mean(axis=0)
        np.testing.assert_allclose(run.covariances[-1], spread.T @ spread / 50, rtol=1e-12)
        # The tokens kept are the same ones at all times.
        chosen = np.linspace(0, 49, 20).round().astype(int)
        np.testing.assert_allclose(run.clouds[-1], run.final[chosen], rtol=1e-12)
        start = LAW.sample(50, np.random.default_rng(0))
        np.testing.assert_array_equal(run.clouds[0], start[chosen])

    def test_layers_are_observed_at_the_nearest_layer(self):
        run = gt.simulate_tokens(draw(10), general(), 1.0, layers=4, observe=[0.1, 0.3, 0.35])
        np.testing.assert_allclose(run.times, [0.0, 0.25, 1.0])

    @given(st.permutations(range(12)))
    def test_tokens_have_no_order(self, order):
        start = draw(12)
        first = gt.simulate_tokens(start, general(), 0.5, layers=3).final
        second = gt.simulate_tokens(start[list(order)], general(), 0.5, layers=3).final
        np.testing.assert_allclose(first[list(order)], second, rtol=1e-12, atol=1e-14)

    def test_the_seed_decides(self):
        runs = [
            gt.simulate_tokens(LAW, general(), 0.1, count=20, rng=rng, layers=1)
            for rng in (5, np.random.default_rng(5), 6)
        ]
        np.testing.assert_array_equal(runs[0].final, runs[1].final)
        assert np.abs(runs[0].final - runs[2].final).max() > 0.1
        assert (runs[0].problem.seed, runs[1].problem.seed) == (5, None)

    def test_noise_of_layers(self):
        Q = np.array([[1.0, 0.4], [0.4, 0.2]])
        p = gt.Parameters(dim=2, noise=Q)
        run = gt.simulate_tokens(np.zeros((20_000, 2)), p, 2.0, layers=5, rng=0, observe=2)
        S = 2.0 * Q
        error = np.sqrt((np.sum(S**2) + np.trace(S) ** 2) / 20_000)
        assert np.linalg.norm(run.covariances[-1] - S) < 3 * error
        with pytest.raises(InvalidMethod, match="`layers`"):
            gt.simulate_tokens(draw(10), p, 2.0)
        with pytest.raises(InvalidMethod, match="`rng`"):
            gt.simulate_tokens(draw(10), p, 2.0, layers=5)


class TestEndings:
    @LAYERED
    def test_interruption_keeps_the_tokens_so_far(self, layers):
        run = gt.simulate_tokens(
            draw(20),
            general(),
            5.0,
            layers=layers,
            progress=interrupt_after(15 if not layers else 4),
        )
        assert run.status is Status.INTERRUPTED
        assert not run.answered
        assert 0 < run.times[-1] < 5.0
        assert np.all(np.diff(run.times) > 0)
        np.testing.assert_allclose(run.means[-1], run.final.mean(axis=0), rtol=1e-12)

    def test_progress_never_falls(self):
        seen = []
        gt.simulate_tokens(draw(20), general(), 2.0, progress=lambda part, text: seen.append(part))
        assert seen == sorted(seen)
        assert 0.3 < seen[-1] <= 1.0

    def test_step_limit(self):
        run = gt.simulate_tokens(draw(20), general(), 5.0, max_steps=2)
        assert run.status is Status.STEP_LIMIT
        assert run.steps == 2
        assert run.times[-1] < 5.0

    def test_frozen_scores_are_told_where_steps_run_out(self):
        p = gt.Parameters(V=np.eye(2), B=-np.eye(2))
        run = gt.simulate_tokens(1e4 * draw(20), p, 1.0, max_steps=20)
        assert run.status is Status.STEP_LIMIT
        # the variance of the scores over all keys, averaged over all queries
        variance = np.var(run.final @ run.final.T, axis=1).mean()
        assert f"a² = {variance:.3g} is beyond 2 log N = {2 * np.log(20):.3g}" in run.reason
        assert "take `layers`" in " ".join(run.summary().split())
        assert gt.simulate_tokens(draw(20), p, 5.0, max_steps=2).reason == ""

    @LAYERED
    def test_overflow(self, layers):
        p = gt.Parameters(A=np.diag([3e3, 0.0]), V=np.eye(2), B=np.eye(2))
        layers = None if layers is None else 1000
        run = gt.simulate_tokens(draw(4), p, 100.0, layers=layers, max_steps=3000)
        assert run.status is Status.OVERFLOW
        assert np.all(np.isfinite(run.final))

    @pytest.mark.parametrize("size", [1e120, 1e300])
    def test_tokens_beyond_double_precision_end_at_once(self, size):
        run = gt.simulate_tokens(size * draw(4), general(), 1.0)
        assert run.status is Status.OVERFLOW
        assert run.steps == 0

    @pytest.mark.parametrize(
        ("tokens", "options", "error", "words"),
        [
            ([[np.nan, 0.0], [0.0, 0.0]], {}, NotFinite, r"nan at index \(0, 0\)"),
            ([[1.0, 0.0]], {}, InvalidNumber, "at least 2 tokens"),
            (np.zeros((5, 0)), {}, InvalidNumber, "at least 1 dimension"),
            ([1.0, 0.0], {}, InvalidShape, r"\(N, d\)"),
            (draw(5), {"count": 6}, InvalidNumber, "`count` is 6, but 5 tokens"),
            (np.zeros((5, 3)), {}, InvalidShape, "dimension 2, but the start has 3"),
            (LAW, {}, InvalidNumber, "`count` is needed"),
            (LAW, {"count": 1, "rng": 0}, InvalidNumber, "at least 2"),
            (LAW, {"count": 10}, InvalidNumber, "`rng` is needed"),
            (LAW, {"count": 10, "rng": -1}, InvalidNumber, "at least 0"),
            (LAW, {"count": 10, "rng": "a"}, InvalidNumber, "whole number"),
            (LAW, {"count": 11, "rng": 0, "antithetic": True}, InvalidNumber, "even"),
            (draw(5), {"layers": 0}, InvalidNumber, "`layers`"),
            (draw(5), {"rtol": 0.0}, InvalidNumber, "`rtol`"),
            (draw(5), {"rtol": 1e-30}, InvalidNumber, "`rtol` must be at least 3e-14"),
            (draw(5), {"moment_matched": True}, InvalidMethod, "how tokens are drawn from a law"),
            (draw(4), {"antithetic": True}, InvalidMethod, "but the tokens were given"),
            (draw(5), {"max_steps": 0}, InvalidNumber, "`max_steps`"),
            (draw(5), {"keep": -1}, InvalidNumber, "`keep`"),
            (draw(5), {"observe": 1}, InvalidNumber, "`observe`"),
            (draw(5), {"observe": [0.5, 1.5]}, InvalidNumber, r"\[0, 1\]"),
            (draw(5), {"horizon": -1.0}, InvalidNumber, "`horizon`"),
            (draw(5), {"horizon": None}, IncompatibleSchedule, "`horizon` is needed"),
        ],
    )
    def test_bad_arguments(self, tokens, options, error, words):
        with pytest.raises(error, match=words):
            gt.simulate_tokens(tokens, general(), **{"horizon": 1.0} | options)

    def test_parameters_that_become_nan_are_named(self):
        bad, zero = np.full((2, 2), np.nan), np.zeros((2, 2))
        schedule = gt.Schedule.from_function(
            lambda t: gt.Parameters.trusted(bad if t > 0.5 else zero, zero, zero, zero[0]), 1.0
        )
        with pytest.raises(NotFinite, match="check the function"):
            gt.simulate_tokens(draw(5), schedule)

    def test_too_many_tokens_are_refused_before_they_are_drawn(self, monkeypatch):
        tracemalloc.start()
        with pytest.raises(TooLarge, match=r"10000000000 tokens .* [TG]B of memory"):
            gt.simulate_tokens(LAW, general(), 1.0, count=10**10, rng=0)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1e6
        monkeypatch.setattr(memory, "available", lambda: 100_000)
        with pytest.raises(TooLarge, match=r"1000 tokens of dimension 2 .* take fewer tokens"):
            gt.simulate_tokens(draw(1000), general(), 1.0)


def constant_attention_plan(start, target, transpose=False):
    """V = I, A = 0 and constant B: precision is linear in time, S⁻¹(t) = S₀⁻¹ - 2 B_s t."""
    skew = np.array([[0.0, 0.7], [-0.7, 0.0]])  # free for the covariance
    B_s = (np.linalg.inv(start.covariance) - np.linalg.inv(target.covariance)) / 2
    score = B_s + skew
    return plan(start, target, gt.Parameters(V=np.eye(2), B=score.T if transpose else score))


def plan(start, target, parameters, horizon=1.0):
    schedule = gt.Schedule.constant(parameters, horizon)
    return Steering(
        problem=SteeringProblem(start, target, horizon),
        status=Status.SUCCESS,
        schedule=schedule,
        trajectory=gt.simulate(start, schedule),
        cost=1.0,
        lower_bound=0.5,
        lower_bound_reason="",
        replay_error=0.0,
        terminal_error=0.0,
        solver="closed form",
        seconds=0.0,
    )


class TestCheckTokens:
    start = gt.Gaussian([0.3, -0.2], [[0.8, 0.0], [0.2, 0.6]])
    narrow = gt.Gaussian([0.0, 0.0], [[0.4, 0.0], [0.1, 0.5]])

    def arriving(self, transpose=False):
        """A plan of constant attention to the mean that it happens to reach."""
        made = constant_attention_plan(self.start, self.narrow)
        target = gt.Gaussian(made.trajectory.final.mean, self.narrow.factor)
        return constant_attention_plan(self.start, target, transpose)

    def test_tokens_arrive_within_the_sampling_error(self):
        made = self.arriving()
        assert gt.wasserstein(made.trajectory.final, made.problem.target) < 1e-10
        check = gt.check_tokens(made, 1000, rng=4)
        assert check.status is Status.SUCCESS
        assert check.within_sampling_error
        assert check.covariance_error > 0
        assert (check.count, check.seed) == (1000, 4)
        assert check.antithetic
        assert check.moment_matched
        assert check.clouds.shape == (6, 400, 2)
        np.testing.assert_allclose(check.times, np.linspace(0, 1, 6))

    def test_a_plan_with_a_transposed_score_matrix_is_caught(self):
        # It carries the covariance alike (V = I), but not the mean.
        made = self.arriving(transpose=True)
        np.testing.assert_allclose(
            made.trajectory.final.covariance, self.narrow.covariance, rtol=1e-9
        )
        check = gt.check_tokens(made, 1000, rng=4)
        assert not check.within_sampling_error
        assert check.mean_error > SAMPLING_BAND * check.mean_sampling_error
        assert check.covariance_error <= SAMPLING_BAND * check.covariance_sampling_error

    def test_errors_are_distances_to_the_target(self):
        made = self.arriving()
        check = gt.check_tokens(made, 200, rng=4, keep=200, antithetic=False)
        mean, covariance = particles.moments(check.clouds[-1])
        target = made.problem.target
        assert check.mean_error == pytest.approx(np.linalg.norm(mean - target.mean))
        assert check.covariance_error == pytest.approx(
            np.linalg.norm(covariance - target.covariance)
        )

    def test_sampling_errors_are_those_of_independent_draws(self):
        check = gt.check_tokens(self.arriving(), 100, rng=0)
        target, rng = self.arriving().problem.target, np.random.default_rng(1)
        draws = [particles.moments(target.sample(100, rng)) for _ in range(4000)]
        mean = np.mean([np.sum((m - target.mean) ** 2) for m, _ in draws])
        covariance = np.mean([np.sum((S - target.covariance) ** 2) for _, S in draws])
        assert check.mean_sampling_error == pytest.approx(np.sqrt(mean), rel=0.03)
        assert check.covariance_sampling_error == pytest.approx(np.sqrt(covariance), rel=0.03)

    def test_a_wrong_plan_is_caught(self):
        still = plan(self.start, self.narrow, gt.Parameters(dim=2))
        check = gt.check_tokens(still, 500, rng=0)
        assert not check.within_sampling_error
        assert check.largest_logit_variance == 0.0

    def test_logit_variance_equals_that_of_sampled_scores(self):
        p = general(V=np.stack([V, V]), B=np.stack([B, 2 * B]), beta=np.stack([BETA, BETA]))
        made = plan(LAW, LAW, p, horizon=1e-3)
        rng = np.random.default_rng(0)
        queries, keys = LAW.sample(3000, rng), LAW.sample(3000, rng)
        scores = (queries @ (2 * B).T + BETA) @ keys.T
        assert largest_logit_variance(made) == pytest.approx(scores.var(axis=1).mean(), rel=0.05)

    @pytest.mark.parametrize("rate", [1.0, -1.0])
    def test_the_largest_logit_variance_along_the_plan_counts(self, rate):
        law = gt.Gaussian([0.0], [[1.0]])
        made = plan(law, law, gt.Parameters(A=[[rate]], B=[[0.5]], V=[[0.0]]))
        expected = 0.5 * max(1.0, np.exp(2 * rate))  # a² = (B s)², s = e^{2 rate t}
        assert largest_logit_variance(made) == pytest.approx(expected**2, rel=1e-9)

    def test_tokens_that_did_not_arrive_are_not_within(self):
        check = gt.check_tokens(self.arriving(), 200, rng=0)
        assert check.within_sampling_error
        assert not replace(check, status=Status.STEP_LIMIT).within_sampling_error

    def test_a_dirac_arrives_up_to_the_integration_error(self):
        start, target = (gt.Gaussian([x], np.zeros((1, 0))) for x in (1.0, np.exp(2.0)))
        check = gt.check_tokens(plan(start, target, gt.Parameters(A=[[2.0]])), 10, rng=0)
        assert check.mean_sampling_error == 0
        assert 0 < check.mean_error < check.mean_resolution < 0.01
        assert check.within_sampling_error
        beside = gt.Gaussian([np.exp(2.0) * 1.01], np.zeros((1, 0)))
        check = gt.check_tokens(plan(start, beside, gt.Parameters(A=[[2.0]])), 10, rng=0)
        assert not check.within_sampling_error

    def test_a_plan_in_a_subspace(self):
        rng = np.random.default_rng(0)
        U = orthogonal(rng, 30)[:, :2]
        inner = self.arriving()
        start, target = (
            gt.Gaussian(U @ g.mean, U @ g.factor)
            for g in (inner.problem.start, inner.problem.target)
        )
        schedule = gt.Schedule([0.0, 1.0], [inner.schedule(0.0)], basis=U)
        made = replace(
            inner,
            problem=SteeringProblem(start, target),
            schedule=schedule,
            trajectory=gt.simulate(start, schedule),
        )
        check, plain = (gt.check_tokens(x, 300, rng=2) for x in (made, inner))
        assert check.covariance_error == pytest.approx(plain.covariance_error, rel=1e-6)
        assert check.largest_logit_variance == pytest.approx(plain.largest_logit_variance)

    def test_interruption_passes_through(self):
        with pytest.raises(KeyboardInterrupt):
            gt.check_tokens(self.arriving(), 100, rng=0, progress=interrupt_after(3))

    def test_bad_arguments(self):
        with pytest.raises(InvalidShape, match="must be a Steering"):
            gt.check_tokens(LAW, 100, rng=0)
        with pytest.raises(InvalidNumber, match="at least 2"):
            gt.check_tokens(self.arriving(), 1, rng=0)

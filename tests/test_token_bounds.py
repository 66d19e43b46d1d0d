"""How far tokens can get, when they leave a mean field that blows up, and what is refused."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import gtcontrol as gt
from gtcontrol.errors import (
    IncompatibleSchedule,
    InvalidMethod,
    InvalidNumber,
    InvalidShape,
    NotFinite,
    TooLarge,
)
from gtcontrol.feedforward import ACTIVATIONS
from gtcontrol.validation.bounds import largest_norm, norm_bounds
from tests.strategies import generators, orthogonal
from tests.test_simulation import general
from tests.test_token_engine import cloud, layer, mixed


def drawn(rng, d, size):
    """Parameters of two heads, and a layer, whose bounds are not all alike."""
    scale = size / np.sqrt(d)
    p = gt.Parameters(
        A=scale * rng.standard_normal((d, d)),
        V=scale * rng.standard_normal((2, d, d)),
        B=3 * scale * rng.standard_normal((2, d, d)),
        b=size * rng.standard_normal(d),
        beta=rng.standard_normal((2, d)),
    )
    named = sorted(ACTIVATIONS)
    ff = gt.FeedForward(
        scale * rng.standard_normal((3, d)),
        rng.standard_normal(3),
        scale * rng.standard_normal((d, 3)),
        named[int(rng.integers(len(named)))],
    )
    return p, ff


class TestNorms:
    @settings(max_examples=40)
    @given(generators(), st.sampled_from([None, 3, 12]), st.integers(0, 2), st.booleans())
    def test_no_token_gets_beyond_the_bound(self, rng, layers, masked, active):
        d = int(rng.integers(1, 4))
        p, ff = drawn(rng, d, 0.7)
        run = gt.simulate_tokens(
            rng.standard_normal((20, d)),
            p,
            1.2,
            layers=layers,
            feedforward=ff if active else None,
            mask_self=masked == 1,
            causal=masked == 2,
        )
        assert run.status is gt.Status.SUCCESS
        assert np.all(run.largest_norm <= run.norm_bound * (1 + 1e-4))
        assert run.norm_bound[0] == pytest.approx(run.largest_norm[0], rel=1e-14)
        farthest = np.linalg.norm(run.final, axis=1).max()
        assert run.largest_norm[-1] == pytest.approx(farthest, rel=1e-13)

    @pytest.mark.parametrize("layers", [None, 9])
    def test_without_feed_forward_it_is_the_exponential_of_the_norm_of_v(self, layers):
        # B = 9 I: the farthest token attends to itself, and V = diag(1, 0) stretches it fully.
        x = np.array([[2.0, 0.0], [-1.0, 0.5], [-0.3, -0.9]])
        p = gt.Parameters(V=np.diag([1.0, 0.0]), B=9 * np.eye(2))
        run = gt.simulate_tokens(x, p, 1.5, layers=layers, rtol=1e-9)
        growth = np.exp(run.times) if layers is None else (1 + 1.5 / 9) ** np.arange(10)
        growth = growth if layers is None else growth[np.round(run.times * 6).astype(int)]
        np.testing.assert_allclose(run.norm_bound, 2.0 * growth, rtol=1e-12)
        assert run.largest_norm[-1] > 0.99 * run.norm_bound[-1]

    def test_several_heads_add_their_norms(self):
        V = np.array([np.diag([1.0, -3.0]), [[0.0, 0.5], [0.0, 0.0]]])
        p = gt.Parameters(V=V, B=np.zeros((2, 2, 2)))
        x = cloud(10, 2)
        bound = norm_bounds(x, gt.Schedule.constant(p, 2.0), 2.0, [0.0, 2.0])
        np.testing.assert_allclose(bound / largest_norm(x), [1.0, np.exp(7.0)], rtol=1e-13)

    def test_it_integrates_gronwalls_inequality(self):
        # Two pieces, with A that shrinks and b: R' = (λ_max(sym A) + Σ|V| + ℓ) R + |b| + c.
        pieces = [mixed(3, seed) for seed in (1, 5)]
        ff = layer(3)
        x, times = cloud(10, 3), np.array([0.0, 0.2, 0.5, 0.9, 1.0])

        def rates(p):
            rate = np.linalg.eigvalsh((p.A + p.A.T) / 2)[-1]
            rate += sum(np.linalg.svd(V)[1][0] for V in p.V)
            outer = np.linalg.svd(ff.outer)[1][0]
            rate += outer * np.linalg.svd(ff.inner)[1][0]
            return rate, np.linalg.norm(p.b) + outer * np.linalg.norm(ff.bias)

        expected = [largest_norm(x)]
        for start, end in pairwise(times):
            r, s = rates(pieces[0 if start < 0.5 else 1])
            made = solve_ivp(
                lambda t, R, r=r, s=s: r * R + s, (start, end), expected[-1:], rtol=1e-12
            )
            expected.append(made.y[0, -1])
        schedule = gt.Schedule([0.0, 0.5, 1.0], pieces)
        bound = norm_bounds(x, schedule, 1.0, times, feedforward=ff)
        np.testing.assert_allclose(bound, expected, rtol=1e-7)

    @pytest.mark.parametrize("a", [-0.7, 0.0, 0.7])
    def test_feed_forward_alone_meets_the_bound(self, a):
        # x' = a x + b with b along the farthest token.
        x = np.array([[1.5, 0.0], [0.2, -0.3]])
        p = gt.Parameters(A=a * np.eye(2), b=[0.4, 0.0])
        run = gt.simulate_tokens(x, p, 2.0, rtol=1e-10)
        np.testing.assert_allclose(run.largest_norm, run.norm_bound, rtol=1e-8)

    @pytest.mark.parametrize("layers", [None, 5])
    def test_in_a_subspace(self, layers):
        rng = np.random.default_rng(0)
        U = orthogonal(rng, 4)[:, :2]
        x = rng.standard_normal((30, 4))
        schedule = gt.Schedule([0.0, 1.0], [general()], basis=U)
        run = gt.simulate_tokens(x, schedule, layers=layers)
        assert np.all(run.largest_norm <= run.norm_bound)
        whole = norm_bounds(
            x, gt.Schedule.constant(general().lift(U), 1.0), 1.0, run.times, layers=layers
        )
        assert run.norm_bound[-1] < whole[-1]

    def test_where_nothing_is_known(self):
        x = cloud(6, 2)
        moving = gt.Schedule.from_function(lambda t: general(), 1.0)
        assert gt.simulate_tokens(x, moving, layers=2).norm_bound is None
        own = gt.FeedForward(np.eye(2), activation=np.sin)
        assert gt.simulate_tokens(x, general(), 1.0, layers=2, feedforward=own).norm_bound is None
        noisy = gt.Parameters(noise=np.eye(2))
        assert gt.simulate_tokens(x, noisy, 1.0, layers=2, rng=0).norm_bound is None

    def test_a_bound_beyond_double_precision_is_the_largest_number(self):
        p = gt.Parameters(V=1e3 * np.eye(2), B=-np.eye(2))
        bound = norm_bounds(cloud(3, 2), gt.Schedule.constant(p, 9.0), 9.0, [0.0, 9.0])
        assert bound[1] == np.finfo(float).max

    def test_norms_of_large_and_small_tokens(self):
        assert largest_norm(np.array([[3e200, 4e200]])) == pytest.approx(5e200)
        assert largest_norm(np.array([[3e-200, 4e-200], [0, 0]])) == pytest.approx(5e-200)
        assert largest_norm(np.zeros((2, 2))) == 0.0


class TestDeparture:
    @pytest.mark.parametrize(("d", "count"), [(2, 400), (8, 200)])
    def test_of_the_closed_form_blow_up(self, d, count):
        # V = I, B = I/2, S(0) = I: S = I/(1 - t), so that d log tr S/dt = 1/(1 - t).
        p = gt.Parameters(V=np.eye(d), B=0.5 * np.eye(d))
        unit = gt.Gaussian(np.zeros(d), np.eye(d))
        flow = gt.simulate(unit, p, 1.5)
        run = gt.simulate_tokens(
            unit, p, 1.5, count=count, rng=0, antithetic=True, moment_matched=True, observe=61
        )
        assert run.status is gt.Status.SUCCESS
        left = gt.detect_departure(run, flow)
        assert 0.75 < left.observed < 0.92
        variance = np.interp(left.observed, run.times, np.trace(run.covariances, axis1=1, axis2=2))
        assert variance == pytest.approx(0.9 * d / (1 - left.observed), rel=2e-3)
        assert left.warned == pytest.approx(0.5, abs=1e-4)
        # R₀² e^{2t} = d/(1 - t).
        R = run.largest_norm[0]
        sure = brentq(lambda t: R**2 * np.exp(2 * t) * (1 - t) - d, 0.5, 1.0)
        assert sure <= left.certain < sure + 0.03
        assert left.warned < left.observed < left.certain
        assert gt.detect_departure(run, flow, 0.5).observed > left.observed

    def test_through_layers(self):
        p = gt.Parameters(V=np.eye(2), B=0.5 * np.eye(2))
        unit = gt.Gaussian([0.0, 0.0], np.eye(2))
        flow = gt.simulate(unit, p, 1.5, layers=30)
        run = gt.simulate_tokens(unit, p, 1.5, count=400, rng=0, layers=30, observe=31)
        left = gt.detect_departure(run, flow)
        traces = np.trace(run.covariances, axis1=1, axis2=2)
        i = int(np.argmax(traces[: flow.times.size] < 0.9 * flow.traces))
        assert left.observed == pytest.approx(0.05 * i)
        assert left.warned <= left.observed <= left.certain
        # log(S_{k+1}/S_k) = 2 log(1 + h S_k/2) exceeds 2 h first here.
        s, k = 1.0, 0
        while 2 * np.log(1 + 0.05 * s / 2) <= 2 * 0.05:
            s, k = s * (1 + 0.05 * s / 2) ** 2, k + 1
        assert left.warned == pytest.approx(0.05 * k)

    def test_tokens_that_stay(self):
        p = gt.Parameters(V=np.eye(2), B=-0.5 * np.eye(2))
        unit = gt.Gaussian([0.0, 0.0], np.eye(2))
        run = gt.simulate_tokens(unit, p, 1.0, count=1000, rng=0, moment_matched=True)
        left = gt.detect_departure(run, gt.simulate(unit, p, 1.0))
        assert (left.observed, left.warned, left.certain) == (np.inf,) * 3

    def test_tokens_that_never_were_there(self):
        p = gt.Parameters(V=np.eye(2), B=-0.5 * np.eye(2))
        flow = gt.simulate(gt.Gaussian([0.0, 0.0], np.eye(2)), p, 1.0)
        run = gt.simulate_tokens(0.1 * cloud(50, 2), p, 1.0)
        left = gt.detect_departure(run, flow)
        assert left.observed == 0.0
        assert left.certain == 0.0

    def test_bad_arguments(self):
        p = gt.Parameters(V=np.eye(2), B=-np.eye(2))
        run = gt.simulate_tokens(cloud(5, 2), p, 0.1, layers=1)
        flow = gt.simulate(gt.Gaussian([0.0, 0.0], np.eye(2)), p, 0.1, layers=1)
        for share in (0.0, 1.0, -1.0):
            with pytest.raises(InvalidNumber, match="`share`"):
                gt.detect_departure(run, flow, share)
        line = gt.simulate(gt.Gaussian([0.0], [[1.0]]), gt.Parameters(dim=1), 0.1)
        with pytest.raises(InvalidShape, match="dimension 2, the flow has 1"):
            gt.detect_departure(run, line)


class TestPairs:
    """What does not belong together is refused; what does is not."""

    P = gt.Parameters(V=np.eye(2), B=0.5 * np.eye(2), b=[0.1, 0.0])
    LAW = gt.Gaussian([0.0, 0.0], np.eye(2))

    def run(self, **options):
        given = {"count": 20, "rng": 0, "layers": 4} | options
        return gt.simulate_tokens(self.LAW, self.P, 0.4, **given)

    @pytest.mark.parametrize(
        ("change", "error", "words"),
        [
            ({"B": 0.4}, IncompatibleSchedule, "differ at t = 0.2: B"),
            ({"horizon": 0.5}, InvalidNumber, "up to t = 0.4, the flow up to 0.5"),
            ({"layers": None}, InvalidNumber, "is 4 for the tokens and None for"),
            ({"scale": 1.1}, InvalidNumber, "total variance 2.42 that is neither"),
            ({"relu": True}, InvalidNumber, "different feed-forward layers"),
        ],
    )
    def test_other_questions_are_refused(self, change, error, words):
        p = gt.Parameters(V=np.eye(2), B=change.get("B", 0.5) * np.eye(2), b=[0.1, 0.0])
        law = gt.Gaussian([0.0, 0.0], change.get("scale", 1.0) * np.eye(2))
        flow = gt.simulate(
            law, p, change.get("horizon", 0.4), layers=change.get("layers", 4),
            feedforward=gt.FeedForward(np.eye(2)) if "relu" in change else None,
        )  # fmt: skip
        with pytest.raises(error, match=words):
            gt.detect_departure(self.run(), flow)

    def test_swapped_arguments(self):
        run, flow = self.run(), gt.simulate(self.LAW, self.P, 0.4, layers=4)
        with pytest.raises(InvalidShape, match="must be a TokenRun, not Trajectory"):
            gt.detect_departure(flow, run)
        with pytest.raises(InvalidShape, match="must be a Trajectory, not TokenRun"):
            gt.detect_departure(run, run)

    def test_what_belongs_together(self):
        run = self.run()
        own = gt.Gaussian.from_covariance(run.means[0], run.covariances[0])
        pieces = gt.Schedule([0.0, 0.1, 0.4], [self.P, self.P])
        for law, p in ((self.LAW, self.P), (own, self.P), (self.LAW, pieces)):
            gt.detect_departure(run, gt.simulate(law, p, 0.4, layers=4))
        later = gt.Parameters(V=np.eye(2), B=0.4 * np.eye(2), b=[0.1, 0.0])
        other = gt.Schedule([0.0, 0.3, 0.4], [self.P, later])
        with pytest.raises(IncompatibleSchedule, match=r"t = 0.35: B"):
            gt.detect_departure(run, gt.simulate(self.LAW, other, 0.4, layers=4))


def broken(u):
    """The identity up to 50, nan beyond."""
    return np.where(u > 50, np.nan, u)


def pole(u):
    return np.where(np.abs(u) > 50, np.inf, u**3)


class TestRefused:
    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({"causal": True, "mask_self": True}, InvalidMethod, "first token has nothing"),
            ({"backend": "jax"}, InvalidMethod, "'jax'; expected one of auto, numpy, torch"),
            ({"dtype": "float16"}, InvalidMethod, "'float16'; expected one of float64, float32"),
            ({"dtype": "float32", "rtol": 1e-9}, InvalidNumber, "single precision cannot"),
            ({"feedforward": "relu"}, InvalidShape, "must be a FeedForward, not str"),
            ({"feedforward": gt.FeedForward(np.eye(3))}, InvalidShape, "dimension 3, but they"),
        ],
    )
    def test_options(self, options, error, words):
        with pytest.raises(error, match=words):
            gt.simulate_tokens(cloud(5, 2), general(), 1.0, **options)

    def test_one_token_cannot_attend_to_others(self):
        with pytest.raises(InvalidNumber, match="at least 2 tokens"):
            gt.simulate_tokens([[1.0, 2.0]], general(), 1.0, mask_self=True)

    @pytest.mark.parametrize("layers", [None, 20])
    def test_an_activation_that_is_not_finite_is_named_with_the_place(self, layers):
        ff = gt.FeedForward(np.eye(2), activation=broken)
        x = np.array([[1.0, 0.0], [-1.0, 2.0]])
        words = r"the activation `broken` is nan at 5\d.*, which token 1 reaches near t = 3\."
        with pytest.raises(NotFinite, match=words):
            gt.simulate_tokens(x, gt.Parameters(dim=2), 5.0, layers=layers, feedforward=ff)

    def test_an_activation_is_named_at_once(self):
        ff = gt.FeedForward(np.eye(2), activation=broken)
        with pytest.raises(NotFinite, match=r"`broken` is nan at 60, which token 1 .* t = 0;"):
            gt.simulate_tokens([[1.0, 2.0], [3.0, 60.0]], general(), 1.0, feedforward=ff)

    def test_a_trial_step_that_goes_too_far_is_no_error(self):
        # x' = -x³: explicit trial steps from 49 leave the range where the activation is finite.
        ff = gt.FeedForward(np.eye(1), outer=[[-1.0]], activation=pole)
        start = np.array([[49.0], [-49.0]])
        run = gt.simulate_tokens(start, gt.Parameters(dim=1), 1.0, feedforward=ff, rtol=1e-8)
        assert run.status is gt.Status.SUCCESS
        expected = 49 / np.sqrt(1 + 2 * 49**2)
        np.testing.assert_allclose(np.abs(run.final), expected, rtol=1e-5)

    def test_hidden_units_beyond_memory_are_refused_before_allocating(self, monkeypatch):
        ff = layer(2)
        monkeypatch.setattr("gtcontrol.problem.memory.available", lambda: 8_000_000)
        x = cloud(10_000, 2)
        tracemalloc.start()
        with pytest.raises(TooLarge, match=r"10000 tokens of dimension 2 would take about .* MB"):
            gt.simulate_tokens(x, general(), 1.0, feedforward=ff, causal=True)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1e5

    def test_a_horizon_past_the_blow_up_of_the_mean_field_is_answered(self):
        p = gt.Parameters(V=np.eye(2), B=0.5 * np.eye(2))
        run = gt.simulate_tokens(cloud(50, 2), p, 4.0, mask_self=True)
        assert run.answered
        assert np.all(run.largest_norm <= run.norm_bound)

    def test_an_activation_of_ones_own_cannot_be_saved(self, tmp_path):
        ff = gt.FeedForward(np.eye(2), activation=broken)
        run = gt.simulate_tokens(cloud(5, 2), general(), 0.1, layers=1, feedforward=ff)
        with pytest.raises(InvalidMethod, match="`broken` is a function of your own"):
            run.save(tmp_path / "run")
        assert "broken, 2 hidden units" in run.report(tmp_path / "r.html").read_text()

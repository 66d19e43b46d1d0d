"""What moves tokens: masks, feed-forward layers, kernels, bounds on the norms, departure."""

import os
import subprocess
import sys
import tracemalloc
from importlib.util import find_spec

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.integrate import solve_ivp
from scipy.special import softmax

import gtcontrol as gt
from gtcontrol.attention import Mask, attention_spread, softmax_average, velocity
from gtcontrol.errors import InvalidMethod, InvalidNumber, InvalidShape
from gtcontrol.validation import kernels
from gtcontrol.validation.kernels import fused_average
from tests.strategies import generators, orthogonal
from tests.test_simulation import LAW, general, interrupt_after

needs_torch = pytest.mark.skipif(
    find_spec("torch") is None, reason="torch is not installed (extra `torch`)"
)
every_mask = pytest.mark.parametrize("mask", Mask)


def plain_weights(queries, keys, mask):
    """The full matrix of softmax weights."""
    scores = queries @ keys.T
    if mask is Mask.SELF:
        np.fill_diagonal(scores, -np.inf)
    if mask is Mask.CAUSAL:
        scores[np.triu_indices(len(keys), 1)] = -np.inf
    return softmax(scores, axis=1)


def exact_average(queries, keys, mask, i):
    """Average for query i in sixty digits."""
    with mp.workdps(60):
        rows = [[mp.mpf(float(x)) for x in y] for y in keys]
        query = [mp.mpf(float(x)) for x in queries[i]]
        hidden = {
            Mask.NONE: lambda j: False,
            Mask.SELF: lambda j: j == i,
            Mask.CAUSAL: lambda j: j > i,
        }[mask]
        weights = [0 if hidden(j) else mp.exp(mp.fdot(query, row)) for j, row in enumerate(rows)]
        total = mp.fsum(weights)
        return [
            float(mp.fdot(weights, [row[c] for row in rows]) / total) for c in range(len(rows[0]))
        ]


def cloud(count, d, seed=0, size=1.0):
    return size * np.random.default_rng(seed).standard_normal((count, d))


def mixed(d, seed=1, heads=2):
    """Heads with biases and a feed-forward map, without any symmetry."""
    rng = np.random.default_rng(seed)
    V, B = 0.5 * rng.standard_normal((2, heads, d, d)) / np.sqrt(d)
    return gt.Parameters(
        A=0.3 * rng.standard_normal((d, d)),
        B=B,
        V=V,
        b=rng.standard_normal(d),
        beta=rng.standard_normal((heads, d)),
    )


def layer(d, seed=2, activation="relu"):
    rng = np.random.default_rng(seed)
    W, c, U = rng.standard_normal((2 * d, d)), rng.standard_normal(2 * d), np.ones((d, 2 * d))
    return gt.FeedForward(W / np.sqrt(d), c, U * 0.3 / d, activation)


def plain_velocity(p, x, mask, ff=None):
    moved = x @ p.A.T + p.b
    for V, B, beta in p.heads:
        queries = x @ B.T + (0 if beta is None else beta)
        moved = moved + plain_weights(queries, x, mask) @ x @ V.T
    if ff is not None:
        moved = moved + np.maximum(x @ ff.inner.T + ff.bias, 0) @ ff.outer.T
    return moved


class TestMasks:
    @every_mask
    @pytest.mark.parametrize(("N", "d"), [(2, 1), (130, 3), (700, 3), (1100, 5)])
    @pytest.mark.parametrize("size", [0.3, 30.0])
    def test_blocks_equal_the_full_softmax(self, mask, N, d, size):
        keys = 1 + cloud(N, d)
        queries = size * keys @ (np.eye(d) + 0.3 * cloud(d, d, 1))
        expected = plain_weights(queries, keys, mask) @ keys
        np.testing.assert_allclose(softmax_average(queries, keys, mask), expected, atol=2e-13)

    @every_mask
    @pytest.mark.parametrize("scale", [1.0, 40.0, 1e4])
    def test_sixty_digits_where_tokens_attend_to_themselves(self, mask, scale):
        # At 40 the weight of the own key is 1 - 1e-17 and less: taking it away from the sum in
        # the end would leave nothing of what the others weigh.
        keys = np.array([[1.0, 0.2], [0.1, 1.0], [-0.7, 0.6], [0.4, -1.0], [0.9, 0.3]])
        keys /= np.linalg.norm(keys, axis=1, keepdims=True)
        queries = scale * keys
        made = softmax_average(queries, keys, mask)
        for i in range(len(keys)):
            expected = exact_average(queries, keys, mask, i)
            np.testing.assert_allclose(made[i], expected, rtol=1e-11, atol=1e-11)

    @every_mask
    def test_rows_with_large_and_small_scores(self, mask):
        # Some blocks of rows need a running maximum, others do not.
        keys = cloud(900, 2)
        queries = keys * np.geomspace(1e-3, 1e5, 900)[:, None]
        expected = plain_weights(queries, keys, mask) @ keys
        np.testing.assert_allclose(softmax_average(queries, keys, mask), expected, atol=1e-10)

    @every_mask
    @pytest.mark.parametrize("single", [False, True])
    def test_huge_scores_stay_finite(self, mask, single):
        keys = cloud(600, 2)
        made = softmax_average(1e8 * keys, keys, mask, single=single)
        expected = plain_weights(1e8 * keys, keys, mask) @ keys
        # In single precision the best key may be confused with one that is almost as good.
        np.testing.assert_allclose(made, expected, atol=1e-3 if single else 1e-7)

    @every_mask
    def test_single_precision(self, mask):
        keys = cloud(700, 4)
        queries = 0.5 * keys
        expected = softmax_average(queries, keys, mask)
        made = softmax_average(queries, keys, mask, single=True)
        error = np.abs(made - expected).max()
        assert 1e-12 < error < 1e-5

    @every_mask
    def test_selected_rows(self, mask):
        keys, own = cloud(700, 3), np.array([0, 3, 511, 512, 699])
        made = softmax_average(keys[own], keys, mask, own=own)
        np.testing.assert_allclose(made, softmax_average(keys, keys, mask)[own], rtol=1e-12)

    @every_mask
    @given(generators(), st.floats(-1e3, 1e3))
    def test_a_shift_of_all_keys_shifts_the_averages(self, mask, rng, shift):
        keys = rng.standard_normal((40, 3))
        queries = 2.0 * rng.standard_normal((40, 3))
        made = softmax_average(queries, keys + shift, mask)
        np.testing.assert_allclose(made - shift, softmax_average(queries, keys, mask), atol=1e-9)

    @pytest.mark.parametrize("mask", [Mask.NONE, Mask.SELF])
    @given(st.permutations(range(12)))
    def test_tokens_have_no_order(self, mask, order):
        x = cloud(12, 3)
        p, ff = mixed(3), layer(3)
        moved = velocity(p, x, mask=mask, feedforward=ff)
        again = velocity(p, x[list(order)], mask=mask, feedforward=ff)
        np.testing.assert_allclose(moved[list(order)], again, rtol=1e-12, atol=1e-13)

    @given(generators(), st.integers(1, 11))
    def test_later_tokens_do_not_act_on_earlier_ones(self, rng, first):
        x = rng.standard_normal((12, 2))
        other = x.copy()
        other[first:] += rng.standard_normal((12 - first, 2))
        runs = [
            gt.simulate_tokens(start, mixed(2), 1.0, layers=4, causal=True).final
            for start in (x, other)
        ]
        np.testing.assert_allclose(runs[0][:first], runs[1][:first], rtol=1e-10, atol=1e-11)
        assert np.abs(runs[0][first:] - runs[1][first:]).max() > 1e-6

    @every_mask
    @pytest.mark.parametrize("relu", [False, True])
    def test_velocity_equals_the_plain_formula(self, mask, relu):
        x, p = cloud(300, 3), mixed(3)
        ff = layer(3) if relu else None
        made = velocity(p, x, mask=mask, feedforward=ff)
        np.testing.assert_allclose(made, plain_velocity(p, x, mask, ff), rtol=1e-11, atol=1e-12)

    @every_mask
    def test_equal_scores_need_no_exponential(self, mask):
        x, V = cloud(50, 2), np.array([[1.0, 0.5], [-0.2, 0.3]])
        expected = plain_velocity(gt.Parameters(V=V), x, mask)
        np.testing.assert_allclose(velocity(gt.Parameters(V=V), x, mask=mask), expected, rtol=1e-11)

    @every_mask
    @pytest.mark.parametrize("size", [0.5, 60.0])
    def test_spread_of_the_weights(self, mask, size):
        x = cloud(700, 3)
        queries = size * x
        weights = plain_weights(queries, x, mask)
        own, sizes = attention_spread(queries, x, mask)
        np.testing.assert_allclose(own, np.diag(weights), rtol=1e-10, atol=1e-300)
        np.testing.assert_allclose(sizes, 1 / np.sum(weights**2, axis=1), rtol=1e-10)

    def test_masks_need_keys_of_their_own(self):
        with pytest.raises(InvalidShape, match="3 queries and 5 keys"):
            softmax_average(cloud(3, 2), cloud(5, 2), Mask.CAUSAL, own=np.arange(4))
        with pytest.raises(InvalidMethod, match="another token"):
            softmax_average(cloud(1, 2), cloud(1, 2), Mask.SELF)


@needs_torch
class TestTorch:
    @every_mask
    @pytest.mark.parametrize(
        ("N", "d", "size"), [(2, 1, 1.0), (300, 3, 0.5), (900, 32, 1.0), (200, 5, 1e4)]
    )
    def test_torch_equals_numpy(self, mask, N, d, size):
        keys = 2 + cloud(N, d)
        queries = size * keys @ (np.eye(d) + 0.1 * cloud(d, d, 1))
        made = fused_average(queries, keys, mask)
        np.testing.assert_allclose(made, softmax_average(queries, keys, mask), atol=1e-10)

    @every_mask
    @pytest.mark.parametrize("size", [0.5, 1e8])
    def test_single_precision(self, mask, size):
        keys = cloud(400, 3)
        made = fused_average(size * keys, keys, mask, single=True)
        expected = softmax_average(size * keys, keys, mask)
        np.testing.assert_allclose(made, expected, atol=1e-4 if size < 1 else 1e-3)

    def test_rows_where_taking_the_own_key_away_would_cancel(self):
        # In dimension 32 with B = I tokens attend to themselves almost only.
        keys = cloud(200, 32)
        own, _ = attention_spread(keys, keys)
        assert np.median(own) > 0.999
        made = fused_average(keys, keys, Mask.SELF)
        np.testing.assert_allclose(made, softmax_average(keys, keys, Mask.SELF), atol=1e-11)

    @pytest.mark.parametrize("options", [{}, {"mask_self": True}, {"causal": True}])
    @pytest.mark.parametrize("layers", [None, 5])
    def test_runs_agree(self, options, layers):
        x, p = cloud(150, 3), mixed(3)
        runs = [
            gt.simulate_tokens(
                x, p, 0.5, layers=layers, feedforward=layer(3), backend=backend, **options
            )
            for backend in ("numpy", "torch")
        ]
        np.testing.assert_allclose(runs[0].final, runs[1].final, atol=1e-10)
        assert [r.problem.backend for r in runs] == ["numpy", "torch"]

    def test_one_masked_token_is_refused(self):
        with pytest.raises(InvalidMethod, match="another token"):
            fused_average(cloud(1, 2), cloud(1, 2), Mask.SELF)


class TestBackends:
    def test_numpy_is_chosen_where_torch_does_not_pay(self, monkeypatch):
        monkeypatch.setattr(kernels, "find_spec", lambda name: object())
        monkeypatch.setattr(kernels, "_cores", lambda: 8)
        assert kernels.choose("auto", "float64", 100) == "numpy"
        assert kernels.choose("auto", "float64", 10_000) == "torch"
        assert kernels.choose("numpy", "float64", 10_000) == "numpy"
        monkeypatch.setattr(kernels, "_cores", lambda: 2)
        assert kernels.choose("auto", "float64", 10_000) == "numpy"
        assert kernels.choose("torch", "float64", 2) == "torch"

    def test_without_torch(self, monkeypatch):
        monkeypatch.setattr(kernels, "find_spec", lambda name: None)
        monkeypatch.setattr(kernels, "_cores", lambda: 64)
        assert kernels.choose("auto", "float64", 10_000) == "numpy"
        with pytest.raises(InvalidMethod, match=r"torch is not installed.*gtcontrol\[torch\]"):
            gt.simulate_tokens(cloud(4, 2), general(), 1.0, backend="torch")

    def test_cores(self, monkeypatch):
        assert kernels._cores() >= 1
        monkeypatch.delattr(os, "sched_getaffinity", raising=False)
        monkeypatch.setattr(os, "cpu_count", lambda: None)
        assert kernels._cores() == 1

    def test_torch_is_not_imported_unless_it_is_used(self):
        code = (
            "import sys, numpy as np, gtcontrol as gt\n"
            "gt.simulate_tokens(np.eye(2), gt.Parameters(V=np.eye(2), B=np.eye(2)), 0.1)\n"
            "print('torch' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert done.stdout.split() == [b"False"]


class TestRuns:
    @pytest.mark.parametrize("options", [{}, {"mask_self": True}, {"causal": True}])
    def test_flow_equals_an_accurate_integration(self, options):
        x, p, ff = cloud(40, 2), mixed(2), layer(2)
        mask = Mask.SELF if "mask_self" in options else Mask.CAUSAL if options else Mask.NONE
        run = gt.simulate_tokens(x, p, 0.8, feedforward=ff, rtol=1e-9, **options)
        expected = solve_ivp(
            lambda t, y: plain_velocity(p, y.reshape(x.shape), mask, ff).ravel(),
            (0, 0.8),
            x.ravel(),
            method="DOP853",
            rtol=1e-11,
            atol=1e-12,
        ).y[:, -1]
        np.testing.assert_allclose(run.final.ravel(), expected, atol=2e-6)

    @pytest.mark.parametrize("options", [{}, {"mask_self": True}, {"causal": True}])
    def test_layers_converge_to_the_flow_at_first_order(self, options):
        x, p = cloud(60, 2), mixed(2)
        ff = layer(2, activation="tanh")  # smooth
        flow = gt.simulate_tokens(x, p, 0.5, feedforward=ff, rtol=1e-10, **options).final
        errors = [
            np.abs(
                gt.simulate_tokens(x, p, 0.5, layers=n, feedforward=ff, **options).final - flow
            ).max()
            for n in (40, 80, 160)
        ]
        orders = np.log2(np.array(errors[:-1]) / errors[1:])
        np.testing.assert_allclose(orders, 1.0, atol=0.05)

    def test_an_affine_layer_is_affine_feed_forward(self):
        x, p = cloud(50, 3), mixed(3)
        ff = layer(3, activation="identity")
        merged = gt.Parameters(
            A=p.A + ff.outer @ ff.inner, B=p.B, V=p.V, b=p.b + ff.outer @ ff.bias, beta=p.beta
        )
        one = gt.simulate_tokens(x, p, 0.7, layers=6, feedforward=ff).final
        two = gt.simulate_tokens(x, merged, 0.7, layers=6).final
        np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-11)

    @pytest.mark.parametrize("layers", [None, 6])
    def test_a_layer_leaves_the_subspace_of_a_schedule(self, layers):
        rng = np.random.default_rng(0)
        U = orthogonal(rng, 4)[:, :2]
        x, ff = rng.standard_normal((30, 4)), layer(4)
        schedule = gt.Schedule([0.0, 0.6], [general()], basis=U)
        options = {"layers": layers, "feedforward": ff, "rtol": 1e-9}
        reduced = gt.simulate_tokens(x, schedule, **options)
        full = gt.simulate_tokens(x, general().lift(U), 0.6, **options)
        np.testing.assert_allclose(reduced.final, full.final, atol=1e-8)

    def test_single_precision_is_close(self):
        x, p = cloud(300, 3), mixed(3)
        runs = [gt.simulate_tokens(x, p, 0.5, dtype=dtype) for dtype in ("float64", "float32")]
        assert 0 < np.abs(runs[0].final - runs[1].final).max() < 1e-4
        assert runs[1].problem.dtype == "float32"

    def test_the_masks_of_many_tokens_do_not_matter_for_the_mean_field(self):
        p = gt.Parameters(V=np.eye(2), B=-0.5 * np.eye(2))
        unit = gt.Gaussian([0.0, 0.0], np.eye(2))
        options = {"count": 1000, "rng": 0, "antithetic": True, "moment_matched": True}
        runs = [
            gt.simulate_tokens(unit, p, 1.0, mask_self=masked, **options)
            for masked in (False, True)
        ]
        gap = np.abs(runs[0].covariances[-1] - runs[1].covariances[-1]).max()
        assert 1e-5 < gap < 1e-2
        assert "mean field" in runs[1].notes[0]
        assert runs[0].notes == ()

    def test_a_causal_run_says_that_the_theory_does_not_cover_it(self):
        run = gt.simulate_tokens(cloud(20, 2), general(), 0.2, causal=True)
        assert "do not cover" in run.notes[0]
        assert "do not cover" in run.summary()

    @pytest.mark.parametrize("options", [{"mask_self": True}, {"causal": True}])
    def test_memory_is_linear(self, options):
        x = cloud(3000, 2)
        gt.simulate_tokens(x[:10], general(), 0.1, layers=1, **options)
        tracemalloc.start()
        gt.simulate_tokens(x, general(), 0.1, layers=1, spread=True, observe=2, **options)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 4e6  # the full matrix of weights has 72 MB

    def test_spread_is_kept_where_asked_for(self):
        x, p = cloud(80, 2), mixed(2)
        run = gt.simulate_tokens(x, p, 0.4, layers=4, observe=3, spread=True)
        assert run.own_weight.shape == run.effective_size.shape == (3,)
        weights = [
            plain_weights(run.final @ B.T + beta, run.final, Mask.NONE) for _, B, beta in p.heads
        ]
        own = [np.diag(w).mean() for w in weights]
        sizes = [np.mean(1 / np.sum(w**2, axis=1)) for w in weights]
        assert run.own_weight[-1] == pytest.approx(max(own))
        assert run.effective_size[-1] == pytest.approx(min(sizes))
        assert gt.simulate_tokens(x, p, 0.4, layers=1).own_weight is None


class TestSeeds:
    def test_each_seed_by_itself(self):
        options = {"count": 30, "layers": 2, "mask_self": True}
        runs = gt.simulate_token_seeds(LAW, general(), 0.3, seeds=[4, 2], **options)
        for seed, run in zip([4, 2], runs, strict=True):
            alone = gt.simulate_tokens(LAW, general(), 0.3, rng=seed, **options)
            np.testing.assert_array_equal(run.final, alone.final)
            assert run.problem.seed == seed
        assert len(gt.simulate_token_seeds(LAW, general(), 0.3, count=4, seeds=3, layers=1)) == 3

    def test_interruption_keeps_the_runs_so_far(self):
        runs = gt.simulate_token_seeds(
            LAW, general(), 1.0, count=10, layers=4, progress=interrupt_after(6)
        )
        assert [r.status for r in runs] == [gt.Status.SUCCESS, gt.Status.INTERRUPTED]
        assert 0 < runs[1].times[-1] < 1

    def test_progress_goes_over_all_seeds(self):
        seen = []
        gt.simulate_token_seeds(
            LAW,
            general(),
            1.0,
            count=10,
            seeds=2,
            layers=4,
            progress=lambda part, text: seen.append((part, text)),
        )
        assert [part for part, _ in seen] == [i / 8 for i in range(8)]
        assert seen[-1][1].startswith("seed 2 of 2: 10 tokens")

    def test_of_a_mixture(self):
        both = gt.Mixture([0.5, 0.5], [LAW, LAW])
        runs = gt.simulate_token_seeds(both, general(), 0.3, count=6, seeds=2, layers=1)
        alone = gt.simulate_tokens(both, general(), 0.3, count=6, rng=1, layers=1)
        np.testing.assert_array_equal(runs[1].final, alone.final)

    @pytest.mark.parametrize(
        ("seeds", "words"),
        [
            (0, "at least 1"),
            ([], "one or more"),
            ([1, 1], "different"),
            ("ab", "whole"),
            (1.5, "a"),
        ],
    )
    def test_bad_seeds(self, seeds, words):
        with pytest.raises(InvalidNumber, match=words):
            gt.simulate_token_seeds(LAW, general(), 1.0, count=10, seeds=seeds)
        with pytest.raises(InvalidShape, match="must be a Gaussian or a Mixture"):
            gt.simulate_token_seeds(cloud(4, 2), general(), 1.0, count=4)

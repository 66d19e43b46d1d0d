"""Exported layers are the tokens' own attention, have the law of the plan, and can be refuted."""

from __future__ import annotations

import builtins
import copy
import json
import math
import pickle
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

import gtcontrol as gt
from gtcontrol.cli import kinds
from gtcontrol.errors import (
    IncompatibleSchedule,
    InvalidMethod,
    InvalidNumber,
    InvalidShape,
    MissingPackage,
    OutOfScale,
    TooLarge,
)
from gtcontrol.pretrained.export.discretisation import corrected, sampled
from gtcontrol.pretrained.export.factors import factorise
from gtcontrol.pretrained.export.run import layers_of, weights_of
from gtcontrol.pretrained.export.source import source_of
from gtcontrol.problem import memory
from gtcontrol.problem.definitions import ExportProblem
from gtcontrol.reporting import html
from gtcontrol.reporting.files import write_all
from gtcontrol.reporting.views import view
from gtcontrol.results.export import ExportCheck
from gtcontrol.results.tensor_files import encode
from gtcontrol.status import Status
from tests.extras import needs_torch
from tests.strategies import orthogonal
from tests.test_simulation import LAW, general

if find_spec("torch") is not None:
    import torch

UNIT = gt.Gaussian([0.0], [[1.0]])


def several_heads(d=3, heads=2, seed=0, scale=0.4):
    rng = np.random.default_rng(seed)
    return gt.Parameters(
        A=scale * rng.standard_normal((d, d)),
        V=scale * rng.standard_normal((heads, d, d)),
        B=scale * rng.standard_normal((heads, d, d)),
        b=rng.standard_normal(d),
        beta=rng.standard_normal((heads, d)),
    )


def low_rank(d=5, seed=1):
    """Heads of rank 1 and 2, whose score bias lies outside the range of B."""
    rng = np.random.default_rng(seed)
    made = {
        k: [rng.standard_normal((d, r)) @ rng.standard_normal((r, d)) for r in (1, 2)] for k in "VB"
    }
    return gt.Parameters(**{k: 0.3 * np.array(v) for k, v in made.items()}, beta=np.ones((2, d)))


def wave(t):
    return gt.Parameters(
        A=np.sin(9 * t) * np.eye(2), V=-np.eye(2), B=[[0.5, t], [0.0, 0.5]], b=[t, 1.0]
    )


JUMP = gt.Schedule(
    [0.0, 0.3, 1.0], [general(), gt.Parameters(A=-np.eye(2), V=np.eye(2), B=-np.eye(2))]
)
HEADS_CHANGE = gt.Schedule(
    [0.0, 0.2, 0.5], [general(), gt.Parameters(V=np.ones((3, 2, 2)) / 9, B=-np.ones((3, 2, 2)))]
)
BASIS = orthogonal(np.random.default_rng(0), 5)[:, :2]
SUBSPACE = gt.Schedule(
    [0.0, 0.4, 1.0], [general(), gt.Parameters(V=-np.eye(2), B=np.eye(2))], basis=BASIS
)

SCHEDULES = {
    "one-head": gt.Schedule.constant(general(), 1.0),
    "several-heads": gt.Schedule.constant(several_heads(), 0.6),
    "low-rank": gt.Schedule.constant(low_rank(), 0.5),
    "one-dimension": gt.Schedule.constant(gt.Parameters(V=[[1.0]], B=[[-0.5]], beta=[2.0]), 1.0),
    "function": gt.Schedule.from_function(wave, 1.0),
    "jump": JUMP,
    "heads-change": HEADS_CHANGE,
    "subspace": SUBSPACE,
    "no-attention": gt.Schedule.constant(gt.Parameters(A=[[0.0, 1.0], [-1.0, 0.0]], b=[1, 2]), 1.0),
}

every_schedule = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)


def start_for(schedule, rank=None, seed=3):
    rng = np.random.default_rng(seed)
    d = schedule.dim
    return gt.Gaussian(rng.standard_normal(d), 0.25 * rng.standard_normal((d, rank or d)))


def assert_same_law(first, second, rtol):
    scale = np.sqrt(second.trace + np.sum(second.mean**2))
    assert gt.wasserstein(first, second) <= rtol * scale


# -- weights -----------------------------------------------------------------------------


class TestFactors:
    @every_schedule
    def test_weights_are_those_of_the_parameters(self, schedule):
        w = factorise(sampled(schedule, schedule.horizon, 5), mask_self=False, dtype="float64")
        h, k = schedule.horizon / 5, w.head_dim
        assert w.step == pytest.approx(h)
        assert w.scale == (1 / math.sqrt(k) if k else 1.0)
        for i in range(5):
            p = schedule(schedule.snap(i * h))
            np.testing.assert_allclose(w.affine[i], p.A, atol=1e-15)
            np.testing.assert_allclose(w.bias[i], p.b, atol=1e-15)
            for j in range(w.heads):
                rows = slice(j * k, (j + 1) * k)
                Q, K, W, O = (
                    w.query[i, rows],
                    w.key[i, rows],
                    w.value[i, rows],
                    w.output[i][:, rows],
                )
                nothing = np.zeros((p.dim, p.dim)), np.zeros((p.dim, p.dim)), None
                V, B, beta = p.heads[j] if j < len(p.heads) else nothing
                np.testing.assert_allclose(w.scale * K.T @ Q, B, atol=1e-14)
                np.testing.assert_allclose(O @ W, V, atol=1e-14)
                beta = np.zeros(p.dim) if beta is None else beta
                np.testing.assert_allclose(w.scale * K.T @ w.query_bias[i, rows], beta, atol=1e-14)

    def test_they_are_what_from_attention_reads(self):
        p = several_heads()
        w = factorise(
            sampled(gt.Schedule.constant(p, 1.0), 1.0, 1), mask_self=False, dtype="float64"
        )
        H, k, d = w.heads, w.head_dim, w.dim
        again = gt.Parameters.from_attention(
            w.query[0].reshape(H, k, d),
            w.key[0].reshape(H, k, d),
            w.value[0].reshape(H, k, d),
            w.output[0].reshape(d, H, k).transpose(1, 0, 2),
            b_Q=w.query_bias[0].reshape(H, k),
            A=w.affine[0],
            b=w.bias[0],
        )
        for letter in ("A", "B", "V", "b", "beta"):
            np.testing.assert_allclose(getattr(again, letter), getattr(p, letter), atol=1e-14)

    def test_heads_are_as_narrow_as_their_ranks(self):
        def width(p):
            made = sampled(gt.Schedule.constant(p, 1.0), 1.0, 2)
            w = factorise(made, mask_self=False, dtype="float64")
            return w.heads, w.head_dim

        assert width(several_heads()) == (2, 3)
        assert width(low_rank()) == (2, 3)  # rank 2, and β besides
        assert width(gt.Parameters(V=np.eye(4)[:1].T @ np.eye(4)[:1], B=np.zeros((4, 4)))) == (1, 1)
        assert width(gt.Parameters(A=np.eye(4))) == (0, 0)
        inside = np.outer([1.0, 0, 0], [0, 1.0, 0])
        assert width(gt.Parameters(V=inside, B=inside, beta=[3.0, 0, 0])) == (1, 1)
        assert width(gt.Parameters(V=inside, B=inside, beta=[0, 0, 3.0])) == (1, 2)

    def test_heads_that_move_nothing_are_left_out(self):
        p = several_heads(heads=3)
        V = np.array(p.V)
        V[1] = 0.0
        made = gt.Schedule.constant(gt.Parameters(V=V, B=p.B, beta=p.beta), 1.0)
        w = factorise(sampled(made, 1.0, 2), mask_self=False, dtype="float64")
        assert w.heads == 2
        assert SCHEDULES["subspace"].dim == 5
        assert factorise(sampled(SUBSPACE, 1.0, 4), mask_self=False, dtype="float64").head_dim == 2

    def test_what_would_not_fit_is_refused(self, monkeypatch):
        monkeypatch.setattr(memory, "available", lambda: 10_000)
        with pytest.raises(
            TooLarge, match=r"the weights of 1000 layers of dimension 2 .* fewer layers"
        ):
            factorise(sampled(JUMP, 1.0, 1000), mask_self=False, dtype="float64")
        with pytest.raises(TooLarge, match=r"the weights of 1000000000000 layers of dimension 2"):
            layers_of(source_of(JUMP, None, LAW), 10**12, exact=False)


# -- the corrected layers ----------------------------------------------------------------


class TestCorrected:
    def test_one_layer_is_the_closed_form(self):
        """S' = 2 v c S² has S = 1/(1 - 2 v c t), and tokens are scaled by √S."""
        v, c, t = 0.8, -1.5, 2.0
        made = corrected(gt.Schedule.constant(gt.Parameters(V=[[v]], B=[[c]]), t), t, 1, UNIT)
        scaling = 1 / math.sqrt(1 - 2 * v * c * t)
        p = made(0.0)
        assert p.A[0, 0] == pytest.approx((scaling - 1) / t - v * c, rel=1e-11)
        assert (p.V[0, 0], p.B[0, 0]) == (v, c)
        assert p.b[0] == pytest.approx(0.0, abs=1e-12)

    def test_without_attention_it_is_the_matrix_exponential(self):
        A, b = np.array([[0.3, 2.0], [-1.0, -0.4]]), np.array([1.0, -2.0])
        whole = expm(0.5 * np.block([[A, b[:, None]], [np.zeros((1, 3))]]))
        made = corrected(gt.Schedule.constant(gt.Parameters(A=A, b=b), 1.0), 1.0, 2, LAW)
        for t in (0.0, 0.5):
            p = made(t)
            np.testing.assert_allclose(np.eye(2) + 0.5 * p.A, whole[:2, :2], atol=1e-11)
            np.testing.assert_allclose(0.5 * p.b, whole[:2, 2], atol=1e-11)

    @every_schedule
    @pytest.mark.parametrize("layers", [1, 7])
    def test_the_law_is_that_of_the_flow_after_every_layer(self, schedule, layers):
        start = start_for(schedule)
        made = corrected(schedule, schedule.horizon, layers, start)
        network = gt.simulate(start, made, layers=layers)
        flow = gt.simulate(start, schedule)
        assert network.status is Status.SUCCESS
        for k, t in enumerate(network.times):
            law = gt.Gaussian.trusted(network.means[k], network.factors[k])
            assert_same_law(law, flow.at(float(t)), 1e-9)

    def test_of_any_rank(self):
        start = start_for(SCHEDULES["several-heads"], rank=1)
        made = corrected(SCHEDULES["several-heads"], 0.6, 3, start)
        flow = gt.simulate(start, SCHEDULES["several-heads"])
        assert_same_law(gt.simulate(start, made, layers=3).final, flow.final, 1e-10)

    def test_the_correction_is_of_first_order_in_the_step(self):
        def size(n):
            made = corrected(SCHEDULES["one-head"], 1.0, n, LAW)
            return max(np.abs(made(t).A - general().A).max() for t in made.times[:-1])

        sizes = [size(n) for n in (8, 16, 32)]
        assert np.log2(sizes[0] / sizes[1]) == pytest.approx(1, abs=0.3)
        assert np.log2(sizes[1] / sizes[2]) == pytest.approx(1, abs=0.2)

    def test_a_flow_that_blows_up_has_no_such_layers(self):
        p = gt.Parameters(V=[[1.0]], B=[[1.0]])
        with pytest.raises(OutOfScale, match=r"ends at t = 0\.5 \(BLOW_UP\)"):
            weights_of(source_of(p, 1.0, UNIT), 4, exact=True, mask_self=False, dtype="float64")

    def test_they_need_a_start(self):
        with pytest.raises(IncompatibleSchedule, match="`start`, the law of the tokens"):
            weights_of(
                source_of(general(), 1.0, None), 4, exact=True, mask_self=False, dtype="float64"
            )


# -- the module --------------------------------------------------------------------------


@needs_torch
class TestModule:
    @every_schedule
    @pytest.mark.parametrize("mask_self", [False, True])
    def test_equals_the_tokens_of_the_simulator(self, schedule, mask_self):
        tokens = start_for(schedule).sample(700, np.random.default_rng(1))  # two blocks of a mask
        network = gt.to_torch(schedule, layers=6, mask_self=mask_self)
        moved = network(torch.tensor(tokens)).detach().numpy()
        run = gt.simulate_tokens(tokens, schedule, layers=6, mask_self=mask_self, backend="numpy")
        assert np.abs(moved - run.final).max() <= 1e-12 * max(1.0, np.abs(run.final).max())

    def test_a_batch_is_clouds_by_themselves(self):
        tokens = torch.tensor(np.random.default_rng(0).standard_normal((3, 40, 2)))
        network = gt.to_torch(general(), 1.0, layers=4)
        together = network(tokens)
        assert together.shape == (3, 40, 2)
        for cloud, moved in zip(tokens, together, strict=True):
            torch.testing.assert_close(network(cloud), moved, rtol=0, atol=1e-13)

    @pytest.mark.parametrize("name", ["several-heads", "no-attention"])
    def test_the_state_is_all_there_is(self, name):
        network = gt.to_torch(SCHEDULES[name], layers=3)
        weights = network.state_dict()
        other = type(network)(
            network.dim, 3, network.heads, network.head_dim, 1.0, mask_self=network.mask_self
        )
        other.load_state_dict(weights)
        tokens = torch.ones(5, network.dim, dtype=torch.float64).cumsum(0)
        assert torch.equal(network(tokens), other(tokens))
        trainable = {name for name, _ in network.named_parameters()}
        assert trainable == set(weights) - {"step"}
        for made in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
            assert torch.equal(network(tokens), made(tokens))

    @pytest.mark.parametrize("mask_self", [False, True])
    def test_gradients_are_those_of_differences(self, mask_self):
        network = gt.to_torch(several_heads(), 0.5, layers=2, mask_self=mask_self)
        tokens = torch.tensor(np.random.default_rng(0).standard_normal((6, 3)), requires_grad=True)
        assert torch.autograd.gradcheck(network, tokens)
        network(tokens).square().sum().backward()
        for name, parameter in network.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.abs().max() > 0, name
            assert parameter.is_leaf
            assert parameter.requires_grad

    def test_training_moves_it(self):
        network = gt.to_torch(general(), 1.0, layers=2)
        tokens = torch.tensor(LAW.sample(64, np.random.default_rng(0)))
        goal = tokens.roll(1, 1)
        optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
        losses = []
        for _ in range(20):
            optimiser.zero_grad()
            loss = (network(tokens) - goal).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()))
        assert losses[-1] < 0.8 * losses[0]

    def test_attention_is_fused(self):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        tokens = torch.tensor(LAW.sample(100, np.random.default_rng(0)))
        network = gt.to_torch(general(), 1.0, layers=2)
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # fails where only a full matrix would do
            fused = network(tokens)
        torch.testing.assert_close(fused, network(tokens), rtol=0, atol=1e-13)

    def test_precision(self):
        tokens = LAW.sample(50, np.random.default_rng(0))
        double = gt.to_torch(general(), 1.0, layers=4)
        single = gt.to_torch(general(), 1.0, layers=4, dtype="float32")
        assert {p.dtype for p in double.parameters()} == {torch.float64}
        assert {p.dtype for p in single.parameters()} == {torch.float32}
        moved = single(torch.tensor(tokens, dtype=torch.float32))
        assert moved.dtype == torch.float32
        exact = double(torch.tensor(tokens))
        torch.testing.assert_close(moved.double(), exact, rtol=1e-5, atol=1e-5)
        again = gt.to_torch(general(), 1.0, layers=4, dtype=torch.float32)
        assert torch.equal(again(torch.tensor(tokens, dtype=torch.float32)), moved)
        other = copy.deepcopy(double).to(torch.float32)
        assert torch.equal(other(torch.tensor(tokens, dtype=torch.float32)), moved)

    def test_it_draws_nothing_from_the_global_generator(self):
        torch.manual_seed(0)
        state = torch.random.get_rng_state()
        gt.to_torch(general(), 1.0, layers=4)
        assert torch.equal(torch.random.get_rng_state(), state)

    def test_what_it_says_of_itself(self):
        text = repr(gt.to_torch(several_heads(), 0.5, layers=4, mask_self=True))
        assert (
            "dim=3, layers=4, heads=2, head_dim=3, step=0.125, scale=0.57735, mask_self=True, "
            "dtype=float64"
        ) in text
        assert "(0-3): 4 x AttentionBlock(" in text
        assert "(query): Linear(in_features=3, out_features=6, bias=True)" in text

    @pytest.mark.parametrize(
        ("tokens", "words"),
        [
            (lambda: torch.zeros(4, 3, dtype=torch.float64), r"\(N, 2\) .*they have \(4, 3\)"),
            (lambda: torch.zeros(2, dtype=torch.float64), r"they have \(2,\)"),
            (lambda: torch.zeros(1, 1, 4, 2, dtype=torch.float64), "batch, N, 2"),
            (
                lambda: np.zeros((4, 2)),
                r"torch tensor of shape \(N, 2\) or \(batch, N, 2\), not numpy.ndarray; .*float64",
            ),
            (lambda: [[0.0, 1.0]], "not builtins.list"),
            (lambda: torch.zeros(4, 2), "tokens are float32, the module is float64"),
            (lambda: torch.zeros(1, 2, dtype=torch.float64), "needs another token"),
        ],
    )
    def test_tokens_that_do_not_fit(self, tokens, words):
        network = gt.to_torch(general(), 1.0, layers=2, mask_self=True)
        with pytest.raises(InvalidShape, match=words):
            network(tokens())

    def test_an_exact_plan_needs_no_horizon_and_a_design_does(self):
        plan = gt.steer(LAW, gt.Gaussian([1.0, 0.0], 2 * np.eye(2)), method="constant-affine")
        network = plan.to_torch(layers=3, exact=True)
        tokens = LAW.sample(500, np.random.default_rng(0), moment_matched=True)
        moved = network(torch.tensor(tokens)).detach().numpy()
        np.testing.assert_allclose(moved.mean(axis=0), [1.0, 0.0], atol=1e-9)
        np.testing.assert_allclose(np.cov(moved.T, bias=True), 4 * np.eye(2), atol=1e-8)
        made = gt.design(gt.Gaussian([1.0, -1.0], np.eye(2)), checks=0)
        network = made.to_torch(0.5, layers=10, start=LAW)
        run = gt.simulate_tokens(tokens, made.parameters, 0.5, layers=10)
        moved = network(torch.tensor(tokens)).detach().numpy()
        np.testing.assert_allclose(moved, run.final, atol=1e-12)
        with pytest.raises(InvalidNumber, match="`horizon` is needed to export a design"):
            gt.to_torch(made, layers=3)


# -- refusals ----------------------------------------------------------------------------


@needs_torch
class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "options", "error", "words"),
        [
            (general(), {"layers": 0}, InvalidNumber, "`layers` must be at least 1; it is 0"),
            (general(), {"layers": 2.0}, InvalidNumber, "`layers` must be a whole number"),
            (general(), {"horizon": None}, IncompatibleSchedule, "`horizon` is needed"),
            (general(), {"horizon": -1.0}, InvalidNumber, "`horizon`"),
            (general(), {"start": UNIT}, InvalidShape, "dimension 2, but the start has 1"),
            (general(), {"start": 3}, InvalidShape, "`start` must be a Gaussian, not int"),
            (general(), {"dtype": "float16"}, InvalidMethod, "float16; expected one of float64"),
            (general(), {"exact": 1}, InvalidNumber, "`exact` must be True or False"),
            (general(), {"mask_self": "no"}, InvalidNumber, "`mask_self` must be True or False"),
            (LAW, {}, InvalidShape, "can be exported, not Gaussian"),
            (general(noise=np.eye(2)), {}, InvalidMethod, "no process noise; .*realise_noise"),
        ],
    )
    def test_in_one_line(self, given, options, error, words):
        with pytest.raises(error, match=words) as caught:
            gt.to_torch(given, **{"horizon": 1.0, "layers": 2} | options)
        assert "\n" not in str(caught.value)

    def test_what_the_noise_is_replaced_by_can_be_exported(self):
        p = gt.Parameters(A=-np.eye(2), noise=np.eye(2))
        quiet = gt.realise_noise(p, LAW, 0.5)
        assert gt.to_torch(quiet, layers=4, start=LAW, exact=True).heads == 0

    def test_too_few_layers_are_told_with_their_number(self):
        fast = gt.Parameters(V=[[1.0]], B=[[-40.0]])
        with pytest.raises(
            OutOfScale, match=r"with 5 layers .* in layer 5: .* 0\.4 .* more layers"
        ):
            gt.to_torch(fast, 2.0, layers=5, start=UNIT)
        gt.to_torch(fast, 2.0, layers=5)  # of no start it is not known
        gt.to_torch(fast, 2.0, layers=5, start=UNIT, exact=True)
        with pytest.raises(OutOfScale, match=r"with 5 layers .* in layer 5"):
            gt.check_export(fast, 2.0, start=UNIT, layers=[5, 20_000], count=10)

    def test_layers_of_a_law_that_blows_up(self):
        same = gt.Parameters(V=[[1.0]], B=[[1.0]])
        with pytest.raises(OutOfScale, match=r"blows up at t = 0\.5, .* no number of layers"):
            gt.to_torch(same, 10.0, layers=20, start=UNIT)


def test_without_torch_one_line_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **options):
        if name == "torch" or name.startswith("torch."):
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        return real(name, *args, **options)

    monkeypatch.delitem(sys.modules, "gtcontrol.pretrained.export.module", raising=False)
    monkeypatch.delattr("gtcontrol.pretrained.export.module", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    for call in (
        lambda: gt.to_torch(general(), 1.0, layers=2),
        lambda: gt.check_export(general(), 1.0, start=LAW),
        lambda: prepared().run(lambda fraction, text: None),
    ):
        with pytest.raises(MissingPackage, match=r"pip install 'gtcontrol\[torch\]'") as caught:
            call()
        assert "\n" not in str(caught.value)


# -- the check ---------------------------------------------------------------------------


def checked(**options):
    defaults = {"start": LAW, "layers": (4, 8, 16), "count": 400, "rng": 0, "name": "made"}
    return gt.check_export(general(), 0.8, **defaults | options)


@needs_torch
class TestCheck:
    def test_errors_of_the_law_are_those_of_simulated_layers(self):
        seen = checked()
        assert seen.status is Status.SUCCESS
        assert seen.layers == (4, 8, 16)
        flow = gt.simulate(LAW, general(), 0.8).final
        size = np.sqrt(flow.trace)
        for n, error in zip(seen.layers, seen.law_errors, strict=True):
            law = gt.simulate(LAW, general(), 0.8, layers=n).final
            assert error == pytest.approx(gt.wasserstein(law, flow) / size, rel=1e-9)
        assert seen.order == pytest.approx(1.0, abs=0.15)

    def test_tokens_are_those_of_the_module(self):
        seen = checked(exact=True)
        tokens = LAW.sample(400, np.random.default_rng(0))
        np.testing.assert_array_equal(seen.before, tokens[: len(seen.before)])
        moved = seen.to_torch()(torch.tensor(tokens)).detach().numpy()
        np.testing.assert_allclose(seen.mean, moved.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(seen.covariance, np.cov(moved.T, bias=True), atol=1e-12)
        law = gt.Gaussian.from_covariance(seen.mean, seen.covariance)
        target = seen.problem.target
        assert seen.error == pytest.approx(gt.wasserstein(law, target) / np.sqrt(target.trace))

    def test_the_baseline_is_that_of_independent_draws(self):
        """On a line W₂² = (m̂ - m)² + (ŝ - s)², of mean σ²/N + σ²/(2N)."""
        seen = gt.check_export(
            gt.Parameters(A=[[0.1]]), 1.0, start=UNIT, layers=[1], count=500, baselines=2000
        )
        assert np.sqrt(np.mean(seen.baseline**2)) == pytest.approx(np.sqrt(1.5 / 500), rel=0.05)

    def test_the_tokens_arrive_up_to_sampling_and_the_layers(self):
        seen = checked(count=2500, exact=True, layers=(2, 4, 8))
        assert seen.arrives
        assert seen.as_predicted
        assert np.all(np.abs(seen.token_errors - seen.law_errors) <= 3 * seen.floor)
        assert np.all(seen.exact_errors <= 3 * seen.floor)
        assert seen.token_order == pytest.approx(1.0, abs=0.2)
        assert seen.law_errors[0] > 3 * seen.floor  # or nothing was shown

    def test_a_network_with_queries_and_keys_exchanged_is_caught(self, monkeypatch):
        """It has Bᵀ instead of B."""
        assert checked(count=2500, layers=[16]).as_predicted

        def exchanged(layers, **options):
            made = factorise(layers, **options)
            return replace(made, query=made.key, key=made.query)

        monkeypatch.setattr("gtcontrol.pretrained.export.check.factorise", exchanged)
        assert not checked(count=2500, layers=[16]).as_predicted

    def test_so_few_layers_miss_as_predicted(self):
        seen = checked(count=2000, layers=[1])
        assert seen.error > 2 * seen.chance  # or nothing was shown
        assert not seen.arrives
        assert seen.as_predicted
        assert view(seen).verdict == "AS PREDICTED"
        assert checked(count=2000, layers=[1], exact=True).arrives

    def test_masks_and_precision_are_passed_on(self):
        plain, masked = checked(layers=[4]), checked(layers=[4], mask_self=True)
        assert masked.weights.mask_self
        assert 1e-6 < abs(plain.token_errors[0] - masked.token_errors[0]) < 0.1
        single = checked(layers=[4], dtype="float32")
        assert single.weights.dtype == "float32"
        assert 0 < abs(plain.token_errors[0] - single.token_errors[0]) < 1e-5

    def test_the_target_of_a_plan_is_its_own(self):
        target = gt.Gaussian([1.0, 0.0], 2 * np.eye(2))
        plan = gt.steer(LAW, target, method="constant-affine", name="plan")
        seen = gt.check_export(plan, layers=[4], count=100)
        assert seen.problem.target is target
        assert seen.problem.name == "plan"
        half = gt.check_export(plan, 0.5, layers=[4], count=100).problem
        assert half.horizon == 0.5
        np.testing.assert_allclose(half.target.mean, plan.trajectory.at(0.5).mean, atol=1e-9)

    def test_interruption_keeps_the_depths_that_are_complete(self):
        def interrupt(fraction, text):
            if "of 8" in text:
                raise KeyboardInterrupt

        seen = checked(exact=True, progress=interrupt)
        assert seen.status is Status.INTERRUPTED
        assert not seen.answered
        assert seen.layers == (4,)
        assert [len(getattr(seen, f"{k}_errors")) for k in ("law", "token", "own", "exact")] == [
            1
        ] * 4
        assert seen.weights.layers == 16
        assert "INTERRUPTED" in seen.summary()
        assert "16 layers of step" in seen.summary()
        assert "not tried" in seen.summary()
        assert set(seen.plot()) == {"convergence", "tokens"}

        def at_once(fraction, text):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            checked(progress=at_once)

    def test_progress_never_falls(self):
        told = []
        checked(exact=True, progress=lambda fraction, text: told.append(fraction))
        assert told == sorted(told)
        assert told[-1] == pytest.approx(1.0)

    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({"layers": 4}, InvalidShape, "`layers` must be a sequence"),
            ({"layers": []}, InvalidShape, "`layers` must be a sequence"),
            ({"layers": [4, 0]}, InvalidNumber, "`layers` must be at least 1"),
            ({"count": 1}, InvalidNumber, "`count` must be at least 2"),
            ({"rng": -1}, InvalidNumber, "`rng` must be at least 0"),
            ({"baselines": 1}, InvalidNumber, "`baselines` must be at least 2"),
            ({"dtype": "int8"}, InvalidMethod, "`dtype` is int8"),
            ({"start": None}, IncompatibleSchedule, "`start`, .* is needed to draw tokens"),
            (
                {"start": gt.Gaussian([0.0, 0.0], np.zeros((2, 0)))},
                InvalidNumber,
                "`start` has no variance",
            ),
        ],
    )
    def test_refusals(self, options, error, words):
        with pytest.raises(error, match=words):
            checked(**options)

    def test_a_law_that_blows_up_has_nothing_to_reach(self):
        p = gt.Parameters(V=[[1.0]], B=[[1.0]])
        with pytest.raises(OutOfScale, match=r"ends at t = 0\.5 \(BLOW_UP\)"):
            gt.check_export(p, 1.0, start=UNIT, layers=[2], count=10)


# -- words, files, the command line ------------------------------------------------------


def made_by_hand(*, exact=True, tried=2, heads=True):
    """A check whose errors are invented; its weights need no torch."""
    p = general() if heads else gt.Parameters(A=np.eye(2))
    schedule = gt.Schedule.constant(p, 1.0)
    source = source_of(schedule, None, LAW)
    problem = ExportProblem(
        LAW, gt.Gaussian([1.0, 0.0], np.eye(2)), schedule, 1.0, (2, 4), exact=exact
    )
    curve = np.array([0.2, 0.1])[:tried]
    return ExportCheck(
        problem=problem,
        status=Status.SUCCESS if tried == 2 else Status.INTERRUPTED,
        law_errors=curve,
        token_errors=curve,
        own_errors=curve if heads else np.empty(0),
        exact_errors=0.1 * curve if exact else np.empty(0),
        baseline=np.array([0.01, 0.02]),
        mean=np.array([1.0, 0.0]),
        covariance=np.eye(2),
        before=np.ones((3, 2)),
        after=np.zeros((3, 2)),
        weights=weights_of(source, 4, exact=exact, mask_self=False, dtype="float64"),
        seconds=1.0,
    )


class TestWords:
    def test_what_arrives(self):
        text = made_by_hand().summary()
        assert "After 4 corrected layers" in text
        assert "1 % of the target's size away" in " ".join(text.split())
        assert "after 4 plain layers 10 %" in " ".join(text.split())
        assert "off like 1/layers^1" in text
        assert "4 layers of step 0.25, dimension 2, 1 head of width 2" in " ".join(text.split())

        assert "explains up to 4.5 %" in " ".join(text.split())
        assert view(made_by_hand()).verdict == "ARRIVES"
        assert view(made_by_hand()).good

    def test_what_misses(self):
        seen = replace(made_by_hand(exact=False), law_errors=np.array([0.1, 0.01]))
        assert not seen.arrives
        assert not seen.as_predicted
        assert seen.chance == pytest.approx(3 * 0.015 + 1e-5)
        assert view(seen).verdict == "MISSES"
        text = " ".join(seen.summary().split())
        assert "which sampling and so few layers, whose law is 1 % away, do not explain" in text
        assert "Take more tokens" in text

    def test_what_misses_as_so_few_layers_must(self):
        seen = made_by_hand(exact=False)
        assert not seen.arrives
        assert seen.as_predicted
        assert view(seen).verdict == "AS PREDICTED"
        assert not view(seen).good
        text = " ".join(seen.summary().split())
        assert "as so few layers must be: their Gaussian law is 10 % away" in text
        assert "corrected ones (`exact`) have the moments of the plan" in text
        assert "Take more tokens" not in text

    def test_closer_than_the_law_is_not_as_predicted(self):
        seen = replace(made_by_hand(exact=False), law_errors=np.array([9.0, 4.0]))
        assert not seen.as_predicted
        assert view(seen).verdict == "MISSES"

    def test_corrected_layers_that_miss(self):
        seen = replace(made_by_hand(), exact_errors=np.array([0.02, 0.05]))
        assert seen.as_predicted  # the plain ones
        assert view(seen).verdict == "MISSES"
        text = " ".join(seen.summary().split())
        assert "more than sampling explains; after 4 plain layers 10 %, as predicted" in text

    @pytest.mark.parametrize("exact", [False, True])
    def test_the_equations_of_the_report_are_those_of_layers(self, exact):
        seen = made_by_hand(exact=exact)
        page = html.render(seen, {})
        box = page.split('<div class="equations">')[1].split("</div>")[0]
        assert "S⁺ = (I + h M) S (I + h M)ᵀ" in box
        assert ("A = (Φ − I) / h − V S B" in box) == exact

    def test_orders_of_rounding_errors_are_none(self):
        seen = replace(made_by_hand(), law_errors=np.array([1e-12, 1e-13]))
        assert math.isnan(seen.order)
        assert "rounding error" in seen.summary()
        assert set(seen.plot()) == {"convergence", "tokens"}

    def test_without_attention(self):
        seen = made_by_hand(heads=False)
        assert "without attention" in seen.summary()
        assert math.isnan(seen.token_order)

    @needs_torch
    def test_the_code_of_a_report_computes_it_again(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        seen = checked(layers=[2, 4], count=60, exact=True)
        seen.save("FOLDER")
        names: dict = {}
        exec(view(seen).code, names)
        assert names["seen"].token_errors.tolist() == pytest.approx(seen.token_errors.tolist())
        assert names["seen"].error == pytest.approx(seen.error)
        assert isinstance(names["network"], torch.nn.Module)
        assert "After 4 corrected layers" in capsys.readouterr().out


class TestFiles:
    def test_a_folder_is_replaced_as_a_whole(self, tmp_path):
        folder = tmp_path / "run"
        write_all(made_by_hand(), folder)
        names = {p.name for p in folder.iterdir()}
        assert names == {
            "figures", "layers.json", "report.html", "result.json", "result.npz",
            "weights.safetensors",
        }  # fmt: skip
        write_all(gt.load(folder), folder)  # as `gtcontrol report` does
        assert {p.name for p in folder.iterdir()} == names
        gt.simulate(LAW, general(), 1.0).save(folder)
        assert not (folder / "weights.safetensors").exists()
        assert not (folder / "layers.json").exists()

    def test_nothing_is_left_when_writing_fails(self, tmp_path, monkeypatch):
        def full(self):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(ExportCheck, "files", full)
        with pytest.raises(gt.GtcontrolError, match="No space left"):
            write_all(made_by_hand(), tmp_path / "run")
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    def test_the_format_is_that_of_safetensors(self, dtype, tmp_path):
        reader = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
        rng = np.random.default_rng(0)
        given = {
            "a": rng.standard_normal((3, 2)).astype(dtype),
            "zahl·β": rng.standard_normal(5).astype(dtype),
            "step": np.array(0.25, dtype=dtype),
            "turned": rng.standard_normal((2, 3)).astype(dtype).T,
        }
        (tmp_path / "x.safetensors").write_bytes(encode(given, {"format": "pt"}))
        read = reader.load_file(tmp_path / "x.safetensors")
        assert set(read) == set(given)
        for name, value in given.items():
            assert read[name].dtype == value.dtype
            np.testing.assert_array_equal(read[name], value)
        assert encode(given, {}) == encode(given, {})

    @pytest.mark.parametrize("heads", [True, False])
    def test_the_description_tells_all_sizes(self, heads, tmp_path):
        seen = made_by_hand(heads=heads)
        seen.save(tmp_path)
        document = json.loads((tmp_path / "layers.json").read_text())
        sizes = {k: document[k] for k in ("dim", "layers", "heads", "head_dim")}
        shapes = {
            k.replace("blocks.0", "blocks.l"): v.shape for k, v in seen.weights.tensors().items()
        }
        for name, words in document["tensors"].items():
            assert eval(words, {}, sizes) == shapes[name]
        assert set(document["tensors"]) == {
            k for k in shapes if "blocks" not in k or "blocks.l" in k
        }
        assert document["step"] == 0.25

    @needs_torch
    def test_torch_loads_them(self, tmp_path):
        load_file = pytest.importorskip(
            "safetensors.torch", reason="safetensors is missing"
        ).load_file
        seen = checked(layers=[4], count=50, mask_self=True)
        seen.save(tmp_path)
        network, again = seen.to_torch(), gt.load(tmp_path).to_torch()
        again.load_state_dict(load_file(tmp_path / "weights.safetensors"))
        tokens = torch.tensor(seen.before)
        assert torch.equal(network(tokens), again(tokens))
        for name, value in network.state_dict().items():
            np.testing.assert_array_equal(seen.weights.tensors()[name], value.numpy())


def prepared(**changes):
    path = Path("x.toml")
    text = kinds.load("export").TEMPLATE
    for old, new in changes.items():
        text = text.replace(old, new)
    from gtcontrol.problem import files

    return kinds.prepare(files.parse(text, lambda kind: kinds.load(kind).DOCUMENT), path)


@needs_torch
class TestKind:
    def test_a_plan_that_does_not_arrive_is_the_result(self):
        task = prepared(**{"[export]": "intervals = 4\nmax_iterations = 2\nstarts = 1\n[export]"})
        plan = task.run(lambda fraction, text: None)
        assert type(plan).__name__ == "Steering"
        assert not plan.answered
        assert [f.key for f in task.findings(plan) if not f.met] == ["status", "arrives"]
        assert task.observe(plan).keys() == task.observe(made_by_hand()).keys()

    def test_interrupted_before_anything_was_tried(self):
        task = prepared(**{'controls = "AVBb"': 'method = "constant-affine"'})

        def interrupt(fraction, text):
            if "tokens in layer" in text:
                raise KeyboardInterrupt

        plan = task.run(interrupt)
        assert type(plan).__name__ == "Steering"
        assert plan.status is Status.INTERRUPTED

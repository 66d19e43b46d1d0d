"""Moments through LayerNorm, activations, attention and blocks, against what tokens do."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest
from scipy.special import gamma

import gtcontrol as gt
from gtcontrol import pretrained
from gtcontrol.errors import InvalidNumber, InvalidShape, NotFinite
from gtcontrol.finite_tokens import FiniteTokens
from gtcontrol.moments import gated, hermite
from gtcontrol.pretrained import AttentionWeights, Block, Mlp, Norm, Stack
from gtcontrol.pretrained.propagation.attention import attention_moments
from gtcontrol.pretrained.propagation.blocks import block_moments
from gtcontrol.pretrained.propagation.comparison import bures, sampling_floor, sequences_floor
from gtcontrol.pretrained.propagation.law import TokenLaw
from gtcontrol.pretrained.propagation.layernorm import normalise
from gtcontrol.pretrained.propagation.mlp import FUNCTIONS, mlp_moments
from tests import real_models
from tests.oracles import transformer

MANY = 1_000_000


def apart(made, wanted):
    """Relative difference."""
    return float(np.linalg.norm(made - wanted) / np.linalg.norm(wanted))


def cloud(rng, mean, factor, count=MANY):
    return mean + rng.standard_normal((count, factor.shape[1])) @ factor.T


def covariance(x, y):
    return (x - x.mean(axis=0)).T @ (y - y.mean(axis=0)) / len(x)


def single(array):
    return np.asarray(array, dtype=np.float32)


def weights(rng, d, heads, k, score, bias=0.3):
    """Random attention; E a² is about score² for tokens of variance one."""
    draw = rng.standard_normal
    return AttentionWeights(
        query=single(draw((heads, k, d)) * math.sqrt(score / d)),
        query_bias=single(bias * draw((heads, k))),
        key=single(draw((heads, k, d)) * math.sqrt(score / d)),
        key_bias=single(draw((heads, k))),
        value=single(draw((heads, k, d)) / math.sqrt(d)),
        value_bias=single(bias * draw((heads, k))),
        output=single(draw((d, heads * k)) / math.sqrt(heads * k)),
        output_bias=single(bias * draw(d)),
        scale=1 / math.sqrt(k),
    )


def net(rng, d, k, gate=False):
    draw = rng.standard_normal
    rows = 2 * k if gate else k
    return Mlp(
        inner=single(draw((rows, d)) / math.sqrt(d)),
        inner_bias=single(0.3 * draw(rows)),
        outer=single(0.5 * draw((d, k)) / math.sqrt(k)),
        outer_bias=single(0.3 * draw(d)),
        activation="gelu",
        gated=gate,
    )


def norm(rng, d):
    return Norm(single(1 + 0.3 * rng.standard_normal(d)), single(rng.standard_normal(d)), 1e-6)


def block(rng, d, placement, score=0.5, gate=False, scaled=False):
    size = single(0.5 + rng.random((2, d))) if scaled else (None, None)
    return Block(
        attention=weights(rng, d, 3, d // 4, score),
        mlp=net(rng, d, 2 * d, gate),
        norm_attention=norm(rng, d),
        norm_mlp=norm(rng, d),
        placement=placement,
        scale_attention=size[0],
        scale_mlp=size[1],
    )


# -- LayerNorm -------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "rank", "epsilon"), [(6, 6, 1e-12), (6, 2, 0.1), (12, 9, 1e-5)])
def test_layer_norm_has_the_moments_of_many_tokens(d, rank, epsilon):
    rng = np.random.default_rng(d + rank)
    mean = rng.standard_normal(d)
    factor = rng.standard_normal((d, rank)) * rng.exponential(size=rank)
    of = Norm(single(rng.standard_normal(d)), single(rng.standard_normal(d)), epsilon)
    x = cloud(rng, mean, factor)
    y = transformer.layer_norm(x, of)
    S = factor @ factor.T
    made = normalise(mean, S, of.weight, of.bias, epsilon)
    assert apart(made.mean, y.mean(axis=0)) < 0.01
    assert apart(made.covariance, covariance(y, y)) < 0.01
    assert apart(made.jacobian @ S, covariance(y, x)) < 0.01


def test_layer_norm_of_an_isotropic_token_in_closed_form():
    d, sigma = 9, 1.7
    P = np.eye(d) - 1 / d
    made = normalise(np.zeros(d), sigma**2 * np.eye(d), np.ones(d), np.zeros(d), 0.0)
    size = math.sqrt(d) / (sigma * math.sqrt(2)) * gamma((d - 2) / 2) / gamma((d - 1) / 2)
    np.testing.assert_allclose(made.mean, 0, atol=1e-12)
    np.testing.assert_allclose(made.covariance, P * d / (d - 1), atol=1e-12)
    np.testing.assert_allclose(made.jacobian, size * (d - 2) / (d - 1) * P, atol=1e-12)


def test_layer_norm_of_a_certain_token_is_layer_norm():
    rng = np.random.default_rng(0)
    x, of = rng.standard_normal(7), norm(rng, 7)
    made = normalise(x, np.zeros((7, 7)), of.weight, of.bias, of.epsilon)
    np.testing.assert_allclose(made.mean, transformer.layer_norm(x, of), rtol=1e-10)
    np.testing.assert_allclose(made.covariance, 0, atol=1e-10)
    step = 1e-6 * np.eye(7)
    slopes = (transformer.layer_norm(x + step, of) - transformer.layer_norm(x - step, of)) / 2e-6
    np.testing.assert_allclose(made.jacobian, slopes.T, atol=1e-6)


def test_layer_norm_does_not_see_the_average_entry_nor_the_scale():
    rng = np.random.default_rng(1)
    mean, factor, one = rng.standard_normal(5), rng.standard_normal((5, 5)), np.ones(5)
    shift = np.ones((5, 1)) @ rng.standard_normal((1, 5))
    plain = normalise(mean, factor @ factor.T, one, one, 1e-14)
    moved = 100 * (factor + shift)
    other = normalise(100 * mean + 30, moved @ moved.T, one, one, 1e-14)
    np.testing.assert_allclose(other.covariance, plain.covariance, atol=1e-9)
    np.testing.assert_allclose(other.mean, plain.mean, atol=1e-9)


def test_layer_norm_without_epsilon_may_have_no_jacobian():
    factor = np.array([[1.0], [-1.0], [0.0]])
    with pytest.raises(NotFinite, match="rank 1"):
        normalise(np.zeros(3), factor @ factor.T, np.ones(3), np.zeros(3), 0.0)
    with pytest.raises(NotFinite, match="constant token"):
        normalise(np.ones(3), np.zeros((3, 3)), np.ones(3), np.zeros(3), 0.0)


# -- activations -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"identity", "leaky_relu", "sigmoid"}))
def test_activations_have_the_moments_of_many_tokens(name):
    rng = np.random.default_rng(len(name))
    mean, factor = 0.7 * rng.standard_normal(6), rng.standard_normal((6, 5))
    factor[1], mean[1] = factor[0], mean[0]  # two equal units
    u = cloud(rng, mean, factor)
    y = FUNCTIONS[name](u)
    deviation, rho = hermite.correlation(factor @ factor.T)
    series = hermite.expand(FUNCTIONS[name], mean, deviation)
    made = hermite.covariance(series, rho)
    assert apart(series.coefficients[0], y.mean(axis=0)) < 0.01
    assert apart(made, covariance(y, y)) < 0.01
    cross = factor @ factor.T / deviation * series.coefficients[1]
    assert apart(cross, covariance(u, y)) < 0.01
    assert made[0, 1] == pytest.approx(made[0, 0], rel=1e-9)


def test_hermite_series_of_the_relu_is_the_arc_cosine_kernel():
    rng = np.random.default_rng(3)
    factor = rng.standard_normal((8, 8))
    deviation, rho = hermite.correlation(factor @ factor.T)
    made = hermite.covariance(hermite.expand("relu", np.zeros(8), deviation), rho)
    angle = np.arccos(np.clip(rho, -1, 1))
    second = (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    wanted = np.outer(deviation, deviation) * (second - 1 / (2 * np.pi))
    np.testing.assert_allclose(made, wanted, atol=1e-3 * wanted.max())


def test_units_that_do_not_vary_add_nothing():
    S = np.diag([0.0, 2.0])
    deviation, rho = hermite.correlation(S)
    made = hermite.expand("gelu", np.array([0.3, -0.2]), deviation)
    assert made.coefficients[0, 0] == pytest.approx(transformer.gelu(0.3))
    np.testing.assert_array_equal(hermite.covariance(made, rho)[0], 0)


@pytest.mark.parametrize("name", ["gelu", "silu", "relu"])
def test_gated_activations_have_the_moments_of_many_tokens(name):
    rng = np.random.default_rng(11)
    mean, factor = 0.7 * rng.standard_normal(8), 0.7 * rng.standard_normal((8, 6))
    u = cloud(rng, mean, factor)
    y = FUNCTIONS[name](u[:, :4]) * u[:, 4:]
    S = factor @ factor.T
    made = gated.gate(name, mean, S)
    assert apart(made.mean, y.mean(axis=0)) < 0.01
    assert apart(made.covariance, covariance(y, y)) < 0.01
    cross = S[:, :4] * made.slope_act + S[:, 4:] * made.slope_gate
    assert apart(cross, covariance(u, y)) < 0.01


def test_gates_of_the_identity_are_isserlis():
    """Cov(ab, cd) = E ac E bd ... in closed form for products of normal variables."""
    rng = np.random.default_rng(5)
    mean, factor = rng.standard_normal(6), rng.standard_normal((6, 6))
    S = factor @ factor.T
    made = gated.gate("identity", mean, S)
    a, b = slice(0, 3), slice(3, 6)
    m, n = mean[a], mean[b]
    wanted = (
        S[a, a] * S[b, b]
        + S[a, b] * S[b, a]
        + np.outer(m, m) * S[b, b]
        + np.outer(n, n) * S[a, a]
        + np.outer(m, n) * S[b, a]
        + np.outer(n, m) * S[a, b]
    )
    np.testing.assert_allclose(made.covariance, wanted, rtol=1e-9)
    np.testing.assert_allclose(made.mean, m * n + np.diag(S[a, b]), rtol=1e-9)


@pytest.mark.parametrize("gate", [False, True])
def test_feed_forward_nets_have_the_moments_of_many_tokens(gate):
    rng = np.random.default_rng(21)
    of, mean, factor = net(rng, 6, 12, gate), rng.standard_normal(6), rng.standard_normal((6, 6))
    x = cloud(rng, mean, factor, 400_000)
    y = transformer.feed(of, x)
    S = factor @ factor.T
    made = mlp_moments(of, mean, S)
    assert apart(made.mean, y.mean(axis=0)) < 0.01
    assert apart(made.covariance, covariance(y, y)) < 0.01
    assert apart(made.slope @ S, covariance(y, x)) < 0.01


# -- attention -------------------------------------------------------------------------------


@pytest.mark.parametrize(("score", "own"), [(0.4, True), (1.0, True), (1.0, False), (5.0, True)])
def test_attention_has_the_moments_of_many_sequences(score, own):
    """Mean, slope and noise also where few keys have the weight; what is shared roughly."""
    rng = np.random.default_rng(7)
    d, N, T = 12, 48, 3000
    of = weights(rng, d, 3, 4, score)
    mean, factor = 0.3 * rng.standard_normal(d), rng.standard_normal((d, d - 2)) / 2
    x = cloud(rng, mean, factor, T * N)
    y = transformer.attend(of, x.reshape(T, N, d), mask_self=not own)
    S = factor @ factor.T
    made = attention_moments(of, mean, S, FiniteTokens(N, self_key=own))
    flat = y.reshape(-1, d)
    cross = covariance(flat, x)
    K = cross @ np.linalg.pinv(S)
    noise = covariance(flat, flat) - K @ S @ K.T
    assert apart(made.mean, flat.mean(axis=0)) < 0.02
    assert apart(made.slope @ S, cross) < 0.04
    assert apart(made.noise, noise) < 0.12
    rest = y - (x - mean).reshape(T, N, d) @ K.T
    _, whole, between = transformer.moments(rest)
    shared = (between - whole / N) * N / (N - 1)  # that of two different tokens
    assert np.trace(made.shared) == pytest.approx(np.trace(shared), rel=0.5)
    assert np.linalg.eigvalsh(made.noise - made.shared)[0] > -1e-9
    affine = 1 - np.trace(noise) / np.trace(covariance(flat, flat))
    assert min(made.explained) - 0.2 < affine < max(made.explained) + 0.2


def test_the_key_bias_changes_nothing():
    rng = np.random.default_rng(9)
    of = weights(rng, 8, 2, 4, 2.0)
    values = {name: getattr(of, name) for name in of.__dataclass_fields__}
    other = AttentionWeights(**values | {"key_bias": single(10 * rng.standard_normal((2, 4)))})
    x = rng.standard_normal((2, 20, 8))
    np.testing.assert_allclose(
        transformer.attend(of, x), transformer.attend(other, x), rtol=1e-9, atol=1e-9
    )
    for tokens in (None, FiniteTokens(20)):
        one, two = (attention_moments(w, x[0, 0], np.eye(8), tokens) for w in (of, other))
        for name in ("mean", "slope", "noise", "shared", "logit_variance"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_mean_field_attention_is_the_formula_of_the_flow():
    """K = Σ V S B and c = b_O + Σ V (m + S (B m + β)) + W_O b_V, from full matrices."""
    rng = np.random.default_rng(13)
    of, mean = weights(rng, 9, 3, 3, 1.0), rng.standard_normal(9)
    factor = rng.standard_normal((9, 7))
    S = factor @ factor.T
    made = attention_moments(of, mean, S, None)
    K = sum(of.V(h) @ S @ of.B(h) for h in range(3))
    c = of.output_bias + sum(
        of.V(h) @ (mean + S @ (of.B(h) @ mean + of.beta(h))) + of.value_offset(h) for h in range(3)
    )
    np.testing.assert_allclose(made.slope @ S, K @ S, atol=1e-9 * np.abs(K @ S).max())
    np.testing.assert_allclose(made.mean, c, rtol=1e-9)
    assert not made.noise.any()
    many = attention_moments(of, 0.1 * mean, S / 20, FiniteTokens(10**12))
    limit = attention_moments(of, 0.1 * mean, S / 20, None)
    np.testing.assert_allclose(many.slope @ S, limit.slope @ S, atol=1e-4 * np.abs(K @ S).max())


def test_the_space_of_scores_is_as_good_as_the_whole_space():
    """One head of full width: the closure of the flow, which knows no heads of less width."""
    rng = np.random.default_rng(17)
    d = 3
    of = weights(rng, d, 1, 1, 3.0)
    mean, factor = rng.standard_normal(d), rng.standard_normal((d, d))
    made = attention_moments(of, mean, factor @ factor.T, FiniteTokens(64))
    p = gt.Parameters(V=of.V(0)[None], B=of.B(0)[None], beta=of.beta(0)[None])
    whole = gt.attention_slope(p, gt.Gaussian(mean, factor), 64)
    offset = of.output_bias + of.value_offset(0)
    assert apart(made.mean, whole.mean + offset) < 0.01
    assert apart(made.slope, whole.matrix) < 0.01
    assert apart(made.noise, whole.noise) < 0.02
    assert made.self_weight[0] == pytest.approx(whole.self_weight[0], rel=0.02)


@pytest.mark.parametrize("count", [512, 8192])
def test_the_law_of_a_head_is_how_well_its_affine_map_explains_it(count):
    """R² = 1/(1 + tr(W_V S W_V') e^(a²)/(N tr(G S G'))) where a² < 1, in a random layer."""
    rng = np.random.default_rng(23)
    d, heads, k = 48, 4, 12
    of = weights(rng, d, heads, k, 0.8, bias=0.1)
    x = rng.standard_normal((1 + 4096 // count, count, d))
    assert laws_hold(of, x, np.zeros(d), np.eye(d)) == heads


def laws_hold(of, x, mean, S):
    """Hold the law against softmax on tokens (T, N, d); return how many heads have a² < 1."""
    count, k, asking = x.shape[1], of.head_width, x[:, :512]
    made = attention_moments(of, mean, S, FiniteTokens(count))
    field = attention_moments(of, mean, S, None)
    calm = np.flatnonzero(field.logit_variance < 1)
    for h in calm:
        q, y, v = (
            z @ getattr(of, n)[h].T + getattr(of, f"{n}_bias")[h]
            for z, n in ((asking, "query"), (x, "key"), (x, "value"))
        )
        shares = np.exp(of.scale * q @ np.swapaxes(y, 1, 2))
        seen = (shares / shares.sum(axis=2, keepdims=True) @ v).reshape(-1, k)
        line = field.rows[h] @ (asking.reshape(-1, of.width) - mean).T
        centre = seen.mean(axis=0)
        measured = 1 - np.sum((seen - centre - line.T) ** 2) / np.sum((seen - centre) ** 2)
        noise = np.sum((of.value[h] @ S) * of.value[h]) * math.exp(field.logit_variance[h]) / count
        law = 1 / (1 + noise / np.sum((field.rows[h] @ S) * field.rows[h]))
        assert measured == pytest.approx(law, abs=0.03)
        assert made.explained[h] == pytest.approx(law, abs=0.03)
    return calm.size


# -- blocks and stacks -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("placement", "gate", "scaled"),
    [("pre", False, True), ("post", False, False), ("pre", True, False)],
)
def test_blocks_have_the_moments_of_many_sequences(placement, gate, scaled):
    """Of tokens and of the means of sequences, also after a second block."""
    rng = np.random.default_rng(29)
    d, N, T = 16, 60, 1500
    of = block(rng, d, placement, score=0.3, gate=gate, scaled=scaled)
    start = gt.Gaussian(rng.standard_normal(d), rng.standard_normal((d, d)) / 3)
    x = start.sample(T * N, rng).reshape(T, N, d)
    law = TokenLaw.of(start, FiniteTokens(N))
    # A norm at the end of a block sees tokens that are less Gaussian, in few dimensions.
    near, moved = (0.03, 0.03) if placement == "pre" else (0.1, 0.12)
    for _ in range(2):
        x = transformer.pass_block(of, x)
        law = block_moments(of, law, FiniteTokens(N)).output
        m, S, between = transformer.moments(x)
        assert apart(law.mean, m) < 0.02
        assert bures(law.covariance, S) / math.sqrt(np.trace(S)) < near
        assert np.trace(law.covariance) == pytest.approx(np.trace(S), rel=moved)
        assert np.trace(law.shared) == pytest.approx(np.trace(between), rel=0.1)


def test_the_means_of_sequences_do_not_depend_on_softmax_where_it_is_uniform():
    """Tokens that all attend alike: x + V x̄, whose law is known exactly."""
    rng = np.random.default_rng(30)
    d, N = 6, 9
    w = weights(rng, d, 2, 3, 0.0, bias=0.0)
    nothing = Mlp(*(single(np.zeros(s)) for s in ((2, d), 2, (d, 2), d)), "gelu")
    of = Block(w, nothing, None, None, "pre")
    factor = rng.standard_normal((d, d))
    S, V = factor @ factor.T, w.V(0) + w.V(1)
    law = TokenLaw.of(gt.Gaussian(np.zeros(d), factor), FiniteTokens(N))
    whole = np.eye(d) + V
    shared = S / N
    for _ in range(3):
        law = block_moments(of, law, FiniteTokens(N)).output
        shared = whole @ shared @ whole.T
        np.testing.assert_allclose(law.shared, shared, atol=1e-6 * np.abs(shared).max())
        total = S * (1 - 1 / N) + shared
        np.testing.assert_allclose(law.covariance, total, atol=1e-6 * np.abs(total).max())


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_tokens_that_do_not_attend_stay_independent(placement):
    """So the mean of a sequence of N has the Nth part of their covariance, whatever the norms."""
    rng = np.random.default_rng(32)
    d, N = 8, 11
    of = block(rng, d, placement)
    values = {name: getattr(of.attention, name) for name in of.attention.__dataclass_fields__}
    mute = AttentionWeights(**values | {"value": np.zeros_like(of.attention.value)})
    alone = Block(mute, of.mlp, of.norm_attention, of.norm_mlp, placement)
    start = gt.Gaussian(rng.standard_normal(d), rng.standard_normal((d, d)))
    law = TokenLaw.of(start, FiniteTokens(N))
    for _ in range(2):
        law = block_moments(alone, law, FiniteTokens(N)).output
        wanted = law.covariance / N
        np.testing.assert_allclose(law.shared, wanted, atol=1e-12 * np.abs(wanted).max())


def test_a_block_that_adds_nothing_leaves_the_law():
    rng = np.random.default_rng(31)
    d = 8
    of = block(rng, d, "pre", scaled=True)
    none = Block(
        **{name: getattr(of, name) for name in of.__dataclass_fields__}
        | {"scale_attention": single(np.zeros(d)), "scale_mlp": single(np.zeros(d))}
    )
    factor = rng.standard_normal((d, 5))
    law = TokenLaw(rng.standard_normal(d), factor @ factor.T, np.zeros((d, d)))
    made = block_moments(none, law, FiniteTokens(10)).output
    np.testing.assert_allclose(made.mean, law.mean, atol=1e-12)
    np.testing.assert_allclose(made.covariance, law.covariance, atol=1e-12)


def test_a_missing_norm_is_the_identity():
    rng = np.random.default_rng(37)
    of = block(rng, 12, "pre")
    first = Block(of.attention, of.mlp, None, of.norm_mlp, "pre")
    x = cloud(rng, np.zeros(12), np.eye(12), 60_000).reshape(1500, 40, 12)
    law = TokenLaw.of(gt.Gaussian(np.zeros(12), np.eye(12)), FiniteTokens(40))
    made = block_moments(first, law, FiniteTokens(40)).output
    _, S, _ = transformer.moments(transformer.pass_block(first, x))
    assert bures(made.covariance, S) / math.sqrt(np.trace(S)) < 0.03


def stack(rng, depth=3, d=12, shared=False):
    blocks = [block(rng, d, "post") for _ in range(1 if shared else depth)]
    return Stack("random", "custom", tuple(blocks * depth if shared else blocks))


def test_propagation_chains_blocks_and_starts_from_measured_moments():
    rng = np.random.default_rng(41)
    of, d = stack(rng), 12
    start = gt.Gaussian(rng.standard_normal(d), rng.standard_normal((d, d)) / 3)
    told = []
    plain = pretrained.propagate(of, start, 40, progress=lambda f, _: told.append(f))
    assert told == sorted(told)
    assert told[-1] == 1.0
    law = TokenLaw.of(start, FiniteTokens(40))
    for i, b in enumerate(of.blocks, 1):
        law = block_moments(b, law, FiniteTokens(40)).output
        np.testing.assert_array_equal(plain.chain.covariances[i], law.covariance)
    made = pretrained.propagate(
        of, start, 40, measured=(plain.chain.means, plain.chain.covariances)
    )
    np.testing.assert_array_equal(made.steps.covariances[1], plain.chain.covariances[1])
    fits = made.compare(plain.chain.means, plain.chain.covariances, 1000)
    assert all(fit.covariance < 1e-6 and fit.trace == pytest.approx(1) for fit in fits["chain"])
    assert fits["mean_field"][0].covariance > 0.01
    assert fits["steps"][0].spectrum == pytest.approx(0, abs=1e-9)
    field = pretrained.propagate(of, start, None)
    np.testing.assert_array_equal(field.chain.covariances, plain.mean_field.covariances)
    assert plain.chain.gaussian(1).trace == pytest.approx(plain.chain.traces[1])


def test_shared_weights_may_be_passed_more_often_than_the_stack_is_deep():
    rng = np.random.default_rng(43)
    start = gt.Gaussian(np.zeros(12), np.eye(12))
    assert len(pretrained.propagate(stack(rng, 2, shared=True), start, None, blocks=5).chain) == 6
    with pytest.raises(InvalidNumber, match="2 blocks, which do not share"):
        pretrained.propagate(stack(rng, 2), start, None, blocks=5)
    with pytest.raises(InvalidShape, match="dimension 3, but the stack has 12"):
        pretrained.propagate(stack(rng, 2), gt.Gaussian(np.zeros(3), np.eye(3)))
    with pytest.raises(InvalidShape, match="must be a Gaussian"):
        pretrained.propagate(stack(rng, 2), np.eye(12))
    with pytest.raises(InvalidShape, match="one entry for each block"):
        pretrained.propagate(
            stack(rng, 2), start, None, measured=(np.zeros((2, 12)), np.zeros((2, 12, 12)))
        )


# -- comparison ------------------------------------------------------------------------------


def test_the_sampling_floor_is_what_drawing_does():
    rng = np.random.default_rng(47)
    factor = rng.standard_normal((20, 20)) * np.exp(rng.standard_normal(20))
    S, n = factor @ factor.T, 800
    drawn = [np.cov(cloud(rng, np.zeros(20), factor, n).T) for _ in range(40)]
    mean = np.mean([bures(C, S) ** 2 for C in drawn]) / np.trace(S)
    assert sampling_floor(S, n) == pytest.approx(math.sqrt(mean), rel=0.08)


def test_the_bures_distance_of_commuting_covariances():
    rng = np.random.default_rng(53)
    Q = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    a, b = rng.exponential(size=(2, 6))
    b[0] = 0.0
    assert bures(Q * a @ Q.T, Q * b @ Q.T) == pytest.approx(
        np.linalg.norm(np.sqrt(a) - np.sqrt(b)), rel=1e-6
    )


# -- forecast --------------------------------------------------------------------------------


def parameters(sign_v, sign_b, d=4):
    rng = np.random.default_rng(59)
    made = [rng.standard_normal((d, d)) / d for _ in range(2)]
    V, B = (0.5 * np.eye(d) + M @ M.T for M in made)
    return gt.Parameters(V=sign_v * V, B=sign_b * B, A=0.2 * np.eye(d))


@pytest.mark.parametrize("signs", [(1, -1), (1, 1)])
def test_the_forecast_of_residual_layers_is_that_of_the_simulation(signs):
    p, start = parameters(*signs), gt.Gaussian(np.ones(4), np.eye(4))
    made = pretrained.forecast_layers(p, start, 8, 0.8)
    run = gt.simulate(start, p, 0.8, layers=8)
    traces = [float(np.sum(L**2)) for L in run.factors]
    np.testing.assert_allclose(made.traces, traces, rtol=1e-8)
    finite = pretrained.forecast_layers(p, start, 8, 0.8, 100)
    run = gt.simulate(start, p, 0.8, layers=8, tokens=gt.FiniteTokens(100))
    # The flow of finitely many tokens has no noise, which is of second order in the step.
    assert finite.traces[-1] == pytest.approx(float(np.sum(run.factors[-1] ** 2)), rel=0.05)


def test_signs_decide_whether_residual_layers_blow_up():
    start = gt.Gaussian(np.zeros(4), np.eye(4))
    bounded = pretrained.forecast_layers(parameters(1, -1), start, 100, 20.0)
    assert bounded.course == "settles"
    up = pretrained.forecast_layers(parameters(-1, -1), start, 100, 20.0)
    assert up.course == "blows up"
    assert len(up.traces) < 50
    assert "nothing bounds the mean field" in up.summary()
    finite = pretrained.forecast_layers(parameters(1, 1), start, 20, 4.0, 200)
    assert finite.strained_from is not None
    assert "log N = 5.3" in finite.summary()
    field = pretrained.forecast_layers(parameters(1, 1), start, 20, 4.0)
    assert finite.traces[-1] < 1e-3 * field.traces[-1]


def test_norms_bound_the_variance_at_any_depth():
    rng = np.random.default_rng(61)
    of, start = stack(rng, 2, shared=True), gt.Gaussian(np.zeros(12), 100 * np.eye(12))
    made = pretrained.forecast_stack(of, start, 8, 40, measured=[1200.0, 6.0, 6.0])
    assert made.bound == pytest.approx(12 * float(np.max(of.blocks[0].norm_mlp.weight)) ** 2)
    assert np.all(made.traces[1:] < made.bound)
    assert made.largest[-1] < made.traces[-1]
    assert made.course in ("settles", "shrinks")
    assert made.ratios.shape == (3,)
    assert "bounds it by" in made.summary()
    assert "after 2 layers" in made.summary()
    assert set(made.plot()) == {"variance"}
    chain = pretrained.propagate(of, start, 40, blocks=8).chain
    np.testing.assert_allclose(made.traces, chain.traces)
    pre = Stack("pre", "custom", (block(rng, 12, "pre"),))
    grown = pretrained.forecast_stack(pre, gt.Gaussian(np.zeros(12), np.eye(12)), 40, None)
    roots = np.sqrt(grown.traces)
    assert np.max(np.diff(roots)[20:]) <= 1.01 * np.max(np.diff(roots)[:20])
    assert math.isinf(grown.bound)


def test_forecasts_refuse_what_does_not_fit():
    p, start = parameters(1, 1), gt.Gaussian(np.zeros(3), np.eye(3))
    with pytest.raises(InvalidShape, match="dimension 3, the parameters 4"):
        pretrained.forecast_layers(p, start, 3, 1.0)
    with pytest.raises(InvalidShape, match="Parameters or a Schedule"):
        pretrained.forecast_layers("x", start, 3, 1.0)
    with pytest.raises(InvalidNumber, match="layers"):
        pretrained.forecast_layers(p, gt.Gaussian(np.zeros(4), np.eye(4)), 0, 1.0)


# -- real models -----------------------------------------------------------------------------


def follow(package, kind, tokens, sequences, blocks):
    """Fits of the propagation to what Gaussian tokens do in the first blocks of a real model."""
    real_models.require()
    of = real_models.stack(package)
    images = isinstance(of.embedding, pretrained.PatchEmbedding)
    length = None if images else tokens  # images have their own number
    real = pretrained.embeddings(of, "real", sequences=16, tokens=length)
    flat = real.reshape(-1, real.shape[-1]).astype(float)
    mean, S = flat.mean(axis=0), np.cov(flat.T)
    if kind == "isotropic":
        mean, S = np.zeros_like(mean), np.eye(len(mean)) * np.trace(S) / len(mean)
    start = gt.Gaussian.from_covariance(mean, S)
    x = start.sample(sequences * tokens, np.random.default_rng(0))
    x = single(x.reshape(sequences, tokens, -1))
    walk = islice(of.walk(x, positions=False), blocks)
    seen = [transformer.moments(y.astype(float)) for y in (x, *(r.output for r in walk))]
    made = pretrained.propagate(of, start, tokens, blocks=blocks)
    fits = made.compare([m for m, _, _ in seen], [S for _, S, _ in seen], sequences * tokens)
    return made, fits, seen


def test_albert_is_predicted_for_two_blocks():
    """Several of its heads are frozen: the mean field is far off from the first block on."""
    made, fits, _ = follow(real_models.RXNMAPPER, "matched", 128, 12, 2)
    assert made.logit_variance[0].max() > 50
    one, two = fits["chain"]
    assert one.covariance < 0.2
    assert two.covariance < 0.35
    assert fits["mean_field"][0].covariance > 1.5 * one.covariance
    assert one.trace == pytest.approx(1, abs=0.05)


@pytest.mark.slow
def test_minilm_is_predicted_for_three_blocks():
    _, fits, _ = follow(real_models.MINILM, "matched", 512, 12, 3)
    assert fits["chain"][0].covariance < 0.13
    assert max(fit.covariance for fit in fits["chain"]) < 0.23
    assert all(0.9 < fit.trace < 1.05 for fit in fits["chain"])
    assert all(fit.spectrum < 0.2 for fit in fits["chain"])
    assert fits["chain"][0].excess < 0.08
    for near, far in zip(fits["chain"], fits["mean_field"], strict=True):
        assert near.covariance < far.covariance


@pytest.mark.slow
def test_the_law_of_a_head_holds_in_minilm():
    real_models.require()
    of = real_models.stack(real_models.MINILM)
    real = pretrained.embeddings(of, "real", sequences=16, tokens=512)
    flat = real.reshape(-1, real.shape[-1]).astype(float)
    start = gt.Gaussian.from_covariance(flat.mean(axis=0), np.cov(flat.T))
    x = start.sample(16 * 512, np.random.default_rng(1)).reshape(16, 512, -1)
    assert laws_hold(of.blocks[0].attention, x, start.mean, start.covariance) >= 4


@pytest.mark.slow
def test_isotropic_tokens_are_predicted_through_the_vision_transformer():
    made, fits, seen = follow(real_models.VIT, "isotropic", 256, 12, 6)
    for k, fit in enumerate(fits["chain"], 1):
        assert fit.excess < 0.12
        assert fit.trace == pytest.approx(1, abs=0.05)
        between = np.trace(seen[k][2])
        assert np.trace(made.chain.shared[k]) == pytest.approx(between, rel=0.35)
    assert fits["mean_field"][0].mean > 10 * fits["chain"][0].mean


def test_the_floor_by_sequences_sees_what_their_tokens_share():
    """Beside the Bures distances that drawing makes, with a mean that each sequence shares."""
    rng = np.random.default_rng(7)
    d, T, N, shared = 5, 40, 30, 0.6
    scale = np.exp(-np.arange(d) / 4.0)
    S = np.diag((1 + shared**2) * scale**2)
    floors, distances = [], []
    for _ in range(100):
        noise = rng.standard_normal((T, N, d)) + shared * rng.standard_normal((T, 1, d))
        x = noise * scale
        flat = x.reshape(-1, d)
        C = np.cov(flat.T, bias=True)
        floors.append(sequences_floor(x, flat.mean(axis=0), C) ** 2)
        distances.append(bures(C, S) ** 2 / np.trace(S))
    assert np.mean(floors) == pytest.approx(np.mean(distances), rel=0.15)
    assert np.mean(floors) > 2 * sampling_floor(S, T * N) ** 2

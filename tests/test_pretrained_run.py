"""Forward runs against an independent implementation in double precision, and their laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import erf, expit

import gtcontrol as gt
from gtcontrol.errors import InvalidMethod, InvalidNumber, InvalidShape, NotFinite
from tests import real_models

real_models.require("torch")

from gtcontrol.pretrained import (  # noqa: E402
    AttentionWeights,
    Block,
    Mlp,
    Norm,
    Rope,
    Stack,
    forward,
)


def attention(rng, d=12, heads=3, k=4, size=0.4):
    def draw(*shape):
        return (size * rng.standard_normal(shape)).astype(np.float32)

    return AttentionWeights(
        draw(heads, k, d),
        draw(heads, k),
        draw(heads, k, d),
        draw(heads, k),
        draw(heads, k, d),
        draw(heads, k),
        draw(d, heads * k),
        draw(d),
        k**-0.5,
    )


def block(seed=0, d=12, activation="gelu", gated=False, **changes):
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return (0.4 * rng.standard_normal(shape)).astype(np.float32)

    def norm():
        return Norm(1 + draw(d), draw(d), 1e-5)

    inner = 20 * (1 + gated)
    net = Mlp(draw(inner, d), draw(inner), draw(d, 20), draw(d), activation, gated)
    made = Block(attention(rng, d), net, norm(), norm(), "pre")
    return replace(made, **changes)


def tokens(count=9, d=12, sequences=2, seed=5):
    return np.random.default_rng(seed).standard_normal((sequences, count, d)).astype(np.float32)


# -- an implementation of its own ------------------------------------------------------------

ACTIVATIONS = {
    "gelu": lambda u: u * (1 + erf(u / np.sqrt(2))) / 2,
    "gelu_tanh": lambda u: u * (1 + np.tanh(np.sqrt(2 / np.pi) * (u + 0.044715 * u**3))) / 2,
    "gelu_quick": lambda u: u * expit(1.702 * u),
    "relu": lambda u: np.maximum(u, 0),
    "silu": lambda u: u * expit(u),
    "tanh": np.tanh,
    "sigmoid": expit,
    "identity": lambda u: u,
}


def by_hand(layer, x):
    """The output of a block on one sequence (N, d), token by token, by complex rotations."""
    x = x.astype(np.float64)
    s1 = 1.0 if layer.scale_attention is None else layer.scale_attention.astype(np.float64)
    s2 = 1.0 if layer.scale_mlp is None else layer.scale_mlp.astype(np.float64)
    if layer.placement == "pre":
        first = x + s1 * attend_by_hand(layer, norm_by_hand(layer.norm_attention, x))
        return first + s2 * feed_by_hand(layer.mlp, norm_by_hand(layer.norm_mlp, first))
    first = norm_by_hand(layer.norm_attention, x + s1 * attend_by_hand(layer, x))
    return norm_by_hand(layer.norm_mlp, first + s2 * feed_by_hand(layer.mlp, first))


def norm_by_hand(norm, x):
    if norm is None:
        return x
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + norm.epsilon) * norm.weight + norm.bias


def feed_by_hand(net, x):
    hidden = x @ net.inner.T.astype(float) + net.inner_bias
    act = ACTIVATIONS[net.activation]
    gate = hidden[:, net.hidden :] if net.gated else 1.0
    hidden = act(hidden[:, : net.hidden]) * gate
    return hidden @ net.outer.T.astype(float) + net.outer_bias


def attend_by_hand(layer, u):
    w, made = layer.attention, np.zeros_like(u) + layer.attention.output_bias
    for h in range(w.heads):
        q = u @ w.query[h].T.astype(float) + w.query_bias[h]
        k = u @ w.key[h].T.astype(float) + w.key_bias[h]
        v = u @ w.value[h].T.astype(float) + w.value_bias[h]
        half = w.head_width // 2
        for i in range(len(u)):
            scores = []
            for j in range(len(u)):
                a, b = (z[..., :half] + 1j * z[..., half:] for z in (q[i], k[j]))
                if layer.rope is not None:
                    angle = (i - j) * layer.rope.theta ** (-np.arange(half) / half)
                    a = a * np.exp(1j * angle)
                score = w.scale * np.sum(a * b.conj()).real
                near = layer.window is None or abs(i - j) <= layer.window
                scores.append(score if near else -np.inf)
            weights = np.exp(np.array(scores) - np.max(scores))
            made[i] += w.output_of(h) @ (weights / weights.sum() @ v)
    return made


def close(ours, theirs):
    gap = np.linalg.norm(ours - theirs, axis=-1) / np.linalg.norm(theirs, axis=-1)
    return gap.max() < 1e-5


scale = np.linspace(0.2, 1.5, 12).astype(np.float32)

KINDS = {
    "pre": {},
    "post": {"placement": "post"},
    "scaled": {"scale_attention": scale, "scale_mlp": scale[::-1].copy()},
    "scaled after": {"scale_attention": scale, "placement": "post"},
    "no first norm": {"norm_attention": None},
    "rotary": {"rope": Rope(100.0)},
    "window": {"window": 2},
    "rotary window": {"rope": Rope(50.0), "window": 3},
}


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_compute_what_they_say(kind):
    layers = (block(1, **KINDS[kind]), block(2, gated=True, activation="silu", **KINDS[kind]))
    x = tokens()
    records = Stack("small", "custom", layers).run(x, ("output",))
    for sequence, ours in zip(x, records[1].output, strict=True):
        assert close(ours, by_hand(layers[1], by_hand(layers[0], sequence)))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation):
    layer = block(3, activation=activation)
    assert set(ACTIVATIONS) == set(gt.pretrained.weights.ACTIVATIONS)
    ours = Stack("small", "custom", (layer,)).run(3 * tokens(), ("mlp", "norm"))[0]
    assert close(ours.mlp[1], feed_by_hand(layer.mlp, ours.norm[1].astype(float)))


@pytest.mark.parametrize("window", [1, 40, 700])
def test_windows_across_chunks(window, monkeypatch):
    layer = block(4, window=window)
    x = tokens(count=90, sequences=1)
    whole = Stack("small", "custom", (layer,)).run(x, ("output",))[0].output
    monkeypatch.setattr(forward, "CHUNK", 32)
    cut = Stack("small", "custom", (layer,)).run(x, ("output",))[0].output
    assert close(cut, whole)
    assert close(cut[0], by_hand(layer, x[0]))


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_records_add_up(placement):
    layers = (block(5, placement=placement), block(6, placement=placement))
    x = tokens()
    one, two = Stack("small", "custom", layers).run(x, forward.RECORDS)
    assert one.layer == 1
    assert two.layer == 2
    assert np.array_equal(one.input, x)
    assert np.array_equal(two.input, one.output)
    for r, layer in ((one, layers[0]), (two, layers[1])):
        assert r.residual == pytest.approx(r.input + r.attention, abs=1e-5)
        if placement == "pre":
            assert r.attended == pytest.approx(
                norm_by_hand(layer.norm_attention, r.input), abs=1e-4
            )
            assert r.norm == pytest.approx(norm_by_hand(layer.norm_mlp, r.residual), abs=1e-4)
            assert r.output == pytest.approx(r.residual + r.mlp, abs=1e-5)
        else:
            assert np.array_equal(r.attended, r.input)
            assert r.norm == pytest.approx(norm_by_hand(layer.norm_attention, r.residual), abs=1e-4)
            assert r.output == pytest.approx(norm_by_hand(layer.norm_mlp, r.norm + r.mlp), abs=1e-4)


def test_only_what_is_asked_for_is_kept():
    record = Stack("small", "custom", (block(),)).run(tokens(), ("mlp",))[0]
    assert record.mlp is not None
    assert record.output is record.input is record.norm is record.attention is None


# -- laws ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rotary", "window", "rotary window"])
def test_without_positions_tokens_are_exchangeable(kind):
    stack = Stack("small", "custom", (block(7, **KINDS[kind]), block(8, **KINDS[kind])))
    x = tokens(count=20)
    order = np.random.default_rng(0).permutation(20)
    plain, moved = (stack.run(y, ("output",), positions=False)[1].output for y in (x, x[:, order]))
    assert close(moved, plain[:, order])
    plain, moved = (stack.run(y, ("output",))[1].output for y in (x, x[:, order]))
    assert not close(moved, plain[:, order])


def test_rotary_positions_depend_on_differences_only():
    """Tokens after others that no one attends to: a shift of all positions changes nothing."""
    layer = block(9, rope=Rope(30.0), window=4)
    x = tokens(count=30, sequences=1)
    stack = Stack("small", "custom", (layer,))
    whole = stack.run(x, ("attention",))[0].attention[0]
    part = stack.run(x[:, 10:], ("attention",))[0].attention[0]
    assert close(part[4:], whole[14:])


def test_biases_of_keys_do_not_matter():
    layer = block(10)
    bias = layer.attention.key_bias + np.float32(3.0)
    other = replace(layer, attention=replace(layer.attention, key_bias=bias))
    x = tokens()
    first, second = (
        Stack("small", "custom", (b,)).run(x, ("attention",))[0].attention for b in (layer, other)
    )
    assert close(first, second)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_layer_scale_can_be_folded_into_the_weights(placement):
    layer = block(11, scale_attention=scale, scale_mlp=scale[::-1].copy(), placement=placement)
    folded = layer.folded()
    assert folded.scale_attention is folded.scale_mlp is None
    x = tokens()
    first, second = (
        Stack("small", "custom", (b,)).run(x, ("output",))[0].output for b in (layer, folded)
    )
    assert close(first, second)
    scaled = scale[:, None] * layer.attention.V(0)
    assert folded.attention.V(0) == pytest.approx(scaled, rel=1e-4, abs=1e-7)


def test_scores_are_those_of_B_and_beta():
    w = attention(np.random.default_rng(12))
    x, y = np.random.default_rng(13).standard_normal((2, 5, 12))
    for h in range(w.heads):
        q = x @ w.query[h].T.astype(float) + w.query_bias[h]
        scores = [w.scale * q @ (w.key[h].astype(float) @ z + w.key_bias[h]) for z in y]
        ours = [(x @ w.B(h).T + w.beta(h)) @ z for z in y]
        assert scores[0] - scores[1] == pytest.approx(ours[0] - ours[1], rel=1e-9)
        assert np.linalg.matrix_rank(w.B(h)) == np.linalg.matrix_rank(w.V(h)) == 4
        left, right = w.V_factors(h)
        assert left @ right == pytest.approx(w.V(h))


def test_attention_is_the_sum_of_its_heads():
    layer = block(14, norm_attention=None)
    w, x = layer.attention, tokens(sequences=1)
    made = Stack("small", "custom", (layer,)).run(x, ("attention",))[0].attention[0]
    y = x[0].astype(float)
    wanted = np.tile(w.output_bias.astype(float), (len(y), 1))
    for h in range(w.heads):
        scores = (y @ w.B(h).T + w.beta(h)) @ y.T
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        wanted += weights @ y @ w.V(h).T + w.value_offset(h)
    assert close(made, wanted)


def test_batches_do_not_change_the_result(monkeypatch):
    stack = Stack("small", "custom", (block(15), block(16)))
    x = tokens(sequences=7)
    whole = stack.run(x, ("output", "attention"))
    monkeypatch.setattr(forward, "BATCH_MEMORY", 1)
    parts = stack.run(x, ("output", "attention"))
    assert close(parts[1].output, whole[1].output)
    assert close(parts[0].attention, whole[0].attention)


def test_a_single_sequence_is_one_of_many():
    stack = Stack("small", "custom", (block(17),))
    x = tokens()
    alone = stack.run(x[0], ("output",))[0].output
    assert alone.shape == (1, 9, 12)
    assert close(alone[0], stack.run(x, ("output",))[0].output[0])


def test_tokens_are_not_written_to():
    x = tokens()
    before = x.copy()
    stack = Stack("small", "custom", (block(18),))
    record = stack.run(x, ("input", "output"))[0]
    record.input[:] = 0.0
    assert np.array_equal(x, before)


def test_shared_layers_are_one_block():
    layer = block(19)
    assert Stack("small", "custom", (layer,) * 4).shared
    assert not Stack("small", "custom", (layer, block(19))).shared
    assert not Stack("small", "custom", (layer,)).shared
    assert "depth=4, width=12, heads=3, shared=True" in repr(Stack("s", "custom", (layer,) * 4))


# -- what other rooms do with a stack --------------------------------------------------------


def test_shapes_of_clouds_before_and_after_each_block():
    stack = Stack("small", "custom", (block(20), block(21)))
    x = tokens(count=200, sequences=4)
    found = stack.gaussianity(x, baselines=4)
    assert len(found) == 3
    assert found[0].gaussian
    last = stack.run(x, ("output",))[-1].output.reshape(-1, 12)
    again = gt.gaussianity(last, baselines=4, rng=1)
    assert found[2]["spread"].value == pytest.approx(again["spread"].value, rel=1e-6)


def test_methods_are_the_functions_of_the_module():
    stack = Stack("small", "custom", (block(22), block(23)))
    law = gt.Gaussian.from_covariance(np.zeros(12), np.eye(12))
    p = gt.pretrained
    assert stack.heads(law, 64).rows == p.tabulate_heads(stack, law, 64).rows
    ours, theirs = stack.propagate(law, 64), p.propagate(stack, law, 64)
    assert np.array_equal(ours.chain.covariances, theirs.chain.covariances)
    assert np.array_equal(
        stack.forecast(law, 3, 64).traces, p.forecast_stack(stack, law, 3, 64).traces
    )


# -- what is refused -------------------------------------------------------------------------


def test_wrong_arguments_are_named():
    stack = Stack("small", "custom", (block(),))
    with pytest.raises(InvalidMethod, match="`record` holds 'sum'"):
        stack.walk(tokens(), ("sum",))
    with pytest.raises(InvalidShape, match=r"`tokens` must have shape \(T, N, 12\)"):
        stack.run(tokens(d=11))
    bad = tokens()
    bad[1, 2, 3] = np.nan
    with pytest.raises(NotFinite, match="`tokens` holds nan"):
        stack.run(bad)


def test_wrong_weights_are_named():
    ones = np.ones(12, dtype=np.float32)
    good = block()
    with pytest.raises(InvalidShape, match=r"`bias` of Norm must have shape \(12,\)"):
        Norm(ones, ones[:3], 1e-5)
    with pytest.raises(InvalidShape, match="float32"):
        Norm(ones.astype(float), ones, 1e-5)
    with pytest.raises(InvalidShape, match="`output` of AttentionWeights"):
        replace(good.attention, output=np.ones((12, 11), dtype=np.float32))
    with pytest.raises(InvalidShape, match="`inner` of Mlp"):
        replace(good.mlp, gated=True)
    with pytest.raises(InvalidNumber, match="`activation` is 'mish'"):
        replace(good.mlp, activation="mish")
    with pytest.raises(InvalidNumber, match="`theta`"):
        Rope(-1.0)
    with pytest.raises(InvalidShape, match="`placement`"):
        replace(good, placement="middle")
    with pytest.raises(InvalidShape, match="`blocks` is empty"):
        Stack("none", "custom", ())
    with pytest.raises(InvalidShape, match="block 2 has width 10"):
        Stack("odd", "custom", (good, block(d=10)))

"""What heads do to the variance of tokens: tabulated, and as it happens."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

import gtcontrol as gt
from gtcontrol import pretrained
from gtcontrol.errors import InvalidNumber, InvalidShape
from gtcontrol.finite_tokens import FiniteTokens
from gtcontrol.pretrained import AttentionWeights, Block, Mlp, Norm, Stack
from gtcontrol.pretrained.heads import block_heads, tabulate_heads
from gtcontrol.pretrained.measurement import (
    LayerMoments,
    covariance,
    measure_layer,
    moments,
    wanted,
)
from tests import inspections, real_models
from tests.oracles import transformer


def single(array):
    return np.asarray(array, dtype=np.float32)


def attention(rng, d, heads, k, score, *, aligned=1.0):
    """Random heads; `aligned` times a projection is added to V, so that rates do not cancel."""
    draw = rng.standard_normal
    value = draw((heads, k, d)) / math.sqrt(d)
    output = draw((d, heads * k)) / math.sqrt(heads * k)
    output += aligned * value.reshape(heads * k, d).T
    query, key = (math.sqrt(score) * draw((heads, k, d)) / math.sqrt(d) for _ in range(2))
    key += aligned * query
    bias = [0.2 * draw((heads, k)) for _ in range(3)]
    return AttentionWeights(
        *(single(x) for x in (query, bias[0], key, bias[1], value, bias[2], output)),
        single(0.1 * draw(d)),
        1 / math.sqrt(k),
    )


def block(rng, d, placement, score=0.5, aligned=1.0):
    draw = rng.standard_normal
    net = Mlp(
        single(draw((2 * d, d)) / math.sqrt(d)),
        single(np.zeros(2 * d)),
        single(0.3 * draw((d, 2 * d)) / math.sqrt(d)),
        single(np.zeros(d)),
        "gelu",
    )
    norms = [Norm(single(1 + 0.2 * draw(d)), single(0.2 * draw(d)), 1e-6) for _ in range(2)]
    scale = single(0.5 + rng.random(d)) if placement == "pre" else None
    weights = attention(rng, d, 3, d // 3, score, aligned=aligned)
    return Block(weights, net, norms[0], norms[1], placement, scale)


def layer(of, x):
    """Moments measured in a block, and the tokens after it."""
    u = transformer.layer_norm(x, of.norm_attention) if of.placement == "pre" else x
    a = transformer.attend(of.folded().attention, u)
    after = transformer.pass_block(of, x)
    made = (moments(t) for t in (x, u, a, after))
    return LayerMoments(*made, covariance(a, x), covariance(u, x), covariance(a, u)), after


@pytest.fixture(scope="module")
def measured():
    rng = np.random.default_rng(1)
    d, N, T = 12, 64, 600
    stack = Stack("pre", "custom", tuple(block(rng, d, "pre") for _ in range(2)))
    x = rng.standard_normal(d) + rng.standard_normal((T, N, d)) @ rng.standard_normal((d, d)) / 3
    found = []
    for of in stack.blocks:
        made, x = layer(of, x)
        found.append(made)
    return stack, found


def test_rates_gains_and_balances_are_those_of_full_matrices(measured):
    stack, found = measured
    of, seen = stack.blocks[0].folded().attention, found[0]
    S, C, total = seen.attended.covariance, seen.attended_before, seen.before.trace
    values, vectors = np.linalg.eigh(S)
    root = vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T
    rows = block_heads(stack.blocks[0], 1, seen, FiniteTokens(64))
    for h, row in enumerate(rows):
        V, B = of.V(h), of.B(h)
        assert row.rate == pytest.approx(2 * np.trace(V @ S @ B @ C) / total, rel=1e-8)
        K = V @ S @ B
        assert row.gain == pytest.approx(math.sqrt(np.trace(K @ S @ K.T) / total), rel=1e-8)
        for M, balance in ((V, row.balance_V), (B, row.balance_B)):
            form = root @ M @ root
            sizes = np.linalg.eigvalsh(0.5 * (form + form.T))
            assert balance == pytest.approx(np.trace(form) / np.abs(sizes).sum(), abs=1e-8)
        values, vectors = np.linalg.eigh((S - seen.attended.between) * 64 / 63)
        keys = vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T
        q = keys @ (B @ seen.attended.mean + of.beta(h))
        a = q @ q + np.sum((keys @ B @ keys) ** 2)
        assert row.logit_variance == pytest.approx(a, rel=1e-6)


def test_rates_are_the_drift_of_the_variance(measured):
    """Of independent Gaussian tokens, before and after they have attended to each other."""
    stack, found = measured
    table = tabulate_heads(stack, found, 64)
    assert table.layers == (1, 2)
    first, second = (table.effective_rate(k) for k in (1, 2))
    # The norm makes Gaussian tokens less so, in few dimensions.
    assert first == pytest.approx(found[0].drift, rel=0.15)
    assert second == pytest.approx(found[1].drift, rel=0.25)
    assert abs(table.effective_rate(1) - found[0].drift) < abs(table.rate(1) - found[0].drift)


def test_rates_of_gaussian_tokens_are_exact_at_every_strength_of_the_scores():
    rng = np.random.default_rng(2)
    for score in (0.3, 1.0, 4.0):
        of = block(rng, 12, "post", score=score)
        x = rng.standard_normal(12) / 3 + rng.standard_normal((500, 64, 12))
        seen, _ = layer(of, x)
        rows = block_heads(of, 1, seen, FiniteTokens(64))
        assert sum(row.effective_rate for row in rows) == pytest.approx(seen.drift, rel=0.03)
        if score == 4.0:
            assert sum(row.rate for row in rows) > 2 * seen.drift


def test_a_law_gives_the_table_that_its_tokens_give(measured):
    stack, found = measured
    start = gt.Gaussian.from_covariance(found[0].before.mean, found[0].before.covariance)
    told = tabulate_heads(stack, start, 64)
    seen = tabulate_heads(stack, found, 64)
    for one, other in zip(told.of_layer(1), seen.of_layer(1), strict=True):
        assert one.rate == pytest.approx(other.rate, abs=0.01)
        assert one.balance_B == pytest.approx(other.balance_B, abs=0.02)
        assert one.self_weight == pytest.approx(other.self_weight, rel=0.1)
    for k in (1, 2):
        assert told.rate(k) == pytest.approx(seen.rate(k), abs=0.1 * abs(seen.rate(k)) + 0.01)


@pytest.mark.parametrize(("value", "score"), [(1, -1), (-1, 1), (1, 1), (-1, -1)])
def test_the_signs_of_v_and_b_decide_between_contraction_and_expansion(value, score):
    d = 6
    one, none = single(np.eye(d))[None], single(np.zeros((1, d)))
    weights = AttentionWeights(
        single(0.4 * score * one), none, one, none, single(value * one), none, one[0], none[0], 1.0
    )
    nothing = Mlp(*(single(np.zeros(s)) for s in ((2, d), 2, (d, 2), d)), "gelu")
    of = Block(weights, nothing, None, None, "pre")
    start = gt.Gaussian(np.zeros(d), np.eye(d))
    table = tabulate_heads(Stack("signed", "custom", (of,)), start, 512)
    row = table.rows[0]
    assert (row.balance_V, row.balance_B) == (pytest.approx(value), pytest.approx(score))
    assert row.rate == pytest.approx(2 * 0.4 * value * score, rel=1e-6)
    assert table.verdict(1) == ("expanding" if value * score > 0 else "contracting")


def test_layers_without_effect_are_neutral_and_saturated_heads_are_frozen():
    rng = np.random.default_rng(3)
    start = gt.Gaussian(np.zeros(12), np.eye(12))
    calm = Stack("calm", "custom", (block(rng, 12, "post", score=1e-3, aligned=0.0),))
    table = tabulate_heads(calm, start, 512)
    assert table.verdict(1) == "neutral"
    assert all(table.valid(row) and not table.frozen(row) for row in table.rows)
    hot = Stack("hot", "custom", (block(rng, 12, "post", score=30.0, aligned=0.0),))
    table = tabulate_heads(hot, start, 512)
    assert all(table.frozen(row) and not table.valid(row) for row in table.rows)
    # A frozen head cannot tilt by more than its largest key: the mean field overstates it.
    assert all(abs(row.effective_rate) < 0.5 * abs(row.rate) for row in table.rows)


def test_tables_refuse_what_does_not_fit(measured):
    stack, found = measured
    with pytest.raises(InvalidShape, match="moments of 3 layers, but the stack has 2"):
        tabulate_heads(stack, [*found, found[0]], 64)
    with pytest.raises(InvalidShape, match="dimension 5, but the stack has 12"):
        pretrained.tabulate_heads(stack, gt.Gaussian(np.zeros(5), np.eye(5)), 64)


@pytest.mark.slow
def test_the_last_layer_of_a_vision_transformer_expands_and_the_first_contract():
    """The sign rule on real weights: V and B of opposite signs on the data, and of the same.

    Tokens are those of crops of the photograph that comes with Matplotlib.
    """
    real_models.require()
    stack = real_models.stack(real_models.VIT)
    crops = pretrained.embeddings(stack, "real", sequences=12, rng=0)
    count, found = crops.shape[1], []
    for record, of in zip(stack.walk(crops, wanted(stack)), stack.blocks, strict=True):
        found.append(measure_layer(record, of))
    table = tabulate_heads(stack, found, count)
    drifts = np.array([seen.drift for seen in found])
    rates = np.array([table.effective_rate(k) for k in table.layers])
    field = np.array([table.rate(k) for k in table.layers])
    assert np.all(field[:5] < 0)
    assert np.all(rates[:5] < 0)
    assert np.all(drifts[:5] < 0)
    assert field[11] > 0.3
    assert rates[11] > 0.3
    assert drifts[11] > 0.3
    assert table.verdict(2) == "contracting"
    assert table.verdict(12) == "expanding"
    assert spearmanr(rates, drifts).statistic > 0.8
    assert np.abs(rates - drifts).mean() < np.abs(field - drifts).mean()
    first = table.of_layer(1)
    assert sum(row.balance_V < 0 < row.balance_B for row in first) >= 4
    assert sum(row.balance_V > 0 and row.balance_B > 0.8 for row in table.of_layer(12)) >= 2


@pytest.mark.parametrize("head", [-1, 3, 2.0])
@pytest.mark.parametrize("what", ["V", "B", "beta", "value_offset", "output_of"])
def test_heads_that_are_not_there_are_refused(what, head):
    attention = inspections.tiny(depth=1).blocks[0].attention
    assert getattr(attention, what)(np.int64(2)) is not None
    with pytest.raises(InvalidNumber, match="`head` "):
        getattr(attention, what)(head)


def test_arguments_of_a_stack_are_called_by_their_names():
    stack, law = inspections.tiny(depth=1), gt.Gaussian(np.zeros(24), np.eye(24))
    for ask in (stack.heads, stack.propagate, lambda of, n: stack.forecast(of, 1, n)):
        with pytest.raises(InvalidNumber, match="`tokens` must be at least 2; it is -3"):
            ask(law, -3)
        with pytest.raises(InvalidNumber, match=r"`tokens` is 1e\+16, more than"):
            ask(law, 10**16)
    for wrong in (3, None, [1, 2]):
        with pytest.raises(InvalidShape, match="`moments` must be a Gaussian or a sequence"):
            stack.heads(wrong)

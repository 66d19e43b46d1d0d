"""Parameters: shapes, biases and heads, against softmax itself and against quadrature."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import gtcontrol as gt
from gtcontrol.attention import velocity
from gtcontrol.errors import (
    IndefiniteCovariance,
    InvalidNumber,
    InvalidShape,
    NotFinite,
    NotSymmetric,
)
from gtcontrol.field import generator, rates
from gtcontrol.parameters import check_finite
from tests.oracles import tilting
from tests.strategies import gaussians, generators, orthogonal, parameters


class TestShapes:
    def test_what_is_left_out_is_zero(self):
        p = gt.Parameters(A=np.eye(2))
        assert p.dim == 2
        for value, shape in ((p.B, (2, 2)), (p.V, (2, 2)), (p.b, (2,))):
            np.testing.assert_array_equal(value, np.zeros(shape))
        assert p.noise is None
        assert p.beta is None
        p = gt.Parameters(V=np.ones((3, 2, 2)))
        assert p.B.shape == (3, 2, 2)
        assert len(p.heads) == 3
        assert gt.Parameters(dim=4).A.shape == (4, 4)

    @pytest.mark.parametrize(
        ("arguments", "error", "words"),
        [
            ({}, InvalidShape, "at least one"),
            ({"A": np.ones((2, 3))}, InvalidShape, "3 by 3"),
            ({"A": np.eye(2), "b": [1.0]}, InvalidShape, "A: 2, b: 1"),
            ({"A": np.eye(2), "dim": 3}, InvalidShape, "A: 2, dim: 3"),
            ({"B": np.ones((2, 2, 2)), "V": np.eye(2)}, InvalidShape, "B: 2, V: one"),
            ({"B": np.ones((2, 2, 2)), "V": np.ones((3, 2, 2))}, InvalidShape, "B: 2, V: 3"),
            ({"B": np.eye(2), "beta": np.ones((2, 2))}, InvalidShape, "B: one, beta: 2"),
            ({"A": np.zeros((0, 0))}, InvalidShape, "at least one dimension"),
            ({"dim": 0}, InvalidNumber, "at least 1"),
            ({"dim": 2.0}, InvalidNumber, "whole number"),
            ({"A": [[np.nan]]}, NotFinite, "`A` holds nan"),
            ({"b": [[1.0]]}, InvalidShape, "`b`"),
            ({"A": np.ones((1, 1, 1))}, InvalidShape, "`A`"),
            ({"noise": [[1.0, 1.0], [0.0, 1.0]]}, NotSymmetric, "`noise`"),
            ({"noise": [[1.0, 0.0], [0.0, -1.0]]}, IndefiniteCovariance, "is -1."),
            ({"A": [[1.0, "a"], [0.0, 1.0]]}, InvalidShape, "with the entry str 'a'"),
            ({"A": [[1j]]}, InvalidShape, "not of complex ones"),
            ({"A": [[1.0, 2.0], [3.0]]}, InvalidShape, "its rows differ"),
            ({"A": np.array([[10**400]], dtype=object)}, InvalidShape, "of type object"),
            ({"A": "x"}, InvalidShape, "real numbers"),
        ],
    )
    def test_bad_arrays_are_refused(self, arguments, error, words):
        with pytest.raises(error, match=words):
            gt.Parameters(**arguments)

    def test_arrays_are_read_only(self):
        p = gt.Parameters(A=np.eye(2))
        for value in (p.A, p.B, p.V, p.b):
            with pytest.raises(ValueError, match="read-only"):
                value[0] = 1.0

    def test_lift_keeps_everything(self):
        rng = np.random.default_rng(0)
        U = orthogonal(rng, 5)[:, :2]
        p = gt.Parameters(
            A=rng.standard_normal((2, 2)),
            B=rng.standard_normal((3, 2, 2)),
            V=rng.standard_normal((3, 2, 2)),
            b=rng.standard_normal(2),
            noise=np.diag([1.0, 2.0]),
            beta=rng.standard_normal((3, 2)),
        )
        lifted = p.lift(U)
        x, y = rng.standard_normal(5), rng.standard_normal(5)
        for h in range(3):
            inner = (p.B[h] @ U.T @ x + p.beta[h]) @ (U.T @ y)
            assert (lifted.B[h] @ x + lifted.beta[h]) @ y == pytest.approx(inner)
            np.testing.assert_allclose(lifted.V[h] @ y, U @ (p.V[h] @ (U.T @ y)))
        np.testing.assert_allclose(lifted.A @ x + lifted.b, U @ (p.A @ (U.T @ x) + p.b))
        np.testing.assert_allclose(U.T @ lifted.noise @ U, p.noise, atol=1e-14)

    def test_parameters_of_a_function_are_checked_for_nan(self):
        bad = np.full((1, 1), np.nan)
        with pytest.raises(NotFinite, match=r"t = 0\.25"):
            check_finite(gt.Parameters.trusted(bad, bad, bad, np.zeros(1)), 0.25)


def attention_weights(rng, heads, d_head, d_value, d):
    shapes = {
        "W_Q": (d_head, d),
        "W_K": (d_head, d),
        "W_V": (d_value, d),
        "W_O": (d, d_value),
        "b_Q": (d_head,),
        "b_K": (d_head,),
        "b_V": (d_value,),
    }
    made = {name: 0.6 * rng.standard_normal((heads, *shape)) for name, shape in shapes.items()}
    made["b_O"] = rng.standard_normal(d)
    return made


def plain_attention(x, keys, w):
    """Multi-head attention of one token x as a textbook writes it, key by key."""
    total = w["b_O"].copy()
    for h in range(len(w["W_Q"])):
        query = w["W_Q"][h] @ x + w["b_Q"][h]
        scores = [query @ (w["W_K"][h] @ y + w["b_K"][h]) / np.sqrt(len(query)) for y in keys]
        shares = np.exp(np.array(scores) - max(scores))
        shares /= shares.sum()
        value = sum(s * (w["W_V"][h] @ y + w["b_V"][h]) for s, y in zip(shares, keys, strict=True))
        total += w["W_O"][h] @ value
    return total


class TestFromAttention:
    @pytest.mark.parametrize("heads", [1, 3])
    def test_equals_textbook_attention_on_tokens(self, heads):
        # Exact for every finite set of tokens, biases included.
        rng = np.random.default_rng(heads)
        w = attention_weights(rng, heads, 2, 5, 3)
        A, b = rng.standard_normal((3, 3)), rng.standard_normal(3)
        p = gt.Parameters.from_attention(**w, A=A, b=b)
        tokens = rng.standard_normal((20, 3))
        expected = [A @ x + b + plain_attention(x, tokens, w) for x in tokens]
        np.testing.assert_allclose(velocity(p, tokens), expected, rtol=1e-12, atol=1e-12)

    def test_the_convention_of_B(self):
        # B = W_Kᵀ W_Q/√d_head: swapping queries and keys transposes it.
        rng = np.random.default_rng(0)
        w = attention_weights(rng, 1, 4, 2, 3)
        B = gt.Parameters.from_attention(**w).B[0]
        np.testing.assert_allclose(B, w["W_K"][0].T @ w["W_Q"][0] / 2.0)
        assert np.linalg.norm(B - B.T) > 0.1

    def test_the_key_bias_drops_out(self):
        w = attention_weights(np.random.default_rng(1), 2, 3, 2, 3)
        first = gt.Parameters.from_attention(**w)
        second = gt.Parameters.from_attention(**{**w, "b_K": 5 + w["b_K"]})
        for letter in ("A", "B", "V", "b", "beta"):
            np.testing.assert_array_equal(getattr(first, letter), getattr(second, letter))

    def test_two_dimensional_weights_are_one_head(self):
        w = attention_weights(np.random.default_rng(2), 1, 3, 2, 4)
        single = {k: v if k == "b_O" else v[0] for k, v in w.items()}
        p, q = gt.Parameters.from_attention(**single), gt.Parameters.from_attention(**w)
        assert p.B.shape == (4, 4)
        np.testing.assert_array_equal(p.B, q.B[0])
        np.testing.assert_array_equal(p.beta, q.beta[0])
        np.testing.assert_array_equal(p.b, q.b)

    @pytest.mark.parametrize(
        ("name", "shape", "words"),
        [
            ("W_K", (3, 4), r"`W_K` must have shape \(1, 2, 4\)"),
            ("W_V", (2, 3), r"`W_V` must have shape \(1, 2, 4\)"),
            ("W_O", (4, 5), r"`W_O` must have shape \(1, 4, 3\)"),
            ("b_Q", (3,), r"`b_Q` must have shape \(1, 2\)"),
            ("b_K", (1,), r"`b_K` must have shape \(1, 2\)"),
            ("b_V", (2,), r"`b_V` must have shape \(1, 3\)"),
            ("b_O", (3,), r"`b_O` must have shape \(4,\)"),
            ("b", (3,), r"`b` must have shape \(4,\)"),
        ],
    )
    def test_weights_must_fit(self, name, shape, words):
        w = {"W_Q": (2, 4), "W_K": (2, 4), "W_V": (3, 4), "W_O": (4, 3)}
        arrays = {key: np.ones(value) for key, value in w.items()} | {name: np.ones(shape)}
        with pytest.raises(InvalidShape, match=words):
            gt.Parameters.from_attention(**arrays)


class TestField:
    """The closed form against ratios of integrals, which know nothing of Gaussians."""

    @pytest.mark.parametrize("rank", [1, 2])
    @pytest.mark.parametrize("heads", [1, 2])
    @given(generators())
    def test_rates_equal_quadrature(self, heads, rank, rng):
        # V is general and B is not symmetric: a transposed B would show.
        mean, L = rng.uniform(-1, 1, 2), rng.uniform(-0.7, 0.7, (2, rank))
        A, b = rng.standard_normal((2, 2)), rng.standard_normal(2)
        made = [
            (
                rng.standard_normal((2, 2)),
                rng.uniform(-0.5, 0.5, (2, 2)),
                rng.uniform(-0.5, 0.5, 2),
            )
            for _ in range(heads)
        ]
        mean_rate, factor_rate = rates(mean, L, A, made, b)
        expected_mean, expected_covariance = tilting.rates(mean, L, A, made, b)
        half = factor_rate @ L.T
        scale = 1 + np.abs(expected_covariance).max() + np.abs(expected_mean).max()
        np.testing.assert_allclose(mean_rate, expected_mean, atol=1e-9 * scale)
        np.testing.assert_allclose(half + half.T, expected_covariance, atol=1e-9 * scale)

    def test_one_dimension_with_attention_weights(self):
        # Every weight and bias of two heads in d = 1, by quadrature of the textbook formula.
        w = attention_weights(np.random.default_rng(3), 2, 2, 2, 1)
        p = gt.Parameters.from_attention(**w)
        mean, L = np.array([0.4]), np.array([[0.7]])
        keys, weights = tilting.nodes(mean, L)

        def moved(x):
            total = w["b_O"][0]
            for h in range(2):
                query = w["W_Q"][h] @ x + w["b_Q"][h]
                scores = (keys @ w["W_K"][h].T + w["b_K"][h]) @ query / np.sqrt(2)
                tilt = weights * np.exp(scores)
                values = keys @ w["W_V"][h].T + w["b_V"][h]
                total = total + w["W_O"][h][0] @ (tilt @ values) / tilt.sum()
            return total

        x, share = tilting.nodes(mean, L, points=6)
        v = np.array([moved(xi) for xi in x])
        mean_rate, factor_rate = rates(mean, L, p.A, p.heads, p.b)
        assert mean_rate[0] == pytest.approx(share @ v, rel=1e-12)
        covariance_rate = 2 * (share * v) @ (x[:, 0] - mean[0])
        assert 2 * factor_rate[0, 0] * L[0, 0] == pytest.approx(covariance_rate, rel=1e-11)

    @given(st.data())
    def test_generator_and_rates_agree(self, data):
        law = data.draw(gaussians())
        p = data.draw(parameters(law.dim, heads=data.draw(st.sampled_from([None, 1, 3]))))
        M = generator(law.covariance, p.A, p.heads)
        _, factor_rate = rates(law.mean, law.factor, p.A, p.heads, p.b)
        scale = 1 + law.trace**1.5
        np.testing.assert_allclose(factor_rate, M @ law.factor, atol=1e-13 * scale)

    @given(st.data())
    def test_heads_add(self, data):
        law = data.draw(gaussians())
        p = data.draw(parameters(law.dim, heads=2))
        whole = rates(law.mean, law.factor, p.A, p.heads, p.b)
        parts = [
            rates(law.mean, law.factor, A, [head], b)
            for A, head, b in zip((p.A, 0 * p.A), p.heads, (p.b, 0 * p.b), strict=True)
        ]
        for i in range(2):
            np.testing.assert_allclose(whole[i], parts[0][i] + parts[1][i], atol=1e-12)

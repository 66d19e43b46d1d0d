"""The dictionary between Kalman-Bucy filters and parameters with V = v I, both ways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from scipy.integrate import solve_ivp

import gtcontrol as gt
from gtcontrol.errors import (
    IndefiniteCovariance,
    InvalidMethod,
    InvalidNumber,
    InvalidShape,
    NotFinite,
    NotSymmetric,
)

seeds = st.integers(0, 2**32 - 1)
dims = st.integers(1, 4)


def positive(rng, n):
    X = rng.standard_normal((n, n))
    return X @ X.T + 0.1 * np.eye(n)


def model_of(seed, d, p, *, noise=False):
    rng = np.random.default_rng(seed)
    Q = rng.standard_normal((d, d)) if noise else None
    return gt.KalmanModel(
        rng.standard_normal((d, d)),
        rng.standard_normal((p, d)),
        positive(rng, p),
        None if Q is None else Q @ Q.T,
    )


@given(seeds, dims, st.integers(1, 5), st.floats(-3, 3), st.booleans())
def test_there_and_back(seed, d, p, value, noise):
    assume(abs(value) > 1e-3)
    model = model_of(seed, d, p, noise=noise)
    rng = np.random.default_rng(seed + 1)
    skew = rng.standard_normal((d, d))
    made = model.parameters(value, skew=skew - skew.T, b=rng.standard_normal(d))
    K = value * (made.B + made.B.T)
    information = model.C.T @ np.linalg.inv(model.R) @ model.C
    np.testing.assert_allclose(K, -information, rtol=1e-9, atol=1e-11 * np.abs(information).max())
    assert np.array_equal(made.V, value * np.eye(d))
    again = gt.KalmanModel.from_parameters(made)
    np.testing.assert_array_equal(again.A, model.A)
    assert np.array_equal(again.R, np.eye(len(again.C)))
    assert len(again.C) == min(d, p)  # the rank of K
    size = np.abs(information).max()
    np.testing.assert_allclose(again.C.T @ again.C, information, rtol=0, atol=1e-12 * size)
    if noise:
        np.testing.assert_array_equal(again.noise, model.noise)
    else:
        assert again.noise is None


@given(seeds, dims)
def test_heads_add_up_and_signs_of_values_do_not_matter(seed, d):
    rng = np.random.default_rng(seed)
    first, second = (gt.KalmanModel(np.zeros((d, d)), rng.standard_normal((2, d))) for _ in "ab")
    one, other = first.parameters(2.0), second.parameters(-0.5)
    both = gt.Parameters(B=np.array([one.B, other.B]), V=np.array([one.V, other.V]))
    read = gt.KalmanModel.from_parameters(both)
    expected = first.information + second.information
    np.testing.assert_allclose(
        read.information, expected, rtol=0, atol=1e-12 * np.abs(expected).max()
    )


def test_the_antisymmetric_part_leaves_the_covariance_and_moves_the_mean():
    """m' = (A + v I) m + v S B m + b: a skew part of B adds v S skew m, and nothing to S."""
    model = model_of(3, 3, 2)
    skew = np.array([[0.0, 0.7, -0.3], [-0.7, 0.0, 0.5], [0.3, -0.5, 0.0]])
    v = -1.5
    start = gt.Gaussian([1.0, -1.0, 0.5], np.array([[1.0, 0, 0], [0.2, 0.5, 0], [0, 0.1, 0.3]]))
    plain = gt.simulate(start, model.parameters(v), 0.8)
    turned = gt.simulate(start, model.parameters(v, skew=skew), 0.8)
    np.testing.assert_allclose(turned.final.covariance, plain.final.covariance, rtol=1e-10)

    def rate(t, state):
        m, S = state[:3], state[3:].reshape(3, 3)
        K = -model.information
        change = model.A @ S + S @ model.A.T + S @ K @ S
        moved = model.A @ m + v * m + 0.5 * S @ K @ m + v * S @ skew @ m
        return np.concatenate([moved, change.ravel()])

    begin = np.concatenate([start.mean, start.covariance.ravel()])
    end = solve_ivp(rate, (0, 0.8), begin, rtol=1e-12, atol=1e-13, method="DOP853").y[:, -1]
    np.testing.assert_allclose(turned.final.mean, end[:3], rtol=1e-9)
    np.testing.assert_allclose(turned.final.covariance.ravel(), end[3:], rtol=1e-9)
    assert np.linalg.norm(turned.final.mean - plain.final.mean) > 0.01


@given(seeds, dims, st.integers(1, 3))
def test_the_gain_is_that_of_the_textbook(seed, d, p):
    model = model_of(seed, d, p)
    S = positive(np.random.default_rng(seed + 2), d)
    expected = S @ model.C.T @ np.linalg.inv(model.R)
    gain = model.gain(S)
    assert gain.shape == (d, p)
    np.testing.assert_allclose(gain, expected, rtol=1e-8, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_allclose(gain @ model.C, S @ model.information, rtol=1e-7, atol=1e-9)


def test_no_attention_is_a_filter_without_measurements():
    read = gt.KalmanModel.from_parameters(gt.Parameters(A=[[1.0, 2.0], [0.0, 1.0]]))
    assert read.C.shape == (0, 2)
    assert not read.information.any()


def test_numbers_and_vectors_are_taken():
    model = gt.KalmanModel([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0], 0.25)
    assert model.C.shape == (1, 2)
    np.testing.assert_array_equal(model.information, [[4.0, 4.0], [4.0, 4.0]])
    assert "measurements=1" in repr(model)


@pytest.mark.parametrize(
    ("B", "eigenvalue", "direction"),
    [
        ([[0.5, 0.0], [0.0, -0.5]], r"1\b", r"\(1, 0\)"),
        ([[0.0, 1.0], [0.0, 0.0]], r"1\b", r"\(0\.7071, 0\.7071\)"),
        ([[-1.0, 0.0], [0.0, 1e-9]], "2e-09", r"\(0, 1\)"),
    ],
)
def test_a_positive_eigenvalue_is_named(B, eigenvalue, direction):
    with pytest.raises(InvalidMethod, match=f"positive eigenvalue {eigenvalue}") as caught:
        gt.KalmanModel.from_parameters(gt.Parameters(V=np.eye(2), B=B))
    text = str(caught.value).replace("-0, ", "0, ").replace("-", "")
    assert "certify" in text
    assert any(d in text for d in (direction.replace("\\", ""),))


def test_a_value_matrix_that_is_no_multiple_of_the_identity_is_refused():
    p = gt.Parameters(
        V=np.array([np.eye(2), [[1.0, 0.25], [0.0, 1.0]]]), B=np.array([-np.eye(2)] * 2)
    )
    with pytest.raises(InvalidMethod, match=r"head 2 differs from one by 0\.25"):
        gt.KalmanModel.from_parameters(p)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([[1.0, 2.0]], [1.0, 1.0]), InvalidShape, "`A`"),
        ((np.eye(2), [[1.0, 1.0, 1.0]]), InvalidShape, "2 columns"),
        ((np.eye(2), [1.0, np.nan]), NotFinite, "`C`"),
        ((np.eye(2), [1.0, 1j]), InvalidShape, "real numbers"),
        ((1j * np.eye(2), [1.0, 1.0]), InvalidShape, "real numbers"),
        ((np.eye(2), np.eye(2), [[1.0, 0.5], [0.0, 1.0]]), NotSymmetric, "`R`"),
        ((np.eye(2), np.eye(2), [[1.0, 0.0], [0.0, 0.0]]), IndefiniteCovariance, "eigenvalue is 0"),
        ((np.eye(2), np.eye(2), [[1.0, 0.0], [0.0, -2.0]]), IndefiniteCovariance, "-2"),
        ((np.eye(2), [1.0, 1.0], 1.0, -np.eye(2)), IndefiniteCovariance, "`noise`"),
        ((np.eye(2), [1.0, 1.0], np.eye(2)), InvalidShape, r"\(1, 1\)"),
    ],
)
def test_bad_models_are_refused_in_one_line(arguments, error, words):
    with pytest.raises(error, match=words) as caught:
        gt.KalmanModel(*arguments)
    assert "\n" not in str(caught.value)


def test_bad_translations_are_refused():
    model = gt.KalmanModel(np.eye(2), np.eye(2))
    with pytest.raises(InvalidNumber, match="must not be 0"):
        model.parameters(0.0)
    with pytest.raises(InvalidShape, match="antisymmetric; it is off by 2"):
        model.parameters(skew=np.eye(2))

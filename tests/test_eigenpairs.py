"""Matrices with proved errors, and left eigenpairs: against mpmath, and against what must fail."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from gtcontrol.arithmetic import balls, matrices
from gtcontrol.arithmetic.balls import ball, precision
from gtcontrol.arithmetic.eigenpairs import antistable, exact_left_eigenpair, left_eigenpair
from gtcontrol.arithmetic.floats import exact
from gtcontrol.arithmetic.isotropy import isotropic_near
from gtcontrol.arithmetic.matrices import BallMatrix, FloatMatrix

BITS = 200
LARGE = matrices.SMALL + 8


def random(d, seed=0):
    return np.random.default_rng(seed).standard_normal((d, d))


def approximate(V, j):
    """Left eigenpair j of NumPy, scaled to have an entry that is exactly 1."""
    values, vectors = np.linalg.eig(V.T)
    w = vectors[:, j] / vectors[np.argmax(np.abs(vectors[:, j])), j]
    w[np.argmax(np.abs(w))] = 1.0
    return complex(values[j]), w


def check_residual(V, pair):
    """The enclosures satisfy the real form of wV = λw: both residuals contain zero."""
    p, q, a, b = pair.p, pair.q, pair.real, pair.imaginary
    first = V.T @ p - p.times(a) + q.times(b)
    second = V.T @ q - q.times(a) - p.times(b)
    for part in (first, second):
        assert all(part.entry(i, 0).contains(0) for i in range(part.shape[0]))
        assert max(float(part.entry(i, 0).rad()) for i in range(part.shape[0])) < 1e-6


@pytest.mark.parametrize("d", [1, 2, 3, 7, LARGE])
def test_every_pair_of_a_random_matrix_is_isolated(d):
    V = random(d, d)
    with precision(BITS):
        table = matrices.enclose(V)
        for j in range(min(d, 6)):
            value, w = approximate(V, j)
            pair = left_eigenpair(table, value, w)
            assert pair is not None
            check_residual(table, pair)
            assert pair.is_real == (value.imag == 0)
            assert abs(float(pair.real.mid()) - value.real) < 1e-12 * d


def test_the_eigenvalue_agrees_with_mpmath_to_forty_digits():
    V = np.array([[1.0, 0.5], [0.2, 0.8]])
    with precision(BITS), mpmath.workdps(60):
        values, _ = mpmath.eig(mpmath.matrix(V.tolist()))
        truth = max(mpmath.re(x) for x in values)
        pair = left_eigenpair(
            matrices.enclose(V), *approximate(V, int(np.argmax(np.linalg.eig(V.T)[0])))
        )
        assert pair is not None
        assert (
            abs(mpmath.mpf(pair.real.mid().str(50, radius=False)) - truth) < mpmath.mpf(10) ** -45
        )
        assert float(pair.real.rad()) < 1e-50


def test_a_multiple_eigenvalue_is_never_isolated_but_others_beside_it_are():
    V = np.diag([2.0, 2.0, 1.0])
    with precision(BITS):
        table = matrices.enclose(V)
        assert left_eigenpair(table, 2.0 + 0j, np.array([1.0, 0, 0])) is None
        assert left_eigenpair(table, 1.0 + 0j, np.array([0.0, 0, 1])) is not None
        assert exact_left_eigenpair([V], 2.0 + 0j, np.array([1.0, 0, 0])) is not None
        jordan = matrices.enclose(np.array([[1.0, 1], [0, 1]]))
        assert left_eigenpair(jordan, 1.0 + 0j, np.array([0.0, 1])) is None


@pytest.mark.parametrize("d", [3, LARGE])
def test_a_wrong_approximation_is_refused(d):
    V = random(d, 1)
    value, w = approximate(V, 0)
    with precision(BITS):
        table = matrices.enclose(V)
        assert left_eigenpair(table, value * (1 + 1e-5), w) is None
        assert left_eigenpair(table, value, np.where(w == 1.0, w, w + 1e-5)) is None
        assert left_eigenpair(table, value, 2.0 * w) is None
        assert left_eigenpair(table, value, np.full(d, np.nan)) is None
        assert left_eigenpair(matrices.enclose(np.zeros((d, d))), 0j, w) is None


def test_an_exact_pair_must_be_exact():
    V = np.array([[1.0, -1], [1, 1]])
    with precision(BITS):
        w = np.array([1.0, 1j])
        pair = exact_left_eigenpair([V], 1 + 1j, w)
        other = exact_left_eigenpair([V], 1 - 1j, w)
        assert (pair is None) != (other is None)
        assert exact_left_eigenpair([V], 1 + (1 + 2**-52) * 1j, w) is None


@pytest.mark.parametrize("d", [4, LARGE])
def test_a_lyapunov_matrix_proves_the_half_plane(d):
    V = np.eye(d) + 0.4 * random(d, 3) / np.sqrt(d)
    with precision(BITS):
        unit = matrices.enclose(np.eye(d))
        assert antistable(matrices.enclose(V), unit)
        V[0, 0] -= 5.0
        assert not antistable(matrices.enclose(V), unit)
        assert not antistable(matrices.enclose(-V), unit)


@given(st.integers(0, 10**6), st.sampled_from([2, 5, LARGE]), st.integers(-8, 8))
def test_large_and_small_matrices_enclose_the_same_numbers(seed, d, power):
    """Both kinds contain the exact product, inverse and sum, computed in exact fractions."""
    A = random(d, seed) * 10.0**power
    x = np.random.default_rng(seed).standard_normal((d, 1))
    with precision(400):
        big = FloatMatrix(exact(A))
        small = BallMatrix(balls.balls(A))
        right = FloatMatrix(exact(x)), BallMatrix(balls.balls(x))
        pairs = [
            (big @ right[0], small @ right[1]),
            ((big + big.T).times(ball(0.3)), (small + small.T).times(ball(0.3))),
        ]
        solved = big.solve(right[0])
        if solved is not None:
            pairs.append((solved, small.solve(right[1])))
        for wide, narrow in pairs:
            rows, columns = wide.shape
            for i in range(0, rows, 7):
                for j in range(0, columns, 5):
                    assert wide.entry(i, j).overlaps(narrow.entry(i, j))


@pytest.mark.parametrize("d", [5, LARGE])
def test_positive_definiteness_is_decided_near_the_boundary_in_any_scale(d):
    R = random(d, 2)
    scale = np.ldexp(1.0, np.random.default_rng(1).integers(-30, 30, d))
    M = R @ R.T + np.eye(d)
    low = np.linalg.eigvalsh(M)[0]
    for shift, expected in ((0.999, True), (1.001, False)):
        table = scale[:, None] * (M - shift * low * np.eye(d)) * scale
        with precision(BITS):
            assert matrices.enclose(0.5 * (table + table.T)).positive_definite() is expected


@pytest.mark.parametrize("d", [6, LARGE])
def test_common_isotropic_vectors_are_enclosed(d):
    forms = [random(d, s) + random(d, s).T for s in range(3)]
    x = np.random.default_rng(0).standard_normal(d)
    for _ in range(50):
        G = np.stack([f @ x for f in forms], axis=1)
        x = x - np.linalg.lstsq(G.T, 0.5 * x @ G, rcond=None)[0]
    with precision(BITS):
        tables = [matrices.enclose(f) for f in forms]
        found = isotropic_near(tables, x)
        assert found is not None
        for table in tables:
            assert ((found.T @ table) @ found).entry(0, 0).contains(0)
        assert isotropic_near(tables, np.random.default_rng(5).standard_normal(d)) is None
        assert isotropic_near([matrices.enclose(np.eye(d))], x) is None
        assert isotropic_near(tables, np.zeros(d)) is None

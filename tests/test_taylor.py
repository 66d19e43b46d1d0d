"""Rigorous Taylor steps against closed forms and mpmath."""

import math

import mpmath
import numpy as np
import pytest
from flint import arb, arb_mat
from hypothesis import assume, given, settings

import gtcontrol as gt
from gtcontrol.arithmetic import balls, taylor
from gtcontrol.arithmetic.eigenpairs import enclosed_left_eigenpair, is_left_eigenvector
from gtcontrol.arithmetic.elementary import artanh_quotient, log1p_quotient, riccati_time
from gtcontrol.certification.bracket.covariance import CovarianceFlow
from gtcontrol.certification.bracket.plan import order_for
from tests.oracles import scalar_attention
from tests.strategies import factor, generators

BITS = 128


class Tangent:
    """x' = 1 + x², solved by tan t: a flow that shares no code with that of the covariance."""

    linear = arb(0)
    quadratic = arb(1)

    def coefficients(self, centre, order):
        x = [centre[0, 0]]
        for k in range(order):
            total = arb(1) if k == 0 else arb(0)
            for j in range(k + 1):
                total += x[j] * x[k - j]
            x.append(total / (k + 1))
        return [arb_mat([[c]]) for c in x]

    def logarithmic_norm(self, coefficient, first):
        return 2 * coefficient[0, 0]


def march(flow, tube, order, steps):
    for step in steps:
        tube = taylor.advance(flow, taylor.expand(flow, tube, order), step)
        assert tube is not None
    return tube


def tangent(start, steps, order=30):
    return march(Tangent(), taylor.Tube(arb_mat([[start]]), arb(0)), order, steps)


class TestTangent:
    def test_the_tube_contains_the_tangent(self):
        with balls.precision(BITS):
            tube = tangent(0, [0.125] * 8)
            exact = arb(1).tan()
            assert tube.matrix[0, 0].contains(exact)
            assert tube.error < 1e-20

    @pytest.mark.parametrize("order", [3, 6, 12])
    def test_a_low_order_gives_a_wide_tube_that_still_contains(self, order):
        with balls.precision(BITS):
            tube = tangent(0, [0.125] * 6, order)
            distance = abs(arb("0.75").tan() - tube.centre[0, 0])
            assert distance < tube.error
            # ... and the bound is of the size of what it bounds.
            assert tube.error < 3e3 * distance

    def test_errors_grow_as_the_derivative_of_the_flow(self):
        # d tan(t + c)/dc: an error e at 0 becomes e (1 + tan² t).
        with balls.precision(BITS):
            start = taylor.Tube(arb_mat([[0]]), arb("1e-12"))
            tube = march(Tangent(), start, 30, [0.125] * 8)
            growth = float(tube.error) / 1e-12
            assert 1 + math.tan(1) ** 2 < growth < 1.05 * (1 + math.tan(1) ** 2)

    def test_no_step_goes_beyond_the_pole(self):
        with balls.precision(BITS):
            tube = tangent(0, [0.125] * 12)
            assert taylor.advance(Tangent(), taylor.expand(Tangent(), tube, 30), 0.125) is None

    def test_an_error_as_large_as_the_distance_to_the_pole_is_refused(self):
        with balls.precision(BITS):
            wide = taylor.Tube(arb_mat([[0]]), arb(10))
            assert taylor.advance(Tangent(), taylor.expand(Tangent(), wide, 30), 0.25) is None

    def test_step_sizes_follow_the_radius_of_convergence(self):
        with balls.precision(BITS):
            for t, left in ((0.0, math.pi / 2), (1.25, math.pi / 2 - 1.25)):
                tube = tangent(0, [t] if t < 0.2 else [0.125] * int(t / 0.125))
                order = order_for(BITS)
                step = taylor.step_size(taylor.expand(Tangent(), tube, order), 100)
                # The coefficients of tan fall like left^-k: step ≈ left 2^(-100/order).
                assert step == pytest.approx(left * 2 ** (-100 / order), rel=0.1)
                assert math.ldexp(step, 60) % 1 == 0  # few bits


def random_flow(rng, d):
    A, B = 0.5 * rng.standard_normal((2, d, d))
    v = float(rng.choice([-1.0, 0.7]))
    return gt.Parameters(A=A, B=B, V=v * np.eye(d)), A, v * (B + B.T)


class TestCovariance:
    @settings(max_examples=10)
    @given(generators())
    def test_tubes_contain_the_closed_form(self, rng):
        d = int(rng.integers(1, 4))
        p, A, K = random_flow(rng, d)
        L = factor(rng, d, int(rng.integers(1, d + 1)), 0.5)
        end = scalar_attention.first_crossing_free(A, K, L, 0.5)
        assume(end > 0.01)
        coordinates = np.eye(d) + 0.2 * rng.standard_normal((d, d))
        with balls.precision(BITS):
            flow = CovarianceFlow(p, coordinates)
            tube = taylor.Tube.around(flow.covariance(L))
            tube = march(flow, tube, 40, [end / 16] * 16)
            enclosed = flow.original(tube.matrix)
        expected = scalar_attention.covariance(A, K, L @ L.T, end)
        size = np.abs(expected).max()
        assert np.abs(balls.middle(enclosed) - expected).max() < 1e-9 * size
        assert balls.radius(enclosed) < 1e-12 * size

    def test_two_precisions_and_two_coordinates_overlap(self):
        rng = np.random.default_rng(5)
        d = 3
        A, B, V = rng.standard_normal((3, d, d))
        p = gt.Parameters(A=A, B=B, V=V, noise=0.3 * np.eye(d))
        L = 0.4 * rng.standard_normal((d, 2))
        found = []
        for bits, order, n in ((90, 20, 64), (200, 60, 32)):
            with balls.precision(bits):
                T = np.eye(d) + (0.3 if bits == 90 else 0.0) * rng.standard_normal((d, d))
                flow = CovarianceFlow(p, T)
                tube = taylor.Tube.around(flow.covariance(L))
                found.append(flow.original(march(flow, tube, order, [0.25 / n] * n).matrix))
        assert found[0].overlaps(found[1])
        assert balls.radius(found[1]) < 1e-30 < balls.radius(found[0]) < 1e-12

    def test_the_logarithmic_norm_is_that_of_the_linearised_map(self):
        """Against the matrix of D -> DF(S)[D] on all matrices, made by differences."""
        rng = np.random.default_rng(7)
        d = 3
        A, S = rng.standard_normal((2, d, d))
        S = S + S.T
        V, B = rng.standard_normal((2, 2, d, d))
        with balls.precision(BITS):
            flow = CovarianceFlow(gt.Parameters(A=A, V=V, B=B), np.eye(d))
            bound = float(flow.logarithmic_norm(balls.balls(S), first=True))

        def field(X):
            half = (A + sum(v @ X @ b for v, b in zip(V, B, strict=True))) @ X
            return half + half.T

        values = []
        for _ in range(400):
            D = rng.standard_normal((d, d))
            D = D + D.T
            for _ in range(60):  # power iteration on the symmetric part, shifted
                image = 0.5 * (field(S + D) - field(S - D))
                back = adjoint(A, V, B, S, D)
                D = 0.5 * (image + back) + 40 * D
                D /= np.linalg.norm(D)
            values.append(np.sum(D * 0.5 * (field(S + D) - field(S - D))))
            if len(values) > 2:
                break
        assert bound == pytest.approx(max(values), rel=1e-6)


def adjoint(A, V, B, S, D):
    """Adjoint of D -> DF(S)[D] for the inner product tr(D'E), projected to symmetric matrices."""
    M = A + sum(v @ S @ b for v, b in zip(V, B, strict=True))
    half = M.T @ D + sum(v.T @ D @ (b @ S).T for v, b in zip(V, B, strict=True))
    return half + half.T


def near(exact):
    """Ball that contains a number of mpmath and all within 1e-50 of it, relatively."""
    middle = arb(mpmath.nstr(exact, 60))
    return middle + arb(0, abs(middle) * arb("1e-50"))


class TestElementary:
    @pytest.mark.parametrize("x", [-0.9, -0.25, -1e-3, -1e-30, 0.0, 1e-20, 0.2, 0.25, 3.0, 1e9])
    def test_quotients_against_mpmath(self, x):
        with balls.precision(200), mpmath.workprec(260):
            exact = mpmath.log1p(x) / x if x else mpmath.mpf(1)
            made = log1p_quotient(arb(x))
            assert made.overlaps(near(exact))
            assert made.rel_accuracy_bits() > 150
            if x < 1:
                root = mpmath.sqrt(x)
                exact = (mpmath.atanh(root) / root).real if x else mpmath.mpf(1)
                made = artanh_quotient(arb(x))
                assert made.overlaps(near(exact))
                assert made.rel_accuracy_bits() > 150

    def test_balls_around_zero(self):
        made = log1p_quotient(arb(0, 0.01))
        for x in (-0.01, 1e-9, 0.01):
            assert made.contains(log1p_quotient(arb(x)))

    def test_riccati_time(self):
        # y' = y² + a y from 1: B1 of the tests of the flow, T = ln 3/2 with c = 2, a = 1.
        assert riccati_time(arb(2), arb(1), arb(1)).overlaps(arb("1.5").log())
        assert riccati_time(arb(1), arb(-1), arb(1)) is None
        assert riccati_time(arb(-1), arb(1), arb(1)) is None


class TestEigenvectors:
    def test_exact_ones(self):
        J = np.array([[0.0, -1.0], [1.0, 0.0]])
        w = np.array([[1.0, 0.0], [0.0, 1.0]])  # (1, i)
        assert is_left_eigenvector([np.eye(2), 2 * J], w, np.array([1.0, 2.0]))
        assert not is_left_eigenvector([np.eye(2), 2 * J], w, np.array([1.0, -2.0]))
        assert not is_left_eigenvector([np.eye(2), 2 * J], 0 * w, np.array([1.0, 2.0]))
        shear = np.array([[1.0, 1.0], [0.0, 2.0]])
        left, right = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 0.0]])
        assert is_left_eigenvector([shear], left, np.array([2.0, 0.0]))
        assert not is_left_eigenvector([shear], right, np.array([1.0, 0.0]))

    def test_enclosures(self):
        V = np.array([[1.0, 0.5], [0.2, 0.8]])
        with balls.precision(BITS):
            (a, b), real, _ = enclosed_left_eigenpair(V, np.array([1.2, 0.0]))
            with mpmath.workdps(60):  # the larger root for these floats
                (p, q), (r, t) = [[mpmath.mpf(x) for x in row] for row in V.tolist()]
                exact = (p + t + mpmath.sqrt((p - t) ** 2 + 4 * q * r)) / 2
            assert float(a) == pytest.approx(1.23166247903553998, rel=1e-15)
            assert abs(a - arb(mpmath.nstr(exact, 50))) < arb("1e-35")
            assert b.contains(0)
            w = balls.column(real).transpose()
            rest = w * balls.balls(V) - w * a
            assert all(x.contains(0) and x.rad() < 1e-30 for x in rest.entries())
            assert enclosed_left_eigenpair(np.eye(2), np.array([1.0, 0.0])) is None

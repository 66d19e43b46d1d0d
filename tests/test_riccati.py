"""Riccati equations: hard cases with known answers, laws, honesty of the estimates."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg as sl
from hypothesis import assume, given, settings, strategies as st

import gtcontrol as gt
from gtcontrol.errors import InvalidNumber, InvalidShape, NotFinite, NotSymmetric, OutOfScale
from gtcontrol.riccati_equations.boundary import on_boundary
from gtcontrol.riccati_equations.equation import balanced
from gtcontrol.riccati_equations.extended import solved
from gtcontrol.riccati_equations.judgement import RiccatiEquation, definiteness_of, judge
from gtcontrol.riccati_equations.pairs import Pair, columns_of, product, rows_of
from gtcontrol.riccati_equations.residual import Data
from gtcontrol.riccati_flow import lyapunov
from tests.benchmarks.riccati import consumption
from tests.oracles import riccati as oracle
from tests.strategies import generators, invertible, orthogonal

SUCCESS = gt.RiccatiStatus.SUCCESS
MARGINAL = gt.RiccatiStatus.MARGINAL
NONE = gt.RiccatiStatus.NO_STABILIZING_SOLUTION
UNIT = 2.0**-53

#: Infeasible: the Hamiltonian matrix has four eigenvalues on the axis (arXiv:1505.04861).
INFEASIBLE = (
    [[1, -1, 1], [0, 1, 1], [0, 0, 1]],
    [[1, 0], [1, 0], [0, 1]],
    [[6, -2, -2], [-2, -3, -2], [-2, -2, -3.9]],
    np.diag([-10, 0.1]),
)


def integrators(n: int = 21) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    unit = np.eye(n)
    return np.diag(np.ones(n - 1), 1), unit[:, -1:], np.diag(unit[0])


def right(made: gt.RiccatiSolution, truth: mp.matrix) -> None:
    """Correctly rounded, and known to be."""
    assert made.status is SUCCESS
    error = oracle.relative_error(made.X, truth)
    assert error <= UNIT
    assert error <= 10 * made.error_estimate
    assert made.error_estimate <= max(10 * error, UNIT)


class TestHardCases:
    """Public examples on which solvers fail silently; digits to the tolerance stated."""

    def test_nearly_unreached(self) -> None:
        made = gt.riccati(np.diag([1.0, -2.0]), [1e-6, 0.0], np.ones((2, 2)))
        right(made, oracle.nearly_unreached(1e-6))
        assert made.X[0, 0] == pytest.approx(2.000000000001e12, rel=1e-12)
        assert made.X[0, 1] == pytest.approx(1 / 3, rel=1e-12)
        assert made.X[1, 1] == pytest.approx(0.25, rel=1e-12)
        assert made.residual <= 1e-15

    def test_ill_conditioned_hamiltonian(self) -> None:
        a = 1 + 1e-7
        made = gt.riccati([[a, 1], [1, a]], np.eye(2), np.eye(2))
        right(made, oracle.circulant(a))
        assert made.X[0, 0] == made.X[1, 1] == pytest.approx(2.618034133471, rel=1e-12)
        assert made.X[0, 1] == pytest.approx(1.618034033471, rel=1e-12)

    def test_chain_of_integrators(self) -> None:
        A, B, Q = integrators()
        made = gt.riccati(A, B, Q)
        truth = oracle.chain(21)
        assert oracle.residual(truth, A, B, Q, np.eye(1)) < 1e-70
        right(made, truth)
        assert made.X[0, 20] == 1.0
        assert made.X[0, 0] == made.X[20, 20] == pytest.approx(13.3814899996548, rel=1e-14)
        assert made.X[10, 10] == pytest.approx(521780554.344333, rel=1e-14)
        assert np.trace(made.X) == pytest.approx(2463965790.593076, rel=1e-14)
        assert made.definite is gt.Definiteness.POSITIVE_DEFINITE
        assert made.eigenvalues == pytest.approx((4.140911e-10, 2414927394.63329), rel=1e-6)
        assert made.precision > 53
        # The rounded matrix is indefinite; the factor keeps what it was rounded from.
        assert np.linalg.matrix_rank(made.factor / np.linalg.norm(made.factor, axis=0)) == 21
        size = np.linalg.norm(made.X)
        assert np.linalg.norm(made.factor @ made.factor.T - made.X) <= 1e-15 * size
        # Closed loop: the stable roots of s^42 = -1.
        roots = np.exp(1j * np.pi * (2 * np.arange(21) + 22) / 42)
        gaps = np.abs(made.spectrum[:, None] - roots)
        assert np.max(np.min(gaps, axis=0)) < 1e-13

    def test_smallest_eigenvalue_of_the_chain_in_fifty_digits(self) -> None:
        with mp.workdps(60):
            lowest = 1 / max(mp.eigsy(oracle.chain(21) ** -1, eigvals_only=True))
        assert gt.riccati(*integrators()).lowest == pytest.approx(float(lowest), rel=1e-14)

    def test_infeasible(self) -> None:
        made = gt.riccati(*INFEASIBLE)
        assert made.status is NONE
        assert made.X is made.factor is made.gain is made.definite is None
        assert "4 of its 6 eigenvalues on the imaginary axis" in made.reason
        assert "±1.58663i, ±6.05058i" in made.reason

    def test_discrete_with_a_wrong_root_near(self) -> None:
        A, B, Q, R, S = consumption()
        made = gt.riccati(A, B, Q, R, S, discrete=True)
        right(made, oracle.dare_recursion(A, B, Q, R, S, 1500))
        assert made.X.ravel() == pytest.approx(
            [15.94687678, -2.38748478, -2.38748478, 0.81622831], rel=1e-8
        )
        assert np.abs(made.spectrum) == pytest.approx([0.948684, 0.948683], abs=1e-6)

    @pytest.mark.parametrize("n", [2, 4, 6, 8, 12, 20])
    def test_integers(self, n: int) -> None:
        made = gt.riccati(np.diag(np.arange(1.0, n + 1)), np.ones(n))
        truth = oracle.cauchy(n)
        assert made.status is SUCCESS
        assert oracle.relative_error(made.X, truth) <= UNIT
        assert made.definite is gt.Definiteness.POSITIVE_DEFINITE
        assert made.spectrum == pytest.approx(-np.arange(1.0, n + 1), rel=1e-5)
        traces = {2: 54, 4: 47500, 6: 46027170, 8: 46665405720}
        if n in traces:
            assert np.trace(made.X) == traces[n]
            assert made.error_estimate < 1e-17
        assert float(made.lowest) == pytest.approx(_lowest(truth), rel=1e-12)


def _lowest(truth: mp.matrix) -> float:
    with mp.workdps(80):
        return float(min(mp.eigsy(truth, eigvals_only=True)))


EYE = np.eye(2)


class TestBoundary:
    """Modes on the imaginary axis, or beside it: where solvers return zero, or anything."""

    @pytest.mark.parametrize(
        ("A", "X"),
        [
            (np.diag([1.0, 0.0]), np.diag([2.0, 0.0])),
            (np.zeros((2, 2)), np.zeros((2, 2))),
            ([[0, 1], [-1, 0]], np.zeros((2, 2))),
            ([[0, 1], [0, 0]], np.zeros((2, 2))),
            ([[0, 1, 0], [-1, 0, 0], [0, 0, 1]], np.diag([0.0, 0.0, 2.0])),
        ],
    )
    def test_unseen_modes(self, A: np.ndarray, X: np.ndarray) -> None:
        made = gt.riccati(A, np.eye(len(X)))
        assert made.status is MARGINAL
        np.testing.assert_array_equal(made.X, X)
        assert made.rank == np.linalg.matrix_rank(X)
        assert "imaginary axis" in made.reason
        assert "like a power of time" in made.reason
        assert made.error_estimate <= UNIT
        assert np.max(made.spectrum.real) == 0.0

    def test_undetectable(self) -> None:
        made = gt.riccati(np.diag([1.0, 2.0]), [1.0, 0.0])
        assert made.status is NONE
        assert "unstable mode λ = 2 in the direction (0, 1)" in made.reason
        assert made.X is None

    def test_continuum(self) -> None:
        made = gt.riccati(np.diag([1.0, 0.0]), [1.0, 0.0])
        assert made.status is MARGINAL
        assert "continuum" in made.reason
        np.testing.assert_array_equal(made.X, np.diag([2.0, 0.0]))
        np.testing.assert_array_equal(np.abs(made.kernel), [[0.0], [1.0]])
        for c in (-3.0, 1.0, 7.0):
            other = made.X + c * made.kernel @ made.kernel.T
            assert judge(made.equation, other).residual == 0.0

    @pytest.mark.parametrize("rate", [1e-14, 1e-12, 1e-8])
    def test_slow_unstable_mode(self, rate: float) -> None:
        made = gt.riccati(np.diag([1.0, rate]), EYE)
        assert made.status is SUCCESS
        np.testing.assert_allclose(made.X, np.diag([2.0, 2 * rate]), rtol=1e-15)
        assert made.definite is gt.Definiteness.POSITIVE_DEFINITE
        assert f"time constant {1 / rate:.6g}" in made.reason

    @pytest.mark.parametrize("rate", [1e-14, 1e-12, 1e-8])
    def test_slow_stable_mode(self, rate: float) -> None:
        made = gt.riccati(np.diag([1.0, -rate]), EYE)
        assert made.status is SUCCESS
        np.testing.assert_array_equal(made.X, np.diag([2.0, 0.0]))
        assert made.definite is gt.Definiteness.POSITIVE_SEMIDEFINITE
        assert made.rank == 1
        assert f"time constant {1 / rate:.6g}" in made.reason

    def test_a_mode_closer_than_rounding_enters_the_estimate(self) -> None:
        made = gt.riccati(np.diag([1.0, 1e-16]), EYE)
        assert made.status is MARGINAL
        assert made.error_estimate == pytest.approx(1e-16, rel=1e-6)

    def test_cost_of_an_unreached_mode(self) -> None:
        made = gt.riccati(np.diag([1.0, 0.0]), [1.0, 0.0], EYE)
        assert made.status is NONE
        assert "grows without bound" in made.reason

    def test_a_defective_mode_far_from_the_axis_is_not_marginal(self) -> None:
        """Rounding may move the eigenvalues of one Jordan block far, but not to the axis."""
        A = np.eye(14) + np.diag(np.ones(13), 1)
        made = gt.riccati(A, np.eye(14)[:, -1])
        assert made.status is SUCCESS
        assert made.definite is gt.Definiteness.POSITIVE_DEFINITE
        assert made.rank == 14

    def test_a_subspace_that_is_no_graph(self) -> None:
        made = gt.riccati(
            [[0.0, -2.0], [0.0, 2.0]], [[1.0, 0.0], [-1.0, 1.0]], -2 * np.ones((2, 2)),
            discrete=True,
        )  # fmt: skip
        assert made.status is NONE
        assert "not the graph of a matrix" in made.reason

    def test_eigenvalues_that_meet_on_the_axis(self) -> None:
        """x² - 2x + 1 = 0 has the double root 1; a little less weight and there is none."""
        made = gt.riccati([[1.0]], [1.0], -1.0)
        assert made.status is MARGINAL
        assert made.X.item() == 1.0
        assert "meet in pairs" in made.reason
        assert gt.riccati([[1.0]], [1.0], -1.0001).status is NONE
        turning = gt.riccati([[1.0, 1.0], [-1.0, 1.0]], EYE, -1.0)
        assert turning.status is MARGINAL
        np.testing.assert_allclose(turning.X, EYE, atol=1e-15)

    @pytest.mark.parametrize(
        ("A", "B", "status", "X"),
        [
            (np.diag([2.0, 0.5, 1.0]), np.eye(3), MARGINAL, np.diag([3.0, 0, 0])),
            (np.diag([2.0, 0.5, -1.0]), np.eye(3), MARGINAL, np.diag([3.0, 0, 0])),
            (np.diag([2.0, 0.5, 1.0]), [1.0, 1.0, 0.0], MARGINAL, np.diag([3.0, 0, 0])),
            (np.diag([2.0, 0.5, 0.1]), [1.0, 1.0, 0.0], SUCCESS, np.diag([3.0, 0, 0])),
            (np.diag([2.0, 0.5, 1.0]), [0.0, 1.0, 0.0], NONE, None),
            ([[0.0, 1.0], [-1.0, 0.0]], EYE, MARGINAL, np.zeros((2, 2))),
            ([[1.0, 1.0], [0.0, 1.0]], EYE, MARGINAL, np.zeros((2, 2))),
        ],
    )
    def test_unit_circle(self, A, B, status, X) -> None:
        made = gt.riccati(A, B, discrete=True)
        assert made.status is status
        if X is None:
            assert made.X is None
        else:
            np.testing.assert_allclose(made.X, X, atol=1e-15)
        if status is MARGINAL:
            assert "unit circle" in made.reason

    def test_chains_on_both_sides_of_the_unit_circle(self) -> None:
        """The unreached mode 1 beside the unseen mode -1: both mixed blocks on the circle."""
        A = [[-2.0, -1.0, 1.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]]
        made = gt.riccati(A, [0.0, -1.0, 0.0], discrete=True)
        assert made.status is MARGINAL
        assert made.residual < 1e-14

    @settings(deadline=None, max_examples=15)
    @given(generators(), st.sampled_from(["unseen", "unreached", "undetectable"]))
    def test_rotated(self, rng: np.random.Generator, kind: str) -> None:
        """An orthogonal change of coordinates rounds the axis away, but not the answer."""
        q = orthogonal(rng, 4)
        A = q @ np.diag([1.0, 0.0, -1.0, 2.0]) @ q.T
        inputs = {"unseen": np.eye(4), "unreached": [1, 0, 1, 1], "undetectable": [1, 1, 1, 0]}
        made = gt.riccati(A, q @ np.array(inputs[kind], dtype=float))
        if kind == "undetectable":
            assert made.status is NONE
            assert "λ = 2 in" in made.reason
            return
        assert made.status is MARGINAL
        assert "λ = 0 in" in made.reason
        exact = np.zeros((4, 4))
        exact[np.ix_([0, 3], [0, 3])] = (
            [[2.0, 0.0], [0.0, 4.0]] if kind == "unseen" else [[18.0, -24.0], [-24.0, 36.0]]
        )
        np.testing.assert_allclose(q.T @ made.X @ q, exact, atol=1e-12)
        assert made.rank == 2
        assert made.residual < 1e-14


class TestLyapunov:
    """A X + X A' + C = 0 with eigenvalues 3, 1 and 0."""

    A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.0]])

    def test_not_unique(self) -> None:
        made = lyapunov.solve(self.A, np.zeros((3, 3)))
        assert made.status is lyapunov.LyapunovStatus.NOT_UNIQUE
        np.testing.assert_allclose(made.X, 0.0, atol=1e-15)
        assert made.kernel.shape == (1, 3, 3)
        np.testing.assert_allclose(np.abs(made.kernel[0]), np.diag([0.0, 0.0, 1.0]), atol=1e-14)

    def test_no_solution(self) -> None:
        made = lyapunov.solve(self.A, np.diag([0.0, 0.0, 1.0]))
        assert made.status is lyapunov.LyapunovStatus.NO_SOLUTION
        assert made.X is None
        assert made.defect == pytest.approx(1.0)

    def test_on_the_boundary(self) -> None:
        turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
        X = np.array([[2.0, 1.0], [1.0, -2.0]])
        C = -(turn.T @ X + X @ turn)
        free = on_boundary(turn, C, 1.0, 1.0, discrete=False)
        np.testing.assert_allclose(free.X, X, atol=1e-14)
        assert free.freedom == 1  # multiples of the identity
        assert on_boundary(turn, np.eye(2), 1.0, 1.0, discrete=False) is None
        half = on_boundary(-np.eye(2), np.zeros((2, 2)), 1.0, 1.0, discrete=True)
        assert half.freedom == 3


def problem(rng: np.random.Generator, n: int, m: int, *, cross: bool = True):
    A, B = rng.standard_normal((n, n)), rng.standard_normal((n, m))
    C, D = rng.standard_normal((n, n)), rng.standard_normal((m, m))
    R = D @ D.T + np.eye(m)
    S = 0.3 * rng.standard_normal((n, m)) if cross else np.zeros((n, m))
    Q = C @ C.T + S @ np.linalg.solve(R, S.T)
    return A, B, 0.5 * (Q + Q.T), 0.5 * (R + R.T), S


orders = st.integers(1, 6)
times = st.booleans()


class TestLaws:
    @settings(deadline=None, max_examples=30)
    @given(generators(), orders, times)
    def test_agrees_with_scipy(self, rng: np.random.Generator, n: int, discrete: bool) -> None:
        A, B, Q, R, S = problem(rng, n, int(rng.integers(1, n + 1)))
        made = gt.riccati(A, B, Q, R, S, discrete=discrete)
        solver = sl.solve_discrete_are if discrete else sl.solve_continuous_are
        theirs = solver(A, B, Q, R, s=S)
        assume(made.condition < 1e8)
        assert made.status is SUCCESS
        size = np.linalg.norm(made.X)
        assert np.linalg.norm(theirs - made.X) <= 1e-14 * made.condition * size
        said = judge(made.equation, theirs)
        assert said.stabilising
        off = np.linalg.norm(theirs - made.X) / size
        assert off <= 10 * said.error_estimate + 1e-15

    @settings(deadline=None, max_examples=20)
    @given(generators(), orders, times)
    def test_the_closed_loop_is_that_of_the_gain(
        self, rng: np.random.Generator, n: int, discrete: bool
    ) -> None:
        A, B, Q, R, S = problem(rng, n, int(rng.integers(1, n + 1)))
        made = gt.riccati(A, B, Q, R, S, discrete=discrete)
        assume(made.condition < 1e6)
        X = made.X
        gain = (
            np.linalg.solve(R + B.T @ X @ B, B.T @ X @ A + S.T)
            if discrete
            else np.linalg.solve(R, B.T @ X + S.T)
        )
        np.testing.assert_allclose(made.gain, gain, atol=1e-8 * np.linalg.norm(gain))
        found = np.sort_complex(np.linalg.eigvals(A - B @ gain))
        np.testing.assert_allclose(
            np.sort_complex(made.spectrum), found, atol=1e-5 * np.linalg.norm(A - B @ gain)
        )

    @settings(deadline=None, max_examples=20)
    @given(generators(), orders, times, st.integers(-30, 30), st.integers(-30, 30))
    def test_powers_of_two_change_no_digit(
        self, rng: np.random.Generator, n: int, discrete: bool, first: int, second: int
    ) -> None:
        """x -> T x takes X to T⁻¹ X T⁻¹; (Q, R, S) -> c (Q, R, S) takes X to c X."""
        A, B, Q, R, S = problem(rng, n, n)
        made = gt.riccati(A, B, Q, R, S, discrete=discrete)
        assume(made.condition < 1e8)
        t = np.exp2(rng.integers(min(first, 0), max(first, 0) + 1, n))
        c = 2.0**second
        moved = gt.riccati(
            A * t[:, None] / t,
            B * t[:, None],
            c * Q / t[:, None] / t,
            c * R,
            c * S / t[:, None],
            discrete=discrete,
        )
        assert moved.status is SUCCESS
        np.testing.assert_array_equal(moved.X, c * made.X / t[:, None] / t)

    @settings(deadline=None, max_examples=20)
    @given(generators(), orders, times)
    def test_coordinates(self, rng: np.random.Generator, n: int, discrete: bool) -> None:
        A, B, Q, R, S = problem(rng, n, n)
        T = invertible(rng, n)
        back = np.linalg.inv(T)
        made = gt.riccati(A, B, Q, R, S, discrete=discrete)
        assume(made.condition < 1e6)
        Q2 = back.T @ Q @ back
        moved = gt.riccati(T @ A @ back, T @ B, 0.5 * (Q2 + Q2.T), R, back.T @ S, discrete=discrete)
        expected = back.T @ made.X @ back
        error = np.linalg.norm(moved.X - expected) / np.linalg.norm(expected)
        assert error <= 1e-13 * (made.condition + moved.condition)
        assert moved.definite is made.definite

    @settings(deadline=None, max_examples=20)
    @given(generators(), st.integers(1, 5))
    def test_bernoulli_by_left_eigenvectors(self, rng: np.random.Generator, n: int) -> None:
        A, B = rng.standard_normal((n, n)), rng.standard_normal((n, max(1, n // 2)))
        values = np.linalg.eigvals(A).real
        assume(np.min(np.abs(values)) > 1e-3 and np.any(values > 0))
        truth = oracle.bernoulli(A, B)
        made = gt.riccati(A, B)
        right(made, truth)
        assert made.rank == np.sum(values > 0)
        assert made.factor.shape == (n, made.rank)
        size = np.linalg.norm(made.X)
        assert np.linalg.norm(made.factor @ made.factor.T - made.X) <= 1e-13 * size

    @settings(deadline=None, max_examples=6)
    @given(generators(), st.integers(1, 3))
    def test_discrete_by_dynamic_programming(self, rng: np.random.Generator, n: int) -> None:
        A, B, Q, R, S = problem(rng, n, n)
        made = gt.riccati(A, B, Q, R, S, discrete=True)
        assume(made.condition < 1e6 and abs(made.spectrum[0]) < 0.7)
        right(made, oracle.dare_recursion(A, B, Q, R, S, 120))

    def test_discrete_bernoulli_is_a_stein_equation(self) -> None:
        """X⁻¹ = Y with A Y A' - Y = B B' for A with all eigenvalues outside the unit circle."""
        rng = np.random.default_rng(3)
        A = 3.0 * orthogonal(rng, 4) + 0.2 * rng.standard_normal((4, 4))
        B = rng.standard_normal((4, 2))
        made = gt.riccati(A, B, discrete=True)
        Y = sl.solve_discrete_lyapunov(
            np.linalg.inv(A), np.linalg.solve(A, B @ B.T) @ np.linalg.inv(A).T
        )
        np.testing.assert_allclose(made.X @ Y, np.eye(4), atol=1e-9)
        assert made.rank == 4

    @settings(deadline=None, max_examples=25)
    @given(generators(), st.integers(1, 5), times)
    def test_indefinite_weights(self, rng: np.random.Generator, n: int, discrete: bool) -> None:
        """Whatever is called a solution is one; whatever is refused has no solution in 192 bits."""
        A, B = rng.standard_normal((n, n)), rng.standard_normal((n, n))
        Q, R = rng.standard_normal((n, n)), rng.standard_normal((n, n))
        made = gt.riccati(A, B, Q + Q.T, R + R.T, discrete=discrete)
        assume(made.condition < 1e10 or made.X is None)
        assert made.answered
        if made.status is SUCCESS:
            said = judge(made.equation, made.X)
            assert said.stabilising
            assert said.residual < 1e-10
            assert made.definite is definiteness_of(made.X) or made.precision > 53
        else:
            assert solved(balanced(made.equation)) is None

    @pytest.mark.parametrize("discrete", [False, True])
    def test_extended_precision_agrees_with_floats(self, discrete: bool) -> None:
        rng = np.random.default_rng(5)
        for n in (1, 3, 6):
            A, B, Q, R, S = problem(rng, n, n)
            made = gt.riccati(A, B, Q, R, S, discrete=discrete)
            assert made.precision == 53
            scaled = balanced(made.equation)
            wide = solved(scaled)
            found = scaled.back(
                np.array([[float(x.mid()) for x in row] for row in wide.X.tolist()])
            )
            np.testing.assert_array_equal(found, made.X)

    @pytest.mark.parametrize("size", [1e-8, 1e8])
    def test_badly_scaled(self, size: float) -> None:
        A = np.array([[0.5, size], [1.0 / size, -0.25]])
        made = gt.riccati(A, [[size], [1.0]], np.diag([1.0 / size**2, 1.0]))
        plain = gt.riccati([[0.5, 1.0], [1.0, -0.25]], [[1.0], [1.0]], EYE)
        t = np.array([size, 1.0])
        np.testing.assert_allclose(made.X * t[:, None] * t, plain.X, rtol=1e-13)

    @pytest.mark.slow
    def test_a_hundred_states(self) -> None:
        rng = np.random.default_rng(6)
        A, B = rng.standard_normal((100, 100)), rng.standard_normal((100, 30))
        made = gt.riccati(A, B, np.eye(100))
        assert made.status is SUCCESS
        assert made.precision == 53
        assert made.error_estimate <= UNIT
        theirs = sl.solve_continuous_are(A, B, np.eye(100), np.eye(30))
        assert np.linalg.norm(theirs - made.X) <= 1e-11 * np.linalg.norm(made.X)

    def test_scalars(self) -> None:
        for a in (-1.5, -1e-3, 0.0, 2.0):
            made = gt.riccati([[a]], [1.0], 1.0)
            assert made.X.item() == pytest.approx(a + np.sqrt(a * a + 1), rel=1e-15)
            assert made.spectrum[0] == pytest.approx(-np.sqrt(a * a + 1), rel=1e-14)


class TestJudgement:
    def test_a_wrong_root_with_a_tiny_residual_is_caught(self) -> None:
        A, B, Q, R, S = consumption()
        equation = RiccatiEquation(A, B, Q, R, S, discrete=True)
        wrong = judge(equation, np.diag([8.96343411, 0.0]))
        assert wrong.residual < 1e-10
        assert not wrong.stabilising
        assert wrong.root.startswith("another solution: 1 of 2 closed-loop eigenvalues unstable")
        assert abs(wrong.spectrum[0]) == pytest.approx(1.0541, abs=1e-4)
        good = judge(equation, gt.riccati(A, B, Q, R, S, discrete=True).X)
        assert good.stabilising
        assert good.root == "the stabilising solution"

    def test_the_four_roots_of_two_unstable_modes(self) -> None:
        equation = RiccatiEquation(np.diag([1.0, 2.0]), EYE)
        roots = {
            (2.0, 4.0): "the stabilising solution",
            (0.0, 0.0): "the anti-stabilising solution",
            (2.0, 0.0): "another solution: 1 of 2",
            (0.0, 4.0): "another solution: 1 of 2",
        }
        for values, word in roots.items():
            said = judge(equation, np.diag(values))
            assert said.root.startswith(word)
            assert said.residual == 0.0
            assert said.rank == np.count_nonzero(values)

    def test_what_is_no_solution(self) -> None:
        equation = RiccatiEquation(np.diag([1.0, 2.0]), EYE)
        assert judge(equation, np.diag([3.0, 5.0])).root.startswith("no solution")
        assert not judge(equation, np.diag([3.0, 5.0])).stabilising

    def test_the_error_estimate_is_the_error(self) -> None:
        A, B, Q = integrators()
        theirs = sl.solve_continuous_are(A, B, Q, np.eye(1))
        said = judge(RiccatiEquation(A, B, Q), theirs)
        true = oracle.relative_error(theirs, oracle.chain(21))
        assert said.error_estimate == pytest.approx(true, rel=0.1)
        # Eigenvalues of rounding size: the floats that are returned decide.
        assert said.lowest < 0
        assert said.definite is gt.Definiteness.INDEFINITE

    def test_marginal_roots(self) -> None:
        said = judge(RiccatiEquation(np.diag([1.0, 0.0]), EYE), np.diag([2.0, 0.0]))
        assert said.root.startswith("a marginal solution")
        assert not said.stabilising

    @pytest.mark.parametrize(
        ("values", "word"),
        [
            ((1.0, 1e-300), "positive definite"),
            ((1.0, 0.0), "positive semidefinite"),
            ((1.0, -1e-300), "indefinite"),
            ((-1.0, 0.0), "negative semidefinite"),
            ((-1.0, -2.0), "negative definite"),
            ((0.0, 0.0), "zero"),
        ],
    )
    def test_signs_are_decided_exactly(self, values: tuple[float, float], word: str) -> None:
        assert definiteness_of(np.diag(values)).value == word


class TestPairs:
    @settings(deadline=None, max_examples=25)
    @given(generators(), st.integers(1, 9), st.integers(1, 9))
    def test_products_have_twice_the_precision(
        self, rng: np.random.Generator, n: int, inner: int
    ) -> None:
        A = rng.standard_normal((n, inner)) * 10.0 ** rng.integers(-6, 7, (n, inner))
        B = rng.standard_normal((inner, n)) * 10.0 ** rng.integers(-6, 7, (inner, n))
        made = product(rows_of(A), columns_of(B))
        with mp.workdps(80):
            exact = mp.matrix(A.tolist()) * mp.matrix(B.tolist())
            found = mp.matrix(made.high.tolist()) + mp.matrix(made.low.tolist())
            off = oracle.floats(found - exact)
        bound = np.max(np.abs(A), axis=1)[:, None] * np.max(np.abs(B), axis=0)
        assert np.all(np.abs(off) <= inner * 2.0**-98 * bound)

    @pytest.mark.parametrize("discrete", [False, True])
    def test_residuals_against_mpmath(self, discrete: bool) -> None:
        rng = np.random.default_rng(8)
        A, B, Q, R, S = problem(rng, 4, 2)
        X = gt.riccati(A, B, Q, R, S, discrete=discrete).X
        low = 1e-18 * rng.standard_normal((4, 4))
        pair = Pair(X, low + low.T)
        made = Data(RiccatiEquation(A, B, Q, R, S, discrete=discrete)).remainder(pair)
        with mp.workdps(60):
            a, b, q, r, s, x, y = (
                mp.matrix(M.tolist()) for M in (A, B, Q, R, S, pair.high, pair.low)
            )
            x = x + y
            if discrete:
                W = a.T * x * b + s
                rest = a.T * x * a - x + q - W * (r + b.T * x * b) ** -1 * W.T
            else:
                W = x * b + s
                rest = a.T * x + x * a + q - W * r**-1 * W.T
            exact = oracle.floats((rest + rest.T) / 2)
        np.testing.assert_allclose(made.value, exact, atol=1e-13 * np.max(np.abs(exact)))


class TestInput:
    @pytest.mark.parametrize(
        ("data", "error", "words"),
        [
            (([[1.0, 2.0]], [1.0]), InvalidShape, "`A` must have shape"),
            ((EYE, [1.0, 2.0, 3.0]), InvalidShape, "`B` must have 2 rows"),
            ((EYE, np.zeros((2, 0))), InvalidShape, "at least one column"),
            ((np.zeros((0, 0)), np.zeros((0, 1))), InvalidShape, "empty"),
            ((EYE, EYE, [[1.0, 2.0], [0.0, 1.0]]), NotSymmetric, "`Q` must be symmetric"),
            ((EYE, EYE, None, np.diag([1.0, 0.0])), InvalidNumber, "`R` must not be singular"),
            ((EYE, EYE, None, 0.0), InvalidNumber, "`R` must not be singular"),
            ((EYE, EYE, None, None, [1.0, 2.0]), InvalidShape, "`cross` must have shape"),
            (([[np.inf]], [1.0]), NotFinite, "`A` holds inf"),
        ],
    )
    def test_one_clear_line(self, data, error, words: str) -> None:
        with pytest.raises(error, match=words) as caught:
            gt.riccati(*data)
        assert "\n" not in str(caught.value)

    def test_small_weights_of_inputs_are_not_singular(self) -> None:
        made = gt.riccati(EYE, EYE, EYE, np.diag([1e-12, 1e12]))
        assert made.status is SUCCESS

    @pytest.mark.parametrize("size", [1e-200, 1e160])
    def test_extreme_sizes_are_refused(self, size: float) -> None:
        with pytest.raises(OutOfScale, match=r"`A` is .* Use other units"):
            gt.riccati(size * np.array([[0.5, 1.0], [1.0, -0.25]]), EYE)

    @pytest.mark.parametrize("size", [1e-50, 1e50])
    def test_large_and_small_units(self, size: float) -> None:
        """Time in other units: (A, Q) -> c (A, Q) and R -> R/c leave X as it is."""
        A = np.array([[0.5, 1.0], [1.0, -0.25]])
        plain = gt.riccati(A, EYE, EYE)
        made = gt.riccati(size * A, EYE, size * EYE, 1.0 / size)
        assert made.status is SUCCESS
        np.testing.assert_allclose(made.X, plain.X, rtol=1e-14)


class TestResult:
    def test_repr_is_short(self) -> None:
        assert repr(gt.riccati([[1.0]], [1.0], 1.0)).startswith(
            "RiccatiSolution(SUCCESS, states=1, positive definite, rank 1, residual "
        )
        assert repr(gt.riccati(*INFEASIBLE)) == (
            "RiccatiSolution(NO_STABILIZING_SOLUTION, states=3)"
        )

    def test_arrays_are_read_only(self) -> None:
        made = gt.riccati([[1.0]], [1.0], 1.0)
        for array in (made.X, made.gain, made.factor, made.spectrum, made.kernel):
            assert not array.flags.writeable

    @pytest.mark.parametrize("data", [([[1.0]], [1.0], 1.0), INFEASIBLE])
    def test_summary_and_picture(self, data) -> None:
        made = gt.riccati(*data, name="mine")
        assert made.summary().startswith("mine: ")
        assert set(made.plot()) == {"spectrum"}

    def test_a_damaged_member_is_named(self, tmp_path) -> None:
        gt.riccati([[1.0]], [1.0], 1.0).save(tmp_path)
        path = tmp_path / "result.json"
        path.write_text(path.read_text().replace("POSITIVE_DEFINITE", "POSITIVE"))
        with pytest.raises(gt.GtcontrolError, match="`definite` is 'POSITIVE'"):
            gt.load(tmp_path)


def test_weights_prove_stability_of_large_closed_loops() -> None:
    """The gain is large, so that the norm of the closed loop alone proves nothing."""
    rng = np.random.default_rng(100)
    A, B = rng.normal(size=(60, 60)), rng.normal(size=(60, 3))
    made = gt.riccati(A, B, np.eye(60))
    assert made.status is SUCCESS
    assert made.X is not None
    scipy = sl.solve_continuous_are(A, B, np.eye(60), np.eye(3))
    assert np.linalg.norm(scipy - made.X) <= 1e-4 * np.linalg.norm(made.X)
    assert np.linalg.eigvals(A - B @ B.T @ made.X).real.max() < -0.5


def test_a_singular_pencil_is_named() -> None:
    made = gt.riccati([[0.0]], [[1.0]], [[1.0]], [[-1.0]], discrete=True)
    assert made.status is NONE
    assert "pencil is singular" in made.reason


def test_eigenvalues_near_the_circle_are_told_from_it() -> None:
    made = gt.riccati([[1.0]], [[1.0]], [[1e-16]], discrete=True)
    assert made.status is SUCCESS
    assert "within 1e-08 of it" in made.reason


def test_indefinite_weights_of_inputs_may_leave_a_marginal_root() -> None:
    made = gt.riccati([[-1.0]], [[1.0, 1.0]], [[1.0]], np.diag([1.0, -0.5]))
    assert made.status is NONE
    assert "may exist" in made.reason


def test_directions_hold_no_rounding() -> None:
    A = [[0.0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, -1, 0], [0, 0, 0, -2]]
    made = gt.riccati(A, [[0.0], [0], [1], [1]], np.eye(4))
    assert "e-17" not in made.reason
    assert "±1i" in made.reason


def test_discrete_is_a_truth_value() -> None:
    with pytest.raises(InvalidNumber, match=r"discrete.*'yes'"):
        gt.riccati([[1.0]], [1.0], discrete="yes")  # type: ignore[arg-type]
    with pytest.raises(InvalidNumber, match="in discrete time as well"):
        gt.riccati([[1.0]], [1.0], 1.0, 0.0, discrete=True)


def test_layers_name_their_own_argument() -> None:
    with pytest.raises(NotFinite, match="`F`"):
        gt.kalman_layers([[np.nan]], [1.0], None, gt.Gaussian([0.0], [[1.0]]), 2)

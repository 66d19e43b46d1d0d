"""The simulator: symmetries, independent integrators, layers, noise, and how runs end."""

import re

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import gtcontrol as gt
from gtcontrol.errors import IncompatibleSchedule, InvalidNumber, InvalidShape, NotFinite, TooLarge
from gtcontrol.problem import memory
from gtcontrol.simulation import layers as residual
from gtcontrol.status import Status
from tests.oracles import particles, scalar_attention
from tests.strategies import factor, gaussians, generators, invertible, orthogonal, parameters

# A law and parameters with V general and B far from symmetric.
LAW = gt.Gaussian([0.4, -0.3], [[0.8, 0.0], [0.3, 0.6]])
A = np.array([[-0.3, 0.2], [0.1, -0.2]])
V = np.array([[0.9, 0.8], [-0.6, 0.5]])
B = np.array([[0.2, 0.9], [-0.8, 0.3]])
BIAS, BETA = np.array([0.1, -0.2]), np.array([0.2, 0.1])


def general(**changes):
    return gt.Parameters(**{"A": A, "V": V, "B": B, "b": BIAS, "beta": BETA} | changes)


def assert_same_law(first, second, rel):
    scale = 1 + max(np.abs(first.covariance).max(), np.abs(first.mean).max())
    np.testing.assert_allclose(first.mean, second.mean, atol=rel * scale, rtol=rel)
    np.testing.assert_allclose(first.covariance, second.covariance, atol=rel * scale, rtol=rel)


class TestAgainstParticles:
    """Actual softmax attention over 1000 tokens; V ≠ I and B ≠ Bᵀ, so a transposed B shows."""

    TOLERANCE = 0.05

    @staticmethod
    def tokens():
        return LAW.sample(1000, np.random.default_rng(7), antithetic=True, moment_matched=True)

    def miss(self, moved, score, horizon=1.0, layers=None):
        """Distance of the simulated law with score matrix `score` from the tokens moved."""
        mean, covariance = particles.moments(moved)
        law = gt.simulate(LAW, general(B=score), horizon, layers=layers).final
        return max(np.abs(law.mean - mean).max(), np.abs(law.covariance - covariance).max())

    def test_flow_and_the_proof_that_a_transposed_score_matrix_fails(self):
        moved = particles.flow(self.tokens(), A, [(V, B, BETA)], BIAS, 1.0, 6)
        assert self.miss(moved, B) < self.TOLERANCE
        assert self.miss(moved, B.T) > 10 * self.TOLERANCE

    def test_layers_and_the_proof_that_a_transposed_score_matrix_fails(self):
        moved = particles.layers(self.tokens(), A, [(V, B, BETA)], BIAS, 1.0, 10)
        assert self.miss(moved, B, layers=10) < self.TOLERANCE
        assert self.miss(moved, B.T, layers=10) > 10 * self.TOLERANCE

    def test_the_oracle_itself_sees_a_transposed_score_matrix(self):
        # A shorter time, as these tokens grow until 1000 of them are too few.
        moved = particles.flow(self.tokens(), A, [(V, B.T, BETA)], BIAS, 0.5, 4)
        assert self.miss(moved, B, 0.5) > 5 * self.TOLERANCE
        assert self.miss(moved, B.T, 0.5) < self.TOLERANCE

    def test_heads(self):
        second = (-V.T, B.T + 0.2, -BETA)
        moved = particles.flow(self.tokens(), A, [(V, B, BETA), second], BIAS, 0.5, 4)
        mean, covariance = particles.moments(moved)
        both = [np.stack(pair) for pair in zip((V, B, BETA), second, strict=True)]
        p = gt.Parameters(A=A, V=both[0], B=both[1], beta=both[2], b=BIAS)
        law = gt.simulate(LAW, p, 0.5).final
        np.testing.assert_allclose(law.mean, mean, atol=self.TOLERANCE)
        np.testing.assert_allclose(law.covariance, covariance, atol=self.TOLERANCE)


class TestAgainstOtherIntegrators:
    def test_twenty_digits(self):
        # mpmath's Taylor integrator on (m, S), written out entry by entry.
        def entries(x):
            return mpmath.matrix(np.asarray(x).tolist())

        a, v, s, b, beta = (entries(x) for x in (A, V, B, BIAS, BETA))

        def right_side(t, y):
            mean, S = mpmath.matrix(y[:2]), mpmath.matrix([[y[2], y[3]], [y[3], y[4]]])
            M = a + v * S * s
            mean_rate = M * mean + v * mean + v * S * beta + b
            rate = M * S + S * M.T
            return [*mean_rate, rate[0, 0], rate[0, 1], rate[1, 1]]

        S0 = LAW.covariance
        start = [*LAW.mean, S0[0, 0], S0[0, 1], S0[1, 1]]
        with mpmath.workdps(20):
            solution = mpmath.odefun(right_side, 0, [mpmath.mpf(float(x)) for x in start])
            end = np.array([float(x) for x in solution(0.5)])
        law = gt.simulate(LAW, general(), 0.5).final
        np.testing.assert_allclose(law.mean, end[:2], rtol=1e-12)
        expected = [[end[2], end[3]], [end[3], end[4]]]
        np.testing.assert_allclose(law.covariance, expected, rtol=1e-12)

    @settings(max_examples=15)
    @given(st.data())
    def test_covariance_form_of_another_integrator(self, data):
        # Heads, general V and nonsymmetric B: S' = M S + S Mᵀ by Radau, by einsum.
        law = data.draw(gaussians())
        d = law.dim
        p = data.draw(parameters(d, heads=2, size=0.4))

        def right_side(t, y):
            mean, S = y[:d], y[d:].reshape(d, d)
            M = p.A + np.einsum("hij,jk,hkl->il", p.V, S, p.B)
            shift = np.einsum("hij,hj->i", p.V, mean + p.beta @ S)
            return np.concatenate([M @ mean + shift + p.b, (M @ S + S @ M.T).ravel()])

        start = np.concatenate([law.mean, law.covariance.ravel()])
        end = solve_ivp(right_side, (0, 0.2), start, method="Radau", rtol=1e-9, atol=1e-11)
        path = gt.simulate(law, p, 0.2)
        if path.status is Status.SUCCESS and path.final.trace < 1e3:
            expected = end.y[d:, -1].reshape(d, d)
            scale = 1 + np.abs(end.y[:, -1]).max()
            np.testing.assert_allclose(path.final.covariance, expected, atol=1e-6 * scale)
            np.testing.assert_allclose(path.final.mean, end.y[:d, -1], atol=1e-6 * scale)
        else:
            assert end.status != 0 or np.abs(end.y[:, -1]).max() > 1e2

    @given(gaussians(), generators())
    def test_affine_flow_is_the_matrix_exponential(self, law, rng):
        # V = B = 0: m(T) by an augmented exponential, S(T) = e^{AT} S e^{AᵀT}.
        M, b = rng.standard_normal((law.dim, law.dim)), rng.standard_normal(law.dim)
        end = gt.simulate(law, gt.Parameters(A=M, b=b), 0.7).final
        block = np.block([[M, b[:, None]], [np.zeros((1, law.dim + 1))]])
        expected = expm(0.7 * block) @ np.append(law.mean, 1.0)
        assert_same_law(
            end, gt.Gaussian.trusted(expected[:-1], expm(0.7 * M) @ law.factor), rel=1e-11
        )

    def test_values_without_scores_move_the_mean_only(self):
        # B = 0: m' = (A + V) m + b, while S sees A only.
        path = gt.simulate(LAW, gt.Parameters(A=A, V=V), 0.7)
        np.testing.assert_allclose(path.final.mean, expm(0.7 * (A + V)) @ LAW.mean, rtol=1e-12)
        flow = expm(0.7 * A)
        np.testing.assert_allclose(path.final.covariance, flow @ LAW.covariance @ flow.T)

    def test_parameters_in_time(self):
        # L' = a(t) L with ∫ a = sin: a function, and the same law in pieces with a jump.
        schedule = gt.Schedule.from_function(lambda t: gt.Parameters(A=[[np.cos(t)]]), 5.0)
        path = gt.simulate(gt.Gaussian([1.0], [[2.0]]), schedule)
        for t in np.linspace(0, 5, 11):
            assert path.at(t).mean[0] == pytest.approx(np.exp(np.sin(t)), rel=1e-11)
        pieces = [gt.Parameters(A=[[a]]) for a in (1.0, -2.0, 0.5)]
        path = gt.simulate(gt.Gaussian([1.0], [[2.0]]), gt.Schedule([0.0, 0.3, 0.4, 1.0], pieces))
        assert path.final.mean[0] == pytest.approx(np.exp(0.3 - 0.2 + 0.3), rel=1e-13)
        assert path.at(0.35).factor[0, 0] == pytest.approx(2 * np.exp(0.3 - 0.1), rel=1e-13)


def simulated(law, p, horizon=0.3, **options):
    path = gt.simulate(law, p, horizon, **options)
    assert path.status is Status.SUCCESS
    return path.final


modes = pytest.mark.parametrize("layers", [None, 5])


@modes
class TestSymmetries:
    """All of them hold for the flow and, exactly, for residual layers."""

    @given(data=st.data())
    def test_coordinates(self, layers, data):
        law, rng = data.draw(gaussians()), data.draw(generators())
        p = data.draw(parameters(law.dim, heads=data.draw(st.sampled_from([None, 2])), size=0.3))
        T = invertible(rng, law.dim)
        inverse = np.linalg.inv(T)
        moved = gt.Parameters(
            A=T @ p.A @ inverse,
            V=T @ p.V @ inverse,
            B=inverse.T @ p.B @ inverse,
            b=T @ p.b,
            beta=p.beta @ inverse,
        )
        end = simulated(law, p, layers=layers)
        there = simulated(gt.Gaussian(T @ law.mean, T @ law.factor), moved, layers=layers)
        assert_same_law(there, gt.Gaussian.trusted(T @ end.mean, T @ end.factor), rel=1e-9)

    @given(data=st.data())
    def test_translation(self, layers, data):
        # x = y + c: the score bias gains B c, the bias gains (A + Σ V) c.
        law, rng = data.draw(gaussians()), data.draw(generators())
        p = data.draw(parameters(law.dim, heads=2, size=0.3))
        c = rng.standard_normal(law.dim)
        moved = gt.Parameters(
            A=p.A, V=p.V, B=p.B, b=p.b + p.A @ c + p.V.sum(axis=0) @ c, beta=p.beta + p.B @ c
        )
        end = simulated(law, p, layers=layers)
        there = simulated(gt.Gaussian(law.mean - c, law.factor), moved, layers=layers)
        assert_same_law(there, gt.Gaussian.trusted(end.mean - c, end.factor), rel=1e-9)

    @given(data=st.data(), c=st.sampled_from([4.0, -0.3]))
    def test_scaling_of_scores_and_values(self, layers, data, c):
        # (V, B) -> (cV, B/c) leaves the covariance alone, also for c < 0; not the mean.
        law = data.draw(gaussians())
        p = data.draw(parameters(law.dim, size=0.3))
        q = gt.Parameters(A=p.A, V=c * p.V, B=p.B / c, b=p.b, beta=p.beta)
        first, second = (simulated(law, x, layers=layers) for x in (p, q))
        np.testing.assert_allclose(first.covariance, second.covariance, atol=1e-10, rtol=1e-10)
        assert np.abs(first.mean - second.mean).max() > 1e-12

    @given(data=st.data(), c=st.sampled_from([3.0, 0.1]))
    def test_time(self, layers, data, c):
        law = data.draw(gaussians())
        p = data.draw(parameters(law.dim, size=0.3))
        fast = gt.Parameters(A=c * p.A, V=c * p.V, B=p.B, b=c * p.b, beta=p.beta)
        end = simulated(law, p, layers=layers)
        assert_same_law(simulated(law, fast, 0.3 / c, layers=layers), end, rel=1e-10)

    @given(data=st.data())
    def test_rotation_of_the_factor(self, layers, data):
        law, rng = data.draw(gaussians()), data.draw(generators())
        p = data.draw(parameters(law.dim, size=0.3))
        rotated = gt.Gaussian(law.mean, law.factor @ orthogonal(rng, law.rank))
        first, second = (simulated(x, p, layers=layers) for x in (law, rotated))
        assert_same_law(first, second, rel=1e-10)

    @given(data=st.data())
    def test_the_rank_is_kept(self, layers, data):
        law = data.draw(gaussians())
        p = data.draw(parameters(law.dim, size=0.3))
        path = gt.simulate(law, p, 0.3, layers=layers)
        assert path.factors.shape[1:] == (law.dim, law.rank)
        assert path.final.rank == law.rank
        assert np.all(path.eigenvalues > 0)


class TestFlow:
    @given(st.data(), st.floats(0.01, 0.29))
    def test_group_property_in_time(self, data, t):
        law = data.draw(gaussians())
        p = data.draw(parameters(law.dim, size=0.3))
        assume(gt.simulate(law, p, 0.3).status is not Status.BLOW_UP)
        once = simulated(law, p)
        twice = simulated(simulated(law, p, t), p, 0.3 - t)
        assert_same_law(once, twice, rel=1e-10)

    @given(st.data())
    def test_backwards_is_the_inverse(self, data):
        law = data.draw(gaussians())
        p = data.draw(parameters(law.dim, size=0.3))
        back = gt.Parameters(A=-p.A, V=-p.V, B=p.B, b=-p.b, beta=p.beta)
        assume(gt.simulate(law, p, 0.3).status is not Status.BLOW_UP)
        assert_same_law(simulated(simulated(law, p), back), law, rel=1e-9)

    @given(st.data())
    def test_dense_output_equals_a_run_to_that_time(self, data):
        law = data.draw(gaussians())
        p = data.draw(parameters(law.dim, size=0.3))
        path = gt.simulate(law, p, 0.3)
        for t in (0.0, 0.07, 0.1501, 0.3):
            expected = law if t == 0 else gt.simulate(law, p, t).final
            assert_same_law(path.at(t), expected, rel=1e-10)
        for t, mean in zip(path.times, path.means, strict=True):
            np.testing.assert_allclose(path.at(t).mean, mean, atol=1e-12)

    @pytest.mark.parametrize("left", [1e-2, 1e-4, 1e-6, 1e-8])
    def test_dense_output_near_a_blow_up(self, left):
        # A general V: near T* an error in time of 1e-13 T* changes S by 1e-13 T*/left.
        law = gt.Gaussian([1.0, 0.5], np.eye(2))
        p = gt.Parameters(
            A=[[0.1, 0.2], [0.0, -0.1]], V=[[1.0, 0.5], [0.2, 0.8]], B=[[1.0, 0.3], [0.0, 0.7]]
        )
        path = gt.simulate(law, p, 1.0)
        t = path.blow_up_time * (1 - left)
        direct = gt.simulate(law, p, t)
        assert direct.status is Status.SUCCESS
        law, other = path.at(t), direct.final
        assert law.trace > 0.1 / left
        assert law.trace == pytest.approx(other.trace, rel=3e-12 / left)
        np.testing.assert_allclose(law.mean, other.mean, rtol=3e-12 / left)

    def test_dense_output_ends_where_the_path_ends(self):
        path = gt.simulate(gt.Gaussian([0.0], [[1.0]]), gt.Parameters(V=[[1.0]], B=[[1.0]]), 1.0)
        with pytest.raises(InvalidNumber, match=r"blow-up at 0\.5"):
            path.at(0.6)
        with pytest.raises(InvalidNumber, match="lie in"):
            path.at(-0.1)
        with pytest.raises(InvalidNumber, match="finite"):
            path.at(np.nan)

    @pytest.mark.parametrize("size", [1e75, 1e-75])
    def test_huge_and_tiny_laws(self, size):
        # The problem is homogeneous: L -> c L, B -> B/c².
        small = gt.simulate(gt.Gaussian([0.0, 0.0], np.eye(2)), gt.Parameters(A=A, V=V, B=B), 0.5)
        law = gt.Gaussian([0.0, 0.0], size * np.eye(2))
        path = gt.simulate(law, gt.Parameters(A=A, V=V, B=B / size**2), 0.5)
        assert path.status is Status.SUCCESS
        np.testing.assert_allclose(path.final.factor / size, small.final.factor, rtol=1e-9)

    def test_decay_keeps_relative_accuracy(self):
        path = gt.simulate(gt.Gaussian([1.0], [[1.0]]), gt.Parameters(A=[[-30.0]]), 2.0)
        assert path.final.factor[0, 0] == pytest.approx(np.exp(-60), rel=1e-9)

    @pytest.mark.parametrize("start", ["spread", "point"])
    def test_rounding_noise_does_not_dictate_the_step(self, start):
        # The third coordinate is 7 · 0.1 - 0.7 = 0 up to rounding, while the others grow.
        growth = np.array([[20.0, 0, 0], [0, 20.0, 0], [7.0, -1.0, 0]])
        column = np.array([0.1, 0.7, 0.0])
        law = (
            gt.Gaussian(np.zeros(3), column[:, None])
            if start == "spread"
            else gt.Gaussian(column, np.zeros((3, 0)))
        )
        path = gt.simulate(law, gt.Parameters(A=growth), 1.0)
        assert path.status is Status.SUCCESS
        assert path.steps < 300
        grown = path.final.factor[:, 0] if start == "spread" else path.final.mean
        np.testing.assert_allclose(grown[:2], np.exp(20) * column[:2], rtol=1e-11)

    def test_a_start_at_zero(self):
        # Everything comes from the bias and from noise; the first entry stays rounding.
        p = gt.Parameters(A=[[0, 0, 0], [0, 0, 0], [7.0, -1.0, 0]], b=[0.1, 0.7, 0.0])
        path = gt.simulate(gt.Gaussian(np.zeros(3), np.zeros((3, 0))), p, 2.0)
        assert path.steps < 100
        np.testing.assert_allclose(path.final.mean, [0.2, 1.4, 0.0], atol=1e-14)


class TestStiffness:
    """Explicit integrators would take 10⁵ steps and more, all of them for stability."""

    def test_a_fast_and_a_slow_mean(self):
        law = gt.Gaussian([3.0, 2.0], np.zeros((2, 0)))
        path = gt.simulate(law, gt.Parameters(A=-np.diag([1e6, 1.0]), b=[1e6, 1.0]), 10.0)
        assert path.status is Status.SUCCESS
        assert path.steps < 3000
        for t in (1e-6, 1e-3, 0.5, 3.0, 10.0):
            expected = 1 + np.array([2 * np.exp(-1e6 * t), np.exp(-t)])
            np.testing.assert_allclose(path.at(t).mean, expected, rtol=1e-11)

    def test_a_covariance_at_its_equilibrium(self):
        # s' = 2 (a - s) s is logistic.
        a = 1e6
        p = gt.Parameters(A=[[a]], V=[[1.0]], B=[[-1.0]])
        path = gt.simulate(gt.Gaussian([0.0], [[1.0]]), p, 1.0)
        assert path.status is Status.SUCCESS
        for t in (1e-6, 1e-5, 1e-3, 0.5, 1.0):
            expected = a / (1 + (a - 1) * np.exp(-2 * a * t))
            assert path.at(t).trace == pytest.approx(expected, rel=1e-10)

    def test_a_fast_direction_that_is_no_axis(self):
        c, s = np.cos(0.7), np.sin(0.7)
        turn = np.array([[c, -s], [s, c]])
        p = gt.Parameters(A=turn @ np.diag([-1e6, -1.0]) @ turn.T)
        path = gt.simulate(gt.Gaussian([1.0, 2.0], np.eye(2)), p, 2.0)
        assert path.status is Status.SUCCESS
        for t in (1e-6, 0.5, 2.0):
            flow = turn @ np.diag(np.exp([-1e6 * t, -t])) @ turn.T
            expected = gt.Gaussian.trusted(flow @ [1.0, 2.0], flow)
            assert_same_law(path.at(t), expected, rel=1e-9)  # A is rounded, by 1e6 · 1e-16

    def test_a_fast_law_that_is_driven(self):
        k = 1e5
        driven = gt.Schedule.from_function(
            lambda t: gt.Parameters(A=[[-k]], b=[k * np.cos(t)]), 5.0
        )
        path = gt.simulate(gt.Gaussian([1.0], np.zeros((1, 0))), driven)
        assert path.status is Status.SUCCESS
        for t in (0.5, 3.0, 5.0):
            expected = (k**2 * np.cos(t) + k * np.sin(t)) / (k**2 + 1)
            assert path.at(t).mean[0] == pytest.approx(expected, abs=1e-10)

    def test_what_is_not_stiff_stays_explicit(self):
        # Rotation by 500 radians: many steps, each as long as accuracy allows.
        path = gt.simulate(LAW, gt.Parameters(A=[[0.0, 1e3], [-1e3, 0.0]]), 0.5)
        assert path.status is Status.SUCCESS
        assert path.evaluations <= 16 * path.steps
        np.testing.assert_allclose(np.linalg.norm(path.means, axis=1), 0.5, rtol=1e-8)


class TestSubspace:
    @given(generators())
    def test_a_schedule_in_a_subspace_equals_its_lift(self, rng):
        U = orthogonal(rng, 5)[:, :2]
        inner = gt.Parameters(
            A=0.5 * rng.standard_normal((2, 2)),
            V=0.5 * rng.standard_normal((2, 2)),
            B=0.5 * rng.standard_normal((2, 2)),
            b=rng.standard_normal(2),
            beta=rng.standard_normal(2),
        )
        law = gt.Gaussian(rng.standard_normal(5), factor(rng, 5, 3, 0.5))
        reduced = gt.simulate(law, gt.Schedule([0.0, 0.4], [inner], basis=U))
        full = gt.simulate(law, inner.lift(U), 0.4)
        assert_same_law(reduced.final, full.final, rel=1e-9)
        assert_same_law(reduced.at(0.2), full.at(0.2), rel=1e-9)
        layered = gt.simulate(law, gt.Schedule([0.0, 0.4], [inner], basis=U), layers=4)
        assert_same_law(layered.final, gt.simulate(law, inner.lift(U), 0.4, layers=4).final, 1e-10)

    def test_noise_in_a_subspace(self):
        U = orthogonal(np.random.default_rng(0), 3)[:, :1]
        inner = gt.Parameters(A=[[0.5]], noise=[[2.0]])
        law = gt.Gaussian(np.zeros(3), np.eye(3)[:, :1])
        reduced = gt.simulate(law, gt.Schedule([0.0, 1.0], [inner], basis=U))
        full = gt.simulate(law, inner.lift(U), 1.0)
        assert_same_law(reduced.final, full.final, rel=1e-10)

    def test_an_interrupted_run_is_in_full_coordinates(self):
        U = orthogonal(np.random.default_rng(0), 3)[:, :1]
        law = gt.Gaussian(np.ones(3), np.eye(3))
        schedule = gt.Schedule([0.0, 1.0], [gt.Parameters(A=[[0.5]])], basis=U)
        path = gt.simulate(law, schedule, max_steps=1, progress=interrupt_after(1))
        assert path.means.shape[1] == 3
        np.testing.assert_allclose(path.means[0], law.mean, atol=1e-15)


class TestNoise:
    @given(generators())
    def test_equals_the_hamiltonian_exponential(self, rng):
        d = int(rng.integers(1, 5))
        drift, score = rng.standard_normal((2, d, d))
        root = rng.standard_normal((d, d))
        Q, K = root @ root.T, -(score @ score.T) - 0.1 * np.eye(d)
        S0 = gt.Gaussian(np.zeros(d), factor(rng, d, int(rng.integers(0, d + 1))))
        p = gt.Parameters(A=drift, V=np.eye(d), B=K / 2, noise=Q)
        path = gt.simulate(S0, p, 0.5)
        assert path.status is Status.SUCCESS
        for t in (0.1, 0.37, 0.5):
            expected = scalar_attention.covariance(drift, K, S0.covariance, t, Q)
            scale = np.abs(expected).max()
            assert np.abs(path.at(t).covariance - expected).max() < 1e-9 * scale

    def test_kalman_bucy_closed_forms(self):
        # N5: s' = 1 - s² from 0 is tanh t.
        dirac = gt.Gaussian([0.0], np.zeros((1, 0)))
        p = gt.Parameters(V=[[1.0]], B=[[-0.5]], noise=[[1.0]])
        path = gt.simulate(dirac, p, 3.0)
        for t in (0.01, 0.5, 3.0):
            assert path.at(t).trace == pytest.approx(np.tanh(t), rel=1e-10)
        # N4: noise on the velocity, observation of the position.
        p = gt.Parameters(
            A=[[0.0, 1.0], [0.0, 0.0]],
            V=np.eye(2),
            B=-np.diag([0.5, 0.0]),
            noise=np.diag([0.0, 1.0]),
        )
        path = gt.simulate(gt.Gaussian(np.zeros(2), np.zeros((2, 0))), p, 40.0)
        expected = [
            [1.2042799298675721817, 0.98980102938985887469],
            [0.98980102938985887469, 1.295640240565472075],
        ]
        np.testing.assert_allclose(path.at(2.0).covariance, expected, rtol=1e-10)
        limit = [[np.sqrt(2), 1.0], [1.0, np.sqrt(2)]]
        np.testing.assert_allclose(path.final.covariance, limit, rtol=1e-9)

    def test_the_rank_grows(self):
        # Noise on the velocity reaches the position at once, but for t = 0.
        p = gt.Parameters(A=[[0.0, 1.0], [0.0, 0.0]], noise=np.diag([0.0, 1.0]))
        dirac = gt.Gaussian(np.zeros(2), np.zeros((2, 0)))
        path = gt.simulate(dirac, p, 1.0)
        assert (path.at(0.0).rank, path.final.rank) == (0, 2)
        for t in (1e-4, 0.01, 0.3):  # S = [[t³/3, t²/2], [t²/2, t]]
            expected = [[t**3 / 3, t**2 / 2], [t**2 / 2, t]]
            np.testing.assert_allclose(path.at(t).covariance, expected, atol=1e-12 * t)
        layered = gt.simulate(dirac, p, 1.0, layers=4)
        assert [layered.at(t).rank for t in (0.0, 0.25, 0.5)] == [0, 1, 2]

    def test_noise_that_starts_later(self):
        quiet, noisy = gt.Parameters(A=[[0.0]]), gt.Parameters(A=[[0.0]], noise=[[2.0]])
        schedule = gt.Schedule([0.0, 1.0, 2.0], [quiet, noisy])
        path = gt.simulate(gt.Gaussian([0.0], [[1.0]]), schedule)
        assert path.at(1.0).trace == pytest.approx(1.0, rel=1e-12)
        assert path.final.trace == pytest.approx(3.0, rel=1e-12)
        hidden = gt.Schedule.from_function(lambda t: noisy if t > 0.5 else quiet, 1.0)
        with pytest.raises(IncompatibleSchedule, match="noise sets in"):
            gt.simulate(gt.Gaussian([0.0], [[1.0]]), hidden)

    def test_zero_noise_changes_nothing(self):
        quiet = simulated(LAW, general(), 0.5)
        assert_same_law(simulated(LAW, general(noise=np.zeros((2, 2))), 0.5), quiet, rel=1e-10)


class TestLayers:
    def test_equal_the_exact_affine_map(self):
        # m⁺ = m + h (...), S⁺ = (I + hM) S (I + hM)ᵀ, in covariance form.
        h, mean, S = 0.1, LAW.mean, LAW.covariance
        for _ in range(10):
            M = A + V @ S @ B
            mean = mean + h * ((M + V) @ mean + V @ S @ BETA + BIAS)
            step = np.eye(2) + h * M
            S = step @ S @ step.T
        path = gt.simulate(LAW, general(), 1.0, layers=10)
        np.testing.assert_allclose(path.final.mean, mean, rtol=1e-13)
        np.testing.assert_allclose(path.final.covariance, S, rtol=1e-13)
        assert path.times.tolist() == pytest.approx(np.linspace(0, 1, 11).tolist())
        assert path.times[-1] == 1.0

    def test_noise_of_layers(self):
        Q, h, S = np.diag([0.5, 0.0]), 0.25, LAW.covariance
        for _ in range(4):
            step = np.eye(2) + h * (A + V @ S @ B)
            S = step @ S @ step.T + h * Q
        path = gt.simulate(LAW, general(noise=Q), 1.0, layers=4)
        np.testing.assert_allclose(path.final.covariance, S, rtol=1e-12)

    def test_converge_to_the_flow_like_h(self):
        limit = gt.simulate(LAW, general(), 1.0).final
        gaps = []
        for layers in (50, 100, 200, 400):
            end = gt.simulate(LAW, general(), 1.0, layers=layers).final
            gaps.append(np.linalg.norm(end.covariance - limit.covariance))
        ratios = np.array(gaps[:-1]) / np.array(gaps[1:])
        assert np.all(np.abs(ratios - 2) < 0.1)
        assert abs(ratios[-1] - 2) < abs(ratios[0] - 2)

    def test_between_layers_tokens_do_not_move(self):
        path = gt.simulate(LAW, general(), 1.0, layers=4)
        for t, k in ((0.0, 0), (0.24, 0), (0.25, 1), (0.6, 2), (1.0, 4)):
            np.testing.assert_array_equal(path.at(t).mean, path.means[k])

    def test_parameters_of_each_layer(self):
        pieces = [gt.Parameters(A=[[a]]) for a in (1.0, 2.0)]
        schedule = gt.Schedule([0.0, 0.5, 1.0], pieces)
        path = gt.simulate(gt.Gaussian([1.0], [[1.0]]), schedule, layers=4)
        assert path.final.mean[0] == pytest.approx(1.25**2 * 1.5**2, rel=1e-14)

    def test_of_a_deep_network_some_thousand_laws_are_kept(self):
        law, p, count = gt.Gaussian([1.0], [[2.0]]), gt.Parameters(A=[[-1.0]]), 10_001
        seen = []
        path = gt.simulate(law, p, 1.0, layers=count, progress=lambda part, _: seen.append(part))
        assert path.status is Status.SUCCESS
        assert path.steps == count
        layers = np.append(np.arange(0, count, 3), count)
        np.testing.assert_allclose(path.times * count, layers, rtol=1e-12)
        assert path.times[-1] == 1.0
        exact = (1 - 1 / count) ** layers
        np.testing.assert_allclose(path.means[:, 0], exact, rtol=1e-11)
        np.testing.assert_allclose(path.factors[:, 0, 0], 2 * exact, rtol=1e-11)
        assert path.at(4.5 / count).mean[0] == path.means[1, 0]  # the third layer
        assert seen == sorted(seen)
        assert seen[-1] == 1.0

    def test_a_deep_network_can_be_interrupted(self, monkeypatch):
        monkeypatch.setattr(residual, "PATIENCE", 0.0)  # progress is told after every layer
        law, p = gt.Gaussian([1.0], [[2.0]]), gt.Parameters(A=[[-1.0]])
        path = gt.simulate(law, p, 1.0, layers=10**9, progress=interrupt_after(8))
        assert path.status is Status.INTERRUPTED
        assert path.steps == 8
        np.testing.assert_allclose(path.times, [0.0, 8e-9], rtol=1e-14)
        assert path.final.mean[0] == pytest.approx(1 - 8e-9, rel=1e-14)

    def test_progress_is_told_while_no_law_is_kept(self):
        told = []

        def progress(fraction, text):
            told.append(text)
            if len(told) == 2:
                raise KeyboardInterrupt

        gt.simulate(LAW, general(), 1e-6, layers=10**9, progress=progress)
        assert re.fullmatch(r"layer \d+ of 1000000000", told[1])

    def test_the_memory_of_layers(self, monkeypatch):
        law, p = gt.Gaussian(np.zeros(20), np.eye(20)), gt.Parameters(A=-np.eye(20))
        monkeypatch.setattr(memory, "available", lambda: 100_000)
        with pytest.raises(TooLarge, match="the states after the layers"):
            gt.simulate(law, p, 1.0, layers=10**9)
        assert gt.simulate(law, p, 1.0, layers=5).times.size == 6
        # What fits is kept, evenly spaced.
        monkeypatch.setattr(memory, "available", lambda: 100 * 4 * 8 * 420)
        path = gt.simulate(law, p, 1.0, layers=300)
        np.testing.assert_allclose(path.times, np.linspace(0, 1, 101), rtol=1e-12)

    @pytest.mark.parametrize(("count", "horizon"), [(10**400, 1.0), (10**16, 1.0), (3, 5e-324)])
    def test_more_layers_than_times(self, count, horizon):
        with pytest.raises(InvalidNumber, match=r"`layers` is .* too many for times"):
            gt.simulate(LAW, general(), horizon, layers=count)

    def test_a_singular_layer_takes_the_rank(self):
        # I + h M = diag(0, 1/2): the first column is lost, exactly.
        p = gt.Parameters(A=-np.diag([1.0, 0.5]))
        path = gt.simulate(gt.Gaussian([1.0, 1.0], np.eye(2)), p, 2.0, layers=2)
        assert path.status is Status.SUCCESS
        assert [path.at(t).rank for t in (0.0, 1.0, 2.0)] == [2, 1, 1]
        np.testing.assert_array_equal(path.final.factor, [[0.0], [0.25]])

    def test_overflow_ends_the_run(self):
        p = gt.Parameters(V=[[1.0]], B=[[1.0]])
        path = gt.simulate(gt.Gaussian([0.0], [[10.0]]), p, 10.0, layers=20)
        assert path.status is Status.OVERFLOW
        assert path.times.size < 21
        assert np.all(np.isfinite(path.factors))


def interrupt_after(calls):
    """A progress callback that acts like Ctrl-C in its n-th call."""
    count = 0

    def progress(fraction, text):
        nonlocal count
        count += 1
        if count == calls:
            raise KeyboardInterrupt

    return progress


class TestEndings:
    @modes
    def test_interruption_keeps_the_part_that_was_computed(self, layers):
        whole = gt.simulate(LAW, general(), 3.0, layers=layers)
        path = gt.simulate(LAW, general(), 3.0, layers=layers, progress=interrupt_after(3))
        assert path.status is Status.INTERRUPTED
        assert not path.answered
        assert path.times.size == 4
        assert 0 < path.times[-1] < 3.0
        np.testing.assert_array_equal(path.means, whole.means[:4])
        assert_same_law(path.at(path.times[-1] / 2), whole.at(path.times[-1] / 2), rel=1e-13)

    def test_interruption_with_noise(self):
        p = general(noise=np.eye(2))
        path = gt.simulate(LAW, p, 3.0, progress=interrupt_after(2))
        assert path.status is Status.INTERRUPTED
        assert path.times.size == 3

    def test_other_errors_of_a_callback_pass_through(self):
        def broken(fraction, text):
            raise RuntimeError("mine")

        with pytest.raises(RuntimeError, match="mine"):
            gt.simulate(LAW, general(), 3.0, progress=broken)

    @modes
    def test_progress_increases_to_one(self, layers):
        seen = []
        gt.simulate(
            LAW, general(), 3.0, layers=layers, progress=lambda part, text: seen.append(part)
        )
        assert seen == sorted(seen)
        assert seen[-1] == 1.0

    @pytest.mark.parametrize("layers", [None, 20_000])
    def test_underflow_claims_no_rank(self, layers):
        # A variance of e^{-2at} is a normal number until at = 354; e^{-5000} is none.
        law = gt.Gaussian([1.0], [[1.0]])
        path = gt.simulate(law, gt.Parameters(A=[[-5.0]]), 1000.0, layers=layers)
        assert path.status is Status.UNDERFLOW
        assert not path.answered
        assert path.times[-1] == pytest.approx(150 * np.log(10) / 5, rel=0.2)
        assert path.final.rank == 1
        assert np.finfo(float).tiny < path.final.eigenvalues[0] < 1e-290
        if layers is None:
            np.testing.assert_allclose(
                path.factors[:, 0, 0], np.exp(-5 * path.times), rtol=1e-9 * path.times[-1]
            )

    def test_no_underflow_where_something_stays(self):
        # Outside the subspace of a schedule nothing shrinks, nor does a law of rank 0.
        U = np.eye(2)[:, :1]
        schedule = gt.Schedule([0.0, 20.0], [gt.Parameters(A=[[-18.0]])], basis=U)
        tilted = gt.simulate(gt.Gaussian([0.0, 0.0], [[1.0], [1.0]]), schedule)
        assert tilted.status is Status.SUCCESS
        dirac = gt.Gaussian([1.0, 1.0], np.zeros((2, 0)))
        assert gt.simulate(dirac, schedule).status is Status.SUCCESS

    def test_a_start_below_double_precision_ends_at_once(self):
        law = gt.Gaussian([0.0, 0.0], np.diag([1.0, 1e-170]))
        path = gt.simulate(law, gt.Parameters(dim=2), 1.0)
        assert path.status is Status.UNDERFLOW
        assert path.times.tolist() == [0.0]

    def test_step_limit_keeps_a_partial_result(self):
        path = gt.simulate(LAW, general(), 50.0, max_steps=5)
        assert path.status is Status.STEP_LIMIT
        assert path.steps == 5
        assert path.times.size == 6
        assert 0 < path.times[-1] < 50.0
        whole = gt.simulate(LAW, general(), float(path.times[-1]))
        assert_same_law(path.final, whole.final, rel=1e-10)

    def test_step_limit_in_rescaled_time(self):
        p = gt.Parameters(V=[[1.0]], B=[[1.0]])
        path = gt.simulate(gt.Gaussian([0.0], [[1.0]]), p, 2.0, max_steps=60)
        assert path.status is Status.STEP_LIMIT
        assert path.steps == 60
        assert path.times[-1] < 0.5

    @pytest.mark.parametrize(
        "law",
        [
            pytest.param(lambda t: gt.Parameters(A=[[1.0 if t < 1 / 3 else -1.0]]), id="jump"),
            pytest.param(
                lambda t: gt.Parameters(A=[[np.sign(np.sin(1 / (t + 1e-3)))]]), id="jumps"
            ),
            pytest.param(lambda t: gt.Parameters(A=[[1 / max(1 - t, 1e-300) ** 2]]), id="pole"),
            pytest.param(lambda t: gt.Parameters(A=[[0.0]], b=[1e3 * np.sin(1e3 * t)]), id="fast"),
        ],
    )
    def test_rough_schedules_end_without_padding(self, law):
        path = gt.simulate(
            gt.Gaussian([1.0], [[1.0]]), gt.Schedule.from_function(law, 2.0), max_steps=500
        )
        assert path.status in (Status.SUCCESS, Status.STEP_LIMIT, Status.STEP_SIZE, Status.OVERFLOW)
        assert np.all(np.diff(path.times) > 0)
        assert np.all(np.isfinite(path.factors))
        if path.status is Status.SUCCESS:
            assert path.times[-1] == 2.0

    def test_parameters_that_become_nan_are_named(self):
        schedule = gt.Schedule.from_function(
            lambda t: gt.Parameters.trusted(
                np.array([[np.nan if t > 0.5 else 1.0]]), *np.zeros((2, 1, 1)), np.zeros(1)
            ),
            1.0,
        )
        for layers in (None, 10):
            with pytest.raises(NotFinite, match="not finite at t = 0"):
                gt.simulate(gt.Gaussian([0.0], [[1.0]]), schedule, layers=layers)

    @pytest.mark.parametrize(
        ("arguments", "error", "words"),
        [
            (([0.0], general(), 1.0), InvalidShape, "must be a Gaussian, not list"),
            ((LAW, gt.Parameters(dim=3), 1.0), InvalidShape, "dimension 3, but the start has 2"),
            ((LAW, general()), IncompatibleSchedule, "`horizon` is needed"),
            ((LAW, general(), 0), InvalidNumber, "greater than 0"),
        ],
    )
    def test_bad_arguments(self, arguments, error, words):
        with pytest.raises(error, match=words):
            gt.simulate(*arguments)

    @pytest.mark.parametrize(
        "options", [{"layers": 0}, {"layers": 2.5}, {"rtol": 0.0}, {"rtol": "a"}, {"max_steps": 0}]
    )
    def test_bad_options(self, options):
        with pytest.raises(InvalidNumber, match=next(iter(options))):
            gt.simulate(LAW, general(), 1.0, **options)

    def test_what_cannot_fit_into_memory_is_refused(self, monkeypatch):
        monkeypatch.setattr(memory, "available", lambda: 50_000)
        with pytest.raises(TooLarge, match="memory"):
            gt.simulate(gt.Gaussian(np.zeros(20), np.eye(20)), gt.Parameters(A=np.eye(20)), 1.0)
        # What would fit for a while is computed for a while.
        monkeypatch.setattr(memory, "available", lambda: 200_000)
        path = gt.simulate(LAW, general(), 1e4)
        assert path.status is Status.STEP_LIMIT
        assert 50 < path.steps < 500

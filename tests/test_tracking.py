"""Feedback around plans: the regulator against independent ones, and what it achieves."""

from __future__ import annotations

from functools import cache

import control
import numpy as np
import pytest
import scipy.linalg
from hypothesis import assume, given, strategies as st
from scipy.integrate import solve_ivp

import gtcontrol as gt
from gtcontrol.cli import kinds
from gtcontrol.comparison.feedback.closed_loop import ClosedLoop, Stack, stack_rates
from gtcontrol.comparison.feedback.nominal import nominal_of
from gtcontrol.comparison.feedback.regulator import default_weights, regulate
from gtcontrol.errors import (
    InvalidControls,
    InvalidMethod,
    InvalidNumber,
    InvalidShape,
    OutOfScale,
    ProblemFileInvalid,
    RankMismatch,
)
from gtcontrol.field import rates
from gtcontrol.problem import zoo
from gtcontrol.progress import silent
from gtcontrol.results.feedback import corrections, deviation, joined, saturate, split_state


def gaussian(seed: int, d: int = 2, rank: int | None = None) -> gt.Gaussian:
    rng = np.random.default_rng(seed)
    return gt.Gaussian(rng.normal(size=d), rng.normal(size=(d, d if rank is None else rank)))


def parameters(seed: int, d: int = 2, heads: int = 0) -> gt.Parameters:
    rng = np.random.default_rng(seed)
    lead = (heads,) if heads else ()
    return gt.Parameters(
        A=rng.normal(size=(d, d)) / 2,
        B=-np.eye(d) / 2 + rng.normal(size=(*lead, d, d)) / 5,
        V=np.eye(d) / 2 + rng.normal(size=(*lead, d, d)) / 5,
        b=rng.normal(size=d),
        beta=rng.normal(size=(*lead, d)) / 2,
    )


@cache
def plan_of(name: str) -> gt.Steering:
    """The plan of a steering problem of the zoo, from fewer starts."""
    path = zoo.path(name)
    table = kinds.read(path)
    steer = table.steer.model_copy(update={"starts": 4})
    task = kinds.prepare(table.model_copy(update={"steer": steer, "tokens": None}), path)
    plan = task.run(silent)
    assert plan.answered
    return plan


@cache
def tracked(name: str, samples: int = 10) -> gt.Tracking:
    return gt.track(plan_of(name), samples=samples)


@cache
def geodesic() -> gt.Steering:
    """A plan in closed form: cheap, time-varying, with A and b."""
    start = gt.Gaussian.from_covariance([0.0, 1.0], [[1.0, 0.3], [0.3, 0.5]])
    target = gt.Gaussian.from_covariance([1.0, -1.0], [[0.4, -0.2], [-0.2, 1.5]])
    return gt.steer(start, target, 1.5, controls="Ab", method="transport-geodesic")


@cache
def kept_geodesic() -> gt.Tracking:
    return gt.track(geodesic(), samples=3, perturbation=0.2)


@cache
def kept_subspace() -> gt.Tracking:
    """A plan of rank 2 in dimension 9, solved in a subspace."""
    start, target = gaussian(3, 9, 2), gaussian(4, 9, 2)
    return gt.track(gt.steer(start, target, controls="Ab", starts=1), samples=5)


def rate_of(p: gt.Parameters, x, r: int, u=None, letters: str = "AVBb"):
    """Rate of the state (m, L) with deviations of the controls, by the package's one field."""
    m, L = split_state(x, p.dim)
    values, first = {c: getattr(p, c) for c in "AVBb"}, 0
    for c in letters if u is not None else "":
        size = values[c].size
        values[c] = values[c] + u[first : first + size].reshape(values[c].shape)
        first += size
    heads = gt.Parameters.trusted(**values, beta=p.beta).heads
    return joined(*rates(m, L, values["A"], heads, values["b"]))


def jacobian(f, x, h: float = 1e-30):
    """Derivative by a complex step: exact to rounding."""
    return np.array([f(x + 1j * h * e).imag / h for e in np.eye(x.size)]).T


def linearised(plan: gt.Tracking, t: float):
    """F, B of the plan at time t, and the weights R of the controls, entry by entry."""
    path, r = plan.nominal, plan.problem.start.rank
    p, law = path.problem.schedule(t), path.at(t)
    x, letters = joined(law.mean, law.factor), plan.problem.controls
    sizes = [getattr(p, c).size for c in letters]
    F = jacobian(lambda z: rate_of(p, z, r), x)
    B = jacobian(lambda u: rate_of(p, x, r, u, letters), np.zeros(sum(sizes)))
    R = np.repeat([plan.problem.control_weights[c] for c in letters], sizes)
    return F, B, R


def turns(factor):
    """Changes of a factor that leave the law alone, with zeros for the mean; one in each row."""
    d, r = factor.shape
    made = []
    for i in range(r):
        for j in range(i):
            skew = np.zeros((r, r))
            skew[i, j], skew[j, i] = 1.0, -1.0
            made.append(np.concatenate([np.zeros(d), (factor @ skew).ravel()]))
    return np.array(made).reshape(len(made), d * (1 + r))


def across(factor):
    """Orthonormal basis (n, q) of the changes that are orthogonal to turns."""
    d, r = factor.shape
    turning = turns(factor)
    return scipy.linalg.null_space(turning) if len(turning) else np.eye(d * (1 + r))


# -- the distance and the corrections ---------------------------------------------------------


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(0, 4))
def test_the_deviation_is_as_long_as_the_distance(seed, d, r):
    assume(r <= d)
    one, other = gaussian(seed, d, r), gaussian(seed + 1, d, r)
    x = deviation(other.mean, other.factor, one.mean, one.factor)
    np.testing.assert_allclose(np.linalg.norm(x), gt.wasserstein(one, other), rtol=1e-9)
    turn = scipy.linalg.qr(np.random.default_rng(seed).normal(size=(r, r)))[0] if r else np.eye(0)
    again = deviation(other.mean, other.factor @ turn, one.mean, one.factor)
    np.testing.assert_allclose(again, x, atol=1e-9)  # whichever factor was taken
    assert np.max(np.abs(turns(one.factor) @ x), initial=0.0) < 1e-9 * max(1, x @ x)


@pytest.mark.parametrize("heads", [0, 1, 3])
@pytest.mark.parametrize("letters", ["AVBb", "V", "Bb"])
def test_corrections_are_those_of_the_regulator(heads, letters):
    p, law = parameters(1, 3, heads), gaussian(1, 3, 2)
    x = joined(law.mean, law.factor)
    sizes = [getattr(p, c).size for c in letters]
    B = jacobian(lambda u: rate_of(p, x, 2, u, letters), np.zeros(sum(sizes)))
    weights = dict(zip(letters, (0.5, 2.0, 3.0, 0.7), strict=False))
    R = np.repeat(list(weights.values()), sizes)
    costates = np.random.default_rng(2).normal(size=(5, x.size))
    made = corrections(p, law.mean, law.factor, weights, costates)
    found = np.concatenate([made[c].reshape(5, -1) for c in letters], axis=1)
    np.testing.assert_allclose(found, -(costates @ B) / R, atol=1e-13)


def test_stacks_move_as_single_laws_do():
    p = parameters(3, 3, 2)
    laws = [gaussian(10 + i, 3, 2) for i in range(4)]
    stack = Stack(np.array([g.mean for g in laws]), np.array([g.factor for g in laws]))
    rng = np.random.default_rng(0)
    controls = {c: getattr(p, c) + rng.normal(size=(4, *getattr(p, c).shape)) for c in "AVBb"}
    means, factors = stack_rates(p, controls, stack)
    for i, law in enumerate(laws):
        own = gt.Parameters(**{c: controls[c][i] for c in "AVBb"}, beta=p.beta)
        mean, factor = rates(law.mean, law.factor, own.A, own.heads, own.b)
        np.testing.assert_allclose(means[i], mean, atol=1e-12)
        np.testing.assert_allclose(factors[i], factor, atol=1e-12)


def test_controls_are_cut_to_their_bounds():
    p = gt.Parameters(A=[[0.9, 0.0], [0.0, 0.0]], b=[3.0, 4.0])
    bounds = gt.Bounds(entries={"A": 1.0}, norms={"b": 2.5, "A": 1.2})
    change = {"A": np.array([np.eye(2) * 0.05, np.eye(2) * 2]), "b": np.zeros((2, 2))}
    made, cut = saturate(p, change, bounds, (2,))
    np.testing.assert_allclose(made["A"][0], [[0.95, 0], [0, 0.05]])
    np.testing.assert_allclose(np.linalg.norm(made["A"][1]), 1.2)
    np.testing.assert_allclose(made["b"], [[1.5, 2.0]] * 2)
    assert cut.tolist() == [True, True]
    _, cut = saturate(p, {"A": change["A"]}, bounds, (2,))
    assert cut.tolist() == [False, True]


# -- the regulator ---------------------------------------------------------------------------


def test_long_stationary_plans_have_the_gains_of_python_control():
    """A + V S B = 0 keeps every factor: constant linearisation, so K(0) is that of `lqr`."""
    S = np.array([[2.0, 0.5], [0.5, 1.0]])
    p = gt.Parameters(A=np.eye(2), V=np.eye(2), B=-np.linalg.inv(S))
    start = gt.Gaussian.from_covariance([0.0, 0.0], S)
    plan = gt.simulate(start, p, 12.0)
    kept = gt.track(plan, weights=dict(zip("AVBb", (1.0, 2.0, 0.5, 3.0), strict=True)),
                    state_weight=0.8, terminal_weight=2.0, samples=2)  # fmt: skip
    F, B, R = linearised(kept, 0.0)
    H = across(plan.at(0.0).factor)
    K, _, modes = control.lqr(H.T @ F @ H, H.T @ B, 0.8 * np.eye(H.shape[1]), np.diag(R))
    assert modes.real.max() < -0.5  # so that twelve units of time are long
    found = kept.gain(0.0)
    gains = np.concatenate([found[c].reshape(-1, F.shape[0]) for c in "AVBb"])
    np.testing.assert_allclose(gains, K @ H.T, atol=1e-6)


def test_finite_horizons_agree_with_the_exponential_of_the_hamiltonian():
    S = np.array([[2.0, 0.5], [0.5, 1.0]])
    p = gt.Parameters(A=np.eye(2), V=np.eye(2), B=-np.linalg.inv(S))
    plan = gt.simulate(gt.Gaussian.from_covariance([0.0, 0.0], S), p, 0.7)
    kept = gt.track(plan, controls="VBb", state_weight=0.3, terminal_weight=50.0, samples=2)
    F, B, R = linearised(kept, 0.0)
    H = across(plan.at(0.0).factor)
    n, F, G = H.shape[1], H.T @ F @ H, H.T @ (B / R) @ B.T @ H
    flow = scipy.linalg.expm(-0.7 * np.block([[F, -G], [-0.3 * np.eye(n), -F.T]]))
    ends = flow @ np.vstack([np.eye(n), 50.0 * np.eye(n)])
    P = ends[n:] @ np.linalg.inv(ends[:n])
    np.testing.assert_allclose(kept.values[0], H @ P @ H.T, rtol=1e-7, atol=1e-7)


def test_the_value_function_is_the_cost_of_the_linearised_closed_loop():
    kept = kept_geodesic()
    weights, path = kept.problem, kept.nominal
    x0 = across(path.at(0.0).factor) @ np.random.default_rng(3).normal(size=5)

    def rate(t, y):
        x = y[:-1]
        F, B, R = linearised(kept, t)
        P = kept._follower._riccati(t)
        u = -(B.T @ P @ x) / R
        H = across(path.at(t).factor)
        running = weights.state_weight * np.sum((H.T @ x) ** 2) + np.sum(R * u**2)
        return np.append(F @ x + B @ u, running)

    ended = solve_ivp(rate, (0, weights.horizon), np.append(x0, 0.0), rtol=1e-9, atol=1e-12).y[
        :, -1
    ]
    last = across(path.final.factor).T @ ended[:-1]
    cost = ended[-1] + weights.terminal_weight * last @ last
    np.testing.assert_allclose(cost, x0 @ kept.values[0] @ x0, rtol=1e-6)


@pytest.mark.parametrize("name", ["steer-planar", "subspace"])
def test_the_riccati_matrix_sees_laws_only(name):
    """It is zero on turns of the factor, at every time, and definite across them."""
    kept = kept_subspace() if name == "subspace" else tracked(name)
    basis = kept.nominal.problem.schedule.basis
    for i in (0, len(kept.times) // 2, -1):
        factor, P = kept.nominal.at(float(kept.times[i])).factor, kept.values[i]
        factor = factor if basis is None else basis.T @ factor
        scale = np.linalg.norm(P)
        assert np.max(np.abs(turns(factor) @ P)) < 1e-7 * scale
        H = across(factor)
        assert np.linalg.eigvalsh(H.T @ P @ H)[0] > 0


def test_authority_is_the_gramian():
    kept = kept_geodesic()
    n, T = kept.values.shape[1], kept.problem.horizon

    def rate(t, y):
        F, B, R = linearised(kept, t)
        W = y.reshape(n, n)
        return (F @ W + W @ F.T + (B / R) @ B.T).ravel()

    W = solve_ivp(rate, (0, T), np.zeros(n * n), rtol=1e-9, atol=1e-12).y[:, -1].reshape(n, n)
    H = across(kept.nominal.final.factor)
    expected = np.sqrt(np.linalg.eigvalsh(H.T @ W @ H)[::-1])
    laws = (kept.problem.start, kept.problem.target)
    length = np.sqrt(np.mean([g.trace for g in laws]))
    np.testing.assert_allclose(kept.authority, expected / length, rtol=1e-6)
    moved = np.linalg.norm(np.sqrt(np.diag(kept.directions @ W @ kept.directions.T)))
    np.testing.assert_allclose(moved, np.linalg.norm(expected), rtol=1e-6)


def test_dearer_corrections_are_weaker():
    one = kept_geodesic()
    weights = {c: 100 * w for c, w in one.problem.control_weights.items()}
    dear = gt.track(geodesic(), samples=3, perturbation=0.2, weights=weights)
    times = np.linspace(0, 1.5, 5)
    for letter, norms in dear.gain_norms(times).items():
        assert np.all(norms < one.gain_norms(times)[letter])
    assert dear.ratio < one.ratio


def test_units_change_nothing():
    plan, c, T = geodesic(), 250.0, 0.01
    ends = (plan.problem.start, plan.problem.target)
    laws = [gt.Gaussian(c * law.mean, c * law.factor) for law in ends]
    other = gt.steer(*laws, 1.5 * T, controls="Ab", method="transport-geodesic")
    one, scaled = kept_geodesic(), gt.track(other, samples=3, perturbation=0.2)
    np.testing.assert_allclose(scaled.closed, c * one.closed, rtol=1e-4)
    np.testing.assert_allclose(scaled.authority, one.authority, rtol=1e-6)
    assert scaled.tolerated == pytest.approx(one.tolerated)


# -- what it achieves -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "steer-planar",
        pytest.param("steer-rank-deficient", marks=pytest.mark.slow),
        "steer-attention-only",
        pytest.param("steer-bounded", marks=pytest.mark.slow),
    ],
)
def test_perturbed_starts_end_ten_times_closer(name):
    kept = tracked(name)
    assert kept.status is gt.Status.SUCCESS
    assert kept.ratio >= 10
    assert kept.level.tenfold == 1.0
    assert kept.tolerated >= 0.2
    assert kept.mesh_error < 1e-4
    assert kept.replay_error < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_fifty_samples_of_any_seed_end_ten_times_closer(seed):
    kept = gt.track(plan_of("steer-planar"), samples=50, seed=seed)
    assert np.median(kept.alone / kept.closed) >= 10


def test_the_closed_loop_is_a_schedule_that_the_simulator_confirms():
    kept = tracked("steer-planar")
    start = gt.Gaussian(kept.path.closed_means[0], kept.path.closed_factors[0])
    alone = gt.simulate(start, kept.plan.schedule).final
    closed = gt.simulate(start, kept.schedule(start), rtol=1e-9).final
    target = kept.problem.target
    assert gt.wasserstein(closed, target) < 0.1 * gt.wasserstein(alone, target)
    end = gt.Gaussian(kept.path.alone_means[-1], kept.path.alone_factors[-1])
    assert gt.wasserstein(alone, end) < 1e-6
    distances = (gt.wasserstein(alone, target), gt.wasserstein(closed, target))
    for found, all_found in zip(distances, (kept.alone, kept.closed), strict=True):
        assert np.min(np.abs(all_found - found)) < 1e-6


def test_on_the_plan_nothing_is_corrected():
    kept = tracked("steer-planar")
    for t in (0.0, 0.37, 1.0):
        law = kept.nominal.at(t)
        turned = gt.Gaussian(law.mean, law.factor @ [[0.6, 0.8], [-0.8, 0.6]])
        p, plan = kept.feedback(t, turned), kept.plan.schedule(t)
        for c in "AVBb":
            np.testing.assert_allclose(getattr(p, c), getattr(plan, c), atol=1e-6)
        assert kept.cost_to_go(t, law) < 1e-12


def test_feedback_is_the_gain_times_the_deviation():
    kept, t = tracked("steer-planar"), 0.3
    law, plan = gaussian(5), kept.plan.schedule(t)
    here = kept.nominal.at(t)
    x = deviation(law.mean, law.factor, here.mean, here.factor)
    made = kept.feedback(t, law)
    for c, K in kept.gain(t).items():
        np.testing.assert_allclose(getattr(made, c), getattr(plan, c) - K @ x, atol=1e-10)
    np.testing.assert_allclose(kept.cost_to_go(t, law), x @ kept._follower._riccati(t) @ x)


def test_samples_are_displaced_by_what_was_asked_for():
    kept = kept_geodesic()
    start, path = kept.problem.start, kept.path
    size = np.sqrt(start.trace)
    assert np.linalg.norm(path.alone_means[0] - start.mean) == pytest.approx(0.2 * size)
    assert np.linalg.norm(path.alone_factors[0] - start.factor) == pytest.approx(0.2 * size)
    np.testing.assert_array_equal(path.alone_means[0], path.closed_means[0])
    again = gt.track(geodesic(), samples=3, perturbation=0.2)
    assert repr(again).startswith(f"Tracking({again.status.name}, dim=2, samples=3, ")
    assert len(repr(again)) < 100
    np.testing.assert_array_equal(kept.closed, again.closed)
    other = gt.track(geodesic(), samples=3, perturbation=0.2, seed=1)
    assert not np.array_equal(kept.closed, other.closed)


def test_bounds_are_kept_by_cutting():
    """In minimum time every entry of A is at its bound: feedback can only let go."""
    kept = tracked("steer-minimum-time")
    assert kept.level.saturated > 0.5
    assert kept.level.closer == 1.0  # never worse than the plan alone, ...
    assert kept.level.tenfold < 1.0  # ... but less good than without bounds
    start = gt.Gaussian(kept.path.closed_means[0], kept.path.closed_factors[0])
    schedule = kept.schedule(start)
    for t in np.linspace(0, schedule.horizon, 40):
        p = schedule(float(t))
        assert max(np.max(np.abs(p.A)), np.max(np.abs(p.b))) <= 1.0
    assert "cut" in kept.summary()


@pytest.mark.slow
def test_bounds_on_the_covariance_are_watched():
    kept = tracked("steer-bounded")
    assert 0 < kept.level.exceeded <= 1
    assert kept.level.saturated > 0  # the norm of V
    assert "break them" in kept.summary()


def test_sizes_beyond_what_is_tolerated_say_how_they_fail():
    kept = tracked("steer-attention-only")
    sizes = [level.size for level in kept.levels]
    assert sizes == sorted(sizes)
    assert kept.failing is not None
    assert kept.tolerated < kept.failing.size <= 1.2 * kept.tolerated
    assert kept.failing.escaped > 0
    assert kept.failing.escape_time < kept.problem.horizon
    assert "leave every bound" in kept.summary()


def test_starts_that_escape_have_no_schedule():
    kept = tracked("steer-attention-only")
    far = gt.Gaussian(kept.problem.start.mean, 12.0 * kept.problem.start.factor)
    with pytest.raises(OutOfScale, match="leaves every bound at t ="):
        kept.schedule(far)


def test_controls_without_authority_are_reported():
    """With V = 0 the score matrix moves nothing: feedback in B alone changes nothing."""
    plan = gt.simulate(gaussian(1), gt.Parameters(A=np.eye(2) / 2, B=np.eye(2)), 1.0)
    idle = gt.track(plan, controls="B", samples=5)
    assert idle.status is gt.Status.INEFFECTIVE
    assert not idle.answered
    np.testing.assert_array_equal(idle.authority, 0)
    np.testing.assert_allclose(idle.closed, idle.alone)
    assert idle.tolerated == 0
    assert "nothing can be corrected" in idle.summary()


def test_the_bias_corrects_the_mean_only():
    plan = gt.simulate(gaussian(2), gt.Parameters(A=np.eye(2) / 2, b=[1.0, 0.0]), 1.0)
    kept = gt.track(plan, controls="b", samples=5)
    assert np.count_nonzero(kept.authority > 1e-6) == 2
    assert kept.status is gt.Status.SUCCESS
    lost = kept.directions[kept.authority <= 1e-6 * kept.authority[0]]
    assert lost.shape == (3, 6)
    np.testing.assert_allclose(lost[:, :2], 0, atol=1e-6)  # the covariance stays as it is
    assert "none in 3 directions of 5" in kept.summary()


def test_plans_in_a_subspace_are_tracked_in_it():
    kept = kept_subspace()
    basis = kept.plan.schedule.basis
    assert basis is not None
    assert kept.status is gt.Status.SUCCESS
    assert kept.ratio > 10
    assert kept.values.shape[1] == basis.shape[1] * 3
    p = kept.feedback(0.4, gaussian(5, 9, 2))
    outside = np.eye(9) - basis @ basis.T
    assert np.linalg.norm(outside @ p.A) < 1e-12
    sample = gt.Gaussian(kept.path.closed_means[0], kept.path.closed_factors[0])
    end = gt.simulate(sample, kept.schedule(sample), rtol=1e-9).final
    assert gt.wasserstein(end, gt.Gaussian(kept.path.closed_means[-1],
                                           kept.path.closed_factors[-1])) < 1e-5  # fmt: skip


def test_points_are_tracked():
    start, target = (gt.Gaussian(m, np.zeros((2, 0))) for m in ([0.0, 0.0], [2.0, 1.0]))
    plan = gt.steer(start, target, controls="Ab", method="transport-geodesic")
    kept = gt.track(plan, samples=5)
    assert kept.ratio > 10
    assert np.linalg.norm(kept.path.alone_means[0]) == pytest.approx(0.05 * np.sqrt(5))


def test_heads_and_score_biases_are_tracked():
    plan = gt.simulate(gaussian(6), parameters(6, 2, 2), 1.0)
    kept = gt.track(plan, controls="VBb", samples=6)
    assert kept.ratio > 10
    assert kept.gain(0.5)["V"].shape == (2, 2, 2, 6)
    p = kept.feedback(0.5, gaussian(7))
    assert p.V.shape == (2, 2, 2)
    np.testing.assert_array_equal(p.beta, plan.problem.schedule(0.5).beta)
    assert kept.replay_error < 1e-5


def test_a_finer_mesh_agrees():
    nominal = nominal_of(geodesic(), None)
    weights = default_weights(nominal, "Ab")
    regulator = regulate(nominal, weights, silent)
    start = geodesic().problem.start
    starts = Stack(start.mean[None] + 3.0, 5.0 * start.factor[None])
    ends = [
        ClosedLoop(nominal, *regulator.mesh(k), weights.control).run(starts, silent, feedback=True)
        for k in (0, 1, 2)
    ]
    first, second, third = (np.append(e.laws.means[0], e.laws.factors[0]) for e in ends)
    coarse, fine = np.linalg.norm(first - second), np.linalg.norm(second - third)
    assert coarse < 1e-4
    assert fine < coarse / 8  # of fourth order, 16, in the limit


# -- progress, interruption, saving -----------------------------------------------------------


def test_progress_goes_up_to_the_end():
    told = []
    gt.track(geodesic(), samples=2, progress=lambda fraction, text: told.append((fraction, text)))
    fractions = [f for f, _ in told]
    assert fractions == sorted(fractions)
    assert fractions[0] >= 0
    assert fractions[-1] <= 1
    assert {"Riccati equation", "replay"} <= {text for _, text in told}


def test_an_interruption_keeps_the_feedback():
    def stop(fraction, text):
        if text.startswith("sizes"):
            raise KeyboardInterrupt

    kept = gt.track(geodesic(), samples=3, progress=stop)
    assert kept.status is gt.Status.INTERRUPTED
    assert not kept.answered
    assert len(kept.levels) == 1
    assert kept.ratio > 10
    assert "was not found out" in kept.summary()
    assert set(kept.plot()) == {"distances", "sample", "deviation", "gains"}

    def stop_early(fraction, text):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gt.track(geodesic(), samples=3, progress=stop_early)


@pytest.mark.parametrize("name", ["steer-attention-only", "steer-minimum-time"])
def test_saving_loses_nothing(name, tmp_path):
    kept = tracked(name)
    kept.save(tmp_path / "kept")
    again = gt.load(tmp_path / "kept")
    assert isinstance(again, gt.Tracking)
    assert again.summary() == kept.summary()
    assert again.levels == kept.levels
    for field in ("times", "values", "alone", "closed", "closed_history", "directions"):
        np.testing.assert_array_equal(getattr(again, field), getattr(kept, field))
    start = gt.Gaussian(kept.path.closed_means[0], kept.path.closed_factors[0])
    t = 0.3 * kept.problem.horizon
    for c in "AVBb":
        one, other = (getattr(k.feedback(t, start), c) for k in (kept, again))
        np.testing.assert_allclose(other, one, atol=1e-9)


def test_simulations_are_saved_as_plans(tmp_path):
    plan = gt.simulate(gaussian(8), parameters(8), 0.5)
    kept = gt.track(plan, samples=3)
    kept.save(tmp_path / "kept")
    again = gt.load(tmp_path / "kept")
    assert isinstance(again.plan, gt.Trajectory)
    assert again.ratio == kept.ratio


def test_the_report_is_whole(tmp_path):
    kept = tracked("steer-attention-only")
    page = kept.report(tmp_path / "page.html").read_text(encoding="utf-8")
    for words in ("times closer", "Perturbations of all sizes", "What the controls can correct",
                  "gt.track(", "not changed by feedback"):  # fmt: skip
        assert words in page
    assert set(kept.plot()) == {"distances", "sample", "deviation", "gains", "tolerated"}


# -- files -----------------------------------------------------------------------------------

FILE = """\
kind = "track"
title = "t"
[start]
mean = [0.0]
covariance = [[1.0]]
[target]
mean = [1.0]
covariance = [[2.0]]
[steer]
controls = "{controls}"
{steer}
[track]
{track}
[expect]
{expect}
"""


def prepared(tmp_path, steer="", track="samples = 5", expect="", controls="Ab"):
    path = tmp_path / "t.toml"
    text = FILE.format(steer=steer, track=track, expect=expect, controls=controls)
    path.write_text(text, encoding="utf-8")
    return kinds.prepare(kinds.read(path), path)


def test_files_are_steered_then_tracked(tmp_path):
    task = prepared(
        tmp_path,
        track="samples = 5\nweights = {A = 0.5}\nstate_weight = 0.0\nterminal_weight = 300.0",
        expect='status = "SUCCESS"\nratio_at_least = 10\nratio_at_most = 11\nsaturated_at_most = 0',
    )
    assert task.about == "track, dimension 1, rank 1, controls Ab"
    result = task.run(silent)
    assert result.problem.control_weights["A"] == 0.5
    assert (result.problem.state_weight, result.problem.terminal_weight) == (0.0, 300.0)
    assert [f.met for f in task.findings(result)] == [True, True, False, True]


def test_a_plan_that_does_not_arrive_is_the_answer(tmp_path):
    task = prepared(
        tmp_path,
        steer="max_iterations = 1\nstarts = 1\nreplay_tolerance = 1e-14",
        expect="ratio_at_least = 10",
        controls="AVBb",
    )
    result = task.run(silent)
    assert isinstance(result, gt.Steering)
    assert not result.answered
    assert [f.met for f in task.findings(result)] == [False]


def test_interrupted_files_keep_the_plan(tmp_path):
    task = prepared(tmp_path, steer='method = "transport-geodesic"')

    def stop(fraction, text):
        if text == "Riccati equation":
            raise KeyboardInterrupt

    result = task.run(stop)
    assert isinstance(result, gt.Steering)
    assert result.status is gt.Status.INTERRUPTED


@pytest.mark.parametrize(
    ("track", "words"),
    [
        ("weights = {V = 1.0}", "`track.weights.V` is given, but the controls are Ab"),
        ('controls = "AX"', "unknown letter"),
        ("perturbation = 0.0", "greater than 0"),
        ("samples = 0", "at least 1"),
        ("amount = 3", "amount"),
    ],
)
def test_files_with_mistakes_are_refused(tmp_path, track, words):
    with pytest.raises((ProblemFileInvalid, InvalidControls), match=words):
        prepared(tmp_path, track=track)


# -- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"controls": "X"}, InvalidControls, "unknown letter"),
        ({"weights": {"V": 1.0}}, InvalidControls, "`weights` holds 'V', which is none of"),
        ({"weights": [1.0]}, InvalidControls, "must map control letters"),
        ({"weights": {"A": 0.0}}, InvalidNumber, "`weights.A` must be greater than 0"),
        ({"state_weight": -1.0}, InvalidNumber, "`state_weight` must be at least 0"),
        ({"terminal_weight": 0.0}, InvalidNumber, "`terminal_weight` must be greater than 0"),
        ({"perturbation": 0.0}, InvalidNumber, "`perturbation` must be greater than 0"),
        ({"samples": 0}, InvalidNumber, "`samples` must be at least 1"),
        ({"seed": -1}, InvalidNumber, "`seed` must be at least 0"),
    ],
)
def test_bad_arguments_are_one_line(options, error, words):
    with pytest.raises(error, match=words) as caught:
        gt.track(geodesic(), **options)
    assert "\n" not in str(caught.value)


def test_what_is_no_plan_is_refused():
    law = gt.Gaussian([0.0], [[1.0]])
    with pytest.raises(InvalidShape, match="must be a Steering plan or the Trajectory"):
        gt.track(gt.Schedule.constant(gt.Parameters(dim=1), 1.0))
    with pytest.raises(InvalidMethod, match=r"ends before its horizon \(BLOW_UP\)"):
        gt.track(gt.simulate(law, gt.Parameters(V=[[1.0]], B=[[1.0]]), 1.0))
    with pytest.raises(InvalidMethod, match="residual layers"):
        gt.track(gt.simulate(law, gt.Parameters(A=[[1.0]]), 1.0, layers=3))
    with pytest.raises(InvalidMethod, match="process noise"):
        gt.track(gt.simulate(law, gt.Parameters(A=[[1.0]], noise=[[1.0]]), 1.0))
    failed = gt.steer(law, gt.Gaussian([1.0], [[2.0]]), max_iterations=1, starts=1,
                      replay_tolerance=1e-14)  # fmt: skip
    assert not failed.answered
    with pytest.raises(InvalidMethod, match="did not arrive"):
        gt.track(failed)


def test_laws_that_do_not_fit_are_refused():
    kept = kept_subspace()
    with pytest.raises(RankMismatch, match="rank 4, the plan 2"):
        kept.feedback(0.0, gaussian(1, 9, 4))
    with pytest.raises(InvalidShape, match="dimension 3, the plan 9"):
        kept.schedule(gaussian(1, 3, 2))
    with pytest.raises(InvalidShape, match="must be a Gaussian"):
        kept.cost_to_go(0.0, None)
    with pytest.raises(gt.GtcontrolError, match="it was asked for t = 7"):
        kept.feedback(7.0, gaussian(1, 9, 2))

"""Optimal steering against closed forms, Pontryagin's principle, and proved bounds."""

import os
import signal
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import brentq

import gtcontrol as gt
from gtcontrol.errors import InvalidMethod, OutOfScale
from gtcontrol.gaussian import squared_wasserstein
from gtcontrol.steering.lower_bounds import stretch
from tests import strategies as some
from tests.benchmarks.instances import random_law
from tests.oracles import pontryagin

AFFINE = gt.ControlEnergy(kinetic=0.0)


def pair(d, r, seed, *, centred=False):
    rng = np.random.default_rng(seed)
    return tuple(random_law(rng, d, r, 100.0, centred=centred) for _ in range(2))


def law(mean, covariance):
    return gt.Gaussian.from_covariance(mean, covariance)


# -- kinetic energy --------------------------------------------------------------------


@pytest.mark.parametrize("controls", ["Ab", "AVBb", "VBb"])
@given(some.gaussians(dim=3, rank=2), some.gaussians(dim=3, rank=2))
@settings(max_examples=10)
def test_the_kinetic_optimum_is_the_squared_distance_over_the_horizon(controls, start, target):
    plan = gt.steer(start, target, 2.0, controls=controls, cost=gt.KineticEnergy())
    assert plan.status is gt.Status.SUCCESS
    least = squared_wasserstein(start, target) / 2.0
    assert plan.cost == pytest.approx(least, rel=1e-12, abs=1e-28)
    assert plan.replay_error <= 1e-9


def test_kinetic_energy_in_dimension_768():
    rng = np.random.default_rng(1)
    start, target = (
        gt.Gaussian(rng.standard_normal(768), rng.standard_normal((768, 64))) for _ in range(2)
    )
    plan = gt.steer(start, target, cost=gt.KineticEnergy())
    assert plan.status is gt.Status.SUCCESS
    assert abs(plan.gap) <= 1e-12
    assert plan.schedule.dim == 768


def test_kinetic_energy_refuses_bounds_that_bind():
    start, target = law([0.0, 0.0], np.eye(2)), law([0.0, 0.0], 9 * np.eye(2))
    with pytest.raises(gt.GtcontrolError, match=r"breaks bounds\.entries\.A"):
        gt.steer(start, target, cost=gt.KineticEnergy(), bounds=gt.Bounds(entries={"A": 1.5}))
    loose = gt.Bounds(entries={"A": 2.1})
    assert gt.steer(start, target, cost=gt.KineticEnergy(), bounds=loose).status.answered


# -- energy of A and b -----------------------------------------------------------------


@pytest.mark.parametrize(("d", "r", "seed"), [(2, 2, 0), (3, 2, 1), (3, 3, 2), (4, 2, 3)])
def test_affine_energy_agrees_with_pontryagin(d, r, seed):
    start, target = pair(d, r, seed, centred=True)
    truth = pontryagin.energy(start.factor, target.factor).cost
    plan = gt.steer(start, target, controls="Ab", cost=AFFINE)
    assert plan.status is gt.Status.SUCCESS
    assert plan.cost <= truth * (1 + 1e-6)
    assert plan.cost >= plan.lower_bound * (1 - 1e-9)


@pytest.mark.parametrize(("d", "r", "seed"), [(2, 2, 4), (3, 1, 5)])
def test_affine_energy_with_a_mean_agrees_with_pontryagin(d, r, seed):
    start, target = pair(d, r, seed)
    truth = pontryagin.energy_with_mean(start.mean, start.factor, target.mean, target.factor).cost
    plan = gt.steer(start, target, controls="Ab", cost=AFFINE)
    assert plan.cost <= truth * (1 + 1e-6)


def test_commuting_covariances_need_half_the_logarithm():
    start, target = law([0.0, 0.0], np.diag([1.0, 4.0])), law([0.0, 0.0], np.diag([9.0, 25.0]))
    plan = gt.steer(start, target, 2.0, controls="Ab", cost=AFFINE)
    change = np.log([9.0, 25.0 / 4.0])
    assert plan.cost == pytest.approx(np.sum(change**2) / (4 * 2.0), rel=1e-7)
    assert plan.gap == pytest.approx(0, abs=1e-7)  # it meets its proved lower bound
    assert pytest.approx(np.diag(change / 4.0), abs=1e-3) == plan.schedule(0.7).A


@pytest.mark.parametrize(
    ("L0", "L1", "expected"),
    [
        (np.eye(4)[:, :2], np.eye(4)[:, 2:], 6.3234),
        (np.diag([10.0, 0.1]), np.diag([0.1, 10.0]), 3.43506),
        (np.eye(2), np.diag([1.0, -2.0]), 1.79794),
        (0.1 * np.eye(2), 10 * np.eye(2), 42.41703),
        (np.eye(2)[:, :1], 2 * np.eye(2)[:, 1:], 3.725864),
    ],
    ids=["orthogonal ranges", "swapped axes", "wrong determinant", "grow 1e4", "rank one"],
)
def test_several_starts_find_the_best_known_values(L0, L1, expected):
    d = L0.shape[0]
    start, target = gt.Gaussian(np.zeros(d), L0), gt.Gaussian(np.ones(d), L1)
    plan = gt.steer(start, target, controls="Ab", cost=AFFINE)
    assert plan.status is gt.Status.SUCCESS
    assert plan.cost <= expected * (1 + 2e-5)
    assert plan.replay_error <= 1e-9


# -- attention -------------------------------------------------------------------------


@pytest.mark.parametrize("controls", ["AVBb", "VBb", "AVb", "AVB", "VB", "AV", "ABb"])
@pytest.mark.parametrize(("d", "r"), [(2, 2), (3, 1)])
def test_any_subset_of_the_controls(controls, d, r):
    start, target = pair(d, r, 11)
    plan = gt.steer(start, target, controls=controls)
    assert plan.status is gt.Status.SUCCESS
    assert plan.replay_error <= 1e-5
    assert plan.cost >= plan.lower_bound
    now = plan.schedule(0.3)
    for letter in set("AVBb") - set(controls):
        assert not np.any(getattr(now, letter))
    # the rank is kept, and the replay is the flow under the very schedule that is returned
    assert plan.smallest_eigenvalue > 0
    again = gt.simulate(start, plan.schedule)
    assert gt.wasserstein(again.final, plan.trajectory.final) <= 1e-7


def test_attention_is_used_where_it_pays():
    start, target = pair(2, 2, 12)
    with_attention = gt.steer(start, target, controls="AVBb")
    without = gt.steer(start, target, controls="Ab")
    assert with_attention.cost < 0.99 * without.cost
    assert np.linalg.norm(with_attention.schedule(0.5).V) > 0.05


def test_a_start_without_attention_is_a_saddle_if_there_is_no_mean():
    # V S B has zero derivative in V and in B at V = B = 0; with a mean, V also acts through V m.
    start, target = pair(2, 2, 5, centred=True)
    stuck = gt.steer(start, target, initial=gt.steer(start, target, controls="Ab"))
    assert stuck.status is gt.Status.SUCCESS
    assert not any(stuck.schedule(t).V.any() for t in np.linspace(0, 1, 9))
    plan = gt.steer(start, target)
    assert plan.cost < 0.9 * stuck.cost
    start, target = pair(2, 2, 5)
    escaped = gt.steer(start, target, initial=gt.steer(start, target, controls="Ab"))
    assert escaped.schedule(0.5).V.any()


def test_only_A_moves_mean_and_covariance_together():
    L0, L1 = np.diag([1.0, 2.0]), np.diag([3.0, 0.5])
    a = np.array([1.0, 1.0])
    turned = np.array([[0.0, -1.0], [1.0, 0.0]]) @ a
    plan = gt.steer(
        gt.Gaussian(L0 @ a, L0), gt.Gaussian(L1 @ turned, L1), controls="A", cost=AFFINE
    )
    assert plan.status is gt.Status.SUCCESS
    assert plan.trajectory.final.mean == pytest.approx(L1 @ turned, abs=1e-8)
    # m = L a stays true, with |a| conserved
    middle = plan.trajectory.at(0.5)
    assert np.linalg.norm(np.linalg.solve(middle.factor, middle.mean)) == pytest.approx(2**0.5)


def test_a_mean_alone_is_steered_by_V():
    start, target = law([1.0, 0.0], np.eye(2)), law([0.0, 2.0], np.eye(2))
    plan = gt.steer(start, target, controls="V")
    assert plan.status is gt.Status.SUCCESS
    assert plan.trajectory.final.covariance == pytest.approx(np.eye(2))


@pytest.mark.parametrize("solver", ["ipopt", "fatrop"])
def test_both_solvers_give_the_same_plan(solver):
    start, target = pair(2, 2, 13)
    plan = gt.steer(start, target, solver=solver)
    assert plan.solver == solver
    assert plan.cost == pytest.approx(gt.steer(start, target).cost, rel=1e-6)


# -- units, horizon, warm start --------------------------------------------------------


def test_units_of_length_do_not_matter_for_affine_energy():
    start, target = pair(2, 2, 14, centred=True)
    cost = gt.steer(start, target, controls="A", cost=AFFINE).cost
    for size in (1e-75, 1e-6, 1e6, 1e75):
        scaled = [gt.Gaussian(size * g.mean, size * g.factor) for g in (start, target)]
        assert gt.steer(*scaled, controls="A", cost=AFFINE).cost == pytest.approx(cost, rel=1e-7)


def test_affine_energy_falls_with_the_horizon():
    start, target = pair(2, 2, 15)
    unit = gt.steer(start, target, 1.0, controls="Ab", cost=AFFINE)
    longer = gt.steer(start, target, 4.0, controls="Ab", cost=AFFINE)
    assert longer.cost == pytest.approx(unit.cost / 4, rel=1e-8)


def test_a_warm_start_saves_iterations():
    start, target = pair(3, 2, 16)
    plan = gt.steer(start, target)
    near = gt.Gaussian(target.mean + 0.01, 1.01 * target.factor)
    cold = gt.steer(start, near)
    warm = gt.steer(start, near, initial=plan)
    assert warm.status is gt.Status.SUCCESS
    first = warm.attempts[0]
    assert first.start == "earlier plan"
    assert first.converged
    starts = [a for a in cold.attempts if a.intervals == cold.attempts[0].intervals]
    assert first.iterations < 0.5 * min(a.iterations for a in starts if a.converged)
    assert warm.iterations < 0.7 * cold.iterations
    assert warm.cost <= cold.cost * (1 + 1e-3)


def test_a_warm_start_from_a_constructive_plan():
    start, target = pair(2, 2, 17)
    rough = gt.steer(start, target, method="constant-attention")
    plan = gt.steer(start, target, initial=rough)
    assert plan.status is gt.Status.SUCCESS
    assert plan.cost <= rough.cost


def test_a_path_that_crosses_the_range_gets_no_pole():
    # Without b the matrices carry the mean, too; where it lies in the range of the factor
    # no matrix moves the one without the other.
    start = gt.Gaussian(
        [-0.54425898, -0.31630016, 0.41163054],
        [[1.04251337, -0.12853466], [1.36646347, -0.66519467], [0.35151007, 0.90347018]],
    )
    target = gt.Gaussian(
        [0.0940123, -0.74349925, -0.92172538],
        [[-0.45772583, 0.22019512], [-1.00961818, -0.20917557], [-0.15922501, 0.54084558]],
    )

    def height(t):
        """Signed distance of the mean from the range."""
        law = plan.trajectory.at(t)
        return float(np.cross(*law.factor.T) @ law.mean)

    for controls, letter in (("AV", "A"), ("AVB", "A"), ("VB", "V")):
        plan = gt.steer(start, target, controls=controls, starts=2)
        assert plan.status is gt.Status.SUCCESS
        grid = np.linspace(0.0, 1.0, 41)
        heights = np.array([height(t) for t in grid])
        (k, *_) = np.flatnonzero(heights[1:] * heights[:-1] < 0)
        crossing = brentq(height, grid[k], grid[k + 1], xtol=1e-15)
        sizes = [np.linalg.norm(getattr(plan.schedule(t), letter)) for t in grid]
        near = [
            np.linalg.norm(getattr(plan.schedule(crossing + step), letter))
            for step in (-1e-6, -1e-9, 0.0, 1e-9, 1e-6)
        ]
        assert max(near) < 2.0 * max(sizes)


# -- minimum time ----------------------------------------------------------------------


def test_minimum_time_of_scalar_tokens():
    start, target = law([0.0], [[1.0]]), law([0.0], [[9.0]])
    plan = gt.steer(start, target, controls="A", cost=gt.MinimumTime(bound=1.0))
    assert plan.cost == pytest.approx(np.log(9.0) / 2, rel=1e-4)
    assert plan.horizon == plan.cost
    assert plan.gap == pytest.approx(0, abs=1e-4)


def test_minimum_time_with_bounded_entries_beats_diagonal_control():
    # Diagonal A needs log(9)/2 = 1.0986 for the slower axis.  Entries off the diagonal share
    # the load: the trace of A alone bounds the time, and log(6)/2 is attained.
    start, target = law([0.0, 0.0], np.eye(2)), law([0.0, 0.0], np.diag([4.0, 9.0]))
    plan = gt.steer(start, target, controls="A", cost=gt.MinimumTime(bound=1.0))
    assert plan.status is gt.Status.SUCCESS
    assert plan.lower_bound == pytest.approx(np.log(6.0) / 2, rel=1e-12)
    assert plan.cost == pytest.approx(np.log(6.0) / 2, rel=1e-4)
    entries = [np.abs(plan.schedule(t).A).max() for t in np.linspace(0, plan.horizon, 50)]
    assert max(entries) <= 1 + 1e-6
    diagonal = gt.steer(
        start, target, controls="A", cost=gt.MinimumTime(bound=1.0), starts=1
    )  # the aligned start is diagonal, and symmetry keeps it so
    assert diagonal.cost == pytest.approx(np.log(9.0) / 2, rel=1e-4)


def test_minimum_time_under_a_norm_bound_meets_its_lower_bound():
    start, target = law([0.0, 0.0], np.eye(2)), law([0.0, 0.0], np.diag([4.0, 9.0]))
    cost = gt.MinimumTime(bound=1.0, norm="frobenius")
    plan = gt.steer(start, target, controls="A", cost=cost)
    assert plan.cost == pytest.approx(np.hypot(np.log(2.0), np.log(3.0)), rel=1e-4)
    assert abs(plan.gap) <= 1e-4


# -- bounds ----------------------------------------------------------------------------


def test_bounds_on_the_controls_are_kept():
    start, target = pair(2, 2, 18)
    free = gt.steer(start, target, controls="Ab")
    times = np.linspace(0, 1, 101)
    peak = max(np.abs(free.schedule(t).A).max() for t in times)
    bounds = gt.Bounds(entries={"A": 0.9 * peak})
    plan = gt.steer(start, target, controls="Ab", bounds=bounds)
    assert plan.status is gt.Status.SUCCESS
    assert max(np.abs(plan.schedule(t).A).max() for t in times) <= 0.9 * peak * (1 + 1e-6)
    assert plan.cost >= free.cost * (1 - 1e-6)
    norm = 0.9 * max(np.linalg.norm(free.schedule(t).A) for t in times)
    plan = gt.steer(start, target, controls="Ab", bounds=gt.Bounds(norms={"A": norm}))
    assert plan.status is gt.Status.SUCCESS
    assert max(np.linalg.norm(plan.schedule(t).A) for t in times) <= norm * (1 + 1e-6)


@pytest.mark.parametrize("kind", ["trace", "largest_eigenvalue"])
def test_bounds_on_the_covariance_bind_and_are_kept(kind):
    # Cheap kinetic energy: without a bound the covariance swells, to make attention cheap.
    start, target = pair(2, 2, 1)
    cost = gt.ControlEnergy(kinetic=0.1)

    def size(values):
        return values.sum(axis=1).max() if kind == "trace" else values[:, 0].max()

    limit = max(size(g.eigenvalues[None]) for g in (start, target))
    free = gt.steer(start, target, controls="VBb", cost=cost)
    plan = gt.steer(
        start, target, controls="VBb", cost=cost, bounds=gt.Bounds(**{kind: 1.02 * limit})
    )
    assert plan.status is gt.Status.SUCCESS
    assert size(plan.trajectory.eigenvalues) <= 1.02 * limit * (1 + 1e-3)
    if size(free.trajectory.eigenvalues) > 1.02 * limit:
        assert plan.cost > free.cost * (1 - 1e-6)


@pytest.mark.parametrize(
    ("bounds", "match"),
    [
        (gt.Bounds(trace=3.0), r"bounds\.trace is 3, but the target already has 4"),
        (gt.Bounds(largest_eigenvalue=1.5), r"largest_eigenvalue is 1\.5, but the target"),
        (gt.Bounds(entries={"A": 0.1}), r"at most 0\.2 in .*; 0\.49.* horizon of at least 2\.4"),
        (gt.Bounds(norms={"A": 1.0, "b": 0.1}), "mean of norm at most"),
    ],
)
def test_bounds_that_provably_exclude_every_plan(bounds, match):
    start, target = law([0.0, 0.0], np.eye(2)), law([5.0, 0.0], 2 * np.eye(2))
    with pytest.raises(gt.GtcontrolError, match=match):
        gt.steer(start, target, controls="Ab", bounds=bounds)


def test_a_failed_solve_names_the_worst_constraints():
    start, target = law([0.0, 0.0], np.eye(2)), law([1.2, 0.0], np.diag([9.0, 1.0]))
    plan = gt.steer(
        start, target, controls="Ab", bounds=gt.Bounds(entries={"A": 0.6, "b": 0.6}), starts=1
    )
    assert plan.status is gt.Status.INFEASIBLE
    assert not plan.answered
    assert plan.violations
    assert plan.violations[0].size > 1e-3
    text = plan.explain()
    assert "INFEASIBLE" in text
    assert plan.violations[0].constraint in text


# -- what has no answer ----------------------------------------------------------------


@pytest.mark.parametrize(
    "cost", [gt.ControlEnergy(kinetic=0.0), gt.MinimumTime()], ids=["energy", "time"]
)
def test_costs_without_a_minimiser_are_refused(cost):
    start, target = law([0.0, 0.0], np.eye(2)), law([0.0, 0.0], 2 * np.eye(2))
    with pytest.raises(gt.GtcontrolError, match="has no minimiser"):
        gt.steer(start, target, cost=cost)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"horizon": 0.0}, "`horizon` must be greater than 0; it is 0"),
        ({"horizon": float("nan")}, "`horizon` must be finite"),
        ({"controls": ""}, "`controls` is empty"),
        ({"controls": "Ax"}, "unknown letter.* x"),
        ({"method": "magic"}, "`method` is 'magic'"),
        ({"solver": "pardiso"}, "`solver` is 'pardiso'"),
        ({"starts": 0}, "`starts` must be at least 1"),
        ({"intervals": 2.5}, "`intervals` must be a whole number"),
        ({"cost": "energy"}, "`cost` must be KineticEnergy"),
        ({"bounds": {"A": 1}}, "`bounds` must be Bounds"),
        ({"initial": 3}, "`initial` must be a Steering plan"),
    ],
)
def test_bad_arguments_are_named(arguments, match):
    start, target = law([0.0, 0.0], np.eye(2)), law([0.0, 0.0], 2 * np.eye(2))
    with pytest.raises(gt.GtcontrolError, match=match) as caught:
        gt.steer(start, target, **arguments)
    assert "\n" not in str(caught.value)


def test_scales_beyond_double_precision_are_refused():
    start = gt.Gaussian([0.0, 0.0], np.diag([1.0, 1e-6]))
    with pytest.raises(gt.GtcontrolError, match="spread over a factor 1e"):
        gt.steer(start, law([0.0, 0.0], np.eye(2)))
    # ... by the solver; the closed form needs no such caution
    assert gt.steer(start, law([0.0, 0.0], np.eye(2)), cost=gt.KineticEnergy()).answered


def test_a_problem_too_large_for_memory_is_refused_before_allocating():
    d = 400
    start = gt.Gaussian(np.zeros(d), np.eye(d))
    target = gt.Gaussian(np.zeros(d), np.diag(np.linspace(1, 2, d)))
    with pytest.raises(gt.GtcontrolError, match="of memory"):
        gt.steer(start, target)


# -- degenerate problems ---------------------------------------------------------------


def test_dirac_masses_and_standing_still():
    a, b = gt.Gaussian([0.0, 1.0], np.zeros((2, 0))), gt.Gaussian([1.0, 1.0], np.zeros((2, 0)))
    assert gt.steer(a, b, controls="b").cost == pytest.approx(2.0)  # |b|² + |m'|²
    still = gt.steer(law([1.0], [[2.0]]), law([1.0], [[2.0]]))
    assert still.status is gt.Status.SUCCESS
    assert still.cost == 0
    assert still.solver.startswith("closed form")


def test_a_plan_that_meets_its_bound_needs_no_solver():
    plan = gt.steer(law([1.0, 0.0], np.eye(2)), law([3.0, 0.0], np.eye(2)), controls="b")
    assert plan.cost == pytest.approx(2 * 4.0)
    assert abs(plan.gap) <= 1e-9
    assert not plan.attempts


# -- replay and refinement -------------------------------------------------------------


def test_success_of_the_solver_alone_is_not_success():
    # Bounded controls are replayed as they are, without the correction that makes free ones
    # exact, so a coarse mesh misses.
    start, target = law([0.0, 0.0], np.diag([1.0, 9.0])), law([1.0, 1.0], [[5.0, 3.0], [3.0, 2.0]])
    arguments = {"controls": "Ab", "bounds": gt.Bounds(entries={"A": 3.0, "b": 9.0}), "starts": 1}
    coarse = gt.steer(start, target, **arguments, intervals=2, refinements=0, replay_tolerance=1e-6)
    assert all(a.converged for a in coarse.attempts)
    assert coarse.replay_error > 1e-6
    assert coarse.status is gt.Status.REPLAY_FAILED
    assert "misses the target" in coarse.explain()
    fine = gt.steer(start, target, **arguments, intervals=2, refinements=6, replay_tolerance=1e-6)
    assert fine.status is gt.Status.SUCCESS
    assert fine.refinements > 0


def test_a_plan_that_fails_its_check_is_replaced_by_an_exact_one_and_says_so():
    start, target = pair(2, 2, 19)
    plan = gt.steer(start, target, controls="VBb", max_iterations=3)
    assert plan.status is gt.Status.NOT_CONVERGED
    assert not any(a.converged for a in plan.attempts)
    assert plan.solver == "closed form (attention-only)"
    assert plan.replay_error <= 1e-9


def test_ctrl_c_keeps_the_best_plan():
    start, target = pair(4, 4, 20)
    seen = []

    def progress(fraction, text):
        seen.append(text)
        if text.startswith("start 3 "):
            raise KeyboardInterrupt

    plan = gt.steer(start, target, progress=progress)
    assert plan.status is gt.Status.INTERRUPTED
    assert len(plan.attempts) == 2
    assert plan.replay_error <= 1e-5
    before = gt.steer(
        start, target, progress=lambda fraction, text: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    assert before.status is gt.Status.INTERRUPTED
    assert before.solver == "closed form (transport-geodesic)"
    assert before.replay_error <= 1e-9


def test_a_signal_stops_the_native_solver():
    start, target = pair(4, 4, 21)
    timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))

    def progress(fraction, text):
        if text.startswith("start 2 "):
            timer.start()

    handler = signal.getsignal(signal.SIGINT)  # ignored where a shell runs this in the background
    plan = gt.steer(start, target, solver="ipopt", starts=200, progress=progress)
    assert plan.status is gt.Status.INTERRUPTED
    assert plan.replay_error <= 1e-5
    assert signal.getsignal(signal.SIGINT) is handler


# -- symmetry reduction ----------------------------------------------------------------


@pytest.mark.parametrize(("d", "r", "controls"), [(5, 1, "Ab"), (5, 2, "Ab"), (5, 1, "AVBb")])
def test_the_reduced_problem_has_the_same_optimum(d, r, controls):
    start, target = pair(d, r, 22)
    cost = AFFINE if controls == "Ab" else gt.ControlEnergy()
    reduced = gt.steer(start, target, controls=controls, cost=cost, starts=6)
    full = gt.steer(start, target, controls=controls, cost=cost, reduce=False, starts=6)
    assert reduced.schedule.basis is not None or 2 * r + 2 >= d
    assert full.schedule.basis is None
    if controls == "Ab":
        assert reduced.cost == pytest.approx(full.cost, rel=1e-7)
    else:
        assert reduced.cost <= full.cost * (1 + 1e-3)


def test_bounds_on_entries_depend_on_coordinates_and_are_not_reduced():
    start, target = pair(4, 1, 23)
    plan = gt.steer(start, target, controls="Ab", bounds=gt.Bounds(entries={"A": 50.0}))
    assert plan.schedule.basis is None
    assert gt.steer(start, target, controls="Ab").schedule.basis is None  # 2 r + 2 = d


@pytest.mark.slow
def test_dimension_768_is_as_easy_as_ten():
    rng = np.random.default_rng(24)
    start, target = (random_law(rng, 768, 4, 100.0) for _ in range(2))
    plan = gt.steer(start, target, controls="Ab", cost=AFFINE)
    assert plan.status is gt.Status.SUCCESS
    assert plan.schedule.basis.shape == (768, 10)
    assert plan.replay_error <= 1e-9


# -- proved lower bounds ---------------------------------------------------------------


@given(some.gaussians(dim=3, rank=2), some.gaussians(dim=3, rank=2))
@settings(max_examples=15)
def test_the_logarithmic_stretch_bounds_every_affine_plan(start, target):
    for method in ("constant-affine", "two-piece-affine", "transport-geodesic"):
        plan = gt.steer(start, target, controls="Ab", cost=AFFINE, method=method)
        assert plan.cost >= np.sum(stretch(start, target) ** 2) * (1 - 1e-9)
        assert plan.cost >= plan.lower_bound * (1 - 1e-9)


def test_kinetic_energy_without_bias_names_what_is_missing():
    with pytest.raises(InvalidMethod, match=r"cannot do. Enable b or V, or choose") as caught:
        gt.steer(
            law([1.0, 0.0], np.eye(2)),
            law([0.0, 2.0], 4 * np.eye(2)),
            controls="A",
            cost=gt.KineticEnergy(),
        )
    assert str(caught.value).count("zero-bias") == 1


@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_standard_deviations_out_of_range_are_refused_by_their_number(size):
    start = gt.Gaussian([0.1 * size, 0.0], size * np.eye(2))
    target = gt.Gaussian([0.2 * size, 0.0], 2 * size * np.eye(2))
    with pytest.raises(OutOfScale, match=r"the standard deviations are up to .*e[+-]\d+"):
        gt.steer(start, target)


def test_means_out_of_range_are_named_by_their_number():
    start, target = (gt.Gaussian([x, 0.0], np.eye(2)) for x in (1e200, -1e200))
    for function in (gt.steer, gt.reachable):
        with pytest.raises(OutOfScale, match=r"a mean or a factor has norm 1e\+200"):
            function(start, target)
    start, target = (gt.Gaussian([x, 0.0], np.eye(2)) for x in (1e100, -1e100))
    with pytest.raises(OutOfScale, match=r"the means have norm 1e\+100"):
        gt.steer(start, target)

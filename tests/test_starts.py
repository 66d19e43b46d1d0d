"""Where the solver starts, and how the starts race."""

import dataclasses

import numpy as np
import pytest

import gtcontrol as gt
from gtcontrol.field import rates
from gtcontrol.problem.definitions import SteeringProblem
from gtcontrol.results.steering import SET_ASIDE
from gtcontrol.steering import starts
from gtcontrol.steering.course import Variation, straight
from gtcontrol.steering.instance import instance_of
from gtcontrol.steering.reduction import Reduction
from gtcontrol.steering.scaling import Units
from tests.benchmarks.instances import instances, random_law


def instance(d, r, controls="VBb", seed=0):
    rng = np.random.default_rng(seed)
    start, target = (random_law(rng, d, r) for _ in range(2))
    problem = SteeringProblem(
        start, target, 1.0, controls, gt.ControlEnergy(), gt.Bounds(), "optimal", ""
    )
    units = Units.of(start, target, 1.0)
    return instance_of(problem, Reduction(None, start, target), units, 20)


@pytest.mark.parametrize(("d", "r"), [(1, 1), (2, 1), (2, 2), (3, 2), (4, 4)])
@pytest.mark.parametrize("controls", ["VBb", "AVBb"])
def test_signs_change_the_mean_alone(d, r, controls):
    ends = instance(d, r, controls).ends
    rng = np.random.default_rng(1)
    for share in (0.5, 1.0):
        variation = Variation(
            turn=0.6,
            detour=0.3,
            share=share,
            signs=tuple(rng.choice([-1.0, 1.0], (2, d))),
            switch=0.4,
        )
        plain = dataclasses.replace(variation, signs=None)
        signed, unsigned = (
            straight("", ends, controls, np.random.default_rng(2), v) for v in (variation, plain)
        )
        for tau in (0.1, 0.39, 0.41, 0.9):
            state, other = signed.at(tau), unsigned.at(tau)
            u = {"A": np.zeros((d, d))} | state.controls
            # b makes up for what the signs do to the mean, so that the path is followed
            mean_rate, factor_rate = rates(
                state.mean, state.factor, u["A"], ((u["V"], u["B"], None),), u["b"]
            )
            assert factor_rate == pytest.approx(state.factor_rate, abs=1e-8)
            assert mean_rate == pytest.approx(state.mean_rate, abs=1e-8)
            assert np.linalg.norm(u["V"]) == pytest.approx(np.linalg.norm(other.controls["V"]))
    opposed = dataclasses.replace(plain, signs=(-np.ones(d), -np.ones(d)), turn=0.0, detour=0.0)
    aligned = dataclasses.replace(opposed, signs=None)
    first, second = (straight("", ends, controls, rng, v).at(0.5) for v in (opposed, aligned))
    assert first.controls["V"] == pytest.approx(-second.controls["V"])


def test_opposed_attention_finds_what_the_geodesic_misses():
    # The plain way (RK4 from zero controls) finds 5.27697 here; starts that all follow the
    # geodesic end at 6.068.
    i = list(instances(42, range(1, 5), seed=6))[41]
    plan = gt.steer(i.start, i.target, controls="VBb")
    assert plan.status is gt.Status.SUCCESS
    assert plan.cost <= 5.27697


def test_a_reversed_direction_is_among_the_starts():
    # Without reversed directions hundreds of starts end at 18.8 or more.
    i = list(instances(45, range(1, 5), seed=6))[44]
    plan = gt.steer(i.start, i.target, controls="VBb")
    assert plan.status is gt.Status.SUCCESS
    assert plan.cost <= 18.13


@pytest.mark.parametrize(("d", "r"), [(1, 1), (2, 1), (2, 2), (3, 3), (3, 1)])
@pytest.mark.parametrize("controls", ["Ab", "VBb", "AVBb", "A"])
def test_starts_differ_and_none_loses_rank(d, r, controls):
    made = instance(d, r, controls)
    courses = list(starts.courses(made, 40, 0, None))
    middles = {course.at(0.5).factor.tobytes() for course in courses}
    controlled = {str(sorted(course.at(0.5).controls.items())) for course in courses}
    assert len(middles) > 1 or d == 1 or controls == "A"
    assert len(controlled) > 1 or (d == 1 and controls in ("A", "Ab"))
    for course in courses:
        for tau in np.linspace(0, 1, 21):
            sigma = np.linalg.svd(course.at(tau).factor, compute_uv=False)
            assert sigma[-1] > 0
        if d == r == 1:
            assert "reversed" not in course.name


def test_larger_programs_get_fewer_starts():
    few = [len(list(starts.courses(instance(d, d, "AVBb"), None, 0, None))) for d in (2, 4, 6)]
    assert few == sorted(few, reverse=True)
    assert few[0] > few[1] > few[2]


def test_most_starts_are_set_aside_and_the_best_is_not():
    start, target = (random_law(np.random.default_rng([5, k]), 2, 2) for k in range(2))
    plan = gt.steer(start, target, starts=20)
    first = [a for a in plan.attempts if a.intervals == plan.attempts[0].intervals]
    aside = [a for a in first if a.outcome == SET_ASIDE]
    assert len(first) == 20
    assert aside
    assert not any(a.converged for a in aside)
    assert f"{len(aside)} were set aside early" in plan.explain()
    assert all(a.iterations <= 6 for a in aside)
    few = gt.steer(start, target, starts=4)
    assert not any(a.outcome == SET_ASIDE for a in few.attempts)


def test_iterations_are_bounded_over_both_legs():
    start, target = (random_law(np.random.default_rng([5, k]), 3, 2) for k in range(2))
    for limit in (3, 6, 7, 12):
        plan = gt.steer(start, target, starts=8, max_iterations=limit)
        assert max(a.iterations for a in plan.attempts) <= limit

"""Integrations as evidence: limits, cycles and blow-ups with known answers."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import gtcontrol as gt
from gtcontrol.certification.bracket.estimate import estimate_blow_up
from gtcontrol.certification.conclusion import conclude, settle
from gtcontrol.certification.evidence import affordable, integrate, integrations
from gtcontrol.certification.rules import rule
from gtcontrol.certification.rules.base import Refuted, Scope
from gtcontrol.certification.rules.integration import claim_of
from gtcontrol.certification.search import regimes
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.status import Verdict

I2 = np.eye(2)
CYCLE_B = [[-3.0, 1.0], [1.0, -1.0]]

# Towards its blow-up the direction of the covariance goes round and round.
TURNING_A = [[-0.0828, -0.1054], [-0.0152, -0.2478]]
TURNING_V = [[[2.4919, -0.671], [-1.6128, -1.644]], [[1.2911, -1.1897], [-1.4757, -0.0707]]]
TURNING_B = [[[1.2233, 1.4447], [1.161, -1.5719]], [[1.026, 0.6543], [-1.313, -0.7189]]]
TURNING_L = [[-0.0932, 1.4326], [-0.2631, -0.979]]


def seen(A=None, V=I2, B=I2, S=I2, noise=None):
    p = gt.Parameters(A=A, V=V, B=B, noise=noise)
    law = gt.Gaussian.from_covariance(np.ones(p.dim), S)
    return integrate(p, law, from_start=True)


def test_a_blow_up_has_its_time():
    one = seen(V=[[1.0, -2.0], [2.0, 1.0]], B=[[-1.0, 2.0], [-2.0, -1.0]])
    assert one.outcome == "blow-up"
    assert one.time == pytest.approx(1 / 6, rel=1e-10)


def test_a_limit_is_that_of_the_bernoulli_equation():
    one = seen(A=[[1.0, 3.0], [-3.0, 1.0]], B=-np.diag([0.5, 1.0]))
    assert one.outcome == "limit"
    wanted = np.array([[124.0, -12.0], [-12.0, 116.0]]) / 89
    np.testing.assert_allclose(one.covariances[-1], wanted, rtol=1e-8)


def test_a_periodic_limit_has_its_period():
    one = seen(A=[[1.0, 3.0], [-3.0, 1.0]], B=-np.diag([0.5, 1.0]), S=np.diag([1.0, 0.0]))
    assert one.outcome == "cycle"
    assert one.time == pytest.approx(np.pi / 3, rel=1e-6)


def test_bounded_opposite_signs_with_a_limit_cycle():
    one = seen([[4.0, 10.5], [-76.0, 18.0]], [[1.0, 1.0], [1.0, 4.0]], [[-3.0, 1.0], [1.0, -1.0]])
    assert one.outcome == "cycle"
    assert one.time == pytest.approx(1.12534026, rel=1e-5)
    late = one.traces[-one.traces.size // 4 :]
    assert late.min() > 4.6
    assert late.max() < 7.88


def test_the_rank_is_lost_in_the_limit():
    one = seen([[10.0, -7.5], [5.0, -3.0]], [[1.0, 0.5], [0.5, 1.0]], -I2)
    assert one.outcome == "limit"
    np.testing.assert_allclose(one.covariances[-1], np.diag([10.0, 0.0]), atol=1e-7)


def test_exponential_growth_is_no_blow_up():
    assert seen(A=np.diag([1.0, 2.0]), B=-np.diag([0.5, 0.0])).outcome == "growth"


def test_a_slow_unit_does_not_hide_the_limit():
    one = seen(A=1e-8 * I2, V=1e8 * I2, B=-1e-8 * I2)
    assert one.outcome == "limit"
    np.testing.assert_allclose(one.covariances[-1], 1e-8 * I2, rtol=1e-6)


def test_what_vanishes_tends_to_zero():
    one = seen(A=-I2, B=0.1 * I2)
    assert one.outcome == "limit"
    assert one.traces[-1] < 1e-11


def test_noise_from_a_point():
    one = seen(A=[[0.0]], V=[[1.0]], B=[[-0.5]], S=[[0.0]], noise=[[1.0]])
    assert one.outcome == "limit"
    assert one.traces[-1] == pytest.approx(1.0, rel=1e-8)


def test_an_unstable_mean_does_not_disturb_the_covariance():
    p = gt.Parameters(A=[[-1.0]], V=[[50.0]], B=[[-1e-3]], b=[3.0])
    one = integrate(p, gt.Gaussian([1.0], [[1.0]]), from_start=True)
    assert one.outcome == "limit"


def test_nothing_is_integrated_that_would_take_minutes():
    wide = gt.Parameters(V=np.zeros((12, 768, 768)), B=np.zeros((12, 768, 768)))
    assert not affordable(wide, 4)
    assert list(integrations(CertificationProblem((wide,)))) == []


def test_random_starts_are_the_same_each_time():
    p = gt.Parameters(A=I2, V=I2, B=-I2)
    first, second = (list(integrations(CertificationProblem((p,)))) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.traces, other.traces)


# -- in words ----------------------------------------------------------------------------


def said(*vertices, start=None):
    problem = CertificationProblem(vertices, start)
    claim = claim_of(problem, tuple(integrations(problem)))
    with pytest.raises(Refuted, match="evidence, not proof"):
        rule("integration").check(problem, claim)
    return rule("integration").state(problem, claim)


def test_all_random_starts_tend_to_the_same_limit():
    statement = said(gt.Parameters(A=I2, V=I2, B=-I2))
    assert statement.verdict is Verdict.CONVERGES
    assert "rank 2 and trace 2" in statement.text


def test_some_random_starts_blow_up():
    statement = said(gt.Parameters(A=-I2, V=I2, B=I2))
    assert statement.verdict is Verdict.BLOW_UP_DATA_EXIST
    assert statement.scope is Scope.SOME_STARTS


def test_a_family_is_tried_at_its_vertices():
    good, bad = gt.Parameters(A=I2, V=I2, B=-I2), gt.Parameters(V=I2, B=I2)
    assert said(good, bad).verdict is Verdict.BLOW_UP_DATA_EXIST
    start = gt.Gaussian.from_covariance([0.0, 0.0], I2)
    assert said(good, bad, start=start).verdict is Verdict.BLOW_UP_DATA_EXIST


def test_the_start_that_is_given_is_the_one_spoken_of():
    start = gt.Gaussian.from_covariance([0.0, 0.0], 0.1 * I2)
    statement = said(gt.Parameters(A=-I2, V=I2, B=I2), start=start)
    assert (statement.verdict, statement.scope) == (Verdict.CONVERGES, Scope.THIS_START)
    assert statement.text == "From this start the covariance tends to zero."


# -- slow escapes ------------------------------------------------------------------------


def test_hardly_moving_beside_an_equilibrium_that_repels_is_no_limit():
    p = gt.Parameters(A=[[4.0, 10.5], [-76.0, 18.0]], V=[[1.0, 1.0], [1.0, 4.0]], B=CYCLE_B)
    near = gt.Gaussian.from_covariance([0, 0], [[1.0, -2.0], [-2.0, 6.0 + 1e-8]])
    one = integrate(p, near, from_start=True)
    assert one.outcome in ("cycle", "unsettled", "open")
    assert one.time > 1.0


@pytest.mark.parametrize(("a", "tiny"), [(0.1, 1e-50), (1.0, 1e-150)])
def test_what_is_tiny_but_grows_is_waited_for(a, tiny):
    # The second variance alone: s' = 2 a s + 4 s², so T* = log(1 + a / (2 s₀)) / (2 a).
    p = gt.Parameters(A=np.diag([-1.0, a]), V=np.diag([1.0, 2.0]), B=I2)
    start = gt.Gaussian([0.0, 0.0], [[0.5, 0.0], [0.0, tiny]])
    expected = (np.log(a / 2) - 2 * np.log(tiny)) / (2 * a)
    one = integrate(p, start, from_start=True)
    assert one.outcome == "blow-up"
    assert one.time == pytest.approx(expected, rel=1e-8)
    assert estimate_blow_up(p, start.factor).time == pytest.approx(expected, rel=1e-8)


def test_what_could_not_be_waited_for_is_not_called_bounded():
    p = gt.Parameters(A=np.diag([-1.0, 1e-3]), V=np.diag([1.0, 2.0]), B=I2)
    start = gt.Gaussian([0.0, 0.0], [[0.5, 0.0], [0.0, 1e-50]])
    assert integrate(p, start, 600, from_start=True).outcome == "open"


def test_a_start_without_part_in_the_growing_directions_has_a_limit():
    p = gt.Parameters(A=np.diag([1.0, 2.0]), V=I2, B=-I2)
    one = integrate(p, gt.Gaussian([0.0, 0.0], [[0.3], [0.0]]), from_start=True)
    assert one.outcome == "limit"
    np.testing.assert_allclose(one.covariances[-1], np.diag([1.0, 0.0]), rtol=1e-8)


def test_a_blow_up_whose_direction_turns_is_seen():
    p = gt.Parameters(A=TURNING_A, V=TURNING_V, B=TURNING_B)
    one = integrate(p, gt.Gaussian([0.0, 0.0], TURNING_L), from_start=True)
    assert one.outcome == "blow-up"
    assert one.time == pytest.approx(turning_time(), rel=1e-9)


def turning_time():
    """Blow-up time by the factor in units of its norm e^x, in the time s with dt = e^(-2x) ds."""
    A, V, B, L = map(np.array, (TURNING_A, TURNING_V, TURNING_B, TURNING_L))

    def rates(s, y):
        U, slow = y[:4].reshape(2, 2), np.exp(-2 * y[4])
        moved = slow * A @ U + sum(v @ U @ (U.T @ b @ U) for v, b in zip(V, B, strict=True))
        growth = np.sum(U * moved) / np.sum(U * U)
        return [*(moved - growth * U).ravel(), growth, slow]

    size = np.linalg.norm(L)
    began = [*(L / size).ravel(), np.log(size), 0.0]
    return solve_ivp(rates, (0.0, 60.0), began, method="DOP853", rtol=1e-12, atol=1e-14).y[5, -1]


def test_what_is_open_of_the_start_is_said():
    p = gt.Parameters(A=np.diag([-1.0, 1e-3]), V=np.diag([1.0, 2.0]), B=I2)
    start = gt.Gaussian([0.0, 0.0], [[0.5, 0.0], [0.0, 1e-50]])
    problem = CertificationProblem((p,), start)
    followed = claim_of(problem, (integrate(p, start, 600, from_start=True),))
    answer = conclude(problem, [*(settle(problem, c) for c in regimes.find(problem)), followed])
    assert answer.verdict is Verdict.BLOW_UP_DATA_EXIST
    assert "of the start that is given goes is not decided" in answer.statement
    assert "had not settled" in answer.statement


def test_what_vanishes_while_its_directions_turn_tends_to_zero():
    p = gt.Parameters(A=[[-0.1, 8.0], [-0.02, -0.1]], V=I2, B=[[0.0, 0.1], [0.0, 0.0]])
    one = integrate(p, gt.Gaussian([0.0, 0.0], 0.01 * I2), from_start=True)
    assert one.outcome == "limit"
    assert one.traces[-1] < 1e-12

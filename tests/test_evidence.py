"""Integrations as evidence: limits, cycles and blow-ups with known answers."""

import numpy as np
import pytest

import gtcontrol as gt
from gtcontrol.certification.evidence import affordable, integrate, integrations
from gtcontrol.certification.rules import rule
from gtcontrol.certification.rules.base import Refuted, Scope
from gtcontrol.certification.rules.integration import claim_of
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.status import Verdict

I2 = np.eye(2)


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

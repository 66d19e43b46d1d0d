"""Prescribed paths: the least generator follows them, and bad paths are refused."""

import numpy as np
import pytest
from scipy.linalg import solve_continuous_lyapunov

import gtcontrol as gt
from gtcontrol.errors import InvalidMethod, InvalidPath, InvalidShape
from gtcontrol.problem.definitions import SteeringProblem
from gtcontrol.steering.exact.construct import construct
from gtcontrol.steering.exact.differentiation import differentiate

from .strategies import factor


def turning(t):
    """Rotation (2, 2) by t."""
    return np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])


def ellipse(t):
    """An ellipse that turns and breathes."""
    return turning(t) @ np.diag([2.0 + np.sin(3 * t), np.exp(-t)]) @ turning(t).T


def circle(t):
    return np.array([np.cos(2 * t), t])


def sheet(t):
    """Covariance of rank two that tumbles in five dimensions."""
    L = np.zeros((5, 2))
    L[:2, 0] = turning(t) @ [1.0, 0.5]
    L[2:4, 1] = turning(2 * t) @ [0.3, 1.0]
    L[4, 1] = 0.2 + t
    return L @ L.T


def wander(t):
    return np.array([1.0, t, t**2, np.sin(t), -t])


def ends(mean, covariance, horizon):
    return [gt.Gaussian.from_covariance(mean(t), covariance(t)) for t in (0.0, horizon)]


def follow(path, start, target, horizon, controls="AVBb"):
    problem = SteeringProblem(start, target, horizon, controls, method="prescribed-path")
    return construct(problem, path)


@pytest.mark.parametrize("controls", ["Ab", "VBb", "AVb"])
@pytest.mark.parametrize(
    ("mean", "covariance"),
    [
        (circle, ellipse),
        (wander, sheet),
        (circle, lambda t: np.zeros((2, 2))),
        (lambda t: np.array([1.0 + t]), lambda t: np.array([[1.0 + t**2]])),
    ],
    ids=["ellipse", "rank two in five dimensions", "Dirac", "scalar"],
)
def test_the_law_follows_the_path_all_along(mean, covariance, controls):
    start, target = ends(mean, covariance, 1.3)
    schedule = follow(gt.GaussianPath(mean, covariance), start, target, 1.3, controls)
    replay = gt.simulate(start, schedule)
    assert replay.status is gt.Status.SUCCESS
    for t in np.linspace(0, 1.3, 14):
        law = replay.at(t)
        np.testing.assert_allclose(law.mean, mean(t), atol=1e-8)
        np.testing.assert_allclose(law.covariance, covariance(t), atol=1e-8)


def test_given_rates_are_used():
    calls = []

    def covariance_rate(t):
        calls.append(t)
        return np.diag([1.0, 2 * t])

    path = gt.GaussianPath(
        lambda t: np.array([t, 0.0]),
        lambda t: np.diag([1.0 + t, 1.0 + t**2]),
        lambda t: np.array([1.0, 0.0]),
        covariance_rate,
    )
    start, target = ends(path.mean, path.covariance, 1.0)
    schedule = follow(path, start, target, 1.0, "Ab")
    calls.clear()
    p = schedule(0.5)
    assert calls == [0.5]
    np.testing.assert_allclose(p.A, np.diag([0.5 / 1.5, 0.5 / 1.25]), atol=1e-14)
    np.testing.assert_allclose(p.b, [1.0 - 0.5 * 0.5 / 1.5, 0.0], atol=1e-14)


def test_a_kink_is_followed_when_its_rate_is_given():
    """|t - 1/2| has no spectral derivative, but the controller needs none."""

    def covariance(t):
        return np.diag([1.0 + abs(t - 0.5), 1.0])

    path = gt.GaussianPath(lambda t: np.zeros(2), covariance)
    start, target = ends(path.mean, covariance, 1.0)
    with pytest.raises(InvalidPath, match=r"`covariance` of the path cannot be differentiated"):
        follow(path, start, target, 1.0)
    path = gt.GaussianPath(
        path.mean, covariance, covariance_rate=lambda t: np.diag([np.sign(t - 0.5), 0.0])
    )
    schedule = follow(path, start, target, 1.0, "Ab")
    assert schedule(0.25).A[0, 0] == pytest.approx(-0.5 / 1.25)


def test_generator_solves_the_lyapunov_equation():
    """At full rank M is unique; below it, M S + S M = S' and M U = U(..) + N(..) as it must."""
    start, target = ends(circle, ellipse, 1.0)
    motion = gt.GaussianPath(circle, ellipse).motion(start, target, 1.0)
    law = motion.law("Ab")
    for t in (0.0, 0.37, 1.0):
        S, h = ellipse(t), 1e-5
        rate = (ellipse(t + h) - ellipse(t - h)) / (2 * h)
        A = law(t).A
        np.testing.assert_allclose(A, A.T, atol=1e-9)
        np.testing.assert_allclose(A, solve_continuous_lyapunov(S, rate), atol=1e-8)


def test_generator_has_the_least_kinetic_energy():
    """tr(M S Mᵀ) is least among all M with M S + S Mᵀ = S', at rank r < d too."""
    rng = np.random.default_rng(0)
    start, target = ends(wander, sheet, 1.0)
    L, rate = gt.GaussianPath(wander, sheet).motion(start, target, 1.0).factors(0.4)
    S, h = sheet(0.4), 1e-5
    np.testing.assert_allclose(L @ L.T, S, atol=1e-13)
    wanted = (sheet(0.4 + h) - sheet(0.4 - h)) / (2 * h)
    np.testing.assert_allclose(rate @ L.T + L @ rate.T, wanted, atol=1e-8)
    for _ in range(20):
        # All rates of L with the same S' differ by L times a skew matrix.
        K = 0.1 * rng.standard_normal((2, 2))
        other = rate + L @ (K - K.T)
        np.testing.assert_allclose(other @ L.T + L @ other.T, wanted, atol=1e-8)
        assert np.sum(other**2) > np.sum(rate**2)


def test_the_geodesic_as_a_path_costs_its_distance():
    rng = np.random.default_rng(2)
    start, target = (gt.Gaussian(rng.standard_normal(3), factor(rng, 3, 3)) for _ in range(2))
    U, _, Wt = np.linalg.svd(start.factor.T @ target.factor)
    aligned = target.factor @ (Wt.T @ U.T)

    def blend(t):
        L = (1 - t) * start.factor + t * aligned
        return L @ L.T

    path = gt.GaussianPath(lambda t: (1 - t) * start.mean + t * target.mean, blend)
    motion = path.motion(start, target, 1.0)
    points, weights = np.polynomial.legendre.leggauss(30)
    times = 0.5 + 0.5 * points
    energy = sum(
        0.5 * w * (np.sum(motion.factors(t)[1] ** 2) + np.sum(motion.mean_rate(t) ** 2))
        for t, w in zip(times, weights, strict=True)
    )
    assert energy == pytest.approx(gt.wasserstein(start, target) ** 2, rel=1e-8)


# -- differentiation ------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [1e-3, 1.0, 40.0])
def test_derivatives_of_smooth_functions(horizon):
    def curve(t):
        s = t / horizon
        return np.array([[np.sin(9 * s), np.exp(-3 * s)], [1 / (1 + s), 0.0]])

    rate = differentiate(curve, horizon, "curve")
    for s in np.linspace(0, 1, 23):
        wanted = np.array([[9 * np.cos(9 * s), -3 * np.exp(-3 * s)], [-1 / (1 + s) ** 2, 0.0]])
        np.testing.assert_allclose(rate(s * horizon) * horizon, wanted, atol=1e-8)


def test_a_function_with_a_kink_is_not_differentiated():
    with pytest.raises(InvalidPath, match=r"relative error .* with 256 points.*`curve_rate`"):
        differentiate(lambda t: np.array([abs(t - 0.3)]), 1.0, "curve")


# -- refusals -------------------------------------------------------------------------------------

STILL = [lambda t: np.zeros(2), lambda t: np.eye(2)]


def refusal(mean, covariance, start=None, target=None, **rates):
    first, last = ends(mean, covariance, 1.0) if start is None else (start, target)
    with pytest.raises(InvalidPath) as caught:
        follow(gt.GaussianPath(mean, covariance, **rates), first, last, 1.0)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_paths_that_miss_an_end_are_refused():
    unit, far = gt.Gaussian([0.0, 0.0], np.eye(2)), gt.Gaussian([0.0, 0.3], np.eye(2))
    wide = gt.Gaussian([0.0, 0.0], 2 * np.eye(2))
    text = refusal(*STILL, unit, far)
    assert "at t = 1 its mean misses that of `target`" in text
    text = refusal(*STILL, wide, unit)
    assert "at t = 0 its covariance misses that of `start` by 0.75 relatively" in text


def test_paths_that_change_rank_are_refused():
    zero = STILL[0]
    text = refusal(zero, lambda t: np.diag([1.0, (t - 0.3) ** 2]))
    assert "loses rank 2 at t = 0.3" in text
    line = np.diag([1.0, 0.0])
    text = refusal(zero, lambda t: line + np.diag([0.0, t * (1 - t)]))
    assert "leaves rank 1 at t = " in text
    text = refusal(zero, lambda t: np.diag([1.0 + t, 0.0]), covariance_rate=lambda t: np.eye(2))
    assert "is not the derivative" in text
    # The rank is right at the points, and wrong in the rate: just below the comparison above.
    skewed = 5e-5 * np.eye(2)
    text = refusal(
        zero, lambda t: np.diag([1.0, 0.0]), covariance_rate=lambda t: skewed - skewed[0, 0] * line
    )
    assert "NᵀS'N" in text


def test_wrong_rates_are_refused():
    text = refusal(lambda t: np.array([t, 0.0]), STILL[1], mean_rate=lambda t: np.array([0.9, 0.0]))
    assert "`mean_rate` of the path is not the derivative of `mean`: at t = 0.137" in text


def test_paths_of_the_wrong_kind_are_refused():
    with pytest.raises(InvalidPath, match="must be a function of time, not ndarray"):
        gt.GaussianPath(np.zeros(2), STILL[1])
    law = gt.Gaussian([0.0, 0.0], np.eye(2))
    with pytest.raises(InvalidShape, match=r"`path.mean\(t\)` must have shape \(2,\)"):
        follow(gt.GaussianPath(lambda t: np.zeros(3), STILL[1]), law, law, 1.0)
    excursion = gt.GaussianPath(lambda t: np.array([t * (1 - t), 0.0]), STILL[1])
    with pytest.raises(InvalidMethod, match="cannot move the mean along this path"):
        follow(excursion, law, law, 1.0, "AVB")

"""Design of attracting Gaussians: what is guaranteed holds, what is false is refuted or refused."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import solve_ivp
from typer.testing import CliRunner

import gtcontrol as gt
from gtcontrol.arithmetic.floats import Enclosure, exact
from gtcontrol.certification.conclusion import settle
from gtcontrol.certification.design import run as entry
from gtcontrol.certification.design.closed_forms import closed_form
from gtcontrol.certification.design.confirmation import Trial, confirms, starts
from gtcontrol.certification.design.proof import certified, reasons
from gtcontrol.certification.design.request import Wishes, pose
from gtcontrol.certification.rules.base import Refuted
from gtcontrol.certification.rules.coordinates import (
    Basis,
    exceeds,
    frobenius_bound,
)
from gtcontrol.certification.rules.designed_attractor import distances
from gtcontrol.certification.rules.designed_locally import _contracts, region
from gtcontrol.cli.app import app
from gtcontrol.errors import (
    DesignInfeasible,
    GtcontrolError,
    InvalidMethod,
    InvalidNumber,
    InvalidShape,
    OutOfScale,
    RankDeficientFactor,
    ResultFileInvalid,
    TooLarge,
)
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.results.claims import Claim
from tests.strategies import factor, invertible

TARGET = gt.Gaussian.from_covariance(
    [1.0, -1.0, 2.0], [[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.5]]
)
FLAT = gt.Gaussian([1.0, -1.0, 2.0], [[1.0, 0.0], [0.5, 1.0], [0.0, 0.3]])
V = np.array([[-1.0, 0.2, 0.0], [-0.1, -2.0, 0.3], [0.0, 0.0, -1.5]])


def quick(target, **wishes):
    """A design without simulations."""
    return gt.design(target, checks=0, **wishes)


def covariance_operator(p, S):
    """Linearisation D -> MD + DMᵀ + VDBS + SBᵀDVᵀ on vec(D), by its definition."""
    d = p.dim
    M = p.A + p.V @ S @ p.B
    columns = []
    for i in range(d * d):
        D = np.zeros(d * d)
        D[i] = 1
        D = D.reshape(d, d)
        image = M @ D + D @ M.T + p.V @ D @ p.B @ S + S @ p.B.T @ D @ p.V.T
        columns.append(image.ravel())
    return np.array(columns).T


def symmetric_spectrum(p, S):
    """Eigenvalues of the linearisation on symmetric matrices."""
    d = p.dim
    basis = []
    for i in range(d):
        for j in range(i + 1):
            E = np.zeros((d, d))
            E[i, j] = E[j, i] = 1.0 if i == j else np.sqrt(0.5)
            basis.append(E.ravel())
    W = np.array(basis)
    return np.linalg.eigvals(W @ covariance_operator(p, S) @ W.T)


def mean_spectrum(p, S):
    return np.linalg.eigvals(p.A + p.V + p.V @ S @ p.B)


# -- closed forms ------------------------------------------------------------------------------


def test_the_reference_design_has_the_least_norms_and_the_rates():
    """Target of the reference case, V = -I, α = 2: A = I, abscissas -2 and -1."""
    made = gt.design(TARGET, V=-1.0, rate=2.0)
    p, S = made.parameters, TARGET.covariance
    assert made.status is gt.Status.SUCCESS
    assert made.proved
    assert (made.rate, made.mean_rate) == (2.0, 1.0)
    assert np.array_equal(p.A, np.eye(3))
    assert np.allclose(p.B @ S, np.eye(3), atol=1e-14)
    assert np.allclose(p.b, TARGET.mean, rtol=1e-15)
    assert np.linalg.norm(p.A, 2) == 1.0
    assert symmetric_spectrum(p, S).real.max() == pytest.approx(-2.0, abs=1e-12)
    assert mean_spectrum(p, S).real.max() == pytest.approx(-1.0, abs=1e-12)
    assert made.confirmation.count == 8
    assert made.confirmation.worst < 1e-9


def test_the_two_reference_values_of_the_mean():
    """V = I, A = I, B = -I/2 at S = 2I has an unstable mean; with V = -I, B = I/2 it is stable."""
    target = gt.Gaussian([3.0, 4.0], np.sqrt(2.0) * np.eye(2))
    with pytest.raises(DesignInfeasible, match=r"`V` has trace 2, .* stable only if tr V < 0"):
        gt.design(target, V=1.0)
    p = quick(target, V=-1.0, rate=2.0).parameters
    assert np.allclose(p.A, np.eye(2))
    assert np.allclose(p.B, 0.5 * np.eye(2), rtol=1e-15)
    assert np.allclose(p.b, target.mean)
    assert np.allclose(mean_spectrum(p, target.covariance), -1.0, atol=1e-14)


def test_the_inverse_covariance_relaxes_exactly_at_the_rate():
    """S⁻¹ - S*⁻¹ = e^{-αt} (S₀⁻¹ - S*⁻¹), by an integration of S' of its own."""
    p = quick(TARGET, rate=1.5).parameters
    rng = np.random.default_rng(1)
    L = invertible(rng, 3)

    def slope(_, y):
        S = y.reshape(3, 3)
        M = p.A + p.V @ S @ p.B
        return (M @ S + S @ M.T).ravel()

    S0 = L @ L.T
    end = solve_ivp(slope, (0, 1.2), S0.ravel(), rtol=1e-12, atol=1e-13, method="DOP853").y[:, -1]
    wanted = np.linalg.inv(TARGET.covariance)
    change = np.linalg.inv(end.reshape(3, 3)) - wanted
    assert np.allclose(change, np.exp(-1.8) * (np.linalg.inv(S0) - wanted), atol=1e-9)


@st.composite
def targets(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = draw(st.integers(1, 5))
    r = draw(st.integers(0, d))
    scale = 10.0 ** draw(st.integers(-8, 8))
    return gt.Gaussian(scale * rng.standard_normal(d), scale * factor(rng, d, r, spread=1.5))


@given(targets(), st.floats(0.1, 10), st.floats(0.1, 10))
def test_every_target_of_every_rank_and_scale_is_designed_with_proof(target, rate, mean_rate):
    made = quick(target, rate=rate, mean_rate=mean_rate)
    assert made.proved, made.claims[0].note
    assert made.rate >= rate * (1 - 1e-8)
    assert made.mean_rate >= mean_rate * (1 - 1e-8)
    assert not list(reasons(made))
    p, S = made.parameters, target.covariance
    size = max(float(np.linalg.norm(S)), 1e-300)
    M = p.A + p.V @ S @ p.B
    assert np.linalg.norm(M @ S + S @ M.T) <= 1e-9 * rate * size + 1e-290
    assert mean_spectrum(p, S).real.max() <= -mean_rate * (1 - 1e-6)
    # All modes decay at the rate; those in which rank is lost only at the rate of L.
    assert symmetric_spectrum(p, S).real.max() <= -rate * (1 - 1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("law", [TARGET, FLAT, gt.Gaussian([2.0], [[0.3]])])
def test_simulations_confirm_it_at_every_scale(law, scale):
    made = gt.design(gt.Gaussian(scale * law.mean, scale * law.factor), checks=3)
    assert made.status is gt.Status.SUCCESS
    assert made.proved
    assert made.confirmation.worst < 1e-8
    assert made.confirmation.slowest > 0.95 * made.mean_rate


def test_starts_have_every_rank_that_is_attracted():
    made = gt.design(FLAT, checks=4)
    assert sorted(made.confirmation.ranks) == [2, 2, 3, 3]
    assert made.status is gt.Status.SUCCESS


def test_variance_is_lost_along_the_given_complement():
    """With N = e₃ the rest of the covariance vanishes along e₃: e₃ is an eigenvector of A."""
    complement = [[0.0], [0.0], [1.0]]
    made = quick(FLAT, complement=complement, rate=2.0)
    A = made.parameters.A
    assert made.proved
    assert np.allclose(A @ complement, -2.0 * np.array(complement), rtol=1e-6)
    assert np.allclose(A @ FLAT.factor, FLAT.factor, rtol=1e-6)
    assert not np.allclose(A, quick(FLAT, rate=2.0).parameters.A)


@pytest.mark.parametrize("slope", [0.6, 0.51, 0.501])
def test_oblique_complements_are_proved(slope):
    made = gt.design(gt.Gaussian([1.0, 0.0], [[1.0], [0.5]]), complement=[[1.0], [slope]], checks=0)
    assert made.proved
    assert gt.verify(made)


def test_ill_conditioned_targets_are_still_proved():
    rng = np.random.default_rng(3)
    for spread in (3.0, 6.0, 10.0):
        target = gt.Gaussian(rng.standard_normal(4), factor(rng, 4, 4, spread))
        made = quick(target)
        assert made.proved
        assert made.claims[0].numbers["covariance_distance"] < 1e-3 * np.sqrt(target.trace)


def test_a_large_target_takes_seconds():
    rng = np.random.default_rng(5)
    target = gt.Gaussian(rng.standard_normal(200), factor(rng, 200, 12))
    made = gt.design(target, checks=0)
    assert made.proved
    assert made.seconds < 5


@pytest.mark.parametrize(
    ("target", "wishes", "what"),
    [
        (gt.Gaussian([0.0], [[1e-200]]), {}, "smallest standard deviation of the target is 1e-200"),
        (gt.Gaussian([1e300], [[1.0]]), {}, "length of the target's mean is 1e.300"),
        (TARGET, {"rate": 1e-300}, "`rate` is 1e-300"),
        (TARGET, {"V": -1e300}, "norm of `V` is 1.73e.300"),
        (TARGET, {"bounds": gt.Bounds(norms={"A": 1e-200})}, "rate of the covariance is 1.15e-200"),
    ],
)
def test_what_would_leave_double_precision_is_refused(target, wishes, what):
    with pytest.raises(OutOfScale, match=what):
        quick(target, **wishes)


# -- rates and bounds --------------------------------------------------------------------------


def test_the_fastest_rate_within_bounds_is_taken():
    bounds = gt.Bounds(norms={"A": 0.5, "V": 3.0, "B": 10.0})
    made = quick(TARGET, bounds=bounds)
    assert made.rate == pytest.approx(1 / np.sqrt(3), rel=1e-12)  # |A| = (α/2) √3
    assert made.proved
    with pytest.raises(DesignInfeasible, match=r"rates up to 0.57735, and no A and B do better"):
        quick(TARGET, bounds=bounds, rate=0.6)


def test_bounds_on_b_and_on_v_work_against_each_other():
    """|B| = (α/2ν)|S⁻¹| wants a large ν, |b| = ν|m| a small one."""
    size = np.linalg.norm(np.linalg.inv(TARGET.covariance))
    bounds = gt.Bounds(norms={"B": 0.5 * size, "b": np.sqrt(6) * 1.5})
    made = quick(TARGET, bounds=bounds)
    assert made.rate == pytest.approx(1.5, rel=1e-12)
    assert np.linalg.norm(made.parameters.B) == pytest.approx(0.5 * size)
    assert np.linalg.norm(made.parameters.b) == pytest.approx(1.5 * np.sqrt(6))
    with pytest.raises(DesignInfeasible, match=r"`mean_rate` is 2.*at most ν = 1.5"):
        quick(TARGET, bounds=bounds, mean_rate=2.0)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_the_program_finds_no_smaller_parameters_than_the_closed_form(seed):
    """Optimality of the closed form in Frobenius norm, by a solver that does not know it."""
    rng = np.random.default_rng(seed)
    target = gt.Gaussian(rng.standard_normal(3), factor(rng, 3, 3))
    exactly = quick(target, rate=2.0).parameters
    solved = quick(target, rate=2.0, method="lmi").parameters
    for letter in "AB":
        best = np.linalg.norm(getattr(exactly, letter))
        assert np.linalg.norm(getattr(solved, letter)) == pytest.approx(best, rel=1e-4)
    tight = gt.Bounds(norms={"A": 0.99 * np.linalg.norm(exactly.A)})
    with pytest.raises(DesignInfeasible, match="no A and B do better"):
        quick(target, rate=2.0, bounds=tight, method="lmi")


def test_rates_that_are_left_out_follow_those_that_are_given():
    for wishes in ({"rate": 50.0}, {"mean_rate": 25.0}, {"V": -25.0}):
        made = quick(TARGET, **wishes)
        assert (made.rate, made.mean_rate) == (50.0, 25.0)
    slow = quick(TARGET, V=1e-8 * V)
    assert slow.proved
    assert slow.rate == pytest.approx(2 * slow.mean_rate)


def test_rates_are_least_rates():
    made = quick(TARGET, rate=1.0, mean_rate=3.0)
    assert (made.rate, made.mean_rate) == (3.0, 3.0)


# -- semidefinite programs ---------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1.0, 2.0])
def test_the_program_reaches_its_rates(rate):
    made = gt.design(TARGET, method="lmi", V=-1.0, rate=rate, checks=2)
    S = TARGET.covariance
    assert made.proved
    assert made.status is gt.Status.SUCCESS
    assert made.rate == rate
    assert symmetric_spectrum(made.parameters, S).real.max() == pytest.approx(-rate, rel=1e-4)
    assert mean_spectrum(made.parameters, S).real.max() == pytest.approx(-1.0, rel=1e-6)


def test_the_nearest_parameters_are_attracting_and_nearest():
    wanted = gt.Parameters(A=3 * np.eye(3), B=np.ones((3, 3)), V=np.eye(3))
    made = quick(TARGET, near=wanted, V=-1.0)
    assert made.proved
    assert made.method == "lmi"
    p = made.parameters

    def cost(q):
        unit = TARGET.trace / 3
        return np.linalg.norm(q.A - wanted.A) ** 2 + np.linalg.norm(unit * (q.B - wanted.B)) ** 2

    assert cost(p) < 0.9 * cost(quick(TARGET, V=-1.0).parameters)
    # Convex: no point between the optimum and another admissible design is nearer.
    other = quick(TARGET, V=-1.0).parameters
    for t in (1e-3, 1e-2, 0.1):
        between = replace_parameters(p, A=p.A + t * (other.A - p.A), B=p.B + t * (other.B - p.B))
        assert cost(between) > cost(p) * (1 - 1e-6)


def replace_parameters(p, **changed):
    given = {"A": p.A, "B": p.B, "V": p.V, "b": p.b} | changed
    return gt.Parameters(**given)


def test_the_value_matrix_of_near_is_taken_if_it_serves():
    for serves in (-2.0 * np.eye(3), V):
        made = quick(TARGET, near=gt.Parameters(A=np.eye(3), B=np.eye(3), V=serves))
        np.testing.assert_array_equal(made.parameters.V, serves)
        assert made.proved
        assert "of `near` is not used" not in made.summary()
    for vain, why in (
        (np.eye(3), "does not contract"),
        (-np.eye(3) + 50 * np.eye(3, k=1), "does not contract"),
    ):
        made = quick(TARGET, near=gt.Parameters(A=np.eye(3), B=np.eye(3), V=vain))
        assert made.proved
        assert f"that of `near` is not used: it {why}" in " ".join(made.summary().split())
    near = gt.Parameters(A=np.eye(3), B=np.eye(3), V=-2.0 * np.eye(3))
    bounded = quick(TARGET, near=near, bounds=gt.Bounds(norms={"V": 1.0}))
    assert "exceeds the bounds on V" in " ".join(bounded.summary().split())
    fast = quick(TARGET, near=near, mean_rate=3.0)
    assert fast.mean_rate >= 3.0
    given = quick(TARGET, near=near, V=-1.0)
    np.testing.assert_array_equal(given.parameters.V, -np.eye(3))


def test_long_simulations_are_few():
    target = gt.Gaussian.from_covariance([1.0, -1.0], [[2.0, 0.5], [0.5, 1.0]])
    near = gt.Parameters(A=25 * np.eye(2), B=np.diag([-5.0, 5.0]))
    made = gt.design(target, near=near, rate=1.0, checks=8)
    assert made.status is gt.Status.SUCCESS
    assert 2 <= made.confirmation.count < 8
    assert "of 8 random starts" in made.summary()
    assert gt.verify(made)


def test_a_general_value_matrix_gives_a_local_design():
    made = gt.design(TARGET, V=V, rate=2.0, checks=4)
    p, S = made.parameters, TARGET.covariance
    assert made.status is gt.Status.SUCCESS
    assert made.proved
    assert made.claims[0].rule == "designed-locally"
    assert made.rate == 2.0
    assert 0.3 < made.claims[0].numbers["radius"] < 0.33
    assert symmetric_spectrum(p, S).real.max() < -2.0
    inner = np.linalg.solve(TARGET.factor, V @ TARGET.factor)
    slowest = -np.linalg.eigvalsh(inner + inner.T)[-1] / 2
    assert made.mean_rate == pytest.approx(slowest, rel=1e-8)
    assert mean_spectrum(p, S).real.max() < -made.mean_rate
    assert np.linalg.norm((p.A + p.V + p.V @ S @ p.B) @ TARGET.mean + p.b) < 1e-12


def test_the_deviation_falls_monotonically_inside_the_region():
    """|L⁻¹(S - S*)L⁻ᵀ|_F decreases at every instant from starts within the proved radius."""
    made = quick(TARGET, V=V, rate=2.0)
    L, radius = TARGET.factor, made.claims[0].numbers["radius"]
    trial = Trial(made.parameters, TARGET, np.zeros((3, 0)), 1.0, radius)
    inverse = np.linalg.inv(L)
    for start in starts(trial, 5, np.random.default_rng(2)):
        path = gt.simulate(start, made.parameters, 3.0)
        laws = [path.at(t) for t in np.linspace(0, 3, 60)]
        sizes = [np.linalg.norm(inverse @ g.covariance @ inverse.T - np.eye(3)) for g in laws]
        assert 0.85 * radius < sizes[0] < radius
        assert np.all(np.diff(sizes) < 0)


def test_the_largest_rate_within_bounds_is_found_for_a_general_value_matrix():
    made = quick(TARGET, V=V, bounds=gt.Bounds(norms={"A": 3.0, "B": 10.0}))
    assert made.proved
    assert np.linalg.norm(made.parameters.A) == pytest.approx(3.0, rel=1e-4)
    with pytest.raises(DesignInfeasible, match="at rate 5 with this V, as the solver says"):
        quick(TARGET, V=V, rate=5.0, bounds=gt.Bounds(norms={"A": 3.0}))


# -- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wishes", "error", "message"),
    [
        ({"V": np.diag([1.0, 1.0, -2.0])}, DesignInfeasible, "`V` has trace 0"),
        ({"V": np.diag([1.0, 1.0, -3.0])}, DesignInfeasible, "does not contract in the metric"),
        ({"V": -1.0, "mean_rate": 2.0}, DesignInfeasible, "at most at rate -tr V/d = 1"),
        ({"V": -2.0, "bounds": gt.Bounds(norms={"V": 1.0})}, DesignInfeasible, "`V` is -2 I"),
        ({"V": np.nan}, InvalidNumber, "`V` must be finite"),
        ({"V": np.eye(2)}, InvalidShape, "`V` must have shape"),
        ({"V": True}, InvalidShape, "`V` must have 2 dimension"),
        ({"rate": -1.0}, InvalidNumber, "`rate` must be greater than 0"),
        ({"mean_rate": 0.0}, InvalidNumber, "`mean_rate` must be greater than 0"),
        ({"rate": "fast"}, InvalidNumber, "`rate` must be a number"),
        ({"checks": -1}, InvalidNumber, "`checks` must be at least 0"),
        ({"method": "magic"}, InvalidMethod, "expected one of auto, closed-form, lmi"),
        ({"method": "closed-form", "V": V}, InvalidMethod, "the closed form has V = -ν I"),
        (
            {"method": "closed-form", "near": gt.Parameters(dim=3)},
            InvalidMethod,
            "`near` needs method='lmi'",
        ),
        ({"near": gt.Parameters(dim=2)}, InvalidShape, "`near` has dimension 2"),
        ({"near": 3}, InvalidShape, "`near` must be Parameters"),
        ({"bounds": {"A": 1}}, InvalidShape, "`bounds` must be Bounds"),
        ({"bounds": gt.Bounds(trace=3.0)}, InvalidMethod, "along a path"),
        ({"complement": np.zeros((3, 0))}, InvalidMethod, "is for singular targets"),
        ({"V": 0.99 * V, "mean_rate": 1.2}, DesignInfeasible, "only sure to converge at rate"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(wishes, error, message):
    with pytest.raises(error, match=message) as caught:
        gt.design(TARGET, **wishes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wishes", "error", "message"),
    [
        ({"V": 1.0}, DesignInfeasible, "eigenvalues with real part 1, which are not stable"),
        ({"V": V}, InvalidMethod, "the target has rank 2 in dimension 3"),
        ({"method": "lmi"}, InvalidMethod, "singular targets have the closed form"),
        ({"V": -1.0, "mean_rate": 2.0}, DesignInfeasible, "`V` allows at most ν = 1"),
        ({"complement": np.eye(3)}, InvalidShape, "`complement` must have shape"),
        ({"complement": FLAT.factor[:, :1]}, RankDeficientFactor, "must span the whole space"),
        ({"bounds": gt.Bounds(norms={"b": 0.1})}, DesignInfeasible, "the norm of b would be"),
    ],
)
def test_singular_targets_have_refusals_of_their_own(wishes, error, message):
    with pytest.raises(error, match=message):
        gt.design(FLAT, **wishes)


def test_only_gaussians_are_targets():
    with pytest.raises(InvalidShape, match="`target` must be a Gaussian, not list"):
        gt.design([0.0, 1.0])


def test_large_programs_are_refused():
    rng = np.random.default_rng(0)
    law = gt.Gaussian(np.zeros(11), factor(rng, 11, 11))
    with pytest.raises(TooLarge, match="up to dimension 10; the target has 11"):
        gt.design(law, V=-np.diag(np.arange(1.0, 12.0)))


# -- the rules ---------------------------------------------------------------------------------


def global_claim(target=TARGET, **wishes):
    made = quick(target, **wishes)
    return CertificationProblem((made.parameters,)), made.claims[0]


def tampered(claim, **numbers):
    return replace(claim, numbers={**claim.numbers, **numbers})


def refuted(problem, claim):
    return not settle(problem, claim).proved


@pytest.mark.parametrize("target", [TARGET, FLAT, gt.Gaussian([1.0, 2.0], np.zeros((2, 0)))])
def test_tampered_global_claims_are_refuted(target):
    problem, claim = global_claim(target)
    assert not refuted(problem, claim)
    for name in ("rate", "loss"):
        if name in claim.numbers:
            assert refuted(problem, tampered(claim, **{name: 1.001 * claim.numbers[name]}))
            assert refuted(problem, tampered(claim, **{name: -claim.numbers[name]}))
            assert refuted(problem, tampered(claim, **{name: np.nan}))
    for name in ("covariance_distance", "mean_distance"):
        if claim.numbers[name]:
            assert refuted(problem, tampered(claim, **{name: 0.5 * claim.numbers[name]}))
        assert refuted(problem, tampered(claim, **{name: np.nan}))
    for name, value in claim.arrays.items():
        if value.size and not (name == "complement" and not claim.arrays["factor"].size):
            if name != "complement":  # another complement may prove the same
                moved = value.copy()
                moved[(0,) * value.ndim] += 1e-6
                assert refuted(problem, replace(claim, arrays={**claim.arrays, name: moved}))
            for bad in (value[:-1], value * np.nan, value.astype(np.float32)):
                assert refuted(problem, replace(claim, arrays={**claim.arrays, name: bad}))
        rest = {k: v for k, v in claim.arrays.items() if k != name}
        assert refuted(problem, replace(claim, arrays=rest))
    for name in claim.numbers:
        rest = {k: v for k, v in claim.numbers.items() if k != name}
        assert refuted(problem, replace(claim, numbers=rest))


def test_tampered_parameters_are_refuted():
    problem, claim = global_claim()
    p = problem.parameters
    for changed in (
        {"A": p.A + 1e-6},
        {"B": p.B * (1 + 1e-6)},
        {"V": -p.V},
        {"V": p.V + np.diag([1e-9, 0, 0])},
        {"b": p.b + 1e-6},
        {"B": -p.B},
    ):
        other = CertificationProblem((replace_parameters(p, **changed),))
        assert refuted(other, claim), changed
    noisy = gt.Parameters(A=p.A, B=p.B, V=p.V, b=p.b, noise=1e-9 * np.eye(3))
    biased = gt.Parameters(A=p.A, B=p.B, V=p.V, b=p.b, beta=[1e-3, 0, 0])
    two = gt.Parameters(A=p.A, B=[p.B, p.B], V=[p.V, p.V], b=p.b)
    for q in (noisy, biased, two):
        assert refuted(CertificationProblem((q,)), claim)
    assert refuted(CertificationProblem((p, p)), claim)


def test_a_rotation_of_the_plane_is_refuted_and_a_leak_is_bounded():
    """The invariant subspace is proved near the range, and its distance enters the claim."""
    problem, claim = global_claim(FLAT)
    p = problem.parameters
    leak = np.outer(np.linalg.svd(FLAT.factor)[0][:, 2], np.linalg.pinv(FLAT.factor)[0])
    near = CertificationProblem((replace_parameters(p, A=p.A + 1e-10 * leak),))
    assert refuted(near, claim)
    wider = tampered(claim, covariance_distance=1e-9, mean_distance=1e-8)
    assert not refuted(near, wider)
    assert refuted(CertificationProblem((replace_parameters(p, A=p.A + 3.0 * leak),)), wider)


@given(st.integers(0, 2**32 - 1), st.floats(-12, -3))
@settings(max_examples=15)
def test_the_proved_distance_holds_the_true_equilibrium(seed, exponent):
    """The equilibrium of perturbed parameters, from a Lyapunov equation in 40 digits."""
    rng = np.random.default_rng(seed)
    target = gt.Gaussian(rng.standard_normal(3), factor(rng, 3, 3))
    p = quick(target).parameters
    push = 10.0**exponent
    q = replace_parameters(
        p,
        A=p.A + push * rng.standard_normal((3, 3)),
        B=p.B + push * rng.standard_normal((3, 3)),
        b=p.b + push * rng.standard_normal(3),
    )
    try:
        found = distances(q, target.mean, target.factor, np.zeros((3, 0)), 1.9, 0.0)
    except Refuted:
        assert exponent > -5  # a large push may leave the neighbourhood that is proved
        return
    S, m = exact_equilibrium(q)
    here = gt.Gaussian.from_covariance(m, S)
    there = gt.Gaussian(target.mean, target.factor)
    assert np.linalg.norm(m - target.mean) <= found.mean * (1 + 1e-9)
    covariance = gt.wasserstein(gt.Gaussian(there.mean, here.factor), there)
    assert covariance <= found.covariance * (1 + 1e-9) + 1e-14
    assert found.covariance < 1e4 * push * np.sqrt(target.trace)


def exact_equilibrium(p):
    """S and m at rest for V = v I, from X A + Aᵀ X = -K with mpmath."""
    with mpmath.workdps(40):
        n = p.dim
        A, B = mpmath.matrix(p.A.tolist()), mpmath.matrix(p.B.tolist())
        v = mpmath.mpf(p.V[0, 0])
        K = v * (B + B.T)
        big = mpmath.zeros(n * n)
        right = mpmath.zeros(n * n, 1)
        for i in range(n):
            for j in range(n):
                right[i * n + j] = -K[i, j]
                for k in range(n):
                    big[i * n + j, i * n + k] += A[k, j]
                    big[i * n + j, k * n + j] += A[k, i]
        x = mpmath.lu_solve(big, right)
        X = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(n):
                X[i, j] = x[i * n + j]
        S = X**-1
        J = A + v * mpmath.eye(n) + v * S * B
        m = mpmath.lu_solve(J, -mpmath.matrix(p.b.tolist()))
        return (
            np.array(S.tolist(), dtype=float),
            np.array(m.tolist(), dtype=float).ravel(),
        )


@given(st.integers(0, 2**32 - 1), st.floats(-12, -4))
@settings(max_examples=15)
def test_the_proved_distance_holds_the_true_singular_equilibrium(seed, exponent):
    """Invariant subspace by eigenvectors, then a small Lyapunov equation, in 40 digits."""
    rng = np.random.default_rng(seed)
    target = gt.Gaussian(rng.standard_normal(4), factor(rng, 4, 2))
    made = quick(target)
    p, N = made.parameters, made.claims[0].arrays["complement"]
    push = 10.0**exponent
    q = replace_parameters(
        p,
        A=p.A + push * rng.standard_normal((4, 4)),
        B=p.B + push * np.eye(4),
        b=p.b + push * rng.standard_normal(4),
    )
    try:
        found = distances(q, target.mean, target.factor, N, 1.9, 1.9)
    except Refuted:
        assert exponent > -6
        return
    with mpmath.workdps(40):
        values, vectors = mpmath.eig(mpmath.matrix(q.A.tolist()))
        kept = [i for i in range(4) if mpmath.re(values[i]) > 0]
        U = mpmath.matrix(4, 2)
        for column, i in enumerate(kept):
            for row in range(4):
                U[row, column] = vectors[row, i]
        inner = mpmath.diag([values[i] for i in kept])
        K = mpmath.mpf(q.V[0, 0]) * mpmath.matrix((q.B + q.B.T).tolist())
        right = U.H * K * U
        X = mpmath.matrix(2, 2)
        for i in range(2):
            for j in range(2):
                X[i, j] = -right[i, j] / (mpmath.conj(inner[i, i]) + inner[j, j])
        S = U * X**-1 * U.H
        J = mpmath.matrix(q.A.tolist()) + mpmath.matrix(q.V.tolist())
        J += mpmath.matrix(q.V.tolist()) * S * mpmath.matrix(q.B.tolist())
        m = mpmath.lu_solve(J, -mpmath.matrix(q.b.tolist()))
        S = np.array([[float(mpmath.re(x)) for x in row] for row in S.tolist()])
        m = np.array([float(mpmath.re(x)) for x in m])
    here = gt.Gaussian.from_covariance(target.mean, S, 2, tolerance=1e-12)
    assert gt.wasserstein(here, target) <= found.covariance * (1 + 1e-9) + 1e-13
    assert np.linalg.norm(m - target.mean) <= found.mean * (1 + 1e-9)


def test_tampered_local_claims_are_refuted():
    made = quick(TARGET, V=V, rate=2.0)
    problem, claim = made.question, made.claims[0]
    assert not refuted(problem, claim)
    for name, factor_ in {
        "contraction": 1.01,
        "rate": 1.0001,
        "radius": 1.001,
        "mean_rate": 1.0001,
        "covariance_distance": 0.5,
        "mean_distance": 0.5,
    }.items():
        assert refuted(problem, tampered(claim, **{name: factor_ * claim.numbers[name]})), name
        assert refuted(problem, tampered(claim, **{name: np.nan})), name
    p = problem.parameters
    for changed in ({"A": p.A + 1e-6}, {"B": p.B.T}, {"V": V.T}, {"b": -p.b}):
        other = CertificationProblem((replace_parameters(p, **changed),))
        assert refuted(other, claim), changed


def test_an_unstable_equilibrium_has_no_local_claim():
    """Reference case V = [[5,-3],[-3,2]], B = diag(-7,-1): unstable at [[2,-2],[-2,3]]."""
    S = np.array([[2.0, -2.0], [-2.0, 3.0]])
    values, B = np.array([[5.0, -3.0], [-3.0, 2.0]]), np.diag([-7.0, -1.0])
    A = np.array([[112.0, -19.0], [-70.0, 12.0]])
    p = gt.Parameters(A=A, V=values, B=B)
    assert symmetric_spectrum(p, S).real.max() == pytest.approx(0.145131263852895, rel=1e-9)
    with pytest.raises(Refuted):
        region(p, np.zeros(2), np.linalg.cholesky(S), 1e-6, 1e-6)


def test_the_quadratic_form_is_decided_at_its_smallest_eigenvalue():
    """-2 tr(D V D B) >= c |D|² holds for c up to the smallest eigenvalue, by brute force."""
    rng = np.random.default_rng(7)
    values = -np.eye(3) + 0.2 * rng.standard_normal((3, 3))
    scores = np.eye(3) + 0.2 * rng.standard_normal((3, 3))
    basis = []
    for i in range(3):
        for j in range(i + 1):
            E = np.zeros((3, 3))
            E[i, j] = E[j, i] = 1.0 if i == j else np.sqrt(0.5)
            basis.append(E)
    form = np.array([[np.trace(D @ values @ E @ scores) for E in basis] for D in basis])
    smallest = np.linalg.eigvalsh(-(form + form.T))[0]
    assert smallest > 0.3
    assert _contracts(exact(values), exact(scores), smallest * (1 - 1e-9))
    assert not _contracts(exact(values), exact(scores), smallest * (1 + 1e-9))


def test_similarity_and_congruence_enclose_the_exact_values():
    rng = np.random.default_rng(11)
    T, M = rng.standard_normal((4, 4)), rng.standard_normal((4, 4))
    basis = Basis.of(T)
    made, fault = basis.similar(M)
    with mpmath.workdps(50):
        exactly = mpmath.matrix(T.tolist()) ** -1 * mpmath.matrix(M.tolist())
        exactly = exactly * mpmath.matrix(T.tolist())
        error = exactly - mpmath.matrix(made.middle.tolist())
        miss = np.array(error.tolist(), dtype=float)
    assert np.linalg.norm(miss, 2) <= fault + np.linalg.norm(made.radius)
    assert fault + np.linalg.norm(made.radius) < 1e-11
    with pytest.raises(Refuted, match="dependent"):
        Basis.of(np.ones((2, 2)))
    with pytest.raises(Refuted, match="dependent"):
        Basis.of(np.array([[1.0, 1.0], [1.0, 1.0 + 1e-15]]))


def test_small_helpers_round_to_the_safe_side():
    assert exceeds(exact(np.eye(2)), 1.0)
    assert not exceeds(exact(np.eye(2)), np.nextafter(1.0, 2))
    assert not exceeds(exact(np.diag([1.0, 2.0])), 1.0)  # a boundary is not proved in floats
    assert exceeds(exact(np.diag([1.0, 2.0])), 1.0 - 1e-12)
    wide = Enclosure(np.ones((2, 3)), np.full((2, 3), 0.5))
    assert frobenius_bound(wide) == pytest.approx(1.5 * np.sqrt(6), rel=1e-10)
    assert frobenius_bound(exact(np.array([[3e200, 4e200]]))) >= 5e200


def test_what_cannot_be_proved_is_numerical_with_the_reason():
    """A target so ill-conditioned that floats prove nothing."""
    rng = np.random.default_rng(3)
    target = gt.Gaussian.trusted(np.ones(3), factor(rng, 3, 3, spread=19.0))
    draft = closed_form(pose(target, Wishes()))
    claim = certified(draft, target)
    assert not claim.proved
    assert claim.note
    assert claim.numbers["rate"] == 2.0


# -- simulations -------------------------------------------------------------------------------


def test_parameters_that_do_not_attract_are_not_confirmed(monkeypatch):
    """If the draft were wrong (here: B scaled), simulation would say so."""

    def wrong(problem):
        draft = closed_form(problem)
        p = draft.parameters
        return replace(draft, parameters=replace_parameters(p, B=1.1 * p.B))

    monkeypatch.setattr(entry, "closed_form", wrong)
    made = gt.design(TARGET, checks=1)
    assert made.status is gt.Status.UNCONFIRMED
    assert not made.answered
    # The guarantee knows, too: it is about an equilibrium that lies far away.
    assert made.claims[0].numbers["covariance_distance"] > 0.03 * np.sqrt(TARGET.trace)
    assert "do not approach the target" in made.summary()


def test_a_rate_that_is_too_high_is_not_confirmed():
    seen = gt.design(TARGET, checks=2).confirmation
    assert confirms(seen, 1.0)
    assert not confirms(seen, 1.3)
    assert not confirms(replace(seen, distances=seen.distances + 1e-5), 1.0)


def test_an_interruption_keeps_the_design():
    def stop(fraction, text):
        if text.startswith("simulation 2"):
            raise KeyboardInterrupt

    made = gt.design(TARGET, progress=stop)
    assert made.status is gt.Status.INTERRUPTED
    assert made.proved
    assert not made.answered
    assert "INTERRUPTED" in made.summary()


# -- saving and verifying ----------------------------------------------------------------------


def same(one, other):
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, Claim) or hasattr(one, "__dataclass_fields__"):
        for field in fields(one):
            same(getattr(one, field.name), getattr(other, field.name))
    elif hasattr(one, "keys"):
        same(dict(one), dict(other))
    else:
        assert one == other


CASES = {
    "full": lambda: gt.design(TARGET, checks=2, name="inf"),
    "flat": lambda: gt.design(FLAT, checks=2, complement=[[0.0], [0.0], [1.0]]),
    "point": lambda: gt.design(gt.Gaussian([1.0], np.zeros((1, 0))), checks=1),
    "local": lambda: gt.design(TARGET, V=V, checks=0),
    "near": lambda: gt.design(
        TARGET, near=gt.Parameters(A=np.eye(3)), bounds=gt.Bounds(norms={"A": 9.0}), checks=0
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_saved_design_comes_back_and_is_verified(name, tmp_path):
    made = CASES[name]()
    made.save(tmp_path / "run")
    same(gt.load(tmp_path / "run"), made)
    found = gt.verify(tmp_path / "run")
    assert found
    assert found.proved
    assert found.checked == 1


def damaged(tmp_path, change):
    """Save a design, change its JSON and arrays, and verify it."""
    folder = tmp_path / "run"
    gt.design(TARGET, checks=1).save(folder)
    values = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    with np.load(folder / "result.npz") as stored:
        arrays = {key: stored[key] for key in stored.files}
    change(values, arrays)
    (folder / "result.json").write_text(json.dumps(values), encoding="utf-8")
    np.savez(folder / "result.npz", **arrays)
    return gt.verify(folder)


def shift(arrays, name):
    arrays[name] = arrays[name] + 1e-5


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda v, a: v.update(rate=3.0), "`rate` is 3.0, but the claim gives 2.0"),
        (lambda v, a: v.update(mean_rate=1.5), "`mean_rate` is 1.5"),
        (lambda v, a: v.update(statement="All is well."), "`statement` is not what"),
        (lambda v, a: v["claims"][0]["numbers"].update(rate=2.5), "not proved by its data"),
        (lambda v, a: v["claims"][0]["numbers"].pop("rate"), "`rate`"),
        (
            lambda v, a: v.update(claims=[], proved=False, certainty="numerical"),
            "has no claim",
        ),
        (lambda v, a: v["problem"].update(rate=4.0), "asks for 4.0, but the design has 2.0"),
        (lambda v, a: v["problem"].update(method="guess"), "`problem.method` is 'guess'"),
        (lambda v, a: v.update(method="guess"), "`method` is 'guess'"),
        (lambda v, a: v["problem"]["bounds"].update(trace=1.0), "bounds the covariance"),
        (lambda v, a: v["problem"]["bounds"]["norms"].update(A=0.1), "the norm of A would be"),
        (lambda v, a: a.update({"problem.V": -3 * np.eye(3)}), "V that was asked for"),
        (lambda v, a: v["claims"][0].update(note="All is well."), "reads 'All is well.'"),
        (
            lambda v, a: a.update({"checks.rates": 0.1 * a["checks.rates"]}),
            "simulations do not confirm",
        ),
        (lambda v, a: shift(a, "parameters.B"), "not proved by its data"),
        (lambda v, a: shift(a, "target.mean"), "about another target"),
        (lambda v, a: shift(a, "claims.0.factor"), "about another target"),
        (lambda v, a: v["claims"][0].update(rule="magic"), "unknown rule 'magic'"),
    ],
)
def test_a_tampered_file_is_rejected_with_the_reason(change, reason, tmp_path):
    found = damaged(tmp_path, change)
    assert not found
    assert not found.proved
    assert reason in " ".join(found.reasons)


@pytest.mark.parametrize(
    "change",
    [
        lambda v, a: v.pop("status"),
        lambda v, a: v.update(status="GOOD"),
        lambda v, a: v.update(rate="fast"),
        lambda v, a: v.update(certainty="provedx"),
        lambda v, a: v.update(proved=False),
        lambda v, a: v.update(proved=None),
        lambda v, a: v["problem"].update(dim=5.5),
        lambda v, a: v["problem"].update(dim=3.0),
        lambda v, a: v["problem"].update(rank=True),
        lambda v, a: v["confirmation"].update(horizon=99.0),
        lambda v, a: v["problem"].pop("bounds"),
        lambda v, a: v.update(confirmation={}),
        lambda v, a: a.pop("checks.rates"),
        lambda v, a: a.update({"checks.rates": a["checks.rates"][:0]}),
        lambda v, a: a.update({"parameters.A": np.eye(2)}),
        lambda v, a: a.update({"problem.V": np.eye(2)}),
        lambda v, a: a.pop("target.factor"),
        lambda v, a: a.update({"checks.times": -a["checks.times"]}),
    ],
)
def test_a_damaged_file_is_refused(change, tmp_path):
    with pytest.raises(ResultFileInvalid) as caught:
        damaged(tmp_path, change)
    assert "\n" not in str(caught.value)


# -- the command line and the report -----------------------------------------------------------

FILE = """
kind = "design"
[target]
mean = [1.0, -1.0]
covariance = [[2.0, 0.5], [0.5, 1.0]]
[design]
checks = 2
"""


def ran(text, tmp_path, *options):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return CliRunner().invoke(app, ["run", str(path), "--out", str(tmp_path / "out"), *options])


def test_a_file_is_run_and_its_result_verified(tmp_path):
    done = ran(FILE + "rate = 3.0\n[expect]\nproved = true\nrate_at_least = 3.0\n", tmp_path)
    assert done.exit_code == 0, done.output
    assert "Expectations of the file: 2 of 2 met." in done.output
    assert {p.name for p in (tmp_path / "out" / "figures").iterdir()} == {
        "path.png",
        "distance.png",
    }
    checked = CliRunner().invoke(app, ["verify", str(tmp_path / "out")])
    assert checked.exit_code == 0, checked.output
    assert "ATTRACTING, proved" in checked.output


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("multiple = 1.0", "`design`: `V` has trace 2"),
        ("multiple = -1.0\nV = [[-1.0, 0.0], [0.0, -1.0]]", "`design.V` are both given"),
        ("rate = 0.0", "`design.rate` is 0.0; expected a number greater than 0"),
        ("complement = [[1.0], [0.0]]", "`design`: `complement` must have shape (2, 0)"),
        ("rate = 9.0\nbounds = {norms = {A = 1.0}}", "rate 9 is beyond the bounds"),
        ("[near]\nA = [[1.0]]", "`near`: the parameters disagree about the dimension"),
        ("[design.bounds]\ntrace = 3.0", "unknown key `design.bounds.trace`"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(more, message, tmp_path):
    done = ran(FILE + more, tmp_path)
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_code_of_a_report_designs_again(capsys, tmp_path):
    from gtcontrol.reporting.views import view

    for name, case in CASES.items():
        made = case()
        made.save(tmp_path / name)
        names = {}
        exec(view(made).code.replace("FOLDER", str(tmp_path / name)), names)
        again = names["made"]
        for letter in "AVBb":
            here, there = getattr(again.parameters, letter), getattr(made.parameters, letter)
            assert np.allclose(here, there, rtol=1e-6, atol=1e-9)
    assert capsys.readouterr().out.count("SUCCESS") == len(CASES)


def test_success_without_proof_says_what_it_rests_on():
    made = gt.design(TARGET, checks=1)
    numerical = replace(made, claims=tuple(c.settled(proved=False) for c in made.claims))
    assert "SUCCESS: proved; simulations confirm it." in made.summary()
    assert "SUCCESS: simulations confirm it, but it is not proved." in numerical.summary()
    assert "not simulated" in replace(made, confirmation=None).summary()
    assert made.explain().startswith("proved CONVERGES, by: V = v I")


def test_the_summary_says_what_is_guaranteed():
    text = gt.design(TARGET, V=V, checks=1).summary()
    words = " ".join(text.split())
    for part in ("Proved:", "region of attraction", "1 random start", "rate of the mean 0.905663"):
        assert part in words
    assert max(len(line) for line in text.splitlines()) <= 100


def test_pictures_are_drawn_for_every_dimension():
    for target in (gt.Gaussian([1.0], [[0.5]]), FLAT, gt.Gaussian([1.0, 2.0], np.zeros((2, 0)))):
        figures = gt.design(target, checks=2).plot()
        assert set(figures) == {"path", "distance"}
    assert gt.design(TARGET, checks=0).plot() == {}


def test_every_error_is_one_of_the_package():
    for wishes in ({"V": [[0.0]]}, {"V": "x"}, {"complement": "x"}, {"seed": -1}, {"rate": np.inf}):
        with pytest.raises(GtcontrolError):
            gt.design(gt.Gaussian([1.0], [[1.0]]), **wishes)

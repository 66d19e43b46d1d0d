"""Constructive controllers: each carries start to target exactly, and each closed form holds."""

from itertools import combinations

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.linalg import expm, logm, sqrtm

import gtcontrol as gt
from gtcontrol.errors import InvalidMethod, RankMismatch, Unreachable
from gtcontrol.field import generator, rates
from gtcontrol.gaussian import squared_wasserstein
from gtcontrol.problem.definitions import SteeringProblem
from gtcontrol.steering.exact import linear_maps
from gtcontrol.steering.exact.attention import _inflow
from gtcontrol.steering.exact.construct import METHODS, construct
from gtcontrol.steering.exact.factorise import factorise
from gtcontrol.steering.exact.transport import TransportPath

from .strategies import factor, generators, orthogonal

SUBSETS = ["".join(s) for n in range(1, 5) for s in combinations("AVBb", n)]
SHAPES = [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 2), (4, 2), (4, 4)]
SPREAD = np.log(1e4) / 4  # condition number of the covariance up to 1e4


def steer(start, target, method, controls="AVBb", horizon=1.0):
    problem = SteeringProblem(start, target, horizon, controls, method=method)
    return construct(problem)


def miss(start, schedule, target):
    """Relative miss of a replay by the simulator."""
    path = gt.simulate(start, schedule)
    assert path.status is gt.Status.SUCCESS
    final, S = path.final, target.covariance
    size = max(np.linalg.norm(target.mean), np.sqrt(target.trace))
    mean = np.linalg.norm(final.mean - target.mean) / (size or 1.0)
    return max(mean, np.linalg.norm(final.covariance - S) / (np.linalg.norm(S) or 1.0))


def pair(rng, d, r, means, ranges="any"):
    """Start and target; `ranges` is "any", "equal" or "orthogonal"."""
    L0, L1 = factor(rng, d, r, SPREAD), factor(rng, d, r, SPREAD)
    frame = orthogonal(rng, d)
    if ranges == "equal":
        L0, L1 = (frame[:, :r] @ factor(rng, r, r, SPREAD) for _ in range(2))
    if ranges == "orthogonal":
        L0 = frame[:, :r] @ factor(rng, r, r, SPREAD)
        L1 = frame[:, r : 2 * r] @ factor(rng, r, r, SPREAD)
    m0, m1 = (np.zeros(d) if zero == "0" else rng.standard_normal(d) for zero in means)
    return gt.Gaussian(m0, L0), gt.Gaussian(m1, L1)


# -- every controller arrives -------------------------------------------------------------------


@pytest.mark.parametrize("means", ["00", "0m", "m0", "mm"])
@pytest.mark.parametrize(("d", "r"), SHAPES)
@pytest.mark.parametrize(
    "method", ["constant-affine", "two-piece-affine", "transport-geodesic", "attention-only"]
)
def test_arrives_between_any_ranges(method, d, r, means):
    start, target = pair(np.random.default_rng([d, r]), d, r, means)
    controls = "VBb" if method == "attention-only" else "Ab"
    for horizon in (1.0, 0.2):
        schedule = steer(start, target, method, controls, horizon)
        assert schedule.horizon == horizon
        assert miss(start, schedule, target) <= 1e-9


@pytest.mark.parametrize(("d", "r"), [(2, 1), (4, 2), (5, 2)])
@pytest.mark.parametrize(
    ("method", "controls"),
    [
        ("two-piece-affine", "Ab"),
        ("transport-geodesic", "Ab"),
        ("attention-only", "VBb"),
        ("zero-bias", "AV"),
        ("zero-bias", "VB"),
        ("zero-bias", "A"),
    ],
)
def test_arrives_between_orthogonal_ranges(method, controls, d, r):
    start, target = pair(np.random.default_rng([d, r]), d, r, "mm", "orthogonal")
    if controls == "A" and d == 2 * r:  # off the range at both ends: generic there
        assert gt.reachable(start, target, "A")
    assert miss(start, steer(start, target, method, controls), target) <= 1e-9


@pytest.mark.parametrize("means", ["00", "0m", "m0", "mm"])
@pytest.mark.parametrize(("d", "r"), SHAPES)
def test_constant_attention_arrives_between_equal_ranges(d, r, means):
    start, target = pair(np.random.default_rng([d, r]), d, r, means, "equal")
    for horizon in (1.0, 0.2, 3.0):
        schedule = steer(start, target, "constant-attention", "VBb", horizon)
        np.testing.assert_allclose(schedule.inner(0.0).V, np.eye(schedule.inner(0.0).dim))
        assert miss(start, schedule, target) <= 1e-9


@pytest.mark.parametrize("means", ["00", "mm"])
@pytest.mark.parametrize("controls", ["AV", "VB", "AVB", "AVBb"])
@pytest.mark.parametrize(("d", "r"), SHAPES)
def test_zero_bias_arrives(d, r, controls, means):
    start, target = pair(np.random.default_rng([d, r]), d, r, means)
    if d == 1:
        target = gt.Gaussian(np.abs(target.mean) * np.sign(start.mean), target.factor)
    assert miss(start, steer(start, target, "zero-bias", controls), target) <= 1e-9


@given(
    rng=generators(),
    shape=st.sampled_from([s for s in SHAPES if s != (2, 0)]),
    inside=st.booleans(),
)
def test_one_matrix_arrives(rng, shape, inside):
    """A alone: the target is where some matrix of positive determinant takes the start."""
    d, r = shape
    L0 = factor(rng, d, r)
    start = gt.Gaussian(L0 @ rng.standard_normal(r) if inside else rng.standard_normal(d), L0)
    Phi = expm(rng.standard_normal((d, d))) @ expm(rng.standard_normal((d, d)))
    turned = Phi @ L0 @ (orthogonal(rng, r) if r else np.zeros((0, 0)))
    target = gt.Gaussian(Phi @ start.mean, turned)
    assert miss(start, steer(start, target, "zero-bias", "A"), target) <= 1e-9


@pytest.mark.parametrize("controls", ["V", "A", "AVB"])
@pytest.mark.parametrize("d", [2, 3])
def test_opposite_means_turn(d, controls):
    mean = np.arange(1.0, d + 1)
    for L in (np.zeros((d, 0)), mean[:, None], np.eye(d)):
        start, target = gt.Gaussian(mean, L), gt.Gaussian(-mean, L)
        assert miss(start, steer(start, target, "zero-bias", controls), target) <= 1e-10


@pytest.mark.parametrize("controls", SUBSETS)
@given(rng=generators(), same=st.booleans(), means=st.sampled_from(["00", "mm", "same"]))
def test_every_method_offered_arrives_with_the_enabled_controls_only(controls, rng, same, means):
    d = int(rng.integers(1, 4))
    start, target = pair(rng, d, int(rng.integers(0, d + 1)), means.replace("same", "mm"))
    if same:
        target = gt.Gaussian(target.mean, start.factor)
    if means == "same":
        target = gt.Gaussian(start.mean, target.factor)
    answer = gt.reachable(start, target, controls)
    assert bool(answer.methods) == answer.reachable
    for method in set(answer.methods) - {"prescribed-path"}:
        schedule = steer(start, target, method, controls)
        assert miss(start, schedule, target) <= 1e-8
        for t in (0.0, 0.4, 1.0):
            for letter in set("AVBb") - set(controls):
                assert not np.any(getattr(schedule(t), letter)), (method, letter)


@pytest.mark.parametrize("scale", [1e-75, 1e-4, 1e4, 1e75])
def test_plans_do_not_depend_on_the_unit_of_length(scale):
    rng = np.random.default_rng(3)
    start, target = pair(rng, 3, 2, "mm")
    scaled = [gt.Gaussian(scale * g.mean, scale * g.factor) for g in (start, target)]
    for method in ("constant-affine", "two-piece-affine", "transport-geodesic", "zero-bias"):
        plain, other = steer(start, target, method)(0.3), steer(*scaled, method)(0.3)
        np.testing.assert_allclose(other.A, plain.A, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(other.V, plain.V, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(other.b, scale * plain.b, rtol=1e-9, atol=1e-11 * scale)
    # The split of M into V and B depends on the unit, the motion does not.
    assert miss(scaled[0], steer(*scaled, "attention-only"), scaled[1]) <= 1e-9


# -- transport geodesic ---------------------------------------------------------------------------


def kinetic_energy(start, schedule, nodes=40):
    """∫ tr(M S Mᵀ) + |m'|² dt along a replay, from the parameters alone."""
    path = gt.simulate(start, schedule)
    points, weights = np.polynomial.legendre.leggauss(nodes)
    total = 0.0
    for piece in schedule.pieces():
        half = 0.5 * (piece.end - piece.start)
        for x, w in zip(points, weights, strict=True):
            t = piece.start + half * (1 + x)
            p, law = piece.law(t), path.at(t)
            mean_rate, factor_rate = rates(law.mean, law.factor, p.A, p.heads, p.b)
            total += half * w * (np.sum(mean_rate**2) + np.sum(factor_rate**2))
    return total


@pytest.mark.parametrize("method", ["transport-geodesic", "attention-only"])
@pytest.mark.parametrize(("d", "r"), [(1, 1), (2, 0), (3, 3), (4, 2)])
def test_geodesic_has_the_least_kinetic_energy(method, d, r):
    rng = np.random.default_rng([d, r])
    start = gt.Gaussian(rng.standard_normal(d), factor(rng, d, r))
    target = gt.Gaussian(rng.standard_normal(d), factor(rng, d, r))
    bound = squared_wasserstein(start, target) / 2.0
    path = TransportPath.between(start, target, 2.0)
    assert path.kinetic_energy == pytest.approx(bound, rel=1e-12)
    found = kinetic_energy(start, steer(start, target, method, "AVBb", 2.0))
    assert found == pytest.approx(bound, rel=1e-9)
    other = "two-piece-affine" if r else "constant-affine"
    assert kinetic_energy(start, steer(start, target, other, "AVBb", 2.0)) >= bound * (1 - 1e-9)


@given(
    rng=generators(),
    shape=st.sampled_from([(1, 1), (2, 1), (3, 2), (4, 2), (4, 4)]),
    kind=st.sampled_from(["any", "orthogonal", "opposite"]),
    exponent=st.floats(-2, 2),
)
def test_the_geodesic_never_loses_rank(rng, shape, kind, exponent):
    """σ_min(L_t)² >= ab/(a + b), a and b the least positive eigenvalues of the covariances."""
    d, r = shape
    start, target = pair(rng, d, r, "00", kind if 2 * r <= d and kind != "opposite" else "any")
    if kind == "opposite":
        target = gt.Gaussian(target.mean, -start.factor)
    target = gt.Gaussian(target.mean, 10.0**exponent * target.factor)
    a, b = start.eigenvalues[-1], target.eigenvalues[-1]
    path = TransportPath.between(start, target, 3.0)
    for t in np.append(np.linspace(0, 3, 41), 3 * a / (a + b)):
        smallest = np.linalg.svd(path.factor(t), compute_uv=False)[-1]
        assert smallest**2 >= a * b / (a + b) * (1 - 1e-9)


def test_transport_path_is_straight_and_joins_its_ends():
    start, target = pair(np.random.default_rng(1), 4, 2, "mm")
    path = TransportPath.between(start, target, 2.0)
    for t, law in ((0.0, start), (2.0, target)):
        here = path.factor(t)
        np.testing.assert_allclose(here @ here.T, law.covariance, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(path.mean(t), law.mean, rtol=1e-12)
    halfway = 0.5 * (path.factor(0.0) + path.factor(2.0))
    np.testing.assert_allclose(path.factor(1.0), halfway, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(path.factor_rate * 2.0, path.L1 - path.L0, atol=1e-12)
    np.testing.assert_allclose(path.mean_rate * 2.0, path.m1 - path.m0, atol=1e-12)
    with pytest.raises(RankMismatch, match="rank 2, `target` has rank 1"):
        TransportPath.between(start, target.truncate(1), 1.0)


# -- constant affine ------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 4])
def test_constant_affine_is_the_published_formula(d):
    """A = log(T)/horizon, T = S₀^{-1/2}(S₀^{1/2}S₁S₀^{1/2})^{1/2}S₀^{-1/2}, and b."""
    rng = np.random.default_rng(d)
    start = gt.Gaussian(rng.standard_normal(d), factor(rng, d, d))
    target = gt.Gaussian(rng.standard_normal(d), factor(rng, d, d))
    root = np.real(sqrtm(start.covariance))
    inverse = np.linalg.inv(root)
    T = inverse @ np.real(sqrtm(root @ target.covariance @ root)) @ inverse
    found = steer(start, target, "constant-affine", "Ab", 1.5)
    assert found.piecewise_constant
    p = found(0.0)
    np.testing.assert_allclose(p.A, np.real(logm(T)) / 1.5, atol=1e-9)
    block = np.block([[p.A, np.eye(d)], [np.zeros((d, 2 * d))]])
    integral = expm(1.5 * block)[:d, d:]
    np.testing.assert_allclose(
        integral @ p.b, target.mean - expm(1.5 * p.A) @ start.mean, atol=1e-9
    )


def test_constant_affine_below_full_rank_is_the_published_formula():
    """T = Y(YᵀL₀)⁻¹Yᵀ + I - Π₀ with Y = L₁Q, Q from the polar factor of L₀ᵀL₁."""
    rng = np.random.default_rng(8)
    L0, L1 = factor(rng, 4, 2), factor(rng, 4, 2)
    U, _, Wt = np.linalg.svd(L0.T @ L1)
    Y = L1 @ (Wt.T @ U.T)
    T = Y @ np.linalg.inv(Y.T @ L0) @ Y.T + np.eye(4) - L0 @ np.linalg.pinv(L0)
    start, target = gt.Gaussian(np.zeros(4), L0), gt.Gaussian(np.zeros(4), L1)
    schedule = steer(start, target, "constant-affine", "A")
    np.testing.assert_allclose(schedule(0.0).A, np.real(logm(T)), atol=1e-10)


def test_commuting_covariances_need_half_the_logarithm():
    frame = orthogonal(np.random.default_rng(0), 3)
    s0, s1 = np.array([1.0, 4.0, 0.5]), np.array([9.0, 1.0, 0.25])
    start = gt.Gaussian(np.zeros(3), frame * np.sqrt(s0))
    target = gt.Gaussian(np.zeros(3), frame * np.sqrt(s1))
    found = steer(start, target, "constant-affine", "A", 2.0)(0.0).A
    np.testing.assert_allclose(found, (frame * np.log(s1 / s0)) @ frame.T / 4.0, atol=1e-13)


def test_two_pieces_rotate_and_then_stretch():
    start, target = pair(np.random.default_rng(2), 4, 2, "mm", "orthogonal")
    schedule = steer(start, target, "two-piece-affine")
    assert schedule.piecewise_constant
    first, second = (schedule(t).A for t in schedule.times[:2])
    np.testing.assert_allclose(first, -first.T, atol=1e-13)
    np.testing.assert_allclose(second, second.T, atol=1e-12)
    # All principal angles are 90°.
    np.testing.assert_allclose(np.linalg.svd(first)[1], np.pi, atol=1e-12)
    halfway = gt.simulate(start, schedule).at(0.5)
    inside = target.range_basis @ target.range_basis.T
    np.testing.assert_allclose(inside @ halfway.factor, halfway.factor, atol=1e-10)
    np.testing.assert_allclose(halfway.eigenvalues, start.eigenvalues, rtol=1e-10)


# -- attention ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "r"), [(1, 1), (3, 3), (4, 2)])
def test_precision_is_linear_in_time_under_constant_attention(d, r):
    rng = np.random.default_rng([d, r])
    frame = orthogonal(rng, d)[:, :r]
    start, target = (
        gt.Gaussian(rng.standard_normal(d), frame @ factor(rng, r, r)) for _ in range(2)
    )
    path = gt.simulate(start, steer(start, target, "constant-attention", "VBb", 2.0))
    first, last = (np.linalg.pinv(g.covariance) for g in (start, target))
    B = path.problem.schedule(0.0).B
    np.testing.assert_allclose(B, (first - last) / 4.0, rtol=1e-9, atol=1e-10)
    for t in np.linspace(0, 2, 9):
        here = frame @ np.linalg.inv(frame.T @ path.at(t).covariance @ frame) @ frame.T
        np.testing.assert_allclose(here, first + t / 2 * (last - first), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("horizon", [1e-3, 1.0, 12.0])
@pytest.mark.parametrize("g", [1e-4, 0.3, 1 - 1e-9, 1.0, 1 + 1e-9, 3.0, 1e4])
def test_inflow_against_quadrature_in_thirty_digits(g, horizon):
    """∫₀ᵀ e^{-s} √(1 - 2βs) ds with 1 - 2βT = g⁻²."""
    with mpmath.workdps(30):
        T = mpmath.mpf(horizon)
        slope = (1 - mpmath.mpf(g) ** -2) / T
        # The root is nearly singular just outside one of the ends.
        near = [T * mpmath.mpf(10) ** -k for k in range(9, 0, -1)]
        points = [0, *near, *(T - x for x in reversed(near)), T]
        wanted = mpmath.quad(lambda s: mpmath.exp(-s) * mpmath.sqrt(1 - slope * s), points)
    assert _inflow(g, horizon) == pytest.approx(float(wanted), rel=1e-12)


def test_attention_acts_as_the_generator_of_the_geodesic():
    start, target = pair(np.random.default_rng(4), 4, 2, "mm")
    attention = steer(start, target, "attention-only", "VBb")
    plain = steer(start, target, "transport-geodesic", "Ab")
    path = TransportPath.between(start, target, 1.0)
    for t in (0.0, 0.3, 1.0):
        L = path.factor(t)
        p, q = attention(t), plain(t)
        assert not np.any(p.A)
        sizes = [np.linalg.norm(x) for x in (q.A, np.linalg.pinv(L @ L.T))]
        kappa = max(1.0, np.sqrt(sizes[0] / sizes[1]))
        np.testing.assert_allclose(np.linalg.norm(p.V), sizes[0] / kappa, rtol=1e-8)
        np.testing.assert_allclose(np.linalg.norm(p.B), sizes[1] * kappa, rtol=1e-8)
        M = generator(L @ L.T, p.A, p.heads)
        np.testing.assert_allclose(M, q.A, rtol=1e-8, atol=1e-8 * np.linalg.norm(q.A))
        np.testing.assert_allclose(q.A @ L, path.L1 - path.L0, rtol=1e-8, atol=1e-8)


def test_attention_without_bias_holds_the_mean():
    """V = -M and B = -S⁺ move the covariance by M and leave every mean where it is."""
    rng = np.random.default_rng(6)
    mean = rng.standard_normal(3)
    start, target = gt.Gaussian(mean, factor(rng, 3, 2)), gt.Gaussian(mean, factor(rng, 3, 2))
    schedule = steer(start, target, "attention-only", "VB")
    path = gt.simulate(start, schedule)
    np.testing.assert_allclose(path.means, np.tile(mean, (path.times.size, 1)), atol=1e-9)
    assert miss(start, schedule, target) <= 1e-9
    assert not np.any(schedule(0.5).b)


# -- factorisation --------------------------------------------------------------------------------


@given(rng=generators(), r=st.integers(0, 3), controls=st.sampled_from(["Ab", "VBb", "AVBb", "AV"]))
def test_factorised_parameters_give_the_rates(rng, r, controls):
    mean, L = rng.standard_normal(3), factor(rng, 3, r)
    mean_rate, factor_rate = rng.standard_normal(3), rng.standard_normal((3, r))
    p = factorise(mean, L, mean_rate, factor_rate, controls)
    found = rates(mean, L, p.A, p.heads, p.b)
    np.testing.assert_allclose(found[0], mean_rate, atol=1e-11)
    np.testing.assert_allclose(found[1], factor_rate, atol=1e-11)
    assert not any(np.any(getattr(p, c)) for c in set("AVBb") - set(controls))


def test_factorisation_of_a_law_that_stands_still():
    L = np.eye(3, 2)
    p = factorise(np.ones(3), L, np.zeros(3), np.zeros((3, 2)), "VB")
    assert not any(np.any(x) for x in (p.A, p.V, p.B, p.b))
    p = factorise(np.ones(3), L, np.arange(3.0), np.zeros((3, 2)), "VBb")
    np.testing.assert_array_equal(p.b, np.arange(3.0))
    assert not any(np.any(x) for x in (p.A, p.V, p.B))


def test_factorisation_refuses_what_the_controls_cannot_do():
    L, still = np.eye(2), np.zeros(2)
    with pytest.raises(InvalidMethod, match="cannot move the covariance"):
        factorise(still, L, still, L, "Vb")
    with pytest.raises(InvalidMethod, match="cannot move the mean along this path"):
        factorise(np.ones(2), L, np.array([1.0, 2.0]), L, "VB")
    with pytest.raises(InvalidMethod, match="cannot move the mean along this path"):
        factorise(still, L, np.ones(2), L, "AVB")


# -- linear maps ----------------------------------------------------------------------------------


@given(rng=generators(), n=st.integers(1, 6))
def test_logarithm_of_a_rotation(rng, n):
    R = orthogonal(rng, n)
    if np.linalg.det(R) < 0:
        R[0] *= -1
    G = linear_maps.log_rotation(R)
    np.testing.assert_allclose(G, -G.T, atol=1e-13)
    np.testing.assert_allclose(expm(G), R, atol=1e-13)


@pytest.mark.parametrize("flips", [0, 2, 4])
def test_logarithm_of_reflections_in_pairs(flips):
    frame = orthogonal(np.random.default_rng(flips), 5)
    R = (frame * np.where(np.arange(5) < flips, -1.0, 1.0)) @ frame.T
    G = linear_maps.log_rotation(R)
    np.testing.assert_allclose(G, -G.T, atol=1e-13)
    np.testing.assert_allclose(expm(G), R, atol=1e-12)


@given(rng=generators(), s=st.integers(1, 4))
def test_carry_maps_column_by_column(rng, s):
    first, last = factor(rng, 4, s), factor(rng, 4, s)
    if s == 4 and np.linalg.det(first) * np.linalg.det(last) < 0:
        last[:, 0] *= -1
    moved = first
    for G in linear_maps.carry(first, last):
        moved = expm(G) @ moved
    np.testing.assert_allclose(moved, last, atol=1e-10)


@given(rng=generators(), d=st.integers(1, 4))
def test_spiral_joins_its_ends(rng, d):
    first, last = rng.standard_normal(d), np.exp(rng.uniform(-3, 3)) * rng.standard_normal(d)
    if d == 1:
        last = np.abs(last) * np.sign(first)
    np.testing.assert_allclose(expm(linear_maps.spiral(first, last)) @ first, last, rtol=1e-10)
    if d > 1:
        back = expm(linear_maps.spiral(first, -2 * first)) @ first
        np.testing.assert_allclose(back, -2 * first, rtol=1e-10)


# -- refusals -------------------------------------------------------------------------------------


def refused(start, target, method, controls):
    """Message of a refusal; each method that it advises must arrive."""
    with pytest.raises(InvalidMethod) as caught:
        steer(start, target, method, controls)
    text = str(caught.value)
    assert "\n" not in text
    advice = [name for name in METHODS if f"'{name}'" in text.split(" Use ")[1]]
    assert advice
    for name in advice:
        assert miss(start, steer(start, target, name, controls), target) <= 1e-8
    return text


def test_refusals_name_the_broken_condition_and_a_method_that_applies():
    rng = np.random.default_rng(9)
    start, target = pair(rng, 4, 2, "mm", "orthogonal")
    assert "principal angle of 90°" in refused(start, target, "constant-affine", "Ab")
    assert "range of the covariance stays the same" in refused(
        start, target, "constant-attention", "AVBb"
    )
    for method in ("constant-affine", "two-piece-affine", "transport-geodesic"):
        assert "by A, which is not enabled" in refused(start, target, method, "VBb")
    assert "by V and B, which are not both enabled" in refused(
        start, target, "attention-only", "AVb"
    )
    assert "V and B are not both enabled" in refused(start, target, "constant-attention", "Ab")
    start, target = pair(rng, 3, 3, "mm")
    for method in ("constant-affine", "two-piece-affine", "constant-attention"):
        assert "the mean needs a bias b" in refused(start, target, method, "AVB")
    assert "without a bias" in refused(start, target, "attention-only", "VB")
    away = gt.Gaussian(-start.mean, target.factor)
    assert "through zero" in refused(start, away, "transport-geodesic", "AV")
    zero = gt.Gaussian(np.zeros(3), target.factor)
    assert "never becomes zero" in refused(start, zero, "zero-bias", "AVBb")
    assert "√(mᵀS⁺m) is conserved" in refused(start, target, "zero-bias", "Ab")
    assert "errors of the mean grow by e^T" in _long_refusal(start, target)


def _long_refusal(start, target):
    with pytest.raises(InvalidMethod) as caught:
        steer(start, target, "constant-attention", "AVBb", horizon=30.0)
    return str(caught.value)


def test_unknown_methods_paths_and_targets_are_refused():
    law = gt.Gaussian([0.0, 0.0], np.eye(2))
    with pytest.raises(InvalidMethod, match="'magic' is no constructive method"):
        steer(law, law, "magic")
    with pytest.raises(InvalidMethod, match="none was given; pass a `GaussianPath`"):
        steer(law, law, "prescribed-path")
    path = gt.GaussianPath(lambda t: np.zeros(2), lambda t: np.eye(2))
    with pytest.raises(InvalidMethod, match="followed by method 'prescribed-path'"):
        construct(SteeringProblem(law, law, method="constant-affine"), path)
    with pytest.raises(RankMismatch):
        steer(law, law.truncate(1), "constant-affine")
    with pytest.raises(Unreachable):
        steer(law, gt.Gaussian([1.0, 0.0], np.eye(2)), "zero-bias", "AVB")


@pytest.mark.parametrize("exponent", range(1, 9))
def test_nearly_right_angles_are_exact_or_refused(exponent):
    """As the principal angle goes to 90° the constant map stretches without bound."""
    angle = np.pi / 2 - 10.0**-exponent
    start = gt.Gaussian([0.0, 1.0], [[1.0], [0.0]])
    target = gt.Gaussian([1.0, 0.0], [[np.cos(angle)], [np.sin(angle)]])
    if exponent > 3:
        assert "angle of 90°, or too near" in refused(start, target, "constant-affine", "Ab")
    else:
        assert miss(start, steer(start, target, "constant-affine"), target) <= 1e-9


# -- high dimension -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method", ["constant-affine", "two-piece-affine", "transport-geodesic", "attention-only"]
)
def test_embeddings_are_exact(method):
    rng = np.random.default_rng(0)
    start, target = (
        gt.Gaussian(rng.standard_normal(768), rng.standard_normal((768, 64))) for _ in range(2)
    )
    schedule = steer(start, target, method)
    assert schedule.basis.shape == (768, 130)
    assert miss(start, schedule, target) <= 1e-10


def test_the_span_does_not_matter():
    """A problem in a subspace has the plan of the subspace."""
    rng = np.random.default_rng(7)
    start, target = pair(rng, 3, 1, "mm")
    embedding = orthogonal(rng, 9)[:, :3]
    lifted = [gt.Gaussian(embedding @ g.mean, embedding @ g.factor) for g in (start, target)]
    for method in set(METHODS) - {"prescribed-path", "constant-attention"}:
        inner, outer = steer(start, target, method)(0.2), steer(*lifted, method)(0.2)
        for letter in "AVB":
            wanted = embedding @ getattr(inner, letter) @ embedding.T
            np.testing.assert_allclose(getattr(outer, letter), wanted, atol=1e-9)
        np.testing.assert_allclose(outer.b, embedding @ inner.b, atol=1e-9)

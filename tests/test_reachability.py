"""Reachability: theorems against simulation, and nearest laws against brute force."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.linalg import expm
from scipy.optimize import minimize

import gtcontrol as gt
from gtcontrol.errors import InvalidControls, InvalidShape, RankMismatch, Unreachable
from gtcontrol.steering.exact.nearest import (
    coupled_factor,
    frame,
    inflate,
    off_range,
    project_on_ellipsoid,
)
from gtcontrol.steering.exact.reachability import require_reachable

from .strategies import factor, gaussians, generators

SUBSETS = ["".join(s) for n in range(1, 5) for s in combinations("AVBb", n)]
MOVE_COVARIANCE = {c for c in SUBSETS if "A" in c or ("V" in c and "B" in c)}
FREE_MEAN = {c for c in SUBSETS if "b" in c}
LINEAR_MEAN = {c for c in SUBSETS if "V" in c and "b" not in c}
COUPLED = {"A", "AB"}
EVERYTHING = set(SUBSETS)


def squared_distance(m, L, m1, L1):
    """W₂² by the nuclear norm, written apart from the package."""
    overlap = np.linalg.svd(L.T @ L1, compute_uv=False).sum() if L.size and L1.size else 0.0
    return np.sum((m - m1) ** 2) + np.sum(L**2) + np.sum(L1**2) - 2 * overlap


# -- truth table -----------------------------------------------------------------------------

E1, E2, ZERO = np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.zeros(2)
DISC, OVAL = np.eye(2), np.diag([2.0, 0.5])
LINE, TILTED = np.array([[1.0], [0.0]]), np.array([[1.0], [1.0]])
NONE = np.zeros((2, 0))

# (start mean, start factor, target mean, target factor, the subsets that reach it)
PLANE = {
    "the same law": (E1, OVAL, E1, OVAL, EVERYTHING),
    "the same law, another factor": (E1, OVAL, E1, OVAL @ [[0.6, -0.8], [0.8, 0.6]], EVERYTHING),
    "another covariance, zero mean": (ZERO, DISC, ZERO, OVAL, MOVE_COVARIANCE),
    "another mean": (E1, DISC, 2 * E2, DISC, FREE_MEAN | LINEAR_MEAN),
    "another mean, as far in Mahalanobis norm": (
        E1,
        DISC,
        -E2,
        DISC,
        FREE_MEAN | LINEAR_MEAN | COUPLED,
    ),
    "mean and covariance, as far in Mahalanobis norm": (E1, DISC, 2 * E1, OVAL, MOVE_COVARIANCE),
    "mean and covariance": (E1, DISC, 3 * E1, OVAL, MOVE_COVARIANCE - COUPLED),
    "a zero mean that moves": (ZERO, DISC, E1, DISC, FREE_MEAN),
    "a mean that vanishes": (E1, DISC, ZERO, OVAL, FREE_MEAN & MOVE_COVARIANCE),
    "the opposite mean": (E1, DISC, -E1, DISC, FREE_MEAN | LINEAR_MEAN | COUPLED),
    "rank one, mean off both ranges": (E2, LINE, E1, TILTED, MOVE_COVARIANCE),
    "rank one, mean into the range": (E2, LINE, E1, LINE, FREE_MEAN | LINEAR_MEAN),
    "rank one, mean out of the range": (E1, LINE, E2, LINE, FREE_MEAN | LINEAR_MEAN),
    "rank one, within the ranges, norm kept": (-E1, LINE, E1 + E2, TILTED, MOVE_COVARIANCE),
    "Dirac masses": (E1, NONE, 3 * E2, NONE, FREE_MEAN | LINEAR_MEAN | COUPLED),
    "Dirac masses, from zero": (ZERO, NONE, E2, NONE, FREE_MEAN),
    "another rank": (E1, LINE, E1, DISC, set()),
}
SCALARS = {
    "scaled by one positive number": (1.0, 2.0, 3.0, 6.0, MOVE_COVARIANCE),
    "scaled by two numbers": (1.0, 2.0, 3.0, 2.5, MOVE_COVARIANCE - COUPLED),
    "sign of the mean": (1.0, 2.0, -3.0, 6.0, FREE_MEAN & MOVE_COVARIANCE),
    "sign of the mean alone": (1.0, 2.0, -1.0, 2.0, FREE_MEAN),
    "sign of the factor means nothing": (1.0, 2.0, 1.0, -2.0, EVERYTHING),
    "Dirac masses of one sign": (1.0, None, 2.0, None, FREE_MEAN | LINEAR_MEAN | COUPLED),
    "Dirac masses of two signs": (1.0, None, -2.0, None, FREE_MEAN),
}


def scalar(mean, deviation):
    return gt.Gaussian([mean], np.zeros((1, 0)) if deviation is None else [[deviation]])


@pytest.mark.parametrize("controls", SUBSETS)
@pytest.mark.parametrize("case", PLANE)
def test_truth_table_in_the_plane(case, controls):
    m0, L0, m1, L1, wanted = PLANE[case]
    answer = gt.reachable(gt.Gaussian(m0, L0), gt.Gaussian(m1, L1), controls)
    assert bool(answer) == (controls in wanted), answer.reason
    assert bool(answer.methods) == bool(answer)


@pytest.mark.parametrize("controls", SUBSETS)
@pytest.mark.parametrize("case", SCALARS)
def test_truth_table_of_scalars(case, controls):
    m0, s0, m1, s1, wanted = SCALARS[case]
    answer = gt.reachable(scalar(m0, s0), scalar(m1, s1), controls)
    assert bool(answer) == (controls in wanted), answer.reason
    assert bool(answer.methods) == bool(answer)


# -- what the flow reaches is reachable --------------------------------------------------------


@pytest.mark.parametrize("controls", SUBSETS)
@given(start=gaussians(), rng=generators(), mean=st.sampled_from(["free", "zero", "range"]))
def test_where_the_flow_goes_is_reachable(controls, start, rng, mean):
    if mean != "free":
        inside = start.factor @ rng.standard_normal(start.rank)
        start = gt.Gaussian(inside if mean == "range" else 0 * inside, start.factor)
    d = start.dim
    sizes = {"A": (d, d), "V": (d, d), "B": (d, d), "b": (d,)}
    pieces = [
        gt.Parameters(**{c: 0.2 * rng.standard_normal(sizes[c]) for c in controls}, dim=d)
        for _ in range(2)
    ]
    path = gt.simulate(start, gt.Schedule([0.0, 0.3, 0.5], pieces))
    assert path.status is gt.Status.SUCCESS
    answer = gt.reachable(start, path.final, controls)
    assert answer, answer.reason


@given(data=st.data(), controls=st.sampled_from(SUBSETS))
def test_the_law_offered_instead_is_reachable(data, controls):
    start = data.draw(gaussians())
    target = data.draw(gaussians(dim=start.dim))
    answer = gt.reachable(start, target, controls)
    assert gt.reachable(start, answer.nearest, controls)
    assert answer.distance == pytest.approx(gt.wasserstein(target, answer.nearest), abs=1e-12)
    assert (answer.distance == 0) == answer.reachable


# -- nearest laws against brute force ----------------------------------------------------------


def least_distance(start, target, starts=5):
    """Least W₂ from the target to (Φ m₀, Φ L₀), Φ of positive determinant, by descent."""
    d, rng = start.dim, np.random.default_rng(0)

    def cost(x):
        first, second = x.reshape(2, d, d)
        if np.max(np.abs(x)) > 20:  # a line search that left the range of expm
            return 1e6
        Phi = expm(first) @ expm(second)
        return squared_distance(Phi @ start.mean, Phi @ start.factor, target.mean, target.factor)

    found = [
        minimize(cost, rng.standard_normal(2 * d * d), method="BFGS", options={"gtol": 1e-9}).fun
        for _ in range(starts)
    ]
    return np.sqrt(max(min(found), 0.0))


def least_coupled_distance(a0, target, starts=12):
    """The same over all factors L with mean L a₀ (the closure of the above for d > 1)."""
    rng = np.random.default_rng(0)
    shape = (target.dim, a0.size)

    def cost(x):
        L = x.reshape(shape)
        return squared_distance(L @ a0, L, target.mean, target.factor)

    found = [
        minimize(cost, 1.5 * rng.standard_normal(shape).ravel(), method="BFGS").fun
        for _ in range(starts)
    ]
    return np.sqrt(max(min(found), 0.0))


@pytest.mark.parametrize("length", [0.3, 3.0])
@pytest.mark.parametrize(
    ("d", "r", "rank"),
    [(2, 1, 1), (2, 2, 2), (3, 2, 2), (3, 3, 3), (3, 3, 1), (2, 1, 0), (3, 2, 1)]
    + [(2, 1, 2), (3, 1, 3), (3, 2, 3)],
)
def test_nearest_with_one_matrix_from_within_the_range(d, r, rank, length):
    rng = np.random.default_rng([d, r, rank])
    L0 = rng.standard_normal((d, r))
    a0 = length * rng.standard_normal(r)
    target = gt.Gaussian(rng.standard_normal(d), rng.standard_normal((d, rank)))
    answer = gt.reachable(gt.Gaussian(L0 @ a0, L0), target, "A")
    least = least_coupled_distance(a0, target)
    assert not answer
    if answer.attained or rank > r:
        assert answer.distance == pytest.approx(least, rel=1e-6, abs=1e-7)
    else:
        assert least - 1e-7 <= answer.distance <= least + 0.01
    assert answer.attained or rank != r


@pytest.mark.parametrize(("d", "r"), [(2, 2), (2, 1), (1, 1)])
def test_nearest_with_one_matrix_over_its_whole_group(d, r):
    """The same against Φ itself, so that the sign of its determinant counts."""
    rng = np.random.default_rng([d, r])
    L0 = rng.standard_normal((d, r))
    start = gt.Gaussian(L0 @ np.ones(r), L0)
    for _ in range(3):
        target = gt.Gaussian(rng.standard_normal(d), rng.standard_normal((d, r)))
        answer = gt.reachable(start, target, "AB")
        least = least_distance(start, target)
        if answer.attained:
            assert answer.distance == pytest.approx(least, rel=1e-6, abs=1e-6)
        else:
            assert least - 1e-6 <= answer.distance <= least + 0.01


def test_from_outside_the_range_the_infimum_is_zero_but_not_attained():
    start = gt.Gaussian([0.0, 0.0, 1.0], np.eye(3, 2))
    target = gt.Gaussian([1.0, 1.0, 0.0], 2 * np.eye(3, 2))
    answer = gt.reachable(start, target, "A")
    assert not answer.attained
    assert 0 < answer.distance < 0.01
    assert least_distance(start, target, starts=2) < 1e-3


def test_nearest_where_mean_and_covariance_are_apart():
    rng = np.random.default_rng(5)
    start = gt.Gaussian([1.0, 0.0, 0.0], rng.standard_normal((3, 2)))
    target = gt.Gaussian(np.zeros(3), rng.standard_normal((3, 3)))
    free = gt.reachable(start, target, "Ab")
    assert free.attained
    assert free.distance == pytest.approx(target.truncation_distance(2), rel=1e-12)
    stuck = gt.reachable(start, target, "Bb")
    fixed = gt.Gaussian(target.mean, start.factor)
    assert stuck.distance == pytest.approx(gt.wasserstein(fixed, target), rel=1e-12)
    without = gt.reachable(start, target, "VB")
    assert not without.attained
    assert without.distance == pytest.approx(target.truncation_distance(2), rel=1e-4)
    smaller = gt.reachable(target, start, "AVBb")
    assert not smaller.attained
    assert 0 < smaller.distance < 0.01


def test_a_scalar_that_cannot_change_sign():
    answer = gt.reachable(scalar(1.0, 1.0), scalar(-2.0, 0.5), "A")
    # All (φ, φ) with φ > 0; the foot of the perpendicular from (-2, 0.5) has φ < 0.
    assert not answer.attained
    assert answer.distance == pytest.approx(np.hypot(2.0, 0.5), rel=1e-2)
    answer = gt.reachable(scalar(1.0, 1.0), scalar(2.0, 0.5), "A")
    assert answer.attained
    assert answer.nearest.mean[0] == pytest.approx(1.25)
    assert answer.distance == pytest.approx(0.75 * np.sqrt(2))


# -- the pieces ---------------------------------------------------------------------------------


def on_sphere(k, solid, rng):
    u = rng.standard_normal((200_000, k))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    return u * rng.uniform(0, 1, (len(u), 1)) if solid else u


@pytest.mark.parametrize("solid", [False, True])
@pytest.mark.parametrize(
    ("axes", "point"),
    [
        ((3.0, 1.0), (1.0, 2.0)),
        ((3.0, 1.0), (0.5, 0.0)),  # hard case: inside, on the long axis
        ((3.0, 1.0), (9.0, 0.0)),
        ((2.0, 2.0), (0.0, 0.0)),  # every point is nearest
        ((3.0, 2.0, 1.0), (0.1, 0.2, 0.0)),  # hard case
        ((3.0, 2.0, 1.0), (0.1, 0.2, 1e-13)),  # almost
        ((3.0, 1.0, 1.0), (0.3, 0.1, 0.2)),
    ],
)
def test_projection_on_an_ellipsoid(axes, point, solid):
    rng = np.random.default_rng(2)
    turn = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    X = turn[:, : len(axes)] * axes
    p = turn[:, : len(axes)] @ point + 0.7 * turn[:, 3]
    u = project_on_ellipsoid(X, p, solid=solid)
    assert np.linalg.norm(u) <= 1 + 1e-12
    assert solid or np.linalg.norm(u) == pytest.approx(1, abs=1e-12)
    sampled = np.linalg.norm(p - on_sphere(len(axes), solid, rng) @ X.T, axis=1).min()
    assert np.linalg.norm(p - X @ u) <= sampled + 1e-12
    assert np.linalg.norm(p - X @ u) >= sampled - 0.02


@given(rng=generators(), r=st.integers(1, 4))
def test_frame_is_orthogonal_and_starts_with_the_vector(rng, r):
    v = rng.standard_normal(r)
    Q = frame(v)
    np.testing.assert_allclose(Q.T @ Q, np.eye(r), atol=1e-14)
    np.testing.assert_allclose(Q[:, 0], v / np.linalg.norm(v), atol=1e-14)


@given(rng=generators(), r=st.integers(0, 3))
def test_what_is_added_is_orthogonal_to_what_is_there(rng, r):
    L, avoid = factor(rng, 5, r), rng.standard_normal(5)
    wide = inflate(L, r + 1, 0.1, avoid)
    np.testing.assert_array_equal(wide[:, :r], L)
    new = wide[:, r]
    assert np.linalg.norm(new) == pytest.approx(0.1)
    np.testing.assert_allclose(new @ np.column_stack([L, avoid]), 0, atol=1e-13)
    np.testing.assert_allclose(off_range(L) @ L, 0, atol=1e-13)


def test_one_matrix_and_zero_mean_is_truncation():
    rng = np.random.default_rng(0)
    L1 = rng.standard_normal((4, 3))
    found, proved = coupled_factor(L1, np.zeros(4), np.zeros(2))
    target = gt.Gaussian(np.zeros(4), L1)
    assert proved
    np.testing.assert_allclose(found @ found.T, target.truncate(2).covariance, atol=1e-13)


# -- messages -----------------------------------------------------------------------------------


def test_rank_mismatch_names_ranks_remedy_and_distance():
    start = gt.Gaussian([0.0, 0.0], [[1.0], [0.0]])
    target = gt.Gaussian([0.0, 0.0], [[1.0, 0.0], [0.0, 0.5]])
    with pytest.raises(RankMismatch) as caught:
        require_reachable(start, target)
    text = str(caught.value)
    assert "rank 2 but `start` has rank 1" in text
    assert "`target.truncate(1)`, Wasserstein distance 0.5." in text
    assert "\n" not in text
    require_reachable(start, target.truncate(1))


@pytest.mark.parametrize(
    ("case", "controls", "text"),
    [
        ("a zero mean that moves", "VB", "a zero mean stays zero"),
        ("a mean that vanishes", "AV", "never becomes zero in finite time"),
        ("mean and covariance", "A", r"√\(mᵀS⁺m\) is conserved, but it is 1 at the start and 1.5"),
        ("another covariance, zero mean", "Vb", "cannot move the covariance"),
        ("another mean", "B", "cannot move the mean"),
        ("rank one, mean into the range", "A", "outside the range of the covariance stays"),
        ("rank one, mean out of the range", "AB", "in the range of the covariance stays in it"),
    ],
)
def test_refusals_name_the_broken_condition(case, controls, text):
    m0, L0, m1, L1, _ = PLANE[case]
    with pytest.raises(Unreachable, match=text) as caught:
        require_reachable(gt.Gaussian(m0, L0), gt.Gaussian(m1, L1), controls)
    assert "Wasserstein distance" in str(caught.value)


def test_bad_arguments():
    law = gt.Gaussian([0.0], [[1.0]])
    with pytest.raises(InvalidControls, match="unknown letter"):
        gt.reachable(law, law, "AX")
    with pytest.raises(InvalidControls, match="empty"):
        gt.reachable(law, law, "")
    with pytest.raises(InvalidShape, match="dimension 2 but `start` has dimension 1"):
        gt.reachable(law, gt.Gaussian([0.0, 0.0], np.eye(2)))
    with pytest.raises(InvalidShape, match="must be a Gaussian"):
        gt.reachable(law, [[1.0]])


@pytest.mark.parametrize("scale", [1e-75, 1e-5, 1e5, 1e75])
@pytest.mark.parametrize("controls", ["A", "AVBb", "VB"])
def test_the_answer_does_not_depend_on_the_unit_of_length(scale, controls):
    for case, (m0, L0, m1, L1, _) in PLANE.items():
        plain = gt.reachable(gt.Gaussian(m0, L0), gt.Gaussian(m1, L1), controls)
        laws = [gt.Gaussian(scale * m, scale * L) for m, L in ((m0, L0), (m1, L1))]
        scaled = gt.reachable(*laws, controls)
        assert scaled.reachable == plain.reachable, case
        assert scaled.methods == plain.methods, case
        assert scaled.distance == pytest.approx(scale * plain.distance, rel=1e-6), case

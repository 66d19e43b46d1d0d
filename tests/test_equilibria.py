"""Equilibria: reference cases to their digits, completeness, spectra, symmetries, odd input."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import root

import gtcontrol as gt
from gtcontrol.certification.equilibria.continuation import follow
from gtcontrol.certification.equilibria.newton import _factor_equation
from gtcontrol.certification.equilibria.planar import planar
from gtcontrol.certification.equilibria.quadratic import Quadratic, coordinates, symmetric
from gtcontrol.certification.equilibria.scalar_value import bernoulli
from gtcontrol.certification.equilibria.scaling import scaled

CASES = {
    "rank lost": {"V": [[1, 0.5], [0.5, 1]], "B": -np.eye(2), "A": [[10, -7.5], [5, -3]]},
    "bistable": {"V": [[5, -3], [-3, 2]], "B": np.diag([-7, -1]), "A": [[112, -19], [-70, 12]]},
    "cycle": {"V": [[1, 1], [1, 4]], "B": [[-3, 1], [1, -1]], "A": [[4, 10.5], [-76, 18]]},
    "nonsymmetric": {"A": np.diag([1, 0.5]), "V": [[2, 1], [0, 1]], "B": [[-1, -1], [1, -2]]},
}


def parameters(name: str) -> gt.Parameters:
    return gt.Parameters(**CASES[name])


def upper(e: gt.Equilibrium) -> np.ndarray:
    return e.covariance[np.triu_indices(e.dim)]


def bernoulli_parameters(A, K) -> gt.Parameters:
    A, K = np.asarray(A, float), np.asarray(K, float)
    return gt.Parameters(A=A, B=K / 2, V=np.eye(len(A)))


def random_parameters(rng: np.random.Generator, d: int, heads: int = 1) -> gt.Parameters:
    V = np.eye(d) + 0.5 * rng.standard_normal((heads, d, d))
    B = -np.eye(d) - 0.3 * rng.standard_normal((heads, d, d))
    return gt.Parameters(A=np.eye(d) + rng.standard_normal((d, d)), B=B, V=V)


def rate(p: gt.Parameters, S: np.ndarray) -> np.ndarray:
    """S' by the definition, written apart from the package."""
    made = p.A @ S + S @ p.A.T
    for V, B, _ in p.heads:
        made = made + V @ S @ B @ S + S @ B.T @ S @ V.T
    return made if p.noise is None else made + p.noise


def exact_spectrum(p: gt.Parameters, S: np.ndarray, digits: int = 40) -> np.ndarray:
    """Spectrum of the linearisation by differences of the quadratic field, with mpmath."""
    d = len(S)
    pairs = [(i, j) for i in range(d) for j in range(i, d)]
    with mp.workdps(digits):
        A, X = mp.matrix(p.A.tolist()), mp.matrix(S.tolist())
        heads = [(mp.matrix(V.tolist()), mp.matrix(B.tolist())) for V, B, _ in p.heads]

        def field(Y):
            half = A * Y
            for V, B in heads:
                half = half + V * Y * B * Y
            return half + half.T

        J = mp.zeros(len(pairs))
        for k, (i, j) in enumerate(pairs):
            E = mp.zeros(d)
            E[i, j] = E[j, i] = 1
            change = (field(X + E) - field(X - E)) / 2  # exact for a quadratic field
            for row, (a, b) in enumerate(pairs):
                J[row, k] = change[a, b]
        values = mp.eig(J, left=False, right=False)
        return np.array([complex(x) for x in values])


def same_spectrum(found, wanted, tolerance):
    wanted = list(wanted)
    for x in found:
        nearest = min(wanted, key=lambda y: abs(x - y))
        assert abs(x - nearest) <= tolerance * max(abs(y) for y in found)
        wanted.remove(nearest)
    assert not wanted


# -- reference cases -------------------------------------------------------------------------


def test_the_rank_is_lost_where_there_is_no_positive_definite_equilibrium():
    attractor, other, zero = gt.equilibria(parameters("rank lost"))
    assert (attractor.rank, other.rank, zero.rank) == (1, 1, 0)
    np.testing.assert_allclose(upper(attractor), [10, 0, 0], atol=1e-13)
    same_spectrum(attractor.spectrum, [-28.21537451386, -4.78462548614002, -6], 1e-13)
    np.testing.assert_allclose(attractor.transversal, [-3], rtol=1e-13)
    np.testing.assert_allclose(upper(other), np.array([64, 72, 81]) / 145, rtol=1e-13)
    assert attractor.attracts == "all covariances near it"
    assert other.attracts == zero.attracts == "nothing"


def test_two_attractors_of_different_rank():
    found = gt.equilibria(parameters("bistable"))
    wanted = {
        (2, True): (2.06639383655230318, -1.8823815834929252, 3.24952885841959204),
        (1, True): (1.98268267312062756, -2.11370702953671123, 2.25339004939248113),
        (2, False): (2, -2, 3),
        (1, False): (0.0173173268793724447, 0.113707029536711229, 0.746609950607518874),
        (0, False): (0, 0, 0),
    }
    spectra = {
        (2, True): (-236.419447722201, -11.4124760558907, -0.168076221908763),
        (1, True): (-236.09849880566, -2.08596725677379, -1.25928473377599),
        (2, False): (-234.933055901372, -8.21207536248088, 0.145131263852895),
    }
    # The sixth solution, (2.41918631099967536, ...), is indefinite.
    assert [(e.rank, e.stable) for e in found] == list(wanted)
    for e in found:
        key = e.rank, e.stable
        np.testing.assert_allclose(upper(e), wanted[key], rtol=1e-12, atol=1e-15)
        if key in spectra:
            same_spectrum(e.spectrum, spectra[key], 1e-12)


def test_the_indefinite_solution_is_found_and_rejected():
    p = parameters("bistable")
    field, units = scaled(Quadratic.of(p))
    points = [units[:, None] * S * units for S in planar(field)]
    sixth = np.array([[2.41918631099967536, -1.57368816835147454], [0, 0.779981537287986769]])
    sixth[1, 0] = sixth[0, 1]
    assert np.linalg.eigvalsh(sixth)[0] < 0
    assert min(np.linalg.norm(S - sixth) for S in points) < 1e-8
    assert np.linalg.norm(rate(p, sixth)) < 1e-11


def test_the_only_positive_definite_equilibrium_inside_the_limit_cycle_repels():
    inside, zero = gt.equilibria(parameters("cycle"))
    np.testing.assert_allclose(upper(inside), [1, -2, 6], rtol=1e-12)
    same_spectrum(
        inside.spectrum,
        [1.0854131118865 + 5.2341423689671j, 1.0854131118865 - 5.2341423689671j, -89.170826223773],
        1e-13,
    )
    assert inside.attracts == zero.attracts == "nothing"


def test_nonsymmetric_value_and_score():
    found = gt.equilibria(parameters("nonsymmetric"))
    best = found[0]
    wanted = (0.645663618243468197, -0.131330641101663186, 0.208672763513063605)
    np.testing.assert_allclose(upper(best), wanted, rtol=1e-13)
    pair = -1.18166728775858 + 0.0679318207649001j
    same_spectrum(best.spectrum, [-2.48037710511443, pair, pair.conjugate()], 1e-13)
    assert best.stable
    # tr V > 0: no stable mean at a positive definite equilibrium.
    assert not best.mean_stable
    assert best.mean_spectrum.sum().real == pytest.approx(3.0, rel=1e-12)


def test_bernoulli_equilibria_of_a_triangular_matrix():
    found = gt.equilibria(bernoulli_parameters([[1, 2], [0, 3]], -np.eye(2)))
    wanted = {
        "all covariances near it": (3.2, 2.4, 4.8),
        "rank-1 covariances near it": (3, 3, 3),
    }
    assert len(found) == 4
    for e in found:
        if e.attracts in wanted:
            np.testing.assert_allclose(upper(e), wanted.pop(e.attracts), rtol=1e-13)
    assert not wanted
    np.testing.assert_allclose(upper(found[2]), [2, 0, 0], atol=1e-13)


def test_bernoulli_equilibria_of_a_diagonal_matrix():
    found = gt.equilibria(bernoulli_parameters(np.diag([3, 1]), -np.eye(2)))
    assert [(e.rank, round(float(np.trace(e.covariance)), 12)) for e in found] == [
        (2, 8),
        (1, 6),
        (1, 2),
        (0, 0),
    ]
    leading = found[1]
    assert leading.attracts == "rank-1 covariances near it"
    assert leading.tangent.real.max() == pytest.approx(-2.0, rel=1e-12)  # min(6, 3 - 1)


def test_bernoulli_equilibria_of_order_three():
    K = -np.array([[1, 0, 0], [0, 1, 1], [0, 1, 2]])
    found = gt.equilibria(bernoulli_parameters([[1, 1, 0], [0, 2, 1], [0, 0, 3]], K))
    assert len(found) == 8  # one for each invariant subspace
    wanted = np.array([94, 62, -40, 166, -80, 160]) / 35
    np.testing.assert_allclose(upper(found[0]), wanted, rtol=1e-13)
    u = np.array([0.5, 1, 1])
    ones = [e for e in found if e.rank == 1 and e.attracts.startswith("rank-1")]
    assert len(ones) == 1
    np.testing.assert_allclose(ones[0].covariance, 8 / 7 * np.outer(u, u), rtol=1e-13)


def test_an_indefinite_lyapunov_solution_is_no_equilibrium():
    K = -np.array([[2, 1, 0], [1, 2, 0], [0, 0, 1]])
    found = gt.equilibria(bernoulli_parameters([[1, 2, 0], [0, 3, -1], [1, 0, 0.5]], K))
    assert max(e.rank for e in found) == 2
    wanted = [1.03939775334225877, 0.631126798045279267, 0.577911496003737302]
    wanted += [2.40627289509275198, -0.847126870207467082, 1.03079227844708131]
    np.testing.assert_allclose(upper(found[0]), wanted, rtol=1e-12)
    assert found[0].attracts == "all covariances near it"


def test_a_continuum_is_told_apart():
    found = gt.equilibria(bernoulli_parameters(np.diag([1, 0]), -np.diag([1, 0])))
    rank_two = [e for e in found if e.rank == 2]
    assert len(rank_two) == 1  # diag(2, c) for every c
    assert not rank_two[0].isolated
    assert rank_two[0].covariance[0, 0] == pytest.approx(2.0, rel=1e-10)
    assert rank_two[0].attracts == "undecided by linearisation"


def test_the_mean_follows_from_the_bias():
    eye = np.eye(2)
    unstable = gt.equilibria(gt.Parameters(A=eye, B=-eye / 2, V=eye))[0]
    np.testing.assert_allclose(unstable.covariance, 2 * eye, rtol=1e-13)
    np.testing.assert_allclose(unstable.mean_spectrum, [1, 1], rtol=1e-13)
    assert unstable.stable
    assert not unstable.mean_stable
    stable = gt.equilibria(gt.Parameters(A=eye, B=eye / 2, V=-eye, b=[3.0, -1.0]))[0]
    np.testing.assert_allclose(stable.mean_spectrum, [-1, -1], rtol=1e-13)
    assert stable.mean_stable
    np.testing.assert_allclose(stable.gaussian.mean, [3, -1], rtol=1e-13)  # b = -J m*


def test_the_mean_stands_still_with_biases_of_the_scores():
    rng = np.random.default_rng(5)
    base = random_parameters(rng, 3, heads=2)
    p = gt.Parameters(
        A=base.A, B=base.B, V=base.V, b=rng.standard_normal(3), beta=rng.standard_normal((2, 3))
    )
    for e in gt.equilibria(p):
        if e.gaussian is None:
            continue
        m, S = e.gaussian.mean, e.covariance
        drift = p.A @ m + p.b
        for V, B, beta in p.heads:
            drift = drift + V @ (m + S @ (B @ m + beta))
        assert np.linalg.norm(drift) <= 1e-10 * (1 + np.linalg.norm(m)) * (1 + np.linalg.norm(S))


def test_no_mean_where_its_jacobian_is_singular():
    found = gt.equilibria(gt.Parameters(A=np.diag([-1.0, -2.0]), V=np.diag([1.0, 0]), B=np.eye(2)))
    zero = next(e for e in found if e.rank == 0)
    assert zero.gaussian is None


# -- laws ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_spectra_agree_with_exact_differences(name):
    p = parameters(name)
    for e in gt.equilibria(p):
        if e.isolated:
            same_spectrum(e.spectrum, exact_spectrum(p, e.covariance), 1e-10)


def test_for_scalar_value_the_spectrum_is_that_of_pair_sums():
    rng = np.random.default_rng(2)
    A, B = rng.standard_normal((4, 4)) + np.eye(4), -np.eye(4) - 0.2 * rng.standard_normal((4, 4))
    for e in gt.equilibria(gt.Parameters(A=A, B=B, V=0.7 * np.eye(4))):
        values = np.linalg.eigvals(A + 0.7 * e.covariance @ (B + B.T))
        i, j = np.triu_indices(4)
        same_spectrum(e.spectrum, values[i] + values[j], 1e-11)


@given(st.integers(1, 4), st.integers(1, 2), st.integers(0, 10**6))
@settings(max_examples=10)
def test_equilibria_stand_still_and_are_covariances(d, heads, seed):
    p = random_parameters(np.random.default_rng(seed), d, heads)
    found = gt.equilibria(p, starts=40)
    assert any(e.rank == 0 for e in found)
    for e in found:
        S = e.covariance
        terms = 2 * np.linalg.norm(p.A @ S)
        terms += sum(2 * np.linalg.norm(V @ S @ B @ S) for V, B, _ in p.heads)
        assert np.linalg.norm(rate(p, S)) <= 1e-10 * terms
        assert np.linalg.matrix_rank(S, tol=1e-10 * max(np.trace(S), 1e-300)) == e.rank
        assert np.linalg.eigvalsh(S)[0] >= -1e-12 * np.trace(S)
    for i, e in enumerate(found):
        for other in found[:i]:
            distance = np.linalg.norm(e.covariance - other.covariance)
            assert distance > 1e-8 * np.linalg.norm(other.covariance)


@given(st.integers(0, 10**6))
@settings(max_examples=8)
def test_in_the_plane_no_equilibrium_is_missing(seed):
    """Brute force by another root finder, from many starts, finds nothing new."""
    rng = np.random.default_rng(seed)
    p = random_parameters(rng, 2)
    known = [e.covariance for e in gt.equilibria(p, starts=1)]
    for _ in range(60):
        L = rng.standard_normal((2, 2)) * 2 ** rng.uniform(-2, 2)
        found = root(lambda s: coordinates(rate(p, symmetric(s, 2))), coordinates(L @ L.T))
        S = symmetric(found.x, 2)
        if not found.success or np.linalg.norm(rate(p, S)) > 1e-8:
            continue
        if np.linalg.eigvalsh(S)[0] >= 1e-6 * np.linalg.norm(S) or np.linalg.norm(S) < 1e-6:
            assert min(np.linalg.norm(S - K) for K in known) <= 1e-4 * (1 + np.linalg.norm(S))


@given(st.floats(-1.0, 1.0), st.booleans(), st.integers(0, 10**6))
@settings(max_examples=10)
def test_only_the_product_of_value_and_score_counts(exponent, negative, seed):
    rng = np.random.default_rng(seed)
    p = random_parameters(rng, 2)
    c = (-1.0 if negative else 1.0) * 10 ** (8 * exponent)
    compare(gt.equilibria(p), gt.equilibria(gt.Parameters(A=p.A, V=c * p.V, B=p.B / c)))


def test_change_of_coordinates_acts_by_congruence():
    rng = np.random.default_rng(8)
    for name in CASES:
        p = parameters(name)
        T = rng.standard_normal((2, 2))
        inverse = np.linalg.inv(T)
        moved = gt.Parameters(A=T @ p.A @ inverse, V=T @ p.V @ inverse, B=inverse.T @ p.B @ inverse)
        back = [inverse @ e.covariance @ inverse.T for e in gt.equilibria(moved)]
        for e in gt.equilibria(p):
            nearest = min(np.linalg.norm(S - e.covariance) for S in back)
            assert nearest <= 1e-6 * max(np.trace(e.covariance), 1e-3)
        assert len(back) == len(gt.equilibria(p))


@pytest.mark.parametrize("units", [(1e8, 1e8), (1e-8, 1e-8), (1e4, 1e-3), (1.0, 1e6)])
@pytest.mark.parametrize("name", ["bistable", "rank lost"])
def test_units_of_the_tokens_do_not_matter(name, units):
    p, t = parameters(name), np.array(units)
    scale = np.outer(t, 1 / t)
    moved = gt.Parameters(A=p.A * scale, V=p.V * scale, B=p.B / np.outer(t, t))
    found, wanted = gt.equilibria(moved), gt.equilibria(p)
    assert sorted(e.rank for e in found) == sorted(e.rank for e in wanted)
    for e in wanted:
        S = e.covariance * np.outer(t, t)
        size = np.outer(t, t) * max(np.trace(e.covariance), 1e-3)
        assert min(np.max(np.abs(S - f.covariance) / size) for f in found) < 1e-9


def compare(first, second):
    assert [e.rank for e in first] == [e.rank for e in second]
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a.covariance, b.covariance, rtol=1e-8, atol=1e-10)
        assert a.attracts == b.attracts


def test_trace_of_the_mean_at_positive_definite_equilibria():
    rng = np.random.default_rng(11)
    seen = 0
    for _ in range(6):
        p = random_parameters(rng, 3, heads=2)
        for e in gt.equilibria(p, starts=60):
            if e.rank == 3:
                seen += 1
                wanted = sum(np.trace(V) for V, _, _ in p.heads)
                assert e.mean_spectrum.sum() == pytest.approx(wanted, rel=1e-9)
    assert seen >= 3


def test_what_attracts_is_approached_and_what_does_not_is_left():
    rng = np.random.default_rng(4)
    for name in CASES:
        p = parameters(name)
        for e in gt.equilibria(p):
            size = max(np.trace(e.covariance), 1.0)
            kick = rng.standard_normal((2, 2))
            near = e.covariance + 1e-6 * size * kick @ kick.T
            path = solve_ivp(
                lambda t, s, p=p: coordinates(rate(p, symmetric(s, 2))),
                (0.0, 12.0 if e.stable else 20.0),
                coordinates(near),
                method="LSODA",
                rtol=1e-11,
                atol=1e-13,
            )
            assert path.success
            distances = np.linalg.norm(path.y.T - coordinates(e.covariance), axis=1)
            if e.stable:
                assert distances[-1] < 0.2 * distances[0]
            elif e.isolated:
                assert distances.max() > 2 * distances[0]


# -- parts -----------------------------------------------------------------------------------


def test_the_tensor_is_the_field():
    rng = np.random.default_rng(0)
    field = Quadratic.of(random_parameters(rng, 3, heads=2))
    S = rng.standard_normal((3, 3))
    S = S + S.T
    s = coordinates(S)
    np.testing.assert_allclose(symmetric(s, 3), S, rtol=1e-15)
    value = field.linear @ s + field.tensor @ s @ s
    np.testing.assert_allclose(value, coordinates(field.rate(S)), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        field.linearisation(S), field.linear + 2 * field.tensor @ s, rtol=1e-12, atol=1e-12
    )


def test_the_derivative_of_the_factor_equation():
    rng = np.random.default_rng(1)
    field = Quadratic.of(random_parameters(rng, 4, heads=2))
    L, D = rng.standard_normal((2, 1, 4, 2))
    skew = np.array([[[0.0, 0.3], [-0.3, 0.0]]])
    _, jacobian = _factor_equation(field, L, skew)
    h = 1e-5
    up, down = (_factor_equation(field, L + x * D, skew)[0] for x in (h, -h))
    slope = (up - down) / (2 * h)
    np.testing.assert_allclose(jacobian[0] @ D.ravel(), slope[0], rtol=1e-7, atol=1e-8)


def test_the_scaled_field_is_the_same_field():
    rng = np.random.default_rng(2)
    p = gt.Parameters(
        A=1e7 * rng.standard_normal((3, 3)), B=1e-5 * rng.standard_normal((3, 3)), V=np.eye(3)
    )
    field, units = scaled(Quadratic.of(p))
    S = rng.standard_normal((3, 3))
    S = S @ S.T
    there = units[:, None] * S * units
    ratio = rate(p, there) / (units[:, None] * field.rate(S) * units)
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-10)  # the unit of time
    assert 0.1 < np.linalg.norm(field.A) < 10


def test_curves_without_fold_end_or_leave_for_infinity():
    """s' = 2 s (1 - v s): 1/v moves without fold for v > 0, and to infinity for v -> 0."""
    eye = np.ones((1, 1))
    begin = Quadratic(eye, eye[None], -eye[None], 0 * eye)
    same = follow(begin, Quadratic(eye, 2 * eye[None], -eye[None], 0 * eye), eye)
    assert same.folds == 0
    assert same.end[0, 0] == pytest.approx(0.5, rel=1e-12)
    away = follow(begin, Quadratic(eye, -eye[None], -eye[None], 0 * eye), eye)
    assert away.end is None


def test_a_saddle_node_turns_the_curve_back():
    """With noise q, s' = 2 (a s + v b s²) + q has two positive roots while a² > 2 q v b."""
    one = np.ones((1, 1))
    begin = Quadratic(-one, one[None], one[None], 0.4 * one)
    small = (1 - np.sqrt(1 - 0.8)) / 2  # s² - s + 0.2 = 0
    gone = follow(begin, Quadratic(-one, 3 * one[None], one[None], 0.4 * one), small * one)
    assert gone.folds == 1
    assert gone.end is None


def test_all_subspaces_are_tried():
    rng = np.random.default_rng(3)
    A = np.diag([1.0, 2.0, 3.0, 4.0]) + np.triu(rng.standard_normal((4, 4)), 1)
    K = -np.eye(4)
    found, complete = bernoulli(A, K)
    assert complete
    assert len(found) == 15
    for S in found:
        assert np.linalg.norm(A @ S + S @ A.T + S @ K @ S) <= 1e-11 * np.linalg.norm(S)
    few, whole = bernoulli(A, K, most=3)
    assert not whole
    # The attractors of all ranks are among them even so.
    assert {int(np.linalg.matrix_rank(S, tol=1e-10)) for S in few} == {1, 2, 3, 4}


# -- odd input -------------------------------------------------------------------------------


def test_one_dimension():
    found = gt.equilibria(gt.Parameters(A=[[0.5]], V=[[2.0]], B=[[-1.0]]))
    assert [(e.rank, e.stable) for e in found] == [(1, True), (0, False)]
    assert found[0].covariance[0, 0] == pytest.approx(0.25, rel=1e-14)
    np.testing.assert_allclose(found[0].spectrum, [-1.0], rtol=1e-13)


def test_zero_matrices():
    found = gt.equilibria(gt.Parameters(dim=2))
    assert found[-1].rank == 0
    assert {e.attracts for e in found} == {"undecided by linearisation"}
    assert not any(e.isolated for e in found if e.rank > 0)


def test_without_attention_zero_is_the_only_one():
    (zero,) = gt.equilibria(gt.Parameters(A=[[-1.0, 2.0], [0.0, -3.0]]))
    assert zero.rank == 0
    assert zero.attracts == "all covariances near it"
    np.testing.assert_allclose(zero.spectrum, [-2, -4, -6], rtol=1e-13)


def test_noise_fills_the_rank():
    A, Q = np.array([[-1.0, 0.5], [0.0, -2.0]]), np.diag([1.0, 0.0])
    (only,) = gt.equilibria(gt.Parameters(A=A, noise=Q + 0.1 * np.eye(2)))
    assert only.rank == 2
    assert np.linalg.norm(A @ only.covariance + only.covariance @ A.T + Q + 0.1 * np.eye(2)) < 1e-13


def test_noise_with_attention_in_one_dimension():
    """2 (a s + v b s²) + q = 0 with a = -1, v b = 1, q = 0.4: both roots are positive."""
    found = gt.equilibria(gt.Parameters(A=[[-1.0]], V=[[1.0]], B=[[1.0]], noise=[[0.4]]))
    roots = sorted(float(e.covariance[0, 0]) for e in found)
    np.testing.assert_allclose(roots, [(1 - 0.2**0.5) / 2, (1 + 0.2**0.5) / 2], rtol=1e-12)
    assert [e.stable for e in found] == [True, False]


def test_little_noise_against_strong_damping():
    """The equilibrium is small in every unit that attention suggests, but not 0."""
    p = gt.Parameters(A=-1e6 * np.eye(2), V=np.eye(2), B=np.eye(2), noise=0.1 * np.eye(2))
    found = gt.equilibria(p)
    stable = [e for e in found if e.stable]
    assert len(stable) == 1
    np.testing.assert_allclose(stable[0].covariance, 0.05e-6 * np.eye(2), rtol=1e-10)
    assert all(e.residual < 1e-12 for e in found)


def test_several_heads_of_rank_one():
    """Two heads with disjoint ranges: each direction has its own equilibrium."""
    V = [np.diag([1.0, 0.0]), np.diag([0.0, 1.0])]
    B = [-np.eye(2), -2 * np.eye(2)]
    found = gt.equilibria(gt.Parameters(A=np.diag([1.0, 3.0]), V=V, B=B))
    wanted = [np.diag([1, 1.5]), np.diag([0, 1.5]), np.diag([1, 0]), np.zeros((2, 2))]
    for S in wanted:
        assert min(np.linalg.norm(e.covariance - S) for e in found) < 1e-10


def test_large_dimensions_give_a_partial_list_or_one_line():
    rng = np.random.default_rng(7)
    p = gt.Parameters(
        A=np.diag(np.linspace(1, 2, 12)), B=-np.eye(12), V=np.diag(np.linspace(1, 2, 12))
    )
    found = gt.equilibria(p)
    assert found[0].rank == 12
    assert found[0].stable
    np.testing.assert_allclose(found[0].covariance, np.eye(12), atol=1e-9)
    with pytest.raises(gt.GtcontrolError, match="dimension 41; equilibria are listed up to 40"):
        gt.equilibria(gt.Parameters(A=rng.standard_normal((41, 41))))


def test_wrong_arguments():
    with pytest.raises(gt.GtcontrolError, match="must be Parameters, not str"):
        gt.equilibria("A")  # type: ignore[arg-type]
    with pytest.raises(gt.GtcontrolError, match="`starts` must be at least 1"):
        gt.equilibria(gt.Parameters(dim=1), starts=0)


# -- continua --------------------------------------------------------------------------------

RANDOM_V, RANDOM_B = np.random.default_rng(3).standard_normal((2, 3, 3))


@pytest.mark.parametrize(
    ("V", "B"),
    [
        pytest.param(np.eye(2), [[0.0, 1.0], [-1.0, 0.0]], id="skew"),
        pytest.param(2 * np.eye(2), [[0.0, 1.0], [-1.0, 0.0]], id="skew, twice"),
        pytest.param(np.eye(3), [[0.0, 1.0, 0.0], [-1.0, 0.0, 2.0], [0.0, -2.0, 0.0]], id="path"),
        pytest.param([RANDOM_V, 0.7 * RANDOM_V], [RANDOM_B, -RANDOM_B / 0.7], id="heads cancel"),
    ],
)
def test_where_nothing_moves_one_of_each_rank_is_listed_and_none_attracts(V, B):
    d = len(np.asarray(V)[-1])
    found = gt.equilibria(gt.Parameters(A=np.zeros((d, d)), V=V, B=B))
    assert [e.rank for e in found] == list(range(d, -1, -1))
    assert {e.attracts for e in found} == {"undecided by linearisation"}
    assert not any(e.stable or (e.isolated and e.rank) for e in found)


def test_a_certificate_does_not_claim_that_what_stands_still_repels():
    answer = gt.certify(gt.Parameters(A=np.zeros((2, 2)), V=np.eye(2), B=[[0, 1], [-1, 0]]))
    assert not any(claim.rule == "unstable-equilibrium" for claim in answer.claims)

"""Blow-up times for V = v I, against closed forms, mpmath, SciPy's exponential and integration."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from gtcontrol.errors import GtcontrolError, InvalidNumber
from gtcontrol.riccati_flow import CrossingStatus, blow_up, factor_at, transition
from gtcontrol.riccati_flow.evidence import Evidence, holds_before, holds_for_ever, holds_until
from gtcontrol.riccati_flow.system import System

from .strategies import factor as make_factor, generators, invertible, orthogonal

I2 = np.eye(2)
NILPOTENT = np.array([[0.0, 1.0], [0.0, 0.0]])
TURN = np.array([[0.0, 3.0], [-3.0, 0.0]])
SADDLE = np.diag([1.0, -1.0])
B7 = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 2.0]])
A7 = np.array([[0.5, 1.0, 0.0], [0.0, -0.3, 2.0], [-1.0, 0.0, 0.2]])
L7 = np.array([[0.5, 0.0], [0.25, 0.5], [0.0, -0.25]])
A10 = np.array([[-1.0, 1.0], [0.0, -2.0]])
A11 = np.array([[-0.1, 2.0], [-2.0, -0.1]])
K11 = np.diag([1.0, -0.5])
THRESHOLD = 1.6583592135001261822


def of(*rows):
    return np.array(rows, dtype=float)


#: A, K, factor of the start, and the blow-up time to the digits known.
KNOWN = {
    "scalar-growing": (of([0.5]), of([2.0]), of([1.0]), math.log(1.5)),
    "scalar-decaying": (of([-1.0]), of([2.0]), of([math.sqrt(2)]), math.log(2) / 2),
    "nilpotent": (NILPOTENT, I2, I2, 0.6955780649209035827),
    "nilpotent-first": (NILPOTENT, I2, of([1.0], [0.0]), 1.0),
    "nilpotent-second": (NILPOTENT, I2, of([0.0], [1.0]), 0.81773167388682350609),
    "rank-two-of-three": (A7, 0.5 * (B7 + B7.T), L7, 0.90089450682588200162),
    "turning": (TURN, SADDLE, math.sqrt(6) * I2, math.pi / 18),
    "turning-later": (TURN, SADDLE, math.sqrt(3.2) * I2, math.asin(3 / 3.2) / 3),
    "above-threshold": (A10, I2, math.sqrt(1.1 * THRESHOLD) * I2, 1.3581932734379035311),
    "above-threshold-2": (A10, I2, math.sqrt(2) * I2, 1.0165938069897230253),
    "spiral-3": (A11, K11, math.sqrt(3) * I2, 0.37058985189255838054),
    "spiral-2": (A11, K11, math.sqrt(2) * I2, 0.67423731460608688398),
    "spiral-late": (A11, K11, I2, 5.1087489766391170053),
}

#: A, K, factor of starts that never blow up.
NEVER = {
    "at-threshold": (of([-1.0]), of([2.0]), of([1.0])),
    "below-threshold": (of([-1.0]), of([2.0]), of([math.sqrt(0.5)])),
    "negative": (A7, -0.5 * (B7 + B7.T), L7),
    "turning": (TURN, SADDLE, math.sqrt(2.9) * I2),
    "below-threshold-2": (A10, I2, math.sqrt(1.5) * I2),
    "zero": (np.zeros((2, 2)), np.zeros((2, 2)), I2),
    "no-quadratic-term": (A7, np.zeros((3, 3)), L7),
    "no-covariance": (A7, 0.5 * (B7 + B7.T), np.zeros((3, 0))),
    "still-and-blind": (np.zeros((2, 2)), SADDLE, of([0.0], [1.0])),
    # An unstable mode with K < 0 beside a stable one with K > 0.
    "saddle": (np.diag([1.0, -1.0]), of([-1.0, 0.3], [0.3, 1.0]), I2),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_blow_up_times(name):
    A, K, L, time = KNOWN[name]
    found = blow_up(A, K, L)
    assert found.status is CrossingStatus.BLOWS_UP
    assert found.proved
    # The factors are roots of the covariances, rounded: a relative 1e-15 of the time, at most.
    assert found.lower * (1 - 1e-15) <= time <= found.upper * (1 + 1e-15)
    assert found.upper - found.lower <= 1e-12 * time
    assert found.estimate == pytest.approx(time, rel=1e-14)


@pytest.mark.parametrize("name", NEVER)
def test_starts_that_never_blow_up(name):
    found = blow_up(*NEVER[name])
    assert found.status is CrossingStatus.NEVER
    assert found.proved
    assert found.lower == found.upper == found.estimate == math.inf


def test_tangency_is_enclosed_and_not_decided():
    found = blow_up(TURN, SADDLE, math.sqrt(3) * I2)
    assert found.status is CrossingStatus.TANGENT
    assert found.proved  # that there is no blow-up before
    assert found.lower < math.pi / 6 < found.upper
    assert found.upper - found.lower < 1e-5


@pytest.mark.parametrize("change", [3 * (1 + 1e-9), 3 * (1 + 1e-6), 3.01])
def test_starts_beyond_the_tangency_blow_up_at_the_first_crossing(change):
    found = blow_up(TURN, SADDLE, math.sqrt(change) * I2)
    assert found.status is CrossingStatus.BLOWS_UP
    # Near the tangency the time has a square-root singularity in the start.
    assert found.estimate == pytest.approx(math.asin(3 / change) / 3, rel=1e-11)


def test_behind_the_blow_up_the_formula_lies_and_is_refused():
    A, K, L, time = KNOWN["turning-later"]
    Phi, G = transition(A, K, 1.0)
    C = L.T @ G @ L
    assert np.linalg.eigvalsh(C)[-1] == pytest.approx(0.15052800859719170, abs=1e-14)
    S = Phi @ L @ np.linalg.inv(I2 - C) @ L.T @ Phi.T
    expected = [[2.78626395013898, -0.0695520007402843], [-0.0695520007402843, 3.76211365144029]]
    np.testing.assert_allclose(S, expected, rtol=1e-13)
    assert np.linalg.eigvalsh(S)[0] > 0
    with pytest.raises(InvalidNumber, match="only proved to exist up to"):
        factor_at(A, K, L, 1.0)
    assert blow_up(A, K, L).upper < 1
    near = factor_at(A, K, L, (1 - 1e-6) * time)
    assert np.linalg.norm(near, 2) ** 2 > 1e4


def test_late_values_of_the_closed_form():
    G = transition(A7, 0.5 * (B7 + B7.T), 5.0)[1]
    top = np.linalg.eigvalsh(-L7.T @ G @ L7)[-1]
    assert top == pytest.approx(-12.375307042010715, rel=1e-12)


def test_a_decaying_matrix_does_not_drown_the_gramian():
    A = np.diag([-1.0, -50.0])
    G = transition(A, I2, 40.0)[1]
    np.testing.assert_allclose(G, np.diag([0.5, 0.01]), rtol=1e-13)
    assert blow_up(A, I2, I2).status is CrossingStatus.NEVER


def draw(rng, d):
    """Random A, K, L of a mixed kind, of size about 1."""
    A = rng.standard_normal((d, d)) / math.sqrt(d) - rng.choice([0.0, 0.8]) * np.eye(d)
    B = rng.standard_normal((d, d)) / math.sqrt(d)
    K = B + B.T if rng.random() < 0.7 else B @ B.T
    return A, K, make_factor(rng, d, int(rng.integers(1, d + 1)), 0.7)


def top(A, K, L, time):
    """λ_max C by one exponential of the Hamiltonian matrix (good for short times only)."""
    d = len(A)
    F = expm(time * np.block([[-A.T, K], [np.zeros((d, d)), A]]))
    C = L.T @ F[d:, d:].T @ F[:d, d:] @ L
    return np.linalg.eigvalsh(0.5 * (C + C.T))[-1]


@pytest.mark.parametrize("seed", range(8))
def test_enclosures_against_mpmath(seed):
    """det(I - C) changes sign within the enclosure, in 40 digits, and λ_max C < 1 on a grid."""
    rng = np.random.default_rng(seed)
    while True:
        A, K, L = draw(rng, 3)
        found = blow_up(A, K, L)
        if found.status is CrossingStatus.BLOWS_UP and found.estimate < 4:
            break
    assert max(top(A, K, L, t) for t in np.linspace(0, found.lower * 0.999, 200)) < 1

    def gap(time):
        with mpmath.workdps(40):
            H = np.block([[-A.T, K], [np.zeros((3, 3)), A]])
            F = mpmath.expm(mpmath.matrix(H.tolist()) * mpmath.mpf(time))
            Phi, half = F[3:, 3:], F[:3, 3:]
            M = mpmath.matrix(L.tolist())
            return mpmath.det(mpmath.eye(L.shape[1]) - M.T * (Phi.T * half) * M)

    assert gap(found.lower) > 0 > gap(found.upper)


@given(generators(), st.integers(1, 4))
def test_every_crossing_is_proved_to_its_width(rng, d):
    """Random data reach the lower end in steps of all sizes; none may stop short of it."""
    for _ in range(5):
        A, K, L = draw(rng, d)
        found = blow_up(A, K, L)
        assert found.proved
        if found.status is CrossingStatus.BLOWS_UP:
            assert found.upper - found.lower <= 1e-12 * found.estimate


def rate(A, K):
    def flow(_, flat):
        L = flat.reshape(len(A), -1)
        return (A @ L + 0.5 * L @ (L.T @ K @ L)).ravel()

    return flow


@given(generators(), st.integers(1, 4))
def test_verdicts_agree_with_integration(rng, d):
    A, K, L = draw(rng, d)
    found = blow_up(A, K, L)
    assert found.proved
    horizon = 3.0 if found.status is CrossingStatus.NEVER else min(3.0, 0.97 * found.lower)
    run = solve_ivp(rate(A, K), (0, horizon), L.ravel(), rtol=1e-10, atol=1e-12, method="DOP853")
    assert run.success
    end = run.y[:, -1].reshape(L.shape)
    made = factor_at(A, K, L, horizon)
    np.testing.assert_allclose(
        made @ made.T, end @ end.T, atol=2e-6 * np.linalg.norm(end) ** 2, rtol=0
    )


@given(generators(), st.integers(1, 4))
def test_symmetries_of_the_blow_up_time(rng, d):
    A, K, L = draw(rng, d)
    found = blow_up(A, K, L)
    T, Q = invertible(rng, d, 0.7), orthogonal(rng, L.shape[1])
    back = np.linalg.inv(T)
    turned = back.T @ K @ back
    size = 2.0 ** int(rng.integers(-20, 20))
    for pair, unit in (
        ((T @ A @ back, 0.5 * (turned + turned.T), T @ L @ Q), 1.0),
        ((A, K / size**2, size * L), 1.0),
        ((size * A, size * K, L), 1 / size),
    ):
        other = blow_up(*pair)
        assert other.status is found.status
        if found.status is CrossingStatus.BLOWS_UP:
            assert other.estimate == pytest.approx(unit * found.estimate, rel=1e-9)
        if unit != 1 and found.status is CrossingStatus.BLOWS_UP:
            assert other.estimate == pytest.approx(unit * found.estimate, rel=1e-14)


@pytest.mark.parametrize("size", [1e-8, 1e8])
def test_unscaled_data(size):
    A, K, L, time = KNOWN["spiral-2"]
    for pair, unit in (
        ((size * A, size * K, L), 1 / size),
        ((A, K / size, math.sqrt(size) * L), 1.0),
    ):
        found = blow_up(*pair)
        assert found.proved
        assert found.estimate == pytest.approx(unit * time, rel=1e-13)
    # Coordinates of very different units: the powers of two that balance A are exact.
    D = np.array([1.0, size])
    found = blow_up(A * D[:, None] / D, K / D[:, None] / D, D[:, None] * L)
    assert found.proved
    assert found.estimate == pytest.approx(time, rel=1e-12)


def test_evidence_does_not_prove_more_than_it_shows():
    A, K, L, _ = KNOWN["spiral-2"]
    system, found = System.of_term(A, K), blow_up(A, K, L)
    evidence = found.evidence
    assert holds_until(system, L, evidence, found.lower, found.upper)
    assert not holds_until(system, L, evidence, found.upper, found.upper * 1.01)
    assert not holds_until(system, L, evidence, 0.9 * found.lower, found.lower)
    assert not holds_until(system, 1.001 * L, evidence, found.lower, found.upper)
    assert not holds_until(system, 0.999 * L, evidence, found.lower, found.upper)
    coarse = Evidence(np.array([evidence.steps.sum()]), evidence.exponents, evidence.direction)
    assert not holds_until(system, L, coarse, found.lower, found.upper)
    assert holds_before(system, L, evidence, found.lower)
    assert not holds_before(system, L, evidence, found.upper)


def test_a_false_bound_proves_nothing():
    A, K, L = NEVER["below-threshold-2"]
    found, system = blow_up(A, K, L), System.of_term(A, K)
    good = found.evidence
    assert holds_for_ever(system, L, good)
    for change in (0.9, 1.2):  # not a supersolution; not respected by the start
        bad = Evidence(good.steps, good.exponents, None, change * good.bound, good.reason)
        assert not holds_for_ever(system, L, bad)


def test_a_saddle_that_is_crossed_blows_up():
    A, K = np.diag([1.0, -1.0]), of([-1.0, 3.0], [3.0, 1.0])
    found = blow_up(A, K, I2)
    assert found.status is CrossingStatus.BLOWS_UP
    assert top(A, K, I2, found.lower) < 1 < top(A, K, I2, found.upper * (1 + 1e-9))


@pytest.mark.parametrize(
    ("A", "K", "L", "words"),
    [
        ([[math.nan]], [[1.0]], [[1.0]], "`A` holds nan"),
        ([[1.0]], [[1.0, 2.0], [0.0, 1.0]], [[1.0]], "`K` must have shape"),
        (I2, [[1.0, 2.0], [0.0, 1.0]], I2, "`K` must be symmetric"),
        (I2, I2, [[1.0]], "`factor` must have 2 rows"),
    ],
)
def test_bad_input_is_one_clear_line(A, K, L, words):
    with pytest.raises(GtcontrolError, match=words) as caught:
        blow_up(A, K, L)
    assert "\n" not in str(caught.value)


NOISY = {
    "tangent": (of([0.0]), of([1.0]), of([1.0]), np.zeros((1, 0)), math.pi / 2),
    "growing": (of([0.5]), of([1.0]), of([0.25]), np.zeros((1, 0)), 2.0),
    "nilpotent": (NILPOTENT, I2, I2, np.zeros((2, 0)), 1.2166954297563273433),
    "double": (0 * I2, I2, I2, np.zeros((2, 0)), math.pi / 2),
    "above-threshold": (
        of([-2.0]),
        of([1.0]),
        of([1.0]),
        of([2.0]),
        math.log((2 + math.sqrt(3)) / (2 - math.sqrt(3))) / math.sqrt(12),
    ),
}


@pytest.mark.parametrize("size", [1.0, 1e8])
@pytest.mark.parametrize("name", NOISY)
def test_blow_up_with_noise(name, size):
    A, K, noise, L, time = NOISY[name]
    found = blow_up(size * A, size * K, L, size * noise)
    assert found.status is CrossingStatus.BLOWS_UP
    assert found.proved
    assert found.lower * (1 - 1e-15) <= time / size <= found.upper * (1 + 1e-15)
    assert found.upper - found.lower <= 1e-12 * time / size


def test_no_blow_up_with_noise():
    never = [
        (NILPOTENT, -np.diag([1.0, 0.0]), np.zeros((2, 0)), np.diag([0.0, 1.0])),
        (of([0.0]), of([-1.0]), np.zeros((1, 0)), of([1.0])),
        (of([-2.0]), of([1.0]), of([1.0]), of([1.0])),  # 1 is between 2 - √3 and 2 + √3
    ]
    for A, K, L, noise in never:
        found = blow_up(A, K, L, noise)
        assert found.status is CrossingStatus.NEVER
        assert found.proved


def test_vanishing_noise_changes_little():
    A, K, L, time = KNOWN["rank-two-of-three"]
    found = blow_up(A, K, L, 1e-12 * np.eye(3))
    assert found.proved
    assert found.estimate == pytest.approx(time, rel=1e-10)
    assert found.estimate < time

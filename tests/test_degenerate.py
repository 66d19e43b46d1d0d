"""Degenerate parameters: each gets its verdict, proved, and integration agrees with it.

The expected limits, rates and thresholds are closed forms, stated beside each case.
"""

import dataclasses
import functools
import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.linalg import expm, solve_continuous_are

import gtcontrol as gt
from gtcontrol.certification.conclusion import conclude, settle
from gtcontrol.certification.ladder import RUNGS
from gtcontrol.certification.rules import rule
from gtcontrol.certification.rules.base import Refuted
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.riccati_flow import covariance_at
from gtcontrol.status import Verdict

J = np.array([[0.0, -1.0], [1.0, 0.0]])
I2 = np.eye(2)
O2 = np.zeros((2, 2))
JORDAN = np.array([[0.0, 1.0], [0.0, 0.0]])
E1, E2 = np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]])
ROOT2 = math.sqrt(2.0)


def parameters(A, K, noise=None):
    """V = I, B = K/2."""
    A, K = np.atleast_2d(np.array(A, float)), np.atleast_2d(np.array(K, float))
    noise = None if noise is None else np.atleast_2d(np.array(noise, float))
    return gt.Parameters(A=A, V=np.eye(len(A)), B=0.5 * K, noise=noise)


def law(factor):
    factor = np.atleast_2d(np.array(factor, float))
    return gt.Gaussian(np.zeros(len(factor)), factor)


def case(A, K, verdict, *words, start=None, noise=None, limit=None, rate=None, trace=None):
    return {
        "p": parameters(A, K, noise),
        "start": None if start is None else law(start),
        "verdict": verdict,
        "words": words,
        "limit": limit,
        "rate": rate,
        "trace": trace,
    }


CASES = {
    # A mode that grows and that K does not see.
    "undetectable": case(
        np.diag([1, 2]), -np.diag([1, 0]), "UNBOUNDED", "every start of full rank", rate=4
    ),
    "undetectable-start": case(
        np.diag([1, 2]), -np.diag([1, 0]), "UNBOUNDED", "From this start", start=I2, rate=4
    ),
    # s22 = e^{4t}/(1 + (e^{2t} - 1)/2) ~ 2 e^{2t}
    "undetectable-rank-one": case(
        np.diag([1, 2]), -np.diag([1, 0]), "UNBOUNDED", start=E1 + E2, rate=2
    ),
    "undetectable-noise": case(
        np.diag([-1, 0]), -np.diag([1, 0]), "UNBOUNDED", "From every start", noise=I2, rate=0
    ),
    "undetectable-noise-grows": case(
        np.diag([-1, 1]), -np.diag([1, 0]), "UNBOUNDED", "From every start", noise=I2, rate=2
    ),
    # No attention: linear equations.
    "linear-hurwitz": case([[-1, 1], [0, -2]], O2, "CONVERGES", "From every start", trace=0),
    "linear-unstable": case(
        np.diag([1, -2]), O2, "UNBOUNDED", "every start of full rank", "e^(2 t)", rate=2
    ),
    "linear-unstable-start": case(np.diag([1, -2]), O2, "UNBOUNDED", start=I2, rate=2),
    "linear-stable-part": case(np.diag([1, -2]), O2, "CONVERGES", start=E2, limit=O2, rate=4),
    "linear-skew": case(J, O2, "BOUNDED", "From every start"),
    "linear-skew-rank-one": case(J, O2, "BOUNDED", start=E1),
    "linear-skew-still": case(J, O2, "CONVERGES", "does not move", start=I2),
    "linear-jordan": case(JORDAN, O2, "UNBOUNDED", "algebraically", rate=0),
    "linear-jordan-still": case(JORDAN, O2, "CONVERGES", "does not move", start=E1),
    "linear-jordan-start": case(JORDAN, O2, "UNBOUNDED", "algebraically", start=E2, rate=0),
    # A has the projector [[1, 1], [0, 0]] on its kernel: I tends to diag(2, 0).
    "linear-projected": case(
        [[0, 1], [0, -1]], O2, "CONVERGES", start=I2, limit=np.diag([2, 0]), rate=1
    ),
    "linear-noise": case(
        [[-1, 1], [0, -2]], O2, "CONVERGES", noise=I2, limit=[[7 / 12, 1 / 12], [1 / 12, 1 / 4]]
    ),
    "linear-noise-part": case(
        np.diag([-1, 0]),
        O2,
        "CONVERGES",
        "depends on the start",
        noise=np.diag([1, 0]),
        start=I2,
        limit=np.diag([0.5, 1]),
    ),
    "nothing": case(O2, O2, "BOUNDED", "From every start"),
    "nothing-start": case(O2, O2, "CONVERGES", "does not move", start=[[2, 1], [0, 1]]),
    "nothing-but-noise": case(O2, O2, "UNBOUNDED", "From every start", noise=I2, rate=0),
    # With noise: algebraic Riccati equations.
    "noise-double-integrator": case(
        JORDAN,
        -np.diag([1, 0]),
        "CONVERGES",
        "From every start",
        noise=np.diag([0, 1]),
        limit=[[ROOT2, 1], [1, ROOT2]],
        rate=ROOT2,
    ),
    "noise-tanh": case(0, -1, "CONVERGES", "From every start", noise=1, limit=[[1]], rate=2),
    # A continuum of limits: s22 and s12 of diag(2, c) follow from the inverse of the start.
    "continuum": case(
        np.diag([1, 0]),
        -np.diag([1, 0]),
        "CONVERGES",
        "continuum",
        start=I2,
        limit=np.diag([2, 1]),
        rate=1,
    ),
    # S0 = [[1, 1], [1, 2]], whose inverse [[2, -1], [-1, 1]] has the entry 1 = 1/c.
    "continuum-correlated": case(
        np.diag([1, 0]),
        -np.diag([1, 0]),
        "CONVERGES",
        start=[[1, 0], [1, 1]],
        limit=np.diag([2, 1]),
        rate=1,
    ),
    "continuum-every": case(np.diag([1, 0]), -np.diag([1, 0]), "BOUNDED"),
    "unreached": case(
        np.diag([1, 2]), -np.diag([1, 0]), "CONVERGES", start=E1, limit=np.diag([2, 0]), rate=2
    ),
    # Limits that depend on the start, or that are approached like a power of t, or none.
    "uniform": case(2 * I2, -I2, "CONVERGES", start=E1 + E2, limit=[[2, 2], [2, 2]], rate=4),
    "uniform-other": case(2 * I2, -I2, "CONVERGES", start=E1, limit=np.diag([4, 0]), rate=4),
    "uniform-every": case(2 * I2, -I2, "CONVERGES", "From every start of full rank"),
    "splits-a-pair": case(
        [[1, 3], [-3, 1]], -np.diag([1, 2]), "BOUNDED", "periodic", "1.0471975512", start=E1
    ),
    "pair": case(
        [[1, 3], [-3, 1]],
        -np.diag([1, 2]),
        "CONVERGES",
        start=I2,
        limit=np.array([[124, -12], [-12, 116]]) / 89,
    ),
    "on-the-axis": case(
        np.diag([1, 0]), -2 * I2, "CONVERGES", start=I2, limit=np.diag([1, 0]), rate=0
    ),
    "skew": case(J, -I2, "CONVERGES", "every start"),
    "jordan": case(JORDAN, -I2, "CONVERGES", "power of t"),
    "jordan-seen-once": case(JORDAN, -np.diag([1, 0]), "CONVERGES", "power of t", start=I2),
    # At thresholds and tangencies.
    "threshold-still": case(-1, 2, "CONVERGES", "does not move", start=1),
    "tangency": case(
        3 * J, np.diag([1, -1]), "MARGINAL", start=math.sqrt(3) * I2
    ),
    "indefinite": case(
        [[-0.1, 2], [-2, -0.1]], np.diag([1, -0.5]), "CONVERGES", "tends to 0", start=0.5 * I2
    ),
    "indefinite-blow-up": case(
        [[-0.1, 2], [-2, -0.1]], np.diag([1, -0.5]), "BLOWS_UP", start=I2
    ),
}  # fmt: skip


def certified(p, start=None):
    """The certificate, without the integrations, which other tests look at."""
    with mock.patch("gtcontrol.certification.run.integrations", return_value=()):
        return gt.certify(p, start)


@functools.cache
def answered(name):
    return certified(CASES[name]["p"], CASES[name]["start"])


def concluded(p, start=None):
    """The proved part of a certificate, without the integrations."""
    problem, claims = CertificationProblem((p,), start), []
    for rung in RUNGS:
        if rung.serves(problem, conclude(problem, claims)):
            claims += [settle(problem, claim) for claim in rung.find(problem)]
    return conclude(problem, claims)


@pytest.mark.parametrize("name", CASES)
def test_the_verdict_is_proved_and_says_why(name):
    asked, answer = CASES[name], answered(name)
    assert (answer.verdict.name, answer.proved) == (asked["verdict"], True)
    assert gt.verify(answer)
    assert gt.verify(answer).proved
    for words in asked["words"]:
        assert words in answer.statement
    if answer.verdict is not Verdict.BLOWS_UP and answer.verdict is not Verdict.MARGINAL:
        assert answer.lower == answer.upper == math.inf
    if asked["limit"] is not None:
        limit = np.array(asked["limit"], float)
        size = max(float(np.abs(limit).max()), 1e-300)
        assert np.abs(answer.data["limit"] - limit).max() <= 1e-13 * size + answer.data["error"]
        assert answer.data["error"] <= 1e-12 * max(size, 1e-12)
    if asked["rate"] is not None:
        assert answer.data["rate"] == pytest.approx(asked["rate"], rel=1e-9, abs=0)
    if asked["trace"] is not None:
        assert np.trace(answer.data["limit"]) == asked["trace"]


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c["start"] is not None])
def test_integration_agrees(name):
    asked = CASES[name]
    path = gt.simulate(asked["start"], asked["p"], 12.0, rtol=1e-11)
    last = path.final.covariance
    if asked["verdict"] == "UNBOUNDED":
        middle = path.at(6.0).trace
        growth = math.log(np.trace(last) / middle)
        assert growth >= 0.9 * 6.0 * asked["rate"] if asked["rate"] else growth > math.log(1.9)
    elif asked["limit"] is not None:
        # Exponential rates of 1 and more, or 1/t.
        scale = {0: 0.05, 1: 1e-4}.get(asked["rate"], 1e-6)
        assert np.abs(last - np.array(asked["limit"], float)).max() <= scale
    elif asked["verdict"] == "BLOWS_UP":
        assert path.status is gt.Status.BLOW_UP
    elif asked["verdict"] != "MARGINAL":
        assert np.trace(last) < 100


@pytest.mark.slow
@pytest.mark.parametrize("name", ["undetectable", "linear-skew", "uniform", "noise-tanh"])
def test_nothing_is_contradicted_by_the_integrations_of_the_certificate(name):
    asked = CASES[name]
    answer = gt.certify(asked["p"], asked["start"])
    assert (answer.verdict.name, answer.proved) == (asked["verdict"], True)
    outcomes = {seen.outcome for seen in answer.integrations}
    settled = {"UNBOUNDED": {"growth"}, "BOUNDED": {"limit", "cycle"}, "CONVERGES": {"limit"}}
    assert outcomes <= settled[asked["verdict"]]


@pytest.mark.parametrize("name", CASES)
def test_claims_are_refused_for_other_parameters_and_numbers(name):
    """Every number that a statement shows is held to the proof."""
    answer = answered(name)
    first = answer.claims[0]
    theorem = rule(first.rule)
    for key in ("rate", "outcome", "unbounded", "ground", "lower_root"):
        if key in first.numbers:
            numbers = {**first.numbers, key: first.numbers[key] * 1.01 + 1.0}
            with pytest.raises(Refuted):
                theorem.check(answer.problem, dataclasses.replace(first, numbers=numbers))
            numbers.pop(key)
            with pytest.raises(Refuted):
                theorem.check(answer.problem, dataclasses.replace(first, numbers=numbers))
    if "limit" in first.arrays:
        moved = first.arrays["limit"] + 1e-3
        for arrays in ({}, {**first.arrays, "limit": moved}):
            with pytest.raises(Refuted):
                theorem.check(answer.problem, dataclasses.replace(first, arrays=arrays))


def test_heads_that_cancel_are_no_attention():
    B = np.array([[1.0, 2.0], [0.5, -1.0]])
    V = np.stack([I2, -2.0 * I2])
    p = gt.Parameters(A=np.diag([-1.0, 0.0]), V=V, B=np.stack([B, 0.5 * B]))
    answer = certified(p, law(I2))
    assert (answer.verdict, answer.proved) == (Verdict.CONVERGES, True)
    np.testing.assert_array_equal(answer.data["limit"], np.diag([0.0, 1.0]))
    skew = gt.Parameters(A=np.diag([1.0, -1.0]), V=I2, B=J)
    assert certified(skew, law(I2)).verdict is Verdict.UNBOUNDED


def test_a_score_matrix_of_zero_makes_any_value_matrix_irrelevant():
    p = gt.Parameters(A=np.diag([1.0, -2.0]), V=[[1.0, 2.0], [3.0, 4.0]], B=O2)
    answer = certified(p, law(I2))
    assert (answer.verdict, answer.proved) == (Verdict.UNBOUNDED, True)


def test_a_start_that_stands_still_under_general_parameters():
    """(I + 2J) and -(I + J/2): the quadratic term of I cancels exactly."""
    p = gt.Parameters(A=O2, V=I2 + 2 * J, B=-(I2 + 0.5 * J))
    answer = certified(p, law(I2))
    assert (answer.verdict, answer.proved) == (Verdict.CONVERGES, True)
    assert "does not move" in answer.statement
    moved = dataclasses.replace(answer.problem, start=law(1.001 * E1))
    with pytest.raises(Refuted):
        rule("standing-start").check(moved, answer.claims[0])


# -- covariance with noise in closed form -----------------------------------------------------


def test_the_covariance_with_noise():
    S = covariance_at(JORDAN, -np.diag([1.0, 0.0]), np.zeros((2, 0)), np.diag([0.0, 1.0]), 2.0)
    exact = [[1.2042799298675721817, 0.98980102938985887469], [0, 1.295640240565472075]]
    assert np.abs(np.triu(S) - exact).max() <= 1e-14
    np.testing.assert_allclose(
        covariance_at([[0.0]], [[1.0]], np.zeros((1, 0)), [[1.0]], 1.5), math.tan(1.5), rtol=1e-11
    )
    with pytest.raises(gt.GtcontrolError, match="ask for an earlier time"):
        covariance_at([[0.0]], [[1.0]], np.zeros((1, 0)), [[1.0]], 1.6)


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 5.0))
@settings(max_examples=15, deadline=None)
def test_the_covariance_with_noise_is_that_of_the_linear_flow(seed, time):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    A, C, F, L = (rng.standard_normal((d, d)) for _ in range(4))
    K, Q = -C.T @ C, F @ F.T
    made = covariance_at(A, K, L, Q, time)
    half = covariance_at(A, K, L, Q, 0.5 * time)
    values, vectors = np.linalg.eigh(half)
    again = covariance_at(A, K, vectors * np.sqrt(values), Q, 0.5 * time)
    np.testing.assert_allclose(made, again, rtol=0, atol=1e-9 * np.abs(made).max())
    small = 1e-3
    X = expm(small * np.block([[-A.T, -K], [Q, A]])) @ np.concatenate([np.eye(d), L @ L.T])
    direct = X[d:] @ np.linalg.inv(X[:d])
    np.testing.assert_allclose(
        covariance_at(A, K, L, Q, small), direct, rtol=0, atol=1e-11 * np.abs(direct).max()
    )


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_the_limit_with_noise_is_that_of_scipy(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    # Whole numbers, so that K and the noise are of rank one, and semidefinite, exactly.
    A, C = rng.standard_normal((d, d)), rng.integers(1, 4, (1, d)).astype(float)
    F = rng.integers(1, 4, (d, 1)).astype(float)
    noise, K = F @ F.T, -C.T @ C
    answer = concluded(parameters(A, K, noise))
    assert (answer.verdict, answer.proved) == (Verdict.CONVERGES, True)
    expected = solve_continuous_are(A.T, C.T, noise, np.eye(1))
    size = np.abs(expected).max()
    np.testing.assert_allclose(answer.claims[0].arrays["limit"], expected, rtol=0, atol=1e-6 * size)


# -- one dimension ---------------------------------------------------------------------------

NUMBERS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 3.0])


def expected_of(a, k, q, s):
    """Verdict for s' = 2 a s + k s² + q from s; all of it elementary."""
    if 2 * a * s + k * s * s + q == 0:
        return "CONVERGES"
    if k <= 0:
        if k < 0 or (a < 0 or (a == 0 and q == 0)):
            return "CONVERGES"
        return "UNBOUNDED" if q > 0 or s > 0 else "CONVERGES"
    gap = a * a - k * q
    if gap < 0 or a >= 0 or k * s + a > math.sqrt(gap):
        return "BLOWS_UP"
    return "CONVERGES"


@given(
    st.one_of(NUMBERS, NUMBERS.map(lambda x: -x)),
    NUMBERS,
    st.sampled_from([-1.0, 0.0, 1.0]),
    NUMBERS,
    NUMBERS,
)
@settings(max_examples=40, deadline=None)
def test_one_dimension_is_decided_completely(a, k, sign, q, root):
    p = gt.Parameters(A=[[a]], V=[[1.0]], B=[[0.5 * sign * k]], noise=[[q]] if q else None)
    start = gt.Gaussian([0.0], [[root]] if root else np.zeros((1, 0)))
    answer = concluded(p, start)
    verdict = expected_of(a, sign * k, q, root * root)
    if root == 0 and q == 0 and answer.verdict is Verdict.BOUNDED:
        assert "does not move" in answer.statement  # a covariance of 0 remains 0
        return
    assert (answer.verdict.name, answer.proved) == (verdict, True)


@pytest.mark.parametrize(
    ("a", "k", "q", "verdict"),
    [
        (-1, 2, 0.25, "BLOW_UP_DATA_EXIST"),
        (-1, 2, 0.6, "BLOWS_UP"),
        (1, 2, 0.1, "BLOWS_UP"),
        (0, 1, 0, "BLOWS_UP"),
        (-1, 2, 0, "BLOW_UP_DATA_EXIST"),
        (0, -1, 0, "CONVERGES"),
        (-1, 0, 0, "CONVERGES"),
        (0, 0, 0, "BOUNDED"),
        (1, 0, 0, "UNBOUNDED"),
        (0, 0, 1, "UNBOUNDED"),
    ],
)
def test_one_dimension_without_a_start(a, k, q, verdict):
    answer = concluded(parameters(a, k, q if q else None))
    assert (answer.verdict.name, answer.proved) == (verdict, True)


# -- scales ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e8, 1e-8, 1e150, 1e-150])
@pytest.mark.parametrize("name", ["uniform", "noise-tanh"])
def test_scales_of_time_do_not_matter(name, size):
    """A, K and the noise times a number: the same motion in another time."""
    asked = CASES[name]
    p = asked["p"]
    noise = None if p.noise is None else size * p.noise
    scaled = gt.Parameters(A=size * p.A, V=p.V, B=size * p.B, noise=noise)
    answer = certified(scaled, asked["start"])
    assert gt.verify(answer)
    assert (answer.verdict.name, answer.proved) == (asked["verdict"], True)
    assert answer.data["rate"] == pytest.approx(size * asked["rate"], rel=1e-8)


@pytest.mark.parametrize("size", [1e8, 1e-8, 1e75, 1e-75])
def test_scales_of_tokens_do_not_matter(size):
    asked = CASES["pair"]
    p = gt.Parameters(A=asked["p"].A, V=I2, B=asked["p"].B / size**2)
    answer = concluded(p, law(size * I2))
    assert (answer.verdict, answer.proved) == (Verdict.CONVERGES, True)
    limit = np.array(asked["limit"])
    np.testing.assert_allclose(answer.claims[0].arrays["limit"] / size**2, limit, rtol=1e-12)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_numbers_that_are_not_finite_get_one_line(bad):
    with pytest.raises(gt.GtcontrolError, match="must be finite") as error:
        parameters([[bad]], [[1.0]])
    assert "\n" not in str(error.value)

"""The exact arithmetic and the rules behind quadratic certificates, without any solver."""

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import solve_ivp

import gtcontrol as gt
from gtcontrol.arithmetic import dyadic as exact
from gtcontrol.certification.rules import RULES
from gtcontrol.certification.rules.base import Refuted, Scope
from gtcontrol.certification.rules.inequality import check_inequality
from gtcontrol.certification.theory.comparison import Comparison, passage_time, solution
from gtcontrol.certification.theory.envelope import envelope, levels
from gtcontrol.certification.theory.pieces import index_pairs, may_dissipate, may_grow
from gtcontrol.certification.theory.quadratic import (
    drift_operator,
    quadratic_form,
    quadratic_operator,
    slack_form,
    smat,
    svec,
    wedge,
)
from gtcontrol.certification.theory.scaling import scale
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.results.claims import Claim
from gtcontrol.status import Verdict
from tests.strategies import dims, generators

J = np.array([[0.0, -1.0], [1.0, 0.0]])


def problem(*vertices, start=None):
    return CertificationProblem(tuple(vertices), start)


def accepted(asked, claim):
    try:
        RULES[claim.rule].check(asked, claim)
    except Refuted:
        return False
    return True


# -- dyadic fractions ------------------------------------------------------------------------


@given(generators(), st.integers(-300, 300))
def test_dyadic_products_are_those_of_fractions(rng, exponent):
    x, y = rng.standard_normal((3, 2)), np.ldexp(rng.standard_normal((2, 3)), exponent)
    made = exact.dyadic(x) @ exact.dyadic(y)
    for i in range(3):
        for j in range(3):
            wanted = sum(Fraction(x[i, k]) * Fraction(y[k, j]) for k in range(2))
            assert made[i, j].fraction() == wanted
    total = exact.dyadic(x) + exact.dyadic(y).T
    assert total[2, 1].fraction() == Fraction(x[2, 1]) + Fraction(y[1, 2])


def test_definiteness_is_decided_where_floats_cannot():
    # The determinants are 2^-80, 0 and -2^-80.
    up = exact.Dyadic(np.array([[2**80, 2**80], [2**80, 2**80 + 1]], dtype=object), -80)
    flat = exact.Dyadic(np.array([[2**80, 2**80], [2**80, 2**80]], dtype=object), -80)
    down = exact.Dyadic(np.array([[2**80, 2**80], [2**80, 2**80 - 1]], dtype=object), -80)
    assert [exact.positive_definite(m) for m in (up, flat, down)] == [True, False, False]
    assert [exact.positive_semidefinite(m) for m in (up, flat, down)] == [True, True, False]


@given(generators(), st.integers(1, 6))
def test_singular_gram_matrices_are_semidefinite_exactly(rng, n):
    factor = exact.dyadic(rng.standard_normal((n, max(n - 2, 1))))
    gram = factor @ factor.T
    assert exact.positive_semidefinite(gram)
    assert n <= max(n - 2, 1) or not exact.positive_definite(gram)
    assert not exact.positive_semidefinite(-gram)


def test_an_asymmetric_or_unbalanced_matrix_is_not_definite():
    assert not exact.positive_semidefinite(exact.dyadic(np.array([[1.0, 0.1], [0.2, 1.0]])))
    assert not exact.positive_definite(exact.dyadic(np.array([[1e-300, 1e300], [1e300, 1e-300]])))
    assert exact.positive_definite(exact.dyadic(np.diag([1e-300, 1e300])))
    assert not exact.positive_semidefinite(exact.dyadic(np.array([[0.0, 1e-9], [1e-9, 1.0]])))


# -- the quadratic form ----------------------------------------------------------------------


@given(generators(), dims, st.integers(1, 3))
def test_the_rate_of_y_is_that_of_the_field(rng, d, heads):
    """y' along the flow, from the vector field itself, against forms and operators."""
    p = gt.Parameters(
        A=rng.standard_normal((d, d)),
        V=rng.standard_normal((heads, d, d)),
        B=rng.standard_normal((heads, d, d)),
    )
    L, W = rng.standard_normal((d, d)), rng.standard_normal((d, d))
    W, S = W + W.T, L @ L.T
    M = p.A + sum(v @ S @ b for v, b, _ in p.heads)
    rate = np.trace(W @ (M @ S + S @ M.T))
    s = svec(S)
    form = quadratic_form(W, p.V, p.B)
    drift = drift_operator(p.A) @ svec(W)
    assert s @ form @ s + drift @ s == pytest.approx(rate, rel=1e-11, abs=1e-11)
    by_operator = (quadratic_operator(p.V, p.B) @ svec(W)).reshape(form.shape)
    np.testing.assert_allclose(by_operator, form, atol=1e-12 * (1 + np.abs(form).max()))
    np.testing.assert_allclose(smat(s, d), S, atol=1e-13 * np.abs(S).max())


@given(generators(), st.integers(2, 4))
def test_decomposition_into_symmetric_and_exterior_part(rng, d):
    """q_W(S) = 2 tr(N_s S B_s S) - 4 <a, wedge2(S) b>, and wedge2(S) is the compound matrix."""
    N, B, L = rng.standard_normal((3, d, d))
    S = L @ L.T
    i, j = np.triu_indices(d, 1)
    Ns, Bs, Na, Ba = (N + N.T) / 2, (B + B.T) / 2, (N - N.T) / 2, (B - B.T) / 2
    compound = wedge(S)
    left = 2 * np.trace(N @ S @ B @ S)
    right = 2 * np.trace(Ns @ S @ Bs @ S) - 4 * Na[i, j] @ compound @ Ba[i, j]
    assert left == pytest.approx(right, rel=1e-12, abs=1e-12 * np.abs(S).max() ** 2 * d**3)
    minors = [
        [np.linalg.det(S[np.ix_((a, b), (c, e))]) for c, e in zip(i, j, strict=True)]
        for a, b in zip(i, j, strict=True)
    ]
    np.testing.assert_allclose(compound, minors, atol=1e-11 * np.abs(S).max() ** 2)
    Z = rng.standard_normal(compound.shape)
    Z = Z + Z.T
    s = svec(S)
    assert s @ slack_form(Z, d) @ s == pytest.approx(
        np.sum(Z * compound), rel=1e-10, abs=1e-10 * np.abs(compound).max()
    )


@given(generators(), dims)
def test_the_exterior_power_vanishes_in_rank_one_and_is_semidefinite(rng, d):
    x = rng.standard_normal(d)
    assert np.abs(wedge(np.outer(x, x))).max(initial=0.0) <= 1e-14 * (x @ x) ** 2
    L = rng.standard_normal((d, d))
    values = np.linalg.eigvalsh(wedge(L @ L.T)) if d > 1 else np.zeros(1)
    assert values[0] >= -1e-12 * max(values[-1], 1.0)


@given(generators(), dims)
def test_the_exact_inequality_is_the_rate(rng, d):
    """The corner that is just enough is accepted, and a little less is refuted."""
    V, B = rng.standard_normal((2, d, d))
    p = gt.Parameters(A=rng.standard_normal((d, d)), V=V, B=B, noise=np.eye(d))
    W = np.eye(d)
    a = float(np.linalg.eigvalsh(p.A + p.A.T)[-1])
    q = d * (d - 1) // 2
    # q_W(S) <= 2 |V| |B| tr(S^2), and tr(S)^2 = tr(S^2) + 2 tr(wedge2 S).
    kappa = 2 * float(np.linalg.norm(V, 2) * np.linalg.norm(B, 2))
    Z = 2 * kappa * np.eye(q)
    numbers = {"quadratic": kappa * 1.01, "linear": a + 1e-9, "constant": float(d)}
    claim = Claim("decay", numbers=numbers, arrays={"W": W, "Z": Z[None]})
    check_inequality(problem(p), claim, sign=-1)
    for name, value in (("constant", d - 1e-9), ("linear", a - 1e-9)):
        with pytest.raises(Refuted):
            check_inequality(problem(p), replace(claim, numbers={**numbers, name: value}), sign=-1)


# -- comparison equations --------------------------------------------------------------------


@given(st.floats(0.01, 5), st.floats(-5, 5), st.floats(-5, 5), st.floats(0.1, 5))
def test_passage_times_are_integrals(quadratic, linear, constant, level):
    f = Comparison(*(Fraction(x) for x in (quadratic, linear, constant)))
    low, high = passage_time(f, Fraction(level))
    if not f.positive_from(Fraction(level)):
        assert (low, high) == (0.0, math.inf)
        return
    ends = [level, level + 0.1, level + 1, level + 10, mpmath.inf]
    with mpmath.workdps(30):
        integral = mpmath.quad(lambda y: 1 / (quadratic * y * y + linear * y + constant), ends)
        closest = min(float(f(Fraction(level))), -float(f.discriminant) / (4 * quadratic) or 1.0)
    assert low <= high <= low * (1 + 1e-12) + 1e-300
    if abs(closest) > 1e-3:
        assert low == pytest.approx(float(integral), rel=1e-9)


def test_passage_times_in_the_three_cases():
    def time(*coefficients, level=1):
        return passage_time(Comparison(*map(Fraction, coefficients)), Fraction(level))

    assert time(2, 1, 0)[1] == pytest.approx(math.log(1.5), rel=1e-15)
    assert time(1, 0, 0)[0] <= 1.0 <= time(1, 0, 0)[1]
    assert time(1, 0, 1, level=0)[1] == pytest.approx(math.pi / 2, rel=1e-15)
    assert time(1, -2, 2, level=0)[1] == pytest.approx(3 * math.pi / 4, rel=1e-15)
    assert time(1, 0, -1) == (0.0, math.inf)  # an equilibrium at the start
    assert time(1, -3, 2, level="0.5") == (0.0, math.inf)  # one above it
    assert time(0, 1, 0) == (0.0, math.inf)
    assert time(-1, 0, 5) == (0.0, math.inf)


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(-3, 3), st.floats(0.1, 3))
def test_solutions_are_those_of_an_integrator(quadratic, linear, constant, start):
    f = Comparison(*(Fraction(x) for x in (quadratic, linear, constant)))
    times = np.linspace(0, 0.05, 5)
    run = solve_ivp(
        lambda _, y: quadratic * y**2 + linear * y + constant,
        (0, times[-1]), [start], t_eval=times, rtol=1e-11, atol=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(solution(f, start, times), run.y[0], rtol=1e-8, atol=1e-9)


def test_the_solution_from_infinity_is_a_coth_and_blow_up_stays():
    alpha, theta = Fraction(3), Fraction(2)
    times = np.array([0.0, 0.1, 1.0, 5.0])
    made = solution(Comparison(-1 / theta, Fraction(0), alpha), math.inf, times)
    gamma = math.sqrt(6.0)
    assert made[0] == math.inf
    np.testing.assert_allclose(made[1:], gamma / np.tanh(times[1:] * gamma / 2), rtol=1e-13)
    after = solution(
        Comparison(Fraction(1), Fraction(0), Fraction(1)), 0.0, np.array([1.0, 1.6, 3.5, 4.0])
    )
    assert after[0] == pytest.approx(math.tan(1.0))
    assert np.all(np.isinf(after[1:]))


# -- claims by hand: V = I, B = -beta I, A = a I: y = tr S, y' <= 2 a y - (2 beta/n) y^2 --------


def scalar_like(n, a, beta):
    return gt.Parameters(A=a * np.eye(n), V=np.eye(n), B=-beta * np.eye(n))


def hand_claim(n, a, beta, rule, **numbers):
    """W = I and Z = 0: tr(S^2) >= tr(S)^2/n, with a little less of it for strict inequality."""
    q = n * (n - 1) // 2
    base = {"quadratic": -2 * beta / n, "linear": 2 * a, "constant": 0.0}
    arrays = {"W": np.eye(n), "Z": np.zeros((1, q, q))}
    return Claim(rule, numbers={**base, **numbers}, arrays=arrays)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_sharp_bound_of_scalar_parameters_is_proved_exactly(n):
    """With dyadic data lim sup tr S <= n a/beta holds without any margin, semidefinite blocks."""
    asked = problem(scalar_like(n, 1.5, 2.0))
    claim = hand_claim(n, 1.5, 2.0, "ultimate-bound", gamma=0.75 * n, bound=0.75 * n)
    assert accepted(asked, claim)
    said = RULES["ultimate-bound"].state(asked, claim)
    assert said.verdict is Verdict.BOUNDED
    assert said.scope is Scope.EVERY_START
    assert said.bound == 0.75 * n
    assert (said.lower, said.upper) == (math.inf, math.inf)
    lowered = {**claim.numbers, "gamma": 0.74 * n}
    assert not accepted(asked, replace(claim, numbers=lowered))
    lowered = {**claim.numbers, "bound": 0.74 * n}
    assert not accepted(asked, replace(claim, numbers=lowered))


def chained():
    """s' = 2 s - 2 s², s <= 5/4: 6 e - 8 s + 2 s² = 2 (s - 5/4)² + 3 (5/4 - s) + 6 e - 55/8."""
    one, none = np.ones((1, 1)), np.zeros((1, 1, 1))
    numbers = {"gamma": 1.25, "links": 1.0, "linear1": -6.0, "constant1": 6.885, "level1": 1.15}
    arrays = {"W1": one, "Lam1": none, "Z1": np.zeros((1, 0, 0)), "products1": none[None]}
    more = {"pushes1": 3 * one, "shares": np.array([0.0, 1.0])}
    first = hand_claim(1, 1.0, 1.0, "ultimate-bound", bound=1.15)
    return replace(
        first, numbers={**first.numbers, **numbers}, arrays={**first.arrays, **arrays, **more}
    )


def test_a_link_proves_in_a_half_space_what_is_wrong_elsewhere():
    """y' <= -6 (y - g) for all s needs g >= 4/3; for s <= 5/4 it needs g >= 55/48."""
    asked = problem(scalar_like(1, 1.0, 1.0))
    claim = chained()
    assert accepted(asked, claim)
    assert RULES["ultimate-bound"].state(asked, claim).bound == 1.15
    mixed = {"shares": np.array([1.0, 1.0])}
    both = replace(claim, arrays={**claim.arrays, **mixed})
    assert not accepted(asked, both)  # s <= (5/4 + 1.15)/2
    assert accepted(asked, replace(both, numbers={**claim.numbers, "bound": 1.2}))
    sharpest = {"constant1": 6.875 + 1e-9, "level1": 6.875 / 6 + 1e-9, "bound": 6.875 / 6 + 1e-9}
    assert accepted(asked, replace(claim, numbers={**claim.numbers, **sharpest}))


@pytest.mark.parametrize(
    ("numbers", "arrays"),
    [
        ({"bound": 1.149}, {}),
        ({"level1": 1.1474}, {}),
        ({"level1": math.inf}, {}),
        ({"level1": math.nan}, {}),
        ({"linear1": 6.0}, {}),
        ({"linear1": 0.0}, {}),
        ({"linear1": -6.1}, {}),
        ({"constant1": 6.874}, {}),
        ({"gamma": 1.0}, {}),  # y only tends to it
        ({"gamma": 1.3}, {}),
        ({"links": 2.0}, {}),
        ({"links": 0.5}, {}),
        ({"links": -1.0}, {}),
        ({"links": math.inf}, {}),
        ({"links": math.nan}, {}),
        ({"links": 0.0}, {}),  # without the link the bound is 5/4
        ({"rank": 1.0}, {}),
        ({}, {"pushes1": np.zeros((1, 1))}),
        ({}, {"pushes1": np.full((1, 1), 3.5)}),
        ({}, {"pushes1": np.full((1, 1), np.nan)}),
        ({}, {"pushes1": np.ones((1, 2))}),
        ({}, {"products1": np.full((1, 1, 1, 1), -0.1)}),
        ({}, {"products1": np.full((1, 1, 1, 1), 1.0)}),
        ({}, {"products1": np.zeros((1, 1, 1))}),
        ({}, {"W1": np.full((1, 1), 1.1)}),
        ({}, {"W1": np.full((1, 1), 0.9)}),
        ({}, {"Lam1": np.full((1, 1, 1), -0.1)}),
        ({}, {"Lam1": np.full((1, 1, 1), 1.0)}),
        ({}, {"shares": np.array([-1.0, 2.0])}),
        ({}, {"shares": np.array([1.0, 0.0])}),
        ({}, {"shares": np.array([0.0, 0.0])}),
        ({}, {"shares": np.array([0.0, 1.0, 1.0])}),
    ],
)
def test_a_tampered_link_is_refuted(numbers, arrays):
    asked, claim = problem(scalar_like(1, 1.0, 1.0)), chained()
    made = replace(claim, numbers={**claim.numbers, **numbers}, arrays={**claim.arrays, **arrays})
    with pytest.raises(Refuted, match=r"\w"):
        RULES["ultimate-bound"].check(asked, made)
    for name in ("W1", "Z1", "products1", "pushes1", "shares"):
        rest = {n: a for n, a in claim.arrays.items() if n != name}
        with pytest.raises(Refuted, match=r"\w"):
            RULES["ultimate-bound"].check(asked, replace(claim, arrays=rest))


def test_decay_needs_decay():
    asked = problem(scalar_like(2, -0.5, 1.0))
    claim = hand_claim(2, -0.5, 1.0, "decay")
    assert accepted(asked, claim)
    said = RULES["decay"].state(asked, claim)
    assert said.verdict is Verdict.CONVERGES
    assert said.bound == 0.0
    for name, value in (
        ("linear", -1.01),
        ("quadratic", -1.01),
        ("constant", 0.1),
        ("linear", 0.1),
        ("quadratic", math.nan),
    ):
        assert not accepted(asked, replace(claim, numbers={**claim.numbers, name: value}))
    noisy = gt.Parameters(A=-0.5 * np.eye(2), V=np.eye(2), B=-np.eye(2), noise=1e-9 * np.eye(2))
    assert not accepted(problem(noisy), claim)
    still = hand_claim(2, 0.0, 0.0, "decay")
    assert not accepted(problem(gt.Parameters(A=np.zeros((2, 2)))), still)


def test_blow_up_times_of_scalar_parameters():
    """V = I, B = beta I, A = a I: y' >= 2 a y + (2 beta/n) y^2 from above, y^2 <= tr(S)^2 below."""
    p = gt.Parameters(A=0.5 * np.eye(4), V=np.eye(4), B=np.eye(4))
    start = gt.Gaussian(np.zeros(4), np.eye(4))
    asked = problem(p, start=start)
    numbers = {"quadratic": 0.5, "linear": 1.0, "constant": 0.0}
    arrays = {"W": np.eye(4), "Z": np.zeros((1, 6, 6))}
    exact_time = math.log(1.5)
    claim = Claim("blow-up-upper", numbers={**numbers, "upper": exact_time + 1e-15}, arrays=arrays)
    assert accepted(asked, claim)
    said = RULES["blow-up-upper"].state(asked, claim)
    assert said.verdict is Verdict.BLOWS_UP
    assert said.upper == exact_time + 1e-15
    assert not accepted(
        asked, replace(claim, numbers={**claim.numbers, "upper": exact_time - 1e-15})
    )
    assert not accepted(problem(p), claim)  # no start
    # From below with the slack 2 (tr(S)^2 - tr(S^2)) = 4 tr(wedge2 S).
    arrays = {"W": np.eye(4), "Z": 4 * np.eye(6)[None]}
    lower = math.log(1 + 1 / 8)
    numbers = {"quadratic": 2.0, "linear": 1.0, "constant": 0.0}
    claim = Claim("blow-up-lower", numbers={**numbers, "lower": lower - 1e-15}, arrays=arrays)
    assert accepted(asked, claim)
    assert lower == pytest.approx(0.11778303565638346, rel=1e-14)
    assert RULES["blow-up-lower"].state(asked, claim).verdict is Verdict.UNDECIDED
    assert not accepted(asked, replace(claim, numbers={**claim.numbers, "lower": lower + 1e-15}))
    negative = replace(claim, arrays={**arrays, "Z": 4 * np.diag([1.0, 1, 1, 1, 1, 0.9])[None]})
    assert not accepted(asked, negative)


def test_a_basin_is_proved_without_blow_up():
    """s' = -2 s + 2 s^2: s < 1 decays, s = 1 stays, s > 1 blows up."""
    p = gt.Parameters(A=[[-1.0]], V=[[1.0]], B=[[1.0]])
    arrays = {"W": np.eye(1), "Z": np.zeros((1, 0, 0))}
    base = {"quadratic": 2.0, "linear": -2.0, "constant": 0.0, "lower": math.inf}

    def claim(level, *, decays):
        more = {"ceiling": level, "peak": level} | ({"decays": 1.0} if decays else {})
        return Claim("blow-up-lower", numbers={**base, **more}, arrays=arrays)

    def start(s):
        return problem(p, start=gt.Gaussian([0.0], [[math.sqrt(s)]]))

    assert accepted(start(0.25), claim(0.25, decays=True))
    assert RULES["blow-up-lower"].state(start(0.25), claim(0.25, decays=True)).lower == math.inf
    assert accepted(start(1.0), claim(1.0, decays=False))
    assert not accepted(start(1.0), claim(1.0, decays=True))
    assert not accepted(start(1.21), claim(1.21, decays=False))
    assert not accepted(start(0.25), claim(0.2, decays=True))
    small = claim(0.25, decays=True)
    assert not accepted(start(0.25), replace(small, numbers={**small.numbers, "peak": 0.2}))
    # Without the ceiling an unbounded time is not proved where the equation blows up.
    assert not accepted(start(0.25), Claim("blow-up-lower", numbers=base, arrays=arrays))


# -- malformed claims ------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["ultimate-bound", "decay", "blow-up-upper", "blow-up-lower"])
def test_missing_or_misshapen_data_are_refuted_in_words(rule):
    start = gt.Gaussian(np.zeros(2), np.eye(2))
    asked = problem(scalar_like(2, 1.0, 1.0), start=start)
    claim = hand_claim(
        2, 1.0, 1.0, rule, gamma=2.0, bound=2.0, lower=0.0, upper=1.0, ceiling=3.0, peak=3.0
    )
    broken = [
        Claim(rule),
        replace(claim, arrays={}),
        replace(claim, arrays={**claim.arrays, "W": np.eye(3)}),
        replace(claim, arrays={**claim.arrays, "W": np.eye(2, dtype=int)}),
        replace(claim, arrays={**claim.arrays, "W": np.array([[1.0, 0.1], [0.0, 1.0]])}),
        replace(claim, arrays={**claim.arrays, "W": np.full((2, 2), np.nan)}),
        replace(claim, arrays={**claim.arrays, "Z": np.zeros((2, 1, 1))}),
        replace(claim, arrays={**claim.arrays, "Lam": np.zeros((1, 3, 3))}),
        replace(claim, arrays={**claim.arrays, "Lam": np.full((1, 2, 2), np.inf)}),
        replace(claim, numbers={**claim.numbers, "quadratic": math.inf}),
        replace(claim, numbers={**claim.numbers, "linear": math.nan}),
        replace(claim, numbers={**claim.numbers, "rank": 1.0}),
        replace(claim, numbers={**claim.numbers, "rank": 2.0}),
    ]
    for made in broken:
        with pytest.raises(Refuted, match=r"\w"):
            RULES[rule].check(asked, made)


def test_free_slack_needs_a_start_of_rank_one_and_no_noise():
    quiet = gt.Parameters(V=np.eye(2) + 2 * J, B=-np.eye(2) - J)
    noisy = gt.Parameters(V=quiet.V, B=quiet.B, noise=1e-3 * np.eye(2))
    # V = I + kJ, B = -(I + lJ): y' = -2 tr(S^2) + 4 k l det S = -2 y^2 + 12 det S for kl = 2, and
    # det S = 0 in rank one.
    claim = Claim(
        "decay",
        numbers={"quadratic": -2.0, "linear": 0.0, "constant": 0.0, "rank": 1.0},
        arrays={"W": np.eye(2), "Z": np.array([[[-12.0]]])},
    )
    one = gt.Gaussian([0.0, 0.0], [[1.0], [0.5]])
    two = gt.Gaussian([0.0, 0.0], np.eye(2))
    assert accepted(problem(quiet, start=one), claim)
    assert RULES["decay"].state(problem(quiet, start=one), claim).scope is Scope.THIS_START
    assert not accepted(problem(quiet, start=two), claim)
    assert not accepted(problem(quiet), claim)
    assert not accepted(problem(noisy, start=one), claim)
    without = {name: v for name, v in claim.numbers.items() if name != "rank"}
    assert not accepted(problem(quiet, start=one), replace(claim, numbers=without))


# -- families --------------------------------------------------------------------------------


def test_mixed_pairs_are_needed_only_where_the_rate_is_not_affine():
    V1, V2, B1, B2, A1, A2 = np.random.default_rng(3).standard_normal((6, 2, 2))
    P = gt.Parameters
    one = P(A=A1, V=V1, B=B1)
    assert index_pairs((one,)) == ((0, 0),)
    assert index_pairs((one, P(A=A2, V=V2, B=B1))) == ((0, 0), (1, 1))
    assert index_pairs((one, P(A=A2, V=V1, B=B2))) == ((0, 0), (1, 1))
    assert index_pairs((one, P(A=A1, V=V2, B=B2))) == ((0, 0), (1, 1), (0, 1))
    product = tuple(P(A=A1, V=v, B=b) for v in (V1, V2) for b in (B1, B2))
    assert len(index_pairs(product)) == 4
    assert len(index_pairs(product[:3])) == 6
    noisy = P(A=A1, V=V1, B=B2, noise=np.eye(2))
    assert len(index_pairs((one, noisy))) == 2


def test_vertices_alone_are_not_enough():
    """V = ±I with B = ∓I dissipate alike, but in the middle there is V = B = 0."""
    first = gt.Parameters(A=0.5 * np.eye(2), V=np.eye(2), B=-np.eye(2))
    second = gt.Parameters(A=0.5 * np.eye(2), V=-np.eye(2), B=np.eye(2))
    claim = hand_claim(2, 0.5, 1.0, "ultimate-bound", gamma=1.0, bound=1.0)
    for vertex in (first, second):
        assert accepted(problem(vertex), claim)
    three = replace(claim, arrays={**claim.arrays, "Z": np.zeros((3, 1, 1))})
    assert not accepted(problem(first, second), three)
    # Exactly so: V = B = 0 grows without bound, as S' = S.
    middle = gt.Parameters(A=0.5 * np.eye(2))
    run = gt.simulate(gt.Gaussian([0.0, 0.0], np.eye(2)), middle, 5.0)
    assert np.trace(run.covariances[-1]) > 100
    # With one B for both, vertices suffice, and the hull has the bound of the worse one.
    weaker = gt.Parameters(A=0.5 * np.eye(2), V=2 * np.eye(2), B=-np.eye(2))
    pair = replace(claim, arrays={**claim.arrays, "Z": np.zeros((2, 1, 1))})
    assert accepted(problem(first, weaker), pair)
    text = RULES["ultimate-bound"].state(problem(first, weaker), pair).text
    assert "convex hull" in text


def test_vertices_with_other_heads_are_refuted():
    one = scalar_like(2, 1.0, 1.0)
    two = gt.Parameters(V=np.zeros((2, 2, 2)), B=np.zeros((2, 2, 2)))
    claim = hand_claim(2, 1.0, 1.0, "ultimate-bound", gamma=2.0, bound=2.0)
    with pytest.raises(Refuted, match="heads"):
        RULES["ultimate-bound"].check(problem(one, two), claim)


def test_necessary_signs():
    indefinite = gt.Parameters(V=np.eye(2), B=np.diag([1.0, -1.0]))
    negative = gt.Parameters(V=np.eye(2), B=-np.eye(2) + 3 * J)
    flat = gt.Parameters(V=np.eye(2), B=np.diag([-1.0, 0.0]))
    empty = gt.Parameters(A=np.eye(2))
    two = gt.Parameters(V=np.ones((2, 2, 2)), B=np.ones((2, 2, 2)))
    wide = gt.Parameters(V=np.eye(2), B=np.diag([-1e8, -1e-12]))
    assert [may_dissipate((p,)) for p in (indefinite, negative, flat, empty, two, wide)] == [
        False, True, False, False, True, True,
    ]  # fmt: skip
    # With B < 0 and V = I all decays, with V = -I it grows.
    same = gt.Parameters(V=-np.eye(2), B=-np.eye(2) + 3 * J)
    assert [may_grow((p,)) for p in (indefinite, negative, same, empty, two, wide)] == [
        False, False, True, False, True, False,
    ]  # fmt: skip


# -- units, envelopes ------------------------------------------------------------------------


@given(generators(), st.integers(2, 4), st.integers(-40, 40), st.integers(-40, 40))
@settings(max_examples=20)
def test_units_are_exact_and_near_one(rng, d, first, second):
    p = gt.Parameters(
        A=np.ldexp(rng.standard_normal((d, d)), first),
        V=np.ldexp(rng.standard_normal((d, d)), second),
        B=rng.standard_normal((d, d)) - 3 * np.eye(d),
        noise=np.ldexp(np.eye(d), first - 3),
    )
    units = scale((p,))
    made = units.vertex(p)
    largest = max(np.abs(made.A).max(), np.abs(made.V).max() * np.abs(made.B).max())
    assert 0.1 < largest < 100
    # tr(W S), its rate and the slack are the same in both units, up to the unit of time.
    W, L, Lam = rng.standard_normal((3, d, d))
    W, S, Lam = W + W.T, L @ L.T, Lam + Lam.T
    scaled = units.covariance(S)
    assert np.sum(units.weight(W) * S) == pytest.approx(np.sum(W * scaled), rel=1e-12)
    assert np.sum(units.multiplier(Lam) * S) == pytest.approx(
        math.ldexp(np.sum(Lam * scaled), units.rate), rel=1e-9
    )
    q = d * (d - 1) // 2
    Z = rng.standard_normal((q, q))
    Z = Z @ Z.T
    assert np.sum(units.slack(Z) * wedge(S)) == pytest.approx(
        math.ldexp(np.sum(Z * wedge(scaled)), units.rate), rel=1e-9
    )
    M = p.A + p.V @ S @ p.B
    rate = 2 * np.trace(units.weight(W) @ M @ S)
    small = made.A + made.V[0] @ scaled @ made.B[0]
    assert rate == pytest.approx(
        math.ldexp(2 * np.trace(W @ small @ scaled), units.rate),
        rel=1e-9,
        abs=1e-9 * math.ldexp(np.abs(W).max() * np.abs(scaled).max() ** 2, units.rate),
    )


def test_the_envelope_bounds_the_trajectory():
    p = scalar_like(2, 1.0, 1.0)
    claim = hand_claim(2, 1.0, 1.0, "ultimate-bound", gamma=2.0, bound=2.0)
    start = gt.Gaussian([0.0, 0.0], 3 * np.eye(2))
    run = gt.simulate(start, p, 2.0)
    y = levels(claim, run.covariances)
    above = envelope(claim, start, run.times)
    # S = s I makes the inequality an equality.
    np.testing.assert_allclose(y, above, rtol=1e-9)
    assert np.all(envelope(claim, None, run.times[1:]) > y[1:])

"""Rules of the regime tests: reference cases, tampering, symmetries."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, strategies as st

from gtcontrol import Gaussian, Parameters
from gtcontrol.certification.rules import RULES
from gtcontrol.certification.rules.base import Refuted, Scope
from gtcontrol.certification.rules.wording import rounded_down, rounded_up
from gtcontrol.certification.search.regimes import find
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.status import Verdict

from .regime_cases import I2, Z2, J, problem, proved, statement

G1 = (
    [[0.1, 0.2], [0.0, -0.1]],
    [[1.0, 0.5], [0.2, 0.8]],
    [[1.0, 0.3], [0.0, 0.7]],
)


def claims(case):
    return list(find(case))


def one(case, rule):
    found = [c for c in claims(case) if c.rule == rule]
    assert len(found) == 1
    assert proved(case, found[0])
    return found[0]


def changed(claim, name, value):
    """Return the claim with one number or array replaced."""
    if name in claim.numbers:
        return replace(claim, numbers={**claim.numbers, name: value})
    return replace(claim, arrays={**claim.arrays, name: value})


# -- blow-up along an eigenvector --------------------------------------------------------------


def test_spectral_bounds_of_both_eigenvalues():
    """Closed forms in 60 digits: 0.4189475613181329244 and 1.7653794804247026299."""
    case = problem(*G1, I2)
    claim = one(case, "spectral-blow-up")
    assert claim.numbers["bound"] == pytest.approx(0.4189475613181329244, rel=1e-14)
    assert claim.numbers["bound"] >= 0.4189475613181329
    V = np.array(G1[1])
    values, vectors = np.linalg.eig(V.T)
    j = int(np.argmin(values))
    w = vectors[:, j] / vectors[np.argmax(np.abs(vectors[:, j])), j]
    other = replace(
        claim,
        numbers={"every_start": 0.0, "bound": 1.7653794804247026299 * (1 + 1e-15)},
        arrays={"p": w, "q": np.zeros(2), "values": np.array([[values[j], 0.0]])},
    )
    assert proved(case, other)
    assert not proved(case, changed(other, "bound", 1.7653794804247026299 * (1 - 1e-15)))


@pytest.mark.parametrize(
    ("case", "time"),
    [
        (problem(Z2, np.diag([2.0, -1]), I2, I2), 1 / 4),
        (problem(Z2, [np.diag([1.0, 0]), np.diag([0.0, 1])], [I2, 2 * I2], I2), 1 / 4),
        (problem(Z2, [np.diag([1.0, 0]), np.diag([0.0, 1])], [I2, -2 * I2], I2), 1 / 2),
        (problem(0.5 * np.eye(4), np.eye(4), np.eye(4), np.eye(4)), np.log(1.5)),
        (problem([[0.5]], [[1]], [[1]], [[1]]), np.log(1.5)),
        (problem([[-1]], [[1]], [[1]], [[2]]), np.log(2) / 2),
    ],
)
def test_bounds_that_are_the_blow_up_time_itself(case, time):
    claim = one(case, "spectral-blow-up")
    assert claim.numbers["bound"] == pytest.approx(time, rel=1e-14)
    assert not proved(case, changed(claim, "bound", time * (1 - 1e-13)))


def test_bound_of_a_matrix_of_order_three():
    """T* lies in [0.30178997492226, 0.30178997492527], so the bound is above."""
    case = problem(
        [[1 / 5, 0, -1 / 10], [1 / 10, -1 / 5, 0], [0, 1 / 10, 1 / 10]],
        [[1, 1 / 2, 0], [0, 1 / 2, 1 / 4], [0, 0, 3 / 2]],
        [[1, 1 / 2, 0], [0, 1, 0], [1 / 4, 0, 1]],
        np.diag([1, 1 / 2, 1]),
    )
    assert 0.30178997492226 < one(case, "spectral-blow-up").numbers["bound"] < 0.34


def test_threshold_below_which_nothing_is_said():
    """s' = -2s + 2s² blows up if and only if s(0) > 1."""
    for s0, blows in ((1.001, True), (1.0, False), (0.5, False)):
        case = problem([[-1]], [[1]], [[1]], [[s0]])
        rules = {c.rule for c in claims(case)}
        assert ("spectral-blow-up" in rules) == blows
        if not blows:
            claim = one(case, "spectral-blow-up-data")
            assert claim.numbers["threshold"] == pytest.approx(1.0, rel=1e-14)
            assert not proved(case, changed(claim, "threshold", 0.999))
            assert not proved(case, changed(claim, "threshold", np.inf))
            assert not proved(case, changed(claim, "example", 0.9))
            assert not proved(case, changed(claim, "bound", 0.9 * claim.numbers["bound"]))


def test_complex_eigenvalues():
    """S = sI with V = I + J and B = I + lJ: s' = 2(1 - l)s², for w = (1, ±i)."""
    for skew in (0.5, -0.5):
        case = problem(Z2, I2 + J, I2 + skew * J, I2)
        claim = one(case, "spectral-blow-up")
        assert np.any(claim.arrays["q"])
        time = 1 / (2 * (1 - skew))
        assert claim.numbers["bound"] >= time * (1 - 1e-15)
        assert claim.numbers["bound"] == pytest.approx(time, rel=1e-12)
    assert not [c for c in claims(problem(Z2, I2 + 2 * J, I2 + J, I2)) if "spectral" in c.rule]


def test_noise_makes_every_start_blow_up():
    """s' = s² + 1 has T = π/2 from 0, and s' = s + s² + 1/4 has T = 2."""
    for A, Q, time in ((0.0, 1.0, np.pi / 2), (0.5, 0.25, 2.0)):
        case = problem([[A]], [[1]], [[0.5]], noise=[[Q]])
        claim = one(case, "spectral-blow-up")
        said = statement(case, claim)
        assert said.scope is Scope.EVERY_START
        assert said.verdict is Verdict.BLOWS_UP
        assert said.upper == pytest.approx(time, rel=1e-12)
        assert not proved(case, changed(claim, "bound", 0.999 * time))


def test_the_dichotomy_is_said_only_for_symmetric_scores():
    V = np.diag([1.0, -1])
    said = {
        skew: statement(case, one(case, "spectral-blow-up-data")).text
        for skew in (0.0, 0.1)
        for case in [problem(I2, V, -I2 + skew * J)]
    }
    assert "V decides" in said[0.0]
    assert "V decides" not in said[0.1]


# -- dissipative -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3])
def test_the_bound_is_the_limit_for_scalar_matrices(n):
    """V = I, B = -βI, A = aI: tr S tends to n a/β."""
    case = problem(0.5 * np.eye(n), np.eye(n), -2 * np.eye(n))
    claim = one(case, "dissipative")
    assert claim.numbers["bound"] == pytest.approx(n / 4, rel=1e-6)
    assert claim.numbers["bound"] >= n / 4
    said = statement(case, claim)
    assert said.verdict is Verdict.BOUNDED
    assert said.lower == said.upper == np.inf


def test_noise_enters_the_bound():
    """s' = -2s² + 2 tends to 1."""
    case = problem([[0.0]], [[1]], [[-1]], noise=[[2]])
    assert one(case, "dissipative").numbers["bound"] == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(
    ("k", "skew", "dissipative"),
    [(0.5, 0.5, True), (3, -2, True), (3, -0.3, True), (3, 0.3, True), (2, 0.5, False)]
    + [(2, 1, False), (2, 2, False)],
)
def test_opposite_definiteness_alone_is_not_enough(k, skew, dissipative):
    """V = I + kJ, B = -(I + lJ): S = sI obeys s' = -2(1 - kl)s², and blows up if kl > 1."""
    case = problem(Z2, I2 + k * J, -(I2 + skew * J), I2)
    rules = {c.rule for c in claims(case) if proved(case, c)}
    assert ("dissipative" in rules) == dissipative
    if not dissipative:
        assert rules == {"no-quadratic-certificate-antistable-value"}


@pytest.mark.parametrize(
    ("A", "V", "B", "limit"),
    [
        ([[10, -7.5], [5, -3]], [[1, 0.5], [0.5, 1]], -I2, 10.0),
        ([[112, -19], [-70, 12]], [[5, -3], [-3, 2]], np.diag([-7.0, -1]), 5.01592),
        ([[4, 10.5], [-76, 18]], [[1, 1], [1, 4]], [[-3, 1], [1, -1]], 7.87746),
        (np.diag([1, 0.5]), [[2, 1], [0, 1]], [[-1, -1], [1, -2]], 0.8543363817),
    ],
)
def test_bounded_systems_with_one_many_and_periodic_limits(A, V, B, limit):
    """Rank lost, two attractors, a limit cycle, skew parts: "bounded", never "converges"."""
    case = problem(A, V, B)
    claim = one(case, "dissipative")
    assert statement(case, claim).verdict is Verdict.BOUNDED
    assert claim.numbers["bound"] > limit


def test_values_of_one_jordan_block_and_of_a_complex_sector():
    assert one(problem(I2, [[1, 1], [0, 1]], -I2), "dissipative")
    # |Im λ| < Re λ/β, with β the size of the skew part of B.
    for angle, inside in ((0.9, True), (1.1, False)):
        block = np.block([[I2 + angle * J, np.zeros((2, 1))], [np.zeros((1, 2)), np.ones((1, 1))]])
        K = np.zeros((3, 3))
        K[0, 1], K[1, 0] = 1.0, -1.0  # the sign that does not help
        for T in (np.eye(3), np.array([[1.0, 2, 0], [0, 1, 1], [0, 0, 1]])):
            R = np.linalg.inv(T)
            case = problem(np.eye(3), T @ block @ R, R.T @ (K - np.eye(3)) @ R)
            assert bool([c for c in claims(case) if c.rule == "dissipative"]) == inside


def test_several_heads_with_a_common_metric():
    case = problem(I2, [np.diag([1.0, 0]), np.diag([0.0, 1])], [-I2, -2 * I2])
    claim = one(case, "dissipative")
    assert not proved(case, changed(claim, "score_sizes", 0.9 * claim.arrays["score_sizes"]))
    assert not proved(case, changed(claim, "value_sizes", 0.9 * claim.arrays["value_sizes"]))
    # Equal score matrices make one head, whatever the single value matrices are.
    assert one(problem(I2, [[[3.0, 1], [0, 0]], [[-1.0, -1], [0, 2]]], [-I2, -I2]), "dissipative")


def test_a_family_is_dissipative_in_its_hull():
    V = [np.array([[1.0, 0.3], [0, 1]]), np.array([[2.0, 0], [0.4, 1]])]
    B = [-I2 + 0.2 * J, -np.diag([1.0, 3])]
    vertices = tuple(Parameters(A=I2 * k, V=V[k], B=B[k]) for k in range(2))
    case = CertificationProblem(vertices)
    claim = one(case, "dissipative")
    for mix in (0.25, 0.5, 0.9):
        inside = Parameters(
            A=mix * I2, V=(1 - mix) * V[0] + mix * V[1], B=(1 - mix) * B[0] + mix * B[1]
        )
        assert proved(CertificationProblem((inside,)), claim)
    outside = CertificationProblem((*vertices, Parameters(A=I2, V=-I2, B=-I2)))
    assert not proved(outside, claim)
    # θ must hold for mixed pairs of vertices, too.
    assert not proved(case, changed(claim, "theta", 0.9 * claim.numbers["theta"]))


# -- no certificate ----------------------------------------------------------------------------


def test_an_indefinite_score_matrix_excludes_all():
    case = problem(I2, [[1, 0.5], [0.2, 1]], np.diag([1.0, -1]), I2)
    claim = one(case, "no-quadratic-certificate-indefinite-score")
    said = statement(case, claim)
    assert said.verdict is Verdict.UNDECIDED
    assert "No quadratic certificate can exist" in said.text
    assert not proved(case, changed(claim, "positive", claim.arrays["negative"]))
    assert not proved(problem(I2, I2, np.diag([1.0, 2])), claim)
    assert not proved(problem(I2, I2, np.diag([1.0, 0])), claim)


def test_heads_with_common_isotropic_vectors():
    rng = np.random.default_rng(0)
    case = problem(np.eye(6), rng.standard_normal((3, 6, 6)), rng.standard_normal((3, 6, 6)))
    claim = one(case, "no-quadratic-certificate-common-isotropy")
    points = claim.arrays["points"]
    assert not proved(case, changed(claim, "points", points[:1]))
    assert not proved(case, changed(claim, "points", np.stack([points[0], points[0]])))
    assert not proved(case, changed(claim, "points", points + 0.1))
    definite = problem(np.eye(6), rng.standard_normal((2, 6, 6)), [np.eye(6), np.diag(range(1, 7))])
    assert not proved(definite, claim)


def test_the_spectrum_of_the_value_matrix_excludes_one_kind():
    # Herm(λB) is not definite for λ = -1 ± 3i, so there is no blow-up along an eigenvector.
    V, B = np.array([[-1.0, -3], [3, -1]]), -I2 + J
    case = problem(Z2, V, B)
    claim = one(case, "no-quadratic-certificate-value-spectrum")
    assert "of boundedness" in statement(case, claim).text
    assert not proved(case, changed(claim, "sign", 1.0))
    assert not proved(problem(Z2, -V, B), claim)
    other = problem(Z2, I2 + 2 * J, -(I2 + J))
    claim = one(other, "no-quadratic-certificate-antistable-value")
    assert "of blow-up" in statement(other, claim).text
    assert not proved(other, changed(claim, "sign", 1.0))
    assert not proved(other, changed(claim, "metric", -claim.arrays["metric"]))
    assert not proved(problem(Z2, np.diag([1.0, -1]), -I2), claim)


# -- rank one without A ------------------------------------------------------------------------

VR = np.array([[1.0, 1], [0, 2]])


def test_rank_one_converges_to_the_first_zero():
    case = problem(Z2, VR, [[1, -3], [0, -1]], L=[0, 1])
    claim = one(case, "rank-one-limit")
    z = (1 + np.sqrt(13)) / 6
    assert claim.arrays["factor"] == pytest.approx([z * z - z, z * z], rel=1e-13)
    assert not proved(case, changed(claim, "factor", claim.arrays["factor"] + 1e-9))
    assert not proved(case, changed(claim, "high", 0.9 * claim.numbers["high"]))
    assert not proved(case, changed(claim, "high", np.inf))
    assert not proved(case, changed(claim, "low", 1.001 * claim.numbers["low"]))
    assert not proved(case, changed(claim, "error", -1.0))


@pytest.mark.parametrize(
    ("B", "L", "time"),
    [
        ([[1, -3], [0, -1]], [1, 0], 0.5),
        ([[1, 2], [0, 0.5]], [1, 0.5], 0.13806038326269424),
    ],
)
def test_rank_one_blows_up_at_the_integral(B, L, time):
    case = problem(Z2, VR, B, L=L)
    claim = one(case, "rank-one-blow-up")
    lower, upper = claim.numbers["lower"], claim.numbers["upper"]
    assert lower <= time * (1 + 2e-16)
    assert upper >= time * (1 - 2e-16)
    assert upper - lower <= 1e-14 * time
    assert not proved(case, changed(claim, "upper", lower))
    assert not proved(case, changed(claim, "lower", upper))
    assert not proved(case, changed(claim, "cut", -1.0))
    assert not proved(problem(0.1 * I2, VR, B, L=L), claim)
    assert not proved(problem(Z2, VR, B, I2), claim)
    assert not proved(problem(Z2, VR, B, L=np.multiply(L, 1.01)), claim)
    assert not proved(problem(Z2, VR, B), claim)


def test_rank_one_that_dies_out_stands_still_or_loses_a_part():
    dies = problem(Z2, np.diag([2.0, -1]), I2, L=[0, 1])  # s = 1/(1 + 2t)
    assert not np.any(one(dies, "rank-one-limit").arrays["factor"])
    still = problem(Z2, VR, np.diag([1.0, -1]), L=[1, 1])
    claim = one(still, "rank-one-limit")
    assert np.array_equal(claim.arrays["factor"], [1.0, 1.0])
    assert not proved(still, changed(claim, "factor", np.array([1.0, 1.0 + 1e-15])))
    part = problem(Z2, np.diag([0.0, -1]), I2, L=[3, 1])
    assert one(part, "rank-one-limit").arrays["factor"] == pytest.approx([3.0, 0.0], abs=1e-15)


def test_multiple_eigenvalues_are_left_alone():
    """Jordan blocks are not solved by sums of exponentials; a scalar V is."""
    assert not [
        c for c in claims(problem(Z2, [[1, 1], [0, 1]], I2, L=[0, 1])) if "rank-one" in c.rule
    ]
    claim = one(problem(Z2, I2, I2, L=[1, 1]), "rank-one-blow-up")
    assert claim.numbers["upper"] == pytest.approx(1 / 4, rel=1e-14)


# -- all rules --------------------------------------------------------------------------------

CASES = (
    problem(*G1, I2),
    problem(*G1),
    problem(Z2, I2 + J, I2 + 0.5 * J, I2),
    problem(np.diag([1, 0.5]), [[2, 1], [0, 1]], [[-1, -1], [1, -2]], noise=I2),
    problem(I2, [np.diag([1.0, 0]), np.diag([0.0, 1])], [-I2, -2 * I2]),
    problem(I2, I2, np.diag([1.0, -1])),
    problem(Z2, I2 + 2 * J, -(I2 + J)),
    problem(Z2, [[-1, -3], [3, -1]], -I2 + J),
    problem(Z2, VR, [[1, -3], [0, -1]], L=[0, 1]),
    problem(Z2, VR, [[1, 2], [0, 0.5]], L=[1, 0.5]),
)


@pytest.mark.parametrize("case", CASES)
def test_missing_misshapen_and_infinite_data_are_refuted(case):
    for claim in claims(case):
        rule = RULES[claim.rule]
        for name in claim.numbers:
            rest = {k: v for k, v in claim.numbers.items() if k != name}
            with pytest.raises(Refuted):
                rule.check(case, replace(claim, numbers=rest))
            with pytest.raises(Refuted):
                rule.check(case, changed(claim, name, np.nan))
            if name not in ("low", "high", "error", "cut", "bound", "upper"):
                with pytest.raises(Refuted):
                    rule.check(case, changed(claim, name, np.inf))
        for name, array in claim.arrays.items():
            rest = {k: v for k, v in claim.arrays.items() if k != name}
            with pytest.raises(Refuted):
                rule.check(case, replace(claim, arrays=rest))
            for wrong in (array[..., None], array * np.nan, np.zeros(0), array.astype(np.float32)):
                with pytest.raises(Refuted):
                    rule.check(case, changed(claim, name, wrong))


@pytest.mark.parametrize("case", CASES)
def test_every_number_that_matters_is_checked(case):
    """Nine tenths of a bound, a constant or an entry of the data do not prove the claim."""
    sensitive = ("bound", "theta", "sector", "skewness", "threshold", "upper", "floor")
    for claim in claims(case):
        assert proved(case, claim)
        for name in sensitive:
            value = claim.numbers.get(name, 0.0)
            factor = 1.1 if name == "floor" else 0.9
            skew = claim.numbers.get("sector", 0.0) * claim.numbers.get("skewness", 0.0)
            if value > 1e-9 and (name not in ("sector", "skewness") or skew > 1e-3):
                assert not proved(case, changed(claim, name, factor * value)), (claim.rule, name)
        for name in ("p", "values", "metric", "factor"):
            if name in claim.arrays and "antistable" not in claim.rule:
                array = claim.arrays[name].copy()
                array.flat[0] += 0.01
                assert not proved(case, changed(claim, name, array)), (claim.rule, name)


@pytest.mark.parametrize("case", CASES)
def test_claims_do_not_prove_things_about_other_parameters(case):
    p = case.parameters
    zero = CertificationProblem((Parameters(A=p.A, dim=p.dim),), case.start)
    flipped = CertificationProblem((Parameters(A=p.A, V=p.V, B=-p.B, noise=p.noise),), case.start)
    for claim in claims(case):
        assert not proved(zero, claim)
        if "indefinite" not in claim.rule:
            assert not proved(flipped, claim)


def test_constant_rules_refuse_families():
    case = problem(*G1, I2)
    family = CertificationProblem((*case.vertices, *case.vertices), case.start)
    assert not any(proved(family, c) for c in claims(case))


# -- symmetries --------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.sampled_from([-4.0, -0.5, 2.0, 1024.0]))
def test_only_the_product_of_value_and_score_matters(seed, c):
    """(V, B) and (cV, B/c) are the same head, for negative c, too."""
    rng = np.random.default_rng(seed)
    A, V, B, L = rng.standard_normal((4, 2, 2))
    B = B @ B.T * (1 if seed % 2 else -1) + 0.3 * (B - B.T)
    first, second = problem(A, V, B, L=L), problem(A, c * V, B / c, L=L)
    mine, other = claims(first), claims(second)
    # The vector that excludes is found on the other side for negative c, so rules are compared.
    assert {x.rule for x in mine} == {x.rule for x in other}
    for x, y in zip(mine, other, strict=True):
        if "bound" in x.numbers and np.isfinite(x.numbers["bound"]):
            assert x.numbers["bound"] == pytest.approx(y.numbers["bound"], rel=2e-2)


@given(st.integers(0, 10**6))
def test_bounds_of_blow_up_do_not_depend_on_coordinates(seed):
    rng = np.random.default_rng(seed)
    A, V, B, L, T = rng.standard_normal((5, 2, 2))
    T += 2.0 * I2 * np.sign(np.linalg.det(T + 2 * I2))
    if np.linalg.cond(T) > 20:
        return
    B = B @ B.T + 0.1 * I2 + 0.2 * (B - B.T)
    R = np.linalg.inv(T)
    first = problem(A, V, B, L=3 * L)
    second = problem(T @ A @ R, T @ V @ R, R.T @ B @ R, L=3 * T @ L)
    mine, other = (
        {c.rule: c.numbers["bound"] for c in claims(x) if c.rule == "spectral-blow-up"}
        for x in (first, second)
    )
    assert mine.keys() == other.keys()
    for rule, bound in mine.items():
        assert bound == pytest.approx(other[rule], rel=1e-8)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_entries_of_any_size(scale):
    """Time scales with A; the covariance with V and B."""
    base = one(problem(*G1, I2), "spectral-blow-up").numbers["bound"]
    A, V, B = (np.array(x) for x in G1)
    claim = one(problem(scale * A, scale * V, B, I2), "spectral-blow-up")
    assert claim.numbers["bound"] * scale == pytest.approx(base, rel=1e-12)
    claim = one(problem(A, scale * V, scale * B, I2 / scale**2), "spectral-blow-up")
    assert claim.numbers["bound"] == pytest.approx(base, rel=1e-12)
    claim = one(problem(A, scale * V, -scale * B), "dissipative")
    plain = one(problem(A, V, -B), "dissipative")
    assert claim.numbers["bound"] * scale**2 == pytest.approx(plain.numbers["bound"], rel=1e-2)
    D = np.diag([scale, 1.0])
    mixed = problem(
        D @ A / D.diagonal(), D @ V / D.diagonal(), B / np.outer(*2 * [D.diagonal()]), L=D
    )
    assert one(mixed, "spectral-blow-up").numbers["bound"] == pytest.approx(base, rel=1e-6)


# -- words --------------------------------------------------------------------------------


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 12))
def test_rounded_numbers_stay_on_their_side(value, digits):
    assert (
        Decimal(rounded_down(value, digits)) <= Decimal(value) <= Decimal(rounded_up(value, digits))
    )


@pytest.mark.parametrize("case", CASES)
def test_statements_are_sentences_without_the_word_of_others(case):
    for claim in claims(case):
        said = statement(case, claim)
        assert said.text.endswith(".")
        assert "proved" not in said.text
        assert "nan" not in said.text


def test_starts_of_rank_zero_are_no_starts():
    law = Gaussian(np.zeros(2), np.zeros((2, 0)))
    p = Parameters(A=G1[0], V=G1[1], B=G1[2])
    case = CertificationProblem((p,), law)
    assert {c.rule for c in claims(case)} == {"spectral-blow-up-data"}


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (2.0, "2", "2"),
        (100.0, "100", "100"),
        (1 / 3, "0.334", "0.333"),
        (-1e-9 / 3, "-3.33e-10", "-3.34e-10"),
        (123456.0, "1.24e+5", "1.23e+5"),
        (float("inf"), "inf", "inf"),
        (0.0, "0", "0"),
    ],
)
def test_rounded_numbers_are_short(value, up, down):
    assert (rounded_up(value, 3), rounded_down(value, 3)) == (up, down)

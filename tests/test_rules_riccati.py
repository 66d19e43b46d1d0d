"""Rules for V = v I: what they prove, and that they refuse whatever was changed."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import gtcontrol as gt
from gtcontrol.certification.rules import rule
from gtcontrol.certification.rules.base import Refuted, Scope
from gtcontrol.certification.search.riccati import find
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.results.claims import Claim
from gtcontrol.status import Verdict

from .strategies import factor as make_factor, generators
from .test_riccati_blow_up import KNOWN, NEVER, NOISY, SADDLE, TURN
from .test_riccati_equilibria import ATTRACTORS, E1, E7, E8, K7, K8, U8

I2 = np.eye(2)


def problem(A, K, L=None, noise=None, value=1.0):
    """Problem with V = v I and B = K/(2v), which is exact for the values of v used here."""
    A, K = np.asarray(A, dtype=float), np.asarray(K, dtype=float)
    parameters = gt.Parameters(A=A, B=K / (2 * value), V=value * np.eye(len(A)), noise=noise)
    start = None if L is None else gt.Gaussian(np.zeros(len(A)), L)
    return CertificationProblem((parameters,), start)


def proves(asked, claim):
    """Whether the rule of a claim confirms it."""
    try:
        rule(claim.rule).check(asked, claim)
    except Refuted:
        return False
    return True


def proved(asked):
    """Claims that are found and confirmed, by the name of the rule; the strongest first."""
    made = {}
    for claim in find(asked):
        if proves(asked, claim):
            made.setdefault(claim.rule, []).append(claim)
    return made


def stated(asked, claim):
    return rule(claim.rule).state(asked, claim)


@pytest.mark.parametrize("value", [1.0, -0.5])
@pytest.mark.parametrize("name", KNOWN)
def test_blow_up_times_are_proved_from_the_claim_alone(name, value):
    A, K, L, time = KNOWN[name]
    asked = problem(A, K, L, value=value)
    (claim,) = proved(asked)["riccati-blow-up"]
    said = stated(asked, claim)
    assert (said.verdict, said.scope) == (Verdict.BLOWS_UP, Scope.THIS_START)
    assert said.lower * (1 - 1e-15) <= time <= said.upper * (1 + 1e-15)
    assert said.upper - said.lower <= 1e-12 * time


@pytest.mark.parametrize("name", NEVER)
def test_no_blow_up_is_proved_from_the_claim_alone(name):
    A, K, L = NEVER[name]
    asked = problem(A, K, L)
    claim = proved(asked)["riccati-no-blow-up"][0]
    said = stated(asked, claim)
    assert said.lower == said.upper == math.inf
    expected = {
        "at-threshold": Verdict.BOUNDED,  # the covariance does not tend to 0 there
        "below-threshold": Verdict.CONVERGES,
        "below-threshold-2": Verdict.CONVERGES,
        "turning": Verdict.BOUNDED,
        "no-covariance": Verdict.BOUNDED,
        "saddle": Verdict.BOUNDED,
    }
    assert said.verdict is expected.get(name, Verdict.UNDECIDED)


@pytest.mark.parametrize("name", NOISY)
def test_blow_up_with_noise_is_proved_from_the_claim_alone(name):
    A, K, noise, L, time = NOISY[name]
    asked = problem(A, K, L, noise)
    (claim,) = proved(asked)["riccati-blow-up"]
    said = stated(asked, claim)
    assert said.lower * (1 - 1e-15) <= time <= said.upper * (1 + 1e-15)
    changed = problem(A, K, L, 1.01 * noise)
    assert not proves(changed, claim)


def test_without_blow_up_with_noise():
    asked = problem([[-2.0]], [[1.0]], [[1.0]], [[1.0]])
    claim = proved(asked)["riccati-no-blow-up"][0]
    assert stated(asked, claim).verdict is Verdict.BOUNDED
    assert "noise" in stated(asked, claim).text
    assert not proves(problem([[-2.0]], [[1.0]], [[2.0]], [[1.0]]), claim)


def test_a_tangency_is_marginal():
    asked = problem(TURN, SADDLE, math.sqrt(3) * I2)
    (claim,) = proved(asked)["riccati-tangency"]
    said = stated(asked, claim)
    assert said.verdict is Verdict.MARGINAL
    assert said.lower < math.pi / 6
    assert said.upper == math.inf
    assert not proves(problem(TURN, SADDLE, math.sqrt(2.99) * I2), claim)
    assert not proves(asked, changed_number(claim, "excess", 1e-16))


def test_a_later_positive_definite_value_does_not_mislead():
    A, K, L, _ = KNOWN["turning-later"]
    assert "riccati-no-blow-up" not in proved(problem(A, K, L))
    # Steps that jump over the blow-up to where I - C is positive definite again.
    (claim,) = proved(problem(A, K, L))["riccati-blow-up"]
    jump = changed_array(claim, "steps", np.array([1.0]))
    later = replace(jump, numbers={"lower": 0.9, "upper": 1.1})
    assert not proves(problem(A, K, L), later)


# -- signs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("A", "K"),
    [
        (np.zeros((2, 2)), I2),
        (np.array([[0.0, 1.0], [0.0, 0.0]]), I2),
        (TURN, I2),
        (E1, I2),
        (np.array([[0.0, 1.0], [0.0, 0.0]]), np.diag([1.0, 0.0])),  # observable, K singular
        (np.diag(np.arange(1.0, 51.0)), np.eye(50)),
        ([[0.0]], [[2.0]]),
    ],
)
def test_every_start_blows_up(A, K):
    asked = problem(A, K)
    (claim,) = proved(asked)["riccati-every-start-blows-up"]
    said = stated(asked, claim)
    assert (said.verdict, said.scope) == (Verdict.BLOWS_UP, Scope.EVERY_START)


@pytest.mark.parametrize(
    ("A", "K"),
    [
        (-1e-300 * np.eye(2), I2),  # the modes decay, however slowly
        (np.diag([1.0, -1e-12]), I2),
        (np.array([[0.0, 1.0], [0.0, 0.0]]), np.diag([0.0, 1.0])),  # e1 is not observed
        (np.zeros((2, 2)), SADDLE),
        (np.zeros((2, 2)), np.zeros((2, 2))),
    ],
)
def test_not_every_start_blows_up(A, K):
    assert not proves(problem(A, K), Claim("riccati-every-start-blows-up"))


@pytest.mark.parametrize(
    "A", [np.zeros((2, 2)), TURN, np.eye(3, k=1), np.diag([-1.0, 0.0]), -E1, np.array([[0.0]])]
)
def test_covariances_fade_without_growing_modes(A):
    K = -np.eye(len(A))
    asked = problem(A, K)
    (claim,) = proved(asked)["riccati-fades"]
    said = stated(asked, claim)
    assert (said.verdict, said.scope, said.bound) == (Verdict.CONVERGES, Scope.EVERY_START, 0.0)
    beyond = 1e-12 + (1.0 if A[0, 0] == -1 else 0.0)
    assert not proves(problem(A + beyond * np.eye(len(A)), K), claim)
    assert not proves(problem(np.zeros((2, 2)), np.diag([-1.0, 0.0])), claim)


@pytest.mark.parametrize("K", [-I2, -np.diag([1.0, 0.0]), np.zeros((2, 2)), -np.ones((2, 2))])
def test_no_start_blows_up(K):
    asked = problem(E1, K)
    (claim,) = proved(asked)["riccati-no-start-blows-up"]
    assert stated(asked, claim).scope is Scope.EVERY_START
    hair = 1e-14 + np.linalg.eigvalsh(-K)[0]
    assert not proves(problem(E1, K - hair * SADDLE), claim)


def test_several_heads_add_up():
    """v_1 B_1 + v_2 B_2 decide together: here 2 - 3 < 0, exactly."""
    B = np.array([[1.0, 0.3], [-0.2, 1.0]])
    heads = {"B": np.stack([B, B]), "V": np.stack([2 * I2, -3 * I2])}
    asked = CertificationProblem((gt.Parameters(A=E1, **heads),))
    assert "riccati-no-start-blows-up" in proved(asked)
    cancelling = {"B": np.stack([B, B]), "V": np.stack([3 * I2, -3 * I2])}
    exact = CertificationProblem((gt.Parameters(A=E1, **cancelling),))
    assert "riccati-no-start-blows-up" in proved(exact)  # K = 0


def test_other_values_and_families_are_not_for_these_rules():
    other = gt.Parameters(A=E1, B=-I2, V=np.diag([1.0, 1.0 + 1e-15]))
    scalar = gt.Parameters(A=E1, B=-I2, V=I2)
    for vertices in ((other,), (scalar, scalar)):
        asked = CertificationProblem(vertices)
        assert not list(find(asked))
        assert not proves(asked, Claim("riccati-no-start-blows-up"))


def test_the_threshold():
    asked = problem([[-1.0, 1.0], [0.0, -2.0]], I2)
    (claim,) = proved(asked)["riccati-threshold"]
    said = stated(asked, claim)
    assert said.verdict is Verdict.BLOW_UP_DATA_EXIST
    np.testing.assert_allclose(
        claim.arrays["gramian"], [[1 / 2, 1 / 6], [1 / 6, 1 / 3]], rtol=1e-14
    )
    assert 1 / np.linalg.eigvalsh(claim.arrays["gramian"])[-1] == pytest.approx(
        1.6583592135001261822, rel=1e-14
    )
    assert not proves(asked, changed_number(claim, "error", 1e-18))
    assert not proves(asked, changed_array(claim, "gramian", 1.0001 * claim.arrays["gramian"]))
    assert not proves(problem([[1.0, 1.0], [0.0, -2.0]], I2), claim)


# -- limits ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", range(len(ATTRACTORS)))
def test_limits_are_proved(case):
    A, K, rank, _, limit, rate = ATTRACTORS[case]
    d = len(A)
    L = np.random.default_rng(7).standard_normal((d, rank))
    asked = problem(A, K, L)
    found = proved(asked)
    claims = [c for c in found.get("riccati-limit", ()) if c.numbers["start"] == 1.0]
    if limit is None or (rank < d and rate == 0):
        # No limit, or one of a Jordan block split by the rank, for which there is no rule.
        assert not claims
        return
    if not claims:  # nothing but decay without a rate, or modes too near to the axis
        assert "riccati-fades" in found or 0 < np.abs(np.linalg.eigvals(A)).min() < 1e-12
        return
    (claim,) = claims
    np.testing.assert_allclose(
        claim.arrays["limit"], limit, rtol=0, atol=claim.numbers["error"] + 1e-14 * np.max(limit)
    )
    # A mode that grows at 1e-8 is known to that relative accuracy only.
    digits = 1e-11 if rate > 1e-6 else 1e-8
    assert claim.numbers["error"] <= digits * max(np.max(np.abs(limit)), 1e-300)
    # Where A has no basis of eigenvectors a few percent of the rate are given up.
    assert 0.95 * rate <= claim.numbers["rate"] <= rate * (1 + 1e-14)
    assert stated(asked, claim).verdict is Verdict.CONVERGES


def test_a_start_that_misses_a_mode_is_not_generic():
    generic, special = problem(E1, -I2, [[1.0], [1.0]]), problem(E1, -I2, [[1.0], [0.0]])
    claim = proved(generic)["riccati-limit"][0]
    assert claim.numbers["start"] == 1.0
    np.testing.assert_allclose(claim.arrays["limit"], [[3, 3], [3, 3]], rtol=1e-13)
    assert not proves(special, claim)
    assert proves(special, changed_number(claim, "start", 0.0))  # which says: from generic data


def test_lost_rank_is_said():
    asked = problem(np.diag([1.0, -2.0]), -np.ones((2, 2)), I2)
    claim = proved(asked)["riccati-limit"][0]
    assert "rank is lost" in stated(asked, claim).text


@pytest.mark.parametrize(
    ("number", "factor"), [("rate", 1.1), ("error", 1e-4), ("alpha", 1.1), ("beta", 0.5)]
)
def test_limits_refuse_changed_numbers(number, factor):
    # An error that is zero in exact arithmetic could not be diminished: E7 is not of that kind.
    asked = problem(E7, K7, np.eye(3))
    claim = proved(asked)["riccati-limit"][0]
    value = claim.numbers[number]
    if number == "beta":
        factor = 0.5 if value > 0 else 2.0
    assert not proves(asked, changed_number(claim, number, factor * value))


@pytest.mark.parametrize("name", ["limit", "basis", "inverse"])
def test_limits_refuse_changed_arrays(name):
    asked = problem(E8, K8, U8[:, None])
    claim = proved(asked)["riccati-limit"][0]
    array = claim.arrays[name].copy()
    array[0, 0] *= 1.001
    assert not proves(asked, changed_array(claim, name, array))


def test_limits_refuse_another_problem():
    asked = problem(E8, K8, np.eye(3))
    claim = proved(asked)["riccati-limit"][0]
    assert not proves(problem(1.001 * E8, K8, np.eye(3)), claim)
    assert not proves(problem(E8, 1.001 * K8, np.eye(3)), claim)
    assert not proves(problem(E8, K8, np.eye(3)[:, :2]), claim)
    assert not proves(problem(E8, K8), claim)
    assert not proves(problem(E8, K8, np.eye(3), np.eye(3)), claim)
    for number, value in (("rank", 2.0), ("rank", 2.5), ("limit_rank", 2.0), ("start", 0.5)):
        assert not proves(asked, changed_number(claim, number, value))


@pytest.mark.parametrize(("A", "K"), [(E1, -I2), (E7, K7), (E8, K8), (np.diag([1.0, -2]), -I2)])
def test_the_ultimate_bound_is_near_the_limit(A, K):
    asked = problem(A, K)
    found = proved(asked)
    claim, limit = found["riccati-bounded"][0], found["riccati-limit"][0].arrays["limit"]
    said = stated(asked, claim)
    assert (said.verdict, said.scope) == (Verdict.BOUNDED, Scope.EVERY_START)
    assert np.trace(limit) <= said.bound <= 1.01 * np.trace(limit)
    assert not proves(asked, changed_number(claim, "trace", 0.99 * said.bound))
    assert not proves(problem(1.01 * A, K), claim)
    assert not proves(asked, changed_array(claim, "bound", 1.01 * claim.arrays["bound"]))


def test_limits_and_bounds_of_a_larger_system():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 40, 40)) / math.sqrt(40)
    found = proved(problem(A, -B @ B.T - 0.1 * np.eye(40), np.eye(40)))
    claim = found["riccati-limit"][0]
    S, K = claim.arrays["limit"], -B @ B.T - 0.1 * np.eye(40)
    assert np.linalg.norm(A @ S + S @ A.T + S @ K @ S) < 1e-10 * np.linalg.norm(S)
    assert claim.numbers["limit_rank"] == np.sum(np.linalg.eigvals(A).real > 0)
    assert np.trace(S) <= found["riccati-bounded"][0].numbers["trace"]


def test_undetected_modes_have_no_limit_and_no_bound():
    found = proved(problem(np.diag([1.0, 2.0]), -np.diag([1.0, 0.0]), I2))
    assert set(found) == {"riccati-no-start-blows-up", "riccati-no-blow-up"}
    assert "riccati-limit" not in proved(problem(np.diag([1.0, 0.0]), -np.diag([1.0, 0.0]), I2))


# -- tampering and damage --------------------------------------------------------------------


def changed_number(claim, name, value):
    return replace(claim, numbers={**claim.numbers, name: value})


def changed_array(claim, name, value):
    return replace(claim, arrays={**claim.arrays, name: value})


SAMPLES = {
    "riccati-blow-up": problem(*KNOWN["spiral-2"][:3]),
    "riccati-no-blow-up": problem(*NEVER["below-threshold-2"]),
    "riccati-tangency": problem(TURN, SADDLE, math.sqrt(3) * I2),
    "riccati-threshold": problem([[-1.0, 1.0], [0.0, -2.0]], I2),
    "riccati-bounded": problem(E1, -I2),
    "riccati-limit": problem(E1, -I2, I2),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_claims_are_refused_without_a_traceback(name):
    asked = SAMPLES[name]
    claim = proved(asked)[name][0]
    for number in claim.numbers:
        left = {k: v for k, v in claim.numbers.items() if k != number}
        assert not proves(asked, replace(claim, numbers=left))
        for value in (math.nan, math.inf, -math.inf, -1.0):
            if (number, value) not in {("beta", -1.0)}:
                assert not proves(asked, changed_number(claim, number, value)), (number, value)
    for array, value in claim.arrays.items():
        if name == "riccati-no-blow-up" and array == "exponents":
            continue  # without steps, coordinates do not matter
        left = {k: v for k, v in claim.arrays.items() if k != array}
        assert not proves(asked, replace(claim, arrays=left))
        bad = [np.full_like(value, math.nan), value[..., None], value.astype(np.float32)]
        if value.size:
            bad += [np.full_like(value, math.inf), value[:-1]]
        for other in bad:
            if other.shape == value.shape and not other.size:
                continue
            assert not proves(asked, changed_array(claim, array, other)), array


@pytest.mark.parametrize(
    ("number", "factor"), [("lower", 1 + 1e-11), ("upper", 1 - 1e-11), ("upper", 0.9)]
)
def test_blow_up_times_refuse_changed_ends(number, factor):
    asked = SAMPLES["riccati-blow-up"]
    claim = proved(asked)["riccati-blow-up"][0]
    assert not proves(asked, changed_number(claim, number, factor * claim.numbers[number]))


def test_blow_up_times_refuse_changed_steps_starts_and_directions():
    A, K, L, _ = KNOWN["spiral-2"]
    asked = SAMPLES["riccati-blow-up"]
    claim = proved(asked)["riccati-blow-up"][0]
    steps = claim.arrays["steps"]
    for other in (np.array([steps.sum()]), steps[:-1], -steps):
        assert not proves(asked, changed_array(claim, "steps", other))
    turned = claim.arrays["direction"][::-1] * [1.0, -1.0]
    assert not proves(asked, changed_array(claim, "direction", turned))
    for other in (problem(A, K, 1.001 * L), problem(A, K, 0.999 * L), problem(A, K, L[:, :1])):
        assert not proves(other, claim)
    assert not proves(problem(A, K), claim)


def test_no_blow_up_refuses_another_start_reason_or_matrix():
    A, K, L = NEVER["below-threshold-2"]
    asked = SAMPLES["riccati-no-blow-up"]
    claim = proved(asked)["riccati-no-blow-up"][0]
    for reason in (0.0, 1.0, 3.0, 4.0, 7.0, 1.5):
        assert not proves(asked, changed_number(claim, "reason", reason))
    for factor in (0.9, 1.3):
        bound = factor * claim.arrays["bound"]
        assert not proves(asked, changed_array(claim, "bound", bound))
    assert not proves(problem(A, K, 1.2 * L), claim)
    slanted = claim.arrays["bound"] + [[0.0, 1e-3], [0.0, 0.0]]
    assert not proves(asked, changed_array(claim, "bound", slanted))


@given(generators(), st.integers(1, 4))
def test_what_is_found_is_proved_and_consistent(rng, d):
    A = rng.standard_normal((d, d)) - rng.choice([0.0, 1.0]) * np.eye(d)
    B = rng.standard_normal((d, d))
    kind = int(rng.integers(3))
    K = (B + B.T, B @ B.T + 0.1 * np.eye(d), -B @ B.T - 0.1 * np.eye(d))[kind]
    L = make_factor(rng, d, int(rng.integers(1, d + 1)), 0.5)
    asked = problem(A, 0.5 * (K + K.T), L)
    claims = list(find(asked))
    assert claims
    verdicts = set()
    for claim in claims:
        if claim.rule != "riccati-no-blow-up" or claim.numbers["fades"] == 0:
            assert proves(asked, claim), claim.rule
        said = stated(asked, claim)
        if said.scope is not Scope.SOME_STARTS and proves(asked, claim):
            verdicts.add(said.lower == math.inf)
    assert len(verdicts) <= 1  # blow-up and no blow-up are never both proved


@pytest.mark.parametrize("size", [1e-8, 1e8])
def test_unscaled_problems(size):
    A, K, L, time = KNOWN["spiral-2"]
    (claim,) = proved(problem(size * A, size * K, L))["riccati-blow-up"]
    assert claim.numbers["lower"] == pytest.approx(time / size, rel=1e-12)
    found = proved(problem(size * E7, size * K7, np.eye(3)))
    assert found["riccati-limit"][0].numbers["rate"] == pytest.approx(
        size * 2 * 0.0921935857038307, rel=1e-9
    )
    assert "riccati-bounded" in found
    assert "riccati-limit" in proved(problem(E7, K7 / size, np.eye(3)))

"""Quadratic certificates that solvers propose and exact arithmetic proves."""

import math
import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import gtcontrol as gt
from gtcontrol.certification.lmi import blow_up, solver, survival
from gtcontrol.certification.lmi.boundedness import bounds, decays
from gtcontrol.certification.lmi.candidates import setting_of
from gtcontrol.certification.lmi.combinations import blend, rescaled
from gtcontrol.certification.lmi.convexified import ConvexifiedModel
from gtcontrol.certification.lmi.model import JointModel
from gtcontrol.certification.lmi.solver import Ending
from gtcontrol.certification.lmi.times import coefficients
from gtcontrol.certification.rules import RULES
from gtcontrol.certification.rules.base import Refuted
from gtcontrol.certification.search.quadratic_lmi import (
    find,
    find_blow_up,
    lower_bound,
    lower_bounds,
    upper_bound,
    upper_bounds,
)
from gtcontrol.certification.theory.envelope import envelope, levels
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.status import Status, Verdict

J = np.array([[0.0, -1.0], [1.0, 0.0]])
I2 = np.eye(2)
P = gt.Parameters
C4 = P(A=np.diag([1, 0.5]), V=[[2, 1], [0, 1]], B=[[-1, -1], [1, -2]])


def law(covariance):
    covariance = np.asarray(covariance, dtype=float)
    return gt.Gaussian.from_covariance(np.zeros(len(covariance)), covariance)


def problem(*vertices, start=None):
    return CertificationProblem(tuple(vertices), start)


def proved(asked, claims):
    """The claims, each of them checked: what a search yields must be provable."""
    made = list(claims)
    for claim in made:
        assert not claim.proved
        RULES[claim.rule].check(asked, claim)
    return made


def rejected(asked, claim):
    with pytest.raises(Refuted):
        RULES[claim.rule].check(asked, claim)
    return True


def only(claims):
    (claim,) = claims
    return claim


def upper(parameters, covariance):
    asked = problem(parameters, start=law(covariance))
    return only(proved(asked, upper_bounds(asked))).numbers["upper"]


def lower(parameters, covariance):
    asked = problem(parameters, start=law(covariance))
    return only(proved(asked, lower_bounds(asked))).numbers["lower"]


# -- ultimate bounds -------------------------------------------------------------------------


def test_the_joint_bound_of_a_nonsymmetric_pair():
    """A 4-point scan of weights gives 1.15985; the limit of tr S is 0.8543363817."""
    asked = problem(C4)
    claim = only(proved(asked, bounds(asked)))
    assert 0.8543363817 <= claim.numbers["bound"] <= 1.15985
    limit = 0.645663618243468197 + 0.208672763513063605
    assert limit == pytest.approx(0.8543363817, abs=1e-10)


def test_every_tampered_number_and_matrix_is_rejected():
    asked = problem(C4, start=law(3 * I2))
    claim = only(proved(asked, bounds(asked)))
    numbers, arrays = claim.numbers, claim.arrays
    for name, factor in (
        ("quadratic", 1 / 0.9),  # θ · 0.9
        ("constant", 0.9),
        ("gamma", 0.9),
        ("bound", 0.9),
        ("peak", 0.9),
        ("quadratic", 1 + 1e-5),
        ("gamma", 1 - 1e-6),
        ("bound", 1 - 1e-6),
    ):
        assert rejected(asked, replace(claim, numbers={**numbers, name: numbers[name] * factor}))
    largest = np.abs(arrays["W"]).max()
    for name, sizes in (
        ("W", (0.1, -0.1)),
        ("Z", (0.1, -0.1)),
        ("Lam", (0.1, -1e-6)),  # Λ vanishes at the optimum
    ):
        order = arrays[name].shape[-1]
        for size in sizes:
            changed = arrays[name] + size * largest * np.eye(order)
            assert rejected(asked, replace(claim, arrays={**arrays, name: changed})), name
    assert rejected(problem(P(A=C4.A + 0.1 * I2, V=C4.V, B=C4.B), start=asked.start), claim)
    assert rejected(problem(P(A=C4.A, V=C4.V, B=0.9 * C4.B), start=asked.start), claim)
    assert rejected(problem(C4, start=law(4 * I2)), claim)
    assert rejected(problem(C4), claim)
    assert rejected(problem(C4, C4, start=asked.start), claim)


def test_a_chain_sharpens_the_bound_and_every_part_of_it_matters():
    asked = problem(C4)
    claim = only(proved(asked, bounds(asked)))
    links = int(claim.numbers["links"])
    assert links >= 1
    least = np.linalg.eigvalsh(claim.arrays["W"])[0]
    assert claim.numbers["bound"] < 0.98 * claim.numbers["gamma"] / least
    for k in range(1, links + 1):
        for name, factor in (("constant", 0.99), ("level", 0.99), ("linear", 1.02)):
            changed = {**claim.numbers, f"{name}{k}": claim.numbers[f"{name}{k}"] * factor}
            assert rejected(asked, replace(claim, numbers=changed)), f"{name}{k}"
        for name in ("W", "Lam", "Z", "products", "pushes"):
            values = claim.arrays[f"{name}{k}"]
            for moved in (values + 0.1, values - 0.1 - 1.1 * np.abs(values).max()):
                changed = {**claim.arrays, f"{name}{k}": moved}
                assert rejected(asked, replace(claim, arrays=changed)), f"{name}{k}"
    fewer = {**claim.numbers, "links": float(links - 1)}
    assert rejected(asked, replace(claim, numbers=fewer))


@pytest.mark.parametrize(("n", "noise"), [(2, 0.0), (3, 0.0), (3, 0.1)])
def test_trajectories_enter_every_half_space_of_a_chain_and_stay(n, noise):
    rng = np.random.default_rng(n)
    V, B = np.eye(n) + 0.3 * rng.standard_normal((2, n, n))
    p = P(A=np.eye(n) + rng.standard_normal((n, n)), V=V, B=-B, noise=noise * np.eye(n))
    asked = problem(p)
    claim = only(proved(asked, bounds(asked)))
    links = int(claim.numbers["links"])
    assert links >= 1
    names = [("W", "gamma"), *((f"W{k}", f"level{k}") for k in range(1, links + 1))]
    for scale in (0.1, 1.0, 30.0):
        run = gt.simulate(law(scale * np.eye(n)), p, 60.0, rtol=1e-9)
        late = run.covariances[run.times >= 30.0]
        for name, level in names:
            heights = np.einsum("ij,kij->k", claim.arrays[name], late)
            assert heights.max() <= claim.numbers[level]
        assert np.trace(late, axis1=1, axis2=2).max() <= claim.numbers["bound"]


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_bound_of_scalar_parameters_is_nearly_sharp(n):
    asked = problem(P(A=1.5 * np.eye(n), V=np.eye(n), B=-2 * np.eye(n)))
    claim = only(proved(asked, bounds(asked)))
    assert claim.numbers["bound"] == pytest.approx(0.75 * n, rel=2e-4)
    assert claim.numbers["bound"] >= 0.75 * n


@pytest.mark.parametrize(
    ("k", "m", "every"),
    [(0.5, 0.5, True), (3, -2, True), (3, -0.3, True), (3, 0.3, True), (2, 0.5, False),
     (2, 1, False)],
)  # fmt: skip
def test_skew_parts_decide(k, m, every):
    """V = I + kJ, B = -(I + mJ): y' = -2 tr(S^2) + 4 k m det S; every rank-one start decays."""
    p = P(V=I2 + k * J, B=-I2 - m * J)
    asked = problem(p)
    assert bool(proved(asked, decays(asked))) is every
    single = problem(p, start=gt.Gaussian([0.0, 0.0], [[1.0], [0.3]]))
    claim = only(proved(single, decays(single, single=True)))
    assert claim.numbers["rank"] == 1
    assert RULES["decay"].state(single, claim).verdict is Verdict.CONVERGES
    if not every:
        assert not list(bounds(asked))
        without = {name: v for name, v in claim.numbers.items() if name != "rank"}
        assert rejected(single, replace(claim, numbers=without))


def test_a_limit_cycle_is_bounded_and_never_said_to_converge():
    p = P(V=[[1, 1], [1, 4]], B=[[-3, 1], [1, -1]], A=[[4, 10.5], [-76, 18]])
    asked = problem(p, start=law(I2))
    claims = proved(asked, find(asked))
    verdicts = {RULES[c.rule].state(asked, c).verdict for c in claims}
    assert verdicts == {Verdict.BOUNDED}
    bound = next(c.numbers["bound"] for c in claims if c.rule == "ultimate-bound")
    assert 7.87746 < bound < 20  # the largest tr S on the cycle


def test_indefinite_scores_have_no_certificate_and_cost_no_time(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError

    monkeypatch.setattr(solver, "_once", refuse)
    asked = problem(P(A=I2, V=[[1, 0.3], [0, 2]], B=np.diag([1.0, -1.0])))
    assert list(find(asked)) == []
    assert list(upper_bounds(replace(asked, start=law(I2)))) == []


def test_a_value_matrix_of_both_signs_is_not_dissipative():
    asked = problem(P(V=np.diag([1.0, -1.0]), B=-I2))
    assert list(find(asked)) == []
    # s22' = 2 s22^2 along the second axis.
    assert upper(P(V=np.diag([1.0, -1.0]), B=-I2), np.diag([0.01, 1.0])) == pytest.approx(
        0.5, rel=1e-3
    )


# -- noise, stable and zero matrices ---------------------------------------------------------


def test_noise_against_closed_forms():
    """s' = 1 - s^2 tends to 1; S' = -2S + I to 1/2 I; s' = 1/4 + s + s^2, s0 = 0: T = 2."""
    tanh = problem(P(A=[[0]], V=[[1]], B=[[-0.5]], noise=[[1]]))
    assert only(proved(tanh, find(tanh))).numbers["bound"] == pytest.approx(1, rel=1e-5)
    linear = problem(P(A=-I2, noise=I2))
    assert only(proved(linear, find(linear))).numbers["bound"] == pytest.approx(1, rel=1e-5)
    for A, Q, exact in (([[0]], [[1]], math.pi / 2), ([[0.5]], [[0.25]], 2.0)):
        p = P(A=A, V=[[1]], B=[[0.5]], noise=Q)
        assert exact <= upper(p, [[0.0]]) <= exact * (1 + 1e-6)
        assert exact * (1 - 1e-5) <= lower(p, [[0.0]]) <= exact
    conjugate = P(A=[[0, 1], [0, 0]], V=I2, B=I2 / 2, noise=I2)
    exact = 1.2166954297563273433
    assert lower(conjugate, 0 * I2) <= exact <= upper(conjugate, 0 * I2) <= 1.3 * exact


def test_a_stable_limit_under_noise_is_bounded():
    """K = -diag(1, 0), Q = diag(0, 1): S tends to [[r, 1], [1, r]], r = sqrt 2."""
    p = P(A=[[-0.1, 1], [0, -0.2]], V=I2, B=-I2 / 2, noise=np.diag([0.0, 1.0]))
    asked = problem(p)
    bound = only(proved(asked, find(asked))).numbers["bound"]
    limit = np.trace(gt.simulate(law(I2), p, 200.0).covariances[-1])
    assert limit <= bound <= 2 * limit


def test_stable_and_zero_matrices():
    stable = problem(P(A=[[-1, 5], [0, -1]]))
    assert only(proved(stable, find(stable))).rule == "decay"
    semidefinite = problem(P(A=-I2, V=I2, B=np.diag([-1.0, 0.0])))
    assert only(proved(semidefinite, find(semidefinite))).rule == "decay"
    zero = problem(P(A=np.zeros((2, 2))), start=law(I2))
    claim = only(proved(zero, find(zero)))
    assert claim.rule == "blow-up-lower"
    assert claim.numbers["lower"] == math.inf
    growing = problem(P(A=[[1, 2], [0, 1]]), start=law(I2))
    said = RULES["blow-up-lower"].state(growing, only(proved(growing, find(growing))))
    assert said.lower == math.inf
    assert said.verdict is Verdict.UNDECIDED  # no blow-up, but no bound either
    dirac = problem(P(A=I2, V=I2, B=I2), start=law(0 * I2))
    said = RULES["blow-up-lower"].state(dirac, only(proved(dirac, find(dirac))))
    assert said.verdict is Verdict.CONVERGES


# -- blow-up times ---------------------------------------------------------------------------

G1 = P(A=[[0.1, 0.2], [0, -0.1]], V=[[1, 0.5], [0.2, 0.8]], B=[[1, 0.3], [0, 0.7]])
G2 = P(
    A=[[0.2, 0, -0.1], [0.1, -0.2, 0], [0, 0.1, 0.1]],
    V=[[1, 0.5, 0], [0, 0.5, 0.25], [0, 0, 1.5]],
    B=[[1, 0.5, 0], [0, 1, 0], [0.25, 0, 1]],
)
N = np.array([[0.0, 1.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("p", "covariance", "time", "ratio"),
    [
        (P(A=0.5 * np.eye(4), V=np.eye(4), B=np.eye(4)), np.eye(4), math.log(1.5), 1.00001),
        (G1, I2, 0.36716719866746, 0.4189475613181329 / 0.36716719866746),
        (G2, np.diag([1, 0.5, 1]), 0.30178997492226, 1.04),
        (P(V=np.diag([2, -1]), B=I2), I2, 0.25, 1.00001),
        (P(V=[np.diag([1, 0]), np.diag([0, 1])], B=[I2, 2 * I2]), I2, 0.25, 1.00001),
        (P(V=[np.diag([1, 0]), np.diag([0, 1])], B=[I2, -2 * I2]), I2, 0.5, 1.00001),
        (P(A=[[-1]], V=[[1]], B=[[1]]), [[2.0]], math.log(2) / 2, 1.00001),
        (P(A=N, V=I2, B=I2 / 2), I2, 0.6955780649209035827, 1.05),
        (P(A=N, V=I2, B=I2 / 2), np.diag([0, 1]), 0.81773167388682350609, 1.05),
        (P(A=[[-1, 1], [0, -2]], V=I2, B=I2 / 2), 2 * I2, 1.0165938069897230253, 1.1),
    ],
    ids=["scalar", "G1", "G2", "G3", "heads", "heads-opposite", "one", "nilpotent", "rank-one",
         "stable-A"],
)  # fmt: skip
def test_blow_up_times_lie_between_the_bounds(p, covariance, time, ratio):
    assert time * (1 - 1e-12) <= upper(p, covariance) <= ratio * time
    assert 0.25 * time <= lower(p, covariance) <= time * (1 + 1e-12)


def test_the_lower_bound_with_the_identity_is_a_closed_form():
    p = P(A=0.5 * np.eye(4), V=np.eye(4), B=np.eye(4))
    assert lower(p, np.eye(4)) == pytest.approx(math.log(1 + 1 / 8), rel=1e-6)


def test_tampered_blow_up_times_are_rejected():
    asked = problem(G1, start=law(I2))
    for claim, name, factor in (
        (only(upper_bounds(asked)), "upper", 1 - 1e-9),
        (only(lower_bounds(asked)), "lower", 1 + 1e-9),
    ):
        RULES[claim.rule].check(asked, claim)
        for key, change in (
            (name, factor),
            ("quadratic", 1.001 if name == "upper" else 0.999),
            ("linear", 1.01 if name == "upper" else 0.99),
        ):
            changed = {**claim.numbers, key: claim.numbers[key] * change}
            assert rejected(asked, replace(claim, numbers=changed)), key
        other = problem(G1, start=law((0.9 if name == "upper" else 1.1) * I2))
        assert rejected(other, claim)
        assert rejected(problem(G1), claim)
        single = replace(claim, numbers={**claim.numbers, "rank": 1.0})
        assert rejected(asked, single)


def test_basins_are_found():
    """s' = -2 s + 2 s^2 below its threshold 1, and a matrix law well below its own."""
    one = problem(P(A=[[-1]], V=[[1]], B=[[1]]), start=law([[0.9]]))
    claim = only(proved(one, lower_bounds(one)))
    assert RULES[claim.rule].state(one, claim).verdict is Verdict.CONVERGES
    two = problem(P(A=[[-1, 1], [0, -2]], V=I2, B=I2 / 2), start=law(0.3 * I2))
    claim = only(proved(two, lower_bounds(two)))
    assert RULES[claim.rule].state(two, claim).verdict is Verdict.CONVERGES
    assert list(upper_bounds(two)) == []


@pytest.mark.parametrize("share", [0.9, 0.99])
def test_restart_encloses_the_blow_up_time(share):
    """From the covariance late on the way, both bounds close around what is left."""
    exact = 0.36716719866774
    run = gt.simulate(law(I2), G1, share * exact)
    S = run.covariances[-1]
    above = only(upper_bound(G1, S)).numbers["upper"]
    below = only(lower_bound(G1, S)).numbers["lower"]
    left = (1 - share) * exact
    assert below <= left * (1 + 1e-6)
    assert left * (1 - 1e-6) <= above
    assert (above - below) / exact <= (0.19 if share == 0.9 else 0.014)


# -- symmetries ------------------------------------------------------------------------------


def test_units_change_no_certificate():
    """Entries of 1e±8: t -> c t, S -> c S, (V, B) -> (cV, B/c), and diagonal stretches."""
    base, blow_up = only(bounds(problem(C4))).numbers["bound"], upper(G1, I2)
    for time, size, head in (
        (1e8, 1.0, 1.0),
        (1.0, 1e8, 1e8),
        (1e-8, 1e-8, 1e-8),
        (1e8, 1e8, -1.0),
    ):
        p = P(A=time * C4.A, V=head * C4.V, B=time / size / head * C4.B)
        asked = problem(p)
        claim = only(proved(asked, find(asked)))
        assert claim.numbers["bound"] == pytest.approx(size * base, rel=2e-3)
        scaled = P(A=time * G1.A, V=head * G1.V, B=time / size / head * G1.B)
        assert upper(scaled, size * I2) * time == pytest.approx(blow_up, rel=1e-3)
    T, R = np.diag([1e4, 1e-4]), np.diag([1e-4, 1e4])
    stretched = problem(P(A=T @ C4.A @ R, V=T @ C4.V @ R, B=R @ C4.B @ R))
    claim = only(proved(stretched, find(stretched)))
    assert 0.64e8 < claim.numbers["bound"] < 1.3e8


def test_the_largest_dimension_is_a_cap():
    big = problem(P(A=-np.eye(9), V=np.eye(9), B=-np.eye(9)))
    assert list(find(big)) == []
    assert only(find(big, largest=10)).rule == "decay"
    assert list(find(problem(P(A=-np.eye(11))), largest=20)) == []


# -- families --------------------------------------------------------------------------------


def test_a_family_has_one_weight_for_all():
    second = P(A=np.diag([0.5, 1.0]), V=[[2, 0.5], [0, 1]], B=C4.B)
    asked = problem(C4, second)
    claim = only(proved(asked, find(asked)))
    alone = max(only(bounds(problem(p))).numbers["bound"] for p in (C4, second))
    assert claim.numbers["bound"] >= alone * (1 - 1e-3)
    assert claim.arrays["Z"].shape == (2, 1, 1)
    # Switching between the vertices stays below it from some time on.
    S = 5 * I2
    for k in range(40):
        S = gt.simulate(law(S), (C4, second)[k % 2], 0.5).covariances[-1]
    assert np.trace(S) <= claim.numbers["bound"]


def test_mixed_pairs_of_a_family_are_solved_for_and_not_ignored():
    both = problem(C4, P(A=C4.A, V=C4.V + 0.1 * J, B=C4.B - 0.1 * I2))
    claim = only(proved(both, find(both)))
    assert claim.arrays["Z"].shape == (3, 1, 1)
    # ±(V, B): the vertices agree, yet V = B = 0 in the middle, and nothing can be proved.
    opposite = problem(C4, P(A=C4.A, V=-C4.V, B=-C4.B))
    assert list(find(opposite)) == []


def test_growth_of_a_family():
    family = problem(G1, P(A=G1.A, V=1.2 * G1.V, B=G1.B), start=law(I2))
    claim = only(proved(family, upper_bounds(family)))
    assert claim.numbers["upper"] >= upper(G1, I2) * (1 - 1e-3)


# -- solvers ---------------------------------------------------------------------------------


def test_a_bare_optimal_is_never_passed_on(monkeypatch):
    """A solver that calls any point optimal does not make a claim of it."""

    def lie(problem, name, options):
        rng = np.random.default_rng(0)
        for variable in problem.variables():
            variable.value = rng.standard_normal(variable.shape)
        return Ending.CANDIDATE

    monkeypatch.setattr(solver, "_once", lie)
    assert list(find(problem(C4))) == []
    assert list(upper_bounds(problem(G1, start=law(I2)))) == []
    assert list(lower_bounds(problem(G1, start=law(I2)))) == []


def test_errors_and_words_of_solvers_do_not_leak(monkeypatch, capfd):
    x = cp.Variable()
    fine = cp.Problem(cp.Minimize(x), [x >= 1])
    assert solver.solve(fine).ending is Ending.CANDIDATE
    assert solver.solve(cp.Problem(cp.Minimize(x), [x >= 1, x <= 0])).ending is Ending.INFEASIBLE
    assert solver.solve(cp.Problem(cp.Minimize(x))).ending is Ending.FAILED  # unbounded

    def fail(self, *_, **__):
        warnings.warn("Solution may be inaccurate.", stacklevel=1)
        print("solver chatter")
        raise cp.error.SolverError("Solver 'CLARABEL' failed.")

    monkeypatch.setattr(cp.Problem, "solve", fail)
    answer = solver.solve(fine)
    assert answer.ending is Ending.FAILED
    assert not answer.has_point
    assert list(find(problem(C4))) == []
    assert capfd.readouterr() == ("", "")


def test_the_second_solver_finds_what_the_first_refuses(monkeypatch):
    once, asked = solver._once, []

    def refuse(made, name, options):
        asked.append(name)
        return Ending.FAILED if name == "CLARABEL" else once(made, name, options)

    monkeypatch.setattr(solver, "_once", refuse)
    claim = only(proved(problem(C4), bounds(problem(C4))))
    assert 0.85 < claim.numbers["bound"] < 1.2
    assert set(asked) == {"CLARABEL", "SCS"}


# -- against integration ---------------------------------------------------------------------


def random_problem(rng):
    """Parameters of mixed families, and a start of any rank."""
    d = int(rng.integers(2, 4))
    G = rng.standard_normal((2, d, d))
    skew = rng.choice([0.3, 1.0]) * (G - np.swapaxes(G, 1, 2))
    V = G[0] @ G[0].T / d + 0.3 * np.eye(d) + skew[0]
    B = rng.choice([-1, 1]) * (G[1] @ G[1].T / d + 0.3 * np.eye(d)) + skew[1]
    if rng.uniform() < 0.3:
        V = rng.standard_normal((d, d))
    A = rng.standard_normal((d, d)) - rng.choice([0.0, 2.0]) * np.eye(d)
    r = int(rng.integers(1, d + 1))
    start = gt.Gaussian(np.zeros(d), rng.standard_normal((d, r)))
    return CertificationProblem((P(A=A, V=V, B=B),), start)


def test_certificates_never_contradict_integration():
    rules = set()
    for seed in range(16):
        asked = random_problem(np.random.default_rng(100 + seed))
        rules |= hold_against_integration(asked)
    assert rules >= {"ultimate-bound", "decay", "blow-up-upper", "blow-up-lower"}


def hold_against_integration(asked):
    """Hold all claims against an accurate trajectory; the rules that were used."""
    claims = proved(asked, [*find(asked), *find_blow_up(asked)])
    said = [RULES[c.rule].state(asked, c) for c in claims]
    horizon = 30.0
    run = gt.simulate(asked.start, asked.parameters, horizon, rtol=1e-9)
    below = max((s.lower for s in said), default=0.0)
    above = min((s.upper for s in said if s.upper < math.inf), default=math.inf)
    if run.status is Status.BLOW_UP:
        assert below <= run.blow_up_time * (1 + 1e-6)
        assert above >= run.blow_up_time * (1 - 1e-6)
    elif run.status is Status.SUCCESS:
        assert above >= horizon
    for claim, words in zip(claims, said, strict=True):
        keep = run.times < 0.99 * min(words.lower, words.upper, run.times[-1])
        y = levels(claim, run.covariances[keep])
        bound = envelope(claim, asked.start, run.times[keep])
        slack = 1e-6 * (1 + np.abs(y))
        if claim.rule == "blow-up-upper":
            assert np.all(y >= bound - slack)
        else:
            assert np.all(y <= bound + slack)
        traces = np.trace(run.covariances[keep], axis1=1, axis2=2)
        if "peak" in claim.numbers:
            assert np.all(traces <= claim.numbers["peak"] * (1 + 1e-9))
    return {claim.rule for claim in claims}


# -- moving weights --------------------------------------------------------------------------


def same_signs(seed, n):
    """Parameters and a start with definite symmetric parts of the same sign."""
    rng = np.random.default_rng(seed)
    G, H, R, T, A, L = rng.standard_normal((6, n, n))
    V = G @ G.T / n + 0.2 * np.eye(n) + 0.25 * (R - R.T)
    B = H @ H.T / n + 0.2 * np.eye(n) + 0.25 * (T - T.T)
    return P(A=0.5 * A, V=V, B=B), L @ L.T


@pytest.mark.parametrize(("seed", "n"), [(0, 2), (1, 2), (2, 3)])
def test_moving_the_weight_raises_the_bound_from_below(monkeypatch, seed, n):
    p, S = same_signs(seed, n)
    T = gt.simulate(law(S), p, 1e3, rtol=1e-9).blow_up_time
    moved = lower(p, S)
    monkeypatch.setattr(survival, "TURNS", (0, 0, 0))
    fixed = lower(p, S)
    assert 1.1 * fixed < moved < T * (1 + 1e-9)
    assert moved > 0.4 * T


def test_a_convexified_inequality_implies_the_true_one():
    p, S = same_signs(3, 3)
    p = P(A=p.A, V=p.V, B=p.B, noise=0.1 * np.eye(3))
    setting = setting_of(problem(p, start=law(S)), with_start=True)
    W = 30.0 * np.eye(3)
    model = ConvexifiedModel(3, setting.pieces, W=W, linear=1.0, start=setting.start)
    point = model.solve((1.0, 1.0), 1e-7)
    assert point.quadratic == 1
    assert np.abs(point.W - W).max() > 0.1
    vertex = setting.units.vertex(p)
    rng = np.random.default_rng(0)
    for rank in (1, 2, 3, 3, 3):
        L = rng.standard_normal((3, rank)) * 10.0 ** rng.uniform(-2, 1)
        X = L @ L.T
        M = vertex.A + vertex.V[0] @ X @ vertex.B[0]
        rate = np.sum(point.W * (M @ X + X @ M.T + vertex.noise))
        y = np.sum(point.W * X)
        assert rate <= y**2 + y + point.constant + 1e-9 * (1 + y**2)


def test_a_rescaled_point_says_the_same_and_a_blend_lies_between():
    setting = setting_of(problem(C4), with_start=False)
    model = JointModel(2, setting.pieces, sign=-1, floor=setting.units.floor())
    _, point = model.solve(1.0, 1e-7)
    _, other = model.solve(3.0, 1e-7)
    doubled = rescaled(point, 2.0)
    for y in (0.0, 0.7, 5.0):
        f, g = coefficients(point), coefficients(doubled)
        assert 2 * (f[0] * y**2 + f[1] * y + f[2]) == pytest.approx(
            4 * g[0] * y**2 + 2 * g[1] * y + g[2]
        )
    np.testing.assert_allclose(doubled.W, 2 * point.W)
    middle = blend(point, other, 0.25)
    np.testing.assert_allclose(middle.Lam, 0.75 * point.Lam + 0.25 * other.Lam)
    assert middle.constant == pytest.approx(0.75 * point.constant + 0.25 * other.constant)


def test_a_start_near_the_threshold_needs_other_coefficients(monkeypatch):
    p = P(A=[[-0.799, 0.138], [-0.409, -0.119]], V=[[0.226, 0.382], [-0.424, 0.679]],
          B=[[1.194, 0.576], [0.646, 0.636]])  # fmt: skip
    L = 0.997 * np.array([[0.777, 0.663], [0.955, -0.699]])
    T = gt.simulate(law(L @ L.T), p, 1e3, rtol=1e-9).blow_up_time
    assert T < upper(p, L @ L.T) < 15 * T
    monkeypatch.setattr(blow_up, "RESCUES", ())
    assert not list(upper_bounds(problem(p, start=law(L @ L.T))))

"""Tests of order d for many heads: blocks of coordinates, growth by norms, what is not decided."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import gtcontrol as gt
from gtcontrol.certification.rules import RULES
from gtcontrol.certification.rules.base import Refuted, Scope
from gtcontrol.certification.search import blockwise, growth
from gtcontrol.certification.theory.components import components
from gtcontrol.certification.theory.heads import merge_families, merge_heads
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.results.claims import Claim
from tests.benchmarks import wide

SEEDS = st.integers(0, 10**6)


def changed(claim, *, arrays=None, **numbers):
    return Claim(
        claim.rule,
        numbers={**claim.numbers, **numbers},
        arrays={**claim.arrays, **(arrays or {})},
    )


def refuted(problem, claim):
    with pytest.raises(Refuted):
        RULES[claim.rule].check(problem, claim)


def in_blocks(seed=0, sizes=(2, 3, 1), noise=False):
    """Parameters whose heads act on coordinates of their own, shuffled."""
    rng = np.random.default_rng(seed)
    d = sum(sizes)
    order = rng.permutation(d)
    V, B = np.zeros((2, len(sizes), d, d))
    at = 0
    for h, m in enumerate(sizes):
        own = np.ix_(order[at : at + m], order[at : at + m])
        G, K = rng.standard_normal((2, m, m))
        V[h][own] = G @ G.T + 0.3 * np.eye(m)
        B[h][own] = -(K @ K.T + 0.3 * np.eye(m)) + 0.2 * (K - K.T)
        at += m
    Q = 0.1 * np.eye(d) if noise else None
    return gt.Parameters(A=rng.standard_normal((d, d)), V=V, B=B, noise=Q), order


def rate(p, S):
    M = p.A + sum(V @ S @ B for V, B, _ in p.heads)
    return M @ S + S @ M.T + (0 if p.noise is None else p.noise)


# -- heads on coordinates of their own ---------------------------------------------------------


def test_components_are_those_that_heads_join():
    p, order = in_blocks()
    found = {frozenset(block.tolist()) for block in components((p,))}
    wanted = [order[:2], order[2:5], order[5:]]
    assert found == {frozenset(block.tolist()) for block in wanted}
    joined = np.zeros((6, 6))
    joined[order[0], order[5]] = 1.0
    more = gt.Parameters(V=np.array([*p.V, np.eye(6)[:, :1] * 0 + joined]), B=[*p.B, joined])
    assert sorted(b.size for b in components((more,))) == [3, 3]


@pytest.mark.parametrize("noise", [False, True])
def test_heads_on_coordinates_of_their_own_are_bounded(noise):
    p, _ = in_blocks(noise=noise)
    problem = CertificationProblem((p,))
    claim = blockwise.find(problem)
    RULES["dissipative-blocks"].check(problem, claim)
    n, W = claim.numbers, claim.arrays["metric"]
    rng = np.random.default_rng(1)
    for _ in range(200):
        L = rng.standard_normal((6, 1 + int(rng.integers(6)))) * 10.0 ** rng.uniform(-2, 2)
        S = L @ L.T
        y, force = np.trace(W @ S), 0.0 if p.noise is None else np.trace(W @ p.noise)
        right = n["growth"] * y - y**2 / n["theta"] + force
        assert np.trace(W @ rate(p, S)) <= right + 1e-9 * (abs(right) + y**2)
    path = gt.simulate(gt.Gaussian(np.zeros(6), rng.standard_normal((6, 6))), p, 40.0, rtol=1e-8)
    assert path.status is gt.Status.SUCCESS
    late = [np.trace(path.at(t).covariance) for t in np.linspace(30, 40, 50)]
    assert max(late) <= n["bound"]


def test_tampered_blocks_are_refused():
    p, order = in_blocks()
    problem = CertificationProblem((p,))
    claim = blockwise.find(problem)
    for name in ("theta", "growth", "bound"):
        refuted(problem, changed(claim, **{name: 0.9 * claim.numbers[name]}))
    for column, factor in ((1, 0.5), (3, 0.9)):
        constants = claim.arrays["constants"].copy()
        constants[:, column] *= factor
        refuted(problem, changed(claim, arrays={"constants": constants}))
    W = claim.arrays["metric"].copy()
    W[order[0], order[5]] = W[order[5], order[0]] = 1e-3
    refuted(problem, changed(claim, arrays={"metric": W}))
    refuted(problem, changed(claim, arrays={"metric": np.eye(5)}))
    refuted(problem, changed(claim, arrays={"constants": claim.arrays["constants"][:2]}))
    refuted(problem, Claim("dissipative-blocks"))
    other, _ = in_blocks(seed=3)
    refuted(CertificationProblem((other,)), claim)
    half = gt.Parameters(V=p.V[:2], B=p.B[:2])  # coordinates without a head
    assert blockwise.find(CertificationProblem((half,))) is None


# -- heads of a family -------------------------------------------------------------------------


def test_heads_of_a_family_are_merged_alike():
    E = np.eye(2)
    zero = np.zeros((2, 2))
    first = gt.Parameters(V=[E, zero], B=[-E, -E])
    second = gt.Parameters(V=[zero, E], B=[-E, -2 * E])
    # Each vertex by itself has one head; their mean has two that are not zero.
    assert [len(merge_heads(p)) for p in (first, second)] == [1, 1]
    assert [len(heads) for heads in merge_families((first, second))] == [2, 2]
    same = merge_families((first, gt.Parameters(V=[E, E], B=[-3 * E, -3 * E])))
    assert [len(heads) for heads in same] == [1, 1]
    assert np.array_equal(same[1][0].V, 2 * E)


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_merged_heads_act_like_all(seed):
    rng = np.random.default_rng(seed)
    pool = [np.zeros((2, 2)), *rng.standard_normal((2, 2, 2))]
    V, B = ([pool[i] for i in rng.integers(0, 3, 4)] for _ in range(2))
    p = gt.Parameters(V=V, B=B)
    left = sum(np.kron(v, b) for v, b, _ in p.heads)
    right = sum((np.kron(h.V, h.B) for h in merge_heads(p)), np.zeros((4, 4)))
    assert left == pytest.approx(right, abs=1e-12)


# -- growth by norms ---------------------------------------------------------------------------


def stable(seed=0, d=9, shift=1.5, noise=None):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((d, d)) / 3 - shift * np.eye(d)
    A[0, -1] += 5.0  # not normal: the symmetric part is indefinite
    V, B = rng.standard_normal((2, 2, d, d)) / 3
    return gt.Parameters(A=A, V=V, B=B, noise=noise), rng


def proposed(problem):
    (claim,) = growth.find(problem)
    RULES["norm-growth"].check(problem, claim)
    return claim


def test_small_covariances_decay():
    p, rng = stable()
    problem = CertificationProblem((p,))
    claim = proposed(problem)
    said = RULES["norm-growth"].state(problem, claim)
    assert (said.verdict, said.scope) == (gt.Verdict.LOCALLY_STABLE, Scope.SOME_STARTS)
    R, radius = claim.arrays["coordinates"], claim.numbers["radius"]
    for _ in range(3):
        L = rng.standard_normal((9, 3))
        L *= np.sqrt(0.999 * radius / np.sum((R @ L) ** 2))
        start = gt.Gaussian(np.zeros(9), L)
        path = gt.simulate(start, p, 30.0)
        assert path.traces[-1] < 1e-3 * path.traces[0]
        answer = proposed(CertificationProblem((p,), start))
        assert answer.numbers["decays"] == 1.0
        assert path.traces.max() <= answer.numbers["peak"]
    refuted(problem, changed(claim, radius=1.01 * radius))
    for name in ("quadratic", "linear"):
        value = claim.numbers[name]
        refuted(problem, changed(claim, **{name: value - 0.01 * abs(value)}))
    refuted(problem, changed(claim, arrays={"coordinates": np.zeros((9, 9))}))
    refuted(problem, changed(claim, arrays={"signs": np.ones((2, 3))}))
    refuted(problem, changed(claim, arrays={"signs": np.zeros(2)}))
    noisy, _ = stable(noise=np.eye(9))
    refuted(CertificationProblem((noisy,)), claim)


def test_noise_keeps_small_covariances_bounded():
    p, _ = stable(noise=1e-8 * np.eye(9))
    start = gt.Gaussian(np.zeros(9), 1e-4 * np.eye(9))
    problem = CertificationProblem((p,), start)
    claim = proposed(problem)
    assert "decays" not in claim.numbers
    assert gt.simulate(start, p, 30.0).traces.max() <= claim.numbers["peak"]
    refuted(problem, changed(claim, decays=1.0))
    refuted(problem, changed(claim, peak=0.9 * claim.numbers["peak"]))
    refuted(problem, changed(claim, ceiling=0.5 * claim.numbers["ceiling"]))


@given(SEEDS)
@settings(max_examples=5, deadline=None)
def test_blow_up_is_not_before_the_bound(seed):
    rng = np.random.default_rng(seed)
    d = 9
    V, B = rng.standard_normal((2, 2, d, d))
    p = gt.Parameters(A=rng.standard_normal((d, d)), V=V, B=B)
    start = gt.Gaussian(np.zeros(d), rng.standard_normal((d, 2)))
    problem = CertificationProblem((p,), start)
    claim = proposed(problem)
    path = gt.simulate(start, p, 2 * claim.numbers["lower"])
    if path.status is gt.Status.BLOW_UP:
        assert path.blow_up_time >= claim.numbers["lower"]
    refuted(problem, changed(claim, lower=1.01 * claim.numbers["lower"]))


@pytest.mark.parametrize("d", [9, 40])
def test_scalar_growth_is_sharp(d):
    """V = I, B = I, A = a I, rank one: y' = 2 a y + 2 y², as by norms."""
    p = gt.Parameters(A=0.5 * np.eye(d), V=np.eye(d), B=np.eye(d))
    start = gt.Gaussian(np.zeros(d), np.eye(d)[:, :1])
    claim = proposed(CertificationProblem((p,), start))
    # y' = y + 2 y², y₀ = 1: T = ln(3/2).
    assert claim.numbers["lower"] == pytest.approx(np.log(1.5), rel=1e-5)
    assert claim.numbers["lower"] <= np.log(1.5)


def test_opposite_signs_hardly_grow():
    rng = np.random.default_rng(0)
    G, K = rng.standard_normal((2, 3, 12, 4))
    V = np.array([g @ g.T for g in G])
    B = np.array([-k @ k.T for k in K])
    p = gt.Parameters(A=0.5 * np.eye(12), V=V, B=B)
    start = gt.Gaussian(np.zeros(12), np.eye(12))
    problem = CertificationProblem((p,), start)
    claim = proposed(problem)
    assert claim.numbers["quadratic"] < 1e-8
    assert claim.numbers["lower"] > 10.0
    wrong = gt.Parameters(A=p.A, V=-V, B=B)
    refuted(CertificationProblem((wrong,), start), claim)


# -- what is not decided -----------------------------------------------------------------------


def test_an_undecided_answer_says_what_was_tried():
    rng = np.random.default_rng(5)
    d = 200
    V, B = rng.standard_normal((2, 6, d, d)) / d
    answer = gt.certify(gt.Parameters(A=0.3 * rng.standard_normal((d, d)), V=V, B=B))
    assert answer.verdict is gt.Verdict.UNDECIDED
    assert "dimension 200 exceeds 8" in answer.statement
    assert "no left eigenvector that the value matrices share" in answer.statement
    assert "an integration would take too long" in answer.statement
    assert gt.verify(answer)


# -- the dimension of a language model ---------------------------------------------------------


@pytest.mark.slow
def test_twelve_heads_at_dimension_768(tmp_path):
    case = wide.blocks(wide.DIM, wide.HEADS)
    answer = gt.certify(case.parameters, case.start)
    assert (answer.verdict, answer.proved) == (gt.Verdict.BOUNDED, True)
    answer.save(tmp_path / "wide")
    assert gt.verify(tmp_path / "wide")


@pytest.mark.slow
@pytest.mark.parametrize("name", list(wide.CASES))
def test_wide_cases_in_small(name):
    case = wide.CASES[name](36, 4)
    for start, verdict in ((None, case.verdict), (case.start, case.with_start)):
        answer = gt.certify(case.parameters, start)
        assert gt.verify(answer)
        assert verdict is None or answer.verdict is verdict or answer.verdict.name == "CONVERGES"

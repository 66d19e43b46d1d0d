"""The search of the regime tests: against integration, in bad input, and in large dimension."""

from __future__ import annotations

import numpy as np
import pytest

from gtcontrol import Gaussian, Parameters
from gtcontrol.certification.search.regimes import find
from gtcontrol.certification.theory.heads import merge_heads
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.status import Verdict

from .regime_cases import I2, Z2, J, integrate, problem, proved, statement


def drawn(rng, n, family):
    """Random V and B of a family."""
    g = rng.standard_normal((n, n))
    K = rng.standard_normal((n, n))
    K = 0.5 * (K - K.T)
    definite = -(rng.standard_normal((n, n)) @ np.diag(rng.uniform(0.2, 1, n)))
    definite = -(definite @ definite.T) / n - 0.1 * I2[0, 0] * np.eye(n)
    if family == "antistable":
        return g + (max(0.0, -np.linalg.eigvals(g).real.min()) + 0.3) * np.eye(n), definite + K
    if family == "symmetric value":
        return g @ g.T / n + 0.1 * np.eye(n), definite + K
    if family == "symmetric score":
        return g, definite
    if family == "definite score":
        return g, definite + K
    if family == "same signs":
        return g @ g.T / n + 0.1 * np.eye(n) + 0.3 * K, -definite + 0.3 * K
    return g, rng.standard_normal((n, n))


FAMILIES = (
    "antistable",
    "symmetric value",
    "symmetric score",
    "definite score",
    "same signs",
    "gaussian",
)


def logistic(y0, t, growth, theta):
    """Solution of y' = a y - y²/θ at time t."""
    grown = np.exp(-growth * t)
    integral = t if growth == 0 else (1.0 - grown) / growth
    return 1.0 / (grown / y0 + integral / theta)


def contradiction(case, L, run):
    """What a proved claim says against an accurate integration, or None."""
    blown, end, factor = run
    for claim in find(case):
        if not proved(case, claim):
            continue
        said = statement(case, claim)
        if said.verdict is Verdict.BLOWS_UP:
            late = end > said.upper * (1 + 1e-6) + 1e-8
            early = blown and end < said.lower * (1 - 1e-6) - 1e-8
            if late or early:
                return claim, run
        if said.verdict in (Verdict.BOUNDED, Verdict.CONVERGES) and blown:
            return claim, run
        if claim.rule == "dissipative":
            W = claim.arrays["metric"]
            y0, y = (float(np.sum(X * (W @ X))) for X in (L, factor))
            limit = logistic(y0, end, claim.numbers["growth"], claim.numbers["theta"])
            if y > limit * (1 + 1e-6):
                return claim, run
    return None


def campaign(family, count):
    """Random pairs of a family, n = 1 to 4, ranks 1 to n: what is said of them."""
    rng = np.random.default_rng(len(family))
    counts = dict.fromkeys(Verdict, 0)
    for i in range(count):
        n = 1 + i % 4
        V, B = drawn(rng, n, family)
        A = rng.standard_normal((n, n)) if i % 3 else np.zeros((n, n))
        L = rng.standard_normal((n, 1 + i % n)) * rng.choice([0.3, 1.0, 3.0])
        case = problem(A, V, B, L=L)
        assert contradiction(case, L, integrate(case.parameters, L)) is None
        for claim in find(case):
            counts[statement(case, claim).verdict] += 1
    return counts


def check_counts(family, counts, count):
    """Families that the theorems decide whole are decided whole."""
    never = counts[Verdict.BOUNDED] + counts[Verdict.CONVERGES]
    blown = counts[Verdict.BLOWS_UP] + counts[Verdict.BLOW_UP_DATA_EXIST]
    if family == "symmetric value":
        assert never >= count
    if family == "symmetric score":
        assert never + blown >= count
    if family == "same signs":
        assert blown >= 0.8 * count


@pytest.mark.parametrize("family", FAMILIES)
def test_no_claim_contradicts_an_accurate_integration(family):
    check_counts(family, campaign(family, 16), 16)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_no_claim_contradicts_many_integrations(family):
    check_counts(family, campaign(family, 80), 80)


def test_the_campaign_would_see_a_wrong_bound():
    """Its integration agrees with closed forms, and a claim made too strong is found out."""
    blown, end, _ = integrate(Parameters(A=0.5 * I2, V=I2, B=I2), I2)
    assert blown
    assert end == pytest.approx(np.log(1.5), rel=1e-7)
    blown, end, factor = integrate(Parameters(A=0.5 * I2, V=I2, B=-2 * I2), I2)
    assert not blown
    # s' = s - 4s² from 1.
    assert np.sum(factor**2) == pytest.approx(2 * logistic(1.0, end, 1.0, 0.25), rel=1e-6)
    # y = tr S obeys y' = y - 2y² with equality, so any smaller θ is contradicted.
    assert np.sum(factor**2) > logistic(2.0, end, 1.0, 0.49)


def test_examples_of_blow_up_data_do_blow_up():
    rng = np.random.default_rng(5)
    seen = 0
    for _ in range(12):
        V, B = drawn(rng, 3, "definite score")
        case = problem(rng.standard_normal((3, 3)), V, B)
        for claim in find(case):
            if claim.rule == "spectral-blow-up-data":
                seen += 1
                L = np.sqrt(claim.numbers["example"]) * np.eye(3)
                blown, end, _ = integrate(case.parameters, L, horizon=1e3)
                assert blown
                assert end <= claim.numbers["bound"] * (1 + 1e-6)
    assert seen >= 6


def test_several_heads_against_integration():
    rng = np.random.default_rng(3)
    for i in range(12):
        D = [np.diag(rng.standard_normal(3)) for _ in range(2)]
        B = [drawn(rng, 3, "definite score")[1] * rng.choice([-1, 1]) for _ in range(2)]
        A, L = rng.standard_normal((3, 3)), rng.standard_normal((3, 3))
        case = problem(A, D, B if i % 2 else [B[0], B[0]], L=L)
        assert contradiction(case, L, integrate(case.parameters, L)) is None


def test_commuting_heads_share_an_eigenvector_that_is_no_float():
    V = np.array([[1.0, 1], [1, 0]])  # the golden ratio
    case = problem(Z2, [V, V + I2], [I2, 0.5 * I2], I2)
    claim = next(c for c in find(case) if c.rule == "spectral-blow-up")
    assert proved(case, claim)
    golden = (1 + np.sqrt(5)) / 2
    assert claim.arrays["values"][:, 0] == pytest.approx([golden, golden + 1], rel=1e-14)
    # s' = 2(φ + (φ + 1)/2)s² along the eigenvector, which decouples.
    assert claim.numbers["bound"] == pytest.approx(1 / (3 * golden + 1), rel=1e-12)
    other = problem(Z2, [V, V + np.diag([1.0, 1 + 1e-9])], [I2, 0.5 * I2], I2)
    assert not proved(other, claim)


def test_heads_are_merged_only_if_equal():
    V, B = np.random.default_rng(0).standard_normal((2, 3, 2, 2))
    p = Parameters(V=[V[0], V[1], V[2]], B=[B[0], B[0], B[1]])
    assert [(len(h.values), len(h.scores)) for h in merge_heads(p)] == [(2, 1), (1, 1)]
    p = Parameters(V=[V[0], V[0], V[1]], B=[B[0], B[1], B[2]])
    assert [(len(h.values), len(h.scores)) for h in merge_heads(p)] == [(1, 2), (1, 1)]
    assert merge_heads(Parameters(V=[V[0], Z2], B=[Z2, B[0]])) == ()
    p = Parameters(V=V, B=B)
    S = np.diag([1.0, 2.0])
    total = sum(v @ S @ b for v, b in zip(V, B, strict=True))
    assert np.allclose(sum(h.V @ S @ h.B for h in merge_heads(p)), total)


@pytest.mark.parametrize(
    "case",
    [
        problem(Z2, Z2, Z2),
        problem(I2, I2, Z2, I2),
        problem(I2, Z2, I2, I2),
        problem([[0.0]], [[0.0]], [[0.0]], [[1.0]]),
        problem(Z2, J, -I2, I2),
        problem(Z2, [[0, 1], [0, 0]], I2, I2),
        problem(Z2, I2, np.diag([1.0, 0]), I2),
        problem(Z2, np.diag([1.0, 0]), -I2, I2),
        problem(Z2, I2, J, I2),
        problem(Z2, [I2, -I2], [I2, I2], I2),
        problem(1e200 * I2, 1e200 * I2, 1e200 * I2, I2),
        problem(1e-200 * I2, 1e-200 * I2, 1e-200 * I2, 1e-200 * I2),
        problem(Z2, 1e300 * np.ones((2, 2)), -1e300 * (I2 + J), I2),
    ],
)
def test_degenerate_data_give_claims_that_hold_or_none(case):
    """Zero matrices, imaginary spectra, semidefinite scores, numbers out of range: no traceback."""
    for claim in find(case):
        if proved(case, claim):
            said = statement(case, claim)
            assert said.verdict is not Verdict.BOUNDED


def test_a_family_gets_no_claims_about_constant_parameters():
    case = problem(Z2, np.diag([1.0, -1]), -I2)
    family = CertificationProblem((*case.vertices, Parameters(A=I2, V=I2, B=-I2)))
    assert not list(find(family))
    mixed = CertificationProblem((*case.vertices, Parameters(A=I2, V=I2, B=np.diag([1.0, -1]))))
    (claim,) = find(mixed)
    assert claim.numbers["vertex"] == 1.0
    assert proved(mixed, claim)


# -- large --------------------------------------------------------------------------------------

LARGE = 768


def scaled(rng, *shape):
    return rng.standard_normal(shape) / np.sqrt(shape[-1])


def answer(p, start=None):
    """Claims, and whether each is proved."""
    case = CertificationProblem((p,), start)
    return [(claim.rule, proved(case, claim)) for claim in find(case)]


@pytest.mark.slow
def test_twelve_heads_of_rank_64_in_dimension_768():
    rng = np.random.default_rng(0)
    Q, K, O, W = (scaled(rng, 12, 64, LARGE) for _ in range(4))
    V = np.einsum("hai,haj->hij", O, W)
    B = np.einsum("hai,haj->hij", K, Q)
    found = answer(Parameters(A=scaled(rng, LARGE, LARGE), V=V, B=B))
    assert found == [("no-quadratic-certificate-common-isotropy", True)]


@pytest.mark.slow
def test_one_head_in_dimension_768():
    rng = np.random.default_rng(1)
    A, V, R = (scaled(rng, LARGE, LARGE) for _ in range(3))
    B = -(R @ R.T + 0.5 * np.eye(LARGE)) + 0.1 * (R - R.T)
    start = Gaussian(np.zeros(LARGE), 7.0 * np.eye(LARGE))
    found = answer(Parameters(A=A, V=V, B=B), start)
    assert found == [("spectral-blow-up", True)]
    found = answer(Parameters(A=A, V=1.5 * np.eye(LARGE) + 0.3 * V, B=B))
    assert found == [("dissipative", True)]
    found = answer(Parameters(A=A, V=V, B=R))
    assert found == [("no-quadratic-certificate-indefinite-score", True)]

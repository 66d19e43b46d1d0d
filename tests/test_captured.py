"""Starts that enter a region of attraction: what is proved, against integration and tampering."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import gtcontrol as gt
from gtcontrol.arithmetic import balls
from gtcontrol.certification.bracket.reduction import reduced
from gtcontrol.certification.ladder import RUNGS
from gtcontrol.certification.rules import rule
from gtcontrol.certification.rules.base import Refuted, Scope
from gtcontrol.certification.rules.captured_start import enclose_end
from gtcontrol.certification.rules.course import read_course
from gtcontrol.certification.search.captured import find
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.results.claims import Claim
from gtcontrol.status import Verdict

RANK_LOST = {"V": [[1, 0.5], [0.5, 1]], "B": -np.eye(2), "A": [[10, -7.5], [5, -3]]}
BISTABLE = {"V": [[5, -3], [-3, 2]], "B": np.diag([-7, -1]), "A": [[112, -19], [-70, 12]]}
CYCLE = {"V": [[1, 1], [1, 4]], "B": [[-3, 1], [1, -1]], "A": [[4, 10.5], [-76, 18]]}
NONSYMMETRIC = {"A": np.diag([1, 0.5]), "V": [[2, 1], [0, 1]], "B": [[-1, -1], [1, -2]]}

PLANE = np.array([[0.645663618243468197, -0.131330641101663186], [0.0, 0.208672763513063605]])
PLANE[1, 0] = PLANE[0, 1]

#: Attractors of the bistable case, of ranks one and two.
ONE = np.array([[1.98268267312062756, -2.11370702953671123], [0.0, 2.25339004939248113]])
ONE[1, 0] = ONE[0, 1]
TWO = np.array([[2.06639383655230318, -1.8823815834929252], [0.0, 3.24952885841959204]])
TWO[1, 0] = TWO[0, 1]


def law(L) -> gt.Gaussian:
    L = np.asarray(L, dtype=float)
    return gt.Gaussian(np.zeros(len(L)), L)


def problem(parameters: dict, L) -> CertificationProblem:
    return CertificationProblem((gt.Parameters(**parameters),), law(L))


def captured(of: CertificationProblem) -> Claim:
    """The claim of the search, proved."""
    (claim,) = find(of)
    assert not claim.proved
    rule(claim.rule).check(of, claim)
    return claim


def limit(claim: Claim) -> np.ndarray:
    L = claim.arrays["frame"][:, : int(claim.numbers["rank"])]
    return L @ L.T


def path(p: gt.Parameters, S: np.ndarray, end: float) -> np.ndarray:
    """Covariance at a time, by SciPy and the definition of the flow."""
    d = len(S)

    def rate(t, s):
        S = s.reshape(d, d)
        M = p.A + sum(V @ S @ B for V, B, _ in p.heads)
        made = M @ S + S @ M.T
        return (made if p.noise is None else made + p.noise).ravel()

    found = solve_ivp(rate, (0, end), S.ravel(), method="LSODA", rtol=1e-11, atol=1e-14)
    assert found.success
    return found.y[:, -1].reshape(d, d)


def end_of(claim: Claim) -> float:
    return float(np.sum(claim.arrays["steps"]))


def enclosed(of: CertificationProblem, claim: Claim):
    p, L = reduced(of.parameters, of.start.factor)
    return enclose_end(p, L, read_course(claim, p.dim))


# -- where starts go ---------------------------------------------------------------------------


def test_a_start_of_full_rank_loses_rank():
    of = problem(RANK_LOST, np.eye(2))
    claim = captured(of)
    said = rule(claim.rule).state(of, claim)
    assert claim.numbers["rank"] == 1
    np.testing.assert_allclose(limit(claim), np.diag([10.0, 0.0]), atol=1e-12)
    assert (said.verdict, said.scope) == (Verdict.CONVERGES, Scope.THIS_START)
    assert said.lower == np.inf
    assert "of rank 1, trace 10, [10, 0; 0, 0]." in said.text


# Where floats go, by LSODA to t = 100.
@pytest.mark.parametrize(
    ("L", "wanted"),
    [
        pytest.param(np.diag([3**0.5, 1.0]), TWO, id="rank two"),
        pytest.param([[0.1, 0.0], [0.3, 0.9]], ONE, id="rank two to one"),
        pytest.param([[1.7], [1.0]], ONE, id="rank one"),
    ],
)
def test_bistable_starts_are_told_apart(L, wanted):
    of = problem(BISTABLE, L)
    claim = captured(of)
    np.testing.assert_allclose(limit(claim), wanted, rtol=1e-10)
    np.testing.assert_allclose(
        path(of.parameters, of.start.covariance, 100.0), wanted, rtol=1e-5, atol=1e-5
    )


def test_a_start_in_the_region_is_there_from_the_beginning():
    of = problem(BISTABLE, np.linalg.cholesky(TWO) * (1 + 1e-6))
    claim = captured(of)
    assert claim.arrays["steps"].size == 0
    assert "From the beginning it is in the region" in rule(claim.rule).state(of, claim).text


def test_certify_says_where_a_start_goes():
    answer = gt.certify(gt.Parameters(**NONSYMMETRIC), law(np.diag([3**0.5, 1.0])))
    assert answer.proved
    assert answer.verdict is Verdict.CONVERGES
    assert answer.claims[0].rule == "captured-start"
    assert answer.statement.startswith("The covariance of this start converges to the equilibrium")
    assert answer.bound < np.inf  # what was proved before is kept
    assert gt.verify(answer)


def test_a_cycle_is_not_captured():
    assert list(find(problem(CYCLE, np.eye(2)))) == []


def test_blow_up_is_not_captured():
    of = problem({"V": [[1, 0.5], [0.2, 0.8]], "B": [[1, 0.3], [0, 0.7]]}, np.eye(2))
    assert list(find(of)) == []


def test_large_starts_fade_where_the_linear_part_wins():
    """A = -I/2, V = diag(1, 2), B = -1/2 in one corner: 0 attracts from afar."""
    of = problem({"A": -np.eye(2) / 2, "V": [[1, 0.3], [0, 2]], "B": -np.eye(2)}, 40 * np.eye(2))
    claim = captured(of)
    assert claim.numbers["rank"] == 0
    assert "the equilibrium 0." in rule(claim.rule).state(of, claim).text


def test_noise_leads_from_rank_zero_to_full_rank():
    p = {"A": [[1, 0.3], [0, -0.5]], "V": [[1, 0.2], [0.1, 0.8]], "B": [[-1, -0.3], [0, -0.7]]}
    of = problem(p | {"noise": [[0.2, 0], [0, 0.1]]}, np.zeros((2, 0)))
    claim = captured(of)
    assert claim.numbers["rank"] == 2
    ends = path(of.parameters, np.zeros((2, 2)), 30.0)
    np.testing.assert_allclose(limit(claim), ends, rtol=1e-9)


def test_heads_share_the_equilibrium():
    V = [[[1, 0.2], [0.1, 0.8]], [[0.5, 0], [0.2, 1]]]
    B = -np.array([[[1, 0.3], [0, 0.7]], [[0.4, 0.2], [-0.2, 0.6]]])
    of = problem({"A": [[1, 0.3], [0, 0.5]], "V": V, "B": B}, 3 * np.eye(2))
    claim = captured(of)
    np.testing.assert_allclose(
        limit(claim), path(of.parameters, of.start.covariance, 40.0), rtol=1e-9
    )


def test_coordinates_that_are_never_reached_may_repel():
    """The third variance grows from anything but 0."""
    A, B = np.diag([1, 0.5, 2.0]), -np.array([[1, 1, 0], [-1, 2, 0], [0.3, 0.1, -1]])
    of = problem({"A": A, "V": [[2, 1, 0.3], [0, 1, 0.2], [0, 0, 1]], "B": B}, np.eye(3)[:, :2])
    claim = captured(of)
    np.testing.assert_allclose(limit(claim), PLANE, rtol=1e-12)
    text = rule(claim.rule).state(of, claim).text
    assert "[0.645664, -0.131331, 0; -0.131331, 0.208673, 0; 0, 0, 0]." in text
    with pytest.raises(Refuted):
        rule(claim.rule).check(replace(of, start=law(np.eye(3))), claim)


def test_the_mean_follows():
    p = {"A": np.eye(2), "B": [[0.5, 0.1], [0, 0.5]], "V": [[-1, 0.1], [0, -1]], "b": [1.0, 2.0]}
    of = problem(p, 0.2 * np.eye(2))
    claim = captured(of)
    S, q = limit(claim), of.parameters
    V, B, _ = q.heads[0]
    mean = -np.linalg.solve(q.A + V + V @ S @ B, q.b)
    np.testing.assert_allclose(claim.arrays["mean"], mean, rtol=1e-10)
    assert "Every mean then tends to" in rule(claim.rule).state(of, claim).text
    wrong = {**claim.arrays, "mean": 1.01 * claim.arrays["mean"]}
    with pytest.raises(Refuted, match="the mean"):
        rule(claim.rule).check(of, replace(claim, arrays=wrong))


# -- units and coordinates ---------------------------------------------------------------------


@pytest.mark.parametrize("power", [-8, 8])
@pytest.mark.parametrize("kind", ["time", "size", "stretch", "split"])
def test_units_change_nothing(kind, power):
    A, V, B = (np.array(NONSYMMETRIC[name], dtype=float) for name in "AVB")
    k, L, wanted = 10.0**power, np.eye(2), PLANE
    if kind == "time":
        A, B = A * k, B * k
    elif kind == "split":
        V, B = V * k, B / k
    elif kind == "size":
        B, L, wanted = B * k, L / k**0.5, PLANE / k
    else:
        T, inverse = np.diag([1.0, k**0.5]), np.diag([1.0, k**-0.5])
        A, V, B, L = T @ A @ inverse, T @ V @ inverse, inverse @ B @ inverse, T
        wanted = T @ PLANE @ T
    claim = captured(problem({"A": A, "V": V, "B": B}, L))
    np.testing.assert_allclose(limit(claim), wanted, rtol=1e-10)


def test_congruence_carries_attractor_and_start_along():
    T = np.array([[1.0, 0.7], [-0.4, 1.3]])
    inverse = np.linalg.inv(T)
    A, V, B = (np.array(RANK_LOST[name], dtype=float) for name in "AVB")
    moved = {"A": T @ A @ inverse, "V": T @ V @ inverse, "B": inverse.T @ B @ inverse}
    claim = captured(problem(moved, T))
    assert claim.numbers["rank"] == 1
    np.testing.assert_allclose(limit(claim), T @ np.diag([10.0, 0.0]) @ T.T, atol=1e-11)


# -- limits that attract only covariances of their rank ----------------------------------------

# Full rank leaves these limits: the transversal exponents are positive.
SADDLE = {"A": [[1, 0.4], [0, 2]], "V": [[1, 0.3], [-0.2, 1.5]], "B": [[-1, 0.5], [-0.5, -1]]}
SPACE = {
    "A": [[2.5, 0.2, 0.0], [0.1, 1.5, 0.3], [0.0, 0.2, 0.4]],
    "V": [[1, 0.3, 0.1], [0.1, 1.2, 0.0], [0.1, 0.2, 0.9]],
    "B": -np.array([[1, 0.2, 0.1], [0.1, 1.1, 0.2], [0.0, 0.1, 0.8]]),
}


@pytest.mark.parametrize(
    ("parameters", "L"),
    [
        pytest.param(SADDLE, [[0.5], [0.8]], id="rank one in the plane"),
        pytest.param(SPACE, [[1.0], [0.6], [0.1]], id="rank one in space"),
        pytest.param(SPACE, [[1.0, 0.0], [0.6, 0.3], [0.1, 0.4]], id="rank two in space"),
    ],
)
def test_limits_of_deficient_rank_attract_their_rank(parameters, L):
    of = problem(parameters, L)
    claim = captured(of)
    assert claim.rule == "captured-rank"
    rank, S = of.start.rank, limit(claim)
    assert np.linalg.matrix_rank(S, tol=1e-9) == rank
    p, law_there = of.parameters, gt.simulate(of.start, of.parameters, 60.0).final
    np.testing.assert_allclose(law_there.covariance, S, rtol=1e-8, atol=1e-10)
    # The linearisation on all covariances has an unstable direction, of higher rank.
    V, B, _ = p.heads[0]
    M = p.A + V @ S @ B
    normal = np.linalg.svd(S)[0][:, rank:]
    assert np.linalg.eigvals(normal.T @ M @ normal).real.max() > 0
    said = rule(claim.rule).state(of, claim)
    assert (said.verdict, said.scope) == (Verdict.CONVERGES, Scope.THIS_START)


def test_within_the_rank_the_distance_falls_at_the_rate():
    of = problem(SADDLE, [[0.5], [0.8]])
    claim = captured(of)
    n, R, G = claim.numbers, np.linalg.inv(claim.arrays["frame"]), claim.arrays["metric"]

    def distance(t):
        S = gt.simulate(of.start, of.parameters, t).final.covariance
        D = R @ S @ R.T - np.diag([1.0, 0.0])
        return np.linalg.norm(G @ [D[0, 0], 2**0.5 * D[0, 1]])

    end = end_of(claim)
    first = distance(end)
    assert first <= n["arrival"] <= n["radius"]
    for t in (0.2, 1.0, 3.0):
        assert distance(end + t) <= np.exp(-n["rate"] * t) * first + 2 * n["error"] + 1e-11


def test_tampering_with_a_region_of_one_rank_is_refuted():
    of = problem(SADDLE, [[0.5], [0.8]])
    claim, made = captured(of), rule("captured-rank")
    factors = {"rate": 2.0, "radius": 1e-3, "error": 1e-9, "arrival": 0.9, "rank": 2.0}
    for name, factor in factors.items():
        for value in (claim.numbers[name] * factor, np.nan, -1.0, np.inf):
            with pytest.raises(Refuted):
                made.check(of, replace(claim, numbers={**claim.numbers, name: value}))
    wide = {**claim.numbers, "radius": 3 * claim.numbers["radius"]}
    with pytest.raises(Refuted, match="rate"):
        made.check(of, replace(claim, numbers=wide))
    for name, value in {
        "frame": 1.01 * claim.arrays["frame"],
        "metric": np.ones((2, 2)),
        "steps": claim.arrays["steps"][:-2],
    }.items():
        with pytest.raises(Refuted):
            made.check(of, replace(claim, arrays={**claim.arrays, name: value}))
        left = {key: x for key, x in claim.arrays.items() if key != name}
        with pytest.raises(Refuted):
            made.check(of, replace(claim, arrays=left))
    # A little variance in the other direction, and the start goes elsewhere.
    with pytest.raises(Refuted, match="rank"):
        made.check(replace(of, start=law([[0.5, 1e-6], [0.8, 0.0]])), claim)
    with pytest.raises(Refuted):
        made.check(replace(of, start=None), claim)


# -- the proof ---------------------------------------------------------------------------------


def test_balls_hold_what_another_integrator_finds():
    for parameters, L in ((RANK_LOST, np.eye(2)), (BISTABLE, np.diag([3**0.5, 1.0]))):
        of = problem(parameters, L)
        claim = captured(of)
        found = path(of.parameters, of.start.covariance, end_of(claim))
        box = enclosed(of, claim)
        np.testing.assert_allclose(balls.middle(box), found, rtol=1e-7, atol=1e-9)
        assert balls.radius(box) < 0.1 * np.linalg.norm(found)


def test_the_rate_from_the_entry_on_holds():
    of = problem(NONSYMMETRIC, 2 * np.eye(2))
    claim = captured(of)
    S = path(of.parameters, of.start.covariance, end_of(claim))
    n = claim.numbers
    R, G = np.linalg.inv(claim.arrays["frame"]), claim.arrays["metric"]

    def distance(S):
        D = R @ S @ R.T - np.eye(2)
        return np.linalg.norm(G @ [D[0, 0], 2**0.5 * D[0, 1], D[1, 1]])

    first = distance(S)
    assert first <= n["arrival"] < n["radius"]
    speed = n["rate"] * (1 - n["cubic"] * n["arrival"])
    for t in (0.3, 1.0, 3.0):
        assert distance(path(of.parameters, S, t)) <= np.exp(-speed * t) * first + 2 * n["error"]


def test_tampering_is_refuted():
    of = problem(NONSYMMETRIC, np.diag([3**0.5, 1.0]))
    claim, made = captured(of), rule("captured-start")
    numbers = {
        "arrival": 0.9,
        "radius": 2.0,
        "cubic": 0.5,
        "rate": 1.1,
        "error": 1e-9,
        "reach": 1.1,
        "rank": 0.5,
        "bits": 0.5,
        "order": 0.01,
    }
    for name, factor in numbers.items():
        changed = {**claim.numbers, name: claim.numbers[name] * factor}
        with pytest.raises(Refuted):
            made.check(of, replace(claim, numbers=changed))
        with pytest.raises(Refuted):
            made.check(of, replace(claim, numbers={**claim.numbers, name: np.nan}))
        del changed[name]
        with pytest.raises(Refuted):
            made.check(of, replace(claim, numbers=changed))
    arrays = {
        "frame": 1.01 * claim.arrays["frame"],
        "metric": claim.arrays["metric"][:2],
        "steps": claim.arrays["steps"][:1],
        "coordinates": np.ones((2, 2)),
    }
    for name, value in arrays.items():
        with pytest.raises(Refuted):
            made.check(of, replace(claim, arrays={**claim.arrays, name: value}))
        left = {key: x for key, x in claim.arrays.items() if key != name}
        with pytest.raises(Refuted):
            made.check(of, replace(claim, arrays=left))
    for steps in (-claim.arrays["steps"], np.full(3, np.inf), np.full(10**4, 1e-3)):
        with pytest.raises(Refuted):
            made.check(of, replace(claim, arrays={**claim.arrays, "steps": steps}))
    steps = np.array([claim.arrays["steps"].sum()])  # one step, far beyond the series
    with pytest.raises(Refuted, match="grow"):
        made.check(of, replace(claim, arrays={**claim.arrays, "steps": steps}))


def test_another_problem_is_refuted():
    of = problem(BISTABLE, np.diag([3**0.5, 1.0]))
    claim, made = captured(of), rule("captured-start")
    with pytest.raises(Refuted):
        made.check(replace(of, start=None), claim)
    with pytest.raises(Refuted):
        made.check(replace(of, vertices=of.vertices * 2), claim)
    with pytest.raises(Refuted):
        made.check(replace(of, start=law([[0.1, 0.0], [0.3, 0.9]])), claim)


def test_no_start_no_claim():
    p = gt.Parameters(**NONSYMMETRIC)
    assert list(find(CertificationProblem((p,)))) == []
    assert list(find(CertificationProblem((p, p), law(np.eye(2))))) == []
    assert [r.title for r in RUNGS].index("equilibria") + 1 == [r.find for r in RUNGS].index(find)

"""From problem to certificate: ranking of claims, contradictions, verification, command line."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import gtcontrol as gt
from gtcontrol.certification import ladder, rules, run
from gtcontrol.certification.conclusion import conclude, settle
from gtcontrol.certification.rules import RULES
from gtcontrol.certification.rules.base import Refuted, Rule, Scope, Statement
from gtcontrol.cli.app import app
from gtcontrol.errors import (
    Contradiction,
    InvalidNumber,
    InvalidShape,
    OutOfScale,
    ResultFileInvalid,
)
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.results.certificate import OUTCOMES
from gtcontrol.results.claims import Claim
from gtcontrol.status import Status, Verdict

I2 = np.eye(2)
SMALL = gt.Parameters(A=[[0.5]], V=[[1.0]], B=[[1.0]])
UNIT = gt.Gaussian([0.0], [[1.0]])


class Made(Rule):
    """A rule that says what its claim's numbers ask for, and proves what they allow."""

    name = "made"
    theorem = "made for a test"

    def check(self, problem, claim):
        if not claim.numbers["true"]:
            raise Refuted("it is not true")

    def state(self, problem, claim):
        n = claim.numbers
        verdict = list(Verdict)[int(n["verdict"])]
        return Statement(
            verdict,
            list(Scope)[int(n["scope"])],
            f"It is {verdict.name}.",
            n.get("lower", 0.0),
            n.get("upper", math.inf),
            n.get("bound", math.inf),
        )


@pytest.fixture(autouse=True)
def _made(monkeypatch, tmp_path):
    monkeypatch.setitem(RULES, "made", Made())
    monkeypatch.chdir(tmp_path)


def claim(verdict, scope=Scope.EVERY_START, *, true=True, **numbers):
    return Claim(
        "made",
        numbers={
            "verdict": float(list(Verdict).index(verdict)),
            "scope": float(list(Scope).index(scope)),
            "true": float(true),
            **numbers,
        },
    )


def concluded(*claims, start=None):
    problem = CertificationProblem((SMALL,), start)
    return conclude(problem, [settle(problem, c) for c in claims])


# -- the strongest claim -----------------------------------------------------------------------


def test_without_claims_nothing_is_decided():
    found = concluded()
    assert (found.verdict, found.proved) == (Verdict.UNDECIDED, False)
    assert (found.lower, found.upper, found.bound) == (0.0, math.inf, math.inf)


def seen(outcome="limit"):
    """Evidence of one integration."""
    numbers = {f"count {name}": float(name == outcome) for name in OUTCOMES}
    arrays = {"limit": np.zeros((1, 1))} if outcome == "limit" else {}
    return Claim("integration", numbers={**numbers, "time": 3.0}, arrays=arrays)


def test_proof_comes_before_evidence():
    found = concluded(seen(), claim(Verdict.BOUNDED, bound=3.0), start=UNIT)
    assert (found.verdict, found.proved, found.bound) == (Verdict.BOUNDED, True, 3.0)
    assert found.statement == (
        "It is BOUNDED. Numerically: From this start the covariance tends to zero."
    )
    assert "evidence, not proof" in found.claims[1].note


def test_what_its_rule_refutes_is_no_evidence():
    found = concluded(claim(Verdict.CONVERGES, true=False))
    assert (found.verdict, found.proved) == (Verdict.UNDECIDED, False)
    assert found.claims[0].note == "it is not true"


def test_an_unproved_bound_is_no_bound():
    assert concluded(claim(Verdict.BOUNDED, true=False, bound=3.0)).bound == math.inf


def test_a_limit_says_more_than_a_bound():
    found = concluded(claim(Verdict.BOUNDED), claim(Verdict.CONVERGES))
    assert found.verdict is Verdict.CONVERGES
    assert found.statement == "It is CONVERGES."


def test_evidence_about_the_start_comes_before_proofs_about_others():
    some = claim(Verdict.BLOW_UP_DATA_EXIST, Scope.SOME_STARTS)
    found = concluded(some, seen(), start=UNIT)
    assert (found.verdict, found.proved) == (Verdict.CONVERGES, False)
    assert concluded(some, seen()).verdict is Verdict.BLOW_UP_DATA_EXIST


def test_full_rank_stands_for_all_starts_but_not_for_a_singular_one():
    full = claim(Verdict.CONVERGES, Scope.FULL_RANK)
    assert concluded(full).verdict is Verdict.CONVERGES
    assert concluded(full, start=UNIT).verdict is Verdict.CONVERGES
    point = gt.Gaussian([0.0], np.zeros((1, 0)))
    about_others = concluded(full, start=point)
    assert (about_others.verdict, about_others.proved) == (Verdict.UNDECIDED, False)
    assert about_others.statement.startswith("Proved: It is CONVERGES. Of the tests none decides")
    some = claim(Verdict.CONVERGES, Scope.SOME_STARTS)
    assert concluded(some, start=UNIT).verdict is Verdict.UNDECIDED
    assert concluded(some).verdict is Verdict.UNDECIDED


def test_enclosures_are_intersected():
    found = concluded(
        claim(Verdict.BLOWS_UP, Scope.THIS_START, upper=2.0),
        claim(Verdict.BLOWS_UP, Scope.THIS_START, lower=0.5, upper=3.0),
        claim(Verdict.UNDECIDED, Scope.THIS_START, lower=1.0),
        claim(Verdict.BLOWS_UP, Scope.THIS_START, lower=1.9, upper=1.95, true=False),
        start=UNIT,
    )
    assert (found.lower, found.upper) == (1.0, 2.0)


def test_no_blow_up_is_an_infinite_time():
    found = concluded(claim(Verdict.BOUNDED, Scope.THIS_START), start=UNIT)
    assert (found.lower, found.upper) == (math.inf, math.inf)


def test_blow_up_and_local_stability_are_told_together():
    found = concluded(
        claim(Verdict.LOCALLY_STABLE, Scope.SOME_STARTS),
        claim(Verdict.BLOW_UP_DATA_EXIST, Scope.SOME_STARTS),
    )
    assert found.verdict is Verdict.BLOW_UP_DATA_EXIST
    assert found.statement == "It is BLOW_UP_DATA_EXIST. It is LOCALLY_STABLE."


@pytest.mark.parametrize(
    "pair",
    [
        (claim(Verdict.BLOWS_UP, upper=1.0), claim(Verdict.BOUNDED)),
        (
            claim(Verdict.BLOW_UP_DATA_EXIST, Scope.SOME_STARTS),
            claim(Verdict.CONVERGES, Scope.EVERY_START),
        ),
        (
            claim(Verdict.BLOWS_UP, Scope.THIS_START, lower=0.0, upper=1.0),
            claim(Verdict.BLOWS_UP, Scope.THIS_START, lower=2.0, upper=3.0),
        ),
    ],
)
def test_two_proofs_that_exclude_each_other_are_a_defect(pair):
    with pytest.raises(Contradiction, match="a defect of gtcontrol"):
        concluded(*pair, start=UNIT)


def test_a_proof_that_an_integration_contradicts_is_a_defect(monkeypatch):
    wrong = ladder.Rung("wrong", lambda problem: iter([claim(Verdict.BOUNDED)]), lambda *_: True)
    monkeypatch.setattr(run, "RUNGS", (wrong,))
    with pytest.raises(Contradiction, match=r"the integration blows up at t = 0\.405465"):
        gt.certify(SMALL, UNIT)
    early = claim(Verdict.BLOWS_UP, Scope.THIS_START, upper=0.4)
    monkeypatch.setattr(
        run, "RUNGS", (ladder.Rung("early", lambda problem: iter([early]), lambda *_: True),)
    )
    with pytest.raises(Contradiction, match="contradicts what is proved"):
        gt.certify(SMALL, UNIT)


# -- certify -----------------------------------------------------------------------------------


def test_an_interruption_keeps_what_there_is(monkeypatch):
    def stop(problem):
        yield claim(Verdict.BOUNDED)
        raise KeyboardInterrupt

    first = ladder.Rung("first", lambda p: iter([claim(Verdict.BOUNDED)]), lambda *_: True)
    second = ladder.Rung("second", stop, lambda *_: True)
    monkeypatch.setattr(run, "RUNGS", (first, second))
    answer = gt.certify(gt.Parameters(A=-I2))
    assert answer.status is Status.INTERRUPTED
    assert answer.verdict is Verdict.BOUNDED
    assert not answer.answered
    assert not answer.integrations


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((np.eye(2),), InvalidShape, "must be Parameters, or several of them, not ndarray"),
        (([],), InvalidNumber, "is empty"),
        ((SMALL, I2), InvalidShape, "`start` must be a Gaussian, not ndarray"),
        ((SMALL, gt.Gaussian([0.0, 0.0], I2)), InvalidShape, "dimension 2, but `parameters` 1"),
        (([SMALL, gt.Parameters(A=I2)],), InvalidShape, "dimensions 1 and 2"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, error, words):
    with pytest.raises(error, match=words) as caught:
        gt.certify(*arguments)
    assert "\n" not in str(caught.value)


# -- saving and checking again -------------------------------------------------------------------


def test_a_certificate_comes_back_whole():
    answer = gt.certify(SMALL, UNIT, name="small")
    answer.save("saved")
    again = gt.load("saved")
    assert again.statement == answer.statement
    assert again.verdict is answer.verdict
    assert again.problem.name == "small"
    assert (again.lower, again.upper, again.bound) == (answer.lower, answer.upper, answer.bound)
    assert [c.rule for c in again.claims] == [c.rule for c in answer.claims]
    for one, other in zip(again.claims, answer.claims, strict=True):
        assert one.numbers == dict(other.numbers)
        for key, value in other.arrays.items():
            np.testing.assert_array_equal(one.arrays[key], value)
    for one, other in zip(again.integrations, answer.integrations, strict=True):
        np.testing.assert_array_equal(one.covariances, other.covariances)
    assert gt.verify(again)
    assert gt.verify(Path("saved"))


def rewritten(change):
    """Save a certificate, change its JSON, and return the reasons for which it is rejected."""
    gt.certify(SMALL, UNIT).save("saved")
    path = Path("saved/result.json")
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))
    found = gt.verify("saved")
    assert not found
    assert not found.proved
    return " ".join(found.reasons)


def test_a_verdict_that_was_changed_is_rejected():
    def change(values):
        values["verdict"] = "BOUNDED"

    assert "`verdict` is BOUNDED, but the claims prove BLOWS_UP" in rewritten(change)


def test_a_statement_that_was_changed_is_rejected():
    def change(values):
        values["statement"] = "All is well."

    assert "`statement` reads 'All is well.' where the claims prove" in rewritten(change)


def test_evidence_that_is_called_proof_is_rejected():
    def change(values):
        values["proved"] = True
        for one in values["claims"]:
            one["proved"] = True

    assert "an integration in floating point is evidence, not proof" in rewritten(change)


def test_an_array_of_another_shape_is_rejected():
    p = gt.Parameters(A=-np.eye(2), V=np.eye(2), B=np.eye(2))
    gt.certify(p).save("saved")
    with np.load("saved/result.npz") as stored:
        arrays = dict(stored)
    names = [key for key, value in arrays.items() if key.startswith("claims.") and value.ndim == 2]
    assert any(key.endswith("gramian") for key in names)
    for name in names:
        np.savez("saved/result.npz", **{**arrays, name: arrays[name].ravel()[:-1]})
        found = gt.verify("saved")
        assert not found
        assert not found.proved
        done = gtcontrol("report", "saved")
        assert done.exit_code in (0, 2)
        assert "Traceback" not in done.output


def test_an_unknown_rule_is_rejected():
    def change(values):
        for one in values["claims"]:
            one["rule"] = "wishful thinking"

    assert "unknown rule 'wishful thinking'" in rewritten(change)


def test_only_certificates_are_verified():
    with pytest.raises(InvalidShape, match="a Certificate or a Design, not Trajectory"):
        gt.verify(gt.simulate(UNIT, SMALL, 0.1))
    with pytest.raises(ResultFileInvalid, match="no saved result"):
        gt.verify("nowhere")


@pytest.mark.parametrize(
    "damage",
    [
        lambda v: v.update(claims="none"),
        lambda v: v.update(claims=["x"]),
        lambda v: v["claims"][0].update(proved="yes"),
        lambda v: v["claims"][0].update(numbers=[1]),
        lambda v: v["claims"][0]["numbers"].update(time=None),
        lambda v: v["claims"][0]["numbers"].update(time="soon"),
        lambda v: v["claims"][0].update(arrays=["missing"]),
        lambda v: v.update(vertices=0),
        lambda v: v.update(vertices=3),
        lambda v: v.update(integrations={}),
        lambda v: v.update(verdict="PERHAPS"),
        lambda v: v.pop("statement"),
    ],
)
def test_damage_is_named_in_one_line(damage):
    gt.certify(gt.Parameters(A=[[-1.0]]), UNIT).save("saved")
    path = Path("saved/result.json")
    values = json.loads(path.read_text())
    damage(values)
    path.write_text(json.dumps(values))
    with pytest.raises(ResultFileInvalid, match=r"damaged|claim|expected") as caught:
        gt.load("saved")
    assert "\n" not in str(caught.value)


# -- the command line ----------------------------------------------------------------------------


ONE_AGAINST_TWO = """
kind = "certify"
[parameters]
A = [[1.0]]
[start]
mean = [0.0, 0.0]
covariance = [[1.0, 0.0], [0.0, 1.0]]
"""


def gtcontrol(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_verify_rejects_in_one_line():
    gt.certify(SMALL, UNIT).save("saved")
    path = Path("saved/result.json")
    path.write_text(path.read_text().replace("BLOWS_UP", "BOUNDED"))
    done = gtcontrol("verify", "saved/result.json")
    assert done.exit_code == 2
    assert done.stderr.startswith("gtcontrol: the certificate in saved is rejected: ")
    assert done.stderr.count("\n") == 1
    assert not done.stdout


def test_verify_prints_json():
    gt.certify(SMALL, UNIT).save("saved")
    done = gtcontrol("verify", "saved", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["verdict"] == "BLOWS_UP"
    assert (found["valid"], found["proved"], found["reasons"]) == (True, True, [])
    path = Path("saved/result.json")
    path.write_text(path.read_text().replace("blows up", "explodes"))
    done = gtcontrol("verify", "saved", "--json")
    assert done.exit_code == 2
    reasons = json.loads(done.stdout)["reasons"]
    assert reasons[0].startswith("`statement` reads 'explodes")
    assert reasons[0].count("where the claims prove 'blows up") == 1


def test_verify_wants_a_certificate():
    gt.simulate(UNIT, SMALL, 0.1).save("saved")
    done = gtcontrol("verify", "saved")
    assert done.exit_code == 2
    assert "is a simulation, not a certificate" in done.stderr
    assert gtcontrol("verify", "nowhere").exit_code == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('kind = "certify"\n', "`parameters` and `[[vertex]]` are both missing"),
        (
            'kind = "certify"\n[parameters]\nA = [[1.0]]\n[[vertex]]\nA = [[1.0]]\n',
            "are both given",
        ),
        ('kind = "certify"\n[parameters]\n', "needs at least one of A, B, V, b"),
        (
            'kind = "certify"\n[[vertex]]\nA = [[1.0]]\n[[vertex]]\nA = [[1.0, 0.0], [0.0, 1.0]]\n',
            "has dimension 2; the first has 1",
        ),
        (
            ONE_AGAINST_TWO,
            "has dimension 2, but the parameters have 1",
        ),
        ('kind = "certify"\n[parameters]\nA = [[nan]]\n', "a finite number"),
        ('kind = "certify"\n[parameters]\nA = [[1.0]]\n[expect]\nverdict = "YES"\n', "verdict"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(text, words):
    Path("bad.toml").write_text(text)
    done = gtcontrol("run", "bad.toml")
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not Path("runs").exists()


def test_rules_have_uniform_names_and_words_of_their_own():
    every = rules._ALL
    names, words = [r.name for r in every], [r.theorem for r in every]
    assert len(set(names)) == len(set(words)) == len(every)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)
    assert all(3 <= len(w) <= 75 and not w.endswith(".") for w in words)
    assert not any(type(r).__name__.endswith("Rule") for r in every)


def test_a_contradiction_is_one_line_on_the_command_line(monkeypatch):
    wrong = ladder.Rung("wrong", lambda problem: iter([claim(Verdict.BOUNDED)]), lambda *_: True)
    monkeypatch.setattr(run, "RUNGS", (wrong,))
    done = gtcontrol("run", "certify-skew")
    assert done.exit_code == 1
    assert "a defect of gtcontrol" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not Path("runs").exists()


# -- families --------------------------------------------------------------------------------------

#: Rules that hold in the convex hull if they hold at the vertices (and, some, at their pairs).
HULL = {
    "dissipative",
    "dissipative-blocks",
    "ultimate-bound",
    "decay",
    "blow-up-upper",
    "blow-up-lower",
}

CONSTANT = {
    "scalar": gt.Parameters(A=I2, V=I2, B=-I2),
    "threshold": gt.Parameters(A=-I2, V=I2, B=I2),
    "indefinite": gt.Parameters(A=0.1 * I2, V=np.diag([2.0, 1.0]), B=np.diag([1.0, -1.0])),
    "general": gt.Parameters(A=I2, V=[[1.0, 0.5], [0.2, 0.8]], B=-I2),
    "same signs": gt.Parameters(A=I2, V=[[1.0, 0.5], [0.2, 0.8]], B=I2),
    "linear": gt.Parameters(A=-I2),
    "standing": gt.Parameters(A=I2, V=I2, B=-np.eye(2)),
}


@pytest.mark.parametrize("name", CONSTANT)
@pytest.mark.parametrize("given", [False, True])
def test_claims_about_constant_parameters_are_refuted_for_families(name, given):
    """Twice the same vertex is no family, and yet only rules that know of hulls may say so."""
    start = gt.Gaussian([0.0, 0.0], I2) if given else None
    answer = gt.certify(CONSTANT[name], start)
    other = gt.Parameters(A=I2, V=I2, B=-3.0 * I2)
    family = CertificationProblem((answer.problem.parameters, other), start)
    for one in answer.claims:
        if one.proved and one.rule not in HULL:
            still = settle(family, one)
            assert not still.proved or one.rule.startswith("no-quadratic-certificate"), one.rule


@pytest.mark.parametrize(("a", "b"), [(3.0, 1.0), (1.0, 1.0)])
def test_opposite_vertices_do_not_keep_a_start_in_place(a, b):
    """S = 1 stands still at both vertices, but the midpoint of the hull has V = B = b - 1 or so."""
    vertices = [gt.Parameters(A=[[a]], V=[[a]], B=[[-1.0]]),
                gt.Parameters(A=[[a]], V=[[-1.0]], B=[[a]])]  # fmt: skip
    answer = gt.certify(vertices, UNIT)
    assert not answer.proved
    assert answer.verdict is Verdict.UNDECIDED
    assert "switching was not integrated" in answer.statement


def test_switching_can_destabilise_and_vertices_say_nothing():
    first = gt.Parameters(A=[[-0.1, 10.0], [-1.0, -0.1]])
    second = gt.Parameters(A=[[-0.1, 1.0], [-10.0, -0.1]])
    answer = gt.certify([first, second], gt.Gaussian([0.0, 0.0], I2))
    assert (answer.verdict, answer.proved) == (Verdict.UNDECIDED, False)


# -- degenerate starts, thresholds, scales ---------------------------------------------------------


def test_a_start_of_rank_zero_stays():
    answer = gt.certify(gt.Parameters(A=I2, V=I2, B=I2), gt.Gaussian([0.0, 0.0], np.zeros((2, 0))))
    assert (answer.verdict, answer.proved) == (Verdict.CONVERGES, True)


@pytest.mark.parametrize("size", [1.0, 1.0000001, 0.9999999])
def test_rounding_near_a_threshold_is_no_contradiction(size):
    p = gt.Parameters(A=[[-1.0]], V=[[1.0]], B=[[1.0]])
    answer = gt.certify(p, gt.Gaussian.from_covariance([0.0], [[size]]))
    assert answer.proved
    if size > 1:
        s = float(answer.problem.start.covariance[0, 0])
        assert answer.lower == pytest.approx(-0.5 * math.log1p(-1 / s), rel=1e-6)


def test_small_directions_that_grow_are_waited_for():
    """Two decoupled coordinates: the small one blows up at ln(1 + 1e10)/2."""
    E1, E2 = np.diag([1.0, 0.0]), np.diag([0.0, 1.0])
    p = gt.Parameters(A=I2, V=[E1, E2], B=[-I2, I2])
    answer = gt.certify(p, gt.Gaussian([0.0, 0.0], np.diag([1.0, 1e-5])))
    assert answer.verdict is Verdict.BLOWS_UP
    assert answer.blow_up_time == pytest.approx(0.5 * math.log1p(1e10), rel=1e-6)


@pytest.mark.parametrize(
    "p",
    [
        gt.Parameters(A=1e300 * I2, V=1e300 * I2, B=1e300 * I2),
        gt.Parameters(A=1e155 * I2, V=I2, B=-I2),
        gt.Parameters(A=5e-324 * I2, V=5e-324 * I2, B=5e-324 * I2),
        gt.Parameters(A=1e-300 * I2, V=1e-300 * I2, B=1e-300 * I2),
    ],
)
def test_numbers_beyond_the_range_are_refused_in_one_line(p):
    for start in (None, gt.Gaussian([0.0, 0.0], I2)):
        with pytest.raises(OutOfScale, match="rescale tokens or time") as caught:
            gt.certify(p, start)
        assert "\n" not in str(caught.value)


# -- more that was changed -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda v: v["claims"][-1]["numbers"].update({"count blow-up": 0.5}), "is 0.5"),
        (lambda v: v["integrations"][0].update(time=0.1), "not what they show"),
        (lambda v: v["integrations"][0].update(outcome="limit"), "not what they show"),
        (lambda v: v["claims"][0].update(note="Trust me."), "reads 'Trust me.'"),
        (lambda v: v["claims"][-1].update(note="Trust me."), "reads 'Trust me.'"),
        (lambda v: v["claims"][0].update(proved=False), "marked as numerical"),
    ],
)
def test_changed_evidence_is_rejected(change, words):
    answer = gt.certify(SMALL, UNIT)
    answer.save("saved")
    path = Path("saved/result.json")
    values = json.loads(path.read_text())
    values["claims"].sort(key=lambda one: one["rule"] == "integration")
    change(values)
    path.write_text(json.dumps(values))
    assert words in " ".join(gt.verify("saved").reasons)


@pytest.mark.parametrize(
    "damage",
    [
        lambda v: v.update(answered=False),
        lambda v: v.update(certainty="beyond doubt"),
        lambda v: v["integrations"][0].update(outcome="limitX"),
        lambda v: v["integrations"][0].update(from_start=False),
    ],
)
def test_words_that_do_not_fit_are_damage(damage):
    gt.certify(SMALL, UNIT).save("saved")
    path = Path("saved/result.json")
    values = json.loads(path.read_text())
    damage(values)
    path.write_text(json.dumps(values))
    with pytest.raises(ResultFileInvalid):
        gt.load("saved")

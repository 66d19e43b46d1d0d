"""Certificates in words and pictures: what is proved is called proved, and nothing else is."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest

import gtcontrol as gt
from gtcontrol.certification.rules import rule
from gtcontrol.certification.rules.integration import claim_of
from gtcontrol.certification.theory.envelope import envelope, levels
from gtcontrol.cli import kinds
from gtcontrol.problem import zoo
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.reporting.figures.canvas import encode
from gtcontrol.reporting.html import render
from gtcontrol.reporting.views import view
from gtcontrol.results.certificate import Integration
from gtcontrol.results.claims import Claim

I2 = np.eye(2)


@cache
def certificate(name: str) -> gt.Certificate:
    path = zoo.path(name)
    return kinds.prepare(kinds.read(path), path).run(lambda fraction, text: None)


@cache
def numerical() -> gt.Certificate:
    answer = certificate("certify-limit-cycle")
    claims = tuple(c for c in answer.claims if c.rule == "integration")
    return dataclasses.replace(answer, claims=claims, proved=False, bound=np.inf)


def test_proof_and_evidence_are_told_apart():
    proved, seen = view(certificate("certify-limit-cycle")), view(numerical())
    assert proved.headline.startswith("Proved: ")
    assert proved.verdict == "BOUNDED (proved)"
    assert seen.headline.startswith("Numerical evidence, not proved: ")
    assert seen.verdict == "BOUNDED (numerical)"
    table = proved.tables[0]
    assert {row[2] for row in table.rows} == {"proved", "numerical"}
    for row in table.rows:
        if row[2] == "numerical":
            assert "Not proved: " in row[3]


def test_the_json_says_how_certain_the_verdict_is():
    assert certificate("certify-limit-cycle").pack()[0]["certainty"] == "proved"
    assert numerical().pack()[0]["certainty"] == "numerical"


def test_the_title_of_the_picture_says_how_certain_the_verdict_is():
    for answer in (certificate("certify-limit-cycle"), numerical()):
        figure = answer.plot()["envelope"]
        assert figure.get_suptitle() == f"Bounded ({answer.label})"
        assert encode(figure).startswith(b"\x89PNG")


def test_an_enclosure_is_shown_with_its_width():
    answer = certificate("certify-skew")
    facts = {fact.label: fact.value for fact in view(answer).facts}
    assert "proved; relative width" in facts["blow-up time"]
    assert "T* = 0.166666667, relative width" in answer.plot()["envelope"].get_suptitle()


@pytest.mark.parametrize("name", ["certify-opposite-signs", "certify-two-heads"])
def test_the_level_stays_in_the_envelope_that_is_drawn(name):
    answer = certificate(name)
    claim = next(
        c for c in answer.claims if c.proved and c.rule in ("ultimate-bound", "blow-up-upper")
    )
    for one in answer.integrations:
        inner = slice(1, None)
        y = levels(claim, one.covariances[inner])
        bound = envelope(claim, answer.problem.start, one.times[inner])
        finite = np.isfinite(bound)
        if claim.rule == "blow-up-upper":
            assert (y[finite] >= bound[finite] * (1 - 1e-8)).all()
        else:
            assert (y <= bound * (1 + 1e-8)).all()
    assert len(answer.plot()["envelope"].axes) == 2


def test_attractors_are_stars_in_the_cone():
    answer = certificate("certify-bistable")
    figure = answer.plot()["cone"]
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert labels == ["proved attractor", "proved attractor"]


def test_there_is_no_cone_in_three_dimensions():
    answer = gt.certify(gt.Parameters(A=-np.eye(3), V=np.eye(3), B=-np.eye(3)))
    assert list(answer.plot()) == ["envelope"]


def test_the_page_holds_statement_table_and_code():
    answer = certificate("certify-threshold")
    page = render(answer)
    for words in ("What was found", "gtcontrol verify FOLDER", "gt.certify(parameters, start)"):
        assert words in page
    code = view(answer).code
    made: dict = {}
    exec(code, made)
    assert made["answer"].verdict is answer.verdict
    assert made["answer"].lower == answer.lower


def test_a_family_says_so():
    answer = gt.certify([gt.Parameters(A=I2, V=I2, B=-I2), gt.Parameters(A=2 * I2, V=I2, B=-I2)])
    statement = {fact.label: fact.value for fact in view(answer).statement}
    assert statement["parameters"] == "a family with 2 vertices"
    assert "vertex 2" in statement
    assert "parameters = [gt.Parameters(" in view(answer).code


def test_what_is_proved_comes_before_what_is_not():
    said = certificate("certify-limit-cycle").statement
    assert said.index("repels") < said.index("Numerically: ")
    assert "repels" not in said.split("Numerically: ")[1]


def test_a_start_at_zero_is_drawn_on_its_way():
    answer = certificate("certify-noise")
    figures = answer.plot()
    x, y = figures["envelope"].axes[0].lines[0].get_data()
    assert x.size > 100
    assert x[-1] > 0.9 * answer.lower
    assert y[-1] > 100.0
    heights = figures["cone"].axes[0].lines[-1].get_data_3d()[2]
    assert heights.size > 100
    assert heights.max() > 1.0
    by = {fact.label: fact.value for fact in view(answer).facts}["by"]
    assert "conjugate point" in by
    assert "λ_max" not in by


def test_what_integrations_without_a_limit_approach_is_said():
    answer = certificate("certify-bistable")
    shown = {fact.label: fact.value for fact in view(answer).facts}["integrations"]
    for attractor in ("rank 1, trace 4.23607", "rank 2, trace 5.31592"):
        assert f"the attractor of {attractor}" in shown
    assert "0 of 3" not in answer.statement


def test_every_claim_is_explained():
    answer = certificate("certify-limit-cycle")
    text = answer.explain()
    assert text.count("proved ") >= 3
    assert "numerical BOUNDED, by: accurate integration" in text
    assert "repels" in text
    assert max(len(line) for line in text.splitlines()) <= 100
    assert dataclasses.replace(answer, claims=()).explain() == "Nothing was found."


def test_an_improved_bound_is_not_repeated():
    p = gt.Parameters(A=[[0.0, 1.0], [0.0, 0.0]], V=I2, B=np.diag([0.0, -1.0]))
    said = gt.certify(p, gt.Gaussian.from_covariance([0.0, 0.0], I2)).statement
    assert "does not blow up in finite time" in said
    assert "does not blow up before" not in said


def test_numbers_are_those_that_integration_has():
    p = gt.Parameters(A=np.diag([1.0, -1.0]), V=np.diag([1.0, 2.0]), B=np.diag([0.0, -1.0]))
    said = gt.certify(p, gt.Gaussian.from_covariance([0.0, 0.0], I2)).statement
    assert "where it exceeds 1e200" in said
    one = Integration("blow-up", 0.123456789012, True, np.zeros(1), np.ones(1), np.zeros((0, 2, 2)))
    asked = CertificationProblem((p,), gt.Gaussian.from_covariance([0.0, 0.0], I2))
    claim = claim_of(asked, (one,))
    assert "at about T* = 0.123457." in rule("integration").state(asked, claim).text


def test_a_cone_without_a_least_size_says_so():
    H = np.eye(2)
    p = gt.Parameters(A=-I2, V=np.diag([1.0, 0.5]), B=np.diag([1.0, 0.0]))
    numbers = {"ratio": 0.05, "least": 1.00001e-300, "growth": 0.4, "drag": -1.0}
    claim = Claim("ray-cone", numbers=numbers, arrays={"coordinates": H})
    said = rule("ray-cone").state(CertificationProblem((p,)), claim).text
    assert "y = wᵀSw > 0 (to be exact, at least 1.1e-300)" in said

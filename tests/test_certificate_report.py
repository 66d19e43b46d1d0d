"""Certificates in words and pictures: what is proved is called proved, and nothing else is."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest

import gtcontrol as gt
from gtcontrol.certification.theory.envelope import envelope, levels
from gtcontrol.cli import kinds
from gtcontrol.problem import zoo
from gtcontrol.reporting.figures.canvas import encode
from gtcontrol.reporting.html import render
from gtcontrol.reporting.views import view

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

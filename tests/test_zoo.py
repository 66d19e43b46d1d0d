"""Every problem that comes with gtcontrol states what it expects, and that comes true."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from fractions import Fraction
from functools import cache
from pathlib import Path

import mpmath
import numpy as np
import pytest

from gtcontrol.cli import kinds
from gtcontrol.errors import ModelFileInvalid, ProblemFileInvalid
from gtcontrol.problem import zoo
from tests import real_models
from tests.extras import needs_torch

ROOT = Path(__file__).resolve().parents[1]

#: Problems that take more than a few seconds.
SLOW = {
    "export-planar",
    "filter-by-attention",
    "pretrained-albert",
    "pretrained-minilm",
    "pretrained-vit",
    "steer-embedding-768",
    "steer-planar",
    "tokens-both-negative",
    "tokens-convergence",
    "tokens-opposite-signs",
    "tokens-same-signs",
    "track-planar",
}

#: Problems that need torch.
WITH_TORCH = {"export-planar"}

#: Problems whose models are inside packages -> the package; and those whose models are on the hub.
PACKAGES = {
    "pretrained-albert": real_models.RXNMAPPER,
    "pretrained-minilm": real_models.MINILM,
    "pretrained-vit": real_models.VIT,
}
ON_THE_HUB = {"pretrained-deit", "pretrained-modernbert"}

ISSUED = {
    *PACKAGES,
    *ON_THE_HUB,
    "design-attractor",
    "design-low-rank",
    "export-planar",
    "filter-by-attention",
    "reach-rank-mismatch",
    "simulate-layers",
    "simulate-opposite-signs",
    "simulate-same-signs",
    "tokens-self-key",
    "steer-attention-only",
    "steer-bounded",
    "steer-embedding-768",
    "steer-minimum-time",
    "steer-orthogonal-ranges",
    "steer-planar",
    "steer-rank-deficient",
    "track-planar",
    "tokens-mixture",
    "tokens-relu",
    "tokens-both-negative",
    "tokens-convergence",
    "tokens-opposite-signs",
    "tokens-same-signs",
}


def task_of(name: str) -> kinds.Task:
    path = zoo.path(name)
    return kinds.prepare(kinds.read(path), path)


@cache
def result_of(name: str):
    return task_of(name).run(lambda fraction, text: None)


def raw(name: str) -> dict:
    return tomllib.loads(zoo.path(name).read_text(encoding="utf-8"))


def test_the_zoo_holds_what_was_promised():
    assert set(zoo.names()) >= ISSUED
    assert zoo.names() == tuple(sorted(zoo.names()))
    assert set(zoo.names()) == {f.stem for f in (ROOT / "problems").iterdir()}


def test_an_unknown_name_gets_the_nearest_one():
    with pytest.raises(ProblemFileInvalid, match="did you mean `steer-planar`"):
        zoo.path("steer-plannar")
    with pytest.raises(ProblemFileInvalid, match="`gtcontrol list` shows all problems"):
        zoo.path("xyz")


@pytest.mark.parametrize("name", zoo.names())
def test_each_problem_is_named_after_its_kind_and_says_what_it_expects(name):
    document = kinds.read(zoo.path(name))
    # Studies of tokens go by that name, whatever they measure.
    named = {"closeness": "tokens", "mixture": "tokens", "inspect": "pretrained"}
    prefix = named.get(document.kind, document.kind)
    assert name.startswith(f"{prefix}-")
    assert document.title
    assert document.description
    expected = {k: v for k, v in document.expect if v is not None}
    assert {"reachable", "status", "verdict"} & set(expected)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW) + [needs_torch] * (n in WITH_TORCH))
        for n in zoo.names()
        if n not in ON_THE_HUB
    ],
)
def test_what_a_problem_expects_comes_true(name):
    if name in PACKAGES:
        real_models.require()
        real_models.source(PACKAGES[name])
    result = result_of(name)
    assert result.answered
    assert not [str(f) for f in task_of(name).findings(result) if not f.met]
    assert result.problem.name == name


@pytest.mark.parametrize("name", sorted(ON_THE_HUB))
def test_without_a_network_a_model_of_the_hub_is_refused_in_one_line(name, tmp_path, monkeypatch):
    real_models.require()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelFileInvalid, match="is not in the cache") as caught:
        task_of(name).run(lambda fraction, text: None)
    assert "\n" not in str(caught.value)
    assert task_of(name).table.model in str(caught.value)


def test_a_wheel_carries_the_problems():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"problems": "gtcontrol/zoo"}


def test_the_problems_are_found_inside_an_installed_package(tmp_path):
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "gtcontrol", tmp_path / "gtcontrol", ignore=ignore)
    shutil.copytree(ROOT / "problems", tmp_path / "gtcontrol" / "zoo")
    code = "import gtcontrol.problem.zoo as z; print(z.__file__); print(z.path('steer-planar'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    package = tmp_path / "gtcontrol"
    assert done.stdout.split() == [
        str(package / "problem" / "zoo.py"),
        str(package / "zoo" / "steer-planar.toml"),
    ]


# -- the expected numbers, from other arithmetic -----------------------------------------


def test_the_expected_layers_are_those_of_rational_arithmetic():
    """The covariance recursion S⁺ = (I + hM) S (I + hM)ᵀ, in fractions."""

    def exact(value):
        return np.vectorize(Fraction, otypes=[object])(np.array(value, dtype=float))

    data = raw("simulate-layers")
    p = {k: exact(v) for k, v in data["parameters"].items()}
    m, L = exact(data["start"]["mean"]), exact(data["start"]["factor"])
    S, h = L @ L.T, Fraction(1, data["simulate"]["layers"])
    for _ in range(data["simulate"]["layers"]):
        M = p["A"] + sum(V @ S @ B for V, B in zip(p["V"], p["B"], strict=True))
        m = m + h * (M @ m + sum(V @ m for V in p["V"]) + p["b"])
        step = np.eye(2, dtype=int) + h * M
        S = step @ S @ step.T
    expect = data["expect"]
    assert expect["final_mean"]["value"] == [float(x) for x in m]
    assert expect["final_covariance"]["value"] == [[float(x) for x in row] for row in S]


def test_the_expected_blow_up_is_where_the_precision_becomes_singular():
    """P' = -2a P - (B + Bᵀ) for V = I, A = a I: its solution loses definiteness at T*."""
    data = raw("simulate-same-signs")
    a = mpmath.mpf(data["parameters"]["A"][0][0])
    B = mpmath.matrix(data["parameters"]["B"])
    P0 = mpmath.matrix(data["start"]["covariance"]) ** -1
    C = (B + B.T) / 2

    def smallest(t):
        P = mpmath.exp(-2 * a * t) * (P0 + C / a) - C / a
        return min(mpmath.eigsy(P, eigvals_only=True))

    expected = data["expect"]["blow_up_time"]["value"]
    assert float(mpmath.findroot(smallest, (0.3, 0.5), solver="anderson")) == pytest.approx(
        expected, rel=1e-14
    )
    assert expected == pytest.approx(np.log(1.5), rel=1e-15)


def test_the_expected_equilibrium_is_that_of_the_linear_precision():
    data = raw("simulate-opposite-signs")
    a = mpmath.mpf(data["parameters"]["A"][0][0])
    B = mpmath.matrix(data["parameters"]["B"])
    P0 = mpmath.matrix(data["start"]["covariance"]) ** -1
    C = -(B + B.T) / 2
    P = mpmath.exp(-2 * a * data["simulate"]["horizon"]) * (P0 - C / a) + C / a
    expected = np.array(data["expect"]["final_covariance"]["value"])
    assert np.allclose(np.array((P**-1).tolist(), dtype=float), expected, rtol=1e-14)


def test_the_expected_distance_is_the_variance_given_up():
    data = raw("reach-rank-mismatch")
    values = np.linalg.eigvalsh(data["target"]["covariance"])
    rank = np.linalg.matrix_rank(data["start"]["factor"])
    assert data["expect"]["distance"]["value"] == pytest.approx(np.sqrt(values[:-rank].sum()))


def test_the_expected_minimum_time_is_the_bound_on_the_determinant():
    """(log det S)' = 2 tr A <= 2 d for entries of A of at most 1."""
    data = raw("steer-minimum-time")
    assert data["start"]["covariance"] == np.eye(2).tolist()
    expected = np.log(np.linalg.det(data["target"]["covariance"])) / 4
    assert data["expect"]["cost"]["value"] == pytest.approx(expected, rel=1e-14)


def test_the_bounded_plan_keeps_its_bounds_and_touches_them():
    task = task_of("steer-bounded")
    plan = result_of("steer-bounded")
    times = np.linspace(0, plan.horizon, 201)
    norms = [np.linalg.norm(plan.schedule(t).V) for t in times]
    variances = [plan.trajectory.at(t).eigenvalues[0] for t in times]
    assert max(norms) == pytest.approx(task.bounds.norms["V"], rel=1e-4)
    assert max(variances) == pytest.approx(task.bounds.largest_eigenvalue, rel=1e-3)
    assert not plan.schedule(0.3).A.any()


@pytest.mark.slow
def test_the_planar_plan_uses_attention():
    plan = result_of("steer-planar")
    for t in np.linspace(0, 1, 11):
        p, S = plan.schedule(t), plan.trajectory.at(t).covariance
        assert np.linalg.norm(p.V @ S @ p.B) > 0.2
    assert plan.tokens.mean_error < plan.tokens.mean_sampling_error
    assert plan.tokens.covariance_error < plan.tokens.covariance_sampling_error

"""`gtcontrol inspect` and problem files of its kind: results, refusals, interruption."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import gtcontrol as gt
from gtcontrol.cli import kinds
from gtcontrol.cli.app import app
from gtcontrol.cli.inspecting import _named
from gtcontrol.pretrained import inspection
from tests import real_models, tiny_models
from tests.inspections import made


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def gtcontrol(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def refused(*arguments):
    """The one line with which bad input is refused; nothing may be written."""
    before = sorted(Path().rglob("*"))
    done = gtcontrol(*arguments)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert sorted(Path().rglob("*")) == before
    return done.stderr


@pytest.fixture
def prepared():
    """Folders with small random models, and tokens for them."""
    real_models.require()
    np.save("tokens.npy", np.random.default_rng(0).standard_normal((3, 40, 24)).astype("float32"))

    def folder(variant):
        tiny_models.save(tiny_models.build(variant), Path(variant))
        return variant

    return folder


@pytest.mark.filterwarnings("always:asked for")
@pytest.mark.parametrize("variant", ["bert", "deit", "modernbert"])
def test_a_folder_is_inspected_and_everything_is_written(variant, prepared):
    data = ("--input", "real", "--data", "tokens.npy", "--tokens", 100)
    done = gtcontrol("inspect", prepared(variant), *data)
    assert done.exit_code == 0, done.output
    assert done.stderr == (
        "gtcontrol: warning: asked for 100 tokens, used 40: the sequences of tokens.npy have so "
        "many.\n"
    )
    assert "NOT predicted: tokens" in done.stdout
    folder = Path("runs") / variant
    assert f"Report: {folder / 'report.html'}" in done.stdout
    written = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    pictures = {"shape", "heads", "drift", "variance", "spectrum", "errors"}
    assert written == {
        "result.json", "result.npz", "report.html", *(f"figures/{p}.png" for p in pictures),
    }  # fmt: skip
    seen = gt.load(folder)
    assert (seen.family, seen.depth, seen.dim) == (variant, 3, 24)
    assert (seen.problem.sequences, seen.problem.tokens) == (3, 40)
    assert seen.numerics < 1e-5
    assert seen.positional == (variant == "modernbert")


def test_json_is_all_that_is_printed(prepared):
    done = gtcontrol("inspect", prepared("vit"), "--input", "real", "--data", "tokens.npy",
                     "--json", "--out", "there")  # fmt: skip
    assert done.exit_code == 0
    values = json.loads(done.stdout)
    assert (values["kind"], values["status"], values["family"]) == ("inspect", "SUCCESS", "vit")
    assert gt.load("there").summary().startswith("vit, real input")


def test_a_problem_file_finds_model_and_data_beside_it(prepared):
    prepared("bert")
    text = """
kind = "inspect"
[inspect]
model = "bert"
input = "real"
data = "tokens.npy"
[expect]
status = "SUCCESS"
holds_at_least = 4
"""
    Path("mine.toml").write_text(text)
    path = Path("mine.toml").resolve()
    task = kinds.prepare(kinds.read(path), path)
    result = task.run(lambda fraction, text: None)
    unmet = {f.key for f in task.findings(result) if not f.met}
    assert unmet == {"holds_at_least"}  # of three layers
    assert result.problem.name == "mine"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("there", "--input", "text"), "`--input` is 'text'; expected matched, isotropic, real"),
        (("there", "--tokens", "1"), "`--tokens` is 1; it must be at least 2"),
        (("there", "--sequences", "0"), "`--sequences` is 0; it must be at least 2"),
        (("there", "--seed", "-1"), "`--seed` is -1; it must be at least 0"),
        (("there", "--tokens", "many"), "Invalid value for '--tokens'"),
        (("",), "MODEL is empty"),
        ((), "Missing argument 'MODEL'"),
        (("there", "--token", "8"), "See `gtcontrol inspect --help`."),
    ],
)
def test_mistakes_are_one_line(arguments, words):
    assert words in refused("inspect", *arguments)


def test_a_missing_package_is_named():
    real_models.require()
    assert "pip install --no-deps no-such-thing" in refused("inspect", "package:no-such-thing")
    assert "/nowhere" in refused("inspect", "/nowhere/at/all")
    assert "`package:` is followed by no name" in refused("inspect", "package:")


def test_a_folder_in_the_way_is_refused_before_the_work(monkeypatch):
    Path("full").mkdir()
    (Path("full") / "thesis.tex").write_text("mine")
    monkeypatch.setattr(inspection, "inspect", lambda *a, **k: pytest.fail("it has begun"))
    assert "thesis.tex" in refused("inspect", "model", "--out", "full")


def test_interrupted_layers_are_kept(monkeypatch):
    monkeypatch.setattr(inspection, "inspect", lambda *a, **k: made(done=2))
    done = gtcontrol("inspect", "model", "--out", "kept")
    assert done.exit_code == 1
    assert "interrupted; the best result so far is kept in kept" in done.stderr
    assert len(gt.load("kept").layers) == 2


def test_what_fails_is_an_answer(monkeypatch):
    """That the theory does not hold answers the question."""
    monkeypatch.setattr(inspection, "inspect", lambda *a, **k: made(holds=False))
    done = gtcontrol("inspect", "model", "--out", "there")
    assert done.exit_code == 0
    assert "holds in no layer" in done.stdout


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("package:rxnmapper", "rxnmapper"),
        ("answerdotai/ModernBERT-base", "answerdotai-ModernBERT-base"),
        ("../models/my model.onnx", "models-my-model.onnx"),
        ("/", "model"),
        ("x" * 300, "x" * 60),
    ],
)
def test_the_folder_is_named_after_the_model(model, name):
    assert _named(model) == name

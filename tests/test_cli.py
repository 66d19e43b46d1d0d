"""The command line: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import gtcontrol as gt
from gtcontrol import cli
from gtcontrol.cli import kinds, session
from gtcontrol.cli.app import app
from gtcontrol.cli.kinds.steer import SteerTable
from gtcontrol.problem import zoo
from gtcontrol.steering import starts
from tests import real_models
from tests.extras import needs_torch

KINETIC = """
kind = "steer"
title = "A closed form"
[start]
mean = [0.0, 0.0]
covariance = [[1.0, 0.0], [0.0, 1.0]]
[target]
mean = [1.0, 0.0]
covariance = [[4.0, 0.0], [0.0, 0.25]]
[steer]
cost = {kind = "kinetic-energy"}
[tokens]
count = 100
[expect]
cost = {value = 2.25, relative = 1e-12}
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def gtcontrol(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def refused(*arguments: str) -> str:
    """The one line with which bad input is refused; nothing may be written."""
    before = sorted(Path().rglob("*"))
    done = gtcontrol(*arguments)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert sorted(Path().rglob("*")) == before
    return done.stderr


def command(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gtcontrol", *arguments],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


# -- running -----------------------------------------------------------------------------


def test_run_answers_and_leaves_a_report():
    done = gtcontrol("run", "simulate-opposite-signs")
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    folder = Path("runs/simulate-opposite-signs")
    assert {f.name for f in folder.iterdir()} == {
        "result.json",
        "result.npz",
        "report.html",
        "figures",
    }
    assert list((folder / "figures").glob("*.png"))
    assert "Attention against expansion" in done.stdout
    assert f"Report: {folder / 'report.html'}" in done.stdout
    assert "Expectations of the file: 3 of 3 met." in done.stdout
    assert gt.load(folder).problem.name == "simulate-opposite-signs"


def test_run_takes_a_file_and_a_folder():
    path = zoo.path("reach-rank-mismatch")
    done = gtcontrol("run", str(path), "--out", "answers/mine")
    assert done.exit_code == 0, done.output  # also by "it cannot be reached"
    assert not gt.load("answers/mine")
    assert not Path("runs").exists()


def test_a_blow_up_is_an_answer():
    done = gtcontrol("run", "simulate-same-signs", "--quiet")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


def test_json_is_all_that_is_printed():
    done = gtcontrol("run", "simulate-same-signs", "--json")
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert document["status"] == "BLOW_UP"
    saved = Path("runs/simulate-same-signs/result.json").read_text(encoding="utf-8")
    assert json.loads(saved) == document
    assert done.stderr == ""


def test_run_steers_and_moves_tokens():
    Path("mine.toml").write_text(KINETIC, encoding="utf-8")
    done = gtcontrol("run", "mine.toml")
    assert done.exit_code == 0, done.output
    plan = gt.load("runs/mine")
    assert plan.cost == pytest.approx(2.25, rel=1e-12)
    assert plan.tokens.count == 100


def test_an_expectation_that_is_not_met_is_named_with_its_numbers():
    Path("mine.toml").write_text(KINETIC.replace("2.25, rel", "2.5, rel"), encoding="utf-8")
    done = gtcontrol("run", "mine.toml")
    assert done.exit_code == 1
    assert re.fullmatch(
        r"gtcontrol: expectation not met: cost: expected 2\.5 within 2\.5e-12, came 2\.25\.\n",
        done.stderr,
    )
    assert "Expectations of the file: 0 of 1 met." in done.stdout
    assert Path("runs/mine/report.html").is_file()


def test_what_could_not_be_answered_says_so():
    text = zoo.path("simulate-opposite-signs").read_text(encoding="utf-8")
    Path("mine.toml").write_text(
        re.sub(r"horizon = .*", "horizon = 4.0\nmax_steps = 3", text), encoding="utf-8"
    )
    done = gtcontrol("run", "mine.toml")
    assert done.exit_code == 1
    assert "the question could not be answered; see runs/mine/report.html" in done.stderr
    assert "expectation not met: status: expected SUCCESS, came STEP_LIMIT" in done.stderr
    assert gt.load("runs/mine").status is gt.Status.STEP_LIMIT


def test_a_run_replaces_an_earlier_one():
    for _ in range(2):
        assert gtcontrol("run", "simulate-layers", "-q").exit_code == 0
    assert [f.name for f in Path("runs").iterdir()] == ["simulate-layers"]


# -- interruption ------------------------------------------------------------------------


@contextlib.contextmanager
def interrupting(*, quiet: bool) -> Iterator[gt.progress.Progress]:
    calls = iter(range(4))

    def progress(fraction: float, text: str) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt

    yield progress


def test_an_interrupted_run_keeps_what_there_is(monkeypatch):
    monkeypatch.setattr(session, "progress_bar", interrupting)
    done = gtcontrol("run", "simulate-opposite-signs")
    assert done.exit_code == 1
    assert "interrupted; the best result so far is kept in runs/simulate-opp" in done.stderr
    kept = gt.load("runs/simulate-opposite-signs")
    assert kept.status is gt.Status.INTERRUPTED
    assert 0 < kept.times[-1] < 4.0


def test_an_interruption_without_a_result_writes_nothing(monkeypatch):
    def run(self, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(kinds.load("reach").ReachTask, "run", run)
    done = gtcontrol("run", "reach-rank-mismatch")
    assert done.exit_code == 1
    assert done.stderr == "gtcontrol: interrupted; nothing was written.\n"
    assert not Path("runs").exists()


def test_an_interrupted_token_check_keeps_the_plan(monkeypatch):
    Path("mine.toml").write_text(KINETIC, encoding="utf-8")

    def check_tokens(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("gtcontrol.validation.tokens.check_tokens", check_tokens)
    done = gtcontrol("run", "mine.toml")
    assert done.exit_code == 1
    assert "the best result so far is kept" in done.stderr
    assert gt.load("runs/mine").cost == pytest.approx(2.25, rel=1e-12)


def stop(*_, **__):
    raise KeyboardInterrupt


def test_an_interruption_of_the_drawing_keeps_the_result(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("gtcontrol.reporting.figures.images", stop)
        done = gtcontrol("run", "simulate-layers", "--out", "my runs")
    assert done.exit_code == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "the result is kept in my runs: `gtcontrol report 'my runs'` draws it" in done.stderr
    assert {f.name for f in Path().rglob("*")} == {"my runs", "result.json", "result.npz"}
    assert gt.load("my runs").status is gt.Status.SUCCESS
    assert gtcontrol("report", "my runs").exit_code == 0
    assert Path("my runs/report.html").is_file()


def test_a_second_interruption_writes_nothing(monkeypatch):
    monkeypatch.setattr("gtcontrol.reporting.figures.images", stop)
    monkeypatch.setattr(gt.Trajectory, "save", stop)
    done = gtcontrol("run", "simulate-layers")
    assert (done.exit_code, done.stderr) == (1, "gtcontrol: interrupted; nothing was written.\n")
    assert not Path("runs").exists()


def test_an_interruption_while_commands_are_loaded_is_one_line(monkeypatch, capsys):
    unloaded = types.ModuleType("gtcontrol.cli.app")
    unloaded.__getattr__ = stop
    monkeypatch.setitem(sys.modules, "gtcontrol.cli.app", unloaded)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == "gtcontrol: interrupted; nothing was written.\n"


def test_an_interruption_within_exec_leaves_the_exit_code(tmp_path):
    """Python 3.11 ends a module that is run by -m by the signal, although it was handled."""
    (tmp_path / "interrupted.py").write_text(
        "import runpy\n"
        "import sys\n"
        "from gtcontrol.cli import session\n"
        "session.run_problem = lambda *_, **__: exec('raise KeyboardInterrupt')\n"
        "sys.argv = ['gtcontrol', 'run', 'simulate-layers']\n"
        "runpy.run_module('gtcontrol', run_name='__main__')\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "gtcontrol: interrupted; nothing was written.\n")


def test_an_interrupted_feedback_says_that_there_is_none(monkeypatch):
    monkeypatch.setattr("gtcontrol.comparison.feedback.tracking.track", stop)
    Path("mine.toml").write_text(
        'kind = "track"\n'
        "[start]\nmean = [0.0]\ncovariance = [[1.0]]\n"
        "[target]\nmean = [1.0]\ncovariance = [[2.0]]\n"
        '[steer]\nhorizon = 1.0\ncontrols = "Ab"\nmethod = "transport-geodesic"\n',
        encoding="utf-8",
    )
    done = gtcontrol("run", "mine.toml")
    assert done.exit_code == 1
    assert done.stderr == (
        "gtcontrol: interrupted: no feedback was designed; the best plan so far is kept in "
        "runs/mine.\n"
    )


# -- bad input ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run", "steer-plannar"],
            "no problem called 'steer-plannar'; did you mean `steer-planar`",
        ),
        (["run", "zzz"], "`gtcontrol list` shows all problems"),
        (["run", ""], "there is no problem called ''"),
        (["run", "x" * 5000], "there is no problem called"),
        (["run", "nothing.toml"], "nothing.toml: does not exist"),
        (["run", "a/b"], "a/b: does not exist"),
        (["run", "."], "is a folder"),
        (["check", "bad.toml"], "bad.toml: unknown key `steer.horzion`; did you mean `horizon`?"),
        (["run", "bad.toml"], "bad.toml: unknown key `steer.horzion`; did you mean `horizon`?"),
        (["run", "rank.toml"], "rank.toml: `target` has rank 1 but `start` has rank 2"),
        (["run", "ill.toml"], "ill.toml: ControlEnergy(kinetic=0) has no minimiser"),
        (["run", "big.toml"], "has 6.0 MB"),
        (["run", "binary.toml"], "is no text in UTF-8"),
        (["run", "simulate-layers", "--out", "bad.toml"], "bad.toml"),
        (["run", "simulate-layers", "--out", "bad.toml/below"], "bad.toml"),
        (["show", "steer-plannar"], "did you mean `steer-planar`"),
        (["show", "nothing.toml"], "nothing.toml: does not exist"),
        (["new", "stear"], "did you mean `steer`?"),
        (["new", "steer", "--out", "bad.toml"], "bad.toml exists already; choose another name"),
        (["new", "steer", "--out", "no/folder.toml"], "cannot write no/folder.toml"),
        (["report", "nothing"], "no saved result in nothing"),
        (["report", "bad.toml"], "no saved result in bad.toml"),
        (["run"], "Missing argument 'FILE|NAME'"),
        (["run", "simulate-layers", "--jsn"], "--jsn"),
        (["run", "simulate-layers", "--out"], "--out"),
        (["run", "a", "b"], "unexpected extra argument"),
        (["rnu"], "No such command 'rnu'"),
        (["--nothing"], "--nothing"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(arguments, message):
    Path("bad.toml").write_text('kind = "steer"\n[steer]\nhorzion = 1.0\n', encoding="utf-8")
    unequal = KINETIC.replace("[[4.0, 0.0], [0.0, 0.25]]", "[[4.0, 0.0], [0.0, 0.0]]")
    Path("rank.toml").write_text(unequal, encoding="utf-8")
    ill = KINETIC.replace('"kinetic-energy"', '"control-energy", kinetic = 0.0')
    Path("ill.toml").write_text(ill, encoding="utf-8")
    Path("big.toml").write_bytes(b"#" * 6_000_000)
    Path("binary.toml").write_bytes(os.urandom(2000) + b"\xff")
    assert message in refused(*arguments)


@pytest.mark.parametrize(
    ("kind", "extra", "message"),
    [
        ("simulate", "[target]", "unknown key `target`, which belongs to the kind `steer` or `t"),
        (
            "simulate",
            "[target]",
            "unknown key `target`, which belongs to the kind `steer` or `track`",
        ),
        (
            "simulate",
            "[tokens]",
            "unknown key `tokens`, which belongs to the kind `steer` or `tokens`",
        ),
        ("reach", "[simulate]", "unknown key `simulate`, which belongs to the kind `simulate`."),
        ("reach", "[stort]", "unknown key `stort`; did you mean `start`?"),
    ],
)
def test_keys_of_another_kind_are_told_as_such(kind, extra, message):
    Path("mine.toml").write_text(f"{kinds.load(kind).TEMPLATE}\n{extra}\n", encoding="utf-8")
    assert message in refused("check", "mine.toml")


def test_advice_suits_a_file():
    unequal = KINETIC.replace("[[1.0, 0.0], [0.0, 1.0]]", "[[1.0, 0.0], [0.0, 0.0]]")
    Path("rank.toml").write_text(unequal, encoding="utf-8")
    alone = KINETIC.replace("[steer]", '[steer]\ncontrols = "A"')
    Path("alone.toml").write_text(alone, encoding="utf-8")
    rank, mean = refused("check", "rank.toml"), refused("check", "alone.toml")
    for message in (rank, mean):
        assert 'what a file of kind = "reach" with the same laws finds.' in message
        assert not re.search(r"truncate|reachable\(", message)
    assert "Give both laws the same rank (`factor` with as many columns" in rank
    assert "Wasserstein distance" in mean


def test_kinetic_energy_needs_what_moves_the_mean():
    attention = KINETIC.replace("[steer]", '[steer]\ncontrols = "VB"')
    attention = attention.replace("mean = [0.0, 0.0]", "mean = [0.5, 0.0]")
    Path("mine.toml").write_text(attention, encoding="utf-8")
    message = refused("check", "mine.toml")
    assert "the plan of least kinetic energy moves the mean straight to the target" in message
    assert message.count("zero-bias") == 1
    assert "Enable b, or choose method 'zero-bias' for a plan that is exact but not opt" in message
    exact = attention.replace("[steer]", '[steer]\nmethod = "zero-bias"')
    Path("mine.toml").write_text(exact, encoding="utf-8")
    assert gtcontrol("check", "mine.toml").exit_code == 0
    bias = attention.replace('"VB"', '"VBb"')
    Path("mine.toml").write_text(bias, encoding="utf-8")
    assert gtcontrol("check", "mine.toml").exit_code == 0


def test_what_the_template_of_steer_suggests_is_true():
    template = kinds.load("steer").TEMPLATE
    body = template[template.index("[steer]\n") : template.index("[steer.cost]")]
    fields = SteerTable.model_fields
    for name, value in re.findall(r"(?m)^# (\w+) = (\S+)", body):
        if name != "starts":
            assert tomllib.loads(f"x = {value}")["x"] == fields[name].default
    for method in re.findall(r'such as "([^"]+)"', body):
        Path("mine.toml").write_text(
            template.replace('# method = "optimal" ', f'method = "{method}"'), encoding="utf-8"
        )
        assert gtcontrol("check", "mine.toml").exit_code == 0
    assert "without it 3 to 72, by size" in body
    counts = [n for _, n in (*starts.STARTS, *starts.ATTENTION_STARTS)]
    assert (min(counts), max(counts)) == (3, 72)


def test_a_folder_of_other_files_is_not_replaced():
    folder = Path("thesis")
    folder.mkdir()
    (folder / "chapter.tex").write_text("years of work", encoding="utf-8")
    refused("run", "simulate-layers", "--out", "thesis")
    assert (folder / "chapter.tex").read_text(encoding="utf-8") == "years of work"


# -- the other commands ------------------------------------------------------------------


def test_list_names_every_problem():
    done = gtcontrol("list")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(zoo.names())
    assert re.search(r"simulate-same-signs +simulate +Attention that blows up", done.stdout)


def test_show_prints_the_file():
    done = gtcontrol("show", "steer-planar")
    assert done.stdout == zoo.path("steer-planar").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[needs_torch] * (k == "export")) for k in kinds.KINDS]
)
def test_new_writes_a_file_that_check_accepts_and_run_runs(kind):
    if kind == "inspect":  # of the model in a package
        real_models.require()
        real_models.source(real_models.RXNMAPPER)
    made = gtcontrol("new", kind)
    assert made.exit_code == 0
    assert f"Wrote {kind}.toml." in made.stdout
    checked = gtcontrol("check", f"{kind}.toml")
    assert checked.exit_code == 0
    about = "package:rxnmapper" if kind == "inspect" else "dimension 2"
    assert checked.stdout.startswith(f"{kind}.toml: valid ({kind}, {about}")
    ran = gtcontrol("run", f"{kind}.toml")
    assert ran.exit_code == 0, ran.output
    assert gt.load(f"runs/{kind}").answered


def test_check_tells_what_is_not_installed(monkeypatch):
    monkeypatch.setattr("gtcontrol.cli.kinds.base.find_spec", lambda name: None)
    for name, words in {
        "export-planar": "torch, which is not installed: `pip install 'gtcontrol[torch]'`.",
        "pretrained-vit": "torch, which is not installed: `pip install 'gtcontrol[pretrained]'`.",
        "pretrained-deit": (
            "torch and transformers, which are not installed: "
            "`pip install 'gtcontrol[pretrained]'`."
        ),
    }.items():
        done = gtcontrol("check", name)
        assert done.exit_code == 0
        assert done.stdout.endswith(f"); running it needs {words}\n")
    assert gtcontrol("check", "steer-planar").stdout.endswith(")\n")
    monkeypatch.setattr("gtcontrol.cli.kinds.base.find_spec", lambda name: object())
    assert gtcontrol("check", "export-planar").stdout.endswith(")\n")


def test_new_alone_lists_the_kinds():
    done = gtcontrol("new")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(kinds.KINDS)


def test_report_is_drawn_again():
    assert gtcontrol("run", "simulate-layers", "-q", "-o", "x").exit_code == 0
    page = Path("x/report.html")
    before, values = page.read_text(encoding="utf-8"), Path("x/result.json").read_bytes()
    page.unlink()
    done = gtcontrol("report", "x")
    assert (done.exit_code, done.stdout) == (0, f"Report: {page}\n")
    assert len(page.read_text(encoding="utf-8")) == pytest.approx(len(before), rel=0.2)
    assert Path("x/result.json").read_bytes() == values


def test_help_and_version():
    assert gtcontrol("--version").stdout == f"gtcontrol {gt.__version__}\n"
    for arguments in ([], ["--help"], ["-h"]):
        done = gtcontrol(*arguments)
        assert done.exit_code == 0
        for name in ("run", "list", "show", "new", "check", "report"):
            assert re.search(rf"\b{name}\b", done.stdout)
    for name in ("run", "list", "show", "new", "check", "report"):
        done = gtcontrol(name, "--help")
        assert done.exit_code == 0
        assert "Usage" in done.stdout


# -- as a process ------------------------------------------------------------------------


def test_the_module_runs_as_a_command():
    done = command("run", "simulate-layers", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "SUCCESS"
    assert done.stderr == ""
    failed = command("run", "nothing.toml")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr == "gtcontrol: nothing.toml: does not exist.\n"


def test_a_reader_that_stops_early_is_no_error():
    code = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-m', 'gtcontrol', "
        "'show', 'steer-planar'], stdout=subprocess.PIPE, stderr=subprocess.PIPE); "
        "p.stdout.close(); print(p.stderr.read().decode())"
    )
    buffered = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=buffered,
    )
    assert done.stdout.strip() == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("arguments", [["list"], ["--help"], ["run", "simulate-layers"]])
def test_a_full_disk_under_standard_output_is_one_line(arguments):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gtcontrol", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    where = " The results are in runs/simulate-layers." if arguments[0] == "run" else ""
    reason = "cannot print to standard output: No space left on device."
    assert done.stderr == f"gtcontrol: {reason}{where}\n"
    assert done.returncode == 1
    if where:
        assert gt.load("runs/simulate-layers").answered


def test_a_closed_standard_output_is_one_line():
    done = subprocess.run(
        ["sh", "-c", '"$0" -m gtcontrol list >&-', sys.executable],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.stderr == "gtcontrol: cannot print to standard output: it is closed.\n"
    assert done.returncode == 1


def test_ctrl_c_keeps_the_best_plan_so_far():
    text = zoo.path("steer-attention-only").read_text(encoding="utf-8")
    Path("long.toml").write_text(
        text.replace("[steer]\n", "[steer]\nstarts = 1000\n"), encoding="utf-8"
    )
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gtcontrol", "run", "long.toml"],
        stdout=subprocess.DEVNULL,
        stderr=end,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    )
    os.close(end)
    seen = b""
    try:
        deadline = time.monotonic() + 120
        while not re.search(rb"start ([2-9]|\d\d+) of", seen) and time.monotonic() < deadline:
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 4096)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the terminal hangs up when the process ends
            while chunk := os.read(terminal, 4096):
                seen += chunk
        assert process.wait(timeout=60) == 1, seen.decode()
    finally:
        process.kill()
        os.close(terminal)
    assert b"the best result so far is kept in runs/long" in seen
    assert gt.load("runs/long").status is gt.Status.INTERRUPTED

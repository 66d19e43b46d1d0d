"""Problem files of kind "filter", and measurements from files."""

from __future__ import annotations

import numpy as np
import pytest

import gtcontrol as gt
from gtcontrol.cli import kinds
from gtcontrol.errors import ProblemFileInvalid
from gtcontrol.problem.recordings import read_measurements

MODEL = """
kind = "filter"

[model]
A = [[0.0, 1.0], [0.0, 0.0]]
C = [[1.0, 0.0]]
R = [[0.5]]

[start]
mean = [0.0, 0.0]
covariance = [[0.5, 0.0], [0.0, 0.5]]
"""

DRAWN = """
[measurements]
horizon = 1.0
steps = 10
seed = 1
"""

FEW = """
[filter]
tokens = [20, 40]
seeds = 2
"""


def task(folder, text, name="mine.toml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return kinds.prepare(kinds.read(path), path)


def test_a_file_gives_what_python_gives(tmp_path):
    made = task(tmp_path, MODEL + DRAWN + FEW).run(lambda fraction, text: None)
    rng = np.random.default_rng(1)
    model = gt.KalmanModel([[0.0, 1.0], [0.0, 0.0]], [1.0, 0.0], 0.5)
    start = gt.Gaussian.from_covariance([0.0, 0.0], 0.5 * np.eye(2))
    y = gt.simulate_measurements(model, start.sample(1, rng)[0], 1.0, 10, rng)
    run = gt.filter_by_attention(model, start, y, tokens=[20, 40], seeds=2)
    np.testing.assert_array_equal(made.problem.measurements.values, y.values)
    np.testing.assert_array_equal(made.clouds[1].means, run.clouds[1].means)
    assert made.problem.name == "mine"


def test_the_known_forcing_and_state_are_used(tmp_path):
    text = MODEL + DRAWN.replace("seed = 1", "seed = 1\nstate = [1.0, 2.0]\nforcing = [0.0, -1.0]")
    y = task(tmp_path, text + FEW).measurements
    np.testing.assert_array_equal(y.states[0], [1.0, 2.0])
    np.testing.assert_allclose(y.states[-1], [1 + 2 - 0.5, 1.0], atol=1e-12)
    np.testing.assert_array_equal(y.forcing, np.tile([0.0, -1.0], (10, 1)))


ROWS = np.array([[0.0, 0.5], [0.3, -0.25], [1.0, 2.0]])


@pytest.mark.parametrize("header", ["", "time,position\n"])
def test_csv(tmp_path, header):
    lines = "\n".join(",".join(map(str, row)) for row in ROWS)
    (tmp_path / "y.csv").write_text(f"{header}{lines}\n\n", encoding="utf-8")
    y = task(tmp_path, f'{MODEL}[measurements]\nfile = "y.csv"\nhorizon = 2.0\n').measurements
    np.testing.assert_array_equal(y.times, [0.0, 0.3, 1.0, 2.0])
    np.testing.assert_array_equal(y.values, ROWS[:, 1:])


def test_npy_and_npz(tmp_path):
    np.save(tmp_path / "y.npy", ROWS)
    y = read_measurements("measurements.file", tmp_path / "y.npy", 2.0)
    np.testing.assert_array_equal(y.values, ROWS[:, 1:])
    states = np.arange(8.0).reshape(4, 2)
    np.savez(tmp_path / "y.npz", times=[0.0, 0.3, 1.0, 2.0], values=ROWS[:, 1], states=states)
    y = read_measurements("measurements.file", tmp_path / "y.npz", None)
    np.testing.assert_array_equal(y.values, ROWS[:, 1:])
    np.testing.assert_array_equal(y.states, states)


@pytest.mark.parametrize(
    ("name", "content", "horizon", "message"),
    [
        ("y.csv", "0,1\n0.5,x\n", 1.0, r'line 2, column 2: expected a number, came the string "x"'),
        ("y.csv", "t;y\n0;1\n0,5;2\n", 1.0, "line 2 separates its numbers by semicolons"),
        ("y.csv", "0 1\n0.5 2\n", 1.0, "line 1 separates its numbers by blanks"),
        ("y.csv", "0,1\n0.5,1,2\n", 1.0, "line 2 has 3 columns; the first has 2"),
        ("y.csv", "0,1\n0.5,nan\n", 1.0, "nan.* at index 1"),
        ("y.csv", "0,1\n0.5,2\n", 0.5, "begins at 0.5"),
        ("y.csv", "0,1\n0.5,2\n0.4,3\n", 1.0, r"times\[2\] = 0.4 follows"),
        ("y.csv", "0.1,1\n", 1.0, "starts at 0.1"),
        ("y.csv", "time,y\n", 1.0, "holds no measurements"),
        ("y.csv", "0\n1\n", 2.0, "expected rows of"),
        ("y.csv", "0,1\n", None, "horizon` is missing"),
        ("y.txt", "0,1\n", 1.0, "ends in .csv, .npy or .npz"),
        ("y.npy", "no array", 1.0, "damaged"),
        ("y.npz", "no archive", None, "damaged"),
        ("y.npz", "no archive", 1.0, "does not go with an NPZ file"),
        (None, "", 1.0, "which is no file"),
    ],
)
def test_files_that_are_refused(tmp_path, name, content, horizon, message):
    path = tmp_path / (name or "none.csv")
    if name:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(gt.GtcontrolError, match=message) as raised:
        read_measurements("measurements.file", path, horizon)
    assert "\n" not in str(raised.value)


def test_archives_that_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", times=[0.0, 1.0])
    with pytest.raises(ProblemFileInvalid, match="must hold the array `values`"):
        read_measurements("measurements.file", tmp_path / "a.npz", None)
    np.savez(tmp_path / "b.npz", times=[0.0, 1.0], values=[1.0], extra=[1.0])
    with pytest.raises(ProblemFileInvalid, match="unknown array `extra`"):
        read_measurements("measurements.file", tmp_path / "b.npz", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MODEL + "[measurements]\nhorizon = 1.0\nsteps = 10\n", "measurements.seed` is missing"),
        (
            MODEL + '[measurements]\nfile = "y.csv"\nseed = 1\nhorizon = 1.0\n',
            "measurements.seed` does not go with `file`",
        ),
        ((MODEL + DRAWN).replace("R = [[0.5]]", "R = [[0.0]]"), "`R` must be positive definite"),
        ((MODEL + DRAWN).replace("C = [[1.0, 0.0]]", "C = [[1.0]]"), "`C` must have 2 columns"),
        (
            (MODEL + DRAWN)
            .replace("mean = [0.0, 0.0]", "mean = [0.0]")
            .replace("covariance = [[0.5, 0.0], [0.0, 0.5]]", "covariance = [[0.5]]"),
            "`start` has dimension 1, but `model` has 2 states",
        ),
        (MODEL + DRAWN + "[filter]\ntokens = [1]\n", "at least 2"),
        (MODEL + DRAWN + "[filter]\ntokens = []\n", "tokens"),
        (MODEL + DRAWN + "[filter]\ntoken = [10]\n", "did you mean `tokens`"),
    ],
)
def test_problems_that_are_refused(tmp_path, text, message):
    with pytest.raises(gt.GtcontrolError, match=message) as raised:
        task(tmp_path, text)
    assert "\n" not in str(raised.value)


def test_expectations(tmp_path):
    expected = """
[expect]
status = "SUCCESS"
agreement_at_most = 1e-9
mean_error_at_most = 1e-9
white = true
"""
    made = task(tmp_path, MODEL + DRAWN + FEW + expected)
    findings = {f.key: f.met for f in made.findings(made.run(lambda fraction, text: None))}
    assert findings["status"]
    assert findings["agreement_at_most"]
    assert not findings["mean_error_at_most"]

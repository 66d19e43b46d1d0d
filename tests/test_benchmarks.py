"""The benchmark's own arithmetic: the baseline, the figures, the exit code."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import gtcontrol as gt
from tests.benchmarks import __main__ as program
from tests.benchmarks.baseline import baseline
from tests.benchmarks.figures import Figure
from tests.benchmarks.instances import instances
from tests.benchmarks.kinetic import squared_wasserstein


def pair() -> tuple[gt.Gaussian, gt.Gaussian]:
    start = gt.Gaussian([0.0, 0.0], np.eye(2))
    return start, gt.Gaussian([1.0, -1.0], [[1.5, 0.0], [0.5, 0.8]])


def test_the_baseline_comes_close_to_the_transport_geodesic() -> None:
    start, target = pair()
    made = baseline(start, target, 2.0, "Ab", gt.KineticEnergy(), intervals=40)
    assert made.ok
    assert made.replay_error < 1e-5
    best = squared_wasserstein(start, target) / 2.0
    assert best * (1 - 1e-5) <= made.cost <= best * (1 + 1e-3)


def test_the_baseline_meets_the_commuting_closed_form() -> None:
    start = gt.Gaussian([0.0, 0.0], np.diag([1.0, 2.0]))
    target = gt.Gaussian([0.0, 0.0], np.diag([2.0, 1.5]))
    made = baseline(start, target, 1.0, "Ab", gt.ControlEnergy(kinetic=0.0))
    assert made.ok
    assert made.cost == pytest.approx(np.log(2) ** 2 + np.log(0.75) ** 2, rel=1e-5)


def test_with_attention_the_baseline_replays_and_costs_no_more_than_without() -> None:
    start, target = pair()
    cost = gt.ControlEnergy(kinetic=1.0)
    with_attention = baseline(start, target, 1.0, "AVBb", cost)
    without = baseline(start, target, 1.0, "Ab", cost)
    assert with_attention.ok
    assert without.ok
    assert with_attention.replay_error < 1e-4
    assert with_attention.cost <= without.cost * (1 + 1e-4)


def test_a_baseline_that_runs_out_of_iterations_reports_failure() -> None:
    start, target = pair()
    made = baseline(start, target, 1.0, "Ab", gt.ControlEnergy(kinetic=0.0), max_iterations=1)
    assert not made.ok
    assert made.cost == np.inf


def test_instances_cover_every_rank_within_the_spread() -> None:
    made = list(instances(20, range(1, 5), seed=0, centred_every=2, cond=100.0))
    shapes = [(d, r) for d in range(1, 5) for r in range(1, d + 1)]
    assert [(i.d, i.r) for i in made] == shapes * 2
    for i in made:
        for law in (i.start, i.target):
            assert law.dim == i.d
            assert law.rank == i.r
            assert law.eigenvalues[0] <= 100 * law.eigenvalues[-1]
            assert np.any(law.mean) == (i.index >= 10)


@pytest.mark.parametrize(("met", "code"), [(True, 0), (False, 1)])
def test_a_missed_figure_sets_the_exit_code(
    met: bool, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = Figure("speed", "3 times", ">= 2 times", met)
    monkeypatch.setattr(program, "SECTIONS", {"one": ("One", lambda count: [figure], 1, 1)})
    monkeypatch.setattr(sys, "argv", ["benchmarks"])
    assert program.main() == code
    line = next(x for x in capsys.readouterr().out.splitlines() if "speed" in x)
    assert line.endswith("target >= 2 times: met" if met else "target >= 2 times: NOT MET")


def test_blow_up_times_meet_their_target(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "blow-up", "--instances", "6"])
    assert program.main() == 0
    assert "1 of 1 figures met" in capsys.readouterr().out

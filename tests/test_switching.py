"""The instants at which attention switches are moved to where they cost least."""

import numpy as np
import pytest

import gtcontrol as gt
from gtcontrol.steering import optimal
from gtcontrol.steering.switching import jumps, moved
from tests.benchmarks.instances import instances

ROWS = np.array([[0.0, 1.0], [0.1, 1.0], [0.2, 1.0], [5.0, -1.0], [5.1, -1.0], [5.2, -1.0]])


def test_a_jump_is_told_from_a_smooth_change():
    assert jumps(ROWS) == [3]
    assert jumps(np.linspace(0, 1, 12).reshape(6, 2)) == []
    assert jumps(ROWS[:2]) == []


def test_a_jump_moves_by_one_interval():
    for step in (-1, 1):
        new = moved(ROWS, 3, step)
        assert jumps(new) == [3 + step]
        assert np.count_nonzero(np.any(new != ROWS, axis=1)) == 1
        assert moved(new, 3 + step, -step)[:, 1].tolist() == ROWS[:, 1].tolist()


def test_every_seed_finds_the_same_switching_instant(monkeypatch):
    # The plain way (RK4 from zero controls) finds 20.40331 here.
    i = list(instances(9, range(1, 4), seed=7))[8]
    costs = [gt.steer(i.start, i.target, seed=seed).cost for seed in (0, 1)]
    assert max(costs) < 20.40331
    assert costs[0] == pytest.approx(costs[1], rel=1e-4)
    monkeypatch.setattr(optimal, "settle_switches", lambda candidate, *_: candidate)
    stuck = [gt.steer(i.start, i.target, seed=seed).cost for seed in (0, 1)]
    assert max(stuck) > 20.40331

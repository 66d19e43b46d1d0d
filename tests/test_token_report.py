"""Summary, picture and page of a run of tokens."""

import numpy as np
import pytest

import gtcontrol as gt
from gtcontrol.reporting.views import view
from tests.test_simulation import LAW, general, interrupt_after

RUNS = {
    "plane": lambda: gt.simulate_tokens(LAW, general(), 1.0, count=60, rng=3, antithetic=True),
    "line": lambda: gt.simulate_tokens(
        draw(30, 1), gt.Parameters(V=[[1.0]], B=[[0.5]]), 1.0, layers=4, keep=3
    ),
    "space": lambda: gt.simulate_tokens(
        draw(30, 5), gt.Parameters(V=np.eye(5), B=0.1 * np.eye(5)), 1.0, name="a-name"
    ),
    "point": lambda: gt.simulate_tokens(np.ones((4, 2)), general(), 1.0, keep=0),
    "masked": lambda: gt.simulate_tokens(
        draw(40, 2),
        general(),
        1.0,
        causal=True,
        spread=True,
        feedforward=gt.FeedForward([[1.0, 0.5]], None, [[0.2], [0.3]]),
    ),
    "interrupted": lambda: gt.simulate_tokens(
        LAW, general(), 1.0, count=60, rng=3, progress=interrupt_after(1)
    ),
}


def draw(count, dim):
    return np.random.default_rng(0).standard_normal((count, dim))


@pytest.mark.parametrize("name", RUNS)
def test_every_run_has_a_page_with_a_picture(name, tmp_path):
    run = RUNS[name]()
    (figure,) = run.plot().values()
    assert len(figure.axes[0].lines) > 0
    page = run.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 1
    assert run.status.name in run.summary()


def test_the_words_carry_the_numbers():
    run = RUNS["plane"]()
    text = run.summary()
    for i in (0, -1):
        assert f"{np.trace(run.covariances[i]):.6g}" in text
    assert f"{np.linalg.norm(run.means[-1] - run.means[0]):.6g}" in text
    assert f"{run.evaluations} evaluations" in text
    statement = {fact.label: fact.value for fact in view(run).statement}
    assert statement["draw"] == "drawn antithetic, seed 3"
    assert statement["tokens"] == "60, of dimension 2"
    (table,) = view(run).tables
    assert len(table.rows) == run.times.size


def test_a_run_that_ends_early_says_so():
    run = RUNS["interrupted"]()
    assert not view(run).good
    assert "It got to t = 0" in run.summary()


def test_layers_and_names_are_told():
    assert "network of 4 layers" in RUNS["line"]().summary()
    assert RUNS["space"]().summary().startswith("a-name")


def test_the_clouds_drawn_are_the_tokens():
    run = RUNS["plane"]()
    (figure,) = run.plot().values()
    offsets = np.concatenate([c.get_offsets() for c in figure.axes[0].collections])
    np.testing.assert_allclose(offsets[-run.clouds.shape[1] :], run.clouds[-1])


def test_masks_layers_and_how_far_tokens_get_are_told():
    run = RUNS["masked"]()
    statement = {fact.label: fact.value for fact in view(run).statement}
    assert statement["question"].endswith("over itself and all tokens before it")
    assert statement["feed-forward layer"] == "relu, 1 hidden unit"
    facts = {fact.label: fact.value for fact in view(run).facts}
    assert f"{run.largest_norm[-1]:.6g}" in facts["farthest token"]
    assert f"cannot exceed {run.norm_bound[-1]:.6g}" in facts["farthest token"]
    assert f"{run.own_weight[-1]:.6g}" in facts["weight of a token's own key"]
    assert facts["tokens attended to"].endswith("of 40")
    assert facts["note"] == run.notes[0]
    other = gt.simulate_tokens(draw(40, 2), general(), 1.0, layers=2, mask_self=True)
    asked = {fact.label: fact.value for fact in view(other).statement}["question"]
    assert asked.endswith("over all other tokens")

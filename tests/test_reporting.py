"""Reports: summaries, pictures, pages and folders tell the truth, all or nothing."""

from __future__ import annotations

import base64
import dataclasses
import functools
import html.parser
import io
import itertools
import math
import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

import gtcontrol as gt
from gtcontrol.errors import OutputFailure
from gtcontrol.gaussian import align
from gtcontrol.problem.definitions import ReachabilityProblem, SteeringProblem
from gtcontrol.reporting import atomic, figures, files, html as page, text
from gtcontrol.reporting.figures import controls, covariance, plane, sampling
from gtcontrol.reporting.figures.canvas import encode
from gtcontrol.reporting.views import view
from gtcontrol.reporting.views.attempts import best_attempt, groups
from gtcontrol.reporting.wording import error, matrix, number, percent, relation
from gtcontrol.results.reachability import Reachability
from gtcontrol.results.steering import Attempt, Steering, Violation
from gtcontrol.results.tokens import TokenCheck
from gtcontrol.schedule import Schedule
from gtcontrol.steering.reduction import reduce

# -- results, made by hand from exact plans --------------------------------------------


def law(d, r, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    return gt.Gaussian(scale * rng.standard_normal(d), scale * rng.standard_normal((d, r)))


def geodesic(start, target, horizon):
    """The transport geodesic A = M(t), b(t), in the span of the end points."""
    small = reduce(start, target)
    p, q = small.start, small.target
    end = align(p.factor, q.factor)

    def at(t):
        L = p.factor + t / horizon * (end - p.factor)
        m = p.mean + t / horizon * (q.mean - p.mean)
        M = (end - p.factor) / horizon @ np.linalg.pinv(L) if L.size else np.zeros((p.dim, p.dim))
        return gt.Parameters(A=M, b=(q.mean - p.mean) / horizon - M @ m)

    return Schedule.from_pieces(np.array([0.0, horizon]), [at], p.dim, basis=small.basis)


def moved_tokens(target, trajectory, bias, count=500):
    """Tokens carried along by the affine flow, as the factor carries standard normal draws."""
    z = np.random.default_rng(7).standard_normal((count, trajectory.problem.start.rank))
    times = np.linspace(0, trajectory.times[-1], 5)
    laws = [trajectory.at(t) for t in times]
    clouds = np.array([g.mean + z @ g.factor.T for g in laws])
    clouds[-1] += bias
    mean = clouds[-1].mean(axis=0)
    spread = (clouds[-1] - mean).T @ (clouds[-1] - mean) / count
    size = np.linalg.norm(target.covariance)
    return TokenCheck(
        count=count,
        seed=7,
        antithetic=False,
        moment_matched=False,
        mean_error=float(np.linalg.norm(mean - target.mean)),
        covariance_error=float(np.linalg.norm(spread - target.covariance)),
        mean_sampling_error=math.sqrt(target.trace / count),
        covariance_sampling_error=math.sqrt((size**2 + target.trace**2) / count),
        largest_logit_variance=0.0,
        seconds=0.1,
        times=times,
        clouds=clouds,
    )


def plan(start, target, horizon=1.0, *, controls="Ab", cost=None, bounds=None, name="", **changed):
    """A plan along the transport geodesic; `changed` fields of the result are overwritten."""
    problem = SteeringProblem(
        start, target, horizon, controls, cost or gt.KineticEnergy(), bounds or gt.Bounds(),
        name=name,
    )  # fmt: skip
    schedule = geodesic(start, target, horizon)
    trajectory = gt.simulate(start, schedule)
    energy = gt.wasserstein(start, target) ** 2 / horizon
    miss = float(np.linalg.norm(trajectory.final.covariance - target.covariance))
    bias = changed.pop("bias", 0.0)
    values = {
        "status": gt.Status.SUCCESS,
        "schedule": schedule,
        "trajectory": trajectory,
        "spent": energy,
        "lower_bound": energy,
        "lower_bound_reason": "W₂²/T",
        "replay_error": miss / max(float(np.linalg.norm(target.covariance)), 1e-300),
        "terminal_error": 0.0,
        "solver": "closed form",
        "seconds": 0.0123,
        "tokens": moved_tokens(target, trajectory, bias),
    } | changed
    spent = values.pop("spent")
    return Steering(problem=problem, cost=spent, **values)


ATTEMPTS = (
    Attempt("geodesic", "fatrop", 20, "Solve_Succeeded", True, 21, 9.25, 0.21),
    Attempt("rotated", "fatrop", 20, "Solve_Succeeded", True, 41, 6.3234, 0.33),
    Attempt("split", "ipopt", 20, "Maximum_Iterations_Exceeded", False, 500, 6.1, 2.3),
    Attempt("perturbed", "ipopt", 40, "Invalid_Number_Detected", False, 3, math.inf, 0.3),
)
VIOLATIONS = (
    Violation("terminal covariance", 0.83, "t = 1", "Lengthen the horizon."),
    Violation("entries of A", 0.12, "interval 3", "Raise the bound."),
)


def failed():
    start, target = law(2, 2, 1), law(2, 2, 8)
    elsewhere = plan(start, law(2, 2, 2), tokens=None)
    return plan(
        start, target, name="hard", status=gt.Status.NOT_CONVERGED,
        bounds=gt.Bounds(entries={"A": 1.0, "b": 50.0}, norms={"b": 4.0}, trace=7.0),
        schedule=elsewhere.schedule, trajectory=elsewhere.trajectory, replay_error=0.8312,
        terminal_error=0.5, attempts=ATTEMPTS[2:], spent=6.1, lower_bound=0.0,
        lower_bound_reason="every cost is at least 0", solver="ipopt", iterations=500,
        intervals=20, violations=VIOLATIONS, tokens=None,
    )  # fmt: skip


def crowded(**changed):
    """A plan with many attempts, of which some end with the same cost and some early."""
    crowd = tuple(
        Attempt(
            "bent and rotated geodesic, switched signs",
            "ipopt",
            8,
            "Solve_Succeeded",
            True,
            20 + i,
            cost,
            0.1,
        )
        for i, cost in enumerate([7.0, 7.0, 7.00001, 8.0, 8.0, 9.0])
    )
    crowd += tuple(
        Attempt("bent geodesic, at rest", "ipopt", 8, "set aside", False, 6, 3.0 + i, 0.1)
        for i in range(40)
    )
    crowd += (
        Attempt("geodesic, opposed", "ipopt", 20, "Solve_Succeeded", True, 30, 7.1, 0.5),
        Attempt("geodesic, opposed", "ipopt", 40, "Restoration_Failed", False, 30, 7.2, 0.5),
    )
    options = {"cost": gt.ControlEnergy(), "attempts": crowd, "tokens": None, "lower_bound": 6.0}
    return plan(law(2, 2, 1), law(2, 2, 2), controls="AVBb", **(options | changed))


def mismatch():
    wanted = gt.Gaussian(np.ones(3), np.diag([2.0, 1.0, 0.5]))
    question = ReachabilityProblem(law(3, 2, 1), wanted, "AVBb", "reach-rank-mismatch")
    reason = "the target has rank 3 but the start has rank 2"
    return Reachability(question, False, reason, wanted.truncate(2), 0.5)


def swirl(**options):
    A = np.array([[-0.3, 1.0], [-1.0, -0.3]])
    return gt.simulate(law(2, 2, 1), gt.Parameters(A=A, V=-np.eye(2), B=np.eye(2)), 3.0, **options)


def heads_with_noise(**options):
    V = np.stack([0.1 * np.eye(3), -0.2 * np.eye(3)])
    p = gt.Parameters(A=-np.eye(3), V=V, B=V, beta=np.full((2, 3), 0.3), noise=0.3 * np.eye(3))
    return gt.simulate(law(3, 1, 1), p, 3.0, **options)


BLOW_UP = gt.Parameters(V=[[1.0]], B=[[1.0]])

CASES = {
    "planar": lambda: plan(
        law(2, 2, 1), law(2, 2, 2), controls="AVBb", name="steer-planar", attempts=ATTEMPTS,
        spent=6.3234, iterations=41, intervals=20, refinements=1, solver="fatrop",
        cost=gt.ControlEnergy(),
    ),
    "line": lambda: plan(gt.Gaussian([0.0], [[1.0]]), gt.Gaussian([3.0], [[0.2]])),
    "singular": lambda: plan(law(4, 2, 3), law(4, 2, 4), bias=2.0),
    "segment": lambda: plan(
        gt.Gaussian([0.0, 0.0], [[1.0], [0.5]]), gt.Gaussian([2.0, 1.0], [[-0.3], [1.0]])
    ),
    "collinear": lambda: plan(
        gt.Gaussian([0.0, 0.0, 0.0], [[1.0], [1.0], [0.0]]),
        gt.Gaussian([1.0, 1.0, 0.0], [[2.0], [2.0], [0.0]]),
    ),
    "point": lambda: plan(
        gt.Gaussian([0.0, 1.0, 0.0], np.zeros((3, 0))),
        gt.Gaussian([2.0, 1.0, 1.0], np.zeros((3, 0))), bias=1e-9,
    ),
    "embedding": lambda: plan(law(768, 4, 5), law(768, 4, 6)),
    "huge": lambda: plan(law(2, 2, 1, 1e75), law(2, 2, 2, 1e75), lower_bound=0.0),
    "failed": failed,
    "stand-in": lambda: crowded(
        spent=9.5, status=gt.Status.NOT_CONVERGED, solver="closed form (transport-geodesic)",
        replay_error=1.5e-16, lower_bound=6.0,
    ),
    "never arrives": lambda: plan(
        law(2, 2, 1), law(2, 2, 2), status=gt.Status.INTERRUPTED, spent=math.inf,
        lower_bound=0.0, replay_error=math.inf, terminal_error=math.nan, tokens=None,
    ),
    "fast": lambda: plan(law(3, 3, 5), law(3, 3, 6), cost=gt.MinimumTime(2.0), tokens=None),
    "many": lambda: plan(law(20, 20, 5), law(20, 20, 6), bounds=gt.Bounds(
        entries={"A": 3.0}, trace=1e3, largest_eigenvalue=1e6), tokens=None),
    "blow-up": lambda: gt.simulate(gt.Gaussian([0.3], [[1.0]]), BLOW_UP, 2.0, name="pole"),
    "blow-up in the plane": lambda: gt.simulate(
        gt.Gaussian([0.3, -0.2], [[1.0, 0.0], [0.2, 0.5]]),
        gt.Parameters(V=np.eye(2), B=[[1.0, 0.3], [-0.2, 0.8]]), 2.0,
    ),
    "layers": lambda: swirl(layers=12),
    "flow": swirl,
    "noise": heads_with_noise,
    "overflow": lambda: gt.simulate(law(2, 2, 1), gt.Parameters(A=np.diag([100.0, 1.0])), 30.0),
    "cut short": lambda: swirl(max_steps=3),
    "resting point": lambda: gt.simulate(
        gt.Gaussian([1.0, 2.0], np.zeros((2, 0))), gt.Parameters(dim=2), 1.0
    ),
    "mismatch": mismatch,
    "reachable": lambda: Reachability(
        ReachabilityProblem(law(1, 1, 1), law(1, 1, 2)), True, "the ranks agree", law(1, 1, 2),
        0.0, True, ("constant-affine",),
    ),
}  # fmt: skip


@functools.cache
def case(name):
    return CASES[name]()


@functools.cache
def pictures(name):
    return case(name).plot()


@functools.cache
def drawn(name):
    return {key: encode(figure) for key, figure in pictures(name).items()}


@functools.cache
def rendered(name):
    return page.render(case(name), drawn(name))


every_case = pytest.mark.parametrize("name", CASES)

# -- words -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1 / 3, "0.333333"),
        (3.1e-9, "3.1e-9"),
        (1e150, "1e150"),
        (-2.5e-11, "-2.5e-11"),
        (123456789.0, "1.23457e8"),
        (math.inf, "infinite"),
        (-math.inf, "minus infinite"),
        (math.nan, "not a number"),
    ],
)
def test_numbers_read_well(value, words):
    assert number(value) == words


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.1234, "12.3 %"), (1.0, "100 %"), (0.99996, "100 %"), (0.9996, "99.96 %"), (0.0, "0 %"),
     (2.3e-7, "2.3e-5 %"), (4.5, "450 %"), (math.inf, "infinite")],
)  # fmt: skip
def test_percentages_do_not_pretend(share, words):
    assert percent(share) == words or (share == 0.99996 and percent(share) != "100 %")


def test_matrices_on_one_line():
    assert matrix(np.array([[1.0, 2.5], [0.0, -1.0]])) == "[1, 2.5; 0, -1]"
    assert matrix(np.array([1.0, 2.0])) == "[1, 2]"
    assert matrix(np.ones((2, 1, 1))) == "[1] and [1]"


def test_relation_of_cost_and_bound():
    assert relation(3.0, 3.0, 0.0) == "equal to the lower bound, so it is optimal"
    assert "to 2e-12, so it is optimal" in relation(3.0, 3.0, 2e-12)
    assert relation(4.0, 3.0, 1 / 3) == "33.3 % above the lower bound"
    assert relation(60.0, 3.0, 19.0) == "20 times the lower bound"
    assert relation(4.0, 0.0, math.inf) == "no positive lower bound is known"
    assert relation(math.inf, 1.0, math.inf) == "no finite cost is known"
    # A cost below a proved bound is a mistake somewhere, and must not be called optimal.
    assert relation(2.0, 3.0, -1 / 3) == "33.3 % BELOW the lower bound"
    assert "optimal" not in relation(2.0, 3.0, -1 / 3)


@every_case
def test_summary_is_short_and_names_the_ending(name):
    lines = text.summary(case(name)).split("\n")
    assert 3 <= len(lines) <= 24
    assert max(map(len, lines)) <= 100
    assert case(name).summary() == "\n".join(lines)


def test_summary_of_a_plan_has_the_numbers():
    words = text.summary(case("planar"))
    found = case("planar")
    for part in ("SUCCESS", "steer-planar", "6.3234", number(found.lower_bound), "W₂²/T",
                 percent(found.gap), error(found.replay_error), "fatrop", "41 iterations",
                 "20 intervals", "1 refinement", "12 ms", "2 of 4 converged",
                 number(found.smallest_eigenvalue, 4), error(found.tokens.mean_error),
                 error(found.tokens.covariance_sampling_error)):  # fmt: skip
        assert part in words
    assert ": within 3 sampling errors" in " ".join(words.split())


def test_summary_says_when_tokens_miss():
    assert not case("singular").tokens.within_sampling_error
    assert "NOT within 3 sampling errors" in " ".join(text.summary(case("singular")).split())
    assert "tokens miss" not in text.summary(case("planar"))


def test_tokens_that_miss_are_told_with_the_reason():
    tokens = dataclasses.replace(
        case("singular").tokens, count=2000, largest_logit_variance=1.4961, moment_matched=True,
        mean_error=0.02, mean_sampling_error=0.045, covariance_error=1.04,
        covariance_sampling_error=0.13,
    )  # fmt: skip

    def words(**changed):
        checked = dataclasses.replace(tokens, **changed)
        return " ".join(text.summary(dataclasses.replace(case("singular"), tokens=checked)).split())

    headline = "But 2000 softmax tokens moved by it miss the target: the error of their covariance"
    for part in (f"{headline} is 1, 8 times its sampling error.", "log N = 7.6",
                 "logit variance up to 1.5 along the plan", "`tokens.count`"):  # fmt: skip
        assert part in words()
    assert "logit variance up to 1.5" in words(covariance_error=0.1)
    assert "But 2000" not in words(covariance_error=0.1)
    assert "error of their mean is 2, without spread" in words(
        mean_error=2.0, mean_sampling_error=0.0
    )
    bare = {"largest_logit_variance": 0.0}
    assert "set `moment_matched`" in words(**bare, moment_matched=False)
    assert "every token follows the plan" in words(**bare)
    ended = words(status=gt.Status.STEP_LIMIT)
    assert "tokens do not get to the end: STEP_LIMIT." in ended
    assert "Raise `max_steps`" in ended


def test_summary_of_a_failure_says_so_and_what_to_do():
    words = " ".join(text.summary(case("failed")).split())
    for part in ("NOT_CONVERGED", "`explain()`", "0.83", "terminal covariance (t = 1)",
                 "entries of A (interval 3) by 0.12. Raise the bound.", "0 of 2 converged",
                 "no positive lower bound is known"):  # fmt: skip
        assert part in words
    assert "carries" not in words
    never = " ".join(text.summary(case("never arrives")).split())
    assert "does not get to the end" in never
    assert "no finite cost is known" in never


def test_summary_of_a_blow_up_has_its_time():
    # T* = 1/(2 v b σ₀) = 1/2 for v = b = σ₀ = 1 without A.
    assert re.search(r"blow-up time +0\.5\n", text.summary(case("blow-up")))
    assert "T* = 0.5," in text.summary(case("blow-up"))


def test_summary_of_reachability():
    words = text.summary(case("mismatch"))
    for part in ("cannot be reached", "rank 3 but the start has rank 2", "W₂ distance 0.5"):
        assert part in " ".join(words.split())
    assert "constant-affine" in text.summary(case("reachable"))


def test_smallest_eigenvalue_is_searched_between_the_steps():
    # |L_t|² of the segment: L_t = (1 - t) a + t b with a.b = 0.2, |a|² = 1.25, |b|² = 1.09.
    t = (1.25 - 0.2) / (1.25 + 1.09 - 0.4)
    exact = (1 - t) ** 2 * 1.25 + t**2 * 1.09 + 2 * t * (1 - t) * 0.2
    assert case("segment").smallest_eigenvalue == pytest.approx(exact, rel=1e-3)


def test_the_returned_attempt_is_the_one_with_its_cost():
    assert best_attempt(case("planar")) == 1
    # An attempt that did not converge is not returned, however near its cost is.
    assert best_attempt(dataclasses.replace(case("planar"), cost=6.11)) == 1
    assert best_attempt(case("failed")) == 0
    assert best_attempt(case("line")) is None


# -- pictures --------------------------------------------------------------------------

NAMES = {
    "planar": ["path", "controls", "covariance", "cost", "tokens"],
    "point": ["path", "controls", "cost", "tokens"],
    "failed": ["path", "controls", "covariance", "cost"],
    "blow-up": ["path", "covariance", "mean"],
    "resting point": ["path", "mean"],
    "mismatch": ["laws"],
}


@pytest.mark.parametrize("name", NAMES)
def test_each_result_has_its_pictures(name):
    assert list(case(name).plot()) == NAMES[name]


@every_case
def test_pictures_show_something(name):
    for data in drawn(name).values():
        with Image.open(io.BytesIO(data)) as picture:
            colours = picture.convert("RGB").getcolors(maxcolors=2**24)
            assert picture.width >= 1000
            assert np.var(np.asarray(picture.convert("L"), dtype=float)) > 100
        assert len(colours) > 50


def boxes(figure):
    """Extents of all texts of a figure that has been drawn, by what they say."""
    found = []
    artists = [figure._suptitle, *figure.legends]
    for ax in figure.axes:
        artists += [ax.xaxis.label, ax.yaxis.label, ax.get_legend(), *ax.texts]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            artists += [
                tick.label1
                for tick in axis.get_major_ticks() + axis.get_minor_ticks()
                if low <= tick.get_loc() <= high and tick.label1.get_visible()
            ]
            artists.append(axis.get_offset_text())
    for artist in artists:
        if artist is None or not artist.get_visible():
            continue
        words = artist.get_text() if hasattr(artist, "get_text") else "legend"
        if words:
            found.append((words, artist.get_window_extent()))
    return found


@every_case
def test_no_text_overlaps_or_leaves_the_picture(name):
    assert drawn(name)
    for figure in pictures(name).values():
        paper, texts = figure.bbox, boxes(figure)
        for words, box in texts:
            assert box.x0 >= paper.x0 - 1, words
            assert box.x1 <= paper.x1 + 1, words
            assert box.y0 >= paper.y0 - 1, words
            assert box.y1 <= paper.y1 + 1, words
        for (one, a), (two, b) in itertools.combinations(texts, 2):
            shared_x = min(a.x1, b.x1) - max(a.x0, b.x0)
            shared_y = min(a.y1, b.y1) - max(a.y0, b.y0)
            assert shared_x <= 1 or shared_y <= 1, (one, two)


@every_case
def test_axes_are_labelled_and_titles_state_a_finding(name):
    for figure in pictures(name).values():
        assert len(figure._suptitle.get_text()) > 10
        for ax in figure.axes:
            labels = (ax.get_xlabel(), ax.get_ylabel())
            named_rows = any(t.get_text()[:1].isalpha() for t in ax.get_yticklabels())
            assert any(labels)
            assert labels[1] or named_rows


def test_drawing_leaves_no_trace_in_matplotlib():
    before = dict(mpl.rcParams)
    loaded = "matplotlib.pyplot" in sys.modules  # python-control loads it
    figures.images(case("line"))
    assert dict(mpl.rcParams) == before
    assert ("matplotlib.pyplot" in sys.modules) == loaded


def test_the_same_result_gives_the_same_bytes():
    assert figures.images(case("planar")) == drawn("planar")
    assert page.render(case("planar")) == rendered("planar")


def titles(name):
    return {key: figure._suptitle.get_text() for key, figure in pictures(name).items()}


def test_titles_tell_the_numbers():
    planar, failure = titles("planar"), titles("failed")
    assert planar["path"] == f"Arrives: replay error {error(case('planar').replay_error)}"
    assert "6.3234" in planar["cost"]
    assert percent(case("planar").gap) in planar["cost"]
    assert "NOT_CONVERGED" in failure["path"]
    assert "0.83" in failure["path"]
    assert "does not meet" in failure["covariance"]
    assert "NOT within" in titles("singular")["tokens"]
    assert titles("blow-up")["covariance"].endswith("to the power 1.000")
    assert "W₂ = 0.5" in titles("mismatch")["laws"]


def test_growth_is_measured():
    left = np.geomspace(1e-9, 1e-1, 200)
    assert covariance._power(left, 3 * left**-2.0) == pytest.approx(2.0, rel=1e-9)
    assert covariance._power(left[:2], left[:2]) is None


def test_ellipses_are_level_sets_of_the_projected_law():
    rng = np.random.default_rng(3)
    g = law(5, 4, 1)
    axes = np.linalg.qr(rng.standard_normal((5, 2)))[0]
    for radius in (1.0, 2.0):
        offset = plane.Plane(axes, ("", ""), 0).outline(g, radius) - axes.T @ g.mean
        inverse = np.linalg.inv(axes.T @ g.covariance @ axes)
        assert np.einsum("ni,ij,nj->n", offset, inverse, offset) == pytest.approx(radius**2)


def test_flat_ellipses_are_segments_and_points():
    flat = plane.Plane(np.eye(2), ("", ""), 0)
    g = gt.Gaussian([1.0, 2.0], [[3.0], [4.0]])
    offset = flat.outline(g, 2.0) - g.mean
    assert offset @ [4.0, -3.0] == pytest.approx(0.0, abs=1e-12)
    assert np.linalg.norm(offset, axis=1).max() == pytest.approx(10.0, rel=1e-3)
    point = gt.Gaussian([1.0, 2.0], np.zeros((2, 0)))
    assert np.all(flat.outline(point, 2.0) == point.mean)


@pytest.mark.parametrize(("d", "r"), [(3, 3), (4, 2), (9, 2), (60, 5)])
def test_plane_holds_the_stated_share_of_the_change(d, r):
    start, end = law(d, r, 1), law(d, r, 2)
    axes, shares = plane._change(start, end, 1.0)
    values, vectors = np.linalg.eigh(end.covariance - start.covariance)
    shift = end.mean - start.mean
    total = (vectors * np.abs(values)) @ vectors.T + np.outer(shift, shift)
    assert axes.T @ axes == pytest.approx(np.eye(2), abs=1e-12)
    assert shares == pytest.approx(np.diag(axes.T @ total @ axes) / np.trace(total))
    # The scale of the drawing does not matter.
    again, same = plane._change(start, end, 7.0)
    assert np.abs(np.sum(again * axes, axis=0)) == pytest.approx(1.0)
    assert same == pytest.approx(shares)


def test_orthogonal_ranges_are_drawn_in_one_direction_of_each():
    start = gt.Gaussian(np.zeros(4), np.eye(4)[:, :2])
    end = gt.Gaussian(np.zeros(4), 2 * np.eye(4)[:, 2:])
    axes = plane.plane_of([start, end], end).axes
    assert np.linalg.norm(start.factor.T @ axes, axis=0) == pytest.approx([0.0, 1.0], abs=1e-12)
    assert np.linalg.norm(end.factor.T @ axes, axis=0) == pytest.approx([2.0, 0.0], abs=1e-12)


@pytest.mark.parametrize(("d", "n"), [(3, 9), (40, 6), (5, 1)])
def test_principal_directions_are_singular_vectors(d, n):
    X = np.random.default_rng(d).standard_normal((d, n))
    directions, shares = plane._principal(X)
    U, sigma, _ = np.linalg.svd(X)
    assert abs(directions[:, 0] @ U[:, 0]) == pytest.approx(1.0)
    assert directions.T @ directions == pytest.approx(np.eye(2), abs=1e-12)
    expected = np.append(sigma, 0.0)[:2] ** 2 / np.sum(sigma**2)
    assert shares == pytest.approx(expected, abs=1e-12)


def test_a_law_that_comes_back_is_drawn_in_its_principal_directions():
    g = law(3, 2, 1)
    turned = gt.Gaussian(g.mean, np.roll(g.factor, 1, axis=0))
    assert "of variance" in plane.plane_of([g, turned, g], g).labels[0]
    assert "of change" in plane.plane_of([g, turned], turned).labels[0]


@pytest.mark.parametrize(
    ("name", "flat"), [("line", True), ("collinear", True), ("segment", False)]
)
def test_motion_on_a_line_is_drawn_against_time(name, flat):
    axes = pictures(name)["path"].axes
    assert (axes[0].get_xlabel() == "time t") is flat


def test_huge_laws_are_drawn_in_powers_of_ten():
    ax = pictures("huge")["path"].axes[0]
    assert "10^{75}" in ax.get_xlabel()
    assert max(map(abs, ax.get_xlim())) < 100


def test_samples_follow_the_trajectory():
    path = case("flow")
    seen = sampling.sample(path)
    assert seen.times[0] == 0
    assert seen.times[-1] == path.times[-1]
    for i in (0, 57, seen.times.size - 1):
        assert seen.means[i] == pytest.approx(path.at(seen.times[i]).mean)
        eigenvalues = path.at(seen.times[i]).eigenvalues
        assert seen.eigenvalues()[i] == pytest.approx(eigenvalues, rel=1e-9)
        assert seen.traces[i] == pytest.approx(eigenvalues.sum())
    assert sampling.sample(case("layers")).times.size == 13  # layers are not interpolated
    # Drawn on linear axes, a blow-up is followed only as far as it can be seen.
    pole = case("blow-up")
    assert sampling.sample(pole).traces[-1] == pytest.approx(pole.traces[-1])
    assert pole.traces[-1] > 1e6
    assert 10 < sampling.sample(pole, drawable=True).traces[-1] <= 40


def test_rank_that_grows_by_noise_is_sampled():
    for result in (case("noise"), heads_with_noise(layers=30)):
        values = sampling.sample(result).eigenvalues()
        assert np.isnan(values[0, 1:]).all()  # zeros, and what rounding makes of them
        assert np.isfinite(values[-1]).all()


@pytest.mark.parametrize("name", ["planar", "singular", "embedding", "collinear"])
def test_controls_are_those_of_the_schedule(name):
    schedule = case(name).schedule
    times, values = controls._sampled(schedule, "Ab")
    for i in (0, times.size // 2):
        now = schedule(times[i])
        if schedule.dim**2 <= controls.ENTRIES:
            assert values["A"][i] == pytest.approx(now.A.ravel())
        else:
            assert values["A"][i] == pytest.approx([np.linalg.norm(now.A)])
        entries = now.b if schedule.dim <= controls.ENTRIES else [np.linalg.norm(now.b)]
        assert values["b"][i] == pytest.approx(entries)


def test_steps_of_piecewise_constant_controls_stay_vertical():
    pieces = [gt.Parameters(b=[1.0]), gt.Parameters(b=[2.0])]
    times, values = controls._sampled(Schedule([0.0, 0.3, 1.0], pieces), "b")
    assert times.tolist() == [0.0, 0.3, 0.3, 1.0]
    assert values["b"].ravel().tolist() == [1.0, 1.0, 2.0, 2.0]


def test_bounds_are_drawn():
    controls_figure = pictures("failed")["controls"]
    labels = [
        line.get_text() for ax in controls_figure.axes for line in ax.get_legend().get_texts()
    ]
    assert "bound ±1 on entries" in labels
    assert "bound ±50 on entries (off the axis)" in labels
    assert "bound 4 on the norm" in labels
    levels = {line.get_ydata()[0] for line in controls_figure.axes[0].lines}
    assert {-1.0, 1.0} <= levels
    # Minimum time bounds each control by its own bound.
    assert controls._bounds(case("fast").problem, "A") == (2.0, None)
    legend = pictures("many")["covariance"].axes[0].get_legend()
    assert any("bound 1e6 on λ₁, off" in t.get_text() for t in legend.get_texts())


def test_every_attempt_is_drawn_against_the_bound():
    ax = pictures("planar")["cost"].axes[0]
    drawn_costs = {float(line.get_xdata()[0]) for line in ax.lines if len(line.get_xdata()) == 1}
    assert {9.25, 6.3234, 6.1} <= drawn_costs
    assert [t.get_text() for t in ax.texts].count("no cost") == 1
    bound = case("planar").lower_bound
    assert any(list(line.get_xdata()) == [bound, bound] for line in ax.lines)


def test_errors_of_tokens_are_drawn_in_sampling_errors():
    for name in ("singular", "point"):
        tokens, ax = case(name).tokens, pictures(name)["tokens"].axes[0]
        ends = [line.get_xdata()[0] for line in ax.lines if line.get_marker() in ("o", "X")]
        ratio = math.inf
        if tokens.mean_sampling_error:
            ratio = tokens.mean_error / tokens.mean_sampling_error
        # Without any spread there is no sampling error: the dot stays on the axes.
        assert ends[-1] == pytest.approx(ratio) or (ratio == math.inf and ends[-1] > 3)
        assert max(ends) < ax.get_xlim()[1]


def test_many_attempts_keep_the_returned_one():
    crowd = tuple(
        Attempt(f"start {i}", "ipopt", 20, "", i == 40, 9, 5.0 + i, 0.1) for i in range(41)
    )
    result = plan(
        law(1, 1, 1), law(1, 1, 2), attempts=crowd, spent=45.0, tokens=None, solver="ipopt"
    )
    ax = result.plot()["cost"].axes[0]
    rows = [t.get_text() for t in ax.get_yticklabels()]
    assert [row.split("\n")[0] for row in rows] == ["start 0", "start 1", "start 2", "start 40"]
    assert "(the 4 best of 41 different costs shown)" in said(result, "cost")


def said(result, name):
    """Title of a figure on one line."""
    return " ".join(result.plot()[name]._suptitle.get_text().split())


def test_attempts_of_equal_cost_share_a_row():
    result = crowded(spent=7.1001, solver="ipopt", intervals=20)
    told = [[result.attempts[i].cost for i in g.members] for g in groups(result)]
    assert sorted(told) == [[7.0, 7.0, 7.00001], [7.1], [7.2], [8.0, 8.0], [9.0]]
    (table,) = [t for t in view(result).tables if t.title == "Attempts of the solver"]
    starts = [row[0] for row in table.rows]
    assert starts[:2] == [
        "bent and rotated geodesic, switched signs and 2 more", "geodesic, opposed (best)",
    ]  # fmt: skip
    assert starts[-1] == "bent geodesic, at rest and 39 more"
    assert table.rows[-1][4:] == ("3 to 42", "4 s", "set aside")
    assert table.rows[0][3] == "20 to 22"
    assert len(table.rows) == 6
    for word in ("bent", "rotated", "reversed", "opposed", "aligned", "mixed signs",
                 "switched", "at rest", "set aside", "own mesh"):  # fmt: skip
        assert word in table.note
    assert "given up after a few iterations" in outline(page.render(result, {}))[1]
    assert "40 attempts set aside early not shown" in said(result, "cost")


def test_an_exact_plan_that_stands_in_is_told_apart_from_the_attempts():
    result = case("stand-in")
    assert best_attempt(result) is None
    for name in ("path", "covariance", "cost"):
        assert "NOT_CONVERGED: an exact plan stands in for the optimum" in said(result, name)
        assert "miss" not in said(result, name)
        assert "not meet" not in said(result, name)
    ax = result.plot()["cost"].axes[0]
    stars = [line for line in ax.lines if line.get_marker() == "*" and len(line.get_xdata())]
    assert [float(line.get_xdata()[0]) for line in stars] == [9.5]
    row = [t.get_text() for t in ax.get_yticklabels()][int(stars[0].get_ydata()[0])]
    assert row == "closed form (transport-geodesic)"
    _, words = outline(page.render(result, {}))
    assert "(best)" not in words
    assert "should" not in view(result).captions["path"] + view(result).captions["covariance"]
    for part in ("7 attempts of the solver converged, all at a lower cost",
                 "when simulated none of their plans arrives at the target",
                 "1 attempt on a finer mesh did not converge",
                 "the table of attempts in the report", "rescale the tokens"):  # fmt: skip
        assert part in view(result).headline
    # A failure that does not arrive is no stand-in.
    assert "should" in view(case("failed")).captions["path"]
    # What was stopped while tokens moved along an optimal exact plan is no stand-in either.
    optimal = crowded(status=gt.Status.INTERRUPTED, replay_error=0.0, attempts=(), lower_bound=5.0,
                      spent=5.0)  # fmt: skip
    assert "stands in" not in said(optimal, "path")
    assert "arrives to within 0" in said(optimal, "path")


def test_captions_say_what_is_drawn():
    for name in ("line", "collinear", "blow-up"):
        caption = view(case(name)).captions["path"]
        assert "bands" in caption
        assert "ellipses" not in caption
    for name in ("planar", "singular", "embedding", "flow", "blow-up in the plane"):
        assert "bands" not in view(case(name)).captions["path"]
        assert "ellipses" in view(case(name)).captions["path"]


def test_a_bound_of_zero_is_called_trivial():
    (bound,) = [f.value for f in view(case("failed")).facts if f.label == "lower bound"]
    assert bound == "0: only this trivial bound is known"
    legend = pictures("failed")["cost"].legends[0]
    assert not any("bound" in t.get_text() for t in legend.get_texts())


# -- pages -----------------------------------------------------------------------------

VOID = {"meta", "img", "link", "br", "hr", "input"}


class Outline(html.parser.HTMLParser):
    """Checks that tags are balanced, and collects what a page refers to and says."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.words, self.tags = [], [], [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.links += [v for k, v in attrs if k in {"src", "href", "action", "data", "srcset"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def outline(source):
    parser = Outline()
    parser.feed(source)
    parser.close()
    assert parser.open == []
    return parser, " ".join(" ".join(parser.words).split())


@every_case
def test_pages_are_whole_and_need_no_network(name):
    parser, _ = outline(rendered(name))
    assert parser.links
    assert all(link.startswith("data:image/png;base64,") for link in parser.links)
    outside = re.sub(r"base64,[A-Za-z0-9+/=]+", "", rendered(name))
    assert not re.search(r"https?:|//[a-z]|url\(|@import", outside)
    assert not parser.tags & {"script", "link", "iframe", "object"}


@every_case
def test_pages_embed_the_pictures_with_captions(name):
    source = rendered(name)
    embedded = re.findall(r'base64,([^"]+)" alt="([^"]+)" width="(\d+)"', source)
    assert [base64.b64decode(data) for data, *_ in embedded] == list(drawn(name).values())
    for data, caption, width in embedded:
        with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
            assert picture.width == int(width)
        assert len(caption) > 30
    assert list(view(case(name)).captions)[: len(drawn(name))] or name == "mismatch"


@every_case
def test_pages_hold_everything_that_the_summary_says(name):
    _, words = outline(rendered(name))
    words = words.replace(" ", "")
    seen = view(case(name))
    for fact in (*seen.facts, *seen.statement):
        assert "".join(fact.value.replace("`", "").split()) in words
    assert "".join(seen.headline.replace("`", "").split()) in words


def test_page_of_a_plan_has_problem_attempts_and_parameters():
    _, words = outline(rendered("planar"))
    for part in ("steer-planar", "A (linear layer), V (attention values)", "rank 2",
                 "control energy, ∫ |A|² + |V|² + |B|² + |b|² + E|v|² dt", "6.3234",
                 "rotated (best)", "Maximum_Iterations_Exceeded", "S′ = M S + S Mᵀ",
                 "gtcontrol run steer-planar", "gt.load"):  # fmt: skip
        assert part in words
    middle = case("planar").schedule(0.5)
    assert matrix(middle.A) in words
    assert matrix(middle.b) in words
    _, failure = outline(rendered("failed"))
    assert "Lengthen the horizon." in failure
    assert "entries of A at most 1; entries of b at most 50; norm of b at most 4" in failure


def test_page_explains_what_its_model_adds():
    _, words = outline(rendered("noise"))
    for part in ("There are 2 heads", "score biases", "Process noise", "rank 1 at the start"):
        assert part in words
    assert "S′ = M S + S Mᵀ + Q," in words
    assert "Q intensity of the process noise" in words
    assert "Process noise" not in outline(rendered("flow"))[1]
    assert "S′ = M S + S Mᵀ," in outline(rendered("flow"))[1]
    later = [gt.Parameters(dim=1), gt.Parameters(A=[[0.1]], noise=[[0.2]])]
    result = gt.simulate(gt.Gaussian([0.0], [[1.0]]), gt.Schedule([0.0, 0.5, 1.0], later))
    _, words = outline(page.render(result, {}))
    assert "S′ = M S + S Mᵀ + Q," in words
    assert "in the pieces that have it" in words
    assert "and noise adds h Q to S" in view(heads_with_noise(layers=5)).notes[0]
    moved = gt.simulate_tokens(np.zeros((4, 1)), later[1], 1.0, layers=2, rng=1)
    assert "+ Q," in outline(page.render(moved, {}))[1]
    assert "(I + h M) L" in outline(rendered("layers"))[1]


def test_names_cannot_smuggle_markup():
    evil = "<script>alert(1)</script>&`x`"
    result = gt.simulate(gt.Gaussian([0.0], [[1.0]]), gt.Parameters(A=[[1.0]]), 1.0, name=evil)
    source = page.render(result, {})
    parser, words = outline(source)
    assert "script" not in parser.tags
    assert evil in words
    assert "gtcontrol run '" not in words


def executed(result):
    """Variables after running the Python code that a page shows."""
    variables = {}
    exec(view(result).code, variables)
    return variables


def test_code_of_a_simulation_computes_it_again(capsys):
    for name in ("layers", "noise", "blow-up"):
        final = executed(case(name))["path"].final
        assert np.array_equal(final.mean, case(name).final.mean)
        assert np.array_equal(final.covariance, case(name).final.covariance)
    assert "BLOW_UP" in capsys.readouterr().out


def test_code_of_a_plan_computes_it_again(capsys):
    for name in ("singular", "point"):
        again = executed(case(name))["plan"]
        assert again.cost == pytest.approx(case(name).cost, rel=1e-12)
        assert again.problem.controls == case(name).problem.controls
    assert capsys.readouterr().out.count("SUCCESS") == 2


def test_code_of_reachability_asks_again(capsys):
    assert not executed(case("mismatch"))["answer"]
    assert executed(case("reachable"))["answer"]
    assert "cannot be reached" in capsys.readouterr().out


def test_code_states_cost_and_bounds():
    code = view(case("failed")).code
    assert "gt.Bounds(entries={'A': 1.0, 'b': 50.0}, norms={'b': 4.0}, trace=7.0)" in code
    assert "gt.MinimumTime(bound=2.0, norm='entries')" in view(case("fast")).code
    assert "gt.ControlEnergy(kinetic=1.0)" in view(case("planar")).code


def test_a_command_is_shown_for_problems_that_have_one():
    assert view(case("planar")).command == "gtcontrol run steer-planar"
    for name in ("failed", "blow-up", "line"):  # called after a file of one's own, or not at all
        assert view(case(name)).command == ""
        _, words = outline(rendered(name))
        assert "gtcontrol run and the path of the file, which the result does not keep" in words
        assert not re.search(r"gtcontrol run (hard|pole)", words)


def turning():
    schedule = Schedule.from_function(lambda t: gt.Parameters(A=[[math.sin(t)]]), 1.0)
    return gt.simulate(gt.Gaussian([1.0], [[1.0]]), schedule)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (lambda: case("embedding"), "plan"),
        (turning, "path"),
        (lambda: gt.reachable(law(9, 4, 1), law(9, 3, 2)), "answer"),
    ],
)
def test_code_of_what_is_too_large_uses_the_saved_problem(made, kind, tmp_path, capsys):
    result = made()
    result.save(tmp_path)
    variables = {}
    exec(view(result).code.replace("FOLDER", str(tmp_path)), variables)
    again = variables[kind]
    for name in ("cost", "distance"):
        if hasattr(result, name):
            assert getattr(again, name) == pytest.approx(getattr(result, name), rel=1e-9)
    assert again.problem.start.mean == pytest.approx(result.problem.start.mean)
    assert capsys.readouterr().out
    assert "where FOLDER is the folder of this page" in page.render(result, {})


def test_a_saved_result_gives_the_same_page(tmp_path):
    case("layers").save(tmp_path)
    assert page.render(gt.load(tmp_path)) == rendered("layers")


def test_report_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "new" / "report.html"
    assert case("mismatch").report(target) == target
    assert target.read_text(encoding="utf-8") == rendered("mismatch")
    before = target.read_bytes()

    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutputFailure, match="No space left on device"):
        case("mismatch").report(target)
    with pytest.raises(OutputFailure, match="No space left"):
        case("mismatch").report(tmp_path / "other" / "report.html")
    assert target.read_bytes() == before
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["new", "report.html"]


def test_report_does_not_overwrite_a_folder(tmp_path):
    with pytest.raises(OutputFailure, match="it is a folder; name a file"):
        case("mismatch").report(tmp_path)


# -- folders ---------------------------------------------------------------------------


def tree(folder):
    """Everything below a folder: relative path and content."""
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in folder.rglob("*")
    }


def test_the_folder_of_a_result_is_complete(tmp_path):
    out = tmp_path / "runs" / "layers"
    assert files.write_all(case("layers"), out) == out
    found = tree(tmp_path)
    names = {"result.json", "result.npz", "report.html", "figures"}
    names |= {f"figures/{key}.png" for key in drawn("layers")}
    assert {str(Path(k).relative_to("runs/layers")) for k in found if "layers/" in k} == names
    assert found["runs/layers/figures/path.png"] == drawn("layers")["path"]
    assert found["runs/layers/report.html"].decode() == rendered("layers")
    assert gt.load(out).final.mean == pytest.approx(case("layers").final.mean)
    assert {p.name for p in out.parent.iterdir()} == {"layers"}


def test_an_earlier_result_is_replaced_without_leftovers(tmp_path):
    out = tmp_path / "out"
    out.mkdir()  # an empty folder is as good as none
    files.write_all(case("layers"), out)
    files.check_writable(out)
    files.write_all(case("mismatch"), out)
    assert set(tree(out)) == {
        "result.json", "result.npz", "report.html", "figures", "figures/laws.png",
    }  # fmt: skip
    assert {p.name for p in tmp_path.iterdir()} == {"out"}


@pytest.mark.parametrize("failure", [RuntimeError("a bug"), KeyboardInterrupt(), ValueError("no")])
def test_a_failure_midway_leaves_everything_as_it_was(tmp_path, monkeypatch, failure):
    out = tmp_path / "out"
    files.write_all(case("mismatch"), out)
    before = tree(tmp_path)

    def fail(*_):
        raise failure

    monkeypatch.setattr(page, "render", fail)
    # Mistakes of the program are not disguised as failures of the disk.
    for place in (out, tmp_path / "deep" / "new"):
        with pytest.raises(type(failure)):
            files.write_all(case("layers"), place)
        assert tree(tmp_path) == before


def test_a_full_disk_is_told_in_one_line(tmp_path, monkeypatch):
    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutputFailure, match="No space left on device") as caught:
        files.write_all(case("mismatch"), tmp_path / "a" / "b")
    assert "\n" not in str(caught.value)
    assert tree(tmp_path) == {}


def test_a_failed_exchange_restores_the_earlier_result(tmp_path, monkeypatch):
    out = tmp_path / "out"
    files.write_all(case("mismatch"), out)
    before = tree(tmp_path)
    rename, calls = Path.rename, []

    def second_fails(self, target):
        calls.append(self.name)
        if len(calls) == 2:
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", second_fails)
    with pytest.raises(OutputFailure, match="Permission denied"):
        files.write_all(case("layers"), out)
    assert len(calls) == 3  # aside, refused, back
    assert tree(tmp_path) == before


def refused(place, match):
    for attempt in (files.check_writable, functools.partial(files.write_all, case("mismatch"))):
        with pytest.raises(OutputFailure, match=match) as caught:
            attempt(place)
        assert "\n" not in str(caught.value)


def test_foreign_files_are_never_deleted(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    refused(tmp_path, r"holds no earlier result \(thesis.tex\)")
    (tmp_path / "result.json").write_text("{}")
    refused(tmp_path, r"other files \(thesis.tex\); move them away")
    out = tmp_path / "out"
    files.write_all(case("mismatch"), out)
    (out / "figures" / "notes.txt").write_text("mine")
    refused(out, r"other files \(figures/notes.txt\)")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_impossible_places_are_refused_in_one_line(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    before = tree(tmp_path)
    refused(file, "is a file, not a folder")
    refused(file / "below" / "it", "is a file, not a folder")
    refused(tmp_path / ("x" * 300), "cannot write")
    refused(tmp_path / "missing" / ("x" * 300), "cannot write")
    refused("a\0b", "null")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    refused(loop, "cannot write")
    loop.unlink()
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    refused(".", "it is the current folder; name a folder inside it")
    refused("..", f"it holds the current folder, {here}; name a folder inside it")
    here.rmdir()
    monkeypatch.chdir(tmp_path)
    assert tree(tmp_path) == before


def test_an_unwritable_parent_is_refused(tmp_path, monkeypatch):
    def denied(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", denied)
    refused(tmp_path / "out", "Permission denied")
    assert tree(tmp_path) == {}


def test_the_check_leaves_nothing_behind(tmp_path):
    files.check_writable(tmp_path / "a" / "b" / "c")
    (tmp_path / "empty").mkdir()
    files.check_writable(tmp_path / "empty")
    assert tree(tmp_path) == {"empty": None}


def test_a_link_to_a_folder_keeps_its_link(tmp_path):
    real, link = tmp_path / "real", tmp_path / "latest"
    real.mkdir()
    link.symlink_to(real)
    files.write_all(case("mismatch"), link)
    assert link.is_symlink()
    assert (real / "result.json").is_file()


def test_replacing_a_file_is_atomic(tmp_path, monkeypatch):
    target = tmp_path / "x.html"
    target.write_text("old")

    def denied(self, other):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", denied)
    with pytest.raises(OutputFailure, match="Permission denied"):
        atomic.replace_file(target, b"new")
    assert tree(tmp_path) == {"x.html": b"old"}


# -- cost of importing -----------------------------------------------------------------


def test_a_summary_loads_no_matplotlib_and_no_jinja():
    code = (
        "import gtcontrol as gt, sys\n"
        "path = gt.simulate(gt.Gaussian([0.0], [[1.0]]), gt.Parameters(A=[[1.0]]), 1.0)\n"
        "path.summary()\n"
        "print({'matplotlib', 'jinja2', 'casadi'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

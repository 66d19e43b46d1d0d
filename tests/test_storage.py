"""Saving and loading: every result comes back, every damage is named, nothing is unpickled."""

import json
import os
import pickle
import re
import zipfile
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import gtcontrol as gt
from gtcontrol import pretrained
from gtcontrol.errors import OutputFailure, ResultFileInvalid
from gtcontrol.field import rates
from gtcontrol.problem.definitions import ReachabilityProblem, SteeringProblem
from gtcontrol.reporting.files import write_all
from gtcontrol.results.reachability import Reachability
from gtcontrol.results.steering import Attempt, Violation
from gtcontrol.results.writing import to_json
from gtcontrol.status import Status
from tests import inspections
from tests.strategies import orthogonal
from tests.test_export import made_by_hand as exported
from tests.test_simulation import LAW, general, interrupt_after
from tests.test_tokens import TestCheckTokens as Plans

BASIS = orthogonal(np.random.default_rng(0), 4)[:, :2]


def wave(t):
    return gt.Parameters(
        A=np.sin(9 * t) * np.eye(2), V=-np.eye(2), B=[[1.0, t], [0.0, 1.0]], b=[t, 1.0]
    )


HEADS = gt.Schedule(
    [0.0, 0.2, 0.5], [general(), gt.Parameters(V=np.ones((3, 2, 2)), B=-np.ones((3, 2, 2)))]
)
LAYER = gt.FeedForward([[1.0, 0.3], [-0.4, 0.9]], [0.2, -0.3], activation="gelu")
BLOW_UP = gt.Parameters(V=np.eye(2), B=[[1.0, 0.4], [0.0, 0.8]], A=0.1 * np.eye(2))

TRAJECTORIES = {
    "constant": lambda: gt.simulate(LAW, general(), 1.0, name="inf"),
    "heads-and-pieces": lambda: gt.simulate(LAW, HEADS),
    "function": lambda: gt.simulate(LAW, gt.Schedule.from_function(wave, 1.0)),
    "subspace": lambda: gt.simulate(
        gt.Gaussian(np.ones(4), np.eye(4)[:, :3]), gt.Schedule([0, 1], [general()], basis=BASIS)
    ),
    "noise": lambda: gt.simulate(LAW, general(noise=np.diag([0.3, 0.0])), 1.0),
    "noise-from-a-point": lambda: gt.simulate(
        gt.Gaussian([0.0, 0.0], np.zeros((2, 0))), general(noise=np.diag([0.3, 0.0])), 1.0
    ),
    "layers": lambda: gt.simulate(LAW, general(), 1.0, layers=6),
    "noisy-layers": lambda: gt.simulate(LAW, general(noise=np.diag([0.3, 0.0])), 1.0, layers=6),
    "finite-tokens": lambda: gt.simulate(LAW, general(), 1.0, tokens=gt.FiniteTokens(30)),
    "finite-tokens-in-layers": lambda: gt.simulate(
        LAW, general(), 1.0, layers=2, tokens=gt.FiniteTokens(30, self_key=False)
    ),
    "blow-up": lambda: gt.simulate(LAW, BLOW_UP, 5.0),
    "step-limit": lambda: gt.simulate(LAW, general(), 1.0, max_steps=2),
    "interrupted": lambda: gt.simulate(LAW, general(), 1.0, progress=interrupt_after(1)),
    "interrupted-layers": lambda: gt.simulate(
        LAW, general(), 1.0, layers=3, progress=interrupt_after(1)
    ),
    "dirac": lambda: gt.simulate(gt.Gaussian([1.0, 0.0], np.zeros((2, 0))), general(), 1.0),
}


def steering(*, tokens=False):
    made = Plans().arriving()
    return replace(
        made,
        problem=SteeringProblem(
            made.problem.start,
            made.problem.target,
            1.0,
            "Vb",
            gt.ControlEnergy(2.0),
            gt.Bounds(entries={"A": 1.0}, norms={"b": 3.0}, trace=9.0),
            "optimal",
            "nan",
        ),
        lower_bound=0.0,
        lower_bound_reason="none is known",
        attempts=(
            Attempt("geodesic", "ipopt", 20, "Solve_Succeeded", True, 7, 1.5, 0.25),
            Attempt("split", "fatrop", 40, "Maximum_Iterations", False, 500, np.nan, np.inf),
        ),
        violations=(Violation("terminal mean", 0.5, "t = 1", "loosen the bounds"),),
        tokens=gt.check_tokens(made, 50, rng=np.random.default_rng(0)) if tokens else None,
    )


def reachability(*, nearest):
    return Reachability(
        ReachabilityProblem(LAW, gt.Gaussian([0.0, 0.0], np.eye(2)[:, :1]), "Ab", "ranks"),
        False,
        "the ranks differ",
        gt.Gaussian([0.0, 0.0], np.eye(2)) if nearest else None,
        0.25 if nearest else np.inf,
        not nearest,
        ("constant-affine", "transport-geodesic"),
    )


def filtering(*, noise=None, value=1.0):
    model = gt.KalmanModel([[0.0, 1.0], [0.0, 0.0]], [1.0, 0.0], 0.5, noise)
    forcing = None if noise is None else [0.0, -1.0]
    y = gt.simulate_measurements(model, [1.0, 0.0], 1.0, 5, 1, forcing=forcing)
    start = gt.Gaussian([0.0, 0.0], np.eye(2) if noise is None else 0.5 * np.eye(2))
    return gt.filter_by_attention(model, start, y, tokens=[20, 40], seeds=2, value=value)


RESULTS = TRAJECTORIES | {
    "steering": steering,
    "steering-with-tokens": lambda: steering(tokens=True),
    "riccati": lambda: gt.riccati(np.diag([1.0, -2.0]), [1.0, 1.0], np.eye(2), 2.0, [0.1, 0.2]),
    "riccati-in-discrete-time": lambda: gt.riccati(
        [[0.0, 2.0], [-2.0, 0.0]], [0, 1], discrete=True
    ),
    "riccati-continuum": lambda: gt.riccati(np.diag([1.0, 0.0]), [1.0, 0.0], name="continuum"),
    "riccati-without-solution": lambda: gt.riccati(np.diag([1.0, 2.0]), [1.0, 0.0]),
    "reachability": lambda: reachability(nearest=True),
    "reachability-without-nearest": lambda: reachability(nearest=False),
    "filter": filtering,
    "filter-with-noise": lambda: filtering(noise=[[0.0, 0.0], [0.0, 0.2]], value=4.0),
    "with-a-layer": lambda: gt.simulate(
        LAW, general(), 0.3, feedforward=LAYER, linearisation="jacobian"
    ),
    "closeness": lambda: gt.closeness(
        LAW, general(), LAYER, 0.1, times=[0.05, 0.1], count=256, seeds=2
    ),
    "mixture": lambda: gt.follow_mixture(
        gt.Mixture([0.3, 0.7], [LAW, gt.Gaussian([0.0, 1.0], [[0.5], [0.0]])]),
        general(),
        0.1,
        times=[0.05, 0.1],
        count=64,
    ),
    "tokens-from-a-mixture": lambda: gt.simulate_tokens(
        gt.Mixture([0.3, 0.7], [LAW, LAW]), general(), 0.1, count=20, rng=0, feedforward=LAYER
    ),
    "validation": lambda: gt.validate(
        LAW, BLOW_UP, 1.0, counts=(30, 60), seeds=2, observe=7, shapes=2, closure=True
    ),
    "validation-layers": lambda: gt.validate(
        LAW,
        general(),
        1.0,
        counts=(30,),
        seeds=1,
        layers=4,
        antithetic=True,
        rng=3,
        feedforward=gt.FeedForward([[1.0, 0.5]], [0.1], [[0.2], [0.3]], "gelu"),
    ),
    "forecast": lambda: pretrained.forecast_layers(general(), LAW, 3, 0.3, 50, measured=[1.0, 2.0]),
    "forecast-of-the-mean-field": lambda: pretrained.forecast_layers(general(), LAW, 3, 0.3),
    "inspection": inspections.made,
    "inspection-interrupted": lambda: inspections.made(done=2, numerics=1e-6),
    "tokens": lambda: gt.simulate_tokens(LAW, general(), 1.0, count=30, rng=3, antithetic=True),
    "tokens-given": lambda: gt.simulate_tokens(
        LAW.sample(30, np.random.default_rng(0)), HEADS, layers=4, observe=3, keep=5
    ),
    "tokens-masked": lambda: gt.simulate_tokens(
        LAW,
        HEADS,
        0.5,
        count=20,
        rng=1,
        layers=4,
        mask_self=True,
        spread=True,
        dtype="float32",
        feedforward=gt.FeedForward([[1.0, 0.5]], [0.1], [[0.2], [0.3]], "gelu"),
    ),
    "export": lambda: exported(exact=True),
    "export-without-attention": lambda: exported(heads=False),
    "export-interrupted": lambda: exported(tried=1),
    "tokens-without-bound": lambda: gt.simulate_tokens(
        np.zeros((4, 2)), gt.Parameters(noise=np.eye(2)), 1.0, layers=2, rng=1, causal=True
    ),
}

RESULTS = {name: cache(make) for name, make in RESULTS.items()}

every_result = pytest.mark.parametrize("name", RESULTS)


def same(first, second):
    """Compare two values of any kind that a result may hold, schedules by their parameters."""
    assert type(first) is type(second)
    if isinstance(first, np.ndarray):
        np.testing.assert_array_equal(first, second)
    elif isinstance(first, gt.Schedule):
        assert first.horizon == second.horizon
        for t in np.linspace(0, first.horizon, 41):
            p, q = first(t), second(t)
            mean, L = np.arange(1.0, p.dim + 1), np.eye(p.dim)
            one, other = (rates(mean, L, x.A, x.heads, x.b) for x in (p, q))
            for i in range(2):
                np.testing.assert_allclose(one[i], other[i], atol=1e-10)
            assert (p.noise is None) == (q.noise is None)
            if p.noise is not None:
                np.testing.assert_allclose(p.noise, q.noise, atol=1e-11)
    elif type(first).__name__ == "Interpolant":
        for s in np.linspace(0, len(first.polynomial.x) - 1, 7):
            np.testing.assert_array_equal(first.polynomial(s), second.polynomial(s))
    elif isinstance(first, tuple):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            same(one, other)
    elif hasattr(first, "__dataclass_fields__"):
        for field in fields(first):
            same(getattr(first, field.name), getattr(second, field.name))
    else:
        assert first == second or (first != first and second != second)


class TestRoundTrip:
    @every_result
    def test_everything_comes_back(self, name, tmp_path):
        result = RESULTS[name]()
        assert result.save(tmp_path) == tmp_path
        again = gt.load(tmp_path)
        same(result, again)
        assert again.answered == result.answered
        assert to_json(again) == to_json(result)

    def test_a_filter_run_is_named_in_one_line(self):
        result = filtering()
        words = f"measurements=5, tokens=20, 40, agreement {result.agreement:.1e}"
        assert repr(result) == f"FilterRun(SUCCESS, states=2, {words})"

    @pytest.mark.parametrize("name", TRAJECTORIES)
    def test_dense_output_and_a_new_run_agree(self, name, tmp_path):
        path = TRAJECTORIES[name]()
        path.save(tmp_path)
        again = gt.load(tmp_path)
        for t in np.linspace(0, path.times[-1], 9):
            law, other = path.at(t), again.at(t)
            assert law.rank == other.rank
            np.testing.assert_allclose(law.mean, other.mean, atol=1e-10)
            np.testing.assert_allclose(law.covariance, other.covariance, rtol=1e-10, atol=1e-10)
        if path.status is Status.SUCCESS:
            p = again.problem
            anew = gt.simulate(p.start, p.schedule, p.horizon, layers=p.layers, tokens=p.tokens)
            np.testing.assert_allclose(anew.final.covariance, path.final.covariance, atol=1e-10)

    def test_a_plan_can_be_moved_again(self, tmp_path):
        steering().save(tmp_path)
        plan = gt.load(tmp_path)
        check = gt.check_tokens(plan, 500, rng=0)
        assert check.within_sampling_error

    def test_strict_json_with_infinities(self, tmp_path):
        reachability(nearest=False).save(tmp_path)
        text = (tmp_path / "result.json").read_text()

        def refuse(constant):
            raise AssertionError(constant)

        values = json.loads(text, parse_constant=refuse)
        assert values["distance"] == "inf"
        assert gt.load(tmp_path).distance == np.inf

    def test_saving_twice_replaces(self, tmp_path):
        RESULTS["constant"]().save(tmp_path)
        RESULTS["tokens"]().save(tmp_path)
        assert type(gt.load(tmp_path)).__name__ == "TokenRun"

    def test_loaded_arrays_are_read_only(self, tmp_path):
        RESULTS["constant"]().save(tmp_path)
        with pytest.raises(ValueError, match="read-only"):
            gt.load(tmp_path).means[0, 0] = 1.0

    def test_unwritable_places(self, tmp_path):
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(OutputFailure, match="cannot write"):
            RESULTS["constant"]().save(tmp_path / "file")
        with pytest.raises(OutputFailure, match="cannot write"):
            RESULTS["constant"]().save(tmp_path / "file" / "below")

    @pytest.mark.parametrize("beside", [(), ("result.json",)])
    def test_folders_with_other_files_are_left_alone(self, beside, tmp_path):
        for name in (*beside, "thesis.tex"):
            (tmp_path / name).write_text("mine")
        with pytest.raises(OutputFailure, match=r"cannot write into .*thesis\.tex"):
            RESULTS["constant"]().save(tmp_path)
        assert {p.name: p.read_text() for p in tmp_path.iterdir()} == dict.fromkeys(
            (*beside, "thesis.tex"), "mine"
        )

    def test_into_the_folder_of_a_run(self, tmp_path):
        write_all(RESULTS["constant"](), tmp_path / "run")
        RESULTS["layers"]().save(tmp_path / "run")
        assert gt.load(tmp_path / "run").problem.layers == 6

    @pytest.mark.parametrize("place", [None, 5, b"bytes"])
    def test_what_is_no_path(self, place):
        kind = type(place).__name__
        with pytest.raises(OutputFailure, match=f"must be the path of a folder, not {kind}"):
            RESULTS["constant"]().save(place)
        with pytest.raises(ResultFileInvalid, match=f"must be the path of a folder, not {kind}"):
            gt.load(place)

    def test_a_null_character_in_a_path(self, tmp_path):
        with pytest.raises(OutputFailure, match="null"):
            RESULTS["constant"]().save(f"{tmp_path}/a\0b")
        with pytest.raises(ResultFileInvalid, match="null"):
            gt.load(f"{tmp_path}/a\0b")


def rewrite(folder, change):
    path = folder / "result.json"
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def rewrite_arrays(folder, change):
    path = folder / "result.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    change(arrays)
    with path.open("wb") as stream:
        np.savez(stream, **arrays)


def refused(folder, words=None):
    with pytest.raises(ResultFileInvalid, match=words) as caught:
        gt.load(folder)
    assert "\n" not in str(caught.value)


#: Values that are written for readers only, and can be computed from the rest.
DERIVED = {
    "answered",
    "arrives",
    "as_predicted",
    "errors",
    "gap",
    "orders",
    "plan_horizon",
    "smallest_eigenvalue",
    "within_sampling_error",
}


def places(values, path=()):
    """All keys of nested JSON values, as paths."""
    items = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in items:
        if key in DERIVED or path + (key,) in {("problem", "dim"), ("problem", "rank")}:
            continue
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def spoil(values, path, change):
    *way, last = path
    for key in way:
        values = values[key]
    change(values, last)


class TestDamage:
    @every_result
    def test_every_missing_or_mistyped_value_is_noticed(self, name, tmp_path):
        RESULTS[name]().save(tmp_path)
        text = (tmp_path / "result.json").read_text()
        for path in places(json.loads(text)):
            if path[0] in ("methods", "attempts", "violations", "tokens", "kept") and len(path) < 3:
                continue  # lists may be shorter, and tokens may be absent
            if name.startswith("reachability") and path == ("status",):
                continue  # always the same
            for change in (lambda v, k: v.pop(k), lambda v, k: v.__setitem__(k, {"a": 1})):
                values = json.loads(text)
                spoil(values, path, change)
                if path[0] == "problem" and path[2:3] in (("entries",), ("norms",)):
                    continue  # bounds may be fewer
                (tmp_path / "result.json").write_text(json.dumps(values))
                refused(tmp_path)

    @every_result
    def test_every_missing_or_misshaped_array_is_noticed(self, name, tmp_path):
        RESULTS[name]().save(tmp_path)
        stored = (tmp_path / "result.npz").read_bytes()
        with np.load(tmp_path / "result.npz") as arrays:
            names = list(arrays)
        optional = (
            "nearest.mean",
            "basis",
            "dense.nodes",
            "noise",
            "beta",
            "start.mean",
            "start.weights",
        )
        for key in names:
            (tmp_path / "result.npz").write_bytes(stored)
            rewrite_arrays(tmp_path, lambda a, k=key: a.update({k: a[k][..., None]}))
            refused(tmp_path)
            if not key.endswith(optional):
                (tmp_path / "result.npz").write_bytes(stored)
                rewrite_arrays(tmp_path, lambda a, k=key: a.pop(k))
                refused(tmp_path, "missing")

    @every_result
    def test_numbers_that_are_not_finite_are_noticed(self, name, tmp_path):
        RESULTS[name]().save(tmp_path)
        stored = (tmp_path / "result.npz").read_bytes()
        with np.load(tmp_path / "result.npz") as arrays:
            filled = [key for key in arrays if arrays[key].size]
        for key in filled:
            for value in (np.nan, np.inf):
                (tmp_path / "result.npz").write_bytes(stored)

                def spoil_last(arrays, key=key, value=value):
                    arrays[key][(-1,) * arrays[key].ndim] = value

                rewrite_arrays(tmp_path, spoil_last)
                own = re.escape(key.removeprefix("trajectory."))
                refused(tmp_path, f"`{own}` holds {value} at index")

    def test_an_unknown_status(self, tmp_path):
        for name in ("constant", "tokens", "steering"):
            RESULTS[name]().save(tmp_path)
            for status in ("GREAT", "answered", None, 3):
                rewrite(tmp_path, lambda values, s=status: values.update(status=s))
                refused(tmp_path, f"damaged: `status` is {status!r}; expected one of SUCCESS, ")

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda a: a.update(factors=a["factors"][:, :, :1]), "`factors` has shape"),
            (lambda a: a["times"].__setitem__(1, 0.0), "`times` do not increase"),
            (lambda a: a["times"].__imul__(2.0), "beyond the horizon 1"),
            (lambda a: a["times"].__isub__(0.5), "from -0.5 to 0.5, beyond"),
            (
                lambda a: a.update({k: a[k][:0] for k in ("times", "means", "factors")}),
                "`times` is empty",
            ),
            (lambda a: a.update({"start.factor": np.ones((2, 3))}), "dimension 2 and rank 3"),
            (
                lambda a: a.update(
                    {
                        "start.mean": np.zeros(3),
                        "start.factor": np.eye(3)[:, :2],
                    }
                ),
                "the dimension of the schedule is 2; expected 3",
            ),
        ],
    )
    def test_arrays_that_do_not_fit_each_other(self, change, words, tmp_path):
        RESULTS["layers"]().save(tmp_path)
        rewrite_arrays(tmp_path, change)
        refused(tmp_path, words)

    @pytest.mark.parametrize("name", ["reachability", "steering", "tokens"])
    def test_laws_of_different_dimensions(self, name, tmp_path):
        RESULTS[name]().save(tmp_path)
        law = {"start.mean": np.zeros(3), "start.factor": np.eye(3)}
        rewrite_arrays(tmp_path, lambda arrays: arrays.update(law))
        refused(tmp_path, "the dimension of the .* is .; expected")

    @pytest.mark.parametrize("value", ["nan", "inf", 0.0, -1.0])
    def test_numbers_that_must_be_positive(self, value, tmp_path):
        places = {"blow-up": "blow_up_time", "constant": "horizon", "tokens": "horizon"}
        for name, key in places.items():
            RESULTS[name]().save(tmp_path)
            rewrite(tmp_path, lambda values, k=key: values.update({k: value}))
            refused(tmp_path)

    def test_a_missing_folder(self, tmp_path):
        refused(tmp_path / "nowhere", "no saved result")
        RESULTS["constant"]().save(tmp_path)
        (tmp_path / "result.npz").unlink()
        refused(tmp_path, "no saved result")

    @pytest.mark.parametrize(
        "text",
        ["", "{", "[]", "3", '"text"', "\x00\x01", "{}", "[" * 100_000, '{"format": 1}'],
        ids=["empty", "cut", "list", "number", "text", "binary", "bare", "deep", "no-kind"],
    )
    def test_damaged_json(self, text, tmp_path):
        RESULTS["constant"]().save(tmp_path)
        (tmp_path / "result.json").write_text(text)
        refused(tmp_path)

    def test_other_formats_and_kinds(self, tmp_path):
        RESULTS["constant"]().save(tmp_path)
        rewrite(tmp_path, lambda values: values.update(kind="dream"))
        refused(tmp_path, "unknown kind 'dream'")
        rewrite(tmp_path, lambda values: values.update(kind=["simulation"]))
        refused(tmp_path, "unknown kind")
        rewrite(tmp_path, lambda values: values.update(format=2))
        refused(tmp_path, "format 1")
        (tmp_path / "result.json").write_bytes(b"\xff\xfe\xff")
        refused(tmp_path, "damaged")

    def test_one_kind_in_the_clothes_of_another(self, tmp_path):
        RESULTS["steering"]().save(tmp_path)
        for kind in ("simulation", "reachability", "tokens"):
            rewrite(tmp_path, lambda values, k=kind: values.update(kind=k))
            refused(tmp_path)

    def test_truncated_archives(self, tmp_path):
        RESULTS["function"]().save(tmp_path)
        stored = (tmp_path / "result.npz").read_bytes()
        for size in (0, 1, 100, len(stored) // 2, len(stored) - 1):
            (tmp_path / "result.npz").write_bytes(stored[:size])
            refused(tmp_path, "damaged")

    def test_rubbish_in_place_of_the_archive_is_not_to_be_unpickled(self, tmp_path):
        RESULTS["function"]().save(tmp_path)
        (tmp_path / "result.npz").write_bytes(b"junk")
        refused(tmp_path, "is damaged: result.npz is not an NPZ file.$")

    @settings(max_examples=60)
    @given(where=st.integers(0, 2**32), value=st.integers(0, 255))
    def test_changed_bytes_are_noticed_or_harmless(self, tmp_path_factory, where, value):
        folder = tmp_path_factory.mktemp("bytes")
        result = RESULTS["layers"]()
        result.save(folder)
        stored = bytearray((folder / "result.npz").read_bytes())
        stored[where % len(stored)] = value
        (folder / "result.npz").write_bytes(bytes(stored))
        try:
            again = gt.load(folder)
        except ResultFileInvalid:
            return
        same(result, again)  # a date or a flag of the archive was hit

    def test_an_array_file_in_place_of_the_archive(self, tmp_path):
        RESULTS["constant"]().save(tmp_path)
        with (tmp_path / "result.npz").open("wb") as stream:
            np.save(stream, np.zeros(3))
        refused(tmp_path, "damaged")


class Bomb:
    """Leaves a trace when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


class TestNoPickle:
    def test_pickled_arrays_are_refused_unread(self, tmp_path):
        RESULTS["constant"]().save(tmp_path)
        trace = tmp_path / "trace"
        bomb = np.empty(1, dtype=object)
        bomb[0] = Bomb(trace)
        rewrite_arrays(tmp_path, lambda arrays: arrays.update(means=bomb))
        refused(tmp_path, "damaged")
        assert not trace.exists()

    def test_a_pickle_in_place_of_the_archive(self, tmp_path):
        RESULTS["constant"]().save(tmp_path)
        trace = tmp_path / "trace"
        (tmp_path / "result.npz").write_bytes(pickle.dumps(Bomb(trace)))
        refused(tmp_path, "damaged")
        assert not trace.exists()

    @every_result
    def test_no_result_saves_one(self, name, tmp_path):
        RESULTS[name]().save(tmp_path)
        with zipfile.ZipFile(tmp_path / "result.npz") as archive:
            for entry in archive.namelist():
                with archive.open(entry) as stream:
                    version = np.lib.format.read_magic(stream)
                    assert version == (1, 0)
                    _, _, dtype = np.lib.format.read_array_header_1_0(stream)
                    assert not dtype.hasobject

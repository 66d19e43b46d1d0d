"""Problem files: every mistake gets one line that names the key, and nothing else escapes."""

from __future__ import annotations

import os
import re
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from gtcontrol import errors
from gtcontrol.cli import kinds
from gtcontrol.problem import files, memory
from gtcontrol.problem.expectations import compare
from gtcontrol.problem.messages import describe
from gtcontrol.problem.sources import embedding_like

GAUSSIAN = """
mean = [0.0, 0.0]
covariance = [[1.0, 0.0], [0.0, 1.0]]
"""
STEER = f'kind = "steer"\n[start]{GAUSSIAN}[target]{GAUSSIAN}'
SIMULATE = f'kind = "simulate"\n[start]{GAUSSIAN}[simulate]\nhorizon = 1.0\n'


def parse(text: str) -> kinds.KindDocument:
    return files.parse(text, lambda kind: kinds.load(kind).DOCUMENT)


def prepare(text: str, folder: Path = Path()) -> kinds.Task:
    return kinds.prepare(parse(text), folder / "problem.toml")


def refusal(text: str, folder: Path = Path()) -> str:
    """The message with which a text is refused."""
    with pytest.raises(errors.GtcontrolError) as caught:
        prepare(text, folder)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


def survives(text: str, folder: Path = Path()) -> None:
    """Either the text is a problem, or it is refused in one line."""
    try:
        message = prepare(text, folder).about
    except errors.GtcontrolError as error:
        message = str(error)
    assert message
    assert len(message.splitlines()) == 1


def test_the_smallest_files_are_accepted():
    task = prepare(STEER)
    assert (task.start.dim, task.start.rank, task.controls) == (2, 2, "AVBb")
    assert prepare(SIMULATE + "[parameters]\n").horizon == 1.0
    assert prepare(STEER.replace("steer", "reach")).controls == "AVBb"


def test_whole_numbers_stand_for_numbers_but_not_the_other_way_round():
    assert prepare(STEER + "[steer]\nhorizon = 2\n").table.horizon == 2.0
    assert "`steer.intervals` is 2.0; expected a whole number" in refusal(
        STEER + "[steer]\nintervals = 2.0\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "`kind` is missing"),
        ("kind = 3", "`kind` is 3; expected a string"),
        ('kind = "stear"', 'the string "stear"; did you mean `steer`?'),
        ('kind = "xyz"', "the kinds are `steer`, `track`, `export`, `simulate`"),
        ('kind = "steer"', "`start` is missing; expected a table with the keys `mean`"),
        (STEER + "[steer]\nhorzion = 1.0", "unknown key `steer.horzion`; did you mean `horizon`?"),
        ("horizon = 1.0\n" + STEER, "unknown key `horizon`; did you mean `steer.horizon`?"),
        (STEER.replace("[start]", "[strat]"), "unknown key `strat`; did you mean `start`?"),
        (STEER + "[zzz]\n", "unknown key `zzz`; valid here: `kind`, `title`"),
        (STEER + "[start.extra]", "unknown key `start.extra`"),
        ("start = 3\n" + STEER.replace("[start]", "[x]"), "unknown key `x`"),
        (f'kind = "steer"\nstart = 3\n[target]{GAUSSIAN}', "`start` is 3; expected a table with"),
        (STEER + '[steer]\nhorizon = "long"', '`steer.horizon` is the string "long"; expected a'),
        (STEER + "[steer]\nhorizon = 0.0", "`steer.horizon` is 0.0; expected a number greater"),
        (STEER + "[steer]\nhorizon = inf", "`steer.horizon` is inf; expected a number"),
        (STEER + "[steer]\nhorizon = nan", "`steer.horizon` is nan; expected a number"),
        (STEER + "[steer]\nhorizon = true", "`steer.horizon` is true; expected a number"),
        (STEER + "[steer]\nhorizon = 2020-01-01", "is the date or time 2020-01-01; expected"),
        (STEER + "[steer]\nhorizon = [1.0]", "`steer.horizon` is an array of 1; expected"),
        (STEER + "[steer]\nhorizon = {}", "`steer.horizon` is a table; expected"),
        (STEER + "[steer]\nhorizon = " + "9" * 400, "a whole number of more than 30 digits"),
        (STEER + "[steer]\nstarts = 0", "`steer.starts` is 0; expected a whole number that is"),
        (STEER + "[steer]\nreduce = 1", "`steer.reduce` is 1; expected true or false"),
        (STEER + '[steer]\ncontrols = ""', "`steer.controls`: `controls` is empty"),
        (STEER + '[steer]\ncontrols = "AX"', "holds unknown letter(s) X"),
        (
            STEER + '[steer]\nsolver = "snopt"',
            "`steer.solver` is the string \"snopt\"; expected 'auto'",
        ),
        (STEER + '[steer]\nmethod = "transport"', "did you mean `transport-geodesic`?"),
        (STEER + '[steer]\nmethod = "prescribed-path"', "needs a path, which no file can hold"),
        (
            STEER + '[steer]\ncost = {kind = "energy"}',
            "expected 'control-energy', 'kinetic-energy'",
        ),
        (STEER + "[steer]\ncost = {kinetic = 1.0}", "`steer.cost.kind` is missing"),
        (
            STEER + '[steer]\ncost = {kind = "control-energy", bound = 1.0}',
            '`steer.cost.bound` does not belong to the cost "control-energy"; it has `kinetic`',
        ),
        (
            STEER + '[steer]\ncost = {kind = "control-energy", kinetic = -1}',
            "`steer.cost.kinetic` is -1; expected a number that is at least 0",
        ),
        (STEER + "[steer.bounds]\nentries = {C = 1.0}", "unknown key `steer.bounds.entries.C`"),
        (STEER + "[steer.bounds]\nnorms = {A = 0.0}", "`steer.bounds.norms.A` is 0.0; expected"),
        (STEER + "[steer.bounds]\ntrase = 1.0", "did you mean `trace`?"),
        (STEER + "[tokens]\ncuont = 10", "unknown key `tokens.cuont`; did you mean `count`?"),
        (STEER + "[tokens]\ncount = 3", "`tokens`: `count` must be even for antithetic"),
        (STEER + "[tokens]\ncount = 4", "`tokens`: `count` must exceed 4 for moment matching"),
        (STEER + "[tokens]\ncount = 1000000000000", "`tokens`: drawing 1000000000000 tokens"),
        (STEER + '[expect]\nstatus = "GOOD"', '`expect.status` is the string "GOOD"; expected'),
        (STEER + '[expect]\ncost = "low"', '`expect.cost.value` is the string "low"; expected a f'),
        (STEER + "[expect]\ncost = {value = 1.0, relativ = 1}", "did you mean `relative`?"),
        (STEER + "[expect]\nblow_up_time = 1.0", "unknown key `expect.blow_up_time`"),
        (SIMULATE, "`parameters` and `[[piece]]` are both missing"),
        (SIMULATE + "[parameters]\n[[piece]]\nuntil = 1.0", "are both given; give one of them"),
        (SIMULATE + "[[piece]]\nA = [[1.0]]", "`piece[0].until` is missing"),
        (
            SIMULATE + "[[piece]]\nuntil = 1.0\n[[piece]]\nuntil = 0.5",
            "`piece[1].until` is 0.5; expected a time after 1",
        ),
        (SIMULATE + "[[piece]]\nuntil = 0.5", "`simulate.horizon` is 1, but the last piece ends"),
        ("piece = 3\n" + SIMULATE, "`piece` is 3; expected an array of tables with"),
        (SIMULATE.replace("horizon = 1.0", "") + "[parameters]", "`simulate.horizon` is missing"),
        (SIMULATE + "[parameters]\nA = [[1.0]]", "`parameters`: the parameters disagree about"),
        (SIMULATE + "[parameters]\nB = [[[[1.0]]]]", "`parameters.B` is nested"),
        (SIMULATE + "[parameters]\nV = 1.0", "`parameters.V` is 1.0; expected an array of rows"),
        (
            SIMULATE + "[parameters]\nnoise = [[-1.0, 0.0], [0.0, 1.0]]",
            "`noise` must be positive semidefinite",
        ),
        (
            SIMULATE + "[parameters]\nV = [[[1,0],[0,1]],[[1,0],[0,1]]]\nB = [[1,0],[0,1]]",
            "disagree about the number of heads",
        ),
    ],
)
def test_a_mistake_is_named_in_one_line(text, message):
    assert message in refusal(text)


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ("mean = [0.0, nan]", "`start.mean[1]` is nan; expected a finite number"),
        ("mean = [0.0, -inf]", "`start.mean[1]` is -inf; expected a finite number"),
        ("mean = [0.0, 1e400]", "`start.mean[1]` is inf; expected a finite number"),
        ("mean = []", "`start.mean` is an empty array; expected an array of numbers"),
        ("mean = [[0.0, 0.0]]", "`start.mean` is nested 2 deep; expected an array of numbers"),
        ("mean = 1.0", "`start.mean` is 1.0; expected an array of numbers"),
        ('mean = ["a", 1.0]', '`start.mean[0]` is the string "a"; expected a finite number'),
        ("mean = [true, 1.0]", "`start.mean[0]` is true; expected a finite number"),
        ("mean = [1.0, [2.0]]", "`start.mean[1]` is an array of 1; expected a finite number"),
        ("mean = [0.0, " + "9" * 20 + "]", "`start.mean[1]` is 999"),
        ("mean = [0.0, 0.0, 0.0]", "`covariance` must have shape (3, 3); it has (2, 2)"),
        ("covariance = [[]]", "`start.covariance[0]` is an empty array; expected"),
        ("covariance = [[1.0, 0.0], [0.0]]", "is an array of 1; expected 2 entries, as in the f"),
        ("covariance = [[1.0, 0.0], 3.0]", "`start.covariance[1]` is 3.0; expected an array of 2"),
        ("covariance = [[1.0, 2.0], [0.0, 1.0]]", "`start`: `covariance` must be symmetric"),
        ("covariance = [[1.0, 2.0], [2.0, 1.0]]", "its smallest eigenvalue is -1"),
        ("covariance = [[1.0]]", "must have shape (2, 2); it has (1, 1)"),
        ("rank = 1", "`covariance` has rank 2 at relative tolerance"),
        ("factor = [[1.0], [0.0]]", "`start` has `covariance`, `factor`; give exactly one of"),
        ("generate = {dim = 2, rank = 1, seed = 1}", "`start` has `covariance`, `generate`"),
    ],
)
def test_a_law_that_is_none_is_named_in_one_line(law, message):
    key = law.split(" ", 1)[0]
    lines = [line for line in GAUSSIAN.strip().splitlines() if not line.startswith(f"{key} ")]
    table = "\n".join([*lines, law])
    assert message in refusal(f'kind = "reach"\n[start]\n{table}\n[target]{GAUSSIAN}')


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("mean = [1.0]", "says nothing about the covariance; give exactly one of `covariance`"),
        ("factor = [[1.0]]", "`start.mean` is missing"),
        ("mean = [1.0]\nfactor = [[1.0]]\nrank = 0", "`rank` is 0, but `factor` has 1 column(s)"),
        ("mean = [1.0]\nfactor = [[1.0, 2.0]]", "`factor` has 2 columns in dimension 1"),
        ("generate = {dim = 3, rank = 4, seed = 1}", "`rank` is 4, more than `dim` = 3"),
        ("generate = {dim = 3, rank = 1}", "`start.generate.seed` is missing"),
        ("generate = {dim = 0, rank = 0, seed = 1}", "`start.generate.dim` is 0; expected"),
        ("generate = {dim = 3, rank = 1, seed = 1, spread = 0.5}", "a number that is at least 1"),
        ("mean = [1.0]\ngenerate = {dim = 3, rank = 1, seed = 1}", "does not go with `generate`"),
        ('file = "nothing.npz"', "nothing.npz, which is no file"),
        ('file = "."', "which is no file"),
        ('file = "a\\u0000b"', "which is no file"),
    ],
)
def test_a_law_without_its_parts_is_named_in_one_line(table, message, tmp_path):
    law = "mean = [0.0]\ncovariance = [[1.0]]"
    assert message in refusal(f'kind = "reach"\n[start]\n{table}\n[target]\n{law}', tmp_path)


def test_laws_of_different_dimension_are_refused():
    text = f'kind = "reach"\n[start]{GAUSSIAN}[target]\nmean = [1.0]\ncovariance = [[1.0]]'
    assert "`target` has dimension 1, but `start` has 2" in refusal(text)


def test_what_cannot_fit_is_refused_before_it_is_allocated():
    million = "generate = {dim = 1000000, rank = RANK, seed = 1}"
    simulate = f'kind = "simulate"\n[start]\n{million}\n[parameters]\n[simulate]\nhorizon = 1.0'
    assert "dense parameters of dimension 1000000 would take about 24 TB" in refusal(
        simulate.replace("RANK", "1")
    )
    assert "and rank 900000" in (message := refusal(simulate.replace("RANK", "900000")))
    assert re.search(r"would take about 28.8 TB of memory, but [\d.]+ GB are free", message)


def test_the_memory_that_is_free_is_what_the_system_says():
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < memory.available() <= physical


# -- arrays in archives ------------------------------------------------------------------


def archive_text(name: str = "law.npz") -> str:
    return f'kind = "reach"\n[start]\nfile = "{name}"\n[target]{GAUSSIAN}'


def test_a_law_is_read_from_an_archive_beside_the_file(tmp_path):
    rng = np.random.default_rng(5)
    mean, factor = rng.standard_normal(2), rng.standard_normal((2, 1))
    np.savez(tmp_path / "law.npz", mean=mean, factor=factor)
    start = prepare(archive_text(), tmp_path).start
    assert np.array_equal(start.mean, mean)
    assert np.array_equal(start.factor, factor)
    np.savez_compressed(tmp_path / "law.npz", mean=mean, covariance=factor @ factor.T)
    assert np.allclose(prepare(archive_text(), tmp_path).start.covariance, factor @ factor.T)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"mean": [0.0, 0.0]}, "must hold `mean`, and either `covariance` or `factor`"),
        (
            {"mean": [0.0], "factor": [[1.0]], "covariance": [[1.0]]},
            "holds both `covariance` and `factor`; leave one",
        ),
        ({"factor": [[1.0]]}, "`start.mean` is missing"),
        ({"mean": [0.0], "faktor": [[1.0]]}, "an unknown array `faktor`; did you mean `factor`?"),
        ({"mean": [0.0], "factor": [["a"]]}, "of type <U1; expected real numbers"),
        ({"mean": [0.0], "factor": [[1j]]}, "of type complex128; expected real numbers"),
        ({"mean": [0.0, np.nan], "factor": [[1.0], [2.0]]}, "`mean` holds nan at index (1,)"),
        ({"mean": [0.0], "factor": [1.0]}, "`factor` must have 2 dimension(s)"),
        ({"mean": [0.0], "factor": np.array([[{}]])}, "of type object; expected real numbers"),
    ],
)
def test_a_bad_archive_is_named_in_one_line(arrays, message, tmp_path):
    np.savez(tmp_path / "law.npz", **arrays)
    assert message in refusal(archive_text(), tmp_path)


def test_damaged_archives_are_refused(tmp_path):
    path = tmp_path / "law.npz"
    path.write_bytes(b"PK rubbish")
    assert "which is no NPZ archive" in refusal(archive_text(), tmp_path)
    np.savez(path, mean=np.zeros(300), factor=np.ones((300, 1)))
    whole = path.read_bytes()
    for position in range(30, len(whole), 97):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        survives(archive_text(), tmp_path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mean.npy", b"no array")
        archive.writestr("factor.npy", b"no array")
    assert "which is damaged" in refusal(archive_text(), tmp_path)


def test_an_archive_that_promises_too_much_is_refused_before_allocating(tmp_path):
    header = str({"descr": "<f8", "fortran_order": False, "shape": (10**7, 10**7)})
    raw = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    with zipfile.ZipFile(tmp_path / "law.npz", "w") as archive:
        archive.writestr("mean.npy", raw)
        archive.writestr("factor.npy", raw)
    assert "of shape (10000000, 10000000) would take about" in refusal(archive_text(), tmp_path)


# -- files -------------------------------------------------------------------------------


def file_refusal(path: Path) -> str:
    with pytest.raises(errors.ProblemFileInvalid) as caught:
        kinds.read(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"kind = \n", "is no valid TOML: Invalid value (line 1, column 8)"),
        (b'kind = "steer"\n[start\n', "is no valid TOML: "),
        (b'kind = "steer"\nkind = "steer"\n', "(line 2, column"),
        (b"\xff\xfe\x00k", "is no text in UTF-8 (byte 0xff on line 1)"),
        (b"kind = 1\n# \xe9t\xe9", "is no text in UTF-8 (byte 0xe9 on line 2)"),
        (b'kind = "\x00"', "holds null bytes"),
        (bytes(range(256)) * 100, "is no text in UTF-8"),
        (b"a = " + b"[" * 100_000, "nests its arrays or tables too deeply"),
        (b"a" + b".a" * 1_000_000 + b" = 1", "line 1: a key of more than 32 parts"),
        (b'kind = "steer"\n[' + b'"a" . ' * 500_000 + b"a]", "line 2: a key of more than 32 parts"),
        (b"a = " + b"9" * 5000, "is no valid TOML: Exceeds the limit"),
        (b"", "`kind` is missing"),
        (b"x" * 6_000_000, "has 6.0 MB; problem files may have at most 5 MB"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(raw, message, tmp_path):
    path = tmp_path / "problem.toml"
    path.write_bytes(raw)
    assert message in file_refusal(path)


def test_what_is_no_file_is_refused(tmp_path):
    assert "is a folder; expected a problem file" in file_refusal(tmp_path)
    (tmp_path / "there.toml").write_text(STEER)
    assert "does not exist; did you mean" in file_refusal(tmp_path / "their.toml")
    assert file_refusal(tmp_path / "zz").endswith("does not exist.")
    assert "cannot be read" in file_refusal(tmp_path / ("n" * 5000))
    assert "cannot be read" in file_refusal(tmp_path / "there.toml" / "below.toml")
    os.mkfifo(tmp_path / "pipe")
    assert "is no regular file" in file_refusal(tmp_path / "pipe")


def test_a_file_without_permission_is_refused(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(STEER)
    path.chmod(0)
    user = os.geteuid()
    if user == 0:  # the superuser may read every file
        os.seteuid(65534)
    try:
        assert "cannot be read: Permission denied." in file_refusal(path)
    finally:
        os.seteuid(user)


def test_a_byte_order_mark_is_no_obstacle(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(STEER, encoding="utf-8-sig")
    assert kinds.read(path).kind == "steer"


def test_long_matrices_do_not_look_like_long_keys():
    row = ", ".join(["1.5"] * 200)
    assert "must have shape" in refusal(STEER.replace("[0.0, 0.0]", f"[{row}]", 1))


# -- meaning -----------------------------------------------------------------------------


def test_templates_are_valid_and_name_every_key():
    for kind in kinds.KINDS:
        template = kinds.load(kind).TEMPLATE
        document = parse(template)
        assert kinds.prepare(document, Path("x.toml")).about.startswith(kind)
        for key, field in type(document).model_fields.items():
            assert re.search(rf"^(# )?\[*{key}\b", template, re.MULTILINE), (kind, key, field)


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_what_a_template_comments_out_is_valid_too(kind):
    template = kinds.load(kind).TEMPLATE
    options = re.findall(r"^# (\w+ = .*)$", template, re.MULTILINE)
    assert options
    for option in options:
        tomllib.loads(option)


def test_pieces_follow_each_other():
    pieces = "[[piece]]\nuntil = 0.5\nb = [1.0, 0.0]\n[[piece]]\nuntil = 2.0\nb = [0.0, 1.0]\n"
    task = prepare(SIMULATE.replace("horizon = 1.0", "") + pieces)
    assert task.horizon == 2.0
    final = task.run(lambda fraction, text: None).final
    assert np.allclose(final.mean, [0.5, 1.5], rtol=0, atol=1e-12)


def test_bounds_and_costs_arrive_where_they_should():
    text = STEER + (
        '[steer]\ncost = {kind = "minimum-time", bound = 2.0, norm = "frobenius"}\n'
        "[steer.bounds]\nentries = {A = 1.0, b = 2.0}\nnorms = {V = 3.0}\ntrace = 4.0\n"
        "largest_eigenvalue = 5.0\n"
    )
    task = prepare(text)
    assert (task.cost.bound, task.cost.norm) == (2.0, "frobenius")
    assert dict(task.bounds.entries) == {"A": 1.0, "b": 2.0}
    assert dict(task.bounds.norms) == {"V": 3.0}
    assert (task.bounds.trace, task.bounds.largest_eigenvalue) == (4.0, 5.0)


def test_the_random_law_is_the_documented_one():
    law = embedding_like(dim=7, rank=3, seed=11, spread=9.0, mean_scale=2.0, scale=4.0)
    rng = np.random.default_rng(11)
    G = rng.standard_normal((7, 3))
    z = rng.standard_normal(7)
    # Gram–Schmidt is the QR decomposition with positive diagonal.
    U = np.empty((7, 3))
    for j in range(3):
        v = G[:, j] - U[:, :j] @ (U[:, :j].T @ G[:, j])
        U[:, j] = v / np.linalg.norm(v)
    assert np.allclose(law.factor, U * np.sqrt([4.0, 4 / 3, 4 / 9]), rtol=1e-12, atol=1e-14)
    assert np.allclose(law.mean, 2 * z / np.linalg.norm(z), rtol=1e-14)
    assert law.eigenvalues[0] / law.eigenvalues[-1] == pytest.approx(9.0, rel=1e-12)
    assert embedding_like(5, 0, 1).rank == 0
    assert embedding_like(5, 1, 1).eigenvalues == pytest.approx([1.0])


def test_expectations_are_held_against_what_came():
    expect = (
        kinds.load("steer")
        .DOCUMENT.model_fields["expect"]
        .default.model_copy(
            update=dict(
                parse(
                    STEER + '[expect]\nstatus = "SUCCESS"\ncost = {value = 2.0, absolute = 0.1}\n'
                    "cost_at_most = 3.0\nlower_bound = 1.0\ngap_at_most = 0.5\n"
                    "smallest_eigenvalue_at_least = 0.1\ntokens_within_sampling_error = true\n"
                ).expect
            )
        )
    )
    observed = {
        "status": "SUCCESS",
        "cost": 2.09,
        "lower_bound": 1.00001,
        "gap": 0.6,
        "smallest_eigenvalue": 0.05,
        "tokens_within_sampling_error": None,
    }
    findings = {f.key: f for f in compare(expect, observed)}
    assert {key for key, f in findings.items() if f.met} == {"status", "cost", "cost_at_most"}
    assert str(findings["gap_at_most"]) == "gap_at_most: expected at most 0.5, came 0.6"
    assert str(findings["lower_bound"]) == "lower_bound: expected 1 within 1e-06, came 1.00001"
    assert "came none" in str(findings["tokens_within_sampling_error"])


def test_expected_arrays_compare_shape_and_size():
    task = prepare(
        SIMULATE + "[parameters]\n[expect]\nfinal_mean = [0.0, 1.0]\n"
        "final_covariance = {value = [[1.0]], absolute = 10.0}\n"
    )
    findings = {f.key: f for f in task.findings(task.run(lambda fraction, text: None))}
    assert "came a difference of 1" in str(findings["final_mean"])
    assert "came shape (2, 2)" in str(findings["final_covariance"])
    assert not any(f.met for f in findings.values())


def test_values_are_described_in_a_few_words():
    assert describe("a" * 1000) == f'the string "{"a" * 40}..."'
    assert describe("a\nb\x1b") == 'the string "a\\x0ab\\x1b"'
    assert describe(10**5000) == "a whole number of more than 30 digits"


# -- anything at all ---------------------------------------------------------------------

KEYS = sorted(
    set(re.findall(r"\w+", " ".join(kinds.load(k).TEMPLATE for k in kinds.KINDS))) | {"x", ""}
)
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-3, 5),
    st.sampled_from([10**6, 10**12, -(2**80), 10**400]),
    st.floats(),
    st.sampled_from(["steer", "AVBb", "SUCCESS", "control-energy", "x.npz", "..", "\0", "é\n"]),
    st.text(max_size=5),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=12,
)


def as_toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:d}" if abs(value) < 10**300 else "1" + "0" * 400
    if isinstance(value, float):
        return {"inf": "inf", "-inf": "-inf", "nan": "nan"}.get(str(value), repr(value))
    if isinstance(value, str):
        return (
            '"' + "".join(f"\\U{ord(c):08x}" for c in value if not 0xD800 <= ord(c) < 0xE000) + '"'
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    assert isinstance(value, dict)
    return "{" + ", ".join(f'"{k}" = {as_toml(v)}' for k, v in value.items()) + "}"


@given(st.sampled_from(kinds.KINDS), st.data())
@settings(max_examples=300, deadline=None)
def test_a_template_with_one_value_replaced_is_a_problem_or_refused(kind, data):
    lines = kinds.load(kind).TEMPLATE.splitlines()
    at = data.draw(st.sampled_from([i for i, x in enumerate(lines) if re.match(r"(# )?\w+ = ", x)]))
    key = data.draw(st.sampled_from([lines[at].removeprefix("# ").split(" = ")[0], *KEYS[1:]]))
    lines[at] = f"{key} = {as_toml(data.draw(VALUES))}"
    survives("\n".join(lines))


@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6), st.sampled_from(kinds.KINDS))
@settings(max_examples=200, deadline=None)
def test_any_document_is_a_problem_or_refused(document, kind):
    document["kind"] = kind
    survives("\n".join(f'"{k}" = {as_toml(v)}' for k, v in document.items()))


@given(st.sampled_from(kinds.KINDS), st.integers(0, 3000), st.integers(0, 40), st.text(max_size=9))
@settings(max_examples=200, deadline=None)
@example("steer", 0, 0, "\ufeff")
def test_a_damaged_text_is_a_problem_or_refused(kind, position, length, inserted):
    template = kinds.load(kind).TEMPLATE
    survives(template[:position] + inserted + template[position + length :])


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(tmp_path_factory, raw):
    path = tmp_path_factory.getbasetemp() / "bytes.toml"
    path.write_bytes(raw)
    with pytest.raises(errors.ProblemFileInvalid):
        kinds.read(path)

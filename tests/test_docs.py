"""What the documentation says is true: code runs, tables are complete, links lead somewhere."""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import pkgutil
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import gtcontrol as gt
from gtcontrol import errors
from gtcontrol.cli import group, kinds
from gtcontrol.cli.app import app
from gtcontrol.problem import zoo
from gtcontrol.problem.schema import Near, NearArray
from tests import real_models

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

#: Pages whose code runs models, most of them the small one that comes in a package.
WITH_MODELS = {"docs/how-to/inspect.md", "docs/how-to/pretrained.md", "docs/theory/layers.md"}

PAGES = [ROOT / "README.md", *sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


# -- fenced blocks ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A fenced block, and the language of its opening fence."""

    language: str
    line: int
    text: str
    follows: bool  # whether nothing but blank lines stands between it and the block before


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    opened: tuple[str, str, int] | None = None
    inside: list[str] = []
    adjacent = False
    for number, line in enumerate(text_of(page).splitlines(), 1):
        fence = re.match(r"^(`{3,}|:{3,})(.*)$", line)
        if opened is None and fence:
            opened, inside = (fence[1], fence[2].strip(), number), []
        elif opened is not None and line == opened[0]:
            found.append(Block(opened[1], opened[2], "\n".join(inside) + "\n", adjacent))
            opened, adjacent = None, True
        elif opened is not None:
            inside.append(line)
        elif line.strip():
            adjacent = False
    assert opened is None, f"{name_of(page)}:{opened[2]}: the block is never closed"
    return found


def with_language(language: str) -> list[Any]:
    return [
        pytest.param(page, id=name_of(page))
        for page in PAGES
        if any(b.language == language for b in blocks(page))
    ]


# -- code ------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", with_language("python"))
def test_code_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    """Blocks of a page share one namespace; a ``text`` block right below is what is printed."""
    if name_of(page) in WITH_MODELS:
        real_models.require()
        real_models.source(real_models.RXNMAPPER)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    printed, where = None, ""
    for block in blocks(page):
        if block.language == "python":
            if printed is not None:
                assert printed == "", f"{where} prints what the page does not show"
            where = f"{name_of(page)}:{block.line}"
            with contextlib.redirect_stdout(io.StringIO()) as out:
                # Blank lines put the line numbers of the page into tracebacks.
                exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
            printed = out.getvalue()
        elif block.language == "text" and block.follows and printed is not None:
            assert printed == block.text, where
            printed = None
    assert not printed, f"{where} prints what the page does not show"


@pytest.mark.parametrize("page", with_language("toml"))
def test_problem_files_in_the_docs_are_valid(page, tmp_path):
    for i, block in enumerate(b for b in blocks(page) if b.language == "toml"):
        if "kind" not in tomllib.loads(block.text):
            continue  # a part of a file, which the page says
        path = tmp_path / f"problem-{i}.toml"
        path.write_text(block.text, encoding="utf-8")
        task = kinds.prepare(kinds.read(path), path)
        assert task.about, block.line


@pytest.mark.parametrize("page", with_language("sh"))
def test_commands_in_the_docs_exist(page):
    main = typer.main.get_command(app)
    for block in (b for b in blocks(page) if b.language == "sh"):
        for line in re.split(r"\n|&&", block.text):
            words = shlex.split(line, comments=True)
            if not words or Path(words[0]).name != "gtcontrol":
                continue
            command = main.commands[words[1]]
            known = {opt for p in command.params for opt in p.opts} | {"--help"}
            used = {w for w in words[2:] if w.startswith("-")}
            assert used <= known, f"{name_of(page)}:{block.line}: {line}"
            given = [w for w in words[2:] if "/" not in w and not w.startswith("-")]
            if words[1] in ("run", "show", "check") and given and "." not in given[0]:
                assert given[0] in zoo.names(), f"{name_of(page)}:{block.line}: {line}"


def test_examples_of_docstrings(capsys):
    attempted, failed = 0, []
    for info in pkgutil.walk_packages(gt.__path__, "gtcontrol."):
        if info.name.endswith("__main__"):  # importing it runs the command line
            continue
        result = doctest.testmod(importlib.import_module(info.name))
        attempted += result.attempted
        failed += [info.name] * (result.failed > 0)
    assert not failed, capsys.readouterr().out
    assert attempted > 20


def test_the_main_docstrings_have_examples():
    finder = doctest.DocTestFinder(recurse=False)
    for name in ("Gaussian", "reachable", "simulate", "steer"):
        found = finder.find(getattr(gt, name), name)
        assert any(test.examples for test in found), name


# -- links -----------------------------------------------------------------------------------


def links(page: Path) -> Iterator[str]:
    prose = re.sub(r"(?ms)^```.*?^```$", "", text_of(page))
    yield from re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose))


def anchors(page: Path) -> set[str]:
    """Anchors of the headings, as GitHub and MyST make them."""
    prose = re.sub(r"(?ms)^```.*?^```$", "", text_of(page))
    titles = re.findall(r"(?m)^#+ (.+)$", prose)
    return {re.sub(r"[^\w\- ]", "", t.lower()).strip().replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", [pytest.param(p, id=name_of(p)) for p in PAGES])
def test_links_lead_to_files_of_this_repository(page):
    for link in links(page):
        if link.startswith("https://"):
            continue
        target, _, anchor = link.partition("#")
        other = (page.parent / target).resolve() if target else page
        assert other.is_relative_to(ROOT), link
        assert other.is_file(), f"{name_of(page)}: {link}"
        if anchor:
            assert anchor in anchors(other), f"{name_of(page)}: {link}"


def test_every_page_is_in_the_table_of_contents():
    listed = set()
    for page in DOCS.rglob("*.md"):
        for block in blocks(page):
            if block.language == "{toctree}":
                entries = [e for e in block.text.split() if not e.startswith(":")]
                listed |= {(page.parent / f"{entry}.md").resolve() for entry in entries}
    pages = {p.resolve() for p in PAGES if p.is_relative_to(DOCS) and p.name != "index.md"}
    assert listed >= pages


def test_pictures_are_small_used_and_drawn_by_the_script():
    pictures = {p.name for p in (DOCS / "figures").iterdir()}
    used = {m for page in PAGES for m in re.findall(r"figures/([\w\-]+\.png)", text_of(page))}
    assert used == pictures
    script = text_of(DOCS / "draw_figures.py")
    assert set(re.findall(r"\"([\w\-]+)\.png\"", script)) == {n[:-4] for n in pictures}
    for name in pictures:
        assert (DOCS / "figures" / name).stat().st_size < 150_000


# -- tables ----------------------------------------------------------------------------------


def rows(page: Path, heading: str) -> list[list[str]]:
    """Rows of the first table below a heading, cell by cell, without the header."""
    _, found, rest = text_of(page).partition(f"\n{heading}\n")
    assert found, f"{name_of(page)} has no heading {heading!r}"
    table = re.search(r"(?m)^\|.*\n\|[-| :]+\n((?:\|.*\n)+)", rest)
    assert table, f"{name_of(page)} has no table below {heading!r}"
    return [cells(line) for line in table[1].splitlines()]


def key_rows(page: Path, heading: str) -> list[list[str]]:
    """Rows of all tables of keys between a heading and the next one of its level."""
    _, found, rest = text_of(page).partition(f"\n{heading}\n")
    assert found, f"{name_of(page)} has no heading {heading!r}"
    section = re.split(r"(?m)^## ", rest)[0]
    tables = re.findall(r"(?m)^\| key \|.*\n\|[-| :]+\n((?:\|.*\n)+)", section)
    return [cells(line) for table in tables for line in table.splitlines()]


def cells(line: str) -> list[str]:
    return [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]


def code(cell: str) -> str:
    """What stands between the backticks of a cell."""
    found = re.search(r"`([^`]+)`", cell)
    return found[1] if found else ""


def model_of(annotation: Any) -> type[BaseModel] | None:
    """The table that a field holds, if it holds one; expected values count as values."""
    if inspect.isclass(annotation):
        is_table = issubclass(annotation, BaseModel) and annotation not in (Near, NearArray)
        return annotation if is_table else None
    inner = (model_of(a) for a in getattr(annotation, "__args__", ()))
    return next((m for m in inner if m is not None), None)


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys of a schema with their defaults, written as in TOML."""
    for name, field in model.model_fields.items():
        inner = model_of(field.annotation)
        if inner is not None:
            yield from keys(inner, f"{prefix}{name}.")
            continue
        default = field.default
        if default is PydanticUndefined:
            shown = "required"
        elif default is None:
            shown = ""
        elif isinstance(default, bool):
            shown = str(default).lower()
        elif isinstance(default, str):
            shown = f'"{default}"'
        else:
            shown = f"{default:g}" if isinstance(default, float) else str(default)
        yield f"{prefix}{name}", shown


#: Where the keys of each table stand in docs/how-to/problem-files.md.
PROBLEM_FILES = DOCS / "how-to" / "problem-files.md"


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_every_key_of_a_problem_file_is_documented_with_its_default(kind):
    documented: dict[str, str] = {}
    for heading in ("## Every file", "## A Gaussian", f"## {kind}"):
        for key, default, _ in key_rows(PROBLEM_FILES, heading):
            documented[code(key)] = code(default) or default
    expected = dict(keys(kinds.load(kind).DOCUMENT))
    laws = [name for name in ("start", "target") if f"{name}.mean" in expected]
    for key in [k for k in documented if k.startswith("LAW.")]:
        value = documented.pop(key)
        documented |= {key.replace("LAW", law): value for law in laws}
    number = {k: "" if v == "" else f"{float(v):g}" for k, v in documented.items() if is_number(v)}
    assert documented | number == expected


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_commands_options_and_exit_codes_are_documented():
    page = DOCS / "how-to" / "command-line.md"
    main = typer.main.get_command(app)
    documented = {}
    for command, options, _ in rows(page, "## Commands"):
        documented[code(command).split()[1]] = set(re.findall(r"`(--[\w\-]+)", options))
    actual = {
        name: {opt for p in command.params for opt in p.opts if opt.startswith("--")}
        for name, command in main.commands.items()
    }
    assert documented == actual
    codes = {code(cell) for cell, _ in rows(page, "## Exit codes")}
    assert codes == {str(c) for c in (group.ANSWERED, group.UNANSWERED, group.BAD_INPUT)}


def test_statuses_and_errors_are_documented():
    page = DOCS / "how-to" / "results.md"
    endings = {code(name): answered for name, answered, _ in rows(page, "## Endings")}
    assert endings == {s.name: "yes" if s.answered else "no" for s in gt.Status}
    listed = {code(name) for name, _ in rows(page, "## Errors")}
    assert listed == set(errors.__all__)


def test_methods_are_documented():
    from gtcontrol.steering.exact.methods import METHODS

    listed = {code(r[0]).strip('"') for r in rows(DOCS / "how-to" / "steer.md", "## Exact plans")}
    assert listed == set(METHODS)


def test_the_reference_names_everything_public():
    text = text_of(DOCS / "reference.md")
    named = set(re.findall(r"auto(?:class|function|exception):: gtcontrol\.(\w+)$", text, re.M))
    assert named == set(gt.__all__) - {"__version__"}


def defined_tests(path: str) -> set[str]:
    """Names of the test functions of a file, those of classes as Class.test."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            inner = (f for f in node.body if isinstance(f, ast.FunctionDef))
            found |= {f"{node.name}.{f.name}" for f in inner}
    return {name for name in found if name.split(".")[-1].startswith("test")}


def resolve(dotted: str) -> Any:
    """The object at ``gtcontrol.a.b.name`` (without the leading package)."""
    parts = ["gtcontrol", *dotted.split(".")]
    for i in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:i]))
        except ModuleNotFoundError:
            continue
        for part in parts[i:]:
            found = getattr(found, part)
        return found
    raise AssertionError(dotted)


def test_every_function_and_test_of_the_equations_exists():
    page = DOCS / "theory" / "equations.md"
    count = 0
    for table in re.findall(r"(?m)^\|.*\n\|[-| :]+\n((?:\|.*\n)+)", text_of(page)):
        for line in table.splitlines():
            equation, proofs = cells(line)
            named = re.findall(r"`([\w.]+)`", equation)
            assert named, line
            for dotted in named:
                assert callable(resolve(dotted)), dotted
            check_tests(proofs)
            count += 1
    assert count > 30


def check_tests(cell: str) -> None:
    """Every ``file.py::test`` of a cell exists; a bare ``::test`` is of the file before it."""
    named = re.findall(r"`([\w/]*)(?:\.py)?::([\w.]+)`", cell)
    assert named, cell
    file = ""
    for found, test in named:
        file = found or file
        assert test in defined_tests(f"tests/{file}.py"), f"{file}::{test}"


def test_every_finding_names_a_test_that_exists():
    page = DOCS / "theory" / "findings.md"
    sections = re.split(r"(?m)^## ", text_of(page))[1:]
    assert len(sections) >= 6
    for section in sections:
        check_tests(section)


def test_every_problem_of_the_zoo_is_named_in_the_docs():
    everything = "".join(text_of(p) for p in PAGES)
    for name in zoo.names():
        assert f"`{name}`" in everything, name

"""The style of the package: imports point down, one room for each heavy package, no surprises."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

import gtcontrol as gt
from tests.extras import NEED_TORCH, torch_is_expected

PACKAGE = Path(gt.__file__).resolve().parent

#: Rooms from the bottom to the top; a module may import from lower rooms and from its own.
LEVELS = (
    ("errors", "status", "progress", "_interrupt", "_threads"),
    ("_check",),
    ("gaussian", "parameters", "schedule", "feedforward", "mixture", "finite_tokens"),
    (
        "field",
        "attention",
        "finite_attention",
        "moments",
        "arithmetic",
        "riccati_flow",
        "riccati_equations",
    ),
    ("problem",),
    ("results",),
    ("simulation",),
    ("steering", "validation", "certification", "comparison"),
    ("pretrained",),
    ("reporting",),
    ("cli", "__main__"),
)

LEVEL = {room: i for i, rooms in enumerate(LEVELS) for room in rooms}

#: Rooms of one level that may import each other; other rooms of one level may not.
RICCATI = {"arithmetic", "riccati_flow", "riccati_equations"}
TOGETHER = set(LEVELS[0]) | set(LEVELS[2]) | set(LEVELS[-1]) | RICCATI

#: Heavy package -> the rooms that may import it.
OWNERS = {
    "casadi": ("steering.transcription",),
    "cvxpy": ("certification.lmi",),
    "flint": ("arithmetic",),
    "control": ("comparison",),
    "matplotlib": ("reporting",),
    "torch": ("validation.kernels", "pretrained"),
    "transformers": ("pretrained.adapters",),
    "safetensors": ("pretrained",),
    "onnx": ("pretrained.adapters",),
    "onnxruntime": ("pretrained.adapters",),
    "PIL": ("pretrained",),
    "jinja2": ("reporting",),
    "markupsafe": ("reporting",),
    "pydantic": ("problem", "cli"),
    "pydantic_core": ("problem", "cli"),
    "typer": ("cli",),
    "click": ("cli",),
    "rich": ("cli",),
}

#: What the package may import besides the standard library.
LIGHT = {"numpy", "scipy", "threadpoolctl"}

LONGEST_FILE = 400
LONGEST_FUNCTION = 60


@dataclass(frozen=True)
class Import:
    """One imported module, absolute; `lazy` if it is imported inside a function."""

    module: str
    line: int
    lazy: bool
    typing_only: bool


@dataclass(frozen=True, eq=False)
class Source:
    """A module of the package: its name below ``gtcontrol``, and its syntax tree."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def room(self) -> str:
        return self.name.split(".")[0]

    def imports(self) -> Iterator[Import]:
        yield from self._imports(self.tree, lazy=False, typing_only=False)

    def _imports(self, node: ast.AST, *, lazy: bool, typing_only: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(alias.name, child.lineno, lazy, typing_only)
            elif isinstance(child, ast.ImportFrom):
                base = self._base(child)
                for alias in child.names:
                    inner = f"{base}.{alias.name}"
                    module = inner if inner in module_names() else base
                    yield Import(module, child.lineno, lazy, typing_only)
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            guarded = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
            yield from self._imports(child, lazy=lazy or inside, typing_only=typing_only or guarded)

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = ["gtcontrol", *self.name.split(".")]
        if self.path.name != "__init__.py":
            package = package[:-1]
        package = package[: len(package) - (node.level - 1)]
        return ".".join([*package, *([node.module] if node.module else [])])


@cache
def module_names() -> frozenset[str]:
    return frozenset(f"gtcontrol.{name_of(p)}" for p in PACKAGE.rglob("*.py") if name_of(p))


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def sources() -> tuple[Source, ...]:
    """All modules but the top of the package, which names things without importing them."""
    return tuple(
        Source(name_of(path), path, ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != PACKAGE / "__init__.py"
    )


def imports() -> Iterator[tuple[Source, Import]]:
    for source in sources():
        for found in source.imports():
            yield source, found


# -- imports ---------------------------------------------------------------------------------


def allowed(importer: str, imported: str) -> bool:
    """Whether one room may import another."""
    if importer == imported or LEVEL[imported] < LEVEL[importer]:
        return True
    return LEVEL[imported] == LEVEL[importer] and {importer, imported} <= TOGETHER


def test_imports_point_down():
    wrong = []
    for source, found in imports():
        if found.module.startswith("gtcontrol."):
            if not allowed(source.room, found.module.split(".")[1]):
                wrong.append(f"{source.name}:{found.line} imports {found.module}")
        elif found.module == "gtcontrol" and source.room != "cli":  # which prints the version
            wrong.append(f"{source.name}:{found.line} imports gtcontrol")
    assert not wrong


def test_the_rule_refuses_what_it_should():
    assert allowed("steering", "simulation")
    assert not allowed("simulation", "steering")
    assert not allowed("steering", "validation")
    assert not allowed("validation", "steering")
    assert not allowed("gaussian", "problem")
    assert not allowed("results", "reporting")


def test_every_module_has_a_level():
    assert {s.room for s in sources()} == set(LEVEL)


def test_engines_do_not_import_each_other():
    """Except that simulation replays plans, and is held against certificates and tokens.

    Layers of pretrained models are measured by the statistics of token clouds.
    """
    engines = {"simulation", "steering", "validation", "certification", "comparison", "pretrained"}
    pairs = {
        (source.room, found.module.split(".")[1])
        for source, found in imports()
        if source.room in engines and found.module.startswith("gtcontrol.")
    }
    crossing = {(a, b) for a, b in pairs if a != b and b in engines}
    beside = {"steering", "certification", "comparison", "validation"}
    # Exported layers are held against the law of the plan.
    measured = {("pretrained", "validation"), ("pretrained", "simulation")}
    assert crossing - measured == {(engine, "simulation") for engine in beside}


def test_the_calls_upward_are_those_of_results():
    """``importlib`` hides imports from the tests above: it is used in named places only."""
    users = {s.name for s in sources() if "importlib" in ast.dump(s.tree)}
    assert users == {
        "results.base",
        "cli.kinds",
        "cli.kinds.base",
        "reporting.html",
        "validation.kernels",
        "pretrained",
        "pretrained.adapters.packages",
        "pretrained.samples",
    }
    base = next(s for s in sources() if s.name == "results.base")
    named = re.findall(r"gtcontrol\.(\w+)", ast.unparse(base.tree).replace("gtcontrol.load", ""))
    assert set(named) == {"reporting", "pretrained"}  # how it is drawn; layers of torch
    for name in ("reporting.html", "cli.kinds.base"):  # resources, and what is installed
        only = next(s for s in sources() if s.name == name)
        assert "import_module" not in ast.dump(only.tree)


def test_no_module_imports_itself_in_a_circle():
    graph: dict[str, set[str]] = {}
    for source in sources():
        needed = {i.module for i in source.imports() if not i.lazy and not i.typing_only}
        graph[f"gtcontrol.{source.name}"] = {m for m in needed if m in module_names()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"imports form a circle: {' -> '.join(error.args[1])}")


def test_heavy_packages_have_one_room():
    wrong, seen = [], set()
    for source, found in imports():
        package = found.module.split(".")[0]
        if found.typing_only or package not in OWNERS:
            continue
        seen.add(package)
        if not any(f"{source.name}.".startswith(f"{room}.") for room in OWNERS[package]):
            wrong.append(f"{source.name}:{found.line} imports {package}")
    assert not wrong
    assert seen >= {"casadi", "matplotlib", "jinja2", "pydantic", "typer", "rich"}


def test_everything_imported_is_declared_or_standard():
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    declared = {re.split(r"[<>=\[; ]", d)[0] for d in project["project"]["dependencies"]}
    # Parts of declared packages under names of their own.
    declared |= {"pydantic_core", "markupsafe", "flint", "PIL"}
    optional = project["project"]["optional-dependencies"]
    for extra in ("torch", "pretrained"):
        declared |= {re.split(r"[<>=\[; ]", d)[0] for d in optional[extra]}
    # Checked against if it is there, and never needed.
    declared |= {"onnxruntime"}
    used = {found.module.split(".")[0] for _, found in imports()}
    foreign = used - set(sys.stdlib_module_names) - {"gtcontrol"}
    assert foreign <= declared
    # FLINT is imported under its own name, and the solvers of LMIs by cvxpy.
    unseen = {"pydantic_core", "markupsafe", "python-flint", "clarabel", "scs", "pillow"}
    assert declared - unseen <= foreign
    assert foreign <= LIGHT | set(OWNERS)


def test_the_field_knows_no_library():
    field = next(s for s in sources() if s.name == "field")
    assert {i.module for i in field.imports()} <= {"__future__", "collections.abc", "typing"}


# -- code ------------------------------------------------------------------------------------


def test_no_assert_no_print_and_no_error_is_swallowed():
    wrong = [
        f"{source.name}:{node.lineno}"
        for source in sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Assert)
        or (isinstance(node, ast.ExceptHandler) and swallows(node))
        or (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", "") == "print"
            and source.room != "cli"
        )
    ]
    assert not wrong


def swallows(handler: ast.ExceptHandler) -> bool:
    """Whether it catches everything, or does nothing with a broad error, and does not raise."""
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    broad = {getattr(c, "id", "") for c in caught} & {"Exception", "BaseException"}
    return bool(broad) and not any(isinstance(n, ast.Raise) for n in ast.walk(handler))


def test_files_and_functions_are_short():
    wrong = []
    for source in sources():
        lines = source.path.read_text(encoding="utf-8").count("\n")
        if lines > LONGEST_FILE:
            wrong.append(f"{source.name} has {lines} lines")
        wrong += [
            f"{source.name}.{node.name} has {length(node)} lines"
            for node in ast.walk(source.tree)
            if isinstance(node, ast.FunctionDef) and length(node) > LONGEST_FUNCTION
        ]
    assert not wrong


def length(function: ast.FunctionDef) -> int:
    """Lines of the body of a function without its docstring."""
    documented = ast.get_docstring(function) is not None and len(function.body) > 1
    first = function.body[1 if documented else 0]
    return (function.end_lineno or 0) - first.lineno + 1


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Functions and methods, without those inside other functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef | ast.If):
            yield from functions(node)


def test_no_public_function_takes_any_keyword():
    wrong = {
        f"{source.name}.{node.name}"
        for source in sources()
        for node in functions(source.tree)
        if not node.name.startswith("_") and node.args.kwarg is not None
    }
    assert wrong == {"cli.group.main"}  # overrides a method of typer, which has them


def test_everything_public_has_a_docstring():
    wrong = []
    for source in sources():
        classes = [n for n in ast.walk(source.tree) if isinstance(n, ast.ClassDef)]
        for node in (source.tree, *classes, *functions(source.tree)):
            name = getattr(node, "name", "")
            if not name.startswith("_") and not ast.get_docstring(node):
                wrong.append(f"{source.name}.{name}")
    assert not wrong


def test_public_names_are_listed_and_exist():
    wrong = []
    for source in sources():
        if source.room == "__main__":  # importing it runs the command line
            continue
        if source.name in NEED_TORCH and not torch_is_expected():
            continue
        module = importlib.import_module(f"gtcontrol.{source.name}")
        listed = getattr(module, "__all__", [])
        wrong += [
            f"{source.name}.{n}" for n in listed if n.startswith("_") or not hasattr(module, n)
        ]
    assert not wrong


# -- docstrings of the public names ----------------------------------------------------------

#: Lists of endings, and what has no parameters.
LISTS = {"Definiteness", "RiccatiStatus", "Status", "Verdict"}

PUBLIC = sorted(set(gt.__all__) - {"__version__", "GtcontrolError"} - LISTS)

SHAPE = re.compile(r"\((?:[\w./ +,]|, )*\)")


def sections(doc: str) -> dict[str, dict[str, str]]:
    """Sections of a numpydoc docstring: name of an entry -> its type."""
    found: dict[str, dict[str, str]] = {}
    parts = re.split(r"(?m)^(\w[\w ]*)\n-{3,}\n", inspect.cleandoc(doc))
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        entries = {}
        for line in body.splitlines():
            if line and not line.startswith(" "):
                names, _, kind = line.partition(" : ")
                entries |= {name.strip(): kind for name in names.split(",")}
        found[title] = entries
    return found


def documented(name: str) -> dict[str, str]:
    found = sections(inspect.getdoc(getattr(gt, name)) or "")
    return {**found.get("Attributes", {}), **found.get("Parameters", {})}


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_name_every_parameter(name):
    given = inspect.signature(getattr(gt, name)).parameters
    fields = {n for n in given if not n.startswith("_")}
    # A continuous extension is how `at` works, not what a trajectory is about.
    missing = fields - set(documented(name)) - {"interpolant"}
    assert not missing, f"{name}: {sorted(missing)}"


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_give_the_shape_of_every_array(name):
    value: Any = getattr(gt, name)
    described = documented(name)
    for parameter in inspect.signature(value).parameters.values():
        annotation = str(parameter.annotation)
        if not re.search(r"\bArray(Like)?\b", annotation) or "Callable" in annotation:
            continue
        assert SHAPE.search(described[parameter.name]), f"{name}: {parameter.name}"


def test_the_reader_of_docstrings_reads():
    doc = """Move.

    Parameters
    ----------
    A, B : (d, d) arrays
        Two.
    rtol : float

    Returns
    -------
    Law
    """
    read = sections(doc)
    assert read["Parameters"] == {"A": "(d, d) arrays", "B": "(d, d) arrays", "rtol": "float"}
    assert SHAPE.search("(H, d, d) array")
    assert not SHAPE.search("array, optional")

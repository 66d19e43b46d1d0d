"""Importing the package is cheap, and the lazy names are the typed ones."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import gtcontrol as gt

#: Packages that only the module that needs them may load.
HEAVY = ("casadi", "matplotlib", "pydantic", "scipy", "rich", "typer", "jinja2", "numpy")


def loaded(code: str) -> set[str]:
    """Top-level packages that are loaded after running `code` in a fresh interpreter."""
    code += "\nimport sys\nprint(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded("import gtcontrol").intersection(HEAVY)


def test_importing_the_command_line_loads_no_solver_and_no_pictures():
    assert not loaded("import gtcontrol.cli.app").intersection(
        {"casadi", "matplotlib", "pydantic", "scipy", "numpy"}
    )


@pytest.mark.parametrize("kind", ["steer", "simulate", "reach", "design", "track"])
def test_checking_a_file_loads_no_solver_and_no_pictures(kind):
    code = f"from gtcontrol.cli import kinds; kinds.load({kind!r})"
    assert not loaded(code).intersection({"casadi", "matplotlib"})


def typed_names() -> dict[str, str]:
    """Public name -> module, from the block that type checkers read."""
    tree = ast.parse(Path(gt.__file__).read_text(encoding="utf-8"))
    block = next(
        node
        for node in tree.body
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    )
    names = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        assert node.level == 1
        for alias in node.names:
            assert alias.asname == alias.name  # marks a re-export
            if node.module is not None:  # else a public module
                names[alias.name] = node.module
    return names


def test_lazy_names_are_the_typed_ones():
    assert typed_names() == gt._HOMES
    assert set(gt.__all__) == {"__version__", *gt._HOMES}


@pytest.mark.parametrize("name", sorted(gt._HOMES))
def test_each_public_name_is_where_it_should_be(name):
    module = importlib.import_module(f"gtcontrol.{gt._HOMES[name]}")
    assert getattr(gt, name) is getattr(module, name)
    assert name in dir(gt)


def test_public_modules_are_loaded_when_they_are_used():
    heavy = {"torch", "transformers", "onnx", "safetensors", "PIL"}
    assert not loaded("import gtcontrol.pretrained as p; p.Stack").intersection(heavy)
    assert gt.pretrained is importlib.import_module("gtcontrol.pretrained")
    assert "pretrained" in dir(gt)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'steeer'"):
        gt.steeer

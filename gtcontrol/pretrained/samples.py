"""Real inputs that every installation has: text, a photograph, chemical reactions."""

from __future__ import annotations

import ast
import importlib.resources
import sysconfig
import warnings
from functools import cache
from itertools import product
from pathlib import Path

from ..errors import ModelFileInvalid

__all__ = ["sample_photograph", "sample_reactions", "sample_text"]

#: Modules of the standard library with long docstrings.
_MODULES = (
    "argparse",
    "_pydecimal",
    "decimal",
    "difflib",
    "doctest",
    "email/message",
    "fractions",
    "functools",
    "gettext",
    "heapq",
    "imaplib",
    "inspect",
    "ipaddress",
    "logging/__init__",
    "mailbox",
    "nntplib",
    "optparse",
    "pickletools",
    "random",
    "shutil",
    "smtplib",
    "statistics",
    "string",
    "subprocess",
    "tarfile",
    "textwrap",
    "threading",
    "turtle",
    "typing",
    "unittest/case",
    "unittest/mock",
    "urllib/request",
    "zipfile",
)


@cache
def sample_text() -> str:
    """Return docstrings of Python's standard library: English with some code."""
    root = Path(sysconfig.get_path("stdlib"))
    found: list[str] = []
    for name in _MODULES:
        path = root / f"{name}.py"
        if not path.is_file():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old escape sequences
            tree = ast.parse(path.read_text(encoding="utf-8"))
        places = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        docs = (ast.get_docstring(n) for n in ast.walk(tree) if isinstance(n, places))
        found.extend(doc for doc in docs if doc is not None and len(doc) > 80)
    if not found:
        raise ModelFileInvalid(
            f"the sources of Python's standard library are not in {root}; give a text as `data`."
        )
    return "\n\n".join(found)


def sample_photograph() -> Path:
    """Return the photograph among the sample data of Matplotlib."""
    folder = importlib.resources.files("matplotlib") / "mpl-data" / "sample_data"
    path = Path(str(folder / "grace_hopper.jpg"))
    if not path.is_file():
        raise ModelFileInvalid(f"there is no photograph {path}; give images as `data`.")
    return path


def sample_reactions() -> str:
    """Return esterifications and amidations as reaction SMILES, one on a line."""
    acids = (
        "C", "CC", "CCC", "CC(C)", "CC(C)C", "C1CC1", "C1CCCCC1", "c1ccccc1", "Cc1ccc(cc1)",
        "COc1ccc(cc1)", "Clc1ccc(cc1)", "Fc1ccc(cc1)", "Brc1cccc(c1)", "c1ccc(cc1)C", "c1ccoc1",
        "c1ccsc1", "c1ccncc1", "N#Cc1ccc(cc1)", "FC(F)(F)", "C=C", "CC=C", "O=C(OC)CC",
    )  # fmt: skip
    alcohols = (
        "C", "CC", "CCC", "C(C)C", "C(C)(C)C", "CC(C)C", "CCCC", "C1CCCC1", "C1CCCCC1",
        "Cc1ccccc1", "CCc1ccccc1", "CC=C", "CC#C", "CCOC", "CCCl", "CC(F)(F)F", "c1ccccc1",
        "c1ccc(C)cc1", "c1ccc(Cl)cc1", "c1ccc(OC)cc1",
    )  # fmt: skip
    lines = []
    for (i, acid), (j, tail) in product(enumerate(acids), enumerate(alcohols)):
        bare = f"{acid}C(=O)"
        kind, catalyst = ("O", "[H+]") if (i + j) % 2 else ("N", "ClCCl")
        lines.append(f"{bare}O.{kind}{tail}.{catalyst}>>{bare}{kind}{tail}")
    return "\n".join(lines)

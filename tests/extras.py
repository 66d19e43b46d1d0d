"""Optional packages: tests of what needs them are skipped where they are missing, but not in CI."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

#: Modules of the package that import torch when they are imported.
NEED_TORCH = {"pretrained.export.module"}


def torch_is_expected() -> bool:
    """Whether torch is installed, or must be."""
    return find_spec("torch") is not None or bool(os.environ.get("CI"))


needs_torch = pytest.mark.skipif(
    not torch_is_expected(), reason="torch is not installed (extra `torch`)"
)

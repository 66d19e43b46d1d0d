"""Packages that are no dependencies: tests without them are skipped, except under CI."""

from __future__ import annotations

import os
from importlib import metadata

import pytest


def installed(package: str) -> bool:
    """Whether a distribution is installed, without importing it."""
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def needs(*packages: str):
    """Mark tests that need packages: skipped without them, but run, and so failed, under CI."""
    missing = [name for name in packages if not installed(name)]
    skip = bool(missing) and not os.environ.get("CI")
    return pytest.mark.skipif(skip, reason=f"not installed: {', '.join(missing)}")

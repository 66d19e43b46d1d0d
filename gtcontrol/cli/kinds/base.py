"""What every kind of problem file offers to the command line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...problem.expectations import Expect, Finding, compare
from ...problem.schema import Document
from ...progress import Progress
from ...results.base import Result

__all__ = ["KindDocument", "Source", "Task", "lacking"]


@dataclass(frozen=True)
class Source:
    """Where a problem comes from: its name, and the folder that relative paths start from."""

    name: str
    folder: Path


def lacking(extra: str, *packages: str) -> str:
    """Say which of the packages of an extra are not installed; empty if all are."""
    missing = [name for name in packages if find_spec(name) is None]
    if not missing:
        return ""
    are = "is" if len(missing) == 1 else "are"
    return (
        f"running it needs {' and '.join(missing)}, which {are} not installed: "
        f"`pip install 'gtcontrol[{extra}]'`."
    )


class Task(ABC):
    """A problem that is ready to run: every value is built and checked."""

    #: What is expected of the result.
    expect: Expect

    @property
    @abstractmethod
    def about(self) -> str:
        """The problem in a few words: kind, dimension, rank."""

    @property
    def lacks(self) -> str:
        """What is not installed and running needs, with the remedy; empty if nothing is."""
        return ""

    @abstractmethod
    def run(self, progress: Progress) -> Result:
        """Answer the question; an interrupted run returns the best result so far."""

    @abstractmethod
    def observe(self, result: Any) -> Mapping[str, Any]:
        """Values of a result by the names that ``[expect]`` uses."""

    def findings(self, result: Result) -> list[Finding]:
        """Hold what the file expects against the result."""
        return compare(self.expect, self.observe(result))


class KindDocument(Document):
    """Schema of the files of one kind, and what they mean."""

    @abstractmethod
    def prepare(self, source: Source) -> Task:
        """Build and check all values; raises GtcontrolError, one line."""

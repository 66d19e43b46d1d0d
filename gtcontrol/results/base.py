"""What every result offers: a summary, pictures, a report, and a place on disk."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from .plain import Arrays
from .writing import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Arrays", "Result", "exporting", "reporting"]


class Result(ABC):
    """Base class of all results; each holds the problem that it answers."""

    #: Name of the kind of result in saved files.
    kind: ClassVar[str]

    @abstractmethod
    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Return what has to be saved: plain values for JSON, and named arrays."""

    @classmethod
    @abstractmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> Result:
        """Restore a result from what :meth:`pack` returned."""

    @property
    @abstractmethod
    def answered(self) -> bool:
        """Whether the question was answered."""

    def summary(self) -> str:
        """Return the result as a few lines of text."""
        return str(reporting().text.summary(self))

    def plot(self) -> dict[str, Figure]:
        """Return the pictures of the result: Matplotlib figures by name."""
        figures: dict[str, Figure] = reporting().figures.draw(self)
        return figures

    def report(self, path: str | PathLike[str]) -> Path:
        """Write one self-contained HTML page to `path` and return the path."""
        return Path(reporting().html.write(self, path))

    def files(self) -> dict[str, bytes]:
        """Content of further files, by name, that :meth:`save` writes; most results have none."""
        return {}

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write ``result.json`` and ``result.npz`` into `directory`; see :func:`gtcontrol.load`.

        The folder may not exist yet, may be empty, or may hold an earlier result, which is
        replaced; one that holds other files is refused.
        """
        return save(self, directory)


def reporting() -> Any:
    """The room of reports: the one upward call, so that no result depends on how it is drawn."""
    for name in ("text", "figures", "html"):
        importlib.import_module(f"gtcontrol.reporting.{name}")
    return importlib.import_module("gtcontrol.reporting")


def exporting() -> Any:
    """The room that makes layers of torch: the other upward call, as torch is optional."""
    return importlib.import_module("gtcontrol.pretrained.export.run")

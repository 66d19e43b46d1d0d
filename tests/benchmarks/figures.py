"""Figures: what was measured, beside the target and whether it is met; and plain tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Figure:
    """One line of the result."""

    name: str
    measured: str
    target: str
    met: bool

    def line(self) -> str:
        """Text of the figure; ends with the target and 'met' or 'NOT MET'."""
        verdict = "met" if self.met else "NOT MET"
        return f"  {self.name:<52} {self.measured:<34} target {self.target}: {verdict}"


@dataclass(frozen=True)
class Timed:
    """Seconds of a call: wall clock, and processor time of this process."""

    wall: float
    processor: float

    def text(self) -> str:
        """Both times."""
        return f"{self.wall:.3g} s wall, {self.processor:.3g} s cpu"


def timed(call: Callable[[], T]) -> tuple[T, Timed]:
    """Result of a call with its times."""
    wall, processor = time.perf_counter(), time.process_time()
    made = call()
    return made, Timed(time.perf_counter() - wall, time.process_time() - processor)


def share(count: int, total: int) -> str:
    """A count with its percentage."""
    return f"{count} of {total} ({100 * count / max(total, 1):.1f} %)"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned to the right."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "    " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )

"""How much memory a computation may take, so that what cannot fit is refused first."""

from __future__ import annotations

import math
import os
from pathlib import Path

from ..errors import TooLarge

__all__ = ["available", "require"]

#: Assumed where the system does not say how much memory it has.
UNKNOWN = 8 * 2**30

#: Share of the free memory that one computation may plan to use.
SHARE = 0.5

#: Bytes of one float64 number.
FLOAT = 8


def available() -> int:
    """Bytes of memory that are free for this process: the least of what the system reports."""
    return min([*_kernel(), *_control_group()], default=UNKNOWN)


def require(what: str, numbers: float, advice: str = "reduce the dimension or the rank") -> None:
    """Refuse a computation that would hold too many float64 numbers at the same time.

    Parameters
    ----------
    what : str
        What would be allocated, for the message.
    numbers : float
        How many numbers of 8 bytes.
    advice : str
        What to do about it, for the message.

    Raises
    ------
    TooLarge
        If they would take more than half of the memory that is free.
    """
    needed, free = FLOAT * numbers, available()
    if needed > SHARE * free:
        raise TooLarge(
            f"{what} would take about {_human(needed)} of memory, but {_human(free)} are free; "
            f"{advice}."
        )


def _kernel() -> list[int]:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        line = next(x for x in text.splitlines() if x.startswith("MemAvailable:"))
        return [int(line.split()[1]) * 1024]
    except (OSError, StopIteration, ValueError, IndexError):
        pass  # not Linux: ask for the physical memory instead
    try:
        return [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):
        return []


def _control_group() -> list[int]:
    root = Path("/sys/fs/cgroup")
    try:
        limit = (root / "memory.max").read_text(encoding="ascii").strip()
        used = (root / "memory.current").read_text(encoding="ascii").strip()
        return [] if limit == "max" else [max(int(limit) - int(used), 0)]
    except (OSError, ValueError):
        return []


def _human(size: float) -> str:
    units = ("bytes", "kB", "MB", "GB", "TB")
    step = min(int(math.log10(max(size, 1)) // 3), len(units) - 1)
    return f"{size / 1000**step:.3g} {units[step]}"

"""How long computations tell that they are alive."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "silent"]

#: ``progress(fraction, text)``: the part done in [0, 1], and what is being done.
Progress = Callable[[float, str], None]


def silent(fraction: float, text: str) -> None:
    """Report nothing: the default."""

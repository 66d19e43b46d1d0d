"""One BLAS thread for work on small matrices.

A simulation or a plan is a long sequence of products of small matrices.  More than one
thread per product gains nothing there, and on a busy machine it costs a factor of ten or
more, as the threads wait for each other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

__all__ = ["single_threaded"]

P = ParamSpec("P")
T = TypeVar("T")


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def single_threaded(function: Callable[P, T]) -> Callable[P, T]:
    """Run `function` with one BLAS thread, and restore the setting afterwards."""

    @functools.wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited

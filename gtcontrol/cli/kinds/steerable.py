"""What is refused before a plan is made, with advice that suits a problem file."""

from __future__ import annotations

from ...errors import RankMismatch, Unreachable
from ...gaussian import Gaussian
from ...problem.messages import describe, fail, listed, nearest
from ...steering.exact.construct import METHODS
from ...steering.exact.reachability import reachable, require_reachable

__all__ = ["check_method", "check_reachable"]

#: Advice of the library that no key of a file can follow.
_PYTHON = ("`target.truncate(", "`reachable(")


def check_reachable(start: Gaussian, target: Gaussian, controls: str) -> None:
    """Refuse what cannot be reached.

    Raises
    ------
    RankMismatch, Unreachable
        With the broken condition, and how far off the nearest target in reach is.
    """
    try:
        require_reachable(start, target, controls)
    except (RankMismatch, Unreachable) as error:
        if not any(call in str(error) for call in _PYTHON):
            raise
        answer = reachable(start, target, controls)
        equal = ""
        if isinstance(error, RankMismatch):
            equal = (
                "Give both laws the same rank (`factor` with as many columns, or `generate` with "
                "the same `rank`). "
            )
        near = "The nearest target in reach" if answer.attained else "A target in reach close by"
        raise type(error)(
            f"{answer.reason} {equal}{near}, at Wasserstein distance {answer.distance:.3g}, is "
            'what a file of kind = "reach" with the same laws finds.'
        ) from None


def check_method(method: str) -> None:
    """Refuse methods that are unknown, or that no file can state."""
    where, names = "steer.method", [m for m in METHODS if m != "prescribed-path"]
    if method == "prescribed-path":
        fail(where, "is prescribed-path, which needs a path, which no file can hold.")
    if method != "optimal" and method not in names:
        close = nearest(method, ["optimal", *names])
        hint = f"did you mean `{close}`?" if close else f"expected `optimal`, {listed(names)}."
        fail(where, f"is {describe(method)}; {hint}")

"""How many tokens attend to each other, where the mean field would have infinitely many."""

from __future__ import annotations

import math
from dataclasses import dataclass

from . import _check
from .errors import InvalidNumber, InvalidShape

__all__ = ["FiniteTokens"]

#: Beyond this number softmax cannot be told from its mean field in double precision.
MOST = 10**15


@dataclass(frozen=True)
class FiniteTokens:
    """A finite number of tokens, for the closure of the moment equations.

    Parameters
    ----------
    count : int
        Number of tokens N >= 2; every token attends to all of them.
    self_key : bool
        Whether a token is among its own keys.  Without it (a masked diagonal) it attends to
        the N - 1 others.

    Raises
    ------
    InvalidNumber, InvalidShape
        If there are fewer than two tokens, or more than double precision can tell from
        infinitely many.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> gt.FiniteTokens(200).others
    199
    """

    count: int
    self_key: bool = True

    def __post_init__(self) -> None:
        count = _counted("count", self.count)
        if not isinstance(self.self_key, bool):
            raise InvalidShape(
                f"`self_key` must be True or False, not {type(self.self_key).__name__}."
            )
        object.__setattr__(self, "count", count)

    @classmethod
    def named(cls, name: str, count: object, *, self_key: bool = True) -> FiniteTokens:
        """Return tokens whose number is the argument `name` of a caller, as messages call it."""
        return cls(_counted(name, count), self_key=self_key)

    @property
    def others(self) -> int:
        """Number of the other tokens, N - 1."""
        return self.count - 1

    @property
    def log_count(self) -> float:
        """Logarithm of N: the variance of the scores must stay below it for the mean field."""
        return math.log(self.count)


def _counted(name: str, count: object) -> int:
    number = _check.integer(name, count, low=2)
    if number > MOST:
        raise InvalidNumber(
            f"`{name}` is {number:.3g}, more than the {MOST:.0e} tokens that double precision "
            "tells from infinitely many; use the mean field, without a number of tokens."
        )
    return number

"""The rungs of certification, from closed forms to semidefinite programs.

A rung is left out when what was found before answers as well as it could.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..problem.definitions import CertificationProblem
from ..results.claims import Claim
from ..status import Verdict
from .conclusion import Conclusion

__all__ = ["RUNGS", "Rung"]

Find = Callable[[CertificationProblem], Iterator[Claim]]


@dataclass(frozen=True)
class Rung:
    """One way of finding claims.

    Attributes
    ----------
    title : str
        What the progress says.
    find : callable
        Claims for a problem, not yet settled.
    serves : callable
        Whether it may add something to what was concluded before.
    """

    title: str
    find: Find
    serves: Callable[[CertificationProblem, Conclusion], bool]


def _always(problem: CertificationProblem, found: Conclusion) -> bool:
    return True


def _open(problem: CertificationProblem, found: Conclusion) -> bool:
    """Whether no proof answers the question whole."""
    whole = (Verdict.BLOWS_UP, Verdict.CONVERGES, Verdict.BOUNDED)
    return not (found.proved and found.verdict in whole)


RUNGS: tuple[Rung, ...] = ()

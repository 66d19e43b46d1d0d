"""The rungs of certification, from closed forms to semidefinite programs.

A rung is left out when what was found before answers as well as it could.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import NotFinite, OutOfScale
from ..problem.definitions import CertificationProblem
from ..progress import Progress
from ..results.claims import Claim
from ..status import Verdict
from .conclusion import Conclusion, conclude, settle
from .search import bracket, captured, growth, limits, local, quadratic_lmi, rays, regimes, riccati
from .theory.heads import merge_heads

__all__ = ["ENCLOSURE", "RUNGS", "Rung", "climb"]

#: An enclosure of the blow-up time of this relative width is good enough.
CLOSE = 1e-11

#: Dimension up to which a growing level tr(W S) is found in a second, for its picture.
DRAWN = 3

_WHOLE = (Verdict.BLOWS_UP, Verdict.CONVERGES, Verdict.UNBOUNDED, Verdict.BOUNDED)

#: Verdicts without blow-up, and those that leave nothing to tell of equilibria.
_NEVER = (Verdict.CONVERGES, Verdict.BOUNDED, Verdict.UNBOUNDED)
_SETTLED = (Verdict.CONVERGES, Verdict.BLOWS_UP, Verdict.UNBOUNDED)

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
    return not (found.proved and found.verdict in _WHOLE)


def _lacks_data(problem: CertificationProblem, found: Conclusion) -> bool:
    """Whether rays may answer more; in large dimension they are sought if nothing blows up yet."""
    known = found.proved and found.verdict is Verdict.BLOW_UP_DATA_EXIST
    return _open(problem, found) and not (
        known and problem.start is None and problem.dim > rays.LARGE
    )


def _measures(problem: CertificationProblem, found: Conclusion) -> bool:
    """Whether a bound on the covariance or the blow-up time is missing, or may be sharpened."""
    if _open(problem, found):
        return True
    if found.verdict is Verdict.BLOWS_UP and problem.start is not None:
        return found.lower <= 0 or math.isinf(found.upper)
    # Without attention no quadratic term bounds anything.
    return found.verdict is Verdict.BOUNDED and any(merge_heads(p) for p in problem.vertices)


def _unbounded(problem: CertificationProblem, found: Conclusion) -> bool:
    """Whether blow-up is neither excluded nor, for the start, known not to come too soon."""
    return not (found.proved and found.verdict in _NEVER) and found.lower <= 0


def _coarse(problem: CertificationProblem, found: Conclusion) -> bool:
    """Whether the blow-up time of the start could be enclosed more closely."""
    if problem.start is None or found.verdict in _NEVER:
        return problem.start is not None and not found.proved
    return not found.upper - found.lower <= CLOSE * found.lower


def _late(problem: CertificationProblem, found: Conclusion) -> bool:
    """Whether a bound on the blow-up time from above is missing, or is cheap and can be drawn."""
    if found.proved and found.verdict in _NEVER:
        return False
    return math.isinf(found.upper) or problem.dim <= DRAWN


def _unsettled(problem: CertificationProblem, found: Conclusion) -> bool:
    """Whether equilibria may tell where the covariance goes."""
    return not (found.proved and found.verdict in _SETTLED)


def _astray(problem: CertificationProblem, found: Conclusion) -> bool:
    """Whether it is open where the covariance of the start goes."""
    return problem.start is not None and _unsettled(problem, found)


ENCLOSURE = Rung("enclosure of the blow-up time", bracket.find, _coarse)

RUNGS: tuple[Rung, ...] = (
    Rung("closed form for V = v I", riccati.find, _always),
    Rung("limits and growth for V = v I", limits.find, _unsettled),
    Rung("tests of order d", regimes.find, _open),
    Rung("rays at infinity", rays.find, _lacks_data),
    Rung("growth by norms", growth.find, _unbounded),
    Rung("matrix inequalities", quadratic_lmi.find, _measures),
    ENCLOSURE,
    Rung("blow-up by matrix inequalities", quadratic_lmi.find_blow_up, _late),
    Rung("equilibria", local.find, _unsettled),
    Rung("entry into a region of attraction", captured.find, _astray),
)


def climb(
    problem: CertificationProblem,
    claims: list[Claim],
    progress: Progress,
    rungs: Sequence[Rung],
) -> None:
    """Add claims rung by rung, each asked for its proof as it comes; useless rungs are left out.

    What was added before an interruption stays.
    """
    for i, rung in enumerate(rungs):
        if rung.serves(problem, conclude(problem, claims)):
            progress(0.8 * i / len(rungs), rung.title)
            claims.extend(settle(problem, claim) for claim in _found(rung, problem))


def _found(rung: Rung, problem: CertificationProblem) -> Iterator[Claim]:
    """Claims of a rung, until its numbers leave the range of floats.

    What was found is proved before it counts, so no warning about rounding matters.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield from rung.find(problem)
        except (ArithmeticError, np.linalg.LinAlgError, NotFinite, OutOfScale):
            return

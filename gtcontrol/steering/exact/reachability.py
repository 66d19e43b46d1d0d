"""Which targets can be reached with which controls, decided exactly.

The flow acts as m' = (M + V) m + b, S' = M S + S Mᵀ with M = A + V S B.  The rank of S is
conserved.  The covariance moves if A, or V and B, are enabled; the mean moves freely with b
and linearly with V, and with A alone one and the same matrix moves both.
"""

from __future__ import annotations

from ...errors import InvalidShape, OutOfScale, RankMismatch, Unreachable
from ...gaussian import Gaussian, norm, wasserstein
from ...problem.bounds import parse_controls
from ...problem.definitions import ReachabilityProblem
from ...results.reachability import Reachability
from .decision import covariance_moves, decide
from .methods import applicable

__all__ = ["reachable", "require_reachable"]

#: Largest norm of a mean or a factor.
LARGEST_SIZE = 1e150


def reachable(start: Gaussian, target: Gaussian, controls: str = "AVBb") -> Reachability:
    """Decide whether controls exist that carry `start` to `target`, in any horizon.

    Parameters
    ----------
    start, target : Gaussian
        Laws of equal dimension d.
    controls : str
        The enabled controls, any of the letters A, V, B, b; the others stay zero.

    Returns
    -------
    Reachability
        True in a boolean context if reachable; else it names the broken condition and offers
        the nearest reachable target.

    Raises
    ------
    InvalidControls, InvalidShape, OutOfScale
        If the controls, the dimensions or the size of the numbers do not fit.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> line = gt.Gaussian([0.0, 0.0], [[1.0], [0.0]])
    >>> plane = gt.Gaussian([0.0, 0.0], [[1.0, 0.0], [0.0, 0.5]])
    >>> answer = gt.reachable(line, plane)
    >>> answer.reachable, answer.distance
    (False, 0.5)
    """
    enabled = _checked(start, target, controls)
    decision = decide(start, target, enabled)
    reason = " ".join(decision.broken) or _why(start.rank, enabled)
    return Reachability(
        problem=ReachabilityProblem(start, target, enabled),
        reachable=not decision.broken,
        reason=reason,
        nearest=decision.nearest,
        distance=wasserstein(target, decision.nearest) if decision.broken else 0.0,
        attained=decision.attained,
        methods=() if decision.broken else applicable(start, target, enabled),
    )


def require_reachable(start: Gaussian, target: Gaussian, controls: str = "AVBb") -> None:
    """Raise if the target cannot be reached, naming why and the nearest reachable target.

    Raises
    ------
    RankMismatch
        If the ranks differ.
    Unreachable
        If another condition fails.
    """
    enabled = _checked(start, target, controls)
    decision = decide(start, target, enabled)
    if not decision.broken:
        return
    gap = wasserstein(target, decision.nearest)
    remedy = f"Nearest reachable target: {decision.hint}, Wasserstein distance {gap:.3g}."
    if not decision.attained:
        remedy = (
            f"A reachable target close by: {decision.hint}, Wasserstein distance {gap:.3g} "
            f"({decision.note})."
        )
    error = RankMismatch if start.rank != target.rank else Unreachable
    raise error(" ".join((*decision.broken, remedy)))


def _checked(start: Gaussian, target: Gaussian, controls: str) -> str:
    for name, law in (("start", start), ("target", target)):
        if not isinstance(law, Gaussian):
            raise InvalidShape(f"`{name}` must be a Gaussian, not {type(law).__name__}.")
    if start.dim != target.dim:
        raise InvalidShape(
            f"`target` has dimension {target.dim} but `start` has dimension {start.dim}."
        )
    size = max(norm(x) for law in (start, target) for x in (law.mean, law.factor) if x.size)
    if size > LARGEST_SIZE:
        raise OutOfScale(
            f"a mean or a factor has norm {size:.3g}, and squares of more than {LARGEST_SIZE:g} "
            "leave the range of double precision. Measure the tokens in another unit."
        )
    return parse_controls(controls)


def _why(rank: int, controls: str) -> str:
    if covariance_moves(controls):
        mover = "A moves" if "A" in controls else "V and B move"
        covariance = f"{mover} the covariance within rank {rank}"
    else:
        covariance = "the covariances are equal"
    if "b" in controls:
        mean = "b moves the mean freely"
    elif "V" in controls:
        mean = "V moves the mean, which is zero at both ends or at neither"
    elif "A" in controls:
        mean = "A moves the mean along with it to where it must be"
    else:
        mean = "the means are equal"
    return f"{covariance}; {mean}."

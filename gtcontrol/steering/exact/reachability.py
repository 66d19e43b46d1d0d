"""Which targets can be reached with which controls, decided exactly.

The flow acts as m' = (M + V) m + b, S' = M S + S Mᵀ with M = A + V S B.  The rank of S is
conserved.  The covariance moves if A, or V and B, are enabled; the mean moves freely with b
and linearly with V, and with A alone one and the same matrix moves both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...errors import InvalidShape, RankMismatch, Unreachable
from ...gaussian import Gaussian, align, wasserstein
from ...problem.bounds import parse_controls
from ...problem.definitions import ReachabilityProblem
from ...results.reachability import Reachability
from .nearest import INFLATION, coupled_factor, inflate, off_range, split_range

__all__ = ["broken_conditions", "covariances_agree", "reachable", "require_reachable"]

#: Largest distance of aligned factors, relative to their norm, at which covariances are equal.
COVARIANCE_TOLERANCE = 1e-9

#: Largest distance of means, relative to their norms, at which they are equal.
MEAN_TOLERANCE = 1e-12

#: A vector lies in the range of a factor if less than this fraction of it sticks out.
RANGE_TOLERANCE = 1e-9

#: Mahalanobis norms are equal if they differ by less than this fraction.
MAHALANOBIS_TOLERANCE = 1e-9


@dataclass(frozen=True)
class _Part:
    """Nearest reachable mean or factor; `broken` names the failing condition, if any."""

    value: Array
    broken: str = ""
    hint: str = ""
    attained: bool = True


@dataclass(frozen=True)
class _Decision:
    broken: tuple[str, ...]
    nearest: Gaussian
    hint: str = ""
    attained: bool = True
    note: str = "no reachable target is nearest"


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
    InvalidControls, InvalidShape
        If the controls or the dimensions do not fit.

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
    decision = _decide(start, target, enabled)
    methods: tuple[str, ...] = ()
    if not decision.broken:
        from .methods import applicable  # which needs this module

        methods = applicable(start, target, enabled)
    reason = " ".join(decision.broken) or _why(start.rank, enabled)
    return Reachability(
        problem=ReachabilityProblem(start, target, enabled),
        reachable=not decision.broken,
        reason=reason,
        nearest=decision.nearest,
        distance=wasserstein(target, decision.nearest) if decision.broken else 0.0,
        attained=decision.attained,
        methods=methods,
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
    decision = _decide(start, target, enabled)
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


def broken_conditions(start: Gaussian, target: Gaussian, controls: str) -> tuple[str, ...]:
    """Sentences that say why the target is out of reach; none if it is not."""
    return _decide(start, target, _checked(start, target, controls)).broken


def covariances_agree(start: Gaussian, target: Gaussian) -> bool:
    """Whether two laws have the same covariance, up to :data:`COVARIANCE_TOLERANCE`."""
    if start.rank != target.rank:
        return False
    gap = np.linalg.norm(start.factor - align(start.factor, target.factor))
    return bool(gap <= COVARIANCE_TOLERANCE * np.linalg.norm(start.factor))


def _checked(start: Gaussian, target: Gaussian, controls: str) -> str:
    for name, law in (("start", start), ("target", target)):
        if not isinstance(law, Gaussian):
            raise InvalidShape(f"`{name}` must be a Gaussian, not {type(law).__name__}.")
    if start.dim != target.dim:
        raise InvalidShape(
            f"`target` has dimension {target.dim} but `start` has dimension {start.dim}."
        )
    return parse_controls(controls)


def _covariance_moves(controls: str) -> bool:
    return "A" in controls or ("V" in controls and "B" in controls)


def _decide(start: Gaussian, target: Gaussian, controls: str) -> _Decision:
    if "A" in controls and "V" not in controls and "b" not in controls:
        return _decide_ray(start, target) if start.dim == 1 else _decide_coupled(start, target)
    factor = _factor_part(start, target, controls)
    mean = _mean_part(start, target, controls)
    broken = tuple(text for text in (factor.broken, mean.broken) if text)
    if not broken:
        return _Decision((), target)
    attained = factor.attained and mean.attained
    hint = factor.hint
    if mean.broken or not factor.hint.startswith("`target.truncate"):
        hint = f"the {mean.hint or 'mean of `target`'} with {factor.hint or 'its covariance'}"
    return _Decision(broken, Gaussian(mean.value, factor.value), hint, attained)


def _factor_part(start: Gaussian, target: Gaussian, controls: str) -> _Part:
    if _covariance_moves(controls):
        return _rank_part(start, target)
    if covariances_agree(start, target):
        return _Part(target.factor)
    text = (
        f"`controls` = {controls!r} cannot move the covariance (that takes A, or V and B), but "
        "`target` has another one than `start`."
    )
    if start.rank != target.rank:
        text = f"{_rank_text(start, target)} `controls` = {controls!r} cannot move it at all."
    return _Part(start.factor, text, "the covariance of `start`")


def _rank_text(start: Gaussian, target: Gaussian) -> str:
    return (
        f"`target` has rank {target.rank} but `start` has rank {start.rank}: the flow acts on the "
        "covariance by congruence, so no (A, B, V, b) changes its rank."
    )


def _rank_part(start: Gaussian, target: Gaussian, avoid: Array | None = None) -> _Part:
    """Nearest factor of the rank of `start`; fresh columns are orthogonal to `avoid`."""
    rank = start.rank
    if target.rank == rank:
        return _Part(target.factor)
    text = _rank_text(start, target)
    if target.rank > rank:
        return _Part(target.truncate(rank).factor, text, f"`target.truncate({rank})`")
    size = INFLATION * _spread(target, start)
    factor = inflate(target.factor, rank, size, avoid)
    hint = f"its covariance inflated to rank {rank} by standard deviations of {size:.3g}"
    return _Part(factor, text, hint, attained=False)


def _spread(*laws: Gaussian) -> float:
    """Largest standard deviation of the first law that has one."""
    for law in laws:
        if law.rank:
            return float(np.sqrt(law.eigenvalues[0]))
    return 1.0


def _mean_part(start: Gaussian, target: Gaussian, controls: str) -> _Part:
    m0, m1 = start.mean, target.mean
    if "b" in controls:
        return _Part(m1)
    if "V" in controls:
        return _linear_mean_part(m0, m1)
    if np.linalg.norm(m1 - m0) <= MEAN_TOLERANCE * max(np.linalg.norm(m0), np.linalg.norm(m1)):
        return _Part(m1)
    return _Part(m0, f"`controls` = {controls!r} cannot move the mean.", "mean of `start`")


def _linear_mean_part(m0: Array, m1: Array) -> _Part:
    """Mean moved by m' = G m with G free: any vector but zero reaches any vector but zero."""
    first, last = float(np.linalg.norm(m0)), float(np.linalg.norm(m1))
    if first == 0 and last > 0:
        text = f"Without the bias b a zero mean stays zero; the target's has norm {last:.3g}."
        return _Part(m0, text, "zero mean")
    if last == 0 and first > 0:
        text = f"Without the bias b a mean of norm {first:.3g} never becomes zero in finite time."
        return _Part(INFLATION * m0, text, f"mean of `start` times {INFLATION:g}", attained=False)
    if m0.size == 1 and m0[0] * m1[0] < 0:
        text = (
            f"Without the bias b the sign of a scalar mean is conserved, but it is {m0[0]:.3g} at "
            f"the start and {m1[0]:.3g} at the target."
        )
        near = INFLATION * min(first, last) * np.sign(m0)
        return _Part(near, text, f"mean {near[0]:.3g}", attained=False)
    return _Part(m1)


def _decide_ray(start: Gaussian, target: Gaussian) -> _Decision:
    """A alone in dimension 1: (m, σ) is multiplied by one positive number."""
    x, y = (np.array([g.mean[0], np.sqrt(g.trace)]) for g in (start, target))
    length, wanted = float(np.linalg.norm(x)), float(np.linalg.norm(y))
    ratio = float(x @ y) / length**2 if length else 1.0
    same_rank = start.rank == target.rank
    if same_rank and ratio > 0 and np.linalg.norm(y - ratio * x) <= MAHALANOBIS_TOLERANCE * wanted:
        return _Decision((), target)
    attained = ratio > 0
    if not attained:
        ratio = INFLATION * (wanted / length if wanted else 1.0)
    text = (
        "With A alone mean and standard deviation of scalar tokens are multiplied by one and the "
        f"same positive number, but they are ({x[0]:.3g}, {x[1]:.3g}) at the start and "
        f"({y[0]:.3g}, {y[1]:.3g}) at the target."
    )
    broken = (text,) if same_rank else (_rank_text(start, target), text)
    near = Gaussian(ratio * start.mean, ratio * start.factor)
    return _Decision(broken, near, f"`start` scaled by {ratio:.3g}", attained)


def _decide_coupled(start: Gaussian, target: Gaussian) -> _Decision:
    """A alone: one matrix Φ of positive determinant moves mean and factor, in dimension >= 2.

    Its sign does not restrict anything there: a reflection within the range, or in its
    complement, changes it.
    """
    a0, outside0 = split_range(start.factor, start.mean)
    if np.linalg.norm(outside0) <= RANGE_TOLERANCE * np.linalg.norm(start.mean):
        return _decide_inside(start, target, a0)
    return _decide_outside(start, target)


def _decide_inside(start: Gaussian, target: Gaussian, a0: Array) -> _Decision:
    before = float(np.linalg.norm(a0))
    broken: tuple[str, ...] = ()
    if start.rank != target.rank:
        broken = (_rank_text(start, target),)
    law = "With A alone one matrix moves mean and covariance, so "
    a1, outside1 = split_range(target.factor, target.mean)
    sticks_out = float(np.linalg.norm(outside1))
    after = float(np.linalg.norm(a1))
    if sticks_out > RANGE_TOLERANCE * np.linalg.norm(target.mean):
        text = (
            f"{law}a mean in the range of the covariance stays in it, but the mean of `target` "
            f"sticks out of its range by {sticks_out:.3g}; enable V or b."
        )
        broken = (*broken, text)
    elif abs(before - after) > MAHALANOBIS_TOLERANCE * max(before, after):
        text = (
            f"{law}√(mᵀS⁺m) is conserved, but it is {before:.6g} at the start and {after:.6g} at "
            "the target; enable V or b."
        )
        broken = (*broken, text)
    if not broken:
        return _Decision((), target)
    factor, proved = coupled_factor(target.factor, target.mean, a0)
    full = _full_rank(factor, INFLATION * _spread(target, start))
    hint = "`reachable(start, target, controls).nearest`, where mean and covariance share a map"
    attained = proved and full is factor
    note = _Decision.note if proved else "a local minimum, perhaps not the nearest"
    return _Decision(broken, Gaussian(full @ a0, full), hint, attained, note)


def _full_rank(factor: Array, size: float) -> Array:
    """Return the factor itself, or with singular values that vanish raised to `size`."""
    if factor.shape[1] == 0:
        return factor
    U, sigma, Zt = np.linalg.svd(factor, full_matrices=False)
    if sigma[-1] > RANGE_TOLERANCE * sigma[0]:
        return factor
    raised = np.where(sigma > RANGE_TOLERANCE * sigma[0], sigma, size)
    return np.asarray((U * raised) @ Zt)


def _decide_outside(start: Gaussian, target: Gaussian) -> _Decision:
    mean = target.mean
    _, sticks_out = split_range(target.factor, mean)
    inside = bool(np.linalg.norm(sticks_out) <= RANGE_TOLERANCE * np.linalg.norm(mean))
    part = _rank_part(start, target, None if inside else sticks_out)
    _, left = split_range(part.value, mean)
    if np.linalg.norm(left) > RANGE_TOLERANCE * np.linalg.norm(mean):
        broken = tuple(filter(None, [part.broken]))
        return _Decision(broken, Gaussian(mean, part.value), part.hint, part.attained)
    text = (
        "With A alone one matrix moves mean and covariance, so a mean outside the range of the "
        "covariance stays outside, but the mean of `target` lies in its range; enable V or b."
    )
    # Of the size of the covariance, but large enough to count beside the mean.
    size = INFLATION * _spread(target, start) if start.rank else 0.0
    size = max(size, INFLATION**2 * float(np.linalg.norm(mean)))
    size = size or INFLATION * float(np.linalg.norm(start.mean))
    near = Gaussian(mean + size * off_range(part.value), part.value)
    broken = tuple(filter(None, [part.broken, text]))
    hint = f"its mean moved out of the range of the covariance by {size:.3g}"
    return _Decision(broken, near, hint, attained=False)


def _why(rank: int, controls: str) -> str:
    if _covariance_moves(controls):
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

"""The decision itself: which condition breaks, and which reachable law is nearest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...gaussian import Gaussian, align, norm
from .nearest import INFLATION, coupled_factor, inflate, off_range, split_range

__all__ = ["RANGE_TOLERANCE", "Decision", "covariance_moves", "covariances_agree", "decide"]

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
class Decision:
    """Conditions that fail (none if the target is reachable), and the law to offer instead.

    `hint` says in words what that law is, and `note` why it is no minimiser, if it is not.
    """

    broken: tuple[str, ...]
    nearest: Gaussian
    hint: str = ""
    attained: bool = True
    note: str = "no reachable target is nearest"


def covariances_agree(start: Gaussian, target: Gaussian) -> bool:
    """Whether two laws have the same covariance, up to :data:`COVARIANCE_TOLERANCE`."""
    if start.rank != target.rank:
        return False
    gap = np.linalg.norm(start.factor - align(start.factor, target.factor))
    return bool(gap <= COVARIANCE_TOLERANCE * np.linalg.norm(start.factor))


def covariance_moves(controls: str) -> bool:
    """Whether the enabled controls can move the covariance."""
    return "A" in controls or ("V" in controls and "B" in controls)


def decide(start: Gaussian, target: Gaussian, controls: str) -> Decision:
    """Decide for laws of equal dimension and controls in canonical form ("" for none)."""
    if "A" in controls and "V" not in controls and "b" not in controls:
        return _decide_ray(start, target) if start.dim == 1 else _decide_coupled(start, target)
    factor = _factor_part(start, target, controls)
    mean = _mean_part(start, target, controls)
    broken = tuple(text for text in (factor.broken, mean.broken) if text)
    if not broken:
        return Decision((), target)
    attained = factor.attained and mean.attained
    hint = factor.hint
    if mean.broken or not factor.hint.startswith("`target.truncate"):
        hint = f"the {mean.hint or 'mean of `target`'} with {factor.hint or 'its covariance'}"
    return Decision(broken, Gaussian(mean.value, factor.value), hint, attained)


def _factor_part(start: Gaussian, target: Gaussian, controls: str) -> _Part:
    if covariance_moves(controls):
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
    if norm(m1 - m0) <= MEAN_TOLERANCE * max(norm(m0), norm(m1)):
        return _Part(m1)
    return _Part(m0, f"`controls` = {controls!r} cannot move the mean.", "mean of `start`")


def _linear_mean_part(m0: Array, m1: Array) -> _Part:
    """Mean moved by m' = G m with G free: any vector but zero reaches any vector but zero."""
    first, last = norm(m0), norm(m1)
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


def _decide_ray(start: Gaussian, target: Gaussian) -> Decision:
    """A alone in dimension 1: (m, σ) is multiplied by one positive number."""
    x, y = (np.array([g.mean[0], np.sqrt(g.trace)]) for g in (start, target))
    length, wanted = float(np.linalg.norm(x)), float(np.linalg.norm(y))
    ratio = float(x @ y) / length**2 if length else 1.0
    same_rank = start.rank == target.rank
    if same_rank and ratio > 0 and np.linalg.norm(y - ratio * x) <= MAHALANOBIS_TOLERANCE * wanted:
        return Decision((), target)
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
    return Decision(broken, near, f"`start` scaled by {ratio:.3g}", attained)


def _decide_coupled(start: Gaussian, target: Gaussian) -> Decision:
    """A alone: one matrix Φ of positive determinant moves mean and factor, in dimension >= 2.

    Its sign does not restrict anything there: a reflection within the range, or in its
    complement, changes it.
    """
    a0, outside0 = split_range(start.factor, start.mean)
    if np.linalg.norm(outside0) <= RANGE_TOLERANCE * np.linalg.norm(start.mean):
        return _decide_inside(start, target, a0)
    return _decide_outside(start, target)


def _decide_inside(start: Gaussian, target: Gaussian, a0: Array) -> Decision:
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
        return Decision((), target)
    factor, proved = coupled_factor(target.factor, target.mean, a0)
    full = _full_rank(factor, INFLATION * _spread(target, start))
    hint = "`reachable(start, target, controls).nearest`, where mean and covariance share a map"
    attained = proved and full is factor
    note = Decision.note if proved else "a local minimum, perhaps not the nearest"
    return Decision(broken, Gaussian(full @ a0, full), hint, attained, note)


def _full_rank(factor: Array, size: float) -> Array:
    """Return the factor itself, or with singular values that vanish raised to `size`."""
    if factor.shape[1] == 0:
        return factor
    U, sigma, Zt = np.linalg.svd(factor, full_matrices=False)
    if sigma[-1] > RANGE_TOLERANCE * sigma[0]:
        return factor
    raised = np.where(sigma > RANGE_TOLERANCE * sigma[0], sigma, size)
    return np.asarray((U * raised) @ Zt)


def _decide_outside(start: Gaussian, target: Gaussian) -> Decision:
    mean = target.mean
    _, sticks_out = split_range(target.factor, mean)
    inside = bool(norm(sticks_out) <= RANGE_TOLERANCE * norm(mean))
    part = _rank_part(start, target, None if inside else sticks_out)
    _, left = split_range(part.value, mean)
    if norm(left) > RANGE_TOLERANCE * norm(mean):
        broken = tuple(filter(None, [part.broken]))
        return Decision(broken, Gaussian(mean, part.value), part.hint, part.attained)
    text = (
        "With A alone one matrix moves mean and covariance, so a mean outside the range of the "
        "covariance stays outside, but the mean of `target` lies in its range; enable V or b."
    )
    # Of the size of the covariance, but large enough to count beside the mean.
    size = INFLATION * _spread(target, start) if start.rank else 0.0
    size = max(size, INFLATION**2 * norm(mean))
    size = size or INFLATION * float(np.linalg.norm(start.mean))
    near = Gaussian(mean + size * off_range(part.value), part.value)
    broken = tuple(filter(None, [part.broken, text]))
    hint = f"its mean moved out of the range of the covariance by {size:.3g}"
    return Decision(broken, near, hint, attained=False)

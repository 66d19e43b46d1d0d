"""Which modes a start takes part in: every vector of its range grows at the pace of its fastest."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import schur

from ..._check import Array
from ...riccati_flow.spectrum import GAP, Spectrum, invariant_basis

__all__ = ["Group", "band", "directions", "rate_of", "shares"]

#: A vector takes part in modes if its share there is above this.
SHARE = 1e-9


@dataclass(frozen=True)
class Group:
    """Modes `first` to `last` (excluded) of equal real part; `taken` of them lead in the start.

    `share` is the least part that a vector which leads in these or faster modes has in them; the
    smaller it is, the later it shows.  `side` is 1 for unstable modes, 0 for those on the
    imaginary axis, and -1 for stable ones.
    """

    first: int
    last: int
    side: int
    pace: float
    taken: int
    share: float = 1.0

    @property
    def size(self) -> int:
        """Number of modes."""
        return self.last - self.first


def shares(M: Array, spectrum: Spectrum, factor: Array | None) -> tuple[Group, ...]:
    """Group the modes by growth, and count for each group the vectors that lead in it.

    Parameters
    ----------
    M : (k, k) array
    spectrum : Spectrum
        Of M.
    factor : (k, r) array or None
        Factor of the start; None for full-rank data.
    """
    k = len(M)
    if not k:
        return ()
    cuts = _cuts(spectrum)
    start = np.eye(k) if factor is None else _orthonormal(factor)
    found, before = [], 0
    for first, last in pairwise(cuts):
        # Vectors that lead in the first `last` modes: left vectors of these see them.
        share = 1.0
        if factor is None or last == k:
            leading = min(last, start.shape[1])
        else:
            left = invariant_basis(M.T, spectrum, last)[0]
            sigma = np.linalg.svd(left.T @ start, compute_uv=False)
            leading = int(np.sum(sigma > SHARE))
            share = float(np.min(sigma[:leading], initial=1.0))
        edge = spectrum.unstable
        side = 1 if last <= edge else 0 if last <= edge + spectrum.axis else -1
        pace = 0.0 if side == 0 else float(np.mean(spectrum.values[first:last].real))
        found.append(Group(first, last, side, pace, leading - before, share))
        before = leading
    return tuple(found)


def _cuts(spectrum: Spectrum) -> list[int]:
    """Places between groups of modes of equal real part; all those on the axis are one group."""
    k, p, q = len(spectrum.values), spectrum.unstable, spectrum.unstable + spectrum.axis
    gaps = [
        i
        for i in range(1, k)
        if i in (p, q) or (not p < i < q and spectrum.gap(i) > GAP * spectrum.size)
    ]
    return [0, *gaps, k]


def _orthonormal(factor: Array) -> Array:
    if not factor.shape[1]:
        return factor
    scaled = factor / np.max(np.abs(factor), axis=0)
    return np.asarray(np.linalg.qr(scaled)[0])


def band(M: Array, spectrum: Spectrum, group: Group) -> Array:
    """Orthonormal basis (k, size) of the invariant subspace of a group."""
    k, reals = len(M), spectrum.values.real
    if group.size == k:
        return np.eye(k)
    high = np.inf if group.first == 0 else 0.5 * (reals[group.first - 1] + reals[group.first])
    low = -np.inf if group.last == k else 0.5 * (reals[group.last - 1] + reals[group.last])
    _, Z, count = schur(M, output="real", sort=lambda x, _: low < x < high)
    if int(count) != group.size:
        raise np.linalg.LinAlgError("the eigenvalues are too close together to be ordered")
    return np.asarray(Z[:, : group.size])


def directions(M: Array, spectrum: Spectrum, group: Group, factor: Array) -> Array | None:
    """Invariant subspace of a group into which the vectors that lead in it turn; None if none.

    Of a multiple of the identity it is their projection; of one Jordan block, the first vectors
    of its chain.
    """
    right, left = band(M, spectrum, group), band(M.T, spectrum, group)
    inner = right.T @ M @ right
    shift = (inner - group.pace * np.eye(group.size)) / max(spectrum.size, 1e-300)
    if float(np.linalg.norm(shift, 2)) <= 10 * GAP:
        start = _orthonormal(factor)
        above = np.zeros((0, start.shape[1]))
        if group.first:
            above = invariant_basis(M.T, spectrum, group.first)[0].T @ start
        _, sigma, rows = np.linalg.svd(above)
        leading = start @ rows[int(np.sum(sigma > SHARE)) :].T
        projected = np.linalg.solve(left.T @ right, left.T @ leading)
        return np.asarray(right @ np.linalg.svd(projected)[0][:, : group.taken])
    sigma = np.linalg.svd(shift, compute_uv=False)
    nilpotent = np.linalg.matrix_power(shift, group.size)
    if sigma[-2] > GAP and float(np.linalg.norm(nilpotent, 2)) <= GAP:
        chain = np.linalg.svd(np.linalg.matrix_power(shift, group.taken))[2]
        return np.asarray(right @ chain[group.size - group.taken :].T)
    return None


def rate_of(groups: tuple[Group, ...]) -> float:
    """Exponential rate at which the covariance approaches its limit, where it has one.

    The unstable modes that take part settle at twice their pace; what lies beside them in their
    vectors, and takes no part, falls behind at the difference of the paces; vectors that lead in
    stable modes decay at twice their pace.
    """
    active = [g.pace for g in groups if g.side > 0 and g.taken]
    rates = [2 * pace for pace in active]
    rates += [-2 * g.pace for g in groups if g.side < 0 and g.taken]
    for g in groups:
        ahead = [pace for pace in active if pace > g.pace]
        if g.taken < g.size and ahead:
            rates.append(min(ahead) - g.pace)
    return min(rates, default=np.inf)

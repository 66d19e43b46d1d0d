"""Symmetry reduction: a steering problem lives in the span of its end points.

If costs and bounds do not depend on the orthonormal coordinates, a reflection about
U = span[L₀, L₁, m₀, m₁] leaves the problem unchanged, so plans need not leave U, whose
dimension is at most 2 r + 2 whatever the dimension d of the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._check import Array
from ..gaussian import Gaussian, norm

__all__ = ["Reduction", "reduce"]

#: Directions whose singular value is below this fraction of the largest one are rounding.
SPAN_TOLERANCE = 1e-13


@dataclass(frozen=True, eq=False)
class Reduction:
    """End points in coordinates of their span.

    Attributes
    ----------
    basis : (d, k) array or None
        Orthonormal basis of the span; None if the span is everything (k = d).
    start, target : Gaussian
        The end points in coordinates of the basis, dimension k.
    """

    basis: Array | None
    start: Gaussian
    target: Gaussian


def reduce(start: Gaussian, target: Gaussian) -> Reduction:
    """Express two Gaussians of dimension d in the span of their means and factors."""
    d = start.dim
    columns = [start.factor, target.factor, start.mean[:, None], target.mean[:, None]]
    # Each part is scaled on its own, so that a small covariance beside a large mean keeps
    # its directions.
    scaled = [c / norm(c) for c in columns if c.size and np.any(c)]
    if not scaled:
        scaled = [np.eye(d, 1)]
    U, sigma, _ = np.linalg.svd(np.concatenate(scaled, axis=1), full_matrices=False)
    k = int(np.count_nonzero(sigma > SPAN_TOLERANCE * sigma[0]))
    if k >= d:
        return Reduction(None, start, target)
    basis = U[:, :k]
    first, last = (Gaussian.trusted(basis.T @ g.mean, basis.T @ g.factor) for g in (start, target))
    return Reduction(basis, first, last)

"""Coordinates in which the covariance stays zero are left out.

If the rows of L_0 (and of the noise) outside an index set I vanish, and A and all V_h map the span
of I to itself, then L(t) keeps zero rows outside I, and inside it obeys the equation with the
blocks of A, V_h and B_h.  A ray that repels in the full space may attract there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._check import Array
from ...parameters import Parameters

__all__ = ["reached", "reduced"]


def reached(parameters: Parameters, factor: Array) -> NDArray[np.bool_]:
    """Which coordinates the covariance ever reaches, shape (d,); at least one.

    Parameters
    ----------
    parameters : Parameters
        Of dimension d.
    factor : (d, r) array
    """
    p = parameters
    found = np.any(factor != 0.0, axis=1)
    if p.noise is not None:
        found |= np.any(p.noise != 0.0, axis=1)
    found[0] |= not np.any(found)
    # Entry (i, j) of A or V carries coordinate j to coordinate i.
    carries = (p.A != 0.0) | np.any([V != 0.0 for V, _, _ in p.heads], axis=0)
    for _ in range(p.dim):
        grown = found | np.any(carries[:, found], axis=1)
        if np.array_equal(grown, found):
            break
        found = grown
    return np.asarray(found)


def reduced(parameters: Parameters, factor: Array) -> tuple[Parameters, Array]:
    """Parameters and factor in the coordinates that the covariance ever reaches; exact.

    Parameters
    ----------
    parameters : Parameters
        Of dimension d.
    factor : (d, r) array

    Returns
    -------
    parameters, factor
        Of dimension n <= d, with n >= 1; without the mean's part of the parameters.
    """
    p, kept = parameters, reached(parameters, factor)
    block = np.ix_(kept, kept)
    V = np.array([value[block] for value, _, _ in p.heads])
    B = np.array([score[block] for _, score, _ in p.heads])
    noise = None if p.noise is None else p.noise[block]
    made = Parameters.trusted(p.A[block], B, V, np.zeros(int(kept.sum())), noise)
    return made, factor[kept]

"""Coordinates in which the covariance stays zero are left out.

If the rows of L_0 (and of the noise) outside an index set I vanish, and A and all V_h map the span
of I to itself, then L(t) keeps zero rows outside I, and inside it obeys the equation with the
blocks of A, V_h and B_h.  A ray that repels in the full space may attract there.
"""

from __future__ import annotations

import numpy as np

from ..._check import Array
from ...parameters import Parameters

__all__ = ["reduced"]


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
    p = parameters
    reached = np.any(factor != 0.0, axis=1)
    if p.noise is not None:
        reached |= np.any(p.noise != 0.0, axis=1)
    reached[0] |= not np.any(reached)
    # Entry (i, j) of A or V carries coordinate j to coordinate i.
    carries = (p.A != 0.0) | np.any([V != 0.0 for V, _, _ in p.heads], axis=0)
    for _ in range(p.dim):
        grown = reached | np.any(carries[:, reached], axis=1)
        if np.array_equal(grown, reached):
            break
        reached = grown
    block = np.ix_(reached, reached)
    V = np.array([value[block] for value, _, _ in p.heads])
    B = np.array([score[block] for _, score, _ in p.heads])
    noise = None if p.noise is None else p.noise[block]
    made = Parameters.trusted(p.A[block], B, V, np.zeros(int(reached.sum())), noise)
    return made, factor[reached]

"""Coordinates on which heads act apart from each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..._check import Array
from ...parameters import Parameters

__all__ = ["components", "restricted"]

Indices = NDArray[np.intp]


def components(vertices: Sequence[Parameters]) -> tuple[Indices, ...]:
    """Sets of coordinates such that each head acts within one of them, as small as possible.

    A head acts on the coordinates of the rows and columns of V and of B that are not zero, at any
    vertex.  Its blocks, if it has several, are no sets of their own: V S B mixes them.

    Parameters
    ----------
    vertices : sequence of Parameters
        With equally many heads.

    Returns
    -------
    tuple of index arrays
        Disjoint and increasing; coordinates on which no head acts are in none of them.
    """
    made: list[set[int]] = []
    for h in range(len(vertices[0].heads)):
        own: set[int] = set()
        for p in vertices:
            for table in p.heads[h][:2]:
                used = np.any(table, axis=0) | np.any(table, axis=1)
                own |= set(np.flatnonzero(used).tolist())
        apart = [other for other in made if not other & own]
        joined = own.union(*(other for other in made if other & own))
        made = [*apart, joined] if joined else apart
    return tuple(np.array(sorted(block), dtype=np.intp) for block in sorted(made, key=min))


def restricted(parameters: Parameters, block: Indices) -> Parameters:
    """Attention of the heads that act within a block, as parameters without A, b and noise.

    Parameters
    ----------
    parameters : Parameters
    block : (m,) index array
        One of :func:`components`.
    """
    chosen = np.ix_(block, block)
    pairs: list[tuple[Array, Array]] = [(V[chosen], B[chosen]) for V, B, _ in parameters.heads]
    return Parameters(B=np.array([B for _, B in pairs]), V=np.array([V for V, _ in pairs]))

"""Attention as few products V ⊗ B as possible.

The flow depends on the heads only through Σ_h V_h ⊗ B_h, so that heads with the same score matrix
are one head with the sum of their value matrices, and the other way round.  Sums are left to the
arithmetic in which they are used, since floats would round them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...arithmetic.matrices import Matrix, total
from ...parameters import Parameters

__all__ = ["Head", "merge_families", "merge_heads"]


@dataclass(frozen=True, eq=False)
class Head:
    """One head (Σ V) ⊗ (Σ B).

    Attributes
    ----------
    values, scores : tuples of (d, d) arrays
        At least one each, none of them zero.
    """

    values: tuple[Array, ...]
    scores: tuple[Array, ...]

    def value(self) -> Matrix:
        """Sum V of the value matrices, enclosed."""
        return total(self.values)

    def score(self) -> Matrix:
        """Sum B of the score matrices, enclosed."""
        return total(self.scores)

    @property
    def V(self) -> Array:  # noqa: N802
        """Sum of the value matrices, rounded, shape (d, d)."""
        return np.asarray(sum(self.values[1:], self.values[0]))

    @property
    def B(self) -> Array:  # noqa: N802
        """Sum of the score matrices, rounded, shape (d, d)."""
        return np.asarray(sum(self.scores[1:], self.scores[0]))


def merge_heads(parameters: Parameters) -> tuple[Head, ...]:
    """Heads of `parameters` without those that are zero, equal ones merged."""
    return merge_families((parameters,))[0]


def merge_families(vertices: Sequence[Parameters]) -> list[tuple[Head, ...]]:
    """Heads of each vertex of a family, merged in the same way at all of them.

    In the convex hull each head has a value matrix and a score matrix that are combinations of its
    own, so that heads are equal, or zero, only if they are so at every vertex.  Vertices with
    different numbers of heads have none in common, and are returned as they are.

    Parameters
    ----------
    vertices : sequence of Parameters
        At least one, of one dimension.
    """
    tables = [[(V, B) for V, B, _ in p.heads] for p in vertices]
    if len({len(heads) for heads in tables}) > 1:
        return [tuple(Head((V,), (B,)) for V, B in heads) for heads in tables]
    groups: list[tuple[list[int], bool, bool]] = []
    for h in range(len(tables[0])):
        if not all(any(np.any(heads[h][i]) for heads in tables) for i in (0, 1)):
            continue
        for members, by_value, by_score in groups:
            first = members[0]
            same = [
                all(np.array_equal(heads[first][i], heads[h][i]) for heads in tables)
                for i in (0, 1)
            ]
            if by_score and same[1]:
                groups[groups.index((members, by_value, by_score))] = ([*members, h], False, True)
                break
            if by_value and same[0]:
                groups[groups.index((members, by_value, by_score))] = ([*members, h], True, False)
                break
        else:
            groups.append(([h], True, True))
    return [tuple(_head(heads, *group) for group in groups) for heads in tables]


def _head(
    heads: Sequence[tuple[Array, Array]], members: list[int], by_value: bool, by_score: bool
) -> Head:
    """Merged head of one vertex; a group of equal value matrices has one of them."""
    values, scores = (tuple(heads[h][i] for h in members) for i in (0, 1))
    if by_value and by_score:
        return Head(values, scores)
    return Head(values[:1], scores) if by_value else Head(values, scores[:1])

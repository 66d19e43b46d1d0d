"""Attention as few products V ⊗ B as possible.

The flow depends on the heads only through Σ_h V_h ⊗ B_h, so that heads with the same score matrix
are one head with the sum of their value matrices, and the other way round.  Sums are left to the
arithmetic in which they are used, since floats would round them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._check import Array
from ..arithmetic.matrices import Matrix, total
from ..parameters import Parameters

__all__ = ["Head", "merge_heads"]


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
    made: list[Head] = []
    for V, B, _ in parameters.heads:
        if np.any(V) and np.any(B):
            for i, other in enumerate(made):
                if len(other.scores) == 1 and np.array_equal(other.scores[0], B):
                    made[i] = Head((*other.values, V), other.scores)
                    break
                if len(other.values) == 1 and np.array_equal(other.values[0], V):
                    made[i] = Head(other.values, (*other.scores, B))
                    break
            else:
                made.append(Head((V,), (B,)))
    return tuple(made)

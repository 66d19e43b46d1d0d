"""Heads that act on coordinates of their own: dissipative block by block.

Let the coordinates be split into blocks such that every head acts within one of them: V_h and B_h
vanish outside the rows and columns of its block b.  Then ``V_h S B_h`` sees of S the block S_b
alone, and for a metric W with blocks W_b along the diagonal the quadratic part of y = tr(WS) is a
sum over the blocks.  If each part is at most ``-y_b²/θ_b``, ``y_b = tr(W_b S_b)``, as
:mod:`.dissipative` proves it for the heads of one block, then by the inequality of Cauchy and
Schwarz for ``y = Σ y_b``

    Σ_b -y_b²/θ_b <= -y²/θ,    θ = Σ_b θ_b.

A may mix the blocks.  The whole heads ``V ⊗ B``, each of low rank, are no definite matrices, so
that the rule for all coordinates at once does not apply to them.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...arithmetic.balls import Ball, ball, precision
from ...arithmetic.matrices import enclose
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..theory.components import components, restricted
from ..theory.heads import merge_families
from .base import Refuted, Rule, Statement, matrix, number
from .dissipative import BITS, check_attention, check_bound, say

__all__ = ["CONSTANTS", "TABLES", "DissipativeBlocks", "block_claim"]

#: Constants and arrays of a block; the constants are the columns of the array `constants`.
CONSTANTS = ("sector", "skewness", "alignment", "theta")
TABLES = ("shares", "weights", "value_sizes", "score_sizes")


class DissipativeBlocks(Rule):
    """Bounded from every start by one quadratic inequality for each block of coordinates."""

    name: ClassVar[str] = "dissipative-blocks"
    theorem: ClassVar[str] = "heads on coordinates of their own, each of opposite signs: bounded"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Check the metric, the constants of each block, and their sum."""
        with precision(BITS), np.errstate(all="ignore"):
            _check(problem, claim)

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Bounded for every A, with the bound for this one."""
        count = len(claim.arrays.get("constants", ()))
        where = f", where W has {count} blocks, as the heads act on coordinates of their own"
        return say(problem, claim, where)


def block_claim(claim: Claim, index: int) -> Claim:
    """Part of a claim that is about one block, as one of the rule for all coordinates.

    Parameters
    ----------
    claim : Claim
    index : int
        Number of the block, from 0.
    """
    constants = claim.arrays["constants"][index].tolist()
    arrays = {
        name: claim.arrays[f"{name} {index}"]
        for name in TABLES
        if f"{name} {index}" in claim.arrays
    }
    return Claim("dissipative", numbers=dict(zip(CONSTANTS, constants, strict=True)), arrays=arrays)


def _check(problem: CertificationProblem, claim: Claim) -> None:
    d = problem.dim
    if len({len(p.heads) for p in problem.vertices}) > 1:
        raise Refuted("a vertex of the family has other heads than the first")
    blocks = components(problem.vertices)
    matrix(claim, "constants", len(blocks), len(CONSTANTS))
    if sum(block.size for block in blocks) != d:
        raise Refuted("there are coordinates on which no head acts")
    table = matrix(claim, "metric", d, d)
    if not np.array_equal(table, table.T):
        raise Refuted("the metric W is not symmetric")
    outside = np.ones((d, d), dtype=bool)
    theta: Ball = ball(0.0)
    for k, block in enumerate(blocks):
        chosen = np.ix_(block, block)
        outside[chosen] = False
        W = enclose(table[chosen])
        if not W.positive_definite():
            raise Refuted(f"block {k + 1} of the metric W is not proved to be positive definite")
        own = block_claim(claim, k)
        check_attention(W, merge_families([restricted(p, block) for p in problem.vertices]), own)
        theta += ball(number(own, "theta"))
    if np.any(table[outside]):
        raise Refuted("the metric W mixes the blocks")
    if not ball(number(claim, "theta")) >= theta:
        raise Refuted("θ is not proved to be as large as the sum over the blocks")
    check_bound(enclose(table), problem, claim)

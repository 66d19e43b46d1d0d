"""Metrics for heads that act on coordinates of their own, found block by block."""

from __future__ import annotations

import math

import numpy as np

from ..._check import Array
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..rules.dissipative_blocks import CONSTANTS, TABLES
from ..theory.components import components, restricted
from ..theory.heads import merge_families
from . import metrics

__all__ = ["find"]


def find(problem: CertificationProblem) -> Claim | None:
    """Propose a dissipative inequality with a metric of several blocks; None if there is none.

    Parameters
    ----------
    problem : CertificationProblem
        Its vertices have equally many heads, at least one.
    """
    d = problem.dim
    blocks = components(problem.vertices)
    if len(blocks) < 2 or sum(block.size for block in blocks) != d:
        return None
    W, constants = np.zeros((d, d)), np.zeros((len(blocks), len(CONSTANTS)))
    arrays: dict[str, Array] = {}
    for k, block in enumerate(blocks):
        vertices = tuple(restricted(p, block) for p in problem.vertices)
        found = metrics.find(CertificationProblem(vertices), merge_families(vertices))
        if found is None:
            return None
        W[np.ix_(block, block)] = found.arrays["metric"]
        constants[k] = [found.numbers[name] for name in CONSTANTS]
        arrays |= {f"{name} {k}": found.arrays[name] for name in TABLES}
    theta = float(np.sum(constants[:, CONSTANTS.index("theta")])) * (1 + metrics.MARGIN)
    numbers = metrics.bounds(problem, W, theta)
    if numbers is None or not math.isfinite(theta):
        return None
    arrays |= {"metric": W, "constants": constants}
    return Claim("dissipative-blocks", numbers=numbers, arrays=arrays)

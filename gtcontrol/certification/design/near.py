"""The value matrix of parameters that a design is to stay near."""

from __future__ import annotations

import numpy as np

from ..._check import Array
from ...gaussian import Gaussian, norm
from ...parameters import Parameters
from ...problem.bounds import Bounds

__all__ = ["LARGEST_GENERAL", "contraction", "unusable"]

#: Largest dimension in which V may be any matrix: the inequality has order d(d + 1)/2.
LARGEST_GENERAL = 10

#: Relative rate of contraction that counts as none.
LEAST = 1e-9


def contraction(target: Gaussian, V: Array) -> tuple[float, float]:
    """Rate of the mean in the metric of a target of full rank, and the smallest that counts.

    M = A + V S B is skew in this metric at the equilibrium, whatever A and B are, so it drops out
    of the symmetric part of V + M.

    Parameters
    ----------
    target : Gaussian
    V : (d, d) array
    """
    inner = np.asarray(np.linalg.solve(target.factor, V @ target.factor), dtype=np.float64)
    rate = -0.5 * float(np.linalg.eigvalsh(inner + inner.T)[-1])
    return rate, LEAST * norm(inner)


def unusable(target: Gaussian, near: Parameters, mean_rate: float | None, bounds: Bounds) -> str:
    """Why the V of given parameters cannot make a target attracting; empty if it can.

    Parameters
    ----------
    target : Gaussian
        Of full rank.
    near : Parameters
        Of one head.
    mean_rate : float or None
        Rate at which the mean has to approach.
    bounds : Bounds
        Of which those on V count.
    """
    V, d = near.heads[0][0], target.dim
    if not V.any():
        return "it is zero"
    general = not np.array_equal(V, V[0, 0] * np.eye(d))
    if general and d > LARGEST_GENERAL:
        return f"it is no multiple of the identity, and the dimension exceeds {LARGEST_GENERAL}"
    with np.errstate(all="ignore"):
        rate, least = contraction(target, V)
    if not rate > least:
        return (
            "it does not contract in the metric of the target (the largest relative eigenvalue of "
            f"S⁻¹V + VᵀS⁻¹ is {-2 * rate:.6g}, which must be negative)"
        )
    caps = ((bounds.entries, float(np.max(np.abs(V)))), (bounds.norms, norm(V)))
    if any(size > given.get("V", np.inf) for given, size in caps):
        return "it exceeds the bounds on V"
    if mean_rate is not None and mean_rate > rate * (1 + LEAST):
        return f"with it the mean is only sure to approach at rate {rate:.6g}"
    return ""

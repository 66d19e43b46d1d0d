"""From the motion of a Gaussian to Transformer parameters that move it exactly so."""

from __future__ import annotations

import numpy as np
from scipy.linalg import norm, solve_triangular

from ..._check import Array
from ...errors import InvalidMethod
from ...parameters import Parameters

__all__ = ["BIAS_TOLERANCE", "factorise"]

#: A bias below this fraction of the terms whose difference it is counts as zero.
BIAS_TOLERANCE = 1e-9


def factorise(
    mean: Array, factor: Array, mean_rate: Array, factor_rate: Array, controls: str = "AVBb"
) -> Parameters:
    """Parameters under which the law (mean, factor) has the given rates.

    The generator M = L' L⁺ is the one of least norm with M L = L'.  With A enabled, A = M and
    V = B = 0.  Without A, attention acts as M on the range of S: V = M/κ, B = κ S⁺, with
    κ = max(1, √(|M|/|S⁺|)); then b = m' - (M + V) m.  The root makes |V| = |B|, but for a small
    covariance it would make V so large that the mean, m' = (M + V) m + b, becomes unstable;
    κ >= 1 keeps |V| <= |M|.

    Without b the mean has to be moved by the matrices.  If B is not needed, V = c mᵀ/|m|² with
    c = m' - M m.  If it is, κ = -1 makes M + V = 0, so that the mean stands still.

    Parameters
    ----------
    mean, mean_rate : (d,) arrays
        m and m'.
    factor, factor_rate : (d, r) arrays
        L of full column rank, and L'.
    controls : str
        The enabled controls, e.g. "VBb".

    Raises
    ------
    InvalidMethod
        If the enabled controls cannot give these rates.
    """
    d, r = factor.shape
    zero = np.zeros((d, d))
    A = V = B = M = zero
    attention = False
    if r and np.any(factor_rate):
        orthonormal, triangle = np.linalg.qr(factor)
        pseudo_inverse = solve_triangular(triangle, orthonormal.T, check_finite=False)
        M = factor_rate @ pseudo_inverse
        if "A" in controls:
            A = M
        elif "V" in controls and "B" in controls:
            attention = True
            V, B = _attention(M, pseudo_inverse.T @ pseudo_inverse, balanced="b" in controls)
        else:
            raise InvalidMethod(
                f"`controls` = {controls!r} cannot move the covariance (|L' L⁺| = "
                f"{np.linalg.norm(M):.3g} is needed); enable A, or V and B."
            )
    drift = (M + V) @ mean
    bias = mean_rate - drift
    if "b" in controls:
        return Parameters.trusted(A, B, V, bias)
    size = float(np.linalg.norm(bias))
    scale = float(np.linalg.norm(mean_rate)) + _drift_scale(M + V, mean)
    if size > BIAS_TOLERANCE * scale:
        if attention or "V" not in controls or not np.any(mean):
            raise InvalidMethod(
                f"`controls` = {controls!r} cannot move the mean along this path without a bias "
                f"(|b| = {size:.3g} is needed); enable b, or use method 'zero-bias'."
            )
        direction = mean / np.linalg.norm(mean)
        V = np.outer(bias, direction) / np.linalg.norm(mean)
    return Parameters.trusted(A, B, V, np.zeros(d))


def _attention(M: Array, precision: Array, *, balanced: bool) -> tuple[Array, Array]:
    """V (d, d) and B (d, d) with V S B = M on the range of S."""
    kappa = -1.0
    if balanced:
        # SciPy's norm does not overflow where squares of entries do.
        kappa = max(1.0, float(np.sqrt(norm(M)) / np.sqrt(norm(precision))))
    return M / kappa, kappa * precision


def _drift_scale(M: Array, mean: Array) -> float:
    return float(np.linalg.norm(M) * np.linalg.norm(mean))

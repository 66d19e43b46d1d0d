"""The vector field, written once with ``+``, ``@`` and ``.T``.

NumPy arrays and CasADi expressions alike can be passed, so that simulation and
transcription integrate the very same formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["generator", "rates"]

# Arrays of either library: a common static type does not exist.
Matrix = Any


def rates(
    mean: Matrix, factor: Matrix, A: Matrix, heads: Sequence[Any], b: Matrix
) -> tuple[Matrix, Matrix]:
    """Time derivatives of mean and factor.

        L' = A L + Σ_h V_h L (Lᵀ B_h L),
        m' = A m + b + Σ_h V_h (m + L Lᵀ (B_h m + β_h)).

    S = L Lᵀ then obeys S' = M S + S Mᵀ with M = A + Σ_h V_h S B_h; S is never formed, so
    the cost is O(d² r).  (Exponential tilting of a Gaussian; Alcalde, Ji, Zuazua 2026.)

    Parameters
    ----------
    mean : (d,) or (d, 1)
    factor : (d, r)
    A : (d, d)
    heads : sequence of (V (d, d), B (d, d), β like `mean` or None)
    b : like `mean`

    Returns
    -------
    mean_rate, factor_rate
        Like `mean` and `factor`.
    """
    mean_rate = A @ mean + b
    factor_rate = A @ factor
    for V, B, beta in heads:
        tilt = B @ mean if beta is None else B @ mean + beta
        mean_rate = mean_rate + V @ (mean + factor @ (factor.T @ tilt))
        factor_rate = factor_rate + V @ (factor @ (factor.T @ (B @ factor)))
    return mean_rate, factor_rate


def generator(covariance: Matrix, A: Matrix, heads: Sequence[Any]) -> Matrix:
    """Generator M = A + Σ_h V_h S B_h of the affine token map, shape (d, d)."""
    M = A
    for V, B, _ in heads:
        M = M + V @ covariance @ B
    return M

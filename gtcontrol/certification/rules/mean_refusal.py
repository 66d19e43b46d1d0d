"""Why no mean is attracted at a positive definite equilibrium if tr Σ V_h >= 0.

Without noise M S* + S* Mᵀ = 0, so M = Ω S*⁻¹ with Ω skew and tr M = 0.  The Jacobian of the mean,
M + Σ V_h, then has the trace of Σ V_h, and the sum of its eigenvalues is not negative.
"""

from __future__ import annotations

from ...arithmetic import fractions
from ...parameters import Parameters

__all__ = ["refusal"]


def refusal(parameters: Parameters) -> str:
    """Why no positive definite equilibrium has a stable mean; empty if the theorem is silent."""
    p = parameters
    if p.noise is not None and p.noise.any():
        return ""
    trace = sum(
        (fractions.fraction(x) for V, _, _ in p.heads for x in V.diagonal()),
        fractions.fraction(0.0),
    )
    if trace < 0:
        return ""
    return f"No mean is stable there: its Jacobian has the trace of V, {float(trace):.6g} >= 0."

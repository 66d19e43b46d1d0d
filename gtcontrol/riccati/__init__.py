"""Value matrices V = v I: the covariance obeys a Riccati equation with a closed form.

S' = A S + S Aᵀ + S K S with K = Σ_h v_h (B_h + B_hᵀ).  These modules are the oracles of the rest of
the package, so they do not import the vector field.
"""

from __future__ import annotations

from .crossing import blow_up
from .flow import transition
from .status import Crossing, CrossingStatus
from .terms import quadratic_term, scalar_values

__all__ = [
    "Crossing",
    "CrossingStatus",
    "blow_up",
    "quadratic_term",
    "scalar_values",
    "transition",
]

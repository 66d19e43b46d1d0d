"""Value matrices V = v I: the covariance obeys a Riccati equation with a closed form.

S' = A S + S Aᵀ + S K S with K = Σ_h v_h (B_h + B_hᵀ).  These modules are the oracles of the rest of
the package, so they do not import the vector field.
"""

from __future__ import annotations

from .bernoulli import Attractor, AttractorKind, attractor
from .crossing import blow_up
from .equilibria import Equilibria, Equilibrium, equilibria
from .flow import transition
from .solution import covariance_at, factor_at
from .status import Crossing, CrossingStatus
from .terms import quadratic_term, scalar_values

__all__ = [
    "Attractor",
    "AttractorKind",
    "Crossing",
    "CrossingStatus",
    "Equilibria",
    "Equilibrium",
    "attractor",
    "blow_up",
    "covariance_at",
    "equilibria",
    "factor_at",
    "quadratic_term",
    "scalar_values",
    "transition",
]

"""The rules: one module for each theorem, which states a claim in words and checks its data.

Rules use exact and ball arithmetic only, never a solver, so that a saved certificate can be
checked from its file alone.  To add a rule, write such a module and name it in :data:`RULES`.
"""

from __future__ import annotations

from ...errors import ResultFileInvalid
from .base import Rule
from .blow_up_bracket import BlowUpBracketRule
from .designed_attractor import DesignedAttractor
from .designed_locally import DesignedLocally
from .integration import IntegrationRule
from .riccati_bound import UltimateBound as RiccatiBound
from .riccati_limit import Limit
from .riccati_signs import EveryStartBlowsUp, EveryStartFades, NoStartBlowsUp, Threshold
from .riccati_time import BlowUpTime, NoBlowUp, Tangency
from .dissipative import Dissipative
from .integration import IntegrationRule
from .no_quadratic_certificate import (
    AntistableValue,
    CommonIsotropy,
    IndefiniteScore,
    ValueSpectrum,
)
from .rank_one_quadrature import RankOneBlowUp, RankOneLimit
from .spectral_blow_up import SpectralBlowUp, SpectralBlowUpData
from .ray_blow_up import RayBlowUp
from .ray_existence import RayExistence
from .blow_up_lower import BlowUpLower
from .blow_up_upper import BlowUpUpper
from .decay import Decay
from .ultimate_bound import UltimateBound
from .local_stability import LocalStabilityRule
from .mean_stability import MeanStabilityRule
from .unstable_equilibrium import UnstableEquilibriumRule

__all__ = ["RULES", "rule"]

_ALL: tuple[Rule, ...] = (
    IntegrationRule(),
    BlowUpTime(),
    NoBlowUp(),
    Tangency(),
    NoStartBlowsUp(),
    EveryStartBlowsUp(),
    EveryStartFades(),
    Threshold(),
    RiccatiBound(),
    Limit(),
    BlowUpBracketRule(),
    Dissipative(),
    SpectralBlowUp(),
    SpectralBlowUpData(),
    RankOneBlowUp(),
    RankOneLimit(),
    IndefiniteScore(),
    CommonIsotropy(),
    ValueSpectrum(),
    AntistableValue(),
    RayBlowUp(),
    RayExistence(),
    UltimateBound(),
    Decay(),
    BlowUpUpper(),
    BlowUpLower(),
    LocalStabilityRule(),
    MeanStabilityRule(),
    UnstableEquilibriumRule(),
)
_ALL: tuple[Rule, ...] = (IntegrationRule(), DesignedAttractor(), DesignedLocally())

#: Every rule by its name.
RULES: dict[str, Rule] = {made.name: made for made in _ALL}


def rule(name: str) -> Rule:
    """Rule of a name that a claim carries."""
    if name not in RULES:
        raise ResultFileInvalid(f"the certificate names an unknown rule {name!r:.60}.")
    return RULES[name]

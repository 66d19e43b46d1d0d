"""The rules: one module for each theorem, which states a claim in words and checks its data.

Rules use exact and ball arithmetic only, never a solver, so that a saved certificate can be
checked from its file alone.  To add a rule, write such a module and name it in :data:`RULES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import ResultFileInvalid
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from . import (
    blow_up_bracket,
    blow_up_lower,
    blow_up_upper,
    captured_rank,
    captured_start,
    decay,
    designed_attractor,
    designed_locally,
    dissipative,
    dissipative_blocks,
    integration,
    invariant_start,
    linear_flow,
    local_stability,
    mean_stability,
    no_quadratic_certificate,
    norm_growth,
    rank_one_quadrature,
    ray_blow_up,
    ray_existence,
    riccati_bound,
    riccati_growth,
    riccati_limit,
    riccati_noise_limit,
    riccati_signs,
    riccati_time,
    riccati_unseen,
    scalar_equation,
    spectral_blow_up,
    standing_start,
    turning_limit,
    ultimate_bound,
    uniform_drift,
    unstable_equilibrium,
)
from .base import Refuted, Rule, Statement

__all__ = ["RULES", "reading", "rule", "statement"]

#: What damaged data raise: a key, a shape or a number that is not there.
_DAMAGED = (Refuted, LookupError, TypeError, ValueError, ArithmeticError)

_ALL: tuple[Rule, ...] = (
    # V = v I
    riccati_time.BlowUpTime(),
    riccati_time.NoBlowUp(),
    riccati_time.Tangency(),
    riccati_signs.NoStartBlowsUp(),
    riccati_signs.EveryStartBlowsUp(),
    riccati_signs.EveryStartFades(),
    riccati_signs.Threshold(),
    riccati_bound.UltimateBound(),
    riccati_limit.Limit(),
    riccati_unseen.UnseenModes(),
    riccati_growth.Growth(),
    riccati_noise_limit.NoiseLimit(),
    linear_flow.LinearFlow(),
    invariant_start.InvariantStart(),
    uniform_drift.UniformDrift(),
    turning_limit.TurningLimit(),
    scalar_equation.ScalarEquation(),
    # equilibria at once
    standing_start.StandingStart(),
    # tests of order d
    dissipative.Dissipative(),
    dissipative_blocks.DissipativeBlocks(),
    no_quadratic_certificate.IndefiniteScore(),
    no_quadratic_certificate.CommonIsotropy(),
    no_quadratic_certificate.ValueSpectrum(),
    no_quadratic_certificate.AntistableValue(),
    spectral_blow_up.SpectralBlowUp(),
    spectral_blow_up.SpectralBlowUpData(),
    rank_one_quadrature.RankOneBlowUp(),
    rank_one_quadrature.RankOneLimit(),
    ray_blow_up.RayBlowUp(),
    ray_existence.RayExistence(),
    norm_growth.NormGrowth(),
    # matrix inequalities
    ultimate_bound.UltimateBound(),
    decay.Decay(),
    blow_up_upper.BlowUpUpper(),
    blow_up_lower.BlowUpLower(),
    # Taylor steps
    blow_up_bracket.BlowUpBracket(),
    # equilibria
    local_stability.LocalStability(),
    mean_stability.MeanStability(),
    captured_start.CapturedStart(),
    captured_rank.CapturedRank(),
    unstable_equilibrium.UnstableEquilibrium(),
    designed_attractor.DesignedAttractor(),
    designed_locally.DesignedLocally(),
    # evidence
    integration.AccurateIntegration(),
)

#: Every rule by its name.
RULES: dict[str, Rule] = {made.name: made for made in _ALL}


def rule(name: str) -> Rule:
    """Rule of a name that a claim carries."""
    if name not in RULES:
        raise ResultFileInvalid(f"the certificate names an unknown rule {name!r:.60}.")
    return RULES[name]


@contextmanager
def reading(claim: Claim) -> Iterator[None]:
    """Read the data of a claim, which may have come from a file and never been proved.

    Raises
    ------
    ResultFileInvalid
        If they are so damaged that they cannot be put into words or pictures.
    """
    try:
        yield
    except ResultFileInvalid:
        raise
    except _DAMAGED as error:
        what = str(error) or type(error).__name__
        raise ResultFileInvalid(
            f"the data of the claim {claim.rule!r} are damaged ({what})."
        ) from None


def statement(problem: CertificationProblem, claim: Claim) -> Statement:
    """What a claim says, which may have been read from a file and never been proved.

    Raises
    ------
    ResultFileInvalid
        If its data are damaged.
    """
    theorem = rule(claim.rule)
    with reading(claim):
        return theorem.state(problem, claim)

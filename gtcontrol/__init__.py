"""Control design for Gaussian Transformer dynamics.

The public names are loaded when they are first used, so that importing the package is
cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import pretrained as pretrained
    from .certification.bracket.run import blow_up as blow_up
    from .certification.design.run import design as design
    from .certification.equilibria.run import equilibria as equilibria
    from .certification.run import certify as certify
    from .certification.verification import Verification as Verification, verify as verify
    from .comparison.feedback.systems import to_control as to_control
    from .comparison.feedback.tracking import track as track
    from .comparison.filtering.flow import filter_schedule as filter_schedule
    from .comparison.filtering.measurements import simulate_measurements as simulate_measurements
    from .comparison.filtering.run import filter_by_attention as filter_by_attention
    from .comparison.kalman.discrete import (
        LayerComparison as LayerComparison,
        compare_layers as compare_layers,
        kalman_layers as kalman_layers,
    )
    from .comparison.kalman.realisation import realise_noise as realise_noise
    from .comparison.kalman.riccati import riccati as riccati
    from .comparison.kalman.run import compare as compare
    from .errors import GtcontrolError as GtcontrolError
    from .feedforward import FeedForward as FeedForward
    from .finite_attention.closure import (
        AttentionSlope as AttentionSlope,
        attention_slope as attention_slope,
    )
    from .finite_tokens import FiniteTokens as FiniteTokens
    from .gaussian import Gaussian as Gaussian, wasserstein as wasserstein
    from .mixture import Mixture as Mixture
    from .parameters import Parameters as Parameters
    from .pretrained.export.check import check_export as check_export
    from .pretrained.export.run import to_torch as to_torch
    from .problem.bounds import Bounds as Bounds
    from .problem.costs import (
        ControlEnergy as ControlEnergy,
        KineticEnergy as KineticEnergy,
        MinimumTime as MinimumTime,
    )
    from .problem.measurements import Measurements as Measurements
    from .results.blow_up import BlowUp as BlowUp
    from .results.certificate import Certificate as Certificate
    from .results.claims import Claim as Claim
    from .results.closeness import Closeness as Closeness
    from .results.comparison import Comparison as Comparison
    from .results.design import Design as Design
    from .results.equilibria import Equilibrium as Equilibrium
    from .results.export import ExportCheck as ExportCheck
    from .results.filtering import FilterRun as FilterRun
    from .results.gaussianity import Gaussianity as Gaussianity
    from .results.mixture import MixtureRun as MixtureRun
    from .results.reachability import Reachability as Reachability
    from .results.riccati import RiccatiSolution as RiccatiSolution
    from .results.steering import Steering as Steering
    from .results.storage import load as load
    from .results.tokens import TokenCheck as TokenCheck
    from .results.tracking import Tracking as Tracking
    from .results.trajectory import Trajectory as Trajectory
    from .results.validation import Validation as Validation
    from .riccati_flow.kalman import KalmanModel as KalmanModel
    from .schedule import Schedule as Schedule
    from .simulation.run import simulate as simulate
    from .status import (
        Definiteness as Definiteness,
        RiccatiStatus as RiccatiStatus,
        Status as Status,
        Verdict as Verdict,
    )
    from .steering.exact.path import GaussianPath as GaussianPath
    from .steering.exact.reachability import reachable as reachable
    from .steering.run import steer as steer
    from .validation.departure import Departure as Departure, detect_departure as detect_departure
    from .validation.mixtures import follow_mixture as follow_mixture
    from .validation.run import validate as validate
    from .validation.seeds import simulate_token_seeds as simulate_token_seeds
    from .validation.shape import gaussianity as gaussianity
    from .validation.short_times import closeness as closeness
    from .validation.tokens import (
        TokenRun as TokenRun,
        check_tokens as check_tokens,
        simulate_tokens as simulate_tokens,
    )

__version__ = "0.1.0"

#: Public name -> module that defines it.
_HOMES = {
    "AttentionSlope": "finite_attention.closure",
    "FiniteTokens": "finite_tokens",
    "attention_slope": "finite_attention.closure",
    "BlowUp": "results.blow_up",
    "Bounds": "problem.bounds",
    "Certificate": "results.certificate",
    "Claim": "results.claims",
    "Closeness": "results.closeness",
    "Comparison": "results.comparison",
    "ControlEnergy": "problem.costs",
    "Definiteness": "status",
    "Equilibrium": "results.equilibria",
    "Design": "results.design",
    "ExportCheck": "results.export",
    "FeedForward": "feedforward",
    "FilterRun": "results.filtering",
    "Gaussian": "gaussian",
    "GaussianPath": "steering.exact.path",
    "Gaussianity": "results.gaussianity",
    "GtcontrolError": "errors",
    "KalmanModel": "riccati_flow.kalman",
    "KineticEnergy": "problem.costs",
    "Measurements": "problem.measurements",
    "Mixture": "mixture",
    "MixtureRun": "results.mixture",
    "MinimumTime": "problem.costs",
    "Parameters": "parameters",
    "Reachability": "results.reachability",
    "RiccatiSolution": "results.riccati",
    "RiccatiStatus": "status",
    "Schedule": "schedule",
    "Status": "status",
    "Steering": "results.steering",
    "TokenCheck": "results.tokens",
    "Departure": "validation.departure",
    "detect_departure": "validation.departure",
    "TokenRun": "validation.tokens",
    "Tracking": "results.tracking",
    "Trajectory": "results.trajectory",
    "Validation": "results.validation",
    "Verdict": "status",
    "Verification": "certification.verification",
    "blow_up": "certification.bracket.run",
    "certify": "certification.run",
    "check_export": "pretrained.export.check",
    "check_tokens": "validation.tokens",
    "LayerComparison": "comparison.kalman.discrete",
    "compare": "comparison.kalman.run",
    "compare_layers": "comparison.kalman.discrete",
    "closeness": "validation.short_times",
    "equilibria": "certification.equilibria.run",
    "design": "certification.design.run",
    "kalman_layers": "comparison.kalman.discrete",
    "filter_by_attention": "comparison.filtering.run",
    "follow_mixture": "validation.mixtures",
    "gaussianity": "validation.shape",
    "filter_schedule": "comparison.filtering.flow",
    "load": "results.storage",
    "reachable": "steering.exact.reachability",
    "riccati": "comparison.kalman.riccati",
    "realise_noise": "comparison.kalman.realisation",
    "simulate": "simulation.run",
    "simulate_measurements": "comparison.filtering.measurements",
    "simulate_token_seeds": "validation.seeds",
    "simulate_tokens": "validation.tokens",
    "steer": "steering.run",
    "to_control": "comparison.feedback.systems",
    "to_torch": "pretrained.export.run",
    "track": "comparison.feedback.tracking",
    "validate": "validation.run",
    "verify": "certification.verification",
    "wasserstein": "gaussian",
}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604 - names, all strings


#: Public modules, imported when they are first used.
_MODULES = ("pretrained",)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'gtcontrol' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_MODULES])

"""What the rules for value matrices V_h = v_h I share: the exact system, and data of claims."""

from __future__ import annotations

import numpy as np

from ..._check import Array
from ...gaussian import Gaussian
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...riccati_flow.system import System
from ...riccati_flow.terms import scalar_values
from .base import Refuted, matrix

__all__ = ["exponents_of", "noise_of", "start_of", "steps_of", "system_of", "without_noise"]

#: Powers of two beyond which scaled coordinates leave the range of floats.
LARGEST_EXPONENT = 500


def system_of(problem: CertificationProblem) -> System:
    """Return A and the heads of one vertex whose value matrices are multiples of I.

    Raises
    ------
    Refuted
        If there are several vertices, or another value matrix.
    """
    if len(problem.vertices) != 1:
        raise Refuted("the rule is about constant parameters, not about a family")
    parameters = problem.parameters
    if scalar_values(parameters.heads) is None:
        raise Refuted("a value matrix V is not a multiple of the identity")
    return System(parameters.A, parameters.heads)


def noise_of(problem: CertificationProblem) -> Array | None:
    """Return the intensity of the noise, None if there is none."""
    noise = problem.parameters.noise
    return None if noise is None or not np.any(noise) else noise


def without_noise(problem: CertificationProblem) -> None:
    """Refuse a problem with noise.

    Raises
    ------
    Refuted
        If there is noise.
    """
    if noise_of(problem) is not None:
        raise Refuted("the rule is about parameters without process noise")


def start_of(problem: CertificationProblem) -> Gaussian:
    """Return the start.

    Raises
    ------
    Refuted
        If the problem has none.
    """
    if problem.start is None:
        raise Refuted("the rule needs a start, and the problem has none")
    return problem.start


def steps_of(claim: Claim) -> Array:
    """Return the steps of a claim, positive and finite.

    Raises
    ------
    Refuted
        If they are not.
    """
    steps = claim.arrays.get("steps")
    if steps is None or steps.ndim != 1 or steps.dtype != float:
        raise Refuted("the array `steps` of the claim is missing or not a vector")
    if not bool(np.all((steps > 0) & np.isfinite(steps))):
        raise Refuted("the steps of the claim are not all positive and finite")
    return steps


def exponents_of(claim: Claim, dim: int) -> Array:
    """Return the exponents by which a claim scales the coordinates.

    Raises
    ------
    Refuted
        If they are not whole numbers in range.
    """
    exponents = matrix(claim, "exponents", dim)
    if not bool(np.all((exponents == np.round(exponents)) & (abs(exponents) < LARGEST_EXPONENT))):
        raise Refuted("the exponents of the claim are not whole numbers in range")
    return exponents

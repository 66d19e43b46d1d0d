"""The bounds from a covariance near the blow-up to the blow-up itself, and their data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._check import Array
from ...parameters import Parameters
from .covariance import CovarianceFlow
from .rays import Cone, build_cone
from .spectral import Spectral, build_spectral, time_from_below

__all__ = ["Eigenvector", "Ray", "Restart", "build_restart"]

# FLINT has no stubs.
Ball = Any
Balls = Any


@dataclass(frozen=True, eq=False)
class Ray:
    """Floats that define a cone: see `rays.build_cone`.

    Parameters
    ----------
    ray, functional : (N,) arrays
    frame : (N, N - 1) array
    """

    ray: Array
    functional: Array
    frame: Array


@dataclass(frozen=True, eq=False)
class Eigenvector:
    """Floats that define a spectral bound: see `spectral.build_spectral`.

    Parameters
    ----------
    vector : (d, 2) array
    values : (H, 2) array
    """

    vector: Array
    values: Array


@dataclass(frozen=True, eq=False)
class Restart:
    """The bounds that could be built at a precision."""

    flow: CovarianceFlow
    cone: Cone | None
    spectral: tuple[Spectral, ...]

    def bracket(self, covariance: Balls) -> tuple[Ball | None, Ball | None]:
        """Bounds (early, late) on the time to the blow-up; None stands for inf.

        The covariance is given in the coordinates of the flow.
        """
        early, late = time_from_below(self.flow, covariance), None
        cone = None if self.cone is None else self.cone.bracket(covariance)
        if cone is not None:
            early, late = cone
        plain = self.flow.original(covariance)
        for bound in self.spectral:
            time = bound.time(plain)
            if time is not None and (late is None or time.upper() < late.upper()):
                late = time
        return early, late


def build_restart(
    parameters: Parameters,
    flow: CovarianceFlow,
    ray: Ray | None,
    eigenvectors: tuple[Eigenvector, ...],
) -> Restart:
    """Build the bounds at the precision that is set."""
    cone = None if ray is None else build_cone(flow, ray.ray, ray.functional, ray.frame)
    made = (build_spectral(parameters, e.vector, e.values) for e in eigenvectors)
    return Restart(flow, cone, tuple(s for s in made if s is not None))

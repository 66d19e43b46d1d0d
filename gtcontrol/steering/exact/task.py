"""A steering problem in the coordinates of its span, as the controllers see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..._check import Array
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...problem.definitions import SteeringProblem
from ...schedule import Law, Schedule
from ..reduction import reduce
from .decision import covariances_agree
from .nearest import off_range
from .path import GaussianPath

__all__ = ["Refusal", "Task"]


@dataclass(frozen=True)
class Refusal:
    """Why a method does not apply: one sentence that names the broken condition."""

    reason: str


@dataclass(frozen=True, eq=False)
class Task:
    """What a controller works on.

    Attributes
    ----------
    problem : SteeringProblem
        The problem as it was given, in all d coordinates.
    start, target : Gaussian
        The end points in the coordinates of `basis`, dimension k.
    basis : (d, k) array or None
        Orthonormal basis of the span of the end points; None if it is everything.
    path : GaussianPath or None
        The path to follow, for the method that follows one.
    same_covariance : bool
        Whether the covariance need not move.
    """

    problem: SteeringProblem
    start: Gaussian
    target: Gaussian
    basis: Array | None
    path: GaussianPath | None
    same_covariance: bool

    @classmethod
    def of(cls, problem: SteeringProblem, path: GaussianPath | None = None) -> Task:
        """Reduce a problem to the span of its end points."""
        inner = reduce(problem.start, problem.target)
        same = covariances_agree(inner.start, inner.target)
        return cls(problem, inner.start, inner.target, inner.basis, path, same)

    @property
    def horizon(self) -> float:
        """Duration T."""
        return self.problem.horizon

    @property
    def dim(self) -> int:
        """Dimension k of the coordinates."""
        return self.start.dim

    def enabled(self, letters: str) -> bool:
        """Whether all these controls are enabled."""
        return all(letter in self.problem.controls for letter in letters)

    def widened(self) -> Task:
        """Add one direction outside the span, if there is one, to turn in."""
        if self.basis is None:
            return self
        wide = np.concatenate([self.basis, off_range(self.basis)[:, None]], axis=1)
        start, target = (
            Gaussian.trusted(np.append(g.mean, 0.0), np.pad(g.factor, ((0, 1), (0, 0))))
            for g in (self.start, self.target)
        )
        return replace(self, start=start, target=target, basis=wide)

    def constant(self, parameters: Parameters) -> Schedule:
        """Schedule of parameters (dimension k) held on the whole horizon."""
        return Schedule([0.0, self.horizon], [parameters], basis=self.basis)

    def pieces(self, durations: Sequence[float], parameters: Sequence[Parameters]) -> Schedule:
        """Piecewise constant schedule; the durations add up to the horizon."""
        times = np.concatenate([[0.0], np.cumsum(durations)])
        times[-1] = self.horizon
        return Schedule(times, parameters, basis=self.basis)

    def varying(self, times: Sequence[float], laws: Sequence[Law]) -> Schedule:
        """Schedule of one smooth law (dimension k) per interval."""
        return Schedule.from_pieces(np.asarray(times), laws, self.dim, basis=self.basis)

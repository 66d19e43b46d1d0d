"""The plan that feedback is designed around: its law and parameters at each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...errors import InvalidMethod, InvalidShape
from ...gaussian import Gaussian
from ...problem.bounds import Bounds
from ...results.steering import Steering
from ...results.trajectory import Trajectory
from ...schedule import Piece
from ...status import Status

__all__ = ["Nominal", "nominal_of"]


@dataclass(frozen=True, eq=False)
class Nominal:
    """A plan in the coordinates in which it acts (those of its basis, or all).

    Attributes
    ----------
    trajectory : Trajectory
        The flow of the plan from its start.
    target : Gaussian
        Where it should end, in all d coordinates.
    controls : str
        Letters of the parameters that the plan may use.
    bounds : Bounds
    """

    trajectory: Trajectory
    target: Gaussian
    controls: str
    bounds: Bounds

    @property
    def horizon(self) -> float:
        """End of the plan."""
        return self.trajectory.problem.horizon

    @property
    def basis(self) -> Array | None:
        """Orthonormal basis of the subspace in which the plan acts, if any."""
        return self.trajectory.problem.schedule.basis

    @property
    def rank(self) -> int:
        """Rank r of the laws."""
        return self.trajectory.problem.start.rank

    @property
    def dim(self) -> int:
        """Dimension k of the coordinates in which the plan acts."""
        return self.trajectory.problem.start.dim if self.basis is None else self.basis.shape[1]

    @property
    def pieces(self) -> Iterator[Piece]:
        """Smooth pieces of the plan, in its own coordinates, up to the horizon."""
        for piece in self.trajectory.problem.schedule.pieces(inner=True):
            if piece.start < self.horizon * (1 - 1e-12):
                yield Piece(piece.start, min(piece.end, self.horizon), piece.law, piece.constant)

    def inner(self, law: Gaussian) -> tuple[Array, Array]:
        """Mean (k,) and factor (k, r) of a law in the plan's own coordinates."""
        U = self.basis
        return (law.mean, law.factor) if U is None else (U.T @ law.mean, U.T @ law.factor)

    def at(self, t: float) -> tuple[Array, Array]:
        """Mean (k,) and factor (k, r) of the plan at time t."""
        return self.inner(self.trajectory.at(min(t, float(self.trajectory.times[-1]))))

    @property
    def length(self) -> float:
        """Unit of length: root mean total variance of the ends, or the way of the mean."""
        ends = (self.trajectory.problem.start, self.target)
        spread = float(np.sqrt(np.mean([law.trace for law in ends])))
        way = float(np.linalg.norm(ends[1].mean - ends[0].mean))
        return spread or way or 1.0


def nominal_of(plan: Steering | Trajectory, controls: str | None) -> Nominal:
    """Check that a plan can be followed, and return it.

    Raises
    ------
    InvalidMethod, InvalidShape
        If it is no plan, did not arrive, has process noise, or consists of layers.
    """
    if isinstance(plan, Steering):
        if not plan.answered:
            raise InvalidMethod(
                f"`plan` did not arrive ({plan.status.name}); feedback needs a plan that does."
            )
        made = Nominal(
            plan.trajectory,
            plan.problem.target,
            plan.problem.controls if controls is None else controls,
            plan.problem.bounds,
        )
    elif isinstance(plan, Trajectory):
        if plan.status is not Status.SUCCESS:
            raise InvalidMethod(
                f"`plan` ends before its horizon ({plan.status.name}); feedback needs one that "
                "gets there."
            )
        if plan.problem.layers is not None:
            raise InvalidMethod(
                "`plan` consists of residual layers; feedback is for the flow: simulate it "
                "without `layers`."
            )
        if plan.problem.tokens is not None:
            raise InvalidMethod(
                "`plan` is a closure for finitely many tokens; feedback is for the mean field: "
                "simulate it without `tokens`."
            )
        made = Nominal(plan, plan.final, "AVBb" if controls is None else controls, Bounds())
    else:
        raise InvalidShape(
            "`plan` must be a Steering plan or the Trajectory of a schedule, not "
            f"{type(plan).__name__}."
        )
    if made.trajectory.problem.schedule.noisy:
        raise InvalidMethod("`plan` has process noise; feedback on factors cannot follow it.")
    return made

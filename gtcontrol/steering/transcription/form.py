"""Sizes and switches of a program, and the collocation tableau."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["NODES", "RUNGE_KUTTA", "WEIGHTS", "Form", "common_sizes"]

_ROOT = np.sqrt(3.0) / 6.0

#: Abscissae, weights and matrix of two-point Gauss–Legendre collocation.
NODES = np.array([0.5 - _ROOT, 0.5 + _ROOT])
WEIGHTS = np.array([0.5, 0.5])
RUNGE_KUTTA = np.array([[0.25, 0.25 - _ROOT], [0.25 + _ROOT, 0.25]])


@dataclass(frozen=True)
class Form:
    """Sizes and switches of a program; everything else is a parameter.

    Attributes
    ----------
    dim, rank : int
        Dimension d and number of columns r of the factor.
    mean : bool
        Whether the mean is a state.
    image : bool
        Whether the mean is m = L a with constant a (only A moves it) and must end as L₁ a₁.
    controls : str
        Enabled controls, of "AVBb".
    intervals : int
    points : int
        Controls per interval: 1 (piecewise constant) or 2 (one per collocation point).
    free_time : bool
        Whether the horizon is an unknown.
    norms : str
        Controls whose Frobenius norm is bounded.
    trace, eigenvalue : bool
        Whether trace or largest eigenvalue of the covariance is bounded along the path.
    stages : int
        Collocation points per interval: 2 (order 4), or 1, the midpoint rule (order 2), whose
        stage derivative is the difference quotient of the nodes and no unknown of its own.
    """

    dim: int
    rank: int
    mean: bool
    image: bool
    controls: str
    intervals: int
    points: int
    free_time: bool
    norms: str = ""
    trace: bool = False
    eigenvalue: bool = False
    stages: int = 2

    @property
    def state_size(self) -> int:
        """Entries of (L, m)."""
        return self.dim * self.rank + (self.dim if self.mean else 0)

    @property
    def node_size(self) -> int:
        """Entries of a node: the state, and the horizon when it is free."""
        return self.state_size + self.free_time

    @property
    def control_size(self) -> int:
        """Entries of the controls at one point."""
        return sum(self.dim if c == "b" else self.dim**2 for c in self.controls)

    @property
    def slack_size(self) -> int:
        """Entries of the triangular slack for the largest eigenvalue."""
        return self.rank * (self.rank + 1) // 2 if self.eigenvalue else 0

    @property
    def stage_size(self) -> int:
        """Unknowns of one interval: node, controls, slack, stage derivatives."""
        return self.node_size + self.points * self.control_size + self.slack_size + self.rate_size

    @property
    def rate_size(self) -> int:
        """Entries of the stage derivatives, as far as they are unknowns."""
        return 2 * self.state_size if self.stages == 2 else 0

    @property
    def window_size(self) -> int:
        """Unknowns that the rows of one interval see: with one stage, the next node too."""
        return self.stage_size + (self.node_size if self.stages == 1 else 0)

    @property
    def variables(self) -> int:
        """Unknowns of the whole program."""
        return self.intervals * self.stage_size + self.node_size

    @property
    def terminal_size(self) -> int:
        """Rows of the terminal set: independent, d r - r(r-1)/2 for the covariance."""
        r, d = self.rank, self.dim
        rows = d * r - r * (r - 1) // 2
        return rows + (d if self.mean else 0) + (r - 1 if self.image else 0)


def common_sizes(form: Form) -> dict[str, int]:
    """Parameters shared by all intervals, in order: names and sizes."""
    d, r = form.dim, form.rank
    sizes = {f"weight.{c}": 1 for c in form.controls}
    sizes |= {"weight.kinetic": 1, "weight.time": 1, "image": r if form.image else 0}
    sizes |= {f"norm.{c}": 1 for c in form.norms}
    sizes |= {"start": form.state_size, "whiten": r * d, "complement": (d - r) * d}
    sizes |= {"mean": d if form.mean else 0, "image.target": r * (r - 1) if form.image else 0}
    return sizes

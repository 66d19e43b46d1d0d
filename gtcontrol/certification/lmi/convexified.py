"""Linear matrix inequalities for W and a bound of y' from above, convexified about a given W₀.

With W scaled such that κ = 1, y' <= y² + a y + e asks for w wᵀ - Q(W) - P(Z) ⪰ 0, w = svec(W),
which is not convex.  As (w - w₀)(w - w₀)ᵀ ⪰ 0, it suffices to have w w₀ᵀ + w₀ wᵀ - w₀ w₀ᵀ in the
place of w wᵀ; at W₀ nothing is lost, so that repeated steps never lead back (the convex-concave
procedure, Yuille and Rangarajan 2003).
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from ..._check import Array
from ..theory.quadratic import smat, svec
from .model import Model, Part, Piece, Point
from .solver import solve

__all__ = ["ConvexifiedModel"]


class ConvexifiedModel(Model):
    """W, Λ, Z and e of y' <= y² + a y + e for a given a, about W₀.

    Parameters
    ----------
    order : int
        Dimension d.
    pieces : list of Piece
    W : (d, d) array
        W₀.
    linear : float
        The coefficient a.
    start : (d, d) array
        Covariance S₀.
    free_slack : bool
        Whether Z may have any sign.
    """

    def __init__(
        self,
        order: int,
        pieces: list[Piece],
        *,
        W: Array,
        linear: float,
        start: Array,
        free_slack: bool = False,
    ) -> None:
        p = order * (order + 1) // 2
        super().__init__(order, len(pieces), p + 1, multipliers=1, free_slack=free_slack)
        self._linear, self._centre = linear, svec(W)
        self._weights = cp.Parameter(2)
        constraints = [self.inside(self.symmetric(0, order))]
        fixed = np.zeros((p + 1, p + 1))
        fixed[:p, :p] = np.outer(self._centre, self._centre)
        for number, piece in enumerate(pieces):
            constraints.append(self.inside(self._block(number, piece), fixed))
            constraints += self.cones(number)
        x = self.unknowns
        objective = self._weights[0] * (svec(start) @ x[:p]) + self._weights[1] * x[p]
        self._problem = cp.Problem(cp.Minimize(objective), constraints)

    def solve(self, weights: tuple[float, float], margin: float) -> Point | None:
        """Minimise weights · (tr(W S₀), e)."""
        self._weights.value = np.array(weights) / max(weights)
        self.margin.value = margin
        if not solve(self._problem, attempts=2).has_point:
            return None
        x = np.asarray(self.unknowns.value)
        Lam, Z = self.multipliers_and_slacks()
        W = smat(x[: self.p], self.order)
        return Point(W, Lam[:, 0], Z, 1.0, self._linear, float(x[self.p]))

    def _block(self, number: int, piece: Piece) -> Any:
        p, w = self.p, self._centre[:, None]
        grid = np.arange((p + 1) ** 2).reshape(p + 1, p + 1)
        rows, eye = grid[:p, :p].ravel(), np.eye(p)
        parts: list[Part] = [
            (rows, np.kron(w, eye) + np.kron(eye, w) - piece.form, 0),
            (grid[p, p:], -piece.noise[None, :], 0),
            (grid[p, p:], np.ones((1, 1)), p),
            *self.slack_part(number, rows),
        ]
        for edge in (grid[p, :p], grid[:p, p]):
            parts.append((edge, (self._linear * eye - piece.drift) / 2, 0))
            parts.append((edge, -0.5 * eye, self.first(number)))
        return self.image(parts, p + 1)

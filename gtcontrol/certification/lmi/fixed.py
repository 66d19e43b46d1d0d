"""Linear matrix inequalities in which W is fixed, and the comparison equation is sought."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from ..._check import Array
from ..theory.quadratic import svec
from .model import Model, Part, Piece, Point
from .solver import Answer, solve

__all__ = ["FixedModel", "LevelModel"]

#: Bound on the coefficients κ, a, e in scaled units, where the data are near one.
LARGEST_COEFFICIENT = 1e2


class FixedModel(Model):
    """Λ, Z and the right-hand side κ y² + a y + e for a given W.

    Parameters
    ----------
    order : int
        Dimension d.
    pieces : list of Piece
    sign : int
        -1 for a bound of y' from above, +1 from below.
    W : (d, d) array
    free_slack : bool
        Whether Z may have any sign.
    """

    def __init__(
        self, order: int, pieces: list[Piece], *, sign: int, W: Array, free_slack: bool = False
    ) -> None:
        super().__init__(order, len(pieces), 3, multipliers=1, free_slack=free_slack)
        self._W, self._sign = W, sign
        self._weights = cp.Parameter(3)
        p, w = self.p, svec(W)
        grid = np.arange((p + 1) ** 2).reshape(p + 1, p + 1)
        constraints: list[Any] = []
        for number, piece in enumerate(pieces):
            fixed = np.zeros((p + 1, p + 1))
            fixed[:p, :p] = sign * (piece.form @ w).reshape(p, p)
            fixed[p, :p] = fixed[:p, p] = sign * (piece.drift @ w) / 2
            fixed[p, p] = sign * (piece.noise @ w)
            rows = grid[:p, :p].ravel()
            parts: list[Part] = [
                (rows, -sign * np.outer(w, w).reshape(-1, 1), 0),
                (grid[p, p:], np.full((1, 1), -float(sign)), 2),
                *self.slack_part(number, rows),
            ]
            for edge in (grid[p, :p], grid[:p, p]):
                parts += [(edge, -sign * w[:, None] / 2, 1)]
                parts += [(edge, -0.5 * np.eye(p), self.first(number))]
            constraints.append(self.inside(self.image(parts, p + 1), -fixed))
            constraints += self.cones(number)
        objective = self._weights @ self.unknowns[:3]
        # The sizes of coefficients are bounded: a linear functional alone may not be.
        constraints += [self.unknowns[:3] <= LARGEST_COEFFICIENT]
        constraints += [self.unknowns[:3] >= -LARGEST_COEFFICIENT]
        self._problem = cp.Problem(cp.Minimize(-sign * objective), constraints)

    def solve(
        self, weights: tuple[float, float, float], margin: float
    ) -> tuple[Answer, Point | None]:
        """Make weights · (κ, a, e) as small (σ = -1) or large (σ = +1) as possible."""
        self._weights.value = np.array(weights) / max(weights)
        self.margin.value = margin
        answer = solve(self._problem)
        if not answer.has_point:
            return answer, None
        Lam, Z = self.multipliers_and_slacks()
        k, a, e = (float(v) for v in np.asarray(self.unknowns.value)[:3])
        return answer, Point(self._W, Lam[:, 0], Z, k, a, e)


class LevelModel(Model):
    """The least κ with q_W(S) <= κ tr(W S)² for a given W.

    Parameters
    ----------
    order : int
        Dimension d.
    pieces : list of Piece
    W : (d, d) array
    free_slack : bool
        Whether Z may have any sign.
    """

    def __init__(
        self, order: int, pieces: list[Piece], *, W: Array, free_slack: bool = False
    ) -> None:
        super().__init__(order, len(pieces), 1, multipliers=0, free_slack=free_slack)
        self._W = W
        p, w = self.p, svec(W)
        rows = np.arange(p * p)
        constraints: list[Any] = []
        for number, piece in enumerate(pieces):
            form = (piece.form @ w).reshape(p, p)
            parts: list[Part] = [
                (rows, np.outer(w, w).reshape(-1, 1), 0),
                *self.slack_part(number, rows),
            ]
            constraints.append(self.inside(self.image(parts, p), form))
            constraints += self.cones(number)
        self._problem = cp.Problem(cp.Minimize(self.unknowns[0]), constraints)

    def solve(self, linear: float, margin: float) -> tuple[Answer, Point | None]:
        """Solve; the point has the coefficient `linear` of y, and Λ is implied."""
        self.margin.value = margin
        answer = solve(self._problem)
        if not answer.has_point:
            return answer, None
        _, Z = self.multipliers_and_slacks()
        quadratic = float(np.asarray(self.unknowns.value)[0])
        return answer, Point(self._W, None, Z, quadratic, linear, 0.0)

"""Decay to zero as a linear matrix inequality: no constant, so that Λ is determined by W."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from ..._check import Array
from ..theory.quadratic import smat, svec, unfolding
from .model import Model, Part, Piece, Point
from .solver import Answer, solve

__all__ = ["PinnedModel"]


class PinnedModel(Model):
    """W and Z with no constant: y' <= a y and -q_W dissipative, so that S decays; noise-free.

    Parameters
    ----------
    order : int
        Dimension d.
    pieces : list of Piece
    linear : float
        The rate a.
    floor : (d, d) array
        W ⪰ floor.
    free_slack : bool
        Whether Z may have any sign.
    damped : bool
        Whether there is a term y²/θ.
    """

    def __init__(
        self,
        order: int,
        pieces: list[Piece],
        *,
        linear: float,
        floor: Array,
        free_slack: bool = False,
        damped: bool = False,
    ) -> None:
        p = order * (order + 1) // 2
        super().__init__(order, len(pieces), p + 1, multipliers=0, free_slack=free_slack)
        self._linear, self._damped = linear, damped
        size = p + 1 if damped else p
        grid = np.arange(size * size).reshape(size, size)
        constraints = [self.inside(self.symmetric(0, order), floor)]
        for number, piece in enumerate(pieces):
            rows = grid[:p, :p].ravel()
            parts: list[Part] = [(rows, -piece.form, 0), *self.slack_part(number, rows)]
            if damped:
                parts += [(edge, np.eye(p), 0) for edge in (grid[p, :p], grid[:p, p])]
                parts.append((grid[p, p:], np.ones((1, 1)), p))
            decay = unfolding(order) @ (linear * np.eye(p) - piece.drift)
            constraints.append(self.inside(self.image(parts, size)))
            if np.any(decay):
                constraints.append(
                    self.inside(self.image([(np.arange(order**2), decay, 0)], order))
                )
            constraints += self.cones(number)
        # Without the term y²/θ the smallest W is wanted, so that the problem is bounded.
        target = self.unknowns[p] if damped else svec(np.eye(order)) @ self.unknowns[:p]
        if not damped:
            constraints.append(self.unknowns[p] == 1)
        self._problem = cp.Problem(cp.Minimize(target), constraints)

    def solve(self, margin: float) -> tuple[Answer, Point | None]:
        """Solve with matrices at least `margin` inside the cone."""
        self.margin.value = margin
        answer = solve(self._problem)
        if not answer.has_point:
            return answer, None
        x = np.asarray(self.unknowns.value)
        theta = float(x[self.p])
        if theta <= 0:
            return answer, None
        W, quadratic = smat(x[: self.p], self.order), -1.0 / theta if self._damped else 0.0
        _, Z = self.multipliers_and_slacks()
        return answer, Point(W, None, Z, quadratic, self._linear, 0.0)

"""Linear matrix inequalities on covariances that earlier certificates confine.

Once y_i = tr(W_i S) <= g_i is known, (g_i - y_i) ⟨M, S⟩ >= 0 and m (g_i - y_i) >= 0 for every M ⪰ 0
and m >= 0: terms of second and first order which the proof of the next inequality may use.  As the
set is bounded, y' <= -r (y - γ) serves there as well as a quadratic right-hand side, and with the
same slope at γ it asks for less: it is concave, hence below its tangent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from ..._check import Array
from ..theory.quadratic import smat, svec, unfolding
from .model import Model, Part, Piece, Point
from .solver import solve

__all__ = ["ConfinedModel", "Known", "Link"]


@dataclass(frozen=True, eq=False)
class Known:
    """That tr(W S) <= level, in scaled units."""

    W: Array
    level: float


@dataclass(frozen=True, eq=False)
class Link:
    """What a solver proposes: y' <= linear y + constant where K earlier inequalities hold.

    Parameters
    ----------
    point : Point
    products : (P, K, d, d) array
        M ⪰ 0 for each piece and earlier inequality.
    pushes : (P, K) array
        m >= 0 likewise.
    shares : (K,) array
        c_i >= 0 with Σ c_i W_i + W ⪰ floor.
    """

    point: Point
    products: Array
    pushes: Array
    shares: Array


class ConfinedModel(Model):
    """W, α and all multipliers for a given rate r: y' <= α - r y on a set of covariances.

    Parameters
    ----------
    order : int
        Dimension d.
    pieces : list of Piece
    known : tuple of Known
        What confines the covariances.
    floor : (d, d) array
        Σ c_i W_i + W ⪰ floor.
    free_slack : bool
        Whether Z may have any sign.
    """

    def __init__(
        self,
        order: int,
        pieces: list[Piece],
        known: tuple[Known, ...],
        *,
        floor: Array,
        free_slack: bool = False,
    ) -> None:
        p, K = order * (order + 1) // 2, len(known)
        #: Unknowns: svec(W), α, the c_i, and the m_i of each piece.
        leading = p + 1 + K + K * len(pieces)
        super().__init__(order, len(pieces), leading, multipliers=1 + K, free_slack=free_slack)
        self._known, self._normals = known, [svec(k.W) for k in known]
        self._rate = cp.Parameter(nonneg=True)
        self._costs = cp.Parameter(1 + K)
        x = self.unknowns
        columns = [np.eye(p), np.zeros((p, 1)), *(w[:, None] for w in self._normals)]
        total: list[Part] = [(np.arange(order**2), unfolding(order) @ np.hstack(columns), 0)]
        constraints = [self.inside(self.image(total, order), floor), x[p + 1 : leading] >= 0]
        for number, piece in enumerate(pieces):
            block = self._block(number, piece) + self._rate * self._slope()
            constraints.append(self.inside(block))
            constraints += self.cones(number)
        self._problem = cp.Problem(cp.Minimize(self._costs @ x[p : p + 1 + K]), constraints)

    def solve(self, rate: float, margin: float) -> tuple[float, Link | None]:
        """Minimise α/r + Σ c_i g_i, the bound that follows; inf and None if there is no point."""
        levels = np.array([k.level for k in self._known])
        self._rate.value = rate
        self._costs.value = np.concatenate([[1.0], rate * levels])
        self.margin.value = margin
        if not solve(self._problem, attempts=2).has_point:
            return np.inf, None
        x, p, K = np.asarray(self.unknowns.value), self.p, len(self._known)
        Lam, Z = self.multipliers_and_slacks()
        W, alpha = smat(x[:p], self.order), float(x[p])
        shares = np.maximum(x[p + 1 : p + 1 + K], 0.0)
        pushes = np.maximum(x[p + 1 + K : p + 1 + K + K * self.count], 0.0)
        point = Point(W, Lam[:, 0], Z, 0.0, -rate, alpha)
        link = Link(point, Lam[:, 1:], pushes.reshape(self.count, K), shares)
        return alpha / rate + float(shares @ levels), link

    def _block(self, number: int, piece: Piece) -> Any:
        """What does not depend on the rate."""
        p, K = self.p, len(self._known)
        grid = np.arange((p + 1) ** 2).reshape(p + 1, p + 1)
        rows = grid[:p, :p].ravel()
        one, eye = np.ones((1, 1)), np.eye(p)
        parts: list[Part] = [
            (rows, -piece.form, 0),
            (grid[p, p:], -piece.noise[None, :], 0),
            (grid[p, p:], one, p),
            *self.slack_part(number, rows),
        ]
        edges = (grid[p, :p], grid[:p, p])
        for edge in edges:
            parts += [(edge, -piece.drift / 2, 0), (edge, -0.5 * eye, self.first(number))]
        for k, (known, w) in enumerate(zip(self._known, self._normals, strict=True)):
            product = self.first(number) + (1 + k) * p
            push = p + 1 + K + number * K + k
            outer = np.kron(w[:, None], eye) + np.kron(eye, w[:, None])
            parts += [(rows, 0.5 * outer, product), (grid[p, p:], -known.level * one, push)]
            for edge in edges:
                parts += [(edge, -0.5 * known.level * eye, product), (edge, 0.5 * w[:, None], push)]
        return self.image(parts, p + 1)

    def _slope(self) -> Any:
        """Factor of the rate."""
        p = self.p
        grid = np.arange((p + 1) ** 2).reshape(p + 1, p + 1)
        parts: list[Part] = [(edge, -0.5 * np.eye(p), 0) for edge in (grid[p, :p], grid[:p, p])]
        return self.image(parts, p + 1)

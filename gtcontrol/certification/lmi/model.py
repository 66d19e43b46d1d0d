"""Linear matrix inequalities of quadratic certificates, compiled once and solved repeatedly.

For y = tr(W S) and a sign σ (-1: y is bounded from above, +1: from below), with
l = (σ svec(W A + AᵀW - a W) - svec Λ)/2 and Λ ⪰ 0, Z ⪰ 0,

    [ σ Q(W) - P(Z)   l               w ]
    [ lᵀ              σ tr(W Q) + α   0 ]  ⪰ 0    implies    σ y' >= σ a y - α + y²/θ,
    [ wᵀ              0               θ ]

by the Schur complement of θ and the test vector (svec S, 1).  All unknowns are one vector, and each
cone is the image of it under one sparse matrix, so that cvxpy has little to compile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from scipy import sparse

from ..._check import Array
from ..theory.quadratic import (
    drift_operator,
    quadratic_operator,
    slack_operator,
    smat,
    svec,
    unfolding,
)
from ..theory.scaling import Vertex
from .solver import Answer, solve

__all__ = ["JointModel", "Model", "Part", "Piece", "Point", "pieces_of"]

#: Rows of a block (flattened), the map of unknowns to them, the first of these unknowns.
Part = tuple[Any, Any, int]

#: Bound on the entries of W that is normalised by a start, in scaled units.
LARGEST_WEIGHT = 1e3


@dataclass(frozen=True, eq=False)
class Piece:
    """What one inequality is about, as linear maps of svec(W).

    Parameters
    ----------
    form : (p², p) array
        To the matrix of q_W.
    drift : (p, p) array
        To svec(W A + Aᵀ W).
    noise : (p,) array
        svec of the noise.
    """

    form: Array
    drift: Array
    noise: Array


def pieces_of(vertices: list[Vertex], wanted: tuple[tuple[int, int], ...]) -> list[Piece]:
    """Vertices and mixed pairs of a family; see `certification.theory.pieces`."""
    made = []
    for k, m in wanted:
        a, b = vertices[k], vertices[m]
        form = quadratic_operator(a.V, b.B)
        if k != m:
            form = 0.5 * (form + quadratic_operator(b.V, a.B))
        drift = drift_operator(0.5 * (a.A + b.A))
        made.append(Piece(form, drift, svec(0.5 * (a.noise + b.noise))))
    return made


@dataclass(frozen=True, eq=False)
class Point:
    """What a solver proposes, in scaled units: σ (y' - quadratic y² - linear y - constant) >= 0.

    Parameters
    ----------
    W : (d, d) array
    Lam : (P, d, d) array or None
        One for each piece; None if it is what makes l vanish.
    Z : (P, q, q) array
    quadratic, linear, constant : float
    """

    W: Array
    Lam: Array | None
    Z: Array
    quadratic: float
    linear: float
    constant: float


class Model:
    """Unknowns: some leading ones, then svec of the Λ and svec(Z) of each piece.

    Parameters
    ----------
    order : int
        Dimension d.
    count : int
        Number of pieces.
    leading : int
        Number of the leading unknowns.
    multipliers : int
        Number of matrices Λ of each piece.
    free_slack : bool
        Whether Z may have any sign (right in rank one).
    slack : bool
        Whether there are Z at all.
    """

    def __init__(
        self,
        order: int,
        count: int,
        leading: int,
        *,
        multipliers: int,
        free_slack: bool,
        slack: bool = True,
    ) -> None:
        self.order, self.count = order, count
        self.p = order * (order + 1) // 2
        self.q = order * (order - 1) // 2 if slack else 0
        self._leading, self.multipliers = leading, multipliers
        self._free = free_slack
        self.unknowns = cp.Variable(self.first(count))
        self.margin = cp.Parameter(nonneg=True)

    def first(self, number: int) -> int:
        """First unknown of a piece."""
        return self._leading + number * (self.multipliers * self.p + self.q * (self.q + 1) // 2)

    def slack_start(self, number: int) -> int:
        """First unknown of Z of a piece."""
        return self.first(number) + self.multipliers * self.p

    def image(self, parts: list[Part], size: int) -> Any:
        """Square matrix of order `size`, linear in the unknowns."""
        entries = [(rows, sparse.coo_matrix(part), start) for rows, part, start in parts]
        data = np.concatenate([m.data for _, m, _ in entries])
        row = np.concatenate([np.asarray(rows)[m.row] for rows, m, _ in entries])
        column = np.concatenate([m.col + start for _, m, start in entries])
        shape = (size * size, self.unknowns.size)
        made = sparse.csc_matrix((data, (row, column)), shape=shape)
        return (made @ self.unknowns).reshape((size, size), order="F")

    def inside(self, image: Any, shift: Array | None = None) -> Any:
        """Constraint that a matrix, minus `shift`, is at least the margin."""
        made = image - self.margin * np.eye(image.shape[0])
        return (made if shift is None else made - shift) >> 0

    def symmetric(self, start: int, order: int) -> Any:
        """Matrix of unknown coordinates."""
        return self.image([(np.arange(order * order), unfolding(order), start)], order)

    def cones(self, number: int) -> list[Any]:
        """Constraints Λ ⪰ 0 and Z ⪰ 0 of a piece."""
        starts = [self.first(number) + k * self.p for k in range(self.multipliers)]
        made = [self.inside(self.symmetric(start, self.order)) for start in starts]
        if self.q and not self._free:
            made.append(self.inside(self.symmetric(self.slack_start(number), self.q)))
        return made

    def slack_part(self, number: int, rows: Any) -> list[Part]:
        """-P(Z) of a piece."""
        if not self.q:
            return []
        return [(rows, -slack_operator(self.order), self.slack_start(number))]

    def multipliers_and_slacks(self) -> tuple[Array, Array]:
        """Values of all Λ, shape (P, k, d, d) with k of each piece, and of all Z."""
        x, d, p = np.asarray(self.unknowns.value), self.order, self.p
        Lam = np.zeros((self.count, self.multipliers, d, d))
        Z = np.zeros((self.count, self.q, self.q))
        for number in range(self.count):
            first, middle = self.first(number), self.slack_start(number)
            for k in range(self.multipliers):
                Lam[number, k] = smat(x[first + k * p : first + (k + 1) * p], d)
            if self.q:
                Z[number] = smat(x[middle : self.first(number + 1)], self.q)
        return Lam, Z


class JointModel(Model):
    """All of W, Λ, Z, α, θ at once.

    Parameters
    ----------
    order : int
        Dimension d.
    pieces : list of Piece
    sign : int
        -1 for dissipation, +1 for growth.
    linear : float
        The coefficient a of y.
    floor : (d, d) array, optional
        W ⪰ floor; without it W is any symmetric matrix.
    start : (d, d) array, optional
        tr(W start) = 1.
    free_slack : bool
        Whether Z may have any sign, which is right for covariances of rank one.
    damped : bool
        Whether there is a term y²/θ.
    slack : bool
        Whether there is a Z; without one the program is much smaller, and its points are only
        guides for the one with it.
    """

    def __init__(
        self,
        order: int,
        pieces: list[Piece],
        *,
        sign: int,
        linear: float = 0.0,
        floor: Array | None = None,
        start: Array | None = None,
        free_slack: bool = False,
        damped: bool = True,
        slack: bool = True,
    ) -> None:
        p = order * (order + 1) // 2
        super().__init__(
            order, len(pieces), p + 2, multipliers=1, free_slack=free_slack, slack=slack
        )
        self._sign, self._linear, self._damped = sign, linear, damped
        self._weights = cp.Parameter(2)
        constraints = []
        if floor is not None:
            constraints.append(self.inside(self.symmetric(0, order), floor))
        if start is not None:
            constraints.append(svec(start) @ self.unknowns[:p] == 1)
            # Where the start is thin W is hardly bounded, and solvers lose their way.
            constraints += [self.unknowns[:p] <= LARGEST_WEIGHT]
            constraints += [self.unknowns[:p] >= -LARGEST_WEIGHT]
        if not damped:
            constraints.append(self.unknowns[p + 1] == 1)
        for number, piece in enumerate(pieces):
            constraints.append(self.inside(self._block(number, piece)))
            constraints += self.cones(number)
        objective = self._weights @ self.unknowns[p : p + 2]
        self._problem = cp.Problem(cp.Minimize(objective), constraints)

    def solve(self, balance: float, margin: float) -> tuple[Answer, Point | None]:
        """Minimise α · balance + θ/balance, with matrices at least `margin` inside the cone."""
        self._weights.value = np.array([balance, 1.0 / balance])
        self.margin.value = margin
        answer = solve(self._problem)
        return answer, self._point() if answer.has_point else None

    def _point(self) -> Point | None:
        x = np.asarray(self.unknowns.value)
        Lam, Z = self.multipliers_and_slacks()
        alpha, theta = float(x[self.p]), float(x[self.p + 1])
        if theta <= 0:
            return None
        quadratic = self._sign / theta if self._damped else 0.0
        W = smat(x[: self.p], self.order)
        # A negative α is growth by noise; a bound from above has none.
        alpha = alpha if self._sign > 0 else max(alpha, 0.0)
        return Point(W, Lam[:, 0], Z, quadratic, self._linear, -self._sign * alpha)

    def _block(self, number: int, piece: Piece) -> Any:
        p, sign = self.p, self._sign
        size = p + 2 if self._damped else p + 1
        grid = np.arange(size * size).reshape(size, size)
        side = sign * (piece.drift - self._linear * np.eye(p)) / 2
        one = np.ones((1, 1))
        parts: list[Part] = [
            (grid[:p, :p].ravel(), sign * piece.form, 0),
            (grid[p, p : p + 1], sign * piece.noise[None, :], 0),
            (grid[p, p : p + 1], one, p),
            *self.slack_part(number, grid[:p, :p].ravel()),
        ]
        for edge in (grid[p, :p], grid[:p, p]):
            parts += [(edge, side, 0), (edge, -0.5 * np.eye(p), self.first(number))]
        if self._damped:
            parts += [(edge, np.eye(p), 0) for edge in (grid[p + 1, :p], grid[:p, p + 1])]
            parts.append((grid[p + 1, p + 1 :], one, p + 1))
        return self.image(parts, size)

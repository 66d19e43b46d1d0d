"""Blow-up along an attracting ray: an invariant cone, and two bounds that meet.

Let F(S) = Σ V S B S + transpose, and X a matrix with F(X) ≈ g X, g > 0: on the ray through X the
attention alone gives y' = g y².  With a functional w, w(X) = 1, write S = y (X + D), y = w(S),
w(D) = 0; let R be the linear map that takes the coordinates (1, z) to X + D, and G its inverse
without the first row.  In the time τ with dτ = y dt, with L(S) = A S + S A' and noise Q,

    y' = y² w(F(X + D)) + y w(L(X + D)) + w(Q),
    dz/dτ = G F(X + D) - z w(F(X + D)) + [G L(X + D) - z w(L(X + D))]/y + [G Q - z w(Q)]/y².

The linear part of the first two terms is a matrix J.  If its symmetric part is at most -γ < 0 (the
ray attracts), the right-hand side points inwards on the sphere |z| = ρ as soon as

    -γ ρ + r + (β + ω_1) ρ² + ω_2 ρ³ + (l_0 + l_1 ρ + l_2 ρ²)/y + (q_1 + |w(Q)| ρ)/y² < 0,

with bounds r, β, ω, l, q on the other terms.  The left-hand side falls as y grows, and y grows when
y w(F) + w(L) > 0, so the cone |z| <= ρ is then invariant up to the blow-up, and y' lies between
two scalar Riccati equations, whose blow-up times bound that of the covariance from both sides.  As
w is chosen to be the left eigenvector of J for the ray, their relative distance is O(ρ²) + O(ρ/y).
Nothing here depends on the rank of the covariance, on that of X, or on positivity.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from ..._check import Array
from ...arithmetic import balls, taylor
from ...arithmetic.elementary import riccati_time
from ...arithmetic.norms import eigenvalue_bound
from .covariance import CovarianceFlow

__all__ = ["Cone", "build_cone", "coordinates", "symmetric"]

# FLINT has no stubs.
Ball = Any
Balls = Any

#: Radii of cones that are tried, as multiples of the distance from the ray.
RADII = tuple(1.0 + 2.0**-k for k in (10, 6, 4, 2)) + tuple(2.0**k for k in range(1, 12))

#: Smallest radius that is tried: below it nothing is gained in double precision.
SMALLEST_RADIUS = 2.0**-60


def coordinates(matrix: Balls) -> Balls:
    """Lower triangle of a symmetric ball matrix as a column, row by row."""
    rows = matrix.tolist()
    return balls.column([rows[i][j] for i in range(len(rows)) for j in range(i + 1)])


def symmetric(column: Array) -> Array:
    """Symmetric matrix of floats with this lower triangle."""
    order = int((np.sqrt(8 * column.size + 1) - 1) / 2)
    made = np.zeros((order, order))
    made[np.tril_indices(order)] = column
    return np.asarray(made + np.tril(made, -1).T)


@dataclass(frozen=True, eq=False)
class Cone:
    """The constants of the theorem, all of them balls (see the head of this module)."""

    functional: Balls
    inverse: Balls
    forms: tuple[Ball, Ball, Ball]
    drifts: tuple[Ball, Ball]
    noise: Ball
    attraction: float
    inward: tuple[Ball, ...]

    def bracket(self, covariance: Balls) -> tuple[Ball, Ball] | None:
        """Bounds on the time from a covariance to the blow-up; None if no cone is proved."""
        y = (self.functional * coordinates(covariance))[0, 0]
        if not y > 0:
            return None
        z = self.inverse * coordinates(covariance) / y
        distance = taylor.norm(balls.column([z[i, 0] for i in range(1, z.nrows())]))
        for factor in RADII:
            radius = balls.ball(factor * max(balls.above(distance), SMALLEST_RADIUS))
            if distance < radius and self._invariant(radius, y):
                return self._times(radius, y)
        return None

    def _invariant(self, radius: Ball, y: Ball) -> bool:
        """Whether no solution leaves the cone of this radius once w(S) >= y in it."""
        rest, square, cube, l0, l1, l2, q1 = self.inward
        flux = -balls.ball(self.attraction) * radius + rest
        flux = flux + (square + cube * radius) * radius * radius
        flux = flux + (l0 + l1 * radius + l2 * radius * radius) / y
        return bool(flux + (q1 + abs(self.noise) * radius) / (y * y) < 0)

    def _times(self, radius: Ball, y: Ball) -> tuple[Ball, Ball] | None:
        w0, w1, w2 = self.forms
        a0, a1 = self.drifts
        spread, tilt = w1 * radius + w2 * radius * radius, a1 * radius
        gain, loss = self.noise.max(balls.ball(0.0)) / y, self.noise.min(balls.ball(0.0)) / y
        late = riccati_time(w0 - spread, a0 - tilt + loss, y)
        # Between the two Riccati equations y' lies only while y grows, which `late` proves.
        early = riccati_time(w0 + spread, a0 + tilt + gain, y)
        return None if late is None or early is None else (early, late)


def build_cone(flow: CovarianceFlow, ray: Array, functional: Array, frame: Array) -> Cone | None:
    """Constants of the cone around a ray; None if the ray is not proved to attract.

    Parameters
    ----------
    flow : CovarianceFlow
    ray : (N,) array
        Lower triangle of X, N = d (d + 1)/2.
    functional : (N,) array
        w as a row that acts on lower triangles.
    frame : (N, N - 1) array
        Columns that span the other directions; they are made to satisfy w(D) = 0 exactly.
    """
    w = balls.balls(functional).transpose()
    X = balls.balls(ray)
    scale = (w * X)[0, 0]
    if not scale > 0:
        return None
    X = X / scale
    columns = [X]
    for j in range(frame.shape[1]):
        column = balls.balls(frame[:, j])
        columns.append(column - X * (w * column)[0, 0])
    inverse = balls.inverse(balls.stacked([columns]))
    if inverse is None:
        return None
    basis = [_matrix(c, flow.A.nrows()) for c in columns]
    size = len(basis)
    forms: dict[tuple[int, int], list[Ball]] = {}
    for i, j in combinations_with_replacement(range(size), 2):
        made = inverse * coordinates(flow.form(basis[i], basis[j]))
        forms[i, j] = forms[j, i] = made.entries()
    drifts = [(inverse * coordinates(flow.drift(b))).entries() for b in basis]
    source = [balls.ball(0.0)] * size
    if flow.noise is not None:
        source = (inverse * coordinates(flow.noise)).entries()
    return _constants(w, inverse, forms, drifts, source)


def _constants(
    w: Balls,
    inverse: Balls,
    forms: dict[tuple[int, int], list[Ball]],
    drifts: list[list[Ball]],
    source: list[Ball],
) -> Cone | None:
    others = range(1, len(drifts))
    w0 = forms[0, 0][0]
    J = [[2 * forms[0, b][a] - (w0 if a == b else 0) for b in others] for a in others]
    symmetric_part = [[J[a][b] + J[b][a] for b in range(len(J))] for a in range(len(J))]
    attraction = -0.5 * eigenvalue_bound(balls.table(symmetric_part))
    if not attraction > 0:
        return None
    w1 = _size([2 * forms[0, a][0] for a in others])
    w2 = _size([forms[a, b][0] for a in others for b in others])
    twist = _size([forms[a, b][c] for a in others for b in others for c in others])
    a0, a1 = drifts[0][0], _size([drifts[a][0] for a in others])
    turn = _size([drifts[b][a] - (a0 if a == b else 0) for a in others for b in others])
    inward = (
        _size([forms[0, 0][a] for a in others]),
        twist + w1,
        w2,
        _size(drifts[0][1:]),
        turn,
        a1,
        _size(source[1:]),
    )
    return Cone(w, inverse, (w0, w1, w2), (a0, a1), source[0], attraction, inward)


def _size(entries: list[Ball]) -> Ball:
    """Euclidean norm."""
    return taylor.norm(balls.column(entries)) if entries else balls.ball(0.0)


def _matrix(column: Balls, order: int) -> Balls:
    """Symmetric ball matrix with this lower triangle."""
    entries = iter(column.entries())
    rows = [[balls.ball(0.0)] * order for _ in range(order)]
    for i in range(order):
        for j in range(i + 1):
            rows[i][j] = rows[j][i] = next(entries)
    return balls.table(rows)

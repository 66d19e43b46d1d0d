"""The plane (or line) in which laws of any dimension are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...gaussian import Gaussian
from ..wording import percent

__all__ = ["Plane", "plane_of"]

#: A second direction with less than this share of the variance makes the motion a line.
LINE = 1e-12

#: A change of the law below this share of its size does not choose the plane.
CHANGE = 1e-3

#: Coordinates of a size outside 10^LOW to 10^HIGH are divided by a power of ten.
LOW, HIGH = -2, 4


@dataclass(frozen=True, eq=False)
class Plane:
    """Orthonormal directions to draw in, and the unit of the drawing.

    Attributes
    ----------
    axes : (d, k) array
        One or two orthonormal directions.
    labels : tuple of k str
        What to write on the axes.
    exponent : int
        Coordinates are drawn in units of 10^exponent, which keeps huge numbers drawable.
    """

    axes: Array
    labels: tuple[str, ...]
    exponent: int

    @property
    def flat(self) -> bool:
        """Whether there is only one direction to draw in."""
        return bool(self.axes.shape[1] == 1)

    @property
    def unit(self) -> float:
        """Size of one unit of the drawing."""
        return math.pow(10.0, self.exponent)

    def coordinates(self, points: Array) -> Array:
        """Coordinates of points (..., d) in the plane, shape (..., k)."""
        return np.asarray((points / self.unit) @ self.axes)

    def outline(self, law: Gaussian, radius: float) -> Array:
        """Ellipse of `radius` standard deviations: closed curve (m, 2), flat if singular."""
        angle = np.linspace(0.0, 2.0 * np.pi, 121)
        shadow = (self.axes.T / self.unit) @ law.factor
        U, sigma, _ = np.linalg.svd(np.hstack([shadow, np.zeros((2, 2))]), full_matrices=False)
        circle = np.stack([np.cos(angle), np.sin(angle)])
        return np.asarray(self.coordinates(law.mean) + radius * ((U * sigma) @ circle).T)

    def spread(self, factors: Array) -> Array:
        """Standard deviations along the first direction, for factors (..., d, r)."""
        shadow = np.einsum("...dr,d->...r", factors / self.unit, self.axes[:, 0])
        return np.asarray(np.linalg.norm(shadow, axis=-1))


def plane_of(laws: Sequence[Gaussian], end: Gaussian) -> Plane:
    """Choose where to draw laws, the first of which changes into `end`.

    Dimension two keeps its coordinates, and laws that all lie on one line are drawn along
    it.  Above, the two principal directions of the change are taken: of S_end - S_start,
    where the variance grows and where it shrinks, and of the shift of the mean.  If the law
    comes back to where it began, the principal directions of all laws together are taken.
    """
    d = end.dim
    scale = max(float(np.max(np.abs(g.mean)) + np.linalg.norm(g.factor)) for g in (*laws, end))
    center = np.mean([g.mean / max(scale, 1e-300) for g in laws], axis=0)
    columns = [_columns(g, scale, center) for g in laws]
    directions, shares = _principal(np.concatenate(columns, axis=1))
    if d == 1 or (shares[1] < LINE and shares[0] > 0):
        axes = np.ones((1, 1)) if d == 1 else directions[:, :1]
        labels = ["token x"] if d == 1 else ["position along the motion"]
    elif d == 2:
        axes, labels = np.eye(2), ["token coordinate x₁", "token coordinate x₂"]
    else:
        found = _change(laws[0], end, scale)
        axes, shares = (directions, shares) if found is None else found
        of = "variance" if found is None else "change"
        labels = [f"direction {i + 1} ({percent(float(shares[i]))} of {of})" for i in range(2)]
    exponent = _exponent([*laws, end], axes)
    unit = rf"  [$10^{{{exponent}}}$]" if exponent else ""
    return Plane(axes, tuple(label + unit for label in labels), exponent)


def _columns(law: Gaussian, scale: float, center: Array) -> Array:
    unit = max(scale, 1e-300)
    return np.column_stack([law.mean / unit - center, law.factor / unit])


def _change(start: Gaussian, end: Gaussian, scale: float) -> tuple[Array, Array] | None:
    """Principal directions (d, 2) of the change from start to end, and their shares.

    The change is |S₁ - S₀| + δδᵀ, with the matrix absolute value and δ the shift of the mean.
    One direction in which the variance grows (or the mean moves) and one in which it shrinks
    show more than two of a kind; so they are preferred where both are there.
    """
    origin = start.mean / scale
    first, last = (_columns(g, scale, origin) for g in (start, end))
    basis, _ = np.linalg.qr(np.concatenate([first, last], axis=1))
    shift = (basis.T @ last)[:, 0]
    L0, L1 = (basis.T @ x[:, 1:] for x in (first, last))
    values, vectors = np.linalg.eigh(L1 @ L1.T - L0 @ L0.T)
    grows = (vectors * np.maximum(values, 0.0)) @ vectors.T + np.outer(shift, shift)
    shrinks = (vectors * np.maximum(-values, 0.0)) @ vectors.T
    total = grows + shrinks
    size = float(np.sum(L0**2) + np.sum(L1**2))
    if np.trace(total) <= CHANGE * size or total.shape[0] < 2:
        return None
    kinds = sorted((grows, shrinks), key=np.trace, reverse=True)
    one = np.linalg.eigh(kinds[0])[1][:, -1]
    rest = np.eye(one.size) - np.outer(one, one)
    other = kinds[1] if np.trace(rest @ kinds[1]) > 0.05 * np.trace(rest @ total) else total
    two = np.linalg.eigh(rest @ other @ rest)[1][:, -1]
    two = rest @ two
    axes = basis @ np.column_stack([one, two / np.linalg.norm(two)])
    shares = np.array([one @ total @ one, two @ total @ two]) / np.trace(total)
    return _signed(axes), shares


def _principal(X: Array) -> tuple[Array, Array]:
    """Two leading left singular vectors (d, 2) of columns X (d, n), and their shares."""
    d = X.shape[0]
    if d == 1 or not X.any():
        return np.eye(d, 2), np.array([float(X.any()), 0.0])
    if X.shape[1] < d:
        basis, X = np.linalg.qr(np.column_stack([X, np.eye(d, 2)]))
        X = X[:, :-2]
    else:
        basis = np.eye(d)
    values, vectors = np.linalg.eigh(X @ X.T)
    shares = np.maximum(values[::-1][:2], 0.0) / float(np.sum(X**2))
    return _signed(basis @ vectors[:, ::-1][:, :2]), shares


def _signed(directions: Array) -> Array:
    """Directions with their largest entry made positive: eigenvectors have no sign."""
    largest = np.argmax(np.abs(directions), axis=0)
    return directions * np.where(directions[largest, [0, 1]] < 0, -1.0, 1.0)


def _exponent(laws: Sequence[Gaussian], axes: Array) -> int:
    sizes = [
        float(np.max(np.abs(law.mean @ axes)) + 2 * np.linalg.norm(axes.T @ law.factor))
        for law in laws
    ]
    largest = max(sizes)
    if not largest > 0:
        return 0
    exponent = math.floor(math.log10(largest))
    return 0 if LOW <= exponent < HIGH else exponent

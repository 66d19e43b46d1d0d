"""Points at which functions of a standard normal vector are averaged over its law."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .._check import Array

__all__ = ["Nodes", "nodes"]

#: Radii along each direction, in one dimension and in more.
LINE_RADII, RADII = 64, 24

#: Directions (up to sign) in the plane, and in each angle of space.
PLANE, SPACE = 16, (8, 24)

#: Directions in more dimensions, at least: whole orthonormal frames.
DIRECTIONS = 1024

#: Radii in so many dimensions that the radius hardly varies.
HIGH, HIGH_RADII = 4, 12


class Nodes(NamedTuple):
    """Directions u (up to sign) and radii ρ, with weights that add up to one.

    The points are ±ρ u; each of the two signs has half of the weight of its direction.

    Attributes
    ----------
    directions : (k, r) array
    shares : (k,) array
    radii : (n,) array
    weights : (n,) array
    """

    directions: Array
    shares: Array
    radii: Array
    weights: Array


@lru_cache(maxsize=16)
def nodes(rank: int) -> Nodes:
    """Cubature for N(0, I) in `rank` dimensions, rank >= 1.

    The radius is integrated by the Gauss-Laguerre rule in ρ²/2, which is exact for whatever
    depends on the radius alone as a polynomial; the direction by a product rule in one, two
    and three dimensions, and in more by orthonormal frames turned at random (always the same
    ones), each of which is exact for polynomials of degree three.  So second moments are
    exact, and the average of a function that does not prefer any direction is isotropic.
    """
    count = LINE_RADII if rank == 1 else RADII if rank < HIGH else HIGH_RADII
    radii, weights = _radii(rank, count)
    directions, shares = _directions(rank)
    return Nodes(directions, shares, radii, weights)


def _radii(rank: int, count: int) -> tuple[Array, Array]:
    """Gauss rule for the length of a standard normal vector (Golub and Welsch 1969)."""
    k = np.arange(count, dtype=float)
    alpha = 0.5 * rank - 1.0
    jacobi = np.diag(2 * k + 1 + alpha)
    beside = np.sqrt(k[1:] * (k[1:] + alpha))
    jacobi += np.diag(beside, 1) + np.diag(beside, -1)
    values, vectors = np.linalg.eigh(jacobi)
    return np.sqrt(2 * np.maximum(values, 0.0)), vectors[0] ** 2


def _directions(rank: int) -> tuple[Array, Array]:
    if rank == 1:
        return np.ones((1, 1)), np.ones(1)
    if rank == 2:
        angle = np.pi * (np.arange(PLANE) + 0.5) / PLANE
        return np.stack([np.cos(angle), np.sin(angle)], axis=1), np.full(PLANE, 1 / PLANE)
    if rank == 3:
        return _half_sphere(*SPACE)
    rng = np.random.default_rng(rank)
    frames = -(-DIRECTIONS // rank)
    turned = [np.linalg.qr(rng.standard_normal((rank, rank)))[0].T for _ in range(frames)]
    count = frames * rank
    return np.concatenate(turned), np.full(count, 1 / count)


def _half_sphere(heights: int, angles: int) -> tuple[Array, Array]:
    """Product rule on the sphere, the half above the equator (the rest by its sign)."""
    height, weight = np.polynomial.legendre.leggauss(2 * heights)
    height, weight = height[heights:], weight[heights:]
    angle = 2 * np.pi * np.arange(angles) / angles
    flat = np.sqrt(1 - height**2)
    made = np.stack(
        [
            np.outer(flat, np.cos(angle)),
            np.outer(flat, np.sin(angle)),
            np.outer(height, np.ones(angles)),
        ],
        axis=2,
    )
    return made.reshape(-1, 3), np.repeat(weight / angles, angles)

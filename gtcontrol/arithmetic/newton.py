"""Existence of a zero near an approximate one, proved by Newton and Kantorovich's theorem.

Let F(f) = r + J f + (terms of degree k = 2, 3, ...), the latter of norms at most κ_k |f|^k, and let
Y be an approximate inverse of J.  The map f -> f - Y F(f) takes the ball |f| <= ε into itself if

    |Y r| + ‖I - Y J‖ ε + ‖Y‖ Σ_k κ_k ε^k <= ε,

and then has a fixed point there (Brouwer), where F vanishes, as ‖I - Y J‖ < 1 makes Y regular.  If
the bounds κ_k are those of symmetric multilinear maps, and

    ‖I - Y J‖ + ‖Y‖ Σ_k k κ_k ε^(k-1) < 1,

the map is a contraction, so that the zero is the only one in the ball.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from . import balls
from .balls import Ball
from .floats import approximate_inverse
from .matrices import Matrix

__all__ = ["has_zero", "zero_radius"]


class _Bounds(NamedTuple):
    """Bounds |Y r|, ‖I - Y J‖ and ‖Y‖."""

    miss: float
    defect: float
    size: float

    def stays(self, radius: float, terms: Sequence[float]) -> bool:
        """Whether the map takes the ball of this radius into itself."""
        eps = balls.ball(radius)
        beyond = sum((c * eps**k for k, c in _by_degree(terms)), balls.ball(0.0))
        moved = self.miss + balls.ball(self.defect) * eps + balls.ball(self.size) * beyond
        return bool(moved <= eps) and self.defect < 1

    def contracts(self, radius: float, terms: Sequence[float]) -> bool:
        """Whether the map is a contraction on the ball."""
        eps = balls.ball(radius)
        slope = sum((k * c * eps ** (k - 1) for k, c in _by_degree(terms)), balls.ball(0.0))
        return bool(self.defect + balls.ball(self.size) * slope < 1)


def _by_degree(terms: Sequence[float]) -> list[tuple[int, Ball]]:
    return [(k, balls.ball(c)) for k, c in enumerate(terms, start=2)]


def has_zero(value: Matrix, jacobian: Matrix, terms: Sequence[float], radius: float) -> bool:
    """Whether F is proved to vanish for some f with |f| <= radius.

    Parameters
    ----------
    value : (m, 1) matrix
        r.
    jacobian : (m, m) matrix
        J.
    terms : sequence of float
        κ₂, κ₃, ...
    radius : float
        ε > 0.
    """
    if value.shape[0] == 0:
        return True
    if not 0 < radius < math.inf:
        return False
    bounds = _bounds(value, jacobian)
    return bounds is not None and bounds.stays(radius, terms)


def zero_radius(value: Matrix, jacobian: Matrix, terms: Sequence[float]) -> float:
    """Radius around an approximate zero in which there is exactly one zero.

    Parameters
    ----------
    value : (m, 1) matrix
        r.
    jacobian : (m, m) matrix
        J.
    terms : sequence of float
        κ₂, κ₃, ..., of symmetric multilinear maps.

    Returns
    -------
    float
        A proved radius, nearly the smallest; inf if none was found.
    """
    if value.shape[0] == 0:
        return 0.0
    bounds = _bounds(value, jacobian)
    if bounds is None:
        return math.inf
    radius = 1.01 * bounds.miss + 1e-300
    for _ in range(60):
        if bounds.stays(radius, terms) and bounds.contracts(radius, terms):
            return radius
        radius *= 1.5
    return math.inf


def _bounds(value: Matrix, jacobian: Matrix) -> _Bounds | None:
    guess = approximate_inverse(jacobian.middle)
    if guess is None:
        return None
    Y = jacobian.like(guess)
    rest = (jacobian.like(np.eye(len(guess))) - Y @ jacobian).norm()
    # A large defect spares the other norms.
    made = _Bounds((Y @ value).norm(), rest, Y.norm()) if rest < 1 else None
    return made if made is not None and all(map(math.isfinite, made)) else None

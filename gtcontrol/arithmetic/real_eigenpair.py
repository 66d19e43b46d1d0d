"""Proof that a nonlinear real eigenvector exists near an approximate one.

N is homogeneous of degree three, and N(v) = λ v with v = u + f is solved for f in a complement of
u: the function F(f) = [N(u + f)]_⊥ - f [N(u + f)]_u is a polynomial of degree four.
"""

from __future__ import annotations

import numpy as np

from . import balls
from .floats import approximate_inverse
from .matrices import Matrix

__all__ = ["has_root"]


def has_root(
    residual: Matrix, jacobian: Matrix, remainder: tuple[float, float, float], radius: float
) -> bool:
    """Whether F(f) = r + J f + R(f) is proved to vanish for some f with |f| <= radius.

    f -> f - Y F(f), with Y an approximate inverse of J, maps the ball |f| <= ε into itself if

        |Y r| + ‖I - Y J‖ ε + ‖Y‖ (k₂ ε² + k₃ ε³ + k₄ ε⁴) <= ε,

    and then has a fixed point there (Brouwer), where F vanishes, as ‖I - Y J‖ < 1 makes Y regular.

    Parameters
    ----------
    residual : (m, 1) matrix
    jacobian : (m, m) matrix
    remainder : three floats
        |R(f)| <= k₂|f|² + k₃|f|³ + k₄|f|⁴.
    radius : float
        ε > 0.
    """
    m = residual.shape[0]
    if m == 0:
        return True
    if not 0 < radius < float("inf"):
        return False
    guess = approximate_inverse(jacobian.middle)
    if guess is None:
        return False
    Y = jacobian.like(guess)
    rest = (jacobian.like(np.diag(np.ones(m))) - Y @ jacobian).norm()
    if not rest < 1:
        return False
    eps = balls.ball(radius)
    second, third, fourth = (balls.ball(k) for k in remainder)
    moved = balls.ball((Y @ residual).norm()) + balls.ball(rest) * eps
    moved += balls.ball(Y.norm()) * eps**2 * (second + eps * (third + eps * fourth))
    return bool(moved <= eps)

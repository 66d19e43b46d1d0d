"""Common zeros of a few quadratic forms, proved to exist near an approximation.

In coordinates c on the span of the gradients, ``x(c) = x + G c`` with ``G = [F_1 x, ...]``, the
forms are ``f_h(c) = xᵀF_h x + 2 cᵀGᵀF_h x + cᵀ(GᵀF_h G)c``, and the Jacobian at c = 0 is ``2
GᵀG``.  Newton's map contracts on a ball around 0 by the Kantorovich condition, for which the
second derivatives are exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._check import Array
from .balls import Ball, above, ball
from .floats import approximate_inverse
from .matrices import Matrix, around, block, enclose

__all__ = ["isotropic_near"]


def isotropic_near(forms: Sequence[Matrix], point: Array) -> Matrix | None:
    """Enclose a vector x at which all forms xᵀFx vanish and the vectors Fx are independent.

    Parameters
    ----------
    forms : sequence of (d, d) matrices
        Symmetric.
    point : (d,) array
        Approximation, not zero.

    Returns
    -------
    (d, 1) matrix or None
        None if no such vector is proved to exist.
    """
    count, x = len(forms), enclose(point)
    # Each gradient is brought to the size of one: a direction is all that is needed of it.
    gradients = [form @ x for form in forms]
    sizes = [float(np.max(np.abs(g.middle), initial=0.0)) for g in gradients]
    if not all(0 < size < np.inf for size in sizes):
        return None
    units = [float(np.ldexp(1.0, -int(np.frexp(size)[1]))) for size in sizes]
    gradients = [g.times(ball(u)) for g, u in zip(gradients, units, strict=True)]
    scaled = [form.times(ball(u)) for form, u in zip(forms, units, strict=True)]
    G = block([gradients])
    gram = (G.T @ G).times(ball(2.0))
    values = block([[x.T @ g] for g in gradients])
    guess = approximate_inverse(gram.middle)
    if guess is None:
        return None
    inverse = enclose(guess, order=len(point))
    unit = enclose(np.eye(count), order=len(point))
    defect, eta = _largest(unit - inverse @ gram), _largest(inverse @ values)
    curvature = ball(0.0)
    for h, form in enumerate(scaled):
        # ‖δ‖ <= r in the maximum norm: |(R Q(δ))_i| <= Σ_h |R_ih| Σ |GᵀF_hG| r².
        table = (G.T @ form) @ G
        weight = max(abs(float(v)) for v in inverse.middle[:, h])
        curvature += ball(weight) * _sum(table)
    radius = 2 * eta + ball(1e-300)
    inside = eta + defect * radius + curvature * radius * radius <= radius
    if not (inside and defect + 2 * curvature * radius < 1):
        return None
    reach = above(radius * _largest(G))
    return around(point, reach)


def _largest(matrix: Matrix) -> Ball:
    """Upper bound on the largest row sum of sizes."""
    rows, columns = matrix.shape
    sums = [
        above(sum((abs(matrix.entry(i, j)) for j in range(columns)), ball(0.0)))
        for i in range(rows)
    ]
    return ball(max(sums))


def _sum(matrix: Matrix) -> Ball:
    rows, columns = matrix.shape
    return sum((abs(matrix.entry(i, j)) for i in range(rows) for j in range(columns)), ball(0.0))

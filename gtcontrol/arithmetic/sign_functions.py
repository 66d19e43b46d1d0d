"""Invariant subspaces by the matrix sign function, at any precision; nothing is proved here.

Radii of balls are dropped after each step, so that what is returned is an approximation to about
the working precision, less the conditioning of the problem; compare two precisions.
(Roberts 1980; Higham, "Functions of Matrices", chapter 5, with norm scaling.)
"""

from __future__ import annotations

import math

import numpy as np
from flint import acb_mat, arb, arb_mat
from numpy.typing import NDArray

from . import balls
from .balls import Balls

__all__ = ["approximate_inverse", "graph", "sign", "size", "spectrum"]

#: Seed of the fixed directions that pick a basis of a range.
SEED = 20_240_229

#: Relative change of a step that counts as settled if the next one is no smaller.
SETTLED = 2.0**-60


def size(matrix: Balls) -> float:
    """Frobenius norm of the midpoints, as a float."""
    total = arb(0)
    for entry in matrix.entries():
        middle = entry.mid()
        total += middle * middle
    return float(total.sqrt().mid())


def approximate_inverse(matrix: Balls) -> Balls | None:
    """Inverse without radii; None if the matrix is singular to the working precision."""
    try:
        made = matrix.mid().inv()
    except ZeroDivisionError:
        return None
    return made.mid() if all(entry.is_finite() for entry in made.entries()) else None


def sign(matrix: Balls, most_steps: int) -> Balls | None:
    """Matrix sign function; None if the iteration does not settle.

    It does not if an eigenvalue lies on the imaginary axis to within the working precision.
    """
    order, bits = matrix.nrows(), balls.working_bits()
    if order == 0:
        return matrix
    done = 2.0 ** max(-0.45 * bits, -480.0)
    S, last = matrix.mid(), math.inf
    for _ in range(most_steps):
        inverse = approximate_inverse(S)
        if inverse is None:
            return None
        first, second = size(S), size(inverse)
        if not (math.isfinite(first) and math.isfinite(second) and first > 0):
            return None
        near = abs(second / first - 1.0) < 0.1
        scale = arb(1) if near else arb(math.sqrt(second) / math.sqrt(first))
        moved = ((S * scale + inverse * (1 / scale)) * arb(0.5)).mid()
        change = size(moved - S)
        S = moved
        # Convergence is quadratic: a small change leaves the square of it, or is rounding, which
        # the square of the condition of S magnifies, and then does not fall any more.
        small = near and change <= SETTLED * size(S)
        if small and (change <= done * size(S) or change >= 0.1 * last):
            return S
        last = change
    return None


def graph(signed: Balls) -> Balls | None:
    """X with the columns of [I; X] spanning the kernel of sign + I; None if there is none.

    Parameters
    ----------
    signed : (2n, 2n) ball matrix
        Sign function with n eigenvalues -1.
    """
    n = signed.nrows() // 2
    picked = np.random.default_rng(SEED).integers(-8, 9, (2 * n, n))
    projector = balls.identity(2 * n) - signed
    basis = projector * arb_mat(picked.tolist())
    inverse = approximate_inverse(balls.rows(basis, 0, n))
    return None if inverse is None else (balls.rows(basis, n, 2 * n) * inverse).mid()


def spectrum(matrix: Balls) -> NDArray[np.complex128] | None:
    """Eigenvalues computed at the working precision, then rounded to floats; None if they fail.

    Imaginary parts of rounding size are taken for zero.
    """
    try:
        values = acb_mat(matrix.mid()).eig(algorithm="approx")
    except ValueError:
        return None
    made = np.array(
        [complex(float(v.real.mid()), float(v.imag.mid())) for v in values], dtype=np.complex128
    )
    noise = 2.0 ** (-balls.working_bits() / 4) * float(np.max(np.abs(made), initial=0.0))
    return np.where(np.abs(made.imag) <= noise, made.real + 0j, made)

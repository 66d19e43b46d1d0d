"""Parameters in the coordinates of a ray: blocks along it (1) and across it (2), enclosed."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable
from typing import NamedTuple

from ..._check import Array
from ...arithmetic.balls import above
from ...arithmetic.matrices import Matrix
from ...parameters import Parameters

__all__ = [
    "Affine",
    "Frame",
    "HeadBlocks",
    "added",
    "affine",
    "head_blocks",
    "round_down",
    "round_up",
    "size_of",
    "total",
]

_FIRST, _REST = slice(0, 1), slice(1, None)


class Frame(NamedTuple):
    """H, its inverse G, and their parts."""

    H: Matrix
    G: Matrix

    @property
    def w(self) -> Matrix:
        """First row of H."""
        return self.H.part(_FIRST, slice(None))

    @property
    def H2(self) -> Matrix:  # noqa: N802 - a block
        """Other rows of H."""
        return self.H.part(_REST, slice(None))

    @property
    def u(self) -> Matrix:
        """First column of G."""
        return self.G.part(slice(None), _FIRST)

    @property
    def G2(self) -> Matrix:  # noqa: N802 - a block
        """Other columns of G."""
        return self.G.part(slice(None), _REST)


class HeadBlocks(NamedTuple):
    """Blocks of one head: numbers, columns (·₂₁) and rows (·₁₂), and bounds on ‖·₂₂‖."""

    V11: Matrix
    V12: Matrix
    V21: Matrix
    B11: Matrix
    B12: Matrix
    B21: Matrix
    V22: float
    B22: float
    value: Array
    score: Array

    @property
    def tilt(self) -> Matrix:
        """Gradient (B₁₂ᵀ + B₂₁) of vᵀBv along f."""
        return self.B12.T + self.B21


class Affine(NamedTuple):
    """Bounds on the blocks of A and of the noise; see :class:`.infinity.Expansion`."""

    push: float
    shear: float
    pull: float
    drift: float
    noise: float


def affine(frame: Frame, parameters: Parameters) -> Affine:
    """Coefficients that A and the noise contribute."""
    noise = 0.0
    if parameters.noise is not None:
        Q = frame.H.like(parameters.noise)
        noise = max(0.0, _trace(frame.H2 @ Q @ frame.H2.T))
    if not parameters.A.any():
        return Affine(0.0, 0.0, 0.0, 0.0, noise)
    A = frame.H.like(parameters.A)
    left, right = frame.w @ A, A @ frame.u
    A11 = left @ frame.u
    A22 = frame.H2 @ A @ frame.G2
    shear = round_up(A22.top() - A11.low()) if A22.shape[0] else 0.0
    return Affine(
        push=(frame.H2 @ right).norm(),
        shear=shear,
        pull=(left @ frame.G2).norm(),
        drift=A11.low(),
        noise=noise,
    )


def head_blocks(frame: Frame, value: Array, score: Array, outer: float) -> HeadBlocks:
    """Blocks of the head (V, B); `outer` is a bound on the norms of H₂ and G₂ multiplied."""
    V, B = frame.H.like(value), frame.H.like(score)
    Vu, wV, Bu, uB = V @ frame.u, frame.w @ V, B @ frame.u, frame.u.T @ B
    return HeadBlocks(
        V11=wV @ frame.u,
        V12=wV @ frame.G2,
        V21=frame.H2 @ Vu,
        B11=uB @ frame.u,
        B12=uB @ frame.G2,
        B21=frame.G2.T @ Bu,
        V22=frame.H2.product_norm(value, frame.G2, outer),
        B22=frame.G2.T.product_norm(score, frame.G2, outer),
        value=value,
        score=score,
    )


def total(terms: Iterable[Matrix]) -> Matrix:
    """Sum of matrices, at least one."""
    return functools.reduce(operator.add, terms)


def added(values: Iterable[float]) -> float:
    """Sum of floats that are not negative; callers round it up."""
    return math.fsum(values)


def _trace(square: Matrix) -> float:
    """Upper bound on the trace."""
    return above(square.trace())


def size_of(number: Matrix) -> float:
    """Upper bound on the absolute value of a number."""
    return max(abs(number.low()), abs(number.high()))


def round_up(value: float) -> float:
    """Round up what one or two operations on floats have made."""
    return value + (2.0**-50) * abs(value) + 1e-300


def round_down(value: float) -> float:
    """Round down what one or two operations on floats have made."""
    return -round_up(-value)

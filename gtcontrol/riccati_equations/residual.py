"""What is left of a Riccati equation when a matrix is put in, in twice the precision.

With W = X B + S (discrete: A' X B + S), R' = R (discrete: R + B' X B), any G near R'⁻¹ W' and
δ = W' - R' G, the quadratic term is W R'⁻¹ W' = W G + δ' G + δ' R'⁻¹ δ: only products, and terms
that are small, so that no inverse has to be accurate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError

from .._check import Array
from .equation import RiccatiEquation
from .pairs import Pair, Sliced, columns_of, product, rows_of

__all__ = ["Data", "Remainder"]


@dataclass(frozen=True, eq=False)
class Remainder:
    """The residual of a matrix, and what belongs to it.

    Attributes
    ----------
    value : (n, n) array
        Residual, rounded.
    size : float
        Sum of the Frobenius norms of the terms of the equation.
    gain : (m, n) array
        G = R⁻¹ (B' X + S'), or (R + B' X B)⁻¹ (B' X A + S').
    weight : (m, m) array
        R, or R + B' X B.
    """

    value: Array
    size: float
    gain: Array
    weight: Array

    @property
    def relative(self) -> float:
        """Norm of the residual relative to the terms; 0 if all of them vanish."""
        return float(np.linalg.norm(self.value)) / self.size if self.size > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Data:
    """The matrices of an equation, sliced once for many products."""

    equation: RiccatiEquation

    @cached_property
    def _forward(self) -> Sliced:
        return rows_of(self.equation.A.T)

    @cached_property
    def _inputs(self) -> Sliced:
        return columns_of(self.equation.B)

    @cached_property
    def _weight(self) -> Sliced:
        return rows_of(self.equation.R)

    def remainder(self, X: Pair) -> Remainder | None:
        """Put a symmetric X into the equation; None if R + B' X B is singular or X overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                made = self._discrete(X) if self.equation.discrete else self._continuous(X)
            except LinAlgError:
                return None
        return made if np.isfinite(made.size) and np.all(np.isfinite(made.value)) else None

    def _continuous(self, X: Pair) -> Remainder:
        e = self.equation
        rows = rows_of(X.high)
        linear = product(self._forward, rows.T)
        linear = linear.moved(e.A.T @ X.low)
        W = product(rows, self._inputs).moved(X.low @ e.B)
        W = W.plus(Pair.of(e.cross)) if e.cross.any() else W
        gain = _solved(e.R, W.high.T)
        quadratic = self._quadratic(W, gain, e.R, Pair.of(e.R), self._weight)
        total = linear.plus(linear.T).plus(Pair.of(e.Q)).minus(quadratic)
        size = 2 * _norm(linear) + float(np.linalg.norm(e.Q)) + _norm(quadratic)
        return Remainder(total.symmetric().rounded, size, gain, e.R)

    def _discrete(self, X: Pair) -> Remainder:
        e = self.equation
        back = product(self._forward, columns_of(X.high)).moved(e.A.T @ X.low)
        linear = _into(back, e.A)
        W = _into(back, e.B).plus(Pair.of(e.cross))
        half = product(self._inputs.T, columns_of(X.high)).moved(e.B.T @ X.low)
        weight = _into(half, e.B).plus(Pair.of(e.R)).symmetric()
        gain = _solved(weight.high, W.high.T)
        quadratic = self._quadratic(W, gain, weight.high, weight, rows_of(weight.high))
        total = linear.minus(X).plus(Pair.of(e.Q)).minus(quadratic)
        size = _norm(linear) + _norm(X) + float(np.linalg.norm(e.Q)) + _norm(quadratic)
        return Remainder(total.symmetric().rounded, size, gain, weight.high)

    @staticmethod
    def _quadratic(W: Pair, gain: Array, R: Array, weight: Pair, sliced: Sliced) -> Pair:
        """W R⁻¹ W' for a gain near R⁻¹ W'."""
        columns = columns_of(gain)
        off = W.T.minus(product(sliced, columns).moved(weight.low @ gain)).rounded
        main = product(rows_of(W.high), columns).moved(W.low @ gain)
        return main.moved(off.T @ (gain + np.linalg.solve(R, off)))


def _solved(matrix: Array, right: Array) -> Array:
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)


def _into(pair: Pair, right: Array) -> Pair:
    """Product of a pair with a matrix of floats."""
    return product(rows_of(pair.high), columns_of(right)).moved(pair.low @ right)


def _norm(pair: Pair) -> float:
    return float(np.linalg.norm(pair.high))

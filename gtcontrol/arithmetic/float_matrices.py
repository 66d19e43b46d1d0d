"""Large matrices of floats with error bounds behind the interface of :class:`Matrix`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._check import Array
from . import balls, floats
from .abstract import Matrix
from .balls import Ball
from .floats import TINY, UNIT, UP, Enclosure

__all__ = ["FloatMatrix", "as_columns"]

#: Columns of the sketches that are tried to find the range of a matrix of low rank.
SKETCHES = (80, 160)

#: What may be left outside the range, relative to the largest entry.
LEFT_OUT = 1e-9

#: Quick products of this many terms get bounds on their errors that cost no products themselves.
LONG = 200

#: Length that underflowing squares of a row can add up to, at most.
SMALLEST = 1e-160

#: A Gram matrix whose cheap norm exceeds its largest entry by less than this is not factorised.
NEARLY_DIAGONAL = 1.0 + 1e-6

#: Changes of coordinates of this condition or less are not applied to thin factors.
ISOMETRIC = 1.1


@dataclass(frozen=True, eq=False)
class FloatMatrix(Matrix):
    """Matrix of floats with a bound on the error of each entry.

    Attributes
    ----------
    value : Enclosure
    quick : bool
        Whether errors of products are bounded by lengths of rows and columns, at the cost of one
        product instead of two or three: enough unless rows or columns are badly scaled.  What is
        computed from a quick matrix is quick.
    """

    value: Enclosure
    quick: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        rows, columns = self.value.middle.shape
        return rows, columns

    @property
    def T(self) -> FloatMatrix:  # noqa: N802
        """Transpose."""
        return self._of(self.value.T)

    @property
    def middle(self) -> Array:
        """Midpoints."""
        return self.value.middle

    @property
    def vanishes(self) -> bool:
        """Whether every entry is zero, up to underflow."""
        return not (np.any(self.value.middle) or np.any(self.value.radius > 8 * TINY))

    def _of(self, value: Enclosure) -> FloatMatrix:
        return FloatMatrix(value, self.quick)

    def __matmul__(self, other: FloatMatrix) -> FloatMatrix:
        left, right = self.value, other.value
        terms = left.middle.shape[1]
        if terms < LONG or not self.quick:
            return self._of(left @ right)
        # Σ_k |a_ik||b_kj| <= |a_i||b_j| spares the products of absolute values.
        rounding = 2.0 * (terms + 2) * UNIT
        rows, columns = _lengths(left.middle, 1), _lengths(right.middle, 0)
        error = np.outer(rounding * rows, columns)
        for size, spread in (
            (rows, _lengths(right.radius, 0)),
            (_lengths(left.radius, 1), columns),
        ):
            if size.any() and spread.any():
                error += np.outer(size, spread)
        if left.radius.any() and right.radius.any():
            error += np.outer(_lengths(left.radius, 1), _lengths(right.radius, 0))
        grown = (1.0 + 4.0 * (terms + 4) * UNIT) * UP
        tiny = (terms + 1) * TINY
        return self._of(Enclosure(left.middle @ right.middle, grown * error + tiny))

    def __add__(self, other: FloatMatrix) -> FloatMatrix:
        return self._of(self.value + other.value)

    def __neg__(self) -> FloatMatrix:
        return self._of(-self.value)

    def times(self, factor: Ball) -> FloatMatrix:
        """Multiply by a ball."""
        middle = float(factor.mid())
        spread = balls.above(abs(factor - middle))
        made = self.value.scaled(middle)
        if spread == 0:
            return self._of(made)
        size = np.abs(self.value.middle) + self.value.radius
        return self._of(Enclosure(made.middle, UP * (made.radius + UP * spread * size) + TINY))

    def like(self, array: Array) -> FloatMatrix:
        """Exact matrix of the same kind."""
        return self._of(floats.exact(as_columns(array)))

    def part(self, rows: slice, columns: slice) -> FloatMatrix:
        """Some rows and columns."""
        chosen = np.s_[rows, columns]
        return self._of(Enclosure(self.value.middle[chosen], self.value.radius[chosen]))

    def stacked(self, rows: Sequence[Sequence[FloatMatrix]]) -> FloatMatrix:
        """Matrix of blocks."""
        middle = np.block([[x.value.middle for x in line] for line in rows])
        return self._of(
            Enclosure(middle, np.block([[x.value.radius for x in line] for line in rows]))
        )

    def entry(self, row: int, column: int) -> Ball:
        """One entry as a ball."""
        middle, radius = self.value.middle[row, column], self.value.radius[row, column]
        return balls.ball(float(middle), float(radius))

    def norm(self) -> float:
        """Root of a bound on the largest eigenvalue of the smaller Gram matrix."""
        rows, columns = self.shape
        if not rows or not columns:
            return 0.0
        smaller = self.T if columns < rows else self
        gram = smaller @ smaller.T
        bound = gram.high() if min(rows, columns) == 1 else gram.size()
        if bound > NEARLY_DIAGONAL * float(np.max(np.diag(gram.value.middle))):
            bound = gram.top()
        return math.sqrt(max(bound, 0.0)) * UP

    def size(self) -> float:
        """Root of the 1-norm times the infinity-norm."""
        return floats.spectral_norm_bound(self.value)

    def top(self) -> float:
        """Bound on the largest eigenvalue of the symmetric part."""
        n = self.shape[0]
        if n == 0:
            return -math.inf
        centre = 0.5 * (self.value.middle + self.value.middle.T)
        if not (np.all(np.isfinite(centre)) and np.all(np.isfinite(self.value.radius))):
            return math.inf
        # (R + Rᵀ)/2 bounds the error of the symmetric part, besides rounding.
        error = UP * (0.5 * (self.value.radius + self.value.radius.T) + UNIT * np.abs(centre))
        size = float(np.max(np.abs(centre))) + float(np.max(error))
        guess = float(np.linalg.eigvalsh(centre)[-1])
        margin = 8.0 * n * UNIT * size + 2.0 * float(np.max(error.sum(axis=1))) + 1e-300
        for _ in range(60):
            bound = guess + margin
            shifted = Enclosure(-centre, error + TINY) + floats.exact(np.diag(np.full(n, bound)))
            if floats.positive_definite(shifted):
                return bound
            margin *= 2.0
        return math.inf

    def positive_definite(self) -> bool:
        """Whether Cholesky's factorisation exists with a margin for all errors."""
        # Powers of two bring the diagonal near one without rounding, so that badly scaled
        # coordinates do not spoil the margin of the test.
        diagonal = np.diag(self.value.middle)
        if not np.all(np.isfinite(diagonal)) or not np.all(diagonal > 0):
            return False
        scale = np.ldexp(1.0, -(np.frexp(diagonal)[1] // 2))
        if scale.size and np.max(scale) <= 4.0 * np.min(scale):
            return floats.positive_definite(self.value)
        both = np.outer(scale, scale)
        scaled = Enclosure(both * self.value.middle, UP * both * self.value.radius + TINY)
        return floats.positive_definite(scaled)

    def inverse(self) -> FloatMatrix | None:
        """Enclosure of the inverse around an approximate one, X.

        With R = I - H X, H⁻¹ - X = X (R + R(I - R)⁻¹ R), and the rows of R(I - R)⁻¹ have sums of
        at most ‖R‖_∞/(1 - ‖R‖_∞).
        """
        n = self.shape[0]
        guess = floats.approximate_inverse(self.value.middle)
        if guess is None:
            return None
        rest = floats.exact(np.diag(np.ones(n))) - self.value @ floats.exact(guess)
        size = np.abs(rest.middle) + rest.radius
        norm = float(np.max(size.sum(axis=1))) * (1.0 + 4.0 * n * UNIT) * UP
        if not norm < 0.5:
            return None
        grown = size + np.max(size, axis=0) * (norm / (1.0 - norm) * UP)
        error = np.abs(guess) @ grown * ((1.0 + 4.0 * (n + 4) * UNIT) * UP) + n * TINY
        return self._of(Enclosure(guess, error))

    def solve(self, right: FloatMatrix) -> FloatMatrix | None:
        """Approximate solution with |M⁻¹ρ| <= ‖M⁻¹‖ max|ρ| for the residual ρ of each column.

        ‖M⁻¹‖ <= ‖R‖/(1 - ‖I - R M‖) in the maximum norm, where R is an approximate inverse.
        """
        guess = floats.approximate_inverse(self.value.middle)
        if guess is None:
            return None
        inverse = floats.exact(guess)
        defect = _largest_row(floats.exact(np.eye(len(guess))) - inverse @ self.value)
        if not defect < 0.5:
            return None
        answer: Array = guess @ right.value.middle
        residual = right.value - self.value @ floats.exact(answer)
        size = UP * _largest_row(inverse) / (1.0 - defect)
        worst = UP * np.max(np.abs(residual.middle) + residual.radius, axis=0)
        return self._of(Enclosure(answer, np.broadcast_to(UP * size * worst, answer.shape)))

    def combination(self, numbers: Sequence[Ball], arrays: Sequence[Array]) -> FloatMatrix:
        """Sum of exact arrays with coefficients."""
        rounding = 2.0 * (len(numbers) + 2) * UNIT
        middle, error = np.zeros_like(arrays[0]), np.zeros_like(arrays[0])
        for number, M in zip(numbers, arrays, strict=True):
            value = float(number.mid())
            spread = balls.above(abs(number - value))
            middle += value * M
            error += UP * (spread + rounding * abs(value)) * np.abs(M)
        tiny = (len(numbers) + 1) * TINY
        return self._of(Enclosure(middle, UP * error + tiny))

    def product_norm(self, inner: Array, right: FloatMatrix, outer: float) -> float:
        """Norm of the product, by way of thin factors if `inner` has low rank.

        With inner = X Y + E, where X spans a sketch of the range, the product has a norm of at most
        ‖self X‖ ‖Y right‖ + ‖self‖ ‖E‖ ‖right‖: this costs O(d² rank) and is sharp, as the columns
        of X are nearly orthonormal.
        """
        d, largest = inner.shape[1], float(np.max(np.abs(inner)))
        for columns in SKETCHES:
            if d <= 2 * columns:
                break
            # Any test matrix is valid, as the rest is bounded; a fixed seed repeats the check.
            sketch = inner @ np.random.default_rng(0).standard_normal((d, columns))
            basis = np.asarray(np.linalg.qr(sketch)[0], dtype=np.float64)
            X, Y = self.like(basis), self.like(basis.T @ inner)
            rest = self.like(inner) - X @ Y
            if float(np.max(np.abs(rest.middle))) <= LEFT_OUT * largest:
                left_out = self.size() * rest.size() * right.size()
                if outer <= ISOMETRIC:
                    return UP * (outer * X.norm() * Y.norm() + left_out)
                return UP * ((self @ X).norm() * (Y @ right).norm() + left_out)
        return (self @ self.like(inner) @ right).norm()


def as_columns(array: Array) -> Array:
    """2-d array of floats; a vector becomes a column."""
    made = np.asarray(array, dtype=np.float64)
    return np.reshape(made, (-1, 1)) if made.ndim == 1 else made


def _lengths(M: Array, axis: int) -> Array:
    """Upper bounds on the lengths of rows (axis 1) or columns (axis 0)."""
    grown = (1.0 + (M.shape[axis] + 4) * UNIT) * UP
    squares = np.einsum("ij,ij->i" if axis else "ij,ij->j", M, M)
    # Squares below the smallest float are lost; their sum is less than this.
    return np.asarray(grown * (np.sqrt(squares) + SMALLEST))


def _largest_row(matrix: Enclosure) -> float:
    """Upper bound on the largest row sum of sizes."""
    size = np.abs(matrix.middle) + matrix.radius
    grown = (1.0 + 4.0 * size.shape[1] * UNIT) * UP
    return float(np.max(size.sum(axis=1)) * grown) if size.size else math.inf

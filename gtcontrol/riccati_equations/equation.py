"""The equation as a value, checked once, and the same equation in balanced coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import matrix_balance

from .. import _check
from .._check import Array
from ..errors import InvalidNumber, InvalidShape, OutOfScale

__all__ = ["Balanced", "RiccatiEquation", "balanced"]

#: Largest entries beyond this, or below its inverse, are refused.
EXTREME = 1e60

#: R with a relative smallest singular value below this, after scaling its rows, is singular.
SINGULAR = 1e-15


@dataclass(frozen=True, eq=False, repr=False, init=False)
class RiccatiEquation:
    """A' X + X A + Q - (X B + S) R⁻¹ (X B + S)' = 0, or its discrete counterpart.

    The discrete equation is A' X A - X + Q - (A' X B + S) (R + B' X B)⁻¹ (A' X B + S)' = 0.

    Parameters
    ----------
    A : (n, n) array
        Dynamics.
    B : (n, m) array
        Inputs; a vector (n,) is one input.
    Q : (n, n) array, optional
        Weight of the states, symmetric, of any sign; a number is a multiple of the identity,
        and none is zero.
    R : (m, m) array, optional
        Weight of the inputs, symmetric and not singular, of any sign; a number is a multiple of
        the identity, and none is the identity.
    cross : (n, m) array, optional
        Weight S of products of states and inputs; none is zero.
    discrete : bool
        Whether time is discrete.

    Raises
    ------
    InvalidShape, NotFinite, NotSymmetric, InvalidNumber, OutOfScale
        If the arrays do not fit, R is singular, or numbers are too large or too small.
    """

    A: Array
    B: Array
    Q: Array
    R: Array
    cross: Array
    discrete: bool

    def __init__(
        self,
        A: ArrayLike,
        B: ArrayLike,
        Q: ArrayLike | None = None,
        R: ArrayLike | None = None,
        cross: ArrayLike | None = None,
        *,
        discrete: bool = False,
    ) -> None:
        dynamics = _check.square("A", A)
        n = len(dynamics)
        if n == 0:
            raise InvalidShape("`A` is empty; a Riccati equation needs at least one state.")
        inputs = _check.array("B", B, (1, 2))
        inputs = inputs[:, None] if inputs.ndim == 1 else inputs
        if inputs.shape[0] != n or not inputs.shape[1]:
            raise InvalidShape(
                f"`B` must have {n} rows, one for each state, and at least one column; it has "
                f"shape {inputs.shape}."
            )
        m = inputs.shape[1]
        weight = _weight("R", R, m, 1.0)
        _refuse_singular(weight)
        if cross is None:
            products = np.zeros((n, m))
        else:
            products = _check.array("cross", cross, (1, 2))
            products = products[:, None] if products.ndim == 1 else products
            if products.shape != (n, m):
                raise InvalidShape(
                    f"`cross` must have shape ({n}, {m}), like `B`; it has {products.shape}."
                )
        states = _weight("Q", Q, n, 0.0)
        matrices = {"A": dynamics, "B": inputs, "Q": states, "R": weight, "cross": products}
        for name, value in matrices.items():
            _refuse_extreme(name, value)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "discrete", _check.boolean("discrete", discrete))

    @classmethod
    def trusted(
        cls, A: Array, B: Array, Q: Array, R: Array, cross: Array, *, discrete: bool
    ) -> RiccatiEquation:
        """Build from arrays that are known to fit, without checks."""
        made = object.__new__(cls)
        fields = (("A", A), ("B", B), ("Q", Q), ("R", R), ("cross", cross), ("discrete", discrete))
        for name, value in fields:
            object.__setattr__(made, name, value)
        return made

    @property
    def dim(self) -> int:
        """Number n of states."""
        return len(self.A)

    @property
    def inputs(self) -> int:
        """Number m of inputs."""
        return int(self.B.shape[1])

    @property
    def without_cross(self) -> tuple[Array, Array]:
        """A - B R⁻¹ S' and Q - S R⁻¹ S', rounded: the equation with S eliminated."""
        if not self.cross.any():
            return self.A, self.Q
        moved = np.linalg.solve(self.R, self.cross.T)
        Q = self.Q - self.cross @ moved
        return self.A - self.B @ moved, 0.5 * (Q + Q.T)

    @property
    def quadratic(self) -> Array:
        """B R⁻¹ B' (n, n), rounded."""
        G = self.B @ np.linalg.solve(self.R, self.B.T)
        return np.asarray(0.5 * (G + G.T))

    @property
    def bernoulli(self) -> bool:
        """Whether Q and S vanish."""
        return not (self.Q.any() or self.cross.any())

    def __repr__(self) -> str:
        time = "discrete" if self.discrete else "continuous"
        return f"RiccatiEquation(states={self.dim}, inputs={self.inputs}, {time})"


@dataclass(frozen=True, eq=False)
class Balanced:
    """An equation in coordinates scaled by powers of two, so that nothing is rounded.

    Attributes
    ----------
    equation : RiccatiEquation
        The equation for X̃ = T X T.
    scale : (n,) array
        Diagonal of T.
    """

    equation: RiccatiEquation
    scale: Array

    def back(self, X: Array) -> Array:
        """X in the original coordinates."""
        return np.asarray(X / self.scale[:, None] / self.scale)


def balanced(equation: RiccatiEquation) -> Balanced:
    """Balance the Hamiltonian [[A, -G], [-Q, -A']] by a diagonal T of powers of two.

    (Benner, "Symplectic balancing of Hamiltonian matrices", SIAM J. Sci. Comput. 2001: balance
    without regard to structure, then take the geometric mean of the two halves.)
    """
    n = equation.dim
    A, Q = equation.without_cross
    size = np.abs(np.block([[A, -equation.quadratic], [-Q, -A.T]]))
    np.fill_diagonal(size, 0.0)
    if not np.all(np.isfinite(size)):
        return Balanced(equation, np.ones(n))
    with np.errstate(all="ignore"):
        _, (factors, _) = matrix_balance(size, separate=True, permute=False)
    powers = np.log2(factors)
    t = np.exp2(np.round(0.5 * (powers[:n] - powers[n:])))
    if not np.all(np.isfinite(t)) or np.all(t == 1.0):
        return Balanced(equation, np.ones(n))
    moved = RiccatiEquation.trusted(
        equation.A / t[:, None] * t,
        equation.B / t[:, None],
        equation.Q * t[:, None] * t,
        equation.R,
        equation.cross * t[:, None],
        discrete=equation.discrete,
    )
    return Balanced(moved, t)


def _weight(name: str, value: ArrayLike | None, order: int, default: float) -> Array:
    if value is None:
        return np.asarray(default * np.eye(order))
    if np.ndim(value) == 0:
        value = _check.number(name, value) * np.eye(order)
    return _check.symmetric(name, value, order)


def _refuse_extreme(name: str, matrix: Array) -> None:
    """Refuse numbers whose squares and quotients may leave the range of floats.

    Raises
    ------
    OutOfScale
        If the largest entry, unless it is zero, is beyond :data:`EXTREME`.
    """
    size = float(np.max(np.abs(matrix), initial=0.0))
    if size and not 1.0 / EXTREME <= size <= EXTREME:
        raise OutOfScale(
            f"the largest entry of `{name}` is {size:.3g}; it must be between {1 / EXTREME:g} and "
            f"{EXTREME:g}. Use other units for time, states or cost."
        )


def _refuse_singular(R: Array) -> None:
    """Refuse weights of the inputs that have no inverse.

    Raises
    ------
    InvalidNumber
        If R is singular to within rounding, after scaling.
    """
    rows = np.sqrt(np.max(np.abs(R), axis=1))
    scaled = R / np.where(rows > 0, rows, 1.0)[:, None] / np.where(rows > 0, rows, 1.0)
    values = np.linalg.svd(scaled, compute_uv=False)
    if values[-1] <= SINGULAR * len(R) * values[0]:
        raise InvalidNumber(
            f"`R` must not be singular; its smallest singular value is {values[-1]:.3g} of the "
            "largest, after scaling. This solver needs its inverse, in discrete time as well: "
            "leave out inputs that cost nothing, or give them a weight."
        )

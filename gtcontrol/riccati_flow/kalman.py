"""The dictionary between Kalman-Bucy filtering and Transformers with V = v I.

The error covariance of the filter of dx = A x dt + dw, dy = C x dt + dv, with intensities Q of w
and R of v, obeys

    S' = A S + S Aᵀ - S Cᵀ R⁻¹ C S + Q,

which is the covariance flow of attention with value matrices V_h = v_h I and
K = Σ_h v_h (B_h + B_hᵀ) = -Cᵀ R⁻¹ C.  So K <= 0 is needed, and the antisymmetric part of the score
matrices is free: it turns the mean (m' = (A + Σ_h v_h I) m + Σ_h v_h S B_h m + b), not S.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from .. import _check
from .._check import Array
from ..errors import IndefiniteCovariance, InvalidMethod, InvalidNumber, InvalidShape
from ..parameters import Parameters
from .terms import quadratic_term, scalar_values

__all__ = ["KalmanModel"]

#: Eigenvalues of K below this fraction of the largest count as zero.
NEGLIGIBLE = 1e-13


@dataclass(frozen=True, eq=False, repr=False, init=False)
class KalmanModel:
    """A linear system with noisy measurements: dx = A x dt + dw, dy = C x dt + dv.

    Parameters
    ----------
    A : (d, d) array
        Dynamics of the state.
    C : (p, d) array
        What is measured; a vector (d,) is one measurement.
    R : (p, p) array, optional
        Intensity of the measurement noise v, positive definite; by default the identity.
        A number is a multiple of the identity.
    noise : (d, d) array, optional
        Intensity Q of the process noise w, positive semidefinite; by default none.

    Raises
    ------
    InvalidShape, NotFinite, NotSymmetric, IndefiniteCovariance
        If the arrays do not fit, or R is not positive definite, or Q not positive semidefinite.
    """

    A: Array
    C: Array
    R: Array
    noise: Array | None

    def __init__(
        self,
        A: ArrayLike,
        C: ArrayLike,
        R: ArrayLike | None = None,
        noise: ArrayLike | None = None,
    ) -> None:
        dynamics = _check.square("A", A)
        d = len(dynamics)
        measured = _check.array("C", C, (1, 2))
        measured = measured[None] if measured.ndim == 1 else measured
        if measured.shape[1] != d:
            raise InvalidShape(
                f"`C` must have {d} columns, one for each state; it has shape {measured.shape}."
            )
        p = len(measured)
        made = _intensity(R, p)
        # The constructor of parameters checks the noise.
        checked = Parameters(A=dynamics, noise=noise)
        for name, value in (
            ("A", dynamics),
            ("C", measured),
            ("R", made),
            ("noise", checked.noise),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def from_parameters(cls, parameters: Parameters) -> KalmanModel:
        """Read parameters with V_h = v_h I as a filtering problem, with R the identity.

        C is the root of -K with orthogonal rows, as many as the rank of K, by falling size.

        Raises
        ------
        InvalidMethod
            If a value matrix is not a multiple of the identity, or K has a positive eigenvalue,
            which no measurement has.
        """
        heads = parameters.heads
        for h, (V, B, _) in enumerate(heads):
            if np.any(B) and scalar_values([(V, B, None)]) is None:
                off = float(np.max(np.abs(V - V[0, 0] * np.eye(len(V)))))
                raise InvalidMethod(
                    f"Kalman theory needs every value matrix to be a multiple of the identity; "
                    f"that of head {h + 1} differs from one by {off:.6g}."
                )
        values, vectors = np.linalg.eigh(-quadratic_term(heads))
        size = float(np.max(np.abs(values), initial=0.0))
        if values[0] < -NEGLIGIBLE * size:
            direction = ", ".join(f"{x:.4g}" for x in vectors[:8, 0])
            dots = ", ..." if len(vectors) > 8 else ""
            raise InvalidMethod(
                f"K = v (B + Bᵀ) has the positive eigenvalue {-values[0]:.6g} in the direction "
                f"({direction}{dots}): no measurement has negative information, so this is no "
                "Kalman filter, and the covariance may blow up. Ask `certify`."
            )
        kept = values > NEGLIGIBLE * size
        C = (vectors[:, kept] * np.sqrt(values[kept])).T[::-1]
        made = object.__new__(cls)
        fields = (("A", parameters.A), ("C", C), ("R", np.eye(len(C))), ("noise", parameters.noise))
        for name, value in fields:
            object.__setattr__(made, name, value)
        return made

    def parameters(
        self,
        value: float = 1.0,
        *,
        skew: ArrayLike | None = None,
        b: ArrayLike | None = None,
    ) -> Parameters:
        """Return the Transformer whose covariance is that of this filter.

        V = v I and B = -Cᵀ R⁻¹ C / (2 v) + skew.

        Parameters
        ----------
        value : float
            v, of any sign but not zero.
        skew : (d, d) array, optional
            Antisymmetric part of B: it moves the mean by v S skew m, and leaves S alone.
        b : (d,) array, optional
            Bias.

        Raises
        ------
        InvalidNumber
            If v is zero.
        InvalidShape
            If `skew` is not antisymmetric.
        """
        v = _check.number("value", value)
        if v == 0.0:
            raise InvalidNumber("`value` must not be 0: attention would do nothing.")
        B = -0.5 * self.information / v
        if skew is not None:
            turn = _check.square("skew", skew, self.dim)
            off = float(np.max(np.abs(turn + turn.T), initial=0.0))
            if off > 1e-12 * float(np.max(np.abs(turn), initial=0.0)):
                raise InvalidShape(f"`skew` must be antisymmetric; it is off by {off:.6g}.")
            B = B + turn
        return Parameters(A=self.A, B=B, V=v * np.eye(self.dim), b=b, noise=self.noise)

    @property
    def dim(self) -> int:
        """Dimension d of the state."""
        return len(self.A)

    @property
    def information(self) -> Array:
        """Cᵀ R⁻¹ C (d, d), the information that measurements bring in unit time: -K."""
        root = solve_triangular(cholesky(self.R, lower=True), self.C, lower=True)
        return np.asarray(root.T @ root)

    def gain(self, covariance: ArrayLike) -> Array:
        """Kalman gain S Cᵀ R⁻¹, shape (d, p)."""
        S = _check.symmetric("covariance", covariance, self.dim)
        return np.asarray(np.linalg.solve(self.R, self.C @ S).T)

    def __repr__(self) -> str:
        noise = "" if self.noise is None else ", with process noise"
        return f"KalmanModel(states={self.dim}, measurements={len(self.C)}{noise})"


def _intensity(R: ArrayLike | None, p: int) -> Array:
    """R as a checked positive definite matrix.

    Raises
    ------
    IndefiniteCovariance
        If it is not positive definite.
    """
    if R is None:
        return np.eye(p)
    if np.ndim(R) == 0:
        R = _check.number("R", R) * np.eye(p)
    made = _check.symmetric("R", R, p)
    try:
        cholesky(made)
    except LinAlgError:
        lowest = float(np.linalg.eigvalsh(made)[0])
        raise IndefiniteCovariance(
            f"`R` must be positive definite; its smallest eigenvalue is {lowest:.6g}."
        ) from None
    return made

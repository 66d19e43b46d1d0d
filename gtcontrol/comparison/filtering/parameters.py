"""The Transformer that is a Kalman-Bucy filter, at one instant.

With W = Cᵀ R⁻¹ C and K = S Cᵀ R⁻¹ the member x of the deterministic ensemble filter moves by

    x' = A x + f + K (y - ½ C x - ½ C m) + ½ Q S⁻¹ (x - m),

where the last term makes S gain Q without any noise.  Attention with V = v I, B = -W/(2 v) and
score bias β averages to m + S (B x + β), so that v times it is v m - ½ S W x + v S β.  Matching
leaves

    plain queries (β = 0):        V₂ = -v I - ½ S W - ½ Q S⁻¹,   b = K y + f,
    centred queries (β = -B m):   V₂ = -v I - S W - ½ Q S⁻¹,     b = K y + f,

for a second head with B₂ = 0, whose average is m.  (For v = 1 and plain queries, V₂ m + b is the
bias -m + K y - ½ K C m.)
"""

from __future__ import annotations

import numpy as np

from ..._check import Array
from ...parameters import Parameters
from ...riccati_flow.kalman import KalmanModel

__all__ = ["Bridge"]


class Bridge:
    """Parameters of the filtering Transformer of one model.

    Parameters
    ----------
    model : KalmanModel
        d states, p measurements.
    value : float
        v, not 0.
    centred : bool
        Whether queries are taken from the mean of the tokens.
    """

    def __init__(self, model: KalmanModel, value: float = 1.0, *, centred: bool = False) -> None:
        self.model, self.value, self.centred = model, value, centred
        some = model.noise is not None and np.any(model.noise)
        self.noise = model.noise if some else None
        self.information = model.information
        self.weighted = np.linalg.solve(model.R, model.C).T  # Cᵀ R⁻¹
        self._one = np.eye(model.dim)
        self._scores = np.stack([-0.5 * self.information / value, np.zeros_like(self._one)])

    def parameters(
        self,
        covariance: Array,
        measurement: Array,
        forcing: Array | None = None,
        mean: Array | None = None,
    ) -> Parameters:
        """Return the parameters of two heads.

        Parameters
        ----------
        covariance : (d, d) array
            S of the tokens; invertible if the model has process noise.
        measurement : (p,) array
            y.
        forcing : (d,) array, optional
            f.
        mean : (d,) array, optional
            m of the tokens, needed with centred queries only.
        """
        S, A = covariance, self.model.A
        feedback = (1.0 if self.centred else 0.5) * (S @ self.information)
        second = -self.value * self._one - feedback
        if self.noise is not None:
            # Q S⁻¹, from the solution of S X = Q.
            inflation = 0.5 * np.linalg.solve(S, self.noise).T
            A, second = A + inflation, second - inflation
        b = S @ (self.weighted @ measurement)
        beta = None
        if self.centred and mean is not None:
            beta = np.stack([-self._scores[0] @ mean, np.zeros_like(mean)])
        return Parameters.trusted(
            A,
            self._scores,
            np.stack([self.value * self._one, second]),
            b if forcing is None else b + forcing,
            None,
            beta,
        )

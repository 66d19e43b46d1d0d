"""Discrete time: residual layers beside the discrete Kalman filter, and as the discrete filter.

A residual layer of step h with constant parameters, V = I and B = -½ Cᵀ R⁻¹ C, maps the
covariance to S⁺ = (I + hM) S (I + hM)ᵀ, M = A - ½ S Cᵀ R⁻¹ C.  The Kalman filter of
x⁺ = F x, y = C x + v with F = I + hA and the measurement noise R/h maps it to

    S⁺ = F (S - S Cᵀ (C S Cᵀ + R/h)⁻¹ C S) Fᵀ.

Both are S + h (A S + S Aᵀ - S Cᵀ R⁻¹ C S) + O(h²), and there the likeness ends:

- Fixed points.  That of the layer solves M S + S Mᵀ + h M S Mᵀ = 0, that of the filter the discrete
  Bernoulli equation.  They differ by O(h).  (In one dimension with C = c, R = 1: 2a/c² for every
  h, against (2a + ha²)/c².)
- Spectrum.  For the flow Re λ > 0 of A decides, for layer and filter |1 + hλ| > 1.  A stable mode
  that the step oversteps, h > 2/|λ|, is unstable to both: the covariance of the filter then
  settles at another level, that of the layers runs away.
- Large steps.  The covariance of a filter that detects all modes is bounded whatever h is.  The
  layer is an explicit Euler step, whose fixed point attracts only for small h (in one dimension
  for 0 < ha < 1), and from a large S it overshoots without end (in one dimension from
  S > (2a + 4/h)/c²).

But B may change from layer to layer.  With W Wᵀ = C S Cᵀ + R and N Nᵀ = R, both lower triangular,

    B = -Cᵀ W⁻ᵀ (W + N)⁻¹ C    makes    T = I + S B,    T S Tᵀ = S - S Cᵀ (C S Cᵀ + R)⁻¹ C S,

the update of the Kalman filter, in one layer of step 1 with V = I and A = 0 (the square-root form
of Potter, 1963, and Andrews, AIAA J. 1968).  Proof: with C S Cᵀ = W Wᵀ - N Nᵀ it says that
W⁻ᵀ W⁻¹ = W⁻ᵀ (W + N)⁻¹ + (W + N)⁻ᵀ W⁻¹ - W⁻ᵀ (W + N)⁻¹ (W Wᵀ - N Nᵀ) (W + N)⁻ᵀ W⁻¹.  Multiply by
(W + N) Wᵀ from the left and W (W + N)ᵀ from the right: (W + N)(W + N)ᵀ =
W (W + N)ᵀ + (W + N) Wᵀ - W Wᵀ + N Nᵀ, which is true.  And W + N is invertible, as its diagonal
is positive.  With V = F and A = F - I the same layer predicts as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, solve_triangular

from ... import _check
from ..._check import Array
from ...errors import InvalidShape, RankMismatch
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...results.trajectory import factor_of
from ...riccati_equations.equation import RiccatiEquation
from ...riccati_equations.solver import solve
from ...riccati_flow.kalman import KalmanModel
from ...schedule import Schedule

__all__ = ["LayerComparison", "compare_layers", "kalman_layers"]

#: A direction is in a range if it leaves it by less than this.
INSIDE = 1e-10

#: Layers after which a limit is given up, and relative changes below which it is reached.
MOST_LAYERS, SETTLED = 20_000, 1e-14

#: Growth of the covariance beyond which layers diverge.
DIVERGED = 1e12

#: Largest dimension in which the multipliers of the layer map are computed.
LARGEST = 24


def kalman_layers(
    F: ArrayLike,
    C: ArrayLike,
    R: ArrayLike | None,
    start: Gaussian,
    steps: int,
    noise: ArrayLike | None = None,
    *,
    measurements: ArrayLike | None = None,
    deterministic: bool = False,
) -> Schedule:
    """Build the layers that are exactly the discrete Kalman filter of x⁺ = F x + w, y = C x + v.

    Layer k takes in the measurement at time k and predicts the state at time k + 1, so that it maps
    the covariance S (before the measurement) to F (S - S Cᵀ (C S Cᵀ + R)⁻¹ C S) Fᵀ + Q; with
    V = F, A = F - I and score matrices that change from layer to layer.  Move them by
    ``gt.simulate(start, schedule, layers=steps)``.

    The score matrices are those of the filter that begins at the start, so the layers do not
    correct deviations from it, not even those of rounding.  In one dimension a deviation of the
    covariance is multiplied by f² T (3T - 2) in each layer, T = 1/√(1 + c² s/r), which is below 1
    in size for |f| < √3; a filter that is very unstable should be followed for few layers only.

    Parameters
    ----------
    F : (d, d) array
        Dynamics of the state.
    C : (p, d) array
        What is measured; a vector (d,) is one measurement.
    R : (p, p) array or None
        Covariance of the measurement noise v, positive definite; None is the identity.
    start : Gaussian
        Law before the first measurement.
    steps : int
        Number n of layers.
    noise : (d, d) array, optional
        Covariance Q of the process noise w.  Layers push tokens at random then; the covariance is
        exactly that of the filter.
    measurements : (n, p) array, optional
        What was measured; the mean is then that of the filter.  Otherwise every measurement comes
        as predicted, which moves the mean by F alone.
    deterministic : bool
        Whether to spread the tokens by A, deterministically, instead of by random pushes: by the
        optimal transport of each predicted law to the one with Q added.  The rank is then kept, so
        the range of Q must lie in that of the covariance.

    Returns
    -------
    Schedule
        Piecewise constant, one unit of time for each layer.

    Raises
    ------
    InvalidShape, NotFinite, IndefiniteCovariance, InvalidNumber
        If the data do not fit.
    RankMismatch
        If noise would raise the rank, and is to be spread deterministically.
    """
    model = KalmanModel(_check.square("F", F), C, R, noise)
    if not isinstance(start, Gaussian):
        raise InvalidShape(f"`start` must be a Gaussian, not {type(start).__name__}.")
    if start.dim != model.dim:
        raise InvalidShape(f"`start` has dimension {start.dim}, but `F` has order {model.dim}.")
    count = _check.integer("steps", steps, low=1)
    seen = None
    if measurements is not None:
        seen = _check.array("measurements", measurements, 2)
        if seen.shape != (count, len(model.C)):
            raise InvalidShape(
                f"`measurements` must have shape ({count}, {len(model.C)}), one row for each "
                f"layer; it has {seen.shape}."
            )
    mean, L, layers = start.mean, start.factor, []
    for k in range(count):
        layer, mean, L = _layer(model, mean, L, None if seen is None else seen[k], deterministic)
        layers.append(layer)
    return Schedule(np.arange(count + 1.0), layers)


def _layer(
    model: KalmanModel, mean: Array, L: Array, measured: Array | None, deterministic: bool
) -> tuple[Parameters, Array, Array]:
    """Parameters of one layer, and mean and factor behind it."""
    F, C, noise = model.A, model.C, model.noise
    S = L @ L.T
    W = cholesky(C @ S @ C.T + model.R, lower=True)
    N = cholesky(model.R, lower=True)
    # B = -Cᵀ W⁻ᵀ (W + N)⁻¹ C.
    inner = solve_triangular(W, solve_triangular(W + N, C, lower=True), lower=True, trans=1)
    B = -C.T @ inner
    updated = mean
    if measured is not None:
        rest = solve_triangular(W, measured - C @ mean, lower=True)
        updated = mean + S @ C.T @ solve_triangular(W, rest, lower=True, trans=1)
    after = F @ (L + S @ (B @ L))
    A, pushed = F - np.eye(model.dim), noise
    if noise is not None and deterministic:
        # What spreads the tokens acts by the linear layer alone, so that V stays F.
        spread = _spread(after, noise) - np.eye(model.dim)
        A = A + spread @ (F + F @ S @ B)
        pushed, after = None, after + spread @ after
    elif noise is not None:
        after = factor_of(after @ after.T + noise)
    next_mean = F @ updated
    b = next_mean - mean - A @ mean - F @ (mean + S @ (B @ mean))
    return Parameters(A=A, B=B, V=F, b=b, noise=pushed), next_mean, after


def _spread(factor: Array, noise: Array) -> Array:
    """Symmetric M >= 0 with M Σ M = Σ + Q on the range of Σ = L Lᵀ: optimal transport.

    Raises
    ------
    RankMismatch
        If Q has a direction outside the range.
    """
    U, sigma, _ = np.linalg.svd(factor, full_matrices=False)
    kept = sigma > INSIDE * float(np.max(sigma, initial=0.0))
    U, sigma = U[:, kept], sigma[kept]
    outside = noise - U @ (U.T @ noise)
    lost = float(np.linalg.norm(outside))
    if lost > INSIDE * float(np.linalg.norm(noise)):
        raise RankMismatch(
            f"the process noise raises the rank: {lost / float(np.linalg.norm(noise)):.3g} of it "
            "lies outside the range of the predicted covariance. Start with variance there, or "
            "leave `deterministic` off."
        )
    inner = np.diag(sigma**2)
    target = inner + U.T @ noise @ U
    root = _root(inner)
    middle = _root(root @ target @ root)
    inverse = np.diag(1 / sigma)
    M = inverse @ middle @ inverse
    return np.asarray(U @ M @ U.T + np.eye(len(U)) - U @ U.T)


def _root(S: Array) -> Array:
    values, vectors = np.linalg.eigh(0.5 * (S + S.T))
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


@dataclass(frozen=True, eq=False, repr=False)
class LayerComparison:
    """Residual layers with constant parameters beside the discrete Kalman filter.

    Attributes
    ----------
    step : float
        Step h of a layer; the filter has F = I + hA, the measurement noise R/h and the process
        noise hQ.
    layer, kalman : (d, d) arrays
        Covariance after one layer, and after one update and prediction of the filter.
    difference : float
        Their distance relative to the covariance at the start: of second order in h.
    layer_limit : (d, d) array or None
        Limit of the layers from the start, if they have one.
    layers : int
        Number of layers after which it was reached, or given up.
    kalman_limit : (d, d) array or None
        Stabilising solution of the discrete Riccati (without noise: Bernoulli) equation, if any.
    multiplier : float
        Largest modulus of the linearised layer map at its limit: below 1 if it attracts; nan
        where there is no limit, or in large dimension.
    reason : str
        What the layers do, and how it compares.
    """

    step: float
    layer: Array
    kalman: Array
    difference: float
    layer_limit: Array | None
    layers: int
    kalman_limit: Array | None
    multiplier: float
    reason: str

    def __repr__(self) -> str:
        settled = "no limit" if self.layer_limit is None else f"multiplier {self.multiplier:.4g}"
        words = [
            f"states={len(self.layer)}",
            f"step={self.step:g}",
            f"difference {self.difference:.1e}",
            f"{settled} after {self.layers} layers",
        ]
        return f"LayerComparison({', '.join(words)})"


def compare_layers(model: KalmanModel, start: Gaussian, step: float) -> LayerComparison:
    """Hold residual layers with V = I, B = -½ Cᵀ R⁻¹ C against the discrete Kalman filter.

    Parameters
    ----------
    model : KalmanModel
        In continuous time.
    start : Gaussian
    step : float
        Step h of a layer.

    Returns
    -------
    LayerComparison
    """
    if not isinstance(model, KalmanModel):
        raise InvalidShape(f"`model` must be a KalmanModel, not {type(model).__name__}.")
    if not isinstance(start, Gaussian):
        raise InvalidShape(f"`start` must be a Gaussian, not {type(start).__name__}.")
    if start.dim != model.dim:
        raise InvalidShape(f"`start` has dimension {start.dim}, but the model has {model.dim}.")
    h = _check.number("step", step, low=0.0, strict=True)
    one, K = np.eye(model.dim), -model.information
    Q = np.zeros_like(one) if model.noise is None else model.noise
    F, R = one + h * model.A, model.R / h

    def layer(S: Array) -> Array:
        T = one + h * (model.A + 0.5 * S @ K)
        return np.asarray(T @ S @ T.T + h * Q)

    S = start.covariance
    seen = S @ model.C.T
    gained = seen @ np.linalg.solve(model.C @ seen + R, seen.T)
    kalman = F @ (S - gained) @ F.T + h * Q
    after = layer(S)
    size = max(float(np.linalg.norm(S)), h * float(np.linalg.norm(Q)), 1e-300)
    limit, count = _iterated(layer, S)
    found = solve(RiccatiEquation(F.T, model.C.T, h * Q, R, discrete=True))
    multiplier = np.nan if limit is None else _multiplier(model.A, K, limit, h)
    return LayerComparison(
        h,
        after,
        kalman,
        float(np.linalg.norm(after - kalman)) / size,
        limit,
        count,
        found.X,
        multiplier,
        _told(limit, count, found.X, multiplier, h),
    )


def _iterated(layer: Callable[[Array], Array], S: Array) -> tuple[Array | None, int]:
    """Apply layers until nothing changes; None if the covariance runs away, or does not settle."""
    largest = DIVERGED * max(float(np.linalg.norm(S)), 1.0)
    for k in range(1, MOST_LAYERS + 1):
        after = layer(S)
        size = float(np.linalg.norm(after))
        if not size < largest:
            return None, k
        if float(np.linalg.norm(after - S)) <= SETTLED * size:
            return after, k
        S = after
    return None, MOST_LAYERS


def _multiplier(A: Array, K: Array, S: Array, h: float) -> float:
    """Largest modulus of D -> T D Tᵀ + ½h (D K S Tᵀ + T S K D), T = I + h(A + ½ S K)."""
    d = len(A)
    if d > LARGEST:
        return np.nan
    T = np.eye(d) + h * (A + 0.5 * S @ K)
    rows, columns = np.tril_indices(d)
    images = []
    for i, j in zip(rows, columns, strict=True):
        D = np.zeros((d, d))
        D[i, j] = D[j, i] = 1.0
        half = D @ K @ S @ T.T
        images.append((T @ D @ T.T + 0.5 * h * (half + half.T))[rows, columns])
    return float(np.max(np.abs(np.linalg.eigvals(np.array(images).T))))


def _told(
    limit: Array | None, count: int, kalman: Array | None, multiplier: float, h: float
) -> str:
    if limit is None:
        what = "run away" if count < MOST_LAYERS else "do not settle"
        return (
            f"The layers {what} (after {count}): the step {h:g} is too large for this start, as an "
            "explicit Euler step overshoots where the filter does not. Use more layers."
        )
    steady = f"The layers settle after {count}, with the multiplier {multiplier:.6g}"
    if kalman is None:
        return f"{steady}; the discrete Riccati equation has no stabilising solution."
    size = max(float(np.linalg.norm(kalman)), float(np.linalg.norm(limit)), 1e-300)
    off = float(np.linalg.norm(limit - kalman)) / size
    return (
        f"{steady}, at a relative distance of {off:.3g} from the limit of the discrete filter: of "
        "first order in the step."
    )

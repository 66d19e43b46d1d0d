"""The problems: what was asked, as values that are never changed.

A result holds its problem, so that a saved result explains itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from .._check import Array
from ..feedforward import FeedForward
from ..finite_tokens import FiniteTokens
from ..gaussian import Gaussian
from ..mixture import Mixture
from ..parameters import Parameters
from ..riccati_equations.equation import RiccatiEquation
from ..riccati_flow.kalman import KalmanModel
from ..schedule import Schedule
from .bounds import Bounds
from .costs import ControlEnergy, Cost
from .measurements import Measurements

__all__ = [
    "CertificationProblem",
    "ClosenessProblem",
    "ComparisonProblem",
    "DesignProblem",
    "FilterProblem",
    "InspectionProblem",
    "MixtureProblem",
    "Problem",
    "ReachabilityProblem",
    "RiccatiProblem",
    "SimulationProblem",
    "SteeringProblem",
    "TokenProblem",
    "TrackingProblem",
    "ValidationProblem",
]


@dataclass(frozen=True, eq=False)
class SimulationProblem:
    """Move `start` under `schedule`, as a flow or through a number of residual layers.

    A nonlinear `feedforward` layer is replaced by an affine map, by `linearisation`.
    With `tokens` by the closure for finitely many of them, else by the mean field.
    """

    start: Gaussian
    schedule: Schedule
    horizon: float
    layers: int | None = None
    rtol: float = 1e-12
    max_steps: int = 20_000
    feedforward: FeedForward | None = None
    linearisation: str = "statistical"
    name: str = ""
    tokens: FiniteTokens | None = None

    @property
    def noisy(self) -> bool:
        """Whether the rank may grow: by process noise, or by that of attention in layers."""
        return self.schedule.noisy or (self.tokens is not None and self.layers is not None)


@dataclass(frozen=True, eq=False)
class TokenProblem:
    """Move `count` softmax tokens under `schedule`, as a flow or through residual layers.

    `start` is the law from which they were drawn, if they were.  `backend` is what computes the
    softmax averages, "numpy" or "torch", and `dtype` in which precision.
    """

    count: int
    schedule: Schedule
    horizon: float
    layers: int | None = None
    rtol: float = 1e-5
    max_steps: int = 10_000
    start: Gaussian | Mixture | None = None
    seed: int | None = None
    antithetic: bool = False
    moment_matched: bool = False
    feedforward: FeedForward | None = None
    mask_self: bool = False
    causal: bool = False
    backend: str = "numpy"
    dtype: str = "float64"
    name: str = ""


@dataclass(frozen=True, eq=False)
class ClosenessProblem:
    """Ask how far the law of tokens with a nonlinear layer moves away from Gaussian flows.

    `seeds` sets of `count` nodes carry the law.
    """

    start: Gaussian
    schedule: Schedule
    horizon: float
    feedforward: FeedForward
    count: int = 2048
    seeds: int = 3
    name: str = ""


@dataclass(frozen=True, eq=False)
class MixtureProblem:
    """Ask how far a mixture under attention moves away from its moved components.

    `seeds` sets of `count` nodes for each component carry the law.
    """

    start: Mixture
    schedule: Schedule
    horizon: float
    count: int = 1024
    seeds: int = 2
    name: str = ""


@dataclass(frozen=True, eq=False)
class ReachabilityProblem:
    """Ask whether `target` can be reached from `start` with the enabled controls."""

    start: Gaussian
    target: Gaussian
    controls: str = "AVBb"
    name: str = ""


@dataclass(frozen=True, eq=False)
class SteeringProblem:
    """Carry `start` to `target` on [0, horizon] at least cost."""

    start: Gaussian
    target: Gaussian
    horizon: float = 1.0
    controls: str = "AVBb"
    cost: Cost = field(default_factory=ControlEnergy)
    bounds: Bounds = field(default_factory=Bounds)
    method: str = "optimal"
    name: str = ""


@dataclass(frozen=True, eq=False)
class CertificationProblem:
    """Ask what the covariance does under constant parameters, from a start or from all.

    Several `vertices` stand for a family: parameters that vary arbitrarily in time within
    their convex hull.
    """

    vertices: tuple[Parameters, ...]
    start: Gaussian | None = None
    name: str = ""

    @property
    def parameters(self) -> Parameters:
        """The constant parameters, or the first vertex of a family."""
        return self.vertices[0]

    @property
    def dim(self) -> int:
        """Dimension d of the tokens."""
        return self.parameters.dim


@dataclass(frozen=True, eq=False)
class ComparisonProblem:
    """Ask what S' = A S + S Aᵀ + S K S + noise does, K = -Cᵀ R⁻¹ C, beside Riccati solvers.

    R is positive definite for a filter; eigenvalues of both signs stand for a K that is no
    filter's.  Without a start the question is about all covariances of full rank.
    """

    A: Array
    C: Array
    R: Array
    K: Array
    noise: Array | None = None
    start: Gaussian | None = None
    horizon: float | None = None
    name: str = ""

    @property
    def dim(self) -> int:
        """Dimension d of the state."""
        return len(self.A)

    @property
    def filters(self) -> bool:
        """Whether K <= 0, so that this is the Riccati equation of a Kalman filter."""
        return bool(self.R.size == 0 or np.linalg.eigvalsh(self.R)[0] > 0)


@dataclass(frozen=True, eq=False)
class DesignProblem:
    """Find constant parameters that make `target` attracting, at given rates, within bounds.

    What is None is chosen.  `near` are parameters from which the design should differ little;
    the columns of `complement` span the directions in which a singular target has no variance
    and in which variance is lost.
    """

    target: Gaussian
    method: str = "auto"
    V: Array | None = None
    rate: float | None = None
    mean_rate: float | None = None
    bounds: Bounds = field(default_factory=Bounds)
    near: Parameters | None = None
    complement: Array | None = None
    checks: int = 8
    seed: int = 0
    name: str = ""


@dataclass(frozen=True, eq=False)
class FilterProblem:
    """Filter `measurements` by attention, with each number of tokens in `counts`.

    `value` is v of V = v I; with `centred` queries are taken from the mean of the tokens.
    Each number of tokens is drawn `seeds` times.
    """

    model: KalmanModel
    start: Gaussian
    measurements: Measurements
    counts: tuple[int, ...] = (200, 1000, 4000)
    seeds: int = 8
    seed: int | None = 0
    value: float = 1.0
    centred: bool = False
    antithetic: bool = False
    moment_matched: bool = False
    name: str = ""


@dataclass(frozen=True, eq=False)
class InspectionProblem:
    """Ask where the Gaussian theory holds in a pretrained model, for one kind of input.

    `input` is "matched" (Gaussian tokens with the moments of real embeddings), "isotropic"
    (Gaussian tokens with a multiple of the identity as covariance) or "real"; `data` is the file
    or folder of the real input, empty for what comes with the model or the package.
    `layers` is how many of the first layers are looked at, None for all.
    """

    model: str
    input: str = "matched"
    data: str = ""
    tokens: int = 512
    sequences: int = 16
    layers: int | None = None
    seed: int = 0
    name: str = ""


@dataclass(frozen=True, eq=False)
class TrackingProblem:
    """Bring perturbed starts back to a plan that carries `start` to `target`.

    The feedback minimises ∫ Σ_u control_weights[u] |δu|² + state_weight |x|² dt +
    terminal_weight |x(T)|² for the linearisation of the flow along the plan.
    """

    start: Gaussian
    target: Gaussian
    horizon: float
    control_weights: Mapping[str, float]
    state_weight: float
    terminal_weight: float
    bounds: Bounds = field(default_factory=Bounds)
    perturbation: float = 0.05
    samples: int = 50
    seed: int = 0
    name: str = ""

    @property
    def controls(self) -> str:
        """Letters of the parameters that the feedback changes."""
        return "".join(self.control_weights)


@dataclass(frozen=True, eq=False)
class ValidationProblem:
    """Hold clouds of softmax tokens, `seeds` of each of `counts`, against the Gaussian law.

    Clouds are drawn from `start` and move by the flow or through residual layers.  `backend` and
    `dtype` are those of the softmax averages.
    """

    start: Gaussian
    schedule: Schedule
    horizon: float
    counts: tuple[int, ...] = (200, 800, 3200)
    seeds: int = 8
    seed: int | None = 0
    layers: int | None = None
    antithetic: bool = False
    moment_matched: bool = False
    mask_self: bool = False
    feedforward: FeedForward | None = None
    closure: bool = False
    rtol: float = 1e-4
    max_steps: int = 10_000
    name: str = ""
    backend: str = "auto"
    dtype: str = "float64"


@dataclass(frozen=True, eq=False)
class ExportProblem:
    """Export `schedule` to layers of torch, which are to carry `start` to `target`.

    The network is tried with each number of `layers`, on `count` tokens that are drawn from the
    start; the last number is that of the network which is kept, with `exact` layers or not.
    """

    start: Gaussian
    target: Gaussian
    schedule: Schedule
    horizon: float
    layers: tuple[int, ...]
    count: int = 10_000
    seed: int | None = 0
    exact: bool = False
    mask_self: bool = False
    dtype: str = "float64"
    name: str = ""


Problem = (
    SimulationProblem
    | ReachabilityProblem
    | SteeringProblem
    | TokenProblem
    | CertificationProblem
    | ComparisonProblem
    | DesignProblem
    | FilterProblem
    | ClosenessProblem
    | MixtureProblem
    | TrackingProblem
    | ValidationProblem
    | ExportProblem
)


@dataclass(frozen=True, eq=False)
class RiccatiProblem:
    """Find the stabilising solution of an algebraic Riccati equation."""

    equation: RiccatiEquation
    name: str = ""

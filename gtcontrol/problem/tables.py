"""Tables of problem files that become values of the library: parameters, costs, bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..feedforward import FeedForward, check_feedforward
from ..parameters import Parameters
from ..riccati_flow.kalman import KalmanModel
from ..schedule import Schedule
from . import memory
from .bounds import Bounds
from .costs import ControlEnergy, Cost, KineticEnergy, MinimumTime
from .messages import fail, listed, located
from .schema import (
    Arrays,
    Matrix,
    NonNegative,
    Positive,
    Table,
    Vector,
    Vectors,
)

__all__ = [
    "BoundsTable",
    "CostTable",
    "FeedForwardTable",
    "LetterTable",
    "ModelTable",
    "ParametersTable",
    "PieceTable",
    "build_schedule",
]


class ParametersTable(Table):
    """Constant parameters; what is left out is zero.  See :class:`gtcontrol.Parameters`."""

    A: Matrix | None = None
    B: Arrays | None = None
    V: Arrays | None = None
    b: Vector | None = None
    noise: Matrix | None = None
    beta: Vectors | None = None

    @property
    def heads(self) -> int:
        """Number of attention heads that the arrays speak of."""
        stacks = (
            (self.B, 3),
            (self.V, 3),
            (self.beta, 2),
        )
        return max(x.shape[0] if x is not None and x.ndim == n else 1 for x, n in stacks)

    def build(self, where: str, dim: int | None = None) -> Parameters:
        """Make the parameters for tokens of dimension `dim`, or of that of the arrays."""
        with located(where):
            return Parameters(self.A, self.B, self.V, self.b, self.noise, beta=self.beta, dim=dim)


class FeedForwardTable(Table):
    """A feed-forward layer with an activation; see :class:`gtcontrol.FeedForward`."""

    inner: Matrix
    bias: Vector | None = None
    outer: Matrix | None = None
    activation: Literal["relu", "leaky_relu", "gelu", "silu", "tanh", "sigmoid", "identity"] = (
        "relu"
    )

    def build(self, where: str, dim: int) -> FeedForward:
        """Make the layer for tokens of dimension `dim`."""
        with located(where):
            made = FeedForward(self.inner, self.bias, self.outer, self.activation)
            check_feedforward(made, dim)
            return made


class ModelTable(Table):
    """A linear system with noisy measurements; see :class:`gtcontrol.KalmanModel`."""

    A: Matrix
    C: Vectors
    R: Matrix | None = None
    noise: Matrix | None = None

    def build(self, where: str) -> KalmanModel:
        """Make the model."""
        with located(where):
            return KalmanModel(self.A, self.C, self.R, self.noise)


class PieceTable(ParametersTable):
    """Parameters that hold until a given time, from the end of the piece before."""

    until: Positive


def build_schedule(
    parameters: ParametersTable | None,
    pieces: Sequence[PieceTable],
    horizon: float | None,
    dim: int,
    table: str = "simulate",
) -> tuple[Schedule, float]:
    """Make the schedule of a simulation, and its horizon, which stands in `table`.

    Either `parameters` hold on [0, horizon], or each of the `pieces` holds until its end
    and the horizon is by default the end of the last one.
    """
    if (parameters is None) == (not pieces):
        came = "are both given" if pieces else "are both missing"
        fail("parameters", f"and `[[piece]]` {came}; give one of them.")
    tables: Sequence[ParametersTable] = pieces or [parameters or ParametersTable()]
    matrices = sum(1 + 2 * table.heads for table in tables)
    memory.require(f"dense parameters of dimension {dim}", matrices * float(dim) ** 2)
    if parameters is not None:
        if horizon is None:
            fail(f"{table}.horizon", "is missing; expected a number greater than 0.")
        return Schedule.constant(parameters.build("`parameters`", dim), horizon), horizon
    ends = [piece.until for piece in pieces]
    for i in range(1, len(ends)):
        if ends[i] <= ends[i - 1]:
            message = f"is {ends[i]:g}; expected a time after {ends[i - 1]:g}, as pieces follow"
            fail(f"piece[{i}].until", f"{message} each other.")
    if horizon is not None and horizon > ends[-1]:
        fail(f"{table}.horizon", f"is {horizon:g}, but the last piece ends at {ends[-1]:g}.")
    built = [piece.build(f"`piece[{i}]`", dim) for i, piece in enumerate(pieces)]
    return Schedule([0.0, *ends], built), ends[-1] if horizon is None else horizon


class CostTable(Table):
    """What makes one plan better than another; see :mod:`gtcontrol.problem.costs`."""

    kind: Literal["control-energy", "kinetic-energy", "minimum-time"]
    kinetic: NonNegative | None = None
    bound: Positive | None = None
    norm: Literal["entries", "frobenius"] | None = None

    def build(self, where: str) -> Cost:
        """Make the cost; keys that do not belong to its kind are refused."""
        made, keys = _COSTS[self.kind]
        given = {n: getattr(self, n) for n in ("kinetic", "bound", "norm")}
        given = {name: value for name, value in given.items() if value is not None}
        for name in given:
            if name not in keys:
                valid = f"; it has {listed(keys)}" if keys else ""
                fail(f"{where}.{name}", f'does not belong to the cost "{self.kind}"{valid}.')
        return made(**given)


_COSTS: dict[str, tuple[type[Cost], tuple[str, ...]]] = {
    "control-energy": (ControlEnergy, ("kinetic",)),
    "kinetic-energy": (KineticEnergy, ()),
    "minimum-time": (MinimumTime, ("bound", "norm")),
}


class LetterTable(Table):
    """One positive number for each control that is bounded."""

    A: Positive | None = None
    V: Positive | None = None
    B: Positive | None = None
    b: Positive | None = None

    def build(self) -> dict[str, float]:
        """Make the mapping from control letter to bound."""
        return {k: v for k, v in self.model_dump().items() if v is not None}


class BoundsTable(Table):
    """Bounds on the controls and the covariance; see :class:`gtcontrol.Bounds`."""

    entries: LetterTable = LetterTable()
    norms: LetterTable = LetterTable()
    trace: Positive | None = None
    largest_eigenvalue: Positive | None = None

    def build(self) -> Bounds:
        """Make the bounds."""
        return Bounds(self.entries.build(), self.norms.build(), self.trace, self.largest_eigenvalue)

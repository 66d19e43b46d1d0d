"""Result of holding an exported network against the law that it is to reach."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import _check
from .._check import Array
from ..errors import ResultFileInvalid
from ..problem.definitions import ExportProblem
from ..status import Status
from .base import Arrays, Result, exporting
from .network import LayerWeights
from .packing import pack_gaussian, unpack_gaussian
from .plain import agree, pack_plain, plain, read_array, read_status
from .schedules import pack_schedule, unpack_schedule
from .tokens import SAMPLING_BAND

if TYPE_CHECKING:
    import torch

__all__ = ["NEGLIGIBLE", "RESOLUTION", "ExportCheck"]

#: Relative errors up to this size are rounding errors, and have no order.
NEGLIGIBLE = 1e-9

#: Relative errors up to this size may come from the integration of the plan.
RESOLUTION = 1e-5


@dataclass(frozen=True, eq=False)
class ExportCheck(Result):
    """Tokens moved by an exported network, against its number of layers.

    All errors are W₂ between Gaussians with the moments in question, over the size of the target
    (the root of its total variance).

    Attributes
    ----------
    problem : ExportProblem
    status : Status
        SUCCESS, or INTERRUPTED with the numbers of layers that were tried.
    law_errors : (k,) array
        From the target to the Gaussian law of k of the numbers of layers, in the mean field: what
        the finite number of layers does by itself.
    token_errors : (k,) array
        From the target to the moments of the tokens that the network returns.
    own_errors : (k,) array
        From these to the flow of the moments of the tokens that were drawn: without most of the
        luck of the draw.  Empty if this flow does not reach the horizon.
    exact_errors : (k,) array
        As `token_errors`, for the network whose layers are corrected; empty if not asked for.
    baseline : (s,) array
        As `token_errors`, for s samples of as many tokens from the target itself.
    mean : (d,) array
        Of the tokens that the network that is kept returns.
    covariance : (d, d) array
    before, after : (n, d) arrays
        Some tokens before and after that network, for pictures.
    weights : LayerWeights
        The network that is kept: with most layers, corrected if asked for.
    seconds : float
        Wall time spent.
    """

    kind: ClassVar[str] = "export"

    problem: ExportProblem
    status: Status
    law_errors: Array
    token_errors: Array
    own_errors: Array
    exact_errors: Array
    baseline: Array
    mean: Array
    covariance: Array
    before: Array
    after: Array
    weights: LayerWeights
    seconds: float

    @property
    def answered(self) -> bool:
        """Whether the network was tried with all numbers of layers."""
        return self.status.answered

    @property
    def layers(self) -> tuple[int, ...]:
        """Numbers of layers that were tried, increasing."""
        return self.problem.layers[: len(self.token_errors)]

    @property
    def order(self) -> float:
        """Order in 1/layers of the error of the Gaussian law; nan if that is rounding error."""
        return _order(self.layers, self.law_errors)

    @property
    def token_order(self) -> float:
        """Order in 1/layers of :attr:`own_errors`, measured on tokens; nan if there is none."""
        return _order(self.layers[: len(self.own_errors)], self.own_errors)

    @property
    def floor(self) -> float:
        """Error that samples from the target itself have, on average."""
        return float(np.mean(self.baseline))

    @property
    def error(self) -> float:
        """Error of the tokens that the network that is kept returns."""
        return float((self.exact_errors if self.problem.exact else self.token_errors)[-1])

    @property
    def chance(self) -> float:
        """Largest error that sampling explains: three times :attr:`floor`, and integration."""
        return SAMPLING_BAND * self.floor + RESOLUTION

    @property
    def arrives(self) -> bool:
        """Whether the network that is kept reaches the target: its error is within chance."""
        return self.error <= self.chance

    @property
    def as_predicted(self) -> bool:
        """Whether most plain layers miss as their Gaussian law does, up to chance.

        Chance grows with the law that is sampled, whose size is at most 1 + its error.
        """
        law = float(self.law_errors[-1])
        return abs(float(self.token_errors[-1]) - law) <= (1.0 + law) * self.chance

    def to_torch(self) -> torch.nn.Module:
        """Return the network that is kept; see :func:`gtcontrol.to_torch`."""
        made: torch.nn.Module = exporting().build(self.weights)
        return made

    def files(self) -> dict[str, bytes]:
        """The weights of the network, and a description from which it can be built anew."""
        return self.weights.files()

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays."""
        p = self.problem
        sizes, arrays = self.weights.pack()
        values = {
            **pack_plain(p),
            **pack_plain(self),
            "status": self.status.name,
            "layers": list(p.layers),
            "weights": sizes,
            "orders": {"law": self.order, "tokens": self.token_order},
            "arrives": self.arrives,
            "as_predicted": self.as_predicted,
        }
        names = (*_CURVES, "baseline", "mean", "covariance", "before", "after")
        arrays |= {name: getattr(self, name) for name in names}
        arrays |= pack_schedule("schedule", p.schedule) | pack_gaussian("start", p.start)
        return values, arrays | pack_gaussian("target", p.target)

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> ExportCheck:
        """Restore the result."""
        counts = values["layers"]
        if not isinstance(counts, list) or not counts:
            raise ResultFileInvalid("`layers` must be a list of the numbers of layers.")
        layers = tuple(_check.integer("layers", n, low=1) for n in counts)
        if sorted(set(layers)) != list(layers):
            raise ResultFileInvalid("`layers` must increase.")
        problem = ExportProblem(
            start=unpack_gaussian("start", arrays),
            target=unpack_gaussian("target", arrays),
            schedule=unpack_schedule("schedule", arrays),
            layers=layers,
            **plain(ExportProblem, values),
        )
        _check.number("horizon", problem.horizon, low=0.0, strict=True)
        d = problem.start.dim
        weights = LayerWeights.unpack(values["weights"], arrays)
        agree("the dimension of the target", problem.target.dim, d)
        agree("the dimension of the schedule", problem.schedule.dim, d)
        agree("the dimension of the weights", weights.dim, d)
        agree("the number of layers of the weights", weights.layers, layers[-1])
        curves = {name: read_array(arrays, name, None) for name in _CURVES}
        tried = curves["token_errors"].size
        status = read_status(values)
        done = len(layers) if status.answered else tried
        if not 1 <= tried <= len(layers) - (not status.answered):
            raise ResultFileInvalid(
                f"there are {tried} errors for {len(layers)} numbers of layers, and the status is "
                f"{status.name}."
            )
        wanted = {
            "token_errors": done,
            "law_errors": done,
            "own_errors": done if curves["own_errors"].size else 0,
            "exact_errors": done if problem.exact else 0,
        }
        for name, size in wanted.items():
            agree(f"the size of `{name}`", int(curves[name].size), size)
        baseline = read_array(arrays, "baseline", None)
        if not baseline.size:
            raise ResultFileInvalid("the array `baseline` is empty.")
        before = read_array(arrays, "before", None, d)
        numbers: dict[str, Any] = plain(cls, values)
        return cls(
            problem=problem,
            status=status,
            baseline=baseline,
            mean=read_array(arrays, "mean", d),
            covariance=read_array(arrays, "covariance", d, d),
            before=before,
            after=read_array(arrays, "after", len(before), d),
            weights=weights,
            law_errors=curves["law_errors"],
            token_errors=curves["token_errors"],
            own_errors=curves["own_errors"],
            exact_errors=curves["exact_errors"],
            **numbers,
        )


_CURVES = ("law_errors", "token_errors", "own_errors", "exact_errors")


def _order(layers: tuple[int, ...], errors: Array) -> float:
    """Minus the slope of log error against log layers."""
    if len(layers) < 2 or float(np.min(errors)) <= NEGLIGIBLE:
        return math.nan
    return -float(np.polyfit(np.log(layers), np.log(errors), 1)[0])

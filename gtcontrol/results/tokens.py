"""Results of moving actual tokens: a run of its own, and the check of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .. import _check
from .._check import Array
from ..errors import ResultFileInvalid
from ..gaussian import Gaussian
from ..mixture import Mixture
from ..problem.definitions import TokenProblem
from ..status import Status
from .base import Arrays, Result
from .feedforward import pack_feedforward, unpack_feedforward
from .packing import pack_law, unpack_law
from .plain import agree, pack_plain, plain, read_array, read_status, read_times
from .schedules import pack_schedule, unpack_schedule

__all__ = ["SAMPLING_BAND", "TokenCheck", "TokenRun"]

#: Arrays, one number for each time, that a run may lack.
OPTIONAL = ("norm_bound", "own_weight", "effective_size")

#: Option of a run -> what to keep in mind when it is used.
NOTES = {
    "causal": (
        "With a causal mask token i attends to the tokens up to i only, so that tokens are no "
        "longer exchangeable: the equations of the mean field do not cover this run."
    ),
    "mask_self": (
        "No token attends to itself; for many tokens the mean field is the same as without the "
        "mask."
    ),
}

#: A deviation of up to this many standard errors is within the sampling error.
SAMPLING_BAND = 3.0


@dataclass(frozen=True, eq=False)
class TokenRun(Result):
    """A cloud of N tokens moved by actual softmax attention.

    Attributes
    ----------
    problem : TokenProblem
    status : Status
        SUCCESS, or why the run ends before the horizon.
    times : (k,) array
        Times at which the cloud was observed, increasing; the last one is where it ended.
    means : (k, d) array
        Means of all N tokens at these times.
    covariances : (k, d, d) array
        Covariances of all N tokens, normalised by N.
    clouds : (k, n, d) array
        Some of the tokens at these times, for pictures, always the same ones.
    final : (N, d) array
        All tokens where the run ended.
    largest_norm : (k,) array
        Largest norm of a token at these times.
    norm_bound : (k,) array or None
        What it cannot exceed, by Gronwall's inequality: max |x₀| exp(Σ_h ‖V_h‖ t) if A, b = 0.
        None for process noise, parameters that vary continuously, or an activation of your own.
    own_weight, effective_size : (k,) arrays or None
        The weight that tokens give to themselves, and the effective number 1/Σ_j w_ij² of tokens
        that they attend to, averaged over the tokens; where asked for.  Of several heads the one
        with the largest weight, and the one with the smallest number.
    steps, evaluations : int
        Accepted steps (or layers), and evaluations of the velocity of all tokens.
    seconds : float
        Wall time spent.
    reason : str
        Why the steps did not suffice, in words, where it is known; else empty.
    """

    kind: ClassVar[str] = "tokens"

    problem: TokenProblem
    status: Status
    times: Array
    means: Array
    covariances: Array
    clouds: Array
    final: Array
    largest_norm: Array
    norm_bound: Array | None
    own_weight: Array | None
    effective_size: Array | None
    steps: int
    evaluations: int
    seconds: float
    reason: str = ""

    @property
    def answered(self) -> bool:
        """Whether the tokens reached the horizon."""
        return self.status.answered

    @property
    def notes(self) -> tuple[str, ...]:
        """What to keep in mind when the run is compared with the flow of the moments."""
        return tuple(note for flag, note in NOTES.items() if getattr(self.problem, flag))

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays of the run."""
        p = self.problem
        values = {**pack_plain(p), **pack_plain(self), "status": self.status.name}
        arrays = {
            "times": self.times,
            "means": self.means,
            "covariances": self.covariances,
            "clouds": self.clouds,
            "final": self.final,
            "largest_norm": self.largest_norm,
        }
        some = {name: getattr(self, name) for name in OPTIONAL}
        values |= {f"with_{name}": value is not None for name, value in some.items()}
        arrays |= {name: value for name, value in some.items() if value is not None}
        arrays |= pack_schedule("schedule", p.schedule)
        layer, matrices = pack_feedforward("feedforward", p.feedforward)
        values, arrays = values | layer, arrays | matrices
        if p.start is not None:
            arrays |= pack_law("start", p.start)
        return values, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> TokenRun:
        """Restore a run."""
        start: Gaussian | Mixture | None = None
        if "start.mean" in arrays or "start.weights" in arrays:
            start = unpack_law("start", arrays)
        problem = TokenProblem(
            schedule=unpack_schedule("schedule", arrays),
            start=start,
            feedforward=unpack_feedforward("feedforward", values, arrays),
            **plain(TokenProblem, values),
        )
        _check.number("horizon", problem.horizon, low=0.0, strict=True)
        times = read_times(arrays, "times", problem.horizon)
        count, d = times.size, problem.schedule.dim
        if start is not None:
            agree("the dimension of the start", start.dim, d)

        def read_some(name: str) -> Array | None:
            there = values.get(f"with_{name}")
            if not isinstance(there, bool):
                raise ResultFileInvalid(f"`with_{name}` must say whether there is a `{name}`.")
            return read_array(arrays, name, count) if there else None

        return cls(
            problem=problem,
            status=read_status(values),
            times=times,
            means=read_array(arrays, "means", count, d),
            covariances=read_array(arrays, "covariances", count, d, d),
            clouds=read_array(arrays, "clouds", count, None, d),
            final=read_array(arrays, "final", problem.count, d),
            largest_norm=read_array(arrays, "largest_norm", count),
            norm_bound=read_some("norm_bound"),
            own_weight=read_some("own_weight"),
            effective_size=read_some("effective_size"),
            **plain(cls, values),
        )


@dataclass(frozen=True, eq=False)
class TokenCheck:
    """Where N softmax tokens arrive when a plan moves them, against the target law.

    Attributes
    ----------
    count : int
        Number of tokens N.
    seed : int or None
        Seed of the draw, when it was given as one.
    antithetic, moment_matched : bool
        How the start was drawn.
    mean_error, covariance_error : float
        |mean - m₁| and |covariance - S₁| (Frobenius) of the cloud on arrival.
    mean_sampling_error, covariance_sampling_error : float
        Root mean square of the same distances for N independent draws from the target:
        √(tr S₁/N) and √((|S₁|² + (tr S₁)²)/N).
    largest_logit_variance : float
        Largest mean variance a² of the attention logits along the plan; softmax over N
        tokens follows the mean field while a² is well below log N.
    seconds : float
        Wall time spent.
    times : (k,) array
        Times of the stored clouds.
    clouds : (k, n, d) array
        Up to n of the tokens at these times, for pictures.
    mean_resolution, covariance_resolution : float
        Errors that the integration of the tokens may cause by itself.
    status : Status
        SUCCESS if the tokens reached the horizon; else where they ended was compared.
    """

    count: int
    seed: int | None
    antithetic: bool
    moment_matched: bool
    mean_error: float
    covariance_error: float
    mean_sampling_error: float
    covariance_sampling_error: float
    largest_logit_variance: float
    seconds: float
    times: Array
    clouds: Array
    mean_resolution: float = 0.0
    covariance_resolution: float = 0.0
    status: Status = Status.SUCCESS

    @property
    def within_sampling_error(self) -> bool:
        """Whether the tokens arrived with both errors within three standard errors."""
        mean = SAMPLING_BAND * self.mean_sampling_error + self.mean_resolution
        covariance = SAMPLING_BAND * self.covariance_sampling_error + self.covariance_resolution
        return (
            self.status is Status.SUCCESS
            and self.mean_error <= mean
            and self.covariance_error <= covariance
        )

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays."""
        values = {**pack_plain(self), "status": self.status.name}
        values["within_sampling_error"] = self.within_sampling_error
        return values, {"tokens.times": self.times, "tokens.clouds": self.clouds}

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> TokenCheck:
        """Restore the result."""
        times = read_array(arrays, "tokens.times", None)
        return cls(
            times=times,
            clouds=read_array(arrays, "tokens.clouds", times.size, None, None),
            status=read_status(values),
            **plain(cls, values),
        )

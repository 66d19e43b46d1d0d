"""Results of moving actual tokens: a run of its own, and the check of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .. import _check
from .._check import Array
from ..gaussian import Gaussian
from ..problem.definitions import TokenProblem
from ..status import Status
from .base import Arrays, Result
from .packing import pack_gaussian, unpack_gaussian
from .plain import agree, pack_plain, plain, read_array, read_status, read_times
from .schedules import pack_schedule, unpack_schedule

__all__ = ["SAMPLING_BAND", "TokenCheck", "TokenRun"]

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
    steps, evaluations : int
        Accepted steps (or layers), and evaluations of the velocity of all tokens.
    seconds : float
        Wall time spent.
    """

    kind: ClassVar[str] = "tokens"

    problem: TokenProblem
    status: Status
    times: Array
    means: Array
    covariances: Array
    clouds: Array
    final: Array
    steps: int
    evaluations: int
    seconds: float

    @property
    def answered(self) -> bool:
        """Whether the tokens reached the horizon."""
        return self.status.answered

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
        }
        arrays |= pack_schedule("schedule", p.schedule)
        if p.start is not None:
            arrays |= pack_gaussian("start", p.start)
        return values, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> TokenRun:
        """Restore a run."""
        start: Gaussian | None = None
        if "start.mean" in arrays:
            start = unpack_gaussian("start", arrays)
        problem = TokenProblem(
            schedule=unpack_schedule("schedule", arrays),
            start=start,
            **plain(TokenProblem, values),
        )
        _check.number("horizon", problem.horizon, low=0.0, strict=True)
        times = read_times(arrays, "times", problem.horizon)
        count, d = times.size, problem.schedule.dim
        if start is not None:
            agree("the dimension of the start", start.dim, d)
        return cls(
            problem=problem,
            status=read_status(values),
            times=times,
            means=read_array(arrays, "means", count, d),
            covariances=read_array(arrays, "covariances", count, d, d),
            clouds=read_array(arrays, "clouds", count, None, d),
            final=read_array(arrays, "final", problem.count, d),
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

"""Result of moving actual tokens along a plan."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._check import Array
from .base import Arrays

__all__ = ["TokenCheck"]

#: A deviation of up to this many standard errors is within the sampling error.
SAMPLING_BAND = 3.0


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
    times : (k,) array
        Times of the stored clouds.
    clouds : (k, n, d) array
        Up to n of the tokens at these times, for pictures.
    seconds : float
        Wall time spent.
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

    @property
    def within_sampling_error(self) -> bool:
        """Whether both errors are within three standard errors of sampling."""
        return (
            self.mean_error <= SAMPLING_BAND * self.mean_sampling_error
            and self.covariance_error <= SAMPLING_BAND * self.covariance_sampling_error
        )

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays."""
        values = {k: v for k, v in asdict(self).items() if not isinstance(v, np.ndarray)}
        values["within_sampling_error"] = self.within_sampling_error
        return values, {"tokens.times": self.times, "tokens.clouds": self.clouds}

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> TokenCheck:
        """Restore the result."""
        rest = {k: v for k, v in values.items() if k != "within_sampling_error"}
        return cls(**rest, times=arrays["tokens.times"], clouds=arrays["tokens.clouds"])

"""Result of a forecast: variance of tokens against depth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._check import Array
from ..errors import ResultFileInvalid
from .base import Arrays, Result
from .plain import pack_plain, plain, read_array

__all__ = ["BLOWN_UP", "SETTLED", "Forecast"]

#: Growth of log tr S per layer, at the end, up to which the variance counts as settled.
SETTLED = 0.01

#: Total variance, relative to that of the start, beyond which it counts as blown up.
BLOWN_UP = 1e12


@dataclass(frozen=True, eq=False)
class Forecast(Result):
    """Predicted variance of tokens against depth.

    Attributes
    ----------
    model : str
    tokens : int or None
        Number of tokens; None for the mean field of infinitely many.
    placement : str
        Where the norms are: "pre", "post", or "none".
    trained : int
        Layers that the model has; what lies beyond repeats the same blocks.
    bound : float
        What tr S cannot exceed after any layer; inf if no bound is known.
    traces : (n + 1,) array
        Predicted tr S of the input, then after each layer.
    largest : (n + 1,) array
        Predicted largest eigenvalue.
    logit_variance : (n,) array
        E a² in the worst head of each layer.
    measured : (k + 1,) array or None
        Measured tr S, if it was given; k may be any number of layers.
    """

    kind: ClassVar[str] = "forecast"

    model: str
    tokens: int | None
    placement: str
    trained: int
    bound: float
    traces: Array
    largest: Array
    logit_variance: Array
    measured: Array | None

    @property
    def answered(self) -> bool:
        """Always true: also a blow-up is an answer."""
        return True

    @property
    def layers(self) -> int:
        """Layers n that were followed."""
        return len(self.logit_variance)

    @property
    def rate(self) -> float:
        """Growth of log tr S per layer, over the last third of the layers."""
        n = self.layers
        back = max(n // 3, 1)
        first, last = self.traces[n - back], self.traces[n]
        return math.log(last / first) / back if first > 0 and last > 0 else 0.0

    @property
    def course(self) -> str:
        """What the variance does with depth: "settles", "grows", "shrinks" or "blows up"."""
        if self.traces[-1] > BLOWN_UP * self.traces[0]:
            return "blows up"
        if abs(self.rate) <= SETTLED:
            return "settles"
        return "grows" if self.rate > 0 else "shrinks"

    @property
    def strained_from(self) -> int | None:
        """First layer whose scores have more variance than log N; None if there is none."""
        if self.tokens is None:
            return None
        late = np.flatnonzero(self.logit_variance > math.log(self.tokens))
        return int(late[0]) + 1 if late.size else None

    @property
    def ratios(self) -> Array | None:
        """Predicted over measured tr S, where there are both."""
        if self.measured is None:
            return None
        k = min(len(self.measured), len(self.traces))
        return np.asarray(self.traces[:k] / self.measured[:k])

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays."""
        arrays = {name: getattr(self, name) for name in ("traces", "largest", "logit_variance")}
        values = {**pack_plain(self), "layers": self.layers, "course": self.course}
        values["measurements"] = 0 if self.measured is None else len(self.measured)
        if self.measured is not None:
            arrays["measured"] = self.measured
        return values, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> Forecast:
        """Restore the result."""
        logits = read_array(arrays, "logit_variance", None)
        given, n = plain(cls, values), len(logits)
        if n < 1 or values["layers"] != n:
            raise ResultFileInvalid(f"`logit_variance` has {n} layers, not {values['layers']}.")
        if given["placement"] not in ("pre", "post", "none"):
            raise ResultFileInvalid(f"`placement` is {given['placement']!r:.40}.")
        seen = values["measurements"]
        if type(seen) is not int or seen < 0 or (seen == 0) == ("measured" in arrays):
            raise ResultFileInvalid(
                f"`measured` is missing, or is no array of {seen!r:.40} values."
            )
        made = cls(
            traces=read_array(arrays, "traces", n + 1),
            largest=read_array(arrays, "largest", n + 1),
            logit_variance=logits,
            measured=read_array(arrays, "measured", seen) if seen else None,
            **given,
        )
        if values["course"] != made.course:
            raise ResultFileInvalid(
                f"`course` is {values['course']!r:.40}, but the variance {made.course}."
            )
        return made

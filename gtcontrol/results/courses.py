"""What moved, at the times of observation: Gaussian laws, and clouds of tokens beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._check import Array
from ..errors import ResultFileInvalid
from ..status import Status
from .gaussianity import Gaussianity
from .plain import Arrays, pack_plain, plain, read_array, read_status

__all__ = ["CloudCourse", "LawCourse", "Shape", "pack_courses"]


@dataclass(frozen=True, eq=False)
class LawCourse:
    """Means and covariances of a Gaussian law at the times of observation that it reached.

    Attributes
    ----------
    status : Status
        SUCCESS, or why the law ends before the horizon.
    end : float
        Where it ends: the time of blow-up, or of the last law that was computed; inf if it
        reaches the horizon.
    means : (k, d) array
        At the first k times of observation.
    covariances : (k, d, d) array
    """

    status: Status
    end: float
    means: Array
    covariances: Array

    @property
    def traces(self) -> Array:
        """Total variance at these times, shape (k,)."""
        return np.asarray(np.trace(self.covariances, axis1=1, axis2=2))

    def __len__(self) -> int:
        """Times of observation that were reached."""
        return len(self.means)

    def pack(self, name: str) -> tuple[dict[str, Any], Arrays]:
        """Plain values, and arrays under the prefix `name`."""
        values = {**pack_plain(self), "status": self.status.name}
        return values, {f"{name}.means": self.means, f"{name}.covariances": self.covariances}

    @classmethod
    def unpack(cls, name: str, values: Any, arrays: Arrays, most: int, dim: int) -> LawCourse:
        """Restore a law of dimension `dim` with at most `most` times."""
        means = read_array(arrays, f"{name}.means", None, dim)
        _at_most(name, len(means), most)
        return cls(
            means=means,
            covariances=read_array(arrays, f"{name}.covariances", len(means), dim, dim),
            status=read_status(values),
            **plain(cls, values),
        )


@dataclass(frozen=True, eq=False)
class CloudCourse:
    """One cloud of N tokens, at the times of observation that it reached.

    Attributes
    ----------
    count : int
        Number of tokens N.
    status : Status
        SUCCESS, or why the cloud ends before the horizon.
    means : (k, d) array
    covariances : (k, d, d) array
        Normalised by N.
    largest : (k,) array
        Largest |x| over the tokens.
    logit_variances, self_weights, effective : (k,) arrays
        Of attention as it is in the worst head: variance of the logits, weight of a token on
        itself, and number of tokens that a query averages over.
    matched : LawCourse
        The Gaussian law that starts from the cloud's own mean and covariance.
    bound : (k,) array or None
        What the largest |x| cannot exceed, whatever softmax does; None if no bound is known.
    """

    count: int
    status: Status
    means: Array
    covariances: Array
    largest: Array
    logit_variances: Array
    self_weights: Array
    effective: Array
    matched: LawCourse
    bound: Array | None = None

    @property
    def traces(self) -> Array:
        """Total variance at the times reached, shape (k,)."""
        return np.asarray(np.trace(self.covariances, axis1=1, axis2=2))

    def __len__(self) -> int:
        """Times of observation that were reached."""
        return len(self.means)

    def pack(self, name: str) -> tuple[dict[str, Any], Arrays]:
        """Plain values, and arrays under the prefix `name`."""
        matched, arrays = self.matched.pack(f"{name}.matched")
        values = {
            **pack_plain(self),
            "status": self.status.name,
            "matched": matched,
            "bounded": self.bound is not None,
        }
        arrays |= {f"{name}.{key}": getattr(self, key) for key in ("means", "covariances", *_ROWS)}
        if self.bound is not None:
            arrays[f"{name}.bound"] = self.bound
        return values, arrays

    @classmethod
    def unpack(cls, name: str, values: Any, arrays: Arrays, most: int, dim: int) -> CloudCourse:
        """Restore a cloud of dimension `dim` with at most `most` times."""
        means = read_array(arrays, f"{name}.means", None, dim)
        k = len(means)
        _at_most(name, k, most)
        status = read_status(values)
        bounded = values["bounded"]
        if not isinstance(bounded, bool):
            raise ResultFileInvalid(f"`{name}.bounded` is {bounded!r:.40}; expected a truth value.")
        if status is Status.SUCCESS and k < most:
            raise ResultFileInvalid(f"`{name}` ends after {k} of {most} times, but is a success.")
        return cls(
            status=status,
            means=means,
            covariances=read_array(arrays, f"{name}.covariances", k, dim, dim),
            matched=LawCourse.unpack(f"{name}.matched", values["matched"], arrays, most, dim),
            largest=read_array(arrays, f"{name}.largest", k),
            logit_variances=read_array(arrays, f"{name}.logit_variances", k),
            self_weights=read_array(arrays, f"{name}.self_weights", k),
            effective=read_array(arrays, f"{name}.effective", k),
            bound=read_array(arrays, f"{name}.bound", k) if bounded else None,
            **plain(cls, values),
        )


@dataclass(frozen=True)
class Shape:
    """Shape of a cloud at one time of observation.

    Attributes
    ----------
    time : float
    count : int
        Number of tokens.
    gaussianity : Gaussianity
    """

    time: float
    count: int
    gaussianity: Gaussianity

    def pack(self) -> dict[str, Any]:
        """Plain values."""
        return {**pack_plain(self), "gaussianity": self.gaussianity.pack()}

    @classmethod
    def unpack(cls, values: Any) -> Shape:
        """Restore it."""
        return cls(gaussianity=Gaussianity.unpack(values["gaussianity"]), **plain(cls, values))


def pack_courses(name: str, group: Sequence[LawCourse | CloudCourse]) -> tuple[list[Any], Arrays]:
    """Plain values of each course, and arrays under the prefixes `name`.0, `name`.1, …."""
    values: list[Any] = []
    arrays: Arrays = {}
    for i, course in enumerate(group):
        packed, made = course.pack(f"{name}.{i}")
        values.append(packed)
        arrays |= made
    return values, arrays


_ROWS = ("largest", "logit_variances", "self_weights", "effective")


def _at_most(name: str, size: int, most: int) -> None:
    if size > most:
        raise ResultFileInvalid(f"`{name}` has {size} times; expected at most {most}.")

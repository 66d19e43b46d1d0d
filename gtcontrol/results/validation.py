"""Result of holding clouds of softmax tokens against the Gaussian law."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .. import _check
from .._check import Array
from ..errors import ResultFileInvalid
from ..problem.definitions import ValidationProblem
from ..status import Status, TokenVerdict
from .base import Arrays, Result
from .courses import CloudCourse, LawCourse
from .deviations import (
    CountErrors,
    Leaving,
    Slope,
    departure,
    errors,
    fit_slope,
    in_time,
    middle,
    quantiles,
    sampling,
)
from .gaussianity import Gaussianity
from .packing import pack_gaussian, unpack_gaussian
from .plain import agree, pack_plain, plain, read_array, read_status, read_times
from .schedules import pack_schedule, unpack_schedule
from .stamps import Stamp

__all__ = ["BIAS", "EXPLAINED", "SHARE", "Shape", "Validation"]

#: Near its end every finite cloud leaves the law, whatever N is: errors are compared, and fitted
#: in N, up to this share of it.
SHARE = 0.5

#: Total variance may differ systematically by this much, relatively, without being called biased.
BIAS = 0.05

#: The interval of the slope of the error against N must lie below this to count as falling.
FALLING = -0.35

#: An error within this multiple of the sampling error is explained by chance.
EXPLAINED = 2.0


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


@dataclass(frozen=True, eq=False)
class Validation(Result):
    """Clouds of N tokens under actual softmax, beside the Gaussian law that theory gives them.

    Attributes
    ----------
    problem : ValidationProblem
    status : Status
        SUCCESS if all clouds reached the horizon, whether or not they follow the law (see
        :attr:`verdict`); else how the first one that did not ended.
    times : (T,) array
        Times of observation.
    law : LawCourse
        The Gaussian law from the start: the flow, or the residual layers.
    continuous : LawCourse or None
        The flow beside residual layers; None if the flow is what the tokens follow anyway.
    closures : tuple of LawCourse
        The law corrected for finite N, for each number of tokens, where it was asked for.
    clouds : tuple of CloudCourse
        By number of tokens, then by draw.
    shapes : tuple of Shape
        Shape of the first cloud with most tokens, over time.
    logit_variances : (k,) array
        E a² of the law at the times that it reached, in the worst head.
    tilts : (k,) array
        Largest singular value of Lᵀ B L for the law at these times, in the worst head: below 1 the
        errors of the clouds fall like N^(-1/2), else more slowly.
    self_weights : (C, k) array
        Expected weight of a token on itself, for each of the C numbers of tokens.
    resolution : float
        Relative error of the covariance that the integration of the tokens causes by itself,
        from the smallest cloud with a tolerance a hundred times finer.
    seconds : float
        Wall time spent.
    """

    kind: ClassVar[str] = "validation"

    problem: ValidationProblem
    status: Status
    times: Array
    law: LawCourse
    continuous: LawCourse | None
    closures: tuple[LawCourse, ...]
    clouds: tuple[CloudCourse, ...]
    shapes: tuple[Shape, ...]
    logit_variances: Array
    tilts: Array
    self_weights: Array
    resolution: float
    seconds: float

    @property
    def answered(self) -> bool:
        """Whether all clouds reached the horizon."""
        return self.status.answered

    @property
    def blow_up_time(self) -> float:
        """When the law blows up; inf if it does not before the horizon."""
        return self.law.end if self.law.status is Status.BLOW_UP else math.inf

    @property
    def compared_until(self) -> float:
        """End of the window in which errors are compared: the horizon, or half the law's life."""
        return min(self.problem.horizon, SHARE * self.life)

    @cached_property
    def life(self) -> float:
        """How long a cloud could follow the law: until it ends, or outgrows every cloud.

        As tr S <= max |x|², no cloud follows once tr S of the law exceeds the square of the bound
        on its tokens.
        """
        known = [c.bound for c in self.clouds if c.bound is not None and len(c.bound)]
        if not known:
            return self.law.end
        k = min([len(self.law), *map(len, known)])
        beyond = np.sqrt(self.law.traces[:k]) > np.max([b[:k] for b in known], axis=0)
        return min(self.law.end, float(self.times[:k][beyond][0]) if beyond.any() else math.inf)

    @property
    def window(self) -> int:
        """Times of observation in the window, at least one."""
        inside = self.times <= self.compared_until * (1 + 1e-12)
        return max(min(int(np.count_nonzero(inside)), len(self.law)), 1)

    def of_count(self, count: int) -> tuple[CloudCourse, ...]:
        """The clouds with this number of tokens."""
        return tuple(c for c in self.clouds if c.count == count)

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of tokens of which there are clouds, increasing."""
        return tuple(sorted({c.count for c in self.clouds}))

    @cached_property
    def deviations(self) -> tuple[tuple[Array, ...], ...]:
        """Errors of every cloud over time: mean, covariance, distance, then the same, matched."""
        return tuple((*errors(c, self.law), *errors(c, c.matched)) for c in self.clouds)

    @cached_property
    def errors(self) -> tuple[CountErrors, ...]:
        """Errors for each number of tokens, root mean square over the window."""
        return tuple(made for n in self.counts if (made := self._errors(n)) is not None)

    def _errors(self, count: int) -> CountErrors | None:
        clouds = [i for i, c in enumerate(self.clouds) if c.count == count]
        arrived = [i for i in clouds if self._through(i)]
        if not arrived:
            return None
        w = self.window
        mean, covariance, distance, own_mean, own_covariance, own_distance = (
            quantiles([in_time(self.deviations[i][k][:w]) for i in arrived]) for k in range(6)
        )
        floors = [in_time(x[:w]) for x in sampling(self.law, count)]
        return CountErrors(
            count,
            len(arrived),
            len(clouds) - len(arrived),
            mean,
            covariance,
            distance,
            own_mean,
            own_covariance,
            own_distance,
            floors[0],
            floors[1],
        )

    def _through(self, i: int) -> bool:
        """Whether a cloud, and the law of its own moments, got through the window."""
        return min(len(self.clouds[i]), len(self.clouds[i].matched)) >= self.window

    def _slope(self, column: int) -> Slope | None:
        some = [i for i in range(len(self.clouds)) if self._through(i)]
        w = self.window
        values = [in_time(self.deviations[i][column][:w]) for i in some]
        return fit_slope([self.clouds[i].count for i in some], values)

    @cached_property
    def mean_slope(self) -> Slope | None:
        """Fall of the error of the mean with N; None with one number of tokens."""
        return self._slope(0)

    @cached_property
    def covariance_slope(self) -> Slope | None:
        """Fall of the error of the covariance with N; None with one number of tokens."""
        return self._slope(1)

    @cached_property
    def matched_slope(self) -> Slope | None:
        """Fall of the error of the covariance against the law of the cloud's own moments."""
        return self._slope(4)

    @cached_property
    def departures(self) -> tuple[Leaving, ...]:
        """For each number of tokens, when clouds leave the law of their own moments."""
        made = []
        for n in self.counts:
            seen = [departure(c, self.times) for c in self.of_count(n)]
            some = [below for t, below in seen if math.isfinite(t)]
            low, median, high = middle([t for t, _ in seen])
            made.append(Leaving(n, len(seen), len(some), median, low, high, sum(some)))
        return tuple(made)

    @property
    def final_trace(self) -> float | None:
        """Total variance at the horizon, median over the clouds with most tokens."""
        whole = [c for c in self.of_count(self.counts[-1]) if len(c) == self.times.size]
        return float(np.median([c.traces[-1] for c in whole])) if whole else None

    def stamps(self, i: int) -> tuple[Stamp, ...]:
        """Stamps of the i-th number of tokens at the times that the law reached."""
        n = self.problem.counts[i]
        pairs = zip(self.logit_variances, self.self_weights[i], strict=True)
        return tuple(Stamp(n, float(a), float(w)) for a, w in pairs)

    def clean_until(self, i: int) -> float:
        """First time at which the i-th number of tokens is no longer clean; inf if always."""
        dirty = (t for t, s in zip(self.times, self.stamps(i), strict=False) if not s.clean)
        return float(next(dirty, math.inf))

    @property
    def saturation(self) -> float:
        """First time at which the logit variance of the law passes log N of most tokens."""
        logs = math.log(max(self.problem.counts))
        late = self.times[: len(self.law)][self.logit_variances > logs]
        return float(late[0]) if late.size else math.inf

    @cached_property
    def fullness(self) -> float | None:
        """Largest |x| over its bound, over clouds and times after the start; None if unknown."""
        ratios = [
            float(np.max(c.largest[1:] / c.bound[1:]))
            for c in self.clouds
            if c.bound is not None and len(c) > 1
        ]
        return max(ratios, default=None)

    @cached_property
    def bias(self) -> float:
        """Relative excess of the total variance over the law of a cloud's own moments.

        Median over the clouds with most tokens at the end of the window.  The luck of the draw
        is left out, so it is small unless attention of so many tokens is not its mean field.
        """
        i = self.window - 1
        some = [j for j, c in enumerate(self.clouds) if c.count == self.counts[-1]]
        clouds = [self.clouds[j] for j in some if self._through(j)]
        return float(np.median([c.traces[i] / c.matched.traces[i] - 1 for c in clouds]))

    @cached_property
    def verdict(self) -> TokenVerdict:
        """How the clouds stand to the law.

        DEPARTS if the law ends, or outgrows every cloud, before the horizon.  Else FOLLOWS if,
        with most tokens, the median errors of mean and covariance are within twice the sampling
        error and :attr:`bias` is below 5 %; APPROACHES if the error of the covariance falls with
        N like a power whose interval lies below -0.35; else BIASED.
        """
        interrupted = self.status is Status.INTERRUPTED
        if not self.errors or self.errors[-1].count != self.counts[-1] or interrupted:
            return TokenVerdict.UNDECIDED
        if math.isfinite(self.life):
            return TokenVerdict.DEPARTS
        last = self.errors[-1]
        explained = (
            last.covariance[1] <= EXPLAINED * last.covariance_floor + self.resolution
            and last.mean[1] <= EXPLAINED * last.mean_floor + self.resolution
            and abs(self.bias) <= BIAS
        )
        if explained:
            return TokenVerdict.FOLLOWS
        slope = self.covariance_slope
        if slope is not None and slope.high < FALLING:
            return TokenVerdict.APPROACHES
        return TokenVerdict.BIASED

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays."""
        p = self.problem
        values = {
            **pack_plain(p),
            **pack_plain(self),
            "status": self.status.name,
            "verdict": self.verdict.name,
            "counts": list(p.counts),
            "shapes": [{**pack_plain(s), "gaussianity": s.gaussianity.pack()} for s in self.shapes],
        }
        arrays = {
            "times": self.times,
            "logit_variances": self.logit_variances,
            "tilts": self.tilts,
            "self_weights": self.self_weights,
        }
        arrays |= pack_gaussian("start", p.start) | pack_schedule("schedule", p.schedule)
        parts: dict[str, list[Any]] = {"laws": [], "closures": [], "clouds": []}
        laws = [self.law] if self.continuous is None else [self.law, self.continuous]
        courses: tuple[tuple[str, Sequence[LawCourse | CloudCourse]], ...] = (
            ("laws", laws),
            ("closures", self.closures),
            ("clouds", self.clouds),
        )
        for name, group in courses:
            for i, course in enumerate(group):
                plain_values, made = course.pack(f"{name}.{i}")
                parts[name].append(plain_values)
                arrays |= made
        return {**values, **parts}, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> Validation:
        """Restore a result."""
        problem = _unpack_problem(values, arrays)
        times = read_times(arrays, "times", problem.horizon)
        most, d = times.size, problem.start.dim
        for name in ("laws", "closures", "clouds", "shapes"):
            if not isinstance(values[name], list):
                raise ResultFileInvalid(f"`{name}` is no list.")
        laws, closures = (
            [
                LawCourse.unpack(f"{name}.{i}", entry, arrays, most, d)
                for i, entry in enumerate(values[name])
            ]
            for name in ("laws", "closures")
        )
        clouds = [
            CloudCourse.unpack(f"clouds.{i}", entry, arrays, most, d)
            for i, entry in enumerate(values["clouds"])
        ]
        if len(laws) not in (1, 2) or {c.count for c in clouds} - set(problem.counts):
            raise ResultFileInvalid("the laws or the clouds do not fit the problem.")
        k = len(laws[0])
        made = cls(
            problem=problem,
            status=read_status(values),
            times=times,
            law=laws[0],
            continuous=laws[1] if len(laws) == 2 else None,
            closures=tuple(closures),
            clouds=tuple(clouds),
            shapes=tuple(
                Shape(gaussianity=Gaussianity.unpack(s["gaussianity"]), **plain(Shape, s))
                for s in values["shapes"]
            ),
            logit_variances=read_array(arrays, "logit_variances", k),
            tilts=read_array(arrays, "tilts", k),
            self_weights=read_array(arrays, "self_weights", len(problem.counts), k),
            **plain(cls, values),
        )
        if values["verdict"] != made.verdict.name:
            raise ResultFileInvalid(
                f"`verdict` is {values['verdict']!r:.40}, but the rest says {made.verdict.name}."
            )
        return made


def _unpack_problem(values: dict[str, Any], arrays: Arrays) -> ValidationProblem:
    start = unpack_gaussian("start", arrays)
    schedule = unpack_schedule("schedule", arrays)
    agree("the dimension of the start", start.dim, schedule.dim)
    counts = values["counts"]
    if not isinstance(counts, list) or not all(type(n) is int and n >= 2 for n in counts):
        raise ResultFileInvalid("`counts` is not a list of whole numbers from 2 on.")
    problem = ValidationProblem(
        start=start, schedule=schedule, counts=tuple(counts), **plain(ValidationProblem, values)
    )
    _check.number("horizon", problem.horizon, low=0.0, strict=True)
    return problem

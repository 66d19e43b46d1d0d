"""Result of holding clouds of softmax tokens against the Gaussian law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .._check import Array
from ..errors import ResultFileInvalid
from ..problem.definitions import ValidationProblem
from ..status import Status, TokenVerdict
from .base import Arrays, Result
from .courses import CloudCourse, LawCourse, Shape, pack_courses
from .deviations import (
    CountErrors,
    Excess,
    Leaving,
    Slope,
    departure,
    errors,
    excess,
    fit_slope,
    in_time,
    middle,
    quantiles,
    sampling,
)
from .plain import pack_plain, plain, read_array, read_status, read_times
from .stamps import Stamp
from .validation_problem import pack_problem, unpack_problem

__all__ = ["BIAS", "EXPLAINED", "SHARE", "Validation"]

#: Near its end every finite cloud leaves the law, whatever N is: errors are compared, and fitted
#: in N, up to this share of it.
SHARE = 0.5

#: Total variance may differ systematically by this much, relatively, without being called biased.
BIAS = 0.05

#: The interval of the slope of the error against N must lie below this to count as falling.
FALLING = -0.35

#: An error within this multiple of the sampling error is explained by chance.
EXPLAINED = 2.0


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
    untested : str
        Why its shape was not tested from some time on, in words; empty if nothing is missing.
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
    untested: str = ""

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
        last = [c.traces[-1] for c in self.clouds if c.count == self.counts[-1] and self._whole(c)]
        return float(np.median(last)) if last else None

    def _whole(self, cloud: CloudCourse) -> bool:
        return len(cloud) == self.times.size

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

    @property
    def fullness(self) -> float | None:
        """Largest |x| over its bound, over clouds and times after the start; None if unknown."""
        return None if self.fullest is None else self.fullest[0]

    @cached_property
    def fullest(self) -> tuple[float, float] | None:
        """The same with the time at which it is so."""
        ratios = [
            max(zip(c.largest[1:] / c.bound[1:], self.times[1:], strict=False))
            for c in self.clouds
            if c.bound is not None and len(c) > 1
        ]
        return (float(max(ratios)[0]), float(max(ratios)[1])) if ratios else None

    @property
    def _interrupted(self) -> bool:
        return self.status is Status.INTERRUPTED

    @property
    def bias(self) -> float:
        """Relative excess of the total variance over the law: the value of ``excess``."""
        return self.excess.value

    @cached_property
    def excess(self) -> Excess:
        """Relative excess of the total variance, with most tokens at the end of the window."""
        i, n = self.window - 1, self.counts[-1]
        some = [j for j, c in enumerate(self.clouds) if c.count == n and self._through(j)]
        clouds = [self.clouds[j] for j in some]
        return excess(clouds, self.law, i, moment_matched=self.problem.moment_matched)

    @cached_property
    def closure_errors(self) -> tuple[float, ...]:
        """Largest relative error of the total variance of each closure, over time.

        Against the median cloud with as many tokens, while both go on; nan without a cloud.
        """
        made = []
        for n, law in zip(self.problem.counts, self.closures, strict=True):
            clouds = [c.traces for c in self.of_count(n)]
            k = min([len(law), *map(len, clouds)]) if clouds else 0
            median = np.median([x[:k] for x in clouds], axis=0) if k else np.array([math.nan])
            made.append(float(np.max(np.abs(law.traces[: max(k, 1)] / median - 1))))
        return tuple(made)

    @cached_property
    def verdict(self) -> TokenVerdict:
        """How the clouds stand to the law.

        DEPARTS if the law ends, or outgrows every cloud, before the horizon.  Else FOLLOWS if,
        with most tokens, the median errors of mean and covariance are within twice the sampling
        error and ``excess`` is not above 5 % systematically; APPROACHES if the error of the
        covariance falls with N like a power whose interval lies below -0.35; else BIASED.
        """
        if not self.errors or self.errors[-1].count != self.counts[-1] or self._interrupted:
            return TokenVerdict.UNDECIDED
        if math.isfinite(self.life):
            return TokenVerdict.DEPARTS
        last = self.errors[-1]
        explained = (
            last.covariance[1] <= EXPLAINED * last.covariance_floor + self.resolution
            and last.mean[1] <= EXPLAINED * last.mean_floor + self.resolution
            and not self.excess.systematic(BIAS)
        )
        if explained:
            return TokenVerdict.FOLLOWS
        slope = self.covariance_slope
        if slope is not None and slope.high < FALLING:
            return TokenVerdict.APPROACHES
        return TokenVerdict.BIASED

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays."""
        values, arrays = pack_problem(self.problem)
        values |= {
            **pack_plain(self),
            "status": self.status.name,
            "verdict": self.verdict.name,
            "shapes": [s.pack() for s in self.shapes],
        }
        arrays |= {
            "times": self.times,
            "logit_variances": self.logit_variances,
            "tilts": self.tilts,
            "self_weights": self.self_weights,
        }
        laws = [self.law] if self.continuous is None else [self.law, self.continuous]
        for name, group in (("laws", laws), ("closures", self.closures), ("clouds", self.clouds)):
            values[name], made = pack_courses(name, group)
            arrays |= made
        return values | {"numbers": [len(values[name]) for name in _GROUPS]}, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> Validation:
        """Restore a result."""
        problem = unpack_problem(values, arrays)
        times = read_times(arrays, "times", problem.horizon)
        size = times.size, problem.start.dim
        _require_groups(values)
        laws, closures = (
            [LawCourse.unpack(f"{name}.{i}", v, arrays, *size) for i, v in enumerate(values[name])]
            for name in ("laws", "closures")
        )
        clouds = [
            CloudCourse.unpack(f"clouds.{i}", v, arrays, *size)
            for i, v in enumerate(values["clouds"])
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
            shapes=tuple(map(Shape.unpack, values["shapes"])),
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


#: Lists of a saved result, whose lengths are saved beside them.
_GROUPS = ("laws", "closures", "clouds", "shapes")


def _require_groups(values: dict[str, Any]) -> None:
    for name, expected in zip(_GROUPS, values["numbers"], strict=True):
        if not isinstance(values[name], list):
            raise ResultFileInvalid(f"`{name}` is no list.")
        if len(values[name]) != expected:
            raise ResultFileInvalid(
                f"`{name}` has {len(values[name])} entries; expected {expected!r:.40}."
            )

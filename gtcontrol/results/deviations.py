"""Errors of clouds against Gaussian laws, their fall with N, and when clouds depart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from .._check import Array
from ..gaussian import Gaussian, wasserstein
from .courses import CloudCourse, LawCourse

__all__ = [
    "DEPARTURE",
    "CountErrors",
    "Excess",
    "Leaving",
    "Slope",
    "departure",
    "errors",
    "excess",
    "fit_slope",
    "in_time",
    "middle",
    "quantiles",
    "sampling",
]

#: A cloud has departed once its total variance differs by this much, relatively.
DEPARTURE = 0.1

#: Relative errors below this are rounding: a symmetry or the draw makes them vanish.
ROUNDING = 1e-10

#: Confidence of the interval of a slope.
CONFIDENCE = 0.95

#: An excess beyond a limit by this many standard errors is no chance.
ERRORS = 2.0

#: The median of normal values scatters by this much more than their mean.
MEDIAN = math.sqrt(math.pi / 2)

#: Quantiles of the band over clouds.
LOW, HIGH = 0.1, 0.9


@dataclass(frozen=True)
class Slope:
    """Slope of log error against log N by least squares, with its 95 % interval.

    Attributes
    ----------
    value, low, high : float
        The interval is Student's, over all clouds; infinitely wide with two clouds.
    clouds : int
        Number of clouds that it is fitted to.
    """

    value: float
    low: float
    high: float
    clouds: int


@dataclass(frozen=True)
class CountErrors:
    """Errors of the clouds of N tokens, root mean square in time over the window.

    Attributes
    ----------
    count, clouds, failed : int
        N, the clouds that were compared, and those that did not get through the window.
    mean, covariance, distance : tuple of 3 floats
        10 % quantile, median and 90 % quantile over the clouds: |m_N - m|/√(tr S),
        |S_N - S|/|S| (Frobenius) and W₂/√(tr S) (Bures-Wasserstein with means) against the law.
    matched_mean, matched_covariance, matched_distance : tuple of 3 floats
        The same against the law that starts from each cloud's own moments.
    mean_floor, covariance_floor : float
        Root mean square of the first two for N independent draws from the law itself.
    """

    count: int
    clouds: int
    failed: int
    mean: tuple[float, float, float]
    covariance: tuple[float, float, float]
    distance: tuple[float, float, float]
    matched_mean: tuple[float, float, float]
    matched_covariance: tuple[float, float, float]
    matched_distance: tuple[float, float, float]
    mean_floor: float
    covariance_floor: float


@dataclass(frozen=True)
class Leaving:
    """When the clouds of N tokens leave the law that starts from their own moments.

    Attributes
    ----------
    count, clouds, departed : int
        N, how many clouds there are, and how many of them depart before the horizon.
    time : float
        Median over the clouds of the first time at which the total variances differ by 10 %;
        inf if at least half of them stay.
    low, high : float
        10 % and 90 % quantiles.
    below : int
        How many of those that depart have then less variance than the law.
    """

    count: int
    clouds: int
    departed: int
    time: float
    low: float
    high: float
    below: int


@dataclass(frozen=True)
class Excess:
    """Relative excess of the total variance of clouds of N tokens, medians over the clouds.

    Attributes
    ----------
    value, error : float
        Over the law from the start, and the standard error of this median.
    matched : float
        Over the law that starts from each cloud's own moments.  The luck of the draw is left out.
    spread : float
        (r + 1)/N for tokens of rank r, 0 for moment-matched draws.  A sample covariance S_N has
        E S_N² = (1 + (r + 1)/N) S² for S = I: its largest eigenvalues are too large, and where
        growth is faster than linear, the law that starts from it overshoots by about that much.
    """

    value: float
    error: float
    matched: float
    spread: float

    def tells(self, limit: float) -> bool:
        """Whether the law of own moments is near enough to tell an excess of this size."""
        return self.spread <= limit

    def systematic(self, limit: float) -> bool:
        """Whether the excess is beyond a limit, by more than chance."""
        seen = abs(self.value) > limit + ERRORS * self.error
        return seen or (self.tells(limit) and abs(self.matched) > limit)


def excess(
    clouds: Sequence[CloudCourse], law: LawCourse, i: int, *, moment_matched: bool
) -> Excess:
    """Excess of the total variance of clouds with the same N at the i-th time.

    The scatter of the clouds is that of the sample, for independent draws at least that of N
    draws from the law itself, √(2/N) |S|/tr S.
    """
    n, size = clouds[0].count, law.traces[i]
    values = [float(c.traces[i] / size) - 1 for c in clouds]
    scatter = math.sqrt(2 / n) * float(np.linalg.norm(law.covariances[i] / size))
    if len(values) > 1:
        seen = float(np.std(values, ddof=1))
        scatter = seen if moment_matched else max(seen, scatter)
    rank = int(np.linalg.matrix_rank(law.covariances[i] / size, hermitian=True))
    return Excess(
        float(np.median(values)),
        MEDIAN * scatter / math.sqrt(len(values)),
        float(np.median([c.traces[i] / c.matched.traces[i] - 1 for c in clouds])),
        0.0 if moment_matched else (rank + 1) / n,
    )


def errors(cloud: CloudCourse, law: LawCourse) -> tuple[Array, Array, Array]:
    """Relative errors of mean, covariance and law at the times that both reach.

    Returns
    -------
    mean, covariance, distance : (k,) arrays
        |m_N - m|/√(tr S), |S_N - S|/|S| and W₂/√(tr S).
    """
    k = min(len(cloud), len(law))
    scale = np.sqrt(law.traces[:k])
    mean = np.linalg.norm(cloud.means[:k] - law.means[:k], axis=1) / scale
    # Scaled before they are squared: near a blow-up the squares would overflow.
    unit = law.traces[:k, None, None]
    S = law.covariances[:k] / unit
    apart = np.linalg.norm(cloud.covariances[:k] / unit - S, axis=(1, 2))
    covariance = apart / np.linalg.norm(S, axis=(1, 2))
    laws = [
        [Gaussian.from_covariance(x.means[i], x.covariances[i]) for i in range(k)]
        for x in (cloud, law)
    ]
    distance = np.array([wasserstein(p, q) for p, q in zip(*laws, strict=True)])
    return np.asarray(mean), np.asarray(covariance), distance / scale


def sampling(law: LawCourse, count: int) -> tuple[Array, Array]:
    """Root mean square errors of `count` independent draws from the law itself, in time.

    The mean of N draws misses by √(tr S/N); their covariance S_N, about their own mean and
    normalised by N, has E|S_N - S|² = ((N - 1)(|S|² + (tr S)²) + |S|²)/N².

    Returns
    -------
    mean, covariance : (k,) arrays
        Relative to √(tr S) and |S|.
    """
    unit = law.traces[:, None, None]
    squares = np.sum((law.covariances / unit) ** 2, axis=(1, 2))
    total = ((count - 1) * (squares + 1.0) + squares) / count**2
    return np.full(len(law), 1 / math.sqrt(count)), np.asarray(np.sqrt(total / squares))


def fit_slope(counts: Sequence[int], values: Sequence[float]) -> Slope | None:
    """Fit the slope of log error against log N.

    Errors of clouds with the same N scatter by a factor that hardly depends on N, so the residuals
    of the logarithms are alike and Student's interval applies.

    Parameters
    ----------
    counts : sequence of int
        Number of tokens of each cloud.
    values : sequence of float
        Error of each cloud; errors of the size of rounding are left out.

    Returns
    -------
    Slope or None
        None with fewer than two different numbers of tokens.
    """
    pairs = [
        (math.log(n), math.log(v)) for n, v in zip(counts, values, strict=True) if v > ROUNDING
    ]
    if len({x for x, _ in pairs}) < 2:
        return None
    x, y = np.array(pairs).T
    centred = x - x.mean()
    spread = float(np.sum(centred**2))
    value = float(np.sum(centred * y)) / spread
    freedom = len(pairs) - 2
    if freedom < 1:
        return Slope(value, -math.inf, math.inf, len(pairs))
    residual = y - y.mean() - value * centred
    error = math.sqrt(float(np.sum(residual**2)) / freedom / spread)
    half = float(student.ppf(0.5 + 0.5 * CONFIDENCE, freedom)) * error
    return Slope(value, value - half, value + half, len(pairs))


def departure(cloud: CloudCourse, times: Array) -> tuple[float, bool]:
    """When a cloud departs from the law of its own moments, and whether with less variance.

    Between two times of observation the ratio of total variances is taken as a power of e that is
    linear in time.  If the law blows up first, that is when the cloud departs.

    Returns
    -------
    time : float
        inf if it does not depart.
    below : bool
    """
    law = cloud.matched
    k = min(len(cloud), len(law))
    ratio = np.log(cloud.traces[:k] / law.traces[:k])
    low, high = math.log1p(-DEPARTURE), math.log1p(DEPARTURE)
    outside = np.flatnonzero((ratio < low) | (ratio > high))
    if not outside.size:
        ended = k < len(cloud) and math.isfinite(law.end)
        return (law.end, True) if ended else (math.inf, False)
    i = int(outside[0])
    below = bool(ratio[i] < low)
    if i == 0:
        return float(times[0]), below
    edge = low if below else high
    share = (edge - ratio[i - 1]) / (ratio[i] - ratio[i - 1])
    return float(times[i - 1] + share * (times[i] - times[i - 1])), below


def in_time(values: Array) -> float:
    """Root mean square over times."""
    return float(np.sqrt(np.mean(values**2)))


def quantiles(values: Sequence[float]) -> tuple[float, float, float]:
    """10 % quantile, median and 90 % quantile."""
    low, median, high = np.quantile(values, [LOW, 0.5, HIGH])
    return float(low), float(median), float(high)


def middle(values: Sequence[float]) -> tuple[float, float, float]:
    """The same for values that may be infinite: actual values, nothing between them."""
    low, median, high = np.quantile(values, [LOW, 0.5, HIGH], method="inverted_cdf")
    return float(low), float(median), float(high)

"""Errors of clouds of N tokens against the filter, over realisations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._check import Array

__all__ = ["ErrorBand", "TokenErrors", "TokenFilter", "band", "slopes"]

#: Quantiles of the band over realisations.
LOW, HIGH = 0.1, 0.9


@dataclass(frozen=True, eq=False)
class TokenFilter:
    """Realisations of the filter with N tokens.

    Attributes
    ----------
    count : int
        Number of tokens N.
    means : (s, T + 1, d) array
        Means of the tokens in s realisations, at the times of the measurements.
    covariances : (s, T + 1, d, d) array
        Their covariances, normalised by N.
    failed : int
        Realisations that did not reach the horizon, and are left out.
    """

    count: int
    means: Array
    covariances: Array
    failed: int = 0


@dataclass(frozen=True)
class ErrorBand:
    """A number over realisations: median, the 10 % and 90 % quantiles, and root mean square."""

    median: float
    low: float
    high: float
    rms: float


@dataclass(frozen=True)
class TokenErrors:
    """Errors of N tokens against the filter, root mean square in time.

    Attributes
    ----------
    count, realisations : int
    mean : ErrorBand
        |m_N - m|/√(tr S).
    covariance : ErrorBand
        |S_N - S|/|S| (Frobenius).
    mean_sampling, covariance_sampling : float
        Root mean square of the same for N independent draws from N(m, S): 1/√N for the mean,
        √((|S|² + (tr S)²)/N)/|S| for the covariance.
    mean_predicted, covariance_predicted : float or None
        The root mean square predicted to first order in 1/√N.
    """

    count: int
    realisations: int
    mean: ErrorBand
    covariance: ErrorBand
    mean_sampling: float
    covariance_sampling: float
    mean_predicted: float | None
    covariance_predicted: float | None


def band(values: Array) -> ErrorBand:
    """Put a number over realisations into a band."""
    low, median, high = np.quantile(values, [LOW, 0.5, HIGH])
    return ErrorBand(float(median), float(low), float(high), float(np.sqrt(np.mean(values**2))))


def slopes(errors: list[tuple[int, Array]]) -> ErrorBand | None:
    """Slope of log error against log N by least squares.

    Realisation i of each N has its own slope; the median is that of the median errors, as
    realisations of different N are independent.  None with fewer than two N, or without errors.

    Parameters
    ----------
    errors : list of (N, (s,) array)
    """
    some = [(n, e) for n, e in errors if e.size and np.all(e > 0)]
    if len({n for n, _ in some}) < 2:
        return None
    x = np.log([float(n) for n, _ in some])
    x = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    pairs = min(e.size for _, e in some)
    each = x @ np.log(np.array([e[:pairs] for _, e in some]))
    low, high = np.quantile(each, [LOW, HIGH])
    median = float(x @ np.log([float(np.median(e)) for _, e in some]))
    return ErrorBand(median, float(low), float(high), float(np.sqrt(np.mean(each**2))))

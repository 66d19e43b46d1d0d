"""Result of filtering by attention: python-control's filter, the flow, and actual tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._check import Array
from ..errors import ResultFileInvalid
from ..problem.definitions import FilterProblem
from ..problem.measurements import Measurements
from ..riccati_flow.kalman import KalmanModel
from ..status import Status
from .base import Arrays, Result
from .filter_errors import ErrorBand, TokenErrors, TokenFilter, band, slopes
from .packing import pack_gaussian, unpack_gaussian
from .plain import agree, pack_plain, plain, read_array, read_status, restore

__all__ = ["AGREEMENT", "Consistency", "FilterRun"]

#: Arrays that a result may do without.
_OPTIONAL = ("model.noise", "states", "forcing", "predicted.mean", "predicted.covariance")

#: The flow and python-control's filter may differ by this much, relatively.
AGREEMENT = 1e-8


@dataclass(frozen=True)
class Consistency:
    """Whether the filter is as wrong as it says, in the statistics that engineers look at.

    Attributes
    ----------
    innovation : float
        Mean of the squared innovations νᵀ E⁻¹ ν, with E their covariance; p for a filter that is
        consistent.
    innovation_low, innovation_high : float
        Where it lies with probability 95 %.
    correlation, correlation_bound : float
        Correlation of consecutive innovations, and the bound that white ones keep with
        probability 95 %.
    state, state_low, state_high : float or None
        (x - m)ᵀ S⁻¹ (x - m) of the true state at the horizon, and where it lies with probability
        95 %; None without true states or below full rank.
    """

    innovation: float
    innovation_low: float
    innovation_high: float
    correlation: float
    correlation_bound: float
    state: float | None = None
    state_low: float | None = None
    state_high: float | None = None

    @property
    def white(self) -> bool:
        """Whether the innovations have the size and the independence that they should."""
        sized = self.innovation_low <= self.innovation <= self.innovation_high
        return sized and abs(self.correlation) <= self.correlation_bound


@dataclass(frozen=True, eq=False, repr=False)
class FilterRun(Result):
    """Measurements filtered three times: python-control, the flow of the law, actual tokens.

    Attributes
    ----------
    problem : FilterProblem
    status : Status
        SUCCESS if flow and python-control agree and all tokens reached the horizon.
    kalman_means : (T + 1, d) array
        Means of python-control's Kalman-Bucy filter at the times of the measurements.
    kalman_covariances : (T + 1, d, d) array
    flow_means : (T + 1, d) array
        Means of the law of the tokens in the mean-field Transformer.
    flow_covariances : (T + 1, d, d) array
    clouds : tuple of TokenFilter
        Realisations with N tokens, for each N.
    innovations : (T, p) array
        Measurements minus their predictions, each divided by its standard deviation.
    consistency : Consistency
    predicted_mean : (T + 1,) array or None
        Root mean square of |m_N - m| times √N, to first order in 1/√N.
    predicted_covariance : (T + 1,) array or None
        The same for |S_N - S| (Frobenius).
    prediction_note : str
        What the prediction is worth, or why there is none.
    mean_share, covariance_share : float or None
        Share of the predicted squared errors that is of softmax over finitely many keys; the
        rest is of the draw at the start.
    tilt : float
        Largest λ_max(S CᵀR⁻¹C)/(2 |v|) on the way; below 1 the errors fall like N^(-1/2).
    logit_variance : float
        Largest mean variance a² of the attention logits on the way; softmax over N tokens
        follows its mean field while a² is well below log N.
    token_resolution : float
        Relative error that the integration of the tokens causes by itself, by halving its steps.
    seconds : float
        Wall time spent.
    """

    kind: ClassVar[str] = "filter"

    problem: FilterProblem
    status: Status
    kalman_means: Array
    kalman_covariances: Array
    flow_means: Array
    flow_covariances: Array
    clouds: tuple[TokenFilter, ...]
    innovations: Array
    consistency: Consistency
    predicted_mean: Array | None
    predicted_covariance: Array | None
    prediction_note: str
    mean_share: float | None
    covariance_share: float | None
    tilt: float
    logit_variance: float
    token_resolution: float
    seconds: float

    @property
    def answered(self) -> bool:
        """Whether flow and filter agree, and all tokens reached the horizon."""
        return self.status.answered

    @property
    def times(self) -> Array:
        """Times of the measurements, shape (T + 1,)."""
        return self.problem.measurements.times

    @property
    def mean_agreement(self) -> float:
        """Largest difference of the means of flow and python-control.

        Relative to the size of mean and standard deviation at that time.
        """
        scale = np.linalg.norm(self.kalman_means, axis=1) + np.sqrt(
            _traces(self.kalman_covariances)
        )
        return float(np.max(np.linalg.norm(self.flow_means - self.kalman_means, axis=1) / scale))

    @property
    def covariance_agreement(self) -> float:
        """Largest relative difference (Frobenius) of the covariances of flow and python-control."""
        apart = _norms(self.flow_covariances - self.kalman_covariances)
        return float(np.max(apart / _norms(self.kalman_covariances)))

    @property
    def agreement(self) -> float:
        """The larger of :attr:`mean_agreement` and :attr:`covariance_agreement`."""
        return max(self.mean_agreement, self.covariance_agreement)

    @property
    def token_errors(self) -> tuple[TokenErrors, ...]:
        """Errors of the tokens for each N, beside the sampling error and the prediction."""
        S, n = self.flow_covariances, _norms(self.flow_covariances)
        traces = _traces(S)
        sampling = _in_time(np.sqrt(n**2 + traces**2) / n)
        made = []
        for cloud in self.clouds:
            if not len(cloud.means):
                continue
            root = math.sqrt(cloud.count)
            mean, covariance = self._errors(cloud)
            predicted: tuple[float | None, float | None] = None, None
            if self.predicted_mean is not None and self.predicted_covariance is not None:
                predicted = (
                    _in_time(self.predicted_mean / np.sqrt(traces)) / root,
                    _in_time(self.predicted_covariance / n) / root,
                )
            made.append(
                TokenErrors(
                    cloud.count,
                    len(mean),
                    band(mean),
                    band(covariance),
                    1 / root,
                    sampling / root,
                    *predicted,
                )
            )
        return tuple(made)

    def _errors(self, cloud: TokenFilter) -> tuple[Array, Array]:
        """Errors of mean and covariance of each realisation, root mean square in time."""
        S = self.flow_covariances
        mean = np.linalg.norm(cloud.means - self.flow_means, axis=2) / np.sqrt(_traces(S))
        covariance = _norms(cloud.covariances - S) / _norms(S)
        return (
            np.array([_in_time(x) for x in mean]),
            np.array([_in_time(x) for x in covariance]),
        )

    @property
    def mean_slope(self) -> ErrorBand | None:
        """Slope of log error of the mean against log N, over the realisations."""
        return slopes([(c.count, self._errors(c)[0]) for c in self.clouds])

    @property
    def covariance_slope(self) -> ErrorBand | None:
        """Slope of log error of the covariance against log N, over the realisations."""
        return slopes([(c.count, self._errors(c)[1]) for c in self.clouds])

    def __repr__(self) -> str:
        words = [
            self.status.name,
            f"states={self.problem.model.dim}",
            f"measurements={len(self.problem.measurements)}",
            f"tokens={', '.join(str(n) for n in self.problem.counts)}",
            f"agreement {self.agreement:.1e}",
        ]
        return f"FilterRun({', '.join(words)})"

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays."""
        p, y = self.problem, self.problem.measurements
        values = {
            **pack_plain(p),
            **pack_plain(self),
            "status": self.status.name,
            "agreement": self.agreement,
            "consistency": pack_plain(self.consistency),
            "clouds": [{"count": c.count, "failed": c.failed} for c in self.clouds],
            "counts": list(p.counts),
        }
        arrays = {
            "kalman.means": self.kalman_means,
            "kalman.covariances": self.kalman_covariances,
            "flow.means": self.flow_means,
            "flow.covariances": self.flow_covariances,
            "innovations": self.innovations,
            "model.A": p.model.A,
            "model.C": p.model.C,
            "model.R": p.model.R,
            "times": y.times,
            "values": y.values,
        }
        optional = {
            "model.noise": p.model.noise,
            "states": y.states,
            "forcing": y.forcing,
            "predicted.mean": self.predicted_mean,
            "predicted.covariance": self.predicted_covariance,
        }
        given = {name: x for name, x in optional.items() if x is not None}
        arrays |= given
        values["optional"] = sorted(given)
        arrays |= pack_gaussian("start", p.start)
        for i, cloud in enumerate(self.clouds):
            arrays |= {f"tokens{i}.means": cloud.means, f"tokens{i}.covariances": cloud.covariances}
        return values, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> FilterRun:
        """Restore a result."""
        _check_optional(values, arrays)
        problem = _unpack_problem(values, arrays)
        status = read_status(values)
        d, count = problem.model.dim, len(problem.measurements)
        entries = values["clouds"]
        complete = status is not Status.INTERRUPTED
        if not isinstance(entries, list) or (complete and len(entries) != len(problem.counts)):
            raise ResultFileInvalid("`clouds` is not a list that fits the numbers of tokens.")
        clouds = []
        for i, entry in enumerate(entries):
            means = read_array(arrays, f"tokens{i}.means", None, count + 1, d)
            S = read_array(arrays, f"tokens{i}.covariances", len(means), count + 1, d, d)
            cloud = TokenFilter(means=means, covariances=S, **plain(TokenFilter, entry))
            agree("the number of tokens of a cloud", cloud.count, problem.counts[i])
            clouds.append(cloud)
        predicted = [
            read_array(arrays, f"predicted.{x}", count + 1) if f"predicted.{x}" in arrays else None
            for x in ("mean", "covariance")
        ]
        made = cls(
            problem=problem,
            status=status,
            kalman_means=read_array(arrays, "kalman.means", count + 1, d),
            kalman_covariances=read_array(arrays, "kalman.covariances", count + 1, d, d),
            flow_means=read_array(arrays, "flow.means", count + 1, d),
            flow_covariances=read_array(arrays, "flow.covariances", count + 1, d, d),
            clouds=tuple(clouds),
            innovations=read_array(arrays, "innovations", count, len(problem.model.C)),
            consistency=restore(Consistency, values["consistency"]),
            predicted_mean=predicted[0],
            predicted_covariance=predicted[1],
            **plain(cls, values),
        )
        if values["agreement"] != made.agreement:
            raise ResultFileInvalid(
                f"`agreement` is {values['agreement']!r:.40}, but the rest says {made.agreement}."
            )
        return made


def _check_optional(values: dict[str, Any], arrays: Arrays) -> None:
    """Hold the names of the optional arrays against the arrays.

    Raises
    ------
    ResultFileInvalid
        If one of them is missing, or there without being named.
    """
    names = values["optional"]
    if not isinstance(names, list) or not set(map(str, names)) <= set(_OPTIONAL):
        raise ResultFileInvalid(f"`optional` is {names!r:.40}; expected some of {_OPTIONAL}.")
    for name in _OPTIONAL:
        if (name in names) != (name in arrays):
            came = "missing" if name in names else "there, but not named in `optional`"
            raise ResultFileInvalid(f"the array `{name}` is {came}.")


def _unpack_problem(values: dict[str, Any], arrays: Arrays) -> FilterProblem:
    A = read_array(arrays, "model.A", None, None)
    d = len(A)
    C = read_array(arrays, "model.C", None, d)
    optional = {
        name: read_array(arrays, name, None, d) if name in arrays else None
        for name in ("model.noise", "states", "forcing")
    }
    model = KalmanModel(
        A, C, read_array(arrays, "model.R", len(C), len(C)), optional["model.noise"]
    )
    measurements = Measurements(
        read_array(arrays, "times", None),
        read_array(arrays, "values", None, len(C)),
        optional["states"],
        optional["forcing"],
    )
    start = unpack_gaussian("start", arrays)
    agree("the dimension of the start", start.dim, d)
    counts = values["counts"]
    if not isinstance(counts, list) or not all(type(n) is int and n >= 2 for n in counts):
        raise ResultFileInvalid("`counts` is not a list of whole numbers from 2 on.")
    return FilterProblem(
        model=model,
        start=start,
        measurements=measurements,
        counts=tuple(counts),
        **plain(FilterProblem, values),
    )


def _traces(covariances: Array) -> Array:
    return np.asarray(np.trace(covariances, axis1=-2, axis2=-1))


def _norms(covariances: Array) -> Array:
    return np.asarray(np.sqrt(np.sum(covariances**2, axis=(-2, -1))))


def _in_time(values: Array) -> float:
    """Root mean square over the times."""
    return float(np.sqrt(np.mean(values**2)))

"""A prescribed path of Gaussians, and the least generator that follows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from ... import _check
from ..._check import Array
from ...errors import InvalidPath
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...schedule import Law
from .differentiation import differentiate
from .factorise import factorise

__all__ = ["GaussianPath", "PathMotion"]

#: Largest relative miss of the end points.
JOIN_TOLERANCE = 1e-9

#: The smallest eigenvalue that the rank keeps must stay above this fraction of the largest, and
#: those that it drops below it.
PATH_RANK_TOLERANCE = 1e-10

#: Largest part of S' outside the tangent space of the rank, relative to S' + S/horizon.
TANGENT_TOLERANCE = 1e-7

#: Largest relative distance of a given rate from a difference quotient.
RATE_CHECK_TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class GaussianPath:
    """Law N(m(t), S(t)) as a function of time, of constant rank.

    Parameters
    ----------
    mean : callable
        ``mean(t)`` is m(t), shape (d,).
    covariance : callable
        ``covariance(t)`` is S(t), shape (d, d), of the same rank at all times.
    mean_rate, covariance_rate : callable, optional
        Their time derivatives.  By default found by spectral differentiation, which needs
        smooth functions and checks its error.

    Examples
    --------
    >>> import numpy as np
    >>> import gtcontrol as gt
    >>> path = gt.GaussianPath(lambda t: np.zeros(2), lambda t: np.diag([1.0 + t, 1.0 - t / 2]))
    """

    mean: Callable[[float], ArrayLike]
    covariance: Callable[[float], ArrayLike]
    mean_rate: Callable[[float], ArrayLike] | None = None
    covariance_rate: Callable[[float], ArrayLike] | None = None

    def __post_init__(self) -> None:
        for name in ("mean", "covariance", "mean_rate", "covariance_rate"):
            value = getattr(self, name)
            if not callable(value) and not (name.endswith("_rate") and value is None):
                raise InvalidPath(
                    f"`{name}` of a path must be a function of time, not {type(value).__name__}."
                )

    def motion(self, start: Gaussian, target: Gaussian, horizon: float) -> PathMotion:
        """Check the path against its end points and resolve its rates.

        Raises
        ------
        InvalidPath
            If the path does not join the end points, changes rank, or cannot be
            differentiated; the message names the time and the number.
        """
        d = start.dim

        def mean(t: float) -> Array:
            return _check.vector("path.mean(t)", self.mean(t), d)

        def covariance(t: float) -> Array:
            return _check.symmetric("path.covariance(t)", self.covariance(t), d)

        for t, law, which in ((0.0, start, "start"), (horizon, target, "target")):
            _join(t, which, "mean", mean(t), law.mean, float(np.sqrt(law.trace)))
            _join(t, which, "covariance", covariance(t), law.covariance, 0.0)
        rates: list[Callable[[float], Array]] = []
        for name, curve, given in (
            ("mean", mean, self.mean_rate),
            ("covariance", covariance, self.covariance_rate),
        ):
            if given is None:
                rates.append(differentiate(curve, horizon, name))
            else:
                rates.append(_checked_rate(name, curve, given, horizon))
        motion = PathMotion(mean, covariance, rates[0], rates[1], start.rank, horizon)
        motion.check_rank()
        return motion


@dataclass(frozen=True, eq=False)
class PathMotion:
    """A path of constant rank with its rates, ready to be followed."""

    mean: Callable[[float], Array]
    covariance: Callable[[float], Array]
    mean_rate: Callable[[float], Array]
    covariance_rate: Callable[[float], Array]
    rank: int
    horizon: float

    def law(self, controls: str) -> Law:
        """Parameters along the path as a function of time."""

        def parameters(t: float) -> Parameters:
            factor, factor_rate = self.factors(t)
            return factorise(self.mean(t), factor, self.mean_rate(t), factor_rate, controls)

        return parameters

    def factors(self, t: float) -> tuple[Array, Array]:
        """Factor L of S(t) and its rate M L, shape (d, r) each.

        M is the symmetric solution of M S + S M = S' (the least kinetic generator): with
        S = U Λ Uᵀ and N a basis of the complement, UᵀM U = (UᵀS'U)_ij/(λ_i + λ_j) and
        NᵀM U = NᵀS'U Λ⁻¹; there is none unless NᵀS'N = 0.
        """
        eigenvalues, U = self._range(t)
        across = self.covariance_rate(t) @ U
        inside = U.T @ across
        outside = across - U @ inside
        generator = U @ (inside / (eigenvalues[:, None] + eigenvalues)) + outside / eigenvalues
        root = np.sqrt(eigenvalues)
        return U * root, generator * root

    def _range(self, t: float) -> tuple[Array, Array]:
        """Leading r eigenvalues of S(t), and their vectors (d, r)."""
        values, vectors = np.linalg.eigh(self.covariance(t))
        dropped = values.size - self.rank
        return values[dropped:], vectors[:, dropped:]

    def check_rank(self) -> None:
        """Raise InvalidPath where the rank of the covariance changes."""
        times = 0.5 * self.horizon * (1.0 - np.cos(np.pi * np.arange(65) / 64))
        for t in times:
            self._check_dropped(float(t))
        if not self.rank:
            return
        ratios = [self._kept_ratio(float(t)) for t in times]
        i = int(np.argmin(ratios))
        low, high = times[max(i - 1, 0)], times[min(i + 1, times.size - 1)]
        found = minimize_scalar(self._kept_ratio, bounds=(low, high), method="bounded")
        t, ratio = float(times[i]), ratios[i]
        if found.fun < ratio:
            t, ratio = float(found.x), float(found.fun)
        if ratio <= PATH_RANK_TOLERANCE:
            raise InvalidPath(
                f"the path loses rank {self.rank} at t = {t:.6g}: eigenvalue {self.rank} of its "
                f"covariance is {ratio:.2g} of the largest there."
            )

    def _kept_ratio(self, t: float) -> float:
        values = np.linalg.eigvalsh(self.covariance(t))
        return float(values[-self.rank] / values[-1]) if values[-1] > 0 else 0.0

    def _check_dropped(self, t: float) -> None:
        S = self.covariance(t)
        values = np.linalg.eigvalsh(S)
        dropped = float(np.max(np.abs(values[: values.size - self.rank]), initial=0.0))
        largest = float(np.max(np.abs(values)))
        if dropped > PATH_RANK_TOLERANCE * largest:
            raise InvalidPath(
                f"the path leaves rank {self.rank} at t = {t:.6g}: its covariance has another "
                f"eigenvalue of {dropped / largest:.2g} of the largest there."
            )
        if self.rank in (0, values.size):
            return
        rate = self.covariance_rate(t)
        _, U = self._range(t)
        left = rate - U @ (U.T @ rate)
        defect = float(np.linalg.norm(left - (left @ U) @ U.T))
        scale = float(np.linalg.norm(rate) + np.linalg.norm(S) / self.horizon)
        if defect > TANGENT_TOLERANCE * scale:
            raise InvalidPath(
                f"the path leaves rank {self.rank} at t = {t:.6g}: its rate has a part outside the "
                f"range of the covariance, NᵀS'N, of {defect / scale:.2g} of its size."
            )


def _join(t: float, which: str, what: str, value: Array, wanted: Array, spread: float) -> None:
    size = float(np.linalg.norm(wanted))
    gap, scale = float(np.linalg.norm(value - wanted)), max(size, spread)
    if gap > JOIN_TOLERANCE * scale:
        miss = f"{gap / scale:.2g} relatively" if scale else f"{gap:.2g}"
        raise InvalidPath(
            f"the path does not join start and target: at t = {t:.6g} its {what} misses that of "
            f"`{which}` by {miss}."
        )


def _checked_rate(
    name: str,
    curve: Callable[[float], Array],
    given: Callable[[float], ArrayLike],
    horizon: float,
) -> Callable[[float], Array]:
    """Give the user's rate, after comparing it with difference quotients at a few times."""
    check = _check.vector if name == "mean" else _check.symmetric
    d = curve(0.0).shape[0]

    def rate(t: float) -> Array:
        return check(f"path.{name}_rate(t)", given(t), d)

    step = 1e-5 * horizon
    for fraction in (0.137, 0.391, 0.618, 0.853):
        t = fraction * horizon
        quotient = (curve(t + step) - curve(t - step)) / (2.0 * step)
        gap = float(np.linalg.norm(rate(t) - quotient))
        scale = float(np.linalg.norm(quotient) + np.linalg.norm(curve(t)) / horizon)
        if gap > RATE_CHECK_TOLERANCE * scale:
            raise InvalidPath(
                f"`{name}_rate` of the path is not the derivative of `{name}`: at t = {t:.6g} it "
                f"differs from the difference quotient by {gap / (scale or 1.0):.2g} relatively."
            )
    return rate

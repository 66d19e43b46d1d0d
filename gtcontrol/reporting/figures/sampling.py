"""A trajectory on enough points in time to be drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...results.trajectory import Trajectory
from ...status import Status

__all__ = ["Samples", "drawable_times", "sample"]

#: Points in time of a curve, and the work (entries of singular value problems) to be spent.
POINTS, WORK = 240, 4e8

#: A law that leaves every bound is drawn until its trace has grown by this factor.
GROWTH = 40.0

#: Eigenvalues below these fractions of the largest one are rounding, in either form.
ROUNDING_FACTOR, ROUNDING_COVARIANCE = 1e-30, 1e-15


@dataclass(frozen=True, eq=False)
class Samples:
    """Laws at n times: means (n, d) and factors (n, d, c), with c >= rank columns."""

    times: Array
    means: Array
    factors: Array
    rounding: float = ROUNDING_FACTOR

    @property
    def traces(self) -> Array:
        """Total variance, shape (n,)."""
        return np.asarray(np.sum(self.factors**2, axis=(1, 2)))

    def eigenvalues(self) -> Array:
        """Eigenvalues of the covariance, largest first, shape (n, c); nan where rounding."""
        if not self.factors.shape[2]:
            return np.zeros((self.times.size, 0))
        values = np.asarray(np.linalg.svd(self.factors, compute_uv=False)) ** 2
        return np.where(values > self.rounding * values[:, :1], values, np.nan)

    def thin(self, most: int) -> Samples:
        """At most `most` of the laws, evenly chosen, both ends included."""
        keep = np.unique(np.linspace(0, self.times.size - 1, most).round().astype(int))
        return Samples(self.times[keep], self.means[keep], self.factors[keep], self.rounding)


def sample(trajectory: Trajectory, *, drawable: bool = False) -> Samples:
    """Sample a trajectory; residual layers are taken as they are, one sample to a layer.

    With `drawable`, a law that leaves every bound is followed until its trace has grown by
    the factor GROWTH, so that it can be drawn on linear axes.
    """
    _, d, c = trajectory.factors.shape
    most = int(np.clip(WORK / (d * c * c + 1), 12, POINTS))
    dense, nodes = trajectory.interpolant, trajectory.times
    # With process noise factors are square roots of covariances, with zeros that are rounding.
    rounding = ROUNDING_FACTOR if c == trajectory.problem.start.rank else ROUNDING_COVARIANCE
    if drawable:
        nodes = drawable_times(trajectory)
    if dense is None or nodes.size == 1:
        n = nodes.size
        layers = Samples(nodes, trajectory.means[:n], trajectory.factors[:n], rounding)
        return layers.thin(most) if n > most else layers
    times = _refine(nodes, most)
    laws = [trajectory.at(float(t)) for t in times]
    factors = np.zeros((times.size, d, c))
    for i, law in enumerate(laws):  # with process noise the rank may grow in time
        factors[i, :, : law.rank] = law.factor
    return Samples(times, np.array([law.mean for law in laws]), factors, rounding)


def drawable_times(trajectory: Trajectory) -> Array:
    """Times of a trajectory, up to where it can be drawn if it leaves every bound."""
    if trajectory.status not in (Status.BLOW_UP, Status.OVERFLOW):
        return trajectory.times
    below = np.flatnonzero(trajectory.traces <= GROWTH * trajectory.traces[0])
    return trajectory.times[: max(int(below[-1]) + 1, 2)]


def _refine(nodes: Array, most: int) -> Array:
    """About `most` times that follow the steps of the integrator, short where it went slowly."""
    position = np.linspace(0, nodes.size - 1, max(most, 2))
    times = np.interp(position, np.arange(nodes.size), nodes)
    return np.unique(times)

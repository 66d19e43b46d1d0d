"""Simulations from random starts, which must approach the target at the rate that is claimed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...gaussian import Gaussian, norm, wasserstein
from ...parameters import Parameters
from ...progress import Progress
from ...results.design import Confirmation
from ...results.trajectory import Trajectory
from ...simulation.run import simulate
from ...status import Status

__all__ = ["Trial", "confirm", "confirms", "starts"]

#: A simulation lasts this many times the inverse of the slower rate.
SPANS = 24.0

#: Simulations that are made whatever they take, and steps of all above which there is none more.
LEAST, MOST_STEPS = 2, 10_000

#: Times at which the distance is measured, and those at which laws are kept for pictures.
POINTS, SNAPSHOTS = 97, 19

#: Simulations whose laws are kept, and the largest number of entries of all their factors.
SHOWN, SHOWN_ENTRIES = 4, 200_000

#: The relative distance that must be reached, and the share of the claimed rate.
ARRIVED, SHARE = 1e-6, 0.8

#: Relative distance below which the measured one is rounding.
ROUNDING = 1e-9

#: Share of the proved region of attraction in which local designs are tried.
REGION = 0.9

RTOL = 1e-11

#: Share of the mean that counts as size of the target.
LONG_MEAN = 1e-4


@dataclass(frozen=True, eq=False)
class Trial:
    """What is to be confirmed, for which starts.

    Attributes
    ----------
    parameters : Parameters
    target : Gaussian
    complement : (d, d - r) array
    pace : float
        The slower of the two rates.
    radius : float or None
        Radius of the region of attraction in the metric of the target; None if it is everything.
    """

    parameters: Parameters
    target: Gaussian
    complement: Array
    pace: float
    radius: float | None

    @property
    def unit(self) -> float:
        """Size of the target: its spread, unless that is rounding beside the mean."""
        spread = norm(self.target.factor) or float(np.linalg.norm(self.complement, 2))
        return max(spread, LONG_MEAN * norm(self.target.mean))


def confirm(
    trial: Trial, count: int, seed: int, progress: Progress
) -> tuple[Confirmation | None, bool]:
    """Simulate from `count` random starts, or fewer if they take many steps.

    Returns
    -------
    confirmation : Confirmation or None
        None if not even one simulation was begun.
    interrupted : bool
    """
    horizon = SPANS / trial.pace
    times = np.linspace(0.0, horizon, POINTS)
    rows: list[Array] = []
    ranks: list[float] = []
    kept: list[tuple[Array, Array]] = []
    snapshots = np.geomspace(0.05, 0.5 * SPANS, SNAPSHOTS - 1) / trial.pace
    snapshots = np.append(0.0, snapshots)
    interrupted, steps = False, 0
    laws = list(starts(trial, count, np.random.default_rng(seed)))
    shown = min(SHOWN, SHOWN_ENTRIES // (SNAPSHOTS * trial.target.dim**2))
    for i, start in enumerate(laws):
        if i >= LEAST and steps > MOST_STEPS:
            break
        progress(i / count, f"simulation {i + 1} of {count}")
        path = simulate(start, trial.parameters, horizon, rtol=RTOL)
        if path.status is Status.INTERRUPTED:
            interrupted = True
            break
        steps += path.steps
        rows.append(_distances(path, trial, times))
        ranks.append(float(start.rank))
        if len(kept) < shown:
            kept.append(_snapshots(path, snapshots))
    if not rows:
        return None, interrupted
    distances = np.array(rows)
    means = np.array([m for m, _ in kept]).reshape(len(kept), SNAPSHOTS, trial.target.dim)
    width = trial.target.dim
    factors = np.array([L for _, L in kept]).reshape(len(kept), SNAPSHOTS, width, width)
    rates = np.array([_measured(times, row) for row in distances])
    made = Confirmation(
        horizon, times, distances, np.array(ranks), rates, snapshots, means, factors
    )
    return made, interrupted


def confirms(seen: Confirmation, pace: float) -> bool:
    """Whether the simulations approach the target, and fast enough."""
    return seen.worst <= ARRIVED and seen.slowest >= SHARE * pace


def starts(trial: Trial, count: int, rng: np.random.Generator) -> Iterator[Gaussian]:
    """Random laws of every rank that is attracted, at a moderate distance from the target."""
    target = trial.target
    d, r = target.dim, target.rank
    basis = np.hstack([target.factor, trial.complement])
    far = trial.unit / float(np.linalg.norm(basis, 2)) if trial.unit > norm(basis) else 1.0
    for i in range(count):
        mean = target.mean + far * (basis @ rng.standard_normal(d))
        if trial.radius is not None:
            yield Gaussian.trusted(mean, target.factor @ _near(d, trial.radius, rng))
            continue
        # Full rank first, then each rank from that of the target on.
        rank = max(r, 1, d - i % (d - r + 1))
        spread = np.exp(rng.uniform(-1.0, 1.0, rank))
        left = np.linalg.qr(rng.standard_normal((d, d)))[0]
        right = np.linalg.qr(rng.standard_normal((rank, rank)))[0]
        yield Gaussian.trusted(mean, basis @ (left[:, :rank] * spread) @ right)


def _near(d: int, radius: float, rng: np.random.Generator) -> Array:
    """Factor of I + D with |D|_F a large part of the radius."""
    D = rng.standard_normal((d, d))
    D = D + D.T
    D *= REGION * min(radius, 1.0) / float(np.linalg.norm(D))
    return np.asarray(np.linalg.cholesky(np.eye(d) + D))


def _distances(path: Trajectory, trial: Trial, times: Array) -> Array:
    """Relative distance to the target at each time, the last known one after an early end."""
    last, unit = float(path.times[-1]), trial.unit
    laws = [path.at(float(t)) for t in times if t <= last]
    found = [wasserstein(law, trial.target) / unit for law in laws]
    return np.array(found + [found[-1]] * (times.size - len(found)))


def _snapshots(path: Trajectory, times: Array) -> tuple[Array, Array]:
    d = path.problem.start.dim
    laws = [path.at(min(float(t), float(path.times[-1]))) for t in times]
    factors = np.zeros((times.size, d, d))
    for i, law in enumerate(laws):
        factors[i, :, : law.rank] = law.factor
    return np.array([law.mean for law in laws]), factors


def _measured(times: Array, distances: Array) -> float:
    """Rate over the last half of the time in which the distance is above rounding."""
    above = np.flatnonzero(distances > ROUNDING)
    if not above.size:
        return 0.0
    last = min(int(above[-1]) + 1, times.size - 1)
    first = last // 2
    fallen = np.log(max(distances[first], 1e-300) / max(distances[last], 1e-300))
    return float(fallen / (times[last] - times[first]))

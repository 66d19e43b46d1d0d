"""Random pairs of Gaussians, and the hard cases with known values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import gtcontrol as gt

from .baseline import Cost


@dataclass(frozen=True, eq=False)
class Instance:
    """A pair of laws of dimension d and rank r; T = 1."""

    index: int
    d: int
    r: int
    start: gt.Gaussian
    target: gt.Gaussian


def random_law(
    rng: np.random.Generator, d: int, r: int, cond: float = 100.0, *, centred: bool = False
) -> gt.Gaussian:
    """Random orthogonal axes, eigenvalues log-uniform with spread at most `cond`, m ~ N(0, I)."""
    U, _ = np.linalg.qr(rng.standard_normal((d, d)))
    values = cond ** rng.uniform(-0.5, 0.5, r)
    mean = rng.standard_normal(d)
    return gt.Gaussian(0 * mean if centred else mean, U[:, :r] * np.sqrt(values))


def instances(
    count: int, dims: range, *, seed: int, centred_every: int = 0, cond: float = 100.0
) -> Iterator[Instance]:
    """Cycle through every (d, r) with d in `dims` and r = 1..d.

    With ``centred_every`` = k, one round of the cycle in k has means 0.
    """
    shapes = [(d, r) for d in dims for r in range(1, d + 1)]
    for i in range(count):
        d, r = shapes[i % len(shapes)]
        centred = bool(centred_every) and (i // len(shapes)) % centred_every == 0
        rng = np.random.default_rng([seed, i])
        start, target = (random_law(rng, d, r, cond, centred=centred) for _ in range(2))
        yield Instance(i, d, r, start, target)


def attempt(i: Instance, controls: str, cost: Cost) -> gt.Steering | None:
    """Plan of the package; None, and a line that says why, if it refuses the problem."""
    try:
        return gt.steer(i.start, i.target, controls=controls, cost=cost)
    except gt.GtcontrolError as refusal:
        print(f"    instance {i.index} (d = {i.d}, r = {i.r}, {controls}): {refusal}")
        return None


def orthogonal_ranges() -> Instance:
    """Ranges at right angles: the transport geodesic is a poor stationary point."""
    start = gt.Gaussian(np.zeros(4), np.eye(4)[:, :2])
    return Instance(0, 4, 2, start, gt.Gaussian(np.ones(4), np.eye(4)[:, 2:]))


def swapped_axes() -> Instance:
    """Long and short axis change places."""
    start = gt.Gaussian(np.zeros(2), np.diag([10.0, 0.1]))
    return Instance(0, 2, 2, start, gt.Gaussian(np.ones(2), np.diag([0.1, 10.0])))

"""Controllers that follow the transport geodesic, with A(t) or with attention."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._check import Array
from ...errors import InvalidMethod
from ...parameters import Parameters
from ...schedule import Law, Schedule
from .factorise import factorise
from .task import Refusal, Task
from .transport import TransportPath

__all__ = ["attention_only", "geodesic_law", "transport_geodesic"]

#: Without b the straight path of the mean must stay this far from zero, relative to its ends.
CLOSEST_MEAN = 1e-3


def transport_geodesic(task: Task) -> Schedule | Refusal:
    """Follow the geodesic with A(t) and b(t): the least kinetic energy of all plans, W₂²/T."""
    if not (task.same_covariance or task.enabled("A")):
        return Refusal("the covariance has to move by A, which is not enabled.")
    return _follow(task, task.problem.controls)


def attention_only(task: Task) -> Schedule | Refusal:
    """Follow the geodesic with attention alone: V = M/κ, B = κ S⁺, and b, between any ranges."""
    if not (task.same_covariance or task.enabled("VB")):
        return Refusal("the covariance has to move by V and B, which are not both enabled.")
    return _follow(task, task.problem.controls.replace("A", ""))


def geodesic_law(path: TransportPath, controls: str) -> Law:
    """Parameters along a transport path as a function of time."""
    factor_rate, mean_rate = path.factor_rate, path.mean_rate

    def law(t: float) -> Parameters:
        return factorise(path.mean(t), path.factor(t), mean_rate, factor_rate, controls)

    return law


def _follow(task: Task, controls: str) -> Schedule | Refusal:
    path = TransportPath.between(task.start, task.target, task.horizon)
    if task.same_covariance:
        path = replace(path, L1=path.L0)
    law = geodesic_law(path, controls)
    if "b" not in controls:
        largest = max(float(np.linalg.norm(m)) for m in (path.m0, path.m1))
        if np.any(path.mean_rate) and _closest(path.m0, path.m1) < CLOSEST_MEAN * largest:
            return Refusal("the mean would go through zero, where only a bias b moves it.")
        try:
            for t in np.linspace(0.0, path.horizon, 9):
                law(float(t))
        except InvalidMethod as error:
            return Refusal(str(error))
    return task.varying([0.0, path.horizon], [law])


def _closest(first: Array, last: Array) -> float:
    """Distance of the segment between two points from the origin."""
    step = last - first
    squared = float(step @ step)
    s = float(np.clip(-(first @ step) / squared, 0.0, 1.0)) if squared else 0.0
    return float(np.linalg.norm(first + s * step))

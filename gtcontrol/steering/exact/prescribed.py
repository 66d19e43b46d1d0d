"""The controller that follows a path given by the user."""

from __future__ import annotations

import numpy as np

from ...errors import InvalidMethod
from ...schedule import Schedule
from .task import Refusal, Task

__all__ = ["prescribed_path"]


def prescribed_path(task: Task) -> Schedule | Refusal:
    """Follow the given path by the symmetric generator M S + S M = S', the least kinetic one.

    With A enabled A = M on the range of S; else attention acts as M there.
    """
    if task.path is None:
        return Refusal("it follows a given path, and none was given; pass a `GaussianPath`.")
    problem = task.problem
    motion = task.path.motion(problem.start, problem.target, problem.horizon)
    law = motion.law(problem.controls)
    try:
        for t in np.linspace(0.0, problem.horizon, 17):
            law(float(t))
    except InvalidMethod as error:
        return Refusal(str(error))
    return Schedule.from_pieces(np.array([0.0, problem.horizon]), [law], problem.start.dim)

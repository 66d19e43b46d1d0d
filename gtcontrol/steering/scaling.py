"""Units for the solver: lengths and times of order one, whatever the user's units.

In units of length s and time T the controls read A = Ã/T, V = Ṽ/T, B = B̃/s², b = s b̃/T
(theory of the symmetries of the flow), and the cost keeps its form with other weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._check import Array
from ..gaussian import Gaussian

__all__ = ["Units"]


@dataclass(frozen=True)
class Units:
    """Length and time that count as one."""

    length: float
    time: float

    @classmethod
    def of(cls, start: Gaussian, target: Gaussian, horizon: float) -> Units:
        """Length: the largest standard deviation of the end points, or else their distance."""
        spread = max(
            (float(np.linalg.norm(g.factor, 2)) for g in (start, target) if g.rank), default=0.0
        )
        shift = float(np.linalg.norm(target.mean - start.mean))
        offset = max(float(np.linalg.norm(g.mean)) for g in (start, target))
        return cls(spread or shift or offset or 1.0, horizon)

    def control(self, letter: str) -> float:
        """Size of one unit of a control."""
        per_time = 1.0 / self.time
        return {"A": per_time, "V": per_time, "B": self.length**-2, "b": self.length * per_time}[
            letter
        ]

    def weight(self, letter: str) -> float:
        """Factor of ∫|u|² dt in scaled units, for a control of weight one."""
        return self.time * self.control(letter) ** 2

    @property
    def kinetic(self) -> float:
        """Factor of ∫E|v|² dt in scaled units."""
        return self.length**2 / self.time

    def scale(self, law: Gaussian) -> tuple[Array, Array]:
        """Factor and mean in scaled units."""
        return law.factor / self.length, law.mean / self.length

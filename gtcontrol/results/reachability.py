"""Result of a reachability question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..gaussian import Gaussian
from ..problem.definitions import ReachabilityProblem
from .base import Arrays, Result
from .packing import pack_gaussian, unpack_gaussian
from .plain import agree, plain

__all__ = ["Reachability"]


@dataclass(frozen=True, eq=False)
class Reachability(Result):
    """Whether a target can be reached; true in a boolean context if it can.

    Attributes
    ----------
    problem : ReachabilityProblem
    reachable : bool
    reason : str
        Why, naming the condition that holds or fails.
    nearest : Gaussian or None
        A reachable target nearest to the wanted one in W₂ (the target itself if reachable).
        Where the infimum is not attained it is a reachable target close to the infimum, and
        ``attained`` is false.
    distance : float
        W₂ distance from the target to ``nearest``.
    attained : bool
        Whether ``nearest`` is a true minimiser.
    methods : tuple of str
        Constructive methods of :func:`gtcontrol.steer` that apply.
    """

    kind: ClassVar[str] = "reachability"

    problem: ReachabilityProblem
    reachable: bool
    reason: str
    nearest: Gaussian | None
    distance: float
    attained: bool = True
    methods: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.reachable

    @property
    def answered(self) -> bool:
        """Always true: reachability is decided in closed form."""
        return True

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays."""
        p = self.problem
        values = {
            "name": p.name,
            "status": "SUCCESS",
            "controls": p.controls,
            "reachable": self.reachable,
            "reason": self.reason,
            "distance": self.distance,
            "attained": self.attained,
            "methods": list(self.methods),
        }
        arrays = pack_gaussian("start", p.start) | pack_gaussian("target", p.target)
        if self.nearest is not None:
            arrays |= pack_gaussian("nearest", self.nearest)
        return values, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> Reachability:
        """Restore the result."""
        problem = ReachabilityProblem(
            unpack_gaussian("start", arrays),
            unpack_gaussian("target", arrays),
            **plain(ReachabilityProblem, values),
        )
        nearest = unpack_gaussian("nearest", arrays) if "nearest.mean" in arrays else None
        agree("the dimension of the target", problem.target.dim, problem.start.dim)
        if nearest is not None:
            agree("the dimension of the nearest target", nearest.dim, problem.start.dim)
        return cls(
            problem,
            nearest=nearest,
            methods=tuple(str(method) for method in values["methods"]),
            **plain(cls, values),
        )

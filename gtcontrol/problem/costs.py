"""Costs of a steering problem: what makes one plan better than another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .. import _check
from ..errors import InvalidMethod

__all__ = ["ControlEnergy", "Cost", "KineticEnergy", "MinimumTime"]


@dataclass(frozen=True)
class KineticEnergy:
    """Kinetic energy of the tokens, J = ∫ E|v|² dt = ∫ tr(M S Mᵀ) + |m'|² dt.

    By Benamou–Brenier J >= W₂²/T, with equality exactly on the transport geodesic, so the
    optimum is known in closed form.
    """


@dataclass(frozen=True)
class ControlEnergy:
    """Energy of the parameters, J = ∫ |A|² + |V|² + |B|² + |b|² + kinetic · E|v|² dt.

    Norms are Frobenius norms.

    Parameters
    ----------
    kinetic : float
        Weight of the kinetic energy.  With attention (V and B) among the controls it must
        be positive: without it the infimum is not attained (attention that chatters, or a
        covariance that runs to infinity, costs ever less).
    """

    kinetic: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinetic", _check.number("kinetic", self.kinetic, low=0.0))


@dataclass(frozen=True)
class MinimumTime:
    """Shortest horizon under a bound on each enabled control.

    Parameters
    ----------
    bound : float
        Largest size of each of the enabled controls A, V, B, b.
    norm : {"entries", "frobenius"}
        Whether the bound holds for each entry, or for the Frobenius norm.
    """

    bound: float = 1.0
    norm: Literal["entries", "frobenius"] = "entries"

    def __post_init__(self) -> None:
        bound = _check.number("bound", self.bound, low=0.0, strict=True)
        object.__setattr__(self, "bound", bound)
        if self.norm not in ("entries", "frobenius"):
            raise InvalidMethod(f"`norm` must be 'entries' or 'frobenius', not {self.norm!r}.")


Cost = KineticEnergy | ControlEnergy | MinimumTime

"""Result of a design: constant parameters, their certificate, and simulations that confirm it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import _check
from .._check import Array
from ..errors import ResultFileInvalid
from ..gaussian import Gaussian
from ..parameters import Parameters
from ..problem.definitions import CertificationProblem, DesignProblem
from ..status import Status
from .base import Arrays, Result, exporting, reporting
from .claim_packing import pack_claims, pack_parameters, unpack_claims, unpack_parameters
from .claims import Claim
from .packing import pack_bounds, pack_gaussian, unpack_bounds, unpack_gaussian
from .plain import agree, plain, read_array, read_status, read_times

if TYPE_CHECKING:
    import torch

__all__ = ["Confirmation", "Design"]


@dataclass(frozen=True, eq=False)
class Confirmation:
    """Simulations from random starts, which approach the target.

    Attributes
    ----------
    horizon : float
        Duration of each simulation.
    times : (n,) array
    distances : (k, n) array
        W₂ distance to the target over the size of the target, for each of k starts; rows of a
        simulation that ended early are filled up with its last value.
    ranks : (k,) array
        Rank of each start.
    rates : (k,) array
        Measured rate at which each distance falls in the last third before rounding.
    snapshots : (s,) array
        Times of the laws that are kept for pictures.
    means : (k', s, d) array
        Means of the first k' <= k simulations at these times.
    factors : (k', s, d, c) array
        Their factors, filled up with zero columns.
    """

    horizon: float
    times: Array
    distances: Array
    ranks: Array
    rates: Array
    snapshots: Array
    means: Array
    factors: Array

    @property
    def count(self) -> int:
        """Number of starts."""
        return int(self.distances.shape[0])

    @property
    def worst(self) -> float:
        """Largest relative distance at the horizon."""
        return float(np.max(self.distances[:, -1], initial=0.0))

    @property
    def slowest(self) -> float:
        """Smallest measured rate."""
        return float(np.min(self.rates, initial=np.inf))

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays."""
        names = ("times", "distances", "ranks", "rates", "snapshots", "means", "factors")
        return {"horizon": self.horizon}, {f"checks.{n}": getattr(self, n) for n in names}

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays, d: int) -> Confirmation:
        """Restore simulations in dimension `d`."""
        horizon = _check.number("horizon", values["horizon"], low=0.0, strict=True)
        times = read_times(arrays, "checks.times", horizon)
        if not horizon <= times[-1] * (1 + 1e-12):
            raise ResultFileInvalid(
                f"`horizon` is {horizon:g}, but the simulations end at {times[-1]:g}."
            )
        distances = read_array(arrays, "checks.distances", None, times.size)
        snapshots = read_array(arrays, "checks.snapshots", None)
        means = read_array(arrays, "checks.means", None, snapshots.size, d)
        factors = read_array(arrays, "checks.factors", means.shape[0], snapshots.size, d, None)
        count = distances.shape[0]
        return cls(
            horizon,
            times,
            distances,
            read_array(arrays, "checks.ranks", count),
            read_array(arrays, "checks.rates", count),
            snapshots,
            means,
            factors,
        )


@dataclass(frozen=True, eq=False)
class Design(Result):
    """Constant Transformer parameters that make a given Gaussian attracting.

    Attributes
    ----------
    problem : DesignProblem
    status : Status
        SUCCESS only if simulations from random starts approach the target as claimed.
    parameters : Parameters
        The constant parameters A, B, V, b.
    rate : float
        Every smaller exponential rate is guaranteed for the covariance, in W₂.
    mean_rate : float
        Every smaller exponential rate is guaranteed for the mean.
    method : str
        How the parameters were found: "closed-form" or "lmi".
    statement : str
        What is guaranteed, in words: which starts, how near, how fast.
    claims : tuple of Claim
        What guarantees it, with the numbers from which it can be checked again.
    confirmation : Confirmation or None
        Simulations from random starts; None if none were asked for.
    seconds : float
        Wall time spent in all.
    """

    kind: ClassVar[str] = "design"

    problem: DesignProblem
    status: Status
    parameters: Parameters
    rate: float
    mean_rate: float
    method: str
    statement: str
    claims: tuple[Claim, ...]
    confirmation: Confirmation | None
    seconds: float

    @property
    def answered(self) -> bool:
        """Whether parameters were found and simulation confirms them."""
        return self.status.answered

    @property
    def proved(self) -> bool:
        """Whether the guarantee was checked in rigorous arithmetic."""
        return bool(self.claims) and all(claim.proved for claim in self.claims)

    @property
    def label(self) -> str:
        """How certain the guarantee is: "proved" or "numerical"."""
        return "proved" if self.proved else "numerical"

    @property
    def question(self) -> CertificationProblem:
        """What the claims are about: the parameters that were found."""
        return CertificationProblem((self.parameters,), None, self.problem.name)

    def to_torch(
        self,
        horizon: float,
        *,
        layers: int,
        start: Gaussian | None = None,
        exact: bool = False,
        mask_self: bool = False,
        dtype: str | torch.dtype = "float64",
    ) -> torch.nn.Module:
        """Return the design, held up to `horizon`, as residual softmax attention layers.

        See :func:`gtcontrol.to_torch`.
        """
        options = {"layers": layers, "exact": exact, "mask_self": mask_self, "dtype": dtype}
        made: torch.nn.Module = exporting().to_torch(self, horizon, start=start, **options)
        return made

    def explain(self) -> str:
        """Say each claim in words: proved or numerical, the theorem, and what it says."""
        return str(reporting().text.explain(self))

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays of the design."""
        p = self.problem
        claims, arrays = pack_claims("claims", self.claims)
        values = {
            "name": p.name,
            "status": self.status.name,
            "certainty": self.label,
            "rate": self.rate,
            "mean_rate": self.mean_rate,
            "method": self.method,
            "proved": self.proved,
            "statement": self.statement,
            "claims": claims,
            "seconds": self.seconds,
            "problem": {
                "method": p.method,
                "rate": p.rate,
                "mean_rate": p.mean_rate,
                "bounds": pack_bounds(p.bounds),
                "checks": p.checks,
                "seed": p.seed,
                "dim": p.target.dim,
                "rank": p.target.rank,
            },
        }
        arrays |= pack_gaussian("target", p.target) | pack_parameters("parameters", self.parameters)
        for name, value in (("V", p.V), ("complement", p.complement)):
            if value is not None:
                arrays[f"problem.{name}"] = value
        if p.near is not None:
            arrays |= pack_parameters("near", p.near)
        if self.confirmation is not None:
            values["confirmation"], inner = self.confirmation.pack()
            arrays |= inner
        return values, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> Design:
        """Restore a design."""
        target = unpack_gaussian("target", arrays)
        d, saved = target.dim, values["problem"]
        problem = DesignProblem(
            target=target,
            V=read_array(arrays, "problem.V", d, d) if "problem.V" in arrays else None,
            bounds=unpack_bounds(saved["bounds"]),
            near=unpack_parameters("near", arrays) if "near.A" in arrays else None,
            complement=(
                read_array(arrays, "problem.complement", d, d - target.rank)
                if "problem.complement" in arrays
                else None
            ),
            **plain(DesignProblem, {**saved, "name": values["name"]}),
        )
        for name, wanted in (("dim", d), ("rank", target.rank)):
            agree(f"`problem.{name}`", saved.get(name), wanted)
        parameters = unpack_parameters("parameters", arrays)
        agree("the dimension of the parameters", parameters.dim, d)
        confirmation = None
        if "confirmation" in values:
            confirmation = Confirmation.unpack(values["confirmation"], arrays, d)
        made = cls(
            problem=problem,
            status=read_status(values),
            parameters=parameters,
            claims=unpack_claims("claims", values["claims"], arrays),
            confirmation=confirmation,
            **plain(cls, values),
        )
        for name, follows in (("proved", made.proved), ("certainty", made.label)):
            if type(values.get(name)) is not type(follows) or values[name] != follows:
                raise ResultFileInvalid(
                    f"`{name}` is {values.get(name)!r:.40}, but the claims say {follows!r}."
                )
        return made

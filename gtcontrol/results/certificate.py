"""Result of certification: a verdict, its statement, and the data that prove it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .._check import Array
from ..errors import ResultFileInvalid
from ..problem.definitions import CertificationProblem
from ..status import Status, Verdict
from .base import Arrays, Result, reporting
from .claim_packing import pack_claims, pack_parameters, unpack_claims, unpack_parameters
from .claims import Claim
from .packing import pack_gaussian, unpack_gaussian
from .plain import agree, plain, read_array, read_status

__all__ = ["OUTCOMES", "Certificate", "Integration"]

#: How an integration can end.
OUTCOMES = ("blow-up", "limit", "cycle", "growth", "unsettled", "open")

#: Relative width below which the middle of an enclosure is better than an integration in floats.
NARROW = 1e-10


@dataclass(frozen=True, eq=False)
class Integration:
    """One integration of the covariance, which the certificate is held against and drawn with.

    Attributes
    ----------
    outcome : str
        "blow-up", "limit", "cycle", "growth" (without finite-time blow-up), "unsettled" (no trend
        is left, but no limit was reached), or "open" (it ended on the way).
    time : float
        Time of the blow-up, period of the cycle, or else the time that was reached.
    from_start : bool
        Whether it began at the start of the problem, not at a random one.
    times : (n,) array
    traces : (n,) array
    covariances : (n, d, d) array
        Empty, (0, d, d), in large dimension.
    """

    outcome: str
    time: float
    from_start: bool
    times: Array
    traces: Array
    covariances: Array


@dataclass(frozen=True, eq=False)
class Certificate(Result):
    """What is known of the covariance under constant parameters, and why.

    Attributes
    ----------
    problem : CertificationProblem
    verdict : Verdict
    statement : str
        The verdict in full: what to, which rank, from where, when, or why not.
    proved : bool
        Whether exact or ball arithmetic has checked the data; otherwise the verdict is
        numerical evidence.
    claims : tuple of Claim
        All that was found, the strongest first; :func:`gtcontrol.verify` checks them again.
    lower, upper : float
        Enclosure of the blow-up time of the start, as far as it is proved: 0 and inf when
        nothing is known, inf and inf when there is no blow-up.
    bound : float
        Proved bound on lim sup tr S(t) from every start (or from the start given), else inf.
    integrations : tuple of Integration
        What accurate integrations showed.
    status : Status
        SUCCESS, or INTERRUPTED if not everything was tried.
    seconds : float
        Wall time spent.
    """

    kind: ClassVar[str] = "certificate"

    problem: CertificationProblem
    verdict: Verdict
    statement: str
    proved: bool
    claims: tuple[Claim, ...]
    lower: float
    upper: float
    bound: float
    integrations: tuple[Integration, ...]
    status: Status
    seconds: float

    @property
    def answered(self) -> bool:
        """Whether there is a verdict."""
        return self.verdict.answered and self.status is not Status.INTERRUPTED

    @property
    def data(self) -> Mapping[str, float | Array]:
        """Numbers and arrays of the strongest claim; empty if there is none."""
        return {**self.claims[0].numbers, **self.claims[0].arrays} if self.claims else {}

    @property
    def blow_up_time(self) -> float:
        """Blow-up time of the start: what integration says, within the proved enclosure.

        Of a narrow enclosure, and where no integration saw the blow-up, it is the middle.  It is
        inf where there is no blow-up, or none is known.
        """
        seen = [s.time for s in self.integrations if s.from_start and s.outcome == "blow-up"]
        known = bool(seen) and len(self.problem.vertices) == 1
        if math.isfinite(self.upper) and self.lower > 0:
            wide = self.upper - self.lower > NARROW * self.upper
            if known and wide:
                return min(max(seen[0], self.lower), self.upper)
            return 0.5 * self.lower + 0.5 * self.upper
        return seen[0] if known else math.inf

    @property
    def label(self) -> str:
        """How certain the verdict is: "proved" or "numerical"."""
        return "proved" if self.proved else "numerical"

    def explain(self) -> str:
        """Say each claim in words: proved or numerical, the theorem, and what it says."""
        return str(reporting().text.explain(self))

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays of the certificate."""
        p = self.problem
        claims, arrays = pack_claims("claims", self.claims)
        values = {
            "name": p.name,
            "status": self.status.name,
            "verdict": self.verdict.name,
            "certainty": self.label,
            "proved": self.proved,
            "statement": self.statement,
            "lower": self.lower,
            "upper": self.upper,
            "bound": self.bound,
            "vertices": len(p.vertices),
            "claims": claims,
            "integrations": [
                {"outcome": s.outcome, "time": s.time, "from_start": s.from_start}
                for s in self.integrations
            ],
            "seconds": self.seconds,
        }
        for i, vertex in enumerate(p.vertices):
            arrays |= pack_parameters(f"vertices.{i}", vertex)
        if p.start is not None:
            arrays |= pack_gaussian("start", p.start)
        for i, seen in enumerate(self.integrations):
            arrays[f"integrations.{i}.times"] = seen.times
            arrays[f"integrations.{i}.traces"] = seen.traces
            arrays[f"integrations.{i}.covariances"] = seen.covariances
        return values, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> Certificate:
        """Restore a certificate."""
        problem = _problem(values, arrays)
        verdict = values["verdict"]
        if not isinstance(verdict, str) or verdict not in Verdict.__members__:
            raise ResultFileInvalid(
                f"`verdict` is {verdict!r:.40}; expected one of {', '.join(Verdict.__members__)}."
            )
        seen = values["integrations"]
        if not isinstance(seen, list):
            raise ResultFileInvalid("`integrations` is no list.")
        made = cls(
            problem=problem,
            verdict=Verdict[verdict],
            claims=unpack_claims("claims", values["claims"], arrays),
            integrations=tuple(
                _integration(value, f"integrations.{i}", arrays, problem.dim)
                for i, value in enumerate(seen)
            ),
            status=read_status(values),
            **plain(cls, values),
        )
        if any(s.from_start is (problem.start is None) for s in made.integrations):
            raise ResultFileInvalid("`from_start` of an integration does not fit the problem.")
        if values.get("certainty") != made.label:
            raise ResultFileInvalid(
                f"`certainty` is {values.get('certainty')!r:.40}, but `proved` says {made.label}."
            )
        return made


def _problem(values: dict[str, Any], arrays: Arrays) -> CertificationProblem:
    count = values["vertices"]
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ResultFileInvalid(f"`vertices` is {count!r:.40}; expected a number of at least 1.")
    vertices = tuple(unpack_parameters(f"vertices.{i}", arrays) for i in range(count))
    for vertex in vertices:
        agree("the dimension of a vertex", vertex.dim, vertices[0].dim)
    start = unpack_gaussian("start", arrays) if "start.mean" in arrays else None
    if start is not None:
        agree("the dimension of the start", start.dim, vertices[0].dim)
    return CertificationProblem(vertices, start, **plain(CertificationProblem, values))


def _integration(values: Any, name: str, arrays: Arrays, d: int) -> Integration:
    times = read_array(arrays, f"{name}.times", None)
    made = Integration(
        times=times,
        traces=read_array(arrays, f"{name}.traces", times.size),
        covariances=read_array(arrays, f"{name}.covariances", None, d, d),
        **plain(Integration, values),
    )
    if made.outcome not in OUTCOMES:
        raise ResultFileInvalid(
            f"`{name}.outcome` is {made.outcome!r:.40}; expected one of {', '.join(OUTCOMES)}."
        )
    return made

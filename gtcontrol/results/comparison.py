"""Result of a comparison: Kalman theory beside the covariance flow of a Transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._check import Array
from ..errors import ResultFileInvalid
from ..gaussian import Gaussian
from ..problem.definitions import ComparisonProblem
from ..status import KalmanVerdict
from .base import Arrays, Result
from .packing import pack_gaussian, unpack_gaussian
from .plain import agree, pack_plain, plain, read_array

__all__ = ["FINDINGS", "Comparison", "HiddenMode", "Row"]

#: What a row of the table can be.
FINDINGS = (
    "right",
    "right for full rank",
    "wrong",
    "no answer",
    "rightly refused",
    "on its way",
    "contradicts",
)


@dataclass(frozen=True, eq=False)
class HiddenMode:
    """An eigenvalue of A that measurements do not see, or that noise does not drive.

    Attributes
    ----------
    real, imaginary : float
        The eigenvalue λ.
    defect : float
        Smallest singular value of [A - λ; C], scaled: the Popov-Belevitch-Hautus test.
    direction : (d, 2) array
        Real and imaginary part of the direction v with A v = λ v and C v = 0 (for noise, of the
        left direction w with wᵀ A = λ wᵀ and wᵀ Q = 0).
    property : str
        What it breaks: "detectability", "observability", "stabilisability" or "controllability".
    """

    real: float
    imaginary: float
    defect: float
    direction: Array
    property: str


@dataclass(frozen=True, eq=False)
class Row:
    """What one way to compute the steady state gave, and what is right about it.

    Attributes
    ----------
    name : str
    answered : bool
        Whether it returned finite numbers.
    message : str
        Why it did not: one line.
    X : (d, d) array or None
        Its answer.
    residual : float
        |A X + X Aᵀ - X Cᵀ R⁻¹ C X + Q| relative to its terms.
    error : float
        Estimate of the relative forward error, from the conditioning of the equation at X.
    definite : str
        Signs of the eigenvalues of X, a name of :class:`gtcontrol.status.Definiteness`; what
        rounding explains does not make X indefinite.  Empty without an answer.
    lowest : float
        Smallest eigenvalue of X.
    rank : int
        Numerical rank of X.
    abscissa : float
        Largest real part of the closed loop A - X Cᵀ R⁻¹ C.
    root : str
        Which root it is, in words.
    digits : float
        Decimal digits to which it agrees with our answer; nan if there is none.  Of what is right
        for full rank: with the limit of full-rank starts.
    finding : str
        One of ``FINDINGS``.
    why : str
        Why, in one sentence.
    """

    name: str
    answered: bool
    message: str
    X: Array | None
    residual: float
    error: float
    definite: str
    lowest: float
    rank: int
    abscissa: float
    root: str
    digits: float
    finding: str
    why: str


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """What the covariance does in the long run, and what Riccati solvers say about it.

    Attributes
    ----------
    problem : ComparisonProblem
    verdict : KalmanVerdict
    reason : str
        The verdict in full: what to, which rank, what decides, which mode is hidden.
    limit : Gaussian or None
        Where the covariance tends (mean zero), from the start given or from full-rank data.
    error_estimate : float
        Estimate of the relative error of the limit; nan if there is none.
    spectrum : complex array (d,)
        Eigenvalues of the closed loop A - S Cᵀ R⁻¹ C at the limit; of A if there is none.
    rate : float
        Exponential rate of the approach; 0 if it is slower.
    period : float
        Period of the limit motion; nan if there is none.
    full_rank : (d, d) array or None
        Limit of full-rank data: the stabilising (or strong) root of the algebraic equation.
    hidden : tuple of HiddenMode
        Modes that break detectability, stabilisability, and their like on the imaginary axis.
    lower, upper : float
        Enclosure of the blow-up time; inf if there is none.
    table : tuple of Row
        Our algebraic answer, our flow, and the back ends.
    times : (n,) array
        Times of the flow from the start (from half the identity in natural units without one).
    eigenvalues : (n, d) array
        Eigenvalues of the covariance at these times, largest first.
    final : (d, d) array
        Covariance at the last of these times, by integration.
    agreement : float
        Decimal digits to which the integrated flow agrees with the closed form at that time;
        nan if the closed form leaves the range of floats.
    versions : str
        Versions of the libraries that were compared.
    seconds : float
        Wall time spent.
    """

    kind: ClassVar[str] = "comparison"

    problem: ComparisonProblem
    verdict: KalmanVerdict
    reason: str
    limit: Gaussian | None
    error_estimate: float
    spectrum: NDArray[np.complex128]
    rate: float
    period: float
    full_rank: Array | None
    hidden: tuple[HiddenMode, ...]
    lower: float
    upper: float
    table: tuple[Row, ...]
    times: Array
    eigenvalues: Array
    final: Array
    agreement: float
    versions: str
    seconds: float

    @property
    def answered(self) -> bool:
        """Whether there is a verdict."""
        return self.verdict.answered

    @property
    def horizon(self) -> float:
        """Last time of the flow."""
        return float(self.times[-1])

    def __repr__(self) -> str:
        words = [self.verdict.name, f"states={self.problem.dim}"]
        if self.limit is not None:
            words += [f"rank {self.limit.rank}", f"error {self.error_estimate:.1e}"]
        return f"Comparison({', '.join(words)})"

    def row(self, name: str) -> Row:
        """Return the row of the table whose name begins like this."""
        for row in self.table:
            if row.name.startswith(name):
                return row
        raise ResultFileInvalid(
            f"the table has no row {name!r}; it has {', '.join(r.name for r in self.table)}."
        )

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays of the comparison."""
        p = self.problem
        values = pack_plain(self) | {
            "name": p.name,
            "problem_horizon": p.horizon,
            "verdict": self.verdict.name,
            "table": [pack_plain(row) for row in self.table],
            "hidden": [pack_plain(mode) for mode in self.hidden],
        }
        arrays = {
            "A": p.A,
            "C": p.C,
            "R": p.R,
            "K": p.K,
            "spectrum": np.stack([self.spectrum.real, self.spectrum.imag], axis=1),
            "times": self.times,
            "eigenvalues": self.eigenvalues,
            "final": self.final,
        }
        optional = {"noise": p.noise, "full_rank": self.full_rank}
        arrays |= {name: value for name, value in optional.items() if value is not None}
        for name, law in (("start", p.start), ("limit", self.limit)):
            if law is not None:
                arrays |= pack_gaussian(name, law)
        for i, row in enumerate(self.table):
            if row.X is not None:
                arrays[f"table.{i}.X"] = row.X
        for i, mode in enumerate(self.hidden):
            arrays[f"hidden.{i}.direction"] = mode.direction
        return values, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> Comparison:
        """Restore a comparison."""
        problem = _problem(values, arrays)
        d = problem.dim
        verdict = values["verdict"]
        if not isinstance(verdict, str) or verdict not in KalmanVerdict.__members__:
            raise ResultFileInvalid(
                f"`verdict` is {verdict!r:.40}; expected one of "
                f"{', '.join(KalmanVerdict.__members__)}."
            )
        times = read_array(arrays, "times", None)
        spectrum = read_array(arrays, "spectrum", d, 2)
        return cls(
            problem=problem,
            verdict=KalmanVerdict[verdict],
            limit=_law("limit", arrays, d),
            spectrum=spectrum[:, 0] + 1j * spectrum[:, 1],
            full_rank=read_array(arrays, "full_rank", d, d) if "full_rank" in arrays else None,
            hidden=tuple(
                HiddenMode(
                    direction=read_array(arrays, f"hidden.{i}.direction", d, 2),
                    **plain(HiddenMode, mode),
                )
                for i, mode in enumerate(_listed("hidden", values))
            ),
            table=tuple(_row(i, row, arrays, d) for i, row in enumerate(_listed("table", values))),
            times=times,
            eigenvalues=read_array(arrays, "eigenvalues", times.size, d),
            final=read_array(arrays, "final", d, d),
            **plain(cls, values),
        )


def _listed(name: str, values: dict[str, Any]) -> list[Any]:
    if not isinstance(values[name], list):
        raise ResultFileInvalid(f"`{name}` is no list.")
    return list(values[name])


def _row(i: int, values: Any, arrays: Arrays, d: int) -> Row:
    name = f"table.{i}.X"
    X = read_array(arrays, name, d, d) if name in arrays else None
    row = Row(X=X, **plain(Row, values))
    if row.finding not in FINDINGS:
        raise ResultFileInvalid(
            f"`finding` of row {i} is {row.finding!r:.40}; expected one of {', '.join(FINDINGS)}."
        )
    if row.answered != (X is not None):
        raise ResultFileInvalid(f"row {i} of the table and its array `{name}` disagree.")
    return row


def _law(name: str, arrays: Arrays, d: int) -> Gaussian | None:
    if f"{name}.mean" not in arrays:
        return None
    law = unpack_gaussian(name, arrays)
    agree(f"the dimension of the {name}", law.dim, d)
    return law


def _problem(values: dict[str, Any], arrays: Arrays) -> ComparisonProblem:
    A = read_array(arrays, "A", None, None)
    d = len(A)
    agree("the number of columns of A", A.shape[1], d)
    C = read_array(arrays, "C", None, d)
    noise = read_array(arrays, "noise", d, d) if "noise" in arrays else None
    start = _law("start", arrays, d)
    given = {"name": values["name"], "horizon": values["problem_horizon"]}
    return ComparisonProblem(
        A,
        C,
        read_array(arrays, "R", len(C), len(C)),
        read_array(arrays, "K", d, d),
        noise,
        start,
        **plain(ComparisonProblem, given),
    )

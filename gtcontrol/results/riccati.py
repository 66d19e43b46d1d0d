"""Solution of an algebraic Riccati equation, with everything it has to be judged by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._check import Array
from ..errors import ResultFileInvalid
from ..problem.definitions import RiccatiProblem
from ..riccati_equations.equation import RiccatiEquation
from ..status import Definiteness, RiccatiStatus
from .base import Arrays, Result
from .plain import plain, read_array

__all__ = ["RiccatiSolution"]

#: Signs of the eigenvalues with which there is a factor.
_FACTORED = (
    Definiteness.POSITIVE_DEFINITE,
    Definiteness.POSITIVE_SEMIDEFINITE,
    Definiteness.ZERO,
)

Member = TypeVar("Member", bound=Enum)


@dataclass(frozen=True, eq=False, repr=False)
class RiccatiSolution(Result):
    """The stabilising solution X of a Riccati equation, or why there is none.

    Attributes
    ----------
    problem : RiccatiProblem
        Holds the equation.
    status : RiccatiStatus
    reason : str
        What makes the closed loop stable, or which mode and direction breaks it.
    X : (n, n) array or None
        The solution, rounded to floats.  Where the status is MARGINAL the largest solution, with
        closed-loop modes on the boundary of stability, or one of a continuum; None if there is
        none.
    factor : (n, rank) array or None
        F with X = F F' to rounding, so that definiteness and rank survive; None unless X is
        positive semidefinite.
    residual : float
        Residual of X relative to the terms of the equation; nan without X.
    error_estimate : float
        Estimated distance to the solution relative to X (Frobenius norms); nan without X.
    spectrum : (n,) complex array
        Eigenvalues of the closed loop, the least stable one first; without X those of A.
    definite : Definiteness or None
        Signs of the eigenvalues of the solution.
    rank : int
        Rank of the solution; -1 without X.
    lowest, highest : float
        Extreme eigenvalues of the solution, computed at the precision used; nan without X.
    gain : (m, n) array or None
        Feedback u = -gain x that belongs to X.
    precision : int
        Bits of the arithmetic: 53 for double precision (with residuals of twice that), or more.
    condition : float
        By how much relative changes of the data are magnified in X, at most; inf where X is
        marginal or missing.
    kernel : (n, k) array
        Directions W of a continuum: X + W C W' solves as well for some C; usually empty.
    """

    kind: ClassVar[str] = "riccati"

    problem: RiccatiProblem
    status: RiccatiStatus
    reason: str
    X: Array | None
    factor: Array | None
    residual: float
    error_estimate: float
    spectrum: NDArray[np.complex128]
    definite: Definiteness | None
    rank: int
    lowest: float
    highest: float
    gain: Array | None
    precision: int
    condition: float
    kernel: Array

    @property
    def answered(self) -> bool:
        """Whether it is known what the solution is, or that there is none."""
        return self.status.answered

    @property
    def equation(self) -> RiccatiEquation:
        """The equation that was solved."""
        return self.problem.equation

    @property
    def eigenvalues(self) -> tuple[float, float]:
        """Lowest and highest eigenvalue of the solution."""
        return self.lowest, self.highest

    @property
    def stabilising(self) -> bool:
        """Whether the closed loop is stable."""
        return self.status is RiccatiStatus.SUCCESS

    @property
    def open_loop(self) -> NDArray[np.complex128]:
        """Eigenvalues of A (n,)."""
        return np.linalg.eigvals(self.equation.A).astype(np.complex128)

    def __repr__(self) -> str:
        words = [self.status.name, f"states={self.equation.dim}"]
        if self.definite is not None:
            words += [
                f"{self.definite.value}, rank {self.rank}",
                f"residual {self.residual:.1e}",
                f"error {self.error_estimate:.1e}",
                f"{self.precision} bits",
            ]
        return f"RiccatiSolution({', '.join(words)})"

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays."""
        e = self.equation
        values = {
            "name": self.problem.name,
            "status": self.status.name,
            "reason": self.reason,
            "discrete": e.discrete,
            "definite": None if self.definite is None else self.definite.name,
            "rank": self.rank,
            "lowest": self.lowest,
            "highest": self.highest,
            "residual": self.residual,
            "error_estimate": self.error_estimate,
            "precision": self.precision,
            "condition": self.condition,
        }
        arrays = {"A": e.A, "B": e.B, "Q": e.Q, "R": e.R, "cross": e.cross}
        arrays["spectrum"] = np.stack([self.spectrum.real, self.spectrum.imag], axis=1)
        arrays["kernel"] = self.kernel
        made = {"X": self.X, "factor": self.factor, "gain": self.gain}
        return values, arrays | {name: x for name, x in made.items() if x is not None}

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> RiccatiSolution:
        """Restore the result."""
        A = read_array(arrays, "A", None, None)
        n = len(A)
        B = read_array(arrays, "B", n, None)
        m = B.shape[1]
        if not isinstance(values["discrete"], bool):
            raise ResultFileInvalid("`discrete` is no truth value.")
        equation = RiccatiEquation.trusted(
            read_array(arrays, "A", n, n),
            B,
            read_array(arrays, "Q", n, n),
            read_array(arrays, "R", m, m),
            read_array(arrays, "cross", n, m),
            discrete=values["discrete"],
        )
        spectrum = read_array(arrays, "spectrum", n, 2)
        fields = plain(cls, values)
        rank, word = fields["rank"], values["definite"]
        if not -1 <= rank <= n:
            raise ResultFileInvalid(f"`rank` is {rank}; expected -1 to {n}.")
        definite = None if word is None else _member(Definiteness, "definite", word)
        return cls(
            problem=RiccatiProblem(equation, **plain(RiccatiProblem, values)),
            status=_member(RiccatiStatus, "status", values["status"]),
            X=None if definite is None else read_array(arrays, "X", n, n),
            factor=read_array(arrays, "factor", n, rank) if definite in _FACTORED else None,
            spectrum=spectrum[:, 0] + 1j * spectrum[:, 1],
            definite=definite,
            gain=None if definite is None else read_array(arrays, "gain", m, n),
            kernel=read_array(arrays, "kernel", n, None),
            **fields,
        )


def _member(kind: type[Member], name: str, value: object) -> Member:
    if not isinstance(value, str) or value not in kind.__members__:
        raise ResultFileInvalid(
            f"`{name}` is {value!r:.40}; expected one of {', '.join(kind.__members__)}."
        )
    return kind[value]

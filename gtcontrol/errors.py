"""Exceptions: one type for each rule that an input can break.

Every exception raised for bad input derives from :class:`GtcontrolError`, which is
itself a ``ValueError``.  Its message is one line: what is wrong, with which number,
and what to do about it.
"""

from __future__ import annotations

__all__ = [
    "BoundsExcludeEveryPlan",
    "Contradiction",
    "DesignInfeasible",
    "GtcontrolError",
    "IllPosedProblem",
    "IncompatibleSchedule",
    "IndefiniteCovariance",
    "InvalidControls",
    "InvalidMethod",
    "InvalidNumber",
    "InvalidPath",
    "InvalidShape",
    "MissingPackage",
    "ModelFileInvalid",
    "NotFinite",
    "NotSymmetric",
    "OutOfScale",
    "OutputFailure",
    "ProblemFileInvalid",
    "RankDeficientFactor",
    "RankMismatch",
    "ResultFileInvalid",
    "TooLarge",
    "Unreachable",
    "UnsupportedModel",
]


class GtcontrolError(ValueError):
    """Base class of all errors that gtcontrol raises for bad input."""


class InvalidShape(GtcontrolError):
    """An array has the wrong number of dimensions or the wrong size."""


class InvalidNumber(GtcontrolError):
    """A scalar argument is not a number, or lies outside its range."""


class NotFinite(GtcontrolError):
    """An array holds nan or infinity."""


class NotSymmetric(GtcontrolError):
    """A matrix that must be symmetric is not, relative to its size."""


class IndefiniteCovariance(GtcontrolError):
    """A covariance has a negative eigenvalue."""


class RankDeficientFactor(GtcontrolError):
    """A factor does not have full column rank, or a rank was asked for that is not there."""


class RankMismatch(GtcontrolError):
    """Start and target have different rank, which no control can change."""


class Unreachable(GtcontrolError):
    """The target cannot be reached from the start with the enabled controls."""


class InvalidControls(GtcontrolError):
    """The string of enabled controls is empty or holds an unknown letter."""


class InvalidMethod(GtcontrolError):
    """A method, solver or cost is unknown, or does not apply to this problem."""


class InvalidPath(GtcontrolError):
    """A prescribed path changes rank, or does not join start and target."""


class IncompatibleSchedule(GtcontrolError):
    """A schedule does not fit: wrong dimension, wrong horizon, or unordered times."""


class IllPosedProblem(GtcontrolError):
    """The optimal control problem has no minimiser, so no solver may return one."""


class BoundsExcludeEveryPlan(GtcontrolError):
    """The bounds provably leave no admissible plan."""


class DesignInfeasible(GtcontrolError):
    """No constant parameters of the kind that was asked for make the target attracting."""


class OutOfScale(GtcontrolError):
    """The numbers are too large, too small or too spread for double precision."""


class TooLarge(GtcontrolError):
    """The computation would not fit into memory; refused before allocating."""


class ProblemFileInvalid(GtcontrolError):
    """A problem file cannot be read, or does not follow the schema."""


class ResultFileInvalid(GtcontrolError):
    """A saved result cannot be read back."""


class OutputFailure(GtcontrolError):
    """An output folder cannot be written."""


class MissingPackage(GtcontrolError):
    """An optional package is needed and not installed."""


class ModelFileInvalid(GtcontrolError):
    """A pretrained model, or data for it, cannot be found or read."""


class UnsupportedModel(GtcontrolError):
    """A pretrained model is of a kind that the theory or the loader does not cover."""


class Contradiction(RuntimeError):
    """Two proofs, or a proof and an accurate integration, exclude each other: a defect here."""

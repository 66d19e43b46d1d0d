"""The data of an integration in balls that claims hold: precision, order, coordinates, steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...results.claims import Claim
from ..bracket.plan import LARGEST_DIM, MOST_BITS, MOST_ORDER, MOST_STEPS, MOST_WORK, work
from .base import Refuted, matrix, number

__all__ = ["Course", "read_course", "whole"]


@dataclass(frozen=True, eq=False)
class Course:
    """How to integrate in balls.

    Parameters
    ----------
    bits, order : int
        Precision, and order of the Taylor polynomials.
    coordinates : (d, d) array
        Matrix of the coordinates in which norms are taken.
    steps : (n,) array
        Lengths of the steps, meant exactly.
    """

    bits: int
    order: int
    coordinates: Array
    steps: Array


def read_course(claim: Claim, dim: int) -> Course:
    """Read the course of a claim in dimension `dim`, with every shape and size checked.

    Raises
    ------
    Refuted
        If something is missing or does not fit, or the steps are too much work.
    """
    if dim > LARGEST_DIM:
        raise Refuted(f"balls are integrated up to dimension {LARGEST_DIM}, not {dim}")
    bits, order = whole(claim, "bits", 53, MOST_BITS), whole(claim, "order", 2, MOST_ORDER)
    coordinates, steps = matrix(claim, "coordinates", dim, dim), _steps(claim)
    if work(dim, order, len(steps)) > MOST_WORK:
        raise Refuted("the steps of the claim are more work than a check is given")
    return Course(bits, order, coordinates, steps)


def whole(claim: Claim, name: str, low: int, high: int) -> int:
    """Return a scalar of a claim that is a whole number between two bounds.

    Raises
    ------
    Refuted
        If it is missing, or another number.
    """
    value = number(claim, name)
    if not (low <= value <= high and value == int(value)):
        raise Refuted(f"the number `{name}` is {value!r}; a whole one in [{low}, {high}] is needed")
    return int(value)


def _steps(claim: Claim) -> Array:
    steps = claim.arrays.get("steps")
    if steps is None or steps.ndim != 1 or len(steps) > MOST_STEPS:
        raise Refuted(f"the steps of the claim are not a list of at most {MOST_STEPS} numbers")
    matrix(claim, "steps", len(steps))
    if not bool(np.all(steps > 0)):
        raise Refuted("the steps of the claim are not positive")
    return steps

"""Quadratic certificates y = tr(W S), found by linear matrix inequalities.

Without a start: an ultimate bound, or decay, from every start.  With one: a lower bound on its
blow-up time, too, or none if it provably stays bounded; and boundedness of starts of rank one, for
which more is true than for others.  Upper bounds take many more programs, and are sought apart.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._check import Array
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..theory.pieces import comparable, may_grow

__all__ = [
    "LARGEST",
    "LARGEST_INTERACTIVE",
    "find",
    "find_blow_up",
    "lower_bound",
    "upper_bound",
]

#: Largest dimension that is tried at once, and if the user has minutes.
LARGEST_INTERACTIVE = 8
LARGEST = 10


def find(problem: CertificationProblem, *, largest: int = LARGEST_INTERACTIVE) -> Iterator[Claim]:
    """Search for quadratic certificates of a problem.

    Parameters
    ----------
    problem : CertificationProblem
    largest : int
        Largest dimension that is tried; there is no claim beyond it.

    Yields
    ------
    Claim
        Not yet settled: the caller asks the rule.
    """
    if problem.dim > min(largest, LARGEST) or not comparable(problem.vertices):
        return
    settled = False
    for single in _ranks(problem):
        for claim in _global(problem, single=single):
            settled = True
            yield claim
        if settled:
            return
    if problem.start is not None:
        yield from lower_bounds(problem)


def find_blow_up(
    problem: CertificationProblem, *, largest: int = LARGEST_INTERACTIVE
) -> Iterator[Claim]:
    """Search for an upper bound on the blow-up time of the problem's start.

    Parameters
    ----------
    problem : CertificationProblem
    largest : int
        Largest dimension that is tried.
    """
    fits = problem.dim <= min(largest, LARGEST) and comparable(problem.vertices)
    if problem.start is not None and fits:
        yield from upper_bounds(problem)


def upper_bounds(problem: CertificationProblem) -> Iterator[Claim]:
    """Claims on the blow-up time of the problem's start from above: one, or none."""
    from ..lmi.blow_up import upper_bounds as search

    if may_grow(problem.vertices):
        yield from search(problem)


def lower_bounds(problem: CertificationProblem) -> Iterator[Claim]:
    """Claims on the blow-up time of the problem's start from below: one, or none."""
    from ..lmi.survival import lower_bounds as search

    yield from search(problem)


def upper_bound(parameters: Parameters, covariance: Array) -> tuple[Claim, ...]:
    """Claims on the blow-up time of N(0, S) from above: one, or none.

    Parameters
    ----------
    parameters : Parameters
    covariance : (d, d) array
        Covariance S.
    """
    return tuple(upper_bounds(_problem(parameters, covariance)))


def lower_bound(parameters: Parameters, covariance: Array) -> tuple[Claim, ...]:
    """Claims on the blow-up time of N(0, S) from below: one, or none.

    Parameters
    ----------
    parameters : Parameters
    covariance : (d, d) array
        Covariance S.
    """
    return tuple(lower_bounds(_problem(parameters, covariance)))


def _problem(parameters: Parameters, covariance: Array) -> CertificationProblem:
    # Near a blow-up eigenvalues differ by many orders of magnitude, but none is zero.
    start = Gaussian.from_covariance(np.zeros(parameters.dim), covariance, tolerance=1e-15)
    return CertificationProblem((parameters,), start)


def _global(problem: CertificationProblem, *, single: bool) -> Iterator[Claim]:
    """Claims from every start, or every start of rank one."""
    from ..lmi.boundedness import bounds, decays

    decaying = False
    for claim in decays(problem, single=single):
        decaying = True
        yield claim
    if not decaying:
        yield from bounds(problem, single=single)


def _ranks(problem: CertificationProblem) -> tuple[bool, ...]:
    """Whether to look at rank one only: first for every rank, then for that of the start."""
    single = problem.start is not None and problem.start.rank == 1
    return (False, True) if single else (False,)

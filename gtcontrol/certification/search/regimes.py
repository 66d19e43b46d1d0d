"""Regime tests in n by n matrices, without a semidefinite programme.

The sign of the score matrix decides which theorem can apply, so it is looked at first.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from ..._check import Array
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..theory.heads import Head, merge_families
from . import blockwise, curves, isotropy, metrics, spectra

__all__ = ["find"]

#: Relative size below which an eigenvalue of a symmetric matrix says nothing about its sign.
SIGN_TOLERANCE = 1e-12


def find(problem: CertificationProblem) -> Iterator[Claim]:
    """Propose claims about the covariance, cheapest first; none is settled.

    Parameters
    ----------
    problem : CertificationProblem
        Constant parameters or a family; a start is used if there is one.

    Yields
    ------
    Claim
        Of the rules on rank one, on quadratic certificates that cannot exist, on dissipative
        attention, and on blow-up along an eigenvector.
    """
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [*_attempt(curves.find(problem)), *_attempt(_find(problem))]
    yield from made


def _attempt(search: Iterator[Claim]) -> Iterator[Claim]:
    """Claims of one search, until an eigenvalue routine fails on numbers out of range."""
    try:
        yield from search
    except (ValueError, ArithmeticError):  # LinAlgError is a ValueError
        return


def _find(problem: CertificationProblem) -> Iterator[Claim]:
    families = merge_families(problem.vertices)
    count = len(families[0])
    if any(len(heads) != count for heads in families) or not count:
        return
    apart = blockwise.find(problem)
    if apart is not None:
        yield apart
        return
    excluded = _excluded(families)
    if excluded is not None:
        yield excluded
        return
    found = metrics.find(problem, families)
    if found is not None:
        yield found
        return
    if len(families) > 1:
        return
    claims = list(spectra.find(problem, families[0]))
    yield from claims
    if count == 1 and not claims:
        yield from spectra.exclude(families[0][0])


def _excluded(families: list[tuple[Head, ...]]) -> Claim | None:
    """Claim that no quadratic certificate exists, of the first vertex that excludes them."""
    for vertex, heads in enumerate(families):
        claim = _indefinite(heads[0]) if len(heads) == 1 else isotropy.common(heads)
        if claim is not None:
            numbers = {**claim.numbers, "vertex": float(vertex)}
            return Claim(claim.rule, numbers=numbers, arrays=claim.arrays)
    return None


def _indefinite(head: Head) -> Claim | None:
    """Witnesses that the symmetric part of one score matrix is indefinite."""
    form: Array = 0.5 * (head.B + head.B.T)
    if not np.all(np.isfinite(form)):
        return None
    # In coordinates that make the entries of the diagonal ±1, if none of them is zero.
    diagonal = np.abs(np.diag(form))
    scale = 1.0 / np.sqrt(diagonal) if np.all(diagonal > 0) else np.ones(len(form))
    form = scale[:, None] * form * scale
    ends = np.linalg.eigvalsh(form)
    size = SIGN_TOLERANCE * max(abs(ends[0]), abs(ends[-1]))
    if not (ends[0] < -size and ends[-1] > size):
        return None
    _, vectors = np.linalg.eigh(form)
    arrays = {"positive": scale * vectors[:, -1], "negative": scale * vectors[:, 0]}
    return Claim("no-quadratic-certificate-indefinite-score", arrays=arrays)

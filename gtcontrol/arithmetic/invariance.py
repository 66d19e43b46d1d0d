"""Invariant subspaces of a matrix of fractions, and the exponents of motions in them: exactly.

A motion e^{At} u with u in an invariant subspace is a sum of t^j e^{λt}, j below the multiplicity
of λ as a root of the minimal polynomial of A on that subspace; every root occurs for some u.
Subspaces are given by the columns of a matrix of fractions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from flint import fmpq_mat, fmpq_poly

from . import balls, fractions
from .balls import Ball
from .fractions import Fractions
from .spectra import sides

__all__ = [
    "Motion",
    "intersection",
    "kernel",
    "lyapunov",
    "minimal_polynomial",
    "motion",
    "nothing",
    "projector_on_kernel",
    "reachable",
    "relative_polynomial",
    "restricted",
    "unobserved",
]

# FLINT has no stubs.
Polynomial = Any


@dataclass(frozen=True)
class Motion:
    """What the roots of a polynomial say of the motions that it annihilates.

    Attributes
    ----------
    polynomial : polynomial of fractions
    decays, bounded, settles : bool
        Whether all motions tend to 0; are bounded; have a limit.
    """

    polynomial: Polynomial
    decays: bool
    bounded: bool
    settles: bool

    @property
    def abscissa(self) -> Ball | None:
        """Enclosure of the largest real part; None without roots."""
        return _largest(self.polynomial)

    @property
    def decay(self) -> Ball | None:
        """Enclosure of the largest real part of the roots other than 0; None without such."""
        rest = self.polynomial
        while rest.degree() > 0 and rest[0] == 0:
            rest = rest // fmpq_poly([0, 1])
        return _largest(rest)


def motion(polynomial: Polynomial) -> Motion | None:
    """Classify the motions that a minimal polynomial annihilates; None if roots are not told."""
    if polynomial.degree() < 1:
        return Motion(polynomial, True, True, True)
    whole = sides(polynomial)
    simple = sides(polynomial // polynomial.gcd(polynomial.derivative()))
    if whole is None or simple is None:
        return None
    bounded = whole.right == 0 and whole.axis == simple.axis
    still = int(polynomial[0] == 0)
    return Motion(
        polynomial, whole.right == whole.axis == 0, bounded, bounded and simple.axis == still
    )


def _largest(polynomial: Polynomial) -> Ball | None:
    if polynomial.degree() < 1:
        return None
    ends = [value.real for value, _ in polynomial.numer().complex_roots()]
    highest = max(balls.above(x) for x in ends)
    lowest = max(balls.below(x) for x in ends)
    if not math.isfinite(highest) or not math.isfinite(lowest):
        return None
    return balls.ball(lowest).union(balls.ball(highest))


def _columns(made: list[list[Any]], rows: int) -> Fractions:
    return fmpq_mat([[c[i] for c in made] for i in range(rows)]) if made else fmpq_mat(rows, 0)


def _entries(X: Fractions) -> list[list[Any]]:
    """Columns of a matrix as lists."""
    return [list(row) for row in X.transpose().tolist()] if X.ncols() else []


def _independent(X: Fractions) -> Fractions:
    """Columns of X that span its range."""
    if not X.ncols() or not X.nrows():
        return fmpq_mat(X.nrows(), 0)
    reduced, rank = X.rref()
    rows = reduced.tolist()
    pivots = [next(j for j, x in enumerate(rows[i]) if x != 0) for i in range(rank)]
    every = _entries(X)
    return _columns([every[j] for j in pivots], X.nrows())


def nothing(rows: int) -> Fractions:
    """Basis of the subspace {0}: a matrix without columns."""
    return fmpq_mat(rows, 0)


def kernel(X: Fractions) -> Fractions:
    """Basis of the kernel."""
    n = X.ncols()
    if not X.nrows() or not n:
        return fractions.identity(n) if n else fmpq_mat(0, 0)
    reduced, rank = X.rref()
    rows = reduced.tolist()
    pivots = [next(j for j, x in enumerate(rows[i]) if x != 0) for i in range(rank)]
    made = []
    for free in (j for j in range(n) if j not in pivots):
        vector = [fractions.fraction(0.0)] * n
        vector[free] = fractions.fraction(1.0)
        for i, j in enumerate(pivots):
            vector[j] = -rows[i][free]
        made.append(vector)
    return _columns(made, n)


def reachable(A: Fractions, X: Fractions) -> Fractions:
    """Basis of the smallest A-invariant subspace that holds the columns of X."""
    basis = _independent(X)
    while basis.ncols():
        moved = A * basis
        wider = _independent(_columns([*_entries(basis), *_entries(moved)], A.nrows()))
        if wider.ncols() == basis.ncols():
            break
        basis = wider
    return basis


def unobserved(A: Fractions, K: Fractions) -> Fractions:
    """Basis of the largest A-invariant subspace in the kernel of K."""
    seen = reachable(A.transpose(), K.transpose())
    return kernel(seen.transpose()) if seen.ncols() else fractions.identity(A.nrows())


def intersection(X: Fractions, Y: Fractions) -> Fractions:
    """Basis of the intersection of the ranges of two matrices of full column rank."""
    if not X.ncols() or not Y.ncols():
        return fmpq_mat(X.nrows(), 0)
    both = _columns([*_entries(X), *_entries(Y * -1)], X.nrows())
    weights = kernel(both)
    if not weights.ncols():
        return fmpq_mat(X.nrows(), 0)
    return X * _columns([c[: X.ncols()] for c in _entries(weights)], X.ncols())


def restricted(A: Fractions, basis: Fractions) -> Fractions:
    """Matrix of A on an invariant subspace, in its basis."""
    if not basis.ncols():
        return fmpq_mat(0, 0)
    left = basis.transpose()
    return (left * basis).solve(left * A * basis)


def minimal_polynomial(matrix: Fractions) -> Polynomial:
    """Minimal polynomial of a matrix; 1 if it is empty."""
    return matrix.minpoly() if matrix.nrows() else fmpq_poly([1])


def relative_polynomial(A: Fractions, u: Fractions, hidden: Fractions) -> Polynomial:
    """Monic p of least degree with p(A) u in an A-invariant subspace, the columns of `hidden`."""
    chain = [*_entries(hidden)]
    first, vector, n = len(chain), u, A.nrows()
    while True:
        chain.append(_entries(vector)[0])
        relation = kernel(_columns(chain, n))
        if relation.ncols():
            # The chain before was independent, so the last coefficient is not zero.
            made = fmpq_poly([relation[i, 0] for i in range(first, len(chain))])
            return made / made[made.degree()]
        vector = A * vector


def projector_on_kernel(A: Fractions, basis: Fractions, polynomial: Polynomial) -> Fractions:
    """P with e^{At} u -> P u for u in the subspace, if 0 is a simple root and all others decay.

    P is a matrix (d, d) that is meant on the subspace only: q(A)/q(0), with the minimal
    polynomial x q(x); 0 if 0 is no root.
    """
    d = A.nrows()
    if polynomial.degree() < 1 or polynomial[0] != 0 or not basis.ncols():
        return fmpq_mat(d, d)
    rest = polynomial // fmpq_poly([0, 1])
    made = fmpq_mat(d, d)
    for i in range(rest.degree(), -1, -1):
        made = made * A + fractions.identity(d) * rest[i]
    return made / rest[0]


def lyapunov(A: Fractions, C: Fractions) -> Fractions:
    """Solve A X + X Aᵀ + C = 0 exactly, for symmetric C and no two eigenvalues that sum to 0."""
    n = A.nrows()
    pairs = [(i, j) for i in range(n) for j in range(i, n)]
    where = {pair: k for k, pair in enumerate(pairs)} | {
        (j, i): k for k, (i, j) in enumerate(pairs)
    }
    system, right = fmpq_mat(len(pairs), len(pairs)), fmpq_mat(len(pairs), 1)
    for row, (i, j) in enumerate(pairs):
        right[row, 0] = -C[i, j]
        for k in range(n):
            system[row, where[k, j]] += A[i, k]
            system[row, where[i, k]] += A[j, k]
    found = system.solve(right)
    return fmpq_mat([[found[where[i, j], 0] for j in range(n)] for i in range(n)])

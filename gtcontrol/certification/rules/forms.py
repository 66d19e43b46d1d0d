"""Quadratic forms of certificates in the entries s of S on and above the diagonal, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from ...arithmetic.dyadic import Dyadic, dyadic
from ...parameters import Parameters
from ..theory.quadratic import Indices, heads_of, pairs

__all__ = ["Rate", "entries", "level_form", "scaled", "slack_form", "total"]


@dataclass(frozen=True, eq=False)
class Rate:
    """Parts of y' for one vertex, or the mean of a mixed pair: y' = sᵀ form s + ⟨drift, S⟩ + noise.

    `form` is (p, p) in the entries s of S, `drift` (d, d).
    """

    form: Dyadic
    drift: Dyadic
    noise: Fraction

    @classmethod
    def between(cls, W: Dyadic, first: Parameters, second: Parameters) -> Rate:
        """Rate at a vertex (given twice), or the mean of a mixed pair."""
        half = dyadic(0.5)
        A = (dyadic(first.A) + dyadic(second.A)) * half
        drift = W @ A
        form = _form(W, first, second)
        if first is not second:
            form = (form + _form(W, second, first)) * half
        noise = (_noise(W, first) + _noise(W, second)) / 2
        return cls(form, drift + drift.T, noise)


def _form(W: Dyadic, values: Parameters, scores: Parameters) -> Dyadic:
    """Matrix of 2 Σ_h tr(W V_h S B_h S) in the entries s."""
    V, B = heads_of(values)[0], heads_of(scores)[1]
    d = V.shape[-1]
    kernel = dyadic(np.zeros((d * d, d * d)))
    for v, b in zip(V, B, strict=True):
        N = W @ dyadic(v)
        # tr(N S B S) = Σ N_ab B_cd S_bc S_da, rows (b, c), columns (d, a).
        kernel = kernel + N.outer(dyadic(b)).transposed(1, 2, 3, 0).reshaped(d * d, d * d)
    folded = _fold(kernel, d)
    return folded + folded.T


def _fold(kernel: Dyadic, d: int) -> Dyadic:
    """Dᵀ K D with the duplication matrix D: rows and columns of equal entries are added."""
    first, second = _duplicates(d)
    same = first == second
    rows = kernel.numerators[first] + np.where(same, 0, 1)[:, None] * kernel.numerators[second]
    made = rows[:, first] + np.where(same, 0, 1)[None, :] * rows[:, second]
    return Dyadic(np.asarray(made, dtype=object), kernel.exponent)


@cache
def _duplicates(d: int) -> tuple[Indices, Indices]:
    """Places in S.ravel() of the entries (i, j), i <= j, and of (j, i)."""
    i, j = np.triu_indices(d)
    return np.asarray(i * d + j, dtype=np.intp), np.asarray(j * d + i, dtype=np.intp)


def slack_form(Z: Dyadic, d: int) -> Dyadic:
    """Matrix of ⟨Z, ∧²S⟩ in the entries s: Σ Z_(ij)(kl) (S_ik S_jl - S_il S_jk)."""
    i, j = pairs(d)
    p = d * (d + 1) // 2
    made = np.zeros((p, p), dtype=object)
    if i.size == 0:
        return Dyadic(made, 0)
    number = np.zeros((d, d), dtype=np.intp)
    rows, columns = np.triu_indices(d)
    number[rows, columns] = number[columns, rows] = np.arange(p)
    I, K = np.meshgrid(i, i, indexing="ij")
    J, M = np.meshgrid(j, j, indexing="ij")
    for sign, u, v in ((1, number[I, K], number[J, M]), (-1, number[I, M], number[J, K])):
        np.add.at(made, (u, v), sign * Z.numerators)
        np.add.at(made, (v, u), sign * Z.numerators)
    return Dyadic(made, Z.exponent) * dyadic(0.5)


def level_form(W: Dyadic, factor: Fraction) -> Dyadic:
    """Matrix of factor · tr(W S)² in the entries s."""
    w = entries(W)
    return scaled(w.outer(w) * 4, factor)


def entries(matrix: Dyadic) -> Dyadic:
    """Half the coefficients of ⟨M, S⟩ in the entries s: M_ii/2, and M_ij off the diagonal."""
    d = matrix.shape[0]
    i, j = np.triu_indices(d)
    twice = np.where(i == j, 1, 2).astype(object)
    made = Dyadic(np.asarray(matrix.numerators[i, j] * twice, dtype=object), matrix.exponent)
    return made * dyadic(0.5)


def scaled(matrix: Dyadic, factor: Fraction | int) -> Dyadic:
    """Multiple of a matrix by a dyadic fraction."""
    return matrix * Dyadic.of(Fraction(factor))


def total(matrix: Dyadic) -> Dyadic:
    """Sum of all entries."""
    return Dyadic(np.asarray(matrix.numerators.sum(), dtype=object), matrix.exponent)


def _noise(W: Dyadic, parameters: Parameters) -> Fraction:
    """tr(W Q)."""
    if parameters.noise is None:
        return Fraction(0)
    return total(W * dyadic(parameters.noise)).fraction()

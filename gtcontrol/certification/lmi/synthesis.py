"""Semidefinite programs that find A and B for a given V, such that a target is attracting.

In coordinates x = L z, in which the target S = L Lᵀ is the identity, the equation of the
equilibrium, sym(A + V B) = 0, is solved by A = Ω - V B with Ω skew, so that Ω and B are free.
The attraction is a matrix inequality in B alone:

* V = -ν I:  ν (B + Bᵀ) >= α I, for all covariances of full rank;
* any V:     -2 tr(D V D B) >= α |D|² for all symmetric D, near the target.

Both are scaled: times by α and |V|, and the entries of A and B in the coordinates of the tokens by
the size of the target.  A solver is not trusted: what it finds is rounded to an exact solution of
the equation, and its rates are then proved or refused by rules that do not know it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._check import Array

__all__ = ["MARGIN", "Program", "Synthesis", "solve"]

#: Relative margin with which inequalities are solved, so that rounding does not break them.
MARGIN = 1e-5

#: Solvers in the order in which they are tried.
SOLVERS = ("CLARABEL", "SCS")


@dataclass(frozen=True, eq=False)
class Program:
    """What is asked.

    Attributes
    ----------
    factor : (d, d) array
        Factor L of the target.
    V : (d, d) array
    rate : float or None
        α; None asks for the largest, which only bounds make finite.
    near : pair of (d, d) arrays
        A and B, in the coordinates of the tokens, from which the squared distance is least.
    entries, norms : dict from "A" and "B" to float
        Largest size of the entries, and of the Frobenius norm.
    """

    factor: Array
    V: Array
    rate: float | None
    near: tuple[Array, Array]
    entries: dict[str, float]
    norms: dict[str, float]


@dataclass(frozen=True, eq=False)
class Synthesis:
    """What came: A and B (d, d), the rate, or None with the words of the solvers."""

    A: Array | None
    B: Array | None
    rate: float
    words: str


def solve(program: Program) -> Synthesis:
    """Find the parameters nearest to given ones, or those of the largest rate."""
    cp = _cvxpy()
    d = program.factor.shape[0]
    L, inverse = program.factor, np.linalg.inv(program.factor)
    V = inverse @ program.V @ L
    speed = float(np.linalg.norm(V, 2))
    unit = program.rate if program.rate is not None else speed
    size = float(np.linalg.norm(L)) ** 2 / d
    b, skew = cp.Variable((d, d)), cp.Variable((d, d))
    level: Any = 1.0 if program.rate is not None else cp.Variable()
    constraints = [skew + skew.T == 0, *_attraction(cp, V / speed, b, level)]
    # Units: A in α, B in α/(|V| size of the target).
    A = L @ (skew - (V / speed) @ b) @ inverse
    B = size * (inverse.T @ b @ inverse)
    scales = {"A": unit, "B": unit / (speed * size)}
    for name, matrix in (("A", A), ("B", B)):
        if name in program.entries:
            cap = program.entries[name] / scales[name]
            constraints.append(cp.max(cp.abs(matrix / cap)) <= 1.0 - MARGIN)
        if name in program.norms:
            cap = program.norms[name] / scales[name]
            constraints.append(cp.norm(matrix / cap, "fro") <= 1.0 - MARGIN)
    if program.rate is None:
        goal = cp.Maximize(level)
    else:
        wanted = [x / scales[name] for name, x in zip("AB", program.near, strict=True)]
        far = max(1.0, *(float(np.max(np.abs(x))) for x in wanted))
        away = [(A - wanted[0]) / far, (B - wanted[1]) / far]
        goal = cp.Minimize(cp.sum_squares(away[0]) + cp.sum_squares(away[1]))
    found, words = _attempt(cp, cp.Problem(goal, constraints), b, skew)
    if found is None:
        return Synthesis(None, None, 0.0, words)
    inner, turn = found
    turn = 0.5 * (turn - turn.T)
    return Synthesis(
        unit * (L @ (turn - (V / speed) @ inner) @ inverse),
        unit / speed * (inverse.T @ inner @ inverse),
        unit if program.rate is not None else unit * float(level.value),
        words,
    )


def _cvxpy() -> Any:
    """The package, which takes a second to load, and whose stubs are incomplete."""
    import cvxpy

    return cvxpy


def _attraction(cp: Any, V: Array, b: Any, level: Any) -> list[Any]:
    """Matrix inequality in B (scaled), by the kind of V."""
    d = V.shape[0]
    if np.allclose(V, V[0, 0] * np.eye(d), rtol=1e-12, atol=1e-12):
        return [-V[0, 0] * (b + b.T) >> (1.0 + MARGIN) * level * np.eye(d)]
    tensor = _form(V)
    order = d * (d + 1) // 2
    form = cp.reshape(-tensor @ cp.vec(b, order="C"), (order, order), order="C")
    return [0.5 * (form + form.T) >> (1.0 + MARGIN) * level * np.eye(order)]


def _form(V: Array) -> Array:
    """Matrix from B (row by row) to the form 2 tr(D V D B) in an orthonormal basis of D."""
    d = V.shape[0]
    basis = []
    for i in range(d):
        for j in range(i + 1):
            E = np.zeros((d, d))
            E[i, j] = E[j, i] = 1.0 if i == j else np.sqrt(0.5)
            basis.append(E)
    stacked = np.array(basis)
    products = np.einsum("kab,bc,lcd->klda", stacked, V, stacked)
    products = products + np.swapaxes(products, 0, 1)
    return np.asarray(products.reshape(len(basis) ** 2, d * d))


def _attempt(cp: Any, problem: Any, b: Any, skew: Any) -> tuple[Any, str]:
    """Values of the two variables, or None, and what the solvers say."""
    said = []
    for name in SOLVERS:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                problem.solve(solver=getattr(cp, name))
            status = str(problem.status)
        except (cp.error.SolverError, ValueError, ArithmeticError) as error:
            status = type(error).__name__
        said.append(f"{name}: {status}")
        values = (b.value, skew.value)
        if "optimal" in status and all(x is not None and np.isfinite(x).all() for x in values):
            return values, "; ".join(said)
        if status == "infeasible":
            break
    return None, "; ".join(said)

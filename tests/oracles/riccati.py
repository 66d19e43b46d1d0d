"""Solutions of Riccati equations to many digits, by formulas that the package does not use.

All numbers are those of the floats that are given.  Matrices are ``mpmath`` matrices.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np

__all__ = [
    "bernoulli",
    "cauchy",
    "chain",
    "circulant",
    "dare_recursion",
    "floats",
    "nearly_unreached",
    "relative_error",
    "residual",
]

DIGITS = 80


def floats(matrix: mp.matrix) -> np.ndarray:
    """Nearest floats."""
    rows, columns = matrix.rows, matrix.cols
    return np.array([[float(matrix[i, j]) for j in range(columns)] for i in range(rows)])


def relative_error(X: np.ndarray, truth: mp.matrix) -> float:
    """Frobenius norm of X - truth over that of the truth."""
    with mp.workdps(DIGITS):
        exact = mp.matrix(X.tolist())
        size = mp.norm(truth, 2)
        return float(mp.norm(exact - truth, 2) / size)


def residual(X: mp.matrix, A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray) -> float:
    """Relative residual of A' X + X A + Q - X B R⁻¹ B' X."""
    with mp.workdps(DIGITS):
        a, b, q, r = (mp.matrix(np.atleast_2d(M).tolist()) for M in (A, B, Q, R))
        quadratic = X * b * r**-1 * b.T * X
        rest = a.T * X + X * a + q - quadratic
        return float(mp.norm(rest, 2) / (2 * mp.norm(a.T * X, 2) + mp.norm(quadratic, 2)))


def nearly_unreached(eps: float) -> mp.matrix:
    """A = diag(1, -2), B = (ε, 0), Q all ones, R = 1 (CAREX 2.1), in closed form."""
    with mp.workdps(DIGITS):
        e = mp.mpf(eps)
        s = mp.sqrt(1 + e**2)
        mixed = 1 / (2 + s)
        return mp.matrix([[(1 + s) / e**2, mixed], [mixed, (1 - (e * mixed) ** 2) / 4]])


def circulant(diagonal: float) -> mp.matrix:
    """A = [[a, 1], [1, a]], B = Q = R = I (CAREX 2.4): diagonal in (1, 1) and (1, -1)."""
    with mp.workdps(DIGITS):
        first, second = mp.mpf(diagonal) + 1, mp.mpf(diagonal) - 1
        x, y = (a + mp.sqrt(a**2 + 1) for a in (first, second))
        return mp.matrix([[(x + y) / 2, (x - y) / 2], [(x - y) / 2, (x + y) / 2]])


def chain(n: int) -> mp.matrix:
    """Chain of n integrators, B = e_n, Q = e_1 e_1', R = 1 (CAREX 4.1).

    The closed loop has the Butterworth polynomial, whose coefficients are the last column of X; the
    equation itself then gives one column after the other.
    """
    with mp.workdps(DIGITS):
        poly = [mp.mpf(1)]
        for k in range(n):
            root = mp.expjpi(mp.mpf(2 * k + n + 1) / (2 * n))
            poly = [
                a - root * b for a, b in zip([*poly, mp.mpf(0)], [mp.mpf(0), *poly], strict=True)
            ]
        gain = [mp.re(c) for c in poly[:0:-1]]
        X = mp.zeros(n, n)
        for i in range(n):
            X[i, n - 1] = gain[i]
        for j in range(n - 1, 0, -1):
            for i in range(n):
                above = X[i - 1, j] if i else mp.mpf(0)
                weight = 1 if i == j == 0 else 0
                X[i, j - 1] = gain[i] * gain[j] - weight - above
        return X


def cauchy(n: int) -> mp.matrix:
    """A = diag(1..n), B = ones, Q = 0, R = 1: the inverse of 1/(i + j), of whole numbers."""
    with mp.workdps(DIGITS):
        Y = mp.matrix(n, n)
        for i in range(n):
            for j in range(n):
                Y[i, j] = mp.mpf(1) / (i + j + 2)
        return (Y**-1).apply(mp.nint)


def bernoulli(A: np.ndarray, B: np.ndarray) -> mp.matrix:
    """Stabilising solution for Q = 0 and R = I, from the left eigenvectors of unstable modes.

    With w_i* A = λ_i w_i*, X = W Y⁻¹ W* and Y_ij = w_i* B B' w_j / (λ_i + λ̄_j).
    """
    with mp.workdps(DIGITS):
        values, vectors = mp.eig(mp.matrix(A.tolist()), left=True, right=False)
        n = len(values)
        chosen = [i for i in range(n) if mp.re(values[i]) > 0]
        if not chosen:
            return mp.zeros(n, n)
        left = mp.matrix([[vectors[i, j] for j in range(n)] for i in chosen])
        inputs = left * mp.matrix(B.tolist())
        Y = inputs * inputs.H
        for a, i in enumerate(chosen):
            for b, j in enumerate(chosen):
                Y[a, b] = Y[a, b] / (values[i] + mp.conj(values[j]))
        X = left.H * Y**-1 * left
        return X.apply(mp.re)


def dare_recursion(
    A: np.ndarray,
    B: np.ndarray,
    Q: np.ndarray,
    R: np.ndarray,
    S: np.ndarray,
    steps: int,
) -> mp.matrix:
    """Value of a long horizon with a large final weight, by dynamic programming."""
    with mp.workdps(DIGITS):
        a, b, q, r, s = (mp.matrix(M.tolist()) for M in (A, B, Q, R, S))
        X = mp.eye(len(A)) * 1000
        for _ in range(steps):
            W = a.T * X * b + s
            X = a.T * X * a + q - W * (r + b.T * X * b) ** -1 * W.T
            X = (X + X.T) / 2
        return X

"""Left eigenpairs, exact or proved to exist near an approximation; spectra in a half-plane.

The equations ``wᵀV = λ wᵀ, w_k = 1`` have the Jacobian ``J = [[Vᵀ - λ, -w], [e_kᵀ, 0]]`` and one
quadratic term, -δλ δw.  With an approximate inverse R of J and, in the maximum norm, ``η >= ‖R
f‖, e >= ‖I - R J‖``, the map ``δ -> δ - R f(x + δ)`` takes the ball of radius r into itself and
contracts if ``η + e r + ‖R‖ r² <= r`` and ``e + 2‖R‖ r < 1`` (Newton-Kantorovich): it holds
exactly one eigenpair.  For a real approximation that pair is real, since its conjugate lies there
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import acb, acb_mat, arb, arb_mat, ctx
from numpy.typing import NDArray

from .._check import Array
from . import balls, floats
from .balls import Ball
from .floats import UNIT, UP, Enclosure
from .fractions import fractions, total
from .matrices import SMALL, BallMatrix, FloatMatrix, Matrix, enclose

__all__ = [
    "Eigenpair",
    "antistable",
    "enclosed_left_eigenpair",
    "exact_left_eigenpair",
    "is_left_eigenvector",
    "left_eigenpair",
]

Vector = NDArray[Any]

#: An enclosure agrees with an approximation if it lies within this distance, relative.
AGREEMENT = 2.0**-30


@dataclass(frozen=True)
class Eigenpair:
    """Eigenvalue α + iω and left eigenvector p + iq, each enclosed; one entry of p + iq is 1.

    Attributes
    ----------
    real, imaginary : ball
        α and ω; ω is exactly zero for a real pair.
    p, q : (d, 1) matrices
    """

    real: Ball
    imaginary: Ball
    p: Matrix
    q: Matrix

    @property
    def is_real(self) -> bool:
        """Whether eigenvalue and eigenvector are real."""
        return bool(self.imaginary == 0) and self.q.vanishes


def antistable(matrix: Matrix, metric: Matrix) -> bool:
    """Whether all eigenvalues of V are proved to have positive real part.

    Lyapunov: so it is if W > 0 and WV + VᵀW > 0.

    Parameters
    ----------
    matrix, metric : (d, d) matrices
        V and a symmetric W, for instance an approximate solution of WV + VᵀW = I.
    """
    product = metric @ matrix
    return metric.positive_definite() and (product + product.T).positive_definite()


def is_left_eigenvector(matrices: Sequence[Array], vector: Array, value: Array) -> bool:
    """Whether w' Σ M = λ w' holds exactly, in fractions.

    Parameters
    ----------
    matrices : sequence of (d, d) arrays
        Their exact sum is meant.
    vector : (d, 2) array
        Real and imaginary part of w.
    value : (2,) array
        Real and imaginary part of λ.
    """
    real, imaginary = (float(x) for x in value)
    turn = fractions(np.array([[real, imaginary], [-imaginary, real]]))
    w = fractions(vector)
    # In columns (p, q): M' p = a p - b q and M' q = b p + a q.
    made = total(matrices).transpose() * w
    return bool(made == w * turn) and bool(np.any(vector != 0))


def exact_left_eigenpair(
    matrices: Sequence[Array], value: complex, vector: Vector
) -> Eigenpair | None:
    """Eigenpair of a sum of matrices if the floats given are one exactly, else None.

    Only orders for which entries are balls are tried.
    """
    parts = np.ascontiguousarray(np.stack([vector.real, vector.imag], axis=1))
    if len(vector) > SMALL:
        return None
    if not is_left_eigenvector(matrices, parts, np.array([value.real, value.imag])):
        return None
    p, q = (enclose(np.ascontiguousarray(x)) for x in parts.T)
    return Eigenpair(arb(value.real), arb(value.imag), p, q)


def enclosed_left_eigenpair(
    matrix: Array, value: Array
) -> tuple[tuple[Ball, Ball], Sequence[Ball], Sequence[Ball]] | None:
    """Enclose the simple eigenvalue nearest to a value, and its left eigenvector.

    Returns
    -------
    value, real, imaginary
        Balls: the eigenvalue (a, b), and the parts of w with w' M = (a + b i) w'; None if FLINT
        cannot tell the eigenvalues apart.
    """
    rows = [[acb(x) for x in row] for row in matrix.tolist()]
    try:
        values, left = acb_mat(rows).eig(left=True, algorithm="rump", tol=None)
    except ValueError:  # FLINT says so when eigenvalues are multiple
        return None
    aim = acb(float(value[0]), float(value[1]))
    sizes = [float(abs(x - aim).mid()) for x in values]
    j = int(np.argmin(sizes))
    order = matrix.shape[0]
    w = [left[j, i] for i in range(order)]
    return (values[j].real, values[j].imag), [x.real for x in w], [x.imag for x in w]


def left_eigenpair(matrix: Matrix, value: complex, vector: Vector) -> Eigenpair | None:
    """Prove that there is a left eigenpair at an approximation, and enclose it.

    Parameters
    ----------
    matrix : (d, d) matrix
    value : complex
        Approximate eigenvalue; a real pair is asked for by an imaginary part of zero.
    vector : (d,) array, real or complex
        Approximate left eigenvector whose largest entry is 1.

    Returns
    -------
    Eigenpair or None
        None if no pair is isolated, or if it does not agree with the approximation to nine
        digits.  Multiple eigenvalues are never isolated; others of the matrix may be multiple.
    """
    found = np.flatnonzero(vector == 1.0)
    if not found.size or not np.all(np.isfinite(vector)) or np.max(np.abs(vector)) > 1.0 + 1e-9:
        return None
    k = int(found[0])
    if value.imag == 0 and not np.any(vector.imag):
        value, vector = value.real, vector.real
    size = float(np.max(np.abs(matrix.middle), initial=0.0))
    if not size > 0:
        return None
    unit = float(np.ldexp(1.0, np.frexp(size)[1]))
    scaled = matrix.times(arb(1.0 / unit))
    isolate = _isolate_balls if len(vector) <= SMALL else _isolate_floats
    pair = isolate(scaled, value / unit, vector, k)
    if pair is None:
        return None
    return Eigenpair(unit * pair.real, unit * pair.imaginary, pair.p, pair.q)


def _isolate_balls(matrix: Any, value: complex, vector: Vector, k: int) -> Eigenpair | None:
    n = len(vector)
    V = acb_mat(matrix.T.value)
    real = not np.iscomplexobj(vector)
    w = acb_mat([[acb(x)] if real else [acb(x.real, x.imag)] for x in vector.tolist()])
    lam = acb(value) if real else acb(value.real, value.imag)
    start_w, start = w, lam
    try:
        for _ in range(8):
            step = _jacobian(V, w, lam, k).solve(_residual(V, w, lam)).mid()
            w = (w - acb_mat([[step[i, 0]] for i in range(n)])).mid()
            w[k, 0], lam = acb(1), (lam - step[n, 0]).mid()
        inverse = _jacobian(V, w, lam, k).inv().mid()
    except ZeroDivisionError:
        return None
    unit = acb_mat([[int(i == j) for j in range(n + 1)] for i in range(n + 1)])
    eta = _largest(inverse * _residual(V, w, lam))
    defect = _largest(unit - inverse * _jacobian(V, w, lam, k))
    radius = (2 * eta + arb(2) ** (-ctx.prec)).upper()
    if not _contracts(eta, defect, _largest(inverse), radius):
        return None
    spread = arb(0, radius.upper())
    moved = max(balls.above(abs(w[i, 0] - start_w[i, 0])) for i in range(n))
    moved = max(moved, balls.above(abs(lam - start)))
    if not moved + balls.above(radius) <= AGREEMENT:
        return None
    # The entry w_k is exactly one.
    p = arb_mat([[w[i, 0].real + (spread if i != k else 0)] for i in range(n)])
    q = arb_mat([[arb(0) if real or i == k else w[i, 0].imag + spread] for i in range(n)])
    omega = arb(0) if real else lam.imag + spread
    return Eigenpair(lam.real + spread, omega, BallMatrix(p), BallMatrix(q))


def _jacobian(V: Any, w: Any, lam: Any, k: int) -> Any:
    n = V.nrows()
    rows = [[V[i, j] - (lam if i == j else 0) for j in range(n)] + [-w[i, 0]] for i in range(n)]
    return acb_mat([*rows, [acb(int(j == k)) for j in range(n + 1)]])


def _residual(V: Any, w: Any, lam: Any) -> Any:
    f = V * w - w * lam
    return acb_mat([[f[i, 0]] for i in range(w.nrows())] + [[0]])


def _largest(matrix: Any) -> Ball:
    """Upper end of the largest row sum of sizes."""
    sums = [sum((abs(x) for x in row), arb(0)).upper() for row in matrix.tolist()]
    made = sums[0]
    for other in sums[1:]:
        made = made.max(other)
    return made


def _contracts(eta: Ball, defect: Ball, inverse: Ball, radius: Ball) -> bool:
    """Whether Newton's map takes the ball into itself and contracts."""
    inside = eta + defect * radius + inverse * radius * radius <= radius
    return bool(inside and defect + 2 * inverse * radius < 1)


def _isolate_floats(matrix: Any, value: complex, vector: Vector, k: int) -> Eigenpair | None:
    V: Enclosure = matrix.T.value
    n = len(vector)
    w, lam = np.array(vector), value
    inverse, _ = _inverse_jacobian(V.middle, w, lam, k)
    for _step in range(3 if inverse is not None else 0):
        step = inverse[:, :n] @ (V.middle @ w - lam * w)
        w, lam = w - step[:n], lam - step[n]
        w[k] = 1.0
    inverse, jacobian = _inverse_jacobian(V.middle, w, lam, k)
    if inverse is None:
        return None
    error, rounding = _residual_size(V, w, lam), 8.0 * (n + 8) * UNIT
    grown = UP * (1.0 + rounding)
    sizes = np.abs(inverse)
    eta = grown * float(np.max(sizes[:, :n] @ error)) + 1e-300
    # |R||J| 1 bounds the rounding of R J in the maximum norm without another product.
    slack = rounding * (np.abs(jacobian).sum(axis=1) + 1.0)
    slack[:n] += V.radius.sum(axis=1)
    rows = np.abs(np.eye(n + 1) - inverse @ jacobian).sum(axis=1) + sizes @ slack
    defect, norm = grown * float(np.max(rows)), grown * float(np.max(sizes.sum(axis=1)))
    radius = 2.0 * eta
    if not _contracts(arb(eta), arb(defect), arb(norm), arb(radius)):
        return None
    moved = max(float(np.max(np.abs(w - vector))), abs(lam - value))
    if not moved + radius <= AGREEMENT:
        return None
    return _pair(w, lam, radius, k)


def _residual_size(V: Enclosure, w: Vector, lam: complex) -> Array:
    """Bound on the sizes of the entries of Vw - λw, shape (n,).

    Extended precision is used if there is any: with ordinary floats the rounding of the residual,
    and not of w, would limit the enclosure.
    """
    n = len(w)
    wide: Any = np.clongdouble if np.iscomplexobj(w) else np.longdouble
    unit = max(float(np.finfo(np.longdouble).eps), 2.0**-63)
    residual = V.middle.astype(np.longdouble) @ w.astype(wide) - wide(lam) * w.astype(wide)
    size = np.abs(w)
    rounding = 8.0 * (n + 8) * unit * (np.abs(V.middle) @ size + abs(lam) * size)
    grown = UP * (1.0 + 8.0 * (n + 8) * UNIT)
    made = np.abs(residual).astype(np.float64) + rounding + V.radius @ size
    return np.asarray(grown * made)


def _inverse_jacobian(V: Array, w: Vector, lam: complex, k: int) -> tuple[Any, Vector]:
    """Approximate inverse, None if there is none, and the Jacobian itself."""
    n = len(w)
    made = np.zeros((n + 1, n + 1), dtype=w.dtype)
    made[:n, :n] = V
    made[np.arange(n), np.arange(n)] -= lam
    made[:n, n], made[n, k] = -w, 1.0
    try:
        inverse = np.linalg.inv(made)
    except np.linalg.LinAlgError:
        return None, made
    return (inverse if np.all(np.isfinite(inverse)) else None), made


def _pair(w: Vector, lam: complex, radius: float, k: int) -> Eigenpair:
    """Wrap the midpoints and the radius of a pair."""
    spread = np.full((len(w), 1), radius)
    spread[k] = 0.0  # that entry is exactly one
    p = FloatMatrix(Enclosure(np.array(w.real)[:, None], spread))
    real = not np.iscomplexobj(w)
    zero = floats.exact(np.zeros((len(w), 1)))
    q = FloatMatrix(zero if real else Enclosure(np.array(w.imag)[:, None], spread))
    omega = arb(0) if real else arb(float(np.imag(lam)), radius)
    return Eigenpair(arb(float(np.real(lam)), radius), omega, p, q)

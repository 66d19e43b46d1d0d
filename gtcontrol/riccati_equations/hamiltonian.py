"""Eigenvalues of the Hamiltonian matrix (symplectic pencil) on the boundary of stability.

Those of a Hamiltonian matrix come in pairs λ, -λ̄, so a stabilising solution, which takes n of the
2n, exists only if none is on the axis.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError

from .._check import Array
from .closed_loop import Complex
from .equation import RiccatiEquation
from .modes import near_boundary

__all__ = ["boundary_spectrum", "on_boundary"]

#: Points at which a pencil is tried for singularity.
PROBES = (0.37 + 0.21j, -0.58 + 1.13j, 1.71 - 0.66j)

EPS = 2.220446049250313e-16

#: Eigenvalues listed in words.
MOST_LISTED = 8


def on_boundary(equation: RiccatiEquation) -> str:
    """Name the eigenvalues on the boundary of stability; empty if there are none."""
    if equation.discrete and _singular(equation):
        return (
            "The symplectic pencil is singular: its determinant vanishes for every λ, so that it "
            "has no stable subspace to take."
        )
    values = boundary_spectrum(equation)
    if not values.size:
        return ""
    size = float(np.max(np.abs(values)))
    rounded = {_rounded(v, size) for v in values}
    kept = sorted((v for v in rounded if v.imag >= 0), key=lambda v: (abs(v.imag), v.real))
    listed = ", ".join(_word(v, discrete=equation.discrete) for v in kept[:MOST_LISTED])
    more = ", ..." if len(kept) > MOST_LISTED else ""
    what, line = (
        ("symplectic pencil", "unit circle")
        if equation.discrete
        else ("Hamiltonian matrix", "imaginary axis")
    )
    return (
        f"The {what} has {values.size} of its {2 * equation.dim} eigenvalues on the {line} "
        f"({listed}{more}), so that fewer than {equation.dim} are stable."
    )


def boundary_spectrum(equation: RiccatiEquation) -> Complex:
    """Eigenvalues within rounding of the boundary of stability."""
    with np.errstate(all="ignore"):
        A, Q = equation.without_cross
        G, n = equation.quadratic, equation.dim
        if not equation.discrete:
            return near_boundary(np.block([[A, -G], [-Q, -A.T]]), discrete=False)
        turned = _turned(A, G, Q, n)
        if turned is None:
            return np.array([-1.0 + 0j])
        values = near_boundary(turned, discrete=False)
        return np.asarray((1 + values) / (1 - values), dtype=np.complex128)


def _singular(equation: RiccatiEquation) -> bool:
    """Whether det(M - λ L) vanishes at points that are no likely eigenvalues."""
    A, Q = equation.without_cross
    n = equation.dim
    eye, zero = np.eye(n), np.zeros((n, n))
    M = np.block([[A, zero], [-Q, eye]])
    L = np.block([[eye, equation.quadratic], [zero, A.T]])
    for point in PROBES:
        sigma = np.linalg.svd(M - point * L, compute_uv=False)
        if sigma[-1] > 4 * n * EPS * sigma[0]:
            return False
    return True


def _turned(A: Array, G: Array, Q: Array, n: int) -> Array | None:
    """(M + L)⁻¹ (M - L), which takes the unit circle to the imaginary axis; None for -1."""
    eye, zero = np.eye(n), np.zeros((n, n))
    M = np.block([[A, zero], [-Q, eye]])
    L = np.block([[eye, G], [zero, A.T]])
    try:
        made = np.linalg.solve(M + L, M - L)
    except LinAlgError:
        return None
    return np.asarray(made) if np.linalg.cond(M + L) < 1e15 else None


def _rounded(value: complex, size: float) -> complex:
    """Six digits; parts that a defective eigenvalue's rounding explains are zero."""
    real, imaginary = (
        x if abs(x) > 1e-7 * max(size, 1e-8) else 0.0 for x in (value.real, value.imag)
    )
    return complex(float(f"{real:.6g}") + 0.0, float(f"{imaginary:.6g}") + 0.0)


def _word(value: complex, *, discrete: bool) -> str:
    if discrete:
        return f"{value.real:.6g}" if value.imag == 0 else f"{value.real:.6g} ± {value.imag:.6g}i"
    return "0" if value.imag == 0 else f"±{value.imag:.6g}i"

"""Common isotropic vectors of the score matrices of several heads, by Newton's method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._check import Array
from ...results.claims import Claim
from ..theory.heads import Head

__all__ = ["common"]

#: Starts of Newton's method, and its steps.
STARTS, STEPS = 40, 40


def common(heads: Sequence[Head]) -> Claim | None:
    """Points on which all forms xᵀB_h x vanish and whose gradients share no vector.

    Parameters
    ----------
    heads : sequence of Head
        At least two.
    """
    forms = [0.5 * (h.B + h.B.T) for h in heads]
    forms = [f / max(float(np.max(np.abs(f))), 1e-300) for f in forms]
    d, count = len(forms[0]), len(forms)
    rng = np.random.default_rng(0)
    points: list[Array] = []
    gradients: list[Array] = []
    for trial in range(STARTS):
        x = _newton(forms, rng.standard_normal(d))
        if x is None:
            if not points and (trial > STARTS // 4 or (trial == 0 and _semidefinite(forms))):
                return None
            continue
        points.append(x)
        gradients.append(np.stack([f @ x for f in forms], axis=1))
        # Two points suffice in a space of twice as many dimensions as there are heads.
        if len(points) > 1 and (d < 2 * count or len(points) == 2) and _disjoint(gradients):
            return Claim(
                "no-quadratic-certificate-common-isotropy", arrays={"points": np.stack(points)}
            )
    return None


def _semidefinite(forms: list[Array]) -> bool:
    """Whether some form has one sign, so that its isotropic vectors are those of its kernel."""
    for form in forms:
        ends = np.linalg.eigvalsh(form)[[0, -1]]
        if max(min(-ends[0], ends[1]), 0.0) <= 1e-12 * float(np.max(np.abs(ends))):
            return True
    return False


def _newton(forms: list[Array], x: Array) -> Array | None:
    """Solve x'Fx = 0 for all forms from one start, by steps of least norm."""
    for _ in range(STEPS):
        x = x / np.linalg.norm(x)
        G = np.stack([f @ x for f in forms], axis=1)
        values = x @ G
        scale = np.linalg.norm(G, axis=0)
        if not np.all(scale > 0):
            return None
        step = np.linalg.lstsq((G / scale).T, -0.5 * values / scale, rcond=1e-10)[0]
        if np.linalg.norm(step) <= 1e-15:
            break
        x = x + step
    x = x / np.linalg.norm(x)
    G = np.stack([f @ x for f in forms], axis=1)
    scale = np.linalg.norm(G, axis=0)
    if not np.all(np.abs(x @ G) <= 1e-13 * len(x) * scale) or not np.all(scale > 1e-8):
        return None
    return x if np.linalg.svd(G / scale, compute_uv=False)[-1] > 1e-6 else None


def _disjoint(gradients: list[Array]) -> bool:
    """Whether the spans of the columns have no common vector, numerically."""
    first, *rest = [np.linalg.qr(g)[0] for g in gradients]
    defect = np.zeros((first.shape[1],) * 2)
    for Q in rest:
        part = Q.T @ first
        defect += np.eye(first.shape[1]) - part.T @ part
    return bool(np.linalg.eigvalsh(defect)[0] > 1e-6)

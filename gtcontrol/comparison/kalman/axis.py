"""Modes on the imaginary axis that take part: seen, unseen, or driven by seen ones.

Without noise the covariance of seen modes falls like a power of t.  Unseen ones keep theirs, given
what is known of the rest, and turn with it, so that the start decides; but if (M - λ)w = v for an
unseen direction v, the remaining error of w drives v, and the covariance grows like a power of t.
"""

from __future__ import annotations

import numpy as np

from ..._check import Array
from ...riccati_flow.flow import transition
from ...riccati_flow.spectrum import Spectrum
from .modes import Hidden

__all__ = ["driven_mode", "settled"]

#: Unseen modes that are driven more weakly than this are not driven.
COUPLED = 1e-6

#: Rates after which an exponential is rounding, and times (in units of A) for a power of t.
SETTLED, LONG = 45.0, 1e7


def driven_mode(M: Array, unseen: tuple[Hidden, ...]) -> Hidden | None:
    """An unseen mode on the axis that another one drives, or itself in a chain; None without.

    An unseen direction v at λ is (M - λ)w for some w if and only if all left eigenvectors at λ
    vanish on it.

    Parameters
    ----------
    M : (d, d) array
    unseen : tuple of Hidden
        Unseen modes on the imaginary axis.
    """
    size = max(float(np.linalg.norm(M, 2)), 1e-300)
    for mode in unseen:
        shift = (M - 1j * mode.value.imag * np.eye(len(M))) / size
        left, sigma, _ = np.linalg.svd(shift)
        kernel = left[:, sigma <= COUPLED]
        overlap = np.linalg.svd(kernel.conj().T @ mode.space, compute_uv=False)
        if len(overlap) < mode.space.shape[1] or float(overlap[-1]) <= COUPLED:
            return mode
    return None


def settled(
    M: Array, K: Array, excess: Array, spectrum: Spectrum, *, seen: bool
) -> tuple[Array, float, bool]:
    """Follow an excess D over a steady state until all that decays has decayed.

    D' = M D + D Mᵀ + D K D, with the closed loop M of the steady state, which has no unstable
    modes: D(t) = Φ D₀ (I + G D₀)⁻¹ Φᵀ with bounded Φ.

    Returns
    -------
    excess, error, still
        D (d, d) after a long time, what may still change of it relative to the start, and whether
        it stays as it is.
    """
    decaying = -spectrum.values.real[spectrum.unstable + spectrum.axis :]
    size = max(float(np.linalg.norm(M, 2)), float(np.linalg.norm(K @ excess, 2)), 1e-300)
    time = SETTLED / float(decaying.min()) if decaying.size else 0.0
    error = 1e-14
    if seen:
        time = max(time, LONG / size)
        error = 1.0 / (size * time)
    Phi, G = transition(M, -K, time)
    D = Phi @ excess @ np.linalg.solve(np.eye(len(M)) + G @ excess, Phi.T)
    D = 0.5 * (D + D.T)
    left = M @ D
    rate = float(np.linalg.norm(left + left.T + D @ K @ D))
    scale = size * max(float(np.linalg.norm(D)), float(np.linalg.norm(excess)), 1e-300)
    return D, error, rate <= 1e3 * max(error, 1e-12) * scale

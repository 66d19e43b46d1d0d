"""An equilibrium of the flow of Gaussians under constant parameters, and what it attracts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._check import Array
from ..gaussian import Gaussian

__all__ = ["Complex", "Equilibrium"]

Complex = NDArray[np.complex128]


@dataclass(frozen=True, eq=False, repr=False)
class Equilibrium:
    """A covariance that stands still, with its linearisation; numerical, not proved.

    Attributes
    ----------
    gaussian : Gaussian or None
        The equilibrium N(m, S) of dimension d; None if Σ V_h + M is singular, so that the mean
        has no equilibrium or many.
    covariance : (d, d) array
        S, positive semidefinite.
    rank : int
        Its rank r.
    spectrum : (d (d + 1)/2,) complex array
        Eigenvalues of the linearisation D ↦ M D + D Mᵀ + Σ (V_h D B_h S + S B_hᵀ D V_hᵀ) on all
        symmetric matrices, largest real part first.
    tangent : complex array
        The part of the spectrum that acts along the covariances of rank r.
    transversal : (d - r,) complex array
        Eigenvalues of M = A + Σ V_h S B_h on ℝᵈ/range S: the sums of their pairs complete the
        spectrum.  Negative real parts mean that covariances of full rank lose rank here.
    mean_spectrum : (d,) complex array
        Eigenvalues of M + Σ V_h, the linearisation of the mean.
    stable : bool
        Whether it attracts all covariances near it, by linearisation.
    mean_stable : bool
        Whether the mean is attracted too, by linearisation.
    attracts : str
        ``"all covariances near it"``, ``"rank-r covariances near it"`` (with the number),
        ``"nothing"``, or ``"undecided by linearisation"`` (an eigenvalue on the imaginary axis).
    isolated : bool
        Whether the linearisation along the covariances of this rank is invertible, so that no other
        equilibria of the rank are arbitrarily near.  If not, it is a multiple root or a member of
        a continuum, of which one is listed for each rank.
    residual : float
        Size of S' relative to the size of its terms.
    """

    gaussian: Gaussian | None
    covariance: Array
    rank: int
    spectrum: Complex
    tangent: Complex
    transversal: Complex
    mean_spectrum: Complex
    stable: bool
    mean_stable: bool
    attracts: str
    isolated: bool
    residual: float

    @property
    def dim(self) -> int:
        """Dimension d of the tokens."""
        return int(self.covariance.shape[0])

    @property
    def abscissa(self) -> float:
        """Largest real part of the spectrum: minus the rate at which covariances approach."""
        return float(np.max(self.spectrum.real))

    def __repr__(self) -> str:
        return (
            f"Equilibrium(dim={self.dim}, rank={self.rank}, trace={np.trace(self.covariance):.6g}, "
            f"attracts {self.attracts})"
        )

"""Two bounds on the time to the blow-up that need no attracting ray.

From above, by a common left eigenvector of the value matrices: w' V_h = λ_h w'.  Put v = conj(w),
y = w' S v >= 0, z = S v, H = Σ_h (λ_h B_h + conj(λ_h) B_h')/2.  Then, with g = A' v,

    y' = 2 z* H z + 2 Re(g* z) + w' Q v,      v* z = y.

If H > 0, the right-hand side is at least its minimum over all z with v* z = y, which with
ω = v* H^-1 v, γ = v* H^-1 g, κ = g* H^-1 g and u = y + Re(γ)/2 is (2/ω)(u² - k²),
k² = (κ ω - Im(γ)²)/4 - ω w' Q v/2.  So if u > 0 and k² < u², the blow-up comes within
ω/(2 u) artanh(k/u)/(k/u), whatever else the covariance does.

From below, with y = tr S: y' <= tr Q + a y + c y², with a twice the largest eigenvalue of the
symmetric part of A, and c = 2 Σ_h ‖V_h‖ ‖B_h‖, as tr(V S B S) <= ‖V‖ ‖B‖ |S|² and |S| <= tr S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..._check import Array
from ...arithmetic import balls
from ...arithmetic.eigenpairs import enclosed_left_eigenpair, is_left_eigenvector
from ...arithmetic.elementary import artanh_quotient, riccati_time
from ...arithmetic.norms import eigenvalue_bound
from ...parameters import Parameters
from .covariance import CovarianceFlow

__all__ = ["Spectral", "build_spectral", "time_from_below"]

# FLINT has no stubs.
Ball = Any
Balls = Any


@dataclass(frozen=True, eq=False)
class Spectral:
    """The bound from above for one eigenvector; v as a pair (real part, imaginary part)."""

    v: tuple[Balls, Balls]
    omega: Ball
    gamma: tuple[Ball, Ball]
    kappa: Ball
    noise: Ball

    def time(self, covariance: Balls) -> Ball | None:
        """Bound on the time to the blow-up of a covariance in the original coordinates."""
        y = sum(((x.transpose() * covariance * x)[0, 0] for x in self.v), balls.ball(0.0))
        u = y + self.gamma[0] / 2
        if not u > 0:
            return None
        # Squares are products: FLINT's power of a ball around zero is not finite.
        square = self.kappa * self.omega - self.gamma[1] * self.gamma[1]
        ratio = (square / 4 - self.omega * self.noise / 2) / (u * u)
        return self.omega / (2 * u) * artanh_quotient(ratio) if ratio < 1 else None


def build_spectral(parameters: Parameters, vector: Array, values: Array) -> Spectral | None:
    """Constants of the bound; None if the eigenvector or H > 0 is not proved.

    Parameters
    ----------
    parameters : Parameters
    vector : (d, 2) array
        Parts of w: an exact left eigenvector of all V_h, or, with one head, nearly one.
    values : (H, 2) array
        Parts of the eigenvalues.
    """
    pair = _eigenpair(parameters, vector, values)
    if pair is None:
        return None
    eigenvalues, real, imaginary = pair
    order = parameters.dim
    zero = 0 * balls.identity(order)
    symmetric, skew = zero, zero
    for (a, b), (_, B, _) in zip(eigenvalues, parameters.heads, strict=True):
        score = balls.balls(B)
        symmetric = symmetric + (score + score.transpose()) * (a / 2)
        skew = skew + (score - score.transpose()) * (b / 2)
    # A Hermitian matrix P + i Q acts on (real, imaginary) parts as [[P, -Q], [Q, P]].
    H = _blocks(symmetric, skew)
    inverse = balls.inverse(H) if balls.positive_definite(H) else None
    if inverse is None:
        return None
    turned = balls.balls(parameters.A).transpose()
    v, w = (real, -1 * imaginary), (imaginary, real)  # v and i v: Im(v* x) = Re((i v)* x)
    g = _stack(turned * v[0], turned * v[1])
    first, second = _stack(*v), _stack(*w)
    noise = balls.ball(0.0)
    if parameters.noise is not None:
        Q = balls.balls(parameters.noise)
        noise = sum(((x.transpose() * Q * x)[0, 0] for x in v), noise)
    return Spectral(
        v,
        (first.transpose() * inverse * first)[0, 0],
        ((first.transpose() * inverse * g)[0, 0], (second.transpose() * inverse * g)[0, 0]),
        (g.transpose() * inverse * g)[0, 0],
        noise,
    )


def _eigenpair(
    parameters: Parameters, vector: Array, values: Array
) -> tuple[Sequence[tuple[Ball, Ball]], Balls, Balls] | None:
    heads = parameters.heads
    pairs = zip(heads, values, strict=True)
    if all(is_left_eigenvector([V], vector, value) for (V, _, _), value in pairs):
        exact = [(balls.ball(a), balls.ball(b)) for a, b in values.tolist()]
        return exact, balls.balls(vector[:, 0]), balls.balls(vector[:, 1])
    if len(heads) > 1:
        return None
    enclosed = enclosed_left_eigenpair(heads[0][0], values[0])
    if enclosed is None:
        return None
    value, real, imaginary = enclosed
    return [value], balls.column(real), balls.column(imaginary)


def _blocks(symmetric: Balls, skew: Balls) -> Balls:
    top = zip(symmetric.tolist(), (-1 * skew).tolist(), strict=True)
    bottom = zip(skew.tolist(), symmetric.tolist(), strict=True)
    return balls.table([[*p, *q] for p, q in [*top, *bottom]])


def _stack(top: Balls, bottom: Balls) -> Balls:
    return balls.column([*top.entries(), *bottom.entries()])


def time_from_below(flow: CovarianceFlow, covariance: Balls) -> Ball | None:
    """Bound from below on the time to the blow-up; None if there provably is none.

    Parameters
    ----------
    flow : CovarianceFlow
    covariance : ball matrix
        In the coordinates of the flow.
    """
    zero, c, y = balls.ball(0.0), flow.quadratic, covariance.trace()
    growth = balls.ball(eigenvalue_bound(flow.A + flow.A.transpose()))
    if not c > 0:
        return None
    if flow.noise is None:
        if c * y + growth <= 0:  # then y decreases for ever
            return None
        return riccati_time(c, growth, y) or zero
    # While y is below sqrt(tr Q/c), it grows no faster than there; above, tr Q <= y sqrt(c tr Q).
    source = flow.noise.trace()
    level, growth = (source / c).sqrt().max(y), growth.max(zero)
    before = (level - y).max(zero) / (source + growth * level + c * level * level)
    return before + (riccati_time(c, growth + source / level, level) or zero)

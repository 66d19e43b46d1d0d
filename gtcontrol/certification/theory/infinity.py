"""The covariance far out near a ray: the flow as a polynomial with proved coefficients.

In coordinates Σ = H S Hᵀ with H[0] = w, write y = Σ₁₁ and Σ = y [[1, fᵀ], [f, D]].  Let ρ = tr D be
the variance off the ray relative to that on it; D >= f fᵀ, so |f|² <= ρ.  With α = 1/y, dτ = y dt,
and every matrix in these coordinates (A -> HAH⁻¹, V -> HVH⁻¹, B -> H⁻ᵀBH⁻¹, Q -> HQHᵀ), the flow
S' = MS + SMᵀ + Q with M = A + Σ_h V_h S B_h reads

    (ln y)_τ = 2 g + α² Q₁₁,    g = α (A₁₁ + A₁₂f) + Σ_h (V₁₁ + V₁₂f)(B₁₁ + B₁₂f)
                                    + (V₁₁fᵀ + V₁₂D)(B₂₁ + B₂₂f),
    ½ρ_τ = α (fᵀA₂₁ + tr A₂₂D) + Σ_h [B₁₁ fᵀV₂₁ + B₁₁ fᵀV₂₂f + B₁₂D V₂₁ + fᵀV₂₁ B₂₁ᵀf
            + B₁₂D V₂₂f + fᵀB₂₂D V₂₁ + fᵀV₂₂D B₂₁ + tr(V₂₂D B₂₂D)] - ρ g + ½α²(tr Q₂₂ - ρQ₁₁).

(Multiply out the blocks; no remainder is dropped.)  With D = f fᵀ + E, E >= 0, and by degree in
s = √ρ, using |f| <= s, ‖D‖ <= |D|_F <= tr D = s² and Q₁₁ >= 0:

    ½ρ_τ <= r s - κ s² + k₃ s³ + k₄ s⁴ + k₅ s⁵ + α (|A₂₁| s + a s² + |A₁₂| s³) + ½α² tr Q₂₂,
    g >= λ - c₁ s - c₂ s² - k₅ s³ + α (A₁₁ - |A₁₂| s).

The first column u of H⁻¹ spans the ray; it is one of the flow if N(u) = Σ_h (uᵀB_hu) V_h u = λ u,
that is r = 0, and λ > 0 makes the covariance grow along it like y' = 2λ y².
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..._check import Array
from ...arithmetic.balls import working_bits
from ...arithmetic.matrices import BallMatrix, Matrix, block, enclose
from ...parameters import Parameters
from .blocks import Frame, HeadBlocks, added, affine, head_blocks, round_down, size_of, total

__all__ = ["Expansion", "Linear", "expand", "remembered"]

#: Rounding up of products and sums of a few floats.
_UP = 1.0 + 2.0**-40


class Linear(NamedTuple):
    """Residual r (m, 1), Jacobian (m, m) of the flow of f on the sphere, and its remainder.

    The remainder is at most k₂|f|² + k₃|f|³ + k₄|f|⁴.
    """

    residual: Matrix
    jacobian: Matrix
    remainder: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Expansion:
    """Proved bounds on the coefficients, as in the docstring of the module.

    Attributes
    ----------
    rate : float
        Lower bound on λ.
    residual : float
        r, bound on |Σ_h B₁₁V₂₁|.
    contraction : float
        Lower bound on κ.
    third, fourth, fifth : float
        k₃, k₄, k₅.
    slope, bend : float
        c₁, c₂.
    push, shear, pull : float
        |A₂₁|, the coefficient a, and |A₁₂|.
    drift : float
        Lower bound on A₁₁.
    noise : float
        Upper bound on tr Q₂₂.
    linear : Linear
        The flow of the direction f of a covariance of rank one.
    """

    rate: float
    residual: float
    contraction: float
    third: float
    fourth: float
    fifth: float
    slope: float
    bend: float
    push: float
    shear: float
    pull: float
    drift: float
    noise: float
    linear: Linear = field(repr=False)

    def spreading(self, s: Any, alpha: Any) -> Any:
        """Upper bound on ½ρ_τ at ρ = s² and α; floats, arrays or balls in, and the same out."""
        far = s * (self.residual - s * (self.contraction - s * (self.third + s * self._tail(s))))
        near = s * (self.push + s * (self.shear + s * self.pull))
        return far + alpha * (near + alpha * (self.noise * 0.5))

    def _tail(self, s: Any) -> Any:
        return s * self.fifth + self.fourth

    def growth(self, s: Any) -> Any:
        """Lower bound c on 2g without its part in α, for all ρ <= s²."""
        return 2 * (self.rate - s * (self.slope + s * (self.bend + s * self.fifth)))

    def drag(self, s: Any) -> Any:
        """Upper bound a on -2 (A₁₁ + A₁₂f): then y' >= c y² - a y for all ρ <= s²."""
        return 2 * (s * self.pull - self.drift)


#: The last expansion, in a context that remembers it: parameters, coordinates, bits, expansion.
_MEMORY: ContextVar[list[tuple[Parameters, Array, int, Expansion | None]] | None] = ContextVar(
    "_MEMORY", default=None
)


@contextmanager
def remembered() -> Iterator[None]:
    """Context in which an expansion that was just made is not made again.

    A search for cones and the proof of the one it proposes need the same expansion.  The parameters
    must not be changed in the context, and its end forgets everything.
    """
    token = _MEMORY.set([])
    try:
        yield
    finally:
        _MEMORY.reset(token)


def expand(parameters: Parameters, coordinates: Array) -> Expansion | None:
    """Expand the flow near the ray spanned by the first column of the inverse of `coordinates`.

    Parameters
    ----------
    parameters : Parameters
        Of dimension d.
    coordinates : (d, d) array
        H, meant exactly.  Call within a context of precision (``balls.precision``).

    Returns
    -------
    Expansion or None
        None if H is not proved to be regular.
    """
    memory = _MEMORY.get()
    for known, place, bits, made in memory or ():
        if known is parameters and bits == working_bits() and np.array_equal(place, coordinates):
            return made
    made = _expand(parameters, coordinates)
    if memory is not None:
        memory[:] = [(parameters, coordinates.copy(), working_bits(), made)]
    return made


def _expand(parameters: Parameters, coordinates: Array) -> Expansion | None:
    H = enclose(coordinates, quick=True)
    G = H.inverse()
    if G is None:
        return None
    frame = Frame(H, G)
    outer = frame.H2.norm() * frame.G2.norm() * _UP
    heads = [head_blocks(frame, V, B, outer) for V, B, _ in parameters.heads]
    values = [V for V, _, _ in parameters.heads]
    rate = total(h.B11 @ h.V11 for h in heads)
    residual = total(h.V21 @ h.B11 for h in heads)
    mixed = H.combination([h.B11.entry(0, 0) for h in heads], values)
    pushed = block([[h.V21 for h in heads]])
    turn = frame.H2 @ mixed @ frame.G2 + pushed @ block([[h.tilt for h in heads]]).T
    spread = pushed @ block([[h.B12.T for h in heads]]).T
    slope = total(h.V12.T @ h.B11 + h.tilt @ h.V11 for h in heads).norm()
    bend = _bend(frame, heads)
    lost = max(turn.top(), spread.top()) if parameters.dim > 1 else 0.0
    return Expansion(
        rate=rate.low(),
        residual=residual.norm(),
        contraction=round_down(rate.low() - lost),
        third=_UP * (_cubic(frame, heads) + slope),
        fourth=_UP * (added(h.V22 * h.B22 for h in heads) + bend),
        fifth=_UP * added(h.V12.norm() * h.B22 for h in heads),
        slope=slope,
        bend=bend,
        linear=_linear(heads, residual, turn, rate),
        **affine(frame, parameters)._asdict(),
    )


def _small(H: Matrix) -> bool:
    """Whether sharper bounds are worth more products."""
    return isinstance(H, BallMatrix)


def _cubic(frame: Frame, heads: list[HeadBlocks]) -> float:
    """Bound on Σ_h B₁₂D V₂₂f + fᵀB₂₂D V₂₁ + fᵀV₂₂D B₂₁ over |f| = tr D = 1.

    It is at most the sum of the products of norms; for small orders, the spectral norm of the
    linear map D -> Σ_h V₂₂ᵀD B₁₂ᵀ + B₂₂D V₂₁ + V₂₂D B₂₁ on symmetric D, by |D|_F <= tr D.
    """
    if _small(frame.H):
        return _unfolded(frame, heads)
    return _UP * added(h.V22 * (h.B12.norm() + h.B21.norm()) + h.B22 * h.V21.norm() for h in heads)


def _unfolded(frame: Frame, heads: list[HeadBlocks]) -> float:
    m = frame.H.shape[0] - 1
    terms = []
    for h in heads:
        V22 = frame.H2 @ frame.H.like(h.value) @ frame.G2
        B22 = frame.G2.T @ frame.H.like(h.score) @ frame.G2
        terms += [(V22.T, h.B12.T), (B22, h.V21), (V22, h.B21)]
    gram: Matrix | None = None
    for y in range(m):
        here = slice(y, y + 1)
        # Column x of this slab is the map applied to (e_x e_yᵀ + e_y e_xᵀ)/2, times two.
        slab = total(X.times(c.entry(y, 0)) + X.part(slice(None), here) @ c.T for X, c in terms)
        gram = slab @ slab.T if gram is None else gram + slab @ slab.T
    if gram is None:
        return 0.0
    return 0.5 * math.sqrt(max(gram.top(), 0.0)) * _UP


def _bend(frame: Frame, heads: list[HeadBlocks]) -> float:
    """Bound c₂ on -Σ_h V₁₂f B₁₂f + V₁₁fᵀB₂₂f + V₁₂D B₂₁ over D = f fᵀ + E, E >= 0, tr D = 1."""
    H = frame.H
    across = block([[h.V12.T for h in heads]])
    tail = block([[h.B21 for h in heads]]) @ across.T
    low_rank = tail + across @ block([[h.B12.T for h in heads]]).T
    if _small(H):
        curved = H.combination([h.V11.entry(0, 0) for h in heads], [h.score for h in heads])
        whole = low_rank + frame.G2.T @ curved @ frame.G2
        return max(0.0, (-whole).top(), (-tail).top())
    # A few products of large matrices are saved at the price of norms.
    steep = (h.V12.norm() * (h.B12.norm() + h.B21.norm()) + size_of(h.V11) * h.B22 for h in heads)
    return _UP * added(steep)


def _linear(heads: list[HeadBlocks], residual: Matrix, turn: Matrix, rate: Matrix) -> Linear:
    """The flow f_τ = [N]₂ - f [N]₁ of covariances of rank one, where N = Σ_h (vᵀBv) V v."""
    m = residual.shape[0]
    identity = residual.like(np.eye(m))
    jacobian = turn - identity.times(rate.entry(0, 0))
    second = third = fourth = 0.0
    for h in heads:
        tilt, V11, V12 = h.tilt.norm(), size_of(h.V11), h.V12.norm()
        second += h.B22 * h.V21.norm() + tilt * (h.V22 + V11) + size_of(h.B11) * V12
        third += h.B22 * (h.V22 + V11) + tilt * V12
        fourth += h.B22 * V12
    return Linear(residual, jacobian, (_UP * second, _UP * third, _UP * fourth))

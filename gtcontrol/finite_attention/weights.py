r"""Moments of softmax weights over n normal scores and one given score.

A query attends to n keys with scores a ξ_j, ξ_j independent standard normal, and to a key
with the given score τ (its own).  With weights w_j ∝ exp(a ξ_j), w_0 ∝ exp(τ), the moments
that follow are exact for every n.  From 1/Zᵏ = ∫ s^{k-1} e^{-sZ} ds/(k-1)! with s = e^{-v},

    E w_0          = ∫ e^{τ-v} K(v) Hⁿ dv,           K(v) = exp(-e^{τ-v}),
    E w_0²         = ∫ e^{2(τ-v)} K Hⁿ dv,
    E Σ w_j        = n ∫ K D₁ H^{n-1} dv,
    E Σ w_j²       = n ∫ K D₂ H^{n-1} dv,
    E w_0 Σ w_j²   = (n/2) ∫ e^{τ-v} K D₂ H^{n-1} dv,

where H(v) = E exp(-e^y) and D_k(v) = E e^{ky} exp(-e^y) for y ~ N(-v, a²): one-dimensional
integrals of functions that are analytic in a strip, on which the trapezoidal rule converges
geometrically.  Integration by parts in ξ (Stein) then gives, with W = Σ w_j ξ_j,

    E W        = a (E Σ w_j - E Σ w_j²),
    E w_0 W    = a (E w_0 - E w_0² - 2 E w_0 Σ w_j²),
    E W²       = E Σ w_j² + a² ω,
    ω          = n ∫ K [E (4 - 5 e^y + e^{2y}) e^{2y} exp(-e^y) H^{n-1}
                        + (n-1) (D₁ - D₂)² H^{n-2}] dv.

The first of them says that the mean field tilt a is lessened by exactly the concentration:
without the own key κ = E W/a = 1 - E Σ w_j².  (H^n is the distribution function of
log Z plus a Gumbel variable: the scores form the random energy model of Derrida 1981,
which freezes at a² = 2 log n.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.interpolate import CubicSpline, RectBivariateSpline
from scipy.special import expit, gammaln, ndtr

from .._check import Array

__all__ = ["LARGEST", "Moments", "Weights", "weights"]

#: Standard deviation of the scores beyond which the largest key has won: a κ is constant there.
LARGEST = 16.0

#: Step of the trapezoidal rules in v and y; the error is about exp(-π²/STEP).
STEP = 0.15

#: Step in ξ, used while the scores are narrow.
NARROW_STEP = 0.2

#: Negative logarithm of what is left out at either end of an integral.
CUT = 34.0

#: Distance of τ from log Z, in its own units, that is tabulated.
REACH = 25.0

#: Points of the grid in a that are reflected at zero.
MIRRORED = 8

#: Numbers of keys whose tables are kept.
KEPT = 16


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of the weights at m pairs (τ, a); every array has shape (m,).

    Attributes
    ----------
    own : array
        E w_0.
    tilt : array
        E W / a = E Σ w_j - E Σ w_j²; in the mean field 1.
    squares : array
        E Σ w_j² over the other keys.
    own_square : array
        E w_0².
    cross : array
        E w_0 W / a.
    excess : array
        (E W² - E Σ w_j²)/a².
    """

    own: Array
    tilt: Array
    squares: Array
    own_square: Array
    cross: Array
    excess: Array


class Weights:
    """Tables of the moments for n keys beside the own one, interpolated.

    Cubic splines in asinh(a/2) and in the distance of τ from log Z in units of its width; own
    weight and concentration are interpolated on a logarithmic scale, so that they keep their
    relative accuracy where they are tiny.  Beyond ``LARGEST`` the scores are scaled back.

    Parameters
    ----------
    others : int
        Number n of the keys beside the own one, n >= 1.
    """

    def __init__(self, others: int) -> None:
        self.others = others
        last = math.asinh(LARGEST / 2)
        grid = np.linspace(0.0, last, 1 + math.ceil(last / 0.05))
        scales = [_Scale(2 * math.sinh(x), others) for x in grid]
        bare = np.array([s.moments(np.array([-math.inf])) for s in scales])[:, :, 0]
        inner, outer = np.arange(-10.0, 10.01, 0.25), np.arange(11.0, REACH + 0.5, 1.0)
        reach = np.concatenate([-outer[::-1], inner, outer])
        widths = _width(2 * np.sinh(grid))
        made = np.array(
            [s.moments(s.centre + w * reach) for s, w in zip(scales, widths, strict=True)]
        )
        odds = np.log(made[:, 0]) - np.log(made[:, 1])
        values = [odds, np.log(made[:, 2]), made[:, 3], made[:, 4], made[:, 5]]
        # Everything is even in a: reflected, there is no end of the grid where a is small.
        whole = np.concatenate([-grid[MIRRORED:0:-1], grid])
        order = [*range(MIRRORED, 0, -1), *range(grid.size)]
        self._centre = CubicSpline(whole, np.array([s.centre for s in scales])[order])
        alone = np.stack([np.log(bare[:, 2]), bare[:, 5]], axis=1)
        self._bare = CubicSpline(whole, alone[order])
        self._splines = [RectBivariateSpline(whole, reach, v[order]) for v in values]

    def slope(self, own: Array | None, spread: Array) -> tuple[Array, Array]:
        """E w_0 and E W/a, shape (m,) each: all that the mean attention needs.

        Parameters
        ----------
        own : (m,) array or None
            Scores τ of the own key; None if it is not among the keys.
        spread : (m,) array
            Standard deviations a of the scores of the others.
        """
        x, back = _abscissa(spread)
        if own is None:
            squares = np.exp(self._bare(x)[:, 0])
            return np.zeros_like(squares), back * (1.0 - squares)
        eta, over = self._distance(own * back, x)
        weight = expit(self._splines[0].ev(x, eta) + over)
        squares = np.exp(self._splines[1].ev(x, eta))
        return weight, back * np.maximum(1.0 - weight - squares, 0.0)

    def moments(self, own: Array | None, spread: Array) -> Moments:
        """All moments; parameters as in :meth:`slope`."""
        weight, tilt = self.slope(own, spread)
        x, back = _abscissa(spread)
        if own is None:
            bare = self._bare(x)
            return Moments(weight, tilt, np.exp(bare[:, 0]), weight, weight, back**2 * bare[:, 1])
        eta, _ = self._distance(own * back, x)
        squares, square, cross, excess = (f.ev(x, eta) for f in self._splines[1:])
        return Moments(weight, tilt, np.exp(squares), square, back * cross, back**2 * excess)

    def _distance(self, own: Array, x: Array) -> tuple[Array, Array]:
        """Distance of τ from log Z in its units, within the table, and what is left of τ."""
        width = _width(2 * np.sinh(x))
        eta = (own - self._centre(x)) / width
        within = np.clip(eta, -REACH, REACH)
        # Far below log Z the own weight is E exp(τ)/Z: its logarithm goes on with slope 1.
        return within, np.minimum(eta - within, 0.0) * width


@lru_cache(maxsize=KEPT)
def weights(others: int) -> Weights:
    """Tables for this number of keys beside the own one; made once."""
    return Weights(others)


class _Scale:
    """The integrals at one value of a."""

    def __init__(self, a: float, n: int) -> None:
        self.n = n
        self.v = np.arange(-6.0 - 8.0 * a, _top(a, n) + STEP, STEP)
        miss, self.d1, self.d2, self.d4 = _key_moments(a, n, self.v)
        with np.errstate(divide="ignore"):
            self.log_h = np.maximum(np.log1p(-np.minimum(miss, 1.0)), -1e6)
        below = np.exp(n * self.log_h)
        # E log Z: the mean of the Gumbel-perturbed maximum, less that of the Gumbel variable.
        self.centre = float(self.v[-1] - STEP * np.sum(below) - np.euler_gamma)

    def moments(self, own: Array) -> Array:
        """E w_0, E Σ w_j, E Σ w_j², E w_0², E w_0 W/a and ω for each score τ, shape (6, m)."""
        n, v, log_h = self.n, self.v, self.log_h
        top = float(np.max(own)) + CUT
        if top > v[-1]:  # no other key is there: H = 1
            more = np.arange(v[-1] + STEP, top, STEP)
            v, log_h = np.append(v, more), np.append(log_h, np.zeros(more.size))
        pad = v.size - self.v.size
        d1, d2, d4 = (np.pad(d, (0, pad)) for d in (self.d1, self.d2, self.d4))
        y = own[:, None] - v
        rise = np.exp(np.minimum(y, CUT))
        kernel = np.exp(-rise)
        one_less = np.exp((n - 1) * log_h)
        pairs = (n - 1) * (d1 - d2) ** 2 * np.exp((n - 2) * log_h) if n > 1 else 0.0
        weight = (rise * kernel) @ np.exp(n * log_h)
        square = (rise**2 * kernel) @ np.exp(n * log_h)
        both = 0.5 * (rise * kernel) @ (n * d2 * one_less)
        rest = kernel @ (n * d1 * one_less)
        squares = kernel @ (n * d2 * one_less)
        excess = kernel @ (n * (d4 * one_less + pairs))
        cross = weight - square - 2 * both
        made = STEP * np.array([weight, rest, squares, square, cross, excess])
        made[1:3] = np.maximum(made[1:3], 1e-300)
        return np.asarray(made)


def _key_moments(a: float, n: int, v: Array) -> tuple[Array, Array, Array, Array]:
    """1 - H, D₁, D₂ and E (4 - 5e^y + e^{2y}) e^{2y} exp(-e^y) for y ~ N(-v, a²)."""
    if a < 1:
        xi = np.arange(-10.0, 10.0 + NARROW_STEP, NARROW_STEP)
        law = NARROW_STEP * np.exp(-0.5 * xi**2) / math.sqrt(2 * math.pi)
        u = np.exp(np.minimum(a * xi - v[:, None], 700.0))
        low = np.exp(-u)
        miss = -np.expm1(-u) @ law
        d1, d2 = (u * low) @ law, (u**2 * low) @ law
        u = np.minimum(u, 1e3)  # where `low` vanishes
        return miss, d1, d2, ((4 - 5 * u + u**2) * u**2 * low) @ law
    y = np.arange(-(math.log(n) + CUT + 10.0), 4.6, STEP)
    u = np.exp(y)
    low = STEP * np.exp(-u)
    z = (y + v[:, None]) / a
    density = np.exp(-0.5 * z**2) / (a * math.sqrt(2 * math.pi))
    # H is a convolution of the normal law with the Gumbel law, whose density is u exp(-u).
    miss = ndtr(-z) @ (u * low)
    return (
        miss,
        density @ (u * low),
        density @ (u**2 * low),
        density @ ((4 - 5 * u + u**2) * u**2 * low),
    )


def _top(a: float, n: int) -> float:
    """Where n (1 - H) has become negligible: Chernoff's bound."""
    theta = np.linspace(0.02, 0.97, 200)
    bound = (math.log(n) + CUT + 0.5 * (a * theta) ** 2 + gammaln(1 - theta)) / theta
    return float(np.min(bound))


def _abscissa(spread: Array) -> tuple[Array, Array]:
    """asinh(a/2) within the table, and the factor by which larger scores are scaled back."""
    within = np.minimum(spread, LARGEST)
    return np.arcsinh(0.5 * within), within / np.where(spread > 0, spread, 1.0) + (spread == 0)


def _width(a: Array | float) -> Array:
    """Scale on which the weight of the own key changes with its score."""
    return np.asarray(np.sqrt(1.0 + np.square(a) / 9.0))

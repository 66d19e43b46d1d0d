"""Shapes of many clouds of one size: Gaussian clouds are drawn once for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._check import Array
from ..errors import InvalidNumber
from ..results.gaussianity import NAMES, NEGLIGIBLE, Gaussianity, ShapeStatistic
from .shape import mahalanobis, mardia_skewness, normal_cells, relative_distance

__all__ = ["ShapeSeries"]


@dataclass
class ShapeSeries:
    """Measures the shape of clouds of equal size, as :func:`gtcontrol.gaussianity` does.

    Spread, skewness and kurtosis of a cloud do not change under affine maps, so their baselines
    depend on the number of tokens and the rank only, and are drawn once for each rank.  The
    sliced distances see the variances of the principal directions, too; their baselines are
    computed for each cloud, from the same draws.

    Parameters
    ----------
    count : int
        Tokens of each cloud.
    seed : int
        Source of randomness of directions and baselines.
    directions, components, baselines : int
        As for :func:`gtcontrol.gaussianity`.
    """

    count: int
    seed: int = 0
    directions: int = 128
    components: int = 16
    baselines: int = 10
    _invariants: dict[int, Array] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._cells = normal_cells(self.count)

    def measure(self, cloud: Array) -> Gaussianity:
        """Statistics of a cloud, each beside those of Gaussian clouds.

        Parameters
        ----------
        cloud : (N, d) array
            With N equal to `count`.

        Raises
        ------
        InvalidNumber
            If nothing varies, or N is not above r + 1.
        """
        n, d = cloud.shape
        if n != self.count:
            raise InvalidNumber(f"`cloud` has {n} tokens; this series is of {self.count}.")
        whitened, variances = _principal(cloud)
        r = variances.size
        rays = self._rays(variances)
        seen = np.concatenate(
            [
                self._sliced(whitened * np.sqrt(variances), whitened, variances, rays),
                _invariant(whitened),
            ]
        )
        draws = self._of_rank(r)
        chance = np.array([self._draw(i, variances, rays) for i in range(self.baselines)])
        baseline = np.concatenate([chance, draws], axis=1)
        statistics = tuple(
            ShapeStatistic(name, float(value), float(mean), float(deviation))
            for name, value, mean, deviation in zip(
                NAMES, seen, baseline.mean(axis=0), baseline.std(axis=0, ddof=1), strict=True
            )
        )
        leading = min(self.components, r)
        return Gaussianity(n, d, r, self.directions, leading, self.baselines, statistics)

    def _rays(self, variances: Array) -> Array:
        """Directions, as columns (r, k), evenly spread over the sphere."""
        generator = np.random.default_rng([self.seed, 1, variances.size])
        rays = generator.standard_normal((variances.size, self.directions))
        return np.asarray(rays / np.linalg.norm(rays, axis=0))

    def _sliced(self, cloud: Array, whitened: Array, variances: Array, rays: Array) -> Array:
        """Sliced distance, and that over the leading principal directions."""
        along = variances @ rays**2
        projected = cloud @ rays
        projected -= projected.mean(axis=0)
        projected /= projected.std(axis=0)
        squares = relative_distance(projected, self._cells) ** 2
        k = min(self.components, variances.size)
        weights = variances[:k]
        first = relative_distance(whitened[:, :k], self._cells) ** 2
        return np.sqrt([np.average(squares, weights=along), np.average(first, weights=weights)])

    def _draw(self, i: int, variances: Array, rays: Array) -> Array:
        cloud = self._normal(i, variances.size) * np.sqrt(variances)
        whitened, _ = _principal(cloud, self.components)
        return self._sliced(cloud, whitened, variances, rays)

    def _of_rank(self, rank: int) -> Array:
        if rank not in self._invariants:
            self._invariants[rank] = np.array(
                [_invariant(_principal(self._normal(i, rank))[0]) for i in range(self.baselines)]
            )
        return self._invariants[rank]

    def _normal(self, i: int, rank: int) -> Array:
        generator = np.random.default_rng([self.seed, 2, i])
        return generator.standard_normal((self.count, rank))


def _principal(cloud: Array, components: int | None = None) -> tuple[Array, Array]:
    """Whitened principal coordinates (N, r) and their variances (r,), largest first.

    By the eigenvalues of the covariance, which is faster than singular values and exact enough for
    directions above a negligible fraction of the largest variance.  With `components` only so many
    coordinates are formed; all variances are returned.
    """
    centred = cloud - cloud.mean(axis=0)
    unit = float(np.max(np.abs(centred), initial=0.0))
    if not unit > 1e-14 * float(np.max(np.abs(cloud), initial=0.0)):
        raise InvalidNumber("a cloud of tokens has no variance: all its tokens are equal.")
    n = cloud.shape[0]
    centred /= unit
    values, vectors = np.linalg.eigh(centred.T @ centred / n)
    values, vectors = values[::-1], vectors[:, ::-1]
    r = int(np.count_nonzero(values > NEGLIGIBLE * values[0]))
    if n <= r + 1:
        raise InvalidNumber(
            f"a cloud has {n} tokens that vary in {r} directions; its shape needs more than "
            f"{r + 1} tokens. Take more sequences or tokens."
        )
    kept = r if components is None else min(components, r)
    return centred @ (vectors[:, :kept] / np.sqrt(values[:kept])), values[:r] * unit**2


def _invariant(whitened: Array) -> Array:
    """Spread, skewness and kurtosis, in the order of :data:`NAMES`."""
    n, r = whitened.shape
    squares = mahalanobis(whitened)
    expected = r * (r + 2) * ((n + 1) * (r + 1) - 6) / ((n + 1) * (n + 3))
    return np.array(
        [
            float(np.var(squares)) / (2 * r),
            mardia_skewness(whitened) / expected,
            float(np.mean(squares**2)) / (r * (r + 2)) - 1,
        ]
    )

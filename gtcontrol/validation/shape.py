"""Is a cloud of tokens Gaussian?  Statistics of its shape, each beside Gaussian clouds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from .. import _check
from .._check import Array
from ..errors import InvalidNumber, InvalidShape
from ..problem import memory
from ..results.gaussianity import NAMES, NEGLIGIBLE, Gaussianity, ShapeStatistic

__all__ = [
    "gaussianity",
    "mahalanobis",
    "mardia_skewness",
    "normal_cells",
    "relative_distance",
    "whiten",
]

#: Deviations below this fraction of the largest token are rounding.
ROUNDING = 1e-14

#: Rows of the products of all pairs of tokens that are held at the same time.
ROWS = 256

Random = np.random.Generator | int | np.integer


def gaussianity(
    cloud: ArrayLike,
    *,
    directions: int = 128,
    rng: Random = 0,
    components: int = 16,
    baselines: int = 20,
    antithetic: bool = False,
) -> Gaussianity:
    """Tell how far a cloud is from a Gaussian with its own mean and covariance.

    Every statistic is also computed of several Gaussian clouds with the same number of tokens
    and the same moments: their mean and standard deviation are what chance alone does.  In
    finitely many tokens no statistic is zero, and the Mahalanobis spread may err on either side.

    Parameters
    ----------
    cloud : (N, d) array
        Tokens; their covariance may be singular.
    directions : int
        Random directions of the sliced distance.
    rng : numpy.random.Generator or int
        Source of randomness for directions and baselines, or its seed.
    components : int
        Leading principal directions that are looked at by themselves.
    baselines : int
        Gaussian clouds of the baseline, at least 2.
    antithetic : bool
        Whether the tokens come in pairs that were drawn opposite to each other (the second half
        of the rows belongs to the first); the baseline is then drawn so, too.

    Returns
    -------
    Gaussianity

    Raises
    ------
    InvalidShape, NotFinite
        If the cloud is no finite (N, d) array.
    InvalidNumber
        If it has no variance, or too few tokens for its rank.

    Examples
    --------
    >>> import numpy as np
    >>> import gtcontrol as gt
    >>> rng = np.random.default_rng(0)
    >>> gt.gaussianity(rng.standard_normal((1000, 3))).gaussian
    True
    >>> gt.gaussianity(rng.uniform(-1, 1, (1000, 3))).gaussian
    False
    """
    # Counted first: checking makes a copy.
    shape = np.shape(cloud)
    if len(shape) != 2:
        raise InvalidShape(f"`cloud` must have shape (N, d); it has {shape}.")
    n, d = shape
    if not n or not d:
        raise InvalidNumber(f"`cloud` holds no tokens; its shape is {shape}.")
    slices = _check.integer("directions", directions, low=1)
    leading = _check.integer("components", components, low=1)
    draws = _check.integer("baselines", baselines, low=2)
    if antithetic and n % 2:
        raise InvalidNumber(f"antithetic tokens come in pairs, but `cloud` holds {n} of them.")
    memory.require(
        f"the shape of {n} tokens of dimension {d}",
        float(n) * (4 * d + 2 * slices + 2 * ROWS),
        "take fewer tokens or directions",
    )
    whitened, variances, left_out = _principal(_scaled(_check.array("cloud", cloud, 2)))
    r = variances.size
    generator = _generator(rng)
    rays = generator.standard_normal((slices, r))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    seen = _statistics(whitened, variances, rays, leading)
    chance = []
    for _ in range(draws):
        half = generator.standard_normal((n // 2 if antithetic else n, r))
        other = np.concatenate([half, -half]) if antithetic else half
        chance.append(_statistics(*whiten(other * np.sqrt(variances)), rays, leading))
    baseline = np.array(chance)
    statistics = tuple(
        ShapeStatistic(name, float(value), float(mean), float(deviation))
        for name, value, mean, deviation in zip(
            NAMES, seen, baseline.mean(axis=0), baseline.std(axis=0, ddof=1), strict=True
        )
    )
    return Gaussianity(n, d, r, slices, min(leading, r), draws, statistics, left_out)


def whiten(cloud: Array) -> tuple[Array, Array]:
    """Whitened principal coordinates of a cloud, and the variances of these directions.

    Parameters
    ----------
    cloud : (N, d) array

    Returns
    -------
    whitened : (N, r) array
        Of mean 0 and covariance I (normalised by N); the leading direction comes first.
    variances : (r,) array
        Largest first, each above a negligible fraction of the largest one.

    Raises
    ------
    InvalidNumber
        If nothing varies, or N is not above r + 1: the Mahalanobis distances are then all equal.
    """
    return _principal(cloud)[:2]


def _scaled(cloud: Array) -> Array:
    """The cloud divided by a power of two, so that no square overflows or underflows."""
    _, exponent = np.frexp(np.max(np.abs(cloud), initial=0.0))
    return np.asarray(np.ldexp(cloud, -int(exponent)))


def _principal(cloud: Array) -> tuple[Array, Array, int]:
    """What `whiten` returns, and how many directions vary but too little to be kept."""
    centred = cloud - cloud.mean(axis=0)
    unit = float(np.max(np.abs(centred), initial=0.0))
    size = float(np.max(np.abs(cloud), initial=0.0))
    if not unit > ROUNDING * size:
        equal = "" if np.ptp(cloud, axis=0).any() else ": all its tokens are equal"
        raise InvalidNumber(
            f"`cloud` has no variance beyond rounding{equal or '; subtract its mean first'}."
        )
    n = cloud.shape[0]
    U, sigma, _ = np.linalg.svd(centred / unit, full_matrices=False)
    r = int(np.count_nonzero(sigma**2 > NEGLIGIBLE * sigma[0] ** 2))
    rounding = ROUNDING * max(1.0, size / unit) * sigma[0]
    if n <= r + 1:
        raise InvalidNumber(
            f"`cloud` has {n} tokens that vary in {r} directions; its shape needs more than "
            f"{r + 1} tokens. Take more, or project it."
        )
    left_out = int(np.count_nonzero(sigma[r:] > rounding))
    return U[:, :r] * np.sqrt(n), (sigma[:r] * unit) ** 2 / n, left_out


def _statistics(
    whitened: Array, variances: Array, rays: Array, components: int
) -> tuple[float, ...]:
    """The statistics in the order of :data:`NAMES`."""
    n, r = whitened.shape
    cells = normal_cells(n)
    widths = rays[:, : variances.size] * np.sqrt(variances / variances[0])
    along = np.sum(widths**2, axis=1)
    projected = whitened @ (widths / np.sqrt(along)[:, None]).T
    sliced = np.sum(along * relative_distance(projected, cells) ** 2) / np.sum(along)
    k = min(components, r)
    weights = variances[:k] / variances[0]
    leading = np.sum(weights * relative_distance(whitened[:, :k], cells) ** 2) / np.sum(weights)
    squares = mahalanobis(whitened)
    kurtosis = float(np.mean(squares**2))
    expected = r * (r + 2) * ((n + 1) * (r + 1) - 6) / ((n + 1) * (n + 3))
    return (
        float(np.sqrt(sliced)),
        float(np.sqrt(leading)),
        float(np.var(squares)) / (2 * r),
        mardia_skewness(whitened) / expected,
        kurtosis / (r * (r + 2)) - 1,
    )


def normal_cells(count: int) -> Array:
    """Means of the standard normal law over its `count` cells of equal probability.

    Cell i lies between the quantiles (i - 1)/N and i/N, and its mean is N (φ(z_{i-1}) - φ(z_i)),
    with φ the density and z the quantiles.

    Returns
    -------
    (count,) array
    """
    edges = ndtri(np.arange(1, count) / count)
    density = np.exp(-0.5 * edges**2) / np.sqrt(2 * np.pi)
    padded = np.concatenate([[0.0], density, [0.0]])
    return np.asarray(count * (padded[:-1] - padded[1:]))


def relative_distance(projected: Array, cells: Array) -> Array:
    """2-Wasserstein distance of each column, of mean 0 and variance 1, to N(0, 1); exact.

    In one dimension optimal transport pairs quantiles: the i-th smallest token goes to the i-th
    cell.  W₂² = Σ (x_(i) - c_i)²/N + (1 - Σ c_i²/N), with the means c of the cells; the second
    part is the variance within the cells.

    Parameters
    ----------
    projected : (N, k) array
    cells : (N,) array
        From :func:`normal_cells`.

    Returns
    -------
    (k,) array
    """
    ordered = np.sort(projected, axis=0)
    between = np.mean((ordered - cells[:, None]) ** 2, axis=0)
    return np.asarray(np.sqrt(between + max(1.0 - float(np.mean(cells**2)), 0.0)))


def mahalanobis(whitened: Array) -> Array:
    """Squared Mahalanobis distances of whitened tokens, shape (N,); their mean is the rank."""
    return np.asarray(np.sum(whitened**2, axis=1))


def mardia_skewness(whitened: Array) -> float:
    """Mardia's skewness: the mean of (z_i·z_j)³ over all pairs of whitened tokens.

    It equals the squared norm of the tensor of third moments, which is cheaper while r² is below
    N.  For Gaussian clouds its expectation is r (r + 2) ((N + 1)(r + 1) - 6)/((N + 1)(N + 3)).

    Reference: K. V. Mardia, Applications of some measures of multivariate skewness and kurtosis,
    Sankhya B 36 (1974).
    """
    n, r = whitened.shape
    if r * r <= n:
        third = np.array([(whitened * whitened[:, i : i + 1]).T @ whitened for i in range(r)]) / n
        return float(np.sum(third**2))
    total = 0.0
    for i in range(0, n, ROWS):
        # Pairs with later tokens count twice, as each stands for its mirror image.
        products = whitened[i : i + ROWS] @ whitened[i:].T
        cubes = products * products
        cubes *= products
        total += 2 * float(np.sum(cubes)) - float(np.sum(cubes[:, : products.shape[0]]))
    return float(total / n**2)


def _generator(rng: Random) -> np.random.Generator:
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(_check.integer("rng", rng, low=0))

"""How far a cloud of tokens is from a Gaussian, in statistics with their baselines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.stats import t as student

from ..errors import ResultFileInvalid
from .plain import pack_plain, plain, restore

__all__ = ["NAMES", "NEGLIGIBLE", "Gaussianity", "ShapeStatistic"]

#: Statistics in the order in which they are told.
NAMES = ("sliced", "leading", "spread", "skewness", "kurtosis")

#: Principal directions with less variance than this fraction of the largest are left out.
NEGLIGIBLE = 1e-7

#: Chance that an exactly Gaussian cloud is called not Gaussian, to the accuracy of the baseline.
LEVEL = 0.002


@dataclass(frozen=True)
class ShapeStatistic:
    """One statistic of a cloud, and what Gaussian clouds of the same size have.

    Attributes
    ----------
    name : str
    value : float
    baseline, deviation : float
        Mean and standard deviation over Gaussian clouds with the same number of tokens and the
        same moments.
    """

    name: str
    value: float
    baseline: float
    deviation: float

    def score(self, draws: int) -> float:
        """Distance from the baseline in standard deviations, with the error of the baseline."""
        error = self.deviation * math.sqrt(1 + 1 / draws)
        if error == 0:
            return 0.0 if self.value == self.baseline else math.copysign(math.inf, self.excess)
        return self.excess / error

    @property
    def excess(self) -> float:
        """Value minus baseline."""
        return self.value - self.baseline


@dataclass(frozen=True)
class Gaussianity:
    """Statistics of the shape of a cloud of N tokens, beside those of Gaussian clouds.

    All are of the cloud after its own mean and covariance are removed, so they see the shape
    only.  With z the whitened tokens of rank r and D_i = |z_i|²:

    - ``sliced``: sliced 2-Wasserstein distance to the Gaussian with the same moments, divided by
      the sliced standard deviation, over random directions; small in high dimension whatever
      the law is (projections are then nearly Gaussian);
    - ``leading``: the same over the leading principal directions;
    - ``spread``: Var(D)/(2r), which is 1 for a Gaussian;
    - ``skewness``: Mardia's mean of (z_i·z_j)³ over all pairs, as a multiple of the expectation
      of Gaussian clouds of this size;
    - ``kurtosis``: Mardia's mean of D², relative to r(r + 2), minus 1; the same information as
      the spread, in the usual units.

    Parameters
    ----------
    count, dim, rank : int
        Number of tokens N, their dimension d, and the directions r that have variance.
    directions, components : int
        Random and principal directions that were used.
    draws : int
        Gaussian clouds of the baseline.
    statistics : tuple of ShapeStatistic
        In the order of the list above.
    left_out : int
        Directions beside these r that vary, but by less than a deviation of 0.03 % of the
        largest one: whitened, they would count as much as all others.
    """

    count: int
    dim: int
    rank: int
    directions: int
    components: int
    draws: int
    statistics: tuple[ShapeStatistic, ...]
    left_out: int = 0

    def __getitem__(self, name: str) -> ShapeStatistic:
        """The statistic of a name."""
        return next(s for s in self.statistics if s.name == name)

    @property
    def scores(self) -> dict[str, float]:
        """Distance of each statistic from its baseline, in standard deviations."""
        return {s.name: s.score(self.draws) for s in self.statistics}

    @property
    def threshold(self) -> float:
        """Score, of either sign, that an exactly Gaussian cloud hardly ever reaches.

        Two-sided Student quantile for a baseline of finitely many draws, with the level shared
        among the statistics.
        """
        share = LEVEL / len(self.statistics)
        return float(student.ppf(1 - share / 2, self.draws - 1))

    @property
    def gaussian(self) -> bool:
        """Whether no statistic lies beyond the threshold, on either side."""
        return all(abs(z) <= self.threshold for z in self.scores.values())

    @property
    def distance(self) -> float:
        """Sliced distance beyond the baseline: √(value² - baseline²), or 0."""
        s = self["sliced"]
        return math.sqrt(max(s.value**2 - s.baseline**2, 0.0))

    def summary(self) -> str:
        """The statistics as a few lines of text."""
        verdict = "not told from" if self.gaussian else "NOT"
        head = (
            f"{self.count} tokens of dimension {self.dim} (rank {self.rank}): {verdict} Gaussian "
            f"(scores up to {self.threshold:.2g} are chance)"
        )
        lines = [
            f"  {s.name:<9} {s.value:10.4g}  Gaussian {s.baseline:.4g} ± {s.deviation:.2g}, "
            f"score {s.score(self.draws):+.1f}"
            for s in self.statistics
        ]
        if self.left_out:
            many = "direction is" if self.left_out == 1 else "directions are"
            lines.append(
                f"  {self.left_out} {many} left out, with deviations below "
                f"{math.sqrt(NEGLIGIBLE):.1g} of the largest; scale the coordinates to see them"
            )
        return "\n".join([head, *lines])

    def pack(self) -> dict[str, Any]:
        """Plain values."""
        return {**pack_plain(self), "statistics": [pack_plain(s) for s in self.statistics]}

    @classmethod
    def unpack(cls, values: Any) -> Gaussianity:
        """Restore from plain values."""
        given = plain(cls, values)
        entries = values["statistics"]
        if not isinstance(entries, list) or len(entries) != len(NAMES):
            raise ResultFileInvalid(f"`statistics` is not a list of {len(NAMES)} entries.")
        made = tuple(restore(ShapeStatistic, entry) for entry in entries)
        if tuple(s.name for s in made) != NAMES or given["draws"] < 2:
            raise ResultFileInvalid(f"the statistics of a cloud are not {', '.join(NAMES)}.")
        return cls(statistics=made, **given)

"""What to see in the pictures of an inspection."""

from __future__ import annotations

from ...results.inspection import Inspection
from ...results.layers import NEAR_LEADING, NEAR_SLICED, PREDICTED

__all__ = ["captions"]


def captions(result: Inspection) -> dict[str, str]:
    """A few sentences for each picture."""
    where = (
        "sums before the last LayerNorm" if result.placement == "post" else "what attention sees"
    )
    return {
        "shape": (
            "Statistics of the shape of the tokens after each layer (0 is the input). The band is "
            f"what Gaussian clouds of the same size have by chance; open markers: {where}. Sliced "
            "W₂ / deviation: distance to the Gaussian with the same moments, over projections on "
            "random lines, in standard deviations; next to it the same on the leading principal "
            "directions. Mahalanobis spread: Var(D)/(2r) for the squared distances D of whitened "
            "tokens of rank r from their mean; 1 for a Gaussian (less for few tokens, see "
            "the band), larger for heavy tails. Black lines: near "
            "Gaussian up to there, √(value² − chance²) = "
            f"{NEAR_SLICED:g} and {NEAR_LEADING:g}."
        ),
        "spectrum": (
            "Leading eigenvalues of the covariance after some layers: measured, and predicted from "
            "the moments of the input alone. The factor of the title is a geometric mean over "
            "these eigenvalues; single ones may be further off."
        ),
        "heads": (
            "Rate of each head, corrected for finitely many tokens: blue stabilises, red expands "
            "the variance. Crossed: frozen, the scores vary by more than log N, so that softmax "
            "picks hardly more than the best key. Hatched, theory strained: not frozen, but the "
            "scores vary by more than log N − 2, or tokens put more than a negligible weight on "
            "themselves; softmax over N tokens then differs from its mean field."
        ),
        "drift": (
            "What attention does to the variance to first order: sum of the head rates, and what "
            "was measured."
        ),
        "variance": (
            "Total variance after each layer: measured, and predicted from the moments of the "
            "input alone, for finitely many tokens and in the mean field."
        ),
        "errors": (
            "Error of the predicted covariance after each layer, relative to its size. Up to "
            f"{PREDICTED:g} it counts as predicted; beyond, as missed if √(error² − sampling²) is "
            f"larger than {PREDICTED:g}, and else as undecided. The grey line, sampling, is what "
            "drawing so many tokens in so many sequences errs by itself; a prediction that starts "
            "from measured moments has part of that error in common, and may lie below it."
        ),
    }

"""When softmax over N tokens may be replaced by its mean field: numbers and words."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["CLEAN_MARGIN", "SELF_WEIGHT", "Stamp", "freezing"]

#: Softmax is clean while the logit variance is below log N minus this.
CLEAN_MARGIN = 2.0

#: Mean weight of a token on itself beyond which it biases the covariance.
SELF_WEIGHT = 0.02


@dataclass(frozen=True)
class Stamp:
    """What attention over N tokens of a Gaussian law is like, in its worst head.

    Attributes
    ----------
    count : int
        Number of tokens N.
    logit_variance : float
        E a², the variance of the logits of a query over the keys, averaged over the queries.
    self_weight : float
        Expected softmax weight of a token on itself; 1/N if attention is uniform.
    """

    count: int
    logit_variance: float
    self_weight: float

    @property
    def log_count(self) -> float:
        """The log of N: the logit variance that N tokens cannot carry."""
        return math.log(self.count)

    @property
    def effective(self) -> float:
        """Predicted number of tokens that a query averages over, N exp(-E a²), at least 1."""
        return max(self.count * math.exp(-min(self.logit_variance, 700.0)), 1.0)

    @property
    def clean(self) -> bool:
        """Whether softmax is close to its mean field, and self-attention negligible."""
        return self.regime == "clean" and self.self_attention == "negligible"

    @property
    def regime(self) -> str:
        """One of "clean", "strained", "few", "frozen" by E a² against log N."""
        a, logs = self.logit_variance, self.log_count
        if a < logs - CLEAN_MARGIN:
            return "clean"
        if a < logs:
            return "strained"
        return "few" if a < 2 * logs else "frozen"

    @property
    def self_attention(self) -> str:
        """One of "negligible", "noticeable", "dominant" by the weight of a token on itself."""
        if self.self_weight < max(SELF_WEIGHT, 2 / self.count):
            return "negligible"
        return "noticeable" if self.self_weight < 0.5 else "dominant"

    @property
    def words(self) -> str:
        """What the numbers mean."""
        regime = {
            "clean": "clean logits",
            "strained": "strained logits: few tokens carry much of the weight",
            "few": "strong logits: a handful of tokens carries the weight",
            "frozen": "frozen logits: a query sees hardly more than its best key",
        }[self.regime]
        attention = {
            "negligible": "tokens hardly attend to themselves",
            "noticeable": "tokens attend to themselves enough to bias the covariance",
            "dominant": "tokens attend mostly to themselves",
        }[self.self_attention]
        return f"{regime}; {attention}"


def freezing(count: int, logit_variance: float) -> str:
    """Why a flow of tokens whose scores are frozen needs so many steps; empty if they are not."""
    stamp = Stamp(count, logit_variance, 0.0)
    if stamp.regime != "frozen":
        return ""
    return (
        f"the scores are frozen: their variance a² = {logit_variance:.3g} is beyond 2 log N = "
        f"{2 * stamp.log_count:.3g}, so that a token attends to a single key, and its velocity "
        "jumps whenever the key changes, which no step size resolves; take `layers` for the flow, "
        "or smaller tokens or B"
    )

"""Heads of a pretrained model: what each does to the variance, and whether theory may say so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..errors import ResultFileInvalid
from .plain import pack_plain, plain, restore
from .stamps import CLEAN_MARGIN, SELF_WEIGHT

__all__ = ["NEUTRAL", "HeadFacts", "HeadTable"]

#: Summed rates up to this size change the variance of a layer by so little that it is neutral.
NEUTRAL = 0.02


@dataclass(frozen=True)
class HeadFacts:
    """One head on tokens of a given law.

    With V_h, B_h of the head, S the covariance of what it attends to, C = Cov(u, x) that of this
    with the residual stream x, and S_x that of x:

    Parameters
    ----------
    layer, head : int
        From 1; the head that ``attention.V(0)`` of a block counts as 0 is head 1 here.
    rate : float
        2 tr(V_h S B_h C)/tr S_x: the relative growth of the variance that the head causes to
        first order, in the mean field.
    effective_rate : float
        The same corrected for finitely many tokens.
    gain : float
        √(tr(K S Kᵀ)/tr S_x) with K = V_h S B_h.
    balance_V, balance_B : float
        tr(S^½ M S^½)/Σ|λ| over the symmetric part, for M = V_h and B_h, in [-1, 1]: 1 if the
        form is positive semidefinite on the data, -1 if negative.
    logit_variance : float
        E a²: variance of the scores over the keys, averaged over queries.
    self_weight : float
        Expected weight of a token on itself.
    """

    layer: int
    head: int
    rate: float
    effective_rate: float
    gain: float
    balance_V: float  # noqa: N815
    balance_B: float  # noqa: N815
    logit_variance: float
    self_weight: float


@dataclass(frozen=True)
class HeadTable:
    """All heads of some layers, each on N tokens.

    Parameters
    ----------
    count : int
        Number of tokens N that attend to each other.
    rows : tuple of HeadFacts
        Ordered by layer, then by head.
    """

    count: int
    rows: tuple[HeadFacts, ...]

    @property
    def log_count(self) -> float:
        """The log of N: the variance of the scores that N tokens cannot carry."""
        return math.log(self.count)

    def frozen(self, row: HeadFacts) -> bool:
        """Whether softmax over N tokens picks hardly more than the best key: E a² > log N."""
        return row.logit_variance > self.log_count

    def valid(self, row: HeadFacts) -> bool:
        """Whether softmax over N tokens is close to its mean field in this head."""
        clean = row.logit_variance < self.log_count - CLEAN_MARGIN
        return clean and row.self_weight < max(SELF_WEIGHT, 2 / self.count)

    def of_layer(self, layer: int) -> tuple[HeadFacts, ...]:
        """Heads of a layer."""
        return tuple(row for row in self.rows if row.layer == layer)

    def rate(self, layer: int) -> float:
        """Sum of the rates over the heads of a layer, in the mean field."""
        return math.fsum(row.rate for row in self.of_layer(layer))

    def effective_rate(self, layer: int) -> float:
        """Sum of the rates over the heads of a layer, for N tokens."""
        return math.fsum(row.effective_rate for row in self.of_layer(layer))

    def verdict(self, layer: int) -> str:
        """Whether attention contracts the variance to first order, expands it, or neither."""
        rate = self.effective_rate(layer)
        if abs(rate) <= NEUTRAL:
            return "neutral"
        return "expanding" if rate > 0 else "contracting"

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers of which there are heads."""
        return tuple(sorted({row.layer for row in self.rows}))

    def pack(self) -> dict[str, Any]:
        """Plain values."""
        rows = [pack_plain(row) for row in self.rows]
        return {**pack_plain(self), "total": len(rows), "rows": rows}

    @classmethod
    def unpack(cls, values: Any, layers: int) -> HeadTable:
        """Restore the heads of layers 1 to `layers`."""
        given = plain(cls, values)
        entries = values["rows"]
        if not isinstance(entries, list) or values["total"] != len(entries):
            raise ResultFileInvalid("`rows` of the heads is no list of `total` entries.")
        if given["count"] < 2:
            raise ResultFileInvalid(f"`count` of the heads is {given['count']}; at least 2.")
        rows = tuple(restore(HeadFacts, entry) for entry in entries)
        places = [(row.layer, row.head) for row in rows]
        heads = {k: sum(1 for layer, _ in places if layer == k) for k in range(1, layers + 1)}
        wanted = [(k, h) for k, many in heads.items() for h in range(1, many + 1)]
        if places != wanted or 0 in heads.values():
            raise ResultFileInvalid(f"the heads are not those of {layers} layers, in order.")
        return cls(rows=rows, **given)

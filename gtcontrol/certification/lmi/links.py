"""Sharper ultimate bounds: each link of a chain is sought in the set to which the former confine.

For a given rate r the inequality y' <= -r (y - γ) and the bound that follows are one program; the
rate is found by doubling and halving from the slope at which the former inequality ends.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..._check import Array
from ...arithmetic.fractions import rounded
from ...results.claims import Claim
from .candidates import BITS, MARGINS, SLACK, Setting, is_proved
from .confined import ConfinedModel, Known, Link
from .model import Point
from .times import thoroughness

__all__ = ["sharpen"]

#: Links of a chain: d <= 4, d <= 6, beyond.
LINKS = (3, 1, 1)

#: Rates that are tried for each link: d <= 4, d <= 6, beyond.
TRIES = (7, 2, 1)

#: Gain below which a link is the last.
LEAST_GAIN = 3e-3


def sharpen(setting: Setting, claim: Claim, point: Point) -> Claim:
    """Add links to a proved claim of an ultimate bound, as long as each makes it smaller.

    Parameters
    ----------
    setting : Setting
    claim : Claim
        Of the rule ``ultimate-bound``, without links.
    point : Point
        The one that it was made from.

    Returns
    -------
    Claim
        Proved, or the claim itself.
    """
    gamma = claim.numbers["gamma"]
    known: tuple[Known, ...] = (_known(point.W, gamma),)
    rate = -(point.linear + 2 * point.quadratic * gamma)
    size = thoroughness(setting.order)
    best = claim
    for _ in range(LINKS[size]):
        if not rate > 0:
            break
        found = _link(setting, best, known, rate, TRIES[size])
        if found is None:
            break
        made, link = found
        last = made.numbers["bound"] > best.numbers["bound"] * (1 - LEAST_GAIN)
        best = made if made.numbers["bound"] < best.numbers["bound"] else best
        if last:
            break
        known = (*known, _known(link.point.W, made.numbers[f"level{len(known)}"]))
        rate = -link.point.linear
    return best


def _link(
    setting: Setting, claim: Claim, known: tuple[Known, ...], rate: float, tries: int
) -> tuple[Claim, Link] | None:
    """The best next link, and the claim with it, proved."""
    model = ConfinedModel(
        setting.order,
        setting.pieces,
        known,
        floor=setting.units.floor(),
        free_slack="rank" in claim.numbers,
    )
    for margin in MARGINS[:2]:
        link = _best(model, rate, margin, tries)
        made = None if link is None else _extended(setting, claim, link, len(known))
        if link is None or made is None:
            return None
        if is_proved(setting.problem, made):
            return made, link
    return None


def _best(model: ConfinedModel, rate: float, margin: float, tries: int) -> Link | None:
    """Link of the least bound over the rate: steps of a factor, which shrinks at each minimum."""
    least, best = model.solve(rate, margin)
    step, forward, failed = 2.0, True, 0
    for _ in range(tries - 1):
        bound, link = model.solve(rate * step if forward else rate / step, margin)
        if link is not None and bound < least:
            least, best, failed = bound, link, 0
            rate = -link.point.linear
            continue
        forward, failed = not forward, failed + 1
        if failed == 2:
            step, failed = math.sqrt(step), 0
    return best


def _extended(setting: Setting, claim: Claim, link: Link, k: int) -> Claim | None:
    """The claim with link k, and the bound that follows."""
    numbers = setting.coefficients(link.point, -1)
    a, e = numbers["linear"], numbers["constant"]
    level = -e / a + SLACK * (abs(e / a) + claim.numbers["gamma"])
    part = setting.claim(claim.rule, link.point, numbers, single=False)
    products = [[rounded(M, BITS) for M in row] for row in link.products]
    arrays = {
        **claim.arrays,
        **{f"{name}{k}": value for name, value in part.arrays.items()},
        f"products{k}": np.stack(
            [np.stack([setting.units.multiplier(M) for M in row]) for row in products]
        ),
        f"pushes{k}": np.ldexp(rounded(link.pushes, BITS), setting.units.rate),
        "shares": np.append(rounded(link.shares, BITS), 1.0),
    }
    more = {f"linear{k}": a, f"constant{k}": e, f"level{k}": level, "links": float(k)}
    made = replace(claim, numbers={**claim.numbers, **more}, arrays=arrays)
    bound = _bound(made, k)
    if not 0 < bound < math.inf:
        return None
    return replace(made, numbers={**made.numbers, "bound": bound * (1 + SLACK)})


def _bound(claim: Claim, links: int) -> float:
    """Bound on the trace that follows from all links, in floats."""
    names = ["W", *(f"W{k}" for k in range(1, links + 1))]
    levels = [claim.numbers[n] for n in ("gamma", *(f"level{k}" for k in range(1, links + 1)))]
    shares = claim.arrays["shares"]
    total = sum(c * claim.arrays[n] for n, c in zip(names, shares, strict=True))
    least = float(np.linalg.eigvalsh(np.asarray(total))[0])
    return float(shares @ np.array(levels)) / least if least > 0 else math.inf


def _known(W: Array, level: float) -> Known:
    return Known(rounded(0.5 * (W + W.T), BITS), level)

"""The check of a plan with actual tokens, in words."""

from __future__ import annotations

import math

from ...results.tokens import SAMPLING_BAND, TokenCheck
from ...status import Status
from ..wording import error, number
from .base import Fact

__all__ = ["facts", "missed"]


def facts(check: TokenCheck) -> list[Fact]:
    """Errors on arrival beside their sampling errors, the logits, and what to do if it missed."""
    verdict = "within" if check.within_sampling_error else "NOT within"
    found = [
        Fact(
            "token check",
            f"{check.count} softmax tokens arrive with mean error {error(check.mean_error)} "
            f"(sampling error {error(check.mean_sampling_error)}) and covariance error "
            f"{error(check.covariance_error)} (sampling error "
            f"{error(check.covariance_sampling_error)}): {verdict} {number(SAMPLING_BAND)} "
            "sampling errors",
        )
    ]
    if check.largest_logit_variance > 0:
        found.append(
            Fact(
                "logit variance",
                f"up to {number(check.largest_logit_variance, 3)} along the plan, on average over "
                f"the tokens; log N = {number(math.log(check.count), 3)}. Softmax over N tokens "
                "follows the plan while the first is well below the second",
            )
        )
    if not check.within_sampling_error:
        found.append(Fact("tokens miss", _advice(check)))
    return found


def missed(check: TokenCheck) -> str:
    """One sentence for a headline, empty if the tokens arrive."""
    if check.within_sampling_error:
        return ""
    if check.status is not Status.SUCCESS:
        return f"But {check.count} softmax tokens do not get to the end: {check.status.name}."
    name, size, usual = max(
        ("mean", check.mean_error, check.mean_sampling_error),
        ("covariance", check.covariance_error, check.covariance_sampling_error),
        key=lambda row: row[1] / row[2] if row[2] else math.inf * row[1] if row[1] else 0.0,
    )
    times = f"{number(size / usual, 2)} times its sampling error" if usual else "without spread"
    return (
        f"But {check.count} softmax tokens moved by it miss the target: the error of their {name} "
        f"is {error(size)}, {times}."
    )


def _advice(check: TokenCheck) -> str:
    if check.status is not Status.SUCCESS:
        return str(check.status.value)
    if check.largest_logit_variance > 0:
        return (
            "Attention over finitely many tokens departs from its mean field, most for outlying "
            "tokens, whose logits vary several times as much. Take more tokens "
            "(`tokens.count`), or leave less to attention: enable A, or steer with A and b alone, "
            "which every token follows exactly."
        )
    if not check.moment_matched:
        return "The draw departs from the start: set `moment_matched`, or take more tokens."
    return "Without attention every token follows the plan: compare with a finer `rtol`."

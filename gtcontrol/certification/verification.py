"""Checking a certificate again: from its data alone, in exact arithmetic, without a solver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np

from .._threads import single_threaded
from ..errors import Contradiction, InvalidShape, ResultFileInvalid
from ..results.certificate import Certificate
from ..results.claims import Claim
from ..results.design import Design
from ..results.storage import load
from .conclusion import alike, conclude, refutation
from .design.proof import reasons as doubts
from .rules.base import Refuted
from .rules.integration import AccurateIntegration, claim_of

__all__ = ["Verification", "verify"]

#: Characters of a text that are shown where it differs.
EXCERPT = 60


@dataclass(frozen=True)
class Verification:
    """Outcome of a check; true in a boolean context if everything holds.

    Attributes
    ----------
    valid : bool
        Whether every claim that is marked as proved follows from its data, and the verdict and
        its statement follow from the claims.
    proved : bool
        Whether the verdict itself is proved, not numerical evidence.
    checked : int
        Number of claims whose proof was checked again.
    reasons : tuple of str
        What does not hold; empty if the certificate is valid.
    """

    valid: bool
    proved: bool
    checked: int
    reasons: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.valid


@single_threaded
@np.errstate(all="ignore")
def verify(certificate: Certificate | Design | str | PathLike[str]) -> Verification:
    """Check a certificate again, from its parameters and data alone.

    Every matrix inequality, enclosure and number of what is proved is checked in exact fractions
    or ball arithmetic, and the verdict and its statement must follow from it; no solver is asked.
    Evidence is not proof: of integrations only their outcomes are compared with what is said of
    them, and the simulations that accompany a design are not repeated.

    Parameters
    ----------
    certificate : Certificate, Design, or path
        A certificate, a design, or the folder that it was saved in.

    Returns
    -------
    Verification

    Raises
    ------
    InvalidShape
        If it is no certificate.
    ResultFileInvalid
        If the saved files are missing or damaged.
    """
    result = load(certificate) if isinstance(certificate, str | PathLike) else certificate
    if not isinstance(result, Certificate | Design):
        raise InvalidShape(
            f"`certificate` must be a Certificate or a Design, not {type(result).__name__}."
        )
    found = _reasons(result) if isinstance(result, Certificate) else doubts(result)
    reasons = tuple(found)
    checked = sum(claim.proved for claim in result.claims)
    return Verification(not reasons, result.proved and not reasons, checked, reasons)


def _reasons(result: Certificate) -> Iterator[str]:
    for i, claim in enumerate(result.claims):
        try:
            reason = refutation(result.problem, claim)
        except ResultFileInvalid as error:
            yield str(error)
            continue
        if claim.proved and reason is not None:
            yield f"claim {i + 1} ({claim.rule}) is not proved by its data: {reason}"
        elif reason is None and not claim.proved:
            yield f"claim {i + 1} ({claim.rule}) is marked as numerical, but its data prove it"
        elif not alike(claim.note, reason or ""):
            yield (
                f"the note of claim {i + 1} ({claim.rule}) reads {claim.note[:EXCERPT]!r}, not "
                f"{(reason or '')[:EXCERPT]!r}"
            )
    try:
        found = conclude(result.problem, result.claims)
    except (Refuted, ResultFileInvalid, Contradiction) as error:
        yield f"no verdict follows from the claims: {error}"
        return
    evidence = [c for c in result.claims if c.rule == AccurateIntegration.name]
    if not _same(evidence, claim_of(result.problem, result.integrations)):
        yield "what is said of the integrations is not what they show"
    for name in ("verdict", "proved", "statement", "lower", "upper", "bound"):
        said, follows = getattr(result, name), getattr(found, name)
        if said != follows:
            yield _difference(name, said, follows)


def _difference(name: str, said: object, follows: object) -> str:
    """How a part of a certificate differs from what its claims prove; of texts, from where on."""
    if not (isinstance(said, str) and isinstance(follows, str)):
        shown = [str(getattr(value, "name", value)) for value in (said, follows)]
        return f"`{name}` is {shown[0]}, but the claims prove {shown[1]}"
    pairs = zip(f"{said}\0", f"{follows}\0", strict=False)
    shared = next((i for i, (a, b) in enumerate(pairs) if a != b), 0)
    # From the beginning of the word in which they part.
    begin = said.rfind(" ", 0, shared) + 1
    parts = [repr(text[begin : begin + EXCERPT]) for text in (said, follows)]
    return f"`{name}` reads {parts[0]} where the claims prove {parts[1]}"


def _same(evidence: Sequence[Claim], made: Claim | None) -> bool:
    """Whether the claims about integrations are the one that follows from them."""
    if made is None or len(evidence) != 1:
        return made is None and not evidence
    said = evidence[0]
    arrays = said.arrays.keys() == made.arrays.keys() and all(
        np.array_equal(value, made.arrays[key]) for key, value in said.arrays.items()
    )
    return arrays and dict(said.numbers) == dict(made.numbers)

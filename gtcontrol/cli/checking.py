"""Checking a saved certificate again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from ..errors import ResultFileInvalid
from .group import ANSWERED, UNANSWERED
from .terminal import complain, say

__all__ = ["verify_saved"]


def verify_saved(path: Path, *, as_json: bool = False) -> int:
    """Check the certificate in a folder, say what was found, and return the exit code.

    Parameters
    ----------
    path : Path
        The folder, or its ``result.json``.
    as_json : bool
        Print what was found as JSON, and nothing else; a rejection is said as well.

    Raises
    ------
    ResultFileInvalid
        If it is damaged, or does not prove what it says.
    """
    from ..certification.verification import verify
    from ..results.certificate import Certificate
    from ..results.design import Design
    from ..results.storage import load

    folder = path.parent if path.name == "result.json" else path
    certificate = load(folder)
    if not isinstance(certificate, Certificate | Design):
        raise ResultFileInvalid(
            f"the saved result in {folder} is a {certificate.kind}, not a certificate."
        )
    found = verify(certificate)
    name = certificate.verdict.name if isinstance(certificate, Certificate) else "ATTRACTING"
    if as_json:
        say(json.dumps({"verdict": name, **asdict(found)}, indent=2))
    if not found:
        more = f" ({len(found.reasons) - 1} more)" if len(found.reasons) > 1 else ""
        raise ResultFileInvalid(
            f"the certificate in {folder} is rejected: {found.reasons[0]}{more}."
        )
    if as_json:
        return ANSWERED if found.proved else UNANSWERED
    claims = f"{found.checked} claim{'' if found.checked == 1 else 's'}"
    if found.proved:
        say(f"{name}, proved: {certificate.statement}")
        say(f"Checked {claims} in exact and ball arithmetic: the certificate is valid.")
        return ANSWERED
    complain(
        f"{name} is numerical evidence, not proved"
        + (f"; {claims} besides were checked." if found.checked else ".")
    )
    return UNANSWERED

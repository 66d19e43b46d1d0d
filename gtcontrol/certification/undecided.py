"""What is tried, in words, when nothing decides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..problem.definitions import CertificationProblem
from ..results.claims import Claim
from ..riccati_flow.terms import scalar_values
from .bracket.plan import LARGEST_DIM
from .rules.neighbourhood import MOST_DIMENSIONS
from .search.quadratic_lmi import LARGEST_INTERACTIVE
from .theory.heads import merge_heads

__all__ = ["explain"]

_NO_CERTIFICATE = "no-quadratic-certificate"


def explain(problem: CertificationProblem, claims: Sequence[Claim]) -> str:
    """Say which tests apply to a problem, and why those that apply do not decide.

    Parameters
    ----------
    problem : CertificationProblem
    claims : sequence of Claim
        What the tests brought.

    Returns
    -------
    str
        One or two sentences.
    """
    proved = {claim.rule for claim in claims if claim.proved}
    ruled_out = any(name.startswith(_NO_CERTIFICATE) for name in proved)
    reasons = [_closed_form(problem), *_tests(problem, ruled_out=ruled_out)]
    reasons += [_inequalities(problem, ruled_out=ruled_out), _equilibria(problem)]
    if problem.start is not None and problem.dim > LARGEST_DIM:
        reasons.append(
            f"the blow-up time is enclosed by Taylor steps up to dimension {LARGEST_DIM}"
        )
    if not any(claim.rule == "integration" for claim in claims):
        reasons.append("an integration would take too long")
    listed = "; ".join(reason for reason in reasons if reason)
    return f"Of the tests none decides: {listed}."


def _closed_form(problem: CertificationProblem) -> str:
    if len(problem.vertices) > 1:
        return "closed forms and rays at infinity are for constant parameters, not for families"
    if scalar_values(problem.parameters.heads) is None:
        return "there is no closed form, as the value matrices are no multiples of the identity"
    return "the closed form for multiples of the identity gives no limit and no blow-up"


def _tests(problem: CertificationProblem, *, ruled_out: bool) -> list[str]:
    """Tests of order d."""
    heads = merge_heads(problem.parameters)
    if not heads:
        return []
    made = [] if ruled_out else ["no metric was found in which attention damps every covariance"]
    if len(problem.vertices) > 1:
        return made
    if len(heads) == 1:
        values = np.linalg.eigvalsh(0.5 * (heads[0].B + heads[0].B.T))
        if values[0] * values[-1] < 0:
            made.append("B is indefinite, so that no left eigenvector of V gives blow-up")
        else:
            made.append("no left eigenvector of V gives blow-up")
    else:
        made.append("no left eigenvector that the value matrices share gives blow-up")
    made.append(
        "no ray was found along which attention carries covariances outward (the flow of "
        "directions did not settle on one, or attention points inward)"
    )
    return made


def _inequalities(problem: CertificationProblem, *, ruled_out: bool) -> str:
    if problem.dim > LARGEST_INTERACTIVE:
        return (
            f"dimension {problem.dim} exceeds {LARGEST_INTERACTIVE}, above which no matrix "
            "inequality is tried"
        )
    return "" if ruled_out else "no matrix inequality for a quadratic certificate was solved"


def _equilibria(problem: CertificationProblem) -> str:
    if problem.dim > MOST_DIMENSIONS:
        return f"equilibria are sought up to dimension {MOST_DIMENSIONS}"
    if len(problem.vertices) > 1:
        return ""
    return "no equilibrium is proved to attract"

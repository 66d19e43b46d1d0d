"""The one way in: `design`, and `solve` for a problem that was posed."""

from __future__ import annotations

import time

from numpy.typing import ArrayLike

from ..._interrupt import Interruption
from ..._threads import single_threaded
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...problem.bounds import Bounds
from ...problem.definitions import DesignProblem
from ...progress import Progress, silent
from ...results.design import Design
from ...status import Status
from .closed_forms import Draft, closed_form
from .confirmation import Trial, confirm, confirms
from .proof import certified, guaranteed, statement
from .request import Wishes, pose, scalar_of

__all__ = ["design", "solve"]


def design(
    target: Gaussian,
    *,
    method: str = "auto",
    V: ArrayLike | float | None = None,
    rate: float | None = None,
    mean_rate: float | None = None,
    bounds: Bounds | None = None,
    near: Parameters | None = None,
    complement: ArrayLike | None = None,
    checks: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
    name: str = "",
) -> Design:
    """Find constant Transformer parameters that make a given Gaussian attracting.

    Without further wishes the answer is a closed form with V = -ν I that attracts every law of
    full rank.  It has the smallest A and B of all with this V and rate.  The guarantee is checked
    in rigorous arithmetic for the very floats that are returned, and then confirmed by simulation.

    Parameters
    ----------
    target : Gaussian
        Law N(m, S) of dimension d and rank r <= d that is to attract.
    method : str
        "closed-form", "lmi" (semidefinite programming), or "auto": the closed form unless ``near``
        or a V that is no multiple of the identity is given.
    V : (d, d) array or float, optional
        Value matrix, or v for v I; with full rank its trace must be negative.  A V that is no
        multiple of the identity gives a local design: the region of attraction is in the claim.
    rate : float, optional
        Rate at which covariances approach, at least; by default twice that of the mean, or less
        if bounds require it.
    mean_rate : float, optional
        Rate at which the mean approaches, at least; by default half of ``rate``, or what V gives.
    bounds : Bounds, optional
        Bounds on the entries and Frobenius norms of A, B, V and b.
    near : Parameters, optional
        Parameters of one head; A and B are the nearest ones that are found (method "lmi").  If
        ``V`` is not given, that of ``near`` is taken where it contracts in the metric of the
        target; if it does not, or is zero, V is chosen, and the summary says so.
    complement : (d, k) array, optional
        Of a singular target: the k = d - r directions outside its range in which variance
        vanishes; by default those orthogonal to the range.
    checks : int, optional
        Number of random starts for the simulations; by default 8, and fewer in high dimension.
        Of stiff parameters, which take many thousand steps, two starts are enough.
    seed : int
        Seed of these starts.
    progress : callable, optional
        Called as ``progress(fraction, text)``.
    name : str, optional
        Name of the problem, kept in the result.

    Returns
    -------
    Design
        Its ``parameters``, the guaranteed ``rate`` and ``mean_rate``, and ``proved``.

    Raises
    ------
    DesignInfeasible
        If no such parameters exist, or the solver finds none; the message says why.
    InvalidShape, InvalidNumber, InvalidMethod
        If the arguments do not fit.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> target = gt.Gaussian.from_covariance([1.0, -1.0], [[2.0, 0.5], [0.5, 1.0]])
    >>> made = gt.design(target, rate=2.0)
    >>> made.status.name, made.proved, made.rate, made.mean_rate
    ('SUCCESS', True, 2.0, 1.0)
    """
    wishes = Wishes(method, V, rate, mean_rate, bounds, near, complement, checks, seed, name)
    return solve(pose(target, wishes), progress)


@single_threaded
def solve(problem: DesignProblem, progress: Progress = silent) -> Design:
    """Answer a problem that was posed: parameters, guarantee, simulations.

    Raises
    ------
    DesignInfeasible
        If no such parameters exist, or the solver finds none.
    """
    began = time.perf_counter()
    progress(0.0, "looking for parameters")
    draft = _draft(problem)
    progress(0.3, "checking the guarantee")
    claim = certified(draft, problem.target)
    rates = guaranteed(claim, draft.parameters)
    trial = Trial(
        draft.parameters,
        problem.target,
        draft.complement,
        min(rates),
        claim.numbers["radius"] if not draft.scalar else None,
    )
    status, seen = Status.SUCCESS, None
    with Interruption() as interruption:
        try:
            with interruption.unmasked():
                seen, stopped = confirm(
                    trial,
                    problem.checks,
                    problem.seed,
                    lambda fraction, text: progress(0.4 + 0.6 * fraction, text),
                )
        except KeyboardInterrupt:
            stopped = True
    if stopped:
        status = Status.INTERRUPTED
    elif seen is not None and not confirms(seen, trial.pace):
        status = Status.UNCONFIRMED
    return Design(
        problem=problem,
        status=status,
        parameters=draft.parameters,
        rate=rates[0],
        mean_rate=rates[1],
        method=draft.method,
        statement=statement(claim, draft.parameters),
        claims=(claim,),
        confirmation=seen,
        seconds=time.perf_counter() - began,
    )


def _draft(problem: DesignProblem) -> Draft:
    scalar = problem.V is None or scalar_of(problem.V) is not None
    if problem.method == "lmi" or problem.near is not None or not scalar:
        from .semidefinite import semidefinite  # cvxpy takes a second to load

        return semidefinite(problem)
    return closed_form(problem)

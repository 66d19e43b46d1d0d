"""The public solver of Riccati equations: checks its arguments, solves, and returns a result."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from ...problem.definitions import RiccatiProblem
from ...results.riccati import RiccatiSolution
from ...riccati_equations.equation import RiccatiEquation
from ...riccati_equations.solver import solve

__all__ = ["riccati"]


def riccati(
    A: ArrayLike,
    B: ArrayLike,
    Q: ArrayLike | None = None,
    R: ArrayLike | None = None,
    cross: ArrayLike | None = None,
    *,
    discrete: bool = False,
    name: str = "",
) -> RiccatiSolution:
    """Solve an algebraic Riccati equation, with an honest error, or say why it has no solution.

    The equation is A' X + X A + Q - (X B + S) R⁻¹ (X B + S)' = 0 with the cross term S; in discrete
    time A' X A - X + Q - (A' X B + S) (R + B' X B)⁻¹ (A' X B + S)' = 0.  Wanted is the solution
    for which A - B gain is stable, with gain = R⁻¹ (B' X + S') or (R + B' X B)⁻¹ (B' X A + S'):
    the conventions of ``control.care`` and ``scipy.linalg.solve_continuous_are``.

    Double precision with residuals of twice the precision comes first; where its own error
    estimate is not good enough, the work is repeated in extended precision.  So X is the solution
    for the floats that were given, correctly rounded in nearly all cases; how far the *data* are
    known is another matter, which `condition` of the result measures.  The exception are modes
    that a perturbation of the size of the rounding of A, B or Q puts on the boundary of stability,
    out of reach or out of sight: they count as such, and the status is not SUCCESS.

    Parameters
    ----------
    A : (n, n) array
        Dynamics.  For the covariance of a filter give its transpose, and C' as `B`.
    B : (n, m) array
        Inputs; a vector (n,) is one input.
    Q : (n, n) array, optional
        Weight of the states, symmetric, of any sign; a number is a multiple of the identity.
        By default zero: a Bernoulli equation.
    R : (m, m) array, optional
        Weight of the inputs, symmetric and not singular, of any sign; a number is a multiple of
        the identity.  By default the identity.
    cross : (n, m) array, optional
        Weight S of products of states and inputs; by default zero.
    discrete : bool
        Whether time is discrete.
    name : str
        Name for reports.

    Returns
    -------
    RiccatiSolution

    Raises
    ------
    InvalidShape, NotFinite, NotSymmetric, InvalidNumber, OutOfScale
        If the arrays do not fit, R is singular, or numbers are too large or too small.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> gt.riccati([[1.0, 0.0], [0.0, -2.0]], [1.0, 1.0]).X.tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """
    equation = RiccatiEquation(A, B, Q, R, cross, discrete=discrete)
    found = solve(equation)
    signs = found.signs
    factor = None if signs is None else signs.factor
    for array in (found.X, factor, found.gain, found.spectrum, found.kernel):
        if array is not None:
            array.setflags(write=False)
    return RiccatiSolution(
        problem=RiccatiProblem(equation, name),
        status=found.status,
        reason=found.reason,
        X=found.X,
        factor=factor,
        residual=found.residual,
        error_estimate=found.error,
        spectrum=found.spectrum,
        definite=found.definite,
        rank=-1 if signs is None else signs.rank,
        lowest=math.nan if signs is None else signs.lowest,
        highest=math.nan if signs is None else signs.highest,
        gain=found.gain,
        precision=found.precision,
        condition=found.condition,
        kernel=found.kernel,
    )

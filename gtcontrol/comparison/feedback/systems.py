"""Gaussian laws under a Transformer as systems of python-control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ... import _check
from ...errors import InvalidMethod, InvalidNumber, InvalidShape
from ...parameters import Parameters
from ...problem import memory
from ...problem.bounds import parse_controls
from ...schedule import Schedule
from .coordinates import CovarianceCoordinates, FactorCoordinates

if TYPE_CHECKING:
    from .io_system import GaussianSystem

__all__ = ["to_control"]


def to_control(
    parameters: Parameters | Schedule,
    *,
    inputs: str = "",
    rank: int | None = None,
    coordinates: Literal["covariance", "factor"] = "covariance",
    name: str = "transformer",
) -> GaussianSystem:
    """Make a ``control.NonlinearIOSystem`` whose state is the Gaussian law of the tokens.

    States are the mean, ``m[i]``, and either the upper triangle of the covariance, ``S[i,j]``
    with i <= j row by row, or the factor, ``L[i,j]`` with S = L Lᵀ.  Outputs are always the
    mean and the upper triangle of the covariance.

    Inputs are **deviations** from the parameters given: ``dA[i,j]``, ``dV[i,j]``, ``dB[i,j]``
    (``dV[h,i,j]`` with a stack of heads) and ``db[i]`` are added to the entries of A, V, B and
    b, so that the zero input is the Transformer itself.  With a schedule they are added to its
    parameters at each time.

    The system works with ``control.input_output_response``, ``feedback``, ``interconnect``,
    ``find_operating_point`` and ``linearize``; the last one returns exact derivatives (by the
    product rule, as the system defines its own ``linearize``) instead of differences, and
    takes a Gaussian in the place of a state.  ``system.state_of(law)`` and
    ``system.law_of(state)`` translate.

    Parameters
    ----------
    parameters : Parameters or Schedule
        Constant or time-varying parameters of dimension d; heads, score biases and process
        noise included.  Integrators of python-control do not know the breakpoints of a
        schedule: where it jumps, ask them for small steps.
    inputs : str
        Letters of the parameters that become inputs, e.g. ``"Vb"``, taken in the order A, V,
        B, b; none by default.
    rank : int, optional
        In factor coordinates the rank r of the laws (default d).
    coordinates : {"covariance", "factor"}
        What stands for the covariance in the state.  Factor coordinates keep it positive
        semidefinite and of rank r by construction, but describe a law in many ways (L and L Q
        are the same), and exclude process noise.
    name : str
        Name of the system.

    Returns
    -------
    control.NonlinearIOSystem
        With the methods ``state_of``, ``law_of`` and an exact ``linearize`` besides.

    Raises
    ------
    InvalidControls, InvalidMethod, InvalidNumber, InvalidShape, TooLarge
        If an argument does not fit.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> system = gt.to_control(gt.Parameters(A=[[1.0]], V=[[-1.0]], B=[[1.0]]), inputs="b")
    >>> system.state_labels, system.input_labels
    (['m[0]', 'S[0,0]'], ['db[0]'])
    >>> law = gt.Gaussian([0.0], [[1.0]])
    >>> system.linearize(law).A.tolist()
    [[-1.0, 0.0], [0.0, -2.0]]
    """
    if not isinstance(parameters, Parameters | Schedule):
        raise InvalidShape(
            f"`parameters` must be Parameters or a Schedule, not {type(parameters).__name__}."
        )
    if not isinstance(name, str) or not name or "." in name:
        raise InvalidMethod(
            f"`name` must be a text without dots, which python-control uses; it is {name!r:.40}."
        )
    controls = "" if inputs == "" else parse_controls(inputs, "inputs")
    first = parameters if isinstance(parameters, Parameters) else parameters(0.0)
    d = first.dim
    noisy = parameters.noisy if isinstance(parameters, Schedule) else first.noise is not None
    form: CovarianceCoordinates | FactorCoordinates
    if coordinates == "covariance":
        if rank is not None:
            raise InvalidNumber(
                f'`rank` is {rank!r}, which only coordinates="factor" need; leave it out.'
            )
        form = CovarianceCoordinates(d)
    elif coordinates == "factor":
        columns = d if rank is None else _check.integer("rank", rank, low=0)
        if columns > d:
            raise InvalidNumber(f"`rank` is {columns}, more than the dimension {d}.")
        if noisy:
            raise InvalidMethod(
                "process noise changes the rank, which factors cannot; use "
                'coordinates="covariance".'
            )
        form = FactorCoordinates(d, columns)
    else:
        raise InvalidMethod(
            f"`coordinates` is {coordinates!r:.40}; it must be 'covariance' or 'factor'."
        )
    letters = {"A": d**2, "V": first.V.size, "B": first.B.size, "b": d}
    entries = sum(letters[c] for c in controls)
    memory.require(
        f"the derivatives of a system with {form.size} states",
        float((form.size + entries) * 4 * (1 + len(first.heads)) * d * (d + 1)),
    )
    from .io_system import GaussianSystem  # python-control takes seconds to import

    return GaussianSystem(parameters, form, controls, name)

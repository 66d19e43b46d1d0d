"""The system that :func:`gtcontrol.to_control` returns; importing this loads python-control."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import control
import numpy as np
from numpy.typing import ArrayLike

from ... import _check
from ..._check import Array
from ...errors import InvalidShape
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...schedule import Schedule
from .coordinates import CovarianceCoordinates, FactorCoordinates, moment_labels
from .derivatives import control_basis, shapes

__all__ = ["GaussianSystem"]


class GaussianSystem(control.NonlinearIOSystem):  # type: ignore[misc]  # it has no types
    """Gaussian law under a Transformer, as a nonlinear system with named signals.

    Parameters
    ----------
    parameters : Parameters or Schedule
    form : CovarianceCoordinates or FactorCoordinates
        What the state is.
    controls : str
        Letters of the parameters that are inputs, in the order A, V, B, b.
    name : str
    """

    def __init__(
        self,
        parameters: Parameters | Schedule,
        form: CovarianceCoordinates | FactorCoordinates,
        controls: str,
        name: str,
    ) -> None:
        self.parameters = parameters
        self.form = form
        self.controls = controls
        self._shapes = {c: s for c, s in shapes(self._nominal(0.0)).items() if c in controls}
        super().__init__(
            self._update,
            self._measure,
            inputs=[label for c, s in self._shapes.items() for label in _labels(c, s)],
            outputs=moment_labels(form.dim),
            states=form.labels,
            name=name,
            dt=0,
        )

    def state_of(self, law: Gaussian) -> Array:
        """State vector (n,) of a law.

        Raises
        ------
        InvalidShape
            If the dimension, or in factor coordinates the rank, differs.
        """
        if not isinstance(law, Gaussian):
            raise InvalidShape(f"`law` must be a Gaussian, not {type(law).__name__}.")
        if law.dim != self.form.dim:
            raise InvalidShape(f"the law has dimension {law.dim}, the system {self.form.dim}.")
        return self.form.state_of(law)

    def law_of(self, state: ArrayLike) -> Gaussian:
        """Law of a state vector (n,).

        Raises
        ------
        InvalidShape, IndefiniteCovariance, RankDeficientFactor
            If the state is that of no law.
        """
        return self.form.law_of(_check.vector("state", state, self.form.size))

    def linearize(
        self,
        x0: Any,
        u0: ArrayLike | None = None,
        t: float = 0.0,
        params: Mapping[str, Any] | None = None,
        eps: float = 0.0,
        copy_names: bool = False,
        *,
        name: str | None = None,
        inputs: Any = None,
        outputs: Any = None,
        states: Any = None,
    ) -> control.StateSpace:
        """Linearise at a state and input, by exact derivatives.

        Called by ``control.linearize(system, x0, u0, ...)`` too.

        Parameters
        ----------
        x0 : (n,) array, Gaussian or control.OperatingPoint
            State; a Gaussian is translated.
        u0 : (k,) array, optional
            Input, zero by default (or that of the operating point).
        t : float
            Time, for schedules.
        params, eps : optional
            Accepted for the sake of ``control.linearize``; there are no differences here.
        copy_names : bool
            Keep the names of states, inputs and outputs.
        name, inputs, outputs, states : optional
            Names of the linearisation.

        Returns
        -------
        control.StateSpace
        """
        if isinstance(x0, control.OperatingPoint):
            u0 = x0.inputs if u0 is None else u0
            x0 = x0.states
        if isinstance(x0, Gaussian):
            x0 = self.state_of(x0)
        state = _vector("x0", x0, self.form.size)
        u = _vector("u0", 0.0 if u0 is None else u0, sum(map(_size, self._shapes.values())))
        p = self._at(float(t), u)
        derivative = self.form.derivative
        made = control.StateSpace(
            derivative(p, state, self.form.state_basis()),
            derivative(p, state, control_basis(p, self.controls)),
            self.form.moments_derivative(state),
            np.zeros((self.noutputs, u.size)),
            0,
            remove_useless_states=False,
        )
        if copy_names:
            made._copy_names(self, prefix_suffix_name="linearized")
        wanted = {"name": name, "inputs": inputs, "outputs": outputs, "states": states}
        return control.StateSpace(made, **{k: v for k, v in wanted.items() if v is not None})

    def _nominal(self, t: float) -> Parameters:
        return self.parameters if isinstance(self.parameters, Parameters) else self.parameters(t)

    def _at(self, t: float, u: Array) -> Parameters:
        """Parameters at time t with the deviations `u` added."""
        p = self._nominal(t)
        values, first = {c: getattr(p, c) for c in "AVBb"}, 0
        for letter, shape in self._shapes.items():
            last = first + _size(shape)
            values[letter] = values[letter] + u[first:last].reshape(shape)
            first = last
        return Parameters.trusted(**values, noise=p.noise, beta=p.beta)

    def _update(self, t: float, x: Array, u: Array, params: Any) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):  # a law that blows up: ends the run
            return self.form.rate(self._at(float(t), u), x)

    def _measure(self, t: float, x: Array, u: Array, params: Any) -> Array:
        return self.form.moments(x)


def _labels(letter: str, shape: tuple[int, ...]) -> list[str]:
    return [f"d{letter}[{','.join(map(str, at))}]" for at in product(*map(range, shape))]


def _size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape))


def _vector(name: str, value: Any, size: int) -> Array:
    """A state or input: a number stands for all entries, and lists of arrays are joined."""
    if np.isscalar(value):
        return np.full(size, _check.number(name, value))
    parts = [np.asarray(part).reshape(-1) for part in value]
    return _check.vector(name, np.concatenate(parts) if parts else np.zeros(0), size)

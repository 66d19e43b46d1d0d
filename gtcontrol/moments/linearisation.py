"""The affine map that stands for a feed-forward layer on a Gaussian.

Statistical linearisation takes, of all affine maps c + J (x - m), the one nearest to the layer
f in mean square under N(m, S): c = E f and J = E Df, as Cov(f, x) = E[Df] S by Stein's lemma.
The moments of a law that moves by x' = f(x) have the rates m' = E f and
S' = Cov(f, x) + Cov(x, f), so that while the law is Gaussian those of the linearised flow are
exact, whatever the activation.  (Booton 1954; Roberts and Spanos 1990.)  Linearising at the
mean instead, c = f(m) and J = Df(m), is the extended Kalman filter's way and is kept for
comparison.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from .._check import Array
from ..errors import InvalidMethod
from ..feedforward import FeedForward
from ..parameters import Parameters
from .activations import derivative, mean_and_slope

__all__ = ["LINEARISATIONS", "Linearisation", "absorbed", "affine", "check_linearisation"]

#: How a feed-forward layer is replaced by an affine map.
Linearisation = Literal["statistical", "jacobian"]

LINEARISATIONS: tuple[str, ...] = get_args(Linearisation)


def check_linearisation(value: object) -> Linearisation:
    """Return the name of a linearisation, checked.

    Raises
    ------
    InvalidMethod
        If there is none of this name.
    """
    for name in get_args(Linearisation):
        if value == name:
            made: Linearisation = name
            return made
    raise InvalidMethod(
        f"`linearisation` is {value!r:.40}; expected one of {', '.join(LINEARISATIONS)}."
    )


def affine(
    layer: FeedForward, mean: Array, root: Array, linearisation: str = "statistical"
) -> tuple[Array, Array]:
    """Velocity of the mean, and matrix of the affine map, that stand for a layer.

    With preactivations u = inner x + bias ~ N(μ, s²), entry by entry, the velocity is
    outer E act(u) and the matrix outer diag(E act'(u)) inner.

    Parameters
    ----------
    layer : FeedForward
        Of dimension d.
    mean : (d,) array
    root : (d, c) array
        Any matrix with root rootᵀ = S.
    linearisation : str
        "statistical", or "jacobian" for the values at the mean.

    Returns
    -------
    velocity : (d,) array
    matrix : (d, d) array
    """
    centre = layer.inner @ mean + layer.bias
    if linearisation == "jacobian":
        value, slope = np.asarray(layer.function(centre)), derivative(layer.activation, centre)
    else:
        deviation = np.linalg.norm(layer.inner @ root, axis=1)
        value, slope = mean_and_slope(layer.activation, centre, deviation)
    return layer.outer @ value, (layer.outer * slope) @ layer.inner


def absorbed(
    p: Parameters, layer: FeedForward, mean: Array, root: Array, linearisation: str
) -> Parameters:
    """Parameters whose affine part holds the map that stands for a layer at N(m, S).

    With c and J of :func:`affine`, A gains J and b gains c - J m.
    """
    velocity, J = affine(layer, mean, root, linearisation)
    b = p.b + velocity - J @ mean
    return Parameters.trusted(p.A + J, p.B, p.V, b, p.noise, p.beta)

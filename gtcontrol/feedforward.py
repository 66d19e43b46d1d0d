"""Feed-forward layers with a nonlinear activation: x' = outer · act(inner x + bias)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr

from . import _check
from ._check import Array
from .errors import InvalidMethod, InvalidShape, NotFinite

__all__ = ["ACTIVATIONS", "LEAK", "Activation", "FeedForward", "check_feedforward"]

#: Function of the real line, applied entry by entry.
Activation = Callable[[Array], Array]

#: Slope of the leaky ReLU on the negative half line, the default of the common libraries.
LEAK = 0.01

#: Where a function that is given is tried: zero, and preactivations of either sign.
TRIED = np.linspace(-40.0, 40.0, 161)


def _relu(u: Array) -> Array:
    return np.maximum(u, 0.0)


def _leaky_relu(u: Array) -> Array:
    return np.where(u > 0, u, LEAK * u)


def _gelu(u: Array) -> Array:
    return np.asarray(u * ndtr(u))


def _silu(u: Array) -> Array:
    return np.asarray(u * expit(u))


def _sigmoid(u: Array) -> Array:
    return np.asarray(expit(u))


def _identity(u: Array) -> Array:
    return np.array(u)


#: Activations with a name; ``gelu`` is the exact one, u Φ(u).
ACTIVATIONS: Mapping[str, Activation] = MappingProxyType(
    {
        "relu": _relu,
        "leaky_relu": _leaky_relu,
        "gelu": _gelu,
        "silu": _silu,
        "tanh": np.tanh,
        "sigmoid": _sigmoid,
        "identity": _identity,
    }
)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class FeedForward:
    """Feed-forward layer of k hidden units: tokens gain the velocity outer · act(inner x + bias).

    It stands beside the affine part A x + b of :class:`gtcontrol.Parameters` and beside
    attention.

    Parameters
    ----------
    inner : (k, d) array
        Weights from the token to the hidden units.
    bias : (k,) array, optional
        Bias of the hidden units; zero if left out.
    outer : (d, k) array
        Weights from the hidden units back to the token; the identity if left out (k = d).
    activation : str or callable
        ``"relu"``, ``"leaky_relu"`` (slope 0.01), ``"gelu"`` (u Φ(u)), ``"silu"``, ``"tanh"``,
        ``"sigmoid"``, ``"identity"``, or a function of the real line that maps an array to
        an array of the same shape (``np.vectorize`` makes one of a function of single numbers).
        Its Gaussian moments come from pieces of the line on which polynomials resolve it, found
        once: kinks and jumps may be anywhere, and cost little.  The relative error is about
        1e-10; where it may be above 1e-6 the function is refused.  Features narrower than a
        tenth of the distance from zero may be missed.  At a jump a function has no derivative:
        linearised at the mean there, it gets one of the order of a thousand times the jump.

    Raises
    ------
    InvalidShape, NotFinite
        If the arrays do not fit or hold nan or infinity, or if the function does not map
        arrays entry by entry to finite numbers; the message gives the place.
    InvalidMethod
        If there is no activation of this name.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> layer = gt.FeedForward([[1.0, 0.0], [0.0, 1.0]])
    >>> layer.velocity([[1.0, -2.0]]).tolist()
    [[1.0, 0.0]]
    """

    inner: Array
    bias: Array
    outer: Array
    activation: str | Activation

    def __init__(
        self,
        inner: ArrayLike,
        bias: ArrayLike | None = None,
        outer: ArrayLike | None = None,
        activation: str | Activation = "relu",
    ) -> None:
        W = _check.array("inner", inner, 2)
        k, d = W.shape
        if not W.size:
            raise InvalidShape(f"`inner` is empty (shape {W.shape}); give one row or more.")
        c = np.zeros(k) if bias is None else _check.array("bias", bias, 1)
        if c.shape != (k,):
            raise InvalidShape(
                f"`bias` must have shape ({k},), one entry for each row of `inner`; "
                f"it has {c.shape}."
            )
        if outer is None and k != d:
            raise InvalidShape(
                f"`outer` is needed: `inner` has {k} rows, so that the hidden units are no token "
                f"of dimension {d}; give a ({d}, {k}) array."
            )
        out = np.eye(d) if outer is None else _check.array("outer", outer, 2)
        if out.shape != (d, k):
            raise InvalidShape(
                f"`outer` must have shape ({d}, {k}) to fit `inner` {W.shape}; it has {out.shape}."
            )
        for made in (c, out):
            made.setflags(write=False)
        values = {
            "inner": W,
            "bias": c,
            "outer": out,
            "activation": _checked_activation(activation),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def dim(self) -> int:
        """Dimension d of the tokens."""
        return int(self.inner.shape[1])

    @property
    def hidden(self) -> int:
        """Number k of hidden units."""
        return int(self.inner.shape[0])

    @property
    def name(self) -> str:
        """Name of the activation; that of a function is its own."""
        if isinstance(self.activation, str):
            return self.activation
        return str(getattr(self.activation, "__name__", "function"))

    @property
    def function(self) -> Activation:
        """The activation as a function of arrays."""
        if isinstance(self.activation, str):
            return ACTIVATIONS[self.activation]
        return self.activation

    def velocity(self, tokens: ArrayLike) -> Array:
        """Velocity outer · act(inner x + bias) of every token.

        Parameters
        ----------
        tokens : (..., d) array

        Returns
        -------
        (..., d) array

        Raises
        ------
        InvalidShape
            If the tokens have another dimension.
        """
        x = np.asarray(tokens, dtype=np.float64)
        if x.shape[-1:] != (self.dim,):
            raise InvalidShape(
                f"`tokens` must have shape (..., {self.dim}) to fit `inner` {self.inner.shape}; "
                f"they have {x.shape}."
            )
        hidden = x @ self.inner.T
        hidden += self.bias
        return np.asarray(np.asarray(self.function(hidden)) @ self.outer.T)

    def require_dim(self, dim: int) -> None:
        """Refuse tokens of another dimension.

        Raises
        ------
        InvalidShape
            If `dim` is not that of the layer.
        """
        if self.dim != dim:
            raise InvalidShape(
                f"`feedforward` acts on tokens of dimension {self.dim}, but they have {dim}."
            )

    def __repr__(self) -> str:
        return f"FeedForward(dim={self.dim}, hidden={self.hidden}, activation={self.name})"


def check_feedforward(value: object, dim: int) -> FeedForward | None:
    """Return a layer for tokens of dimension `dim`, or None, checked.

    Raises
    ------
    InvalidShape
        If it is no layer, or acts on another dimension.
    """
    if value is None:
        return None
    if not isinstance(value, FeedForward):
        raise InvalidShape(f"`feedforward` must be a FeedForward, not {type(value).__name__}.")
    value.require_dim(dim)
    return value


def _checked_activation(activation: object) -> str | Activation:
    if isinstance(activation, str):
        if activation not in ACTIVATIONS:
            raise InvalidMethod(
                f"`activation` is {activation!r:.40}; expected one of {', '.join(ACTIVATIONS)}, "
                "or a function."
            )
        return activation
    if not callable(activation):
        raise InvalidMethod(
            f"`activation` must be a name or a function, not {type(activation).__name__}."
        )
    values = _applied(activation, TRIED)
    if values.shape != TRIED.shape or values.dtype.kind not in "biuf":
        raise InvalidShape(
            "`activation` must map an array entry by entry to real numbers of the same shape; "
            f"it makes an array of shape {values.shape} and type {values.dtype} from one of "
            f"shape {TRIED.shape}."
        )
    part = slice(7, 90)
    alone = _applied(activation, TRIED[part])
    if alone.shape != TRIED[part].shape or not np.allclose(alone, values[part], equal_nan=True):
        raise InvalidShape(
            "`activation` must act entry by entry; the values that it gives at some points change "
            "when other points are left out."
        )
    finite = np.isfinite(values)
    if not finite.all():
        i = int(np.argmin(finite))
        raise NotFinite(
            f"`activation` is {values[i]} at {TRIED[i]:g}; it must be finite on the real line."
        )
    return activation


def _applied(activation: Activation, u: Array) -> Array:
    """What a function that was given makes of an array.

    Raises
    ------
    InvalidShape
        If it takes no arrays.
    """
    try:
        with np.errstate(all="ignore"):  # what is not finite is refused later, with its place
            return np.asarray(activation(u.copy()))
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise InvalidShape(
            "`activation` must map an array entry by entry to an array, but it fails on one of "
            f"shape {u.shape} ({' '.join(str(error).split())[:80]}); write it with functions of "
            "arrays (np.maximum for max, np.tanh for math.tanh, np.where for if), or wrap it in "
            "np.vectorize."
        ) from None

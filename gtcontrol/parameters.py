"""Transformer parameters A, B, V, b at one instant, with heads, biases and noise.

This is the only place where B is made from query and key weights: the score of query
x and key y is ⟨W_Q x, W_K y⟩/√d_head = ⟨B x, y⟩, so B = W_Kᵀ W_Q/√d_head.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from . import _check
from ._check import Array
from .errors import IndefiniteCovariance, InvalidShape, NotFinite
from .gaussian import DEFINITENESS_TOLERANCE

__all__ = ["Head", "Parameters", "check_finite"]

#: One attention head: value matrix V, score matrix B, score bias β (or None).
Head = tuple[Array, Array, Array | None]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Parameters:
    """Parameters of the mean-field Transformer: affine feed-forward plus attention.

    Tokens move by ``x' = A x + b + Σ_h V_h E[y exp⟨B_h x + β_h, y⟩]/E[exp⟨B_h x + β_h, y⟩]``,
    so that on Gaussians N(m, S), with M = A + Σ_h V_h S B_h,

        m' = M m + Σ_h V_h (m + S β_h) + b,        S' = M S + S Mᵀ + noise.

    Parameters
    ----------
    A : (d, d) array, optional
        Linear part of the feed-forward layer.  What is left out is zero.
    B : (d, d) or (H, d, d) array, optional
        Score matrix of each head, B = W_Kᵀ W_Q/√d_head.
    V : (d, d) or (H, d, d) array, optional
        Value matrix of each head, V = W_O W_V.
    b : (d,) array, optional
        Bias of the feed-forward layer.
    noise : (d, d) array, optional
        Positive semidefinite intensity Q of process noise: S' gains + Q, and the rank of
        the covariance is then no longer conserved.
    beta : (d,) or (H, d) array, optional
        Score bias β of each head, which comes from query biases.
    dim : int, optional
        Dimension d; needed only when nothing else fixes it.

    Raises
    ------
    InvalidShape, NotFinite, NotSymmetric, IndefiniteCovariance
        If an array does not fit the others, or is no covariance (``noise``).
    """

    A: Array
    B: Array
    V: Array
    b: Array
    noise: Array | None
    beta: Array | None

    def __init__(
        self,
        A: ArrayLike | None = None,
        B: ArrayLike | None = None,
        V: ArrayLike | None = None,
        b: ArrayLike | None = None,
        noise: ArrayLike | None = None,
        *,
        beta: ArrayLike | None = None,
        dim: int | None = None,
    ) -> None:
        given = {
            "A": None if A is None else _check.array("A", A, 2),
            "B": None if B is None else _check.array("B", B, (2, 3)),
            "V": None if V is None else _check.array("V", V, (2, 3)),
            "b": None if b is None else _check.array("b", b, 1),
            "noise": None if noise is None else _check.symmetric("noise", noise),
            "beta": None if beta is None else _check.array("beta", beta, (1, 2)),
        }
        sizes = {name: value.shape[-1] for name, value in given.items() if value is not None}
        if dim is not None:
            sizes["dim"] = _check.integer("dim", dim, low=1)
        if not sizes:
            raise InvalidShape("Parameters needs at least one of A, B, V, b, or `dim`.")
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"{name}: {size}" for name, size in sizes.items())
            raise InvalidShape(f"the parameters disagree about the dimension ({listed}).")
        d = next(iter(sizes.values()))
        if d < 1:
            raise InvalidShape("tokens need at least one dimension; the arrays are empty.")
        for name in ("A", "B", "V"):
            value = given[name]
            if value is not None and value.shape[-2:] != (d, d):
                raise InvalidShape(f"`{name}` must be {d} by {d}; it has shape {value.shape}.")
        lead = _common_heads(given["B"], given["V"], given["beta"])
        if given["noise"] is not None:
            _check_noise(given["noise"])
        values = {
            "A": _zeros(d, d) if given["A"] is None else given["A"],
            "B": _zeros(*lead, d, d) if given["B"] is None else given["B"],
            "V": _zeros(*lead, d, d) if given["V"] is None else given["V"],
            "b": _zeros(d) if given["b"] is None else given["b"],
            "noise": given["noise"],
            "beta": given["beta"],
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def trusted(
        cls,
        A: Array,
        B: Array,
        V: Array,
        b: Array,
        noise: Array | None = None,
        beta: Array | None = None,
    ) -> Parameters:
        """Wrap arrays that a controller has computed, without checking them.

        Controllers are evaluated at every stage of an integrator, where checking the same
        shapes again would dominate the cost in low dimension.
        """
        made = object.__new__(cls)
        values = (("A", A), ("B", B), ("V", V), ("b", b), ("noise", noise), ("beta", beta))
        for name, value in values:
            object.__setattr__(made, name, value)
        return made

    @classmethod
    def from_attention(
        cls,
        W_Q: ArrayLike,
        W_K: ArrayLike,
        W_V: ArrayLike,
        W_O: ArrayLike,
        *,
        b_Q: ArrayLike | None = None,
        b_K: ArrayLike | None = None,
        b_V: ArrayLike | None = None,
        b_O: ArrayLike | None = None,
        A: ArrayLike | None = None,
        b: ArrayLike | None = None,
        noise: ArrayLike | None = None,
    ) -> Parameters:
        """Build the parameters from the weights of softmax attention; exact.

        Queries are ``W_Q x + b_Q``, keys ``W_K y + b_K``, values ``W_V y + b_V``, the score is
        their inner product divided by √d_head, and each head adds ``W_O (weighted values)``;
        ``b_O`` is added once.  Then B = W_Kᵀ W_Q/√d_head, V = W_O W_V, β = W_Kᵀ b_Q/√d_head,
        and b gains Σ_h W_O b_V + b_O.  The key bias drops out of the softmax.

        Parameters
        ----------
        W_Q, W_K : (d_head, d) or (H, d_head, d) arrays
            Query and key weights.
        W_V : (d_value, d) or (H, d_value, d) array
            Value weights.
        W_O : (d, d_value) or (H, d, d_value) array
            Output weights.
        b_Q, b_K : (d_head,) or (H, d_head) arrays, optional
        b_V : (d_value,) or (H, d_value) array, optional
        b_O : (d,) array, optional
        A, b, noise : arrays, optional
            Feed-forward part and process noise, as in the constructor.
        """
        weights = {
            name: _check.array(name, value, (2, 3))
            for name, value in (("W_Q", W_Q), ("W_K", W_K), ("W_V", W_V), ("W_O", W_O))
        }
        single = weights["W_Q"].ndim == 2
        Q, K, W, O = (w[None] if w.ndim == 2 else w for w in weights.values())
        heads, d_head, d = Q.shape
        d_value = W.shape[1]
        expected = {
            "W_K": (K, (heads, d_head, d)),
            "W_V": (W, (heads, d_value, d)),
            "W_O": (O, (heads, d, d_value)),
        }
        for name, (value, shape) in expected.items():
            if value.shape != shape:
                raise InvalidShape(
                    f"`{name}` must have shape {shape} (heads, ...) to fit `W_Q` {Q.shape}; "
                    f"it has {value.shape}."
                )
        query_bias = _head_bias("b_Q", b_Q, heads, d_head)
        _head_bias("b_K", b_K, heads, d_head)  # checked, then dropped: softmax ignores it
        value_bias = _head_bias("b_V", b_V, heads, d_value)
        B = np.swapaxes(K, 1, 2) @ Q / np.sqrt(d_head)
        bias = np.zeros(d) if b is None else _check.vector("b", b, d)
        if value_bias is not None:
            bias = bias + np.einsum("hij,hj->i", O, value_bias)
        if b_O is not None:
            bias = bias + _check.vector("b_O", b_O, d)
        beta = None
        if query_bias is not None:
            beta = np.einsum("hji,hj->hi", K, query_bias) / np.sqrt(d_head)
        V = O @ W
        if single:
            B, V = B[0], V[0]
            beta = None if beta is None else beta[0]
        return cls(A=A, B=B, V=V, b=bias, noise=noise, beta=beta)

    @property
    def dim(self) -> int:
        """Dimension d of the tokens."""
        return int(self.b.size)

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads as a tuple of (V (d, d), B (d, d), β (d,) or None)."""
        if self.V.ndim == 2:
            return ((self.V, self.B, self.beta),)
        beta: list[Array | None] = (
            [None] * self.V.shape[0] if self.beta is None else list(self.beta)
        )
        return tuple(zip(self.V, self.B, beta, strict=True))

    def lift(self, basis: Array) -> Parameters:
        """Act in the span of an orthonormal ``basis`` (D, d), and as zero outside it."""
        U = basis
        return Parameters.trusted(
            U @ self.A @ U.T,
            U @ self.B @ U.T,
            U @ self.V @ U.T,
            U @ self.b,
            None if self.noise is None else U @ self.noise @ U.T,
            None if self.beta is None else self.beta @ U.T,
        )

    def __repr__(self) -> str:
        noise = "" if self.noise is None else ", with process noise"
        return f"Parameters(dim={self.dim}, heads={len(self.heads)}{noise})"


def check_finite(p: Parameters, t: float) -> None:
    """Refuse parameters that a function of time has made nan or infinite.

    Raises
    ------
    NotFinite
        If an entry of A, B, V or b is not finite; the message gives the time.
    """
    if not all(bool(np.all(np.isfinite(x))) for x in (p.A, p.B, p.V, p.b)):
        raise NotFinite(
            f"the parameters are not finite at t = {t:.6g}; check the function of the schedule."
        )


def _zeros(*shape: int) -> Array:
    made = np.zeros(shape)
    made.setflags(write=False)
    return made


def _common_heads(*values: Array | None) -> tuple[int, ...]:
    """Leading shape shared by B, V (…, d, d) and β (…, d): () or (H,)."""
    score, value, beta = values
    leads = {
        name: array.shape[:-trailing]
        for name, array, trailing in (("B", score, 2), ("V", value, 2), ("beta", beta, 1))
        if array is not None
    }
    if len(set(leads.values())) > 1:
        listed = ", ".join(f"{name}: {lead[0] if lead else 'one'}" for name, lead in leads.items())
        raise InvalidShape(f"the parameters disagree about the number of heads ({listed}).")
    return next(iter(leads.values()), ())


def _check_noise(noise: Array) -> None:
    values = np.linalg.eigvalsh(noise)
    if values[0] < -DEFINITENESS_TOLERANCE * np.max(np.abs(values)):
        raise IndefiniteCovariance(
            f"`noise` must be positive semidefinite; its smallest eigenvalue is {values[0]:.6g}."
        )


def _head_bias(name: str, value: ArrayLike | None, heads: int, size: int) -> Array | None:
    if value is None:
        return None
    bias = _check.array(name, value, (1, 2))
    bias = bias[None] if bias.ndim == 1 else bias
    if bias.shape != (heads, size):
        raise InvalidShape(f"`{name}` must have shape ({heads}, {size}); it has {bias.shape}.")
    return bias

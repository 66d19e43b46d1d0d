"""The mean-field law itself, carried by weighted nodes: N → ∞ tokens, without sampling errors.

Every node moves by x' = A x + b + f(x) + Σ_h V_h E_h(x), with E_h(x) the softmax average over the
law.  Near a law whose averages are known in closed form (a Gaussian, or a mixture of Gaussians)
only the difference of the averages over the nodes of both laws is left to the nodes: an error
of the nodes then counts in proportion to the distance between the laws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from .._check import Array
from ..attention import softmax_average
from ..errors import InvalidNumber
from ..feedforward import FeedForward
from ..parameters import Parameters

__all__ = ["Velocity", "WeightedLaw", "gaussian_average", "march", "step_count", "velocity"]

#: Velocity of all nodes at a time.
Velocity = Callable[[float, Array], Array]

#: Fraction of the shortest time of the dynamics that one step of the integrator may take.
STEP = 0.1

#: Steps between two times at which a law is looked at, at most.
MOST_STEPS = 500


@dataclass(frozen=True, eq=False)
class WeightedLaw:
    """A mixture of Gaussians, and weighted nodes that stand for it.

    Parameters
    ----------
    shares : (K,) array
        Weights of the components.
    means : (K, d) array
    covariances : (K, d, d) array
    nodes : (N, d) array
    weights : (N,) array
        Of the nodes.
    """

    shares: Array
    means: Array
    covariances: Array
    nodes: Array
    weights: Array


def gaussian_average(
    queries: Array, shares: Array, means: Array, covariances: Array
) -> tuple[Array, Array]:
    """Softmax average over a mixture of Gaussians, in closed form.

        E[y e^⟨q,y⟩]/E[e^⟨q,y⟩] = Σ_k π_k(q) (m_k + S_k q),  π_k ∝ p_k exp(⟨q, m_k⟩ + ½ qᵀ S_k q),

    as tilting a Gaussian by e^⟨q,y⟩ moves its mean by S q.  With one component it is affine in
    the query; with more it is not.

    Parameters
    ----------
    queries : (n, d) array
    shares : (K,) array
    means : (K, d) array
    covariances : (K, d, d) array

    Returns
    -------
    average : (n, d) array
    shares : (n, K) array
        The tilted weights π_k.
    """
    shifts = np.einsum("kij,nj->nki", covariances, queries)
    exponents = queries @ means.T + 0.5 * np.einsum("nki,ni->nk", shifts, queries)
    tilted = softmax(exponents + np.log(shares), axis=1)
    return np.einsum("nk,nki->ni", tilted, means + shifts), tilted


def velocity(
    p: Parameters,
    layer: FeedForward | None,
    tokens: Array,
    weights: Array,
    near: WeightedLaw,
) -> Array:
    """Velocity of the nodes of a law, whose averages are known for the law `near`.

    Parameters
    ----------
    p : Parameters
    layer : FeedForward or None
    tokens : (N, d) array
    weights : (N,) array
    near : WeightedLaw

    Returns
    -------
    (N, d) array
    """
    moved = tokens @ p.A.T + p.b
    if layer is not None:
        moved = moved + layer.velocity(tokens)
    for V, B, beta in p.heads:
        if np.any(V):
            queries = tokens @ B.T
            if beta is not None:
                queries = queries + beta
            known, _ = gaussian_average(queries, near.shares, near.means, near.covariances)
            difference = _average(queries, tokens, weights) - _average(
                queries, near.nodes, near.weights
            )
            moved = moved + (known + difference) @ V.T
    return np.asarray(moved)


def _average(queries: Array, keys: Array, weights: Array) -> Array:
    """Softmax average of weighted keys: the logarithm of a weight is added to the score."""
    if not np.any(queries):
        return np.asarray((weights @ keys / weights.sum())[None])
    ones = np.ones((len(queries), 1))
    logs = np.log(weights)[:, None]
    made = softmax_average(
        np.concatenate([queries, ones], axis=1), np.concatenate([keys, logs], axis=1)
    )
    return made[:, :-1]


def step_count(span: float, rate: float) -> int:
    """Number of steps over `span` for dynamics of the given rate, at least two.

    Raises
    ------
    InvalidNumber
        If they are too many, as close to a blow-up.
    """
    count = max(2, int(np.ceil(span * rate / STEP)))
    if count > MOST_STEPS:
        raise InvalidNumber(
            f"the tokens move at rates up to {rate:.3g}, so that a time of {span:.3g} needs "
            f"{count} steps (at most {MOST_STEPS} between two of the times); end earlier, take "
            "smaller B or V, or give more `times` in between."
        )
    return count


def march(
    rates: Velocity, tokens: Array, times: Array, rate: float
) -> Iterator[tuple[float, Array]]:
    """Carry nodes by the classical Runge-Kutta method, and give them at each of the times.

    Parameters
    ----------
    rates : callable
        ``rates(t, tokens)``, shape (N, d).
    tokens : (N, d) array
        At time 0.
    times : (k,) array
        Positive, increasing.
    rate : float
        Rate of the dynamics, which sets the step.
    """
    now = 0.0
    for end in times:
        count = step_count(float(end) - now, rate)
        h = (float(end) - now) / count
        for i in range(count):
            t = now + i * h
            first = rates(t, tokens)
            second = rates(t + h / 2, tokens + h / 2 * first)
            third = rates(t + h / 2, tokens + h / 2 * second)
            last = rates(min(t + h, float(end)), tokens + h * third)
            tokens = tokens + h / 6 * (first + 2 * second + 2 * third + last)
        now = float(end)
        yield now, tokens

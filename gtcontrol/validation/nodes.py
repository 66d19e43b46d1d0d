"""Laws as weighted nodes: deterministic, low-discrepancy, with chosen moments made exact.

Random tokens have sampling errors of order 1/√N, which would hide a distance of order t² at
short times t.  Here the nodes are antithetic Sobol points, whitened, and their weights are
changed as little as possible (in entropy) so that given expectations are exact: calibration, in
the words of sampling theory (Deville and Särndal 1992).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from .._check import Array
from ..errors import InvalidNumber
from ..feedforward import FeedForward
from ..gaussian import Gaussian
from ..moments.activations import mean_and_slope

__all__ = ["Nodes", "normal_nodes", "number_of_nodes", "padded"]

#: Nodes for each expectation that is made exact, at least.
NODES_PER_CONDITION = 6

#: Largest miss of an expectation that counts as made exact, relative to its function.
EXACT = 1e-13

#: Steps of Newton's method, and the largest change of the logarithm of a weight in one.
ITERATIONS = 40
LARGEST_STEP = 1.0


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes z (N, d) with weights (N,) that stand for N(0, I): moments up to order two exact."""

    points: Array
    weights: Array

    def moved(self, law: Gaussian) -> Array:
        """The nodes of a Gaussian, m + L z, shape (N, d)."""
        return np.asarray(law.mean + self.points @ padded(law.factor).T)

    def moments(self, tokens: Array) -> tuple[Array, Array]:
        """Mean (d,) and covariance (d, d) of tokens (N, d) under the weights."""
        mean = self.weights @ tokens
        deviations = tokens - mean
        covariance = (deviations.T * self.weights) @ deviations
        return mean, 0.5 * (covariance + covariance.T)


def number_of_nodes(wanted: int, dim: int, layer: FeedForward | None = None) -> int:
    """The power of two that is not below the number of nodes that is wanted.

    Raises
    ------
    InvalidNumber
        If these are too few for what is made exact.
    """
    conditions = 1 + dim + dim * (dim + 1) // 2
    conditions += 0 if layer is None else layer.hidden * (1 + dim)
    nodes, least = 1 << (wanted - 1).bit_length(), NODES_PER_CONDITION * conditions
    if nodes < least:
        raise InvalidNumber(
            f"`count` is {wanted}, too few nodes for {conditions} expectations that are to be "
            f"exact in dimension {dim}; give at least {least}."
        )
    return nodes


def normal_nodes(count: int, seed: int, law: Gaussian, layer: FeedForward | None = None) -> Nodes:
    """Nodes of N(0, I_d) for laws like `law`.

    Besides mean and covariance, the expectations of act(u) and act(u) z are made exact for the
    hidden units u = inner (m + L z) + bias of a layer, by Gaussian moments in closed form.

    Parameters
    ----------
    count : int
        Number N of nodes, a power of two.
    seed : int
        Of the scrambling of the Sobol points.
    law : Gaussian
        Of dimension d.
    layer : FeedForward, optional

    Raises
    ------
    InvalidNumber
        If the nodes are too few for what is made exact.
    """
    d = law.dim
    number_of_nodes(count, d, layer)
    z = _white(count, d, seed)
    rows, columns = np.triu_indices(d)
    functions = [np.ones((count, 1)), z, z[:, rows] * z[:, columns]]
    wanted = [np.ones(1), np.zeros(d), (rows == columns).astype(float)]
    if layer is not None:
        root = layer.inner @ padded(law.factor)
        centre = layer.inner @ law.mean + layer.bias
        value, slope = mean_and_slope(layer.activation, centre, np.linalg.norm(root, axis=1))
        hidden = np.asarray(layer.function(centre + z @ root.T))
        tilted = hidden[:, :, None] * z[:, None]
        functions += [hidden, tilted.reshape(count, -1)]
        wanted += [value, (slope[:, None] * root).ravel()]  # Stein: E act(u) z = E act'(u) root
    return Nodes(z, _calibrated(np.concatenate(functions, axis=1), np.concatenate(wanted)))


def padded(factor: Array) -> Array:
    """A factor (d, r) with columns of zeros up to shape (d, d)."""
    d, r = factor.shape
    return np.concatenate([factor, np.zeros((d, d - r))], axis=1)


def _white(count: int, dim: int, seed: int) -> Array:
    uniform = qmc.Sobol(dim, scramble=True, rng=seed).random(count // 2)
    half = ndtri(np.clip(uniform, 2.0**-54, 1 - 2.0**-53))
    z = np.concatenate([half, -half])
    triangle = np.linalg.qr(z, mode="r") / np.sqrt(count)
    return np.asarray(np.linalg.solve(triangle.T, z.T).T)


def _calibrated(functions: Array, wanted: Array) -> Array:
    """Weights w_i = exp(⟨λ, f_i⟩)/N under which the functions (N, c) have the expectations (c,).

    Of all such weights they have the largest entropy; λ minimises a convex function, by
    Newton's method with halved steps.
    """
    count = len(functions)
    scales = np.sqrt(np.mean(functions**2, axis=0))
    used = scales > 0
    F, target = functions[:, used] / scales[used], wanted[used] / scales[used]
    multipliers = np.zeros(F.shape[1])
    weights = np.full(count, 1.0 / count)
    for _ in range(ITERATIONS):
        gradient = weights @ F - target
        if float(np.max(np.abs(gradient))) <= EXACT:
            return weights
        step = np.linalg.lstsq((F.T * weights) @ F, gradient, rcond=1e-14)[0]
        step *= min(1.0, LARGEST_STEP / max(float(np.max(np.abs(F @ step))), 1e-300))
        multipliers -= step
        weights = np.exp(F @ multipliers) / count
    left = float(np.max(np.abs(weights @ F - target)))
    raise InvalidNumber(
        f"`count` is {count}, too few nodes: the expectations that are to be exact miss by "
        f"{left:.2g} of their size; double it."
    )

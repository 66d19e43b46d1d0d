"""State vectors of a Gaussian law: the mean, and the covariance or a factor of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...errors import InvalidShape
from ...field import generator, rates
from ...gaussian import Gaussian
from ...parameters import Parameters
from .derivatives import Variation, covariance_derivative, factor_derivative, symmetric_basis

__all__ = ["CovarianceCoordinates", "FactorCoordinates"]


@dataclass(frozen=True)
class CovarianceCoordinates:
    """State (m, upper triangle of S row by row), of length d + d(d+1)/2."""

    dim: int

    @property
    def size(self) -> int:
        """Number of states."""
        return self.dim + self.dim * (self.dim + 1) // 2

    @property
    def labels(self) -> list[str]:
        """Names of the states."""
        return moment_labels(self.dim)

    def state_of(self, law: Gaussian) -> Array:
        """State vector of a law."""
        return np.concatenate([law.mean, law.covariance[np.triu_indices(self.dim)]])

    def law_of(self, state: Array) -> Gaussian:
        """Law of a state vector; refuses covariances that are not positive semidefinite."""
        return Gaussian.from_covariance(*self.split(state))

    def split(self, state: Array) -> tuple[Array, Array]:
        """Mean (d,) and covariance (d, d)."""
        d = self.dim
        S = np.zeros((d, d))
        S[np.triu_indices(d)] = state[d:]
        return state[:d], S + np.triu(S, 1).T

    def rate(self, p: Parameters, state: Array) -> Array:
        """Rate of change of the state."""
        m, S = self.split(state)
        M = generator(S, p.A, p.heads)
        mean_rate = M @ m + p.b
        for V, _, beta in p.heads:
            mean_rate = mean_rate + V @ (m if beta is None else m + S @ beta)
        half = M @ S
        matrix_rate = half + half.T if p.noise is None else half + half.T + p.noise
        return np.concatenate([mean_rate, matrix_rate[np.triu_indices(self.dim)]])

    def moments(self, state: Array) -> Array:
        """Mean and upper triangle of the covariance."""
        return state

    def state_basis(self) -> Variation:
        """Each state as a direction."""
        d = self.dim
        basis = symmetric_basis(d)
        return Variation(
            self.size,
            mean=np.concatenate([np.eye(d), np.zeros((len(basis), d))]),
            matrix=np.concatenate([np.zeros((d, d, d)), basis]),
        )

    def derivative(self, p: Parameters, state: Array, change: Variation) -> Array:
        """Change of the rate for each direction, one column each."""
        m, S = self.split(state)
        dm, dS = covariance_derivative(p, m, S, change)
        return np.concatenate([dm, upper(dS)], axis=1).T

    def moments_derivative(self, state: Array) -> Array:
        """Derivative of the outputs in the state."""
        return np.eye(self.size)


@dataclass(frozen=True)
class FactorCoordinates:
    """State (m, factor L row by row), of length d + d r."""

    dim: int
    rank: int

    @property
    def size(self) -> int:
        """Number of states."""
        return self.dim * (1 + self.rank)

    @property
    def labels(self) -> list[str]:
        """Names of the states."""
        d, r = self.dim, self.rank
        factor = [f"L[{i},{j}]" for i in range(d) for j in range(r)]
        return [f"m[{i}]" for i in range(d)] + factor

    def state_of(self, law: Gaussian) -> Array:
        """State vector of a law."""
        if law.rank != self.rank:
            raise InvalidShape(
                f"the law has rank {law.rank}, but the factor of this system has {self.rank} "
                f"column(s); give `rank={law.rank}` to `to_control`."
            )
        return np.concatenate([law.mean, law.factor.ravel()])

    def law_of(self, state: Array) -> Gaussian:
        """Law of a state vector; refuses factors with dependent columns."""
        return Gaussian(*self.split(state))

    def split(self, state: Array) -> tuple[Array, Array]:
        """Mean (d,) and factor (d, r)."""
        return state[: self.dim], state[self.dim :].reshape(self.dim, self.rank)

    def rate(self, p: Parameters, state: Array) -> Array:
        """Rate of change of the state."""
        mean_rate, factor_rate = rates(*self.split(state), p.A, p.heads, p.b)
        return np.concatenate([mean_rate, factor_rate.ravel()])

    def moments(self, state: Array) -> Array:
        """Mean and upper triangle of the covariance."""
        m, L = self.split(state)
        return np.concatenate([m, (L @ L.T)[np.triu_indices(self.dim)]])

    def state_basis(self) -> Variation:
        """Each state as a direction."""
        d, r = self.dim, self.rank
        unit = np.eye(self.size)
        return Variation(self.size, mean=unit[:, :d], matrix=unit[:, d:].reshape(self.size, d, r))

    def derivative(self, p: Parameters, state: Array, change: Variation) -> Array:
        """Change of the rate for each direction, one column each."""
        d, r = self.dim, self.rank
        dm, dL = factor_derivative(p, *self.split(state), change)
        return np.concatenate([dm, dL.reshape(len(dL), d * r)], axis=1).T

    def moments_derivative(self, state: Array) -> Array:
        """Derivative of the outputs in the state."""
        _, L = self.split(state)
        basis = self.state_basis()
        half = np.asarray(basis.matrix) @ L.T
        return np.concatenate([basis.mean, upper(half + np.swapaxes(half, 1, 2))], axis=1).T


def upper(stack: Array) -> Array:
    """Upper triangles of a stack of matrices, (k, d, d) to (k, d(d+1)/2)."""
    return np.asarray(stack[(slice(None), *np.triu_indices(stack.shape[-1]))])


def moment_labels(dim: int) -> list[str]:
    """Names of the entries of the mean and of the upper triangle of the covariance."""
    pairs = zip(*np.triu_indices(dim), strict=True)
    return [f"m[{i}]" for i in range(dim)] + [f"S[{i},{j}]" for i, j in pairs]

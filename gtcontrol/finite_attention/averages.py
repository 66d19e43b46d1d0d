"""Averages of functions of two quadratic forms over a standard normal vector.

What the weights of attention depend on are two numbers, the score of the own key
τ = ⟨μ + G z, z⟩ and the variance of the others a² = |μ + G z|².  For such a function f the
average of f z z' is a matrix made of G, its transpose and μ alone: by Stein's identity

    E[f z z'] = E[f] I + E[∇²f],

with gradients ∇τ = μ + 2 H z and ∇a² = 2 G'(μ + G z), H = (G + G')/2.  Two ways to lessen the
error of the cubature follow from it.  The part of f that is linear in τ and a² is averaged in
closed form.  And in many dimensions, where points are few, the average of the rest is projected
on the leading matrices of that form, which leaves out nothing but noise and higher powers of G.
"""

from __future__ import annotations

import numpy as np

from .._check import Array
from .nodes import Nodes

__all__ = ["Averages"]

#: Number of dimensions from which on averages are projected.
MANY = 10

#: Relative size of what keeps least squares solvable when matrices coincide (G = c I).
RIDGE = 1e-12


class Averages:
    """Averages for one head; values are arrays indexed by sign, radius and direction.

    Parameters
    ----------
    rule : Nodes
        In r dimensions, n radii and k directions.
    scores, variance : (2, n, k) arrays
        τ and a² at the points.
    mu : (r,) array
    G : (r, r) array
    """

    def __init__(self, rule: Nodes, scores: Array, variance: Array, mu: Array, G: Array) -> None:
        self.rule = rule
        self.weight = 0.5 * rule.weights[:, None] * rule.shares
        H, back, squared = 0.5 * (G + G.T), G.T @ mu, G.T @ G
        self.exact = ((mu, 2 * H), (2 * back, 2 * squared))
        forms = scores - np.trace(H), variance - (float(mu @ mu) + np.trace(squared))
        sizes = [np.sqrt(self.mean(x**2)) for x in forms]
        self.forms = [x / s if s > 0 else x for x, s in zip(forms, sizes, strict=True)]
        self.sizes = [s if s > 0 else 1.0 for s in sizes]
        self.span: tuple[Array, Array] | None = None
        if len(mu) >= MANY:
            mixed = H @ squared
            matrices = [np.eye(len(mu)), H, squared, H @ H, mixed + mixed.T]
            matrices += [
                np.outer(x, y) + np.outer(y, x) for x, y in ((mu, mu), (mu, back), (back, back))
            ]
            self.span = (
                _units([m.ravel() for m in matrices]),
                _units([mu, back, H @ mu, squared @ mu]),
            )

    def mean(self, values: Array) -> float:
        """E f."""
        return float(np.sum(self.weight * values))

    def of(self, values: Array) -> tuple[float, Array, Array]:
        """E f, E f z and E f z z', of shapes (), (r,) and (r, r)."""
        rule, (first, second) = self.rule, self.forms
        rates = _solve(
            np.array([[self.mean(x * y) for y in self.forms] for x in self.forms]),
            np.array([self.mean(values * x) for x in self.forms]),
        )
        rest = values - rates[0] * first - rates[1] * second
        radii = rule.radii[:, None]
        # Exactly zero where the two signs agree.
        odd = np.sum(self.weight * radii * (rest[0] - rest[1]), axis=0) @ rule.directions
        even = np.sum(self.weight * radii**2 * (rest[0] + rest[1]), axis=0)
        matrix = rule.directions.T @ (even[:, None] * rule.directions)
        if self.span is not None:
            matrix = _project(self.span[0], matrix.ravel()).reshape(matrix.shape)
            odd = _project(self.span[1], odd)
        for rate, size, (vector, form) in zip(rates, self.sizes, self.exact, strict=True):
            odd, matrix = odd + rate / size * vector, matrix + rate / size * form
        return self.mean(rest), odd, matrix


def _units(vectors: list[Array]) -> Array:
    """Vectors as rows, those that are not zero with length one."""
    rows = np.array(vectors)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def _project(rows: Array, vector: Array) -> Array:
    return _solve(rows @ rows.T, rows @ vector) @ rows


def _solve(gram: Array, right: Array) -> Array:
    """Coefficients of least squares; a smooth function of its arguments."""
    return np.asarray(np.linalg.solve(gram + RIDGE * np.eye(len(gram)), right))

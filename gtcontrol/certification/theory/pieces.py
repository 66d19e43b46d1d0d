"""Which inequalities a family of parameters needs: vertices, and pairs of vertices.

For parameters Σ_k λ_k (A_k, V_k, B_k) in the convex hull of vertices, the rate of y = tr(W S) is

    Σ_k λ_k² (rate at vertex k) + Σ_{k<l} 2 λ_k λ_l (rate of the mixed pair k, l),

where the mixed pair has the averages of A and noise and the form (Q(V_k, B_l) + Q(V_l, B_k))/2.
As the weights are nonnegative and add up to one, an inequality for all vertices and all mixed pairs
holds in the whole hull, however the parameters vary in time.  The mixed pairs are not needed where
the rate is affine in the vertex: if the vertices are all combinations of some (A, V, noise) with
some B, or of some V with some (A, B, noise).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...parameters import Parameters
from .quadratic import heads_of

__all__ = ["comparable", "index_pairs", "may_dissipate", "may_grow"]

#: Eigenvalues of a score matrix below this fraction of the largest one count as zero.
TOLERANCE = 1e-12


def comparable(vertices: Sequence[Parameters]) -> bool:
    """Whether all vertices have the same dimension and number of heads."""
    return len({heads_of(p)[0].shape for p in vertices}) == 1


def index_pairs(vertices: Sequence[Parameters]) -> tuple[tuple[int, int], ...]:
    """Pairs (k, l), k <= l, of vertices for which an inequality is needed."""
    count = len(vertices)
    own = tuple((k, k) for k in range(count))
    if _is_product(vertices, drift_with_value=True) or _is_product(
        vertices, drift_with_value=False
    ):
        return own
    return own + tuple((k, m) for k in range(count) for m in range(k + 1, count))


def may_dissipate(vertices: Sequence[Parameters]) -> bool:
    """Whether an inequality q_W(S) <= -c |S|², c > 0, W ⪰ 0 may hold for every covariance.

    On S = x xᵀ, q_W(S) = 2 Σ_h (xᵀ W V_h x)(xᵀ B_h x): with one head the symmetric part of B must
    be definite (and with none there is no such inequality).
    """
    return all(_score_signs(p) in ((-1,), (1,), None) for p in vertices)


def may_grow(vertices: Sequence[Parameters]) -> bool:
    """Whether an inequality q_W(S) >= κ tr(W S)², κ > 0, may hold with a margin.

    On S = x xᵀ it says 2 (xᵀ W V x)(xᵀ B x) >= κ (xᵀ W x)², so that W vanishes wherever the quadric
    of B does: if that is a true cone, W is a multiple of the symmetric part of B, and equality
    holds on the cone, so that there is no margin.
    """
    return all(_may_grow(p) for p in vertices)


def _may_grow(parameters: Parameters) -> bool:
    signs = _score_signs(parameters)
    if signs in ((-1,), (1,)):
        # xᵀ W V x has the sign of B for all x, so that W ⪯ 0 if V turns no direction that way.
        V, B = heads_of(parameters)
        used = [signs[0] * v for v, b in zip(V, B, strict=True) if np.any(v) and np.any(b)]
        return bool(np.max(np.linalg.eigvals(used[0]).real) > 0)
    return signs not in ((), (-1, 1), (-1, 0, 1))


def _score_signs(parameters: Parameters) -> tuple[int, ...] | None:
    """Signs of the eigenvalues of the symmetric part of B: () without heads, None if several."""
    V, B = heads_of(parameters)
    used = [b for v, b in zip(V, B, strict=True) if np.any(v) and np.any(b)]
    if len(used) > 1:
        return None
    if not used:
        return ()
    scaled = used[0] / np.max(np.abs(used[0]))
    scaled = scaled + scaled.T
    # A congruence keeps the signs: the diagonal is made one where it is not zero.
    size = np.sqrt(np.abs(np.diag(scaled)))
    size = np.where(size > 0, size, 1.0)
    values = np.linalg.eigvalsh(scaled / np.outer(size, size))
    signs = np.sign(np.where(np.abs(values) > TOLERANCE * np.max(np.abs(values)), values, 0.0))
    return tuple(sorted({int(s) for s in signs}))


def _is_product(vertices: Sequence[Parameters], *, drift_with_value: bool) -> bool:
    """Whether the vertices are all combinations of first and second parts."""
    firsts, seconds, found = [], [], set()
    for p in vertices:
        V, B = (_key(x) for x in heads_of(p))
        drift = _key(p.A) + (b"" if p.noise is None else _key(p.noise))
        first, second = (V + drift, B) if drift_with_value else (V, B + drift)
        firsts.append(first)
        seconds.append(second)
        found.add((first, second))
    return len(found) == len(set(firsts)) * len(set(seconds))


def _key(values: np.ndarray) -> bytes:
    return (values + 0.0).tobytes()  # one zero only

"""Random Gaussians, parameters and changes of coordinates for property tests."""

import numpy as np
from hypothesis import strategies as st

import gtcontrol as gt

__all__ = ["dims", "factor", "gaussians", "generators", "invertible", "orthogonal", "parameters"]

dims = st.integers(1, 4)


@st.composite
def generators(draw):
    """A NumPy generator; matrices drawn from it are generic, unlike shrunk lists of floats."""
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


def orthogonal(rng, n):
    """Orthogonal matrix (n, n), uniformly distributed."""
    Q, R = np.linalg.qr(rng.standard_normal((n, n)))
    return Q * np.sign(np.diag(R))


def invertible(rng, n, spread=1.0):
    """Matrix (n, n) with singular values between e^-spread and e^spread."""
    sigma = np.exp(rng.uniform(-spread, spread, n))
    return (orthogonal(rng, n) * sigma) @ orthogonal(rng, n)


def factor(rng, d, r, spread=1.0):
    """Factor (d, r) with singular values between e^-spread and e^spread."""
    sigma = np.exp(rng.uniform(-spread, spread, r))
    return (orthogonal(rng, d)[:, :r] * sigma) @ orthogonal(rng, r)


@st.composite
def gaussians(draw, dim=None, rank=None, spread=1.0):
    """A Gaussian of dimension up to 4 and any rank, unless they are given."""
    rng = draw(generators())
    d = draw(dims) if dim is None else dim
    r = draw(st.integers(0, d)) if rank is None else rank
    return gt.Gaussian(rng.standard_normal(d), factor(rng, d, r, spread))


@st.composite
def parameters(draw, dim, heads=None, size=0.5):
    """Parameters with general V and nonsymmetric B, of one head or several."""
    rng = draw(generators())
    lead = () if heads is None else (heads,)
    return gt.Parameters(
        A=size * rng.standard_normal((dim, dim)),
        B=size * rng.standard_normal((*lead, dim, dim)),
        V=size * rng.standard_normal((*lead, dim, dim)),
        b=size * rng.standard_normal(dim),
        beta=size * rng.standard_normal((*lead, dim)),
    )

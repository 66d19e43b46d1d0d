"""Random constant parameters of mixed families: every regime that certificates speak of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import gtcontrol as gt

__all__ = ["FAMILIES", "draw", "law"]

Generator = np.random.Generator


def gauss(rng: Generator, d: int) -> np.ndarray:
    return rng.standard_normal((d, d))


def definite(rng: Generator, d: int, skew: float = 1.0) -> np.ndarray:
    """Matrix whose symmetric part is positive definite."""
    G, K = gauss(rng, d), gauss(rng, d)
    return G @ G.T / d + 0.3 * np.eye(d) + 0.5 * skew * (K - K.T)


def symmetric(rng: Generator, d: int) -> np.ndarray:
    return definite(rng, d, skew=0.0)


def antistable(rng: Generator, d: int) -> np.ndarray:
    G = gauss(rng, d)
    return G + (0.3 - np.linalg.eigvals(G).real.min()) * np.eye(d)


def scalar_value(rng: Generator, d: int) -> gt.Parameters:
    return gt.Parameters(A=gauss(rng, d), V=rng.choice([-1.0, 1.0]) * np.eye(d), B=gauss(rng, d))


def scalar_definite(rng: Generator, d: int) -> gt.Parameters:
    sign = rng.choice([-1.0, 1.0])
    return gt.Parameters(A=gauss(rng, d), V=np.eye(d), B=sign * definite(rng, d))


def scalar_hurwitz(rng: Generator, d: int) -> gt.Parameters:
    return gt.Parameters(A=-antistable(rng, d), V=np.eye(d), B=definite(rng, d))


def opposite(rng: Generator, d: int) -> gt.Parameters:
    return gt.Parameters(A=gauss(rng, d), V=symmetric(rng, d), B=-definite(rng, d))


def opposite_symmetric(rng: Generator, d: int) -> gt.Parameters:
    return gt.Parameters(A=gauss(rng, d), V=antistable(rng, d), B=-symmetric(rng, d))


def skewed(rng: Generator, d: int) -> gt.Parameters:
    skew = rng.choice([1.0, 3.0])
    return gt.Parameters(A=gauss(rng, d), V=definite(rng, d, skew), B=-definite(rng, d, skew))


def same(rng: Generator, d: int) -> gt.Parameters:
    return gt.Parameters(A=gauss(rng, d), V=definite(rng, d), B=definite(rng, d))


def contracting(rng: Generator, d: int) -> gt.Parameters:
    return gt.Parameters(A=-3.0 * antistable(rng, d), V=gauss(rng, d), B=gauss(rng, d))


def generic(rng: Generator, d: int) -> gt.Parameters:
    return gt.Parameters(A=gauss(rng, d), V=gauss(rng, d), B=gauss(rng, d))


def heads(rng: Generator, d: int) -> gt.Parameters:
    V = np.array([symmetric(rng, d), symmetric(rng, d)])
    B = np.array([-definite(rng, d), rng.choice([-1.0, 1.0]) * definite(rng, d)])
    return gt.Parameters(A=gauss(rng, d), V=V, B=B)


def noisy(rng: Generator, d: int) -> gt.Parameters:
    sign = rng.choice([-1.0, 1.0])
    return gt.Parameters(
        A=gauss(rng, d),
        V=rng.choice([0.0, 1.0]) * gauss(rng, d) * 0.3 + np.eye(d),
        B=sign * definite(rng, d),
        noise=symmetric(rng, d),
    )


def singular(rng: Generator, d: int) -> gt.Parameters:
    v, w = rng.standard_normal((2, d, 1))
    return gt.Parameters(
        A=rng.choice([0.0, 1.0]) * gauss(rng, d), V=v @ v.T, B=rng.choice([-1.0, 1.0]) * w @ w.T
    )


FAMILIES: dict[str, Callable[[Generator, int], gt.Parameters]] = {
    "V = vI, B Gaussian": scalar_value,
    "V = I, B definite": scalar_definite,
    "V = I, B > 0, A Hurwitz": scalar_hurwitz,
    "V = V' > 0, B_s < 0": opposite,
    "V antistable, B = B' < 0": opposite_symmetric,
    "V_s > 0, B_s < 0, skew": skewed,
    "same signs": same,
    "A Hurwitz, V, B Gaussian": contracting,
    "A, V, B Gaussian": generic,
    "two heads": heads,
    "process noise": noisy,
    "V, B of rank one": singular,
}


def draw(rng: Generator, name: str, d: int) -> gt.Parameters:
    """Parameters of a family; a part of them in units far from one."""
    p = FAMILIES[name](rng, d)
    if rng.uniform() < 0.8:
        return p
    time, size, split = 10.0 ** rng.uniform(-8, 8, 3)
    noise = None if p.noise is None else p.noise * time * size
    return gt.Parameters(A=p.A * time, V=p.V * split, B=p.B * time / (split * size), noise=noise)


def law(rng: Generator, p: gt.Parameters) -> gt.Gaussian:
    """A start of random rank and size, in the units of the parameters."""
    d = p.dim
    rank = int(rng.integers(1, d + 1))
    linear = np.linalg.norm(p.A)
    quadratic = sum(np.linalg.norm(V) * np.linalg.norm(B) for V, B, _ in p.heads)
    unit = np.sqrt((linear or quadratic) / quadratic)
    size = unit * 10.0 ** rng.uniform(-1, 0.5)
    return gt.Gaussian(np.zeros(d), size * rng.standard_normal((d, rank)))

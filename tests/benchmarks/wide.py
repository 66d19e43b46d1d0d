"""Wide parameters: processor time of certificates at the dimension of a language model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

import gtcontrol as gt

from .figures import Figure, table, timed

#: Dimension, heads, and rank of each, as in a language model of medium size.
DIM, HEADS = 768, 12
RANK = DIM // HEADS

#: Processor seconds that an answer may take.
SECONDS = 5.0

#: Number of cases.
DEFAULT_COUNT = 9


@dataclass(frozen=True)
class Case:
    """Parameters, a start, and the verdict that is known without and with it (None: any)."""

    parameters: gt.Parameters
    start: gt.Gaussian
    verdict: gt.Verdict | None
    with_start: gt.Verdict | None


def _law(rng: np.random.Generator, d: int, rank: int, size: float) -> gt.Gaussian:
    factor = np.sqrt(size / d) * rng.standard_normal((d, rank))
    return gt.Gaussian(np.zeros(d), factor)


def _gaussian(rng: np.random.Generator, m: int, n: int) -> np.ndarray:
    return rng.standard_normal((m, n)) / np.sqrt(n)


def _negative(rng: np.random.Generator, d: int, skew: float = 0.3) -> np.ndarray:
    G = _gaussian(rng, d, d)
    return -(G @ G.T + 0.2 * np.eye(d)) + skew * (G - G.T) / 2


def _linear(rng: np.random.Generator, d: int) -> np.ndarray:
    return 0.3 * _gaussian(rng, d, d)


def dissipative(d: int, heads: int) -> Case:
    """One head, V symmetric and positive definite, B negative with a skew part."""
    rng = np.random.default_rng(1)
    V = -_negative(rng, d, 0.0)
    p = gt.Parameters(A=_linear(rng, d), V=V, B=_negative(rng, d))
    return Case(p, _law(rng, d, 8, 1.0), gt.Verdict.BOUNDED, gt.Verdict.BOUNDED)


def eigenvalue(d: int, heads: int) -> Case:
    """One head, B negative, V with eigenvalues on both sides: blow-up along an eigenvector."""
    rng = np.random.default_rng(2)
    p = gt.Parameters(A=_linear(rng, d), V=_gaussian(rng, d, d), B=_negative(rng, d))
    law = _law(rng, d, 8, 1e6 * d)
    return Case(p, law, gt.Verdict.BLOW_UP_DATA_EXIST, gt.Verdict.BLOWS_UP)


def indefinite(d: int, heads: int) -> Case:
    """One head, V and B Gaussian."""
    rng = np.random.default_rng(3)
    p = gt.Parameters(A=_linear(rng, d), V=_gaussian(rng, d, d), B=_gaussian(rng, d, d))
    return Case(p, _law(rng, d, 8, 1.0), None, None)


def _weights(rng: np.random.Generator, d: int, heads: int) -> tuple[np.ndarray, np.ndarray]:
    """Value and score matrices of heads of rank d/heads from Gaussian weights."""
    r = d // heads
    scale = np.sqrt(d)
    V = [_gaussian(rng, d, r) @ rng.standard_normal((r, d)) / scale for _ in range(heads)]
    B = [_gaussian(rng, d, r) @ rng.standard_normal((r, d)) / scale for _ in range(heads)]
    return np.array(V), np.array(B)


def generic(d: int, heads: int) -> Case:
    """Heads of low rank with Gaussian weights."""
    rng = np.random.default_rng(4)
    V, B = _weights(rng, d, heads)
    return Case(gt.Parameters(A=_linear(rng, d), V=V, B=B), _law(rng, d, 8, 1.0), None, None)


def blocks(d: int, heads: int) -> Case:
    """Heads that each act on coordinates of their own, with opposite signs."""
    rng = np.random.default_rng(5)
    V, B = np.zeros((2, heads, d, d))
    r = d // heads
    for h in range(heads):
        own = slice(h * r, (h + 1) * r)
        V[h, own, own] = -_negative(rng, r, 0.2)
        B[h, own, own] = _negative(rng, r, 0.2)
    p = gt.Parameters(A=_linear(rng, d), V=V, B=B)
    return Case(p, _law(rng, d, 8, 1.0), gt.Verdict.BOUNDED, gt.Verdict.BOUNDED)


def planted(d: int, heads: int) -> Case:
    """Gaussian heads, one of which grows along a ray that attracts."""
    rng = np.random.default_rng(6)
    V, B = _weights(rng, d, heads)
    u = rng.standard_normal(d)
    u /= np.linalg.norm(u)
    V[0] += 20.0 * np.outer(u, u)
    B[0] += 20.0 * np.outer(u, u)
    p = gt.Parameters(A=_linear(rng, d), V=V, B=B)
    law = gt.Gaussian(np.zeros(d), 1e3 * u[:, None])
    return Case(p, law, gt.Verdict.BLOW_UP_DATA_EXIST, gt.Verdict.BLOWS_UP)


def scalar(d: int, heads: int) -> Case:
    """V = I and B negative: the closed form."""
    rng = np.random.default_rng(7)
    p = gt.Parameters(A=_linear(rng, d), V=np.eye(d), B=_negative(rng, d))
    return Case(p, _law(rng, d, 8, 1.0), gt.Verdict.BOUNDED, gt.Verdict.BOUNDED)


def semidefinite(d: int, heads: int) -> Case:
    """Heads of low rank whose value matrices are positive and score matrices negative."""
    rng = np.random.default_rng(8)
    r = d // heads
    G = [_gaussian(rng, d, r) for _ in range(2 * heads)]
    V = np.array([g @ g.T for g in G[:heads]])
    B = np.array([-g @ g.T for g in G[heads:]])
    return Case(gt.Parameters(A=_linear(rng, d), V=V, B=B), _law(rng, d, 8, 1.0), None, None)


def positive(d: int, heads: int) -> Case:
    """Heads of low rank whose value and score matrices are both positive."""
    rng = np.random.default_rng(9)
    r = d // heads
    G = [_gaussian(rng, d, r) for _ in range(2 * heads)]
    V = np.array([g @ g.T for g in G[:heads]])
    B = np.array([g @ g.T for g in G[heads:]])
    return Case(gt.Parameters(A=_linear(rng, d), V=V, B=B), _law(rng, d, 8, 1.0), None, None)


CASES: dict[str, Callable[[int, int], Case]] = {
    "one head, dissipative": dissipative,
    "one head, eigenvalue of blow-up": eigenvalue,
    "one head, Gaussian": indefinite,
    "heads with Gaussian weights": generic,
    "heads in blocks, dissipative": blocks,
    "heads with a planted ray": planted,
    "V = I, B negative": scalar,
    "heads semidefinite, opposite signs": semidefinite,
    "heads semidefinite, same sign": positive,
}


def measure(count: int) -> list[Figure]:
    """Certify each case about every start and about one, and check each certificate again."""
    rows, made = [], []
    slowest, wrong = 0.0, []
    gt.verify(gt.certify(gt.Parameters(A=[[-1.0]])))  # imports are measured elsewhere
    for name, build in list(CASES.items())[:count]:
        case = build(DIM, HEADS)
        for start, expected in ((None, case.verdict), (case.start, case.with_start)):
            answer, took = timed(partial(gt.certify, case.parameters, start))
            found, again = timed(partial(gt.verify, answer))
            said = f"{answer.verdict.name}{', proved' if answer.proved else ''}"
            label = f"{name}{'' if start is None else ', start'}"
            rows.append([label, said, f"{took.processor:.2f}", f"{again.processor:.2f}"])
            slowest = max(slowest, took.processor)
            if not found or (expected is not None and answer.verdict is not expected):
                wrong.append(label)
    print(table(["case", "verdict", "certify [s cpu]", "verify [s cpu]"], rows))
    made.append(
        Figure(f"slowest answer at d = {DIM}, {HEADS} heads", f"{slowest:.2f} s cpu",
               f"<= {SECONDS:g} s", slowest <= SECONDS)
    )  # fmt: skip
    made.append(Figure("verdicts and checks", ", ".join(wrong) or "all right", "all right",
                       not wrong))  # fmt: skip
    return made

"""Riccati equations: forward errors, honesty and times beside SciPy and SLICOT, in one run."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import mpmath as mp
import numpy as np
import scipy.linalg as sl

import gtcontrol as gt
from tests.oracles import riccati as oracle

from .figures import Figure, share, table

DEFAULT_COUNT = 200

#: Condition of the random solutions (on their range) at most.
CONDITION = 1e10

#: Rounding of a float; errors below it are those of writing the solution down.
UNIT = 2.0**-53

#: A peer's answer with a larger error and no warning is a silent failure.
SILENT = 1e-6

#: Hard cases that are ill-conditioned, where the error must be a hundred times smaller.
ILL_CONDITIONED = ("chain of 21 integrators", "Cauchy, n = 8")

Peer = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Case:
    """An equation with its solution to many digits; `truth` is None if there is none."""

    name: str
    data: tuple[np.ndarray, ...]
    truth: mp.matrix | None
    discrete: bool = False


@dataclass
class Measured:
    """What came out for one case: errors, the estimate, and the status."""

    case: Case
    status: gt.RiccatiStatus
    error: float
    estimate: float
    peers: dict[str, float] = field(default_factory=dict)

    @property
    def honest(self) -> bool:
        """Whether the true error is within a factor 10 of the estimate."""
        if self.error == 0.0:
            return self.estimate <= UNIT
        return 0.1 * self.estimate <= self.error <= 10 * self.estimate

    @property
    def best(self) -> float:
        """Smallest error of a peer."""
        return min(self.peers.values())

    @property
    def silent(self) -> bool:
        """Whether success is claimed and the error is far above the estimate."""
        success = self.status is gt.RiccatiStatus.SUCCESS
        return success and self.error > max(10 * self.estimate, UNIT)


def measure(count: int) -> list[Figure]:
    """Hard cases, `count` random Bernoulli equations, equations without solution, and times."""
    hard = [_measured(case) for case in hard_cases()]
    drawn = [_measured(case) for case in random_cases(count)]
    _print_table(hard, drawn)
    both = hard + drawn
    # As good as floats can be: half a unit in the last place of every entry.
    worse = [m for m in both if m.error > m.best * (1 + 1e-9)]
    honest = sum(m.honest for m in both)
    gains = [_gain(m) for m in hard if m.case.name in ILL_CONDITIONED]
    refused, unsolved = _refusals()
    silent = sum(m.silent for m in both) + unsolved - refused
    solved = sum(m.status is gt.RiccatiStatus.SUCCESS for m in both)
    made = [
        Figure("solved", share(solved, len(both)), "all", solved == len(both)),
        Figure("error above the best of SciPy and SLICOT", share(len(worse), len(both)), "0",
               not worse),
        Figure("error below theirs, ill-conditioned", f"{min(gains):.1e} times", ">= 100 times",
               min(gains) >= 100),
        Figure("true error within 10 x of the estimate", share(honest, len(both)), ">= 95 %",
               honest >= 0.95 * len(both)),
        Figure("no or marginal solution, told", share(refused, unsolved), "all",
               refused == unsolved),
        Figure("silent failures", str(silent), "0", silent == 0),
    ]  # fmt: skip
    return made + _times()


# -- cases -----------------------------------------------------------------------------------


def hard_cases() -> Iterator[Case]:
    """Published hard cases with a stabilising solution."""
    one = np.eye(1)
    yield Case(
        "nearly unreached",
        (np.diag([1.0, -2.0]), np.array([[1e-6], [0.0]]), np.ones((2, 2)), one),
        oracle.nearly_unreached(1e-6),
    )
    a = 1 + 1e-7
    yield Case(
        "ill-conditioned Hamiltonian",
        (np.array([[a, 1.0], [1.0, a]]), np.eye(2), np.eye(2), np.eye(2)),
        oracle.circulant(a),
    )
    unit = np.eye(21)
    yield Case(
        "chain of 21 integrators",
        (np.diag(np.ones(20), 1), unit[:, -1:], np.diag(unit[0]), one),
        oracle.chain(21),
    )
    data = consumption()
    yield Case("discrete, a wrong root near", data, oracle.dare_recursion(*data, 1500), True)
    for n in (2, 4, 6, 8):
        data = (np.diag(np.arange(1.0, n + 1)), np.ones((n, 1)), np.zeros((n, n)), one)
        yield Case(f"Cauchy, n = {n}", data, oracle.cauchy(n))


def consumption() -> tuple[np.ndarray, ...]:
    """A, B, Q, R, S of a discounted discrete problem whose iteration may end at a wrong root."""
    root = np.sqrt(0.9)
    return (
        root * np.array([[1.0, 0.0], [0.225, 0.0]]),
        root * np.array([[0.0], [1.11111]]),
        np.array([[2.89634, -4.0404], [-4.0404, 8.16243]]),
        np.array([[8.16243]]),
        np.array([[4.0404], [-8.16243]]),
    )


def random_cases(count: int) -> Iterator[Case]:
    """Random Bernoulli equations of order 2 to 12 whose solution has a condition up to 1e10."""
    rng = np.random.default_rng(4)
    made = 0
    while made < count:
        n = int(rng.integers(2, 13))
        m = int(rng.integers(1, 1 + max(1, n // 2)))
        A, B = rng.standard_normal((n, n)), rng.standard_normal((n, m))
        if rng.random() < 0.4:  # every mode unstable: the solution has full rank
            A = A + (0.2 - float(np.min(np.linalg.eigvals(A).real))) * np.eye(n)
        if not np.any(np.linalg.eigvals(A).real > 0):
            continue
        truth = oracle.bernoulli(A, B)
        values = np.linalg.svd(oracle.floats(truth), compute_uv=False)
        rank = int(np.sum(np.linalg.eigvals(A).real > 0))
        if values[0] > CONDITION * values[rank - 1]:
            continue
        made += 1
        yield Case(f"random {made}, n = {n}", (A, B, np.zeros((n, n)), np.eye(m)), truth)


def unsolvable_cases() -> Iterator[tuple[tuple[Any, ...], gt.RiccatiStatus]]:
    """Equations without a stabilising solution, with what must be said."""
    marginal, none = gt.RiccatiStatus.MARGINAL, gt.RiccatiStatus.NO_STABILIZING_SOLUTION
    yield ([[1, -1, 1], [0, 1, 1], [0, 0, 1]], [[1, 0], [1, 0], [0, 1]],
           [[6, -2, -2], [-2, -3, -2], [-2, -2, -3.9]], np.diag([-10, 0.1])), none  # fmt: skip
    eye = np.eye(2)
    for A in (np.diag([1.0, 0.0]), np.zeros((2, 2)), [[0, 1], [-1, 0]], [[0, 1], [0, 0]]):
        yield (A, eye), marginal
    yield ([[0, 1, 0], [-1, 0, 0], [0, 0, 1]], np.eye(3)), marginal
    yield (np.diag([1.0, 2.0]), [1.0, 0.0]), none
    yield (np.diag([1.0, 0.0]), [1.0, 0.0]), marginal


# -- measurement -----------------------------------------------------------------------------


def _scipy(A: Any, B: Any, Q: Any, R: Any, S: Any = None, *, discrete: bool) -> np.ndarray:
    solver = sl.solve_discrete_are if discrete else sl.solve_continuous_are
    return np.asarray(solver(A, B, Q, R, s=S))


def _slicot(A: Any, B: Any, Q: Any, R: Any, S: Any = None, *, discrete: bool) -> np.ndarray:
    import control

    solver = control.dare if discrete else control.care
    return np.asarray(solver(A, B, Q, R, S, method="slycot")[0])


PEERS: dict[str, Peer] = {"SciPy": _scipy, "SLICOT": _slicot}


def _measured(case: Case) -> Measured:
    made = gt.riccati(*case.data, discrete=case.discrete)
    error = np.inf if made.X is None else oracle.relative_error(made.X, case.truth)
    measured = Measured(case, made.status, error, made.error_estimate)
    for name, peer in PEERS.items():
        measured.peers[name] = _error_of(partial(peer, *case.data, discrete=case.discrete), case)
    return measured


def _error_of(call: Callable[[], np.ndarray], case: Case) -> float:
    """Error of a peer; inf if it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            X = call()
        except Exception:  # whatever a peer raises is a refusal
            return np.inf
    return oracle.relative_error(X, case.truth) if np.all(np.isfinite(X)) else np.inf


def _gain(measured: Measured) -> float:
    return measured.best / max(measured.error, 1e-300)


def _refusals() -> tuple[int, int]:
    """How many equations without a stabilising solution are told, and how many there are."""
    cases = list(unsolvable_cases())
    return sum(gt.riccati(*data).status is expected for data, expected in cases), len(cases)


def _print_table(hard: list[Measured], drawn: list[Measured]) -> None:
    names = list(PEERS)
    rows = [
        (m.case.name, f"{m.error:.1e}", f"{m.estimate:.1e}", *(f"{m.peers[n]:.1e}" for n in names))
        for m in hard
    ]
    for word, pick in (("median", statistics.median), ("largest", max)):
        cells = [pick([m.error for m in drawn]), pick([m.estimate for m in drawn])]
        cells += [pick([m.peers[n] for m in drawn]) for n in names]
        rows.append((f"random, {word}", *(f"{x:.1e}" for x in cells)))
    print(table(("forward error", "gtcontrol", "its estimate", *names), rows))
    for name in names:
        failed = sum(SILENT < m.peers[name] < np.inf for m in hard + drawn)
        print(f"    {name}: errors above {SILENT:g}, returned without a word about them: {failed}")


# -- times -----------------------------------------------------------------------------------

#: Time that well-conditioned equations may take, in multiples of SciPy's.
SLOWER = 3.0


def _times() -> list[Figure]:
    made = []
    for n in (10, 30, 100):
        rng = np.random.default_rng(n)
        A, B = rng.standard_normal((n, n)), rng.standard_normal((n, n // 3))
        Q, R = np.eye(n), np.eye(n // 3)
        ours = partial(gt.riccati, A, B, Q, R)
        theirs = partial(sl.solve_continuous_are, A, B, Q, R)
        best = [min(times) for times in zip(*(_both(ours, theirs) for _ in range(9)), strict=True)]
        ratio = best[0] / best[1]
        text = f"{1e3 * best[0]:.2f} ms, {ratio:.2f} x SciPy"
        made.append(
            Figure(f"time, well-conditioned, n = {n}", text, f"<= {SLOWER:g} x", ratio <= SLOWER)
        )
    return made


def _both(*calls: Callable[[], object]) -> list[float]:
    """Times of calls by turns."""
    times = []
    for call in calls:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return times

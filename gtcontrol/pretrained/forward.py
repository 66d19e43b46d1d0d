"""Forward runs of a stack by torch: its fused attention, no gradients, bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import Array
from ..errors import InvalidMethod, InvalidShape, NotFinite
from .extra import torch_library, view
from .weights import AttentionWeights, Floats, Mlp, Norm, Rope

if TYPE_CHECKING:
    from .stack import Block, Stack

__all__ = ["RECORDS", "BlockRecord", "apply_norm", "walk"]

#: What can be recorded of a layer.
RECORDS = ("input", "attended", "attention", "residual", "norm", "mlp", "output")

#: Bytes that the intermediate arrays of a batch of sequences may take.
BATCH_MEMORY = 128 * 2**20

#: Queries that attend within a window are taken in chunks of this many.
CHUNK = 512


@dataclass(frozen=True, eq=False)
class BlockRecord:
    """What was recorded in one layer; fields that were not asked for are None.

    Parameters
    ----------
    layer : int
        From 1.
    input : (T, N, d) float32 array or None
        The residual stream before the layer.
    attended : (T, N, d) float32 array or None
        What queries, keys and values are computed from: norm1(input) if the norm comes first,
        else the input.
    attention : (T, N, d) float32 array or None
        What attention adds to the stream, with output bias and LayerScale.
    residual : (T, N, d) float32 array or None
        The sum of input and attention, before any norm.
    norm : (T, N, d) float32 array or None
        What the feed-forward net sees: norm2(residual) if norms come first, else norm1(residual).
    mlp : (T, N, d) float32 array or None
        What the feed-forward net adds, with bias and LayerScale.
    output : (T, N, d) float32 array or None
        The residual stream after the layer.
    """

    layer: int
    input: Floats | None = None
    attended: Floats | None = None
    attention: Floats | None = None
    residual: Floats | None = None
    norm: Floats | None = None
    mlp: Floats | None = None
    output: Floats | None = None


def walk(
    stack: Stack, tokens: Array | Floats, record: Sequence[str], *, positions: bool
) -> Iterator[BlockRecord]:
    """Return an iterator over the records of blocks; see :meth:`Stack.walk`."""
    stream = _checked(stack, tokens)
    unknown = [name for name in record if name not in RECORDS]
    if unknown:
        raise InvalidMethod(f"`record` holds {unknown[0]!r}; expected any of {', '.join(RECORDS)}.")
    return _walk(stack, stream, record, positions)


def _walk(
    stack: Stack, stream: Floats, record: Sequence[str], positions: bool
) -> Iterator[BlockRecord]:
    for i, block in enumerate(stack.blocks):
        kept = {name: np.empty_like(stream) for name in record if name not in ("input", "output")}
        result = np.empty_like(stream)
        for part in _batches(block, stream.shape):
            made = _advance(block, view(stream[part]), positions)
            result[part] = made["output"].numpy()
            for name, array in kept.items():
                array[part] = made[name].numpy()
        if "input" in record:
            kept["input"] = stream
        if "output" in record:
            kept["output"] = result
        stream = result
        yield BlockRecord(layer=i + 1, **kept)


def _checked(stack: Stack, tokens: Array | Floats) -> Floats:
    """`tokens` as a new contiguous (T, N, d) array in single precision."""
    stream = np.array(tokens, dtype=np.float32, order="C")
    if stream.ndim == 2:
        stream = stream[None]
    if stream.ndim != 3 or stream.shape[2] != stack.width or 0 in stream.shape:
        raise InvalidShape(
            f"`tokens` must have shape (T, N, {stack.width}), sequences of tokens; it has "
            f"{np.shape(tokens)}."
        )
    if not np.isfinite(stream.sum(dtype=np.float64)):
        raise NotFinite("`tokens` holds nan or infinity; every entry must be finite.")
    return stream


def _batches(block: Block, shape: tuple[int, ...]) -> Iterator[slice]:
    """Sequences to take at once, so that intermediate arrays stay within their memory."""
    count, tokens, width = shape
    inner = len(block.mlp.inner_bias)
    each = 4 * tokens * (3 * inner + 12 * width)
    size = max(1, BATCH_MEMORY // each)
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def _advance(block: Block, x: Any, positions: bool) -> dict[str, Any]:
    """Everything that a layer computes on a batch of sequences."""
    torch = torch_library()
    with torch.no_grad():
        if block.placement == "pre":
            attended = apply_norm(block.norm_attention, x)
            added = _scale(_attend(block, attended, positions), block.scale_attention)
            residual = x + added
            seen = apply_norm(block.norm_mlp, residual)
            update = _scale(_feed(block.mlp, seen), block.scale_mlp)
            output = residual + update
        else:
            attended = x
            added = _scale(_attend(block, x, positions), block.scale_attention)
            residual = x + added
            seen = apply_norm(block.norm_attention, residual)
            update = _scale(_feed(block.mlp, seen), block.scale_mlp)
            output = apply_norm(block.norm_mlp, seen + update)
    return {
        "attended": attended,
        "attention": added,
        "residual": residual,
        "norm": seen,
        "mlp": update,
        "output": output,
    }


def apply_norm(norm: Norm | None, x: Any) -> Any:
    """LayerNorm of a torch tensor over its last axis; None is the identity."""
    if norm is None:
        return x
    layer_norm = torch_library().nn.functional.layer_norm
    return layer_norm(x, norm.weight.shape, view(norm.weight), view(norm.bias), norm.epsilon)


def _scale(x: Any, factors: Floats | None) -> Any:
    return x if factors is None else x * view(factors)


def _feed(mlp: Mlp, x: Any) -> Any:
    """Outer weights times the activation of the inner ones, gated or not."""
    linear = torch_library().nn.functional.linear
    hidden = linear(x, view(mlp.inner), view(mlp.inner_bias))
    if mlp.gated:
        first, second = hidden.chunk(2, dim=-1)
        hidden = _activate(mlp.activation, first) * second
    else:
        hidden = _activate(mlp.activation, hidden)
    return linear(hidden, view(mlp.outer), view(mlp.outer_bias))


def _activate(name: str, u: Any) -> Any:
    torch = torch_library()
    functions = torch.nn.functional
    match name:
        case "gelu":
            return functions.gelu(u)
        case "gelu_tanh":
            return functions.gelu(u, approximate="tanh")
        case "gelu_quick":
            return u * torch.sigmoid(1.702 * u)
        case "relu" | "silu":
            return getattr(functions, name)(u)
        case "tanh" | "sigmoid":
            return getattr(torch, name)(u)
    return u


def _attend(block: Block, u: Any, positions: bool) -> Any:
    """Multi-head softmax attention on (T, N, d), with output weights and bias."""
    torch = torch_library()
    weights = block.attention
    q, k, v = (
        _heads(u, getattr(weights, name), getattr(weights, f"{name}_bias"))
        for name in ("query", "key", "value")
    )
    if positions and block.rope is not None:
        cos, sin = _turns(block.rope, u.shape[1], weights.head_width)
        q, k = _turn(q, cos, sin), _turn(k, cos, sin)
    if positions and block.window is not None:
        averages = _attend_within(weights, q, k, v, block.window)
    else:
        averages = torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=weights.scale)
    averages = averages.transpose(1, 2).reshape(*u.shape[:2], -1)
    return torch.nn.functional.linear(averages, view(weights.output), view(weights.output_bias))


def _heads(u: Any, matrix: Floats, bias: Floats) -> Any:
    """Queries, keys or values, (T, H, N, k)."""
    heads, k, d = matrix.shape
    linear = torch_library().nn.functional.linear
    made = linear(u, view(matrix.reshape(heads * k, d)), view(bias.reshape(-1)))
    return made.view(*u.shape[:2], heads, k).transpose(1, 2)


def _turns(rope: Rope, count: int, width: int) -> tuple[Any, Any]:
    """Cosines and sines of rotary positions, (N, k).

    In the arithmetic of the library: at position 8000 the rounding of an angle to single
    precision is as large as 5e-4.
    """
    torch = torch_library()
    steps = torch.arange(0, width, 2, dtype=torch.float32) / width
    angles = torch.arange(count, dtype=torch.float32)[:, None] * (1.0 / rope.theta**steps)
    both = torch.cat((angles, angles), dim=-1)
    return both.cos(), both.sin()


def _turn(x: Any, cos: Any, sin: Any) -> Any:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch_library().cat((-second, first), dim=-1) * sin


def _attend_within(weights: AttentionWeights, q: Any, k: Any, v: Any, window: int) -> Any:
    """Attention to tokens at most `window` away, chunk by chunk: memory O(N window)."""
    torch = torch_library()
    count = q.shape[2]
    made = []
    for start in range(0, count, CHUNK):
        stop = min(start + CHUNK, count)
        low, high = max(0, start - window), min(count, stop + window)
        away = torch.arange(start, stop)[:, None] - torch.arange(low, high)
        made.append(
            torch.nn.functional.scaled_dot_product_attention(
                q[:, :, start:stop],
                k[:, :, low:high],
                v[:, :, low:high],
                attn_mask=away.abs() <= window,
                scale=weights.scale,
            )
        )
    return torch.cat(made, dim=2)

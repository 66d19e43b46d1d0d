"""Stacks from ONNX files with the layout of BERT, ViT, DeiT or DINOv2."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ModelFileInvalid, UnsupportedModel
from ..embedding import Embedding, PatchEmbedding, TokenEmbedding
from ..entrance import embed_images, embed_words
from ..stack import Stack
from ..weights import Floats
from .assembly import blocks_of, final_norm_of, token_embedding_of
from .checkpoint import naming_what_is_not_finite
from .configuration import read_json
from .names import Names
from .numerics import TOKENS, compare
from .onnx_graph import Graph, module_of, read_graph
from .patches import patch_embedding_of, processor_of

__all__ = ["load_onnx"]

#: A weight that only this family has in its first layer, and the family; in this order.
_MARKS = (
    ("encoder.layer.0.layer_scale1.lambda1", "dinov2"),
    ("encoder.layer.0.layernorm_before.weight", "vit"),
    ("layers.0.layernorm_before.weight", "vit"),
    ("encoder.layer.0.attention.self.query.weight", "bert"),
)

#: Bytes of weights that fit into one ONNX file.
LARGEST_FILE = 1.9e9

#: Modules of a layer: what is multiplied first, its norms, its feed-forward net.
_MODULES = {
    "bert": ("attention.self.query", "output.LayerNorm", "intermediate.dense", "output.dense"),
    "vit": ("attention.attention.query", "layernorm_before", "intermediate.dense", "output.dense"),
    "dinov2": ("attention.attention.query", "norm1", "mlp.fc1", "mlp.fc2"),
}
_NEWER = ("attention.q_proj", "layernorm_before", "mlp.fc1", "mlp.fc2")


def load_onnx(name: str, path: Path, *, check: bool, fits: Callable[[Stack], None]) -> Stack:
    """Return the stack of an ONNX file; see :func:`gtcontrol.pretrained.load`.

    `fits` raises if the stack, before it is compared, is not wanted.
    """
    graph = read_graph(path)
    weights = graph.weights()
    prefix, family = _layout(weights, path)
    bare = {n[len(prefix) :]: a for n, a in weights.items() if n.startswith(prefix)}
    family = "deit" if "embeddings.distillation_token" in bare else family
    names = Names(family, bare)
    layout = _Layout(graph, prefix, family, bare)
    config = layout.configuration()
    if family != "bert" and "embeddings.position_embeddings" not in bare:
        folded = graph.positions(f"{prefix}embeddings")
        if folded is not None:
            bare["embeddings.position_embeddings"] = folded
    with naming_what_is_not_finite(bare, path):
        stack = Stack(
            name=name,
            family=family,
            blocks=blocks_of(names, config),
            embedding=layout.embedding(names, config),
            final_norm=final_norm_of(names, config) if "layernorm.weight" in bare else None,
            source=str(path),
        )
        other = {n for n in weights if not n.startswith(prefix) and n in graph.arrays}
        unused = {*names.unused(), *other} & set(graph.arrays)
        stack = replace(stack, ignored=tuple(sorted(unused)))
        fits(stack)
        return _checked(stack, layout) if check else stack


def _layout(weights: dict[str, Floats], path: Path) -> tuple[str, str]:
    """Prefix of the names of the bare model, and its family."""
    for mark, family in _MARKS:
        for name in weights:
            if name.endswith(mark) and (len(name) == len(mark) or name[-len(mark) - 1] == "."):
                return name[: -len(mark)], family
    raise UnsupportedModel(
        f"{path} has no layers named as those of BERT, ViT, DeiT or DINOv2 (looked for "
        f"{_MARKS[-1][0]}); export the model with the names of its modules, as "
        "`torch.onnx.export(..., dynamo=False)` does."
    )


class _Layout:
    """Where the parts of a Transformer are in a graph."""

    def __init__(self, graph: Graph, prefix: str, family: str, weights: dict[str, Floats]) -> None:
        self.graph = graph
        self.prefix = prefix
        self.family = "vit" if family == "deit" else family
        self.weights = weights
        self.newer = any(n.startswith(("layers.0.",)) for n in weights) or any(
            ".attention.q_proj." in n for n in weights
        )
        base = "layers" if any(n.startswith("layers.0.") for n in weights) else "encoder.layer"
        self.base = base
        pattern = re.compile(re.escape(base) + r"\.(\d+)\.")
        numbers = {int(m.group(1)) for m in map(pattern.match, weights) if m}
        self.depth = max(numbers) + 1

    def module(self, part: int, layer: int = 0) -> str:
        """Full name of a module of a layer, by its place in the table."""
        table = _MODULES[self.family]
        if self.newer:
            table = (_NEWER[0], table[1], *_NEWER[2:])
        return f"{self.prefix}{self.base}.{layer}.{table[part]}"

    def configuration(self) -> dict[str, Any]:
        """Settings as in a config.json: from the one beside the file, else from the graph."""
        folder = self.graph.path.parent
        for place in (folder, folder.parent if folder.name == "onnx" else folder):
            if (place / "config.json").is_file():
                config = read_json(place / "config.json")
                if "num_attention_heads" in config:
                    return config | {"num_hidden_layers": self.depth, "num_hidden_groups": 1}
        query = self.module(0)
        rows = len(self.weights[query[len(self.prefix) :] + ".weight"])
        heads = self.graph.heads(query, rows)
        if heads is None:
            raise ModelFileInvalid(
                f"the number of heads cannot be read from {self.graph.path}; put the model's "
                "config.json beside it."
            )
        return {
            "num_hidden_layers": self.depth,
            "num_attention_heads": heads,
            "layer_norm_eps": self.graph.epsilon(self.module(1)),
            "hidden_act": self.graph.activation(self.module(2), self.module(3)),
        }

    def embedding(self, names: Names, config: dict[str, Any]) -> Embedding:
        """How words or pixels become tokens."""
        folder = self.graph.path.parent
        if self.family == "bert":
            return token_embedding_of(names, config, str(folder))
        sizes = [s for s in self._input_sizes() if s > 0]
        native = sizes[-1] if sizes else config.get("image_size", 224)
        processor = processor_of(folder)
        if not processor and self.family == "vit":
            processor = {"size": native}
        elif not processor:
            processor = {"crop_size": native, "size": round(native * 256 / 224)}
        return patch_embedding_of(names, config, processor)

    def _input_sizes(self) -> list[int]:
        dims = self.graph.model.graph.input[0].type.tensor_type.shape.dim
        return [int(d.dim_value) for d in dims[2:]]

    def streams(self) -> list[str]:
        """Names of the residual stream before each layer, and after the last."""
        graph = self.graph
        if self.family == "bert":
            entered = [graph.product(self.module(0, i)).input[0] for i in range(self.depth)]
            last = graph.inside(self.module(1, self.depth - 1))[-1].output[0]
            return [*entered, last]
        entered = [graph.inside(self.module(1, i))[0].input[0] for i in range(self.depth)]
        after = graph.inside(f"{self.prefix}layernorm")
        if after:
            return [*entered, after[0].input[0]]
        layer = f"{self.prefix}{self.base}.{self.depth - 1}"
        sums = [n for n in graph.nodes if module_of(n) == layer and n.op_type == "Add"]
        return [*entered, sums[-1].output[0]]


def _checked(stack: Stack, layout: _Layout) -> Stack:
    """The stack with what onnxruntime says about it."""
    try:
        import onnxruntime
    except ImportError:
        note = "not compared: onnxruntime is not installed"
        return replace(stack, numerics_note=note)
    library = f"onnxruntime {onnxruntime.__version__}"
    feed, ours = _feed(stack, layout)
    entered, *left = _outputs(onnxruntime, layout, feed)
    tokens = entered if ours is None else ours
    worst, chain = compare(stack, tokens, entered, left, library)
    note = (
        f"every block within {worst:.1e} of {library}, the chain of {stack.depth} within "
        f"{chain:.1e}, on random input"
    )
    return replace(stack, numerics=worst, numerics_note=note)


def _feed(stack: Stack, layout: _Layout) -> tuple[dict[str, Any], Floats | None]:
    """Random input of the graph, and our tokens of it."""
    rng = np.random.default_rng(0)
    embedding = stack.embedding
    inputs = {item.name: item.type.tensor_type for item in layout.graph.model.graph.input}
    inputs = {n: t for n, t in inputs.items() if n not in layout.graph.arrays}
    if stack.family == "bert":
        size = len(layout.weights["embeddings.word_embeddings.weight"])
        fixed = [int(d.dim_value) for t in inputs.values() for d in t.shape.dim[1:2]]
        longest = len(layout.weights["embeddings.position_embeddings.weight"])
        count = next((n for n in fixed if n > 0), min(TOKENS, longest))
        ids = rng.integers(0, size, (1, count))
        feed = dict.fromkeys(inputs, ids)
        for name in inputs:
            if "mask" in name:
                feed[name] = np.ones_like(ids)
            elif "type" in name:
                feed[name] = np.zeros_like(ids)
            elif "position" in name:
                feed[name] = np.arange(count)[None]
        return feed, embed_words(embedding, ids) if isinstance(embedding, TokenEmbedding) else None
    name, kind = next(iter(inputs.items()))
    dims = [int(d.dim_value) for d in kind.shape.dim]
    channels = layout.weights["embeddings.patch_embeddings.projection.weight"].shape[1]
    size = embedding.size if isinstance(embedding, PatchEmbedding) else 224
    shape = (1, dims[1] or channels, dims[2] or size, dims[3] or size)
    pixels = rng.standard_normal(shape).astype(np.float32)
    made = embed_images(embedding, pixels) if isinstance(embedding, PatchEmbedding) else None
    return {name: pixels}, made


def _outputs(onnxruntime: Any, layout: _Layout, feed: dict[str, Any]) -> list[Floats]:
    """The residual stream before each layer and after the last, by onnxruntime."""
    import onnx

    model, names = layout.graph.model, layout.streams()
    kind = onnx.TensorProto.FLOAT
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_tensor_value_info(n, kind, None) for n in names)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    large = sum(array.nbytes for array in layout.graph.arrays.values()) > LARGEST_FILE
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            onnx.save(model, path, save_as_external_data=large)
            # By way of a file, so that the graph and the session are not in memory together.
            del model
            layout.graph.release()
            session = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"], enable_fallback=False
            )
            return [np.asarray(array) for array in session.run(names, feed)]
    except Exception as error:  # onnxruntime has types of its own
        reason = " ".join(str(error).split())[:200]
        raise UnsupportedModel(
            f"onnxruntime cannot run {layout.graph.path}, so nothing was compared: {reason}. "
            "Load it with `check=False` to do without."
        ) from None

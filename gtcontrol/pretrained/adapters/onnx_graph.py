"""Weights and settings of a Transformer from the graph of an ONNX file.

Exporters rename weights that they have transposed (``onnx::MatMul_1966``); what such a weight is
follows from the node that uses it, whose name is the path of its module:
``/encoder/layer.0/attention/attention/query/MatMul``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ModelFileInvalid, UnsupportedModel
from ..extra import missing
from ..weights import Floats

__all__ = ["Graph", "read_graph"]

_PRODUCTS = ("MatMul", "Gemm")


class Graph:
    """The graph of an ONNX model: its nodes by module, its weights by the names of modules.

    Parameters
    ----------
    model : ModelProto
    path : Path
    """

    def __init__(self, model: Any, path: Path) -> None:
        from onnx import numpy_helper

        self.model = model
        self.path = path
        self.nodes = list(model.graph.node)
        named = [model.graph.initializer, model.graph.input, self.nodes]
        if not all(isinstance(item.name, str) for items in named for item in items):
            raise ValueError("names that are no text")
        self.arrays: dict[str, Floats] = {}
        for tensor in model.graph.initializer:
            array = numpy_helper.to_array(tensor)
            if array.dtype.kind == "f":
                array = np.ascontiguousarray(array, dtype=np.float32)
            self.arrays[tensor.name] = array
        self.constants = dict(self.arrays)
        for node in self.nodes:
            if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
                self.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)

    def weights(self) -> dict[str, Floats]:
        """Return arrays by the name that the exported module had for them."""
        found = {name: a for name, a in self.arrays.items() if not name.startswith("onnx::")}
        for node in self.nodes:
            module = module_of(node)
            if module:
                for name, array in self._of_node(node):
                    found.setdefault(f"{module}.{name}", array)
        return found

    def release(self) -> None:
        """Forget the graph, of which the weights are kept."""
        self.model, self.nodes, self.constants = None, [], {}

    def _of_node(self, node: Any) -> Iterator[tuple[str, Floats]]:
        """Arrays that a node uses, by what they are in its module."""
        given = [self.arrays.get(name) for name in node.input]
        if node.op_type in _PRODUCTS and len(given) > 1 and given[1] is not None:
            if given[1].ndim == 2:
                stored = node.op_type == "Gemm" and attribute(node, "transB", 0)
                yield "weight", given[1] if stored else given[1].T
            if len(given) > 2 and given[2] is not None:
                yield "bias", given[2]
        elif node.op_type in ("LayerNormalization", "Conv"):
            for name, array in zip(("weight", "bias"), given[1:], strict=False):
                if array is not None:
                    yield name, array
        elif node.op_type == "Gather" and given[0] is not None and given[0].ndim == 2:
            yield "weight", given[0]
        elif node.op_type in ("Add", "Mul"):
            own = "bias" if node.op_type == "Add" else "weight"
            scale = module_of(node).rpartition(".")[2].startswith("layer_scale")
            for array in given:
                if array is not None and array.ndim == 1:
                    yield "lambda1" if scale else own, array

    def inside(self, module: str) -> list[Any]:
        """Return the nodes of a module and of those below it, in the order of computation."""
        return [n for n in self.nodes if f"{module_of(n)}.".startswith(f"{module}.")]

    def product(self, module: str) -> Any:
        """Return the node that multiplies by the weights of a module."""
        for node in self.inside(module):
            if node.op_type in _PRODUCTS:
                return node
        raise UnsupportedModel(f"{self.path} has no product of matrices in its module {module}.")

    def positions(self, module: str) -> Floats | None:
        """Return position embeddings (N, d) from the nodes of a module, if an exporter folded them.

        With interpolation, those of the class token and of the patches are stored apart.
        """
        folded = [
            self.arrays[name]
            for node in self.nodes
            if module_of(node) == module and node.op_type in ("Add", "Reshape", "Concat")
            for name in node.input
            if name.startswith("onnx::") and name in self.arrays and self.arrays[name].ndim == 3
        ]
        folded = sorted(folded, key=lambda array: array.shape[1])
        return np.concatenate([a[0] for a in folded]) if folded else None

    def epsilon(self, module: str) -> float:
        """Return the epsilon of a LayerNorm, one node or its parts."""
        for node in self.inside(module):
            if node.op_type == "LayerNormalization":
                return float(attribute(node, "epsilon", 1e-5))
            small = [self.constants[i] for i in node.input if i in self.constants]
            if node.op_type == "Add" and small and small[0].size == 1:
                return float(small[0].item())
        raise UnsupportedModel(f"{self.path} has no LayerNorm in its module {module}.")

    def heads(self, module: str, rows: int) -> int | None:
        """Return the number of heads, from how the queries of a module are reshaped; or None."""
        produced = {output: node for node in self.nodes for output in node.output}
        names = {out for node in self.inside(module) for out in node.output}
        for node in self.nodes:
            if node.op_type != "Reshape" or node.input[0] not in names:
                continue
            shape = self._sizes(node.input[1], produced)[-2:]
            if len(shape) == 2:
                heads, width = shape
                heads = rows // width if heads == -1 and width > 0 else heads
                if heads > 0 and rows % heads == 0 and width in (-1, rows // heads):
                    return heads
        return None

    def _sizes(self, name: str, produced: dict[str, Any]) -> list[int]:
        """Entries of a shape that is a constant, or put together from constants; 0 if unknown."""
        if name in self.constants:
            return [int(v) for v in self.constants[name].reshape(-1)]
        node = produced.get(name)
        if node is not None and node.op_type == "Concat":
            return [size for part in node.input for size in self._sizes(part, produced) or [0]]
        return []

    def activation(self, start: str, stop: str) -> str:
        """Return the name of the activation between the products of two modules."""
        target = self.product(stop).input[0]
        reached, kinds = {target}, set()
        begin = {out for node in self.inside(start) for out in node.output}
        for node in reversed(self.nodes):
            if reached.isdisjoint(node.output) or not begin.isdisjoint(node.output):
                continue
            kinds.add(node.op_type)
            reached.update(node.input)
            if node.op_type == "Gelu" and attribute(node, "approximate", b"none") == b"tanh":
                kinds.add("Tanh")
        named = {"Erf": "gelu", "Tanh": "gelu_tanh", "Gelu": "gelu", "Relu": "relu"}
        if "Tanh" in kinds and "Mul" not in kinds and "Gelu" not in kinds:
            return "tanh"
        for kind in ("Erf", "Tanh", "Gelu", "Relu"):
            if kind in kinds:
                return named[kind]
        if "Sigmoid" in kinds:
            return "silu" if "Mul" in kinds else "sigmoid"
        raise UnsupportedModel(
            f"{self.path} has the operations {', '.join(sorted(kinds)) or 'none'} between {start} "
            f"and {stop}; this is no activation that is known here."
        )


def module_of(node: Any) -> str:
    """Return the module that a node belongs to, as a dotted name; empty if its name has none."""
    parts = str(node.name).strip("/").split("/")
    return ".".join(parts[:-1]) if str(node.name).startswith("/") else ""


def attribute(node: Any, name: str, default: Any) -> Any:
    """Return the value of an attribute of a node."""
    from onnx import helper

    for item in node.attribute:
        if item.name == name:
            return helper.get_attribute_value(item)
    return default


def read_graph(path: Path) -> Graph:
    """Return the graph of an ONNX file.

    Raises
    ------
    ModelFileInvalid
        If the file is damaged.
    MissingPackage
        If onnx is not installed.
    """
    try:
        import onnx
    except ImportError:
        raise missing("onnx", f"reading {path.name}") from None
    try:
        model = onnx.load(path)
        return Graph(model, path)
    except Exception as error:  # of protobuf, among others
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        raise ModelFileInvalid(f"{path} is damaged or no ONNX file: {reason}.") from None

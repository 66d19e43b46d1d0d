"""Models from ONNX files, exported here from small random ones."""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import pytest

import gtcontrol as gt
from gtcontrol.errors import MissingPackage, ModelFileInvalid, UnsupportedModel
from tests import real_models, tiny_models

real_models.require()

import onnx  # noqa: E402
import torch  # noqa: E402

load = gt.pretrained.load

VARIANTS = ("bert", "bert-tanh", "vit", "deit", "dinov2")


class Named(torch.nn.Module):
    """A model inside another, so that names get a prefix, as exporters see it."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.inside = model

    def forward(self, value: torch.Tensor, attention_mask: torch.Tensor | None = None):
        if attention_mask is None:
            return self.inside(pixel_values=value).last_hidden_state
        return self.inside(input_ids=value, attention_mask=attention_mask).last_hidden_state


def export(variant, path, opset=17, **changes):
    model = tiny_models.build(variant, **changes)
    words = "bert" in variant
    value = torch.randint(0, 60, (1, 12)) if words else torch.randn(1, 3, 16, 16)
    given = (value, torch.ones(1, 12, dtype=torch.int64)) if words else (value,)
    inputs = ["input_ids", "attention_mask"] if words else ["pixel_values"]
    axes = {name: {0: "batch", 1: "length"} if words else {0: "batch"} for name in inputs}
    with warnings.catch_warnings(), tiny_models.silence():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Named(model), given, str(path), input_names=inputs, dynamic_axes=axes,
            opset_version=opset, dynamo=False,
        )  # fmt: skip
    return model


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    made = {}

    def get(variant):
        if variant not in made:
            path = tmp_path_factory.mktemp("onnx") / f"{variant}.onnx"
            made[variant] = path, export(variant, path)
        return made[variant]

    return get


@pytest.mark.parametrize("variant", VARIANTS)
def test_weights_are_those_that_were_exported(exported, tmp_path, variant):
    path, model = exported(variant)
    ours = load(path)
    theirs = load(tiny_models.save(model, tmp_path), check=False)
    assert ours.family == theirs.family
    assert ours.ignored == ()
    for a, b in zip(ours.blocks, theirs.blocks, strict=True):
        assert np.array_equal(a.attention.query, b.attention.query)
        assert np.array_equal(a.attention.value_bias, b.attention.value_bias)
        assert np.array_equal(a.attention.output, b.attention.output)
        assert np.array_equal(a.mlp.inner, b.mlp.inner)
        assert np.array_equal(a.mlp.outer, b.mlp.outer)
        assert a.mlp.activation == b.mlp.activation
        assert np.array_equal(a.norm_mlp.bias, b.norm_mlp.bias)
        assert a.norm_mlp.epsilon == pytest.approx(b.norm_mlp.epsilon)
        assert (a.scale_mlp is None) == (b.scale_mlp is None)
    onnxruntime = pytest.importorskip("onnxruntime")
    assert ours.numerics < 1e-5
    assert f"onnxruntime {onnxruntime.__version__}" in ours.numerics_note


def test_norms_in_parts_are_read(tmp_path):
    """Before opset 17 LayerNorm is several nodes."""
    path = tmp_path / "old.onnx"
    model = export("bert", path, opset=14, layer_norm_eps=1e-4)
    assert {n.op_type for n in onnx.load(path).graph.node}.isdisjoint({"LayerNormalization"})
    stack = load(path, check=False)
    assert stack.blocks[0].norm_mlp.epsilon == pytest.approx(1e-4)
    bias = model.encoder.layer[0].output.LayerNorm.bias.detach().numpy()
    assert np.array_equal(stack.blocks[0].norm_mlp.bias, bias)


def test_without_onnxruntime_it_says_that_nothing_was_compared(exported, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    stack = load(exported("vit")[0])
    assert np.isnan(stack.numerics)
    assert "onnxruntime is not installed" in stack.numerics_note


def test_without_onnx_it_says_what_to_install(exported, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingPackage, match="onnx is not installed"):
        load(exported("vit")[0])


def test_a_wrong_weight_is_noticed(exported, tmp_path):
    """The check is against the graph: here the heads are said to be others than they are."""
    pytest.importorskip("onnxruntime")
    path = tmp_path / "model.onnx"
    path.write_bytes(exported("bert")[0].read_bytes())
    config = {"num_attention_heads": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UnsupportedModel, match="block 1 of model differs from onnxruntime"):
        load(path)


def test_a_graph_that_does_not_run_is_said_not_to(exported, tmp_path):
    pytest.importorskip("onnxruntime")
    model = onnx.load(exported("vit")[0])
    node = next(n for n in model.graph.node if n.op_type == "Softmax")
    node.op_type = "NoSuchOperation"
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(UnsupportedModel, match="onnxruntime cannot run") as error:
        load(path)
    assert "\n" not in str(error.value)
    assert load(path, check=False).depth == 3


def test_damaged_files_are_noticed(exported, tmp_path):
    whole = exported("dinov2")[0].read_bytes()
    path = tmp_path / "model.onnx"
    for part in (whole[: len(whole) // 2], b"not onnx at all", b""):
        path.write_bytes(part)
        with pytest.raises((ModelFileInvalid, UnsupportedModel)) as error:
            load(path)
        assert "\n" not in str(error.value)


def test_other_graphs_are_refused(tmp_path):
    path = tmp_path / "plain.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(torch.nn.Linear(3, 2), (torch.ones(1, 3),), str(path), dynamo=False)
    with pytest.raises(UnsupportedModel, match="no layers named as those of BERT, ViT"):
        load(path)


def test_a_folder_with_one_file_is_enough(exported, tmp_path):
    (tmp_path / "small.onnx").write_bytes(exported("vit")[0].read_bytes())
    assert load(tmp_path, check=False).name == "small"
    settings = {"num_attention_heads": 3, "layer_norm_eps": 1e-3, "model_type": "vit"}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    stack = load(tmp_path, check=False)  # with the settings that stand beside it
    assert stack.name == "small"
    assert stack.blocks[0].norm_mlp.epsilon == 1e-3

"""Loading models: every architecture against transformers, names, refusals and damage."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gtcontrol as gt
from gtcontrol.errors import (
    GtcontrolError,
    InvalidShape,
    MissingPackage,
    ModelFileInvalid,
    NotFinite,
    UnsupportedModel,
)
from tests import real_models, tiny_models

real_models.require()

import safetensors.torch  # noqa: E402
import torch  # noqa: E402

from gtcontrol.pretrained.adapters import names, numerics  # noqa: E402
from gtcontrol.pretrained.entrance import embed_images, embed_words  # noqa: E402

load = gt.pretrained.load


def one_line(error: pytest.ExceptionInfo[GtcontrolError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 500
    return text


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Variant -> folder with its checkpoint, made when it is first asked for."""
    made: dict[str, tuple[Path, object]] = {}

    def folder(variant: str) -> tuple[Path, object]:
        if variant not in made:
            model = tiny_models.build(variant)
            made[variant] = tiny_models.save(model, tmp_path_factory.mktemp(variant)), model
        return made[variant]

    return folder


def copy(folder: Path, to: Path) -> Path:
    to.mkdir(exist_ok=True)
    for path in folder.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    return to


def change_config(folder: Path, **changes: object) -> Path:
    path = folder / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(config))
    return folder


# -- the same numbers as transformers --------------------------------------------------------


@pytest.mark.parametrize("variant", sorted(tiny_models.VARIANTS))
def test_hidden_states_are_those_of_transformers(folders, variant):
    folder, model = folders(variant)
    stack = load(folder)
    assert stack.numerics < 1e-5
    assert "transformers" in stack.numerics_note
    given, states = tiny_models.run(model)
    if "pixel_values" in given:
        tokens = embed_images(stack.embedding, given["pixel_values"])
    else:
        tokens = embed_words(stack.embedding, given["input_ids"])
    assert relative(tokens, states[0]) < 1e-5
    # The library's last state may have gone through the last norm already.
    records = stack.run(tokens, ("output",))
    assert stack.depth == len(records)
    inner = [r.output for r in records[:-1]]
    if len(states) == stack.depth + 1:  # ALBERT lists groups of layers only
        for ours, theirs in zip(inner, states[1:-1], strict=True):
            assert relative(ours, theirs) < 1e-5
    last = records[-1].output
    ends = [last] if stack.final_norm is None else [last, normed(stack.final_norm, last)]
    assert min(relative(end, states[-1]) for end in ends) < 1e-5


def relative(ours, theirs):
    gap = np.linalg.norm(ours - theirs, axis=-1) / np.linalg.norm(theirs, axis=-1)
    return float(gap.max())


def normed(norm, x):
    x = x.astype(float)
    centred = x - x.mean(-1, keepdims=True)
    return (
        centred / np.sqrt(centred.var(-1, keepdims=True) + norm.epsilon) * norm.weight + norm.bias
    )


@pytest.mark.parametrize("variant", ["modernbert", "modernbert-bias"])
def test_without_positions_modernbert_is_the_library_at_position_zero(folders, variant):
    folder, model = folders(variant)
    stack = load(folder)
    given, states = tiny_models.run(model, positions=False)
    tokens = embed_words(stack.embedding, given["input_ids"])
    outputs = [r.output for r in stack.run(tokens, ("output",), positions=False)]
    assert relative(outputs[0], states[1]) < 1e-5
    assert relative(outputs[1], states[2]) < 1e-5
    assert relative(stack.run(tokens, ("output",))[1].output, states[2]) > 1e-3
    assert "with positions and without" in stack.numerics_note


def test_the_parts_of_an_architecture_are_found(folders):
    stacks = {name: load(folders(name)[0]) for name in tiny_models.VARIANTS}
    assert stacks["albert"].shared
    assert stacks["albert"].depth == 3
    assert not stacks["albert-groups"].shared
    assert [id(b) for b in stacks["albert-groups"].blocks].count(
        id(stacks["albert-groups"].blocks[0])
    ) == 2
    assert stacks["albert-inner"].depth == 6
    assert {s.blocks[0].placement for n, s in stacks.items() if "bert" in n[:6]} == {"post"}
    assert stacks["vit"].blocks[0].placement == "pre"
    assert stacks["dinov2"].blocks[1].scale_mlp is not None
    assert stacks["dinov2-gated"].blocks[1].mlp.gated
    modern = stacks["modernbert"].blocks
    assert modern[0].norm_attention is None
    assert modern[1].norm_attention is not None
    assert [b.window for b in modern] == [None, 4, 4]
    assert [b.rope.theta for b in modern] == [160000.0, 10000.0, 10000.0]
    assert modern[0].mlp.gated
    assert len(stacks["deit"].embedding.special) == 2
    assert stacks["bert-tanh"].blocks[0].mlp.activation == "gelu_tanh"


@pytest.mark.parametrize("variant", tiny_models.FAMILIES)
def test_what_a_configuration_leaves_out_is_the_librarys_default(folders, tmp_path, variant):
    copy(folders(variant)[0], tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    for key in ("layer_norm_eps", "norm_eps", "hidden_act", "hidden_activation", "rope_parameters"):
        config.pop(key, None)
    path.write_text(json.dumps(config))
    stack, whole = load(tmp_path), load(folders(variant)[0])
    epsilon = {"dinov2": 1e-6, "modernbert": 1e-5}.get(variant, 1e-12)
    assert stack.blocks[1].norm_mlp.epsilon == epsilon
    assert stack.blocks[1].mlp.activation == whole.blocks[1].mlp.activation
    assert stack.blocks[1].rope == whole.blocks[1].rope


def test_weights_are_not_copied(folders):
    stack = load(folders("bert")[0], check=False)
    first = stack.blocks[0].attention.query
    assert not first.flags.owndata
    assert not first.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0, 0] = 1.0


def test_weights_in_half_precision_are_read(folders, tmp_path):
    folder, _ = folders("bert")
    copy(folder, tmp_path)
    path = tmp_path / "model.safetensors"
    weights = {k: v.to(torch.bfloat16) for k, v in safetensors.torch.load_file(path).items()}
    safetensors.torch.save_file(weights, path, metadata={"format": "pt"})
    stack = load(tmp_path)
    full = load(folder, check=False)
    assert stack.blocks[0].mlp.inner.dtype == np.float32
    assert stack.blocks[0].mlp.inner == pytest.approx(full.blocks[0].mlp.inner, rel=0.01)


def test_loading_says_nothing_and_leaves_the_settings_of_the_library(folders, capfd):
    import logging

    import transformers

    logs = transformers.utils.logging
    before = logs.get_verbosity(), logs.is_progress_bar_enabled(), logging.root.level
    load(folders("vit")[0])
    assert capfd.readouterr() == ("", "")
    assert before == (logs.get_verbosity(), logs.is_progress_bar_enabled(), logging.root.level)


# -- the check sees what is wrong ------------------------------------------------------------


def swapped(block):
    a = block.attention
    return replace(block, attention=replace(a, query=a.key, key=a.query))


def shifted(block):
    return replace(block, norm_mlp=replace(block.norm_mlp, epsilon=0.1))


def otherwise(block):
    return replace(block, mlp=replace(block.mlp, activation="gelu_tanh"))


@pytest.mark.parametrize("change", [swapped, shifted, otherwise])
@pytest.mark.parametrize("variant", ["bert", "vit"])
def test_a_wrong_block_is_noticed(folders, variant, change):
    folder, model = folders(variant)
    stack = load(folder, check=False)
    assert np.isnan(stack.numerics)
    assert numerics.check_against_module(stack, model)[0] < 1e-5
    blocks = (stack.blocks[0], change(stack.blocks[1]), *stack.blocks[2:])
    with pytest.raises(UnsupportedModel, match=r"block 2 of .* differs from transformers") as error:
        numerics.check_against_module(replace(stack, blocks=blocks), model)
    one_line(error)


def test_wrong_rotary_positions_and_windows_are_noticed(folders):
    folder, model = folders("modernbert")
    stack = load(folder, check=False)
    for wrong in (
        replace(stack.blocks[1], window=5),
        replace(stack.blocks[1], window=None),
        replace(stack.blocks[1], rope=gt.pretrained.Rope(10500.0)),
    ):
        changed = replace(stack, blocks=(stack.blocks[0], wrong, stack.blocks[2]))
        with pytest.raises(UnsupportedModel, match="block 2"):
            numerics.check_against_module(changed, model)


def test_a_wrong_embedding_is_noticed(folders):
    folder, model = folders("bert")
    stack = load(folder, check=False)
    wrong = replace(stack.embedding, kind=2 * stack.embedding.kind)
    with pytest.raises(UnsupportedModel, match="the embedding of"):
        numerics.check_against_module(replace(stack, embedding=wrong), model)


# -- names -----------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", tiny_models.FAMILIES)
def test_names_of_modules_are_read_as_those_of_files(folders, tmp_path, variant):
    """Files have the names of transformers 4, modules those of the installed version."""
    folder, model = folders(variant)
    copy(folder, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    assert same(load(tmp_path), load(folder))


@pytest.mark.parametrize("variant", tiny_models.FAMILIES)
def test_names_that_transformers_does_not_know_are_translated(folders, tmp_path, variant):
    folder, model = folders(variant)
    copy(folder, tmp_path)
    path = tmp_path / "model.safetensors"
    weights = {f"backbone.{k}": v for k, v in safetensors.torch.load_file(path).items()}
    assert not set(weights) & set(model.state_dict())
    safetensors.torch.save_file(weights, path, metadata={"format": "pt"})
    assert same(load(tmp_path), load(folder))


def same(first, second):
    pairs = zip(first.blocks, second.blocks, strict=True)
    return all(
        np.array_equal(a.attention.query, b.attention.query)
        and np.array_equal(a.attention.output_bias, b.attention.output_bias)
        and np.array_equal(a.mlp.inner, b.mlp.inner)
        and np.array_equal(a.norm_mlp.weight, b.norm_mlp.weight)
        for a, b in pairs
    )


PAIRS = [
    ("vit", "encoder.layer.7.attention.attention.key.bias", "layers.7.attention.k_proj.bias"),
    ("vit", "encoder.layer.7.attention.output.dense.weight", "layers.7.attention.o_proj.weight"),
    ("vit", "encoder.layer.11.intermediate.dense.weight", "layers.11.mlp.fc1.weight"),
    ("deit", "encoder.layer.0.output.dense.bias", "layers.0.mlp.fc2.bias"),
    ("deit", "encoder.layer.0.layernorm_after.bias", "layers.0.layernorm_after.bias"),
    ("dinov2", "encoder.layer.2.attention.attention.value.weight",
     "encoder.layer.2.attention.v_proj.weight"),
]  # fmt: skip


@pytest.mark.parametrize(("family", "old", "new"), PAIRS)
def test_names_of_both_generations_mean_the_same(family, old, new):
    assert names.translated(family, old, {new: 0, "other": 0}) == new
    assert names.translated(family, new, {old: 0, "other": 0}) == old
    assert names.translated(family, f"model.{family}.{old}", {new: 0}) == new
    assert names.translated(family, old.replace("encoder", "decoder"), {new: 0}) is None


def test_old_names_of_norms_are_known():
    new = "encoder.layer.1.output.LayerNorm.weight"
    old = "bert.encoder.layer.1.output.LayerNorm.gamma"
    assert names.translated("bert", old, {new: 0}) == new


def test_unknown_weights_are_listed(folders, tmp_path):
    folder, _ = folders("bert")
    copy(folder, tmp_path)
    path = tmp_path / "model.safetensors"
    weights = safetensors.torch.load_file(path) | {"adapter.down.weight": torch.ones(3, 24)}
    safetensors.torch.save_file(weights, path, metadata={"format": "pt"})
    assert "adapter.down.weight" in load(tmp_path).ignored
    assert "pooler.dense.weight" in load(tmp_path).ignored


def test_a_checkpoint_in_several_files_is_read(folders, tmp_path):
    folder, model = folders("vit")
    with tiny_models.silence():
        model.save_pretrained(tmp_path, max_shard_size="20KB")
    assert (tmp_path / "model.safetensors.index.json").is_file()
    assert same(load(tmp_path), load(folder))


# -- refusals --------------------------------------------------------------------------------

REFUSED = [
    ({"model_type": "gpt2"}, "gpt2 model with a causal mask"),
    ({"model_type": "bert", "is_decoder": True}, "bert model with a causal mask"),
    ({"model_type": "bert", "add_cross_attention": True}, "bert model with cross-attention"),
    ({"model_type": "t5", "is_encoder_decoder": True}, "t5 model with cross-attention"),
    (
        {"model_type": "llama", "num_attention_heads": 32, "num_key_value_heads": 8},
        r"llama model with a causal mask and grouped keys \(8 for 32 heads\)",
    ),
    (
        {"model_type": "eurobert", "num_attention_heads": 12, "num_key_value_heads": 4},
        r"eurobert model with grouped keys \(4 for 12 heads\)",
    ),
    ({"model_type": "convnext"}, "convnext model, for which there is no adapter"),
    ({"model_type": "bert", "position_embedding_type": "relative_key"}, "'relative_key'"),
]


@pytest.mark.parametrize(("config", "reason"), REFUSED)
def test_models_beyond_the_theory_are_refused_by_name(tmp_path, config, reason):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UnsupportedModel, match=reason) as error:
        load(tmp_path)
    assert tmp_path.name in one_line(error)


def test_an_unknown_activation_is_refused(folders, tmp_path):
    copy(folders("bert")[0], tmp_path)
    change_config(tmp_path, hidden_act="mish")
    with pytest.raises(UnsupportedModel, match="the activation 'mish'") as error:
        load(tmp_path)
    one_line(error)


def test_scaled_rotary_positions_are_refused(folders, tmp_path):
    copy(folders("modernbert")[0], tmp_path)
    kinds = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}
    change_config(tmp_path, rope_parameters={"full_attention": kinds, "sliding_attention": kinds})
    with pytest.raises(UnsupportedModel, match="rotary positions"):
        load(tmp_path)


# -- damage ----------------------------------------------------------------------------------


def broken(tmp_path: Path, match: str) -> str:
    with pytest.raises(ModelFileInvalid, match=match) as error:
        load(tmp_path)
    return one_line(error)


def test_a_cut_file_is_noticed(folders, tmp_path):
    copy(folders("bert")[0], tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])
    assert "model.safetensors" in broken(tmp_path, "damaged")


def test_a_cut_file_of_torch_is_noticed(folders, tmp_path):
    folder, model = folders("bert")
    copy(folder, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    path = tmp_path / "pytorch_model.bin"
    torch.save(model.state_dict(), path)
    whole = path.read_bytes()
    for part in (len(whole) // 2, 100, 0):
        path.write_bytes(whole[:part])
        broken(tmp_path, "pytorch_model.bin is damaged")


class Harmful:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("writer", ["pickle", "torch"])
def test_code_in_a_checkpoint_is_not_run(folders, tmp_path, writer):
    folder, model = folders("bert")
    copy(folder, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    mark, path = tmp_path / "ran", tmp_path / "pytorch_model.bin"
    content = model.state_dict() | {"extra": Harmful(mark)}
    if writer == "torch":
        torch.save(content, path)
        broken(tmp_path, "loading them could run code")
    else:
        path.write_bytes(pickle.dumps(Harmful(mark)))
        broken(tmp_path, "damaged or no checkpoint|could run code")
    assert not mark.exists()


def test_code_named_by_a_configuration_is_not_run(folders, tmp_path):
    copy(folders("bert")[0], tmp_path)
    mark = tmp_path / "ran"
    (tmp_path / "own.py").write_text(f"open({str(mark)!r}, 'w')\nclass Model: pass\n")
    change_config(tmp_path, auto_map={"AutoModel": "own.Model", "AutoConfig": "own.Model"})
    assert load(tmp_path).numerics < 1e-5
    assert not mark.exists()


def test_a_missing_weight_is_named(folders, tmp_path):
    copy(folders("vit")[0], tmp_path)
    path = tmp_path / "model.safetensors"
    weights = safetensors.torch.load_file(path)
    gone = next(name for name in weights if "layernorm_after.weight" in name)
    del weights[gone]
    safetensors.torch.save_file(weights, path, metadata={"format": "pt"})
    assert "layernorm_after.weight" in broken(tmp_path, "lacks 1 of")


def test_a_weight_of_another_shape_is_named(folders, tmp_path):
    copy(folders("bert")[0], tmp_path)
    change_config(tmp_path, intermediate_size=41)
    # Older versions of transformers do not say which shapes.
    match = r"has (shape \(40,.*|another shape .*)config.json asks for"
    assert "intermediate.dense" in broken(tmp_path, match)


@pytest.mark.parametrize("part", ["0.attention.self.key.weight", "word_embeddings.weight"])
def test_weights_that_are_not_finite_are_noticed(folders, tmp_path, part):
    copy(folders("bert")[0], tmp_path)
    path = tmp_path / "model.safetensors"
    weights = safetensors.torch.load_file(path)
    name = next(n for n in weights if part in n)
    weights[name][1, 2] = torch.nan
    safetensors.torch.save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(NotFinite, match=rf"the weight \S*{part} in .*model.safetensors holds nan"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"num_attention_heads": 5}, "5"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"num_hidden_layers": "three"}, "num_hidden_layers|three"),
        ({"layer_norm_eps": "small"}, "epsilon|layer_norm_eps"),
        ({"model_type": None}, "no `model_type`"),
    ],
)
def test_nonsense_in_a_configuration_is_noticed(folders, tmp_path, changes, match):
    copy(folders("bert")[0], tmp_path)
    change_config(tmp_path, **changes)
    broken(tmp_path, match)


def test_other_files_are_no_model(tmp_path):
    broken(tmp_path, "has no config.json")
    (tmp_path / "config.json").write_text("{")
    broken(tmp_path, "cannot be read as JSON")
    (tmp_path / "config.json").write_text("[]")
    broken(tmp_path, "expected a JSON object")
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 1, "hidden_size": 4}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", **sizes}))
    broken(tmp_path, "holds no weights")
    (tmp_path / "model.safetensors.index.json").write_text(
        '{"weight_map": {"a": "../elsewhere.safetensors"}}'
    )
    broken(tmp_path, "not in the same folder")
    with pytest.raises(ModelFileInvalid, match="give the folder of a checkpoint"):
        load(tmp_path / "config.json")
    with pytest.raises(ModelFileInvalid, match="no folder, no ONNX file"):
        load(tmp_path / "missing")
    with pytest.raises(ModelFileInvalid, match="`source` must be"):
        load("")


def test_a_package_that_is_not_installed_is_named():
    with pytest.raises(MissingPackage, match="no-such-package"):
        load("package:no-such-package")


def test_without_torch_one_line_says_what_to_install(monkeypatch, folders):
    folder, _ = folders("bert")
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(MissingPackage, match=r"gtcontrol\[pretrained\]"):
        load(folder)


def test_a_block_of_unequal_widths_is_refused(folders):
    bert, other = load(folders("bert")[0], check=False), gt.pretrained.Norm
    ones = np.ones(5, dtype=np.float32)
    with pytest.raises(InvalidShape, match="`norm_mlp` has width 5"):
        replace(bert.blocks[0], norm_mlp=other(ones, ones, 1e-5))

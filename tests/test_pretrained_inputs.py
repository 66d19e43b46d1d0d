"""Tokens of texts, images and arrays, as the models' own libraries make them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import gtcontrol as gt
from gtcontrol.errors import (
    InvalidMethod,
    InvalidNumber,
    InvalidShape,
    ModelFileInvalid,
    TooLarge,
)
from tests import real_models, tiny_models

real_models.require()

import torch  # noqa: E402
from PIL import Image  # noqa: E402

from gtcontrol.pretrained.adapters.tokenizer import tokenizer_of  # noqa: E402
from gtcontrol.pretrained.entrance import embed_images, embed_words, interpolated  # noqa: E402
from gtcontrol.pretrained.extra import shortened  # noqa: E402
from gtcontrol.pretrained.images import image_files, prepare, read_crops  # noqa: E402
from gtcontrol.pretrained.samples import (  # noqa: E402
    sample_photograph,
    sample_reactions,
    sample_text,
)

embeddings = gt.pretrained.embeddings

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "mat", "on", "##s", "."]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A small BERT with a tokenizer of word pieces."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    folder = tiny_models.save(tiny_models.build("bert"), tmp_path_factory.mktemp("bert"))
    own = Tokenizer(models.WordPiece({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    own.normalizer = normalizers.Lowercase()
    own.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    own.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    own.save(str(folder / "tokenizer.json"))
    (folder / "special_tokens_map.json").write_text('{"unk_token": "[UNK]"}')
    return gt.pretrained.load(folder, check=False)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A small ViT and a small DINOv2."""
    made = []
    for variant in ("vit", "dinov2"):
        folder = tiny_models.save(tiny_models.build(variant), tmp_path_factory.mktemp(variant))
        made.append(gt.pretrained.load(folder, check=False))
    return made


TEXT = "The cat sat on the mat. The cats sat. " * 30


# -- text ------------------------------------------------------------------------------------


def test_text_becomes_the_tokens_of_the_model(bert, tmp_path):
    path = tmp_path / "cats.txt"
    path.write_text(TEXT)
    with pytest.warns(UserWarning, match=r"asked for 100 sequences, used 45: .*cats.txt has no"):
        x = embeddings(bert, "real", path, sequences=100, tokens=10)
    # 12 words in a repetition ("cats" is two), 8 of them in a sequence between [CLS] and [SEP].
    assert x.shape == (45, 10, 24)
    ids = [[2, 5, 6, 7, 9, 5, 8, 11, 5, 3]]
    assert np.array_equal(x[0], embed_words(bert.embedding, np.array(ids))[0])
    fewer = embeddings(bert, "real", path, sequences=3, tokens=10, rng=1)
    assert fewer.shape == (3, 10, 24)
    assert all(any(np.array_equal(f, y) for y in x) for f in fewer)
    assert np.array_equal(fewer, embeddings(bert, "real", path, sequences=3, tokens=10, rng=1))


def test_texts_that_do_not_fit_are_refused(bert, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the cat sat")
    with pytest.raises(ModelFileInvalid, match="has 3 words of the vocabulary, and one sequence"):
        embeddings(bert, "real", path, tokens=10)
    path.write_text("colourless green ideas sleep furiously " * 20)
    with pytest.raises(ModelFileInvalid, match="does not know 100% of the words"):
        embeddings(bert, "real", path, tokens=10)
    path.write_bytes(b"\xff\xfe\x00 not text \xff")
    with pytest.raises(ModelFileInvalid, match="cannot be read as text"):
        embeddings(bert, "real", path)
    with pytest.raises(ModelFileInvalid, match="there is no file or folder"):
        embeddings(bert, "real", tmp_path / "missing.txt")
    path.write_text(TEXT)
    with pytest.warns(UserWarning, match="asked for 4000 tokens, used 48: the model has 48 pos"):
        x = embeddings(bert, "real", path, tokens=4000)
    with pytest.raises(ModelFileInvalid, match="2 tokens have no room for words beside the 2"):
        embeddings(bert, "real", path, tokens=2)
    assert x.shape[1] == 48


def test_words_beyond_the_vocabulary_or_the_positions_are_refused(bert):
    with pytest.raises(InvalidNumber, match="`ids` holds 60; the vocabulary has the numbers 0 to"):
        embed_words(bert.embedding, np.array([[1, 60]]))
    with pytest.raises(InvalidShape, match="the model has 48 positions"):
        embed_words(bert.embedding, np.zeros((1, 49), dtype=int))
    with pytest.raises(InvalidShape, match="whole numbers"):
        embed_words(bert.embedding, np.ones((1, 4)))


def test_a_model_without_a_tokenizer_says_so(bert):
    alone = replace(bert, embedding=replace(bert.embedding, tokenizer=""))
    with pytest.raises(ModelFileInvalid, match="no folder with a tokenizer"):
        embeddings(alone)
    with pytest.raises(InvalidMethod, match="has no embedding"):
        embeddings(replace(bert, embedding=None))


@pytest.mark.parametrize("kind", ["real", "isotropic"])
def test_a_folder_without_a_tokenizer_says_so(bert, tmp_path, kind):
    alone = replace(bert, embedding=replace(bert.embedding, tokenizer=str(tmp_path)))
    with pytest.raises(ModelFileInvalid, match=r"no files of a tokenizer \(tokenizer.json, vocab"):
        embeddings(alone, kind)
    np.save(tmp_path / "ids.npy", np.arange(40).reshape(4, 10))
    assert embeddings(alone, kind, tmp_path / "ids.npy", tokens=None).shape[2] == 24


def test_what_libraries_say_is_cut_between_words():
    assert shortened(ValueError("one two  three.")) == "one two three"
    assert shortened(ValueError("one two three four"), 10) == "one two …"
    assert shortened(ValueError("x" * 40), 10) == "xxxxxxxx …"
    assert shortened(ValueError()) == "ValueError"


def test_vocabularies_of_chemistry_are_matched_greedily(tmp_path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "C", "Cl", "c", "1", "(", ")", "=", "O", ".",
             ">>", "[nH]", "[OH-]", "Br"]  # fmt: skip
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    own = tokenizer_of(str(tmp_path))
    made = [words[i] for i in own.numbers("CCl.[OH-]>>CO\n[nH]1X")]
    assert made == ["C", "Cl", ".", "[OH-]", ">>", "C", "O", "[SEP]", "[nH]", "1", "[UNK]", "[SEP]"]
    assert (own.begin, own.end, own.unknown, own.reads_reactions) == ((2,), (3,), 1, True)


def test_a_damaged_tokenizer_is_named(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelFileInvalid, match="no tokenizer that can be read") as error:
        tokenizer_of(str(tmp_path))
    assert "\n" not in str(error.value)


# -- images ----------------------------------------------------------------------------------


def photograph():
    with Image.open(sample_photograph()) as image:
        return image.convert("RGB").resize((150, 180))


PROCESSORS = {
    "ViTImageProcessor": ("vit", {"size": {"height": 16, "width": 16}, "resample": 2}),
    "DeiTImageProcessor": (
        "vit",
        {"size": {"height": 20, "width": 20}, "crop_size": {"height": 16, "width": 16},
         "do_center_crop": True, "resample": 3, "image_mean": [0.485, 0.456, 0.406],
         "image_std": [0.229, 0.224, 0.225]},
    ),
    "BitImageProcessor": (
        "dinov2",
        {"size": {"shortest_edge": 21}, "crop_size": {"height": 16, "width": 16},
         "do_center_crop": True, "resample": 3, "image_mean": [0.5, 0.4, 0.3],
         "image_std": [0.2, 0.3, 0.4]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("processor", PROCESSORS)
def test_pixels_are_those_of_the_librarys_processor(processor, tmp_path):
    import transformers

    variant, settings = PROCESSORS[processor]
    tiny_models.save(tiny_models.build(variant), tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    stack = gt.pretrained.load(tmp_path, check=False)
    image = photograph()
    with tiny_models.silence():
        try:
            own = getattr(transformers, f"{processor}Pil")(**settings)
        except AttributeError:  # transformers 4
            own = getattr(transformers, processor)(**settings)
        wanted = np.asarray(own(image, return_tensors="np")["pixel_values"])[0]
    assert prepare(stack.embedding, image) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"image_mean": 0.5}, "`image_mean` must be 3 numbers"),
        ({"image_std": [0.2, 0.0, 0.2]}, "`image_std` must be 3 positive numbers"),
        ({"resample": "cubic"}, "`resample` must be one of"),
        ({"size": {"height": 16, "width": 20}}, "`size` must be the edge of a square"),
        ({"size": 10**6}, "`size` must be the edge of a square, 1 to 4096"),
        ({"size": 18}, "images of 18 pixels do not split into patches of 4"),
    ],
)
def test_nonsense_about_pixels_is_noticed(settings, match, tmp_path):
    tiny_models.save(tiny_models.build("vit"), tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelFileInvalid, match=match) as error:
        gt.pretrained.load(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("variant", ["vit", "deit", "dinov2"])
def test_positions_are_interpolated_as_the_library_does(variant, tmp_path):
    model = tiny_models.build(variant)
    stack = gt.pretrained.load(tiny_models.save(model, tmp_path), check=False)
    pixels = np.random.default_rng(0).standard_normal((2, 3, 28, 28)).astype(np.float32)
    options = {} if variant == "dinov2" else {"interpolate_pos_encoding": True}
    with torch.no_grad():
        wanted = model.embeddings(torch.from_numpy(pixels), **options).numpy()
    assert embed_images(stack.embedding, pixels) == pytest.approx(wanted, abs=1e-5)
    assert np.array_equal(interpolated(stack.embedding, 4), stack.embedding.positions)


def test_images_of_a_folder_are_read_in_order(images, tmp_path):
    for i, colour in enumerate(["red", "green", "blue", "white"]):
        Image.new("RGB", (40, 30), colour).save(tmp_path / f"{i}.png")
    (tmp_path / "notes.txt").write_text("no image")
    files = image_files(tmp_path)
    assert [f.name for f in files] == ["0.png", "1.png", "2.png", "3.png"]
    embedding, rng = images[0].embedding, np.random.default_rng(0)
    pixels = read_crops(embedding, files, 4, rng)
    mean, deviation = np.array(embedding.mean), np.array(embedding.deviation)
    red = (np.array([1.0, 0.0, 0.0]) - mean) / deviation
    assert pixels[0, :, 3, 3] == pytest.approx(red, abs=1e-5)
    assert embeddings(images[0], "real", tmp_path, sequences=4).shape == (4, 17, 24)


def test_few_images_are_cut_into_crops(images):
    x = embeddings(images[1], "real", sequences=6, rng=3)
    assert x.shape == (6, 17, 24)
    assert np.abs(x[0] - x[1]).max() > 0.1
    assert np.array_equal(x, embeddings(images[1], "real", sequences=6, rng=3))
    assert not np.array_equal(x, embeddings(images[1], "real", sequences=6, rng=4))


@pytest.mark.parametrize("kind", ["real", "matched", "isotropic"])
def test_an_image_has_its_own_number_of_tokens(images, kind):
    for stack in images:
        assert stack.embedding.tokens == 17
        assert embeddings(stack, kind, sequences=2).shape == (2, 17, 24)
    gaussian = kind != "real"
    match = "used 9 tokens as asked" if gaussian else "asked for 9 tokens, used 17: the model has"
    with pytest.warns(UserWarning, match=match):
        x = embeddings(images[0], kind, sequences=2, tokens=9)
    assert x.shape == (2, 9 if gaussian else 17, 24)


def test_what_does_not_fit_into_memory_is_refused(images, bert):
    for options in ({"tokens": 10**9}, {"sequences": 10**9}, {"tokens": 10**14}):
        for stack in (images[0], bert):
            with pytest.raises(TooLarge, match="would take about"):
                embeddings(stack, "matched", **options)
    with pytest.raises(TooLarge, match="1000000000 sequences of 17 tokens of width 24"):
        embeddings(images[0], "real", sequences=10**9)


def test_images_that_cannot_be_read_are_named(images, tmp_path):
    with pytest.raises(ModelFileInvalid, match="holds no images"):
        embeddings(images[0], "real", tmp_path)
    path = tmp_path / "broken.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n broken")
    with pytest.raises(ModelFileInvalid, match="cannot be read as an image") as error:
        embeddings(images[0], "real", path)
    assert "\n" not in str(error.value)
    with pytest.raises(InvalidShape, match="a multiple of 4"):
        embed_images(images[0].embedding, np.zeros((1, 3, 18, 18), dtype=np.float32))


# -- arrays ----------------------------------------------------------------------------------


def test_arrays_are_taken_as_they_are(bert, tmp_path):
    from safetensors.numpy import save_file

    x = np.random.default_rng(0).standard_normal((3, 7, 24))
    np.save(tmp_path / "tokens.npy", x)
    save_file({"tokens": x.astype(np.float32)}, tmp_path / "tokens.safetensors")
    for name in ("tokens.npy", "tokens.safetensors"):
        assert embeddings(bert, "real", tmp_path / name) == pytest.approx(x, abs=1e-6)
    np.save(tmp_path / "one.npy", x[0])
    assert embeddings(bert, "real", tmp_path / "one.npy").shape == (1, 7, 24)
    ids = np.array([[2, 5, 6, 3], [2, 7, 8, 3]])
    np.save(tmp_path / "ids.npy", ids)
    made = embeddings(bert, "real", tmp_path / "ids.npy")
    assert np.array_equal(made, embed_words(bert.embedding, ids))


def test_at_most_so_many_sequences_of_a_file_are_taken(bert, tmp_path):
    path, x = tmp_path / "x.npy", np.random.default_rng(0).standard_normal((8, 5, 24))
    np.save(path, x)
    assert embeddings(bert, "real", path).shape == (8, 5, 24)
    some = embeddings(bert, "real", path, sequences=6, tokens=5)
    places = [next(i for i in range(8) if np.allclose(x[i], s)) for s in some]
    assert places == sorted(set(places))
    assert len(places) == 6
    with pytest.warns(UserWarning, match="asked for") as told:
        embeddings(bert, "real", path, sequences=9, tokens=4)
    assert [str(w.message).split(":")[0] for w in told] == [
        "asked for 4 tokens, used 5", "asked for 9 sequences, used 8",
    ]  # fmt: skip
    np.save(path, np.arange(32).reshape(8, 4))
    assert embeddings(bert, "real", path, sequences=3).shape == (3, 4, 24)
    assert embeddings(bert, "matched", path, sequences=3, tokens=7).shape == (3, 7, 24)


def test_arrays_that_do_not_fit_are_refused(bert, tmp_path):
    path = tmp_path / "x.npy"
    for array, match in (
        (np.zeros((3, 7, 23)), r"expected tokens \(T, N, 24\)"),
        (np.zeros(24), "expected tokens"),
        (np.zeros((0, 5, 24)), "expected tokens"),
        (np.full((1, 2, 24), np.inf), "nan or infinity"),
        (np.array([["a"]]), "expected tokens"),
        (np.full((1, 2, 24), -1e30), r"values up to 1e\+30, whose squares overflow single"),
        (np.full((1, 2, 24), 1e60), r"scale them below 2e\+18"),
    ):
        np.save(path, array)
        with pytest.raises(ModelFileInvalid, match=match):
            embeddings(bert, "real", path)
    path.write_bytes(b"no array")
    with pytest.raises(ModelFileInvalid, match="cannot be read as an array"):
        embeddings(bert, "real", path)


def test_pickled_arrays_are_not_loaded(bert, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ModelFileInvalid, match="cannot be read as an array"):
        embeddings(bert, "real", path)


# -- Gaussian inputs -------------------------------------------------------------------------


def test_matched_tokens_have_the_moments_of_the_data(bert, tmp_path):
    rng = np.random.default_rng(5)
    mix = rng.standard_normal((24, 24))
    data = rng.exponential(size=(8, 50, 24)) @ mix + rng.standard_normal(24)
    np.save(tmp_path / "x.npy", data)
    made = embeddings(bert, "matched", tmp_path / "x.npy", sequences=40, tokens=500)
    assert made.shape == (40, 500, 24)
    assert made.dtype == np.float32
    cloud, wanted = (a.reshape(-1, 24).astype(float) for a in (made, data))
    root = np.linalg.cholesky(np.cov(wanted.T, bias=True))
    shift = np.linalg.solve(root, cloud.mean(0) - wanted.mean(0))
    ratio = np.linalg.solve(root, np.linalg.solve(root, np.cov(cloud.T)).T)
    # 20,000 samples: each entry has the standard error 1/sqrt(20000) = 0.007.
    assert np.abs(shift).max() < 5 * 0.0071
    assert np.abs(ratio - np.eye(24)).max() < 5 * 0.01
    tails = (np.linalg.solve(root, (cloud - cloud.mean(0)).T) ** 4).mean()
    assert tails == pytest.approx(3.0, abs=0.1)


def test_isotropic_tokens_have_the_variance_of_the_data(bert, tmp_path):
    data = np.random.default_rng(6).standard_normal((4, 60, 24)) * np.linspace(0.1, 4, 24)
    np.save(tmp_path / "x.npy", data)
    made = embeddings(bert, "isotropic", tmp_path / "x.npy", sequences=40, tokens=500)
    cloud = made.reshape(-1, 24)
    wanted = data.reshape(-1, 24).var(axis=0).mean()
    assert np.cov(cloud.T) == pytest.approx(wanted * np.eye(24), abs=0.06 * wanted)
    assert np.abs(cloud.mean(0)).max() < 0.05 * np.sqrt(wanted)


def test_wrong_arguments_are_named(bert):
    with pytest.raises(InvalidMethod, match="`kind` is 'gaussian'; expected one of real, matched"):
        embeddings(bert, "gaussian")
    with pytest.raises(InvalidNumber, match="`sequences` must be at least 1"):
        embeddings(bert, sequences=0)
    with pytest.raises(InvalidNumber, match="`tokens` must be at least 2"):
        embeddings(bert, tokens=1)
    with pytest.raises(InvalidNumber, match="`rng` must be at least 0"):
        embeddings(bert, rng=-1)


# -- samples ---------------------------------------------------------------------------------


def test_samples_are_there():
    assert len(sample_text()) > 300_000
    assert sum(word in sample_text() for word in ("the", "argument", "return", "Example")) == 4
    assert photograph().size == (150, 180)
    lines = sample_reactions().splitlines()
    assert len(set(lines)) == len(lines) > 400
    assert all(line.count(">>") == 1 for line in lines)

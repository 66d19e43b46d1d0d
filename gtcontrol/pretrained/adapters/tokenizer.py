"""Texts as numbers of words in the vocabulary of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ModelFileInvalid
from ..extra import shortened
from .configuration import read_json
from .library import quiet

__all__ = ["Tokenizer", "tokenizer_of"]

#: Words of plain lists that no text contains.
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

#: Files that tokenizers are read from; the library makes an empty one where there is none.
_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
    "vocab.json",
)

_REMEDY = "give `data` as numbers of words (T, N) or as tokens (T, N, d), in a file .npy"


@dataclass(frozen=True)
class Tokenizer:
    """A vocabulary and how texts are cut into its words.

    Parameters
    ----------
    split : function
        Text -> numbers of words, without special ones.
    begin, end : tuples of int
        Special words around a sequence.
    unknown : int
        Number that stands for what the vocabulary does not have; -1 if there is none.
    reads_reactions : bool
        Whether the vocabulary has the arrow of chemical reactions.
    """

    split: Callable[[str], list[int]]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    unknown: int
    reads_reactions: bool = False

    def numbers(self, text: str) -> np.ndarray[Any, Any]:
        """Return the numbers of the words of a text, (n,)."""
        return np.asarray(self.split(text), dtype=np.int64)


def tokenizer_of(folder: str) -> Tokenizer:
    """Return the tokenizer of a folder: a file of the library, or a plain list of words.

    Words of a plain list (``vocab.txt``) without the marks of word pieces are matched greedily,
    the longest first, as vocabularies of chemistry are meant.

    Raises
    ------
    ModelFileInvalid
        If the folder has none that can be read.
    """
    path = Path(folder)
    if not folder or not path.is_dir():
        raise ModelFileInvalid(
            f"the model has no folder with a tokenizer, which real words go through; {_REMEDY}."
        )
    if not any((path / file).is_file() for file in _FILES):
        raise ModelFileInvalid(
            f"{path} has no files of a tokenizer ({', '.join(_FILES[:3])}), and all kinds of input "
            f"start from real words; put them there, or {_REMEDY}."
        )
    words = path / "vocab.txt"
    if not (path / "tokenizer.json").is_file() and words.is_file():
        vocabulary = words.read_text(encoding="utf-8").splitlines()
        if not any(word.startswith("##") for word in vocabulary):
            return _longest_match(vocabulary)
    return _of_library(path)


def _of_library(path: Path) -> Tokenizer:
    file = path / "tokenizer.json"
    try:
        with quiet() as library:
            if file.is_file():
                own = library.PreTrainedTokenizerFast(tokenizer_file=str(file), **_special(path))
            else:
                own = library.AutoTokenizer.from_pretrained(
                    str(path), local_files_only=True, trust_remote_code=False
                )
            frame = [int(i) for i in own("")["input_ids"]]
    except Exception as error:
        raise ModelFileInvalid(
            f"{path} has no tokenizer that can be read ({shortened(error)}); {_REMEDY}."
        ) from None

    def split(text: str) -> list[int]:
        with quiet():
            return list(own(text, add_special_tokens=False, verbose=False)["input_ids"])

    half = (len(frame) + 1) // 2
    unknown = own.unk_token_id
    return Tokenizer(
        split=split,
        begin=tuple(frame[:half]),
        end=tuple(frame[half:]),
        unknown=-1 if unknown is None else int(unknown),
        reads_reactions=">>" in own.get_vocab(),
    )


def _special(path: Path) -> dict[str, str]:
    """The special words that a folder names, by what they are for."""
    found: dict[str, str] = {}
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        values = read_json(path / name) if (path / name).is_file() else {}
        for key in ("unk_token", "cls_token", "sep_token", "pad_token", "mask_token"):
            word = values.get(key)
            word = word.get("content") if isinstance(word, dict) else word
            if isinstance(word, str):
                found[key] = word
    return found


def _longest_match(vocabulary: list[str]) -> Tokenizer:
    numbers = {word: i for i, word in enumerate(vocabulary)}
    special = {w for w in vocabulary if w in _SPECIAL or w.startswith("[unused")}
    plain = {w: i for w, i in numbers.items() if w and w not in special}
    longest = max(map(len, plain), default=1)
    unknown = numbers.get("[UNK]", -1)
    separator = [numbers["[SEP]"]] if "[SEP]" in numbers else []

    def split(text: str) -> list[int]:
        found: list[int] = []
        for line in text.splitlines():
            at = 0
            while at < len(line):
                for size in range(min(longest, len(line) - at), 0, -1):
                    if line[at : at + size] in plain:
                        found.append(plain[line[at : at + size]])
                        at += size
                        break
                else:
                    if not line[at].isspace():
                        found.append(unknown)
                    at += 1
            found.extend(separator if line.strip() else [])
        return found

    return Tokenizer(
        split=split,
        begin=(numbers["[CLS]"],) if "[CLS]" in numbers else (),
        end=tuple(separator),
        unknown=unknown,
        reads_reactions=">>" in numbers,
    )

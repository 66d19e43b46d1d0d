"""Named arrays as a safetensors file, which any framework reads and which runs no code."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["DTYPES", "encode"]

#: NumPy type -> its name in the format.
DTYPES = {"float64": "F64", "float32": "F32"}

#: The header is filled up with blanks to a multiple of this.
ALIGNMENT = 8


def encode(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> bytes:
    """Return the content of a safetensors file; the same arrays give the same bytes.

    The format (https://github.com/huggingface/safetensors): the length of the header as a
    little-endian 64-bit number, the header in JSON (type, shape and place of every tensor), and
    the entries of the tensors, row by row, without gaps.

    Parameters
    ----------
    tensors : mapping from name to array of float64 or float32
    metadata : mapping from str to str
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    parts, offset = [], 0
    for name, value in tensors.items():
        little = np.asarray(value, dtype=value.dtype.newbyteorder("<"), order="C")
        end = offset + little.nbytes
        header[name] = {
            "dtype": DTYPES[value.dtype.name],
            "shape": list(value.shape),
            "data_offsets": [offset, end],
        }
        parts.append(little.tobytes())
        offset = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text = text.ljust(ALIGNMENT * math.ceil(len(text) / ALIGNMENT))
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])

"""Images as arrays of pixels, prepared as a model's processor does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelFileInvalid
from .embedding import PatchEmbedding
from .extra import missing, shortened
from .weights import Floats

__all__ = ["image_files", "prepare", "read_crops"]

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")

#: A random crop has at least this part of the shorter edge.
SMALLEST_CROP = 0.3


def image_files(path: Path) -> list[Path]:
    """Return the images of a folder in the order of their names, or the one image."""
    if not path.is_dir():
        return [path]
    found = sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES)
    if not found:
        raise ModelFileInvalid(f"{path} holds no images ({', '.join(SUFFIXES)}).")
    return found


def read_crops(
    embedding: PatchEmbedding, files: Sequence[Path], count: int, rng: np.random.Generator
) -> Floats:
    """Return pixels of images, (T, c, s, s): the centres of enough images, else random crops.

    Parameters
    ----------
    embedding : PatchEmbedding
    files : sequence of Path
    count : int
        Number T; with fewer images, several random squares are cut out of each.
    rng : numpy.random.Generator
    """
    channels, size = embedding.projection.shape[1], embedding.size
    pixels = np.empty((count, channels, size, size), dtype=np.float32)
    if len(files) >= count:
        chosen = np.sort(rng.permutation(len(files))[:count])
        for i, j in enumerate(chosen):
            pixels[i] = prepare(embedding, _open(files[j], channels))
        return pixels
    images = [_open(path, channels) for path in files]
    for i in range(count):
        image = images[i % len(images)]
        shorter = min(image.size)
        side = max(1, round(shorter * rng.uniform(SMALLEST_CROP, 1.0)))
        left, top = (int(rng.integers(0, extent - side + 1)) for extent in image.size)
        square = image.crop((left, top, left + side, top + side))
        pixels[i] = _normalised(embedding, square.resize((size, size), embedding.resampling))
    return pixels


def prepare(embedding: PatchEmbedding, image: Any) -> Floats:
    """Return the pixels (c, s, s) of an image of Pillow: resized, its centre cut out, normalised.

    Parameters
    ----------
    embedding : PatchEmbedding
    image : PIL.Image.Image
    """
    edge, size = embedding.resize, embedding.size
    target = (edge, edge)
    if embedding.keep_aspect:
        width, height = image.size
        # The longer edge is cut to a whole number of pixels, not rounded, as the libraries do.
        longer = int(edge * max(width, height) / min(width, height))
        target = (edge, longer) if width <= height else (longer, edge)
    image = image.resize(target, embedding.resampling)
    left, top = ((extent - size) // 2 for extent in image.size)
    return _normalised(embedding, image.crop((left, top, left + size, top + size)))


def _normalised(embedding: PatchEmbedding, image: Any) -> Floats:
    values = np.asarray(image, dtype=np.float32).reshape(*image.size[::-1], -1) / np.float32(255)
    mean, deviation = (np.asarray(v, np.float32) for v in (embedding.mean, embedding.deviation))
    made = ((values - mean) / deviation).transpose(2, 0, 1)
    return np.asarray(made, dtype=np.float32)


def _open(path: Path, channels: int) -> Any:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise missing("pillow", "reading images") from None
    try:
        with Image.open(path) as image:
            return image.convert("RGB" if channels == 3 else "L")
    except (OSError, ValueError, SyntaxError, UnidentifiedImageError) as error:
        reason = shortened(error)
        raise ModelFileInvalid(f"{path} cannot be read as an image: {reason}.") from None
    except Image.DecompressionBombError:
        raise ModelFileInvalid(f"{path} has too many pixels; give a smaller image.") from None

"""Where the Gaussians of a problem file come from: the file, an NPZ archive, or a seed."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from .._check import Array
from ..errors import GtcontrolError, ProblemFileInvalid, RankDeficientFactor
from ..gaussian import Gaussian
from . import memory
from .messages import fail, listed, located, nearest, one_line
from .schema import AtLeastOne, Count, Matrix, NonNegative, Positive, Table, Text, Vector, Whole

__all__ = ["GaussianTable", "GenerateTable", "embedding_like", "end_points"]

#: Arrays that an archive may hold.
_MEMBERS = ("mean", "covariance", "factor")


class GenerateTable(Table):
    """A random Gaussian that looks like token embeddings; see :func:`embedding_like`."""

    dim: Count
    rank: Whole
    seed: Whole
    spread: AtLeastOne = 10.0
    mean_scale: NonNegative = 1.0
    scale: Positive = 1.0


class GaussianTable(Table):
    """A Gaussian law: ``mean`` with ``covariance`` or ``factor``; or ``file``; or ``generate``."""

    mean: Vector | None = None
    covariance: Matrix | None = None
    factor: Matrix | None = None
    rank: Whole | None = None
    file: Text | None = None
    generate: GenerateTable | None = None

    def build(self, where: str, folder: Path) -> Gaussian:
        """Make the Gaussian; `where` names the table, relative paths start at `folder`."""
        given = [n for n in ("covariance", "factor", "file", "generate") if _has(self, n)]
        if len(given) != 1:
            came = f"has {listed(given)}" if given else "says nothing about the covariance"
            fail(
                where,
                f"{came}; give exactly one of `covariance`, `factor`, `file` and `generate`.",
            )
        if given[0] in ("file", "generate"):
            for name in ("mean", "rank"):
                if _has(self, name):
                    fail(f"{where}.{name}", f"does not go with `{given[0]}`; leave it out.")
        if self.generate is not None:
            with located(f"`{where}.generate`"):
                return embedding_like(**self.generate.model_dump())
        if self.file is not None:
            arrays = _read_archive(f"{where}.file", folder / self.file)
        else:
            arrays = {name: getattr(self, name) for name in _MEMBERS if _has(self, name)}
        if "mean" not in arrays:
            fail(f"{where}.mean", "is missing; expected an array of numbers.")
        with located(f"`{where}`"):
            return _law(arrays, self.rank)


def end_points(
    start: GaussianTable, target: GaussianTable, folder: Path
) -> tuple[Gaussian, Gaussian]:
    """Make the laws of the tables ``[start]`` and ``[target]``."""
    first, last = start.build("start", folder), target.build("target", folder)
    if first.dim != last.dim:
        fail("target", f"has dimension {last.dim}, but `start` has {first.dim}.")
    return first, last


def embedding_like(
    dim: int,
    rank: int,
    seed: int,
    spread: float = 10.0,
    mean_scale: float = 1.0,
    scale: float = 1.0,
) -> Gaussian:
    """Draw a Gaussian whose covariance lives in a random subspace, as token embeddings do.

    With ``rng = numpy.random.default_rng(seed)``: G is a (dim, rank) and then z a (dim,)
    array of ``rng.standard_normal``.  The columns of U come from the QR decomposition G = U R
    with positive diagonal of R, so that the subspace and its basis are uniformly
    distributed.  The eigenvalues fall geometrically from ``scale`` to ``scale/spread``,
    λ_i = scale · spread^(-(i-1)/(rank-1)), and the mean has length ``mean_scale`` in a
    uniformly random direction:

        factor = U diag(√λ),      mean = mean_scale · z/|z|.

    Parameters
    ----------
    dim, rank : int
        Dimension d of the tokens and rank r <= d of the covariance.
    seed : int
        Seed of the draw.
    spread : float
        Largest eigenvalue over the smallest, >= 1.
    mean_scale : float
        Length of the mean, >= 0.
    scale : float
        Largest eigenvalue, > 0.

    Returns
    -------
    Gaussian
        Dimension d, rank r.

    Raises
    ------
    TooLarge
        If the draw would not fit into memory.
    """
    if rank > dim:
        raise ProblemFileInvalid(f"`rank` is {rank}, more than `dim` = {dim}.")
    memory.require(f"a random Gaussian of dimension {dim} and rank {rank}", 4 * dim * (rank + 1))
    rng = np.random.default_rng(seed)
    columns, triangle = np.linalg.qr(rng.standard_normal((dim, rank)))
    columns = columns * np.sign(np.diag(triangle))
    direction = rng.standard_normal(dim)
    decay = np.arange(rank) / max(rank - 1, 1)
    return Gaussian(
        mean_scale * direction / np.linalg.norm(direction),
        columns * np.sqrt(scale * spread**-decay),
    )


def _has(table: Table, name: str) -> bool:
    return getattr(table, name) is not None


def _law(arrays: dict[str, Any], rank: int | None) -> Gaussian:
    """Build the law from `mean` and one of `covariance` and `factor`."""
    if "covariance" in arrays:
        return Gaussian.from_covariance(arrays["mean"], arrays["covariance"], rank)
    law = Gaussian(arrays["mean"], arrays["factor"])
    if rank is not None and rank != law.rank:
        raise RankDeficientFactor(f"`rank` is {rank}, but `factor` has {law.rank} column(s).")
    return law


def _read_archive(where: str, path: Path) -> dict[str, Array]:
    """Read `mean` and `covariance` or `factor` from an NPZ file; nothing is unpickled."""
    shown = one_line(str(path))
    try:
        if not path.is_file():
            fail(where, f"is {shown}, which is no file.")
        with zipfile.ZipFile(path) as archive:
            members = {Path(m).stem: m for m in archive.namelist()}
            _check_members(where, members)
            return {name: _read_member(where, archive, m) for name, m in members.items()}
    except zipfile.BadZipFile:
        fail(where, f"is {shown}, which is no NPZ archive; write it with `numpy.savez`.")
    except OSError as error:
        fail(where, f"cannot be read: {error.strerror or error} ({shown}).")
    except GtcontrolError:
        raise
    except (ValueError, EOFError, NotImplementedError, RuntimeError, zlib.error) as error:
        fail(where, f"is {shown}, which is damaged: {one_line(str(error))}.")


def _check_members(where: str, names: Iterable[str]) -> None:
    for name in names:
        if name not in _MEMBERS:
            close = nearest(name, _MEMBERS)
            hint = f"did you mean `{close}`?" if close else f"valid: {listed(_MEMBERS)}."
            fail(where, f"holds an unknown array `{one_line(name)}`; {hint}")
    if "covariance" in names and "factor" in names:
        fail(where, "holds both `covariance` and `factor`; leave one of them out.")
    if "covariance" not in names and "factor" not in names:
        fail(where, "must hold `mean`, and either `covariance` or `factor`.")


def _read_member(where: str, archive: zipfile.ZipFile, member: str) -> Array:
    """Read one array, after comparing the size that its header promises with the memory."""
    with archive.open(member) as stream:
        version = npy.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"`{member}` has format {version}")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(stream)
    if dtype.kind not in "biuf":
        fail(where, f"holds `{member}` of type {dtype}; expected real numbers.")
    memory.require(f"`{where}`: array `{member}` of shape {shape}", 3 * float(math.prod(shape)))
    with archive.open(member) as stream:
        return np.asarray(npy.read_array(stream, allow_pickle=False), dtype=np.float64)

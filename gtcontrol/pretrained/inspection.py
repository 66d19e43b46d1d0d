"""Inspecting a pretrained model: token laws layer by layer, beside the Gaussian theory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from .. import _check
from ..errors import InvalidMethod, InvalidNumber, InvalidShape
from ..problem import memory
from ..problem.definitions import InspectionProblem
from ..progress import Progress, silent
from ..results.heads import HeadTable
from ..results.inspection import Inspection
from ..results.layers import LawProfile
from ..status import Status
from .amounts import Amount, Bound
from .course import Course, follow
from .stack import Stack
from .weights import Floats

__all__ = ["inspect"]

INPUTS = ("matched", "isotropic", "real")

#: Leading eigenvalues that are kept.
LEADING = 50

#: Arrays of all tokens that are in memory at the same time, in numbers of double precision.
ARRAYS = 8

#: Matrices of the order of the width that are in memory at the same time.
MATRICES = 60

Random = np.random.Generator | int | np.integer


def inspect(
    model: Stack | str | PathLike[str],
    *,
    input: str = "matched",  # noqa: A002 - the word of the command line
    data: str | PathLike[str] | None = None,
    tokens: int | None = None,
    sequences: int | None = None,
    layers: int | None = None,
    rng: Random = 0,
    progress: Progress = silent,
    name: str = "",
) -> Inspection:
    """Tell where the Gaussian theory holds in a pretrained Transformer, layer by layer.

    Tokens run through the model. After each layer their shape is held against that of Gaussian
    clouds, their mean and covariance against what theory predicts (from the moments before the
    layer, and from those of the input alone), and the growth of the variance by attention against
    the rates of the heads.

    Parameters
    ----------
    model : Stack or path or str
        A loaded model, or what :func:`gtcontrol.pretrained.load` takes.
    input : str
        "matched": independent Gaussian tokens with the mean and covariance of real embeddings;
        "isotropic": independent Gaussian tokens with mean 0 and the same total variance; "real":
        real embeddings.
    data : path, optional
        Where real embeddings come from: a text file, a folder of images, or tensors; by default
        what comes with the model or the package.
    tokens : int, optional
        Tokens N of each sequence: by default 512, or as many as an image has. Real text has at
        most as many as the model has positions; real images and files of tokens have their own
        number.
    sequences : int, optional
        Sequences T, at least 2, by default 16; of text or a file of tokens at most so many, and
        by default all of the latter. With few of them layers may be UNDECIDED.
    layers : int, optional
        Look at so many of the first layers only.
    rng : numpy.random.Generator or int
        Source of randomness, or its seed.
    progress : callable, optional
        Called as ``progress(fraction, text)``.
    name : str
        Name of the problem, for reports.

    Returns
    -------
    Inspection
        Interrupted (Ctrl-C), it holds the layers that were done.

    Warns
    -----
    UserWarning
        If another number of tokens or sequences was used than was asked for.

    Raises
    ------
    InvalidMethod, InvalidNumber, InvalidShape
        If the input is unknown, or there are too few tokens for the width of the model.
    TooLarge
        If the tokens do not fit into memory.
    MissingPackage
        If the extra ``pretrained`` is not installed.
    KeyboardInterrupt
        When interrupted before the first layer was done.
    """
    if input not in INPUTS:
        raise InvalidMethod(f"`input` is {input!r:.40}; expected {', '.join(INPUTS)}.")
    asked = Amount.of(sequences, tokens, low=2)
    first = None if layers is None else _check.integer("layers", layers, low=1)
    seed = _seed(rng)
    progress(0.0, "loading the model")
    path = None if data is None else Path(data)

    def fits(stack: Stack) -> None:
        if first is not None and first > stack.depth:
            raise InvalidNumber(f"`layers` is {first}, but {stack.name} has {stack.depth} layers.")
        bound = asked.bound(stack.embedding, input, path)
        if bound is not None:
            _check_size(stack, bound, asked)

    stack = _loaded(model, fits)
    begun = time.perf_counter()
    progress(0.02, "embedding the tokens")
    stream = _embedded(stack, input, data, asked, seed)
    T, N, _ = stream.shape
    _check_size(stack, Bound(T, N, exact=True), asked)
    problem = InspectionProblem(
        model=_source(model, stack),
        input=input,
        data="" if data is None else fspath(data),
        tokens=N,
        sequences=T,
        layers=first,
        seed=seed,
        name=name,
    )
    real = input == "real"
    positional = real and any(b.rope is not None or b.window is not None for b in stack.blocks)
    made = Course(stream, seed)
    whole = stack.depth
    stack = replace(stack, blocks=stack.blocks[:first])
    status = follow(stack, made, progress, positions=positional)
    seconds = time.perf_counter() - begun
    return _result(stack, whole, problem, made, status, positional, seconds)


def _check_size(stack: Stack, bound: Bound, asked: Amount) -> None:
    """Refuse too few tokens for the width of a model, and too many for the memory."""
    T, N, d = bound.sequences, bound.tokens, stack.width
    if d + 1 >= T * N:
        more = f"at least {-(-(d + 2) // N)} `sequences`"
        if asked.tokens is not None and asked.tokens == N:
            more = f"at least {-(-(d + 2) // T)} `tokens`, or {more}"
        raise InvalidNumber(
            f"{T} sequences of {N} tokens are {T * N} tokens; {stack.name} has width {d}, and the "
            f"shape of a cloud needs more than {d + 1}: take {more}."
        )
    if bound.exact:
        memory.require(
            f"inspecting {stack.name} on {T} sequences of {N} tokens",
            float(ARRAYS * T * N * d + MATRICES * d * d),
            "take fewer sequences or tokens",
        )


def _loaded(model: Stack | str | PathLike[str], fits: Callable[[Stack], None]) -> Stack:
    if isinstance(model, Stack):
        fits(model)
        return model
    if not isinstance(model, str | PathLike):
        raise InvalidShape(
            f"`model` must be a Stack, a path or a name, not {type(model).__name__}."
        )
    from .loading import load_fitting

    return load_fitting(model, fits)


def _source(model: Stack | str | PathLike[str], stack: Stack) -> str:
    return (stack.source or stack.name) if isinstance(model, Stack) else str(fspath(model))


def _seed(rng: Random) -> int:
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**31))
    return _check.integer("rng", rng, low=0)


def _embedded(
    stack: Stack,
    source: str,
    data: str | PathLike[str] | None,
    asked: Amount,
    seed: int,
) -> Floats:
    from .inputs import embeddings

    return embeddings(
        stack,
        source,
        data,
        sequences=asked.sequences,
        tokens=asked.tokens,
        rng=np.random.default_rng([seed, 0]),
    )


def _result(
    stack: Stack,
    whole: int,
    problem: InspectionProblem,
    made: Course,
    status: Status,
    positional: bool,
    seconds: float,
) -> Inspection:
    blocks = {id(block): block for block in stack.blocks}.values()
    return Inspection(
        problem=problem,
        status=status,
        model=stack.name,
        family=stack.family,
        depth=stack.depth,
        whole=whole,
        dim=stack.width,
        parameters=sum(_size(block) for block in blocks),
        placement=stack.blocks[0].placement,
        shared=stack.shared,
        positional=positional,
        numerics=float(stack.numerics),
        ignored=", ".join(stack.ignored),
        shapes=tuple(made.shapes),
        inner=tuple(made.inner),
        measured=LawProfile.of(
            [x.mean for x in made.measured], [x.covariance for x in made.measured], LEADING
        ),
        chain=LawProfile.of(
            [x.mean for x in made.chain], [x.covariance for x in made.chain], LEADING
        ),
        field=LawProfile.of(
            [x.mean for x in made.mean_field], [x.covariance for x in made.mean_field], LEADING
        ),
        layers=tuple(made.layers),
        heads=HeadTable(problem.tokens, tuple(made.heads)),
        seconds=seconds,
    )


def _size(part: Any) -> int:
    """Number of weights in a block or a part of one."""
    total = 0
    for entry in fields(part):
        value = getattr(part, entry.name)
        if isinstance(value, np.ndarray):
            total += value.size
        elif is_dataclass(value):
            total += _size(value)
    return total

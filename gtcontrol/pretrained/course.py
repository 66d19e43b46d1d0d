"""One layer after the other: measured, predicted, compared; what is done is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..finite_tokens import FiniteTokens
from ..progress import Progress
from ..results.gaussianity import Gaussianity
from ..results.heads import HeadFacts
from ..results.layers import LayerFacts
from ..status import Status
from ..validation.shape_series import ShapeSeries
from .forward import BlockRecord
from .heads import block_heads
from .measurement import LayerMoments, Moments, given, measure_layer, moments, wanted
from .propagation.blocks import BlockMoments, block_moments
from .propagation.comparison import bures, sequences_floor
from .propagation.law import TokenLaw, root
from .stack import Block, Stack
from .weights import Floats

__all__ = ["Course", "follow"]

#: Tokens whose shape is looked at, evenly spread over all sequences.
SHAPE_TOKENS = 4096


@dataclass
class Course:
    """What was found so far; a layer is added as a whole."""

    stream: Floats
    seed: int
    shapes: list[Gaussianity] = field(default_factory=list)
    inner: list[Gaussianity] = field(default_factory=list)
    measured: list[Moments] = field(default_factory=list)
    chain: list[TokenLaw] = field(default_factory=list)
    mean_field: list[TokenLaw] = field(default_factory=list)
    layers: list[LayerFacts] = field(default_factory=list)
    heads: list[HeadFacts] = field(default_factory=list)

    def __post_init__(self) -> None:
        T, N, d = self.stream.shape
        self.tokens = FiniteTokens(N)
        self.sequences = T
        self.series = ShapeSeries(min(T * N, max(SHAPE_TOKENS, 2 * d)), self.seed)
        start = moments(self.stream)
        law = _law(start)
        self.measured.append(start)
        self.chain.append(law)
        self.mean_field.append(law)

    def shape(self, tokens: Floats) -> Gaussianity:
        """Shape of some of the tokens (T, N, d), evenly spread."""
        flat = tokens.reshape(-1, tokens.shape[2])
        kept = np.arange(self.series.count) * len(flat) // self.series.count
        return self.series.measure(flat[kept].astype(np.float64))


def _law(of: Moments) -> TokenLaw:
    return TokenLaw(of.mean, of.covariance, of.between)


def follow(stack: Stack, course: Course, progress: Progress, *, positions: bool) -> Status:
    """Walk through the blocks; return SUCCESS, or INTERRUPTED after one layer or more."""
    try:
        progress(0.05, "the shape of the input")
        course.shapes.append(course.shape(course.stream))
        walk = stack.walk(course.stream, wanted(stack), positions=positions)
        for record, block in zip(walk, stack.blocks, strict=True):
            _layer(course, record, block, _part(progress, record.layer, stack.depth))
    except KeyboardInterrupt:
        if not course.layers:
            raise
        return Status.INTERRUPTED
    progress(1.0, "done")
    return Status.SUCCESS


def _part(progress: Progress, layer: int, depth: int) -> Callable[[float, str], None]:
    def told(fraction: float, text: str) -> None:
        share = 0.08 + 0.92 * (layer - 1 + fraction) / depth
        progress(share, f"layer {layer} of {depth}: {text}")

    return told


def _layer(course: Course, record: BlockRecord, block: Block, progress: Progress) -> None:
    """Measure and predict one layer; what was found is added at the end, all of it."""
    progress(0.0, "measuring")
    seen = measure_layer(record, block)
    shapes = course.shape(given(record.output)), course.shape(_inner(record, block))
    progress(0.3, "predicting")
    law = _law(seen.before)
    step = block_moments(block, law, course.tokens)
    progress(0.5, "following the law of the input")
    chain = block_moments(block, course.chain[-1], course.tokens).output
    progress(0.7, "following its mean field")
    mean_field = block_moments(block, course.mean_field[-1], None).output
    progress(0.85, "comparing")
    heads = block_heads(block, record.layer, seen, course.tokens)
    predicted = (step.output, chain, mean_field)
    floor = max(
        _floor(course, seen.after),
        sequences_floor(given(record.output), seen.after.mean, seen.after.covariance),
    )
    facts = _facts(record.layer, seen, step, predicted, heads, floor)
    course.shapes.append(shapes[0])
    course.inner.append(shapes[1])
    course.measured.append(seen.after)
    course.chain.append(chain)
    course.mean_field.append(mean_field)
    course.heads += heads
    course.layers.append(facts)


def _inner(record: BlockRecord, block: Block) -> Floats:
    """Before the last norm if norms come last, else what attention sees."""
    if block.placement == "post":
        return given(record.norm) + given(record.mlp)
    return given(record.attended)


def _facts(
    layer: int,
    seen: LayerMoments,
    step: BlockMoments,
    predicted: tuple[TokenLaw, TokenLaw, TokenLaw],
    heads: tuple[HeadFacts, ...],
    floor: float,
) -> LayerFacts:
    K = step.attention.slope
    errors = [_errors(law, seen.after) for law in predicted]
    return LayerFacts(
        layer=layer,
        drift=seen.drift,
        gain=seen.gain,
        rate=float(sum(row.rate for row in heads)),
        effective_rate=float(sum(row.effective_rate for row in heads)),
        pointwise=seen.explained(K, step.attention.mean - K @ step.seen.mean),
        affine=seen.affine,
        step_mean=errors[0][0],
        step_covariance=errors[0][1],
        chain_mean=errors[1][0],
        chain_covariance=errors[1][1],
        field_mean=errors[2][0],
        field_covariance=errors[2][1],
        floor=floor,
    )


def _errors(law: TokenLaw, seen: Moments) -> tuple[float, float]:
    """Errors of mean and covariance, relative to the root of the total variance."""
    size = float(np.sqrt(seen.trace))
    mean = float(np.linalg.norm(law.mean - seen.mean))
    return mean / size, bures(law.covariance, seen.covariance) / size


def _floor(course: Course, seen: Moments) -> float:
    """Bures distance, relative to √tr S, that drawing as many Gaussian tokens makes by itself.

    What the tokens of a sequence share is drawn once for each sequence.
    """
    rng = np.random.default_rng([course.seed, 3])
    T, N, d = course.stream.shape
    shared, within = root(seen.between), root(seen.covariance - seen.between)
    sums, squares = np.zeros(d), np.zeros((d, d))
    for _ in range(T):
        common = shared @ rng.standard_normal(shared.shape[1])
        tokens = common + rng.standard_normal((N, within.shape[1])) @ within.T
        sums += tokens.sum(axis=0)
        squares += tokens.T @ tokens
    mean = sums / (T * N)
    drawn = squares / (T * N) - np.outer(mean, mean)
    return bures(drawn, seen.covariance) / float(np.sqrt(seen.trace))

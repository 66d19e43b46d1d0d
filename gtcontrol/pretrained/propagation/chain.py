"""The law of Gaussian tokens after every block of a stack, without drawing any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ... import _check
from ..._check import Array
from ...errors import InvalidNumber, InvalidShape
from ...finite_tokens import FiniteTokens
from ...gaussian import Gaussian
from ...progress import Progress, silent
from ..stack import Block, Stack
from .blocks import BlockMoments, block_moments
from .comparison import LawFit, compare_laws
from .law import TokenLaw

__all__ = ["LawSeries", "Propagation", "check_stack", "propagate"]


@dataclass(frozen=True, eq=False)
class LawSeries:
    """Moments of the tokens before the first block, and after each of n blocks.

    Attributes
    ----------
    means : (n + 1, d) array
    covariances : (n + 1, d, d) array
        Over tokens and sequences.
    shared : (n + 1, d, d) array
        Covariances of the means of the sequences.
    """

    means: Array
    covariances: Array
    shared: Array

    @classmethod
    def of(cls, laws: Sequence[TokenLaw]) -> LawSeries:
        """Stack laws."""
        return cls(
            np.array([law.mean for law in laws]),
            np.array([law.covariance for law in laws]),
            np.array([law.shared for law in laws]),
        )

    @property
    def traces(self) -> Array:
        """Total variance, (n + 1,)."""
        return np.asarray(np.trace(self.covariances, axis1=1, axis2=2))

    def __len__(self) -> int:
        """Number of laws, n + 1."""
        return len(self.means)

    def laws(self) -> list[TokenLaw]:
        """The laws, one by one."""
        columns = (self.means, self.covariances, self.shared)
        return [TokenLaw(*parts) for parts in zip(*columns, strict=True)]

    def gaussian(self, index: int) -> Gaussian:
        """The law after `index` blocks, as a Gaussian."""
        return self.laws()[index].gaussian()


@dataclass(frozen=True, eq=False)
class Propagation:
    """Predicted moments of tokens through the blocks of a stack.

    Attributes
    ----------
    model : str
    tokens : int or None
        Number of tokens in a sequence; None for the mean field of infinitely many.
    self_key : bool
        Whether a token attends to itself.
    chain : LawSeries
        From the law of the input, block after block.
    mean_field : LawSeries
        The same for infinitely many tokens.
    steps : LawSeries or None
        After one block each, from the moments measured before it, if those were given; the first
        entry is the input.
    measured : LawSeries or None
        The measured moments that were given.
    logit_variance, self_weight, concentration : (n, H) arrays
        Of every head along the chain: mean variance of the scores, mean weight of a token on
        itself, mean sum of the squared weights.
    """

    model: str
    tokens: int | None
    self_key: bool
    chain: LawSeries
    mean_field: LawSeries
    steps: LawSeries | None
    measured: LawSeries | None
    logit_variance: Array
    self_weight: Array
    concentration: Array

    def compare(
        self, means: ArrayLike, covariances: ArrayLike, count: int
    ) -> dict[str, tuple[LawFit, ...]]:
        """Compare with measured moments, after each block.

        Parameters
        ----------
        means : (n + 1, d) array
            Of the input, then after each block.
        covariances : (n + 1, d, d) array
        count : int
            Number of tokens, over all sequences, on which they were measured.

        Returns
        -------
        dict
            Fits after blocks 1 to n for ``chain``, ``mean_field`` and, if there are such,
            ``steps``.
        """
        n, d = self.chain.means.shape
        m, S = _moments(means, covariances, n, d)
        size = _check.integer("count", count, low=2)
        named = {"chain": self.chain, "mean_field": self.mean_field, "steps": self.steps}
        return {
            name: tuple(
                compare_laws((laws.means[i], laws.covariances[i]), (m[i], S[i]), size)
                for i in range(1, n)
            )
            for name, laws in named.items()
            if laws is not None
        }


def propagate(
    stack: Stack,
    law: Gaussian,
    tokens: int | None = 512,
    *,
    self_key: bool = True,
    blocks: int | None = None,
    measured: tuple[ArrayLike, ArrayLike] | None = None,
    progress: Progress = silent,
) -> Propagation:
    """Predict the moments of Gaussian tokens after every block of a pretrained stack.

    Sequences of independent tokens from the law enter the first block.  Each block is taken to act
    on Gaussian tokens: attention with its biases and heads by exact averages over the softmax
    weights of finitely many keys, LayerNorm by one-dimensional integrals, activations by Hermite
    series.  Tokens do stop being Gaussian along the way, which is what the error of the prediction
    tells.  Positions (rotary ones, windows) are left out.

    Parameters
    ----------
    stack : Stack
        Of width d.
    law : Gaussian
        Of dimension d and any rank.
    tokens : int or None
        Tokens in a sequence; None for the mean field of infinitely many.
    self_key : bool
        Whether a token is among its own keys.
    blocks : int, optional
        How many blocks are passed, all by default.  If they share their weights it may be more
        than the stack has.
    measured : ((n + 1, d) array, (n + 1, d, d) array), optional
        Means and covariances of real tokens before the first block and after each one, to start
        every block from as well.
    progress : callable
        Is told the part done.

    Returns
    -------
    Propagation

    Raises
    ------
    InvalidShape, InvalidNumber
        If the arguments do not fit each other.
    """
    check_stack(stack, law)
    count = _count(stack, blocks)
    finite = None if tokens is None else FiniteTokens.named("tokens", tokens, self_key=self_key)
    passed = [stack.blocks[i % stack.depth] for i in range(count)]
    given = None
    if measured is not None:
        m, S = _moments(*measured, count + 1, law.dim)
        given = LawSeries(m, S, S * (0.0 if tokens is None else 1.0 / tokens))
    parts = 1 + (finite is not None) + (given is not None)
    found = _follow(passed, TokenLaw.of(law, finite), finite, _share(progress, 0, parts))
    chain = LawSeries.of([TokenLaw.of(law, finite), *(of.output for of in found)])
    mean_field, steps = chain, None
    if finite is not None:
        laws = _follow(passed, TokenLaw.of(law, None), None, _share(progress, 1, parts))
        mean_field = LawSeries.of([TokenLaw.of(law, None), *(of.output for of in laws)])
    if given is not None:
        told = _share(progress, parts - 1, parts)
        starts = given.laws()
        made = [starts[0]]
        for i, block in enumerate(passed):
            told(i / count, f"block {i + 1} from its measured input")
            made.append(block_moments(block, starts[i], finite).output)
        steps = LawSeries.of(made)
    progress(1.0, "done")
    return Propagation(
        model=stack.name,
        tokens=tokens,
        self_key=self_key,
        chain=chain,
        mean_field=mean_field,
        steps=steps,
        measured=given,
        logit_variance=np.array([of.attention.logit_variance for of in found]),
        self_weight=np.array([of.attention.self_weight for of in found]),
        concentration=np.array([of.attention.concentration for of in found]),
    )


def _follow(
    blocks: Sequence[Block], law: TokenLaw, tokens: FiniteTokens | None, progress: Progress
) -> list[BlockMoments]:
    made = []
    for i, block in enumerate(blocks):
        progress(i / len(blocks), f"block {i + 1} of {len(blocks)}")
        made.append(block_moments(block, law, tokens))
        law = made[-1].output
    return made


def _share(progress: Progress, index: int, parts: int) -> Progress:
    return lambda fraction, text: progress((index + fraction) / parts, text)


def check_stack(stack: object, law: object) -> None:
    """Refuse what is no stack, no Gaussian, or of different dimensions.

    Raises
    ------
    InvalidShape
    """
    if not isinstance(stack, Stack):
        raise InvalidShape(f"`stack` must be a Stack, not {type(stack).__name__}.")
    if not isinstance(law, Gaussian):
        raise InvalidShape(f"`law` must be a Gaussian, not {type(law).__name__}.")
    if law.dim != stack.width:
        raise InvalidShape(f"the law has dimension {law.dim}, but the stack has {stack.width}.")


def _count(stack: Stack, blocks: int | None) -> int:
    """The number of blocks to pass."""
    if blocks is None:
        return stack.depth
    count = _check.integer("blocks", blocks, low=1)
    if count > stack.depth and not stack.shared:
        raise InvalidNumber(
            f"`blocks` is {count}, but the stack has {stack.depth} blocks, which do not share "
            "their weights."
        )
    return count


def _moments(means: ArrayLike, covariances: ArrayLike, n: int, d: int) -> tuple[Array, Array]:
    m, S = _check.array("means", means, 2), _check.array("covariances", covariances, 3)
    for name, value, shape in (("means", m, (n, d)), ("covariances", S, (n, d, d))):
        if value.shape != shape:
            raise InvalidShape(
                f"`{name}` must have shape {shape}, the input and one entry for each block; it has "
                f"{value.shape}."
            )
    return m, S

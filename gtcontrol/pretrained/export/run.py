"""The one way in: `to_torch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _check
from ..._threads import single_threaded
from ...errors import InvalidMethod, MissingPackage
from ...gaussian import Gaussian
from ...problem import memory
from ...results.network import LayerWeights
from ...results.tensor_files import DTYPES
from ...schedule import Schedule
from .discretisation import corrected, require_finite, sampled
from .factors import factorise
from .source import Exportable, Source, depth_of, source_of, start_of

if TYPE_CHECKING:
    import torch

    from .module import ResidualTransformer

__all__ = ["build", "layers_of", "name_of", "require_torch", "to_torch", "weights_of"]


def to_torch(
    parameters: Exportable,
    horizon: float | None = None,
    *,
    layers: int,
    start: Gaussian | None = None,
    exact: bool = False,
    mask_self: bool = False,
    dtype: str | torch.dtype = "float64",
) -> ResidualTransformer:
    """Turn a plan, a design or parameters into layers of torch.

    The module consists of genuine residual softmax attention layers, x ← x + h (attention(x) +
    A x + b), with weights of queries, keys, values and outputs for each head.  Tokens of shape
    (N, d) or (batch, N, d) go through torch's fused attention; all weights are trainable.

    Parameters
    ----------
    parameters : Steering, Design, Schedule or Parameters
        Of dimension d, without process noise.
    horizon : float, optional
        End time; by default that of the plan or of the schedule.  The step h is horizon/layers.
    layers : int
        Number of layers.
    start : Gaussian, optional
        Law of the tokens at time 0; by default the start of the plan.  Where it is known, it is
        checked that the layers do not carry it out of double precision.
    exact : bool
        By default layer k has the parameters at time k h, as in ``gt.simulate_tokens(...,
        layers=n)``, and the moments are off by O(h).  With `exact`, A and b of each layer are
        corrected by O(h) such that the Gaussian law after each layer is that of the flow from
        `start`, for every number of layers.
    mask_self : bool
        Let no token attend to itself.
    dtype : str or torch.dtype
        "float64" or "float32".

    Returns
    -------
    torch.nn.Module
        A ``gtcontrol.pretrained.export.module.ResidualTransformer``.

    Raises
    ------
    InvalidShape, InvalidNumber, IncompatibleSchedule
        If an argument does not fit the others.
    InvalidMethod
        If there is process noise, or `dtype` is not known.
    MissingPackage
        If torch is not installed.
    OutOfScale
        If the layers carry the law of the start out of double precision, or `exact` asks for the
        moments of a flow that does not reach the horizon.
    TooLarge
        If the weights would not fit into memory.
    """
    require_torch()
    depth = depth_of(layers)
    source = source_of(parameters, horizon, start)
    weights = weights_of(source, depth, exact=exact, mask_self=mask_self, dtype=dtype)
    return build(weights)


@single_threaded
def weights_of(
    source: Source, depth: int, *, exact: bool, mask_self: bool, dtype: str | torch.dtype
) -> LayerWeights:
    """Weights of the layers of a source, whose law was found to stay finite if it is known."""
    hidden, name = _check.boolean("mask_self", mask_self), name_of(dtype)
    made = layers_of(source, depth, exact=_check.boolean("exact", exact))
    if source.start is not None:
        require_finite(source.start, made, source.schedule)
    return factorise(made, mask_self=hidden, dtype=name)


def layers_of(source: Source, depth: int, *, exact: bool) -> Schedule:
    """Parameters of the layers, as a schedule of one piece for each.

    Raises
    ------
    TooLarge
        If the weights would not fit into memory; this is found out before anything is made.
    """
    d = source.schedule.dim
    memory.require(
        f"the weights of {depth} layers of dimension {d}",
        2.0 * depth * d * (d + 1),
        "take fewer layers",
    )
    if not exact:
        return sampled(source.schedule, source.horizon, depth)
    start = start_of(source, "by layers that are to have the moments of its flow")
    return corrected(source.schedule, source.horizon, depth, start)


def build(weights: LayerWeights) -> ResidualTransformer:
    """Return the module with these weights."""
    require_torch()
    from .module import ResidualTransformer

    return ResidualTransformer.from_weights(weights)


def name_of(dtype: str | torch.dtype) -> str:
    """Name of a type of numbers that networks are built for."""
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise InvalidMethod(
            f"`dtype` is {name}; expected one of {', '.join(DTYPES)} (the module can be converted "
            "by `.to(dtype)`)."
        )
    return name


def require_torch() -> None:
    """Refuse to go on without torch.

    Raises
    ------
    MissingPackage
        If torch is not installed.
    """
    try:
        from . import module  # noqa: F401 - whether it can be imported
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingPackage(
            "torch is not installed, and exported layers need it: `pip install 'gtcontrol[torch]'`."
        ) from None

"""The constructive methods by name."""

from __future__ import annotations

from collections.abc import Callable

from ...gaussian import Gaussian
from ...problem.definitions import SteeringProblem
from ...schedule import Schedule
from .affine import constant_affine, two_piece_affine
from .attention import constant_attention
from .geodesic import attention_only, transport_geodesic
from .prescribed import prescribed_path
from .task import Refusal, Task
from .zero_bias import zero_bias

__all__ = ["METHODS", "applicable"]

#: Name of a method -> controller, which builds a schedule or says why it does not apply.
METHODS: dict[str, Callable[[Task], Schedule | Refusal]] = {
    "constant-affine": constant_affine,
    "two-piece-affine": two_piece_affine,
    "transport-geodesic": transport_geodesic,
    "constant-attention": constant_attention,
    "attention-only": attention_only,
    "prescribed-path": prescribed_path,
    "zero-bias": zero_bias,
}


def applicable(start: Gaussian, target: Gaussian, controls: str) -> tuple[str, ...]:
    """Names of the methods that carry a reachable target, in the unit horizon.

    A path can be prescribed whenever b follows its mean.
    """
    task = Task.of(SteeringProblem(start, target, controls=controls))
    return tuple(
        name
        for name, build in METHODS.items()
        if ("b" in controls if name == "prescribed-path" else not isinstance(build(task), Refusal))
    )

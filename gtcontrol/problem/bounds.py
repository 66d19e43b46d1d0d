"""Which controls are enabled, and the bounds on them and on the covariance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from .. import _check
from ..errors import InvalidControls

__all__ = ["CONTROLS", "Bounds", "parse_controls"]

#: The letters of the controls in their canonical order.
CONTROLS = "AVBb"


def parse_controls(controls: str, name: str = "controls") -> str:
    """Return the enabled controls in canonical order, each once.

    Raises
    ------
    InvalidControls
        If the string is empty, repeats a letter or holds an unknown one.
    """
    if not isinstance(controls, str):
        raise InvalidControls(
            f"`{name}` must be a string such as 'AVBb', not {type(controls).__name__}."
        )
    unknown = sorted(set(controls) - set(CONTROLS))
    if unknown:
        raise InvalidControls(
            f"`{name}` = {controls!r} holds unknown letter(s) {', '.join(unknown)}; "
            "the controls are A, V, B and b (lower case b is the bias)."
        )
    if not controls:
        raise InvalidControls(f"`{name}` is empty; enable at least one of A, V, B, b.")
    if len(set(controls)) != len(controls):
        raise InvalidControls(f"`{name}` = {controls!r} repeats a letter.")
    return "".join(letter for letter in CONTROLS if letter in controls)


@dataclass(frozen=True)
class Bounds:
    """Bounds on the controls and on the covariance along the path.

    Parameters
    ----------
    entries : mapping from control letter to float
        Largest absolute value of each entry, e.g. ``{"A": 2.0, "b": 5.0}``.
    norms : mapping from control letter to float
        Largest Frobenius norm (Euclidean norm for b).
    trace : float, optional
        Largest trace of the covariance along the path.
    largest_eigenvalue : float, optional
        Largest eigenvalue of the covariance along the path.

    Raises
    ------
    InvalidControls, InvalidNumber
        If a letter is unknown, or a bound is not a positive number.
    """

    entries: Mapping[str, float] = field(default_factory=dict)
    norms: Mapping[str, float] = field(default_factory=dict)
    trace: float | None = None
    largest_eigenvalue: float | None = None

    def __post_init__(self) -> None:
        for name in ("entries", "norms"):
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                raise InvalidControls(
                    f"`{name}` must map control letters to numbers, e.g. {{'A': 1.0}}; "
                    f"it is {type(given).__name__}."
                )
            checked = {}
            for letter, value in given.items():
                if letter not in CONTROLS or len(letter) != 1:
                    raise InvalidControls(
                        f"`{name}` holds {letter!r}; bounds go by the letters A, V, B, b."
                    )
                checked[letter] = _check.number(f"{name}.{letter}", value, low=0.0, strict=True)
            object.__setattr__(self, name, MappingProxyType(checked))
        for name in ("trace", "largest_eigenvalue"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _check.number(name, value, low=0.0, strict=True))

    @property
    def rotation_invariant(self) -> bool:
        """Whether the bounds do not depend on the choice of orthonormal coordinates."""
        return not self.entries

    def __bool__(self) -> bool:
        return bool(self.entries or self.norms or self.trace or self.largest_eigenvalue)

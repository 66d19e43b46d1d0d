"""The problem, stated in words."""

from __future__ import annotations

import math

from ...gaussian import Gaussian
from ...mixture import Mixture
from ...problem.bounds import Bounds
from ...problem.costs import ControlEnergy, Cost, KineticEnergy
from ..wording import matrix, number
from .base import Fact

__all__ = ["bounds_fact", "controls_fact", "cost_name", "cost_words", "law_fact", "law_facts"]

#: Laws with more entries than this are described, not written out.
LARGEST = 9

_CONTROLS = {
    "A": "A (linear layer)",
    "V": "V (attention values)",
    "B": "B (attention scores)",
    "b": "b (bias)",
}


def controls_fact(controls: str, others: str = "held at zero") -> Fact:
    """The enabled controls, and what becomes of the others."""
    off = [name for letter, name in _CONTROLS.items() if letter not in controls]
    fixed = f"; {others}: {', '.join(off)}" if off else ""
    return Fact("controls", ", ".join(_CONTROLS[letter] for letter in controls) + fixed)


def cost_name(cost: Cost) -> str:
    """Name of a cost, for axes and key numbers."""
    if isinstance(cost, KineticEnergy):
        return "kinetic energy"
    return "control energy" if isinstance(cost, ControlEnergy) else "time needed"


def cost_words(cost: Cost, controls: str) -> str:
    """A cost with its formula."""
    if isinstance(cost, KineticEnergy):
        return "kinetic energy of the tokens, ∫ E|v|² dt"
    if isinstance(cost, ControlEnergy):
        terms = [f"|{letter}|²" for letter in controls]
        if cost.kinetic:
            weight = "" if cost.kinetic == 1 else f"{number(cost.kinetic)} · "
            terms.append(f"{weight}E|v|²")
        return f"control energy, ∫ {' + '.join(terms)} dt"
    size = "each entry" if cost.norm == "entries" else "the Frobenius norm"
    letters = ", ".join(controls)
    return f"shortest time, with {size} of {letters} at most {number(cost.bound)} in size"


def bounds_fact(bounds: Bounds) -> Fact:
    """The bounds on controls and covariance."""
    parts = [f"entries of {k} at most {number(v)}" for k, v in bounds.entries.items()]
    parts += [f"norm of {k} at most {number(v)}" for k, v in bounds.norms.items()]
    if bounds.trace is not None:
        parts.append(f"trace of S at most {number(bounds.trace)}")
    if bounds.largest_eigenvalue is not None:
        parts.append(f"largest eigenvalue of S at most {number(bounds.largest_eigenvalue)}")
    return Fact("bounds", "; ".join(parts) or "none")


def law_facts(name: str, law: Gaussian | Mixture) -> list[Fact]:
    """A Gaussian, or the components of a mixture with their weights."""
    if isinstance(law, Gaussian):
        return [law_fact(name, law)]
    return [
        law_fact(f"{name}, component {k + 1} of weight {number(float(weight), 4)}", component)
        for k, (weight, component) in enumerate(zip(law.weights, law.laws, strict=True))
    ]


def law_fact(name: str, law: Gaussian) -> Fact:
    """A Gaussian: written out if it is small, else by its sizes."""
    if law.dim**2 <= LARGEST:
        words = f"mean {matrix(law.mean)}, covariance {matrix(law.covariance)}"
    else:
        distance = math.hypot(*law.mean.tolist())
        words = f"|mean| {number(distance, 4)}, total variance {number(law.trace, 4)}"
        if law.rank:
            low, high = law.eigenvalues[-1], law.eigenvalues[0]
            words += f", eigenvalues {number(low, 4)} to {number(high, 4)}"
    return Fact(name, f"{words} (rank {law.rank})")

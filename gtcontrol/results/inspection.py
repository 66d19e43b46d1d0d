"""Result of inspecting a pretrained model: where the Gaussian theory holds, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import ResultFileInvalid
from ..problem.definitions import InspectionProblem
from ..status import LayerVerdict, Status
from .base import Arrays, Result
from .gaussianity import Gaussianity
from .heads import NEUTRAL, HeadTable
from .layers import LawProfile, LayerFacts
from .plain import pack_plain, plain, read_status, restore

__all__ = ["Inspection"]


@dataclass(frozen=True, eq=False)
class Inspection(Result):
    """Token laws of a pretrained model after each layer, beside the Gaussian theory.

    Attributes
    ----------
    problem : InspectionProblem
    status : Status
        SUCCESS, or INTERRUPTED with the layers that were done.
    model : str
        Name of the model.
    family : str
        Its architecture.
    depth, whole, dim : int
        Layers that were asked for, layers that the model has, and width d of the tokens.
    parameters : int
        Weights of its blocks, shared ones counted once.
    placement : str
        Whether LayerNorm comes before attention and feed-forward net ("pre") or after ("post").
    shared : bool
        Whether all these layers have the same weights.
    positional : bool
        Whether rotary positions or attention windows acted, which the theory leaves out.
    numerics : float
        Largest relative difference from the reference library when the model was loaded; nan
        if it was not compared.
    ignored : str
        Weights of the checkpoint that are no part of the blocks, joined by commas.
    shapes : tuple of Gaussianity
        Of the tokens of the input, then after each of the n layers that were done.
    inner : tuple of Gaussianity
        In each layer: of the sum before its last LayerNorm if norms come last, else of the
        normalised tokens that attention sees.
    measured : LawProfile
        Measured moments over depth.
    chain : LawProfile
        Predicted from the moments of the input, with the closure for finitely many tokens.
    field : LawProfile
        The same in the mean field of infinitely many tokens.
    layers : tuple of LayerFacts
    heads : HeadTable
        Every head of the layers that were done.
    seconds : float
        Wall time spent.
    """

    kind: ClassVar[str] = "inspect"

    problem: InspectionProblem
    status: Status
    model: str
    family: str
    depth: int
    whole: int
    dim: int
    parameters: int
    placement: str
    shared: bool
    positional: bool
    numerics: float
    ignored: str
    shapes: tuple[Gaussianity, ...]
    inner: tuple[Gaussianity, ...]
    measured: LawProfile
    chain: LawProfile
    field: LawProfile
    layers: tuple[LayerFacts, ...]
    heads: HeadTable
    seconds: float

    @property
    def answered(self) -> bool:
        """Whether all layers were inspected."""
        return self.status.answered

    @property
    def verdicts(self) -> tuple[LayerVerdict, ...]:
        """How each layer that was done stands to the theory."""
        return tuple(
            facts.verdict(shape) for facts, shape in zip(self.layers, self.shapes[1:], strict=True)
        )

    def layers_with(self, *verdicts: LayerVerdict) -> tuple[int, ...]:
        """Layers, from 1, whose verdict is one of these."""
        pairs = zip(self.layers, self.verdicts, strict=True)
        return tuple(facts.layer for facts, verdict in pairs if verdict in verdicts)

    @property
    def lost(self) -> int | None:
        """First layer after which moments no longer follow from those of the input, if any.

        A layer beyond it that agrees again does so by chance.  Sampling is no excuse: errors of
        the covariance count beyond `floor` (see :class:`~gtcontrol.results.layers.LayerFacts`).
        """
        return next((facts.layer for facts in self.layers if facts.lost), None)

    @property
    def needed(self) -> float:
        """Sequences that decide on the layers that are UNDECIDED; 0 if there is none."""
        open_ = self.layers_with(LayerVerdict.UNDECIDED)
        now = self.problem.sequences
        return max((self.layers[k - 1].sequences(now) for k in open_), default=0.0)

    @property
    def partial(self) -> bool:
        """Whether the model has layers that were not looked at."""
        return len(self.layers) < self.whole

    @property
    def signs(self) -> str:
        """Sign of the summed head rate of each layer: "-" contracts, "+" expands, "0" neither.

        Rates are those of the mean field, as the sign rule of the theory has it.
        """
        rates = [facts.rate for facts in self.layers]
        return "".join("0" if abs(r) <= NEUTRAL else "+" if r > 0 else "-" for r in rates)

    @property
    def log_errors(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Mean |log λ' - log λ| of the leading eigenvalues, chain against measured, (n + 1,)."""
        floor = 1e-12 * self.measured.spectra[:, :1]
        logs = [np.log(np.maximum(x.spectra, floor)) for x in (self.chain, self.measured)]
        return np.asarray(np.mean(np.abs(logs[0] - logs[1]), axis=1))

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays."""
        values = {
            **pack_plain(self),
            "problem": pack_plain(self.problem),
            "status": self.status.name,
            "shapes": [shape.pack() for shape in self.shapes],
            "inner": [shape.pack() for shape in self.inner],
            "layers": [pack_plain(facts) for facts in self.layers],
            "heads": self.heads.pack(),
            "verdicts": [verdict.name for verdict in self.verdicts],
        }
        arrays: Arrays = {}
        for name in _PROFILES:
            arrays |= getattr(self, name).pack(name)
        return values, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> Inspection:
        """Restore the result."""
        fields = plain(cls, values)
        lists = {name: _entries(values, name) for name in ("shapes", "inner", "layers")}
        done = len(lists["layers"])
        status = read_status(values)
        if fields["depth"] > fields["whole"]:
            raise ResultFileInvalid(
                f"{fields['depth']} layers were asked for, but the model has {fields['whole']}."
            )
        if done > fields["depth"] or (status is Status.SUCCESS and done < fields["depth"]):
            raise ResultFileInvalid(
                f"the result holds {done} of {fields['depth']} layers, but is {status.name}."
            )
        if len(lists["shapes"]) != done + 1 or len(lists["inner"]) != done:
            raise ResultFileInvalid(f"`shapes` and `inner` do not fit {done} layers.")
        layers = tuple(restore(LayerFacts, entry) for entry in lists["layers"])
        if [facts.layer for facts in layers] != list(range(1, done + 1)):
            raise ResultFileInvalid("`layers` are not numbered from 1 on.")
        measured, chain, mean_field = (
            LawProfile.unpack(name, arrays, done + 1, fields["dim"]) for name in _PROFILES
        )
        made = cls(
            problem=restore(InspectionProblem, values["problem"]),
            status=status,
            shapes=tuple(Gaussianity.unpack(entry) for entry in lists["shapes"]),
            inner=tuple(Gaussianity.unpack(entry) for entry in lists["inner"]),
            layers=layers,
            heads=HeadTable.unpack(values["heads"], done),
            measured=measured,
            chain=chain,
            field=mean_field,
            **fields,
        )
        if values["verdicts"] != [verdict.name for verdict in made.verdicts]:
            raise ResultFileInvalid("`verdicts` do not follow from the rest.")
        return made


_PROFILES = ("measured", "chain", "field")


def _entries(values: dict[str, Any], name: str) -> list[Any]:
    if not isinstance(values[name], list):
        raise ResultFileInvalid(f"`{name}` is no list.")
    return list(values[name])

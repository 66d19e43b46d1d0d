"""The kind "inspect": where the Gaussian theory holds in a pretrained Transformer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import Field

from ...problem.expectations import Expect
from ...problem.schema import Count, Number, Positive, Table, Text, Whole
from ...progress import Progress
from ...results.inspection import Inspection
from ...status import LayerVerdict
from .base import KindDocument, Source, Task, lacking

__all__ = [
    "ABOUT",
    "DOCUMENT",
    "INPUTS",
    "TEMPLATE",
    "InspectExpect",
    "InspectTable",
    "InspectTask",
]

ABOUT = "where does the Gaussian theory hold in a pretrained Transformer?"

TEMPLATE = """\
# Where does the Gaussian theory hold in a pretrained Transformer: shape of the tokens, moments,
# heads, layer by layer?  Needs `pip install 'gtcontrol[pretrained]'`.  Check this file with
# `gtcontrol check FILE`, run it with `gtcontrol run FILE`.  What is commented out shows the
# default or another way.

kind = "inspect"
title = "An ALBERT for chemical reactions"
description = "What is looked at, in a few words."

[inspect]
# A folder with config.json and weights, an ONNX file, a name on the Hugging Face hub, or the
# name of an installed package that holds weights.
model = "package:rxnmapper"
input = "matched"            # Gaussian tokens with the moments of real embeddings,
                             # or "isotropic", or "real"
# data = "sentences.txt"     # real input: a text file, a folder of images, .npy or .safetensors
tokens = 64                  # in each sequence (default 512, or as many as an image has)
sequences = 8                # (default 16, or all of a file of tokens)
layers = 2                   # the first ones only (default: all)
# seed = 0

# What you expect of the result, if anything; the exit code is 1 if it does not come true.
[expect]
status = "SUCCESS"
# holds_at_least = 1           # layers in which the theory holds (moments and shape); _at_most
# predicted_at_least = 1       # layers whose moments are predicted; _at_most
# sliced_early_at_most = 0.05  # largest sliced distance after layers up to two thirds of them
# sliced_last_at_least = 0.15  # after the last layer; _at_most
# spread_last_at_least = 100.0 # Mahalanobis spread after the last layer
# first_step_at_most = 0.1     # error of the covariance after layer 1; worst_step_at_most
# rate_first_at_most = 0.0     # sum of the head rates of layer 1, _last of the last; _at_least
# signs_contains = "--0+"       # sign of the summed head rate, one character for each layer
"""

Inputs = Literal["matched", "isotropic", "real"]

INPUTS: tuple[str, ...] = get_args(Inputs)

#: Share of the layers that counts as early and middle ones.
EARLY = 2 / 3


class InspectTable(Table):
    """Which model, and what runs through it."""

    model: Annotated[str, Field(min_length=1, description="a string that is not empty")]
    input: Inputs = "matched"
    data: Annotated[str, Field(min_length=1, description="a path")] | None = None
    tokens: Annotated[int, Field(ge=2, description="a whole number that is at least 2")] | None = (
        None
    )
    sequences: (
        Annotated[int, Field(ge=2, description="a whole number that is at least 2")] | None
    ) = None
    layers: Count | None = None
    seed: Whole = 0


class InspectExpect(Expect):
    """What is expected of the inspection."""

    status: Literal["SUCCESS"] | None = None
    holds_at_least: Whole | None = None
    holds_at_most: Whole | None = None
    predicted_at_least: Whole | None = None
    predicted_at_most: Whole | None = None
    sliced_early_at_most: Positive | None = None
    sliced_last_at_least: Positive | None = None
    sliced_last_at_most: Positive | None = None
    spread_last_at_least: Positive | None = None
    first_step_at_most: Positive | None = None
    worst_step_at_most: Positive | None = None
    chain_last_at_most: Positive | None = None
    rate_first_at_least: Number | None = None
    rate_first_at_most: Number | None = None
    rate_last_at_least: Number | None = None
    rate_last_at_most: Number | None = None
    signs_contains: Text | None = None
    numerics_at_most: Positive | None = None


class InspectDocument(KindDocument):
    """A file of kind "inspect"."""

    kind: Literal["inspect"]
    inspect: InspectTable
    expect: InspectExpect = InspectExpect()

    def prepare(self, source: Source) -> Task:
        """Build and check all values; whether the model is there is seen when it is loaded."""
        return InspectTask(self.expect, source.name, self.inspect, source.folder)


DOCUMENT = InspectDocument


@dataclass(frozen=True)
class InspectTask(Task):
    """The inspection with its values."""

    expect: InspectExpect
    name: str
    table: InspectTable
    folder: Path

    @property
    def about(self) -> str:
        """Kind, model and input."""
        t = self.table
        many = "" if t.sequences is None else f", {t.sequences} sequences"
        of = "" if t.tokens is None else f"{' of' if many else ','} {t.tokens} tokens"
        return f"inspect, {t.model}, {t.input} input{many}{of}"

    @property
    def lacks(self) -> str:
        """What the model certainly needs and is not installed."""
        model = self.table.model
        if model.endswith(".onnx"):
            return lacking("pretrained", "torch", "onnx")
        if model.startswith("package:") or (self.folder / model).is_dir():  # perhaps of ONNX
            return lacking("pretrained", "torch")
        return lacking("pretrained", "torch", "transformers")

    def run(self, progress: Progress) -> Inspection:
        """Load the model, run it, and follow Gaussians through it."""
        from ...pretrained.inspection import inspect  # torch is loaded only to run

        t = self.table
        local = self.folder / t.model
        return inspect(
            str(local) if local.exists() else t.model,
            input=t.input,
            data=None if t.data is None else self.folder / t.data,
            tokens=t.tokens,
            sequences=t.sequences,
            layers=t.layers,
            rng=t.seed,
            progress=progress,
            name=self.name,
        )

    def observe(self, result: Inspection) -> Mapping[str, Any]:
        """Values by the names that ``[expect]`` uses."""
        sliced = np.array([shape["sliced"].value for shape in result.shapes[1:]])
        early = max(int(EARLY * result.depth), 1)
        steps = [facts.step_covariance for facts in result.layers]
        rates = [facts.rate for facts in result.layers]
        holds, moments = LayerVerdict.HOLDS, LayerVerdict.MOMENTS
        return {
            "status": result.status.name,
            "holds": len(result.layers_with(holds)),
            "predicted": len(result.layers_with(holds, moments)),
            "sliced_early": float(sliced[:early].max()),
            "sliced_last": float(sliced[-1]),
            "spread_last": result.shapes[-1]["spread"].value,
            "first_step": steps[0],
            "worst_step": max(steps),
            "chain_last": result.layers[-1].chain_covariance,
            "rate_first": rates[0],
            "rate_last": rates[-1],
            "signs": result.signs,
            "numerics": result.numerics,
        }

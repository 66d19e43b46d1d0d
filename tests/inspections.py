"""Small stacks made of the value types, and inspections made by hand: no torch is needed."""

from __future__ import annotations

import numpy as np

from gtcontrol.pretrained import AttentionWeights, Block, Mlp, Norm, Stack
from gtcontrol.problem.definitions import InspectionProblem
from gtcontrol.results.heads import HeadFacts, HeadTable
from gtcontrol.results.inspection import Inspection
from gtcontrol.results.layers import LawProfile, LayerFacts
from gtcontrol.status import Status
from gtcontrol.validation.shape_series import ShapeSeries


def attention(rng, d, heads, score=0.5, value=0.5):
    """Random attention whose scores and values have about the sizes given."""
    k = d // heads

    def draw(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    return AttentionWeights(
        query=draw(heads, k, d) * np.float32(np.sqrt(score) / np.sqrt(d)),
        query_bias=0.1 * draw(heads, k),
        key=draw(heads, k, d) * np.float32(np.sqrt(score) / np.sqrt(d)),
        key_bias=0.1 * draw(heads, k),
        value=draw(heads, k, d) / np.float32(np.sqrt(d)),
        value_bias=0.1 * draw(heads, k),
        output=draw(d, heads * k) * np.float32(value / np.sqrt(d)),
        output_bias=0.1 * draw(d),
        scale=1.0,
    )


def signed(d, sign, score=0.4, value=0.5):
    """One head with V = value I and B = sign score I."""
    one, nothing = np.eye(d, dtype=np.float32)[None], np.zeros((1, d), dtype=np.float32)
    return AttentionWeights(
        query=np.float32(sign * score) * one,
        query_bias=nothing,
        key=one,
        key_bias=nothing,
        value=np.float32(value) * one,
        value_bias=nothing,
        output=one[0],
        output_bias=nothing[0],
        scale=1.0,
    )


def mlp(rng, d, size=0.3):
    """A small feed-forward net with twice the width inside."""
    inner = rng.standard_normal((2 * d, d)).astype(np.float32) / np.float32(np.sqrt(d))
    outer = rng.standard_normal((d, 2 * d)).astype(np.float32) * np.float32(size / np.sqrt(d))
    bias = np.zeros(2 * d, dtype=np.float32)
    return Mlp(inner, bias, outer, np.zeros(d, dtype=np.float32), "gelu")


def norm(rng, d):
    """A LayerNorm with weights around one."""
    weight = 1 + 0.1 * rng.standard_normal(d)
    bias = 0.1 * rng.standard_normal(d)
    return Norm(weight.astype(np.float32), bias.astype(np.float32), 1e-6)


def tiny(placement="post", d=24, heads=3, depth=3, seed=0, **sizes):
    """A random stack like BERT ("post") or a vision Transformer ("pre")."""
    rng = np.random.default_rng(seed)
    blocks = tuple(
        Block(attention(rng, d, heads, **sizes), mlp(rng, d), norm(rng, d), norm(rng, d), placement)
        for _ in range(depth)
    )
    return Stack(f"tiny-{placement}", "custom", blocks)


def made(*, done=3, depth=3, dim=6, holds=True, **changed):
    """An inspection whose numbers are made up, but fit together."""
    rng = np.random.default_rng(1)
    S = np.diag(np.exp(-np.arange(dim) / 2.0))
    series = ShapeSeries(64, baselines=3, directions=8)

    def shape(tail):
        cloud = rng.standard_normal((64, dim)) * (1 + tail * rng.standard_normal((64, 1)))
        return series.measure(cloud @ np.sqrt(S))

    def profile(growth):
        laws = [S * (1 + growth * i) for i in range(done + 1)]
        return LawProfile.of([np.full(dim, 0.1 * i) for i in range(done + 1)], laws, 4)

    error = 0.05 if holds else 0.5
    rows = [
        HeadFacts(
            layer, head, rate, 0.8 * rate, 0.1, 0.5, 0.4 if rate > 0 else -0.4, 3.0 * head, 0.001
        )
        for layer in range(1, done + 1)
        for head, rate in ((1, 0.3 * (-1) ** layer), (2, 0.01))
    ]
    facts = [
        LayerFacts(
            k, 0.25 * (-1) ** k, 0.1, 0.3 * (-1) ** k + 0.01, 0.24 * (-1) ** k + 0.008, -0.2, 0.6,
            0.02, error, 0.03, k * error, 0.1, 2 * k * error, 0.04,
        )
        for k in range(1, done + 1)
    ]  # fmt: skip
    values = {
        "problem": InspectionProblem(
            "folder/of a model", "real", "text.txt", 8, 8, 3, 5, "made-up"
        ),
        "status": Status.SUCCESS if done == depth else Status.INTERRUPTED,
        "model": "made up",
        "family": "custom",
        "depth": depth,
        "whole": depth,
        "dim": dim,
        "parameters": 1234,
        "placement": "post",
        "shared": False,
        "positional": True,
        "numerics": float("nan"),
        "ignored": "pooler.weight, pooler.bias",
        "shapes": tuple(shape(0.3 * i) for i in range(done + 1)),
        "inner": tuple(shape(0.5) for _ in range(done)),
        "measured": profile(0.5),
        "chain": profile(0.4),
        "field": profile(0.8),
        "layers": tuple(facts),
        "heads": HeadTable(64, tuple(rows)),
        "seconds": 1.5,
    }
    return Inspection(**{**values, **changed})

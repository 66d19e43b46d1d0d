"""Inspections of pretrained models: what is measured, what is said, and what is refused."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import gtcontrol as gt
from gtcontrol.errors import GtcontrolError, InvalidMethod, InvalidNumber, MissingPackage
from gtcontrol.pretrained import Block, Stack, measurement
from gtcontrol.pretrained.adapters.packages import find_in_package
from gtcontrol.pretrained.forward import BlockRecord
from gtcontrol.reporting import figures, html
from gtcontrol.reporting.views import view
from gtcontrol.reporting.views.inspection import ranges
from gtcontrol.results.layers import LawProfile
from gtcontrol.status import LayerVerdict, Status
from gtcontrol.validation.shape_series import ShapeSeries
from tests.inspections import made, mlp, norm, signed, tiny

RNG = np.random.default_rng(0)


# -- shape ---------------------------------------------------------------------------------


def student(count, dim, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_t(8, (count, dim)) * np.exp(-np.arange(dim) / 4.0)


class TestShapeSeries:
    def test_it_measures_what_gaussianity_measures(self):
        cloud = student(600, 8)
        mine, theirs = ShapeSeries(600, 5).measure(cloud), gt.gaussianity(cloud, rng=3)
        assert (mine.count, mine.dim, mine.rank) == (theirs.count, theirs.dim, theirs.rank)
        for name in ("leading", "spread", "skewness", "kurtosis"):
            assert mine[name].value == pytest.approx(theirs[name].value, rel=1e-9)
        # Directions are random.
        assert mine["sliced"].value == pytest.approx(theirs["sliced"].value, rel=0.1)
        for one, other in zip(mine.statistics, theirs.statistics, strict=True):
            error = 4 * max(one.deviation, other.deviation) * np.sqrt(1 / 10 + 1 / 20)
            assert abs(one.baseline - other.baseline) < error

    def test_affine_maps_and_negligible_directions_change_nothing(self):
        cloud = student(500, 5)
        rotated = np.linalg.qr(np.random.default_rng(1).standard_normal((7, 7)))[0][:, :5]
        padded = 100.0 + 3.0 * cloud @ rotated.T
        padded += 1e-6 * np.random.default_rng(2).standard_normal(padded.shape)
        series = ShapeSeries(500)
        one, other = series.measure(cloud), series.measure(padded)
        assert (one.rank, other.rank, other.dim) == (5, 5, 7)
        for name in ("leading", "spread", "skewness"):
            assert one[name].value == pytest.approx(other[name].value, rel=1e-3)

    def test_gaussian_clouds_pass_and_others_do_not_on_either_side(self):
        series = ShapeSeries(800)
        rng = np.random.default_rng(4)
        normal = rng.standard_normal((800, 6))
        assert series.measure(normal).gaussian
        sphere = normal / np.linalg.norm(normal, axis=1, keepdims=True)
        thin, heavy = series.measure(sphere), series.measure(student(800, 6))
        assert thin.scores["spread"] < -thin.threshold
        assert heavy.scores["spread"] > heavy.threshold

    def test_the_baseline_is_drawn_once_for_each_rank(self):
        series = ShapeSeries(300)
        first, second = series.measure(student(300, 4)), series.measure(student(300, 4, 1))
        assert first["spread"].baseline == second["spread"].baseline
        assert first["sliced"].baseline != second["sliced"].baseline or np.isclose(
            first["sliced"].baseline, second["sliced"].baseline
        )

    @pytest.mark.parametrize(
        ("cloud", "words"),
        [
            (np.ones((50, 3)), "no variance"),
            (RNG.standard_normal((50, 49)), "needs more than 50"),
            (RNG.standard_normal((40, 3)), "this series is of 50"),
        ],
    )
    def test_what_has_no_shape_is_refused(self, cloud, words):
        with pytest.raises(InvalidNumber, match=words) as caught:
            ShapeSeries(50).measure(cloud)
        assert "\n" not in str(caught.value)


# -- moments of a layer --------------------------------------------------------------------


def record(seed=0, T=5, N=60, d=4):
    """A record of a pre-norm layer with made-up arrays."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((T, N, d)) + rng.standard_normal((T, 1, d))
    u = np.tanh(x) + 0.1 * rng.standard_normal(x.shape)
    a = u @ rng.standard_normal((d, d)) + 0.5 * rng.standard_normal(x.shape) + 1.0
    arrays = {"input": x, "attended": u, "attention": a, "output": x + a}
    return BlockRecord(1, **{k: v.astype(np.float32) for k, v in arrays.items()})


class TestMeasurement:
    stack = tiny("pre", d=4, heads=2, depth=1)

    def flat(self, name):
        return getattr(record(), name).reshape(-1, 4).astype(float)

    def test_moments_are_those_of_numpy(self):
        seen = measurement.measure_layer(record(), self.stack.blocks[0])
        x, u, a = (self.flat(n) for n in ("input", "attended", "attention"))
        joint = np.cov(np.concatenate([x, u, a], axis=1).T, bias=True)
        parts = {
            (0, 0): seen.before.covariance,
            (1, 1): seen.attended.covariance,
            (2, 2): seen.added.covariance,
            (2, 0): seen.added_before,
            (1, 0): seen.attended_before,
            (2, 1): seen.added_attended,
        }
        for (i, j), part in parts.items():
            np.testing.assert_allclose(
                part, joint[4 * i : 4 * i + 4, 4 * j : 4 * j + 4], atol=1e-12
            )
        np.testing.assert_allclose(seen.after.mean, (x + a).mean(axis=0), atol=1e-6)
        means = record().input.mean(axis=1, dtype=float)
        np.testing.assert_allclose(seen.before.between, np.cov(means.T, bias=True), atol=1e-12)

    def test_drift_and_gain_add_up_to_the_growth_of_the_variance(self):
        seen = measurement.measure_layer(record(), self.stack.blocks[0])
        assert 1 + seen.drift + seen.gain == pytest.approx(
            seen.after.trace / seen.before.trace, rel=1e-6
        )

    def test_explained_is_the_r_squared_of_the_map(self):
        seen = measurement.measure_layer(record(), self.stack.blocks[0])
        rng = np.random.default_rng(9)
        K, c = rng.standard_normal((4, 4)), rng.standard_normal(4)
        u, a = self.flat("attended"), self.flat("attention")
        error = np.mean(np.sum((a - c - u @ K.T) ** 2, axis=1))
        total = np.mean(np.sum((a - a.mean(axis=0)) ** 2, axis=1))
        assert seen.explained(K, c) == pytest.approx(1 - error / total, rel=1e-9)

    def test_affine_is_least_squares_adjusted(self):
        seen = measurement.measure_layer(record(), self.stack.blocks[0])
        u, a = self.flat("attended"), self.flat("attention")
        design = np.concatenate([u, np.ones((len(u), 1))], axis=1)
        rest = a - design @ np.linalg.lstsq(design, a, rcond=None)[0]
        n, r = u.shape
        plain = 1 - np.sum(rest**2) / np.sum((a - a.mean(axis=0)) ** 2)
        assert seen.affine == pytest.approx(1 - (1 - plain) * (n - 1) / (n - 1 - r), rel=1e-9)

    def test_where_norms_come_last_attention_sees_the_stream(self):
        seen = measurement.measure_layer(record(), tiny("post", d=4, heads=2).blocks[0])
        np.testing.assert_array_equal(seen.attended_before, seen.before.covariance)
        np.testing.assert_array_equal(seen.added_attended, seen.added_before)

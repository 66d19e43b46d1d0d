"""Inspections of pretrained models: what is measured, what is said, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import gtcontrol as gt
from gtcontrol.errors import GtcontrolError, InvalidMethod, InvalidNumber, MissingPackage, TooLarge
from gtcontrol.pretrained import Block, Stack, measurement
from gtcontrol.pretrained.adapters.packages import find_in_package
from gtcontrol.pretrained.forward import BlockRecord
from gtcontrol.reporting import figures, html
from gtcontrol.reporting.views import view
from gtcontrol.reporting.views.inspection import ranges
from gtcontrol.results.layers import LawProfile
from gtcontrol.status import LayerVerdict, Status
from gtcontrol.validation.shape_series import ShapeSeries
from tests import real_models, tiny_models
from tests.inspections import made, mlp, norm, signed, tiny

RNG = np.random.default_rng(0)


@pytest.fixture
def torch():
    """Skip the test without torch, or fail it under CI."""
    real_models.require("torch")


# -- shape ---------------------------------------------------------------------------------


def student(count, dim, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_t(8, (count, dim)) * np.exp(-np.arange(dim) / 4.0)


class TestShapeSeries:
    def test_it_measures_what_gaussianity_measures(self):
        cloud = student(600, 8)
        mine = ShapeSeries(600, 5, directions=2000).measure(cloud)
        theirs = gt.gaussianity(cloud, rng=3, directions=2000)
        assert (mine.count, mine.dim, mine.rank) == (theirs.count, theirs.dim, theirs.rank)
        for name in ("leading", "spread", "skewness", "kurtosis"):
            assert mine[name].value == pytest.approx(theirs[name].value, rel=1e-9)
        # Directions are random, and many.
        assert mine["sliced"].value == pytest.approx(theirs["sliced"].value, rel=0.03)
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


# -- whole stacks --------------------------------------------------------------------------


def inspected(stack, tmp_path, tokens, **options):
    """Inspect a stack without an embedding, on tokens in a file."""
    file = tmp_path / "tokens.npy"
    np.save(file, tokens.astype(np.float32))
    return gt.pretrained.inspect(stack, input="real", data=file, **options)


def normal(d, T=4, N=200, seed=0):
    return np.random.default_rng(seed).standard_normal((T, N, d))


@pytest.mark.usefixtures("torch")
class TestInspect:
    @pytest.mark.parametrize("placement", ["pre", "post"])
    def test_gentle_attention_on_gaussian_tokens_is_what_theory_describes(
        self, placement, tmp_path
    ):
        stack = tiny(placement, d=48, heads=4, depth=2, score=0.15, value=0.5)
        seen = inspected(stack, tmp_path, normal(48, N=1000))
        assert seen.status is Status.SUCCESS
        assert len(seen.layers) == 2
        assert all(v is LayerVerdict.HOLDS for v in seen.verdicts)
        assert seen.lost is None
        assert all(seen.heads.valid(row) for row in seen.heads.rows)
        for facts in seen.layers:
            # Within three times what drawing tokens does by itself.
            assert facts.step_covariance < 3 * facts.floor
            assert abs(facts.effective_rate - facts.drift) < 0.02
            # Softmax over finitely many keys is noisy, but not beyond the best affine map.
            assert facts.pointwise <= facts.affine + 0.05
        assert seen.measured.traces[-1] == pytest.approx(seen.chain.traces[-1], rel=0.05)

    def test_what_is_measured_is_what_the_stack_does(self, tmp_path):
        stack = tiny("post", depth=2)
        tokens = normal(24)
        seen = inspected(stack, tmp_path, tokens)
        output = stack.run(tokens, ["output"])[1].output.reshape(-1, 24).astype(float)
        S = np.cov(output.T, bias=True)
        assert seen.measured.traces[2] == pytest.approx(np.trace(S), rel=1e-9)
        np.testing.assert_allclose(seen.measured.spectra[2], np.linalg.eigvalsh(S)[::-1], atol=1e-9)
        np.testing.assert_allclose(seen.measured.means[2], output.mean(axis=0), atol=1e-9)
        shape = gt.gaussianity(output, rng=1)
        assert seen.shapes[2]["spread"].value == pytest.approx(shape["spread"].value, rel=1e-9)
        assert seen.problem.tokens == 200
        assert (seen.depth, seen.dim, seen.family) == (2, 24, "custom")

    @pytest.mark.parametrize(("sign", "word"), [(-1, "contracting"), (1, "expanding")])
    def test_the_sign_rule(self, sign, word, tmp_path):
        """V = v I: attention contracts where B is negative and expands where it is positive."""
        d, rng = 16, np.random.default_rng(2)
        blocks = (Block(signed(d, sign), mlp(rng, d, 0.01), None, norm(rng, d), "pre"),)
        seen = inspected(Stack("signed", "custom", blocks), tmp_path, normal(d, N=1000))
        facts = seen.layers[0]
        assert seen.heads.verdict(1) == word
        assert np.sign(facts.drift) == np.sign(facts.rate) == sign
        row = seen.heads.rows[0]
        assert (row.balance_V, row.balance_B) == (pytest.approx(1.0), pytest.approx(sign))
        # 2 tr(V S B S)/tr S in the mean field, S close to I.
        assert facts.rate == pytest.approx(2 * 0.5 * sign * 0.4, rel=0.1)

    def test_spread_scores_freeze_heads(self, tmp_path):
        seen = inspected(tiny(depth=1, score=8.0), tmp_path, normal(24))
        assert all(seen.heads.frozen(row) for row in seen.heads.rows)
        assert not any(seen.heads.valid(row) for row in seen.heads.rows)
        assert "; 3 are frozen on their best key" in view(seen).facts[2].value

    def test_a_transposed_score_matrix_is_caught(self, tmp_path):
        """What theory says of a stack with queries and keys exchanged misses the stack."""
        stack = tiny("post", d=24, heads=2, depth=1, score=0.4, value=2.0)
        block = stack.blocks[0]
        a = block.attention
        wrong = replace(a, query=a.key, key=a.query, query_bias=a.key_bias, key_bias=a.query_bias)
        tokens = normal(24, N=1000) * np.exp(-np.arange(24) / 6.0)
        right = inspected(stack, tmp_path, tokens).layers[0]
        other = Stack("wrong", "custom", (replace(block, attention=wrong),))
        # Rates of the wrong stack against the drift of the right one.
        miss = inspected(other, tmp_path, tokens).layers[0].effective_rate - right.drift
        assert abs(right.effective_rate - right.drift) < 0.2 * abs(miss)

    def test_interrupted_it_keeps_whole_layers(self, tmp_path):
        def stop(fraction, text):
            if text.startswith("layer 3"):
                raise KeyboardInterrupt

        seen = inspected(tiny(), tmp_path, normal(24), progress=stop)
        assert seen.status is Status.INTERRUPTED
        assert not seen.answered
        assert [len(x) for x in (seen.layers, seen.inner, seen.shapes)] == [2, 2, 3]
        assert "2 of 3 layers" in seen.summary()
        seen.save(tmp_path / "run")
        assert gt.load(tmp_path / "run").summary() == seen.summary()

    def test_interrupted_before_the_first_layer_there_is_nothing(self, tmp_path):
        def stop(fraction, text):
            if text.startswith("layer 1"):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            inspected(tiny(), tmp_path, normal(24), progress=stop)

    def test_progress_grows_to_one(self, tmp_path):
        told = []
        inspected(
            tiny(depth=2), tmp_path, normal(24), progress=lambda f, text: told.append((f, text))
        )
        fractions = [f for f, _ in told]
        assert fractions == sorted(fractions)
        assert fractions[-1] == 1.0
        assert any("layer 2 of 2" in text for _, text in told)

    def test_the_same_seed_gives_the_same_result(self, tmp_path):
        one, other = (inspected(tiny(depth=1), tmp_path, normal(24), rng=7) for _ in range(2))
        assert one.shapes == other.shapes
        assert one.layers == other.layers

    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({"input": "text"}, InvalidMethod, "`input` is 'text'; expected matched, isotropic"),
            ({"tokens": 1}, InvalidNumber, "`tokens` must be at least 2"),
            ({"sequences": 1}, InvalidNumber, "`sequences` must be at least 2"),
            ({"layers": 0}, InvalidNumber, "`layers` must be at least 1"),
            ({"layers": 2}, InvalidNumber, "`layers` is 2, but tiny-post has 1 layers"),
            ({"rng": -1}, InvalidNumber, "`rng` must be at least 0"),
            ({"input": "matched"}, InvalidMethod, "has no embedding"),
            ({"data": "/nowhere/x.npy", "input": "real"}, GtcontrolError, "no file or folder"),
        ],
    )
    def test_mistakes_are_one_line(self, options, error, words):
        with pytest.raises(error, match=words) as caught:
            gt.pretrained.inspect(tiny(depth=1), **options)
        assert "\n" not in str(caught.value)

    def test_too_few_tokens_for_the_width(self, tmp_path):
        with pytest.raises(
            InvalidNumber, match="2 sequences of 10 tokens are 20 tokens; tiny"
        ) as e:
            inspected(tiny(depth=1), tmp_path, normal(24, T=2, N=10))
        assert "needs more than 25: take at least 3 `sequences`." in str(e.value)

    def test_the_size_is_checked_before_the_numerics(self, tmp_path, monkeypatch):
        from gtcontrol.pretrained import loading

        real_models.require("torch", "transformers")
        monkeypatch.setattr(loading, "check_against_module", lambda *_: pytest.fail("compared"))
        for variant in ("bert", "vit"):
            folder = tiny_models.save(tiny_models.build(variant), tmp_path / variant)
            with pytest.raises(InvalidNumber, match="at least 13 `tokens`, or at least 3 `seq"):
                gt.pretrained.inspect(folder, tokens=10, sequences=2)
            for options in ({"tokens": 10**9}, {"sequences": 10**9}):
                with pytest.raises(TooLarge, match=f"inspecting {variant} on .* would take about"):
                    gt.pretrained.inspect(folder, **options)
            with pytest.raises(InvalidNumber, match="`layers` is 4, but"):
                gt.pretrained.inspect(folder, layers=4)


# -- words and pictures --------------------------------------------------------------------


class TestReport:
    def test_one_layer_of_many_is_told_as_such(self):
        seen = made(done=1, depth=1, whole=12)
        words = view(seen)
        assert words.verdict in (
            "theory holds in the first layer (of 12)",
            "theory does not hold in the first layer (of 12)",
        )
        assert "the first layer (of 12; the others were not looked at)" in words.headline
        assert "the first of its 12 layers" in words.statement[1].value
        told = " ".join([words.headline, *(fact.value for fact in words.facts)])
        told += " ".join(f.get_suptitle() for f in seen.plot().values())
        for wrong in ("all layers", "none is missed", "1 layers", "whole stack", "0.05 to 0.05"):
            assert wrong not in told
        ticks = [ax.get_xticks() for ax in seen.plot()["errors"].axes]
        assert all(tick == round(tick) for tick in np.concatenate(ticks))

    def test_some_layers_of_many(self):
        words = view(made(whole=12))
        assert "of the first 3 layers (of 12)" in words.verdict
        assert "all layers" not in words.headline

    def test_where_sampling_explains_the_error_nothing_is_decided(self):
        """No layer is called predicted beyond 0.2, and none missed that chance explains."""
        seen = made()
        verdicts = {}
        for error, floor in ((0.2, 0.3), (0.22, 0.1), (0.22, 0.02), (0.27, 0.21), (0.27, 0.0)):
            layers = [replace(facts, step_covariance=error, floor=floor) for facts in seen.layers]
            verdicts[error, floor] = replace(seen, layers=tuple(layers)), layers[0]
        predicted = [facts.predicted for _, facts in verdicts.values()]
        missed = [facts.missed for _, facts in verdicts.values()]
        assert predicted == [True, False, False, False, False]
        assert missed == [False, False, True, False, True]
        result, facts = verdicts[0.27, 0.21]
        assert set(result.verdicts) == {LayerVerdict.UNDECIDED}
        # So many sequences bring the error itself to 0.2.
        share = 8 / facts.sequences(8)
        assert 0.27**2 - 0.21**2 * (1 - share) == pytest.approx(0.04)
        words = view(result)
        assert "too few sequences to tell, take at least 32 (now 8)" in words.headline
        assert words.verdict == "theory holds in 0 of 3 layers, 3 undecided"
        assert "predicted within" not in words.headline

    def test_the_excess_that_is_compared_is_printed(self):
        seen = made()
        table = view(seen).tables[0]
        for row, shape in zip(table.rows, seen.shapes[1:], strict=True):
            near, sliced, leading = (
                row[2].replace("(", "").replace(")", "").replace(",", "").split()
            )
            s, p = shape["sliced"], shape["leading"]
            assert float(sliced) == pytest.approx(
                max(s.value**2 - s.baseline**2, 0) ** 0.5, rel=0.06
            )
            assert float(leading) == pytest.approx(
                max(p.value**2 - p.baseline**2, 0) ** 0.5, rel=0.06
            )
            assert near == ("yes" if float(sliced) <= 0.05 and float(leading) <= 0.15 else "no")

    def test_what_is_not_predicted_comes_first(self):
        facts = view(made(holds=False)).facts
        assert [f.label for f in facts[:3]] == [
            "NOT predicted: tokens",
            "NOT predicted: layers",
            "NOT predicted: heads",
        ]
        assert "explains -0.2 of the variance" in facts[0].value
        assert "mean or covariance of layers 1 to 3" in facts[1].value
        assert "moments from the input alone, from layer 1 on" in facts[1].value

    def test_the_headline_names_layers_by_verdict(self):
        seen = made()
        assert set(seen.verdicts) <= {LayerVerdict.HOLDS, LayerVerdict.MOMENTS}
        odd = made(holds=False)
        assert set(odd.verdicts) <= {LayerVerdict.SHAPE, LayerVerdict.FAILS}
        assert "holds in no layer" in view(odd).headline
        assert view(odd).verdict == "theory holds in 0 of 3 layers"
        assert not view(odd).good

    @pytest.mark.parametrize(
        ("layers", "words"),
        [
            ([], "no layer"),
            ([2], "layer 2"),
            ([1, 2], "layers 1 and 2"),
            ([1, 2, 3, 4, 6], "layers 1 to 4 and 6"),
            ([6, 1, 2, 9, 8, 7], "layers 1, 2 and 6 to 9"),
        ],
    )
    def test_ranges(self, layers, words):
        assert ranges(layers) == words

    def test_every_picture_has_a_caption_and_is_the_same_again(self):
        seen = made()
        images = figures.images(seen)
        assert set(images) == set(view(seen).captions)
        assert images == figures.images(made())

    def test_the_page_tells_the_layer_and_not_the_flow(self):
        page = html.render(made(done=2))
        assert "One layer is a step, not a flow" in page.replace("\n", " ")
        assert "S′ = M S + S Mᵀ" not in page
        assert "pooler.weight, pooler.bias" in page
        assert "2 of 3 layers" in page
        assert "gt.pretrained.inspect(" in page

    def test_signs_and_sums_of_heads(self):
        seen = made()
        assert seen.signs == "-+-"
        assert [seen.heads.verdict(k) for k in (1, 2, 3)] == [
            "contracting", "expanding", "contracting",
        ]  # fmt: skip
        assert seen.heads.rate(1) == pytest.approx(-0.29)
        assert seen.heads.effective_rate(2) == pytest.approx(0.8 * 0.31)

    def test_profiles_of_covariances(self):
        S = [np.diag([4.0, 1.0, 1.0]), np.diag([3.0, 3.0, 0.0])]
        profile = LawProfile.of([np.zeros(3), np.ones(3)], S, 2)
        np.testing.assert_allclose(profile.traces, [6.0, 6.0])
        np.testing.assert_allclose(profile.ranks, [2.0, 2.0])
        np.testing.assert_allclose(profile.spectra, [[4.0, 1.0], [3.0, 3.0]])


# -- real weights --------------------------------------------------------------------------


@cache
def albert():
    """The first two of twelve layers, as all have the same weights."""
    real_models.require("torch", "transformers")
    stack = real_models.stack(real_models.RXNMAPPER, check=True)
    assert (stack.depth, stack.shared) == (12, True)
    return gt.pretrained.inspect(stack, tokens=64, sequences=8, layers=2)


@pytest.mark.usefixtures("torch")
class TestAlbert:
    def test_the_blocks_are_those_of_the_library(self):
        seen = albert()
        assert seen.numerics < 1e-5
        assert (seen.family, seen.depth, seen.dim, seen.shared) == ("albert", 2, 256, True)
        assert seen.parameters < 600_000  # counted once

    def test_half_of_the_heads_are_frozen_so_the_mean_field_is_off(self):
        seen = albert()
        first = seen.heads.of_layer(1)
        assert {row.head for row in first if row.logit_variance > 15} == {1, 4, 5, 8}
        facts = seen.layers[0]
        assert facts.step_covariance < 0.6 * facts.field_covariance
        # The mean field inflates the rates of frozen heads; finitely many tokens do not.
        assert abs(facts.effective_rate - facts.drift) < 0.1 * abs(facts.rate - facts.drift)

    def test_gaussian_input_is_found_gaussian_and_the_output_is_not(self):
        seen = albert()
        assert seen.shapes[0].gaussian
        assert not seen.shapes[-1].gaussian
        assert seen.shapes[-1].scores["spread"] > 10 * seen.shapes[-1].threshold

    def test_it_comes_back_from_disk(self, tmp_path):
        seen = albert()
        seen.save(tmp_path)
        again = gt.load(tmp_path)
        assert again.summary() == seen.summary()
        assert again.verdicts == seen.verdicts


class TestPackages:
    def test_files_are_found_without_an_import(self):
        real_models.source(real_models.RXNMAPPER)
        folder = find_in_package("rxnmapper")
        assert (folder / "config.json").is_file()

    def test_a_missing_package_is_named_with_its_remedy(self):
        with pytest.raises(MissingPackage, match="pip install --no-deps no-such-thing"):
            find_in_package("no-such-thing")

    def test_a_package_without_a_model(self):
        with pytest.raises(GtcontrolError, match="holds no model"):
            find_in_package("numpy")

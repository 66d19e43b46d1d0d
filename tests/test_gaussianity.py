"""Statistics of the shape of a cloud, against quadrature, closed forms and known laws."""

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy import integrate, stats

import gtcontrol as gt
from gtcontrol.errors import InvalidNumber, InvalidShape, NotFinite, ResultFileInvalid, TooLarge
from gtcontrol.results.gaussianity import NAMES, Gaussianity, ShapeStatistic
from gtcontrol.validation.shape import (
    mahalanobis,
    mardia_skewness,
    normal_cells,
    relative_distance,
    whiten,
)
from tests.strategies import orthogonal


def normal(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


class TestDistance:
    def test_cells_are_the_means_between_quantiles(self):
        n = 7
        edges = stats.norm.ppf(np.arange(n + 1) / n)
        expected = [
            n * integrate.quad(lambda z: z * stats.norm.pdf(z), *edges[i : i + 2], epsabs=1e-13)[0]
            for i in range(n)
        ]
        assert_allclose(normal_cells(n), expected, atol=1e-12)

    @pytest.mark.parametrize("n", [3, 10, 41])
    def test_the_distance_is_that_of_the_quantile_functions(self, n):
        """W₂² = ∫ (F⁻¹(u) - Φ⁻¹(u))² du, cell by cell by quadrature."""
        x = whiten(np.random.default_rng(n).uniform(-1, 1, (n, 1)))[0]
        ordered = np.sort(x[:, 0])
        square = sum(
            integrate.quad(
                lambda u, v=v: (v - stats.norm.ppf(u)) ** 2, i / n, (i + 1) / n, epsabs=1e-12
            )[0]
            for i, v in enumerate(ordered)
        )
        assert relative_distance(x, normal_cells(n))[0] == pytest.approx(np.sqrt(square), abs=1e-7)

    def test_two_points_have_the_distance_of_the_half_normal(self):
        """±1 against N(0, 1): W₂² = 2 - 2 E|Z| = 2 - 2 √(2/π)."""
        x = np.array([[1.0], [-1.0]])
        expected = np.sqrt(2 - 2 * np.sqrt(2 / np.pi))
        assert relative_distance(x, normal_cells(2))[0] == pytest.approx(expected, rel=1e-14)

    def test_a_uniform_law_has_its_distance(self):
        """W₂² = 2 - 2 E[F⁻¹(U) Φ⁻¹(U)] = 2 - 2 √3/√π for the uniform law of variance 1."""
        n = 20_000
        x = np.sqrt(3) * (2 * (np.arange(n) + 0.5) / n - 1)
        x = (x / np.std(x))[:, None]
        expected = np.sqrt(2 - 2 * np.sqrt(3 / np.pi))
        assert relative_distance(x, normal_cells(n))[0] == pytest.approx(expected, rel=2e-4)
        told = gt.gaussianity(x, baselines=3)
        assert told["sliced"].value == pytest.approx(expected, rel=2e-4)

    def test_in_one_dimension_all_directions_are_the_same(self):
        told = gt.gaussianity(normal(200, 1), baselines=2)
        assert told["sliced"].value == pytest.approx(told["leading"].value, rel=1e-12)


class TestMoments:
    def test_whitening(self):
        x = normal(300, 4) @ np.diag([10.0, 1.0, 2.0, 0.1]) + 5.0
        z, variances = whiten(x)
        assert_allclose(z.T @ z / 300, np.eye(4), atol=1e-10)
        assert_allclose(variances, np.linalg.eigvalsh(np.cov(x.T, bias=True))[::-1], rtol=1e-9)
        S = np.linalg.inv(np.cov(x.T, bias=True))
        deviations = x - x.mean(axis=0)
        expected = np.einsum("ij,jk,ik->i", deviations, S, deviations)
        assert_allclose(mahalanobis(z), expected, rtol=1e-7)

    @pytest.mark.parametrize(("n", "r"), [(40, 3), (20, 6)])
    def test_both_ways_to_the_skewness_are_the_same(self, n, r):
        z = whiten(np.random.default_rng(1).exponential(size=(n, r)))[0]
        expected = np.mean((z @ z.T) ** 3)
        assert mardia_skewness(z) == pytest.approx(expected, rel=1e-11)

    def test_the_skewness_of_one_dimension_is_that_of_scipy(self):
        x = np.random.default_rng(2).exponential(size=(500, 1))
        assert mardia_skewness(whiten(x)[0]) == pytest.approx(stats.skew(x[:, 0]) ** 2, rel=1e-11)
        told = gt.gaussianity(x, baselines=2)
        expected = stats.kurtosis(x[:, 0], fisher=False) / 3 - 1
        assert told["kurtosis"].value == pytest.approx(expected, rel=1e-11)

    def test_spread_and_kurtosis_hold_the_same(self):
        told = gt.gaussianity(np.random.default_rng(3).standard_t(6, (400, 5)), baselines=2)
        r = told.rank
        fourth = (1 + told["kurtosis"].value) * r * (r + 2)
        assert told["spread"].value == pytest.approx((fourth - r * r) / (2 * r), rel=1e-11)

    def test_gaussian_clouds_have_the_moments_of_mardia(self):
        """Exact for normal samples: E b₂ = r(r+2)(N-1)/(N+1), D ~ (N-1) Beta, E b₁ as used."""
        n, r = 60, 3
        told = gt.gaussianity(normal(n, r), baselines=4000, directions=1, components=1, rng=5)
        kurtosis = told["kurtosis"]
        error = kurtosis.deviation / np.sqrt(4000)
        assert abs(kurtosis.baseline - ((n - 1) / (n + 1) - 1)) < 4 * error
        variance = (
            8 * r * (r + 2) * (n - 3) * (n - r - 1) * (n - r + 1)
            / ((n + 1) ** 2 * (n + 3) * (n + 5))
        )  # fmt: skip
        assert kurtosis.deviation * r * (r + 2) == pytest.approx(np.sqrt(variance), rel=0.05)
        skewness = told["skewness"]
        assert abs(skewness.baseline - 1) < 4 * skewness.deviation / np.sqrt(4000)
        law = stats.beta(r / 2, (n - r - 1) / 2)
        spread = (n - 1) ** 2 * law.var() / (2 * r)
        assert told["spread"].baseline == pytest.approx(
            spread, abs=4 * told["spread"].deviation / 63
        )


class TestVerdict:
    def test_gaussian_clouds_are_seldom_refused(self):
        refused = [
            not gt.gaussianity(
                normal(200, 3, seed), rng=seed + 500, directions=16, baselines=12
            ).gaussian
            for seed in range(60)
        ]
        assert sum(refused) <= 2

    @pytest.mark.parametrize("d", [1, 8])
    def test_heavy_tails_are_seen(self, d):
        told = gt.gaussianity(np.random.default_rng(0).standard_t(5, (2000, d)))
        assert not told.gaussian
        assert told.scores["spread"] > 10
        assert told["spread"].value > 1.3

    def test_light_tails_are_seen_on_the_other_side(self):
        x = normal(2000, 8)
        told = gt.gaussianity(x / np.linalg.norm(x, axis=1, keepdims=True))
        assert not told.gaussian
        assert told.scores["spread"] < -10
        assert told["spread"].value < 0.2

    def test_asymmetry_is_seen(self):
        told = gt.gaussianity(np.random.default_rng(0).gamma(8.0, size=(2000, 4)))
        assert told.scores["skewness"] > 10

    def test_two_clusters_are_seen_by_the_leading_direction(self):
        """In many dimensions random projections hardly see them, the leading direction does."""
        x = normal(2000, 40)
        x[:, 0] += np.where(np.arange(2000) % 2, 3.0, -3.0)
        told = gt.gaussianity(x, components=1, directions=64, baselines=8)
        assert told["leading"].value > 0.2
        assert told["sliced"].value < 0.15
        assert told.scores["leading"] > 10

    def test_directions_without_variance_are_dropped(self):
        x = normal(500, 3) @ normal(3, 10, 1)
        told = gt.gaussianity(x)
        assert (told.rank, told.dim, told.components) == (3, 10, 3)
        assert told.gaussian
        noisy = gt.gaussianity(x + 1e-9 * normal(500, 10, 2))
        assert noisy.rank == 3
        assert noisy["spread"].value == pytest.approx(told["spread"].value, rel=1e-6)

    def test_pairs_have_a_baseline_of_pairs(self):
        """Opposite pairs have no skewness: two-sided, they are not a draw of single tokens."""
        law = gt.Gaussian(np.zeros(3), np.eye(3))
        x = law.sample(1000, np.random.default_rng(0), antithetic=True)
        assert gt.gaussianity(x, antithetic=True).gaussian
        assert gt.gaussianity(x, antithetic=True)["skewness"].value < 1e-20
        assert gt.gaussianity(x)["skewness"].excess < -0.5
        assert (
            gt.gaussianity(x)["spread"].deviation
            < gt.gaussianity(x, antithetic=True)["spread"].deviation
        )

    @settings(max_examples=12, deadline=None)
    @given(st.integers(0, 10**6), st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
    def test_shift_and_scale_do_not_matter(self, seed, shift, scale):
        x = np.random.default_rng(seed).standard_t(7, (60, 2)) @ np.diag([1.0, 0.5])
        assume(abs(shift) < 1e6 * scale)
        one, other = (gt.gaussianity(y, baselines=2) for y in (x, scale * x + shift))
        for name in NAMES:
            assert other[name].value == pytest.approx(one[name].value, rel=1e-5, abs=1e-7)

    def test_all_but_the_slices_are_affine_invariant(self):
        x = np.random.default_rng(4).standard_t(7, (80, 3))
        G = orthogonal(np.random.default_rng(1), 3) @ np.diag([1.0, 3.0, 0.2])
        one, other = (gt.gaussianity(y, baselines=2) for y in (x, x @ G.T))
        for name in ("spread", "skewness", "kurtosis"):
            assert other[name].value == pytest.approx(one[name].value, rel=1e-9)


class TestValue:
    def test_scores_are_distances_in_deviations(self):
        s = ShapeStatistic("spread", 1.5, 1.0, 0.1)
        assert s.score(4) == pytest.approx(0.5 / (0.1 * np.sqrt(1.25)))
        assert ShapeStatistic("spread", 1.0, 1.0, 0.0).score(4) == 0.0
        assert ShapeStatistic("spread", 2.0, 1.0, 0.0).score(4) == np.inf

    def test_the_same_seed_gives_the_same_numbers(self):
        x = normal(100, 2)
        assert gt.gaussianity(x, rng=3) == gt.gaussianity(x, rng=3)
        assert gt.gaussianity(x, rng=3) != gt.gaussianity(x, rng=4)
        generator = np.random.default_rng(3)
        assert gt.gaussianity(x, rng=generator) == gt.gaussianity(x, rng=3)

    def test_packing_loses_nothing(self):
        told = gt.gaussianity(normal(100, 2))
        assert Gaussianity.unpack(told.pack()) == told
        with pytest.raises(ResultFileInvalid, match="list of 5"):
            Gaussianity.unpack({**told.pack(), "statistics": []})
        damaged = told.pack()
        damaged["statistics"] = damaged["statistics"][::-1]
        with pytest.raises(ResultFileInvalid, match="sliced, leading"):
            Gaussianity.unpack(damaged)

    def test_the_summary_has_every_statistic(self):
        text = gt.gaussianity(normal(100, 2)).summary()
        assert "not told from Gaussian" in text
        assert all(name in text for name in NAMES)
        heavy = np.random.default_rng(0).standard_t(3, (1000, 2))
        assert "NOT Gaussian" in gt.gaussianity(heavy).summary()

    def test_distance_beyond_chance(self):
        assert gt.gaussianity(normal(400, 2)).distance < 0.05
        heavy = gt.gaussianity(np.random.default_rng(0).standard_t(3, (1000, 2)))
        s = heavy["sliced"]
        assert heavy.distance == pytest.approx(np.sqrt(s.value**2 - s.baseline**2))


class TestScales:
    @pytest.mark.parametrize("exponent", [-1000, -530, 600, 1015])
    def test_the_unit_does_not_matter(self, exponent):
        x = normal(200, 2)
        assert gt.gaussianity(np.ldexp(x, exponent)) == gt.gaussianity(x)

    def test_directions_that_are_left_out_are_counted(self):
        x = normal(100, 3) * [1.0, 1e-9, 2.0]
        told = gt.gaussianity(x)
        assert (told.rank, told.left_out) == (2, 1)
        assert "1 direction is left out, with deviations below 0.0003" in told.summary()
        assert Gaussianity.unpack(told.pack()) == told

    @pytest.mark.parametrize("shift", [0.0, 1e5])
    def test_rounding_is_no_direction(self, shift):
        x = normal(100, 2)
        told = gt.gaussianity(np.column_stack([x, x @ [1.0, 0.3], np.ones(100)]) + shift)
        assert (told.rank, told.left_out) == (2, 0)
        assert "left out" not in told.summary()

    def test_tokens_that_differ_by_rounding(self):
        x = np.ones((20, 2))
        with pytest.raises(InvalidNumber, match="all its tokens are equal"):
            gt.gaussianity(x)
        with pytest.raises(InvalidNumber, match="no variance beyond rounding; subtract"):
            gt.gaussianity(1e9 * x + 1e-7 * normal(20, 2))


class TestBadInput:
    @pytest.mark.parametrize(
        ("cloud", "error", "text"),
        [
            (np.zeros(3), InvalidShape, r"shape \(N, d\)"),
            (np.full((9, 2), np.nan), NotFinite, "nan"),
            (np.ones((9, 2)), InvalidNumber, "no variance"),
            (np.eye(3), InvalidNumber, "more than 3 tokens"),
            (np.zeros((0, 2)), InvalidNumber, "no tokens"),
        ],
    )
    def test_clouds(self, cloud, error, text):
        with pytest.raises(error, match=text):
            gt.gaussianity(cloud)

    def test_arguments(self):
        x = normal(9, 1)
        for given_, text in (
            ({"directions": 0}, "directions"),
            ({"components": 0}, "components"),
            ({"baselines": 1}, "baselines"),
            ({"rng": -1}, "rng"),
            ({"antithetic": True}, "pairs"),
        ):
            with pytest.raises(InvalidNumber, match=text):
                gt.gaussianity(x, **given_)

    def test_what_does_not_fit_is_refused_before_it_is_copied(self):
        huge = np.broadcast_to(np.float64(1.0), (10**9, 1000))
        with pytest.raises(TooLarge, match="take fewer tokens"):
            gt.gaussianity(huge)

"""Gaussians as (mean, factor): construction, W₂, truncation and sampling."""

import mpmath
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, strategies as st

import gtcontrol as gt
from gtcontrol.errors import (
    IndefiniteCovariance,
    InvalidNumber,
    InvalidShape,
    NotFinite,
    NotSymmetric,
    OutOfScale,
    RankDeficientFactor,
)
from gtcontrol.gaussian import align, squared_wasserstein
from tests.strategies import dims, factor, gaussians, generators, orthogonal

EPS = np.finfo(float).eps


def zero_mean(covariance, **options):
    covariance = np.asarray(covariance, dtype=float)
    return gt.Gaussian.from_covariance(np.zeros(covariance.shape[0]), covariance, **options)


class TestConstruction:
    @pytest.mark.parametrize(
        ("mean", "matrix", "error", "words"),
        [
            ([], np.zeros((0, 0)), InvalidShape, "empty"),
            ([[1.0]], [[1.0]], InvalidShape, "1 dimension"),
            ([0.0, 0.0], [[1.0]], InvalidShape, r"\(2, r\)"),
            ([0.0], [[1.0, 1.0]], RankDeficientFactor, "2 columns in dimension 1"),
            ([0.0, 0.0], [[1.0, 2.0], [1.0, 2.0]], RankDeficientFactor, "independent columns"),
            ([0.0, 0.0], [[0.0], [0.0]], RankDeficientFactor, "independent columns"),
            ([0.0, np.nan], np.eye(2), NotFinite, "`mean` holds nan at index"),
            ([0.0, 0.0], [[np.inf], [0.0]], NotFinite, "`factor` holds inf"),
            ([0.0], [["a"]], InvalidShape, "real numbers"),
            ([0.0], [[1j]], InvalidShape, "real numbers"),
            ([0.0, 0.0], [[1.0], [1.0, 2.0]], InvalidShape, "rectangular"),
        ],
    )
    def test_bad_factors_are_refused(self, mean, matrix, error, words):
        with pytest.raises(error, match=words):
            gt.Gaussian(mean, matrix)

    @pytest.mark.parametrize(
        ("matrix", "error", "words"),
        [
            ([[1.0, 2.0], [2.0, 1.0]], IndefiniteCovariance, "smallest eigenvalue is -1 "),
            ([[-1.0, 0.0], [0.0, -1.0]], IndefiniteCovariance, "smallest eigenvalue is -1 "),
            ([[1.0, 0.1], [0.0, 1.0]], NotSymmetric, "0.1 of its largest entry"),
            ([[1.0, 0.0], [0.0, np.nan]], NotFinite, r"nan at index \(1, 1\)"),
            ([[1.0, 0.0]], InvalidShape, r"\(2, 2\)"),
            ([1.0, 0.0], InvalidShape, "2 dimension"),
            ([[1e308, -1e308], [1e308, 1e308]], NotSymmetric, "2 of its largest entry"),
        ],
    )
    def test_bad_covariances_are_refused(self, matrix, error, words):
        with pytest.raises(error, match=words):
            gt.Gaussian.from_covariance([0.0, 0.0], matrix)

    def test_the_rank_must_be_right(self):
        covariance = np.diag([1.0, 1e-3, 0.0])
        assert zero_mean(covariance, rank=2).rank == 2
        with pytest.raises(RankDeficientFactor, match=r"has rank 2 .* not 3"):
            zero_mean(covariance, rank=3)
        with pytest.raises(RankDeficientFactor, match="not 1"):
            zero_mean(covariance, rank=1)
        with pytest.raises(RankDeficientFactor, match="order 3"):
            zero_mean(covariance, rank=4)
        with pytest.raises(InvalidNumber, match="whole number"):
            zero_mean(covariance, rank=2.0)
        assert zero_mean(covariance, tolerance=1e-2).rank == 1

    def test_errors_are_value_errors_of_one_line(self):
        with pytest.raises(gt.GtcontrolError) as caught:
            gt.Gaussian(np.zeros(100), np.ones((100, 100)))
        assert isinstance(caught.value, ValueError)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300

    def test_rounding_level_asymmetry_is_removed(self):
        law = gt.Gaussian.from_covariance([0.0, 0.0], [[1.0, 0.5 + 1e-12], [0.5, 1.0]])
        np.testing.assert_array_equal(law.covariance, law.covariance.T)

    @pytest.mark.parametrize("size", [1e150, 1e-150, 1e300])
    def test_huge_and_tiny_covariances_keep_their_digits(self, size):
        covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
        law = zero_mean(size * covariance)
        assert law.rank == 2
        np.testing.assert_allclose(law.covariance / size, covariance, rtol=1e-14)

    @pytest.mark.parametrize("size", [1e308, 1e-305])
    def test_the_rank_at_the_ends_of_double_precision(self, size):
        # The largest eigenvalue is 2.5 size: beyond double precision, while no entry is.
        covariance = size * np.array([[1.5, 1.0], [1.0, 1.5]])
        law = zero_mean(covariance)
        assert law.rank == 2
        np.testing.assert_allclose(law.covariance / size, covariance / size, rtol=1e-14)
        with pytest.raises(IndefiniteCovariance) as caught:
            zero_mean(size * np.array([[1.0, 1.5], [1.5, 1.0]]))
        words = f"smallest eigenvalue is {-0.5 * size:.6g} (largest 2.5"
        assert words in str(caught.value)

    def test_a_trace_beyond_double_precision_is_infinite(self):
        law = zero_mean(1e308 * np.eye(2))
        assert law.rank == 2
        np.testing.assert_allclose(law.eigenvalues, [1e308, 1e308])
        assert law.trace == np.inf
        assert repr(law) == "Gaussian(dim=2, rank=2, trace=inf)"
        assert law.truncation_distance(0) == pytest.approx(np.sqrt(2) * 1e154, rel=1e-14)

    def test_columns_of_very_different_sizes_are_independent(self):
        law = gt.Gaussian([0.0, 0.0], [[1e-160, 0.0], [0.0, 1e140]])
        assert law.rank == 2

    def test_a_dirac_has_rank_zero(self):
        dirac = zero_mean(np.zeros((3, 3)))
        assert (dirac.rank, dirac.dim, dirac.trace) == (0, 3, 0.0)
        assert dirac.eigenvalues.shape == (0,)
        np.testing.assert_array_equal(dirac.covariance, np.zeros((3, 3)))
        unit = gt.Gaussian([1.0, 0.0, 0.0], np.eye(3))
        assert gt.wasserstein(dirac, unit) == pytest.approx(2.0, rel=1e-15)
        assert gt.wasserstein(dirac, dirac) == 0.0

    def test_one_dimension(self):
        p, q = gt.Gaussian([1.0], [[-2.0]]), gt.Gaussian([4.0], [[6.0]])
        assert p.covariance[0, 0] == 4.0
        assert gt.wasserstein(p, q) == pytest.approx(5.0, rel=1e-15)  # (3, 6 - 2)

    def test_arguments_are_copied_and_read_only(self):
        mean, L = np.zeros(2), np.eye(2)
        law = gt.Gaussian(mean, L)
        mean[0], L[0, 0] = 7.0, 7.0
        assert (law.mean[0], law.factor[0, 0]) == (0.0, 1.0)
        with pytest.raises(ValueError, match="read-only"):
            law.factor[0, 0] = 2.0

    @given(gaussians())
    def test_a_covariance_is_recovered(self, law):
        again = gt.Gaussian.from_covariance(law.mean, law.covariance)
        assert again.rank == law.rank
        np.testing.assert_allclose(again.covariance, law.covariance, atol=1e-14 * (1 + law.trace))
        np.testing.assert_allclose(
            np.linalg.eigvalsh(law.covariance)[::-1][: law.rank], law.eigenvalues, rtol=1e-11
        )
        projector = law.range_basis @ law.range_basis.T
        np.testing.assert_allclose(projector @ law.factor, law.factor, atol=1e-13)


class TestKnownDistances:
    def test_four_by_four_with_an_exact_root(self):
        # scipy issue #4866.
        S = np.zeros((4, 4))
        S[np.ix_([0, 3], [0, 3])] = 1.0
        squared = squared_wasserstein(zero_mean(S), zero_mean(np.eye(4)))
        assert squared == pytest.approx(6 - 2 * np.sqrt(2), rel=1e-14)

    @pytest.mark.parametrize(
        ("angle", "expected"),
        [(np.pi / 3, 1.0), (np.pi / 2, 2.0), (1e-4, 9.99999999166667e-9), (np.pi, 0.0)],
    )
    def test_two_lines_at_an_angle(self, angle, expected):
        # POT issue #708: the square root of a matrix fails for singular covariances.
        first = gt.Gaussian([0.0, 0.0], [[1.0], [0.0]])
        second = gt.Gaussian([0.0, 0.0], [[np.cos(angle)], [np.sin(angle)]])
        # The cosine of a small angle keeps only 16 digits of 1, hence the absolute term.
        assert squared_wasserstein(first, second) == pytest.approx(expected, rel=1e-12, abs=1e-31)

    def test_hilbert_matrix(self):
        hilbert = scipy.linalg.hilbert(10)
        law = zero_mean(hilbert)
        assert gt.wasserstein(law, law) < 1e-14
        # Its own factor, in 40 digits: eigenvalues down to 1e-13 of the largest one count.
        with mpmath.workdps(40):
            exact = mpmath.cholesky(
                mpmath.matrix([[mpmath.mpf(1) / (i + j + 1) for j in range(10)] for i in range(10)])
            )
            L = np.array(exact.tolist(), dtype=float)
        full = gt.Gaussian(np.zeros(10), L)
        squared = squared_wasserstein(full, gt.Gaussian(np.zeros(10), np.eye(10)))
        assert squared == pytest.approx(7.80827655960148, rel=1e-14)

    def test_nearby_laws_keep_relative_accuracy(self):
        # W₂ = 1e-9 · |diag(1, 2)| exactly, where the sum of traces would cancel.
        base = np.diag([1.0, 2.0])
        first = gt.Gaussian([0.0, 0.0], base)
        second = gt.Gaussian([0.0, 0.0], base * (1 + 1e-9))
        stretch = (1 + 1e-9) - 1
        assert gt.wasserstein(first, second) == pytest.approx(stretch * np.sqrt(5), rel=1e-7)

    def test_distances_at_the_ends_of_double_precision(self):
        p, q = gt.Gaussian([1e200, 0.0], np.eye(2)), gt.Gaussian([-1e200, 0.0], np.eye(2))
        assert gt.wasserstein(p, q) == pytest.approx(2e200, rel=1e-15)
        for size in (1e-200, 1e160, 1e300):
            p, q = gt.Gaussian([0.0], [[size]]), gt.Gaussian([0.0], [[3 * size]])
            assert gt.wasserstein(p, q) == pytest.approx(2 * size, rel=1e-15)
        p, q = gt.Gaussian([1e200], [[1e-200]]), gt.Gaussian([1e200], [[1e-190]])
        assert gt.wasserstein(p, q) == pytest.approx(1e-190, rel=1e-9)
        with pytest.raises(OutOfScale, match=r"the squared distance .* is 4\.00000e\+400"):
            squared_wasserstein(gt.Gaussian([1e200], [[1.0]]), gt.Gaussian([-1e200], [[1.0]]))
        with pytest.raises(OutOfScale, match=r"the distance .* is 3\.40000e\+308"):
            gt.wasserstein(gt.Gaussian([1.7e308], [[1.0]]), gt.Gaussian([-1.7e308], [[1.0]]))

    def test_what_is_no_law(self):
        unit = zero_mean(np.eye(2))
        with pytest.raises(InvalidShape, match="`q` must be a Gaussian, not list"):
            gt.wasserstein(unit, [1, 2])
        with pytest.raises(InvalidShape, match="`p` must be a Gaussian, not NoneType"):
            gt.wasserstein(None, unit)


class TestDistanceLaws:
    @given(st.data())
    def test_agrees_with_the_square_root_formula(self, data):
        d = data.draw(dims)
        p, q = (data.draw(gaussians(d, d)) for _ in range(2))
        root = np.real(scipy.linalg.sqrtm(p.covariance))
        cross = np.real(scipy.linalg.sqrtm(root @ q.covariance @ root))
        squared = np.sum((p.mean - q.mean) ** 2) + p.trace + q.trace - 2 * np.trace(cross)
        assert squared_wasserstein(p, q) == pytest.approx(squared, rel=1e-9, abs=1e-9)

    @given(st.data())
    def test_nuclear_norm_formula_holds_at_every_rank(self, data):
        d = data.draw(dims)
        p, q = (data.draw(gaussians(d)) for _ in range(2))
        cross = p.factor.T @ q.factor
        nuclear = np.linalg.svd(cross, compute_uv=False).sum() if cross.size else 0.0
        squared = np.sum((p.mean - q.mean) ** 2) + p.trace + q.trace - 2 * nuclear
        assert squared_wasserstein(p, q) == pytest.approx(squared, rel=1e-9, abs=1e-12)

    @given(st.data())
    def test_metric(self, data):
        d = data.draw(dims)
        p, q, s = (data.draw(gaussians(d)) for _ in range(3))
        assert gt.wasserstein(p, q) == pytest.approx(gt.wasserstein(q, p), rel=1e-12, abs=1e-13)
        assert gt.wasserstein(p, p) <= 1e-14 * (1 + np.sqrt(p.trace))
        around = gt.wasserstein(p, s) + gt.wasserstein(s, q)
        assert gt.wasserstein(p, q) <= around * (1 + 1e-12) + 1e-12

    @given(gaussians(), generators())
    def test_rotated_factors_are_the_same_law(self, law, rng):
        rotated = gt.Gaussian(law.mean, law.factor @ orthogonal(rng, law.rank))
        assert gt.wasserstein(law, rotated) <= 1e-14 * (1 + np.sqrt(law.trace)) * law.dim
        other = gt.Gaussian(np.zeros(law.dim), np.eye(law.dim))
        assert gt.wasserstein(rotated, other) == pytest.approx(
            gt.wasserstein(law, other), rel=1e-12
        )

    @given(st.data(), st.floats(1e-3, 1e3))
    def test_translation_and_scaling(self, data, scale):
        d = data.draw(dims)
        rng = data.draw(generators())
        p, q = (data.draw(gaussians(d)) for _ in range(2))
        shift, Q = rng.standard_normal(d), orthogonal(rng, d)
        moved_p, moved_q = (
            gt.Gaussian(scale * (Q @ g.mean + shift), scale * Q @ g.factor) for g in (p, q)
        )
        expected = scale * gt.wasserstein(p, q)
        assert gt.wasserstein(moved_p, moved_q) == pytest.approx(
            expected, rel=1e-10, abs=1e-12 * scale
        )

    def test_dimensions_must_agree(self):
        with pytest.raises(InvalidShape, match="dimensions 1 and 2"):
            gt.wasserstein(gt.Gaussian([0.0], [[1.0]]), gt.Gaussian([0.0, 0.0], np.eye(2)))

    @given(st.data())
    def test_the_procrustes_line_never_loses_rank(self, data):
        # σ_min(L_t)² >= ab/(a + b) with a, b the smallest positive eigenvalues of the ends.
        d = data.draw(dims)
        r = data.draw(st.integers(1, d))
        rng = data.draw(generators())
        L0, L1 = factor(rng, d, r, 2.0), factor(rng, d, r, 2.0)
        end = align(L0, L1)
        np.testing.assert_allclose(end @ end.T, L1 @ L1.T, atol=1e-12 * np.sum(L1**2))
        assert np.linalg.eigvalsh(L0.T @ end)[0] >= -1e-12 * np.linalg.norm(L0.T @ end)
        a, b = (np.linalg.svd(L, compute_uv=False)[-1] ** 2 for L in (L0, L1))
        least = min(
            np.linalg.svd((1 - t) * L0 + t * end, compute_uv=False)[-1] ** 2
            for t in np.linspace(0, 1, 101)
        )
        assert least >= a * b / (a + b) * (1 - 1e-9)


class TestTruncation:
    @given(st.data())
    def test_no_law_of_that_rank_is_nearer(self, data):
        d = data.draw(st.integers(2, 4))
        law = data.draw(gaussians(d, d))
        r = data.draw(st.integers(0, d - 1))
        nearest, paid = law.truncate(r), law.truncation_distance(r)
        assert nearest.rank == r
        # Commuting covariances: the cost of a direction that is given up is its variance.
        assert paid == pytest.approx(np.sqrt(np.sum(law.eigenvalues[r:])), rel=1e-12)
        assert gt.wasserstein(law, nearest) == pytest.approx(paid, rel=1e-12)
        rng = data.draw(generators())
        for size in (1e-3, 0.1, 1.0):
            other = nearest.factor + size * rng.standard_normal((d, r))
            rival = gt.Gaussian(law.mean, other)
            assert gt.wasserstein(law, rival) >= paid * (1 - 1e-12)

    def test_bad_ranks(self):
        law = gt.Gaussian([0.0, 0.0], [[1.0], [0.0]])
        with pytest.raises(InvalidNumber, match="at most 1; it is 2"):
            law.truncate(2)
        with pytest.raises(InvalidNumber, match="at least 0"):
            law.truncate(-1)


class TestSampling:
    law = gt.Gaussian([1.0, -2.0, 0.5], [[1.0, 0.0], [0.5, 2.0], [0.0, -1.0]])

    def moments(self, tokens):
        deviations = tokens - tokens.mean(axis=0)
        return tokens.mean(axis=0), deviations.T @ deviations / len(tokens)

    def test_independent_draws(self):
        n = 40_000
        mean, covariance = self.moments(self.law.sample(n, np.random.default_rng(5)))
        S, trace = self.law.covariance, self.law.trace
        assert np.linalg.norm(mean - self.law.mean) < 3 * np.sqrt(trace / n)
        assert np.linalg.norm(covariance - S) < 3 * np.sqrt((np.sum(S**2) + trace**2) / n)
        # ... and not much smaller either, as a draw must vary.
        assert np.linalg.norm(mean - self.law.mean) > 0.01 * np.sqrt(trace / n)

    def test_tokens_stay_on_the_range(self):
        tokens = self.law.sample(50, np.random.default_rng(1)) - self.law.mean
        U = self.law.range_basis
        np.testing.assert_allclose(tokens @ U @ U.T, tokens, atol=1e-13)

    def test_antithetic_draws_are_symmetric(self):
        tokens = self.law.sample(100, np.random.default_rng(2), antithetic=True)
        np.testing.assert_allclose(tokens[:50] + tokens[50:], 2 * np.tile(self.law.mean, (50, 1)))
        with pytest.raises(InvalidNumber, match=r"even .* it is 101"):
            self.law.sample(101, np.random.default_rng(2), antithetic=True)

    @pytest.mark.parametrize("antithetic", [False, True])
    @given(gaussians())
    def test_matched_moments_are_exact(self, antithetic, law):
        tokens = law.sample(
            12, np.random.default_rng(3), antithetic=antithetic, moment_matched=True
        )
        mean, covariance = self.moments(tokens)
        np.testing.assert_allclose(mean, law.mean, atol=1e-13 * (1 + np.sqrt(law.trace)))
        np.testing.assert_allclose(covariance, law.covariance, atol=1e-12 * (1 + law.trace))

    def test_too_few_tokens_to_match_moments(self):
        with pytest.raises(InvalidNumber, match="must exceed 2 "):
            self.law.sample(2, np.random.default_rng(3), moment_matched=True)
        with pytest.raises(InvalidNumber, match="must exceed 4 "):
            self.law.sample(4, np.random.default_rng(3), antithetic=True, moment_matched=True)

    def test_the_same_seed_gives_the_same_tokens(self):
        first, second = (self.law.sample(5, np.random.default_rng(9)) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_matched_tails_are_gaussian(self):
        # Fourth moments: a whitened draw must not become something else.
        tokens = gt.Gaussian([0.0], [[1.0]]).sample(
            20_000, np.random.default_rng(4), antithetic=True, moment_matched=True
        )
        assert np.mean(tokens**4) == pytest.approx(3.0, abs=0.2)

    def test_a_dirac_gives_one_point(self):
        dirac = gt.Gaussian([1.0, 2.0], np.zeros((2, 0)))
        tokens = dirac.sample(4, np.random.default_rng(0), antithetic=True, moment_matched=True)
        np.testing.assert_array_equal(tokens, np.tile([1.0, 2.0], (4, 1)))

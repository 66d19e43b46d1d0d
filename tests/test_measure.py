"""The miss of a plan, against dense covariances, and where these would not fit."""

from __future__ import annotations

import numpy as np
import pytest

from gtcontrol import Gaussian
from gtcontrol.problem.sources import embedding_like
from gtcontrol.steering.measure import miss


@pytest.mark.parametrize(("d", "r"), [(1, 1), (2, 2), (5, 2), (30, 3), (6, 6), (3, 0)])
@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0])
def test_the_miss_is_that_of_the_dense_covariances(d, r, size):
    rng = np.random.default_rng([d, r])
    mean, factor = rng.standard_normal(d), rng.standard_normal((d, r))
    target = Gaussian(mean, factor)
    final = Gaussian(mean, factor + size * rng.standard_normal((d, r)))
    S, S1 = final.covariance, target.covariance
    expected = np.linalg.norm(S - S1) / np.linalg.norm(S1) if r else 0.0
    assert miss(final, target, target) == pytest.approx(expected, rel=1e-5, abs=1e-14)


def test_the_miss_of_the_mean_is_relative_to_the_size_of_the_problem():
    start = Gaussian([0.0, 0.0], [[3.0], [0.0]])
    target = Gaussian([0.0, 1.0], [[3.0], [0.0]])
    final = Gaussian([0.0, 1.4], [[-3.0], [0.0]])  # the same covariance
    assert miss(final, start, target) == pytest.approx(0.4 / (3.0 + 1.0), rel=1e-14)


def test_no_dense_matrix_is_formed_in_high_dimension():
    law = embedding_like(200_000, 2, seed=3)  # 320 GB as a covariance
    assert miss(law, law, law) < 1e-14

"""A share stays a share, however wild the noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import truncnorm

from ldptree.errors import ConfigError
from ldptree.inference.shares import expected_share, half_width


def test_it_is_the_mean_of_the_gaussian_cut_off_at_0_and_1() -> None:
    mean, sd = np.meshgrid(
        [-3.0, -0.4, 0.0, 0.01, 0.3, 0.5, 0.98, 1.0, 2.0], [0.001, 0.02, 0.1, 0.5, 3.0, 40.0]
    )
    with np.errstate(all="ignore"):
        expected = truncnorm.mean((0.0 - mean) / sd, (1.0 - mean) / sd, loc=mean, scale=sd)
    is_sound = np.isfinite(expected) & (expected >= 0) & (expected <= 1)
    assert is_sound.mean() > 0.8
    np.testing.assert_allclose(expected_share(mean, sd)[is_sound], expected[is_sound], atol=1e-6)


def test_shares_stay_inside_and_on_their_side_of_one_half() -> None:
    rng = np.random.default_rng(0)
    mean, sd = 0.5 + rng.normal(0, 10, 5000), 10.0 ** rng.uniform(-4, 3, 5000)
    share = expected_share(mean, sd)
    assert np.all((share >= 0) & (share <= 1))
    assert np.all((share > 0.5)[np.abs(mean - 0.5) > 1e-3] == (mean > 0.5)[np.abs(mean - 0.5) > 1e-3])
    np.testing.assert_allclose(share + expected_share(1 - mean, sd), 1.0, atol=1e-9)


def test_no_evidence_is_one_half_and_sure_evidence_itself() -> None:
    np.testing.assert_allclose(
        expected_share(np.array([0.9, -7.0]), np.array([np.inf, np.inf])), 0.5, atol=1e-9
    )
    np.testing.assert_allclose(expected_share(np.array([0.3]), np.array([0.0])), 0.3, atol=1e-8)


def test_half_width_is_the_normal_quantile() -> None:
    assert half_width(0.95) == pytest.approx(1.959964, abs=1e-6)
    with pytest.raises(ConfigError, match="level"):
        half_width(95.0)

"""Tails of distributions that the audit computes with numpy alone, against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betainc, betaincinv, chdtrc

from ldptree.audit import tails
from ldptree.audit.tails import beta_share, chi_square_above, log_beta_quantile


@pytest.fixture(autouse=True)
def without_scipy(monkeypatch):
    monkeypatch.setattr(tails, "HAS_SCIPY", False)


def test_shares_of_a_beta_number_are_scipys():
    a, b, x = np.meshgrid([1, 2.5, 40, 3e3, 5e5], [1, 3, 70, 4e3, 5e5], [1e-7, 1e-3, 0.2, 0.5, 0.9, 0.9999])
    wanted = betainc(a, b, x)
    np.testing.assert_allclose(beta_share(a, b, x), wanted, rtol=1e-7, atol=1e-300)


def test_ends_of_clopper_and_pearson_are_scipys():
    n = 1_000_000
    counts = np.array([1, 2, 7, 100, 5_000, 400_000, n - 3, n])
    for alpha in (0.05, 1e-4, 1e-9):
        found = log_beta_quantile(counts, n - counts + 1, alpha)
        np.testing.assert_allclose(np.exp(found), betaincinv(counts, n - counts + 1, alpha), rtol=1e-8)


def test_chances_of_a_chi_square_number_are_scipys():
    for freedom in (1, 2, 9, 300, 20_000):
        for times in (0.0, 0.3, 0.9, 1.0, 1.1, 2.0):
            wanted = chdtrc(freedom, freedom * times)
            np.testing.assert_allclose(
                chi_square_above(freedom, freedom * times), wanted, rtol=1e-7, atol=1e-300
            )

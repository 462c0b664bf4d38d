"""The real regression sets are read as their papers count them, and split as their papers split; needs LDPTREE_DATA."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import regression_sets as sets

from ldptree.errors import ConfigError

needs_data = pytest.mark.skipif(
    not os.environ.get("LDPTREE_DATA"), reason="LDPTREE_DATA names no folder of data sets"
)

SHAPES = {
    "ABA": (4177, 8), "ALG": (244, 10), "AQU": (546, 8), "BUI": (372, 103), "CBM": (11934, 16), "CON": (1030, 8),
    "CPU": (8192, 12), "FIS": (908, 6), "HOU": (506, 13), "MUS": (1059, 68), "RED": (1599, 11), "WHI": (4898, 11),
    "DAK": (536, 8), "POR": (315, 11), "PYR": (74, 27),
}  # fmt: skip
"""Rows and features, checked against the papers' tables where these are right (red wine has 1,599 rows, not 4,898)."""


def test_every_set_is_known():
    assert set(sets.NAMES) == set(SHAPES) == set(sets.LPDT_NAMES) | set(sets.HISTOFTREE_NAMES)


@needs_data
@pytest.mark.parametrize("name", sets.NAMES)
def test_a_set_has_the_size_it_should_and_labels_inside_their_prior_range(name):
    found = sets.load(name)
    assert found.X.shape == SHAPES[name]
    assert len(set(found.features)) == found.X.shape[1]
    assert np.isfinite(found.X).all()
    low, high = found.prior_range
    assert low <= found.y.min() < found.y.max() <= high
    assert found is sets.load(name)
    with pytest.raises(ValueError, match="read-only"):
        found.y[0] = 0


@needs_data
@pytest.mark.parametrize("name", [n for n in sets.LPDT_NAMES if n not in ("ALG", "CBM")])
def test_the_target_is_the_one_whose_spread_the_paper_prints(name):
    """What the private histograms of LPDT reach at eps 8 where a constant is all they find lies near the variance.

    CBM is left out, where they find more, and so is ALG, whose figures say nothing (any balanced 0/1 label has 0.25).
    """
    printed = dict(zip(sets.PAPER["lpdt"]["columns"], sets.PAPER["lpdt"]["epsilon"]["8"][name], strict=True))
    nearest = printed["LPDT-M" if math.isnan(printed["PHIST"]) else "PHIST"]
    assert 0.85 < nearest / sets.load(name).y.var() < 1.15


@needs_data
@pytest.mark.parametrize("name", sets.NAMES)
def test_splits_are_one_to_seven_to_two_disjoint_and_repeatable(name):
    found = sets.load(name)
    n = found.y.size
    split = sets.splits(found, 3)
    rows = np.concatenate([split.public, split.private, split.test])
    np.testing.assert_array_equal(np.sort(rows), np.arange(n))
    assert split.public.size == -(-n // 10)
    assert split.test.size == -(-n // 5)
    np.testing.assert_array_equal(split.private, sets.splits(found, 3).private)
    assert not np.array_equal(split.private, sets.splits(found, 4).private)


@needs_data
def test_the_broken_row_of_the_forest_fires_is_put_back():
    found = sets.load("ALG")
    is_it = found.X[:, found.features.index("DC")] == 14.6
    assert [9.0, 12.5, 10.4] in found.X[is_it, -3:].tolist()
    assert found.y.sum() == 138


def test_every_method_of_histoftree_is_printed_as_worse_than_a_plain_tree():
    for name in sets.HISTOFTREE_NAMES:
        for epsilon in (1, 2, 4):
            assert all(ratio > 1 for ratio in sets.histoftree_printed(name, epsilon).values())


def test_a_set_that_is_not_there_is_said_to_be_missing(monkeypatch, tmp_path):
    with pytest.raises(ConfigError, match="no set 'XYZ'"):
        sets.load("XYZ")
    sets.load.cache_clear()
    monkeypatch.delenv("LDPTREE_DATA", raising=False)
    with pytest.raises(ConfigError, match="set LDPTREE_DATA"):
        sets.load("ABA")
    monkeypatch.setenv("LDPTREE_DATA", str(tmp_path))
    with pytest.raises(ConfigError, match=r"abalone/abalone\.csv: not in the folder"):
        sets.load("ABA")

"""Rows that stand for the people of a HistOfTree: what is shown is kept, what is drawn lies where the person could be."""

from __future__ import annotations

import numpy as np
import pytest

from ldptree.encoding import Encoding, NumericFeature
from ldptree.families.histoftree import HistOfTreeModel
from ldptree.partition.product import Histogram, Product
from ldptree.partition.tree import Partition

TREE = Partition.of([1, -1, 2, -1, -1], [0.5, 0, 0.25, 0, 0], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1])
N = 600


def model(count: np.ndarray) -> HistOfTreeModel:
    """Three bins of the first feature, and leaves by the second and third."""
    return HistOfTreeModel(
        encoding=Encoding(tuple(NumericFeature(name, 0.0, 1.0) for name in "abc")),
        partition=Product(Histogram((0,), 3), TREE),
        value=np.arange(9.0),
        count=count,
        count_sd=np.ones(9),
        low=0.0,
        high=9.0,
        label="laplace",
        mechanism="grr",
        mask_release="all",
        epsilon=1.0,
        n_holders=N,
    )


@pytest.fixture
def shown() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    protects = rng.random((N, 3)) < [0.9, 0.3, 0.3]
    return np.where(protects, 0.0, rng.random((N, 3))), protects


def test_what_is_shown_is_kept_and_everybody_is_where_they_could_be(shown):
    values, protects = shown
    learned = model(np.array([50.0, 20, 10, -5, 40, 30, 0, 60, 5]))
    rows = learned.draw_rows(values, protects, seed=1)
    assert np.array_equal(rows[~protects], values[~protects])
    cells = learned.cells(rows)
    assert learned.partition.candidates(values, protects).contain(cells).all()
    # where it can be avoided nobody is in a cell that the noise left empty: bin 1 leaf 0, bin 2 leaf 0
    free = protects[:, 0]
    assert not np.isin(cells[free], [3, 6]).any()


def test_cells_are_drawn_by_their_counts():
    """False alarm: 5 standard deviations of a share of 20,000 draws, three shares."""
    counts = np.array([10.0, 1, 1, 20, 1, 1, 70, 1, 1])
    n = 20_000
    protects = np.tile([True, False, False], (n, 1))
    values = np.tile([0.0, 0.2, 0.2], (n, 1))
    cells = model(counts).cells(model(counts).draw_rows(values, protects))
    found = np.bincount(cells // 3, minlength=3) / n
    assert found == pytest.approx([0.1, 0.2, 0.7], abs=5 * 0.5 / np.sqrt(n))
    assert (cells % 3 == 0).all()


def test_where_the_noise_left_nobody_all_that_is_possible_is():
    protects = np.tile([True, True, False], (N, 1))
    values = np.tile([0.0, 0.0, 0.9], (N, 1))
    learned = model(np.full(9, -1.0))
    cells = learned.cells(learned.draw_rows(values, protects))
    assert set(cells) == {0, 2, 3, 5, 6, 8}
    assert learned.shares.sum() == pytest.approx(1.0)


def test_the_same_people_are_drawn_in_one_go_as_in_parts(shown, monkeypatch):
    values, protects = shown
    learned = model(np.arange(1.0, 10.0))
    whole = learned.draw_rows(values, protects, seed=3)
    monkeypatch.setattr("ldptree.models.histoftree.AT_ONCE", 90)
    assert np.array_equal(learned.draw_rows(values, protects, seed=3), whole)

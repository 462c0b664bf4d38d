"""Rows that stand for people, and the steps of many trees: against what can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ldptree.families.public_features import PublicFeatureModel
from ldptree.models.public_features import Effect
from ldptree.models.surface import BINS, Contrast, Surface, Tree, find_steps
from ldptree.partition.tree import Partition

N = 20_000
HALF = 5 * 0.5 / np.sqrt(N)
"""Five standard deviations of a share of N draws."""


def model(*effects: Effect, d: int = 4) -> PublicFeatureModel:
    return PublicFeatureModel(
        columns=tuple("abcd")[:d],
        low=(0.0,) * d,
        high=(1.0,) * d,
        private=(0,),
        label_low=-9.0,
        label_high=9.0,
        is_binary=False,
        surface=Surface.constant(0.0),
        effects=effects,
        epsilon=1.0,
        n_holders=N,
        says="",
    )


def effect(feature: int, shares: np.ndarray) -> Effect:
    return Effect(Contrast(feature, "rise", tuple((shares / shares.sum()).tolist())), Surface.constant(2.0))


def test_what_is_shown_is_kept_and_what_is_protected_is_drawn_by_what_was_learned():
    shares = np.zeros(BINS)
    shares[[2, 10]] = 0.25, 0.75
    rng = np.random.default_rng(0)
    protects = np.tile([True, False, True, False], (N, 1))
    protects[: N // 2, 0] = False
    values = np.where(protects, 0.0, rng.random((N, 4)))
    learned = model(effect(0, shares))
    rows = learned.draw_rows(values, protects)
    assert np.array_equal(rows[~protects], values[~protects])
    drawn = rows[N // 2 :, 0]
    assert set(np.floor(drawn * BINS)) == {2, 10}
    assert (drawn > 0.5).mean() == pytest.approx(0.75, abs=2 * HALF)
    assert np.isnan(rows[:, 2]).all()
    assert np.isfinite(learned.predict(rows)).all()


def test_the_contrast_of_drawn_people_has_the_mean_that_it_is_made_to_have():
    """So a curve over them is not moved by what their own features add. The contrast is in [-1, 1]."""
    rng = np.random.default_rng(1)
    learned = model(effect(0, rng.random(BINS)))
    protects = np.tile([True, False, False, False], (N, 1))
    rows = learned.draw_rows(np.zeros((N, 4)), protects)
    assert learned.effects[0].contrast(rows).mean() == pytest.approx(0.0, abs=5 / np.sqrt(N))


def test_of_levels_at_most_one_is_drawn_by_their_shares():
    def mark(share: float) -> np.ndarray:
        shares = np.zeros(BINS)
        shares[[0, -1]] = 1 - share, share
        return shares

    learned = model(effect(1, mark(0.2)), effect(2, mark(0.5)))
    protects = np.tile([False, True, True, True], (N, 1))
    rows = learned.draw_rows(np.full((N, 4), 0.5) * ~protects, protects, one_hot=[(1, 2, 3)])
    assert set(rows[:, 1:].ravel()) == {0.0, 1.0}
    assert rows[:, 1:].sum(axis=1).max() == 1
    assert rows[:, 1:].mean(axis=0) == pytest.approx([0.2, 0.5, 0.0], abs=HALF)


def trees() -> Surface:
    """On columns 2 and 0 of a row: three of four trees ask column 2 near 0.5, one also column 0 on the right."""
    plain = Partition.of([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1])
    near = Partition.of([0, -1, -1], [0.51, 0, 0], [1, -1, -1], [2, -1, -1])
    deep = Partition.of([0, -1, 1, -1, -1], [0.5, 0, 0.25, 0, 0], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1])
    return Surface(
        (2, 0),
        np.zeros(2),
        0.0,
        np.zeros(2),
        (
            Tree(plain, np.array([0.0, 4.0])),
            Tree(near, np.array([0.0, 4.0])),
            Tree(deep, np.array([0.0, 3.0, 5.0])),
            Tree(Partition.single(), np.array([7.0])),
        ),
    )


def test_steps_near_each_other_count_together_with_their_parts_of_the_variance():
    grid = (np.arange(64) + 0.5) / 64
    rows = np.array([(a, 0.0, c) for a in grid for c in grid])
    first, second = find_steps(trees(), rows)
    # the thresholds .5 and .51 fall in the same sixteenth; the upper side of .51 holds 31 of 64
    assert (first.feature, first.n_trees) == (2, 3)
    assert first.threshold == pytest.approx(0.503, abs=0.004)
    right = 0.25 * 3.0 + 0.75 * 5.0
    assert first.change == pytest.approx((4 + 4 + right) / 4)
    assert (second.feature, second.n_trees, second.threshold) == (0, 1, 0.25)
    assert second.change == pytest.approx(0.5 * 2.0 / 4)
    part = 0.5 * 0.25 * 0.75 * 2.0**2
    whole = part + 0.25 * 4.0**2 + (33 * 31 / 64**2) * 4.0**2 + 0.25 * right**2
    assert second.share == pytest.approx(part / whole)
    assert first.share + second.share == pytest.approx(1.0)


def test_trees_that_do_not_vary_over_the_people_have_no_steps():
    rows = np.full((50, 3), 0.1)
    assert find_steps(trees(), rows) == ()
    assert find_steps(Surface.constant(3.0), rows) == ()

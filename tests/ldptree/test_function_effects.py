"""What shares of the variance and curves of any function promise, against what can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.errors import DataError
from ldptree.models.effects import (
    Piece,
    columns_of,
    importance,
    partial_dependence,
    pieces_of,
    stretches_held,
)

ENCODING = Encoding(
    (
        NumericFeature("miles", 0.0, 16.0),
        NumericFeature("fare", 10.0, 20.0, fill=12.0, indicator=True),
        CategoricalFeature("firm", ("ash", "birch"), missing_level=True),
    )
)
SINGLE = [(0,), (1,), (2,)]


def rows(n: int = 4_000, seed: int = 0, d: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).random((n, d))


def test_shares_of_independent_features_are_those_of_their_variances_and_add_up_to_one():
    """Estimate of 40 orders of 4,000 rows; bounds of 5 standard deviations, found by repeating it."""
    found = importance(lambda x: 3 * x[:, 0] - 1 * x[:, 1] + 5, rows(), SINGLE)
    assert found.sum() == pytest.approx(1.0)
    assert found == pytest.approx([0.9, 0.1, 0.0], abs=0.02)
    assert found[2] == 0.0


def test_features_that_go_together_share_the_variance_that_they_have_in_common():
    """f = x + y with correlation rho: by hand each has half of it, and of f = 3 x + y the first (9 + 3 rho)/(10 + 6 rho)."""
    x = rows(seed=1)
    x[:, 1] = 0.8 * x[:, 0] + 0.6 * x[:, 1]
    rho = np.corrcoef(x[:, 0], x[:, 1])[0, 1]
    ratio = x[:, 1].std() / x[:, 0].std()
    found = importance(lambda r: 3 * r[:, 0] + r[:, 1] / ratio, x, SINGLE)
    assert found[0] == pytest.approx((9 + 3 * rho) / (10 + 6 * rho), abs=0.02)


def test_an_interaction_is_parted_between_its_features():
    found = importance(lambda x: (x[:, 0] - 0.5) * (x[:, 1] - 0.5), rows(seed=2), SINGLE)
    assert found == pytest.approx([0.5, 0.5, 0.0], abs=0.03)


def test_columns_of_a_group_vary_together():
    """One-hot rows: no answer is asked of a row with two levels or none."""
    x = np.eye(3)[np.random.default_rng(3).integers(0, 3, 500)]
    seen = []

    def answers(r: np.ndarray) -> np.ndarray:
        seen.append(r.sum(axis=1))
        return r @ np.array([1.0, 2.0, 4.0])

    assert importance(answers, x, [(0, 1, 2)]) == pytest.approx([1.0])
    assert (np.concatenate(seen) == 1).all()


def test_answers_that_do_not_vary_have_no_shares_and_a_part_against_the_answers_none_below_zero():
    assert importance(lambda x: np.full(len(x), 0.1), rows(50), SINGLE).tolist() == [0, 0, 0]
    x = rows(seed=4)
    x[:, 1] = x[:, 0] + 0.01 * x[:, 1]
    found = importance(lambda r: 3 * r[:, 0] - r[:, 1], x, SINGLE)
    assert found.min() == 0.0
    assert found.sum() == pytest.approx(1.0)


def test_the_same_seed_gives_the_same_shares_and_rows_are_left_alone():
    x = rows(100)
    before = x.copy()
    first, second = (importance(lambda r: r[:, 0] * r[:, 1], x, SINGLE) for _ in range(2))
    partial_dependence(lambda r: r[:, 0], x, (0,), [[0.5]])
    assert np.array_equal(first, second)
    assert np.array_equal(x, before)


def test_a_curve_is_the_average_answer_with_the_feature_set_for_all():
    x = rows(300, seed=5)
    probes = [[0.0], [0.25], [1.0]]
    found = partial_dependence(lambda r: r[:, 0] * r[:, 1] + r[:, 2], x, (0,), probes)
    by_hand = [p * x[:, 1].mean() + x[:, 2].mean() for (p,) in probes]
    assert found == pytest.approx(by_hand)


def test_pieces_are_in_raw_units_and_their_probes_in_them():
    miles, fare, firm = ENCODING.features
    pieces, probes = pieces_of(miles, [0.0, 0.25, 1.0])
    assert [(p.low, p.high) for p in pieces] == [(0, 4), (4, 16)]
    assert probes.tolist() == [[0.125], [0.625]]
    pieces, probes = pieces_of(fare, [0.0, 0.5, 1.0])
    assert pieces[-1] == Piece(is_missing=True)
    raw = np.array([[0, np.nan, 0]])
    assert probes[-1] == pytest.approx(ENCODING.encode(raw)[0, 1:3])
    assert (probes[:-1, 1] == 0).all()
    pieces, probes = pieces_of(firm, [])
    assert pieces == [Piece(level="ash"), Piece(level="birch"), Piece(is_missing=True)]
    raw = np.array([[0, 12, 0], [0, 12, 1], [0, 12, np.nan]])
    assert np.array_equal(probes, ENCODING.encode(raw)[:, 3:])


def test_columns_of_every_raw_column_are_the_encodings():
    assert columns_of(ENCODING) == [(0,), (1, 2), (3, 4, 5)]


def test_no_end_of_a_curve_is_a_few_peoples():
    """One far value, and few, do not stretch it; ends are on the grid, not at anybody's value."""
    x = np.concatenate(
        [np.random.default_rng(6).uniform(0.3021, 0.5987, 2_000), [0.93, 0.001], [np.nan] * 50]
    )
    cuts = stretches_held(x)
    assert (cuts[0], cuts[-1]) == pytest.approx((0.305, 0.6), abs=0.0051)
    assert np.allclose(cuts[[0, -1]] * 200, np.round(cuts[[0, -1]] * 200))
    for end in (x[x < cuts[0]], x[x > cuts[-1]]):
        assert end.size < 0.03 * 2_000
    assert stretches_held([0.4, 0.5])[[0, -1]].tolist() == [0, 1]
    assert stretches_held(np.full(100, 0.4))[[0, -1]] == pytest.approx([0.4, 0.405])


def test_no_rows_are_refused():
    with pytest.raises(DataError, match="n > 0"):
        importance(lambda x: x[:, 0], np.empty((0, 3)), SINGLE)
    with pytest.raises(DataError, match="n > 0"):
        partial_dependence(lambda x: x[:, 0], np.empty((0, 3)), (0,), [[0.5]])

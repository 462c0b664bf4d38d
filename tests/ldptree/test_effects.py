"""What the curves along a column promise: they are averages of the tree's own answers, in the column's own units."""

from __future__ import annotations

import numpy as np
import pytest

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.errors import DataError
from ldptree.models.effects import EMPTY, Piece, tree_dependence, tree_importance
from ldptree.partition.raw import RawTree
from ldptree.partition.tree import Partition

ENCODING = Encoding(
    (
        NumericFeature("miles", 0.0, 16.0),
        NumericFeature("fare", 0.0, 8.0, fill=1.0, indicator=True),
        CategoricalFeature("firm", ("ash", "birch", "cedar"), missing_level=True),
    )
)
# encoded columns: miles, fare, fare is missing, firm = ash, birch, cedar, firm is missing
GROWN = Partition.of(
    [0, 1, -1, -1, 4, 0, -1, -1, 2, -1, -1],
    [0.5, 0.25, 0, 0, 0.5, 0.75, 0, 0, 0.5, 0, 0],
    [1, 2, -1, -1, 5, 6, -1, -1, 9, -1, -1],
    [4, 3, -1, -1, 8, 7, -1, -1, 10, -1, -1],
)
TREE = RawTree.of(GROWN, ENCODING)
# cells: miles <= 8 with fare <= 2 and above; miles to 12 and above, not birch; birch with a fare and without
WEIGHTS = np.array([0.1, 0.3, 0.2, 0.1, 0.25, 0.05])
VALUES = np.array([1.0, 2.0, 5.0, 9.0, 4.0, 7.0])


def stretches(pieces: list[Piece]) -> np.ndarray:
    """Ends of each, as scaling in single precision moves them a little."""
    return np.array([(piece.low, piece.high) for piece in pieces])


def test_strengths_part_the_variance_of_the_answers_over_the_cells():
    found = tree_importance(TREE, VALUES, WEIGHTS)
    assert sum(found.values()) == pytest.approx(1.0)
    assert list(found) == sorted(found, key=lambda c: -found[c])
    # by hand: the one split on fare and the one on its mark
    mean = WEIGHTS @ VALUES
    variance = WEIGHTS @ (VALUES - mean) ** 2
    by_fare = 0.1 * 0.3 / 0.4 * 1.0**2 + 0.25 * 0.05 / 0.3 * 3.0**2
    assert found["fare"] == pytest.approx(by_fare / variance)


def test_answers_that_do_not_vary_have_no_strength_and_columns_that_do_not_matter_none():
    assert tree_importance(TREE, np.full(6, 0.1), WEIGHTS) == {}
    assert list(tree_importance(TREE, [1, 1, 5, 9, 5, 5], [1, 1, 1, 0, 1, 1])) == ["miles"]


def test_a_curve_is_the_average_over_rows_whose_other_columns_are_independent():
    """Rows drawn so that every test of another column parts each node alike: the curve is then the mean prediction."""
    tree = RawTree.of(
        Partition.of(
            [0, 1, -1, -1, 1, -1, -1],
            [0.5, 0.25, 0, 0, 0.25, 0, 0],
            [1, 2, -1, -1, 5, -1, -1],
            [4, 3, -1, -1, 6, -1, -1],
        ),
        ENCODING,
    )
    rng = np.random.default_rng(0)
    miles, fare = rng.permutation(np.linspace(0, 16, 64)), np.linspace(0, 8, 64)
    grid = np.array([(m, f, 0) for m in miles for f in fare], dtype=float)
    weights = np.bincount(tree.apply(grid), minlength=4)
    values = np.array([1.0, 2.0, 5.0, 9.0])
    pieces, curve = tree_dependence(tree, "miles", weights, {"value": values})
    assert stretches(pieces) == pytest.approx(np.array([(0, 8), (8, 16)]), abs=1e-5)
    for piece, drawn in zip(pieces, curve["value"], strict=True):
        rows = grid.copy()
        rows[:, 0] = piece.high
        assert drawn == pytest.approx(values[tree.apply(rows)].mean(), abs=1e-6)


def test_a_curve_along_the_only_column_is_the_tree_itself():
    tree = RawTree.of(
        Partition.of(
            [0, 0, -1, -1, 0, -1, -1],
            [0.5, 0.25, 0, 0, 0.75, 0, 0],
            [1, 2, -1, -1, 5, -1, -1],
            [4, 3, -1, -1, 6, -1, -1],
        ),
        ENCODING,
    )
    values = np.array([3.0, 1.0, 4.0, 1.5])
    pieces, curve = tree_dependence(tree, "miles", np.ones(4), {"value": values})
    assert curve["value"] == pytest.approx(values)
    rng = np.random.default_rng(1)
    for x in rng.uniform(0, 16, 200):
        (at,) = [j for j, p in enumerate(pieces) if p.low < x <= p.high or (x == 0 == p.low)]
        cell = tree.apply(np.array([[x, 1.0, 0.0]]))[0]
        assert curve["value"][at] == values[cell]


def test_pieces_of_a_number_join_up_over_its_public_range_and_a_missing_value_is_one():
    pieces, curve = tree_dependence(TREE, "fare", WEIGHTS, {"value": VALUES})
    assert stretches(pieces[:2]) == pytest.approx(np.array([(0, 2), (2, 8)]), abs=1e-5)
    assert pieces[0].high == pieces[1].low
    assert pieces[2:] == [Piece(is_missing=True)]
    # at miles <= 8 the value itself, at birch its mark; the other cells as they are
    rest = 0.2 * 5.0 + 0.1 * 9.0
    known, missing = 0.3 * 4.0, 0.3 * 7.0
    assert curve["value"] == pytest.approx(
        [0.4 * 1 + rest + known, 0.4 * 2 + rest + known, 0.4 * 1 + rest + missing]
    )


def test_pieces_of_a_category_are_the_levels_asked_for_and_all_others():
    pieces, curve = tree_dependence(TREE, "firm", WEIGHTS, {"value": VALUES})
    assert pieces == [Piece(level="birch"), Piece(is_other=True), Piece(is_missing=True)]
    near = 0.1 * 1 + 0.3 * 2
    birch, other = (0.25 * 4 + 0.05 * 7) / 0.3, (0.2 * 5 + 0.1 * 9) / 0.3
    assert curve["value"] == pytest.approx([near + 0.6 * birch, near + 0.6 * other, near + 0.6 * other])


def test_the_band_is_never_narrower_than_the_error_of_the_average():
    """Errors of cells with any covariance: the average's own standard deviation stays within the averaged ones."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        root = rng.normal(size=(6, 6))
        covariance = root @ root.T
        sd = np.sqrt(np.diag(covariance))
        eye = {f"cell {j}": row for j, row in enumerate(np.eye(6))}
        _, made = tree_dependence(TREE, "miles", WEIGHTS, {"sd": sd, **eye})
        reach = np.stack([made[name] for name in eye], axis=1)
        assert reach.sum(axis=1) == pytest.approx(1.0)
        true = np.sqrt(np.einsum("pi,ij,pj->p", reach, covariance, reach))
        assert (made["sd"] >= true - 1e-9).all()


def test_where_nobody_is_cells_count_alike():
    _, curve = tree_dependence(TREE, "miles", [1, 1, 0, 0, 0, 0], {"value": VALUES})
    # of the four cells above 8 miles two are birch and two are not, and of these one is on either side of 12
    assert curve["value"][1:] == pytest.approx([(2 * 5.0 + 4 + 7) / 4, (2 * 9.0 + 4 + 7) / 4], abs=10 * EMPTY)


def test_what_does_not_fit_is_refused():
    with pytest.raises(DataError, match="does not test"):
        tree_dependence(TREE, "tips", WEIGHTS, {"value": VALUES})
    with pytest.raises(DataError, match="6 finite numbers"):
        tree_importance(TREE, VALUES[:-1], WEIGHTS)
    with pytest.raises(DataError, match="6 finite numbers"):
        tree_importance(TREE, [np.inf, *VALUES[1:]], WEIGHTS)
    with pytest.raises(DataError, match="negative"):
        tree_importance(TREE, VALUES, -WEIGHTS)

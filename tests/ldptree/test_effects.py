"""What strengths and curves of a tree, of any function and of public features promise, and their file."""

from __future__ import annotations

import numpy as np
import pytest

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.errors import DataError
from ldptree.families.public_features import PublicFeatureModel
from ldptree.models.curves import along
from ldptree.models.effects import (
    EMPTY,
    Piece,
    columns_of,
    importance,
    partial_dependence,
    pieces_of,
    stretches_held,
    tree_dependence,
    tree_importance,
)
from ldptree.models.public_view import PublicViewModel
from ldptree.models.surface import Surface
from ldptree.partition.raw import RawTree
from ldptree.partition.tree import Partition
from ldptree.protocol.question import PublicView

# a tree


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


# any function: against what can be worked out by hand


OTHER = Encoding(
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
    miles, fare, firm = OTHER.features
    pieces, probes = pieces_of(miles, [0.0, 0.25, 1.0])
    assert [(p.low, p.high) for p in pieces] == [(0, 4), (4, 16)]
    assert probes.tolist() == [[0.125], [0.625]]
    pieces, probes = pieces_of(fare, [0.0, 0.5, 1.0])
    assert pieces[-1] == Piece(is_missing=True)
    raw = np.array([[0, np.nan, 0]])
    assert probes[-1] == pytest.approx(OTHER.encode(raw)[0, 1:3])
    assert (probes[:-1, 1] == 0).all()
    pieces, probes = pieces_of(firm, [])
    assert pieces == [Piece(level="ash"), Piece(level="birch"), Piece(is_missing=True)]
    raw = np.array([[0, 12, 0], [0, 12, 1], [0, 12, np.nan]])
    assert np.array_equal(probes, OTHER.encode(raw)[:, 3:])


def test_columns_of_every_raw_column_are_the_encodings():
    assert columns_of(OTHER) == [(0,), (1, 2), (3, 4, 5)]


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


# a model of public features


SIZES = Encoding((NumericFeature("size", 0.0, 4.0), CategoricalFeature("kind", ("calm", "wild"))))


def line(intercept: float, *slopes: float) -> PublicFeatureModel:
    return PublicFeatureModel(
        columns=tuple(SIZES.names),
        low=(0.0,) * 3,
        high=(1.0,) * 3,
        private=(),
        label_low=-99.0,
        label_high=99.0,
        is_binary=False,
        surface=Surface((0, 1, 2), np.zeros(3), intercept, np.array(slopes)),
        effects=(),
        epsilon=1.0,
        n_holders=500,
        says="",
    )


@pytest.fixture(scope="module")
def shown_rows():
    rng = np.random.default_rng(0)
    wild = rng.integers(0, 2, 500)
    rows = np.column_stack([rng.random(500), 1 - wild, wild]).astype(float)
    return PublicView.of(rows, np.zeros(rows.shape, dtype=bool))


@pytest.fixture(scope="module")
def line_model():
    return PublicViewModel(
        encoding=SIZES,
        target="rings",
        private=(),
        estimator="public_features",
        inner=line(1.0, 8.0, 0.0, 3.0),
        epsilon=1.0,
        n_private=500,
        questions=(),
    )


def test_a_curve_is_the_answer_averaged_over_people(line_model, shown_rows):
    """Of the line 1 + 8 size + 3 wild: 2 for each unit of size, of which its range has 4, and 3 from one kind to the other."""
    size, kind = along(line_model.inner, line_model.encoding, shown_rows).curves
    start = size.readings[0]
    for one in size.readings:
        assert one.value - start.value == pytest.approx(
            2 * (one.piece.low + one.piece.high - start.piece.low - start.piece.high) / 2
        )
    calm, wild = kind.readings
    assert wild.value - calm.value == pytest.approx(3.0)


def test_curves_are_read_back_as_they_were_written(line_model, shown_rows):
    found = along(line_model.inner, line_model.encoding, shown_rows)
    assert type(found).from_json(found.to_json()) == found


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"curves": [{"readings": 3}], "strengths": []}'])
def test_a_damaged_file_of_curves_is_refused(line_model, shown_rows, text):
    with pytest.raises(DataError, match="curves"):
        type(along(line_model.inner, line_model.encoding, shown_rows)).from_json(text)

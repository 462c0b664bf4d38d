"""A contrast above a tree of cells: which columns are asked about, and which cells are left."""

import gc
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldptree import CorrectionRegressor, LPDTRegressor
from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.families.contrasts import choose_contrasts, choose_pairs, cut_above
from ldptree.families.correction_plan import PublicSummary
from ldptree.models.description import Evidence
from ldptree.models.effects import columns_of
from ldptree.partition import PARTITIONS, grow_partition
from ldptree.partition.tree import Partition
from ldptree.protocol.published_base import Contrast, Pair

WHOLE = NumericFeature("whole", 0.0, 20.0, fill=7.0, indicator=True)
KIND = CategoricalFeature("kind", ("a", "b", "c"), missing_level=True)
FREE = NumericFeature("free", 0.0, 1.0)


def test_a_column_is_cut_where_it_parts_the_public_rows_most_evenly():
    column = np.array(
        [[0, 0, 1, 1, 1], [3, 1, 2, 5, 4], [7, 7, 7, 7, 7], [0, 0, 0, 0, 0]], dtype=np.float32
    ).T
    assert choose_contrasts(column) == (Contrast(0, 0.0), Contrast(1, 2.0)) or choose_contrasts(column) == (
        Contrast(0, 0.0),
        Contrast(1, 3.0),
    )
    assert choose_contrasts(column[:0]) == ()


def test_a_cut_above_a_tree_has_the_tree_in_either_half():
    tree = Partition.of([0, -1, 1, -1, -1], [0.25, 0, 0.5, 0, 0], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1])
    rows = np.random.default_rng(1).random((200, 3)).astype(np.float32)
    cut = cut_above(tree, Contrast(2, 0.5), rows, [2])
    np.testing.assert_array_equal(cut.apply(rows), tree.apply(rows) + 3 * (rows[:, 2] > 0.5))
    assert cut_above(cut, Contrast(2, 0.5), rows, [2]).digest == cut.digest


def test_a_half_that_the_tree_tells_apart_a_hair_further_on_is_not_told_apart_twice():
    """A tree cuts midway between two public values, a contrast at the lower one: nobody whose value is known lies between."""
    rows = np.array([[0.0], [0.5], [0.75], [1.0]], dtype=np.float32)
    tree = Partition.of([0, -1, 0, -1, -1], [0.625, 0, 0.875, 0, 0], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1])
    cut = cut_above(tree, Contrast(0, 0.5), rows, [0])
    assert (cut.n_leaves, cut.apply(rows).tolist()) == (3, [0, 0, 1, 2])


def test_no_copy_of_the_rows_is_held_when_a_cut_is_made():
    """A cycle of references would hold one for each depth that is tried, until objects are collected."""
    rows = np.random.default_rng(1).random((50_000, 4)).astype(np.float32)
    tree = grow_partition(
        rows, rows[:, 0] * rows[:, 1], kind="cart", depth=3, n_classes=2, criterion="variance"
    )
    gc.disable()
    tracemalloc.start()
    cut_above(tree, Contrast(2, 0.5), rows, [0, 1, 2, 3])
    held, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    gc.enable()
    assert held < rows.nbytes / 100 < rows.nbytes < most


def raw_rows(rng, n, *, only_numbers):
    whole = np.where(rng.random(n) < 0.15, np.nan, rng.integers(0, 21, n))
    if only_numbers:
        return np.stack([np.nan_to_num(whole), rng.random(n)], axis=1)
    return np.stack([whole, rng.choice([0.0, 1.0, 2.0, np.nan], n), rng.random(n)], axis=1)


@pytest.mark.parametrize("kind", PARTITIONS)
@given(seed=st.integers(0, 10**6), n=st.integers(12, 60), depth=st.integers(0, 6), which=st.integers(0, 20))
@settings(max_examples=60, deadline=None)
def test_below_a_contrast_every_cell_holds_somebody_and_is_of_one_half_and_one_cell_of_the_tree(
    kind, seed, n, depth, which
):
    rng = np.random.default_rng(seed)
    is_cart = kind == "cart"
    encoding = Encoding((WHOLE, KIND, FREE) if is_cart else (NumericFeature("whole", 0.0, 20.0), FREE))
    rows = encoding.encode(raw_rows(rng, n, only_numbers=not is_cart))
    tree = grow_partition(
        rows, rng.normal(rows[:, 0]), kind=kind, depth=depth, n_classes=2, criterion="variance", seed=seed
    )
    contrasts = choose_contrasts(rows)
    contrast = contrasts[which % len(contrasts)]
    columns = next(group for group in columns_of(encoding) if contrast.feature in group)
    cut = cut_above(tree, contrast, rows, columns)

    # every public row with the raw column of every other
    mixed = np.repeat(rows, n, axis=0)
    mixed[:, columns] = np.tile(rows[:, columns], (n, 1))
    halves = mixed[:, contrast.feature] > contrast.threshold
    before, cells = 2 * tree.apply(mixed) + halves, cut.apply(mixed)
    pairs = np.unique(np.stack([before, cells]), axis=1)
    assert len(np.unique(pairs[0])) == len(np.unique(pairs[1])) == pairs.shape[1]

    if not is_cart:  # its cells need no public row
        fine = np.linspace(0, 1, 257, dtype=np.float32)
        cells = cut.apply(np.stack([axis.ravel() for axis in np.meshgrid(fine, fine)], axis=1))
    np.testing.assert_array_equal(np.unique(cells), np.arange(cut.n_leaves))


def hidden_columns(n, rng, *, are_private):
    """Rows [n, 6] and numbers, which in private people depend on columns 3 and 4 too; column 5 goes along with column 3."""
    X = rng.random((n, 6))
    X[:, 5] = 0.7 * X[:, 3] + 0.3 * X[:, 5]
    hidden = 1.2 * np.sign(X[:, 3] - 0.5) + 0.8 * np.sign(X[:, 4] - 0.5)
    return X, 3 * X[:, 0] + rng.normal(size=n) + are_private * hidden


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_every_column_that_public_labels_ignore_is_cut_and_none_that_only_goes_along(epsilon):
    rng = np.random.default_rng(5)
    (public, seen), (private, y) = (
        hidden_columns(n, rng, are_private=are_private) for n, are_private in ((800, False), (20_000, True))
    )
    rows, labels = np.vstack([public, private]), np.append(seen, y)
    model = CorrectionRegressor(base="forest", epsilon=epsilon, random_state=0)
    model.fit(rows, labels, public=np.arange(len(rows)) < len(public))
    tree = model.model_.partition
    assert tree.feature[0] == 3
    assert tree.feature[tree.left[0]] == tree.feature[tree.right[0]] == 4
    X, truth = hidden_columns(4_000, rng, are_private=True)
    public_error, error = (
        np.mean((answers[:, 0] - truth) ** 2)
        for answers in (model.model_.public_answers(X), model.model_.answers(X))
    )
    assert error < 1.4 < 2.5 < public_error


def fit_turned(n, *, depth="auto"):
    """Fit private numbers that depend on columns 2 and 3 together alone; columns 4 and 5 are uneven."""
    rng = np.random.default_rng(5)
    X, is_public = rng.random((n, 6)), np.arange(n) < 500
    X[:, 4:] = X[:, 4:] < 0.25
    turns = np.sign(X[:, 2] - 0.5) * np.sign(X[:, 3] - 0.5)
    y = 3 * X[:, 0] + np.where(is_public, 0.0, 1.2 * turns) + rng.normal(size=n)
    fitted = CorrectionRegressor(base="forest", epsilon=2.0, depth=depth, random_state=0)
    fitted.fit(X, y, public=is_public)
    n_pairs = sum(isinstance(along, Pair) for along in fitted.protocols_[0].base.contrasts)
    errors = [
        np.mean((answers(X[~is_public])[:, 0] - y[~is_public]) ** 2)
        for answers in (fitted.model_.answers, fitted.model_.public_answers)
    ]
    return n_pairs, set(fitted.model_.partition.feature.tolist()), errors


@pytest.mark.parametrize("depth", ["auto", 2])
def test_a_difference_that_another_column_turns_round_is_found(depth):
    n_pairs, columns, (error, of_public) = fit_turned(30_000, depth=depth)
    assert n_pairs == 14  # all of six columns but the one of the two uneven ones
    assert {2, 3} <= columns
    assert error < 1.5 < of_public


def test_pairs_are_asked_about_where_many_report_and_a_tree_can_hold_both_columns():
    assert [fit_turned(3_000)[0], fit_turned(30_000, depth=1)[0]] == [0, 0]


def test_a_pair_is_of_two_raw_columns_that_public_rows_do_not_show_to_go_along():
    rng = np.random.default_rng(1)
    X = rng.random((400, 4)).astype(np.float32)
    X[:, 3] = X[:, 0] + 0.01 * X[:, 3]
    contrasts = [Contrast(j, 0.5) for j in range(4)]
    assert choose_pairs(X, contrasts, [(0,), (1, 2), (3,)]) == (
        Pair(contrasts[0], contrasts[1]),
        Pair(contrasts[0], contrasts[2]),
        Pair(contrasts[1], contrasts[3]),
        Pair(contrasts[2], contrasts[3]),
    )


def fit_many_columns(sizes, epsilon, seed):
    """Fit 12 columns, on the last of which private numbers depend by these sizes; with excess errors, without stumps and with."""
    rng = np.random.default_rng(seed)
    X, is_public = rng.random((14_000, 12)), np.arange(14_000) < 500
    hidden = np.sign(X[:, 12 - len(sizes) :] - 0.5) @ np.array(sizes)
    expected = 3 * X[:, 0] + 2 * X[:, 1] + np.where(is_public, 0.0, hidden)
    asked = np.arange(len(X)) < 10_500
    fitted = CorrectionRegressor(base="forest", epsilon=epsilon, random_state=seed)
    fitted.fit(X[asked], (expected + rng.normal(size=len(X)))[asked], public=is_public[asked])
    model = fitted.model_
    errors = [
        np.mean((each.answers(X[~asked])[:, 0] - expected[~asked]) ** 2)
        for each in (replace(model, stumps=()), model)
    ]
    return model, X[is_public], fitted.plan_, errors


def test_columns_that_are_not_cut_are_corrected_by_the_first_questions_answers_and_named():
    """Five hidden columns, of which three are cut at most."""
    all_errors, named = [], set()
    for seed in range(3):
        model, public, plan, errors = fit_many_columns([0.8, 0.7, 0.6, -0.5, 0.5], 2.0, seed)
        all_errors.append(errors)
        rows = model.encoding.encode(public)
        summary = PublicSummary(
            plan=plan, answer=np.zeros_like(plan.own_variance), usual=np.zeros(1), n_public=len(rows)
        )
        stated = model.describe(Evidence(public=summary, rows=rows)).of_kind("stump")
        assert len(stated) == len(model.stumps)
        named |= {statement.about.split(" > ")[0] for statement in stated if statement.figures["apart_sd"]}

        # the mean of a cell stays what its own reports made it
        cells = model.partition.apply(rows)
        beside = model.add_in(cells, rows) - model.corrections.correction[cells]
        sums = np.bincount(cells, beside[:, 0], model.partition.n_leaves)
        np.testing.assert_allclose(sums, 0.0, atol=1e-9)
        for stump in model.stumps:
            assert np.abs(stump.balance).max() < 0.9  # no cut is said twice
    without, with_them = np.mean(all_errors, axis=0)
    assert with_them < 0.75 * without
    assert {"x10", "x11"} & named


def test_where_people_are_alike_what_other_columns_add_costs_a_hundredth_of_the_noise_at_most():
    errors = [fit_many_columns([], 1.0, seed)[-1] for seed in range(4)]
    without, with_them = np.mean(errors, axis=0)
    assert with_them < without + 0.01  # of a variance of 1 that no model explains


@pytest.mark.parametrize("questions", [2, 1])
def test_people_far_from_the_public_ones_are_met_by_a_wider_range_or_said_to_be_further_than_it_tells(
    questions,
):
    """Public rows are those of one end of a column on which labels depend, so that private residuals are mostly beyond 2 rms."""
    rng, n = np.random.default_rng(3), 8_000
    X = rng.random((2 * n, 4))
    y = 10.0 * X[:, 0] + X[:, 1] + rng.normal(size=len(X))
    X[:, 0] = np.round(X[:, 0], 1)
    is_test = np.arange(len(X)) >= n
    is_public = X[:, 0] < 0.2
    asked, met = ~is_test, is_test & ~is_public
    model = CorrectionRegressor(epsilon=2.0, questions=questions, random_state=0)
    model.fit(X[asked], y[asked], public=is_public[asked])
    low, high = (np.mean(end) for end in model.model_.interval(X[met], 0.9))
    assert low < np.mean(y[met]) < high
    error = np.mean((model.predict(X[met]) - y[met]) ** 2)
    assert error < 0.5 * np.mean((model.model_.public_answers(X[met])[:, 0] - y[met]) ** 2)
    if questions == 2:
        other = LPDTRegressor(epsilon=2.0, random_state=0, label_range=(y.min(), y.max()))
        other.fit(X[asked], y[asked], public=is_public[asked])
        assert error < 1.05 * np.mean((other.predict(X[met]) - y[met]) ** 2)
    else:
        assert "larger than a report can say" in model.says_

"""A model is a value: it survives its own text, refuses every other, and says how sure it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from example_models import (
    every_kind_of_feature,
    protocol_of,
    random_counts,
    random_model,
    random_rows,
    random_tree,
    totals_of,
)

from ldptree.errors import DataError
from ldptree.families.settings import PaperOptions
from ldptree.families.tree_fit import decide_nodes, fit_model
from ldptree.inference.pruning import PRUNINGS
from ldptree.protocol.totals import Totals


@pytest.mark.parametrize("classes", [("no", "yes"), ("a", "b", "c")])
@pytest.mark.parametrize("lam", ["learned", "auto", 0.0, math.inf])
@pytest.mark.parametrize("prune", ["smooth", "variance", "none"])
def test_every_node_has_a_decision_and_shares_that_sum_to_one(
    classes: tuple, lam: str | float, prune: str
) -> None:
    model = random_model(1, classes=classes, lam=lam, prune=prune)
    assert np.all((model.probability >= 0) & (model.probability <= 1))
    np.testing.assert_allclose(model.probability.sum(axis=1), 1.0)
    best = model.probability.max(axis=1)
    chosen = model.probability[np.arange(model.partition.n_nodes), model.decision]
    np.testing.assert_allclose(chosen, best, atol=1e-9)
    for level in (0.5, 0.99):
        low, high = model.interval(level)
        assert np.all((low >= 0) & (low <= model.probability) & (model.probability <= high) & (high <= 1))
    assert set(model.evidence) <= {"private", "public", "both", "none"}


def test_a_wider_level_gives_a_wider_interval_around_the_margin() -> None:
    model = random_model(1)
    (low, high), (lower, higher) = model.estimate_interval(0.5), model.estimate_interval(0.95)
    assert np.all((lower < low) & (low < model.estimate) & (model.estimate < high) & (high < higher))
    np.testing.assert_allclose(higher - model.estimate, 1.959964 * model.estimate_sd, rtol=1e-6)


def test_totals_of_a_node_are_the_sums_of_its_children() -> None:
    model = random_model(2)
    inner = np.flatnonzero(model.partition.feature >= 0)
    left, right = model.partition.left[inner], model.partition.right[inner]
    for totals in (model.private_total, model.public_total):
        np.testing.assert_allclose(totals[inner], totals[left] + totals[right], atol=1e-6)
    assert model.public_total[0].sum() == model.n_public == 300


def test_a_row_without_a_cell_gets_the_answer_of_the_root() -> None:
    model = random_model(6, with_rules=False, outside="drop")
    rows = random_rows(model.encoding, 500, np.random.default_rng(0), missing=0.02)
    is_unplaced = ~model.encoding.encodable(rows) | model.encoding.is_outside(rows)
    assert 0 < is_unplaced.sum() < 500
    np.testing.assert_array_equal(model.cells(rows) < 0, is_unplaced)
    assert set(model.predict(rows)[is_unplaced]) == {model.answers[0]}
    np.testing.assert_array_equal(
        model.predict_proba(rows)[is_unplaced], model.probability[[0] * is_unplaced.sum()]
    )


def test_prediction_needs_the_columns_in_use_and_no_other() -> None:
    model = random_model(2, max_depth=2)
    rows = random_rows(model.encoding, 100, np.random.default_rng(0))
    needed = model.columns_needed
    assert 0 < len(needed) < len(model.encoding.columns)
    places = [model.encoding.columns.index(column) for column in needed]
    np.testing.assert_array_equal(model.predict_raw(rows[:, places], needed), model.predict(rows))
    with pytest.raises(DataError, match=needed[0][:3]):
        model.predict_raw(rows[:, places[1:]], needed[1:])


def test_without_noise_the_model_finds_what_is_there() -> None:
    rng = np.random.default_rng(0)
    encoding = every_kind_of_feature()
    protocol = protocol_of(random_tree(encoding.n_encoded, 4, rng), encoding)
    counts = random_counts(protocol.n_cells, 2, 50_000, rng)
    public = random_counts(protocol.n_cells, 2, 100, rng)
    true = Totals.exact(counts, mechanism=protocol.mechanism, depth=protocol.partition.max_depth)
    model = fit_model(protocol, true, public, prune="none")
    leaves, crowded = protocol.partition.leaves, counts.sum(axis=1) > 500
    share = counts[:, 1] / np.maximum(counts.sum(axis=1), 1)
    np.testing.assert_allclose(model.probability[leaves, 1][crowded], share[crowded], atol=0.1)
    np.testing.assert_array_equal(model.noise_sd, 0.0)


def test_public_counts_of_another_tree_are_refused() -> None:
    rng, encoding = np.random.default_rng(0), every_kind_of_feature()
    protocol = protocol_of(random_tree(encoding.n_encoded, 5, rng), encoding)
    totals = totals_of(protocol, random_counts(protocol.n_cells, 2, 5_000, rng), rng)
    with pytest.raises(DataError, match="shape"):
        fit_model(protocol, totals, public_counts=np.zeros((2, 2)))


def test_many_holders_outside_do_not_thin_the_margins() -> None:
    rng = np.random.default_rng(0)
    encoding = every_kind_of_feature()
    protocol = protocol_of(random_tree(encoding.n_encoded, 3, rng), encoding, epsilon=6.0, mechanism="grr")
    counts = np.tile([100, 900], (protocol.n_cells, 1))
    public = np.tile([1, 9], (protocol.n_cells, 1))
    margins = [
        fit_model(protocol, totals_of(protocol, counts, rng, outside), public, lam=0.0, prune="none").estimate
        for outside in (0, 5 * int(counts.sum()))
    ]
    np.testing.assert_allclose(margins[1], margins[0], atol=0.08)


def test_more_classes_decide_by_the_largest_share() -> None:
    rng = np.random.default_rng(0)
    encoding = every_kind_of_feature()
    protocol = protocol_of(
        random_tree(encoding.n_encoded, 3, rng), encoding, classes=("a", "b", "c"), epsilon=4.0
    )
    favourite = rng.integers(3, size=protocol.n_cells)
    counts = np.full((protocol.n_cells, 3), 400)
    counts[np.arange(protocol.n_cells), favourite] = 1200
    model = fit_model(protocol, totals_of(protocol, counts, rng), np.zeros_like(counts))
    np.testing.assert_array_equal(model.decision[protocol.partition.leaves], favourite)
    assert model.estimate.shape[1] == 3


@pytest.mark.parametrize(
    ("classes", "settings"),
    [
        *((2, {"prune": prune, "inflation": 3.0}) for prune in PRUNINGS),
        (2, {"prune": PaperOptions(), "rule": "ratio"}),
        (3, {}),
    ],
)
def test_redraws_decide_as_the_model_does(classes: int, settings: dict) -> None:
    rng = np.random.default_rng(5)
    encoding = every_kind_of_feature()
    protocol = protocol_of(random_tree(encoding.n_encoded, 4, rng), encoding, classes=tuple("abc"[:classes]))
    counts = random_counts(protocol.n_cells, classes, 3_000, rng)
    totals, public = totals_of(protocol, counts, rng), random_counts(protocol.n_cells, classes, 900, rng)
    decided = decide_nodes(protocol, totals, public, **settings)
    np.testing.assert_array_equal(decided, fit_model(protocol, totals, public, **settings).decision)
    assert len(np.unique(decided)) == classes

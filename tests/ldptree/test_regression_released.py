"""A released regression model away from Python: as a SELECT, as a tree for Graphviz, and read back as what it is."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from example_models import every_kind_of_feature, random_rows, random_tree
from test_model_sql import fill

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.families.fit_numbers import PublicLabels, fit_regression
from ldptree.mechanisms import number_mechanism_for
from ldptree.models.export.sql import to_sql
from ldptree.partition.tree import Partition
from ldptree.protocol.protocol import Protocol
from ldptree.protocol.stochastic_rounding import label_levels
from ldptree.protocol.totals import Totals


def random_regression(seed, *, with_rules=True, n_public=300, lam="learned", prune="smooth", **more):
    """A model fitted to random totals on a random tree over every kind of feature."""
    rng = np.random.default_rng(seed)
    encoding = more.pop("encoding", None) or every_kind_of_feature(with_rules=with_rules)
    tree = more.pop("partition", None) or random_tree(encoding.n_encoded, 6, rng)
    mechanism = number_mechanism_for("oue", 2.0, tree.n_leaves, 5)
    protocol = Protocol(
        encoding=encoding,
        partition=tree,
        target=more.pop("target", "the fare"),
        classes=label_levels(-2.0, 55.5, 5),
        positive=None,
        mechanism=mechanism,
        epsilon=2.0,
        numeric=True,
        **more,
    )
    counts = rng.multinomial(5000, rng.dirichlet(np.full(mechanism.n_values, 0.3)))
    raw = mechanism.sample_totals(counts.astype(np.int64), rng)
    totals = Totals.from_raw(raw, mechanism=mechanism, n_private=5000, depth=tree.max_depth)
    count = rng.multinomial(n_public, rng.dirichlet(np.full(tree.n_leaves, 0.5))).astype(float)
    public = PublicLabels(
        count=count, total=count * rng.normal(20, 5, tree.n_leaves), mean=20.0, sd=8.0, residual_variance=30.0
    )
    return fit_regression(protocol, totals, public, lam=lam, prune=prune)


@pytest.mark.parametrize("with_rules", [True, False])
@pytest.mark.parametrize("outside", ["clip", "drop"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_select_answers_every_row_as_the_model_does(seed, outside, with_rules):
    model = random_regression(seed, with_rules=with_rules, outside=outside)
    raw = random_rows(model.encoding, 400, np.random.default_rng(seed))
    shared = model.encoding.columns.index("shared")
    raw[raw[:, shared] < 0, shared] = np.nan  # a truth value knows no third level
    with duckdb.connect() as connection:
        fill(model, raw, connection, 'my "rows"')
        found = connection.execute(to_sql(model, 'my "rows"', level=0.8) + " ORDER BY row").fetchnumpy()
    nodes = model.nodes(raw)
    low, high = (end[:, 0] for end in model.interval(0.8))
    assert len(set(nodes.tolist())) >= 3
    np.testing.assert_array_equal(found["prediction"], model.predict(raw))
    np.testing.assert_array_equal(found["lower"], low[nodes])
    np.testing.assert_array_equal(found["upper"], high[nodes])
    assert not any(name.startswith(("probability", "ldptree")) for name in found)


def test_a_cell_without_any_evidence_is_anywhere_in_the_range():
    model = random_regression(1, n_public=1, lam=float("inf"), prune="none")
    with duckdb.connect() as connection:
        raw = random_rows(model.encoding, 200, np.random.default_rng(0), missing=0.0)
        shared = model.encoding.columns.index("shared")
        raw[raw[:, shared] < 0, shared] = 1
        fill(model, raw, connection, "data")
        found = connection.execute(to_sql(model) + " ORDER BY row").fetchnumpy()
    is_nowhere = np.isinf(model.estimate_sd[:, 0])[model.nodes(raw)]
    assert is_nowhere.any()
    assert set(zip(found["lower"][is_nowhere], found["upper"][is_nowhere], strict=True)) == {(-2.0, 55.5)}


TESTS = {
    ("miles", 0.5): "miles <= 8",
    ("company", 0.5): "company is not Sun",
}


@pytest.mark.parametrize(("column", "threshold"), TESTS)
def test_a_drawn_tree_says_what_a_row_must_meet_and_what_its_cell_says(column, threshold):
    encoding = Encoding(
        (NumericFeature("miles", 0.0, 16.0, fill=9.0), CategoricalFeature("company", ("Sun", "Blue"), fill=0))
    )
    at = encoding.names.index("miles" if column == "miles" else "company = Sun")
    tree = Partition.of([at, -1, -1], [threshold, 0.0, 0.0], [1, -1, -1], [2, -1, -1])
    model = random_regression(1, encoding=encoding, partition=tree)
    lines = model.to_dot().splitlines()
    assert f'  0 [label="{TESTS[column, threshold]}"];' in lines
    assert '  0 -> 1 [label="yes"];' in lines
    assert '  0 -> 2 [label="no"];' in lines
    assert any(
        f"the fare = {model.estimate[:, 0][1]:.5g}" in line for line in lines if line.startswith("  1 ")
    )

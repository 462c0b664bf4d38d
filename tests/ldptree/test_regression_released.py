"""A released regression model away from Python: as a SELECT, as a tree for Graphviz, and read back as what it is."""

from __future__ import annotations

import re
import shutil
import subprocess

import duckdb
import numpy as np
import pytest
from example_models import every_kind_of_feature, random_model, random_rows, random_tree, table_of
from foreign_columns import assert_kept_apart
from test_model_sql import fill

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.errors import ConfigError, DataError
from ldptree.families.fit_numbers import PublicLabels, fit_regression
from ldptree.mechanisms import number_mechanism_for
from ldptree.models import read_model
from ldptree.models.export.sql import to_sql
from ldptree.partition.tree import Partition
from ldptree.protocol.number_range import levels
from ldptree.protocol.protocol import Protocol
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
        classes=levels(-2.0, 55.5, 5),
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


def test_columns_named_like_the_querys_own_change_no_answer():
    model = random_regression(1)
    query = to_sql(model) + " ORDER BY row"
    assert_kept_apart(
        query, table_of(model.encoding, random_rows(model.encoding, 200, np.random.default_rng(1)))
    )


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


def test_a_model_is_read_back_as_the_kind_it_is():
    numbers, classes = random_regression(1), random_model(1)
    for model in (numbers, classes):
        again = read_model(model.to_json())
        assert type(again) is type(model)
        assert again.digest == model.digest


def test_a_column_cannot_pass_a_model_off_as_another_kind():
    encoding = Encoding((NumericFeature('"kind":"ldptree regression model"', 0.0, 1.0, fill=0.0),))
    tree = Partition.of([0, -1, -1], [0.5, 0.0, 0.0], [1, -1, -1], [2, -1, -1])
    model = random_regression(1, encoding=encoding, partition=tree)
    assert read_model(model.to_json()).digest == model.digest
    name = '"\\"kind\\":\\"ldptree regression model\\""'
    text = random_model(1).to_json().replace('"fare"', name)
    with pytest.raises(DataError, match="digest"):  # changed, but still read as the classifier it is
        read_model(text)


@pytest.mark.parametrize("text", ["", "{}", '{"kind":"ldptree regression model"}', "[1"])
def test_what_is_no_model_is_refused(text):
    with pytest.raises(DataError, match="model"):
        read_model(text)


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


@pytest.mark.parametrize("model", [random_regression(4), random_model(4, classes=('a "b"', "c\\d", "e\nf"))])
def test_a_drawn_tree_is_whole_whatever_the_names(model):
    text = model.to_dot()
    tree = model.partition
    assert len(re.findall(r"^  \d+ \[label=", text, re.M)) == tree.n_nodes
    assert len(re.findall(r"^  \d+ -> \d+ ", text, re.M)) == tree.n_nodes - 1
    for line in text.splitlines()[3:-1]:
        assert re.fullmatch(r'  \d+ (-> \d+ )?\[label="([^"\\]|\\.)*"(, style=rounded)?\];', line), line
    if dot := shutil.which("dot"):
        subprocess.run([dot, "-Tsvg"], check=True, input=text, text=True, capture_output=True)


def test_a_level_that_is_none_is_refused():
    with pytest.raises(ConfigError):
        random_regression(1).to_dot(level=1.5)

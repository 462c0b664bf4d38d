"""A released model away from Python: the exported SELECT answers every row as the model does, and a drawn tree is whole."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from corrected_examples import KINDS, corrected, hard_rows, random_corrected, trees_of
from example_models import (
    every_kind_of_feature,
    protocol_of,
    random_counts,
    random_model,
    random_regression,
    random_tree,
    rows_of,
    table_of,
    totals_of,
)

from ldptree.encoding import CategoricalFeature, Encoding, NumericFeature
from ldptree.errors import ConfigError, DataError
from ldptree.estimators import LPDTRegressor
from ldptree.families.tree_fit import fit_model
from ldptree.models import Model, read_model
from ldptree.models.ensemble import Ensemble
from ldptree.models.export.corrected_sql import TOLERANCE
from ldptree.models.export.drawing import MOST_ENDS
from ldptree.models.export.sql import literal, quote, typed_value
from ldptree.partition.tree import Partition
from tasks.predict import read_matrix

LEVEL = 0.8
X = Encoding((NumericFeature("x", 0.0, 1.0),))
HALVES = Partition.of([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1])


def expected_of_tree(model: Model, raw: np.ndarray) -> dict:
    """The columns of a tree of classes or of numbers, as the model says them."""
    nodes, (low, high) = model.nodes(raw), model.interval(LEVEL)
    if not hasattr(model, "classes") or not len(model.classes):
        ends = {"mean_lower": low[nodes, 0], "mean_upper": high[nodes, 0]}
        return {"prediction": model.predict(raw)} | ends
    found = {"prediction": np.array([model.classes[k] for k in model.predict(raw)])}
    for k, name in enumerate(model.classes):
        found |= {f"probability_{name}": model.predict_proba(raw)[:, k]}
        found |= {f"lower_{name}": low[nodes, k], f"upper_{name}": high[nodes, k]}
    return found


def expected_of_correction(model: Model, raw: np.ndarray) -> dict:
    """The columns of both parts of a corrected model."""
    said, (low, high) = model.predict_parts(raw), model.interval(raw, LEVEL)
    if not model.classes:
        columns = [said.corrected, low, high, said.public, said.correction, said.sd]
        names = ("prediction", "mean_lower", "mean_upper", "public_prediction", "correction", "correction_sd")
        return {name: values[:, 0] for name, values in zip(names, columns, strict=True)}
    found = {}
    named = model.classes[1:] if len(model.classes) == 2 else model.classes
    for m, name in enumerate(named):
        found |= {f"lower_{name}": low[:, m], f"upper_{name}": high[:, m]}
        found |= {f"correction_{name}": said.correction[:, m], f"correction_sd_{name}": said.sd[:, m]}
    if len(model.classes) == 2:
        first = model.classes[0]
        found |= {f"lower_{first}": 1.0 - high[:, 0], f"upper_{first}": 1.0 - low[:, 0]}
    for prefix, part in (("", said.corrected), ("public_", said.public)):
        shares = said.shares(part)
        found[f"{prefix}prediction"] = np.array(model.classes)[shares.argmax(axis=1)]
        found |= {f"{prefix}probability_{name}": shares[:, k] for k, name in enumerate(model.classes)}
    return found


def assert_sql_says_the_same(model: Model, raw: np.ndarray, table: str = "data") -> dict:
    """Bit for bit; with a link that takes an exp, within the stated tolerance, and every class the same."""
    wanted = (expected_of_correction if hasattr(model, "base") else expected_of_tree)(model, raw)
    is_exact = not hasattr(model, "base") or model.base.link == "identity"
    with duckdb.connect() as connection:
        connection.register("arriving", table_of(model.encoding, raw))
        connection.execute(f"CREATE TABLE {quote(table)} AS FROM arriving")
        cursor = connection.execute(f"{model.to_sql(table, LEVEL)} ORDER BY row")
        names = [column[0] for column in cursor.description]
        columns = zip(*cursor.fetchall(), strict=True)
        got = {name: np.array(values) for name, values in zip(names, columns, strict=True)}
    assert set(got) == {"row", *model.encoding.columns, *wanted}
    np.testing.assert_array_equal(got["row"], np.arange(len(raw)))
    for name, values in wanted.items():
        if is_exact or values.dtype.kind != "f":
            np.testing.assert_array_equal(got[name], values, err_msg=name)
        else:
            np.testing.assert_allclose(got[name], values, rtol=0, atol=TOLERANCE, err_msg=name)
    return got


TREES = {
    **{f"two classes, {seed}": lambda seed=seed: random_model(seed) for seed in range(4)},
    "three classes": lambda: random_model(4, classes=(1, 2, 3)),
    "names like SQL": lambda: random_model(4, classes=("it's", '"; DROP TABLE data; --', "x\0y")),
    "one cell": lambda: random_model(0, max_depth=0),
    "rows outside are dropped": lambda: random_model(11, with_rules=False, outside="drop"),
    **{f"a number, {seed}": lambda seed=seed: random_regression(seed) for seed in (1, 2)},
    "a number, outside": lambda: random_regression(3, with_rules=False, outside="drop"),
    "a number, default": lambda: random_regression(3, with_rules=False),
}


OUTSIDE = ("rows outside are dropped", "a number, outside", "a number, default")
CORRECTED = [*((kind, 0) for kind in KINDS), ("number", 1), ("two classes, logistic", 1)]


@pytest.mark.parametrize("name", [*TREES, *CORRECTED], ids=str)
def test_sql_says_what_a_model_says_of_every_kind_of_row(name) -> None:
    """Of a corrected model both parts; some rows get the default."""
    model = TREES[name]() if name in TREES else random_corrected(*name)
    raw = rows_of(model, 400, 1) if name in TREES else hard_rows(model, 300, name[1])
    assert_sql_says_the_same(model, raw, 'my "table"; --')
    if name in OUTSIDE or name in CORRECTED:
        assert (model.cells(raw) < 0).any()


def test_numbers_stay_within_the_labels_range_in_every_export() -> None:
    free = random_corrected("number", 1)
    raw = hard_rows(free, 300, 1)
    low, high = np.quantile(free.answers(raw), [0.3, 0.6])
    model = replace(free, label_range=(float(low), float(high)))
    read = read_model(model.to_json())
    assert read.label_range == model.label_range
    for each in (model, read):
        assert_sql_says_the_same(each, raw)
        predicted = dict(each.predict_columns(raw))
        np.testing.assert_array_equal(predicted["prediction"], each.predict_raw(raw))
        for values in predicted.values():
            assert low <= values.min() <= values.max() <= high
    assert (free.predict_raw(raw) > high).mean() > 0.2
    with pytest.raises(DataError, match="label_range"):
        replace(free, label_range=(1.0, 1.0))


def test_sql_of_lpdt_stays_within_its_range_however_large_the_noise() -> None:
    raw = np.random.default_rng(0).random((3000, 2))
    learner = LPDTRegressor(epsilon=1.0, depth=2, label_range=(0.0, 1.0), random_state=0)
    model = learner.fit(raw, np.round(raw[:, 0]), public=np.arange(3000) < 300).model_
    got = assert_sql_says_the_same(model, raw)
    assert all(
        0 <= got[name].min() <= got[name].max() <= 1 for name in ("prediction", "mean_lower", "mean_upper")
    )
    assert np.isin(got["prediction"], (0, 1)).any()


def test_a_cell_without_any_evidence_is_anywhere_in_the_range() -> None:
    model = random_regression(1, n_public=1, fit={"lam": math.inf, "prune": "none"})
    raw = rows_of(model, 200, missing=0.0)
    assert_sql_says_the_same(model, raw)
    low, high = (end[model.nodes(raw), 0] for end in model.interval(LEVEL))
    is_nowhere = np.isinf(model.estimate_sd[:, 0])[model.nodes(raw)]
    assert set(zip(low[is_nowhere], high[is_nowhere], strict=True)) == {(-2.0, 55.5)}


# where a SELECT goes wrong first


def test_values_on_a_threshold_and_next_to_it_go_the_models_way() -> None:
    """One test a row: on the largest raw value that goes left, and on the next larger one."""
    rng = np.random.default_rng(5)
    low, high = -3.7, 91.3
    encoding = Encoding((NumericFeature("x", low, high),))
    stumps = [
        Partition.of([0, -1, -1], [t, 0, 0], [1, -1, -1], [2, -1, -1])
        for t in (*rng.random(40), *rng.random(20).astype(np.float32).astype(float), 0.0, 1.0, 1 / 3)
    ]
    model = corrected(encoding, trees_of(stumps, 1, "identity", rng), stumps[0], (), rng)
    tests = [replace(model, partition=stump).raw_tree.threshold[0] for stump in stumps]
    edges = np.array([edge for edge in tests if np.isfinite(edge)])
    raw = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), [low, high]])
    assert_sql_says_the_same(model, raw[:, None])
    assert len(np.unique(model.answers(raw[:, None]))) > 40


def test_a_range_whose_span_overflows_and_infinite_values() -> None:
    rng = np.random.default_rng(6)
    encoding = Encoding((NumericFeature("x", -1.7e308, 1.7e308), NumericFeature("y", 0.0, 5e-324, fill=0.0)))
    base = trees_of([random_tree(2, 4, rng) for _ in range(9)], 1, "identity", rng)
    model = corrected(encoding, base, random_tree(2, 2, rng), (), rng)
    far = [np.inf, -np.inf, 0.0, 1.7e308, -1.7e308, sys.float_info.max, -0.0]
    x = np.array([*far, *(rng.uniform(-1.7, 1.7, 50) * 1e308)])
    y = rng.choice([np.nan, 0.0, 5e-324, 1.0, np.inf], x.size)
    assert_sql_says_the_same(model, np.stack([x, y], axis=1))


def complete_trees(n_trees: int, depth: int, n_encoded: int, rng: np.random.Generator) -> Ensemble:
    """Trees without a hole, with random tests and values of some seven digits."""
    inner, total = 2**depth - 1, 2 ** (depth + 1) - 1
    ids, start = np.arange(total), np.arange(n_trees)[:, None] * total
    is_inner = np.tile(ids < inner, (n_trees, 1))
    numbers = rng.random((2, n_trees, total)).round(7)
    return Ensemble(
        np.where(is_inner, rng.integers(n_encoded, size=(n_trees, total)), -1).ravel(),
        np.where(is_inner, numbers[0], 0.0).ravel(),
        np.where(is_inner, start + 2 * ids + 1, -1).ravel(),
        np.where(is_inner, start + 2 * ids + 2, -1).ravel(),
        np.where(is_inner, 0.0, numbers[1]).reshape(-1, 1),
        start.ravel(),
        np.array([0.1]),
    )


@pytest.mark.slow
def test_two_hundred_trees_near_four_mebibytes() -> None:
    rng = np.random.default_rng(7)
    encoding = every_kind_of_feature(with_rules=False)
    base = complete_trees(200, 9, encoding.n_encoded, rng)
    model = corrected(encoding, base, random_tree(encoding.n_encoded, 6, rng), (), rng)
    assert 0.9 * 2**22 < base.n_bytes <= 2**22
    assert len(model.to_sql()) < 1.2 * len(model.to_json())
    assert_sql_says_the_same(model, hard_rows(model, 100, 7))


def test_a_public_model_of_one_leaf_and_one_cell() -> None:
    leaf = Ensemble([-1], [0.0], [-1], [-1], [[0.25]], [0], [0.5])
    encoding = random_corrected("number", 1).encoding
    model = corrected(encoding, leaf, Partition.single(), (), np.random.default_rng(0))
    assert_sql_says_the_same(model, hard_rows(model, 50, 2))


def chain_of(n: int, columns: np.ndarray, thresholds: np.ndarray) -> Partition:
    """A tree of n tests, each of which has the next to its right."""
    feature, ids = np.full(2 * n + 1, -1), np.arange(2 * n + 1)
    feature[2 * np.arange(n)] = columns
    is_inner = feature >= 0
    return Partition.of(feature, thresholds, np.where(is_inner, ids + 1, -1), np.where(is_inner, ids + 2, -1))


def test_chains_of_many_tests_can_be_scored() -> None:
    rng = np.random.default_rng(8)
    chain = chain_of(2000, np.zeros(2000, int), rng.random(4001) ** 0.001)
    model = corrected(X, trees_of([chain], 1, "identity", rng), Partition.single(), (), rng)
    assert_sql_says_the_same(model, 1.0 - rng.random((60, 1)) ** 4 * 1e-3)
    encoding = every_kind_of_feature()
    protocol = protocol_of(
        chain_of(120, rng.integers(encoding.n_encoded, size=120), rng.random(241)), encoding
    )
    totals = totals_of(protocol, random_counts(121, 2, 9_000, rng), rng)
    model = fit_model(protocol, totals, random_counts(121, 2, 500, rng))
    assert_sql_says_the_same(model, rows_of(model, 100))


# the tables of others


MODELS = {
    "a number": lambda: random_regression(1),
    "two classes": lambda: random_model(3, max_depth=3),
    "three classes": lambda: random_model(3, max_depth=3, classes=(1, 2, 3), lam="auto", prune="variance"),
    **{
        f"corrected {kind}": lambda kind=kind: random_corrected(kind, 6, n_trees=2, depth=2)
        for kind in ("number", "two classes, one share", "three classes, softmax")
    },
}


@pytest.mark.parametrize("name", MODELS)
def test_columns_named_like_the_querys_own_change_no_answer_and_are_handed_out(name: str) -> None:
    """A column for each inner name of the query, of values that are no answer to anything."""
    model = MODELS[name]()
    query, table = f"{model.to_sql()} ORDER BY row", table_of(model.encoding, rows_of(model, 100, 2))
    new = sorted(set(re.findall(r'"(ldptree [^"]+)"', query)))
    assert "ldptree cell" in new
    more = table
    for column in new:
        more = more.append_column(column, pa.array([-1.0 - i for i in range(table.num_rows)]))
    wanted, got = (duckdb.from_arrow(each).query("data", query).to_arrow_table() for each in (table, more))
    assert got.column_names == [*more.column_names, *wanted.column_names[table.num_columns :]]
    # in words: NaN is no NaN's equal
    assert repr(got.select(new).to_pydict()) == repr(more.select(new).to_pydict())
    assert repr(got.drop_columns(new).to_pydict()) == repr(wanted.to_pydict())


@pytest.mark.parametrize("table", ["typed", "trees", "placed"])
@pytest.mark.parametrize("name", ["a number", "two classes", "corrected number"])
def test_a_table_may_have_any_name(name: str, table: str) -> None:
    model = MODELS[name]()
    assert_sql_says_the_same(model, rows_of(model, 60, 1), table)


def test_features_named_like_the_querys_own_are_read_as_themselves() -> None:
    model = random_model(3)
    raw = rows_of(model, 200, 3)
    wanted = duckdb.from_arrow(table_of(model.encoding, raw)).query("data", model.to_sql()).fetchall()
    names = {column: f"ldptree {j}" for j, column in enumerate(reversed(model.encoding.columns))}
    names[model.encoding.columns[0]] = "LDPTREE Cell"
    renamed = tuple(replace(f, column=names[f.column]) for f in model.encoding.features)
    other = replace(model, encoding=Encoding(renamed))
    table = table_of(other.encoding, raw)
    assert repr(duckdb.from_arrow(table).query("data", other.to_sql()).fetchall()) == repr(wanted)


@pytest.mark.parametrize("classes", [(0, 1), (False, True), (0.5, 1.5), (1, "two")])
def test_labels_keep_their_type(classes: tuple) -> None:
    model = random_model(5, classes=classes)
    table = table_of(model.encoding, rows_of(model, 50, 5))
    found = {
        row[0]
        for row in duckdb.from_arrow(table).query("data", model.to_sql()).project("prediction").fetchall()
    }
    expected = set(classes) if classes != (1, "two") else {"1", "two"}
    assert found <= expected
    assert {type(v) for v in found} <= {type(v) for v in expected}


@pytest.mark.parametrize("seed", range(2))
def test_columns_of_other_types_are_read_by_predict_as_by_sql(seed: int) -> None:
    model = random_model(seed)
    raw = rows_of(model, 200, seed)
    raw = np.where(np.isinf(raw), 1.5, raw)  # which is no number where a text is read
    table = table_of(model.encoding, raw)
    shared = [None if one is None else ("no", "YES")[one] for one in table.column("shared").to_pylist()]
    others = {
        "shared": pa.array(shared),
        "area": table.column("area").cast(pa.float64()).cast(pa.string()),
        "company": table.column("company").dictionary_encode(),
        "fare": pa.array([None if v is None or v != v else str(v) for v in table.column("fare").to_pylist()]),
        "rate": table.column("rate").cast(pa.float32()),
    }
    for name, column in others.items():
        table = table.set_column(table.column_names.index(name), name, column)
    query = f"SELECT prediction FROM ({model.to_sql()}) ORDER BY row"
    said = [row[0] for row in duckdb.from_arrow(table).query("data", query).fetchall()]
    read = read_matrix(model, table)
    assert said == [model.classes[k] for k in model.predict(read)]
    np.testing.assert_array_equal(read, raw)


@pytest.mark.parametrize("kind", ["VARCHAR", "ENUM('1_000', '2')"])
@pytest.mark.parametrize("text", ["1_000", "2"])
def test_a_text_with_an_underscore_is_no_number(kind: str, text: str) -> None:
    feature = NumericFeature("miles", 0.0, 9.0)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE data AS SELECT CAST('{text}' AS {kind}) AS miles")
        query = f"SELECT {typed_value(feature, 'miles')} FROM data"
        if text == "2":
            assert connection.execute(query).fetchall() == [(2.0,)]
        else:
            with pytest.raises(duckdb.Error, match="no number") as fault:
                connection.execute(query)
            assert text not in str(fault.value)


@pytest.mark.parametrize(
    "value", [0.1, -1e-300, 5e-324, 1.7976931348623157e308, 1 / 3, -0.0, math.inf, -math.inf, 3.0]
)
def test_numbers_arrive_bit_for_bit(value: float) -> None:
    (got,) = duckdb.connect().execute(f"SELECT {literal(value)}").fetchone()
    assert isinstance(got, float)
    assert (got, math.copysign(1, got)) == (value, math.copysign(1, value))


def test_columns_that_nothing_needs_may_be_absent() -> None:
    rng, encoding = np.random.default_rng(9), every_kind_of_feature()
    stump = Partition.of([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1])
    both = corrected(encoding, trees_of([stump], 1, "identity", rng), Partition.single(), (), rng)
    assert both.columns_needed == ("fare",)
    for model in (both, random_model(2, max_depth=1)):
        (needed,) = model.columns_needed
        feature = encoding.features[encoding.columns.index(needed)]
        value = 12.5 if isinstance(feature, NumericFeature) else feature.levels[0]
        query = model.to_sql().replace('FROM "data"', f"FROM (SELECT {literal(value)} AS {quote(needed)})")
        assert len(duckdb.connect().execute(query).fetchall()) == 1


# pictures


@pytest.mark.parametrize("name", [*MODELS, "odd names"])
def test_a_drawn_tree_is_whole_whatever_the_names(name: str) -> None:
    model = random_model(4, classes=('a "b"', "c\\d", "e\nf")) if name == "odd names" else MODELS[name]()
    text, tree = model.to_dot(), model.partition
    assert len(re.findall(r"^  \d+ \[label=", text, re.M)) == tree.n_nodes
    assert len(re.findall(r"^  \d+ -> \d+ ", text, re.M)) == tree.n_nodes - 1
    for line in text.splitlines()[3:-1]:
        assert re.fullmatch(r'  \d+ (-> \d+ )?\[label="([^"\\]|\\.)*"(, style=rounded)?\];', line), line
    if dot := shutil.which("dot"):
        subprocess.run([dot, "-Tsvg"], check=True, input=text, text=True, capture_output=True)


@pytest.mark.parametrize("name", [*MODELS, "odd names"])
def test_a_notebook_is_shown_the_tree_and_nothing_that_acts(name: str) -> None:
    """One line and a picture that is well-formed whatever the names: each end has its cell's text, each branch its condition."""
    odd = ("</svg><script>alert(1)</script>", "c & d", "e\nf")
    model = random_model(4, max_depth=3, classes=odd) if name == "odd names" else MODELS[name]()
    shown = ElementTree.fromstring(f"<div>{model._repr_html_()}</div>")
    assert shown.find("p").text == str(model)
    texts = [title.text for title in shown.findall(".//text/title")]
    assert "95% intervals" in model._repr_html_() or hasattr(model, "corrections")  # 2 sd, as on a page
    tree = model.partition
    assert {one.tag for one in shown.iter()} <= {"div", "p", "svg", "title", "path", "text"}
    if tree.n_leaves <= MOST_ENDS:
        assert len(texts) == tree.n_leaves + tree.n_nodes - 1
    else:
        cut = [int(text.split()[0]) for text in texts if re.fullmatch(r"\d+ cells", text)]
        assert cut
        assert len(texts) < 2 * (tree.n_nodes - 1)
    if name == "odd names":
        assert any("<script>" in text for text in texts)


@pytest.mark.parametrize(
    ("column", "threshold", "said"),
    [("miles", 0.5, "miles <= 8"), ("company = Sun", 0.5, "company is not Sun")],
)
def test_a_drawn_tree_says_what_a_row_must_meet_and_what_its_cell_says(column, threshold, said) -> None:
    encoding = Encoding(
        (NumericFeature("miles", 0.0, 16.0, fill=9.0), CategoricalFeature("company", ("Sun", "Blue"), fill=0))
    )
    at = encoding.names.index(column)
    tree = Partition.of([at, -1, -1], [threshold, 0.0, 0.0], [1, -1, -1], [2, -1, -1])
    model = random_regression(1, encoding=encoding, partition=tree)
    lines = model.to_dot().splitlines()
    for line in (f'  0 [label="{said}"];', '  0 -> 1 [label="yes"];', '  0 -> 2 [label="no"];'):
        assert line in lines
    assert any(f"the fare = {model.estimate[1, 0]:.5g}" in line for line in lines if line.startswith("  1 "))


def test_an_end_of_a_tree_of_classes_says_what_is_predicted_and_how_likely_it_is() -> None:
    model = random_model(1, classes=("card", "cash"))
    node = int(model.partition.leaves[0])
    name, chance = ("card", "cash")[model.decision[node]], model.probability[node, model.decision[node]]
    assert labels_of(model)[node].startswith(f"predicts {name}\\nchance {chance:.3f} (")


def labels_of(model: Model) -> dict[int, str]:
    found = re.findall(r'^  (\d+) \[label="((?:[^"\\]|\\.)*)"', model.to_dot(), re.M)
    return {int(node): label for node, label in found}


def test_the_picture_of_a_corrected_model_is_the_tree_of_corrections() -> None:
    model = random_corrected("number", 8)
    found, tree, shown = model.corrections, model.partition, labels_of(model)
    assert tree.n_leaves > 3
    for cell, node in enumerate(tree.leaves):
        c, sd, share = found.correction[cell, 0], found.sd[cell, 0], found.share[cell]
        below, above = found.hidden[:, cell, 0]
        if max(below, above) <= 0.2 * sd:
            within = f"± {2 * sd + max(below, above):.2g}"
        else:
            within = f"({c - 2 * sd - below:+.3g} to {c + 2 * sd + above:+.3g})"
        expected = f"paid {c:+.3g} {within}" if c or sd else "paid: no correction"
        assert shown[int(node)] == f"{expected}\\n{share:.1%} of people"
    assert "± 2 standard deviations; its public model of 7 trees" in model.to_dot().splitlines()[0]
    assert (
        "± 2 standard deviations; ends in brackets hold what clipping may hide, too." in model._repr_html_()
    )
    assert "± 2 standard deviations." in random_corrected("two classes, one share", 8)._repr_html_()
    one = random_corrected("number", 8, n_trees=1)
    assert "public model of 1 tree is not drawn" in one.to_dot().splitlines()[0]
    assert "a public model of 1 tree, corrected" in one.to_sql().splitlines()[0]
    none = np.zeros_like(found.correction)
    silent = labels_of(replace(model, corrections=replace(found, correction=none, sd=none)))
    assert all("no correction" in silent[int(node)] for node in tree.leaves)


def test_each_class_has_a_line_and_of_two_the_positive_one() -> None:
    three, two = (random_corrected(f"{kind} classes, softmax", 8) for kind in ("three", "two"))
    for model, names in ((three, ("bus", "taxi", "it's")), (two, ("yes",))):
        (*lines, share) = labels_of(model)[int(model.partition.leaves[0])].split("\\n")
        assert [re.match(r'share of \\"(.+?)\\"', line)[1] for line in lines] == list(names)
        assert share.endswith("% of people")


@pytest.mark.parametrize("name", ["two classes", "a number", "corrected number"])
def test_a_level_that_is_none_is_refused(name: str) -> None:
    model = MODELS[name]()
    with pytest.raises(ConfigError, match="level"):
        model.to_sql(level=1.0)
    if not name.startswith("corrected"):  # which draws no interval
        with pytest.raises(ConfigError):
            model.to_dot(level=1.5)

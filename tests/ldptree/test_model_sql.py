"""The exported SELECT answers every row as the model does."""

from __future__ import annotations

import math
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from example_models import (
    every_kind_of_feature,
    protocol_of,
    random_counts,
    random_model,
    random_rows,
    table_of,
    totals_of,
)

from ldptree.encoding import Encoding, NumericFeature
from ldptree.families.fit_classes import fit_model
from ldptree.models.export.sql import literal, quote, to_sql, typed_value
from ldptree.models.tree import ClassTree
from ldptree.partition.tree import Partition
from storage import foreign_tables


def fill(model: ClassTree, raw: np.ndarray, connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Put the raw rows into a table."""
    connection.register("arriving", table_of(model.encoding, raw))
    connection.execute(f"CREATE TABLE {quote(table)} AS FROM arriving")


def assert_sql_equals_predict(model: ClassTree, seed: int, table: str = "data", missing: float = 0.1) -> None:
    raw = random_rows(model.encoding, 400, np.random.default_rng(seed), missing)
    # A truth value knows no third level: it is missing or listed.
    shared = model.encoding.columns.index("shared")
    raw[raw[:, shared] < 0, shared] = np.nan
    connection = duckdb.connect()
    fill(model, raw, connection, table)
    cursor = connection.execute(to_sql(model, table, level=0.8) + " ORDER BY row")
    names = [column[0] for column in cursor.description]
    got = {
        name: list(values) for name, values in zip(names, zip(*cursor.fetchall(), strict=True), strict=True)
    }
    assert got["row"] == list(range(400))
    assert got["prediction"] == [model.classes[k] for k in model.predict(raw)]
    nodes = model.nodes(raw)
    low, high = model.interval(0.8)
    for k, name in enumerate(model.classes):
        np.testing.assert_array_equal(got[f"probability_{name}"], model.predict_proba(raw)[:, k])
        np.testing.assert_array_equal(got[f"lower_{name}"], low[nodes, k])
        np.testing.assert_array_equal(got[f"upper_{name}"], high[nodes, k])
    assert not [name for name in names if name.startswith("ldptree")]


@pytest.mark.parametrize("seed", range(8))
def test_sql_equals_predict_on_random_trees(seed: int) -> None:
    assert_sql_equals_predict(random_model(seed), seed)


@pytest.mark.parametrize("outside", ["clip", "drop"])
def test_rows_that_cannot_be_placed_get_the_default_in_sql_too(outside: str) -> None:
    model = random_model(11, with_rules=False, outside=outside)
    assert_sql_equals_predict(model, 11)
    assert (model.cells(random_rows(model.encoding, 400, np.random.default_rng(11))) < 0).any()


def test_features_named_like_the_querys_own_are_read_as_themselves() -> None:
    model = random_model(3)
    raw = random_rows(model.encoding, 200, np.random.default_rng(3))
    wanted = duckdb.from_arrow(table_of(model.encoding, raw)).query("data", to_sql(model)).fetchall()
    names = {column: f"ldptree {j}" for j, column in enumerate(reversed(model.encoding.columns))}
    names[model.encoding.columns[0]] = "LDPTREE Cell"
    renamed = tuple(replace(f, column=names[f.column]) for f in model.encoding.features)
    other = replace(model, encoding=Encoding(renamed))
    table = table_of(other.encoding, raw)
    assert repr(duckdb.from_arrow(table).query("data", to_sql(other)).fetchall()) == repr(wanted)


def test_names_and_labels_that_look_like_sql_are_only_text() -> None:
    model = random_model(4, classes=("it's", '"; DROP TABLE data; --', "x\0y"))
    assert_sql_equals_predict(model, 4, table='my "table"; --')


@pytest.mark.parametrize("classes", [(0, 1), (False, True), (0.5, 1.5), (1, "two")])
def test_labels_keep_their_type(classes: tuple) -> None:
    model = random_model(5, classes=classes)
    connection = duckdb.connect()
    fill(model, random_rows(model.encoding, 50, np.random.default_rng(5)), connection, "data")
    found = {row[0] for row in connection.execute(f"SELECT prediction FROM ({to_sql(model)})").fetchall()}
    expected = set(classes) if classes != (1, "two") else {"1", "two"}
    assert found <= expected
    assert {type(v) for v in found} <= {type(v) for v in expected}


@pytest.mark.parametrize("seed", range(3))
def test_columns_of_other_types_are_read_by_predict_as_by_sql(seed: int) -> None:
    model = random_model(seed)
    raw = random_rows(model.encoding, 200, np.random.default_rng(seed))
    table = table_of(model.encoding, raw)
    shared = [None if one is None else ("no", "YES")[one] for one in table.column("shared").to_pylist()]
    others = {
        "shared": pa.array(shared),
        "area": table.column("area").cast(pa.float64()).cast(pa.string()),
        "company": table.column("company").dictionary_encode(),
        "fare": table.column("fare").cast(pa.string()),
        "rate": table.column("rate").cast(pa.float32()),
    }
    for name, column in others.items():
        table = table.set_column(table.column_names.index(name), name, column)
    query = f"SELECT prediction FROM ({to_sql(model)}) ORDER BY row"
    said = [row[0] for row in duckdb.from_arrow(table).query("data", query).fetchall()]
    read = foreign_tables.raw_matrix(table, model.encoding)
    assert said == [model.classes[k] for k in model.predict(read)]
    raw[raw[:, 5] < 0, 5] = np.nan  # a truth value knows no third level
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


def test_a_tree_of_one_cell_can_be_scored() -> None:
    assert_sql_equals_predict(random_model(0, max_depth=0), 0)


def test_a_chain_of_120_tests_can_be_scored() -> None:
    rng = np.random.default_rng(1)
    encoding = every_kind_of_feature()
    inner = np.arange(120)
    feature = np.full(241, -1)
    feature[2 * inner] = rng.integers(encoding.n_encoded, size=120)
    children = np.where(feature >= 0, np.arange(241), -1)
    chain = Partition.of(
        feature,
        rng.random(241),
        np.where(children >= 0, children + 1, -1),
        np.where(children >= 0, children + 2, -1),
    )
    protocol = protocol_of(chain, encoding)
    totals = totals_of(protocol, random_counts(121, 2, 9_000, rng), rng)
    assert_sql_equals_predict(fit_model(protocol, totals, random_counts(121, 2, 500, rng)), 1)


@pytest.mark.parametrize(
    "value", [0.1, -1e-300, 5e-324, 1.7976931348623157e308, 1 / 3, -0.0, math.inf, -math.inf, 3.0]
)
def test_numbers_arrive_bit_for_bit(value: float) -> None:
    (got,) = duckdb.connect().execute(f"SELECT {literal(value)}").fetchone()
    assert isinstance(got, float)
    assert (got, math.copysign(1, got)) == (value, math.copysign(1, value))


def test_columns_that_no_test_needs_may_be_absent() -> None:
    model = random_model(2, max_depth=1)
    (needed,) = model.columns_needed
    feature = model.encoding.features[model.encoding.columns.index(needed)]
    value = 1.0 if isinstance(feature, NumericFeature) else feature.levels[0]
    query = to_sql(model).replace('FROM "data"', f"FROM (SELECT {literal(value)} AS {quote(needed)})")
    assert len(duckdb.connect().execute(query).fetchall()) == 1

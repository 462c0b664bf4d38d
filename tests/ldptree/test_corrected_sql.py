"""The exported SELECT gives both parts of a corrected model's answer to every row, as the model does."""

from __future__ import annotations

import sys
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from corrected_examples import KINDS, corrected, hard_rows, random_corrected, trees_of
from example_models import every_kind_of_feature, random_tree, table_of

from ldptree.encoding import Encoding, NumericFeature
from ldptree.models.corrected import CorrectedModel, shares_of
from ldptree.models.ensemble import Ensemble
from ldptree.models.export.corrected_sql import TOLERANCE, to_sql
from ldptree.models.export.sql import quote
from ldptree.partition.tree import Partition
from ldptree.public_models.model import n_bytes


def scored(model: CorrectedModel, raw: np.ndarray, table: str = "data", level: float = 0.9) -> dict:
    """The columns that DuckDB gives for raw rows, in their order."""
    connection = duckdb.connect()
    connection.register("arriving", table_of(model.encoding, raw))
    connection.execute(f"CREATE TABLE {quote(table)} AS FROM arriving")
    cursor = connection.execute(f"{to_sql(model, table, level)} ORDER BY row")
    names = [column[0] for column in cursor.description]
    columns = zip(*cursor.fetchall(), strict=True)
    return {name: np.array(values) for name, values in zip(names, columns, strict=True)}


def expected(model: CorrectedModel, raw: np.ndarray, level: float = 0.9) -> dict:
    """The same columns, as the model says them."""
    said, (low, high) = model.predict_parts(raw), model.interval(raw, level)
    if not model.classes:
        columns = [said.corrected, low, high, said.public, said.correction, said.sd]
        names = ("prediction", "lower", "upper", "public_prediction", "correction", "correction_sd")
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
        shares = shares_of(part)
        found[f"{prefix}prediction"] = np.array(model.classes)[shares.argmax(axis=1)]
        found |= {f"{prefix}probability_{name}": shares[:, k] for k, name in enumerate(model.classes)}
    return found


def assert_equal(model: CorrectedModel, raw: np.ndarray, table: str = "data", level: float = 0.9) -> None:
    """Bit for bit; with a link that takes an exp, within the stated tolerance, and every class the same."""
    got, wanted = scored(model, raw, table, level), expected(model, raw, level)
    assert set(got) == {"row", *model.encoding.columns, *wanted}
    np.testing.assert_array_equal(got["row"], np.arange(len(raw)))
    for name, values in wanted.items():
        if model.base.link == "identity" or values.dtype.kind != "f":
            np.testing.assert_array_equal(got[name], values, err_msg=name)
        else:
            np.testing.assert_allclose(got[name], values, rtol=0, atol=TOLERANCE, err_msg=name)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_both_parts_are_the_models_on_every_kind_of_row(kind: str, seed: int) -> None:
    model = random_corrected(kind, seed)
    raw = hard_rows(model, 300, seed)
    assert (model.cells(raw) < 0).any()  # some rows get the default
    assert_equal(model, raw, level=0.8)


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
    assert_equal(model, raw[:, None])
    assert len(np.unique(model.answers(raw[:, None]))) > 40


def test_a_range_whose_span_overflows_and_infinite_values() -> None:
    rng = np.random.default_rng(6)
    encoding = Encoding((NumericFeature("x", -1.7e308, 1.7e308), NumericFeature("y", 0.0, 5e-324, fill=0.0)))
    partitions = [random_tree(2, 4, rng) for _ in range(9)]
    base = trees_of(partitions, 1, "identity", rng)
    model = corrected(encoding, base, random_tree(2, 2, rng), (), rng)
    x = [
        np.inf,
        -np.inf,
        0.0,
        1.7e308,
        -1.7e308,
        sys.float_info.max,
        -0.0,
        *(rng.uniform(-1.7, 1.7, 50) * 1e308),
    ]
    raw = np.stack([x, rng.choice([np.nan, 0.0, 5e-324, 1.0, np.inf], len(x))], axis=1)
    assert_equal(model, raw)


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


def test_two_hundred_trees_near_four_mebibytes() -> None:
    rng = np.random.default_rng(7)
    encoding = every_kind_of_feature(with_rules=False)
    base = complete_trees(200, 9, encoding.n_encoded, rng)
    model = corrected(encoding, base, random_tree(encoding.n_encoded, 6, rng), (), rng)
    assert 0.9 * 2**22 < n_bytes(base) <= 2**22
    assert len(to_sql(model)) < 1.2 * len(model.to_json())
    assert_equal(model, hard_rows(model, 500, 7))


def test_a_public_model_of_one_leaf_and_one_cell() -> None:
    leaf = Ensemble([-1], [0.0], [-1], [-1], [[0.25]], [0], [0.5])
    model = replace(random_corrected("number", 1), base=leaf)
    model = corrected(model.encoding, leaf, Partition.single(), (), np.random.default_rng(0))
    assert_equal(model, hard_rows(model, 50, 2))


def test_a_chain_of_2000_tests() -> None:
    rng = np.random.default_rng(8)
    inner, n = np.arange(2000), 4001
    feature = np.full(n, -1)
    feature[2 * inner] = 0
    ids = np.arange(n)
    chain = Partition.of(
        feature,
        rng.random(n) ** 0.001,
        np.where(feature == 0, ids + 1, -1),
        np.where(feature == 0, ids + 2, -1),
    )
    encoding = Encoding((NumericFeature("x", 0.0, 1.0),))
    base = trees_of([chain], 1, "identity", rng)
    model = corrected(encoding, base, Partition.single(), (), rng)
    assert_equal(model, 1.0 - rng.random((60, 1)) ** 4 * 1e-3)


def test_columns_that_nothing_needs_may_be_absent() -> None:
    stump = Partition.of([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1])
    rng = np.random.default_rng(9)
    encoding = every_kind_of_feature()
    model = corrected(encoding, trees_of([stump], 1, "identity", rng), Partition.single(), (), rng)
    assert model.columns_needed == ("fare",)
    query = to_sql(model).replace('FROM "data"', 'FROM (SELECT 12.5e0 AS "fare")')
    assert len(duckdb.connect().execute(query).fetchall()) == 1

"""The encoding comes from public rows and the specification, and a tree in raw units finds the cells of the scaled one."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from chain import NEW_PEOPLE, Chain, rides, rides_config
from first_fast import first_fast

from ldptree.encoding import CategoricalFeature, NumericFeature
from ldptree.errors import ConfigError, DataError
from schemas.config import load
from schemas.dataset import DatasetSpec
from storage import tables
from storage.store import Store
from tasks.artifacts import read_encoding, read_protocol, read_scaled
from tasks.data import scale
from tasks.data.scale import classes_of, encoding_of
from tasks.report import read_facts


def spec(**changes):
    fields = {"name": "m", "path": "m.csv", "target": "paid", "public": "random 0.5", "fill": "level"}
    return DatasetSpec.model_validate(fields | changes)


def public_raw(chain):
    """Raw matrix of the public rows that can be used, as scale sees them."""
    paths = [p for p in chain.store.files(chain.ingested["public"]) if p.suffix == ".parquet"]
    rows = tables.read(paths)
    protocol = read_protocol(chain.store, chain.protocol)
    raw = tables.raw_matrix(rows, protocol.encoding)
    labels = tables.label_codes(rows.column(protocol.target), protocol.label_classes)
    return raw[protocol.encoding.encodable(raw) & (labels >= 0)]


def check_cells(chain):
    """Every public row has the same cell on raw values, on encoded values, and in the artifact of scaled rows."""
    protocol = read_protocol(chain.store, chain.protocol)
    raw = public_raw(chain)
    X, _ = read_scaled(chain.store, chain.scaled["scaled"])
    np.testing.assert_array_equal(protocol.encoding.encode(raw), X)
    cells = protocol.partition.apply(X)
    np.testing.assert_array_equal(protocol.raw_tree.apply(raw), cells)
    used = protocol.columns_needed
    some = raw[:, [protocol.encoding.columns.index(name) for name in used]]
    np.testing.assert_array_equal(protocol.raw_tree.apply(some, used), cells)
    assert len(np.unique(cells)) > 1
    on_thresholds = np.concatenate([raw[:50], *_on_thresholds(protocol.raw_tree, raw[:50])])
    np.testing.assert_array_equal(
        protocol.raw_tree.apply(on_thresholds),
        protocol.partition.apply(protocol.encoding.encode(on_thresholds)),
    )
    return len(raw)


def _on_thresholds(tree, raw):
    """The rows moved onto each numeric threshold, and just above it."""
    for column, level, threshold in zip(tree.column, tree.level, tree.threshold, strict=True):
        if column >= 0 and level < 0 and np.isfinite(threshold):
            for value in (threshold, np.nextafter(threshold, np.inf)):
                moved = raw.copy()
                moved[:, column] = value
                yield moved


def test_so_many_public_rows_are_learned_from_at_most_and_ranges_are_of_all(store, tmp_path, monkeypatch):
    path = rides(tmp_path / "a.csv", 600, 1)
    everything = Chain(store, rides_config(path))
    monkeypatch.setattr(scale, "MOST_PUBLIC", 50)
    some = Chain(Store(tmp_path / "other"), rides_config(path))
    X, y = read_scaled(some.store, some.scaled["scaled"])
    assert (len(X), len(y), len(np.unique(X, axis=0))) == (50, 50, 50)
    facts = some.scaled.facts
    assert (facts["n_public"], facts["n_not_drawn"]) == (50, 150)
    first, second = (read_encoding(chain.store, chain.scaled["encoding"])[0] for chain in (everything, some))
    assert first == second
    said = [
        text
        for text in read_facts(some.store, some.page["page"]).warnings
        if text.startswith("Not all public rows")
    ]
    assert said == ["Not all public rows are learned from. Of 200 that could be, 50 were drawn."]


def test_cells_of_raw_and_scaled_public_rows_agree_in_the_quickstart(trips):
    assert check_cells(trips) == trips.scaled.facts["n_public"]


@pytest.mark.parametrize("name", first_fast("chicago", "census"))
def test_cells_of_raw_and_scaled_public_rows_agree_in_the_real_data(name, data_home, tmp_path):
    chain = Chain(Store(tmp_path / "work"), load(name, ["model.estimator=lpct"]))
    assert check_cells(chain) > 1000


@pytest.mark.parametrize("partition", ["cart", "max-edge"])
def test_cells_of_raw_and_scaled_public_rows_agree_with_all_93_features(partition, tmp_path):
    config = load("taxi", ["dataset.rows=20000", f"model.partition={partition}", "model.depth=8"])
    chain = Chain(Store(tmp_path / "work"), config)
    assert chain.scaled.facts["n_features"] == 93
    assert check_cells(chain) > 500


@pytest.mark.parametrize("missing", ["drop", "median", "level"])
def test_cells_agree_with_values_missing_under_every_rule(missing, store, tmp_path):
    rng = np.random.default_rng(0)
    miles = np.where(rng.random(600) < 0.2, "", rng.gamma(2, 3, 600).round(2).astype(str))
    firm = np.where(rng.random(600) < 0.2, "NA", rng.choice(["ash", "birch"], 600))
    path = rides(tmp_path / "a.csv", 600, 1, miles=miles, firm=firm)
    for partition in ("max-edge", "cart"):
        model = {"partition": partition, "depth": 5}
        chain = Chain(store, rides_config(path, dataset={"fill": missing}, model=model))
        n = check_cells(chain)
    assert n == 200 if missing != "drop" else n < 180
    assert chain.scaled.facts["n_unusable"] == 200 - n


def test_only_public_rows_are_ever_written_out_scaled(trips):
    scaled = trips.scaled["scaled"]
    assert scaled.zone == "public"
    assert scaled.rows == trips.scaled.facts["n_public"] == trips.ingested["public"].rows
    encoding = trips.scaled["encoding"]
    assert encoding.zone == "curator"
    content = json.loads(trips.store.file(encoding, "encoding.json").read_text())
    assert content.keys() == {"format", "encoding", "classes"}


def test_the_positive_class_is_the_second_and_the_others_keep_their_order():
    labels = pa.chunked_array([["c", "a", "b", None]])
    assert classes_of(labels, spec()) == ("a", "b", "c")
    assert classes_of(labels, spec(positive="a")) == ("b", "a", "c")
    assert classes_of(labels, spec(classes=["x", "y"], positive="x")) == ("y", "x")
    numbers = pa.chunked_array([pa.array([0, 1], pa.int8())])
    assert classes_of(numbers, spec(positive=1)) == classes_of(numbers, spec(positive="1")) == (0, 1)


def test_a_target_that_nothing_can_be_learned_of_is_refused():
    with pytest.raises(DataError, match=r"one value only: 'a'"):
        classes_of(pa.chunked_array([["a", "a", None]]), spec())
    with pytest.raises(DataError, match="no value"):
        classes_of(pa.chunked_array([pa.array([None], pa.string())]), spec())
    with pytest.raises(DataError, match="1,500 different values in 1,500 public rows"):
        classes_of(pa.chunked_array([pa.array(range(1500))]), spec())
    for labels in (
        [f"trip {n}" for n in range(40)],
        [n / 7 for n in range(30)] + [0.5] * 20,
        [*range(101)] * 9,
    ):
        with pytest.raises(DataError, match=r"too many classes .*declare dataset\.classes"):
            classes_of(pa.chunked_array([pa.array(labels)]), spec())
    assert len(classes_of(pa.chunked_array([pa.array([*range(100)] * 2)]), spec())) == 100
    with pytest.raises(ConfigError, match=r"dataset\.positive: 'z' is not a label of public rows \(a, b\)"):
        classes_of(pa.chunked_array([["a", "b"]]), spec(positive="z"))


def test_texts_truths_and_declared_columns_are_categories_and_the_rest_numbers():
    public = pa.table(
        {
            "fare": [1.0, 3.0, None],
            "hour": pa.array([1, 2, 3], pa.int8()),
            "firm": ["b", "a", "b"],
            "shared": [True, False, None],
            "area": pa.array([8, 32, 8], pa.int16()),
            "zip": pa.array([1, 2, 3], pa.int64()),
        }
    )
    declared = spec(categorical=["area"], levels={"zip": [9, 1]})
    made = {f.column: f for f in encoding_of(public, public.column_names, declared).features}
    assert (made["fare"].minimum, made["fare"].maximum, made["fare"].fill) == (1.0, 3.0, 2.0)
    assert isinstance(made["hour"], NumericFeature)
    levels = {name: f.levels for name, f in made.items() if isinstance(f, CategoricalFeature)}
    assert levels == {"firm": ("a", "b"), "shared": (False, True), "area": (8, 32), "zip": (9, 1)}


def test_a_column_that_cannot_be_encoded_is_refused_by_name():
    rows = pa.table({"fare": pa.array([None, None], pa.float64()), "who": ["a", "b"]})
    with pytest.raises(DataError, match=r'column "fare": every public value is missing'):
        encoding_of(rows, ["fare"], spec())
    names = pa.table({"who": [f"p{i}" for i in range(1001)]})
    with pytest.raises(DataError, match=r'column "who": 101 different texts .*dataset\.categorical'):
        encoding_of(names.slice(0, 101), ["who"], spec())
    for declared in (spec(categorical=["who"]), spec(types={"who": "text"})):
        assert len(encoding_of(names.slice(0, 1000), ["who"], declared).features[0].levels) == 1000
        with pytest.raises(DataError, match=r'column "who": 1,001 different values .*at most 1,000'):
            encoding_of(names, ["who"], declared)
    with pytest.raises(ConfigError, match=r'those of "n" do not fit its type'):
        encoding_of(pa.table({"n": [1, 2]}), ["n"], spec(levels={"n": ["a", "b"]}))


@pytest.mark.parametrize("end", ["", " 08:30:00", "T08:30:00Z"])
def test_dates_are_no_features_unless_they_are_declared(end):
    days = [f"2025-{1 + i // 28:02}-{1 + i % 28:02}{end}" for i in range(40)]
    rows = pa.table({"when": days})
    with pytest.raises(DataError, match=r'column "when": dates, as in .*each would be a feature.*month\('):
        encoding_of(rows, ["when"], spec())
    for declared in (spec(categorical=["when"]), spec(levels={"when": days})):
        assert len(encoding_of(rows, ["when"], declared).features[0].levels) == 40


def test_public_rows_that_are_all_unusable_are_refused(store, tmp_path):
    """Every public row misses one of two features, and none is missing in all."""
    lacking = {
        "miles": ["" if i % 2 else "1.5" for i in range(90)],
        "hour": ["7" if i % 2 else "" for i in range(90)],
    }
    path = rides(tmp_path / "a.csv", 90, 1, **lacking)
    chain = Chain(store, rides_config(path, dataset={"fill": "drop"}))
    with pytest.raises(DataError, match="no public row has a label and all features"):
        assert chain.scaled
    assert not list(store.zone("public").glob("scale/*"))


def test_in_a_campaign_columns_are_looked_at_once(store, tmp_path):
    """A later week's public rows may look otherwise: what the first week left out stays out, what it learned from stays in."""
    first = rides(tmp_path / "a.csv", 300, 1, day=[f"{i % 9}" for i in range(300)])
    config = {"campaign": {"name": "rides"}, "dataset": NEW_PEOPLE | {"drop": []}}
    one = Chain(store, rides_config(first, **config))
    assert one.spent
    assert one.ingested.facts["columns_left_out"].keys() == {"person"}
    later = {
        "person": ["ann", "bob"] * 150,
        "day": [str(1000 + i) for i in range(300)],
        "firm": [f"${i}.5" for i in range(300)],
    }
    two = Chain(store, rides_config(first, rides(tmp_path / "b.csv", 300, 2, **later), **config))
    columns = ("miles", "hour", "firm", "day")
    assert read_encoding(store, two.scaled["encoding"])[0].columns == columns
    assert read_encoding(store, two.scaled["encoding"]) == read_encoding(store, one.scaled["encoding"])
    assert two.held.facts["n_private"] > one.held.facts["n_private"]
    assert two.totals

"""Public rows alone decide whether a label is a class or a number, and it is said; a label that is neither counts as outside."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from chain import Chain, fares, fares_config, learned, mended, published, rides, rides_config

from ldptree.errors import DataError
from storage import tables
from storage.store import Store
from tasks.artifacts import read_totals


@pytest.fixture
def run(tmp_path):
    """Columns to replace or a file, and changes of the configuration, to a run on 600 rides, or with make=fares_config fares."""

    def run(name="work", columns=None, path=None, make=rides_config, **changes):
        write = rides if make is rides_config else fares
        path = path or write(tmp_path / "a.csv", 600, 2, **(columns or {}))
        return Chain(Store(tmp_path / name), mended(make, path, **changes))

    return run


TOLD = {
    "text": (lambda n: np.where(np.arange(n) % 2, "card", "cash"), "class"),
    "0 and 1": (lambda n: np.arange(n) % 2, "class"),
    "0.0 and 1.0": (lambda n: np.arange(n) % 2 * 1.0, "class"),
    "true and false": (lambda n: np.where(np.arange(n) % 2, "true", "false"), "class"),
    "ten whole values": (lambda n: np.arange(n) % 10, "class"),
    "eleven whole values": (lambda n: np.arange(n) % 11, "number"),
    "halves": (lambda n: np.arange(n) % 4 / 2, "number"),
}


@pytest.mark.parametrize("kind", TOLD)
def test_a_label_is_a_class_where_public_rows_have_few_whole_values_or_texts_of_it(run, kind):
    make, label = TOLD[kind]
    chain = run(columns={"paid": make(600)}, dataset={"positive": None})
    assert chain.ingested.facts["label"] == label
    assert chain.terms.config.label == label
    assert bool(chain.scaled.facts.get("classes")) == (label == "class")


def test_no_private_row_decides_what_a_label_is(run):
    """Of three rows one is public; what the other two hold would make it a number, or a text."""
    paid = np.where(np.arange(600) % 3 == 0, np.arange(600) // 3 % 2, np.arange(600) / 7)
    chain = run(
        columns={"paid": paid},
        dataset={"positive": None, "on_bad_rows": "quarantine"},
    )
    assert chain.ingested.facts["label"] == "class"


@pytest.mark.parametrize("label", ["class", "number"])
def test_a_label_whose_kind_is_stated_is_of_that_kind(run, label):
    chain = run(
        make=rides_config, columns={"paid": np.arange(600) % 5}, dataset={"positive": None, "label": label}
    )
    assert chain.terms.config.label == label
    assert bool(chain.scaled.facts.get("classes")) == (label == "class")


def test_a_derived_label_is_told_too(run):
    chain = run(
        dataset={
            "positive": None,
            "target": "is_card",
            "derive": {"is_card": "(paid = 'card')::INT"},
            "drop": ["person", "paid"],
        },
    )
    assert chain.ingested.facts["label"] == "class"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_text_that_is_stated_to_be_a_number_is_refused_with_what_to_do(run, tmp_path, kind):
    path = rides(tmp_path / "a.csv", 300, 1)
    if kind == "parquet":
        frame = pl.read_csv(path).with_columns(paid=pl.col("paid") == "card")
        path = tmp_path / "a.parquet"
        frame.write_parquet(path)
    chain = run(path=path, dataset={"positive": None, "label": "number"})
    with pytest.raises(DataError) as refused:
        assert chain.ingested
    message = str(refused.value)
    assert 'column "paid"' in message
    assert 'dataset.label = "class"' in message
    assert run("named", path=path, dataset={"positive": None}).published


@pytest.mark.parametrize("make", [rides_config, fares_config])
def test_a_label_that_is_missing_or_not_declared_counts_as_outside(run, make):
    """At eps 40 nothing is lost in noise: the totals outside are the people whose label is none."""
    if make is rides_config:
        # of three rows in a row the first is public
        paid = np.array(["card", "owed", "cash", "cash", "card", "owed"])[np.arange(600) % 6].tolist()
        for row in range(0, 600, 3):
            paid[row] = "card" if row % 2 else "cash"
        changes = {"dataset": {"positive": None, "classes": ["cash", "card"]}}
    else:
        miles = np.where(np.arange(600) % 6 == 4, "", "3.5").tolist()
        miles[0] = "9.5"
        paid, changes = np.arange(600) % 17, {"dataset": {"missing": "drop"}}
    columns = {"paid": paid} | ({} if make is rides_config else {"miles": miles})
    chain = run(
        make=make,
        columns=columns,
        privacy={"epsilon": 40.0, "mechanism": "grr"},
        model={"depth": 1},
        correction={"label_levels": 2},
        evaluate=False,
        **changes,
    )
    private = pl.from_arrow(tables.read(chain.store.files(chain.held["train"])))
    is_out = private["paid"] == "owed" if make is rides_config else private["miles"].is_null()
    totals = read_totals(chain.store, chain.totals["totals"], published(chain))[0]
    assert 0 < is_out.sum() < 400
    assert totals.outside == pytest.approx(is_out.sum(), abs=0.5)
    assert np.isfinite(learned(chain).corrections.correction).all()

"""Public rows alone decide whether a label is a class or a number, and it is said; a label that is neither counts as outside."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from chain import Chain, fares, fares_config, learned, mended, published, rides, rides_config
from families import THREE, paid_in_three_ways

from flows.finish import stop_where_failed
from ldptree.errors import ConfigError, DataError
from storage import tables
from storage.store import Store
from tasks.artifacts import read_totals
from tasks.perturb import values_of
from tasks.report import read_checks


@pytest.fixture
def run(tmp_path):
    """Columns to replace or a file, and changes of the configuration, to a run on 600 rides, or with make=fares_config fares."""

    def run(name="work", columns=None, path=None, make=rides_config, **changes):
        write = rides if make is rides_config else fares
        path = path or write(tmp_path / "a.csv", 600, 2, **(columns or {}))
        return Chain(Store(tmp_path / name), mended(make, path, **changes))

    return run


@pytest.fixture
def fare(tmp_path):
    """Columns to replace or a file, and changes of the configuration, to a run on 600 fares that learns a tree."""

    def fare(name="work", columns=None, path=None, **changes):
        path = path or fares(tmp_path / f"{name}/a.csv", 600, 2, **(columns or {}))
        return Chain(Store(tmp_path / name / "work"), fares_config(path, **changes))

    return fare


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


ROW = np.arange(600)
MILES_OUT = np.where(ROW % 6 == 1, 99.0, np.where(ROW % 3 == 0, ROW % 9 + 1, 5.0))
OUTSIDE = {
    # how a run is made, and of a private row whether its report is "outside"
    "a class that is not declared": (
        rides_config,
        # of three rows in a row the first is public
        {
            "paid": np.where(
                ROW % 3 == 0, np.where(ROW % 2, "card", "cash"), np.where(ROW % 4 < 2, "owed", "cash")
            )
        },
        {"dataset": {"positive": None, "classes": ["cash", "card"]}, "correction": {"label_levels": 2}},
        lambda rows: rows["paid"] == "owed",
    ),
    "a class that is not declared, whatever class was drawn": (
        rides_config,
        paid_in_three_ways(600, 5)
        | {"paid": np.where(ROW % 6 == 1, "owed", paid_in_three_ways(600, 5)["paid"])},
        {"dataset": THREE},
        lambda rows: rows["paid"] == "owed",
    ),
    "a row that lacks a feature": (
        fares_config,
        {"paid": ROW % 17, "miles": ["9.5", *np.where(ROW % 6 == 4, "", "3.5").tolist()[1:]]},
        {"dataset": {"fill": "drop"}, "correction": {"label_levels": 2}},
        lambda rows: rows["miles"].is_null(),
    ),
    "a row beyond the range, where such are left out": (
        fares_config,
        {"miles": MILES_OUT},
        {"privacy": {"outside": "drop"}},
        lambda rows: rows["miles"] > 50,
    ),
    "a row beyond the range, where it is moved into it": (
        fares_config,
        {"miles": MILES_OUT},
        {"privacy": {"outside": "clip"}},
        lambda rows: rows["miles"] < 0,
    ),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_who_is_no_value_of_the_question_counts_as_outside(run, case):
    """At eps 40 nothing is lost in noise: the totals outside are just these people."""
    make, columns, changes, is_outside = OUTSIDE[case]
    privacy = {"epsilon": 40.0, "mechanism": "grr"} | changes.get("privacy", {})
    chain = run(
        make=make, columns=columns, evaluate=False, model={"depth": 1}, **changes | {"privacy": privacy}
    )
    n_outside = is_outside(pl.from_arrow(tables.read(chain.store.files(chain.held["train"])))).sum()
    outside = [t.outside for t in read_totals(chain.store, chain.totals["totals"], published(chain))]
    assert (n_outside == 0) == ("moved into it" in case)
    assert n_outside == 0 or 50 < n_outside < 400
    assert sum(outside) == pytest.approx(n_outside, abs=0.5)
    assert len(outside) == 1 or min(outside) > 10
    assert np.isfinite(learned(chain).corrections.correction).all()


# Numbers


def checks_of(chain):
    return read_checks(chain.store, chain.checked["checks"])


def test_a_label_is_kept_as_a_number_though_public_ones_are_whole(fare):
    paid = np.where(ROW % 3 == 0, "7", "7.5").tolist()
    paid[0] = "9"
    chain = fare(columns={"paid": paid})
    assert ["paid", "number", "double"] in chain.ingested.facts["columns"]
    assert all(check.ok for check in checks_of(chain))


def test_of_a_label_it_is_asked_that_it_is_known_and_of_its_size_only_where_a_range_is_declared(fare):
    chain = fare()
    suite = json.loads(chain.store.file(chain.checked["checks"], "suite.json").read_text())
    assert [e["expectation"] for e in suite["expectations"] if e.get("column") == "paid"] == ["read"]
    checks = checks_of(fare("declared", dataset={"ranges": {"paid": [0, 20]}}))
    assert [c.ok for c in checks if (c.zone, c.name) == ("public", "paid is between 0 and 20")] == [False]
    assert all(c.detail == "" for c in checks if c.zone == "private")


@pytest.mark.parametrize("value", ["CANARY", "12,50 $", "inf", "true"])
def test_a_public_label_that_is_no_number_is_refused_with_file_and_column(fare, value):
    paid = ["5", "6", "7", "8"] * 150
    paid[3] = f'"{value}"'
    with pytest.raises(DataError) as fault:
        assert fare(columns={"paid": paid}).ingested
    message = str(fault.value)
    assert message.startswith('a.csv, column "paid": not a number in ')
    assert "choose another dataset.target" in message
    assert "a text" not in message
    assert value in message
    assert fault.value.exit_code == 3


@pytest.mark.parametrize("value", ["", "CANARY"])
def test_a_private_label_that_is_none_reports_outside_and_stops_a_trial_unless_put_aside(fare, value):
    paid = ["5", "6", "7", "8"] * 150
    paid[4] = value
    said = "not in all private rows: every row can be read, and paid is never missing"
    with pytest.raises(DataError, match=said):
        stop_where_failed(fare(columns={"paid": paid}))
    chain = fare("other", columns={"paid": paid}, dataset={"on_bad_rows": "quarantine"})
    stop_where_failed(chain)
    assert chain.ingested["private"].rows == 400
    assert chain.ingested.facts["bad_public"] == 0
    asked = published(chain)
    values = np.concatenate([values_of(path, asked) for path in chain.store.files(chain.held["train"])])
    assert np.count_nonzero(values == asked.mechanism.n_values - 1) == 1


def test_texts_of_a_parquet_are_numbers_and_true_and_false_are_none(fare, tmp_path):
    frame = pl.read_csv(fares(tmp_path / "a.csv", 300, 1))
    questions = []
    for name, column in (
        ("numbers", pl.col("paid")),
        ("texts", pl.col("paid").cast(pl.String)),
        ("truths", pl.col("hour") > 10),
    ):
        path = tmp_path / f"{name}.parquet"
        frame.with_columns(paid=column).write_parquet(path)
        if name != "truths":
            questions.append(fare(name, path=path).published["question"].digest)
    assert questions[0] == questions[1]
    said = r'truths\.parquet, column "paid" \(the target\): true and false are not numbers'
    with pytest.raises(DataError, match=said):
        assert fare("truths", path=path).ingested


def test_the_range_of_labels_is_that_of_public_ones_or_the_one_that_is_given(fare):
    chain = fare()
    public = tables.read([p for p in chain.store.files(chain.ingested["public"]) if p.suffix == ".parquet"])
    y = public.column("paid").to_numpy()
    assert chain.scaled.facts["label_range"] == [y.min(), y.max()]
    assert published(chain).label_range == (y.min(), y.max())
    given = fare("given", model={"label_range": [0, 100]}, evaluate=False)
    assert published(given).label_range == (0, 100)
    assert learned(given).label.range == (0, 100)


def test_public_labels_that_have_no_range_or_another_one_are_refused_before_anybody_is_asked(fare):
    paid = np.where(ROW % 3 == 0, 5, ROW).tolist()
    miles = np.where(ROW == 0, "", "3.5").tolist()
    paid[0] = 6  # the one public row that differs lacks a feature
    other = fare(model={"label_range": [10, 20]})
    alike = fare("alike", columns={"paid": paid, "miles": miles}, dataset={"fill": "drop"})
    for chain, fault, said in (
        (
            other,
            ConfigError,
            r"model\.label_range \(10, 20\) does not cover the public labels.*widen it",
        ),
        (alike, DataError, 'target "paid": the public rows have one label only, 5'),
    ):
        with pytest.raises(fault, match=said):
            assert chain.scaled
        assert not (chain.store.zone("curator") / "reports").exists()

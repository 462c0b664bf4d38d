"""Rows that do not fit a configuration stop the step that meets them: with one message, and nothing below is written."""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from chain import Chain
from desk import CANARY, Desk

from ldptree.models.tree import ClassTree
from schemas.config import load
from storage import tables
from storage.store import Store


@pytest.fixture
def desk(tmp_path, capsys, monkeypatch):
    return Desk(tmp_path, capsys, monkeypatch)


def with_cell(lines, zone, column, value):
    """The lines with one value of the fifth row of a zone replaced."""
    at = [i for i, line in enumerate(lines) if line.startswith(zone)][4]
    cells = lines[at].split(",")
    cells[lines[0].split(",").index(column)] = value
    return [*lines[:at], ",".join(cells), *lines[at + 1 :]]


def with_column(lines, zone, column, value):
    """The lines with a column's value replaced in every row of a zone ("" for both)."""
    at = lines[0].split(",").index(column)

    def changed(line):
        cells = line.split(",")
        return ",".join([*cells[:at], value, *cells[at + 1 :]])

    return [lines[0], *(changed(line) if line.startswith(zone) else line for line in lines[1:])]


# Files: nothing of them is kept.


def whole_parquet(desk):
    pl.read_csv(desk.folder / "rides.csv").write_parquet(desk.folder / "rides.parquet")
    return (desk.folder / "rides.parquet").read_bytes()


def damaged(content):
    """Zeros in its middle."""
    at = len(content) // 4
    return content[:at] + bytes(300) + content[at + 300 :]


FILES = {
    "empty.csv": (lambda _: b"", "empty.csv: the file is empty (0 bytes)."),
    "picture.csv": (lambda _: b"\x89PNG\r\n\x1a\n" + bytes(range(1, 200)), "not UTF-8 text"),
    "spaces.csv": (lambda desk: [line.replace(",", " ") for line in desk.lines()], 'no column "paid"'),
    "damaged.parquet": (lambda desk: damaged(whole_parquet(desk)), "damaged.parquet: "),
    "latin.csv": (lambda desk: "\n".join(desk.lines()).replace("ash", "\xe4sh").encode("latin1"),
                  "latin.csv: not UTF-8 text. Set dataset.encoding, such as"),
}  # fmt: skip
"""One of each way in which a file is none; storage/test_raw_files.py has all."""


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_table_is_refused_by_its_name(desk, name):
    content, said = FILES[name]
    desk.refused(3, name, said, dataset__path=desk.file(name, content(desk)))


def test_a_delimiter_that_does_not_split_is_told_with_the_one_that_does(desk):
    desk.file("semicolons.csv", [line.replace(",", ";") for line in desk.lines()])
    desk.refused(
        3,
        "split at ',' the first line has one column, split at a semicolon it has 6. Set dataset.delimiter = ';'",
        dataset__path='"semicolons.csv"', dataset__delimiter='","',
    )  # fmt: skip
    assert desk.run(dataset__path='"semicolons.csv"')[0] == 0


ABOVE = {"ingest", "validate", "split"}


@pytest.mark.parametrize(
    ("code", "said", "after", "changes"),
    [
        (2, "dataset.test_fraction: 0 holds no row back to score on", set(),
         {"evaluate": "true", "dataset__test_fraction": "0.0"}),
        (2, "dataset.name: 'taxii' is not in the catalogue (did you mean 'taxi'?)", set(),
         {"dataset__name": '"taxii"', "dataset__path": None}),
        (3, 'rides.csv: dataset.target: no column "payed" (did you mean "paid"?). Columns: zone,', set(),
         {"dataset__target": '"payed"'}),
        (3, 'dataset.target: no column "Paid" (did you mean "paid"?)', set(), {"dataset__target": '"Paid"'}),
        (3, 'dataset.drop: no column "persons" (did you mean "person"?)', set(), {"dataset__drop": '["persons"]'}),
        (3, 'dataset.holder: no column "persn" (did you mean "person"?)', set(), {"dataset__holder": '"persn"'}),
        (2, 'dataset.public: unknown column "zome" (did you mean "zone"?). Columns: zone, person, miles, hour, firm', set(),
         {"dataset__public": "\"zome = 'open'\""}),
        (2, "(Text values take single quotes: 'like this'.)", set(), {"dataset__public": '"zone = \\"open\\""'}),
        (2, "gives a DOUBLE where it must be true or false", set(), {"dataset__public": '"miles + 1"'}),
        (3, "no public rows by the rule \"zone = 'opne'\"", set(), {"dataset__public": "\"zone = 'opne'\""}),
        (3, "no private rows: the rule \"zone <> 'x'\" makes every row public", set(),
         {"dataset__public": "\"zone <> 'x'\""}),
        (3, "no private rows: the rule 'first 1000' makes every row public", set(), {"dataset__public": '"first 1000"'}),
        (3, "no features are left", set(), {"dataset__drop": '["person", "miles", "hour", "firm"]'}),
        (2, "dataset.positive: 'cart' is not a label of public rows (card, cash). Did you mean 'card'?", ABOVE,
         {"dataset__positive": '"cart"'}),
        (3, "all public rows that can be used say 'card'. Nothing can be learned", ABOVE,
         {"dataset__classes": '["card", "cheque"]'}),
        (3, 'column "hour": no public value is among its declared levels', ABOVE,
         {"dataset__levels": '{hour = ["noon"]}'}),
        (3, "no private rows are left to report", {"ingest", "validate"},
         {"dataset__test_fraction": "0.9999", "evaluate": "true"}),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_rows_is_told_by_its_key_and_stops_the_step_that_meets_it(
    desk, code, said, after, changes
):
    """What stands above the fault is kept, nothing below it is made."""
    desk.refused(code, said, after=after, **changes)


# Rows: ingest stops, and leaves no row in any zone.


def test_a_text_among_numbers_of_public_rows_is_told_by_line_and_value(desk):
    desk.file("public.csv", with_cell(desk.lines(), "open", "miles", "lots"))
    desk.refused(3, 'public.csv, column "miles": not a number in 1 public row at row 13: \'lots\'. Correct it, or',
                 dataset__path='"./public.csv"')  # fmt: skip


def test_a_private_row_with_a_field_too_many_is_told_without_its_line(desk):
    wide = [line + f",{CANARY}" if i == 100 else line for i, line in enumerate(desk.lines())]
    said = desk.refused(3, "wide.csv: a row with the wrong number of fields (details in ",
                        dataset__path=desk.file("wide.csv", wide))  # fmt: skip
    assert "101" not in re.sub(
        r"ingest-[0-9a-f]+", "", said
    )  # the file of details has a name drawn by chance


def test_a_target_that_is_constant_in_public_rows_is_refused(desk):
    constant = desk.file("constant.csv", with_column(desk.lines(), "open", "paid", "card"))
    said = "column \"paid\" (the target) has a single value in the public rows: 'card'"
    desk.refused(3, said, dataset__path=constant)
    one = [line for i, line in enumerate(desk.lines()) if i < 2 or line.startswith("closed")]
    desk.refused(
        3, "(the target) has a single value in the public rows", dataset__path=desk.file("one.csv", one)
    )


@pytest.mark.parametrize("zone", ["", "open"])
def test_a_column_without_a_public_value_is_refused(desk, zone):
    path = desk.file("missing.csv", with_column(desk.lines(), zone, "miles", ""))
    desk.refused(3, "every public value is missing in miles", "Add to dataset.drop.", dataset__path=path)


# Later steps: what stands above the fault is kept, nothing below it is made.


@pytest.mark.parametrize(("column", "value"), [("miles", CANARY), ("paid", "")])
def test_a_private_row_that_cannot_be_read_stops_a_trial_by_one_bit_and_a_release_not_at_all(
    desk, column, value
):
    path = desk.file("private.csv", with_cell(desk.lines(), "closed", column, value))
    said = desk.refused(3, "not in all private rows: every row can be read, and paid is never missing",
                        "holders/faults;", after={"ingest", "validate"}, dataset__path=path)  # fmt: skip
    assert " 1 " not in said
    assert "line" not in said
    blind = {"dataset__path": path, "simulation__noise_seed": None}
    released = blind | {"dataset__release_checks": "true", "privacy__max_released_checks": "9"}
    desk.refused(3, "not in all private rows: every row", after={"ingest", "validate"}, **released)
    assert desk.run(**blind)[0] == 0
    assert desk.run(dataset__path=path, dataset__on_bad_rows='"quarantine"')[0] == 0


@pytest.mark.parametrize(
    ("expectation", "said"),
    [
        ({"expectation": "between", "column": "miles"}, "expectations.0: between needs low, high"),
        ({"expectation": "known", "column": "mles"}, "expectations.0: no column 'mles' (did you mean 'miles'?)"),
        ({"expectation": "between", "column": "firm", "low": 0, "high": 1}, "'firm' is text"),
        ({"expectation": "between", "column": "miles", "low": 5, "high": 1}, "low 5 is above high 1"),
        ({"expectation": "one_of", "column": "miles", "values": ["a"]}, "'a' is no number, which 'miles' is"),
        ({"expectation": "one_of", "column": "firm", "values": []}, "values is empty: no row can meet it"),
    ],
)  # fmt: skip
def test_an_edited_suite_that_does_not_fit_the_data_is_refused(desk, expectation, said):
    suite = desk.file("suite.json", json.dumps({"dataset": "mine", "expectations": [expectation]}))
    desk.refused(2, "suite.json: does not fit the data", said, after={"ingest"}, dataset__expect=suite)


def test_a_failed_validation_names_what_failed_in_which_zone_and_stops_the_run(desk):
    said = desk.refused(
        3,
        "validation failed, nothing was learned:",
        "not in all public rows: miles is between 0 and 1",
        "not in all private rows: miles is between 0 and 1",
        "page.html",
        after={"ingest", "validate"},
        dataset__ranges="{miles = [0, 1]}",
    )
    (page,) = (desk.work / "runs").glob("*/page.html")
    assert str(page) in said
    warned = [{"expectation": "between", "column": "miles", "low": 0, "high": 1, "severity": "warn"}]
    suite = desk.file("suite.json", json.dumps({"dataset": "mine", "expectations": warned}))
    assert desk.run(dataset__expect=suite)[0] == 0


# What looks like a fault and is none.


def test_a_private_label_that_no_public_row_has_is_outside_and_no_fault(desk):
    path = desk.file("voucher.csv", with_cell(desk.lines(), "closed", "paid", "voucher"))
    assert desk.run(dataset__path=path)[0] == 0
    (model,) = desk.work.glob("curator/prune/*/model.json")
    assert json.loads(model.read_text())["classes"] == ["cash", "card"]
    assert b"voucher" not in model.read_bytes()


def test_one_feature_is_enough(desk):
    assert desk.run(dataset__drop='["person", "hour", "firm"]')[:2] == (0, "")


@pytest.mark.slow
def test_three_thousand_features_are_not_too_many_for_any_step_after_ingest(desk):
    names = [f"x{i}" for i in range(3000)]
    rng, n = np.random.default_rng(0), 90
    wide = {name: rng.random(n).round(2) for name in names}
    columns = wide | {"paid": np.where(wide["x5"] > 0.5, "card", "cash")}
    chain = Chain(Store(desk.work), load(desk.config()))
    place = chain.store.place("holders", "ingest", "1", inputs={}, parameters={"test": "wide"})
    with chain.store.draft(place) as draft:
        for part, zone, rows, numbers in (
            ("public", "public", slice(None, 30), {}),
            ("private", "holders", slice(30, None), {"_row": np.arange(30, n)}),
        ):
            table = pa.table({name: values[rows] for name, values in columns.items()} | numbers)
            tables.write(draft.folder(part, zone) / "part-0000.parquet", table)
            draft.count(part, "part-0000.parquet", table.num_rows)
        (draft.folder("sources") / "sources.json").write_text(json.dumps({"part-0000.parquet": "5a" * 32}))
        typed = [*([name, "number", "double"] for name in names), ["paid", "text", "string"]]
        chain.ingested = draft.finish({"columns": typed, "types": {}, "features": names}, 0.0)
    chain.read = [chain.ingested]
    assert chain.checked.facts["met"] == chain.checked.facts["expected"]
    assert chain.scaled.facts["n_features"] == 3000
    model = ClassTree.from_json(chain.store.file(chain.model["model"], "model.json").read_text())
    assert len(model.encoding.columns) == 3000

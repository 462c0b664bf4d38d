"""Both zones are held against one suite; of private rows no more than yes or no is told."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import Chain, rides, rides_config

from ldptree.errors import ConfigError
from schemas.dataset import DatasetSpec
from schemas.expectations import Expectation, Suite, check_columns, suite_of
from storage.store import Store
from tasks.data.source import read_suite
from tasks.data.validate import check_private, check_public
from tasks.data.violations import count_violations

COLUMNS = (("firm", "text", "string"), ("miles", "integer", "int16"), ("paid", "integer", "int64"))
SPEC = DatasetSpec(
    name="trips",
    path=("trips.csv",),
    target="paid",
    public="firm = 'p'",
    ranges={"miles": (0, 100)},
    levels={"firm": ("p", "q")},
    classes=(0, 1),
)


def zone(folder, firm=("p", "q"), miles=(1, 100), paid=(0, 1), name="part-0000.parquet", **more):
    table = {
        "firm": pa.array(firm),
        "miles": pa.array(miles, pa.int16()),
        "paid": pa.array(paid, pa.int64()),
        **more,
    }
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table(table), folder / name)
    return [folder / name]


def private_checks(paths, suite):
    return check_private(count_violations(paths, suite.expectations), suite)


def failed(checks):
    return [check["name"] for check in checks if not check["ok"]]


def test_the_suite_says_what_the_specification_says():
    assert [e.words for e in suite_of(SPEC, COLUMNS).expectations] == [
        "the 3 columns are there, with their types",
        "there is at least 1 row",
        "every row can be read, and paid is never missing",
        "miles is between 0 and 100",
        "firm is one of p, q",
        "paid is one of 0, 1",
    ]


def test_the_suite_survives_its_file_and_an_editor_s_hand():
    suite = suite_of(SPEC, COLUMNS)
    assert Suite.from_json(suite.to_json(), "suite.json") == suite
    edited = suite.to_json().replace('"high": 100.0', '"high": 7.0')
    assert Suite.from_json(edited, "suite.json").expectations[3].high == 7


def test_a_suite_that_a_windows_editor_saved_is_read(tmp_path):
    suite = suite_of(SPEC, COLUMNS)
    (tmp_path / "suite.json").write_bytes(suite.to_json().replace("\n", "\r\n").encode("utf-8-sig"))
    assert read_suite(tmp_path / "suite.json") == suite


@pytest.mark.parametrize("text", ["", "[]", '{"dataset": "x", "expectations": [{"expectation": "betwixt"}]}'])
def test_a_file_that_is_no_suite_is_refused_by_name(text):
    with pytest.raises(ConfigError, match=r"^suite\.json: not a suite"):
        Suite.from_json(text, "suite.json")


def test_an_edited_suite_must_fit_the_data():
    wrong = Suite(
        dataset="trips",
        expectations=(
            Expectation(expectation="between", column="mile", low=0, high=1),
            Expectation(expectation="one_of", column="firm"),
        ),
    )
    with pytest.raises(ConfigError) as refusal:
        check_columns(wrong, COLUMNS, "suite.json")
    assert "no column 'mile'" in str(refusal.value)
    assert "one_of needs values" in str(refusal.value)


def test_rows_that_are_as_expected_pass_in_both_zones(tmp_path):
    suite = suite_of(SPEC, COLUMNS)
    public, private = zone(tmp_path / "public"), zone(tmp_path / "holders")
    checks = check_public(public, suite, tmp_path / "docs") + private_checks(private, suite)
    assert failed(checks) == []
    assert {check["zone"] for check in checks} == {"public", "private"}
    assert json.loads(json.dumps(checks)) == checks


@pytest.mark.parametrize(
    ("changes", "name", "severity"),
    [
        ({"miles": (1, 101)}, "miles is between 0 and 100", "stop"),
        ({"paid": (0, None)}, "every row can be read, and paid is never missing", "stop"),
        ({"firm": ("p", "z")}, "firm is one of p, q", "warn"),
        ({"paid": (0, 2)}, "paid is one of 0, 1", "warn"),
        ({"more": pa.array([1, 2])}, "the 3 columns are there, with their types", "stop"),
    ],
)
def test_each_zone_fails_the_expectation_it_breaks_and_no_other(tmp_path, changes, name, severity):
    suite = suite_of(SPEC, COLUMNS)
    paths = zone(tmp_path / "zone", **changes)
    public = check_public(paths, suite, tmp_path / "docs")
    assert failed(public) == [name]
    assert [check["severity"] for check in public if not check["ok"]] == [severity]
    if "more" not in changes:
        assert failed(private_checks(paths, suite)) == [name]


def test_a_missing_value_is_no_fault_but_where_it_must_be_known(tmp_path):
    paths = zone(tmp_path / "zone", firm=(None, "q"), miles=(None, 1))
    assert failed(private_checks(paths, suite_of(SPEC, COLUMNS))) == []


def test_a_label_or_a_level_that_nobody_declared_is_no_fault(tmp_path):
    open_spec = SPEC.model_copy(update={"levels": {}, "classes": None, "ranges": {}})
    paths = zone(tmp_path / "zone", firm=("new", "q"), miles=(-9, 9999), paid=(0, 77))
    assert failed(private_checks(paths, suite_of(open_spec, COLUMNS))) == []


def test_the_zones_must_have_one_schema(tmp_path):
    suite = suite_of(SPEC, COLUMNS)
    path = zone(tmp_path / "zone")[0]
    table = pq.read_table(path)
    pq.write_table(table.set_column(1, "miles", table["miles"].cast(pa.int32())), path)
    assert "the 3 columns are there, with their types" in failed(private_checks([path], suite))
    assert "there is at least 1 row" in failed(private_checks([], suite))


def test_public_failures_say_what_was_found_and_private_ones_do_not(tmp_path):
    suite = suite_of(SPEC, COLUMNS)
    paths = zone(tmp_path / "zone", miles=(1, 4321))
    (told,) = [c["detail"] for c in check_public(paths, suite, tmp_path / "docs") if not c["ok"]]
    assert told == "1 of 2 rows: 4321"
    private = private_checks(paths, suite)
    assert "4321" not in json.dumps(private)
    assert {check["detail"] for check in private} == {""}


def test_an_expectation_of_the_wrong_kind_fails_without_a_word_of_the_values(tmp_path):
    odd = Suite(
        dataset="trips",
        expectations=(
            Expectation(expectation="between", column="firm", low=0, high=1),
            Expectation(expectation="one_of", column="firm", values=(1, 2)),
            Expectation(expectation="one_of", column="miles", values=("x", "1")),
            Expectation(expectation="one_of", column="miles", values=(1, 100, "x")),
        ),
    )
    paths = zone(tmp_path / "zone", firm=("CANARY", "CANARY"))
    assert count_violations(paths, odd.expectations) == [2, 2, 1, 0]
    assert "CANARY" not in json.dumps(private_checks(paths, odd))
    told = [check["detail"] for check in check_public(paths, odd, tmp_path / "docs")]
    assert told[0] == "its values cannot be compared with that"


def test_the_order_of_an_edited_suite_does_not_matter(tmp_path):
    turned = Suite(dataset="trips", expectations=suite_of(SPEC, COLUMNS).expectations[::-1])
    path = zone(tmp_path / "zone", miles=(1, 101))[0]
    assert failed(check_public([path], turned, tmp_path / "docs")) == ["miles is between 0 and 100"]
    table = pq.read_table(path)
    pq.write_table(table.set_column(1, "miles", table["miles"].cast(pa.int32())), path)
    assert len(failed(check_public([path], turned, tmp_path / "docs"))) == 2


def test_data_docs_are_one_page_that_opens_offline(tmp_path):
    docs = tmp_path / "docs"
    check_public(zone(tmp_path / "zone", miles=(1, 4321)), suite_of(SPEC, COLUMNS), docs)
    (path,) = docs.rglob("*")
    page = path.read_text()
    assert "4321" in page
    assert "newsletter" not in page
    assert "@import" not in page
    assert re.findall(r"""(?:src|href)=["'](?!#)[^"']*""", page) == []


def test_checking_writes_nothing_beside_the_docs(tmp_path, monkeypatch, capfd):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    suite = suite_of(SPEC, COLUMNS)
    paths = zone(tmp_path / "zone", miles=(1, 4321))
    check_public(paths, suite, tmp_path / "docs")
    private_checks(paths, suite)
    assert list(home.rglob("*")) == []
    assert capfd.readouterr() == ("", "")


def test_a_suite_says_its_version_and_one_of_a_later_ldptree_is_not_called_wrong():
    suite = Suite(dataset="rides", expectations=())
    assert json.loads(suite.to_json())["version"] == 1
    assert Suite.from_json('{"dataset": "rides", "expectations": []}', "suite.json") == suite
    with pytest.raises(ConfigError, match=r"suite\.json: written by a later ldptree \(version 2"):
        Suite.from_json('{"version": 2, "sets": []}', "suite.json")


def test_a_public_row_in_quarantine_stops_no_later_step(tmp_path):
    path = rides(tmp_path / "a.csv", 300, 1, miles=["x" if row == 3 else row % 7 for row in range(300)])
    dataset = {"on_bad_rows": "quarantine", "types": {"miles": "number"}}
    chain = Chain(Store(tmp_path / "work"), rides_config(path, dataset=dataset))
    assert chain.ingested.facts["bad_public"] == 1
    assert chain.checked
    assert chain.scaled.facts["n_public"] == 99

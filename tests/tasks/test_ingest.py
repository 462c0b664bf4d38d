"""Raw files become typed Parquet, each row in its zone; no private row has a say in what the files look like."""

from __future__ import annotations

import gzip
import hashlib
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import ingest_files, zones_of

from ldptree.errors import ConfigError, DataError
from schemas.dataset import DatasetSpec
from tasks.data.ingest_plan import RowRules

TRIPS = "firm,miles,area,paid\np,1,x,0\np,2.5,y,1\nq,3,x,0\nq,,z,1\n"


@pytest.fixture
def ingest(tmp_path):
    """Write raw files, ingest them, and hand over the result, the rows of each zone and the folder."""

    def run(*contents, name="trips.csv", public_files=(), seed=7, folder=tmp_path, **changes):
        paths = []
        for number, content in enumerate([*contents, *public_files]):
            path = folder / (f"{number}-{name}" if len(contents) + len(public_files) > 1 else name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            paths.append(path)
        spec = DatasetSpec.model_validate(
            {"name": "t", "path": "x", "target": "paid", "public": "firm = 'p'"} | changes
        )
        found = ingest_files(
            RowRules(dataset=spec, seed=seed),
            paths[: len(contents)],
            zones_of(folder),
            public_paths=paths[len(contents) :],
        )
        return found, rows(folder / "public"), rows(folder / "holders")

    return run


BATCH = 4096


@pytest.fixture
def small_batches(monkeypatch):
    """Batches and row groups of `BATCH` rows, so that few rows fill many."""
    monkeypatch.setattr("storage.raw.raw_files.BATCH_ROWS", BATCH)


def rows(folder):
    return [row for path in sorted(folder.glob("part-*.parquet")) for row in pq.read_table(path).to_pylist()]


def storages(found):
    return {column.name: column.storage for column in found.columns}


def chain(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


# Zones


def test_each_row_goes_to_its_zone_a_private_one_with_its_number(ingest):
    found, public, private = ingest(TRIPS)
    assert public == [
        {"firm": "p", "miles": 1.0, "area": "x", "paid": 0},
        {"firm": "p", "miles": 2.5, "area": "y", "paid": 1},
    ]
    assert private == [
        {"firm": "q", "miles": 3.0, "area": "x", "paid": 0, "_row": 2},
        {"firm": "q", "miles": None, "area": "z", "paid": 1, "_row": 3},
    ]
    assert list(found.rule_columns) == ["firm"]
    assert (found.n_public, found.n_private) == (2, 2)


def test_a_row_of_which_the_rule_cannot_tell_is_private(ingest):
    _, public, private = ingest(TRIPS + ",4,x,1\n", public="firm <> 'q'")
    assert [row["miles"] for row in public] == [1, 2.5]
    assert [row["_row"] for row in private] == [2, 3, 4]


def test_a_rule_that_fails_on_a_value_leaves_its_row_private(ingest):
    text = "firm,miles,paid\n1,1,0\n2,2,1\nCANARY,3,1\n"
    _, public, private = ingest(text, public="CAST(firm AS INTEGER) < 9", types={"firm": "text"})
    assert [len(public), len(private)] == [2, 1]


def test_rows_that_are_not_asked_belong_to_nobody(ingest):
    found, public, private = ingest(TRIPS + "q,9,x,\np,9,x,1\n", where="miles < 4 AND paid IS NOT NULL")
    assert [row["miles"] for row in public] == [1, 2.5]
    assert [row["_row"] for row in private] == [2]
    assert found.left_out_public == 1


def test_a_fraction_is_drawn_by_seed_file_and_row_alone(ingest, tmp_path):
    text = "miles,paid\n" + "".join(f"{i}.5,{i % 2}\n" for i in range(5_000))
    _, public, private = ingest(text, public="random 0.1", folder=tmp_path / "1")
    _, again, _ = ingest(text, public="random 0.1", folder=tmp_path / "2")
    _, longer, _ = ingest(text + "5000,1\n", public="random 0.1", folder=tmp_path / "3")
    _, other, _ = ingest(text, public="random 0.1", seed=8, folder=tmp_path / "4")
    assert public == again
    assert public == [row for row in longer if row["miles"] < 5_000]
    assert public != other
    # Five standard deviations of a binomial: one false alarm in two million.
    assert abs(len(public) - 500) < 5 * math.sqrt(5_000 * 0.09)
    assert len(public) + len(private) == 5_000


@pytest.mark.parametrize("name", ["P{:03d}", "{:04d}", "{}", "{}.5"])
def test_a_fraction_draws_holders_with_all_their_rows_where_a_column_names_them(name, ingest, tmp_path):
    """However their names are written, and the same person here and in another file."""
    people = np.random.default_rng(0).integers(0, 600, 5_000)
    rows = [f"{name.format(person)},{i}.5,{i % 2}\n" for i, person in enumerate(people)]
    text = "person,miles,paid\n"
    halves = (text + "".join(rows[:2_500]), text + "".join(rows[2_500:]))
    words = {"public": "random 0.2", "holder": "person", "drop": ()}
    words |= {"types": {"person": "text"}} if "." in name else {}
    _, public, private = ingest(text + "".join(rows), folder=tmp_path / "1", **words)
    _, parted, _ = ingest(*halves, folder=tmp_path / "2", **words)
    _, other, _ = ingest(text + "".join(rows), folder=tmp_path / "3", seed=8, **words)
    is_public = {row["person"] for row in public}
    assert not is_public & {row["person"] for row in private}
    assert public == parted
    assert is_public != {row["person"] for row in other}
    assert abs(len(is_public) - 120) < 5 * math.sqrt(600 * 0.16)


def test_the_first_rows_are_those_of_the_first_file(ingest):
    text = "miles,paid\n" + "".join(f"{i}.5,{i % 2}\n" for i in range(50))
    found, public, _ = ingest(text, text, public="first 20")
    assert [row["miles"] - 0.5 for row in public] == list(range(20))
    assert [(file.name, file.rows) for file in found.private] == [
        ("part-0000.parquet", 30),
        ("part-0001.parquet", 50),
    ]


def test_a_second_file_is_public_and_the_first_is_not(ingest):
    found, public, private = ingest(
        "miles,paid\n1,0\n2,1\n", public="other.csv", public_files=["paid,miles\n1,7\n0,8\n"]
    )
    assert [row["miles"] for row in public] == [7, 8]
    assert [row["miles"] for row in private] == [1, 2]
    assert found.public[0].name == "part-0001.parquet"


@pytest.mark.usefixtures("small_batches")
def test_every_private_row_keeps_its_number_over_many_batches(ingest):
    firms = np.random.default_rng(3).integers(0, 9, 10_000)
    lines = [f"f{firm},{i},{i % 2}" for i, firm in enumerate(firms.tolist())]
    names = ", ".join(f"'f{k}'" for k in range(7))
    _, public, private = ingest(
        "firm,miles,paid\n" + "\n".join(lines),
        public=f"firm IN ({names})",
        types={"miles": "integer", "firm": "text"},
    )
    assert [row["miles"] for row in public] == np.flatnonzero(firms < 7).tolist()
    assert all(row["miles"] == row["_row"] for row in private)


@pytest.mark.usefixtures("small_batches")
def test_the_bytes_depend_on_the_input_alone(ingest, tmp_path):
    text = "firm,miles,paid\n" + "".join(f"{'pq'[i % 7 > 2]},{i * 0.5},{i % 2}\n" for i in range(9_000))
    digests = []
    for folder, content, name in (
        ("1", text, "a.csv"),
        ("2", text, "b.csv"),
        ("3", gzip.compress(text.encode(), mtime=0), "c.csv.gz"),
    ):
        ingest(content, name=name, folder=tmp_path / folder)
        parts = sorted((tmp_path / folder).rglob("part-*.parquet"))
        digests.append([hashlib.sha256(part.read_bytes()).hexdigest() for part in parts])
    assert digests[0] == digests[1] == digests[2]
    metadata = pq.read_metadata(tmp_path / "1" / "holders" / "part-0000.parquet")
    assert metadata.row_group(0).num_rows == BATCH < metadata.num_rows


# Types


def test_types_are_told_from_public_rows(ingest):
    text = "firm,whole,half,flag,word,mixed,paid\np,1,0.5,true,a,1,0\np,2,1,FALSE,b,b2,1\nq,3,2,true,c,c,1\n"
    found, _, _ = ingest(text, categorical=["mixed"])
    assert storages(found) == {
        "firm": "string",
        "whole": "double",  # a feature that is whole in public rows may well not be in private ones
        "half": "double",
        "flag": "bool",
        "word": "string",
        "mixed": "string",
        "paid": "int64",
    }


@pytest.mark.parametrize("canary", ["7000000.5", "-1e300", "", "1", "9" * 18])
def test_no_private_value_changes_the_schema(ingest, tmp_path, canary):
    base, _, _ = ingest(TRIPS, folder=tmp_path / "1")
    found, _, _ = ingest(TRIPS.replace("q,3,", f"q,{canary},"), folder=tmp_path / "2")
    assert found == base
    assert (tmp_path / "1/public/part-0000.parquet").read_bytes() == (
        tmp_path / "2/public/part-0000.parquet"
    ).read_bytes()


def test_declared_ranges_narrow_integers_and_a_value_too_wide_for_the_type_is_a_fault(ingest):
    ranges = {"miles": (0.0, 100.0)}
    text = TRIPS.replace("2.5", "3.0")
    found, _, private = ingest(text, types={"miles": "integer"}, ranges=ranges)
    assert storages(found)["miles"] == "int8"
    assert private[0]["miles"] == 3
    assert ingest(text + "q,127,x,0\n", types={"miles": "integer"}, ranges=ranges)[2][-1]["miles"] == 127
    with pytest.raises(DataError, match='"miles": far outside its declared range in 1 public row'):
        ingest(text + "p,128,x,0\n", types={"miles": "integer"}, ranges=ranges)
    wide = ingest(text + "q,128,x,0\n", types={"miles": "integer"}, ranges=ranges)[2][-1]
    assert (wide["miles"], wide["paid"]) == (None, None)


def test_a_fraction_is_no_integer_though_a_database_would_round_it(ingest):
    with pytest.raises(DataError, match=r"\"miles\": not an integer in 1 public row at row 2: '2\.5'"):
        ingest(TRIPS, types={"miles": "integer"})


def test_an_identifier_keeps_every_digit(ingest):
    ids = [9007199254740993, 9007199254740992]
    _, _, private = ingest(
        "firm,who,miles,paid\np,1,1,0\np,2,2,1\n" + "".join(f"q,{i},3,1\n" for i in ids), holder="who"
    )
    assert [row["who"] for row in private] == ids
    long = ["90071992547409931234", "90071992547409931235"]
    _, _, private = ingest(
        f"firm,who,miles,paid\np,{long[0]},1,0\np,2,2,1\n" + "".join(f"q,{i},3,1\n" for i in long),
        holder="who",
    )
    assert [row["who"] for row in private] == long


def test_derived_columns_are_columns(ingest):
    found, public, _ = ingest(
        TRIPS,
        derive={
            "double": "miles * 2",
            "is_x": "area = 'x'",
            "card": "paid = 1",
            "odd": "CAST(area AS INTEGER)",
        },
        target="card",
        drop=["paid", "odd", "area"],
    )
    assert list(storages(found)) == ["firm", "miles", "double", "is_x", "card"]
    assert public[1] == {"firm": "p", "miles": 2.5, "double": 5.0, "is_x": False, "card": True}


def test_a_parquet_is_read_by_its_own_types_and_nan_is_missing(ingest, tmp_path):
    path = tmp_path / "raw.parquet"
    table = {
        "firm": ["p", "p", "q", "q"],
        "miles": [1.0, math.nan, 3.0, None],
        "n": pa.array([1, 2, 3, 4], pa.int16()),
        "when": pa.array([0, 3_600_000, 0, 0], pa.timestamp("ms")),
        "paid": [0, 1, 1, 0],
    }
    pq.write_table(pa.table(table), path)
    found, public, _ = ingest(
        path.read_bytes(),
        name="trips.parquet",
        derive={"hour": 'hour(CAST("when" AS TIMESTAMP))'},
        drop=["when"],
    )
    assert storages(found) == {
        "firm": "string",
        "miles": "double",
        "n": "int64",
        "paid": "int64",
        "hour": "int64",
    }
    assert public[1] == {"firm": "p", "miles": None, "n": 2, "paid": 1, "hour": 1}


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMPTZ"])
def test_a_cast_of_a_text_drops_no_offset_in_derived_columns_and_in_rules(ingest, kind):
    found, public, private = ingest(
        "p,2024-06-01 19:00:00+02:00,2024-06-01T00:30:00Z,0\np,2024-06-01 18:00:00 UTC,2024-06-01 00:30:00+09:00,1\n"
        "q,2024-06-02 02:00:00,2024-06-01 00:30:00-09:00,1\nq,2024-05-31T23:30:00Z,2024-06-01 00:30:00,1\n",
        columns=["firm", "signed", "started", "paid"],
        drop=["started"],
        derive={"hour": f"hour(CAST(started AS {kind}))"},
        public=f"day(CAST(signed AS {kind})) = 2",
        types={"started": "text", "signed": "text"},
        timezone="Asia/Tokyo",
    )
    assert [row["hour"] for row in public] == [9, 0, 18]
    assert [row["hour"] for row in private] == [0]
    assert (found.n_public, found.n_private) == (3, 1)


def test_blanks_around_values_and_strings_for_missing_do_not_matter(ingest):
    _, public, private = ingest(
        "p, 1, x , 0\np, ?, y, 1\nq, 3, ? , 1\n", columns=["firm", "miles", "area", "paid"]
    )
    assert public[1]["miles"] is None
    assert private[0] == {"firm": "q", "miles": 3.0, "area": None, "paid": 1, "_row": 2}


@pytest.mark.slow
def test_three_thousand_features_are_read(ingest):
    n = 3000
    numbers = np.arange(60 * n).reshape(60, n) % 7
    lines = [
        f"{'pq'[i % 2]},{','.join(map(str, row))},{i // 2 % 2}" for i, row in enumerate(numbers.tolist())
    ]
    text = f"firm,{','.join(f'w{j}' for j in range(n))},paid\n" + "\n".join(lines)
    # Declared, as telling 3,000 types from values is a second reading of the file.
    found, public, _ = ingest(text, types={f"w{j}": "number" for j in range(n)})
    assert len(found.columns) == n + 2
    assert [public[1][f"w{j}"] for j in range(n)] == numbers[2].tolist()


# Faults


FAULTY = TRIPS + "q,CANARY,x,0\np,12a,x,0\nq,5,x,\np,5,x,\n"


@pytest.mark.parametrize("rule", ["stop", "quarantine"])
@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("q,CANARY,x,0", "not a number\tCANARY"),
        ("q,inf,x,0", "not a number\tinf"),
        ("q,1_000,x,0", "not a number\t1_000"),
        ("q,5,x,", "label missing\t"),
    ],
)
def test_a_private_row_that_cannot_be_read_is_kept_without_a_label_and_told_to_its_holders_alone(
    ingest, tmp_path, rule, row, kind
):
    found, _, private = ingest(TRIPS + row + "\n", on_bad_rows=rule)
    assert (found.n_private, private[-1]["_row"], private[-1]["paid"]) == (3, 4, None)
    assert math.isfinite(private[-1]["miles"] or 0)
    assert [kept["paid"] for kept in private[:-1]] == [0, 1]
    column = "paid" if "label" in kind else "miles"
    assert (tmp_path / "holders" / "faults.txt").read_text() == f"trips.csv\trow 5\t{column}\t{kind}\n"


@pytest.mark.parametrize("rule", ["stop", "quarantine"])
def test_a_private_row_whose_holder_has_no_name_takes_no_part(ingest, rule):
    text = "firm,who,miles,paid\np,a,1,0\np,b,2,1\nq,,3,1\nq,c,CANARY,1\n"
    if rule == "stop":
        with pytest.raises(
            DataError, match=r'column "who": holder missing in private rows \(details in [^)]*\)\. Every'
        ):
            ingest(text, holder="who")
    else:
        assert [row["who"] for row in ingest(text, holder="who", on_bad_rows=rule)[2]] == ["c"]


def test_a_public_fault_is_told_with_line_value_and_count(ingest):
    with pytest.raises(DataError) as refusal:
        ingest(TRIPS + "p,12a,x,0\np,inf,x,0\np,4,x,0\np,5,x,0\n")
    assert "not a number in 2 public rows, first at row 5: '12a'" in str(refusal.value)


def test_all_faulty_columns_are_told_together(ingest):
    with pytest.raises(DataError) as refusal:
        ingest(FAULTY)
    message = str(refusal.value)
    assert "column \"miles\": not a number in 1 public row at row 6: '12a'; " in message
    assert 'column "paid": label missing in 1 public row at row 8' in message
    assert "private" not in message


def test_quarantined_rows_stay_in_their_zone_and_the_rest_goes_on(ingest, tmp_path):
    found, public, private = ingest(FAULTY + "q,CANARY\n", on_bad_rows="quarantine")
    assert ([row["miles"] for row in public], [row["_row"] for row in private]) == ([1, 2.5], [2, 3, 4, 6, 8])
    assert found.bad_public == 2
    (mine, _) = pq.read_table(tmp_path / "public/quarantine/part-0000.parquet").to_pylist()
    assert mine == {
        "_column": "miles", "_kind": "not a number", "firm": "p", "miles": "12a", "area": "x", "paid": "0"
    }  # fmt: skip
    assert private[-1] == {"firm": None, "miles": None, "area": None, "paid": None, "_row": 8}
    faults = (tmp_path / "holders" / "faults.txt").read_text().splitlines()
    assert [line.split("\t")[1] for line in faults] == ["row 5", "row 7", "line 10"]
    assert faults[-1].endswith("wrong number of fields\tq,CANARY")


def test_a_first_row_that_is_taken_for_a_header_is_not_told(ingest):
    with pytest.raises(DataError) as refusal:
        ingest("q,CANARY,x,0\np,1,x,1\n")
    assert "has the file a header?" in str(refusal.value)
    assert "CANARY" not in str(refusal.value)


def test_lines_that_cannot_be_split_are_rows_of_their_files(ingest, tmp_path):
    found, _, private = ingest(
        TRIPS + "q,ONE\n", TRIPS, TRIPS + "q,TWO,x,0,1,1\nq,THREE\n", on_bad_rows="quarantine"
    )
    assert [file.rows for file in found.private] == [3, 2, 4]
    assert [row["_row"] for row in private if row["firm"] is None] == [4, 4, 5]
    told = (tmp_path / "holders" / "faults.txt").read_text()
    assert all(word in told for word in ("ONE", "TWO", "THREE"))
    where = {"where": "firm = 'p'", "folder": tmp_path / "where"}
    asked = ingest(TRIPS + "q,ONE\n", on_bad_rows="quarantine", **where)[2]
    assert [row["_row"] for row in asked] == [4], "nobody knows that it would not have been asked"


UNCLOSED = [
    # a row, the last line, and how many stand between
    ('"q,3,x,0', "q,3,x,0", 9),
    ('q,3,"x,0', "q,3,x,0", 9),
    ('q,3,x,"0', "q,3,x,0", 9),
    ('q,3,"x,0', 'q,3,"x,0', 9),
    ('q,3,"x,0', '"q,3,x,0', 9),
    ('q,3,"x,0', "", 0),
]
FAR_APART = [('q,3,"x,0', "q,3,x,0", 300_000), ('q,3,"x,0', 'q,3,"x,0', 300_000)]


@pytest.mark.parametrize(
    ("rule", "end", "row", "last", "n_between"),
    [
        *(
            (rule, end, *lines)
            for rule in ("stop", "quarantine")
            for end in ("\n", "\r\n")
            for lines in UNCLOSED
        ),
        *((*how, *lines) for how in (("stop", "\r\n"), ("quarantine", "\n")) for lines in FAR_APART),
    ],
)
def test_a_quote_that_is_not_closed_stops_the_run_in_quarantine_too(
    ingest, tmp_path, rule, row, last, n_between, end
):
    lines = [*TRIPS.splitlines(), row, *["p,1,x,0"] * n_between, last]
    with pytest.raises(DataError, match=r"trips\.csv: .*quote.*\(details in [^)]*\)\. C") as refusal:
        ingest(end.join(lines), on_bad_rows=rule)
    assert "3,x" not in str(refusal.value)
    assert not [*tmp_path.rglob("part-*")]
    assert "\tline 6\t\ta quote that is not closed\t" in (tmp_path / "holders" / "faults.txt").read_text()


def test_broken_quotes_within_a_line_are_put_aside(ingest):
    text = TRIPS + 'q,3,"x"y,0\nq,3,5" x,0\nq,3,"x\n\ny",0\nq,3,"x\ny",0,1\nq,3,x,0\n'
    _, _, private = ingest(text, on_bad_rows="quarantine")
    assert [row["area"] for row in private] == ["x", "z", '5" x', "x\n\ny", "x", None, None]


@pytest.mark.usefixtures("small_batches")
def test_a_faulty_row_is_found_where_it_is_in_a_long_file(ingest, tmp_path):
    lines = [f"{'pq'[i % 2]},{i % 97},x,{i % 2}" for i in range(10_000)]
    lines[7_501] = "q,CANARY,x,0"
    private = ingest("firm,miles,area,paid\n" + "\n".join([*lines, "p,1,x,1"]))[2]
    assert [row["_row"] for row in private if row["paid"] is None] == [7501]
    assert (tmp_path / "holders" / "faults.txt").read_text().split("\t")[1] == "row 7502"


def test_a_broken_line_stops_the_run_without_a_word_of_it(ingest, tmp_path):
    with pytest.raises(DataError) as refusal:
        ingest(TRIPS + "q,CANARY\n")
    assert str(refusal.value).startswith("trips.csv: a row with the wrong number of fields (details in ")
    assert not any("CANARY" in str(error) for error in chain(refusal.value))
    assert "line 6" in (tmp_path / "holders" / "faults.txt").read_text()


@pytest.mark.parametrize(
    ("text", "changes", "told"),
    [
        (TRIPS, {"target": "pade"}, 'dataset.target: no column "pade" (did you mean "paid"?)'),
        (
            TRIPS,
            {"drop": ["aria"], "categorical": ["zzz"]},
            'dataset.drop: no column "aria" (did you mean "area"?)',
        ),
        (
            TRIPS,
            {"public": "firm = 'zz'"},
            "no public rows by the rule \"firm = 'zz'\", with firm read as text",
        ),
        (TRIPS, {"public": "firm IS NOT NULL"}, "no private rows"),
        (TRIPS, {"public": "random 0.000001"}, "no public rows"),
        (TRIPS, {"public": "first 100"}, "no private rows"),
        (TRIPS.replace("y,1", "y,0"), {}, "a single value in the public rows: 0"),
        ("firm,miles,paid\np,1,0\nq,2,0\nq,3,1\n", {}, "a single value in the public rows"),
        ("firm,paid\np,0\np,1\nq,1\n", {}, "no features are left"),
        (TRIPS, {"classes": [7, 8]}, 'no public row has one of them in "paid", where there is 0, 1'),
        ("firm,miles,paid\np,,0\np,NA,1\nq,3,1\n", {}, "every public value is missing in miles"),
        (
            TRIPS,
            {"where": "miles > 1000"},
            "dataset.where = 'miles > 1000' leaves out every row that the rule",
        ),
    ],
)
def test_data_that_cannot_be_learned_from_are_refused_and_nothing_is_left(
    ingest, tmp_path, text, changes, told
):
    with pytest.raises(DataError) as refusal:
        ingest(text, **changes)
    assert told in str(refusal.value)
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"public": "frim = 'p'"}, 'dataset.public: unknown column "frim" (did you mean "firm"?)'),
        ({"public": "firm = 'p'; SELECT 1"}, "dataset.public: "),
        ({"public": "firm"}, "dataset.public: gives a VARCHAR where it must be true or false"),
        ({"where": "miles"}, "dataset.where: gives a DOUBLE"),
        ({"where": "random() < 0.5"}, "dataset.where: the function random()"),
        ({"derive": {"day": "CAST(area AS DATE)"}}, "dataset.derive.day: gives a DATE"),
        ({"derive": {"Miles": "1"}}, "dataset.derive: Miles: the file has a column of this name"),
    ],
)
def test_a_rule_that_is_none_is_refused_by_its_key(ingest, changes, told):
    with pytest.raises(ConfigError) as refusal:
        ingest(TRIPS, **changes)
    assert told in str(refusal.value)


def test_one_feature_is_enough(ingest):
    assert ingest("firm,miles,paid\np,1,0\np,2,1\nq,3,1\n")[0].n_private == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [("paid * 2", 'uses "paid", the target'), ("length(firm)", 'uses "firm", a column of the rule')],
)
def test_no_feature_is_derived_from_the_label_or_from_what_tells_public_rows(ingest, text, told):
    with pytest.raises(ConfigError, match=rf"dataset\.derive\.d: {told}"):
        ingest(TRIPS, derive={"d": text})


def test_more_columns_than_can_be_read_are_refused_and_those_dropped_do_not_count(ingest, monkeypatch):
    monkeypatch.setattr("storage.raw.raw_files.MOST_COLUMNS", 3)
    with pytest.raises(DataError, match=r"trips\.csv: 4 columns would be read, and at most 3 can be"):
        ingest(TRIPS)
    assert ingest(TRIPS, drop=["area"])[0].n_public == 2

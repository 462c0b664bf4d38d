"""A table is read the same whatever format it is in; what cannot be read is told in a line, without a value of a row."""

import gzip
import io
import os
import zipfile

import pytest
from chain import ingest_files
from workbooks import DATE, TIME, workbook

from ldptree.errors import DataError
from schemas.dataset import DatasetSpec
from storage.raw import raw_files
from tasks.data.ingest_plan import RowRules
from tasks.data.read import ZoneFolders

TABLE = [["a", "b"], [1.5, "x"], [2.0, "y z"]]
READ = [("1.5", "x"), ("2", "y z")]
ARFF = "% a remark\n@RELATION r\n\n@attribute a real\n@attribute b {x,'y z'}\n@data\n1.5,x\n2,y z\n"
CANARY = "CANARY"


def zipped(**files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def written(tmp_path, content, name):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows_of(file):
    with raw_files.connect([file]) as connection:
        batches = list(raw_files.stream(connection, file.select(file.columns, file.columns), file, 1024))
    return [row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]


def refusal(path, **how):
    with pytest.raises(DataError) as fault:
        raw_files.inspect(path, **how)
    message = str(fault.value)
    assert message.startswith(path.name)
    assert "\n" not in message
    assert CANARY not in message
    assert fault.value.__context__ is None or CANARY not in str(fault.value.__context__)
    return message


@pytest.mark.parametrize(
    ("content", "name", "how"),
    [
        (ARFF, "a.arff", {"skip": 6, "columns": ("a", "b")}),
        (gzip.compress(b"a,b\n1.5,x\n2,y z\n", mtime=0), "misnamed.txt", {}),
        (workbook({"S": TABLE}), "a.xlsx", {}),
        (workbook({"S": TABLE}), "misnamed.csv", {}),
        (workbook({"empty": [], "S": TABLE}), "a.xlsx", {}),
        (workbook({"other": [["n"], [1]], "S": TABLE}), "a.xlsx", {"sheets": ["S"]}),
        (workbook({"S": TABLE[:2], "T": [TABLE[0], TABLE[2]]}), "a.xlsx", {"sheets": ["S", "T"]}),
        (workbook({"S": [["title"], [], *TABLE]}), "a.xlsx", {"skip": 2}),
        ("A table\nof 2 rows\na,b\n1.5,x\n2,y z\n", "a.csv", {"skip": 2}),
        ("A table\n\n1.5,x\n2,y z\n", "a.csv", {"skip": 1, "columns": ("a", "b")}),
        (
            zipped(**{"in/a.csv": "a;b\n1.5;x\n2;y z\n", "__MACOSX/in/._a.csv": "\0"}),
            "a.zip",
            {"delimiter": ";"},
        ),
    ],
)
def test_a_table_is_the_same_in_every_format(tmp_path, content, name, how):
    file = raw_files.inspect(written(tmp_path, content, name), **how)
    assert (file.columns, rows_of(file)) == (("a", "b"), READ)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_cells_keep_all_that_they_hold(tmp_path):
    cells = [0.1 + 0.2, 1e-300, 12345678901234, (45443, DATE), (45443.375, TIME), True, " two\nlines ", None]
    sheet = [[f"c{i}" for i in range(8)], cells, ["007"]]
    file = raw_files.inspect(written(tmp_path, workbook({"S": sheet}), "a.xlsx"))
    first, second = rows_of(file)
    assert first[:3] == ("0.30000000000000004", "1e-300", "12345678901234")
    assert first[3:] == ("2024-05-31", "2024-05-31 09:00:00", "true", " two lines ", None)
    assert second == ("007", *[None] * 7)


LOCKED = (
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + "EncryptedPackage".encode("utf-16-le") + bytes(400)
)
WHOLE = workbook({"S": [["a", "b"], [1, CANARY]]})


def encrypted_zip():
    content = bytearray(zipped(**{"a.csv": f"a,b\n1,{CANARY}\n"}))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + place] |= 1
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "name", "how", "told"),
    [
        (LOCKED, "a.xlsx", {}, "encrypted"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "a.xls", {}, "truncated or damaged"),
        (WHOLE[: len(WHOLE) // 2], "a.xlsx", {}, "truncated or damaged"),
        (WHOLE.replace(b"PK\x01\x02", b"PK\x01\x03", 1), "a.xlsx", {}, "truncated or damaged"),
        (zipped(**{"xl/workbook.xml": "<no"}), "a.xlsx", {}, "truncated or damaged"),
        (zipped(**{"a.csv": "a\n1\n"}), "a.csv", {}, "no workbook, or truncated or damaged"),
        (
            workbook({"S": TABLE, "T": TABLE}),
            "a.xlsx",
            {},
            "2 sheets have cells (S, T). Say in dataset.sheet",
        ),
        (workbook({"S": TABLE}), "a.xlsx", {"sheets": ["X"]}, "no sheet X. It has S."),
        (workbook({"S": TABLE, "T": [["b", "a"]]}), "a.xlsx", {"sheets": ["S", "T"]}, "another header"),
        (workbook({"S": []}), "a.xlsx", {}, "none of its sheets has cells"),
        (workbook({"S": [["a", "b"]]}), "a.xlsx", {}, "a header and no rows"),
        ("a,b\n1,2\n", "a.csv", {"sheets": ["S"]}, "no workbook"),
        ("a,b\n1,2\n", "a.csv", {"skip": 5}, "no line is left below the 5 of dataset.skip"),
        (encrypted_zip(), "a.zip", {}, "encrypted"),
        (
            zipped(**{"a.csv": "a\n1\n", "b.csv": "a\n1\n"}),
            "a.zip",
            {},
            "archive with 2 files that could be the table",
        ),
        (zipped(**{"../a.csv": "a\n1\n"}), "a.zip", {}, "archive with 0 files that could be the table"),
        (zipped(**{"a.xlsx": WHOLE}), "a.zip", {}, "unpack or convert it"),
        (zipped(**{"a.csv": f"a,b\n1,{CANARY}\n" * 99})[:60], "a.zip", {}, "encrypted, damaged, or packed"),
        (zipped(**{"a.csv": "\0" * (80 << 20)}), "a.zip", {}, "unpacks to too much"),
        (zipped(**{"xl/workbook.xml": "\0" * (80 << 20)}), "a.xlsx", {}, "truncated or damaged"),
        (zipped(**{"a.csv": b"a,b\n1,caf\xe9\n"}), "a.zip", {}, "not UTF-8"),
        (ARFF, "a.arff", {}, "an ARFF file, which ldptree does not read. Convert it to CSV"),
        ("\n" * 40 + ARFF, "a.txt", {}, "an ARFF file"),
        (gzip.compress(ARFF.encode(), mtime=0), "a.arff.gz", {}, "an ARFF file"),
    ],
    ids=lambda value: None if isinstance(value, str | dict) else "bytes",  # a zip holds the time
)
def test_what_cannot_be_read_is_told_in_one_line(tmp_path, content, name, how, told):
    assert told in refusal(written(tmp_path, content, name), **how)


def test_a_damaged_byte_of_a_zip_is_found(tmp_path):
    content = bytearray(zipped(**{"a.csv": os.urandom(2000).hex() + "\n1\n"}))
    content[300] ^= 1
    assert "encrypted, damaged, or packed" in refusal(written(tmp_path, bytes(content), "a.zip"))


# Bad rows are the same in every format: a public one is quoted, a private one never.

ROWS = [["who", "x", "y"], *[["p" if i < 6 else "q", i, i % 2] for i in range(40)]]


def spread(rows, form):
    if form == "xlsx":
        return workbook({"S": rows})
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    return zipped(**{"t.csv": text}) if form == "zip" else gzip.compress(text.encode(), mtime=0)


def ingested(tmp_path, content, form, **how):
    path = written(tmp_path, content, f"t.{form}")
    spec = DatasetSpec(
        name="t", path=(str(path),), target="y", public="who = 'p'", types={"x": "number"}, **how
    )
    zones = ZoneFolders(
        public=tmp_path / "public", holders=tmp_path / "holders", faults=tmp_path / "faults.txt"
    )
    return ingest_files(RowRules(dataset=spec, seed=0), [path], zones)


@pytest.mark.parametrize("form", ["xlsx", "csv.gz", "zip"])
def test_a_bad_row_is_told_by_its_zone(tmp_path, form):
    rows = [list(row) for row in ROWS]
    rows[3][1], rows[20][1] = "oops", CANARY
    content = spread(rows, form)
    with pytest.raises(DataError) as fault:
        ingested(tmp_path, content, form)
    assert "1 public row at row 3: 'oops'. " in str(fault.value)
    assert CANARY not in str(fault.value)
    assert CANARY in (tmp_path / "faults.txt").read_text()
    found = ingested(tmp_path, content, form, on_bad_rows="quarantine")
    assert (found.n_public, found.n_private, found.bad_public) == (5, 34, 1)


@pytest.mark.parametrize("form", ["csv.gz", "zip"])
def test_a_line_that_cannot_be_split_is_a_private_row(tmp_path, form):
    rows = [list(row) for row in ROWS]
    rows[20] = [CANARY, "1"]
    content = spread(rows, form)
    with pytest.raises(DataError, match="wrong number of fields") as fault:
        ingested(tmp_path, content, form)
    assert CANARY not in str(fault.value)
    found = ingested(tmp_path, content, form, on_bad_rows="quarantine")
    assert (found.n_public, found.n_private, found.bad_public) == (6, 34, 0)

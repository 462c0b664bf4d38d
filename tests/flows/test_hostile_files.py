"""A file that was made to hang or kill its reader ends a command with one message, a known exit code, and nothing written.

Each command runs in a process whose memory and time of a processor are limited, so that what takes gigabytes or minutes fails
here, too.
"""

from __future__ import annotations

import gzip
import io
import re
import resource
import subprocess
import sys
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from first_fast import first_fast
from workbooks import workbook

MOST_MEMORY = 4 << 30
"""Of a process: 2 GiB more than the libraries take for themselves."""
MOST_SECONDS = 60
"""Of a processor."""
LONGEST_MESSAGE = 8_000
BASE = 'name = "t"\n[dataset]\nname = "t"\npath = "rows.csv"\ntarget = "y"\npublic = "random 0.5"\n'
GOOD = "x,y\n" + "1,a\n2,b\n" * 100
RUN = """
import sys, ldptree
from ldptree.errors import LdptreeError
try:
    ldptree.run(sys.argv[1])
except LdptreeError as error:
    sys.exit(print(error, file=sys.stderr) or error.exit_code)
"""
COMMAND = "import sys; from flows.command.main import main; main(sys.argv[1:])"


def changed(part, change, content=None):
    """A workbook, of which one part is changed."""
    whole = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content or workbook({"S": [["x", "y"], [1, "a"], [2, "b"]]}))) as source,
        zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as sink,
    ):
        for name in source.namelist():
            text = source.read(name).decode()
            sink.writestr(name, change(text) if part in name else text)
    return whole.getvalue()


def with_cell(place):
    row = place.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    cell = f'<row r="{row}"><c r="{place}"><v>1</v></c></row></sheetData>'
    return changed("sheet1", lambda text: text.replace("</sheetData>", cell))


def shared_texts():
    """A text of 8 MB that a thousand cells show."""
    text = "<sst><si><t>" + "x" * (8 << 20) + "</t></si></sst>"
    rows = "".join(f'<row r="{n}"><c r="A{n}" t="s"><v>0</v></c></row>' for n in range(4, 1004))
    content = changed("sheet1", lambda old: old.replace("</sheetData>", f"{rows}</sheetData>"))
    link = '<Relationship Id="t" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings" '
    content = changed(
        "workbook.xml.rels", lambda old: old.replace("</R", link + 'Target="sharedStrings.xml"/></R'), content
    )
    whole = io.BytesIO(content)
    with zipfile.ZipFile(whole, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", text)
    return whole.getvalue()


def repeated_rows():
    """An OpenDocument sheet whose one cell stands in every row and column."""
    home = "urn:oasis:names:tc:opendocument:xmlns"
    names = f'xmlns:office="{home}:office:1.0" xmlns:table="{home}:table:1.0"'
    cell = (
        '<table:table-cell table:number-columns-repeated="1000" office:value-type="float" office:value="1"/>'
    )
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr(
            "content.xml",
            f'<office:document-content {names}><office:body><office:spreadsheet><table:table table:name="S">'
            f'<table:table-row table:number-rows-repeated="100000">{cell}</table:table-row></table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        )
    return whole.getvalue()


def long_list():
    """An archive that lists a hundred thousand files."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for number in range(60_000):
            archive.writestr(f"a file whose name is as long as forty letters {number}", "")
    return whole.getvalue()


def many_rows():
    whole = io.BytesIO()
    table = pa.table({name: pa.repeat(pa.scalar(1, pa.int8()), 30_000_000) for name in "xy"})
    pq.write_table(table, whole, compression="zstd")
    return whole.getvalue()


def long_values(length, rows):
    """One long text that every row has, of which the file holds it once."""
    whole = io.BytesIO()
    texts = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), ["q" * length])
    pq.write_table(pa.table({"s": texts, "y": [number % 2 for number in range(rows)]}), whole)
    return whole.getvalue()


def with_pages(header):
    """A Parquet file of 32 MB, of whose pages this header over and over is left."""
    content = io.BytesIO()
    table = pa.table({name: pa.array(range(2_000_000), pa.int64()) for name in "xy"})
    pq.write_table(table, content, compression="none", use_dictionary=False, write_statistics=False)
    chunk = pq.read_metadata(content).row_group(0).column(0)
    start, size = chunk.data_page_offset, chunk.total_compressed_size
    whole = bytearray(content.getvalue())
    whole[start : start + size] = (header * (size // len(header) + 1))[:size]
    return bytes(whole)


def wide_rows():
    names = ",".join(f"c{number}" for number in range(5_000))
    return f"{names},y\n{'1,' * 5_000}1\n".encode()


def many_sheets(number, rows):
    """A workbook whose sheets are all the same part of it."""
    sheet = '<sheet name="S" sheetId="1" r:id="r1"/>'
    content = changed(
        "sheet1", lambda text: re.sub("<sheetData>.*</sheetData>", f"<sheetData>{rows}</sheetData>", text)
    )
    sheets = "".join(sheet.replace('"S"', f'"S{i}"') for i in range(number))
    return changed("xl/workbook.xml", lambda text: text.replace(sheet, sheets), content)


def many_fields(ends):
    """A CSV of two columns, of which a line has two hundred thousand."""
    return ends.join([b"x,y", b"1,a", b",".join([b"1"] * 200_000), *[b"2,b"] * 100, b""])


TOO_LARGE = "takes more than 2 GiB of memory to read, perhaps for a single cell far from the others. Save the sheet as CSV."
HOSTILE = {
    "far.xlsx": (lambda: with_cell("XFD1048576"), 3, TOO_LARGE),
    "rather_far.xlsx": (lambda: with_cell("CV1048576"), 3, TOO_LARGE),
    "repeated.ods": (repeated_rows, 3, TOO_LARGE),
    "texts.xlsx": (shared_texts, 3, TOO_LARGE),
    "many.xlsx": (lambda: many_sheets(2_000, "<row></row>" * 5_000_000), 3, "2,000 sheets"),
    "bomb.xlsx": (lambda: changed("sheet1", lambda _: " " * (80 << 20)), 3, "no workbook, or truncated or damaged"),
    "nested.xlsx": (lambda: changed("sheet1", lambda _: "<a>" * (1 << 20)), 3, "none of its sheets has cells"),
    "list.zip": (long_list, 3, "a zip archive with 60,000 files"),
    "blank.arff": (lambda: b"\n" * 40_000 + b"@relation r\n@data\n1\n", 3, "an ARFF file"),
    "blank.csv": (lambda: b"\r\n" * 3_000_000 + b"x,y\r\n1,a\r\n", 3, "characters are blank lines. Delete them."),
    "percent.csv": (lambda: b" \n" * 2_000 + b"%\n" * 30_000, 2, 'has no column "y"; it has %'),
    "bomb.csv.gz": (lambda: gzip.compress(b"x,y\n" + b"1,a\n2,b\n" * (12 << 20), 9), 3, "more than 200 times its size"),
    "rows.parquet": (many_rows, 3, "no table is packed so well"),
    "longer.parquet": (lambda: long_values(3_000_000, 500), 3, 'the texts of column "s" are so long'),
    "long.parquet": (lambda: long_values(100_000, 30_000), 3, 'the texts of column "s" are so long'),
    "list.parquet": (lambda: with_pages(b"\xf9\xf3" + b"\x80" * 5 + b"\x20\0"), 3, "damaged"),
    "zeros.parquet": (lambda: with_pages(b"\0"), 3, "damaged"),
    "pages.parquet": (lambda: with_pages(b"\x15\0" * 3 + b"\0"), 3, "more than 524,288 pages"),
    "deep.parquet": (lambda: with_pages(b"\x19"), 3, "damaged"),
    "wide.csv": (wide_rows, 3, "at most 4,000 can be"),
    "repeated.csv": (lambda: b"x," * 60_000 + b"y\n" + b"1," * 60_000 + b"1\n", 3, "at most 4,000 can be"),
    "fields.csv": (lambda: many_fields(b"\n"), 3, "line 3: 200,000 fields"),
    "returns.csv": (lambda: many_fields(b"\r"), 3, "200,000 fields"),
    "line.csv": (lambda: b"x,y\n" + b"1" * (9 << 20), 3, "line"),
    "bytes.csv": (lambda: b"x,y\n" + bytes(1 << 20), 3, "NUL byte"),
}  # fmt: skip
CONFIGURATIONS = {
    "keys": ("".join(f"key_{n} = 1\n" for n in range(20_000)) + BASE, "20,000 problems"),
    "columns": (BASE + f"types = {{{', '.join(f'c{n} = 1' for n in range(20_000))}}}\n", "and 19,980 more"),
    "dots": ("a." * 100_000 + "a = 1\n" + BASE, "thousands of dots in a line"),
    "brackets": (f"a = {'[' * 100_000}{']' * 100_000}\n{BASE}", "nested too deep"),
    "digits": (f"seed = {'1' * 5_000}\n{BASE}", "thousands of digits"),
    "hexadecimal": (f"seed = 0x{'f' * 100_000}\n{BASE}", "too long to show"),
    "name": (f"{'k' * 900_000} = 1\n{BASE}", "unknown key"),
    "size": (BASE + "#" * (2 << 20), "more than 1 MiB"),
    "twice": (BASE + "drop = [" + "'x', " * 200_000 + "]\n", "named twice: x"),
}


def limit():
    for kind, most in ((resource.RLIMIT_DATA, MOST_MEMORY), (resource.RLIMIT_CPU, MOST_SECONDS)):
        resource.setrlimit(kind, (most, most))


def refused(folder, code, words):
    """The message of a command that is refused, in a process of little memory; what is in its folder stays as it was."""
    before = sorted(path.name for path in folder.iterdir())
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )
    assert done.returncode > 0, done.stderr[-2_000:]
    assert len(done.stderr) < LONGEST_MESSAGE
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == before
    return done.returncode, done.stderr


CASES = [(command, name) for command in ("init", "run") for name in HOSTILE]
CASES.remove(("init", "bomb.csv.gz"))  # of which it looks at the first rows alone
CASES.remove(("run", "percent.csv"))  # which has columns, and none that is named
CASES.remove(("run", "repeated.csv"))  # which tells no names apart, and refuses the first that stands twice
FAST = (("init", "far.xlsx"), ("run", "fields.csv"), ("run", "bomb.csv.gz"))


@pytest.mark.parametrize(("command", "name"), first_fast(*CASES, fast=FAST))
def test_a_file_that_was_made_to_hang_or_kill_ends_in_one_sentence(tmp_path, name, command):
    make, code, told = HOSTILE[name]
    (tmp_path / name).write_bytes(make())
    (tmp_path / "run.toml").write_text(BASE.replace("rows.csv", name))
    words = ["init", name, "--target", "y", "--public", "random 0.5", "--out", "new.toml"]
    code_run, said = refused(tmp_path, *((COMMAND, words) if command == "init" else (RUN, ["run.toml"])))
    assert code_run == code
    assert name in said
    assert told in said


@pytest.mark.parametrize("name", first_fast(*CONFIGURATIONS, fast=("keys", "dots")))
def test_a_configuration_that_was_made_to_hang_ends_in_one_message(tmp_path, name):
    text, told = CONFIGURATIONS[name]
    (tmp_path / "rows.csv").write_text(GOOD)
    (tmp_path / "run.toml").write_text(text)
    code, said = refused(tmp_path, COMMAND, ["run", "run.toml", "--plan"])
    assert (code, told in said) == (2, True)


@pytest.mark.parametrize(
    "text", first_fast("[" * (1 << 20), '{"a":' * (1 << 18), "1" * (1 << 20), "\0" * (65 << 20))
)
def test_a_model_that_was_made_to_kill_its_reader_is_none(tmp_path, text):
    (tmp_path / "rows.csv").write_text(GOOD)
    (tmp_path / "model.json").write_text(text)
    code, said = refused(tmp_path, COMMAND, ["predict", "model.json", "rows.csv", "--out", "out.csv"])
    assert code in (3, 5)
    assert "model.json" in said

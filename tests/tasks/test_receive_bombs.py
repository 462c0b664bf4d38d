"""An inbox that anybody can write to: what a file says costs no more than what it has, and is never counted for more."""

import itertools
import json
import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import example_protocol
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from flows.command.cli import app
from ldptree.client import Client
from ldptree.coins import Words
from ldptree.errors import ConfigError, DataError
from ldptree.mechanisms import CHOICES
from storage.reports import lines as report_lines
from storage.reports.shards import MOST_REPORTS
from tasks.answers.receive import IMPOSSIBLE, SEEN, UNREADABLE, Received, receive_folder

NAMES = [name for name in CHOICES[1:] if name != "laplace"]
SOON = 30.0
"""Seconds, on a busy machine: what hung took minutes."""
SHARD = 65_536


@pytest.fixture
def room(tmp_path):
    """A protocol's file and a folder for reports."""

    def made(protocol):
        (tmp_path / "protocol.json").write_text(protocol.to_json())
        (tmp_path / "reports").mkdir(exist_ok=True)
        return tmp_path / "protocol.json", tmp_path / "reports"

    return made


def written(path, protocol, column, name="value", **settings):
    """A file that says it is a shard of this protocol's reports."""
    meta = {
        "protocol": protocol.digest,
        "round": "1",
        "form": "reports",
        "holders": str(len(column)),
        "id": "0" * 32,
    }
    table = pa.table({name: column}).replace_schema_metadata(meta)
    pq.write_table(table, path, **({"compression": "zstd", "compression_level": 1} | settings))
    return path.stat().st_size


def reports_of(protocol, values):
    """The column that the step perturb writes."""
    mechanism = protocol.mechanism
    reports = mechanism.randomize(values, Words.seeded(np.random.SeedSequence(1)))
    if reports.ndim == 1:
        return "value", pa.array(reports)
    packed = mechanism.pack(reports)
    buffer = pa.py_buffer(np.ascontiguousarray(packed))
    return "bits", pa.Array.from_buffers(pa.binary(packed.shape[1]), len(packed), [None, buffer])


def soon(act):
    start = time.monotonic()
    result = act()
    assert time.monotonic() - start < SOON
    return result


def one_client(protocol):
    return Client(protocol, max_epsilon=64.0, memory={}).report((2.0, 0.5), "yes").to_json()


@pytest.mark.parametrize("epsilon", [1.0, 60.0])
@pytest.mark.parametrize("name", NAMES)
def test_a_whole_shard_of_people_who_all_have_the_same_is_taken(room, name, epsilon):
    """The most alike that honest reports can be, as the pipeline writes them."""
    if (name, epsilon) == ("signed_subset", 60.0):
        pytest.skip("its coins do not reach so far")
    path, folder = room(protocol := example_protocol(name, epsilon=epsilon))
    n = SHARD if name == "grr" else 4_096  # of the others an honest file is many times as large as it need be
    column, reports = reports_of(protocol, np.zeros(n, dtype=np.int64))
    written(folder / "shard.parquet", protocol, reports, column)
    received = receive_folder(path, folder)
    assert (received.accepted, +received.rejected, received.refused) == (n, {}, {})


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 60.0])
def test_a_million_holders_in_four_kilobytes_are_none(room, epsilon):
    path, folder = room(protocol := example_protocol("grr", epsilon=epsilon))
    size = written(folder / "evil.parquet", protocol, pa.array(np.zeros(10**6, np.uint32)))
    assert size < 4_000
    (folder / "good.jsonl").write_text(one_client(protocol))
    received = soon(lambda: receive_folder(path, folder))
    assert received.accepted == 1
    assert received.refused == {
        "evil.parquet": "it says that it holds 1,000,000 reports, a file has at most 131,072"
    }


@pytest.mark.parametrize("pattern", ["constant", "sorted", "alternating", "repeated"])
def test_reports_in_fewer_bits_than_chance_takes_are_none(room, pattern):
    """However the reports are arranged so that they fold well, and whatever counts they would give."""
    path, folder = room(protocol := example_protocol("grr", epsilon=1.0))
    honest = np.asarray(reports_of(protocol, np.zeros(MOST_REPORTS, dtype=np.int64))[1])
    values = {
        "constant": np.zeros(MOST_REPORTS, np.uint32),
        "sorted": np.sort(honest),
        "alternating": np.arange(MOST_REPORTS, dtype=np.uint32) % 5,
        "repeated": np.tile(honest[:512], MOST_REPORTS // 512),
    }[pattern]
    size = written(folder / "evil.parquet", protocol, pa.array(values))
    with pytest.raises(
        DataError, match=r"131,072 reports in [\d,]+ bytes: drawn by chance.* take [\d,]+ bytes"
    ):
        receive_folder(path, folder).totals()
    assert size < 8_000


def test_wide_reports_that_fold_to_nothing_are_none(room):
    path, folder = room(protocol := example_protocol("oue", classes=tuple(range(2_000)), positive=None))
    n_bytes = protocol.mechanism.report_bytes
    zeros = pa.py_buffer(bytes(MOST_REPORTS * n_bytes))
    reports = pa.Array.from_buffers(pa.binary(n_bytes), MOST_REPORTS, [None, zeros])
    assert written(folder / "evil.parquet", protocol, reports, "bits") < MOST_REPORTS * n_bytes / 1_000
    with pytest.raises(DataError, match=r"1 file was refused, and nothing in it counts \('evil\.parquet': "):
        soon(lambda: receive_folder(path, folder)).totals()


def varint(number, width=0):
    """As Thrift's compact encoding has a whole number, in so many bytes at least."""
    left, digits = number << 1, []
    while left or not digits or len(digits) < width:
        digits.append(left & 127 | 128)
        left >>= 7
    return bytes([*digits[:-1], digits[-1] & 127])


def lied(path, number, instead, places):
    """The file's own description with a number replaced, in each of its places that is chosen."""
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    body, footer, end = content[: -8 - length], content[-8 - length : -8], content[-8:]
    code = varint(number)
    at = [m.start() for m in re.finditer(re.escape(code), footer)]
    for place, start in enumerate(at):
        if places >> place & 1:
            footer = footer[:start] + varint(instead, len(code)) + footer[start + len(code) :]
    path.write_bytes(body + footer + end)
    return len(at)


@pytest.mark.parametrize("places", range(1, 16))
def test_a_file_that_lies_about_its_number_of_reports_is_no_file_of_reports(room, places):
    path, folder = room(protocol := example_protocol("grr", epsilon=60.0))
    evil = folder / "evil.parquet"
    written(evil, protocol, pa.array(np.zeros(300_000, np.uint32)))
    assert lied(evil, 300_000, 70_000, places) == 4
    received = soon(lambda: receive_folder(path, folder))
    assert received.accepted in (0, 70_000)  # where all places agree, it holds as many as it says
    assert received.accepted or received.refused or +received.rejected == {UNREADABLE: 1}


def test_a_page_that_unfolds_to_more_than_its_file_says_is_not_unfolded(room):
    """64 MB of zeros in a page of a file that says it holds a few reports."""
    path, folder = room(protocol := example_protocol("grr", epsilon=60.0))
    evil, n = folder / "evil.parquet", 2**24
    plain = {
        "use_dictionary": False,
        "data_page_size": 2**30,
        "write_batch_size": n,
        "write_page_index": False,
    }
    size = written(evil, protocol, pa.array(np.zeros(n, np.uint32)), row_group_size=n, **plain)
    assert size < 60_000
    unfolded = pq.read_metadata(evil).row_group(0).column(0).total_uncompressed_size
    assert lied(evil, n, 1_000, 2**9 - 1) >= 3
    assert lied(evil, unfolded, 4_000, 2**9 - 1) >= 1
    held = pa.total_allocated_bytes()
    with pytest.raises(DataError, match=r"bytes unfold to 67,[\d,]+, which is more than 1,000 reports take"):
        receive_folder(path, folder).totals()
    assert pa.total_allocated_bytes() - held < 2**20


NO_HEADERS = {
    "list": b"\xf9\xf3" + b"\x80" * 5 + b"\x20\0",
    "zeros": b"\0",
    "lists": b"\x19" * 9_999,
    "structs": b"\x1c" * 9_999,
    "numbers": b"\x15\0" * 4_999,
    "length": b"\x18" + b"\xff" * 8 + b"\x7f",
}


@pytest.mark.parametrize("kind", NO_HEADERS)
def test_a_page_whose_header_is_none_is_no_file_of_reports(room, kind):
    path, folder = room(protocol := example_protocol("grr"))
    evil, header = folder / "evil.parquet", NO_HEADERS[kind]
    name, column = reports_of(protocol, np.zeros(9_999, dtype=np.int64))
    plain = {"compression": "none", "compression_level": None, "use_dictionary": False}
    written(evil, protocol, column, name, write_statistics=False, **plain)
    content, start = evil.read_bytes(), pq.read_metadata(evil).row_group(0).column(0).data_page_offset
    evil.write_bytes(content[:start] + header + content[start + len(header) :])
    received = receive_folder(path, folder)
    assert (received.accepted, +received.rejected, received.refused) == (0, {UNREADABLE: 1}, {})


def test_columns_that_share_their_pages_are_no_file_of_reports(room):
    """A description may point to the same bytes over and over."""
    path, folder = room(protocol := example_protocol("grr", epsilon=60.0))
    evil = folder / "evil.parquet"
    written(evil, protocol, pa.array(np.zeros(200, np.uint32)), row_group_size=100)
    columns = [pq.read_metadata(evil).row_group(i).column(0) for i in range(2)]
    first, second = (c.dictionary_page_offset for c in columns)
    data = [c.data_page_offset for c in columns]
    lied(evil, columns[0].total_compressed_size, columns[0].total_compressed_size + 10_000, 1)
    received = receive_folder(path, folder)
    assert second > first
    assert data[1] > data[0]
    assert (received.accepted, received.rejected[UNREADABLE]) == (0, 1)


def test_a_description_of_any_length_is_not_read(room):
    path, folder = room(protocol := example_protocol("grr"))
    table = pa.table({"value": pa.array([0], pa.uint32())})
    table = table.replace_schema_metadata({"form": "reports", "long": "x" * 2**21})
    pq.write_table(table, folder / "long.parquet")
    (folder / "good.jsonl").write_text(one_client(protocol))
    received = receive_folder(path, folder)
    assert received.accepted == 1
    assert "its description alone has" in received.refused["long.parquet"]


@settings(max_examples=60)
@given(
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6)
)
def test_no_damaged_shard_stops_anything_or_counts_for_more(tmp_path_factory, flips):
    folder = tmp_path_factory.mktemp("inbox")
    protocol = example_protocol("grr")
    (folder / "reports").mkdir()
    (folder / "protocol.json").write_text(protocol.to_json())
    path = folder / "reports" / "a.parquet"
    written(path, protocol, reports_of(protocol, np.zeros(300, dtype=np.int64))[1])
    content = bytearray(path.read_bytes())
    for at, byte in flips:
        content[int(at * len(content))] = byte
    path.write_bytes(content)
    received = receive_folder(folder / "protocol.json", folder / "reports")
    assert received.accepted <= 300
    assert received.accepted or received.rejected.total() or received.refused


def nasty(good):
    """Lines that are no reports, each of a kind of its own."""
    fields = json.loads(good)
    return [
        "[" * 900,
        '{"a":' * 150,
        json.dumps(fields | {"round": 10**400}).replace("10", "1e999", 1),
        good.replace('"round":1', '"round": 1e999'),
        good.replace('"round":1', '"round": ' + "9" * 900),
        good.replace('"round":1', '"round": -0'),
        good.replace('"round":1', '"round": true'),
        json.dumps(fields | {"report": "é"}),
        json.dumps(fields | {"id": "A" * 32}),
        json.dumps(fields | {"protocol": "\ud800"}),
        good.encode().decode().replace('"', "'"),
        "\x00" * 40,
        "null",
        '"' + "\\u0000" * 100 + '"',
    ]


def test_lines_of_every_nasty_kind_are_counted_once_each_and_soon(room):
    path, folder = room(protocol := example_protocol("oue"))
    good = one_client(protocol)
    lines = nasty(good)
    (folder / "a.jsonl").write_text("\n".join([*lines * 200, good]))
    received = soon(lambda: receive_folder(path, folder))
    assert received.accepted == 1
    assert received.rejected.total() == 200 * len(lines)


def test_a_file_with_a_line_of_any_length_is_refused_and_the_others_count(room):
    """A line that is longer than 32 MiB is not looked through for its end."""
    path, folder = room(protocol := example_protocol("oue"))
    good = [one_client(protocol) for _ in range(4)]
    (folder / "a.jsonl").write_text(good[0])
    (folder / "b.jsonl").write_text(f"{good[1]}\n{'x' * 34_000_000}\n{good[1]}")
    (folder / "c.jsonl").write_text("\n".join(good[2:]))
    received = soon(lambda: receive_folder(path, folder))
    assert (received.accepted, +received.rejected) == (3, {})
    assert received.refused == {"b.jsonl": "a line in it has more than 16,777,216 bytes"}


def test_a_file_is_read_by_its_own_name_whatever_the_name_is(room):
    path, folder = room(protocol := example_protocol("oue"))
    names = [
        "a.jsonl",
        "*.jsonl",
        "?.jsonl",
        "[a].jsonl",
        "{a,b}.jsonl",
        "~.jsonl",
        "'\".jsonl",
        "a\nb.jsonl",
    ]
    (folder / "of=1").mkdir()
    for name in (*names, "of=1/a.jsonl"):
        (folder / name).write_text(one_client(protocol))
    (folder / os.fsdecode(b"\xff.jsonl")).write_text(one_client(protocol))
    received = receive_folder(path, folder)
    assert (received.accepted, +received.rejected) == (len(names) + 1, {})
    assert received.refused == {"\udcff.jsonl": "its name is no text in UTF-8"}


def test_a_file_that_is_gone_when_its_turn_comes_is_refused_and_the_others_count(room):
    _, folder = room(protocol := example_protocol("oue"))
    (folder / "a.jsonl").write_text(one_client(protocol))
    received = Received.under(protocol)
    received.add_lines([folder / "gone.jsonl", folder / "a.jsonl"], folder)
    assert received.accepted == 1
    assert received.refused == {"gone.jsonl": "cannot be read (No such file or directory)"}


def test_a_file_that_is_written_while_it_is_read_loses_no_line_that_was_there(room):
    path, folder = room(protocol := example_protocol("oue"))
    lines = [one_client(protocol) for _ in range(50)]
    (folder / "a.jsonl").write_text("\n".join(lines[:20]) + "\n")
    is_over = threading.Event()

    def write():
        with (folder / "a.jsonl").open("a") as file:
            for line in itertools.cycle(lines):
                if is_over.is_set():
                    return
                file.write(f"{line}\n")
                file.flush()
                time.sleep(1e-4)

    with ThreadPoolExecutor() as pool:
        pool.submit(write)
        try:
            received = receive_folder(path, folder)
        finally:
            is_over.set()
    assert 20 <= received.accepted <= 50
    assert set(+received.rejected) <= {SEEN, UNREADABLE}
    assert received.rejected[UNREADABLE] <= 1


def test_more_lines_than_are_held_at_once_are_each_judged_once(room, monkeypatch):
    """Every third is impossible, and every fifth came before."""
    monkeypatch.setattr(report_lines, "BATCH", 2_048)
    monkeypatch.setattr(report_lines, "FILES", 2)
    path, folder = room(protocol := example_protocol("oue"))
    line = json.loads(one_client(protocol))

    def of(number):
        report = {"report": "/w=="} if number % 3 == 0 else {}
        return json.dumps(line | {"id": f"{number - number % 5 // 4:032x}"} | report)

    for start in range(0, 15_000, 3_000):
        (folder / f"{start:05}.jsonl").write_text("\n".join(map(of, range(start, start + 3_000))))
    received = receive_folder(path, folder)
    possible = [number for number in range(15_000) if number % 3]
    first = {number - number % 5 // 4 for number in possible}
    assert received.accepted == len(first)
    assert +received.rejected == {IMPOSSIBLE: 5_000, SEEN: len(possible) - len(first)}


def test_nothing_is_printed_while_lines_are_read(tmp_path, capfd):
    (tmp_path / "a.jsonl").write_text("rubbish\n" * 200_000)
    with report_lines.ReportLines.opened() as lines:
        lines.connection.execute("SET progress_bar_time = 0")
        lines.read([tmp_path / "a.jsonl"], 1_000, "SELECT 'x' AS fault FROM reports", {})
        assert lines.count_faults() == {"x": 200_000}
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ["gzip", "zstd", "zip"])
def test_a_folded_file_under_the_name_of_lines_is_counted_and_not_unfolded(room, kind):
    import gzip
    import io
    import zipfile

    path, folder = room(protocol := example_protocol("oue"))
    lines = (one_client(protocol) + "\n").encode() * 100_000
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("r.jsonl", lines)
    folded = {"gzip": gzip.compress, "zstd": pa.Codec("zstd").compress, "zip": lambda _: packed.getvalue()}
    (folder / "r.jsonl").write_bytes(folded[kind](lines))
    with pytest.raises(DataError, match=r"no report was accepted \(rejected: \d+ not a report\)"):
        soon(lambda: receive_folder(path, folder)).totals()


def test_what_is_no_plain_file_is_named_and_not_waited_for(room):
    path, folder = room(protocol := example_protocol("oue"))
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "zeros.parquet").symlink_to("/dev/zero")
    (folder / "gone.jsonl").symlink_to(folder / "nowhere")
    (folder / "good.jsonl").write_text(one_client(protocol))
    received = soon(lambda: receive_folder(path, folder))
    assert received.accepted == 1
    assert received.passed_over == ["gone.jsonl", "pipe.jsonl", "zeros.parquet"]


def test_a_folder_that_is_a_link_is_named_and_one_that_cannot_be_listed_is_refused(room, monkeypatch):
    path, folder = room(protocol := example_protocol("oue"))
    (folder / "deep").mkdir()
    (folder / "deep" / "good.jsonl").write_text(one_client(protocol))
    (folder / "link").symlink_to(folder / "deep")
    received = receive_folder(path, folder)
    assert (received.accepted, received.passed_over) == (1, ["link"])
    listed = os.scandir

    def closed(place):
        if os.fspath(place).endswith("deep"):
            raise PermissionError(13, "Permission denied", os.fspath(place))
        return listed(place)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(ConfigError, match=r"--reports .*deep: cannot be read \(Permission denied\)"):
        receive_folder(path, folder)


def run(*words):
    return CliRunner().invoke(app, ["aggregate", *map(str, words)])


def test_the_command_says_in_one_line_which_files_it_refused_and_why(room):
    path, folder = room(protocol := example_protocol("grr"))
    for name in "ab":
        written(folder / f"{name}.parquet", protocol, pa.array(np.zeros(10**6, np.uint32)))
    done = run("--protocol", path, "--reports", folder)
    assert isinstance(done.exception, DataError)
    assert done.exception.exit_code == 3
    assert "2 files were refused" in str(done.exception)
    (folder / "good.jsonl").write_text(one_client(protocol))
    shown = run("--protocol", path, "--reports", folder, "--json")
    assert shown.exit_code == 0
    (line,) = (line for line in shown.stderr.splitlines() if "refused" in line)
    assert line == (
        "2 files were refused, and nothing in them counts ('a.parquet': it says that it holds 1,000,000 reports, a file has at "
        "most 131,072; also 'b.parquet')"
    )
    assert set(json.loads(shown.stdout)["refused"]) == {"a.parquet", "b.parquet"}

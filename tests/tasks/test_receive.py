"""Reports from anywhere: what answers the protocol is added up, everything else is counted and never added."""

import base64
import json
import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import example_protocol, perturb_shard, publish, shards_of
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from flows.command.cli import app
from ldptree.client import Client, Report
from ldptree.errors import ConfigError, DataError, ProtocolMismatch
from ldptree.mechanisms import CHOICES
from ldptree.models.ensemble import Ensemble
from ldptree.protocol.published_base import PublishedBase
from storage.reports import lines as report_lines
from storage.store import Store
from tasks.answers.receive import (
    CONFLICTING,
    IMPOSSIBLE,
    OTHER_OUTPUT,
    OTHER_PROTOCOL,
    OTHER_ROUND,
    SEEN,
    UNREADABLE,
    WRONG_LENGTH,
    Received,
    described,
    receive_folder,
    write,
)

NAMES = [name for name in CHOICES[1:] if name != "laplace"]


def lines_of(protocol, n=40, first=0):
    """Reports of n clients, each with a device of its own, and their values."""
    rows = [((i % 9, 0.5), ("no", "yes", "?")[i % 3]) for i in range(first, first + n)]
    return [Client(protocol, max_epsilon=64.0, memory={}).report(x, y).to_json() for x, y in rows]


def line_of(protocol, payload, number=0, /, **changes):
    """A line with these bytes, as anybody can write one."""
    line = {
        "protocol": protocol.digest,
        "round": 1,
        "id": f"{number:032x}",
        "report": base64.b64encode(payload).decode(),
    }
    return json.dumps(line | changes)


def received_of(protocol, *lines):
    """The result of these lines in one file."""
    received = Received.under(protocol)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.jsonl").write_text("\n".join(lines))
        received.add_lines([Path(folder) / "a.jsonl"], Path(folder))
    return received


@pytest.fixture
def room(tmp_path):
    """A protocol's file and a folder for reports."""

    def made(protocol):
        (tmp_path / "protocol.json").write_text(protocol.to_json())
        (tmp_path / "reports" / "deep").mkdir(parents=True, exist_ok=True)
        return tmp_path / "protocol.json", tmp_path / "reports"

    return made


def shard_of_50(store, protocol, **columns):
    """The file of reports that the step perturb writes for 50 holders."""
    shard = {"x": [1.0, 7.0] * 25, "y": [0.0] * 50, "label": ["no", "yes"] * 25} | columns
    record = perturb_shard(store, publish(store, protocol), shards_of(store, shard)[0], noise_seed=None)
    (written,) = store.files(record["reports"])
    return written


@pytest.mark.parametrize("name", NAMES)
def test_clients_and_the_pipeline_meet_in_one_total(room, tmp_path, name):
    protocol = example_protocol(name)
    path, folder = room(protocol)
    lines = lines_of(protocol)
    (folder / "one.jsonl").write_text("\n".join(lines[:30]) + "\n\n")
    (folder / "deep" / "two.jsonl").write_text("\n".join(lines[30:]))
    written = shard_of_50(Store(tmp_path / "work"), protocol)
    shutil.copy(written, folder / "shard.parquet")
    received = receive_folder(path, folder)
    assert (received.accepted, +received.rejected) == (90, {})
    mechanism = protocol.mechanism
    payloads = [np.frombuffer(Report.from_json(line).payload, np.uint8) for line in lines]
    by_clients = mechanism.aggregate(mechanism.unpack(np.stack(payloads)))
    table = pq.read_table(written).column(0)
    packed = (
        table.to_numpy()
        if table.type == pa.uint32()
        else mechanism.unpack(np.frombuffer(b"".join(table.to_pylist()), np.uint8).reshape(50, -1))
    )
    np.testing.assert_array_equal(received.sums.raw[0], by_clients + mechanism.aggregate(packed))
    assert [totals.n_private for totals in received.totals()] == [90]


def test_a_line_with_a_key_twice_is_counted_and_not_added(room):
    protocol = example_protocol("oue")
    path, folder = room(protocol)
    first, second, third = lines_of(protocol, 3)
    again = f'{second[:-1]}, "round": 1}}'
    (folder / "one.jsonl").write_text("\n".join([first, again, third]))
    received = receive_folder(path, folder)
    assert (received.accepted, +received.rejected) == (2, {UNREADABLE: 1})


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32-le"])
def test_lines_in_another_encoding_are_counted_and_none_is_added(room, encoding):
    path, folder = room(protocol := example_protocol("oue"))
    (folder / "one.jsonl").write_bytes("\n".join(lines_of(protocol, 50)).encode(encoding))
    received = receive_folder(path, folder)
    assert (received.accepted, +received.rejected) == (0, {UNREADABLE: 50})


def test_a_protocol_and_reports_that_a_windows_editor_saved_are_read(room):
    path, folder = room(protocol := example_protocol("oue"))
    indented = json.dumps(json.loads(protocol.to_json()), indent=2)
    path.write_bytes(indented.replace("\n", "\r\n").encode("utf-8-sig"))
    (folder / "one.jsonl").write_bytes("\r\n".join(lines_of(protocol)).encode("utf-8-sig"))
    received = receive_folder(path, folder)
    assert (received.accepted, +received.rejected) == (40, {})
    assert received.protocol.digest == protocol.digest


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_wrong_report_is_counted_and_none_is_added(name):
    protocol = example_protocol(name)
    good = [Report.from_json(line) for line in lines_of(protocol, 5)]
    size = protocol.mechanism.report_bytes
    impossible = {
        "grr": (5).to_bytes(4, "little"),
        "oue": b"\xff",
        "sue": b"\x20",
        "ss": b"\x1f",
        "olh": b"\xff" * 16,
        "discrete_laplace": b"\xff\xff\xff\x7f" * 4,
        "randomized_response": b"\xff" * size,
        "signed_subset": b"\x03",
    }[name]

    lines = [report.to_json() for report in good]
    other = bytes(size) if good[2].payload != bytes(size) else bytes([1]) + bytes(size - 1)
    received = received_of(
        protocol,
        *["no report"] * 3,
        *lines,
        lines[1],
        line_of(protocol, other, id=good[2].id),
        line_of(protocol, good[0].payload, 1, protocol="0" * 64),
        line_of(protocol, good[0].payload, 2, round=2),
        line_of(protocol, b"", 3),
        line_of(protocol, good[0].payload + b"\0", 4),
        line_of(protocol, impossible, 5),
    )
    alone = received_of(protocol, *lines)
    np.testing.assert_array_equal(received.sums.raw, alone.sums.raw)
    assert received.accepted == 5
    zeros_are_valid = protocol.mechanism.is_valid(protocol.mechanism.unpack(np.zeros((1, size), np.uint8)))[0]
    assert received.rejected == {
        UNREADABLE: 3,
        SEEN: 1,
        OTHER_PROTOCOL: 1,
        OTHER_ROUND: 1,
        WRONG_LENGTH: 2,
        IMPOSSIBLE: 1 + (not zeros_are_valid),
    } | ({CONFLICTING: 1} if zeros_are_valid else {})


def test_a_signed_subset_is_added_if_it_has_its_size_no_cell_twice_and_no_bit_past_the_last():
    """Two of three cells: every byte there is, against the definition."""
    protocol = example_protocol("signed_subset", epsilon=0.5)
    assert protocol.mechanism.thresholds["size"] == 2

    def is_honest(byte):
        cells = [byte >> 2 * j & 3 for j in range(4)]
        return sorted(map(int.bit_count, cells)) == [0, 0, 1, 1] and cells[3] == 0

    honest = [byte for byte in range(256) if is_honest(byte)]
    received = received_of(protocol, *[line_of(protocol, bytes([byte]), byte) for byte in range(256)])
    assert (received.accepted, +received.rejected) == (len(honest), {IMPOSSIBLE: 256 - len(honest)})
    for byte in honest:
        held = [byte >> bit & 1 for bit in range(6)]
        assert received_of(protocol, line_of(protocol, bytes([byte]))).sums.raw[0].tolist() == held


PAYLOADS = st.lists(st.tuples(st.binary(max_size=24), st.integers(0, 255)), min_size=1, max_size=30)
"""Bytes as they come, and those that make them as long as a report."""
IN_A_FILE = settings(max_examples=10)
"""Many lines make an example."""


@pytest.mark.parametrize("name", NAMES)
@IN_A_FILE
@given(payloads=PAYLOADS)
def test_random_bytes_are_rejected_or_change_totals_by_one_valid_report(name, payloads):
    """Whatever arrives, the sums are those of the reports that are valid."""
    protocol = example_protocol(name)
    mechanism, size = protocol.mechanism, protocol.mechanism.report_bytes
    sent = [part for payload, byte in payloads for part in (payload, (payload + bytes([byte]) * size)[:size])]
    received = received_of(protocol, *[line_of(protocol, each, i) for i, each in enumerate(sent)])
    assert received.accepted + received.rejected.total() == len(sent)
    assert mechanism.can_be_sum(received.sums.raw[0], received.accepted)
    fitting = [np.frombuffer(each, np.uint8)[None] for each in sent if len(each) == size]
    valid = [report for report in map(mechanism.unpack, fitting) if mechanism.is_valid(report)[0]]
    assert received.accepted == len(valid)
    alone = sum((mechanism.aggregate(report) for report in valid), mechanism.no_reports())
    np.testing.assert_array_equal(received.sums.raw[0], alone)


CHANGES = {
    "cut": lambda line, at, _: line[:at],
    "without a character": lambda line, at, _: line[:at] + line[at + 1 :],
    "with one more": lambda line, at, character: line[:at] + character + line[at:],
    "with another": lambda line, at, character: line[:at] + character + line[at + 1 :],
    "from another end": lambda line, at, _: line[at:] + line[:at],
    "sorted": lambda line, *_: json.dumps(json.loads(line), sort_keys=True, separators=(",", ":")),
    "escaped": lambda line, at, _: line.replace(line[at], f"\\u{ord(line[at]):04x}"),
    "as PHP writes it": lambda line, *_: line.replace("/", "\\/"),
    "in blanks": lambda line, *_: f"  {line}\t\r",
    "with a key twice": lambda line, *_: f'{line[:-1]}, "round": 1}}',
    "with a key that is unknown": lambda line, *_: f'{line[:-1]}, "sent": 1}}',
    "without an output": lambda line, *_: f'{line[:-1]}, "output": null}}',
    "of no simulation": lambda line, *_: f'{line[:-1]}, "simulation": false}}',
    "with a round in quotes": lambda line, *_: re.sub(": ?1,", ': "1",', line),
    "with a round that is no integer": lambda line, *_: re.sub(": ?1,", ":1.0,", line),
    "with a round that is read as a longer one": lambda line, *_: re.sub(": ?1,", ":1e9,", line),
    "with a long round": lambda line, *_: re.sub(": ?1,", f":{10**30},", line),
    "in a list": lambda line, *_: f"[{line}]",
    "with an end of base64 inside": lambda line, *_: line.replace("==", "=/"),
    "and another": lambda line, *_: f"{line} {line}",
}


@IN_A_FILE
@given(data=st.data())
def test_a_line_is_a_report_where_the_client_reads_it_as_one(data):
    """The reader of many lines and the one of a device agree, however a line is changed."""
    protocol = example_protocol("oue")
    line = data.draw(st.sampled_from([spaced := line_of(protocol, b"\x1f", 7), spaced.replace(" ", "")]))
    places = data.draw(
        st.lists(st.tuples(st.integers(0, len(line) - 1), st.sampled_from('"{}[]:,/=\\ a0é')), max_size=20)
    )
    changed = [change(line, *place) for place in places for change in CHANGES.values()]
    lines = [text for text in changed if text.strip()]

    def is_report(text):
        try:
            return bool(Report.from_json(text))
        except DataError:
            return False

    lines = [text for text in lines if not text.rstrip().endswith(",}")]  # DuckDB takes one comma more
    assert received_of(protocol, *lines).rejected[UNREADABLE] == sum(not is_report(text) for text in lines)


@settings(max_examples=30)
@given(data=st.lists(st.binary(max_size=60), max_size=5))
def test_random_files_are_counted_and_nothing_stops(tmp_path_factory, data):
    protocol = example_protocol("oue")
    folder = tmp_path_factory.mktemp("reports")
    line = lines_of(protocol, 1)[0]
    (folder / "a.jsonl").write_bytes(b"\n".join([*data, line.encode()]))
    (folder / "b.parquet").write_bytes(b"".join(data))
    (folder / "protocol.json").write_text(protocol.to_json())
    received = receive_folder(folder / "protocol.json", folder)
    assert received.accepted == 1
    assert received.rejected[UNREADABLE] >= 1


def test_shards_that_say_the_same_are_all_added_and_a_copy_of_one_is_none(room, tmp_path):
    protocol = example_protocol("grr", epsilon=60.0)  # nobody lies: equal rows are equal reports
    path, folder = room(protocol)
    for number in range(3):
        written = shard_of_50(Store(tmp_path / "work"), protocol, y=[number / 4] * 50)
        shutil.copy(written, folder / f"{number}.parquet")
        said = pq.read_table(folder / f"{number}.parquet")
        assert said.equals(pq.read_table(folder / "0.parquet"))
    pq.write_table(said, folder / "copy.parquet", compression="none")
    received = receive_folder(path, folder)
    assert (received.accepted, +received.rejected) == (150, {SEEN: 50})


def test_a_shard_of_another_protocol_or_met_twice_is_counted(room):
    protocol = example_protocol("grr")
    path, folder = room(protocol)
    meta = {"protocol": protocol.digest, "round": "1", "form": "reports", "holders": "3"}
    table = pa.table({"value": pa.array([0, 4, None, 5], pa.uint32())})
    pq.write_table(table.replace_schema_metadata(meta), folder / "a.parquet")
    pq.write_table(table.replace_schema_metadata(meta), folder / "b.parquet", compression="zstd")
    pq.write_table(table.replace_schema_metadata(meta | {"protocol": "0" * 64}), folder / "c.parquet")
    pq.write_table(table.replace_schema_metadata(meta | {"form": "totals"}), folder / "d.parquet")
    pq.write_table(pa.table({"value": ["x"]}).replace_schema_metadata(meta), folder / "e.parquet")
    wide = pa.table({"value": pa.array([2**32 + 3, -1, 3], pa.int64())})
    pq.write_table(wide.replace_schema_metadata(meta), folder / "f.parquet")
    received = receive_folder(path, folder)
    assert received.accepted == 2
    assert +received.rejected == {
        UNREADABLE: 1 + 1 + 1 + 4 + 1 + 3,
        IMPOSSIBLE: 1,
        SEEN: 3,
        OTHER_PROTOCOL: 3,
    }


def test_a_line_of_any_length_is_read_in_pieces_and_counted_once(room):
    protocol = example_protocol("grr")
    path, folder = room(protocol)
    good = lines_of(protocol, 2)
    (folder / "a.jsonl").write_text(f"{good[0]}\n{'x' * 3_000_000}\n{good[1]}\n{'y' * 5_000}")
    received = receive_folder(path, folder)
    assert (received.accepted, +received.rejected) == (2, {UNREADABLE: 2})


def test_values_of_any_length_are_no_reports_and_not_unfolded(room):
    protocol = example_protocol("oue")
    path, folder = room(protocol)
    meta = {"protocol": protocol.digest, "round": "1", "form": "reports", "holders": "3"}
    for name, kind in (("a", pa.binary()), ("b", pa.binary(4)), ("c", pa.large_binary())):
        table = pa.table({"bits": pa.array([b"\0" * 4] * 3, kind)})
        pq.write_table(table.replace_schema_metadata(meta), folder / f"{name}.parquet")
    assert +receive_folder(path, folder).rejected == {UNREADABLE: 9}


def of_three(mechanism="oue", **changes):
    """A protocol about a model that always says 0 of three classes, of which each holder draws one."""
    always_0 = Ensemble([-1], [0.0], [-1], [-1], np.zeros((1, 3)), [0], np.zeros(3))
    base = PublishedBase(ensemble=always_0, labels=("no", "yes", "maybe"), output="drawn")
    fields = {"classes": (-1.0, 0.0, 1.0), "positive": None, "numeric": True, "base": base}
    return example_protocol(mechanism, **(fields | changes))


@pytest.mark.parametrize("name", ["grr", "oue", "ss", "olh"])
@IN_A_FILE
@given(
    payloads=PAYLOADS,
    outputs=st.lists(st.none() | st.integers(-1, 3) | st.integers(), min_size=30, max_size=30),
)
def test_random_outputs_are_rejected_or_change_totals_of_theirs_by_one_valid_report(name, payloads, outputs):
    protocol = of_three(name)
    mechanism, size = protocol.mechanism, protocol.mechanism.report_bytes
    sent = [
        ((payload + bytes([byte]) * size)[:size], output)
        for (payload, byte), output in zip(payloads, outputs, strict=False)
    ]
    lines = [
        line_of(protocol, payload, i, **({} if output is None else {"output": output}))
        for i, (payload, output) in enumerate(sent)
    ]
    received = received_of(protocol, *lines)
    assert received.accepted + received.rejected.total() == len(sent)
    outside = sum(output is None or not 0 <= output < 3 for _, output in sent)
    assert received.rejected[OTHER_OUTPUT] == outside
    for k, raw in enumerate(received.sums.raw):
        of_k = [np.frombuffer(payload, np.uint8)[None] for payload, output in sent if output == k]
        valid = [report for report in map(mechanism.unpack, of_k) if mechanism.is_valid(report)[0]]
        assert received.sums.n_reports[k] == len(valid)
        assert mechanism.can_be_sum(raw, len(valid))
        alone = sum((mechanism.aggregate(report) for report in valid), mechanism.no_reports())
        np.testing.assert_array_equal(raw, alone)


def test_a_report_on_no_class_of_the_protocol_is_counted_and_never_added(room):
    protocol = of_three("grr")
    path, folder = room(protocol)
    good = [json.loads(line) for line in lines_of(protocol, 30)]
    plain = example_protocol("grr")
    bad = [
        good[0] | {"output": 3, "id": "a" * 32},
        good[0] | {"output": -1, "id": "b" * 32},
        good[0] | {"output": 10**40, "id": "c" * 32},
        {key: value for key, value in good[0].items() if key != "output"} | {"id": "d" * 32},
        good[1] | {"output": "1"},
        good[1] | {"output": None},
        good[1],
        good[2] | {"output": (good[2]["output"] + 1) % 3},
    ]
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, [*good, *bad])))
    received = receive_folder(path, folder)
    assert received.accepted == 30
    assert +received.rejected == {OTHER_OUTPUT: 4, UNREADABLE: 2, SEEN: 1, CONFLICTING: 1}
    assert received.sums.n_reports.tolist() == [sum(r["output"] == k for r in good) for k in range(3)]
    sent = json.loads(lines_of(plain, 1)[0]) | {"output": 0}
    path, folder = room(plain)
    (folder / "a.jsonl").write_text(json.dumps(sent))
    assert +receive_folder(path, folder).rejected == {OTHER_OUTPUT: 1}


@pytest.mark.parametrize("name", ["grr", "oue"])
def test_shards_and_clients_meet_in_the_totals_of_each_class(room, tmp_path, name):
    """A copy of a shard is known again, the same values said of other classes are another shard."""
    protocol = of_three(name)
    path, folder = room(protocol)
    written = shard_of_50(Store(tmp_path / "work"), protocol)
    shutil.copy(written, folder / "a.parquet")
    shutil.copy(written, folder / "b.parquet")
    table = pq.read_table(written)
    others = pa.array((table.column("output").to_numpy() + 1) % 3, pa.int32())
    pq.write_table(table.set_column(1, "output", others), folder / "c.parquet")
    holes = pa.array([None, 3, *others.to_pylist()[2:]], pa.int32())
    pq.write_table(table.set_column(1, "output", holes), folder / "d.parquet")
    pq.write_table(table.select([0]), folder / "e.parquet")
    wide = table.set_column(1, "output", others.cast(pa.int64()))
    pq.write_table(wide, folder / "f.parquet")
    lines = lines_of(protocol, 20)
    (folder / "g.jsonl").write_text("\n".join(lines))
    received = receive_folder(path, folder)
    assert received.accepted == 50 + 50 + 48 + 20
    assert +received.rejected == {SEEN: 50, OTHER_OUTPUT: 2 + 50, UNREADABLE: 50}
    drawn = np.concatenate(
        [
            table.column("output").to_numpy(),
            others.to_numpy(),
            others.to_numpy()[2:],
            [json.loads(line)["output"] for line in lines],
        ]
    )
    assert [t.n_private for t in received.totals()] == np.bincount(drawn, minlength=3).tolist()


def test_the_command_tells_the_totals_of_each_class_and_writes_them(room, tmp_path):
    """At eps 40 grr tells what people have: of the class they drew, 1 more than the model says, or nothing."""
    protocol = of_three("grr", epsilon=40.0)
    path, folder = room(protocol)
    lines = [
        json.loads(Client(protocol, max_epsilon=64.0, memory={}).report((2.0, 0.5), "yes").to_json())
        for _ in range(60)
    ]
    (folder / "r.jsonl").write_text("\n".join(map(json.dumps, lines)))
    n = np.bincount([line["output"] for line in lines], minlength=3).tolist()
    done = run("--protocol", path, "--reports", folder, "--json", "--out", tmp_path / "totals")
    found = json.loads(done.stdout)
    assert found["residual"] == {"of": "label", "label": None, "range": [-1.0, 1.0]}
    assert "cells" not in found
    assert [part["label"] for part in found["labels"]] == ["no", "yes", "maybe"]
    assert [part["accepted"] for part in found["labels"]] == n
    assert [part["cells"][0]["totals"] for part in found["labels"]] == [
        {"-1.0": 0.0, "0.0": float(n[0]), "1.0": 0.0},
        {"-1.0": 0.0, "0.0": 0.0, "1.0": float(n[1])},
        {"-1.0": 0.0, "0.0": float(n[2]), "1.0": 0.0},
    ]
    table = pq.read_table(tmp_path / "totals" / "totals.parquet")
    assert table.column_names == ["output", "cell", "class", "raw", "unbiased"]
    assert table.num_rows == 3 * 2 * 3
    shown = run("--protocol", path, "--reports", folder).stdout.splitlines()
    assert [line for line in shown if line.startswith("People")] == [
        f"People by level of the public model's error on label = {name} (truth less prediction)"
        for name in ("no", "yes", "maybe")
    ]


def run(*words):
    return CliRunner().invoke(app, ["aggregate", *map(str, words)])


def test_the_command_prints_totals_or_one_json_object_and_writes_what_the_pipeline_writes(room, tmp_path):
    protocol = example_protocol("oue")
    path, folder = room(protocol)
    (folder / "r.jsonl").write_text("\n".join([*lines_of(protocol), "rubbish"]))
    shown = run("--protocol", path, "--reports", folder)
    assert shown.exit_code == 0
    assert "x <= 4: no " in shown.stdout
    assert "40 reports accepted; rejected: 1 not a report" in shown.stderr
    out = tmp_path / "totals"
    done = run("--protocol", path, "--reports", folder, "--json", "--out", out)
    found = json.loads(done.stdout)
    assert (found["accepted"], found["rejected"], found["mechanism"]) == (40, {UNREADABLE: 1}, "joint oue")
    assert sorted(p.name for p in out.iterdir()) == ["cells.parquet", "raw.parquet", "totals.parquet"]
    assert pq.read_table(out / "totals.parquet").num_rows == 4
    assert found["cells"][0]["totals"].keys() == {"no", "yes"}


def test_files_that_are_not_read_are_counted_and_named(room):
    protocol = example_protocol("oue")
    path, folder = room(protocol)
    (one, *lines) = lines_of(protocol)
    (folder / "deep" / "single.json").write_text(one)
    with pytest.raises(ConfigError, match=r"1 other file was passed over \('deep/single\.json'\)"):
        receive_folder(path, folder)
    (folder / "r.jsonl").write_text("\n".join(lines))
    shown = run("--protocol", path, "--reports", folder)
    assert shown.exit_code == 0
    assert "1 other file was passed over ('deep/single.json'): only *.jsonl" in shown.stderr
    assert "39 reports accepted; none rejected" in shown.stderr
    for name in "abcd":
        (folder / f"{name}.JSONL").write_text(one)
    done = run("--protocol", path, "--reports", folder, "--json")
    assert json.loads(done.stdout)["passed_over"] == [
        *(f"{name}.JSONL" for name in "abcd"),
        "deep/single.json",
    ]
    assert "5 other files were passed over ('a.JSONL', 'b.JSONL', 'c.JSONL', ...)" in done.stderr


@pytest.mark.parametrize(
    ("labels", "label", "asked"),
    [
        ((), None, "label"),
        (("no", "yes"), "yes", "label = yes"),
        (("a", "no", "yes"), "yes", "label = yes"),
    ],
)
def test_totals_of_a_public_models_errors_say_so_and_are_by_level(room, labels, label, asked):
    """At eps 40 grr tells what people have: two whose label is 1 more than the model says, and one who has none."""
    n_outputs = max(len(labels), 1)
    always_0 = Ensemble([-1], [0.0], [-1], [-1], np.zeros((1, n_outputs)), [0], np.zeros(n_outputs))
    if len(labels) == 2:
        always_0 = replace(always_0, value=[[1.0, 0.0]])
    protocol = example_protocol(
        "grr",
        epsilon=40.0,
        classes=(-1.0, 0.0, 1.0),
        positive=None,
        numeric=True,
        base=PublishedBase(ensemble=always_0, labels=labels, output=2 if len(labels) == 3 else 0),
    )
    path, folder = room(protocol)
    said = ("yes", "yes", "?") if labels else (1.0, 50, None)
    lines = [Client(protocol, max_epsilon=64.0, memory={}).report((2.0, 0.5), y).to_json() for y in said]
    (folder / "r.jsonl").write_text("\n".join(lines))
    found = json.loads(run("--protocol", path, "--reports", folder, "--json").stdout)
    assert found["residual"] == {"of": "label", "label": label, "range": [-1.0, 1.0]}
    assert found["outside"] == pytest.approx(1)
    assert [cell["totals"] for cell in found["cells"]] == [
        {"-1.0": 0.0, "0.0": 0.0, "1.0": 2.0},
        {"-1.0": 0.0, "0.0": 0.0, "1.0": 0.0},
    ]
    shown = run("--protocol", path, "--reports", folder).stdout.splitlines()
    assert shown[0] == f"People by level of the public model's error on {asked} (truth less prediction)"
    assert shown[1] == "x <= 4: at -1: 0.0 ± 0.0, at 0: 0.0 ± 0.0, at 1: 2.0 ± 0.0"
    assert len(shown) == 3


def test_what_cannot_be_read_is_told_and_nothing_is_written(room, tmp_path):
    protocol = example_protocol("oue")
    path, folder = room(protocol)
    with pytest.raises(ConfigError, match="no such folder"):
        receive_folder(path, tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="holds no file of reports"):
        receive_folder(path, folder)
    (folder / "r.jsonl").write_text("rubbish\n")
    with pytest.raises(ConfigError, match="no such file"):
        receive_folder(tmp_path / "p.json", folder)
    received = receive_folder(path, folder)
    with pytest.raises(DataError, match=r"no report was accepted .*1 not a report"):
        described(received)
    with pytest.raises(DataError):
        write(received, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    good = received_of(protocol, line_of(protocol, b"\0"))
    for out in (path, path / "below"):
        with pytest.raises(ConfigError, match="--out"):
            write(good, out)
    path.write_text("{}")
    with pytest.raises(ProtocolMismatch, match=r"protocol\.json: protocol: version"):
        receive_folder(path, folder)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ProtocolMismatch, match="no text"):
        receive_folder(path, folder)


def test_ids_that_are_compared_in_parts_count_as_those_that_are_compared_at_once(room, monkeypatch):
    """Each of 60 twice, a third of them with another report the second time."""
    path, folder = room(protocol := example_protocol("grr"))
    grr = [line_of(protocol, (i % 5).to_bytes(4, "little"), i) for i in range(60)]
    again = [line_of(protocol, ((i + (i % 3 == 0)) % 5).to_bytes(4, "little"), i) for i in range(60)]
    (folder / "a.jsonl").write_text("\n".join([*grr, *again]))
    whole = receive_folder(path, folder)
    monkeypatch.setattr(report_lines, "PART", 7)
    parted = receive_folder(path, folder)
    assert +whole.rejected == +parted.rejected == {SEEN: 40, CONFLICTING: 20}
    np.testing.assert_array_equal(whole.sums.raw, parted.sums.raw)

"""Add up reports that clients sent, one a line of JSON, as `ldptree aggregate` does: a million lines, a hundred million, and
ten thousand files of one line each.

    .venv/bin/python benchmark/timed/receive.py [--lines 1000000,100000000] [--files 10000] [--folder FOLDER]

A hundred million lines take 16 GB below the folder, and while they are added up some more in the temporary one. Each row is a
process of its own, which has added up a few reports before its time begins; a million lines are the best of five.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from ldptree.coins import Words
from ldptree.protocol.protocol import Protocol
from ldptree_benchmark.results.measured import Measured

VECTORS = Path(__file__).parents[2] / "docs" / "client" / "vectors.json"
PART = 2**20
CHILD = """
import json, os, resource, sys, time
from pathlib import Path
from tasks.answers.receive import receive_folder

protocol, few, reports = map(Path, sys.argv[1:])
receive_folder(protocol, few)
start, began = time.process_time(), time.perf_counter()
received = receive_folder(protocol, reports)
taken = time.process_time() - start, time.perf_counter() - began
assert not +received.rejected and not received.refused
print(json.dumps([received.accepted, *taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
LINE = """
    SELECT '{"protocol":"' || ? || '","round":1,"id":"' || lower(hex(id)) || '","report":"' || to_base64(payload) || '"}'
    FROM reports
"""
PLAIN = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01'"


def write_lines(protocol: Protocol, folder: Path, n: int) -> None:
    """Write n reports of holders who are alike, in files of at most `PART` lines."""
    mechanism = protocol.mechanism
    words = Words.seeded(np.random.SeedSequence(n))
    folder.mkdir()
    with duckdb.connect() as connection:
        for start in range(0, n, PART):
            size = min(PART, n - start)
            packed = mechanism.pack(mechanism.randomize(np.zeros(size, np.int64), words))
            columns = {
                "id": pa.FixedSizeBinaryArray.from_buffers(
                    pa.binary(16), size, [None, pa.py_buffer(os.urandom(16 * size))]
                ),
                "payload": pa.FixedSizeBinaryArray.from_buffers(
                    pa.binary(mechanism.report_bytes), size, [None, pa.py_buffer(packed.tobytes())]
                ),
            }
            connection.register("reports", pa.table(columns))
            file = folder / f"{start:012}.jsonl"
            connection.execute(f"COPY ({LINE}) TO '{file}' ({PLAIN})", [protocol.digest])


def measure(place: Path, reports: str) -> tuple[int, float, float, float]:
    """How many reports a process added up, with its processor seconds, seconds, and peak memory in MiB."""
    paths = [str(place / name) for name in ("protocol.json", "few", reports)]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *paths], check=True, stdout=subprocess.PIPE, text=True
    )
    accepted, processor, seconds, mebibytes = json.loads(done.stdout)
    return accepted, processor, seconds, mebibytes


def main() -> None:
    """Write reports, add them up, and print one result of a page of docs/measured."""
    parser = argparse.ArgumentParser(description="Add up reports of clients.")
    parser.add_argument("--lines", default="1000000,100000000")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="where reports are written for a while")
    options = parser.parse_args()
    words = [
        word
        for name in ("lines", "files")
        if f"--{name}" in sys.argv
        for word in (f"--{name}", str(getattr(options, name)))
    ]
    vectors = json.loads(VECTORS.read_text())
    protocol = Protocol.from_json(json.dumps(vectors[0]["protocol"]))
    rows = [("", "bytes", "processor time", "a million", "time", "peak memory")]
    taken: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        place = Path(folder)
        (place / "protocol.json").write_text(protocol.to_json())
        write_lines(protocol, place / "few", 100)
        for name in [*options.lines.split(","), "files"]:
            reports = place / name
            write_lines(protocol, reports, options.files if name == "files" else int(name))
            size = sum(path.stat().st_size for path in reports.iterdir())
            if name == "files":
                (whole,) = reports.iterdir()
                for number, line in enumerate(whole.read_text().splitlines()):
                    (reports / f"{number}.jsonl").write_text(line)
                whole.unlink()
            runs = [measure(place, name) for _ in range(5 if name == "1000000" else 1)]
            n, processor, seconds, mebibytes = min(runs, key=lambda run: run[1])
            taken[name] = processor, mebibytes
            title = f"{n:,} files of one line" if name == "files" else f"{n:,} lines"
            figures = (
                f"{processor:,.1f} s",
                f"{processor / n * 1e6:,.1f} s",
                f"{seconds:,.1f} s",
                f"{mebibytes:,.0f} MiB",
            )
            rows.append((title, f"{size:,}", *figures))
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
            for path in reports.iterdir():
                path.unlink()
    claims = []
    if "1000000" in taken:
        claims.append(("A million lines take at most 1.5 s of the processor", taken["1000000"][0] <= 1.5))
    if "100000000" in taken:
        claims.append(("A hundred million lines take less than 2 GiB", taken["100000000"][1] < 2048))
    print(
        Measured(
            title="Reports of clients",
            command=f"{shlex.join(['python', 'benchmark/timed/receive.py', *words])} > docs/measured/suites/receive.toml",
            note=(
                f"`ldptree aggregate` on reports of {protocol.mechanism.report_bytes} bytes, one a line of JSON. Ids that memory "
                "does not hold are on disk while they are compared. A million lines are the best of five runs."
            ),
            finding="One file a report is read as well, and takes many times as long: write many lines into one file.",
            claims=claims,
            tables=[("", rows)],
        ),
        end="",
    )


if __name__ == "__main__":
    main()

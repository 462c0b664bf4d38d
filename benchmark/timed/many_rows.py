"""Measure runs of many rows from raw files to one page, by wall time and the most memory of the process.

    python benchmark/timed/many_rows.py > docs/measured/suites/many-rows.toml
    python benchmark/timed/many_rows.py --only taxi_paper

Each run is a process of its own in a work folder of its own; 100 million rows are ten Parquet files of simulated trips.
It prints the results of a page of docs/measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet

from ldptree_benchmark.results.measured import Measured
from tasks.data.source import write_trips

LDPTREE = [sys.executable, "-m", "flows.command.main"]
PART = 10_000_000
COMMAND = "python benchmark/timed/many_rows.py > docs/measured/suites/many-rows.toml"


@dataclass(frozen=True)
class Case:
    """A run of so many million trips, as one CSV or as Parquet files, with these settings."""

    millions: float
    is_parquet: bool
    estimator: str
    name: str


MANY = (
    Case(3.3, False, "lpct", "3.3 million, CSV: one tree"),
    Case(3.3, False, "correction", "3.3 million, CSV: correction"),
    Case(20, False, "lpct", "20 million, CSV: one tree"),
    Case(20, False, "correction", "20 million, CSV: correction"),
    Case(100, True, "lpct", "100 million, Parquet: one tree"),
)
PAPER = {"max-edge": "max-edge to depth 16", "cart": "CART"}


def main() -> None:
    """Print them."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--only", choices=("many", "taxi_paper"))
    arguments.add_argument("--most", type=float, default=100, help="leave out runs of more million trips")
    options = arguments.parse_args()
    if options.only != "taxi_paper":
        print(measure_many(options.most))
    if options.only != "many":
        print(measure_paper(), end="")


def measure_many(most: float) -> Measured:
    """Simulated trips in growing numbers."""
    rows: list[tuple[str, ...]] = [("", "rows that report", "public rows", "whole run", "peak memory")]
    for case in (case for case in MANY if case.millions <= most):
        with written(case) as path:
            settings = [f"dataset.path={json.dumps(path)}", f"model.estimator={case.estimator}"]
            rows.append((case.name, *run("taxi", settings)))
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    return describe_many(rows)


def describe_many(rows: Sequence[tuple[str, ...]]) -> Measured:
    """Return what the docs say of it. `rows` are the table's, the first of heads."""
    figures = {name: (float(time.split()[0]), float(memory.split()[0].replace(",", "")))
             for name, _, _, time, memory in rows[1:]}  # fmt: skip
    claims = []
    for kind in ("one tree", "correction"):
        small, large = (figures.get(f"{size} million, CSV: {kind}") for size in ("3.3", "20"))
        if small is None or large is None:
            continue
        times, more = large[0] / small[0], large[1] / small[1]
        claims += [
            (f"{kind}: 20 million rows take at most {20 / 3.3:.1f} times as long ({times:.1f})", times <= 20 / 3.3),
            (f"{kind}: 20 million rows take less than 1.5 GiB ({large[1] / 1024:.2f})", large[1] < 1.5 * 1024),
            (f"{kind}: 20 million rows take no more memory than 3.3 million ({more:.2f} times as much)", more <= 1.0),
        ]  # fmt: skip
    return Measured(
        title="Many rows",
        command=COMMAND,
        note=(
            "Simulated trips, 93 features. The most memory that the process of the run had; it grows with public rows and, "
            "where each row is a holder, with their names."
        ),
        claims=claims,
        tables=[("", rows)],
    )


def measure_paper() -> Measured:
    """The configuration of the LPCT paper's largest set."""
    rows: list[tuple[str, ...]] = [("tree", "rows that report", "public rows", "whole run", "peak memory")]
    for partition, name in PAPER.items():
        rows.append((name, *run("taxi_paper", [f"model.partition={partition}"])))
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    return Measured(
        title="The Taxi of the LPCT paper",
        command=COMMAND,
        note=(
            "`ldptree run taxi_paper`: the paper's counts of people, public trips and features, on simulated trips. The paper "
            "states 70 to 200 s."
        ),
        tables=[("", rows)],
    )


@contextmanager
def written(case: Case) -> Iterator[str]:
    """Yield the raw files of a case, as a path or a pattern of several."""
    with tempfile.TemporaryDirectory() as folder:
        trips, left, part = Path(folder), round(case.millions * 1e6), 0
        while left:
            rows = min(left, PART) if case.is_parquet else left
            path = trips / f"trips-{part}.csv"
            write_trips(path, rows=rows, seed=part)
            if case.is_parquet:
                with (
                    pyarrow.csv.open_csv(path) as blocks,
                    pyarrow.parquet.ParquetWriter(path.with_suffix(".parquet"), blocks.schema) as sink,
                ):
                    for block in blocks:
                        sink.write_batch(block)
                path.unlink()
            left, part = left - rows, part + 1
        yield str(trips / ("trips-*.parquet" if case.is_parquet else "trips-0.csv"))


def run(config: str, settings: list[str]) -> tuple[str, ...]:
    """Rows that report, public rows, seconds and the most memory of a run in a new work folder."""
    with tempfile.TemporaryDirectory() as work:
        command = [*LDPTREE, "run", config, "--work", work, "--json"]
        command += [word for setting in settings for word in ("--set", setting)]
        began = time.monotonic()
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        seconds = time.monotonic() - began
        if done.returncode:
            sys.exit(done.stderr)
        facts = json.loads(done.stdout)
    return (
        f"{facts['n_private']:,}",
        f"{facts['n_public']:,}",
        f"{seconds:.0f} s",
        f"{facts['peak_rss_mb'] * 1e6 / 2**20:,.0f} MiB",
    )


if __name__ == "__main__":
    main()

"""Measure the memory of each step by rows, and processor seconds, which other work on the machine hardly changes.

    python benchmark/timed/steps.py                        # 1, 3.3 and 10 million simulated trips x 93 features, one tree
    python benchmark/timed/steps.py --rows 1000000 3300000

Each size is a process of its own. It prints one result of a page of docs/measured.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from flows.executors import InlineExecutor
from flows.pipeline import Pipeline
from ldptree_benchmark.results.measured import Measured
from schemas.config import load
from storage.store import Store
from tasks.data.source import write_trips
from tasks.progress import listen

ROWS = (1_000_000, 3_300_000, 10_000_000)
NAMES = {
    "MB raw": ("raw CSV", "MB", "GB", 1000),
    "MB holders/read": ("typed rows", "MB", "GB", 1000),
    "MB holders/cut": ("shards", "MB", "GB", 1000),
    "MB curator/reports": ("reports", "MB", "GB", 1000),
    "MiB": ("peak memory", "MiB", "GiB", 1024),
}
"""Names of quantities that are no step, with unit, a larger unit, and how many of the one make one of the other."""
NOT_BY_ROWS = ("partition", "evaluate", "prune", "report", "scale")
"""Public rows, simulations and pages need not grow with the people."""


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--rows", type=int, nargs="+", default=ROWS)
    arguments.add_argument("--one", type=Path, help="measure the trips of this file, in this process")
    options = arguments.parse_args()
    if options.one is not None:
        print(json.dumps(measure(options.one)))
        return
    figures = {}
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            trips = Path(folder) / "trips.csv"
            write_trips(trips, rows=rows, seed=1)
            command = [sys.executable, __file__, "--one", str(trips)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            figures[rows] = json.loads(done.stdout)
    print(describe(figures), end="")


def measure(trips: Path) -> dict[str, float]:
    """Processor seconds of each step of a run over a file; megabytes of it, and of what some steps leave; the most memory that
    this process had, in MiB.
    """
    config = load("taxi", [f"dataset.path={json.dumps(str(trips))}", "model.estimator=lpct"])
    seconds: dict[str, float] = {}
    began: dict[str, float] = {}

    def hear(step: str, event: str, _: float) -> None:
        if event == "start":
            began[step] = time.process_time()
        elif event == "end":
            seconds[step] = seconds.get(step, 0.0) + time.process_time() - began[step]

    stop = listen(hear)
    store = Store(trips.parent / "work")
    Pipeline(store=store, config=config, executor=InlineExecutor(store)).walk()
    stop()
    sizes = {"MB raw": trips.stat().st_size / 1e6}
    for left in ("holders/read", "holders/cut", "curator/reports"):
        files = (path for path in (store.root / left).rglob("*") if path.is_file())
        sizes[f"MB {left}"] = sum(path.stat().st_size for path in files) / 1e6
    return seconds | sizes | {"MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def describe(figures: dict[int, dict[str, float]]) -> Measured:
    """A row a step, a column a size, what a million rows more cost between the smallest size and the largest, and a billion."""
    sizes = sorted(figures)
    heads = ("", *(f"{rows / 1e6:g} M" for rows in sizes), "a million more", "a billion")
    rows: list[tuple[str, ...]] = [heads]
    for step in figures[sizes[0]]:
        line = [figures[size][step] for size in sizes]
        more = (line[-1] - line[0]) / max((sizes[-1] - sizes[0]) / 1e6, 1e-9)
        name, unit, larger, size = NAMES.get(step, (step, "s", "min", 60))
        digits = 1 if unit == "s" else 0
        cells = [f"{value:,.{digits}f} {unit}" for value in line]
        whole = "" if step in NOT_BY_ROWS else f"{1000 * more / size:,.0f} {larger}"
        rows.append((name, *cells, f"{more:,.2f} {unit}" if unit == "s" else f"{more:,.0f} {unit}", whole))
    whole_memory = (
        1000 * (figures[sizes[-1]]["MiB"] - figures[sizes[0]]["MiB"]) / ((sizes[-1] - sizes[0]) / 1e6)
    )
    holds = 16 * 1024 / max(whole_memory, 1e-9) * 1000
    return Measured(
        title="Each step by rows",
        command="python benchmark/timed/steps.py > docs/measured/suites/steps.toml",
        note="Processor seconds of simulated trips, 93 features, one tree; a billion by what a million more cost.",
        finding=f"Memory breaks first: 16 GB hold about {holds:,.0f} million rows in one run.",
        tables=[("", rows)],
    )


if __name__ == "__main__":
    main()

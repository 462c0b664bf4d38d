"""What each step costs, by the number of rows: processor seconds, which other work on the machine hardly changes, and memory.

    python benchmarks/steps.py                        # 1, 3.3 and 10 million simulated trips x 93 features, one tree
    python benchmarks/steps.py --rows 1000000 3300000

Each size is a process of its own. Prints a table, the cost of a million rows more, and one JSON object.
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

from flows.execute import Plainly
from flows.pipeline import Pipeline
from schemas.config import load
from storage.store import Store
from tasks.data.source import write_trips
from tasks.progress import listen

ROWS = (1_000_000, 3_300_000, 10_000_000)


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
    found = {}
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            trips = Path(folder) / "trips.csv"
            write_trips(trips, rows=rows, seed=1)
            command = [sys.executable, __file__, "--one", str(trips)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[rows] = json.loads(done.stdout)
    show(found)
    print(json.dumps(found))


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
    Pipeline(store=store, config=config, execute=Plainly(store)).walk()
    stop()
    sizes = {"MB raw": trips.stat().st_size / 1e6}
    for left in ("holders/ingest", "holders/split", "curator/reports"):
        files = (path for path in (store.root / left).rglob("*") if path.is_file())
        sizes[f"MB {left}"] = sum(path.stat().st_size for path in files) / 1e6
    return seconds | sizes | {"MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def show(found: dict[int, dict[str, float]]) -> None:
    """A row a step, a column a size, and what a million rows more cost between the smallest size and the largest."""
    sizes = sorted(found)
    print(f"{'':18}", *(f"{rows / 1e6:>8.3g} M" for rows in sizes), "  a million more")
    for step in found[sizes[0]]:
        line = [found[rows][step] for rows in sizes]
        more = (line[-1] - line[0]) / max((sizes[-1] - sizes[0]) / 1e6, 1e-9)
        print(f"{step:18}", *(f"{value:10.2f}" for value in line), f"{more:10.2f}")


if __name__ == "__main__":
    main()

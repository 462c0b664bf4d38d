"""How long a run takes, as ratios within one run of this script on one machine.

    python benchmark/timed/pipeline.py                  # 3.3 million simulated trips x 93 features, and the quickstart's
    python benchmark/timed/pipeline.py --only taxi --rows 20000000

It prints one result of a page of docs/measured, and all figures as JSON on standard error.

S is the plain script of the same work on the same CSV (plain.py), P an empty Prefect flow started the same way. Each is run in a
process of its own, with no server running and with one; the best of the repetitions counts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ldptree_benchmark.results.measured import Measured

ROOT = Path(__file__).resolve().parents[2]
LDPTREE = [sys.executable, "-m", "flows.command.main"]
EMPTY = """
import sys
from pathlib import Path
from flows.server.process import Server
server = Server(Path(sys.argv[1]))
from prefect import flow
@flow
def empty():
    return None
server.wait()
empty()
server.stop()
"""
CASES = {
    "taxi": {"rows": 3_300_000, "config": "taxi", "public": "company_id = 7", "features": "paper"},
    "quickstart": {
        "rows": 300_000,
        "config": "quickstart",
        "public": "company_id = 14",
        "features": "quickstart",
    },
}
TITLES = {
    "taxi": "{rows:.1f} million trips, 93 features",
    "quickstart": "quickstart, {rows:.1f} million trips",
}
NAMES = {"lpct": "one tree", "correction": "correction"}
SPANS = "of two questions from the first one's start to the other's end"
BOUNDS = {"lpct": (1.2, 5), "correction": (1.5, 10)}
"""A run of this estimator, with its baselines, takes at most so many times S + P, and so many seconds more."""


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--only", choices=CASES)
    arguments.add_argument("--rows", type=int, help="rows of the case named with --only")
    arguments.add_argument("--repetitions", type=int, default=2)
    options = arguments.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        for name in [options.only] if options.only else CASES:
            case = CASES[name] | ({"rows": options.rows} if options.rows else {})
            figures[name] = measure(room / name, case, options.repetitions)
        figures["help_seconds"] = min(timed([*LDPTREE, "--help"], room) for _ in range(options.repetitions))
    figures["getrandom_mb_s"] = measure_getrandom()
    print(json.dumps(figures, indent=1), file=sys.stderr)
    print(measured({name: figures[name] for name in CASES if name in figures}, figures), end="")


def measured(cases: dict[str, Any], figures: dict[str, Any]) -> Measured:
    """What the docs say of it."""
    kinds = [(name, estimator, server) for name in cases for estimator in BOUNDS for server in ("none", "up")]
    heads = ("", "S", "P", "run", "of its bound", "all cached", "of its bound", "peak memory")
    rows, shares = [heads], {"none": [], "up": []}
    for name, estimator, server in kinds:
        timing, case = cases[name][f"{estimator}, server {server}"], cases[name]
        of, of_cached = timing["wall"] / timing["bound"], timing["cached"] / timing["cached_bound"]
        shares[server] += [of, of_cached]
        what = f"{TITLES[name].format(rows=case['rows'] / 1e6)}: {NAMES[estimator]}{', a server up' * (server == 'up')}"
        rows.append(
            (what, f"{case['S']:.1f} s", f"{timing['P']:.1f} s", f"{timing['wall']:.1f} s", f"{of:.2f}",
             f"{timing['cached']:.1f} s", f"{of_cached:.2f}", f"{timing['peak_mib']:,.0f} MiB")
        )  # fmt: skip
    first = next(iter(cases))
    steps = [cases[first][f"{estimator}, server none"] for estimator in BOUNDS]
    parts = [("", *(NAMES[estimator] for estimator in BOUNDS))]
    names = dict.fromkeys(step for timing in steps for step in timing["steps"])
    parts += [(step, *(f"{timing['steps'].get(step, 0.0):.1f} s" for timing in steps)) for step in names]
    where = TITLES[first].format(rows=cases[first]["rows"] / 1e6)
    return Measured(
        title="A run beside a plain script",
        command="python benchmark/timed/pipeline.py > docs/measured/suites/pipeline.toml",
        note=(
            "S is one tree as one plain script (`benchmark/timed/plain.py`: polars, scikit-learn, numba, DuckDB; no Prefect, "
            "checks or baselines), P an empty Prefect flow. Runs score themselves beside their baselines. The bound of one tree "
            "is 1.2 (S + P) + 5 s, that of a correction 1.5 (S + P) + 10 s, that of a cached run P + 1 s."
        ),
        finding=(
            f"One DuckDB scan of the CSV ({where}) takes {cases[first]['csv_scan_seconds']:.1f} s; the system's coins come at "
            f"{figures['getrandom_mb_s']:,.0f} MB a second and core; `ldptree --help` answers in {figures['help_seconds']:.2f} s."
        ),
        claims=[
            (f"Without a server up, every run is within its bound (at most {max(shares['none']):.2f} of it)",
             max(shares["none"]) <= 1),
            (f"With a server up (`ldptree ui`), every run is within its bound (at most {max(shares['up']):.2f} of it)",
             max(shares["up"]) <= 1),
        ],
        tables=[("", rows), (f"Where the time goes, {where}: {SPANS}", parts)],
    )  # fmt: skip


def measure(room: Path, case: dict[str, object], repetitions: int) -> dict[str, object]:
    """Measure one case, with S, P without and with a server, and runs without and with one."""
    room.mkdir()
    csv = room / "trips.csv"
    subprocess.run(
        [*LDPTREE, "datasets", "make", "taxi", "--rows", str(case["rows"]), "--out", str(csv)],
        check=True,
        cwd=ROOT,
    )
    plain = [
        sys.executable,
        "benchmark/timed/plain.py",
        str(csv),
        "--public",
        case["public"],
        "--epsilon",
        "2",
        "--features",
        case["features"],
    ]
    # Prefect's home is one for all runs: the first start of a server makes its database, the first S compiles; neither is timed.
    home = room / "prefect"
    os.environ["PREFECT_HOME"] = str(home)
    empty = [sys.executable, "-c", EMPTY, str(room / "empty")]
    timed(empty, room)
    scan = timed_json([*plain, "--scan"], room)[1]["csv_scan_seconds"]
    S = min(timed(plain, room) for _ in range(repetitions))
    result: dict[str, object] = {"rows": case["rows"], "S": S, "csv_scan_seconds": scan}
    for server in ("none", "up"):
        with standing(room) if server == "up" else contextlib.nullcontext():
            P = min(timed(empty, room) for _ in range(repetitions))
            for estimator, (times, more) in BOUNDS.items():
                figures = run(room, case, csv, f"{server}-{estimator}", estimator, repetitions)
                figures |= {"P": P, "bound": times * (S + P) + more, "cached_bound": P + 1}
                result[f"{estimator}, server {server}"] = figures
                print(
                    f"{case['config']}, {estimator}, server {server}: S {S:.1f} s, P {P:.1f} s, "
                    f"run {figures['wall']:.1f} s = {figures['wall'] / figures['bound']:.2f} of {times} (S + P) + {more} s; "
                    f"cached {figures['cached']:.1f} s = {figures['cached'] / figures['cached_bound']:.2f} of P + 1 s; "
                    f"peak {figures['peak_mib']:.0f} MiB",
                    file=sys.stderr,
                )
    return result


def run(
    room: Path, case: dict[str, object], csv: Path, name: str, estimator: str, repetitions: int
) -> dict[str, Any]:
    """A run of one estimator, each in a work folder of its own; then again, all found; then only planned."""
    fresh, again = [], []
    for repetition in range(repetitions):
        again = [
            *LDPTREE,
            "run",
            case["config"],
            "--set",
            f"dataset.path={json.dumps(str(csv))}",
            "--set",
            f"model.estimator={estimator}",
            "--work",
            str(room / f"work-{name}-{repetition}"),
            "--json",
        ]
        fresh.append(timed_json(again, room))
    wall, summary = min(fresh, key=lambda pair: pair[0])
    return {
        "wall": wall,
        "cached": min(timed(again, room) for _ in range(repetitions)),
        "plan": min(timed([*again, "--plan"], room) for _ in range(repetitions)),
        "peak_mib": summary["peak_rss_mb"] * 1e6 / 2**20,
        "steps": {step["name"]: step["seconds"] for step in summary["steps"]},
    }


def measure_getrandom() -> float:
    """Return megabytes of the operating system's coins a second, on one core, which limits a release's perturb."""
    began = time.monotonic()
    for _ in range(64):
        os.urandom(2**22)
    return 64 * 2**22 / 1e6 / (time.monotonic() - began)


def timed(command: list[object], room: Path) -> float:
    return timed_json(command, room, parse=False)[0]


def timed_json(command: list[object], room: Path, *, parse: bool = True) -> tuple[float, dict[str, object]]:
    began = time.monotonic()
    done = subprocess.run(
        [str(w) for w in command],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(room)},
    )
    seconds = time.monotonic() - began
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return seconds, json.loads(done.stdout) if parse else {}


@contextlib.contextmanager
def standing(work: Path) -> Iterator[None]:
    """A server that later runs use, as `ldptree ui` keeps one up."""
    process = subprocess.Popen(
        [*LDPTREE, "ui", "--work", str(work), "--port", "4317"], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    from flows.server.health import answers

    os.environ["PREFECT_API_URL"] = url = "http://127.0.0.1:4317/api"
    while not answers(url, seconds=1):
        time.sleep(0.2)
    try:
        yield
    finally:
        del os.environ["PREFECT_API_URL"]
        process.send_signal(2)
        process.wait(timeout=30)


if __name__ == "__main__":
    main()

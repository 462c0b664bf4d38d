"""Values planted in private rows are found nowhere outside of the holders' zone: after good runs and failed ones, with
and without `--debug`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from chain import rides
from search import Canary, found
from whole_runs import PATIENCE, rides_toml

from storage import tables

pytestmark = [pytest.mark.server, pytest.mark.slow]

NUMBER = Canary("number", 7654321.25)
TEXT = Canary("text", "CANARYTEXT")
LABEL = Canary("label", "CANARYLABEL")
PERSON = Canary("person", "CANARYPERSON")
BAD = Canary("bad value", "CANARYBAD")
CANARIES = (NUMBER, TEXT, LABEL, PERSON, BAD)
N_ROWS = 900

# Each a run of one process: what is broken inside before it (a function, made to quote a canary), and its arguments.
RUNS = {
    "good": ("", []),
    "private rows violate what is expected": ("", ["dataset.ranges={miles = [0, 1000]}"]),
    "validation fails": (
        "",
        [
            "dataset.ranges={miles = [0, 1000]}",
            "dataset.release_checks=true",
            "privacy.max_released_checks=99",
        ],
    ),
    "bad value": (
        "",
        ['dataset.on_bad_rows="stop"', "dataset.release_checks=true", "privacy.max_released_checks=99"],
    ),
    "a fault in ingest": ("tasks.data.read.read_files", ["seed=8"]),
    "a fault in validate": ("tasks.data.violations.count_rows", ["dataset.name=other"]),
    "a fault in split": ("tasks.holders.split.one_row_each", ["dataset.test_fraction=0.3"]),
    "a fault in perturb": ("tasks.perturb.values_of", ["privacy.epsilon=3"]),
    "a fault in evaluate": ("tasks.evaluate.read_rows", ["evaluation.redraws=4"]),
}
EXIT = {
    "good": 0,
    "private rows violate what is expected": 0,
    "validation fails": 3,
    "bad value": 3,
}

SCRIPT = """
import importlib, json, sys
from unittest import mock

def quoting(*_, **__):
    value = {quoted!r}
    try:
        float(value)
    except ValueError as fault:
        raise RuntimeError(f"cannot take {{value}}") from fault

def main(words, broken):
    from flows.command.main import main
    try:
        if not broken:
            main(words)
        module, _, name = broken.rpartition(".")
        with mock.patch.object(importlib.import_module(module), name, quoting):
            main(words)
    except SystemExit as end:
        return end.code

codes = {{name: main(words, broken) for name, (broken, words) in json.load(sys.stdin).items()}}
open(sys.argv[1], "w").write(json.dumps(codes))
"""


@dataclass
class Told:
    """All that became of the runs of one process: their exit codes, the work folder, what was printed."""

    process: subprocess.Popen[str]
    work: Path
    out: Path

    @property
    def codes(self) -> dict[str, int]:
        return json.loads((self.out / "codes.json").read_text())

    def outside(self) -> list[Path]:
        """Everything that is not in the holders' zone or the simulation's."""
        zones = (self.work / "holders", self.work / "simulation")
        return [p for p in self.work.iterdir() if p not in zones]


@pytest.fixture(scope="module")
def told(api, connected, tmp_path_factory):
    """Every run of RUNS without and with `--debug`, side by side."""
    folder = tmp_path_factory.mktemp("canaries")
    planted = plant(folder / "data" / "rides.csv")
    config = rides_toml(
        folder / "rides.toml",
        str(planted),
        dataset={"holder": "person", "drop": [], "on_bad_rows": "quarantine"},
        evaluation={"redraws": 2},
        model={"depth": 2},
    )
    config.write_text(config.read_text().replace("evaluate = false", "release = true"))
    both = {}
    for debug in ((), ("--debug",)):
        out = folder / f"out{''.join(debug)}"
        out.mkdir()
        work = out / "work"
        wanted = {
            name: (
                broken,
                ["run", str(config), "--work", str(work), *(w for s in sets for w in ("--set", s)), *debug],
            )
            for name, (broken, sets) in RUNS.items()
        }
        (out / "runs.json").write_text(json.dumps(wanted))
        script = SCRIPT.format(quoted=" ".join(str(c.value) for c in CANARIES))
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(out / "codes.json")],
            stdin=(out / "runs.json").open(),
            stdout=(out / "stdout.txt").open("w"),
            stderr=(out / "stderr.txt").open("w"),
            env=os.environ | {"PREFECT_HOME": str(work / "prefect")},
        )
        both["debug" if debug else "plain"] = Told(process, work, out)
    for one in both.values():
        one.process.wait(timeout=PATIENCE)
    return both


def plant(path: Path) -> Path:
    """Rides in which each canary stands in a private row; the bad value where a number belongs."""
    rng = np.random.default_rng(5)
    closed = [i for i in range(N_ROWS) if i % 3]
    columns = {
        "miles": [str(v) for v in rng.gamma(2.0, 3.0, N_ROWS).round(2)],
        "hour": [str(v) for v in rng.integers(0, 24, N_ROWS)],
        "firm": list(rng.choice(["ash", "birch"], N_ROWS)),
        "paid": list(rng.choice(["card", "cash"], N_ROWS)),
        "person": [f"p{i}" for i in range(N_ROWS)],
    }
    for i in range(4):  # held back or not, some row of each is there
        columns["miles"][closed[i]] = str(NUMBER.value)
        columns["firm"][closed[10 + i]] = TEXT.value
        columns["paid"][closed[20 + i]] = LABEL.value
        columns["person"][closed[30 + i]] = f"{PERSON.value}{i}"
    columns["hour"][closed[40]] = BAD.value
    return rides(path, N_ROWS, seed=5, **columns)


@pytest.mark.parametrize("mode", ["plain", "debug"])
def test_the_runs_end_as_they_should(told, mode):
    assert told[mode].codes == {name: EXIT.get(name, 1) for name in RUNS}


@pytest.mark.parametrize("mode", ["plain", "debug"])
def test_the_holders_zone_holds_every_canary(told, mode):
    """Else the search would prove nothing."""
    holding = found(CANARIES, told[mode].work / "holders")
    assert all(holding.values()), holding


@pytest.mark.parametrize("mode", ["plain", "debug"])
def test_no_canary_is_in_the_work_folder_outside_of_the_holders_zone(told, mode):
    assert not any(found(CANARIES, *told[mode].outside()).values())


@pytest.mark.parametrize("mode", ["plain", "debug"])
def test_no_canary_is_on_the_terminal(told, mode):
    printed = [told[mode].out / name for name in ("stdout.txt", "stderr.txt")]
    assert "RuntimeError" in printed[1].read_text()
    assert not any(found(CANARIES, *printed).values())


def test_without_debug_a_failed_run_says_one_thing(told):
    lines = (told["plain"].out / "stderr.txt").read_text().splitlines()
    messages = [line for line in lines if line.startswith("ldptree: ")]
    assert len(messages) == sum(code != 0 for code in told["plain"].codes.values())
    assert not [line for line in lines if "Traceback" in line or "leaked" in line]


def test_no_canary_is_in_prefects_database_results_or_logs(told, api):
    assert (api.home / "prefect.db").exists()
    assert not any(found(CANARIES, api.home).values())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT message FROM log",
        "SELECT data FROM artifact WHERE key = 'failure'",
        "SELECT message FROM flow_run_state WHERE type = 'FAILED'",
    ],
)
def test_the_database_holds_why_each_run_failed(told, api, query):
    """Else the search in it would prove nothing."""
    with contextlib.closing(sqlite3.connect(api.home / "prefect.db")) as database:
        texts = [str(row[0]) for row in database.execute(query)]
    for step in ("read", "count", "split", "perturb", "evaluate"):
        saying = [text for text in texts if f"{step}: stopped by an unexpected RuntimeError" in text]
        assert len(saying) >= 2, step  # with and without `--debug`


def test_a_fault_in_a_holders_step_is_told_in_their_zone_alone(told):
    for one in told.values():
        steps = {path.name.split("-")[0] for path in (one.work / "holders" / "faults").glob("*.txt")}
        assert {"read", "count", "split", "perturb"} <= steps
        assert {p.name.split("-")[0] for p in (one.work / "simulation" / "faults").glob("*.txt")} == {
            "evaluate"
        }


@pytest.mark.parametrize("canary", [NUMBER, TEXT], ids=["number", "text"])
def test_the_search_finds_a_value_wherever_it_may_be(canary, tmp_path):
    value = canary.value
    tables.write(tmp_path / "table.parquet", pa.table({"x": [value] * 3}))
    with sqlite3.connect(tmp_path / "database.db") as database:
        database.execute("CREATE TABLE t (x)")
        database.execute("INSERT INTO t VALUES (?)", [json.dumps({"said": str(value)})])
    database.close()
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as warehouse:
        warehouse.execute("CREATE TABLE t AS SELECT ? AS x", [value])
    (tmp_path / "page.html").write_text(f"<td>{value:,}</td>" if canary is NUMBER else f"<td>{value}</td>")
    (tmp_path / "result.json").write_text(json.dumps({"x": value}))
    (tmp_path / "array.npy").write_bytes(canary.binary[0])
    assert found((canary,), tmp_path)[canary.name] == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    "said", ["7654321", "x=7654321.25;", "7,654,321.2", "7.654321e+06", "7.65432E6", r"\n7654321\n"]
)
def test_a_number_is_found_however_it_is_spelled(said):
    assert NUMBER.is_in(said)


@pytest.mark.parametrize(
    "said",
    ["17654321", "76543210", "0.7654321", "3f2b7654321a4c0d", "7.654329", "12:00:07.654321", "7.65432e-06"],
)
def test_its_digits_inside_of_others_are_not_the_number(said):
    """Identifiers and times hold any digits now and then."""
    assert not NUMBER.is_in(said)

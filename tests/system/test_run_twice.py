"""A blind release run twice, with one private row changed: every byte outside of the holders' zone is the same.

What may differ by law is fixed: every holder reports "outside", by coins of a seed (a report is private by its mechanism, which
`ldptree audit` tests); keyed digests are names that say nothing but whether two things are equal; rows keep the order of their
file; clock and memory stand still (docs/explanation/privacy.md states times as a side channel).
"""

from __future__ import annotations

import hashlib
import logging
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from shutil import rmtree
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import pytest
from chain import fares, fares_config, mended, rides, rides_config, shells, shells_config
from prefect.logging.configuration import setup_logging
from whole_runs import run as run_by_prefect
from whole_runs import until

from flows.executors import InlineExecutor
from flows.finish import finish, stop_where_failed
from flows.pipeline import Pipeline
from ldptree.errors import DataError
from storage.digests import Hasher
from storage.store import Store
from tasks import perturb
from tasks.holders.show import Rows
from tasks.progress import Timeline

pytestmark = [pytest.mark.server, pytest.mark.slow]

N = 240
ROW, OTHER = 101, 103
"""The row that is changed, from 0, and the one whose values it gets: private ones."""
BLIND = {"simulation": {"noise_seed": None}, "evaluate": False}
TORN = "a line that cannot be split"
EQUAL = "the values of another row"
FAULTS: dict[str, dict[str, str]] = {
    "another value": {"miles": "7.25"},
    "a value that cannot be read": {"miles": "CANARY"},
    "a value far out of its range": {"hour": "999999"},
    "an infinite value": {"miles": "inf"},
    "a missing value": {"miles": ""},
    "an unknown category": {"firm": "CANARY"},
    "a very long text": {"firm": "x" * 100_000},
    "a missing label": {"paid": ""},
    "a label that nobody declared": {"paid": "CANARY"},
    EQUAL: {},
    TORN: {},
}


class Moment(datetime):
    """The time of every run."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=tz or UTC)


def keyed_names() -> Callable[[Hasher, bytes], str]:
    """Keyed digests as names given in the order in which they are asked for."""
    known: dict[bytes, str] = {}

    def finish(hasher: Hasher, digest: bytes) -> str:
        if not hasher.secret:
            return digest.hex()
        return known.setdefault(digest, hashlib.sha256(b"name %d" % len(known)).hexdigest())

    return finish


def all_outside(real: Callable[..., Any]) -> Callable[..., Any]:
    """What every holder has to report, read as in earnest and then forgotten."""

    def values_of(path: Path, protocol: Any, *rest: Any) -> Any:
        return np.full(len(real(path, protocol, *rest)), protocol.mechanism.n_values - 1)

    return values_of


def all_alike(real: Callable[..., Rows]) -> Callable[..., Rows]:
    """The rows of holders who protect nothing but zeros, read as in earnest and then forgotten."""

    def read_rows(*call: Any) -> Rows:
        rows = real(*call)
        return Rows(np.where(rows.protects, 0.0, rows.points), np.zeros_like(rows.labels), rows.protects)

    return read_rows


@contextmanager
def blinded() -> Iterator[None]:
    """All that may differ by law, fixed."""
    coins, clock = np.random.SFC64(5), SimpleNamespace(monotonic=lambda: 1.0)
    changes = {
        "ldptree.coins._system_words": coins.random_raw,
        "storage.holders.secret.secrets": SimpleNamespace(token_bytes=lambda n: b"s" * n),
        "storage.ledger.connections.secrets": SimpleNamespace(token_hex=lambda n: "5" * 2 * n),
        "storage.digests.Hasher._finish": keyed_names(),
        "tasks.holders.cut.in_an_order": lambda _keyed, _name, rows: rows,
        "tasks.holders.cut.SHARD_ROWS": 64,
        "tasks.perturb.values_of": all_outside(perturb.values_of),
        "tasks.perturb.read_rows": all_alike(perturb.read_rows),
        "tasks.data.validate._draw_docs": lambda outcome, path: None,  # Great Expectations' page bears dates
        "tasks.progress.time": clock,
        "tasks.step.time": clock,
        "flows.naming.datetime": Moment,
        "tasks.progress.datetime": Moment,
        "tasks.making.datetime": Moment,
        "tasks.making.peak_rss_mb": lambda: 1.0,
        "flows.finish.peak_rss_mb": lambda: 1.0,
    }
    with ExitStack() as stack:
        for name, change in changes.items():
            stack.enter_context(mock.patch(name, change))
        yield


def left_outside(work: Path) -> dict[str, Any]:
    """Every file outside of the holders' zone by its name, with its bytes; of the warehouse what its tables hold."""
    files = [
        path for path in sorted(work.rglob("*")) if path.is_file() and work / "holders" not in path.parents
    ]
    return {str(path.relative_to(work)): contents(path) for path in files}


def contents(path: Path) -> Any:
    if path.suffix != ".duckdb":
        return path.read_bytes()
    import duckdb

    with duckdb.connect(str(path), read_only=True) as warehouse:
        names = [
            row[0]
            for row in warehouse.execute("SELECT table_name FROM duckdb_tables() ORDER BY ALL").fetchall()
        ]
        return {name: warehouse.execute(f'SELECT * FROM "{name}" ORDER BY ALL').fetchall() for name in names}


def ran(config: Any, work: Path) -> dict[str, Any]:
    """What a blind release left outside of the holders' zone of a new work folder, and what it said."""
    rmtree(work, ignore_errors=True)
    with blinded():
        store, timeline = Store(work), Timeline()
        said: list[Any] = []
        with timeline.listening():
            pipeline = Pipeline(store=store, config=config, executor=InlineExecutor(store), timeline=timeline)
            try:
                stop_where_failed(pipeline)
                pipeline.walk()
                said.append(finish(pipeline))
            except DataError as stop:
                said.append(str(stop))
    return left_outside(work) | {"said": said}


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def changed(path: Path, fault: str, columns: Mapping[str, str]) -> None:
    """Give one private row a fault; `columns`: of `rides` those that a family's file has under another name."""
    head, *lines = path.read_text().splitlines()
    names, cells = head.split(","), lines[ROW].split(",")
    if fault == EQUAL:
        others = dict(zip(names, lines[OTHER].split(","), strict=True))
        stays = {"person", "size", "kind"}  # who it is, and what everybody sees
        cells = [cell if name in stays else others[name] for name, cell in zip(names, cells, strict=True)]
    for name, value in FAULTS[fault].items():
        cells[names.index(columns.get(name, name))] = value
    lines[ROW] = ",".join(cells[:2] if fault == TORN else cells)
    path.write_text("\n".join([head, *lines]) + "\n")


NAMED = {"holder": "person", "drop": []}
PUT_ASIDE = {"on_bad_rows": "quarantine"}
RANGED = {"ranges": {"hour": (0, 23)}, "types": {"hour": "integer"}}
OF_SHELLS = {"miles": "weight", "hour": "weight", "firm": "weight", "paid": "rings"}


def by_class(room: Path, make: Callable[..., Any] = rides_config, **dataset: Any) -> tuple[Path, Any]:
    path = rides(room / "rides.csv", N, 1)
    return path, make(path, dataset=RANGED | dataset, **BLIND)


def by_number(room: Path, make: Callable[..., Any] = fares_config, **dataset: Any) -> tuple[Path, Any]:
    path = fares(room / "fares.csv", N, 1)
    return path, make(path, dataset=RANGED | dataset, **BLIND)


def in_rounds(room: Path, estimator: str) -> tuple[Path, Any]:
    path = shells(room / "shells.parquet", N, 1)
    pl.read_parquet(path).write_csv(room / "shells.csv")
    model = {"estimator": estimator, "label_range": [0, 30]}
    return room / "shells.csv", shells_config(room / "shells.csv", model=model, dataset=PUT_ASIDE, **BLIND)


FAMILIES: dict[str, Callable[[Path], tuple[Path, Any]]] = {
    "lpct": by_class,
    "lpct, rows put aside": lambda room: by_class(room, **PUT_ASIDE),
    "lpct, named holders": lambda room: by_class(room, **PUT_ASIDE, **NAMED),
    "lpct, missing values dropped": lambda room: by_class(room, fill="drop"),
    "lpdt": lambda room: by_number(room, **PUT_ASIDE),
    "correction": lambda room: by_class(room, partial(mended, rides_config), **PUT_ASIDE),
    "public_features": lambda room: in_rounds(room, "public_features"),
    "histoftree": lambda room: in_rounds(room, "histoftree"),
}


@pytest.fixture(scope="module", params=FAMILIES)
def base(request, tmp_path_factory):
    """The file of a family's rows, the configuration, a work folder, and what a run left outside of the holders' zone."""
    room = tmp_path_factory.mktemp("twice")
    path, config = FAMILIES[request.param](room)
    before = ran(config, room / "work")
    assert "runs/run/run.json" in before
    return path, config, room / "work", before


def is_stated(config: Any, fault: str) -> bool:
    """Whether docs/explanation/privacy.md says that a fault of a private row shows: that a line cannot be split, where the run
    stops, where a column names the holders, and where everybody sees some features.
    """
    is_seen = config.dataset.holder != "row" or config.model.in_rounds
    return fault == TORN and (is_seen or config.dataset.on_bad_rows == "stop")


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_a_private_row_changes_nothing_that_leaves(base, fault):
    path, config, work, before = base
    original = path.read_bytes()
    try:
        if fault is not None:
            changed(path, fault, OF_SHELLS if path.name == "shells.csv" else {})
        found = differing(before, ran(config, work))
        assert not found or is_stated(config, fault)
    finally:
        path.write_bytes(original)


def test_no_plain_digest_of_the_file_leaves(base):
    """Whoever guesses a whole file must not be told that they are right."""
    path, _, _, before = base
    plain = hashlib.sha256(path.read_bytes()).hexdigest()[:12].encode()
    assert not [
        name
        for name, left in before.items()
        if plain in (left if isinstance(left, bytes) else repr(left).encode())
    ]


MASKS = {
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": "ID",
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?": "TIME",
    r"\d\d:\d\d:\d\d\.\d{3}": "TIME",
    r"run-[0-9a-f]{8}": "TASK RUN",
    r"(ldptree-\w+-[0-9a-f]{32})-[0-9a-f]{16}": r"\1",
}
"""What Prefect draws or measures itself."""
TABLES = (
    "flow_run",
    "flow_run_state",
    "task_run",
    "task_run_state",
    "artifact",
    "log",
)


def masked(text: str) -> str:
    for pattern, word in MASKS.items():
        text = re.sub(pattern, word, text)
    return text


def kept_by_prefect(home: Path) -> Counter[str]:
    """Rows of its database and files of its results."""
    with closing(sqlite3.connect(home / "prefect.db")) as database:
        rows = [(table, *row) for table in TABLES for row in database.execute(f"SELECT * FROM {table}")]
    files = [(path.name, path.read_text()) for path in home.glob("storage/*")]
    return Counter(masked("|".join(map(str, row))) for row in [*rows, *files])


def are_written(home: Path) -> bool:
    """Whether Prefect has written the three states of every task run of the last run, which it does some time after."""
    counts = """SELECT (SELECT count(*) FROM task_run_state WHERE task_run_id = task_run.id) FROM task_run
        WHERE flow_run_id = (SELECT id FROM flow_run ORDER BY created DESC LIMIT 1)"""
    with closing(sqlite3.connect(home / "prefect.db")) as database:
        return {count for (count,) in database.execute(counts)} == {3}


def test_a_private_row_changes_nothing_that_prefect_keeps_or_logs(api, tmp_path, monkeypatch):
    path, config = by_class(tmp_path, **PUT_ASIDE)
    kept, lines, records = [kept_by_prefect(api.home)], [], []
    setup_logging()  # before the handler of this test, which it would take away
    handler = logging.Handler()
    monkeypatch.setattr(
        handler, "emit", lambda record: records.append(f"{record.name} {record.getMessage()}")
    )
    logger = logging.getLogger("prefect")
    monkeypatch.setattr(logger, "handlers", [*logger.handlers, handler])
    for fault in (None, "a missing label", "a value that cannot be read"):
        if fault is not None:
            changed(path, fault, {})
        rmtree(tmp_path / "work", ignore_errors=True)
        with blinded():
            run_by_prefect(config, tmp_path / "work", workers=1)
        until("its last state", lambda: are_written(api.home))
        kept.append(kept_by_prefect(api.home))
        lines.append(
            sorted(
                masked(record)
                for record in records
                if record.startswith(("prefect.flow_runs", "prefect.task_runs"))
            )
        )
        records.clear()
    first, *others = [after - before for before, after in pairwise(kept)]
    assert any("summary" in row for row in first)
    assert [[*(other - first), *(first - other)] for other in others] == [[], []]
    plain = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    assert not any(plain in text for text in [*kept[-1], *lines[-1]])
    assert any("160 holders" in line for line in lines[0])
    assert lines[1:] == [lines[0], lines[0]]

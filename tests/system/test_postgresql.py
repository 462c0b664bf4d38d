"""The holders' database on PostgreSQL. Prefect on PostgreSQL, as docs/how-to/operate.md sets it up for many machines: two workers
share the runs, a limit of a step holds across them, results are those of a run without any of it, and nothing of a person reaches
that database.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from search import Canary, found
from whole_runs import PATIENCE, Api, many_files, rides_toml, start, until

from ldptree.errors import ArtifactCorrupt, BudgetError, LdptreeError
from ldptree.protocol.ledger import Charge, Names, RowRange
from storage.ledger import connections
from storage.ledger.accounts import Account
from storage.ledger.connections import VARIABLE, url_of
from storage.ledger.database import Database
from storage.ledger.lost_parts import check_state
from storage.machine_faults import machine_fault
from storage.objects.object_store import NotReached
from storage.store import Store

PROGRAMS = ("initdb", "pg_ctl", "createdb", "pg_dump")
FOLDERS = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), *map(Path, os.get_exec_path())]
BINARIES = next((one for one in FOLDERS if all((one / name).exists() for name in PROGRAMS)), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BINARIES is None, reason="PostgreSQL is not installed"),
]

CHECKOUT = Path(__file__).parents[2]
PREFECT = [Path(sys.executable).with_name("prefect"), "--no-prompt"]
CANARY = Canary("a person's name", "person-7731-canary")
N_SHARDS = 6


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def postgresql() -> Iterator[int]:
    """A server of its own with the database "prefect", on a free port of this machine; it refuses to be run by root."""
    assert BINARIES is not None
    person = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
    folder, port = Path(tempfile.mkdtemp(prefix="ldptree-pg-")), free_port()
    if person:
        shutil.chown(folder, "postgres", "postgres")

    def do(program: str, *words: object) -> str:
        command = [*person, BINARIES / program, *words]
        return subprocess.run(
            [str(word) for word in command], check=True, cwd=folder, stdout=subprocess.PIPE, text=True
        ).stdout

    do("initdb", "-D", folder / "data", "-U", "prefect", "--auth=trust", "-E", "UTF8", "--no-sync")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
    do("pg_ctl", "-D", folder / "data", "-l", folder / "log", "-o", options, "-w", "start")
    try:
        do("createdb", "-h", "127.0.0.1", "-p", port, "-U", "prefect", "prefect")
        yield port
    finally:
        do("pg_ctl", "-D", folder / "data", "-m", "immediate", "stop")
        shutil.rmtree(folder)


def dump(port: int, to: Path) -> Path:
    """All of the database as text."""
    assert BINARIES is not None
    address = ["-h", "127.0.0.1", "-p", str(port), "-U", "prefect"]
    subprocess.run([BINARIES / "pg_dump", *address, "-f", to, "prefect"], check=True)
    return to


@contextlib.contextmanager
def process(*words: str, env: dict[str, str], cwd: Path, log: Path) -> Iterator[None]:
    """A Prefect process that is up in here."""
    with log.open("w") as sink:
        begun = subprocess.Popen([*PREFECT, *words], env=env, cwd=cwd, stdout=sink, stderr=sink)
        try:
            yield
        finally:
            begun.send_signal(signal.SIGINT)
            try:
                begun.wait(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                begun.kill()


ROWS = RowRange(source="file", start=0, stop=10)


def asked(question: str) -> Charge:
    return Charge(question=question, epsilon=1.0, who=ROWS, about=question)


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty database on PostgreSQL, which LDPTREE_DATABASE names."""
    pytest.importorskip("psycopg")
    with postgresql() as port:
        address = f"postgresql+psycopg://prefect@127.0.0.1:{port}/prefect"
        monkeypatch.setenv(VARIABLE, address)
        yield address


def test_of_machines_that_charge_at_once_on_postgresql_nobody_overspends(
    address: str, tmp_path: Path
) -> None:
    """The first of them make the database; each sees what the one before it spent, and an older copy is seen."""
    store, paid = Store(tmp_path / "work"), []
    check_state(store)
    assert len(Account(store, None).read()) == 0
    gate = threading.Barrier(6)

    def charge(number: int) -> None:
        gate.wait()
        with contextlib.suppress(BudgetError):
            Account(Store(store.root), None).charge([asked(f"question {number}")], cap=3.0)
            paid.append(f"question {number}")

    threads = [threading.Thread(target=charge, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger = Account(store, None).read()
    assert (ledger.spent_by(ROWS), len(paid)) == (3.0, 3)
    assert {entry.question for entry in ledger.entries} == {*paid}
    people = Names(range(2**21 + 10))
    Account(store, 5).charge([Charge(question="people", epsilon=1.0, who=people, about="people")], cap=None)
    assert len(Account(store, 5).read().entries[0].who) == len(people)
    check_state(store)
    older = "DELETE FROM transactions WHERE number = 4; DELETE FROM people; DELETE FROM charges WHERE account = 'seed-5'"
    for statement, said in ((older, "older than"), ("UPDATE charges SET epsilon = 0.1", "damaged")):
        with connections.connected(url_of(store.objects), "create") as connection:
            connection.exec_driver_sql(statement)
            connection.commit()
        with pytest.raises(ArtifactCorrupt, match=said):
            check_state(store)
    with connections.connected(url_of(store.objects), "create") as connection:
        connection.exec_driver_sql("UPDATE origin SET version = 99")
        connection.commit()
    with pytest.raises(ArtifactCorrupt, match="written by a later ldptree"):
        check_state(store)


def test_a_server_that_is_held_or_gone_is_told_in_a_sentence_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setattr(connections, "PATIENCE", 1)
    connections._engine.cache_clear()
    store = Store(tmp_path / "work")
    with postgresql() as port:
        monkeypatch.setenv(VARIABLE, f"postgresql+psycopg://prefect:hidden@127.0.0.1:{port}/prefect")
        Account(store, None).charge([asked("one")], cap=None)
        with Database(store.objects).writing():
            assert len(Account(store, None).read()) == 1
            with pytest.raises(LdptreeError, match="another process has held it for 1 seconds") as held:
                Account(store, None).charge([asked("two")], cap=None)
    with pytest.raises(NotReached, match="does not answer as it should") as gone:
        Account(store, None).read()
    connections._engine.cache_clear()
    told = machine_fault(gone.value)
    assert "hidden" not in f"{held.value} {told} {gone.value.__cause__}"
    assert "prefect" in str(told)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, int, Path, dict[str, str]]]:
    """PostgreSQL, a Prefect server on it, both deployments and two workers of which each takes one run at a time."""
    from flows.server.health import answers

    folder = tmp_path_factory.mktemp("site")
    with postgresql() as database:
        port = free_port()
        api = Api(f"http://127.0.0.1:{port}/api", folder / "prefect", folder / "none")
        env = {name: text for name, text in os.environ.items() if not name.startswith("PREFECT_")}
        env |= api.environment | {
            "PREFECT_API_DATABASE_CONNECTION_URL": f"postgresql+asyncpg://prefect@127.0.0.1:{database}/prefect",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_SERVER_TASKS_TAG_CONCURRENCY_SLOT_WAIT_SECONDS": "1",
            "PREFECT_WORKER_QUERY_SECONDS": "1",
            "PWD": str(folder),
        }
        serve = ("server", "start", "--host", "127.0.0.1", "--port", str(port))
        worker = ("worker", "start", "--pool", "ldptree", "--limit", "1", "--name")
        with contextlib.ExitStack() as stack:
            enter = stack.enter_context
            enter(process(*serve, env=env, cwd=folder, log=folder / "server.log"))
            until("the server on PostgreSQL", lambda: answers(api.url, seconds=1))
            for words in (
                ("work-pool", "create", "ldptree", "--type", "process"),
                ("concurrency-limit", "create", "ldptree-perturb", "1"),
                ("deploy", "--all"),
            ):
                subprocess.run([*PREFECT, *words], env=env, cwd=CHECKOUT, check=True, capture_output=True)
            for name in ("one", "two"):
                enter(process(*worker, name, env=env, cwd=folder, log=folder / f"{name}.log"))
            yield api, database, folder, env


def begin(api: Api, config: Path, work: str) -> dict[str, Any]:
    made = api.get("/deployments/name/train/weekly")
    api_path = f"/deployments/{made['id']}"
    parameters = {"config": str(config), "overrides": ["run.workers=2"], "work": work}
    run: dict[str, Any] = api.post(
        f"{api_path}/create_flow_run", {"parameters": parameters, "state": {"type": "SCHEDULED"}}
    )
    return run


def test_two_workers_share_the_runs_a_limit_holds_across_them_and_gc_deletes_there(
    site: tuple[Api, int, Path, dict[str, str]],
) -> None:
    api, database, folder, env = site
    (folder / "files").mkdir()
    files = many_files(folder / "files", n_shards=N_SHARDS)
    rows = (files / "rides-03.csv").read_text().splitlines()
    person = rows[0].split(",").index("person")
    rows[1] = ",".join(CANARY.value if at == person else cell for at, cell in enumerate(rows[1].split(",")))
    (files / "rides-03.csv").write_text("\n".join(rows) + "\n")
    config = rides_toml(folder / "rides.toml", str(files / "*.csv"), simulation={"noise_seed": 11})
    made = api.get("/deployments/name/train/weekly")
    # By itself a deployment of prefect.yaml has one run at a time.
    subprocess.run(
        [*PREFECT, "deploy", "--name", "weekly", "--concurrency-limit", "2"],
        env=env, cwd=CHECKOUT, check=True, capture_output=True,
    )  # fmt: skip
    assert made["work_pool_name"] == "ldptree"
    begun = [begin(api, config, f"work-{number}") for number in (1, 2)]

    def ended() -> list[dict[str, Any]]:
        now = [api.get(f"/flow_runs/{run['id']}") for run in begun]
        return now if all(run["state_type"] in ("COMPLETED", "FAILED", "CRASHED") for run in now) else []

    runs = until("both runs", ended, every=1.0)
    assert [run["state_name"] for run in runs] == ["Completed", "Completed"], runs
    spans = [(run["start_time"], run["end_time"]) for run in runs]
    assert max(start for start, _ in spans) < min(end for _, end in spans), "they were not going on at once"
    for name in ("one", "two"):
        assert "Finished in state Completed" in (folder / f"{name}.log").read_text(), (
            f"worker {name} took no run"
        )

    # The limit.
    tasks = [
        task
        for run in runs
        for task in api.post("/task_runs/filter", {"flow_runs": {"id": {"any_": [run["id"]]}}, "limit": 200})
        if "ldptree-perturb" in task["tags"]
    ]
    assert len(tasks) == 2 * N_SHARDS
    running = sorted(
        (datetime.fromisoformat(task["start_time"]), datetime.fromisoformat(task["end_time"]))
        for task in tasks
    )
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(running))

    # The results.
    alone = start(
        "run", config, "--work", folder / "alone", "--json", env={"PREFECT_API_URL": ""}, cwd=folder
    )
    out, err = alone.communicate(timeout=PATIENCE)
    assert alone.returncode == 0, err
    expected = (folder / "alone" / "runs" / json.loads(out)["run"] / "model.json").read_bytes()
    for number, run in zip((1, 2), runs, strict=True):
        assert (folder / f"work-{number}" / "runs" / run["name"] / "model.json").read_bytes() == expected

    # Nothing of a person is in the database; that of the run is.
    (folder / "dump").mkdir()
    text = dump(database, folder / "dump" / "prefect.sql")
    assert runs[0]["name"] in text.read_text()
    assert found((CANARY,), files)[CANARY.name] == {"rides-03.csv"}
    assert found((CANARY,), folder / "dump")[CANARY.name] == set()

"""Whole runs in tests: in this process or through the installed command, and what the Prefect server says of them."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import uuid4

from chain import RIDES, laid_over, rides

COMMAND = Path(sys.executable).with_name("ldptree")
PATIENCE = 600.0
"""Seconds after which what was waited for is taken not to come, on a machine that does much else."""

SMALL = (
    "model.estimator=lpct",
    "dataset.rows=20000",
    "model.depth=4",
    "evaluation.redraws=2",
    "evaluation.test_rows=1000",
    "evaluation.public_rows=500",
    "evaluation.private_rows=1000",
)
"""The quickstart made small, with one tree for its forest."""


def until(what: str, found: Any, *, every: float = 0.1) -> Any:
    """The first true value of `found()`."""
    end = time.monotonic() + PATIENCE
    while not (value := found()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(every)
    return value


@dataclass(frozen=True)
class Api:
    """A Prefect server, spoken to as anybody from outside would.

    Attributes:
        url: its address.
        home: Prefect's folder.
        empty: a copy of its database from before its first run.
    """

    url: str
    home: Path
    empty: Path

    def begin(self, work: Path) -> Path:
        """The work folder `work`, with a database for the server of its runs: migrating a new one takes several seconds."""
        database = work / "prefect" / "prefect.db"
        database.parent.mkdir(parents=True)
        shutil.copyfile(self.empty, database)
        return work

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to talk to it."""
        return {"PREFECT_API_URL": self.url, "PREFECT_HOME": str(self.home)}

    @contextmanager
    def connected(self) -> Iterator[None]:
        """What runs in this process, or is started by it, talks to this server; afterwards nothing does."""
        import prefect.context
        from prefect.events.worker import EventsWorker
        from prefect.settings import (
            PREFECT_API_URL,
            PREFECT_HOME,
            PREFECT_LOGGING_TO_API_ENABLED,
            temporary_settings,
        )

        updates = {
            PREFECT_API_URL: self.url,
            PREFECT_HOME: self.home,
            PREFECT_LOGGING_TO_API_ENABLED: False,  # runs of the installed command do send their logs
        }
        with ExitStack() as stack:
            stack.enter_context(mock.patch.dict(os.environ, self.environment))
            stack.enter_context(temporary_settings(updates=updates))
            # Threads that Prefect started earlier have no context of ours.
            settings = prefect.context.get_settings_context()
            stack.enter_context(prefect.context._temporary_global_settings_context(settings))
            try:
                yield
            finally:
                EventsWorker.drain_all()
                logging.disable(logging.NOTSET)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The answer to a question. Raises urllib.error.HTTPError."""
        return self._ask(path, json.dumps(body).encode(), "POST")

    def get(self, path: str) -> Any:
        """What stands under an address. Raises urllib.error.HTTPError."""
        return self._ask(path, None, "GET")

    def delete(self, path: str) -> None:
        """Delete what stands under an address. Raises urllib.error.HTTPError."""
        self._ask(path, None, "DELETE")

    def _ask(self, path: str, body: bytes | None, method: str) -> Any:
        """What is answered, asked again while the server's database is busy."""
        tries = 1
        while True:
            headers = {"Content-Type": "application/json"} | ({} if method == "GET" else self._token())
            request = urllib.request.Request(f"{self.url}{path}", body, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.loads(answer.read() or b"null")
            except urllib.error.HTTPError as refused:
                if refused.code != 503 or tries == 10:
                    raise
                tries += 1
                time.sleep(0.5)

    def _token(self) -> dict[str, str]:
        """The headers with which a program may ask for a change; none of a server that wants none."""
        client = str(uuid4())
        try:
            token = self.get(f"/csrf-token?client={client}")["token"]
        except urllib.error.HTTPError:
            return {}
        return {"Prefect-Csrf-Token": token, "Prefect-Csrf-Client": client}

    def refusal(self, path: str, body: dict[str, Any]) -> int:
        """The HTTP status of a question that is refused."""
        try:
            self.post(path, body)
        except urllib.error.HTTPError as refused:
            return refused.code
        return 200

    def states(self, run: str, n_tasks: int) -> dict[str, str]:
        """Step to state name, once all `n_tasks` task runs of a flow run are over; of a mapped step its only state."""

        def over() -> list[dict[str, Any]] | None:
            tasks = self.post("/task_runs/filter", {"flow_runs": {"name": {"any_": [run]}}})
            done = [t for t in tasks if t["state_type"] in ("COMPLETED", "FAILED", "CRASHED")]
            return done if len(done) == n_tasks else None

        states: dict[str, set[str]] = {}
        for task in until(f"{n_tasks} task runs of {run}", over):
            states.setdefault(task["name"].partition(":")[0], set()).add(task["state_name"])
        assert all(len(names) == 1 for names in states.values()), states
        return {step: names.pop() for step, names in states.items()}


def run(config: Any, work: Path, *, workers: int = 2) -> dict[str, Any]:
    """A run in this process, on threads where the configuration names no engine; its summary."""
    from flows.train_flow import train
    from schemas.tables import RunnerConfig

    if config.run == RunnerConfig():
        config = config.model_copy(update={"run": RunnerConfig(workers=workers)})
    return train(config=config, work=str(work))


def steps(summary: dict[str, Any], state: str) -> set[str]:
    """The steps of a run that were "computed", or "cached"."""
    return {step["name"] for step in summary["steps"] if step["state"] == state}


def start(
    *words: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None, own_group: bool = False
) -> subprocess.Popen[str]:
    """Begin the installed command; `own_group`: as the head of a group of processes, as a shell does."""
    return subprocess.Popen(
        [COMMAND, *map(str, words)],
        env=os.environ | (env or {}),
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=own_group,
    )


def learned(work: Path, summary: dict[str, Any]) -> tuple[bytes, bytes]:
    """What a run published and learned, byte for byte: its protocol and its model."""
    folder = work / "runs" / summary["run"]
    return (folder / "protocol.json").read_bytes(), (folder / "model.json").read_bytes()


def reports(work: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file of reports in a work folder: inode, time of change, bytes."""
    files = sorted((work / "curator" / "reports").rglob("*.parquet"))
    return {f.name: (f.stat().st_ino, f.stat().st_mtime_ns, f.read_bytes()) for f in files}


N_SHARDS = 20
MENDED: dict[str, dict[str, Any]] = {
    "model": {"estimator": "correction", "depth": 2, "base": "tree"},
}
"""Tables of a run that mends a public model, one that is quick to fit."""


def many_files(folder: Path, make: Callable[..., Path] = rides, n_shards: int = N_SHARDS) -> Path:
    """Files of a few private rows each, and one of public rows."""
    make(folder / "rides-public.csv", 600, seed=99, zone=["open"] * 600)
    for number in range(n_shards):
        make(folder / f"rides-{number:02}.csv", 100, seed=number, zone=["closed"] * 100)
    return folder


def rides_toml(path: Path, files: str, *, evaluate: bool = False, **tables: dict[str, Any]) -> Path:
    """The configuration of `chain.rides` as a file; `tables` are laid over it, without keys that are None."""
    lines = ['name = "rides"', "seed = 7", f"evaluate = {json.dumps(evaluate)}"]
    content = laid_over(RIDES | {"dataset": RIDES["dataset"] | {"path": files}}, tables)
    for table, entries in content.items():
        lines += [f"[{table}]", *(f"{key} = {json.dumps(v)}" for key, v in entries.items() if v is not None)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


@dataclass(frozen=True)
class Release:
    """A run that is over: its configuration, work folder and summary."""

    config: Any
    work: Path
    summary: dict[str, Any]


KILLED = """
import os, signal, sys
import flows.pipeline
from storage.objects.folder import FolderObjects

once, done = FolderObjects.draw, []

def draw(objects, name, write):
    def half(draft):
        write(draft)
        os.kill(os.getpid(), signal.SIGKILL)

    done.append(name)
    return once(objects, name, half if len(done) > {shards} else write)

FolderObjects.draw = draw
from flows.command.main import main
main(sys.argv[1:])
"""
"""A run that is killed while it writes the report after so many."""


@dataclass
class Killed:
    """A run that was killed in the middle of perturb, and what reports there were."""

    work: Path
    config: Path
    code: int
    kept: dict[str, tuple[int, int, bytes]]

    @classmethod
    def run(
        cls, files: Path, work: Path, *, after_shards: int, is_seeded: bool, **tables: dict[str, Any]
    ) -> Killed:
        """A run over `files` as far as the shard after `after_shards`; `tables` as of `rides_toml`."""
        tables |= {"simulation": {"noise_seed": 11}} if is_seeded else {}
        config = rides_toml(work.with_suffix(".toml"), str(files / "*.csv"), **tables)
        command = [sys.executable, "-c", KILLED.format(shards=after_shards), "run", config, "--work", work]
        code = subprocess.run([*command, "--workers", "1"], check=False, capture_output=True).returncode
        return cls(work, config, code, reports(work))

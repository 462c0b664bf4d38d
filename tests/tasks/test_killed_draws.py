"""A process that is killed at any step of writing reports leaves no second draw: not before the run goes on, nor after."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import example_protocol, perturb_shard, publish, shards_of
from forked import in_a_fork

from storage.objects.folder import FolderObjects
from storage.store import Store

pytestmark = pytest.mark.usefixtures("real_fsync")

N = 500
STEPS = {"open", "fsync", "link", "rename", "replace", "unlink", "mkdir", "flock", "sendfile"}
"""Calls between which what is on disk changes; writes are torn beside them."""

LONG = 50


class Killer:
    """Kills the process before the step with this number."""

    def __init__(self, at):
        self.at, self.seen = at, 0

    def step(self):
        if self.seen == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.seen += 1

    def hear(self, _frame, event, function):
        if event == "c_call" and function.__name__ in STEPS:
            self.step()


class Torn:
    """A file whose longer writes are torn: half of it, then the rest."""

    def __init__(self, file, killer):
        self.file, self.killer = file, killer

    def write(self, data):
        half = len(data) // 2
        for part in (bytes(data)[:half], bytes(data)[half:]):
            if half > LONG:
                self.killer.step()
            self.file.write(part)
            self.file.flush()
        return len(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


def run_until_killed(act, at):
    """`act` in a process of its own, which is killed at a step; the number of steps if it was not, else None."""

    def torn():
        killer = Killer(at)
        draw = FolderObjects.draw

        def draw_torn(objects, name, write):
            sys.setprofile(killer.hear)
            try:
                return draw(objects, name, lambda draft: write(Torn(draft, killer)))
            finally:
                sys.setprofile(None)

        FolderObjects.draw = draw_torn
        act()
        return killer.seen

    said = in_a_fork(torn)
    return int(said) if said else None


def reports_below(folder):
    """What each whole file of reports below a folder says."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            try:
                table = pq.read_table(path)
            except (pa.ArrowException, OSError):
                continue
            if b"holders" in (table.schema.metadata or {}):
                found[path] = str(table.to_pydict())
    return found


def check_every_kill(prepared, act, tmp_path):
    """Kill `act(store)` at each of its steps and let it go on: one draw at most, at every moment."""
    at, n_kept = 0, 0
    while True:
        work = tmp_path / "killed"
        shutil.copytree(prepared, work)
        store = Store(work)
        n_steps = run_until_killed(lambda s=store: act(s), at)
        seen = set(reports_below(work / "curator").values())
        assert len(seen) <= 1
        assert len(set(reports_below(work).values())) <= 1
        assert run_until_killed(lambda s=store: act(s), -1) is not None
        after = reports_below(work)
        assert len(set(after.values())) == 1, f"step {at}"
        assert seen <= set(after.values()), f"step {at}: another draw stands than the one that was there"
        n_kept += bool(seen)
        received = [path for path in (work / "curator" / "reports").rglob("*") if path.is_file()]
        assert [path.suffix for path in received] == [".parquet"], f"step {at}"
        assert not list((work / "holders" / "drafts").glob("*.part"))
        shutil.rmtree(work)
        if n_steps is not None:
            return at, n_kept
        at += 1


def test_reports_killed_at_any_step_are_never_drawn_twice(tmp_path):
    store = Store(tmp_path / "prepared")
    rng = np.random.default_rng(0)
    rows = {"x": rng.uniform(0, 8, N), "y": rng.uniform(0, 1, N), "label": rng.choice(["yes", "no"], N)}
    protocol, (shard,) = publish(store, example_protocol()), shards_of(store, rows)

    def act(store):
        perturb_shard(store, protocol, shard, noise_seed=None)

    act(Store(shutil.copytree(store.root, tmp_path / "warm")))  # what is compiled, is compiled once
    n_steps, n_kept = check_every_kill(store.root, act, tmp_path)
    assert n_steps > 15
    assert 0 < n_kept < n_steps


def test_a_file_that_stands_is_never_written_over(store):
    name = "curator/reports/shard.parquet"
    assert store.objects.draw(name, lambda draft: draft.write(b"first"))
    assert not store.objects.draw(name, lambda draft: draft.write(b"second"))
    assert store.objects.get(name) == b"first"


def test_a_draw_that_fails_leaves_nothing(store):
    def fail(draft):
        draft.write(b"half a draw")
        raise OSError(errno.ENOSPC, "no space")

    with pytest.raises(OSError, match="no space"):
        store.objects.draw("curator/reports/shard.parquet", fail)
    assert [p for p in store.root.rglob("*") if p.is_file() and p.name != ".lock"] == []

"""A step runs again exactly when its key changes or its artifact is gone or damaged, and its faults tell nothing private."""

from __future__ import annotations

import errno
import os

import pytest
from chain import Chain, rides, rides_config

from flows.executors import InlineExecutor
from ldptree.errors import ConfigError, LdptreeError
from schemas.manifest import FileEntry, MadeBy, Manifest
from storage.store import Store
from tasks import progress
from tasks.step import REGISTERED, NotInKey, Step, step

STEPS = (
    "types", "read", "ingest", "split", "cut", "scale", "partition", "perturb", "add", "aggregate", "prune", "evaluate"
)  # fmt: skip


def computed(store, config):
    """The steps that a run computes, in order, and those it finds."""
    started, found = [], []

    def hear(name, event, _):
        (started if event == "start" else found if event == "found" else []).append(name)

    stop = progress.listen(hear)
    try:
        chain = Chain(store, config, executor=InlineExecutor(store))
        assert chain.scores
    finally:
        stop()
    return chain, sorted(started, key=STEPS.index), sorted(found, key=STEPS.index)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run on a few rides; each test repairs what it breaks by running again."""
    folder = tmp_path_factory.mktemp("rides")
    store, config = Store(folder / "work"), rides_config(rides(folder / "a.csv", 300, 1))
    chain, started, found = computed(store, config)
    assert (tuple(started), found) == (STEPS, [])
    return chain


def test_a_second_run_computes_nothing(finished):
    _, started, found = computed(finished.store, finished.config)
    assert (started, tuple(found)) == ([], STEPS)


@pytest.mark.parametrize("damage", ["flip", "delete"])
@pytest.mark.parametrize(
    ("part", "name"),
    [
        (lambda c: c.ingested["public"], "read"),
        (lambda c: c.ingested["sources"], "ingest"),
        (lambda c: c.held["answers"], "split"),
        (lambda c: c.held["test"], "cut"),
        (lambda c: c.scaled["scaled"], "scale"),
        (lambda c: c.published["question"], "partition"),
        (lambda c: c.reports[0]["reports"], "perturb"),
        (lambda c: next(r for r in c.records if r.step == "add")["sums"], "add"),
        (lambda c: c.totals["totals"], "aggregate"),
        (lambda c: c.model["model"], "prune"),
        (lambda c: c.scores["scores"], "evaluate"),
    ],
    ids=STEPS[1:],
)
def test_only_the_step_whose_artifact_was_damaged_runs_again(finished, part, name, damage):
    path = finished.store.files(part(finished))[-1]
    content = path.read_bytes()
    if damage == "delete":
        path.unlink()
    else:
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    again, started, _ = computed(finished.store, finished.config)
    assert started == [name]
    assert path.read_bytes() == content
    assert again.scores.parts == finished.scores.parts


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model": {"prune": "none"}}, ["prune", "evaluate"]),
        ({"evaluation": {"redraws": 4}}, ["evaluate"]),
        ({"model": {"depth": 2}}, ["partition", "perturb", "add", "aggregate", "prune", "evaluate"]),
        ({"privacy": {"epsilon": 1.5}}, ["partition", "perturb", "add", "aggregate", "prune", "evaluate"]),
        ({"name": "another"}, []),
    ],
)
def test_a_changed_parameter_runs_the_steps_below_it_and_no_other(finished, changes, expected):
    config = rides_config(*finished.store.files(finished.raw), **changes)
    _, started, _ = computed(finished.store, config)
    assert started == expected


def manifest(digest):
    entry = FileEntry(name="a", digest=digest)
    made = MadeBy(step="s", version="1", parameters={}, inputs={})
    return Manifest(zone="curator", path="curator/s/x", digest=digest, files=(entry,), made_by=made)


def test_times_and_the_order_of_files_are_no_part_of_a_key(store):
    described = Step("s", "1", "curator")
    one, two = manifest("aa"), manifest("bb")
    key = described.place(store, {"files": [one, two], "n": 1, "clock": NotInKey(1.0)}).key
    assert described.place(store, {"files": [two, one], "n": 1, "clock": NotInKey(2.0)}).key == key
    assert described.place(store, {"files": [one], "n": 1}).key != key
    assert described.place(store, {"files": [one, two], "n": 2}).key != key


def test_arguments_may_decide_the_zone(store):
    described = Step("s", "1", lambda arguments: "curator" if arguments["scores"] is None else "simulation")
    assert described.place(store, {"scores": None}).home == "curator"
    assert described.place(store, {"scores": manifest("aa")}).home == "simulation"


def test_two_modules_cannot_have_a_step_of_one_name():
    with pytest.raises(ConfigError, match=r'step "perturb": tasks\.perturb has a step of this name'):
        step("perturb", version="1", home="holders")(lambda draft: None)


def failing(home, fault):
    @step(f"failing-{home}", version="1", home=home)
    def fail(draft):
        (draft.folder("out") / "half").write_text("half")
        raise fault

    del REGISTERED[f"failing-{home}"]
    return fail


@pytest.mark.parametrize("home", ["holders", "simulation"])
def test_an_unexpected_fault_on_private_rows_keeps_its_words_with_them(store, home):
    with pytest.raises(LdptreeError) as caught:
        failing(home, ValueError("could not convert 'Jane Doe' to float")).fn(store)
    fault = caught.value
    assert "Jane" not in str(fault)
    assert (fault.__cause__, fault.__context__) == (None, None)
    assert "stopped by an unexpected ValueError" in str(fault)
    (details,) = (store.zone(home) / "faults").iterdir()
    assert details.relative_to(store.root).as_posix() in str(fault)
    assert "Jane Doe" in details.read_text()
    assert list(store.root.rglob("half")) == []


def test_an_unexpected_fault_of_the_curators_is_shown_as_it_is(store):
    with pytest.raises(ValueError, match="of public rows"):
        failing("curator", ValueError("of public rows")).fn(store)


@pytest.mark.parametrize("home", ["holders", "curator"])
def test_a_full_disk_is_said_with_what_to_do(store, home):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(LdptreeError, match=r"no space left on the disk.*the same command"):
        failing(home, full).fn(store)


def test_what_a_step_says_itself_is_passed_on(store):
    with pytest.raises(ConfigError, match=r"^said plainly$"):
        failing("holders", ConfigError("said plainly")).fn(store)

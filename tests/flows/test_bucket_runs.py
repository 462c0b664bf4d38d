"""Runs whose work folder is in a bucket: they learn what a run in a folder learns, and ask each holder once, on any machine."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("obstore")

from bucket_servers import SCHEMES, serve
from chain import Chain, rides, rides_config
from obstore.store import MemoryStore

from flows.executors import InlineExecutor
from flows.finish import finish
from flows.run_plan.look import plan_of
from flows.work_folder.garbage import GRACE, collect_garbage
from flows.work_folder.provenance import explain_artifact, whole_records
from ldptree.errors import BudgetError, ConfigError, LdptreeError
from storage.formats import stamped
from storage.ledger import connections
from storage.ledger.accounts import Account
from storage.ledger.campaigns import Campaign
from storage.objects.bucket import BucketObjects
from storage.objects.copies import files_below, folder_of_copies, unused_raw_copies
from storage.store import ArtifactKey, Store

N = 600
RELEASE = {"simulation": {"noise_seed": None}, "evaluate": False}


@pytest.fixture
def over(monkeypatch):
    """A store of these objects."""

    def opened(objects):
        monkeypatch.setattr("storage.store.open_objects", lambda _, **__: objects)
        store = Store("")
        monkeypatch.undo()
        return store

    return opened


@pytest.fixture
def _one_database(tmp_path):
    """What all machines that use this test's bucket have in common; folders have their own."""
    url_of, url = connections.url_of, connections.URL.create("sqlite", database=str(tmp_path / "holders.db"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "url_of", lambda objects: url if objects.is_shared else url_of(objects))
        yield


def walked(store, path, **changes):
    """A run without Prefect, to its end."""
    run = Chain(store, rides_config(path, **changes), executor=InlineExecutor(store))
    run.walk()
    return run


@pytest.fixture(scope="module")
def done_in_bucket(tmp_path_factory):
    """A run in a bucket that has ended."""
    folder = tmp_path_factory.mktemp("bucket")
    objects = BucketObjects(MemoryStore(), "s3://bucket/team", folder / "copies")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("storage.store.open_objects", lambda _, **__: objects)
        run = walked(Store(""), rides(folder / "rides.csv", N, 1), evaluate=False)
    finish(run)
    steps = [{"name": "prune", "artifact": run.model["model"].path}]  # as Prefect times them
    objects.put(f"runs/{run.name}/run.json", stamped("run", {"steps": steps}))
    return run


def test_a_run_in_a_bucket_learns_what_one_in_a_folder_does(over, tmp_path):
    path, bucket = rides(tmp_path / "rides.csv", N, 1), MemoryStore()
    here = walked(Store(tmp_path / "here"), path, evaluate=False)
    objects = BucketObjects(bucket, "memory://bucket", tmp_path / "copies")
    there = walked(over(objects), path, evaluate=False)
    assert there.protocol.digest == here.protocol.digest
    assert there.model["model"].digest == here.model["model"].digest
    summary = finish(there)
    assert summary["model"] == f"memory://bucket/runs/{there.name}/model.json"
    assert (
        objects.get(f"runs/{there.name}/model.json")
        == here.store.file(here.model["model"], "model.json").read_bytes()
    )
    another = walked(
        over(BucketObjects(bucket, "memory://bucket", tmp_path / "another machine")), path, evaluate=False
    )
    assert {step.state for step in another.timeline.steps()} <= {"cached"}
    assert another.model == there.model


@pytest.mark.parametrize("named", ["runs/{run}/model.json", "runs/{run}", "{model}", "{model}/model.json"])
@pytest.mark.parametrize("form", ["{work}/{name}", "{name}"])
def test_a_model_in_a_bucket_is_explained_by_its_address(done_in_bucket, monkeypatch, named, form):
    run = done_in_bucket
    name = named.format(run=run.name, model=run.model["model"].path)
    monkeypatch.setattr("storage.store.open_objects", lambda _, **__: run.store.objects)
    said = explain_artifact(Path("s3://bucket/team"), form.format(work="s3://bucket/team", name=name))
    assert said.startswith(f"{run.model['model'].path}\n")
    assert "made by prune" in said


@pytest.mark.parametrize("campaign", [{}, {"campaign": {"name": "rides"}}], ids=["alone", "campaign"])
def test_a_bad_byte_in_every_copy_of_this_machine_changes_nothing(over, tmp_path, campaign):
    path, bucket = rides(tmp_path / "rides.csv", N, 1, person=[f"p-{i}" for i in range(N)]), MemoryStore()
    settings = RELEASE | campaign | {"dataset": {"holder": "person", "drop": []}}
    objects = BucketObjects(bucket, "memory://bucket", tmp_path / "cache")
    first, collected = walked(over(objects), path, **settings), Campaign(over(objects), "rides")
    who = collected.answered(collected.asked().values())
    assert bool(who.size) == bool(campaign)
    copies = [path for path in (tmp_path / "cache" / "copies").rglob("*") if path.is_file()]
    for copy in copies:
        content = copy.read_bytes()
        at = len(content) // 2
        copy.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] if content else b"1")
    again = walked(over(objects), path, **settings)
    assert {step.state for step in again.timeline.steps()} <= {"cached"}
    assert again.model == first.model
    assert collected.answered(collected.asked().values()).tolist() == who.tolist()
    assert {copy.suffix for copy in copies} >= {".parquet", ".json"} | ({".npy"} if campaign else set())
    assert [one["reports"] for one in again.reports] == [one["reports"] for one in first.reports]


def test_a_bad_byte_in_the_copy_of_a_raw_file_is_no_change_of_it(over, tmp_path, monkeypatch):
    """Else a campaign is refused, and a run without one asks everybody anew."""
    raw = BucketObjects(MemoryStore(), "s3://raw", tmp_path / "cache")
    raw.put("rides.csv", rides(tmp_path / "rides.csv", N, 1).read_bytes())
    monkeypatch.setattr("storage.objects.addresses._to_read", lambda *_, **__: raw)
    store, settings = Store(tmp_path / "work"), RELEASE | {"campaign": {"name": "rides"}}
    first = walked(store, "s3://raw/rides.csv", **settings)
    copy = raw.path("rides.csv")
    content = copy.read_bytes()
    copy.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    again = walked(store, "s3://raw/rides.csv", **settings)
    assert {step.state for step in again.timeline.steps()} <= {"cached"}
    assert copy.read_bytes() == content
    assert store.condition(first.raw) == "present"
    raw.put("rides.csv", content + content.splitlines(keepends=True)[-1])
    with pytest.raises(BudgetError, match="changed since campaign"):
        walked(store, "s3://raw/rides.csv", **settings)


def test_a_plan_leaves_an_empty_bucket_as_it_is(tmp_path, monkeypatch):
    bucket = BucketObjects(MemoryStore(), "s3://bucket/team", tmp_path / "copies")
    monkeypatch.setattr("storage.store.open_objects", lambda _, **__: bucket)
    config = rides_config(rides(tmp_path / "rides.csv", N, 1), **RELEASE)
    before = plan_of(config, tmp_path / "nowhere")
    for zone in ([], ["public/notes.txt"]):  # somebody's, who is no run
        for name in zone:
            bucket.put(name, b"")
        assert plan_of(config, Path("s3://bucket/team")) == before
        assert [entry.name for entry in bucket.entries("", deep=True)] == zone
        assert not [path for path in (tmp_path / "copies").rglob("*") if path.is_file()]


def test_two_machines_ask_each_holder_once(over, tmp_path):
    path, bucket = rides(tmp_path / "rides.csv", N, 1), MemoryStore()
    first, second = (
        over(BucketObjects(bucket, "memory://bucket", tmp_path / name)) for name in ("one", "two")
    )
    privacy = {"privacy": {"lifetime_epsilon": 2.0}}
    asked = walked(first, path, **RELEASE, **privacy)
    assert [one["reports"] for one in walked(second, path, **RELEASE, **privacy).reports] == [
        one["reports"] for one in asked.reports
    ]
    assert len(Account(second, None).read()) == len(Account(first, None).read())
    with pytest.raises(LdptreeError, match="spent"):
        walked(second, path, **RELEASE, **privacy, model={"depth": 2})


@pytest.fixture
def swept(over, tmp_path, monkeypatch):
    """A store, how `gc` sweeps it, and how time goes by there."""
    objects = BucketObjects(MemoryStore(), "memory://bucket", tmp_path / "here")
    store, now = over(objects), BucketObjects.now
    monkeypatch.setattr("flows.work_folder.garbage.open_existing", lambda _: store)

    def wait(days):
        monkeypatch.setattr(BucketObjects, "now", lambda one: now(one) + timedelta(days=days).total_seconds())

    return store, lambda keep: collect_garbage(Path(), keep=keep, dry_run=False), wait


def test_gc_takes_from_a_bucket_what_is_old_and_needed_by_no_kept_run(swept, tmp_path):
    store, collect, wait = swept
    paths = [rides(tmp_path / f"{name}.csv", N, seed) for seed, name in enumerate(("old", "new"))]
    runs = [walked(store, path, evaluate=False) for path in paths]
    for run in runs:
        finish(run)
    old, new = runs
    before = {entry.name for entry in store.objects.entries("", deep=True)}
    collect(0)
    assert {
        entry.name for entry in store.objects.entries("", deep=True)
    } == before  # another machine may be at a run
    wait(8)
    assert not collect(1).startswith("0 files")
    assert {store.condition(part) for part in old.model.parts.values()} == {"missing"}
    for record in new.records:
        assert store.find(ArtifactKey(record.home, record.step, record.version, record.key)) == record
    (asked,) = [record for record in old.records if record.step == "partition"]
    assert store.condition(asked["question"]) == "present"  # somebody may be about to ask it
    assert store.objects.folders("runs") == [f"runs/{new.name}"]
    standing = {entry.name for entry in store.objects.entries("", deep=True)}
    copies = [path for path in (tmp_path / "here").rglob("copies/*/**/*") if path.is_file()]
    assert copies
    assert not [path for path in copies if not any(path.as_posix().endswith(f"/{name}") for name in standing)]
    assert collect(1).startswith("0 files and folders gone")
    assert walked(store, paths[0], evaluate=False).model["model"].digest == old.model["model"].digest


def test_gc_leaves_in_a_bucket_what_another_machine_wrote_while_it_looked(swept, tmp_path, monkeypatch):
    """An artifact whose record comes seconds later, and the mark of a run that has begun."""
    store, collect, wait = swept
    finish(walked(store, rides(tmp_path / "old.csv", N, 1), evaluate=False))
    wait(8)
    written = []

    def write_meanwhile(of):
        found = whole_records(of)
        if not written:
            place = store.place("holders", "ingest", "1", inputs={"raw": "1"}, parameters={})
            with store.draft(place) as draft:
                (draft.folder("rows") / "rows.txt").write_text("rows")
                written.append(draft._publish("rows"))
            store.objects.put("started/new-20260101-000000-000000.json", b"{}")
        return found

    monkeypatch.setattr("flows.work_folder.garbage.whole_records", write_meanwhile)
    assert not collect(0).startswith("0 files")
    assert store.condition(written[0]) == "present"
    assert store.objects.size("started/new-20260101-000000-000000.json") is not None


def test_gc_takes_nothing_of_others_from_a_bucket(tmp_path, monkeypatch):
    objects = BucketObjects(MemoryStore(), "memory://bucket", tmp_path / "here")
    names = [
        "runs/run-7/model.pt",
        "started/run-3.json",
        f"public/images/{'ab' * 16}",
        f"curator/git/{'ab' * 16}.json",
    ]
    for name in names:
        objects.put(name, b"mine")
    monkeypatch.setattr("storage.store.open_objects", lambda _, **__: objects)
    monkeypatch.setattr("flows.work_folder.provenance.bucket_address", str)
    with pytest.raises(ConfigError, match="no work folder, as no run was ever made in it"):
        collect_garbage(Path("memory:/bucket"), keep=0, dry_run=False)
    assert sorted(entry.name for entry in objects.entries("", deep=True)) == sorted(names)


def test_one_listing_tells_the_copies_of_what_stands_from_those_of_other_versions(tmp_path, monkeypatch):
    objects = BucketObjects(MemoryStore(), "memory://bucket", tmp_path / "here")
    for content in (b"one", b"two"):
        objects.put("list", content)
        objects.path("list")
    objects.put("same", b"two")
    objects.path("same")
    kept = {entry.copy for entry in objects.entries("") if entry.name == "list"}
    monkeypatch.delattr("obstore.list")
    monkeypatch.delattr("obstore.list_with_delimiter")
    gone = [path for path in objects.not_objects() if path not in kept]
    assert sorted(path.read_bytes() + path.name.encode() for path in gone) == [b"onelist", b"twosame"]


def test_copies_of_raw_files_go_that_no_run_has_used_for_a_week(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    root = folder_of_copies("s3://raw", is_raw=True)
    raw = BucketObjects(MemoryStore(), "s3://raw", root)
    for name in ("used", "unused"):
        raw.put(name, name.encode())
        raw.unchanged_path(name)
    week = GRACE.total_seconds() + 1
    for path in files_below(root):
        os.utime(path, (path.stat().st_mtime - week,) * 2)
    raw.unchanged_path("used")
    assert {path.name for path in unused_raw_copies(GRACE)} == {"unused", "unused.sha256"}


def test_gc_takes_nothing_from_a_bucket_by_which_anybody_could_be_asked_again(swept, tmp_path):
    store, collect, wait = swept
    path = rides(tmp_path / "rides.csv", N, 1)
    settings = RELEASE | {"campaign": {"name": "rides"}}
    first = walked(store, path, **settings)
    charged = len(Account(store, None).read())
    wait(8)
    assert not collect(0).startswith("0 files")
    again = walked(store, path, **settings)
    assert [one["reports"] for one in again.reports] == [one["reports"] for one in first.reports]
    assert len(Account(store, None).read()) == charged


def test_gc_takes_drafts_that_killed_runs_left_on_this_machine(swept):
    store, collect, _ = swept
    fresh, killed = (store.objects.draft_folder("curator/prune") for _ in range(2))
    (killed / "half.json").write_text("{")
    os.utime(killed, (1000, 1000))
    assert collect(0).startswith("1 files and folders gone")
    assert (fresh.exists(), killed.exists()) == (True, False)


@pytest.mark.slow
@pytest.mark.usefixtures("_one_database")
@pytest.mark.parametrize(("scheme", "seed"), [("s3", 0), ("s3", 1), ("gs", 2), ("az", 3)])
def test_a_run_behind_a_bad_network_ends_or_goes_on_to_the_same_model(over, tmp_path, scheme, seed):
    path, campaign = rides(tmp_path / "rides.csv", N, 1), {"campaign": {"name": "rides"}}
    here = walked(Store(tmp_path / "here"), path, **campaign)
    with serve(scheme) as server:
        from s3_server import by_chance, proxy

        server.make_bucket("bucket")
        for attempt in range(20):
            with proxy(server.port, by_chance(100 * seed + attempt, 0.08)) as between:
                folder, port = tmp_path / f"{attempt}", between.server_port
                objects = server.objects("bucket", folder, port=port, retries=1)
                try:
                    there = walked(over(objects), path, **campaign)
                except (OSError, LdptreeError):
                    continue
            break
        plain = over(server.objects("bucket", tmp_path / "plain"))
        again = walked(plain, path, **campaign)
        listed = plain.objects.entries("curator/reports", deep=True)
        names = [entry.name for entry in listed if entry.name.endswith(".parquet")]
    assert again.model["model"].digest == there.model["model"].digest == here.model["model"].digest
    assert len(names) == len(here.reports)


@pytest.mark.slow
@pytest.mark.usefixtures("_one_database")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_two_machines_at_once_learn_what_one_in_a_folder_does_and_charge_once(over, tmp_path, scheme):
    path, privacy = rides(tmp_path / "rides.csv", N, 1), {"privacy": {"lifetime_epsilon": 2.0}}
    here = walked(Store(tmp_path / "here"), path, evaluate=False, **privacy)
    walked(here.store, path, **RELEASE, **privacy)
    with serve(scheme) as server:
        from s3_server import proxy

        server.make_bucket("bucket")
        # One request at a time: moto lets two puts of one condition through that come together.
        with proxy(server.port) as between, ThreadPoolExecutor(2) as pool:
            port = between.server_port
            stores = [over(server.objects("bucket", tmp_path / name, port=port)) for name in ("one", "two")]
            seeded = list(pool.map(lambda store: walked(store, path, evaluate=False, **privacy), stores))
            released = list(pool.map(lambda store: walked(store, path, **RELEASE, **privacy), stores))
            n_charges = len(Account(stores[0], None).read())
    assert {run.model["model"].digest for run in seeded} == {here.model["model"].digest}
    assert released[0].model["model"] == released[1].model["model"]
    assert n_charges == len(Account(here.store, None).read())


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_command_line_takes_a_bucket(tmp_path, scheme):
    with serve(scheme) as server:
        work = f"{server.make_bucket('bucket')}/team"

        def ldptree(*words, machine="one", database=tmp_path / "holders.db"):
            environment = os.environ | server.variables() | {"XDG_CACHE_HOME": str(tmp_path / machine)}
            environment |= {connections.VARIABLE: str(database)}
            command = [str(Path(sys.executable).with_name("ldptree")), *words]
            return subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=200, check=False
            )

        run = ("run", "quickstart", "--set", "dataset.rows=2000", "--set", "evaluate=false", "--work")
        refused = ldptree(*run, work, database="")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"work folder {work}: a bucket holds no database" in refused.stderr
        done = ldptree(*run, work)
        assert done.returncode == 0, done.stderr
        assert f"page   {work}/runs/" in done.stdout
        (copies,) = (tmp_path / "one" / "ldptree").iterdir()
        assert stat.S_IMODE(copies.stat().st_mode) == 0o700
        (model,) = (line.split()[-1] for line in done.stdout.splitlines() if line.startswith("model "))
        explained = ldptree("explain", model, "--work", work, machine="two")
        assert "made by prune" in explained.stdout, (model, explained.stderr)
        planned = ldptree(*run, work, "--plan", machine="two")
        states = {line.split()[1] for line in planned.stdout.splitlines() if len(line.split()) > 1}
        assert "cached" in states
        assert "compute" not in states
        assert "report       cached" in planned.stdout
        refused = ldptree(*run, f"{scheme}://not-there/team")
        assert refused.returncode == 2
        assert "not-there/team: cannot be written" in refused.stderr
        swept = ldptree("gc", "--keep", "0", "--work", work)
        assert swept.stdout.startswith("0 files and folders gone"), swept.stderr  # all of it is of today

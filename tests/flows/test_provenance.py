"""`explain` says where an artifact came from; `gc` deletes what no kept run refers to, and nothing else."""

from __future__ import annotations

import os
import re
import shutil

import pytest
from chain import Chain, rides, rides_config

from flows.executors import InlineExecutor
from flows.finish import last_of_each_step, write_json
from flows.pipeline import Pipeline
from flows.run_plan.look import plan_of
from flows.work_folder.garbage import collect_garbage
from flows.work_folder.provenance import MOST_SHOWN, _in_words, explain_artifact, in_use
from ldptree.errors import ArtifactCorrupt, BudgetError, ConfigError
from storage.ledger.campaigns import Campaign
from storage.ledger.connections import DATABASE
from storage.ledger.lost_parts import check_state
from storage.ledger.released_checks import check_release, release_checks
from storage.store import Store

STEPS = ("ingested", "held", "scaled", "published", "totals", "model")


def finished(store, name, when, *paths, **changes):
    """A whole run of rides with its folder, as `flows.finish` leaves one."""
    chain = Chain(store, rides_config(*paths, **({"release": True, "model": {"depth": 1}} | changes)))
    assert all(getattr(chain, step) for step in STEPS)
    records = chain.records + chain.reports
    run = store.root / "runs" / name
    run.mkdir(parents=True)
    names = sorted(f"{r.home}/{r.step}/{r.key}.json" for r in records)
    write_json(store, f"runs/{name}/records.json", {"records": names})
    os.utime(run, (when, when))
    return chain


def state(store, chain):
    """The condition of every artifact of a run, and whether its records stand."""
    found = {}
    for step in STEPS:
        record = getattr(chain, step)
        conditions = {store.condition(part) for part in record.parts.values()}
        stands = (store.zone(record.home) / record.step / f"{record.key}.json").exists()
        found[step] = conditions == {"present"} and stands
    found["reports"] = all(store.condition(r["reports"]) == "present" for r in chain.reports)
    found["report records"] = all(
        (store.zone(r.home) / r.step / f"{r.key}.json").exists() for r in chain.reports
    )
    return found


def all_of(store, chain):
    return set(state(store, chain).values()) == {True}


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """Two runs of different files in one work folder; to be copied before it is changed."""
    folder = tmp_path_factory.mktemp("two")
    store = Store(folder / "work")
    paths = [rides(folder / f"{name}.csv", 300, seed) for seed, name in enumerate(("old", "new"))]
    old, new = (
        finished(store, p.stem, when, p, seed=when) for when, p in zip((1000, 2000), paths, strict=True)
    )
    return store, old, new


@pytest.fixture
def copy(two_runs, tmp_path, monkeypatch):
    for name in ("PREFECT_API_URL", "PREFECT_HOME"):
        monkeypatch.delenv(name, raising=False)
    store, old, new = two_runs
    shutil.copytree(store.root, tmp_path / "copy")
    return Store(tmp_path / "copy"), old, new


def test_a_model_is_explained_back_to_its_sources_each_step_once(trips):
    assert trips.model
    said = explain_artifact(trips.store.root, trips.model["model"].path)
    facts, lineage = said.split("  from\n")
    assert "made by prune (version 9): the model" in facts
    assert "unchanged since it was written" in facts
    assert "    epsilon: 2.0" in facts
    assert trips.model["model"].digest in facts
    steps = ("aggregate", "add", "perturb", "partition", "scale", "read", "source")
    assert [line.split()[1] for line in lineage.splitlines()] == list(steps)
    assert ": reports, one of each person" in lineage


def test_a_shard_is_explained_back_to_the_raw_file(trips):
    said = explain_artifact(trips.store.root, trips.held["train"].path)
    assert "made by cut " in said
    for step in ("split", "ingest", "read", "source"):
        assert f"└─ {step} " in said


def test_each_digest_of_a_lineage_can_be_explained_in_its_turn(trips):
    said = explain_artifact(trips.store.root, trips.model["model"].path)
    for line in said.split("  from\n")[1].splitlines():
        _, step, digest = line.replace(":", " ").split()[:3]
        assert f"made by {step} " in explain_artifact(trips.store.root, digest)


@pytest.mark.parametrize("given", ["path", "digest", "first letters", "file", "absolute path", "path/"])
def test_an_artifact_can_be_named_in_several_ways(trips, given):
    totals = trips.totals["totals"]
    name = {
        "path": totals.path,
        "path/": totals.path + "/",
        "digest": totals.digest,
        "first letters": totals.digest[:12],
        "file": f"{totals.path}/totals.parquet",
        "absolute path": str(trips.store.root / totals.path),
    }[given]
    assert explain_artifact(trips.store.root, name).splitlines()[0] == totals.path


def test_reports_are_explained_without_saying_whose_they_are(trips):
    (report,) = trips.reports
    name = f"{report['reports'].path}/{report['reports'].files[0].name}"
    said = explain_artifact(trips.store.root, name)
    assert "made by perturb" in said
    assert "─ split" not in said
    assert trips.held["train"].files[0].name not in said


def test_a_damaged_artifact_is_said_to_be_damaged(copy):
    store, old, _ = copy
    path = store.file(old.model["model"], "model.json")
    path.write_bytes(path.read_bytes()[:-2])
    said = explain_artifact(store.root, old.model["model"].path)
    assert said.startswith("damaged:\n")
    assert "the next run makes it again" in said
    path.unlink()
    assert explain_artifact(store.root, old.model["model"].path).startswith("missing:\n")


def test_an_unknown_or_ambiguous_name_is_refused(trips, tmp_path):
    assert trips.model
    with pytest.raises(ConfigError, match=r"no artifact of .* has that path or digest"):
        explain_artifact(trips.store.root, "curator/prune/nothing")
    with pytest.raises(ConfigError, match=r"\d+ artifacts fit"):
        explain_artifact(trips.store.root, "")
    with pytest.raises(ConfigError, match="no such work folder"):
        explain_artifact(tmp_path / "nowhere", "x")
    assert not (tmp_path / "nowhere").exists()


def test_gc_keeps_what_the_newest_runs_refer_to_and_deletes_the_rest(copy):
    store, old, new = copy
    assert all_of(store, old)
    assert all_of(store, new)
    said = collect_garbage(store.root, keep=1, dry_run=False)
    assert said.endswith("1 runs kept")
    assert all_of(store, new)
    assert set(state(store, old).values()) == {False}
    assert [p.name for p in (store.root / "runs").iterdir()] == ["new"]
    before = {p for p in store.root.rglob("*") if p.is_file()}
    assert collect_garbage(store.root, keep=1, dry_run=False).startswith("0 files and folders gone")
    assert {p for p in store.root.rglob("*") if p.is_file()} == before


def test_of_runs_that_found_the_same_gc_keeps_the_newest_however_many_may_stay(copy):
    store, old, new = copy
    runs = store.root / "runs"
    for number, name in enumerate(("again", "and-again")):
        shutil.copytree(runs / "new", runs / name)
        os.utime(runs / name, (3000 + number, 3000 + number))
    said = collect_garbage(store.root, keep=20, dry_run=False)
    assert said.endswith("2 runs kept")
    assert {p.name for p in runs.iterdir()} == {"old", "and-again"}
    assert all_of(store, old)
    assert all_of(store, new)


def test_gc_keeps_what_kept_artifacts_were_made_from(store):
    """The raw file of a simulated set belongs to no record of the run's own, and yet the run came from it."""
    from schemas.config import load

    chain = Chain(store, load("quickstart", ["model.estimator=lpct", "dataset.rows=3000", "model.depth=1"]))
    run = store.root / "runs" / "one"
    run.mkdir(parents=True)
    write_json(store, "runs/one/records.json", {"records": [f"holders/ingest/{chain.ingested.key}.json"]})
    collect_garbage(store.root, keep=1, dry_run=False)
    assert store.condition(chain.raw) == "present"
    collect_garbage(store.root, keep=0, dry_run=False)
    assert store.condition(chain.raw) == "missing"


def test_a_dry_run_says_what_would_go_and_deletes_nothing(copy):
    store, _, _ = copy
    before = sorted(p for p in store.root.rglob("*") if p.is_file())
    dry = collect_garbage(store.root, keep=1, dry_run=True)
    assert {p for p in store.root.rglob("*") if p.is_file()} ^ {*before} <= {store.root / ".in-use"}
    assert dry.replace("would go", "gone") == collect_garbage(store.root, keep=1, dry_run=False)


def test_gc_removes_what_killed_runs_left_half_written(copy):
    store, _, new = copy
    (report,) = new.reports
    folders = ("curator/scale", "holders/split", report["reports"].path)
    left = [store.root / folder / f".aside-{number}" for number, folder in enumerate(folders)]
    for path in left[:2]:
        path.mkdir()
        (path / "half.parquet").write_bytes(b"PAR1")
    left[2].write_bytes(b"PAR1")
    collect_garbage(store.root, keep=2, dry_run=False)
    assert not any(path.exists() for path in left)
    assert all_of(store, new)


def test_the_next_run_deletes_what_killed_runs_were_writing_and_nothing_of_one_that_is_alive(copy):
    store, old, new = copy
    draft = f"holders/drafts/{'0f' * 20}"
    names = [
        "curator/scale/.aside-0f",
        "holders/.aside-0f",
        "simulation/evaluate/.aside-0f",
        "runs/new/.aside-0f",
        "started/.aside-0f",
        ".aside-0f",
        ".probe-0f",
        f"{new.reports[0]['reports'].path}/.copy-0f",
        f"{draft}.part",
    ]
    left = [store.root / name for name in names]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
    (store.root / draft).write_bytes(b"a whole draw")
    before = sorted(store.root.rglob("*"))
    with in_use(store.root):
        assert sorted({*before} - {*store.root.rglob("*")}) == sorted(left)
        left[0].mkdir()
        with in_use(store.root):
            assert left[0].exists()
    assert all_of(store, old)
    assert all_of(store, new)


def test_gc_never_touches_a_campaigns_protocol_reports_or_ledger(store, tmp_path):
    path = rides(tmp_path / "a.csv", 300, 1)
    settings = {"dataset": {"holder": "person", "drop": []}, "campaign": {"name": "rides"}}
    chain = finished(store, "one", 1000, path, simulation={"noise_seed": None}, **settings)

    before = store.objects.get(DATABASE)
    assert Campaign(store, "rides").reports()
    collect_garbage(store.root, keep=0, dry_run=False)
    after = state(store, chain)
    assert store.objects.get(DATABASE) == before
    # The records say that these holders were asked: without them lost reports would be drawn a second time.
    assert store.condition(chain.published["question"]) == "present"
    assert after["reports"]
    assert after["report records"]
    assert not after["totals"]
    again = Chain(store, chain.config)
    assert [r["reports"] for r in again.reports] == [r["reports"] for r in chain.reports]
    store.files(chain.reports[0]["reports"])[0].unlink()
    with pytest.raises(ArtifactCorrupt):
        assert Chain(store, chain.config).reports


def test_gc_keeps_who_has_answered_with_noise_that_cannot_be_drawn_again(store, tmp_path):
    path = rides(tmp_path / "a.csv", 300, 1)
    chain = finished(store, "one", 1000, path, simulation={"noise_seed": None})
    collect_garbage(store.root, keep=0, dry_run=False)
    assert not state(store, chain)["model"]
    again = Chain(store, chain.config)
    assert [r["reports"] for r in again.reports] == [r["reports"] for r in chain.reports]
    assert again.model["model"].digest == chain.model["model"].digest


@pytest.mark.parametrize("noise_seed", [None, 11])
def test_gc_leaves_reports_of_a_release_that_a_killed_run_did_not_record(store, tmp_path, noise_seed):
    """Killed between naming the file and its record: the run given again goes on with that draw; only a simulation draws anew."""
    path = rides(tmp_path / "a.csv", 300, 1)
    chain = finished(store, "one", 1000, path, simulation={"noise_seed": noise_seed}, release=True)
    (record,) = (store.zone("holders") / "perturb").glob("*.json")
    record.unlink()
    (reports,) = (store.zone("curator") / "reports").rglob("*.parquet")
    drawn = reports.read_bytes()
    collect_garbage(store.root, keep=0, dry_run=False)
    assert reports.exists() == (noise_seed is None)
    assert Chain(store, chain.config).totals
    assert reports.read_bytes() == drawn


def test_gc_never_forgets_which_answers_about_private_rows_have_left(store, tmp_path):
    release_checks(store.objects, ["a"], 1)
    collect_garbage(store.root, keep=0, dry_run=False)
    with pytest.raises(BudgetError, match="1 have left before"):
        check_release(store.objects, ["b"], 1)


def test_gc_stops_before_a_damaged_database(copy):
    store, _, _ = copy
    (store.root / DATABASE).write_text("{")
    before = sorted(store.root.rglob("*"))
    with pytest.raises(ArtifactCorrupt, match=r"holders\.db: damaged"):
        collect_garbage(store.root, keep=0, dry_run=False)
    assert {*store.root.rglob("*")} ^ {*before} <= {store.root / ".in-use"}


def test_gc_deletes_nothing_that_no_run_has_written_nor_the_secret_nor_the_database(copy):
    store, _, _ = copy
    secret = (store.root / "holders" / "secret").read_bytes()
    mine = [
        "notes.txt",
        "curator/warehouse.duckdb",
        "public/photos/album/a.jpg",
        "public/photos/b.txt",
        "public/reports/2026.pdf",
        "holders/minutes/may/notes.txt",
        "curator/reports/mine/x.parquet",
        "simulation/0123/x",
        "runs/marathon/times.csv",
    ]
    for name in mine:
        (store.root / name).parent.mkdir(parents=True, exist_ok=True)
        (store.root / name).write_text("mine")
    assert not collect_garbage(store.root, keep=0, dry_run=False).startswith("0 files")
    assert [name for name in mine if not (store.root / name).exists()] == []
    assert (store.root / "holders" / "secret").read_bytes() == secret
    assert (store.root / DATABASE).exists()
    check_state(store)


OF_OTHERS = [
    "runs/run-7/model.pt",
    "runs/exp/page.html",
    "started/run-3.json",
    f"public/images/{'ab' * 16}.png",
    f"public/avatars/{'ab' * 20}",
    f"curator/git/{'ab' * 16}.json",
    "prefect/notes.txt",
]


@pytest.mark.parametrize("inside", [[], ["public/photos/album/a.jpg", "etc"], OF_OTHERS])
def test_a_folder_in_which_no_run_was_made_is_no_work_folder(tmp_path, inside):
    for name in inside:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    for ask in (
        lambda: collect_garbage(tmp_path, keep=0, dry_run=False),
        lambda: explain_artifact(tmp_path, "beef"),
    ):
        with pytest.raises(ConfigError, match="no work folder, as no run was ever made in it"):
            ask()
    assert sorted(tmp_path.rglob("*")) == before


def test_gc_waits_for_no_run_and_refuses_while_one_holds_the_folder(copy):
    store, old, _ = copy
    with in_use(store.root), in_use(store.root):  # two runs share it
        with pytest.raises(ConfigError, match="a run is going on here"):
            collect_garbage(store.root, keep=0, dry_run=False)
        assert all_of(store, old)
    collect_garbage(store.root, keep=0, dry_run=False)
    assert not all_of(store, old)


@pytest.mark.parametrize("name", ["run.json", "records.json"])
def test_the_files_of_a_runs_folder_are_explained_and_a_flipped_value_in_them_is_noticed(copy, name):
    store, _, new = copy
    run = store.root / "runs" / "new"
    look = {
        "run.json": lambda: [explain_artifact(store.root, str(path)) for path in (run, run / "model.json")],
        "records.json": lambda: [collect_garbage(store.root, keep=5, dry_run=True)],
    }[name]
    steps = [{"name": "prune", "artifact": new.model["model"].path}]
    write_json(store, "runs/new/run.json", {"steps": steps})
    write_json(store, "runs/new/records.json", {"records": ["curator/prune/a.json"]})
    assert name == "records.json" or all("made by prune" in said for said in look())
    assert look()
    path = run / name
    path.write_text(path.read_text().replace("prune", "prunf"))
    with pytest.raises(ArtifactCorrupt, match=rf"{name}: damaged") as fault:
        look()
    assert fault.value.exit_code == 5


def test_a_run_is_explained_by_its_own_file_where_another_has_the_same_public_rows(tmp_path):
    store = Store(tmp_path / "work")
    path = rides(tmp_path / "one.csv", 300, 1)
    other = tmp_path / "other.csv"
    lines = path.read_text().splitlines()
    other.write_text("\n".join([*lines, next(line for line in lines if line.startswith("closed,"))]) + "\n")
    ingested, lineage = {}, {}
    for name, when, raw in (("one", 1000, path), ("other", 2000, other)):
        chain = finished(store, name, when, raw)
        write_json(
            store,
            f"runs/{name}/run.json",
            {"steps": [{"name": "prune", "artifact": chain.model["model"].path}]},
        )
        ingested[name] = chain.ingested["public"].digest
        lineage[name] = explain_artifact(store.root, str(store.root / "runs" / name / "model.json"))
    assert ingested["one"] == ingested["other"]
    raw = {name: re.findall("─ raw ([0-9a-f]{12}): outside", text) for name, text in lineage.items()}
    assert len(raw["one"]) == len(raw["other"]) == 1
    assert raw["one"] != raw["other"]


@pytest.mark.parametrize("content", ["{", "", '{"home": "curator"}'])
def test_a_damaged_record_stops_gc_and_is_named(copy, content):
    """Were it passed over, what it refers to would be deleted."""
    store, _, new = copy
    record = store.root / "curator" / "prune" / f"{new.model.key}.json"
    record.write_text(content)
    for command in (
        lambda: explain_artifact(store.root, "curator"),
        lambda: collect_garbage(store.root, keep=5, dry_run=False),
    ):
        with pytest.raises(ArtifactCorrupt, match=rf"{new.model.key}\.json: damaged.* or delete it") as fault:
            command()
        assert fault.value.exit_code == 5
    assert store.condition(new.model["model"]) == "present"
    assert next(line for line in plan_of(new.config, store.root) if line["name"] == "prune") == {
        "name": "prune",
        "state": "compute",
        "why": "its record is damaged",
    }


def test_the_protocol_of_a_run_is_explained_though_nothing_more_was_asked(tmp_path):
    """Where Algorithm 2 might have asked again and did not, the last question is none."""
    settings = {"model": {"prune": "paper"}, "privacy": {"epsilon": 50.0}, "evaluate": False}
    config = rides_config(rides(tmp_path / "rides.csv", 300, 1), **settings)
    run = Pipeline(
        store=Store(tmp_path / "work"), config=config, executor=InlineExecutor(Store(tmp_path / "work"))
    )
    run.walk()
    asked = [record for record in run.records if record.step == "partition"]
    assert [record.facts["is_left"] for record in asked] == [True, False]
    assert last_of_each_step(run.records)["partition"] == asked[0]


@pytest.mark.parametrize(
    ("value", "words"),
    [("x" * 300, "x" * 200 + ", and more"), (["ab"] * 99, ", ".join(["ab"] * 50) + ", and more")],
)
def test_of_a_long_parameter_its_beginning_is_told(value, words):
    found = _in_words(value)
    assert len(found) <= MOST_SHOWN + len(", and more")
    assert found == words

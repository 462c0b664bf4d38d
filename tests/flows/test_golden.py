"""A work folder of any version is opened by all later ones: `golden/` has one of each that kept something else."""

from __future__ import annotations

import json
import stat
import tarfile
from pathlib import Path

import pytest
from chain import Chain, RoundsChain, rides

from flows.budget import keep_answers
from flows.run_plan.look import plan_of
from flows.work_folder.garbage import collect_garbage
from flows.work_folder.provenance import explain_artifact
from ldptree.errors import ArtifactCorrupt
from schemas.config import load
from storage.formats import KEY
from storage.ledger.accounts import Account
from storage.store import Store
from storage.warehouse import all_runs
from tasks.artifacts import read_encoding

GOLDEN = Path(__file__).parents[1] / "golden"
STATE = ("campaigns", "ledger")


@pytest.fixture(params=sorted(path.name.partition(".")[0] for path in GOLDEN.glob("*.tar.xz")))
def work(request, tmp_path, monkeypatch):
    """The work folder of an earlier version, and beside it its rows and configurations."""
    with tarfile.open(GOLDEN / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "work"


def reports(work):
    return {path: path.read_bytes() for path in work.glob("curator/reports/*/*/*.parquet")}


def charges(work):
    return {path: path.read_bytes() for path in work.glob("holders/ledger/*/*.charge")}


def states(plan, step):
    return {line["state"] for line in plan if line["name"] == step}


@pytest.mark.parametrize("config", ["rides.toml", "fares.toml"])
def test_its_reports_stand_and_nobody_is_asked_again(work, config):
    """Though a later version may do the steps before them anew, and keep more of who was charged for the same questions."""
    reported, charged = reports(work), charges(work)
    spent = Account(Store(work), None).read().largest_spend().epsilon
    if config == "rides.toml":
        assert Chain(Store(work), load(config)).totals
    else:
        assert RoundsChain(Store(work), load(config)).converse().transcripts
    assert reports(work) == reported
    assert {path: charges(work)[path] for path in charged} == charged
    assert Account(Store(work), None).read().largest_spend().epsilon == spent


def test_its_ledger_is_read(work):
    ledger = Account(Store(work), None).read()
    named = [charge for charge in ledger.entries if not getattr(charge.who, "are_rows", False)]
    assert (ledger.cap, ledger.largest_spend().epsilon, len(named)) == (4.0, 1.0, 3)


def test_its_campaign_goes_on_with_the_week_after(work):
    before = reports(work)
    asked = Chain(Store(work), load("rides.toml")).held.facts["n_private"]
    rides(Path("week-2.csv"), 120, seed=2)
    chain = Chain(Store(work), load("rides.toml"))
    assert chain.totals["totals"].rows
    assert chain.held.facts["n_private"] > asked
    assert {path: reports(work)[path] for path in before} == before
    assert len(reports(work)) == len(before) + 1
    written = {
        shard.files[0].name: record["reports"]
        for shard, record in zip(chain.held["train"].one_by_one(), chain.reports, strict=True)
    }
    keep_answers(chain.store, chain.config, chain.held, chain.protocol, "reports", written)
    assert states(plan_of(load("rides.toml"), work), "perturb") == {"cached"}


def test_what_it_kept_is_explained_and_tidied(work):
    before = reports(work)
    for run in (work / "runs").iterdir():
        assert "made by" in explain_artifact(work, str(run / "model.json"))
    collect_garbage(work, keep=9, dry_run=False)
    assert reports(work) == before
    assert len(all_runs(Store(work))) == 1
    encoding = next(record for _, record in Store(work).records() if record.step == "scale")["encoding"]
    assert read_encoding(Store(work), encoding)[0].n_encoded


def test_a_secret_that_is_not_its_own_is_refused(work):
    (work / "holders" / "secret").write_bytes(b"s" * 32)
    with pytest.raises(ArtifactCorrupt, match="the holders' secret is damaged"):
        plan_of(load("rides.toml"), work)


@pytest.mark.parametrize("name", ["published.json", "files.json"])
def test_a_campaign_of_which_a_part_is_lost_is_refused(work, name):
    next(work.glob(f"*/campaigns/*/{name}")).unlink()
    with pytest.raises(ArtifactCorrupt, match=name):
        plan_of(load("rides.toml"), work)


def test_its_holders_zone_is_closed_to_others(work):
    Store(work)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (work / "holders").rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert stat.S_IMODE((work / "holders").stat().st_mode) == 0o700


LATER = {"name": "anything", "version": 99, "digest": ""}


@pytest.mark.parametrize("kept", ["curator/campaigns/*/published.json", "holders/campaigns/*/files.json"])
def test_a_folder_that_a_later_version_wrote_in_is_not_called_damaged(work, kept):
    path = next(work.glob(kept))
    path.write_text(json.dumps(json.loads(path.read_text()) | {KEY: LATER} | {"x" * 999: 0}))
    with pytest.raises(ArtifactCorrupt, match=r"written by a later ldptree \(format version 99"):
        plan_of(load("rides.toml"), work)

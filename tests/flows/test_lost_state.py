"""Whatever is lost of who was asked, or restored from an older backup than the rest: it is seen before anybody is charged."""

from __future__ import annotations

import itertools
import os
import re
import shutil
from contextlib import suppress

import pytest
from chain import NEW_PEOPLE, Chain, rides, rides_config
from first_fast import first_fast

from flows.campaign import Terms
from flows.run_plan.look import plan_of
from flows.work_folder.garbage import collect_garbage
from flows.work_folder.provenance import explain_artifact
from ldptree.errors import ArtifactCorrupt
from storage.ledger.campaigns import Campaign
from storage.objects.folder import FolderObjects
from storage.store import Store

QUESTIONS, REPORTS, LAST = "curator/partition", "curator/reports/*/", "curator/reports/last-transaction-*"
DATABASE, SECRET = "holders/holders.db", "holders/secret"
PARTS = (QUESTIONS, REPORTS, LAST, DATABASE, SECRET)
SUBSETS = [subset for size in range(1, len(PARTS) + 1) for subset in itertools.combinations(PARTS, size)]


def few_fast(subsets):
    """Parameters of which the fast suite takes one part lost, one part left, and all."""
    sizes = (1, len(PARTS) - 1, len(PARTS))
    marks = [() if len(subset) in sizes else (pytest.mark.slow,) for subset in subsets]
    names = [" ".join(subset).replace("/", "-") for subset in subsets]
    return [pytest.param(s, marks=m, id=n) for s, m, n in zip(subsets, marks, names, strict=True)]


RELEASE = {"simulation": {"noise_seed": None}, "evaluate": False, "model": {"depth": 1}}
CAMPAIGN = {"campaign": {"name": "rides-2026"}, "dataset": NEW_PEOPLE, **RELEASE}


def collected(store, *paths, **changes):
    """A run as far as its totals."""
    chain = Chain(store, rides_config(*paths, **changes))
    chain.keep_answers()
    assert chain.totals
    return chain


def charges(work):
    return {path: path.read_bytes() for path in work.glob("holders/holders.db*")}


def reports(work):
    return {path: path.read_bytes() for path in work.glob("curator/reports/**/*.parquet")}


def remove(path):
    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def restore(backup, work, part):
    for path in work.glob(part):
        remove(path)
    for path in backup.glob(part):
        of = work / path.relative_to(backup)
        of.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(path, of) if path.is_dir() else shutil.copy(path, of)


def cut(work, part):
    for path in [path for top in work.glob(part) for path in (top, *top.rglob("*"))]:
        if path.is_file() and not path.name.startswith("."):
            os.truncate(path, path.stat().st_size // 2)


@pytest.fixture(scope="module")
def weeks(tmp_path_factory):
    """Two weeks of a campaign: the files of three, and the work folder after the first and after the second."""
    folder = tmp_path_factory.mktemp("weeks")
    files = [rides(folder / f"week-{i}.csv", 300, seed=i) for i in (1, 2, 3)]
    store = Store(folder / "work")
    collected(store, files[0], **CAMPAIGN)
    shutil.copytree(store.root, folder / "older")
    collected(store, files[1], **CAMPAIGN)
    return files, folder / "older", store.root


@pytest.fixture(scope="module")
def alone(weeks, tmp_path_factory):
    """The same files, and the work folder after a release that was no campaign's."""
    work = tmp_path_factory.mktemp("alone") / "work"
    collected(Store(work), weeks[0][0], **RELEASE)
    return weeks[0], work


@pytest.fixture
def work(weeks, tmp_path):
    """The work folder after the second week, to be damaged."""
    return shutil.copytree(weeks[2], tmp_path / "work")


def lose(work, older, part, how):
    match how:
        case "missing":
            for path in work.glob(part):
                remove(path)
        case "older":
            restore(older, work, part)
        case "truncated":
            cut(work, part)


def refused(work, files, **changes):
    """The one message of the run of the third week, alone and with the others, and of its plan: before any charge."""
    before, kept = charges(work), reports(work)
    said = set()
    for paths in (files[2:], files):
        config = rides_config(*paths, **(changes or CAMPAIGN))
        with pytest.raises(ArtifactCorrupt) as run:
            assert Chain(Store(work), config).reports
        with pytest.raises(ArtifactCorrupt) as plan:
            plan_of(config, work)
        assert run.value.exit_code == 5
        said |= {str(run.value), str(plan.value)}
    assert charges(work) == before
    assert reports(work) == kept
    (message,) = said
    return message


def is_told_apart(older):
    """An older database from what stands outside of it, and older reports or an older number from what knows of later ones."""
    if DATABASE in older:
        return not older >= {LAST, SECRET}
    return REPORTS in older or (LAST in older and SECRET not in older)


@pytest.mark.parametrize("how", ["missing", "older", "truncated"])
@pytest.mark.parametrize("subset", few_fast(SUBSETS))
def test_lost_state_is_seen_before_anybody_is_charged(weeks, work, subset, how):
    if how == "older" and not is_told_apart({*subset}):
        return
    for part in subset:
        lose(work, weeks[1], part, how)
    message = refused(work, weeks[0])
    assert any(str(work / part).rstrip("*/") in message for part in PARTS), message
    assert "estore" in message
    for command in (
        lambda: explain_artifact(work, "holders/split"),
        lambda: collect_garbage(work, keep=0, dry_run=False),
    ):
        with pytest.raises(ArtifactCorrupt):
            command()


@pytest.mark.parametrize("how", ["missing", "older", "truncated"])
def test_every_single_file_of_it_is_missed(weeks, work, how):
    """Of what otherwise stands: but for locks and what is told, without which the rest still stands for itself."""
    _, older, whole = weeks
    reports = sorted((whole / "curator/reports").rglob("*.parquet"))
    protocol = [whole / name for name in Campaign(Store(whole), "rides-2026").frozen().protocol.names]
    assert len(reports) == 2
    for path in (*reports, *protocol, *whole.glob(LAST), whole / DATABASE, whole / SECRET):
        name = path.relative_to(whole)
        is_kept = path.name != "holders.db" and (older / name).exists()
        if how == "older" and is_kept:
            continue
        lose(work, older, str(name), how)
        with pytest.raises(ArtifactCorrupt, match=path.name):
            Terms.of(Store(work), rides_config(weeks[0][2], **CAMPAIGN))
        shutil.copy(path, work / name)
    assert Terms.of(Store(work), rides_config(weeks[0][2], **CAMPAIGN))


@pytest.mark.parametrize("how", ["missing", "truncated"])
@pytest.mark.parametrize("subset", few_fast([s for s in SUBSETS if s != (QUESTIONS,)]))
def test_without_a_campaign_it_is_seen_too(alone, tmp_path, subset, how):
    files, whole = alone
    work = shutil.copytree(whole, tmp_path / "work")
    for part in subset:
        lose(work, None, part, how)
    refused(work, files, **RELEASE)


@pytest.mark.parametrize("lost", [(), (REPORTS, LAST), (QUESTIONS, REPORTS, LAST)])
def test_a_whole_holders_zone_that_was_lost_is_seen_by_whatever_the_curator_has(weeks, work, lost):
    """The reports, else the questions that were published, else what was made of them."""
    for part in ("holders", *lost):
        lose(work, None, part, "missing")
    assert "holders" in refused(work, weeks[0])


def test_the_holders_zone_of_an_older_backup_is_seen_by_what_the_curator_has(weeks, work):
    restore(weeks[1], work, "holders")
    assert "holders/holders.db: older than " in refused(work, weeks[0])


def test_an_older_backup_that_is_copied_over_newer_folders_is_seen(weeks, work):
    """What came since lies there still, and what the backup has is as it was."""
    shutil.copytree(weeks[1], work, dirs_exist_ok=True)
    for path in work.glob("holders/holders.db-*"):
        path.unlink()
    assert "holders/holders.db: older than " in refused(work, weeks[0])


def test_a_part_of_another_history_is_seen(weeks, work, tmp_path):
    """Both went on from the same backup, by a week each."""
    files, older, _ = weeks
    other = Store(shutil.copytree(older, tmp_path / "other"))
    collected(other, files[2], **CAMPAIGN)
    restore(other.root, work, LAST)
    assert "of another history" in refused(work, files)
    restore(other.root, work, "curator/reports")
    refused(work, files)


def test_a_campaign_without_its_protocol_is_refused(weeks, work):
    remove(work / "curator" / "partition")
    assert "protocol.json: missing" in refused(work, weeks[0])


def test_a_flipped_bit_of_the_secret_is_seen(weeks, work):
    path = work / "holders" / "secret"
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    message = refused(work, weeks[0])
    assert f"{path}: the holders' secret is damaged" in message
    assert "any backup of this work folder" in message


def test_a_lost_secret_is_never_made_again(weeks, work):
    (work / "holders" / "secret").unlink()
    refused(work, weeks[0])
    with pytest.raises(
        ArtifactCorrupt, match=r"the holders' secret is missing, and holders/holders\.db says"
    ):
        Store(work).hasher("holders")
    assert not (work / "holders" / "secret").exists()


def test_a_campaign_goes_on_where_all_its_parts_are_restored_from_one_backup(weeks, tmp_path):
    files, _, whole = weeks
    work = tmp_path / "restored"
    for part in PARTS:
        restore(whole, work, part)
    before = reports(work)
    third = collected(Store(work), files[2], **CAMPAIGN)
    assert {path: reports(work)[path] for path in before} == before
    assert third.totals["totals"].rows
    assert collected(Store(work), *files, **CAMPAIGN).spent == third.spent


class Killed(BaseException):
    """Nothing catches it."""


WRITES = 3
"""Transactions of a week: the charge with what the campaign keeps, the reports that were received, and the answers."""


@pytest.mark.parametrize("at", first_fast(*range(1, 2 * WRITES + 1), fast=(1, 6)))
def test_a_run_that_is_killed_before_it_tells_of_a_transaction_is_resumed(weeks, work, monkeypatch, at):
    done = []

    def killed_at(real):
        def write(self, name, what):
            if name == SECRET or name.startswith(LAST.removesuffix("*")):
                done.append(name)
                if len(done) == at:
                    raise Killed
            real(self, name, what)

        return write

    for way in ("put", "change"):
        monkeypatch.setattr(FolderObjects, way, killed_at(getattr(FolderObjects, way)))
    with suppress(Killed):
        collected(Store(work), weeks[0][2], **CAMPAIGN)
    assert done
    monkeypatch.undo()
    resumed = collected(Store(work), weeks[0][2], **CAMPAIGN)
    before = charges(work)
    assert collected(Store(work), *weeks[0], **CAMPAIGN).spent == resumed.spent
    assert charges(work) == before


def test_a_cached_run_writes_no_transaction(weeks, work):
    paths = [work / DATABASE, work / SECRET, *work.glob(LAST)]
    before = {path: path.read_bytes() for path in paths}
    collected(Store(work), weeks[0][0], **CAMPAIGN)
    assert {path: path.read_bytes() for path in (*paths, *work.glob(LAST))} == before


def test_what_stands_beside_the_reports_says_nothing_of_the_holders(weeks, work):
    (told,) = work.glob(LAST)
    assert re.fullmatch(rf"{told.name.rsplit('-')[-1]} [0-9a-f]{{64}}", told.read_text())


@pytest.mark.parametrize("content", [b"", b"garbage", b"[]", b'{"a": 1}' + b" " * 9999])
@pytest.mark.parametrize("kept", [LAST, DATABASE, SECRET])
def test_garbage_in_place_of_what_is_kept_is_told_before_any_charge(weeks, work, kept, content):
    (path,) = work.glob(kept)
    path.write_bytes(content)
    assert path.name in refused(work, weeks[0])

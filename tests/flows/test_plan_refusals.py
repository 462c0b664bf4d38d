"""What a run refuses before anybody is asked, its plan refuses too: with the same exit code, and for the same reason."""

from __future__ import annotations

import json
import shutil

import pytest
from chain import Chain, rides, rides_config

from flows.budget import keep_answers
from flows.plan import show_plan
from ldptree.errors import LdptreeError
from storage.store import Store

RELEASE = {"simulation": {"noise_seed": None}, "release": True}
CAPPED = RELEASE | {"privacy": {"epsilon": 2.0, "lifetime_epsilon": 2.0}}
NAMED = CAPPED | {"campaign": {"name": "rides"}}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Work folders of finished runs, by kind, and the file they asked. Only to be copied."""
    folder = tmp_path_factory.mktemp("refused")
    path = rides(folder / "rides.csv", 400, seed=1)
    for name, changes in (("release", CAPPED), ("campaign", NAMED)):
        chain = Chain(Store(folder / name), rides_config(path, **changes))
        assert chain.page
        shards = [call["shard"].files[0].name for call in chain.shards]
        files = {shard: record["reports"] for shard, record in zip(shards, chain.reports, strict=True)}
        keep_answers(chain.store, chain.config, chain.held, chain.protocol, "reports", files)
    return folder


@pytest.fixture
def scene(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "copied")
    return tmp_path / "copied"


def refused(act):
    with pytest.raises(LdptreeError) as fault:
        act()
    return fault.value.exit_code, str(fault.value)


def both(work, config):
    """How the run and its plan are refused; the plan first, which leaves no trace."""
    before = sorted(work.rglob("*"))
    planned = refused(lambda: show_plan(config, work, as_json=True))
    assert sorted(work.rglob("*")) == before
    return refused(lambda: Chain(Store(work), config).page), planned


def configured(finished, **changes):
    # The files are known by their names: they stay where they were.
    return rides_config(finished / "rides.csv", **changes)


def shards_in(work):
    return sorted((work / "curator" / "reports").rglob("*.parquet"))


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def lose_reports(work):
    shards_in(work)[0].unlink()


def damage_reports(work):
    flip(shards_in(work)[0])


def forget_reports(work):
    lose_reports(work)
    shutil.rmtree(work / "holders" / "perturb")


def damage_record(work):
    lose_reports(work)
    for record in (work / "holders" / "perturb").glob("*.json"):
        record.write_text("")


def damage_charge(work):
    (charge,) = (work / "holders" / "ledger" / "release").glob("*.charge")
    flip(charge)


def cut_secret(work):
    (work / "holders" / "secret").write_bytes(b"short")


@pytest.mark.parametrize(
    ("damage", "changes", "code"),
    [
        (None, {"privacy": {"epsilon": 1.0, "lifetime_epsilon": 2.0}}, 4),
        (lose_reports, {}, 5),
        (damage_reports, {}, 5),
        (forget_reports, {}, 5),
        (damage_record, {}, 5),
        (damage_charge, {}, 5),
        (damage_charge, {"seed": 99}, 5),
        (cut_secret, {}, 5),
    ],
)
def test_what_a_release_refuses_its_plan_refuses(finished, scene, damage, changes, code):
    if damage:
        damage(scene / "release")
    ran, planned = both(scene / "release", configured(finished, **(CAPPED | changes)))
    assert (ran[0], planned[0]) == (code, code)


def test_a_question_that_is_made_and_cannot_be_paid_is_refused_by_both_for_the_same_reason(finished, scene):
    config = configured(finished, **CAPPED | {"privacy": {"epsilon": 1.0, "lifetime_epsilon": 2.0}})
    assert Chain(Store(scene / "release"), config).published
    ran, planned = both(scene / "release", config)
    assert ran == planned
    assert ran[0] == 4


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"seed": 8}, 5),
        ({"privacy": {"epsilon": 1.0, "lifetime_epsilon": 2.0}}, 5),
        ({"model": {"estimator": "lpct"}, "evaluate": False}, 5),
    ],
)
def test_what_a_campaign_fixed_is_refused_by_both(finished, scene, changes, code):
    ran, planned = both(scene / "campaign", configured(finished, **(NAMED | changes)))
    assert ran == planned
    assert ran[0] == code


def test_a_file_changed_within_a_campaign_is_refused_by_both(tmp_path):
    path, work = rides(tmp_path / "rides.csv", 300, seed=1), tmp_path / "work"
    config = rides_config(path, **NAMED)
    assert Chain(Store(work), config).model
    rides(path, 301, seed=1)
    ran, planned = both(work, config)
    assert ran == planned
    assert ran[0] == 4


def test_reports_of_a_campaign_that_are_lost_are_refused_by_both(finished, scene):
    lose_reports(scene / "campaign")
    ran, planned = both(scene / "campaign", configured(finished, **NAMED))
    assert ran[0] == planned[0] == 5


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_a_work_folder_that_cannot_be_one_is_refused_by_both(finished, tmp_path, where):
    (tmp_path / "file").write_text("")
    work, config = tmp_path / where, configured(finished)
    ran = refused(lambda: Store(work))
    planned = refused(lambda: show_plan(config, work, as_json=True))
    assert ran == planned
    assert ran[0] == 2


def test_rows_that_fail_their_validation_are_refused_by_both(tmp_path):
    path, work = rides(tmp_path / "rides.csv", 300, seed=1), tmp_path / "work"
    config = rides_config(path)
    chain = Chain(Store(work), config)
    checks = chain.checked["checks"]
    file = chain.store.file(checks, "checks.json")
    content = json.loads(file.read_text())
    content[0] |= {"ok": False, "severity": "stop"}
    file.write_text(json.dumps(content))
    entries = tuple(
        entry.model_copy(update={"digest": chain.store.hasher(checks.zone).of_file(file)})
        if entry.name == "checks.json"
        else entry
        for entry in checks.files
    )
    record = chain.checked.model_copy(
        update={"parts": {"checks": checks.model_copy(update={"files": entries})}}
    )
    (path,) = [p for p, r in chain.store.records() if r.step == "validate"]
    path.write_text(record.model_dump_json())
    code, said = refused(lambda: show_plan(config, work, as_json=True))
    assert code == 3
    assert "validation failed" in said

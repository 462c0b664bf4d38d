"""What a run refuses before anybody is asked, its plan refuses too: with the same exit code, and for the same reason."""

from __future__ import annotations

import json
import shutil

import pytest
from chain import Chain, rides, rides_config

from flows.run_plan.show import show_plan
from ldptree.errors import LdptreeError
from storage.formats import stamped
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
        chain.keep_answers()
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


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def first_reports(work):
    return min((work / "curator" / "reports").rglob("*.parquet"))


def lose_reports(work, _):
    first_reports(work).unlink()


def damage_reports(work, _):
    flip(first_reports(work))


def forget_reports(work, _):
    first_reports(work).unlink()
    shutil.rmtree(work / "holders" / "perturb")


def damage_record(work, _):
    first_reports(work).unlink()
    for record in (work / "holders" / "perturb").glob("*.json"):
        record.write_text("")


def damage_charge(work, _):
    charged = work / "holders" / "holders.db"
    charged.write_bytes(charged.read_bytes().replace(b"round 1 reports", b"round 2 reports"))


def cut_secret(work, _):
    (work / "holders" / "secret").write_bytes(b"short")


def make_the_question(work, config):
    assert Chain(Store(work), config).published


def nothing(*_):
    """All stands."""


DEARER = {"privacy": {"epsilon": 1.0, "lifetime_epsilon": 2.0}}


@pytest.mark.parametrize(
    ("kind", "damage", "changes", "code", "same_words"),
    [
        ("release", nothing, DEARER, 4, False),
        ("release", make_the_question, DEARER, 4, True),
        ("release", lose_reports, {}, 5, False),
        ("release", damage_reports, {}, 5, False),
        ("release", forget_reports, {}, 5, False),
        ("release", damage_record, {}, 5, False),
        ("release", damage_charge, {}, 5, False),
        ("release", damage_charge, {"seed": 99}, 5, False),
        ("release", cut_secret, {}, 5, False),
        ("campaign", nothing, {"seed": 8}, 5, True),
        ("campaign", nothing, DEARER, 5, True),
        ("campaign", nothing, {"model": {"estimator": "lpct"}, "evaluate": False}, 5, True),
        ("campaign", lose_reports, {}, 5, False),
    ],
)
def test_what_a_run_refuses_its_plan_refuses(finished, scene, kind, damage, changes, code, same_words):
    """In the same words where the plan knows as much as the run."""
    config = configured(finished, **{"release": CAPPED, "campaign": NAMED}[kind] | changes)
    damage(scene / kind, config)
    ran, planned = both(scene / kind, config)
    assert (ran[0], planned[0]) == (code, code)
    assert ran == planned or not same_words


@pytest.mark.parametrize("cap", [2.0, 1.75])
def test_a_plan_that_does_not_know_yet_whom_it_reaches_says_for_whom_the_ledger_has_no_room(
    finished, scene, capsys, cap
):
    """Under the cap that holds already, and under a smaller one that it states first."""
    other = {"campaign": {"name": "other"}, "privacy": {"epsilon": 0.5, "lifetime_epsilon": cap}}
    config = configured(finished, **CAPPED | other)
    show_plan(config, scene / "campaign", as_json=False)
    said = " ".join(capsys.readouterr().out.split())
    assert (
        f"refused if it reaches somebody who has spent more than epsilon {cap - 0.5:g}, as the lifetime cap is {cap:g}"
        in said
    )
    assert refused(lambda: Chain(Store(scene / "campaign"), config).page)[0] == 4


def test_a_file_changed_within_a_campaign_is_refused_by_both(tmp_path):
    path, work = rides(tmp_path / "rides.csv", 300, seed=1), tmp_path / "work"
    config = rides_config(path, **NAMED)
    assert Chain(Store(work), config).model
    rides(path, 301, seed=1)
    ran, planned = both(work, config)
    assert ran == planned
    assert ran[0] == 4


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
    (name,) = [name for name, r in chain.store.records() if r.step == "validate"]
    chain.store.objects.put(name, stamped("record", record.model_dump(mode="json")))
    code, said = refused(lambda: show_plan(config, work, as_json=True))
    assert code == 3
    assert "validation failed" in said

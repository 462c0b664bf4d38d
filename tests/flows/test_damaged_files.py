"""Every file that a small campaign keeps, damaged: it is noticed, or it makes no difference; nobody is asked again."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest
from chain import Chain, rides, rides_config

from flows.executors import InlineExecutor
from flows.finish import finish
from ldptree.errors import LdptreeError
from storage.ledger.connections import DATABASE
from storage.store import Store

pytestmark = pytest.mark.slow
N, STEP = 400, 256
PARTS, PARTS_OF_BYTES = 2, 4
WRITTEN_ANEW = ("runs/", "index.html", "curator/warehouse.duckdb")


def flip(content, at):
    return content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :]


DAMAGES = {
    "removed": lambda content: None,
    "cut short": lambda content: content[: len(content) // 2],
    "flipped in the middle": lambda content: flip(content, len(content) // 2),
}


def walked(work, path):
    store = Store(work)
    config = rides_config(
        path,
        simulation={"noise_seed": None},
        evaluate=False,
        campaign={"name": "rides"},
        privacy={"lifetime_epsilon": 2.0},
    )
    run = Chain(store, config, executor=InlineExecutor(store))
    run.walk()
    finish(run)
    return run


def contents(work, *below):
    return {
        path.relative_to(work).as_posix(): path.read_bytes()
        for path in sorted(work.joinpath(*below).rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def contents_of_record(work):
    """What was drawn and charged."""
    database = {name: data for name, data in contents(work, "holders").items() if name == DATABASE}
    return contents(work, "curator", "reports") | database


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """A work folder with a finished run of a campaign, its raw file, and its model."""
    home = tmp_path_factory.mktemp("campaign")
    path = rides(home / "rides.csv", N, 1)
    run = walked(home / "work", path)
    again = walked(home / "work", path)
    assert again.model == run.model
    return home / "work", path, run.model["model"].digest


class Walks:
    """Runs over a copy of a finished campaign with one file damaged: what came of each, and what must not have."""

    def __init__(self, campaign, room):
        self.work, self.path, self.model = campaign
        self.here = room / "work"
        self.drawn = contents_of_record(self.work)
        self.found, self.faults = Counter(), []

    def walk(self, name, damaged, how):
        """Run where the file `name` is `damaged`; None: gone."""
        shutil.copytree(self.work, self.here)
        file = self.here / name
        file.unlink() if damaged is None else file.write_bytes(damaged)
        try:
            run = walked(self.here, self.path)
        except LdptreeError as fault:
            self.found["noticed"] += 1
            if "unexpected" in str(fault) or not str(fault).strip():
                self.faults.append(f"{name} {how}: {fault}")
        except Exception as fault:
            self.faults.append(f"{name} {how}: {type(fault).__name__} {fault}")
        else:
            self.found["harmless"] += 1
            if run.model["model"].digest != self.model:
                self.faults.append(f"{name} {how}: another model, and nothing is said")
        now = contents_of_record(self.here)
        as_before = {one: (self.drawn.get(one), damaged if one == name else None) for one in now}
        self.faults += [
            f"{name} {how}: asked again: {one}" for one in sorted(now) if now[one] not in as_before[one]
        ]
        shutil.rmtree(self.here)

    def check(self):
        assert not self.faults, "\n".join(self.faults)
        assert self.found["noticed"]
        assert self.found["harmless"]


@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_file_is_noticed_or_makes_no_difference(campaign, tmp_path, part):
    before, walks = contents(campaign[0]), Walks(campaign, tmp_path)
    for name in sorted(before)[part::PARTS]:
        for how, damage in DAMAGES.items():
            damaged = damage(before[name]) if before[name] or how == "removed" else b""
            if damaged != before[name]:
                walks.walk(name, damaged, how)
    walks.check()


@pytest.mark.parametrize("part", range(PARTS_OF_BYTES))
def test_a_single_byte_of_what_no_digest_covers_is_noticed_or_makes_no_difference(campaign, tmp_path, part):
    """Every 256th of each record and of the secret; of the database: storage/test_database.py. What each run writes anew is left
    out.
    """
    before, walks = contents(campaign[0]), Walks(campaign, tmp_path)
    covered = names_of_artifacts(campaign[0]).keys()
    left_out = (*WRITTEN_ANEW, DATABASE)
    kept = [name for name in sorted(before) if name not in covered and not name.startswith(left_out)]
    flips = [(name, at) for name in kept for at in range(0, len(before[name]), STEP)]
    assert {"holders/secret", max(name for name in kept if "last-transaction" in name)} <= {*kept}
    for name, at in flips[part::PARTS_OF_BYTES]:
        walks.walk(name, flip(before[name], at), f"flipped at {at}")
    walks.check()


def test_a_single_byte_of_an_artifact_is_noticed(campaign):
    """Every 256th of each file that an artifact has; of large ones as many, evenly."""
    store = Store(campaign[0])
    for name, manifest in names_of_artifacts(campaign[0]).items():
        path = campaign[0] / name
        content = path.read_bytes()
        try:
            for at in range(0, len(content), max(STEP, len(content) // 500)):
                path.write_bytes(flip(content, at))
                assert store.condition(manifest) == "damaged", f"{name} at {at}"
        finally:
            path.write_bytes(content)
        assert store.condition(manifest) == "present"


def names_of_artifacts(work):
    """The files of all artifacts, each with a manifest of itself alone."""
    parts = [part for _, record in Store(work).records() for part in record.parts.values()]
    return {one.names[0]: one for part in parts if part.path for one in part.one_by_one()}

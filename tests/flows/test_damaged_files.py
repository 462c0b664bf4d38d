"""Every file that a small campaign keeps, damaged: it is noticed, or it makes no difference; nobody is asked again."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest
from chain import Chain, rides, rides_config

from flows.execute import Plainly
from flows.finish import finish
from ldptree.errors import LdptreeError
from storage.store import Store

pytestmark = pytest.mark.slow
N, STEP = 400, 64
PARTS = 4


def flip(content, at):
    return content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :]


def flip_all(content):
    for at in range(0, len(content), STEP):
        content = flip(content, at)
    return content


DAMAGES = {
    "removed": lambda content: None,
    "cut short": lambda content: content[: len(content) // 2],
    "flipped at every 64th byte": flip_all,
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
    run = Chain(store, config, execute=Plainly(store))
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
    reports = {
        name: data for name, data in contents(work, "curator", "reports").items() if name.endswith(".parquet")
    }
    return reports | {
        name: data for name, data in contents(work, "holders", "ledger").items() if name.endswith(".charge")
    }


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """A work folder with a finished run of a campaign, its raw file, and its model."""
    home = tmp_path_factory.mktemp("campaign")
    path = rides(home / "rides.csv", N, 1)
    run = walked(home / "work", path)
    again = walked(home / "work", path)
    assert again.model == run.model
    return home / "work", path, run.model["model"].digest


@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_file_is_noticed_or_makes_no_difference(campaign, tmp_path, part):
    work, path, model = campaign
    before = contents(work)
    drawn = contents_of_record(work)
    found, faults = Counter(), []
    for name in sorted(before)[part::PARTS]:
        for how, damage in DAMAGES.items():
            if (damaged := damage(before[name]) if before[name] or how == "removed" else b"") == before[name]:
                continue
            here = tmp_path / "work"
            shutil.copytree(work, here)
            (here / name).unlink() if damaged is None else (here / name).write_bytes(damaged)
            try:
                run = walked(here, path)
            except LdptreeError as fault:
                found["noticed"] += 1
                if "unexpected" in str(fault) or not str(fault).strip():
                    faults.append(f"{name} {how}: {fault}")
            except Exception as fault:
                faults.append(f"{name} {how}: {type(fault).__name__} {fault}")
            else:
                found["harmless"] += 1
                if run.model["model"].digest != model:
                    faults.append(f"{name} {how}: another model, and nothing is said")
            now = contents_of_record(here)
            changed = {
                one for one in now if now[one] not in (drawn.get(one), damaged if one == name else None)
            }
            faults += [f"{name} {how}: asked again: {one}" for one in sorted(changed)]
            shutil.rmtree(here)
    assert not faults, "\n".join(faults)
    assert found["noticed"]
    assert found["harmless"]

"""The wall between curator and holders: the curator's steps run again, to the same digests, with the holders' zone gone."""

from __future__ import annotations

import shutil

import pytest
from chain import Chain
from whole_runs import learned

from storage.store import Store
from tasks.report import read_facts

pytestmark = [pytest.mark.server, pytest.mark.slow]

OF_ITS_TIME = ("making",)


def digests_of(chain):
    """Every digest of what the curator makes of public rows and reports."""
    made = (chain.scaled, chain.published, chain.totals, chain.model)
    return {
        (record.step, part): manifest.digest for record in made for part, manifest in record.parts.items()
    }


def timeless(facts):
    return {key: value for key, value in facts.items() if key not in OF_ITS_TIME}


def page_of(chain, checked):
    chain.__dict__["checked"] = checked
    return chain.page["page"]


@pytest.fixture(params=["release", "mended_release"])
def released(request):
    """A release of one tree, and one of a mended public model."""
    return request.getfixturevalue(request.param)


def test_a_release_has_no_simulation(released):
    assert not (released.work / "simulation").exists()
    assert released.summary["metrics"] == {}
    assert released.summary["n_test"] == 0


def test_the_curator_does_all_their_steps_again_without_the_holders(released, tmp_path):
    store = Store(shutil.copytree(released.work, tmp_path / "work"))
    before, after = Chain(store, released.config), Chain(store, released.config)
    by_step = {record.step: record for _, record in store.records()}
    for name in ("terms", "raw", "ingested", "held", "spent", "reports"):
        after.__dict__[name] = getattr(before, name)
    digests, facts = digests_of(before), read_facts(store, by_step["report"]["page"]).to_dict()

    store.zone("holders").rename(tmp_path / "elsewhere")
    for step in ("scale", "partition", "add", "aggregate", "prune", "report"):
        shutil.rmtree(store.zone("curator") / step)
    shutil.rmtree(store.zone("public") / "scale")

    page = page_of(after, by_step["validate"])
    assert digests_of(after) == digests
    assert timeless(read_facts(store, page).to_dict()) == timeless(facts)
    model = store.file(after.model["model"], "model.json")
    assert model.read_bytes() == learned(released.work, released.summary)[1]
    assert not store.zone("holders").exists()

"""The wall between curator and holders: the curator's steps run again, to the same digests, with the holders' zone gone."""

from __future__ import annotations

import shutil

import pytest
from chain import Chain
from whole_runs import learned, rides_toml, run

from flows import calls
from schemas.config import load
from storage.store import Store
from tasks.checkpoint import Aside
from tasks.report import read_facts, report
from tasks.timeline import Timeline

pytestmark = pytest.mark.server

OF_ITS_TIME = ("created", "steps", "peak_rss_mb", "command")


@pytest.fixture(scope="module")
def release(connected, files, tmp_path_factory):
    """A run in which nothing is held back: the store, its configuration, the summary."""
    folder = tmp_path_factory.mktemp("release")
    config = load(rides_toml(folder / "rides.toml", str(files / "*.csv"), simulation={"noise_seed": 11}))
    return Store(folder / "work"), config, run(config, folder / "work")


def page_of(chain, checked):
    done = {
        "ingested": chain.ingested,
        "checked": checked,
        "held": chain.held,
        "scaled": chain.scaled,
        "published": chain.published,
        "totals": chain.totals,
        "model": chain.model,
        "scores": None,
    }
    call = calls.report(chain.terms, chain.protocol, **done)
    return report.fn(chain.store, **call, timeline=Aside(Timeline()), command=Aside(""))


def test_a_release_has_no_simulation(release):
    store, _, summary = release
    assert not store.zone("simulation").exists()
    assert summary["metrics"] == {}
    assert summary["n_test"] == 0


def test_the_curator_does_all_their_steps_again_without_the_holders(release, tmp_path):
    store, config, summary = release
    before = Chain(store, config)
    by_step = {record.step: record for _, record in store.records()}
    names = ("scaled", "published", "totals", "model")
    digests = {name: {p: m.digest for p, m in getattr(before, name).parts.items()} for name in names}
    facts = read_facts(store, by_step["report"]["page"]).to_dict()
    after = Chain(store, config)
    for name in ("raw", "ingested", "held", "reports"):
        after.__dict__[name] = getattr(before, name)

    store.zone("holders").rename(tmp_path / "elsewhere")
    for record in ("scale", "partition", "aggregate", "prune", "report"):
        shutil.rmtree(store.zone("curator") / record)
    shutil.rmtree(store.zone("public") / "scale")

    page = page_of(after, by_step["validate"])
    again = {name: {p: m.digest for p, m in getattr(after, name).parts.items()} for name in names}
    assert again == digests
    now = read_facts(store, page).to_dict()
    assert {k: v for k, v in now.items() if k not in OF_ITS_TIME} == {
        k: v for k, v in facts.items() if k not in OF_ITS_TIME
    }
    assert store.file(after.model["model"], "model.json").read_bytes() == learned(store.root, summary)[1]
    assert not store.zone("holders").exists()

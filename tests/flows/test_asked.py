"""Different people whose rows are equal are asked apart, each counted and charged; the same people are asked once."""

from __future__ import annotations

import shutil

import pyarrow.parquet as pq
import pytest
from chain import Chain, RoundsChain, rides, rides_config, shells, shells_config

from flows.shards import check_reported
from ldptree.errors import ArtifactCorrupt
from schemas.manifest import FileEntry, MadeBy, Manifest, Record
from storage.ledger.accounts import Account
from storage.store import Store
from tasks.perturb import perturb

N = 90
NAMED = {"holder": "person", "drop": []}
ROWS = {"drop": ["person"]}
CAMPAIGN = {"campaign": {"name": "rides"}}


def people(folder, *groups):
    """A file for each group of people: equal rows, other names."""
    rides(folder / "public.csv", N, 2, zone=["open"] * N)
    columns = {"zone": ["closed"] * N}
    return [
        rides(folder / f"{group}.csv", N, 1, **columns, person=[f"{group}-{i}" for i in range(N)])
        for group in groups
    ]


def run(store, *paths, dataset=NAMED, noise_seed=None, **changes):
    """A run up to where it is looked at; nobody is held back, so that equal files have equal shards."""
    public = paths[0].parent / "public.csv"
    simulation = {"noise_seed": noise_seed}
    settings = {"dataset": dataset, "evaluate": False, "model": {"depth": 1}, "simulation": simulation}
    return Chain(store, rides_config(public, *paths, **settings, **changes))


def files(chain):
    """What stands in the file of each shard's reports, by its name."""
    found = [path for record in chain.reports for path in chain.store.files(record["reports"])]
    return {path.name: pq.read_table(path).column(0).to_pylist() for path in found}


@pytest.mark.parametrize(
    ("dataset", "noise_seed", "campaign"),
    [
        pytest.param(ROWS, None, {}, id="rows"),
        pytest.param(NAMED, 11, {}, id="named, seeded"),
        pytest.param(NAMED, None, CAMPAIGN, id="named, in a campaign", marks=pytest.mark.slow),
        pytest.param(ROWS, 11, CAMPAIGN, id="rows, in a seeded campaign", marks=pytest.mark.slow),
    ],
)
def test_people_whose_rows_are_equal_all_report_and_are_counted(
    store, tmp_path, dataset, noise_seed, campaign
):
    chain = run(store, *people(tmp_path, "a", "b", "c"), dataset=dataset, noise_seed=noise_seed, **campaign)
    # Of a release even the order of rows in a shard is its own.
    assert len({entry.digest for entry in chain.held["train"].files}) == (3 if noise_seed is None else 1)
    assert len(files(chain)) == 3
    assert len({tuple(said) for said in files(chain).values()}) == 3  # no noise is shared
    assert chain.totals.facts == {"n_private": 3 * N, "shards": 3}


@pytest.mark.parametrize("campaign", [pytest.param({}, id="alone"), pytest.param(CAMPAIGN, id="campaign")])
@pytest.mark.slow
def test_who_comes_later_with_equal_rows_takes_nobodys_report(store, tmp_path, campaign):
    """Which reports stand does not tell that two hold the same: not in one run, and not from one to the next."""
    a, b = people(tmp_path, "a", "b")
    first = files(run(store, a, **campaign))
    second = files(run(store, b, **campaign))
    assert first.keys().isdisjoint(second)
    assert files(run(store, b, a, **campaign)) == first | second
    assert files(run(store, a, **campaign)) == first


@pytest.mark.slow
def test_a_simulation_of_one_run_gives_what_it_gives_in_an_empty_work_folder(store, tmp_path):
    a, b, c = people(tmp_path, "a", "b", "c")
    assert run(store, a, noise_seed=11).totals
    other = Store(tmp_path / "other")
    for paths in ((b,), (c, b)):
        here, there = (run(where, *paths, noise_seed=11) for where in (store, other))
        assert here.totals["totals"].digest == there.totals["totals"].digest


@pytest.mark.parametrize(
    "dataset", [pytest.param(ROWS, id="rows"), pytest.param(NAMED, id="named", marks=pytest.mark.slow)]
)
def test_a_copy_of_a_file_is_asked_once(store, tmp_path, dataset):
    (path,) = people(tmp_path, "a")
    once = files(run(store, path, dataset=dataset))
    copy = shutil.copy(path, tmp_path / "copy.csv")
    assert files(run(store, path, copy, dataset=dataset)) == once
    assert files(run(store, copy, dataset=dataset)) == once


def test_who_reports_once_more_among_others_with_equal_rows_pays_once_more(store, tmp_path):
    (path,) = people(tmp_path, "a")
    other = tmp_path / "other.csv"
    other.write_text(path.read_text().replace("a-1,", "z-1,"))
    assert run(store, path).reports
    assert files(run(store, other)).keys().isdisjoint(files(run(store, path)))
    assert Account(store, None).read().largest_spend().epsilon == 4.0


@pytest.mark.parametrize("noise_seed", [None, 11])
def test_in_rounds_too_equal_rows_have_noise_of_their_own(store, tmp_path, noise_seed):
    paths = [
        shells(tmp_path / f"{group}.parquet", 60, 1, who=[f"{group}{i}" for i in range(60)]) for group in "ab"
    ]
    config = shells_config(
        *paths,
        dataset={"drop": ["hides", "who"], "test_fraction": 0.0},
        evaluate=False,
        simulation={"noise_seed": noise_seed},
    )
    chain = RoundsChain(store, config)
    question = chain.ask([])
    assert chain.respondents.charge(question, None)
    one, other = chain.respondents.shards
    is_equal = one["shard"].files[0].digest == other["shard"].files[0].digest
    assert is_equal == (noise_seed is not None)  # of a release even the order of rows is a shard's own
    call = chain.respondents.of_perturb(question)
    start = {"start": one["start"]}  # so that the question asks the same rows of both
    said = [
        pq.read_table(path)
        for shard in (one, other | start)
        for path in store.files(perturb.fn(store, **shard, **call)["reports"])
    ]
    assert said[0].num_rows == said[1].num_rows > 0
    assert not said[0].equals(said[1])


def reports(*names, rows=3):
    made = MadeBy(step="perturb", version="1", parameters={}, inputs={})
    return [
        Record(
            home="holders", step="perturb", version="1", key=str(i),
            parts={"reports": Manifest(zone="curator", path="curator/reports/p/round-1", digest="d", made_by=made,
                                       files=(FileEntry(name=name, digest="d", rows=rows),))},
        )
        for i, name in enumerate(names)
    ]  # fmt: skip


def test_a_run_stops_where_not_everybody_who_was_asked_reported():
    shards = [record["reports"] for record in reports("s1", "s2")]
    check_reported(shards, reports("r1", "r2"))
    for found in (reports("r1", "r1"), reports("r1", "r2", rows=2), reports("r1")):
        with pytest.raises(ArtifactCorrupt, match="6 people were asked in 2 shards, and ") as fault:
            check_reported(shards, found)
        assert fault.value.exit_code == 5

"""Who reports, who is held back, and in which shard: by public coins, whatever other files there are."""

from __future__ import annotations

import numpy as np
import pytest
from chain import Chain, inputs_of, rides, rides_config

from ldptree.errors import DataError
from storage import tables
from storage.digests import Hasher, mixed
from storage.store import Store
from tasks.holders.cut import cut, parts_to_cut
from tasks.holders.split import is_test, one_row_each, split
from tasks.report import read_facts


def held(store, *paths, changes=None, **config):
    """split on some files of rides, with persons and miles kept to tell the rows by."""
    config["dataset"] = {"drop": [], "types": {"person": "text"}} | config.get("dataset", {})
    chain = Chain(store, rides_config(*paths, **config))
    if chain.config.campaign.name:
        assert chain.spent
        chain = Chain(store, chain.config)
    call = inputs_of(chain, "assigned")
    rules = call["rules"].model_copy(update=changes or {})
    record = split.fn(store, **call | {"rules": rules})
    common = {"columns": ["person", "miles"], "is_seeded": rules.noise_seed is not None}
    cuts = [cut.fn(store, **common, **part) for part in parts_to_cut(call["private"], record["roles"])]
    shards = {part: store.gather([one[part] for one in cuts]) for part in ("train", "test")}
    return chain, record.model_copy(update={"parts": record.parts | shards})


def rows(store, manifest):
    return tables.read(store.files(manifest)).to_pylist()


def shards(store, record):
    return {path.name: path.read_bytes() for path in store.files(record["train"])}


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr("tasks.holders.cut.SHARD_ROWS", 50)


def numbered(path, n, seed, start=0, **columns):
    """Rides whose miles are all different, so that a row can be told by them."""
    return rides(path, n, seed, miles=np.arange(start, start + n) / 100, **columns)


def test_every_private_row_reports_or_is_held_back(store, tmp_path, small_shards):
    chain, record = held(store, numbered(tmp_path / "a.csv", 600, 1))
    train, test = rows(store, record["train"]), rows(store, record["test"])
    assert record.facts == {"n_private": len(train), "n_test": len(test)}
    assert (record["train"].rows, record["test"].rows) == (len(train), len(test))
    private = tables.read([p for p in store.files(chain.ingested["private"]) if p.suffix == ".parquet"])
    assert sorted(row["miles"] for row in train + test) == sorted(private.column("miles").to_pylist())


@pytest.mark.parametrize("public", ["zone = 'open'", "random 0.3"])
def test_private_people_who_have_public_rows_as_well_are_counted(public, store, tmp_path):
    """Of a rule that divides their rows; coins draw people."""
    path = numbered(tmp_path / "a.csv", 600, 1, person=np.arange(600) % 151)
    chain, record = held(store, path, dataset={"holder": "person", "public": public})
    public_rows = tables.read(tables.typed_parts(store.files(chain.ingested["public"])))
    seen = set(public_rows.column("person").to_pylist())
    asked = [row["person"] for part in ("train", "test") for row in rows(store, record[part])]
    assert record.facts["n_also_public"] == len(seen & set(asked))
    assert (record.facts["n_also_public"] > 0) == (public != "random 0.3")
    told = [text for text in read_facts(store, chain.page["page"]).warnings if "public rows as well" in text]
    assert len(told) == (public != "random 0.3")


def test_who_has_a_row_among_the_first_ones_is_not_asked(store, tmp_path):
    path = numbered(tmp_path / "a.csv", 600, 1, person=np.arange(600) % 151)
    chain, record = held(store, path, dataset={"holder": "person", "public": "first 60"})
    public_rows = tables.read(tables.typed_parts(store.files(chain.ingested["public"])))
    asked = {row["person"] for part in ("train", "test") for row in rows(store, record[part])}
    assert len(asked) == 91
    assert asked.isdisjoint(public_rows.column("person").to_pylist())


def test_shards_have_the_promised_size_and_the_rows_order(store, tmp_path, small_shards):
    _, record = held(store, numbered(tmp_path / "a.csv", 600, 1))
    sizes = sorted(entry.rows for entry in record["train"].files)
    assert sizes[1:] == [50] * (len(sizes) - 1)
    assert 0 < sizes[0] <= 50
    for path in store.files(record["train"]):
        miles = tables.read([path]).column("miles").to_pylist()
        assert miles == sorted(miles)


def test_about_the_asked_share_is_held_back_and_the_seed_decides_who(store, tmp_path):
    path = numbered(tmp_path / "a.csv", 3000, 1)
    _, one = held(store, path)
    _, same = held(Store(tmp_path / "other"), path)
    _, other = held(store, path, seed=8)
    miles = [{r["miles"] for r in rows(store, record["test"])} for record in (one, other)]
    assert miles[0] == {r["miles"] for r in rows(Store(tmp_path / "other"), same["test"])}
    assert miles[0] != miles[1]
    # 2,000 private rows at 0.2: five standard deviations are 90
    assert all(abs(len(found) - 400) < 90 for found in miles)


def test_nobody_is_held_back_where_nothing_is_scored(store, tmp_path):
    _, record = held(store, numbered(tmp_path / "a.csv", 60, 1), evaluate=False)
    assert (record.facts["n_test"], record["test"].rows) == (0, 0)
    assert record.facts["n_private"] == 40


def test_a_holder_has_one_role_whatever_other_files_there_are(store, tmp_path):
    a = numbered(tmp_path / "b.csv", 600, 1)
    before, after = (
        numbered(tmp_path / "a.csv", 300, 2, start=600),
        numbered(tmp_path / "c.csv", 300, 3, start=900),
    )
    _, alone = held(store, a)
    for others in ((before, a), (before, a, after)):
        _, more = held(store, *others)
        for part in ("train", "test"):
            old = {r["miles"] for r in rows(store, alone[part])}
            assert old == {r["miles"] for r in rows(store, more[part]) if r["miles"] < 6}


def test_rows_of_one_number_in_two_files_are_drawn_apart(store, tmp_path):
    """Both of 1,000 pairs are held back with probability 0.04; were the coins shared, with 0.2."""
    paths = [numbered(tmp_path / f"{i}.csv", 1500, i, start=1500 * i) for i in range(2)]
    _, record = held(store, *paths)
    places = [round(100 * row["miles"]) for row in rows(store, record["test"])]
    shared = {i for i in places if i < 1500} & {i - 1500 for i in places}
    assert abs(len(shared) - 40) < 5 * np.sqrt(1000 * 0.04 * 0.96)


def test_a_person_keeps_their_role_in_every_file(store, tmp_path):
    paths = [numbered(tmp_path / f"{i}.csv", 300, i, start=300 * i) for i in range(3)]
    roles = {}
    for path in paths:
        _, record = held(store, path, dataset={"holder": "person"})
        for part in ("train", "test"):
            for row in rows(store, record[part]):
                assert roles.setdefault(row["person"], part) == part
    assert set(roles.values()) == {"train", "test"}


def test_a_new_file_changes_no_old_shard(store, tmp_path, small_shards):
    a, b = numbered(tmp_path / "b.csv", 600, 1), numbered(tmp_path / "c.csv", 300, 2)
    first = numbered(tmp_path / "a.csv", 300, 3)
    _, one = held(store, a)
    for others in ((a, b), (first, a, b)):
        _, more = held(store, *others)
        assert shards(store, one).items() < shards(store, more).items()


def test_shard_names_tell_nothing_outside_of_the_work_folder(tmp_path, small_shards):
    path = numbered(tmp_path / "a.csv", 300, 1)
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    (_, here), (_, there) = held(one, path), held(two, path)
    assert shards(one, here).keys().isdisjoint(shards(two, there))
    assert sorted(shards(one, here).values()) == sorted(shards(two, there).values())


def test_a_holder_with_many_rows_answers_with_one_of_them(store, tmp_path):
    chain, record = held(store, numbered(tmp_path / "a.csv", 600, 1), dataset={"holder": "person"})
    asked = rows(store, record["train"]) + rows(store, record["test"])
    private = tables.read([p for p in store.files(chain.ingested["private"]) if p.suffix == ".parquet"])
    assert sorted(row["person"] for row in asked) == sorted(set(private.column("person").to_pylist()))
    owners = dict(zip(private.column("miles").to_pylist(), private.column("person").to_pylist(), strict=True))
    assert all(owners[row["miles"]] == row["person"] for row in asked)


def test_no_holder_answers_through_two_files(store, tmp_path):
    paths = [numbered(tmp_path / f"{i}.csv", 300, i, start=300 * i) for i in range(3)]
    _, record = held(store, *paths, dataset={"holder": "person"})
    people = [row["person"] for part in ("train", "test") for row in rows(store, record[part])]
    assert len(people) == len(set(people))


def test_in_a_campaign_nobody_is_asked_twice_over_its_files(store, tmp_path):
    a, b, c = (numbered(tmp_path / f"{n}.csv", 120, i, start=120 * i) for i, n in enumerate("cba"))
    answered, shards_before = set(), {}
    for files in ((a,), (b, a), (b, c)):
        _, record = held(store, *files, dataset={"holder": "person"}, campaign={"name": "rides"})
        now = {row["person"] for row in rows(store, record["train"])}
        assert len(now) == record.facts["n_private"]
        new = {
            row["person"]
            for path in store.files(record["train"])
            if path.name not in shards_before
            for row in tables.read([path]).to_pylist()
        }
        assert new.isdisjoint(answered)
        answered |= new
        for name, content in shards(store, record).items():
            assert shards_before.setdefault(name, content) == content


def test_a_campaigns_file_of_people_who_all_answered_asks_nobody(store, tmp_path):
    a = numbered(tmp_path / "a.csv", 300, 1)
    b = numbered(tmp_path / "b.csv", 300, 1, start=300)
    settings = {"dataset": {"holder": "person"}, "campaign": {"name": "rides"}, "evaluate": False}
    held(store, a, **settings)
    with pytest.raises(DataError, match="no private rows are left"):
        held(store, b, **settings)


def test_which_row_a_holder_answers_with_is_their_own_coin_unless_seeded(tmp_path):
    path = numbered(tmp_path / "a.csv", 600, 1)

    def drawn(name, noise_seed):
        store = Store(tmp_path / name)
        _, record = held(
            store, path, dataset={"holder": "person"}, changes={"noise_seed": noise_seed}, evaluate=False
        )
        return sorted(row["miles"] for row in rows(store, record["train"]))

    assert drawn("one", 11) == drawn("two", 11) != drawn("three", 12)
    assert drawn("four", None) != drawn("five", None)


def test_one_row_each_is_drawn_evenly():
    holders = np.repeat(np.arange(3000, dtype=np.uint64), 3)
    order = np.random.default_rng(0).permutation(holders.size)
    chosen = one_row_each(holders[order], mixed(np.arange(holders.size, dtype=np.uint64), 5))
    assert np.array_equal(np.unique(holders[order][chosen], return_counts=True)[1], np.ones(3000))
    places = np.bincount(order[chosen] % 3, minlength=3)
    assert np.abs(places - 1000).max() < 5 * np.sqrt(3000 * 2 / 9)


@pytest.mark.parametrize(("fraction", "expected"), [(0.0, 0), (0.5, 50_000), (1.0 - 2**-53, 100_000)])
def test_the_coins_of_the_test_are_fair(fraction, expected):
    n = int(is_test(np.arange(100_000, dtype=np.uint64), 7, fraction).sum())
    assert abs(n - expected) <= 5 * np.sqrt(100_000 * fraction * (1 - fraction))


def test_the_hash_is_that_of_the_published_generator():
    """First outputs of splitmix64 from seed 0 (Steele, Lea and Flood 2014)."""
    gamma = 0x9E3779B97F4A7C15
    states = np.array([(i * gamma) % 2**64 for i in range(3)], np.uint64)
    assert mixed(states, 0).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_a_simulation_in_which_nobody_is_held_back_stops_before_anybody_reports(store, tmp_path):
    path = rides(tmp_path / "a.csv", 12, 1)
    with pytest.raises(DataError, match="no private row was held back to score on"):
        assert Chain(store, rides_config(path, dataset={"test_fraction": 0.0001})).held


# The order of rows


def test_coins_of_the_holders_follow_from_their_secret_alone():
    """Whoever knows some of them computes no other: SHAKE-256 of a keyed digest."""
    coins = Hasher(b"key").words(["order", "file"], 5000)
    np.testing.assert_array_equal(Hasher(b"key").words(["order", "file"], 5000), coins)
    for other in (
        Hasher(b"another").words(["order", "file"], 5000),
        Hasher(b"key").words(["order", "fil"], 5000),
    ):
        assert not np.isin(other, coins).any()


def test_the_same_rows_lie_in_another_order_in_another_work_folder(tmp_path):
    """The key is of the holders' secret."""
    same = {"person": [f"p{i}" for i in range(600)]}
    config = {"dataset": {"holder": "person"}, "evaluate": False, "simulation": {"noise_seed": None}}
    found = []
    for folder in ("one", "other"):
        own = Store(tmp_path / folder)
        _, record = held(own, rides(tmp_path / folder / "a.csv", 600, 1, **same), **config)
        found.append([row["person"] for row in rows(own, record["train"])])
    assert sorted(found[0]) == sorted(found[1])
    assert found[0] != found[1]

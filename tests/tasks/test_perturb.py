"""One report a holder, drawn once; noise that no two shards, protocols or rounds share; nothing else crosses over."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow.parquet as pq
import pytest
from chain import Chain, example_protocol, perturb_shard, publish, rides, rides_config, shards_of

from ldptree.coins import Words
from ldptree.errors import ArtifactCorrupt
from ldptree.mechanisms import CHOICES
from storage import tables
from storage.digests import Hasher
from storage.store import Draft, Store
from tasks import perturb as module
from tasks.perturb import form, values_of

N = 4000


def people(n=N, *, y=0.0):
    """`n` holders who all have the same cell and label; y is a column the tree never looks at."""
    return {"x": np.full(n, 1.0), "y": np.full(n, y), "label": np.full(n, "yes")}


def mixed(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "x": rng.uniform(0, 8, n),
        "y": rng.uniform(0, 1, n),
        "label": rng.choice(["yes", "no", "what"], n),
    }


def asked(store, protocol, shard, **changes):
    return perturb_shard(store, protocol, shard, **changes)


def path_of(store, record):
    (path,) = store.files(record["reports"])
    return path


def values(store, record):
    return pq.read_table(path_of(store, record)).column(0).to_numpy()


def flip(path, at=-200):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.fixture
def scene(store):
    """A store, a published protocol and one shard."""
    return store, publish(store, example_protocol()), shards_of(store, mixed())[0]


@pytest.mark.parametrize("mechanism", CHOICES[1:])
def test_every_holder_sends_one_report(store, mechanism):
    protocol = example_protocol(mechanism)
    record = asked(store, publish(store, protocol), shards_of(store, mixed())[0])
    table = pq.read_table(path_of(store, record))
    assert table.column_names == [{"grr": "value"}.get(mechanism, "bits")]
    assert (table.num_rows, record["reports"].rows, record.facts["n_reports"]) == (N, N, N)
    assert pq.read_schema(path_of(store, record)).metadata[b"protocol"].decode() == protocol.digest


def test_what_is_reported_is_cell_and_label_or_outside(store):
    protocol = example_protocol()
    rows = {
        "x": [0.0, 4.0, 4.1, 8.0, 99.0, None],
        "y": [0.0, None, 1.0, 0.5, 0.5, 0.5],
        "label": ["no", "yes", "no", "yes", "what", "no"],
    }
    (shard,) = shards_of(store, rows)
    assert values_of(store.files(shard)[0], protocol).tolist() == [0, 1, 2, 3, 4, 4]


@pytest.mark.parametrize("noise_seed", [None, 11])
def test_a_second_call_reads_back_what_the_first_drew(scene, noise_seed):
    store, protocol, shard = scene
    first = asked(store, protocol, shard, noise_seed=noise_seed)
    drawn = path_of(store, first).read_bytes()
    assert asked(store, protocol, shard, noise_seed=noise_seed) == first
    assert path_of(store, first).read_bytes() == drawn


@pytest.mark.parametrize("noise_seed", [None, 11])
def test_reports_of_a_run_killed_before_it_could_note_them_are_kept(scene, noise_seed, monkeypatch):
    store, protocol, shard = scene

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Draft, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            asked(store, protocol, shard, noise_seed=noise_seed)
    (drawn,) = (store.root / "curator" / "reports").rglob("*.parquet")
    content = drawn.read_bytes()
    record = asked(store, protocol, shard, noise_seed=noise_seed)
    assert path_of(store, record) == drawn
    assert drawn.read_bytes() == content


@pytest.mark.parametrize("damage", ["delete", "flip"])
def test_lost_reports_of_real_holders_are_never_drawn_again(scene, damage):
    store, protocol, shard = scene
    path = path_of(store, asked(store, protocol, shard, noise_seed=None))
    if damage == "delete":
        path.unlink()
    else:
        flip(path)
    left = path.read_bytes() if path.exists() else None
    for _ in range(2):
        with pytest.raises(ArtifactCorrupt, match="could be asked again, so nobody is asked") as fault:
            asked(store, protocol, shard, noise_seed=None)
        assert fault.value.exit_code == 5
        assert path.name in str(fault.value)
        assert (path.read_bytes() if path.exists() else None) == left


@pytest.mark.parametrize("damage", ["delete", "flip"])
def test_lost_reports_of_a_seeded_simulation_are_drawn_again_to_the_same_bytes(scene, damage):
    store, protocol, shard = scene
    record = asked(store, protocol, shard)
    path = path_of(store, record)
    content = path.read_bytes()
    if damage == "delete":
        path.unlink()
    else:
        flip(path)
    again = asked(store, protocol, shard)
    assert path.read_bytes() == content
    assert again["reports"] == record["reports"]


def test_of_two_runs_at_once_one_report_stands(scene):
    store, protocol, shard = scene
    records, gate = [], threading.Barrier(4)

    def run():
        gate.wait()
        records.append(asked(Store(store.root), protocol, shard, noise_seed=None))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(records) == 4
    assert len({record["reports"].digest for record in records}) == 1
    assert len(list((store.root / "curator" / "reports").rglob("*.parquet"))) == 1


def test_a_run_that_another_overtakes_takes_its_reports(scene, monkeypatch):
    """The other run finishes the shard just after this one looked for it and found nothing."""
    store, protocol, shard = scene
    first = asked(store, protocol, shard, noise_seed=None)
    find, looks = Store.find, []

    def find_too_early(self, place):
        looks.append(place.step)
        return None if len(looks) == 1 else find(self, place)

    monkeypatch.setattr(Store, "find", find_too_early)
    assert asked(store, protocol, shard, noise_seed=None)["reports"] == first["reports"]


def test_a_seeded_simulation_gives_the_same_bytes_in_any_work_folder_and_a_release_never(tmp_path):
    found = {}
    for name in ("one", "two"):
        for seed in (11, None):
            store = Store(tmp_path / f"{name}-{seed}")
            protocol, (shard,) = publish(store, example_protocol()), shards_of(store, mixed())
            found[name, seed] = path_of(store, asked(store, protocol, shard, noise_seed=seed)).read_bytes()
    assert found["one", 11] == found["two", 11]
    assert len(set(found.values())) == 3


def test_a_release_never_takes_up_what_a_simulation_drew_in_the_same_work_folder(scene):
    store, protocol, shard = scene
    drawn = [path_of(store, asked(store, protocol, shard, noise_seed=seed)) for seed in (11, None, 12)]
    assert len({path.read_bytes() for path in drawn}) == 3


def agreement(one, other):
    """How often two lists of reports of holders with the same values agree, in standard deviations beyond chance.

    Two reports of one value agree with probability p^2 + (k - 1) q^2; within 5 of that, a false alarm is rarer
    than one in a million.
    """
    oracle = example_protocol().mechanism
    chance = oracle.p**2 + (oracle.k - 1) * oracle.q**2
    return (np.mean(one == other) - chance) / np.sqrt(chance * (1 - chance) / len(one))


def test_no_two_shards_share_their_noise(store):
    protocol, shards = publish(store, example_protocol()), shards_of(store, people(), people(y=0.5))
    one, other = (values(store, asked(store, protocol, shard)) for shard in shards)
    assert abs(agreement(one, other)) < 5


def test_shared_noise_would_be_noticed(store, monkeypatch):
    """The check of the test above, against the fault it is there for."""
    protocol, shards = publish(store, example_protocol()), shards_of(store, people(), people(y=0.5))
    monkeypatch.setattr(
        module, "_seeded", lambda seed, *_: Words.seeded(np.random.SeedSequence([seed, 0, 1, 2]))
    )
    one, other = (values(store, asked(store, protocol, shard)) for shard in shards)
    assert agreement(one, other) > 20


def test_no_two_protocols_share_their_noise(store):
    (shard,) = shards_of(store, people())
    protocols = [publish(store, example_protocol(campaign=name)) for name in (None, "rides")]
    one, other = (values(store, asked(store, protocol, shard)) for protocol in protocols)
    assert abs(agreement(one, other)) < 5


def test_no_two_rounds_share_their_noise(scene):
    store, protocol, _ = scene
    (shard,) = shards_of(store, people())
    one, other = (values(store, asked(store, protocol, shard, round_number=r)) for r in (1, 2))
    assert abs(agreement(one, other)) < 5


def test_another_noise_seed_is_other_noise(tmp_path):
    found = []
    for seed in (11, 12):
        store = Store(tmp_path / str(seed))
        (shard,) = shards_of(store, people())
        found.append(values(store, asked(store, publish(store, example_protocol()), shard, noise_seed=seed)))
    assert abs(agreement(*found)) < 5


@pytest.mark.parametrize(
    ("n", "each", "limit", "expected"),
    [
        (10, 4, 40, "reports"),
        (10, 4, 39, "totals"),
        (1, 4, 0, "totals"),
        (3_300_000, 256, 2 << 30, "reports"),
    ],
)
def test_exact_totals_are_drawn_only_where_reports_would_be_too_large(n, each, limit, expected):
    assert form(n, each, limit) == expected


@pytest.mark.parametrize("mechanism", CHOICES[1:])
def test_exact_totals_have_the_distribution_of_summed_reports(store, mechanism):
    protocol = example_protocol(mechanism)
    published, (shard,) = publish(store, protocol), shards_of(store, mixed())
    record = asked(store, published, shard, form="totals")
    path = path_of(store, record)
    raw = values(store, record)
    assert pq.read_schema(path).metadata[b"form"] == b"totals"
    assert (len(raw), record["reports"].rows) == (protocol.mechanism.raw_size, N)
    if mechanism == "grr":
        assert raw.sum() == N
    truth = np.bincount(values_of(store.files(shard)[0], protocol), minlength=protocol.k)
    for value, (found, count) in enumerate(zip(protocol.mechanism.unbias(raw, N), truth, strict=True)):
        sd = np.sqrt(protocol.mechanism.linear_variance(np.eye(protocol.k)[value], truth))
        assert abs(found - count) < 5 * sd


def test_who_has_reported_in_one_form_is_not_asked_in_the_other(scene):
    store, protocol, shard = scene
    for seed, n_files in ((None, 1), (5, 2)):  # a simulation gives what an empty work folder would give
        paths = {
            path_of(store, asked(store, protocol, shard, form=form, noise_seed=seed))
            for form in ("reports", "totals")
        }
        assert len(paths) == n_files


def test_a_damaged_record_is_one_and_nobody_reports_again(scene):
    store, protocol, shard = scene
    path = path_of(store, asked(store, protocol, shard, noise_seed=None))
    path.unlink()
    (record,) = (store.zone("holders") / "perturb").glob("*.json")
    record.write_text("")
    with pytest.raises(ArtifactCorrupt, match="Holders who have answered could be asked again"):
        asked(store, protocol, shard, noise_seed=None)


def text_of(folder):
    """Everything a zone says: file names, texts, Parquet metadata and values."""
    said = []
    for path in sorted(folder.rglob("*")):
        said.append(path.relative_to(folder).as_posix())
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            said += [str(table.schema.metadata), str(table.to_pydict())]
        elif path.suffix == ".npy":
            said.append(str(np.load(path).tolist()))
        elif path.is_file():
            said.append(path.read_text())
    return "\n".join(said)


@pytest.mark.parametrize("noise_seed", [None, 11])
def test_of_private_rows_the_curator_knows_reports_and_their_number_alone(store, tmp_path, noise_seed):
    people = ["known" if i % 3 == 0 else "somebody" for i in range(150)]
    paths = [
        rides(tmp_path / f"{n}.csv", 150, n, person=[f"{who}-{n}-{i}" for i, who in enumerate(people)])
        for n in (1, 2)
    ]
    config = rides_config(
        *paths,
        dataset={"holder": "person", "drop": []},
        simulation={"noise_seed": noise_seed},
        campaign={"name": "rides"},
    )
    chain = Chain(store, config)
    assert chain.model
    said = text_of(store.zone("curator")) + text_of(store.zone("public"))
    shards = chain.held["train"].files
    assert len(shards) == 2
    kept = [
        path for path in store.zone("holders").rglob("*") if path.is_file() and path.parent.name != "drafts"
    ]
    for path in [*paths, *kept]:  # the draft of a report says what the report does
        assert Hasher().of_file(path) not in said
    for entry in [*shards, *chain.raw.files, *chain.ingested["private"].files]:
        assert entry.digest not in said
    for shard in shards:
        assert shard.name.removesuffix(".parquet") not in said
    assert "somebody" not in said
    received = tables.read([store.file(chain.totals["totals"], "shards.parquet")])
    assert sorted(received.column("holders").to_pylist()) == sorted(shard.rows for shard in shards)

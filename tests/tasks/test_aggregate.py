"""Reports into totals: the counts of plain numpy, unbiased, and nothing taken that is not what it says."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chain import example_protocol, perturb_shard, publish, shards_of
from first_fast import first_fast

from ldptree.errors import ArtifactCorrupt, ProtocolMismatch
from ldptree.mechanisms import CHOICES
from storage.store import Store
from tasks.answers.add import add, raw_sums
from tasks.answers.aggregate import aggregate
from tasks.artifacts import read_protocol, read_totals
from tasks.perturb import manifest_of, values_of

N = (3000, 1, 2000)
MECHANISMS_DAMAGED = ("grr", "oue", "olh", "randomized_response", "discrete_laplace")
DAMAGES = ("missing", "empty", "cut short", "not Parquet", "bytes of a page")


def people(n, seed):
    rng = np.random.default_rng(seed)
    return {"x": rng.uniform(0, 8, n), "y": np.zeros(n), "label": rng.choice(["yes", "no", "what"], n)}


def collected(
    store, protocol, *, rows=N, forms=("reports", "reports", "reports"), noise_seed=11, round_number=1
):
    """The protocol, the shards and their reports' manifests."""
    published = publish(store, protocol)
    shards = shards_of(store, *(people(n, seed) for seed, n in enumerate(rows)))
    call = {"round_number": round_number, "noise_seed": noise_seed}
    reports = [
        perturb_shard(store, published, shard, form=form, **call)["reports"]
        for shard, form in zip(shards, forms, strict=True)
    ]
    return published, shards, reports


def sums(store, published, reports, round_number=1):
    call = {"question": published, "reports": reports, "round_number": round_number}
    return aggregate.fn(store, **call, sums=[add.fn(store, **call)["sums"]])


def truth(store, shards, protocol):
    values = np.concatenate([values_of(store.files(shard)[0], protocol) for shard in shards])
    return np.bincount(values, minlength=protocol.k)


def counted_by_numpy(store, reports, protocol):
    """Support counts of every value, with no code of the project but the packing of bits."""
    raw = np.zeros(protocol.k, dtype=np.int64)
    for manifest in reports:
        column = pq.read_table(store.files(manifest)[0]).column(0)
        if protocol.mechanism.name == "grr":
            raw += np.bincount(column.to_numpy(), minlength=protocol.k)
        else:
            packed = np.frombuffer(b"".join(column.to_pylist()), np.uint8).reshape(len(column), -1)
            raw += np.unpackbits(packed, axis=1, bitorder="little")[:, : protocol.k].sum(
                axis=0, dtype=np.int64
            )
    return raw


@pytest.mark.parametrize("name", ["grr", "oue", "ss"])
def test_totals_are_those_of_numpy_on_the_same_reports(store, name):
    protocol = example_protocol(name)
    published, _, reports = collected(store, protocol)
    raw = counted_by_numpy(store, reports, protocol)
    totals = read_totals(store, sums(store, published, reports)["totals"], protocol)[0]
    oracle = protocol.mechanism
    unbiased = (raw - sum(N) * oracle.q) / (oracle.p - oracle.q)
    np.testing.assert_allclose(totals.counts.ravel(), unbiased[:-1], rtol=1e-12)
    assert totals.outside == pytest.approx(unbiased[-1])
    assert (totals.n_private, totals.round, totals.depth) == (sum(N), 1, 1)
    table = pq.read_table(store.file(sums(store, published, reports)["totals"], "totals.parquet"))
    assert table.column("raw").to_pylist() == raw[:-1].tolist()


@pytest.mark.parametrize(
    "mechanism",
    # one that adds bits and one that adds sums; the law of each mechanism's totals is tested beside the mechanisms
    first_fast(*CHOICES, fast=("oue", "discrete_laplace")),
)
def test_totals_are_right_but_for_noise_of_the_stated_size(tmp_path, mechanism):
    """Mean of 16 collections of the same holders; 4 standard errors, of five values: a false alarm is rarer than 1 in 1,000."""
    protocol, found = example_protocol(mechanism), []
    store = Store(tmp_path / "work")
    for seed in range(16):
        published, shards, reports = collected(store, protocol, rows=(200, 1, 150), noise_seed=seed)
        totals = read_totals(store, sums(store, published, reports)["totals"], protocol)[0]
        found.append([*totals.counts.ravel(), totals.outside])
    counts = truth(store, shards, protocol)
    sd = np.sqrt(protocol.mechanism.linear_variance(np.eye(protocol.k), counts))
    assert (np.abs(np.mean(found, axis=0) - counts) < 4 * sd / np.sqrt(16)).all()
    spread = np.std(found, axis=0, ddof=1) / sd
    assert (np.abs(spread - 1) < 4 / np.sqrt(2 * 15)).all()


def test_reports_bits_and_exact_totals_of_one_protocol_add_up(store):
    protocol = example_protocol("oue")
    published, _, reports = collected(store, protocol, forms=("reports", "reports", "totals"))
    with duckdb.connect() as connection:
        parts = [raw_sums(connection, store.files(r), protocol).raw for r in reports]
        paths = [path for r in reports for path in store.files(r)]
        assert raw_sums(connection, paths, protocol).raw.tolist() == sum(parts).tolist()
    assert sums(store, published, reports).facts == {"n_private": sum(N), "shards": 3}


@pytest.mark.parametrize(
    ("oracle", "form", "column", "said"),
    [
        ("grr", "reports", [1, None, 2], "outside 0"),
        ("oue", "reports", [b"\0", None, b"\0"], "missing where one is said"),
        ("grr", "reports", [1, 2], "2 reports of 3 holders"),
        ("oue", "totals", [-1, 0, 0, 0, 0], "cannot have given"),
        ("oue", "totals", [4, 0, 0, 0, 0], "cannot have given"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_not_added(store, oracle, form, column, said):
    protocol = example_protocol(oracle)
    published, _, reports = collected(store, protocol)
    path = store.files(reports[0])[0]
    kind = {"grr": pa.uint32(), "oue": pa.binary(1)}[oracle] if form == "reports" else pa.int64()
    name = {"grr": "value", "oue": "bits"}[oracle] if form == "reports" else "support"
    meta = {"protocol": protocol.digest, "round": "1", "form": form, "holders": "3"}
    pq.write_table(pa.table({name: pa.array(column, kind)}).replace_schema_metadata(meta), path)
    forged = manifest_of(store, reports[0].names[0], published, 1)
    with pytest.raises(ProtocolMismatch, match=said):
        sums(store, published, [forged])


def test_every_ancestor_holds_the_sum_of_its_cells(trips):
    store, published = trips.store, trips.totals["totals"]
    protocol = read_protocol(store, trips.protocol)
    totals = read_totals(store, published, protocol)[0]
    cells = pq.read_table(store.file(published, "cells.parquet")).to_pandas()
    by_node = cells.pivot(index="node", columns="class", values="unbiased").to_numpy()
    below, nodes = protocol.partition.paths()
    expected = np.zeros_like(by_node)
    np.add.at(expected, nodes, totals.counts[below])
    np.testing.assert_allclose(by_node, expected, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(by_node[0], totals.counts.sum(axis=0), rtol=1e-9)
    leaves = pq.read_table(store.file(published, "totals.parquet"))
    raw = cells.pivot(index="node", columns="class", values="raw").to_numpy()
    assert raw[0].sum() == sum(leaves.column("raw").to_pylist())


def test_the_order_of_reports_changes_nothing(store, tmp_path):
    protocol = example_protocol()
    published, _, reports = collected(store, protocol)
    record = sums(store, published, reports)
    assert sums(store, published, reports[::-1]) == record
    other = Store(tmp_path / "other")
    again = collected(other, protocol)
    assert sums(other, again[0], again[2][::-1])["totals"].digest == record["totals"].digest


def test_what_was_received_is_listed_without_saying_from_where(store):
    published, _, reports = collected(store, example_protocol())
    table = pq.read_table(store.file(sums(store, published, reports)["totals"], "shards.parquet"))
    assert dict(zip(*table.to_pydict().values(), strict=True)) == {r.digest: r.rows for r in reports}
    assert table.column_names == ["report", "holders"]


def test_reports_to_another_protocol_are_refused(store):
    published, _, reports = collected(store, example_protocol())
    other, _, stray = collected(store, example_protocol(campaign="another"))
    for protocol, received in ((published, [*reports, stray[0]]), (other, reports)):
        with pytest.raises(ProtocolMismatch, match="another protocol or round") as fault:
            sums(store, protocol, received)
        assert fault.value.exit_code == 5


def test_reports_of_another_round_are_refused(store):
    published, _, reports = collected(store, example_protocol(), round_number=2)
    with pytest.raises(ProtocolMismatch, match="round"):
        sums(store, published, reports, round_number=1)
    assert sums(store, published, reports, round_number=2).facts["n_private"] == sum(N)


def test_a_file_that_is_no_report_is_refused(store, tmp_path):
    published, _, reports = collected(store, example_protocol())
    path = store.files(reports[0])[0]
    pq.write_table(pa.table({"value": [0]}), path)
    with pytest.raises(ProtocolMismatch):
        sums(store, published, reports)


@pytest.mark.parametrize(
    ("mechanism", "damage"),
    [*(("grr", damage) for damage in DAMAGES), *((name, DAMAGES[-1]) for name in MECHANISMS_DAMAGED[1:])],
)
def test_a_damaged_file_of_reports_is_refused_and_nothing_is_written(store, damage, mechanism):
    published, _, reports = collected(store, example_protocol(mechanism))
    path = store.files(reports[0])[0]
    data = bytearray(path.read_bytes())
    match damage:
        case "missing":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "cut short":
            path.write_bytes(data[: len(data) // 2])
        case "not Parquet":
            path.write_bytes(b"value\n1\n2\n")
        case _:
            data[40:200] = bytes(b ^ 0x5A for b in data[40:200])
            path.write_bytes(data)
    with pytest.raises(ArtifactCorrupt) as fault:
        sums(store, published, reports)
    assert fault.value.exit_code == 5
    assert path.name in str(fault.value)
    assert not list((store.root / "curator" / "aggregate").glob("*"))


def test_a_report_that_no_holder_of_the_protocol_can_send_is_refused(store):
    published, _, reports = collected(store, example_protocol())
    path = store.files(reports[0])[0]
    table = pq.read_table(path)
    for value in (example_protocol().k, 2**32 - 1):
        values = np.append(table.column("value").to_numpy()[1:], np.uint32(value))
        pq.write_table(pa.table({"value": values}).replace_schema_metadata(table.schema.metadata), path)
        entry = reports[0].files[0]
        digest = store.hasher("curator").of_file(path)
        received = reports[0].model_copy(
            update={"digest": digest, "files": (entry.model_copy(update={"digest": digest}),)}
        )
        with pytest.raises(ProtocolMismatch, match="answers another protocol"):
            sums(store, published, [received, *reports[1:]])


def test_totals_state_the_exact_variance_of_sums(store):
    protocol = example_protocol()
    published, _, reports = collected(store, protocol)
    totals = read_totals(store, sums(store, published, reports)["totals"], protocol)[0]
    everything = totals.variance(np.ones((2, 2)))
    one_by_one = sum(totals.variance(np.reshape(unit, (2, 2))) for unit in np.eye(4))
    # Under grr the totals sum to n: errors of single totals cancel in sums.
    assert everything < 0.5 * one_by_one


def test_sums_of_other_holders_than_those_who_reported_are_no_totals(store):
    published, _, reports = collected(store, example_protocol())
    call = {"question": published, "round_number": 1}
    some = add.fn(store, **call, reports=reports[:2])["sums"]
    with pytest.raises(ArtifactCorrupt, match=r"5,001 holders reported, and the sums are of 3,001\."):
        aggregate.fn(store, **call, reports=reports, sums=[some])

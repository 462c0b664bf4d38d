"""split: who reports, who is held back for the simulation's test, and in which shard. Runs with the holders; the rules
are public coins.

A holder is a row, or the value of a column; then each holder answers with one row of theirs, drawn on their side. What a holder
sends is decided in `perturb`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ldptree.errors import DataError
from schemas.dataset import RESERVED
from schemas.manifest import Manifest
from storage import tables
from storage.campaigns import Campaign
from storage.splitmix import mixed
from storage.sql import literal, quote
from storage.store import Draft
from tasks import progress
from tasks.checkpoint import step

SHARD_ROWS = 65_536


def is_test(holders: NDArray[np.uint64], seed: int, fraction: float) -> NDArray[np.bool_]:
    """Which holders are held back: a public coin per holder, so that no new file changes an old holder's role."""
    return mixed(mixed(holders, seed), 0x7E57) < np.uint64(min(int(fraction * 2**64), 2**64 - 1))


def one_row_each(holders: NDArray[np.uint64], draws: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """For every distinct holder the row with the smallest draw: bool [rows]."""
    order = np.lexsort((draws, holders))
    first = np.ones(len(order), dtype=bool)
    first[1:] = holders[order][1:] != holders[order][:-1]
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[first]] = True
    return chosen


@dataclass(frozen=True)
class Source:
    """One file's private rows, and the digest of the raw file they came from."""

    path: Path
    digest: str


class FileAsked(TypedDict):
    """Of a raw file, under its keyed digest: the first and last row kept (a range), and the shards of who is asked in it."""

    rows: list[int]
    shards: list[str]


@step("split", version="3", home="holders")
def split(
    draft: Draft,
    *,
    private: Manifest,
    columns: Sequence[str],
    holder: str,
    seed: int,
    test_fraction: float,
    noise_seed: int | None,
    campaign: str | None,
    asked_before: Sequence[str],
) -> dict[str, Any]:
    """Write the shards of the holders who report (part "train", a file each), the test rows (part "test") and who they are
    (part "answers": `files.json`, and where a column names them a file of hashes for each raw file).

    `columns` are kept; `asked_before` are keyed digests of a campaign's earlier files: who answered there is not asked again.
    """
    store = draft.store
    keyed = store.hasher("holders")
    names: dict[str, str] = {}
    for name, digest in json.loads(store.file(private, "sources.json").read_bytes()).items():
        names.setdefault(digest, name)  # of two files that hold the same, the second has nobody new in it
    sources = [Source(store.file(private, name), digest) for digest, name in names.items()]
    register = Campaign(store, campaign) if campaign else None
    taken = register.answered(asked_before) if register else np.empty(0, np.uint64)
    coin = noise_seed if noise_seed is not None else int(keyed.of_bytes(b"rows")[:16], 16)
    folder, answers = draft.folder("train"), draft.folder("answers")
    files: dict[str, FileAsked] = {}
    n_private = n_test = 0
    with tables.writer(draft.folder("test") / "test.parquet", _schema(sources[0].path, columns)) as test:
        for done, source in enumerate(sources):
            holders = _holders(source, holder)
            kept = np.ones(len(holders), bool)
            if holder != "row":
                rows = np.arange(len(holders), dtype=np.uint64)
                kept = one_row_each(holders, mixed(rows, coin ^ int(source.digest[:16], 16)))
                kept &= ~np.isin(holders, taken)
            held_back = kept & is_test(holders, seed, test_fraction)
            asked = kept & ~held_back
            if holder != "row":
                taken = np.union1d(taken, holders[kept])
            known_as = keyed.of_digest(source.digest)
            shards: list[str] = []
            if holder != "row":
                np.save(answers / f"{known_as}.npy", holders[asked])
            n_private += int(asked.sum())
            for table in _blocks(source.path, columns, held_back):
                test.write_table(table)
                n_test += table.num_rows
            for block, table in enumerate(_blocks(source.path, columns, asked)):
                # Named by what the raw file holds, under the holders' key: a new file changes no old shard's name.
                name = f"{keyed.of_value([source.digest, block])[:32]}.parquet"
                tables.write(folder / name, table)
                draft.count("train", name, table.num_rows)
                shards.append(name)
            if shards:
                files[known_as] = FileAsked(rows=_range(source.path), shards=shards)
            progress.advance((done + 1) / len(sources))
    draft.count("test", "test.parquet", n_test)
    (answers / "files.json").write_text(json.dumps(files))
    if test_fraction > 0 and n_test == 0:
        raise DataError(
            f"no private row was held back to score on, by dataset.test_fraction = {test_fraction:g}. "
            "Raise it, or set evaluate = false."
        )
    if n_private == 0:
        raise DataError(
            "no private rows are left to report: every one is public, held back for the test, or was asked before."
        )
    return {"n_private": n_private, "n_test": n_test}


def _schema(path: Path, columns: Sequence[str]) -> pa.Schema:
    schema = pq.read_schema(path)
    return pa.schema([schema.field(column) for column in columns])


def _range(path: Path) -> list[int]:
    """The private rows of a raw file lie from the first number to before the second."""
    rows = np.concatenate(
        [np.asarray(table.column(RESERVED)) for table in tables.batches([path], [RESERVED])]
    )
    return [int(rows.min()), int(rows.max()) + 1]


def _holders(source: Source, holder: str) -> NDArray[np.uint64]:
    """A 64-bit hash of each row's holder, the same in every work folder."""
    if holder == "row":
        rows = [
            np.asarray(t.column(RESERVED)).astype(np.uint64)
            for t in tables.batches([source.path], [RESERVED])
        ]
        return mixed(np.concatenate(rows) if rows else np.empty(0, np.uint64), int(source.digest[16:32], 16))
    import duckdb

    with duckdb.connect() as connection:
        # MD5 as a mixer that no DuckDB release changes, not for secrecy: this stays in the holders' zone.
        hashed = connection.execute(
            f"SELECT md5_number_lower({quote(holder)}::VARCHAR) AS h FROM read_parquet({literal(str(source.path))})"
        ).fetchnumpy()["h"]
    return np.asarray(hashed, dtype=np.uint64)


def _blocks(path: Path, columns: Sequence[str], mask: NDArray[np.bool_]) -> Iterator[pa.Table]:
    """The rows of a file under a mask, in tables of SHARD_ROWS (the last one shorter)."""
    kept: list[pa.Table] = []
    waiting = at = 0
    for table in tables.batches([path], columns):
        kept.append(table.filter(pa.array(mask[at : at + table.num_rows])))
        at += table.num_rows
        waiting += kept[-1].num_rows
        while waiting >= SHARD_ROWS:
            whole = pa.concat_tables(kept)
            yield whole.slice(0, SHARD_ROWS).combine_chunks()
            kept = [whole.slice(SHARD_ROWS)]
            waiting -= SHARD_ROWS
    if waiting:
        yield pa.concat_tables(kept).combine_chunks()

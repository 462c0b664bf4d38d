"""split: who reports, who is held back for the simulation's test, and in which shard. Runs with the holders; the rules
are public coins.

A holder is a row, or the value of a column; then each holder answers with one row of theirs, drawn on their side. What a holder
sends is decided in `perturb`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
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
from storage.holders.holder_names import hash_names, hash_names_as_floats, type_of_stored_names
from storage.holders.row_copies import RowNames
from storage.holders.sorted_hashes import merge, place_in
from storage.ledger.campaigns import Campaign
from storage.stable_hash import mixed
from storage.store import Draft
from tasks import progress
from tasks.data.read import raw_file_of
from tasks.step import step

SHARD_ROWS = 65_536
Hashes = NDArray[np.uint64]


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
    """The private rows of one raw file, in their order; its digest; and the files that say who they are."""

    paths: Sequence[Path]
    digest: str
    rows: Sequence[Path]


class FileAsked(TypedDict):
    """Of a raw file, under its keyed digest.

    rows    the first and last row kept (a range).
    shards  the shards of who is asked in it.
    people  a keyed digest of who they are, in whatever order their rows came.
    """

    rows: list[int]
    shards: list[str]
    people: str


@step(
    "split",
    version="4",
    home="holders",
    order=3,
    says="shards of the holders who report, and the test rows held back",
)
def split(
    draft: Draft,
    *,
    private: Manifest,
    rows: Manifest,
    columns: Sequence[str],
    holder: str,
    seed: int,
    test_fraction: float,
    noise_seed: int | None,
    campaign: str | None,
    asked_before: Sequence[str],
) -> dict[str, Any]:
    """Write the shards of the holders who report (part "train", a file each), the test rows (part "test") and who they are
    (part "answers": `files.json`, and for each raw file who is asked, and as which rows).

    `rows`: who each private row is. `columns` are kept; `asked_before` are keyed digests of a campaign's earlier files: who
    answered there is not asked again.
    """
    store = draft.store
    keyed = store.hasher("holders")
    names: dict[str, list[str]] = {}
    for name, digest in json.loads(store.file(private, "sources.json").read_bytes()).items():
        parts = names.setdefault(digest, [])
        if raw_file_of(name) == raw_file_of([*parts, name][0]):
            parts.append(name)  # another file that holds the same has nobody new in it
    sources = [
        Source(
            [store.file(private, name) for name in parts],
            digest,
            [store.file(rows, f"{Path(name).stem}.npy") for name in parts],
        )
        for digest, parts in names.items()
    ]
    people = _People(draft, holder, seed, test_fraction, noise_seed, campaign, asked_before)
    folder, answers = draft.folder("train"), draft.folder("answers")
    files: dict[str, FileAsked] = {}
    n_private = n_test = 0
    with tables.writer(draft.folder("test") / "test.parquet", _schema(sources[0].paths[0], columns)) as test:
        for done, source in enumerate(sources):
            found = people.of(source)
            found.write(answers)
            n_private += int(found.asked.sum())
            for table in _blocks(source.paths, columns, found.held_back):
                test.write_table(table)
                n_test += table.num_rows
            shards: list[str] = []
            for block, table in enumerate(_blocks(source.paths, columns, found.asked)):
                name = people.shard_name(source, block)
                tables.write(folder / name, found.in_order(block, table))
                draft.count("train", name, table.num_rows)
                shards.append(name)
            if shards:
                files[found.file] = FileAsked(
                    rows=_range(source.paths), shards=shards, people=keyed.of_bytes(found.everybody)
                )
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
    names_are = {} if holder == "row" else {"holder_type": type_of_stored_names(sources[0].paths[0], holder)}
    return {"n_private": n_private, "n_test": n_test, **names_are}


@dataclass(frozen=True, kw_only=True)
class _FilePeople:
    """Who is in one file; one entry for each of its private rows.

    file       the keyed digest of the raw file.
    holders    whose row it is, uint64: what a holder is known by.
    rows       which row it is, uint64: the same, where each row is a holder.
    asked      who reports, with this row.
    held_back  who is held back for the test.
    order      the coins of those who are asked for the order of rows in a shard; None for the order of the file.
    """

    file: str
    holders: Hashes
    rows: Hashes
    asked: NDArray[np.bool_]
    held_back: NDArray[np.bool_]
    order: Hashes | None

    @property
    def everybody(self) -> bytes:
        """Who is asked, in whatever order."""
        return np.sort(self.holders[self.asked]).tobytes()

    def write(self, folder: Path) -> None:
        """Keep who is asked, `FILE.npy`. Where each row is a holder, also where that row is, `FILE.at.npy` (names and places,
        [2, n]); else which rows are theirs, `FILE.rows.npy`.
        """
        asked = self.holders[self.asked]
        np.save(folder / f"{self.file}.npy", asked)
        if self.holders is self.rows:
            places = np.flatnonzero(self.asked).astype(np.uint64)
            with (folder / f"{self.file}.at.npy").open("wb") as out:
                header = {"descr": "<u8", "fortran_order": False, "shape": (2, len(asked))}
                np.lib.format.write_array_header_1_0(out, header)
                asked.tofile(out)
                places.tofile(out)
        else:
            np.save(folder / f"{self.file}.rows.npy", self.rows[np.isin(self.holders, asked)])

    def in_order(self, block: int, table: pa.Table) -> pa.Table:
        """The rows of a shard as its reports come: of the order in the file they tell nothing."""
        if self.order is None:
            return table
        coins = self.order[block * SHARD_ROWS :][: table.num_rows]
        return table.take(np.argsort(coins, kind="stable"))


class _People:
    """Who is asked in each file of a run, the files in their order."""

    def __init__(
        self,
        draft: Draft,
        holder: str,
        seed: int,
        test_fraction: float,
        noise_seed: int | None,
        campaign: str | None,
        asked_before: Sequence[str],
    ) -> None:
        self._keyed = draft.store.hasher("holders")
        self._holder, self._seed, self._test_fraction = holder, seed, test_fraction
        self._is_seeded = noise_seed is not None
        self._coin = noise_seed if noise_seed is not None else int(self._keyed.of_bytes(b"rows")[:16], 16)
        self._campaign = Campaign(draft.store, campaign) if campaign else None
        self._taken = (
            self._campaign.answered(asked_before) if self._campaign else np.empty(0, np.uint64)
        )  # sorted
        self._newly_taken = np.empty(0, np.uint64)
        self._asked_files = set(self._campaign.asked().values()) if self._campaign else set()
        self._names = RowNames()
        self._in_file_order = set() if self._is_seeded else _asked_in_file_order(draft)

    def shard_name(self, source: Source, block: int) -> str:
        """By what the raw file holds, under the holders' key: a new file changes no old shard's name."""
        return f"{self._keyed.of_value([source.digest, block])[:32]}.parquet"

    def of(self, source: Source) -> _FilePeople:
        """Who is in the next file."""
        file, by_row = self._keyed.of_digest(source.digest), self._holder == "row"
        if len(
            self._newly_taken
        ):  # sorted when there is a file to look for them in: for the only one there is none
            self._taken = merge(self._taken, np.sort(self._newly_taken))
        before = self._campaign.asked_rows(file) if self._campaign and by_row else None
        rows = self._names.of(np.concatenate([np.load(path) for path in source.rows]), before)
        # In a simulation, and in a shard that an earlier version asked, everything is drawn as it was: by the file's own bytes.
        is_plain = self._is_seeded or self.shard_name(source, 0) in self._in_file_order
        holders = rows if by_row else _hashed(source, hash_names, self._holder)
        # Of a file that a campaign asked before it kept rows, whoever was asked then is asked no less now.
        was_asked = before is None and by_row and self._campaign is not None and file in self._asked_files
        kept = np.ones(len(rows), bool) if was_asked else ~place_in(self._taken, holders)[1]
        if not by_row:
            former = _hashed(source, hash_names_as_floats, self._holder) if len(self._taken) else holders[:0]
            if len(former):
                kept &= ~place_in(self._taken, former)[1]
            numbered = np.arange(len(rows), dtype=np.uint64), self._coin ^ int(source.digest[:16], 16)
            kept &= one_row_each(holders, mixed(*(numbered if is_plain else (rows, self._coin))))
        coins = _row_coins(source) if by_row else holders
        held_back = kept & is_test(coins, self._seed, self._test_fraction)
        asked = kept & ~held_back
        if before is not None:
            asked = np.zeros(len(rows), bool)
            asked[before[0]] = True
        self._newly_taken = holders[kept]
        return _FilePeople(
            file=file,
            holders=holders,
            rows=rows,
            asked=asked,
            held_back=held_back,
            order=None if is_plain else mixed(holders[asked], self._coin),
        )


def _asked_in_file_order(draft: Draft) -> set[str]:
    """Shards that an earlier version asked with these settings: its reports are known by their rows in the order of the file."""
    found = [draft.store.read_record(name) for name in draft.store.record_names("holders", "split")]
    trains = [record["train"] for record in found if record is not None and record.version == "3"]
    return {
        entry.name
        for train in trains
        if train.made_by.parameters == draft.place.parameters
        for entry in train.files
    }


def _schema(path: Path, columns: Sequence[str]) -> pa.Schema:
    schema = pq.read_schema(path)
    return pa.schema([schema.field(column) for column in columns])


def _hashed(source: Source, hash_in: Callable[[Path, str], Hashes], holder: str) -> Hashes:
    """The hashes of the holders' names in the rows of a file."""
    return np.concatenate([hash_in(path, holder) for path in source.paths])


def _range(paths: Sequence[Path]) -> list[int]:
    """The private rows of a raw file lie from the first number to before the second."""
    rows = np.concatenate([np.asarray(table.column(RESERVED)) for table in tables.batches(paths, [RESERVED])])
    return [int(rows.min()), int(rows.max()) + 1]


def _row_coins(source: Source) -> Hashes:
    """A 64-bit hash of each row by its number in its file, the same in every work folder."""
    rows = [
        np.asarray(t.column(RESERVED)).astype(np.uint64) for t in tables.batches(source.paths, [RESERVED])
    ]
    return mixed(np.concatenate(rows) if rows else np.empty(0, np.uint64), int(source.digest[16:32], 16))


def _blocks(paths: Sequence[Path], columns: Sequence[str], mask: NDArray[np.bool_]) -> Iterator[pa.Table]:
    """The rows of several files under a mask, in tables of SHARD_ROWS (the last one shorter)."""
    kept: list[pa.Table] = []
    waiting = at = 0
    for table in tables.batches(paths, columns):
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

"""roles: who reports, who is held back for the simulation's test, and in which shard; file by file, as who is new in one depends
on those before it. Runs with the holders; the rules are public coins.

A holder is a row, or the value of a column; then each holder answers with one row of theirs, drawn on their side. What a holder
sends is decided in `perturb`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from schemas.dataset import RESERVED
from schemas.manifest import Arguments, Manifest
from storage import tables
from storage.holders.holder_names import hash_names, hash_names_as_floats
from storage.holders.row_copies import RowNames
from storage.holders.sorted_hashes import merge, place_in
from storage.ledger.campaigns import Campaign
from storage.stable_hash import mixed
from storage.store import Draft
from tasks import parts
from tasks.data.read import raw_file_of
from tasks.holders import stretches
from tasks.holders.stretches import Stretch
from tasks.step import step

Hashes = NDArray[np.uint64]


class RoleRules(Arguments):
    """What decides about the holders of a run.

    columns       of a row are kept.
    holder        "row", or the column that names them.
    asked_before  keyed digests of a campaign's earlier files: who answered there is not asked again.
    """

    columns: Sequence[str]
    holder: str
    seed: int
    test_fraction: float
    noise_seed: int | None
    campaign: str | None
    asked_before: Sequence[str]


class FileAsked(TypedDict):
    """Of a raw file, under its keyed digest.

    rows    the first and last row kept (a range).
    shards  the shards of who is asked in it.
    people  a keyed digest of who they are, in whatever order their rows came.
    """

    rows: list[int]
    shards: list[str]
    people: str


@dataclass(frozen=True)
class Source:
    """The private rows of one raw file, in their order; its digest; and the files that say who they are."""

    paths: Sequence[Path]
    digest: str
    rows: Sequence[Path]


@dataclass(frozen=True, kw_only=True)
class FileRoles:
    """Who is in one file; one entry for each of its private rows.

    file       the keyed digest of the raw file.
    paths      of its typed rows.
    holders    whose row it is, uint64: what a holder is known by.
    rows       which row it is, uint64: the same, where each row is a holder.
    asked      who reports, with this row.
    held_back  who is held back for the test.
    order      the coins of those who are asked for the order of rows in a shard; None for the order of the file.
    shards     the names of its shards.
    """

    file: str
    paths: Sequence[Path]
    holders: Hashes
    rows: Hashes
    asked: NDArray[np.bool_]
    held_back: NDArray[np.bool_]
    order: Hashes | None
    shards: Sequence[str]

    @property
    def everybody(self) -> bytes:
        """Who is asked, in whatever order."""
        return np.sort(self.holders[self.asked]).tobytes()

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """The row of the first one who is asked in each shard."""
        return np.flatnonzero(self.asked)[:: stretches.SHARD_ROWS]

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

    def stretch(self, first: int = 0, n_shards: int | None = None) -> Stretch:
        """The rows from a shard's first one to the next stretch's, with their roles; all of them where no number is given."""
        shards = self.shards[first:][:n_shards]
        last = first + len(shards)
        start = self._starts[first] if first else 0
        stop = self._starts[last] if last < len(self.shards) else len(self.asked)
        of_shards = slice(first * stretches.SHARD_ROWS, last * stretches.SHARD_ROWS)
        return Stretch(
            paths=self.paths,
            start=int(start),
            asked=self.asked[start:stop],
            held_back=self.held_back[start:stop],
            order=None if self.order is None else self.order[of_shards],
            shards=shards,
        )


@step("roles", version="1", home="holders", says="who reports and who is held back")
def roles(draft: Draft, *, private: Manifest, rows: Manifest, rules: RoleRules) -> None:
    """Write who is asked ("answers") as `split`, called with the same; and what is to be cut into shards ("stretches")."""
    n_shards = max(parts.PART_ROWS // stretches.SHARD_ROWS, 1)
    for found in assign(draft, private, rows, rules):
        raw_file = raw_file_of(found.paths[0].name)
        for first in range(0, max(len(found.shards), 1), n_shards):
            stretch = found.stretch(first, n_shards)
            name = f"{raw_file}-{first:06d}.npz"
            stretch.write(draft.folder("stretches") / name)
            draft.count("stretches", name, int(stretch.asked.sum()))


def assign(draft: Draft, private: Manifest, rows: Manifest, rules: RoleRules) -> Iterator[FileRoles]:
    """The roles in each raw file, in their order; who is asked is written on the way (part "answers": `files.json`, and for each
    raw file who, and as which rows). `rows`: who each private row is.
    """
    store, keyed = draft.store, draft.store.hasher("holders")
    names: dict[str, list[str]] = {}
    for name, digest in json.loads(store.file(private, "sources.json").read_bytes()).items():
        pieces = names.setdefault(digest, [])
        if raw_file_of(name) == raw_file_of([*pieces, name][0]):
            pieces.append(name)  # another file that holds the same has nobody new in it
    people, folder = _People(draft, rules), draft.folder("answers")
    files: dict[str, FileAsked] = {}
    for digest, pieces in names.items():
        source = Source(
            [store.file(private, name) for name in pieces],
            digest,
            [store.file(rows, f"{Path(name).stem}.npy") for name in pieces],
        )
        found = people.of(source)
        found.write(folder)
        if found.shards:
            files[found.file] = FileAsked(
                rows=_range(source.paths), shards=[*found.shards], people=keyed.of_bytes(found.everybody)
            )
        yield found
    (folder / "files.json").write_text(json.dumps(files))


class _People:
    """Who is asked in each file of a run, the files in their order."""

    def __init__(self, draft: Draft, rules: RoleRules) -> None:
        self._keyed = draft.store.hasher("holders")
        self._holder, self._seed, self._test_fraction = rules.holder, rules.seed, rules.test_fraction
        self._is_seeded = rules.noise_seed is not None
        self._coin = (
            int(self._keyed.of_bytes(b"rows")[:16], 16) if rules.noise_seed is None else rules.noise_seed
        )
        self._campaign = Campaign(draft.store, rules.campaign) if rules.campaign else None
        self._taken = (
            self._campaign.answered(rules.asked_before) if self._campaign else np.empty(0, np.uint64)
        )  # sorted
        self._newly_taken = np.empty(0, np.uint64)
        self._asked_files = set(self._campaign.asked().values()) if self._campaign else set()
        self._names = RowNames()
        self._in_file_order = set() if self._is_seeded else _asked_in_file_order(draft)

    def shard_name(self, source: Source, block: int) -> str:
        """By what the raw file holds, under the holders' key: a new file changes no old shard's name."""
        return f"{self._keyed.of_value([source.digest, block])[:32]}.parquet"

    def of(self, source: Source) -> FileRoles:
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
        n_shards = -(-int(asked.sum()) // stretches.SHARD_ROWS)
        return FileRoles(
            file=file,
            paths=source.paths,
            holders=holders,
            rows=rows,
            asked=asked,
            held_back=held_back,
            order=None if is_plain else mixed(holders[asked], self._coin),
            shards=[self.shard_name(source, block) for block in range(n_shards)],
        )


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

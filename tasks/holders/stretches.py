"""cut: the rows of a raw file into shards of those who report, and the rows held back; a stretch of them, or all. Who has which
role is decided in `roles`. Runs with the holders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from schemas.manifest import Manifest, Record
from storage import tables
from storage.store import Draft, Store
from tasks import parts
from tasks.data.read import raw_file_of
from tasks.step import step

SHARD_ROWS = 65_536


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Rows of one raw file that follow each other, and their roles.

    paths      of the file's typed rows.
    start      how many of these rows come before.
    asked      who reports, bool [n].
    held_back  who is held back, bool [n].
    order      coins of those who are asked, for the order of rows in a shard, uint64; None for the order of the file.
    shards     the names of the shards.
    """

    paths: Sequence[Path]
    start: int
    asked: NDArray[np.bool_]
    held_back: NDArray[np.bool_]
    order: NDArray[np.uint64] | None
    shards: Sequence[str]

    def write(self, path: Path) -> None:
        """Keep it, but for the rows."""
        kept: dict[str, Any] = {
            "start": self.start,
            "asked": self.asked,
            "held_back": self.held_back,
            "shards": np.array(self.shards, dtype="U"),
        }
        np.savez(path, **kept | ({} if self.order is None else {"order": self.order}))

    @classmethod
    def read(cls, path: Path, rows: Sequence[Path]) -> Stretch:
        """As `write` kept it."""
        with np.load(path) as kept:
            return cls(
                paths=rows,
                start=int(kept["start"]),
                asked=kept["asked"],
                held_back=kept["held_back"],
                order=kept.get("order"),
                shards=kept["shards"].tolist(),
            )

    def cut(self, columns: Sequence[str]) -> Iterator[tuple[str | None, pa.Table]]:
        """Each shard by its name, in the order of its reports, which tells nothing of the order in the file; rows held back by no
        name.
        """
        asked, held_back, at, shards = Blocks(), Blocks(), 0, iter(enumerate(self.shards))
        for table in tables.batches(self.paths, columns, range(self.start, self.start + len(self.asked))):
            part = slice(at, at + table.num_rows)
            at += table.num_rows
            for rows in asked.add(table.filter(pa.array(self.asked[part]))):
                yield self._shard(*next(shards), rows)
            for rows in held_back.add(table.filter(pa.array(self.held_back[part]))):
                yield None, rows
        for rows in asked.rest():
            yield self._shard(*next(shards), rows)
        for rows in held_back.rest():
            yield None, rows

    def _shard(self, number: int, name: str, rows: pa.Table) -> tuple[str, pa.Table]:
        if self.order is None:
            return name, rows
        coins = self.order[number * SHARD_ROWS :][: rows.num_rows]
        return name, rows.take(np.argsort(coins, kind="stable"))


class Blocks:
    """Rows in tables of SHARD_ROWS, the last one shorter."""

    def __init__(self) -> None:
        """None yet."""
        self._waiting: list[pa.Table] = []

    def add(self, rows: pa.Table) -> Iterator[pa.Table]:
        """The tables that are full with these rows."""
        self._waiting.append(rows)
        n_waiting = sum(table.num_rows for table in self._waiting)
        while n_waiting >= SHARD_ROWS:
            whole = pa.concat_tables(self._waiting)
            self._waiting = [whole.slice(SHARD_ROWS)]
            n_waiting -= SHARD_ROWS
            yield whole.slice(0, SHARD_ROWS).combine_chunks()

    def rest(self) -> Iterator[pa.Table]:
        """The last one, if there is any."""
        if sum(table.num_rows for table in self._waiting):
            yield pa.concat_tables(self._waiting).combine_chunks()


@step("cut", version="1", home="holders", says="some of the shards, and of the rows held back")
def cut(
    draft: Draft, *, private: Sequence[Manifest], stretches: Sequence[Manifest], columns: Sequence[str]
) -> None:
    """Write the shards of some stretches ("train"), and their rows held back ("test", a file each). `private`: the typed rows of
    their raw files.
    """
    store = draft.store
    paths = [path for manifest in private for path in store.files(manifest)]
    test = draft.folder("test")
    for manifest in stretches:
        (kept,) = store.files(manifest)
        stretch = Stretch.read(
            kept, [path for path in paths if raw_file_of(path.name) == raw_file_of(kept.name)]
        )
        with tables.writer(test / f"{kept.stem}.parquet", columns_of(stretch.paths[0], columns)) as held_back:
            write(draft, stretch, columns, held_back)


def write(draft: Draft, stretch: Stretch, columns: Sequence[str], held_back: pq.ParquetWriter) -> None:
    """Write the shards of a stretch (part "train", a file each) and its rows held back."""
    folder = draft.folder("train")
    for name, rows in stretch.cut(columns):
        if name is None:
            held_back.write_table(rows)
        else:
            tables.write(folder / name, rows)
            draft.count("train", name, rows.num_rows)


def parts_of(private: Manifest, stretches: Manifest) -> list[dict[str, Any]]:
    """Stretches in the parts that one task each cuts, with the typed rows of their files."""
    each, rows = stretches.one_by_one(), private.one_by_one()
    found = []
    for part in parts.groups([one.rows for one in each], parts.PART_ROWS):
        some = each[part.start : part.stop]
        files = {raw_file_of(one.files[0].name) for one in some}
        its = [one for one in rows if one.rows and raw_file_of(one.files[0].name) in files]
        found.append({"private": its, "stretches": some})
    return found


def rows_held_back(store: Store, records: Sequence[Record]) -> Iterator[pa.Table]:
    """The rows held back that `cut` left of all stretches, file by file in tables as of a whole file."""
    by_file: dict[int, dict[int, Path]] = {}
    for record in records:
        for path in store.files(record["test"]):
            _, file, first = path.stem.split("-")
            by_file.setdefault(int(file), {})[int(first)] = path
    for _, paths in sorted(by_file.items()):
        blocks = Blocks()
        for table in tables.batches([path for _, path in sorted(paths.items())]):
            yield from blocks.add(table)
        yield from blocks.rest()


def columns_of(path: Path, columns: Sequence[str]) -> pa.Schema:
    """Of these columns of a file."""
    whole = pq.read_schema(path)
    return pa.schema([whole.field(column) for column in columns])

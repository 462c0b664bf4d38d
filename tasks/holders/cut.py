"""cut: typed private rows into the shards of those who report, and the rows held back. Who has which role is decided in `split`.
Runs with the holders.
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

from schemas.manifest import Manifest
from storage import tables
from storage.digests import Hasher
from storage.store import Draft
from tasks.data.read import raw_file_of
from tasks.data.source import groups
from tasks.step import step

SHARD_ROWS = 65_536
PART_ROWS = 16 * SHARD_ROWS
"""Holders whose shards one task cuts."""


@dataclass(frozen=True, kw_only=True)
class RowRoles:
    """The roles of rows of a raw file that follow each other, and the names of the shards of those who report.

    start      how many typed rows of the file come before.
    asked      who reports, bool [n].
    held_back  who is held back, bool [n].
    """

    start: int
    asked: NDArray[np.bool_]
    held_back: NDArray[np.bool_]
    shards: Sequence[str]

    def write(self, path: Path) -> None:
        """Keep them."""
        names = np.array(self.shards, dtype="U")
        np.savez(path, start=self.start, asked=self.asked, held_back=self.held_back, shards=names)

    @classmethod
    def read(cls, path: Path) -> RowRoles:
        """As `write` kept them."""
        with np.load(path) as kept:
            return cls(
                start=int(kept["start"]),
                asked=kept["asked"],
                held_back=kept["held_back"],
                shards=kept["shards"].tolist(),
            )

    def cut(self, paths: Sequence[Path], columns: Sequence[str]) -> Iterator[tuple[str | None, pa.Table]]:
        """Each shard of the typed rows of a file by its name, in the order of the file; rows held back by no name."""
        asked, held_back, at, names = Blocks(), Blocks(), 0, iter(self.shards)
        for table in tables.batches(paths, columns, range(self.start, self.start + len(self.asked))):
            here = slice(at, at + table.num_rows)
            at += table.num_rows
            for rows in asked.add(table.filter(pa.array(self.asked[here]))):
                yield next(names), rows
            for rows in held_back.add(table.filter(pa.array(self.held_back[here]))):
                yield None, rows
        for rows in asked.rest():
            yield next(names), rows
        for rows in held_back.rest():
            yield None, rows


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


@step("cut", version="2", home="holders", says="shards of the people who report, and rows kept aside")
def cut(
    draft: Draft,
    *,
    private: Sequence[Manifest],
    roles: Sequence[Manifest],
    columns: Sequence[str],
    is_seeded: bool,
) -> None:
    """Write shards of the holders who report ("train", a file each), and the rows held back ("test", a file each of `roles`).

    `private`: the typed rows of their raw files; `is_seeded`: a shard's rows are in the order of the file, else in one of coins
    of the holders, which tells nothing of it.
    """
    store = draft.store
    keyed = None if is_seeded else store.hasher("holders")
    paths = [path for manifest in private for path in store.files(manifest)]
    train, test = draft.folder("train"), draft.folder("test")
    for manifest in roles:
        (kept,) = store.files(manifest)
        own = [path for path in paths if raw_file_of(path.name) == raw_file_of(kept.name)]
        name_of_test = f"{kept.stem}.parquet"
        with tables.writer(test / name_of_test, columns_of(own[0], columns)) as held_back:
            n_test = 0
            for name, rows in RowRoles.read(kept).cut(own, columns):
                if name is None:
                    held_back.write_table(rows)
                    n_test += rows.num_rows
                else:
                    tables.write(train / name, in_an_order(keyed, name, rows))
                    draft.count("train", name, rows.num_rows)
        draft.count("test", name_of_test, n_test)


def in_an_order(keyed: Hasher | None, shard: str, rows: pa.Table) -> pa.Table:
    """The rows of a shard in the order of its reports: by coins that only the holders know, or as they are."""
    if keyed is None:
        return rows
    return rows.take(np.argsort(keyed.words(["order", shard], rows.num_rows), kind="stable"))


def parts_to_cut(private: Manifest, roles: Manifest) -> list[dict[str, Any]]:
    """Roles in the parts that one task each cuts, with the typed rows of their files."""
    each, typed = roles.one_by_one(), [manifest for manifest in private.one_by_one() if manifest.rows]
    parts = []
    for part in groups([manifest.rows for manifest in each], PART_ROWS):
        some = each[part.start : part.stop]
        files = {raw_file_of(manifest.files[0].name) for manifest in some}
        parts.append(
            {
                "private": [manifest for manifest in typed if raw_file_of(manifest.files[0].name) in files],
                "roles": some,
            }
        )
    return parts


def columns_of(path: Path, columns: Sequence[str]) -> pa.Schema:
    """Return the schema of these columns of a file."""
    whole = pq.read_schema(path)
    return pa.schema([whole.field(column) for column in columns])

"""Read the holders' database at one moment, and insert rows in a transaction.

Each transaction has a number, and a digest of everything up to it: a row that was changed or lost is noticed by whoever looks
or writes. For a list of people, which may be large, stands its digest there: the list itself is looked at whenever it is read.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, LargeBinary, Row, Table, func, select

from storage.digests import Hasher, canonical
from storage.ledger.schema import PEOPLE, TABLES, TRANSACTIONS


class Changed(Exception):  # noqa: N818 - the database says where it is, and that it is damaged
    """A row is not what was inserted."""


class Last(NamedTuple):
    """The last transaction: its number, and the digest of everything up to it."""

    number: int
    digest: str


class Snapshot:
    """Everything that the database holds at one moment; nothing where there is none."""

    def __init__(self, connection: Connection | None) -> None:
        """What a connection's open transaction sees."""
        self._connection = connection

    @property
    def is_open(self) -> bool:
        """Return whether the transaction goes on."""
        return self._connection is not None and not self._connection.closed

    def rows(self, table: Table, **equal: object) -> Sequence[Row[Any]]:
        """The rows of a table with these values, oldest first."""
        if self._connection is None:
            return []
        query = select(table).where(*(table.c[name] == value for name, value in equal.items()))
        return self._connection.execute(query.order_by(table.c.id)).all()

    def people(self, of: int) -> Iterator[NDArray[np.uint64]]:
        """A list of people, by sorted hashes, part by part. Raises Changed."""
        assert self._connection is not None
        of_list = select(PEOPLE.c.id).where(PEOPLE.c.list == of).order_by(PEOPLE.c.id)
        for part in self._connection.execute(of_list).scalars().all():
            row = self._connection.execute(select(PEOPLE).where(PEOPLE.c.id == part)).one()
            if Hasher().of_bytes(row.hashes) != row.digest:
                raise Changed
            yield np.frombuffer(row.hashes, "<u8")

    def sizes_of_lists(self) -> dict[int, int]:
        """Return how many people are in each list."""
        if self._connection is None:
            return {}
        sizes = select(PEOPLE.c.list, func.sum(PEOPLE.c.n)).group_by(PEOPLE.c.list)
        return {of: int(n) for of, n in self._connection.execute(sizes)}

    def check_lists(self) -> None:
        """Compare each part of each list with its digest. Raises Changed."""
        for of in self.sizes_of_lists():
            deque(self.people(of), maxlen=0)

    def transactions(self) -> list[Last]:
        """Every transaction, oldest first. Raises Changed."""
        if self._connection is None:
            return []
        query = select(TRANSACTIONS).order_by(TRANSACTIONS.c.number)
        written = [Last(*row) for row in self._connection.execute(query)]
        try:
            contents, digest = _contents(self._connection), ""
            for number, last in enumerate(written):
                digest = _next(digest, contents.pop(number))
                if last != (number, digest):
                    raise Changed
        except (KeyError, TypeError, ValueError):
            raise Changed from None
        if contents or not written:
            raise Changed
        return written


class Transaction(Snapshot):
    """A snapshot, and the rows that are inserted after it."""

    def __init__(self, connection: Connection, before: Last | None) -> None:
        """The transaction after `before`; None: the first one."""
        super().__init__(connection)
        self._inserting, self._before = connection, before
        self._number = before.number + 1 if before else 0
        self.is_empty = True

    def insert(self, table: Table, **values: object) -> None:
        """Insert a row."""
        self._inserting.execute(table.insert().values(transaction=self._number, **values))
        self.is_empty = False

    def insert_people(self, parts: Iterable[NDArray[np.uint64]]) -> int:
        """Insert a list of people, by sorted hashes, and return its number."""
        last = self._inserting.execute(select(func.max(PEOPLE.c.list))).scalar()
        number = 0 if last is None else int(last) + 1
        for part in parts:
            hashes = part.astype("<u8").tobytes()
            self.insert(PEOPLE, list=number, n=len(part), digest=Hasher().of_bytes(hashes), hashes=hashes)
        return number

    def finish(self) -> Last:
        """Insert the transaction itself, and return it."""
        content = _contents(self._inserting, self._number)[self._number]
        last = Last(self._number, _next(self._before.digest if self._before else "", content))
        self._inserting.execute(TRANSACTIONS.insert().values(last._asdict()))
        return last


def _contents(connection: Connection, number: int | None = None) -> dict[int, str]:
    """Return the digest of the rows of each transaction, or of one of them, without what is read part by part."""
    contents = defaultdict[int, Any](hashlib.sha256)
    for table in TABLES.sorted_tables:
        if table is TRANSACTIONS:
            continue
        columns = [column for column in table.c if not isinstance(column.type, LargeBinary)]
        query = select(*columns).order_by(table.c.id)
        if number is not None:
            query = query.where(table.c.transaction == number)
        for row in connection.execute(query):
            contents[row.transaction].update(canonical([table.name, list(row)]))
    return {at: content.hexdigest() for at, content in contents.items()}


def _next(digest: str, content: str) -> str:
    return Hasher().of_value([digest, content])

"""Read the holders' database at one moment, and insert rows in a transaction.

Each transaction has a number, and a digest of everything up to it: a row that was changed or lost is noticed.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, Table, func, select

from storage.digests import Hasher, canonical
from storage.ledger.schema import MOST_OF_A_PART, PEOPLE, TABLES, TRANSACTIONS


class Last(NamedTuple):
    """The last transaction: its number, and the digest of everything up to it."""

    number: int
    digest: str


class Snapshot:
    """Everything that the database holds at one moment; nothing where there is none."""

    def __init__(self, connection: Connection | None) -> None:
        """What a connection's open transaction sees."""
        self._connection = connection

    def rows(self, table: Table, **equal: object) -> Sequence[Row[Any]]:
        """The rows of a table with these values, oldest first."""
        if self._connection is None:
            return []
        query = select(table).where(*(table.c[name] == value for name, value in equal.items()))
        return self._connection.execute(query.order_by(table.c.id)).all()

    def people(self, of: int) -> NDArray[np.uint64]:
        """A list of people, by sorted hashes."""
        return np.frombuffer(b"".join(part.hashes for part in self.rows(PEOPLE, list=of)), "<u8")

    def transactions(self) -> list[Last]:
        """Every transaction, oldest first. Raises ValueError, TypeError where something is not what was inserted."""
        if self._connection is None:
            return []
        query = select(TRANSACTIONS).order_by(TRANSACTIONS.c.number)
        written = [Last(*row) for row in self._connection.execute(query)]
        contents, digest = _contents(self._connection), ""
        for number, last in enumerate(written):
            digest = _next(digest, contents.pop(number))
            if last != (number, digest):
                raise ValueError
        if contents:
            raise ValueError
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

    def insert_people(self, hashes: NDArray[np.uint64]) -> int:
        """Insert a list of people, by sorted hashes, and return its number."""
        last = self._inserting.execute(select(func.max(PEOPLE.c.list))).scalar()
        number = 0 if last is None else int(last) + 1
        for start in range(0, max(len(hashes), 1), MOST_OF_A_PART):
            part = hashes[start : start + MOST_OF_A_PART].astype("<u8").tobytes()
            self.insert(PEOPLE, list=number, hashes=part)
        return number

    def finish(self) -> Last:
        """Insert the transaction itself, and return it."""
        content = _contents(self._inserting, self._number)[self._number]
        last = Last(self._number, _next(self._before.digest if self._before else "", content))
        self._inserting.execute(TRANSACTIONS.insert().values(last._asdict()))
        return last


def _contents(connection: Connection, number: int | None = None) -> dict[int, str]:
    """Return the digest of the rows of each transaction, or of one of them."""
    contents = defaultdict[int, Any](hashlib.sha256)
    for table in TABLES.sorted_tables:
        if table is TRANSACTIONS:
            continue
        query = select(table).order_by(table.c.id)
        for row in connection.execute(
            query if number is None else query.where(table.c.transaction == number)
        ):
            values = [Hasher().of_bytes(value) if isinstance(value, bytes) else value for value in row]
            contents[row.transaction].update(canonical([table.name, values]))
    return {at: content.hexdigest() for at, content in contents.items()}


def _next(digest: str, content: str) -> str:
    return Hasher().of_value([digest, content])
